module @jit_step attributes {mhlo.num_partitions = 1 : i32, mine.note = "TOKEN=hunter2"} {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.custom_call @mine(%arg0) {backend_config = "{\"api_key\": \"hunter2\", \"rank\": 3}", mhlo.frontend_attributes = {password = "hunter2", kind = "mean"}} : (tensor<4xf32>) -> tensor<4xf32> loc(#loc2)
    return %0 : tensor<4xf32> loc(#loc1)
  }
}
#loc1 = loc("/home/ann/secretproject/step.py":3:1)
#loc2 = loc("jit(step)/jit(main)/password=hunter2/add"(#loc1))
