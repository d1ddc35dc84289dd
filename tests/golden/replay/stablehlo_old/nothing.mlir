module @m {
  func.func public @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {
    call @none() : () -> ()
    return %arg0 : tensor<3xf32>
  }
  func.func private @none() {
    return
  }
}
