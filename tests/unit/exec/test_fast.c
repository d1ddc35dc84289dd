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

static void same(const char *text, bool unaligned)
{
    struct rp_tensor *want[4] = {NULL}, *got[4] = {NULL};
    size_t n = outputs_of(text, &rp_engine_ref, false, want);
    double most = 0;

    assert_int_equal(outputs_of(text, &rp_engine_fast, unaligned, got), n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(got[i]->n, want[i]->n);
        for (size_t k = 0; k < want[i]->n; k++)
            most = fmax(most, fabs(rp_tensor_number(want[i], k)));
        for (size_t k = 0; k < want[i]->n; k++) {
            double a = rp_tensor_number(got[i], k), b = rp_tensor_number(want[i], k);

            if (!(fabs(a - b) <= 1e-4 * most) && a != b)
                fail_msg("output %zu, element %zu: %g instead of %g in\n%s", i, k, a, b, text);
        }
        rp_tensor_drop(got[i]);
        rp_tensor_drop(want[i]);
    }
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
    {"1,7,2", "4,2,5", "1,6,5",
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
    /* few columns, cut into parts; one long row; rows; dimensions that are no neighbours */
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

int test_fast(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_agree),
        cmocka_unit_test(programs_agree),
    };

    return cmocka_run_group_tests_name("fast", tests, NULL, NULL);
}
