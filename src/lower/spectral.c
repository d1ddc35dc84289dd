/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lowers operators of TensorFlow that rearrange blocks of images, resize them, decompose matrices,
 * transform to frequencies and quantize.
 */
#include "lower/inner.h"
#include "program/opcodes.h"

#include <math.h>
#include <string.h>

/* ---- blocks ---- */

/* SpaceToDepth and DepthToSpace: a block of height and width is a part of the channels. */
RP_LOWER(blocks)
{
    static const int64_t perms[2][2][6] = {{{0, 1, 3, 2, 4, 5}, {0, 3, 5, 1, 2, 4}},
                                           {{0, 1, 3, 2, 4, 5}, {0, 3, 4, 1, 5, 2}}};
    bool back = node->op.at[0] == 'D', channels = rp_lower_attr_is(node, "data_format", "NCHW");
    int64_t s = rp_lower_attr_int(node, "block_size", 0), dims[6];
    size_t y = channels ? 2 : 1, c = channels ? 1 : 3;
    const int64_t *d = in->dims;

    if (in->rank != 4 || s < 1 || s > INT16_MAX ||
        (back ? d[c] % (s * s) : d[y] % s || d[y + 1] % s) ||
        rp_lower_attr_is(node, "data_format", "NCHW_VECT_C"))
        return rp_lower_refuse(l, node, "the sizes are not multiples of the block");
    if (back && channels)
        memcpy(dims, (int64_t[]){d[0], s, s, d[1] / (s * s), d[2], d[3]}, sizeof dims);
    else if (back)
        memcpy(dims, (int64_t[]){d[0], d[1], d[2], s, s, d[3] / (s * s)}, sizeof dims);
    else if (channels)
        memcpy(dims, (int64_t[]){d[0], d[1], d[2] / s, s, d[3] / s, s}, sizeof dims);
    else
        memcpy(dims, (int64_t[]){d[0], d[1] / s, s, d[2] / s, s, d[3]}, sizeof dims);
    struct rp_lower_value t = rp_lower_reshape(l, in, dims, 6);
    t = rp_lower_permute(l, &t, perms[back][channels]);
    memcpy(dims, d, 4 * sizeof *dims);
    dims[c] = back ? d[c] / (s * s) : d[c] * s * s;
    dims[y] = back ? d[y] * s : d[y] / s;
    dims[y + 1] = back ? d[y + 1] * s : d[y + 1] / s;
    *out = rp_lower_reshape(l, &t, dims, 4);
    return RP_OK;
}

/* ---- resizing ---- */

/* Returns where a place of the result lies in the input. */
static double source_of(const struct rp_lower_node *node, int64_t at, int64_t from, int64_t to)
{
    bool corners = rp_lower_attr_bool(node, "align_corners") && to > 1;
    double scale = corners ? (double)(from - 1) / (double)(to - 1) : (double)from / (double)to;

    return rp_lower_attr_bool(node, "half_pixel_centers") ? ((double)at + 0.5) * scale - 0.5
                                                          : (double)at * (double)(float)scale;
}

enum mode { NEAREST, BILINEAR, BICUBIC, AREA };

static size_t nearest_line(double at, int64_t lines)
{
    return (size_t)fmin(fmax(at, 0), (double)(lines - 1));
}

/* Weighs four lines by a table of the cubic as in TensorFlow, with 1024 places between two lines.
   With half pixels, lines outside of the image have no weight. */
static void cubic_weights(const struct rp_lower_node *node, double x, int64_t from, float *weights)
{
    bool half = rp_lower_attr_bool(node, "half_pixel_centers");
    double low = floor(x), a = half ? -0.5 : -0.75, sum = 0, w[4];
    double d = rint((x - low) * 1024) / 1024;

    for (int i = 0; i < 4; i++) {
        double t = i == 0 ? d + 1 : i == 1 ? d : i == 2 ? 1 - d : 2 - d, line = low + i - 1;

        w[i] = i == 1 || i == 2 ? ((a + 2) * t - (a + 3)) * t * t + 1
                                : ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
        if (half && (line < 0 || line > (double)(from - 1)))
            w[i] = 0;
        sum += w[i];
    }
    for (int i = 0; i < 4; i++)
        weights[nearest_line(low + i - 1, from)] += (float)(half ? w[i] / sum : w[i]);
}

