/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that are generated: computations that are open at the same time, and failures. */
#include "program/opcodes.h"
#include "program/program_builder.h"

#include "program/literal.h"
#include "unit.h"

static uint32_t scalar_sum(struct rp_program_builder *b)
{
    uint32_t f32 = rp_program_builder_array(b, RP_ELEM_F32, NULL, 0), root;

    rp_program_builder_open(b);
    rp_program_builder_add(b, RP_OP_PARAMETER, "a", f32, 0);
    rp_program_builder_add(b, RP_OP_PARAMETER, "b", f32, 1);
    root = rp_program_builder_add(b, RP_OP_ADD, "r", f32, 0);
    rp_program_builder_operand(b, 0);
    rp_program_builder_operand(b, 1);
    return rp_program_builder_close(b, "sum", root);
}

/* A reduction whose computation is built between its operands and itself. */
static void inner_computations_come_first(void **state)
{
    static const float zero = 0;
    const int64_t dims[2] = {2, 3}, over[1] = {1};
    struct rp_program_builder b;
    struct rp_program *p;
    struct rp_err err = RP_ERR_INIT;
    uint32_t sum, root;
    float value = 1;
    char shape[64];

    UNUSED_STATE(state);
    assert_ok(rp_program_builder_init(&b, "hlo", "made", &err), &err);
    rp_program_builder_open(&b);
    rp_program_builder_add(&b, RP_OP_PARAMETER, "x",
                           rp_program_builder_array(&b, RP_ELEM_F32, dims, 2), 0);
    rp_program_builder_constant(&b, "zero", rp_program_builder_array(&b, RP_ELEM_F32, NULL, 0),
                                &zero, sizeof zero);
    sum = scalar_sum(&b);
    root = rp_program_builder_add(&b, RP_OP_REDUCE, "y",
                                  rp_program_builder_array(&b, RP_ELEM_F32, dims, 1), 0);
    rp_program_builder_operand(&b, 0);
    rp_program_builder_operand(&b, 1);
    rp_program_builder_call(&b, sum);
    rp_program_builder_attr(&b, rp_attr_ints(b.program, RP_ATTR_DIMENSIONS, over, 1));
    assert_ok(rp_program_builder_finish(&b, rp_program_builder_close(&b, "main", root), &p, &err),
              &err);
    rp_program_builder_release(&b);
    assert_int_equal(p->computations.n, 2);
    assert_string_equal(rp_program_text(p, p->name), "made");
    assert_string_equal(rp_program_text(p, p->computations.at[0].name), "sum");
    assert_string_equal(rp_program_text(p, p->computations.at[1].name), "main");
    assert_int_equal(p->entry, 1);
    assert_int_equal(p->nops, 6);
    assert_int_equal(p->computations.at[0].root, 2);
    assert_int_equal(p->computations.at[1].root, 5);
    assert_int_equal(p->code.at[5], RP_OP_REDUCE);
    assert_int_equal(rp_op_operands(p, 5).n, 2);
    assert_int_equal(rp_op_operands(p, 5).at[0], 3);
    assert_int_equal(rp_op_operands(p, 5).at[1], 4);
    assert_int_equal(rp_op_called(p, 5).n, 1);
    assert_int_equal(rp_op_called(p, 5).at[0], 0);
    assert_int_equal(rp_op_int(p, 5, RP_ATTR_DIMENSIONS, -1), 1);
    rp_shape_text(p, p->shape.at[3], true, shape, sizeof shape);
    assert_string_equal(shape, "f32[2,3]{1,0}");
    assert_ok(rp_literal_decode(p, &p->literals.at[p->value.at[4]], &value, sizeof value, &err),
              &err);
    assert_true(value == 0);
    rp_program_free(p);
}

static void discarded_computations_leave_nothing(void **state)
{
    struct rp_program_builder b;
    struct rp_program *p;
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    assert_ok(rp_program_builder_init(&b, "hlo", "made", &err), &err);
    rp_program_builder_open(&b);
    rp_program_builder_add(&b, RP_OP_PARAMETER, "never",
                           rp_program_builder_array(&b, RP_ELEM_F32, NULL, 0), 7);
    rp_program_builder_discard(&b);
    assert_ok(rp_program_builder_finish(&b, scalar_sum(&b), &p, &err), &err);
    rp_program_builder_release(&b);
    assert_int_equal(p->computations.n, 1);
    assert_int_equal(p->nops, 3);
    rp_program_free(p);
}

/* The first failure is the one that is reported. */
static void failures_stick(void **state)
{
    static const int64_t huge[2] = {INT64_MAX, 2}, negative[1] = {-1};
    static const struct {
        unsigned elem;
        const int64_t *dims;
        size_t rank;
        enum rp_code code;
        const char *why;
    } rows[] = {{RP_ELEM_F32, huge, 2, RP_LIMIT, "a shape of more than 2^63 bits"},
                {RP_ELEM_F32, negative, 1, RP_FORMAT, "negative dimension in a shape"},
                {RP_ELEM_INVALID, NULL, 0, RP_FORMAT, "unknown element type"}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rp_program_builder b;
        struct rp_program *p;
        struct rp_err err = RP_ERR_INIT;

        assert_ok(rp_program_builder_init(&b, "hlo", "made", &err), &err);
        rp_program_builder_array(&b, rows[i].elem, rows[i].dims, rows[i].rank);
        rp_program_builder_fail(&b, RP_BUG, "a later failure");
        assert_code(rp_program_builder_finish(&b, scalar_sum(&b), &p, &err), rows[i].code);
        assert_string_equal(err.text, rows[i].why);
        assert_null(p);
        rp_program_builder_release(&b);
    }
}

static void undefined_operands_are_refused(void **state)
{
    struct rp_program_builder b;
    struct rp_program *p;
    struct rp_err err = RP_ERR_INIT;
    uint32_t f32, root;

    UNUSED_STATE(state);
    assert_ok(rp_program_builder_init(&b, "hlo", "made", &err), &err);
    f32 = rp_program_builder_array(&b, RP_ELEM_F32, NULL, 0);
    rp_program_builder_open(&b);
    root = rp_program_builder_add(&b, RP_OP_NEGATE, "y", f32, 0);
    rp_program_builder_operand(&b, root);
    assert_code(rp_program_builder_finish(&b, rp_program_builder_close(&b, "main", root), &p, &err),
                RP_FORMAT);
    assert_string_equal(err.text, "an operand of operation 'y' is not defined");
    rp_program_builder_release(&b);

    assert_ok(rp_program_builder_init(&b, "hlo", "made", &err), &err);
    rp_program_builder_open(&b);
    assert_code(rp_program_builder_finish(&b, 0, &p, &err), RP_BUG); /* never closed */
    rp_program_builder_release(&b);
}

int test_program_builder(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inner_computations_come_first),
        cmocka_unit_test(discarded_computations_leave_nothing),
        cmocka_unit_test(failures_stick),
        cmocka_unit_test(undefined_operands_are_refused),
    };

    return cmocka_run_group_tests_name("program builder", tests, NULL, NULL);
}
