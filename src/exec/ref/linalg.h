/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Dense linear algebra of small matrices, for operations and for custom calls with the same
   meaning. */
#include "exec/data/complex.h"
#include "exec/data/tensor.h"

struct rp_solve {
    bool left, lower, unit, transpose, adjoint;
};
/* Solves op(A) x = b, or x op(A) = b, in the last two dimensions. */
enum rp_code rp_solve_run(const struct rp_solve *a, struct rp_tensor *left, struct rp_tensor *right,
                          struct rp_tensor **out, struct rp_err *err);

/* Computes LU factors of rows x columns in place, with partial pivoting; pivot[i] is the row, from
   1, that was exchanged with row i. Returns 0, or the number, from 1, of the first pivot that is
   zero. */
int64_t rp_lu(rp_c128 *m, size_t rows, size_t columns, int64_t *pivot);

/* Makes a reflector like LAPACK's larfg from n numbers: *alpha and those at x. */
rp_c128 rp_reflector(rp_c128 *alpha, rp_c128 *x, size_t step, size_t n);
enum rp_code rp_tensor_c128(const struct rp_tensor *in, struct rp_tensor **out, struct rp_err *err);

enum rp_code rp_cholesky_run(struct rp_tensor *in, bool lower, struct rp_tensor **out,
                             struct rp_err *err);
