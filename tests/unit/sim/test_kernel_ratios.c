/* SPDX-License-Identifier: Apache-2.0 */
/* What a cost model says of the kernels of a step in another number format. */
#include "asked_file.h"
#include "dataset/dataset.h"
#include "dataset/load.h"
#include "sim/kernel_ratios.h"
#include "sim/model/part.h"

#include <math.h>

struct kernels {
    size_t n;
    struct {
        char name[96];
        struct rp_sim_ratio ratio;
    } at[32];
};

static enum rp_code keep_ratios(void *user, const struct rp_loaded *loaded, struct rp_err *err)
{
    struct kernels *out = user;
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_sim_part part = {0};

    assert_ok(rp_sim_part_init(&part, loaded->trace, &arena, err), err);
    assert_ok(rp_sim_part_ask_model(&part, loaded, NULL, err), err);
    assert_true(!part.ratios.n || part.ratios.n == part.graph.nodes.n);
    for (size_t i = 0; i < part.ratios.n; i++) {
        const struct rp_sg_node *node = &part.graph.nodes.at[i];

        if (node->kind != RP_SG_COMPUTE)
            continue;
        assert_true(out->n < 32);
        snprintf(out->at[out->n].name, sizeof out->at[0].name, "%s",
                 part.graph.names.at[node->name]);
        out->at[out->n++].ratio = part.ratios.at[i];
    }
    rp_sim_part_release(&part);
    rp_arena_release(&arena);
    return RP_OK;
}

static void ratios_of(const char *golden, const struct replaced *r, struct kernels *out)
{
    struct rp_err err = RP_ERR_INIT;
    struct asked_file f;

    *out = (struct kernels){0};
    asked_open(&f, golden, r);
    assert_ok(rp_each_rank(f.ctx, f.dataset, keep_ratios, out, &err), &err);
    asked_close(&f);
}

/* The nth kernel whose name has a part. */
static struct rp_sim_ratio ratio_of(const struct kernels *k, const char *part, int nth)
{
    for (size_t i = 0; i < k->n; i++)
        if (strstr(k->at[i].name, part) && nth-- == 0)
            return k->at[i].ratio;
    fail_msg("no kernel is called %s", part);
    return (struct rp_sim_ratio){0};
}

static void check_about(const char *what, double value, double want)
{
    if (fabs(value - want) > 1e-5 * (fabs(want) + 1e-3))
        fail_msg("%s: %.9g and not %.9g", what, value, want);
}

/* ------------------------------------------------------------------ products and convolutions */

#define AUTOCAST GOLDEN "autocast/in.json"
#define MEMORY   4.8e12 /* bytes/s of an H200 */

#define NO_INPUTS \
    "[[32,96,56,56],[96,1,7,7]],\"Input type\":[\"float\",\"float\"],\"Concrete Inputs\":[\"\",\"\"]"
#define INPUTS(dims, padding, groups)                                                                 \
    "[" dims                                                                                          \
    ",[],[],[],[],[],[],[]],\"Input type\":[\"float\",\"float\",\"\",\"\",\"\",\"\",\"\",\"\",\"\"]," \
    "\"Concrete Inputs\":[\"\",\"\",\"[" padding "]\",\"[1, 1]\",\"[1, 1]\",\"" groups                \
    "\",\"False\",\"False\",\"False\"]"

/* 32 pictures of 96 channels of 56 x 56, in groups of one: as many elements come out. */
#define ELEMENTS (32. * 96 * 56 * 56)
#define GROUPED                                                     \
    {                                                               \
        NO_INPUTS, INPUTS("[32,96,56,56],[96,1,7,7]", "3, 3", "96") \
    }

