/* SPDX-License-Identifier: Apache-2.0 */
/* Mismatches made by hand in every element type: found, at their place, and judged by the bounds.
 */
#include "unit.h"

#include "exec/data/compare.h"
#include "program/floats.h"

#include <math.h>
#include <string.h>

#define N 2000 /* few enough that one element is under the share of wrong ones */

static const uint8_t types[] = {
    RP_ELEM_PRED,   RP_ELEM_S8,         RP_ELEM_S16,           RP_ELEM_S32,        RP_ELEM_S64,
    RP_ELEM_U8,     RP_ELEM_U16,        RP_ELEM_U32,           RP_ELEM_U64,        RP_ELEM_F16,
    RP_ELEM_BF16,   RP_ELEM_F32,        RP_ELEM_F64,           RP_ELEM_C64,        RP_ELEM_C128,
    RP_ELEM_S4,     RP_ELEM_U4,         RP_ELEM_F8E5M2,        RP_ELEM_F8E4M3FN,   RP_ELEM_F8E4M3,
    RP_ELEM_F8E3M4, RP_ELEM_F8E5M2FNUZ, RP_ELEM_F8E4M3B11FNUZ, RP_ELEM_F8E4M3FNUZ,
};

static const struct rp_tolerance by_type = {.absolute = -1, .relative = -1, .ulp = -1};

static bool is_real(unsigned elem)
{
    return rp_elem_is_float(elem) || rp_elem_is_complex(elem);
}

static struct rp_tensor *ones(unsigned elem, int64_t n)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_tensor *t;

    assert_ok(rp_tensor_new(elem, &n, 1, &t, &err), &err);
    memset(t->data, 0, rp_tensor_bytes(t));
    for (size_t i = 0; i < t->n; i++)
        rp_tensor_set(t, i, 1);
    return t;
}

static void every_type(void **state)
{
    struct rp_comparison c;

    (void)state;
    for (size_t k = 0; k < sizeof types; k++) {
        struct rp_tensor *want = ones(types[k], N), *got = ones(types[k], N);

        rp_compare(got, want, &by_type, &c);
        assert_true(c.ok && !c.wrong && c.max_abs == 0 && !c.nworst);
        rp_tensor_set(got, 1717, types[k] == RP_ELEM_PRED ? 0 : 7); /* far off, once */
        rp_compare(got, want, &by_type, &c);
        assert_true(types[k] == RP_ELEM_PRED ? c.ok : !c.ok);
        assert_int_equal(c.wrong, 1);
        assert_int_equal(c.nworst, 1);
        assert_int_equal(c.worst[0].at, 1717);
        assert_true(c.worst[0].want == 1 && c.max_abs == (types[k] == RP_ELEM_PRED ? 1 : 6));
        rp_compare(got, want, &(struct rp_tolerance){.absolute = 0, .relative = -1, .ulp = -1}, &c);
        assert_false(c.ok); /* bounds that are given hold for every element */
        rp_compare(got, want, &(struct rp_tolerance){.absolute = 6, .relative = -1, .ulp = -1}, &c);
        assert_true(c.ok && !c.wrong);
        rp_compare(got, want, &(struct rp_tolerance){.absolute = -1, .relative = 6, .ulp = -1}, &c);
        assert_true(c.ok && !c.wrong);
        rp_tensor_drop(want);
        rp_tensor_drop(got);
    }
}

/* The neighbour of a number is one step away, whatever the type. */
static void steps(void **state)
{
    struct rp_comparison c;

    (void)state;
    for (size_t k = 0; k < sizeof types; k++) {
        struct rp_tensor *want = ones(types[k], 4), *got = ones(types[k], 4);

        if (types[k] == RP_ELEM_PRED)
            got->data[2] = 0;
        else
            got->data[2 * got->unit]++; /* little-endian: the lowest bit of the mantissa */
        rp_compare(got, want, &(struct rp_tolerance){.absolute = -1, .relative = -1, .ulp = 0}, &c);
        assert_true(!c.ok && c.wrong == 1 && c.worst[0].at == 2);
        rp_compare(got, want, &(struct rp_tolerance){.absolute = -1, .relative = -1, .ulp = 1}, &c);
        assert_true(c.ok);
        rp_tensor_drop(want);
        rp_tensor_drop(got);
    }
}

