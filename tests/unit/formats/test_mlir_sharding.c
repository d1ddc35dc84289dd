/* SPDX-License-Identifier: Apache-2.0 */
/* StableHLO of several devices: groups of collectives, exchanges, meshes, manual parts. */
#include "formats/formats.h"
#include "formats/programs.h"
#include "program/opcodes.h"
#include "unit.h"

static struct rp_program *read_text(const char *text, struct rp_import *import)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_input *in;

    assert_ok(rp_input_open_memory("memory", text, strlen(text), NULL, &in, &err), &err);
    assert_ok(rp_format_read(in, NULL, import, &err), &err);
    assert_string_equal(import->format->name, "stablehlo");
    return import->program;
}

/* The first operation of that code. */
static uint32_t op_of(const struct rp_program *p, unsigned code)
{
    for (uint32_t op = 0; op < p->nops; op++)
        if (p->code.at[op] == code)
            return op;
    fail_msg("no such operation");
    return 0;
}

/* An attribute of an operation as text; NULL: it has none. */
static const char *attr_text(struct rp_program *p, uint32_t op, uint32_t key)
{
    const struct rp_attr *attr = rp_op_attr(p, op, key);

    return attr ? rp_attr_text(p, attr, &p->arena) : NULL;
}

static void check_attr(struct rp_program *p, uint32_t op, uint32_t key, const char *want)
{
    const char *got = attr_text(p, op, key);

    if (!want || !got)
        assert_true(!want && !got);
    else
        assert_string_equal(got, want);
}

#define COLLECTIVE(name, attrs)                                                   \
    "module @m {\n func.func public @main(%arg0: tensor<4x6xf32>) -> "            \
    "tensor<4x6xf32> {\n  %0 = \"stablehlo." name "\"(%arg0) <{" attrs            \
    "}> : (tensor<4x6xf32>) -> tensor<4x6xf32>\n  return %0 : tensor<4x6xf32>\n " \
    "}\n}\n"

static void groups_are_lists(void **state)
{
    static const struct {
        const char *text, *groups, *pairs, *channel;
        unsigned code;
        bool global;
    } cases[] = {
        {COLLECTIVE("all_gather",
                    "all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = "
                    "7, type = 1>, replica_groups = dense<[[0, 1], [2, -1]]> : tensor<2x2xi64>, "
                    "use_global_device_ids"),
         "{{0,1},{2}}", NULL, "7", RP_OP_ALL_GATHER, true},
        {COLLECTIVE("all_gather",
                    "all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = "
                    "1, type = 1>, replica_groups = dense<[[0, 2, 4], [1, 3, 5]]> : "
                    "tensor<2x3xi64>"),
         "{{0,2,4},{1,3,5}}", NULL, "1", RP_OP_ALL_GATHER, false},
        {COLLECTIVE("all_gather",
                    "all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = "
                    "0, type = 1>, replica_groups = dense<0> : tensor<1x1xi64>"),
         "{{0}}", NULL, NULL, RP_OP_ALL_GATHER, false},
        {COLLECTIVE("collective_permute",
                    "source_target_pairs = dense<[[0, 2], [2, 0]]> : tensor<2x2xi64>"),
         NULL, "{{0,2},{2,0}}", NULL, RP_OP_COLLECTIVE_PERMUTE, false},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rp_import import;
        struct rp_program *p = read_text(cases[i].text, &import);
        uint32_t op = op_of(p, cases[i].code);

        check_attr(p, op, RP_ATTR_REPLICA_GROUPS, cases[i].groups);
        check_attr(p, op, RP_ATTR_SOURCE_TARGET_PAIRS, cases[i].pairs);
        check_attr(p, op, RP_ATTR_CHANNEL_ID, cases[i].channel);
        check_attr(p, op, RP_ATTR_USE_GLOBAL_DEVICE_IDS, cases[i].global ? "true" : NULL);
        rp_import_release(&import);
    }
}

