/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Solves systems of equations with three diagonals, for which JAX calls LAPACK's gtsv or cuSPARSE's
 * gtsv2: rows are eliminated from the first to the last, and exchanged with the next one if its
 * number is larger. The perturbing variant replaces a pivot that is nearly zero by the smallest one
 * that rounding can distinguish from zero, so that a singular matrix gives a finite result. All is
 * done in double complex.
 */
#include "exec/ref/custom.h"
#include "exec/ref/linalg.h"
#include "exec/ref/reduce.h"

#include <float.h>
#include <math.h>
#include <string.h>

struct three_attr {
    bool perturbs;
    uint32_t at; /* index of the result that is the solution */
};

/* One matrix: l[i] is in row i + 1, u2 is the diagonal that pivoting adds beside u. b has rows of
   `columns`. */
struct three {
    size_t n, columns;
    rp_c128 *l, *d, *u, *b;
    double least; /* size of the smallest pivot; 0: none is replaced */
};

static double size_of(rp_c128 x)
{
    return fabs(creal(x)) + fabs(cimag(x));
}

static void eliminate(struct three *t, size_t k)
{
    rp_c128 *upper = t->b + k * t->columns, *lower = upper + t->columns;
    bool change = size_of(t->d[k]) < size_of(t->l[k]);
    rp_c128 factor = change ? t->d[k] / t->l[k] : t->l[k] / t->d[k], next = t->d[k + 1];

    for (size_t j = 0; j < t->columns; j++) {
        rp_c128 x = upper[j];

        if (change)
            upper[j] = lower[j];
        lower[j] = change ? x - factor * lower[j] : lower[j] - factor * x;
    }
    if (!change) {
        t->d[k + 1] = next - factor * t->u[k];
        t->l[k] = 0;
        return;
    }
    t->d[k] = t->l[k];
    t->d[k + 1] = t->u[k] - factor * next;
    t->l[k] = 0;
    if (k + 2 < t->n) { /* from here on, l[k] is the number two places to the right of d[k] */
        t->l[k] = t->u[k + 1];
        t->u[k + 1] = -factor * t->l[k];
    }
    t->u[k] = next;
}

/* Returns 0, or the number (from 1) of the first pivot that is zero. */
static int64_t solve_three(struct three *t)
{
    for (size_t k = 0; k < t->n; k++) {
        bool last = k + 1 == t->n;

        if (t->least > 0 && size_of(t->d[k]) < t->least && (last || size_of(t->l[k]) < t->least))
            t->d[k] = creal(t->d[k]) < 0 ? -t->least : t->least;
        if (t->d[k] == 0 && (last || t->l[k] == 0))
            return (int64_t)k + 1;
        if (!last)
            eliminate(t, k);
    }
    for (size_t k = t->n; k-- > 0;)
        for (size_t j = 0; j < t->columns; j++) {
            rp_c128 x = t->b[k * t->columns + j];

            if (k + 1 < t->n)
                x -= t->u[k] * t->b[(k + 1) * t->columns + j];
            if (k + 2 < t->n)
                x -= t->l[k] * t->b[(k + 2) * t->columns + j];
            t->b[k * t->columns + j] = x / t->d[k];
        }
    return 0;
}

/* The rounding error of the type, for the largest number in the matrix. */
static double least_pivot(const struct three *t, unsigned elem)
{
    bool wide = elem == RP_ELEM_F64 || elem == RP_ELEM_C128;
    double most = 0;

    for (size_t k = 0; k < t->n; k++) {
        most = fmax(most, size_of(t->d[k]));
        if (k + 1 < t->n)
            most = fmax(most, fmax(size_of(t->l[k]), size_of(t->u[k])));
    }
    return (most > 0 ? most : 1) * (wide ? DBL_EPSILON : (double)FLT_EPSILON);
}

