module @jit_step attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<32x5xf32>, %arg1: tensor<3x3x2x8xf32>, %arg2: tensor<2x4x4x2xf32>, %arg3: tensor<2xi32>) -> (tensor<f32> {jax.result_info = "result[0]"}, tensor<32x5xf32> {jax.result_info = "result[1][0]"}, tensor<3x3x2x8xf32> {jax.result_info = "result[1][1]"}) {
    %0 = stablehlo.convolution(%arg2, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x4x4x2xf32>, tensor<3x3x2x8xf32>) -> tensor<2x4x4x8xf32>
    %1 = stablehlo.multiply %0, %0 : tensor<2x4x4x8xf32>
    %2 = stablehlo.multiply %1, %0 : tensor<2x4x4x8xf32>
    %3 = stablehlo.multiply %0, %0 : tensor<2x4x4x8xf32>
    %cst = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x4x4x8xf32>
    %5 = stablehlo.multiply %4, %3 : tensor<2x4x4x8xf32>
    %cst_0 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x4x4x8xf32>
    %7 = stablehlo.multiply %6, %2 : tensor<2x4x4x8xf32>
    %8 = stablehlo.add %0, %7 : tensor<2x4x4x8xf32>
    %cst_1 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x4x4x8xf32>
    %10 = stablehlo.multiply %9, %8 : tensor<2x4x4x8xf32>
    %11 = stablehlo.tanh %10 : tensor<2x4x4x8xf32>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x4x4x8xf32>
    %13 = stablehlo.subtract %12, %11 : tensor<2x4x4x8xf32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<2x4x4x8xf32>
    %15 = stablehlo.add %14, %11 : tensor<2x4x4x8xf32>
    %cst_4 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<2x4x4x8xf32>
    %17 = stablehlo.multiply %16, %15 : tensor<2x4x4x8xf32>
    %18 = stablehlo.multiply %0, %17 : tensor<2x4x4x8xf32>
    %cst_5 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %19 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<f32>
    %20 = "stablehlo.reduce_window"(%18, %19) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %62 = stablehlo.maximum %arg4, %arg5 : tensor<f32>
      stablehlo.return %62 : tensor<f32>
    }) : (tensor<2x4x4x8xf32>, tensor<f32>) -> tensor<2x2x2x8xf32>
    %21 = stablehlo.reshape %20 : (tensor<2x2x2x8xf32>) -> tensor<2x32xf32>
    %22 = stablehlo.dot_general %21, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x32xf32>, tensor<32x5xf32>) -> tensor<2x5xf32>
    %23:3 = call @log_softmax(%22) : (tensor<2x5xf32>) -> (tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x1xf32>)
    %24 = call @_one_hot(%arg3) : (tensor<2xi32>) -> tensor<2x5xf32>
    %25 = stablehlo.multiply %23#0, %24 : tensor<2x5xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %26 = stablehlo.reduce(%25 init: %cst_6) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x5xf32>, tensor<f32>) -> tensor<f32>
    %cst_7 = stablehlo.constant dense<1.000000e+01> : tensor<f32>
    %27 = stablehlo.divide %26, %cst_7 : tensor<f32>
    %28 = stablehlo.negate %27 : tensor<f32>
    %cst_8 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %29 = stablehlo.negate %cst_8 : tensor<f32>
    %cst_9 = stablehlo.constant dense<1.000000e+01> : tensor<f32>
    %30 = stablehlo.divide %29, %cst_9 : tensor<f32>
    %31 = stablehlo.broadcast_in_dim %30, dims = [] : (tensor<f32>) -> tensor<2x5xf32>
    %32 = stablehlo.multiply %31, %24 : tensor<2x5xf32>
    %33 = call @log_softmax_0(%23#1, %23#2, %32) : (tensor<2x5xf32>, tensor<2x1xf32>, tensor<2x5xf32>) -> tensor<2x5xf32>
    %34 = stablehlo.dot_general %33, %21, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x5xf32>, tensor<2x32xf32>) -> tensor<5x32xf32>
    %35 = stablehlo.transpose %34, dims = [1, 0] : (tensor<5x32xf32>) -> tensor<32x5xf32>
    %36 = stablehlo.dot_general %33, %arg0, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x5xf32>, tensor<32x5xf32>) -> tensor<2x32xf32>
    %37 = stablehlo.reshape %36 : (tensor<2x32xf32>) -> tensor<2x2x2x8xf32>
    %cst_10 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %38 = stablehlo.pad %18, %cst_10, low = [0, 0, 0, 0], high = [0, 0, 0, 0], interior = [0, 0, 0, 0] : (tensor<2x4x4x8xf32>, tensor<f32>) -> tensor<2x4x4x8xf32>
    %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %39 = "stablehlo.select_and_scatter"(%38, %37, %cst_11) <{padding = dense<0> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %62 = stablehlo.compare GE, %arg4, %arg5, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %62 : tensor<i1>
    }, {
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %62 = stablehlo.add %arg4, %arg5 : tensor<f32>
      stablehlo.return %62 : tensor<f32>
    }) : (tensor<2x4x4x8xf32>, tensor<2x2x2x8xf32>, tensor<f32>) -> tensor<2x4x4x8xf32>
    %40 = stablehlo.slice %39 [0:2, 0:4, 0:4, 0:8] : (tensor<2x4x4x8xf32>) -> tensor<2x4x4x8xf32>
    %41 = stablehlo.multiply %0, %40 : tensor<2x4x4x8xf32>
    %42 = stablehlo.multiply %40, %17 : tensor<2x4x4x8xf32>
    %cst_12 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %43 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<2x4x4x8xf32>
    %44 = stablehlo.multiply %43, %41 : tensor<2x4x4x8xf32>
    %45 = stablehlo.multiply %44, %13 : tensor<2x4x4x8xf32>
    %46 = stablehlo.multiply %45, %11 : tensor<2x4x4x8xf32>
    %47 = stablehlo.add %45, %46 : tensor<2x4x4x8xf32>
    %cst_13 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %48 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<2x4x4x8xf32>
    %49 = stablehlo.multiply %48, %47 : tensor<2x4x4x8xf32>
    %50 = stablehlo.add %42, %49 : tensor<2x4x4x8xf32>
    %cst_14 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %51 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<2x4x4x8xf32>
    %52 = stablehlo.multiply %51, %49 : tensor<2x4x4x8xf32>
    %53 = stablehlo.multiply %52, %5 : tensor<2x4x4x8xf32>
    %54 = stablehlo.add %50, %53 : tensor<2x4x4x8xf32>
    %55 = stablehlo.convolution(%arg2, %54) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x4x4x2xf32>, tensor<2x4x4x8xf32>) -> tensor<3x3x2x8xf32>
    %cst_15 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %56 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<32x5xf32>
    %57 = stablehlo.multiply %56, %35 : tensor<32x5xf32>
    %58 = stablehlo.subtract %arg0, %57 : tensor<32x5xf32>
    %cst_16 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %59 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<3x3x2x8xf32>
    %60 = stablehlo.multiply %59, %55 : tensor<3x3x2x8xf32>
    %61 = stablehlo.subtract %arg1, %60 : tensor<3x3x2x8xf32>
    return %28, %58, %61 : tensor<f32>, tensor<32x5xf32>, tensor<3x3x2x8xf32>
  }
  func.func private @log_softmax(%arg0: tensor<2x5xf32>) -> (tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x1xf32>) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [1] : (tensor<2x5xf32>, tensor<f32>) -> tensor<2xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %2 = stablehlo.maximum %1, %0 : tensor<2xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<2xf32>) -> tensor<2x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x5xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<2x5xf32>
    %6 = stablehlo.exponential %5 : tensor<2x5xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [1] : (tensor<2x5xf32>, tensor<f32>) -> tensor<2xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<2xf32>) -> tensor<2x1xf32>
    %9 = stablehlo.log %8 : tensor<2x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x5xf32>
    %11 = stablehlo.subtract %5, %10 : tensor<2x5xf32>
    return %11, %6, %8 : tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x1xf32>
  }
  func.func private @_one_hot(%arg0: tensor<2xi32>) -> tensor<2x5xf32> {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0] : (tensor<2xi32>) -> tensor<2x1xi32>
    %1 = stablehlo.iota dim = 1 : tensor<1x5xi32>
    %2 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<2x1xi32>) -> tensor<2x5xi32>
    %3 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x5xi32>) -> tensor<2x5xi32>
    %4 = stablehlo.compare EQ, %2, %3, SIGNED : (tensor<2x5xi32>, tensor<2x5xi32>) -> tensor<2x5xi1>
    %5 = stablehlo.convert %4 : (tensor<2x5xi1>) -> tensor<2x5xf32>
    return %5 : tensor<2x5xf32>
  }
  func.func private @log_softmax_0(%arg0: tensor<2x5xf32>, %arg1: tensor<2x1xf32>, %arg2: tensor<2x5xf32>) -> tensor<2x5xf32> {
    %0 = stablehlo.negate %arg2 : tensor<2x5xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<2x5xf32>, tensor<f32>) -> tensor<2xf32>
    %2 = stablehlo.reshape %1 : (tensor<2xf32>) -> tensor<2x1xf32>
    %3 = stablehlo.divide %2, %arg1 : tensor<2x1xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.reduce(%3 init: %cst_0) applies stablehlo.add across dimensions = [1] : (tensor<2x1xf32>, tensor<f32>) -> tensor<2xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<2xf32>) -> tensor<2x5xf32>
    %6 = stablehlo.multiply %5, %arg0 : tensor<2x5xf32>
    %7 = stablehlo.add %arg2, %6 : tensor<2x5xf32>
    return %7 : tensor<2x5xf32>
  }
}