/* Computes the weights with which a line of the result mixes lines of the input. */
static void line_weights(const struct rp_lower_node *node, enum mode mode, int64_t at, int64_t from,
                         int64_t to, float *weights)
{
    double x = source_of(node, at, from, to), low = floor(x);

    if (mode == BICUBIC) {
        cubic_weights(node, x, from, weights);
    } else if (mode == AREA) {
        /* The weight of each line is the part of it that the place covers. */
        double begin = source_of(node, at, from, to), end = source_of(node, at + 1, from, to);

        for (int64_t i = (int64_t)floor(begin); (double)i < end; i++)
            weights[nearest_line((double)i, from)] +=
                (float)((fmin((double)i + 1, end) - fmax((double)i, begin)) / (end - begin));
    } else if (mode == NEAREST) {
        if (rp_lower_attr_bool(node, "half_pixel_centers"))
            x = floor(((double)at + 0.5) * (double)((float)from / (float)to));
        else
            x = rp_lower_attr_bool(node, "align_corners") ? round(x) : floor(x);
        weights[nearest_line(x, from)] = 1;
    } else {
        weights[nearest_line(low, from)] += (float)(1 - (x - low));
        weights[nearest_line(low + 1, from)] += (float)(x - low);
    }
}

/* The lines of dimension `axis` mixed into `size` lines, by a matrix with a row for each line of
   the result; for a gradient, `back`, by its transpose. */
static enum rp_code mix_lines(struct rp_lower *l, const struct rp_lower_node *node, enum mode mode,
                              bool back, const struct rp_lower_value *in, int64_t axis,
                              int64_t size, struct rp_lower_value *out)
{
    static const int64_t perms[2][4] = {{1, 0, 2, 3}, {1, 2, 0, 3}};
    int64_t from = back ? size : in->dims[axis], to = back ? in->dims[axis] : size, dims[4];
    float *weights = RP_ARENA_NEW(&l->builder.program->arena, float, (size_t)(from * to) + 1);

    RP_TRY(rp_err_need(weights, l->err, "lowering a graph"));
    for (int64_t i = 0; i < to; i++)
        line_weights(node, mode, i, from, to, weights + i * from);
    struct rp_lower_value matrix = rp_lower_like(l, RP_ELEM_F32, (int64_t[]){to, from}, 2);
    rp_lower_literal(l, &matrix, weights, (size_t)(from * to) * sizeof *weights);
    matrix = rp_lower_convert(l, &matrix, in->elem);
    dims[0] = size;
    for (int64_t k = 0, n = 1; k < 4; k++)
        if (k != axis)
            dims[n++] = in->dims[k];
    struct rp_lower_value mixed = rp_lower_like(l, in->elem, dims, 4);
    rp_lower_begin(l, &mixed, RP_OP_DOT);
    rp_lower_operand(l, &matrix);
    rp_lower_operand(l, in);
    rp_lower_set_ints(l, RP_ATTR_LHS_CONTRACTING_DIMS, (int64_t[]){!back}, 1);
    rp_lower_set_ints(l, RP_ATTR_RHS_CONTRACTING_DIMS, &axis, 1);
    *out = rp_lower_permute(l, &mixed, perms[axis - 1]);
    return RP_OK;
}

#define MOST_WEIGHTS (INT64_C(1) << 24)

/* (images, size), and gradients: (gradient, images), nearest (gradient, size). */
RP_LOWER(resize)
{
    /* Nearest..., Bilinear, Bicubic, Area */
    char letter = node->op.at[6] == 'B' ? (char)node->op.at[8] : (char)node->op.at[6];
    enum mode mode = letter == 'N'   ? NEAREST
                     : letter == 'l' ? BILINEAR
                     : letter == 'c' ? BICUBIC
                                     : AREA;
    bool back = node->op.at[node->op.n - 1] == 'd', like = back && mode != NEAREST;
    const int64_t *size = like ? in[1].dims + 1 : in[1].ints;

    if (!like)
        RP_TRY(rp_lower_need_ints(l, node, &in[1], "size"));
    if (in->rank != 4 || (like ? in[1].rank != 4 : in[1].nints != 2))
        return rp_lower_misfit(l, node, "the input is not a batch of images");
    for (int k = 0; k < 2; k++)
        if (size[k] < 1 || in->dims[1 + k] < 1 || size[k] > MOST_WEIGHTS ||
            size[k] * in->dims[1 + k] > MOST_WEIGHTS)
            return rp_lower_refuse(l, node, "the size is too small or too large");
    if (!(rp_elem_bits(in->elem) <= 32 || in->elem == RP_ELEM_F64))
        return rp_lower_refuse(l, node, "images of this type are not supported");
    bool exact = rp_elem_bits(in->elem) <= 16 || in->elem == RP_ELEM_F32; /* in f32 */
    struct rp_lower_value t = rp_lower_convert(l, in, exact ? RP_ELEM_F32 : RP_ELEM_F64);
    RP_TRY(mix_lines(l, node, mode, back, &t, 1, size[0], &t));
    RP_TRY(mix_lines(l, node, mode, back, &t, 2, size[1], out));
    *out = rp_lower_convert(l, out, like ? in[1].elem : mode == NEAREST ? in->elem : RP_ELEM_F32);
    return RP_OK;
}

