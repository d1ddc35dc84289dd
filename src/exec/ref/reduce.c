/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes many results of a reduction at a time: their accumulators are lanes of the function's
 * tape, and each step takes one more element of every one of them. Every step has the type of the
 * function, so types narrower than f32 are rounded at each (rounded.c); sums of f32 are accumulated
 * in f64, so that the reference does not depend on the order. reduce-window skips the places
 * outside its operand.
 */
#include "exec/ref/reduce.h"
#include "exec/ref/kernels.h"
#include "program/opcodes.h"

#include <stdlib.h>
#include <string.h>

enum rp_code rp_tensor_wide(struct rp_tensor *t, struct rp_tensor **out, struct rp_err *err)
{
    if (!rp_elem_is_small_float(t->elem)) {
        *out = rp_tensor_keep(t);
        return RP_OK;
    }
    RP_TRY(rp_tensor_new(RP_ELEM_F32, t->dims, t->rank, out, err));
    rp_widen(t->elem, t->n, (float *)(void *)(*out)->data, t->data);
    return RP_OK;
}

enum rp_code rp_tensor_as(struct rp_tensor *t, unsigned elem, struct rp_tensor **out,
                          struct rp_err *err)
{
    struct rp_lane lane = {.from = t->elem, .to = (uint8_t)elem};

    if (t->elem == elem) {
        *out = rp_tensor_keep(t);
        return RP_OK;
    }
    if (!rp_lane_find(RP_OP_CONVERT, false, &lane))
        return rp_err_set(err, RP_UNSUPPORTED, "no conversion from %s to %s", rp_elem_name(t->elem),
                          rp_elem_name(elem));
    RP_TRY(rp_tensor_new(elem, t->dims, t->rank, out, err));
    rp_lane_run(&lane, t->n, (*out)->data, t->data, NULL, NULL);
    return RP_OK;
}

/* ---- the work of one variadic reduction ---- */

struct work {
    size_t k; /* operands */
    unsigned elem[RP_REDUCE_MOST];
    struct rp_tensor **in, **init, **out;
    struct rp_tape_frame frame;
    char *acc[RP_REDUCE_MOST], *next[RP_REDUCE_MOST], *value[RP_REDUCE_MOST],
        *packed[RP_REDUCE_MOST];
    char *memory;
};

static void work_release(struct work *w)
{
    free(w->memory);
    rp_tape_end(&w->frame);
}

static void fill_initial(char *to, const struct rp_tensor *scalar, size_t n)
{
    if (scalar->unit == 1)
        memset(to, scalar->data[0], n);
    else
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * scalar->unit, scalar->data, scalar->unit);
}

static void reduce_take(char *to, const struct rp_tensor *t, const int64_t *at, int64_t more,
                        size_t n)
{
    if (t->unit == 4)
        for (size_t i = 0; i < n; i++)
            ((uint32_t *)(void *)to)[i] = ((const uint32_t *)(void *)t->data)[at[i] + more];
    else if (t->unit == 1)
        for (size_t i = 0; i < n; i++)
            to[i] = (char)t->data[at[i] + more];
    else
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * t->unit, t->data + (at[i] + more) * (int64_t)t->unit, t->unit);
}

/* acc = f(acc, value) in the lanes. */
static void reduce_step(struct work *w, char **acc, size_t n)
{
    for (size_t i = 0; i < w->k; i++) {
        w->frame.reg[i] = acc[i];
        w->frame.reg[w->k + i] = w->value[i];
    }
    rp_tape_run(&w->frame, n);
    for (size_t i = 0; i < w->k; i++)
        memcpy(w->next[i], rp_tape_result(&w->frame, i), n * w->in[i]->unit);
    for (size_t i = 0; i < w->k; i++)
        memcpy(acc[i], w->next[i], n * w->in[i]->unit);
}

/* ---- reduce ---- */

/* The tape of a reduction, whose accumulators, values and results have the same types. */
static enum rp_code make_tape(struct rp_plan *plan, const struct rp_node *node, struct rp_reduce *a,
                              struct rp_err *err)
{
    RP_TRY(rp_tape_new(plan, node->called[0], false, &a->tape, err));
    if (a->tape->nresults != a->k)
        return rp_node_error(node, RP_FORMAT, err, "the function has %zu results, not %zu",
                             a->tape->nresults, a->k);
    for (size_t i = 0; i < a->k; i++)
        if (a->tape->regs[i].elem != rp_node_operand(plan, node, (uint32_t)i)->elem ||
            a->tape->regs[i].elem != a->tape->regs[a->k + i].elem ||
            a->tape->regs[i].elem != a->tape->regs[a->tape->results[i]].elem)
            return rp_node_error(node, RP_UNSUPPORTED, err,
                                 "functions of mixed types are not supported");
    return RP_OK;
}

