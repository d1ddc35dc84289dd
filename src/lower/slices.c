/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lowers operators of TensorFlow that take parts of an array or reverse it: Python slices, splits,
 * mirrored padding, bands of matrices.
 */
#include "lower/inner.h"
#include "program/opcodes.h"

#include <string.h>

/* Takes every step[i]-th element from from[i] up to to[i]. */
struct rp_lower_value rp_lower_cut(struct rp_lower *l, const struct rp_lower_value *a,
                                   const int64_t *from, const int64_t *to, const int64_t *step)
{
    int64_t dims[RP_TF_RANK], parts[3 * RP_TF_RANK];

    for (size_t i = 0; i < a->rank; i++) {
        dims[i] = to[i] > from[i] ? (to[i] - from[i] + step[i] - 1) / step[i] : 0;
        parts[3 * i] = from[i];
        parts[3 * i + 1] = to[i] > from[i] ? to[i] : from[i];
        parts[3 * i + 2] = step[i];
    }
    struct rp_lower_value v = rp_lower_like(l, a->elem, dims, a->rank);
    rp_lower_begin(l, &v, RP_OP_SLICE);
    rp_lower_operand(l, a);
    rp_lower_set(l, rp_attr_int_list(l->builder.program, RP_ATTR_SLICE, RP_VALUE_SLICES, parts,
                                     3 * (size_t)a->rank));
    return v;
}

static const int64_t unit_strides[RP_TF_RANK] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                                 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

RP_LOWER(slice)
{
    int64_t to[RP_TF_RANK];

    RP_TRY(rp_lower_need_ints(l, node, &in[1], "begin"));
    RP_TRY(rp_lower_need_ints(l, node, &in[2], "size"));
    if (in[1].nints != in->rank || in[2].nints != in->rank)
        return rp_lower_misfit(l, node, "begin or size has the wrong number of dimensions");
    for (size_t i = 0; i < in->rank; i++) {
        int64_t from = in[1].ints[i], size = in[2].ints[i];

        if (from < 0 || from > in->dims[i] || size < -1 || size > in->dims[i] - from)
            return rp_lower_misfit(l, node, "the slice exceeds the input");
        to[i] = size == -1 ? in->dims[i] : from + size;
    }
    *out = rp_lower_cut(l, in, in[1].ints, to, unit_strides);
    if (in->ints && in->rank == 1 && to[0] <= (int64_t)in->nints) {
        out->ints = in->ints + in[1].ints[0];
        out->nints = (size_t)(to[0] - in[1].ints[0]);
    }
    return RP_OK;
}

/* A strided slice, read entry by entry: the slice of each dimension of the input, and the
   dimensions of the result. */
struct strided {
    int64_t from[RP_TF_RANK], to[RP_TF_RANK], step[RP_TF_RANK], dims[RP_TF_RANK];
    bool reversed[RP_TF_RANK]; /* it is read backwards: the input is first reversed along it */
    size_t used, rank;         /* dimensions of the input and of the result so far */
};

static bool strided_keep(struct strided *s, const struct rp_lower_value *in, bool result)
{
    if (s->used == in->rank || (result && s->rank == RP_TF_RANK))
        return false;
    s->to[s->used] = in->dims[s->used];
    s->step[s->used] = 1;
    if (result)
        s->dims[s->rank++] = in->dims[s->used];
    s->used++;
    return true;
}

/* Reads entry i, with the meaning that it has in Python. */
static bool strided_entry(struct strided *s, const struct rp_lower_value *in, size_t i,
                          bool open_begin, bool open_end, bool one)
{
    int64_t size = s->used < in->rank ? in->dims[s->used] : 0, step = in[3].ints[i];
    int64_t from = in[1].ints[i], to = in[2].ints[i], least = step < 0 ? -1 : 0;
    int64_t most = step < 0 ? size - 1 : size;
    size_t d = s->used;

    if (!step || step < -INT32_MAX || step > INT32_MAX || !strided_keep(s, in, false))
        return false;
    from = from < 0 ? from + size : from;
    to = to < 0 ? to + size : to;
    if (one) { /* its end and stride do not count */
        s->from[d] = from;
        s->to[d] = from + 1;
        return from >= 0 && from < size;
    }
    from = open_begin ? step < 0 ? size - 1 : 0 : from < least ? least : from > most ? most : from;
    to = open_end ? step < 0 ? -1 : size : to < least ? least : to > most ? most : to;
    s->reversed[d] = step < 0;
    if (step < 0) {
        from = size - 1 - from;
        to = size - 1 - to;
        step = -step;
    }
    int64_t n = to > from ? (to - from + step - 1) / step : 0;
    s->from[d] = from;
    s->to[d] = to > from ? to : from;
    s->step[d] = step;
    if (s->rank == RP_TF_RANK)
        return false;
    s->dims[s->rank++] = n;
    return true;
}

