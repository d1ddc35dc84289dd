/* SPDX-License-Identifier: Apache-2.0 */
/* Begin and end events: nesting, names, what is left over, async chains, arguments of both. */
#include "trace_fixtures.h"

static void test_nested_pairs(void **state)
{
    static const struct row rows[] = {
        {'B', "c", "outer", 1, 1, 10}, {'B', "c", "inner", 1, 1, 20}, {'E', "c", "", 1, 1, 30},
        {'E', "c", "outer", 1, 1, 50}, {'B', "c", "other", 1, 2, 15}, {'E', "c", NULL, 1, 2, 15},
    };
    struct rp_trace *t = TRACE_OF(rows);
    rp_event outer = event_n(t, 0), inner = event_n(t, 1);

    UNUSED_STATE(state);
    assert_int_equal(t->ev.n, 3);
    assert_int_equal(t->ev.dur_ns[outer], 40);
    assert_int_equal(t->ev.dur_ns[inner], 10);
    assert_int_equal(t->ev.flags[outer], RP_EVENT_PAIR);
    assert_int_equal(t->ev.parent[inner], outer);
    assert_int_equal(t->ev.dur_ns[event_n(t, 4)], 0);
    assert_int_equal(t->origins[t->ev.origin[outer]].phase, 'B');
    assert_int_equal(t->health.events, 6);
    assert_int_equal(t->health.unended + t->health.unbegun, 0);
    rp_trace_free(t);
}

