/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lowers operators of TensorFlow that combine elements along dimensions: reductions, softmax and
 * its losses, biases, positions of extreme values, cumulative sums. Matrix products, tables and
 * images have files of their own.
 */
#include "lower/inner.h"
#include "program/opcodes.h"

#include <string.h>

/* ---- reductions ---- */

/* Computes the product of known integers: the number of elements of a shape. */
static void know_product(struct rp_lower *l, const struct rp_lower_value *in,
                         struct rp_lower_value *out)
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

RP_LOWER(reduce)
{
    bool over[RP_TF_RANK] = {false}, mean = node->op.n == 4 && !memcmp(node->op.at, "Mean", 4);
    int64_t dims[RP_TF_RANK], count = 1;
    size_t axis, rank = 0;

    RP_TRY(rp_lower_need_ints(l, node, &in[1], "axes"));
    for (size_t i = 0; i < in[1].nints; i++) {
        if (!rp_lower_axis(in[1].ints[i], in->rank, &axis))
            return rp_lower_refuse(l, node, "a reduced dimension is out of range");
        over[axis] = true;
    }
    *out = rp_lower_reduce(l, mean ? RP_OP_ADD : rp_lower_opcode(node), in, over);
    for (size_t i = 0; i < in->rank; i++) {
        count *= over[i] ? in->dims[i] : 1;
        if (!over[i] || rp_lower_attr_bool(node, "keep_dims"))
            dims[rank++] = over[i] ? 1 : in->dims[i];
    }
    if (mean) {
        struct rp_lower_value divisor = rp_lower_fill(l, (double)count, out);
        *out = rp_lower_binary(l, RP_OP_DIVIDE, out, &divisor);
    }
    *out = rp_lower_reshape(l, out, dims, rank);
    if (in->ints && in->rank == 1 && over[0] && rp_lower_opcode(node) == RP_OP_MULTIPLY)
        know_product(l, in, out);
    return RP_OK;
}

/* ---- softmax, over the last dimension ---- */

/* Broadcasts a value that lacks the last dimension along it. */
static struct rp_lower_value along_last(struct rp_lower *l, const struct rp_lower_value *reduced,
                                        const struct rp_lower_value *like)
{
    int64_t map[RP_TF_RANK];

    for (size_t i = 0; i < reduced->rank; i++)
        map[i] = (int64_t)i;
    return rp_lower_spread(l, reduced, map, like->dims, like->rank);
}

RP_LOWER(softmax)
{
    bool over[RP_TF_RANK] = {false}, log_ = node->op.at[0] == 'L';

    if (!in->rank)
        return rp_lower_refuse(l, node, "the input is a scalar");
    over[in->rank - 1] = true;
    struct rp_lower_value top = rp_lower_reduce(l, RP_OP_MAXIMUM, in, over);
    top = along_last(l, &top, in);
    struct rp_lower_value shifted = rp_lower_binary(l, RP_OP_SUBTRACT, in, &top);
    struct rp_lower_value raised = rp_lower_unary(l, RP_OP_EXP, &shifted);
    struct rp_lower_value sum = rp_lower_reduce(l, RP_OP_ADD, &raised, over);
    if (log_)
        sum = rp_lower_unary(l, RP_OP_LOG, &sum);
    sum = along_last(l, &sum, in);
    *out =
        rp_lower_binary(l, log_ ? RP_OP_SUBTRACT : RP_OP_DIVIDE, log_ ? &shifted : &raised, &sum);
    return RP_OK;
}

/* ---- biases ---- */

/* Adds a vector along the channels: the last dimension, or the second one of NCHW. */
static enum rp_code add_bias(struct rp_lower *l, const struct rp_lower_node *node,
                             const struct rp_lower_value *a, const struct rp_lower_value *bias,
                             struct rp_lower_value *out)
{
    bool second = rp_lower_attr_is(node, "data_format", "NCHW");
    int64_t map = second ? 1 : (int64_t)a->rank - 1;

