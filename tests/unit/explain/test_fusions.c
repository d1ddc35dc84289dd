/* SPDX-License-Identifier: Apache-2.0 */
/* Chains that could be one kernel: which items are one, what they would take, and the model of that
   time against chains that were measured. */
#include "explain/ask_fixture.h"
#include "explain/fusions/fusions.h"
#include "trace/trace_fixtures.h"

#include <math.h>
#include <stdlib.h>

extern const struct rp_question_row rp_ask_fusions;

/* An operator of 10 ns, and its kernel much later. */
#define OP(n, op, kernel, dims, dur)                                            \
    {'X',                                                                       \
     "cpu_op",                                                                  \
     op,                                                                        \
     1,                                                                         \
     1,                                                                         \
     100 * (n),                                                                 \
     10,                                                                        \
     0,                                                                         \
     0,                                                                         \
     0,                                                                         \
     NULL,                                                                      \
     0,                                                                         \
     0,                                                                         \
     "Input Dims",                                                              \
     dims,                                                                      \
     NULL,                                                                      \
     0,                                                                         \
     "Input type",                                                              \
     "[\"float\", \"float\"]"},                                                 \
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 100 * (n) + 1, 2, (n)}, \
    {                                                                           \
        'X', "kernel", kernel, 0, 7, 1000000 + 10000 * (n), (dur), (n), 7       \
    }
#define E   "vectorized_elementwise_kernel"
#define BIG "[[1024, 1024], [1024, 1024]]"
#define ONE "[[1024, 1024]]"

/* Twice three operators of one size, with products between; then one of another size. */
static const struct row layers[] = {
    OP(1, "aten::mul", E, BIG, 6000),      OP(2, "aten::add", E, BIG, 6000),
    OP(3, "aten::exp", E, ONE, 4000),      OP(4, "aten::mm", "gemm", BIG, 50000),
    OP(5, "aten::mul", E, BIG, 6000),      OP(6, "aten::add", E, BIG, 6000),
    OP(7, "aten::exp", E, ONE, 4000),      OP(8, "aten::mm", "gemm", BIG, 50000),
    OP(9, "aten::neg", E, "[[16]]", 1000), OP(10, "aten::neg", E, ONE, 4000),
};

static void repeated_chains_are_one_row(void **state)
{
    struct rp_trace *t = TRACE_OF(layers), *const both[] = {t, t};
    struct rp_result *result = ASK_TRACES(fusions, both, 2, {"no-simulate", NULL});
    const struct rp_fusions_root *root = result->root;
    /* three inputs and a result of four megabytes each, as fast as mul: 12 MiB in 6 us */
    int64_t fused = 8000;

    UNUSED_STATE(state);
    assert_int_equal(root->nrows, 1);
    assert_string_equal(root->rows[0].name, "mul, add, exp");
    assert_string_equal(root->rows[0].shape, "[1024, 1024]");
    assert_string_equal(root->rows[0].kind, "chain");
    assert_int_equal(root->rows[0].count, 4);
    assert_int_equal(root->rows[0].kernels, 3);
    assert_int_equal(root->rows[0].device_ns, 4 * 16000);
    assert_int_equal(root->rows[0].fused_ns, 4 * fused);
    assert_int_equal(root->rows[0].saved_ns, 4 * (16000 - fused));
    assert_int_equal(root->whole_ns, 2 * 137000);
    rp_result_free(result);
    rp_trace_free(t);
}

static void other_sizes_and_fills_end_a_chain(void **state)
{
    static const struct row rows[] = {
        OP(1, "aten::mul", E, ONE, 6000),
        OP(2, "aten::add", E, "[[1024, 512]]", 6000),
        OP(3, "aten::fill_", E, "[[1024, 512]]", 6000),
        OP(4, "aten::exp", E, "[[1024, 512]]", 6000),
    };
    struct rp_trace *t = TRACE_OF(rows), *const one[] = {t};
    struct rp_result *result = ASK_TRACES(fusions, one, 1, {"no-simulate", NULL});
    const struct rp_fusions_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->nrows, 0);
    assert_contains(root->summary, "no chain");
    rp_result_free(result);
    rp_trace_free(t);
}

/* Behind a reduction a chain goes on with the rows. */
static void a_normalization_is_one_chain(void **state)
{
    static const struct row rows[] = {
        OP(1, "aten::pow", E, ONE, 6000),
        OP(2, "aten::mean", "reduce_kernel", ONE, 6000),
        OP(3, "aten::rsqrt", E, "[[1024, 1]]", 1500),
        OP(4, "aten::mul", E, "[[1024, 1024], [1024, 1]]", 6000),
    };
    struct rp_trace *t = TRACE_OF(rows), *const one[] = {t};
    struct rp_result *result = ASK_TRACES(fusions, one, 1, {"no-simulate", NULL});
    const struct rp_fusions_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->nrows, 1);
    assert_string_equal(root->rows[0].name, "pow, mean, rsqrt, mul");
    assert_true(root->rows[0].fused_ns < 9100); /* reads its input twice, writes once */
    rp_result_free(result);
    rp_trace_free(t);
}

static void an_optimizer_is_one_row(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "Optimizer.step#AdamW.step", 1, 1, 50, 1000},
        OP(1, "aten::lerp_", E, ONE, 4000),
        OP(2, "aten::addcdiv_", E, ONE, 6000),
        OP(3, "aten::lerp_", E, "[[7]]", 1000),
        OP(4, "aten::addcdiv_", E, "[[7]]", 1000),
    };
    struct rp_trace *t = TRACE_OF(rows), *const one[] = {t};
    struct rp_result *result = ASK_TRACES(fusions, one, 1, {"no-simulate", NULL});
    const struct rp_fusions_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->nrows, 1);
    assert_string_equal(root->rows[0].kind, "optimizer");
    assert_string_equal(root->rows[0].name, "lerp_, addcdiv_");
    assert_int_equal(root->rows[0].kernels, 4);
    assert_int_equal(root->rows[0].fused_ns, 4200); /* 7 of 20 passes */
    assert_contains(root->notes[1], "fused=True");
    rp_result_free(result);
    rp_trace_free(t);
}