/* Reads all entries: "...", new axes, and dimensions. */
static bool strided_read(const struct rp_lower_node *node, const struct rp_lower_value *in,
                         struct strided *s)
{
    int64_t begin = rp_lower_attr_int(node, "begin_mask", 0),
            end = rp_lower_attr_int(node, "end_mask", 0);
    int64_t rest = rp_lower_attr_int(node, "ellipsis_mask", 0);
    int64_t fresh = rp_lower_attr_int(node, "new_axis_mask", 0) & ~rest;
    int64_t shrink = rp_lower_attr_int(node, "shrink_axis_mask", 0);
    size_t n = in[1].nints, behind = 0;

    if (n > 62 || in[2].nints != n || in[3].nints != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (rest >> i & 1) {
            for (size_t k = i + 1; k < n; k++)
                behind += !(fresh >> k & 1);
            while (s->used + behind < in->rank)
                if (!strided_keep(s, in, true))
                    return false;
        } else if (fresh >> i & 1) {
            if (s->rank == RP_TF_RANK)
                return false;
            s->dims[s->rank++] = 1;
        } else if (!strided_entry(s, in, i, begin >> i & 1, end >> i & 1, shrink >> i & 1)) {
            return false;
        }
    }
    while (s->used < in->rank)
        if (!strided_keep(s, in, true))
            return false;
    return true;
}

/* Reverses the input along some dimensions. */
static struct rp_lower_value reverse_value(struct rp_lower *l, const struct rp_lower_value *a,
                                           const bool *reversed)
{
    int64_t dims[RP_TF_RANK];
    size_t n = 0;

    for (size_t i = 0; i < a->rank; i++)
        if (reversed[i])
            dims[n++] = (int64_t)i;
    if (!n)
        return *a;
    struct rp_lower_value v = rp_lower_like(l, a->elem, a->dims, a->rank);
    rp_lower_begin(l, &v, RP_OP_REVERSE);
    rp_lower_operand(l, a);
    rp_lower_set_ints(l, RP_ATTR_DIMENSIONS, dims, n);
    return v;
}

RP_LOWER(strided_slice)
{
    struct strided s = {.used = 0};
    int64_t *ints;

    for (size_t i = 1; i < 4; i++)
        RP_TRY(rp_lower_need_ints(l, node, &in[i], "begin, end or stride"));
    if (!strided_read(node, in, &s))
        return rp_lower_misfit(l, node, "the entries do not match the input");
    struct rp_lower_value whole = reverse_value(l, in, s.reversed);
    *out = rp_lower_cut(l, &whole, s.from, s.to, s.step);
    *out = rp_lower_reshape(l, out, s.dims, s.rank);
    out->ints = NULL;
    out->nints = 0;
    if (in->nints && in->rank == 1 && (ints = RP_ARENA_NEW(&l->arena, int64_t, in->nints + 1))) {
        size_t last = in->nints - 1;

        for (int64_t i = s.from[0]; i < s.to[0] && i <= (int64_t)last; i += s.step[0])
            ints[out->nints++] = in->ints[s.reversed[0] ? last - (size_t)i : (size_t)i];
        out->ints = ints;
    }
    return RP_OK;
}

