/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Custom calls and the other words of optimised modules: each does what plain operations do. Both
 * programs of a pair begin with the same arrays and run on `ref` and `fast`.
 */
#include "exec_fixture.h"

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

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (size_t k = 0; k < 2; k++) {
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
         "backend_config={\"onednn_matmul_config\":{\"fusions\":{\"ops\":[\"BIAS\"]}}}\n}\n",
         "custom-call 'r': unsupported fused BIAS"},
        {" ROOT r = (f32[4,4], s8[4]) custom-call(a, b), custom_call_target=\"__cublas$gemm\", " GEMM(
             "1", "1", "DEFAULT") "}\n",
         "a missing operand, or one of the wrong shape"},
        {" ROOT r = (f32[4,4], s8[4]) custom-call(a, a), custom_call_target=\"__cublas$gemm\", " GEMM(
             "1", "0", "DEFAULT") "}\n",
         "contracted dimensions differ"},
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
