/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XLA expresses broadcast_in_dim in operations of HLO, and so do we. If it only adds dimensions of
 * size 1, it becomes a reshape. If it widens a dimension of size 1, it becomes a broadcast that
 * does not widen, a reshape without those dimensions, and a broadcast into them.
 *
 *   f32[32,1] -> f32[32,10], dims = [0, 1]:   broadcast f32[32,1], reshape f32[32], broadcast {0}
 *
 * The text contains only the last of these operations.
 */
#include "formats/mlir/mlir.h"
#include "program/opcodes.h"

#include <string.h>

#define MAX_RANK 32

struct dims {
    int64_t at[MAX_RANK];
    size_t n;
};

/* The sizes of an array, if all are known. */
static bool sizes_of(const struct rp_program *p, uint32_t shape, struct dims *out)
{
    const struct rp_op_shape *s = &p->shapes.at[shape];

    if (s->elem == RP_ELEM_TUPLE || s->flags & (RP_SHAPE_DYNAMIC | RP_SHAPE_UNKNOWN) ||
        s->n > MAX_RANK)
        return false;
    out->n = s->n;
    if (s->n)
        memcpy(out->at, p->dims.at + s->first, s->n * sizeof *out->at);
    for (size_t i = 0; i < out->n; i++)
        if (out->at[i] < 0)
            return false;
    return true;
}

static enum rp_code add_step(struct rp_mlir *r, enum rp_opcode code, const struct dims *to,
                             const struct rp_mlir_ints *dimensions, uint32_t *op)
{
    struct rp_new_op made = {.code = code};
    unsigned elem = r->p->shapes.at[r->p->shape.at[*op]].elem;

    RP_TRY(rp_program_array(r->p, elem, to->at, NULL, to->n, 0, &made.shape, r->err));
    RP_TRY(rp_mlir_add_implicit(r, &made, op, 1, op));
    return dimensions
               ? rp_program_add_attr(
                     r->p, rp_attr_ints(r->p, RP_ATTR_DIMENSIONS, dimensions->at, dimensions->n),
                     r->err)
               : RP_OK;
}

enum rp_code rp_mlir_broadcast(struct rp_mlir *r, const struct rp_mlir_ints *dimensions,
                               struct rp_new_op *op, uint32_t *operand, struct rp_mlir_ints *rest,
                               bool *split)
{
    struct dims in, out, kept;
    const int64_t *places = dimensions->at;
    size_t n = dimensions->n;

    *split = false;
    if (!sizes_of(r->p, r->p->shape.at[*operand], &in) || !sizes_of(r->p, op->shape, &out) ||
        n != in.n)
        return RP_OK;
    struct dims wide = out;
    for (size_t i = 0; i < n; i++) {
        if (places[i] < 0 || (size_t)places[i] >= out.n || (i && places[i] <= places[i - 1]))
            return RP_OK;
        wide.at[places[i]] = in.at[i];
    }
    if (in.n < out.n &&
        rp_shape_elements(r->p, r->p->shape.at[*operand]) == rp_shape_elements(r->p, op->shape)) {
        op->code = RP_OP_RESHAPE;
        return RP_OK;
    }
    if (memcmp(wide.at, out.at, out.n * sizeof *out.at) == 0)
        return RP_OK;
    *split = true;

    /* Collects the positions at which both have the same size, and these sizes. */
    rest->n = kept.n = 0;
    for (size_t i = 0; i < out.n; i++) {
        if (wide.at[i] != out.at[i])
            continue;
        rest->at[rest->n++] = (int64_t)i;
        kept.at[kept.n++] = out.at[i];
    }
    RP_TRY(add_step(r, RP_OP_BROADCAST, &wide, dimensions, operand));
    return add_step(r, RP_OP_RESHAPE, &kept, NULL, operand);
}
