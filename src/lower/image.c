/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators of TensorFlow over images (NHWC or NCHW), as HLO: convolutions and their gradients,
 * pooling and its gradients, batch normalisation. Windows are planned once: sizes, strides,
 * dilations and the padding on both sides, from which the gradients' windows follow.
 */
#include "lower/inner.h"

#include <math.h>
#include <string.h>

#define LOWER(name)                                                                             \
    static enum rp_code name(struct lower *l, const struct lower_node *node,                    \
                             const struct lower_value *in, size_t nin, struct lower_value *out, \
                             size_t *nout)

struct window {
    bool second; /* NCHW: channels are dimension 1 */
    size_t high, channel;
    int64_t image[2], size[2], stride[2], low[2], up[2], dilation[2], out[2];
};

/* ---- windows ---- */

static bool find_layout(const struct lower_node *node, struct window *w)
{
    struct rp_bytes format = lower_attr_text(node, "data_format");

    w->second = lower_attr_is(node, "data_format", "NCHW");
    w->high = w->second ? 2 : 1;
    w->channel = w->second ? 1 : 3;
    return w->second || !format.n || lower_attr_is(node, "data_format", "NHWC");
}

/* One of the two dimensions: how far it reaches and what is added at its ends. */
static bool plan_dim(struct window *w, size_t i, bool same, bool given)
{
    int64_t n = w->image[i], reach, all;

    if (w->stride[i] < 1 || w->dilation[i] < 1 || w->size[i] < 1 || w->size[i] > INT32_MAX ||
        w->dilation[i] > INT32_MAX || w->stride[i] > INT32_MAX)
        return false;
    reach = (w->size[i] - 1) * w->dilation[i] + 1;
    if (same) {
        w->out[i] = (n + w->stride[i] - 1) / w->stride[i];
        all = (w->out[i] - 1) * w->stride[i] + reach - n;
        all = all < 0 ? 0 : all;
        w->low[i] = all / 2;
        w->up[i] = all - all / 2;
        return true;
    }
    if (!given)
        w->low[i] = w->up[i] = 0;
    n += w->low[i] + w->up[i];
    w->out[i] = n < reach ? 0 : (n - reach) / w->stride[i] + 1;
    return true;
}

/* Of an image of these dimensions; w->size is known. */
static enum rp_code plan_window(struct lower *l, const struct lower_node *node, const int64_t *dims,
                                size_t rank, struct window *w)
{
    int64_t strides[4] = {1, 1, 1, 1}, dilations[4] = {1, 1, 1, 1}, pads[8] = {0};
    bool same = lower_attr_is(node, "padding", "SAME");
    bool given = lower_attr_is(node, "padding", "EXPLICIT");

    if (rank != 4 || !find_layout(node, w))
        return lower_refuse(l, node, "only the image layouts NHWC and NCHW are supported");
    lower_attr_ints(node, "strides", strides, 4);
    lower_attr_ints(node, "dilations", dilations, 4);
    if (given && lower_attr_ints(node, "explicit_paddings", pads, 8) != 8)
        return lower_refuse(l, node, "invalid padding");
    for (size_t i = 0; i < 2; i++) {
        w->image[i] = dims[w->high + i];
        w->stride[i] = strides[w->high + i];
        w->dilation[i] = dilations[w->high + i];
        w->low[i] = pads[2 * (w->high + i)];
        w->up[i] = pads[2 * (w->high + i) + 1];
        if (!plan_dim(w, i, same, given))
            return lower_refuse(l, node, "invalid window");
    }
    return RP_OK;
}

/* Dimensions of an image of that many elements and channels. */
static void image_dims(const struct window *w, int64_t n, const int64_t *size, int64_t channels,
                       int64_t *dims)
{
    dims[0] = n;
    dims[w->channel] = channels;
    dims[w->high] = size[0];
    dims[w->high + 1] = size[1];
}

/* ---- convolutions ---- */

/* Dimension numbers of images in their layout, and a kernel [h, w, in, out]. */
static struct rp_conv_dims conv_dims(const struct window *w)
{
    int64_t high = (int64_t)w->high, channel = (int64_t)w->channel;