    if (bias->rank != 1 || a->rank < 2 || bias->dims[0] != a->dims[map])
        return rp_lower_misfit(l, node, "the bias does not match the input");
    struct rp_lower_value wide = rp_lower_spread(l, bias, &map, a->dims, a->rank);
    *out = rp_lower_binary(l, RP_OP_ADD, a, &wide);
    return RP_OK;
}

RP_LOWER(bias_add)
{
    return add_bias(l, node, &in[0], &in[1], out);
}

RP_LOWER(bias_add_grad)
{
    bool over[RP_TF_RANK] = {false};
    size_t kept = rp_lower_attr_is(node, "data_format", "NCHW") ? 1 : (size_t)in->rank - 1;

    if (in->rank < 2)
        return rp_lower_refuse(l, node, "the input has too few dimensions");
    for (size_t i = 0; i < in->rank; i++)
        over[i] = i != kept;
    *out = rp_lower_reduce(l, RP_OP_ADD, in, over);
    return RP_OK;
}

RP_LOWER(l2_loss)
{
    bool over[RP_TF_RANK];
    struct rp_lower_value t = rp_lower_binary(l, RP_OP_MULTIPLY, in, in);

    memset(over, 1, sizeof over);
    t = rp_lower_reduce(l, RP_OP_ADD, &t, over);
    struct rp_lower_value half = rp_lower_fill(l, 0.5, &t);
    *out = rp_lower_binary(l, RP_OP_MULTIPLY, &t, &half);
    return RP_OK;
}

/* ---- losses over softmax ---- */

/* Makes one-hot labels: 1 at the class of each row, 0 elsewhere. */
static struct rp_lower_value one_of_classes(struct rp_lower *l, const struct rp_lower_value *labels,
                                            const struct rp_lower_value *like)
{
    struct rp_lower_value places = rp_lower_like(l, labels->elem, like->dims, 2);
    int64_t map = 0;

    rp_lower_begin(l, &places, RP_OP_IOTA);
    rp_lower_set_int(l, RP_ATTR_IOTA_DIMENSION, 1);
    struct rp_lower_value wide = rp_lower_spread(l, labels, &map, like->dims, 2);
    struct rp_lower_value hit = rp_lower_compare(l, "EQ", &places, &wide);
    struct rp_lower_value one = rp_lower_fill(l, 1, like);
    struct rp_lower_value zero = rp_lower_fill(l, 0, like);
    return rp_lower_select(l, &hit, &one, &zero);
}

/* Computes the loss of each row, and its gradient: softmax minus the labels. */
RP_LOWER(entropy)
{
    bool over[2] = {false, true}, sparse = node->op.at[1] == 'p';
    struct rp_lower_value x = in[0], labels = in[1];

    if (x.rank != 2 || labels.rank != (sparse ? 1u : 2u) ||
        (sparse ? labels.dims[0] != x.dims[0] : !rp_lower_broadcast_both(l, &x, &labels)))
        return rp_lower_misfit(l, node, "the labels do not match the input");
    if (sparse)
        labels = one_of_classes(l, &in[1], &x);
    struct rp_lower_value top = rp_lower_reduce(l, RP_OP_MAXIMUM, &x, over);
    top = along_last(l, &top, &x);
    struct rp_lower_value shifted = rp_lower_binary(l, RP_OP_SUBTRACT, &x, &top);
    struct rp_lower_value raised = rp_lower_unary(l, RP_OP_EXP, &shifted);
    struct rp_lower_value sum = rp_lower_reduce(l, RP_OP_ADD, &raised, over);
    struct rp_lower_value t = rp_lower_unary(l, RP_OP_LOG, &sum);
    t = along_last(l, &t, &x);
    t = rp_lower_binary(l, RP_OP_SUBTRACT, &t, &shifted);
    t = rp_lower_binary(l, RP_OP_MULTIPLY, &t, &labels);
    out[0] = rp_lower_reduce(l, RP_OP_ADD, &t, over);
    sum = along_last(l, &sum, &x);
    t = rp_lower_binary(l, RP_OP_DIVIDE, &raised, &sum);
    out[1] = rp_lower_binary(l, RP_OP_SUBTRACT, &t, &labels);
    *nout = 2;
    return RP_OK;
}

