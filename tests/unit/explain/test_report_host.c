/* SPDX-License-Identifier: Apache-2.0 */
/* Pauses between operators have a cause, and add up. */
#include "explain/report/report.h"
#include "trace/trace_fixtures.h"

static void pauses_have_causes(void **state)
{
    static const struct row rows[] = {
        {'X', "user_annotation", "ProfilerStep#1", 1, 1, 0, 1000},
        {'X', "cpu_op", "a", 1, 1, 0, 100},
        {'X', "user_annotation", "enumerate(DataLoader)#next", 1, 1, 110, 80},
        {'X', "cpu_op", "b", 1, 1, 200, 100},
        {'X', "python_function", "train.py(7): loop", 1, 1, 310, 80},
        {'X', "cpu_op", "c", 1, 1, 400, 100},
        {'X', "overhead", "flush", 1, 2, 500, 95},
        {'X', "cpu_op", "d", 1, 1, 600, 100},
        {'X', "cpu_op", "e", 1, 1, 800, 100},
        {'X', "cpu_op", "f", 1, 1, 1500, 100},
    };
    rp_interval_vec busy = {0};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_trace *t = TRACE_OF(rows);
    const struct rp_breakdown all = {.begin_ns = 0, .end_ns = 1600};
    const struct rp_breakdown wide = {.begin_ns = -50, .end_ns = 1900};
    const struct rp_breakdown narrow = {.begin_ns = 350, .end_ns = 1000};
    struct rp_report_pauses p;
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (!strcmp(rows[i].category, "cpu_op"))
            assert_code(rp_union_add(&busy, rows[i].ts, rows[i].ts + rows[i].dur, NULL), RP_OK);
    assert_code(rp_report_find_pauses(t, &busy, &all, &arena, &p, NULL), RP_OK);
    assert_int_equal(p.ns[RP_PAUSE_DATA], 100);
    assert_string_equal(p.mainly[RP_PAUSE_DATA], "enumerate(DataLoader)#next");
    assert_int_equal(p.ns[RP_PAUSE_PYTHON], 100);
    assert_int_equal(p.ns[RP_PAUSE_PROFILER], 100);
    assert_int_equal(p.ns[RP_PAUSE_NOTHING], 100);
    assert_int_equal(p.ns[RP_PAUSE_OUTSIDE], 600);
    assert_int_equal(p.longest_ns[RP_PAUSE_OUTSIDE], 600);
    assert_null(p.mainly[RP_PAUSE_NOTHING]);
    /* the span may be longer than the operators, or shorter */
    assert_code(rp_report_find_pauses(t, &busy, &wide, &arena, &p, NULL), RP_OK);
    assert_int_equal(p.ns[RP_PAUSE_OUTSIDE], 600 + 50 + 300);
    assert_code(rp_report_find_pauses(t, &busy, &narrow, &arena, &p, NULL), RP_OK);
    assert_int_equal(p.ns[RP_PAUSE_DATA], 0);
    assert_int_equal(p.ns[RP_PAUSE_PYTHON], 50);
    assert_int_equal(p.ns[RP_PAUSE_NOTHING], 100 + 100);
    rp_vec_release(&busy);
    rp_trace_free(t);
    rp_arena_release(&arena);
}

int test_report_host(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pauses_have_causes)};

    return cmocka_run_group_tests_name("report_host", tests, NULL, NULL);
}
