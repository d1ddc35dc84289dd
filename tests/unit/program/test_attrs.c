/* SPDX-License-Identifier: Apache-2.0 */
/* Values of attributes: parsed from text, printed in one way, and raw text where they are none. */
#include "unit.h"

#include "program/opcodes.h"
#include "program/program.h"
#include "program/window.h"

static struct rp_attr parse(struct rp_program *p, uint32_t key, const char *text)
{
    return rp_attr_parse(p, key, text, strlen(text));
}

static const struct {
    uint32_t key;
    const char *text, *printed; /* NULL: as it was */
} values[] = {
    {RP_ATTR_IS_STABLE, "true", NULL},
    {RP_ATTR_IS_STABLE, "false", NULL},
    {RP_ATTR_CHANNEL_ID, "7", NULL},
    {RP_ATTR_CHANNEL_ID, "-9223372036854775807", NULL},
    {RP_ATTR_EPSILON, "0.001", NULL},
    {RP_ATTR_EPSILON, "1.00000e-3", "0.001"},
    {RP_ATTR_EPSILON, "0.123456789", NULL}, /* as many digits as a float needs */
    {RP_ATTR_DIRECTION, "LT", NULL},
    {RP_ATTR_CUSTOM_CALL_TARGET, "\"a\\\"b\\\\c\"", NULL},
    {RP_ATTR_CUSTOM_CALL_TARGET, "\"\\x41\\n\"", "\"A\\n\""},
    {RP_ATTR_CUSTOM_CALL_TARGET, "bare", "\"bare\""},
    {RP_ATTR_BACKEND_CONFIG, "{\"a\":{\"b\":[1,2]}}", NULL},
    {RP_ATTR_BACKEND_CONFIG, "\"{\\\"a\\\":1}\"", "{\"a\":1}"},
    {RP_ATTR_BACKEND_CONFIG, "\"not json\"", NULL},
    {RP_ATTR_DIMENSIONS, "{}", NULL},
    {RP_ATTR_DIMENSIONS, "{ 1, /*index=1*/ 0 }", "{1,0}"},
    {RP_ATTR_DIMENSIONS, "3", "{3}"},
    {RP_ATTR_SOURCE_TARGET_PAIRS, "{{0,1},{1,0}}", NULL},
    {RP_ATTR_SLICE, "{[0:4], [2:8]}", NULL},
    {RP_ATTR_SLICE, "{[0:4], [2:8:2]}", "{[0:4:1], [2:8:2]}"},
    {RP_ATTR_PADDING, "0_1x-2_3", NULL},
    {RP_ATTR_PADDING, "0_1x2_3_1", "0_1_0x2_3_1"},
    {RP_ATTR_DIM_LABELS, "b01f_01io->b01f", NULL},
    {RP_ATTR_DIM_LABELS, "bf_io->bf", NULL},
    {RP_ATTR_OPERAND_PRECISION, "{default,highest}", NULL},
    {RP_ATTR_FRONTEND_ATTRIBUTES, "{a=\"x,y}\",b.c={\"k\": \"}\"}}", NULL},
    {RP_ATTR_WINDOW, "{size=3x3 stride=2x2 pad=0_1x0_1 rhs_reversal=1x0}", NULL},
    {RP_ATTR_WINDOW, "{size=3x3 stride=1x1}", "{size=3x3}"},
    {RP_ATTR_REPLICA_GROUPS, "{}", NULL},
    {RP_ATTR_REPLICA_GROUPS, "{{0, 2}, {}, {3}}", "{{0,2},{},{3}}"},
    {RP_ATTR_REPLICA_GROUPS, "[2,4]<=[4,2]T(1,0)", NULL},
    {RP_ATTR_REPLICA_GROUPS, "[1,8]<=[8]", NULL},
    {RP_ATTR_REPLICA_GROUPS, "mesh['a'=2,'b'=4] {'b'}", NULL},
    {RP_ATTR_REPLICA_GROUPS, "mesh['a'=8], device_ids=([2,4]T(1,0)) {'a':(2)4}", NULL},
    {RP_ATTR_REPLICA_GROUPS, "mesh[\"a\"=2], device_ids=(1,0) {\"a\"}",
     "mesh['a'=2], device_ids=(1,0) {'a'}"},
    {RP_ATTR_OUTPUT_TO_OPERAND_ALIASING, "{{0}: (1, {}), {1}: (2, {0,1})}", NULL},
    {RP_ATTR_INPUT_OUTPUT_ALIAS, "{ {0}: (0, {}, may-alias), {}: (2, {1}, must-alias) }", NULL},
    {RP_ATTR_SHARDING, "{replicated}", NULL},
    {RP_ATTR_SHARDING, "{maximal device=3}", NULL},
    {RP_ATTR_SHARDING, "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}", NULL},
    {RP_ATTR_SHARDING, "{devices=[2,1]0,1 shard_as 7}", NULL},
    {RP_ATTR_SHARDING, "{devices=[2,2]<=[4] last_tile_dims={manual, replicated} shard_like 1}",
     NULL},
    {RP_ATTR_SHARDING, "{{replicated}, /*index=1*/{{manual}}}", "{{replicated}, {{manual}}}"},
};