/* Ends in the file before their begins, and begins in the wrong order: time decides. */
static void test_order_of_the_file_does_not_matter(void **state)
{
    static const struct row rows[] = {
        {'E', NULL, "", 1, 1, 50},
        {'B', NULL, "b", 1, 1, 20},
        {'E', NULL, "", 1, 1, 30},
        {'B', NULL, "a", 1, 1, 10},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_int_equal(t->ev.n, 2);
    assert_int_equal(t->ev.dur_ns[event_n(t, 3)], 40);
    assert_int_equal(t->ev.dur_ns[event_n(t, 1)], 10);
    rp_trace_free(t);
}

static void test_left_over(void **state)
{
    static const struct row rows[] = {
        {'E', NULL, "never begun", 1, 1, 5},   {'B', NULL, "a", 1, 1, 10},
        {'B', NULL, "lost its end", 1, 1, 20}, {'E', NULL, "a", 1, 1, 30},
        {'B', NULL, "cut off", 1, 1, 40},
    };
    struct rp_trace *t = TRACE_OF(rows);
    rp_event lost = event_n(t, 2), unbegun = event_n(t, 0);

    UNUSED_STATE(state);
    assert_int_equal(t->ev.n, 4);
    assert_int_equal(t->ev.dur_ns[event_n(t, 1)], 20);
    assert_int_equal(t->ev.flags[lost], RP_EVENT_UNENDED);
    assert_int_equal(t->ev.dur_ns[lost], RP_OPEN_NS);
    assert_int_equal(t->ev.parent[lost], event_n(t, 1));
    assert_int_equal(t->ev.flags[unbegun], RP_EVENT_NO_BEGIN);
    assert_int_equal(t->ev.kind[unbegun], RP_KIND_INSTANT);
    assert_int_equal(t->health.unended, 2);
    assert_int_equal(t->health.unbegun, 1);
    rp_trace_free(t);
}

/* What has no time has no other half. */
static void test_without_a_time(void **state)
{
    static const struct row rows[] = {
        {'B', NULL, "a", 1, 1, RP_NO_TS},
        {'E', NULL, "a", 1, 1, RP_NO_TS},
        {'B', NULL, "a", 1, 1, 10},
        {'E', NULL, "a", 1, 1, 20},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_int_equal(t->ev.n, 3);
    assert_int_equal(t->ev.flags[event_n(t, 0)], RP_EVENT_UNENDED);
    assert_int_equal(t->ev.flags[event_n(t, 1)], RP_EVENT_NO_BEGIN);
    assert_int_equal(t->ev.dur_ns[event_n(t, 0)], RP_OPEN_NS);
    assert_int_equal(t->ev.dur_ns[event_n(t, 1)], RP_OPEN_NS);
    assert_int_equal(t->ev.dur_ns[event_n(t, 2)], 10);
    assert_int_equal(t->health.unended, 1);
    assert_int_equal(t->health.unbegun, 1);
    rp_trace_free(t);
}

/* An end is searched for among the begins around it; those in between have none. */
static void test_an_end_closes_what_is_inside(void **state)
{
    static const struct row rows[] = {
        {'B', NULL, "a", 1, 1, 10}, {'B', NULL, "b", 1, 1, 20}, {'B', NULL, "c", 1, 1, 30},
        {'E', NULL, "b", 1, 1, 40}, {'E', NULL, "a", 1, 1, 60}, {'E', NULL, "c", 1, 1, 70},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_int_equal(t->ev.dur_ns[event_n(t, 0)], 50);
    assert_int_equal(t->ev.dur_ns[event_n(t, 1)], 20);
    assert_int_equal(t->ev.dur_ns[event_n(t, 2)], RP_OPEN_NS);
    assert_int_equal(t->health.unended, 1);
    assert_int_equal(t->health.unbegun, 1);
    rp_trace_free(t);
}

/* What never ended is open until the span around it ends, and holds what comes inside. */
static void test_unended_holds_the_rest(void **state)
{
    static const struct row rows[] = {
        {'B', NULL, "open", 1, 1, 10},
        {'X', NULL, "in it", 1, 1, 10, 5},
        {'X', NULL, "later", 1, 1, 1000, 5},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_int_equal(t->ev.parent[event_n(t, 1)], event_n(t, 0));
    assert_int_equal(t->ev.parent[event_n(t, 2)], event_n(t, 0));
    rp_trace_free(t);
}

static void test_async_chains(void **state)
{
    static const struct row rows[] = {
        {'b', "net", "get", 1, 1, 10, .id = 5},  {'b', "net", "dns", 1, 1, 12, .id = 5},
        {'b', "disk", "get", 1, 1, 13, .id = 5}, {'e', "net", "get", 1, 2, 40, .id = 5},
        {'e', "net", "dns", 1, 2, 20, .id = 5},  {'e', "disk", "get", 1, 1, 14, .id = 5},
        {'S', "io", "read", 1, 1, 1, .id = 6},   {'F', "io", "read", 1, 1, 9, .id = 6},
        {'b', "net", "no id", 1, 1, 50},         {'X', "cpu_op", "op", 1, 1, 11, 100},
    };
    struct rp_trace *t = TRACE_OF(rows);
    rp_event get = event_n(t, 0), dns = event_n(t, 1), disk = event_n(t, 2);

    UNUSED_STATE(state);
    assert_int_equal(t->ev.n, 6);
    assert_int_equal(t->ev.dur_ns[get], 30);
    assert_int_equal(t->ev.dur_ns[dns], 8);
    assert_int_equal(t->ev.dur_ns[disk], 1);
    assert_int_equal(t->ev.dur_ns[event_n(t, 6)], 8);
    assert_int_equal(t->ev.link[get], t->ev.link[dns]);
    assert_int_not_equal(t->ev.link[get], t->ev.link[disk]);
    assert_int_equal(t->links.source[t->ev.link[get]], RP_LINK_ASYNC_ID);
    assert_int_equal(t->links.native_id[t->ev.link[disk]], 5);
    assert_int_equal(t->ev.parent[disk], RP_NONE); /* inside "op" in time, but no part of it */
    assert_int_equal(t->health.unended, 1);
    rp_trace_free(t);
}

static void test_arguments_of_both(void **state)
{
    static const struct row rows[] = {
        {'B', NULL, "a", 1, 1, 10, .key = "x", .value = 1},
        {'E', NULL, "a", 1, 1, 20, .key = "y", .value = 2},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_int_equal(t->ev.n, 1);
    assert_int_equal(arg_of(t, 0, "n"), 0); /* both have it: the begin's */
    assert_int_equal(arg_of(t, 0, "x"), 1);
    assert_int_equal(arg_of(t, 0, "y"), 2);
    assert_int_equal(rp_args_count(&t->args, t->ev.shape[0], t->ev.arg_row[0]), 3);
    rp_trace_free(t);
}

static void test_deep_nesting(void **state)
{
    enum { DEPTH = 100000 };
    struct rp_builder *b = build_rows(NULL, 0);
    struct rp_trace *t;
    int i;

    UNUSED_STATE(state);
    for (i = 0; i < DEPTH; i++)
        add_row(b, &(struct row){'B', NULL, "b", 1, 1, i});
    for (i = 0; i < DEPTH; i++)
        add_row(b, &(struct row){'E', NULL, "b", 1, 1, DEPTH + i});
    t = finish_valid(b);
    assert_int_equal(t->ev.n, DEPTH);
    for (i = 1; i < DEPTH; i++)
        assert_int_equal(t->ev.parent[i], i - 1);
    assert_int_equal(t->ev.dur_ns[0], 2 * DEPTH - 1);
    rp_trace_free(t);
}

int test_pairs(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nested_pairs),
        cmocka_unit_test(test_order_of_the_file_does_not_matter),
        cmocka_unit_test(test_left_over),
        cmocka_unit_test(test_without_a_time),
        cmocka_unit_test(test_an_end_closes_what_is_inside),
        cmocka_unit_test(test_unended_holds_the_rest),
        cmocka_unit_test(test_async_chains),
        cmocka_unit_test(test_arguments_of_both),
        cmocka_unit_test(test_deep_nesting),
    };

    return cmocka_run_group_tests_name("pairs", tests, NULL, NULL);
}