/* ---- parts of images ---- */

/* Where the lines of each box lie in an image of `lines`: an array [boxes, size]. */
static struct rp_lower_value crop_lines(struct rp_lower *l, const struct rp_lower_value *boxes,
                                        int64_t axis, int64_t size, int64_t lines)
{
    static const int64_t step[] = {1, 1}, first[] = {0};
    int64_t n = boxes->dims[0], dims[] = {n, size};
    struct rp_lower_value end[2];

    for (int64_t k = 0; k < 2; k++) {
        int64_t at = axis + 2 * k;
        struct rp_lower_value t =
            rp_lower_cut(l, boxes, (int64_t[]){0, at}, (int64_t[]){n, at + 1}, step);
        t = rp_lower_reshape(l, &t, &n, 1);
        end[k] = rp_lower_spread(l, &t, first, dims, 2);
    }
    struct rp_lower_value last = rp_lower_fill(l, (double)(lines - 1), &end[0]);
    if (size == 1) {
        struct rp_lower_value half = rp_lower_fill(l, 0.5, &last);
        struct rp_lower_value t = rp_lower_binary(l, RP_OP_ADD, &end[0], &end[1]);
        t = rp_lower_binary(l, RP_OP_MULTIPLY, &t, &half);
        return rp_lower_binary(l, RP_OP_MULTIPLY, &t, &last);
    }
    struct rp_lower_value gaps = rp_lower_fill(l, (double)(size - 1), &last);
    struct rp_lower_value number = rp_lower_like(l, RP_ELEM_F32, dims, 2);
    rp_lower_begin(l, &number, RP_OP_IOTA);
    rp_lower_set_int(l, RP_ATTR_IOTA_DIMENSION, 1);
    struct rp_lower_value scale = rp_lower_binary(l, RP_OP_SUBTRACT, &end[1], &end[0]);
    scale = rp_lower_binary(l, RP_OP_MULTIPLY, &scale, &last);
    scale = rp_lower_binary(l, RP_OP_DIVIDE, &scale, &gaps);
    scale = rp_lower_binary(l, RP_OP_MULTIPLY, &scale, &number);
    struct rp_lower_value t = rp_lower_binary(l, RP_OP_MULTIPLY, &end[0], &last);
    return rp_lower_binary(l, RP_OP_ADD, &t, &scale);
}

/* The pixels at lines y [boxes, height] and columns x [boxes, width] of the image of each box. */
static enum rp_code pick_pixels(struct rp_lower *l, const struct rp_lower_node *node,
                                const struct rp_lower_value *image,
                                const struct rp_lower_value *which, const struct rp_lower_value *y,
                                const struct rp_lower_value *x, struct rp_lower_value *out)
{
    static const int64_t maps[][2] = {{0, 0}, {0, 1}, {0, 2}};
    int64_t dims[] = {y->dims[0], y->dims[1], x->dims[1], 1};
    const struct rp_lower_value *of[] = {which, y, x};
    struct rp_lower_value part[3], places;

    for (size_t k = 0; k < 3; k++) {
        struct rp_lower_value t = rp_lower_convert(l, of[k], RP_ELEM_S32);
        part[k] = rp_lower_spread(l, &t, maps[k], dims, 4);
    }
    RP_TRY(rp_lower_join(l, node, part, 3, 3, &places));
    dims[3] = image->dims[3];
    *out = rp_lower_like(l, image->elem, dims, 4);
    rp_lower_begin(l, out, RP_OP_GATHER);
    rp_lower_operand(l, image);
    rp_lower_operand(l, &places);
    rp_lower_set_ints(l, RP_ATTR_OFFSET_DIMS, (int64_t[]){3}, 1);
    rp_lower_set_ints(l, RP_ATTR_COLLAPSED_SLICE_DIMS, (int64_t[]){0, 1, 2}, 3);
    rp_lower_set_ints(l, RP_ATTR_START_INDEX_MAP, (int64_t[]){0, 1, 2}, 3);
    rp_lower_set_int(l, RP_ATTR_INDEX_VECTOR_DIM, 3);
    rp_lower_set_ints(l, RP_ATTR_SLICE_SIZES, (int64_t[]){1, 1, 1, image->dims[3]}, 4);
    return RP_OK;
}

