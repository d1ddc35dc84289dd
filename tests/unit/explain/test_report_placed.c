/* SPDX-License-Identifier: Apache-2.0 */
/* Operators far below what the device can do: the reason from shapes and kernels, what is lost, and
   that what is in its place is left alone; the split of device time by category; and how much of
   the device is used. */
#include "explain/findings/finding.h"
#include "explain/findings/slow_operator.h"
#include "explain/report/report.h"
#include "trace/trace_fixtures.h"

#include <math.h>

#define US      1000
#define MS      1000000
#define H100    "NVIDIA H100 80GB HBM3"
#define EARLIER 11000 /* us: work before it belongs to a step before the first one */
#define BF16    "[\"c10::BFloat16\", \"c10::BFloat16\"]"

/* A call of an operator, and its kernel of so many microseconds, long after. */
#define CALL(n, op, dims, types, kernel, us)                                              \
    {'X', "cpu_op", op,           1,    1,    1000 * (n), 100,          0,    0, 0, NULL, \
     0,   0,        "Input Dims", dims, NULL, 0,          "Input type", types},           \
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 1000 * (n) + 10, 20, (n)},        \
    {                                                                                     \
        'X', "kernel", kernel, 0, 7, 10000 * US + 2000 * US *(n), (us)*US, (n), 7         \
    }

static struct rp_slow_operators slow; /* of the last trace */
static struct {
    int64_t ns;
    double bytes, rate;
    int64_t saved_ns;
} weights; /* the same */

static void place(const struct row *rows, size_t n, struct rp_arena *arena,
                  struct rp_report_part *part)
{
    struct rp_trace *t = trace_of(rows, n);
    struct rp_device device = {.id = 0}, *before = t->devices;
    struct rp_attribution places = {0};
    struct rp_trace_categories known;
    struct rp_op_costs costs = {0};
    struct rp_cost_calls calls = {0};
    struct rp_cost_peaks peaks;
    struct rp_work work;
    struct rp_finding_rank rank = {
        .work = &work, .costs = &costs, .calls = &calls, .peaks = &peaks, .arena = arena};

    rp_cost_peaks_of_device(&peaks, rp_device_by_name("H100"));
    for (device.name = 1; strcmp(rp_trace_str(t, device.name), H100) != 0;)
        assert_true(++device.name < t->str.n);
    t->devices = &device;
    t->ndevices = 1;
    *part = (struct rp_report_part){0};
    assert_code(rp_work_init(&work, t, &(struct rp_scope){0}, NULL), RP_OK);
    assert_code(rp_attribution_init(&places, &work, NULL), RP_OK);
    rp_trace_categories_init(&known, t, NULL);
    assert_code(rp_report_sum_categories(&work, &places, &known, part, NULL), RP_OK);
    assert_code(rp_op_costs_init(&costs, &known, NULL), RP_OK);
    assert_code(rp_cost_calls_init(&calls, &costs, &work, NULL, NULL, NULL), RP_OK);
    assert_code(rp_cost_calls_limit(&calls, &costs, &peaks, NULL), RP_OK);
    rank.trace = t;
    slow = (struct rp_slow_operators){0};
    assert_code(rp_finding_slow_operator.measure(&rank, &slow, NULL), RP_OK);
    memset(&weights, 0, sizeof weights);
    assert_code(rp_finding_weight_reads.measure(&rank, &weights, NULL), RP_OK);
    assert_code(rp_speed_add_calls(&part->speed, &work, &costs, &calls, &peaks, EARLIER * US, NULL),
                RP_OK);
    rp_cost_calls_release(&calls);
    rp_op_costs_release(&costs);
    rp_trace_categories_release(&known);
    rp_attribution_release(&places);
    rp_work_release(&work);
    t->devices = before;
    t->ndevices = 0;
    rp_trace_free(t);
}

static const char *kind_of_first(void)
{
    return rp_finding_slow_operator.kinds[slow.at[0].kind].key;
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
    assert_int_equal(slow.n, 1);
    assert_string_equal(kind_of_first(), "alignment");
    assert_string_equal(slow.at[0].op, "mm [[4096, 4095], [4095, 4096]]");
    assert_string_equal(slow.at[0].why, "K = 4095 is odd, the kernel is align1");
    assert_int_equal(slow.at[0].calls, 2);
    assert_true(slow.at[0].rate > 66e12 && slow.at[0].rate < 68e12);
    assert_true(slow.at[0].peak > 980e12 && slow.at[0].peak < 1000e12);
    /* twice the quickest call, without what it would take at 0.8 of the peak: 174 us */
    assert_true(slow.lost_ns > 3620 * US && slow.lost_ns < 3680 * US);
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
    assert_int_equal(slow.n, 1);
    assert_string_equal(kind_of_first(), "precision");
    assert_contains(slow.at[0].why, "TF32");
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
    assert_int_equal(slow.n, 1);
    assert_string_equal(kind_of_first(), "convolution");
    assert_null(slow.at[0].why);
    assert_contains(slow.at[0].op, "convolution_backward");
    rp_arena_release(&arena);
}

