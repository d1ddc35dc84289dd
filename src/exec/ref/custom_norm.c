/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes softmax and layer normalization of oneDNN, and the normalization of cuDNN:
 *
 *   (x - mean) / sqrt(variance + epsilon) * scale + shift
 *
 * over the last dimension (oneDNN), or over all but the first (cuDNN, which gives the mean and the
 * factor as well when it trains). All is computed in f64 and rounded once.
 */
#include "exec/ref/custom.h"
#include "exec/ref/reduce.h"

#include <math.h>
#include <string.h>

struct norm {
    size_t lines, length, stride; /* stride: distance between elements of a line */
    double epsilon;
};

/* Finds the lines along a dimension. */
static struct norm *norm_new(struct rp_plan *plan, struct rp_node *node,
                             const struct rp_value_shape *in, uint32_t dim)
{
    struct norm *s = RP_NODE_NEW(plan, struct norm);

    if (!s)
        return NULL;
    s->stride = 1;
    s->length = (size_t)in->dims[dim];
    for (uint32_t k = dim + 1; k < in->rank; k++)
        s->stride *= (size_t)in->dims[k];
    s->lines = s->length ? in->n / s->length : 0;
    node->attrs = s;
    return s;
}

static size_t line_begin(const struct norm *s, size_t line)
{
    return line / s->stride * s->stride * s->length + line % s->stride;
}

static RP_PREPARE(prepare_softmax)
{
    const struct rp_value_shape *in = node->nin ? rp_node_operand(plan, node, 0) : NULL;
    double axis = rp_config_number(plan, node, "softmax_axis", 0);

    if (!in || !in->rank || rp_custom_shape(node)->n != in->n || !(axis >= 0) || axis >= in->rank)
        return rp_node_error(node, RP_FORMAT, err, "wrong shape of the operand");
    return rp_err_need(norm_new(plan, node, in, (uint32_t)axis), err, "planning");
}

/* The results in their types; `made` has the first of them. */
static enum rp_code as_results(const struct rp_node *node, const struct rp_tensors *made,
                               struct rp_tensor **out, struct rp_err *err)
{
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};
    bool tuple = node->shape->elem == RP_ELEM_TUPLE;

    RP_TRY(rp_custom_parts(node, &parts, err));
    for (size_t i = 0; i < made->n; i++)
        RP_TRY(rp_tensor_as(made->at[i], tuple ? node->shape->parts[i]->elem : node->shape->elem,
                            &parts.at[i], err));
    return rp_custom_give(node, &parts, out, err);
}

static RP_KERNEL(softmax)
{
    const struct norm *s = node->attrs;
    RP_SCOPED(rp_tensors_release) struct rp_tensors made = {0};

    RP_TRY(rp_tensors_new(1, &made, err));
    RP_TRY(rp_tensor_new(RP_ELEM_F64, in[0]->dims, in[0]->rank, &made.at[0], err));
    double *x = (double *)(void *)made.at[0]->data;
    for (size_t i = 0; i < in[0]->n; i++)
        x[i] = rp_tensor_number(in[0], i);
    for (size_t line = 0; line < s->lines; line++) {
        double *at = x + line_begin(s, line), most = (double)-INFINITY, sum = 0;

        for (size_t k = 0; k < s->length; k++)
            most = at[k * s->stride] > most ? at[k * s->stride] : most;
        for (size_t k = 0; k < s->length; k++)
            sum += at[k * s->stride] = exp(at[k * s->stride] - most);
        for (size_t k = 0; k < s->length; k++)
            at[k * s->stride] /= sum;
    }
    return as_results(node, &made, out, err);
}

/* ---- layer normalization ---- */

static RP_PREPARE(prepare_layer)
{
    const struct rp_value_shape *in = node->nin == 3 ? rp_node_operand(plan, node, 0) : NULL;

    if (!in || !in->rank || rp_custom_shape(node)->n != in->n)
        return rp_node_error(node, RP_FORMAT, err, "wrong shape of operands or results");
    struct norm *s = norm_new(plan, node, in, in->rank - 1);
    RP_TRY(rp_err_need(s, err, "planning"));
    /* The configuration has the bits of an f32. */
    double bits = rp_config_number(plan, node, "epsilon_typecast", 0);
    int32_t whole = bits >= -2147483648.0 && bits <= 2147483647.0 ? (int32_t)bits : 0;
    float x;
    memcpy(&x, &whole, sizeof x);
    s->epsilon = (double)x;
    for (uint32_t i = 1; i < 3; i++)
        if (rp_node_operand(plan, node, i)->n != s->length)
            return rp_node_error(node, RP_FORMAT, err, "wrong shape of the scale or the shift");
    return RP_OK;
}

