/* SPDX-License-Identifier: Apache-2.0 */
/* What the structural hash sees, and what it does not: every attribute, every way to rewrite. */
#include "formats/programs.h"
#include "program/opcodes.h"
#include "program/structure.h"
#include "unit.h"

#include <stdio.h>

static uint64_t hash_of(const struct rp_program *p)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_hashes hashes;

    assert_ok(rp_program_hash(p, &arena, &hashes, &err), &err);
    rp_arena_release(&arena);
    return hashes.program;
}

static uint64_t hash_text(const char *text)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;
    uint64_t hash;

    assert_ok(rp_hlo_text_parse(text, strlen(text), NULL, &p, &err), &err);
    hash = hash_of(p);
    rp_program_free(p);
    return hash;
}

/* ---- attributes ---- */

/* A parameter and one operation on it, with an attribute (value NULL: without). */
static uint64_t hash_with(enum rp_opcode code, const char *key, const char *value)
{
    struct rp_new_op op = {.code = RP_OP_PARAMETER};
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;
    uint32_t id, name, made;
    uint64_t hash;

    assert_ok(rp_program_new("hlo", &p, &err), &err);
    assert_ok(rp_program_string(p, "main", 4, &name, &err), &err);
    assert_ok(rp_program_begin(p, name, &id, &err), &err);
    assert_ok(rp_program_add_op(p, &op, &made, &err), &err);
    op.code = code;
    assert_ok(rp_program_add_op(p, &op, &made, &err), &err);
    assert_ok(rp_program_add_operand(p, 0, 0, &err), &err);
    assert_ok(rp_program_string(p, key, strlen(key), &id, &err), &err);
    if (value)
        assert_ok(rp_program_add_attr(p, rp_attr_parse(p, id, value, strlen(value)), &err), &err);
    assert_ok(rp_program_finish(p, &err), &err);
    hash = hash_of(p);
    rp_program_free(p);
    return hash;
}

enum { QUIET = RP_ATTRF_QUIET, ZERO = RP_ATTRF_ZERO, ONE = RP_ATTRF_ONE };
static const struct {
    const char *key;
    enum rp_value_type type;
    int flags;
} known[] = {
#define RP_ATTR(id, key, type, field, inner, flags) {key, RP_VALUE_##type, flags},
#include "program/attrs.def"
#undef RP_ATTR
    {"an_attribute_of_next_year", RP_VALUE_TEXT, 0},
    {"_note_of_tensorflow", RP_VALUE_TEXT, QUIET},
};

/* Two values of each type, the first written otherwise, and one that says nothing. */
static const struct {
    const char *one, *two, *same, *nothing;
} samples[] = {
    [RP_VALUE_TEXT] = {"{1}", "{2}", "{/*index=0*/ 1 }", "{}"},
    [RP_VALUE_WIRE] = {"{1}", "{2}", "{ 1 }", "{}"},
    [RP_VALUE_FLAG] = {"true", "TRUE", "true ", "false"},
    [RP_VALUE_INT] = {"3", "4", "{3}", NULL},
    [RP_VALUE_FLOAT] = {"0.5", "0.25", "5e-1", NULL},
    [RP_VALUE_WORD] = {"LT", "GT", "\"LT\"", NULL},
    [RP_VALUE_STRING] = {"\"a b\"", "\"b\"", "\"a\\x20b\"", NULL},
    [RP_VALUE_CONFIG] = {"{\"a\":1}", "{\"a\":2}", "\"{\\\"a\\\":1}\"", "{}"},
    [RP_VALUE_INTS] = {"{1,0}", "{0,1}", "{ 1, 0 }", "{}"},
    [RP_VALUE_PAIRS] = {"{{0,1}}", "{{1,0}}", "{ {0, 1} }", "{}"},
    [RP_VALUE_SLICES] = {"{[0:4]}", "{[0:4:2]}", "{[0:4:1]}", "{}"},
    [RP_VALUE_PADDING] = {"0_1", "0_1_1", "0_1_0", NULL},
    [RP_VALUE_CONV_DIMS] = {"b0f_0io->b0f", "b0f_0oi->b0f", "b0f_0io->b0f", NULL},
    [RP_VALUE_WORDS] = {"{high,high}", "{high,default}", "{ high, high }", "{}"},
    [RP_VALUE_MAP] = {"{a=\"1\"}", "{a=\"2\"}", "{ a=\"1\" }", "{}"},
    [RP_VALUE_WINDOW] = {"{size=3}", "{size=3 stride=2}", "{size=3 stride=1}", "{}"},
    [RP_VALUE_GROUPS] = {"{{0,1}}", "[1,2]<=[2]", "{ {0, 1} }", "{}"},
    [RP_VALUE_ALIASES] = {"{{0}: (1, {})}", "{{1}: (1, {})}", "{ {0}: ( 1, {} ) }", "{}"},
    [RP_VALUE_SHARDING] = {"{replicated}", "{manual}", "{ replicated }", NULL},
    [RP_VALUE_OPS] = {"{%a}", "{%b}", "{ %a }", "{}"},
    [RP_VALUE_SHAPES] = {"{f32[2]}", "{f32[3]}", "{ f32[2] }", "{}"},
};