/* ReverseV2 lists axes; Reverse has a boolean for each dimension. */
RP_LOWER(reverse)
{
    bool reversed[RP_TF_RANK] = {false}, flags = in[1].elem == RP_ELEM_PRED;
    size_t axis;

    RP_TRY(rp_lower_need_ints(l, node, &in[1], "axes"));
    for (size_t i = 0; i < in[1].nints; i++) {
        if (!rp_lower_axis(flags ? (int64_t)i : in[1].ints[i], in->rank, &axis))
            return rp_lower_misfit(l, node, "the axis is out of range");
        reversed[axis] = !flags || in[1].ints[i];
    }
    *out = reverse_value(l, in, reversed);
    return RP_OK;
}

/* Keeps a band around the diagonal of the last two dimensions and sets the rest to 0. */
RP_LOWER(band)
{
    struct rp_lower_value hit[2];
    int64_t reach[2];

    for (size_t i = 1; i < 3; i++)
        RP_TRY(rp_lower_need_ints(l, node, &in[i], "width"));
    if (in->rank < 2 || !in[1].nints || !in[2].nints)
        return rp_lower_refuse(l, node, "the input is not a matrix");
    struct rp_lower_value row = rp_lower_like(l, RP_ELEM_S64, in->dims, in->rank);
    rp_lower_begin(l, &row, RP_OP_IOTA);
    rp_lower_set_int(l, RP_ATTR_IOTA_DIMENSION, in->rank - 2);
    struct rp_lower_value column = rp_lower_like(l, RP_ELEM_S64, in->dims, in->rank);
    rp_lower_begin(l, &column, RP_OP_IOTA);
    rp_lower_set_int(l, RP_ATTR_IOTA_DIMENSION, in->rank - 1);
    for (int i = 0; i < 2; i++) { /* below, then above the diagonal */
        reach[i] = in[1 + i].ints[0] < 0 ? INT32_MAX : in[1 + i].ints[0];
        struct rp_lower_value apart =
            rp_lower_binary(l, RP_OP_SUBTRACT, i ? &column : &row, i ? &row : &column);
        struct rp_lower_value bound = rp_lower_fill(l, (double)reach[i], &apart);
        hit[i] = rp_lower_compare(l, "LE", &apart, &bound);
    }
    hit[0] = rp_lower_binary(l, RP_OP_AND, &hit[0], &hit[1]);
    struct rp_lower_value zero = rp_lower_fill(l, 0, in);
    *out = rp_lower_select(l, &hit[0], in, &zero);
    return RP_OK;
}

/* Pads by mirrored elements, with the outermost element (SYMMETRIC) or without it (REFLECT). */
RP_LOWER(mirror_pad)
{
    int64_t skip = rp_lower_attr_is(node, "mode", "REFLECT");
    struct rp_lower_value part[3];

    RP_TRY(rp_lower_need_ints(l, node, &in[1], "padding"));
    if (in[1].nints != 2 * (size_t)in->rank)
        return rp_lower_misfit(l, node, "the padding does not match the input");
    *out = *in;
    for (size_t d = 0; d < in->rank; d++) {
        int64_t from[RP_TF_RANK] = {0}, to[RP_TF_RANK], n = out->dims[d];
        bool reversed[RP_TF_RANK] = {false};
        const int64_t *pads = in[1].ints + 2 * d;

        if (pads[0] < 0 || pads[1] < 0 || pads[0] + skip > n || pads[1] + skip > n)
            return rp_lower_misfit(l, node, "the padding does not match the input");
        reversed[d] = true;
        part[1] = *out;
        memcpy(to, out->dims, sizeof to);
        from[d] = skip;
        to[d] = skip + pads[0];
        part[0] = rp_lower_cut(l, &part[1], from, to, unit_strides);
        part[0] = reverse_value(l, &part[0], reversed);
        from[d] = n - skip - pads[1];
        to[d] = n - skip;
        part[2] = rp_lower_cut(l, &part[1], from, to, unit_strides);
        part[2] = reverse_value(l, &part[2], reversed);
        RP_TRY(rp_lower_join(l, node, part, 3, d, out));
    }
    return RP_OK;
}

