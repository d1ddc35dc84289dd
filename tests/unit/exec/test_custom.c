/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Custom calls and the other words of optimised modules: each does what plain operations do. Both
 * programs of a pair begin with the same arrays and run on `ref` and `fast`.
 */
#include "exec_fixture.h"

#include "exec/ref/lapack.h"

#define HEAD                                                                 \
    "HloModule m\nadd {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n" \
    " ROOT r = f32[] add(x, y)\n}\n"
#define ARRAYS                                                                            \
    "ENTRY e {\n i = f32[24] iota(), iota_dimension=0\n q = f32[] constant(7)\n"          \
    " qs = f32[24] broadcast(q), dimensions={}\n m = f32[24] remainder(i, qs)\n"          \
    " h = f32[] constant(3)\n hs = f32[24] broadcast(h), dimensions={}\n"                 \
    " d = f32[24] subtract(m, hs)\n a = f32[4,6] reshape(d)\n b = f32[6,4] reshape(d)\n"  \
    " c = f32[4,4] slice(a), slice={[0:4], [1:5]}\n v = f32[4] constant({1,-20,30,-4})\n" \
    " ab = f32[4,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"      \
    " vb = f32[4,4] broadcast(v), dimensions={1}\n zero = f32[] constant(0)\n"            \
    " z = f32[4,4] broadcast(zero), dimensions={}\n v16 = f32[16] slice(d), slice={[3:19]}\n"
#define DIMS                                                                                 \
    "\"dot_dimension_numbers\":{\"lhs_contracting_dimensions\":[\"1\"],"                     \
    "\"rhs_contracting_dimensions\":[\"0\"],\"lhs_batch_dimensions\":[],"                    \
    "\"rhs_batch_dimensions\":[]},\"precision_config\":{\"operand_precision\":[\"DEFAULT\"," \
    "\"DEFAULT\"],\"algorithm\":\"ALG_UNSET\"}"
#define GEMM(alpha, beta, epilogue)                                                               \
    "backend_config={\"operation_queue_id\":\"0\",\"gemm_backend_config\":{\"alpha_real\":" alpha \
    ",\"alpha_imag\":0,\"beta\":" beta "," DIMS ",\"epilogue\":\"" epilogue                       \
    "\",\"damax_output\":false}}\n"

#define LAYER_NORM                                                                            \
    " four = f32[] constant(4)\n f4 = f32[4] broadcast(four), dimensions={}\n"                \
    " s = f32[4] reduce(c, zero), dimensions={1}, to_apply=add\n m1 = f32[4] divide(s, f4)\n" \
    " mb = f32[4,4] broadcast(m1), dimensions={0}\n e1 = f32[4,4] subtract(c, mb)\n"          \
    " e2 = f32[4,4] multiply(e1, e1)\n e3 = f32[4] reduce(e2, zero), dimensions={1}, "        \
    "to_apply=add\n e4 = f32[4] divide(e3, f4)\n half = f32[] constant(0.5)\n"                \
    " hb = f32[4] broadcast(half), dimensions={}\n e5 = f32[4] add(e4, hb)\n"                 \
    " e6 = f32[4] rsqrt(e5)\n e7 = f32[4,4] broadcast(e6), dimensions={0}\n"                  \
    " e8 = f32[4,4] multiply(e1, e7)\n e9 = f32[4,4] multiply(e8, vb)\n"                      \
    " ROOT r = f32[4,4] add(e9, vb)\n}\n"

struct pair {
    const char *name, *call, *plain;
};

