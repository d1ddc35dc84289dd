/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads three kinds of files with values:
 *
 *   HloSnapshot               { hlo 1 { module 1 }, arguments 2*, result 3 }        LiteralProtos
 *   HloUnoptimizedSnapshot    { module 1, partitions 2* { arguments 1* } }          LiteralProtos
 *   the same, framed          length, { module 1, partitions 2* { descriptors 2* } }, raw literals
 *
 * A raw literal is: length of a ShapeProto (8 bytes), the ShapeProto, then the leaves of the shape
 * depth first, each in the order of its layout, small types packed; a leaf with dynamic dimensions
 * has its sizes (int32 each) before it. Large arrays are not copied: they point into the file.
 */
#include "exec/data/snapshot.h"

#include "abi/proto/hlo.h"
#include "io/proto_write.h"
#include "program/literal.h"

#include <string.h>

#define KEY(number, wire) RP_PROTO_KEY(number, RP_WIRE_##wire)
#define MOST_PARTS        65536

/* The part of a shape that values need. */
struct shape {
    unsigned elem;
    size_t rank, nparts, norder, ndynamic;
    int64_t dims[RP_TENSOR_RANK];
    uint32_t order[RP_TENSOR_RANK];
    bool dynamic;
    struct rp_bytes self;
};

struct reader {
    const uint8_t *file;
    bool text; /* the file was converted, so offsets mean nothing to the user */
    struct rp_err *err;
};

static uint64_t snapshot_place(const struct reader *r, const uint8_t *at)
{
    return (uint64_t)(at - r->file);
}

static enum rp_code read_layout(struct reader *r, struct rp_bytes bytes, struct shape *s)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, snapshot_place(r, bytes.at), 8);
    struct rp_proto_item it;
    uint64_t v;

    while (rp_proto_next(&c, &it)) {
        struct rp_proto_cursor list = rp_proto_list(&c, &it);

        while (it.number == RP_HLO_LAYOUT_MINOR_TO_MAJOR && s->norder < RP_TENSOR_RANK &&
               rp_proto_packed_varint(&list, &v))
            s->order[s->norder++] = (uint32_t)v;
    }
    return rp_proto_finish(&c, r->err);
}

static enum rp_code read_shape(struct reader *r, struct rp_bytes bytes, struct shape *s)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, snapshot_place(r, bytes.at), 64);
    struct rp_proto_item it;
    uint64_t v;

    memset(s, 0, sizeof *s);
    s->self = bytes;
    while (rp_proto_next(&c, &it)) {
        struct rp_proto_cursor list = rp_proto_list(&c, &it);

        switch (RP_PROTO_KEY(it.number, it.wire)) {
        case KEY(RP_HLO_SHAPE_ELEMENT_TYPE, VARINT):
            s->elem = (unsigned)(it.value < RP_ELEM_COUNT ? it.value : 0);
            break;
        case KEY(RP_HLO_SHAPE_DIMENSIONS, VARINT):
        case KEY(RP_HLO_SHAPE_DIMENSIONS, BYTES):
            while (rp_proto_packed_varint(&list, &v)) {
                if (s->rank == RP_TENSOR_RANK)
                    return rp_err_set(r->err, RP_LIMIT,
                                      "a recorded array of more than %d dimensions",
                                      RP_TENSOR_RANK);
                s->dims[s->rank++] = (int64_t)v;
            }
            break;
        case KEY(RP_HLO_SHAPE_TUPLE_SHAPES, BYTES):
            s->nparts++;
            break;
        case KEY(RP_HLO_SHAPE_LAYOUT, BYTES):
            RP_TRY(read_layout(r, it.bytes, s));
            break;
        case KEY(RP_HLO_SHAPE_IS_DYNAMIC_DIMENSION, BYTES):
            while (rp_proto_packed_varint(&list, &v))
                s->dynamic |= v != 0;
            break;
        default:
            break;
        }
    }
    return rp_proto_finish(&c, r->err);
}

