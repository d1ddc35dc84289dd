/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes eigenvalues and eigenvectors of Hermitian matrices, for which JAX calls LAPACK's syevd
 * and heevd. Reflectors reduce the matrix to three diagonals (hetd2), implicit QL or QR steps
 * reduce these to one (steqr), and the reflectors are applied to the result (unmtr). For matrices
 * of up to 25 rows LAPACK uses the same steps, so the signs of vectors agree. It divides larger
 * ones, which are left to the library if there is one (custom_lapack.c); otherwise their signs may
 * differ. Cost: some 10 n^3.
 */
#include "exec/ref/custom.h"
#include "exec/ref/lapack.h"
#include "exec/ref/linalg.h"
#include "exec/ref/reduce.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- three diagonals ---- */

struct tridiagonal {
    size_t n;
    rp_c128 *a; /* row-major; later the reflectors */
    rp_c128 *tau, *x;
    double *d, *e;
};

/* Applies a reflector v over rows and columns [first, first + n), A - v x^H - x v^H, to the whole
   block. */
static void two_sided(struct tridiagonal *t, size_t first, size_t n, const rp_c128 *v, rp_c128 tau)
{
    rp_c128 alpha = 0;

    for (size_t i = 0; i < n; i++) {
        t->x[i] = 0;
        for (size_t k = 0; k < n; k++)
            t->x[i] += t->a[(first + i) * t->n + first + k] * v[k];
        t->x[i] *= tau;
        alpha += conj(t->x[i]) * v[i];
    }
    alpha *= -0.5 * tau;
    for (size_t i = 0; i < n; i++)
        t->x[i] += alpha * v[i];
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            t->a[(first + i) * t->n + first + k] -= v[i] * conj(t->x[k]) + t->x[i] * conj(v[k]);
}

/* Both triangles are kept, so either may be read; v has room for n numbers. */
static void reduce_lower(struct tridiagonal *t, rp_c128 *v)
{
    size_t n = t->n;

    for (size_t i = 0; i + 1 < n; i++) {
        rp_c128 alpha = t->a[(i + 1) * n + i];

        t->tau[i] = rp_reflector(&alpha, t->a + (i + 2) * n + i, n, n - i - 1);
        t->e[i] = creal(alpha);
        v[0] = 1;
        for (size_t k = 1; k < n - i - 1; k++)
            v[k] = t->a[(i + 1 + k) * n + i];
        if (t->tau[i] != 0)
            two_sided(t, i + 1, n - i - 1, v, t->tau[i]);
    }
    for (size_t i = 0; i < n; i++)
        t->d[i] = creal(t->a[i * n + i]);
}

static void reduce_upper(struct tridiagonal *t, rp_c128 *v)
{
    size_t n = t->n;

    for (size_t i = n - 1; i-- > 0;) {
        rp_c128 alpha = t->a[i * n + i + 1];

        t->tau[i] = rp_reflector(&alpha, t->a + i + 1, n, i + 1);
        t->e[i] = creal(alpha);
        v[i] = 1;
        for (size_t k = 0; k < i; k++)
            v[k] = t->a[k * n + i + 1];
        if (t->tau[i] != 0)
            two_sided(t, 0, i + 1, v, t->tau[i]);
    }
    for (size_t i = 0; i < n; i++)
        t->d[i] = creal(t->a[i * n + i]);
}

/* Subtracts tau v (v^H z) from z in the rows [first, first + n). */
static void apply_reflector(rp_c128 *z, size_t columns, size_t first, size_t n, const rp_c128 *v,
                            rp_c128 tau)
{
    for (size_t j = 0; j < columns; j++) {
        rp_c128 sum = 0;

        for (size_t i = 0; i < n; i++)
            sum += conj(v[i]) * z[(first + i) * columns + j];
        for (size_t i = 0; i < n; i++)
            z[(first + i) * columns + j] -= tau * v[i] * sum;
    }
}

static void apply_all(const struct tridiagonal *t, bool lower, rp_c128 *z, rp_c128 *v)
{
    size_t n = t->n;

    for (size_t s = 0; s + 1 < n; s++) {
        size_t i = lower ? n - 2 - s : s, m = lower ? n - i - 1 : i + 1;

        for (size_t k = 0; k < m; k++)
            v[k] = lower ? (k ? t->a[(i + 1 + k) * n + i] : 1) : k < i ? t->a[k * n + i + 1] : 1;
        apply_reflector(z, n, lower ? i + 1 : 0, m, v, t->tau[i]);
    }
}