/* Every part of a sharding that means something. */
static void shardings_differ(void **state)
{
    static const char *const all[] = {"{replicated}",
                                      "{manual}",
                                      "{maximal device=3}",
                                      "{maximal device=4}",
                                      "{devices=[2,1]0,1}",
                                      "{devices=[2,1]1,0}",
                                      "{devices=[1,2]0,1}",
                                      "{devices=[2,2]<=[4]}",
                                      "{devices=[2,2]<=[2,2]T(1,0)}",
                                      "{devices=[2,2]<=[4] last_tile_dim_replicate}",
                                      "{devices=[2,2]<=[4] last_tile_dims={manual}}",
                                      "{devices=[2,2]<=[4] shard_as 1}",
                                      "{devices=[2,2]<=[4] shard_as 2}",
                                      "{devices=[2,2]<=[4] shard_like 1}",
                                      "{{replicated}, {manual}}",
                                      "{{manual}, {replicated}}"};
    enum { N = sizeof all / sizeof *all };
    struct rp_program *p;
    uint64_t hash[N];

    UNUSED_STATE(state);
    assert_code(rp_program_new("hlo", &p, NULL), RP_OK);
    for (size_t i = 0; i < N; i++) {
        struct rp_attr attr = rp_attr_parse(p, RP_ATTR_SHARDING, all[i], strlen(all[i]));

        assert_int_equal(attr.type, RP_VALUE_SHARDING);
        hash[i] = rp_attr_hash(p, &attr);
        for (size_t k = 0; k < i; k++)
            if (hash[i] == hash[k])
                fail_msg("'%s' and '%s' have the same hash", all[i], all[k]);
    }
    rp_program_free(p);
}

static void every_attribute(void **state)
{
    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *key = known[i].key, *nothing = samples[known[i].type].nothing;
        uint64_t none = hash_with(RP_OP_NEGATE, key, NULL);
        uint64_t one = hash_with(RP_OP_NEGATE, key, samples[known[i].type].one);
        uint64_t two = hash_with(RP_OP_NEGATE, key, samples[known[i].type].two);

        if (known[i].flags & QUIET) {
            assert_true(none == one && one == two);
            continue;
        }
        assert_true(none != one);
        assert_int_equal(one != two, strcmp(key, "ROOT") != 0);
        if (one != hash_with(RP_OP_NEGATE, key, samples[known[i].type].same))
            fail_msg("%s=%s is not %s", key, samples[known[i].type].one,
                     samples[known[i].type].same);
        if (nothing && none != hash_with(RP_OP_NEGATE, key, nothing))
            fail_msg("%s=%s says something", key, nothing);
        if (strcmp(key, "ROOT") == 0 || known[i].type == RP_VALUE_WORD)
            continue;
        assert_int_equal(none == hash_with(RP_OP_NEGATE, key, "0"), !!(known[i].flags & ZERO));
        assert_int_equal(none == hash_with(RP_OP_NEGATE, key, "1"), !!(known[i].flags & ONE));
    }
    assert_true(hash_with(RP_OP_CUSTOM_CALL, "backend_config", "{1}") !=
                hash_with(RP_OP_CUSTOM_CALL, "backend_config", "{2}"));
}

