/* SPDX-License-Identifier: Apache-2.0 */
/* Device work by the call of an operator that it belongs to. */
#include "cost/learn/from_trace.h"
#include "cost/models.h"
#include "trace/trace_fixtures.h"

#include <math.h>

#define MM(ts, dur)                                                                              \
    {                                                                                            \
        'X', "cpu_op", "aten::mm", 1, 1, ts, dur,                                                \
            .text_key = "Input Dims", .text = "[[64, 32], [32, 16]]", .text_key2 = "Input type", \
            .text2 = "[\"float\", \"float\"]"                                                    \
    }
#define MM_FLOPS (2. * 64 * 32 * 16)
#define MM_BYTES (4. * (64 * 32 + 32 * 16 + 64 * 16))

struct called {
    struct rp_trace *t;
    struct rp_work work;
    struct rp_trace_categories categories;
    struct rp_op_costs costs;
    struct rp_cost_calls calls;
};

static struct called calls_of(const struct row *rows, size_t n)
{
    struct called c = {.t = trace_of(rows, n)};
    struct rp_err err = RP_ERR_INIT;

    assert_ok(rp_work_init(&c.work, c.t, NULL, &err), &err);
    rp_trace_categories_init(&c.categories, c.t, NULL);
    return c;
}

/* The costs point to the categories, so both stay where they are. */
static void count_calls(struct called *c)
{
    struct rp_err err = RP_ERR_INIT;

    assert_ok(rp_op_costs_init(&c->costs, &c->categories, &err), &err);
    assert_ok(rp_cost_calls_init(&c->calls, &c->costs, &c->work, NULL, NULL, &err), &err);
    assert_int_equal(c->calls.of_item.n, c->work.items.n);
}

static void release_calls(struct called *c)
{
    rp_cost_calls_release(&c->calls);
    rp_op_costs_release(&c->costs);
    rp_trace_categories_release(&c->categories);
    rp_work_release(&c->work);
    rp_trace_free(c->t);
}

static const struct rp_op_cost *cost_of_call(const struct called *c, size_t i)
{
    return &c->costs.costs.at[c->calls.calls.at[i].cost];
}

/* The product launches two kernels, of which the second is longer; what is around it has no model.
 */
static void kernels_of_an_operator_are_one_call(void **state)
{
    const struct row rows[] = {
        {'X', "cpu_op", "my::layer", 1, 1, 0, 100},
        MM(10, 50),
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 20, 5, 1},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 30, 5, 2},
        {'X', "kernel", "splitk", 0, 7, 100, 10, 1, 7},
        {'X', "kernel", "sgemm", 0, 7, 120, 40, 2, 7},
    };
    struct called c = calls_of(rows, 6);

    UNUSED_STATE(state);
    count_calls(&c);
    assert_int_equal(c.calls.calls.n, 1);
    assert_int_equal(c.calls.calls.at[0].nitems, 2);
    assert_int_equal(c.calls.calls.at[0].device_ns, 50);
    assert_int_equal(c.calls.calls.at[0].longest_ns, 40);
    assert_int_equal(c.calls.calls.at[0].item, 1);
    assert_string_equal(name_of(c.t, c.calls.calls.at[0].op), "aten::mm");
    assert_true(cost_of_call(&c, 0)->flops == MM_FLOPS && cost_of_call(&c, 0)->bytes == MM_BYTES);
    assert_false(c.calls.calls.at[0].inferred || c.calls.calls.at[0].on_link);
    release_calls(&c);
}

