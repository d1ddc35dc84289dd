/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes Fourier transforms of f32 for sixteen lines at a time, one in each lane of a vector, so
 * that every step is the same for all of them and nothing is exchanged between lanes. Lines are
 * first transposed into [element][real, imaginary][lane], and back afterwards. The steps are those
 * of ref/fft.c; factors that are odd use the symmetry of their roots. Two real lines are one
 * complex line, whose transform is taken apart afterwards. Roots are computed once, when the
 * program is planned. Groups of lines are jobs of the pool. Few lines, long lines and f64 are left
 * to the reference.
 */
#include "exec/ref/fft.h"
#include "base/threads.h"
#include "exec/eval/lanes.h"
#include "exec/eval/transpose.h"
#include "exec/fast/kernels.h"
#include "program/opcodes.h"

#include <stdlib.h>

#define LANES      ((size_t)16)
#define FEW_LINES  4
#define MOST       65536 /* longest line in numbers; memory takes this times the lanes */
#define FACTOR_MAX 64

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

struct pair {
    lanes re, im;
};

/* wave: one length and direction; pairs of f32 are (cosine, sine). */
struct wave {
    size_t n, factor[RP_FFT_FACTORS];
    int sign;
    float *roots, *chirp, *filter;
    struct wave *power; /* of a convolution */
};

struct fast_fft {
    struct rp_fft_attr base;
    struct wave *wave[RP_TENSOR_RANK]; /* for the last dimension, the one before it ...; NULL in the
                                          first: the reference does it */
};

/* ---- planning ---- */

static float *narrow_roots(struct rp_plan *plan, const rp_c128 *from, size_t n)
{
    float *to = from ? RP_ARENA_NEW(&plan->arena, float, 2 * n) : NULL;

    for (size_t i = 0; to && i < n; i++) {
        to[2 * i] = (float)creal(from[i]);
        to[2 * i + 1] = (float)cimag(from[i]);
    }
    return to;
}

static struct wave *wave_copy(struct rp_plan *plan, const struct rp_fft *f)
{
    struct wave *w = RP_NODE_NEW(plan, struct wave);

    if (!w)
        return NULL;
    *w = (struct wave){.n = f->n, .sign = f->sign};
    memcpy(w->factor, f->factor, sizeof w->factor);
    w->roots = narrow_roots(plan, f->roots, f->n);
    w->chirp = narrow_roots(plan, f->chirp, f->n);
    w->filter = f->power ? narrow_roots(plan, f->filter, f->power->n) : NULL;
    return w;
}

static enum rp_code wave_new(struct rp_plan *plan, size_t n, int sign, struct wave **out,
                             struct rp_err *err)
{
    RP_SCOPED(rp_fft_release) struct rp_fft f = {0};

    RP_TRY(rp_fft_init(&f, n, sign, err));
    *out = wave_copy(plan, &f);
    if (*out && f.power)
        (*out)->power = wave_copy(plan, f.power);
    if (!*out || (f.power && !(*out)->power))
        return rp_err_nomem(err, "planning");
    return RP_OK;
}

RP_PREPARE(rp_fast_fft_prepare)
{
    struct fast_fft *f = RP_NODE_NEW(plan, struct fast_fft);
    const struct rp_value_shape *in = rp_node_operand(plan, node, 0);
    size_t least = 1;

    RP_TRY(rp_err_need(f, err, "planning"));
    RP_TRY(rp_fft_prepare(plan, node, err));
    f->base = *(const struct rp_fft_attr *)node->attrs;
    node->attrs = f; /* begins with the reference's attributes */
    for (size_t k = 0; k < f->base.n; k++) {
        size_t n = (size_t)f->base.length[k];

        least = n > least ? n : least;
    }
    if ((in->elem != RP_ELEM_F32 && in->elem != RP_ELEM_C64) || least > MOST ||
        node->shape->n / least < FEW_LINES)
        return RP_OK;
    for (size_t k = 0; k < f->base.n; k++)
        RP_TRY(wave_new(plan, (size_t)f->base.length[f->base.n - 1 - k], rp_fft_sign(&f->base),
                        &f->wave[k], err));
    return RP_OK;
}

/* ---- transforming ---- */

