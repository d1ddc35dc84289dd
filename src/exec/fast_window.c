/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows over f32: pooling and its gradient. A place of the window is one shift of the operand, so
 * a row of results (the last dimension) takes one pass over a row of the operand for each place:
 *
 *   reduce-window       result row = op(result row, operand row) for every place of the window
 *   select-and-scatter  the same passes keep the best value and where it stood; then each element
 *                       of the source is added where it was selected
 *
 * Which results of a row have their place inside the operand is known from the sizes, so the passes
 * have no conditions; dimensions with a base dilation, and functions that are not one operation, go
 * the way of the reference. Rows are jobs of the pool, but for the scatter, whose places meet.
 */
#include "base/threads.h"
#include "exec/fast_kernels.h"
#include "exec/lanes.h"
#include "exec/reduce.h"
#include "exec/strided.h"

#include <stdlib.h>
#include <string.h>

#define JOB_ELEMENTS 16384

typedef void combine_fn(float *to, const float *in, int64_t step, int64_t n);

#define OPS(X)                                   \
    X(ADD, add, x + y)                           \
    X(MULTIPLY, multiply, x *y)                  \
    X(MAXIMUM, maximum, x != x || x > y ? x : y) \
    X(MINIMUM, minimum, x != x || x < y ? x : y)
#define COMBINE(id, name, expr)                                                               \
    RP_CLONES static void combine_##name(float *to, const float *in, int64_t step, int64_t n) \
    {                                                                                         \
        if (step == 1)                                                                        \
            for (int64_t i = 0; i < n; i++) {                                                 \
                float x = to[i], y = in[i];                                                   \
                                                                                              \
                to[i] = (expr);                                                               \
            }                                                                                 \
        else                                                                                  \
            for (int64_t i = 0; i < n; i++) {                                                 \
                float x = to[i], y = in[i * step];                                            \
                                                                                              \
                to[i] = (expr);                                                               \
            }                                                                                 \
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
    size_t rank;
    const int64_t *in, *out; /* dimensions of the operand and of the result */
    int64_t stride[RP_TENSOR_RANK], size[RP_TENSOR_RANK];
    const float *x;
    int64_t row, rows; /* results of a row, rows */
};

/* False where the reference must do it. */
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
    p->row = out[p->rank - 1];
    p->rows = (int64_t)nout / p->row;
    return true;
}

static int64_t shift(const struct rp_window_dim *d, int64_t place)
{
    return (d->reversal ? d->size - 1 - place : place) * d->window_dilation - d->pad_low;
}

/* The operand's place of the first result of a row under one place of the window, and which results
   [*begin, *end) of the row lie inside; false: none. */
