/* SPDX-License-Identifier: Apache-2.0 */
/* Each stall has the cause that the recording shows, and no other. */
#include "explain/ask_fixture.h"
#include "explain/stalls/stalls.h"
#include "facts/work/call_work.h"
#include "trace/trace_fixtures.h"

extern const struct rp_question_row rp_ask_stalls;

#define US    1000
#define MS    1000000
#define CALLS 20
#define MOST  64

struct scene {
    struct row rows[MOST];
    size_t n;
};

static void add(struct scene *s, struct row row)
{
    assert_true(s->n < MOST);
    s->rows[s->n++] = row;
}

/* Twenty short calls of a name between 0 and 20 ms, so that it has a median, and one long one. */
static struct scene stalled(const char *category, const char *name, int64_t ts, int64_t dur)
{
    struct scene s = {.n = 0};
    int i;

    for (i = 0; i < CALLS; i++)
        add(&s, (struct row){'X', category, name, 1, 1, i * MS, 5 * US});
    add(&s, (struct row){'X', category, name, 1, 1, ts, dur});
    return s;
}

/* The only stall of one rank. */
static void check(const struct scene *s, enum rp_stall_cause cause, int64_t idle_ns)
{
    struct rp_trace *t = trace_of(s->rows, s->n);
    struct rp_result *result = ASK_TRACES(stalls, &t, 1, {"by", "name"});
    const struct rp_stalls_root *root = result->root;

    rp_trace_free(t); /* the answer must not need it */
    assert_int_equal(root->stall_count, 1);
    assert_string_equal(root->stalls[0].cause, rp_stall_cause_names[cause]);
    assert_int_equal(root->stalls[0].median_ns, 5 * US);
    assert_int_equal(root->stalls[0].device_idle_ns, idle_ns);
    assert_int_equal(root->rows[0].count, 1);
    assert_string_equal(root->rows[0].cause, root->stalls[0].cause);
    rp_result_free(result);
}

static void nothing_recorded_is_no_cause(void **state)
{
    struct scene s = stalled("cpu_op", "aten::mm", 30 * MS, 8 * MS);

    UNUSED_STATE(state);
    check(&s, RP_STALL_UNKNOWN, RP_ABSENT_I64);
    /* a device that works in the middle of it and before and after */
    add(&s, (struct row){'X', "kernel", "k", 0, 7, 0, 31 * MS, 1, 7});
    add(&s, (struct row){'X', "kernel", "k", 0, 7, 33 * MS, 2 * MS, 2, 7});
    add(&s, (struct row){'X', "kernel", "k", 0, 7, 50 * MS, MS, 3, 7});
    check(&s, RP_STALL_UNKNOWN, 5 * MS);
}

static void the_profiler_may_be_at_work(void **state)
{
    struct scene s = stalled("cpu_op", "aten::mm", 30 * MS, 8 * MS);

    UNUSED_STATE(state);
    add(&s, (struct row){'X', "overhead", "Activity Buffer Request", 1, 9, 31 * MS, 5 * MS});
    check(&s, RP_STALL_PROFILER, RP_ABSENT_I64);
}

static void a_copy_may_hold_its_call(void **state)
{
    struct scene s = stalled("cuda_runtime", "cudaMemcpyAsync", 30 * MS, 8 * MS);

    UNUSED_STATE(state);
    s.rows[CALLS].corr = 5;
    add(&s, (struct row){'X', "gpu_memcpy", "Memcpy DtoH", 0, 7, 37 * MS, 900 * US, 5, 7});
    add(&s, (struct row){'X', "kernel", "other", 0, 8, 0, 37 * MS, 6, 8});
    check(&s, RP_STALL_COPY_WAIT, 0);
}

static void names_around_tell(void **state)
{
    struct scene s = stalled("cpu_op", "aten::stack", 30 * MS, 8 * MS);

    UNUSED_STATE(state);
    add(&s, (struct row){'X', "user_annotation", "enumerate(DataLoader)#next", 1, 1, 30 * MS - US,
                         8 * MS + 100 * US});
    check(&s, RP_STALL_DATA_LOADER, RP_ABSENT_I64);
}

static void an_allocation_inside_tells(void **state)
{
    struct scene s = stalled("cpu_op", "aten::empty", 30 * MS, 8 * MS);

    UNUSED_STATE(state);
    add(&s, (struct row){'X', "cuda_runtime", "cudaMalloc", 1, 1, 31 * MS, 500 * US, 3});
    check(&s, RP_STALL_ALLOCATION, RP_ABSENT_I64);
}

