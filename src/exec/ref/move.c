/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs operations that move elements and compute nothing, by the strided copy. Reshapes share the
 * bytes of their operand; a bitcast between layouts goes through the physical order of both.
 */
#include "exec/eval/strided.h"
#include "exec/ref/kernels.h"
#include "program/literal.h"
#include "program/opcodes.h"

#include <string.h>

static enum rp_code dims_below(struct rp_plan *plan, struct rp_node *node, unsigned key,
                               size_t rank, size_t want, struct rp_err *err)
{
    struct rp_dims_attr *a = RP_NODE_NEW(plan, struct rp_dims_attr);

    RP_TRY(rp_err_need(a, err, "planning"));
    RP_TRY(rp_node_ints(plan, node, key, rank ? (int64_t)rank : 1, &a->at, &a->n, err));
    if (want != SIZE_MAX && a->n != want)
        return rp_node_error(node, RP_FORMAT, err, "%zu dimensions are given, %zu are needed", a->n,
                             want);
    node->attrs = a;
    return RP_OK;
}

/* ---- broadcast, reshape, transpose, reverse, copy ---- */

static RP_PREPARE(prepare_broadcast)
{
    return dims_below(plan, node, RP_ATTR_DIMENSIONS, node->shape->rank,
                      rp_node_operand(plan, node, 0)->rank, err);
}

static RP_KERNEL(broadcast)
{
    const struct rp_dims_attr *a = node->attrs;
    struct rp_strided s = {.unit = in[0]->unit, .rank = node->shape->rank};
    int64_t from[RP_TENSOR_RANK];
    bool in_order = true; /* in order, and with no element repeated, only the shape changes */

    for (size_t i = 1; i < a->n; i++)
        in_order = in_order && a->at[i] > a->at[i - 1];
    if (in_order && in[0]->n == node->shape->n && !node->shape->dynamic)
        return rp_tensor_view(in[0], node->shape->elem, node->shape->dims, s.rank, out, err);
    RP_TRY(rp_node_result(node, out, err));
    rp_strides((*out)->dims, s.rank, s.to);
    rp_strides(in[0]->dims, in[0]->rank, from);
    if (s.rank)
        memcpy(s.dims, (*out)->dims, s.rank * sizeof *s.dims);
    for (size_t i = 0; i < a->n; i++) {
        if (in[0]->dims[i] != 1 && in[0]->dims[i] != s.dims[a->at[i]])
            return rp_node_error(node, RP_FORMAT, err, "dimension %zu does not match", i);
        s.from[a->at[i]] = in[0]->dims[i] == 1 ? 0 : from[i];
    }
    return rp_strided_spread(&s, (*out)->data, in[0]->data, e->pool, err);
}

static RP_KERNEL(reshape)
{
    if (in[0]->n != node->shape->n)
        return rp_node_error(node, RP_FORMAT, err, "the operand has %zu elements, the result %zu",
                             in[0]->n, node->shape->n);
    enum rp_code code =
        rp_tensor_view(in[0], node->shape->elem, node->shape->dims, node->shape->rank, out, err);
    return code;
}

static RP_PREPARE(prepare_transpose)
{
    return dims_below(plan, node, RP_ATTR_DIMENSIONS, node->shape->rank, node->shape->rank, err);
}

static RP_KERNEL(transpose)
{
    const struct rp_dims_attr *a = node->attrs;
    uint32_t perm[RP_TENSOR_RANK];

    for (size_t i = 0; i < a->n; i++)
        perm[i] = (uint32_t)a->at[i];
    return rp_tensor_transpose_spread(in[0], perm, e->pool, out, err);
}

static RP_PREPARE(prepare_reverse)
{
    return dims_below(plan, node, RP_ATTR_DIMENSIONS, node->shape->rank, SIZE_MAX, err);
}

