/* SPDX-License-Identifier: Apache-2.0 */
/* Canonical order and parents of random traces against the slow and obvious way. */
#include "trace/finish/index_sort.h"
#include "trace_fixtures.h"

struct plain {
    int64_t ts, dur, tid;
    uint32_t n;
};

static int canonical(const void *pa, const void *pb)
{
    const struct plain *a = pa, *b = pb;

    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    if (a->ts != b->ts)
        return a->ts < b->ts ? -1 : 1;
    if (a->dur != b->dur)
        return a->dur > b->dur ? -1 : 1;
    return a->n < b->n ? -1 : a->n > b->n;
}

/* Spans, moments and events without a time on a few tracks; scale stretches the times so that both
   ways of sorting are taken. */
static struct plain *make_events(struct random *r, uint32_t n, uint32_t ntracks, int64_t scale)
{
    struct plain *p = calloc(n, sizeof *p);
    uint32_t i, spread = n < 50 ? 20 : n;

    assert_non_null(p);
    for (i = 0; i < n; i++) {
        p[i].n = i;
        p[i].tid = random_below(r, ntracks);
        p[i].ts = random_below(r, 50) ? (int64_t)random_below(r, spread) * scale : RP_NO_TS;
        p[i].dur =
            random_below(r, 5) ? (int64_t)random_below(r, spread / 2 + 1) * scale : RP_OPEN_NS;
    }
    return p;
}

static struct rp_trace *trace_of_plain(const struct plain *p, uint32_t n, uint32_t ntracks)
{
    struct rp_builder *b = build_rows(NULL, 0);
    uint32_t i;

    for (i = 0; i < ntracks; i++)
        track_of(b, 1, i);
    for (i = 0; i < n; i++) {
        struct rp_arg arg = {str_of(b, "n"), RP_ARG_I64, {.i = i}};
        struct rp_raw raw = {.ts_ns = p[i].ts,
                             .dur_ns = p[i].dur,
                             .track = track_of(b, 1, p[i].tid),
                             .origin = origin_of(b, 'X', "cpu_op"),
                             .args = &arg,
                             .nargs = 1};

        assert_code(rp_builder_shape(b, &arg, 1, &raw.shape, NULL), RP_OK);
        assert_code(rp_builder_add(b, &raw, NULL), RP_OK);
    }
    return finish_valid(b);
}

static int64_t end_of(const struct plain *p)
{
    return p->dur > 0 ? p->ts + p->dur : p->ts;
}

/* The last span before e that holds it, by looking at all of them. */
static uint32_t slow_parent(const struct plain *p, uint32_t e)
{
    uint32_t i;

    for (i = e; p[e].ts != RP_NO_TS && i-- > 0;)
        if (p[i].tid == p[e].tid && p[i].ts != RP_NO_TS && p[i].dur >= 0 &&
            end_of(&p[i]) > p[e].ts && end_of(&p[i]) >= end_of(&p[e]))
            return i;
    return RP_NONE;
}

static void compare(struct random *r, uint32_t n, uint32_t ntracks, int64_t scale)
{
    struct plain *p = make_events(r, n, ntracks, scale);
    struct rp_trace *t = trace_of_plain(p, n, ntracks);
    uint32_t i;

    qsort(p, n, sizeof *p, canonical);
    assert_int_equal(t->ev.n, n);
    for (i = 0; i < n; i++) {
        assert_int_equal(rp_args_at(&t->args, t->ev.shape[i], t->ev.arg_row[i], 0).v.i, p[i].n);
        assert_true(t->ev.ts_ns[i] == p[i].ts && t->ev.dur_ns[i] == p[i].dur);
        assert_int_equal(t->ev.parent[i], slow_parent(p, i));
    }
    rp_trace_free(t);
    free(p);
}

static void test_random_small(void **state)
{
    struct random r = {1};
    uint32_t i;

    UNUSED_STATE(state);
    for (i = 0; i < 400; i++)
        compare(&r, 1 + random_below(&r, 40), 1 + random_below(&r, 3), 1);
}