static void larger_inputs_take_longer(void **state)
{
    struct scene s = stalled("cpu_op", "aten::mm", 30 * MS, 8 * MS);
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < s.n; i++) {
        s.rows[i].text_key = "Input Dims";
        s.rows[i].text =
            i == CALLS ? "[[4096, 4096], [4096, 4096], []]" : "[[64, 64], [64, 64], []]";
    }
    check(&s, RP_STALL_LARGER_INPUT, RP_ABSENT_I64);
    s.rows[CALLS].text = "[[64, 65], [64, 64], []]";
    check(&s, RP_STALL_UNKNOWN, RP_ABSENT_I64);
    assert_int_equal(rp_dims_elements("[[2, 3], [], [8]]"), 14);
    assert_int_equal(rp_dims_elements("[]"), 0);
    assert_int_equal(rp_dims_elements("[[9000000000000000000, 9]]"), INT64_MAX);
}

static void the_first_call_loads_things(void **state)
{
    struct scene s = stalled("cuda_runtime", "cudaLaunchKernel", -30 * MS, 8 * MS);

    UNUSED_STATE(state);
    check(&s, RP_STALL_FIRST_USE, RP_ABSENT_I64);
}

static void another_thread_may_hold_the_driver(void **state)
{
    struct scene s = stalled("cuda_runtime", "cudaLaunchKernel", 30 * MS, 8 * MS);

    UNUSED_STATE(state);
    add(&s, (struct row){'X', "cuda_runtime", "cudaHostRegister", 1, 2, 29 * MS, 9 * MS, 77});
    check(&s, RP_STALL_LOCK, RP_ABSENT_I64);
    s.rows[s.n - 1].dur = 1 * MS + 6800 * US; /* 85 % of the 8 ms */
    check(&s, RP_STALL_LOCK, RP_ABSENT_I64);
    s.rows[s.n - 1].dur = 1 * MS + 6400 * US; /* 80 % */
    check(&s, RP_STALL_UNKNOWN, RP_ABSENT_I64);
    s.rows[s.n - 1].dur = 1 * MS + 6000 * US; /* 75 % */
    check(&s, RP_STALL_UNKNOWN, RP_ABSENT_I64);
}

/* What the kernel counted of the thread in a tenth of a second. */
static struct row ready_row(int64_t ts, int64_t over, int64_t ready)
{
    return (struct row){'C',
                        NULL,
                        "waited for a processor",
                        1,
                        1,
                        ts,
                        .key = "over_ns",
                        .value = over,
                        .key2 = "ready_ns",
                        .value2 = ready};
}

static void a_thread_may_have_no_processor(void **state)
{
    struct scene s = stalled("cpu_op", "aten::mm", 30 * MS, 8 * MS);

    UNUSED_STATE(state);
    add(&s, ready_row(0, 100 * MS, 3900 * US));
    check(&s, RP_STALL_UNKNOWN, RP_ABSENT_I64); /* less than half of it */
    s.rows[s.n - 1].value2 = 4100 * US;
    check(&s, RP_STALL_NO_PROCESSOR, RP_ABSENT_I64);
    s.rows[s.n - 1].ts = 36 * MS; /* two of its eight */
    check(&s, RP_STALL_UNKNOWN, RP_ABSENT_I64);
    s.rows[s.n - 1].ts = 0;
    s.rows[s.n - 1].tid = 2; /* another thread */
    check(&s, RP_STALL_UNKNOWN, RP_ABSENT_I64);
    /* what it may be less surely than the name of the call, unless the rest has no room for it */
    s = stalled("cuda_runtime", "cudaMalloc", 30 * MS, 8 * MS);
    add(&s, ready_row(0, 100 * MS, 8 * MS));
    check(&s, RP_STALL_ALLOCATION, RP_ABSENT_I64);
    s.rows[s.n - 1].value2 = 97 * MS;
    check(&s, RP_STALL_NO_PROCESSOR, RP_ABSENT_I64);
}

/* Of two long calls in the time that was counted, the longer one has it. */
static void no_time_without_a_processor_counts_twice(void **state)
{
    struct scene s = stalled("cpu_op", "aten::mm", 30 * MS, 8 * MS);
    struct rp_trace *t;
    struct rp_result *result;
    const struct rp_stalls_root *root;

    UNUSED_STATE(state);
    add(&s, (struct row){'X', "cpu_op", "aten::mm", 1, 1, 50 * MS, 9 * MS});
    add(&s, ready_row(0, 100 * MS, 10 * MS));
    t = trace_of(s.rows, s.n);
    result = ASK_TRACES(stalls, &t, 1, {"by", "name"});
    root = result->root;
    rp_trace_free(t);
    assert_int_equal(root->stall_count, 2);
    assert_int_equal(root->stalls[0].ready_ns, 9 * MS);
    assert_string_equal(root->stalls[0].cause, "no_processor");
    assert_int_equal(root->stalls[1].ready_ns, 1 * MS);
    assert_string_equal(root->stalls[1].cause, "unknown");
    rp_result_free(result);
}

