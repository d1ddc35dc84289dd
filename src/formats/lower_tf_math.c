/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators of TensorFlow that combine elements, as HLO: reductions, matrix products, softmax,
 * tables, convolutions and pooling over images (NHWC), batch normalisation for inference.
 */
#include "formats/lower_tf_inner.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define LOWER(name)                                                                             \
    static enum rp_code name(struct lower *l, const struct lower_node *node,                    \
                             const struct lower_value *in, size_t nin, struct lower_value *out, \
                             size_t *nout)

/* ---- reductions ---- */

static const char *hlo_of(const struct lower_node *node)
{
    for (const struct lower_row *row = lower_math; row->op; row++)
        if (strlen(row->op) == node->op.n && !memcmp(row->op, node->op.at, node->op.n))
            return row->hlo;
    return "";
}

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
            return lower_refuse(l, node, "it reduces a dimension that its input does not have");
        over[axis] = true;
    }
    *out = lower_reduce(l, mean ? "add" : hlo_of(node), in, over);
    for (size_t i = 0; i < in->rank; i++) {
        count *= over[i] ? in->dims[i] : 1;
        if (!over[i] || lower_attr_bool(node, "keep_dims"))
            dims[rank++] = over[i] ? 1 : in->dims[i];
    }
    if (mean) {
        divisor = lower_fill(l, (double)count, out);
        *out = lower_binary(l, "divide", out, &divisor);
    }
    *out = lower_reshape(l, out, dims, rank);
    if (in->ints && in->rank == 1 && over[0] && !strcmp(hlo_of(node), "multiply"))
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
        return lower_refuse(l, node, "its input is a scalar");
    over[in->rank - 1] = true;
    top = lower_reduce(l, "maximum", in, over);
    top = along_last(l, &top, in);
    shifted = lower_binary(l, "subtract", in, &top);
    raised = lower_unary(l, "exponential", &shifted);
    sum = lower_reduce(l, "add", &raised, over);
    if (log_)
        sum = lower_unary(l, "log", &sum);
    sum = along_last(l, &sum, in);
    *out = lower_binary(l, log_ ? "subtract" : "divide", log_ ? &shifted : &raised, &sum);
    return RP_OK;
}

/* ---- matrix products ---- */

/* Over all but the last two dimensions, which are batches. */
static enum rp_code product(struct lower *l, const struct lower_node *node,
                            const struct lower_value *a, const struct lower_value *b, bool turn_a,
                            bool turn_b, struct lower_value *out)
{
    size_t rank = a->rank, k = turn_a ? rank - 2 : rank - 1, kb = turn_b ? rank - 1 : rank - 2;
    int64_t dims[RP_TF_RANK], batch[RP_TF_RANK];

    if (rank < 2 || b->rank != rank || a->elem != b->elem || a->dims[k] != b->dims[kb])
        return lower_refuse(l, node, "the shapes of its inputs do not fit each other");
    for (size_t i = 0; i + 2 < rank; i++) {
        if (a->dims[i] != b->dims[i])
            return lower_refuse(l, node, "batches that are broadcast are not known");
        dims[i] = a->dims[i];
        batch[i] = (int64_t)i;
    }
    dims[rank - 2] = a->dims[turn_a ? rank - 1 : rank - 2];
    dims[rank - 1] = b->dims[turn_b ? rank - 2 : rank - 1];
    *out = lower_like(l, a->elem, dims, rank);
    lower_begin(l, out, "dot");
    lower_put(l, "%%v%u, %%v%u)", a->id, b->id);
    if (rank > 2) {
        lower_put_ints(l, "lhs_batch_dims", batch, rank - 2);
        lower_put_ints(l, "rhs_batch_dims", batch, rank - 2);
    }
    lower_put(l, ", lhs_contracting_dims={%zu}, rhs_contracting_dims={%zu}\n", k, kb);
    return RP_OK;
}

LOWER(mat_mul)
{
    (void)nin;
    (void)nout;
    return product(l, node, &in[0], &in[1], lower_attr_bool(node, "transpose_a"),
                   lower_attr_bool(node, "transpose_b"), out);
}

LOWER(batch_mat_mul)
{
    (void)nin;
    (void)nout;
    return product(l, node, &in[0], &in[1], lower_attr_bool(node, "adj_x"),
                   lower_attr_bool(node, "adj_y"), out);
}

