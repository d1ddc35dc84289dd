/* SPDX-License-Identifier: Apache-2.0 */
/* Groups, stacks of layers, unions of programs, and files for other viewers. */
#include "draw/draw.h"
#include "draw/picture_open.h"
#include "draw/stages.h"
#include "formats/programs.h"
#include "io/output.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

static struct rp_program *parse(const char *text)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;

    assert_ok(rp_hlo_text_parse(text, strlen(text), NULL, &p, &err), &err);
    return p;
}

/* A tower of n equal layers; `scoped`: with names of the framework. */
static char *tower(int n, bool scoped)
{
    char *text = malloc((size_t)n * 1200 + 400), *to = text;
    char scope[80] = "";

    assert_non_null(text);
    to += sprintf(to, "HloModule tower\nENTRY main {\n x0 = f32[8] parameter(0)\n");
    for (int i = 0; i < n; i++) {
        static const char *const names[] = {"tanh", "exponential", "negate", "sine"};

        for (int k = 0; k < 4; k++) {
            if (scoped)
                snprintf(scope, sizeof scope, ", metadata={op_name=\"net/layer_%d/%s\"}", i,
                         names[k]);
            if (k)
                to +=
                    sprintf(to, " v%d_%d = f32[8] %s(v%d_%d)%s\n", i, k, names[k], i, k - 1, scope);
            else
                to += sprintf(to, " v%d_0 = f32[8] tanh(x%d)%s\n", i, i, scope);
        }
        to += sprintf(to, " x%d = f32[8] add(v%d_3, x%d)%s\n", i + 1, i, i, scope);
    }
    sprintf(to, " ROOT out = (f32[8]) tuple(x%d)\n}\n", n);
    return text;
}

static uint32_t count_kind(const struct rp_tree *t, enum rp_group_kind kind)
{
    uint32_t n = 0;

    for (uint32_t g = 0; g < t->ngroups; g++)
        n += t->groups[g].kind == kind;
    return n;
}

/* Every operation is once in the tree, and sums agree. */
static void check_tree(const struct rp_tree *t)
{
    uint32_t *seen = calloc((size_t)t->p->nops + t->ngroups + 1, sizeof *seen), ops = 0;

    assert_non_null(seen);
    for (uint32_t g = 0; g < t->ngroups; g++) {
        ops += t->groups[g].parent == RP_NONE ? t->groups[g].ops : 0;
        assert_true(t->groups[g].same <= g);
        assert_int_equal(t->groups[g].n, t->groups[t->groups[g].same].n);
        for (uint32_t i = 0; i < t->groups[g].n; i++) {
            uint32_t child = t->children[t->groups[g].first + i];

            assert_int_equal(seen[child]++, 0);
            assert_int_equal(t->index[child], i);
            if (child >= t->p->nops)
                assert_int_equal(t->groups[child - t->p->nops].parent, g);
            else
                assert_int_equal(t->home[child], g);
        }
    }
    assert_int_equal(ops, t->p->nops);
    free(seen);
}

static void picture_of(const char *text, struct rp_arena *arena, struct rp_program **p,
                       struct rp_picture *picture)
{
    struct rp_err err = RP_ERR_INIT;

    *p = parse(text);
    assert_ok(rp_picture_make(*p, arena, picture, &err), &err);
    check_tree(&picture->tree);
}

static void layers_are_found(void **state)
{
    UNUSED_STATE(state);
    for (int scoped = 0; scoped < 2; scoped++) {
        struct rp_arena arena = RP_ARENA_INIT;
        struct rp_picture picture;
        struct rp_program *p;
        char *text = tower(20, scoped);
        uint32_t stack = 0;

        picture_of(text, &arena, &p, &picture);
        while (stack < picture.tree.ngroups && picture.tree.groups[stack].kind != RP_GROUP_REPEAT)
            stack++;
        assert_true(stack < picture.tree.ngroups);
        assert_in_range(picture.tree.groups[stack].n, 19, 20);
        assert_int_equal(count_kind(&picture.tree, RP_GROUP_REPEAT), 1);
        if (scoped) {
            assert_int_equal(count_kind(&picture.tree, RP_GROUP_LAYER), 0);
            assert_string_equal(picture.tree.groups[stack].name, "layer_1 … layer_19");
        }
        rp_program_free(p);
        rp_arena_release(&arena);
        free(text);
    }
}

/* Many operations that do not repeat. */
static void large_groups_are_divided(void **state)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_picture picture;
    struct rp_program *p;
    char *text = malloc(200000), *to = text;
    unsigned seed = 7;

    UNUSED_STATE(state);
    assert_non_null(text);
    to += sprintf(to, "HloModule m\nENTRY e {\n v0 = f32[1] parameter(0)\n");
    for (unsigned i = 1; i < 2000; i++) {
        seed = seed * 1664525 + 1013904223;
        to += sprintf(to, " v%u = f32[%u] custom-call(v%u), custom_call_target=\"t%u\"\n", i, i,
                      (seed >> 8) % i, seed >> 16);
    }
    sprintf(to, " ROOT r = f32[1] negate(v0)\n}\n");
    picture_of(text, &arena, &p, &picture);
    for (uint32_t g = 0; g < picture.tree.ngroups; g++)
        assert_true(picture.tree.groups[g].n <= 300);
    assert_true(count_kind(&picture.tree, RP_GROUP_PART) > 5);
    rp_program_free(p);
    rp_arena_release(&arena);
    free(text);
}

