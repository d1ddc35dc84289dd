/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lowers more operators of TensorFlow that work element by element: functions that are short
 * sequences, remainders, tests of numbers, complex numbers, and operators that only concern shapes.
 */
#include "lower/inner.h"
#include "program/floats.h"
#include "program/opcodes.h"

#include <math.h>
#include <string.h>

static bool is_op(const struct rp_lower_node *node, const char *name)
{
    return node->op.n == strlen(name) && !memcmp(node->op.at, name, node->op.n);
}

RP_LOWER(unary)
{
    *out = rp_lower_unary(l, rp_lower_opcode(node), in);
    return RP_OK;
}

static enum rp_code to_common(struct rp_lower *l, const struct rp_lower_node *node,
                              const struct rp_lower_value *in, struct rp_lower_value *a,
                              struct rp_lower_value *b)
{
    *a = in[0];
    *b = in[1];
    if (a->elem != b->elem || !rp_lower_broadcast_both(l, a, b))
        return rp_lower_misfit(l, node, "incompatible inputs");
    return RP_OK;
}

RP_LOWER(binary)
{
    struct rp_lower_value a, b;

    RP_TRY(to_common(l, node, in, &a, &b));
    *out = rp_lower_binary(l, rp_lower_opcode(node), &a, &b);
    return RP_OK;
}

/* Divides integers towards zero, like HLO. */
RP_LOWER(truncate_div)
{
    RP_TRY(lower_binary(l, node, in, nin, out, nout));
    if (!rp_elem_is_float(in->elem))
        return RP_OK;
    struct rp_lower_value up = rp_lower_unary(l, RP_OP_CEIL, out);
    struct rp_lower_value down = rp_lower_unary(l, RP_OP_FLOOR, out);
    struct rp_lower_value zero = rp_lower_fill(l, 0, out);
    struct rp_lower_value negative = rp_lower_compare(l, "LT", out, &zero);
    *out = rp_lower_select(l, &negative, &up, &down);
    return RP_OK;
}

/* ---- functions ---- */

/* 1 - erf(x) */
RP_LOWER(one_less_erf)
{
    struct rp_lower_value one = rp_lower_fill(l, 1, in), t = rp_lower_unary(l, RP_OP_ERF, in);

    *out = rp_lower_binary(l, RP_OP_SUBTRACT, &one, &t);
    return RP_OK;
}

RP_LOWER(atan)
{
    struct rp_lower_value one = rp_lower_fill(l, 1, in);

    *out = rp_lower_binary(l, RP_OP_ATAN2, in, &one);
    return RP_OK;
}

/* scale * x above zero, scale * alpha * expm1(x) below */
RP_LOWER(selu)
{
    struct rp_lower_value zero = rp_lower_fill(l, 0, in), up = rp_lower_compare(l, "GT", in, &zero);
    struct rp_lower_value scale = rp_lower_fill(l, 1.0507009873554804934193349852946, in);
    struct rp_lower_value both = rp_lower_fill(l, 1.7580993408473768599402175208123, in);
    struct rp_lower_value low = rp_lower_unary(l, RP_OP_EXPM1, in);

    low = rp_lower_binary(l, RP_OP_MULTIPLY, &low, &both);
    struct rp_lower_value high = rp_lower_binary(l, RP_OP_MULTIPLY, in, &scale);
    *out = rp_lower_select(l, &up, &high, &low);
    return RP_OK;
}

/* Xdivy, Xlogy, Xlog1py (0 where x is 0) and MulNoNan (0 where y is 0). */
RP_LOWER(zero_wins)
{
    bool second = is_op(node, "MulNoNan");
    struct rp_lower_value a, b;

    RP_TRY(to_common(l, node, in, &a, &b));
    struct rp_lower_value zero = rp_lower_fill(l, 0, &a);
    struct rp_lower_value none = rp_lower_compare(l, "EQ", second ? &b : &a, &zero);
    struct rp_lower_value t = is_op(node, "Xlogy")     ? rp_lower_unary(l, RP_OP_LOG, &b)
                              : is_op(node, "Xlog1py") ? rp_lower_unary(l, RP_OP_LOG1P, &b)
                                                       : b;
    t = rp_lower_binary(l, is_op(node, "Xdivy") ? RP_OP_DIVIDE : RP_OP_MULTIPLY, &a, &t);
    *out = rp_lower_select(l, &none, &zero, &t);
    return RP_OK;
}

