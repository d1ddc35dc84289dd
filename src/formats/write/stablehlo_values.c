/* SPDX-License-Identifier: Apache-2.0 */
/* Writes types and constants of StableHLO. */
#include "formats/write/stablehlo.h"
#include "program/literal.h"
#include "program/opcodes.h"

#include <stdlib.h>
#include <string.h>

#define HEX_ELEMENTS \
    64 /* constants with more elements are written as bytes, if their type has a byte form */

static const char *const type_names[RP_ELEM_COUNT] = {
    [RP_ELEM_PRED] = "i1",
    [RP_ELEM_S2] = "i2",
    [RP_ELEM_S4] = "i4",
    [RP_ELEM_S8] = "i8",
    [RP_ELEM_S16] = "i16",
    [RP_ELEM_S32] = "i32",
    [RP_ELEM_S64] = "i64",
    [RP_ELEM_U2] = "ui2",
    [RP_ELEM_U4] = "ui4",
    [RP_ELEM_U8] = "ui8",
    [RP_ELEM_U16] = "ui16",
    [RP_ELEM_U32] = "ui32",
    [RP_ELEM_U64] = "ui64",
    [RP_ELEM_F16] = "f16",
    [RP_ELEM_F32] = "f32",
    [RP_ELEM_F64] = "f64",
    [RP_ELEM_BF16] = "bf16",
    [RP_ELEM_C64] = "complex<f32>",
    [RP_ELEM_C128] = "complex<f64>",
    [RP_ELEM_F8E5M2] = "f8E5M2",
    [RP_ELEM_F8E4M3FN] = "f8E4M3FN",
    [RP_ELEM_F8E4M3B11FNUZ] = "f8E4M3B11FNUZ",
    [RP_ELEM_F8E5M2FNUZ] = "f8E5M2FNUZ",
    [RP_ELEM_F8E4M3FNUZ] = "f8E4M3FNUZ",
    [RP_ELEM_F8E4M3] = "f8E4M3",
    [RP_ELEM_F8E3M4] = "f8E3M4",
    [RP_ELEM_F8E8M0FNU] = "f8E8M0FNU",
    [RP_ELEM_F6E3M2FN] = "f6E3M2FN",
    [RP_ELEM_F6E2M3FN] = "f6E2M3FN",
    [RP_ELEM_F4E2M1FN] = "f4E2M1FN",
    [RP_ELEM_TOKEN] = "!stablehlo.token",
};

uint32_t rp_shlo_leaves(const struct rp_program *p, uint32_t shape)
{
    const struct rp_op_shape *s = &p->shapes.at[shape];

    return s->elem == RP_ELEM_TUPLE ? s->leaves : 1;
}

/* Shapes bound the depth: RP_SHAPE_DEPTH. */
bool rp_shlo_has_type(const struct rp_program *p, uint32_t shape)
{
    const struct rp_op_shape *s = &p->shapes.at[shape];

    if (s->elem != RP_ELEM_TUPLE)
        return !(s->flags & (RP_SHAPE_DYNAMIC | RP_SHAPE_UNKNOWN)) && type_names[s->elem];
    for (uint32_t i = 0; i < s->n; i++)
        if (!rp_shlo_has_type(p, p->parts.at[s->first + i]))
            return false;
    return true;
}

bool rp_shlo_same_type(const struct rp_program *p, uint32_t a, uint32_t b)
{
    const struct rp_op_shape *s = &p->shapes.at[a], *t = &p->shapes.at[b];

    return a == b || (s->elem == t->elem && s->n == t->n && s->elem != RP_ELEM_TUPLE &&
                      (!s->n || memcmp(p->dims.at + s->first, p->dims.at + t->first,
                                       s->n * sizeof *p->dims.at) == 0));
}

const char *rp_shlo_elem(unsigned elem)
{
    return elem < sizeof type_names / sizeof *type_names ? type_names[elem] : NULL;
}

void rp_shlo_array_type(const struct rp_shlo *w, unsigned elem, const int64_t *dims, size_t n)
{
    if (elem == RP_ELEM_TOKEN) {
        rp_out_text(w->to, type_names[elem]);
        return;
    }
    rp_out_text(w->to, "tensor<");
    for (size_t i = 0; i < n; i++)
        rp_out_printf(w->to, "%lldx", (long long)dims[i]);
    rp_out_printf(w->to, "%s>", type_names[elem]);
}

void rp_shlo_type(const struct rp_shlo *w, uint32_t shape)
{
    const struct rp_op_shape *s = &w->p->shapes.at[shape];

    rp_shlo_array_type(w, s->elem, s->n ? w->p->dims.at + s->first : NULL, s->n);
}

/* ---- constants ---- */

