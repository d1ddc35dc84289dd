/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions: every output is a sum over the window and the channels of its group; positions of
 * the window outside the input count, too, as everybody counts them. A gradient costs as much as
 * the forward pass.
 */
#include "cost/models.h"

#define SPATIAL 5
RP_LIMIT(SPATIAL, "dimensions of a picture", "a convolution with more of them has no model");

/* Where an operator has its arguments; -1 if it lacks one. */
static const struct conv_signature {
    int8_t bias, stride, padding, dilation, transposed, output_padding, groups;
    bool is_transposed;
} signatures[RP_CONV_KINDS] = {
    [RP_CONV_PLAIN] = {2, 3, 4, 5, 6, 7, 8, false},
    [RP_CONV_SHORT] = {2, 3, 4, 5, -1, -1, 6, false},
    [RP_CONV_TRANSPOSED] = {2, 3, 4, 7, -1, 5, 6, true},
    [RP_CONV_CUDNN] = {-1, 3, 2, 4, -1, -1, 5, false},
    [RP_CONV_CUDNN_RELU] = {2, 3, 4, 5, -1, -1, 6, false},
    [RP_CONV_CUDNN_TRANSPOSED] = {-1, 4, 2, 5, -1, 3, 6, true},
    [RP_CONV_MIOPEN] = {2, 4, 3, 5, -1, -1, 6, false},
    [RP_CONV_MIOPEN_TRANSPOSED] = {2, 5, 3, 6, -1, 4, 7, true},
    [RP_CONV_DEPTHWISE] = {3, 4, 5, 6, -1, -1, -1, false},
    [RP_CONV_SLOW] = {3, 4, 5, -1, -1, -1, -1, false},
};

struct conv_shape {
    uint32_t nspatial;
    double out[SPATIAL]; /* sizes of the result */
    double window;       /* number of positions of the kernel */
    double groups;
    bool transposed;
};

/* Returns the value for a dimension: lists may have a single one for all. */
static double of_dim(const double *list, uint32_t n, uint32_t i, double otherwise)
{
    return n ? list[i < n ? i : n - 1] : otherwise;
}

static uint32_t get_list(const struct rp_inputs *in, int i, double *out)
{
    return i < 0 ? 0 : rp_inputs_ints(in, (uint32_t)i, out, SPATIAL);
}

/* Finds the shape of the result from those of x [n, c, …] and w [f, c / groups, …]. */
static const char *shape_result(const struct rp_inputs *in, const struct conv_signature *s,
                                const struct rp_input_tensor *x, const struct rp_input_tensor *w,
                                struct conv_shape *c)
{
    double stride[SPATIAL], padding[SPATIAL], dilation[SPATIAL], output_padding[SPATIAL];
    uint32_t ns = get_list(in, s->stride, stride), np = get_list(in, s->padding, padding),
             nd = get_list(in, s->dilation, dilation),
             no = get_list(in, s->output_padding, output_padding), i;
    bool same = s->padding >= 0 && rp_inputs_word(in, (uint32_t)s->padding, "same");

    if (x->ndims < 3 || x->ndims != w->ndims || x->ndims - 2u > SPATIAL)
        return RP_ODD_SHAPES;
    if (!ns)
        return RP_NO_ARGUMENTS;
    *c = (struct conv_shape){.nspatial = x->ndims - 2u, .window = 1, .groups = 1};
    c->transposed =
        s->is_transposed || (s->transposed >= 0 && rp_inputs_flag(in, (uint32_t)s->transposed));
    if (s->groups >= 0 && (!rp_inputs_int(in, (uint32_t)s->groups, &c->groups) || c->groups < 1))
        c->groups = 1;
    for (i = 0; i < c->nspatial; i++) {
        double step = of_dim(stride, ns, i, 1), pad = of_dim(padding, np, i, 0);
        double reach = of_dim(dilation, nd, i, 1) * (w->dim[i + 2] - 1);
        double size = x->dim[i + 2];

        if (step < 1)
            return RP_ODD_SHAPES;
        c->window *= w->dim[i + 2];
        if (c->transposed)
            c->out[i] = (size - 1) * step - 2 * pad + reach + of_dim(output_padding, no, i, 0) + 1;
        else
            c->out[i] = same ? ceil(size / step) : floor((size + 2 * pad - reach - 1) / step) + 1;
        if (c->out[i] < 1)
            return RP_ODD_SHAPES;
    }
    return NULL;
}