/* Protobuf writes a member with its default value, or leaves it out; the order is free. */
static void configs_are_compared_by_content(void **state)
{
    static const char *const same[] = {
        "{\"a\":1,\"b\":{\"c\":[0,\"x\"]}}",
        "{ \"b\" : {\"c\": [0, \"x\"], \"d\": []}, \"a\": 1 }",
        "{\"queue\":\"0\",\"wait\":[],\"a\":1,\"e\":{\"f\":0.0},\"b\":{\"c\":[0,\"x\"]}}",
        "{\"force\":false,\"a\":1,\"b\":{\"c\":[0,\"x\"]},\"g\":\"\",\"h\":null}",
    };
    static const char *const other[] = {
        "{\"a\":2,\"b\":{\"c\":[0,\"x\"]}}", "{\"a\":1,\"b\":{\"c\":[\"x\",0]}}",
        "{\"a\":1,\"b\":{\"c\":[\"x\"]}}",   "{\"b\":1,\"a\":{\"c\":[0,\"x\"]}}",
        "{\"a\":1,\"b\":{\"c\":[0,\"x\"]",   "{\"a\":1}",
    };
    uint64_t want = hash_with(RP_OP_CUSTOM_CALL, "backend_config", same[0]);

    UNUSED_STATE(state);
    for (size_t i = 1; i < sizeof same / sizeof *same; i++)
        assert_true(hash_with(RP_OP_CUSTOM_CALL, "backend_config", same[i]) == want);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (hash_with(RP_OP_CUSTOM_CALL, "backend_config", other[i]) == want)
            fail_msg("%s is not %s", other[i], same[0]);
    assert_true(hash_with(RP_OP_CUSTOM_CALL, "backend_config", "{\"a\":0,\"b\":{}}") ==
                hash_with(RP_OP_CUSTOM_CALL, "backend_config", NULL));
}

static void attributes_are_not_confused(void **state)
{
    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (size_t k = 0; k < i; k++)
            if (!(known[i].flags & QUIET) && !(known[k].flags & QUIET))
                assert_true(hash_with(RP_OP_NEGATE, known[i].key, samples[known[i].type].one) !=
                            hash_with(RP_OP_NEGATE, known[k].key, samples[known[k].type].one));
}

/* ---- rewriting ---- */

#define ADD \
    "add {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] add(x, y)\n}\n"
#define MAX \
    "max {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] maximum(x, y)\n}\n"
#define BODY                                                                                       \
    "ENTRY e {\n p = f32[4,8] parameter(0)\n q = f32[8,4] parameter(1)\n"                          \
    " z = f32[] constant(0)\n"                                                                     \
    " d = f32[4,4] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"                \
    " r = f32[4] reduce(d, z), dimensions={0}, to_apply=add\n"                                     \
    " m = f32[4] reduce(d, z), dimensions={1}, to_apply=max\n ROOT t = (f32[4], f32[4]) tuple(r, " \
    "m)\n}\n"
#define BASE "HloModule a\n" ADD MAX BODY

static void rewriting_changes_nothing(void **state)
{
    static const char *const same[] = {
        "HloModule other\n" MAX ADD BODY, /* computations in another order */
        "HloModule a\nk1 {\n b = f32[] parameter(1)\n a = f32[] parameter(0)\n ROOT c = f32[] add(a, "
        "b)\n}\nk2 {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] maximum(a, "
        "b)\n}\nENTRY k3 {\n n0 = f32[] constant(0)\n n1 = f32[8,4] parameter(1)\n"
        " n2 = f32[4,8] parameter(0)\n"
        " n3 = f32[4,4] dot(n2, n1), rhs_contracting_dims={0}, lhs_contracting_dims={1}\n"
        " n5 = f32[4] reduce(n3, n0), dimensions={1}, to_apply=k2\n"
        " n4 = f32[4] reduce(n3, n0), to_apply=k1, dimensions={0}\n"
        " ROOT n6 = (f32[4], f32[4]) tuple(n4, n5)\n}\n",
        "HloModule a\n" ADD MAX
        "ENTRY e {\n p = f32[4,8]{1,0} parameter(0), metadata={op_name=\"x\" source_file=\"f.py\" "
        "source_line=3}, sharding={replicated}\n q = f32[8,4]{1,0} parameter(1)\n"
        " z = f32[] constant(0.0)\n"
        " d = f32[4,4]{1,0} dot(f32[4,8]{1,0} p, f32[8,4]{1,0} q), lhs_contracting_dims={1}, "
        "rhs_contracting_dims={0}, frontend_attributes={a=\"1\"}, backend_config={\"x\":1}\n"
        " r = f32[4]{0} reduce(d, z), dimensions={0}, to_apply=add\n"
        " m = f32[4]{0} reduce(d, z), dimensions={1}, to_apply=max\n"
        " ROOT t = (f32[4]{0}, f32[4]{0}) tuple(r, m)\n}\n"};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        assert_true(hash_text(same[i]) == hash_text(BASE));
}