static void waits_are_no_stalls(void **state)
{
    struct scene s = stalled("cuda_runtime", "cudaStreamSynchronize", 30 * MS, 8 * MS);
    struct rp_trace *t = trace_of(s.rows, s.n);
    struct rp_result *result = ASK_TRACES(stalls, &t, 1, {"by", "cause"});
    const struct rp_stalls_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->stall_count, 0);
    assert_int_equal(root->nrows, 0);
    assert_contains(root->notes[0], "1 synchronizing call over 1.00 ms (8.00 ms in all)");
    rp_result_free(result);
    rp_trace_free(t);
}

/* Two ranks that stall at the same time or not. */
static void check_together(int64_t second_at, enum rp_stall_cause cause)
{
    struct scene s[2] = {stalled("cpu_op", "aten::mm", 30 * MS, 8 * MS),
                         stalled("cpu_op", "aten::mul", second_at, 8 * MS)};
    struct rp_trace *t[2] = {trace_of(s[0].rows, s[0].n), trace_of(s[1].rows, s[1].n)};
    struct rp_result *result = ASK_TRACES(stalls, t, 2, {"by", "rank"});
    const struct rp_stalls_root *root = result->root;

    assert_int_equal(root->stall_count, 2);
    assert_int_equal(root->nrows, 2);
    assert_string_equal(root->stalls[0].cause, rp_stall_cause_names[cause]);
    assert_int_equal(root->ranks[1].total_ns, 8 * MS);
    rp_result_free(result);
    rp_trace_free(t[0]);
    rp_trace_free(t[1]);
}

static void ranks_may_stall_together(void **state)
{
    UNUSED_STATE(state);
    check_together(32 * MS, RP_STALL_TOGETHER);
    check_together(90 * MS, RP_STALL_UNKNOWN);
}

/* The last of n launches lasts 9 ms, while the device runs the first one. */
static uint8_t cause_behind(int n)
{
    struct row *rows = (struct row *)calloc(2 * (size_t)n, sizeof *rows);
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_stalls_part part = {0};
    struct rp_trace *t;
    uint8_t cause;

    assert_non_null(rows);
    for (int i = 0; i < n; i++) {
        rows[2 * i] = (struct row){'X', "cuda_runtime", "cudaLaunchKernel",           1,
                                   1,   i * 10 * US,    i == n - 1 ? 9 * MS : 4 * US, i + 1};
        rows[2 * i + 1] =
            (struct row){'X', "kernel", "k", 0, 7, 11 * MS + i * 10 * US, 9 * US, i + 1, 7};
    }
    rows[1].ts = 5 * US;
    rows[1].dur = 11 * MS - 5 * US;
    t = trace_of(rows, 2 * (size_t)n);
    assert_code(rp_stalls_list_calls(t, NULL, MS, &arena, &part, NULL), RP_OK);
    assert_int_equal(part.calls.slow.n, 1);
    cause = part.list[0].why;
    rp_host_calls_release(&part.calls);
    rp_trace_free(t);
    rp_arena_release(&arena);
    free(rows);
    return cause;
}

static void a_full_queue_holds_launches(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(cause_behind(1050), RP_STALL_QUEUE_FULL);
    assert_int_not_equal(cause_behind(950), RP_STALL_QUEUE_FULL);
}

static void equal_stalls_are_in_the_order_of_time(void **state)
{
    struct scene s = stalled("cpu_op", "aten::mm", 30 * MS, 8 * MS);
    struct rp_trace *t;
    struct rp_result *result;
    const struct rp_stalls_root *root;

    UNUSED_STATE(state);
    add(&s, (struct row){'X', "cpu_op", "aten::mm", 1, 1, 50 * MS, 8 * MS});
    t = trace_of(s.rows, s.n);
    result = ASK_TRACES(stalls, &t, 1, {"by", "name"});
    root = result->root;
    assert_int_equal(root->stall_count, 2);
    assert_true(root->stalls[0].begin_ns < root->stalls[1].begin_ns);
    rp_result_free(result);
    rp_trace_free(t);
}

int test_stalls(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_recorded_is_no_cause),
        cmocka_unit_test(the_profiler_may_be_at_work),
        cmocka_unit_test(a_copy_may_hold_its_call),
        cmocka_unit_test(names_around_tell),
        cmocka_unit_test(an_allocation_inside_tells),
        cmocka_unit_test(larger_inputs_take_longer),
        cmocka_unit_test(the_first_call_loads_things),
        cmocka_unit_test(another_thread_may_hold_the_driver),
        cmocka_unit_test(a_thread_may_have_no_processor),
        cmocka_unit_test(no_time_without_a_processor_counts_twice),
        cmocka_unit_test(waits_are_no_stalls),
        cmocka_unit_test(ranks_may_stall_together),
        cmocka_unit_test(a_full_queue_holds_launches),
        cmocka_unit_test(equal_stalls_are_in_the_order_of_time),
    };

    return cmocka_run_group_tests_name("stalls", tests, NULL, NULL);
}
