/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators of TensorFlow that move elements, as HLO. Where they take a shape, axes or positions as
 * tensors, these must be known: constants of the graph, or feeds whose values are given.
 */
#include "lower/inner.h"

#include <string.h>

#define LOWER(name)                                                                             \
    static enum rp_code name(struct lower *l, const struct lower_node *node,                    \
                             const struct lower_value *in, size_t nin, struct lower_value *out, \
                             size_t *nout)

/* A vector of integers that are known, as a constant of the program too. */
static struct lower_value known(struct lower *l, unsigned elem, const int64_t *at, size_t n,
                                bool scalar)
{
    int64_t dim = (int64_t)n, *ints = RP_ARENA_NEW(&l->arena, int64_t, n + 1);
    struct lower_value v = lower_like(l, elem, &dim, scalar ? 0 : 1);

    lower_integers(l, &v, at, n);
    if (ints && n)
        memcpy(ints, at, n * sizeof *at);
    v.ints = ints;
    v.nints = n;
    return v;
}

LOWER(reshape)
{
    int64_t dims[RP_TF_RANK], known_elements = 1, all = lower_elements(in);
    size_t n = in[1].nints, open = RP_TF_RANK;

    (void)nin;
    (void)nout;
    RP_TRY(lower_need_ints(l, node, &in[1], "shape"));
    if (n > RP_TF_RANK)
        return lower_refuse(l, node, "the result has too many dimensions");
    for (size_t i = 0; i < n; i++) {
        dims[i] = in[1].ints[i];
        if (dims[i] == -1)
            open = i;
        else if (dims[i] < 0 || __builtin_mul_overflow(known_elements, dims[i], &known_elements))
            return lower_refuse(l, node, "invalid shape");
    }
    if (open < n) {
        dims[open] = known_elements ? all / known_elements : 0;
        known_elements *= dims[open];
    }
    if (known_elements != all)
        return lower_misfit(l, node, "the shape and the input have different numbers of elements");
    *out = lower_reshape(l, in, dims, n);
    return RP_OK;
}

LOWER(expand_dims)
{
    int64_t dims[RP_TF_RANK];
    size_t axis;

    (void)nin;
    (void)nout;
    RP_TRY(lower_need_ints(l, node, &in[1], "axis"));
    if (in->rank == RP_TF_RANK || !in[1].nints || !lower_axis(in[1].ints[0], in->rank + 1, &axis))
        return lower_misfit(l, node, "the axis is out of range");
    for (size_t i = 0; i <= in->rank; i++)
        dims[i] = i == axis ? 1 : in->dims[i - (i > axis)];
    *out = lower_reshape(l, in, dims, in->rank + 1);
    return RP_OK;
}

LOWER(squeeze)
{
    int64_t axes[RP_TF_RANK], dims[RP_TF_RANK];
    size_t n = lower_attr_ints(node, "squeeze_dims", axes, RP_TF_RANK), rank = 0, axis;
    bool gone[RP_TF_RANK] = {false};

    (void)nin;
    (void)nout;
    for (size_t i = 0; i < n; i++) {
        if (!lower_axis(axes[i], in->rank, &axis) || in->dims[axis] != 1)
            return lower_refuse(l, node, "a removed dimension is not of size 1");
        gone[axis] = true;
    }
    for (size_t i = 0; i < in->rank; i++)
        if (n ? !gone[i] : in->dims[i] != 1)
            dims[rank++] = in->dims[i];
    *out = lower_reshape(l, in, dims, rank);
    return RP_OK;
}

LOWER(transpose)
{
    int64_t perm[RP_TF_RANK];
    bool seen[RP_TF_RANK] = {false};
    size_t axis;

    (void)nin;
    (void)nout;
    RP_TRY(lower_need_ints(l, node, &in[1], "permutation"));
    if (in[1].nints != in->rank)
        return lower_misfit(l, node, "the permutation has the wrong number of dimensions");
    for (size_t i = 0; i < in->rank; i++) {
        if (!lower_axis(in[1].ints[i], in->rank, &axis) || seen[axis])
            return lower_refuse(l, node, "invalid permutation");
        seen[axis] = true;
        perm[i] = (int64_t)axis;
    }
    *out = lower_permute(l, in, perm);
    return RP_OK;
}

