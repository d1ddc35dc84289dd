/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes matrix products with our own code: tiles of the result are jobs of the pool; a job packs
 * the pieces of both operands that it needs (any strides) and runs a small kernel over them whose
 * accumulators stay in registers.
 *
 *   tile of c  TILE_M x TILE_N, in steps of DEPTH along k
 *   kernel     ROWS x (2 vectors) of c; one version each for AVX-512, AVX2 and anything else
 *
 * Sums are f32 in blocks of DEPTH, as in the usual libraries.
 */
#include "exec/fast/gemm.h"

#include "exec/eval/transpose.h"
#include "exec/ref/dot.h"

#include <stdlib.h>
#include <string.h>

#define TILE_M 192
#define TILE_N 1024
#define DEPTH  256
#define FAR_ROW \
    640 /* if rows of b are at least this far apart, they are packed if they are used often */
#define WORTH_THREADS 500000 /* multiplications */
#define LIBRARY_FROM \
    262144 /* multiplications; with fewer, packing costs less than a library call */

typedef float v8 __attribute__((vector_size(32), aligned(4)));
typedef float v16 __attribute__((vector_size(64), aligned(4)));

/* Computes c = a * b for one block, or c += if it is not the first: a is packed [k][ROWS], a row of
   b has VECS * LANES elements, and the next one begins `next` elements later. */
#define KERNEL(name, attribute, ROWS, VEC, LANES, VECS)                                           \
    attribute static void name(int64_t k, const float *a, const float *b, int64_t next, float *c, \
                               int64_t stride, bool first)                                        \
    {                                                                                             \
        VEC acc[ROWS][VECS];                                                                      \
                                                                                                  \
        for (int r = 0; r < ROWS; r++)                                                            \
            for (int v = 0; v < VECS; v++)                                                        \
                acc[r][v] =                                                                       \
                    first ? (VEC){0}                                                              \
                          : *(const VEC *)(const void *)(c + r * stride + (int64_t)v * (LANES));  \
        for (int64_t i = 0; i < k; i++, a += ROWS, b += next) {                                   \
            VEC row[VECS];                                                                        \
                                                                                                  \
            for (int v = 0; v < VECS; v++)                                                        \
                row[v] = *(const VEC *)(const void *)(b + (int64_t)v * (LANES));                  \
            for (int r = 0; r < ROWS; r++)                                                        \
                for (int v = 0; v < VECS; v++)                                                    \
                    acc[r][v] += a[r] * row[v];                                                   \
        }                                                                                         \
        for (int r = 0; r < ROWS; r++)                                                            \
            for (int v = 0; v < VECS; v++)                                                        \
                *(VEC *)(void *)(c + r * stride + (int64_t)v * (LANES)) = acc[r][v];              \
    }

KERNEL(kernel_plain, , 4, v8, 8, 2)
KERNEL(narrow_plain, , 4, v8, 8, 1)
#if defined(__x86_64__)
#define AVX2   __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f")))
KERNEL(kernel_avx2, AVX2, 6, v8, 8, 2)
KERNEL(narrow_avx2, AVX2, 6, v8, 8, 1)
KERNEL(kernel_avx512, AVX512, 12, v16, 16, 2)
KERNEL(narrow_avx512, AVX512, 12, v16, 16, 1)
#endif
#define MOST_ROWS    12
#define MOST_COLUMNS 32

typedef void kernel_fn(int64_t k, const float *a, const float *b, int64_t next, float *c,
                       int64_t stride, bool first);
struct kernel {
    kernel_fn *fn, *narrow; /* narrow: for half of the columns */
    int64_t rows, columns;
};

static struct kernel best_kernel(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return (struct kernel){kernel_avx512, narrow_avx512, 12, 32};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (struct kernel){kernel_avx2, narrow_avx2, 6, 16};
#endif
    return (struct kernel){kernel_plain, narrow_plain, 4, 16};
}

