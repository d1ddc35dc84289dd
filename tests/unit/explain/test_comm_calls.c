/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a rank that may hang: which have ended, and the line of the program they are in. */
#include "explain/comm/check.h"
#include "trace/trace_fixtures.h"

static struct rp_trace *t;
static struct rp_arena arena;
static struct rp_comm_call *calls;
static size_t n;

static void find(const struct row *rows, size_t nrows)
{
    static const struct rp_collectives none;
    struct rp_err err = RP_ERR_INIT;

    t = trace_of(rows, nrows);
    rp_arena_init(&arena);
    assert_ok(rp_comm_find_calls(t, &none, &arena, &calls, &n, &err), &err);
}

static void release(void)
{
    rp_arena_release(&arena);
    rp_trace_free(t);
}

#define OPEN                                           \
    {                                                  \
        'X', "in_flight", "MPI_Barrier", 1, 5, 900, 50 \
    }

/* The innermost Python frame that is not in a library, or else the innermost one. */
static void lines_of_the_program(void **state)
{
    static const struct {
        const char *stack, *line;
    } rows[] = {
        {"train.py(125): step", "train.py:125 step"},
        {"/site-packages/torch/x.py(1): f;train.py(2): g", "train.py:2 g"},
        {"torch/x.py(1): f;train.py(2): g", "train.py:2 g"},
        {"/usr/lib/python3.11/threading.py(9): wait;train.py(2): g", "train.py:2 g"},
        {"/x/python3.11/site-packages/own.py(3): h;train.py(2): g",
         "/x/python3.11/site-packages/own.py:3 h"},
        {"/opt/my-torch/bin/train.py(4): main;other.py(5): m", "/opt/my-torch/bin/train.py:4 main"},
        {"/opt/my-torch/torch/x.py(4): f;train.py(2): g", "train.py:2 g"},
        {"torch/a.py(1): f;torch/b.py(2): g", "torch/a.py:1 f"}, /* libraries alone */
        {"libc.so(3): poll;train.py(2): g", "train.py:2 g"},
        {"train.py(2); : g;other.py(7): m", "other.py:7 m"},
        {"train.py(2): ;other.py(7): m", "train.py:2 "},
        {"train.py(2):", NULL},
        {"train.py 2", NULL},
        {"", NULL},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row row[] = {OPEN,
                                  {'X', "collective_comm", "MPI_Allreduce", 1, 5, 100, 10,
                                   .text_key = "Call stack", .text = rows[i].stack}};

        find(row, 2);
        assert_int_equal(n, 2);
        if (!calls[0].line != !rows[i].line ||
            (calls[0].line && strcmp(calls[0].line, rows[i].line)))
            fail_msg("'%s': '%s'", rows[i].stack, calls[0].line ? calls[0].line : "none");
        release();
    }
}

/* A note of a long call counts if the call has no span of its own. */
static void calls_that_have_not_ended(void **state)
{
    static const struct row rows[] = {
        {'X', "in_flight", "MPI_Barrier", 1, 5, 300, 50}, /* ended: the next one */
        {'X', "collective_comm", "MPI_Barrier", 1, 5, 300, 90},
        {'X', "in_flight", "MPI_Bcast", 1, 6, 200, 50}, /* of another name */
        {'X', "collective_comm", "MPI_Allreduce", 1, 5, 200, 10},
        {'X', "in_flight", "MPI_Reduce", 1, 7, 100, 50}, /* at another time */
        {'X', "collective_comm", "MPI_Reduce", 1, 5, 101, 10},
        {'X', "cpu_op", "aten::mm", 1, 5, 50, 10},
    };
    static const struct {
        int64_t begin_ns;
        enum rp_coll_kind kind;
        int ended;
    } want[] = {{100, RP_COLL_REDUCE, 0},
                {101, RP_COLL_REDUCE, 1},
                {200, RP_COLL_ALL_REDUCE, 1}, /* what has ended comes first */
                {200, RP_COLL_BROADCAST, 0},
                {300, RP_COLL_BARRIER, 1}};

    UNUSED_STATE(state);
    find(rows, 7);
    assert_true(rp_comm_may_hang(t));
    assert_int_equal(n, 5);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(calls[i].begin_ns, want[i].begin_ns);
        assert_string_equal(calls[i].kind, rp_coll_kind_names[want[i].kind]);
        assert_int_equal(calls[i].ended, want[i].ended);
    }
    release();
    find(rows, 2);
    assert_false(rp_comm_may_hang(t));
    assert_int_equal(n, 0);
    release();
}

static void states_and_sizes(void **state)
{
    static const struct row rows[] = {
        OPEN,
        {'X', "collective_comm", "MPI_Allreduce", 1, 5, 100, 10, .text_key = "State",
         .text = "completed"},
        {'X', "collective_comm", "MPI_Allreduce", 1, 5, 200, 10, .text_key = "State",
         .text = "started"},
        {'X', "collective_comm", "ring_of_mine", 1, 5, 300, 10, .text_key = "Process Group Name",
         .text = "world", .text_key2 = "dtype", .text2 = "Float", .key = "In msg nelems",
         .value = 3},
    };

    UNUSED_STATE(state);
    find(rows, 4);
    assert_int_equal(n, 4);
    assert_int_equal(calls[0].ended, 1);
    assert_int_equal(calls[0].in_bytes, -1);
    assert_null(calls[0].group);
    assert_int_equal(calls[1].ended, 0);
    assert_string_equal(calls[2].kind, "ring_of_mine");
    assert_string_equal(calls[2].group, "world");
    assert_int_equal(calls[2].in_bytes, 12);
    assert_int_equal(calls[3].ended, 0);
    release();
}

int test_comm_calls(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_the_program),
        cmocka_unit_test(calls_that_have_not_ended),
        cmocka_unit_test(states_and_sizes),
    };

    return cmocka_run_group_tests_name("comm_calls", tests, NULL, NULL);
}
