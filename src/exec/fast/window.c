/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes windows over f32: pooling and its gradient. A place of the window is one shift of the
 * operand, so a row of results takes one pass over a row of the operand for each place. A row is
 * the last dimension that the window moves along; the dimensions after it (channels) are the unit
 * of a result.
 *
 *   reduce-window       result row = op(result row, operand row) for every place of the window
 *   select-and-scatter  the same passes keep the best value and the place it was seen at; then the
 *                       elements of the source's row are added there
 *
 * The sizes tell which results of a row have their place inside the operand, so the passes have no
 * conditions; dimensions with a base dilation, and functions that are not one operation, are left
 * to the reference. Rows are jobs of the pool; for select-and-scatter, whose places overlap, the
 * dimensions in front along which the window does not move (batch) are.
 */
#include "base/threads.h"
#include "exec/eval/lanes.h"
#include "exec/fast/kernels.h"
#include "exec/ref/reduce.h"
#include "program/opcodes.h"

#include <stdlib.h>
#include <string.h>

#define JOB_ELEMENTS 16384

/* Combines n results of `unit` elements each; the operand's are `step` elements apart. */
typedef void combine_fn(float *to, const float *in, int64_t step, int64_t n, int64_t unit);

#define OPS(X)                                        \
    X(ADD, add, x + y)                                \
    X(MULTIPLY, multiply, x *y)                       \
    X(MAXIMUM, maximum, ((x != x) | (x > y)) ? x : y) \
    X(MINIMUM, minimum, ((x != x) | (x < y)) ? x : y)
#define EIGHT 8 /* elements of a unit are taken eight at a time */
#define COMBINE(id, name, expr)                                                        \
    RP_CLONES static void combine_##name(float *restrict to, const float *restrict in, \
                                         int64_t step, int64_t n, int64_t unit)        \
    {                                                                                  \
        if (step == unit)                                                              \
            for (int64_t i = 0; i < n * unit; i++) {                                   \
                float x = to[i], y = in[i];                                            \
                                                                                       \
                to[i] = (expr);                                                        \
            }                                                                          \
        else if (unit % EIGHT == 0)                                                    \
            for (int64_t i = 0; i < n; i++, in += step - unit)                         \
                for (int64_t k = 0; k < unit; k += EIGHT, to += EIGHT, in += EIGHT)    \
                    for (int u = 0; u < EIGHT; u++) {                                  \
                        float x = to[u], y = in[u];                                    \
                                                                                       \
                        to[u] = (expr);                                                \
                    }                                                                  \
        else                                                                           \
            for (int64_t k = 0; k < unit; k++)                                         \
                for (int64_t i = 0; i < n; i++) {                                      \
                    float x = to[i * unit + k], y = in[i * step + k];                  \
                                                                                       \
                    to[i * unit + k] = (expr);                                         \
                }                                                                      \
    }
OPS(COMBINE)

static combine_fn *combine_of(unsigned opcode)
{
    switch (opcode) {
#define CASE(id, name, expr) \
    case RP_OP_##id:         \
        return combine_##name;
        OPS(CASE)
    default:
        return NULL;
    }
}

static bool float_elem(unsigned elem)
{
    return elem == RP_ELEM_F32 || rp_elem_is_small_float(elem);
}

/* ---- the geometry that both share ---- */

struct pass {
    const struct rp_window *window;
    size_t rank; /* number of dimensions up to that of rows */
    size_t lead; /* number of dimensions in front along which the window does not move */
    const int64_t *in, *out; /* dimensions of the operand and of the result */
    int64_t stride[RP_TENSOR_RANK], size[RP_TENSOR_RANK];
    const float *x;
    int64_t row, rows; /* number of results in a row; number of rows */
    int64_t unit;      /* elements of a result */
};

/* Whether the window does not move along the dimension, so that results and operands have the same
   places. */
static bool is_identity(const struct rp_window_dim *d, int64_t in, int64_t out)
{
    return d->size == 1 && d->stride == 1 && d->pad_low == 0 && in == out;
}