RP_PREPARE(rp_reduce_prepare)
{
    struct rp_reduce *a = RP_NODE_NEW(plan, struct rp_reduce);
    const struct rp_value_shape *from = rp_node_operand(plan, node, 0);
    const int64_t *dims;
    size_t n;

    RP_TRY(rp_err_need(a, err, "planning"));
    node->attrs = a;
    a->k = node->nin / 2;
    if (node->nin % 2 || !a->k || a->k > RP_REDUCE_MOST || node->ncalled != 1 ||
        node->called[0]->nparams != node->nin)
        return rp_node_error(node, RP_FORMAT, err, "the function does not match the operands");
    RP_TRY(
        rp_node_ints(plan, node, RP_ATTR_DIMENSIONS, from->rank ? from->rank : 1, &dims, &n, err));
    for (size_t i = 0; i < n && from->rank; i++)
        a->reduced[dims[i]] = true;
    return make_tape(plan, node, a, err);
}

/* Finds the places of the next n results. */
static void window_places(int64_t *index, const int64_t *dims, const int64_t *stride, size_t rank,
                          int64_t *at, size_t n)
{
    for (size_t i = 0; rank == 1 && i < n; i++)
        at[i] = index[0]++ * stride[0];
    for (size_t i = 0; rank != 1 && i < n; i++) {
        at[i] = 0;
        for (size_t k = 0; k < rank; k++)
            at[i] += index[k] * stride[k];
        rp_index_next(index, dims, rank);
    }
}

static void sum_f32(const struct rp_reduce_dims *d, const float *in, float init, float *out)
{
    int64_t kept[RP_TENSOR_RANK] = {0};

    for (size_t i = 0; i < d->nout; i++) {
        int64_t red[RP_TENSOR_RANK] = {0}, base;
        double sum = (double)init;

        window_places(kept, d->kept, d->kept_stride, d->rkept, &base, 1);
        for (size_t r = 0; r < d->nred; r++) {
            int64_t at = base;

            for (size_t k = 0; k < d->rred; k++)
                at += red[k] * d->red_stride[k];
            sum += (double)in[at];
            rp_index_next(red, d->red, d->rred);
        }
        out[i] = (float)sum;
    }
}

static void reduce_lanes(struct work *w, const struct rp_reduce_dims *d)
{
    int64_t kept[RP_TENSOR_RANK] = {0}, at[RP_TAPE_LANES];

    for (size_t o = 0; o < d->nout; o += RP_TAPE_LANES) {
        size_t n = d->nout - o < RP_TAPE_LANES ? d->nout - o : RP_TAPE_LANES;
        int64_t red[RP_TENSOR_RANK] = {0};

        window_places(kept, d->kept, d->kept_stride, d->rkept, at, n);
        for (size_t i = 0; i < w->k; i++)
            fill_initial(w->acc[i], w->init[i], n);
        for (size_t r = 0; r < d->nred; r++) {
            int64_t more = 0;

            for (size_t k = 0; k < d->rred; k++)
                more += red[k] * d->red_stride[k];
            for (size_t i = 0; i < w->k; i++)
                reduce_take(w->value[i], w->in[i], at, more, n);
            reduce_step(w, w->acc, n);
            rp_index_next(red, d->red, d->rred);
        }
        for (size_t i = 0; i < w->k; i++)
            memcpy(w->out[i]->data + o * w->out[i]->unit, w->acc[i], n * w->out[i]->unit);
    }
}

/* ---- reduce-window ---- */

#define WINDOW_MOST (INT64_C(1) << 30)

enum rp_code rp_window_check(const struct rp_node *node, const struct rp_window *w,
                             struct rp_err *err)
{
    for (size_t i = 0; i < w->n; i++) {
        const struct rp_window_dim *d = &w->dim[i];
        int64_t steps[] = {d->stride, d->base_dilation, d->window_dilation};

        for (size_t k = 0; k < 3; k++)
            if (steps[k] < 1 || steps[k] > WINDOW_MOST)
                return rp_node_error(node, RP_FORMAT, err,
                                     "a stride or dilation of %lld in the window",
                                     (long long)steps[k]);
        if (d->size < 0 || d->size > WINDOW_MOST || d->pad_low < -WINDOW_MOST ||
            d->pad_low > WINDOW_MOST)
            return rp_node_error(node, RP_FORMAT, err,
                                 "a size or padding of the window is too large");
    }
    return RP_OK;
}