enum rp_code lower_join(struct lower *l, const struct lower_node *node,
                        const struct lower_value *in, size_t n, size_t axis,
                        struct lower_value *out)
{
    int64_t dims[RP_TF_RANK];

    memcpy(dims, in->dims, sizeof dims);
    for (size_t i = 1; i < n; i++) {
        if (in[i].rank != in->rank || in[i].elem != in->elem)
            return lower_misfit(l, node, "incompatible inputs");
        for (size_t d = 0; d < in->rank; d++)
            if (d != axis && in[i].dims[d] != in->dims[d])
                return lower_misfit(l, node, "incompatible inputs");
        dims[axis] += in[i].dims[axis];
    }
    *out = lower_like(l, in->elem, dims, in->rank);
    lower_begin(l, out, RP_OP_CONCATENATE);
    for (size_t i = 0; i < n; i++)
        lower_operand(l, &in[i]);
    lower_set_ints(l, RP_ATTR_DIMENSIONS, (int64_t[]){(int64_t)axis}, 1);
    return RP_OK;
}

/* Vectors of integers that are known, one after another. */
static void join_ints(struct lower *l, const struct lower_value *in, size_t n,
                      struct lower_value *out)
{
    size_t all = 0;
    int64_t *ints;

    for (size_t i = 0; i < n; i++) {
        if (!in[i].ints || in[i].rank != 1)
            return;
        all += in[i].nints;
    }
    ints = RP_ARENA_NEW(&l->arena, int64_t, all + 1);
    out->ints = ints;
    out->nints = 0;
    for (size_t i = 0; ints && i < n; i++)
        for (size_t k = 0; k < in[i].nints; k++)
            ints[out->nints++] = in[i].ints[k];
}

LOWER(concat)
{
    size_t axis;

    (void)nout;
    RP_TRY(lower_need_ints(l, node, &in[nin - 1], "axis"));
    if (!in[nin - 1].nints || !lower_axis(in[nin - 1].ints[0], in->rank, &axis))
        return lower_misfit(l, node, "the axis is out of range");
    RP_TRY(lower_join(l, node, in, nin - 1, axis, out));
    join_ints(l, in, nin - 1, out);
    return RP_OK;
}

LOWER(pack)
{
    struct lower_value *parts = RP_ARENA_NEW(&l->arena, struct lower_value, nin);
    int64_t dims[RP_TF_RANK], *ints;
    bool all_known = in->rank == 0;
    size_t axis;

    (void)nout;
    if (!parts)
        return rp_err_nomem(l->err, "lowering a graph");
    if (in->rank == RP_TF_RANK || !lower_axis(lower_attr_int(node, "axis", 0), in->rank + 1, &axis))
        return lower_misfit(l, node, "the axis is out of range");
    for (size_t i = 0; i < nin; i++) {
        if (in[i].rank != in->rank)
            return lower_misfit(l, node, "incompatible inputs");
        for (size_t d = 0; d <= in->rank; d++)
            dims[d] = d == axis ? 1 : in[i].dims[d - (d > axis)];
        parts[i] = lower_reshape(l, &in[i], dims, in->rank + 1);
        all_known = all_known && in[i].nints == 1;
    }
    RP_TRY(lower_join(l, node, parts, nin, axis, out));
    if (!all_known || !(ints = RP_ARENA_NEW(&l->arena, int64_t, nin)))
        return RP_OK;
    for (size_t i = 0; i < nin; i++)
        ints[i] = in[i].ints[0];
    out->ints = ints;
    out->nints = nin;
    return RP_OK;
}