    return (struct rp_conv_dims){.nspatial = 2,
                                 .input_feature = channel,
                                 .kernel_input = 2,
                                 .kernel_output = 3,
                                 .output_feature = channel,
                                 .input_spatial = {high, high + 1},
                                 .kernel_spatial = {0, 1},
                                 .output_spatial = {high, high + 1}};
}

static void set_conv(struct lower *l, const struct rp_window *window,
                     const struct rp_conv_dims *dims)
{
    lower_set_window(l, window);
    lower_set(l, rp_attr_of_conv_dims(l->builder.program, dims));
}

static void convolve(struct lower *l, const struct lower_value *image,
                     const struct lower_value *kernel, const struct window *w, int64_t groups,
                     struct lower_value *out)
{
    struct rp_conv_dims numbers = conv_dims(w);
    struct rp_window window = lower_window(2);
    int64_t dims[4];

    for (size_t i = 0; i < 2; i++)
        window.dim[i] = (struct rp_window_dim){.size = w->size[i],
                                               .stride = w->stride[i],
                                               .pad_low = w->low[i],
                                               .pad_high = w->up[i],
                                               .base_dilation = 1,
                                               .window_dilation = w->dilation[i]};
    image_dims(w, image->dims[0], w->out, kernel->dims[3], dims);
    *out = lower_like(l, image->elem, dims, 4);
    lower_begin(l, out, RP_OP_CONVOLUTION);
    lower_operand(l, image);
    lower_operand(l, kernel);
    set_conv(l, &window, &numbers);
    lower_set_int(l, RP_ATTR_FEATURE_GROUP_COUNT, groups);
}

/* Whether a kernel [h, w, in, out] fits the channels of an image. */
static bool kernel_fits(const struct lower_node *node, const struct lower_value *image,
                        const struct lower_value *kernel, struct window *w)
{
    if (image->rank != 4 || kernel->rank != 4 || kernel->elem != image->elem ||
        !find_layout(node, w) || !kernel->dims[2] || image->dims[w->channel] % kernel->dims[2])
        return false;
    w->size[0] = kernel->dims[0];
    w->size[1] = kernel->dims[1];
    return true;
}

LOWER(conv)
{
    struct window w = {0};

    (void)nin;
    (void)nout;
    if (!kernel_fits(node, &in[0], &in[1], &w))
        return lower_misfit(l, node, "the kernel does not match the input");
    RP_TRY(plan_window(l, node, in->dims, in->rank, &w));
    convolve(l, &in[0], &in[1], &w, in->dims[w.channel] / in[1].dims[2], out);
    return RP_OK;
}

/* Each channel by kernels of its own: [h, w, channels, k] is [h, w, 1, channels * k]. */
LOWER(depthwise)
{
    struct lower_value kernel;
    struct window w = {0};

    (void)nin;
    (void)nout;
    if (!kernel_fits(node, &in[0], &in[1], &w) || in->dims[w.channel] != in[1].dims[2])
        return lower_misfit(l, node, "the kernel does not match the input");
    RP_TRY(plan_window(l, node, in->dims, in->rank, &w));
    kernel = lower_reshape(
        l, &in[1], (int64_t[]){in[1].dims[0], in[1].dims[1], 1, in[1].dims[2] * in[1].dims[3]}, 4);
    convolve(l, &in[0], &kernel, &w, in->dims[w.channel], out);
    return RP_OK;
}

/* The gradient of a convolution's input: of (shape, kernel, gradient). The gradient is spread by
   the strides and met by the kernel turned around. */
