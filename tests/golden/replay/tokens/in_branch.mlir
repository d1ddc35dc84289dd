module @m {
  func.func public @main(%arg0: !stablehlo.token, %arg1: tensor<i32>, %arg2: tensor<2xf32>) -> (tensor<2xf32>, !stablehlo.token) {
    %0:2 = "stablehlo.case"(%arg1) ({
      %1 = stablehlo.after_all %arg0, %arg0 : !stablehlo.token
      %2 = stablehlo.add %arg2, %arg2 : tensor<2xf32>
      stablehlo.return %1, %2 : !stablehlo.token, tensor<2xf32>
    }, {
      stablehlo.return %arg0, %arg2 : !stablehlo.token, tensor<2xf32>
    }) : (tensor<i32>) -> (!stablehlo.token, tensor<2xf32>)
    %3:2 = stablehlo.optimization_barrier %0#0, %0#1 : !stablehlo.token, tensor<2xf32>
    %4 = stablehlo.tuple %3#1, %3#0 : tuple<tensor<2xf32>, !stablehlo.token>
    %5 = stablehlo.get_tuple_element %4[0] : (tuple<tensor<2xf32>, !stablehlo.token>) -> tensor<2xf32>
    return %5, %3#0 : tensor<2xf32>, !stablehlo.token
  }
}
