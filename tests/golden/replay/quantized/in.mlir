module {
 func.func @main(%a: tensor<4x!quant.uniform<i8:f32, 0.5>>) -> tensor<4x!quant.uniform<i8:f32, 0.5>> {
 %0 = stablehlo.add %a, %a : tensor<4x!quant.uniform<i8:f32, 0.5>>
 return %0 : tensor<4x!quant.uniform<i8:f32, 0.5>>
 }
}