LOWER(conv_input)
{
    const struct lower_value *kernel = &in[1], *grad = &in[2];
    struct rp_window window = lower_window(2);
    struct rp_conv_dims numbers;
    struct window w = {0};

    (void)nin;
    (void)nout;
    RP_TRY(lower_need_ints(l, node, &in[0], "shape"));
    if (in->nints != 4 || kernel->rank != 4 || grad->rank != 4 || kernel->elem != grad->elem ||
        !find_layout(node, &w) || in->ints[w.channel] != kernel->dims[2])
        return lower_misfit(l, node, "the kernel does not match the input");
    memcpy(w.size, kernel->dims, sizeof w.size);
    RP_TRY(plan_window(l, node, in->ints, 4, &w));
    for (size_t i = 0; i < 2; i++) {
        int64_t reach = (w.size[i] - 1) * w.dilation[i];

        if (grad->dims[w.high + i] != w.out[i])
            return lower_misfit(l, node, "the gradient does not match the input");
        window.dim[i] = (struct rp_window_dim){.size = w.size[i],
                                               .stride = 1,
                                               .pad_low = reach - w.low[i],
                                               .pad_high = w.image[i] + w.low[i] -
                                                           ((w.out[i] - 1) * w.stride[i] + 1),
                                               .base_dilation = w.stride[i],
                                               .window_dilation = w.dilation[i],
                                               .reversal = true};
    }
    *out = lower_like(l, grad->elem, in->ints, 4);
    lower_begin(l, out, RP_OP_CONVOLUTION);
    lower_operand(l, grad);
    lower_operand(l, kernel);
    numbers = conv_dims(&w);
    numbers.kernel_input = 3;
    numbers.kernel_output = 2;
    set_conv(l, &window, &numbers);
    return RP_OK;
}

/* The gradient of a convolution's kernel: of (image, shape, gradient). Batches are summed over as
   features are, the gradient is the kernel. */
LOWER(conv_kernel)
{
    const struct lower_value *image = &in[0], *grad = &in[2];
    struct rp_window window = lower_window(2);
    struct rp_conv_dims numbers;
    struct window w = {0};

    (void)nin;
    (void)nout;
    RP_TRY(lower_need_ints(l, node, &in[1], "shape"));
    if (in[1].nints != 4 || image->rank != 4 || grad->rank != 4 || image->elem != grad->elem ||
        !find_layout(node, &w) || in[1].ints[2] != image->dims[w.channel])
        return lower_misfit(l, node, "the kernel does not match the input");
    memcpy(w.size, in[1].ints, sizeof w.size);
    RP_TRY(plan_window(l, node, image->dims, 4, &w));
    for (size_t i = 0; i < 2; i++) {
        if (grad->dims[w.high + i] != w.out[i])
            return lower_misfit(l, node, "the gradient does not match the input");
        window.dim[i] =
            (struct rp_window_dim){.size = w.out[i],
                                   .stride = w.dilation[i],
                                   .pad_low = w.low[i],
                                   .pad_high = (w.size[i] - 1) * w.dilation[i] + 1 +
                                               (w.out[i] - 1) * w.stride[i] - w.low[i] - w.image[i],
                                   .base_dilation = 1,
                                   .window_dilation = w.stride[i]};
    }
    *out = lower_like(l, grad->elem, in[1].ints, 4);
    lower_begin(l, out, RP_OP_CONVOLUTION);
    lower_operand(l, image);
    lower_operand(l, grad);
    numbers = (struct rp_conv_dims){
        .nspatial = 2,
        .input_batch = (int64_t)w.channel,
        .kernel_output = (int64_t)w.channel,
        .output_batch = 2,
        .output_feature = 3,
        .input_spatial = {(int64_t)w.high, (int64_t)w.high + 1},
        .kernel_spatial = {(int64_t)w.high, (int64_t)w.high + 1},
        .output_spatial = {0, 1},
    };
    set_conv(l, &window, &numbers);
    return RP_OK;
}

/* ---- pooling ---- */

/* The window over all four dimensions of an image. */
static void set_pool_window(struct lower *l, const struct window *w)
{
    struct rp_window window = lower_window(4);

    for (size_t i = 0; i < 2; i++) {
        struct rp_window_dim *dim = &window.dim[w->high + i];

        dim->size = w->size[i];
        dim->stride = w->stride[i];
        dim->pad_low = w->low[i];
        dim->pad_high = w->up[i];
    }
    lower_set_window(l, &window);
}

/* Sums or maxima over windows. */
static struct lower_value over_windows(struct lower *l, enum rp_opcode opcode,
                                       const struct lower_value *a, const struct window *w)
{
    uint32_t region = lower_region(l, opcode, a->elem);
    struct lower_value start, v;
    int64_t dims[4];

    start = lower_scalar(l, a->elem, opcode != RP_OP_ADD ? -(double)INFINITY : 0);
    image_dims(w, a->dims[0], w->out, a->dims[w->channel], dims);
    v = lower_like(l, a->elem, dims, 4);
    lower_begin(l, &v, RP_OP_REDUCE_WINDOW);
    lower_operand(l, a);
    lower_operand(l, &start);
    set_pool_window(l, w);
    lower_calls(l, region);
    return v;
}

