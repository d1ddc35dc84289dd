/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions of f32, straight from the arrays as they lie: nothing is gathered into a matrix. A
 * result is a sum over steps (a place of the window and an input feature), and each operand's place
 * is the sum of two offsets, so a block of results needs one list of steps for all of them:
 *
 *   y[row][o] = sum over steps s of  x[x_of(row) + s.a] * w[s.b + o]
 *
 * A kernel keeps a block of rows and up to 32 output features in registers. Any order of the
 * dimensions is taken; only where output features do not stand last, w or y are turned. Padding is
 * a copy of x with zeros around it, once. Where the input is dilated (the gradient of a strided
 * convolution), results are taken apart by which places of the window meet an element at all, so
 * that nothing is multiplied with the zeros between. Rows are jobs of the pool. Types narrower than
 * f32 are widened and the result is rounded once.
 */
#include "base/threads.h"
#include "exec/dot.h"
#include "exec/fast_kernels.h"
#include "exec/lanes.h"
#include "exec/reduce.h"
#include "exec/strided.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH     512 /* steps at a time: their part of w stays in the cache */
#define MOST_ROWS 8
#define MOST_WIDE 32
#define IN_PLACE  64     /* output features up to which w is read where it lies */
#define JOB_TERMS 131072 /* multiplications of a vector that are worth a job */

/* ---- kernels ---- */

struct step {
    uint32_t a, b;
};

typedef float v8 __attribute__((vector_size(32), aligned(4)));
typedef float v16 __attribute__((vector_size(64), aligned(4)));

/* ROWS rows of VECS vectors: the sum over n steps, added to c unless it is the first part. */
#define KERNEL(name, attribute, ROWS, VEC, LANES, VECS)                                          \
    attribute static void name(size_t n, const struct step *step, const float *const *a,         \
                               const float *b, float *const *c, bool first)                      \
    {                                                                                            \
        VEC acc[ROWS][VECS];                                                                     \
                                                                                                 \
        for (int r = 0; r < ROWS; r++)                                                           \
            for (int v = 0; v < VECS; v++)                                                       \
                acc[r][v] = first ? (VEC){0} : *(const VEC *)(const void *)(c[r] + v * (LANES)); \
        for (size_t i = 0; i < n; i++) {                                                         \
            const float *w = b + step[i].b;                                                      \
            size_t at = step[i].a;                                                               \
            VEC row[VECS];                                                                       \
                                                                                                 \
            for (int v = 0; v < VECS; v++)                                                       \
                row[v] = *(const VEC *)(const void *)(w + v * (LANES));                          \
            for (int r = 0; r < ROWS; r++)                                                       \
                for (int v = 0; v < VECS; v++)                                                   \
                    acc[r][v] += a[r][at] * row[v];                                              \
        }                                                                                        \
        for (int r = 0; r < ROWS; r++)                                                           \
            for (int v = 0; v < VECS; v++)                                                       \
                *(VEC *)(void *)(c[r] + v * (LANES)) = acc[r][v];                                \
    }

#define UNROLL __attribute__((optimize("O3")))
KERNEL(plain_8, UNROLL, 4, v8, 8, 1)
#if defined(__x86_64__)
#define AVX2   __attribute__((target("avx2,fma"), optimize("O3")))
#define AVX512 __attribute__((target("avx512f,avx512vl"), optimize("O3")))
KERNEL(avx2_8, AVX2, 8, v8, 8, 1)
KERNEL(avx2_16, AVX2, 6, v8, 8, 2)
KERNEL(avx512_8, AVX512, 8, v8, 8, 1)
KERNEL(avx512_16, AVX512, 8, v16, 16, 1)
KERNEL(avx512_32, AVX512, 8, v16, 16, 2)
#else
KERNEL(plain_16, UNROLL, 4, v8, 8, 2)
#endif

typedef void kernel_fn(size_t n, const struct step *step, const float *const *a, const float *b,
                       float *const *c, bool first);
