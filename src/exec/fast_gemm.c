/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products, our own: tiles of the result are jobs of the pool; a job packs the pieces of
 * both operands that it needs (any strides) and runs a small kernel over them whose accumulators
 * stay in registers.
 *
 *   tile of c  TILE_M x TILE_N, in steps of DEPTH along k
 *   kernel     ROWS x (2 vectors) of c; one version each for AVX-512, AVX2 and anything else
 *
 * Sums are f32 in blocks of DEPTH, as in the usual libraries.
 */
#include "exec/fast_gemm.h"

#include <stdlib.h>
#include <string.h>

#define TILE_M       96
#define TILE_N       256
#define DEPTH        256
#define LIBRARY_FROM 262144 /* multiplications: below, packing once costs less than a call */

typedef float v8 __attribute__((vector_size(32), aligned(4)));
typedef float v16 __attribute__((vector_size(64), aligned(4)));

/* c += a * b of one block: a is packed [k][ROWS], b [k][2 * LANES]. */
#define KERNEL(name, attribute, ROWS, VEC, LANES)                                   \
    attribute static void name(int64_t k, const float *a, const float *b, float *c, \
                               int64_t stride)                                      \
    {                                                                               \
        VEC acc[ROWS][2];                                                           \
                                                                                    \
        for (int r = 0; r < ROWS; r++) {                                            \
            acc[r][0] = *(const VEC *)(const void *)(c + r * stride);               \
            acc[r][1] = *(const VEC *)(const void *)(c + r * stride + LANES);       \
        }                                                                           \
        for (int64_t i = 0; i < k; i++, a += ROWS, b += 2 * (LANES)) {              \
            VEC b0 = *(const VEC *)(const void *)b;                                 \
            VEC b1 = *(const VEC *)(const void *)(b + (LANES));                     \
                                                                                    \
            for (int r = 0; r < ROWS; r++) {                                        \
                acc[r][0] += a[r] * b0;                                             \
                acc[r][1] += a[r] * b1;                                             \
            }                                                                       \
        }                                                                           \
        for (int r = 0; r < ROWS; r++) {                                            \
            *(VEC *)(void *)(c + r * stride) = acc[r][0];                           \
            *(VEC *)(void *)(c + r * stride + LANES) = acc[r][1];                   \
        }                                                                           \
    }

#define UNROLL __attribute__((optimize("O3")))
KERNEL(kernel_plain, UNROLL, 4, v8, 8)
#if defined(__x86_64__)
KERNEL(kernel_avx2, __attribute__((target("avx2,fma"), optimize("O3"))), 6, v8, 8)
KERNEL(kernel_avx512, __attribute__((target("avx512f"), optimize("O3"))), 12, v16, 16)
#endif

struct kernel {
    void (*fn)(int64_t k, const float *a, const float *b, float *c, int64_t stride);
    int64_t rows, columns;
};

static struct kernel best_kernel(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return (struct kernel){kernel_avx512, 12, 32};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (struct kernel){kernel_avx2, 6, 16};
#endif
    return (struct kernel){kernel_plain, 4, 16};
}

struct job {
    const struct rp_gemm *g;
    const struct rp_blas *blas;
    struct kernel kernel;
    int64_t tiles_m, tiles_n, tile_m, tile_n;
};

/* rows x depth of a into [panel][k][kernel rows], zeros below the last row. */
static void pack_a(const struct rp_gemm *g, const float *a, int64_t rows, int64_t depth,
                   int64_t height, float *out)
{
    for (int64_t p = 0; p < rows; p += height, out += depth * height) {
        int64_t have = rows - p < height ? rows - p : height;

        if (have < height)
            memset(out, 0, (size_t)(depth * height) * sizeof *out);
        if (g->a_row == 1) {
            for (int64_t k = 0; k < depth; k++)
                memcpy(out + k * height, a + p + k * g->a_column, (size_t)have * sizeof *out);
            continue;
        }
        for (int64_t r = 0; r < have; r++) { /* reads in order; the panel is in the cache */
            const float *row = a + (p + r) * g->a_row;

            for (int64_t k = 0; k < depth; k++)
                out[k * height + r] = row[k * g->a_column];
        }
    }
}

