/* SPDX-License-Identifier: Apache-2.0 */
/* Formats of numbers, their texts, and the order in which they lie. */
#include "formats/programs.h"
#include "program/floats.h"
#include "program/literal.h"
#include "unit.h"

#include <math.h>

static void one_and_a_half_in_every_format(void **state)
{
    static const struct {
        unsigned elem;
        uint64_t bits;
        double value;
    } rows[] = {{RP_ELEM_F64, UINT64_C(0x3ff8000000000000), 1.5},
                {RP_ELEM_F64, UINT64_C(0xc000000000000000), -2},
                {RP_ELEM_F32, 0x3fc00000, 1.5},
                {RP_ELEM_F32, 0xc0000000, -2},
                {RP_ELEM_F16, 0x3e00, 1.5},
                {RP_ELEM_F16, 0xc000, -2},
                {RP_ELEM_F16, 0x0001, 0x1p-24},
                {RP_ELEM_BF16, 0x3fc0, 1.5},
                {RP_ELEM_BF16, 0xc000, -2},
                {RP_ELEM_F8E4M3FN, 0x3c, 1.5},
                {RP_ELEM_F8E5M2, 0x3e, 1.5}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_float_equal(rp_float_decode(rows[i].elem, rows[i].bits), rows[i].value, 0);
        assert_true(rp_float_encode(rows[i].elem, rows[i].value) == rows[i].bits);
    }
    assert_true(isinf(rp_float_decode(RP_ELEM_F16, 0x7c00)));
    assert_true(isnan(rp_float_decode(RP_ELEM_F64, UINT64_C(0x7ff8000000000000))));
}

static void texts_of_elements(void **state)
{
    const float single = -2.5F, pair[] = {1.5F, -2};
    const double wide[] = {0.25, 4};
    const int32_t whole = -7;
    const uint8_t yes = 1;
    char text[80];

    UNUSED_STATE(state);
    assert_int_equal(rp_literal_print(RP_ELEM_F32, &single, text, sizeof text), 4);
    assert_string_equal(text, "-2.5");
    rp_literal_print(RP_ELEM_C64, pair, text, sizeof text);
    assert_string_equal(text, "(1.5, -2)");
    rp_literal_print(RP_ELEM_C128, wide, text, sizeof text);
    assert_string_equal(text, "(0.25, 4)");
    rp_literal_print(RP_ELEM_S32, &whole, text, sizeof text);
    assert_string_equal(text, "-7");
    rp_literal_print(RP_ELEM_PRED, &yes, text, sizeof text);
    assert_string_equal(text, "true");
}

/* The dimension that runs fastest comes first. */
static void the_order_of_a_layout(void **state)
{
    static const char text[] = "HloModule m\n\nENTRY e {\n"
                               "  a = f32[2,3,4]{0,2,1} parameter(0)\n"
                               "  b = f32[2,3]{1,0} parameter(1)\n"
                               "  c = f32[2,3]{0,1} parameter(2)\n"
                               "  d = f32[2,3]{0,2} parameter(3)\n" /* there is no dimension 2 */
                               "  e = f32[2,3]{0,0} parameter(4)\n"
                               "  ROOT r = (f32[2,3,4]{0,2,1}) tuple(a)\n}\n";
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;
    uint32_t order[3];

    UNUSED_STATE(state);
    assert_ok(rp_hlo_text_parse(text, strlen(text), NULL, &p, &err), &err);
    assert_true(rp_shape_minor_to_major(p, p->shape.at[0], order, 3));
    assert_true(order[0] == 0 && order[1] == 2 && order[2] == 1);
    assert_false(rp_shape_minor_to_major(p, p->shape.at[0], order, 2)); /* no room */
    assert_false(rp_shape_minor_to_major(p, p->shape.at[1], order, 3)); /* as usual */
    assert_true(rp_shape_minor_to_major(p, p->shape.at[2], order, 3));
    assert_true(order[0] == 0 && order[1] == 1);
    assert_false(rp_shape_minor_to_major(p, p->shape.at[3], order, 3));
    assert_false(rp_shape_minor_to_major(p, p->shape.at[4], order, 3));
    rp_program_free(p);
}

int test_numbers(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_and_a_half_in_every_format),
                                       cmocka_unit_test(texts_of_elements),
                                       cmocka_unit_test(the_order_of_a_layout)};

    return cmocka_run_group_tests_name("numbers", tests, NULL, NULL);
}