static bool is_real(unsigned elem)
{
    return elem == RP_ELEM_F32 || elem == RP_ELEM_F64 || elem == RP_ELEM_F16 ||
           elem == RP_ELEM_BF16;
}

/* The window that the attributes, or (MaxPoolV2) the inputs say. */
static enum rp_code plan_pool(struct lower *l, const struct lower_node *node, unsigned elem,
                              const int64_t *dims, size_t rank, struct window *w)
{
    int64_t sizes[4] = {1, 1, 1, 1};

    if (!is_real(elem) || !find_layout(node, w))
        return lower_refuse(l, node, "only floats in the layouts NHWC and NCHW are supported");
    lower_attr_ints(node, "ksize", sizes, 4);
    w->size[0] = sizes[w->high];
    w->size[1] = sizes[w->high + 1];
    return plan_window(l, node, dims, rank, w);
}

/* How many elements each window has that are there. */
static struct lower_value count_windows(struct lower *l, const struct lower_value *like,
                                        const struct window *w)
{
    struct lower_value one = lower_fill(l, 1, like);

    return over_windows(l, RP_OP_ADD, &one, w);
}

LOWER(pool)
{
    bool average = node->op.at[0] == 'A';
    struct lower_value counts;
    struct window w = {0};

    (void)nin;
    (void)nout;
    RP_TRY(plan_pool(l, node, in->elem, in->dims, in->rank, &w));
    *out = over_windows(l, average ? RP_OP_ADD : RP_OP_MAXIMUM, in, &w);
    if (average) {
        counts = count_windows(l, in, &w);
        *out = lower_binary(l, RP_OP_DIVIDE, out, &counts);
    }
    return RP_OK;
}

/* (image, its pooled one, gradient): goes to the first largest of each window. */
LOWER(max_pool_grad)
{
    const struct lower_value *image = &in[0], *grad = &in[2];
    uint32_t add, greater_equal;
    struct lower_value zero;
    struct window w = {0};

    (void)nin;
    (void)nout;
    RP_TRY(plan_pool(l, node, image->elem, image->dims, image->rank, &w));
    if (grad->rank != 4 || grad->elem != image->elem)
        return lower_misfit(l, node, "the gradient does not match the input");
    add = lower_region(l, RP_OP_ADD, image->elem);
    greater_equal = lower_region_ge(l, image->elem);
    zero = lower_scalar(l, image->elem, 0);
    *out = lower_like(l, image->elem, image->dims, 4);
    lower_begin(l, out, RP_OP_SELECT_AND_SCATTER);
    lower_operand(l, image);
    lower_operand(l, grad);
    lower_operand(l, &zero);
    set_pool_window(l, &w);
    lower_calls(l, greater_equal);
    lower_calls(l, add);
    return RP_OK;
}

