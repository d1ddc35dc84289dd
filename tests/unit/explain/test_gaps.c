/* SPDX-License-Identifier: Apache-2.0 */
/* Each gap has one cause and one class, and all add up to idle. */
#include "explain/ask_fixture.h"
#include "explain/idle/idle.h"
#include "trace/trace_fixtures.h"

extern const struct rp_question_row rp_ask_idle;

#define US 1000
#define MS 1000000

/* The cause and class of the only gap of a trace. */
static void only_gap(const struct row *rows, size_t n, enum rp_gap_cause cause,
                     enum rp_gap_class cls, const char *host)
{
    struct rp_trace *t = trace_of(rows, n);
    rp_gap_vec gaps = {0};
    struct rp_work w;

    assert_code(rp_work_init(&w, t, NULL, NULL), RP_OK);
    assert_code(rp_gaps_find(&w, &gaps, NULL), RP_OK);
    assert_int_equal(gaps.n, 1);
    assert_string_equal(rp_gap_cause_names[gaps.at[0].cause], rp_gap_cause_names[cause]);
    assert_string_equal(rp_gap_class_names[gaps.at[0].cls], rp_gap_class_names[cls]);
    if (host)
        assert_string_equal(name_of(t, gaps.at[0].host), host);
    rp_vec_release(&gaps);
    rp_work_release(&w);
    rp_trace_free(t);
}

