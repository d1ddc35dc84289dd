/* SPDX-License-Identifier: Apache-2.0 */
/* What `fast` has kernels of its own for, beside `ref`: shapes that are not whole blocks, every
   order of dimensions, work for several threads, arguments at odd addresses. */
#include "exec_fixture.h"

#include "exec/data/signature.h"
#include "exec/data/synthetic.h"

#include <stdio.h>
#include <stdlib.h>

/* Outputs of a program with synthetic inputs; unaligned: each input begins at an odd address. */
static size_t outputs_of(const char *text, const struct rp_engine *engine, bool unaligned,
                         struct rp_tensor **out)
{
    struct rp_engine_options options = {.threads = 3};
    struct rp_engine_program program = {.name = "case", .format = "hlo-text"};
    struct rp_tensor *in[4] = {NULL}, *used[4] = {NULL};
    unsigned char *memory[4] = {NULL};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_executable *exe;
    struct rp_signature signature;
    struct rp_program *p;
    size_t n;

    assert_ok(rp_hlo_text_parse(text, strlen(text), NULL, &p, &err), &err);
    assert_ok(rp_signature_find(p, &arena, &signature, &err), &err);
    assert_ok(rp_synthetic_inputs(p, &signature, 7, in, &err), &err);
    for (size_t i = 0; i < signature.nin; i++) {
        size_t bytes = rp_tensor_bytes(in[i]);

        memory[i] = malloc(bytes + 1);
        assert_non_null(memory[i]);
        memcpy(memory[i] + 1, in[i]->data, bytes);
        assert_ok(unaligned ? rp_tensor_borrow(in[i]->elem, in[i]->dims, in[i]->rank, memory[i] + 1,
                                               &used[i], &err)
                            : rp_tensor_align(in[i], &used[i], &err),
                  &err);
    }
    program.program = p;
    assert_ok(engine->compile(NULL, &program, &options, &exe, &err), &err);
    assert_ok(engine->upload(exe, used, &err), &err);
    if (engine->run(exe, &err) != RP_OK)
        fail_msg("%s: %s", engine->name, err.text);
    assert_ok(engine->fetch(exe, out, &err), &err);
    n = exe->noutputs;
    engine->release(exe);
    for (size_t i = 0; i < signature.nin; i++) {
        rp_tensor_drop(in[i]);
        rp_tensor_drop(used[i]);
        free(memory[i]);
    }
    rp_arena_release(&arena);
    rp_program_free(p);
    return n;
}

static bool is_integer(unsigned elem)
{
    return rp_elem_is_signed(elem) || rp_elem_is_unsigned(elem);
}

/* All NaN are one. */
static bool near(double a, double b, double bound)
{
    return fabs(a - b) <= bound || a == b || (isnan(a) && isnan(b));
}

/* relative: of each element; 0: 1e-4 of the largest. */
static void same_within(const char *text, bool unaligned, double relative)
{
    struct rp_tensor *want[8] = {NULL}, *got[8] = {NULL};
    size_t n = outputs_of(text, &rp_engine_ref, false, want);
    double most = 0;

    assert_int_equal(outputs_of(text, &rp_engine_fast, unaligned, got), n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(got[i]->n, want[i]->n);
        for (size_t k = 0; k < want[i]->n; k++)
            most = fmax(most, fabs(rp_tensor_number(want[i], k)));
        for (size_t k = 0; k < want[i]->n; k++) {
            double a = rp_tensor_number(got[i], k), b = rp_tensor_number(want[i], k);
            double c = rp_tensor_imaginary(got[i], k), d = rp_tensor_imaginary(want[i], k);
            double bound = is_integer(want[i]->elem) ? 0
                           : relative > 0            ? relative * fabs(b)
                                                     : 1e-4 * most;

            if (!near(a, b, bound) || !near(c, d, bound))
                fail_msg("output %zu, element %zu: %g instead of %g in\n%s", i, k, a, b, text);
        }
        rp_tensor_drop(got[i]);
        rp_tensor_drop(want[i]);
    }
}

static void same(const char *text, bool unaligned)
{
    same_within(text, unaligned, 0);
}

static const struct {
    const char *x, *w, *y, *attrs;
} convolutions[] = {
    /* forward, its gradients by the input and by the kernel, as JAX writes them */
    {"4,16,16,3", "3,3,3,8", "4,16,16,8",
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"},
    {"4,8,8,16", "3,3,8,16", "4,16,16,8",
     "window={size=3x3 pad=1_2x1_2 lhs_dilate=2x2 rhs_reversal=1x1}, dim_labels=b01f_01oi->b01f"},
    {"4,16,16,3", "4,8,8,16", "3,3,3,16",
     "window={size=8x8 pad=1_0x1_0 rhs_dilate=2x2}, dim_labels=f01b_i01o->01bf"},
    /* features that do not stand last, no whole blocks, many outputs */
    {"2,5,9,7", "70,5,2,3", "2,70,4,5", "window={size=2x3 stride=2x1}, dim_labels=bf01_oi01->bf01"},
    {"5,2,30", "3,5,33", "33,16,2", "window={size=3 stride=2 pad=2_1}, dim_labels=fb0_0io->f0b"},
    {"3,6,40", "40,6,100", "3,100,1", "window={size=40}, dim_labels=bf0_0io->bf0"},
    /* a dilated input that no whole number of results meets, crops, groups */
    {"1,7,2", "4,2,5", "1,5,5",
     "window={size=4 stride=3 pad=-1_2 lhs_dilate=3 rhs_dilate=2}, dim_labels=b0f_0io->b0f"},
    {"2,9,6", "3,2,9", "2,9,9",
     "window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f, feature_group_count=3"},
    {"4,9,6", "3,6,8", "2,7,8", "window={size=3}, dim_labels=b0f_0io->b0f, batch_group_count=2"},
    {"6,5", "5,3", "6,3", "dim_labels=bf_io->bf"},
};

static void convolutions_agree(void **state)
{
    char text[1024];

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof convolutions / sizeof *convolutions; i++) {
        snprintf(text, sizeof text,
                 "HloModule m\nENTRY e {\n  x = f32[%s] parameter(0)\n  w = f32[%s] parameter(1)\n"
                 "  ROOT y = f32[%s] convolution(x, w), %s\n}\n",
                 convolutions[i].x, convolutions[i].w, convolutions[i].y, convolutions[i].attrs);
        same(text, false);
        same(text, true);
    }
}

#define REDUCER(name, op)                                                               \
    name " {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] " op \
         "(a, b)\n}\n"
#define GREATER                                                                               \
    "ge {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = pred[] compare(a, " \
    "b), direction=GE\n}\n"

static const char *const programs[] = {
    /* few columns, cut into parts; one long row; rows; dimensions that are not neighbours */
    "HloModule m\n" REDUCER(
        "add",
        "add") "ENTRY e {\n  x = f32[40000,8] parameter(0)\n  z = f32[] "
               "constant(0.5)\n  ROOT r = f32[8] reduce(x, z), dimensions={0}, to_apply=add\n}\n",
    "HloModule m\n" REDUCER(
        "max",
        "maximum") "ENTRY e {\n  x = f32[300001] parameter(0)\n  z = "
                   "f32[] constant(-inf)\n  ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=max\n}\n",
    "HloModule m\n" REDUCER(
        "min",
        "minimum") "ENTRY e {\n  x = f32[33,5,77] parameter(0)\n  z = "
                   "f32[] constant(0)\n  ROOT r = f32[5] reduce(x, z), dimensions={0,2}, to_apply=min\n}\n",
    "HloModule m\n" REDUCER(
        "add",
        "add") "ENTRY e {\n  x = f32[600,700] parameter(0)\n  z = f32[] "
               "constant(1)\n  ROOT r = f32[600] reduce(x, z), dimensions={1}, to_apply=add\n}\n",
    /* pooling and its gradient: channels behind, none behind, places that meet */
    "HloModule m\n" REDUCER("max", "maximum") REDUCER("add", "add") GREATER
    "ENTRY e {\n  x = f32[3,12,12,8] parameter(0)\n  s = f32[3,6,6,8] parameter(1)\n  z = f32[] "
    "constant(-inf)\n  o = f32[] constant(0)\n  p = f32[3,6,6,8] reduce-window(x, z), "
    "window={size=1x2x2x1 stride=1x2x2x1}, to_apply=max\n  g = f32[3,12,12,8] "
    "select-and-scatter(x, s, o), window={size=1x2x2x1 stride=1x2x2x1}, select=ge, scatter=add\n  "
    "ROOT r = (f32[3,6,6,8], f32[3,12,12,8]) tuple(p, g)\n}\n",
    "HloModule m\n" REDUCER("max", "maximum") REDUCER("add", "add") GREATER
    "ENTRY e {\n  x = f32[2,3,11,13] parameter(0)\n  s = f32[2,3,6,7] parameter(1)\n  z = f32[] "
    "constant(-inf)\n  o = f32[] constant(0)\n  p = f32[2,3,6,7] reduce-window(x, z), "
    "window={size=1x1x3x3 stride=1x1x2x2 pad=0_0x0_0x1_1x1_1}, to_apply=max\n  g = f32[2,3,11,13] "
    "select-and-scatter(x, s, o), window={size=1x1x3x3 stride=1x1x2x2 pad=0_0x0_0x1_1x1_1}, "
    "select=ge, scatter=add\n  ROOT r = (f32[2,3,6,7], f32[2,3,11,13]) tuple(p, g)\n}\n",
    /* products whose rows lie far apart, and edges; loops with short and long broadcasts */
    "HloModule m\nENTRY e {\n  a = f32[101,300] parameter(0)\n  b = f32[300,701] parameter(1)\n  "
    "ROOT c = f32[101,701] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n",
    "HloModule m\nENTRY e {\n  x = f32[50,40,7] parameter(0)\n  a = f32[7] parameter(1)\n  b = "
    "f32[40,7] parameter(2)\n  c = f32[50] parameter(3)\n  p = f32[50,40,7] broadcast(a), "
    "dimensions={2}\n  q = f32[50,40,7] broadcast(b), dimensions={1,2}\n  r = f32[50,40,7] "
    "broadcast(c), dimensions={0}\n  s = f32[50,40,7] multiply(x, p)\n  t = f32[50,40,7] add(s, "
    "q)\n  u = f32[50,40,7] tanh(t)\n  ROOT v = f32[50,40,7] subtract(u, r)\n}\n",
    /* what only moves elements */
    "HloModule m\nENTRY e {\n  x = f32[40,50,60] parameter(0)\n  i = s32[] constant(3)\n  t = "
    "f32[60,40,50] transpose(x), dimensions={2,0,1}\n  s = f32[5,50,60] slice(x), "
    "slice={[7:12], [0:50], [0:60]}\n  d = f32[2,50,60] dynamic-slice(x, i, i, i), "
    "dynamic_slice_sizes={2,50,60}\n  ROOT r = (f32[60,40,50], f32[5,50,60], f32[2,50,60]) "
    "tuple(t, s, d)\n}\n",
};

