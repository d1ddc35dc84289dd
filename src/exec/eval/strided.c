/* SPDX-License-Identifier: Apache-2.0 */
/* The strided copy joins dimensions, then runs an inner loop for the width of an element. */
#include "exec/eval/strided.h"

#include "exec/eval/transpose.h"

#include <stdlib.h>
#include <string.h>

#define JOB_BYTES 65536

/* Drops dimensions of one element and joins neighbours that are contiguous on both sides. */
static void strided_join(const struct rp_strided *s, struct rp_strided *out)
{
    out->unit = s->unit;
    out->rank = 0;
    for (size_t k = 0; k < s->rank; k++) {
        size_t last = out->rank - 1;

        if (s->dims[k] == 1)
            continue;
        if (out->rank && out->to[last] == s->to[k] * s->dims[k] &&
            out->from[last] == s->from[k] * s->dims[k]) {
            out->dims[last] *= s->dims[k];
            out->to[last] = s->to[k];
            out->from[last] = s->from[k];
            continue;
        }
        out->dims[out->rank] = s->dims[k];
        out->to[out->rank] = s->to[k];
        out->from[out->rank] = s->from[k];
        out->rank++;
    }
}

/* Types for elements at any address. */
typedef uint16_t two __attribute__((aligned(1), may_alias));
typedef uint32_t four __attribute__((aligned(1), may_alias));
typedef uint64_t eight __attribute__((aligned(1), may_alias));
typedef struct {
    eight half[2];
} __attribute__((may_alias)) sixteen;

/* A row with a single value has its own loop, because the compiler does not see that it can be one
   store. */
#define ROW(type)                                                   \
    if (df == 0 && dt == 1) {                                       \
        const type value = *(const type *)from;                     \
                                                                    \
        for (int64_t i = 0; i < n; i++)                             \
            ((type *)to)[i] = value;                                \
        break;                                                      \
    }                                                               \
    for (int64_t i = 0; i < n; i++)                                 \
        *(type *)(to + i * dt * (int64_t)sizeof(type)) =            \
            *(const type *)(from + i * df * (int64_t)sizeof(type)); \
    break

static void copy_row(size_t unit, int64_t n, char *to, int64_t dt, const char *from, int64_t df)
{
    if (dt == 1 && df == 1) {
        memcpy(to, from, (size_t)n * unit);
        return;
    }
    switch (unit) {
    case 1:
        ROW(uint8_t);
    case 2:
        ROW(two);
    case 4:
        ROW(four);
    case 8:
        ROW(eight);
    default:
        ROW(sixteen);
    }
}

/* If both sides run fastest along different dimensions, small squares keep both in the cache. */
#define TILE 16
static void turn_tile(char *to, int64_t to_row, const char *from, int64_t from_row)
{
    for (int64_t i = 0; i < TILE; i += 4)
        for (int64_t k = 0; k < TILE; k += 4)
            rp_turn_four(from + (k * from_row + i) * 4, from_row, to + (i * to_row + k) * 4,
                         to_row);
}

static bool copy_tiles(const struct rp_strided *s, size_t row, size_t column, char *to,
                       const char *from)
{
    int64_t unit = (int64_t)s->unit;

    for (int64_t r = 0; r < s->dims[row]; r += TILE)
        for (int64_t c = 0; c < s->dims[column]; c += TILE) {
            int64_t nr = s->dims[row] - r < TILE ? s->dims[row] - r : TILE;
            int64_t nc = s->dims[column] - c < TILE ? s->dims[column] - c : TILE;

            if (s->unit == 4 && nr == TILE && nc == TILE && s->from[row] == 1 &&
                s->to[column] == 1) {
                turn_tile(to + (r * s->to[row] + c) * unit, s->to[row],
                          from + (r + c * s->from[column]) * unit, s->from[column]);
                continue;
            }
            for (int64_t i = 0; i < nr; i++)
                copy_row(s->unit, nc, to + ((r + i) * s->to[row] + c * s->to[column]) * unit,
                         s->to[column],
                         from + ((r + i) * s->from[row] + c * s->from[column]) * unit,
                         s->from[column]);
        }
    return true;
}