/* The vector along the channels: the last dimension, or the second of NCHW. */
static enum rp_code add_bias(struct lower *l, const struct lower_node *node,
                             const struct lower_value *a, const struct lower_value *bias,
                             struct lower_value *out)
{
    bool second = lower_attr_is(node, "data_format", "NCHW");
    int64_t map = second ? 1 : (int64_t)a->rank - 1;
    struct lower_value wide;

    if (bias->rank != 1 || a->rank < 2 || bias->dims[0] != a->dims[map])
        return lower_refuse(l, node, "its bias does not fit its input");
    wide = lower_spread(l, bias, &map, a->dims, a->rank);
    *out = lower_binary(l, "add", a, &wide);
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
        return lower_refuse(l, node, "its input has too few dimensions");
    for (size_t i = 0; i < in->rank; i++)
        over[i] = i != kept;
    *out = lower_reduce(l, "add", in, over);
    return RP_OK;
}

LOWER(l2_loss)
{
    bool over[RP_TF_RANK];
    struct lower_value t = lower_binary(l, "multiply", in, in), half;

    (void)node;
    (void)nin;
    (void)nout;
    memset(over, 1, sizeof over);
    t = lower_reduce(l, "add", &t, over);
    half = lower_fill(l, 0.5, &t);
    *out = lower_binary(l, "multiply", &t, &half);
    return RP_OK;
}

/* ---- tables ---- */

/* Rows of the first operand along an axis, by an array of indices. */
LOWER(gather)
{
    const struct lower_value *table = &in[0], *rows = &in[1];
    int64_t dims[RP_TF_RANK], offsets[RP_TF_RANK], sizes[RP_TF_RANK];
    size_t axis = 0, rank = 0, n = 0;

    (void)nout;
    if (nin > 2)
        RP_TRY(lower_need_ints(l, node, &in[2], "axis"));
    if (lower_attr_int(node, "batch_dims", 0) || !table->rank ||
        (nin > 2 && (!in[2].nints || !lower_axis(in[2].ints[0], table->rank, &axis))) ||
        table->rank + rows->rank > RP_TF_RANK)
        return lower_refuse(l, node, "gathers of this kind are not known");
    for (size_t i = 0; i < axis; i++)
        dims[rank++] = table->dims[i];
    for (size_t i = 0; i < rows->rank; i++)
        dims[rank++] = rows->dims[i];
    for (size_t i = axis + 1; i < table->rank; i++)
        dims[rank++] = table->dims[i];
    for (size_t i = 0; i < rank; i++)
        if (i < axis || i >= axis + rows->rank)
            offsets[n++] = (int64_t)i;
    memcpy(sizes, table->dims, sizeof sizes);
    sizes[axis] = 1;
    *out = lower_like(l, table->elem, dims, rank);
    lower_begin(l, out, "gather");
    lower_put(l, "%%v%u, %%v%u)", table->id, rows->id);
    lower_put_ints(l, "offset_dims", offsets, n);
    lower_put(l, ", collapsed_slice_dims={%zu}, start_index_map={%zu}, index_vector_dim=%u", axis,
              axis, rows->rank);
    lower_put_ints(l, "slice_sizes", sizes, table->rank);
    lower_put(l, "\n");
    return RP_OK;
}

/* Along a new last axis: where its position is the index, `on`. */
LOWER(one_hot)
{
    int64_t axis = lower_attr_int(node, "axis", -1), dims[RP_TF_RANK], map[RP_TF_RANK];
    struct lower_value places, wanted, yes, no, hit;

    (void)nin;
    (void)nout;
    RP_TRY(lower_need_ints(l, node, &in[1], "depth"));
    if (!in[1].nints || in[1].ints[0] < 0 || in->rank == RP_TF_RANK || in[2].rank || in[3].rank ||
        (axis != -1 && axis != (int64_t)in->rank))
        return lower_refuse(l, node, "only a new last axis is known");
    memcpy(dims, in->dims, sizeof dims);
    dims[in->rank] = in[1].ints[0];
    for (size_t i = 0; i < in->rank; i++)
        map[i] = (int64_t)i;
    places = lower_like(l, in->elem, dims, in->rank + 1);
    lower_begin(l, &places, "iota");
    lower_put(l, "), iota_dimension=%u\n", in->rank);
    wanted = lower_spread(l, in, map, dims, in->rank + 1);
    hit = lower_compare(l, "EQ", &places, &wanted);
    yes = lower_spread(l, &in[2], NULL, dims, in->rank + 1);
    no = lower_spread(l, &in[3], NULL, dims, in->rank + 1);
    *out = lower_select(l, &hit, &yes, &no);
    return RP_OK;
}