/* Splits into equal parts, or into parts of the given sizes. */
static enum rp_code split_value(struct rp_lower *l, const struct rp_lower_node *node,
                                const struct rp_lower_value *a, size_t axis, const int64_t *sizes,
                                size_t n, struct rp_lower_value *out)
{
    int64_t from[RP_TF_RANK] = {0}, to[RP_TF_RANK];

    memcpy(to, a->dims, sizeof to);
    for (size_t i = 0; i < n; i++) {
        to[axis] = from[axis] + sizes[i];
        if (sizes[i] < 0 || to[axis] > a->dims[axis])
            return rp_lower_misfit(l, node, "the parts are larger than the input");
        out[i] = rp_lower_cut(l, a, from, to, unit_strides);
        from[axis] = to[axis];
    }
    return RP_OK;
}

RP_LOWER(split)
{
    int64_t n = rp_lower_attr_int(node, "num_split", 0), sizes[RP_LOWER_OUTPUTS];
    size_t axis;

    RP_TRY(rp_lower_need_ints(l, node, &in[0], "axis"));
    if (!in->nints || !rp_lower_axis(in->ints[0], in[1].rank, &axis) || n < 1 ||
        n > RP_LOWER_OUTPUTS || in[1].dims[axis] % n)
        return rp_lower_refuse(l, node, "the input cannot be split this way");
    for (int64_t i = 0; i < n; i++)
        sizes[i] = in[1].dims[axis] / n;
    *nout = (size_t)n;
    return split_value(l, node, &in[1], axis, sizes, (size_t)n, out);
}

RP_LOWER(split_v)
{
    int64_t sizes[RP_LOWER_OUTPUTS], rest = 0; /* the rest is for the part with size -1 */
    size_t axis;

    RP_TRY(rp_lower_need_ints(l, node, &in[1], "sizes"));
    RP_TRY(rp_lower_need_ints(l, node, &in[2], "axis"));
    if (!in[2].nints || !rp_lower_axis(in[2].ints[0], in->rank, &axis) ||
        in[1].nints > RP_LOWER_OUTPUTS)
        return rp_lower_refuse(l, node, "the input cannot be split this way");
    *nout = in[1].nints;
    memcpy(sizes, in[1].ints, in[1].nints * sizeof *sizes);
    for (size_t i = 0; i < in[1].nints; i++)
        rest -= sizes[i] == -1 ? 0 : sizes[i];
    for (size_t i = 0; i < in[1].nints; i++)
        sizes[i] = sizes[i] == -1 ? rest + in->dims[axis] : sizes[i];
    return split_value(l, node, in, axis, sizes, in[1].nints, out);
}

RP_LOWER(unpack)
{
    int64_t sizes[RP_LOWER_OUTPUTS], dims[RP_TF_RANK];
    size_t axis, rank = 0;

    if (!in->rank || !rp_lower_axis(rp_lower_attr_int(node, "axis", 0), in->rank, &axis) ||
        in->dims[axis] > RP_LOWER_OUTPUTS)
        return rp_lower_refuse(l, node, "the input cannot be unpacked this way");
    *nout = (size_t)in->dims[axis];
    for (size_t i = 0; i < *nout; i++)
        sizes[i] = 1;
    for (size_t i = 0; i < in->rank; i++)
        if (i != axis)
            dims[rank++] = in->dims[i];
    RP_TRY(split_value(l, node, in, axis, sizes, *nout, out));
    for (size_t i = 0; i < *nout; i++)
        out[i] = rp_lower_reshape(l, &out[i], dims, rank);
    return RP_OK;
}

const struct rp_lower_row rp_lower_slices[] = {
    {"Unpack", lower_unpack, RP_LOWER_NO_OPCODE, 1},
    {"Slice", lower_slice, RP_LOWER_NO_OPCODE, 3},
    {"StridedSlice", lower_strided_slice, RP_LOWER_NO_OPCODE, 4},
    {"Split", lower_split, RP_LOWER_NO_OPCODE, 2},
    {"SplitV", lower_split_v, RP_LOWER_NO_OPCODE, 3},
    {"Reverse", lower_reverse, RP_LOWER_NO_OPCODE, 2},
    {"ReverseV2", lower_reverse, RP_LOWER_NO_OPCODE, 2},
    {"MatrixBandPart", lower_band, RP_LOWER_NO_OPCODE, 3},
    {"MirrorPad", lower_mirror_pad, RP_LOWER_NO_OPCODE, 2},
    {NULL, NULL, RP_LOWER_NO_OPCODE, 0}};