static const struct pair pairs[] = {
    {"gemm with alpha and beta",
     " g = (f32[4,4], s8[64]) custom-call(a, b, c), custom_call_target=\"__cublas$gemm\", " GEMM(
         "2", "0.5", "DEFAULT") " ROOT r = f32[4,4] get-tuple-element(g), index=0\n}\n",
     " two = f32[] constant(2)\n ts = f32[4,4] broadcast(two), dimensions={}\n"
     " half = f32[] constant(0.5)\n ss = f32[4,4] broadcast(half), dimensions={}\n"
     " p = f32[4,4] multiply(ab, ts)\n k = f32[4,4] multiply(c, ss)\n"
     " ROOT r = f32[4,4] add(p, k)\n}\n"},
    {"gemm, bias, relu",
     " g = (f32[4,4], s8[64]) custom-call(a, b, v), custom_call_target=\"__cublas$lt$matmul\", " GEMM(
         "1", "0", "BIAS_RELU") " ROOT r = f32[4,4] get-tuple-element(g), index=0\n}\n",
     " s = f32[4,4] add(ab, vb)\n ROOT r = f32[4,4] maximum(s, z)\n}\n"},
    {"gemm, matrix and bias",
     " g = (f32[4,4], s8[64]) custom-call(a, b, c, v), "
     "custom_call_target=\"__cublas$lt$matmul\", " GEMM(
         "1", "1", "BIAS") " ROOT r = f32[4,4] get-tuple-element(g), index=0\n}\n",
     " s = f32[4,4] add(ab, vb)\n ROOT r = f32[4,4] add(s, c)\n}\n"},
    {"what goes into gelu",
     " g = (f32[4,4], f32[4,4], s8[64]) custom-call(a, b, v), "
     "custom_call_target=\"__cublas$lt$matmul\", " GEMM(
         "1", "0", "BIAS_GELU_AUX") " ROOT r = f32[4,4] get-tuple-element(g), index=1\n}\n",
     " ROOT s = f32[4,4] add(ab, vb)\n}\n"},
    {"f8 with scales of operands and result",
     " a8 = f8e4m3fn[4,6] convert(a)\n b8 = f8e4m3fn[6,4] convert(b)\n sa = f32[] constant(0.5)\n"
     " sb = f32[] constant(2)\n sd = f32[] constant(100)\n"
     " g = (f8e4m3fn[4,4], s8[64]) custom-call(a8, b8, sa, sb, sd), "
     "custom_call_target=\"__cublas$lt$matmul$f8\", " GEMM(
         "1", "0",
         "DEFAULT") " o = f8e4m3fn[4,4] get-tuple-element(g), index=0\n ROOT r = f32[4,4] convert(o)\n}\n",
     " hundred = f32[] constant(100)\n hd = f32[4,4] broadcast(hundred), dimensions={}\n"
     " s = f32[4,4] multiply(ab, hd)\n lo = f32[] constant(-448)\n hi = f32[] constant(448)\n"
     " k = f32[4,4] clamp(lo, s, hi)\n o = f8e4m3fn[4,4] convert(k)\n"
     " ROOT r = f32[4,4] convert(o)\n}\n"},
    {"integers",
     " a8 = s8[4,6] convert(a)\n b8 = s8[6,4] convert(b)\n c32 = s32[4,4] convert(c)\n"
     " g = (s32[4,4], s8[64]) custom-call(a8, b8, c32), custom_call_target=\"__cublas$gemm\", " GEMM(
         "1", "1",
         "DEFAULT") " o = s32[4,4] get-tuple-element(g), index=0\n ROOT r = f32[4,4] convert(o)\n}\n",
     " ROOT r = f32[4,4] add(ab, c)\n}\n"},
    {"complex",
     " az = c64[4,6] complex(a, a)\n bz = c64[6,4] convert(b)\n"
     " g = (c64[4,4], s8[64]) custom-call(az, bz), custom_call_target=\"__cublas$gemm\", " GEMM(
         "1", "0",
         "DEFAULT") " o = c64[4,4] get-tuple-element(g), index=0\n ROOT r = f32[4,4] imag(o)\n}\n",
     " ROOT r = f32[4,4] copy(ab)\n}\n"},
    {"convolution with scale, bias, side input and relu6",
     " x = f32[1,4,6,1] reshape(a)\n w = f32[4,2,3,1] reshape(d)\n sm = f32[3,16] broadcast(v16), "
     "dimensions={1}\n si = f32[1,3,4,4] reshape(sm)\n"
     " g = (f32[1,3,4,4], u8[0]) custom-call(x, w, v, si), window={size=2x3}, "
     "dim_labels=b01f_o01i->b01f, custom_call_target=\"__cudnn$convBiasActivationForward\", "
     "backend_config={\"cudnn_conv_backend_config\":{\"activation_mode\":\"kRelu6\","
     "\"conv_result_scale\":0.5,\"side_input_scale\":2,\"leakyrelu_alpha\":0}}\n"
     " ROOT r = f32[1,3,4,4] get-tuple-element(g), index=0\n}\n",
     " x = f32[1,4,6,1] reshape(a)\n w = f32[4,2,3,1] reshape(d)\n sm = f32[3,16] broadcast(v16), "
     "dimensions={1}\n si = f32[1,3,4,4] reshape(sm)\n"
     " y = f32[1,3,4,4] convolution(x, w), window={size=2x3}, dim_labels=b01f_o01i->b01f\n"
     " half = f32[] constant(0.5)\n hb = f32[1,3,4,4] broadcast(half), dimensions={}\n"
     " two = f32[] constant(2)\n tb = f32[1,3,4,4] broadcast(two), dimensions={}\n"
     " bb = f32[1,3,4,4] broadcast(v), dimensions={3}\n k = f32[1,3,4,4] multiply(y, hb)\n"
     " l = f32[1,3,4,4] multiply(si, tb)\n o = f32[1,3,4,4] add(k, l)\n"
     " p = f32[1,3,4,4] add(o, bb)\n six = f32[] constant(6)\n"
     " ROOT r = f32[1,3,4,4] clamp(zero, p, six)\n}\n"},
    {"triangles by cuBLAS",
     " g = (f32[4,4], s8[0]) custom-call(c, ab), custom_call_target=\"__cublas$triangularSolve\", "
     "backend_config={\"left_side\":true,\"lower\":true,\"unit_diagonal\":true,"
     "\"transpose_a\":\"NO_TRANSPOSE\"}\n ROOT r = f32[4,4] get-tuple-element(g), index=0\n}\n",
     " ROOT r = f32[4,4] triangular-solve(c, ab), left_side=true, lower=true, unit_diagonal=true, "
     "transpose_a=NO_TRANSPOSE\n}\n"},
    {"CUB sorts downwards",
     " g = (f32[4,4], u8[99]) custom-call(ab), custom_call_target=\"__cub$DeviceRadixSort\", "
     "backend_config={\"descending\":true}\n ROOT r = f32[4,4] get-tuple-element(g), index=0\n}\n",
     " n = f32[4,4] negate(ab)\n s = f32[4,4] sort(n), dimensions={1}, to_apply=less\n"
     " ROOT r = f32[4,4] negate(s)\n}\n"},
    {"asynchronous pairs",
     " s = ((f32[4,4]), f32[4,4], u32[]) async-start(ab), calls=wrapped\n"
     " u = ((f32[4,4]), f32[4,4], u32[]) async-update(s)\n"
     " t = f32[4,4] async-done(u)\n k = (f32[4,4], f32[4,4], u32[]) copy-start(t)\n"
     " l = f32[4,4] copy-done(k)\n o = f32[4,4] all-reduce-start(l), replica_groups={}, "
     "to_apply=add\n ROOT r = f32[4,4] all-reduce-done(o)\n}\n",
     " ROOT r = f32[4,4] negate(ab)\n}\n"},
    {"a command buffer is a call", " ROOT r = f32[4,4] call(ab), to_apply=wrapped\n}\n",
     " ROOT r = f32[4,4] negate(ab)\n}\n"},
    {"a product inside of a fusion",
     " g = (f32[4,4], s8[64]) fusion(a, b), kind=kCustom, calls=dynamic_slice_fusion, "
     "backend_config={\"fusion_backend_config\":{\"kind\":\"__custom_fusion\"}}\n"
     " ROOT r = f32[4,4] get-tuple-element(g), index=0\n}\n",
     " ROOT r = f32[4,4] copy(ab)\n}\n"},
    {"oneDNN's product with a bias, a matrix, a factor and gelu",
     " vr = f32[1,4] reshape(v)\n"
     " g = (f32[4,4], u8[0]) custom-call(a, b, vr, c), custom_call_target=\"__onednn$matmul\", "
     "backend_config={\"onednn_matmul_config\":{\"fusions\":{\"ops\":[\"BIAS\",\"BINARY_ADD\","
     "\"LINEAR\",\"RELU\"],\"alpha\":[0.5]}}}\n"
     " ROOT r = f32[4,4] get-tuple-element(g), index=0\n}\n",
     " s = f32[4,4] add(ab, vb)\n t = f32[4,4] add(s, c)\n half = f32[] constant(0.5)\n"
     " hb = f32[4,4] broadcast(half), dimensions={}\n k = f32[4,4] multiply(t, hb)\n"
     " ROOT r = f32[4,4] maximum(k, z)\n}\n"},
    {"oneDNN's product of a transposed matrix",
     " bt = f32[4,6] transpose(b), dimensions={1,0}\n"
     " ROOT r = f32[4,4] custom-call(a, bt), custom_call_target=\"__onednn$matmul\", "
     "backend_config={\"onednn_matmul_config\":{\"transpose_b\":true}}\n}\n",
     " ROOT r = f32[4,4] copy(ab)\n}\n"},
    {"oneDNN's softmax along the first dimension",
     " ROOT r = f32[4,6] custom-call(a), custom_call_target=\"__onednn$softmax\", "
     "backend_config={\"onednn_softmax_config\":{\"softmax_axis\":0}}\n}\n",
     " x = f32[4,6] exponential(a)\n s = f32[6] reduce(x, zero), dimensions={0}, to_apply=add\n"
     " sb = f32[4,6] broadcast(s), dimensions={1}\n ROOT r = f32[4,6] divide(x, sb)\n}\n"},
    {"oneDNN's layer normalization, epsilon 0.5",
     " ROOT r = f32[4,4] custom-call(c, v, v), custom_call_target=\"__onednn$layernorm\", "
     "backend_config={\"onednn_layer_norm_config\":{\"rescale\":\"SCALE_AND_SHIFT\","
     "\"epsilon_typecast\":1056964608}}\n}\n",
     LAYER_NORM},
    {"cuDNN's normalization",
     " c4 = f32[4,1,4,1] reshape(c)\n v4 = f32[1,1,4,1] reshape(v)\n"
     " g = (f32[4,1,4,1], f32[4,1,1,1], f32[4,1,1,1], u8[0]) custom-call(c4, v4, v4), "
     "custom_call_target=\"__cudnn$norm\", backend_config={\"cudnn_norm_backend_config\":"
     "{\"epsilon\":0.5,\"kind\":\"LAYER_FWD_TRAIN\"}}\n"
     " ROOT r = f32[4,1,4,1] get-tuple-element(g), index=0\n}\n",
     LAYER_NORM},
    {"sparse rows times a matrix",
     " x = f32[5] constant({1,2,3,4,5})\n j = s32[5] constant({0,5,1,2,3})\n"
     " p = s32[4] constant({0,2,2,4})\n"
     " ROOT r = f32[3,4] custom-call(x, p, j, b), custom_call_target=\"cpu_csr_sparse_dense_ffi\"\n"
     "}\n",
     " sm = f32[3,6] constant({{1,0,0,0,0,2},{0,0,0,0,0,0},{0,3,4,0,0,0}})\n"
     " ROOT r = f32[3,4] dot(sm, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n"},
    {"sparse columns, transposed, times a vector",
     " x = f32[3] constant({1,2,3})\n ir = s32[3] constant({0,1,3})\n j = s32[3] "
     "constant({2,0,2})\n"
     " g = (f32[3], s8[8]) custom-call(x, ir, j, v), custom_call_target=\"cusparse_coo_matvec_ffi\", "
     "api_version=API_VERSION_TYPED_FFI, "
     "backend_config={opaque = \"\\01\\00\\00\\00\"}\n"
     " ROOT r = f32[3] get-tuple-element(g), index=0\n}\n",
     " ROOT r = f32[3] constant({-40,0,-11})\n}\n"},
    {"dense to sparse and back",
     " g = (f32[20], s32[20], s32[5], s8[8]) custom-call(c), "
     "custom_call_target=\"cusparse_csr_fromdense_ffi\"\n"
     " x = f32[20] get-tuple-element(g), index=0\n j = s32[20] get-tuple-element(g), index=1\n"
     " p = s32[5] get-tuple-element(g), index=2\n"
     " k = (f32[4,4], s8[8]) custom-call(x, j, p), "
     "custom_call_target=\"cusparse_csr_todense_ffi\"\n"
     " ROOT r = f32[4,4] get-tuple-element(k), index=0\n}\n",
     " ROOT r = f32[4,4] copy(c)\n}\n"},
    {"attention, causal",
     " qq = f32[1,1,4,6] reshape(a)\n k = f32[1,1,4,6] reshape(a)\n w = f32[1,1,4,4] reshape(c)\n"
     " g = (f32[1,1,4,4], u8[0]) custom-call(qq, k, w), "
     "custom_call_target=\"__cudnn$fmhaSoftmax\", backend_config={\"cudnn_fmha_backend_config\":{"
     "\"fmha_scale\":0.25,\"mask_type\":\"CAUSAL\",\"bmm1_dot_dimension_numbers\":{"
     "\"lhs_batch_dimensions\":[\"0\",\"1\"]}}}\n"
     " o = f32[1,1,4,4] get-tuple-element(g), index=0\n ROOT r = f32[4,4] reshape(o)\n}\n",
     " s = f32[4,4] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"
     " scale = f32[] constant(0.25)\n sc = f32[4,4] broadcast(scale), dimensions={}\n"
     " t = f32[4,4] multiply(s, sc)\n x = f32[4,4] exponential(t)\n"
     " row = s32[4,4] iota(), iota_dimension=0\n col = s32[4,4] iota(), iota_dimension=1\n"
     " in = pred[4,4] compare(col, row), direction=LE\n y = f32[4,4] select(in, x, z)\n"
     " n = f32[4] reduce(y, zero), dimensions={1}, to_apply=add\n"
     " nb = f32[4,4] broadcast(n), dimensions={0}\n p = f32[4,4] divide(y, nb)\n"
     " ROOT r = f32[4,4] dot(p, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n"},
    {"singular values of cuSOLVER, without vectors",
     " g = (f32[4,4], f32[4], f32[], f32[], s32[]) custom-call(c), "
     "custom_call_target=\"cusolver_gesvd_ffi\", backend_config={compute_uv = false, full_matrices "
     "= false, transposed = false}\n ROOT r = f32[4] get-tuple-element(g), index=1\n}\n",
     " g = (f32[4,4], f32[4], f32[4,4], f32[4,4], s32[]) custom-call(c), "
     "custom_call_target=\"lapack_sgesdd_ffi\", backend_config={mode = 83 : ui8}\n"
     " ROOT r = f32[4] get-tuple-element(g), index=1\n}\n"},
    {"V of cuSOLVER is the transpose of LAPACK's",
     " g = (f32[4,4], f32[4], f32[4,4], f32[4,4], s32[]) custom-call(c), "
     "custom_call_target=\"cusolver_gesvdj_ffi\", backend_config={full_matrices = true}\n"
     " w = f32[4,4] get-tuple-element(g), index=3\n"
     " ROOT r = f32[4,4] transpose(w), dimensions={1,0}\n}\n",
     " g = (f32[4,4], f32[4], f32[4,4], f32[4,4], s32[]) custom-call(c), "
     "custom_call_target=\"lapack_sgesdd_ffi\", backend_config={mode = 65 : ui8}\n"
     " ROOT r = f32[4,4] get-tuple-element(g), index=3\n}\n"},
};
#define LESS                                                                                       \
    "less {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n"                                   \
    " ROOT r = pred[] compare(x, y), direction=LT\n}\n"                                            \
    "wrapped {\n x = f32[4,4] parameter(0)\n ROOT r = f32[4,4] negate(x)\n}\n"                     \
    "dynamic_slice_fusion {\n x = f32[4,6] parameter(0)\n y = f32[6,4] parameter(1)\n"             \
    " ROOT g = (f32[4,4], s8[64]) custom-call(x, y), custom_call_target=\"__cublas$gemm\", " GEMM( \
        "1", "0", "DEFAULT") "}\n"

