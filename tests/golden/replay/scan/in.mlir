module @jit_f {
  func.func public @main(%arg0: tensor<10x2xf32>, %arg1: tensor<2xf32>) -> (tensor<10x2xf32>, tensor<2xf32>) {
    %0:2 = chlo.scan(%arg0) inits (%arg1) dimension=0  attributes {is_associative = false, is_reverse = true, scan_dim_size = 10 : i64} {
    ^bb0(%input: tensor<2xf32>, %carry: tensor<2xf32>):
      %1 = stablehlo.add %input, %carry : tensor<2xf32>
      %2 = stablehlo.multiply %1, %input : tensor<2xf32>
      stablehlo.return %2, %1 : tensor<2xf32>, tensor<2xf32>
    } : (tensor<10x2xf32>, tensor<2xf32>) -> (tensor<10x2xf32>, tensor<2xf32>)
    return %0#0, %0#1 : tensor<10x2xf32>, tensor<2xf32>
  }
}