/* a + (b - a) * part */
static struct rp_lower_value between(struct rp_lower *l, const struct rp_lower_value *a,
                                     const struct rp_lower_value *b,
                                     const struct rp_lower_value *part)
{
    struct rp_lower_value t = rp_lower_binary(l, RP_OP_SUBTRACT, b, a);

    t = rp_lower_binary(l, RP_OP_MULTIPLY, &t, part);
    return rp_lower_binary(l, RP_OP_ADD, a, &t);
}

/* (images, boxes, the image of each, size): lines outside of the image have one value. */
RP_LOWER(crop_and_resize)
{
    static const int64_t maps[2][2] = {{0, 1}, {0, 2}};
    const struct rp_lower_value *boxes = &in[1], *which = &in[2];
    bool nearest = rp_lower_attr_is(node, "method", "nearest");
    struct rp_lower_value low[2], high[2], part[2], inside = {0};

    RP_TRY(rp_lower_need_ints(l, node, &in[3], "crop size"));
    if (in->rank != 4 || boxes->rank != 2 || boxes->dims[1] != 4 || which->rank != 1 ||
        which->dims[0] != boxes->dims[0] || in[3].nints != 2 || boxes->elem != RP_ELEM_F32)
        return rp_lower_misfit(l, node, "the boxes do not match the images");
    int64_t dims[] = {boxes->dims[0], in[3].ints[0], in[3].ints[1], in->dims[3]};
    for (int64_t k = 0; k < 2; k++) {
        int64_t lines = in->dims[1 + k];

        if (in[3].ints[k] < 1 || lines < 1)
            return rp_lower_misfit(l, node, "the size is too small");
        struct rp_lower_value at = crop_lines(l, boxes, k, in[3].ints[k], lines);
        struct rp_lower_value zero = rp_lower_fill(l, 0, &at);
        struct rp_lower_value last = rp_lower_fill(l, (double)(lines - 1), &at);
        low[k] = rp_lower_unary(l, nearest ? RP_OP_ROUND_NEAREST_AFZ : RP_OP_FLOOR, &at);
        high[k] = rp_lower_unary(l, RP_OP_CEIL, &at);
        part[k] = rp_lower_binary(l, RP_OP_SUBTRACT, &at, &low[k]);
        part[k] = rp_lower_spread(l, &part[k], maps[k], dims, 4);
        zero = rp_lower_compare(l, "GE", &at, &zero);
        last = rp_lower_compare(l, "LE", &at, &last);
        last = rp_lower_binary(l, RP_OP_AND, &zero, &last);
        last = rp_lower_spread(l, &last, maps[k], dims, 4);
        inside = k ? rp_lower_binary(l, RP_OP_AND, &inside, &last) : last;
    }
    struct rp_lower_value image = rp_lower_convert(l, in, RP_ELEM_F32), a, b;
    RP_TRY(pick_pixels(l, node, &image, which, &low[0], &low[1], &a));
    if (!nearest) {
        RP_TRY(pick_pixels(l, node, &image, which, &low[0], &high[1], &b));
        struct rp_lower_value top = between(l, &a, &b, &part[1]);
        RP_TRY(pick_pixels(l, node, &image, which, &high[0], &low[1], &a));
        RP_TRY(pick_pixels(l, node, &image, which, &high[0], &high[1], &b));
        b = between(l, &a, &b, &part[1]);
        a = between(l, &top, &b, &part[0]);
    }
    b = rp_lower_fill(l, (double)rp_lower_attr_float(node, "extrapolation_value", 0), &a);
    *out = rp_lower_select(l, &inside, &a, &b);
    return RP_OK;
}

