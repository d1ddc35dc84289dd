/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lowers operators of TensorFlow that work element by element: most are one opcode; activations,
 * their gradients and a few others are short sequences. Binary operators broadcast as in NumPy.
 */
#include "lower/inner.h"
#include "program/floats.h"
#include "program/opcodes.h"

#include <math.h>
#include <string.h>

RP_LOWER(same)
{
    if (nin > RP_LOWER_OUTPUTS)
        return rp_lower_refuse(l, node, "too many outputs");
    *nout = nin ? nin : 1;
    memcpy(out, in, nin * sizeof *in);
    return RP_OK;
}

RP_LOWER(unary)
{
    *out = rp_lower_unary(l, rp_lower_opcode(node), in);
    return RP_OK;
}

RP_LOWER(is_finite)
{
    *out = rp_lower_like(l, RP_ELEM_PRED, in->dims, in->rank);
    rp_lower_begin(l, out, RP_OP_IS_FINITE);
    rp_lower_operand(l, in);
    return RP_OK;
}

/* Integers need no rounding, and HLO only rounds floats. */
RP_LOWER(round)
{
    *out = rp_elem_is_float(in->elem) ? rp_lower_unary(l, RP_OP_ROUND_NEAREST_EVEN, in) : *in;
    return RP_OK;
}

static enum rp_code to_common(struct rp_lower *l, const struct rp_lower_node *node,
                              const struct rp_lower_value *in, struct rp_lower_value *a,
                              struct rp_lower_value *b)
{
    *a = in[0];
    *b = in[1];
    if (a->elem != b->elem)
        return rp_lower_refuse(l, node, "the inputs have different types");
    if (!rp_lower_broadcast_both(l, a, b))
        return rp_lower_misfit(l, node, "incompatible input shapes");
    return RP_OK;
}

static int64_t fold_pair(enum rp_opcode opcode, int64_t a, int64_t b, bool *known)
{
    int64_t v = 0;

    *known = true;
    if (opcode == RP_OP_ADD)
        *known = !__builtin_add_overflow(a, b, &v);
    else if (opcode == RP_OP_SUBTRACT)
        *known = !__builtin_sub_overflow(a, b, &v);
    else if (opcode == RP_OP_MULTIPLY)
        *known = !__builtin_mul_overflow(a, b, &v);
    else if (opcode == RP_OP_MAXIMUM)
        v = a > b ? a : b;
    else if (opcode == RP_OP_MINIMUM)
        v = a < b ? a : b;
    else if (opcode == RP_OP_DIVIDE && b > 0 && a >= 0)
        v = a / b;
    else
        *known = false;
    return v;
}

/* The result of known integers is known, too, and may be used as a shape. */
static void fold_ints(struct rp_lower *l, enum rp_opcode opcode, const struct rp_lower_value *in,
                      struct rp_lower_value *out)
{
    size_t n = in[0].nints > in[1].nints ? in[0].nints : in[1].nints;
    bool known = true;

    if (!in[0].ints || !in[1].ints || (in[0].nints != n && in[0].nints != 1) ||
        (in[1].nints != n && in[1].nints != 1) || rp_lower_elements(out) != (int64_t)n)
        return;
    int64_t *ints = RP_ARENA_NEW(&l->arena, int64_t, n + 1);
    for (size_t i = 0; ints && known && i < n; i++)
        ints[i] = fold_pair(opcode, in[0].ints[in[0].nints == n ? i : 0],
                            in[1].ints[in[1].nints == n ? i : 0], &known);
    if (ints && known) {
        out->ints = ints;
        out->nints = n;
    }
}

RP_LOWER(binary)
{
    struct rp_lower_value a, b;

    RP_TRY(to_common(l, node, in, &a, &b));
    *out = rp_lower_binary(l, rp_lower_opcode(node), &a, &b);
    fold_ints(l, rp_lower_opcode(node), in, out);
    return RP_OK;
}

static bool is_signed_integer(unsigned elem)
{
    const char *name = rp_elem_name(elem);

    return name && name[0] == 's';
}

static bool is_unsigned_integer(unsigned elem)
{
    const char *name = rp_elem_name(elem);

    return name && name[0] == 'u';
}

/*
 * Rounds towards minus infinity, whereas HLO divides integers towards zero. So the quotient is one
 * less if there is a remainder and its sign differs from that of the divisor; a remainder has the
 * sign of the dividend. Signs are compared, not multiplied, because a product may overflow. The
 * smallest integer divided by -1 is itself, as in HLO. TensorFlow's CPU kernel refuses to divide by
 * zero; here the result is HLO's, -1.
 */
