/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of two programs that are paired because they compute the same values. */
#include "unit.h"

#include "formats/programs.h"
#include "replay/search.h"

#include <string.h>

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

static struct rp_program *program_of(const char *text)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;

    assert_ok(rp_hlo_text_parse(text, strlen(text), NULL, &p, &err), &err);
    return p;
}

static const char *result_of(const struct rp_program *p, const uint32_t *match, uint32_t op)
{
    return match[op] == RP_NONE ? "none" : rp_program_text(p, p->op_name.at[match[op]]);
}

/* Results are counterparts in their order, where they have the same shape, whatever computes them
   and however many shapes either program has. */
static void results_are_paired(void **state)
{
    struct rp_program *left =
        program_of("HloModule l\n\nENTRY %main {\n"
                   "  %x = f32[4] parameter(0)\n"
                   "  %a = f32[4] negate(%x)\n"
                   "  %b = f32[2,2] reshape(%x)\n"
                   "  %c = f32[4] sine(%x)\n"
                   "  ROOT %t = (f32[4], f32[2,2], f32[4]) tuple(%a, %b, %c)\n"
                   "}\n");
    struct rp_program *right =
        program_of("HloModule r\n\nENTRY %main {\n"
                   "  %x = f32[4] parameter(0)\n"
                   "  %i = s32[4] iota(), iota_dimension=0\n"
                   "  %k = pred[4] compare(%x, %x), direction=LT\n"
                   "  %p = s32[8] iota(), iota_dimension=0\n"
                   "  %d = f32[4] exponential(%x)\n"
                   "  %e = f32[2,2] bitcast(%x)\n"
                   "  %f = f32[1,4] reshape(%x)\n"
                   "  ROOT %t = (f32[4], f32[2,2], f32[1,4]) tuple(%d, %e, %f)\n"
                   "}\n");
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    uint32_t *match[2];

    UNUSED_STATE(state);
    assert_ok(rp_pair_known(left, right, &arena, match, &err), &err);
    assert_string_equal(result_of(right, match[0], 0), "x");
    assert_string_equal(result_of(right, match[0], 1), "d");
    assert_string_equal(result_of(right, match[0], 2), "e");
    assert_string_equal(result_of(right, match[0], 3), "none"); /* of another shape */
    assert_string_equal(result_of(left, match[1], 4), "a");
    assert_string_equal(result_of(left, match[1], 6), "none");
    rp_program_free(left);
    rp_program_free(right);
    rp_arena_release(&arena);
}

int test_pair_values(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_values_are_paired),
                                       cmocka_unit_test(results_are_paired),
                                       cmocka_unit_test(each_is_paired_once)};

    return cmocka_run_group_tests_name("pair values", tests, NULL, NULL);
}
