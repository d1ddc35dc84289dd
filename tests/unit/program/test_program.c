/* SPDX-License-Identifier: Apache-2.0 */
/* The model by hand: shapes, tables, orders, literals, windows. */
#include "program/dot_algorithm.h"
#include "program/floats.h"
#include "program/literal.h"
#include "program/opcodes.h"
#include "program/order.h"
#include "program/structure.h"
#include "program/window.h"
#include "unit.h"

#include <math.h>

static void shapes_are_interned(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;
    int64_t dims[] = {2, 3};
    uint8_t dynamic[] = {0, 1};
    uint32_t a, b, c, t, layout;
    char text[64];

    UNUSED_STATE(state);
    assert_ok(rp_program_new("hlo", &p, &err), &err);
    assert_ok(rp_program_array(p, RP_ELEM_F32, dims, NULL, 2, 0, &a, &err), &err);
    assert_ok(rp_program_array(p, RP_ELEM_F32, dims, NULL, 2, 0, &b, &err), &err);
    assert_int_equal(a, b);
    assert_ok(rp_program_array(p, RP_ELEM_F32, dims, dynamic, 2, 0, &c, &err), &err);
    assert_int_not_equal(a, c);
    assert_ok(rp_program_string(p, "{1,0}", 5, &layout, &err), &err);
    assert_ok(rp_program_array(p, RP_ELEM_F32, dims, NULL, 2, layout, &b, &err), &err);
    assert_true(p->shapes.at[b].flags & RP_SHAPE_DEFAULT_LAYOUT);
    assert_ok(rp_program_tuple(p, (uint32_t[]){b, c}, 2, &t, &err), &err);
    assert_int_equal(rp_shape_bytes(p, t), 48);
    rp_shape_text(p, t, true, text, sizeof text);
    assert_string_equal(text, "(f32[2,3]{1,0}, f32[2,<=3])");
    dims[0] = INT64_MAX;
    assert_code(rp_program_array(p, RP_ELEM_F32, dims, NULL, 2, 0, &a, &err), RP_LIMIT);
    rp_program_free(p);
}

static void tuples_have_limits(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;
    uint32_t deep = 0, wide = 0;

    UNUSED_STATE(state);
    assert_ok(rp_program_new("hlo", &p, &err), &err);
    for (int i = 0; i < RP_SHAPE_DEPTH; i++)
        assert_ok(rp_program_tuple(p, &deep, 1, &deep, &err), &err);
    assert_int_equal(rp_shape_elements(p, deep), 0);
    assert_code(rp_program_tuple(p, &deep, 1, &deep, &err), RP_LIMIT);
    for (int i = 0; i < 20; i++) /* 2^20 leaves of 20 shapes */
        assert_ok(rp_program_tuple(p, (uint32_t[]){wide, wide}, 2, &wide, &err), &err);
    assert_code(rp_program_tuple(p, (uint32_t[]){wide, 0}, 2, &wide, &err), RP_LIMIT);
    rp_program_free(p);
}

static void tables_agree(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;
    uint32_t id;

    UNUSED_STATE(state);
    assert_ok(rp_program_new("hlo", &p, &err), &err);
    for (unsigned i = 0; i < RP_OP_FOREIGN; i++) {
        assert_ok(rp_program_string(p, rp_op_info[i].name, strlen(rp_op_info[i].name), &id, &err),
                  &err);
        assert_int_equal(rp_program_opcode(p, id), i);
        assert_true(rp_op_info[i].min_operands <= rp_op_info[i].max_operands);
    }
    assert_ok(rp_program_string(p, "window", 6, &id, &err), &err);
    assert_int_equal(id, RP_ATTR_WINDOW);
    assert_int_equal(rp_program_opcode(p, id), RP_OP_FOREIGN);
    assert_int_equal(rp_elem_find("bf16", 4), RP_ELEM_BF16);
    assert_int_equal(rp_elem_find("bf1", 3), RP_ELEM_INVALID);
    rp_program_free(p);
}