#define GROUP_OF(n)          \
    COLLECTIVE("all_gather", \
               "all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<1x" n "xi64>")

static void groups_have_a_limit(void **state)
{
    static const char last[] = GROUP_OF("127"), more[] = GROUP_OF("128");
    struct rp_err err = RP_ERR_INIT;
    struct rp_import import;
    struct rp_input *in;

    UNUSED_STATE(state);
    read_text(last, &import);
    rp_import_release(&import);
    assert_ok(rp_input_open_memory("memory", more, strlen(more), NULL, &in, &err), &err);
    assert_code(rp_format_read(in, NULL, &import, &err), RP_FORMAT);
    assert_contains(err.text, "groups of 128 devices or more");
}

/* Split and joined along different dimensions: a slice for each part, an exchange, and all joined.
 */
static void exchanges_are_slices(void **state)
{
    static const char *const slices[] = {"{[0:4], [0:3]}", "{[0:4], [3:6]}"};
    struct rp_import import;
    struct rp_program *p;
    uint32_t op;
    char shape[64];
    size_t n = 0;

    UNUSED_STATE(state);
    p = read_text("module @m {\n func.func public @main(%arg0: tensor<4x6xf32>) -> tensor<8x3xf32> "
                  "{\n  %0 = \"stablehlo.all_to_all\"(%arg0) <{concat_dimension = 0 : i64, "
                  "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, "
                  "split_dimension = 1 : i64}> : (tensor<4x6xf32>) -> tensor<8x3xf32>\n  return %0 "
                  ": tensor<8x3xf32>\n }\n}\n",
                  &import);
    for (op = 0; op < p->nops; op++)
        if (p->code.at[op] == RP_OP_SLICE) {
            assert_true(n < 2);
            check_attr(p, op, RP_ATTR_SLICE, slices[n++]);
            rp_shape_text(p, p->shape.at[op], false, shape, sizeof shape);
            assert_string_equal(shape, "f32[4,3]");
        }
    assert_int_equal(n, 2);
    op = op_of(p, RP_OP_ALL_TO_ALL);
    assert_int_equal(rp_op_operands(p, op).n, 2);
    check_attr(p, op, RP_ATTR_REPLICA_GROUPS, "{{0,1}}");
    rp_shape_text(p, p->shape.at[op], false, shape, sizeof shape);
    assert_string_equal(shape, "(f32[4,3], f32[4,3])");
    op = op_of(p, RP_OP_CONCATENATE);
    check_attr(p, op, RP_ATTR_DIMENSIONS, "{0}");
    assert_int_equal(rp_op_operands(p, op).n, 2);
    rp_import_release(&import);
}

static const char *module_attr(struct rp_program *p, uint32_t key)
{
    for (size_t i = 0; i < p->module_attrs.n; i++)
        if (p->module_attrs.at[i].key == key)
            return rp_attr_text(p, &p->module_attrs.at[i], &p->arena);
    return "(none)";
}

/* One partition or replica is nothing to say. */
static void modules_have_meshes(void **state)
{
    struct rp_import import;
    struct rp_program *p;

    UNUSED_STATE(state);
    p = read_text("module @m attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : "
                  "i32} {\n sdy.mesh @a = <[\"x\"=4]>\n sdy.mesh @b = <[\"y\"=2, \"z\"=2]>\n "
                  "func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {\n  return %arg0 "
                  ": tensor<2xf32>\n }\n}\n",
                  &import);
    assert_string_equal(module_attr(p, RP_ATTR_NUM_PARTITIONS), "2");
    assert_string_equal(module_attr(p, RP_ATTR_REPLICA_COUNT), "(none)");
    assert_string_equal(module_attr(p, RP_ATTR_FRONTEND_ATTRIBUTES),
                        "{xla.sdy.meshes={a = #sdy.mesh<[\"x\"=4]>, b = #sdy.mesh<[\"y\"=2, "
                        "\"z\"=2]>}}");
    rp_import_release(&import);
    p = read_text("module @m attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 3 : "
                  "i32} {\n func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {\n  "
                  "return %arg0 : tensor<2xf32>\n }\n}\n",
                  &import);
    assert_string_equal(module_attr(p, RP_ATTR_NUM_PARTITIONS), "(none)");
    assert_string_equal(module_attr(p, RP_ATTR_REPLICA_COUNT), "3");
    assert_string_equal(module_attr(p, RP_ATTR_FRONTEND_ATTRIBUTES), "(none)");
    rp_import_release(&import);
}

