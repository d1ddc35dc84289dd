/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXEC_FAST_GEMM_H
#define RP_EXEC_FAST_GEMM_H
/* Products of f32 matrices. */
#include "base/threads.h"

#include <stdint.h>

struct rp_gemm {
    int64_t batch, m, n, k;
    const float *a, *b;
    float *c;                        /* rows of n, not read */
    int64_t a_row, a_column, a_batch; /* strides in elements */
    int64_t b_row, b_column, b_batch;
};

/* c[b][i][j] = sum over k of a[b][i][k] * b[b][k][j]. pool may be NULL. */
enum rp_code rp_gemm_run(const struct rp_gemm *g, struct rp_pool *pool, struct rp_err *err);

/* The matrix library in use: "OpenBLAS 0.3.21 (libopenblas.so.0)", or "own". */
const char *rp_gemm_library(void);

#endif