static void pack_b(const struct rp_gemm *g, const float *b, int64_t columns, int64_t depth,
                   int64_t width, float *out)
{
    for (int64_t p = 0; p < columns; p += width) {
        int64_t have = columns - p < width ? columns - p : width;

        if (g->b_column == 1 && have == width) {
            for (int64_t k = 0; k < depth; k++, out += width)
                memcpy(out, b + k * g->b_row + p, (size_t)width * sizeof *out);
            continue;
        }
        if (have < width)
            memset(out, 0, (size_t)(depth * width) * sizeof *out);
        if (g->b_column == 1) {
            for (int64_t k = 0; k < depth; k++)
                memcpy(out + k * width, b + k * g->b_row + p, (size_t)have * sizeof *out);
        } else {
            for (int64_t c = 0; c < have; c++)
                for (int64_t k = 0; k < depth; k++)
                    out[k * width + c] = b[k * g->b_row + (p + c) * g->b_column];
        }
        out += depth * width;
    }
}

/* One tile by the kernel. */
static enum rp_code own_tile(const struct job *j, const struct rp_gemm *g, struct rp_err *err)
{
    int64_t high = (g->m + j->kernel.rows - 1) / j->kernel.rows * j->kernel.rows;
    int64_t wide = (g->n + j->kernel.columns - 1) / j->kernel.columns * j->kernel.columns;
    size_t floats = (size_t)(high * DEPTH + wide * DEPTH + high * wide);
    float *pa = aligned_alloc(64, (floats * sizeof *pa + 63) / 64 * 64), *pb, *pc;

    if (!pa)
        return rp_err_nomem(err, "multiplying");
    pb = pa + high * DEPTH;
    pc = pb + wide * DEPTH;
    memset(pc, 0, (size_t)(high * wide) * sizeof *pc);
    for (int64_t k0 = 0; k0 < g->k; k0 += DEPTH) {
        int64_t depth = g->k - k0 < DEPTH ? g->k - k0 : DEPTH;

        pack_a(g, g->a + k0 * g->a_column, g->m, depth, j->kernel.rows, pa);
        pack_b(g, g->b + k0 * g->b_row, g->n, depth, j->kernel.columns, pb);
        for (int64_t n = 0; n < wide; n += j->kernel.columns)
            for (int64_t m = 0; m < high; m += j->kernel.rows)
                j->kernel.fn(depth, pa + m * depth, pb + n * depth, pc + m * wide + n, wide);
    }
    for (int64_t r = 0; r < g->m; r++)
        memcpy(g->c + r * g->c_row, pc + r * wide, (size_t)g->n * sizeof *pc);
    free(pa);
    return RP_OK;
}

static enum rp_code tile(void *user, size_t i, struct rp_err *err)
{
    const struct job *j = user;
    struct rp_gemm g = *j->g;
    int64_t tn = (int64_t)i % j->tiles_n, tm = (int64_t)i / j->tiles_n % j->tiles_m;
    int64_t batch = (int64_t)i / j->tiles_n / j->tiles_m;
    int64_t m0 = tm * j->tile_m, n0 = tn * j->tile_n;

    g.a += batch * g.a_batch + m0 * g.a_row;
    g.b += batch * g.b_batch + n0 * g.b_column;
    g.c += (batch * g.m + m0) * g.n + n0;
    g.c_row = g.n;
    g.m = g.m - m0 < j->tile_m ? g.m - m0 : j->tile_m;
    g.n = g.n - n0 < j->tile_n ? g.n - n0 : j->tile_n;
    if (j->blas && rp_blas_gemm(j->blas, &g))
        return RP_OK;
    return own_tile(j, &g, err);
}

enum rp_code rp_gemm_run(const struct rp_gemm *g, const struct rp_blas *blas, struct rp_pool *pool,
                         struct rp_err *err)
{
    struct job j = {
        .g = g, .kernel = best_kernel(), .tile_m = TILE_M, .tile_n = TILE_N, .blas = blas};
    int64_t threads = pool ? (int64_t)rp_pool_threads(pool) : 1;
    size_t n;

    if (!g->batch || !g->m || !g->n)
        return RP_OK;
    if (g->m * g->n * g->k < LIBRARY_FROM)
        j.blas = NULL;
    if (j.blas) { /* it packs better in larger pieces */
        j.tile_m = g->batch >= threads ? g->m : (g->m + threads - 1) / threads;
        j.tile_n = g->n;
    }
    j.tiles_m = (g->m + j.tile_m - 1) / j.tile_m;
    if (g->batch * j.tiles_m < threads && g->n >= 128)
        j.tile_n = 64;
    j.tiles_n = (g->n + j.tile_n - 1) / j.tile_n;
    n = (size_t)(g->batch * j.tiles_m * j.tiles_n);
    if (pool && n > 1 && g->m * g->n * g->k * g->batch > 65536)
        return rp_pool_each(pool, n, tile, &j, err);
    for (size_t i = 0; i < n; i++)
        RP_TRY(tile(&j, i, err));
    return RP_OK;
}
