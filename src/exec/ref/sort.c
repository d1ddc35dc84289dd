/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes sort and topk with a stable merge sort of positions, one line of the sorted dimension
 * after another; the comparison is the program's function of scalars, so it need not be a total
 * order. topk keeps the first of equal values first, NaN above everything.
 */
#include "exec/eval/strided.h"
#include "exec/ref/kernels.h"
#include "exec/ref/reduce.h"
#include "program/opcodes.h"

#include <stdlib.h>
#include <string.h>

/* Prepares the function that compares the first nin operands, for node->attrs. */
static enum rp_code prepare_comparison(struct rp_plan *plan, struct rp_node *node, uint32_t nin,
                                       struct rp_err *err)
{
    struct rp_sort *a = RP_NODE_NEW(plan, struct rp_sort);

    RP_TRY(rp_err_need(a, err, "planning"));
    node->attrs = a;
    if (node->ncalled != 1 || node->called[0]->nparams != 2 * nin || nin > RP_REDUCE_MOST)
        return rp_node_error(node, RP_FORMAT, err, "the function does not match the operands");
    RP_TRY(rp_tape_new(plan, node->called[0], false, &a->tape, err));
    if (a->tape->nresults != 1 || a->tape->regs[a->tape->results[0]].elem != RP_ELEM_PRED)
        return rp_node_error(node, RP_FORMAT, err, "the comparison does not return pred");
    for (uint32_t i = 0; i < 2 * nin; i++)
        if (a->tape->regs[i].elem != rp_node_operand(plan, node, i / 2)->elem)
            return rp_node_error(node, RP_FORMAT, err, "the comparison is of another type");
    return RP_OK;
}

RP_PREPARE(rp_sort_prepare)
{
    const struct rp_value_shape *from = rp_node_operand(plan, node, 0);
    const int64_t *dims;
    size_t n;

    RP_TRY(prepare_comparison(plan, node, node->nin, err));
    RP_TRY(
        rp_node_ints(plan, node, RP_ATTR_DIMENSIONS, from->rank ? from->rank : 1, &dims, &n, err));
    ((struct rp_sort *)node->attrs)->dim = n ? dims[0] : (int64_t)from->rank - 1;
    return RP_OK;
}

/* Stable merges of runs of 1, 2, 4 ... */
void rp_merge_sort(size_t *at, size_t *spare, size_t n, rp_before_fn *before, void *user)
{
    size_t *from = at, *to = spare;

    for (size_t run = 1; run < n; run *= 2) {
        for (size_t begin = 0; begin < n; begin += 2 * run) {
            size_t i = begin, middle = begin + run < n ? begin + run : n;
            size_t j = middle, end = begin + 2 * run < n ? begin + 2 * run : n;

            for (size_t k = begin; k < end; k++)
                if (i < middle && (j >= end || !before(user, from[j], from[i])))
                    to[k] = from[i++];
                else
                    to[k] = from[j++];
        }
        size_t *swap = from;

        from = to;
        to = swap;
    }
    if (from != at)
        memcpy(at, from, n * sizeof *at);
}

struct line {
    struct rp_tensor *const *in;
    size_t k;
    int64_t base, step;
    struct rp_tape_frame frame;
};

static bool by_tape(void *user, size_t a, size_t b)
{
    struct line *l = user;

    for (size_t i = 0; i < l->k; i++) {
        int64_t unit = (int64_t)l->in[i]->unit;

        l->frame.reg[2 * i] = l->in[i]->data + (l->base + (int64_t)a * l->step) * unit;
        l->frame.reg[2 * i + 1] = l->in[i]->data + (l->base + (int64_t)b * l->step) * unit;
    }
    rp_tape_run(&l->frame, 1);
    return *(const uint8_t *)rp_tape_result(&l->frame, 0) != 0;
}

