/* SPDX-License-Identifier: Apache-2.0 */
/* `launches`: launches of several items are graphs, and what HTA counts is counted by its limits.
 */
#include "explain/ask_fixture.h"
#include "explain/launches/launches.h"
#include "trace/trace_fixtures.h"

extern const struct rp_question_row rp_ask_launches;

#define US 1000

static void launches_of_several_items_are_graphs(void **state)
{
    const struct row rows[] = {
        {'X', "cuda_runtime", "cudaGraphLaunch", 1, 1, 0, 10 * US, 1},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 20 * US, 10 * US, 2},
        {'X', "kernel", "a", 0, 7, 50 * US, 5 * US, 1, 7},
        {'X', "kernel", "b", 0, 7, 60 * US, 5 * US, 1, 7},
        {'X', "kernel", "c", 0, 7, 70 * US, 5 * US, 1, 7},
        {'X', "kernel", "d", 0, 7, 80 * US, 20 * US, 2, 7},
        {'X', "kernel", "e", 0, 7, 110 * US, 5 * US, 9, 7}, /* its launch is not recorded */
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result = ASK_TRACES(launches, &t, 1, {"limit", "0"});
    const struct rp_launches_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->launches, 2);
    assert_int_equal(root->items, 4);
    assert_int_equal(root->graphs, 1);
    assert_int_equal(root->graph_items, 3);
    assert_int_equal(root->unlinked, 1);
    assert_int_equal(root->call.total_ns, 20 * US);
    rp_result_free(result);
    rp_trace_free(t);
}

/* Calls of 50 µs are not slow, and starts 100 µs after the call are not late: those above are. */
static void limits_are_those_of_hta(void **state)
{
    const struct row rows[] = {
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 0, 50 * US, 1},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 200 * US, 51 * US, 2},
        {'X', "kernel", "a", 0, 7, 150 * US, 10 * US, 1, 7},
        {'X', "kernel", "b", 0, 7, 352 * US, 60 * US, 2, 7},
    };
    struct rp_trace *t = TRACE_OF(rows);
    struct rp_result *result = ASK_TRACES(launches, &t, 1, {"limit", "0"});
    const struct rp_launches_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->slow_call_count, 1);
    assert_int_equal(root->late_count, 1);
    assert_int_equal(root->short_count, 1); /* 10 µs of work for a call of 50 */
    rp_result_free(result);
    rp_trace_free(t);
}

/* Queues and copies keep the number of their rank. */
static void queues_and_copies_have_a_rank(void **state)
{
    const struct row rows[] = {
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 0, 5 * US, 1},
        {'X', "cuda_runtime", "cudaMemcpyAsync", 1, 1, 10 * US, 5 * US, 2},
        {'X', "kernel", "a", 0, 7, 50 * US, 10 * US, 1, 7},
        {'X', "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 0, 7, 70 * US, 10 * US, 2, 7,
         .key = "bytes", .value = 1000000},
    };
    struct rp_trace *t[] = {TRACE_OF(rows), TRACE_OF(rows)};
    struct rp_result *result = ASK_TRACES(launches, t, 2, {"limit", "0"});
    const struct rp_launches_root *root = result->root;

    UNUSED_STATE(state);
    assert_int_equal(root->nqueues, 2);
    assert_int_equal(root->ncopies, 2);
    for (size_t r = 0; r < 2; r++) {
        assert_int_equal(root->queues[r].rank, r);
        assert_int_equal(root->queues[r].launches, 2);
        assert_int_equal(root->copies[r].rank, r);
        assert_int_equal(root->copies[r].size_bytes, 1000000);
        assert_true(root->copies[r].whole_bytes_per_s == 1e11);
        rp_trace_free(t[r]);
    }
    rp_result_free(result);
}

int test_launches(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_of_several_items_are_graphs),
        cmocka_unit_test(limits_are_those_of_hta),
        cmocka_unit_test(queues_and_copies_have_a_rank),
    };

    return cmocka_run_group_tests_name("launches", tests, NULL, NULL);
}
