/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products and convolutions through f32 matrix products. Operands that lie as rows or as columns
 * are taken as they are, others are transposed first; types narrower than f32 are widened, and the
 * result is rounded once. A convolution gathers the inputs under its window into a matrix, some
 * thousand rows at a time:
 *
 *   [batch, out spatial] x [window, input features]  *  [window, input features] x [output
 * features]
 */
#include "exec/dot.h"
#include "exec/fast_gemm.h"
#include "exec/fast_kernels.h"
#include "exec/lanes.h"
#include "exec/reduce.h"
#include "exec/strided.h"
#include "program/floats.h"

#include <stdlib.h>
#include <string.h>

static bool narrow_float(unsigned elem)
{
    return elem == RP_ELEM_F32 || rp_elem_is_small_float(elem);
}

/* ---- dot ---- */

static enum rp_code side(struct rp_tensor *t, const uint32_t *perm, bool as_is,
                         struct rp_tensor **out, struct rp_err *err)
{
    struct rp_tensor *wide;
    enum rp_code code;

    if (as_is)
        return rp_tensor_wide(t, out, err);
    RP_TRY(rp_tensor_wide(t, &wide, err));
    code = rp_tensor_transpose(wide, perm, out, err);
    rp_tensor_drop(wide);
    return code;
}

static enum rp_code plain(struct rp_eval *e, const struct rp_node *node,
                          struct rp_tensor *const *in, struct rp_tensor **out, struct rp_err *err)
{
    return e->plan->reference[RP_OP_DOT]->run(e, node, in, out, err);
}

enum rp_code rp_fast_dot(struct rp_eval *e, const struct rp_node *node, struct rp_tensor *const *in,
                         struct rp_tensor **out, struct rp_err *err)
{
    const struct rp_dot *d = node->attrs;
    struct rp_tensor *l = NULL, *r = NULL, *to = NULL;
    enum rp_code code;

    if (!narrow_float(in[0]->elem) || !narrow_float(in[1]->elem) ||
        !narrow_float(node->shape->elem))
        return plain(e, node, in, out, err);
    code = side(in[0], d->lhs_perm, d->lhs_plain || d->lhs_flipped, &l, err);
    if (code == RP_OK)
        code = side(in[1], d->rhs_perm, d->rhs_plain || d->rhs_flipped, &r, err);
    if (code == RP_OK)
        code = rp_tensor_new(RP_ELEM_F32, node->shape->dims, node->shape->rank, &to, err);
    if (code == RP_OK) {
        bool lf = d->lhs_flipped && !d->lhs_plain, rf = d->rhs_flipped && !d->rhs_plain;
        struct rp_gemm g = {.batch = d->batch,
                            .m = d->left,
                            .n = d->right,
                            .k = d->inner,
                            .a = (const float *)(void *)l->data,
                            .b = (const float *)(void *)r->data,
                            .c = (float *)(void *)to->data,
                            .a_row = lf ? 1 : d->inner,
                            .a_column = lf ? d->left : 1,
                            .a_batch = d->left * d->inner,
                            .b_row = rf ? d->right : 1,
                            .b_column = rf ? 1 : d->inner,
                            .b_batch = d->right * d->inner};

        code = rp_gemm_run(&g, e->plan->blas, e->pool, err);
    }
    if (code == RP_OK)
        code = rp_tensor_as(to, node->shape->elem, out, err);
    rp_tensor_drop(l);
    rp_tensor_drop(r);
    rp_tensor_drop(to);
    return code;
}

/* ---- convolution ---- */

struct conv {
    const struct rp_conv *c;
    size_t n; /* spatial dimensions */
    int64_t in[RP_WINDOW_DIMS], out[RP_WINDOW_DIMS], window[RP_WINDOW_DIMS];
    int64_t batch, features, outputs; /* features: of one group */
    int64_t groups, positions, taps;  /* products of out and of window */
    int64_t all_features, all_outputs;
    const float *x, *w;
    float *y;
    int64_t rows; /* of one job */
    size_t blocks;
};

#define ROWS 256