static void programs_agree(void **state)
{
    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        same(programs[i], false);
        same(programs[i], true);
    }
}

/* ---- sorts ---- */

/* JAX's key: -0 is 0, all NaN are one. */
#define JAX_KEY(x, y)                                         \
    "  " y "z = pred[] compare(" x ", zero), direction=EQ\n"  \
    "  " y "c = f32[] select(" y "z, zero, " x ")\n"          \
    "  " y "n = pred[] compare(" x ", " x "), direction=NE\n" \
    "  " y " = f32[] select(" y "n, nan, " y "c)\n"

static void sorts_agree(void **state)
{
    static const struct {
        const char *elem, *dims, *dim, *compare;
    } sorts[] = {
        {"f32", "7,100", "1", "compare(a, b), direction=LT"},
        {"f32", "100,7", "0", "compare(a, b), direction=GT"},
        {"f32", "3,5000", "1", "compare(a, b), direction=LT, type=TOTALORDER"},
        {"f32", "2,40,9", "1", "compare(b, a), direction=LT"},
        {"f64", "3,300", "1", "compare(a, b), direction=GT"},
        {"bf16", "3,5000", "1", "compare(a, b), direction=LT"},
        {"f16", "5,64", "1", "compare(b, a), direction=GT, type=TOTALORDER"},
        {"s32", "3,777", "1", "compare(a, b), direction=LT"},
        {"u32", "3,20", "1", "compare(a, b), direction=GT"},
        {"s8", "2,9000", "1", "compare(a, b), direction=LT"},
        {"s64", "2,90", "1", "compare(a, b), direction=LT"},
        {"f32", "6,31", "1", "compare(a, b), direction=LE"}, /* not by key */
    };
    char text[2048];

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof sorts / sizeof *sorts; i++) {
        snprintf(text, sizeof text,
                 "HloModule m\nless {\n  a = %s[] parameter(0)\n  b = %s[] parameter(1)\n"
                 "  c = s32[] parameter(2)\n  d = s32[] parameter(3)\n  ROOT r = pred[] %s\n}\n"
                 "ENTRY e {\n  x = %s[%s] parameter(0)\n  i = s32[%s] iota(), iota_dimension=%s\n"
                 "  ROOT y = (%s[%s], s32[%s]) sort(x, i), dimensions={%s}, is_stable=true, "
                 "to_apply=less\n}\n",
                 sorts[i].elem, sorts[i].elem, sorts[i].compare, sorts[i].elem, sorts[i].dims,
                 sorts[i].dims, sorts[i].dim, sorts[i].elem, sorts[i].dims, sorts[i].dims,
                 sorts[i].dim);
        same(text, false);
    }
}

/* Equal keys stay in their order; the key is a function of the operand. */
static void sorts_are_stable(void **state)
{
    UNUSED_STATE(state);
    same("HloModule m\nless {\n  c = s32[] parameter(0)\n  d = s32[] parameter(1)\n"
         "  a = f32[] parameter(2)\n  b = f32[] parameter(3)\n  zero = f32[] constant(0)\n"
         "  nan = f32[] constant(nan)\n  f = f32[] floor(a)\n  g = f32[] floor(b)\n" JAX_KEY(
             "f", "x") JAX_KEY("g", "y") "  ROOT r = pred[] compare(x, y), direction=GT, "
                                         "type=TOTALORDER\n}\n"
                                         "ENTRY e {\n  x = f32[4,6000] parameter(0)\n"
                                         "  i = s32[4,6000] iota(), iota_dimension=1\n"
                                         "  ROOT y = (s32[4,6000], f32[4,6000]) sort(i, x), "
                                         "dimensions={1}, is_stable=true, to_apply=less\n}\n",
         false);
}

/* The positions that both engines give. */
static void positions_are(const char *compare, const char *values, const double *want, size_t n)
{
    static const struct rp_engine *const engines[] = {&rp_engine_ref, &rp_engine_fast};
    char text[2048];

    snprintf(text, sizeof text,
             "HloModule m\nless {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
             "  c = s32[] parameter(2)\n  d = s32[] parameter(3)\n  zero = f32[] constant(0)\n"
             "  nan = f32[] constant(nan)\n%s}\n"
             "ENTRY e {\n  x = f32[%zu] constant({%s})\n  i = s32[%zu] iota(), iota_dimension=0\n"
             "  s = (f32[%zu], s32[%zu]) sort(x, i), dimensions={0}, is_stable=true, "
             "to_apply=less\n  ROOT y = s32[%zu] get-tuple-element(s), index=1\n}\n",
             compare, n, values, n, n, n, n);
    for (size_t k = 0; k < 2; k++) {
        struct rp_err err = RP_ERR_INIT;
        double got[64];
        size_t m;

        assert_ok(exec_run(text, engines[k], 0, got, &m, &err), &err);
        assert_int_equal(m, n);
        for (size_t i = 0; i < n; i++)
            if (got[i] != want[i])
                fail_msg("%s: position %zu is %g, not %g", engines[k]->name, i, got[i], want[i]);
    }
}

static void sorts_order_nan(void **state)
{
    static const char values[] = "nan, 1, -0, 0, inf, -inf, -1, -nan, 2";

    UNUSED_STATE(state);
    positions_are("  ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER\n", values,
                  (const double[]){7, 5, 6, 2, 3, 1, 8, 4, 0}, 9);
    positions_are(JAX_KEY("a", "x") JAX_KEY("b", "y") "  ROOT r = pred[] compare(x, y), "
                                                      "direction=LT, type=TOTALORDER\n",
                  values, (const double[]){5, 6, 2, 3, 1, 8, 4, 0, 7}, 9);
    /* -0 and 0 are equal by value */
    positions_are("  ROOT r = pred[] compare(a, b), direction=GT\n", "0, -0, 3, -0, 0, 3, -2",
                  (const double[]){2, 5, 0, 1, 3, 4, 6}, 7);
}

/* ---- running sums, gathers ---- */

static void scans_agree(void **state)
{
    static const struct {
        const char *elem, *op, *dims, *window, *init;
    } scans[] = {
        {"f32", "add", "3,700", "size=1x700 pad=0_0x699_0", "0"},
        {"f32", "add", "3,70", "size=1x70 pad=0_0x0_69", "0"},
        {"f32", "multiply", "40,300", "size=40x1 pad=39_0x0_0", "1"},
        {"f32", "maximum", "2,50,7", "size=1x50x1 pad=0_0x49_0x0_0", "-inf"},
        {"s32", "add", "90,8", "size=90x1 pad=89_0x0_0", "5"},
        {"f32", "add", "3,70", "size=1x70 pad=0_0x68_1", "0"}, /* not one */
    };
    char text[1024];

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof scans / sizeof *scans; i++) {
        const char *elem = scans[i].elem;

        snprintf(text, sizeof text,
                 "HloModule m\nf {\n  a = %s[] parameter(0)\n  b = %s[] parameter(1)\n"
                 "  ROOT c = %s[] %s(a, b)\n}\nENTRY e {\n  x = %s[%s] parameter(0)\n"
                 "  z = %s[] constant(%s)\n  ROOT y = %s[%s] reduce-window(x, z), window={%s}, "
                 "to_apply=f\n}\n",
                 elem, elem, elem, scans[i].op, elem, scans[i].dims, elem, scans[i].init, elem,
                 scans[i].dims, scans[i].window);
        same(text, false);
    }
}

