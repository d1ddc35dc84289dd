/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes attention like cuDNN, forward and backward, as JAX calls it:
 *
 *   S = scale Q K' + bias,   P = softmax(S) where the mask allows,   O = P V
 *
 * Q, K and V are [batch, head, row, width] or [batch, row, head, width]; results are always the
 * former. There may be fewer heads of K and V than of Q. Masks: none, causal, by lengths, or a
 * window of rows before. All is computed in f64 and rounded once; nothing is kept between forward
 * and backward, so the statistics that the forward call gives are not read. Dropout, f8, segments,
 * pages and ALiBi are refused by name.
 */
#include "exec/ref/custom.h"
#include "exec/ref/reduce.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct attention {
    double scale;
    bool rows_first; /* layout is [batch, row, head, width] */
    bool causal, padded, backward;
    int64_t window;                                                /* 0: none */
    uint32_t bias, output, gradient, lengths;                      /* operands; 0: none */
    int64_t batch, heads, groups, rows, columns, width, out_width; /* groups: heads of K and V */
    int64_t bias_dims[2]; /* sizes for batch and heads: 1, or all */
};

/* ---- the configuration ---- */

/* The second number of a list inside an object: "outer":{..., "key":["0","2"]}. */
static int64_t second_of(const struct rp_plan *plan, const struct rp_node *node, const char *outer,
                         const char *key)
{
    const struct rp_attr *attr = rp_node_attr(plan, node, RP_ATTR_BACKEND_CONFIG);
    int64_t second = -1;
    int seen = 0;

    if (!attr || !rp_attr_is_bytes(attr))
        return -1;
    const char *end = attr->at + attr->n;
    const char *at = memmem(attr->at, attr->n, outer, strlen(outer));
    at = at ? memmem(at, (size_t)(end - at), key, strlen(key)) : NULL;
    at = at ? memchr(at, '[', (size_t)(end - at)) : NULL;
    for (; at && at < end && *at != ']'; at++)
        if (*at >= '0' && *at <= '9' && ++seen == 2)
            second = *at - '0';
    return second;
}

static enum rp_code read_options(struct rp_plan *plan, const struct rp_node *node,
                                 struct attention *a, struct rp_err *err)
{
    char mask[24];
    size_t n;
    const char *name = rp_custom_name(plan, node, &n);

    rp_config_word(plan, node, "mask_type", mask, sizeof mask);
    a->backward = memmem(name, n, "Backward", 8) != NULL;
    a->scale = rp_config_number(plan, node, "fmha_scale", 1);
    a->causal = !strcmp(mask, "CAUSAL") || !strcmp(mask, "PADDING_CAUSAL") ||
                rp_config_flag(plan, node, "is_causal_mask");
    a->padded = !strncmp(mask, "PADDING", 7);
    a->window = (int64_t)rp_config_number(plan, node, "sliding_window_length", 0);
    if (memmem(name, n, "F8", 2))
        return rp_node_error(node, RP_UNSUPPORTED, err, "'%.*s': attention of f8", (int)n, name);
    if (rp_config_number(plan, node, "dropout_rate", 0) != 0)
        return rp_node_error(node, RP_UNSUPPORTED, err,
                             "'%.*s': dropout by the random numbers of cuDNN", (int)n, name);
    if (!strcmp(mask, "ALIBI") || rp_config_number(plan, node, "max_seg_per_batch", 1) > 1 ||
        rp_config_flag(plan, node, "is_paged_attention"))
        return rp_node_error(node, RP_UNSUPPORTED, err, "'%.*s' with ALiBi, segments or pages",
                             (int)n, name);
    a->rows_first = (a->backward ? second_of(plan, node, "bmm1_grad_gemm1", "rhs_batch_dimensions")
                                 : second_of(plan, node, "bmm1_dot", "lhs_batch_dimensions")) == 2;
    return RP_OK;
}

/* ---- operands and results ---- */

