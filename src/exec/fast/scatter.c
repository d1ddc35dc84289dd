/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scatters of single elements, or of whole rows, that replace what is there or combine it with the
 * update by one operation: one loop over the indices, in their order, in place if nobody else holds
 * the array. Other windows and functions are left to the reference, whose cost is that of a window.
 */
#include "exec/eval/tape.h"
#include "exec/fast/kernels.h"
#include "exec/ref/kernels.h"
#include "program/opcodes.h"

#include <math.h>
#include <string.h>

#define WIDE 8 /* rows of so many elements are worth a call of their lane, which is vectorised */

struct places {
    const int32_t *index; /* n times `rank` numbers of indices */
    size_t n, rank;
    size_t width, unit;          /* elements of a row; bytes of each */
    const struct rp_tape_op *op; /* of what is there and of the update; NULL: the update */
    int64_t dims[RP_TENSOR_RANK], stride[RP_TENSOR_RANK];
};

/* The place of row i, or -1 if it has none. */
static inline int64_t place_of(const struct places *p, size_t i)
{
    const int32_t *index = p->index + i * p->rank;
    int64_t at = 0;

    for (size_t k = 0; k < p->rank; k++) {
        if (index[k] < 0 || index[k] >= p->dims[k])
            return -1;
        at += index[k] * p->stride[k];
    }
    return at;
}

/* What is frequent has a loop of its own; anything else calls its lane for each row. Maximum and
   minimum are those of the lanes (exec/eval/lanes_float.inc). */
static inline float flushed(float x)
{
    return x == 0 ? copysignf(0, x) : x;
}

#define EXTREME(cmp, zero_of_y) \
    flushed(x != x || x cmp y ? x : y != y || y cmp x ? y : x == 0 && (zero_of_y) ? y : x)
#define FREQUENT(X)                                 \
    X(ADD, F32, float, x + y)                       \
    X(MULTIPLY, F32, float, x *y)                   \
    X(MAXIMUM, F32, float, EXTREME(>, signbit(x)))  \
    X(MINIMUM, F32, float, EXTREME(<, !signbit(x))) \
    X(COPY, U32, uint32_t, ((void)x, y))
#define SCATTER(opcode, elem, type, expr)                                                    \
    static void scatter_##opcode##_##elem(const struct places *p, const unsigned char *from, \
                                          unsigned char *out)                                \
    {                                                                                        \
        const type *row = (const type *)(const void *)from;                                  \
                                                                                             \
        for (size_t i = 0; i < p->n; i++, row += p->width) {                                 \
            int64_t at = place_of(p, i);                                                     \
                                                                                             \
            if (at < 0)                                                                      \
                continue;                                                                    \
            const type *restrict update = row;                                               \
            type *restrict to = (type *)(void *)out + at;                                    \
            for (size_t k = 0; k < p->width; k++) {                                          \
                type x = to[k], y = update[k];                                               \
                                                                                             \
                to[k] = (expr);                                                              \
            }                                                                                \
        }                                                                                    \
    }
FREQUENT(SCATTER)

static void by_lane(const struct places *p, const unsigned char *from, unsigned char *out)
{
    for (size_t i = 0; i < p->n; i++, from += p->width * p->unit) {
        int64_t at = place_of(p, i);

        if (at < 0)
            continue;
        unsigned char *to = out + at * (int64_t)p->unit;
        if (!p->op)
            memcpy(to, from, p->width * p->unit);
        else
            rp_lane_run(&p->op->lane, p->width, to, p->op->a ? from : to, p->op->a ? to : from,
                        NULL);
    }
}

/* The elements of a window that is a row: the first dimensions of the array are indices, the others
   are whole, and the last of the updates. 0: it is none. */
static size_t row_of(const struct rp_gather *a, const struct rp_tensor *to,
                     const struct rp_tensor *updates)
{
    size_t i, n = 1, left = updates->rank - a->offset.n;

    for (i = 0; i < a->collapsed.n; i++)
        if (a->collapsed.at[i] != (int64_t)i)
            return 0;
    for (i = 0; i < a->map.n; i++)
        if (a->map.at[i] >= (int64_t)a->collapsed.n)
            return 0;
    for (i = 0; i < a->offset.n; i++) {
        if (a->offset.at[i] != (int64_t)(left + i) ||
            updates->dims[left + i] != to->dims[a->collapsed.n + i])
            return 0;
        n *= (size_t)updates->dims[left + i];
    }
    return n;
}

/* The elements of a window; 0: it is neither a row nor a single element. */
static size_t width_of(const struct rp_gather *a, const struct rp_tensor *to,
                       const struct rp_tensor *updates)
{
    for (size_t i = 0; i < a->offset.n; i++)
        if (updates->dims[a->offset.at[i]] != 1)
            return row_of(a, to, updates);
    return 1;
}

/* Whether windows are rows or single elements, and the numbers of an index follow each other. */
static bool places_find(const struct rp_gather *a, struct rp_tensor *const *in, struct places *p)
{
    const struct rp_tensor *indices = in[1], *updates = in[2];
    int64_t stride[RP_TENSOR_RANK];

    p->width = width_of(a, in[0], updates);
    if (!p->width || indices->elem != RP_ELEM_S32 || a->index_batch.n ||
        a->vector_dim + 1 < indices->rank)
        return false;
    p->index = (const int32_t *)(const void *)indices->data;
    p->n = updates->n / p->width;
    p->rank = a->map.n;
    rp_strides(in[0]->dims, in[0]->rank, stride);
    for (size_t k = 0; k < a->map.n; k++) {
        p->dims[k] = in[0]->dims[a->map.at[k]];
        p->stride[k] = stride[a->map.at[k]];
    }
    return in[0]->n > 0;
}

typedef void scatter_fn(const struct places *p, const unsigned char *from, unsigned char *out);

RP_KERNEL(rp_fast_scatter)
{
    const struct rp_gather *a = node->attrs;
    static const struct {
        uint16_t opcode;
        uint8_t elem;
        scatter_fn *fn;
    } frequent[] = {
#define ROW(opcode, elem, type, expr) {RP_OP_##opcode, RP_ELEM_##elem, scatter_##opcode##_##elem},
        FREQUENT(ROW)
#undef ROW
    };
    bool put = a->k == 1 && a->tape->second;
    struct places p = {.unit = in[0]->unit, .op = put ? NULL : a->tape->ops};

    if (a->k != 1 || (!put && !a->tape->simple) || !places_find(a, in, &p) ||
        node->shape->elem == RP_ELEM_TUPLE)
        return e->plan->reference[RP_OP_SCATTER]->run(e, node, in, out, err);
    if (rp_fast_can_change(node, in, 0))
        *out = rp_tensor_keep(in[0]);
    else
        RP_TRY(rp_tensor_copy(in[0], out, err));
    scatter_fn *fn = by_lane;
    for (size_t i = 0; p.width < WIDE && i < sizeof frequent / sizeof *frequent; i++)
        if (put ? frequent[i].opcode == RP_OP_COPY && p.unit == 4
                : frequent[i].opcode == a->tape->simple && frequent[i].elem == in[0]->elem)
            fn = frequent[i].fn;
    fn(&p, in[2]->data, (*out)->data);
    return RP_OK;
}
