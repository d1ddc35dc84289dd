/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lowers operators of TensorFlow that read and write by index to HLO's gather and scatter.
 * TensorFlow's gathers fail if an index is out of bounds (on CPUs); HLO's take the nearest element.
 */
#include "lower/inner.h"
#include "program/opcodes.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- reading ---- */

/* A gather of known integers by known indices is known, because it may be part of a shape. */
static void gather_known_ints(struct rp_lower *l, const struct rp_lower_value *table,
                              const struct rp_lower_value *rows, struct rp_lower_value *out)
{
    if (!table->ints || !rows->ints || table->rank != 1)
        return;
    for (size_t i = 0; i < rows->nints; i++)
        if (rows->ints[i] < 0 || rows->ints[i] >= (int64_t)table->nints)
            return;
    int64_t *ints = RP_ARENA_NEW(&l->arena, int64_t, rows->nints + 1);
    for (size_t i = 0; ints && i < rows->nints; i++)
        ints[i] = table->ints[rows->ints[i]];
    out->ints = ints;
    out->nints = ints ? rows->nints : 0;
}

/* Gathers rows of the first operand along an axis by an array of indices; the first dimensions of
   both may be batches. */
RP_LOWER(gather)
{
    const struct rp_lower_value *table = &in[0], *rows = &in[1];
    int64_t dims[RP_TF_RANK], offsets[RP_TF_RANK], sizes[RP_TF_RANK], batch[RP_TF_RANK];
    int64_t given = rp_lower_attr_int(node, "batch_dims", 0);
    size_t rank = 0, n = 0;

    if (nin > 2)
        RP_TRY(rp_lower_need_ints(l, node, &in[2], "axis"));
    given = given < 0 ? given + rows->rank : given;
    if (given < 0 || given > rows->rank || given >= table->rank || !table->rank ||
        table->rank + rows->rank > RP_TF_RANK)
        return rp_lower_refuse(l, node, "the inputs have too few or too many dimensions");
    size_t nbatch = (size_t)given;
    size_t axis = nbatch;
    if (nin > 2 && (!in[2].nints || !rp_lower_axis(in[2].ints[0], table->rank, &axis)))
        return rp_lower_misfit(l, node, "the axis is out of range");
    if (axis < nbatch)
        return rp_lower_refuse(l, node, "the axis is a batch dimension");
    for (size_t i = 0; i < axis; i++)
        dims[rank++] = table->dims[i];
    for (size_t i = nbatch; i < rows->rank; i++)
        dims[rank++] = rows->dims[i];
    for (size_t i = axis + 1; i < table->rank; i++)
        dims[rank++] = table->dims[i];
    for (size_t i = nbatch; i < rank; i++)
        if (i < axis || i >= axis + rows->rank - nbatch)
            offsets[n++] = (int64_t)i;
    memcpy(sizes, table->dims, sizeof sizes);
    sizes[axis] = 1;
    for (size_t i = 0; i < nbatch; i++) {
        batch[i] = (int64_t)i;
        sizes[i] = 1;
        if (table->dims[i] != rows->dims[i])
            return rp_lower_misfit(l, node, "incompatible batch dimensions");
    }
    *out = rp_lower_like(l, table->elem, dims, rank);
    rp_lower_begin(l, out, RP_OP_GATHER);
    rp_lower_operand(l, table);
    rp_lower_operand(l, rows);
    rp_lower_set_ints(l, RP_ATTR_OFFSET_DIMS, offsets, n);
    rp_lower_set_ints(l, RP_ATTR_COLLAPSED_SLICE_DIMS, (int64_t[]){(int64_t)axis}, 1);
    rp_lower_set_ints(l, RP_ATTR_START_INDEX_MAP, (int64_t[]){(int64_t)axis}, 1);
    rp_lower_set_int(l, RP_ATTR_INDEX_VECTOR_DIM, rows->rank);
    if (nbatch) {
        rp_lower_set_ints(l, RP_ATTR_OPERAND_BATCHING_DIMS, batch, nbatch);
        rp_lower_set_ints(l, RP_ATTR_START_INDICES_BATCHING_DIMS, batch, nbatch);
    }
    rp_lower_set_ints(l, RP_ATTR_SLICE_SIZES, sizes, table->rank);
    gather_known_ints(l, table, rows, out);
    return RP_OK;
}