static void floats_round(void **state)
{
    static const unsigned small[] = {RP_ELEM_F8E5M2,       RP_ELEM_F8E4M3,     RP_ELEM_F8E3M4,
                                     RP_ELEM_F8E4M3FN,     RP_ELEM_F8E4M3FNUZ, RP_ELEM_F8E5M2FNUZ,
                                     RP_ELEM_F4E2M1FN,     RP_ELEM_F6E3M2FN,   RP_ELEM_F6E2M3FN,
                                     RP_ELEM_F8E8M0FNU,    RP_ELEM_F16,        RP_ELEM_BF16,
                                     RP_ELEM_F8E4M3B11FNUZ};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        for (uint64_t bits = 0; bits < UINT64_C(1) << rp_elem_bits(small[i]); bits++) {
            double value = rp_float_decode(small[i], bits);

            if (!isnan(value) && rp_float_encode(small[i], value) != bits)
                fail_msg("type %u, code %llu", small[i], (unsigned long long)bits);
        }
    assert_int_equal(rp_float_encode(RP_ELEM_BF16, 1.00390625), 0x3f80); /* a tie, to even */
    assert_int_equal(rp_float_encode(RP_ELEM_F8E4M3FN, 448), 0x7e);
    assert_int_equal(rp_float_encode(RP_ELEM_F8E4M3FN, 1e9), 0x7f);
    assert_int_equal(rp_float_encode(RP_ELEM_F4E2M1FN, 100), 7);
    assert_int_equal(rp_float_encode(RP_ELEM_F16, INFINITY), 0x7c00);
}

static void literals_are_permuted(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;
    int64_t dims[] = {2, 3};
    uint32_t layout, shape;
    struct rp_literal text = {"{ { 1, 2, 3 }, { 4, 5, -6 } }", 29, 0, RP_LITERAL_TEXT};
    struct rp_literal list = {"\x01\x04\x02\x05\x03\xfa\xff\xff\xff\xff\xff\xff\xff\xff\x01", 15, 0,
                              RP_LITERAL_VARINT};
    int32_t a[6], b[6];

    UNUSED_STATE(state);
    assert_ok(rp_program_new("hlo", &p, &err), &err);
    assert_ok(rp_program_string(p, "{0,1}", 5, &layout, &err), &err);
    assert_ok(rp_program_array(p, RP_ELEM_S32, dims, NULL, 2, layout, &shape, &err), &err);
    text.shape = list.shape = shape;
    assert_ok(rp_literal_decode(p, &text, a, sizeof a, &err), &err);
    assert_ok(rp_literal_decode(p, &list, b, sizeof b, &err), &err);
    assert_memory_equal(a, b, sizeof a);
    assert_int_equal(b[5], -6);
    text.n = 14;
    assert_code(rp_literal_decode(p, &text, a, sizeof a, &err), RP_FORMAT);
    rp_program_free(p);
}

/* As XLA reads them: numbers of 64 bits wrap, smaller ones must fit; what is not zero is true. */
static void integers_fit_or_wrap(void **state)
{
    static const struct {
        unsigned elem;
        const char *text;
        bool good;
        int64_t value;
    } rows[] = {{RP_ELEM_S64, "{18446744073709551615}", true, -1},
                {RP_ELEM_U64, "{-1}", true, -1},
                {RP_ELEM_S64, "{18446744073709551616}", false, 0},
                {RP_ELEM_S32, "{2147483647}", true, 2147483647},
                {RP_ELEM_S32, "{2147483648}", false, 0},
                {RP_ELEM_S32, "{-2147483648}", true, -2147483648LL},
                {RP_ELEM_S32, "{-2147483649}", false, 0},
                {RP_ELEM_U8, "{255}", true, 255},
                {RP_ELEM_U8, "{256}", false, 0},
                {RP_ELEM_U8, "{-1}", false, 0},
                {RP_ELEM_U8, "{-0}", true, 0},
                {RP_ELEM_PRED, "{2}", true, 1},
                {RP_ELEM_PRED, "{false}", true, 0},
                {RP_ELEM_S32, "{true}", false, 0},
                {RP_ELEM_S32, "{1x}", false, 0}};
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;
    int64_t dims[] = {1};

    UNUSED_STATE(state);
    assert_ok(rp_program_new("hlo", &p, &err), &err);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rp_literal text = {rows[i].text, (uint32_t)strlen(rows[i].text), 0, RP_LITERAL_TEXT};
        size_t size = rp_literal_unit(rows[i].elem);
        int64_t value = 0;

        assert_ok(rp_program_array(p, rows[i].elem, dims, NULL, 1, 0, &text.shape, &err), &err);
        if ((rp_literal_decode(p, &text, &value, size, &err) == RP_OK) != rows[i].good)
            fail_msg("'%s' is%s a value", rows[i].text, rows[i].good ? " not" : "");
        if (rows[i].good)
            assert_memory_equal(&value, &rows[i].value, size);
    }
    rp_program_free(p);
}

