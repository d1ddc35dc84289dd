/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of two programs that are paired because they compute the same values. */
#include "unit.h"

#include "replay/search.h"

#define OPS 4

static void same_values_are_paired(void **state)
{
    struct rp_value_print left[] = {{.shape = 1, .size = 10, .sum = 4, .op = 0},
                                    {.shape = 1, .size = 20, .sum = 5, .op = 1},
                                    {.shape = 2, .size = 10, .sum = 4, .op = 2},
                                    {.shape = 1, .size = 30, .sum = 6, .op = 3}};
    struct rp_value_print right[] = {
        {.shape = 1, .size = 20.001, .sum = 5.001, .op = 3},
        {.shape = 1, .size = 10, .sum = 4.01, .op = 0}, /* other signs */
        {.shape = 1, .size = 10, .sum = 4, .op = 1},
        {.shape = 1, .size = 30.1, .sum = 6, .op = 2}}; /* too large */
    uint32_t of_left[OPS] = {RP_NONE, RP_NONE, RP_NONE, RP_NONE};
    uint32_t of_right[OPS] = {RP_NONE, RP_NONE, RP_NONE, RP_NONE};
    uint32_t *match[2] = {of_left, of_right};

    UNUSED_STATE(state);
    rp_pair_values(left, OPS, right, OPS, match);
    assert_int_equal(of_left[0], 1);
    assert_int_equal(of_right[1], 0);
    assert_int_equal(of_left[1], 3);
    assert_int_equal(of_right[3], 1);
    assert_int_equal(of_left[2], RP_NONE); /* of another shape */
    assert_int_equal(of_left[3], RP_NONE);
    assert_int_equal(of_right[0], RP_NONE);
    assert_int_equal(of_right[2], RP_NONE);
}

/* What is paired stays paired; of two equal ones each gets its own. */
static void each_is_paired_once(void **state)
{
    struct rp_value_print left[] = {{.shape = 1, .size = 10, .sum = 4, .op = 0},
                                    {.shape = 1, .size = 10, .sum = 4, .op = 1}};
    struct rp_value_print right[] = {{.shape = 1, .size = 10, .sum = 4, .op = 0},
                                     {.shape = 1, .size = 10, .sum = 4, .op = 1},
                                     {.shape = 1, .size = 10, .sum = 4, .op = 2}};
    uint32_t of_left[] = {RP_NONE, RP_NONE}, of_right[] = {7, RP_NONE, RP_NONE};
    uint32_t *match[2] = {of_left, of_right};

    UNUSED_STATE(state);
    rp_pair_values(left, 2, right, 3, match);
    assert_int_equal(of_left[0], 1);
    assert_int_equal(of_left[1], 2);
    assert_int_equal(of_right[0], 7);
}

int test_pair_values(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_values_are_paired),
                                       cmocka_unit_test(each_is_paired_once)};

    return cmocka_run_group_tests_name("pair values", tests, NULL, NULL);
}