RP_LOWER(floor_div)
{
    struct rp_lower_value a, b;

    RP_TRY(to_common(l, node, in, &a, &b));
    *out = rp_lower_binary(l, RP_OP_DIVIDE, &a, &b);
    if (!is_signed_integer(in->elem)) {
        if (!is_unsigned_integer(in->elem))
            *out = rp_lower_unary(l, RP_OP_FLOOR, out);
        return RP_OK;
    }
    struct rp_lower_value rest = rp_lower_binary(l, RP_OP_REMAINDER, &a, &b);
    struct rp_lower_value zero = rp_lower_fill(l, 0, &a);
    struct rp_lower_value one = rp_lower_fill(l, 1, &a);
    struct rp_lower_value apart = rp_lower_compare(l, "LT", &rest, &zero);
    struct rp_lower_value negative = rp_lower_compare(l, "LT", &b, &zero);
    apart = rp_lower_binary(l, RP_OP_XOR, &apart, &negative);
    struct rp_lower_value some = rp_lower_compare(l, "NE", &rest, &zero);
    apart = rp_lower_binary(l, RP_OP_AND, &apart, &some);
    some = rp_lower_compare(l, "NE", &b, &zero);
    apart = rp_lower_binary(l, RP_OP_AND, &apart, &some);
    struct rp_lower_value down = rp_lower_binary(l, RP_OP_SUBTRACT, out, &one);
    *out = rp_lower_select(l, &apart, &down, out);
    fold_ints(l, RP_OP_DIVIDE, in, out);
    return RP_OK;
}

RP_LOWER(compare)
{
    static const struct {
        const char *op, *direction;
    } rows[] = {{"Equal", "EQ"},     {"NotEqual", "NE"}, {"Less", "LT"},
                {"LessEqual", "LE"}, {"Greater", "GT"},  {"GreaterEqual", "GE"}};
    struct rp_lower_value a, b;
    size_t i = 0;

    while (i + 1 < sizeof rows / sizeof *rows &&
           (strlen(rows[i].op) != node->op.n || memcmp(rows[i].op, node->op.at, node->op.n) != 0))
        i++;
    RP_TRY(to_common(l, node, in, &a, &b));
    *out = rp_lower_compare(l, rows[i].direction, &a, &b);
    return RP_OK;
}

RP_LOWER(squared_difference)
{
    struct rp_lower_value a, b;

    RP_TRY(to_common(l, node, in, &a, &b));
    struct rp_lower_value d = rp_lower_binary(l, RP_OP_SUBTRACT, &a, &b);
    a = rp_lower_conjugate(l, &d);
    *out = rp_lower_binary(l, RP_OP_MULTIPLY, &d, &a);
    return RP_OK;
}

/* The result is 0 if it would divide by zero. */
RP_LOWER(div_no_nan)
{
    struct rp_lower_value a, b;

    RP_TRY(to_common(l, node, in, &a, &b));
    struct rp_lower_value zero = rp_lower_fill(l, 0, &b);
    struct rp_lower_value none = rp_lower_compare(l, "EQ", &b, &zero);
    struct rp_lower_value quotient = rp_lower_binary(l, RP_OP_DIVIDE, &a, &b);
    *out = rp_lower_select(l, &none, &zero, &quotient);
    return RP_OK;
}

RP_LOWER(add_n)
{
    *out = in[0];
    for (size_t i = 1; i < nin; i++) {
        if (in[i].rank != in[0].rank)
            return rp_lower_refuse(l, node, "the inputs have different shapes");
        *out = rp_lower_binary(l, RP_OP_ADD, out, &in[i]);
    }
    return RP_OK;
}

/* ---- activations ---- */

RP_LOWER(square)
{
    *out = rp_lower_binary(l, RP_OP_MULTIPLY, in, in);
    return RP_OK;
}

RP_LOWER(reciprocal)
{
    struct rp_lower_value one = rp_lower_fill(l, 1, in);

    *out = rp_lower_binary(l, RP_OP_DIVIDE, &one, in);
    return RP_OK;
}

RP_LOWER(relu)
{
    struct rp_lower_value zero = rp_lower_fill(l, 0, in);

    *out = rp_lower_binary(l, RP_OP_MAXIMUM, in, &zero);
    if (node->op.n == 5) { /* Relu6 */
        struct rp_lower_value six = rp_lower_fill(l, 6, in);
        *out = rp_lower_binary(l, RP_OP_MINIMUM, out, &six);
    }
    return RP_OK;
}

