/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators of TensorFlow that combine elements along dimensions, as HLO: reductions, softmax and
 * the losses over it, biases, places of the largest, running sums. Matrix products, tables and
 * images are in files of their own.
 */
#include "lower/inner.h"

#include <math.h>
#include <string.h>

#define LOWER(name)                                                                             \
    static enum rp_code name(struct lower *l, const struct lower_node *node,                    \
                             const struct lower_value *in, size_t nin, struct lower_value *out, \
                             size_t *nout)

/* ---- reductions ---- */

/* The number of elements of a shape that is known. */
static void know_product(struct lower *l, const struct lower_value *in, struct lower_value *out)
{
    int64_t *ints = RP_ARENA_NEW(&l->arena, int64_t, 1);

    if (!ints)
        return;
    *ints = 1;
    for (size_t i = 0; i < in->nints; i++)
        if (__builtin_mul_overflow(*ints, in->ints[i], ints))
            return;
    out->ints = ints;
    out->nints = 1;
}

LOWER(reduce)
{
    bool over[RP_TF_RANK] = {false}, mean = node->op.n == 4 && !memcmp(node->op.at, "Mean", 4);
    int64_t dims[RP_TF_RANK], count = 1;
    struct lower_value divisor;
    size_t axis, rank = 0;

    (void)nin;
    (void)nout;
    RP_TRY(lower_need_ints(l, node, &in[1], "axes"));
    for (size_t i = 0; i < in[1].nints; i++) {
        if (!lower_axis(in[1].ints[i], in->rank, &axis))
            return lower_refuse(l, node, "a reduced dimension is out of range");
        over[axis] = true;
    }
    *out = lower_reduce(l, mean ? RP_OP_ADD : lower_opcode(node), in, over);
    for (size_t i = 0; i < in->rank; i++) {
        count *= over[i] ? in->dims[i] : 1;
        if (!over[i] || lower_attr_bool(node, "keep_dims"))
            dims[rank++] = over[i] ? 1 : in->dims[i];
    }
    if (mean) {
        divisor = lower_fill(l, (double)count, out);
        *out = lower_binary(l, RP_OP_DIVIDE, out, &divisor);
    }
    *out = lower_reshape(l, out, dims, rank);
    if (in->ints && in->rank == 1 && over[0] && lower_opcode(node) == RP_OP_MULTIPLY)
        know_product(l, in, out);
    return RP_OK;
}

/* ---- softmax, over the last dimension ---- */

/* A value without the last dimension, spread over it again. */
static struct lower_value along_last(struct lower *l, const struct lower_value *reduced,
                                     const struct lower_value *like)
{
    int64_t map[RP_TF_RANK];

    for (size_t i = 0; i < reduced->rank; i++)
        map[i] = (int64_t)i;
    return lower_spread(l, reduced, map, like->dims, like->rank);
}

LOWER(softmax)
{
    bool over[RP_TF_RANK] = {false}, log_ = node->op.at[0] == 'L';
    struct lower_value top, shifted, raised, sum;

    (void)nin;
    (void)nout;
    if (!in->rank)
        return lower_refuse(l, node, "the input is a scalar");
    over[in->rank - 1] = true;
    top = lower_reduce(l, RP_OP_MAXIMUM, in, over);
    top = along_last(l, &top, in);
    shifted = lower_binary(l, RP_OP_SUBTRACT, in, &top);
    raised = lower_unary(l, RP_OP_EXP, &shifted);
    sum = lower_reduce(l, RP_OP_ADD, &raised, over);
    if (log_)
        sum = lower_unary(l, RP_OP_LOG, &sum);
    sum = along_last(l, &sum, in);
    *out = lower_binary(l, log_ ? RP_OP_SUBTRACT : RP_OP_DIVIDE, log_ ? &shifted : &raised, &sum);
    return RP_OK;
}

/* ---- biases ---- */

/* The vector along the channels: the last dimension, or the second of NCHW. */
static enum rp_code add_bias(struct lower *l, const struct lower_node *node,
                             const struct lower_value *a, const struct lower_value *bias,
                             struct lower_value *out)
{
    bool second = lower_attr_is(node, "data_format", "NCHW");
    int64_t map = second ? 1 : (int64_t)a->rank - 1;
    struct lower_value wide;

    if (bias->rank != 1 || a->rank < 2 || bias->dims[0] != a->dims[map])
        return lower_misfit(l, node, "the bias does not match the input");
    wide = lower_spread(l, bias, &map, a->dims, a->rank);
    *out = lower_binary(l, RP_OP_ADD, a, &wide);
    return RP_OK;
}

LOWER(bias_add)
{
    (void)nin;
    (void)nout;
    return add_bias(l, node, &in[0], &in[1], out);
}

