/* SPDX-License-Identifier: Apache-2.0 */
/* Whose work a kernel is, and how good it is. */
#include "explain/roofline/roofline.h"

#include "ask_fixture.h"
#include "cost/inputs.h"
#include "trace/trace_fixtures.h"

#include <math.h>

extern const struct rp_question_row rp_ask_roofline;

#define DIMS(d) .text_key = "Input Dims", .text = (d)
#define BF16                   \
    .text_key2 = "Input type", \
    .text2 = "[\"c10::BFloat16\", \"c10::BFloat16\", \"c10::BFloat16\", \"Scalar\", \"Scalar\"]"

#define LINEAR "[[64, 128], [256, 128], [256]]"
#define ADDMM  "[[256], [64, 128], [128, 256], [], []]"
#define QKV    "[[1, 4, 64, 32], [1, 4, 64, 32], [1, 4, 64, 32], [], []]"

/* A linear layer in two kernels, attention that is made of products, a kernel of an operator
   without a model, one whose launch is missing, and a copy. Times are in nanoseconds. */
static const struct row rows[] = {
    {'X', "cpu_op", "aten::linear", 1, 1, 0, 100, DIMS(LINEAR), BF16},
    {'X', "cpu_op", "aten::addmm", 1, 1, 10, 80, DIMS(ADDMM), BF16},
    {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 20, 5, 11},
    {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 30, 5, 12},
    {'X', "cpu_op", "aten::scaled_dot_product_attention", 1, 1, 200, 300, DIMS(QKV), BF16},
    {'X', "cpu_op", "aten::_scaled_dot_product_attention_math", 1, 1, 210, 280, DIMS(QKV), BF16},
    {'X', "cpu_op", "aten::bmm", 1, 1, 220, 50, DIMS("[[4, 64, 32], [4, 32, 64]]"), BF16},
    {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 230, 5, 13},
    {'X', "cpu_op", "aten::_softmax", 1, 1, 300, 50, DIMS("[[4, 64, 64]]"), BF16},
    {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 310, 5, 14},
    {'X', "cpu_op", "my::thing", 1, 1, 600, 50, DIMS("[[64]]"), BF16},
    {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 610, 5, 15},
    {'X', "cpu_op", "aten::mul", 1, 1, 700, 50, DIMS("[[1024, 1024], [1024, 1024]]"), BF16},
    {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 710, 5, 16},
    {'X', "kernel", "mul_kernel", 0, 7, 5, 7000, 99, 7}, /* launched before the recording */
    {'X', "kernel", "gemm_bf16", 0, 7, 10000, 4000, 11, 7},
    {'X', "kernel", "splitKreduce", 0, 7, 14000, 1000, 12, 7},
    {'X', "kernel", "bmm_kernel", 0, 7, 20000, 2000, 13, 7},
    {'X', "kernel", "softmax_kernel", 0, 7, 22000, 3000, 14, 7},
    {'X', "kernel", "mystery", 0, 7, 26000, 500, 15, 7},
    {'X', "kernel", "mul_kernel", 0, 7, 30000, 9000, 16, 7},
    {'X', "gpu_memcpy", "Memcpy DtoD (Device -> Device)", 0, 7, 50000, 1000, 17, 7, .key = "bytes",
     .value = 500000},
};

static const struct rp_roof_row *find_row(const struct rp_roof_root *root, const char *name)
{
    size_t i;

    for (i = 0; i < root->nrows; i++)
        if (!strcmp(root->rows[i].name, name))
            return &root->rows[i];
    fail_msg("no row '%s'", name);
    return NULL;
}