static void run_text(const char *name, const char *body, const struct rp_engine *engine,
                     double *values, size_t *n)
{
    struct rp_err err = RP_ERR_INIT;
    char text[8192];

    snprintf(text, sizeof text, "%s%s%s%s", HEAD, LESS, ARRAYS, body);
    if (exec_run(text, engine, 0, values, n, &err) != RP_OK)
        fail_msg("%s on %s: %s", name, engine->name, err.text);
}

static void same_as_plain(void **state)
{
    const struct rp_engine *engines[2] = {&rp_engine_ref, &rp_engine_fast};
    double got[64], want[64];
    size_t n, m;
    struct rp_lapack library;
    bool lapack = rp_lapack_open(&library);

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (size_t k = 0; k < 2; k++) {
            if (!lapack && strstr(pairs[i].plain, "lapack_"))
                continue;
            run_text(pairs[i].name, pairs[i].call, engines[k], got, &n);
            run_text(pairs[i].name, pairs[i].plain, &rp_engine_ref, want, &m);
            assert_int_equal(n, m);
            for (size_t j = 0; j < n; j++)
                if (!(fabs(got[j] - want[j]) <= 1e-5 * (1 + fabs(want[j]))))
                    fail_msg("%s on %s: value %zu is %.9g instead of %.9g", pairs[i].name,
                             engines[k]->name, j, got[j], want[j]);
        }
}