struct kernel {
    kernel_fn *fn;
    int64_t rows, wide; /* of its block */
};

/* The narrowest block for n output features, or the widest that there is. */
static struct kernel kernel_for(int64_t n)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
        return n <= 8    ? (struct kernel){avx512_8, 8, 8}
               : n <= 16 ? (struct kernel){avx512_16, 8, 16}
                         : (struct kernel){avx512_32, 8, 32};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return n <= 8 ? (struct kernel){avx2_8, 8, 8} : (struct kernel){avx2_16, 6, 16};
    return (struct kernel){plain_8, 4, 8};
#else
    return n <= 8 ? (struct kernel){plain_8, 4, 8} : (struct kernel){plain_16, 4, 16};
#endif
}

/* ---- geometry ---- */

/* One spatial dimension. Results p = phase + phases * t meet the input at
   (phase * stride - low + k * dilation) / base + t * advance, where that is a whole number. */
struct spatial {
    int64_t in, out, window;
    int64_t stride, low, dilation, base;
    int64_t phases, advance;
    bool reversal;
    int64_t zeros; /* that stand in front of the padded input */
    int64_t padded;
    int64_t x_step, w_step, y_step; /* strides in elements */
};

struct conv {
    size_t n; /* spatial dimensions */
    struct spatial dim[RP_WINDOW_DIMS];
    int64_t groups, batch, features, outputs; /* of one group; batch: of the result */
    int64_t x_batch, x_feature, x_group;      /* strides */
    int64_t w_feature, w_output;
    int64_t y_batch;
    const float *x, *w;
    float *y;
    struct kernel kernel;
    bool packed;         /* w is [group][panel][step][wide] */
    int64_t taps, terms; /* places of the window; times features */
};

static int64_t gcd(int64_t a, int64_t b)
{
    return b ? gcd(b, a % b) : a;
}

/* The place of the input that window place k of the phase's first result meets; false: none. */
static bool meets(const struct spatial *d, int64_t phase, int64_t k, int64_t *at)
{
    int64_t i = phase * d->stride - d->low + k * d->dilation;

    *at = i / d->base;
    return i % d->base == 0;
}

/* Results of a phase. */
static int64_t results_of(const struct spatial *d, int64_t phase)
{
    return phase < d->out ? (d->out - phase + d->phases - 1) / d->phases : 0;
}

static void spatial_begin(struct spatial *d)
{
    int64_t least = 0, most = d->in - 1, at;

    d->phases = d->base / gcd(d->stride, d->base);
    d->advance = d->phases * d->stride / d->base;
    for (int64_t phase = 0; phase < d->phases && phase < d->out; phase++)
        for (int64_t k = 0; k < d->window; k++)
            if (meets(d, phase, k, &at)) {
                int64_t last = at + (results_of(d, phase) - 1) * d->advance;

                least = at < least ? at : least;
                most = last > most ? last : most;
            }
    d->zeros = -least;
    d->padded = most + 1 - least;
}

static void sizes(const struct rp_conv *c, const struct rp_tensor *x, const struct rp_tensor *w,
                  const struct rp_value_shape *y, struct conv *v)
{
    const struct rp_conv_dims *d = &c->dims;

    memset(v, 0, sizeof *v);
    v->n = d->nspatial;
    v->taps = 1;
    for (size_t i = 0; i < v->n; i++) {
        const struct rp_window_dim *from = &c->window.dim[i];

        v->dim[i] = (struct spatial){.in = x->dims[d->input_spatial[i]],
                                     .out = y->dims[d->output_spatial[i]],
                                     .window = w->dims[d->kernel_spatial[i]],
                                     .stride = from->stride,
                                     .low = from->pad_low,
                                     .dilation = from->window_dilation,
                                     .base = from->base_dilation,
                                     .reversal = from->reversal};
        spatial_begin(&v->dim[i]);
        v->taps *= v->dim[i].window;
    }
    v->groups = c->feature_groups * c->batch_groups;
    v->batch = y->dims[d->output_batch];
    v->features = w->dims[d->kernel_input];
    v->outputs = y->dims[d->output_feature] / v->groups;
    v->terms = v->taps * v->features;
    v->kernel = kernel_for(v->outputs);
}

