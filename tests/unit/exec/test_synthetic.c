/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic inputs fit what a program does with them, however far away that is. */
#include "unit.h"

#include "exec/data/synthetic.h"
#include "formats/programs.h"

#include <math.h>
#include <string.h>

#define MOST 8

struct made {
    struct rp_arena arena;
    struct rp_program *p;
    struct rp_signature slots;
    struct rp_tensor *in[MOST];
};

static void make(const char *text, uint64_t seed, struct made *m)
{
    struct rp_err err = RP_ERR_INIT;

    memset(m, 0, sizeof *m);
    rp_arena_init(&m->arena);
    assert_ok(rp_hlo_text_parse(text, strlen(text), NULL, &m->p, &err), &err);
    assert_ok(rp_signature_find(m->p, &m->arena, &m->slots, &err), &err);
    assert_true(m->slots.nin <= MOST);
    assert_ok(rp_synthetic_inputs(m->p, &m->slots, seed, m->in, &err), &err);
}

static void drop(struct made *m)
{
    for (size_t i = 0; i < MOST; i++)
        rp_tensor_drop(m->in[i]);
    rp_program_free(m->p);
    rp_arena_release(&m->arena);
}

/* Least and most of an input. */
static void range(const struct rp_tensor *t, double *low, double *high)
{
    *low = (double)INFINITY;
    *high = -(double)INFINITY;
    for (size_t i = 0; i < t->n; i++) {
        *low = fmin(*low, rp_tensor_number(t, i));
        *high = fmax(*high, rp_tensor_number(t, i));
    }
}

#define GATHER(operand, index)                                         \
    "f32[40,4]{1,0} gather(" operand ", " index "), offset_dims={1}, " \
    "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}"

/* Programs whose input 0 indexes a table of 5 rows. */
static const char *const indices[] = {
    "HloModule m\nENTRY e {\n i = s32[40]{0} parameter(0)\n t = f32[5,4]{1,0} parameter(1)\n"
    " ROOT r = " GATHER("t", "i") "\n}\n",
    /* behind a convert, a broadcast and a slice */
    "HloModule m\nENTRY e {\n i = s64[1]{0} parameter(0)\n t = f32[5,4]{1,0} parameter(1)\n"
    " c = s32[1]{0} convert(i)\n d = s32[] reshape(c)\n b = s32[80]{0} broadcast(d), "
    "dimensions={}\n s = s32[40]{0} slice(b), slice={[0:40]}\n ROOT r = " GATHER("t", "s") "\n}\n",
    /* in the tuple of a loop */
    "HloModule m\nc {\n p = (s32[], s32[40]{0}, f32[5,4]{1,0}) parameter(0)\n n = s32[] "
    "get-tuple-element(p), index=0\n k = s32[] constant(2)\n ROOT l = pred[] compare(n, k), "
    "direction=LT\n}\nb {\n p = (s32[], s32[40]{0}, f32[5,4]{1,0}) parameter(0)\n n = s32[] "
    "get-tuple-element(p), index=0\n i = s32[40]{0} get-tuple-element(p), index=1\n t = "
    "f32[5,4]{1,0} get-tuple-element(p), index=2\n g = " GATHER(
        "t",
        "i") "\n o = s32[] "
             "constant(1)\n m = s32[] add(n, o)\n ROOT r = (s32[], s32[40]{0}, f32[5,4]{1,0}) tuple(m, i, "
             "t)\n}\nENTRY e {\n i = s32[40]{0} parameter(0)\n t = f32[5,4]{1,0} parameter(1)\n z = s32[] "
             "constant(0)\n u = (s32[], s32[40]{0}, f32[5,4]{1,0}) tuple(z, i, t)\n ROOT w = (s32[], "
             "s32[40]{0}, f32[5,4]{1,0}) while(u), condition=c, body=b\n}\n",
    /* out of a fusion */
    "HloModule m\nf {\n p = s64[40]{0} parameter(0)\n ROOT c = s32[40]{0} convert(p)\n}\nENTRY e "
    "{\n i = s64[40]{0} parameter(0)\n t = f32[5,4]{1,0} parameter(1)\n u = s32[40]{0} fusion(i), "
    "kind=kLoop, calls=f\n ROOT r = " GATHER("t", "u") "\n}\n",
    /* part 1 of a tuple that is the parameter */
    "HloModule m\nENTRY e {\n p = (s32[40]{0}, f32[5,4]{1,0}) parameter(0)\n i = s32[40]{0} "
    "get-tuple-element(p), index=0\n t = f32[5,4]{1,0} get-tuple-element(p), index=1\n ROOT r = " GATHER(
        "t", "i") "\n}\n",
    /* a class, compared with all of them */
    "HloModule m\nENTRY e {\n i = s32[40]{0} parameter(0)\n o = s32[40,5]{1,0} iota(), "
    "iota_dimension=1\n b = s32[40,5]{1,0} broadcast(i), dimensions={0}\n ROOT r = "
    "pred[40,5]{1,0} compare(b, o), direction=EQ\n}\n",
    /* a float that is converted */
    "HloModule m\nENTRY e {\n i = f32[40]{0} parameter(0)\n t = f32[5,4]{1,0} parameter(1)\n c = "
    "s32[40]{0} convert(i)\n ROOT r = " GATHER("t", "c") "\n}\n",
};

