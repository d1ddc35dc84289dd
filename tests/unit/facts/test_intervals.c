/* SPDX-License-Identifier: Apache-2.0 */
/* Unions of intervals: joining, lengths, what two have in common. */
#include "facts/times/intervals.h"
#include "unit.h"

/* Few times are compared, many are sorted by their digits; both also where times are negative,
   equal, or as far apart as can be. */
static void times_are_sorted(void **state)
{
    static const int64_t wide[] = {INT64_MAX, INT64_MIN, 0, -1, 1, 1000000007, -1000000007, 42, 42};
    static const size_t sizes[] = {0, 1, 2, 9, 199, 200, 201, 5000};
    int64_t ns[5000];
    uint64_t chance = 7;

    UNUSED_STATE(state);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (int kind = 0; kind < 4; kind++) {
            uint64_t before = 0, after = 0;

            for (size_t i = 0; i < sizes[s]; i++) {
                chance = chance * UINT64_C(6364136223846793005) + 1442695040888963407;
                ns[i] = kind == 0   ? (int64_t)(chance >> 44)
                        : kind == 1 ? (int64_t)chance
                        : kind == 2 ? wide[(chance >> 33) % 9]
                                    : (int64_t)i - 100;
                before += (uint64_t)ns[i] * ((uint64_t)ns[i] | 1);
            }
            rp_ns_sort(ns, sizes[s]);
            for (size_t i = 0; i < sizes[s]; i++) {
                assert_true(!i || ns[i - 1] <= ns[i]);
                after += (uint64_t)ns[i] * ((uint64_t)ns[i] | 1);
            }
            assert_true(before == after); /* the same times */
        }
}

static void touching_intervals_join(void **state)
{
    rp_interval_vec u = {0};

    UNUSED_STATE(state);
    assert_code(rp_union_add(&u, 0, 10, NULL), RP_OK);
    assert_code(rp_union_add(&u, 10, 20, NULL), RP_OK);
    assert_code(rp_union_add(&u, 12, 15, NULL), RP_OK);
    assert_code(rp_union_add(&u, 21, 30, NULL), RP_OK);
    assert_int_equal(u.n, 2);
    assert_int_equal(u.at[0].end_ns, 20);
    assert_int_equal(rp_union_length(u.at, u.n), 29);
    rp_vec_release(&u);
}

static void a_moment_divides_a_gap(void **state)
{
    rp_interval_vec u = {0};

    UNUSED_STATE(state);
    assert_code(rp_union_add(&u, 0, 10, NULL), RP_OK);
    assert_code(rp_union_add(&u, 15, 15, NULL), RP_OK);
    assert_code(rp_union_add(&u, 20, 30, NULL), RP_OK);
    assert_int_equal(u.n, 3);
    assert_int_equal(rp_union_length(u.at, u.n), 20);
    rp_vec_release(&u);
}

static void common_time_is_counted_once(void **state)
{
    const struct rp_interval a[] = {{0, 10}, {20, 30}, {40, 50}};
    const struct rp_interval b[] = {{5, 25}, {29, 45}, {60, 70}};

    UNUSED_STATE(state);
    assert_int_equal(rp_union_common(a, 3, b, 3), 5 + 5 + 1 + 5);
    assert_int_equal(rp_union_common(b, 3, a, 3), 16);
    assert_int_equal(rp_union_common(a, 0, b, 3), 0);
}

static void coverage_of_a_window(void **state)
{
    const struct rp_interval a[] = {{0, 10}, {20, 30}, {40, 50}};

    UNUSED_STATE(state);
    assert_int_equal(rp_union_covers(a, 3, 5, 45), 5 + 10 + 5);
    assert_int_equal(rp_union_covers(a, 3, 10, 20), 0);
    assert_int_equal(rp_union_covers(a, 3, -100, 100), 30);
    assert_int_equal(rp_union_first(a, 3, 10), 1);
    assert_int_equal(rp_union_first(a, 3, 50), 3);
}

static void unsorted_intervals_become_a_union(void **state)
{
    struct rp_interval a[] = {{40, 50}, {0, 10}, {5, 12}, {12, 14}, {45, 46}};

    UNUSED_STATE(state);
    assert_int_equal(rp_union_sort(a, 5), 2);
    assert_int_equal(a[0].end_ns, 14);
    assert_int_equal(a[1].begin_ns, 40);
    assert_int_equal(a[1].end_ns, 50);
}

static void absurd_times_do_not_overflow(void **state)
{
    const struct rp_interval a[] = {{INT64_MIN + 1, INT64_MAX}};

    UNUSED_STATE(state);
    assert_int_equal(rp_union_common(a, 1, a, 1), rp_union_length(a, 1));
    assert_true(rp_ns_between(INT64_MIN, INT64_MAX) == INT64_MAX);
    assert_true(rp_ns_between(INT64_MAX, INT64_MIN) == INT64_MIN);
    assert_true(rp_ns_sum(INT64_MAX, 1) == INT64_MAX && rp_ns_sum(INT64_MIN, -1) == INT64_MIN);
    assert_true(rp_ns_sum(INT64_MAX - 1, 1) == INT64_MAX &&
                rp_ns_between(-1, INT64_MAX - 1) == INT64_MAX);
}

int test_intervals(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_sorted),
        cmocka_unit_test(touching_intervals_join),
        cmocka_unit_test(a_moment_divides_a_gap),
        cmocka_unit_test(common_time_is_counted_once),
        cmocka_unit_test(coverage_of_a_window),
        cmocka_unit_test(unsorted_intervals_become_a_union),
        cmocka_unit_test(absurd_times_do_not_overflow),
    };

    return cmocka_run_group_tests_name("intervals", tests, NULL, NULL);
}
