/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes gather and scatter, with the batching dimensions of newer programs. A gather's start is
 * clamped so that its slice lies inside; a scatter's window that would lie partly outside is
 * skipped. Updates are applied in order.
 */
#include "exec/eval/strided.h"
#include "exec/ref/kernels.h"
#include "exec/ref/reduce.h"
#include "program/opcodes.h"

#include <stdlib.h>
#include <string.h>

static enum rp_code read_list(struct rp_plan *plan, struct rp_node *node, unsigned key, size_t rank,
                              struct rp_dims_attr *out, struct rp_err *err)
{
    return rp_node_ints(plan, node, key, rank ? (int64_t)rank : 1, &out->at, &out->n, err);
}

/* The window's dimensions in the operand: those that are neither collapsed nor batching. */
static size_t window_dims(const struct rp_gather *a, size_t rank, size_t *dims)
{
    size_t n = 0;

    for (size_t k = 0; k < rank; k++)
        if (!rp_dims_has(a->collapsed, (int64_t)k) && !rp_dims_has(a->operand_batch, (int64_t)k))
            dims[n++] = k;
    return n;
}

static enum rp_code gather_check(const struct rp_gather *a, const struct rp_node *node,
                                 const struct rp_value_shape *operand,
                                 const struct rp_value_shape *indices,
                                 const struct rp_value_shape *windows, struct rp_err *err)
{
    size_t dims[RP_TENSOR_RANK], n = window_dims(a, operand->rank, dims);
    int64_t vector = a->vector_dim < (int64_t)indices->rank && a->vector_dim >= 0
                         ? indices->dims[a->vector_dim]
                         : 1;

    if (a->vector_dim < 0 || a->vector_dim > (int64_t)indices->rank)
        return rp_node_error(node, RP_FORMAT, err, "index_vector_dim is out of range");
    if ((int64_t)a->map.n != vector)
        return rp_node_error(node, RP_FORMAT, err, "%zu index dimensions for index vectors of %lld",
                             a->map.n, (long long)vector);
    if (a->offset.n != n || a->operand_batch.n != a->index_batch.n)
        return rp_node_error(node, RP_FORMAT, err, "the window dimensions do not match");
    if (windows->rank !=
        a->offset.n + indices->rank - (a->vector_dim < (int64_t)indices->rank ? 1 : 0))
        return rp_node_error(node, RP_FORMAT, err, "wrong rank of the result or the updates");
    if (!rp_elem_is_signed(indices->elem) && !rp_elem_is_unsigned(indices->elem))
        return rp_node_error(node, RP_FORMAT, err, "the indices are %s, not integers",
                             rp_elem_name(indices->elem));
    for (size_t i = 0; i < a->index_batch.n; i++)
        if (a->index_batch.at[i] == a->vector_dim || rp_dims_has(a->map, a->operand_batch.at[i]) ||
            operand->dims[a->operand_batch.at[i]] != indices->dims[a->index_batch.at[i]])
            return rp_node_error(node, RP_FORMAT, err, "the batching dimensions do not match");
    /* The dimensions that count windows are those of the indices, in their order. */
    uint32_t d = 0;
    for (uint32_t k = 0; k < windows->rank; k++) {
        if (rp_dims_has(a->offset, k))
            continue;
        d += d == a->vector_dim;
        if (d >= indices->rank || windows->dims[k] != indices->dims[d])
            return rp_node_error(node, RP_FORMAT, err,
                                 "dimension %u of the result or the updates is not that of the "
                                 "indices",
                                 k);
        d++;
    }
    return RP_OK;
}

