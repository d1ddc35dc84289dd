/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes scan: a function over the slices of arrays along one dimension, from the first to the
 * last (or back), with values that each step hands on to the next:
 *
 *   (inputs[t]..., carries...)  ->  (outputs[t]..., carries...)
 *
 * The result is the stacked outputs followed by the last carries. Steps run one after another, also
 * where the function is called associative: other orders round differently. Cost: a copy of every
 * slice, and one evaluation of the function for each step.
 */
#include "exec/eval/strided.h"
#include "exec/ref/kernels.h"
#include "program/opcodes.h"

#include <string.h>

struct scan {
    uint32_t dim;
    uint32_t inputs, carries, outputs;
    int64_t steps;
    bool reverse;
};

static const struct rp_value_shape *scan_result(const struct rp_node *node, uint32_t i)
{
    return node->shape->elem == RP_ELEM_TUPLE ? node->shape->parts[i] : node->shape;
}

static enum rp_code scan_check(const struct rp_node *node, const struct rp_value_shape *shape,
                               struct scan *s, struct rp_err *err)
{
    if (shape->elem == RP_ELEM_TUPLE || shape->rank <= s->dim)
        return rp_node_error(node, RP_FORMAT, err, "an array without dimension %u", s->dim);
    if (s->steps < 0)
        s->steps = shape->dims[s->dim];
    if (s->steps != shape->dims[s->dim])
        return rp_node_error(node, RP_FORMAT, err, "dimension %u has different sizes", s->dim);
    return RP_OK;
}

static RP_PREPARE(scan_prepare)
{
    struct scan *s = RP_NODE_NEW(plan, struct scan);
    uint32_t results = node->shape->elem == RP_ELEM_TUPLE ? node->shape->nparts : 1;
    int64_t carries = rp_node_int(plan, node, RP_ATTR_NUM_CARRIES, 0);
    const int64_t *dims;
    size_t n;

    RP_TRY(rp_err_need(s, err, "planning"));
    RP_TRY(rp_node_ints(plan, node, RP_ATTR_DIMENSIONS, RP_TENSOR_RANK, &dims, &n, err));
    if (n != 1)
        return rp_node_error(node, RP_FORMAT, err, "%zu dimensions, expected one", n);
    if (carries < 0 || carries > node->nin || carries > results)
        return rp_node_error(node, RP_FORMAT, err, "%lld carries of %u operands and %u results",
                             (long long)carries, node->nin, results);
    if (node->ncalled != 1 || node->called[0]->nparams != node->nin)
        return rp_node_error(node, RP_FORMAT, err, "a function of %u parameters is required",
                             node->nin);
    *s = (struct scan){.dim = (uint32_t)dims[0], .carries = (uint32_t)carries, .steps = -1};
    s->inputs = node->nin - s->carries;
    s->outputs = results - s->carries;
    s->reverse = rp_node_flag(plan, node, RP_ATTR_IS_REVERSE);
    for (uint32_t i = 0; i < s->inputs; i++)
        RP_TRY(scan_check(node, rp_node_operand(plan, node, i), s, err));
    for (uint32_t i = 0; i < s->outputs; i++)
        RP_TRY(scan_check(node, scan_result(node, i), s, err));
    node->attrs = s;
    return RP_OK;
}

/* Lists the dimensions without the one that is scanned. */
static size_t slice_dims(const int64_t *dims, size_t rank, uint32_t dim, int64_t *out)
{
    size_t n = 0;

    for (size_t k = 0; k < rank; k++)
        if (k != dim)
            out[n++] = dims[k];
    return n;
}

static bool is_slice(const struct rp_tensor *whole, const struct rp_tensor *slice, uint32_t dim)
{
    int64_t dims[RP_TENSOR_RANK];
    size_t rank = slice_dims(whole->dims, whole->rank, dim, dims);

    return slice->elem == whole->elem && rp_dims_same(slice->dims, slice->rank, dims, rank);
}