LOWER(fill)
{
    (void)nin;
    (void)nout;
    RP_TRY(lower_need_ints(l, node, &in[0], "shape"));
    if (in->nints > RP_TF_RANK || in[1].rank)
        return lower_refuse(l, node, "the value to fill with is not a scalar");
    *out = in->nints ? lower_spread(l, &in[1], NULL, in->ints, in->nints) : in[1];
    return RP_OK;
}

LOWER(broadcast_to)
{
    (void)nin;
    (void)nout;
    RP_TRY(lower_need_ints(l, node, &in[1], "shape"));
    if (in[1].nints > RP_TF_RANK || in[1].nints < in->rank)
        return lower_misfit(l, node, "the shape does not match the input");
    for (size_t i = 0; i < in->rank; i++)
        if (in->dims[i] != 1 && in->dims[i] != in[1].ints[i + in[1].nints - in->rank])
            return lower_misfit(l, node, "the shape does not match the input");
    *out = lower_broadcast(l, in, in[1].ints, in[1].nints);
    return RP_OK;
}

/* Each dimension [n] becomes [times, n], then [times * n]. */
LOWER(tile)
{
    int64_t dims[RP_TF_RANK], wide[RP_TF_RANK], map[RP_TF_RANK];
    struct lower_value spread;

    (void)nin;
    (void)nout;
    RP_TRY(lower_need_ints(l, node, &in[1], "multiples"));
    if (in[1].nints != in->rank || in->rank > RP_TF_RANK / 2)
        return lower_misfit(l, node, "the multiples do not match the input");
    for (size_t i = 0; i < in->rank; i++) {
        wide[2 * i] = in[1].ints[i];
        wide[2 * i + 1] = in->dims[i];
        map[i] = (int64_t)(2 * i + 1);
        if (wide[2 * i] < 0 || __builtin_mul_overflow(wide[2 * i], in->dims[i], &dims[i]))
            return lower_misfit(l, node, "the multiples do not match the input");
    }
    spread = lower_spread(l, in, map, wide, 2 * (size_t)in->rank);
    *out = lower_reshape(l, &spread, dims, in->rank);
    return RP_OK;
}

LOWER(pad)
{
    struct lower_value value = nin > 2 ? in[2] : lower_scalar(l, in->elem, 0);
    int64_t dims[RP_TF_RANK], padding[3 * RP_TF_RANK];

    (void)nout;
    RP_TRY(lower_need_ints(l, node, &in[1], "padding"));
    if (in[1].nints != 2 * (size_t)in->rank || value.rank)
        return lower_misfit(l, node, "the padding does not match the input");
    for (size_t i = 0; i < in->rank; i++) {
        if (in[1].ints[2 * i] < 0 || in[1].ints[2 * i + 1] < 0 || in[1].ints[2 * i] > INT32_MAX ||
            in[1].ints[2 * i + 1] > INT32_MAX)
            return lower_misfit(l, node, "the padding does not match the input");
        dims[i] = in->dims[i] + in[1].ints[2 * i] + in[1].ints[2 * i + 1];
        padding[3 * i] = in[1].ints[2 * i];
        padding[3 * i + 1] = in[1].ints[2 * i + 1];
        padding[3 * i + 2] = 0;
    }
    if (!in->rank) {
        *out = *in;
        return RP_OK;
    }
    *out = lower_like(l, in->elem, dims, in->rank);
    lower_begin(l, out, RP_OP_PAD);
    lower_operand(l, in);
    lower_operand(l, &value);
    lower_set_padding(l, padding, in->rank);
    return RP_OK;
}

LOWER(shape_of)
{
    unsigned elem = lower_attr_elem(node, "out_type");

    (void)nin;
    (void)nout;
    *out = known(l, elem == RP_ELEM_INVALID ? RP_ELEM_S32 : elem, in->dims, in->rank, false);
    return RP_OK;
}

LOWER(shapes_of)
{
    unsigned elem = lower_attr_elem(node, "out_type");

    if (nin > LOWER_OUTPUTS)
        return lower_refuse(l, node, "too many outputs");
    for (size_t i = 0; i < nin; i++)
        out[i] =
            known(l, elem == RP_ELEM_INVALID ? RP_ELEM_S32 : elem, in[i].dims, in[i].rank, false);
    *nout = nin;
    return RP_OK;
}