/* In a fused operator the slope has another name. */
RP_LOWER(leaky_relu)
{
    struct rp_lower_value zero = rp_lower_fill(l, 0, in), up = rp_lower_compare(l, "GT", in, &zero);
    float alpha = rp_lower_attr_float(node, "alpha", 0.2F);
    struct rp_lower_value slope =
        rp_lower_fill(l, (double)rp_lower_attr_float(node, "leakyrelu_alpha", alpha), in);
    struct rp_lower_value low = rp_lower_binary(l, RP_OP_MULTIPLY, in, &slope);

    *out = rp_lower_select(l, &up, in, &low);
    return RP_OK;
}

RP_LOWER(elu)
{
    struct rp_lower_value zero = rp_lower_fill(l, 0, in), up = rp_lower_compare(l, "GT", in, &zero);
    struct rp_lower_value low = rp_lower_unary(l, RP_OP_EXPM1, in);

    *out = rp_lower_select(l, &up, in, &low);
    return RP_OK;
}

/* max(x, 0) + log1p(exp(-|x|)): it does not overflow. */
RP_LOWER(softplus)
{
    struct rp_lower_value zero = rp_lower_fill(l, 0, in),
                          top = rp_lower_binary(l, RP_OP_MAXIMUM, in, &zero);
    struct rp_lower_value t = rp_lower_unary(l, RP_OP_ABS, in);

    t = rp_lower_unary(l, RP_OP_NEGATE, &t);
    t = rp_lower_unary(l, RP_OP_EXP, &t);
    t = rp_lower_unary(l, RP_OP_LOG1P, &t);
    *out = rp_lower_binary(l, RP_OP_ADD, &top, &t);
    return RP_OK;
}

RP_LOWER(softsign)
{
    struct rp_lower_value one = rp_lower_fill(l, 1, in), t = rp_lower_unary(l, RP_OP_ABS, in);

    t = rp_lower_binary(l, RP_OP_ADD, &one, &t);
    *out = rp_lower_binary(l, RP_OP_DIVIDE, in, &t);
    return RP_OK;
}

/* ---- gradients: of the output's value y (or the input's, x) and the gradient that comes in ----
 */

RP_LOWER(relu_grad)
{
    struct rp_lower_value zero = rp_lower_fill(l, 0, in);

    if (in[0].rank != in[1].rank)
        return rp_lower_refuse(l, node, "the inputs have different shapes");
    struct rp_lower_value up = rp_lower_compare(l, "GT", &in[1], &zero);
    *out = rp_lower_select(l, &up, &in[0], &zero);
    return RP_OK;
}

/* dy * (1 - y * y), and dy * y * (1 - y) */
RP_LOWER(curve_grad)
{
    bool tanh_ = node->op.at[0] == 'T';
    struct rp_lower_value one = rp_lower_fill(l, 1, in);

    if (in[0].rank != in[1].rank)
        return rp_lower_refuse(l, node, "the inputs have different shapes");
    struct rp_lower_value t = tanh_ ? rp_lower_binary(l, RP_OP_MULTIPLY, &in[0], &in[0]) : in[0];
    t = rp_lower_binary(l, RP_OP_SUBTRACT, &one, &t);
    if (!tanh_)
        t = rp_lower_binary(l, RP_OP_MULTIPLY, &in[0], &t);
    *out = rp_lower_binary(l, RP_OP_MULTIPLY, &in[1], &t);
    return RP_OK;
}

/* -0.5 * dy * y^3, and 0.5 * dy / y; of complex numbers with the conjugate of y */
RP_LOWER(root_grad)
{
    bool inverse = node->op.at[0] == 'R';
    struct rp_lower_value half = rp_lower_fill(l, inverse ? -0.5 : 0.5, in);

    if (in[0].rank != in[1].rank)
        return rp_lower_refuse(l, node, "the inputs have different shapes");
    struct rp_lower_value y = rp_lower_conjugate(l, &in[0]);
    struct rp_lower_value t = rp_lower_binary(l, RP_OP_MULTIPLY, &half, &in[1]);
    if (!inverse) {
        *out = rp_lower_binary(l, RP_OP_DIVIDE, &t, &y);
        return RP_OK;
    }
    for (int i = 0; i < 3; i++)
        t = rp_lower_binary(l, RP_OP_MULTIPLY, &t, &y);
    *out = t;
    return RP_OK;
}

