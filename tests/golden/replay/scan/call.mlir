module @m {
  func.func public @main(%arg0: tensor<10x2xf32>, %arg1: tensor<2xf32>) -> (tensor<10x2xf32>, tensor<2xf32>) {
    %0:2 = stablehlo.custom_call @mhlo.scan(%arg0, %arg1) {called_computations = [@scan], mhlo.attributes = {dimension = 0 : i64, is_associative = false, is_reverse = true, operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>, scan_dim_size = 10 : i64}, mhlo.version = 1 : i64} : (tensor<10x2xf32>, tensor<2xf32>) -> (tensor<10x2xf32>, tensor<2xf32>)
    return %0#0, %0#1 : tensor<10x2xf32>, tensor<2xf32>
  }
  func.func private @scan(%arg0: tensor<2xf32>, %arg1: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %0 = stablehlo.add %arg0, %arg1 : tensor<2xf32>
    %1 = stablehlo.multiply %0, %arg0 : tensor<2xf32>
    return %1, %0 : tensor<2xf32>, tensor<2xf32>
  }
}