/* ---- images ---- */

struct window {
    int64_t size[2], stride[2], low[2], high[2], dilation[2], out[2];
};

/* Sizes, strides and padding over height and width of NHWC. */
static enum rp_code plan_window(struct lower *l, const struct lower_node *node,
                                const struct lower_value *image, struct window *w)
{
    int64_t strides[4] = {1, 1, 1, 1}, dilations[4] = {1, 1, 1, 1};
    bool same_ = lower_attr_is(node, "padding", "SAME");

    if (image->rank != 4 ||
        (lower_attr_text(node, "data_format").n && !lower_attr_is(node, "data_format", "NHWC")))
        return lower_refuse(l, node, "only images as NHWC are known");
    if (!same_ && !lower_attr_is(node, "padding", "VALID"))
        return lower_refuse(l, node, "explicit padding is not known");
    lower_attr_ints(node, "strides", strides, 4);
    lower_attr_ints(node, "dilations", dilations, 4);
    for (size_t i = 0; i < 2; i++) {
        int64_t n = image->dims[i + 1], reach, all;

        w->stride[i] = strides[i + 1];
        w->dilation[i] = dilations[i + 1];
        if (w->stride[i] < 1 || w->dilation[i] < 1 || w->size[i] < 1 || w->size[i] > INT32_MAX ||
            w->dilation[i] > INT32_MAX || w->stride[i] > INT32_MAX)
            return lower_refuse(l, node, "its window is none");
        reach = (w->size[i] - 1) * w->dilation[i] + 1;
        w->out[i] = same_       ? (n + w->stride[i] - 1) / w->stride[i]
                    : n < reach ? 0
                                : (n - reach) / w->stride[i] + 1;
        all = same_ ? (w->out[i] - 1) * w->stride[i] + reach - n : 0;
        all = all < 0 ? 0 : all;
        w->low[i] = all / 2;
        w->high[i] = all - all / 2;
    }
    return RP_OK;
}

LOWER(conv)
{
    const struct lower_value *image = &in[0], *kernel = &in[1];
    struct window w = {0};
    int64_t groups;

    (void)nin;
    (void)nout;
    if (kernel->rank != 4 || kernel->elem != image->elem || image->rank != 4 || !kernel->dims[2] ||
        image->dims[3] % kernel->dims[2])
        return lower_refuse(l, node, "its kernel does not fit its input");
    w.size[0] = kernel->dims[0];
    w.size[1] = kernel->dims[1];
    RP_TRY(plan_window(l, node, image, &w));
    groups = image->dims[3] / kernel->dims[2];
    *out = lower_like(l, image->elem,
                      (int64_t[]){image->dims[0], w.out[0], w.out[1], kernel->dims[3]}, 4);
    lower_begin(l, out, "convolution");
    lower_put(l,
              "%%v%u, %%v%u), window={size=%" PRId64 "x%" PRId64 " stride=%" PRId64 "x%" PRId64
              " pad=%" PRId64 "_%" PRId64 "x%" PRId64 "_%" PRId64 " rhs_dilate=%" PRId64 "x%" PRId64
              "}, dim_labels=b01f_01io->b01f, feature_group_count=%" PRId64 "\n",
              image->id, kernel->id, w.size[0], w.size[1], w.stride[0], w.stride[1], w.low[0],
              w.high[0], w.low[1], w.high[1], w.dilation[0], w.dilation[1], groups);
    return RP_OK;
}

/* "add" or "maximum" over windows. */
static struct lower_value over_windows(struct lower *l, const char *opcode,
                                       const struct lower_value *a, const struct window *w)
{
    struct lower_value start, v;

    lower_region(l, opcode, a->elem);
    start = lower_scalar(l, a->elem, strcmp(opcode, "add") ? -(double)INFINITY : 0);
    v = lower_like(l, a->elem, (int64_t[]){a->dims[0], w->out[0], w->out[1], a->dims[3]}, 4);
    lower_begin(l, &v, "reduce-window");
    lower_put(l,
              "%%v%u, %%v%u), window={size=1x%" PRId64 "x%" PRId64 "x1 stride=1x%" PRId64
              "x%" PRId64 "x1 pad=0_0x%" PRId64 "_%" PRId64 "x%" PRId64 "_%" PRId64
              "x0_0}, to_apply=%%%s_%s\n",
              a->id, start.id, w->size[0], w->size[1], w->stride[0], w->stride[1], w->low[0],
              w->high[0], w->low[1], w->high[1], opcode, rp_elem_name(a->elem));
    return v;
}

