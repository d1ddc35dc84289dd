/* SPDX-License-Identifier: Apache-2.0 */
/* Two programs: what counts as a difference, and how it is said. */
#include "explain/graph/graph.h"
#include "explain/program_diff/program_diff.h"
#include "formats/programs.h"
#include "unit.h"

#define HEAD "HloModule m\nENTRY e {\n a = f32[4] parameter(0)\n b = f32[8] parameter(1)\n"
#define BASE                                                                                       \
    HEAD                                                                                           \
        " c = f32[4] negate(a)\n d = f32[4] multiply(c, a)\n s = f32[4] slice(b), slice={[0:4]}\n" \
        " ROOT r = f32[4] add(d, s)\n}"

static struct rp_program *parse(const char *text)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;

    assert_ok(rp_hlo_text_parse(text, strlen(text), NULL, &p, &err), &err);
    return p;
}

/* The changes as "kind what; ..." */
static void compare(const char *a, const char *b, const char *want)
{
    struct rp_program *left = parse(a), *right = parse(b);
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_program_diff diff;
    char got[1000] = "";

    assert_ok(rp_program_diff_compare(left, right, &arena, &diff, &err), &err);
    for (size_t i = 0; i < diff.nchanges; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s %lld %s", i ? "; " : "",
                 diff.changes[i].kind, (long long)diff.changes[i].count, diff.changes[i].what);
    assert_string_equal(got, want);
    assert_int_equal(diff.same, !*want);
    rp_arena_release(&arena);
    rp_program_free(left);
    rp_program_free(right);
}

static void names_and_orders_do_not_count(void **state)
{
    UNUSED_STATE(state);
    compare(BASE, BASE, "");
    compare(BASE,
            "HloModule x\nENTRY f {\n n = f32[8] parameter(0)\n m = f32[4] parameter(1)\n"
            " t = f32[4] slice(n), slice={[0:4]}\n o = f32[4] negate(m)\n"
            " p = f32[4] multiply(o, m)\n ROOT q = f32[4] add(p, t)\n}",
            "");
}

static void changes_are_named(void **state)
{
    UNUSED_STATE(state);
    compare(BASE,
            HEAD " c = f32[4] abs(a)\n d = f32[4] multiply(c, a)\n"
                 " s = f32[4] slice(b), slice={[0:4]}\n ROOT r = f32[4] add(d, s)\n}",
            "opcode 1 negate f32[4] -> abs f32[4]");
    compare(BASE,
            HEAD " c = f32[4] negate(a)\n x = f32[4] exponential(c)\n d = f32[4] multiply(x, a)\n"
                 " s = f32[4] slice(b), slice={[0:4]}\n ROOT r = f32[4] add(d, s)\n}",
            "added 1 exponential f32[4]");
    compare(BASE,
            HEAD " c = f32[4] negate(a)\n d = f32[4] multiply(c, a)\n"
                 " s = f32[4] slice(b), slice={[4:8]}\n ROOT r = f32[4] add(d, s)\n}",
            "attribute 1 slice f32[4]: slice={[0:4]} -> {[4:8]}");
    compare(BASE,
            HEAD " c = f32[4] negate(a)\n d = f32[4] multiply(c, a)\n"
                 " s = f32[4] slice(b), slice={[0:4]}\n ROOT r = f32[4] add(s, d)\n}",
            "operands 1 add f32[4]");
}

/* One more of an opcode that is all around it. */
static void what_was_put_in_is_found(void **state)
{
    UNUSED_STATE(state);
    compare(HEAD " k = f32[4] slice(b), slice={[0:4]}\n h = f32[4] negate(a)\n"
                 " u = f32[4] multiply(h, h)\n v = f32[4] multiply(u, h)\n"
                 " w = f32[4] multiply(v, k)\n ROOT r = f32[4] multiply(w, u)\n}",
            HEAD " k = f32[4] slice(b), slice={[0:4]}\n h = f32[4] negate(a)\n"
                 " n = f32[4] multiply(h, k)\n"
                 " u = f32[4] multiply(n, n)\n v = f32[4] multiply(u, n)\n"
                 " w = f32[4] multiply(v, k)\n ROOT r = f32[4] multiply(w, u)\n}",
            "added 1 multiply f32[4]");
}

static void dead_computations_count(void **state)
{
    UNUSED_STATE(state);
    compare("f { ROOT x = f32[] constant(1) }\n" BASE, "f { ROOT x = f32[] constant(2) }\n" BASE,
            "constant 1 constant f32[] 1 -> 2");
}

static void lists(void **state)
{
    struct rp_program *p = parse(BASE);
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_listing near = {0}, path = {0}, grep = {0}, tree = {0};

    UNUSED_STATE(state);
    assert_ok(rp_list_near(p, "%d", 1, &arena, &near, &err), &err);
    assert_int_equal(near.n, 4);
    assert_string_equal(near.lines[2], "> %d = f32[4] multiply(%c, %a)");
    assert_ok(rp_list_path(p, "a,r", &arena, &path, &err), &err);
    assert_int_equal(path.n, 3);
    assert_ok(rp_list_grep(p, "op=slice shape~f32", &arena, &grep, &err), &err);
    assert_int_equal(grep.n, 1);
    assert_ok(rp_list_tree(p, &arena, &tree, &err), &err);
    assert_contains(tree.lines[0], "e: 6 operations");
    assert_code(rp_list_near(p, "dd", 1, &arena, &near, &err), RP_USAGE);
    assert_contains(err.text, "did you mean");
    assert_code(rp_list_path(p, "r,a", &arena, &path, &err), RP_USAGE);
    assert_code(rp_list_grep(p, "opp=x", &arena, &grep, &err), RP_USAGE);
    rp_arena_release(&arena);
    rp_program_free(p);
}

int test_program_diff(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_orders_do_not_count),
        cmocka_unit_test(changes_are_named),
        cmocka_unit_test(what_was_put_in_is_found),
        cmocka_unit_test(dead_computations_count),
        cmocka_unit_test(lists),
    };

    return cmocka_run_group_tests_name("program_diff", tests, NULL, NULL);
}