/* ---- positions and cumulative values ---- */

/* The first position of the maximum or minimum is the smallest of all positions that contain it. */
RP_LOWER(arg_best)
{
    bool over[RP_TF_RANK] = {false};
    unsigned elem = rp_lower_attr_elem(node, "output_type");
    int64_t map[RP_TF_RANK];
    size_t axis, n = 0;

    RP_TRY(rp_lower_need_ints(l, node, &in[1], "axis"));
    if (!in[1].nints || !rp_lower_axis(in[1].ints[0], in->rank, &axis))
        return rp_lower_misfit(l, node, "the axis is out of range");
    over[axis] = true;
    struct rp_lower_value best = rp_lower_reduce(l, rp_lower_opcode(node), in, over);
    for (size_t i = 0; i < in->rank; i++)
        if (i != axis)
            map[n++] = (int64_t)i;
    best = rp_lower_spread(l, &best, map, in->dims, in->rank);
    struct rp_lower_value hit = rp_lower_compare(l, "EQ", in, &best);
    struct rp_lower_value places =
        rp_lower_like(l, elem == RP_ELEM_INVALID ? RP_ELEM_S64 : elem, in->dims, in->rank);
    rp_lower_begin(l, &places, RP_OP_IOTA);
    rp_lower_set_int(l, RP_ATTR_IOTA_DIMENSION, axis);
    struct rp_lower_value none = rp_lower_fill(l, (double)in->dims[axis], &places);
    places = rp_lower_select(l, &hit, &places, &none);
    *out = rp_lower_reduce(l, RP_OP_MINIMUM, &places, over);
    return RP_OK;
}

/* Reduces windows that reach back to the first element, or forward to the last. */
RP_LOWER(running)
{
    bool without = rp_lower_attr_bool(node, "exclusive"),
         back = rp_lower_attr_bool(node, "reverse");
    size_t axis;

    RP_TRY(rp_lower_need_ints(l, node, &in[1], "axis"));
    if (!in[1].nints || !rp_lower_axis(in[1].ints[0], in->rank, &axis) || !in->dims[axis])
        return rp_lower_misfit(l, node, "the axis is out of range");
    if (in->rank > RP_WINDOW_DIMS)
        return rp_lower_refuse(l, node, "the input has too many dimensions");
    int64_t n = in->dims[axis];
    uint32_t region = rp_lower_region(l, rp_lower_opcode(node), in->elem);
    struct rp_lower_value start =
        rp_lower_scalar(l, in->elem, rp_lower_opcode(node) != RP_OP_ADD ? 1 : 0);
    *out = rp_lower_like(l, in->elem, in->dims, in->rank);
    rp_lower_begin(l, out, RP_OP_REDUCE_WINDOW);
    rp_lower_operand(l, in);
    rp_lower_operand(l, &start);
    struct rp_window window = rp_lower_window(in->rank);
    window.dim[axis].size = n;
    window.dim[axis].pad_low = back ? without ? -1 : 0 : without ? n : n - 1;
    window.dim[axis].pad_high = back ? without ? n : n - 1 : without ? -1 : 0;
    rp_lower_set_window(l, &window);
    rp_lower_calls(l, region);
    return RP_OK;
}

