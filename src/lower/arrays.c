/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lowers operators of TensorFlow that move elements. If they take a shape, axes or positions as
 * tensors, these must be known: constants of the graph, or feeds whose values are given.
 */
#include "lower/inner.h"
#include "program/floats.h"
#include "program/opcodes.h"

#include <string.h>

/* Makes a constant of known integers, a vector or a scalar; their values stay known to the
   lowering. */
static struct rp_lower_value known_ints(struct rp_lower *l, unsigned elem, const int64_t *at,
                                        size_t n, bool scalar)
{
    int64_t dim = (int64_t)n, *ints = RP_ARENA_NEW(&l->arena, int64_t, n + 1);
    struct rp_lower_value v = rp_lower_like(l, elem, &dim, scalar ? 0 : 1);

    rp_lower_integers(l, &v, at, n);
    if (ints && n)
        memcpy(ints, at, n * sizeof *at);
    v.ints = ints;
    v.nints = n;
    return v;
}

RP_LOWER(reshape)
{
    int64_t dims[RP_TF_RANK], known_elements = 1, all = rp_lower_elements(in);
    size_t n = in[1].nints, open = RP_TF_RANK;

    RP_TRY(rp_lower_need_ints(l, node, &in[1], "shape"));
    if (n > RP_TF_RANK)
        return rp_lower_refuse(l, node, "the result has too many dimensions");
    for (size_t i = 0; i < n; i++) {
        dims[i] = in[1].ints[i];
        if (dims[i] == -1)
            open = i;
        else if (dims[i] < 0 || __builtin_mul_overflow(known_elements, dims[i], &known_elements))
            return rp_lower_refuse(l, node, "invalid shape");
    }
    if (open < n) {
        dims[open] = known_elements ? all / known_elements : 0;
        known_elements *= dims[open];
    }
    if (known_elements != all)
        return rp_lower_misfit(l, node,
                               "the shape and the input have different numbers of elements");
    *out = rp_lower_reshape(l, in, dims, n);
    return RP_OK;
}

/* The places of what is not zero: known ones, because they decide the shape of the result. */
RP_LOWER(where)
{
    size_t n = 0, rank = in->rank;
    struct rp_lower_value pred;

    if (!in->ints && in->elem != RP_ELEM_PRED) {
        pred = rp_lower_fill(l, 0, in);
        pred = rp_lower_compare(l, "NE", in, &pred);
        in = &pred;
    }
    RP_TRY(rp_lower_need_ints(l, node, in, "condition"));
    int64_t *places = RP_ARENA_NEW(&l->arena, int64_t, in->nints * rank + 1);
    RP_TRY(rp_err_need(places && in->ints, l->err, "lowering a graph"));
    for (size_t i = 0; i < in->nints; i++) {
        size_t rest = i;

        for (size_t k = rank; in->ints[i] && k-- > 0; rest /= (size_t)in->dims[k])
            places[n * rank + k] = (int64_t)(rest % (size_t)in->dims[k]);
        n += in->ints[i] != 0;
    }
    *out = rp_lower_like(l, RP_ELEM_S64, (int64_t[]){(int64_t)n, (int64_t)rank}, 2);
    rp_lower_integers(l, out, places, n * rank);
    out->ints = places;
    out->nints = n * rank;
    return RP_OK;
}

