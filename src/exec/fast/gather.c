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
#define RUN       512 /* windows whose places are found at once */

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

/* Adds one number of each index to the places where n windows begin. */
RP_CLONES static void add_starts(const int32_t *index, int64_t step, int64_t most, int64_t stride,
                                 int64_t *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t v = index[(int64_t)i * step];

        from[i] += (v < 0 ? 0 : v > most ? most : v) * stride;
    }
}

RP_CLONES static void count_starts(int64_t first, int64_t step, int64_t *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        from[i] = first + (int64_t)i * step;
}

/* The places where n windows begin, from the numbers at `at` of the indices on; `first` is what
   batching dimensions add to the first one. */
static void find_starts(const struct windows *w, int64_t at, int64_t first, int64_t *from, size_t n)
{
    int64_t step = w->rank ? w->index[w->rank - 1] : 0;

    count_starts(first, w->rank ? w->batch[w->rank - 1] : 0, from, n);
    for (size_t k = 0; k < w->a->map.n; k++, at += w->step) {
        if (w->indices->elem == RP_ELEM_S32) {
            add_starts((const int32_t *)(const void *)w->indices->data + at, step, w->most[k],
                       w->stride[k], from, n);
            continue;
        }
        for (size_t i = 0; i < n; i++) {
            int64_t v = rp_tensor_integer(w->indices, (size_t)(at + (int64_t)i * step));

            if (w->indices->elem == RP_ELEM_U64 && v < 0)
                v = w->most[k];
            from[i] += (v < 0 ? 0 : v > w->most[k] ? w->most[k] : v) * w->stride[k];
        }
    }
}

/* A window of so many bytes is copied without a call. */
#define COPY(bytes)                                                       \
    case bytes:                                                           \
        for (size_t i = 0; i < n; i++)                                    \
            memcpy(to + (int64_t)i * next, base + from[i] * unit, bytes); \
        return;

/* Copies n windows, whose places in the result are `next` bytes apart. */
static void copy_windows(const struct windows *w, unsigned char *to, int64_t next,
                         const int64_t *from, size_t n)
{
    const unsigned char *base = w->operand->data;
    int64_t unit = (int64_t)w->window.unit;

    switch (w->dense ? w->bytes : 0) {
        COPY(1)
        COPY(2)
        COPY(4)
        COPY(8)
        COPY(16)
        COPY(32)
        COPY(64)
    default:
        break;
    }
    for (size_t i = 0; i < n; i++)
        if (w->dense)
            memcpy(to + (int64_t)i * next, base + from[i] * unit, w->bytes);
        else
            rp_strided_copy(&w->window, to + (int64_t)i * next, base + from[i] * unit);
}

static RP_JOB(windows_job)
{
    const struct windows *w = user;
    size_t begin = job * w->per_job, end = begin + w->per_job < w->n ? begin + w->per_job : w->n;
    size_t last = w->rank - 1;
    int64_t starts[RUN], unit = (int64_t)w->window.unit;

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
        n = n < RUN ? n : RUN;
        find_starts(w, at, from, starts, (size_t)n);
        copy_windows(w, w->out->data + to * unit, w->to[last] * unit, starts, (size_t)n);
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
        int64_t from;

        find_starts(&w, 0, 0, &from, 1);
        copy_windows(&w, w.out->data, 0, &from, 1);
        return RP_OK;
    }
    w.per_job = JOB_BYTES / (w.bytes + 8) + 1;
    size_t jobs = (w.n + w.per_job - 1) / w.per_job;
    return rp_pool_each(e->pool, jobs, windows_job, &w, err);
}
