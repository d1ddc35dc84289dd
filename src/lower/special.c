/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More operators of TensorFlow that work element by element, as HLO: functions that are short
 * sequences, remainders, tests of numbers, complex numbers, and those that concern shapes only.
 */
#include "lower/inner.h"

#include <math.h>
#include <string.h>

#define LOWER(name)                                                                             \
    static enum rp_code name(struct lower *l, const struct lower_node *node,                    \
                             const struct lower_value *in, size_t nin, struct lower_value *out, \
                             size_t *nout)

static bool is_op(const struct lower_node *node, const char *name)
{
    return node->op.n == strlen(name) && !memcmp(node->op.at, name, node->op.n);
}

LOWER(unary)
{
    (void)nin;
    (void)nout;
    *out = lower_unary(l, lower_opcode(node), in);
    return RP_OK;
}

static enum rp_code to_common(struct lower *l, const struct lower_node *node,
                              const struct lower_value *in, struct lower_value *a,
                              struct lower_value *b)
{
    *a = in[0];
    *b = in[1];
    if (a->elem != b->elem || !lower_broadcast_both(l, a, b))
        return lower_misfit(l, node, "incompatible inputs");
    return RP_OK;
}

LOWER(binary)
{
    struct lower_value a, b;

    (void)nin;
    (void)nout;
    RP_TRY(to_common(l, node, in, &a, &b));
    *out = lower_binary(l, lower_opcode(node), &a, &b);
    return RP_OK;
}

/* ---- functions ---- */

/* 1 - erf(x) */
LOWER(one_less_erf)
{
    struct lower_value one = lower_fill(l, 1, in), t = lower_unary(l, RP_OP_ERF, in);

    (void)node;
    (void)nin;
    (void)nout;
    *out = lower_binary(l, RP_OP_SUBTRACT, &one, &t);
    return RP_OK;
}

LOWER(atan_)
{
    struct lower_value one = lower_fill(l, 1, in);

    (void)node;
    (void)nin;
    (void)nout;
    *out = lower_binary(l, RP_OP_ATAN2, in, &one);
    return RP_OK;
}

/* scale * x above zero, scale * alpha * expm1(x) below */
LOWER(selu)
{
    struct lower_value zero = lower_fill(l, 0, in), up = lower_compare(l, "GT", in, &zero);
    struct lower_value scale = lower_fill(l, 1.0507009873554804934193349852946, in), low, high;
    struct lower_value both = lower_fill(l, 1.7580993408473768599402175208123, in);

    (void)node;
    (void)nin;
    (void)nout;
    low = lower_unary(l, RP_OP_EXPM1, in);
    low = lower_binary(l, RP_OP_MULTIPLY, &low, &both);
    high = lower_binary(l, RP_OP_MULTIPLY, in, &scale);
    *out = lower_select(l, &up, &high, &low);
    return RP_OK;
}

/* Xdivy, Xlogy, Xlog1py and MulNoNan: 0 where one of them is. */
LOWER(zero_wins)
{
    bool second = is_op(node, "MulNoNan");
    struct lower_value a, b, zero, none, t;

    (void)nin;
    (void)nout;
    RP_TRY(to_common(l, node, in, &a, &b));
    zero = lower_fill(l, 0, &a);
    none = lower_compare(l, "EQ", second ? &b : &a, &zero);
    t = is_op(node, "Xlogy")     ? lower_unary(l, RP_OP_LOG, &b)
        : is_op(node, "Xlog1py") ? lower_unary(l, RP_OP_LOG1P, &b)
                                 : b;
    t = lower_binary(l, is_op(node, "Xdivy") ? RP_OP_DIVIDE : RP_OP_MULTIPLY, &a, &t);
    *out = lower_select(l, &none, &zero, &t);
    return RP_OK;
}

/* The remainder that has the sign of the divisor. */
LOWER(floor_mod)
{
    struct lower_value a, b, zero, rest, other, apart, left, moved;

    (void)nin;
    (void)nout;
    RP_TRY(to_common(l, node, in, &a, &b));
    rest = lower_binary(l, RP_OP_REMAINDER, &a, &b);
    zero = lower_fill(l, 0, &a);
    other = lower_compare(l, "LT", &rest, &zero);
    apart = lower_compare(l, "LT", &b, &zero);
    other = lower_binary(l, RP_OP_XOR, &other, &apart);
    left = lower_compare(l, "NE", &rest, &zero);
    other = lower_binary(l, RP_OP_AND, &other, &left);
    moved = lower_binary(l, RP_OP_ADD, &rest, &b);
    *out = lower_select(l, &other, &moved, &rest);
    return RP_OK;
}

/* Gradients of activations by the input x (SoftplusGrad) or the output y. */
LOWER(slope)
{
    struct lower_value zero = lower_fill(l, 0, in), one = lower_fill(l, 1, in), up, t;

    (void)nin;
    (void)nout;
    if (in[0].rank != in[1].rank)
        return lower_refuse(l, node, "the inputs have different shapes");
    if (is_op(node, "SoftplusGrad")) {
        t = lower_unary(l, RP_OP_LOGISTIC, &in[1]);
        *out = lower_binary(l, RP_OP_MULTIPLY, &in[0], &t);
        return RP_OK;
    }
    up = lower_compare(l, "GT", &in[1], &zero);
    if (is_op(node, "Relu6Grad")) {
        t = lower_fill(l, 6, in);
        t = lower_compare(l, "LT", &in[1], &t);
        up = lower_binary(l, RP_OP_AND, &up, &t);
        *out = lower_select(l, &up, &in[0], &zero);
        return RP_OK;
    }
    t = is_op(node, "EluGrad") ? lower_binary(l, RP_OP_ADD, &in[1], &one)
                               : lower_fill(l, (double)lower_attr_float(node, "alpha", 0.2F), in);
    t = lower_binary(l, RP_OP_MULTIPLY, &in[0], &t);
    *out = lower_select(l, &up, &in[0], &t);
    return RP_OK;
}

