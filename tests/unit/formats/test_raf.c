/* SPDX-License-Identifier: Apache-2.0 */
/* Modules of RAF and Relay: functions, lets, shapes, and what cannot be. */
#include "formats/formats.h"
#include "program/opcodes.h"
#include "program/structure.h"
#include "unit.h"

#define HEAD                                                                                        \
    "{\"root\": 1, \"nodes\": [{\"type_key\": \"\"},"                                               \
    "{\"type_key\": \"IRModule\", \"attrs\": {\"functions\": \"2\"}},"                              \
    "{\"type_key\": \"Map\", \"data\": [3, 4]},"                                                    \
    "{\"type_key\": \"GlobalVar\", \"attrs\": {\"name_hint\": \"main\"}},"                          \
    "{\"type_key\": \"relay.Function\", \"attrs\": {\"params\": \"5\", \"body\": \"12\"}},"         \
    "{\"type_key\": \"Array\", \"data\": [6]},"                                                     \
    "{\"type_key\": \"relay.Var\", \"attrs\": {\"vid\": \"7\", \"type_annotation\": \"8\"}},"       \
    "{\"type_key\": \"relay.Id\", \"attrs\": {\"name_hint\": \"x\"}},"                              \
    "{\"type_key\": \"relay.TensorType\", \"attrs\": {\"dtype\": \"bfloat16\", \"shape\": \"9\"}}," \
    "{\"type_key\": \"Array\", \"data\": [10]},"                                                    \
    "{\"type_key\": \"IntImm\", \"attrs\": {\"dtype\": \"int32\", \"value\": \"32\"}},"             \
    "{\"type_key\": \"Op\", \"repr_str\": \"raf.op.relu\"},"
#define TAIL "], \"attrs\": {\"tvm_version\": \"0.9\"}}"

static enum rp_code load(const char *text, struct rp_import *import, struct rp_err *err)
{
    struct rp_input *in;

    assert_ok(rp_input_open_memory("memory", text, strlen(text), NULL, &in, err), err);
    return rp_format_read(in, NULL, import, err);
}

/* let a = relu(x) in let b = f2(a, a) in (a, b).1, as a closure call */
static void reads_lets(void **state)
{
    static const char text[] = HEAD
        "{\"type_key\": \"relay.Let\", \"attrs\": {\"var\": \"13\", \"value\": \"15\", \"body\": "
        "\"16\"}},"
        "{\"type_key\": \"relay.Var\", \"attrs\": {\"vid\": \"14\"}},"
        "{\"type_key\": \"relay.Id\", \"attrs\": {\"name_hint\": \"a\"}},"
        "{\"type_key\": \"relay.Call\", \"attrs\": {\"_checked_type_\": \"8\", \"op\": \"11\", "
        "\"args\": \"5\", \"attrs\": \"21\"}},"
        "{\"type_key\": \"relay.TupleGetItem\", \"attrs\": {\"tuple_value\": \"17\", \"index\": "
        "\"1\"}},"
        "{\"type_key\": \"relay.Tuple\", \"attrs\": {\"fields\": \"18\"}},"
        "{\"type_key\": \"Array\", \"data\": [13, 19]},"
        "{\"type_key\": \"relay.Call\", \"attrs\": {\"op\": \"4\", \"args\": \"20\"}},"
        "{\"type_key\": \"Array\", \"data\": [13]},"
        "{\"type_key\": \"relay.attrs.A\", \"attrs\": {\"axis\": \"2\"}}" TAIL;
    struct rp_err err = RP_ERR_INIT;
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_program *p;
    char shape[32];

    UNUSED_STATE(state);
    assert_ok(load(text, &import, &err), &err);
    assert_string_equal(import.format->name, "raf-json");
    p = import.program;
    assert_int_equal(p->computations.n, 1);
    assert_int_equal(p->nops, 5); /* parameter, relu, call, tuple, part */
    assert_string_equal(rp_op_opcode_name(p, 1), "raf.op.relu");
    assert_string_equal(rp_program_text(p, p->op_name.at[1]), "a");
    rp_shape_text(p, p->shape.at[1], false, shape, sizeof shape);
    assert_string_equal(shape, "bf16[32]");
    assert_non_null(rp_op_attr(p, 1, rp_strtab_find(&p->strings, "axis", 4)));
    assert_int_equal(rp_op_called(p, 2).n, 1);
    assert_int_equal(rp_op_operands(p, 2).at[0], 1);
    assert_int_equal(p->code.at[p->computations.at[0].root], RP_OP_GET_TUPLE_ELEMENT);
    assert_int_equal(p->value.at[p->computations.at[0].root], 1);
    rp_import_release(&import);
}

static void refuse(const char *text, const char *message)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_import import = RP_IMPORT_INIT;

    assert_code(load(text, &import, &err), RP_FORMAT);
    assert_contains(err.text, message);
}

static void refuses(void **state)
{
    UNUSED_STATE(state);
    refuse(HEAD "{\"type_key\": \"relay.Call\", \"attrs\": {\"op\": \"11\", \"args\": \"13\"}},"
                "{\"type_key\": \"Array\", \"data\": [12]}" TAIL,
           "depend on each other");
    refuse("{\"root\": 0, \"nodes\": [{\"type_key\": \"\"}]}", "no functions");
    refuse("{\"root\": 0, \"nodes\": [{\"type_key\": \"Array\", \"data\": [\"x\"]}]}",
           "not a number");
    refuse("{\"root\": 0, \"nodes\": [{\"type_key\": \"\"", "memory");
}

int test_raf(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_lets),
        cmocka_unit_test(refuses),
    };

    return cmocka_run_group_tests_name("raf", tests, NULL, NULL);
}