/* What is not known is named, with the instruction. */
static void refused(void **state)
{
    static const struct {
        const char *body, *says;
    } bad[] = {
        {" ROOT r = f32[4,4] custom-call(ab), custom_call_target=\"te_gemm\"\n}\n",
         "custom-call 'r': unsupported custom call 'te_gemm'"},
        {" ROOT r = (f32[4,4], u8[0]) custom-call(a, b), custom_call_target=\"__onednn$matmul\", "
         "backend_config={\"onednn_matmul_config\":{\"fusions\":{\"ops\":[\"BIAS\",\"ERF\"]}}}\n}\n",
         "custom-call 'r': no operand for the fused BIAS"},
        {" ROOT r = (f32[4,4], u8[0]) custom-call(a, b), custom_call_target=\"__onednn$matmul\", "
         "backend_config={\"onednn_matmul_config\":{\"fusions\":{\"ops\":[\"ERF\"]}}}\n}\n",
         "custom-call 'r': unsupported fused ERF"},
        {" qq = f32[1,1,4,6] reshape(a)\n ROOT r = (f32[1,1,4,6], u8[0]) custom-call(qq, qq, qq), "
         "custom_call_target=\"__cudnn$fmhaSoftmaxDropout\", "
         "backend_config={\"cudnn_fmha_backend_config\":{\"dropout_rate\":0.1}}\n}\n",
         "dropout by the random numbers of cuDNN"},
        {" qq = f32[1,1,4,6] reshape(a)\n ROOT r = (f32[1,1,4,6], u8[0]) custom-call(qq, qq, qq), "
         "custom_call_target=\"__cudnn$fmhaSoftmaxF8\"\n}\n",
         "attention of f8"},
        {" qq = f32[1,1,4,6] reshape(a)\n ROOT r = (f32[1,1,4,6], u8[0]) custom-call(qq, qq, qq), "
         "custom_call_target=\"__cudnn$fmhaSoftmax\", "
         "backend_config={\"cudnn_fmha_backend_config\":{\"mask_type\":\"ALIBI\"}}\n}\n",
         "with ALiBi, segments or pages"},
        {" qq = f32[1,1,4,6] reshape(a)\n ROOT r = (f32[1,1,4,6], u8[0]) custom-call(qq, qq, qq), "
         "custom_call_target=\"__cudnn$fmhaSoftmax\", "
         "backend_config={\"cudnn_fmha_backend_config\":{\"max_seg_per_batch\":2}}\n}\n",
         "with ALiBi, segments or pages"},
        {" qq = f32[1,1,4,6] reshape(a)\n ROOT r = (f32[1,1,4,6], u8[0]) custom-call(qq, qq, qq), "
         "custom_call_target=\"__cudnn$fmhaSoftmax\", "
         "backend_config={\"cudnn_fmha_backend_config\":{\"is_paged_attention\":true}}\n}\n",
         "with ALiBi, segments or pages"},
        {" x = f32[1,4,6,1] reshape(a)\n w = f32[4,2,3,1] reshape(d)\n"
         " ROOT r = (f32[1,3,4,4], u8[0]) custom-call(x, w, v), window={size=2x3}, "
         "dim_labels=b01f_o01i->b01f, custom_call_target=\"__cudnn$convBiasActivationForward\", "
         "backend_config={\"cudnn_conv_backend_config\":{\"activation_mode\":\"kGelu\"}}\n}\n",
         "unsupported activation kGelu"},
        {" ROOT r = (f32[4,4], s8[4]) custom-call(a, b), custom_call_target=\"__cublas$gemm\", " GEMM(
             "1", "1", "DEFAULT") "}\n",
         "a missing operand, or one of the wrong shape"},
        {" ROOT r = (f32[4,4], s8[4]) custom-call(a, a), custom_call_target=\"__cublas$gemm\", " GEMM(
             "1", "0", "DEFAULT") "}\n",
         "contracted dimensions differ"},
        {" ROOT r = (f32[4,4], s8[4]) custom-call(a, b), "
         "custom_call_target=\"__cublas$lt$matmul\", " GEMM("1", "0", "SWISH") "}\n",
         "custom-call 'r': unsupported fused SWISH"},
        {" ROOT r = (f32[4,4], s8[4]) custom-call(a, b), "
         "custom_call_target=\"__cublas$lt$matmul\", " GEMM("1", "0", "RELU6") "}\n",
         "custom-call 'r': unsupported fused RELU6"},
        {" ROOT r = (f32[4,4], f32[9], s32[]) custom-call(ab), "
         "custom_call_target=\"lapack_ssyevd_ffi\"\n}\n",
         "the matrix is not square"},
        {" ROOT r = f32[4,4] custom-call(ab, v16), custom_call_target=\"lapack_sorgqr_ffi\"\n}\n",
         "wrong shape of the operands"},
    };
    double values[64];
    size_t n;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct rp_err err = RP_ERR_INIT;
        char text[8192];

        snprintf(text, sizeof text, "%s%s%s%s", HEAD, LESS, ARRAYS, bad[i].body);
        assert_int_not_equal(exec_run(text, &rp_engine_ref, 0, values, &n, &err), RP_OK);
        if (!strstr(err.text, bad[i].says))
            fail_msg("'%s' does not say '%s'", err.text, bad[i].says);
    }
}

int test_custom(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_as_plain), cmocka_unit_test(refused)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