/* The order, minor to major, or NULL if the array is row-major. */
static const uint32_t *order_of(const struct shape *s)
{
    uint64_t seen = 0;
    bool plain = true;

    if (s->norder != s->rank)
        return NULL;
    for (size_t i = 0; i < s->rank; i++) {
        if (s->order[i] >= s->rank)
            return NULL;
        seen |= UINT64_C(1) << s->order[i];
        plain &= s->order[i] == s->rank - 1 - i;
    }
    return plain || seen != (UINT64_C(1) << s->rank) - 1 ? NULL : s->order;
}

/* Sets the error for literal i of a list that begins at `literal`. */
static enum rp_code snapshot_error(const struct reader *r, enum rp_code code, const char *what,
                                   size_t i, struct rp_bytes literal)
{
    if (code == RP_OK || code == RP_NOMEM)
        return code;
    if (r->text)
        return rp_err_prefix(r->err, code, "recorded %s %zu", what, i);
    return rp_err_prefix(r->err, code, "recorded %s %zu at byte %llu", what, i,
                         (unsigned long long)snapshot_place(r, literal.at));
}

typedef RP_VEC(struct rp_tensor *) tensors;

static enum rp_code push_dim(void *to, struct rp_tensor *t, struct rp_err *err)
{
    tensors *list = to;
    enum rp_code code = rp_vec_push(list, t, err);

    if (code != RP_OK)
        rp_tensor_drop(t);
    return code;
}

/* ---- LiteralProto ---- */

/* Checks that so many bytes can hold the array, before memory is allocated because of a few damaged
   bytes. Elements of under eight bits may share a byte; a varint has at least one. */
static enum rp_code check_room(struct reader *r, const struct shape *s, bool varints,
                               struct rp_bytes data)
{
    bool small = rp_elem_bits(s->elem) < 8;
    size_t n = 1, unit = varints || small ? 1 : (rp_elem_bits(s->elem) + 7) / 8;
    size_t most = small ? data.n <= SIZE_MAX / 8 ? data.n * 8 : SIZE_MAX : data.n / unit;
    bool over = false;

    for (size_t i = 0; i < s->rank; i++)
        over |= s->dims[i] < 0 || __builtin_mul_overflow(n, (size_t)s->dims[i], &n);
    for (size_t i = 0; i < s->rank; i++)
        if (!s->dims[i])
            return RP_OK;
    if (!over && n <= most)
        return RP_OK;
    return rp_err_set(r->err, RP_FORMAT, "%zu bytes are too few for its shape", data.n);
}

/* Collects the values of a literal: its field as the file has it, or joined in `joined` if there
   are several (writers of proto2, and merged messages). */
static enum rp_code gather_fields(struct reader *r, struct rp_bytes literal, uint32_t field,
                                  struct rp_proto_writer *joined, struct rp_bytes *out)
{
    struct rp_proto_cursor c =
        rp_proto_cursor(literal.at, literal.n, snapshot_place(r, literal.at), 64);
    struct rp_proto_item it;
    size_t pieces = 0;

    *out = (struct rp_bytes){literal.at, 0};
    while (rp_proto_next(&c, &it))
        if (it.number == field && it.wire != RP_WIRE_GROUP) {
            if (it.wire == RP_WIRE_BYTES)
                *out = it.bytes;
            pieces += it.wire == RP_WIRE_BYTES ? 1 : 2;
        }
    RP_TRY(rp_proto_finish(&c, r->err));
    if (pieces <= 1)
        return RP_OK;
    c = rp_proto_cursor(literal.at, literal.n, 0, 64);
    while (rp_proto_next(&c, &it))
        if (it.number == field && it.wire == RP_WIRE_BYTES)
            rp_proto_add_bytes(joined, it.bytes.at, it.bytes.n);
        else if (it.number == field && it.wire == RP_WIRE_VARINT)
            rp_proto_add_varint(joined, it.value);
        else if (it.number == field && it.wire == RP_WIRE_FIXED32)
            rp_proto_add_fixed32(joined, (uint32_t)it.value);
        else if (it.number == field && it.wire == RP_WIRE_FIXED64)
            rp_proto_add_fixed64(joined, it.value);
    RP_TRY(rp_proto_written(joined, out, r->err));
    if (!out->n)
        *out = (struct rp_bytes){literal.at, 0};
    return RP_OK;
}

