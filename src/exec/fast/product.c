/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes products of matrices of other types than f32 (gemm.c): f64, and integers of 32 and 64
 * bits, which wrap around (those of eight: product_bytes.c). A job is a panel of columns and a tile
 * of rows; it packs its piece of b, DEPTH rows at a time, and runs a small kernel whose sums stay
 * in registers over a few rows of a, as many as the machine has registers for.
 */
#include "exec/fast/product.h"
#include "exec/eval/lanes.h"

#include <stdlib.h>

#define MOST_ROWS     8
#define DEPTH         128 /* rows of a panel, which stays in the first cache */
#define TILE_M        256
#define WORTH_THREADS 100000 /* multiplications */

struct tile {
    const struct rp_product *p;
    int64_t batch, m0, m1, n0, n1;
};

/* Computes c[ROWS][VECS vectors] = a * b, or += if it is not the first. a: rows are `row` apart,
   numbers along k `next` apart; b: packed [k][VECS vectors]. */
#define BLOCK(name, attribute, type, ROWS, LANES, VECS)                                            \
    attribute static void name(int64_t k, const type *a, int64_t row, int64_t next, const type *b, \
                               type *c, int64_t stride, bool first)                                \
    {                                                                                              \
        typedef type vec                                                                           \
            __attribute__((vector_size((LANES) * sizeof(type)), aligned(sizeof(type))));           \
        const vec zero = {0};                                                                      \
        vec sum[ROWS][VECS];                                                                       \
                                                                                                   \
        for (int64_t r = 0; r < ROWS; r++)                                                         \
            for (int64_t v = 0; v < VECS; v++)                                                     \
                sum[r][v] =                                                                        \
                    first ? zero : *(const vec *)(const void *)(c + r * stride + v * (LANES));     \
        for (int64_t i = 0; i < k; i++, a += next, b += (int64_t)(LANES) * (VECS)) {               \
            vec line[VECS];                                                                        \
                                                                                                   \
            for (int64_t v = 0; v < VECS; v++)                                                     \
                line[v] = *(const vec *)(const void *)(b + v * (LANES));                           \
            for (int64_t r = 0; r < ROWS; r++)                                                     \
                for (int64_t v = 0; v < VECS; v++)                                                 \
                    sum[r][v] += a[r * row] * line[v];                                             \
        }                                                                                          \
        for (int64_t r = 0; r < ROWS; r++)                                                         \
            for (int64_t v = 0; v < VECS; v++)                                                     \
                *(vec *)(void *)(c + r * stride + v * (LANES)) = sum[r][v];                        \
    }
BLOCK(f64_any, , double, 2, 2, 8)
BLOCK(u32_any, RP_CLONES, uint32_t, 4, 16, 2)
BLOCK(u64_any, RP_CLONES, uint64_t, 4, 8, 2)
#if defined(__x86_64__)
BLOCK(f64_avx2, __attribute__((target("avx2,fma"))), double, 3, 4, 4)
BLOCK(f64_avx512, __attribute__((target("avx512f"))), double, 8, 8, 2)
#endif

/* tile: all blocks of one tile, with `height` rows each. */
#define PRODUCT(name, type, COLUMNS)                                                              \
    enum { name##_columns = COLUMNS };                                                            \
    typedef void name##_fn(int64_t k, const type *a, int64_t row, int64_t next, const type *b,    \
                           type *c, int64_t stride, bool first);                                  \
                                                                                                  \
    static void name##_pack(const struct tile *t, int64_t k0, int64_t depth, type *to)            \
    {                                                                                             \
        const struct rp_product *p = t->p;                                                        \
        const type *b = (const type *)p->b + t->batch * p->b_batch + k0 * p->b_row;               \
                                                                                                  \
        for (int64_t k = 0; k < depth; k++, b += p->b_row, to += COLUMNS)                         \
            if (p->b_column == 1 && t->n0 + COLUMNS <= t->n1)                                     \
                memcpy(to, b + t->n0, COLUMNS * sizeof *to);                                      \
            else                                                                                  \
                for (int64_t j = t->n0; j < t->n0 + COLUMNS; j++)                                 \
                    to[j - t->n0] = j < t->n1 ? b[j * p->b_column] : 0;                           \
    }                                                                                             \
                                                                                                  \
    /* If there are fewer rows or columns than the block has, goes through buffers of its own.    \
     * \ */                                                                                       \
    static void name##_edge(const struct tile *t, name##_fn *fn, int64_t depth, const type *a,    \
                            int64_t rows, const type *b, type *c, bool first)                     \
    {                                                                                             \
        type lines[MOST_ROWS * DEPTH] = {0}, corner[MOST_ROWS * COLUMNS];                         \
                                                                                                  \
        for (int64_t r = 0; r < rows; r++)                                                        \
            for (int64_t k = 0; k < depth; k++)                                                   \
                lines[r * DEPTH + k] = a[r * t->p->a_row + k * t->p->a_column];                   \
        fn(depth, lines, DEPTH, 1, b, corner, COLUMNS, true);                                     \
        for (int64_t r = 0; r < rows; r++)                                                        \
            for (int64_t j = 0; j < t->n1 - t->n0; j++) {                                         \
                type *to = c + r * t->p->n + j;                                                   \
                                                                                                  \
                *to = first ? corner[r * COLUMNS + j] : *to + corner[r * COLUMNS + j];            \
            }                                                                                     \
    }                                                                                             \
                                                                                                  \
    static void name##_tile(const struct tile *t, name##_fn *fn, int64_t height, type *room)      \
    {                                                                                             \
        const struct rp_product *p = t->p;                                                        \
        bool whole = t->n0 + COLUMNS <= t->n1;                                                    \
        int64_t k0 = 0;                                                                           \
                                                                                                  \
        do { /* a product without terms is zero */                                                \
            int64_t depth = p->k - k0 < DEPTH ? p->k - k0 : DEPTH;                                \
                                                                                                  \
            name##_pack(t, k0, depth, room);                                                      \
            for (int64_t m = t->m0; m < t->m1; m += height) {                                     \
                int64_t rows = t->m1 - m < height ? t->m1 - m : height;                           \
                const type *a =                                                                   \
                    (const type *)p->a + t->batch * p->a_batch + m * p->a_row + k0 * p->a_column; \
                type *c = (type *)p->c + (t->batch * p->m + m) * p->n + t->n0;                    \
                                                                                                  \
                if (whole && rows == height)                                                      \
                    fn(depth, a, p->a_row, p->a_column, room, c, p->n, k0 == 0);                  \
                else                                                                              \
                    name##_edge(t, fn, depth, a, rows, room, c, k0 == 0);                         \
            }                                                                                     \
            k0 += DEPTH;                                                                          \
        } while (k0 < p->k);                                                                      \
    }