/* ---- matrices ---- */

/* Returns the positions along one of the last two dimensions. */
static struct rp_lower_value places_along(struct rp_lower *l, const struct rp_lower_value *like,
                                          size_t from_end)
{
    struct rp_lower_value v = rp_lower_like(l, RP_ELEM_S32, like->dims, like->rank);

    rp_lower_begin(l, &v, RP_OP_IOTA);
    rp_lower_set_int(l, RP_ATTR_IOTA_DIMENSION, like->rank - from_end);
    return v;
}

/* The lower triangle; zeros above it. */
RP_LOWER(cholesky)
{
    if (in->rank < 2 || in->dims[in->rank - 1] != in->dims[in->rank - 2])
        return rp_lower_misfit(l, node, "the input is not a square matrix");
    struct rp_lower_value whole = rp_lower_like(l, in->elem, in->dims, in->rank);
    rp_lower_begin(l, &whole, RP_OP_CHOLESKY);
    rp_lower_operand(l, in);
    rp_lower_set(l, rp_attr_flag(RP_ATTR_LOWER, true));
    struct rp_lower_value row = places_along(l, in, 2);
    struct rp_lower_value column = places_along(l, in, 1);
    struct rp_lower_value below = rp_lower_compare(l, "GE", &row, &column);
    struct rp_lower_value zero = rp_lower_fill(l, 0, in);
    *out = rp_lower_select(l, &below, &whole, &zero);
    return RP_OK;
}

/* Sets the main diagonal of new matrices; other diagonals are refused. */
RP_LOWER(matrix_diag)
{
    int64_t dims[RP_TF_RANK], map[RP_TF_RANK];
    size_t n = in->rank;

    for (size_t i = 1; i < 4 && i < nin; i++) {
        RP_TRY(rp_lower_need_ints(l, node, &in[i], i == 1 ? "diagonal" : "size"));
        if (in[i].nints != 1 || in[i].ints[0] != (i == 1 ? 0 : in[i].ints[0]) ||
            (i > 1 && in[i].ints[0] >= 0 && in[i].ints[0] != in->dims[n ? n - 1 : 0]))
            return rp_lower_refuse(l, node, "only the main diagonal of a square is supported");
    }
    if (!n || n == RP_TF_RANK)
        return rp_lower_misfit(l, node, "the input has too few or too many dimensions");
    memcpy(dims, in->dims, n * sizeof *dims);
    dims[n] = dims[n - 1];
    for (size_t i = 0; i < n; i++)
        map[i] = (int64_t)i;
    struct rp_lower_value wide = rp_lower_spread(l, in, map, dims, n + 1);
    struct rp_lower_value row = places_along(l, &wide, 2);
    struct rp_lower_value column = places_along(l, &wide, 1);
    struct rp_lower_value on = rp_lower_compare(l, "EQ", &row, &column);
    struct rp_lower_value rest =
        nin > 4 ? rp_lower_broadcast(l, &in[4], dims, n + 1) : rp_lower_fill(l, 0, &wide);
    *out = rp_lower_select(l, &on, &wide, &rest);
    return RP_OK;
}

/* ---- frequencies ---- */

/* Cuts the last n dimensions to these lengths. */
static struct rp_lower_value cut_to(struct rp_lower *l, const struct rp_lower_value *in,
                                    const int64_t *length, size_t n)
{
    int64_t dims[RP_TF_RANK], padding[3 * RP_TF_RANK] = {0};

    memcpy(dims, in->dims, sizeof dims);
    for (size_t i = 0; i < n; i++) {
        size_t at = in->rank - n + i;

        padding[3 * at + 1] = length[i] - dims[at];
        dims[at] = length[i];
    }
    if (!memcmp(dims, in->dims, in->rank * sizeof *dims))
        return *in;
    struct rp_lower_value zero = rp_lower_scalar(l, in->elem, 0);
    struct rp_lower_value v = rp_lower_like(l, in->elem, dims, in->rank);
    rp_lower_begin(l, &v, RP_OP_PAD);
    rp_lower_operand(l, in);
    rp_lower_operand(l, &zero);
    rp_lower_set_padding(l, padding, in->rank);
    return v;
}

