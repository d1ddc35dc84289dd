/* SPDX-License-Identifier: Apache-2.0 */
/* The causes of all gaps add up to idle, of one rank and of several. */
#include "explain/ask_fixture.h"
#include "explain/idle/idle.h"
#include "trace/trace_fixtures.h"

extern const struct rp_question_row rp_ask_idle;

#define US 1000
#define MS 1000000

#define LAUNCH(ts, corr)                                                    \
    {                                                                       \
        'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, (ts), 4 * US, (corr) \
    }
#define KERNEL(ts, dur, corr)                               \
    {                                                       \
        'X', "kernel", "gemm", 0, 7, (ts), (dur), (corr), 7 \
    }
#define FRAME(name, ts, dur)                              \
    {                                                     \
        'X', "python_function", (name), 1, 1, (ts), (dur) \
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
    assert_int_equal(rank->span_idle_ns, 215 * US); /* not 10 us before the first kernel */
    assert_int_equal(rank->span_gap_count, 3);
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
    assert_int_equal(root->ncauses, 2); /* the other is the latency */
    assert_int_equal(root->causes[0].total_ns, 258 * US);
    assert_int_equal(root->causes[0].count, 2);
    assert_int_equal(root->causes[0].longest_ns, 204 * US);
    assert_int_equal(root->causes[1].total_ns, 12 * US); /* not before the first kernel */
    assert_contains(root->causes[0].evidence, "aten::slow");
    assert_int_equal(root->ngaps, 1);
    assert_int_equal(root->gaps[0].rank, 1);
    rp_result_free(result);
    rp_trace_free(t[0]);
    rp_trace_free(t[1]);
}

static void a_split_gap_is_one_gap(void **state)
{
    const struct row rows[] = {
        LAUNCH(0, 1),
        LAUNCH(20 * MS, 2),
        KERNEL(10 * US, 990 * US, 1),
        KERNEL(50 * MS, 90 * US, 2),
        {'X', "user_annotation", "enumerate(DataLoader)#Iter.__next__", 1, 1, 1 * MS, 5 * MS},
        FRAME("preprocess", 6 * MS, 3 * MS),
        {'X', "user_annotation", "enumerate(DataLoader)#Iter.__next__", 1, 1, 9 * MS, 5 * MS},
        FRAME("preprocess", 14 * MS, 6 * MS)};
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result = ASK_TRACES(idle, &t, 1, {"limit", "2"});
    const struct rp_idle_root *root = result->root;
    const struct rp_idle_rank *rank = &root->ranks[0];
    int64_t sum = 0;
    size_t i;

    UNUSED_STATE(state);
    assert_int_equal(rank->gap_count, 1);
    assert_int_equal(rank->ncauses, 3);
    for (i = 0; i < rank->ncauses; i++) {
        assert_int_equal(rank->causes[i].count, 1);
        assert_int_equal(rank->causes[i].longest_ns, rank->causes[i].total_ns);
        sum += rank->causes[i].total_ns;
    }
    assert_int_equal(sum, rank->idle_ns);
    assert_string_equal(rank->causes[0].cause, "device_wait");
    assert_string_equal(rank->causes[1].cause, "data_loader");
    assert_int_equal(rank->causes[1].total_ns, 10 * MS);
    assert_int_equal(root->ngaps, 1); /* not that before the first kernel */
    assert_int_equal(root->gaps[0].dur_ns, 49 * MS);
    assert_int_equal(root->gaps[0].cause_ns, rank->causes[0].total_ns);
    rp_result_free(result);
    rp_trace_free(t);
}

int test_idle(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(causes_add_up_to_idle),
        cmocka_unit_test(ranks_are_added_up_by_cause),
        cmocka_unit_test(a_split_gap_is_one_gap),
    };

    return cmocka_run_group_tests_name("idle", tests, NULL, NULL);
}