/* Copies between an array and its slice t; `store`: into the array. */
static void slice_copy(struct rp_tensor *whole, struct rp_tensor *slice, uint32_t dim, int64_t t,
                       bool store)
{
    struct rp_strided s = {.unit = whole->unit, .rank = slice->rank};
    int64_t strides[RP_TENSOR_RANK], apart[RP_TENSOR_RANK];

    rp_strides(whole->dims, whole->rank, strides);
    rp_strides(slice->dims, slice->rank, apart);
    unsigned char *at = whole->data + (size_t)(t * strides[dim]) * whole->unit;
    memcpy(s.dims, slice->dims, slice->rank * sizeof *s.dims);
    slice_dims(strides, whole->rank, dim, store ? s.to : s.from);
    memcpy(store ? s.from : s.to, apart, slice->rank * sizeof *apart);
    rp_strided_copy(&s, store ? at : slice->data, store ? slice->data : at);
}

/* Makes one step: args has `inputs` free places followed by the carries, which are replaced. */
static enum rp_code scan_step(struct rp_eval *e, const struct rp_node *node, const struct scan *s,
                              struct rp_tensor *const *in, int64_t t, struct rp_tensor **args,
                              struct rp_tensor **outputs, struct rp_err *err)
{
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *result = NULL;
    uint32_t results = s->outputs + s->carries;

    for (uint32_t i = 0; i < s->inputs; i++) {
        int64_t dims[RP_TENSOR_RANK];
        size_t rank = slice_dims(in[i]->dims, in[i]->rank, s->dim, dims);

        rp_tensor_drop(args[i]);
        args[i] = NULL;
        RP_TRY(rp_tensor_new(in[i]->elem, dims, rank, &args[i], err));
        slice_copy(in[i], args[i], s->dim, t, false);
    }
    RP_TRY(rp_eval_graph(e, node->called[0], args, &result, err));
    bool tuple = result->elem == RP_ELEM_TUPLE;
    struct rp_tensor *const *parts = tuple ? result->parts : &result;
    if ((tuple ? result->nparts : 1) != results)
        return rp_node_error(node, RP_FORMAT, err, "the function does not have %u results",
                             results);
    for (uint32_t i = 0; i < s->outputs; i++) {
        if (!is_slice(outputs[i], parts[i], s->dim))
            return rp_node_error(node, RP_FORMAT, err, "result %u has another shape", i);
        slice_copy(outputs[i], parts[i], s->dim, t, true);
    }
    for (uint32_t i = 0; i < s->carries; i++) {
        rp_tensor_drop(args[s->inputs + i]);
        args[s->inputs + i] = rp_tensor_keep(parts[s->outputs + i]);
    }
    return RP_OK;
}

static RP_KERNEL(scan_run)
{
    const struct scan *s = node->attrs;
    RP_SCOPED(rp_tensors_release) struct rp_tensors args = {0}, made = {0};

    RP_TRY(rp_tensors_new(node->nin, &args, err));
    RP_TRY(rp_tensors_new(s->outputs + s->carries, &made, err));
    for (uint32_t i = 0; i < s->outputs; i++)
        RP_TRY(rp_shape_tensor(scan_result(node, i), &made.at[i], err));
    for (uint32_t i = 0; i < s->carries; i++)
        args.at[s->inputs + i] = rp_tensor_keep(in[s->inputs + i]);
    for (int64_t t = 0; t < s->steps; t++)
        RP_TRY(scan_step(e, node, s, in, s->reverse ? s->steps - 1 - t : t, args.at, made.at, err));
    for (uint32_t i = 0; i < s->carries; i++)
        made.at[s->outputs + i] = rp_tensor_keep(args.at[s->inputs + i]);
    return rp_node_give(node, &made, out, err);
}

const struct rp_kernel rp_kernels_scan[] = {
    {RP_OP_SCAN, scan_prepare, scan_run},
    {0, NULL, NULL},
};
