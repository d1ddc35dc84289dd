/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TESTS_TYPED_PROGRAMS_H
#define RP_TESTS_TYPED_PROGRAMS_H
/*
 * A well-typed program for each operation, and how to make it ill-typed: `from` is replaced by `to`
 * and the engines must say `says`. No inputs. The fuzzer of the engines changes them too.
 */

struct typed_program {
    const char *text, *from, *to, *says;
};

#define BODY \
    "ENTRY e {\n a = f32[4] iota(), iota_dimension=0\n m = f32[2,3] iota(), iota_dimension=1\n"
#define TYPED "HloModule m\n" BODY
#define TYPED_ADD                                                            \
    "HloModule m\nadd {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n" \
    " ROOT r = f32[] add(x, y)\n}\n"
#define ZERO " z = f32[] constant(0)\n"

static const struct typed_program typed_programs[] = {
    /* element-wise */
    {TYPED " ROOT r = f32[4] add(a, a)\n}\n", "ROOT r = f32", "ROOT r = f64",
     "the result is f64 and operand 0 f32"},
    {TYPED " b = s32[4] iota(), iota_dimension=0\n c = s32[4] multiply(b, b)\n"
           " ROOT r = s32[4] shift-left(c, b)\n}\n",
     "b = s32[4] iota", "b = s8[4] iota", "the result is s32 and operand 0 s8"},
    {TYPED " ROOT r = f32[4] tanh(a)\n}\n", "ROOT r = f32[4]", "ROOT r = f32[5]",
     "operand 0 is f32[4], expected f32[5]"},
    {TYPED " b = bf16[4] convert(a)\n c = bf16[4] divide(b, b)\n ROOT r = f32[4] convert(c)\n}\n",
     "c = bf16[4]", "c = f16[4]", "the result is f16 and operand 0 bf16"},
    {TYPED " ROOT r = pred[4] compare(a, a), direction=LT\n}\n", "ROOT r = pred", "ROOT r = s32",
     "the result is s32, expected pred"},
    {TYPED " ROOT r = pred[4] is-finite(a)\n}\n", "ROOT r = pred", "ROOT r = f32",
     "the result is f32, expected pred"},
    {TYPED " p = pred[4] compare(a, a), direction=LT\n ROOT r = f32[4] select(p, a, a)\n}\n",
     "select(p, a, a)", "select(a, a, a)", "operand 0 is f32, expected pred"},
    {TYPED ZERO " o = f32[] constant(1)\n ROOT r = f32[4] clamp(z, a, o)\n}\n", "o = f32",
     "o = f64", "the result is f32 and operand 2 f64"},
    {TYPED " c = c64[4] complex(a, a)\n i = f32[4] imag(c)\n n = f32[4] real(c)\n"
           " s = f32[4] add(i, n)\n b = f32[4] abs(c)\n ROOT r = f32[4] add(s, b)\n}\n",
     "c = c64", "c = c128", "the result is c128 and operand 0 f32"},
    {TYPED " c = c64[4] complex(a, a)\n ROOT r = f32[4] abs(c)\n}\n", "ROOT r = f32",
     "ROOT r = f64", "the result is f64 and operand 0 c64"},
    {TYPED " ROOT r = s32[4] convert(a)\n}\n", "ROOT r = s32[4]", "ROOT r = s32[6]",
     "operand 0 is f32[4], expected"},
    {TYPED " ROOT r = f32[4] reduce-precision(a), exponent_bits=5, mantissa_bits=10\n}\n",
     "ROOT r = f32", "ROOT r = f16", "the result is f16 and operand 0 f32"},
    {TYPED " ROOT r = f32[4] reduce-precision(a), exponent_bits=5, mantissa_bits=10\n}\n",
     "exponent_bits=5", "exponent_bits=0", "0 bits of exponent and 10 of mantissa"},
    {TYPED_ADD BODY " ROOT r = f32[4] map(a, a), dimensions={0}, to_apply=add\n}\n",
     "ROOT r = f32[4]", "ROOT r = f64[4]", "the function's result is of another type"},
    {TYPED " ROOT r = s32[4] bitcast-convert(a)\n}\n", "ROOT r = s32[4]", "ROOT r = s64[4]",
     "between f32 and s64"},
    /* moves */
    {TYPED " ROOT r = f32[6] bitcast(m)\n}\n", "ROOT r = f32[6]", "ROOT r = f64[6]",
     "the sizes differ"},
    {TYPED " ROOT r = f32[2,4] broadcast(a), dimensions={1}\n}\n", "ROOT r = f32", "ROOT r = f16",
     "the result is f16 and operand 0 f32"},
    {TYPED " ROOT r = f32[3,2] reshape(m)\n}\n", "ROOT r = f32", "ROOT r = f64",
     "the result is f64 and operand 0 f32"},
    {TYPED " ROOT r = f32[3,2] transpose(m), dimensions={1,0}\n}\n", "dimensions={1,0}",
     "dimensions={1,1}", "the result is f32[3,2], expected f32[3,3]"},
    {TYPED " ROOT r = f32[2,3] reverse(m), dimensions={1}\n}\n", "ROOT r = f32[2,3]",
     "ROOT r = f32[3,2]", "the result is f32[3,2], expected f32[2,3]"},
    {TYPED " ROOT r = f32[1,2] slice(m), slice={[1:2], [0:3:2]}\n}\n", "ROOT r = f32[1,2]",
     "ROOT r = f16[1,2]", "the result is f16[1,2], expected f32[1,2]"},
    {TYPED " i = s32[] constant(1)\n"
           " ROOT r = f32[1,2] dynamic-slice(m, i, i), dynamic_slice_sizes={1,2}\n}\n",
     "ROOT r = f32", "ROOT r = f64", "the result does not match the operand"},
    {TYPED " i = s32[] constant(1)\n u = f32[1,2] iota(), iota_dimension=1\n"
           " ROOT r = f32[2,3] dynamic-update-slice(m, u, i, i)\n}\n",
     "u = f32", "u = f64", "the update does not match the operand"},
    {TYPED ZERO " ROOT r = f32[4,3] pad(m, z), padding=1_1x-1_1_0\n}\n", "z = f32[] c",
     "z = f64[] c", "the result is f32 and operand 1 f64"},
    {TYPED " ROOT r = f32[2,6] concatenate(m, m), dimensions={1}\n}\n", "ROOT r = f32[2,6]",
     "ROOT r = f64[2,6]", "operand 0 is f32[2,3], expected f64[2,3]"},
    {TYPED " ROOT r = s32[] get-dimension-size(m), dimensions={1}\n}\n", "ROOT r = s32[]",
     "ROOT r = s32[0]", "the result is not an integer"},
    {TYPED " n = s32[] constant(2)\n s = f32[<=4] set-dimension-size(a, n), dimensions={0}\n"
           " b = f32[<=4] add(s, s)\n ROOT r = s32[] get-dimension-size(b), dimensions={0}\n}\n",
     "b = f32[<=4]", "b = f32[4]", "operand 0 is of dynamic size and the result is not"},
    {TYPED " i = s32[3,1] constant({{1},{7},{0}})\n"
           " ROOT g = f32[3,3] gather(m, i), offset_dims={1}, collapsed_slice_dims={0}, "
           "start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}\n}\n",
     "ROOT g = f32", "ROOT g = f16", "the result is f16[3,3], expected f32[3,3]"},
    {TYPED " i = s32[2,1] constant({{2},{0}})\n"
           " ROOT g = f32[2,1] gather(m, i), offset_dims={}, collapsed_slice_dims={1}, "
           "start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, "
           "index_vector_dim=2, slice_sizes={1,1}\n}\n",
     "i = s32[2,1] constant({{2},{0}})", "i = s32[1,1] constant({{2}})",
     "the batching dimensions do not match"},
    {TYPED_ADD BODY
     " i = s32[3,1] constant({{1},{1},{5}})\n u = f32[3] constant({10,20,30})\n"
     " ROOT s = f32[4] scatter(a, i, u), update_window_dims={}, inserted_window_dims={0}, "
     "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add\n}\n",
     "i = s32[3,1] constant({{1},{1},{5}})", "i = s32[2,1] constant({{1},{1}})",
     "is not that of the indices"},
    {TYPED_ADD BODY
     " i = s32[2,1] constant({{1},{0}})\n u = f32[2,3] iota(), iota_dimension=1\n"
     " ROOT s = f32[2,3] scatter(m, i, u), update_window_dims={1}, inserted_window_dims={0}, "
     "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add\n}\n",
     "u = f32[2,3]", "u = f64[2,3]", "an update is f64[2,3], expected f32[2,3]"},
    /* sorts and reductions */
    {"HloModule m\nlt {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n u = s32[] "
     "parameter(2)\n v = s32[] parameter(3)\n ROOT r = pred[] compare(x, y), direction=GT\n}\n" BODY
     " k = s32[2,3] iota(), iota_dimension=1\n"
     " ROOT s = (f32[2,3], s32[2,3]) sort(m, k), dimensions={1}, to_apply=lt\n}\n",
     "ROOT s = (f32[2,3], s32[2,3])", "ROOT s = (f32[2,3], s64[2,3])",
     "result 1 is s64[2,3], expected s32[2,3]"},
    {TYPED " ROOT t = (f32[2,2], s32[2,2]) topk(m), k=2, largest=true\n}\n", "(f32[2,2], s32[2,2])",
     "(f64[2,2], s32[2,2])", "result 0 is f64[2,2], expected f32[2,2]"},
    {TYPED_ADD BODY ZERO " ROOT r = f32[3] reduce(m, z), dimensions={0}, to_apply=add\n}\n",
     "ROOT r = f32[3]", "ROOT r = f32[2]", "the result is f32[2], expected"},
    {TYPED_ADD BODY ZERO " ROOT r = f32[3] reduce(m, z), dimensions={0}, to_apply=add\n}\n",
     "z = f32", "z = f64", "operand 0 is f32 and its initial value f64"},
    {TYPED_ADD BODY ZERO
     " ROOT w = f32[2] reduce-window(a, z), window={size=3 stride=2 pad=1_0}, to_apply=add\n}\n",
     "ROOT w = f32[2]", "ROOT w = f32[3]", "the result is f32[3], expected"},
    {TYPED_ADD "ge {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n"
               " ROOT r = pred[] compare(x, y), direction=GE\n}\n" BODY ZERO
               " s = f32[2] constant({10,20})\n"
               " ROOT w = f32[4] select-and-scatter(a, s, z), window={size=2 stride=2}, select=ge, "
               "scatter=add\n}\n",
     "s = f32[2] constant({10,20})", "s = f32[3] constant({10,20,30})",
     "operand 1 is f32[3], expected"},
    {TYPED_ADD "tw {\n x = f32[] parameter(0)\n c = f32[] parameter(1)\n s = f32[] add(x, c)\n"
               " ROOT r = (f32[], f32[]) tuple(s, s)\n}\n" BODY ZERO
               " ROOT s = (f32[4], f32[]) scan(a, z), dimensions={0}, num_carries=1, to_apply=tw\n"
               "}\n",
     "ROOT s = (f32[4], f32[])", "ROOT s = (f64[4], f32[])", "result 0 has another shape"},
    /* products */
    {TYPED " n = f32[3,2] reshape(m)\n"
           " ROOT d = f32[2,2] dot(m, n), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n",
     "ROOT d = f32[2,2]", "ROOT d = f32[4]", "the result is f32[4], expected"},
    {TYPED " n = f32[2,3] negate(m)\n ROOT d = f32[2] dot(m, n), lhs_batch_dims={0}, "
           "rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={1}\n}\n",
     "lhs_contracting_dims={1}, rhs_contracting_dims={1}",
     "lhs_contracting_dims={0}, rhs_contracting_dims={0}", "a dimension is listed twice"},
    {TYPED " b = f32[2,3,1] reshape(m)\n g = s32[2] constant({1,1})\n"
           " ROOT r = f32[2,1] ragged-dot(m, b, g), lhs_contracting_dims={1}, "
           "rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}\n}\n",
     "ROOT r = f32[2,1]", "ROOT r = f32[2,2]", "wrong size of the result"},
    {TYPED " x = f32[1,4,1] reshape(a)\n k = f32[2,1,3] reshape(m)\n"
           " ROOT c = f32[1,3,3] convolution(x, k), window={size=2}, dim_labels=b0f_0io->b0f\n}\n",
     "ROOT c = f32[1,3,3]", "ROOT c = f32[1,4,3]", "the size that the window gives"},
    {TYPED " ROOT f = c64[3] fft(a), fft_type=RFFT, fft_length={4}\n}\n", "fft_length={4}",
     "fft_length={5}", "the operand is f32[4], expected"},
    {TYPED " h = c64[3] fft(a), fft_type=RFFT, fft_length={4}\n"
           " ROOT f = f32[4] fft(h), fft_type=IRFFT, fft_length={4}\n}\n",
     "ROOT f = f32[4] fft(h), fft_type=IRFFT, fft_length={4}",
     "ROOT f = f32[7] fft(h), fft_type=IRFFT, fft_length={7}", "the operand is c64[3], expected"},
    {TYPED " s = f32[2,2] constant({{4,1},{1,4}})\n ROOT c = f32[2,2] cholesky(s), lower=true\n}\n",
     "ROOT c = f32[2,2]", "ROOT c = f32[3,3]", "the result is f32[3,3], expected f32[2,2]"},
    {TYPED " s = f32[2,2] constant({{4,1},{1,4}})\n ROOT c = f32[2,3] triangular-solve(s, m), "
           "left_side=true, lower=true, unit_diagonal=false, transpose_a=NO_TRANSPOSE\n}\n",
     "ROOT c = f32[2,3]", "ROOT c = f64[2,3]", "the result is f64 and operand 0 f32"},
    {TYPED " s = f32[3] iota(), iota_dimension=0\n ROOT n = f32[2,3] batch-norm-inference(m, s, s, "
           "s, s), epsilon=0.1, feature_index=1\n}\n",
     "feature_index=1", "feature_index=0", "operand 1 is f32[3], expected"},
    {TYPED " s = f32[3] iota(), iota_dimension=0\n ROOT n = (f32[2,3], f32[3], f32[3]) "
           "batch-norm-training(m, s, s), epsilon=0.1, feature_index=1\n}\n",
     "ROOT n = (f32[2,3], f32[3], f32[3])", "ROOT n = (f32[2,3], f32[3])", "2 results, expected 3"},
    {TYPED " s = f32[3] iota(), iota_dimension=0\n ROOT n = (f32[2,3], f32[3], f32[3]) "
           "batch-norm-grad(m, s, s, s, m), epsilon=0.1, feature_index=1\n}\n",
     "batch-norm-grad(m, s, s, s, m)", "batch-norm-grad(m, s, s, s, s)",
     "operand 4 is f32[3], expected"},
    /* random numbers, data */
    {TYPED " s = u64[2] constant({1,2})\n ROOT b = (u64[2], u32[5]) rng-bit-generator(s), "
           "algorithm=rng_three_fry\n}\n",
     "ROOT b = (u64[2], u32[5])", "ROOT b = (u64[3], u32[5])",
     "result 0 is u64[3], expected u64[2]"},
    {TYPED ZERO " o = f32[] constant(1)\n ROOT b = f32[5] rng(z, o), distribution=rng_uniform\n}\n",
     "o = f32[] constant(1)", "o = f32[0] constant({})", "operand 1 is not a scalar"},
    {TYPED " ROOT s = u64[2] rng-get-and-update-state(), delta=1\n}\n", "ROOT s = u64[2]",
     "ROOT s = token[]", "result 0 is not an array"},
    {TYPED " ROOT i = s32[2,3] iota(), iota_dimension=0\n}\n", "ROOT i = s32[2,3]",
     "ROOT i = s32[]", "iota_dimension is missing or out of range"},
    /* partitions */
    {TYPED " ROOT p = u32[] partition-id()\n}\n", "ROOT p = u32[]", "ROOT p = u32[0]",
     "the result is not an integer"},
    {TYPED " ROOT p = u32[] replica-id()\n}\n", "ROOT p = u32[]", "ROOT p = f32[]",
     "the result is not an integer"},
    {TYPED_ADD BODY " ROOT r = f32[4] all-reduce(a), replica_groups={{0}}, to_apply=add\n}\n",
     "ROOT r = f32", "ROOT r = f64", "the result is f64 and operand 0 f32"},
    {TYPED " ROOT r = f32[4] all-gather(a), replica_groups={{0}}, dimensions={0}\n}\n",
     ", dimensions={0}", "", "no dimension is given"},
    {TYPED_ADD BODY " ROOT r = f32[4] reduce-scatter(a), replica_groups={{0}}, dimensions={0}, "
                    "to_apply=add\n}\n",
     "ROOT r = f32", "ROOT r = f16", "the result is f16 and operand 0 f32"},
    {TYPED " ROOT r = f32[4] all-to-all(a), replica_groups={{0}}, dimensions={0}\n}\n",
     "ROOT r = f32[4]", "ROOT r = f32[5]", "does not have the declared shape"},
    {TYPED " ROOT r = f32[4] collective-broadcast(a), replica_groups={{0}}\n}\n", "{{0}}",
     "{{0,5}}", "the replica groups name partition 5"},
    {TYPED " ROOT r = f32[4] collective-permute(a), source_target_pairs={{0,0}}\n}\n", "{{0,0}}",
     "{{5,0}}", "name partition 5"},
    /* structure and control flow */
    {TYPED " t = (f32[4], f32[2,3]) tuple(a, m)\n ROOT g = f32[2,3] get-tuple-element(t), index=1\n"
           "}\n",
     "t = (f32[4], f32[2,3])", "t = (f32[4], f32[2,4])",
     "operand 1 is f32[2,3] and that part of the result f32[2,4]"},
    {TYPED " t = (f32[4], f32[2,3]) tuple(a, m)\n ROOT g = f32[2,3] get-tuple-element(t), index=1\n"
           "}\n",
     "ROOT g = f32[2,3]", "ROOT g = f64[2,3]", "the element is f32[2,3] and the result f64[2,3]"},
    {"HloModule m\nf {\n x = f32[4] parameter(0)\n ROOT r = f32[4] add(x, x)\n}\n" BODY
     " ROOT c = f32[4] call(a), to_apply=f\n}\n",
     "x = f32[4] parameter(0)\n ROOT r = f32[4]", "x = f32[9] parameter(0)\n ROOT r = f32[9]",
     "operand 0 is f32[4] and the parameter f32[9]"},
    {"HloModule m\nf {\n x = f32[4] parameter(0)\n ROOT r = f32[4] add(x, x)\n}\n" BODY
     " ROOT c = f32[4] fusion(a), kind=kLoop, calls=f\n}\n",
     "ROOT c = f32[4]", "ROOT c = f32[5]", "the called result is f32[4] and the result f32[5]"},
    {"HloModule m\nc {\n s = (s32[], f32[4]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n"
     " n = s32[] constant(3)\n ROOT r = pred[] compare(i, n), direction=LT\n}\n"
     "b {\n s = (s32[], f32[4]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n"
     " v = f32[4] get-tuple-element(s), index=1\n o = s32[] constant(1)\n k = s32[] add(i, o)\n"
     " w = f32[4] add(v, v)\n ROOT r = (s32[], f32[4]) tuple(k, w)\n}\n" BODY
     " z = s32[] constant(0)\n t = (s32[], f32[4]) tuple(z, a)\n"
     " ROOT w = (s32[], f32[4]) while(t), condition=c, body=b\n}\n",
     "ROOT w = (s32[], f32[4])", "ROOT w = (s32[], f32[5])", "with other parts"},
    {"HloModule m\nf {\n x = f32[4] parameter(0)\n ROOT r = f32[4] add(x, x)\n}\n"
     "g {\n x = f32[2,3] parameter(0)\n ROOT r = f32[4] constant({1,2,3,4})\n}\n" BODY
     " i = s32[] constant(1)\n ROOT c = f32[4] conditional(i, a, m), branch_computations={f, g}\n}\n",
     "conditional(i, a, m)", "conditional(i, m, a)",
     "operand 1 is f32[2,3] and the parameter f32[4]"},
    {TYPED " ROOT c = f32[4] copy(a)\n}\n", "ROOT c = f32[4]", "ROOT c = f32[5]",
     "operand 0 is f32[4] and the result f32[5]"},
    {TYPED " ROOT c = f32[4] opt-barrier(a)\n}\n", "ROOT c = f32", "ROOT c = f64",
     "operand 0 is f32[4] and the result f64[4]"},
    {TYPED " k = token[] after-all()\n ROOT c = f32[4] add-dependency(a, k)\n}\n", "ROOT c = f32",
     "ROOT c = f64", "operand 0 is f32[4] and the result f64[4]"},
};