/* Finds the different values in their order, where each is, and how often. */
RP_LOWER(unique)
{
    unsigned index = rp_lower_attr_elem(node, "out_idx") == RP_ELEM_S64 ? RP_ELEM_S64 : RP_ELEM_S32;
    RP_SCOPED(rp_map_release) struct rp_map found = {0};
    size_t n = 0;

    struct rp_lower_value bits = *in;
    if (!in->ints && rp_elem_is_float(in->elem)) { /* equal numbers have equal bits, but zeros */
        static const unsigned of[] = {RP_ELEM_U8, RP_ELEM_U16, RP_ELEM_S32, RP_ELEM_S64};
        struct rp_lower_value zero = rp_lower_fill(l, 0, in);

        bits = rp_lower_binary(l, RP_OP_ADD, in, &zero);
        zero = rp_lower_like(l, of[__builtin_ctz(rp_elem_bits(in->elem) / 8)], in->dims, in->rank);
        rp_lower_begin(l, &zero, RP_OP_BITCAST_CONVERT);
        rp_lower_operand(l, &bits);
        bits = zero;
    }
    unsigned elem = bits.elem;
    if (!bits.ints && elem != RP_ELEM_S32 && elem != RP_ELEM_S64)
        bits = rp_lower_convert(l, &bits, RP_ELEM_S64);
    const struct rp_lower_value *given = in;
    in = &bits;
    RP_TRY(rp_lower_need_ints(l, node, in, "input"));
    int64_t *values = RP_ARENA_NEW(&l->arena, int64_t, in->nints + 1);
    int64_t *counts = RP_ARENA_NEW(&l->arena, int64_t, in->nints + 1);
    int64_t *at = RP_ARENA_NEW(&l->arena, int64_t, in->nints + 1);
    RP_TRY(rp_err_need(values && counts && at && in->ints, l->err, "lowering a graph"));
    if (in->rank != 1)
        return rp_lower_misfit(l, node, "the input is not a vector");
    for (size_t i = 0; i < in->nints; i++) {
        uint64_t hash = rp_hash_bytes(&in->ints[i], sizeof in->ints[i]);
        uint32_t k = rp_map_get(&found, hash);

        if (k == RP_MAP_NONE) {
            k = (uint32_t)n;
            values[n++] = in->ints[i];
            RP_TRY(rp_map_put(&found, hash, k, l->err));
        }
        at[i] = k;
        counts[k]++;
    }
    out[0] = known_ints(l, elem, values, n, false);
    if (given->elem != elem) {
        struct rp_lower_value back = rp_lower_like(l, given->elem, out->dims, 1);
        rp_lower_begin(l, &back, RP_OP_BITCAST_CONVERT);
        rp_lower_operand(l, out);
        out[0] = back;
    }
    out[1] = known_ints(l, index, at, in->nints, false);
    out[2] = known_ints(l, index, counts, n, false);
    *nout = memmem(node->op.at, node->op.n, "Counts", 6) ? 3 : 2;
    return rp_arena_check(&l->arena, "lowering a graph", l->err);
}

RP_LOWER(expand_dims)
{
    int64_t dims[RP_TF_RANK];
    size_t axis;

    RP_TRY(rp_lower_need_ints(l, node, &in[1], "axis"));
    if (in->rank == RP_TF_RANK || !in[1].nints ||
        !rp_lower_axis(in[1].ints[0], in->rank + 1, &axis))
        return rp_lower_misfit(l, node, "the axis is out of range");
    for (size_t i = 0; i <= in->rank; i++)
        dims[i] = i == axis ? 1 : in->dims[i - (i > axis)];
    *out = rp_lower_reshape(l, in, dims, in->rank + 1);
    return RP_OK;
}

RP_LOWER(squeeze)
{
    int64_t axes[RP_TF_RANK], dims[RP_TF_RANK];
    size_t n = rp_lower_attr_ints(node, "squeeze_dims", axes, RP_TF_RANK), rank = 0, axis;
    bool gone[RP_TF_RANK] = {false};

    for (size_t i = 0; i < n; i++) {
        if (!rp_lower_axis(axes[i], in->rank, &axis) || in->dims[axis] != 1)
            return rp_lower_refuse(l, node, "a removed dimension is not of size 1");
        gone[axis] = true;
    }
    for (size_t i = 0; i < in->rank; i++)
        if (n ? !gone[i] : in->dims[i] != 1)
            dims[rank++] = in->dims[i];
    *out = rp_lower_reshape(l, in, dims, rank);
    return RP_OK;
}

RP_LOWER(transpose)
{
    int64_t perm[RP_TF_RANK];
    bool seen[RP_TF_RANK] = {false};
    size_t axis;

    RP_TRY(rp_lower_need_ints(l, node, &in[1], "permutation"));
    if (in[1].nints != in->rank)
        return rp_lower_misfit(l, node, "the permutation has the wrong number of dimensions");
    for (size_t i = 0; i < in->rank; i++) {
        if (!rp_lower_axis(in[1].ints[i], in->rank, &axis) || seen[axis])
            return rp_lower_refuse(l, node, "invalid permutation");
        seen[axis] = true;
        perm[i] = (int64_t)axis;
    }
    *out = rp_lower_permute(l, in, perm);
    return RP_OK;
}