RP_PREPARE(rp_gather_prepare)
{
    struct rp_gather *a = RP_NODE_NEW(plan, struct rp_gather);
    const struct rp_value_shape *operand = rp_node_operand(plan, node, 0);
    const struct rp_value_shape *indices = rp_node_operand(plan, node, 1);
    size_t dims[RP_TENSOR_RANK];

    RP_TRY(rp_err_need(a, err, "planning"));
    node->attrs = a;
    RP_TRY(read_list(plan, node, RP_ATTR_OFFSET_DIMS, node->shape->rank, &a->offset, err));
    RP_TRY(read_list(plan, node, RP_ATTR_COLLAPSED_SLICE_DIMS, operand->rank, &a->collapsed, err));
    RP_TRY(read_list(plan, node, RP_ATTR_START_INDEX_MAP, operand->rank, &a->map, err));
    RP_TRY(read_list(plan, node, RP_ATTR_OPERAND_BATCHING_DIMS, operand->rank, &a->operand_batch,
                     err));
    RP_TRY(read_list(plan, node, RP_ATTR_START_INDICES_BATCHING_DIMS, indices->rank,
                     &a->index_batch, err));
    RP_TRY(rp_node_ints(plan, node, RP_ATTR_SLICE_SIZES, 0, &a->sizes.at, &a->sizes.n, err));
    a->vector_dim = rp_node_int(plan, node, RP_ATTR_INDEX_VECTOR_DIM, 0);
    RP_TRY(gather_check(a, node, operand, indices, node->shape, err));
    RP_TRY(rp_node_expect(node, "the result", node->shape, operand->elem, node->shape->dims,
                          node->shape->rank, err));
    if (a->sizes.n != operand->rank)
        return rp_node_error(node, RP_FORMAT, err, "slice_sizes do not match the operand");
    size_t n = window_dims(a, operand->rank, dims);
    for (size_t k = 0; k < operand->rank; k++)
        if (a->sizes.at[k] < 0 || a->sizes.at[k] > operand->dims[k] ||
            (rp_dims_has(a->operand_batch, (int64_t)k) && a->sizes.at[k] > 1))
            return rp_node_error(node, RP_FORMAT, err, "slice_sizes do not match the operand");
    for (size_t k = 0; k < n; k++)
        if (node->shape->dims[a->offset.at[k]] != a->sizes.at[dims[k]])
            return rp_node_error(node, RP_FORMAT, err, "the result does not match slice_sizes");
    return RP_OK;
}

/* Splits an index of the result (or updates) and finds the start in the operand, without clamping
   it. */
struct place {
    const struct rp_gather *a;
    const struct rp_tensor *operand, *indices;
    size_t window[RP_TENSOR_RANK], nwindow;
    int64_t index_stride[RP_TENSOR_RANK];
};

static void place_init(struct place *p, const struct rp_gather *a, const struct rp_tensor *operand,
                       const struct rp_tensor *indices)
{
    p->a = a;
    p->operand = operand;
    p->indices = indices;
    p->nwindow = window_dims(a, operand->rank, p->window);
    rp_strides(indices->dims, indices->rank, p->index_stride);
}

static void place_start(const struct place *p, const int64_t *index, size_t rank, int64_t *start)
{
    const struct rp_gather *a = p->a;
    int64_t base = 0, batch[RP_TENSOR_RANK];
    size_t d = 0;

    for (size_t k = 0; k < rank; k++) {
        if (rp_dims_has(a->offset, (int64_t)k))
            continue;
        if ((int64_t)d == a->vector_dim)
            d++;
        batch[d] = index[k];
        base += index[k] * p->index_stride[d];
        d++;
    }
    memset(start, 0, p->operand->rank * sizeof *start);
    for (size_t k = 0; k < a->map.n; k++) {
        int64_t step =
            a->vector_dim < (int64_t)p->indices->rank ? p->index_stride[a->vector_dim] : 0;

        start[a->map.at[k]] = rp_tensor_integer(p->indices, (size_t)(base + (int64_t)k * step));
        if (p->indices->elem == RP_ELEM_U64 && start[a->map.at[k]] < 0)
            start[a->map.at[k]] = INT64_MAX / 2;
    }
    for (size_t k = 0; k < a->operand_batch.n; k++)
        start[a->operand_batch.at[k]] = batch[a->index_batch.at[k]];
}