/* ---- operands ---- */

/* x with zeros around it, in its own order of dimensions; itself where none are needed. */
static enum rp_code pad(const struct conv *v, const struct rp_conv_dims *dims, struct rp_tensor *x,
                        struct rp_pool *pool, struct rp_tensor **out, struct rp_err *err)
{
    struct rp_strided s = {.unit = sizeof(float), .rank = x->rank};
    int64_t padded[RP_TENSOR_RANK], begin = 0;
    bool same = true;

    memcpy(padded, x->dims, x->rank * sizeof *padded);
    for (size_t i = 0; i < v->n; i++) {
        padded[dims->input_spatial[i]] = v->dim[i].padded;
        same &= v->dim[i].padded == v->dim[i].in;
    }
    if (same) {
        *out = rp_tensor_keep(x);
        return RP_OK;
    }
    RP_TRY(rp_tensor_new(RP_ELEM_F32, padded, x->rank, out, err));
    memset((*out)->data, 0, rp_tensor_bytes(*out));
    memcpy(s.dims, x->dims, x->rank * sizeof *s.dims);
    rp_strides(x->dims, x->rank, s.from);
    rp_strides(padded, x->rank, s.to);
    for (size_t i = 0; i < v->n; i++)
        begin += v->dim[i].zeros * s.to[dims->input_spatial[i]];
    return rp_strided_spread(&s, (*out)->data + begin * (int64_t)sizeof(float), x->data, pool, err);
}

/* Offset of step `tap` (counted over the window), feature 0, in w as it lies. */
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

static int64_t panels(const struct conv *v)
{
    return (v->outputs + v->kernel.wide - 1) / v->kernel.wide;
}

/* w in panels of `wide` output features, where it cannot be read as it is. */
static enum rp_code pack(struct conv *v, struct rp_tensor **out, struct rp_err *err)
{
    int64_t wide = v->kernel.wide, n = panels(v);
    const float *w = v->w;
    float *to;

    *out = NULL;
    v->packed = v->w_output != 1 || v->outputs % wide || v->outputs > IN_PLACE;
    if (!v->packed)
        return RP_OK;
    RP_TRY(rp_tensor_new(RP_ELEM_F32, (int64_t[]){v->groups, n, v->terms, wide}, 4, out, err));
    to = (float *)(void *)(*out)->data;
    for (int64_t g = 0; g < v->groups; g++)
        for (int64_t p = 0; p < n; p++, to += v->terms * wide) {
            int64_t have = v->outputs - p * wide < wide ? v->outputs - p * wide : wide;

            pack_panel(v, w + (g * v->outputs + p * wide) * v->w_output, have, to);
        }
    v->w = (const float *)(void *)(*out)->data;
    return RP_OK;
}

/* ---- running ---- */

struct phase_run {
    const struct conv *v;
    const struct step *steps;
    size_t nsteps;
    int64_t phase[RP_WINDOW_DIMS], count[RP_WINDOW_DIMS + 1]; /* results: batch, spatial */
    int64_t x_step[RP_WINDOW_DIMS + 1], y_step[RP_WINDOW_DIMS + 1];
    int64_t x_first, y_first;
    int64_t rows, job_rows;
    size_t blocks;
};

/* A dimension that is summed over: where its elements stand in x (below 0: they meet nothing) and
   in w. */
struct axis {
    int64_t size, w_first, w_step, *x;
};

static int by_step(const void *a, const void *b)
{
    int64_t x = llabs(((const struct axis *)a)->w_step),
            y = llabs(((const struct axis *)b)->w_step);

    return (x < y) - (x > y);
}