LOWER(bias_add_grad)
{
    bool over[RP_TF_RANK] = {false};
    size_t kept = lower_attr_is(node, "data_format", "NCHW") ? 1 : (size_t)in->rank - 1;

    (void)nin;
    (void)nout;
    if (in->rank < 2)
        return lower_refuse(l, node, "the input has too few dimensions");
    for (size_t i = 0; i < in->rank; i++)
        over[i] = i != kept;
    *out = lower_reduce(l, RP_OP_ADD, in, over);
    return RP_OK;
}

LOWER(l2_loss)
{
    bool over[RP_TF_RANK];
    struct lower_value t = lower_binary(l, RP_OP_MULTIPLY, in, in), half;

    (void)node;
    (void)nin;
    (void)nout;
    memset(over, 1, sizeof over);
    t = lower_reduce(l, RP_OP_ADD, &t, over);
    half = lower_fill(l, 0.5, &t);
    *out = lower_binary(l, RP_OP_MULTIPLY, &t, &half);
    return RP_OK;
}

/* ---- losses over softmax ---- */

/* 1 at the class of each row, else 0. */
static struct lower_value one_of_classes(struct lower *l, const struct lower_value *labels,
                                         const struct lower_value *like)
{
    struct lower_value places = lower_like(l, labels->elem, like->dims, 2), wide, hit, one, zero;
    int64_t map = 0;

    lower_begin(l, &places, RP_OP_IOTA);
    lower_set_int(l, RP_ATTR_IOTA_DIMENSION, 1);
    wide = lower_spread(l, labels, &map, like->dims, 2);
    hit = lower_compare(l, "EQ", &places, &wide);
    one = lower_fill(l, 1, like);
    zero = lower_fill(l, 0, like);
    return lower_select(l, &hit, &one, &zero);
}

/* The loss of each row, and its gradient: softmax less the labels. */
LOWER(entropy)
{
    bool over[2] = {false, true}, sparse = node->op.at[1] == 'p';
    struct lower_value labels = in[1], top, shifted, raised, sum, t;

    (void)nin;
    if (in->rank != 2 || labels.rank != (sparse ? 1u : 2u) || labels.dims[0] != in->dims[0] ||
        (!sparse && labels.dims[1] != in->dims[1]))
        return lower_misfit(l, node, "the labels do not match the input");
    if (sparse)
        labels = one_of_classes(l, &in[1], in);
    top = lower_reduce(l, RP_OP_MAXIMUM, in, over);
    top = along_last(l, &top, in);
    shifted = lower_binary(l, RP_OP_SUBTRACT, in, &top);
    raised = lower_unary(l, RP_OP_EXP, &shifted);
    sum = lower_reduce(l, RP_OP_ADD, &raised, over);
    t = lower_unary(l, RP_OP_LOG, &sum);
    t = along_last(l, &t, in);
    t = lower_binary(l, RP_OP_SUBTRACT, &t, &shifted);
    t = lower_binary(l, RP_OP_MULTIPLY, &t, &labels);
    out[0] = lower_reduce(l, RP_OP_ADD, &t, over);
    sum = along_last(l, &sum, in);
    t = lower_binary(l, RP_OP_DIVIDE, &raised, &sum);
    out[1] = lower_binary(l, RP_OP_SUBTRACT, &t, &labels);
    *nout = 2;
    return RP_OK;
}

/* ---- places and running values ---- */

/* The first place of the largest or smallest: of all places that hold it, the least. */
LOWER(arg_best)
{
    bool over[RP_TF_RANK] = {false};
    unsigned elem = lower_attr_elem(node, "output_type");
    int64_t map[RP_TF_RANK];
    struct lower_value best, hit, places, none;
    size_t axis, n = 0;

    (void)nin;
    (void)nout;
    RP_TRY(lower_need_ints(l, node, &in[1], "axis"));
    if (!in[1].nints || !lower_axis(in[1].ints[0], in->rank, &axis))
        return lower_misfit(l, node, "the axis is out of range");
    over[axis] = true;
    best = lower_reduce(l, lower_opcode(node), in, over);
    for (size_t i = 0; i < in->rank; i++)
        if (i != axis)
            map[n++] = (int64_t)i;
    best = lower_spread(l, &best, map, in->dims, in->rank);
    hit = lower_compare(l, "EQ", in, &best);
    places = lower_like(l, elem == RP_ELEM_INVALID ? RP_ELEM_S64 : elem, in->dims, in->rank);
    lower_begin(l, &places, RP_OP_IOTA);
    lower_set_int(l, RP_ATTR_IOTA_DIMENSION, axis);
    none = lower_fill(l, (double)in->dims[axis], &places);
    places = lower_select(l, &hit, &places, &none);
    *out = lower_reduce(l, RP_OP_MINIMUM, &places, over);
    return RP_OK;
}

