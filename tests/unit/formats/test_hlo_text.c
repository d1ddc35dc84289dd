/* SPDX-License-Identifier: Apache-2.0 */
/* HLO text: dialects, what is kept, what is refused and how, hashes and counts. */
#include "formats/formats.h"
#include "formats/programs.h"
#include "program/opcodes.h"
#include "program/structure.h"
#include "unit.h"

#define MODULE                                                                         \
    "HloModule m\n\n%sum (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n" \
    "  %b = f32[] parameter(1)\n  ROOT %c = f32[] add(%a, %b)\n}\n\n"                  \
    "ENTRY %main (p: f32[4,8], q: f32[8,2]) -> f32[4] {\n"                             \
    "  %p = f32[4,8]{1,0} parameter(0)\n  %q = f32[8,2]{1,0} parameter(1)\n"           \
    "  %d = f32[4,2]{1,0} dot(%p, %q), lhs_contracting_dims={1}, "                     \
    "rhs_contracting_dims={0}, metadata={op_name=\"jit(f)/dot\" source_file=\"a.py\" " \
    "source_line=7}\n  %z = f32[] constant(0)\n"                                       \
    "  ROOT %r = f32[4]{0} reduce(%d, %z), dimensions={1}, to_apply=%sum\n}\n"

static struct rp_program *parse(const char *text)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;

    assert_ok(rp_hlo_text_parse(text, strlen(text), NULL, &p, &err), &err);
    return p;
}

static uint64_t hash_of(const struct rp_program *p)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_hashes hashes;

    assert_ok(rp_program_hash(p, &arena, &hashes, &err), &err);
    rp_arena_release(&arena);
    return hashes.program;
}

static uint64_t hash(const char *text)
{
    struct rp_program *p = parse(text);
    uint64_t value = hash_of(p);

    rp_program_free(p);
    return value;
}

static void reads_a_module(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_program *p = parse(MODULE);
    struct rp_source_line line;
    struct rp_costs costs;

    UNUSED_STATE(state);
    assert_int_equal(p->computations.n, 2);
    assert_int_equal(p->nops, 8);
    assert_int_equal(p->entry, 1);
    assert_string_equal(rp_program_text(p, p->name), "m");
    assert_true(rp_op_source(p, 5, &line));
    assert_string_equal(line.file, "a.py");
    assert_int_equal(line.line, 7);
    assert_ok(rp_program_count(p, &arena, &costs, &err), &err);
    assert_int_equal(costs.op[5].flops, 2 * 4 * 2 * 8);
    assert_int_equal(costs.program.flops, 128 + 4);
    rp_arena_release(&arena);
    rp_program_free(p);
}

/* The same program in other words. */
static void dialects_agree(void **state)
{
    static const char *const same[] = {
        "HloModule other\nENTRY e {\n p = f32[4,8] parameter(0)\n q = f32[8,2] parameter(1)\n"
        " z = f32[] constant(0.0)\n d = f32[4,2] dot(p, q), rhs_contracting_dims={0}, "
        "lhs_contracting_dims={1}\n ROOT r = f32[4] reduce(d, z), dimensions={1}, to_apply=s\n}\n"
        "s {\n b = f32[] parameter(1)\n a = f32[] parameter(0)\n ROOT c = f32[] add(a, b)\n}\n",
        "// a comment\nHloModule m\n%s (x: f32[]) -> f32[] {\n %x = f32[] parameter(0)\n"
        " %y = f32[] parameter(1)\n ROOT %c = f32[] add(f32[] %x, f32[] /*index=1*/ %y)\n}\n"
        "ENTRY %e (p: f32[4,8]) -> f32[4] {\n %p = f32[4,8]{1,0} parameter(0)\n"
        " %q = f32[8,2]{1,0} parameter(1)\n %d = f32[4,2]{1,0} dot(f32[4,8]{1,0} %p, %q), "
        "lhs_contracting_dims={ 1 }, rhs_contracting_dims={0}, lhs_batch_dims={}\n"
        " %z = f32[] constant(0), metadata={op_name=\"z\"}\n"
        " ROOT %r = f32[4]{0} reduce(%d, %z), dimensions={1}, to_apply=%s, channel_id=4\n}"};

    UNUSED_STATE(state);
    for (size_t i = 0; i < 2; i++)
        assert_true(hash(same[i]) == hash(MODULE));
}