/* Reads varints in the order of the layout. */
static enum rp_code take_varints(struct reader *r, const struct shape *s, struct rp_bytes data,
                                 struct rp_tensor *t)
{
    struct rp_proto_cursor list = rp_proto_cursor(data.at, data.n, 0, 1);
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *plain = NULL;
    size_t i = 0;
    uint64_t v;

    RP_TRY(rp_tensor_new(s->elem, s->dims, s->rank, &plain, r->err));
    while (rp_proto_packed_varint(&list, &v))
        if (i < plain->n)
            rp_tensor_set_integer(plain, i++, (int64_t)v);
        else
            return rp_err_set(r->err, RP_FORMAT, "more than %zu values", plain->n);
    if (i != plain->n)
        return rp_err_set(r->err, RP_FORMAT, "%zu values instead of %zu", i, plain->n);
    return rp_tensor_permute(t, order_of(s), false, plain->data, rp_tensor_bytes(plain), r->err);
}

/* lasting: the data belongs to the file, so arrays can point to it. */
static enum rp_code take_values(struct reader *r, const struct shape *s, struct rp_bytes data,
                                bool varints, bool lasting, void *to)
{
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *borrowed = NULL, *t = NULL;

    RP_TRY(check_room(r, s, varints, data));
    if (lasting && !varints && !order_of(s) && rp_elem_bits(s->elem) >= 8) {
        RP_TRY(rp_tensor_borrow(s->elem, s->dims, s->rank, data.at, &borrowed, r->err));
        if (data.n == rp_tensor_bytes(borrowed))
            return push_dim(to, rp_tensor_keep(borrowed), r->err);
    }
    RP_TRY(rp_tensor_new(s->elem, s->dims, s->rank, &t, r->err));
    RP_TRY(varints ? take_varints(r, s, data, t)
                   : rp_tensor_permute(t, order_of(s), /* old writers packed small types */
                                       data.n != t->n && rp_elem_bits(s->elem) < 8, data.at, data.n,
                                       r->err));
    rp_tensor_tidy(t);
    return push_dim(to, rp_tensor_keep(t), r->err);
}

static enum rp_code literal_leaf(struct reader *r, struct rp_bytes bytes, const struct shape *s,
                                 void *to)
{
    RP_SCOPED(rp_proto_writer_release) struct rp_proto_writer joined = {0};
    struct rp_bytes data;
    bool varints;
    uint32_t field = rp_literal_field(s->elem, &varints);

    if (!field)
        return rp_err_set(r->err, RP_UNSUPPORTED, "element type %s has no values",
                          rp_elem_name(s->elem));

    RP_TRY(gather_fields(r, bytes, field, &joined, &data));
    return take_values(r, s, data, varints, !joined.bytes.n, to);
}

static enum rp_code read_literal(struct reader *r, struct rp_bytes bytes, unsigned depth, void *to)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, snapshot_place(r, bytes.at), 64);
    struct rp_proto_item it;
    struct shape s = {0};

    if (depth > 32)
        return rp_err_set(r->err, RP_LIMIT, "recorded tuples are nested too deep");
    while (rp_proto_next_bytes(&c, RP_HLO_LITERAL_SHAPE, &it))
        RP_TRY(read_shape(r, it.bytes, &s));
    RP_TRY(rp_proto_finish(&c, r->err));
    if (s.elem == RP_ELEM_TOKEN)
        return RP_OK;
    if (s.elem != RP_ELEM_TUPLE)
        return literal_leaf(r, bytes, &s, to);
    c = rp_proto_cursor(bytes.at, bytes.n, snapshot_place(r, bytes.at), 64);
    while (rp_proto_next_bytes(&c, RP_HLO_LITERAL_TUPLE_LITERALS, &it))
        RP_TRY(read_literal(r, it.bytes, depth + 1, to));
    return RP_OK;
}

