/* SPDX-License-Identifier: Apache-2.0 */
/* Where changes are: layers with names and without, loops, what only follows, sharding. */
#include "explain/program_diff/program_diff.h"
#include "explain/program_diff/words.h"
#include "formats/programs.h"
#include "unit.h"

#include <stdio.h>

enum { LAYERS = 8, TEXT = 16000 };

static struct rp_program *parse(const char *text)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;

    assert_ok(rp_hlo_text_parse(text, strlen(text), NULL, &p, &err), &err);
    return p;
}

/* x = tanh(x * w) + x, LAYERS times; layer `odd` (-1: all) has `op` instead of tanh. */
static void write_layers(char *out, int odd, const char *op, bool named)
{
    size_t n = (size_t)snprintf(out, TEXT, "HloModule m\nENTRY e {\n x0 = f32[4] parameter(0)\n");

    for (int i = 0; i < LAYERS; i++) {
        char name[120] = "";

        if (named)
            snprintf(name, sizeof name,
                     ", metadata={op_name=\"jit(f)/jvp(Net)/layer_%d/mlp/tanh\" "
                     "source_file=\"/src/net.py\" source_line=12}",
                     i);
        n += (size_t)snprintf(out + n, TEXT - n,
                              " w%d = f32[4] parameter(%d)\n m%d = f32[4] multiply(x%d, w%d)\n"
                              " t%d = f32[4] %s(m%d)%s\n x%d = f32[4] add(t%d, x%d)\n",
                              i, i + 1, i, i, i, i, odd == i || odd == -1 ? op : "tanh", i, name,
                              i + 1, i, i);
    }
    snprintf(out + n, TEXT - n, " ROOT r = f32[4] negate(x%d)\n}\n", LAYERS);
}

static void check_change(const char *left, const char *right, const char *want)
{
    struct rp_program *a = parse(left), *b = parse(right);
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_program_diff diff;
    char got[400] = "same";

    assert_ok(rp_program_diff_compare(a, b, &arena, &diff, &err), &err);
    if (diff.nchanges)
        snprintf(got, sizeof got, "%s: %lld x %s | %s | %s", diff.cause,
                 (long long)diff.changes[0].count, diff.changes[0].what, diff.changes[0].where,
                 diff.changes[0].place);
    assert_string_equal(got, want);
    rp_arena_release(&arena);
    rp_program_free(a);
    rp_program_free(b);
}

static void layers_are_named(void **state)
{
    static char base[TEXT], other[TEXT];

    UNUSED_STATE(state);
    write_layers(base, -2, "", false);
    for (int i = 0; i < LAYERS; i++) {
        char want[100];

        write_layers(other, i, "sine", false);
        snprintf(want, sizeof want, "structure: 1 x tanh f32[4] -> sine f32[4] | repeat %d of 8 | ",
                 i + 1);
        check_change(base, other, want);
    }
    write_layers(other, -1, "sine", false);
    check_change(base, other, "structure: 8 x tanh f32[4] -> sine f32[4] | all 8 repeats | ");
    write_layers(base, -2, "", true);
    write_layers(other, 5, "sine", true);
    check_change(base, other,
                 "structure: 1 x tanh f32[4] -> sine f32[4] | Net/layer_5/mlp | net.py:12");
    write_layers(other, -1, "sine", true);
    check_change(base, other,
                 "structure: 8 x tanh f32[4] -> sine f32[4] | Net/layer_{0-7}/mlp | net.py:12");
}

/* The layers of write_layers with every weight under another number, and layer `odd` changed. */
static void write_permuted(char *out, int odd)
{
    static const int numbers[LAYERS] = {8, 7, 1, 2, 4, 0, 5, 6};
    size_t n = (size_t)snprintf(out, TEXT, "HloModule m\nENTRY e {\n v0 = f32[4] parameter(3)\n");

    for (int i = 0; i < LAYERS; i++)
        n +=
            (size_t)snprintf(out + n, TEXT - n,
                             " k%d = f32[4] parameter(%d)\n l%d = f32[4] multiply(v%d, k%d)\n"
                             " s%d = f32[4] %s(l%d)\n v%d = f32[4] add(s%d, v%d)\n",
                             i, numbers[i], i, i, i, i, odd == i ? "sine" : "tanh", i, i + 1, i, i);
    snprintf(out + n, TEXT - n, " ROOT r = f32[4] negate(v%d)\n}\n", LAYERS);
}

static void parameters_in_another_order(void **state)
{
    static char base[TEXT], other[TEXT];

    UNUSED_STATE(state);
    write_layers(base, -2, "", false);
    write_permuted(other, -1);
    check_change(base, other, "same");
    write_permuted(other, 3);
    check_change(base, other, "structure: 1 x tanh f32[4] -> sine f32[4] | repeat 4 of 8 | ");
}

static void shapes_follow(void **state)
{
    UNUSED_STATE(state);
    check_change("HloModule m\nENTRY e {\n a = f32[4,2] parameter(0)\n i = f32[4] iota(), "
                 "iota_dimension=0\n b = f32[4,2] broadcast(i), dimensions={0}\n"
                 " ROOT c = f32[4,2] add(a, b)\n}",
                 "HloModule m\nENTRY e {\n a = f32[6,2] parameter(0)\n i = f32[6] iota(), "
                 "iota_dimension=0\n b = f32[6,2] broadcast(i), dimensions={0}\n"
                 " ROOT c = f32[6,2] add(a, b)\n}",
                 "shape: 1 x parameter f32[4,2] -> f32[6,2] |  | ");
}

