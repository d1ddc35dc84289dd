/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes Fourier transforms, Cholesky factors and triangular solves in double complex; the types
 * of the program are converted to it and back.
 */
#include "exec/ref/linalg.h"
#include "exec/eval/strided.h"
#include "exec/ref/fft.h"
#include "exec/ref/kernels.h"
#include "exec/ref/reduce.h"
#include "program/opcodes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- fft ---- */

#define FFT_JOB 4096 /* from so many numbers on, threads share the lines */

RP_PREPARE(rp_fft_prepare)
{
    static const char *const names[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
    struct rp_fft_attr *a = RP_NODE_NEW(plan, struct rp_fft_attr);
    bool known = false;

    RP_TRY(rp_err_need(a, err, "planning"));
    node->attrs = a;
    for (int i = 0; i < 4; i++)
        if (rp_node_word(plan, node, RP_ATTR_FFT_TYPE, names[i])) {
            a->type = (enum rp_fft_type)i;
            known = true;
        }
    RP_TRY(rp_node_ints(plan, node, RP_ATTR_FFT_LENGTH, 0, &a->length, &a->n, err));
    if (!known && rp_node_attr(plan, node, RP_ATTR_FFT_TYPE))
        return rp_node_error(node, RP_FORMAT, err, "unknown fft_type");
    if (!a->n || a->n > node->shape->rank)
        return rp_node_error(node, RP_FORMAT, err, "fft_length does not match the operand");
    /* The last dimensions are fft_length; in the transform of a real signal, the last one is half
       as long. */
    const struct rp_value_shape *from = rp_node_operand(plan, node, 0);
    int64_t dims[RP_TENSOR_RANK], half = a->length[a->n - 1] / 2 + 1;
    size_t rank = node->shape->rank;
    memcpy(dims, node->shape->dims, rank * sizeof *dims);
    memcpy(dims + rank - a->n, a->length, a->n * sizeof *dims);
    if (a->type == RP_RFFT)
        dims[rank - 1] = half;
    RP_TRY(rp_node_expect(node, "the result", node->shape, RP_ELEM_INVALID, dims, rank, err));
    dims[rank - 1] = a->type == RP_IRFFT ? half : a->length[a->n - 1];
    return rp_node_expect(node, "the operand", from, RP_ELEM_INVALID, dims, rank, err);
}

/* Lines of a c128 array along a dimension, each in place: line l begins at l / inner * n * inner +
   l % inner. */
struct fft_lines {
    struct rp_fft plan;
    rp_c128 *data;
    size_t n, inner, lines, each;
};

static void lines_release(struct fft_lines *f)
{
    rp_fft_release(&f->plan);
}

static RP_JOB(fft_job)
{
    const struct fft_lines *f = user;
    size_t n = f->n, last = (job + 1) * f->each < f->lines ? (job + 1) * f->each : f->lines;
    RP_FREED rp_c128 *line = malloc((2 * n + rp_fft_work(&f->plan) + 1) * sizeof *line);

    RP_TRY(rp_err_need(line, err, "transforming"));
    rp_c128 *done = line + n;
    for (size_t l = job * f->each; l < last; l++) {
        rp_c128 *at = f->data + l / f->inner * n * f->inner + l % f->inner;

        for (size_t k = 0; k < n; k++)
            line[k] = at[k * f->inner];
        rp_fft_run(&f->plan, line, done, done + n);
        for (size_t k = 0; k < n; k++)
            at[k * f->inner] = f->plan.sign > 0 ? done[k] / (double)n : done[k];
    }
    return RP_OK;
}

static enum rp_code fft_along(const struct rp_eval *e, struct rp_tensor *t, size_t dim, int sign,
                              struct rp_err *err)
{
    RP_SCOPED(lines_release)
    struct fft_lines f = {
        .data = (rp_c128 *)(void *)t->data, .n = (size_t)t->dims[dim], .inner = 1};
    size_t jobs = e->pool ? 4 * (size_t)rp_pool_threads(e->pool) : 1;

    for (size_t k = dim + 1; k < t->rank; k++)
        f.inner *= (size_t)t->dims[k];
    f.lines = t->n / f.n;
    jobs = t->n < FFT_JOB ? 1 : jobs < f.lines ? jobs : f.lines;
    f.each = (f.lines + jobs - 1) / jobs;
    RP_TRY(rp_fft_init(&f.plan, f.n, sign, err));
    return rp_pool_each(e->pool, jobs, fft_job, &f, err);
}

/* Computes the half that the transform of a real signal leaves out from the other half. */
static enum rp_code fft_mirror(const struct rp_tensor *half, int64_t n, size_t dims,
                               struct rp_tensor **out, struct rp_err *err)
{
    int64_t shape[RP_TENSOR_RANK], index[RP_TENSOR_RANK] = {0}, stride[RP_TENSOR_RANK];
    const rp_c128 *from = (const rp_c128 *)(void *)half->data;
    size_t last = half->rank - 1;

    memcpy(shape, half->dims, sizeof shape);
    shape[last] = n;
    RP_TRY(rp_tensor_new(RP_ELEM_C128, shape, half->rank, out, err));
    rp_strides(half->dims, half->rank, stride);
    for (size_t i = 0; i < (*out)->n; i++) {
        bool other = index[last] >= half->dims[last];
        int64_t at = 0;

        for (size_t k = 0; k <= last; k++) {
            int64_t x = index[k];

            if (other && k + dims >= half->rank)
                x = (shape[k] - x) % shape[k];
            at += x * stride[k];
        }
        rp_c128 v = from[at];
        ((rp_c128 *)(void *)(*out)->data)[i] = other ? conj(v) : v;
        rp_index_next(index, shape, half->rank);
    }
    return RP_OK;
}

/* Converts the usual types directly, because the general conversion takes longer than the
   transform. */
static enum rp_code fft_widen(struct rp_tensor *in, struct rp_tensor **out, struct rp_err *err)
{
    const float *from = (const float *)(const void *)in->data;

    if ((in->elem != RP_ELEM_C64 && in->elem != RP_ELEM_F32) || (uintptr_t)in->data % sizeof *from)
        return rp_tensor_as(in, RP_ELEM_C128, out, err);
    RP_TRY(rp_tensor_new(RP_ELEM_C128, in->dims, in->rank, out, err));
    rp_c128 *to = (rp_c128 *)(void *)(*out)->data;
    if (in->elem == RP_ELEM_F32)
        for (size_t i = 0; i < in->n; i++)
            to[i] = from[i];
    else
        for (size_t i = 0; i < in->n; i++)
            to[i] = CMPLX(from[2 * i], from[2 * i + 1]);
    return RP_OK;
}

static enum rp_code fft_narrow(struct rp_tensor *t, unsigned elem, struct rp_tensor **out,
                               struct rp_err *err)
{
    const rp_c128 *from = (const rp_c128 *)(const void *)t->data;

    if (elem != RP_ELEM_C64 && elem != RP_ELEM_F32)
        return rp_tensor_as(t, elem, out, err);
    RP_TRY(rp_tensor_new(elem, t->dims, t->rank, out, err));
    float *to = (float *)(void *)(*out)->data;
    for (size_t i = 0; i < t->n; i++)
        if (elem == RP_ELEM_F32) {
            to[i] = (float)creal(from[i]);
        } else {
            to[2 * i] = (float)creal(from[i]);
            to[2 * i + 1] = (float)cimag(from[i]);
        }
    return RP_OK;
}

/* Takes the first `shape` of a larger array. */
static enum rp_code fft_head(struct rp_tensor *t, const struct rp_value_shape *shape, unsigned elem,
                             struct rp_tensor **out, struct rp_err *err)
{
    struct rp_strided s = {.unit = t->unit, .rank = t->rank};
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *cut = NULL;

    if (!memcmp(t->dims, shape->dims, t->rank * sizeof *t->dims))
        return fft_narrow(t, elem, out, err);
    RP_TRY(rp_tensor_new(t->elem, shape->dims, shape->rank, &cut, err));
    rp_strides(cut->dims, cut->rank, s.to);
    rp_strides(t->dims, t->rank, s.from);
    memcpy(s.dims, cut->dims, sizeof s.dims);
    if (cut->n)
        rp_strided_copy(&s, cut->data, t->data);
    return fft_narrow(cut, elem, out, err);
}

static RP_KERNEL(fft_run)
{
    const struct rp_fft_attr *a = node->attrs;
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *half = NULL, *t = NULL;
    int sign = rp_fft_sign(a);

    RP_TRY(in[0]->elem == RP_ELEM_C128 ? rp_tensor_copy(in[0], &t, err)
                                       : fft_widen(in[0], &t, err));
    if (a->type == RP_IRFFT && t->n) {
        half = t;
        t = NULL;
        RP_TRY(fft_mirror(half, a->length[a->n - 1], a->n, &t, err));
    }
    for (size_t k = 0; t->n && k < a->n; k++)
        RP_TRY(fft_along(e, t, t->rank - 1 - k, sign, err));
    return fft_head(t, node->shape, node->shape->elem, out, err);
}

/* ---- cholesky ---- */

/* Factorizes a Hermitian matrix, of which one triangle is read; the other one becomes zero. NaN if
   the matrix is not positive definite. */
static void cholesky_factor(rp_c128 *m, size_t n, bool lower)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            rp_c128 sum = lower ? m[i * n + j] : conj(m[j * n + i]);

            for (size_t k = 0; k < j; k++)
                sum -= (lower ? m[i * n + k] : conj(m[k * n + i])) *
                       (lower ? conj(m[j * n + k]) : m[k * n + j]);
            if (i == j)
                sum = creal(sum) > 0 ? sqrt(creal(sum)) : (double)NAN;
            else
                sum /= creal(m[j * n + j]);
            m[lower ? i * n + j : j * n + i] = lower ? sum : conj(sum);
        }
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            m[lower ? i * n + j : j * n + i] = 0;
}

