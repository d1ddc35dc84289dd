/* SPDX-License-Identifier: Apache-2.0 */
/* Which threads carry collectives for the others, and how far back work is searched. */
#include "stepgraph/build.h"
#include "stepgraph/graph_fixtures.h"

#include <stdlib.h>

#define REDUCE(tid, ts, dur)                                             \
    {                                                                    \
        'X', "user_annotation", "gloo:all_reduce", 1, (tid), (ts), (dur) \
    }
#define OP(tid, ts, dur)                                  \
    {                                                     \
        'X', "cpu_op", "aten::add", 1, (tid), (ts), (dur) \
    }

/* Which of the threads of a trace carry collectives: bit i for the i-th. */
static unsigned carriers_of(const struct row *rows, size_t n)
{
    struct built built = build_graph(rows, n);
    struct rp_stepgraph g = {0};
    struct rp_sg_builder b = {.t = built.trace, .work = &built.work, .g = &g};
    unsigned carriers = 0;

    assert_code(rp_sg_find_threads(&b, NULL), RP_OK);
    for (size_t i = 0; i < b.threads.n; i++)
        carriers |= (unsigned)b.threads.at[i].carries << i;
    rp_vec_release(&b.threads);
    rp_vec_release(&b.spans);
    rp_vec_release(&b.busy);
    rp_vec_release(&b.thread_of_track);
    release_graph(&built);
    return carriers;
}
#define CARRIERS(rows) carriers_of((rows), sizeof(rows) / sizeof(rows)[0])

static void a_carrier_mostly_carries(void **state)
{
    struct row rows[] = {OP(1, 0, 1000), REDUCE(2, 100, 300), OP(2, 500, 299)};

    UNUSED_STATE(state);
    assert_int_equal(CARRIERS(rows), 2);
    rows[2].dur = 300; /* half of its time is its own work */
    assert_int_equal(CARRIERS(rows), 0);
}

/* The thread that does most of the work waits in its collectives: nobody gave it these. */
static void the_thread_that_works_most_carries_nothing(void **state)
{
    const struct row alone[] = {OP(1, 0, 100), REDUCE(1, 100, 1000)};
    const struct row less[] = {OP(1, 0, 99), OP(2, 0, 100), REDUCE(1, 100, 1000)};
    const struct row alike[] = {OP(1, 0, 100), OP(2, 0, 100), REDUCE(1, 100, 1000)};

    UNUSED_STATE(state);
    assert_int_equal(CARRIERS(alone), 0);
    assert_int_equal(CARRIERS(less), 1);
    assert_int_equal(CARRIERS(alike), 0);
}

static void a_thread_of_collectives_alone_carries_them(void **state)
{
    const struct row rows[] = {REDUCE(1, 0, 100), REDUCE(2, 0, 100)};

    UNUSED_STATE(state);
    assert_int_equal(CARRIERS(rows), 3);
}

/* Edges dropped where n items of no length begin and end with the wait for the one before them. */
static uint32_t dropped_behind(size_t n)
{
    struct row *rows = calloc(n + 4, sizeof *rows);
    uint32_t dropped;
    struct built b;
    size_t count = 0;

    assert_non_null(rows);
    rows[count++] = (struct row){'X', "cuda_runtime", "launch", 1, 1, 0, 5, 1};
    rows[count++] = (struct row){'X', "kernel", "k", 0, 7, 10, 50, 1, 7};
    rows[count++] = (struct row){'X', "cuda_runtime", "clFinish", 1, 1, 20, 80};
    while (count < n + 3)
        rows[count++] = (struct row){'X', "kernel", "none", 0, 7, 100, 0, 0, 7};
    b = build_graph(rows, count);
    dropped = b.graph.ndropped;
    release_graph(&b);
    free(rows);
    return dropped;
}

static void an_edge_that_is_too_far_back_is_counted(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(dropped_behind(4000), 0);
    assert_true(dropped_behind(4200) > 0);
}

/* Waits that are found of a call for the whole device, at 20, where n items that another thread
   launched meanwhile lie between it and what it waits for; *dropped counts edges that are not. */
static size_t waits_behind(size_t n, int64_t launch_ns, uint32_t *dropped)
{
    struct row *rows = calloc(n + 4, sizeof *rows);
    struct built b;
    size_t count = 0, waits = 0;

    assert_non_null(rows);
    rows[count++] = (struct row){'X', "cuda_runtime", "launch", 1, 1, 0, 5, 1};
    rows[count++] = (struct row){'X', "kernel", "k", 0, 7, 10, 50, 1, 7};
    rows[count++] =
        (struct row){'X', "cuda_runtime", "cudaDeviceSynchronize", 1, 1, 20, 100 + 2 * (int64_t)n};
    rows[count++] = (struct row){'X', "cuda_runtime", "cudaGraphLaunch", 1, 2, launch_ns, 5, 2};
    for (size_t i = 0; i < n; i++)
        rows[count++] = (struct row){'X', "kernel", "other", 0, 7, 70 + 2 * (int64_t)i, 1, 2, 7};
    b = build_graph(rows, count);
    for (size_t i = 0; i < b.graph.edges.n; i++)
        waits += b.graph.edges.at[i].kind == RP_SG_SYNC;
    *dropped = b.graph.ndropped;
    release_graph(&b);
    free(rows);
    return waits;
}

static void a_wait_looks_back_so_far(void **state)
{
    uint32_t dropped;

    UNUSED_STATE(state);
    assert_int_equal(waits_behind(4095, 30, &dropped), 1);
    assert_int_equal(dropped, 0);
    assert_int_equal(waits_behind(4096, 30, &dropped), 0);
    assert_int_equal(dropped, 1);
    assert_int_equal(waits_behind(5000, 10, &dropped), 1); /* for the last of them */
    assert_int_equal(dropped, 0);
}

/* Of a recording that has calls only, calls are work; what the recorder did beside them is not. */
static void calls_alone_are_work(void **state)
{
    struct row rows[] = {{'X', "collective_comm", "MPI_Allreduce", 1, 1, 20, 10},
                         {'X', "calls", "MPI_File_read", 1, 1, 40, 5},
                         {'X', "overhead", "flush", 1, 1, 100, 100}};
    struct built built;

    UNUSED_STATE(state);
    built = build_graph(rows, 3);
    assert_int_equal(built.graph.begin_ns, 20);
    assert_int_equal(built.graph.end_ns, 45);
    release_graph(&built);
    rows[2].category = "user_annotation"; /* then ranges are the work */
    built = build_graph(rows, 3);
    assert_int_equal(built.graph.begin_ns, 100);
    assert_int_equal(built.graph.end_ns, 200);
    release_graph(&built);
}

int test_threads(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_carrier_mostly_carries),
        cmocka_unit_test(the_thread_that_works_most_carries_nothing),
        cmocka_unit_test(a_thread_of_collectives_alone_carries_them),
        cmocka_unit_test(an_edge_that_is_too_far_back_is_counted),
        cmocka_unit_test(a_wait_looks_back_so_far),
        cmocka_unit_test(calls_alone_are_work),
    };

    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
