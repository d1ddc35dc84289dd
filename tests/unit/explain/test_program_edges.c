/* SPDX-License-Identifier: Apache-2.0 */
/* Repeats without names, computations that nothing calls, the graph that a recompile is like, and
   outputs that reuse inputs. */
#include "base/scope.h"
#include "explain/graph/graph.h"
#include "explain/program_diff/place.h"
#include "explain/program_diff/program_diff.h"
#include "formats/programs.h"
#include "program/opcodes.h"
#include "unit.h"

enum { TEXT = 16000, LAYERS = 6 };

static struct rp_program *parse(const char *text)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;

    assert_ok(rp_hlo_text_parse(text, strlen(text), NULL, &p, &err), &err);
    return p;
}

/* ------------------------------------------------------------------ repeats */

/* x = tanh(x * w) + x, six times; all parameters first, the weights in the reverse order. */
static void layers_are_counted(void **state)
{
    static char text[TEXT];
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_match_side side;
    struct rp_repeat *repeats;
    struct rp_program *p;
    uint32_t seen[3] = {0};
    size_t n = (size_t)snprintf(text, TEXT, "HloModule m\nENTRY e {\n x0 = f32[4] parameter(0)\n");

    UNUSED_STATE(state);
    for (int i = LAYERS - 1; i >= 0; i--)
        n += (size_t)snprintf(text + n, TEXT - n, " w%d = f32[4] parameter(%d)\n", i, i + 1);
    for (int i = 0; i < LAYERS; i++)
        n += (size_t)snprintf(text + n, TEXT - n,
                              " m%d = f32[4] multiply(x%d, w%d)\n t%d = f32[4] tanh(m%d)\n"
                              " x%d = f32[4] add(t%d, x%d)\n",
                              i, i, i, i, i, i + 1, i, i);
    snprintf(text + n, TEXT - n, " ROOT r = f32[4] negate(x%d)\n}\n", LAYERS);
    p = parse(text);
    assert_ok(rp_match_prepare(p, &arena, &side, &err), &err);
    assert_ok(rp_repeats_find(&side, p->entry, &arena, &repeats, &err), &err);
    for (uint32_t op = 0; op < p->nops; op++) {
        const struct rp_repeat *r = &repeats[op];
        int kind = p->code.at[op] == RP_OP_MULTIPLY ? 0
                   : p->code.at[op] == RP_OP_TANH   ? 1
                   : p->code.at[op] == RP_OP_ADD    ? 2
                                                    : -1;

        if (kind >= 0) {
            assert_int_equal(r->count, LAYERS);
            assert_int_equal(r->index, ++seen[kind]);
            assert_int_equal(r->off, 0);
        } else if (p->code.at[op] == RP_OP_NEGATE) {
            assert_int_equal(r->count, 1);
        } else if (p->value.at[op]) { /* a weight is of the layer that uses it */
            assert_int_equal(r->index, p->value.at[op]);
        }
    }
    assert_int_equal(seen[0] + seen[1] + seen[2], 3 * LAYERS);
    rp_arena_release(&arena);
    rp_program_free(p);
}

/* ------------------------------------------------------------------ computations that nothing
 * calls */

#define DEAD(name, value) name " { ROOT x = f32[] constant(" value ") }\n"
#define ENTRY             "ENTRY e { ROOT a = f32[] parameter(0) }\n"

static void check_dead(const char *left, const char *right, int64_t changed, int64_t added,
                       int64_t removed)
{
    struct rp_program *a = parse(left), *b = parse(right);
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_program_diff diff;

    assert_ok(rp_program_diff_compare(a, b, &arena, &diff, &err), &err);
    assert_int_equal(diff.changed, changed);
    assert_int_equal(diff.added, added);
    assert_int_equal(diff.removed, removed);
    rp_arena_release(&arena);
    rp_program_free(a);
    rp_program_free(b);
}

/* Those that both have count for nothing; the rest is paired in the order of the file. */
static void dead_computations_are_paired(void **state)
{
    UNUSED_STATE(state);
    check_dead(DEAD("f", "1") DEAD("g", "2") ENTRY, DEAD("h", "2") DEAD("i", "1") ENTRY, 0, 0, 0);
    check_dead(DEAD("f", "1") DEAD("g", "2") ENTRY, DEAD("f", "1") DEAD("g", "3") ENTRY, 1, 0, 0);
    check_dead(DEAD("f", "1") DEAD("g", "2") ENTRY, DEAD("f", "1") ENTRY, 0, 0, 1);
    check_dead(DEAD("f", "1") DEAD("g", "2") ENTRY, ENTRY, 0, 0, 2);
    check_dead(ENTRY, DEAD("f", "1") DEAD("g", "2") ENTRY, 0, 2, 0);
    check_dead(DEAD("f", "1") ENTRY, DEAD("f", "3") DEAD("g", "4") DEAD("h", "1") ENTRY, 0, 2, 0);
    check_dead(DEAD("f", "1") ENTRY, DEAD("f", "3") DEAD("g", "4") ENTRY, 1, 1, 0);
    check_dead(DEAD("f", "3") DEAD("g", "4") ENTRY, DEAD("f", "1") ENTRY, 1, 0, 1);
}

/* ------------------------------------------------------------------ recompiles */