/* The axes of a phase, in the order of w. room: one for each element of each. */
static void axes_of(const struct phase_run *r, struct axis *axis, int64_t *room)
{
    const struct conv *v = r->v;
    int64_t step = v->kernel.wide;

    axis[v->n] = (struct axis){v->features, 0, v->packed ? step : v->w_feature, room};
    for (int64_t f = 0; f < v->features; f++)
        *room++ = f * v->x_feature;
    step *= v->features;
    for (size_t i = v->n; i-- > 0; step *= v->dim[i].window) {
        const struct spatial *d = &v->dim[i];
        int64_t at;

        axis[i] = (struct axis){d->window, 0, v->packed ? step : d->w_step, room};
        if (!v->packed && d->reversal) {
            axis[i].w_first = (d->window - 1) * d->w_step;
            axis[i].w_step = -d->w_step;
        }
        for (int64_t k = 0; k < d->window; k++)
            *room++ = meets(d, r->phase[i], k, &at) ? (at + d->zeros) * d->x_step : -1;
    }
    qsort(axis, v->n + 1, sizeof *axis, by_step);
}

static size_t make_steps(const struct axis *axis, size_t n, struct step *to)
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
                to[have++] = (struct step){(uint32_t)(x + last->x[k]), (uint32_t)w};
    } while (rp_index_next(index, size, n - 1));
    return have;
}

/* The next rows' places in x and y. */
struct cursor {
    int64_t index[RP_WINDOW_DIMS + 1], x, y;
};

static void cursor_begin(const struct phase_run *r, int64_t row, struct cursor *c)
{
    c->x = r->x_first;
    c->y = r->y_first;
    for (size_t i = r->v->n + 1; i-- > 0; row /= r->count[i]) {
        c->index[i] = row % r->count[i];
        c->x += c->index[i] * r->x_step[i];
        c->y += c->index[i] * r->y_step[i];
    }
}

static void cursor_next(const struct phase_run *r, struct cursor *c)
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

/* One block of rows and one panel: where it is not whole, through a corner of its own. */
static void block(const struct phase_run *r, size_t from, size_t n, const float *const *a,
                  const float *b, float *const *c, int64_t rows, int64_t columns)
{
    const struct kernel *k = &r->v->kernel;
    float corner[MOST_ROWS * MOST_WIDE];
    float *to[MOST_ROWS];
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

/* Rows [begin, end) of one panel with one part of the steps. */
static void part(const struct phase_run *r, int64_t group, int64_t panel, size_t from, size_t n,
                 int64_t begin, int64_t end)
{
    const struct conv *v = r->v;
    int64_t wide = v->kernel.wide, o = panel * wide;
    int64_t columns = v->outputs - o < wide ? v->outputs - o : wide;
    const float *a[MOST_ROWS], *x = v->x + group * v->x_group;
    const float *b = v->packed ? v->w + (group * panels(v) + panel) * v->terms * wide
                               : v->w + group * v->outputs + o;
    float *c[MOST_ROWS], *y = v->y + group * v->outputs + o;
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
        block(r, from, n, a, b, c, rows, columns);
    }
}

static enum rp_code rows_job(void *user, size_t job, struct rp_err *err)
{
    const struct phase_run *r = user;
    int64_t group = (int64_t)(job / r->blocks), begin = (int64_t)(job % r->blocks) * r->job_rows;
    int64_t end = r->rows - begin < r->job_rows ? r->rows : begin + r->job_rows;
    size_t from = 0;

    (void)err;
    do {
        size_t n = r->nsteps - from < DEPTH ? r->nsteps - from : DEPTH;

        for (int64_t p = 0; p < panels(r->v); p++)
            part(r, group, p, from, n, begin, end);
        from += n;
    } while (from < r->nsteps);
    return RP_OK;
}

