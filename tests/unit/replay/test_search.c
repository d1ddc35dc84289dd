/* SPDX-License-Identifier: Apache-2.0 */
/* Searches on engines that are wrong in ways that a single operation does not show. */
#include "unit.h"

#include "exec/engines.h"
#include "formats/programs.h"
#include "replay/search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- an engine that is wrong where two operations meet, fails or is slow ---- */

static struct rp_program *planted[4096];
static size_t nplanted;
static const char *const *meeting; /* names that must all be there */

static bool has_op(const struct rp_program *p, const char *name)
{
    for (uint32_t i = 0; i < p->nops; i++)
        if (!strcmp(rp_program_text(p, p->op_name.at[i]), name))
            return true;
    return false;
}

static enum rp_code compile_meeting(const char *where, const struct rp_engine_program *program,
                                    const struct rp_engine_options *options,
                                    struct rp_executable **out, struct rp_err *err)
{
    struct rp_engine_program now = *program;
    bool found;

    for (size_t i = 0; meeting[i]; i++)
        if (!has_op(program->program, meeting[i]))
            return rp_engine_fast.compile(where, program, options, out, err);
    assert_true(nplanted < sizeof planted / sizeof *planted);
    RP_TRY(rp_program_plant(program->program, meeting[0], &planted[nplanted], &found, err));
    now.program = planted[nplanted++];
    return rp_engine_fast.compile(where, &now, options, out, err);
}

static enum rp_code compile_refusing(const char *where, const struct rp_engine_program *program,
                                     const struct rp_engine_options *options,
                                     struct rp_executable **out, struct rp_err *err)
{
    for (size_t i = 0; meeting[i]; i++)
        if (!has_op(program->program, meeting[i]))
            return rp_engine_fast.compile(where, program, options, out, err);
    return rp_err_set(err, RP_IO, "the compiler died\nwith a long backtrace");
}

static struct rp_program *chain_of(unsigned n, char **text)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;
    size_t size;
    FILE *f = open_memstream(text, &size);

    fprintf(f, "HloModule chain\n\nENTRY %%main (x: f32[16]) -> f32[16] {\n"
               "  %%x = f32[16] parameter(0)\n");
    for (unsigned i = 0; i < n; i++) {
        char before[16] = "x";

        if (i)
            snprintf(before, sizeof before, "v%u", i - 1);
        fprintf(f, "  %s%%v%u = f32[16] %s(%%%s%s%s)\n", i + 1 == n ? "ROOT " : "", i,
                i % 2 ? "add" : "negate", before, i % 2 ? ", %" : "", i % 2 ? before : "");
    }
    fprintf(f, "}\n");
    fclose(f);
    assert_ok(rp_hlo_text_parse(*text, size, NULL, &p, &err), &err);
    return p;
}

struct fixture {
    char *text;
    struct rp_program *program;
    struct rp_tensor *x;
    struct rp_engine engine;
    struct rp_trial_engine tested, oracle;
    struct rp_search search;
    struct rp_arena arena;
};

static void fixture_open(struct fixture *f, unsigned n,
                         enum rp_code (*compile)(const char *, const struct rp_engine_program *,
                                                 const struct rp_engine_options *,
                                                 struct rp_executable **, struct rp_err *))
{
    struct rp_err err = RP_ERR_INIT;
    int64_t dims[1] = {16};

    memset(f, 0, sizeof *f);
    rp_arena_init(&f->arena);
    f->program = chain_of(n, &f->text);
    assert_ok(rp_tensor_new(RP_ELEM_F32, dims, 1, &f->x, &err), &err);
    for (size_t i = 0; i < 16; i++)
        rp_tensor_set(f->x, i, 1e-6 * (double)(i + 1));
    f->engine = rp_engine_fast;
    f->engine.compile = compile;
    f->tested.engine = &f->engine;
    f->oracle.engine = &rp_engine_ref;
    f->search = (struct rp_search){.program = f->program,
                                   .arguments = &f->x,
                                   .narguments = 1,
                                   .partitions = 1,
                                   .tested = &f->tested,
                                   .oracle = &f->oracle,
                                   .tolerance = {.absolute = -1, .relative = -1, .ulp = -1}};
}

