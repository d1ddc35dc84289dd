/* SPDX-License-Identifier: Apache-2.0 */
/* Where durations gather. */
#include "facts/work/modes.h"
#include "unit.h"

#include <stdlib.h>

#define US 1000
#define MS 1000000

static int by_value(const void *pa, const void *pb)
{
    int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;

    return (a > b) - (a < b);
}

static void check_sum(const struct rp_mode *modes, size_t n, int64_t want)
{
    int64_t sum = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        sum += modes[i].count;
        assert_true(modes[i].min_ns <= modes[i].at_ns && modes[i].at_ns <= modes[i].max_ns);
        if (i)
            assert_true(modes[i].min_ns > modes[i - 1].max_ns);
    }
    assert_int_equal(sum, want);
}

static void two_lengths_are_two_modes(void **state)
{
    struct rp_mode modes[RP_MODES_MOST];
    int64_t v[1010];
    size_t i, n;

    UNUSED_STATE(state);
    for (i = 0; i < 1000; i++)
        v[i] = 40 * US + (int64_t)(i % 50) * 100;
    for (; i < 1010; i++)
        v[i] = 8 * MS + (int64_t)i;
    qsort(v, 1010, sizeof *v, by_value);
    n = rp_modes_find(v, 1010, modes);
    assert_int_equal(n, 2);
    check_sum(modes, n, 1010);
    assert_int_equal(modes[1].count, 10);
    assert_in_range(modes[0].at_ns, 40 * US, 46 * US);
    assert_in_range(modes[1].at_ns, 8 * MS, 8 * MS + 1010);
}

static void steps_of_a_coarse_clock_are_no_modes(void **state)
{
    struct rp_mode modes[RP_MODES_MOST];
    int64_t v[600];
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < 600; i++)
        v[i] = (int64_t)(2 + i / 100) * US; /* 2, 3, 4, 5, 6, 7 us */
    assert_int_equal(rp_modes_find(v, 600, modes), 1);
    assert_int_equal(modes[0].count, 600);
    assert_int_equal(modes[0].min_ns, 2 * US);
    assert_int_equal(modes[0].max_ns, 7 * US);
}

static void there_are_never_too_many(void **state)
{
    struct rp_mode modes[RP_MODES_MOST];
    int64_t v[40];
    size_t i, n;

    UNUSED_STATE(state);
    for (i = 0; i < 40; i++)
        v[i] = INT64_C(1000) << i;
    n = rp_modes_find(v, 40, modes);
    assert_true(n > 1 && n <= RP_MODES_MOST);
    check_sum(modes, n, 40);
    assert_int_equal(rp_modes_find(v, 0, modes), 0);
    v[0] = INT64_MAX;
    assert_int_equal(rp_modes_find(v, 1, modes), 1);
    assert_int_equal(modes[0].at_ns, INT64_MAX);
}

/* Where there are too many, the two that are nearest to each other become one: the last two are
   four times apart, all others eight times. */
static void the_nearest_are_joined(void **state)
{
    struct rp_mode modes[RP_MODES_MOST];
    int64_t v[3 * (RP_MODES_MOST + 1)];
    size_t i, n = 0;

    UNUSED_STATE(state);
    for (i = 0; i <= RP_MODES_MOST; i++)
        for (int k = 0; k < 3; k++)
            v[n++] = INT64_C(1000000) << (3 * i - (i == RP_MODES_MOST));
    assert_int_equal(rp_modes_find(v, n, modes), RP_MODES_MOST);
    for (i = 0; i < RP_MODES_MOST; i++)
        assert_int_equal(modes[i].count, i + 1 < RP_MODES_MOST ? 3 : 6);
}

/* Modes of two lengths, of n and of m calls. */
static size_t modes_of(int64_t a, size_t n, int64_t b, size_t m)
{
    struct rp_mode modes[RP_MODES_MOST];
    int64_t v[64];
    size_t i;

    for (i = 0; i < n + m; i++)
        v[i] = i < n ? a : b;
    return rp_modes_find(v, n + m, modes);
}

static void lengths_must_differ_by_more_than_smoothing(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(modes_of(10 * MS, 10, 11800 * US, 10), 1);
    assert_int_equal(modes_of(10 * MS, 10, 11900 * US, 10), 2);
    assert_int_equal(modes_of(10 * MS, 10, 11900 * US, 20), 2);
}

static void a_shallow_valley_separates_nothing(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(modes_of(10 * MS, 10, 11800 * US, 10), 1);
    assert_int_equal(modes_of(10 * MS, 10, 11900 * US, 20), 2);
    assert_int_equal(modes_of(10 * MS, 10, 12300 * US, 30), 1);
    assert_int_equal(modes_of(10 * MS, 10, 12400 * US, 30), 2);
}

int test_modes(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_lengths_are_two_modes),
        cmocka_unit_test(steps_of_a_coarse_clock_are_no_modes),
        cmocka_unit_test(there_are_never_too_many),
        cmocka_unit_test(the_nearest_are_joined),
        cmocka_unit_test(lengths_must_differ_by_more_than_smoothing),
        cmocka_unit_test(a_shallow_valley_separates_nothing),
    };

    return cmocka_run_group_tests_name("modes", tests, NULL, NULL);
}