/* A product far below the peak of which no size says why is held against smaller ones. */
static void a_smaller_product_shows_what_is_possible(void **state)
{
    static const struct row rows[] = {
        DEVICE,
        /* 1,100 GFLOP in 3,300 us: 333 TFLOP/s */
        CALL(1, "aten::mm", "[[8192, 8192], [8192, 8192]]", BF16, "gemm_tn", 3300),
        /* 137 GFLOP in 250 us: 550 TFLOP/s */
        CALL(6, "aten::mm", "[[4096, 4096], [4096, 4096]]", BF16, "gemm_tn", 250),
    };
    /* a larger one says nothing about a smaller one */
    static const struct row larger[] = {
        DEVICE,
        CALL(1, "aten::mm", "[[8192, 8192], [8192, 8192]]", BF16, "gemm_tn", 2000),
        CALL(6, "aten::mm", "[[4096, 4096], [4096, 4096]]", BF16, "gemm_tn", 400),
    };
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_report_part part;

    UNUSED_STATE(state);
    PLACE(rows, &arena, &part);
    assert_int_equal(slow.n, 1);
    assert_string_equal(kind_of_first(), "product");
    assert_string_equal(slow.at[0].op, "mm [[8192, 8192], [8192, 8192]]");
    assert_string_equal(slow.at[0].why, "a smaller product reaches 549.8 TFLOP/s");
    assert_in_range(slow.lost_ns, 1299 * US, 1301 * US); /* it would take 2,000 us */
    PLACE(larger, &arena, &part);
    assert_int_equal(slow.n, 0);
    rp_arena_release(&arena);
}

/* Of one call of so many nanoseconds: the key of its kind; "": it is in its place. */
static const char *kind_at(const char *dims, const char *types, double ns)
{
    struct row rows[] = {DEVICE, CALL(1, "aten::mm", "", "", "gemm_tn", 1)};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_report_part part;

    rows[1].text = dims;
    rows[1].text2 = types;
    rows[3].dur = (int64_t)ns;
    PLACE(rows, &arena, &part);
    rp_arena_release(&arena);
    return slow.n ? kind_of_first() : "";
}

/* Of two products of which the smaller runs at `faster` times the rate of the larger. */
static size_t slow_beside(double faster)
{
    struct row rows[] = {DEVICE,
                         CALL(1, "aten::mm", "[[8192, 8192], [8192, 8192]]", BF16, "gemm_tn", 3300),
                         CALL(6, "aten::mm", "[[4096, 4096], [4096, 4096]]", BF16, "gemm_tn", 1)};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_report_part part;

    rows[6].dur = (int64_t)(3300 * US / 8 / faster);
    PLACE(rows, &arena, &part);
    rp_arena_release(&arena);
    return slow.n;
}

static void slow_operators_have_edges(void **state)
{
    static const char fp32[] = "[\"float\", \"float\"]";
    static const char cube[] = "[[4096, 4096], [4096, 4096]]";   /* bf16: 138.9 us */
    static const char odd[] = "[[4096, 4095], [4095, 4096]]";    /* 138.9 us */
    static const char little[] = "[[1024, 1039], [1039, 1024]]"; /* 2.2 us */
    static const char few[] = "[[8, 8192], [8192, 8192]]";       /* 40.1 us at 3.35 TB/s */

    UNUSED_STATE(state);
    assert_string_equal(kind_at(odd, BF16, 138.9e3 / 0.52), "");
    assert_string_equal(kind_at(odd, BF16, 138.9e3 / 0.48), "alignment");
    assert_string_equal(kind_at(little, BF16, 4900), "");
    assert_string_equal(kind_at(little, BF16, 5100), "alignment");
    assert_string_equal(kind_at(few, BF16, 40.1e3 / 0.68), "");
    assert_string_equal(kind_at(few, BF16, 40.1e3 / 0.62), "small");
    assert_string_equal(kind_at(cube, fp32, 2.05e6 / 0.32), "precision"); /* at 67 TFLOP/s */
    assert_string_equal(kind_at(cube, fp32, 2.05e6 / 0.28), "");
    assert_string_equal(kind_at(cube, BF16, 138.9e3 / 0.22), "");
    assert_string_equal(kind_at(cube, BF16, 138.9e3 / 0.18), "other");
    assert_string_equal(kind_at("[[60, 8192], [8192, 8192]]", BF16, 100e3), "small");
    assert_string_equal(kind_at("[[72, 8192], [8192, 8192]]", BF16, 100e3), "");
    assert_int_equal(slow_beside(1.2), 0);
    assert_int_equal(slow_beside(1.3), 1);
}

