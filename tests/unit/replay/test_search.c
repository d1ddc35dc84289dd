/* SPDX-License-Identifier: Apache-2.0 */
/* Searches on engines that are wrong in ways that a single operation does not show. */
#include "unit.h"

#include "exec/engines.h"
#include "formats/programs.h"
#include "replay/search.h"

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
    assert_int_equal(r.cut.nops, 9); /* v12 to v20: nothing between them can go */
    assert_true(has_op(r.cut.program, "v12") && has_op(r.cut.program, "v20"));
    assert_int_equal(r.nexpected, 1);
    /* what is expected of the part is what ref gives for the real values: signs and doublings */
    assert_true(rp_tensor_number(r.expected[0], 0) != 0);
    rp_reproducer_release(&r, 1);
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
    assert_int_equal(r.cut.nops, 1);
    assert_string_equal(r.message, "the compiler died");
    assert_true(has_op(r.cut.program, "v7"));
    rp_reproducer_release(&r, 1);
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
    assert_int_equal(r.cut.nops, 4);
    assert_string_equal(r.message, "the compiler died");
    rp_reproducer_release(&r, 1);
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
    assert_int_equal(r.cut.nops, 1);
    rp_reproducer_release(&r, 1);
    f.search.slower_ns = INT64_MAX;
    assert_ok(rp_bisect(&f.search, &f.arena, &r, &err), &err);
    assert_int_equal(r.complaint, RP_COMPLAINT_NONE);
    rp_reproducer_release(&r, 1);
    fixture_close(&f);
}

/* The difference of two nearly equal numbers amplifies rounding; it is no defect of an engine. */
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
    assert_ok(rp_trial_judge(&judge, &cut, in, 1, &got, &want, 1, &v, &err), &err);
    assert_false(v.ok);
    assert_true(v.sensitive);
    for (size_t i = 0; i < 8; i++)
        rp_tensor_set(got, i, rp_tensor_number(want, i) * 2 + 1);
    assert_ok(rp_trial_judge(&judge, &cut, in, 1, &got, &want, 1, &v, &err), &err);
    assert_false(v.ok || v.sensitive);
    rp_tensor_drop(in[0]);
    rp_tensor_drop(in[1]);
    rp_tensor_drop(want);
    rp_tensor_drop(got);
    rp_cut_release(&cut);
    rp_program_free(p);
}

int test_search(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meeting),          cmocka_unit_test(test_refused),
        cmocka_unit_test(test_refused_together), cmocka_unit_test(test_slow),
        cmocka_unit_test(test_amplified),
    };

    return cmocka_run_group_tests_name("replay_search", tests, NULL, NULL);
}