/* Places along the last dimension lie behind one another in the input, features and all. */
static bool in_runs(const struct conv *v)
{
    const struct rp_window_dim *w = &v->c->window.dim[v->n - 1];

    return v->groups == 1 && w->window_dilation == 1 && w->base_dilation == 1;
}

/* One run of the window's last dimension from place `at`; from: the run's line of the input. */
static void gather_run(const struct conv *v, const float *from, int64_t at, float *to)
{
    int64_t window = v->window[v->n - 1], in = v->in[v->n - 1], f = v->features;
    int64_t low = at < 0 ? (-at < window ? -at : window) : 0;
    int64_t high = in - at < window ? in - at : window;

    if (high < low)
        high = low;
    if (low)
        memset(to, 0, (size_t)(low * f) * sizeof *to);
    if (high > low)
        memcpy(to + low * f, from + (at + low) * f, (size_t)((high - low) * f) * sizeof *to);
    if (high < window)
        memset(to + high * f, 0, (size_t)((window - high) * f) * sizeof *to);
}

/* `n` positions of one line of the result from index p, a run of places at a time. */
static void gather_line(const struct conv *v, int64_t batch, const int64_t *p, int64_t n, float *to)
{
    int64_t k[RP_WINDOW_DIMS] = {0}, depth = v->taps * v->features;
    size_t last = v->n - 1;
    const struct rp_window_dim *run = &v->c->window.dim[last];

    do {
        int64_t line = batch;
        bool inside = true;

        for (size_t d = 0; d < last; d++) {
            const struct rp_window_dim *w = &v->c->window.dim[d];
            int64_t i = p[d] * w->stride - w->pad_low + k[d] * w->window_dilation;

            if (w->base_dilation > 1) {
                inside &= i >= 0 && i % w->base_dilation == 0;
                i /= w->base_dilation;
            }
            inside &= i >= 0 && i < v->in[d];
            line = line * v->in[d] + i;
        }
        for (int64_t i = 0; i < n; i++)
            if (inside)
                gather_run(v, v->x + line * v->in[last] * v->features,
                           (p[last] + i) * run->stride - run->pad_low, to + i * depth);
            else
                memset(to + i * depth, 0, (size_t)(v->window[last] * v->features) * sizeof *to);
        to += v->window[last] * v->features;
    } while (rp_index_next(k, v->window, last));
}

/* What lies under the window at one position (batch b, index p of the result), into a row of the
   matrix. */
static void gather_row(const struct conv *v, int64_t b, const int64_t *p, int64_t group, float *to)
{
    int64_t at[RP_WINDOW_DIMS], k[RP_WINDOW_DIMS] = {0};

    for (size_t d = 0; d < v->n; d++)
        at[d] = p[d] * v->c->window.dim[d].stride - v->c->window.dim[d].pad_low;
    for (int64_t t = 0; t < v->taps; t++, to += v->features) {
        int64_t from = b;
        bool inside = true;

        for (size_t d = 0; d < v->n; d++) {
            const struct rp_window_dim *w = &v->c->window.dim[d];
            int64_t i = at[d] + k[d] * w->window_dilation;

            if (w->base_dilation > 1) {
                inside &= i >= 0 && i % w->base_dilation == 0;
                i /= w->base_dilation;
            }
            inside &= i >= 0 && i < v->in[d];
            from = from * v->in[d] + i;
        }
        if (inside)
            memcpy(to, v->x + from * v->all_features + group * v->features,
                   (size_t)v->features * sizeof *to);
        else
            memset(to, 0, (size_t)v->features * sizeof *to);
        rp_index_next(k, v->window, v->n);
    }
}