static void values_print_in_one_way(void **state)
{
    struct rp_program *p;

    UNUSED_STATE(state);
    assert_code(rp_program_new("hlo", &p, NULL), RP_OK);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const char *want = values[i].printed ? values[i].printed : values[i].text, *have;
        struct rp_attr attr = parse(p, values[i].key, values[i].text), again;

        if (attr.type != rp_attr_type(values[i].key))
            fail_msg("'%s' is not a value", values[i].text);
        have = rp_attr_text(p, &attr, &p->arena);
        assert_string_equal(have, want);
        again = parse(p, values[i].key, have);
        assert_int_equal(again.type, attr.type);
        assert_string_equal(rp_attr_text(p, &again, &p->arena), want);
    }
    assert_code(rp_arena_check(&p->arena, "testing", NULL), RP_OK);
    rp_program_free(p);
}

static void what_is_no_value_stays_text(void **state)
{
    static const struct {
        uint32_t key;
        const char *text;
    } bad[] = {
        {RP_ATTR_IS_STABLE, "yes"},
        {RP_ATTR_CHANNEL_ID, "9223372036854775808"},
        {RP_ATTR_CHANNEL_ID, "1x"},
        {RP_ATTR_CHANNEL_ID, "{1"},
        {RP_ATTR_EPSILON, "small"},
        {RP_ATTR_CUSTOM_CALL_TARGET, "\"open"},
        {RP_ATTR_DIMENSIONS, "{1,"},
        {RP_ATTR_DIMENSIONS, "{1}}"},
        {RP_ATTR_DIMENSIONS, "{a}"},
        {RP_ATTR_DIMENSIONS, "{/*"},
        {RP_ATTR_SOURCE_TARGET_PAIRS, "{{0}}"},
        {RP_ATTR_SOURCE_TARGET_PAIRS, "{{0,1,2}}"},
        {RP_ATTR_SLICE, "{[0]}"},
        {RP_ATTR_PADDING, "0_1x"},
        {RP_ATTR_DIM_LABELS, "b01f_01io"},
        {RP_ATTR_DIM_LABELS, "b?f_0io->b0f"},
        {RP_ATTR_OPERAND_PRECISION, "{high"},
        {RP_ATTR_FRONTEND_ATTRIBUTES, "{a=1}"},
        {RP_ATTR_FRONTEND_ATTRIBUTES, "{a={\"\\"},
        {RP_ATTR_WINDOW, "{size=3 depth=1}"},
        {RP_ATTR_REPLICA_GROUPS, "{0,1}"},
        {RP_ATTR_REPLICA_GROUPS, "[-1,2]<=[2]"},
        {RP_ATTR_REPLICA_GROUPS, "[1,2]<=[2]T(0"},
        {RP_ATTR_REPLICA_GROUPS, "mesh['a'=2] {'b'}"},
        {RP_ATTR_REPLICA_GROUPS, "mesh['a"},
        {RP_ATTR_INPUT_OUTPUT_ALIAS, "{ {0}: 0 }"},
        {RP_ATTR_SHARDING, "{}"},
        {RP_ATTR_SHARDING, "{devices=[2,1}"},
        {RP_ATTR_SHARDING, "{devices=[2,1 0,1}"},
        {RP_ATTR_SHARDING, "{devices=[a]0,1}"},
        {RP_ATTR_SHARDING, "{devices=[2]0,}"},
        {RP_ATTR_SHARDING, "{devices=[2]<=[2}"},
        {RP_ATTR_SHARDING, "{replicated metadata={op_name=\"x\"}}"},
        {RP_ATTR_SHARDING, "{{{{{{{{{{replicated}}}}}}}}}}"}, /* too deep */
    };
    struct rp_program *p;

    UNUSED_STATE(state);
    assert_code(rp_program_new("hlo", &p, NULL), RP_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct rp_attr attr = parse(p, bad[i].key, bad[i].text);

        if (attr.type != RP_VALUE_TEXT)
            fail_msg("'%s' is taken for a value", bad[i].text);
        assert_string_equal(rp_attr_text(p, &attr, &p->arena), bad[i].text);
    }
    rp_program_free(p);
}

