/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes batch normalisation in f64: for each feature f, over all other dimensions (n values):
 *
 *   inference   scale * (x - mean) / sqrt(variance + epsilon) + offset
 *   training    the same with the batch's own mean and variance, which are results too
 *   grad        of operand, scale and offset from the gradient of the output
 */
#include "exec/ref/kernels.h"
#include "exec/ref/reduce.h"
#include "program/opcodes.h"

#include <math.h>

struct norm_attr {
    double epsilon;
    size_t feature;
};

static RP_PREPARE(norm_prepare)
{
    struct norm_attr *a = RP_NODE_NEW(plan, struct norm_attr);
    const struct rp_attr *epsilon = rp_node_attr(plan, node, RP_ATTR_EPSILON);
    const struct rp_value_shape *x = rp_node_operand(plan, node, 0);

    RP_TRY(rp_err_need(a, err, "planning"));
    node->attrs = a;
    a->epsilon = epsilon && epsilon->type == RP_VALUE_FLOAT ? epsilon->real : 0;
    a->feature = (size_t)rp_node_int(plan, node, RP_ATTR_FEATURE_INDEX, 0);
    if (a->feature >= x->rank)
        return rp_node_error(node, RP_FORMAT, err, "feature_index is out of range");
    for (uint32_t i = 1; i < node->nin; i++)
        if (rp_node_operand(plan, node, i)->n != (size_t)x->dims[a->feature] &&
            rp_node_operand(plan, node, i)->n != x->n)
            return rp_node_error(node, RP_FORMAT, err, "wrong shape of operand %u", i);
    return RP_OK;
}

/* All operands in f64, and the sizes. */
struct work {
    struct rp_tensor *in[5], *out[3];
    size_t features, inner, n; /* n: values a feature */
    size_t nout;
};

static void work_release(struct work *w)
{
    for (size_t i = 0; i < 5; i++)
        rp_tensor_drop(w->in[i]);
    for (size_t i = 0; i < 3; i++)
        rp_tensor_drop(w->out[i]);
}

static size_t feature_of(const struct work *w, size_t i)
{
    return i / w->inner % w->features;
}

static double *norm_data(struct rp_tensor *t)
{
    return (double *)(void *)t->data;
}

static enum rp_code norm_begin(struct work *w, const struct norm_attr *a,
                               struct rp_tensor *const *in, uint32_t nin, size_t nout,
                               struct rp_err *err)
{
    int64_t features = in[0]->dims[a->feature];

    w->nout = nout;
    for (uint32_t i = 0; i < nin; i++)
        RP_TRY(rp_tensor_as(in[i], RP_ELEM_F64, &w->in[i], err));
    w->features = (size_t)features;
    w->inner = 1;
    for (size_t k = a->feature + 1; k < in[0]->rank; k++)
        w->inner *= (size_t)in[0]->dims[k];
    w->n = w->features ? in[0]->n / w->features : 0;
    RP_TRY(rp_tensor_new(RP_ELEM_F64, in[0]->dims, in[0]->rank, &w->out[0], err));
    for (size_t i = 1; i < nout; i++)
        RP_TRY(rp_tensor_zeros(RP_ELEM_F64, &features, 1, &w->out[i], err));
    return RP_OK;
}

static enum rp_code norm_end(const struct work *w, const struct rp_node *node,
                             struct rp_tensor **out, struct rp_err *err)
{
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};
    bool tuple = node->shape->elem == RP_ELEM_TUPLE;

    RP_TRY(rp_tensors_new(w->nout, &parts, err));
    for (size_t i = 0; i < w->nout; i++)
        RP_TRY(rp_tensor_as(w->out[i], tuple ? node->shape->parts[i]->elem : node->shape->elem,
                            &parts.at[i], err));
    return rp_node_give(node, &parts, out, err);
}

static void norm_apply(const struct work *w, double epsilon, const double *mean,
                       const double *variance)
{
    const double *x = norm_data(w->in[0]), *scale = norm_data(w->in[1]),
                 *offset = norm_data(w->in[2]);

    for (size_t i = 0; i < w->in[0]->n; i++) {
        size_t f = feature_of(w, i);

        norm_data(w->out[0])[i] =
            scale[f] * (x[i] - mean[f]) / sqrt(variance[f] + epsilon) + offset[f];
    }
}

static RP_KERNEL(norm_inference)
{
    const struct norm_attr *a = node->attrs;
    RP_SCOPED(work_release) struct work w = {0};

    RP_TRY(norm_begin(&w, a, in, 5, 1, err));
    norm_apply(&w, a->epsilon, norm_data(w.in[3]), norm_data(w.in[4]));
    return norm_end(&w, node, out, err);
}

static RP_KERNEL(norm_training)
{
    const struct norm_attr *a = node->attrs;
    RP_SCOPED(work_release) struct work w = {0};

    RP_TRY(norm_begin(&w, a, in, 3, 3, err));
    double *mean = norm_data(w.out[1]), *variance = norm_data(w.out[2]), *x = norm_data(w.in[0]);
    for (size_t i = 0; i < in[0]->n; i++)
        mean[feature_of(&w, i)] += x[i] / (double)w.n;
    for (size_t i = 0; i < in[0]->n; i++) {
        double d = x[i] - mean[feature_of(&w, i)];

        variance[feature_of(&w, i)] += d * d / (double)w.n;
    }
    norm_apply(&w, a->epsilon, mean, variance);
    return norm_end(&w, node, out, err);
}

/* Operands: x, scale, mean, variance, gradient of the output. */
static RP_KERNEL(norm_grad)
{
    const struct norm_attr *a = node->attrs;
    RP_SCOPED(work_release) struct work w = {0};

    RP_TRY(norm_begin(&w, a, in, 5, 3, err));
    double *x = norm_data(w.in[0]), *mean = norm_data(w.in[2]), *dy = norm_data(w.in[4]);
    double *dscale = norm_data(w.out[1]), *doffset = norm_data(w.out[2]);
    for (size_t i = 0; i < in[0]->n; i++) {
        size_t f = feature_of(&w, i);
        double r = 1 / sqrt(norm_data(w.in[3])[f] + a->epsilon);

        dscale[f] += dy[i] * (x[i] - mean[f]) * r;
        doffset[f] += dy[i];
    }
    for (size_t i = 0; i < in[0]->n; i++) {
        size_t f = feature_of(&w, i);
        double r = 1 / sqrt(norm_data(w.in[3])[f] + a->epsilon), n = (double)w.n;

        norm_data(w.out[0])[i] = norm_data(w.in[1])[f] * r / n *
                                 (n * dy[i] - doffset[f] - (x[i] - mean[f]) * r * dscale[f]);
    }
    return norm_end(&w, node, out, err);
}

const struct rp_kernel rp_kernels_norm[] = {
    {RP_OP_BATCH_NORM_INFERENCE, norm_prepare, norm_inference},
    {RP_OP_BATCH_NORM_TRAINING, norm_prepare, norm_training},
    {RP_OP_BATCH_NORM_GRAD, norm_prepare, norm_grad},
    {0, NULL, NULL},
};
