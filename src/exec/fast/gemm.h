/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Products of f32 matrices. */
#include "base/threads.h"

#include <stdbool.h>
#include <stdint.h>

struct rp_blas; /* a matrix library that was found, or NULL to use our own */

struct rp_gemm {
    int64_t batch, m, n, k;
    const float *a, *b;
    float *c;                         /* rows of n, not read */
    int64_t c_row;                    /* set internally: the rows of a tile */
    int64_t a_row, a_column, a_batch; /* strides in elements */
    int64_t b_row, b_column, b_batch;
    const float *packed; /* all of b, from rp_gemm_pack; NULL: packed during use */
    bool tf32;           /* round a and b to TF32 while packing, even if BLAS is available */
};

/* c[b][i][j] = sum over k of a[b][i][k] * b[b][k][j]. pool may be NULL. */
enum rp_code rp_gemm_run(const struct rp_gemm *g, const struct rp_blas *blas, struct rp_pool *pool,
                         struct rp_err *err);

/* Packs one b (batch 1) once for many products: [column block][k][columns of a block]. */
size_t rp_gemm_packed_floats(const struct rp_gemm *g);
enum rp_code rp_gemm_pack(const struct rp_gemm *g, float *out, struct rp_pool *pool,
                          struct rp_err *err);

/* Does the same for a few rows, if that is faster (skinny.c). */
bool rp_gemm_is_skinny(const struct rp_gemm *g);
enum rp_code rp_gemm_skinny(const struct rp_gemm *g, struct rp_pool *pool, struct rp_err *err);

/*
 * OpenBLAS, if it can be loaded, by the variable REPRISE_BLAS (a path; "own": none), or by its
 * usual names. It stays loaded, because its threads do not survive unloading. False if there is
 * none.
 */
struct rp_blas {
    void *sgemm;
    bool wide;      /* its integers have 64 bits */
    char name[160]; /* "libopenblas.so.0" */
};
bool rp_blas_open(struct rp_blas *out);
/* Computes one product of one tile in this thread. False if its strides are not supported. */
bool rp_blas_gemm(const struct rp_blas *blas, const struct rp_gemm *g);