void rp_strided_copy(const struct rp_strided *given, void *to, const void *from)
{
    struct rp_strided s;
    int64_t index[RP_TENSOR_RANK] = {0};
    size_t row = 0;

    for (size_t k = 0; k < given->rank; k++)
        if (!given->dims[k])
            return;
    strided_join(given, &s);
    if (!s.rank) {
        memcpy(to, from, s.unit);
        return;
    }
    /* moves the dimension that runs fastest in the source to the place before the last */
    for (size_t k = 0; k + 1 < s.rank; k++)
        if (s.from[k] == 1)
            row = k;
    bool tiles = s.rank >= 2 && s.from[row] == 1 && s.from[s.rank - 1] != 1 && s.dims[row] > 1;
    if (tiles && row != s.rank - 2) {
        int64_t d = s.dims[row], t = s.to[row], f = s.from[row];

        for (size_t k = row; k + 2 < s.rank; k++) {
            s.dims[k] = s.dims[k + 1];
            s.to[k] = s.to[k + 1];
            s.from[k] = s.from[k + 1];
        }
        s.dims[s.rank - 2] = d;
        s.to[s.rank - 2] = t;
        s.from[s.rank - 2] = f;
    }
    size_t outer = s.rank - (tiles ? 2 : 1);
    do {
        int64_t at = 0, of = 0;

        for (size_t k = 0; k < outer; k++) {
            at += index[k] * s.to[k];
            of += index[k] * s.from[k];
        }
        at *= (int64_t)s.unit;
        of *= (int64_t)s.unit;
        if (tiles)
            copy_tiles(&s, s.rank - 2, s.rank - 1, (char *)to + at, (const char *)from + of);
        else
            copy_row(s.unit, s.dims[outer], (char *)to + at, s.to[outer], (const char *)from + of,
                     s.from[outer]);
    } while (rp_index_next(index, s.dims, outer));
}

struct spread {
    const struct rp_strided *s;
    size_t dim;
    int64_t piece; /* part of that dimension that is one job */
    char *to;
    const char *from;
};

static RP_JOB(copy_piece)
{
    const struct spread *p = user;
    struct rp_strided s = *p->s;
    int64_t begin = (int64_t)job * p->piece, left = s.dims[p->dim] - begin;

    s.dims[p->dim] = left < p->piece ? left : p->piece;
    rp_strided_copy(&s, p->to + begin * s.to[p->dim] * (int64_t)s.unit,
                    p->from + begin * s.from[p->dim] * (int64_t)s.unit);
    return RP_OK;
}

enum rp_code rp_strided_spread(const struct rp_strided *s, void *to, const void *from,
                               struct rp_pool *pool, struct rp_err *err)
{
    struct spread p = {.s = s, .to = to, .from = from};
    int64_t total = 1;

    for (size_t k = 0; k < s->rank; k++)
        total *= s->dims[k];
    while (p.dim + 1 < s->rank && s->dims[p.dim] == 1)
        p.dim++;
    int64_t pieces = total * (int64_t)s->unit / JOB_BYTES;
    if (!pool || rp_pool_threads(pool) < 2 || pieces < 2 || s->dims[p.dim] < 2) {
        rp_strided_copy(s, to, from);
        return RP_OK;
    }
    pieces = pieces < s->dims[p.dim] ? pieces : s->dims[p.dim];
    p.piece = (s->dims[p.dim] + pieces - 1) / pieces;
    return rp_pool_each(pool, (size_t)((s->dims[p.dim] + p.piece - 1) / p.piece), copy_piece, &p,
                        err);
}

enum rp_code rp_tensor_view(struct rp_tensor *t, unsigned elem, const int64_t *dims, size_t rank,
                            struct rp_tensor **out, struct rp_err *err)
{
    struct rp_tensor **owner = malloc(sizeof(struct rp_tensor *));

    RP_TRY(rp_err_need(owner, err, "evaluating"));
    enum rp_code code = rp_tensor_borrow(elem, dims, rank, t->data, out, err);
    if (code == RP_OK && rp_tensor_bytes(*out) > rp_tensor_bytes(t)) {
        code = rp_err_set(err, RP_FORMAT, "cannot reshape to %zu bytes from %zu",
                          rp_tensor_bytes(*out), rp_tensor_bytes(t));
        rp_tensor_drop(*out);
        *out = NULL;
    }
    if (code != RP_OK) {
        free(owner);
        return code;
    }
    owner[0] = rp_tensor_keep(t);
    (*out)->parts = owner;
    (*out)->nparts = 1;
    return RP_OK;
}

enum rp_code rp_tensor_transpose_spread(const struct rp_tensor *t, const uint32_t *perm,
                                        struct rp_pool *pool, struct rp_tensor **out,
                                        struct rp_err *err)
{
    struct rp_strided s = {.unit = t->unit, .rank = t->rank};
    int64_t from[RP_TENSOR_RANK];

    rp_strides(t->dims, t->rank, from);
    for (size_t i = 0; i < t->rank; i++) {
        s.dims[i] = t->dims[perm[i]];
        s.from[i] = from[perm[i]];
    }
    RP_TRY(rp_tensor_new(t->elem, s.dims, t->rank, out, err));
    rp_strides((*out)->dims, t->rank, s.to);
    return rp_strided_spread(&s, (*out)->data, t->data, pool, err);
}

enum rp_code rp_tensor_transpose(const struct rp_tensor *t, const uint32_t *perm,
                                 struct rp_tensor **out, struct rp_err *err)
{
    return rp_tensor_transpose_spread(t, perm, NULL, out, err);
}
