/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scatters of single elements, or of whole rows, that add to or replace what is there: one loop
 * over the indices, in their order, in place if nobody else holds the array. Other windows,
 * functions and types are left to the reference, whose cost is that of a window.
 */
#include "exec/eval/tape.h"
#include "exec/fast/kernels.h"
#include "exec/ref/kernels.h"
#include "program/opcodes.h"

struct places {
    const int32_t *index; /* n times `rank` numbers of indices */
    size_t n, rank;
    size_t width; /* elements of a row */
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

#define SCATTER(name, type, op)                                              \
    static void name(const struct places *p, const void *updates, void *out) \
    {                                                                        \
        const type *from = updates;                                          \
        type *to = out;                                                      \
                                                                             \
        for (size_t i = 0; i < p->n; i++, from += p->width) {                \
            int64_t at = place_of(p, i);                                     \
                                                                             \
            if (at < 0)                                                      \
                continue;                                                    \
            const type *restrict row = from;                                 \
            type *restrict place = to + at;                                  \
            for (size_t k = 0; k < p->width; k++)                            \
                place[k] op row[k];                                          \
        }                                                                    \
    }
SCATTER(add_f32, float, +=)
SCATTER(add_f64, double, +=)
SCATTER(add_32, uint32_t, +=)
SCATTER(add_64, uint64_t, +=)
SCATTER(put_8, uint8_t, =)
SCATTER(put_16, uint16_t, =)
SCATTER(put_32, uint32_t, =)
SCATTER(put_64, uint64_t, =)

typedef void scatter_fn(const struct places *p, const void *updates, void *out);

static scatter_fn *scatter_of(const struct rp_tape *tape, unsigned elem, size_t unit)
{
    bool integer = rp_elem_is_signed(elem) || rp_elem_is_unsigned(elem);

    if (tape->second)
        return unit == 1   ? put_8
               : unit == 2 ? put_16
               : unit == 4 ? put_32
               : unit == 8 ? put_64
                           : NULL;
    if (tape->simple != RP_OP_ADD)
        return NULL;
    if (integer)
        return unit == 4 ? add_32 : unit == 8 ? add_64 : NULL;
    return elem == RP_ELEM_F32 ? add_f32 : elem == RP_ELEM_F64 ? add_f64 : NULL;
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

enum rp_code rp_fast_scatter(struct rp_eval *e, const struct rp_node *node,
                             struct rp_tensor *const *in, struct rp_tensor **out,
                             struct rp_err *err)
{
    const struct rp_gather *a = node->attrs;
    scatter_fn *fn = a->k == 1 ? scatter_of(a->tape, in[0]->elem, in[0]->unit) : NULL;
    struct places p;

    if (!fn || !places_find(a, in, &p) || node->shape->elem == RP_ELEM_TUPLE)
        return e->plan->reference[RP_OP_SCATTER]->run(e, node, in, out, err);
    if (rp_fast_can_change(node, in, 0)) {
        *out = rp_tensor_keep(in[0]);
    } else {
        RP_TRY(rp_tensor_new(in[0]->elem, in[0]->dims, in[0]->rank, out, err));
        memcpy((*out)->data, in[0]->data, rp_tensor_bytes(in[0]));
    }
    fn(&p, in[2]->data, (*out)->data);
    return RP_OK;
}