static void gathers_agree(void **state)
{
    static const struct {
        const char *x, *i, *y, *attrs;
    } gathers[] = {
        {"50,24", "9,30,1", "9,30,24",
         "offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, "
         "slice_sizes={1,24}"},
        {"50,24", "300", "300,24",
         "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
         "slice_sizes={1,24}"},
        {"8,500", "8,40,1", "8,40",
         "offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, "
         "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, "
         "slice_sizes={1,1}"},
        {"9,7,5", "2,11", "3,11,5",
         "offset_dims={0,2}, collapsed_slice_dims={1}, start_index_map={1,0}, "
         "index_vector_dim=0, slice_sizes={3,1,5}"},
        {"4,6", "2", "2,6",
         "offset_dims={0,1}, collapsed_slice_dims={}, start_index_map={0,1}, index_vector_dim=0, "
         "slice_sizes={2,6}"},
    };
    char text[1024];

    UNUSED_STATE(state);
    for (size_t k = 0; k < sizeof gathers / sizeof *gathers; k++) {
        snprintf(text, sizeof text,
                 "HloModule m\nENTRY e {\n  x = f32[%s] parameter(0)\n  r = f32[%s] parameter(1)\n"
                 "  s = f32[] constant(40)\n  t = f32[%s] broadcast(s), dimensions={}\n"
                 "  u = f32[%s] multiply(r, t)\n  i = s32[%s] convert(u)\n"
                 "  ROOT y = f32[%s] gather(x, i), %s\n}\n",
                 gathers[k].x, gathers[k].i, gathers[k].i, gathers[k].i, gathers[k].i, gathers[k].y,
                 gathers[k].attrs);
        same(text, false);
        same(text, true);
    }
}

/* ---- loops ---- */

/* A cache that is written in place, weights and a transpose that are the same in every iteration,
   an element that changes places with another, and one value twice in the state. */
static void loops_agree(void **state)
{
    UNUSED_STATE(state);
    same("HloModule m\n"
         "half {\n  h = f32[40,64] parameter(0)\n  t = f32[40,64] tanh(h)\n"
         "  ROOT r = f32[40,64] negate(t)\n}\n"
         "body {\n  p = (s32[], f32[40,64], f32[64,64], f32[9,40,64], f32[40,64], f32[40,64], "
         "f32[40,64]) parameter(0)\n"
         "  i = s32[] get-tuple-element(p), index=0\n"
         "  x = f32[40,64] get-tuple-element(p), index=1\n"
         "  w = f32[64,64] get-tuple-element(p), index=2\n"
         "  l = f32[9,40,64] get-tuple-element(p), index=3\n"
         "  a = f32[40,64] get-tuple-element(p), index=4\n"
         "  b = f32[40,64] get-tuple-element(p), index=5\n"
         "  q = f32[40,64] get-tuple-element(p), index=6\n"
         "  wt = f32[64,64] transpose(w), dimensions={1,0}\n"
         "  d = f32[40,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
         "  u = f32[40,64] dot(d, wt), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
         "  y = f32[40,64] call(u), to_apply=half\n"
         "  one = s32[] constant(1)\n  zero = s32[] constant(0)\n"
         "  v = f32[1,40,64] reshape(y)\n"
         "  m = f32[9,40,64] dynamic-update-slice(l, v, i, zero, zero)\n"
         "  row = f32[1,64] slice(y), slice={[0:1], [0:64]}\n"
         "  q2 = f32[40,64] dynamic-update-slice(q, row, i, zero)\n"
         "  b2 = f32[40,64] dynamic-update-slice(b, row, i, zero)\n"
         "  n = s32[] add(i, one)\n"
         "  ROOT r = (s32[], f32[40,64], f32[64,64], f32[9,40,64], f32[40,64], f32[40,64], "
         "f32[40,64]) tuple(n, y, w, m, b2, a, q2)\n}\n"
         "more {\n  p = (s32[], f32[40,64], f32[64,64], f32[9,40,64], f32[40,64], f32[40,64], "
         "f32[40,64]) parameter(0)\n"
         "  i = s32[] get-tuple-element(p), index=0\n  n = s32[] constant(9)\n"
         "  ROOT r = pred[] compare(i, n), direction=LT\n}\n"
         "ENTRY e {\n  x = f32[40,64] parameter(0)\n  w = f32[64,64] parameter(1)\n"
         "  zero = s32[] constant(0)\n  z = f32[] constant(0)\n"
         "  l = f32[9,40,64] broadcast(z), dimensions={}\n"
         "  s = (s32[], f32[40,64], f32[64,64], f32[9,40,64], f32[40,64], f32[40,64], "
         "f32[40,64]) tuple(zero, x, w, l, x, x, x)\n"
         "  t = (s32[], f32[40,64], f32[64,64], f32[9,40,64], f32[40,64], f32[40,64], "
         "f32[40,64]) while(s), condition=more, body=body\n"
         "  o0 = f32[9,40,64] get-tuple-element(t), index=3\n"
         "  o1 = f32[40,64] get-tuple-element(t), index=4\n"
         "  o2 = f32[40,64] get-tuple-element(t), index=5\n"
         "  o3 = f32[40,64] get-tuple-element(t), index=6\n"
         "  o4 = f32[40,64] add(o3, x)\n"
         "  ROOT r = (f32[9,40,64], f32[40,64], f32[40,64], f32[40,64]) tuple(o0, o1, o2, o4)\n}\n",
         false);
}

/* Few rows with a matrix, dense either way. */
static void few_rows_agree(void **state)
{
    char text[512];

    UNUSED_STATE(state);
    for (unsigned m = 1; m <= 9; m++)
        for (unsigned k = 0; k < 2; k++) {
            snprintf(text, sizeof text,
                     "HloModule m\nENTRY e {\n  x = f32[%u,77] parameter(0)\n  w = f32[%s] "
                     "parameter(1)\n  ROOT y = f32[%u,1107] dot(x, w), lhs_contracting_dims={1}, "
                     "rhs_contracting_dims={%u}\n}\n",
                     m, k ? "1107,77" : "77,1107", m, k);
            same(text, false);
        }
}

/* Products of every class of types: no whole blocks, sums that f32 cannot hold, batches, operands
   that lie as rows and as columns, no terms at all. */
static void products_agree(void **state)
{
    static const char *const types[][3] = {
        {"s8", "s8", "s32"},      {"u8", "s8", "s32"},    {"u8", "u8", "s8"},
        {"s4", "s8", "s32"},      {"s8", "s8", "f32"},    {"s16", "s16", "s32"},
        {"s32", "s32", "s32"},    {"u32", "u32", "u32"},  {"s64", "s64", "s64"},
        {"s8", "s8", "s64"},      {"f64", "f64", "f64"},  {"c64", "c64", "c64"},
        {"c128", "c128", "c128"}, {"bf16", "f32", "f32"}, {"f8e4m3fn", "f8e5m2", "f32"},
        {"pred", "pred", "pred"},
    };
    static const char *const shapes[][4] = {
        {"37,1111", "1111,35", "37,35", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
        {"19,3", "70,19", "3,70", "lhs_contracting_dims={0}, rhs_contracting_dims={1}"},
        {"3,5,7", "3,7,40", "3,5,40",
         "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
         "rhs_contracting_dims={1}"},
        {"6,3,11", "11,3,9", "3,6,9",
         "lhs_batch_dims={1}, rhs_batch_dims={1}, lhs_contracting_dims={2}, "
         "rhs_contracting_dims={0}"},
        {"5,0", "0,6", "5,6", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
    };
    char text[512];

    UNUSED_STATE(state);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            snprintf(text, sizeof text,
                     "HloModule m\nENTRY e {\n  x = %s[%s] parameter(0)\n  y = %s[%s] "
                     "parameter(1)\n  ROOT z = %s[%s] dot(x, y), %s\n}\n",
                     types[t][0], shapes[i][0], types[t][1], shapes[i][1], types[t][2],
                     shapes[i][2], shapes[i][3]);
            same(text, i % 2);
        }
}

/* Lines in lanes: more and fewer than lanes, lengths with every kind of factor, several dimensions,
   real lines. */
static void transforms_agree(void **state)
{
    static const struct {
        const char *type, *length, *from, *to;
    } fourier[] = {
        {"FFT", "64", "c64[37,64]", "c64[37,64]"},
        {"IFFT", "90", "c64[5,90]", "c64[5,90]"},
        {"FFT", "1", "c64[20,1]", "c64[20,1]"},
        {"FFT", "67", "c64[16,67]", "c64[16,67]"},
        {"IFFT", "134", "c64[17,134]", "c64[17,134]"},
        {"FFT", "21,22", "c64[3,21,22]", "c64[3,21,22]"},
        {"IFFT", "4,6,35", "c64[2,4,6,35]", "c64[2,4,6,35]"},
        {"RFFT", "32", "f32[41,32]", "c64[41,17]"},
        {"RFFT", "45", "f32[7,45]", "c64[7,23]"},
        {"RFFT", "6,20", "f32[4,6,20]", "c64[4,6,11]"},
        {"IRFFT", "32", "c64[41,17]", "f32[41,32]"},
        {"IRFFT", "45", "c64[7,23]", "f32[7,45]"},
        {"IRFFT", "5,6,20", "c64[3,5,6,11]", "f32[3,5,6,20]"},
        {"RFFT", "73", "f32[50,73]", "c64[50,37]"},
        {"FFT", "16", "c64[2,16]", "c64[2,16]"}, /* few lines */
        {"FFT", "48", "c128[20,48]", "c128[20,48]"},
    };
    char text[512];

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof fourier / sizeof *fourier; i++) {
        snprintf(text, sizeof text,
                 "HloModule m\nENTRY e {\n  x = %s parameter(0)\n  ROOT y = %s fft(x), "
                 "fft_type=%s, fft_length={%s}\n}\n",
                 fourier[i].from, fourier[i].to, fourier[i].type, fourier[i].length);
        same(text, i % 2);
    }
}