static enum rp_code sort_lines(const struct rp_sort *a, struct line *l, struct rp_tensor **to,
                               struct rp_err *err)
{
    const struct rp_tensor *t = l->in[0];
    int64_t stride[RP_TENSOR_RANK], index[RP_TENSOR_RANK] = {0}, dims[RP_TENSOR_RANK];
    size_t n = t->rank ? (size_t)t->dims[a->dim] : 1, lines = n ? t->n / n : 0;
    size_t *order = malloc((2 * n + 1) * sizeof *order);

    RP_TRY(rp_err_need(order, err, "sorting"));
    rp_strides(t->dims, t->rank, stride);
    memcpy(dims, t->dims, sizeof dims);
    if (t->rank)
        dims[a->dim] = 1;
    l->step = t->rank ? stride[a->dim] : 1;
    for (size_t line = 0; line < lines; line++) {
        l->base = 0;
        for (size_t k = 0; k < t->rank; k++)
            l->base += index[k] * stride[k];
        for (size_t i = 0; i < n; i++)
            order[i] = i;
        rp_merge_sort(order, order + n, n, by_tape, l);
        for (size_t k = 0; k < l->k && to[k]; k++)
            for (size_t i = 0; i < n; i++)
                memcpy(to[k]->data + (l->base + (int64_t)i * l->step) * (int64_t)to[k]->unit,
                       l->in[k]->data +
                           (l->base + (int64_t)order[i] * l->step) * (int64_t)to[k]->unit,
                       to[k]->unit);
        rp_index_next(index, dims, t->rank);
    }
    free(order);
    return RP_OK;
}

/* Sorts the first nin operands into `to`. */
static enum rp_code sort_operands(const struct rp_node *node, struct rp_tensor *const *in,
                                  size_t nin, struct rp_tensor **to, struct rp_err *err)
{
    struct line l = {.in = in, .k = nin};
    const struct rp_sort *a = node->attrs;

    for (size_t k = 0; k < l.k; k++) {
        RP_TRY(rp_tensor_new(in[k]->elem, in[k]->dims, in[k]->rank, &to[k], err));
        if (in[k]->n != in[0]->n)
            return rp_node_error(node, RP_FORMAT, err, "wrong shape of operand %zu", k);
    }
    RP_TRY(rp_tape_begin(a->tape, &l.frame, err));
    enum rp_code code = sort_lines(a, &l, to, err);
    rp_tape_end(&l.frame);
    return code;
}

static RP_KERNEL(sort_run)
{
    RP_SCOPED(rp_tensors_release) struct rp_tensors to = {0};

    RP_TRY(rp_tensors_new(node->nin, &to, err));
    RP_TRY(sort_operands(node, in, node->nin, to.at, err));
    return rp_node_give(node, &to, out, err);
}

/* ---- the first of a sort ---- */

enum rp_code rp_first_prepare(struct rp_plan *plan, struct rp_node *node, int64_t dim,
                              struct rp_err *err)
{
    uint32_t nin = node->nin / 2;

    if (!nin || node->nin % 2 || node->shape->elem != RP_ELEM_TUPLE || node->shape->nparts != nin)
        return rp_node_error(node, RP_FORMAT, err, "wrong number of operands or results");
    for (uint32_t i = 0; i < nin; i++) {
        const struct rp_value_shape *from = rp_node_operand(plan, node, i);
        const struct rp_value_shape *to = node->shape->parts[i];
        if (dim < 0 || dim >= (int64_t)from->rank || from->elem != to->elem ||
            from->rank != to->rank || from->n != rp_node_operand(plan, node, 0)->n)
            return rp_node_error(node, RP_FORMAT, err, "wrong shape of operand %u", i);
        for (uint32_t d = 0; d < to->rank; d++)
            if (d == (uint32_t)dim ? to->dims[d] > from->dims[d] : to->dims[d] != from->dims[d])
                return rp_node_error(node, RP_FORMAT, err, "wrong shape of result %u", i);
    }
    RP_TRY(prepare_comparison(plan, node, nin, err));
    ((struct rp_sort *)node->attrs)->dim = dim;
    return RP_OK;
}