#define TIMES(to, from, w)                         \
    do {                                           \
        struct pair x_ = (from);                   \
                                                   \
        (to).re = x_.re * (w)[0] - x_.im * (w)[1]; \
        (to).im = x_.re * (w)[1] + x_.im * (w)[0]; \
    } while (0)

RP_CLONES static void join_two(const float *roots, struct pair *out, size_t m, size_t step)
{
    for (size_t k = 0; k < m; k++) {
        struct pair a = out[k], b;

        TIMES(b, out[m + k], roots + 2 * k * step);
        out[k].re = a.re + b.re;
        out[k].im = a.im + b.im;
        out[m + k].re = a.re - b.re;
        out[m + k].im = a.im - b.im;
    }
}

RP_CLONES static void join_four(const float *roots, float sign, struct pair *out, size_t m,
                                size_t step)
{
    for (size_t k = 0; k < m; k++) {
        struct pair a = out[k], b, c, d;

        TIMES(b, out[m + k], roots + 2 * k * step);
        TIMES(c, out[2 * m + k], roots + 4 * k * step);
        TIMES(d, out[3 * m + k], roots + 6 * k * step);
        lanes even = a.re + c.re;
        lanes even_i = a.im + c.im;
        lanes odd = a.re - c.re;
        lanes odd_i = a.im - c.im;
        lanes sum = b.re + d.re;
        lanes sum_i = b.im + d.im;
        lanes gap = sign * (b.re - d.re);
        lanes gap_i = sign * (b.im - d.im);
        out[k].re = even + sum;
        out[k].im = even_i + sum_i;
        out[m + k].re = odd - gap_i;
        out[m + k].im = odd_i + gap;
        out[2 * m + k].re = even - sum;
        out[2 * m + k].im = even_i - sum_i;
        out[3 * m + k].re = odd + gap_i;
        out[3 * m + k].im = odd_i - gap;
    }
}

/* Joins p numbers, p odd, of which the q-th goes to out[q * m]: terms q and p - q have conjugate
   roots. */
RP_CLONES static void join_odd_one(const float *roots, size_t apart, struct pair *out, size_t p,
                                   size_t m, const struct pair *sum, const struct pair *gap)
{
    struct pair first = out[0];

    for (size_t r = 1; r <= p / 2; r++) {
        struct pair c = first, s = {.re = {0}, .im = {0}};

        for (size_t q = 1, at = r; q <= p / 2; q++, at += r) {
            at -= at >= p ? p : 0;
            const float *w = roots + 2 * at * apart;
            c.re += w[0] * sum[q].re;
            c.im += w[0] * sum[q].im;
            s.re += w[1] * gap[q].re;
            s.im += w[1] * gap[q].im;
        }
        out[r * m].re = c.re - s.im;
        out[r * m].im = c.im + s.re;
        out[(p - r) * m].re = c.re + s.im;
        out[(p - r) * m].im = c.im - s.re;
    }
    for (size_t q = 1; q <= p / 2; q++) {
        first.re += sum[q].re;
        first.im += sum[q].im;
    }
    out[0] = first;
}

RP_CLONES static void join_odd(const float *roots, size_t n, struct pair *out, size_t p, size_t m,
                               size_t step)
{
    struct pair sum[FACTOR_MAX / 2 + 1], gap[FACTOR_MAX / 2 + 1];

    for (size_t k = 0; k < m; k++) {
        for (size_t q = 1; q <= p / 2; q++) {
            struct pair a, b;

            TIMES(a, out[q * m + k], roots + 2 * q * k * step);
            TIMES(b, out[(p - q) * m + k], roots + 2 * (p - q) * k * step);
            sum[q].re = a.re + b.re;
            sum[q].im = a.im + b.im;
            gap[q].re = a.re - b.re;
            gap[q].im = a.im - b.im;
        }
        join_odd_one(roots, n / p, out + k, p, m, sum, gap);
    }
}