/* Returns false if the reference must do it. */
static bool pass_begin(struct pass *p, const struct rp_window *w, const struct rp_tensor *x,
                       const int64_t *out, size_t nout)
{
    p->window = w;
    p->rank = x->rank;
    p->in = x->dims;
    p->out = out;
    p->x = (const float *)(void *)x->data;
    if (!p->rank || !nout || !x->n)
        return false;
    rp_strides(x->dims, x->rank, p->stride);
    for (size_t k = 0; k < p->rank; k++) {
        if (w->dim[k].base_dilation != 1 || w->dim[k].size < 1)
            return false;
        p->size[k] = w->dim[k].size;
    }
    p->unit = 1;
    while (p->rank > 1 && is_identity(&w->dim[p->rank - 1], p->in[p->rank - 1], out[p->rank - 1]))
        p->unit *= out[--p->rank];
    for (p->lead = 0; p->lead + 1 < p->rank; p->lead++)
        if (!is_identity(&w->dim[p->lead], p->in[p->lead], out[p->lead]))
            break;
    p->row = out[p->rank - 1];
    p->rows = (int64_t)nout / p->row / p->unit;
    return true;
}

static int64_t shift_window(const struct rp_window_dim *d, int64_t place)
{
    return (d->reversal ? d->size - 1 - place : place) * d->window_dilation - d->pad_low;
}

/* Finds the operand's place for the first result of a row under one place of the window, and which
   results [*begin, *end) of the row lie inside; false if none. */
static bool pass_row(const struct pass *p, const int64_t *row, const int64_t *place, int64_t *at,
                     int64_t *begin, int64_t *end)
{
    size_t last = p->rank - 1;
    const struct rp_window_dim *d = &p->window->dim[last];
    int64_t first = shift_window(d, place[last]);

    *at = first * p->stride[last];
    for (size_t k = 0; k < last; k++) {
        int64_t i = row[k] * p->window->dim[k].stride + shift_window(&p->window->dim[k], place[k]);

        if (i < 0 || i >= p->in[k])
            return false;
        *at += i * p->stride[k];
    }
    *begin = first < 0 ? (-first + d->stride - 1) / d->stride : 0;
    *end = p->in[last] - 1 - first < 0 ? 0 : (p->in[last] - 1 - first) / d->stride + 1;
    if (*end > p->row)
        *end = p->row;
    return *begin < *end;
}

/* Finds the index of a row, in all but the last dimension. */
static void row_index(const struct pass *p, int64_t row, int64_t *index)
{
    for (size_t k = p->rank - 1; k-- > 0; row /= p->out[k])
        index[k] = row % p->out[k];
}

/* ---- reduce-window ---- */

struct reduction {
    struct pass pass;
    combine_fn *combine;
    float init, *y;
    int64_t job_rows;
};

static RP_JOB(reduce_job)
{
    const struct reduction *r = user;
    const struct pass *p = &r->pass;
    int64_t begin = (int64_t)job * r->job_rows, end = begin + r->job_rows;
    int64_t step = p->window->dim[p->rank - 1].stride * p->unit;

    for (int64_t i = begin; i < end && i < p->rows; i++) {
        int64_t index[RP_TENSOR_RANK], place[RP_TENSOR_RANK] = {0}, at, from, to;
        float *y = r->y + i * p->row * p->unit;

        row_index(p, i, index);
        for (int64_t k = 0; k < p->row * p->unit; k++)
            y[k] = r->init;
        do {
            if (pass_row(p, index, place, &at, &from, &to))
                r->combine(y + from * p->unit, p->x + at + from * step, step, to - from, p->unit);
        } while (rp_index_next(place, p->size, p->rank));
    }
    return RP_OK;
}

static int64_t rows_of_job(const struct pass *p)
{
    int64_t work = p->row * p->unit;

    for (size_t k = 0; k < p->rank && work < JOB_ELEMENTS; k++)
        work *= p->size[k];
    return work >= JOB_ELEMENTS ? 1 : JOB_ELEMENTS / work;
}

static size_t jobs_of(int64_t n, int64_t per_job)
{
    return (size_t)((n + per_job - 1) / per_job);
}