static void a_grouped_convolution_moves_its_bytes(void **state)
{
    static const struct replaced rows[] = {GROUPED, {NULL, NULL}};
    static const struct replaced brief[] = {GROUPED, {"\"dur\":181,", "\"dur\":90,"}, {NULL, NULL}};
    double ns = 2 * (2 * ELEMENTS + 96 * 49) / (0.083 * MEMORY) * 1e9;
    struct rp_sim_ratio r;
    struct kernels k;

    UNUSED_STATE(state);
    ratios_of(AUTOCAST, rows, &k);
    r = ratio_of(&k, "conv2d_c1", 0);
    check_about("ratio", r.ratio, ns / 181000);
    check_about("low", r.low, ns / 181000 / 1.4);
    check_about("high", r.high, ns / 181000 * 1.4);
    assert_true(r.tf32 == 0);
    check_about("casts", r.casts, 3);
    check_about("casts_ns", r.casts_ns, 3 * 2000 + 1e9 * 6 * ELEMENTS / (0.83 * MEMORY));
    ratios_of(AUTOCAST, brief, &k);
    check_about("at most", ratio_of(&k, "conv2d_c1", 0).ratio, 1.05);
}

/* Of PyTorch's own kernel, and without normalization. */
static void an_own_convolution_takes_as_long(void **state)
{
    static const struct replaced own[] = {
        GROUPED, {"conv2d_c1_k1_nhwc", "at::native::conv2d_c1"}, {NULL, NULL}};
    static const struct replaced plain[] = {GROUPED, {"layer_norm", "layer_scale"}, {NULL, NULL}};
    struct rp_sim_ratio r;
    struct kernels k;

    UNUSED_STATE(state);
    ratios_of(AUTOCAST, own, &k);
    r = ratio_of(&k, "conv2d_c1", 0);
    check_about("ratio", r.ratio, 1.03);
    check_about("low", r.low, 1.03 / 1.1);
    check_about("high", r.high, 1.03 * 1.1);
    ratios_of(AUTOCAST, plain, &k);
    r = ratio_of(&k, "conv2d_c1", 0);
    check_about("casts", r.casts, 1);
    check_about("casts_ns", r.casts_ns, 2000);
}

#define GEMM "cutlass_80_simt_sgemm"

/* 4096 x 1024 times 1024 x 4096: weight and input have 4 M elements, the result has more. */
static void a_product_is_converted(void **state)
{
    static const struct replaced wide[] = {
        {"[[4096],[4096,1024],[1024,4096]]", "[[1024],[4096,2048],[2048,1024]]"}, {NULL, NULL}};
    static const struct replaced plain[] = {{"layer_norm", "layer_scale"}, {NULL, NULL}};
    static const struct replaced bare[] = {
        {"aten::addmm", "aten::mm"},
        {"[[4096],[4096,1024],[1024,4096]],\"Input type\":[\"float\",\"float\",\"float\"]",
         "[[4096,1024],[1024,4096]],\"Input type\":[\"float\",\"float\"]"},
        {NULL, NULL}};
    double m = 1024. * 4096;
    struct rp_sim_ratio r;
    struct kernels k;

    UNUSED_STATE(state);
    ratios_of(AUTOCAST, NULL, &k);
    r = ratio_of(&k, GEMM, 0);
    assert_true(r.ratio > 0.05 && r.ratio < 0.1);
    assert_true(r.low > 0.04 && r.low < r.ratio && r.high > r.ratio && r.high < 0.12);
    assert_true(r.tf32 > 1.9 * r.ratio && r.tf32 < 2.4 * r.ratio);
    assert_true(r.masked == 0 && r.masked_half == 0 && !r.captured);
    check_about("casts", r.casts, 3);
    check_about("casts_ns", r.casts_ns, 3 * 2000 + 1e9 * 6 * 2 * m / (0.83 * MEMORY));
    assert_true(ratio_of(&k, "gelu", 0).ratio == 0);
    assert_true(ratio_of(&k, "layer_norm", 0).ratio == 0);
    ratios_of(AUTOCAST, wide, &k); /* here the result is the smaller one */
    check_about("casts_ns", ratio_of(&k, GEMM, 0).casts_ns,
                3 * 2000 + 1e9 * 6 * (2048. * 1024 + m) / (0.83 * MEMORY));
    ratios_of(AUTOCAST, plain, &k);
    check_about("casts", ratio_of(&k, GEMM, 0).casts, 2);
    check_about("casts_ns", ratio_of(&k, GEMM, 0).casts_ns,
                2 * 2000 + 1e9 * 6 * m / (0.83 * MEMORY));
    ratios_of(AUTOCAST, bare, &k);
    check_about("casts", ratio_of(&k, GEMM, 0).casts, 2);
    check_about("casts_ns", ratio_of(&k, GEMM, 0).casts_ns,
                2 * 2000 + 1e9 * 6 * 2 * m / (0.83 * MEMORY));
}

