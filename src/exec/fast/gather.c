/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathers windows in runs: the results of one run differ only in the last dimension that counts
 * windows, so for each window only its indices are read and its content is copied. Their places
 * follow from the first one by strides. Runs are jobs of the pool.
 */
#include "base/threads.h"
#include "exec/eval/lanes.h"
#include "exec/eval/strided.h"
#include "exec/fast/kernels.h"
#include "exec/ref/kernels.h"
#include "program/opcodes.h"

#include <string.h>

#define JOB_BYTES 65536

struct windows {
    const struct rp_gather *a;
    const struct rp_tensor *operand, *indices;
    struct rp_tensor *out;
    struct rp_strided window;
    bool dense;   /* a window is contiguous on both sides */
    size_t bytes; /* of a dense window */
    size_t rank;  /* number of dimensions of the result that count windows: */
    int64_t dims[RP_TENSOR_RANK], to[RP_TENSOR_RANK], index[RP_TENSOR_RANK];
    int64_t batch[RP_TENSOR_RANK];  /* elements by which the dimension moves in the operand */
    int64_t step;                   /* distance between the numbers of one index */
    int64_t stride[RP_TENSOR_RANK]; /* for the operand's dimensions in `map`: stride and largest
                                       start */
    int64_t most[RP_TENSOR_RANK];
    size_t per_job, n;
};

/* Computes strides of the windows, and inside of them. */
static void windows_measure(struct windows *w)
{
    const struct rp_gather *a = w->a;
    int64_t from[RP_TENSOR_RANK], to[RP_TENSOR_RANK], index[RP_TENSOR_RANK], run = 1;
    size_t d = 0, inside = 0;

    rp_strides(w->operand->dims, w->operand->rank, from);
    rp_strides(w->out->dims, w->out->rank, to);
    rp_strides(w->indices->dims, w->indices->rank, index);
    w->step = a->vector_dim < (int64_t)w->indices->rank ? index[a->vector_dim] : 0;
    w->n = 1;
    for (size_t k = 0; k < w->out->rank; k++) {
        if (rp_dims_has(a->offset, (int64_t)k))
            continue;
        if ((int64_t)d == a->vector_dim)
            d++;
        w->dims[w->rank] = w->out->dims[k];
        w->to[w->rank] = to[k];
        w->index[w->rank] = index[d];
        w->batch[w->rank] = 0;
        for (size_t i = 0; i < a->index_batch.n; i++)
            if (a->index_batch.at[i] == (int64_t)d)
                w->batch[w->rank] += from[a->operand_batch.at[i]];
        w->n *= (size_t)w->dims[w->rank];
        w->rank++;
        d++;
    }
    for (size_t k = 0; k < a->map.n; k++) {
        w->stride[k] = from[a->map.at[k]];
        w->most[k] = w->operand->dims[a->map.at[k]] - a->sizes.at[a->map.at[k]];
    }
    w->window.unit = w->operand->unit;
    for (size_t k = 0; k < w->operand->rank; k++)
        if (!rp_dims_has(a->collapsed, (int64_t)k) && !rp_dims_has(a->operand_batch, (int64_t)k)) {
            w->window.dims[inside] = a->sizes.at[k];
            w->window.from[inside] = from[k];
            w->window.to[inside] = to[a->offset.at[inside]];
            inside++;
        }
    w->window.rank = inside;
    w->dense = true;
    for (size_t k = inside; k-- > 0;) {
        if (w->window.dims[k] != 1 && (w->window.from[k] != run || w->window.to[k] != run))
            w->dense = false;
        run *= w->window.dims[k];
    }
    w->bytes = (size_t)run * w->window.unit;
}

/* Where a window begins, from the numbers at `at` of the indices. */
static inline int64_t window_start(const struct windows *w, int64_t at)
{
    int64_t from = 0;

    for (size_t k = 0; k < w->a->map.n; k++, at += w->step) {
        int64_t v = w->indices->elem == RP_ELEM_S32
                        ? ((const int32_t *)(const void *)w->indices->data)[at]
                        : rp_tensor_integer(w->indices, (size_t)at);

        if (w->indices->elem == RP_ELEM_U64 && v < 0)
            v = INT64_MAX / 2;
        from += (v < 0 ? 0 : v > w->most[k] ? w->most[k] : v) * w->stride[k];
    }
    return from;
}

