/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for the device that no record tells: a thread that does nothing, and goes on as soon as the
   device has nothing left to do; a program of XLA; a launch while the queue is full. */
#include "graph_fixtures.h"

#include <stdlib.h>

#define MOST 10
#define WORK 10000 /* of the thread in a round */

/* Waits that are found where the thread is quiet for quiet_ns between rounds and goes on after_ns
   after the kernel has ended; in the last `apart` rounds apart_ns after that. */
static size_t waits_in(size_t rounds, int64_t quiet_ns, int64_t after_ns, size_t apart,
                       int64_t apart_ns)
{
    struct row rows[2 * MOST];
    struct built b;
    size_t n = 0, waits = 0;

    for (size_t i = 0; i < rounds; i++) {
        int64_t at = (int64_t)i * (WORK + quiet_ns), next = at + WORK + quiet_ns;
        int64_t after = i + 1 + apart >= rounds ? apart_ns : after_ns;

        rows[n++] = (struct row){'X', "cpu_op", "poll", 1, 1, at, WORK};
        if (i + 1 < rounds)
            rows[n++] =
                (struct row){'X', "kernel", "k", 0, 7, at + 5000, next - after - at - 5000, 0, 7};
    }
    b = build_graph(rows, n);
    for (size_t i = 0; i < b.graph.edges.n; i++)
        waits += b.graph.edges.at[i].kind == RP_SG_SYNC;
    release_graph(&b);
    return waits;
}

static void a_thread_that_polls_waits(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(waits_in(5, 200000, 1000, 0, 160000), 4);
    assert_int_equal(waits_in(5, 200000, 20000, 0, 160000), 4);
    assert_int_equal(waits_in(5, 200000, 20001, 0, 160000), 0); /* not soon enough */
    /* clocks of devices are not exact: three waits, the fourth only shows that it is one */
    assert_int_equal(waits_in(5, 200000, 1000, 1, -20000), 3);
    assert_int_equal(waits_in(5, 200000, 1000, 1, -20001), 0);
    assert_int_equal(waits_in(4, 200000, 1000, 0, 160000), 0); /* three times may be chance */
    assert_int_equal(waits_in(5, 100000, 1000, 0, 160000), 4);
    assert_int_equal(waits_in(5, 99999, 1000, 0, 160000), 0);   /* not quiet for long enough */
    assert_int_equal(waits_in(10, 200000, 1000, 1, 160000), 8); /* eight of nine */
    assert_int_equal(waits_in(10, 200000, 1000, 2, 160000),
                     0); /* seven of nine: it does something else */
}

/* A range around all of it has only the time in which nobody waits: from the end of each kernel to
   the next round. */
static void a_range_does_not_work_while_its_thread_waits(void **state)
{
    const int64_t round = 210000, after = 1000;
    struct row rows[2 * 5] = {{'X', "user_annotation", "step", 1, 1, 0, 4 * round + WORK}};
    struct built b;
    int64_t sum = 0;
    size_t n = 1;

    UNUSED_STATE(state);
    for (int64_t i = 0; i < 5; i++) {
        rows[n++] = (struct row){'X', "cpu_op", "poll", 1, 1, i * round, WORK};
        if (i < 4)
            rows[n++] = (struct row){
                'X', "kernel", "k", 0, 7, i * round + 5000, round - after - 5000, 0, 7};
    }
    b = build_graph(rows, n);
    for (size_t i = 0; i < b.graph.nodes.n; i++)
        sum += strcmp(b.graph.names.at[b.graph.nodes.at[i].name], "step")
                   ? 0
                   : b.graph.nodes.at[i].dur_ns;
    assert_int_equal(sum, 4 * after);
    release_graph(&b);
}

/* Waits that are found in operators that launch a kernel, record nothing for 2 ms, and go on
   before_ns before the kernel ends. */
static size_t operator_waits(size_t rounds, int64_t before_ns)
{
    const int64_t round = 3000000, goes_on = 2000000;
    struct row rows[4 * MOST];
    struct built b;
    size_t n = 0, waits = 0;

    for (size_t i = 0; i < rounds; i++) {
        int64_t at = (int64_t)i * round, id = (int64_t)i + 1;

        rows[n++] = (struct row){'X', "cpu_op", "dispatch", 1, 1, at, goes_on + 5000};
        rows[n++] = (struct row){'X', "cuda_runtime", "cudaLaunchKernel", 1, 1, at + 1, 4000, id};
        rows[n++] = (struct row){'X', "cpu_op", "aten::empty", 1, 1, at + goes_on, 1000};
        rows[n++] = (struct row){
            'X', "kernel", "notify", 0, 7, at + 9000, goes_on + before_ns - 9000, id, 7};
    }
    b = build_graph(rows, n);
    for (size_t i = 0; i < b.graph.edges.n; i++)
        waits += b.graph.edges.at[i].kind == RP_SG_SYNC;
    release_graph(&b);
    return waits;
}

