/* SPDX-License-Identifier: Apache-2.0 */
/* Launches that became nodes of a CUDA graph. */
#include "facts/graphs/captures.h"
#include "trace/trace_fixtures.h"

#define BEGIN "cudaStreamBeginCapture"
#define END   "cudaStreamEndCapture"

static int64_t captured(const struct row *rows, size_t n)
{
    struct rp_trace *t = trace_of(rows, n);
    struct rp_captures c;
    int64_t count;

    assert_code(rp_captures_init(&c, t, NULL), RP_OK);
    count = (int64_t)c.nodes.n;
    rp_captures_release(&c);
    rp_trace_free(t);
    return count;
}

#define CAPTURED(rows) captured((rows), sizeof(rows) / sizeof(rows)[0])

static void launches_inside_a_capture_count(void **state)
{
    const struct row rows[] = {
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 0, 5, 1}, /* before: its work is lost */
        {'X', "cuda_runtime", BEGIN, 1, 1, 10, 5, 2},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 20, 5, 3},
        {'X', "cuda_runtime", "cudaMemsetAsync", 1, 2, 25, 5, 4},  /* another thread */
        {'X', "cuda_runtime", "cudaEventRecord", 1, 1, 26, 2, 5},  /* no launch */
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 3, 27, 2, 6}, /* of another stream: it ran */
        {'X', "kernel", "gemm", 0, 7, 40, 5, 6, 7},
        {'X', "cuda_runtime", END, 1, 1, 30, 5, 7},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 50, 5, 8}, /* behind */
    };

    UNUSED_STATE(state);
    assert_int_equal(CAPTURED(rows), 2);
}

static void captures_nest_and_belong_to_their_process(void **state)
{
    const struct row rows[] = {
        {'X', "cuda_runtime", BEGIN, 1, 1, 10, 5, 1},
        {'X', "cuda_runtime", "cuStreamBeginCapture_v2", 1, 1, 11, 3, 2},
        {'X', "cuda_runtime", "cuStreamEndCapture", 1, 1, 20, 3, 3},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 25, 2, 4},
        {'X', "cuda_runtime", "cudaLaunchKernel", 2, 2, 26, 2, 5},
        {'X', "cuda_runtime", END, 1, 1, 30, 5, 6},
    };

    UNUSED_STATE(state);
    assert_int_equal(CAPTURED(rows), 1);
}

/* One process was cut off in its capture: the other one's has a begin of its own. */
static void a_capture_without_its_end_is_of_its_process(void **state)
{
    const struct row rows[] = {
        {'X', "cuda_runtime", BEGIN, 1, 1, 10, 5, 1},
        {'X', "cuda_runtime", BEGIN, 2, 2, 12, 5, 2},
        {'X', "cuda_runtime", "cudaLaunchKernel", 2, 2, 20, 5, 3},
        {'X', "cuda_runtime", END, 2, 2, 30, 5, 4},
    };

    UNUSED_STATE(state);
    assert_int_equal(CAPTURED(rows), 1);
}

static void a_capture_without_its_end_is_none(void **state)
{
    const struct row rows[] = {
        {'X', "cuda_runtime", END, 1, 1, 0, 5, 1},
        {'X', "cuda_runtime", BEGIN, 1, 1, 10, 5, 2},
        {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 20, 5, 3},
    };

    UNUSED_STATE(state);
    assert_int_equal(CAPTURED(rows), 0);
}

/* Three captured launches and `ran` kernels that ran: a recording of captures, of which at most
   twice as much ran to try them. */
static bool is_of_captures(int ran)
{
    struct row rows[12] = {{'X', "cuda_runtime", BEGIN, 1, 1, 10, 5, 1},
                           {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 20, 5, 2},
                           {'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, 30, 5, 3},
                           {'X', "cuda_runtime", "cudaMemsetAsync", 1, 1, 40, 5, 4},
                           {'X', "cuda_runtime", END, 1, 1, 50, 5, 5}};
    struct rp_captures c;
    struct rp_trace *t;
    bool all;

    for (int i = 0; i < ran; i++)
        rows[5 + i] = (struct row){'X', "kernel", "gemm", 0, 7, 100 + 10 * i, 5, 50 + i, 7};
    t = trace_of(rows, 5 + (size_t)ran);
    assert_code(rp_captures_init(&c, t, NULL), RP_OK);
    assert_int_equal(c.nodes.n, 3);
    all = rp_captures_are_all(&c);
    rp_captures_release(&c);
    rp_trace_free(t);
    return all;
}

static void recordings_of_captures_run_little(void **state)
{
    UNUSED_STATE(state);
    assert_true(is_of_captures(0));
    assert_true(is_of_captures(6));
    assert_false(is_of_captures(7));
}

/* The innermost annotation with a size counts; without one it is not known. */
static void sizes_around_a_call(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "execute_64_context_1(64)_generation_0(0)", 1, 1, 0, 100},
        {'X', "user_annotation", "inside", 1, 1, 10, 50},
        {'X', "cuda_runtime", "cudaGraphLaunch", 1, 1, 20, 5, 1},
        {'X', "user_annotation", "alone", 1, 1, 200, 50},
        {'X', "cuda_runtime", "cudaGraphLaunch", 1, 1, 220, 5, 2},
        {'X', "cuda_runtime", "cudaGraphLaunch", 1, 1, 300, 5, 3},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_int_equal(rp_batch_size_around(t, event_n(t, 2)),
                     rp_batch_size_of_name("execute_64_context_1(64)_generation_0(0)"));
    assert_int_equal(rp_batch_size_around(t, event_n(t, 4)), -1);
    assert_int_equal(rp_batch_size_around(t, event_n(t, 5)), -1);
    rp_trace_free(t);
}

int test_graph_captures(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_around_a_call),
        cmocka_unit_test(launches_inside_a_capture_count),
        cmocka_unit_test(captures_nest_and_belong_to_their_process),
        cmocka_unit_test(a_capture_without_its_end_is_of_its_process),
        cmocka_unit_test(a_capture_without_its_end_is_none),
        cmocka_unit_test(recordings_of_captures_run_little),
    };

    return cmocka_run_group_tests_name("captures", tests, NULL, NULL);
}