/* 134.5 MB of weights in 16 bits for 8 rows: 40.1 us at 3.35 TB/s, half of which 8 bits save. Many
   rows compute, and what is in 32 bits is slow for another reason. */
static void products_of_few_rows_read_weights(void **state)
{
    static const char few[] = "[[8, 8192], [8192, 8192]]";

    UNUSED_STATE(state);
    kind_at(few, BF16, 60e3);
    assert_in_range(weights.saved_ns, 20000, 20200);
    assert_true(weights.bytes > 134e6 && weights.bytes < 135e6);
    kind_at("[[4096, 4096], [4096, 4096]]", BF16, 200e3);
    assert_int_equal(weights.saved_ns, 0);
    kind_at(few, "[\"float\", \"float\"]", 120e3);
    assert_int_equal(weights.saved_ns, 0);
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
    assert_int_equal(slow.n, 0);
    assert_int_equal(part.category_ns[RP_CATEGORY_ELEMENTWISE], 18 * US);
    rp_arena_release(&arena);
}

static void flops_are_compared_with_the_peaks(void **state)
{
    static const struct row rows[] = {
        DEVICE,
        /* of the step before */
        {'X', "cpu_op", "aten::mm", 1, 1, 10, 20, .text_key = "Input Dims",
         .text = "[[4096, 4096], [4096, 4096]]", .text_key2 = "Input type", .text2 = BF16},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 15, 5, 90},
        {'X', "kernel", "nvjet_tst_128x256", 0, 7, 10500 * US, 200 * US, 90, 7},
        /* 137.4 GFLOP each, 139 us at the peak */
        CALL(1, "aten::mm", "[[4096, 4096], [4096, 4096]]", BF16, "nvjet_tst_128x256", 200),
        CALL(2, "aten::mm", "[[4096, 4096], [4096, 4096]]", BF16, "nvjet_tst_128x256", 300),
        /* faster than the device can: its shapes are not what its kernel computed */
        CALL(3, "aten::mm", "[[4096, 4096], [4096, 4096]]", BF16, "nvjet_tst_128x256", 100),
        /* 25.2 MB, 7.5 us at 3.35 TB/s */
        CALL(4, "aten::add", "[[2048, 2048], [2048, 2048]]", BF16, "elementwise_kernel", 10),
        /* no shapes */
        {'X', "cpu_op", "aten::bmm", 1, 1, 5000, 100},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 5010, 20, 5},
        {'X', "kernel", "gemm", 0, 7, 20000 * US, 50 * US, 5, 7},
        /* the larger table has the tokens */
        CALL(6, "aten::embedding", "[[512, 768], [1, 128]]", "[\"float\", \"long int\"]", "gather",
             5),
        CALL(7, "aten::embedding", "[[50257, 768], [16, 128]]", "[\"float\", \"long int\"]",
             "gather", 5),
        CALL(8, "aten::embedding", "[[512, 768], [1, 128]]", "[\"float\", \"long int\"]", "gather",
             5),
        /* images have three channels, what follows has more */
        CALL(9, "aten::conv2d", "[[64, 3, 224, 224], [64, 3, 7, 7]]", BF16, "conv", 900),
        CALL(10, "aten::conv2d", "[[64, 64, 56, 56], [64, 64, 3, 3]]", BF16, "conv", 900),
    };
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_report_part part;
    struct rp_speed_rank rank = {.sums = &part.speed, .window_ns = 4000 * US, .steps = 2};
    struct rp_report_speed speed;
    double flops = 2.0 * 4096 * 4096 * 4096;

    UNUSED_STATE(state);
    PLACE(rows, &arena, &part);
    assert_true(part.speed.flops_of[RP_NUMBER_BF16] == 2 * flops);
    assert_int_equal(part.speed.known_matrix_ns, 500 * US);
    assert_int_equal(part.speed.matrix_ns, 2450 * US);
    assert_true(part.speed.tokens == 16 * 128);
    assert_true(part.speed.samples == 64);

    speed = rp_report_speed_of(&rank, 1);
    assert_true(isnan(speed.mfu_share)); /* most of the time of products is unknown */
    assert_true(speed.tokens == 1024 && speed.tokens_per_s > 511999 && speed.tokens_per_s < 512001);
    part.speed.matrix_ns = 600 * US;
    part.speed.device_ns = part.speed.known_ns + 10 * US;
    part.speed.earlier_ns = 1000 * US;
    speed = rp_report_speed_of(&rank, 1);
    assert_true(speed.flops == flops);
    assert_string_equal(speed.format, "bf16");
    assert_true(speed.mfu_share > 2 * flops / 989.5e12 / 0.003 &&
                speed.mfu_share < 2 * flops / 988.5e12 / 0.003);
    assert_true(speed.light_ns > 139 * US && speed.light_ns < 149 * US);
    assert_contains(
        rp_report_speed_text(&speed, 2000 * US, 1000 * US, false, &arena),
        "MFU at least 9.3 % (about 18.5 % without the profiler): 137.4 GFLOP a step, bf16 "
        "989.0 TFLOP/s; at the device's peaks its work takes ");
    rp_arena_release(&arena);
}