static RP_PREPARE(prepare_cudnn)
{
    const struct rp_value_shape *in = node->nin ? rp_node_operand(plan, node, 0) : NULL;
    char kind[24];

    rp_config_word(plan, node, "kind", kind, sizeof kind);
    if (!strcmp(kind, "LAYER_BWD"))
        return rp_node_error(node, RP_UNSUPPORTED, err, "'__cudnn$norm' of the kind %s", kind);
    if (!in || node->nin != 3 || in->rank < 2 || rp_custom_shape(node)->n != in->n || !in->dims[0])
        return rp_node_error(node, RP_FORMAT, err, "wrong shape of operands or results");
    struct norm *s = norm_new(plan, node, in, in->rank - 1);
    RP_TRY(rp_err_need(s, err, "planning"));
    s->lines = (size_t)in->dims[0];
    s->length = in->n / s->lines;
    s->epsilon = rp_config_number(plan, node, "epsilon", 0);
    for (uint32_t i = 1; i < 3; i++)
        if (rp_node_operand(plan, node, i)->n != s->length)
            return rp_node_error(node, RP_FORMAT, err, "wrong shape of the scale or the shift");
    return RP_OK;
}

/* Whether the results include the mean and the factor of each line. */
static bool gives_statistics(const struct rp_node *node, const struct norm *s)
{
    return node->shape->elem == RP_ELEM_TUPLE && node->shape->nparts >= 3 &&
           node->shape->parts[1]->n == s->lines && node->shape->parts[2]->n == s->lines;
}

static void norm_line(const struct norm *s, struct rp_tensor *const *in, size_t line, double *y,
                      double *mean, double *factor)
{
    size_t at = line * s->length;
    double sum = 0, squares = 0;

    for (size_t k = 0; k < s->length; k++)
        sum += rp_tensor_number(in[0], at + k);
    *mean = sum / (double)s->length;
    for (size_t k = 0; k < s->length; k++) {
        double d = rp_tensor_number(in[0], at + k) - *mean;

        squares += d * d;
    }
    *factor = 1 / sqrt(squares / (double)s->length + s->epsilon);
    for (size_t k = 0; k < s->length; k++)
        y[at + k] =
            (rp_tensor_number(in[0], at + k) - *mean) * *factor * rp_tensor_number(in[1], k) +
            rp_tensor_number(in[2], k);
}

static RP_KERNEL(layer_norm)
{
    const struct norm *s = node->attrs;
    bool statistics = gives_statistics(node, s);
    RP_SCOPED(rp_tensors_release) struct rp_tensors made = {0};

    RP_TRY(rp_tensors_new(statistics ? 3 : 1, &made, err));
    RP_TRY(rp_tensor_new(RP_ELEM_F64, in[0]->dims, in[0]->rank, &made.at[0], err));
    for (size_t i = 1; i < made.n; i++)
        RP_TRY(rp_tensor_new(RP_ELEM_F64, node->shape->parts[i]->dims, node->shape->parts[i]->rank,
                             &made.at[i], err));
    for (size_t line = 0; line < s->lines; line++) {
        double mean, factor;

        norm_line(s, in, line, (double *)(void *)made.at[0]->data, &mean, &factor);
        if (statistics) {
            ((double *)(void *)made.at[1]->data)[line] = mean;
            ((double *)(void *)made.at[2]->data)[line] = factor;
        }
    }
    return as_results(node, &made, out, err);
}

const struct rp_custom_target rp_custom_norms[] = {
    {"__onednn$softmax", prepare_softmax, softmax},
    {"__onednn$layernorm", prepare_layer, layer_norm},
    {"__cudnn$norm", prepare_cudnn, layer_norm},
    {NULL, NULL, NULL},
};
