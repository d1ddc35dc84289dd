/* SPDX-License-Identifier: Apache-2.0 */
/* A clock that was set while a rank was recorded: which events move, and which become shorter. */
#include "trace/trace_fixtures.h"

#include "explain/merge/merge.h"

enum { MOST = 8 };

/* Operators of 1 ns that begin at these times on one thread, and a span on another, unless it has
   no length; where they are after the step was undone. */
struct undone {
    int64_t ts[MOST], span_ns, span_dur;
};

static struct undone undo(const int64_t *begins, size_t n, struct rp_interval span,
                          struct rp_clock_step step)
{
    struct row rows[MOST + 1];
    struct rp_clock clock = {.nsteps = 1, .steps = &step};
    struct rp_trace *trace, *copy;
    struct rp_err err = RP_ERR_INIT;
    struct undone out;
    size_t count = n;

    for (size_t i = 0; i < n; i++)
        rows[i] = (struct row){'X', "cpu_op", "aten::mm", 1, 1, begins[i], 1};
    if (span.end_ns > span.begin_ns)
        rows[count++] =
            (struct row){'X', "cpu_op", "long", 1, 2, span.begin_ns, span.end_ns - span.begin_ns};
    trace = trace_of(rows, count);
    assert_ok(rp_merge_undo_steps(trace, &clock, NULL, &copy, &err), &err);
    for (size_t i = 0; i < n; i++)
        out.ts[i] = copy->ev.ts_ns[event_n(copy, (int64_t)i)];
    if (count > n) {
        rp_event e = event_n(copy, (int64_t)n);

        out.span_ns = copy->ev.ts_ns[e];
        out.span_dur = copy->ev.dur_ns[e];
    }
    rp_trace_free(copy);
    rp_trace_free(trace);
    return out;
}

/* How many of the begins were moved, each by what was added: they are the last ones. */
static size_t moved(const int64_t *begins, size_t n, int64_t from_ns, int64_t add_ns)
{
    struct undone u =
        undo(begins, n, (struct rp_interval){0}, (struct rp_clock_step){from_ns, add_ns});
    size_t first = n;

    while (first > 0 && u.ts[first - 1] == begins[first - 1] + add_ns)
        first--;
    for (size_t i = 0; i < first; i++)
        assert_int_equal(u.ts[i], begins[i]);
    return n - first;
}

/* Clocks drift by 200 ppm: of 10,000 ns a gap of 9,998 can be what was left out. */
static void a_gap_is_as_long_as_the_step(void **state)
{
    static const int64_t just[] = {0, 100, 10098, 10200}, less[] = {0, 100, 10097, 10200};

    UNUSED_STATE(state);
    assert_int_equal(moved(just, 4, 5000, -10000), 2);
    assert_int_equal(moved(just, 4, 10150, -10000), 2);
    assert_int_equal(moved(just, 4, 50, -10000), 2);
    assert_int_equal(moved(less, 4, 10150, -10000), 1); /* no gap: where it was found */
    assert_int_equal(moved(less, 4, 10200, -10000), 1);
    assert_int_equal(moved(less, 4, 10201, -10000), 0);
}

static void the_nearest_gap_is_taken(void **state)
{
    static const int64_t two[] = {0, 10000, 10050, 20050, 20060};

    UNUSED_STATE(state);
    assert_int_equal(moved(two, 5, 9999, -10000), 4);
    assert_int_equal(moved(two, 5, 10020, -10000), 4);
    assert_int_equal(moved(two, 5, 10025, -10000), 4); /* equally far */
    assert_int_equal(moved(two, 5, 10026, -10000), 2);
    assert_int_equal(moved(two, 5, 10050, -10000), 2);
    assert_int_equal(moved(two, 5, 30000, -10000), 2);
}

/* Set back: without collectives what began from then on is later. */
static void a_clock_that_was_set_back(void **state)
{
    static const int64_t begins[] = {0, 100, 200, 300};

    UNUSED_STATE(state);
    assert_int_equal(moved(begins, 4, 200, 1000), 2);
    assert_int_equal(moved(begins, 4, 201, 1000), 1);
}

/* A span that the clock was set in has the step in its length. */
static void spans_around_it_become_shorter(void **state)
{
    static const int64_t begins[] = {0, 10100};
    const struct rp_clock_step step = {5000, -10000};
    struct undone u = undo(begins, 2, (struct rp_interval){50, 10101}, step);

    UNUSED_STATE(state);
    assert_int_equal(u.span_ns, 50);
    assert_int_equal(u.span_dur, 51);
    assert_int_equal(u.ts[1], 100);
    u = undo(begins, 2, (struct rp_interval){99, 10100}, step); /* it ends where the gap does */
    assert_int_equal(u.span_dur, 1);
    u = undo(begins, 2, (struct rp_interval){100, 10100}, step); /* no longer than the step */
    assert_int_equal(u.span_dur, 10000);
    u = undo(begins, 2, (struct rp_interval){50, 10099}, step); /* it ends before */
    assert_int_equal(u.span_dur, 10049);
    u = undo(begins, 2, (struct rp_interval){10100, 30000}, step); /* it begins after */
    assert_int_equal(u.span_ns, 100);
    assert_int_equal(u.span_dur, 19900);
}

/* Work of devices is divided by the communication around the step, where there is some on both
   sides; what has no call and is between them is before. Other work divides nothing. */
static void communication_divides_devices(void **state)
{
    static const char *const names[] = {"other", "ncclDevKernel_AllReduce"};
    struct rp_clock_step step = {5000, -10000};
    struct rp_clock clock = {.nsteps = 1, .steps = &step};

    UNUSED_STATE(state);
    for (int before = 0; before < 2; before++)
        for (int after = 0; after < 2; after++) {
            const struct row rows[] = {{'X', "cpu_op", "a", 1, 1, 0, 1},
                                       {'X', "cpu_op", "a", 1, 1, 100, 1},
                                       {'X', "cpu_op", "a", 1, 1, 10098, 1},
                                       {'X', "kernel", names[before], 0, 7, 4999, 1},
                                       {'X', "kernel", "other", 0, 7, 10097, 1},
                                       {'X', "kernel", "other", 0, 7, 10098, 1},
                                       {'X', "kernel", names[after], 0, 7, 12000, 1},
                                       {'M', NULL, "process_name", 1, 1, 12000}};
            int64_t want[] = {0, 100, 98, 4999, 10097, before && after ? 10098 : 98, 2000};
            struct rp_trace *trace = TRACE_OF(rows), *copy;
            struct rp_err err = RP_ERR_INIT;

            assert_ok(rp_merge_undo_steps(trace, &clock, NULL, &copy, &err), &err);
            for (int64_t i = 0; i < 7; i++)
                assert_int_equal(copy->ev.ts_ns[event_n(copy, i)], want[i]);
            assert_int_equal(copy->ev.ts_ns[event_n(copy, 7)], trace->ev.ts_ns[event_n(trace, 7)]);
            rp_trace_free(copy);
            rp_trace_free(trace);
        }
}

int test_merge_steps(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gap_is_as_long_as_the_step),
        cmocka_unit_test(the_nearest_gap_is_taken),
        cmocka_unit_test(a_clock_that_was_set_back),
        cmocka_unit_test(spans_around_it_become_shorter),
        cmocka_unit_test(communication_divides_devices),
    };

    return cmocka_run_group_tests_name("merge_steps", tests, NULL, NULL);
}
