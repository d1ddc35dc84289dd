/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes factors of matrices for which JAX calls LAPACK or cuSOLVER: Cholesky, LU, QR with the
 * matrix of its reflectors, and solves with triangles and three diagonals. All is done in double
 * complex, with the steps of LAPACK's unblocked routines, so that signs and pivots agree.
 */
#include "exec/ref/custom.h"
#include "exec/ref/linalg.h"
#include "exec/ref/reduce.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct factor {
    bool lower, older;
    uint32_t first; /* place of the matrix; before it are the integers of the older form */
    uint32_t alpha; /* for trsm: the operand that scales; 0: none */
    struct rp_solve solve;
};

/* Checks for a minimum number of operands, a matrix first, and an exact number of results. */
static enum rp_code factor_check(struct rp_plan *plan, struct rp_node *node, uint32_t nin,
                                 size_t nout, struct rp_err *err)
{
    struct factor *c = RP_NODE_NEW(plan, struct factor);
    size_t parts = node->shape->elem == RP_ELEM_TUPLE ? node->shape->nparts : 1;

    RP_TRY(rp_err_need(c, err, "planning"));
    node->attrs = c;
    c->first = rp_custom_integers(plan, node, nin);
    c->older = c->first != 0;
    if (node->nin < nin || rp_node_operand(plan, node, c->first)->rank < 2 || parts < nout)
        return rp_node_error(node, RP_FORMAT, err, "wrong shape of operands or results");
    c->lower = rp_config_letter(plan, node, "uplo", 'L') || rp_config_flag(plan, node, "lower");
    return RP_OK;
}

static const struct rp_value_shape *factor_operand(const struct rp_plan *plan,
                                                   const struct rp_node *node, uint32_t i)
{
    return rp_node_operand(plan, node, ((const struct factor *)node->attrs)->first + i);
}

/* The older form has integers where the typed one has letters. */
static bool factor_flag(const struct factor *c, struct rp_tensor *const *in, uint32_t i, int64_t is,
                        bool typed)
{
    return !c->older || i >= c->first || !in[i]->n ? typed : rp_tensor_integer(in[i], 0) == is;
}

static RP_PREPARE(prepare_potrf)
{
    RP_TRY(factor_check(plan, node, 1, 2, err));
    const struct rp_value_shape *in = factor_operand(plan, node, 0);
    return in->dims[in->rank - 1] == in->dims[in->rank - 2]
               ? RP_OK
               : rp_node_error(node, RP_FORMAT, err, "the matrix is not square");
}

static RP_PREPARE(prepare_getrf)
{
    return factor_check(plan, node, 1, 3, err);
}

static RP_PREPARE(prepare_trsm)
{
    RP_TRY(factor_check(plan, node, 2, 1, err));
    struct factor *c = node->attrs;
    c->solve = (struct rp_solve){.left = rp_config_letter(plan, node, "side", 'L'),
                                 .lower = c->lower,
                                 .unit = rp_config_letter(plan, node, "diag", 'U'),
                                 .transpose = rp_config_letter(plan, node, "trans_x", 'T'),
                                 .adjoint = rp_config_letter(plan, node, "trans_x", 'C')};
    c->alpha = c->older ? c->first - 1 : node->nin > 2 ? 2 : 0;
    return RP_OK;
}

static RP_PREPARE(prepare_solve)
{
    char word[16];

    RP_TRY(factor_check(plan, node, 2, 1, err));
    rp_config_word(plan, node, "transpose_a", word, sizeof word);
    struct factor *c = node->attrs;
    c->solve = (struct rp_solve){.left = rp_config_flag(plan, node, "left_side"),
                                 .lower = c->lower,
                                 .unit = rp_config_flag(plan, node, "unit_diagonal"),
                                 .transpose = !strcmp(word, "TRANSPOSE"),
                                 .adjoint = !strcmp(word, "ADJOINT")};
    return RP_OK;
}