/* ---- raw literals ---- */

/* Reads one leaf at *at. */
static enum rp_code raw_leaf(struct reader *r, struct shape *s, const uint8_t **at,
                             const uint8_t *end, void *to)
{
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *t = NULL;
    size_t n = 1;

    if (s->dynamic) {
        if ((size_t)(end - *at) < 4 * s->rank)
            return rp_err_set_at(r->err, RP_FORMAT, snapshot_place(r, *at),
                                 "a recorded array is truncated");
        for (size_t k = 0; k < s->rank; k++, *at += 4) {
            int32_t size;

            memcpy(&size, *at, sizeof size);
            if (size < 0 || size > s->dims[k])
                return rp_err_set_at(r->err, RP_FORMAT, snapshot_place(r, *at),
                                     "a recorded array has a dimension above its bound");
        }
    }
    for (size_t k = 0; k < s->rank; k++)
        if (s->dims[k] < 0 || __builtin_mul_overflow(n, (size_t)s->dims[k], &n))
            return rp_err_set(r->err, RP_LIMIT, "a recorded array is too large");
    size_t bytes = n < SIZE_MAX / 32 ? rp_tensor_packed_bytes(s->elem, n, true) : SIZE_MAX;
    if (bytes > (size_t)(end - *at))
        return rp_err_set_at(r->err, RP_FORMAT, snapshot_place(r, *at),
                             "a recorded array is truncated at byte %llu: %zu bytes are missing",
                             (unsigned long long)snapshot_place(r, end),
                             bytes - (size_t)(end - *at));
    const uint32_t *order = order_of(s);
    if (!order && rp_elem_bits(s->elem) >= 8 && s->elem != RP_ELEM_PRED) {
        RP_TRY(rp_tensor_borrow(s->elem, s->dims, s->rank, *at, &t, r->err));
    } else {
        RP_TRY(rp_tensor_new(s->elem, s->dims, s->rank, &t, r->err));
        RP_TRY(rp_tensor_permute(t, order, true, *at, bytes, r->err));
    }
    *at += bytes;
    return push_dim(to, rp_tensor_keep(t), r->err);
}

static enum rp_code raw_parts(struct reader *r, struct shape *s, const uint8_t **at,
                              const uint8_t *end, unsigned depth, void *to)
{
    struct rp_proto_cursor c = rp_proto_cursor(s->self.at, s->self.n, 0, 64);
    struct rp_proto_item it;
    struct shape part;

    if (s->elem == RP_ELEM_TOKEN)
        return RP_OK;
    if (s->elem != RP_ELEM_TUPLE)
        return raw_leaf(r, s, at, end, to);
    if (depth > 32)
        return rp_err_set(r->err, RP_LIMIT, "recorded tuples are nested too deep");
    while (rp_proto_next_bytes(&c, RP_HLO_SHAPE_TUPLE_SHAPES, &it)) {
        RP_TRY(read_shape(r, it.bytes, &part));
        RP_TRY(raw_parts(r, &part, at, end, depth + 1, to));
    }
    return RP_OK;
}

static enum rp_code read_raw(struct reader *r, const uint8_t *at, size_t n, void *to)
{
    const uint8_t *end = at + n;
    struct shape s;
    uint64_t len = 0;