struct job {
    const struct rp_gemm *g;
    const struct rp_blas *blas;
    struct kernel kernel;
    int64_t tiles_m, tiles_n, tile_m, tile_n;
};

/* Transposes four rows of `depth` into [k][height]. */
static void turn_four(const float *in, int64_t row, int64_t depth, int64_t height, float *out)
{
    int64_t k = 0;

    for (; k + 4 <= depth; k += 4)
        rp_turn_four(in + k, row, out + k * height, height);
    for (; k < depth; k++)
        for (int64_t r = 0; r < 4; r++)
            out[k * height + r] = in[r * row + k];
}

static void turn_rows(const float *in, int64_t row, int64_t column, int64_t rows, int64_t depth,
                      int64_t height, float *out)
{
    int64_t r = 0;

    for (; column == 1 && r + 4 <= rows; r += 4)
        turn_four(in + r * row, row, depth, height, out + r);
    for (; r < rows; r++) /* reads in order, because the panel is in the cache */
        for (int64_t k = 0; k < depth; k++)
            out[k * height + r] = in[r * row + k * column];
}

/* Packs rows x depth of a into [panel][k][kernel rows], with zeros below the last row. */
static void pack_a(const struct rp_gemm *g, const float *a, int64_t rows, int64_t depth,
                   int64_t height, float *out)
{
    for (int64_t p = 0; p < rows; p += height, out += depth * height) {
        int64_t have = rows - p < height ? rows - p : height;

        if (have < height)
            memset(out, 0, (size_t)(depth * height) * sizeof *out);
        if (g->a_row == 1)
            for (int64_t k = 0; k < depth; k++)
                memcpy(out + k * height, a + p + k * g->a_column, (size_t)have * sizeof *out);
        else
            turn_rows(a + p * g->a_row, g->a_row, g->a_column, have, depth, height, out);
    }
}

/* Packs one panel of b, [k][width], with zeros after its last column. */
static void pack_b(const struct rp_gemm *g, const float *b, int64_t have, int64_t depth,
                   int64_t width, float *out)
{
    if (have < width)
        memset(out, 0, (size_t)(depth * width) * sizeof *out);
    if (g->b_column == 1)
        for (int64_t k = 0; k < depth; k++)
            memcpy(out + k * width, b + k * g->b_row, (size_t)have * sizeof *out);
    else
        turn_rows(b, g->b_column, g->b_row, have, depth, width, out);
}

/* Packs rows that are far apart: all whole panels at once, so that each row is read from front to
   end. */
static void pack_far(const struct rp_gemm *g, const float *b, int64_t depth, int64_t width,
                     float *out)
{
    for (int64_t k = 0; k < depth; k++)
        for (int64_t n = 0; n + width <= g->n; n += width)
            memcpy(out + n * depth + k * width, b + k * g->b_row + n, (size_t)width * sizeof *out);
}

/* A piece of c: `columns` of a block of `width`. */
struct block {
    const float *a, *b;
    float *c;
    int64_t next, depth, columns, width;
    kernel_fn *fn;
    bool first;
};

/* An incomplete block goes through a buffer. */
static void gemm_edge(const struct block *x, float *c, const float *a, int64_t c_row, int64_t rows)
{
    float corner[MOST_ROWS * MOST_COLUMNS];

    x->fn(x->depth, a, x->b, x->next, corner, x->width, true);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < x->columns; i++)
            c[r * c_row + i] = corner[r * x->width + i] + (x->first ? 0 : c[r * c_row + i]);
}

/* Packs all rows of one panel of columns. */
static void pack_panel(const struct rp_gemm *g, const struct block *x, int64_t height)
{
    for (int64_t m = 0; m < g->m; m += height) {
        int64_t rows = g->m - m < height ? g->m - m : height;
        const float *a = x->a + m * x->depth;
        float *to = x->c + m * g->c_row;

        if (rows == height && x->columns == x->width)
            x->fn(x->depth, a, x->b, x->next, to, g->c_row, x->first);
        else
            gemm_edge(x, to, a, g->c_row, rows);
    }
}