/* Functions with vector versions, over the range of f32 that matters to them. */
static void functions_agree(void **state)
{
    static const char *const functions[] = {"exponential", "log", "tanh",
                                            "logistic",    "erf", "log-plus-one"};
    char text[512];

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        snprintf(text, sizeof text,
                 "HloModule m\nENTRY e {\n  i = f32[4001] iota(), iota_dimension=0\n  s = f32[] "
                 "constant(%s)\n  t = f32[] constant(-2)\n  b = f32[4001] broadcast(s), "
                 "dimensions={}\n  c = f32[4001] broadcast(t), dimensions={}\n  x = f32[4001] "
                 "multiply(i, b)\n  y = f32[4001] add(x, c)\n  ROOT r = f32[4001] %s(y)\n}\n",
                 i == 5 ? "0.01" : "0.001", functions[i]);
        same(text, false);
    }
    for (size_t i = 0; i < 3; i++) { /* -0.9995 ... 0.9995, -3.998 ... 3.998 */
        snprintf(text, sizeof text,
                 "HloModule m\nENTRY e {\n  i = f32[4000] iota(), iota_dimension=0\n"
                 "  h = f32[] constant(1999.5)\n  b = f32[4000] broadcast(h), dimensions={}\n"
                 "  c = f32[4000] subtract(i, b)\n  s = f32[] constant(%s)\n"
                 "  d = f32[4000] broadcast(s), dimensions={}\n  x = f32[4000] multiply(c, d)\n"
                 "  ROOT r = f32[4000] chlo.%s(x)\n}\n",
                 i ? "0.002" : "0.0004998",
                 i == 0   ? "erf_inv"
                 : i == 1 ? "erfc"
                          : "erf");
        same_within(text, false, 4e-6);
    }
}

/* Single elements, by one number and by two, outside as well, added and put; in place in a loop. */
static void scatters_agree(void **state)
{
    static const struct {
        const char *elem, *function;
    } kinds[] = {{"f32", "add(a, b)"},      {"s32", "add(a, b)"}, {"f64", "add(a, b)"},
                 {"bf16", "add(a, b)"},     {"f32", "copy(b)"},   {"s8", "copy(b)"},
                 {"f32", "multiply(a, b)"}, {"s64", "add(a, b)"}};
    char text[1024];

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *t = kinds[i].elem;

        snprintf(text, sizeof text,
                 "HloModule m\nf {\n  a = %s[] parameter(0)\n  b = %s[] parameter(1)\n  ROOT r = "
                 "%s[] %s\n}\nENTRY e {\n  x = %s[50,7] parameter(0)\n  n = s32[900,2] "
                 "parameter(1)\n  k = s32[] constant(61)\n  q = s32[900,2] broadcast(k), "
                 "dimensions={}\n  i = s32[900,2] remainder(n, q)\n  u = %s[900] parameter(2)\n  "
                 "ROOT y = %s[50,7] scatter(x, i, u), update_window_dims={}, "
                 "inserted_window_dims={0,1}, scatter_dims_to_operand_dims={1,0}, "
                 "index_vector_dim=1, to_apply=f\n}\n",
                 t, t, t, kinds[i].function, t, t, t);
        same(text, i % 2);
    }
}

/* Rows, added and put: of one dimension and of two, by two numbers; rows that are cut, or are not
   the last dimension of the updates, are no rows. */
static void scattered_rows_agree(void **state)
{
    static const struct {
        const char *array, *updates, *windows, *inserted, *map;
        int numbers;
    } forms[] = {
        {"50,7", "900,7", "1", "0", "0", 1},        {"50,7,3", "900,7,3", "1,2", "0", "0", 1},
        {"50,60,5", "900,5", "1", "0,1", "1,0", 2}, {"50,7", "900,3", "1", "0", "0", 1},
        {"50,7", "7,900", "0", "0", "0", 1},        {"7,50", "900,7", "1", "1", "1", 1}};
    char text[1024];

    UNUSED_STATE(state);
    for (size_t i = 0; i < 2 * sizeof forms / sizeof *forms; i++) {
        const char *array = forms[i / 2].array, *updates = forms[i / 2].updates;
        int numbers = forms[i / 2].numbers;

        snprintf(text, sizeof text,
                 "HloModule m\nf {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = "
                 "f32[] %s\n}\nENTRY e {\n  x = f32[%s] parameter(0)\n  n = s32[900,%d] "
                 "parameter(1)\n  k = s32[] constant(61)\n  q = s32[900,%d] broadcast(k), "
                 "dimensions={}\n  i = s32[900,%d] remainder(n, q)\n  u = f32[%s] parameter(2)\n  "
                 "ROOT y = f32[%s] scatter(x, i, u), update_window_dims={%s}, "
                 "inserted_window_dims={%s}, scatter_dims_to_operand_dims={%s}, "
                 "index_vector_dim=1, to_apply=f\n}\n",
                 i % 2 ? "add(a, b)" : "copy(b)", array, numbers, numbers, numbers, updates, array,
                 forms[i / 2].windows, forms[i / 2].inserted, forms[i / 2].map);
        same(text, false);
    }
}

/* Loops of scalars: results that are other parameters, types of several widths, no iteration. */
static void scalar_loops_agree(void **state)
{
    char text[2048];

    UNUSED_STATE(state);
    for (unsigned n = 0; n < 3; n++) {
        snprintf(text, sizeof text,
                 "HloModule m\nbody {\n  s = (s32[], f32[], f32[], pred[], f64[]) parameter(0)\n"
                 "  i = s32[] get-tuple-element(s), index=0\n"
                 "  a = f32[] get-tuple-element(s), index=1\n"
                 "  b = f32[] get-tuple-element(s), index=2\n"
                 "  p = pred[] get-tuple-element(s), index=3\n"
                 "  d = f64[] get-tuple-element(s), index=4\n  one = s32[] constant(1)\n"
                 "  j = s32[] add(i, one)\n  c = f32[] add(a, b)\n  h = f32[] constant(0.5)\n"
                 "  g = f32[] multiply(c, h)\n  w = f64[] convert(g)\n  e = f64[] add(d, w)\n"
                 "  q = pred[] not(p)\n"
                 "  ROOT t = (s32[], f32[], f32[], pred[], f64[]) tuple(j, b, g, q, e)\n}\n"
                 "more {\n  s = (s32[], f32[], f32[], pred[], f64[]) parameter(0)\n"
                 "  i = s32[] get-tuple-element(s), index=0\n  n = s32[] constant(%u)\n"
                 "  ROOT r = pred[] compare(i, n), direction=LT\n}\n"
                 "ENTRY e {\n  z = s32[] constant(0)\n  x = f32[] parameter(0)\n"
                 "  y = f32[] parameter(1)\n  p = pred[] constant(true)\n  d = f64[] constant(3)\n"
                 "  s = (s32[], f32[], f32[], pred[], f64[]) tuple(z, x, y, p, d)\n"
                 "  t = (s32[], f32[], f32[], pred[], f64[]) while(s), condition=more, body=body\n"
                 "  b = f32[] get-tuple-element(t), index=2\n"
                 "  q = pred[] get-tuple-element(t), index=3\n"
                 "  e = f64[] get-tuple-element(t), index=4\n"
                 "  ROOT r = (f32[], pred[], f64[]) tuple(b, q, e)\n}\n",
                 n * 7);
        same(text, false);
    }
}

/* Machine code of loops over scalars: every operation that has instructions of its own, on pairs of
   numbers at the edges of its type, read from one table and written to another. */