    if (n >= 8)
        memcpy(&len, at, sizeof len);
    if (n < 8 || len > n - 8)
        return rp_err_set_at(r->err, RP_FORMAT, snapshot_place(r, at),
                             "a recorded array is truncated at byte %llu",
                             (unsigned long long)snapshot_place(r, at));
    RP_TRY(read_shape(r, (struct rp_bytes){at + 8, (size_t)len}, &s));
    at += 8 + len;
    RP_TRY(raw_parts(r, &s, &at, end, 0, to));
    if (at != end)
        return rp_err_set_at(r->err, RP_FORMAT, snapshot_place(r, at),
                             "%zu extra bytes after a recorded array", (size_t)(end - at));
    return RP_OK;
}

/* Reads the sizes of one partition's arguments, and the arguments after the message. */
static enum rp_code framed_partition(struct reader *r, struct rp_bytes bytes, const uint8_t **at,
                                     const uint8_t *end, void *to)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, snapshot_place(r, bytes.at), 64);
    struct rp_proto_item it;
    size_t i = 0;

    while (rp_proto_next_bytes(&c, RP_HLO_INPUTS_ARGUMENTS_DESCRIPTORS, &it)) {
        struct rp_bytes literal = {*at, 0};
        uint64_t size = 0;

        RP_TRY(rp_proto_read(rp_proto_enter(&c, &it),
                             (const struct rp_proto_slot[]){
                                 {RP_HLO_DESCRIPTOR_ARGUMENT_SIZE_BYTES, .u64 = &size}, {0}},
                             r->err));
        if (size > (uint64_t)(end - *at))
            return rp_err_set_at(r->err, RP_FORMAT, snapshot_place(r, end),
                                 "the file is truncated at byte %llu: argument %zu of %llu bytes "
                                 "begins at byte %llu",
                                 (unsigned long long)snapshot_place(r, end), i,
                                 (unsigned long long)size,
                                 (unsigned long long)snapshot_place(r, *at));
        RP_TRY(snapshot_error(r, read_raw(r, *at, (size_t)size, to), "argument", i++, literal));
        *at += size;
    }
    return rp_proto_finish(&c, r->err);
}

/* ---- files ---- */

static bool printable(struct rp_bytes s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.at[i] < 0x20 || s.at[i] > 0x7e)
            return false;
    return s.n > 0 && s.n < 4096;
}

/* Finds the first field with number 1, which must be bytes. */
static bool first_field(struct rp_bytes in, struct rp_bytes *out)
{
    struct rp_proto_cursor c = rp_proto_cursor(in.at, in.n, 0, 64);
    struct rp_proto_item it;

    if (!rp_proto_next(&c, &it) || it.number != 1 || it.wire != RP_WIRE_BYTES)
        return false;
    *out = it.bytes;
    return true;
}

static bool is_module(struct rp_bytes b)
{
    struct rp_bytes name;

    return first_field(b, &name) && printable(name);
}

static enum rp_code read_partitions(struct reader *r, struct rp_bytes message, const uint8_t *raw,
                                    const uint8_t *end, struct rp_snapshot *out)
{
    struct rp_proto_cursor c =
        rp_proto_cursor(message.at, message.n, snapshot_place(r, message.at), 64);
    struct rp_proto_item it, field;

    while (rp_proto_next_bytes(&c, RP_HLO_PROTO_PARTITIONS, &it)) {
        if (++out->partitions > MOST_PARTS)
            return rp_err_set(r->err, RP_LIMIT, "more than %d partitions", MOST_PARTS);
        if (raw) {
            RP_TRY(framed_partition(r, it.bytes, &raw, end, &out->arguments));
            continue;
        }
        struct rp_proto_cursor d = rp_proto_enter(&c, &it);
        for (size_t i = 0; rp_proto_next_bytes(&d, RP_HLO_INPUTS_ARGUMENTS, &field);) {
            enum rp_code code = read_literal(r, field.bytes, 0, &out->arguments);

            RP_TRY(snapshot_error(r, code, "argument", i++, field.bytes));
        }
        RP_TRY(rp_proto_finish(&d, r->err));
    }
    if (raw && raw != end)
        return rp_err_set_at(r->err, RP_FORMAT, snapshot_place(r, raw),
                             "%llu extra bytes after the last argument",
                             (unsigned long long)(end - raw));
    return rp_proto_finish(&c, r->err);
}

