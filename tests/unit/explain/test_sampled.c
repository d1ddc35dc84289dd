/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of call stacks name the line in which the launching thread was during gaps. */
#include "explain/ask_fixture.h"
#include "explain/idle/idle.h"
#include "explain/report/report.h"
#include "explain/stalls/stalls.h"
#include "explain/top/top.h"
#include "trace/trace_fixtures.h"

extern const struct rp_question_row rp_ask_idle, rp_ask_report, rp_ask_stalls, rp_ask_top;

#define US 1000
#define MS 1000000

/* Two kernels with a gap from 1 to 31 ms, in which the thread 1 launches late. */
#define LATE                                                                          \
    {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 0, 4 * US, 1},                    \
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 31 * MS - 4 * US, 4 * US, 2}, \
        {'X', "kernel", "gemm", 0, 7, 10 * US, 990 * US, 1, 7},                       \
    {                                                                                 \
        'X', "kernel", "gemm", 0, 7, 31 * MS, 90 * US, 2, 7                           \
    }

static const struct row nothing_recorded[] = {LATE};
static const struct row with_span[] = {
    LATE, {'X', "user_annotation", "preprocess", 1, 1, 1 * MS, 30 * MS - 4 * US}};

enum { DECODE, TRAIN, READ, TAKE_GIL, SYSCALL };

static const struct rp_call_frame frames[] = {{0, 0, 88, RP_FRAME_PYTHON},
                                              {0, 0, 12, RP_FRAME_PYTHON},
                                              {0, 0, 0, RP_FRAME_NATIVE},
                                              {0, 0, 0, RP_FRAME_NATIVE},
                                              {0, 0, 0, RP_FRAME_KERNEL}};
static const char *const names[] = {"decode", "train", "read", "take_gil", "sys_read"};
static const char *const files[] = {"/home/me/datasets/image.py", "/home/me/train.py",
                                    "/lib/libc.so.6", "", ""};

/* The stack of some frames, the outermost first. */
static uint32_t stack_of(struct rp_builder *b, const int *at, size_t n)
{
    uint32_t stack = RP_NONE, frame;
    size_t i;

    for (i = 0; i < n; i++) {
        struct rp_call_frame f = frames[at[i]];

        f.name = str_of(b, names[at[i]]);
        f.file = str_of(b, files[at[i]]);
        assert_code(rp_builder_frame(b, &f, &frame, NULL), RP_OK);
        assert_code(rp_builder_stack(b, stack, frame, &stack, NULL), RP_OK);
    }
    return stack;
}

/* One sample a millisecond of a thread, from begin on. */
static void sample(struct rp_builder *b, int64_t thread, int64_t begin, int n, uint32_t stack,
                   uint8_t flags)
{
    struct rp_raw_sample raw = {begin, MS, track_of(b, 1, thread), stack, flags};

    for (; n > 0; n--, raw.ts_ns += MS)
        assert_code(rp_builder_add_sample(b, &raw, NULL), RP_OK);
}

