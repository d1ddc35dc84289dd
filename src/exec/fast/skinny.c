/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes products of a few rows (a token of each sequence, in decoding) with a large matrix,
 * which is read once, so that reading it determines the time. Rows of b are added to the results,
 * four at a time, over blocks of columns that stay in the cache; contiguous columns of b are
 * multiplied element by element and summed in lanes. Blocks of columns are jobs of the pool.
 */
#include "exec/eval/lanes.h"
#include "exec/fast/gemm.h"

#include <string.h>

#define MOST_ROWS     8
#define COLUMNS       1024
#define WORTH_THREADS 200000 /* elements of b */
#define LANES         16

typedef float lanes __attribute__((vector_size(64), aligned(4)));

/* Adds a[r][0..3] * four rows of b to c[r], for ROWS rows. */
#define ADD_ROWS(ROWS)                                                                            \
    RP_CLONES static void add_rows_##ROWS(const float *a, int64_t a_row, int64_t a_column,        \
                                          const float *b, int64_t b_row, float *c, int64_t c_row, \
                                          int64_t n)                                              \
    {                                                                                             \
        const float *b1 = b + b_row, *b2 = b1 + b_row, *b3 = b2 + b_row;                          \
        float x[ROWS][4];                                                                         \
                                                                                                  \
        for (int r = 0; r < ROWS; r++)                                                            \
            for (int k = 0; k < 4; k++)                                                           \
                x[r][k] = a[r * a_row + k * a_column];                                            \
        for (int64_t i = 0; i + LANES <= n; i += LANES) {                                         \
            lanes v0 = *(const lanes *)(const void *)(b + i);                                     \
            lanes v1 = *(const lanes *)(const void *)(b1 + i);                                    \
            lanes v2 = *(const lanes *)(const void *)(b2 + i);                                    \
            lanes v3 = *(const lanes *)(const void *)(b3 + i);                                    \
                                                                                                  \
            for (int r = 0; r < ROWS; r++) {                                                      \
                lanes *to = (lanes *)(void *)(c + r * c_row + i);                                 \
                                                                                                  \
                *to = *to + x[r][0] * v0 + x[r][1] * v1 + x[r][2] * v2 + x[r][3] * v3;            \
            }                                                                                     \
        }                                                                                         \
        for (int64_t i = n / LANES * LANES; i < n; i++)                                           \
            for (int r = 0; r < ROWS; r++)                                                        \
                c[r * c_row + i] +=                                                               \
                    x[r][0] * b[i] + x[r][1] * b1[i] + x[r][2] * b2[i] + x[r][3] * b3[i];         \
    }
ADD_ROWS(1)
ADD_ROWS(2)
ADD_ROWS(4)

static void add_rows(int64_t m, const float *a, int64_t a_row, int64_t a_column, const float *b,
                     int64_t b_row, float *c, int64_t c_row, int64_t n)
{
    for (int64_t r = 0; r < m;) {
        int64_t rows = m - r >= 4 ? 4 : m - r >= 2 ? 2 : 1;

        (rows == 4 ? add_rows_4
         : rows == 2
             ? add_rows_2
             : add_rows_1)(a + r * a_row, a_row, a_column, b, b_row, c + r * c_row, c_row, n);
        r += rows;
    }
}

/* Multiplies ROWS rows of a with two contiguous columns of b. */
#define DOT_COLUMNS(ROWS)                                                                   \
    RP_CLONES static void dot_columns_##ROWS(const float *a, int64_t a_row, const float *b, \
                                             const float *other, int64_t k, float *c,       \
                                             float *c_other, int64_t c_row)                 \
    {                                                                                       \
        lanes sum[ROWS][2];                                                                 \
        float all[LANES];                                                                   \
                                                                                            \
        memset(sum, 0, sizeof sum);                                                         \
        for (int64_t i = 0; i + LANES <= k; i += LANES) {                                   \
            lanes x = *(const lanes *)(const void *)(b + i);                                \
            lanes y = *(const lanes *)(const void *)(other + i);                            \
                                                                                            \
            for (int r = 0; r < ROWS; r++) {                                                \
                lanes v = *(const lanes *)(const void *)(a + r * a_row + i);                \
                                                                                            \
                sum[r][0] += v * x;                                                         \
                sum[r][1] += v * y;                                                         \
            }                                                                               \
        }                                                                                   \
        for (int r = 0; r < ROWS; r++)                                                      \
            for (int s = 0; s < 2; s++) {                                                   \
                const float *from = s ? other : b;                                          \
                float total = 0;                                                            \
                                                                                            \
                memcpy(all, &sum[r][s], sizeof all);                                        \
                for (int half = LANES / 2; half; half /= 2)                                 \
                    for (int i = 0; i < half; i++)                                          \
                        all[i] += all[i + half];                                            \
                for (int64_t i = k / LANES * LANES; i < k; i++)                             \
                    total += a[r * a_row + i] * from[i];                                    \
                (s ? c_other : c)[r * c_row] = all[0] + total;                              \
            }                                                                               \
    }