/* FFT to IFFT3D over the last dimensions; RFFT and IRFFT of a given length. */
RP_LOWER(fft)
{
    bool real = memmem(node->op.at, node->op.n, "RFFT", 4) != NULL, back = node->op.at[0] == 'I';
    size_t n = node->op.at[node->op.n - 1] == 'D' ? (size_t)(node->op.at[node->op.n - 2] - '0') : 1;
    int64_t length[3], dims[RP_TF_RANK];
    struct rp_lower_value t = *in;
    unsigned elem = in->elem;

    if (n > 3 || in->rank < n)
        return rp_lower_misfit(l, node, "the input has too few dimensions");
    memcpy(dims, in->dims, sizeof dims);
    memcpy(length, in->dims + in->rank - n, n * sizeof *length);
    if (real) {
        RP_TRY(rp_lower_need_ints(l, node, &in[1], "length"));
        if (in[1].nints != n)
            return rp_lower_misfit(l, node, "the lengths do not match the input");
        for (size_t i = 0; i < n; i++)
            if (in[1].ints[i] < 1 ||
                (back && i + 1 == n ? in[1].ints[i] / 2 + 1 : in[1].ints[i]) > length[i])
                return rp_lower_misfit(l, node, "a length that the input has not");
        memcpy(length, in[1].ints, n * sizeof *length);
        if (back)
            length[n - 1] = length[n - 1] / 2 + 1;
        t = cut_to(l, in, length, n);
        memcpy(dims, t.dims, sizeof dims);
        length[n - 1] = in[1].ints[n - 1];
        dims[in->rank - 1] = back ? length[n - 1] : length[n - 1] / 2 + 1;
        elem = back                  ? elem == RP_ELEM_C128 ? RP_ELEM_F64 : RP_ELEM_F32
               : elem == RP_ELEM_F64 ? RP_ELEM_C128
                                     : RP_ELEM_C64;
    }
    *out = rp_lower_like(l, elem, dims, in->rank);
    rp_lower_begin(l, out, RP_OP_FFT);
    rp_lower_operand(l, &t);
    rp_lower_set(l, rp_attr_word(RP_ATTR_FFT_TYPE, real   ? back ? "IRFFT" : "RFFT"
                                                   : back ? "IFFT"
                                                          : "FFT"));
    rp_lower_set_ints(l, RP_ATTR_FFT_LENGTH, length, n);
    return RP_OK;
}

/* ---- elements ---- */

/* Reads the same bits as another type; several small elements make one more dimension. */
RP_LOWER(bitcast)
{
    unsigned to = rp_lower_attr_elem(node, "type");
    int64_t dims[RP_TF_RANK], from_bits = rp_elem_bits(in->elem), to_bits = rp_elem_bits(to);
    size_t rank = in->rank;

    if (!from_bits || !to_bits || rank == RP_TF_RANK)
        return rp_lower_refuse(l, node, "unsupported types");
    memcpy(dims, in->dims, sizeof dims);
    if (from_bits > to_bits)
        dims[rank++] = from_bits / to_bits;
    else if (from_bits < to_bits && (!rank || dims[--rank] != to_bits / from_bits))
        return rp_lower_misfit(l, node, "the last dimension is not an element of the new type");
    *out = rp_lower_like(l, to, dims, rank);
    rp_lower_begin(l, out, RP_OP_BITCAST_CONVERT);
    rp_lower_operand(l, in);
    return RP_OK;
}

/* Evaluates a polynomial by Horner's rule. */
static struct rp_lower_value polynomial(struct rp_lower *l, const struct rp_lower_value *x,
                                        const double *c, size_t n)
{
    struct rp_lower_value p = rp_lower_fill(l, c[0], x);

    for (size_t i = 1; i < n; i++) {
        struct rp_lower_value next = rp_lower_fill(l, c[i], x);
        p = rp_lower_binary(l, RP_OP_MULTIPLY, &p, x);
        p = rp_lower_binary(l, RP_OP_ADD, &p, &next);
    }
    return p;
}