RP_LOWER(top_k)
{
    int64_t dims[RP_TF_RANK];
    unsigned elem = rp_lower_attr_elem(node, "index_type");

    RP_TRY(rp_lower_need_ints(l, node, &in[1], "number"));
    if (!in->rank || !in[1].nints || in[1].ints[0] < 0 || in[1].ints[0] > in->dims[in->rank - 1])
        return rp_lower_misfit(l, node, "k is larger than the input");
    int64_t k = in[1].ints[0];
    memcpy(dims, in->dims, sizeof dims);
    dims[in->rank - 1] = k;
    out[0] = rp_lower_like(l, in->elem, dims, in->rank);
    out[1] = rp_lower_like(l, RP_ELEM_S32, dims, in->rank);
    struct rp_lower_value both = rp_lower_like(l, in->elem, dims, in->rank);
    rp_lower_begin_tuple(l, &both, RP_OP_TOPK, out, 2);
    rp_lower_operand(l, in);
    rp_lower_set_int(l, RP_ATTR_K, k);
    rp_lower_set(l, rp_attr_flag(RP_ATTR_LARGEST, true));
    for (size_t i = 0; i < 2; i++)
        rp_lower_part(l, &out[i], &both, i);
    if (elem != RP_ELEM_INVALID)
        out[1] = rp_lower_convert(l, &out[1], elem);
    *nout = 2;
    return RP_OK;
}

/* The root of a sum of integers is rounded down to an integer. */
RP_LOWER(euclidean_norm)
{
    struct rp_lower_value other = rp_lower_conjugate(l, in);
    struct rp_lower_value t[2] = {rp_lower_binary(l, RP_OP_MULTIPLY, in, &other), in[1]};
    bool whole = in->elem >= RP_ELEM_S8 && in->elem <= RP_ELEM_U64;

    RP_TRY(lower_reduce(l, node, t, nin, out, nout));
    if (whole)
        *out = rp_lower_convert(l, out, RP_ELEM_F64);
    *out = rp_lower_unary(l, RP_OP_SQRT, out);
    *out = rp_lower_convert(l, out, in->elem);
    return RP_OK;
}

const struct rp_lower_row rp_lower_math[] = {
    {"Sum", lower_reduce, RP_OP_ADD, 2},
    {"Mean", lower_reduce, RP_OP_ADD, 2},
    {"Max", lower_reduce, RP_OP_MAXIMUM, 2},
    {"Min", lower_reduce, RP_OP_MINIMUM, 2},
    {"Prod", lower_reduce, RP_OP_MULTIPLY, 2},
    {"All", lower_reduce, RP_OP_AND, 2},
    {"Any", lower_reduce, RP_OP_OR, 2},
    {"EuclideanNorm", lower_euclidean_norm, RP_OP_ADD, 2},
    {"Softmax", lower_softmax, RP_LOWER_NO_OPCODE, 1},
    {"LogSoftmax", lower_softmax, RP_LOWER_NO_OPCODE, 1},
    {"BiasAdd", lower_bias_add, RP_LOWER_NO_OPCODE, 2},
    {"BiasAddV1", lower_bias_add, RP_LOWER_NO_OPCODE, 2},
    {"BiasAddGrad", lower_bias_add_grad, RP_LOWER_NO_OPCODE, 1},
    {"L2Loss", lower_l2_loss, RP_LOWER_NO_OPCODE, 1},
    {"SoftmaxCrossEntropyWithLogits", lower_entropy, RP_LOWER_NO_OPCODE, 2},
    {"SparseSoftmaxCrossEntropyWithLogits", lower_entropy, RP_LOWER_NO_OPCODE, 2},
    {"ArgMax", lower_arg_best, RP_OP_MAXIMUM, 2},
    {"ArgMin", lower_arg_best, RP_OP_MINIMUM, 2},
    {"Cumsum", lower_running, RP_OP_ADD, 2},
    {"Cumprod", lower_running, RP_OP_MULTIPLY, 2},
    {"TopKV2", lower_top_k, RP_LOWER_NO_OPCODE, 2},
    {NULL, NULL, RP_LOWER_NO_OPCODE, 0}};