/* One edit of the base: where `from` stands, `to` comes in. */
static void edited(char *out, size_t cap, const char *from, const char *to)
{
    const char *at = strstr(BASE, from);

    assert_non_null(at);
    snprintf(out, cap, "%.*s%s%s", (int)(at - BASE), BASE, to, at + strlen(from));
}

static void every_edit_changes_it(void **state)
{
    static const char *const edits[][2] = {
        {"f32[] add(x", "f32[] multiply(x"},                     /* inside of what is called */
        {"maximum(x, y)", "maximum(y, x)"},                      /* order of operands */
        {"constant(0)", "constant(1)"},                          /* a value */
        {"f32[4,8] parameter(0)", "f16[4,8] parameter(0)"},      /* a type */
        {"f32[8,4] parameter(1)", "f32[8,4]{0,1} parameter(1)"}, /* a layout */
        {"lhs_contracting_dims={1}", "lhs_contracting_dims={0}"},
        {"dimensions={0}, to_apply=add", "dimensions={0}, to_apply=max"},
        {"dimensions={0}, to_apply=add", "dimensions={1}, to_apply=add"},
        {"tuple(r, m)", "tuple(m, r)"},
        {"tuple(r, m)", "tuple(r, r)"},
        {"f32[4,4] dot", "f32[2,8] dot"},
        {" z = f32[] constant(0)\n", " z = f32[] constant(0)\n w = f32[] negate(z)\n"}, /* dead */
        {"ROOT t", "t"}};
    uint64_t hashes[sizeof edits / sizeof *edits], base = hash_text(BASE);
    char text[2000];
    size_t n = sizeof edits / sizeof *edits - 1; /* the last: the root is the last one anyway */

    UNUSED_STATE(state);
    for (size_t i = 0; i < n; i++) {
        edited(text, sizeof text, edits[i][0], edits[i][1]);
        hashes[i] = hash_text(text);
        assert_true(hashes[i] != base);
        for (size_t k = 0; k < i; k++)
            assert_true(hashes[i] != hashes[k]);
    }
    edited(text, sizeof text, edits[n][0], edits[n][1]);
    assert_true(hash_text(text) == base);
}

static void windows_and_labels_count(void **state)
{
    static const char *const convs[] = {
        "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
        "window={size=3x3 stride=1x2 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
        "window={size=3x3 pad=1_1x0_2}, dim_labels=b01f_01io->b01f",
        "window={size=3x3 pad=1_1x1_1 lhs_dilate=2x1}, dim_labels=b01f_01io->b01f",
        "window={size=3x3 pad=1_1x1_1 rhs_dilate=2x1}, dim_labels=b01f_01io->b01f",
        "window={size=3x3 pad=1_1x1_1 rhs_reversal=1x1}, dim_labels=b01f_01io->b01f",
        "window={size=3x3 pad=1_1x1_1}, dim_labels=b10f_01io->b01f",
        "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=2",
        "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, batch_group_count=2",
        "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, operand_precision={high,high}"};
    uint64_t hashes[sizeof convs / sizeof *convs];

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof convs / sizeof *convs; i++) {
        char text[600];

        snprintf(text, sizeof text,
                 "HloModule c\nENTRY e {\n a = f32[2,8,8,4] parameter(0)\n w = f32[3,3,4,4] "
                 "parameter(1)\n ROOT c = f32[2,8,8,4] convolution(a, w), %s\n}\n",
                 convs[i]);
        hashes[i] = hash_text(text);
        for (size_t k = 0; k < i; k++)
            assert_true(hashes[i] != hashes[k]);
    }
}

int test_program_hash(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shardings_differ),
        cmocka_unit_test(every_attribute),
        cmocka_unit_test(configs_are_compared_by_content),
        cmocka_unit_test(attributes_are_not_confused),
        cmocka_unit_test(rewriting_changes_nothing),
        cmocka_unit_test(every_edit_changes_it),
        cmocka_unit_test(windows_and_labels_count),
    };

    return cmocka_run_group_tests_name("program_hash", tests, NULL, NULL);
}