/* Giles' approximation of the inverse error function in f32, the same as in XLA. */
RP_LOWER(erfinv)
{
    static const double near[] = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                  -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                  -0.00417768164,  0.246640727,    1.50140941},
                        far[] = {-0.000200214257, 0.000100950558, 0.00134934322,
                                 -0.00367342844,  0.00573950773,  -0.0076224613,
                                 0.00943887047,   1.00167406,     2.83297682};

    if (in->elem == RP_ELEM_F64)
        return rp_lower_refuse(l, node, "f64 is not supported");
    struct rp_lower_value x = rp_lower_convert(l, in, RP_ELEM_F32);
    struct rp_lower_value t = rp_lower_binary(l, RP_OP_MULTIPLY, &x, &x);
    t = rp_lower_unary(l, RP_OP_NEGATE, &t);
    struct rp_lower_value w = rp_lower_unary(l, RP_OP_LOG1P, &t);
    w = rp_lower_unary(l, RP_OP_NEGATE, &w);
    t = rp_lower_fill(l, 5, &w);
    struct rp_lower_value small = rp_lower_compare(l, "LT", &w, &t);
    t = rp_lower_fill(l, 2.5, &w);
    t = rp_lower_binary(l, RP_OP_SUBTRACT, &w, &t);
    struct rp_lower_value low = polynomial(l, &t, near, sizeof near / sizeof *near);
    t = rp_lower_fill(l, 3, &w);
    w = rp_lower_unary(l, RP_OP_SQRT, &w);
    t = rp_lower_binary(l, RP_OP_SUBTRACT, &w, &t);
    struct rp_lower_value high = polynomial(l, &t, far, sizeof far / sizeof *far);
    t = rp_lower_select(l, &small, &low, &high);
    t = rp_lower_binary(l, RP_OP_MULTIPLY, &t, &x);
    struct rp_lower_value one = rp_lower_fill(l, 1, &x);
    struct rp_lower_value end = rp_lower_unary(l, RP_OP_ABS, &x);
    struct rp_lower_value hit = rp_lower_compare(l, "EQ", &end, &one);
    struct rp_lower_value all = rp_lower_fill(l, INFINITY, &x);
    all = rp_lower_binary(l, RP_OP_MULTIPLY, &x, &all);
    t = rp_lower_select(l, &hit, &all, &t);
    *out = rp_lower_convert(l, &t, in->elem);
    return RP_OK;
}

/* Quantizes and converts back: bounds are moved so that zero is one of the steps. */
RP_LOWER(fake_quant)
{
    double most = ldexp(1, (int)rp_lower_attr_int(node, "num_bits", 8)) - 1,
           least = rp_lower_attr_bool(node, "narrow_range");

    if (in->elem != RP_ELEM_F32 || most < 3 || most > 65535 ||
        (nin > 2 && (in[1].rank > 1 || in[1].rank != in[2].rank ||
                     (in[1].rank && (!in->rank || in[1].dims[0] != in->dims[in->rank - 1])))))
        return rp_lower_misfit(l, node, "the range does not match the input");
    struct rp_lower_value low =
        nin > 2 ? in[1] : rp_lower_scalar(l, RP_ELEM_F32, rp_lower_attr_float(node, "min", -6));
    struct rp_lower_value high =
        nin > 2 ? in[2] : rp_lower_scalar(l, RP_ELEM_F32, rp_lower_attr_float(node, "max", 6));
    struct rp_lower_value bottom = rp_lower_fill(l, least, &low);
    struct rp_lower_value top = rp_lower_fill(l, most, &low);
    struct rp_lower_value scale = rp_lower_binary(l, RP_OP_SUBTRACT, &high, &low);
    struct rp_lower_value t = rp_lower_fill(l, most - least, &low);
    scale = rp_lower_binary(l, RP_OP_DIVIDE, &scale, &t);
    struct rp_lower_value zero = rp_lower_binary(l, RP_OP_DIVIDE, &low, &scale);
    zero = rp_lower_binary(l, RP_OP_SUBTRACT, &bottom, &zero);
    zero = rp_lower_unary(l, RP_OP_ROUND_NEAREST_AFZ, &zero);
    zero = rp_lower_binary(l, RP_OP_MAXIMUM, &zero, &bottom);
    zero = rp_lower_binary(l, RP_OP_MINIMUM, &zero, &top);
    low = rp_lower_binary(l, RP_OP_SUBTRACT, &bottom, &zero);
    low = rp_lower_binary(l, RP_OP_MULTIPLY, &low, &scale);
    high = rp_lower_binary(l, RP_OP_SUBTRACT, &top, &zero);
    high = rp_lower_binary(l, RP_OP_MULTIPLY, &high, &scale);
    low = rp_lower_broadcast(l, &low, in->dims, in->rank);
    high = rp_lower_broadcast(l, &high, in->dims, in->rank);
    scale = rp_lower_broadcast(l, &scale, in->dims, in->rank);
    t = rp_lower_binary(l, RP_OP_MAXIMUM, in, &low);
    t = rp_lower_binary(l, RP_OP_MINIMUM, &t, &high);
    t = rp_lower_binary(l, RP_OP_SUBTRACT, &t, &low);
    struct rp_lower_value half = rp_lower_fill(l, 1, &t);
    half = rp_lower_binary(l, RP_OP_DIVIDE, &half, &scale);
    t = rp_lower_binary(l, RP_OP_MULTIPLY, &t, &half);
    half = rp_lower_fill(l, 0.5, &t);
    t = rp_lower_binary(l, RP_OP_ADD, &t, &half);
    t = rp_lower_unary(l, RP_OP_FLOOR, &t);
    t = rp_lower_binary(l, RP_OP_MULTIPLY, &t, &scale);
    *out = rp_lower_binary(l, RP_OP_ADD, &t, &low);
    return RP_OK;
}