static void escapes_are_bytes(void **state)
{
    static const char text[] = "a\\101\\377\\012\\x7f\\n\\t\\r\\\\\\\"\\q\\";
    char out[sizeof text];
    size_t n = rp_unescape(text, sizeof text - 1, out);

    UNUSED_STATE(state);
    assert_int_equal(n, 12);
    assert_memory_equal(out, "aA\377\n\x7f\n\t\r\\\"q\\", 12);
}

/* A list that does not fit on the stack. */
static void long_lists(void **state)
{
    struct rp_program *p;
    struct rp_attr attr;
    const int64_t *at;
    char text[4096] = "{0";
    size_t n = 2;

    UNUSED_STATE(state);
    assert_code(rp_program_new("hlo", &p, NULL), RP_OK);
    for (int i = 1; i < 500; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, ",%d", i);
    snprintf(text + n, sizeof text - n, "}");
    attr = parse(p, RP_ATTR_DIMENSIONS, text);
    assert_true(rp_attr_numbers(&attr, &at, &n));
    assert_int_equal(n, 500);
    for (int i = 0; i < 500; i++)
        assert_int_equal(at[i], i);
    assert_string_equal(rp_attr_text(p, &attr, &p->arena), text);
    rp_program_free(p);
}

static void values_are_found(void **state)
{
    struct rp_new_op op = {.code = RP_OP_PARAMETER};
    struct rp_conv_dims dims;
    struct rp_window window;
    struct rp_program *p;
    uint32_t id;
    size_t n;

    UNUSED_STATE(state);
    assert_code(rp_program_new("hlo", &p, NULL), RP_OK);
    assert_code(rp_program_begin(p, 0, &id, NULL), RP_OK);
    assert_code(rp_program_add_op(p, &op, &id, NULL), RP_OK);
    assert_code(rp_program_add_attr(p, parse(p, RP_ATTR_DIMENSIONS, "{2,5}"), NULL), RP_OK);
    assert_code(rp_program_add_attr(p, parse(p, RP_ATTR_K, "9"), NULL), RP_OK);
    assert_code(rp_program_add_attr(p, parse(p, RP_ATTR_WINDOW, "{size=3 pad=1_2}"), NULL), RP_OK);
    assert_code(rp_program_add_attr(p, parse(p, RP_ATTR_DIM_LABELS, "b0f_0io->b0f"), NULL), RP_OK);
    assert_code(rp_program_add_module_attr(p, parse(p, RP_ATTR_REPLICA_COUNT, "4"), NULL), RP_OK);
    assert_int_equal(rp_op_ints(p, id, RP_ATTR_DIMENSIONS, &n)[1], 5);
    assert_int_equal(n, 2);
    assert_null(rp_op_ints(p, id, RP_ATTR_WINDOW, &n));
    assert_int_equal(rp_op_int(p, id, RP_ATTR_K, 1), 9);
    assert_int_equal(rp_op_int(p, id, RP_ATTR_DELTA, 1), 1);
    assert_int_equal(rp_op_int(p, id, RP_ATTR_DIMENSIONS, 1), 1);
    assert_true(rp_attr_window(rp_op_attr(p, id, RP_ATTR_WINDOW), &window));
    assert_int_equal(window.n, 1);
    assert_int_equal(window.dim[0].pad_high, 2);
    assert_int_equal(window.dim[0].stride, 1);
    assert_false(rp_attr_window(rp_op_attr(p, id, RP_ATTR_K), &window));
    assert_false(rp_attr_window(NULL, &window));
    assert_true(rp_attr_conv_dims(rp_op_attr(p, id, RP_ATTR_DIM_LABELS), &dims));
    assert_int_equal(dims.nspatial, 1);
    assert_int_equal(dims.input_feature, 2);
    assert_int_equal(dims.kernel_input, 1);
    assert_int_equal(rp_program_int(p, RP_ATTR_REPLICA_COUNT, 1), 4);
    assert_int_equal(rp_program_int(p, RP_ATTR_NUM_PARTITIONS, 1), 1);
    rp_program_free(p);
}

int test_attrs(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_print_in_one_way), cmocka_unit_test(what_is_no_value_stays_text),
        cmocka_unit_test(escapes_are_bytes), cmocka_unit_test(long_lists),
        cmocka_unit_test(values_are_found)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