static RP_KERNEL(trsm)
{
    const struct factor *c = node->attrs;
    struct rp_solve solve = {.left = factor_flag(c, in, 0, 1, c->solve.left),
                             .lower = factor_flag(c, in, 1, 1, c->solve.lower),
                             .transpose = factor_flag(c, in, 2, 1, c->solve.transpose),
                             .adjoint = factor_flag(c, in, 2, 2, c->solve.adjoint),
                             .unit = factor_flag(c, in, 3, 1, c->solve.unit)};
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};

    if (c->alpha && in[c->alpha]->n && rp_tensor_number(in[c->alpha], 0) != 1)
        return rp_node_error(node, RP_UNSUPPORTED, err, "a factor other than 1");
    RP_TRY(rp_custom_parts(node, &parts, err));
    RP_TRY(rp_solve_run(&solve, in[c->first], in[c->first + 1], &parts.at[0], err));
    return rp_custom_give(node, &parts, out, err);
}

/* Gives (factor, info); the other triangle is that of the operand. */
static RP_KERNEL(potrf)
{
    const struct factor *c = node->attrs;
    bool lower = factor_flag(c, in, 0, 1, c->lower);
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};
    const struct rp_tensor *first;
    struct rp_tensor *a = in[c->first];
    size_t n = (size_t)a->dims[a->rank - 1], at = 1;

    RP_TRY(rp_custom_parts(node, &parts, err));
    RP_TRY(rp_cholesky_run(a, lower, &parts.at[0], err));
    first = parts.at[0];
    for (size_t i = 0; i < first->n; i++) {
        size_t row = i / n % n, column = i % n;

        if (lower ? column > row : column < row)
            memcpy(first->data + i * a->unit, a->data + i * a->unit, a->unit);
    }
    RP_TRY(rp_custom_give(node, &parts, out, err));
    while (at + 1 < (*out)->nparts && (*out)->parts[at]->elem != RP_ELEM_S32)
        at++; /* XLA has its work space before this result */
    struct rp_tensor *info = (*out)->parts[at];
    for (size_t b = 0; b < info->n && (b + 1) * n * n <= first->n; b++) {
        int64_t bad = 0;

        for (size_t k = 0; k < n && !bad; k++)
            if (rp_tensor_number(first, b * n * n + k * n + k) !=
                rp_tensor_number(first, b * n * n + k * n + k))
                bad = (int64_t)k + 1;
        rp_tensor_set_integer(info, b, bad);
    }
    return RP_OK;
}

/* Gives (factors, pivots, info), one matrix after the other. */
static RP_KERNEL(getrf)
{
    struct rp_tensor *a = in[((const struct factor *)node->attrs)->first];
    size_t rows = (size_t)a->dims[a->rank - 2], columns = (size_t)a->dims[a->rank - 1];
    size_t least = rows < columns ? rows : columns;
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *wide = NULL;
    RP_FREED int64_t *pivot = calloc(least + 1, sizeof *pivot);

    RP_TRY(rp_err_need(pivot, err, "factoring"));
    RP_TRY(rp_custom_parts(node, &parts, err));
    RP_TRY(rp_tensor_c128(a, &wide, err));
    for (size_t i = 1; i < 3; i++)
        RP_TRY(rp_shape_tensor(node->shape->parts[i], &parts.at[i], err));
    for (size_t b = 0; least && b < wide->n / (rows * columns); b++) {
        int64_t info =
            rp_lu((rp_c128 *)(void *)wide->data + b * rows * columns, rows, columns, pivot);

        for (size_t i = 0; i < least && b * least + i < parts.at[1]->n; i++)
            rp_tensor_set_integer(parts.at[1], b * least + i, pivot[i]);
        if (b < parts.at[2]->n)
            rp_tensor_set_integer(parts.at[2], b, info);
    }
    RP_TRY(rp_tensor_as(wide, a->elem, &parts.at[0], err));
    return rp_custom_give(node, &parts, out, err);
}

/* ---- QR ---- */

/* Makes the reflector that maps n numbers to (beta, 0 ...). The first number is *alpha, which
   becomes beta; the others are at x, `step` apart, and become the reflector's vector after its
   leading one. */
