/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes convolutions of f32 directly from the arrays in memory, without gathering them into a
 * matrix. A result is a sum over steps (a place of the window and an input feature), and each
 * operand's place is the sum of two offsets, so a block of results needs one list of steps for all
 * of them:
 *
 *   y[row][o] = sum over steps s of  x[x_of(row) + s.a] * w[s.b + o]
 *
 * A kernel keeps a block of rows and up to 32 output features in registers. Any order of the
 * dimensions is taken; w or y are transposed only if output features are not the last dimension.
 * Padding is a copy of x with zeros around it, once. If the input is dilated (the gradient of a
 * strided convolution), results are grouped into phases by the places of the window that meet an
 * element at all, so that nothing is multiplied with the zeros in between. Everything except the
 * values follows from the shapes and is computed once, when the program is planned. Rows are jobs
 * of the pool. Types narrower than f32 are widened and the result is rounded once.
 */
#include "exec/fast/conv.h"
#include "base/order.h"
#include "base/threads.h"
#include "exec/eval/lanes.h"
#include "exec/eval/strided.h"
#include "exec/fast/kernels.h"
#include "exec/ref/dot.h"
#include "exec/ref/reduce.h"
#include "program/opcodes.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH         512    /* steps at a time, so that their part of w stays in the cache */
#define IN_PLACE      64     /* up to so many output features, w is read where it is */
#define MOST_DILATION 4096   /* largest dilation of the input, because phases are counted by it */
#define JOB_TERMS     131072 /* vector multiplications per job, at least */

/* ---- geometry ---- */

struct conv {
    size_t n; /* spatial dimensions */
    struct rp_conv_spatial dim[RP_WINDOW_DIMS];
    int64_t groups, batch, features,
        outputs; /* features and outputs of one group; batch of the result */
    int64_t x_batch, x_feature, x_group; /* strides */
    int64_t w_feature, w_output;
    int64_t y_batch;
    struct rp_conv_kernel kernel;
    bool packed;                    /* w is [group][panel][step][wide] */
    int64_t taps, terms;            /* taps: places of the window; terms: times features */
    int64_t padded[RP_TENSOR_RANK]; /* dimensions of x with zeros around it */
    bool pads, turns;               /* pads: x needs zeros around it; turns: y is canonical first */
    int64_t canonical[RP_TENSOR_RANK]; /* y as batch, spatial, features */
    uint32_t back[RP_TENSOR_RANK];     /* their order in the result */
};

/* The attributes of a node: those of the reference, then what was computed from them. */
struct fast_conv {
    struct rp_conv base;
    bool taken; /* if false, the reference does it */
    struct conv v;
    struct phase *phases;
    size_t nphases;
};

static void conv_sizes(const struct rp_conv *c, const struct rp_value_shape *x,
                       const struct rp_value_shape *w, const struct rp_value_shape *y,
                       struct conv *v)
{
    const struct rp_conv_dims *d = &c->dims;

    memset(v, 0, sizeof *v);
    v->n = d->nspatial;
    v->taps = 1;
    for (size_t i = 0; i < v->n; i++) {
        const struct rp_window_dim *from = &c->window.dim[i];

        v->dim[i] = (struct rp_conv_spatial){.in = x->dims[d->input_spatial[i]],
                                             .out = y->dims[d->output_spatial[i]],
                                             .window = w->dims[d->kernel_spatial[i]],
                                             .stride = from->stride,
                                             .low = from->pad_low,
                                             .dilation = from->window_dilation,
                                             .base = from->base_dilation,
                                             .reversal = from->reversal};
        rp_conv_spatial_begin(&v->dim[i]);
        v->taps *= v->dim[i].window;
    }
    v->groups = c->feature_groups * c->batch_groups;
    v->batch = y->dims[d->output_batch];
    v->features = w->dims[d->kernel_input];
    v->outputs = y->dims[d->output_feature] / v->groups;
    v->terms = v->taps * v->features;
    v->kernel = rp_conv_kernel_for(v->outputs);
}

/* ---- operands ---- */

/* Makes x with zeros around it, in its own order of dimensions; x itself if it needs none. */
static enum rp_code conv_pad(const struct conv *v, const struct rp_conv_dims *dims,
                             struct rp_tensor *x, struct rp_pool *pool, struct rp_tensor **out,
                             struct rp_err *err)
{
    struct rp_strided s = {.unit = sizeof(float), .rank = x->rank};
    int64_t begin = 0;

