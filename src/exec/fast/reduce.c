/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes reductions of f32 by one operation. The array is seen as [outer, reduced, inner]; if the
 * reduced dimensions are not neighbours, it is transposed first. Rows (inner = 1) are summed in 16
 * lanes, columns in blocks that stay in the cache; outer rows or blocks of columns are jobs of the
 * pool, and if these are few, the reduced dimension is cut into parts. Anything else is left to the
 * reference.
 */
#include "exec/fast/kernels.h"
#include "program/opcodes.h"

#include "base/threads.h"
#include "exec/eval/lanes.h"
#include "exec/eval/strided.h"
#include "exec/ref/reduce.h"

#include <stdlib.h>
#include <string.h>

#define COLUMNS       256
#define WORTH_THREADS 60000 /* elements */
#define LANES         16
#define PART_ROWS     1024 /* the smallest part that is worth a job */

typedef float any __attribute__((aligned(1), may_alias)); /* at any address */
/* Eight, not sixteen, because gcc 12 splits comparisons of longer vectors. */
typedef float eight __attribute__((vector_size(32), aligned(1)));
typedef int32_t mask __attribute__((vector_size(32), aligned(1)));
#define PICK(which, x, y) (eight)(((which) & (mask)(x)) | (~(which) & (mask)(y)))

/* For numbers x and y, and for vectors. */
#define OPS(X)                                                                        \
    X(ADD, add, x + y, x + y)                                                         \
    X(MULTIPLY, multiply, x *y, x *y)                                                 \
    X(MAXIMUM, maximum, ((x != x) | (x > y)) ? x : y, PICK((x != x) | (x > y), x, y)) \
    X(MINIMUM, minimum, ((x != x) | (x < y)) ? x : y, PICK((x != x) | (x < y), x, y))

/* Reduces a row of at least LANES elements to as many, these to half as many, and so on. */
#define ROW(id, name, expr, vector)                                        \
    static inline void fold_##name(float *acc, size_t half)                \
    {                                                                      \
        for (size_t k = 0; k < half; k++) {                                \
            float x = acc[k], y = acc[k + half];                           \
                                                                           \
            acc[k] = (expr);                                               \
        }                                                                  \
    }                                                                      \
    /* Reduces one row to one number, using the initial value once. \ */   \
    RP_CLONES static float row_##name(const any *in, size_t n, float init) \
    {                                                                      \
        float acc[LANES], total = init;                                    \
        size_t i = 0;                                                      \
                                                                           \
        if (n >= LANES) {                                                  \
            eight sum[2], x, y;                                            \
                                                                           \
            memcpy(sum, in, sizeof sum);                                   \
            for (i = LANES; i + LANES <= n; i += LANES)                    \
                for (size_t v = 0; v < 2; v++) {                           \
                    x = sum[v];                                            \
                    y = *(const eight *)(const void *)(in + i + v * 8);    \
                    sum[v] = (vector);                                     \
                }                                                          \
            memcpy(acc, sum, sizeof acc);                                  \
            fold_##name(acc, 8);                                           \
            fold_##name(acc, 4);                                           \
            fold_##name(acc, 2);                                           \
            fold_##name(acc, 1);                                           \
        }                                                                  \
        if (i) {                                                           \
            float x = total, y = acc[0];                                   \
                                                                           \
            total = (expr);                                                \
        }                                                                  \
        for (; i < n; i++) {                                               \
            float x = total, y = in[i];                                    \
                                                                           \
            total = (expr);                                                \
        }                                                                  \
        return total;                                                      \
    }
#define COLUMN(id, name, expr, vector)                                                        \
    RP_CLONES static void column_##name(const any *in, size_t rows, size_t stride, float *to, \
                                        size_t n)                                             \
    {                                                                                         \
        for (size_t r = 0; r < rows; r++, in += stride)                                       \
            for (size_t i = 0; i < n; i++) {                                                  \
                float x = to[i], y = in[i];                                                   \
                                                                                              \
                to[i] = (expr);                                                               \
            }                                                                                 \
    }
OPS(COLUMN)
OPS(ROW)

struct work {
    const any *in;
    float *out, init;
    size_t outer, red, inner;
    size_t blocks, rows; /* blocks of columns for each outer one; outer ones for each job of rows */
    size_t parts, piece; /* parts of the reduced dimension, if jobs are few */
    float *partial;      /* [part][outer * inner] */
    float (*row)(const any *, size_t, float);
    void (*column)(const any *, size_t, size_t, float *, size_t);
};

/* Reduces the rows of part `part` of one outer; the first element is the initial value. */
static RP_JOB(rows_job)
{
    const struct work *w = user;
    size_t jobs = (w->outer + w->rows - 1) / w->rows, part = job / jobs, begin = part * w->piece;
    size_t n = w->red - begin < w->piece ? w->red - begin : w->piece;
    size_t end = (job % jobs + 1) * w->rows;

    for (size_t i = job % jobs * w->rows; i < end && i < w->outer; i++) {
        const any *in = w->in + i * w->red + begin;

        w->partial[part * w->outer + i] = w->row(in + 1, n - 1, *in);
    }
    return RP_OK;
}