/* Over windows that reach back to the first element, or forward to the last. */
LOWER(running)
{
    bool without = lower_attr_bool(node, "exclusive"), back = lower_attr_bool(node, "reverse");
    struct rp_window window;
    struct lower_value start;
    uint32_t region;
    size_t axis;
    int64_t n;

    (void)nin;
    (void)nout;
    RP_TRY(lower_need_ints(l, node, &in[1], "axis"));
    if (!in[1].nints || !lower_axis(in[1].ints[0], in->rank, &axis) || !in->dims[axis])
        return lower_misfit(l, node, "the axis is out of range");
    if (in->rank > RP_WINDOW_DIMS)
        return lower_refuse(l, node, "the input has too many dimensions");
    n = in->dims[axis];
    region = lower_region(l, lower_opcode(node), in->elem);
    start = lower_scalar(l, in->elem, lower_opcode(node) != RP_OP_ADD ? 1 : 0);
    *out = lower_like(l, in->elem, in->dims, in->rank);
    lower_begin(l, out, RP_OP_REDUCE_WINDOW);
    lower_operand(l, in);
    lower_operand(l, &start);
    window = lower_window(in->rank);
    window.dim[axis].size = n;
    window.dim[axis].pad_low = back ? without ? -1 : 0 : without ? n : n - 1;
    window.dim[axis].pad_high = back ? without ? n : n - 1 : without ? -1 : 0;
    lower_set_window(l, &window);
    lower_calls(l, region);
    return RP_OK;
}

LOWER(top_k)
{
    int64_t dims[RP_TF_RANK], k;
    unsigned elem = lower_attr_elem(node, "index_type");
    struct lower_value both;

    (void)nin;
    RP_TRY(lower_need_ints(l, node, &in[1], "number"));
    if (!in->rank || !in[1].nints || in[1].ints[0] < 0 || in[1].ints[0] > in->dims[in->rank - 1])
        return lower_misfit(l, node, "k is larger than the input");
    k = in[1].ints[0];
    memcpy(dims, in->dims, sizeof dims);
    dims[in->rank - 1] = k;
    out[0] = lower_like(l, in->elem, dims, in->rank);
    out[1] = lower_like(l, RP_ELEM_S32, dims, in->rank);
    both = lower_like(l, in->elem, dims, in->rank);
    lower_begin_tuple(l, &both, RP_OP_TOPK, out, 2);
    lower_operand(l, in);
    lower_set_int(l, RP_ATTR_K, k);
    lower_set(l, rp_attr_flag(RP_ATTR_LARGEST, true));
    for (size_t i = 0; i < 2; i++)
        lower_part(l, &out[i], &both, i);
    if (elem != RP_ELEM_INVALID)
        out[1] = lower_convert(l, &out[1], elem);
    *nout = 2;
    return RP_OK;
}

LOWER(euclidean_norm)
{
    struct lower_value t[2] = {lower_binary(l, RP_OP_MULTIPLY, in, in), in[1]};

    RP_TRY(reduce(l, node, t, nin, out, nout));
    *out = lower_unary(l, RP_OP_SQRT, out);
    return RP_OK;
}

const struct lower_row lower_math[] = {
    {"Sum", reduce, RP_OP_ADD, 2},
    {"Mean", reduce, RP_OP_ADD, 2},
    {"Max", reduce, RP_OP_MAXIMUM, 2},
    {"Min", reduce, RP_OP_MINIMUM, 2},
    {"Prod", reduce, RP_OP_MULTIPLY, 2},
    {"All", reduce, RP_OP_AND, 2},
    {"Any", reduce, RP_OP_OR, 2},
    {"EuclideanNorm", euclidean_norm, RP_OP_ADD, 2},
    {"Softmax", softmax, LOWER_NO_OPCODE, 1},
    {"LogSoftmax", softmax, LOWER_NO_OPCODE, 1},
    {"BiasAdd", bias_add, LOWER_NO_OPCODE, 2},
    {"BiasAddV1", bias_add, LOWER_NO_OPCODE, 2},
    {"BiasAddGrad", bias_add_grad, LOWER_NO_OPCODE, 1},
    {"L2Loss", l2_loss, LOWER_NO_OPCODE, 1},
    {"SoftmaxCrossEntropyWithLogits", entropy, LOWER_NO_OPCODE, 2},
    {"SparseSoftmaxCrossEntropyWithLogits", entropy, LOWER_NO_OPCODE, 2},
    {"ArgMax", arg_best, RP_OP_MAXIMUM, 2},
    {"ArgMin", arg_best, RP_OP_MINIMUM, 2},
    {"Cumsum", running, RP_OP_ADD, 2},
    {"Cumprod", running, RP_OP_MULTIPLY, 2},
    {"TopKV2", top_k, LOWER_NO_OPCODE, 2},
    {NULL, NULL, LOWER_NO_OPCODE, 0}};