static void fixture_close(struct fixture *f)
{
    rp_tensor_drop(f->x);
    rp_program_free(f->program);
    free(f->text);
    rp_arena_release(&f->arena);
    while (nplanted)
        rp_program_free(planted[--nplanted]);
}

/* ---- tests ---- */

/* Wrong only if both are in the program: neither alone tells. */
static void test_meeting(void **state)
{
    static const char *const both[] = {"v20", "v12", NULL};
    struct rp_reproducer r;
    struct rp_isolated isolated;
    struct rp_err err = RP_ERR_INIT;
    struct fixture f;

    (void)state;
    meeting = both;
    fixture_open(&f, 40, compile_meeting);
    assert_ok(rp_isolate(&f.search, &f.arena, &isolated, NULL, &err), &err);
    assert_int_equal(isolated.diverging, 0);
    assert_int_equal(isolated.tested, 40);
    assert_ok(rp_bisect(&f.search, &f.arena, &r, &err), &err);
    assert_int_equal(r.complaint, RP_COMPLAINT_WRONG);
    assert_int_equal(r.before, 40);
    assert_int_equal(r.part.cut.nops, 9); /* v12 to v20: nothing between them can go */
    assert_true(has_op(r.part.cut.program, "v12") && has_op(r.part.cut.program, "v20"));
    assert_int_equal(r.part.outputs.n, 1);
    /* what is expected of the part is what ref gives for the real values: signs and doublings */
    assert_true(rp_tensor_number(r.part.outputs.at[0], 0) != 0);
    rp_reproducer_release(&r);
    fixture_close(&f);
}

static void test_refused(void **state)
{
    static const char *const one[] = {"v7", NULL};
    struct rp_reproducer r;
    struct rp_err err = RP_ERR_INIT;
    struct fixture f;

    (void)state;
    meeting = one;
    fixture_open(&f, 30, compile_refusing);
    assert_ok(rp_bisect(&f.search, &f.arena, &r, &err), &err);
    assert_int_equal(r.complaint, RP_COMPLAINT_FAILS);
    assert_int_equal(r.part.cut.nops, 1);
    assert_string_equal(r.message, "the compiler died");
    assert_true(has_op(r.part.cut.program, "v7"));
    rp_reproducer_release(&r);
    fixture_close(&f);
}

static void test_refused_together(void **state)
{
    static const char *const both[] = {"v9", "v6", NULL};
    struct rp_reproducer r;
    struct rp_err err = RP_ERR_INIT;
    struct fixture f;

    (void)state;
    meeting = both;
    fixture_open(&f, 30, compile_refusing);
    assert_ok(rp_bisect(&f.search, &f.arena, &r, &err), &err);
    assert_int_equal(r.complaint, RP_COMPLAINT_FAILS);
    assert_int_equal(r.part.cut.nops, 4);
    assert_string_equal(r.message, "the compiler died");
    rp_reproducer_release(&r);
    fixture_close(&f);
}

/* Of several results the one that shows the complaint is left at once, not operation by operation.
 */
static void test_one_result(void **state)
{
    static const char *const both[] = {"s", "q", NULL};
    struct rp_reproducer r;
    struct rp_err err = RP_ERR_INIT;
    struct fixture f;
    char *longer;

    (void)state;
    meeting = both;
    fixture_open(&f, 100, compile_refusing);
    rp_program_free(f.program);
    assert_true(asprintf(&longer,
                         "%.*s  %%v99 = f32[16] add(%%v98, %%v98)\n  %%s = f32[16] sine(%%x)\n"
                         "  %%q = f32[16] cosine(%%s)\n"
                         "  ROOT %%t = (f32[16], f32[16], f32[16]) tuple(%%x, %%v99, %%q)\n}\n",
                         (int)(strstr(f.text, "  ROOT") - f.text), f.text) > 0);
    free(f.text);
    f.text = strstr(longer, " (x: f32[16]) -> f32[16]"); /* the header states another result */
    memset(f.text, ' ', strlen(" (x: f32[16]) -> f32[16]"));
    f.text = longer;
    assert_ok(rp_hlo_text_parse(f.text, strlen(f.text), NULL, &f.program, &err), &err);
    f.search.program = f.program;
    assert_ok(rp_bisect(&f.search, &f.arena, &r, &err), &err);
    assert_int_equal(r.complaint, RP_COMPLAINT_FAILS);
    assert_int_equal(r.part.cut.nops, 2);
    assert_true(has_op(r.part.cut.program, "s") && has_op(r.part.cut.program, "q"));
    assert_int_equal(r.before, 103);
    assert_true(r.trials <= 3 + 7 + 4); /* the whole and two results, a bisection, single ones */
    rp_reproducer_release(&r);
    fixture_close(&f);
}