static RP_KERNEL(reverse)
{
    const struct rp_dims_attr *a = node->attrs;
    struct rp_strided s = {.unit = in[0]->unit, .rank = in[0]->rank};
    int64_t begin = 0;

    RP_TRY(rp_tensor_new(in[0]->elem, in[0]->dims, in[0]->rank, out, err));
    if (!in[0]->n)
        return RP_OK;
    rp_strides(in[0]->dims, s.rank, s.to);
    rp_strides(in[0]->dims, s.rank, s.from);
    if (s.rank)
        memcpy(s.dims, in[0]->dims, s.rank * sizeof *s.dims);
    for (size_t i = 0; i < a->n; i++) {
        begin += s.from[a->at[i]] * (s.dims[a->at[i]] - 1);
        s.from[a->at[i]] = -s.from[a->at[i]];
    }
    rp_strided_copy(&s, (*out)->data, in[0]->data + begin * (int64_t)in[0]->unit);
    return RP_OK;
}

/* ---- bitcast: the same bytes in memory, seen as another shape and layout ---- */

static void physical_order(const struct rp_value_shape *shape, uint32_t *major_first, int64_t *dims)
{
    for (uint32_t i = 0; i < shape->rank; i++) {
        uint32_t d = shape->order ? shape->order[shape->rank - 1 - i] : i;

        major_first[i] = d;
        dims[i] = shape->dims[d];
    }
}

static RP_PREPARE(prepare_bitcast)
{
    const struct rp_value_shape *from = rp_node_operand(plan, node, 0);

    node->attrs = (void *)(uintptr_t)from;
    if (from->n * rp_literal_unit(from->elem) !=
        node->shape->n * rp_literal_unit(node->shape->elem))
        return rp_node_error(node, RP_FORMAT, err, "the sizes differ");
    return RP_OK;
}

static RP_KERNEL(bitcast)
{
    const struct rp_value_shape *from = node->attrs, *to = node->shape;
    uint32_t perm[RP_TENSOR_RANK], back[RP_TENSOR_RANK];
    int64_t dims[RP_TENSOR_RANK];
    struct rp_tensor *seen;
    enum rp_code code = RP_OK;

    if (!from->order && !to->order)
        return rp_tensor_view(in[0], to->elem, to->dims, to->rank, out, err);
    physical_order(from, perm, dims);
    struct rp_tensor *plain = rp_tensor_keep(in[0]);
    if (from->order) {
        rp_tensor_drop(plain);
        RP_TRY(rp_tensor_transpose(in[0], perm, &plain, err));
    }
    physical_order(to, perm, dims);
    code = rp_tensor_view(plain, to->elem, dims, to->rank, &seen, err);
    rp_tensor_drop(plain);
    if (code != RP_OK || !to->order) {
        *out = seen;
        return code;
    }
    for (uint32_t i = 0; i < to->rank; i++)
        back[perm[i]] = i;
    code = rp_tensor_transpose(seen, back, out, err);
    rp_tensor_drop(seen);
    return code;
}

/* ---- slices ---- */

struct slice_attr {
    int64_t begin[RP_TENSOR_RANK], end[RP_TENSOR_RANK], step[RP_TENSOR_RANK];
};

static RP_PREPARE(prepare_slice)
{
    const struct rp_attr *attr = rp_node_attr(plan, node, RP_ATTR_SLICE);
    const struct rp_value_shape *from = rp_node_operand(plan, node, 0);
    struct slice_attr *a = RP_NODE_NEW(plan, struct slice_attr);
    uint32_t n = attr && attr->type == RP_VALUE_SLICES ? attr->n / 3 : 0;

    RP_TRY(rp_err_need(a, err, "planning"));
    node->attrs = a;
    for (uint32_t i = 0; i < n; i++) {
        const int64_t *v = attr->ints + (size_t)3 * i;

        if (i >= from->rank || v[0] < 0 || v[1] < v[0] || v[1] > from->dims[i] || v[2] < 1)
            return rp_node_error(node, RP_FORMAT, err, "the bounds do not match the operand");
        a->begin[i] = v[0];
        a->end[i] = v[1];
        a->step[i] = v[2] < v[1] - v[0] ? v[2] : v[1] > v[0] ? v[1] - v[0] : 1;
    }
    if (n != from->rank)
        return rp_node_error(node, RP_FORMAT, err, "%u bounds for %u dimensions", n, from->rank);
    return RP_OK;
}