/* Transforms n numbers, every `step`-th, into out; there is one level for each factor. */
static void transform_lanes(const struct wave *w, const struct pair *in, size_t step, size_t n,
                            size_t level, struct pair *out)
{
    size_t p = n > 1 ? w->factor[level] : 1, m = n / p;

    if (m == 1)
        for (size_t q = 0; q < p; q++)
            out[q] = in[q * step];
    else
        for (size_t q = 0; q < p; q++)
            transform_lanes(w, in + q * step, step * p, m, level + 1, out + q * m);
    if (p == 2)
        join_two(w->roots, out, m, step);
    else if (p == 4)
        join_four(w->roots, (float)w->sign, out, m, step);
    else if (p > 1)
        join_odd(w->roots, w->n, out, p, m, step);
}

RP_CLONES_FEW static void times_all(const struct pair *in, const float *w, float sign, float scale,
                                    size_t n, struct pair *out)
{
    for (size_t k = 0; k < n; k++) {
        TIMES(out[k], in[k], w + 2 * k);
        out[k].re *= scale;
        out[k].im *= sign * scale;
    }
}

/* The input is overwritten. */
static void wave_run(const struct wave *w, struct pair *in, struct pair *out, struct pair *work)
{
    size_t m = w->power ? w->power->n : 0;

    if (!w->power) {
        transform_lanes(w, in, 1, w->n, 0, out);
        return;
    }
    times_all(in, w->chirp, 1, 1, w->n, work);
    memset(work + w->n, 0, (m - w->n) * sizeof *work);
    transform_lanes(w->power, work, 1, m, 0, work + m);
    /* the inverse is the forward transform of conjugates */
    times_all(work + m, w->filter, -1, 1, m, work);
    transform_lanes(w->power, work, 1, m, 0, work + m);
    for (size_t k = 0; k < w->n; k++)
        work[m + k].im = -work[m + k].im;
    times_all(work + m, w->chirp, 1, 1 / (float)m, w->n, out);
}

/* ---- lines and lanes ---- */

/* Transposes lines of f32 numbers, `line` floats apart, into lanes (number c of line j is lane j of
   row c, rows `height` floats apart), or lanes into lines. */
static void turn(const float *in, size_t line, size_t lines, size_t n, float *rows, size_t height)
{
    for (size_t j = 0; j < lines; j += 4)
        for (size_t c = 0; c < n; c += 4)
            if (j + 4 <= lines && c + 4 <= n)
                rp_turn_four(in + j * line + c, (int64_t)line, rows + c * height + j,
                             (int64_t)height);
            else
                for (size_t y = j; y < lines && y < j + 4; y++)
                    for (size_t x = c; x < n && x < c + 4; x++)
                        rows[x * height + y] = in[y * line + x];
}

/* The same for adjacent complex numbers: line j begins at number j, and its numbers are `step`
   numbers apart. Whole vectors have a loop of their own. */
static inline __attribute__((always_inline)) void split_row(const float *in, size_t n, float *row)
{
    for (size_t j = 0; j < n; j++) {
        row[j] = in[2 * j];
        row[LANES + j] = in[2 * j + 1];
    }
}

static inline __attribute__((always_inline)) void join_row(const float *row, size_t n, float *out)
{
    for (size_t j = 0; j < n; j++) {
        out[2 * j] = row[j];
        out[2 * j + 1] = row[LANES + j];
    }
}

RP_CLONES_FEW static void split_in(const float *restrict in, size_t step, size_t lines, size_t n,
                                   float *restrict rows)
{
    for (size_t k = 0; k < n; k++, in += 2 * step, rows += 2 * LANES)
        if (lines == LANES)
            split_row(in, LANES, rows);
        else
            split_row(in, lines, rows);
}

RP_CLONES_FEW static void split_out(const float *restrict rows, size_t step, size_t lines, size_t n,
                                    float *restrict out)
{
    for (size_t k = 0; k < n; k++, out += 2 * step, rows += 2 * LANES)
        if (lines == LANES)
            join_row(rows, LANES, out);
        else
            join_row(rows, lines, out);
}

struct fft_run {
    const struct wave *w;
    const float *in;
    float *out;
    size_t lines, inner,
        groups; /* inner: distance between numbers of a line; groups: in each block */
    enum rp_fft_type type;
};

static void scale_pairs(const struct wave *w, struct pair *x)
{
    float scale = 1 / (float)w->n;

    for (size_t k = 0; w->sign > 0 && k < w->n; k++) {
        x[k].re *= scale;
        x[k].im *= scale;
    }
}