/* Lists the dimensions of the result (or updates) that count windows; those inside a window become
   zero. */
static size_t count_windows(const struct rp_gather *a, const struct rp_tensor *t, int64_t *dims)
{
    size_t n = 1;

    for (size_t k = 0; k < t->rank; k++) {
        dims[k] = rp_dims_has(a->offset, (int64_t)k) ? 1 : t->dims[k];
        n *= (size_t)dims[k];
    }
    return n;
}

static RP_KERNEL(gather_run)
{
    const struct rp_gather *a = node->attrs;
    int64_t index[RP_TENSOR_RANK] = {0}, dims[RP_TENSOR_RANK], start[RP_TENSOR_RANK];
    int64_t stride[RP_TENSOR_RANK], to_stride[RP_TENSOR_RANK];
    struct rp_strided s = {.unit = in[0]->unit};
    struct place p;

    RP_TRY(rp_node_result(node, out, err));
    struct rp_tensor *to = *out;
    place_init(&p, a, in[0], in[1]);
    rp_strides(in[0]->dims, in[0]->rank, stride);
    rp_strides(to->dims, to->rank, to_stride);
    s.rank = p.nwindow;
    for (size_t k = 0; k < p.nwindow; k++) {
        s.dims[k] = a->sizes.at[p.window[k]];
        s.from[k] = stride[p.window[k]];
        s.to[k] = to_stride[a->offset.at[k]];
    }
    size_t windows = to->n ? count_windows(a, to, dims) : 0;
    for (size_t w = 0; w < windows; w++) {
        int64_t from = 0, at = 0;

        place_start(&p, index, to->rank, start);
        for (size_t k = 0; k < in[0]->rank; k++) {
            int64_t most = in[0]->dims[k] - a->sizes.at[k];

            start[k] = start[k] < 0 ? 0 : start[k] > most ? most : start[k];
            from += start[k] * stride[k];
        }
        for (size_t k = 0; k < to->rank; k++)
            at += index[k] * to_stride[k];
        rp_strided_copy(&s, to->data + at * (int64_t)s.unit, in[0]->data + from * (int64_t)s.unit);
        rp_index_next(index, dims, to->rank);
    }
    return RP_OK;
}

/* ---- scatter: operands, indices, updates ---- */

/* Checks that all operands and results have one shape, and all updates one. */
static enum rp_code scatter_shapes(struct rp_plan *plan, const struct rp_node *node, uint32_t n,
                                   struct rp_err *err)
{
    const struct rp_value_shape *operand = rp_node_operand(plan, node, 0), *to = node->shape;
    const struct rp_value_shape *updates = rp_node_operand(plan, node, n + 1);

    if ((to->elem == RP_ELEM_TUPLE ? to->nparts : 1) != n)
        return rp_node_error(node, RP_FORMAT, err, "the results do not match the operands");
    for (uint32_t i = 0; i < n; i++) {
        const struct rp_value_shape *each = rp_node_operand(plan, node, i);

        RP_TRY(rp_node_expect(node, "an operand", each, RP_ELEM_INVALID, operand->dims,
                              operand->rank, err));
        RP_TRY(rp_node_expect(node, "a result", to->elem == RP_ELEM_TUPLE ? to->parts[i] : to,
                              each->elem, operand->dims, operand->rank, err));
        RP_TRY(rp_node_expect(node, "an update", rp_node_operand(plan, node, n + 1 + i), each->elem,
                              updates->dims, updates->rank, err));
    }
    return RP_OK;
}