/* A table indexed by vectors, which are the last dimension of an array of indices. */
struct vectors {
    size_t length,
        outer; /* the length of a vector, and the number of dimensions of the array of vectors */
    int64_t first[RP_TF_RANK],
        windows[RP_TF_RANK]; /* 0, 1 ..., and the places of the other dimensions in the result */
    size_t nwindows;
};

static bool plan_vectors(const struct rp_lower_value *indices, size_t table_rank, struct vectors *v)
{
    if (!indices->rank || indices->dims[indices->rank - 1] > (int64_t)table_rank)
        return false;
    v->length = (size_t)indices->dims[indices->rank - 1];
    v->outer = indices->rank - 1;
    v->nwindows = table_rank - v->length;
    for (size_t i = 0; i < v->length; i++)
        v->first[i] = (int64_t)i;
    for (size_t i = 0; i < v->nwindows; i++)
        v->windows[i] = (int64_t)(v->outer + i);
    return v->outer + v->nwindows <= RP_TF_RANK;
}

RP_LOWER(gather_nd)
{
    int64_t dims[RP_TF_RANK], sizes[RP_TF_RANK];
    struct vectors v;
    size_t rank = 0;

    if (rp_lower_attr_int(node, "batch_dims", 0) || !plan_vectors(&in[1], in->rank, &v))
        return rp_lower_refuse(l, node, "this kind of gather is not supported");
    for (size_t i = 0; i < v.outer; i++)
        dims[rank++] = in[1].dims[i];
    for (size_t i = 0; i < in->rank; i++) {
        sizes[i] = i < v.length ? 1 : in->dims[i];
        if (i >= v.length)
            dims[rank++] = in->dims[i];
    }
    *out = rp_lower_like(l, in->elem, dims, rank);
    rp_lower_begin(l, out, RP_OP_GATHER);
    rp_lower_operand(l, &in[0]);
    rp_lower_operand(l, &in[1]);
    rp_lower_set_ints(l, RP_ATTR_OFFSET_DIMS, v.windows, v.nwindows);
    rp_lower_set_ints(l, RP_ATTR_COLLAPSED_SLICE_DIMS, v.first, v.length);
    rp_lower_set_ints(l, RP_ATTR_START_INDEX_MAP, v.first, v.length);
    rp_lower_set_int(l, RP_ATTR_INDEX_VECTOR_DIM, (int64_t)v.outer);
    rp_lower_set_ints(l, RP_ATTR_SLICE_SIZES, sizes, in->rank);
    return RP_OK;
}

/* The result is `on` if the position along a new axis is the index, otherwise `off`. */
RP_LOWER(one_hot)
{
    int64_t given = rp_lower_attr_int(node, "axis", -1), dims[RP_TF_RANK], map[RP_TF_RANK];
    size_t axis;

    RP_TRY(rp_lower_need_ints(l, node, &in[1], "depth"));
    if (!in[1].nints || in[1].ints[0] < 0 || in->rank == RP_TF_RANK || in[2].rank || in[3].rank ||
        !rp_lower_axis(given, in->rank + 1, &axis))
        return rp_lower_refuse(l, node, "invalid axis or depth");
    for (size_t i = 0; i <= in->rank; i++)
        dims[i] = i == axis ? in[1].ints[0] : in->dims[i - (i > axis)];
    for (size_t i = 0; i < in->rank; i++)
        map[i] = (int64_t)(i + (i >= axis));
    struct rp_lower_value places = rp_lower_like(l, in->elem, dims, in->rank + 1);
    rp_lower_begin(l, &places, RP_OP_IOTA);
    rp_lower_set_int(l, RP_ATTR_IOTA_DIMENSION, axis);
    struct rp_lower_value wanted = rp_lower_spread(l, in, map, dims, in->rank + 1);
    struct rp_lower_value hit = rp_lower_compare(l, "EQ", &places, &wanted);
    struct rp_lower_value yes = rp_lower_spread(l, &in[2], NULL, dims, in->rank + 1);
    struct rp_lower_value no = rp_lower_spread(l, &in[3], NULL, dims, in->rank + 1);
    *out = rp_lower_select(l, &hit, &yes, &no);
    return RP_OK;
}