static void test_random_large(void **state)
{
    static const int64_t scales[] = {1, 1000, INT64_C(1) << 40, INT64_C(1) << 48};
    struct random r = {2};
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof scales / sizeof scales[0]; i++)
        compare(&r, 6000, 2, scales[i]);
}

static void test_extreme_times(void **state)
{
    static const struct row rows[] = {
        {'X', NULL, "late", 1, 1, INT64_MAX, INT64_MAX},
        {'X', NULL, "early", 1, 1, INT64_MIN + 1, INT64_MAX},
        {'X', NULL, "mid", 1, 1, 0, 0},
        {'M', NULL, "none", 1, 1, RP_NO_TS, 0},
        {'X', NULL, "negative", 1, 1, -5, -700},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_string_equal(name_of(t, 0), "none");
    assert_string_equal(name_of(t, 1), "early");
    assert_string_equal(name_of(t, 4), "late");
    assert_true(rp_event_end_ns(t, 4) == RP_TIME_MAX_NS);
    assert_int_equal(t->health.negative_dur, 1);
    rp_trace_free(t);
}

/* The earliest time is that of a row, however late all of them are. */
static void test_the_last_times_are_sorted(void **state)
{
    enum { ROWS = 40 };
    uint32_t track[ROWS] = {0};
    int64_t ts[ROWS];
    struct rp_sort_keys keys = {.n = ROWS, .ntracks = 1, .track = track, .ts_ns = ts};
    struct rp_sort_scratch scratch = {0};
    rp_row_vec perm = {0}, begin = {0};

    UNUSED_STATE(state);
    for (uint32_t i = 0; i < ROWS; i++)
        ts[i] = INT64_MAX - i;
    assert_code(rp_index_sort(&keys, &perm, &begin, &scratch, NULL), RP_OK);
    for (uint32_t i = 0; i < ROWS; i++)
        assert_int_equal(perm.at[i], ROWS - 1 - i);
    rp_vec_release(&perm);
    rp_vec_release(&begin);
    rp_sort_scratch_release(&scratch);
}

static void test_place_in_the_file_is_kept(void **state)
{
    static const struct row rows[] = {
        {'X', NULL, "second", 1, 1, 20, 5}, {'X', NULL, "other track", 1, 2, 5, 5},
        {'X', NULL, "first", 1, 1, 10, 5},  {'B', NULL, "pair", 1, 1, 30, 0},
        {'E', NULL, "pair", 1, 1, 40, 0},   {'X', NULL, "last", 1, 1, 50, 5},
    };
    static const uint32_t expected[] = {2, 0, 3, 5, 1};
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_int_equal(t->ev.n, 5);
    assert_memory_equal(t->ev.seq, expected, sizeof expected);
    rp_trace_free(t);
}

static void test_crossing_is_flagged(void **state)
{
    static const struct row rows[] = {
        {'X', "cpu_op", "a", 1, 1, 0, 100},
        {'X', "cpu_op", "b", 1, 1, 10, 40},
        {'X', "cpu_op", "c", 1, 1, 30, 50}, /* starts in b, ends behind it */
        {'X', "cpu_op", "d", 1, 1, 35, 5},
    };
    struct rp_trace *t = TRACE_OF(rows);

    UNUSED_STATE(state);
    assert_int_equal(t->ev.flags[2], RP_EVENT_CROSSES);
    assert_int_equal(t->ev.parent[2], 0);
    assert_int_equal(t->ev.parent[3], 2);
    assert_int_equal(t->health.cpu_not_nested, 1);
    rp_trace_free(t);
}

int test_order(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place_in_the_file_is_kept),
        cmocka_unit_test(test_random_small),
        cmocka_unit_test(test_random_large),
        cmocka_unit_test(test_extreme_times),
        cmocka_unit_test(test_the_last_times_are_sorted),
        cmocka_unit_test(test_crossing_is_flagged),
    };

    return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
