module @jit_f {
  func.func public @main(%arg0: tensor<4xf32>) -> (tensor<4xf32>) {
    %0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%arg0) {api_version = 4 : i32, mhlo.backend_config = {index = 0 : ui64}} : (tensor<4xf32>) -> tensor<4xf32> loc("model.py":7:3)
    return %0 : tensor<4xf32>
  }
}