RP_PREPARE(rp_reduce_window_prepare)
{
    struct rp_reduce_window *a = RP_NODE_NEW(plan, struct rp_reduce_window);
    const struct rp_attr *attr = rp_node_attr(plan, node, RP_ATTR_WINDOW);
    const struct rp_value_shape *from = rp_node_operand(plan, node, 0);

    RP_TRY(rp_err_need(a, err, "planning"));
    node->attrs = a;
    a->reduce.k = node->nin / 2;
    if (node->nin % 2 || !a->reduce.k || a->reduce.k > RP_REDUCE_MOST || node->ncalled != 1 ||
        node->called[0]->nparams != node->nin)
        return rp_node_error(node, RP_FORMAT, err, "the function does not match the operands");
    if (from->rank && (!rp_attr_window(attr, &a->window) || a->window.n != from->rank))
        return rp_node_error(node, RP_FORMAT, err, "the window does not match the operand");
    RP_TRY(rp_window_check(node, &a->window, err));
    return make_tape(plan, node, &a->reduce, err);
}

/* Finds where in the operand a place of the window is; false if nowhere. */
static bool window_place(const struct rp_window *w, const int64_t *out, const int64_t *in,
                         const int64_t *dims, const int64_t *stride, size_t rank, int64_t *at)
{
    *at = 0;
    for (size_t k = 0; k < rank; k++) {
        const struct rp_window_dim *d = &w->dim[k];
        int64_t offset = d->reversal ? d->size - 1 - in[k] : in[k];
        int64_t i = out[k] * d->stride - d->pad_low + offset * d->window_dilation;

        if (i < 0 || i % d->base_dilation)
            return false;
        i /= d->base_dilation;
        if (i >= dims[k])
            return false;
        *at += i * stride[k];
    }
    return true;
}

static void window_lanes(struct work *w, const struct rp_window *win)
{
    const struct rp_tensor *t = w->in[0], *o = w->out[0];
    int64_t stride[RP_TENSOR_RANK], first[RP_TENSOR_RANK] = {0}, size[RP_TENSOR_RANK];
    int64_t at[RP_TAPE_LANES];
    size_t lane[RP_TAPE_LANES];

    rp_strides(t->dims, t->rank, stride);
    for (size_t k = 0; k < t->rank; k++)
        size[k] = win->dim[k].size;
    for (size_t begin = 0; begin < o->n; begin += RP_TAPE_LANES) {
        size_t n = o->n - begin < RP_TAPE_LANES ? o->n - begin : RP_TAPE_LANES;
        int64_t in[RP_TENSOR_RANK] = {0}, out[RP_TENSOR_RANK];

        for (size_t i = 0; i < w->k; i++)
            fill_initial(w->acc[i], w->init[i], n);
        do {
            size_t m = 0;

            memcpy(out, first, sizeof out);
            for (size_t i = 0; i < n; i++) {
                if (window_place(win, out, in, t->dims, stride, t->rank, &at[m]))
                    lane[m++] = i;
                rp_index_next(out, o->dims, o->rank);
            }
            for (size_t i = 0; i < w->k; i++) {
                size_t unit = w->in[i]->unit;

                reduce_take(w->value[i], w->in[i], at, 0, m);
                for (size_t l = 0; l < m; l++)
                    memcpy(w->packed[i] + l * unit, w->acc[i] + lane[l] * unit, unit);
            }
            if (m)
                reduce_step(w, w->packed, m);
            for (size_t i = 0; i < w->k; i++)
                for (size_t l = 0; l < m; l++)
                    memcpy(w->acc[i] + lane[l] * w->in[i]->unit, w->packed[i] + l * w->in[i]->unit,
                           w->in[i]->unit);
        } while (rp_index_next(in, size, t->rank));
        memcpy(first, out, sizeof out);
        for (size_t i = 0; i < w->k; i++)
            memcpy(w->out[i]->data + begin * w->out[i]->unit, w->acc[i], n * w->out[i]->unit);
    }
}

/* ---- both ---- */

