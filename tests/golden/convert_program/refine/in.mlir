module @jit_f {
  func.func public @main(%arg0: tensor<?x?xf32>, %arg1: tensor<?xf32>) -> (tensor<?x?xf32>, tensor<?xi32>, tensor<?xf32>) {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>
    %1 = stablehlo.get_dimension_size %arg0, dim = 1 : (tensor<?x?xf32>) -> tensor<i32>
    %2 = stablehlo.get_dimension_size %arg1, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %3 = stablehlo.compare EQ, %2, %1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%3, %2, %1) {api_version = 2 : i32, error_message = "the bias has {0} elements, a row {1}", has_side_effect = true} : (tensor<i1>, tensor<i32>, tensor<i32>) -> ()
    %4:3 = call @layer(%0, %1, %arg0, %arg1) : (tensor<i32>, tensor<i32>, tensor<?x?xf32>, tensor<?xf32>) -> (tensor<?x?xf32>, tensor<?xi32>, tensor<?xf32>)
    return %4#0, %4#1, %4#2 : tensor<?x?xf32>, tensor<?xi32>, tensor<?xf32>
  }
  func.func private @layer(%arg0: tensor<i32>, %arg1: tensor<i32>, %arg2: tensor<?x?xf32>, %arg3: tensor<?xf32>) -> (tensor<?x?xf32>, tensor<?xi32>, tensor<?xf32>) {
    %c = stablehlo.constant dense<2> : tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %1 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %3 = stablehlo.dynamic_broadcast_in_dim %arg3, %2, dims = [1] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
    %4 = stablehlo.add %arg2, %3 : tensor<?x?xf32>
    %5 = stablehlo.multiply %arg0, %c : tensor<i32>
    %6 = stablehlo.reshape %5 : (tensor<i32>) -> tensor<1xi32>
    %7 = stablehlo.dynamic_iota %6, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
    %8:2 = stablehlo.while(%i = %zero, %v = %arg3) : tensor<i32>, tensor<?xf32>
    cond {
      %10 = stablehlo.compare LT, %i, %arg0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %10 : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %10 = stablehlo.add %i, %one : tensor<i32>
      %11 = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>
      %z = stablehlo.constant dense<0> : tensor<1xi32>
      %ones = stablehlo.constant dense<1> : tensor<1xi32>
      %both = stablehlo.constant dense<1> : tensor<2xi32>
      %12 = stablehlo.concatenate %11, %z, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %13 = stablehlo.concatenate %ones, %1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %14 = stablehlo.add %12, %13 : tensor<2xi32>
      %15 = stablehlo.real_dynamic_slice %4, %12, %14, %both : (tensor<?x?xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<1x?xf32>
      %16 = stablehlo.dynamic_reshape %15, %1 : (tensor<1x?xf32>, tensor<1xi32>) -> tensor<?xf32>
      %17 = stablehlo.add %v, %16 : tensor<?xf32>
      stablehlo.return %10, %17 : tensor<i32>, tensor<?xf32>
    }
    return %4, %7, %8#1 : tensor<?x?xf32>, tensor<?xi32>, tensor<?xf32>
  }
}