RP_KERNEL(rp_fast_reduce_window)
{
    const struct rp_reduce_window *a = node->attrs;
    struct reduction r = {.combine = combine_of(a->reduce.tape->simple)};
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *wide = NULL, *init = NULL, *to = NULL;
    bool done;

    RP_TRY(rp_fast_scan(e, node, in, &done, out, err));
    if (done)
        return RP_OK;
    if (a->reduce.k != 1 || !r.combine || !float_elem(in[0]->elem) ||
        rp_reduce_is_rounded(a->reduce.tape, a->reduce.tape->regs[0].elem) ||
        !pass_begin(&r.pass, &a->window, in[0], node->shape->dims, node->shape->n))
        return e->plan->reference[RP_OP_REDUCE_WINDOW]->run(e, node, in, out, err);
    RP_TRY(rp_tensor_wide(in[0], &wide, err));
    RP_TRY(rp_tensor_wide(in[1], &init, err));
    RP_TRY(rp_tensor_new(RP_ELEM_F32, node->shape->dims, node->shape->rank, &to, err));
    r.pass.x = (const float *)(void *)wide->data;
    r.init = *(const float *)(void *)init->data;
    r.y = (float *)(void *)to->data;
    r.job_rows = rows_of_job(&r.pass);
    RP_TRY(rp_pool_each(e->pool, jobs_of(r.pass.rows, r.job_rows), reduce_job, &r, err));
    return rp_tensor_as(to, node->shape->elem, out, err);
}

/* ---- select-and-scatter ---- */

/* Like combine_fn, but keeps the best values so far and the window's places where they were seen;
   negative if nowhere. */
typedef void keep_fn(float *best, int32_t *where, const float *in, int32_t place, int64_t step,
                     int64_t n, int64_t unit);

/* The first place always counts; later ones if the comparison of best and new says no. */
#define KEEP_ONE(cmp, b, i)                                    \
    {                                                          \
        float x = best[b], y = in[i];                          \
        int32_t was = where[b], take = (was < 0) | !(x cmp y); \
                                                               \
        best[b] = take ? y : x;                                \
        where[b] = take ? place : was;                         \
    }
#define KEEP(name, cmp)                                                                      \
    RP_CLONES static void keep_##name(float *restrict best, int32_t *restrict where,         \
                                      const float *restrict in, int32_t place, int64_t step, \
                                      int64_t n, int64_t unit)                               \
    {                                                                                        \
        if (unit % EIGHT == 0)                                                               \
            for (int64_t i = 0; i < n; i++, in += step - unit)                               \
                for (int64_t k = 0; k < unit;                                                \
                     k += EIGHT, best += EIGHT, where += EIGHT, in += EIGHT)                 \
                    for (int u = 0; u < EIGHT; u++)                                          \
                        KEEP_ONE(cmp, u, u)                                                  \
        else                                                                                 \
            for (int64_t k = 0; k < unit; k++)                                               \
                for (int64_t i = 0; i < n; i++)                                              \
                    KEEP_ONE(cmp, i *unit + k, i * step + k)                                 \
    }
KEEP(ge, >=)
KEEP(gt, >)
KEEP(le, <=)
KEEP(lt, <)

static keep_fn *keep_of(const struct rp_tape *select)
{
    const struct rp_tape_op *op = select->ops;

    if (select->simple != RP_OP_COMPARE || op->a != 0 || !float_elem(op->lane.from) ||
        (op->lane.from == RP_ELEM_F32 ? op->lane.fn : op->lane.inner) !=
            rp_lane_float(RP_OP_COMPARE, false, op->lane.direction, false))
        return NULL; /* these include comparisons in the total order */
    switch (op->lane.direction) {
    case RP_CMP_GE:
        return keep_ge;
    case RP_CMP_GT:
        return keep_gt;
    case RP_CMP_LE:
        return keep_le;
    case RP_CMP_LT:
        return keep_lt;
    default:
        return NULL;
    }
}

struct selection {
    struct pass pass;
    keep_fn *keep;
    const float *source;
    float *y, init;
    unsigned elem;              /* type to which each sum is rounded */
    int64_t slices, job_slices; /* number of places in the dimensions in front */
    const int64_t *offset;      /* by place of the window: offset in the operand */
};

/* Selects the best of a row and their places; best and where are scratch memory for a row. */
static void select_row(const struct selection *s, const int64_t *index, float *best, int32_t *where)
{
    const struct pass *p = &s->pass;
    int64_t place[RP_TENSOR_RANK] = {0}, at, from, to, n = p->row * p->unit;
    int64_t step = p->window->dim[p->rank - 1].stride * p->unit;
    int32_t number = 0;

    memset(best, 0, (size_t)n * sizeof *best);
    memset(where, 0xff, (size_t)n * sizeof *where);
    do {
        if (pass_row(p, index, place, &at, &from, &to))
            s->keep(best + from * p->unit, where + from * p->unit, p->x + at + from * step, number,
                    step, to - from, p->unit);
        number++;
    } while (rp_index_next(place, p->size, p->rank));
}