PRODUCT(f64, double, 16)
PRODUCT(u32, uint32_t, 32)
PRODUCT(u64, uint64_t, 16)

static void f64_product(const struct tile *t, double *room)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        f64_tile(t, f64_avx512, 8, room);
        return;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        f64_tile(t, f64_avx2, 3, room);
        return;
    }
#endif
    f64_tile(t, f64_any, 2, room);
}

struct product_run {
    const struct rp_product *p;
    int64_t columns, panels, tiles;
};

static RP_JOB(product_job)
{
    const struct product_run *r = user;
    int64_t panel = (int64_t)job % r->panels, rest = (int64_t)job / r->panels;
    struct tile t = {.p = r->p,
                     .batch = rest / r->tiles,
                     .m0 = rest % r->tiles * TILE_M,
                     .n0 = panel * r->columns};
    void *room = aligned_alloc(64, (size_t)DEPTH * 128);

    RP_TRY(rp_err_need(room, err, "multiplying"));
    t.m1 = t.m0 + TILE_M < r->p->m ? t.m0 + TILE_M : r->p->m;
    t.n1 = t.n0 + r->columns < r->p->n ? t.n0 + r->columns : r->p->n;
    if (r->p->elem == RP_ELEM_F64)
        f64_product(&t, room);
    else if (r->p->elem == RP_ELEM_S32)
        u32_tile(&t, u32_any, 4, room);
    else
        u64_tile(&t, u64_any, 4, room);
    free(room);
    return RP_OK;
}

enum rp_code rp_product_run(const struct rp_product *p, struct rp_pool *pool, struct rp_err *err)
{
    struct product_run r = {.p = p, .tiles = (p->m + TILE_M - 1) / TILE_M};

    r.columns = p->elem == RP_ELEM_S32 ? u32_columns : f64_columns;
    r.panels = (p->n + r.columns - 1) / r.columns;
    size_t jobs = (size_t)(p->batch * r.tiles * r.panels);
    bool worth = p->batch * p->m * p->n * p->k > WORTH_THREADS;
    return rp_pool_each(worth ? pool : NULL, jobs, product_job, &r, err);
}

/* ---- complex numbers ---- */

/* A column of b becomes two, in which both parts of its elements follow each other: conjugates for
   the real part of the product, exchanged parts for the imaginary part. A row of a has this form
   already. */
#define TURN(name, type)                                                              \
    static void name(const struct rp_tensor *in, size_t columns, size_t k, type *out) \
    {                                                                                 \
        const type *from = (const type *)(const void *)in->data;                      \
                                                                                      \
        for (size_t j = 0; j < columns; j++, from += 2 * k, out += 4 * k)             \
            for (size_t i = 0; i < k; i++) {                                          \
                out[2 * i] = from[2 * i];                                             \
                out[2 * i + 1] = -from[2 * i + 1];                                    \
                out[2 * k + 2 * i] = from[2 * i + 1];                                 \
                out[2 * k + 2 * i + 1] = from[2 * i];                                 \
            }                                                                         \
    }
TURN(turn_c64, float)
TURN(turn_c128, double)

enum rp_code rp_product_turn(const struct rp_tensor *b, size_t k, struct rp_tensor **out,
                             struct rp_err *err)
{
    int64_t n = 4 * (int64_t)b->n;

    if (b->elem == RP_ELEM_C128) {
        RP_TRY(rp_tensor_new(RP_ELEM_F64, &n, 1, out, err));
        turn_c128(b, k ? b->n / k : 0, k, (double *)(void *)(*out)->data);
    } else {
        RP_TRY(rp_tensor_new(RP_ELEM_F32, &n, 1, out, err));
        turn_c64(b, k ? b->n / k : 0, k, (float *)(void *)(*out)->data);
    }
    return RP_OK;
}