static void loops_compute_edges(void **state)
{
    static const char *const ops[] = {
        "add",        "subtract",
        "multiply",   "divide",
        "remainder",  "maximum",
        "minimum",    "and",
        "or",         "xor",
        "shift-left", "shift-right-logical",
        "power",      "shift-right-arithmetic",
    };
    static const char *const alone[] = {"negate", "abs", "not", "sqrt", "sign"};
    static const char *const directions[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
    static const struct {
        const char *name, *values;
        bool real;
    } types[] = {
        {"s32", "0,1,-1,2,31,32,-2147483648,2147483647,-7", false},
        {"u32", "0,1,4294967295,2,31,32,33,2147483648,7", false},
        {"s64", "0,1,-1,63,64,-9223372036854775808,9223372036854775807,-7,3", false},
        {"u64", "0,1,18446744073709551615,63,64,65,9223372036854775808,7,3", false},
        {"f32", "0,-0,1,-1.5,inf,-inf,nan,1e-40,3e38", true},
        {"f64", "0,-0,1,-1.5,inf,-inf,nan,1e-310,1e308", true},
    };
    char text[4096], op[400];

    UNUSED_STATE(state);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t i = 0; i < sizeof ops / sizeof *ops + sizeof alone / sizeof *alone + 12; i++) {
            const char *type = types[t].name;
            size_t k = i - sizeof ops / sizeof *ops, d = k - sizeof alone / sizeof *alone;
            bool pair = i < sizeof ops / sizeof *ops, one = !pair && d > 12;
            const char *name = pair ? ops[i] : one ? alone[k] : "";

            if (types[t].real
                    ? (pair && i >= 7 && i != 12) || !strcmp(name, "not")
                    : !strcmp(name, "sqrt") ||
                          (*type == 'u' && (!strcmp(name, "negate") || !strcmp(name, "abs"))))
                continue;
            if (pair)
                snprintf(op, sizeof op, "  r = %s[] %s(x, y)\n", type, name);
            else if (one)
                snprintf(op, sizeof op, "  r = %s[] %s(x)\n", type, name);
            else if (d < 6)
                snprintf(op, sizeof op,
                         "  c = pred[] compare(x, y), direction=%s\n  q = pred[] not(c)\n"
                         "  o = pred[] xor(q, c)\n  e = pred[] and(c, o)\n"
                         "  r = %s[] select(e, y, x)\n",
                         directions[d], type);
            else
                snprintf(op, sizeof op,
                         "  w = %s[] convert(x)\n  v = %s[] convert(i)\n  u = %s[] add(w, v)\n"
                         "  r = %s[] convert(u)\n",
                         types[d - 6].name, types[d - 6].name, types[d - 6].name, type);
            if (!pair && !one && d >= 6 && types[t].real && !types[d - 6].real)
                continue; /* numbers that the type does not hold */
            snprintf(text, sizeof text,
                     "HloModule m\nbody {\n  s = (s32[], %s[9], %s[81], %s[81]) parameter(0)\n"
                     "  i = s32[] get-tuple-element(s), index=0\n"
                     "  few = %s[9] get-tuple-element(s), index=1\n"
                     "  n = %s[81] get-tuple-element(s), index=2\n"
                     "  to = %s[81] get-tuple-element(s), index=3\n  one = s32[] constant(1)\n"
                     "  nine = s32[] constant(9)\n  j = s32[] add(i, one)\n"
                     "  m = s32[] remainder(i, nine)\n"
                     "  x1 = %s[1] dynamic-slice(n, i), dynamic_slice_sizes={1}\n"
                     "  y1 = %s[1] dynamic-slice(few, m), dynamic_slice_sizes={1}\n"
                     "  x = %s[] reshape(x1)\n  y = %s[] reshape(y1)\n%s"
                     "  r1 = %s[1] reshape(r)\n  to2 = %s[81] dynamic-update-slice(to, r1, i)\n"
                     "  ROOT t = (s32[], %s[9], %s[81], %s[81]) tuple(j, few, n, to2)\n}\n"
                     "more {\n  s = (s32[], %s[9], %s[81], %s[81]) parameter(0)\n"
                     "  i = s32[] get-tuple-element(s), index=0\n  n = s32[] constant(81)\n"
                     "  ROOT r = pred[] compare(i, n), direction=LT\n}\n"
                     "ENTRY e {\n  z = s32[] constant(0)\n  few = %s[9] constant({%s})\n"
                     "  b = %s[9,9] broadcast(few), dimensions={0}\n  n = %s[81] reshape(b)\n"
                     "  s = (s32[], %s[9], %s[81], %s[81]) tuple(z, few, n, n)\n"
                     "  t = (s32[], %s[9], %s[81], %s[81]) while(s), condition=more, body=body\n"
                     "  ROOT r = %s[81] get-tuple-element(t), index=3\n}\n",
                     type, type, type, type, type, type, type, type, type, type, op, type, type,
                     type, type, type, type, type, type, type, types[t].values, type, type, type,
                     type, type, type, type, type, type);
            same_within(text, false, 1e-30);
        }
}

/* Divisions by numbers that are known, of numbers around their multiples and at both ends. */
static void loops_divide(void **state)
{
    static const char *const divisors[] = {"1",    "2",          "3",          "7",  "10",
                                           "1000", "1073741825", "2147483647", "-2", "0"};
    char text[2048];

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof divisors / sizeof *divisors; i++) {
        snprintf(text, sizeof text,
                 "HloModule m\nbody {\n  s = (s32[], s32[4000]) parameter(0)\n"
                 "  i = s32[] get-tuple-element(s), index=0\n"
                 "  to = s32[4000] get-tuple-element(s), index=1\n  one = s32[] constant(1)\n"
                 "  j = s32[] add(i, one)\n  f = s32[] constant(1073751)\n"
                 "  x = s32[] multiply(i, f)\n  d = s32[] constant(%s)\n"
                 "  q = s32[] divide(x, d)\n  r = s32[] remainder(x, d)\n"
                 "  h = s32[] constant(31)\n  v = s32[] multiply(q, h)\n  w = s32[] xor(v, r)\n"
                 "  e = s32[] divide(i, d)\n  g = s32[] remainder(i, d)\n"
                 "  y = s32[] subtract(w, e)\n  z = s32[] multiply(y, h)\n"
                 "  u = s32[] add(z, g)\n  u1 = s32[1] reshape(u)\n"
                 "  to2 = s32[4000] dynamic-update-slice(to, u1, j)\n"
                 "  ROOT t = (s32[], s32[4000]) tuple(j, to2)\n}\n"
                 "more {\n  s = (s32[], s32[4000]) parameter(0)\n"
                 "  i = s32[] get-tuple-element(s), index=0\n  n = s32[] constant(2001)\n"
                 "  ROOT r = pred[] compare(i, n), direction=LT\n}\n"
                 "ENTRY e {\n  z = s32[] constant(-1)\n"
                 "  n = s32[4000] broadcast(z), dimensions={}\n"
                 "  s = (s32[], s32[4000]) tuple(z, n)\n"
                 "  t = (s32[], s32[4000]) while(s), condition=more, body=body\n"
                 "  ROOT r = s32[4000] get-tuple-element(t), index=1\n}\n",
                 divisors[i]);
        same(text, false);
    }
}

/* Loops and branches in each other, short arrays by element, a scatter that leaves the array, sums
   over short arrays, and an array that is read after it was changed. */