/* Of a step of 1 ms with so much of its times known. */
static struct rp_report_speed speed_of(struct rp_speed_sums *sums)
{
    struct rp_speed_rank rank = {.sums = sums, .window_ns = MS, .steps = 1};

    return rp_report_speed_of(&rank, 1);
}

static void what_is_said_of_the_speed_has_edges(void **state)
{
    struct rp_speed_sums s = {.matrix_ns = 1000,
                              .device_ns = 1000,
                              .matrix_s = 1e-4,
                              .least_s = 1e-4,
                              .tokens = 5,
                              .table_rows = 100};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_report_speed speed;

    UNUSED_STATE(state);
    s.flops_of[RP_NUMBER_BF16] = 1e9;
    s.peak_of[RP_NUMBER_BF16] = 1e13;
    s.known_matrix_ns = 490;
    assert_true(isnan(speed_of(&s).mfu_share));
    s.known_matrix_ns = 510;
    assert_false(isnan(speed_of(&s).mfu_share));
    s.known_matrix_ns = 940;
    speed = speed_of(&s);
    assert_contains(rp_report_speed_text(&speed, MS, RP_ABSENT_I64, false, &arena), "at least");
    s.known_matrix_ns = 960;
    speed = speed_of(&s);
    assert_null(strstr(rp_report_speed_text(&speed, MS, RP_ABSENT_I64, false, &arena), "at least"));

    s.known_ns = 790;
    assert_int_equal(speed_of(&s).light_ns, RP_ABSENT_I64);
    s.known_ns = 810;
    assert_int_not_equal(speed_of(&s).light_ns, RP_ABSENT_I64);
    s.least_s = 0.95e-6;
    speed = speed_of(&s);
    assert_null(strstr(rp_report_speed_text(&speed, MS, RP_ABSENT_I64, false, &arena), "peaks"));
    s.least_s = 1.05e-6;
    speed = speed_of(&s);
    assert_contains(rp_report_speed_text(&speed, MS, RP_ABSENT_I64, false, &arena), "peaks");

    s.other_rows = 24;
    assert_true(speed_of(&s).tokens == 5);
    speed = speed_of(&s);
    assert_null(strstr(rp_report_speed_text(&speed, 915000, RP_ABSENT_I64, false, &arena), "over"));
    assert_contains(rp_report_speed_text(&speed, 900000, RP_ABSENT_I64, false, &arena), "over all");
    s.other_rows = 26;
    assert_true(isnan(speed_of(&s).tokens));
    rp_arena_release(&arena);
}