static RP_KERNEL(slice)
{
    const struct slice_attr *a = node->attrs;
    struct rp_strided s = {.unit = in[0]->unit, .rank = in[0]->rank};
    int64_t begin = 0;

    RP_TRY(rp_node_result(node, out, err));
    rp_strides((*out)->dims, s.rank, s.to);
    rp_strides(in[0]->dims, s.rank, s.from);
    for (size_t k = 0; k < s.rank; k++) {
        int64_t want = (a->end[k] - a->begin[k] + a->step[k] - 1) / a->step[k];

        if (want != (*out)->dims[k])
            return rp_node_error(node, RP_FORMAT, err, "wrong size of the result");
        s.dims[k] = want;
        begin += a->begin[k] * s.from[k];
        s.from[k] *= a->step[k];
    }
    return (*out)->n ? rp_strided_spread(&s, (*out)->data, in[0]->data + begin * (int64_t)s.unit,
                                         e->pool, err)
                     : RP_OK;
}

/* Reads the starts of a window of `size` in `of`, clamped; one scalar for each dimension, or one
   vector (old programs). */
static enum rp_code slice_starts(const struct rp_node *node, struct rp_tensor *const *in,
                                 uint32_t n, const struct rp_tensor *of, const int64_t *size,
                                 int64_t *begin, struct rp_err *err)
{
    for (uint32_t k = 0; k < of->rank; k++) {
        bool vector = n == 1 && in[0]->n == of->rank && of->rank != 1;
        int64_t most = of->dims[k] - size[k];

        if (!vector && (k >= n || !in[k]->n))
            return rp_node_error(node, RP_FORMAT, err, "%u indices for %u dimensions", n, of->rank);
        int64_t v = vector ? rp_tensor_integer(in[0], k) : rp_tensor_integer(in[k], 0);
        if ((vector ? in[0] : in[k])->elem == RP_ELEM_U64 && v < 0)
            v = INT64_MAX;
        begin[k] = v < 0 ? 0 : v > most ? most : v;
    }
    return RP_OK;
}

static RP_KERNEL(dynamic_slice)
{
    struct rp_strided s = {.unit = in[0]->unit, .rank = in[0]->rank};
    int64_t begin[RP_TENSOR_RANK], at = 0;

    RP_TRY(rp_node_result(node, out, err));
    for (size_t k = 0; k < s.rank; k++)
        if (node->shape->rank != s.rank || node->shape->dims[k] > in[0]->dims[k])
            return rp_node_error(node, RP_FORMAT, err, "the result does not match the operand");
    RP_TRY(slice_starts(node, in + 1, node->nin - 1, in[0], (*out)->dims, begin, err));
    rp_strides((*out)->dims, s.rank, s.to);
    rp_strides(in[0]->dims, s.rank, s.from);
    for (size_t k = 0; k < s.rank; k++) {
        s.dims[k] = (*out)->dims[k];
        at += begin[k] * s.from[k];
    }
    return (*out)->n ? rp_strided_spread(&s, (*out)->data, in[0]->data + at * (int64_t)s.unit,
                                         e->pool, err)
                     : RP_OK;
}

static RP_KERNEL(dynamic_update_slice)
{
    struct rp_strided s = {.unit = in[0]->unit, .rank = in[0]->rank};
    int64_t begin[RP_TENSOR_RANK], at = 0;

    RP_TRY(rp_tensor_new(in[0]->elem, in[0]->dims, in[0]->rank, out, err));
    for (size_t k = 0; k < s.rank; k++)
        if (in[1]->rank != s.rank || in[1]->dims[k] > in[0]->dims[k])
            return rp_node_error(node, RP_FORMAT, err, "the update does not match the operand");
    memcpy((*out)->data, in[0]->data, rp_tensor_bytes(in[0]));
    RP_TRY(slice_starts(node, in + 2, node->nin - 2, in[0], in[1]->dims, begin, err));
    rp_strides(in[1]->dims, s.rank, s.from);
    rp_strides(in[0]->dims, s.rank, s.to);
    for (size_t k = 0; k < s.rank; k++) {
        s.dims[k] = in[1]->dims[k];
        at += begin[k] * s.to[k];
    }
    if (in[1]->n)
        rp_strided_copy(&s, (*out)->data + at * (int64_t)s.unit, in[1]->data);
    return RP_OK;
}