static enum rp_code open_work(const struct rp_node *node, struct rp_tensor *const *in,
                              struct work *w, struct rp_err *err)
{
    for (size_t i = 0; i < w->k; i++) {
        const struct rp_value_shape *shape = rp_node_part(node, i);

        if (in[i]->n != in[0]->n || in[w->k + i]->n != 1)
            return rp_node_error(node, RP_FORMAT, err, "wrong shape of operand %zu", i);
        RP_TRY(rp_tensor_as(in[i], w->elem[i], &w->in[i], err));
        RP_TRY(rp_tensor_as(in[w->k + i], w->in[i]->elem, &w->init[i], err));
        RP_TRY(rp_tensor_new(w->in[i]->elem, shape->dims, shape->rank, &w->out[i], err));
    }
    return RP_OK;
}

static enum rp_code run_reduce(const struct rp_node *node, const struct rp_reduce *a,
                               const struct rp_window *window, struct work *w, struct rp_err *err)
{
    struct rp_reduce_dims d;

    if (!window) {
        /* The dimensions that stay, and those that are reduced. */
        const struct rp_tensor *t = w->in[0];
        int64_t stride[RP_TENSOR_RANK];
        memset(&d, 0, sizeof d);
        d.nout = d.nred = 1;
        rp_strides(t->dims, t->rank, stride);
        for (size_t i = 0; i < t->rank; i++) {
            if (a->reduced[i]) {
                d.red[d.rred] = t->dims[i];
                d.red_stride[d.rred++] = stride[i];
                d.nred *= (size_t)t->dims[i];
            } else {
                d.kept[d.rkept] = t->dims[i];
                d.kept_stride[d.rkept++] = stride[i];
                d.nout *= (size_t)t->dims[i];
            }
        }

        if (d.nout != w->out[0]->n)
            return rp_node_error(node, RP_FORMAT, err, "wrong size of the result");
        if (a->k == 1 && a->tape->simple == RP_OP_ADD && w->in[0]->elem == RP_ELEM_F32) {
            sum_f32(&d, (const float *)(void *)w->in[0]->data,
                    *(const float *)(void *)w->init[0]->data, (float *)(void *)w->out[0]->data);
            return RP_OK;
        }
        if (a->k == 1 && rp_reduce_is_rounded(a->tape, w->in[0]->elem))
            return rp_reduce_rounded(a, w->in[0], w->init[0], w->out[0], err);
    }

    const size_t piece = (size_t)16 * RP_TAPE_LANES;
    w->memory = aligned_alloc(64, 4 * w->k * piece);
    RP_TRY(rp_err_need(w->memory, err, "reducing"));
    for (size_t i = 0; i < w->k; i++) {
        w->acc[i] = w->memory + (4 * i) * piece;
        w->next[i] = w->memory + (4 * i + 1) * piece;
        w->value[i] = w->memory + (4 * i + 2) * piece;
        w->packed[i] = w->memory + (4 * i + 3) * piece;
    }
    RP_TRY(rp_tape_begin(a->tape, &w->frame, err));

    if (window)
        window_lanes(w, window);
    else
        reduce_lanes(w, &d);
    return RP_OK;
}

static enum rp_code reduce_any(const struct rp_node *node, const struct rp_reduce *a,
                               const struct rp_window *window, struct rp_tensor *const *in,
                               struct rp_tensor **out, struct rp_err *err)
{
    RP_SCOPED(rp_tensors_release) struct rp_tensors wide = {0}, parts = {0};

    RP_TRY(rp_tensors_new(3 * a->k, &wide, err));
    RP_TRY(rp_tensors_new(a->k, &parts, err));
    RP_SCOPED(work_release)
    struct work w = {.k = a->k, .in = wide.at, .init = wide.at + a->k, .out = wide.at + 2 * a->k};
    for (size_t i = 0; i < a->k; i++)
        w.elem[i] = a->tape->regs[i].elem;
    RP_TRY(open_work(node, in, &w, err));
    RP_TRY(run_reduce(node, a, window, &w, err));
    for (size_t i = 0; i < a->k; i++)
        RP_TRY(rp_tensor_as(w.out[i], rp_node_part(node, i)->elem, &parts.at[i], err));
    return rp_node_give(node, &parts, out, err);
}

RP_KERNEL(rp_reduce_run)
{
    return reduce_any(node, node->attrs, NULL, in, out, err);
}

static RP_KERNEL(reduce_window)
{
    const struct rp_reduce_window *a = node->attrs;

    return reduce_any(node, &a->reduce, &a->window, in, out, err);
}

/* ---- select-and-scatter ---- */