static void an_operator_polls_for_what_it_launched(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(operator_waits(4, 40000), 4);  /* it is told before the kernel ends */
    assert_int_equal(operator_waits(4, 100000), 0); /* too long before: it does something else */
    assert_int_equal(operator_waits(4, -20000), 4);
    assert_int_equal(operator_waits(4, -20001), 0);
    assert_int_equal(operator_waits(3, 40000), 0); /* three times may be chance */
}

/* Waits where a runtime of XLA launches `name` in each of five rounds of a millisecond; the kernel
   ends after_ns before the next round. With a frame the thread is in a function of Python between
   the rounds. */
static size_t result_waits(const char *name, int64_t after_ns, const char *frame)
{
    const int64_t round = 1000000;
    struct row rows[4 * 5 + 2];
    size_t n = 0, waits = 0;
    struct built b;

    for (int64_t i = 0; i < 5; i++) {
        int64_t at = i * round, begin = at + 5000;

        rows[n++] = (struct row){'X', "cpu_op", name, 1, 1, at, WORK};
        rows[n++] = (struct row){'X', "cuda_runtime", "cuGraphLaunch", 1, 1, at, 4000, i + 1};
        rows[n++] =
            (struct row){'X', "kernel", "k", 0, 7, begin, at + round - after_ns - begin, i + 1, 7};
        if (frame)
            rows[n++] = (struct row){'X',
                                     frame[0] == '$' ? "python_function" : "user_annotation",
                                     frame,
                                     1,
                                     1,
                                     at + 2 * WORK,
                                     round - 3 * WORK};
    }
    b = build_graph(rows, n);
    for (size_t i = 0; i < b.graph.edges.n; i++)
        waits += b.graph.edges.at[i].kind == RP_SG_SYNC;
    release_graph(&b);
    return waits;
}

static void a_runtime_of_xla_waits_without_a_call(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(result_waits("loop_add_fusion", 300000, NULL), 4);
    assert_int_equal(result_waits("loop_add_fusion", 742500, NULL), 4); /* busy for a quarter */
    assert_int_equal(result_waits("loop_add_fusion", 742501, NULL), 0);
    assert_int_equal(result_waits("aten::add", 300000, NULL), 0); /* there a wait is a call */
    assert_int_equal(result_waits("loop_add_fusion", -1, NULL),
                     0); /* it runs ahead of the device */
    assert_int_equal(result_waits("loop_add_fusion", 300000, "$a.py:1 load"), 0);
    assert_int_equal(result_waits("loop_add_fusion", 300000, "range"), 0); /* it does something */
    assert_int_equal(result_waits("loop_add_fusion", 300000, "$api.py:3 block_until_ready"), 4);
}

/* A launch of long_ns behind n others, none of which has begun but the first; it returns when that
   one ends. */
static size_t waits_of_launch(size_t n, int64_t long_ns, const char *call)
{
    struct row *rows = calloc(2 * n + 2, sizeof *rows);
    int64_t last = (int64_t)n * 10000, first_end = last + long_ns - 1500;
    size_t count = 0, waits = 0;
    struct built b;

    assert_non_null(rows);
    for (size_t i = 0; i <= n; i++) {
        int64_t at = (int64_t)i * 10000, begin = i ? first_end + (int64_t)(i - 1) * 1000 : 5000;

        rows[count++] = (struct row){'X',
                                     "cuda_runtime",
                                     i < n ? "cudaLaunchKernel" : call,
                                     1,
                                     1,
                                     at,
                                     i < n ? 4000 : long_ns,
                                     (int64_t)i + 1};
        rows[count++] = (struct row){
            'X', "kernel", "k", 0, 7, begin, i ? 1000 : first_end - begin, (int64_t)i + 1, 7};
    }
    b = build_graph(rows, count);
    for (size_t i = 0; i < b.graph.edges.n; i++)
        waits += b.graph.edges.at[i].kind == RP_SG_SYNC;
    release_graph(&b);
    free(rows);
    return waits;
}

static void a_launch_waits_while_the_queue_is_full(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(waits_of_launch(600, 400000, "cudaLaunchKernel"), 1);
    assert_int_equal(waits_of_launch(600, 400000, "cudaMemsetAsync"), 1);
    assert_int_equal(waits_of_launch(600, 400000, "cudaMalloc"), 0);
    assert_int_equal(waits_of_launch(600, 100000, "cudaLaunchKernel"), 1);
    assert_int_equal(waits_of_launch(600, 99999, "cudaLaunchKernel"), 0);  /* it took its time */
    assert_int_equal(waits_of_launch(503, 400000, "cudaLaunchKernel"), 1); /* three have begun */
    assert_int_equal(waits_of_launch(502, 400000, "cudaLaunchKernel"), 0); /* there was room */
}

int test_silent_waits(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_that_polls_waits),
        cmocka_unit_test(a_range_does_not_work_while_its_thread_waits),
        cmocka_unit_test(an_operator_polls_for_what_it_launched),
        cmocka_unit_test(a_runtime_of_xla_waits_without_a_call),
        cmocka_unit_test(a_launch_waits_while_the_queue_is_full)};

    return cmocka_run_group_tests_name("silent waits", tests, NULL, NULL);
}