static bool has_decimals(unsigned elem)
{
    return elem == RP_ELEM_F16 || elem == RP_ELEM_BF16 || elem == RP_ELEM_F32 ||
           elem == RP_ELEM_F64;
}

/* Writes a real number: a decimal always has a point; values that are not finite, and the small
   types, are written as bits. */
static void put_real(const struct rp_shlo *w, unsigned elem, const unsigned char *element)
{
    size_t unit = rp_literal_unit(elem);
    char text[96];
    size_t n = has_decimals(elem) ? rp_literal_print(elem, element, text, sizeof text) : 0;
    size_t digits = n ? strspn(text, "-+0123456789") : 0;

    if (digits && (digits == n || text[digits] == '.' || text[digits] == 'e')) {
        rp_out_write(w->to, text, digits);
        rp_out_text(w->to, text[digits] == '.' ? "" : ".0");
        rp_out_write(w->to, text + digits, n - digits);
        return;
    }
    rp_out_text(w->to, "0x");
    for (size_t i = unit; i-- > 0;)
        rp_out_printf(w->to, "%02X", element[i]);
}

static void put_element(const struct rp_shlo *w, unsigned elem, const unsigned char *element)
{
    const char *name = type_names[elem];
    char text[96];

    if (elem == RP_ELEM_C64 || elem == RP_ELEM_C128) {
        unsigned part = elem == RP_ELEM_C64 ? RP_ELEM_F32 : RP_ELEM_F64;

        rp_out_char(w->to, '(');
        put_real(w, part, element);
        rp_out_text(w->to, ", ");
        put_real(w, part, element + rp_literal_unit(part));
        rp_out_char(w->to, ')');
    } else if (name[0] == 'f' || name[0] == 'b') {
        put_real(w, elem, element);
    } else {
        rp_out_write(w->to, text, rp_literal_print(elem, element, text, sizeof text));
    }
}

static void put_bytes(const struct rp_shlo *w, const unsigned char *values, size_t n)
{
    static const char digits[] = "0123456789ABCDEF";

    rp_out_text(w->to, "\"0x");
    for (size_t i = 0; i < n; i++)
        rp_out_write(w->to, (char[]){digits[values[i] >> 4], digits[values[i] & 15]}, 2);
    rp_out_char(w->to, '"');
}

static void put_brackets(const struct rp_shlo *w, const int64_t *dims, uint32_t rank, size_t at,
                         char bracket)
{
    size_t inner = 1;

    for (uint32_t k = rank; k-- > 0;) {
        inner *= (size_t)dims[k];
        if (at % inner == 0)
            rp_out_char(w->to, bracket);
    }
}

static bool all_equal(const unsigned char *values, size_t unit, size_t n)
{
    return n > 1 && memcmp(values, values + unit, (n - 1) * unit) == 0;
}

static void put_values(const struct rp_shlo *w, uint32_t shape, const unsigned char *values)
{
    const struct rp_op_shape *s = &w->p->shapes.at[shape];
    const int64_t *dims = s->n ? w->p->dims.at + s->first : NULL;
    size_t unit = rp_literal_unit(s->elem), n = (size_t)rp_shape_elements(w->p, shape);

    if (all_equal(values, unit, n)) {
        put_element(w, s->elem, values);
        return;
    }
    if (n > HEX_ELEMENTS && s->elem != RP_ELEM_PRED && rp_elem_bits(s->elem) == 8 * unit) {
        put_bytes(w, values, unit * n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (i)
            rp_out_text(w->to, ", ");
        put_brackets(w, dims, s->n, i, '[');
        put_element(w, s->elem, values + unit * i);
        put_brackets(w, dims, s->n, i + 1, ']');
    }
}

enum rp_code rp_shlo_constant(const struct rp_shlo *w, uint32_t op)
{
    const struct rp_program *p = w->p;
    RP_FREED unsigned char *values = NULL;
    const struct rp_literal *literal =
        (uint64_t)p->value.at[op] < p->literals.n ? &p->literals.at[p->value.at[op]] : NULL;

    if (!literal || !rp_literal_known(p, literal))
        return rp_shlo_refuse(w, op, "the file does not have its values");
    if (!rp_shlo_same_type(p, literal->shape, p->shape.at[op]))
        return rp_shlo_refuse(w, op, "its values have another shape");
    size_t size = (size_t)rp_shape_elements(p, literal->shape) *
                  rp_literal_unit(p->shapes.at[literal->shape].elem);
    values = malloc(size + 1);
    RP_TRY(rp_err_need(values, w->err, "writing a constant"));
    RP_TRY(rp_literal_decode(p, literal, values, size, w->err));
    rp_out_text(w->to, "dense<");
    put_values(w, literal->shape, values);
    rp_out_text(w->to, "> : ");
    rp_shlo_type(w, literal->shape);
    return RP_OK;
}