/* room: twice n + 2 pairs, and the work space of a convolution. */
static enum rp_code fft_room(const struct wave *w, struct pair **room, struct rp_err *err)
{
    size_t pairs = 2 * (w->n + 2) + (w->power ? 2 * w->power->n : 0);

    *room = aligned_alloc(64, pairs * sizeof **room);
    RP_TRY(rp_err_need(*room, err, "transforming"));
    memset(*room, 0, (w->n + 2) * sizeof **room); /* lanes without a line */
    return RP_OK;
}

static RP_JOB(complex_group)
{
    const struct fft_run *r = user;
    size_t n = r->w->n, block = job / r->groups, first = job % r->groups * LANES;
    size_t have = r->inner == 1 ? r->lines : r->inner;
    size_t at = block * n * r->inner + first * (r->inner == 1 ? n : 1);
    size_t lines = have - first < LANES ? have - first : LANES;
    struct pair *room;

    RP_TRY(fft_room(r->w, &room, err));
    struct pair *done = room + n + 2;
    if (r->inner == 1)
        turn(r->in + 2 * at, 2 * n, lines, 2 * n, (float *)room, LANES);
    else
        split_in(r->in + 2 * at, r->inner, lines, n, (float *)room);
    wave_run(r->w, room, done, done + n + 2);
    scale_pairs(r->w, done);
    if (r->inner == 1)
        turn((float *)done, LANES, 2 * n, lines, r->out + 2 * at, 2 * n);
    else
        split_out((float *)done, r->inner, lines, n, r->out + 2 * at);
    free(room);
    return RP_OK;
}

/* ---- real lines: two in one ---- */

/* Z is the transform of a + i b, so A[k] = (Z[k] + conj Z[-k]) / 2, and B[k] = (Z[k] - conj Z[-k])
   / 2i. */
RP_CLONES_FEW static void take_apart(const struct pair *z, size_t n, struct pair *a, struct pair *b)
{
    for (size_t k = 0; k <= n / 2; k++) {
        const struct pair *x = z + k, *y = z + (n - k) % n;

        a[k].re = (x->re + y->re) * 0.5F;
        a[k].im = (x->im - y->im) * 0.5F;
        b[k].re = (x->im + y->im) * 0.5F;
        b[k].im = (y->re - x->re) * 0.5F;
    }
}

/* The inverse: Z = A + i B, whose upper half is that of real lines. The first and the middle number
   of a line count as real, whatever is stored. */
RP_CLONES_FEW static void put_together(const struct pair *a, const struct pair *b, size_t n,
                                       struct pair *z)
{
    for (size_t k = 0; k <= n / 2; k++) {
        size_t other = (n - k) % n;

        if (other == k) {
            z[k].re = a[k].re;
            z[k].im = b[k].re;
            continue;
        }
        z[k].re = a[k].re - b[k].im;
        z[k].im = a[k].im + b[k].re;
        z[other].re = a[k].re + b[k].im;
        z[other].im = b[k].re - a[k].im;
    }
}

/* How many of the 32 lines from `first` on are in the lanes of the real or imaginary parts. */
static size_t lines_of(const struct fft_run *r, size_t first, size_t part)
{
    size_t begin = first + part * LANES, left = begin < r->lines ? r->lines - begin : 0;

    return left < LANES ? left : LANES;
}

static RP_JOB(real_group)
{
    const struct fft_run *r = user;
    size_t n = r->w->n, half = n / 2 + 1, first = job * 2 * LANES;
    size_t real = first * n, spectrum = 2 * first * half;
    struct pair *room;

    RP_TRY(fft_room(r->w, &room, err));
    struct pair *done = room + n + 2;
    for (size_t p = 0; p < 2; p++)
        if (r->type == RP_RFFT)
            turn(r->in + real + p * LANES * n, n, lines_of(r, first, p), n,
                 (float *)room + p * LANES, 2 * LANES);
        else
            turn(r->in + spectrum + 2 * p * LANES * half, 2 * half, lines_of(r, first, p), 2 * half,
                 (float *)(room + p * half), LANES);
    if (r->type == RP_RFFT) {
        wave_run(r->w, room, done, done + n + 2);
        take_apart(done, n, room, room + half);
    } else {
        put_together(room, room + half, n, done);
        wave_run(r->w, done, room, done + n + 2);
        scale_pairs(r->w, room);
    }
    for (size_t p = 0; p < 2; p++)
        if (r->type == RP_RFFT)
            turn((float *)(room + p * half), LANES, 2 * half, lines_of(r, first, p),
                 r->out + spectrum + 2 * p * LANES * half, 2 * half);
        else
            turn((float *)room + p * LANES, 2 * LANES, n, lines_of(r, first, p),
                 r->out + real + p * LANES * n, n);
    free(room);
    return RP_OK;
}