static void nested_loops_agree(void **state)
{
#define STATE "(s32[], s32[3], f32[100], f32[2,2])"
    char text[6000];

    UNUSED_STATE(state);
    for (unsigned n = 0; n < 12; n++) {
        bool index = n % 2, late = n % 3 == 2;

        snprintf(
            text, sizeof text,
            "HloModule m\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
            "  ROOT r = f32[] add(a, b)\n}\n"
            "largest {\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n"
            "  ROOT r = s32[] maximum(a, b)\n}\n"
            "plus {\n  p = (s32[], f32[100]) parameter(0)\n"
            "  i = s32[] get-tuple-element(p), index=0\n"
            "  x = f32[100] get-tuple-element(p), index=1\n  u = f32[1] constant({1.5})\n"
            "  y = f32[100] dynamic-update-slice(x, u, i)\n  c = s32[] constant(2)\n"
            "  ROOT r = (f32[100], s32[]) tuple(y, c)\n}\n"
            "minus {\n  p = (s32[], f32[100]) parameter(0)\n"
            "  i = s32[] get-tuple-element(p), index=0\n"
            "  x = f32[100] get-tuple-element(p), index=1\n"
            "  ROOT r = (f32[100], s32[]) tuple(x, i)\n}\n"
            "inner {\n  s = (s32[], s32[], s32[3]) parameter(0)\n"
            "  i = s32[] get-tuple-element(s), index=0\n"
            "  a = s32[] get-tuple-element(s), index=1\n"
            "  v = s32[3] get-tuple-element(s), index=2\n  one = s32[] constant(1)\n"
            "  j = s32[] subtract(i, one)\n  w = s32[3] reverse(v), dimensions={0}\n"
            "  z = s32[] constant(0)\n  m = s32[] reduce(w, z), dimensions={0}, to_apply=largest\n"
            "  mb = s32[1] reshape(m)\n  three = s32[] constant(3)\n"
            "  k = s32[] remainder(a, three)\n  w2 = s32[3] dynamic-update-slice(w, mb, k)\n"
            "  b = s32[] add(a, m)\n  ROOT r = (s32[], s32[], s32[3]) tuple(j, b, w2)\n}\n"
            "some {\n  s = (s32[], s32[], s32[3]) parameter(0)\n"
            "  i = s32[] get-tuple-element(s), index=0\n  z = s32[] constant(0)\n"
            "  ROOT r = pred[] compare(i, z), direction=GT\n}\n"
            "body {\n  s = " STATE " parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
            "  v = s32[3] get-tuple-element(s), index=1\n"
            "  x = f32[100] get-tuple-element(s), index=2\n"
            "  q = f32[2,2] get-tuple-element(s), index=3\n  one = s32[] constant(1)\n"
            "  j = s32[] add(i, one)\n  l = (s32[], s32[], s32[3]) tuple(i, i, v)\n"
            "  l2 = (s32[], s32[], s32[3]) while(l), condition=some, body=inner\n"
            "  a = s32[] get-tuple-element(l2), index=1\n"
            "  v2 = s32[3] get-tuple-element(l2), index=2\n"
            "  ten = s32[] constant(10)\n  at = s32[] multiply(i, ten)\n"
            "  at1 = s32[1] reshape(at)\n  h = f32[] constant(0.5)\n"
            "  x2 = f32[100] scatter(x, at1, h), update_window_dims={}, inserted_window_dims={0}, "
            "scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=add\n"
            "  two = s32[] constant(2)\n  e = s32[] remainder(a, two)\n  zero = s32[] constant(0)\n"
            "  on = pred[] compare(e, zero), direction=EQ\n"
            "  p = (s32[], f32[100]) tuple(at, x2)\n"
            "  c = (f32[100], s32[]) conditional(%s, p, p%s), %s={%s}\n"
            "  x3 = f32[100] get-tuple-element(c), index=0\n"
            "  d = s32[] get-tuple-element(c), index=1\n"
            "  y = f32[4] dynamic-slice(%s, d), dynamic_slice_sizes={4}\n"
            "  y2 = f32[2,2] reshape(y)\n  y3 = f32[2,2] transpose(y2), dimensions={1,0}\n"
            "  q2 = f32[2,2] add(q, y3)\n"
            "  ROOT t = " STATE " tuple(j, v2, x3, q2)\n}\n"
            "more {\n  s = " STATE " parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
            "  n = s32[] constant(%u)\n  ROOT r = pred[] compare(i, n), direction=LT\n}\n"
            "ENTRY e {\n  z = s32[] constant(-3)\n  v = s32[3] constant({4,-1,2})\n"
            "  x = f32[100] parameter(0)\n  q = f32[2,2] parameter(1)\n"
            "  s = " STATE " tuple(z, v, x, q)\n"
            "  t = " STATE " while(s), condition=more, body=body\n"
            "  a = s32[] get-tuple-element(t), index=0\n"
            "  b = s32[3] get-tuple-element(t), index=1\n"
            "  c = f32[100] get-tuple-element(t), index=2\n"
            "  d = f32[2,2] get-tuple-element(t), index=3\n"
            "  f = f32[100] add(c, x)\n"
            "  ROOT r = (s32[], s32[3], f32[100], f32[2,2], f32[100]) tuple(a, b, c, d, f)\n}\n",
            index ? "e" : "on", index && n % 4 == 1 ? ", p" : "", "branch_computations",
            index && n % 4 == 1 ? "minus, plus, minus" : "plus, minus", late ? "x" : "x3", n);
        same(text, n % 2);
    }
#undef STATE
}

/* Loops over short arrays: slices and updates, dense or not, in place or not, of elements of the
   state, of what is computed, and through a reshape; elements that are others; a tuple inside; what
   runs through kernels; no iteration. */
static void short_loops_agree(void **state)
{
#define STATE "(s32[], f32[3,4], f32[3,4], f32[6,5,4], f32[9,4], f32[9,4], f32[12], bf16[5])"
    char text[6000];

    UNUSED_STATE(state);
    for (unsigned n = 0; n < 4; n++) {
        snprintf(
            text, sizeof text,
            "HloModule m\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
            "  ROOT r = f32[] add(a, b)\n}\n"
            "largest {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
            "  ROOT r = f32[] maximum(a, b)\n}\n"
            "both {\n  a = f32[3,4] parameter(0)\n  h = f32[] constant(0.5)\n"
            "  b = f32[3,4] broadcast(h), dimensions={}\n  c = f32[3,4] multiply(a, b)\n"
            "  ROOT r = (f32[3,4], f32[3,4]) tuple(c, a)\n}\n"
            "body {\n  s = " STATE " parameter(0)\n"
            "  i = s32[] get-tuple-element(s), index=0\n"
            "  h = f32[3,4] get-tuple-element(s), index=1\n"
            "  g = f32[3,4] get-tuple-element(s), index=2\n"
            "  xs = f32[6,5,4] get-tuple-element(s), index=3\n"
            "  ys = f32[9,4] get-tuple-element(s), index=4\n"
            "  zs = f32[9,4] get-tuple-element(s), index=5\n"
            "  old = f32[12] get-tuple-element(s), index=6\n"
            "  k = bf16[5] get-tuple-element(s), index=7\n"
            "  one = s32[] constant(1)\n  zero = s32[] constant(0)\n  z = f32[] constant(0.25)\n"
            "  x = f32[1,3,4] dynamic-slice(xs, i, one, zero), dynamic_slice_sizes={1,3,4}\n"
            "  y = f32[2,1,3] dynamic-slice(xs, zero, i, one), dynamic_slice_sizes={2,1,3}\n"
            "  xr = f32[3,4] reshape(x)\n  hx = f32[3,4] add(h, xr)\n  t = f32[3,4] tanh(hx)\n"
            "  m = f32[3] reduce(t, z), dimensions={1}, to_apply=sum\n"
            "  c = f32[4] reduce(t, z), dimensions={0}, to_apply=largest\n"
            "  v = f32[] reduce(y, z), dimensions={0,1,2}, to_apply=sum\n"
            "  vb = f32[3,4] broadcast(v), dimensions={}\n"
            "  mb = f32[3,4] broadcast(m), dimensions={0}\n"
            "  cb = f32[3,4] broadcast(c), dimensions={1}\n"
            "  h1 = f32[3,4] subtract(t, mb)\n  h2 = f32[3,4] multiply(h1, cb)\n"
            "  h3 = f32[3,4] add(h2, vb)\n"
            "  pair = (f32[3,4], f32[3,4]) call(h3), to_apply=both\n"
            "  half = f32[3,4] get-tuple-element(pair), index=0\n"
            "  whole = f32[3,4] get-tuple-element(pair), index=1\n"
            "  d = f32[3,3] dot(half, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"
            "  e = f32[3,3] transpose(d), dimensions={1,0}\n"
            "  f = f32[3,4] dot(e, whole), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
            "  row = f32[1,4] slice(f), slice={[1:2], [0:4]}\n"
            "  before = f32[1,4] dynamic-slice(ys, i, zero), dynamic_slice_sizes={1,4}\n"
            "  total = f32[1,4] add(before, row)\n"
            "  ys2 = f32[9,4] dynamic-update-slice(ys, total, i, zero)\n"
            "  after = f32[1,4] dynamic-slice(ys2, zero, zero), dynamic_slice_sizes={1,4}\n"
            "  j = s32[] add(i, one)\n"
            "  few = f32[2,1] slice(f), slice={[0:2], [2:3]}\n"
            "  ys3 = f32[9,4] dynamic-update-slice(ys2, few, j, one)\n"
            "  zs2 = f32[9,4] dynamic-update-slice(zs, row, i, zero)\n"
            "  zrow = f32[1,4] dynamic-slice(zs, i, zero), dynamic_slice_sizes={1,4}\n"
            "  oldr = f32[3,4] reshape(old)\n"
            "  o2 = f32[3,4] dynamic-update-slice(oldr, row, i, zero)\n"
            "  o3 = f32[12] reshape(o2)\n  w = f32[1,4] add(zrow, after)\n"
            "  h4 = f32[3,4] dynamic-update-slice(half, w, one, zero)\n"
            "  k2 = bf16[5] reverse(k), dimensions={0}\n  k3 = bf16[5] multiply(k, k2)\n"
            "  ROOT r = " STATE " tuple(j, h4, h, xs, ys3, zs2, o3, k3)\n}\n"
            "more {\n  s = " STATE " parameter(0)\n"
            "  i = s32[] get-tuple-element(s), index=0\n  n = s32[] constant(%u)\n"
            "  ROOT r = pred[] compare(i, n), direction=LT\n}\n"
            "ENTRY e {\n  zero = s32[] constant(0)\n  h = f32[3,4] parameter(0)\n"
            "  xs = f32[6,5,4] parameter(1)\n  ys = f32[9,4] parameter(2)\n"
            "  k = bf16[5] parameter(3)\n  g = f32[3,4] negate(h)\n  old = f32[12] reshape(h)\n"
            "  s = " STATE " tuple(zero, h, g, xs, ys, ys, old, k)\n"
            "  t = " STATE " while(s), condition=more, body=body\n"
            "  o1 = f32[3,4] get-tuple-element(t), index=1\n"
            "  o2 = f32[3,4] get-tuple-element(t), index=2\n"
            "  o4 = f32[9,4] get-tuple-element(t), index=4\n"
            "  o5 = f32[9,4] get-tuple-element(t), index=5\n"
            "  o6 = f32[12] get-tuple-element(t), index=6\n"
            "  o7 = bf16[5] get-tuple-element(t), index=7\n"
            "  a = f32[9,4] add(o4, ys)\n"
            "  ROOT r = (f32[3,4], f32[3,4], f32[9,4], f32[9,4], f32[12], bf16[5], f32[9,4]) "
            "tuple(o1, o2, o4, o5, o6, o7, a)\n}\n",
            n * 3);
        same(text, n % 2);
    }
#undef STATE
}