/* ---- one diagonal ---- */

struct ql {
    size_t n;
    double *d, *e, *c, *s; /* c, s: the rotations of one sweep */
    rp_c128 *z;
    double eps;
};

static void rotation(double f, double g, double *c, double *s, double *r)
{
    double norm = hypot(f, g);

    if (g == 0) {
        *c = 1;
        *s = 0;
        *r = f;
    } else if (f == 0) {
        *c = 0;
        *s = copysign(1, g);
        *r = fabs(g);
    } else {
        *c = fabs(f) / norm;
        *r = copysign(norm, f);
        *s = g / *r;
    }
}

/* Rotates columns j and j + 1 of the vectors. */
static void rotate_columns(struct ql *q, size_t j, double c, double s)
{
    for (size_t i = 0; i < q->n; i++) {
        rp_c128 *row = q->z + i * q->n + j, right = row[1];

        row[1] = c * right - s * row[0];
        row[0] = s * right + c * row[0];
    }
}

/* For [[a, b], [b, c]]: the eigenvalue of larger magnitude, the other one, and the vector of the
   first. */
static void two_by_two(double a, double b, double c, double *first, double *second, double *cs,
                       double *sn)
{
    double sum = a + c, df = a - c, tb = b + b, root = hypot(df, tb);
    double most = fabs(a) > fabs(c) ? a : c, least = fabs(a) > fabs(c) ? c : a;
    int sign = 1, sign2 = df >= 0 ? 1 : -1;

    if (sum == 0) {
        *first = 0.5 * root;
        *second = -0.5 * root;
    } else {
        sign = sum < 0 ? -1 : 1;
        *first = 0.5 * (sum + sign * root);
        *second = most / *first * least - b / *first * b;
    }
    df += sign2 * root;
    if (fabs(df) > fabs(tb)) {
        double ratio = -tb / df;
        *sn = 1 / sqrt(1 + ratio * ratio);
        *cs = ratio * *sn;
    } else if (tb == 0) {
        *cs = 1;
        *sn = 0;
    } else {
        double ratio = -df / tb;
        *cs = 1 / sqrt(1 + ratio * ratio);
        *sn = ratio * *cs;
    }
    if (sign == sign2) {
        double ratio = *cs;
        *cs = -*sn;
        *sn = ratio;
    }
}

/* Makes one implicit step on [l, m], from m up to l (QL). */
static void step_ql(struct ql *q, size_t l, size_t m)
{
    double *d = q->d, *e = q->e, p = d[l], g = (d[l + 1] - p) / (2 * e[l]), r = hypot(g, 1);
    double s = 1, c = 1;

    g = d[m] - p + e[l] / (g + copysign(r, g));
    p = 0;
    for (size_t i = m; i-- > l;) {
        double f = s * e[i], b = c * e[i];

        rotation(g, f, &c, &s, &r);
        if (i + 1 != m)
            e[i + 1] = r;
        g = d[i + 1] - p;
        r = (d[i] - g) * s + 2 * c * b;
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
        q->c[i] = c;
        q->s[i] = -s;
    }
    for (size_t i = m; i-- > l;)
        rotate_columns(q, i, q->c[i], q->s[i]);
    d[l] -= p;
    e[l] = g;
}

/* Makes the same from m down to l > m (QR). */
static void step_qr(struct ql *q, size_t l, size_t m)
{
    double *d = q->d, *e = q->e, p = d[l], g = (d[l - 1] - p) / (2 * e[l - 1]), r = hypot(g, 1);
    double s = 1, c = 1;

    g = d[m] - p + e[l - 1] / (g + copysign(r, g));
    p = 0;
    for (size_t i = m; i < l; i++) {
        double f = s * e[i], b = c * e[i];

        rotation(g, f, &c, &s, &r);
        if (i != m)
            e[i - 1] = r;
        g = d[i] - p;
        r = (d[i + 1] - g) * s + 2 * c * b;
        p = s * r;
        d[i] = g + p;
        g = c * r - b;
        q->c[i] = c;
        q->s[i] = s;
    }
    for (size_t i = m; i < l; i++)
        rotate_columns(q, i, q->c[i], q->s[i]);
    d[l] -= p;
    e[l - 1] = g;
}