    if (!v->pads) {
        *out = rp_tensor_keep(x);
        return RP_OK;
    }
    RP_TRY(rp_tensor_zeros(RP_ELEM_F32, v->padded, x->rank, out, err));
    memcpy(s.dims, x->dims, x->rank * sizeof *s.dims);
    rp_strides(x->dims, x->rank, s.from);
    rp_strides(v->padded, x->rank, s.to);
    for (size_t i = 0; i < v->n; i++)
        begin += v->dim[i].zeros * s.to[dims->input_spatial[i]];
    return rp_strided_spread(&s, (*out)->data + begin * (int64_t)sizeof(float), x->data, pool, err);
}

/* The offset of step `tap` (counted over the window), feature 0, in w. */
static int64_t tap_offset(const struct conv *v, const int64_t *k)
{
    int64_t at = 0;

    for (size_t i = 0; i < v->n; i++)
        at += (v->dim[i].reversal ? v->dim[i].window - 1 - k[i] : k[i]) * v->dim[i].w_step;
    return at;
}

static void pack_panel(const struct conv *v, const float *from, int64_t have, float *to)
{
    int64_t k[RP_WINDOW_DIMS] = {0}, size[RP_WINDOW_DIMS], wide = v->kernel.wide;

    for (size_t i = 0; i < v->n; i++)
        size[i] = v->dim[i].window;
    do {
        const float *tap = from + tap_offset(v, k);

        for (int64_t f = 0; f < v->features; f++, tap += v->w_feature, to += wide) {
            for (int64_t o = 0; o < have; o++)
                to[o] = tap[o * v->w_output];
            for (int64_t o = have; o < wide; o++)
                to[o] = 0;
        }
    } while (rp_index_next(k, size, v->n));
}

static int64_t conv_panels(const struct conv *v)
{
    return (v->outputs + v->kernel.wide - 1) / v->kernel.wide;
}

/* Packs w into panels of `wide` output features, if it cannot be read directly. */
static enum rp_code conv_pack(const struct conv *v, struct rp_tensor *w, struct rp_tensor **out,
                              struct rp_err *err)
{
    int64_t wide = v->kernel.wide, n = conv_panels(v);
    const float *from = (const float *)(void *)w->data;

    if (!v->packed) {
        *out = rp_tensor_keep(w);
        return RP_OK;
    }
    RP_TRY(rp_tensor_new(RP_ELEM_F32, (int64_t[]){v->groups, n, v->terms, wide}, 4, out, err));
    float *to = (float *)(void *)(*out)->data;
    for (int64_t g = 0; g < v->groups; g++)
        for (int64_t p = 0; p < n; p++, to += v->terms * wide) {
            int64_t have = v->outputs - p * wide < wide ? v->outputs - p * wide : wide;

            pack_panel(v, from + (g * v->outputs + p * wide) * v->w_output, have, to);
        }
    return RP_OK;
}

/* ---- phases ---- */

struct phase {
    const struct conv *v;
    struct rp_conv_step *steps;
    size_t nsteps;
    int64_t phase[RP_WINDOW_DIMS], count[RP_WINDOW_DIMS + 1]; /* results: batch, spatial */
    int64_t x_step[RP_WINDOW_DIMS + 1], y_step[RP_WINDOW_DIMS + 1];
    int64_t x_first, y_first;
    int64_t rows, job_rows;
    size_t blocks;
};

/* A dimension that is summed over: where its elements are in x (negative: they meet nothing) and in
   w. */
struct axis {
    int64_t size, w_first, w_step, *x;
};

RP_ORDER(by_step, struct axis, RP_COMPARE(llabs(b->w_step), llabs(a->w_step)))

/* Lists the axes of a phase, in the order of w; `room` has one place for each element of each. */
static void axes_of(const struct phase *r, struct axis *axis, int64_t *room)
{
    const struct conv *v = r->v;
    int64_t step = v->kernel.wide;

    axis[v->n] = (struct axis){v->features, 0, v->packed ? step : v->w_feature, room};
    for (int64_t f = 0; f < v->features; f++)
        *room++ = f * v->x_feature;
    step *= v->features;
    for (size_t i = v->n; i-- > 0; step *= v->dim[i].window) {
        const struct rp_conv_spatial *d = &v->dim[i];
        int64_t at;

        axis[i] = (struct axis){d->window, 0, v->packed ? step : d->w_step, room};
        if (!v->packed && d->reversal) {
            axis[i].w_first = (d->window - 1) * d->w_step;
            axis[i].w_step = -d->w_step;
        }
        for (int64_t k = 0; k < d->window; k++)
            *room++ =
                rp_conv_spatial_meets(d, r->phase[i], k, &at) ? (at + d->zeros) * d->x_step : -1;
    }
    qsort(axis, v->n + 1, sizeof *axis, by_step);
}

