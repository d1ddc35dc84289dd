/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of an instruction: shapes (each is decoded once), constants (which stay in the input if
 * they are in one piece), metadata and the tables of source frames.
 */
#include "formats/hlo/proto.h"

#include "abi/proto/hlo.h"
#include "program/literal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_RANK          256
#define KEY(number, wire) RP_PROTO_KEY(number, RP_WIRE_##wire)

/* ---- texts of layouts ---- */

static enum rp_code hlo_layout_put(struct rp_hlo_proto *r, const char *text, size_t n)
{
    if (!n)
        return RP_OK;
    RP_TRY(rp_vec_reserve(&r->text, n, r->err));
    memcpy(r->text.at + r->text.n, text, n);
    r->text.n += n;
    return RP_OK;
}

static enum rp_code RP_PRINTF(2, 3) hlo_layout_putf(struct rp_hlo_proto *r, const char *fmt, ...)
{
    char text[160];
    va_list args;

    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return hlo_layout_put(r, text,
                          n < 0                     ? 0
                          : (size_t)n < sizeof text ? (size_t)n
                                                    : sizeof text - 1);
}

/* Writes "1,2" from a list that may be packed, not packed, or in several pieces. */
static enum rp_code put_numbers(struct rp_hlo_proto *r, struct rp_proto_cursor list)
{
    uint64_t value;

    while (rp_proto_packed_varint(&list, &value)) {
        char last = r->text.at[r->text.n - 1];

        RP_TRY(hlo_layout_putf(r, last == '{' || last == '(' ? "%lld" : ",%lld", (long long)value));
    }
    return rp_proto_finish(&list, r->err);
}

/* ---- shapes ---- */

struct shape_parts {
    int64_t dims[MAX_RANK];
    uint8_t dynamic[MAX_RANK];
    size_t ndims, ndynamic;
    unsigned elem;
    uint32_t layout;
    RP_VEC(uint32_t) parts;
};

static enum rp_code put_tile(struct rp_hlo_proto *r, struct rp_proto_cursor c, bool first)
{
    struct rp_proto_item it;

    RP_TRY(hlo_layout_putf(r, first ? "T(" : "("));
    while (rp_proto_next(&c, &it))
        if (it.number == RP_HLO_TILE_DIMENSIONS)
            RP_TRY(put_numbers(r, rp_proto_list(&c, &it)));
    RP_TRY(hlo_layout_put(r, ")", 1));
    return rp_proto_finish(&c, r->err);
}

/* Writes the part of a layout after its ':'. */
static enum rp_code put_layout_rest(struct rp_hlo_proto *r, struct rp_proto_cursor c)
{
    uint64_t tail = 0, bits = 0, space = 0, prefix = 0;
    const struct rp_proto_slot slots[] = {
        {RP_HLO_LAYOUT_ELEMENT_SIZE_IN_BITS, .u64 = &bits},
        {RP_HLO_LAYOUT_MEMORY_SPACE, .u64 = &space},
        {RP_HLO_LAYOUT_DYNAMIC_SHAPE_METADATA_PREFIX_BYTES, .u64 = &prefix},
        {RP_HLO_LAYOUT_TAIL_PADDING_ALIGNMENT_IN_ELEMENTS, .u64 = &tail},
        {0}};
    struct rp_proto_cursor tiles = c;
    struct rp_proto_item it;
    size_t colon = r->text.n;

    RP_TRY(rp_proto_read(c, slots, r->err));
    RP_TRY(hlo_layout_put(r, ":", 1));
    while (rp_proto_next_bytes(&tiles, RP_HLO_LAYOUT_TILES, &it))
        RP_TRY(put_tile(r, rp_proto_enter(&tiles, &it), r->text.n == colon + 1));
    if (tail > 1)
        RP_TRY(hlo_layout_putf(r, "L(%llu)", (unsigned long long)tail));
    if (bits)
        RP_TRY(hlo_layout_putf(r, "E(%llu)", (unsigned long long)bits));
    if (space)
        RP_TRY(hlo_layout_putf(r, "S(%llu)", (unsigned long long)space));
    if (prefix)
        RP_TRY(hlo_layout_putf(r, "M(%llu)", (unsigned long long)prefix));
    if (r->text.n == colon + 1)
        r->text.n = colon;
    return RP_OK;
}