static RP_PREPARE(prepare_cholesky)
{
    const struct rp_value_shape *s = node->shape;

    if (s->rank < 2 || s->dims[s->rank - 1] != s->dims[s->rank - 2])
        return rp_node_error(node, RP_FORMAT, err, "the matrix is not square");
    node->value = rp_node_flag(plan, node, RP_ATTR_LOWER);
    return RP_OK;
}

enum rp_code rp_cholesky_run(struct rp_tensor *in, bool lower, struct rp_tensor **out,
                             struct rp_err *err)
{
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *t = NULL;
    size_t n = (size_t)in->dims[in->rank - 1];

    RP_TRY(rp_tensor_c128(in, &t, err));
    for (size_t b = 0; n && b < t->n / (n * n); b++)
        cholesky_factor((rp_c128 *)(void *)t->data + b * n * n, n, lower);
    return rp_tensor_as(t, in->elem, out, err);
}

static RP_KERNEL(cholesky_run)
{
    return rp_cholesky_run(in[0], node->value != 0, out, err);
}

/* ---- LU ---- */

static void swap_rows(rp_c128 *a, rp_c128 *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        rp_c128 kept = a[i];

        a[i] = b[i];
        b[i] = kept;
    }
}

int64_t rp_lu(rp_c128 *m, size_t rows, size_t columns, int64_t *pivot)
{
    int64_t info = 0;

    for (size_t k = 0; k < rows && k < columns; k++) {
        size_t best = k;

        for (size_t i = k + 1; i < rows; i++) /* the larger |re| + |im|, as in LAPACK */
            if (fabs(creal(m[i * columns + k])) + fabs(cimag(m[i * columns + k])) >
                fabs(creal(m[best * columns + k])) + fabs(cimag(m[best * columns + k])))
                best = i;
        pivot[k] = (int64_t)best + 1;
        if (m[best * columns + k] == 0) {
            info = info ? info : (int64_t)k + 1;
            continue;
        }
        if (best != k)
            swap_rows(m + k * columns, m + best * columns, columns);
        for (size_t i = k + 1; i < rows; i++) {
            rp_c128 f = m[i * columns + k] /= m[k * columns + k];

            for (size_t j = k + 1; j < columns; j++)
                m[i * columns + j] -= f * m[k * columns + j];
        }
    }
    return info;
}