static size_t make_steps(const struct axis *axis, size_t n, struct rp_conv_step *to)
{
    int64_t index[RP_WINDOW_DIMS + 1] = {0}, size[RP_WINDOW_DIMS + 1];
    const struct axis *last = &axis[n - 1];
    size_t have = 0;

    for (size_t i = 0; i < n; i++)
        size[i] = axis[i].size;
    do {
        int64_t x = 0, w = last->w_first;
        bool all = true;

        for (size_t i = 0; i + 1 < n; i++) {
            all &= axis[i].x[index[i]] >= 0;
            x += axis[i].x[index[i]];
            w += axis[i].w_first + index[i] * axis[i].w_step;
        }
        for (int64_t k = 0; all && k < last->size; k++, w += last->w_step)
            if (last->x[k] >= 0)
                to[have++] = (struct rp_conv_step){(uint32_t)(x + last->x[k]), (uint32_t)w};
    } while (rp_index_next(index, size, n - 1));
    return have;
}

static void phase_begin(const struct conv *v, const int64_t *phase, struct phase *r)
{
    memset(r, 0, sizeof *r);
    r->v = v;
    r->rows = r->count[0] = v->batch;
    r->x_step[0] = v->x_batch;
    r->y_step[0] = v->y_batch;
    for (size_t i = 0; i < v->n; i++) {
        const struct rp_conv_spatial *d = &v->dim[i];

        r->phase[i] = phase[i];
        r->count[i + 1] = rp_conv_spatial_results(d, phase[i]);
        r->rows *= r->count[i + 1];
        r->x_step[i + 1] = d->advance * d->x_step;
        r->y_step[i + 1] = d->phases * d->y_step;
        r->y_first += phase[i] * d->y_step;
    }
    int64_t terms = v->terms * conv_panels(v);
    r->job_rows = JOB_TERMS / (terms ? terms : 1);
    if (r->job_rows > r->rows / 2)
        r->job_rows = r->rows / 2;
    r->job_rows = (r->job_rows / v->kernel.rows + 1) * v->kernel.rows;
    r->blocks = (size_t)((r->rows + r->job_rows - 1) / r->job_rows);
}

/* ---- running ---- */

struct operands {
    const float *x, *w; /* padded, packed */
    float *y;
};

struct phase_job {
    const struct phase *phase;
    const struct operands *o;
};

/* cursor: the places of the next rows in x and y. */
struct cursor {
    int64_t index[RP_WINDOW_DIMS + 1], x, y;
};

static void cursor_begin(const struct phase *r, int64_t row, struct cursor *c)
{
    c->x = r->x_first;
    c->y = r->y_first;
    for (size_t i = r->v->n + 1; i-- > 0; row /= r->count[i]) {
        c->index[i] = row % r->count[i];
        c->x += c->index[i] * r->x_step[i];
        c->y += c->index[i] * r->y_step[i];
    }
}

static void cursor_next(const struct phase *r, struct cursor *c)
{
    for (size_t i = r->v->n + 1; i-- > 0;) {
        c->x += r->x_step[i];
        c->y += r->y_step[i];
        if (++c->index[i] < r->count[i])
            return;
        c->x -= r->count[i] * r->x_step[i];
        c->y -= r->count[i] * r->y_step[i];
        c->index[i] = 0;
    }
}

/* Computes one block of rows and one panel; an incomplete block goes through a buffer. */
static void conv_block(const struct phase *r, size_t from, size_t n, const float *const *a,
                       const float *b, float *const *c, int64_t rows, int64_t columns)
{
    const struct rp_conv_kernel *k = &r->v->kernel;
    float corner[RP_CONV_ROWS * RP_CONV_WIDE];
    float *to[RP_CONV_ROWS];
    bool first = from == 0;

    if (rows == k->rows && columns == k->wide) {
        k->fn(n, r->steps + from, a, b, c, first);
        return;
    }
    for (int64_t i = 0; i < k->rows; i++) {
        to[i] = corner + i * k->wide;
        if (!first && i < rows)
            memcpy(to[i], c[i], (size_t)columns * sizeof **c);
    }
    k->fn(n, r->steps + from, a, b, to, first);
    for (int64_t i = 0; i < rows; i++)
        memcpy(c[i], to[i], (size_t)columns * sizeof **c);
}