/* Fusions that repeat operations, and some that differ in one attribute, constant or operand only.
 */
static void repeated_operations_agree(void **state)
{
    UNUSED_STATE(state);
    same("HloModule m\n"
         "a {\n  x = f32[40,64] parameter(0)\n  y = f32[40,64] parameter(1)\n"
         "  c = f32[] constant(2)\n  b = f32[40,64] broadcast(c), dimensions={}\n"
         "  e = f32[40,64] multiply(x, b)\n  d = f32[40,64] subtract(e, y)\n"
         "  s = f32[20,64] slice(d), slice={[0:40:2],[0:64]}\n"
         "  ROOT p = f32[22,66] pad(s, c), padding=1_1x0_2\n}\n"
         "b {\n  x = f32[40,64] parameter(0)\n  y = f32[40,64] parameter(1)\n"
         "  c = f32[] constant(2)\n  b = f32[40,64] broadcast(c), dimensions={}\n"
         "  e = f32[40,64] multiply(x, b)\n  d = f32[40,64] subtract(e, y)\n"
         "  s = f32[20,64] slice(d), slice={[1:40:2],[0:64]}\n"
         "  ROOT p = f32[22,66] pad(s, c), padding=1_1x0_2\n}\n"
         "c {\n  x = f32[40,64] parameter(0)\n  y = f32[40,64] parameter(1)\n"
         "  c = f32[] constant(3)\n  b = f32[40,64] broadcast(c), dimensions={}\n"
         "  e = f32[40,64] multiply(x, b)\n  d = f32[40,64] subtract(y, e)\n"
         "  s = f32[20,64] slice(d), slice={[0:40:2],[0:64]}\n"
         "  ROOT p = f32[22,66] pad(s, c), padding=1_1x2_0\n}\n"
         "d {\n  x = f32[40,64] parameter(0)\n  y = f32[40,64] parameter(1)\n"
         "  g = pred[40,64] compare(x, y), direction=GT\n  h = pred[40,64] compare(x, y), "
         "direction=LT\n"
         "  e = f32[40,64] select(g, x, y)\n  f = f32[40,64] select(h, x, y)\n"
         "  d = f32[40,64] subtract(e, f)\n  s = f32[20,64] slice(d), slice={[0:20],[0:64]}\n"
         "  c = f32[] constant(2)\n  ROOT p = f32[22,66] pad(s, c), padding=1_1x0_2\n}\n"
         "ENTRY m {\n  x = f32[40,64] parameter(0)\n  y = f32[40,64] parameter(1)\n"
         "  p = f32[22,66] fusion(x, y), kind=kLoop, calls=a\n"
         "  q = f32[22,66] fusion(x, y), kind=kLoop, calls=b\n"
         "  r = f32[22,66] fusion(x, y), kind=kLoop, calls=c\n"
         "  s = f32[22,66] fusion(y, x), kind=kLoop, calls=a\n"
         "  t = f32[22,66] fusion(x, y), kind=kLoop, calls=a\n"
         "  u = f32[22,66] fusion(x, y), kind=kLoop, calls=d\n"
         "  v = f32[22,66] subtract(p, q)\n  w = f32[22,66] divide(s, t)\n"
         "  z = f32[22,66] add(w, u)\n"
         "  ROOT o = (f32[22,66], f32[22,66], f32[22,66], f32[22,66]) tuple(v, r, z, t)\n}\n",
         false);
}

/* Long arrays, whose rows go through their operations in blocks: what is read outside as well, what
   lies between two members, one and two leading dimensions, operands that have only some of them,
   a last block of fewer rows. */
static void rows_in_blocks_agree(void **state)
{
    static const char *const texts[] = {
        /* a norm, written as JAX does; its reduced values are results, too */
        "ENTRY e {\n  x = f32[521,600] parameter(0)\n  g = f32[600] parameter(1)\n"
        "  p = pred[] parameter(2)\n  z = f32[] constant(0)\n  n = f32[] constant(600)\n"
        "  s = f32[521] reduce(x, z), dimensions={1}, to_apply=add\n"
        "  s1 = f32[521,1] reshape(s)\n  n1 = f32[521,1] broadcast(n), dimensions={}\n"
        "  m = f32[521,1] divide(s1, n1)\n  mb = f32[521,600] broadcast(m), dimensions={0,1}\n"
        "  d = f32[521,600] subtract(x, mb)\n  q = f32[521,600] multiply(d, d)\n"
        "  v = f32[521] reduce(q, z), dimensions={1}, to_apply=add\n"
        "  v1 = f32[521,1] broadcast(v), dimensions={0}\n  w = f32[521,1] add(v1, n1)\n"
        "  w1 = f32[521,1] select(p, w, n1)\n  r = f32[521,1] rsqrt(w1)\n"
        "  rb = f32[521,600] broadcast(r), dimensions={0,1}\n  y = f32[521,600] multiply(d, rb)\n"
        "  g1 = f32[1,600] reshape(g)\n  gb = f32[521,600] broadcast(g1), dimensions={0,1}\n"
        "  o = f32[521,600] multiply(y, gb)\n  c = f32[600] reduce(gb, z), dimensions={0}, "
        "to_apply=add\n"
        "  t = f32[600,521] transpose(rb), dimensions={1,0}\n"
        "  ROOT out = (f32[521,600], f32[521], f32[600,521], f32[600]) tuple(o, v, t, c)\n}\n",
        /* a masked softmax: the mask has the second leading dimension, the scale the first */
        "ENTRY e {\n  x = f32[4,130,600] parameter(0)\n  k = f32[130,600] parameter(1)\n"
        "  h = f32[4] parameter(2)\n  l = f32[] constant(-inf)\n  z = f32[] constant(0)\n"
        "  kb = f32[4,130,600] broadcast(k), dimensions={1,2}\n"
        "  hb = f32[4,130,600] broadcast(h), dimensions={0}\n"
        "  a = f32[4,130,600] add(x, kb)\n  b = f32[4,130,600] multiply(a, hb)\n"
        "  m = f32[4,130] reduce(b, l), dimensions={2}, to_apply=max\n"
        "  mb = f32[4,130,600] broadcast(m), dimensions={0,1}\n"
        "  d = f32[4,130,600] subtract(b, mb)\n  e = f32[4,130,600] exponential(d)\n"
        "  s = f32[4,130] reduce(e, z), dimensions={2}, to_apply=add\n"
        "  sb = f32[4,130,600] broadcast(s), dimensions={0,1}\n"
        "  ROOT y = f32[4,130,600] divide(e, sb)\n}\n",
        /* results that need each other by way of what is not a member */
        "ENTRY e {\n  x = f32[300,1000] parameter(0)\n  y = f32[300,1000] parameter(1)\n"
        "  a = f32[300,1000] add(x, y)\n  b = f32[300,1000] multiply(a, y)\n"
        "  r = f32[300,1000] reverse(b), dimensions={0}\n  c = f32[300,1000] subtract(a, x)\n"
        "  d = f32[300,1000] add(r, c)\n  f = f32[300,1000] maximum(b, c)\n"
        "  g = bf16[300,1000] convert(f)\n  h = bf16[300,1000] multiply(g, g)\n"
        "  ROOT out = (f32[300,1000], f32[300,1000], bf16[300,1000]) tuple(d, f, h)\n}\n",
        /* rounds of a generator, of one dimension */
        "ENTRY e {\n  x = u32[300000] parameter(0)\n  y = u32[300000] parameter(1)\n"
        "  c = u32[] constant(13)\n  k = u32[] constant(19)\n"
        "  cb = u32[300000] broadcast(c), dimensions={}\n"
        "  kb = u32[300000] broadcast(k), dimensions={}\n  a = u32[300000] add(x, y)\n"
        "  l = u32[300000] shift-left(y, cb)\n  r = u32[300000] shift-right-logical(y, kb)\n"
        "  o = u32[300000] or(l, r)\n  b = u32[300000] xor(a, o)\n  d = u32[300000] add(a, b)\n"
        "  l2 = u32[300000] shift-left(b, kb)\n"
        "  r2 = u32[300000] shift-right-logical(b, cb)\n  o2 = u32[300000] or(l2, r2)\n"
        "  f = u32[300000] xor(d, o2)\n  ROOT out = (u32[300000], u32[300000]) tuple(d, f)\n}\n",
        /* indices that count from the end, of both widths; a comparison that is read as well; and
           two that look alike and are not: another direction, another number */
        "ENTRY e {\n  x = s32[300000] parameter(0)\n  w = s64[300000] parameter(1)\n"
        "  z = s32[] constant(0)\n  zb = s32[300000] broadcast(z), dimensions={}\n"
        "  n = s32[] constant(77)\n  nb = s32[300000] broadcast(n), dimensions={}\n"
        "  v = s64[300000] negate(w)\n  wz = s64[300000] subtract(w, w)\n"
        "  c = pred[300000] compare(x, zb), direction=LT\n  a = s32[300000] add(x, nb)\n"
        "  s = s32[300000] select(c, a, x)\n  b = s32[300000] add(nb, s)\n"
        "  d = pred[300000] compare(s, nb), direction=LT\n  t = s32[300000] select(d, b, s)\n"
        "  k = pred[300000] compare(v, wz), direction=LT\n  f = s64[300000] add(v, w)\n"
        "  o2 = s64[300000] select(k, f, v)\n"
        "  g = pred[300000] compare(x, zb), direction=GT\n  h = s32[300000] select(g, a, x)\n"
        "  i = s32[300000] select(c, a, zb)\n  j = s32[300000] add(h, i)\n"
        "  l = s32[300000] add(t, j)\n  m = s32[300000] select(d, l, t)\n"
        "  ROOT r = (s32[300000], s64[300000], s32[300000], s32[300000]) tuple(t, o2, m, j)\n}\n",
        /* shifts by more than all bits, by an amount each, and some that others read as well */
        "ENTRY e {\n  x = u32[300000] parameter(0)\n  y = u32[300000] parameter(1)\n"
        "  c = u32[] constant(63)\n  cb = u32[300000] broadcast(c), dimensions={}\n"
        "  k = u32[300000] and(y, cb)\n  l = u32[300000] shift-left(x, k)\n"
        "  r = u32[300000] shift-right-logical(x, cb)\n  o = u32[300000] or(r, l)\n"
        "  a = u32[300000] add(o, l)\n  s = u32[300000] shift-right-logical(a, k)\n"
        "  t = u32[300000] shift-left(a, k)\n  p = u32[300000] or(t, s)\n"
        "  q = u32[300000] or(s, r)\n  z = u32[300000] xor(p, q)\n"
        "  w = u64[300000] convert(z)\n  kw = u64[300000] convert(k)\n"
        "  lw = u64[300000] shift-left(w, kw)\n"
        "  rw = u64[300000] shift-right-logical(w, kw)\n  ow = u64[300000] or(lw, rw)\n"
        "  ROOT out = (u32[300000], u32[300000], u64[300000]) tuple(o, z, ow)\n}\n",
        /* elements by indices that are computed, as JAX does for negative ones */
        "ENTRY e {\n  x = f32[5000] parameter(0)\n  i = s32[300001] parameter(1)\n"
        "  z = s32[] constant(2100)\n  n = s32[] constant(5000)\n"
        "  zb = s32[300001] broadcast(z), dimensions={}\n"
        "  nb = s32[300001] broadcast(n), dimensions={}\n  j = s32[300001] subtract(i, zb)\n"
        "  m = s32[300001] subtract(zb, zb)\n"
        "  l = pred[300001] compare(j, m), direction=LT\n  a = s32[300001] add(j, nb)\n"
        "  s = s32[300001] select(l, a, j)\n  r = s32[300001,1] reshape(s)\n"
        "  g = f32[300001] gather(x, r), offset_dims={}, collapsed_slice_dims={0}, "
        "start_index_map={0}, index_vector_dim=1, slice_sizes={1}\n"
        "  ROOT y = f32[300001] negate(g)\n}\n",
        /* from an array of which blocks are made, and from a broadcast that others read */
        "ENTRY e {\n  x = f32[300001] parameter(0)\n  i = s32[300001] parameter(1)\n"
        "  c = f32[] constant(3)\n  cb = f32[300001] broadcast(c), dimensions={}\n"
        "  d = f32[300001] multiply(x, cb)\n  o = s32[300001] add(i, i)\n"
        "  r = s32[300001,1] reshape(o)\n"
        "  g = f32[300001] gather(d, r), offset_dims={}, collapsed_slice_dims={0}, "
        "start_index_map={0}, index_vector_dim=1, slice_sizes={1}\n"
        "  h = f32[300001] gather(cb, r), offset_dims={}, collapsed_slice_dims={0}, "
        "start_index_map={0}, index_vector_dim=1, slice_sizes={1}\n"
        "  s = f32[300001] subtract(g, cb)\n  t = f32[300001] multiply(s, h)\n"
        "  ROOT out = (f32[300001], f32[300001], f32[300001]) tuple(t, d, h)\n}\n",
        /* rows of a table, normed */
        "ENTRY e {\n  x = f32[70,300] parameter(0)\n  i = s32[1001,1] parameter(1)\n"
        "  o = s32[1001,1] add(i, i)\n"
        "  g = f32[1001,300] gather(x, o), offset_dims={1}, collapsed_slice_dims={0}, "
        "start_index_map={0}, index_vector_dim=1, slice_sizes={1,300}\n"
        "  q = f32[1001,300] multiply(g, g)\n  z = f32[] constant(1)\n"
        "  s = f32[1001] reduce(q, z), dimensions={1}, to_apply=add\n"
        "  b = f32[1001,300] broadcast(s), dimensions={0}\n"
        "  ROOT y = f32[1001,300] divide(g, b)\n}\n",
    };
    char text[4096];

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        snprintf(text, sizeof text, "HloModule m\n%s%s%s", REDUCER("add", "add"),
                 REDUCER("max", "maximum"), texts[i]);
        same(text, i % 2 == 0);
    }
}