/* Custom calls, each on small arrays; to be changed and run, not to be refused in given words. */
#define CALL                                                                              \
    TYPED " n = f32[3,2] reshape(m)\n q = f32[2,2] constant({{4,1},{1,3}})\n v = f32[2] " \
          "constant({1,-2})\n"
static const char *const custom_programs[] = {
    CALL
    " g = (f32[2,2], s8[8]) custom-call(m, n, q), custom_call_target=\"__cublas$gemm\", backend_config={\"gemm_backend_config\":{\"alpha_real\":2,\"alpha_imag\":0,\"beta\":0.5,\"dot_dimension_numbers\":{\"lhs_contracting_dimensions\":[\"1\"],\"rhs_contracting_dimensions\":[\"0\"],\"lhs_batch_dimensions\":[],\"rhs_batch_dimensions\":[]},\"epilogue\":\"DEFAULT\"}}\n"
    " ROOT r = f32[2,2] get-tuple-element(g), index=0\n"
    "}\n",
    CALL
    " g = (f32[2,2], f32[2,2], s8[8]) custom-call(m, n, v), custom_call_target=\"__cublas$lt$matmul\", backend_config={\"gemm_backend_config\":{\"alpha_real\":1,\"alpha_imag\":0,\"beta\":0,\"dot_dimension_numbers\":{\"lhs_contracting_dimensions\":[\"1\"],\"rhs_contracting_dimensions\":[\"0\"],\"lhs_batch_dimensions\":[],\"rhs_batch_dimensions\":[]},\"epilogue\":\"BIAS_GELU_AUX\"}}\n"
    " ROOT r = f32[2,2] get-tuple-element(g), index=1\n"
    "}\n",
    CALL
    " vr = f32[1,2] reshape(v)\n"
    " ROOT g = (f32[2,2], u8[0]) custom-call(m, n, vr, q), custom_call_target=\"__onednn$matmul\", backend_config={\"onednn_matmul_config\":{\"fusions\":{\"ops\":[\"BIAS\",\"BINARY_ADD\",\"LINEAR\",\"RELU\"],\"alpha\":[0.5]}}}\n"
    "}\n",
    CALL
    " ROOT g = f32[2,3] custom-call(m), custom_call_target=\"__onednn$softmax\", backend_config={\"onednn_softmax_config\":{\"softmax_axis\":0}}\n"
    "}\n",
    CALL
    " ROOT g = f32[2,2] custom-call(q, v, v), custom_call_target=\"__onednn$layernorm\", backend_config={\"onednn_layer_norm_config\":{\"rescale\":\"SCALE_AND_SHIFT\",\"epsilon_typecast\":1056964608}}\n"
    "}\n",
    CALL
    " q4 = f32[2,1,2,1] reshape(q)\n"
    " v4 = f32[1,1,2,1] reshape(v)\n"
    " ROOT g = (f32[2,1,2,1], f32[2,1,1,1], f32[2,1,1,1], u8[0]) custom-call(q4, v4, v4), custom_call_target=\"__cudnn$norm\", backend_config={\"cudnn_norm_backend_config\":{\"epsilon\":0.5,\"kind\":\"LAYER_FWD_TRAIN\"}}\n"
    "}\n",
    CALL
    " x = f32[1,2,3,1] reshape(m)\n"
    " w = f32[2,1,2,1] reshape(q)\n"
    " s = f32[1,2,2,2] broadcast(q), dimensions={1,2}\n"
    " ROOT g = (f32[1,2,2,2], u8[0]) custom-call(x, w, v, s), window={size=1x2}, dim_labels=b01f_o01i->b01f, custom_call_target=\"__cudnn$convBiasActivationForward\", backend_config={\"cudnn_conv_backend_config\":{\"activation_mode\":\"kRelu6\",\"conv_result_scale\":0.5,\"side_input_scale\":2,\"leakyrelu_alpha\":0}}\n"
    "}\n",
    CALL
    " x = f32[1,2,3,1] reshape(m)\n"
    " y = f32[1,2,2,2] broadcast(q), dimensions={1,2}\n"
    " ROOT g = (f32[2,1,2,1], u8[0]) custom-call(x, y), window={size=1x2}, dim_labels=b01f_o01i->b01f, custom_call_target=\"__cudnn$convBackwardFilter\"\n"
    "}\n",
    CALL
    " y = f32[1,2,2,2] broadcast(q), dimensions={1,2}\n"
    " w = f32[2,1,2,1] reshape(q)\n"
    " ROOT g = (f32[1,2,3,1], u8[0]) custom-call(y, w), window={size=1x2}, dim_labels=b01f_o01i->b01f, custom_call_target=\"__cudnn$convBackwardInput\"\n"
    "}\n",
    CALL
    " ROOT g = (f32[2,2], s8[0]) custom-call(q, q), custom_call_target=\"__cublas$triangularSolve\", backend_config={\"left_side\":true,\"lower\":true,\"unit_diagonal\":true,\"transpose_a\":\"NO_TRANSPOSE\"}\n"
    "}\n",
    CALL
    " ROOT g = (f32[2,3], u8[9]) custom-call(m), custom_call_target=\"__cub$DeviceRadixSort\", backend_config={\"descending\":true}\n"
    "}\n",
    CALL
    " k = s32[2,3] iota(), iota_dimension=1\n"
    " ROOT g = (f32[2,3], s32[2,3], u8[9]) custom-call(m, k), custom_call_target=\"__cub$DeviceRadixSort\", backend_config={\"descending\":false}\n"
    "}\n",
    CALL
    " x = f32[3] constant({1,2,3})\n"
    " i = s32[3] constant({0,1,1})\n"
    " j = s32[3] constant({2,0,2})\n"
    " ROOT g = (f32[3], s8[8]) custom-call(x, i, j, v), custom_call_target=\"cusparse_coo_matvec_ffi\", api_version=API_VERSION_TYPED_FFI, backend_config={opaque = \"\\01\\00\\00\\00\"}\n"
    "}\n",
    CALL
    " x = f32[3] constant({1,2,3})\n"
    " j = s32[3] constant({0,2,1})\n"
    " p = s32[3] constant({0,2,3})\n"
    " ROOT g = f32[2,2] custom-call(x, p, j, n), custom_call_target=\"cpu_csr_sparse_dense_ffi\"\n"
    "}\n",
    CALL
    " g = (f32[5], s32[5], s32[3], s8[8]) custom-call(q), custom_call_target=\"cusparse_csr_fromdense_ffi\"\n"
    " x = f32[5] get-tuple-element(g), index=0\n"
    " j = s32[5] get-tuple-element(g), index=1\n"
    " p = s32[3] get-tuple-element(g), index=2\n"
    " ROOT k = (f32[2,2], s8[8]) custom-call(x, j, p), custom_call_target=\"cusparse_csr_todense_ffi\"\n"
    "}\n",
    CALL
    " x = f32[1,1,2,3] reshape(m)\n"
    " w = f32[1,1,2,2] reshape(q)\n"
    " ROOT g = (f32[1,1,2,2], u8[0]) custom-call(x, x, w), custom_call_target=\"__cudnn$fmhaSoftmax\", backend_config={\"cudnn_fmha_backend_config\":{\"fmha_scale\":0.25,\"mask_type\":\"CAUSAL\",\"bmm1_dot_dimension_numbers\":{\"lhs_batch_dimensions\":[\"0\",\"1\"]}}}\n"
    "}\n",
    CALL " ROOT g = (f32[2,2], s32[2,2]) custom-call(m), custom_call_target=\"TopK\"\n"
         "}\n",
    CALL
    " ROOT g = (f32[2,2], f32[2], s32[]) custom-call(q), custom_call_target=\"lapack_ssyevd_ffi\"\n"
    "}\n",
    CALL " ROOT g = (f32[2,2], s32[]) custom-call(q), custom_call_target=\"lapack_spotrf_ffi\"\n"
         "}\n",
    CALL
    " ROOT g = (f32[2,3], s32[2], s32[]) custom-call(m), custom_call_target=\"lapack_sgetrf_ffi\"\n"
    "}\n",
    CALL " ROOT g = (f32[3,2], f32[2]) custom-call(n), custom_call_target=\"lapack_sgeqrf_ffi\"\n"
         "}\n",
    CALL " ROOT g = f32[3,2] custom-call(n, v), custom_call_target=\"lapack_sorgqr_ffi\"\n"
         "}\n",
    CALL " p = s32[2] constant({1,1})\n"
         " ROOT g = s32[3] custom-call(p), custom_call_target=\"cu_lu_pivots_to_permutation\"\n"
         "}\n",
    CALL
    " k = u32[3] constant({1,2,3})\n"
    " ROOT g = (u32[3], u32[3]) custom-call(k, k, k, k), custom_call_target=\"cu_threefry2x32_ffi\"\n"
    "}\n",
    CALL
    " ROOT g = f32[2,3] custom-call(m), custom_call_target=\"Sharding\", sharding={replicated}\n"
    "}\n",
    CALL " ROOT g = f32[2,3] custom-call(), custom_call_target=\"AllocateBuffer\"\n"
         "}\n",
    CALL
    " s = f32[2,3] custom-call(m), custom_call_target=\"SPMDFullToShardShape\", sharding={manual}\n"
    " ROOT g = f32[2,3] custom-call(s), custom_call_target=\"SPMDShardToFullShape\", sharding={replicated}\n"
    "}\n",
    CALL
    " g = (f32[2,2], f32[2], f32[2,2], f32[2,2], s32[]) custom-call(q), custom_call_target=\"lapack_sgesdd_ffi\", backend_config={mode = 83 : ui8}\n"
    " ROOT r = f32[2] get-tuple-element(g), index=1\n"
    "}\n",
    CALL
    " ROOT g = (f32[2], f32[2], c64[2,2], c64[2,2], s32[]) custom-call(q), custom_call_target=\"lapack_sgeev_ffi\", backend_config={compute_left = 78 : ui8, compute_right = 86 : ui8}\n"
    "}\n",
    /* a loop over short arrays */
    "HloModule m\nf {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT r = f32[] add(x, y)\n}\n"
    "c {\n s = (s32[], f32[4], f32[3,4], f32[3]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n"
    " n = s32[] constant(3)\n ROOT r = pred[] compare(i, n), direction=LT\n}\n"
    "b {\n s = (s32[], f32[4], f32[3,4], f32[3]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n"
    " v = f32[4] get-tuple-element(s), index=1\n m = f32[3,4] get-tuple-element(s), index=2\n"
    " l = f32[3] get-tuple-element(s), index=3\n o = s32[] constant(1)\n k = s32[] add(i, o)\n"
    " z = s32[] constant(0)\n d = f32[1,4] dynamic-slice(m, i, z), dynamic_slice_sizes={1,4}\n"
    " e = f32[4] reshape(d)\n w = f32[4] multiply(v, e)\n q = f32[] constant(0)\n"
    " t = f32[] reduce(w, q), dimensions={0}, to_apply=f\n u = f32[1] reshape(t)\n"
    " p = f32[3] dynamic-update-slice(l, u, i)\n"
    " ROOT r = (s32[], f32[4], f32[3,4], f32[3]) tuple(k, w, m, p)\n}\n"
    "ENTRY e {\n z = s32[] constant(0)\n v = f32[4] constant({1,2,3,4})\n q = f32[] constant(2)\n"
    " m = f32[3,4] broadcast(q), dimensions={}\n l = f32[3] constant({5,6,7})\n"
    " t = (s32[], f32[4], f32[3,4], f32[3]) tuple(z, v, m, l)\n"
    " ROOT w = (s32[], f32[4], f32[3,4], f32[3]) while(t), condition=c, body=b\n}\n",
};
#undef CALL

#undef BODY
#undef TYPED
#undef TYPED_ADD
#undef ZERO

#define TYPED_COUNT  (sizeof typed_programs / sizeof *typed_programs)
#define CUSTOM_COUNT (sizeof custom_programs / sizeof *custom_programs)

/* The i-th of all. */
static inline const char *typed_text(size_t i)
{
    i %= TYPED_COUNT + CUSTOM_COUNT;
    return i < TYPED_COUNT ? typed_programs[i].text : custom_programs[i - TYPED_COUNT];
}

#endif