/* Computes rows [begin, end) of one panel with one part of the steps. */
static void conv_part(const struct phase_job *j, int64_t group, int64_t panel, size_t from,
                      size_t n, int64_t begin, int64_t end)
{
    const struct phase *r = j->phase;
    const struct conv *v = r->v;
    int64_t wide = v->kernel.wide, o = panel * wide;
    int64_t columns = v->outputs - o < wide ? v->outputs - o : wide;
    const float *a[RP_CONV_ROWS], *x = j->o->x + group * v->x_group;
    const float *b = v->packed ? j->o->w + (group * conv_panels(v) + panel) * v->terms * wide
                               : j->o->w + group * v->outputs + o;
    float *c[RP_CONV_ROWS], *y = j->o->y + group * v->outputs + o;
    struct cursor at;

    cursor_begin(r, begin, &at);
    for (int64_t row = begin; row < end; row += v->kernel.rows) {
        int64_t rows = end - row < v->kernel.rows ? end - row : v->kernel.rows;

        for (int64_t i = 0; i < v->kernel.rows; i++) {
            a[i] = x + at.x;
            c[i] = y + at.y;
            if (i + 1 < rows || row + rows < end)
                cursor_next(r, &at);
        }
        conv_block(r, from, n, a, b, c, rows, columns);
    }
}

static RP_JOB(rows_job)
{
    const struct phase_job *j = user;
    const struct phase *r = j->phase;
    int64_t group = (int64_t)(job / r->blocks), begin = (int64_t)(job % r->blocks) * r->job_rows;
    int64_t end = r->rows - begin < r->job_rows ? r->rows : begin + r->job_rows;
    size_t from = 0;

    do {
        size_t n = r->nsteps - from < DEPTH ? r->nsteps - from : DEPTH;

        for (int64_t p = 0; p < conv_panels(r->v); p++)
            conv_part(j, group, p, from, n, begin, end);
        from += n;
    } while (from < r->nsteps);
    return RP_OK;
}

/* ---- the operation ---- */

static void strides_of(struct conv *v, const struct rp_conv *c, const struct rp_value_shape *w,
                       const struct rp_value_shape *y)
{
    const struct rp_conv_dims *d = &c->dims;
    size_t rank = v->n + 2;
    int64_t sx[RP_TENSOR_RANK], sw[RP_TENSOR_RANK], sy[RP_TENSOR_RANK];

    rp_strides(v->padded, rank, sx);
    rp_strides(w->dims, rank, sw);
    rp_strides(v->turns ? v->canonical : y->dims, rank, sy);
    for (size_t i = 0; i < v->n; i++) {
        v->dim[i].x_step = sx[d->input_spatial[i]];
        v->dim[i].w_step = sw[d->kernel_spatial[i]];
        v->dim[i].y_step = sy[v->turns ? (int64_t)i + 1 : d->output_spatial[i]];
    }
    v->x_batch = sx[d->input_batch];
    v->x_feature = sx[d->input_feature];
    v->x_group = c->feature_groups > 1 ? v->features * v->x_feature : v->batch * v->x_batch;
    v->w_feature = sw[d->kernel_input];
    v->w_output = sw[d->kernel_output];
    v->y_batch = sy[v->turns ? 0 : d->output_batch];
}

/* Whether this kernel can do it; the reference handles other types, and sizes beyond the offsets of
   steps or out of all proportion to the arrays. */
static bool is_taken(const struct conv *v, const struct rp_value_shape *x,
                     const struct rp_value_shape *w, const struct rp_value_shape *y)
{
    const struct rp_value_shape *shapes[] = {x, w, y};
    double padded = (double)v->batch * (double)v->groups * (double)v->features;

    for (size_t i = 0; i < 3; i++)
        if (shapes[i]->elem != RP_ELEM_F32 && !rp_elem_is_small_float(shapes[i]->elem))
            return false;
    for (size_t i = 0; i < v->n; i++)
        padded *= (double)v->dim[i].padded;
    return padded < UINT32_MAX && w->n * RP_CONV_WIDE < UINT32_MAX &&
           padded < 1e6 + 16 * ((double)x->n + (double)y->n);
}

/* Whether there is something to do, and no place is beyond the offsets of steps. */
static bool conv_fits(const struct rp_value_shape *s)
{
    return s->n && s->n < UINT32_MAX;
}