/* Computes the remainder that has the sign of the divisor. */
RP_LOWER(floor_mod)
{
    struct rp_lower_value a, b;

    RP_TRY(to_common(l, node, in, &a, &b));
    struct rp_lower_value rest = rp_lower_binary(l, RP_OP_REMAINDER, &a, &b);
    struct rp_lower_value zero = rp_lower_fill(l, 0, &a);
    struct rp_lower_value other = rp_lower_compare(l, "LT", &rest, &zero);
    struct rp_lower_value apart = rp_lower_compare(l, "LT", &b, &zero);
    other = rp_lower_binary(l, RP_OP_XOR, &other, &apart);
    struct rp_lower_value left = rp_lower_compare(l, "NE", &rest, &zero);
    other = rp_lower_binary(l, RP_OP_AND, &other, &left);
    struct rp_lower_value moved = rp_lower_binary(l, RP_OP_ADD, &rest, &b);
    *out = rp_lower_select(l, &other, &moved, &rest);
    return RP_OK;
}

/* Gradients of activations, from the input x (SoftplusGrad) or the output y. */
RP_LOWER(slope)
{
    struct rp_lower_value zero = rp_lower_fill(l, 0, in), one = rp_lower_fill(l, 1, in);

    if (in[0].rank != in[1].rank)
        return rp_lower_refuse(l, node, "the inputs have different shapes");
    if (is_op(node, "SoftplusGrad")) {
        struct rp_lower_value t = rp_lower_unary(l, RP_OP_LOGISTIC, &in[1]);
        *out = rp_lower_binary(l, RP_OP_MULTIPLY, &in[0], &t);
        return RP_OK;
    }
    struct rp_lower_value up = rp_lower_compare(l, "GT", &in[1], &zero);
    if (is_op(node, "Relu6Grad")) {
        struct rp_lower_value t = rp_lower_fill(l, 6, in);
        t = rp_lower_compare(l, "LT", &in[1], &t);
        up = rp_lower_binary(l, RP_OP_AND, &up, &t);
        *out = rp_lower_select(l, &up, &in[0], &zero);
        return RP_OK;
    }
    struct rp_lower_value t =
        is_op(node, "EluGrad")
            ? rp_lower_binary(l, RP_OP_ADD, &in[1], &one)
            : rp_lower_fill(l, (double)rp_lower_attr_float(node, "alpha", 0.2F), in);
    t = rp_lower_binary(l, RP_OP_MULTIPLY, &in[0], &t);
    *out = rp_lower_select(l, &up, &in[0], &t);
    return RP_OK;
}

/* ---- tests ---- */

RP_LOWER(is_nan)
{
    *out = rp_lower_compare(l, "NE", in, in);
    return RP_OK;
}

RP_LOWER(is_inf)
{
    struct rp_lower_value t = rp_lower_unary(l, RP_OP_ABS, in),
                          top = rp_lower_fill(l, (double)INFINITY, in);

    *out = rp_lower_compare(l, "EQ", &t, &top);
    return RP_OK;
}

/* ---- complex numbers ---- */

RP_LOWER(part)
{
    unsigned elem = in->elem == RP_ELEM_C64 ? RP_ELEM_F32 : RP_ELEM_F64;

    if (in->elem != RP_ELEM_C64 && in->elem != RP_ELEM_C128)
        return rp_lower_refuse(l, node, "the input is not complex");
    *out = rp_lower_like(l, elem, in->dims, in->rank);
    rp_lower_begin(l, out, rp_lower_opcode(node));
    rp_lower_operand(l, in);
    return RP_OK;
}