static void windows_round_trip(void **state)
{
    static const char window[] =
        "{size=3x3 stride=2x1 pad=0_1x-1_2 lhs_dilate=2x2 rhs_reversal=1x0}";
    struct rp_program *p;
    struct rp_window w;
    struct rp_conv_dims d;
    struct rp_attr attr;
    char text[256];

    UNUSED_STATE(state);
    assert_true(rp_window_parse(window, sizeof window - 1, &w));
    assert_int_equal(w.n, 2);
    assert_int_equal(w.dim[1].pad_low, -1);
    assert_code(rp_program_new("hlo", &p, NULL), RP_OK);
    attr = rp_attr_of_window(p, &w);
    assert_string_equal(rp_attr_text(p, &attr, &p->arena), window);
    rp_program_free(p);
    assert_false(rp_window_parse("{size=3x3 stride=2}", 19, &w));
    assert_true(rp_conv_dims_parse("b01f_01io->f01b", 15, &d));
    assert_int_equal(d.output_batch, 3);
    assert_true(rp_conv_dims_print(&d, text));
    assert_string_equal(text, "b01f_01io->f01b");
    for (size_t i = 0; i < 9; i++) { /* each position is one of an array of four dimensions */
        int64_t *at[] = {&d.input_batch,      &d.input_feature,     &d.kernel_input,
                         &d.kernel_output,    &d.output_batch,      &d.output_feature,
                         &d.input_spatial[1], &d.kernel_spatial[1], &d.output_spatial[1]};
        const int64_t kept = *at[i];

        *at[i] = 4;
        assert_false(rp_conv_dims_print(&d, text));
        *at[i] = -1;
        assert_false(rp_conv_dims_print(&d, text));
        *at[i] = (kept + 1) % 4; /* where another one is */
        assert_false(rp_conv_dims_print(&d, text));
        *at[i] = kept;
    }
    assert_false(rp_conv_dims_parse("b01f_01io", 9, &d));
    assert_false(rp_conv_dims_parse("b0f_01io->b0f", 13, &d));
    assert_false(rp_conv_dims_parse("b01f_01io->b0f1f", 16, &d));
}

/* A loop of operands, as old TensorFlow graphs have: everything is listed once. */
static void orders_end(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_new_op op = {.code = RP_OP_FOREIGN};
    struct rp_arena scratch = RP_ARENA_INIT;
    uint32_t id, order[3];
    struct rp_program *p;

    UNUSED_STATE(state);
    assert_ok(rp_program_new("graphdef", &p, &err), &err);
    assert_ok(rp_program_begin(p, 0, &id, &err), &err);
    assert_ok(rp_program_add_op(p, &op, &id, &err), &err);
    assert_ok(rp_program_add_operand(p, 1, 0, &err), &err);
    assert_ok(rp_program_add_op(p, &op, &id, &err), &err);
    assert_ok(rp_program_add_operand(p, 0, 0, &err), &err);
    assert_ok(rp_program_add_op(p, &op, &id, &err), &err);
    assert_ok(rp_program_finish(p, &err), &err);
    assert_ok(rp_computation_order(p, 0, &scratch, order, &err), &err);
    assert_int_equal(order[0], 2);
    assert_int_equal(order[1] + order[2], 1);
    rp_arena_release(&scratch);
    rp_program_free(p);
}