/* (shape, gradient): each window's share, spread by the strides and summed where windows meet. */
LOWER(avg_pool_grad)
{
    const struct lower_value *grad = &in[1];
    int64_t ones[2] = {1, 1}, none[2] = {0, 0}, padding[3 * 4] = {0}, wide[4];
    struct lower_value like, counts, t, zero, padded;
    struct window w = {0};

    (void)nin;
    (void)nout;
    RP_TRY(lower_need_ints(l, node, &in[0], "shape"));
    if (in->nints != 4 || grad->rank != 4)
        return lower_misfit(l, node, "the gradient does not match the input");
    RP_TRY(plan_pool(l, node, grad->elem, in->ints, 4, &w));
    like = lower_like(l, grad->elem, in->ints, 4);
    counts = count_windows(l, &like, &w);
    t = lower_binary(l, RP_OP_DIVIDE, grad, &counts);
    for (size_t i = 0; i < 2; i++) {
        int64_t *pads;

        if (grad->dims[w.high + i] != w.out[i])
            return lower_misfit(l, node, "the gradient does not match the input");
        pads = padding + 3 * (w.high + i);
        pads[0] = w.size[i] - 1 - w.low[i];
        pads[1] = w.image[i] + w.size[i] - 1 - ((w.out[i] - 1) * w.stride[i] + 1) - pads[0];
        pads[2] = w.stride[i] - 1;
        wide[i] = w.image[i] + w.size[i] - 1;
    }
    image_dims(&w, grad->dims[0], (int64_t[]){wide[0], wide[1]}, grad->dims[w.channel], wide);
    zero = lower_scalar(l, grad->elem, 0);
    padded = lower_like(l, grad->elem, wide, 4);
    lower_begin(l, &padded, RP_OP_PAD);
    lower_operand(l, &t);
    lower_operand(l, &zero);
    lower_set_padding(l, padding, 4);
    memcpy(w.out, w.image, sizeof w.out);
    memcpy(w.stride, ones, sizeof ones);
    memcpy(w.low, none, sizeof none);
    memcpy(w.up, none, sizeof none);
    *out = over_windows(l, RP_OP_ADD, &padded, &w);
    return RP_OK;
}

/* ---- batch normalisation ---- */

/* How many elements a channel has. */
static double per_channel(const struct lower_value *x, size_t channel)
{
    int64_t channels = x->dims[channel] ? x->dims[channel] : 1;
    int64_t elements = lower_elements(x) / channels;

    return (double)elements;
}

/* Everything but the channels. */
static struct lower_value over_batch(struct lower *l, const struct lower_value *a, size_t channel)
{
    bool over[4] = {true, true, true, true};

    over[channel] = false;
    return lower_reduce(l, RP_OP_ADD, a, over);
}

static struct lower_value times(struct lower *l, const struct lower_value *a, double factor)
{
    struct lower_value f = lower_fill(l, factor, a);

    return lower_binary(l, RP_OP_MULTIPLY, a, &f);
}

static struct lower_value along_channels(struct lower *l, const struct lower_value *a,
                                         const struct lower_value *like, size_t channel)
{
    int64_t map = (int64_t)channel;

    return lower_spread(l, a, &map, like->dims, 4);
}

/* x - mean, where the mean is one a channel */
static struct lower_value centred(struct lower *l, const struct lower_value *x,
                                  const struct lower_value *mean, size_t channel)
{
    struct lower_value wide = along_channels(l, mean, x, channel);

    return lower_binary(l, RP_OP_SUBTRACT, x, &wide);
}

static struct lower_value inverse_root(struct lower *l, const struct lower_node *node,
                                       const struct lower_value *variance)
{
    struct lower_value t =
        lower_fill(l, (double)lower_attr_float(node, "epsilon", 1e-4F), variance);

    t = lower_binary(l, RP_OP_ADD, variance, &t);
    return lower_unary(l, RP_OP_RSQRT, &t);
}

/* (x - mean) * (scale * rsqrt(variance + epsilon)) + offset; in training of the batch's own mean
   and variance, which come out as well (the variance as that of a sample). */
LOWER(batch_norm)
{
    bool training =
        lower_attr(node, "is_training").at == NULL || lower_attr_bool(node, "is_training");
    struct lower_value x, mean = in[3], variance = in[4], t, factor;
    struct window w = {0};
    double count;

    (void)nin;
    if (in->rank != 4 || !find_layout(node, &w))
        return lower_refuse(l, node, "only the image layouts NHWC and NCHW are supported");
    for (size_t i = 1; i < (training ? 3u : 5u); i++)
        if (in[i].rank != 1 || in[i].dims[0] != in->dims[w.channel])
            return lower_misfit(l, node, "the statistics do not match the input");
    x = lower_convert(l, in, in[1].elem);
    count = per_channel(in, w.channel);
    if (training) {
        t = over_batch(l, &x, w.channel);
        mean = times(l, &t, 1 / count);
        t = centred(l, &x, &mean, w.channel);
        t = lower_binary(l, RP_OP_MULTIPLY, &t, &t);
        t = over_batch(l, &t, w.channel);
        variance = times(l, &t, 1 / count);
    }
    factor = inverse_root(l, node, &variance);
    factor = lower_binary(l, RP_OP_MULTIPLY, &factor, &in[1]);
    factor = along_channels(l, &factor, &x, w.channel);
    t = centred(l, &x, &mean, w.channel);
    t = lower_binary(l, RP_OP_MULTIPLY, &t, &factor);
    factor = along_channels(l, &in[2], &x, w.channel);
    t = lower_binary(l, RP_OP_ADD, &t, &factor);
    out[0] = lower_convert(l, &t, in->elem);
    out[1] = mean;
    out[2] = training && count > 1 ? times(l, &variance, count / (count - 1)) : variance;
    out[3] = mean;
    out[4] = variance;
    out[5] = lower_scalar(l, in[1].elem, 0);
    *nout = 6;
    return RP_OK;
}