static void hash_sees_changes(void **state)
{
    static const char *const one = "ENTRY e {\n p = f32[4] parameter(0)\n q = f32[4] parameter(1)\n"
                                   " ROOT r = f32[4] subtract(%s)%s\n}\n";
    char a[300], b[300], c[300];

    UNUSED_STATE(state);
    snprintf(a, sizeof a, one, "p, q", "");
    snprintf(b, sizeof b, one, "q, p", "");
    snprintf(c, sizeof c, one, "p, q", ", something=3");
    assert_true(hash(a) != hash(b));
    assert_true(hash(a) != hash(c));
    assert_true(hash("e { ROOT a = f32[2] constant({1, 2}) }") !=
                hash("e { ROOT a = f32[2] constant({1, 3}) }"));
    assert_true(hash("e { ROOT a = f32[2] constant({1, 2}) }") ==
                hash("e { ROOT b = f32[2]{0} constant( {1.0, 2e0}) }"));
    assert_true(hash("e { p = f32[2,2] parameter(0) ROOT a = f32[2,2]{0,1} copy(p) }") !=
                hash("e { p = f32[2,2] parameter(0) ROOT a = f32[2,2] copy(p) }"));
}

/* Newer files write parts of tuples as '#0'. */
static void tuple_parts(void **state)
{
    struct rp_program *p = parse("e { t = (f32[2], s32[]) parameter(0)\n a = f32[2] negate(t#0)\n"
                                 " ROOT r = f32[2] add(a, t#0) }");
    uint64_t old = hash("e { t = (f32[2], s32[]) parameter(0)\n"
                        " g = f32[2] get-tuple-element(t), index=0\n"
                        " h = f32[2] get-tuple-element(t), index=0\n"
                        " a = f32[2] negate(g)\n ROOT r = f32[2] add(a, h) }");

    UNUSED_STATE(state);
    assert_int_equal(p->nops, 4);
    assert_true(p->flags.at[1] & RP_OPS_IMPLICIT);
    assert_true(hash_of(p) == old);
    rp_program_free(p);
}

static void refuse(const char *text, enum rp_code code, const char *message)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;

    assert_code(rp_hlo_text_parse(text, strlen(text), NULL, &p, &err), code);
    assert_null(p);
    assert_contains(err.text, message);
}

static void refuses(void **state)
{
    UNUSED_STATE(state);
    refuse("e { ROOT r = f32[2] add(a, b) }", RP_FORMAT,
           "operand 'a' is not defined at line 1, column 25");
    refuse("e { p = f32[2,3 parameter(0) }", RP_FORMAT, "expected ']'");
    refuse("e { p = f32[9223372036854775807,4] parameter(0) }", RP_LIMIT, "more than 2^63");
    refuse("e { p = f33[2] parameter(0) }", RP_FORMAT, "unknown element type 'f33'");
    refuse("e { p = f32[2] parameter(0)\n q = f32[2] add(p) }", RP_FORMAT,
           "add takes 2 operands, not 1");
    refuse("e { p = f32[2] parameter(0)\n p = f32[2] parameter(1) }", RP_FORMAT, "defined twice");
    refuse("e { p = f32[2] parameter(1) }", RP_FORMAT, "not below the number of parameters");
    refuse("e { p = f32[2] parameter(0)\n c = f32[2] call(p), to_apply=f }", RP_FORMAT,
           "computation 'f' is not defined");
    refuse("e { p = f32[2] parameter(0)\n c = f32[2] call(p), to_apply=e }", RP_FORMAT,
           "calls itself");
    refuse("e { t = (f32[2]) parameter(0)\n c = f32[2] negate(t#1) }", RP_FORMAT,
           "no tuple element 1");
    refuse("HloModule m\n", RP_FORMAT, "without computations");
    refuse("e { p = f32[2] parameter(0), metadata={op_name=\"x }", RP_FORMAT, "unclosed");
    refuse("e {", RP_FORMAT, "expected an instruction or '}'");
}