RP_PREPARE(rp_scatter_prepare)
{
    struct rp_gather *a = RP_NODE_NEW(plan, struct rp_gather);
    const struct rp_value_shape *operand = rp_node_operand(plan, node, 0);

    RP_TRY(rp_err_need(a, err, "planning"));
    node->attrs = a;
    a->k = node->nin / 2;
    if (node->nin % 2 == 0 || a->k > RP_REDUCE_MOST || node->ncalled != 1 ||
        node->called[0]->nparams != 2 * a->k)
        return rp_node_error(node, RP_FORMAT, err, "the function does not match the operands");
    RP_TRY(scatter_shapes(plan, node, (uint32_t)a->k, err));
    const struct rp_value_shape *indices = rp_node_operand(plan, node, a->k);
    const struct rp_value_shape *updates = rp_node_operand(plan, node, a->k + 1);
    RP_TRY(read_list(plan, node, RP_ATTR_UPDATE_WINDOW_DIMS, updates->rank, &a->offset, err));
    RP_TRY(read_list(plan, node, RP_ATTR_INSERTED_WINDOW_DIMS, operand->rank, &a->collapsed, err));
    RP_TRY(
        read_list(plan, node, RP_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, operand->rank, &a->map, err));
    RP_TRY(
        read_list(plan, node, RP_ATTR_INPUT_BATCHING_DIMS, operand->rank, &a->operand_batch, err));
    RP_TRY(read_list(plan, node, RP_ATTR_SCATTER_INDICES_BATCHING_DIMS, indices->rank,
                     &a->index_batch, err));
    a->vector_dim = rp_node_int(plan, node, RP_ATTR_INDEX_VECTOR_DIM, 0);
    RP_TRY(gather_check(a, node, operand, indices, updates, err));
    RP_TRY(rp_tape_new(plan, node->called[0], false, &a->tape, err));
    if (a->tape->nresults != a->k)
        return rp_node_error(node, RP_FORMAT, err, "the function has the wrong number of results");
    for (uint32_t i = 0; i < a->k; i++) /* operands come first, then indices, then updates */
        if (a->tape->regs[i].elem != rp_node_operand(plan, node, i)->elem ||
            a->tape->regs[a->k + i].elem !=
                rp_node_operand(plan, node, (uint32_t)a->k + 1 + i)->elem ||
            a->tape->regs[a->tape->results[i]].elem != a->tape->regs[i].elem)
            return rp_node_error(node, RP_UNSUPPORTED, err,
                                 "functions of mixed types are not supported");
    return RP_OK;
}

/* Whether the whole window of an update lies inside the operand. */
static bool is_inside(const struct place *p, const int64_t *start, const struct rp_tensor *updates)
{
    int64_t last[RP_TENSOR_RANK];

    memcpy(last, start, p->operand->rank * sizeof *start);
    for (size_t k = 0; k < p->nwindow; k++)
        last[p->window[k]] += updates->dims[p->a->offset.at[k]] - 1;
    for (size_t k = 0; k < p->operand->rank; k++)
        if (start[k] < 0 || last[k] < 0 || last[k] >= p->operand->dims[k])
            return false;
    return true;
}

/* Applies f(old, update) to n adjacent elements of every operand. */
static void scatter_combine(const struct rp_gather *a, struct rp_tape_frame *f,
                            struct rp_tensor **to, struct rp_tensor *const *updates, char *kept,
                            int64_t at, int64_t from, size_t n)
{
    const size_t room = (size_t)16 * RP_TAPE_LANES;

    if (a->tape->second && a->k == 1 && to[0] && updates[0]) {
        memcpy(to[0]->data + at * (int64_t)to[0]->unit,
               updates[0]->data + from * (int64_t)to[0]->unit, n * to[0]->unit);
        return;
    }
    for (size_t k = 0; k < a->k && to[k] && updates[k]; k++) {
        f->reg[k] = to[k]->data + at * (int64_t)to[k]->unit;
        f->reg[a->k + k] = updates[k]->data + from * (int64_t)updates[k]->unit;
    }
    rp_tape_run(f, n);
    for (size_t k = 0; k < a->k && to[k]; k++)
        memcpy(kept + k * room, rp_tape_result(f, k), n * to[k]->unit);
    for (size_t k = 0; k < a->k && to[k]; k++)
        memcpy(to[k]->data + at * (int64_t)to[k]->unit, kept + k * room, n * to[k]->unit);
}