static void open_groups_do_not_overlap(void **state)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_picture picture;
    struct rp_opened *opened;
    struct rp_program *p;
    char *text = tower(12, true);
    bool *open;
    uint32_t root;

    UNUSED_STATE(state);
    picture_of(text, &arena, &p, &picture);
    root = picture.tree.root[p->entry];
    assert_ok(rp_picture_choose(&picture, root, 1000, &arena, &open, &err), &err);
    memset(open, 1, (size_t)p->nops + picture.tree.ngroups);
    assert_ok(rp_picture_open(&picture, root, open, &arena, &opened, &err), &err);
    for (uint32_t g = 0; g < picture.tree.ngroups; g++)
        for (uint32_t a = 0; a < picture.tree.groups[g].n; a++)
            for (uint32_t b = 0; b < a; b++) {
                const struct rp_opened *o = &opened[g];

                assert_true(o->x[a] + o->w[a] <= o->x[b] || o->x[b] + o->w[b] <= o->x[a] ||
                            o->y[a] + o->h[a] <= o->y[b] || o->y[b] + o->h[b] <= o->y[a]);
            }
    rp_program_free(p);
    rp_arena_release(&arena);
    free(text);
}

/* ---- unions ---- */

static void unions_know_their_stages(void **state)
{
    struct rp_program *a = parse("HloModule m\nENTRY e {\n x = f32[4] parameter(0)\n"
                                 " y = f32[4] negate(x)\n ROOT z = f32[4] tanh(y)\n}\n");
    struct rp_program *b = parse("HloModule m\nENTRY e.2 {\n x = f32[4] parameter(0)\n"
                                 " w = f32[4] sine(x)\n ROOT z = f32[4] tanh(w)\n}\n");
    struct rp_stage stages[] = {{a, "before", NULL}, {b, "after", NULL}};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_stages u;
    static const char *const names[] = {"x", "w", "y", "z"};
    static const unsigned sets[] = {3, 2, 1, 3};

    UNUSED_STATE(state);
    assert_ok(rp_stages_make(stages, 2, false, &arena, &u, &err), &err);
    assert_int_equal(u.p->nops, 4);
    assert_int_equal(u.p->computations.n, 1); /* an entry is an entry */
    for (uint32_t op = 0; op < 4; op++) {
        assert_string_equal(rp_program_text(u.p, u.p->op_name.at[op]), names[op]);
        assert_int_equal(u.ops[op], sets[op]);
    }
    assert_int_equal(rp_op_operands(u.p, 3).n, 2);
    assert_int_equal(u.operands[u.p->operand_begin.at[3]], 2); /* that of the last stage first */
    assert_int_equal(u.operands[u.p->operand_begin.at[3] + 1], 1);
    rp_stages_release(&u);
    rp_arena_release(&arena);
    rp_program_free(a);
    rp_program_free(b);
}

/* ---- files ---- */

static char *written(enum rp_code (*draw)(const struct rp_program *, struct rp_out *,
                                          struct rp_err *),
                     const struct rp_program *p, size_t *n)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_out *to;
    const char *at;
    char *copy;

    assert_ok(rp_out_open_memory(&to, &err), &err);
    assert_ok(draw(p, to, &err), &err);
    at = rp_out_borrow_memory(to, n);
    copy = calloc(1, *n + 1);
    assert_non_null(copy);
    memcpy(copy, at, *n);
    assert_ok(rp_out_close(to, &err), &err);
    return copy;
}

static void viewers_get_their_files(void **state)
{
    /* how every events file of TensorFlow begins: the length of the first record, its checksum */
    static const unsigned char head[] = {0x18, 0, 0, 0, 0, 0, 0, 0, 0xa3, 0x7f, 0x4b, 0x22};
    struct rp_program *p =
        parse("HloModule m\nENTRY e {\n x = f32[4] parameter(0)\n"
              " ROOT y = f32[4] negate(x), metadata={op_name=\"a/<b>\" source_file=\"m.py\" "
              "source_line=3}\n}\n");
    struct rp_err err = RP_ERR_INIT;
    size_t n;
    char *text;

    UNUSED_STATE(state);
    assert_ok(rp_program_string(p, "y</svg>", 7, &p->op_name.at[1], &err), &err);
    text = written(rp_draw_model_explorer, p, &n);
    assert_contains(
        text,
        "{\"label\":\"m\",\"graphs\":[{\"id\":\"m\",\"nodes\":[{\"id\":\"0\",\"label\":\"parameter\"");
    assert_contains(text, "\"incomingEdges\":[{\"sourceNodeId\":\"0\"");
    assert_contains(text, "{\"key\":\"source\",\"value\":\"m.py:3\"}");
    free(text);
    text = written(rp_draw_tensorboard, p, &n);
    assert_memory_equal(text, head, sizeof head);
    assert_memory_equal(text + 23, "brain.Event:2", 13);
    free(text);
    text = written(rp_draw_program_svg, p, &n);
    assert_contains(text, "y&lt;/svg&gt;");
    assert_null(strstr(strstr(text, "</svg>") + 1, "</svg>"));
    free(text);
    rp_program_free(p);
}

int test_picture(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_found),           cmocka_unit_test(large_groups_are_divided),
        cmocka_unit_test(open_groups_do_not_overlap), cmocka_unit_test(unions_know_their_stages),
        cmocka_unit_test(viewers_get_their_files),
    };

    return cmocka_run_group_tests_name("picture", tests, NULL, NULL);
}