/* Adds the source's row at the places: `at` is where place 0 of the operand would be for the
   row. */
static void scatter_row(const struct selection *s, const int32_t *where, const float *source,
                        float *y)
{
    const struct pass *p = &s->pass;
    int64_t step = p->window->dim[p->rank - 1].stride * p->unit;

    for (int64_t i = 0; i < p->row; i++, y += step)
        for (int64_t u = 0; u < p->unit; u++, where++, source++)
            if (*where >= 0) {
                float *sum = &y[s->offset[*where] + u];

                *sum += *source;
                if (s->elem != RP_ELEM_F32)
                    rp_round_small(s->elem, 1, sum);
            }
}

static RP_JOB(slices_job)
{
    const struct selection *s = user;
    const struct pass *p = &s->pass;
    int64_t begin = (int64_t)job * s->job_slices, end = begin + s->job_slices;
    int64_t n = p->row * p->unit, rows = p->rows / s->slices, index[RP_TENSOR_RANK];
    RP_FREED float *best = malloc((size_t)n * 2 * sizeof *best);
    int64_t size = p->stride[0] * p->in[0] / s->slices;

    RP_TRY(rp_err_need(best, err, "selecting"));
    end = end < s->slices ? end : s->slices;
    for (int64_t i = begin * size; i < end * size; i++)
        s->y[i] = s->init;
    for (int64_t i = begin * rows; i < end * rows; i++) {
        int32_t *where = (int32_t *)(void *)(best + n);
        int64_t at = 0;

        row_index(p, i, index);
        for (size_t k = 0; k + 1 < p->rank; k++)
            at += index[k] * p->window->dim[k].stride * p->stride[k];
        select_row(s, index, best, where);
        scatter_row(s, where, s->source + i * n, s->y + at);
    }
    return RP_OK;
}

RP_KERNEL(rp_fast_select_and_scatter)
{
    const struct rp_select_attr *a = node->attrs;
    struct selection s = {.keep = keep_of(a->select), .slices = 1};
    RP_SCOPED(rp_tensor_drop_at)
    struct rp_tensor *x = NULL, *source = NULL, *init = NULL, *to = NULL;
    const struct pass *p = &s.pass;

    if (!s.keep || a->scatter->simple != RP_OP_ADD || !float_elem(in[0]->elem) ||
        !float_elem(in[1]->elem) || in[1]->rank != in[0]->rank ||
        !pass_begin(&s.pass, &a->window, in[0], in[1]->dims, in[1]->n))
        return e->plan->reference[RP_OP_SELECT_AND_SCATTER]->run(e, node, in, out, err);
    RP_TRY(rp_tensor_wide(in[0], &x, err));
    RP_TRY(rp_tensor_wide(in[1], &source, err));
    RP_TRY(rp_tensor_wide(in[2], &init, err));
    RP_TRY(rp_tensor_new(RP_ELEM_F32, in[0]->dims, in[0]->rank, &to, err));
    s.pass.x = (const float *)(void *)x->data;
    s.source = (const float *)(void *)source->data;
    s.init = *(const float *)(void *)init->data;
    s.y = (float *)(void *)to->data;
    s.elem = a->scatter->regs[0].elem;
    /* Computes where each place of the window is, relative to that of the first result. */
    int64_t place[RP_TENSOR_RANK] = {0}, places = 1;
    for (size_t k = 0; k < p->rank; k++)
        places *= p->size[k];
    RP_FREED int64_t *offset = calloc((size_t)places, sizeof *offset);
    RP_TRY(rp_err_need(offset, err, "selecting"));
    for (int64_t i = 0; i < places; i++, rp_index_next(place, p->size, p->rank))
        for (size_t k = 0; k < p->rank; k++)
            offset[i] += shift_window(&p->window->dim[k], place[k]) * p->stride[k];
    s.offset = offset;
    for (size_t k = 0; k < p->lead; k++)
        s.slices *= p->in[k];
    s.job_slices = rows_of_job(p) / (p->rows / s.slices) + 1;
    RP_TRY(rp_pool_each(e->pool, jobs_of(s.slices, s.job_slices), slices_job, &s, err));
    return rp_tensor_as(to, node->shape->elem, out, err);
}
