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

static const char *hlo_of(const struct lower_node *node)
{
    for (const struct lower_row *row = lower_elementwise; row->op; row++)
        if (strlen(row->op) == node->op.n && !memcmp(row->op, node->op.at, node->op.n))
            return row->hlo;
    return "";
}

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
    *out = lower_unary(l, hlo_of(node), in);
    return RP_OK;
}

LOWERING(is_finite)
{
    *out = lower_like(l, RP_ELEM_PRED, in->dims, in->rank);
    lower_begin(l, out, "is-finite");
    lower_put(l, "%%v%u)\n", in->id);
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

static int64_t fold(const char *opcode, int64_t a, int64_t b, bool *known)
{
    int64_t v = 0;

    *known = true;
    if (!strcmp(opcode, "add"))
        *known = !__builtin_add_overflow(a, b, &v);
    else if (!strcmp(opcode, "subtract"))
        *known = !__builtin_sub_overflow(a, b, &v);
    else if (!strcmp(opcode, "multiply"))
        *known = !__builtin_mul_overflow(a, b, &v);
    else if (!strcmp(opcode, "maximum"))
        v = a > b ? a : b;
    else if (!strcmp(opcode, "minimum"))
        v = a < b ? a : b;
    else if (!strcmp(opcode, "divide") && b > 0 && a >= 0)
        v = a / b;
    else
        *known = false;
    return v;
}

/* Of integers that are known the result is known: it may be a shape. */
static void fold_ints(struct lower *l, const char *opcode, const struct lower_value *in,
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
    *out = lower_binary(l, hlo_of(node), &a, &b);
    fold_ints(l, hlo_of(node), in, out);
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
    *out = lower_binary(l, "divide", &a, &b);
    if (!is_signed_integer(in->elem)) {
        if (!is_unsigned_integer(in->elem))
            *out = lower_unary(l, "floor", out);
        return RP_OK;
    }
    rest = lower_binary(l, "remainder", &a, &b);
    zero = lower_fill(l, 0, &a);
    one = lower_fill(l, 1, &a);
    apart = lower_compare(l, "LT", &rest, &zero);
    negative = lower_compare(l, "LT", &b, &zero);
    apart = lower_binary(l, "xor", &apart, &negative);
    some = lower_compare(l, "NE", &rest, &zero);
    apart = lower_binary(l, "and", &apart, &some);
    some = lower_compare(l, "NE", &b, &zero);
    apart = lower_binary(l, "and", &apart, &some);
    down = lower_binary(l, "subtract", out, &one);
    *out = lower_select(l, &apart, &down, out);
    fold_ints(l, "divide", in, out);
    return RP_OK;
}

LOWERING(compare)
{
    struct lower_value a, b;

    RP_TRY(to_common(l, node, in, &a, &b));
    *out = lower_compare(l, hlo_of(node), &a, &b);
    return RP_OK;
}

LOWERING(squared_difference)
{
    struct lower_value a, b, d;

    RP_TRY(to_common(l, node, in, &a, &b));
    d = lower_binary(l, "subtract", &a, &b);
    *out = lower_binary(l, "multiply", &d, &d);
    return RP_OK;
}

/* 0 where it would divide by zero. */
LOWERING(div_no_nan)
{
    struct lower_value a, b, zero, none, quotient;

    RP_TRY(to_common(l, node, in, &a, &b));
    zero = lower_fill(l, 0, &b);
    none = lower_compare(l, "EQ", &b, &zero);
    quotient = lower_binary(l, "divide", &a, &b);
    *out = lower_select(l, &none, &zero, &quotient);
    return RP_OK;
}

LOWERING(add_n)
{
    *out = in[0];
    for (size_t i = 1; i < nin; i++) {
        if (in[i].rank != in[0].rank)
            return lower_refuse(l, node, "the inputs have different shapes");
        *out = lower_binary(l, "add", out, &in[i]);
    }
    return RP_OK;
}

/* ---- activations ---- */

LOWERING(square)
{
    *out = lower_binary(l, "multiply", in, in);
    return RP_OK;
}

LOWERING(reciprocal)
{
    struct lower_value one = lower_fill(l, 1, in);

    *out = lower_binary(l, "divide", &one, in);
    return RP_OK;
}

LOWERING(relu)
{
    struct lower_value zero = lower_fill(l, 0, in), six;

    *out = lower_binary(l, "maximum", in, &zero);
    if (node->op.n == 5) { /* Relu6 */
        six = lower_fill(l, 6, in);
        *out = lower_binary(l, "minimum", out, &six);
    }
    return RP_OK;
}

LOWERING(leaky_relu)
{
    struct lower_value zero = lower_fill(l, 0, in), up = lower_compare(l, "GT", in, &zero);
    struct lower_value slope = lower_fill(l, (double)lower_attr_float(node, "alpha", 0.2F), in);
    struct lower_value low = lower_binary(l, "multiply", in, &slope);

    *out = lower_select(l, &up, in, &low);
    return RP_OK;
}

LOWERING(elu)
{
    struct lower_value zero = lower_fill(l, 0, in), up = lower_compare(l, "GT", in, &zero);
    struct lower_value low = lower_unary(l, "exponential-minus-one", in);

    *out = lower_select(l, &up, in, &low);
    return RP_OK;
}

/* max(x, 0) + log1p(exp(-|x|)): it does not overflow. */
LOWERING(softplus)
{
    struct lower_value zero = lower_fill(l, 0, in), top = lower_binary(l, "maximum", in, &zero), t;

    t = lower_unary(l, "abs", in);
    t = lower_unary(l, "negate", &t);
    t = lower_unary(l, "exponential", &t);
    t = lower_unary(l, "log-plus-one", &t);
    *out = lower_binary(l, "add", &top, &t);
    return RP_OK;
}

LOWERING(softsign)
{
    struct lower_value one = lower_fill(l, 1, in), t = lower_unary(l, "abs", in);

    t = lower_binary(l, "add", &one, &t);
    *out = lower_binary(l, "divide", in, &t);
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
    t = tanh_ ? lower_binary(l, "multiply", &in[0], &in[0]) : in[0];
    t = lower_binary(l, "subtract", &one, &t);
    if (!tanh_)
        t = lower_binary(l, "multiply", &in[0], &t);
    *out = lower_binary(l, "multiply", &in[1], &t);
    return RP_OK;
}

/* -0.5 * dy * y^3, and 0.5 * dy / y */
LOWERING(root_grad)
{
    bool inverse = node->op.at[0] == 'R';
    struct lower_value half = lower_fill(l, inverse ? -0.5 : 0.5, in), t;

    if (in[0].rank != in[1].rank)
        return lower_refuse(l, node, "the inputs have different shapes");
    t = lower_binary(l, "multiply", &half, &in[1]);
    if (!inverse) {
        *out = lower_binary(l, "divide", &t, &in[0]);
        return RP_OK;
    }
    for (int i = 0; i < 3; i++)
        t = lower_binary(l, "multiply", &t, &in[0]);
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
    *out = lower_binary(l, "maximum", in, &low);
    *out = lower_binary(l, "minimum", out, &high);
    return RP_OK;
}

LOWERING(alike)
{
    *out = lower_fill(l, node->op.at[0] == 'O', in); /* OnesLike, ZerosLike */
    return RP_OK;
}

const struct lower_row lower_elementwise[] = {{"Identity", same, NULL, 1},
                                              {"IdentityN", same, NULL, 1},
                                              {"StopGradient", same, NULL, 1},
                                              {"PreventGradient", same, NULL, 1},
                                              {"Snapshot", same, NULL, 1},
                                              {"CheckNumerics", same, NULL, 1},
                                              {"ReadVariableOp", same, NULL, 1},
                                              {"Neg", unary, "negate", 1},
                                              {"Abs", unary, "abs", 1},
                                              {"Exp", unary, "exponential", 1},
                                              {"Expm1", unary, "exponential-minus-one", 1},
                                              {"Log", unary, "log", 1},
                                              {"Log1p", unary, "log-plus-one", 1},
                                              {"Sqrt", unary, "sqrt", 1},
                                              {"Rsqrt", unary, "rsqrt", 1},
                                              {"Tanh", unary, "tanh", 1},
                                              {"Sigmoid", unary, "logistic", 1},
                                              {"Sin", unary, "sine", 1},
                                              {"Cos", unary, "cosine", 1},
                                              {"Tan", unary, "tan", 1},
                                              {"Floor", unary, "floor", 1},
                                              {"Ceil", unary, "ceil", 1},
                                              {"Round", unary, "round-nearest-even", 1},
                                              {"Rint", unary, "round-nearest-even", 1},
                                              {"Sign", unary, "sign", 1},
                                              {"Erf", unary, "erf", 1},
                                              {"LogicalNot", unary, "not", 1},
                                              {"Invert", unary, "not", 1},
                                              {"IsFinite", is_finite, NULL, 1},
                                              {"Square", square, NULL, 1},
                                              {"Reciprocal", reciprocal, NULL, 1},
                                              {"Inv", reciprocal, NULL, 1},
                                              {"Relu", relu, NULL, 1},
                                              {"Relu6", relu, NULL, 1},
                                              {"LeakyRelu", leaky_relu, NULL, 1},
                                              {"Elu", elu, NULL, 1},
                                              {"Softplus", softplus, NULL, 1},
                                              {"Softsign", softsign, NULL, 1},
                                              {"Add", binary, "add", 2},
                                              {"AddV2", binary, "add", 2},
                                              {"Sub", binary, "subtract", 2},
                                              {"Mul", binary, "multiply", 2},
                                              {"Div", binary, "divide", 2},
                                              {"RealDiv", binary, "divide", 2},
                                              {"Maximum", binary, "maximum", 2},
                                              {"Minimum", binary, "minimum", 2},
                                              {"Pow", binary, "power", 2},
                                              {"Atan2", binary, "atan2", 2},
                                              {"TruncateMod", binary, "remainder", 2},
                                              {"FloorDiv", floor_div, NULL, 2},
                                              {"LogicalAnd", binary, "and", 2},
                                              {"LogicalOr", binary, "or", 2},
                                              {"BitwiseAnd", binary, "and", 2},
                                              {"BitwiseOr", binary, "or", 2},
                                              {"BitwiseXor", binary, "xor", 2},
                                              {"Equal", compare, "EQ", 2},
                                              {"NotEqual", compare, "NE", 2},
                                              {"Less", compare, "LT", 2},
                                              {"LessEqual", compare, "LE", 2},
                                              {"Greater", compare, "GT", 2},
                                              {"GreaterEqual", compare, "GE", 2},
                                              {"SquaredDifference", squared_difference, NULL, 2},
                                              {"DivNoNan", div_no_nan, NULL, 2},
                                              {"AddN", add_n, NULL, 1},
                                              {"AccumulateNV2", add_n, NULL, 1},
                                              {"ReluGrad", relu_grad, NULL, 2},
                                              {"TanhGrad", curve_grad, NULL, 2},
                                              {"SigmoidGrad", curve_grad, NULL, 2},
                                              {"RsqrtGrad", root_grad, NULL, 2},
                                              {"SqrtGrad", root_grad, NULL, 2},
                                              {"Cast", cast, NULL, 1},
                                              {"Select", select_, NULL, 3},
                                              {"SelectV2", select_, NULL, 3},
                                              {"ClipByValue", clip, NULL, 3},
                                              {"ZerosLike", alike, NULL, 1},
                                              {"OnesLike", alike, NULL, 1},
                                              {NULL, NULL, NULL, 0}};