#define ONLY_GAP(rows, cause, cls, host) \
    only_gap((rows), sizeof(rows) / sizeof(rows)[0], RP_GAP_##cause, RP_GAP_CLASS_##cls, (host))

#define LAUNCH(ts, corr)                                                    \
    {                                                                       \
        'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, (ts), 4 * US, (corr) \
    }
#define KERNEL(ts, dur, corr)                               \
    {                                                       \
        'X', "kernel", "gemm", 0, 7, (ts), (dur), (corr), 7 \
    }

static void a_late_host_is_to_blame(void **state)
{
    const struct row rows[] = {LAUNCH(0, 1),
                               LAUNCH(300 * US, 2),
                               KERNEL(10 * US, 90 * US, 1),
                               KERNEL(310 * US, 90 * US, 2),
                               {'X', "cpu_op", "aten::slow", 1, 1, 110 * US, 180 * US}};

    UNUSED_STATE(state);
    ONLY_GAP(rows, NOT_LAUNCHED, NOT_LAUNCHED, "aten::slow");
}

static void a_wait_of_the_host_drains_the_device(void **state)
{
    const struct row rows[] = {
        LAUNCH(0, 1),
        LAUNCH(300 * US, 2),
        KERNEL(10 * US, 90 * US, 1),
        KERNEL(310 * US, 90 * US, 2),
        {'X', "cuda_runtime", "cudaStreamSynchronize", 1, 1, 20 * US, 81 * US, 9},
        {'X', "cpu_op", "aten::item", 1, 1, 110 * US, 180 * US}};

    UNUSED_STATE(state);
    ONLY_GAP(rows, SYNC_DRAIN, NOT_LAUNCHED, "cudaStreamSynchronize");
}

static void input_data_is_waited_for(void **state)
{
    const struct row rows[] = {
        LAUNCH(0, 1),
        LAUNCH(300 * US, 2),
        KERNEL(10 * US, 90 * US, 1),
        KERNEL(310 * US, 90 * US, 2),
        {'X', "cuda_runtime", "cudaDeviceSynchronize", 1, 1, 20 * US, 81 * US, 9},
        {'X', "user_annotation", "enumerate(DataLoader)#Iter.__next__", 1, 1, 105 * US, 190 * US}};

    UNUSED_STATE(state);
    ONLY_GAP(rows, DATA_LOADER, NOT_LAUNCHED, "enumerate(DataLoader)#Iter.__next__");
}

static void a_call_far_above_its_median_is_a_stall(void **state)
{
    struct row rows[24] = {LAUNCH(0, 1), LAUNCH(30 * MS, 2), KERNEL(10 * US, 900 * US, 1),
                           KERNEL(31 * MS, 90 * US, 2)};
    int i;

    UNUSED_STATE(state);
    for (i = 4; i < 24; i++)
        rows[i] = (struct row){'X', "cpu_op", "aten::mm", 1, 1, (100 + 10 * i) * US, 5 * US};
    rows[23] = (struct row){'X', "cpu_op", "aten::mm", 1, 1, 500 * US, 29 * MS};
    ONLY_GAP(rows, HOST_STALL, NOT_LAUNCHED, "aten::mm");
}

static void a_thread_without_events_is_a_stall(void **state)
{
    const struct row rows[] = {LAUNCH(0, 1), LAUNCH(30 * MS, 2), KERNEL(10 * US, 900 * US, 1),
                               KERNEL(31 * MS, 90 * US, 2)};

    UNUSED_STATE(state);
    ONLY_GAP(rows, HOST_STALL, NOT_LAUNCHED, NULL);
}

static void launched_work_has_latency_or_waits(void **state)
{
    const struct row close[] = {LAUNCH(0, 1), LAUNCH(20 * US, 2), KERNEL(10 * US, 90 * US, 1),
                                KERNEL(105 * US, 90 * US, 2)};
    const struct row streams[] = {LAUNCH(0, 1),
                                  LAUNCH(20 * US, 2),
                                  KERNEL(10 * US, 90 * US, 1),
                                  {'X', "kernel", "other", 0, 8, 200 * US, 9, 2, 8}};
    const struct row same[] = {LAUNCH(0, 1), LAUNCH(20 * US, 2), KERNEL(10 * US, 90 * US, 1),
                               KERNEL(205 * US, 90 * US, 2)};
    const struct row copy[] = {LAUNCH(0, 1),
                               LAUNCH(20 * US, 2),
                               KERNEL(10 * US, 90 * US, 1),
                               {'X', "gpu_memcpy", "Memcpy", 0, 7, 200 * US, 9, 2, 7}};

    UNUSED_STATE(state);
    ONLY_GAP(close, LAUNCH_LATENCY, SHORT, "cudaLaunchKernel");
    ONLY_GAP(streams, EVENT_WAIT, DEPENDENCY, NULL);
    ONLY_GAP(same, UNRECORDED, DEPENDENCY, NULL);
    ONLY_GAP(copy, COPY, DEPENDENCY, NULL);
}

static void without_a_launch_the_class_is_unlinked(void **state)
{
    const struct row rows[] = {LAUNCH(0, 1), KERNEL(10 * US, 90 * US, 1),
                               KERNEL(205 * US, 90 * US, 3)};

    UNUSED_STATE(state);
    ONLY_GAP(rows, UNKNOWN, UNLINKED, NULL);
}

/* XProf shows runtime calls on a line of their own: what the host did stands on another. */
static void a_line_of_calls_has_another_thread_beside_it(void **state)
{
    const struct row rows[] = {LAUNCH(0, 1),
                               LAUNCH(200 * US, 2),
                               KERNEL(10 * US, 90 * US, 1),
                               KERNEL(205 * US, 90 * US, 2),
                               {'X', "python_function", "train.py: f", 1, 2, 0, 300 * US}};

    UNUSED_STATE(state);
    ONLY_GAP(rows, NOT_LAUNCHED, NOT_LAUNCHED, "train.py: f");
}

/* While the host waits all the time it launches nothing: the work was there, as that of a graph. */
static void a_host_that_still_waits_drains_nothing(void **state)
{
    const struct row waits[] = {
        LAUNCH(0, 1),
        KERNEL(10 * US, 90 * US, 1),
        KERNEL(102 * US, 90 * US, 3),
        {'X', "cuda_runtime", "cudaDeviceSynchronize", 1, 1, 20 * US, 500 * US}};
    const struct row ends[] = {
        LAUNCH(0, 1),
        KERNEL(10 * US, 90 * US, 1),
        KERNEL(302 * US, 90 * US, 3),
        {'X', "cuda_runtime", "cudaDeviceSynchronize", 1, 1, 20 * US, 81 * US}};

    UNUSED_STATE(state);
    ONLY_GAP(waits, LAUNCH_LATENCY, UNLINKED, NULL);
    ONLY_GAP(ends, SYNC_DRAIN, UNLINKED, "cudaDeviceSynchronize");
}

static void causes_add_up_to_idle(void **state)
{
    const struct row rows[] = {LAUNCH(0, 1),
                               LAUNCH(300 * US, 2),
                               KERNEL(10 * US, 90 * US, 1),
                               KERNEL(310 * US, 90 * US, 2),
                               KERNEL(402 * US, 0, 3),
                               KERNEL(405 * US, 10 * US, 2)};
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result = ASK_TRACES(idle, &t, 1, {"limit", "2"});
    const struct rp_idle_root *root = result->root;
    const struct rp_idle_rank *rank = &root->ranks[0];
    int64_t sum = 0;
    size_t i;

    UNUSED_STATE(state);
    rp_trace_free(t); /* the answer must not need it */
    for (i = 0; i < rank->ncauses; i++)
        sum += rank->causes[i].total_ns;
    assert_int_equal(rank->idle_ns, 215 * US);
    assert_int_equal(sum, rank->idle_ns);
    assert_int_equal(rank->gap_count, 3);
    assert_int_equal(rank->ngaps, 2);
    assert_int_equal(rank->gaps[0].dur_ns, 210 * US);
    assert_int_equal(root->ngaps, 2);
    assert_contains(root->summary, "in 3 gaps");
    rp_result_free(result);
}

/* Causes of several ranks are added up; the evidence is that of the rank with most of it. */
static void ranks_are_added_up_by_cause(void **state)
{
    const struct row slow[] = {LAUNCH(0, 1),
                               LAUNCH(300 * US, 2),
                               KERNEL(10 * US, 90 * US, 1),
                               KERNEL(310 * US, 90 * US, 2),
                               {'X', "cpu_op", "aten::slow", 1, 1, 110 * US, 180 * US}};
    const struct row quick[] = {LAUNCH(0, 1),
                                LAUNCH(150 * US, 2),
                                KERNEL(10 * US, 90 * US, 1),
                                KERNEL(160 * US, 90 * US, 2),
                                {'X', "cpu_op", "aten::quick", 1, 1, 105 * US, 40 * US}};
    struct rp_trace *t[2] = {TRACE_OF(quick), TRACE_OF(slow)};
    struct rp_result *result = ASK_TRACES(idle, t, 2, {"limit", "1"});
    const struct rp_idle_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->nrows, 2);
    assert_int_equal(root->ncauses, 1);
    assert_int_equal(root->causes[0].total_ns, 270 * US);
    assert_int_equal(root->causes[0].count, 2);
    assert_int_equal(root->causes[0].longest_ns, 210 * US);
    assert_contains(root->causes[0].evidence, "aten::slow");
    assert_int_equal(root->ngaps, 1);
    assert_int_equal(root->gaps[0].rank, 1);
    rp_result_free(result);
    rp_trace_free(t[0]);
    rp_trace_free(t[1]);
}

int test_gaps(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_host_is_to_blame),
        cmocka_unit_test(a_wait_of_the_host_drains_the_device),
        cmocka_unit_test(input_data_is_waited_for),
        cmocka_unit_test(a_call_far_above_its_median_is_a_stall),
        cmocka_unit_test(a_thread_without_events_is_a_stall),
        cmocka_unit_test(launched_work_has_latency_or_waits),
        cmocka_unit_test(without_a_launch_the_class_is_unlinked),
        cmocka_unit_test(a_host_that_still_waits_drains_nothing),
        cmocka_unit_test(a_line_of_calls_has_another_thread_beside_it),
        cmocka_unit_test(causes_add_up_to_idle),
        cmocka_unit_test(ranks_are_added_up_by_cause),
    };

    return cmocka_run_group_tests_name("gaps", tests, NULL, NULL);
}
