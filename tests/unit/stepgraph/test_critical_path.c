/* SPDX-License-Identifier: Apache-2.0 */
/* The critical path: contiguous, over the whole window, through launches, streams and threads. */
#include "stepgraph/critical_path.h"
#include "stepgraph/graph_fixtures.h"

#include <stdio.h>

/* What the path says as text: "op launch ~launch_latency gemm …". */
static void check_path(const struct row *rows, size_t n, const char *expected)
{
    struct built b = build_graph(rows, n);
    char text[512] = "";
    struct rp_path path;
    size_t i, len = 0;
    int64_t at;

    assert_code(rp_path_find(&b.graph, INT64_MAX, &path, NULL), RP_OK);
    assert_int_equal(path.begin_ns, b.trace->totals.work_begin_ns);
    assert_int_equal(path.end_ns, b.trace->totals.work_end_ns);
    at = path.begin_ns;
    for (i = 0; i < path.parts.n; i++) {
        const struct rp_path_segment *s = &path.parts.at[i];
        bool wait = s->kind == RP_PATH_WAIT;

        assert_int_equal(s->begin_ns, at);
        assert_true(s->end_ns > s->begin_ns);
        at = s->end_ns;
        len +=
            (size_t)snprintf(text + len, sizeof text - len, "%s%s%s", i ? " " : "", wait ? "~" : "",
                             wait ? rp_path_cause_names[s->cause]
                                  : name_of(b.trace, b.graph.nodes.at[s->node].event));
    }
    assert_int_equal(at, path.end_ns);
    assert_string_equal(text, expected);
    rp_path_release(&path);
    release_graph(&b);
}

#define CHECK_PATH(rows, expected) check_path((rows), sizeof(rows) / sizeof(rows)[0], (expected))

static void a_launch_leads_to_its_kernel(void **state)
{
    const struct row rows[] = {
        {'X', "cpu_op", "op", 1, 1, 0, 30},
        {'X', "cuda_runtime", "launch", 1, 1, 10, 5, 5},
        {'X', "kernel", "gemm", 0, 7, 20, 50, 5, 7},
    };

    UNUSED_STATE(state);
    CHECK_PATH(rows, "op launch ~launch_latency gemm");
}

/* Where the host and the device end together, the path is that of the device. */
static void the_device_comes_last(void **state)
{
    const struct row rows[] = {
        {'X', "cpu_op", "op", 1, 1, 0, 70},
        {'X', "cuda_runtime", "launch", 1, 1, 10, 5, 5},
        {'X', "kernel", "gemm", 0, 7, 20, 50, 5, 7},
    };

    UNUSED_STATE(state);
    CHECK_PATH(rows, "op launch ~launch_latency gemm");
}

/* Where a thread that works and one that only has a range open end together, it is that of work. */
static void work_comes_last(void **state)
{
    const struct row rows[] = {
        {'X', "cpu_op", "op", 1, 1, 0, 70},
        {'X', "cpu_op", "first", 1, 2, 0, 10},
        {'X', "user_annotation", "range", 1, 2, 5, 65},
    };

    UNUSED_STATE(state);
    CHECK_PATH(rows, "op");
}

static void a_busy_stream_holds_up_what_is_behind(void **state)
{
    const struct row rows[] = {
        {'X', "cuda_runtime", "first", 1, 1, 0, 5, 5},
        {'X', "cuda_runtime", "second", 1, 1, 10, 5, 6},
        {'X', "kernel", "gemm", 0, 7, 20, 50, 5, 7},
        {'X', "kernel", "add", 0, 7, 71, 10, 6, 7},
    };

    UNUSED_STATE(state);
    CHECK_PATH(rows, "first ~launch_latency gemm ~stream_order add");
}

static void another_stream_may_hold_it_up(void **state)
{
    const struct row rows[] = {
        {'X', "cuda_runtime", "first", 1, 1, 0, 5, 5},
        {'X', "cuda_runtime", "second", 1, 1, 10, 5, 6},
        {'X', "cuda_runtime", "third", 1, 1, 20, 5, 7},
        {'X', "kernel", "gemm", 0, 7, 20, 10, 5, 7},
        {'X', "kernel", "nccl", 0, 9, 20, 20000, 6, 9},
        {'X', "kernel", "add", 0, 7, 20100, 10, 7, 7},
    };

    UNUSED_STATE(state);
    CHECK_PATH(rows, "first ~thread_gap second ~launch_latency nccl ~event_wait add");
}

static void a_synchronisation_follows_the_device(void **state)
{
    const struct row rows[] = {
        {'X', "cuda_runtime", "launch", 1, 1, 0, 5, 5},
        {'X', "cuda_runtime", "cudaDeviceSynchronize", 1, 1, 6, 58, 6},
        {'X', "kernel", "gemm", 0, 7, 10, 50, 5, 7},
        {'X', "cpu_op", "op", 1, 1, 64, 2},
    };

    UNUSED_STATE(state);
    CHECK_PATH(rows, "launch ~launch_latency gemm cudaDeviceSynchronize op");
}