enum rp_code rp_lower_join(struct rp_lower *l, const struct rp_lower_node *node,
                           const struct rp_lower_value *in, size_t n, size_t axis,
                           struct rp_lower_value *out)
{
    int64_t dims[RP_TF_RANK];

    memcpy(dims, in->dims, sizeof dims);
    for (size_t i = 1; i < n; i++) {
        if (in[i].rank != in->rank || in[i].elem != in->elem)
            return rp_lower_misfit(l, node, "incompatible inputs");
        for (size_t d = 0; d < in->rank; d++)
            if (d != axis && in[i].dims[d] != in->dims[d])
                return rp_lower_misfit(l, node, "incompatible inputs");
        dims[axis] += in[i].dims[axis];
    }
    *out = rp_lower_like(l, in->elem, dims, in->rank);
    rp_lower_begin(l, out, RP_OP_CONCATENATE);
    for (size_t i = 0; i < n; i++)
        rp_lower_operand(l, &in[i]);
    rp_lower_set_ints(l, RP_ATTR_DIMENSIONS, (int64_t[]){(int64_t)axis}, 1);
    return RP_OK;
}

/* If the integers of all vectors are known, so are those of the concatenation. */
static void join_ints(struct rp_lower *l, const struct rp_lower_value *in, size_t n,
                      struct rp_lower_value *out)
{
    size_t all = 0;

    for (size_t i = 0; i < n; i++) {
        if (!in[i].ints || in[i].rank != 1)
            return;
        all += in[i].nints;
    }
    int64_t *ints = RP_ARENA_NEW(&l->arena, int64_t, all + 1);
    out->ints = ints;
    out->nints = 0;
    for (size_t i = 0; ints && i < n; i++)
        for (size_t k = 0; k < in[i].nints; k++)
            ints[out->nints++] = in[i].ints[k];
}

RP_LOWER(concat)
{
    size_t axis;

    RP_TRY(rp_lower_need_ints(l, node, &in[nin - 1], "axis"));
    if (!in[nin - 1].nints || !rp_lower_axis(in[nin - 1].ints[0], in->rank, &axis))
        return rp_lower_misfit(l, node, "the axis is out of range");
    RP_TRY(rp_lower_join(l, node, in, nin - 1, axis, out));
    join_ints(l, in, nin - 1, out);
    return RP_OK;
}

RP_LOWER(pack)
{
    struct rp_lower_value *parts = RP_ARENA_NEW(&l->arena, struct rp_lower_value, nin);
    int64_t dims[RP_TF_RANK], *ints;
    bool all_known = in->rank == 0;
    size_t axis;

    RP_TRY(rp_err_need(parts, l->err, "lowering a graph"));
    if (in->rank == RP_TF_RANK ||
        !rp_lower_axis(rp_lower_attr_int(node, "axis", 0), in->rank + 1, &axis))
        return rp_lower_misfit(l, node, "the axis is out of range");
    for (size_t i = 0; i < nin; i++) {
        if (in[i].rank != in->rank)
            return rp_lower_misfit(l, node, "incompatible inputs");
        for (size_t d = 0; d <= in->rank; d++)
            dims[d] = d == axis ? 1 : in[i].dims[d - (d > axis)];
        parts[i] = rp_lower_reshape(l, &in[i], dims, in->rank + 1);
        all_known = all_known && in[i].nints == 1;
    }
    RP_TRY(rp_lower_join(l, node, parts, nin, axis, out));
    if (!all_known || !(ints = RP_ARENA_NEW(&l->arena, int64_t, nin)))
        return RP_OK;
    for (size_t i = 0; i < nin; i++)
        ints[i] = in[i].ints[0];
    out->ints = ints;
    out->nints = nin;
    return RP_OK;
}

RP_LOWER(fill)
{
    RP_TRY(rp_lower_need_ints(l, node, &in[0], "shape"));
    if (in->nints > RP_TF_RANK || in[1].rank)
        return rp_lower_refuse(l, node, "the value to fill with is not a scalar");
    *out = in->nints ? rp_lower_spread(l, &in[1], NULL, in->ints, in->nints) : in[1];
    return RP_OK;
}