/* One window, as runs of elements that are contiguous on both sides. */
struct runs {
    size_t rank; /* number of dimensions outside of a run */
    int64_t dims[RP_TENSOR_RANK], to[RP_TENSOR_RANK], from[RP_TENSOR_RANK], length;
};

static void scatter_window(const struct rp_gather *a, const struct runs *r, struct rp_tape_frame *f,
                           struct rp_tensor **to, struct rp_tensor *const *updates, char *kept,
                           int64_t at, int64_t from)
{
    int64_t index[RP_TENSOR_RANK] = {0};

    do {
        int64_t x = at, y = from;

        for (size_t k = 0; k < r->rank; k++) {
            x += index[k] * r->to[k];
            y += index[k] * r->from[k];
        }
        for (int64_t i = 0; i < r->length; i += RP_TAPE_LANES)
            scatter_combine(
                a, f, to, updates, kept, x + i, y + i,
                (size_t)(r->length - i < RP_TAPE_LANES ? r->length - i : RP_TAPE_LANES));
    } while (rp_index_next(index, r->dims, r->rank));
}

static enum rp_code scatter_all(const struct rp_gather *a, struct rp_tensor *const *in,
                                struct rp_tensor **to, struct rp_err *err)
{
    const struct rp_tensor *updates = in[a->k + 1];
    int64_t index[RP_TENSOR_RANK] = {0}, dims[RP_TENSOR_RANK], start[RP_TENSOR_RANK];
    int64_t stride[RP_TENSOR_RANK], update_stride[RP_TENSOR_RANK];
    size_t windows = updates->n ? count_windows(a, updates, dims) : 0;
    RP_FREED char *kept = malloc(16 * (size_t)RP_TAPE_LANES * a->k);
    RP_SCOPED(rp_tape_end) struct rp_tape_frame frame = {0};
    struct runs runs;
    struct place p;

    RP_TRY(rp_err_need(kept, err, "scattering"));
    RP_TRY(rp_tape_begin(a->tape, &frame, err));
    place_init(&p, a, in[0], in[a->k]);
    rp_strides(in[0]->dims, in[0]->rank, stride);
    rp_strides(updates->dims, updates->rank, update_stride);
    runs.rank = p.nwindow;
    runs.length = 1;
    for (size_t k = 0; k < p.nwindow; k++) {
        runs.dims[k] = updates->dims[p.a->offset.at[k]];
        runs.to[k] = stride[p.window[k]];
        runs.from[k] = update_stride[p.a->offset.at[k]];
    }
    if (runs.rank && runs.to[runs.rank - 1] == 1 && runs.from[runs.rank - 1] == 1)
        runs.length = runs.dims[--runs.rank];
    for (size_t w = 0; w < windows; w++) {
        int64_t at = 0, from = 0;

        place_start(&p, index, updates->rank, start);
        for (size_t k = 0; k < updates->rank; k++)
            from += index[k] * update_stride[k];
        if (is_inside(&p, start, updates)) { /* indices outside of the operand may be any numbers */
            for (size_t k = 0; k < in[0]->rank; k++)
                at += start[k] * stride[k];
            scatter_window(a, &runs, &frame, to, in + a->k + 1, kept, at, from);
        }
        rp_index_next(index, dims, updates->rank);
    }
    return RP_OK;
}

static RP_KERNEL(scatter_run)
{
    const struct rp_gather *a = node->attrs;
    RP_SCOPED(rp_tensors_release) struct rp_tensors to = {0};

    RP_TRY(rp_tensors_new(a->k, &to, err));
    for (size_t k = 0; k < a->k; k++)
        RP_TRY(rp_tensor_copy(in[k], &to.at[k], err));
    RP_TRY(scatter_all(a, in, to.at, err));
    return rp_node_give(node, &to, out, err);
}

const struct rp_kernel rp_kernels_gather[] = {
    {RP_OP_GATHER, rp_gather_prepare, gather_run},
    {RP_OP_SCATTER, rp_scatter_prepare, scatter_run},
    {0, NULL, NULL},
};