/* A copy in the memory of a device reads and writes it; one to it only writes. */
static void copies_move_their_bytes_once_or_twice(void **state)
{
    const struct row rows[] = {
        {'X', "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 0, 7, 0, 5, 1, 7, 0, "bytes", 1000},
        {'X', "gpu_memcpy", "Memcpy DtoD (Device -> Device)", 0, 7, 10, 5, 2, 7, 0, "bytes", 1000},
        {'X', "gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 0, 7, 20, 5, 3, 7},
        {'X', "gpu_memcpy", "Memcpy DtoD (Device -> Device)", 0, 7, 30, 5, 4, 7, 0, "bytes", 0},
    };
    struct called c = calls_of(rows, 4);

    UNUSED_STATE(state);
    count_calls(&c);
    assert_int_equal(c.calls.calls.n, 4);
    assert_true(c.calls.calls.at[0].on_link && cost_of_call(&c, 0)->bytes == 1000);
    assert_true(!c.calls.calls.at[1].on_link && cost_of_call(&c, 1)->bytes == 2000);
    assert_true(cost_of_call(&c, 1)->flops == 0);
    assert_contains(cost_of_call(&c, 2)->missing, "size was not recorded");
    assert_true(isnan(cost_of_call(&c, 2)->bytes));
    assert_true(rp_cost_is_known(cost_of_call(&c, 3)) && cost_of_call(&c, 3)->bytes == 0);
    release_calls(&c);
}

/* The recording began after the first launch: the same kernel is a product elsewhere. Another
   kernel occurs nowhere else, and a third is launched outside of every operator. */
static void a_kernel_without_launch_is_like_its_equals(void **state)
{
    const struct row rows[] = {
        {'X', "kernel", "sgemm", 0, 7, 0, 45, 91, 7},
        {'X', "kernel", "odd", 0, 7, 50, 5, 92, 7},
        MM(10, 50),
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 20, 5, 1},
        {'X', "kernel", "sgemm", 0, 7, 100, 40, 1, 7},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 80, 5, 2},
        {'X', "kernel", "alone", 0, 7, 200, 40, 2, 7},
    };
    struct called c = calls_of(rows, 7);

    UNUSED_STATE(state);
    count_calls(&c);
    assert_int_equal(c.calls.calls.n, 4);
    assert_true(c.calls.calls.at[0].inferred && !c.calls.calls.at[0].is_part);
    assert_true(cost_of_call(&c, 0)->flops == MM_FLOPS);
    assert_false(c.calls.calls.at[1].inferred);
    assert_contains(cost_of_call(&c, 1)->missing, "no operator");
    assert_false(c.calls.calls.at[2].inferred);
    assert_true(cost_of_call(&c, 2)->flops == MM_FLOPS);
    assert_contains(cost_of_call(&c, 3)->missing, "no operator");
    release_calls(&c);
}

/* Attention with a mask has half of the pairs.
   Each operator launches one kernel, a microsecond longer than the one before. */