static bool pass_row(const struct pass *p, const int64_t *row, const int64_t *place, int64_t *at,
                     int64_t *begin, int64_t *end)
{
    size_t last = p->rank - 1;
    const struct rp_window_dim *d = &p->window->dim[last];
    int64_t first = shift(d, place[last]);

    *at = first * p->stride[last];
    for (size_t k = 0; k < last; k++) {
        int64_t i = row[k] * p->window->dim[k].stride + shift(&p->window->dim[k], place[k]);

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

/* The index of a row, all but the last dimension. */
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

static enum rp_code reduce_job(void *user, size_t job, struct rp_err *err)
{
    const struct reduction *r = user;
    const struct pass *p = &r->pass;
    int64_t begin = (int64_t)job * r->job_rows, end = begin + r->job_rows;
    int64_t step = p->window->dim[p->rank - 1].stride;

    (void)err;
    for (int64_t i = begin; i < end && i < p->rows; i++) {
        int64_t index[RP_TENSOR_RANK], place[RP_TENSOR_RANK] = {0}, at, from, to;
        float *y = r->y + i * p->row;

        row_index(p, i, index);
        for (int64_t k = 0; k < p->row; k++)
            y[k] = r->init;
        do {
            if (pass_row(p, index, place, &at, &from, &to))
                r->combine(y + from, p->x + at + from * step, step, to - from);
        } while (rp_index_next(place, p->size, p->rank));
    }
    return RP_OK;
}

static enum rp_code spread(struct rp_pool *pool, int64_t rows, int64_t per_job, rp_job_fn *job,
                           void *user, struct rp_err *err)
{
    size_t jobs = (size_t)((rows + per_job - 1) / per_job);

    if (pool && jobs > 1)
        return rp_pool_each(pool, jobs, job, user, err);
    for (size_t i = 0; i < jobs; i++)
        RP_TRY(job(user, i, err));
    return RP_OK;
}

static int64_t rows_of_job(const struct pass *p)
{
    int64_t work = p->row;

    for (size_t k = 0; k < p->rank && work < JOB_ELEMENTS; k++)
        work *= p->size[k];
    return work >= JOB_ELEMENTS ? 1 : JOB_ELEMENTS / work;
}

enum rp_code rp_fast_reduce_window(struct rp_eval *e, const struct rp_node *node,
                                   struct rp_tensor *const *in, struct rp_tensor **out,
                                   struct rp_err *err)
{
    const struct rp_reduce_window *a = node->attrs;
    struct reduction r = {.combine = combine_of(a->reduce.tape->simple)};
    struct rp_tensor *wide = NULL, *init = NULL, *to = NULL;
    enum rp_code code;

    if (a->reduce.k != 1 || !r.combine || !float_elem(in[0]->elem) ||
        rp_reduce_is_rounded(a->reduce.tape, a->reduce.tape->regs[0].elem) ||
        !pass_begin(&r.pass, &a->window, in[0], node->shape->dims, node->shape->n))
        return e->plan->reference[RP_OP_REDUCE_WINDOW]->run(e, node, in, out, err);
    code = rp_tensor_wide(in[0], &wide, err);
    if (code == RP_OK)
        code = rp_tensor_wide(in[1], &init, err);
    if (code == RP_OK)
        code = rp_tensor_new(RP_ELEM_F32, node->shape->dims, node->shape->rank, &to, err);
    if (code == RP_OK) {
        r.pass.x = (const float *)(void *)wide->data;
        r.init = *(const float *)(void *)init->data;
        r.y = (float *)(void *)to->data;
        r.job_rows = rows_of_job(&r.pass);
        code = spread(e->pool, r.pass.rows, r.job_rows, reduce_job, &r, err);
    }
    if (code == RP_OK)
        code = rp_tensor_as(to, node->shape->elem, out, err);
    rp_tensor_drop(wide);
    rp_tensor_drop(init);
    rp_tensor_drop(to);
    return code;
}

/* ---- select-and-scatter ---- */

typedef void keep_fn(float *best, int64_t *where, const float *in, int64_t at, int64_t step,
                     int64_t n);

/* The first place counts as it is; later ones where the comparison of best and new says no. */
#define KEEP(name, cmp)                                                                         \
    RP_CLONES static void keep_##name(float *best, int64_t *where, const float *in, int64_t at, \
                                      int64_t step, int64_t n)                                  \
    {                                                                                           \
        for (int64_t i = 0; i < n; i++) {                                                       \
            bool take = where[i] < 0 || !(best[i] cmp in[i * step]);                            \
                                                                                                \
            best[i] = take ? in[i * step] : best[i];                                            \
            where[i] = take ? at + i * step : where[i];                                         \
        }                                                                                       \
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
        return NULL; /* a total order among them */
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
    int64_t *where; /* of every element of the source; below 0: nowhere */
    int64_t job_rows;
};

static enum rp_code select_job(void *user, size_t job, struct rp_err *err)
{
    const struct selection *s = user;
    const struct pass *p = &s->pass;
    int64_t begin = (int64_t)job * s->job_rows, end = begin + s->job_rows;
    int64_t step = p->window->dim[p->rank - 1].stride;
    float *best = malloc((size_t)p->row * sizeof *best);

    if (!best)
        return rp_err_nomem(err, "selecting");
    for (int64_t i = begin; i < end && i < p->rows; i++) {
        int64_t index[RP_TENSOR_RANK], place[RP_TENSOR_RANK] = {0}, at, from, to;
        int64_t *where = s->where + i * p->row;

        row_index(p, i, index);
        memset(best, 0, (size_t)p->row * sizeof *best);
        for (int64_t k = 0; k < p->row; k++)
            where[k] = -1;
        do {
            if (pass_row(p, index, place, &at, &from, &to))
                s->keep(best + from, where + from, p->x + at + from * step, at + from * step, step,
                        to - from);
        } while (rp_index_next(place, p->size, p->rank));
    }
    free(best);
    return RP_OK;
}

static enum rp_code select_and_add(struct selection *s, struct rp_pool *pool,
                                   const struct rp_tensor *source, float init, unsigned elem,
                                   struct rp_tensor *to, struct rp_err *err)
{
    const float *from = (const float *)(void *)source->data;
    float *y = (float *)(void *)to->data;
    enum rp_code code;

    s->where = malloc(source->n * sizeof *s->where);
    if (!s->where)
        return rp_err_nomem(err, "selecting");
    s->job_rows = rows_of_job(&s->pass);
    code = spread(pool, s->pass.rows, s->job_rows, select_job, s, err);
    for (size_t i = 0; i < to->n; i++)
        y[i] = init;
    for (size_t i = 0; i < source->n && code == RP_OK; i++)
        if (s->where[i] >= 0) {
            y[s->where[i]] += from[i];
            if (elem != RP_ELEM_F32)
                rp_round_small(elem, 1, &y[s->where[i]]);
        }
    free(s->where);
    return code;
}

enum rp_code rp_fast_select_and_scatter(struct rp_eval *e, const struct rp_node *node,
                                        struct rp_tensor *const *in, struct rp_tensor **out,
                                        struct rp_err *err)
{
    const struct rp_select_attr *a = node->attrs;
    struct selection s = {.keep = keep_of(a->select)};
    struct rp_tensor *wide[3] = {NULL, NULL, NULL}, *to = NULL;
    enum rp_code code = RP_OK;

    if (!s.keep || a->scatter->simple != RP_OP_ADD || !float_elem(in[0]->elem) ||
        !float_elem(in[1]->elem) || in[1]->rank != in[0]->rank ||
        !pass_begin(&s.pass, &a->window, in[0], in[1]->dims, in[1]->n))
        return e->plan->reference[RP_OP_SELECT_AND_SCATTER]->run(e, node, in, out, err);
    for (size_t i = 0; i < 3 && code == RP_OK; i++)
        code = rp_tensor_wide(in[i], &wide[i], err);
    if (code == RP_OK)
        code = rp_tensor_new(RP_ELEM_F32, in[0]->dims, in[0]->rank, &to, err);
    if (code == RP_OK) {
        s.pass.x = (const float *)(void *)wide[0]->data;
        code = select_and_add(&s, e->pool, wide[1], *(const float *)(void *)wide[2]->data,
                              a->scatter->regs[0].elem, to, err);
    }
    if (code == RP_OK)
        code = rp_tensor_as(to, node->shape->elem, out, err);
    for (size_t i = 0; i < 3; i++)
        rp_tensor_drop(wide[i]);
    rp_tensor_drop(to);
    return code;
}