static void phase_begin(const struct conv *v, const int64_t *phase, struct phase_run *r)
{
    int64_t terms;

    memset(r, 0, sizeof *r);
    r->v = v;
    r->rows = r->count[0] = v->batch;
    r->x_step[0] = v->x_batch;
    r->y_step[0] = v->y_batch;
    for (size_t i = 0; i < v->n; i++) {
        const struct spatial *d = &v->dim[i];

        r->phase[i] = phase[i];
        r->count[i + 1] = results_of(d, phase[i]);
        r->rows *= r->count[i + 1];
        r->x_step[i + 1] = d->advance * d->x_step;
        r->y_step[i + 1] = d->phases * d->y_step;
        r->y_first += phase[i] * d->y_step;
    }
    terms = v->terms * panels(v);
    r->job_rows = JOB_TERMS / (terms ? terms : 1);
    if (r->job_rows > r->rows / 2)
        r->job_rows = r->rows / 2;
    r->job_rows = (r->job_rows / v->kernel.rows + 1) * v->kernel.rows;
    r->blocks = (size_t)((r->rows + r->job_rows - 1) / r->job_rows);
}

static enum rp_code run_phase(const struct conv *v, const int64_t *phase, struct step *steps,
                              int64_t *room, struct rp_pool *pool, struct rp_err *err)
{
    struct axis axis[RP_WINDOW_DIMS + 1];
    struct phase_run r;
    size_t jobs;

    phase_begin(v, phase, &r);
    axes_of(&r, axis, room);
    r.steps = steps;
    r.nsteps = make_steps(axis, v->n + 1, steps);
    jobs = r.blocks * (size_t)v->groups;
    if (pool && jobs > 1 && r.rows * v->terms * panels(v) * v->groups > JOB_TERMS / 2)
        return rp_pool_each(pool, jobs, rows_job, &r, err);
    for (size_t i = 0; i < jobs; i++)
        RP_TRY(rows_job(&r, i, err));
    return RP_OK;
}

static enum rp_code convolve(struct conv *v, struct rp_pool *pool, struct rp_err *err)
{
    int64_t phase[RP_WINDOW_DIMS] = {0}, phases[RP_WINDOW_DIMS];
    struct step *steps = malloc((size_t)v->terms * sizeof *steps);
    int64_t places = v->features, *room;
    enum rp_code code = RP_OK;

    for (size_t i = 0; i < v->n; i++) {
        phases[i] = v->dim[i].phases < v->dim[i].out ? v->dim[i].phases : v->dim[i].out;
        places += v->dim[i].window;
    }
    room = malloc((size_t)places * sizeof *room);
    if (!steps || !room)
        code = rp_err_nomem(err, "convolving");
    if (code == RP_OK)
        do
            code = run_phase(v, phase, steps, room, pool, err);
        while (code == RP_OK && rp_index_next(phase, phases, v->n));
    free(steps);
    free(room);
    return code;
}

/* ---- the operation ---- */

static void strides_of(struct conv *v, const struct rp_conv *c, const struct rp_tensor *x,
                       const struct rp_tensor *w, const struct rp_tensor *y, bool y_canonical)
{
    const struct rp_conv_dims *d = &c->dims;
    int64_t sx[RP_TENSOR_RANK], sw[RP_TENSOR_RANK], sy[RP_TENSOR_RANK];

    rp_strides(x->dims, x->rank, sx);
    rp_strides(w->dims, w->rank, sw);
    rp_strides(y->dims, y->rank, sy);
    for (size_t i = 0; i < v->n; i++) {
        v->dim[i].x_step = sx[d->input_spatial[i]];
        v->dim[i].w_step = sw[d->kernel_spatial[i]];
        v->dim[i].y_step = sy[y_canonical ? (int64_t)i + 1 : d->output_spatial[i]];
    }
    v->x_batch = sx[d->input_batch];
    v->x_feature = sx[d->input_feature];
    v->x_group = c->feature_groups > 1 ? v->features * v->x_feature : v->batch * v->x_batch;
    v->w_feature = sw[d->kernel_input];
    v->w_output = sw[d->kernel_output];
    v->y_batch = sy[y_canonical ? 0 : d->output_batch];
    v->x = (const float *)(void *)x->data;
    v->w = (const float *)(void *)w->data;
    v->y = (float *)(void *)y->data;
}