RP_LOWER(broadcast_to)
{
    RP_TRY(rp_lower_need_ints(l, node, &in[1], "shape"));
    if (in[1].nints > RP_TF_RANK || in[1].nints < in->rank)
        return rp_lower_misfit(l, node, "the shape does not match the input");
    for (size_t i = 0; i < in->rank; i++)
        if (in->dims[i] != 1 && in->dims[i] != in[1].ints[i + in[1].nints - in->rank])
            return rp_lower_misfit(l, node, "the shape does not match the input");
    *out = rp_lower_broadcast(l, in, in[1].ints, in[1].nints);
    return RP_OK;
}

/* Each dimension [n] becomes [times, n], and then [times * n]. */
RP_LOWER(tile)
{
    int64_t dims[RP_TF_RANK], wide[RP_TF_RANK], map[RP_TF_RANK];

    RP_TRY(rp_lower_need_ints(l, node, &in[1], "multiples"));
    if (in[1].nints != in->rank || in->rank > RP_TF_RANK / 2)
        return rp_lower_misfit(l, node, "the multiples do not match the input");
    for (size_t i = 0; i < in->rank; i++) {
        wide[2 * i] = in[1].ints[i];
        wide[2 * i + 1] = in->dims[i];
        map[i] = (int64_t)(2 * i + 1);
        if (wide[2 * i] < 0 || __builtin_mul_overflow(wide[2 * i], in->dims[i], &dims[i]))
            return rp_lower_misfit(l, node, "the multiples do not match the input");
    }
    struct rp_lower_value spread = rp_lower_spread(l, in, map, wide, 2 * (size_t)in->rank);
    *out = rp_lower_reshape(l, &spread, dims, in->rank);
    return RP_OK;
}

RP_LOWER(pad)
{
    struct rp_lower_value value = nin > 2 ? in[2] : rp_lower_scalar(l, in->elem, 0);
    int64_t dims[RP_TF_RANK], padding[3 * RP_TF_RANK];

    RP_TRY(rp_lower_need_ints(l, node, &in[1], "padding"));
    if (in[1].nints != 2 * (size_t)in->rank || value.rank)
        return rp_lower_misfit(l, node, "the padding does not match the input");
    for (size_t i = 0; i < in->rank; i++) {
        if (in[1].ints[2 * i] < 0 || in[1].ints[2 * i + 1] < 0 || in[1].ints[2 * i] > INT32_MAX ||
            in[1].ints[2 * i + 1] > INT32_MAX)
            return rp_lower_misfit(l, node, "the padding does not match the input");
        dims[i] = in->dims[i] + in[1].ints[2 * i] + in[1].ints[2 * i + 1];
        padding[3 * i] = in[1].ints[2 * i];
        padding[3 * i + 1] = in[1].ints[2 * i + 1];
        padding[3 * i + 2] = 0;
    }
    if (!in->rank) {
        *out = *in;
        return RP_OK;
    }
    *out = rp_lower_like(l, in->elem, dims, in->rank);
    rp_lower_begin(l, out, RP_OP_PAD);
    rp_lower_operand(l, in);
    rp_lower_operand(l, &value);
    rp_lower_set_padding(l, padding, in->rank);
    return RP_OK;
}

RP_LOWER(shape_of)
{
    unsigned elem = rp_lower_attr_elem(node, "out_type");

    *out = known_ints(l, elem == RP_ELEM_INVALID ? RP_ELEM_S32 : elem, in->dims, in->rank, false);
    return RP_OK;
}

RP_LOWER(shapes_of)
{
    unsigned elem = rp_lower_attr_elem(node, "out_type");

    if (nin > RP_LOWER_OUTPUTS)
        return rp_lower_refuse(l, node, "too many outputs");
    for (size_t i = 0; i < nin; i++)
        out[i] = known_ints(l, elem == RP_ELEM_INVALID ? RP_ELEM_S32 : elem, in[i].dims, in[i].rank,
                            false);
    *nout = nin;
    return RP_OK;
}

RP_LOWER(size_of)
{
    int64_t n = node->op.at[0] == 'R' ? (int64_t)in->rank : rp_lower_elements(in); /* Rank, Size */
    unsigned elem = rp_lower_attr_elem(node, "out_type");

    *out = known_ints(l, elem == RP_ELEM_INVALID ? RP_ELEM_S32 : elem, &n, 1, true);
    return RP_OK;
}