/* ---- types and selections ---- */

RP_LOWER(cast)
{
    unsigned elem = rp_lower_attr_elem(node, "DstT");

    if (elem == RP_ELEM_INVALID)
        return rp_lower_refuse(l, node, "unknown type");
    *out = rp_lower_convert(l, in, elem);
    return RP_OK;
}

RP_LOWER(select)
{
    struct rp_lower_value pred = in[0], yes = in[1], no = in[2];
    int64_t rows[RP_TF_RANK];

    if (!rp_lower_broadcast_both(l, &yes, &no))
        return rp_lower_misfit(l, node, "incompatible input shapes");
    if (node->op.n == 6 && pred.rank == 1 && yes.rank > 1) { /* Select chooses whole rows */
        rows[0] = 0;
        if (pred.dims[0] != yes.dims[0])
            return rp_lower_misfit(l, node, "incompatible input shapes");
        pred = rp_lower_spread(l, &pred, rows, yes.dims, yes.rank);
    }
    if (!rp_lower_broadcast_both(l, &pred, &yes) || !rp_lower_broadcast_both(l, &pred, &no))
        return rp_lower_misfit(l, node, "incompatible input shapes");
    *out = rp_lower_select(l, &pred, &yes, &no);
    return RP_OK;
}

RP_LOWER(clip)
{
    struct rp_lower_value low = in[1], high = in[2];

    if (low.rank > in->rank || high.rank > in->rank)
        return rp_lower_refuse(l, node, "the limits have more dimensions than the input");
    low = rp_lower_broadcast(l, &low, in->dims, in->rank);
    high = rp_lower_broadcast(l, &high, in->dims, in->rank);
    *out = rp_lower_binary(l, RP_OP_MAXIMUM, in, &low);
    *out = rp_lower_binary(l, RP_OP_MINIMUM, out, &high);
    return RP_OK;
}

RP_LOWER(alike)
{
    *out = rp_lower_fill(l, node->op.at[0] == 'O', in); /* OnesLike, ZerosLike */
    return RP_OK;
}