/* The result as batch, spatial, features: where features do not stand last in it. */
static void canonical(const struct conv *v, const struct rp_conv_dims *d, int64_t *dims,
                      uint32_t *back)
{
    dims[0] = v->batch;
    back[d->output_batch] = 0;
    for (size_t i = 0; i < v->n; i++) {
        dims[i + 1] = v->dim[i].out;
        back[d->output_spatial[i]] = (uint32_t)i + 1;
    }
    dims[v->n + 1] = v->outputs * v->groups;
    back[d->output_feature] = (uint32_t)v->n + 1;
}

static enum rp_code run(struct rp_eval *e, const struct rp_node *node, struct conv *v,
                        struct rp_tensor *x, struct rp_tensor *w, struct rp_tensor **out,
                        struct rp_err *err)
{
    const struct rp_conv *c = node->attrs;
    struct rp_tensor *y = NULL, *packed = NULL, *turned = NULL;
    bool turn = c->dims.output_feature != (int64_t)v->n + 1;
    int64_t dims[RP_TENSOR_RANK];
    uint32_t back[RP_TENSOR_RANK];
    enum rp_code code;

    canonical(v, &c->dims, dims, back);
    code = rp_tensor_new(RP_ELEM_F32, turn ? dims : node->shape->dims, v->n + 2, &y, err);
    if (code == RP_OK) {
        strides_of(v, c, x, w, y, turn);
        code = pack(v, &packed, err);
    }
    if (code == RP_OK)
        code = convolve(v, e->pool, err);
    if (code == RP_OK && turn)
        code = rp_tensor_turn(y, back, e->pool, &turned, err);
    if (code == RP_OK)
        code = rp_tensor_as(turn ? turned : y, node->shape->elem, out, err);
    rp_tensor_drop(y);
    rp_tensor_drop(packed);
    rp_tensor_drop(turned);
    return code;
}

/* What the reference must do: other types, nothing to sum, and sizes beyond the offsets of steps or
   out of all proportion to the arrays. */
static bool taken(const struct conv *v, const struct rp_node *node, struct rp_tensor *const *in)
{
    double padded = (double)v->batch * (double)v->groups * (double)v->features;

    for (size_t i = 0; i < 2; i++)
        if (in[i]->elem != RP_ELEM_F32 && !rp_elem_is_small_float(in[i]->elem))
            return false;
    for (size_t i = 0; i < v->n; i++)
        padded *= (double)v->dim[i].padded;
    return (node->shape->elem == RP_ELEM_F32 || rp_elem_is_small_float(node->shape->elem)) &&
           padded < UINT32_MAX && in[1]->n * MOST_WIDE < UINT32_MAX &&
           padded < 1e6 + 16 * ((double)in[0]->n + (double)node->shape->n);
}

enum rp_code rp_fast_conv(struct rp_eval *e, const struct rp_node *node,
                          struct rp_tensor *const *in, struct rp_tensor **out, struct rp_err *err)
{
    const struct rp_conv *c = node->attrs;
    struct rp_tensor *wide = NULL, *x = NULL, *w = NULL;
    struct conv v;
    enum rp_code code;

    if (!in[0]->n || !in[1]->n || !node->shape->n ||
        (sizes(c, in[0], in[1], node->shape, &v), !taken(&v, node, in)))
        return e->plan->reference[RP_OP_CONVOLUTION]->run(e, node, in, out, err);
    code = rp_tensor_wide(in[0], &wide, err);
    if (code == RP_OK)
        code = pad(&v, &c->dims, wide, e->pool, &x, err);
    if (code == RP_OK)
        code = rp_tensor_wide(in[1], &w, err);
    if (code == RP_OK)
        code = run(e, node, &v, x, w, out, err);
    rp_tensor_drop(wide);
    rp_tensor_drop(x);
    rp_tensor_drop(w);
    return code;
}