static enum rp_code read_layout(struct rp_hlo_proto *r, struct rp_bytes bytes, uint64_t offset,
                                uint32_t *id)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, offset, 16);
    size_t from = r->text.n;
    struct rp_proto_item it;

    RP_TRY(hlo_layout_put(r, "{", 1));
    while (rp_proto_next(&c, &it)) {
        if (it.number == RP_HLO_LAYOUT_MINOR_TO_MAJOR)
            RP_TRY(put_numbers(r, rp_proto_list(&c, &it)));
        else if (RP_PROTO_KEY(it.number, it.wire) == KEY(RP_HLO_OWN_FIELD, BYTES)) {
            r->text.n = from; /* layout text without protobuf fields comes from our writer and is
                                 taken verbatim */
            if (!it.bytes.n || memchr(it.bytes.at, 0, it.bytes.n))
                return rp_err_set(r->err, RP_FORMAT, "a layout that is not text");
            return rp_program_string(r->p, (const char *)it.bytes.at, it.bytes.n, id, r->err);
        }
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    RP_TRY(put_layout_rest(r, rp_proto_cursor(bytes.at, bytes.n, offset, 16)));
    RP_TRY(hlo_layout_put(r, "}", 1));
    *id = 0;
    enum rp_code code = r->text.n - from == 2 ? RP_OK
                                              : rp_program_string(r->p, r->text.at + from,
                                                                  r->text.n - from, id, r->err);
    r->text.n = from;
    return code;
}

static enum rp_code read_shape_field(struct rp_hlo_proto *r, const struct rp_proto_cursor *outer,
                                     const struct rp_proto_item *it, unsigned depth,
                                     struct shape_parts *s)
{
    struct rp_proto_cursor c;
    uint64_t offset = rp_proto_offset(outer, it->bytes.at), value;
    uint32_t part;

    switch (RP_PROTO_KEY(it->number, it->wire)) {
    case KEY(RP_HLO_SHAPE_ELEMENT_TYPE, VARINT):
        s->elem = it->value < RP_ELEM_COUNT && rp_elem_name((unsigned)it->value)
                      ? (unsigned)it->value
                      : RP_ELEM_INVALID;
        return RP_OK;
    case KEY(RP_HLO_SHAPE_DIMENSIONS, VARINT):
    case KEY(RP_HLO_SHAPE_DIMENSIONS, BYTES):
        c = rp_proto_list(outer, it);
        while (rp_proto_packed_varint(&c, &value)) {
            int64_t dim = (int64_t)value;
            if (s->ndims == MAX_RANK)
                return rp_err_set(r->err, RP_LIMIT, "a shape has more than %d dimensions",
                                  MAX_RANK);
            s->dims[s->ndims++] = dim < 0 ? RP_DIM_UNKNOWN : dim;
        }
        return rp_proto_finish(&c, r->err);
    case KEY(RP_HLO_SHAPE_TUPLE_SHAPES, BYTES):
        RP_TRY(rp_hlo_proto_shape(r, it->bytes, offset, depth + 1, &part));
        return rp_vec_push(&s->parts, part, r->err);
    case KEY(RP_HLO_SHAPE_LAYOUT, BYTES):
        return read_layout(r, it->bytes, offset, &s->layout);
    case KEY(RP_HLO_SHAPE_IS_DYNAMIC_DIMENSION, BYTES):
        for (size_t i = 0; i < it->bytes.n && s->ndynamic < MAX_RANK; i++)
            s->dynamic[s->ndynamic++] = it->bytes.at[i] != 0;
        return RP_OK;
    default:
        return RP_OK;
    }
}

enum rp_code rp_hlo_proto_shape(struct rp_hlo_proto *r, struct rp_bytes bytes, uint64_t offset,
                                unsigned depth, uint32_t *id)
{
    uint32_t text, next = r->shape_bytes.n;

    RP_TRY(rp_strtab_intern(&r->shape_bytes, (const char *)bytes.at, bytes.n, &text, r->err));
    if (text < next) {
        *id = r->shape_of.at[text];
        return RP_OK;
    }
    RP_TRY(rp_vec_push(&r->shape_of, 0, r->err));

    /* The shape of the message; its dimensions are needed only until it is made. */
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, offset, 16);
    struct shape_parts s = {.elem = RP_ELEM_INVALID};
    struct rp_proto_item it;
    enum rp_code code = RP_OK;
    if (depth > 64)
        return rp_err_set_at(r->err, RP_LIMIT, offset, "tuples nested too deeply at byte %llu",
                             (unsigned long long)offset);
    while (code == RP_OK && rp_proto_next(&c, &it))
        code = read_shape_field(r, &c, &it, depth, &s);
    if (code == RP_OK)
        code = rp_proto_finish(&c, r->err);
    if (code == RP_OK && s.elem == RP_ELEM_TUPLE)
        code = rp_program_tuple(r->p, s.parts.at, s.parts.n, id, r->err);
    else if (code == RP_OK && s.elem == RP_ELEM_INVALID)
        *id = 0;
    else if (code == RP_OK)
        code = rp_program_array(r->p, s.elem, s.dims, s.dynamic, s.ndims, s.layout, id, r->err);
    rp_vec_release(&s.parts);
    RP_TRY(code);
    r->shape_of.at[text] = *id;
    return RP_OK;
}