const struct rp_lower_row rp_lower_elementwise[] = {
    {"Identity", lower_same, RP_LOWER_NO_OPCODE, 1},
    {"IdentityN", lower_same, RP_LOWER_NO_OPCODE, 1},
    {"StopGradient", lower_same, RP_LOWER_NO_OPCODE, 1},
    {"Enter", lower_same, RP_LOWER_NO_OPCODE, 1}, /* and the rest of loops: frames.c */
    {"Exit", lower_same, RP_LOWER_NO_OPCODE, 1},
    {"LoopCond", lower_same, RP_LOWER_NO_OPCODE, 1},
    {"NextIteration", lower_same, RP_LOWER_NO_OPCODE, 1},
    {"PreventGradient", lower_same, RP_LOWER_NO_OPCODE, 1},
    {"Snapshot", lower_same, RP_LOWER_NO_OPCODE, 1},
    {"CheckNumerics", lower_same, RP_LOWER_NO_OPCODE, 1},
    {"ReadVariableOp", lower_same, RP_LOWER_NO_OPCODE, 1},
    {"Neg", lower_unary, RP_OP_NEGATE, 1},
    {"Abs", lower_unary, RP_OP_ABS, 1},
    {"Exp", lower_unary, RP_OP_EXP, 1},
    {"Expm1", lower_unary, RP_OP_EXPM1, 1},
    {"Log", lower_unary, RP_OP_LOG, 1},
    {"Log1p", lower_unary, RP_OP_LOG1P, 1},
    {"Sqrt", lower_unary, RP_OP_SQRT, 1},
    {"Rsqrt", lower_unary, RP_OP_RSQRT, 1},
    {"Tanh", lower_unary, RP_OP_TANH, 1},
    {"Sigmoid", lower_unary, RP_OP_LOGISTIC, 1},
    {"Sin", lower_unary, RP_OP_SINE, 1},
    {"Cos", lower_unary, RP_OP_COSINE, 1},
    {"Tan", lower_unary, RP_OP_TAN, 1},
    {"Floor", lower_unary, RP_OP_FLOOR, 1},
    {"Ceil", lower_unary, RP_OP_CEIL, 1},
    {"Round", lower_round, RP_LOWER_NO_OPCODE, 1},
    {"Rint", lower_unary, RP_OP_ROUND_NEAREST_EVEN, 1},
    {"Sign", lower_unary, RP_OP_SIGN, 1},
    {"Erf", lower_unary, RP_OP_ERF, 1},
    {"LogicalNot", lower_unary, RP_OP_NOT, 1},
    {"Invert", lower_unary, RP_OP_NOT, 1},
    {"IsFinite", lower_is_finite, RP_LOWER_NO_OPCODE, 1},
    {"Square", lower_square, RP_LOWER_NO_OPCODE, 1},
    {"Reciprocal", lower_reciprocal, RP_LOWER_NO_OPCODE, 1},
    {"Inv", lower_reciprocal, RP_LOWER_NO_OPCODE, 1},
    {"Relu", lower_relu, RP_LOWER_NO_OPCODE, 1},
    {"Relu6", lower_relu, RP_LOWER_NO_OPCODE, 1},
    {"LeakyRelu", lower_leaky_relu, RP_LOWER_NO_OPCODE, 1},
    {"Elu", lower_elu, RP_LOWER_NO_OPCODE, 1},
    {"Softplus", lower_softplus, RP_LOWER_NO_OPCODE, 1},
    {"Softsign", lower_softsign, RP_LOWER_NO_OPCODE, 1},
    {"Add", lower_binary, RP_OP_ADD, 2},
    {"AddV2", lower_binary, RP_OP_ADD, 2},
    {"Sub", lower_binary, RP_OP_SUBTRACT, 2},
    {"Mul", lower_binary, RP_OP_MULTIPLY, 2},
    {"Div", lower_binary, RP_OP_DIVIDE, 2},
    {"RealDiv", lower_binary, RP_OP_DIVIDE, 2},
    {"Maximum", lower_binary, RP_OP_MAXIMUM, 2},
    {"Minimum", lower_binary, RP_OP_MINIMUM, 2},
    {"Pow", lower_binary, RP_OP_POWER, 2},
    {"Atan2", lower_binary, RP_OP_ATAN2, 2},
    {"TruncateMod", lower_binary, RP_OP_REMAINDER, 2},
    {"FloorDiv", lower_floor_div, RP_LOWER_NO_OPCODE, 2},
    {"LogicalAnd", lower_binary, RP_OP_AND, 2},
    {"LogicalOr", lower_binary, RP_OP_OR, 2},
    {"BitwiseAnd", lower_binary, RP_OP_AND, 2},
    {"BitwiseOr", lower_binary, RP_OP_OR, 2},
    {"BitwiseXor", lower_binary, RP_OP_XOR, 2},
    {"Equal", lower_compare, RP_OP_COMPARE, 2},
    {"NotEqual", lower_compare, RP_OP_COMPARE, 2},
    {"Less", lower_compare, RP_OP_COMPARE, 2},
    {"LessEqual", lower_compare, RP_OP_COMPARE, 2},
    {"Greater", lower_compare, RP_OP_COMPARE, 2},
    {"GreaterEqual", lower_compare, RP_OP_COMPARE, 2},
    {"SquaredDifference", lower_squared_difference, RP_LOWER_NO_OPCODE, 2},
    {"DivNoNan", lower_div_no_nan, RP_LOWER_NO_OPCODE, 2},
    {"AddN", lower_add_n, RP_LOWER_NO_OPCODE, 1},
    {"AccumulateNV2", lower_add_n, RP_LOWER_NO_OPCODE, 1},
    {"ReluGrad", lower_relu_grad, RP_LOWER_NO_OPCODE, 2},
    {"TanhGrad", lower_curve_grad, RP_LOWER_NO_OPCODE, 2},
    {"SigmoidGrad", lower_curve_grad, RP_LOWER_NO_OPCODE, 2},
    {"RsqrtGrad", lower_root_grad, RP_LOWER_NO_OPCODE, 2},
    {"SqrtGrad", lower_root_grad, RP_LOWER_NO_OPCODE, 2},
    {"Cast", lower_cast, RP_LOWER_NO_OPCODE, 1},
    {"Select", lower_select, RP_LOWER_NO_OPCODE, 3},
    {"SelectV2", lower_select, RP_LOWER_NO_OPCODE, 3},
    {"ClipByValue", lower_clip, RP_LOWER_NO_OPCODE, 3},
    {"ZerosLike", lower_alike, RP_LOWER_NO_OPCODE, 1},
    {"OnesLike", lower_alike, RP_LOWER_NO_OPCODE, 1},
    {NULL, NULL, RP_LOWER_NO_OPCODE, 0}};
