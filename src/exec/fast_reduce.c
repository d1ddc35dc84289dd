/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions of f32 by one operation. The array is seen as [outer, reduced, inner]; where the
 * reduced dimensions are not neighbours it is transposed first. Rows (inner = 1) are summed in 16
 * lanes, columns in blocks that stay in the cache; outer rows or blocks of columns are jobs of the
 * pool. Anything else goes the way of the reference.
 */
#include "exec/fast_kernels.h"

#include "base/threads.h"
#include "exec/lanes.h"
#include "exec/reduce.h"
#include "exec/strided.h"

#include <string.h>

#define COLUMNS 256
#define LANES   16

#define OPS(X)                                   \
    X(ADD, add, x + y)                           \
    X(MULTIPLY, multiply, x *y)                  \
    X(MAXIMUM, maximum, x != x || x > y ? x : y) \
    X(MINIMUM, minimum, x != x || x < y ? x : y)

/* One row into one number, the initial value once. */
#define ROW(id, name, expr)                                                  \
    RP_CLONES static float row_##name(const float *in, size_t n, float init) \
    {                                                                        \
        float acc[LANES], x, y;                                              \
        size_t i = LANES;                                                    \
                                                                             \
        if (n < LANES) {                                                     \
            for (i = 0, x = init; i < n; i++, x = (expr))                    \
                y = in[i];                                                   \
            return x;                                                        \
        }                                                                    \
        memcpy(acc, in, sizeof acc);                                         \
        for (; i + LANES <= n; i += LANES)                                   \
            for (size_t k = 0; k < LANES; k++) {                             \
                x = acc[k];                                                  \
                y = in[i + k];                                               \
                acc[k] = (expr);                                             \
            }                                                                \
        for (x = init; i < n; i++, x = (expr))                               \
            y = in[i];                                                       \
        for (size_t k = 0; k < LANES; k++, x = (expr))                       \
            y = acc[k];                                                      \
        return x;                                                            \
    }
#define COLUMN(id, name, expr)                                                                  \
    RP_CLONES static void column_##name(const float *in, size_t rows, size_t stride, float *to, \
                                        size_t n)                                               \
    {                                                                                           \
        for (size_t r = 0; r < rows; r++, in += stride)                                         \
            for (size_t i = 0; i < n; i++) {                                                    \
                float x = to[i], y = in[i];                                                     \
                                                                                                \
                to[i] = (expr);                                                                 \
            }                                                                                   \
    }
OPS(COLUMN)
#undef COLUMN
/* x is updated behind y is read: the comma in the loop's step comes after the body. */
OPS(ROW)

struct work {
    const float *in;
    float *out, init;
    size_t outer, red, inner, blocks, rows;
    float (*row)(const float *, size_t, float);
    void (*column)(const float *, size_t, size_t, float *, size_t);
};

static enum rp_code rows_job(void *user, size_t job, struct rp_err *err)
{
    const struct work *w = user;
    size_t end = (job + 1) * w->rows < w->outer ? (job + 1) * w->rows : w->outer;

    (void)err;
    for (size_t i = job * w->rows; i < end; i++)
        w->out[i] = w->row(w->in + i * w->red, w->red, w->init);
    return RP_OK;
}

static enum rp_code columns_job(void *user, size_t job, struct rp_err *err)
{
    const struct work *w = user;
    size_t o = job / w->blocks, begin = job % w->blocks * COLUMNS;
    size_t n = w->inner - begin < COLUMNS ? w->inner - begin : COLUMNS;
    float *to = w->out + o * w->inner + begin;

    (void)err;
    for (size_t i = 0; i < n; i++)
        to[i] = w->init;
    w->column(w->in + o * w->red * w->inner + begin, w->red, w->inner, to, n);
    return RP_OK;
}

static bool choose(unsigned opcode, struct work *w)
{
    switch (opcode) {
#define CASE(id, name, expr)       \
    case RP_OP_##id:               \
        w->row = row_##name;       \
        w->column = column_##name; \
        return true;
        OPS(CASE)
    default:
        return false;
    }
}

static enum rp_code spread(struct work *w, struct rp_pool *pool, struct rp_err *err)
{
    bool columns = w->inner > 1;
    size_t jobs, total = w->outer * w->red * w->inner;

    w->blocks = (w->inner + COLUMNS - 1) / COLUMNS;
    w->rows = w->red > 16384 ? 1 : 16384 / (w->red + 1) + 1;
    jobs = columns ? w->outer * w->blocks : (w->outer + w->rows - 1) / w->rows;
    if (pool && jobs > 1 && total > 32768)
        return rp_pool_each(pool, jobs, columns ? columns_job : rows_job, w, err);
    for (size_t i = 0; i < jobs; i++)
        RP_TRY((columns ? columns_job : rows_job)(w, i, err));
    return RP_OK;
}

/* Sizes where the reduced dimensions are neighbours; false: they are not. */
static bool split(const struct rp_reduce *a, const struct rp_tensor *t, struct work *w)
{
    int state = 0; /* before, in, behind the reduced ones */

    w->outer = w->red = w->inner = 1;
    for (size_t k = 0; k < t->rank; k++) {
        if (t->dims[k] == 1)
            continue;
        if (a->reduced[k] ? state == 2 : state == 1)
            state++;
        if (a->reduced[k] && state == 3)
            return false;
        if (a->reduced[k] && state == 0)
            state = 1;
        if (state == 0)
            w->outer *= (size_t)t->dims[k];
        else if (state == 1)
            w->red *= (size_t)t->dims[k];
        else
            w->inner *= (size_t)t->dims[k];
    }
    return true;
}

/* Reduced dimensions last. */
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

enum rp_code rp_fast_reduce(struct rp_eval *e, const struct rp_node *node,
                            struct rp_tensor *const *in, struct rp_tensor **out, struct rp_err *err)
{
    const struct rp_reduce *a = node->attrs;
    struct rp_tensor *wide = NULL, *turned = NULL, *to = NULL, *init = NULL;
    struct work w = {0};
    enum rp_code code;

    if (a->k != 1 || !choose(a->tape->simple, &w) || !in[0]->n ||
        rp_reduce_is_rounded(a->tape, a->tape->regs[0].elem) ||
        (in[0]->elem != RP_ELEM_F32 && !rp_elem_is_small_float(in[0]->elem)))
        return rp_reduce_run(e, node, in, out, err);
    code = rp_tensor_wide(in[0], &wide, err);
    if (code == RP_OK)
        code = rp_tensor_wide(in[1], &init, err);
    if (code == RP_OK && !split(a, wide, &w))
        code = gather_dims(a, wide, &turned, &w, err);
    if (code == RP_OK)
        code = rp_tensor_new(RP_ELEM_F32, node->shape->dims, node->shape->rank, &to, err);
    if (code == RP_OK && w.outer * w.inner != to->n)
        code = rp_node_error(node, RP_FORMAT, err, "its result has the wrong size");
    if (code == RP_OK) {
        w.in = (const float *)(void *)(turned ? turned : wide)->data;
        w.out = (float *)(void *)to->data;
        w.init = *(const float *)(void *)init->data;
        code = spread(&w, e->pool, err);
    }
    if (code == RP_OK)
        code = rp_tensor_as(to, node->shape->elem, out, err);
    rp_tensor_drop(wide);
    rp_tensor_drop(turned);
    rp_tensor_drop(init);
    rp_tensor_drop(to);
    return code;
}