static inline void window_copy(const struct windows *w, int64_t to, int64_t from)
{
    size_t unit = w->window.unit;
    unsigned char *t = w->out->data + to * (int64_t)unit;
    const unsigned char *f = w->operand->data + from * (int64_t)unit;

    if (!w->dense)
        rp_strided_copy(&w->window, t, f);
    else if (w->bytes == 4)
        memcpy(t, f, 4);
    else
        memcpy(t, f, w->bytes);
}

/* Whether windows are single elements of 32 bits with an index of one number each, so that nothing
   else is looked up. */
static bool is_simple(const struct windows *w)
{
    return w->dense && w->bytes == 4 && w->window.unit == 4 && w->a->map.n == 1 &&
           w->indices->elem == RP_ELEM_S32;
}

RP_CLONES static void copy_dense(const int32_t *index, const uint32_t *in, uint32_t *out,
                                 int32_t most, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int32_t v = index[i] > 0 ? index[i] : 0;

        out[i] = in[v < most ? v : most];
    }
}

static void copy_elements(const struct windows *w, int64_t at, int64_t to, int64_t from, int64_t n)
{
    const int32_t *index = (const int32_t *)(const void *)w->indices->data + at;
    const uint32_t *in = (const uint32_t *)(const void *)w->operand->data + from;
    uint32_t *out = (uint32_t *)(void *)w->out->data + to;
    size_t last = w->rank - 1;
    int64_t most = w->most[0], stride = w->stride[0], step = w->index[last];
    int64_t batch = w->batch[last], next = w->to[last];

    if (step == 1 && next == 1 && !batch && stride == 1 && most <= INT32_MAX) {
        copy_dense(index, in, out, (int32_t)most, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t v = index[i * step];

        v = v < 0 ? 0 : v > most ? most : v;
        out[i * next] = in[v * stride + i * batch];
    }
}

static RP_JOB(windows_job)
{
    const struct windows *w = user;
    size_t begin = job * w->per_job, end = begin + w->per_job < w->n ? begin + w->per_job : w->n;
    size_t last = w->rank - 1;

    while (begin < end) {
        int64_t at = 0, to = 0, from = 0, rest = (int64_t)begin;

        for (size_t k = w->rank; k-- > 0; rest /= w->dims[k]) {
            int64_t i = rest % w->dims[k];

            at += i * w->index[k];
            to += i * w->to[k];
            from += i * w->batch[k];
        }
        int64_t n = w->dims[last] - (int64_t)begin % w->dims[last];
        n = n < (int64_t)(end - begin) ? n : (int64_t)(end - begin);
        if (is_simple(w))
            copy_elements(w, at, to, from, n);
        for (int64_t i = 0; i < n && !is_simple(w); i++)
            window_copy(w, to + i * w->to[last],
                        from + i * w->batch[last] + window_start(w, at + i * w->index[last]));
        begin += (size_t)n;
    }
    return RP_OK;
}

RP_KERNEL(rp_fast_gather)
{
    struct windows w = {.a = node->attrs, .operand = in[0], .indices = in[1]};

    for (size_t i = 0; i < w.a->operand_batch.n; i++) /* such a coordinate is used directly */
        if (in[0]->dims[w.a->operand_batch.at[i]] != in[1]->dims[w.a->index_batch.at[i]])
            return e->plan->reference[RP_OP_GATHER]->run(e, node, in, out, err);
    if (e->into && node->into)
        *out = rp_tensor_keep(e->into[node->into - 1]);
    else
        RP_TRY(rp_node_result(node, out, err));
    w.out = *out;
    if (!w.out->n)
        return RP_OK;
    windows_measure(&w);
    if (!w.rank) {
        window_copy(&w, 0, window_start(&w, 0));
        return RP_OK;
    }
    w.per_job = JOB_BYTES / (w.bytes + 8) + 1;
    size_t jobs = (w.n + w.per_job - 1) / w.per_job;
    return rp_pool_each(e->pool, jobs, windows_job, &w, err);
}