static void each_kernel_is_counted_once(void **state)
{
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result =
        ASK_TRACES(roofline, &t, 1, {"limit", "0"}, {"peak", "flops=1e12,bytes=1e12"});
    const struct rp_roof_root *root = result->root;
    const struct rp_roof_row *row;
    int64_t sum = 0;
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < root->nrows; i++)
        sum += root->rows[i].device_ns;
    assert_int_equal(root->device_ns, 27500);
    assert_int_equal(sum, root->device_ns);
    assert_int_equal(root->nrows, 5);

    /* the inner operator of a layer, with both of its kernels */
    row = find_row(root, "aten::addmm");
    assert_int_equal(row->calls, 1);
    assert_int_equal(row->kernels, 2);
    assert_int_equal(row->device_ns, 5000);
    assert_string_equal(row->shape, "[256] [64,128] [128,256]");
    assert_string_equal(row->type, "bf16");
    assert_string_equal(row->category, "matmul");
    assert_true(row->flops == 2. * 64 * 128 * 256);
    assert_true(row->bytes == 2. * (256 + 64 * 128 + 128 * 256 + 64 * 256));
    assert_string_equal(row->bound, "compute");
    assert_true(fabs(row->peak_share - row->flops / 1e12 / 5e-6) < 1e-12);

    /* attention as a whole, though its parts have models */
    row = find_row(root, "aten::scaled_dot_product_attention");
    assert_int_equal(row->device_ns, 5000);
    assert_true(row->flops == 4. * 4 * 64 * 64 * 32);

    row = find_row(root, "my::thing");
    assert_true(isnan(row->flops) && isnan(row->peak_share) && !row->bound);
    assert_int_equal(row->saved_ns, RP_ABSENT_I64);
    assert_contains(row->missing, "no model");

    /* the kernel without a launch belongs to the operator that launches it elsewhere */
    row = find_row(root, "aten::mul");
    assert_int_equal(row->calls, 2);
    assert_int_equal(row->device_ns, 16000);
    assert_true(row->flops == 2 * 1048576.);
    assert_string_equal(row->bound, "memory");

    row = find_row(root, "Memcpy DtoD (Device -> Device)");
    assert_true(row->bytes == 1000000.);
    assert_string_equal(row->category, "copy");
    rp_result_free(result);
    rp_trace_free(t);
}

static void shares_and_savings_follow_from_the_peaks(void **state)
{
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result = ASK_TRACES(roofline, &t, 1, {"limit", "0"}, {"achievable", "0.5"},
                                          {"peak", "flops=1e15,bytes=1e12"});
    const struct rp_roof_root *root = result->root;
    const struct rp_roof_row *row = find_row(root, "aten::mul");
    double least = 3 * 2097152. / 1e12; /* of a call, in seconds: 6.29 µs */

    UNUSED_STATE(state);
    assert_true(fabs(row->peak_share - 2 * least / 16e-6) < 1e-9);
    assert_int_equal(row->saved_ns, 0); /* 12.6 µs a call are achievable, and it takes 8 */
    /* 2 µs, not the 0.2 µs that its bytes need */
    row = find_row(root, "aten::addmm");
    assert_string_equal(row->bound, "latency");
    assert_int_equal(row->saved_ns, 3000);
    assert_true(root->modelled_ns == 27000 && root->classes_ns == 27000);
    assert_true(root->rated_share == 1);
    rp_result_free(result);

    /* without peaks there are rates, but no limits */
    result = ASK_TRACES(roofline, &t, 1, {"limit", "0"});
    root = result->root;
    row = find_row(root, "aten::mul");
    assert_null(row->bound);
    assert_true(isnan(row->peak_share) && row->bytes_per_s > 0);
    rp_result_free(result);
    rp_trace_free(t);
}

/* A product in two kernels, and once more without launches. */
static void kernels_without_launches_are_calls_once(void **state)
{
    static const struct row split[] = {
        {'X', "cpu_op", "aten::addmm", 1, 1, 0, 100, DIMS(ADDMM), BF16},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 20, 5, 11},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 30, 5, 12},
        {'X', "kernel", "gemm_bf16", 0, 7, 10000, 4000, 11, 7},
        {'X', "kernel", "splitKreduce", 0, 7, 14000, 1000, 12, 7},
        {'X', "kernel", "gemm_bf16", 0, 7, 20000, 4000, 98, 7},
        {'X', "kernel", "splitKreduce", 0, 7, 24000, 1000, 99, 7},
    };
    struct rp_trace *t = TRACE_OF(split);
    struct rp_result *result = ASK_TRACES(roofline, &t, 1, {"peak", "flops=1e15,bytes=1e12"});
    const struct rp_roof_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->nrows, 1);
    assert_int_equal(root->rows[0].calls, 2);
    assert_int_equal(root->rows[0].kernels, 4);
    assert_int_equal(root->rows[0].device_ns, 10000);
    assert_true(root->rows[0].flops == 2 * 2. * 64 * 128 * 256);
    rp_result_free(result);
    rp_trace_free(t);
}