static bool negligible(const struct ql *q, size_t i)
{
    return q->e[i] * q->e[i] <= q->eps * q->eps * fabs(q->d[i]) * fabs(q->d[i + 1]) + DBL_MIN;
}

/* Reduces the block from l to end, where end comes after l. Returns false if it does not
   converge. */
static bool block_ql(struct ql *q, size_t l, size_t end, size_t *left)
{
    while (l <= end) {
        size_t m = l;

        while (m < end && !negligible(q, m))
            m++;
        if (m < end)
            q->e[m] = 0;
        if (m == l) {
            l++;
        } else if (m == l + 1) {
            double first, second, c, s;

            two_by_two(q->d[l], q->e[l], q->d[l + 1], &first, &second, &c, &s);
            rotate_columns(q, l, c, s);
            q->d[l] = first;
            q->d[l + 1] = second;
            q->e[l] = 0;
            l += 2;
        } else {
            if (!(*left)--)
                return false;
            step_ql(q, l, m);
        }
    }
    return true;
}

static bool block_qr(struct ql *q, size_t at, size_t end, size_t *left)
{
    int64_t l = (int64_t)at, last = (int64_t)end;

    while (l >= last) {
        int64_t m = l;

        while (m > last && !negligible(q, (size_t)m - 1))
            m--;
        if (m > last)
            q->e[m - 1] = 0;
        if (m == l) {
            l--;
        } else if (m == l - 1) {
            double first, second, c, s;

            two_by_two(q->d[m], q->e[m], q->d[l], &first, &second, &c, &s);
            rotate_columns(q, (size_t)m, c, s);
            q->d[m] = first;
            q->d[l] = second;
            q->e[m] = 0;
            l -= 2;
        } else {
            if (!(*left)--)
                return false;
            step_qr(q, (size_t)l, (size_t)m);
        }
    }
    return true;
}

static bool diagonalize(struct ql *q)
{
    size_t left = 30 * q->n, next = 0;

    while (next < q->n) {
        size_t l = next, end = l;

        while (end + 1 < q->n &&
               fabs(q->e[end]) > sqrt(fabs(q->d[end])) * sqrt(fabs(q->d[end + 1])) * q->eps)
            end++;
        if (end + 1 < q->n)
            q->e[end] = 0;
        next = end + 1;
        if (l == end)
            continue;
        if (!(fabs(q->d[end]) < fabs(q->d[l]) ? block_qr(q, end, l, &left)
                                              : block_ql(q, l, end, &left)))
            return false;
    }
    /* Sorts the smallest first. */
    for (size_t i = 0; i + 1 < q->n; i++) {
        size_t k = i;

        for (size_t j = i + 1; j < q->n; j++)
            if (q->d[j] < q->d[k])
                k = j;
        if (k == i)
            continue;
        double kept = q->d[k];
        q->d[k] = q->d[i];
        q->d[i] = kept;
        for (size_t r = 0; r < q->n; r++) {
            rp_c128 v = q->z[r * q->n + k];

            q->z[r * q->n + k] = q->z[r * q->n + i];
            q->z[r * q->n + i] = v;
        }
    }
    return true;
}

/* ---- all of it ---- */

/* a: the matrix, which is replaced by its vectors; d: the values. */
static enum rp_code decompose(rp_c128 *a, size_t n, bool lower, double eps, double *d, bool *done,
                              struct rp_err *err)
{
    struct tridiagonal t = {.n = n, .a = a, .d = d};
    struct ql q = {.n = n, .d = d, .eps = eps};
    RP_FREED rp_c128 *complexes = calloc(n * n + 3 * n + 1, sizeof *complexes);
    RP_FREED double *reals = calloc(3 * n + 1, sizeof *reals);

    RP_TRY(rp_err_need(complexes && reals, err, "eigenvalues"));
    q.z = complexes;
    t.tau = complexes + n * n;
    t.x = t.tau + n;
    rp_c128 *v = t.x + n;
    t.e = q.e = reals;
    q.c = reals + n;
    q.s = reals + 2 * n;
    for (size_t i = 0; i < n; i++) { /* one triangle counts */
        q.z[i * n + i] = 1;
        a[i * n + i] = creal(a[i * n + i]);
        for (size_t k = 0; k < i; k++)
            a[lower ? k * n + i : i * n + k] = conj(a[lower ? i * n + k : k * n + i]);
    }
    (lower ? reduce_lower : reduce_upper)(&t, v);
    *done = diagonalize(&q);
    apply_all(&t, lower, q.z, v);
    memcpy(a, q.z, n * n * sizeof *a);
    return RP_OK;
}