/* ---- triangular solve ---- */

static RP_PREPARE(prepare_solve)
{
    struct rp_solve *a = RP_NODE_NEW(plan, struct rp_solve);
    const struct rp_value_shape *m = rp_node_operand(plan, node, 0),
                                *b = rp_node_operand(plan, node, 1);

    RP_TRY(rp_err_need(a, err, "planning"));
    node->attrs = a;
    a->left = rp_node_flag(plan, node, RP_ATTR_LEFT_SIDE);
    a->lower = rp_node_flag(plan, node, RP_ATTR_LOWER);
    a->unit = rp_node_flag(plan, node, RP_ATTR_UNIT_DIAGONAL);
    a->transpose = rp_node_word(plan, node, RP_ATTR_TRANSPOSE_A, "TRANSPOSE");
    a->adjoint = rp_node_word(plan, node, RP_ATTR_TRANSPOSE_A, "ADJOINT");
    if (m->rank < 2 || b->rank != m->rank || m->dims[m->rank - 1] != m->dims[m->rank - 2] ||
        b->dims[b->rank - (a->left ? 2 : 1)] != m->dims[m->rank - 1])
        return rp_node_error(node, RP_FORMAT, err, "wrong shape of the operands");
    return RP_OK;
}

/* op(A)[i][j] */
static rp_c128 matrix_entry(const struct rp_solve *a, const rp_c128 *m, size_t n, size_t i,
                            size_t j)
{
    if (i == j && a->unit)
        return 1;
    rp_c128 v = a->transpose || a->adjoint ? m[j * n + i] : m[i * n + j];
    return a->adjoint ? conj(v) : v;
}