/* What is written in any order: 0 reads 1 and 2, 2 reads 1, and 1 reads 3. */
static void operands_come_before_their_users(void **state)
{
    static const uint32_t reads[4][2] = {{1, 2}, {3, 3}, {1, 1}, {0, 0}};
    struct rp_err err = RP_ERR_INIT;
    struct rp_new_op op = {.code = RP_OP_FOREIGN};
    struct rp_arena scratch = RP_ARENA_INIT;
    uint32_t id, order[4], place[4];
    struct rp_program *p;

    UNUSED_STATE(state);
    assert_ok(rp_program_new("graphdef", &p, &err), &err);
    assert_ok(rp_program_begin(p, 0, &id, &err), &err);
    for (uint32_t i = 0; i < 4; i++) {
        assert_ok(rp_program_add_op(p, &op, &id, &err), &err);
        for (uint32_t k = 0; i < 3 && k < 2; k++)
            assert_ok(rp_program_add_operand(p, reads[i][k], 0, &err), &err);
    }
    assert_ok(rp_program_finish(p, &err), &err);
    assert_ok(rp_computation_order(p, 0, &scratch, order, &err), &err);
    for (uint32_t i = 0; i < 4; i++)
        place[order[i]] = i;
    for (uint32_t i = 0; i < 3; i++)
        assert_true(place[reads[i][0]] < place[i] && place[reads[i][1]] < place[i]);
    rp_arena_release(&scratch);
    rp_program_free(p);
}

/* The names of XLA say the types of the operands and of the sum, and how many products there are.
 */
static void algorithms_are_what_their_names_say(void **state)
{
    static const struct {
        const char *word, *operands, *sum;
        int products;
        bool imprecise;
    } rows[] = {
        {"dot_any_f8_any_f8_f32", "f8", "f32", 1, false},
        {"dot_any_f8_any_f8_f32_fast_accum", "f8", "f32", 1, true},
        {"dot_f16_f16_f16", "f16", "f16", 1, false},
        {"dot_f16_f16_f32", "f16", "f32", 1, false},
        {"dot_bf16_bf16_bf16", "bf16", "bf16", 1, false},
        {"dot_bf16_bf16_f32", "bf16", "f32", 1, false},
        {"dot_bf16_bf16_f32_x3", "bf16", "f32", 3, false},
        {"dot_bf16_bf16_f32_x6", "bf16", "f32", 6, false},
        {"dot_bf16_bf16_f32_x9", "bf16", "f32", 9, false},
        {"dot_tf32_tf32_f32", "tf32", "f32", 1, false},
        {"dot_tf32_tf32_f32_x3", "tf32", "f32", 3, false},
        {"dot_f32_f32_f32", "f32", "f32", 1, false},
        {"dot_f64_f64_f64", "f64", "f64", 1, false},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *word = rows[i].word;
        const struct rp_dot_algorithm *a = rp_dot_algorithm_find(word, strlen(word));

        assert_non_null(a);
        assert_string_equal(a->operands, rows[i].operands);
        assert_string_equal(a->sum, rows[i].sum);
        assert_int_equal(a->products, rows[i].products);
        assert_int_equal(a->imprecise, rows[i].imprecise);
        assert_null(rp_dot_algorithm_find(word, strlen(word) - 1));
    }
    assert_int_equal(rp_dot_nalgorithms, sizeof rows / sizeof *rows);
}

int test_program(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_are_interned),
        cmocka_unit_test(tuples_have_limits),
        cmocka_unit_test(tables_agree),
        cmocka_unit_test(floats_round),
        cmocka_unit_test(literals_are_permuted),
        cmocka_unit_test(integers_fit_or_wrap),
        cmocka_unit_test(windows_round_trip),
        cmocka_unit_test(orders_end),
        cmocka_unit_test(operands_come_before_their_users),
        cmocka_unit_test(algorithms_are_what_their_names_say),
    };

    return cmocka_run_group_tests_name("program", tests, NULL, NULL);
}