struct spectrum {
    bool lower;
    uint32_t first; /* place of the matrix; before it are the integers of the older form */
};

/* For matrices of at most so many rows, the signs of our vectors are LAPACK's. */
#define OWN_ROWS 25

static RP_PREPARE(spectrum_prepare)
{
    struct spectrum *s = RP_NODE_NEW(plan, struct spectrum);
    struct rp_lapack library;
    size_t n;

    RP_TRY(rp_err_need(s, err, "planning"));
    if (node->nin < 1 || node->shape->elem != RP_ELEM_TUPLE || node->shape->nparts < 3)
        return rp_node_error(node, RP_FORMAT, err, "wrong shape of operands or results");
    s->first = rp_custom_integers(plan, node, 1);
    const struct rp_value_shape *in = rp_node_operand(plan, node, s->first);
    if (in->rank < 2 || in->dims[in->rank - 1] != in->dims[in->rank - 2] ||
        node->shape->parts[0]->n != in->n ||
        node->shape->parts[1]->n * (size_t)in->dims[in->rank - 1] != in->n)
        return rp_node_error(node, RP_FORMAT, err, "the matrix is not square");
    if (in->dims[in->rank - 1] > OWN_ROWS && rp_custom_name(plan, node, &n)[0] == 'l' &&
        rp_lapack_open(&library))
        return rp_lapack_prepare(plan, node, err);
    s->lower = rp_config_letter(plan, node, "uplo", 'L') || rp_config_flag(plan, node, "lower");
    node->attrs = s;
    return RP_OK;
}

static RP_KERNEL(syevd)
{
    const struct spectrum *s = node->attrs;
    struct rp_tensor *from = in[s->first];
    bool lower = s->first && in[0]->n ? rp_tensor_integer(in[0], 0) != 0 : s->lower;
    bool wide = from->elem == RP_ELEM_F64 || from->elem == RP_ELEM_C128;
    size_t n = (size_t)from->dims[from->rank - 1];
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *a = NULL;
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};
    RP_FREED double *d = calloc(n + 1, sizeof *d);

    RP_TRY(rp_err_need(d, err, "eigenvalues"));
    RP_TRY(rp_custom_parts(node, &parts, err));
    RP_TRY(rp_tensor_c128(from, &a, err));
    for (size_t i = 1; i < 3; i++)
        RP_TRY(rp_shape_tensor(node->shape->parts[i], &parts.at[i], err));
    for (size_t b = 0; n && b < a->n / (n * n); b++) {
        bool done = false;

        RP_TRY(decompose((rp_c128 *)(void *)a->data + b * n * n, n, lower,
                         (wide ? DBL_EPSILON : (double)FLT_EPSILON) / 2, d, &done, err));
        for (size_t i = 0; i < n; i++)
            rp_tensor_set(parts.at[1], b * n + i, d[i]);
        if (b < parts.at[2]->n)
            rp_tensor_set_integer(parts.at[2], b, !done);
    }
    RP_TRY(rp_tensor_as(a, from->elem, &parts.at[0], err));
    return rp_custom_give(node, &parts, out, err);
}

const struct rp_custom_target rp_custom_spectra[] = {
    {"lapack_ssyevd_ffi", spectrum_prepare, syevd},
    {"lapack_dsyevd_ffi", spectrum_prepare, syevd},
    {"lapack_cheevd_ffi", spectrum_prepare, syevd},
    {"lapack_zheevd_ffi", spectrum_prepare, syevd},
    {"lapack_ssyevd", spectrum_prepare, syevd},
    {"lapack_dsyevd", spectrum_prepare, syevd},
    {"lapack_cheevd", spectrum_prepare, syevd},
    {"lapack_zheevd", spectrum_prepare, syevd},
    {"cusolver_syevd_ffi", spectrum_prepare, syevd},
    {"cusolver_syevj_ffi", spectrum_prepare, syevd},
    {"hipsolver_syevd_ffi", spectrum_prepare, syevd},
    {"hipsolver_syevj_ffi", spectrum_prepare, syevd},
    {NULL, NULL, NULL},
};
