#loc1 = loc("x")
#loc2 = loc("k")
"builtin.module"() <{sym_name = "jit__lambda"}> ({
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<1x4x4x3xf32>, tensor<3x3x3x2xf32>) -> tensor<1x9x9x2xf32>, res_attrs = [{jax.result_info = "result"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<1x4x4x3xf32> loc("x"), %arg1: tensor<3x3x3x2xf32> loc("k")):
    %0 = "stablehlo.convolution"(%arg0, %arg1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 2, 2>, padding = dense<2> : tensor<2x2xi64>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>], rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, false>, window_strides = array<i64: 1, 1>}> : (tensor<1x4x4x3xf32>, tensor<3x3x3x2xf32>) -> tensor<1x9x9x2xf32> loc(#loc9)
    "func.return"(%0) : (tensor<1x9x9x2xf32>) -> () loc(#loc8)
  }) : () -> () loc(#loc)
}) {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> () loc(#loc)
#loc = loc(unknown)
#loc3 = loc("forms/op.py":14:23 to :60)
#loc4 = loc("forms/op.py":71:12 to :36)
#loc5 = loc("<lambda>"(#loc3))
#loc6 = loc("<module>"(#loc4))
#loc7 = loc(callsite(#loc5 at #loc6))
#loc8 = loc("jit(<lambda>)"(#loc6))
#loc9 = loc("jit(<lambda>)/conv_general_dilated"(#loc7))