static void not_numbers(void **state)
{
    struct rp_comparison c;

    (void)state;
    for (size_t k = 0; k < sizeof types; k++) {
        struct rp_tensor *want, *got;

        if (!is_real(types[k]))
            continue;
        want = ones(types[k], N);
        got = ones(types[k], N);
        rp_tensor_set(got, 3, (double)NAN);
        rp_compare(got, want, &by_type, &c);
        assert_true(!c.ok && c.worst[0].at == 3 && isnan(c.worst[0].got));
        rp_tensor_set(want, 3, (double)NAN);
        rp_compare(got, want, &by_type, &c);
        assert_true(c.ok);
        rp_compare(
            got, want,
            &(struct rp_tolerance){.absolute = -1, .relative = -1, .ulp = -1, .nan_differs = true},
            &c);
        assert_false(c.ok);
        rp_tensor_set(got, 3, 1);
        rp_compare(got, want, &by_type, &c);
        assert_false(c.ok);
        rp_tensor_drop(want);
        rp_tensor_drop(got);
    }
}

static void infinities(void **state)
{
    struct rp_tensor *want = ones(RP_ELEM_F32, N), *got = ones(RP_ELEM_F32, N);
    struct rp_comparison c;

    (void)state;
    rp_tensor_set(want, 5, (double)INFINITY);
    rp_tensor_set(got, 5, (double)INFINITY);
    rp_compare(got, want, &by_type, &c);
    assert_true(c.ok && c.max_abs == 0);
    rp_tensor_set(got, 5, -(double)INFINITY);
    rp_compare(got, want, &by_type, &c);
    assert_true(!c.ok && isinf(c.max_abs));
    rp_tensor_set(got, 5, 3e38);
    rp_compare(got, want, &by_type, &c);
    assert_false(c.ok);
    rp_tensor_drop(want);
    rp_tensor_drop(got);
}

/* Where doubles are too coarse, and where a difference wraps around. */
static void large_integers(void **state)
{
    struct rp_tensor *want = ones(RP_ELEM_U64, N), *got = ones(RP_ELEM_U64, N);
    struct rp_comparison c;

    (void)state;
    rp_tensor_set_integer(want, 9, 0);
    rp_tensor_set_integer(got, 9, -1); /* 2^64 - 1 */
    rp_compare(got, want, &by_type, &c);
    assert_true(!c.ok && c.worst[0].got > 1e19);
    rp_tensor_set_integer(want, 9, INT64_C(1) << 60);
    rp_tensor_set_integer(got, 9, (INT64_C(1) << 60) + 1);
    rp_compare(got, want, &by_type, &c);
    assert_true(c.ok && c.wrong == 1 && c.max_abs == 1);
    rp_compare(got, want, &(struct rp_tolerance){.absolute = 0, .relative = -1, .ulp = -1}, &c);
    assert_false(c.ok);
    rp_tensor_drop(want);
    rp_tensor_drop(got);
}

/* The largest five differences, in their order. */
static void worst(void **state)
{
    struct rp_tensor *want = ones(RP_ELEM_F32, N), *got = ones(RP_ELEM_F32, N);
    struct rp_comparison c;

    (void)state;
    for (size_t i = 0; i < 20; i++)
        rp_tensor_set(got, i * 7, 2 + (double)(i * 13 % 20));
    rp_compare(got, want, &by_type, &c);
    assert_int_equal(c.nworst, RP_WORST);
    assert_int_equal(c.wrong, 20);
    for (size_t i = 0; i < RP_WORST; i++)
        assert_true(c.worst[i].got == 21 - (double)i && c.worst[i].want == 1);
    rp_tensor_drop(want);
    rp_tensor_drop(got);
}

int test_compare(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type), cmocka_unit_test(steps), cmocka_unit_test(not_numbers),
        cmocka_unit_test(infinities), cmocka_unit_test(worst), cmocka_unit_test(large_integers),
    };

    return cmocka_run_group_tests_name("compare", tests, NULL, NULL);
}