/* Where one kernel belongs to a backward pass, the gradients are converted, too. */
static void a_backward_pass_converts_gradients(void **state)
{
    static const struct replaced trains[] = {
        GROUPED,
        {"\"aten::gelu\",\"pid\":1,\"tid\":1",
         "\"autograd::engine::evaluate_function: GeluBackward0\",\"pid\":1,\"tid\":2"},
        {"\"tid\":1,\"ts\":41", "\"tid\":2,\"ts\":41"},
        {NULL, NULL}};
    double m = 1024. * 4096;
    struct kernels k;

    UNUSED_STATE(state);
    ratios_of(AUTOCAST, trains, &k);
    check_about("casts_ns", ratio_of(&k, GEMM, 0).casts_ns,
                3 * 2000 + 1e9 * 6 * 2 * m / (0.83 * MEMORY) + 2.7 * 2300 +
                    1e9 * 6 * 1.7 * m / (0.40 * MEMORY));
    check_about("casts_ns", ratio_of(&k, "conv2d_c1", 0).casts_ns,
                3 * 2000 + 1e9 * 6 * ELEMENTS / (0.83 * MEMORY) + 2.7 * 2300 +
                    1e9 * 6 * 0.7 * ELEMENTS / (0.40 * MEMORY));
}

/* 32 pictures of 64 channels, 3 x 3 to 128 channels. */
static void a_convolution_is_converted(void **state)
{
    static const struct replaced rows[] = {
        {NO_INPUTS, INPUTS("[32,64,56,56],[128,64,3,3]", "1, 1", "1")}, {NULL, NULL}};
    static const struct replaced narrow[] = {
        {NO_INPUTS, INPUTS("[32,64,56,56],[32,64,3,3]", "1, 1", "1")}, {NULL, NULL}};
    double picture = 32. * 56 * 56;
    struct rp_sim_ratio r;
    struct kernels k;

    UNUSED_STATE(state);
    ratios_of(AUTOCAST, rows, &k);
    r = ratio_of(&k, "conv2d_c1", 0);
    assert_true(r.ratio > 0 && r.ratio < 1 && r.tf32 == 0);
    check_about("casts", r.casts, 3);
    check_about("casts_ns", r.casts_ns,
                3 * 2000 + 1e9 * 6 * (128. * 64 * 9 + 64 * picture) / (0.83 * MEMORY));
    ratios_of(AUTOCAST, narrow, &k);
    check_about("casts_ns", ratio_of(&k, "conv2d_c1", 0).casts_ns,
                3 * 2000 + 1e9 * 6 * (32. * 64 * 9 + 32 * picture) / (0.83 * MEMORY));
}

/* An unknown device, and a step in 16 bits. */
static void others_are_not_asked(void **state)
{
    static const struct replaced unknown[] = {{"NVIDIA H200", "NVIDIA X"}, {NULL, NULL}};
    static const struct replaced half[] = {{"\"float\"", "\"c10::BFloat16\""}, {NULL, NULL}};
    struct kernels k;

    UNUSED_STATE(state);
    ratios_of(AUTOCAST, unknown, &k);
    assert_int_equal(k.n, 0);
    ratios_of(AUTOCAST, half, &k);
    assert_true(ratio_of(&k, GEMM, 0).ratio == 1);
    assert_true(ratio_of(&k, GEMM, 0).low == 1);
    assert_true(ratio_of(&k, GEMM, 0).high == 1);
    assert_true(ratio_of(&k, GEMM, 0).casts == 0);
}