RP_PREPARE(rp_select_prepare)
{
    struct rp_select_attr *a = RP_NODE_NEW(plan, struct rp_select_attr);
    const struct rp_attr *attr = rp_node_attr(plan, node, RP_ATTR_WINDOW);

    RP_TRY(rp_err_need(a, err, "planning"));
    node->attrs = a;
    if (node->nin != 3 || node->ncalled != 2 || !attr || !rp_attr_window(attr, &a->window) ||
        a->window.n != node->shape->rank)
        return rp_node_error(node, RP_FORMAT, err,
                             "the window or the functions do not match the operands");
    RP_TRY(rp_window_check(node, &a->window, err));
    RP_TRY(rp_tape_new(plan, node->called[0], false, &a->select, err));
    RP_TRY(rp_tape_new(plan, node->called[1], false, &a->scatter, err));
    if (a->select->nparams != 2 || a->scatter->nparams != 2 ||
        a->select->regs[0].elem != rp_node_operand(plan, node, 0)->elem ||
        a->scatter->regs[0].elem != rp_node_operand(plan, node, 1)->elem ||
        a->select->regs[0].elem != a->select->regs[1].elem ||
        a->select->regs[a->select->results[0]].unit != 1 ||
        a->scatter->regs[0].elem != a->scatter->regs[1].elem ||
        a->scatter->regs[0].elem != a->scatter->regs[a->scatter->results[0]].elem)
        return rp_node_error(node, RP_UNSUPPORTED, err,
                             "functions of mixed types are not supported");
    return RP_OK;
}

/* The place of the window that is selected: of two, the later one if select says no. */
static int64_t select_place(const struct rp_select_attr *a, struct rp_tape_frame *f,
                            const struct rp_tensor *t, const int64_t *stride, const int64_t *out,
                            const int64_t *size)
{
    int64_t in[RP_TENSOR_RANK] = {0}, best = -1, at;

    do {
        if (!window_place(&a->window, out, in, t->dims, stride, t->rank, &at))
            continue;
        if (best >= 0) {
            f->reg[0] = t->data + best * (int64_t)t->unit;
            f->reg[1] = t->data + at * (int64_t)t->unit;
            rp_tape_run(f, 1);
        }
        if (best < 0 || !*(const uint8_t *)rp_tape_result(f, 0))
            best = at;
    } while (rp_index_next(in, size, t->rank));
    return best;
}

static enum rp_code select_all(const struct rp_select_attr *a, const struct rp_tensor *t,
                               const struct rp_tensor *source, struct rp_tensor *to,
                               struct rp_err *err)
{
    int64_t stride[RP_TENSOR_RANK], size[RP_TENSOR_RANK], index[RP_TENSOR_RANK] = {0};
    RP_SCOPED(rp_tape_end) struct rp_tape_frame select = {0}, scatter = {0};

    RP_TRY(rp_tape_begin(a->select, &select, err));
    RP_TRY(rp_tape_begin(a->scatter, &scatter, err));
    rp_strides(t->dims, t->rank, stride);
    for (size_t k = 0; k < t->rank; k++)
        size[k] = a->window.dim[k].size;
    for (size_t i = 0; i < source->n; i++) {
        int64_t at = select_place(a, &select, t, stride, index, size);

        if (at >= 0) {
            scatter.reg[0] = source->data + i * source->unit;
            scatter.reg[1] = to->data + at * (int64_t)to->unit;
            rp_tape_run(&scatter, 1);
            memmove(to->data + at * (int64_t)to->unit, rp_tape_result(&scatter, 0), to->unit);
        }
        rp_index_next(index, source->dims, source->rank);
    }
    return RP_OK;
}

static RP_KERNEL(select_and_scatter)
{
    const struct rp_select_attr *a = node->attrs;
    RP_SCOPED(rp_tensors_release) struct rp_tensors wide = {0};
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *to = NULL;

    RP_TRY(rp_tensors_new(3, &wide, err));
    for (size_t i = 0; i < 3; i++)
        RP_TRY(rp_tensor_as(in[i], (i ? a->scatter : a->select)->regs[0].elem, &wide.at[i], err));
    RP_TRY(rp_tensor_new(wide.at[1]->elem, in[0]->dims, in[0]->rank, &to, err));
    fill_initial((char *)to->data, wide.at[2], to->n);
    RP_TRY(select_all(node->attrs, wide.at[0], wide.at[1], to, err));
    return rp_tensor_as(to, node->shape->elem, out, err);
}

const struct rp_kernel rp_kernels_reduce[] = {
    {RP_OP_REDUCE, rp_reduce_prepare, rp_reduce_run},
    {RP_OP_REDUCE_WINDOW, rp_reduce_window_prepare, reduce_window},
    {RP_OP_SELECT_AND_SCATTER, rp_select_prepare, select_and_scatter},
    {0, NULL, NULL},
};