static void round_packed(const struct rp_gemm *g, float *packed, int64_t n)
{
    if (g->tf32)
        rp_round_tf32((uint32_t *)(void *)packed, (const uint32_t *)(void *)packed, (size_t)n);
}

static bool is_far(const struct rp_gemm *g, const struct kernel *k)
{
    return g->b_column == 1 && (g->tf32 || (g->b_row > FAR_ROW && g->m > 4 * k->rows));
}

/* Makes one step along k over a b that is already packed. */
static void take_panels(const struct job *j, const struct rp_gemm *g, struct block *x, int64_t k0)
{
    x->width = x->next = j->kernel.columns;
    x->fn = j->kernel.fn;
    for (int64_t n = 0; n < g->n; n += x->width) {
        x->columns = g->n - n < x->width ? g->n - n : x->width;
        x->b = g->packed + n * g->k + k0 * x->width;
        x->c = g->c + n;
        pack_panel(g, x, j->kernel.rows);
    }
}

/* Makes one step along k: complete panels of b with contiguous rows are read in place, or if they
   are far apart, from the front of the room; others are packed after them. */
static void pack_panels(const struct job *j, const struct rp_gemm *g, struct block *x,
                        const float *b, float *room)
{
    bool far = is_far(g, &j->kernel);
    float *own = room + (far ? g->n / j->kernel.columns * j->kernel.columns * x->depth : 0);

    if (far) {
        pack_far(g, b, x->depth, j->kernel.columns, room);
        round_packed(g, room, own - room);
    }
    for (int64_t n = 0; n < g->n; n += x->width) {
        x->columns = g->n - n < j->kernel.columns ? g->n - n : j->kernel.columns;
        x->width = j->kernel.columns;
        x->fn = j->kernel.fn;
        if (x->columns <= j->kernel.columns / 2) {
            x->width /= 2;
            x->fn = j->kernel.narrow;
        }
        bool whole = x->columns == x->width && g->b_column == 1 &&
                     !(g->tf32 && x->width < j->kernel.columns);
        if (!whole) {
            pack_b(g, b + n * g->b_column, x->columns, x->depth, x->width, own);
            round_packed(g, own, x->depth * x->width);
        }
        x->b = !whole ? own : far && x->width == j->kernel.columns ? room + n * x->depth : b + n;
        x->next = whole && x->b == b + n ? g->b_row : x->width;
        x->c = g->c + n;
        pack_panel(g, x, j->kernel.rows);
    }
}

/* Computes one tile with our kernel. */
static enum rp_code own_tile(const struct job *j, const struct rp_gemm *g, struct rp_err *err)
{
    int64_t high = (g->m + j->kernel.rows - 1) / j->kernel.rows * j->kernel.rows;
    int64_t wide = j->kernel.columns + (is_far(g, &j->kernel) ? g->n : 0);
    size_t floats = (size_t)((high + wide) * DEPTH);
    float *pa = aligned_alloc(64, (floats * sizeof *pa + 63) / 64 * 64);

    RP_TRY(rp_err_need(pa, err, "multiplying"));
    for (int64_t r = 0; r < g->m && !g->k; r++)
        memset(g->c + r * g->c_row, 0, (size_t)g->n * sizeof *g->c);
    for (int64_t k0 = 0; k0 < g->k; k0 += DEPTH) {
        struct block x = {.a = pa, .depth = g->k - k0 < DEPTH ? g->k - k0 : DEPTH, .first = !k0};

        pack_a(g, g->a + k0 * g->a_column, g->m, x.depth, j->kernel.rows, pa);
        round_packed(g, pa, high * x.depth);
        if (g->packed)
            take_panels(j, g, &x, k0);
        else
            pack_panels(j, g, &x, g->b + k0 * g->b_row, pa + high * DEPTH);
    }
    free(pa);
    return RP_OK;
}