static double positions(const double *sizes, uint32_t n)
{
    double all = 1;

    for (uint32_t i = 0; i < n; i++)
        all *= sizes[i];
    return all;
}

/* Returns the FLOPs of one pass: each position of the side over which the window moves meets all
   weights of one of its channels. */
static double pass_flops(const struct conv_shape *c, const struct rp_input_tensor *x,
                         const struct rp_input_tensor *w)
{
    if (c->transposed) /* w [c, f / groups, …] */
        return 2 * x->n * w->dim[1] * c->window;
    return 2 * x->dim[0] * w->dim[0] * positions(c->out, c->nspatial) * w->dim[1] * c->window;
}

const char *rp_model_conv(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    const struct conv_signature *s = &signatures[arg];
    const struct rp_input_tensor *x = rp_inputs_tensor(in, 0), *w = rp_inputs_tensor(in, 1), *bias;
    struct conv_shape c;

    if (!x || !w)
        return RP_NO_SHAPES;
    const char *missing = shape_result(in, s, x, w, &c);
    if (missing)
        return missing;
    if (x->size <= 0)
        return RP_NO_TYPES;
    double features = c.transposed ? w->dim[1] * c.groups : w->dim[0];
    out->flops = pass_flops(&c, x, w);
    out->bytes = rp_input_bytes(x) + rp_input_bytes(w) +
                 x->dim[0] * features * positions(c.out, c.nspatial) * (double)x->size;
    bias = s->bias >= 0 ? rp_inputs_tensor(in, (uint32_t)s->bias) : NULL;
    out->bytes += bias ? rp_input_bytes(bias) : 0;
    out->type = rp_product_type(in, x);
    out->on_matrix = true;
    return NULL;
}

/* convolution_backward(gradient, x, w, bias sizes, stride, …, output_mask) */
const char *rp_model_conv_backward(const struct rp_inputs *in, int arg, struct rp_op_cost *out)
{
    static const struct conv_signature s = {-1, 4, 5, 6, 7, 8, 9, false};
    const struct rp_input_tensor *g = rp_inputs_tensor(in, 0), *x = rp_inputs_tensor(in, 1),
                                 *w = rp_inputs_tensor(in, 2);
    double mask[3] = {1, 1, 0}, flops;
    struct conv_shape c;

    (void)arg;
    if (!g || !x || !w)
        return RP_NO_SHAPES;
    const char *missing = shape_result(in, &s, x, w, &c);
    if (missing)
        return missing;
    if (x->size <= 0)
        return RP_NO_TYPES;
    if (rp_inputs_ints(in, 10, mask, 3) != 3)
        return RP_NO_ARGUMENTS;
    flops = pass_flops(&c, x, w);
    out->flops = (mask[0] != 0) * flops + (mask[1] != 0) * flops + (mask[2] != 0) * g->n;
    out->bytes = rp_input_bytes(g);
    if (mask[0] != 0) /* reads the weights, writes the gradient of x */
        out->bytes += rp_input_bytes(w) + x->n * (double)x->size;
    if (mask[1] != 0)
        out->bytes += rp_input_bytes(x) + w->n * (double)w->size;
    if (mask[2] != 0)
        out->bytes += (c.transposed ? w->dim[1] * c.groups : w->dim[0]) * (double)x->size;
    out->type = rp_product_type(in, x);
    out->on_matrix = true;
    return NULL;
}