static void gather_rows(const struct conv *v, int64_t begin, int64_t n, int64_t group, float *to)
{
    int64_t b = begin / v->positions, left = begin % v->positions, p[RP_WINDOW_DIMS];

    for (size_t d = v->n; d-- > 0; left /= v->out[d])
        p[d] = left % v->out[d];
    while (n > 0) {
        int64_t some = 1, last = (int64_t)v->n - 1;

        if (v->n && in_runs(v)) {
            some = v->out[last] - p[last] < n ? v->out[last] - p[last] : n;
            gather_line(v, b, p, some, to);
            p[last] += some - 1;
        } else {
            gather_row(v, b, p, group, to);
        }
        if (!rp_index_next(p, v->out, v->n))
            b++;
        to += some * v->taps * v->features;
        n -= some;
    }
}

static enum rp_code conv_job(void *user, size_t job, struct rp_err *err)
{
    const struct conv *v = user;
    int64_t group = (int64_t)(job / v->blocks), begin = (int64_t)(job % v->blocks) * v->rows;
    int64_t all = v->batch * v->positions, depth = v->taps * v->features;
    int64_t n = all - begin < v->rows ? all - begin : v->rows, outputs = v->outputs;
    float *matrix = malloc((size_t)(n * depth + n * outputs) * sizeof *matrix);
    float *result;
    struct rp_gemm g;
    enum rp_code code;

    if (!matrix)
        return rp_err_nomem(err, "convolving");
    result = matrix + n * depth;
    gather_rows(v, begin, n, group, matrix);
    g = (struct rp_gemm){.batch = 1,
                         .m = n,
                         .n = outputs,
                         .k = depth,
                         .a = matrix,
                         .b = v->w + group * outputs,
                         .c = result,
                         .a_row = depth,
                         .a_column = 1,
                         .b_row = v->all_outputs,
                         .b_column = 1};
    code = rp_gemm_run(&g, NULL, NULL, err);
    for (int64_t i = 0; i < n && code == RP_OK; i++)
        memcpy(v->y + (begin + i) * v->all_outputs + group * outputs, result + i * outputs,
               (size_t)outputs * sizeof *result);
    free(matrix);
    return code;
}

/* Dimensions in the order batch, spatial, features (of the kernel: spatial, input, output). */
static void orders(const struct rp_conv_dims *d, uint32_t *in, uint32_t *kernel, uint32_t *out)
{
    size_t n = d->nspatial;

    in[0] = (uint32_t)d->input_batch;
    in[n + 1] = (uint32_t)d->input_feature;
    kernel[n] = (uint32_t)d->kernel_input;
    kernel[n + 1] = (uint32_t)d->kernel_output;
    out[d->output_batch] = 0;
    out[d->output_feature] = (uint32_t)n + 1;
    for (size_t i = 0; i < n; i++) {
        in[i + 1] = (uint32_t)d->input_spatial[i];
        kernel[i] = (uint32_t)d->kernel_spatial[i];
        out[d->output_spatial[i]] = (uint32_t)i + 1;
    }
}

static void sizes(const struct rp_conv *c, const struct rp_tensor *in,
                  const struct rp_tensor *kernel, const struct rp_value_shape *out, struct conv *v)
{
    memset(v, 0, sizeof *v);
    v->c = c;
    v->n = c->dims.nspatial;
    v->positions = v->taps = 1;
    for (size_t i = 0; i < v->n; i++) {
        v->in[i] = in->dims[c->dims.input_spatial[i]];
        v->window[i] = kernel->dims[c->dims.kernel_spatial[i]];
        v->out[i] = out->dims[c->dims.output_spatial[i]];
        v->positions *= v->out[i];
        v->taps *= v->window[i];
    }
    v->batch = in->dims[c->dims.input_batch];
    v->groups = c->feature_groups;
    v->all_features = in->dims[c->dims.input_feature];
    v->features = v->all_features / v->groups;
    v->all_outputs = out->dims[c->dims.output_feature];
    v->outputs = v->all_outputs / v->groups;
    v->rows = ROWS;
    while (v->rows > 8 && v->rows * v->taps * v->features > 1 << 20)
        v->rows /= 2;
    v->blocks = (size_t)((v->batch * v->positions + v->rows - 1) / v->rows);
}