/* Of training: (gradient, x, scale, mean, variance). */
LOWER(batch_norm_grad)
{
    struct lower_value x, grad, root, part, sum, dscale, t;
    struct window w = {0};
    double count;

    (void)nin;
    if (in->rank != 4 || in[1].rank != 4 || !find_layout(node, &w) || in[2].rank != 1 ||
        in[3].rank != 1 || in[4].rank != 1 || in[2].dims[0] != in->dims[w.channel] ||
        !lower_attr_bool(node, "is_training") || !in->dims[w.channel])
        return lower_refuse(l, node, "only gradients of training over images are supported");
    grad = lower_convert(l, &in[0], in[2].elem);
    x = lower_convert(l, &in[1], in[2].elem);
    count = per_channel(in, w.channel);
    root = inverse_root(l, node, &in[4]);
    part = centred(l, &x, &in[3], w.channel);
    t = lower_binary(l, RP_OP_MULTIPLY, &grad, &part);
    dscale = over_batch(l, &t, w.channel);
    dscale = lower_binary(l, RP_OP_MULTIPLY, &dscale, &root);
    sum = over_batch(l, &grad, w.channel);
    t = lower_binary(l, RP_OP_MULTIPLY, &dscale, &root);
    t = along_channels(l, &t, &x, w.channel);
    part = lower_binary(l, RP_OP_MULTIPLY, &part, &t);
    t = along_channels(l, &sum, &x, w.channel);
    part = lower_binary(l, RP_OP_ADD, &part, &t);
    part = times(l, &part, 1 / count);
    part = lower_binary(l, RP_OP_SUBTRACT, &grad, &part);
    t = lower_binary(l, RP_OP_MULTIPLY, &in[2], &root);
    t = along_channels(l, &t, &x, w.channel);
    t = lower_binary(l, RP_OP_MULTIPLY, &part, &t);
    out[0] = lower_convert(l, &t, in->elem);
    out[1] = dscale;
    out[2] = sum;
    out[3] = out[4] = lower_scalar(l, in[2].elem, 0);
    *nout = 5;
    return RP_OK;
}

const struct lower_row lower_images[] = {
    {"Conv2D", conv, LOWER_NO_OPCODE, 2},
    {"DepthwiseConv2dNative", depthwise, LOWER_NO_OPCODE, 2},
    {"Conv2DBackpropInput", conv_input, LOWER_NO_OPCODE, 3},
    {"Conv2DBackpropFilter", conv_kernel, LOWER_NO_OPCODE, 3},
    {"MaxPool", pool, LOWER_NO_OPCODE, 1},
    {"AvgPool", pool, LOWER_NO_OPCODE, 1},
    {"MaxPoolGrad", max_pool_grad, LOWER_NO_OPCODE, 3},
    {"AvgPoolGrad", avg_pool_grad, LOWER_NO_OPCODE, 2},
    {"FusedBatchNorm", batch_norm, LOWER_NO_OPCODE, 5},
    {"FusedBatchNormV2", batch_norm, LOWER_NO_OPCODE, 5},
    {"FusedBatchNormV3", batch_norm, LOWER_NO_OPCODE, 5},
    {"FusedBatchNormGradV2", batch_norm_grad, LOWER_NO_OPCODE, 5},
    {"FusedBatchNormGradV3", batch_norm_grad, LOWER_NO_OPCODE, 5},
    {NULL, NULL, LOWER_NO_OPCODE, 0}};
