/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/times/time_lists.h"

#include "unit.h"

static void all_times_come_back_in_order(void **state)
{
    int64_t a[] = {300, 100, 100, 9000000000, 0}, b[] = {INT64_MAX, INT64_MIN, -1}, out[8];
    struct rp_time_lists lists = {0};

    UNUSED_STATE(state);
    assert_code(rp_time_lists_add(&lists, a, 5, NULL), RP_OK);
    assert_code(rp_time_lists_add(&lists, a, 0, NULL), RP_OK);
    assert_code(rp_time_lists_add(&lists, b, 3, NULL), RP_OK);
    assert_code(rp_time_lists_check(&lists, 3, NULL), RP_OK);
    assert_code(rp_time_lists_read(&lists, 0, out, NULL), RP_OK);
    assert_memory_equal(out, ((int64_t[]){0, 100, 100, 300, 9000000000}), 5 * sizeof *out);
    assert_int_equal(lists.count.at[1], 0);
    assert_code(rp_time_lists_read(&lists, 2, out, NULL), RP_OK);
    assert_memory_equal(out, ((int64_t[]){INT64_MIN, -1, INT64_MAX}), 3 * sizeof *out);
    rp_time_lists_release(&lists);
}

static void those_of_ranks_are_one_list(void **state)
{
    int64_t a[] = {5, 1}, b[] = {3, 2, 4}, out[5];
    struct rp_time_lists first = {0}, second = {0};
    struct rp_time_list both[] = {{&first, 0}, {&second, 0}};

    UNUSED_STATE(state);
    assert_code(rp_time_lists_add(&first, a, 2, NULL), RP_OK);
    assert_code(rp_time_lists_add(&second, b, 3, NULL), RP_OK);
    assert_code(rp_time_lists_join(both, 2, out, NULL), RP_OK);
    assert_memory_equal(out, ((int64_t[]){1, 2, 3, 4, 5}), sizeof out);
    rp_time_lists_release(&first);
    rp_time_lists_release(&second);
}

static void damage_is_found(void **state)
{
    int64_t a[] = {5, 1000000}, out[2];
    struct rp_time_lists lists = {0};

    UNUSED_STATE(state);
    assert_code(rp_time_lists_add(&lists, a, 2, NULL), RP_OK);
    assert_code(rp_time_lists_check(&lists, 2, NULL), RP_FORMAT);
    lists.begin.at[0] = 1000;
    assert_code(rp_time_lists_check(&lists, 1, NULL), RP_FORMAT);
    lists.begin.at[0] = 0;
    lists.count.at[0] = 1000;
    assert_code(rp_time_lists_check(&lists, 1, NULL), RP_FORMAT);
    lists.count.at[0] = 2;
    memset(lists.bytes.at, 0xff, lists.bytes.n);
    assert_code(rp_time_lists_read(&lists, 0, out, NULL), RP_FORMAT);
    rp_time_lists_release(&lists);
}

int test_time_lists(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_times_come_back_in_order),
        cmocka_unit_test(those_of_ranks_are_one_list),
        cmocka_unit_test(damage_is_found),
    };

    return cmocka_run_group_tests_name("time lists", tests, NULL, NULL);
}