/* ---- constants ---- */

/* Joins a list that is not in one piece in the arena. */
static enum rp_code join_literal_values(struct rp_hlo_proto *r, const struct rp_proto_cursor *c,
                                        const struct rp_proto_item *it, struct rp_literal *literal)
{
    size_t size = it->wire == RP_WIRE_FIXED32 ? 4 : it->wire == RP_WIRE_FIXED64 ? 8 : 0;
    const uint8_t *at = size ? c->at - size : it->bytes.at;

    if (it->wire == RP_WIRE_BYTES) {
        size = it->bytes.n;
    } else if (it->wire == RP_WIRE_VARINT) {
        for (at = c->at - 1; at > it->begin + 1 && at[-1] >= 0x80; at--)
            ;
        size = (size_t)(c->at - at);
    }
    if (!literal->n) {
        literal->at = (const char *)at;
        literal->n = size;
        return RP_OK;
    }
    char *joined = rp_arena_alloc(&r->p->arena, literal->n + size, 1);
    RP_TRY(rp_err_need(joined, r->err, "reading a constant"));
    memcpy(joined, literal->at, literal->n);
    memcpy(joined + literal->n, at, size);
    literal->at = joined;
    literal->n += size;
    return RP_OK;
}

enum rp_code rp_hlo_proto_literal(struct rp_hlo_proto *r, struct rp_bytes bytes, uint64_t offset,
                                  uint32_t shape, int64_t *index)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, offset, r->limits.depth);
    struct rp_literal literal = {.at = "", .shape = shape};
    unsigned elem = r->p->shapes.at[shape].elem;
    struct rp_proto_item it;
    bool varints;
    uint32_t field = rp_literal_field(elem, &varints), own, pieces = 0;

    while (rp_proto_next(&c, &it)) {
        if (RP_PROTO_KEY(it.number, it.wire) == KEY(RP_HLO_LITERAL_SHAPE, BYTES)) {
            RP_TRY(rp_hlo_proto_shape(r, it.bytes, rp_proto_offset(&c, it.bytes.at), 0, &own));
            if (r->p->shapes.at[own].elem == elem &&
                rp_shape_elements(r->p, own) == rp_shape_elements(r->p, shape))
                literal.shape = own;
        } else if (it.number == field && elem != RP_ELEM_TUPLE) {
            if (++pieces > 64 && it.wire != RP_WIRE_BYTES)
                return rp_err_set(r->err, RP_UNSUPPORTED, "a constant that is not packed");
            RP_TRY(join_literal_values(r, &c, &it, &literal));
            literal.form = varints ? RP_LITERAL_VARINT : RP_LITERAL_RAW;
        }
    }
    if (!literal.n && rp_shape_elements(r->p, shape) == 0 && shape && elem != RP_ELEM_TUPLE)
        literal.form = varints ? RP_LITERAL_VARINT : RP_LITERAL_RAW;
    if (elem == RP_ELEM_TUPLE)
        literal = (struct rp_literal){(const char *)bytes.at, bytes.n, shape, RP_LITERAL_PROTO};
    *index = (int64_t)r->p->literals.n;
    RP_TRY(rp_vec_push(&r->p->literals, literal, r->err));
    return rp_proto_finish(&c, r->err);
}

/* ---- where an operation comes from ---- */

bool rp_hlo_proto_metadata_known(const struct rp_proto_item *it)
{
    switch (it->number) {
    case RP_HLO_METADATA_OP_TYPE:
    case RP_HLO_METADATA_OP_NAME:
    case RP_HLO_METADATA_SOURCE_FILE:
    case RP_HLO_METADATA_DEDUPLICATED_NAME:
    case RP_HLO_METADATA_SCHEDULING_NAME:
        return it->wire == RP_WIRE_BYTES;
    case RP_HLO_METADATA_SOURCE_LINE:
    case RP_HLO_METADATA_STACK_FRAME_ID:
    case RP_HLO_METADATA_SOURCE_END_LINE:
    case RP_HLO_METADATA_SOURCE_COLUMN:
    case RP_HLO_METADATA_SOURCE_END_COLUMN:
        return it->wire == RP_WIRE_VARINT;
    default:
        return false;
    }
}

