/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators of TensorFlow that work element by element, as HLO: most are one opcode; activations,
 * their gradients and a few others are short sequences. Binary ones broadcast as NumPy does.
 */
#include "lower/inner.h"

#include <math.h>
#include <string.h>

/* A lower_fn; most need but some of what they are given. */
#define UNUSED __attribute__((unused))
#define LOWERING(name)                                                              \
    static enum rp_code name(struct lower *l, UNUSED const struct lower_node *node, \
                             const struct lower_value *in, UNUSED size_t nin,       \
                             struct lower_value *out, UNUSED size_t *nout)

LOWERING(same)
{
    if (nin > LOWER_OUTPUTS)
        return lower_refuse(l, node, "too many outputs");
    *nout = nin ? nin : 1;
    memcpy(out, in, nin * sizeof *in);
    return RP_OK;
}

LOWERING(unary)
{
    *out = lower_unary(l, lower_opcode(node), in);
    return RP_OK;
}

LOWERING(is_finite)
{
    *out = lower_like(l, RP_ELEM_PRED, in->dims, in->rank);
    lower_begin(l, out, RP_OP_IS_FINITE);
    lower_operand(l, in);
    return RP_OK;
}

static enum rp_code to_common(struct lower *l, const struct lower_node *node,
                              const struct lower_value *in, struct lower_value *a,
                              struct lower_value *b)
{
    *a = in[0];
    *b = in[1];
    if (a->elem != b->elem)
        return lower_refuse(l, node, "the inputs have different types");
    if (!lower_broadcast_both(l, a, b))
        return lower_misfit(l, node, "incompatible input shapes");
    return RP_OK;
}

static int64_t fold(enum rp_opcode opcode, int64_t a, int64_t b, bool *known)
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

/* Of integers that are known the result is known: it may be a shape. */
static void fold_ints(struct lower *l, enum rp_opcode opcode, const struct lower_value *in,
                      struct lower_value *out)
{
    size_t n = in[0].nints > in[1].nints ? in[0].nints : in[1].nints;
    int64_t *ints;
    bool known = true;

    if (!in[0].ints || !in[1].ints || (in[0].nints != n && in[0].nints != 1) ||
        (in[1].nints != n && in[1].nints != 1) || lower_elements(out) != (int64_t)n)
        return;
    ints = RP_ARENA_NEW(&l->arena, int64_t, n + 1);
    for (size_t i = 0; ints && known && i < n; i++)
        ints[i] = fold(opcode, in[0].ints[in[0].nints == n ? i : 0],
                       in[1].ints[in[1].nints == n ? i : 0], &known);
    if (ints && known) {
        out->ints = ints;
        out->nints = n;
    }
}

