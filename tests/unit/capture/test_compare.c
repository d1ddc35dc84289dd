/* SPDX-License-Identifier: Apache-2.0 */
/* What recording adds to a step, of times of steps with and without it. */
#include "unit.h"

#include "capture/core/compare.h"

static struct rp_core_times times_of(uint64_t first, uint64_t step, size_t n)
{
    struct rp_core_times t = {{0}, 0};

    for (size_t i = 0; i < n; i++)
        rp_core_times_add(&t, first + step * i);
    return t;
}

static void a_clear_difference_is_told(void **state)
{
    struct rp_core_times on = times_of(1300, 1, 9), off = times_of(1000, 1, 5);
    struct rp_core_compared times;

    (void)state;
    rp_core_times_add(&off, 90000); /* another program ran */
    assert_true(rp_core_compare(&on, &off, &times));
    assert_int_equal(times.longer, 1304);
    assert_in_range(times.usual, 1000, 1010); /* 1304 less about 301 */
}

static void steps_that_differ_more_among_themselves_tell_nothing(void **state)
{
    struct rp_core_times on = times_of(1000, 100, 12), off = times_of(900, 200, 6);
    struct rp_core_compared times;

    (void)state;
    assert_false(rp_core_compare(&on, &off, &times));
}

static void equal_steps_are_less_than_one_percent_longer(void **state)
{
    struct rp_core_times on = times_of(10000, 1, 12), off = times_of(10000, 2, 6);
    struct rp_core_compared times;

    (void)state;
    assert_true(rp_core_compare(&on, &off, &times));
    assert_int_equal(times.longer, times.usual);
}

static void few_steps_tell_nothing(void **state)
{
    struct rp_core_times on = times_of(2000, 1, 2), off = times_of(1000, 1, 2),
                         none = times_of(0, 0, 0);
    struct rp_core_compared times;

    (void)state;
    assert_false(rp_core_compare(&on, &off, &times));
    assert_false(rp_core_compare(&on, &none, &times));
}

static void the_last_steps_are_kept(void **state)
{
    struct rp_core_times on = times_of(9000, 0, 64), off = times_of(1000, 1, 6);
    struct rp_core_compared times;

    (void)state;
    for (int i = 0; i < 64; i++)
        rp_core_times_add(&on, 1500);
    assert_true(rp_core_compare(&on, &off, &times));
    assert_int_equal(times.longer, 1500);
    assert_in_range(times.usual, 1000, 1005);
}

int test_compare(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clear_difference_is_told),
        cmocka_unit_test(steps_that_differ_more_among_themselves_tell_nothing),
        cmocka_unit_test(equal_steps_are_less_than_one_percent_longer),
        cmocka_unit_test(few_steps_tell_nothing), cmocka_unit_test(the_last_steps_are_kept)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