/* ---- arrays ---- */

static enum rp_code run_groups(struct rp_eval *e, struct fft_run *r, size_t jobs, rp_job_fn *job,
                               struct rp_err *err)
{
    return rp_pool_each(e->pool, jobs, job, r, err);
}

/* Transforms along one dimension of c64 numbers; in and out may be the same array. */
static enum rp_code along(struct rp_eval *e, const struct wave *w, const struct rp_tensor *in,
                          struct rp_tensor *out, size_t dim, struct rp_err *err)
{
    struct fft_run r = {.w = w,
                        .in = (const float *)(const void *)in->data,
                        .out = (float *)(void *)out->data,
                        .inner = 1,
                        .lines = in->n / w->n};

    for (size_t k = dim + 1; k < in->rank; k++)
        r.inner *= (size_t)in->dims[k];
    r.groups = ((r.inner == 1 ? r.lines : r.inner) + LANES - 1) / LANES;
    return run_groups(e, &r, r.groups * (r.inner == 1 ? 1 : r.lines / r.inner), complex_group, err);
}

static enum rp_code along_last(struct rp_eval *e, const struct fast_fft *f,
                               const struct rp_tensor *in, struct rp_tensor *out,
                               struct rp_err *err)
{
    const struct rp_tensor *real = f->base.type == RP_RFFT ? in : out;
    struct fft_run r = {.w = f->wave[0],
                        .in = (const float *)(const void *)in->data,
                        .out = (float *)(void *)out->data,
                        .lines = real->n / f->wave[0]->n,
                        .type = f->base.type};

    return run_groups(e, &r, (r.lines + 2 * LANES - 1) / (2 * LANES), real_group, err);
}

/* Converts the last dimension of real lines to half of their transform as the first step, or back
   as the last one. */
static enum rp_code fft_steps(struct rp_eval *e, const struct fast_fft *f, struct rp_tensor *in,
                              struct rp_tensor *out, struct rp_tensor *middle, struct rp_err *err)
{
    size_t last = in->rank - 1;
    struct rp_tensor *from = in, *to = f->base.type == RP_IRFFT ? middle : out;

    if (f->base.type == RP_RFFT)
        RP_TRY(along_last(e, f, in, out, err));
    else if (f->base.type != RP_IRFFT)
        RP_TRY(along(e, f->wave[0], in, out, last, err));
    if (f->base.type != RP_IRFFT)
        from = out;
    for (size_t k = 1; k < f->base.n; k++, from = to)
        RP_TRY(along(e, f->wave[k], from, to, last - k, err));
    return f->base.type == RP_IRFFT ? along_last(e, f, from, out, err) : RP_OK;
}

RP_KERNEL(rp_fast_fft)
{
    const struct fast_fft *f = node->attrs;
    struct rp_tensor *middle = NULL;

    if (!f->wave[0] || !in[0]->n || (f->base.type == RP_RFFT) != (in[0]->elem == RP_ELEM_F32))
        return e->plan->reference[RP_OP_FFT]->run(e, node, in, out, err);
    enum rp_code code =
        rp_tensor_new(node->shape->elem, node->shape->dims, node->shape->rank, out, err);
    if (code == RP_OK && f->base.type == RP_IRFFT && f->base.n > 1)
        code = rp_tensor_new(RP_ELEM_C64, in[0]->dims, in[0]->rank, &middle, err);
    if (code == RP_OK)
        code = fft_steps(e, f, in[0], *out, middle, err);
    rp_tensor_drop(middle);
    return code;
}