/* Everything takes longer than no time at all: one operation is left. */
static void test_slow(void **state)
{
    static const char *const none[] = {"nothing", NULL};
    struct rp_reproducer r;
    struct rp_err err = RP_ERR_INIT;
    struct fixture f;

    (void)state;
    meeting = none;
    fixture_open(&f, 12, compile_meeting);
    f.search.slower_ns = 1;
    assert_ok(rp_bisect(&f.search, &f.arena, &r, &err), &err);
    assert_int_equal(r.complaint, RP_COMPLAINT_SLOW);
    assert_int_equal(r.part.cut.nops, 1);
    rp_reproducer_release(&r);
    f.search.slower_ns = INT64_MAX;
    assert_ok(rp_bisect(&f.search, &f.arena, &r, &err), &err);
    assert_int_equal(r.complaint, RP_COMPLAINT_NONE);
    rp_reproducer_release(&r);
    fixture_close(&f);
}

/* The difference of two nearly equal numbers amplifies rounding; it is not a defect of an engine.
 */
static void test_amplified(void **state)
{
    static const char text[] = "HloModule m\n\nENTRY %main (a: f32[8], b: f32[8]) -> f32[8] {\n"
                               "  %a = f32[8] parameter(0)\n  %b = f32[8] parameter(1)\n"
                               "  ROOT %d = f32[8] subtract(%a, %b)\n}\n";
    struct rp_err err = RP_ERR_INIT;
    struct rp_trial_engine oracle = {.engine = &rp_engine_ref};
    struct rp_trial_judge judge = {&oracle, {.absolute = -1, .relative = -1, .ulp = -1}};
    struct rp_cut_program cut;
    struct rp_trial_verdict v;
    struct rp_tensor *in[2], *want, *got;
    struct rp_tensors wanted = {&want, 1}, gotten = {&got, 1};
    struct rp_program *p;
    uint8_t keep[3] = {1, 1, 1};
    uint32_t root;
    int64_t dims[1] = {8};

    (void)state;
    assert_ok(rp_hlo_text_parse(text, sizeof text - 1, NULL, &p, &err), &err);
    root = p->computations.at[p->entry].root;
    assert_ok(rp_program_cut(p, &(struct rp_cut){p->entry, keep, &root, 1, false}, &cut, &err),
              &err);
    assert_ok(rp_tensor_new(RP_ELEM_F32, dims, 1, &in[0], &err), &err);
    assert_ok(rp_tensor_new(RP_ELEM_F32, dims, 1, &in[1], &err), &err);
    assert_ok(rp_tensor_new(RP_ELEM_F32, dims, 1, &want, &err), &err);
    assert_ok(rp_tensor_new(RP_ELEM_F32, dims, 1, &got, &err), &err);
    for (size_t i = 0; i < 8; i++) {
        rp_tensor_set(in[0], i, 1000 + 1e-3 * (double)i);
        rp_tensor_set(in[1], i, 1000);
        rp_tensor_set(want, i, rp_tensor_number(in[0], i) - 1000);
        rp_tensor_set(got, i, rp_tensor_number(want, i) + 6e-5); /* a unit of 1000 */
    }
    assert_ok(rp_trial_judge(&judge, &(struct rp_trial_part){cut.program, in, 2, 1}, &gotten,
                             &wanted, &v, &err),
              &err);
    assert_false(v.ok);
    assert_true(v.sensitive);
    for (size_t i = 0; i < 8; i++)
        rp_tensor_set(got, i, rp_tensor_number(want, i) * 2 + 1);
    assert_ok(rp_trial_judge(&judge, &(struct rp_trial_part){cut.program, in, 2, 1}, &gotten,
                             &wanted, &v, &err),
              &err);
    assert_false(v.ok || v.sensitive);
    rp_tensor_drop(in[0]);
    rp_tensor_drop(in[1]);
    rp_tensor_drop(want);
    rp_tensor_drop(got);
    rp_cut_release(&cut);
    rp_program_free(p);
}