/* Without steps, what is long and comes after the last device work is not a part of the graph. */
static void the_end_of_a_program_is_left_out(void **state)
{
    const struct row rows[] = {
        {'X', "cuda_runtime", "launch", 1, 1, 0, 5, 5},
        {'X', "kernel", "gemm", 0, 7, 10, 50, 5, 7},
        {'X', "cuda_runtime", "cuModuleUnload", 1, 1, 70, 130},
    };
    struct built b = build_graph(rows, 3);

    UNUSED_STATE(state);
    assert_int_equal(b.graph.end_ns, 60);
    release_graph(&b);
}

static void a_waiting_thread_follows_the_one_at_work(void **state)
{
    const struct row rows[] = {
        {'X', "user_annotation", "step", 1, 1, 0, 100}, {'X', "cpu_op", "forward", 1, 1, 5, 15},
        {'X', "cpu_op", "backward", 1, 2, 30, 40},      {'X', "cpu_op", "update", 1, 1, 80, 10},
        {'X', "cpu_op", "inner", 1, 2, 40, 10},
    };

    UNUSED_STATE(state);
    CHECK_PATH(rows, "forward step backward inner backward step update");
}

static void unrecorded_time_is_a_wait(void **state)
{
    const struct row rows[] = {
        {'X', "cpu_op", "one", 1, 1, 0, 10},
        {'X', "cpu_op", "two", 1, 1, 50, 10},
        {'X', "kernel", "lonely", 0, 7, 100, 10, 9, 7},
    };

    UNUSED_STATE(state);
    CHECK_PATH(rows, "one ~thread_gap two ~unrecorded lonely");
}

static void a_long_wait_on_the_device_is_unexplained(void **state)
{
    struct row rows[] = {{'X', "cuda_runtime", "launch", 1, 1, 0, 5, 5},
                         {'X', "kernel", "gemm", 0, 7, 100005, 50, 5, 7}};

    UNUSED_STATE(state);
    CHECK_PATH(rows, "launch ~launch_latency gemm");
    rows[1].ts++;
    CHECK_PATH(rows, "launch ~unrecorded gemm");
}

static void a_call_of_no_length_may_end_the_window(void **state)
{
    const struct row rows[] = {{'X', "cpu_op", "one", 1, 1, 0, 10},
                               {'X', "cuda_runtime", "query", 1, 1, 50, 0}};

    UNUSED_STATE(state);
    CHECK_PATH(rows, "one ~thread_gap");
}

static void nothing_has_no_path(void **state)
{
    const struct row rows[] = {{'X', "python_function", "main", 1, 1, 5, 10}};

    UNUSED_STATE(state);
    CHECK_PATH(rows, "");
}

/* Random spans and items, with crossings and equal times: the path must still be whole. */
static void any_trace_is_covered(void **state)
{
    struct random r = {7};
    int round;

    UNUSED_STATE(state);
    for (round = 0; round < 200; round++) {
        struct row rows[24];
        struct built b;
        struct rp_path path;
        int64_t sum = 0;
        size_t k;

        random_rows(&r, rows, 24);
        b = build_graph(rows, 24);
        assert_code(rp_path_find(&b.graph, INT64_MAX, &path, NULL), RP_OK);
        for (k = 0; k < path.parts.n; k++)
            sum += path.parts.at[k].end_ns - path.parts.at[k].begin_ns;
        assert_int_equal(sum, path.end_ns - path.begin_ns);
        assert_int_equal(path.end_ns - path.begin_ns,
                         b.graph.end_ns - b.trace->totals.work_begin_ns);
        rp_path_release(&path);
        release_graph(&b);
    }
}

int test_critical_path(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_launch_leads_to_its_kernel),
        cmocka_unit_test(the_device_comes_last),
        cmocka_unit_test(work_comes_last),
        cmocka_unit_test(a_busy_stream_holds_up_what_is_behind),
        cmocka_unit_test(another_stream_may_hold_it_up),
        cmocka_unit_test(a_synchronisation_follows_the_device),
        cmocka_unit_test(the_end_of_a_program_is_left_out),
        cmocka_unit_test(a_waiting_thread_follows_the_one_at_work),
        cmocka_unit_test(unrecorded_time_is_a_wait),
        cmocka_unit_test(a_long_wait_on_the_device_is_unexplained),
        cmocka_unit_test(a_call_of_no_length_may_end_the_window),
        cmocka_unit_test(nothing_has_no_path),
        cmocka_unit_test(any_trace_is_covered),
    };

    return cmocka_run_group_tests_name("critical_path", tests, NULL, NULL);
}
