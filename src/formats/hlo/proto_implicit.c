/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What XLA's printer says though a protobuf leaves it out, because it is zero, empty or in several
 * fields: so that text and protobuf of a module are one, and XLA's parser takes what is made of a
 * protobuf. And the other direction for what is several fields.
 */
#include "formats/hlo/proto_put.h"

#include <string.h>

static const struct {
    uint16_t code, key;
    const char *text;
} said[] = {
    {RP_OP_BATCH_NORM_GRAD, RP_ATTR_EPSILON, "0"},
    {RP_OP_BATCH_NORM_GRAD, RP_ATTR_FEATURE_INDEX, "0"},
    {RP_OP_BATCH_NORM_INFERENCE, RP_ATTR_EPSILON, "0"},
    {RP_OP_BATCH_NORM_INFERENCE, RP_ATTR_FEATURE_INDEX, "0"},
    {RP_OP_BATCH_NORM_TRAINING, RP_ATTR_EPSILON, "0"},
    {RP_OP_BATCH_NORM_TRAINING, RP_ATTR_FEATURE_INDEX, "0"},
    {RP_OP_BROADCAST, RP_ATTR_DIMENSIONS, "{}"},
    {RP_OP_DOT, RP_ATTR_LHS_CONTRACTING_DIMS, "{}"},
    {RP_OP_DOT, RP_ATTR_RHS_CONTRACTING_DIMS, "{}"},
    {RP_OP_FFT, RP_ATTR_FFT_TYPE, "FFT"},
    {RP_OP_GATHER, RP_ATTR_COLLAPSED_SLICE_DIMS, "{}"},
    {RP_OP_GATHER, RP_ATTR_OFFSET_DIMS, "{}"},
    {RP_OP_GATHER, RP_ATTR_SLICE_SIZES, "{}"},
    {RP_OP_GATHER, RP_ATTR_START_INDEX_MAP, "{}"},
    {RP_OP_REDUCE, RP_ATTR_DIMENSIONS, "{}"},
    {RP_OP_REDUCE_PRECISION, RP_ATTR_EXPONENT_BITS, "0"},
    {RP_OP_REDUCE_PRECISION, RP_ATTR_MANTISSA_BITS, "0"},
    {RP_OP_RNG_BIT_GENERATOR, RP_ATTR_ALGORITHM, "rng_default"},
    {RP_OP_SCATTER, RP_ATTR_INSERTED_WINDOW_DIMS, "{}"},
    {RP_OP_SCATTER, RP_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, "{}"},
    {RP_OP_SCATTER, RP_ATTR_UPDATE_WINDOW_DIMS, "{}"},
    {RP_OP_TRANSPOSE, RP_ATTR_DIMENSIONS, "{}"},
};

/* Most operations are none of these. */
static const bool any[RP_OP_COUNT] = {
    [RP_OP_BATCH_NORM_GRAD] = true,
    [RP_OP_BATCH_NORM_INFERENCE] = true,
    [RP_OP_BATCH_NORM_TRAINING] = true,
    [RP_OP_BROADCAST] = true,
    [RP_OP_DOT] = true,
    [RP_OP_FFT] = true,
    [RP_OP_GATHER] = true,
    [RP_OP_REDUCE] = true,
    [RP_OP_REDUCE_PRECISION] = true,
    [RP_OP_RNG_BIT_GENERATOR] = true,
    [RP_OP_SCATTER] = true,
    [RP_OP_TRANSPOSE] = true,
};

enum rp_code hlo_proto_said(struct hlo_proto *r)
{
    uint16_t code = r->p->code.at[r->op];

    if (!any[code])
        return RP_OK;
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (said[i].code == code && !rp_op_attr(r->p, r->op, said[i].key))
            RP_TRY(
                rp_program_add_attr(r->p, said[i].key, said[i].text, strlen(said[i].text), r->err));
    return RP_OK;
}

/* ---- the layouts that a custom call wants of its operands ---- */

static enum rp_code put_shape_text(struct hlo_proto *r, uint32_t shape)
{
    size_t n = rp_shape_text(r->p, shape, true, NULL, 0), from = r->text.n;

    RP_TRY(rp_vec_reserve(&r->text, n + 1, r->err));
    rp_shape_text(r->p, shape, true, r->text.at + from, n + 1);
    r->text.n = from + n;
    return RP_OK;
}

/* "{f32[4]{0}, s32[]}" of field 57, one a shape. */
enum rp_code hlo_proto_constraints(struct hlo_proto *r, struct rp_bytes bytes, uint64_t offset)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, offset, r->limits.depth);
    struct rp_proto_item it;
    uint32_t shape;

    RP_TRY(hlo_put_word(r, "{"));
    while (rp_proto_next(&c, &it)) {
        if (RP_PROTO_KEY(it.number, it.wire) != RP_PROTO_KEY(57, RP_WIRE_BYTES))
            continue;
        RP_TRY(hlo_proto_shape(r, it.bytes, rp_proto_offset(&c, it.bytes.at), 0, &shape));
        if (r->text.n > 1)
            RP_TRY(hlo_put_word(r, ", "));
        RP_TRY(put_shape_text(r, shape));
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    RP_TRY(hlo_put_word(r, "}"));
    return hlo_put_attr(r, RP_ATTR_OPERAND_LAYOUT_CONSTRAINTS, false);
}

/* The layout in "f32[2,3]{0,1}" into `out`, behind it `*at`; false for anything else. */
static bool layout_of(const char **at, const char *end, char *out, size_t cap)
{
    const char *s = *at, *close = memchr(s, ']', (size_t)(end - s));
    size_t n;

    if (!close || *s == '(')
        return false;
    *out = '\0';
    s = close + 1;
    if (s < end && *s == '{') {
        close = memchr(s, '}', (size_t)(end - s));
        n = close ? (size_t)(close + 1 - s) : cap;
        if (n >= cap)
            return false;
        memcpy(out, s, n);
        out[n] = '\0';
        s += n;
    }
    *at = s;
    return true;
}

bool hlo_put_constraints(const struct hlo_put *put, uint32_t op, const struct rp_attr *attr)
{
    struct rp_ids operands = rp_op_operands(put->p, op);
    const char *at = attr->at + 1, *end = attr->at + attr->n;
    char layout[256];

    if (put->p->code.at[op] != RP_OP_CUSTOM_CALL || attr->n < 2 || attr->at[0] != '{')
        return false;
    rp_proto_put_varint(put->w, 56, 1);
    for (uint32_t i = 0; i < operands.n; i++) {
        while (at < end && (*at == ',' || *at == ' '))
            at++;
        if (!layout_of(&at, end, layout, sizeof layout))
            return false;
        hlo_put_laid_shape(put, 57, put->p->shape.at[operands.at[i]], layout);
    }
    return at + 1 == end;
}