const struct rp_lower_row rp_lower_spectral[] = {
    {"SpaceToDepth", lower_blocks, RP_LOWER_NO_OPCODE, 1},
    {"DepthToSpace", lower_blocks, RP_LOWER_NO_OPCODE, 1},
    {"ResizeNearestNeighbor", lower_resize, RP_LOWER_NO_OPCODE, 2},
    {"ResizeBilinear", lower_resize, RP_LOWER_NO_OPCODE, 2},
    {"ResizeBicubic", lower_resize, RP_LOWER_NO_OPCODE, 2},
    {"ResizeArea", lower_resize, RP_LOWER_NO_OPCODE, 2},
    {"ResizeNearestNeighborGrad", lower_resize, RP_LOWER_NO_OPCODE, 2},
    {"ResizeBilinearGrad", lower_resize, RP_LOWER_NO_OPCODE, 2},
    {"ResizeBicubicGrad", lower_resize, RP_LOWER_NO_OPCODE, 2},
    {"CropAndResize", lower_crop_and_resize, RP_LOWER_NO_OPCODE, 4},
    {"Cholesky", lower_cholesky, RP_LOWER_NO_OPCODE, 1},
    {"MatrixDiag", lower_matrix_diag, RP_LOWER_NO_OPCODE, 1},
    {"MatrixDiagV3", lower_matrix_diag, RP_LOWER_NO_OPCODE, 5},
    {"FFT", lower_fft, RP_LOWER_NO_OPCODE, 1},
    {"FFT2D", lower_fft, RP_LOWER_NO_OPCODE, 1},
    {"FFT3D", lower_fft, RP_LOWER_NO_OPCODE, 1},
    {"IFFT", lower_fft, RP_LOWER_NO_OPCODE, 1},
    {"IFFT2D", lower_fft, RP_LOWER_NO_OPCODE, 1},
    {"IFFT3D", lower_fft, RP_LOWER_NO_OPCODE, 1},
    {"RFFT", lower_fft, RP_LOWER_NO_OPCODE, 2},
    {"RFFT3D", lower_fft, RP_LOWER_NO_OPCODE, 2},
    {"IRFFT3D", lower_fft, RP_LOWER_NO_OPCODE, 2},
    {"RFFT2D", lower_fft, RP_LOWER_NO_OPCODE, 2},
    {"IRFFT", lower_fft, RP_LOWER_NO_OPCODE, 2},
    {"IRFFT2D", lower_fft, RP_LOWER_NO_OPCODE, 2},
    {"Bitcast", lower_bitcast, RP_LOWER_NO_OPCODE, 1},
    {"Erfinv", lower_erfinv, RP_LOWER_NO_OPCODE, 1},
    {"FakeQuantWithMinMaxArgs", lower_fake_quant, RP_LOWER_NO_OPCODE, 1},
    {"FakeQuantWithMinMaxVars", lower_fake_quant, RP_LOWER_NO_OPCODE, 3},
    {"FakeQuantWithMinMaxVarsPerChannel", lower_fake_quant, RP_LOWER_NO_OPCODE, 3},
    {NULL, NULL, RP_LOWER_NO_OPCODE, 0}};