static void kernels_of_inductor_are_not_listed(void **state)
{
    static const struct row rows[] = {
        OP(1, "triton_poi_fused_add_0", "triton_poi_fused_add_0", ONE, 6000),
        OP(2, "triton_red_fused_sum_1", "triton_red_fused_sum_1", ONE, 5000),
    };
    struct rp_trace *t = TRACE_OF(rows), *const one[] = {t};
    struct rp_result *result = ASK_TRACES(fusions, one, 1, {"no-simulate", NULL});
    const struct rp_fusions_root *root = result->root;

    UNUSED_STATE(state);
    assert_string_equal(root->compiler, "inductor");
    assert_int_equal(root->nrows, 0);
    assert_contains(root->notes[0], "compiled");
    rp_result_free(result);
    rp_trace_free(t);
}

static void sizes_are_read(void **state)
{
    static const struct {
        const char *type;
        double bytes;
    } widths[] = {{"float", 4},
                  {"double", 8},
                  {"c10::Half", 2},
                  {"c10::BFloat16", 2},
                  {"int", 4},
                  {"long int", 8},
                  {"long", 8},
                  {"bool", 1},
                  {"unsigned char", 1},
                  {"signed char", 1},
                  {"short", 2},
                  {"c10::Float8_e4m3fn", 1},
                  {"c10::Float8_e5m2", 1},
                  {"c10::complex<float>", 8}};
    struct rp_fusion_tensors t =
        rp_fusion_tensors_read("[[16, 256], [256], [], [[2, 3],\n [4]]]",
                               "[\"c10::BFloat16\", \"float\", \"Scalar\", \"TensorList\"]");

    UNUSED_STATE(state);
    assert_true(t.elements == 4096 && t.width == 2 && t.first == 8192);
    assert_true(t.bytes == 8192 + 1024 + 4 * (6 + 4));
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        char type[64];

        snprintf(type, sizeof type, "[\"%s\"]", widths[i].type);
        t = rp_fusion_tensors_read("[[10]]", type);
        assert_true(t.width == widths[i].bytes && t.bytes == 10 * widths[i].bytes);
    }
    t = rp_fusion_tensors_read("[[[[[[[[[[", NULL);
    assert_true(t.elements == 0);
    t = rp_fusion_tensors_read("]], 5,[-1, 1e300, 1e300]", NULL);
    assert_false(t.bytes < 0);
}

/* Forty chains on one H200: run one by one, and compiled into one kernel (microseconds). */
static const struct {
    int ops;
    double eager, fused;
} measured[] = {
    {7, 16.456, 2.996},     {8, 57.028, 12.276},   {8, 518.780, 66.008}, {7, 16.176, 3.620},
    {3, 5.088, 1.956},      {2, 3.016, 1.784},     {4, 6.068, 2.068},    {5, 325.704, 65.576},
    {2, 7.240, 4.232},      {2, 33.984, 19.748},   {5, 6.624, 1.868},    {8, 267.676, 36.508},
    {8, 1022.788, 128.300}, {5, 6.700, 2.568},     {3, 4.464, 1.808},    {8, 10.268, 1.772},
    {8, 14.788, 3.652},     {7, 892.708, 128.784}, {5, 6.808, 2.184},    {4, 10.024, 3.056},
    {7, 9.752, 1.788},      {2, 3.172, 1.792},     {3, 5.084, 2.408},    {8, 131.688, 17.676},
    {4, 5.356, 1.672},      {5, 36.672, 7.564},    {7, 13.144, 3.140},   {6, 11.068, 2.484},
    {2, 3.192, 2.336},      {4, 6.356, 2.124},     {5, 6.876, 1.760},    {6, 8.480, 2.044},
    {4, 30.744, 7.972},     {8, 19.560, 4.532},    {4, 9.240, 2.676},    {7, 23.316, 5.416},
    {8, 57.232, 6.140},     {2, 33.876, 17.884},   {6, 99.028, 21.116},  {4, 14.040, 4.100},
};

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void the_model_fits_measured_chains(void **state)
{
    double error[sizeof measured / sizeof measured[0]];
    size_t i, n = sizeof measured / sizeof measured[0];

    UNUSED_STATE(state);
    for (i = 0; i < n; i++) {
        double longest = 1e3 * measured[i].eager / measured[i].ops;
        double saved =
            1e3 * measured[i].eager - (double)rp_fused_ns((int64_t)longest, 2, 2 / longest);

        error[i] = fabs(saved / (1e3 * (measured[i].eager - measured[i].fused)) - 1);
    }
    qsort(error, n, sizeof error[0], by_size);
    assert_true(error[n / 2] < 0.03); /* the median */
    assert_true(error[n - 1] < 0.27); /* the worst */
}

int test_fusions(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repeated_chains_are_one_row),
        cmocka_unit_test(other_sizes_and_fills_end_a_chain),
        cmocka_unit_test(a_normalization_is_one_chain),
        cmocka_unit_test(an_optimizer_is_one_row),
        cmocka_unit_test(kernels_of_inductor_are_not_listed),
        cmocka_unit_test(sizes_are_read),
        cmocka_unit_test(the_model_fits_measured_chains),
    };

    return cmocka_run_group_tests_name("fusions", tests, NULL, NULL);
}