static const char *one_op(const char *opcode, int size)
{
    static char text[200];

    snprintf(text, sizeof text,
             "HloModule m\nENTRY e {\n a = f32[%d] parameter(0)\n b = f32[%d] %s(a)\n"
             " ROOT c = f32[%d] negate(b)\n}",
             size, size, opcode, size);
    return text;
}

/* Of which earlier graph each of the graphs is a change; 0: of none, -1: it is not new. */
static void check_against(struct rp_program **programs, size_t n, const int64_t *want)
{
    RP_FREED struct rp_match_side *sides = calloc(n, sizeof *sides);
    RP_FREED struct rp_recompile_graph *graphs = calloc(n, sizeof *graphs);
    struct rp_recompiles steps = {.rows = {0}};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    size_t row = 0;

    for (size_t i = 0; i < n; i++) {
        assert_ok(rp_match_prepare(programs[i], &arena, &sides[i], &err), &err);
        graphs[i] = (struct rp_recompile_graph){{&sides[i], RP_NONE}, "", (int64_t)i + 1};
    }
    assert_ok(rp_recompiles_explain(graphs, n, &arena, &steps, &err), &err);
    for (size_t i = 0; i < n; i++) {
        if (want[i] < 0)
            continue;
        assert_int_equal(steps.rows.at[row].graph, (int64_t)i + 1);
        assert_int_equal(steps.rows.at[row++].against, want[i] ? want[i] : RP_ABSENT_I64);
    }
    assert_int_equal(steps.rows.n, row);
    for (size_t i = 0; i < n; i++)
        rp_program_free(programs[i]);
    rp_vec_release(&steps.rows);
    rp_arena_release(&arena);
}

/* Training and evaluation alternate: each is compared with the last of its kind. */
static void the_most_similar_graph_is_found(void **state)
{
    static const int64_t want[] = {0, 1, 1, 2, -1, 3};
    struct rp_program *programs[] = {parse(one_op("tanh", 4)), parse(one_op("sine", 6)),
                                     parse(one_op("tanh", 5)), parse(one_op("sine", 7)),
                                     parse(one_op("tanh", 4)), parse(one_op("tanh", 8))};

    UNUSED_STATE(state);
    check_against(programs, 6, want);
}

/* Only the 32 newest are looked at. */
static void old_graphs_are_not_searched(void **state)
{
    UNUSED_STATE(state);
    for (size_t between = 31; between < 33; between++) {
        struct rp_program *programs[34];
        int64_t want[34] = {0};

        programs[0] = parse(one_op("tanh", 1));
        for (size_t i = 1; i <= between; i++) {
            programs[i] = parse(one_op("sine", (int)i + 1));
            want[i] = (int64_t)i; /* the newest of those that are equally like it */
        }
        want[1] = 1;
        programs[between + 1] = parse(one_op("tanh", 100));
        want[between + 1] = between == 31 ? 1 : (int64_t)between + 1;
        check_against(programs, between + 2, want);
    }
}

/* ------------------------------------------------------------------ aliases */

static void outputs_reuse_inputs(void **state)
{
    static const char text[] =
        "HloModule m, input_output_alias={ {0}: (1, {}, may-alias), {1}: (0, {}, must-alias), "
        "{}: (2, {}, must-alias) }\nENTRY e {\n a = f32[4] parameter(0)\n b = f32[2] parameter(1)\n"
        " ROOT t = (f32[2], f32[4]) tuple(b, a)\n}";
    struct rp_program *p = parse(text);
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_graph_answer out = {0};
    static const uint32_t inputs[][2] = {{2, 0}};

    UNUSED_STATE(state);
    assert_ok(rp_graph_list_aliases(p, NULL, 0, &arena, &out, &err), &err);
    assert_int_equal(out.naliases, 2); /* there is no third input */
    assert_int_equal(out.aliased, 2);
    assert_int_equal(out.aliased_bytes, 24);
    assert_int_equal(out.aliases[0].parameter, 0);
    assert_int_equal(out.aliases[0].output, 1);
    assert_int_equal(out.aliases[0].size_bytes, 16);
    assert_string_equal(out.aliases[0].name, "a");
    assert_string_equal(out.aliases[0].shape, "f32[4]");
    assert_string_equal(out.aliases[0].kind, "must");
    assert_int_equal(out.aliases[1].parameter, 1);
    assert_int_equal(out.aliases[1].output, 0);
    assert_string_equal(out.aliases[1].kind, "may");
    out = (struct rp_graph_answer){0};
    assert_code(rp_graph_list_aliases(p, inputs, 1, &arena, &out, &err), RP_USAGE);
    assert_contains(err.text, "no such input");
    rp_program_free(p);
    p = parse("HloModule m\nENTRY e { ROOT a = f32[4] parameter(0) }");
    out = (struct rp_graph_answer){0};
    assert_ok(rp_graph_list_aliases(p, NULL, 0, &arena, &out, &err), &err);
    assert_int_equal(out.aliased, RP_ABSENT_I64);
    assert_int_equal(out.aliased_bytes, RP_ABSENT_I64);
    rp_arena_release(&arena);
    rp_program_free(p);
}

int test_program_edges(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_counted),
        cmocka_unit_test(dead_computations_are_paired),
        cmocka_unit_test(the_most_similar_graph_is_found),
        cmocka_unit_test(old_graphs_are_not_searched),
        cmocka_unit_test(outputs_reuse_inputs),
    };

    return cmocka_run_group_tests_name("program_edges", tests, NULL, NULL);
}