static void prints_what_it_reads(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p = parse(MODULE), *again;
    struct rp_out *out;
    const char *text;
    size_t n;

    UNUSED_STATE(state);
    assert_ok(rp_out_open_memory(&out, &err), &err);
    assert_ok(rp_hlo_text_print(p, out, &err), &err);
    text = rp_out_borrow_memory(out, &n);
    assert_contains(text, "op_name=\"jit(f)/dot\"");
    assert_contains(text, "ENTRY %main (p: f32[4,8], q: f32[8,2]) -> f32[4] {");
    assert_ok(rp_hlo_text_parse(text, n, NULL, &again, &err), &err);
    assert_true(hash_of(p) == hash_of(again));
    rp_program_free(again);
    rp_out_abandon(out);
    rp_program_free(p);
}

/* A log that somebody pasted: every line begins with what the logger wrote. */
#define ADD \
    "add {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] add(x, y)\n}\n"
#define STATE "((f32[8]{0}), f32[2]{0}, u32[])"

/* "reduce-scatter-start" is async-start of a computation with a reduce-scatter in it. */
static void short_and_long_async_agree(void **state)
{
    static const char brief[] =
        "HloModule m\n" ADD "ENTRY e {\n a = f32[8]{0} parameter(0)\n s = " STATE
        " reduce-scatter-start(a), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}, "
        "to_apply=add\n u = " STATE " reduce-scatter-update(s)\n ROOT d = f32[2]{0} "
        "reduce-scatter-done(u)\n}\n";
    static const char whole[] =
        "HloModule m\n" ADD "w {\n p = f32[8]{0} parameter(0)\n ROOT r = f32[2]{0} "
        "reduce-scatter(p), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}, to_apply=add\n"
        "}, execution_thread=\"t\"\nENTRY e {\n a = f32[8]{0} parameter(0)\n s = " STATE
        " async-start(a), calls=w\n u = " STATE " async-update(s), calls=w\n ROOT d = f32[2]{0} "
        "async-done(u), calls=w\n}\n";
    struct rp_program *p = parse(brief);

    UNUSED_STATE(state);
    assert_true(hash(brief) == hash(whole));
    assert_int_equal(p->computations.n, 3);
    assert_string_equal(rp_program_text(p, p->computations.at[p->entry].name), "e");
    assert_int_equal(p->code.at[p->computations.at[2].root], RP_OP_REDUCE_SCATTER);
    rp_program_free(p);
    refuse("ENTRY e {\n a = f32[8] parameter(0)\n b = f32[8] negate-done(a, a)\n}\n", RP_FORMAT,
           "async-done takes 1 operands");
}

static void instructions_stand_in_operands(void **state)
{
    UNUSED_STATE(state);
    assert_true(
        hash("ENTRY e {\n a = f32[2] parameter(0)\n ROOT r = f32[2] add(f32[2] multiply(a, "
             "f32[2] negate(a)), f32[2] constant({1,2}))\n}\n") ==
        hash("ENTRY e {\n a = f32[2] parameter(0)\n n = f32[2] negate(a)\n m = f32[2] "
             "multiply(a, n)\n c = f32[2] constant({1,2})\n ROOT r = f32[2] add(m, c)\n}\n"));
    refuse("ENTRY e {\n a = f32[2] parameter(0)\n r = f32[2] add(a, nonsense(a))\n}\n", RP_FORMAT,
           "unknown opcode 'nonsense'");
}

static void reads_what_stands_around_modules(void **state)
{
    static const char *const texts[] = {
        "HloModule m\nENTRY e {\n ROOT a = f32[2] parameter(0)\n}\n",
        "HloModule m:\n\nENTRY e {\n ROOT a = f32[2] parameter(0)\n}\n",
        "*** Begin module_0001.m.txt ***\nHloModule m\nENTRY e {\n ROOT a = f32[2] "
        "parameter(0)\n}\n*** End module_0001.m.txt ***\n",
        "I1115 01:02:03.1   77 a.cc:1] other\nI1115 01:02:03.1   77 a.cc:2] HloModule m\n"
        "I1115 01:02:03.1   77 a.cc:2]\nI1115 01:02:03.1   77 a.cc:2] ENTRY e {\n"
        "I1115 01:02:03.1   77 a.cc:2]  ROOT a = f32[2] parameter(0)\n"
        "I1115 01:02:03.1   77 a.cc:2] }\n"};
    struct rp_err err = RP_ERR_INIT;
    uint64_t first = 0;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct rp_import import = RP_IMPORT_INIT;
        struct rp_input *in;

        assert_ok(rp_input_open_memory("t", texts[i], strlen(texts[i]), NULL, &in, &err), &err);
        assert_ok(rp_format_read(in, NULL, &import, &err), &err);
        first = i ? first : hash_of(import.program);
        assert_true(hash_of(import.program) == first);
        rp_import_release(&import);
    }
}

