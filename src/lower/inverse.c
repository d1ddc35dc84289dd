/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lowers inverses of matrices and systems of linear equations: elimination by Gauss and Jordan with
 * pivots, in one step per row. Masks select rows and columns, so that a batch of matrices stays one
 * array.
 */
#include "base/decides.h"
#include "lower/inner.h"
#include "program/opcodes.h"

#include <string.h>

#define MOST_ROWS 64
RP_LIMIT(MOST_ROWS, "rows of a matrix that is inverted", "each is some thirty operations");

/* Returns the positions along a dimension. */
static struct rp_lower_value places(struct rp_lower *l, const int64_t *dims, size_t rank, size_t at)
{
    struct rp_lower_value v = rp_lower_like(l, RP_ELEM_S32, dims, rank);

    rp_lower_begin(l, &v, RP_OP_IOTA);
    rp_lower_set_int(l, RP_ATTR_IOTA_DIMENSION, (int64_t)at);
    return v;
}

/* Broadcasts a, which lacks dimension `at`, to a shape that has it. */
static struct rp_lower_value along(struct rp_lower *l, const struct rp_lower_value *a,
                                   const struct rp_lower_value *like, size_t at)
{
    int64_t map[RP_TF_RANK];

    for (size_t i = 0; i < a->rank; i++)
        map[i] = (int64_t)(i + (i >= at));
    return rp_lower_spread(l, a, map, like->dims, like->rank);
}

/* Reduces the elements in a mask over a dimension, which disappears. */
static struct rp_lower_value taken(struct rp_lower *l, enum rp_opcode opcode,
                                   const struct rp_lower_value *mask,
                                   const struct rp_lower_value *a, double rest, size_t at)
{
    struct rp_lower_value other = rp_lower_fill(l, rest, a);
    bool over[RP_TF_RANK] = {false};

    over[at] = true;
    struct rp_lower_value chosen = rp_lower_select(l, mask, a, &other);
    return rp_lower_reduce(l, opcode, &chosen, over);
}

static struct rp_lower_value is_at(struct rp_lower *l, const struct rp_lower_value *like, size_t at,
                                   size_t k, const char *how)
{
    struct rp_lower_value place = places(l, like->dims, like->rank, at);
    struct rp_lower_value number = rp_lower_fill(l, (double)k, &place);

    return rp_lower_compare(l, how, &place, &number);
}

/* Clears column k of the matrix except for a one in row k, and does the same to the right side. */
static void eliminate(struct rp_lower *l, size_t k, struct rp_lower_value z[2])
{
    size_t row = z[0].rank - 2, column = z[0].rank - 1;
    struct rp_lower_value mask = is_at(l, &z[0], column, k, "EQ");
    struct rp_lower_value rows[2];
    struct rp_lower_value t = taken(l, RP_OP_ADD, &mask, &z[0], 0,
                                    column); /* the column, and its largest element from row k on */

    t = rp_lower_unary(l, RP_OP_ABS, &t);
    mask = is_at(l, &t, row, k, "GE");
    struct rp_lower_value best = taken(l, RP_OP_MAXIMUM, &mask, &t, -1, row);
    best = along(l, &best, &t, row);
    best = rp_lower_compare(l, "EQ", &t, &best);
    best = rp_lower_binary(l, RP_OP_AND, &best, &mask);
    struct rp_lower_value place = places(l, t.dims, t.rank, row);
    struct rp_lower_value from = taken(l, RP_OP_MINIMUM, &best, &place, (double)MOST_ROWS, row);
    from = along(l, &from, &place, row);
    struct rp_lower_value swap = rp_lower_compare(l, "EQ", &place, &from);
    for (int i = 0; i < 2; i++) { /* takes the row of the pivot, and puts row k in its place */
        mask = along(l, &swap, &z[i], column);
        rows[i] = taken(l, RP_OP_ADD, &mask, &z[i], 0, row);
        t = is_at(l, &z[i], row, k, "EQ");
        t = taken(l, RP_OP_ADD, &t, &z[i], 0, row);
        t = along(l, &t, &z[i], row);
        z[i] = rp_lower_select(l, &mask, &t, &z[i]);
    }
    mask = is_at(l, &rows[0], row, k, "EQ");
    struct rp_lower_value pivot = taken(l, RP_OP_ADD, &mask, &rows[0], 0, row);
    mask = is_at(l, &z[0], column, k, "EQ");
    t = taken(l, RP_OP_ADD, &mask, &z[0], 0, column);
    for (int i = 0; i < 2; i++) {
        struct rp_lower_value by = along(l, &pivot, &rows[i], row);

        rows[i] = rp_lower_binary(l, RP_OP_DIVIDE, &rows[i], &by);
        struct rp_lower_value part = along(l, &rows[i], &z[i], row);
        struct rp_lower_value factor = along(l, &t, &z[i], column);
        struct rp_lower_value other = rp_lower_binary(l, RP_OP_MULTIPLY, &factor, &part);
        other = rp_lower_binary(l, RP_OP_SUBTRACT, &z[i], &other);
        mask = is_at(l, &z[i], row, k, "EQ");
        z[i] = rp_lower_select(l, &mask, &part, &other);
    }
}

/* MatrixInverse, or MatrixSolve with a right side. */
RP_LOWER(solve)
{
    struct rp_lower_value z[2] = {in[0], in[nin > 1]};
    size_t rank = in->rank;

    if (rank < 2 || in->dims[rank - 1] != in->dims[rank - 2] || z[1].rank != rank ||
        z[1].dims[rank - 2] != in->dims[rank - 1] ||
        memcmp(z[1].dims, in->dims, (rank - 2) * sizeof *in->dims) != 0)
        return rp_lower_misfit(l, node,
                               "the input is not a square matrix, or not a right side of it");
    size_t n = (size_t)in->dims[rank - 1];
    if (n > MOST_ROWS || (in->elem != RP_ELEM_F32 && in->elem != RP_ELEM_F64))
        return rp_lower_refuse(l, node, "matrices of up to 64 rows, of f32 or f64, are supported");
    if (rp_lower_attr_bool(node, "adjoint")) {
        int64_t perm[RP_TF_RANK];

        for (size_t i = 0; i < rank; i++)
            perm[i] = (int64_t)(i < rank - 2 ? i : 2 * rank - 3 - i);
        z[0] = rp_lower_permute(l, &z[0], perm);
    }
    if (nin < 2) {
        struct rp_lower_value row = places(l, in->dims, rank, rank - 2);
        struct rp_lower_value column = places(l, in->dims, rank, rank - 1);

        row = rp_lower_compare(l, "EQ", &row, &column);
        z[1] = rp_lower_convert(l, &row, in->elem);
    }
    for (size_t k = 0; k < n; k++)
        eliminate(l, k, z);
    *out = z[1];
    return RP_OK;
}

const struct rp_lower_row rp_lower_inverses[] = {
    {"MatrixInverse", lower_solve, RP_LOWER_NO_OPCODE, 1},
    {"MatrixSolve", lower_solve, RP_LOWER_NO_OPCODE, 2},
    {NULL, NULL, RP_LOWER_NO_OPCODE, 0}};