/* ------------------------------------------------------------------ attention */

#define ATTENTION GOLDEN "attention/in.json"

/* In parts: each part gets the ratio of the whole, which took 530 us, 1,100 us backwards. */
static void attention_in_parts_is_one_operator(void **state)
{
    static const struct replaced slow[] = {
        {"\"dur\":200,", "\"dur\":730,"}, {"\"dur\":500,", "\"dur\":1600,"}, {NULL, NULL}};
    static const char *const forward[] = {"sgemm_scores", "softmax_warp_forward", "sgemm_values"};
    static const char *const back[] = {"sgemm_back_values", "softmax_warp_backward",
                                       "sgemm_back_scores"};
    struct kernels k, twice;

    UNUSED_STATE(state);
    ratios_of(ATTENTION, NULL, &k);
    ratios_of(ATTENTION, slow, &twice);
    for (int i = 0; i < 3; i++) {
        struct rp_sim_ratio r = ratio_of(&k, forward[i], 0), b = ratio_of(&k, back[i], 0);

        assert_true(r.ratio > 0.02 && r.ratio < 0.05 && r.low < r.ratio && r.high > r.ratio);
        assert_true(b.ratio > 0.04 && b.ratio < 0.08 && b.low < b.ratio && b.high > b.ratio);
        assert_true(r.tf32 == -1 && b.tf32 == -1);
        assert_true(r.masked > 8 * r.ratio && r.masked < 16 * r.ratio); /* all pairs, in fp32 */
        assert_true(b.masked > 7 * b.ratio && b.masked < 14 * b.ratio);
        check_about("in 16 bits", r.masked_half, 1.65);
        check_about("in 16 bits", b.masked_half, 1.65);
        assert_true(r.casts == 0 && r.casts_ns == 0 && !r.captured);
        check_about("the second step", ratio_of(&k, forward[i], 1).ratio, r.ratio);
        check_about("of twice", ratio_of(&twice, forward[i], 0).ratio, r.ratio / 2);
        check_about("of twice", ratio_of(&twice, forward[i], 0).masked, r.masked / 2);
        check_about("of twice", ratio_of(&twice, forward[i], 0).low, r.low / 2);
        check_about("of twice", ratio_of(&twice, forward[i], 0).high, r.high / 2);
        check_about("of twice", ratio_of(&twice, back[i], 0).ratio, b.ratio / 2);
        check_about("of twice", ratio_of(&twice, back[i], 1).ratio, b.ratio / 2);
    }
    assert_true(ratio_of(&k, "sgemm_masked", 0).ratio == 0);
    assert_true(ratio_of(&k, "sgemm_masked", 0).tf32 == 0);
}

/* A step that branches by a value of the device passes masks once it is captured; what an optimizer
   asks is not about attention. */