#define SHARDED(how)                                                                          \
    "HloModule m\nENTRY e {\n a = f32[4] parameter(0), sharding={" how "}\n ROOT b = f32[4] " \
    "negate(a)\n}"

static void sharding_is_said(void **state)
{
    UNUSED_STATE(state);
    check_change(
        SHARDED("replicated"), SHARDED("devices=[2]<=[2]"),
        "sharding: 1 x parameter f32[4]: sharding={replicated} -> {devices=[2]<=[2]} |  | ");
    check_change(SHARDED("replicated"), SHARDED("replicated"), "same");
    check_change(SHARDED("replicated"),
                 "HloModule m\nENTRY e {\n a = f32[4] parameter(0)\n ROOT b = f32[4] negate(a)\n}",
                 "same");
}

static void scopes(void **state)
{
    const char *three[] = {"net/h_1/a_2", "net/h_2/a_2", "net/h_7/a_2"};
    struct rp_arena arena = RP_ARENA_INIT;
    int64_t values[] = {5, 1, 2, 3, 9, 8};
    char out[200];

    UNUSED_STATE(state);
    rp_scope_words("jit(step)/jit(main)/transpose(jvp(Net))/layer_17/while/body/attn/dot_general",
                   out, sizeof out);
    assert_string_equal(out, "Net/layer_17/attn (backward)");
    assert_int_equal(rp_scope_words("jit(f)/add", out, sizeof out), 0);
    assert_int_equal(rp_scope_words("", out, sizeof out), 0);
    rp_scope_words("a/b/c(d/e)/x", out, 6);
    assert_true(strlen(out) < 6);
    assert_true(rp_scope_pattern("a_1/b") == rp_scope_pattern("a_22/b"));
    assert_true(rp_scope_pattern("a_1/b") != rp_scope_pattern("a_1/c"));
    assert_string_equal(rp_scope_join(three, 3, &arena), "net/h_{1,2,7}/a_2");
    rp_ranges_print(values, 6, out, sizeof out);
    assert_string_equal(out, "1-3,5,8,9");
    rp_arena_release(&arena);
}

static void steps_are_explained(void **state)
{
    static const char *const texts[] = {
        "HloModule m\nENTRY e {\n a = f32[4] parameter(0)\n ROOT b = f32[4] negate(a)\n}",
        "HloModule m\nENTRY e {\n z = f32[4] parameter(0)\n ROOT y = f32[4] negate(z)\n}",
        "HloModule m\nENTRY e {\n a = f32[5] parameter(0)\n ROOT b = f32[5] negate(a)\n}",
        ("HloModule m\nENTRY e {\n a = f32[4] parameter(0)\n b = f32[4] negate(a)\n"
         " ROOT c = f32[4] sine(b)\n}")};
    struct rp_program *programs[4];
    struct rp_match_side sides[4];
    struct rp_recompile_graph graphs[4];
    struct rp_recompiles steps = {.rows = {0}};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    for (int i = 0; i < 4; i++) {
        programs[i] = parse(texts[i]);
        assert_ok(rp_match_prepare(programs[i], &arena, &sides[i], &err), &err);
        graphs[i] = (struct rp_recompile_graph){{&sides[i], RP_NONE}, "f", i + 1};
    }
    assert_ok(rp_recompiles_explain(graphs, 4, &arena, &steps, &err), &err);
    assert_int_equal(steps.rows.n, 3);
    assert_string_equal(steps.rows.at[0].cause, "first");
    assert_int_equal(steps.rows.at[0].runs, 2);
    assert_string_equal(steps.rows.at[1].cause, "shape");
    assert_string_equal(steps.rows.at[1].what, "parameter f32[4] -> f32[5]");
    assert_int_equal(steps.rows.at[1].against, 1);
    assert_string_equal(steps.rows.at[2].cause, "structure");
    assert_string_equal(steps.rows.at[2].what, "added sine f32[4]");
    for (int i = 0; i < 4; i++)
        rp_program_free(programs[i]);
    rp_vec_release(&steps.rows);
    rp_arena_release(&arena);
}

static void modules_are_paired(void **state)
{
    struct rp_module_key left[] = {
        {"f", "a/", 1, 0}, {"f", "a/", 2, 0}, {"g", "", 3, 0}, {"h", "", 4, 0}};
    struct rp_module_key right[] = {
        {"f", "b/", 2, 0}, {"f", "b/", 9, 0}, {"gg", "", 3, 0}, {"k", "", 7, 0}};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_module_pair *pairs;
    size_t n;

    UNUSED_STATE(state);
    assert_ok(rp_modules_pair(left, 4, right, 4, &arena, &pairs, &n, &err), &err);
    assert_int_equal(n, 5);
    assert_int_equal(pairs[0].right, 1); /* by name: the other one has its partner */
    assert_int_equal(pairs[1].right, 0); /* by content, in another folder */
    assert_int_equal(pairs[2].right, 2); /* renamed */
    assert_true(pairs[3].right == SIZE_MAX);
    assert_true(pairs[4].left == SIZE_MAX);
    rp_arena_release(&arena);
}

int test_program_place(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_named),
        cmocka_unit_test(shapes_follow),
        cmocka_unit_test(parameters_in_another_order),
        cmocka_unit_test(sharding_is_said),
        cmocka_unit_test(scopes),
        cmocka_unit_test(steps_are_explained),
        cmocka_unit_test(modules_are_paired),
    };

    return cmocka_run_group_tests_name("program_place", tests, NULL, NULL);
}