rp_c128 rp_reflector(rp_c128 *alpha, rp_c128 *x, size_t step, size_t n)
{
    double norm = 0, re = creal(*alpha), im = cimag(*alpha);

    for (size_t i = 0; i + 1 < n; i++)
        norm = hypot(norm, cabs(x[i * step]));
    if (!n || (norm == 0 && im == 0))
        return 0;
    double beta = -copysign(hypot(hypot(re, im), norm), re);
    rp_c128 tau = CMPLX((beta - re) / beta, -im / beta);
    rp_c128 scale = 1 / (*alpha - beta);
    for (size_t i = 0; i + 1 < n; i++)
        x[i * step] *= scale;
    *alpha = beta;
    return tau;
}

/* Subtracts tau v (v^H A) from columns `first` on of rows i on; v = (1, column i below row i). */
static void reflect(rp_c128 *a, size_t rows, size_t columns, size_t i, size_t first, rp_c128 tau)
{
    for (size_t j = first; j < columns; j++) {
        rp_c128 sum = a[i * columns + j];

        for (size_t r = i + 1; r < rows; r++)
            sum += conj(a[r * columns + i]) * a[r * columns + j];
        sum *= tau;
        a[i * columns + j] -= sum;
        for (size_t r = i + 1; r < rows; r++)
            a[r * columns + j] -= a[r * columns + i] * sum;
    }
}

/* Replaces k reflectors by the first columns of their product. */
static void reflectors_product(rp_c128 *a, size_t rows, size_t columns, const rp_c128 *tau,
                               size_t k)
{
    for (size_t j = k; j < columns; j++)
        for (size_t r = 0; r < rows; r++)
            a[r * columns + j] = r == j;
    for (size_t i = k; i-- > 0;) {
        reflect(a, rows, columns, i, i + 1, tau[i]);
        for (size_t r = i + 1; r < rows; r++)
            a[r * columns + i] *= -tau[i];
        a[i * columns + i] = 1 - tau[i];
        for (size_t r = 0; r < i; r++)
            a[r * columns + i] = 0;
    }
}

enum rp_code rp_tensor_c128(const struct rp_tensor *in, struct rp_tensor **out, struct rp_err *err)
{
    RP_TRY(rp_tensor_new(RP_ELEM_C128, in->dims, in->rank, out, err));
    for (size_t i = 0; i < in->n; i++)
        ((rp_c128 *)(void *)(*out)->data)[i] =
            CMPLX(rp_tensor_number(in, i), rp_tensor_imaginary(in, i));
    return RP_OK;
}

static RP_PREPARE(prepare_geqrf)
{
    RP_TRY(factor_check(plan, node, 1, 2, err));
    const struct rp_value_shape *in = factor_operand(plan, node, 0);
    int64_t least = in->dims[in->rank - 1] < in->dims[in->rank - 2] ? in->dims[in->rank - 1]
                                                                    : in->dims[in->rank - 2];
    if (node->shape->parts[0]->n != in->n || node->shape->parts[1]->rank + 1 != in->rank ||
        node->shape->parts[1]->dims[in->rank - 2] != least)
        return rp_node_error(node, RP_FORMAT, err, "wrong shape of the results");
    return RP_OK;
}

static RP_KERNEL(geqrf)
{
    struct rp_tensor *from = in[((const struct factor *)node->attrs)->first];
    size_t rows = (size_t)from->dims[from->rank - 2];
    size_t columns = (size_t)from->dims[from->rank - 1], least = rows < columns ? rows : columns;
    const struct rp_value_shape *small = node->shape->parts[1];
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *a = NULL, *tau = NULL;
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};

    RP_TRY(rp_custom_parts(node, &parts, err));
    RP_TRY(rp_tensor_c128(from, &a, err));
    RP_TRY(rp_tensor_new(RP_ELEM_C128, small->dims, small->rank, &tau, err));
    for (size_t b = 0; least && b < a->n / (rows * columns) && (b + 1) * least <= tau->n; b++)
        for (size_t i = 0; i < least; i++) {
            rp_c128 *m = (rp_c128 *)(void *)a->data + b * rows * columns;
            rp_c128 *by = (rp_c128 *)(void *)tau->data + b * least + i;

            *by = rp_reflector(&m[i * columns + i], &m[(i + 1) * columns + i], columns, rows - i);
            reflect(m, rows, columns, i, i + 1, conj(*by));
        }
    RP_TRY(rp_tensor_as(a, from->elem, &parts.at[0], err));
    RP_TRY(rp_tensor_as(tau, small->elem, &parts.at[1], err));
    return rp_custom_give(node, &parts, out, err);
}

