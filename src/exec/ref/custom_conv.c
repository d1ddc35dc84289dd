/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes the convolutions for which XLA:GPU calls cuDNN: forward, with a bias, a side input and
 * an activation after it, and the two backward ones, whose window and dim_labels are the forward
 * one's. Sums are in f64. Cost: one multiplication and addition for each term.
 */
#include "exec/ref/custom.h"
#include "exec/ref/dot.h"
#include "exec/ref/reduce.h"

#include <math.h>
#include <string.h>

enum kind { FORWARD, INPUT, FILTER };

struct custom {
    enum kind kind;
    struct rp_conv conv;
    double alpha, side_scale, leak;
    char activation[24];
};

static double activate(const struct custom *c, double x)
{
    const char *name = c->activation;

    if (!strcmp(name, "kRelu"))
        return x > 0 || x != x ? x : 0;
    if (!strcmp(name, "kRelu6"))
        return x != x ? x : fmin(fmax(x, 0), 6);
    if (!strcmp(name, "kElu"))
        return x > 0 ? x : expm1(x);
    if (!strcmp(name, "kLeakyRelu"))
        return x > 0 ? x : c->leak * x;
    if (!strcmp(name, "kSigmoid"))
        return 1 / (1 + exp(-x));
    return !strcmp(name, "kTanh") ? tanh(x) : x;
}

static bool activation_known(const char *activation)
{
    static const char *const names[] = {"",     "kNone",      "kRelu",    "kRelu6",
                                        "kElu", "kLeakyRelu", "kSigmoid", "kTanh"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], activation))
            return true;
    return false;
}

static enum rp_code custom_conv_prepare(struct rp_plan *plan, struct rp_node *node, enum kind kind,
                                        struct rp_err *err)
{
    struct custom *c = RP_NODE_NEW(plan, struct custom);
    const struct rp_value_shape *shape = rp_custom_shape(node);

    RP_TRY(rp_err_need(c, err, "planning"));
    node->attrs = c;
    c->kind = kind;
    if (node->nin < 2)
        return rp_node_error(node, RP_FORMAT, err, "a convolution of one operand");
    RP_TRY(rp_conv_fill(plan, node, &c->conv, err));
    size_t rank = c->conv.dims.nspatial + 2;
    if (rp_node_operand(plan, node, 0)->rank != rank ||
        rp_node_operand(plan, node, 1)->rank != rank || shape->rank != rank)
        return rp_node_error(node, RP_FORMAT, err, "the operands do not match dim_labels");
    c->alpha = rp_config_number(plan, node, "conv_result_scale", 1);
    c->side_scale = rp_config_number(plan, node, "side_input_scale", 0);
    c->leak = rp_config_number(plan, node, "leakyrelu_alpha", 0);
    rp_config_word(plan, node, "activation_mode", c->activation, sizeof c->activation);
    if (!activation_known(c->activation))
        return rp_node_error(node, RP_UNSUPPORTED, err, "unsupported activation %s", c->activation);
    if (kind == FORWARD && node->nin > 3 && rp_node_operand(plan, node, 3)->n != shape->n)
        return rp_node_error(node, RP_FORMAT, err, "wrong shape of the side input");
    return RP_OK;
}

static RP_PREPARE(prepare_forward)
{
    return custom_conv_prepare(plan, node, FORWARD, err);
}

static RP_PREPARE(prepare_input)
{
    return custom_conv_prepare(plan, node, INPUT, err);
}

static RP_PREPARE(prepare_filter)
{
    return custom_conv_prepare(plan, node, FILTER, err);
}

/* Backward convolutions run the loops of the forward one, to which window and dim_labels belong,
   and add into the wanted operand. x, w, y: arrays of the forward convolution. */
struct backward {
    const struct custom *c;
    const int64_t *x, *w, *y; /* dims */
    int64_t xs[RP_TENSOR_RANK], ws[RP_TENSOR_RANK], ys[RP_TENSOR_RANK];
};

static void backward_one(const struct backward *b, const int64_t *out, const double *left,
                         const double *right, double *to)
{
    const struct rp_conv *v = &b->c->conv;
    const struct rp_conv_dims *d = &v->dims;
    int64_t k[RP_TENSOR_RANK] = {0}, size[RP_TENSOR_RANK], f = out[d->output_feature], y = 0;
    int64_t features = b->w[d->kernel_input];
    int64_t group = f / (b->y[d->output_feature] / v->feature_groups);

    for (size_t i = 0; i < d->nspatial; i++)
        size[i] = v->window.dim[i].size;
    for (size_t i = 0; i < d->nspatial + 2; i++)
        y += out[i] * b->ys[i];
    do {
        int64_t x = out[d->output_batch] * b->xs[d->input_batch] +
                    group * features * b->xs[d->input_feature];
        int64_t w = f * b->ws[d->kernel_output];
        bool inside = true;

        for (size_t i = 0; i < d->nspatial; i++) {
            const struct rp_window_dim *wd = &v->window.dim[i];
            int64_t at =
                out[d->output_spatial[i]] * wd->stride - wd->pad_low + k[i] * wd->window_dilation;

            inside &= at >= 0 && at < b->x[d->input_spatial[i]];
            x += at * b->xs[d->input_spatial[i]];
            w += (wd->reversal ? wd->size - 1 - k[i] : k[i]) * b->ws[d->kernel_spatial[i]];
        }
        for (int64_t i = 0; inside && i < features; i++) {
            int64_t xi = x + i * b->xs[d->input_feature], wi = w + i * b->ws[d->kernel_input];

            if (b->c->kind == INPUT)
                to[xi] += left[y] * right[wi];
            else
                to[wi] += left[xi] * right[y];
        }
    } while (rp_index_next(k, size, d->nspatial));
}

