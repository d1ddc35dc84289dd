/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes convolutions of the reference engine straight from the definition, in f64, s64 or c128:
 *
 *   place in the input = out * stride - pad_low + k * window_dilation, and only where it is a
 *   multiple of base_dilation and inside;
 *   feature groups split input and output features, batch groups split the batch.
 */
#include "exec/data/complex.h"
#include "exec/eval/strided.h"
#include "exec/ref/dot.h"
#include "exec/ref/kernels.h"
#include "exec/ref/reduce.h"
#include "program/floats.h"
#include "program/opcodes.h"

#include <string.h>

static bool is_permutation(int64_t a, int64_t b, const int64_t *spatial, size_t n)
{
    uint64_t seen = 0;

    for (size_t i = 0; i < n + 2; i++) {
        int64_t d = i == 0 ? a : i == 1 ? b : spatial[i - 2];

        if (d >= 0 && d < (int64_t)n + 2)
            seen |= UINT64_C(1) << d;
    }
    return seen == (UINT64_C(1) << (n + 2)) - 1;
}

/* Whether each side has every one of its dimensions once. */
static bool labels_are_sound(const struct rp_conv_dims *d)
{
    return d->nspatial <= RP_WINDOW_DIMS &&
           is_permutation(d->input_batch, d->input_feature, d->input_spatial, d->nspatial) &&
           is_permutation(d->kernel_input, d->kernel_output, d->kernel_spatial, d->nspatial) &&
           is_permutation(d->output_batch, d->output_feature, d->output_spatial, d->nspatial);
}

enum rp_code rp_conv_fill(struct rp_plan *plan, const struct rp_node *node, struct rp_conv *c,
                          struct rp_err *err)
{
    const struct rp_attr *window = rp_node_attr(plan, node, RP_ATTR_WINDOW);

    memset(&c->window, 0, sizeof c->window);
    if (!rp_attr_conv_dims(rp_node_attr(plan, node, RP_ATTR_DIM_LABELS), &c->dims) ||
        !labels_are_sound(&c->dims))
        return rp_node_error(node, RP_FORMAT, err, "missing or malformed dim_labels");
    if (window && !rp_attr_window(window, &c->window))
        return rp_node_error(node, RP_FORMAT, err, "malformed window");
    if (c->window.n != c->dims.nspatial)
        return rp_node_error(node, RP_FORMAT, err, "the window does not match dim_labels");
    RP_TRY(rp_window_check(node, &c->window, err));
    c->feature_groups = rp_node_int(plan, node, RP_ATTR_FEATURE_GROUP_COUNT, 1);
    c->batch_groups = rp_node_int(plan, node, RP_ATTR_BATCH_GROUP_COUNT, 1);
    if (c->feature_groups < 1 || c->batch_groups < 1)
        return rp_node_error(node, RP_FORMAT, err, "a group count below 1");
    return RP_OK;
}

RP_PREPARE(rp_conv_prepare)
{
    struct rp_conv *c = RP_NODE_NEW(plan, struct rp_conv);

    RP_TRY(rp_err_need(c, err, "planning"));
    node->attrs = c;
    if (node->nin != 2)
        return rp_node_error(node, RP_UNSUPPORTED, err, "a convolution of %u operands", node->nin);
    RP_TRY(rp_conv_fill(plan, node, c, err));
    /* Checks that the sizes fit each other, so that the loops need no checks. */
    const struct rp_value_shape *in = rp_node_operand(plan, node, 0);
    const struct rp_value_shape *kernel = rp_node_operand(plan, node, 1);
    size_t rank = c->dims.nspatial + 2;
    if (in->rank != rank || kernel->rank != rank || node->shape->rank != rank)
        return rp_node_error(node, RP_FORMAT, err, "the operands do not match dim_labels");
    int64_t features = in->dims[c->dims.input_feature];
    int64_t outputs = node->shape->dims[c->dims.output_feature];
    int64_t batch = in->dims[c->dims.input_batch];
    if (features != kernel->dims[c->dims.kernel_input] * c->feature_groups ||
        outputs != kernel->dims[c->dims.kernel_output] || outputs % c->feature_groups ||
        batch % c->batch_groups || outputs % c->batch_groups ||
        node->shape->dims[c->dims.output_batch] != batch / c->batch_groups)
        return rp_node_error(node, RP_FORMAT, err, "features, batch and group counts do not match");
    for (size_t k = 0; k < c->dims.nspatial; k++) {
        if (c->window.dim[k].size != kernel->dims[c->dims.kernel_spatial[k]])
            return rp_node_error(node, RP_FORMAT, err,
                                 "the window does not have the size of the kernel");
        if (rp_window_result(&c->window.dim[k], in->dims[c->dims.input_spatial[k]]) !=
            node->shape->dims[c->dims.output_spatial[k]])
            return rp_node_error(node, RP_FORMAT, err,
                                 "the result does not have the size that the window gives");
    }
    return RP_OK;
}

struct sizes {
    const struct rp_conv *c;
    const int64_t *in, *kernel, *out; /* dims */
    int64_t in_stride[RP_TENSOR_RANK], kernel_stride[RP_TENSOR_RANK];
};