static void calls_become_rows_of_a_table(void **state)
{
#define QKV_OF(n) "[2, 8, " n ", 64]"
#define CAUSAL_OF(n, flag, op, length)                                                 \
    {                                                                                  \
        "aten::_scaled_dot_product_flash_attention",                                   \
            "[" QKV_OF(n) ", " QKV_OF(n) ", " QKV_OF(n) ", [], [], [], []]", NULL, op, \
            {2, 8, length, 64}, "ampere_sgemm_32x32",                                  \
            "[\"\", \"\", \"\", \"0.\", \"" flag "\", \"False\", \"\"]"                \
    }
    static const struct {
        const char *op, *dims, *types, *name;
        double dim[7];
        const char *kernel;   /* NULL: it says nothing */
        const char *concrete; /* values of arguments; NULL: not recorded */
    } want[] = {
        {"aten::mm", "[[64, 32], [32, 16]]", "[\"float\", \"float\"]", "matmul", {64, 32, 16}},
        {"aten::addmm",
         "[[16], [64, 32], [32, 16]]",
         "[\"float\", \"float\", \"float\"]",
         "matmul",
         {64, 32, 16}},
        {"aten::bmm", "[[8, 4, 5], [8, 5, 6]]", "[\"float\", \"float\"]", "bmm", {8, 4, 5, 6}},
        {"aten::relu_", "[[4, 100]]", "[\"float\"]", "relu", {400}},
        {"aten::sum", "[[4, 100]]", "[\"float\"]", "sum", {4, 100}},
        {"aten::_scaled_dot_product_flash_attention_backward",
         "[[2, 8, 128, 32], [2, 8, 128, 64], [2, 8, 256, 64], [2, 8, 256, 32]]",
         "[\"float\", \"float\", \"float\", \"float\"]",
         "sdpa_backward",
         {2, 8, 128, 64}},
        {"aten::convolution",
         "[[2, 16, 32, 32], [8, 16, 3, 5], [], [], [], [], [], [], []]",
         NULL,
         "conv2d",
         {2, 16, 32, 32, 8, 5, 2},
         "implicit_convolve_sgemm",
         "[\"\", \"\", \"\", \"[2, 2]\", \"[1, 2]\", \"[1, 1]\", \"False\", \"[0, 0]\", \"1\"]"},
        {"aten::convolution",
         "[[2, 16, 32, 32], [16, 1, 3, 3], [], [], [], [], [], [], []]",
         NULL,
         "grouped_conv2d",
         {32768},
         "implicit_convolve_sgemm",
         "[\"\", \"\", \"\", \"[1, 1]\", \"[1, 1]\", \"[1, 1]\", \"False\", \"[0, 0]\", \"16\"]"},
        {"aten::mm", "[[64, 32], [32, 16]]", NULL, "matmul", {64, 32, 16}, "ampere_sgemm_32x32"},
        {"aten::native_layer_norm",
         "[[4, 100], [], [100], [100], []]",
         "[\"float\", \"ScalarList\", \"float\", \"float\", \"Scalar\"]",
         "layernorm",
         {4, 100}},
        {"aten::native_layer_norm_backward",
         "[[4, 100], [4, 100], [], [4, 1], [4, 1], [100], [100], []]",
         "[\"float\", \"float\", \"ScalarList\", \"float\", \"float\", \"float\", \"float\", \"\"]",
         "layernorm_backward",
         {4, 100}},
        {"aten::_softmax",
         "[[4, 100], [], []]",
         "[\"float\", \"Scalar\", \"Scalar\"]",
         "softmax",
         {4, 100}},
        {"aten::_log_softmax",
         "[[4, 100], [], []]",
         "[\"float\", \"Scalar\", \"Scalar\"]",
         "log_softmax",
         {4, 100}},
        {"aten::_softmax_backward_data",
         "[[4, 100], [4, 100], [], []]",
         "[\"float\", \"float\", \"Scalar\", \"Scalar\"]",
         "softmax_backward",
         {4, 100}},
        CAUSAL_OF("4", "True", "sdpa_causal", 4), /* ten pairs of sixteen */
        CAUSAL_OF("2", "True", "sdpa", 2),        /* three of four are as good as all */
        CAUSAL_OF("256", "True", "sdpa_causal", 256),
        CAUSAL_OF("256", "False", "sdpa", 256),
        {"aten::mm", NULL, NULL, NULL, {0}}, /* nothing is known of this one */
    };
    enum { N = sizeof want / sizeof *want };
    struct row rows[3 * N];
    struct rp_samples samples = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_trace *t;

    UNUSED_STATE(state);
    for (int i = 0; i < N; i++) {
        rows[3 * i] = (struct row){'X', "cpu_op", want[i].op, 1, 1, 100 * i, 90};
        if (want[i].dims) {
            rows[3 * i].text_key = "Input Dims";
            rows[3 * i].text = want[i].dims;
            rows[3 * i].text_key2 = want[i].types      ? "Input type"
                                    : want[i].concrete ? "Concrete Inputs"
                                                       : NULL;
            rows[3 * i].text2 = want[i].types ? want[i].types : want[i].concrete;
        }
        rows[3 * i + 1] =
            (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 100 * i + 5, 5, i + 1};
        rows[3 * i + 2] = (struct row){'X',
                                       "kernel",
                                       want[i].kernel ? want[i].kernel : "k",
                                       0,
                                       7,
                                       20000 * i,
                                       1000 + 1000 * i,
                                       i + 1,
                                       7};
    }
    t = TRACE_OF(rows);
    assert_ok(rp_samples_of_trace(&samples, t, NULL, "H200", NULL, NULL, &err), &err);
    assert_int_equal(samples.rows.n, N - 1);
    for (int i = 0; i < N - 1; i++) {
        const struct rp_sample *s = &samples.rows.at[i];

        assert_string_equal(s->op, want[i].name);
        assert_string_equal(s->device, "H200");
        assert_true(s->ns == 1000 + 1000 * i && s->type == RP_NUMBER_FP32);
        for (int k = 0; k < 7; k++)
            assert_true(k < s->ndims ? s->dim[k] == want[i].dim[k] : want[i].dim[k] == 0);
    }
    rp_samples_release(&samples);
    rp_trace_free(t);
}

