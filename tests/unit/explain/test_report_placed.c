/* SPDX-License-Identifier: Apache-2.0 */
/* Operators far below what the device can do: the reason from shapes and kernels, what is lost, and
   that what is in its place is left alone; and the split of device time by category. */
#include "explain/report/report.h"
#include "trace/trace_fixtures.h"

#define US   1000
#define H100 "NVIDIA H100 80GB HBM3"
#define BF16 "[\"c10::BFloat16\", \"c10::BFloat16\"]"

/* A call of an operator, and its kernel of so many microseconds, long after. */
#define CALL(n, op, dims, types, kernel, us)                                              \
    {'X', "cpu_op", op,           1,    1,    1000 * (n), 100,          0,    0, 0, NULL, \
     0,   0,        "Input Dims", dims, NULL, 0,          "Input type", types},           \
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 1000 * (n) + 10, 20, (n)},        \
    {                                                                                     \
        'X', "kernel", kernel, 0, 7, 10000 * US + 2000 * US *(n), (us)*US, (n), 7         \
    }

static void place(const struct row *rows, size_t n, struct rp_arena *arena,
                  struct rp_report_part *part)
{
    struct rp_trace *t = trace_of(rows, n);
    struct rp_device device = {.id = 0}, *before = t->devices;
    struct rp_attribution places = {0};
    struct rp_trace_categories known;
    struct rp_work work;

    for (device.name = 1; strcmp(rp_trace_str(t, device.name), H100) != 0;)
        assert_true(++device.name < t->str.n);
    t->devices = &device;
    t->ndevices = 1;
    *part = (struct rp_report_part){0};
    assert_code(rp_work_init(&work, t, &(struct rp_scope){0}, NULL), RP_OK);
    assert_code(rp_attribution_init(&places, &work, NULL), RP_OK);
    rp_trace_categories_init(&known, t, NULL);
    assert_code(rp_report_sum_categories(&work, &places, &known, part, NULL), RP_OK);
    assert_code(rp_report_place_operators(&work, &known, arena, part, NULL), RP_OK);
    rp_trace_categories_release(&known);
    rp_attribution_release(&places);
    rp_work_release(&work);
    t->devices = before;
    t->ndevices = 0;
    rp_trace_free(t);
}

#define PLACE(rows, arena, part) place((rows), sizeof(rows) / sizeof(rows)[0], (arena), (part))
#define DEVICE                                   \
    {                                            \
        'X', "user_annotation", H100, 1, 1, 0, 1 \
    }

static void an_odd_size_is_the_reason(void **state)
{
    /* 137 GFLOP in 2,000 us: 69 of 989 TFLOP/s */
    static const struct row rows[] = {
        DEVICE,
        CALL(1, "aten::mm", "[[4096, 4095], [4095, 4096]]", BF16, "gemm_bf16_128x128_nn_align1",
             2000),
        CALL(2, "aten::mm", "[[4096, 4095], [4095, 4096]]", BF16, "gemm_bf16_128x128_nn_align1",
             2100),
    };
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_report_part part;

    UNUSED_STATE(state);
    PLACE(rows, &arena, &part);
    assert_int_equal(part.nplaced, 1);
    assert_int_equal(part.placed[0].kind, RP_PLACED_ALIGNMENT);
    assert_string_equal(part.placed[0].op, "mm [[4096, 4095], [4095, 4096]]");
    assert_string_equal(part.placed[0].why, "K = 4095 is odd, the kernel is align1");
    assert_int_equal(part.placed[0].calls, 2);
    assert_true(part.placed[0].rate > 66e12 && part.placed[0].rate < 68e12);
    assert_true(part.placed[0].peak > 980e12 && part.placed[0].peak < 1000e12);
    /* twice the quickest call, without what it would take at 0.8 of the peak: 174 us */
    assert_true(part.placed_lost_ns > 3620 * US && part.placed_lost_ns < 3680 * US);
    assert_int_equal(part.category_ns[RP_CATEGORY_MATMUL], 4100 * US);
    rp_arena_release(&arena);
}

static void full_precision_is_the_reason(void **state)
{
    static const struct row rows[] = {
        DEVICE,
        /* 50 of 67 TFLOP/s: as fast as float32 can be */
        CALL(1, "aten::mm", "[[4096, 4096], [4096, 4096]]", "[\"float\", \"float\"]",
             "sm80_xmma_gemm_f32f32_f32f32_f32", 2750),
    };
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_report_part part;

    UNUSED_STATE(state);
    PLACE(rows, &arena, &part);
    assert_int_equal(part.nplaced, 1);
    assert_int_equal(part.placed[0].kind, RP_PLACED_PRECISION);
    assert_contains(part.placed[0].why, "TF32");
    rp_arena_release(&arena);
}

/* They have advice of their own. */
static void convolutions_are_told_apart(void **state)
{
    static const struct row rows[] = {
        DEVICE,
        {'X', "cpu_op", "aten::convolution_backward", 1, 1, 1000, 100, .text_key = "Input Dims",
         .text = "[[64, 256, 14, 14], [64, 256, 14, 14], [256, 256, 3, 3], [], [], [], [], [], [], "
                 "[], []]",
         .text_key2 = "Concrete Inputs",
         .text2 = "[\"\", \"\", \"\", \"[0]\", \"[1, 1]\", \"[1, 1]\", \"[1, 1]\", \"False\", "
                  "\"[0, 0]\", \"1\", \"[True, True, False]\"]"},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 1010, 20, 1},
        {'X', "kernel", "xmma_wgrad_bf16bf16_bf16f32_f32", 0, 7, 12000 * US, 1500 * US, 1, 7},
        CALL(2, "aten::add", "[[2048, 2048], [2048, 2048]]", BF16, "elementwise_kernel", 100),
    };
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_report_part part;

    UNUSED_STATE(state);
    PLACE(rows, &arena, &part);
    assert_int_equal(part.nplaced, 1);
    assert_int_equal(part.placed[0].kind, RP_PLACED_CONVOLUTION);
    assert_null(part.placed[0].why);
    assert_contains(part.placed[0].op, "convolution_backward");
    rp_arena_release(&arena);
}

static void what_is_in_its_place_is_left_alone(void **state)
{
    static const struct row rows[] = {
        DEVICE,
        /* 137 GFLOP in 200 us: 687 TFLOP/s */
        CALL(1, "aten::mm", "[[4096, 4096], [4096, 4096]]", BF16, "nvjet_tst_128x256", 200),
        /* 25 MB in 10 us: 2.5 of 3.35 TB/s */
        CALL(2, "aten::add", "[[2048, 2048], [2048, 2048]]", BF16, "vectorized_elementwise_kernel",
             10),
        /* limited by its latency */
        CALL(3, "aten::add", "[[16, 16], [16, 16]]", BF16, "vectorized_elementwise_kernel", 8),
        /* slow once, because of something else */
        CALL(4, "aten::mm", "[[4096, 4096], [4096, 4096]]", BF16, "nvjet_tst_128x256", 1900),
    };
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_report_part part;

    UNUSED_STATE(state);
    PLACE(rows, &arena, &part);
    assert_int_equal(part.nplaced, 0);
    assert_int_equal(part.category_ns[RP_CATEGORY_ELEMENTWISE], 18 * US);
    rp_arena_release(&arena);
}

int test_report_placed(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_odd_size_is_the_reason),
        cmocka_unit_test(full_precision_is_the_reason),
        cmocka_unit_test(convolutions_are_told_apart),
        cmocka_unit_test(what_is_in_its_place_is_left_alone),
    };

    return cmocka_run_group_tests_name("report_placed", tests, NULL, NULL);
}