/* Reversed windows: the kernel is turned instead. */
static enum rp_code turn_kernel(const struct rp_conv *c, struct rp_tensor *kernel,
                                struct rp_tensor **out, struct rp_err *err)
{
    struct rp_strided s = {.unit = kernel->unit, .rank = kernel->rank};
    int64_t begin = 0;

    RP_TRY(rp_tensor_new(kernel->elem, kernel->dims, kernel->rank, out, err));
    memcpy(s.dims, kernel->dims, sizeof s.dims);
    rp_strides(kernel->dims, kernel->rank, s.to);
    rp_strides(kernel->dims, kernel->rank, s.from);
    for (size_t i = 0; i < c->dims.nspatial; i++)
        if (c->window.dim[i].reversal) { /* spatial dimensions stand first here */
            begin += s.from[i] * (s.dims[i] - 1);
            s.from[i] = -s.from[i];
        }
    rp_strided_copy(&s, (*out)->data, kernel->data + begin * (int64_t)kernel->unit);
    return RP_OK;
}

static enum rp_code prepare_side(struct rp_tensor *t, const uint32_t *perm, struct rp_tensor **out,
                                 struct rp_err *err)
{
    bool same = true;

    for (uint32_t i = 0; i < t->rank; i++)
        same &= perm[i] == i;
    return side(t, perm, same, out, err);
}

static enum rp_code convolve(struct conv *v, struct rp_pool *pool, const uint32_t *back,
                             const struct rp_value_shape *shape, struct rp_tensor **out,
                             struct rp_err *err)
{
    int64_t dims[RP_TENSOR_RANK];
    struct rp_tensor *y = NULL, *turned = NULL;
    size_t jobs = v->blocks * (size_t)v->groups;
    enum rp_code code;

    dims[0] = v->batch;
    memcpy(dims + 1, v->out, v->n * sizeof *dims);
    dims[v->n + 1] = v->all_outputs;
    RP_TRY(rp_tensor_new(RP_ELEM_F32, dims, v->n + 2, &y, err));
    v->y = (float *)(void *)y->data;
    code = RP_OK;
    if (pool && jobs > 1)
        code = rp_pool_each(pool, jobs, conv_job, v, err);
    else
        for (size_t i = 0; i < jobs && code == RP_OK; i++)
            code = conv_job(v, i, err);
    if (code == RP_OK)
        code = prepare_side(y, back, &turned, err);
    if (code == RP_OK)
        code = rp_tensor_as(turned, shape->elem, out, err);
    rp_tensor_drop(y);
    rp_tensor_drop(turned);
    return code;
}

enum rp_code rp_fast_conv(struct rp_eval *e, const struct rp_node *node,
                          struct rp_tensor *const *in, struct rp_tensor **out, struct rp_err *err)
{
    const struct rp_conv *c = node->attrs;
    uint32_t order[3][RP_TENSOR_RANK];
    struct rp_tensor *x = NULL, *w = NULL, *turned = NULL;
    bool reversed = false;
    struct conv v;
    enum rp_code code;

    sizes(c, in[0], in[1], node->shape, &v);
    if (!narrow_float(in[0]->elem) || !narrow_float(in[1]->elem) || c->batch_groups != 1 ||
        !narrow_float(node->shape->elem) || !v.taps || !v.features || !node->shape->n || !in[0]->n)
        return e->plan->reference[RP_OP_CONVOLUTION]->run(e, node, in, out, err);
    orders(&c->dims, order[0], order[1], order[2]);
    code = prepare_side(in[0], order[0], &x, err);
    if (code == RP_OK)
        code = prepare_side(in[1], order[1], &w, err);
    for (size_t i = 0; i < v.n; i++)
        reversed |= c->window.dim[i].reversal;
    if (code == RP_OK && reversed) {
        code = turn_kernel(c, w, &turned, err);
        rp_tensor_drop(w);
        w = turned;
    }
    if (code == RP_OK) {
        v.x = (const float *)(void *)x->data;
        v.w = (const float *)(void *)w->data;
        code = convolve(&v, e->pool, order[2], node->shape, out, err);
    }
    rp_tensor_drop(x);
    rp_tensor_drop(w);
    return code;
}