RP_KERNEL(rp_first_run)
{
    RP_SCOPED(rp_tensors_release) struct rp_tensors sorted = {0}, to = {0};
    const struct rp_sort *a = node->attrs;
    size_t nin = node->nin / 2;

    RP_TRY(rp_tensors_new(nin, &sorted, err));
    RP_TRY(rp_tensors_new(nin, &to, err));
    RP_TRY(sort_operands(node, in, nin, sorted.at, err));
    for (size_t i = 0; i < nin; i++) {
        RP_TRY(rp_shape_tensor(node->shape->parts[i], &to.at[i], err));
        const struct rp_tensor *all = sorted.at[i], *first = to.at[i];
        size_t inner = all->unit;
        for (size_t d = (size_t)a->dim + 1; d < first->rank; d++)
            inner *= (size_t)first->dims[d];
        size_t from = inner * (size_t)all->dims[a->dim], kept = inner * (size_t)first->dims[a->dim];
        for (size_t k = 0; kept && k < rp_tensor_bytes(first) / kept; k++)
            memcpy(first->data + k * kept, all->data + k * from, kept);
    }
    return rp_node_give(node, &to, out, err);
}

/* ---- topk ---- */

/*
 * The k first are kept in a heap whose root is the last of them; a line is walked once, and
 * elements that do not come before the root are skipped, a block at a time. Keys are integers in
 * IEEE's total order, as in XLA: NaN is the largest, -NaN the smallest, -0 below 0. Lines are jobs
 * of the pool.
 */
#define TOPK_BLOCK 64

struct ranked {
    int64_t key;
    size_t at;
};

struct topk {
    const struct rp_tensor *in;
    struct rp_tensor *values, *places;
    size_t n, k;
    bool largest;
};

RP_CLONES_FEW static void keys_f32(const int32_t *in, size_t n, int32_t flip, int64_t *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (in[i] ^ ((in[i] >> 31) & INT32_MAX)) ^ flip;
}

/* Larger keys come first. */
static void topk_keys(const struct topk *t, size_t base, int64_t *keys)
{
    bool integer = rp_elem_is_signed(t->in->elem) || rp_elem_is_unsigned(t->in->elem);

    if (t->in->elem == RP_ELEM_F32) {
        keys_f32((const int32_t *)(const void *)t->in->data + base, t->n, t->largest ? 0 : -1,
                 keys);
        return;
    }
    for (size_t i = 0; i < t->n; i++) {
        double x = integer ? 0 : rp_tensor_number(t->in, base + i);
        int64_t key;

        memcpy(&key, &x, sizeof key);
        key = key < 0 ? key ^ INT64_MAX : key;
        if (integer)
            key = rp_tensor_integer(t->in, base + i);
        if (t->in->elem == RP_ELEM_U64)
            key ^= INT64_MIN;
        keys[i] = t->largest ? key : ~key;
    }
}

static bool ranks_last(const struct ranked *a, const struct ranked *b)
{
    return a->key != b->key ? a->key < b->key : a->at > b->at;
}

static void sink(struct ranked *heap, size_t n, size_t i)
{
    struct ranked v = heap[i];

    for (size_t below = 2 * i + 1; below < n; i = below, below = 2 * i + 1) {
        below += below + 1 < n && ranks_last(&heap[below + 1], &heap[below]);
        if (!ranks_last(&heap[below], &v))
            break;
        heap[i] = heap[below];
    }
    heap[i] = v;
}

RP_CLONES_FEW static bool any_above(const int64_t *keys, int64_t least)
{
    int64_t any = 0;

    for (size_t i = 0; i < TOPK_BLOCK; i++)
        any |= keys[i] > least;
    return any != 0;
}

