/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes running sums and the like: a reduce-window whose window reaches from each element to the
 * beginning (or the end) of its dimension, as cumsum is written. One pass along the dimension with
 * the sum so far, instead of one over the whole window for each element. Sums and products of f32
 * are kept in f64. The array is [outer, n, inner]; outer elements and blocks of inner ones are
 * jobs.
 */
#include "base/threads.h"
#include "exec/fast/kernels.h"
#include "exec/ref/reduce.h"
#include "program/opcodes.h"

#include <string.h>

#define COLUMNS 256 /* at most RP_TAPE_LANES */

struct scan {
    const struct rp_tape *tape;
    const struct rp_tensor *in, *init;
    struct rp_tensor *out;
    size_t outer, n, inner, blocks;
    bool back; /* from the end */
};

static bool is_whole(const struct rp_window_dim *d, int64_t n)
{
    return d->size == n && n > 1 && d->stride == 1 && d->base_dilation == 1 &&
           d->window_dilation == 1 && !d->reversal &&
           ((d->pad_low == n - 1 && !d->pad_high) || (d->pad_high == n - 1 && !d->pad_low));
}

static bool is_still(const struct rp_window_dim *d)
{
    return d->size == 1 && d->stride == 1 && d->base_dilation == 1 && !d->pad_low && !d->pad_high;
}

/* Whether one dimension is scanned, and the others stay. */
static bool scan_find(const struct rp_window *w, const struct rp_tensor *t,
                      const struct rp_value_shape *to, struct scan *s)
{
    bool found = false;

    s->outer = s->inner = s->n = 1;
    if (to->rank != t->rank)
        return false;
    for (size_t k = 0; k < t->rank; k++) {
        if (to->dims[k] != t->dims[k])
            return false;
        if (!is_still(&w->dim[k])) {
            if (found || !is_whole(&w->dim[k], t->dims[k]))
                return false;
            found = true;
            s->n = (size_t)t->dims[k];
            s->back = w->dim[k].pad_low == 0;
        } else if (found) {
            s->inner *= (size_t)t->dims[k];
        } else {
            s->outer *= (size_t)t->dims[k];
        }
    }
    return found && t->n;
}

#define OPS(X)         \
    X(ADD, add, x + y) \
    X(MULTIPLY, multiply, x *y)
#define SCAN(id, name, expr)                                                               \
    RP_CLONES static void scan_##name(const float *in, float *out, int64_t step, size_t n, \
                                      size_t columns, double init)                         \
    {                                                                                      \
        double sum[COLUMNS];                                                               \
                                                                                           \
        for (size_t c = 0; c < columns; c++)                                               \
            sum[c] = init;                                                                 \
        for (size_t i = 0; i < n; i++, in += step, out += step)                            \
            for (size_t c = 0; c < columns; c++) {                                         \
                double x = sum[c], y = (double)in[c];                                      \
                                                                                           \
                sum[c] = (expr);                                                           \
                out[c] = (float)sum[c];                                                    \
            }                                                                              \
    }
OPS(SCAN)

/* Runs any other operation and type by its tape, a row of columns at a time. */
static enum rp_code scan_by_tape(const struct scan *s, const char *in, char *out, int64_t step,
                                 size_t columns, struct rp_err *err)
{
    size_t unit = s->in->unit;
    struct rp_tape_frame frame;
    char sum[COLUMNS * 16];

    RP_TRY(rp_tape_begin(s->tape, &frame, err));
    for (size_t c = 0; c < columns; c++)
        memcpy(sum + c * unit, s->init->data, unit);
    for (size_t i = 0; i < s->n; i++, in += step, out += step) {
        memcpy(out, in, columns * unit);
        frame.reg[0] = sum;
        frame.reg[1] = out;
        rp_tape_run(&frame, columns);
        memcpy(sum, rp_tape_result(&frame, 0), columns * unit);
        memcpy(out, sum, columns * unit);
    }
    rp_tape_end(&frame);
    return RP_OK;
}

static RP_JOB(scan_job)
{
    const struct scan *s = user;
    size_t begin = job % s->blocks * COLUMNS, unit = s->in->unit;
    size_t columns = s->inner - begin < COLUMNS ? s->inner - begin : COLUMNS;
    size_t at = job / s->blocks * s->n * s->inner + begin;
    int64_t step = (int64_t)s->inner;

    if (s->back) {
        at += (s->n - 1) * s->inner;
        step = -step;
    }
    const char *in = (const char *)s->in->data + at * unit;
    char *out = (char *)s->out->data + at * unit;
    if (s->in->elem == RP_ELEM_F32 &&
        (s->tape->simple == RP_OP_ADD || s->tape->simple == RP_OP_MULTIPLY)) {
        double init = rp_tensor_number(s->init, 0);

        (s->tape->simple == RP_OP_ADD ? scan_add : scan_multiply)(
            (const float *)(const void *)in, (float *)(void *)out, step, s->n, columns, init);
        return RP_OK;
    }
    return scan_by_tape(s, in, out, step * (int64_t)unit, columns, err);
}

enum rp_code rp_fast_scan(struct rp_eval *e, const struct rp_node *node,
                          struct rp_tensor *const *in, bool *done, struct rp_tensor **out,
                          struct rp_err *err)
{
    const struct rp_reduce_window *a = node->attrs;
    struct scan s = {.tape = a->reduce.tape, .in = in[0], .init = in[1]};

    *done = false;
    if (a->reduce.k != 1 || !s.tape->simple || s.tape->regs[0].elem != in[0]->elem ||
        s.tape->regs[s.tape->results[0]].elem != in[0]->elem || in[1]->elem != in[0]->elem ||
        node->shape->elem != in[0]->elem || !scan_find(&a->window, in[0], node->shape, &s))
        return RP_OK;
    *done = true;
    RP_TRY(rp_node_result(node, out, err));
    s.out = *out;
    s.blocks = (s.inner + COLUMNS - 1) / COLUMNS;
    return rp_pool_each(e->pool, s.outer * s.blocks, scan_job, &s, err);
}