/* ---- writing ---- */

/* Adds a scatter; without an opcode, updates replace elements. */
static void add_scatter(struct rp_lower *l, enum rp_opcode opcode,
                        const struct rp_lower_value *table, const struct rp_lower_value *indices,
                        const struct rp_lower_value *updates, const struct vectors *v,
                        struct rp_lower_value *out)
{
    uint32_t region = opcode == RP_LOWER_NO_OPCODE ? rp_lower_region_last(l, table->elem)
                                                   : rp_lower_region(l, opcode, table->elem);

    *out = rp_lower_like(l, table->elem, table->dims, table->rank);
    rp_lower_begin(l, out, RP_OP_SCATTER);
    rp_lower_operand(l, table);
    rp_lower_operand(l, indices);
    rp_lower_operand(l, updates);
    rp_lower_set_ints(l, RP_ATTR_UPDATE_WINDOW_DIMS, v->windows, v->nwindows);
    rp_lower_set_ints(l, RP_ATTR_INSERTED_WINDOW_DIMS, v->first, v->length);
    rp_lower_set_ints(l, RP_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, v->first, v->length);
    rp_lower_set_int(l, RP_ATTR_INDEX_VECTOR_DIM, (int64_t)v->outer);
    rp_lower_calls(l, region);
}

static bool updates_fit(const struct rp_lower_value *table, const struct rp_lower_value *indices,
                        const struct rp_lower_value *updates, const struct vectors *v)
{
    if (updates->rank != v->outer + v->nwindows || updates->elem != table->elem)
        return false;
    for (size_t i = 0; i < updates->rank; i++)
        if (updates->dims[i] !=
            (i < v->outer ? indices->dims[i] : table->dims[i - v->outer + v->length]))
            return false;
    return true;
}

/* (table, indices, updates), or (indices, updates, shape) over zeros */
RP_LOWER(scatter_nd)
{
    bool fresh = node->op.at[0] == 'S';
    struct rp_lower_value table = in[0], indices = in[1], updates = in[2];
    struct vectors v;

    if (fresh) {
        RP_TRY(rp_lower_need_ints(l, node, &in[2], "shape"));
        if (in[2].nints > RP_TF_RANK)
            return rp_lower_refuse(l, node, "the result has too many dimensions");
        indices = in[0];
        updates = in[1];
        table = rp_lower_like(l, updates.elem, in[2].ints, in[2].nints);
        table = rp_lower_fill(l, 0, &table);
    }
    if (!plan_vectors(&indices, table.rank, &v) || !updates_fit(&table, &indices, &updates, &v))
        return rp_lower_misfit(l, node, "incompatible input shapes");
    add_scatter(l, rp_lower_opcode(node), &table, &indices, &updates, &v, out);
    return RP_OK;
}

/* Returns the result for no rows as TensorFlow defines it. */
static bool neutral_of(enum rp_opcode opcode, unsigned elem, double *out)
{
    double top = elem == RP_ELEM_F32   ? FLT_MAX
                 : elem == RP_ELEM_F64 ? DBL_MAX
                 : elem == RP_ELEM_S32 ? (double)INT32_MAX /* NAN is a float */
                                       : NAN;

    *out = opcode == RP_OP_ADD        ? 0
           : opcode == RP_OP_MULTIPLY ? 1
           : opcode == RP_OP_MINIMUM  ? top
           : elem == RP_ELEM_S32      ? INT32_MIN
                                      : -top;
    return !isnan(*out);
}