static void reads_logs(void **state)
{
#define LOG "2026-01-02 03:04:05.000001: I xla/service/dump.cc:12] "
    static const char log[] = "some line\n" LOG "HloModule m\n" LOG "\n" LOG "ENTRY e {\n" LOG
                              "  ROOT p = f32[2] parameter(0)\n" LOG "}\n";
    struct rp_err err = RP_ERR_INIT;
    struct rp_import import;
    struct rp_input *in;

    UNUSED_STATE(state);
    assert_ok(rp_input_open_memory("log", log, sizeof log - 1, NULL, &in, &err), &err);
    assert_ok(rp_format_read(in, NULL, &import, &err), &err);
    assert_string_equal(import.format->name, "hlo-text");
    assert_int_equal(import.program->nops, 1);
    rp_import_release(&import);
}

/* XLA's canonical printing: bodies where they are called, and once more on their own. */
static void computations_stand_where_they_are_called(void **state)
{
    static const char inside[] =
        "HloModule m\n\nneg {\n  t0 = f32[2] parameter(0)\n  ROOT t1 = f32[2] negate(f32[2] t0)\n}\n\n"
        "ENTRY main {\n  t0 = f32[2] parameter(0)\n  t1 = s32[] constant(0)\n"
        "  t2 = f32[2] call(f32[2] t0), to_apply=\n  {\n    t0 = f32[2] parameter(0)\n"
        "    ROOT t1 = f32[2] fusion(f32[2] t0), kind=kLoop, calls=\n    {\n"
        "      t0 = f32[2] parameter(0)\n      ROOT t1 = f32[2] negate(f32[2] t0)\n    }\n  }\n"
        "  ROOT t3 = f32[2] conditional(s32[] t1, f32[2] t2, f32[2] t2), branch_computations={\n  {\n"
        "    ROOT t0 = f32[2] parameter(0)\n  },\n  {\n    t0 = f32[2] parameter(0)\n"
        "    ROOT t1 = f32[2] negate(f32[2] t0)\n  }\n  }\n}\n";
    static const char apart[] =
        "HloModule m\nneg {\n a = f32[2] parameter(0)\n ROOT b = f32[2] negate(a)\n}\n"
        "fuse {\n a = f32[2] parameter(0)\n ROOT b = f32[2] fusion(a), kind=kLoop, calls=neg\n}\n"
        "same {\n ROOT a = f32[2] parameter(0)\n}\nother {\n a = f32[2] parameter(0)\n ROOT b = "
        "f32[2] negate(a)\n}\nENTRY main {\n a = f32[2] parameter(0)\n i = s32[] constant(0)\n c = "
        "f32[2] call(a), to_apply=fuse\n ROOT d = f32[2] conditional(i, c, c), "
        "branch_computations={same, other}\n}\n";
    struct rp_program *p = parse(inside), *q = parse(apart);

    UNUSED_STATE(state);
    assert_int_equal(p->computations.n, 5);
    assert_true(hash_of(p) == hash_of(q));
    rp_program_free(p);
    rp_program_free(q);
}

int test_hlo_text(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_module),
        cmocka_unit_test(dialects_agree),
        cmocka_unit_test(hash_sees_changes),
        cmocka_unit_test(tuple_parts),
        cmocka_unit_test(refuses),
        cmocka_unit_test(prints_what_it_reads),
        cmocka_unit_test(reads_logs),
        cmocka_unit_test(short_and_long_async_agree),
        cmocka_unit_test(instructions_stand_in_operands),
        cmocka_unit_test(reads_what_stands_around_modules),
        cmocka_unit_test(computations_stand_where_they_are_called),
    };

    return cmocka_run_group_tests_name("hlo_text", tests, NULL, NULL);
}