/* Whether field 2 is a list of partitions, not the config of a HloModuleProtoWithConfig. */
static bool has_inputs(struct rp_bytes file)
{
    struct rp_proto_cursor c = rp_proto_cursor(file.at, file.n, 0, 64);
    struct rp_proto_item it;
    struct rp_bytes literal, shape;

    if (rp_proto_next_bytes(&c, RP_HLO_PROTO_PARTITIONS, &it)) {
        struct rp_proto_cursor d = rp_proto_enter(&c, &it);
        struct rp_proto_item field;

        while (rp_proto_next(&d, &field))
            if (field.number > RP_HLO_INPUTS_ARGUMENTS_DESCRIPTORS || field.wire != RP_WIRE_BYTES)
                return false;
        return !it.bytes.n || (first_field(it.bytes, &literal) && first_field(literal, &shape));
    }
    return false;
}

enum rp_code rp_snapshot_read(const uint8_t *bytes, size_t n, bool text, struct rp_snapshot *out,
                              struct rp_err *err)
{
    struct reader r = {bytes, text, err};
    struct rp_bytes file = {bytes, n}, inner, first;
    uint64_t len;

    memset(out, 0, sizeof *out);
    const uint8_t *meta = n ? rp_proto_varint_at(bytes, bytes + n, &len) : NULL;
    if (meta && len && len <= (uint64_t)(bytes + n - meta)) {
        inner = (struct rp_bytes){meta, (size_t)len};
        if (first_field(inner, &first) && is_module(first)) {
            out->kind = "unoptimized snapshot, framed";
            return read_partitions(&r, inner, meta + len, bytes + n, out);
        }
    }
    if (!first_field(
            file, &first)) { /* the file is cut off, which differs from a program without values */
        struct rp_proto_cursor c = rp_proto_cursor(bytes, n, 0, 64);
        struct rp_proto_item it;

        while (rp_proto_next(&c, &it))
            ;
        return rp_proto_finish(&c, err);
    }
    if (is_module(first)) {
        if (!has_inputs(file))
            return RP_OK;
        out->kind = "unoptimized snapshot";
        return read_partitions(&r, file, NULL, NULL, out);
    }
    if (first_field(first, &inner) && is_module(inner)) {
        out->kind = "snapshot";
        struct rp_proto_cursor c = rp_proto_cursor(file.at, file.n, 0, 64);
        struct rp_proto_item it;
        size_t i = 0;
        out->partitions = 1;
        while (rp_proto_next(&c, &it)) {
            if (RP_PROTO_KEY(it.number, it.wire) == KEY(RP_HLO_SNAPSHOT_ARGUMENTS, BYTES))
                RP_TRY(snapshot_error(&r, read_literal(&r, it.bytes, 0, &out->arguments),
                                      "argument", i++, it.bytes));
            else if (RP_PROTO_KEY(it.number, it.wire) == KEY(RP_HLO_SNAPSHOT_RESULT, BYTES))
                RP_TRY(snapshot_error(&r, read_literal(&r, it.bytes, 0, &out->results), "result", 0,
                                      it.bytes));
        }
        return rp_proto_finish(&c, r.err);
    }
    return RP_OK;
}

void rp_snapshot_release(struct rp_snapshot *s)
{
    for (size_t i = 0; i < s->arguments.n; i++)
        rp_tensor_drop(s->arguments.at[i]);
    for (size_t i = 0; i < s->results.n; i++)
        rp_tensor_drop(s->results.at[i]);
    rp_vec_release(&s->arguments);
    rp_vec_release(&s->results);
}