static enum rp_code conv_backward(const struct rp_node *node, const struct custom *c,
                                  struct rp_tensor *const *in, struct rp_tensor **out,
                                  struct rp_err *err)
{
    const struct rp_value_shape *shape = rp_custom_shape(node);
    bool input = c->kind == INPUT;
    struct backward b = {.c = c,
                         .x = input ? shape->dims : in[0]->dims,
                         .w = input ? in[1]->dims : shape->dims,
                         .y = input ? in[0]->dims : in[1]->dims};
    size_t rank = c->conv.dims.nspatial + 2;
    int64_t index[RP_TENSOR_RANK] = {0};
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *l = NULL, *r = NULL, *to = NULL;

    if (b.x[c->conv.dims.input_feature] !=
            b.w[c->conv.dims.kernel_input] * c->conv.feature_groups ||
        b.y[c->conv.dims.output_feature] != b.w[c->conv.dims.kernel_output] ||
        b.x[c->conv.dims.input_batch] != b.y[c->conv.dims.output_batch])
        return rp_node_error(node, RP_FORMAT, err, "features or batches do not match");
    for (size_t i = 0; i < c->conv.dims.nspatial; i++)
        if (c->conv.window.dim[i].size != b.w[c->conv.dims.kernel_spatial[i]])
            return rp_node_error(node, RP_FORMAT, err, "the window does not match the kernel");
    rp_strides(b.x, rank, b.xs);
    rp_strides(b.w, rank, b.ws);
    rp_strides(b.y, rank, b.ys);
    RP_TRY(rp_tensor_as(in[0], RP_ELEM_F64, &l, err));
    RP_TRY(rp_tensor_as(in[1], RP_ELEM_F64, &r, err));
    RP_TRY(rp_tensor_new(RP_ELEM_F64, shape->dims, rank, &to, err));
    double *sum = (double *)(void *)to->data;

    memset(to->data, 0, rp_tensor_bytes(to));
    do
        backward_one(&b, index, (double *)(void *)l->data, (double *)(void *)r->data, sum);
    while (rp_index_next(index, b.y, rank));
    for (size_t i = 0; i < to->n; i++)
        sum[i] *= c->alpha;
    return rp_tensor_as(to, shape->elem, out, err);
}

/* activation(alpha * conv + side_scale * side + bias) */
static enum rp_code conv_forward(const struct rp_node *node, const struct custom *c,
                                 struct rp_tensor *const *in, struct rp_tensor **out,
                                 struct rp_err *err)
{
    const struct rp_value_shape *shape = rp_custom_shape(node);
    struct rp_value_shape wide = *shape;
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *t = NULL;

    if (rp_elem_is_complex(shape->elem) ||
        (node->nin == 2 && c->alpha == 1 && (!c->activation[0] || !strcmp(c->activation, "kNone"))))
        return rp_conv_run(&c->conv, in[0], in[1], shape, out, err);
    wide.elem = RP_ELEM_F64;
    RP_TRY(rp_conv_run(&c->conv, in[0], in[1], &wide, &t, err));
    for (size_t i = 0; i < t->n; i++) {
        double *v = (double *)(void *)t->data + i;
        size_t inner = 1, features = (size_t)shape->dims[c->conv.dims.output_feature];

        for (size_t k = (size_t)c->conv.dims.output_feature + 1; k < shape->rank; k++)
            inner *= (size_t)shape->dims[k];
        *v *= c->alpha;
        if (node->nin > 3)
            *v += c->side_scale * rp_tensor_number(in[3], i);
        if (node->nin > 2 && in[2]->n == features)
            *v += rp_tensor_number(in[2], i / inner % features);
        *v = activate(c, *v);
    }
    return rp_tensor_as(t, shape->elem, out, err);
}

static RP_KERNEL(custom_conv_run)
{
    const struct custom *c = node->attrs;
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};

    RP_TRY(rp_custom_parts(node, &parts, err));
    RP_TRY((c->kind == FORWARD ? conv_forward : conv_backward)(node, c, in, &parts.at[0], err));
    return rp_custom_give(node, &parts, out, err);
}

const struct rp_custom_target rp_custom_convolutions[] = {
    {"__cudnn$convForward", prepare_forward, custom_conv_run},
    {"__cudnn$convBiasActivationForward", prepare_forward, custom_conv_run},
    {"__cudnn$convBackwardInput", prepare_input, custom_conv_run},
    {"__cudnn$convBackwardFilter", prepare_filter, custom_conv_run},
    {NULL, NULL, NULL},
};