/* Operators that differ in one of their texts are counted each for itself. */
static void every_text_matters(void **state)
{
#define MUL(dims, key2, second)                                                         \
    {                                                                                   \
        'X', "cpu_op", "aten::mul", 1, 1, 0, 1, .text_key = "Input Dims", .text = dims, \
                                                .text_key2 = key2, .text2 = second      \
    }
    static const double bytes[] = {3 * 64 * 4, 3 * 32 * 4, 3 * 64 * 8, 3 * 64 * 4,
                                   (2 * 64 + 8) * 4};
    const struct row rows[] = {
        MUL("[[8, 8], [8, 8]]", "Input type", "[\"float\", \"float\"]"),
        MUL("[[8, 4], [8, 4]]", "Input type", "[\"float\", \"float\"]"),
        MUL("[[8, 8], [8, 8]]", "Input type", "[\"double\", \"double\"]"),
        MUL("[[8, 8], [8, 8]]", "Input Strides",
            "[[8, 1], [8, 1]]"), /* the kernel tells the type */
        MUL("[[8, 8], [8, 8]]", "Input Strides", "[[8, 1], [0, 1]]"), /* one row, repeated */
        {'X', "kernel", "ampere_sgemm_32x32", 0, 7, 0, 45, 91, 7},
    };
    struct called c = calls_of(rows, 6);
    struct rp_err err = RP_ERR_INIT;
    uint32_t at[5];

    UNUSED_STATE(state);
    assert_ok(rp_op_costs_init(&c.costs, &c.categories, &err), &err);
    for (rp_event e = 0; e < 5; e++) {
        assert_ok(rp_op_cost_of(&c.costs, e, e > 2 ? c.t->ev.name[5] : 0, &at[e], &err), &err);
        assert_true(c.costs.costs.at[at[e]].bytes == bytes[e]);
    }
    assert_ok(rp_op_cost_of(&c.costs, 3, 0, &at[0], &err), &err); /* and without a kernel nothing */
    assert_string_equal(c.costs.costs.at[at[0]].missing, RP_NO_TYPES);
    release_calls(&c);
}

static bool seven_flops(void *user, const struct rp_trace *trace, rp_event item,
                        struct rp_op_cost *out)
{
    assert_string_equal(name_of(trace, item), user);
    *out = (struct rp_op_cost){.flops = 7, .bytes = 9};
    return true;
}

/* One kernel has no operator, the other one without a model; a third has its model. */
static void others_know_what_has_no_model(void **state)
{
    const struct row rows[] = {
        {'X', "cpu_op", "my::thing", 1, 1, 10, 50},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 20, 5, 1},
        {'X', "kernel", "fusion", 0, 7, 100, 40, 1, 7},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 80, 5, 2},
        {'X', "kernel", "fusion", 0, 7, 200, 40, 2, 7},
        MM(100, 50),
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 110, 5, 3},
        {'X', "kernel", "sgemm", 0, 7, 300, 40, 3, 7},
    };
    struct called c = calls_of(rows, 8);
    struct rp_err err = RP_ERR_INIT;
    char name[] = "fusion";

    UNUSED_STATE(state);
    assert_ok(rp_op_costs_init(&c.costs, &c.categories, &err), &err);
    assert_ok(rp_cost_calls_init(&c.calls, &c.costs, &c.work, seven_flops, name, &err), &err);
    assert_int_equal(c.calls.calls.n, 3);
    for (int i = 0; i < 2; i++)
        assert_true(cost_of_call(&c, i)->flops == 7 && cost_of_call(&c, i)->bytes == 9);
    assert_true(cost_of_call(&c, 2)->flops == MM_FLOPS);
    release_calls(&c);
}

/* A product with the peaks of a device that would take so many times as long for it. */
static void check_limit(double compute, double memory, const char *missing, double least)
{
    const struct row rows[] = {MM(100, 50),
                               {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 110, 5, 3},
                               {'X', "kernel", "sgemm", 0, 7, 300, 40, 3, 7}};
    struct called c = calls_of(rows, 3);
    struct rp_cost_peaks peaks = {0};
    struct rp_err err = RP_ERR_INIT;
    double taken;

    count_calls(&c);
    taken = (double)c.calls.calls.at[0].device_ns * 1e-9;
    peaks.matrix[RP_NUMBER_FP32] = compute > 0 ? MM_FLOPS / (compute * taken) : 0;
    peaks.memory = memory > 0 ? MM_BYTES / (memory * taken) : 0;
    assert_ok(rp_cost_calls_limit(&c.calls, &c.costs, &peaks, &err), &err);
    if (missing) {
        assert_string_equal(cost_of_call(&c, 0)->missing, missing);
        assert_true(isnan(cost_of_call(&c, 0)->flops));
    } else {
        assert_true(cost_of_call(&c, 0)->flops == MM_FLOPS);
        assert_float_equal(rp_cost_least_s(&c.calls.calls.at[0], cost_of_call(&c, 0), &peaks) /
                               taken,
                           least, 1e-6);
    }
    release_calls(&c);
}

/* An operator that takes so many seconds, on a device with that bandwidth of memory (0: not known).
 */