#define STACK(b, ...) \
    stack_of((b), (const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

/* In the gap 18 ms in decode, mostly waiting for the GIL, 12 in train; the rest must not count. */
static struct rp_trace *decoding(const struct row *rows, size_t n)
{
    struct rp_builder *b = build_rows(rows, n);
    uint32_t waiting = STACK(b, TRAIN, DECODE, TAKE_GIL);

    sample(b, 1, 1 * MS, 15, waiting, RP_SAMPLE_WAITED | RP_SAMPLE_WANTS_GIL);
    sample(b, 1, 16 * MS, 3, STACK(b, TRAIN, DECODE), RP_SAMPLE_RAN | RP_SAMPLE_HAD_GIL);
    sample(b, 1, 19 * MS, 12, STACK(b, TRAIN), RP_SAMPLE_RAN);
    sample(b, 1, 32 * MS, 90, STACK(b, TRAIN), RP_SAMPLE_RAN); /* after the gap */
    sample(b, 2, 1 * MS, 30, STACK(b, READ), RP_SAMPLE_RAN);   /* of another thread */
    return finish_valid(b);
}

static void expect_text(const char *text, const char *wanted)
{
    if (wanted)
        assert_string_equal(text, wanted);
    else
        assert_null(text);
}

/* The evidence of a cause, and its line. Free the answer. */
static struct rp_result *expect_cause(struct rp_trace *t, const char *cause, const char *evidence,
                                      const char *sampled)
{
    struct rp_result *result = ASK_TRACES(idle, &t, 1, {"limit", "1"});
    const struct rp_idle_root *root = result->root;
    const struct rp_idle_rank *rank = &root->ranks[0];
    size_t i;

    for (i = 0; i < rank->ncauses && strcmp(rank->causes[i].cause, cause) != 0; i++)
        ;
    assert_in_range(i + 1, 1, rank->ncauses);
    assert_string_equal(rank->causes[i].evidence, evidence);
    expect_text(rank->causes[i].sampled, sampled);
    return result;
}

/* And of the longest gap, which is of that cause. */
static void expect(struct rp_trace *t, const char *cause, const char *evidence, const char *sampled)
{
    struct rp_result *result = expect_cause(t, cause, evidence, sampled);

    expect_text(((const struct rp_idle_root *)result->root)->gaps[0].sampled, sampled);
    rp_result_free(result);
}

#define ROWS(rows) (rows), sizeof(rows) / sizeof(rows)[0]

static void a_line_is_named_where_nothing_was_recorded(void **state)
{
    struct rp_trace *t = decoding(ROWS(nothing_recorded)), *bare = TRACE_OF(nothing_recorded);
    struct rp_result *result = ASK_TRACES(idle, &t, 1, {"limit", "1"});
    const struct rp_idle_gap *gap = ((const struct rp_idle_root *)result->root)->gaps;

    UNUSED_STATE(state);
    expect(t, "host_unrecorded", "decode at image.py:88 (60 % of it, waiting for the GIL)",
           "decode at /home/me/datasets/image.py:88");
    assert_null(gap->host);
    assert_string_equal(gap->host_label, "decode at image.py:88");
    expect(bare, "host_unrecorded", "nothing recorded on the thread (100 % of it)", NULL);
    rp_result_free(result);
    rp_trace_free(t);
    rp_trace_free(bare);
}

/* The holder is who other samples of the time found with it, not who had it later. */
static void the_holder_of_the_lock_is_named(void **state)
{
    struct rp_builder *b = build_rows(ROWS(nothing_recorded));
    struct rp_trace *t;

    UNUSED_STATE(state);
    sample(b, 1, 1 * MS, 30, STACK(b, TRAIN, DECODE, TAKE_GIL),
           RP_SAMPLE_WAITED | RP_SAMPLE_WANTS_GIL);
    sample(b, 2, 1 * MS, 10, STACK(b, READ), RP_SAMPLE_RAN | RP_SAMPLE_HAD_GIL);
    sample(b, 3, 11 * MS, 20, STACK(b, READ), RP_SAMPLE_RAN | RP_SAMPLE_HAD_GIL);
    sample(b, 4, 200 * MS, 90, STACK(b, READ), RP_SAMPLE_RAN | RP_SAMPLE_HAD_GIL);
    t = finish_valid(b);
    expect(t, "host_unrecorded",
           "decode at image.py:88 (100 % of it, waiting for the GIL held by thread 3)",
           "decode at /home/me/datasets/image.py:88");
    rp_trace_free(t);
}

static void a_long_span_keeps_its_name_and_gets_a_line(void **state)
{
    struct rp_trace *t = decoding(ROWS(with_span));

    UNUSED_STATE(state);
    expect(t, "host_work",
           "preprocess (100 % of it); decode at image.py:88 (60 % of it, waiting for the GIL)",
           "decode at /home/me/datasets/image.py:88");
    rp_trace_free(t);
}

/* Samples of a processor's time only: 6 ms of the 30 are known to be there. */
static void native_code_without_python_is_named_by_function(void **state)
{
    struct rp_builder *b = build_rows(ROWS(nothing_recorded));
    struct rp_trace *t;

    UNUSED_STATE(state);
    sample(b, 1, 2 * MS, 6, STACK(b, TAKE_GIL, READ, SYSCALL), RP_SAMPLE_RAN);
    sample(b, 1, 9 * MS, 3, STACK(b, SYSCALL), RP_SAMPLE_RAN);
    sample(b, 1, 12 * MS, 7, RP_NONE, 0); /* could not be read */
    t = finish_valid(b);
    expect(t, "host_unrecorded", "read in libc.so.6 (20 % of it)", "read in /lib/libc.so.6");
    rp_trace_free(t);
}

/* A wait is one sample, from its begin on. It is over when the thread launches, whatever its
   weight: none of it is in the second gap. */
static void a_wait_lasts_until_the_thread_goes_on(void **state)
{
    static const struct row rows[] = {
        LATE,
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 31500 * US, 4 * US, 3},
        {'X', "kernel", "gemm", 0, 7, 31510 * US, 90 * US, 3, 7}};
    struct rp_builder *b = build_rows(ROWS(rows));
    struct rp_raw_sample wait = {100 * US, 9900 * US, track_of(b, 1, 1), STACK(b, TRAIN),
                                 RP_SAMPLE_WAITED};
    struct rp_trace *t;

    UNUSED_STATE(state);
    assert_code(rp_builder_add_sample(b, &wait, NULL), RP_OK); /* 9 ms of the gap */
    wait.ts_ns = 10 * MS;
    wait.weight = 41 * MS;
    wait.stack = STACK(b, TRAIN, DECODE); /* 21 ms of it */
    assert_code(rp_builder_add_sample(b, &wait, NULL), RP_OK);
    t = finish_valid(b);
    expect(t, "host_unrecorded", "decode at image.py:88 (70 % of it)",
           "decode at /home/me/datasets/image.py:88");
    rp_result_free(
        expect_cause(t, "not_launched", "nothing recorded on the thread (100 % of it)", NULL));
    rp_trace_free(t);
}

static void memory_and_profiles_without_times_say_nothing(void **state)
{
    struct rp_builder *b = build_rows(ROWS(nothing_recorded));
    struct rp_raw_sample raw = {RP_NO_TS, MS, track_of(b, 1, 1), STACK(b, DECODE), 0};
    struct rp_trace *t;

    UNUSED_STATE(state);
    assert_code(rp_builder_add_sample(b, &raw, NULL), RP_OK);
    t = finish_valid(b);
    expect(t, "host_unrecorded", "nothing recorded on the thread (100 % of it)", NULL);
    rp_trace_free(t);
    t = decoding(ROWS(nothing_recorded));
    t->samples.unit = RP_WEIGHT_BYTES;
    expect(t, "host_unrecorded", "nothing recorded on the thread (100 % of it)", NULL);
    rp_trace_free(t);
}

static void the_report_says_the_same(void **state)
{
    struct rp_trace *t = decoding(ROWS(nothing_recorded));
    struct rp_result *result = ASK_TRACES(report, &t, 1, {"rank", "0"});
    const struct rp_report_root *root = result->root;
    bool found = false;
    size_t i, k;

    UNUSED_STATE(state);
    for (i = 0; i < root->nfindings; i++)
        for (k = 0; k < root->findings[i].nevidence; k++)
            found = found || strstr(root->findings[i].evidence[k],
                                    "mainly decode at image.py:88 (60 % of it, waiting for the "
                                    "GIL)") != NULL;
    assert_true(found);
    rp_result_free(result);
    rp_trace_free(t);
}

/* The gap and the kernels, by the lines in which the launching thread was. */
static void a_line_has_time_of_the_device(void **state)
{
    struct rp_trace *t = decoding(ROWS(nothing_recorded));
    struct rp_result *result = ASK_TRACES(top, &t, 1, {"by", "line"}, {"width", "idle"});
    const struct rp_stacks_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->whole_ns, 30 * MS);
    assert_string_equal(root->rows[0].label, "image.py:88 decode");
    assert_int_equal(root->rows[0].self_ns, 18 * MS);
    assert_int_equal(root->rows[1].self_ns, 12 * MS);
    rp_result_free(result);
    /* the first launch is 1 ms before the first sample: decode; the second 4 us before the end */
    result = ASK_TRACES(top, &t, 1, {"by", "line"}, {"width", "gpu"});
    root = result->root;
    assert_string_equal(root->summary, "device time by line");
    assert_int_equal(root->whole_ns, 1080 * US);
    assert_string_equal(root->rows[0].label, "image.py:88 decode");
    assert_int_equal(root->rows[0].self_ns, 990 * US);
    assert_string_equal(root->rows[1].label, "train.py:12 train");
    assert_int_equal(root->rows[1].self_ns, 90 * US);
    rp_result_free(result);
    rp_trace_free(t);
}