DOT_COLUMNS(1)
DOT_COLUMNS(2)
DOT_COLUMNS(4)

static void dot_columns(const struct rp_gemm *g, const float *a, const float *b, float *c,
                        int64_t n)
{
    for (int64_t j = 0; j < n; j += 2) {
        int64_t second = j + 1 < n ? j + 1 : j; /* the last one twice */

        for (int64_t r = 0; r < g->m;) {
            int64_t rows = g->m - r >= 4 ? 4 : g->m - r >= 2 ? 2 : 1;

            (rows == 4   ? dot_columns_4
             : rows == 2 ? dot_columns_2
                         : dot_columns_1)(a + r * g->a_row, g->a_row, b + j * g->b_column,
                                          b + second * g->b_column, g->k, c + r * g->n + j,
                                          c + r * g->n + second, g->n);
            r += rows;
        }
    }
}

struct skinny {
    const struct rp_gemm *g;
    int64_t columns, blocks;
};

static RP_JOB(skinny_job)
{
    const struct skinny *s = user;
    const struct rp_gemm *g = s->g;
    int64_t batch = (int64_t)job / s->blocks, n0 = (int64_t)job % s->blocks * s->columns, k = 0;
    int64_t n = g->n - n0 < s->columns ? g->n - n0 : s->columns;
    const float *a = g->a + batch * g->a_batch;
    const float *b = g->b + batch * g->b_batch + n0 * g->b_column;
    float *c = g->c + batch * g->m * g->n + n0;

    if (g->b_column != 1) {
        dot_columns(g, a, b, c, n);
        return RP_OK;
    }
    for (int64_t r = 0; r < g->m; r++)
        memset(c + r * g->n, 0, (size_t)n * sizeof *c);
    for (; k + 4 <= g->k; k += 4)
        add_rows(g->m, a + k * g->a_column, g->a_row, g->a_column, b + k * g->b_row, g->b_row, c,
                 g->n, n);
    for (; k < g->k; k++)
        for (int64_t r = 0; r < g->m; r++)
            for (int64_t i = 0; i < n; i++)
                c[r * g->n + i] += a[r * g->a_row + k * g->a_column] * b[k * g->b_row + i];
    return RP_OK;
}

bool rp_gemm_is_skinny(const struct rp_gemm *g)
{
    return g->m <= MOST_ROWS && !g->tf32 && g->k >= 4 &&
           ((g->b_column == 1 && g->n >= LANES) || (g->b_row == 1 && g->a_column == 1));
}

enum rp_code rp_gemm_skinny(const struct rp_gemm *g, struct rp_pool *pool, struct rp_err *err)
{
    struct skinny s = {.g = g, .columns = COLUMNS};
    int64_t threads = pool ? (int64_t)rp_pool_threads(pool) : 1;

    if (g->b_column != 1)
        s.columns = 64;
    while (s.columns > 128 && g->batch * ((g->n + s.columns - 1) / s.columns) < 2 * threads)
        s.columns /= 2;
    s.blocks = (g->n + s.columns - 1) / s.columns;
    size_t jobs = (size_t)(g->batch * s.blocks);
    bool worth = g->batch * g->n * g->k > WORTH_THREADS;
    return rp_pool_each(worth ? pool : NULL, jobs, skinny_job, &s, err);
}
