/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads TensorProto: a type, a shape, and the elements as bytes or as one of a dozen typed lists.
 * Bytes are not copied; a list is converted to bytes in the arena, which takes the size of the
 * tensor.
 */
#include "formats/tensorflow/tensor.h"

#include "abi/proto/tensorflow.h"
#include "abi/tensorflow.h"
#include "program/literal.h"

#include <string.h>

#define DEPTH 16

unsigned rp_tf_elem_of(uint64_t type)
{
    switch (type) {
#define ELEM_CASE(id, number) \
    case number:              \
        return RP_ELEM_##id;
        RP_TF_TYPES(ELEM_CASE)
#undef ELEM_CASE
    default:
        return RP_ELEM_INVALID;
    }
}

static enum rp_code read_dim(struct rp_proto_cursor c, int64_t *size, struct rp_err *err)
{
    struct rp_proto_item item;

    *size = 0;
    while (rp_proto_next(&c, &item))
        if (item.number == RP_TF_DIM_SIZE && item.wire == RP_WIRE_VARINT)
            *size = (int64_t)item.value;
    return rp_proto_finish(&c, err);
}

enum rp_code rp_tf_shape_decode(struct rp_proto_cursor c, struct rp_tf_value *out,
                                struct rp_err *err)
{
    struct rp_proto_item item;

    out->rank = 0;
    while (rp_proto_next(&c, &item)) {
        if (item.number == RP_TF_SHAPE_UNKNOWN_RANK && item.wire == RP_WIRE_VARINT && item.value)
            return rp_err_set(err, RP_UNSUPPORTED, "unknown number of dimensions");
        if (item.number != RP_TF_SHAPE_DIM || item.wire != RP_WIRE_BYTES)
            continue;
        if (out->rank == RP_TF_RANK)
            return rp_err_set(err, RP_LIMIT, "more than %d dimensions", RP_TF_RANK);
        RP_TRY(read_dim(rp_proto_enter(&c, &item), &out->dims[out->rank], err));
        if (out->dims[out->rank] < 0)
            return rp_err_set(err, RP_UNSUPPORTED, "unknown dimension %u", out->rank);
        out->rank++;
    }
    return rp_proto_finish(&c, err);
}

/* How each list stores an element. */
enum list_form { LIST_NONE, LIST_VARINT, LIST_FIXED32, LIST_FIXED64, LIST_BYTES };
static const struct list_field {
    enum list_form form;
    unsigned parts; /* list entries for each element: 2 for complex numbers */
} list_fields[] = {[RP_TF_TENSOR_FLOAT_VAL] = {LIST_FIXED32, 1},
                   [RP_TF_TENSOR_DOUBLE_VAL] = {LIST_FIXED64, 1},
                   [RP_TF_TENSOR_INT_VAL] = {LIST_VARINT, 1},
                   [RP_TF_TENSOR_SCOMPLEX_VAL] = {LIST_FIXED32, 2},
                   [RP_TF_TENSOR_INT64_VAL] = {LIST_VARINT, 1},
                   [RP_TF_TENSOR_BOOL_VAL] = {LIST_VARINT, 1},
                   [RP_TF_TENSOR_DCOMPLEX_VAL] = {LIST_FIXED64, 2},
                   [RP_TF_TENSOR_HALF_VAL] = {LIST_VARINT, 1},
                   [RP_TF_TENSOR_UINT32_VAL] = {LIST_VARINT, 1},
                   [RP_TF_TENSOR_UINT64_VAL] = {LIST_VARINT, 1},
                   [RP_TF_TENSOR_FLOAT8_VAL] = {LIST_BYTES, 1}};

static const struct list_field *list_of(uint32_t number)
{
    return number < sizeof list_fields / sizeof *list_fields && list_fields[number].parts
               ? &list_fields[number]
               : NULL;
}

/* Destination of the entries of a list. */
struct filling {
    uint8_t *out;
    size_t n, unit; /* number of entries that fit, and bytes of each */
    size_t got;
};

static void put_entry(struct filling *f, uint64_t bits)
{
    if (f->got < f->n)
        memcpy(f->out + f->got * f->unit, &bits, f->unit < 8 ? f->unit : 8);
    f->got++;
}

static void put_entries(struct filling *f, enum list_form form, const struct rp_proto_cursor *outer,
                        const struct rp_proto_item *item, struct rp_proto_cursor *c)
{
    uint64_t value;
    uint32_t low;

    *c = rp_proto_enter(outer, item);
    if (item->wire != RP_WIRE_BYTES) {
        put_entry(f, item->value);
        *c = rp_proto_cursor("", 0, 0, 1);
    } else if (form == LIST_VARINT) {
        while (rp_proto_packed_varint(c, &value))
            put_entry(f, value);
    } else if (form == LIST_FIXED32) {
        while (rp_proto_packed_fixed32(c, &low))
            put_entry(f, low);
    } else if (form == LIST_FIXED64) {
        while (rp_proto_packed_fixed64(c, &value))
            put_entry(f, value);
    } else {
        for (size_t i = 0; i < item->bytes.n; i++)
            put_entry(f, item->bytes.at[i]);
        *c = rp_proto_cursor("", 0, 0, 1);
    }
}

