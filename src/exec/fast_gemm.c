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

#define TILE_M 96
#define TILE_N 256
#define DEPTH  256

typedef float v8 __attribute__((vector_size(32), aligned(4)));
typedef float v16 __attribute__((vector_size(64), aligned(4)));

/* c += a * b of one block: a is packed [k][ROWS], b [k][2 * LANES]. */
#define KERNEL(name, attribute, ROWS, VEC, LANES)                                              \
    attribute static void name(int64_t k, const float *a, const float *b, float *c,            \
                               int64_t stride)                                                 \
    {                                                                                          \
        VEC acc[ROWS][2];                                                                      \
                                                                                               \
        for (int r = 0; r < ROWS; r++) {                                                       \
            acc[r][0] = *(const VEC *)(const void *)(c + r * stride);                          \
            acc[r][1] = *(const VEC *)(const void *)(c + r * stride + LANES);                  \
        }                                                                                      \
        for (int64_t i = 0; i < k; i++, a += ROWS, b += 2 * (LANES)) {                         \
            VEC b0 = *(const VEC *)(const void *)b;                                            \
            VEC b1 = *(const VEC *)(const void *)(b + (LANES));                                \
                                                                                               \
            for (int r = 0; r < ROWS; r++) {                                                   \
                acc[r][0] += a[r] * b0;                                                        \
                acc[r][1] += a[r] * b1;                                                        \
            }                                                                                  \
        }                                                                                      \
        for (int r = 0; r < ROWS; r++) {                                                       \
            *(VEC *)(void *)(c + r * stride) = acc[r][0];                                      \
            *(VEC *)(void *)(c + r * stride + LANES) = acc[r][1];                              \
        }                                                                                      \
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
    struct kernel kernel;
    int64_t tiles_m, tiles_n, tile_n;
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
        for (int64_t k = 0; k < depth; k++)
            for (int64_t r = 0; r < have; r++)
                out[k * height + r] = a[(p + r) * g->a_row + k * g->a_column];
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
        for (int64_t k = 0; k < depth; k++)
            for (int64_t c = 0; c < have; c++)
                out[k * width + c] = b[k * g->b_row + (p + c) * g->b_column];
        out += depth * width;
    }
}

static enum rp_code tile(void *user, size_t i, struct rp_err *err)
{
    const struct job *j = user;
    const struct rp_gemm *g = j->g;
    int64_t tn = (int64_t)i % j->tiles_n, tm = (int64_t)i / j->tiles_n % j->tiles_m;
    int64_t batch = (int64_t)i / j->tiles_n / j->tiles_m;
    int64_t m0 = tm * TILE_M, n0 = tn * j->tile_n;
    int64_t rows = g->m - m0 < TILE_M ? g->m - m0 : TILE_M;
    int64_t columns = g->n - n0 < j->tile_n ? g->n - n0 : j->tile_n;
    int64_t high = (rows + j->kernel.rows - 1) / j->kernel.rows * j->kernel.rows;
    int64_t wide = (columns + j->kernel.columns - 1) / j->kernel.columns * j->kernel.columns;
    const float *a = g->a + batch * g->a_batch + m0 * g->a_row;
    const float *b = g->b + batch * g->b_batch + n0 * g->b_column;
    size_t floats = (size_t)(high * DEPTH + wide * DEPTH + high * wide);
    float *pa = aligned_alloc(64, (floats * sizeof *pa + 63) / 64 * 64), *pb, *pc;

    if (!pa)
        return rp_err_nomem(err, "multiplying");
    pb = pa + high * DEPTH;
    pc = pb + wide * DEPTH;
    memset(pc, 0, (size_t)(high * wide) * sizeof *pc);
    for (int64_t k0 = 0; k0 < g->k; k0 += DEPTH) {
        int64_t depth = g->k - k0 < DEPTH ? g->k - k0 : DEPTH;

        pack_a(g, a + k0 * g->a_column, rows, depth, j->kernel.rows, pa);
        pack_b(g, b + k0 * g->b_row, columns, depth, j->kernel.columns, pb);
        for (int64_t n = 0; n < wide; n += j->kernel.columns)
            for (int64_t m = 0; m < high; m += j->kernel.rows)
                j->kernel.fn(depth, pa + m * depth, pb + n * depth, pc + m * wide + n, wide);
    }
    for (int64_t r = 0; r < rows; r++)
        memcpy(g->c + (batch * g->m + m0 + r) * g->n + n0, pc + r * wide,
               (size_t)columns * sizeof *pc);
    free(pa);
    return RP_OK;
}

enum rp_code rp_gemm_run(const struct rp_gemm *g, struct rp_pool *pool, struct rp_err *err)
{
    struct job j = {.g = g, .kernel = best_kernel(), .tile_n = TILE_N};
    size_t n;

    if (!g->batch || !g->m || !g->n)
        return RP_OK;
    j.tiles_m = (g->m + TILE_M - 1) / TILE_M;
    if (pool && g->batch * j.tiles_m < (int64_t)rp_pool_threads(pool) && g->n >= 128)
        j.tile_n = 64;
    j.tiles_n = (g->n + j.tile_n - 1) / j.tile_n;
    n = (size_t)(g->batch * j.tiles_m * j.tiles_n);
    if (pool && n > 1 && g->m * g->n * g->k * g->batch > 65536)
        return rp_pool_each(pool, n, tile, &j, err);
    for (size_t i = 0; i < n; i++)
        RP_TRY(tile(&j, i, err));
    return RP_OK;
}