static void a_captured_step_passes_masks(void **state)
{
    static const struct replaced silent[] = {{"aten::is_nonzero", "aten::is_complex"},
                                             {NULL, NULL}};
    static const struct replaced optimizer[] = {
        {"\"name\":\"aten::is_nonzero\",\"pid\":1,\"tid\":1,\"ts\":1010",
         "\"name\":\"aten::is_nonzero\",\"pid\":1,\"tid\":1,\"ts\":19010"},
        {"\"name\":\"aten::is_nonzero\",\"pid\":1,\"tid\":1,\"ts\":21010",
         "\"name\":\"aten::is_nonzero\",\"pid\":1,\"tid\":1,\"ts\":39010"},
        {NULL, NULL}};
    static const struct replaced *const rows[] = {NULL, silent, optimizer};

    UNUSED_STATE(state);
    for (int i = 0; i < 3; i++) {
        struct rp_sim_ratio causal, encoder, parts;
        struct kernels k;

        ratios_of(ATTENTION, rows[i], &k);
        causal = ratio_of(&k, "fmha_cutlassF_f32_causal", 0);
        parts = ratio_of(&k, "sgemm_scores", 0);
        encoder = ratio_of(&k, "fmha_cutlassF_f32_encoder", 0);
        assert_true(causal.ratio > 0.1 && causal.ratio < 0.15 && !causal.captured);
        check_about("causal", causal.masked, i ? 0 : 1.4);
        check_about("causal", causal.masked_half, i ? 0 : 1.65);
        check_about("again", ratio_of(&k, "fmha_cutlassF_f32_causal", 1).ratio, causal.ratio);
        check_about("again", ratio_of(&k, "fmha_cutlassF_f32_causal", 1).low, causal.low);
        check_about("again", ratio_of(&k, "fmha_cutlassF_f32_causal", 1).high, causal.high);
        assert_int_equal(parts.masked > 0, i == 0);
        check_about("encoder", encoder.masked, 1.5);
        check_about("encoder", encoder.masked_half, 1.7 / (double)encoder.ratio);
        assert_true(encoder.captured);
    }
}

/* In 16 bits: the causal kernel, and the encoder's against its time in fp32. */
static void attention_in_16_bits_is_masked_too(void **state)
{
    static const struct replaced half[] = {{"\"float\"", "\"c10::BFloat16\""}, {NULL, NULL}};
    struct rp_sim_ratio causal, encoder;
    struct kernels k;

    UNUSED_STATE(state);
    ratios_of(ATTENTION, half, &k);
    causal = ratio_of(&k, "fmha_cutlassF_f32_causal", 0);
    encoder = ratio_of(&k, "fmha_cutlassF_f32_encoder", 0);
    assert_true(causal.ratio == 1 && encoder.ratio == 1);
    check_about("causal", causal.masked, 1.65);
    check_about("causal", causal.masked_half, 1.65);
    assert_true(encoder.captured);
    check_about("encoder", encoder.masked_half, 1.7);
    assert_true(encoder.masked > 1); /* 210 us are longer than it takes in fp32 */
}

#define ENCODER "\"0.1\",\"False\",\"0.125\",\"False\"]"

static void text_encoders_have_signs(void **state)
{
    static const struct {
        struct replaced r[2];
        bool encoder;
    } rows[] = {
        {{{ENCODER, "\"0.1\",\"True\",\"0.125\",\"False\"]"}}, false},
        {{{ENCODER, "\"0\",\"False\",\"0.125\",\"False\"]"}}, false},
        {{{ENCODER, "\"0.1\",\"False\",\"\",\"False\"]"}}, false},
        {{{"\"schemaVersion\":1", "\"framework.transformers\":\"5.22.0\",\"schemaVersion\":1"}},
         true},
        {{{"\"schemaVersion\":1", "\"framework.transformers\":\"5.23.0\",\"schemaVersion\":1"}},
         false},
        {{{"\"schemaVersion\":1", "\"framework.transformers\":\"6.0\",\"schemaVersion\":1"}},
         false},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kernels k;

        ratios_of(ATTENTION, rows[i].r, &k);
        if (ratio_of(&k, "f32_encoder", 0).captured != rows[i].encoder)
            fail_msg("row %zu", i);
    }
}

int test_kernel_ratios(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_grouped_convolution_moves_its_bytes),
        cmocka_unit_test(an_own_convolution_takes_as_long),
        cmocka_unit_test(a_product_is_converted),
        cmocka_unit_test(a_backward_pass_converts_gradients),
        cmocka_unit_test(a_convolution_is_converted),
        cmocka_unit_test(others_are_not_asked),
        cmocka_unit_test(attention_in_parts_is_one_operator),
        cmocka_unit_test(a_captured_step_passes_masks),
        cmocka_unit_test(attention_in_16_bits_is_masked_too),
        cmocka_unit_test(text_encoders_have_signs),
    };

    return cmocka_run_group_tests_name("kernel_ratios", tests, NULL, NULL);
}