static RP_PREPARE(prepare_orgqr)
{
    RP_TRY(factor_check(plan, node, 2, 1, err));
    const struct rp_value_shape *a = factor_operand(plan, node, 0);
    const struct rp_value_shape *tau = factor_operand(plan, node, 1);
    if (tau->rank + 1 != a->rank || tau->dims[tau->rank - 1] > a->dims[a->rank - 1] ||
        a->dims[a->rank - 1] > a->dims[a->rank - 2] || rp_custom_shape(node)->n != a->n ||
        (a->n &&
         tau->n / (size_t)(tau->dims[tau->rank - 1] ? tau->dims[tau->rank - 1] : 1) !=
             a->n / (size_t)(a->dims[a->rank - 1] * a->dims[a->rank - 2]) &&
         tau->n))
        return rp_node_error(node, RP_FORMAT, err, "wrong shape of the operands");
    return RP_OK;
}

static RP_KERNEL(orgqr)
{
    struct rp_tensor *const *of = in + ((const struct factor *)node->attrs)->first;
    size_t rows = (size_t)of[0]->dims[of[0]->rank - 2];
    size_t columns = (size_t)of[0]->dims[of[0]->rank - 1];
    size_t k = (size_t)of[1]->dims[of[1]->rank - 1];
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *a = NULL, *tau = NULL;
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};

    RP_TRY(rp_custom_parts(node, &parts, err));
    RP_TRY(rp_tensor_c128(of[0], &a, err));
    RP_TRY(rp_tensor_c128(of[1], &tau, err));
    for (size_t b = 0; columns && b < a->n / (rows * columns); b++)
        reflectors_product((rp_c128 *)(void *)a->data + b * rows * columns, rows, columns,
                           (rp_c128 *)(void *)tau->data + b * k, k);
    RP_TRY(rp_tensor_as(a, of[0]->elem, &parts.at[0], err));
    return rp_custom_give(node, &parts, out, err);
}

#define EACH(begin, name, prepare, run)                                               \
    {begin "s" name "_ffi", prepare, run}, {begin "d" name "_ffi", prepare, run},     \
        {begin "c" name "_ffi", prepare, run}, {begin "z" name "_ffi", prepare, run}, \
        {begin "s" name, prepare, run}, {begin "d" name, prepare, run},               \
        {begin "c" name, prepare, run}, {begin "z" name, prepare, run},               \
        {"cusolver_" name "_ffi", prepare, run}, {"cusolver_" name, prepare, run},    \
        {"hipsolver_" name "_ffi", prepare, run},                                     \
    {                                                                                 \
        "hipsolver_" name, prepare, run                                               \
    }

const struct rp_custom_target rp_custom_factors[] = {
    EACH("lapack_", "potrf", prepare_potrf, potrf),
    EACH("lapack_", "getrf", prepare_getrf, getrf),
    EACH("lapack_", "geqrf", prepare_geqrf, geqrf),
    EACH("lapack_", "orgqr", prepare_orgqr, orgqr),
    EACH("lapack_", "ungqr", prepare_orgqr, orgqr),
    EACH("lapack_", "trsm", prepare_trsm, trsm),
    EACH("blas_", "trsm", prepare_trsm, trsm),
    {"cublas_getrf_batched*", prepare_getrf, getrf},
    {"hipblas_getrf_batched*", prepare_getrf, getrf},
    {"hipblas_geqrf_batched*", prepare_geqrf, geqrf},
    {"cublas_geqrf_batched*", prepare_geqrf, geqrf},
    {"__cublas$triangularSolve", prepare_solve, trsm},
    {"__cusolver$cholesky", prepare_potrf, potrf},
    {NULL, NULL, NULL},
};