/* With few columns, several rows are seen as one long row, whose pieces are joined at the end. */
static void narrow_columns(const struct work *w, const any *in, size_t red, float *to)
{
    float wide[COLUMNS];
    size_t inner = w->inner, some = COLUMNS / inner, n = some * inner, rows = red / some;

    memcpy(wide, in, n * sizeof *wide);
    w->column(in + n, rows - 1, n, wide, n);
    memcpy(to, wide, inner * sizeof *to);
    w->column(wide + inner, some - 1, inner, to, inner);
    w->column(in + rows * n, red - rows * some, inner, to, inner);
}

static RP_JOB(columns_job)
{
    const struct work *w = user;
    size_t jobs = w->outer * w->blocks, part = job / jobs, skip = part * w->piece;
    size_t o = job % jobs / w->blocks, begin = job % w->blocks * COLUMNS;
    size_t n = w->inner - begin < COLUMNS ? w->inner - begin : COLUMNS;
    size_t red = w->red - skip < w->piece ? w->red - skip : w->piece;
    float *to = w->partial + (part * w->outer + o) * w->inner + begin;
    const any *in = w->in + (o * w->red + skip) * w->inner + begin;

    if (w->inner <= COLUMNS / 4 && red >= 2 * (COLUMNS / w->inner)) {
        narrow_columns(w, in, red, to);
        return RP_OK;
    }
    memcpy(to, in, n * sizeof *to);
    w->column(in + w->inner, red - 1, w->inner, to, n);
    return RP_OK;
}

static bool choose_reduction(unsigned opcode, struct work *w)
{
    switch (opcode) {
#define CASE(id, name, expr, vector) \
    case RP_OP_##id:                 \
        w->row = row_##name;         \
        w->column = column_##name;   \
        return true;
        OPS(CASE)
    default:
        return false;
    }
}

/* Joins the parts, and the initial value once. */
static void join_parts(const struct work *w)
{
    size_t n = w->outer * w->inner;
    float init[COLUMNS];

    for (size_t i = 0; i < COLUMNS && i < n; i++)
        init[i] = w->init;
    for (size_t i = 0; i < n; i += COLUMNS) {
        size_t some = n - i < COLUMNS ? n - i : COLUMNS;

        w->column(init, 1, 0, w->partial + i, some);
        if (w->parts > 1)
            w->column(w->partial + n + i, w->parts - 1, n, w->partial + i, some);
    }
    if (w->parts > 1)
        memcpy(w->out, w->partial, n * sizeof *w->out);
}

static enum rp_code reduce_spread(struct work *w, struct rp_pool *pool, struct rp_err *err)
{
    bool columns = w->inner > 1;
    size_t n = w->outer * w->inner, total = n * w->red, most = w->red / PART_ROWS;
    size_t threads = pool && total > WORTH_THREADS ? rp_pool_threads(pool) : 1;
    rp_job_fn *job = columns ? columns_job : rows_job;

    w->blocks = (w->inner + COLUMNS - 1) / COLUMNS;
    w->rows = w->red > 16384 ? 1 : 16384 / (w->red + 1) + 1;
    size_t jobs = columns ? w->outer * w->blocks : (w->outer + w->rows - 1) / w->rows;
    w->parts = jobs && jobs < threads ? threads / jobs : 1;
    w->parts = w->parts < most ? w->parts : most;
    if (!w->parts)
        w->parts = 1;
    w->piece = w->red ? (w->red - 1) / w->parts + 1 : 1;
    w->parts = (w->red + w->piece - 1) / w->piece;
    w->partial = w->parts > 1 ? malloc(w->parts * n * sizeof *w->partial) : w->out;
    RP_TRY(rp_err_need(w->partial, err, "reducing"));
    jobs *= w->parts;
    enum rp_code code = rp_pool_each(threads > 1 ? pool : NULL, jobs, job, w, err);
    if (code == RP_OK)
        join_parts(w);
    if (w->partial != w->out)
        free(w->partial);
    return code;
}

/* Splits the sizes; false if the reduced dimensions are not neighbours. */
static bool reduce_split(const struct rp_reduce *a, const int64_t *dims, size_t rank,
                         struct work *w)
{
    int state = 0; /* state: before, in, or after the reduced dimensions */

    w->outer = w->red = w->inner = 1;
    for (size_t k = 0; k < rank; k++) {
        if (dims[k] == 1)
            continue;
        if (a->reduced[k] ? state == 2 : state == 1)
            state++;
        if (a->reduced[k] && state == 3)
            return false;
        if (a->reduced[k] && state == 0)
            state = 1;
        if (state == 0)
            w->outer *= (size_t)dims[k];
        else if (state == 1)
            w->red *= (size_t)dims[k];
        else
            w->inner *= (size_t)dims[k];
    }
    return true;
}

/* Transposes such that the reduced dimensions are last. */
static enum rp_code gather_dims(const struct rp_reduce *a, const struct rp_tensor *t,
                                struct rp_tensor **out, struct work *w, struct rp_err *err)
{
    uint32_t perm[RP_TENSOR_RANK];
    size_t n = 0;