LOWER(pool)
{
    bool average = node->op.at[0] == 'A';
    int64_t sizes[4] = {1, 1, 1, 1};
    struct lower_value one, counts;
    struct window w = {0};

    (void)nin;
    (void)nout;
    lower_attr_ints(node, "ksize", sizes, 4);
    w.size[0] = sizes[1];
    w.size[1] = sizes[2];
    if (in->elem != RP_ELEM_F32 && in->elem != RP_ELEM_F64 && in->elem != RP_ELEM_F16 &&
        in->elem != RP_ELEM_BF16)
        return lower_refuse(l, node, "it pools numbers that are no floats");
    RP_TRY(plan_window(l, node, in, &w));
    *out = over_windows(l, average ? "add" : "maximum", in, &w);
    if (average) { /* of what is there: padding does not count */
        one = lower_fill(l, 1, in);
        counts = over_windows(l, "add", &one, &w);
        *out = lower_binary(l, "divide", out, &counts);
    }
    return RP_OK;
}

/* (x - mean) * (scale * rsqrt(variance + epsilon)) + offset, for inference */
LOWER(batch_norm)
{
    struct lower_value epsilon, factor, part[2];
    int64_t map;

    (void)nin;
    if (lower_attr(node, "is_training").at == NULL || lower_attr_bool(node, "is_training") ||
        in->rank != 4 || lower_attr_is(node, "data_format", "NCHW"))
        return lower_refuse(l, node, "only inference over NHWC is known");
    for (size_t i = 1; i < 5; i++)
        if (in[i].rank != 1 || in[i].dims[0] != in->dims[3] || in[i].elem != in->elem)
            return lower_refuse(l, node, "its statistics do not fit its input");
    map = 3;
    epsilon = lower_fill(l, (double)lower_attr_float(node, "epsilon", 1e-4F), &in[4]);
    factor = lower_binary(l, "add", &in[4], &epsilon);
    factor = lower_unary(l, "rsqrt", &factor);
    factor = lower_binary(l, "multiply", &factor, &in[1]);
    part[0] = lower_spread(l, &in[3], &map, in->dims, 4);
    part[1] = lower_binary(l, "subtract", &in[0], &part[0]);
    part[0] = lower_spread(l, &factor, &map, in->dims, 4);
    part[1] = lower_binary(l, "multiply", &part[1], &part[0]);
    part[0] = lower_spread(l, &in[2], &map, in->dims, 4);
    out[0] = lower_binary(l, "add", &part[1], &part[0]);
    out[1] = in[3];
    out[2] = in[4];
    *nout = 3;
    return RP_OK;
}

const struct lower_row lower_math[] = {{"Sum", reduce, "add", 2},
                                       {"Mean", reduce, "add", 2},
                                       {"Max", reduce, "maximum", 2},
                                       {"Min", reduce, "minimum", 2},
                                       {"Prod", reduce, "multiply", 2},
                                       {"All", reduce, "and", 2},
                                       {"Any", reduce, "or", 2},
                                       {"Softmax", softmax, NULL, 1},
                                       {"LogSoftmax", softmax, NULL, 1},
                                       {"MatMul", mat_mul, NULL, 2},
                                       {"BatchMatMul", batch_mat_mul, NULL, 2},
                                       {"BatchMatMulV2", batch_mat_mul, NULL, 2},
                                       {"BiasAdd", bias_add, NULL, 2},
                                       {"BiasAddGrad", bias_add_grad, NULL, 1},
                                       {"L2Loss", l2_loss, NULL, 1},
                                       {"Conv2D", conv, NULL, 2},
                                       {"MaxPool", pool, NULL, 1},
                                       {"AvgPool", pool, NULL, 1},
                                       {"FusedBatchNormV3", batch_norm, NULL, 5},
                                       {"Gather", gather, NULL, 2},
                                       {"ResourceGather", gather, NULL, 2},
                                       {"GatherV2", gather, NULL, 3},
                                       {"OneHot", one_hot, NULL, 4},
                                       {NULL, NULL, NULL, 0}};