static enum rp_code from_list(struct rp_proto_cursor c, struct rp_tf_value *out, uint8_t *bytes,
                              struct rp_err *err)
{
    size_t unit = rp_literal_unit(out->elem);
    struct filling f = {.out = bytes, .n = out->n, .unit = unit};
    struct rp_proto_item item;
    struct rp_proto_cursor inner;
    unsigned parts = 1;

    while (rp_proto_next(&c, &item)) {
        const struct list_field *field = list_of(item.number);

        if (!field)
            continue;
        parts = field->parts;
        if ((parts == 2) != (out->elem == RP_ELEM_C64 || out->elem == RP_ELEM_C128))
            return rp_err_set(err, RP_FORMAT, "values are in the list of another type");
        f.unit = unit / parts;
        f.n = out->n * parts;
        put_entries(&f, field->form, &c, &item, &inner);
        RP_TRY(rp_proto_finish(&inner, err));
    }
    if (f.got > f.n)
        return rp_err_set(err, RP_FORMAT, "%zu values for %zu elements", f.got, f.n);

    /* Missing elements are copies of the last one, or zeros. */
    size_t element = f.unit * parts, have = f.got * f.unit / element, all = f.n / parts;
    for (size_t i = have; have && i < all; i++)
        memcpy(f.out + i * element, f.out + (have - 1) * element, element);
    return rp_proto_finish(&c, err);
}

/* Reads type, shape, and the bytes if they are given as such. */
static enum rp_code read_head(struct rp_proto_cursor c, struct rp_tf_value *out,
                              struct rp_bytes *content, uint64_t *type, struct rp_err *err)
{
    struct rp_proto_item item;

    *type = 0;
    while (rp_proto_next(&c, &item)) {
        if (item.number == RP_TF_TENSOR_DTYPE && item.wire == RP_WIRE_VARINT)
            *type = item.value;
        else if (item.number == RP_TF_TENSOR_TENSOR_SHAPE && item.wire == RP_WIRE_BYTES)
            RP_TRY(rp_tf_shape_decode(rp_proto_enter(&c, &item), out, err));
        else if (item.number == RP_TF_TENSOR_TENSOR_CONTENT && item.wire == RP_WIRE_BYTES)
            *content = item.bytes;
    }
    return rp_proto_finish(&c, err);
}

/* Reads the head, and computes how many elements there are, and whether so much memory may be
   allocated. */
static enum rp_code measure(struct rp_bytes message, uint64_t offset,
                            const struct rp_limits *limits, struct rp_tf_value *out,
                            struct rp_err *err)
{
    uint64_t type, most = limits ? limits->held_bytes : RP_LIMITS_DEFAULT.held_bytes;
    struct rp_bytes content = {0};

    memset(out, 0, sizeof *out);
    RP_TRY(read_head(rp_proto_cursor(message.at, message.n, offset, DEPTH), out, &content, &type,
                     err));
    out->elem = rp_tf_elem_of(type);
    if (out->elem == RP_ELEM_INVALID)
        return rp_err_set(err, RP_UNSUPPORTED, "TensorFlow type %llu is not numeric",
                          (unsigned long long)type);
    size_t unit = rp_literal_unit(out->elem);
    out->n = 1;
    for (uint32_t i = 0; i < out->rank; i++) {
        if (out->dims[i] && out->n > most / unit / (uint64_t)out->dims[i])
            return rp_err_set(err, RP_LIMIT, "larger than %llu bytes", (unsigned long long)most);
        out->n *= (size_t)out->dims[i];
    }
    out->nbytes = out->n * unit;
    if (content.n && content.n != out->nbytes)
        return rp_err_set_at(err, RP_FORMAT, offset, "%zu bytes of content instead of %zu",
                             content.n, out->nbytes);
    out->data = content.n ? content.at : NULL;
    return RP_OK;
}

enum rp_code rp_tf_value_measure(struct rp_bytes message, struct rp_tf_value *out, uint32_t *list,
                                 struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_cursor(message.at, message.n, 0, DEPTH);
    struct rp_proto_item item;
    size_t bytes = 0;

    *list = 0;
    RP_TRY(measure(message, 0, NULL, out, err));
    while (!out->data && rp_proto_next(&c, &item))
        if (list_of(item.number)) {
            *list = item.number;
            bytes += item.wire == RP_WIRE_BYTES ? item.bytes.n : 1;
        }
    if (bytes >= out->n) /* an entry has at least a byte */
        *list = 0;
    return out->data ? RP_OK : rp_proto_finish(&c, err);
}

enum rp_code rp_tf_value_decode(struct rp_bytes message, uint64_t offset,
                                const struct rp_limits *limits, struct rp_arena *arena,
                                struct rp_tf_value *out, struct rp_err *err)
{
    RP_TRY(measure(message, offset, limits, out, err));
    if (out->data)
        return RP_OK;
    uint8_t *bytes = rp_arena_calloc(arena, out->nbytes + 1, 1, 64);
    RP_TRY(rp_err_need(bytes, err, "reading a tensor"));
    out->data = bytes;
    return from_list(rp_proto_cursor(message.at, message.n, offset, DEPTH), out, bytes, err);
}