RP_LOWER(range)
{
    int64_t at[4096];
    size_t n = 0;

    if (rp_elem_is_float(in->elem))
        return rp_lower_refuse(l, node, "ranges of floats are not supported");
    for (size_t i = 0; i < 3; i++)
        RP_TRY(rp_lower_need_ints(l, node, &in[i], "begin, end or step"));
    if (!in[0].nints || !in[1].nints || !in[2].nints || !in[2].ints[0])
        return rp_lower_refuse(l, node, "the step is zero");
    for (int64_t v = in[0].ints[0], step = in[2].ints[0];
         step > 0 ? v < in[1].ints[0] : v > in[1].ints[0];) {
        if (n == sizeof at / sizeof *at)
            return rp_lower_refuse(l, node, "the range has too many elements");
        at[n++] = v;
        if (__builtin_add_overflow(v, step, &v))
            break;
    }
    *out = known_ints(l, in->elem, at, n, false);
    return RP_OK;
}

/* Finds the dimensions of each of two shapes that broadcasting expands: a gradient sums over
   them. */
RP_LOWER(broadcast_axes)
{
    int64_t axes[2][RP_TF_RANK];
    size_t n[2] = {0, 0};

    RP_TRY(rp_lower_need_ints(l, node, &in[0], "shape"));
    RP_TRY(rp_lower_need_ints(l, node, &in[1], "shape"));
    size_t rank = in[0].nints > in[1].nints ? in[0].nints : in[1].nints;
    if (rank > RP_TF_RANK)
        return rp_lower_refuse(l, node, "the shapes have too many dimensions");
    for (size_t i = 0; i < rank; i++) {
        int64_t dim[2];

        for (size_t k = 0; k < 2; k++)
            dim[k] = i + in[k].nints >= rank ? in[k].ints[i + in[k].nints - rank] : 1;
        for (size_t k = 0; k < 2; k++)
            if (dim[k] == 1)
                axes[k][n[k]++] = (int64_t)i;
    }
    for (size_t k = 0; k < 2; k++)
        out[k] = known_ints(l, in->elem, axes[k], n[k], false);
    *nout = 2;
    return RP_OK;
}

const struct rp_lower_row rp_lower_arrays[] = {
    {"Where", lower_where, RP_LOWER_NO_OPCODE, 1},
    {"Unique", lower_unique, RP_LOWER_NO_OPCODE, 1},
    {"UniqueWithCounts", lower_unique, RP_LOWER_NO_OPCODE, 1},
    {"Reshape", lower_reshape, RP_LOWER_NO_OPCODE, 2},
    {"ExpandDims", lower_expand_dims, RP_LOWER_NO_OPCODE, 2},
    {"Squeeze", lower_squeeze, RP_LOWER_NO_OPCODE, 1},
    {"Transpose", lower_transpose, RP_LOWER_NO_OPCODE, 2},
    {"ConcatV2", lower_concat, RP_LOWER_NO_OPCODE, 2},
    {"Pack", lower_pack, RP_LOWER_NO_OPCODE, 1},
    {"Fill", lower_fill, RP_LOWER_NO_OPCODE, 2},
    {"BroadcastGradientArgs", lower_broadcast_axes, RP_LOWER_NO_OPCODE, 2},
    {"BroadcastTo", lower_broadcast_to, RP_LOWER_NO_OPCODE, 2},
    {"Tile", lower_tile, RP_LOWER_NO_OPCODE, 2},
    {"Pad", lower_pad, RP_LOWER_NO_OPCODE, 2},
    {"PadV2", lower_pad, RP_LOWER_NO_OPCODE, 3},
    {"Shape", lower_shape_of, RP_LOWER_NO_OPCODE, 1},
    {"ShapeN", lower_shapes_of, RP_LOWER_NO_OPCODE, 1},
    {"Size", lower_size_of, RP_LOWER_NO_OPCODE, 1},
    {"Rank", lower_size_of, RP_LOWER_NO_OPCODE, 1},
    {"Range", lower_range, RP_LOWER_NO_OPCODE, 3},
    {NULL, NULL, RP_LOWER_NO_OPCODE, 0}};