/* Places of the largest and the smallest: NaN, equal values, empty lines, functions that are
   written in other ways or do something else. */
static void places_agree(void **state)
{
    static const struct {
        const char *x, *dims, *to, *value, *place, *init;
    } kinds[] = {
        {"30,200", "1", "30", "or(gt, nan)", "or(first, pick)", "-inf"},
        {"30,200", "0", "200", "or(gt, nan)", "or(pick, first)", "-inf"},
        {"5,7,90", "1", "5,90", "or(lt, nan)", "or(pick, first)", "inf"},
        {"30,200", "1", "30", "not(le)", "or(pick, first)", "-inf"},     /* NaN: the last one */
        {"30,200", "1", "30", "or(gt, nan)", "and(pick, pick)", "-inf"}, /* equal: the last one */
        {"4,0", "1", "4", "or(gt, nan)", "or(pick, first)", "-inf"},
    };
    char text[2048];

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *x = kinds[i].x, *to = kinds[i].to;

        snprintf(text, sizeof text,
                 "HloModule m\nf {\n  a = f32[] parameter(0)\n  i = s32[] parameter(1)\n"
                 "  b = f32[] parameter(2)\n  j = s32[] parameter(3)\n"
                 "  gt = pred[] compare(a, b), direction=GT\n"
                 "  lt = pred[] compare(a, b), direction=LT\n"
                 "  le = pred[] compare(a, b), direction=LE\n"
                 "  nan = pred[] compare(a, a), direction=NE\n  pick = pred[] %s\n"
                 "  eq = pred[] compare(a, b), direction=EQ\n"
                 "  before = pred[] compare(i, j), direction=LT\n"
                 "  first = pred[] and(eq, before)\n  at = pred[] %s\n"
                 "  v = f32[] select(pick, a, b)\n  p = s32[] select(at, i, j)\n"
                 "  ROOT r = (f32[], s32[]) tuple(v, p)\n}\n"
                 "ENTRY e {\n  x = f32[%s] parameter(0)\n  h = f32[] constant(3)\n"
                 "  hb = f32[%s] broadcast(h), dimensions={}\n  y = f32[%s] multiply(x, hb)\n"
                 "  k = f32[%s] floor(y)\n  l = f32[%s] add(k, hb)\n  m = f32[%s] sqrt(l)\n"
                 "  n = s32[%s] iota(), iota_dimension=%s\n  z = f32[] constant(%s)\n"
                 "  o = s32[] constant(0)\n"
                 "  ROOT r = (f32[%s], s32[%s]) reduce(m, n, z, o), dimensions={%s}, "
                 "to_apply=f\n}\n",
                 kinds[i].value, kinds[i].place, x, x, x, x, x, x, x, kinds[i].dims, kinds[i].init,
                 to, to, kinds[i].dims);
        same(text, false);
    }
}

int test_fast(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorts_agree),          cmocka_unit_test(sorts_are_stable),
        cmocka_unit_test(sorts_order_nan),      cmocka_unit_test(scans_agree),
        cmocka_unit_test(gathers_agree),        cmocka_unit_test(loops_agree),
        cmocka_unit_test(few_rows_agree),       cmocka_unit_test(products_agree),
        cmocka_unit_test(functions_agree),      cmocka_unit_test(scatters_agree),
        cmocka_unit_test(scattered_rows_agree), cmocka_unit_test(scalar_loops_agree),
        cmocka_unit_test(loops_compute_edges),  cmocka_unit_test(loops_divide),
        cmocka_unit_test(nested_loops_agree),   cmocka_unit_test(short_loops_agree),
        cmocka_unit_test(transforms_agree),     cmocka_unit_test(convolutions_agree),
        cmocka_unit_test(programs_agree),       cmocka_unit_test(repeated_operations_agree),
        cmocka_unit_test(rows_in_blocks_agree), cmocka_unit_test(places_agree),
    };

    return cmocka_run_group_tests_name("fast", tests, NULL, NULL);
}