/* The note names the format of the products, and what a recording lacks. */
static void notes_are_about_this_recording(void **state)
{
    static const struct row plain[] = {
        {'X', "cpu_op", "aten::mm", 1, 1, 0, 50, DIMS("[[64, 128], [128, 256]]"),
         .text_key2 = "Input type", .text2 = "[\"float\", \"float\"]"},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 10, 5, 11},
        {'X', "cpu_op", "aten::bmm", 1, 1, 100, 50},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 110, 5, 12},
        {'X', "kernel", "sgemm", 0, 7, 10000, 4000, 11, 7},
        {'X', "kernel", "other_sgemm", 0, 7, 15000, 1000, 12, 7},
    };
    struct rp_trace *t = TRACE_OF(plain);
    struct rp_result *result = ASK_TRACES(roofline, &t, 1, {"device", "V100"});
    const struct rp_roof_root *root = result->root;

    UNUSED_STATE(state);
    assert_string_equal(root->matrix_type, "fp32");
    assert_true(root->matrix_flops_per_s == 15.7e12);
    assert_contains(root->notes[0], "15.7 TFLOP/s for products in fp32");
    assert_contains(root->notes[1], "record_shapes=True");
    assert_int_equal(root->nunmodelled, 1);
    assert_string_equal(root->unmodelled[0].name, "aten::bmm");
    assert_int_equal(root->unmodelled[0].device_ns, 1000);
    assert_int_equal(root->nknown, 1);
    assert_string_equal(root->summary,
                        "unknown device, by shape; 80.0 % of the device time modelled");
    rp_result_free(result);
    result = ASK_TRACES(roofline, &t, 1, {"peak", "bytes=1e12"});
    root = result->root;
    assert_true(isnan(root->matrix_flops_per_s));
    assert_contains(root->notes[0], "for products in fp32 not known");
    assert_contains(root->summary, "modelled, 0.0 % with a share of a peak");
    rp_result_free(result);
    rp_trace_free(t);
}

static void work_is_divided_among_kernels(void **state)
{
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_trace *two[] = {t, t};
    struct rp_result *result =
        ASK_TRACES(roofline, two, 2, {"by", "kernel"}, {"peak", "flops=1e12,bytes=1e12"});
    const struct rp_roof_root *root = result->root;
    const struct rp_roof_row *main = find_row(root, "gemm_bf16"),
                             *rest = find_row(root, "splitKreduce");
    double flops = 2. * 64 * 128 * 256;

    UNUSED_STATE(state);
    assert_int_equal(main->calls, 2); /* of two ranks */
    assert_int_equal(main->device_ns, 8000);
    assert_true(fabs(main->flops - 2 * 0.8 * flops) < 1);
    assert_true(fabs(main->flops + rest->flops - 2 * flops) < 1);
    assert_true(fabs(main->flops_per_s - rest->flops_per_s) < 1);
    rp_result_free(result);

    result = ASK_TRACES(roofline, two, 2, {"by", "category"}, {"device", "H100"});
    root = result->root;
    assert_string_equal(root->peaks, "H100");
    assert_int_equal(find_row(root, "attention")->device_ns, 10000);
    assert_int_equal(find_row(root, "other")->device_ns, 1000);
    rp_result_free(result);
    rp_trace_free(t);
}

/* A server's step: the lengths of its sequences are in its mark. */
static void marks_of_servers_tell_lengths(void **state)
{
    struct rp_batch b = {0};

    UNUSED_STATE(state);
    assert_true(rp_batch_parse(
        "execute_12_context_2(sq10sk14sqsq58sqsk70)_generation_2(sq2sk9sqsq2sqsk9)", &b));
    assert_true(b.tokens == 12 && b.keys == 23);
    assert_true(b.pairs == 70 - (58 - 10) / 2. + 9);
    b = (struct rp_batch){0};
    assert_false(rp_batch_parse("execute_context_3(12)_generation_0(0)", &b));
    assert_false(rp_batch_parse("step[DECODE bs=32]", &b));
    b = (struct rp_batch){0};
    assert_true(rp_batch_parse("step[EXTEND bs=2 toks=10 c_sqsq=58 c_sqsk=70 c_sk=14]", &b));
    assert_true(b.tokens == 10 && b.keys == 14 && b.pairs == 70 - (58 - 10) / 2.);
    b = (struct rp_batch){0};
    assert_true(rp_batch_parse("step[decode bs=8 g_sqsq=64 g_sqsk=100 g_sk=100]", &b));
    assert_true(b.tokens == 8 && b.keys == 100 && b.pairs == 100);
}