/* ---- pad, concatenate ---- */

struct pad_attr {
    int64_t low[RP_TENSOR_RANK], high[RP_TENSOR_RANK], inner[RP_TENSOR_RANK];
};

static RP_PREPARE(prepare_pad)
{
    const struct rp_attr *attr = rp_node_attr(plan, node, RP_ATTR_PADDING);
    struct pad_attr *a = RP_NODE_NEW(plan, struct pad_attr);
    uint32_t n = attr && attr->type == RP_VALUE_PADDING ? attr->n / 3 : 0;

    RP_TRY(rp_err_need(a, err, "planning"));
    node->attrs = a;
    if (!attr && node->shape->rank)
        return rp_node_error(node, RP_FORMAT, err, "no padding");
    if (n != node->shape->rank)
        return rp_node_error(node, RP_FORMAT, err, "malformed padding");
    for (uint32_t i = 0; i < n; i++) {
        const int64_t *v = attr->ints + (size_t)3 * i;

        a->low[i] = v[0];
        a->high[i] = v[1];
        a->inner[i] = v[2];
        if (a->inner[i] < 0)
            return rp_node_error(node, RP_FORMAT, err, "malformed padding");
    }
    return RP_OK;
}

/* Fills with one value: a copy with a stride of 0, in long rows. */
static enum rp_code fill_all(struct rp_tensor *t, const void *value, struct rp_pool *pool,
                             struct rp_err *err)
{
    struct rp_strided s = {.unit = t->unit, .rank = 2};

    s.dims[1] = 16384;
    s.dims[0] = (int64_t)t->n / s.dims[1];
    s.to[0] = s.dims[1];
    s.to[1] = 1;
    if (s.dims[0])
        RP_TRY(rp_strided_spread(&s, t->data, value, pool, err));
    s.dims[0] = 1;
    s.dims[1] = (int64_t)t->n % 16384;
    if (s.dims[1])
        rp_strided_copy(&s, t->data + (t->n - (size_t)s.dims[1]) * t->unit, value);
    return RP_OK;
}

static RP_KERNEL(pad)
{
    const struct pad_attr *a = node->attrs;
    struct rp_strided s = {.unit = in[0]->unit, .rank = in[0]->rank};
    int64_t at = 0, of = 0;

    RP_TRY(rp_node_result(node, out, err));
    if (in[0]->rank != node->shape->rank || in[1]->n != 1)
        return rp_node_error(node, RP_FORMAT, err, "wrong shape of the operands");
    RP_TRY(fill_all(*out, in[1]->data, e->pool, err));
    rp_strides((*out)->dims, s.rank, s.to);
    rp_strides(in[0]->dims, s.rank, s.from);
    for (size_t k = 0; k < s.rank; k++) {
        int64_t step = a->inner[k] + 1, first = 0, last = in[0]->dims[k] - 1;

        if (a->low[k] < 0) /* edges that are cut off */
            first = (-a->low[k] + step - 1) / step;
        while (last >= first && a->low[k] + last * step >= (*out)->dims[k])
            last = (*out)->dims[k] > a->low[k] ? ((*out)->dims[k] - 1 - a->low[k]) / step : -1;
        s.dims[k] = last - first + 1;
        if (s.dims[k] <= 0)
            return RP_OK;
        at += (a->low[k] + first * step) * s.to[k];
        of += first * s.from[k];
        s.to[k] *= step;
    }
    return rp_strided_spread(&s, (*out)->data + at * (int64_t)s.unit,
                             in[0]->data + of * (int64_t)s.unit, e->pool, err);
}