RP_PREPARE(rp_fast_conv_prepare)
{
    struct fast_conv *f = RP_NODE_NEW(plan, struct fast_conv);
    const struct rp_value_shape *y = node->shape;

    RP_TRY(rp_conv_prepare(plan, node, err));
    RP_TRY(rp_err_need(f, err, "planning"));
    f->base = *(const struct rp_conv *)node->attrs;
    node->attrs = f;
    const struct rp_value_shape *x = rp_node_operand(plan, node, 0);
    const struct rp_value_shape *w = rp_node_operand(plan, node, 1);
    if (!conv_fits(x) || !conv_fits(w) || !conv_fits(y))
        return RP_OK;
    for (size_t i = 0; i < f->base.window.n; i++)
        if (f->base.window.dim[i].base_dilation > MOST_DILATION)
            return RP_OK;
    conv_sizes(&f->base, x, w, y, &f->v);
    f->taken = is_taken(&f->v, x, w, y);
    if (!f->taken)
        return RP_OK;
    /* The layout of the operands at run time: x padded, w packed, y with its features last. */
    const struct rp_conv_dims *d = &f->base.dims;
    memcpy(f->v.padded, x->dims, x->rank * sizeof *f->v.padded);
    f->v.turns = d->output_feature != (int64_t)f->v.n + 1;
    f->v.canonical[0] = f->v.batch;
    f->v.back[d->output_batch] = 0;
    for (size_t i = 0; i < f->v.n; i++) {
        f->v.padded[d->input_spatial[i]] = f->v.dim[i].padded;
        f->v.pads |= f->v.dim[i].padded != f->v.dim[i].in;
        f->v.canonical[i + 1] = f->v.dim[i].out;
        f->v.back[d->output_spatial[i]] = (uint32_t)i + 1;
    }
    f->v.canonical[f->v.n + 1] = f->v.outputs * f->v.groups;
    f->v.back[d->output_feature] = (uint32_t)f->v.n + 1;
    strides_of(&f->v, &f->base, w, y);
    f->v.packed = f->v.w_output != 1 || f->v.outputs % f->v.kernel.wide || f->v.outputs > IN_PLACE;
    const struct conv *v = &f->v;
    int64_t at[RP_WINDOW_DIMS] = {0}, phases[RP_WINDOW_DIMS], places = v->features, *room;
    struct rp_conv_step *steps = RP_ARENA_NEW(&plan->arena, struct rp_conv_step, (size_t)v->terms);
    struct axis axis[RP_WINDOW_DIMS + 1];
    f->nphases = 1;
    for (size_t i = 0; i < v->n; i++) {
        phases[i] = v->dim[i].phases < v->dim[i].out ? v->dim[i].phases : v->dim[i].out;
        f->nphases *= (size_t)phases[i];
        places += v->dim[i].window;
    }
    f->phases = RP_ARENA_NEW(&plan->arena, struct phase, f->nphases);
    room = RP_ARENA_NEW(&plan->arena, int64_t, (size_t)places);
    RP_TRY(rp_err_need(steps && f->phases && room, err, "planning"));
    for (size_t i = 0; i < f->nphases; i++, rp_index_next(at, phases, v->n)) {
        struct phase *r = &f->phases[i];

        phase_begin(v, at, r);
        axes_of(r, axis, room);
        r->steps = steps; /* each step belongs to one phase */
        r->nsteps = make_steps(axis, v->n + 1, steps);
        steps += r->nsteps;
    }
    return RP_OK;
}

RP_KERNEL(rp_fast_conv)
{
    const struct fast_conv *f = node->attrs;
    const struct conv *v = &f->v;
    RP_SCOPED(rp_tensor_drop_at)
    struct rp_tensor *wide_x = NULL, *wide_w = NULL, *x = NULL, *w = NULL, *y = NULL,
                     *turned = NULL;

    if (!f->taken)
        return e->plan->reference[RP_OP_CONVOLUTION]->run(e, node, in, out, err);
    RP_TRY(rp_tensor_wide(in[0], &wide_x, err));
    RP_TRY(conv_pad(v, &f->base.dims, wide_x, e->pool, &x, err));
    RP_TRY(rp_tensor_wide(in[1], &wide_w, err));
    RP_TRY(conv_pack(v, wide_w, &w, err));
    RP_TRY(
        rp_tensor_new(RP_ELEM_F32, v->turns ? v->canonical : node->shape->dims, v->n + 2, &y, err));
    struct operands o = {(const float *)(void *)x->data, (const float *)(void *)w->data,
                         (float *)(void *)y->data};
    for (size_t i = 0; i < f->nphases; i++) {
        struct phase_job j = {&f->phases[i], &o};
        int64_t work = j.phase->rows * v->terms * conv_panels(v) * v->groups;

        RP_TRY(rp_pool_each(work > JOB_TERMS / 8 ? e->pool : NULL,
                            j.phase->blocks * (size_t)v->groups, rows_job, &j, err));
    }
    if (v->turns)
        RP_TRY(rp_tensor_transpose_spread(y, v->back, e->pool, &turned, err));
    return rp_tensor_as(v->turns ? turned : y, node->shape->elem, out, err);
}