static bool has_shape(const struct rp_value_shape *s, int64_t b, int64_t h, int64_t r, int64_t w,
                      bool rows_first)
{
    return s->rank == 4 && s->dims[0] == b && s->dims[1] == (rows_first ? r : h) &&
           s->dims[2] == (rows_first ? h : r) && s->dims[3] == w;
}

static bool sizes_match(const struct rp_plan *plan, const struct rp_node *node, struct attention *a)
{
    const struct rp_value_shape *q = rp_node_operand(plan, node, 0),
                                *k = rp_node_operand(plan, node, 1),
                                *v = rp_node_operand(plan, node, 2);
    size_t row = a->rows_first ? 1 : 2, head = a->rows_first ? 2 : 1;

    if (q->rank != 4 || k->rank != 4 || v->rank != 4)
        return false;
    a->batch = q->dims[0];
    a->heads = q->dims[head];
    a->rows = q->dims[row];
    a->width = q->dims[3];
    a->groups = k->dims[head];
    a->columns = k->dims[row];
    a->out_width = v->dims[3];
    return a->groups > 0 && a->heads % a->groups == 0 &&
           has_shape(k, a->batch, a->groups, a->columns, a->width, a->rows_first) &&
           has_shape(v, a->batch, a->groups, a->columns, a->out_width, a->rows_first);
}

static bool results_match(const struct rp_node *node, const struct attention *a)
{
    const struct rp_value_shape *const *part = node->shape->parts;

    if (node->shape->elem != RP_ELEM_TUPLE || node->shape->nparts < (a->backward ? 3u : 1u))
        return false;
    if (!a->backward)
        return has_shape(part[0], a->batch, a->heads, a->rows, a->out_width, false);
    return has_shape(part[0], a->batch, a->heads, a->rows, a->width, false) &&
           has_shape(part[1], a->batch, a->groups, a->columns, a->width, false) &&
           has_shape(part[2], a->batch, a->groups, a->columns, a->out_width, false);
}

/* Operands of the forward call: Q, K, V, bias, lengths. Backward: Q, K, V, statistics, dO, bias, O,
   lengths. */
static RP_PREPARE(attention_prepare)
{
    struct attention *a = RP_NODE_NEW(plan, struct attention);
    uint32_t at = 3;
    size_t n;
    const char *name = rp_custom_name(plan, node, &n);

    RP_TRY(rp_err_need(a, err, "planning"));
    RP_TRY(read_options(plan, node, a, err));
    if (a->backward) {
        a->gradient = 4;
        at = 5;
    }
    if (memmem(name, n, "Bias", 4))
        a->bias = at++;
    if (a->backward)
        a->output = at++;
    if (a->padded) {
        a->lengths = at;
        at += 2;
    }
    if (node->nin < at || !sizes_match(plan, node, a) || !results_match(node, a))
        return rp_node_error(node, RP_FORMAT, err, "wrong shape of operands or results");
    if (a->backward && (!has_shape(rp_node_operand(plan, node, a->gradient), a->batch, a->heads,
                                   a->rows, a->out_width, a->rows_first) ||
                        !has_shape(rp_node_operand(plan, node, a->output), a->batch, a->heads,
                                   a->rows, a->out_width, a->rows_first)))
        return rp_node_error(node, RP_FORMAT, err, "wrong shape of the gradient");
    if (a->bias) {
        const struct rp_value_shape *b = rp_node_operand(plan, node, a->bias);

        if (b->rank != 4 || (b->dims[0] != 1 && b->dims[0] != a->batch) ||
            (b->dims[1] != 1 && b->dims[1] != a->heads) || b->dims[2] != a->rows ||
            b->dims[3] != a->columns)
            return rp_node_error(node, RP_FORMAT, err, "wrong shape of the bias");
        memcpy(a->bias_dims, b->dims, sizeof a->bias_dims);
    }
    for (uint32_t i = 0; a->padded && i < 2; i++)
        if (rp_node_operand(plan, node, a->lengths + i)->n < (size_t)a->batch)
            return rp_node_error(node, RP_FORMAT, err, "wrong shape of the lengths");
    node->attrs = a;
    return RP_OK;
}