static RP_PREPARE(prepare_concatenate)
{
    return dims_below(plan, node, RP_ATTR_DIMENSIONS, node->shape->rank, 1, err);
}

static RP_KERNEL(concatenate)
{
    size_t dim = (size_t)((const struct rp_dims_attr *)node->attrs)->at[0];
    int64_t at = 0;

    RP_TRY(rp_node_result(node, out, err));
    for (uint32_t i = 0; i < node->nin; i++) {
        struct rp_strided s = {.unit = in[i]->unit, .rank = in[i]->rank};

        if (s.rank != node->shape->rank || at + in[i]->dims[dim] > (*out)->dims[dim])
            return rp_node_error(node, RP_FORMAT, err, "wrong shape of operand %u", i);
        rp_strides((*out)->dims, s.rank, s.to);
        rp_strides(in[i]->dims, s.rank, s.from);
        memcpy(s.dims, in[i]->dims, s.rank * sizeof *s.dims);
        for (size_t k = 0; k < s.rank; k++)
            if (k != dim && s.dims[k] != (*out)->dims[k])
                return rp_node_error(node, RP_FORMAT, err, "wrong shape of operand %u", i);
        RP_TRY(rp_strided_spread(&s, (*out)->data + at * s.to[dim] * (int64_t)s.unit, in[i]->data,
                                 e->pool, err));
        at += in[i]->dims[dim];
    }
    return RP_OK;
}

/* ---- sizes that are known when the program runs ---- */

static RP_PREPARE(prepare_dimension)
{
    return dims_below(plan, node, RP_ATTR_DIMENSIONS, rp_node_operand(plan, node, 0)->rank, 1, err);
}

static RP_KERNEL(get_size)
{
    size_t dim = (size_t)((const struct rp_dims_attr *)node->attrs)->at[0];

    RP_TRY(rp_node_result(node, out, err));
    rp_tensor_set_integer(*out, 0, in[0]->dims[dim]);
    return RP_OK;
}

/* The array keeps its bound in the program; its value is the part that exists. */
static RP_KERNEL(set_size)
{
    size_t dim = (size_t)((const struct rp_dims_attr *)node->attrs)->at[0];
    struct rp_strided s = {.unit = in[0]->unit, .rank = in[0]->rank};
    int64_t size = rp_tensor_integer(in[1], 0);

    memcpy(s.dims, in[0]->dims, s.rank * sizeof *s.dims);
    if (size < 0 || size > s.dims[dim])
        return rp_node_error(node, RP_FORMAT, err, "a size of %lld, at most %lld", (long long)size,
                             (long long)s.dims[dim]);
    s.dims[dim] = size;
    RP_TRY(rp_tensor_new(in[0]->elem, s.dims, s.rank, out, err));
    rp_strides((*out)->dims, s.rank, s.to);
    rp_strides(in[0]->dims, s.rank, s.from);
    if ((*out)->n)
        rp_strided_copy(&s, (*out)->data, in[0]->data);
    return RP_OK;
}

const struct rp_kernel rp_kernels_move[] = {
    {RP_OP_BROADCAST, prepare_broadcast, broadcast},
    {RP_OP_RESHAPE, NULL, reshape},
    {RP_OP_DYNAMIC_RESHAPE, NULL, reshape},
    {RP_OP_TRANSPOSE, prepare_transpose, transpose},
    {RP_OP_REVERSE, prepare_reverse, reverse},
    {RP_OP_BITCAST, prepare_bitcast, bitcast},
    {RP_OP_SLICE, prepare_slice, slice},
    {RP_OP_DYNAMIC_SLICE, NULL, dynamic_slice},
    {RP_OP_DYNAMIC_UPDATE_SLICE, NULL, dynamic_update_slice},
    {RP_OP_PAD, prepare_pad, pad},
    {RP_OP_CONCATENATE, prepare_concatenate, concatenate},
    {RP_OP_GET_DIMENSION_SIZE, prepare_dimension, get_size},
    {RP_OP_SET_DIMENSION_SIZE, prepare_dimension, set_size},
    {0, NULL, NULL},
};