/* Of a mark with lengths around the mark of the step, and a shorter one with fewer words inside. */
static void lengths_are_found_in_marks_around_a_step(void **state)
{
    static const struct row served[] = {
        {'X', "user_annotation",
         "execute_2_context_0(sq0sk0sqsq0sqsk0)_generation_2(sq2sk30sqsq2sqsk30)", 1, 1, 0, 1000},
        {'X', "user_annotation", "step[DECODE bs=2]", 1, 1, 10, 900},
        {'X', "cpu_op", "vllm::unified_attention_with_output", 1, 1, 100, 50,
         DIMS("[[2, 8, 64], [2, 2, 64], [2, 2, 64]]"), BF16},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 110, 5, 11},
        {'X', "kernel", "attention", 0, 7, 200, 100, 11, 7},
    };
    struct rp_trace *t = TRACE_OF(served);
    struct rp_result *result = ASK_TRACES(roofline, &t, 1, {"limit", "0"}, {"by", "op"});
    const struct rp_roof_row *row = find_row(result->root, "vllm::unified_attention_with_output");

    UNUSED_STATE(state);
    assert_true(row->flops == 4. * 30 * 8 * 64);
    rp_result_free(result);
    rp_trace_free(t);
}

/* Of 10 µs of products, so much is of an operator without shapes: whether a note says so. */
static bool shapes_are_missed(int64_t ns)
{
    const struct row mixed[] = {
        {'X', "cpu_op", "aten::mm", 1, 1, 0, 50, DIMS("[[64, 128], [128, 256]]"), BF16},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 10, 5, 11},
        {'X', "cpu_op", "aten::bmm", 1, 1, 100, 50},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 110, 5, 12},
        {'X', "kernel", "gemm", 0, 7, 10000, 10000 - ns, 11, 7},
        {'X', "kernel", "other_gemm", 0, 7, 25000, ns, 12, 7},
    };
    struct rp_trace *t = TRACE_OF(mixed);
    struct rp_result *result = ASK_TRACES(roofline, &t, 1, {"device", "V100"});
    const struct rp_roof_root *root = result->root;
    bool missed = false;

    for (size_t i = 0; i < root->nnotes; i++)
        missed = missed || strstr(root->notes[i], "shapes were not recorded");
    rp_result_free(result);
    rp_trace_free(t);
    return missed;
}

static void shapes_that_are_missing_have_an_edge(void **state)
{
    UNUSED_STATE(state);
    assert_true(shapes_are_missed(1100));
    assert_false(shapes_are_missed(900));
}

/* A list of tensors is shown by its first one, however the file is written. */
static void lists_of_tensors_are_counted(void **state)
{
    static const char *const dims[] = {"[[[2, 3], [4, 5]], []]", "[ [ [2, 3], [4, 5] ], [ ] ]",
                                       "[[\t[2, 3],\n[4, 5]], []]"};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        const struct row some[] = {
            {'X', "cpu_op", "aten::cat", 1, 1, 0, 100, DIMS(dims[i])},
            {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 20, 5, 11},
            {'X', "kernel", "cat", 0, 7, 1000, 500, 11, 7},
        };
        struct rp_trace *t = TRACE_OF(some);
        struct rp_result *result =
            ASK_TRACES(roofline, &t, 1, {"limit", "0"}, {"peak", "flops=1e12,bytes=1e12"});

        assert_string_equal(find_row(result->root, "aten::cat")->shape, "[2,3] … 2 tensors");
        rp_result_free(result);
        rp_trace_free(t);
    }
}

int test_roofline(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_tensors_are_counted),
        cmocka_unit_test(each_kernel_is_counted_once),
        cmocka_unit_test(shares_and_savings_follow_from_the_peaks),
        cmocka_unit_test(notes_are_about_this_recording),
        cmocka_unit_test(kernels_without_launches_are_calls_once),
        cmocka_unit_test(work_is_divided_among_kernels),
        cmocka_unit_test(marks_of_servers_tell_lengths),
        cmocka_unit_test(lengths_are_found_in_marks_around_a_step),
        cmocka_unit_test(shapes_that_are_missing_have_an_edge),
    };

    return cmocka_run_group_tests_name("roofline", tests, NULL, NULL);
}