static bool is_possible(double flops, double bytes, double seconds, double memory)
{
    const struct row rows[] = {MM(100, 50),
                               {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 110, 5, 3},
                               {'X', "kernel", "sgemm", 0, 7, 300, 40, 3, 7}};
    struct called c = calls_of(rows, 3);
    struct rp_cost_peaks peaks = {.memory = memory};
    struct rp_err err = RP_ERR_INIT;
    bool possible;

    count_calls(&c);
    c.calls.calls.at[0].device_ns = (int64_t)(seconds * 1e9);
    c.costs.costs.at[c.calls.calls.at[0].cost].flops = flops;
    c.costs.costs.at[c.calls.calls.at[0].cost].bytes = bytes;
    assert_ok(rp_cost_calls_limit(&c.calls, &c.costs, &peaks, &err), &err);
    possible = rp_cost_is_known(cost_of_call(&c, 0));
    release_calls(&c);
    return possible;
}

/* Arithmetic is never faster than its peak, memory only as far as caches go. */
static void what_no_device_can_do_is_not_modelled(void **state)
{
    UNUSED_STATE(state);
    check_limit(0.5, 0.25, NULL, 0.5);
    check_limit(0.25, 0.5, NULL, 0.5);
    check_limit(1.04, 0.5, NULL, 1);
    check_limit(1.06, 0.5, RP_ABOVE_PEAK, 0);
    check_limit(0.5, 1.5, NULL, 1);
    check_limit(0.5, 3.9, NULL, 1);
    check_limit(0.5, 4.1, RP_ABOVE_PEAK, 0);
    assert_true(is_possible(0, 290e6, 1, 290e6 / 2)); /* twice as fast as memory: a cache */
    assert_false(is_possible(0, 310e6, 1, 310e6 / 2));
}

/* Where the device is not known. */
static void without_peaks_only_the_absurd_is_removed(void **state)
{
    UNUSED_STATE(state);
    assert_true(is_possible(2.9e16, 1, 1, 0));
    assert_false(is_possible(3.3e16, 1, 1, 0));
    assert_true(is_possible(1, 0.95e14, 1, 0));
    assert_false(is_possible(1, 1.05e14, 1, 0));
}

#define NEAR(name, ts, link)                      \
    {                                             \
        'X', "kernel", name, 0, 7, ts, 5, link, 7 \
    }

/* Two products launch the same kernel among others, of which the first and the last of three on
   either side differ; a third launch was not recorded. */
static void neighbours_tell_kernels_apart(void **state)
{
    const struct row rows[] = {
        NEAR("a", 0, 91),
        NEAR("q", 10, 92),
        NEAR("r", 20, 93),
        NEAR("x", 30, 94),
        NEAR("r", 40, 95),
        NEAR("q", 50, 96),
        NEAR("z", 60, 97),

        NEAR("a", 1000, 81),
        NEAR("q", 1010, 82),
        NEAR("r", 1020, 83),
        NEAR("x", 1030, 1),
        NEAR("r", 1040, 84),
        NEAR("q", 1050, 85),
        NEAR("z", 1060, 86),

        NEAR("b", 2000, 71),
        NEAR("q", 2010, 72),
        NEAR("r", 2020, 73),
        NEAR("x", 2030, 2),
        NEAR("r", 2040, 74),
        NEAR("q", 2050, 75),
        NEAR("y", 2060, 76),
        MM(900, 50),
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 910, 5, 1},
        {'X', "cpu_op", "aten::mm", 1, 1, 1900, 50, .text_key = "Input Dims",
         .text = "[[8, 8], [8, 8]]", .text_key2 = "Input type", .text2 = "[\"float\", \"float\"]"},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 1910, 5, 2},
    };
    struct called c = calls_of(rows, sizeof rows / sizeof *rows);
    const struct rp_cost_call *first;

    UNUSED_STATE(state);
    count_calls(&c);
    first = &c.calls.calls.at[c.calls.of_item.at[3]];
    assert_string_equal(name_of(c.t, c.work.items.at[3].event), "x");
    assert_true(first->inferred);
    assert_true(c.costs.costs.at[first->cost].flops == MM_FLOPS);
    release_calls(&c);
}

int test_calls(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_of_an_operator_are_one_call),
        cmocka_unit_test(copies_move_their_bytes_once_or_twice),
        cmocka_unit_test(a_kernel_without_launch_is_like_its_equals),
        cmocka_unit_test(calls_become_rows_of_a_table),
        cmocka_unit_test(every_text_matters),
        cmocka_unit_test(others_know_what_has_no_model),
        cmocka_unit_test(what_no_device_can_do_is_not_modelled),
        cmocka_unit_test(without_peaks_only_the_absurd_is_removed),
        cmocka_unit_test(neighbours_tell_kernels_apart),
    };

    return cmocka_run_group_tests_name("calls", tests, NULL, NULL);
}