static enum rp_code gemm_tile(void *user, size_t i, struct rp_err *err)
{
    const struct job *j = user;
    struct rp_gemm g = *j->g;
    int64_t tn = (int64_t)i % j->tiles_n, tm = (int64_t)i / j->tiles_n % j->tiles_m;
    int64_t batch = (int64_t)i / j->tiles_n / j->tiles_m;
    int64_t m0 = tm * j->tile_m, n0 = tn * j->tile_n;

    g.a += batch * g.a_batch + m0 * g.a_row;
    g.b += batch * g.b_batch + n0 * g.b_column;
    if (g.packed) /* n0 is a multiple of the block */
        g.packed += n0 * g.k;
    g.c += (batch * g.m + m0) * g.n + n0;
    g.c_row = g.n;
    g.m = g.m - m0 < j->tile_m ? g.m - m0 : j->tile_m;
    g.n = g.n - n0 < j->tile_n ? g.n - n0 : j->tile_n;
    if (j->blas && rp_blas_gemm(j->blas, &g))
        return RP_OK;
    return own_tile(j, &g, err);
}

/* Divides into pieces of at most `most`, all about equally large, in whole blocks of the kernel. */
static int64_t even_blocks(int64_t n, int64_t most, int64_t block)
{
    int64_t pieces = (n + most - 1) / most;

    return ((n + pieces - 1) / pieces + block - 1) / block * block;
}

enum rp_code rp_gemm_run(const struct rp_gemm *g, const struct rp_blas *blas, struct rp_pool *pool,
                         struct rp_err *err)
{
    struct job j = {.g = g, .kernel = best_kernel(), .blas = blas};
    int64_t threads = pool ? (int64_t)rp_pool_threads(pool) : 1;

    if (!g->batch || !g->m || !g->n)
        return RP_OK;
    if (!g->packed && rp_gemm_is_skinny(g))
        return rp_gemm_skinny(g, pool, err);
    if (g->tf32 || g->packed || g->m * g->n * g->k < LIBRARY_FROM)
        j.blas = NULL;
    j.tile_m = even_blocks(g->m, TILE_M, j.kernel.rows);
    j.tile_n = even_blocks(g->n, TILE_N, j.kernel.columns);
    if (j.blas) { /* the library packs better in larger pieces */
        j.tile_m = g->batch >= threads ? g->m : (g->m + threads - 1) / threads;
        j.tile_n = g->n;
    }
    j.tiles_m = (g->m + j.tile_m - 1) / j.tile_m;
    if (g->batch * j.tiles_m < threads)
        j.tile_n = even_blocks(g->n, (g->n + threads - 1) / threads, j.kernel.columns);
    j.tiles_n = (g->n + j.tile_n - 1) / j.tile_n;
    size_t n = (size_t)(g->batch * j.tiles_m * j.tiles_n);
    bool worth = g->m * g->n * g->k * g->batch > WORTH_THREADS;
    return rp_pool_each(worth ? pool : NULL, n, gemm_tile, &j, err);
}

/* ---- packing once ---- */

size_t rp_gemm_packed_floats(const struct rp_gemm *g)
{
    int64_t width = best_kernel().columns;

    return (size_t)((g->n + width - 1) / width * width * g->k);
}

struct packing {
    const struct rp_gemm *g;
    float *out;
    int64_t width;
};

static enum rp_code pack_job(void *user, size_t i, struct rp_err *err)
{
    const struct packing *p = user;
    int64_t n = (int64_t)i * p->width, left = p->g->n - n;

    (void)err;
    pack_b(p->g, p->g->b + n * p->g->b_column, left < p->width ? left : p->width, p->g->k, p->width,
           p->out + n * p->g->k);
    return RP_OK;
}

enum rp_code rp_gemm_pack(const struct rp_gemm *g, float *out, struct rp_pool *pool,
                          struct rp_err *err)
{
    struct packing p = {.g = g, .out = out, .width = best_kernel().columns};

    return rp_pool_each(pool, (size_t)((g->n + p.width - 1) / p.width), pack_job, &p, err);
}