/* A call between two custom calls, which say how values are divided. */
static void manual_parts_are_calls(void **state)
{
    static const char *const targets[] = {"\"xla.sdy.GlobalToLocalShape\"",
                                          "\"xla.sdy.LocalToGlobalShape\""};
    static const char *const attrs[] = {
        "{xla.sdy.in_shardings=\"#sdy.sharding_per_value<[<@mesh, [{\\\"x\\\"}]>, <@mesh, "
        "[{}]>]>\",xla.sdy.manual_axes=\"#sdy<manual_axes{\\\"x\\\"}>\"}",
        "{xla.sdy.out_shardings=\"#sdy.sharding_per_value<[<@mesh, [{\\\"x\\\"}]>, <@mesh, "
        "[{}]>]>\",xla.sdy.manual_axes=\"#sdy<manual_axes{\\\"x\\\"}>\"}"};
    struct rp_import import;
    struct rp_program *p;
    size_t n = 0;
    char shape[64];

    UNUSED_STATE(state);
    p = read_text(
        "module @m {\n  sdy.mesh @mesh = <[\"x\"=4]>\n  func.func public @main(%arg0: "
        "tensor<8xf32>, %arg1: tensor<3xf32>) -> tensor<8xf32> {\n"
        "    %0:2 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{\"x\"}]>, "
        "<@mesh, [{}]>] out_shardings=[<@mesh, [{\"x\"}]>, <@mesh, [{}]>] manual_axes={\"x\"} "
        "(%arg2: tensor<2xf32>, %arg3: tensor<3xf32>) {\n"
        "      %1 = stablehlo.negate %arg2 : tensor<2xf32>\n      sdy.return %1, %arg3 : "
        "tensor<2xf32>, tensor<3xf32>\n    } : (tensor<8xf32>, tensor<3xf32>) -> (tensor<8xf32>, "
        "tensor<3xf32>)\n    return %0#0 : tensor<8xf32>\n  }\n}\n",
        &import);
    for (uint32_t op = 0; op < p->nops; op++)
        if (p->code.at[op] == RP_OP_CUSTOM_CALL) {
            assert_true(n < 2);
            check_attr(p, op, RP_ATTR_CUSTOM_CALL_TARGET, targets[n]);
            check_attr(p, op, RP_ATTR_FRONTEND_ATTRIBUTES, attrs[n]);
            rp_shape_text(p, p->shape.at[op], false, shape, sizeof shape);
            assert_string_equal(shape, n++ ? "(f32[8], f32[3])" : "(f32[2], f32[3])");
        }
    assert_int_equal(n, 2);
    rp_shape_text(p, p->shape.at[op_of(p, RP_OP_CALL)], false, shape, sizeof shape);
    assert_string_equal(shape, "(f32[2], f32[3])"); /* that of the region */
    assert_int_equal(rp_op_operands(p, op_of(p, RP_OP_CALL)).n, 2);
    rp_import_release(&import);
}

int test_mlir_sharding(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_lists),       cmocka_unit_test(groups_have_a_limit),
        cmocka_unit_test(exchanges_are_slices),   cmocka_unit_test(modules_have_meshes),
        cmocka_unit_test(manual_parts_are_calls),
    };

    return cmocka_run_group_tests_name("mlir_sharding", tests, NULL, NULL);
}