static RP_PREPARE(prepare_three)
{
    struct three_attr *a = RP_NODE_NEW(plan, struct three_attr);
    const struct rp_value_shape *b = node->nin > 3 ? rp_node_operand(plan, node, 3) : NULL;
    size_t parts = node->shape->elem == RP_ELEM_TUPLE ? node->shape->nparts : 1, n;
    const char *name = rp_custom_name(plan, node, &n);

    RP_TRY(rp_err_need(a, err, "planning"));
    if (!b || b->elem == RP_ELEM_TUPLE || b->rank < 2 || parts < 1)
        return rp_node_error(node, RP_FORMAT, err, "wrong shape of operands or results");
    for (uint32_t i = 0; i < 3; i++)
        RP_TRY(rp_node_expect(node, "a diagonal", rp_node_operand(plan, node, i), b->elem, b->dims,
                              b->rank - 1, err));
    a->perturbs = memmem(name, n, "perturbed", 9) != NULL;
    a->at = parts >= 5 ? 3 : 0;
    RP_TRY(rp_node_expect(node, "the solution",
                          parts >= 5 ? node->shape->parts[3] : rp_custom_shape(node), b->elem,
                          b->dims, b->rank, err));
    if (parts >= 5)
        for (uint32_t i = 0; i < 3; i++)
            RP_TRY(rp_node_expect(node, "a diagonal", node->shape->parts[i], b->elem, b->dims,
                                  b->rank - 1, err));
    node->attrs = a;
    return RP_OK;
}

static enum rp_code solve_batch(const struct rp_node *node, struct rp_tensor *const *in,
                                struct rp_tensor *const *all, struct rp_tensor *info)
{
    const struct three_attr *a = node->attrs;
    size_t n = (size_t)in[3]->dims[in[3]->rank - 2], columns = (size_t)in[3]->dims[in[3]->rank - 1];

    for (size_t i = 0; n && i < all[1]->n / n; i++) {
        struct three t = {.n = n, .columns = columns};

        t.l = (rp_c128 *)(void *)all[0]->data + i * n;
        t.d = (rp_c128 *)(void *)all[1]->data + i * n;
        t.u = (rp_c128 *)(void *)all[2]->data + i * n;
        t.b = (rp_c128 *)(void *)all[3]->data + i * n * columns;
        memmove(t.l, t.l + 1, (n - 1) * sizeof *t.l); /* the first number is not used */
        t.least = a->perturbs ? least_pivot(&t, in[3]->elem) : 0;
        int64_t pivot = solve_three(&t);
        memmove(t.l + 1, t.l, (n - 1) * sizeof *t.l);
        if (info && i < info->n)
            rp_tensor_set_integer(info, i, pivot);
    }
    return RP_OK;
}

static RP_KERNEL(three_diagonals)
{
    const struct three_attr *a = node->attrs;
    RP_SCOPED(rp_tensors_release) struct rp_tensors all = {0}, parts = {0};
    struct rp_tensor *info = NULL;

    RP_TRY(rp_tensors_new(4, &all, err));
    RP_TRY(rp_custom_parts(node, &parts, err));
    for (size_t i = 0; i < 4; i++)
        RP_TRY(rp_tensor_c128(in[i], &all.at[i], err));
    if (a->at) {
        RP_TRY(rp_shape_tensor(node->shape->parts[4], &parts.at[4], err));
        info = parts.at[4];
    }
    RP_TRY(solve_batch(node, in, all.at, info));
    for (size_t i = a->at ? 0 : 3; i < 4; i++)
        RP_TRY(rp_tensor_as(all.at[i], in[i]->elem, &parts.at[a->at ? i : 0], err));
    return rp_custom_give(node, &parts, out, err);
}

const struct rp_custom_target rp_custom_tridiagonal[] = {
    {"lapack_sgtsv_ffi", prepare_three, three_diagonals},
    {"lapack_dgtsv_ffi", prepare_three, three_diagonals},
    {"lapack_cgtsv_ffi", prepare_three, three_diagonals},
    {"lapack_zgtsv_ffi", prepare_three, three_diagonals},
    {"cusparse_gtsv2*", prepare_three, three_diagonals},
    {"hipsparse_gtsv2*", prepare_three, three_diagonals},
    {"tridiagonal_solve_perturbed_ffi", prepare_three, three_diagonals},
    {NULL, NULL, NULL},
};