/* ---- one head ---- */

struct head {
    const struct attention *a;
    struct rp_tensor *const *in; /* all as f64 */
    int64_t b, h, group;
    double *p; /* rows x columns */
};

static const double *row_of(const struct attention *a, const struct rp_tensor *t, int64_t heads,
                            int64_t rows, int64_t b, int64_t h, int64_t r)
{
    int64_t at = a->rows_first ? (b * rows + r) * heads + h : (b * heads + h) * rows + r;

    return (const double *)(const void *)t->data + at * t->dims[3];
}

static int64_t bias_row(const struct head *x, int64_t r)
{
    const struct attention *a = x->a;
    int64_t b = a->bias_dims[0] > 1 ? x->b : 0, h = a->bias_dims[1] > 1 ? x->h : 0;

    return ((b * a->bias_dims[1] + h) * a->rows + r) * a->columns;
}

static double dot_of(const double *x, const double *y, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* Computes the probabilities of row r; returns the logarithm of their denominator. */
static double attention_row(const struct head *x, int64_t r)
{
    const struct attention *a = x->a;
    const double *q = row_of(a, x->in[0], a->heads, a->rows, x->b, x->h, r), *bias = NULL;
    double most = (double)-INFINITY, sum = 0, *p = x->p + r * a->columns;
    int64_t end = a->columns, begin = 0;

    if (a->bias)
        bias = (const double *)(const void *)x->in[a->bias]->data + bias_row(x, r);
    if (a->padded) {
        int64_t length = rp_tensor_integer(x->in[a->lengths + 1], (size_t)x->b);

        end = length < end ? length : end;
        if (r >= rp_tensor_integer(x->in[a->lengths], (size_t)x->b))
            end = 0;
    }
    if (a->causal && end > r + 1)
        end = r + 1;
    if (a->window > 0 && r + 1 > a->window)
        begin = r + 1 - a->window;
    for (int64_t c = 0; c < a->columns; c++)
        p[c] = 0;
    for (int64_t c = begin; c < end; c++) {
        p[c] = a->scale * dot_of(q, row_of(a, x->in[1], a->groups, a->columns, x->b, x->group, c),
                                 a->width) +
               (bias ? bias[c] : 0);
        most = p[c] > most || p[c] != p[c] ? p[c] : most;
    }
    for (int64_t c = begin; c < end; c++) {
        p[c] = most == (double)-INFINITY ? 0 : exp(p[c] - most);
        sum += p[c];
    }
    for (int64_t c = begin; c < end && sum != 0; c++)
        p[c] /= sum;
    return most + log(sum);
}

static double *out_row(struct rp_tensor *t, int64_t heads, int64_t rows, int64_t b, int64_t h,
                       int64_t r)
{
    return (double *)(void *)t->data + ((b * heads + h) * rows + r) * t->dims[3];
}

static void add_row(double *to, double factor, const double *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += factor * from[i];
}

/* out: O, statistics. */
static void head_forward(const struct head *x, struct rp_tensor **out)
{
    const struct attention *a = x->a;

    for (int64_t r = 0; r < a->rows; r++) {
        double log_sum = attention_row(x, r);
        double *o = out_row(out[0], a->heads, a->rows, x->b, x->h, r);

        for (int64_t c = 0; c < a->columns; c++)
            if (x->p[r * a->columns + c] != 0)
                add_row(o, x->p[r * a->columns + c],
                        row_of(a, x->in[2], a->groups, a->columns, x->b, x->group, c),
                        a->out_width);
        if (out[1])
            ((double *)(void *)out[1]->data)[(x->b * a->heads + x->h) * a->rows + r] = log_sum;
    }
}

/* out: dQ, dK, dV, gradient of the bias. */
static void head_backward(const struct head *x, struct rp_tensor **out)
{
    const struct attention *a = x->a;

    for (int64_t r = 0; r < a->rows; r++) {
        const double *d = row_of(a, x->in[a->gradient], a->heads, a->rows, x->b, x->h, r);
        double whole, *dq = out_row(out[0], a->heads, a->rows, x->b, x->h, r);

        attention_row(x, r);
        whole =
            dot_of(d, row_of(a, x->in[a->output], a->heads, a->rows, x->b, x->h, r), a->out_width);
        for (int64_t c = 0; c < a->columns; c++) {
            double p = x->p[r * a->columns + c];

            if (p == 0)
                continue;
            double ds =
                p * (dot_of(d, row_of(a, x->in[2], a->groups, a->columns, x->b, x->group, c),
                            a->out_width) -
                     whole);
            add_row(out_row(out[2], a->groups, a->columns, x->b, x->group, c), p, d, a->out_width);
            add_row(dq, a->scale * ds,
                    row_of(a, x->in[1], a->groups, a->columns, x->b, x->group, c), a->width);
            add_row(out_row(out[1], a->groups, a->columns, x->b, x->group, c), a->scale * ds,
                    row_of(a, x->in[0], a->heads, a->rows, x->b, x->h, r), a->width);
            if (out[3])
                ((double *)(void *)out[3]->data)[bias_row(x, r) + c] += ds;
        }
    }
}

/* ---- running ---- */

/* The number of arrays that are computed: a forward call may also have the statistics as a
   result. */
static size_t count_results(const struct rp_node *node, const struct attention *a)
{
    size_t n = node->shape->nparts;

    if (a->backward)
        return n > 3 && a->bias &&
                       node->shape->parts[3]->n ==
                           (size_t)(a->bias_dims[0] * a->bias_dims[1] * a->rows * a->columns)
                   ? 4
                   : 3;
    return n > 1 && node->shape->parts[1]->elem == RP_ELEM_F32 &&
                   node->shape->parts[1]->n == (size_t)(a->batch * a->heads * a->rows)
               ? 2
               : 1;
}

static RP_KERNEL(attention_run)
{
    const struct attention *a = node->attrs;
    RP_SCOPED(rp_tensors_release) struct rp_tensors wide = {0}, made = {0}, parts = {0};
    RP_FREED double *p = calloc((size_t)(a->rows * a->columns) + 1, sizeof *p);
    size_t n = count_results(node, a);

    RP_TRY(rp_err_need(p, err, "attention"));
    RP_TRY(rp_tensors_new(10, &wide, err));
    RP_TRY(rp_tensors_new(4, &made, err));
    RP_TRY(rp_custom_parts(node, &parts, err));
    for (uint32_t i = 0; i < node->nin && i < 10; i++)
        if (a->padded && i >= a->lengths)
            wide.at[i] = rp_tensor_keep(in[i]);
        else
            RP_TRY(rp_tensor_as(in[i], RP_ELEM_F64, &wide.at[i], err));
    for (size_t i = 0; i < n; i++)
        RP_TRY(rp_tensor_zeros(RP_ELEM_F64, node->shape->parts[i]->dims,
                               node->shape->parts[i]->rank, &made.at[i], err));
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t h = 0; h < a->heads; h++) {
            struct head x = {a, wide.at, b, h, h / (a->heads / a->groups), p};

            (a->backward ? head_backward : head_forward)(&x, made.at);
        }
    for (size_t i = 0; i < n; i++)
        RP_TRY(rp_tensor_as(made.at[i], node->shape->parts[i]->elem, &parts.at[i], err));
    return rp_custom_give(node, &parts, out, err);
}

/* Until 2024 the name was spelled fhma. */
const struct rp_custom_target rp_custom_attention[] = {
    {"__cudnn$fmhaSoftmax*", attention_prepare, attention_run},
    {"__cudnn$fmhaScaleBiasSoftmax*", attention_prepare, attention_run},
    {"__cudnn$fhmaSoftmax*", attention_prepare, attention_run},
    {"__cudnn$fhmaScaleBiasSoftmax*", attention_prepare, attention_run},
    {NULL, NULL, NULL},
};