LOWERING(binary)
{
    struct lower_value a, b;

    RP_TRY(to_common(l, node, in, &a, &b));
    *out = lower_binary(l, lower_opcode(node), &a, &b);
    fold_ints(l, lower_opcode(node), in, out);
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
 * Towards minus infinity; HLO divides integers towards zero. So the quotient is one less where
 * something remains and the signs differ: of the remainder and the divisor, because a remainder has
 * the sign of the dividend. Signs are compared, not multiplied: a product may overflow. The
 * smallest integer by -1 is itself, as in HLO. TensorFlow's CPU kernel refuses to divide by zero;
 * here the result is HLO's, -1.
 */
LOWERING(floor_div)
{
    struct lower_value a, b, rest, zero, one, apart, negative, some, down;

    RP_TRY(to_common(l, node, in, &a, &b));
    *out = lower_binary(l, RP_OP_DIVIDE, &a, &b);
    if (!is_signed_integer(in->elem)) {
        if (!is_unsigned_integer(in->elem))
            *out = lower_unary(l, RP_OP_FLOOR, out);
        return RP_OK;
    }
    rest = lower_binary(l, RP_OP_REMAINDER, &a, &b);
    zero = lower_fill(l, 0, &a);
    one = lower_fill(l, 1, &a);
    apart = lower_compare(l, "LT", &rest, &zero);
    negative = lower_compare(l, "LT", &b, &zero);
    apart = lower_binary(l, RP_OP_XOR, &apart, &negative);
    some = lower_compare(l, "NE", &rest, &zero);
    apart = lower_binary(l, RP_OP_AND, &apart, &some);
    some = lower_compare(l, "NE", &b, &zero);
    apart = lower_binary(l, RP_OP_AND, &apart, &some);
    down = lower_binary(l, RP_OP_SUBTRACT, out, &one);
    *out = lower_select(l, &apart, &down, out);
    fold_ints(l, RP_OP_DIVIDE, in, out);
    return RP_OK;
}

LOWERING(compare)
{
    static const struct {
        const char *op, *direction;
    } rows[] = {{"Equal", "EQ"},     {"NotEqual", "NE"}, {"Less", "LT"},
                {"LessEqual", "LE"}, {"Greater", "GT"},  {"GreaterEqual", "GE"}};
    struct lower_value a, b;
    size_t i = 0;

    while (i + 1 < sizeof rows / sizeof *rows &&
           (strlen(rows[i].op) != node->op.n || memcmp(rows[i].op, node->op.at, node->op.n) != 0))
        i++;
    RP_TRY(to_common(l, node, in, &a, &b));
    *out = lower_compare(l, rows[i].direction, &a, &b);
    return RP_OK;
}

LOWERING(squared_difference)
{
    struct lower_value a, b, d;

    RP_TRY(to_common(l, node, in, &a, &b));
    d = lower_binary(l, RP_OP_SUBTRACT, &a, &b);
    *out = lower_binary(l, RP_OP_MULTIPLY, &d, &d);
    return RP_OK;
}

/* 0 where it would divide by zero. */
LOWERING(div_no_nan)
{
    struct lower_value a, b, zero, none, quotient;

    RP_TRY(to_common(l, node, in, &a, &b));
    zero = lower_fill(l, 0, &b);
    none = lower_compare(l, "EQ", &b, &zero);
    quotient = lower_binary(l, RP_OP_DIVIDE, &a, &b);
    *out = lower_select(l, &none, &zero, &quotient);
    return RP_OK;
}

LOWERING(add_n)
{
    *out = in[0];
    for (size_t i = 1; i < nin; i++) {
        if (in[i].rank != in[0].rank)
            return lower_refuse(l, node, "the inputs have different shapes");
        *out = lower_binary(l, RP_OP_ADD, out, &in[i]);
    }
    return RP_OK;
}

/* ---- activations ---- */

LOWERING(square)
{
    *out = lower_binary(l, RP_OP_MULTIPLY, in, in);
    return RP_OK;
}

LOWERING(reciprocal)
{
    struct lower_value one = lower_fill(l, 1, in);

    *out = lower_binary(l, RP_OP_DIVIDE, &one, in);
    return RP_OK;
}

LOWERING(relu)
{
    struct lower_value zero = lower_fill(l, 0, in), six;

    *out = lower_binary(l, RP_OP_MAXIMUM, in, &zero);
    if (node->op.n == 5) { /* Relu6 */
        six = lower_fill(l, 6, in);
        *out = lower_binary(l, RP_OP_MINIMUM, out, &six);
    }
    return RP_OK;
}

LOWERING(leaky_relu)
{
    struct lower_value zero = lower_fill(l, 0, in), up = lower_compare(l, "GT", in, &zero);
    struct lower_value slope = lower_fill(l, (double)lower_attr_float(node, "alpha", 0.2F), in);
    struct lower_value low = lower_binary(l, RP_OP_MULTIPLY, in, &slope);

    *out = lower_select(l, &up, in, &low);
    return RP_OK;
}

LOWERING(elu)
{
    struct lower_value zero = lower_fill(l, 0, in), up = lower_compare(l, "GT", in, &zero);
    struct lower_value low = lower_unary(l, RP_OP_EXPM1, in);

    *out = lower_select(l, &up, in, &low);
    return RP_OK;
}

/* max(x, 0) + log1p(exp(-|x|)): it does not overflow. */
LOWERING(softplus)
{
    struct lower_value zero = lower_fill(l, 0, in), top = lower_binary(l, RP_OP_MAXIMUM, in, &zero),
                       t;

    t = lower_unary(l, RP_OP_ABS, in);
    t = lower_unary(l, RP_OP_NEGATE, &t);
    t = lower_unary(l, RP_OP_EXP, &t);
    t = lower_unary(l, RP_OP_LOG1P, &t);
    *out = lower_binary(l, RP_OP_ADD, &top, &t);
    return RP_OK;
}

LOWERING(softsign)
{
    struct lower_value one = lower_fill(l, 1, in), t = lower_unary(l, RP_OP_ABS, in);

    t = lower_binary(l, RP_OP_ADD, &one, &t);
    *out = lower_binary(l, RP_OP_DIVIDE, in, &t);
    return RP_OK;
}

/* ---- gradients: of the output's value y (or the input's, x) and the gradient that comes in ----
 */

LOWERING(relu_grad)
{
    struct lower_value zero = lower_fill(l, 0, in), up;

    if (in[0].rank != in[1].rank)
        return lower_refuse(l, node, "the inputs have different shapes");
    up = lower_compare(l, "GT", &in[1], &zero);
    *out = lower_select(l, &up, &in[0], &zero);
    return RP_OK;
}

/* dy * (1 - y * y), and dy * y * (1 - y) */
LOWERING(curve_grad)
{
    bool tanh_ = node->op.at[0] == 'T';
    struct lower_value one = lower_fill(l, 1, in), t;

    if (in[0].rank != in[1].rank)
        return lower_refuse(l, node, "the inputs have different shapes");
    t = tanh_ ? lower_binary(l, RP_OP_MULTIPLY, &in[0], &in[0]) : in[0];
    t = lower_binary(l, RP_OP_SUBTRACT, &one, &t);
    if (!tanh_)
        t = lower_binary(l, RP_OP_MULTIPLY, &in[0], &t);
    *out = lower_binary(l, RP_OP_MULTIPLY, &in[1], &t);
    return RP_OK;
}

/* -0.5 * dy * y^3, and 0.5 * dy / y */
LOWERING(root_grad)
{
    bool inverse = node->op.at[0] == 'R';
    struct lower_value half = lower_fill(l, inverse ? -0.5 : 0.5, in), t;

    if (in[0].rank != in[1].rank)
        return lower_refuse(l, node, "the inputs have different shapes");
    t = lower_binary(l, RP_OP_MULTIPLY, &half, &in[1]);
    if (!inverse) {
        *out = lower_binary(l, RP_OP_DIVIDE, &t, &in[0]);
        return RP_OK;
    }
    for (int i = 0; i < 3; i++)
        t = lower_binary(l, RP_OP_MULTIPLY, &t, &in[0]);
    *out = t;
    return RP_OK;
}

/* ---- types and choices ---- */

LOWERING(cast)
{
    unsigned elem = lower_attr_elem(node, "DstT");

    if (elem == RP_ELEM_INVALID)
        return lower_refuse(l, node, "unknown type");
    *out = lower_convert(l, in, elem);
    return RP_OK;
}

LOWERING(select_)
{
    struct lower_value pred = in[0], yes = in[1], no = in[2];
    int64_t rows[RP_TF_RANK];

    if (!lower_broadcast_both(l, &yes, &no))
        return lower_misfit(l, node, "incompatible input shapes");
    if (node->op.n == 6 && pred.rank == 1 && yes.rank > 1) { /* Select chooses whole rows */
        rows[0] = 0;
        if (pred.dims[0] != yes.dims[0])
            return lower_misfit(l, node, "incompatible input shapes");
        pred = lower_spread(l, &pred, rows, yes.dims, yes.rank);
    }
    if (!lower_broadcast_both(l, &pred, &yes) || !lower_broadcast_both(l, &pred, &no))
        return lower_misfit(l, node, "incompatible input shapes");
    *out = lower_select(l, &pred, &yes, &no);
    return RP_OK;
}

LOWERING(clip)
{
    struct lower_value low = in[1], high = in[2];

    if (low.rank > in->rank || high.rank > in->rank)
        return lower_refuse(l, node, "the limits have more dimensions than the input");
    low = lower_broadcast(l, &low, in->dims, in->rank);
    high = lower_broadcast(l, &high, in->dims, in->rank);
    *out = lower_binary(l, RP_OP_MAXIMUM, in, &low);
    *out = lower_binary(l, RP_OP_MINIMUM, out, &high);
    return RP_OK;
}

LOWERING(alike)
{
    *out = lower_fill(l, node->op.at[0] == 'O', in); /* OnesLike, ZerosLike */
    return RP_OK;
}

const struct lower_row lower_elementwise[] = {
    {"Identity", same, LOWER_NO_OPCODE, 1},
    {"IdentityN", same, LOWER_NO_OPCODE, 1},
    {"StopGradient", same, LOWER_NO_OPCODE, 1},
    {"PreventGradient", same, LOWER_NO_OPCODE, 1},
    {"Snapshot", same, LOWER_NO_OPCODE, 1},
    {"CheckNumerics", same, LOWER_NO_OPCODE, 1},
    {"ReadVariableOp", same, LOWER_NO_OPCODE, 1},
    {"Neg", unary, RP_OP_NEGATE, 1},
    {"Abs", unary, RP_OP_ABS, 1},
    {"Exp", unary, RP_OP_EXP, 1},
    {"Expm1", unary, RP_OP_EXPM1, 1},
    {"Log", unary, RP_OP_LOG, 1},
    {"Log1p", unary, RP_OP_LOG1P, 1},
    {"Sqrt", unary, RP_OP_SQRT, 1},
    {"Rsqrt", unary, RP_OP_RSQRT, 1},
    {"Tanh", unary, RP_OP_TANH, 1},
    {"Sigmoid", unary, RP_OP_LOGISTIC, 1},
    {"Sin", unary, RP_OP_SINE, 1},
    {"Cos", unary, RP_OP_COSINE, 1},
    {"Tan", unary, RP_OP_TAN, 1},
    {"Floor", unary, RP_OP_FLOOR, 1},
    {"Ceil", unary, RP_OP_CEIL, 1},
    {"Round", unary, RP_OP_ROUND_NEAREST_EVEN, 1},
    {"Rint", unary, RP_OP_ROUND_NEAREST_EVEN, 1},
    {"Sign", unary, RP_OP_SIGN, 1},
    {"Erf", unary, RP_OP_ERF, 1},
    {"LogicalNot", unary, RP_OP_NOT, 1},
    {"Invert", unary, RP_OP_NOT, 1},
    {"IsFinite", is_finite, LOWER_NO_OPCODE, 1},
    {"Square", square, LOWER_NO_OPCODE, 1},
    {"Reciprocal", reciprocal, LOWER_NO_OPCODE, 1},
    {"Inv", reciprocal, LOWER_NO_OPCODE, 1},
    {"Relu", relu, LOWER_NO_OPCODE, 1},
    {"Relu6", relu, LOWER_NO_OPCODE, 1},
    {"LeakyRelu", leaky_relu, LOWER_NO_OPCODE, 1},
    {"Elu", elu, LOWER_NO_OPCODE, 1},
    {"Softplus", softplus, LOWER_NO_OPCODE, 1},
    {"Softsign", softsign, LOWER_NO_OPCODE, 1},
    {"Add", binary, RP_OP_ADD, 2},
    {"AddV2", binary, RP_OP_ADD, 2},
    {"Sub", binary, RP_OP_SUBTRACT, 2},
    {"Mul", binary, RP_OP_MULTIPLY, 2},
    {"Div", binary, RP_OP_DIVIDE, 2},
    {"RealDiv", binary, RP_OP_DIVIDE, 2},
    {"Maximum", binary, RP_OP_MAXIMUM, 2},
    {"Minimum", binary, RP_OP_MINIMUM, 2},
    {"Pow", binary, RP_OP_POWER, 2},
    {"Atan2", binary, RP_OP_ATAN2, 2},
    {"TruncateMod", binary, RP_OP_REMAINDER, 2},
    {"FloorDiv", floor_div, LOWER_NO_OPCODE, 2},
    {"LogicalAnd", binary, RP_OP_AND, 2},
    {"LogicalOr", binary, RP_OP_OR, 2},
    {"BitwiseAnd", binary, RP_OP_AND, 2},
    {"BitwiseOr", binary, RP_OP_OR, 2},
    {"BitwiseXor", binary, RP_OP_XOR, 2},
    {"Equal", compare, RP_OP_COMPARE, 2},
    {"NotEqual", compare, RP_OP_COMPARE, 2},
    {"Less", compare, RP_OP_COMPARE, 2},
    {"LessEqual", compare, RP_OP_COMPARE, 2},
    {"Greater", compare, RP_OP_COMPARE, 2},
    {"GreaterEqual", compare, RP_OP_COMPARE, 2},
    {"SquaredDifference", squared_difference, LOWER_NO_OPCODE, 2},
    {"DivNoNan", div_no_nan, LOWER_NO_OPCODE, 2},
    {"AddN", add_n, LOWER_NO_OPCODE, 1},
    {"AccumulateNV2", add_n, LOWER_NO_OPCODE, 1},
    {"ReluGrad", relu_grad, LOWER_NO_OPCODE, 2},
    {"TanhGrad", curve_grad, LOWER_NO_OPCODE, 2},
    {"SigmoidGrad", curve_grad, LOWER_NO_OPCODE, 2},
    {"RsqrtGrad", root_grad, LOWER_NO_OPCODE, 2},
    {"SqrtGrad", root_grad, LOWER_NO_OPCODE, 2},
    {"Cast", cast, LOWER_NO_OPCODE, 1},
    {"Select", select_, LOWER_NO_OPCODE, 3},
    {"SelectV2", select_, LOWER_NO_OPCODE, 3},
    {"ClipByValue", clip, LOWER_NO_OPCODE, 3},
    {"ZerosLike", alike, LOWER_NO_OPCODE, 1},
    {"OnesLike", alike, LOWER_NO_OPCODE, 1},
    {NULL, NULL, LOWER_NO_OPCODE, 0}};