/* ---- nudged constants ---- */

#define NUDGED                                                                           \
    "HloModule nudged\n\n"                                                               \
    "%deep (a: f32[]) -> f32[] {\n"                                                      \
    "  %a = f32[] parameter(0)\n  %k = f32[] constant(0.7)\n"                            \
    "  ROOT %m = f32[] multiply(%a, %k)\n}\n\n"                                          \
    "%body (s: (s32[], f32[], f32[])) -> (s32[], f32[], f32[]) {\n"                      \
    "  %s = (s32[], f32[], f32[]) parameter(0)\n"                                        \
    "  %i = s32[] get-tuple-element(%s), index=0\n  %one = s32[] constant(1)\n"          \
    "  %n = s32[] add(%i, %one)\n  %c = f32[] constant(0.1)\n  %u = f32[] constant(1)\n" \
    "  %d = f32[] call(%u), to_apply=%deep\n"                                            \
    "  ROOT %t = (s32[], f32[], f32[]) tuple(%n, %c, %d)\n}\n\n"                         \
    "%still (s: (s32[], f32[], f32[])) -> pred[] {\n"                                    \
    "  %s = (s32[], f32[], f32[]) parameter(0)\n"                                        \
    "  %i = s32[] get-tuple-element(%s), index=0\n  %two = s32[] constant(2)\n"          \
    "  ROOT %l = pred[] compare(%i, %two), direction=LT\n}\n\n"                          \
    "%outside (x: s32[]) -> f32[] {\n  %x = s32[] parameter(0)\n"                        \
    "  ROOT %o = f32[] constant(0.3)\n}\n\n"                                             \
    "ENTRY %main {\n  %x = s32[] parameter(0)\n  %e = f32[] constant(0.2)\n"             \
    "  %called = f32[] call(%x), to_apply=%outside\n"                                    \
    "  %b = (s32[], f32[], f32[]) tuple(%x, %e, %e)\n"                                   \
    "  %w = (s32[], f32[], f32[]) while(%b), condition=%still, body=%body\n"             \
    "  %i = s32[] get-tuple-element(%w), index=0\n"                                      \
    "  %c = f32[] get-tuple-element(%w), index=1\n"                                      \
    "  %d = f32[] get-tuple-element(%w), index=2\n"                                      \
    "  ROOT %t = (f32[], f32[], s32[], f32[], f32[]) tuple(%e, %called, %i, %c, %d)\n}\n"

/* The constants of loops, and of what these call, change in their last place; no other does, nor
   does a whole number. */
static void test_nudged(void **state)
{
    static const struct {
        double value;
        bool moves;
    } wanted[] = {{0.2, false}, {0.3, false}, {2, false}, {0.1, true}, {0.7, true}};
    struct rp_trial_engine ref = {.engine = &rp_engine_ref};
    struct rp_err err = RP_ERR_INIT;
    struct rp_tensors out = {0};
    struct rp_tensor *x;
    struct rp_program *p;

    (void)state;
    assert_ok(rp_hlo_text_parse(NUDGED, strlen(NUDGED), NULL, &p, &err), &err);
    assert_ok(rp_tensor_new(RP_ELEM_S32, NULL, 0, &x, &err), &err);
    rp_tensor_set(x, 0, 0);
    assert_ok(rp_trial_nudged(&ref, &(struct rp_trial_part){p, &x, 1, 1}, &out, &err), &err);
    assert_int_equal(out.n, 5);
    for (size_t i = 0; i < out.n; i++) {
        double off = fabs(rp_tensor_number(out.at[i], 0) - (double)(float)wanted[i].value);

        assert_true(off <= 4 * 0x1p-23 * wanted[i].value);
        assert_int_equal(off > 0, wanted[i].moves);
    }
    rp_tensors_release(&out);
    rp_tensor_drop(x);
    rp_program_free(p);
}

int test_search(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meeting),          cmocka_unit_test(test_refused),
        cmocka_unit_test(test_refused_together), cmocka_unit_test(test_slow),
        cmocka_unit_test(test_amplified),        cmocka_unit_test(test_one_result),
        cmocka_unit_test(test_nudged),
    };

    return cmocka_run_group_tests_name("replay_search", tests, NULL, NULL);
}