/* ---- tests ---- */

LOWER(is_nan)
{
    (void)node;
    (void)nin;
    (void)nout;
    *out = lower_compare(l, "NE", in, in);
    return RP_OK;
}

LOWER(is_inf)
{
    struct lower_value t = lower_unary(l, RP_OP_ABS, in), top = lower_fill(l, (double)INFINITY, in);

    (void)node;
    (void)nin;
    (void)nout;
    *out = lower_compare(l, "EQ", &t, &top);
    return RP_OK;
}

/* ---- complex numbers ---- */

LOWER(part)
{
    unsigned elem = in->elem == RP_ELEM_C64 ? RP_ELEM_F32 : RP_ELEM_F64;

    (void)nin;
    (void)nout;
    if (in->elem != RP_ELEM_C64 && in->elem != RP_ELEM_C128)
        return lower_refuse(l, node, "the input is not complex");
    *out = lower_like(l, elem, in->dims, in->rank);
    lower_begin(l, out, lower_opcode(node));
    lower_operand(l, in);
    return RP_OK;
}

LOWER(conjugate)
{
    (void)node;
    (void)nin;
    (void)nout;
    *out = lower_conjugate(l, in);
    return RP_OK;
}

LOWER(complex_)
{
    struct lower_value a, b;

    (void)nin;
    (void)nout;
    RP_TRY(to_common(l, node, in, &a, &b));
    *out = lower_like(l, a.elem == RP_ELEM_F32 ? RP_ELEM_C64 : RP_ELEM_C128, a.dims, a.rank);
    lower_begin(l, out, RP_OP_COMPLEX);
    lower_operand(l, &a);
    lower_operand(l, &b);
    return RP_OK;
}

/* ---- as they are ---- */

LOWER(first)
{
    (void)l;
    (void)node;
    (void)nin;
    (void)nout;
    *out = in[0];
    return RP_OK;
}

const struct lower_row lower_special[] = {{"Erfc", one_less_erf, LOWER_NO_OPCODE, 1},
                                          {"Asin", unary, RP_OP_ASIN, 1},
                                          {"Acos", unary, RP_OP_ACOS, 1},
                                          {"Atan", atan_, LOWER_NO_OPCODE, 1},
                                          {"Sinh", unary, RP_OP_SINH, 1},
                                          {"Cosh", unary, RP_OP_COSH, 1},
                                          {"Asinh", unary, RP_OP_ASINH, 1},
                                          {"Acosh", unary, RP_OP_ACOSH, 1},
                                          {"Atanh", unary, RP_OP_ATANH, 1},
                                          {"Selu", selu, LOWER_NO_OPCODE, 1},
                                          {"Xdivy", zero_wins, LOWER_NO_OPCODE, 2},
                                          {"Xlogy", zero_wins, LOWER_NO_OPCODE, 2},
                                          {"Xlog1py", zero_wins, LOWER_NO_OPCODE, 2},
                                          {"MulNoNan", zero_wins, LOWER_NO_OPCODE, 2},
                                          {"FloorMod", floor_mod, LOWER_NO_OPCODE, 2},
                                          {"Mod", binary, RP_OP_REMAINDER, 2},
                                          {"TruncateDiv", binary, RP_OP_DIVIDE, 2},
                                          {"LeftShift", binary, RP_OP_SHIFT_LEFT, 2},
                                          {"SoftplusGrad", slope, LOWER_NO_OPCODE, 2},
                                          {"Relu6Grad", slope, LOWER_NO_OPCODE, 2},
                                          {"EluGrad", slope, LOWER_NO_OPCODE, 2},
                                          {"LeakyReluGrad", slope, LOWER_NO_OPCODE, 2},
                                          {"IsNan", is_nan, LOWER_NO_OPCODE, 1},
                                          {"IsInf", is_inf, LOWER_NO_OPCODE, 1},
                                          {"Real", part, RP_OP_REAL, 1},
                                          {"Imag", part, RP_OP_IMAG, 1},
                                          {"ComplexAbs", part, RP_OP_ABS, 1},
                                          {"Conj", conjugate, LOWER_NO_OPCODE, 1},
                                          {"Complex", complex_, LOWER_NO_OPCODE, 2},
                                          {"PlaceholderWithDefault", first, LOWER_NO_OPCODE, 1},
                                          {"_EagerConst", first, LOWER_NO_OPCODE, 1},
                                          {"_Retval", first, LOWER_NO_OPCODE, 1},
                                          {"EnsureShape", first, LOWER_NO_OPCODE, 1},
                                          {"DebugIdentity", first, LOWER_NO_OPCODE, 1},
                                          {"DisableCopyOnRead", first, LOWER_NO_OPCODE, 1},
                                          {NULL, NULL, LOWER_NO_OPCODE, 0}};