/* Text encoders of a picture have a table each: what they look up is not what is made. */
static void several_large_tables_hold_no_tokens(void **state)
{
    static const struct row rows[] = {
        DEVICE,
        CALL(1, "aten::embedding", "[[32128, 4096], [1, 256]]", "[\"float\", \"long int\"]",
             "gather", 5),
        CALL(2, "aten::embedding", "[[49408, 768], [2, 77]]", "[\"float\", \"long int\"]", "gather",
             5),
        CALL(3, "aten::embedding", "[[49408, 1280], [2, 77]]", "[\"float\", \"long int\"]",
             "gather", 5),
    };
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_report_part part;
    struct rp_speed_rank rank = {.sums = &part.speed, .window_ns = 4000 * US, .steps = 2};

    UNUSED_STATE(state);
    PLACE(rows, &arena, &part);
    assert_true(isnan(rp_report_speed_of(&rank, 1).tokens));
    rank.tokens = 100; /* a server counted them */
    assert_true(rp_report_speed_of(&rank, 1).tokens == 50);
    rp_arena_release(&arena);
}

static void small_shares_and_unlike_steps_are_said(void **state)
{
    struct rp_report_speed speed = {.mfu_share = 0.0002,
                                    .flops = 6e7,
                                    .format = "fp32",
                                    .peak_flops_per_s = 15.7e12,
                                    .known_share = 0.9,
                                    .light_ns = RP_ABSENT_I64,
                                    .tokens = NAN,
                                    .samples = 512,
                                    .samples_per_s = 755};
    struct rp_arena arena = RP_ARENA_INIT;

    UNUSED_STATE(state);
    assert_string_equal(rp_report_speed_text(&speed, 1015 * MS, 500 * MS, false, &arena),
                        "MFU below 0.1 %: 60.0 MFLOP a step, fp32 15.7 TFLOP/s; 512 images a "
                        "step, 755 a second over all steps");
    assert_contains(rp_report_speed_text(&speed, 678 * MS, RP_ABSENT_I64, false, &arena),
                    "755 a second");
    assert_null(strstr(rp_report_speed_text(&speed, 678 * MS, RP_ABSENT_I64, false, &arena),
                       "over all steps"));
    rp_arena_release(&arena);
}

#define THREE "[\"c10::BFloat16\", \"c10::BFloat16\", \"c10::BFloat16\"]"

/* Which of the sizes of a product is odd: a bias comes before its matrices, the weights of a linear
   layer are transposed, and a batch has a dimension more. */
static void sizes_of_products(void **state)
{
    static const struct {
        const char *op, *dims, *kernel, *why;
    } cases[] = {
        {"aten::addmm", "[[4096], [4096, 4095], [4095, 4096]]", "gemm_nn_align1",
         "K = 4095 is odd, the kernel is align1"},
        {"aten::mm", "[[4096, 4096], [4096, 4095]]", "gemm_nn_align1",
         "N = 4095 is odd, the kernel is align1"},
        {"aten::mm", "[[4096, 4096], [4096, 4095]]", "gemm_nn_align16", "N = 4095 is odd"},
        {"aten::mm", "[[4096, 4092], [4092, 4096]]", "gemm_nn", "K = 4092 is not a multiple of 8"},
        {"aten::mm", "[[4096, 4096], [4096, 4092]]", "gemm_nn", "N = 4092 is not a multiple of 8"},
        {"aten::bmm", "[[8, 2048, 2049], [8, 2049, 2048]]", "gemm_nn", "K = 2049 is odd"},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct row rows[] = {
            DEVICE, CALL(1, cases[i].op, cases[i].dims, THREE, cases[i].kernel, 2000)};
        struct rp_arena arena = RP_ARENA_INIT;
        struct rp_report_part part;

        PLACE(rows, &arena, &part);
        if (slow.n != 1)
            fail_msg("case %zu", i);
        assert_string_equal(kind_of_first(), "alignment");
        assert_string_equal(slow.at[0].why, cases[i].why);
        rp_arena_release(&arena);
    }
}

int test_report_placed(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_of_products),
        cmocka_unit_test(an_odd_size_is_the_reason),
        cmocka_unit_test(full_precision_is_the_reason),
        cmocka_unit_test(convolutions_are_told_apart),
        cmocka_unit_test(a_smaller_product_shows_what_is_possible),
        cmocka_unit_test(slow_operators_have_edges),
        cmocka_unit_test(products_of_few_rows_read_weights),
        cmocka_unit_test(what_is_in_its_place_is_left_alone),
        cmocka_unit_test(flops_are_compared_with_the_peaks),
        cmocka_unit_test(what_is_said_of_the_speed_has_edges),
        cmocka_unit_test(several_large_tables_hold_no_tokens),
        cmocka_unit_test(small_shares_and_unlike_steps_are_said),
    };

    return cmocka_run_group_tests_name("report_placed", tests, NULL, NULL);
}