LOWER(size_of)
{
    int64_t n = node->op.at[0] == 'R' ? (int64_t)in->rank : lower_elements(in); /* Rank, Size */
    unsigned elem = lower_attr_elem(node, "out_type");

    (void)nin;
    (void)nout;
    *out = known(l, elem == RP_ELEM_INVALID ? RP_ELEM_S32 : elem, &n, 1, true);
    return RP_OK;
}

LOWER(range)
{
    int64_t at[4096];
    size_t n = 0;

    (void)nin;
    (void)nout;
    for (size_t i = 0; i < 3; i++)
        RP_TRY(lower_need_ints(l, node, &in[i], "begin, end or step"));
    if (!in[0].nints || !in[1].nints || !in[2].nints || !in[2].ints[0])
        return lower_refuse(l, node, "the step is zero");
    for (int64_t v = in[0].ints[0], step = in[2].ints[0];
         step > 0 ? v < in[1].ints[0] : v > in[1].ints[0];) {
        if (n == sizeof at / sizeof *at)
            return lower_refuse(l, node, "the range has too many elements");
        at[n++] = v;
        if (__builtin_add_overflow(v, step, &v))
            break;
    }
    *out = known(l, in->elem, at, n, false);
    return RP_OK;
}

/* Which dimensions of each of two shapes were spread to the common one: a gradient sums over them.
 */
LOWER(broadcast_axes)
{
    int64_t axes[2][RP_TF_RANK];
    size_t n[2] = {0, 0}, rank;

    (void)nin;
    RP_TRY(lower_need_ints(l, node, &in[0], "shape"));
    RP_TRY(lower_need_ints(l, node, &in[1], "shape"));
    rank = in[0].nints > in[1].nints ? in[0].nints : in[1].nints;
    if (rank > RP_TF_RANK)
        return lower_refuse(l, node, "the shapes have too many dimensions");
    for (size_t i = 0; i < rank; i++) {
        int64_t dim[2];

        for (size_t k = 0; k < 2; k++)
            dim[k] = i + in[k].nints >= rank ? in[k].ints[i + in[k].nints - rank] : 1;
        for (size_t k = 0; k < 2; k++)
            if (dim[k] == 1)
                axes[k][n[k]++] = (int64_t)i;
    }
    for (size_t k = 0; k < 2; k++)
        out[k] = known(l, in->elem, axes[k], n[k], false);
    *nout = 2;
    return RP_OK;
}

const struct lower_row lower_arrays[] = {
    {"Reshape", reshape, LOWER_NO_OPCODE, 2},
    {"ExpandDims", expand_dims, LOWER_NO_OPCODE, 2},
    {"Squeeze", squeeze, LOWER_NO_OPCODE, 1},
    {"Transpose", transpose, LOWER_NO_OPCODE, 2},
    {"ConcatV2", concat, LOWER_NO_OPCODE, 2},
    {"Pack", pack, LOWER_NO_OPCODE, 1},
    {"Fill", fill, LOWER_NO_OPCODE, 2},
    {"BroadcastGradientArgs", broadcast_axes, LOWER_NO_OPCODE, 2},
    {"BroadcastTo", broadcast_to, LOWER_NO_OPCODE, 2},
    {"Tile", tile, LOWER_NO_OPCODE, 2},
    {"Pad", pad, LOWER_NO_OPCODE, 2},
    {"PadV2", pad, LOWER_NO_OPCODE, 3},
    {"Shape", shape_of, LOWER_NO_OPCODE, 1},
    {"ShapeN", shapes_of, LOWER_NO_OPCODE, 1},
    {"Size", size_of, LOWER_NO_OPCODE, 1},
    {"Rank", size_of, LOWER_NO_OPCODE, 1},
    {"Range", range, LOWER_NO_OPCODE, 3},
    {NULL, NULL, LOWER_NO_OPCODE, 0}};