/* The same of spans of Python functions: a kernel of the backward pass belongs to the line of its
   forward operator, and in a gap each span has what is in no span inside it. */
static void spans_have_time_of_the_device(void **state)
{
    static const struct row rows[] = {
        LATE,
        {'X', "python_function", "train.py(12): train", 1, 1, 0, 40 * MS},
        {'X', "python_function", "image.py(88): decode", 1, 1, 2 * MS, 10 * MS},
        {'X', "python_function", "image.py(90): read", 1, 1, 3 * MS, 4 * MS}};
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result = ASK_TRACES(top, &t, 1, {"by", "line"}, {"width", "idle"});
    const struct rp_stacks_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->whole_ns, 30 * MS);
    assert_int_equal(root->nrows, 3);
    assert_int_equal(root->rows[0].self_ns, 20 * MS); /* train */
    assert_int_equal(root->rows[1].self_ns, 6 * MS);  /* decode */
    assert_int_equal(root->rows[2].self_ns, 4 * MS);  /* read */
    rp_result_free(result);
    result = ASK_TRACES(top, &t, 1, {"by", "line"}, {"width", "gpu"});
    root = result->root;
    assert_int_equal(root->nrows, 1);
    assert_int_equal(root->rows[0].self_ns, 1080 * US);
    rp_result_free(result);
    rp_trace_free(t);
}

