module @jit_f {
  func.func public @main(%arg0: tensor<4xf64>, %arg1: tensor<2xcomplex<f64>>) -> (tensor<4xf64>, tensor<4xf64>, tensor<2xcomplex<f64>>, tensor<4xbf16>) {
    %0 = chlo.digamma %arg0 : tensor<4xf64> -> tensor<4xf64>
    %1 = chlo.bessel_i1e %arg0 : tensor<4xf64> -> tensor<4xf64>
    %2 = chlo.asinh %arg1 : tensor<2xcomplex<f64>> -> tensor<2xcomplex<f64>>
    %3 = stablehlo.constant dense<[9.18355e-41, 2.9387359e-39, -2.9387359e-39, 2.0]> : tensor<4xbf16>
    %4 = chlo.lgamma %3 : tensor<4xbf16> -> tensor<4xbf16>
    return %0, %1, %2, %4 : tensor<4xf64>, tensor<4xf64>, tensor<2xcomplex<f64>>, tensor<4xbf16>
  }
}