/* Finds the offsets of one place of the kernel for one result; false if it is outside. */
static bool conv_tap(const struct sizes *s, const int64_t *out, const int64_t *k, int64_t *in_at,
                     int64_t *kernel_at)
{
    for (size_t d = 0; d < s->c->dims.nspatial; d++) {
        const struct rp_window_dim *w = &s->c->window.dim[d];
        int64_t i =
            out[s->c->dims.output_spatial[d]] * w->stride - w->pad_low + k[d] * w->window_dilation;
        int64_t tap_at = w->reversal ? w->size - 1 - k[d] : k[d];

        if (i < 0 || i % w->base_dilation)
            return false;
        i /= w->base_dilation;
        if (i >= s->in[s->c->dims.input_spatial[d]])
            return false;
        *in_at += i * s->in_stride[s->c->dims.input_spatial[d]];
        *kernel_at += tap_at * s->kernel_stride[s->c->dims.kernel_spatial[d]];
    }
    return true;
}

#define CONVOLVE(name, type)                                                                 \
    static type name(const struct sizes *s, const type *in, const type *kernel,              \
                     const int64_t *out)                                                     \
    {                                                                                        \
        const struct rp_conv_dims *d = &s->c->dims;                                          \
        int64_t features = s->kernel[d->kernel_input], f = out[d->output_feature];           \
        int64_t group = f / (s->out[d->output_feature] / s->c->feature_groups);              \
        int64_t block = f / (s->out[d->output_feature] / s->c->batch_groups);                \
        int64_t batch = out[d->output_batch] + block * s->out[d->output_batch];              \
        int64_t di = s->in_stride[d->input_feature], dk = s->kernel_stride[d->kernel_input]; \
        int64_t size[RP_TENSOR_RANK], k[RP_TENSOR_RANK] = {0};                               \
        type sum = 0;                                                                        \
                                                                                             \
        for (size_t i = 0; i < d->nspatial; i++)                                             \
            size[i] = s->c->window.dim[i].size;                                              \
        do {                                                                                 \
            int64_t at = batch * s->in_stride[d->input_batch] + group * features * di;       \
            int64_t kat = f * s->kernel_stride[d->kernel_output];                            \
                                                                                             \
            if (conv_tap(s, out, k, &at, &kat))                                              \
                for (int64_t i = 0; i < features; i++)                                       \
                    sum += in[at + i * di] * kernel[kat + i * dk];                           \
        } while (rp_index_next(k, size, d->nspatial));                                       \
        return sum;                                                                          \
    }
CONVOLVE(one_float, double)
CONVOLVE(one_integer, uint64_t)
CONVOLVE(one_complex, double complex)

static void conv_all(const struct sizes *s, unsigned wide, const void *in, const void *kernel,
                     struct rp_tensor *to)
{
    int64_t index[RP_TENSOR_RANK] = {0};

    for (size_t i = 0; i < to->n; i++) {
        if (wide == RP_ELEM_F64)
            ((double *)(void *)to->data)[i] = one_float(s, in, kernel, index);
        else if (wide == RP_ELEM_S64)
            ((uint64_t *)(void *)to->data)[i] = one_integer(s, in, kernel, index);
        else
            ((double complex *)(void *)to->data)[i] = one_complex(s, in, kernel, index);
        rp_index_next(index, to->dims, to->rank);
    }
}

enum rp_code rp_conv_run(const struct rp_conv *c, struct rp_tensor *input, struct rp_tensor *kernel,
                         const struct rp_value_shape *shape, struct rp_tensor **out,
                         struct rp_err *err)
{
    unsigned wide = rp_elem_is_complex(shape->elem) ? RP_ELEM_C128
                    : rp_elem_is_float(shape->elem) ? RP_ELEM_F64
                                                    : RP_ELEM_S64;
    struct sizes s = {.c = c, .in = input->dims, .kernel = kernel->dims, .out = shape->dims};
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *in = NULL, *k = NULL, *to = NULL;
    bool empty = false;

    rp_strides(input->dims, input->rank, s.in_stride);
    rp_strides(kernel->dims, kernel->rank, s.kernel_stride);
    for (size_t i = 0; i < c->dims.nspatial; i++)
        empty |= c->window.dim[i].size == 0;
    RP_TRY(rp_tensor_as(input, wide, &in, err));
    RP_TRY(rp_tensor_as(kernel, wide, &k, err));
    RP_TRY(rp_tensor_new(wide, shape->dims, shape->rank, &to, err));
    if (empty)
        memset(to->data, 0, rp_tensor_bytes(to));
    else
        conv_all(&s, wide, in->data, k->data, to);
    return rp_tensor_as(to, shape->elem, out, err);
}

static RP_KERNEL(conv_kernel)
{
    return rp_conv_run(node->attrs, in[0], in[1], node->shape, out, err);
}

const struct rp_kernel rp_kernels_conv[] = {
    {RP_OP_CONVOLUTION, rp_conv_prepare, conv_kernel},
    {0, NULL, NULL},
};
