/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lowers operators of TensorFlow over images (NHWC or NCHW): convolutions and their gradients,
 * pooling and its gradients, batch normalisation. The window of an operator is computed first:
 * sizes, strides, dilations and the padding on both sides. The windows of gradients follow from it.
 */
#include "lower/inner.h"
#include "program/opcodes.h"

#include <math.h>
#include <string.h>

struct image_window {
    bool second; /* NCHW: channels are dimension 1 */
    size_t high, channel;
    int64_t image[2], size[2], stride[2], low[2], up[2], dilation[2], out[2];
};

/* ---- windows ---- */

static bool find_layout(const struct rp_lower_node *node, struct image_window *w)
{
    struct rp_bytes format = rp_lower_attr_text(node, "data_format");

    w->second = rp_lower_attr_is(node, "data_format", "NCHW");
    w->high = w->second ? 2 : 1;
    w->channel = w->second ? 1 : 3;
    return w->second || !format.n || rp_lower_attr_is(node, "data_format", "NHWC");
}

/* Computes output size and padding of one of the two dimensions. */
static bool plan_dim(struct image_window *w, size_t i, bool same, bool given)
{
    int64_t n = w->image[i];

    if (w->stride[i] < 1 || w->dilation[i] < 1 || w->size[i] < 1 || w->size[i] > INT32_MAX ||
        w->dilation[i] > INT32_MAX || w->stride[i] > INT32_MAX)
        return false;
    int64_t reach = (w->size[i] - 1) * w->dilation[i] + 1;
    if (same) {
        w->out[i] = (n + w->stride[i] - 1) / w->stride[i];
        int64_t all = (w->out[i] - 1) * w->stride[i] + reach - n;
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

/* Computes the window over an image of these dimensions; w->size is already set. */
static enum rp_code plan_window(struct rp_lower *l, const struct rp_lower_node *node,
                                const int64_t *dims, size_t rank, struct image_window *w)
{
    int64_t strides[4] = {1, 1, 1, 1}, dilations[4] = {1, 1, 1, 1}, pads[8] = {0};
    bool same = rp_lower_attr_is(node, "padding", "SAME");
    bool given = rp_lower_attr_is(node, "padding", "EXPLICIT");

    if (rank != 4 || !find_layout(node, w))
        return rp_lower_refuse(l, node, "only the image layouts NHWC and NCHW are supported");
    rp_lower_attr_ints(node, "strides", strides, 4);
    rp_lower_attr_ints(node, "dilations", dilations, 4);
    if (given && rp_lower_attr_ints(node, "explicit_paddings", pads, 8) != 8)
        return rp_lower_refuse(l, node, "invalid padding");
    for (size_t i = 0; i < 2; i++) {
        w->image[i] = dims[w->high + i];
        w->stride[i] = strides[w->high + i];
        w->dilation[i] = dilations[w->high + i];
        w->low[i] = pads[2 * (w->high + i)];
        w->up[i] = pads[2 * (w->high + i) + 1];
        if (!plan_dim(w, i, same, given))
            return rp_lower_refuse(l, node, "invalid window");
    }
    return RP_OK;
}

/* Sets the dimensions of n images of this size and number of channels. */
static void image_dims(const struct image_window *w, int64_t n, const int64_t *size,
                       int64_t channels, int64_t *dims)
{
    dims[0] = n;
    dims[w->channel] = channels;
    dims[w->high] = size[0];
    dims[w->high + 1] = size[1];
}

/* ---- convolutions ---- */

/* Returns the dimension numbers of images in their layout, and of a kernel [h, w, in, out]. */
static struct rp_conv_dims conv_dims(const struct image_window *w)
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

static void set_conv(struct rp_lower *l, const struct rp_window *window,
                     const struct rp_conv_dims *dims)
{
    rp_lower_set_window(l, window);
    rp_lower_set(l, rp_attr_of_conv_dims(l->builder.program, dims));
}

static void convolve(struct rp_lower *l, const struct rp_lower_value *image,
                     const struct rp_lower_value *kernel, const struct image_window *w,
                     int64_t groups, struct rp_lower_value *out)
{
    struct rp_conv_dims numbers = conv_dims(w);
    struct rp_window window = rp_lower_window(2);
    int64_t dims[4];

    for (size_t i = 0; i < 2; i++)
        window.dim[i] = (struct rp_window_dim){.size = w->size[i],
                                               .stride = w->stride[i],
                                               .pad_low = w->low[i],
                                               .pad_high = w->up[i],
                                               .base_dilation = 1,
                                               .window_dilation = w->dilation[i]};
    image_dims(w, image->dims[0], w->out, kernel->dims[3], dims);
    *out = rp_lower_like(l, image->elem, dims, 4);
    rp_lower_begin(l, out, RP_OP_CONVOLUTION);
    rp_lower_operand(l, image);
    rp_lower_operand(l, kernel);
    set_conv(l, &window, &numbers);
    rp_lower_set_int(l, RP_ATTR_FEATURE_GROUP_COUNT, groups);
}

/* Whether a kernel [h, w, in, out] fits the channels of an image. */
static bool kernel_fits(const struct rp_lower_node *node, const struct rp_lower_value *image,
                        const struct rp_lower_value *kernel, struct image_window *w)
{
    if (image->rank != 4 || kernel->rank != 4 || kernel->elem != image->elem ||
        !find_layout(node, w) || !kernel->dims[2] || image->dims[w->channel] % kernel->dims[2])
        return false;
    w->size[0] = kernel->dims[0];
    w->size[1] = kernel->dims[1];
    return true;
}

RP_LOWER(conv)
{
    struct image_window w = {0};

    if (!kernel_fits(node, &in[0], &in[1], &w))
        return rp_lower_misfit(l, node, "the kernel does not match the input");
    RP_TRY(plan_window(l, node, in->dims, in->rank, &w));
    convolve(l, &in[0], &in[1], &w, in->dims[w.channel] / in[1].dims[2], out);
    return RP_OK;
}

/* Each channel has kernels of its own: [h, w, channels, k] is [h, w, 1, channels * k]. */
RP_LOWER(depthwise)
{
    struct image_window w = {0};

    if (!kernel_fits(node, &in[0], &in[1], &w) || in->dims[w.channel] != in[1].dims[2])
        return rp_lower_misfit(l, node, "the kernel does not match the input");
    RP_TRY(plan_window(l, node, in->dims, in->rank, &w));
    struct rp_lower_value kernel = rp_lower_reshape(
        l, &in[1], (int64_t[]){in[1].dims[0], in[1].dims[1], 1, in[1].dims[2] * in[1].dims[3]}, 4);
    convolve(l, &in[0], &kernel, &w, in->dims[w.channel], out);
    return RP_OK;
}

/* The gradient of a convolution's input, from (shape, kernel, gradient): the gradient is dilated by
   the strides and convolved with the reversed kernel. */
RP_LOWER(conv_input)
{
    const struct rp_lower_value *kernel = &in[1], *grad = &in[2];
    struct rp_window window = rp_lower_window(2);
    struct image_window w = {0};

    RP_TRY(rp_lower_need_ints(l, node, &in[0], "shape"));
    if (in->nints != 4 || kernel->rank != 4 || grad->rank != 4 || kernel->elem != grad->elem ||
        !find_layout(node, &w) || in->ints[w.channel] != kernel->dims[2])
        return rp_lower_misfit(l, node, "the kernel does not match the input");
    memcpy(w.size, kernel->dims, sizeof w.size);
    RP_TRY(plan_window(l, node, in->ints, 4, &w));
    for (size_t i = 0; i < 2; i++) {
        int64_t reach = (w.size[i] - 1) * w.dilation[i];

        if (grad->dims[w.high + i] != w.out[i])
            return rp_lower_misfit(l, node, "the gradient does not match the input");
        window.dim[i] = (struct rp_window_dim){.size = w.size[i],
                                               .stride = 1,
                                               .pad_low = reach - w.low[i],
                                               .pad_high = w.image[i] + w.low[i] -
                                                           ((w.out[i] - 1) * w.stride[i] + 1),
                                               .base_dilation = w.stride[i],
                                               .window_dilation = w.dilation[i],
                                               .reversal = true};
    }
    *out = rp_lower_like(l, grad->elem, in->ints, 4);
    rp_lower_begin(l, out, RP_OP_CONVOLUTION);
    rp_lower_operand(l, grad);
    rp_lower_operand(l, kernel);
    struct rp_conv_dims numbers = conv_dims(&w);
    numbers.kernel_input = 3;
    numbers.kernel_output = 2;
    set_conv(l, &window, &numbers);
    return RP_OK;
}

/* The gradient of a convolution's kernel, from (image, shape, gradient): the batch takes the place
   of the features, and the gradient that of the kernel. */
RP_LOWER(conv_kernel)
{
    const struct rp_lower_value *image = &in[0], *grad = &in[2];
    struct rp_window window = rp_lower_window(2);
    struct image_window w = {0};

    RP_TRY(rp_lower_need_ints(l, node, &in[1], "shape"));
    if (in[1].nints != 4 || image->rank != 4 || grad->rank != 4 || image->elem != grad->elem ||
        !find_layout(node, &w) || in[1].ints[2] != image->dims[w.channel])
        return rp_lower_misfit(l, node, "the kernel does not match the input");
    memcpy(w.size, in[1].ints, sizeof w.size);
    RP_TRY(plan_window(l, node, image->dims, 4, &w));
    for (size_t i = 0; i < 2; i++) {
        if (grad->dims[w.high + i] != w.out[i])
            return rp_lower_misfit(l, node, "the gradient does not match the input");
        window.dim[i] =
            (struct rp_window_dim){.size = w.out[i],
                                   .stride = w.dilation[i],
                                   .pad_low = w.low[i],
                                   .pad_high = (w.size[i] - 1) * w.dilation[i] + 1 +
                                               (w.out[i] - 1) * w.stride[i] - w.low[i] - w.image[i],
                                   .base_dilation = 1,
                                   .window_dilation = w.stride[i]};
    }
    *out = rp_lower_like(l, grad->elem, in[1].ints, 4);
    rp_lower_begin(l, out, RP_OP_CONVOLUTION);
    rp_lower_operand(l, image);
    rp_lower_operand(l, grad);
    struct rp_conv_dims numbers = {
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

/* Sets the window over all four dimensions of an image. */
static void set_pool_window(struct rp_lower *l, const struct image_window *w)
{
    struct rp_window window = rp_lower_window(4);

    for (size_t i = 0; i < 2; i++) {
        struct rp_window_dim *dim = &window.dim[w->high + i];

        dim->size = w->size[i];
        dim->stride = w->stride[i];
        dim->pad_low = w->low[i];
        dim->pad_high = w->up[i];
    }
    rp_lower_set_window(l, &window);
}

/* Computes sums or maxima over windows. */
static struct rp_lower_value over_windows(struct rp_lower *l, enum rp_opcode opcode,
                                          const struct rp_lower_value *a,
                                          const struct image_window *w)
{
    uint32_t region = rp_lower_region(l, opcode, a->elem);
    int64_t dims[4];
    struct rp_lower_value start =
        rp_lower_scalar(l, a->elem, opcode != RP_OP_ADD ? -(double)INFINITY : 0);

    image_dims(w, a->dims[0], w->out, a->dims[w->channel], dims);
    struct rp_lower_value v = rp_lower_like(l, a->elem, dims, 4);
    rp_lower_begin(l, &v, RP_OP_REDUCE_WINDOW);
    rp_lower_operand(l, a);
    rp_lower_operand(l, &start);
    set_pool_window(l, w);
    rp_lower_calls(l, region);
    return v;
}

static bool is_real(unsigned elem)
{
    return elem == RP_ELEM_F32 || elem == RP_ELEM_F64 || elem == RP_ELEM_F16 ||
           elem == RP_ELEM_BF16;
}

/* Finds the window that the attributes describe. */
static enum rp_code plan_pool(struct rp_lower *l, const struct rp_lower_node *node, unsigned elem,
                              const int64_t *dims, size_t rank, struct image_window *w)
{
    int64_t sizes[4] = {1, 1, 1, 1};

    if (!is_real(elem) || !find_layout(node, w))
        return rp_lower_refuse(l, node, "only floats in the layouts NHWC and NCHW are supported");
    rp_lower_attr_ints(node, "ksize", sizes, 4);
    if (sizes[0] != 1 || sizes[w->channel] != 1)
        return rp_lower_refuse(l, node, "windows over images or channels are not supported");
    w->size[0] = sizes[w->high];
    w->size[1] = sizes[w->high + 1];
    return plan_window(l, node, dims, rank, w);
}

/* Counts the elements in each window that are not padding. */
static struct rp_lower_value count_windows(struct rp_lower *l, const struct rp_lower_value *like,
                                           const struct image_window *w)
{
    struct rp_lower_value one = rp_lower_fill(l, 1, like);

    return over_windows(l, RP_OP_ADD, &one, w);
}

RP_LOWER(pool)
{
    bool average = node->op.at[0] == 'A';
    struct image_window w = {0};

    RP_TRY(plan_pool(l, node, in->elem, in->dims, in->rank, &w));
    *out = over_windows(l, average ? RP_OP_ADD : RP_OP_MAXIMUM, in, &w);
    if (average) {
        struct rp_lower_value counts = count_windows(l, in, &w);
        *out = rp_lower_binary(l, RP_OP_DIVIDE, out, &counts);
    }
    return RP_OK;
}

/* (image, pooled image, gradient): the gradient goes to the first maximum of each window. */
RP_LOWER(max_pool_grad)
{
    const struct rp_lower_value *image = &in[0], *grad = &in[2];
    struct image_window w = {0};

    RP_TRY(plan_pool(l, node, image->elem, image->dims, image->rank, &w));
    if (grad->rank != 4 || grad->elem != image->elem)
        return rp_lower_misfit(l, node, "the gradient does not match the input");
    uint32_t add = rp_lower_region(l, RP_OP_ADD, image->elem);
    uint32_t greater_equal = rp_lower_region_ge(l, image->elem);
    struct rp_lower_value zero = rp_lower_scalar(l, image->elem, 0);
    *out = rp_lower_like(l, image->elem, image->dims, 4);
    rp_lower_begin(l, out, RP_OP_SELECT_AND_SCATTER);
    rp_lower_operand(l, image);
    rp_lower_operand(l, grad);
    rp_lower_operand(l, &zero);
    set_pool_window(l, &w);
    rp_lower_calls(l, greater_equal);
    rp_lower_calls(l, add);
    return RP_OK;
}

/* (shape, gradient): the share of each window is dilated by the strides and summed if windows
   overlap. */
RP_LOWER(avg_pool_grad)
{
    const struct rp_lower_value *grad = &in[1];
    int64_t ones[2] = {1, 1}, none[2] = {0, 0}, padding[3 * 4] = {0}, wide[4];
    struct image_window w = {0};

    RP_TRY(rp_lower_need_ints(l, node, &in[0], "shape"));
    if (in->nints != 4 || grad->rank != 4)
        return rp_lower_misfit(l, node, "the gradient does not match the input");
    RP_TRY(plan_pool(l, node, grad->elem, in->ints, 4, &w));
    struct rp_lower_value like = rp_lower_like(l, grad->elem, in->ints, 4);
    struct rp_lower_value counts = count_windows(l, &like, &w);
    struct rp_lower_value t = rp_lower_binary(l, RP_OP_DIVIDE, grad, &counts);
    for (size_t i = 0; i < 2; i++) {
        if (grad->dims[w.high + i] != w.out[i])
            return rp_lower_misfit(l, node, "the gradient does not match the input");
        int64_t *pads = padding + 3 * (w.high + i);
        pads[0] = w.size[i] - 1 - w.low[i];
        pads[1] = w.image[i] + w.size[i] - 1 - ((w.out[i] - 1) * w.stride[i] + 1) - pads[0];
        pads[2] = w.stride[i] - 1;
        wide[i] = w.image[i] + w.size[i] - 1;
    }
    image_dims(&w, grad->dims[0], (int64_t[]){wide[0], wide[1]}, grad->dims[w.channel], wide);
    struct rp_lower_value zero = rp_lower_scalar(l, grad->elem, 0);
    struct rp_lower_value padded = rp_lower_like(l, grad->elem, wide, 4);
    rp_lower_begin(l, &padded, RP_OP_PAD);
    rp_lower_operand(l, &t);
    rp_lower_operand(l, &zero);
    rp_lower_set_padding(l, padding, 4);
    memcpy(w.out, w.image, sizeof w.out);
    memcpy(w.stride, ones, sizeof ones);
    memcpy(w.low, none, sizeof none);
    memcpy(w.up, none, sizeof none);
    *out = over_windows(l, RP_OP_ADD, &padded, &w);
    return RP_OK;
}

/* ---- batch normalisation ---- */

/* Returns the number of elements per channel. */
static double per_channel(const struct rp_lower_value *x, size_t channel)
{
    int64_t channels = x->dims[channel] ? x->dims[channel] : 1;
    int64_t elements = rp_lower_elements(x) / channels;

    return (double)elements;
}

/* Sums over all dimensions except the channels. */
static struct rp_lower_value over_batch(struct rp_lower *l, const struct rp_lower_value *a,
                                        size_t channel)
{
    bool over[4] = {true, true, true, true};

    over[channel] = false;
    return rp_lower_reduce(l, RP_OP_ADD, a, over);
}

static struct rp_lower_value scale_value(struct rp_lower *l, const struct rp_lower_value *a,
                                         double factor)
{
    struct rp_lower_value f = rp_lower_fill(l, factor, a);

    return rp_lower_binary(l, RP_OP_MULTIPLY, a, &f);
}

static struct rp_lower_value along_channels(struct rp_lower *l, const struct rp_lower_value *a,
                                            const struct rp_lower_value *like, size_t channel)
{
    int64_t map = (int64_t)channel;

    return rp_lower_spread(l, a, &map, like->dims, 4);
}

/* x - mean, with one mean per channel */
static struct rp_lower_value subtract_mean(struct rp_lower *l, const struct rp_lower_value *x,
                                           const struct rp_lower_value *mean, size_t channel)
{
    struct rp_lower_value wide = along_channels(l, mean, x, channel);

    return rp_lower_binary(l, RP_OP_SUBTRACT, x, &wide);
}

static struct rp_lower_value inverse_root(struct rp_lower *l, const struct rp_lower_node *node,
                                          const struct rp_lower_value *variance)
{
    struct rp_lower_value t =
        rp_lower_fill(l, (double)rp_lower_attr_float(node, "epsilon", 1e-4F), variance);

    t = rp_lower_binary(l, RP_OP_ADD, variance, &t);
    return rp_lower_unary(l, RP_OP_RSQRT, &t);
}

/* Returns the new value of a running statistic in training, which mixes in a part of that of the
   batch. */
static struct rp_lower_value running_value(struct rp_lower *l, const struct rp_lower_node *node,
                                           const struct rp_lower_value *before,
                                           const struct rp_lower_value *batch)
{
    double share = (double)rp_lower_attr_float(node, "exponential_avg_factor", 1);

    if (share == 1 || before->rank != 1 || before->dims[0] != batch->dims[0])
        return *batch;
    struct rp_lower_value a = scale_value(l, before, 1 - share);
    struct rp_lower_value b = scale_value(l, batch, share);
    return rp_lower_binary(l, RP_OP_ADD, &a, &b);
}

/* (x - mean) * (scale * rsqrt(variance + epsilon)) + offset; training uses mean and variance of
   the batch and returns them, too (the variance with the correction for a sample). */
RP_LOWER(batch_norm)
{
    bool training =
        rp_lower_attr(node, "is_training").at == NULL || rp_lower_attr_bool(node, "is_training");
    struct rp_lower_value mean = in[3], variance = in[4];
    struct image_window w = {0};

    if (in->rank != 4 || !find_layout(node, &w))
        return rp_lower_refuse(l, node, "only the image layouts NHWC and NCHW are supported");
    for (size_t i = 1; i < (training ? 3u : 5u); i++)
        if (in[i].rank != 1 || in[i].dims[0] != in->dims[w.channel])
            return rp_lower_misfit(l, node, "the statistics do not match the input");
    struct rp_lower_value x = rp_lower_convert(l, in, in[1].elem);
    double count = per_channel(in, w.channel);
    if (training) {
        struct rp_lower_value t = over_batch(l, &x, w.channel);
        mean = scale_value(l, &t, 1 / count);
        t = subtract_mean(l, &x, &mean, w.channel);
        t = rp_lower_binary(l, RP_OP_MULTIPLY, &t, &t);
        t = over_batch(l, &t, w.channel);
        variance = scale_value(l, &t, 1 / count);
    }
    struct rp_lower_value factor = inverse_root(l, node, &variance);
    factor = rp_lower_binary(l, RP_OP_MULTIPLY, &factor, &in[1]);
    factor = along_channels(l, &factor, &x, w.channel);
    struct rp_lower_value t = subtract_mean(l, &x, &mean, w.channel);
    t = rp_lower_binary(l, RP_OP_MULTIPLY, &t, &factor);
    factor = along_channels(l, &in[2], &x, w.channel);
    t = rp_lower_binary(l, RP_OP_ADD, &t, &factor);
    out[0] = rp_lower_convert(l, &t, in->elem);
    out[1] = mean;
    out[2] = training && count > 1 ? scale_value(l, &variance, count / (count - 1)) : variance;
    for (size_t i = 1; training && i < 3; i++)
        out[i] = running_value(l, node, &in[2 + i], &out[i]);
    out[3] = mean;
    out[4] = variance;
    out[5] = rp_lower_scalar(l, in[1].elem, 0);
    *nout = 6;
    return RP_OK;
}

/* (gradient, x, scale, mean, variance). In training, the statistics depend on x, too. */
RP_LOWER(batch_norm_grad)
{
    struct image_window w = {0};
    bool training =
        rp_lower_attr(node, "is_training").at == NULL || rp_lower_attr_bool(node, "is_training");

    if (in->rank != 4 || in[1].rank != 4 || !find_layout(node, &w) || in[2].rank != 1 ||
        in[3].rank != 1 || in[4].rank != 1 || in[2].dims[0] != in->dims[w.channel] ||
        !in->dims[w.channel])
        return rp_lower_refuse(l, node, "only the image layouts NHWC and NCHW are supported");
    struct rp_lower_value grad = rp_lower_convert(l, &in[0], in[2].elem);
    struct rp_lower_value x = rp_lower_convert(l, &in[1], in[2].elem);
    double count = per_channel(in, w.channel);
    struct rp_lower_value root = inverse_root(l, node, &in[4]);
    struct rp_lower_value part = subtract_mean(l, &x, &in[3], w.channel);
    struct rp_lower_value t = rp_lower_binary(l, RP_OP_MULTIPLY, &grad, &part);
    struct rp_lower_value dscale = over_batch(l, &t, w.channel);
    dscale = rp_lower_binary(l, RP_OP_MULTIPLY, &dscale, &root);
    struct rp_lower_value sum = over_batch(l, &grad, w.channel);
    t = rp_lower_binary(l, RP_OP_MULTIPLY, &dscale, &root);
    t = along_channels(l, &t, &x, w.channel);
    part = rp_lower_binary(l, RP_OP_MULTIPLY, &part, &t);
    t = along_channels(l, &sum, &x, w.channel);
    part = rp_lower_binary(l, RP_OP_ADD, &part, &t);
    part = scale_value(l, &part, 1 / count);
    part = training ? rp_lower_binary(l, RP_OP_SUBTRACT, &grad, &part) : grad;
    t = rp_lower_binary(l, RP_OP_MULTIPLY, &in[2], &root);
    t = along_channels(l, &t, &x, w.channel);
    t = rp_lower_binary(l, RP_OP_MULTIPLY, &part, &t);
    out[0] = rp_lower_convert(l, &t, in->elem);
    out[1] = dscale;
    out[2] = sum;
    out[3] = out[4] = rp_lower_scalar(l, in[2].elem, 0);
    *nout = 5;
    return RP_OK;
}

const struct rp_lower_row rp_lower_images[] = {
    {"Conv2D", lower_conv, RP_LOWER_NO_OPCODE, 2},
    {"DepthwiseConv2dNative", lower_depthwise, RP_LOWER_NO_OPCODE, 2},
    {"Conv2DBackpropInput", lower_conv_input, RP_LOWER_NO_OPCODE, 3},
    {"Conv2DBackpropFilter", lower_conv_kernel, RP_LOWER_NO_OPCODE, 3},
    {"MaxPool", lower_pool, RP_LOWER_NO_OPCODE, 1},
    {"AvgPool", lower_pool, RP_LOWER_NO_OPCODE, 1},
    {"MaxPoolGrad", lower_max_pool_grad, RP_LOWER_NO_OPCODE, 3},
    {"AvgPoolGrad", lower_avg_pool_grad, RP_LOWER_NO_OPCODE, 2},
    {"FusedBatchNorm", lower_batch_norm, RP_LOWER_NO_OPCODE, 5},
    {"FusedBatchNormV2", lower_batch_norm, RP_LOWER_NO_OPCODE, 5},
    {"FusedBatchNormV3", lower_batch_norm, RP_LOWER_NO_OPCODE, 5},
    {"FusedBatchNormGradV2", lower_batch_norm_grad, RP_LOWER_NO_OPCODE, 5},
    {"FusedBatchNormGradV3", lower_batch_norm_grad, RP_LOWER_NO_OPCODE, 6},
    {NULL, NULL, RP_LOWER_NO_OPCODE, 0}};