enum rp_code rp_hlo_proto_metadata(struct rp_hlo_proto *r, struct rp_bytes bytes, uint64_t offset,
                                   uint32_t *id)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, offset, r->limits.depth);
    struct rp_op_meta m = {0};
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        int32_t number = (int32_t)it.value;
        uint32_t *text = it.number == RP_HLO_METADATA_OP_TYPE             ? &m.op_type
                         : it.number == RP_HLO_METADATA_OP_NAME           ? &m.op_name
                         : it.number == RP_HLO_METADATA_SOURCE_FILE       ? &m.file
                         : it.number == RP_HLO_METADATA_DEDUPLICATED_NAME ? &m.deduplicated_name
                         : it.number == RP_HLO_METADATA_SCHEDULING_NAME   ? &m.scheduling_name
                                                                          : NULL;

        if (text && it.wire == RP_WIRE_BYTES)
            RP_TRY(rp_string_cached(r->p, &r->cache, (const char *)it.bytes.at, it.bytes.n, text,
                                    r->err));
        else if (!rp_hlo_proto_metadata_known(&it))
            r->metadata_rest = true;
        else if (it.number == RP_HLO_METADATA_SOURCE_LINE)
            m.line = number;
        else if (it.number == RP_HLO_METADATA_SOURCE_END_LINE)
            m.end_line = number;
        else if (it.number == RP_HLO_METADATA_SOURCE_COLUMN)
            m.column = number;
        else if (it.number == RP_HLO_METADATA_SOURCE_END_COLUMN)
            m.end_column = number;
        else if (it.number == RP_HLO_METADATA_STACK_FRAME_ID)
            m.frame = number > 0 ? (uint32_t)number : 0;
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    *id = 0;
    if (!bytes.n)
        return RP_OK;
    *id = (uint32_t)r->p->metas.n;
    return rp_vec_push(&r->p->metas, m, r->err);
}

typedef RP_VEC(uint32_t) string_list;

static uint32_t frame_string(const string_list *list, uint64_t number)
{
    return number > 0 && number <= list->n ? list->at[number - 1] : 0;
}

static enum rp_code read_frame_field(struct rp_hlo_proto *r, const struct rp_proto_cursor *c,
                                     const struct rp_proto_item *it, string_list *files,
                                     string_list *functions)
{
    struct rp_frame frame;
    uint64_t v[8];
    uint32_t id;

    if (it->wire != RP_WIRE_BYTES)
        return RP_OK;
    if (it->number < RP_HLO_FRAME_INDEX_FILE_LOCATIONS) {
        RP_TRY(rp_program_string(r->p, (const char *)it->bytes.at, it->bytes.n, &id, r->err));
        return rp_vec_push(it->number == RP_HLO_FRAME_INDEX_FILE_NAMES ? files : functions, id,
                           r->err);
    }
    RP_TRY(rp_proto_numbers(rp_proto_enter(c, it), v, 8, r->err));
    if (it->number == RP_HLO_FRAME_INDEX_FILE_LOCATIONS) {
        struct rp_location at = {frame_string(files, v[RP_HLO_FILE_LOCATION_FILE_NAME_ID]),
                                 frame_string(functions, v[RP_HLO_FILE_LOCATION_FUNCTION_NAME_ID]),
                                 (int32_t)v[RP_HLO_FILE_LOCATION_LINE],
                                 (int32_t)v[RP_HLO_FILE_LOCATION_END_LINE],
                                 (int32_t)v[RP_HLO_FILE_LOCATION_COLUMN],
                                 (int32_t)v[RP_HLO_FILE_LOCATION_END_COLUMN]};
        return rp_vec_push(&r->p->locations, at, r->err);
    }
    if (it->number != RP_HLO_FRAME_INDEX_STACK_FRAMES)
        return RP_OK;
    if (v[RP_HLO_STACK_FRAME_FILE_LOCATION_ID] < 1 ||
        v[RP_HLO_STACK_FRAME_FILE_LOCATION_ID] > r->p->locations.n)
        return rp_err_set(r->err, RP_FORMAT, "a stack frame with an undefined location");
    frame.location = (uint32_t)v[RP_HLO_STACK_FRAME_FILE_LOCATION_ID] - 1;
    frame.parent = v[RP_HLO_STACK_FRAME_PARENT_FRAME_ID] <= r->p->frames.n
                       ? (uint32_t)v[RP_HLO_STACK_FRAME_PARENT_FRAME_ID]
                       : 0;
    return rp_vec_push(&r->p->frames, frame, r->err);
}

enum rp_code rp_hlo_proto_frames(struct rp_hlo_proto *r, struct rp_bytes bytes, uint64_t offset)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, offset, r->limits.depth);
    string_list files = {0}, functions = {0};
    struct rp_proto_item it;
    enum rp_code code = RP_OK;

    while (code == RP_OK && rp_proto_next(&c, &it))
        code = read_frame_field(r, &c, &it, &files, &functions);
    if (code == RP_OK)
        code = rp_proto_finish(&c, r->err);
    rp_vec_release(&files);
    rp_vec_release(&functions);
    return code;
}