/* Finds the number of segments: given, or one more than the last of sorted ones. */
static enum rp_code segments_of(struct rp_lower *l, const struct rp_lower_node *node,
                                const struct rp_lower_value *in, int64_t *out)
{
    bool sorted = node->op.at[0] == 'S';
    const struct rp_lower_value *of = &in[sorted ? 1 : 2];

    RP_TRY(rp_lower_need_ints(l, node, of, sorted ? "segments" : "number of segments"));
    *out = !of->nints ? sorted ? 0 : -1 : of->ints[of->nints - 1] + sorted;
    return *out < 0 ? rp_lower_misfit(l, node, "the segments do not match the input") : RP_OK;
}

/* Computes the sum, product, maximum or minimum of the rows of each segment. */
RP_LOWER(segment)
{
    int64_t dims[RP_TF_RANK], with_one[RP_TF_RANK];
    size_t n = in[1].rank, rank = 1;
    struct vectors v;
    double neutral;

    RP_TRY(segments_of(l, node, in, &dims[0]));
    if (n > in->rank || n == RP_TF_RANK)
        return rp_lower_misfit(l, node, "the segments do not match the input");
    if (!neutral_of(rp_lower_opcode(node), in->elem, &neutral))
        return rp_lower_refuse(l, node, "this type is not supported");
    for (size_t i = n; i < in->rank; i++)
        dims[rank++] = in->dims[i];
    memcpy(with_one, in[1].dims, n * sizeof *with_one);
    with_one[n] = 1;
    struct rp_lower_value indices = rp_lower_reshape(l, &in[1], with_one, n + 1);
    struct rp_lower_value table = rp_lower_like(l, in->elem, dims, rank);
    table = rp_lower_fill(l, neutral, &table);
    if (!plan_vectors(&indices, rank, &v) || !updates_fit(&table, &indices, in, &v))
        return rp_lower_misfit(l, node, "the segments do not match the input");
    add_scatter(l, rp_lower_opcode(node), &table, &indices, in, &v, out);
    return RP_OK;
}

const struct rp_lower_row rp_lower_tables[] = {
    {"Gather", lower_gather, RP_LOWER_NO_OPCODE, 2},
    {"GatherV2", lower_gather, RP_LOWER_NO_OPCODE, 3},
    {"ResourceGather", lower_gather, RP_LOWER_NO_OPCODE, 2},
    {"GatherNd", lower_gather_nd, RP_LOWER_NO_OPCODE, 2},
    {"ResourceGatherNd", lower_gather_nd, RP_LOWER_NO_OPCODE, 2},
    {"OneHot", lower_one_hot, RP_LOWER_NO_OPCODE, 4},
    {"ScatterNd", lower_scatter_nd, RP_OP_ADD, 3},
    {"TensorScatterAdd", lower_scatter_nd, RP_OP_ADD, 3},
    {"TensorScatterUpdate", lower_scatter_nd, RP_LOWER_NO_OPCODE, 3},
    {"TensorScatterMax", lower_scatter_nd, RP_OP_MAXIMUM, 3},
    {"TensorScatterMin", lower_scatter_nd, RP_OP_MINIMUM, 3},
    {"SegmentSum", lower_segment, RP_OP_ADD, 2},
    {"SegmentProd", lower_segment, RP_OP_MULTIPLY, 2},
    {"UnsortedSegmentSum", lower_segment, RP_OP_ADD, 3},
    {"UnsortedSegmentProd", lower_segment, RP_OP_MULTIPLY, 3},
    {"UnsortedSegmentMax", lower_segment, RP_OP_MAXIMUM, 3},
    {"UnsortedSegmentMin", lower_segment, RP_OP_MINIMUM, 3},
    {NULL, NULL, RP_LOWER_NO_OPCODE, 0}};