static RP_JOB(topk_line)
{
    const struct topk *t = user;
    RP_FREED int64_t *keys = malloc(t->n * sizeof *keys + t->k * sizeof(struct ranked) + 1);

    RP_TRY(rp_err_need(keys, err, "sorting"));
    struct ranked *heap = (struct ranked *)(void *)(keys + t->n);
    topk_keys(t, job * t->n, keys);
    /* heap: the first k of n keys, in order. */
    for (size_t i = 0; i < t->k; i++)
        heap[i] = (struct ranked){keys[i], i};
    for (size_t i = t->k / 2; i-- > 0;)
        sink(heap, t->k, i);
    for (size_t i = t->k; t->k && i < t->n;) {
        size_t end = t->n - i < TOPK_BLOCK ? t->n : i + TOPK_BLOCK;

        if (end - i == TOPK_BLOCK && !any_above(keys + i, heap->key)) {
            i = end;
            continue;
        }
        for (; i < end; i++)
            if (keys[i] > heap->key) {
                *heap = (struct ranked){keys[i], i};
                sink(heap, t->k, 0);
            }
    }
    for (size_t left = t->k; left > 1; left--) {
        struct ranked last = *heap;

        *heap = heap[left - 1];
        heap[left - 1] = last;
        sink(heap, left - 1, 0);
    }
    for (size_t i = 0; i < t->k; i++) {
        memcpy(t->values->data + (job * t->k + i) * t->in->unit,
               t->in->data + (job * t->n + heap[i].at) * t->in->unit, t->in->unit);
        rp_tensor_set_integer(t->places, job * t->k + i, (int64_t)heap[i].at);
    }
    return RP_OK;
}

enum rp_code rp_topk_run(const struct rp_eval *e, struct rp_tensor *in, size_t k, bool largest,
                         unsigned index_elem, struct rp_tensor **out, struct rp_err *err)
{
    struct topk t = {.in = in, .k = k, .largest = largest};
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};
    int64_t dims[RP_TENSOR_RANK];

    t.n = in->rank ? (size_t)in->dims[in->rank - 1] : 1;
    if (!rp_elem_is_signed(index_elem) && !rp_elem_is_unsigned(index_elem))
        return rp_err_set(err, RP_FORMAT, "positions of type %s, not integers",
                          rp_elem_name(index_elem));
    if (k > t.n || !in->rank)
        return rp_err_set(err, RP_FORMAT, "the top %zu of %zu elements", k, t.n);
    memcpy(dims, in->dims, sizeof dims);
    dims[in->rank - 1] = (int64_t)k;
    RP_TRY(rp_tensors_new(2, &parts, err));
    RP_TRY(rp_tensor_new(in->elem, dims, in->rank, &parts.at[0], err));
    RP_TRY(rp_tensor_new(index_elem, dims, in->rank, &parts.at[1], err));
    t.values = parts.at[0];
    t.places = parts.at[1];
    RP_TRY(rp_pool_each(e->pool, t.n ? in->n / t.n : 0, topk_line, &t, err));
    parts.n = 0; /* the tuple takes them over */
    return rp_tensor_tuple(parts.at, 2, out, err);
}

static RP_PREPARE(prepare_topk)
{
    int64_t k = rp_node_int(plan, node, RP_ATTR_K, 0);

    if (node->shape->elem != RP_ELEM_TUPLE || node->shape->nparts != 2)
        return rp_node_error(node, RP_FORMAT, err, "the result is not a pair");
    const struct rp_value_shape *values = node->shape->parts[0];
    if (k < 0 || !values->rank || values->dims[values->rank - 1] != k)
        return rp_node_error(node, RP_FORMAT, err, "k is not the size of the result");
    node->value = rp_node_word(plan, node, RP_ATTR_LARGEST, "false") ? -k - 1 : k;
    return RP_OK;
}

static RP_KERNEL(topk_kernel)
{
    int64_t k = node->value < 0 ? -node->value - 1 : node->value;

    return rp_topk_run(e, in[0], (size_t)k, node->value >= 0, node->shape->parts[1]->elem, out,
                       err);
}

const struct rp_kernel rp_kernels_sort[] = {
    {RP_OP_SORT, rp_sort_prepare, sort_run},
    {RP_OP_TOPK, prepare_topk, topk_kernel},
    {0, NULL, NULL},
};