static void without_operators_the_report_shows_lines(void **state)
{
    static const struct row nothing[] = {{'i', "", "recording started", 1, 1, 0, 0}};
    struct rp_trace *t = decoding(ROWS(nothing));
    struct rp_result *result = ASK_TRACES(report, &t, 1, {"rank", "0"});
    const struct rp_report_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->nfindings, 0);
    assert_int_equal(root->sampled.ran_ns, 135 * MS);
    assert_int_equal(root->sampled.waited_ns, 15 * MS);
    assert_int_equal(root->sampled.wants_gil_ns, 15 * MS);
    assert_int_equal(root->sampled.nlines, 3);
    assert_string_equal(root->sampled.lines[0].label, "train.py:12 train");
    assert_int_equal(root->sampled.lines[0].self_ns, 102 * MS);
    assert_contains(root->sampled_text, "15.0 ms of it for the GIL");
    rp_result_free(result);
    rp_trace_free(t);
}

/* Operators with a pause of 29 ms between them, of which nothing but samples is known. */
static void a_pause_names_its_line(void **state)
{
    static const struct row rows[] = {{'X', "cpu_op", "aten::mm", 1, 1, 0, 1 * MS},
                                      {'X', "cpu_op", "aten::mm", 1, 1, 30 * MS, 1 * MS}};
    struct rp_builder *b = build_rows(ROWS(rows));
    struct rp_trace *t;
    struct rp_result *result;
    const struct rp_report_root *root;

    UNUSED_STATE(state);
    sample(b, 1, 2 * MS, 20, STACK(b, TRAIN, DECODE), RP_SAMPLE_RAN | RP_SAMPLE_HAD_GIL);
    t = finish_valid(b);
    result = ASK_TRACES(report, &t, 1, {"rank", "0"});
    root = result->root;
    assert_int_equal(root->nfindings, 1);
    assert_contains(root->findings[0].evidence[0], "mainly decode at image.py:88, holding the GIL");
    rp_result_free(result);
    rp_trace_free(t);
}

static void a_stall_names_its_line(void **state)
{
    struct row rows[40];
    struct rp_builder *b;
    struct rp_trace *t;
    struct rp_result *result;
    const struct rp_stalls_root *root;

    UNUSED_STATE(state);
    for (int i = 0; i < 40; i++)
        rows[i] = (struct row){'X', "cpu_op", "aten::mm", 1, 1, i * MS, i == 39 ? 20 * MS : 2 * US};
    b = build_rows(ROWS(rows));
    sample(b, 1, 45 * MS, 10, STACK(b, TRAIN, DECODE, TAKE_GIL), RP_SAMPLE_WANTS_GIL);
    t = finish_valid(b);
    result = ASK_TRACES(stalls, &t, 1, {"limit", "1"});
    root = result->root;
    assert_int_equal(root->stall_count, 1);
    assert_string_equal(root->stalls[0].sampled, "decode at image.py:88, waiting for the GIL");
    rp_result_free(result);
    rp_trace_free(t);
}

int test_sampled(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_named_where_nothing_was_recorded),
        cmocka_unit_test(the_holder_of_the_lock_is_named),
        cmocka_unit_test(a_long_span_keeps_its_name_and_gets_a_line),
        cmocka_unit_test(native_code_without_python_is_named_by_function),
        cmocka_unit_test(a_wait_lasts_until_the_thread_goes_on),
        cmocka_unit_test(memory_and_profiles_without_times_say_nothing),
        cmocka_unit_test(the_report_says_the_same),
        cmocka_unit_test(a_line_has_time_of_the_device),
        cmocka_unit_test(spans_have_time_of_the_device),
        cmocka_unit_test(without_operators_the_report_shows_lines),
        cmocka_unit_test(a_pause_names_its_line),
        cmocka_unit_test(a_stall_names_its_line),
    };

    return cmocka_run_group_tests_name("sampled", tests, NULL, NULL);
}