RP_LOWER(conjugate)
{
    *out = rp_lower_conjugate(l, in);
    return RP_OK;
}

RP_LOWER(complex)
{
    struct rp_lower_value a, b;

    RP_TRY(to_common(l, node, in, &a, &b));
    *out = rp_lower_like(l, a.elem == RP_ELEM_F32 ? RP_ELEM_C64 : RP_ELEM_C128, a.dims, a.rank);
    rp_lower_begin(l, out, RP_OP_COMPLEX);
    rp_lower_operand(l, &a);
    rp_lower_operand(l, &b);
    return RP_OK;
}

/* ---- operators that return their first input ---- */

RP_LOWER(first)
{
    *out = in[0];
    return RP_OK;
}

const struct rp_lower_row rp_lower_special[] = {
    {"Erfc", lower_one_less_erf, RP_LOWER_NO_OPCODE, 1},
    {"Asin", lower_unary, RP_OP_ASIN, 1},
    {"Acos", lower_unary, RP_OP_ACOS, 1},
    {"Atan", lower_atan, RP_LOWER_NO_OPCODE, 1},
    {"Sinh", lower_unary, RP_OP_SINH, 1},
    {"Cosh", lower_unary, RP_OP_COSH, 1},
    {"Asinh", lower_unary, RP_OP_ASINH, 1},
    {"Acosh", lower_unary, RP_OP_ACOSH, 1},
    {"Atanh", lower_unary, RP_OP_ATANH, 1},
    {"Selu", lower_selu, RP_LOWER_NO_OPCODE, 1},
    {"Xdivy", lower_zero_wins, RP_LOWER_NO_OPCODE, 2},
    {"Xlogy", lower_zero_wins, RP_LOWER_NO_OPCODE, 2},
    {"Xlog1py", lower_zero_wins, RP_LOWER_NO_OPCODE, 2},
    {"MulNoNan", lower_zero_wins, RP_LOWER_NO_OPCODE, 2},
    {"FloorMod", lower_floor_mod, RP_LOWER_NO_OPCODE, 2},
    {"Mod", lower_binary, RP_OP_REMAINDER, 2},
    {"TruncateDiv", lower_truncate_div, RP_OP_DIVIDE, 2},
    {"LeftShift", lower_binary, RP_OP_SHIFT_LEFT, 2},
    {"SoftplusGrad", lower_slope, RP_LOWER_NO_OPCODE, 2},
    {"Relu6Grad", lower_slope, RP_LOWER_NO_OPCODE, 2},
    {"EluGrad", lower_slope, RP_LOWER_NO_OPCODE, 2},
    {"LeakyReluGrad", lower_slope, RP_LOWER_NO_OPCODE, 2},
    {"IsNan", lower_is_nan, RP_LOWER_NO_OPCODE, 1},
    {"IsInf", lower_is_inf, RP_LOWER_NO_OPCODE, 1},
    {"Real", lower_part, RP_OP_REAL, 1},
    {"Imag", lower_part, RP_OP_IMAG, 1},
    {"ComplexAbs", lower_part, RP_OP_ABS, 1},
    {"Conj", lower_conjugate, RP_LOWER_NO_OPCODE, 1},
    {"Complex", lower_complex, RP_LOWER_NO_OPCODE, 2},
    {"PlaceholderWithDefault", lower_first, RP_LOWER_NO_OPCODE, 1},
    {"_EagerConst", lower_first, RP_LOWER_NO_OPCODE, 1},
    {"_Retval", lower_first, RP_LOWER_NO_OPCODE, 1},
    {"EnsureShape", lower_first, RP_LOWER_NO_OPCODE, 1},
    {"DebugIdentity", lower_first, RP_LOWER_NO_OPCODE, 1},
    {"DisableCopyOnRead", lower_first, RP_LOWER_NO_OPCODE, 1},
    {NULL, NULL, RP_LOWER_NO_OPCODE, 0}};