static void in_bounds(void **state)
{
    double low, high;
    struct made m;

    (void)state;
    for (size_t i = 0; i < sizeof indices / sizeof *indices; i++) {
        make(indices[i], 3, &m);
        range(m.in[0], &low, &high);
        assert_true(low >= 0 && high < 5);
        assert_true(m.in[0]->n == 1 || high > 2);
        drop(&m);
    }
}

static void where_functions_are_defined(void **state)
{
    static const char text[] =
        "HloModule m\nadd {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] "
        "add(a, b)\n}\nmax {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] "
        "maximum(a, b)\n}\nENTRY e {\n a = f32[50]{0} parameter(0)\n b = f32[50]{0} parameter(1)\n "
        "c = f32[50]{0} parameter(2)\n d = f32[] parameter(3)\n e = f32[] parameter(4)\n g = "
        "s32[50]{0} parameter(5)\n h = f32[6,6]{1,0} parameter(6)\n k = f32[50]{0} constant({...})\n"
        " s = f32[50]{0} add(a, k)\n t = f32[50]{0} sqrt(s)\n u = f32[50]{0} acos(b)\n v = "
        "f32[50]{0} acosh(c)\n x = f32[] reduce(t, d), dimensions={0}, to_apply=add\n y = f32[] "
        "reduce(u, e), dimensions={0}, to_apply=max\n z = s32[50]{0} divide(g, g)\n w = "
        "f32[6,6]{1,0} cholesky(h), lower=true\n ROOT r = (f32[], f32[], f32[50]{0}, s32[50]{0}, "
        "f32[6,6]{1,0}) tuple(x, y, v, z, w)\n}\n";
    double low, high;
    struct made m;

    (void)state;
    make(text, 0, &m);
    range(m.in[0], &low, &high);
    assert_true(low > 0);
    range(m.in[1], &low, &high);
    assert_true(low > -1 && high < 1);
    range(m.in[2], &low, &high);
    assert_true(low >= 1);
    assert_true(rp_tensor_number(m.in[3], 0) == 0);
    assert_true(rp_tensor_number(m.in[4], 0) == -(double)INFINITY);
    range(m.in[5], &low, &high);
    assert_true(low >= 1);
    for (size_t i = 0; i < 6; i++)
        for (size_t k = 0; k < 6; k++)
            assert_true(rp_tensor_number(m.in[6], 6 * i + k) ==
                        rp_tensor_number(m.in[6], 6 * k + i));
    drop(&m);
}

/* Other seeds and other inputs give other streams, not the same one from another place. */
static void seeds(void **state)
{
    static const char text[] = "HloModule m\nENTRY e {\n a = f32[64]{0} parameter(0)\n b = "
                               "f32[64]{0} parameter(1)\n ROOT r = f32[64]{0} add(a, b)\n}\n";
    struct made one, same, next;
    size_t equal = 0;

    (void)state;
    make(text, 7, &one);
    make(text, 7, &same);
    make(text, 8, &next);
    for (size_t i = 0; i < 2; i++)
        assert_memory_equal(one.in[i]->data, same.in[i]->data, 256);
    for (size_t i = 0; i < 64; i++)
        for (size_t k = 0; k < 64; k++)
            equal += rp_tensor_bits(one.in[0], i) == rp_tensor_bits(next.in[0], k) ||
                     rp_tensor_bits(one.in[0], i) == rp_tensor_bits(one.in[1], k);
    assert_true(equal < 4);
    drop(&one);
    drop(&same);
    drop(&next);
}

int test_synthetic(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_bounds),
        cmocka_unit_test(where_functions_are_defined),
        cmocka_unit_test(seeds),
    };

    return cmocka_run_group_tests_name("synthetic", tests, NULL, NULL);
}