    w->outer = w->red = w->inner = 1;
    for (uint32_t k = 0; k < t->rank; k++)
        if (!a->reduced[k]) {
            perm[n++] = k;
            w->outer *= (size_t)t->dims[k];
        }
    for (uint32_t k = 0; k < t->rank; k++)
        if (a->reduced[k]) {
            perm[n++] = k;
            w->red *= (size_t)t->dims[k];
        }
    return rp_tensor_transpose(t, perm, out, err);
}

float rp_fast_row(unsigned opcode, const float *in, size_t n, float init)
{
    struct work w;

    return choose_reduction(opcode, &w) ? w.row((const any *)in, n, init) : init;
}

enum rp_code rp_fast_lines(const struct rp_reduce *a, struct rp_tensor *t, struct rp_tensor **out,
                           size_t *n, size_t *length, struct rp_err *err)
{
    struct work w;
    enum rp_code code = RP_OK;

    if (reduce_split(a, t->dims, t->rank, &w) && w.inner == 1)
        *out = rp_tensor_keep(t);
    else
        code = gather_dims(a, t, out, &w, err);
    *n = w.outer;
    *length = w.red;
    return code;
}

bool rp_fast_reduce_takes_unaligned(const struct rp_graph *g, const struct rp_node *node)
{
    const struct rp_reduce *a = node->attrs;
    struct work w;

    return node->run == rp_fast_reduce && a->k == 1 && choose_reduction(a->tape->simple, &w) &&
           g->nodes[node->in[0]].shape->elem == RP_ELEM_F32;
}

bool rp_fast_reduces_row(const struct rp_graph *g, const struct rp_node *node)
{
    const struct rp_reduce *a = node->attrs;
    struct work w;

    if (node->run != rp_fast_reduce || a->k != 1 || node->nin != 2 ||
        !choose_reduction(a->tape->simple, &w) ||
        rp_reduce_is_rounded(a->tape, a->tape->regs[0].elem))
        return false;
    const struct rp_value_shape *in = g->nodes[node->in[0]].shape;
    return in->elem == RP_ELEM_F32 && in->n && node->shape->elem == RP_ELEM_F32 &&
           g->nodes[node->in[1]].shape->elem == RP_ELEM_F32 &&
           reduce_split(a, in->dims, in->rank, &w) && w.inner == 1 && w.outer == node->shape->n;
}

void rp_fast_reduce_row(const struct rp_node *node, const struct rp_tensor *in,
                        const struct rp_tensor *init, struct rp_tensor *out)
{
    const struct rp_reduce *a = node->attrs;
    const any *from = (const any *)(const void *)in->data;
    float *to = (float *)(void *)out->data;
    size_t red = in->n / out->n;
    struct work w = {0};

    if (!choose_reduction(a->tape->simple, &w))
        return;
    for (size_t i = 0; i < out->n; i++, from += red)
        to[i] = w.row(from + 1, red - 1, *from);
    for (size_t i = 0; i < out->n; i++) /* adds the initial value once */
        w.column((const any *)(const void *)init->data, 1, 0, to + i, 1);
}

RP_KERNEL(rp_fast_reduce)
{
    const struct rp_reduce *a = node->attrs;
    RP_SCOPED(rp_tensor_drop_at)
    struct rp_tensor *wide = NULL, *turned = NULL, *to = NULL, *init = NULL;
    struct work w = {0};

    if (a->k != 1 || !choose_reduction(a->tape->simple, &w) || !in[0]->n ||
        rp_reduce_is_rounded(a->tape, a->tape->regs[0].elem) ||
        (in[0]->elem != RP_ELEM_F32 && !rp_elem_is_small_float(in[0]->elem)))
        return rp_reduce_run(e, node, in, out, err);
    RP_TRY(in[0]->elem == RP_ELEM_F32 ? RP_OK : rp_tensor_wide(in[0], &wide, err));
    if (in[1]->elem != RP_ELEM_F32)
        RP_TRY(rp_tensor_wide(in[1], &init, err));
    if (!reduce_split(a, in[0]->dims, in[0]->rank, &w))
        RP_TRY(gather_dims(a, wide ? wide : in[0], &turned, &w, err));
    RP_TRY(rp_tensor_new(RP_ELEM_F32, node->shape->dims, node->shape->rank, &to, err));
    if (w.outer * w.inner != to->n)
        RP_TRY(rp_node_error(node, RP_FORMAT, err, "wrong size of the result"));
    w.in = (const any *)(void *)(turned ? turned : wide ? wide : in[0])->data;
    w.out = (float *)(void *)to->data;
    memcpy(&w.init, (init ? init : in[1])->data, sizeof w.init);
    RP_TRY(reduce_spread(&w, e->pool, err));
    if (node->shape->elem == RP_ELEM_F32) {
        *out = to;
        to = NULL;
    } else {
        RP_TRY(rp_tensor_as(to, node->shape->elem, out, err));
    }
    return RP_OK;
}
