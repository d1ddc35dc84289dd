/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs of narrow types against runs of the same program that round otherwise. */
#include "unit.h"

#include "program/program.h"
#include "replay/variants.h"

#define MOST 64

/* One output of n elements: expected 1, the variants off by `even` and `odd`, what is judged by
   `off` at even places and by off or -off at odd ones. */
static const char *judged(size_t n, double even, double odd, double off, bool one_way)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_tensor *plain, *got, *want, *other[RP_VARIANTS];
    struct rp_variants v = {.plain = {&plain, 1}, .count = RP_VARIANTS};
    struct rp_variants_verdict verdict;
    int64_t dims = (int64_t)n;

    assert_int_equal(rp_tensor_new(RP_ELEM_F64, &dims, 1, &plain, &err), RP_OK);
    assert_int_equal(rp_tensor_new(RP_ELEM_F64, &dims, 1, &got, &err), RP_OK);
    assert_int_equal(rp_tensor_new(RP_ELEM_F64, &dims, 1, &want, &err), RP_OK);
    for (size_t j = 0; j < RP_VARIANTS; j++) {
        assert_int_equal(rp_tensor_new(RP_ELEM_F64, &dims, 1, &other[j], &err), RP_OK);
        v.other[j] = (struct rp_tensors){&other[j], 1};
    }
    for (size_t k = 0; k < n; k++) {
        rp_tensor_set(plain, k, 1);
        rp_tensor_set(want, k, 1);
        rp_tensor_set(got, k, 1 + (k % 2 && !one_way ? -off : off));
        for (size_t j = 0; j < RP_VARIANTS; j++)
            rp_tensor_set(other[j], k, 1 + (k % 2 ? odd : even));
    }
    assert_int_equal(rp_variants_judge(&v, 0, got, want, 1e-9, &verdict, &err), RP_OK);
    assert_true(verdict.known);
    for (size_t j = 0; j < RP_VARIANTS; j++)
        rp_tensor_drop(other[j]);
    rp_tensor_drop(plain);
    rp_tensor_drop(got);
    rp_tensor_drop(want);
    return verdict.why;
}

static void bounds_follow_the_program(void **state)
{
    UNUSED_STATE(state);
    /* one element: at its worst */
    assert_null(judged(1, 0.01, 0, 0.024, true));
    assert_string_equal(judged(1, 0.01, 0, 0.026, true), "at its worst");
    /* many elements in both directions: the median */
    assert_null(judged(MOST, 0.01, -0.01, 0.009, false));
    assert_string_equal(judged(MOST, 0.01, -0.01, 0.011, false), "in the middle of its elements");
    /* all in one direction, each within what rounding does: the variants' own drift is 0.001 */
    assert_null(judged(MOST, 0.011, -0.009, 0.0028, true));
    assert_string_equal(judged(MOST, 0.011, -0.009, 0.0032, true), "along all of it");
}

/* Nothing is measured for less than an eighth of a unit, and for types that are wide. */
static void narrow_types_have_a_least(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_tensor *t;
    int64_t dims = 1;

    UNUSED_STATE(state);
    assert_int_equal(rp_tensor_new(RP_ELEM_F32, &dims, 1, &t, &err), RP_OK);
    rp_tensor_set(t, 0, -4);
    assert_true(rp_variants_least(t, RP_ELEM_INVALID) == 0);
    assert_true(rp_variants_least(t, RP_ELEM_F64) == 0);
    assert_true(rp_variants_least(t, RP_ELEM_BF16) == 4 * 0.125 / 128);
    assert_true(rp_variants_least(t, RP_ELEM_F16) == 4 * 0.125 / 1024);
    rp_tensor_drop(t);
}

int test_variants(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_follow_the_program),
        cmocka_unit_test(narrow_types_have_a_least),
    };

    return cmocka_run_group_tests_name("variants", tests, NULL, NULL);
}