/* Solves op(A) x = b for one vector x (left), or x op(A) = b, which only exchanges i and j. */
static void solve_line(const struct rp_solve *a, const rp_c128 *m, size_t n, rp_c128 *x,
                       size_t step)
{
    bool flipped = a->transpose || a->adjoint;
    bool forward = (a->lower != flipped) == a->left;

    for (size_t s = 0; s < n; s++) {
        size_t i = forward ? s : n - 1 - s;
        rp_c128 sum = x[i * step];

        for (size_t d = 0; d < s; d++) {
            size_t j = forward ? d : n - 1 - d;

            sum -=
                (a->left ? matrix_entry(a, m, n, i, j) : matrix_entry(a, m, n, j, i)) * x[j * step];
        }
        x[i * step] = sum / matrix_entry(a, m, n, i, i);
    }
}

enum rp_code rp_solve_run(const struct rp_solve *a, struct rp_tensor *left, struct rp_tensor *right,
                          struct rp_tensor **out, struct rp_err *err)
{
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *m = NULL, *x = NULL;

    if (left->rank < 2 || right->rank < 2)
        return rp_err_set(err, RP_FORMAT, "operands of a triangular solve are not matrices");
    size_t n = (size_t)left->dims[left->rank - 1];
    size_t rows = (size_t)right->dims[right->rank - 2];
    size_t columns = (size_t)right->dims[right->rank - 1];
    if (left->dims[left->rank - 2] != (int64_t)n || (a->left ? rows : columns) != n ||
        left->n / (n ? n * n : 1) != right->n / (rows && columns ? rows * columns : 1))
        return rp_err_set(err, RP_FORMAT, "wrong shape of the operands of a triangular solve");
    RP_TRY(rp_tensor_as(left, RP_ELEM_C128, &m, err));
    RP_TRY(rp_tensor_new(RP_ELEM_C128, right->dims, right->rank, &x, err));
    for (size_t i = 0; i < x->n; i++)
        ((rp_c128 *)(void *)x->data)[i] =
            CMPLX(rp_tensor_number(right, i), rp_tensor_imaginary(right, i));
    for (size_t b = 0; n && x->n && b < m->n / (n * n); b++) {
        const rp_c128 *matrix = (const rp_c128 *)(void *)m->data + b * n * n;
        rp_c128 *to = (rp_c128 *)(void *)x->data + b * rows * columns;

        for (size_t k = 0; k < (a->left ? columns : rows); k++)
            solve_line(a, matrix, n, to + (a->left ? k : k * columns), a->left ? columns : 1);
    }
    return rp_tensor_as(x, right->elem, out, err);
}

static RP_KERNEL(solve_run)
{
    return rp_solve_run(node->attrs, in[0], in[1], out, err);
}

const struct rp_kernel rp_kernels_linalg[] = {
    {RP_OP_FFT, rp_fft_prepare, fft_run},
    {RP_OP_CHOLESKY, prepare_cholesky, cholesky_run},
    {RP_OP_TRIANGULAR_SOLVE, prepare_solve, solve_run},
    {0, NULL, NULL},
};
