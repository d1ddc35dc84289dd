/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_IO_PROTO_H
#define RP_IO_PROTO_H
/*
 * Protocol buffers, the wire format, over bytes that are in memory as a whole (mapped, up to many
 * gigabytes). Two ways to read, both without copying texts:
 *
 *   a cursor, for readers that fill their own columns:
 *
 *       struct rp_proto_cursor c = rp_proto_cursor(bytes, n, 0, depth);
 *       struct rp_proto_item it;
 *       while (rp_proto_next(&c, &it))
 *           switch (RP_PROTO_KEY(it.number, it.wire)) {
 *           case RP_PROTO_KEY(2, RP_WIRE_BYTES): ... it.bytes ...
 *           }
 *       RP_TRY(rp_proto_finish(&c, err));
 *
 *   tables, for programs and everything that is also written (proto_write.h): a struct is described
 *   once by its fields, decoded into an arena, and what the table does not know is kept.
 *
 *     wire type   0 varint   1 fixed64   2 length, bytes   3 group ... 4 end   5 fixed32
 *
 * Rules, as protobuf has them: the last of a repeated singular scalar wins, singular messages
 * merge, packed and unpacked lists are both read whatever the table says, a known field with
 * another wire type counts as unknown. Varints may be longer than needed, up to ten bytes, but must
 * fit 64 bits. Groups are skipped as a whole. Texts are not checked to be UTF-8.
 */
#include "base/arena.h"
#include "base/err.h"
#include "base/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes somewhere in the input; borrowed, not NUL-terminated. */
struct rp_bytes {
    const uint8_t *at;
    size_t n;
};

enum rp_proto_wire {
    RP_WIRE_VARINT,
    RP_WIRE_FIXED64,
    RP_WIRE_BYTES,
    RP_WIRE_GROUP,
    RP_WIRE_GROUP_END, /* never given out */
    RP_WIRE_FIXED32
};

/* ---- the cursor ---- */

struct rp_proto_cursor {
    const uint8_t *at, *end; /* what is still to be read; equal after a failure */
    const uint8_t *begin;    /* of the message */
    uint64_t offset;         /* of begin in the whole input: errors name bytes of the input */
    uint32_t depth;          /* levels that may still be entered */
    uint32_t why;            /* 0, or what went wrong: rp_proto_finish says it in words */
    uint64_t bad_at, detail; /* byte of the input it went wrong at; a length, a wire type ... */
    uint32_t number;         /* of the field it went wrong in; 0 where not known yet */
};

struct rp_proto_item {
    uint32_t number;       /* 1 to 2^29 - 1 */
    uint32_t wire;         /* enum rp_proto_wire */
    uint64_t value;        /* varint, fixed64, fixed32 */
    struct rp_bytes bytes; /* RP_WIRE_BYTES: the content; RP_WIRE_GROUP: up to its end tag; any
                              other: empty */
    const uint8_t *begin;  /* the field with its tag is begin .. cursor.at */
};

#define RP_PROTO_KEY(number, wire) ((uint32_t)(number) << 3 | (uint32_t)(wire))

/* Out of line, all for rp_proto_next and the other inline functions. */
const uint8_t *rp_proto_varint_long(const uint8_t *p, const uint8_t *end, uint64_t *value);
bool rp_proto_next_rare(struct rp_proto_cursor *c, struct rp_proto_item *item, const uint8_t *p);
void rp_proto_stop_varint(struct rp_proto_cursor *c, const uint8_t *p, uint32_t number);
void rp_proto_stop_length(struct rp_proto_cursor *c, const uint8_t *p, uint32_t number,
                          uint64_t length);

/* A message of n bytes that stands at `offset` of the input; at most `depth` levels deep. */
static inline struct rp_proto_cursor rp_proto_cursor(const void *bytes, size_t n, uint64_t offset,
                                                     uint32_t depth)
{
    struct rp_proto_cursor c;

    c.begin = n ? bytes : (const void *)"";
    c.at = c.begin;
    c.end = c.begin + n;
    c.offset = offset;
    c.depth = depth;
    c.why = 0; /* what follows in the struct says more about a failure only */
    return c;
}

/* The message in a field of wire type BYTES or GROUP. Too deep: the new cursor has failed. */
struct rp_proto_cursor rp_proto_stop_depth(const struct rp_proto_cursor *c,
                                           const struct rp_proto_item *item);

static inline struct rp_proto_cursor rp_proto_enter(const struct rp_proto_cursor *c,
                                                    const struct rp_proto_item *item)
{
    if (__builtin_expect(c->depth == 0, 0))
        return rp_proto_stop_depth(c, item);
    return rp_proto_cursor(item->bytes.at, item->bytes.n,
                           c->offset + (uint64_t)(item->bytes.at - c->begin), c->depth - 1);
}

/* A varint at p, before end; where it is cut off or too long: NULL. */
static inline const uint8_t *rp_proto_varint_at(const uint8_t *p, const uint8_t *end,
                                                uint64_t *value)
{
    if (__builtin_expect(end - p >= 2, 1)) {
        if (p[0] < 0x80) {
            *value = p[0];
            return p + 1;
        }
        if (p[1] < 0x80) {
            *value = (uint64_t)(p[0] & 0x7f) | (uint64_t)p[1] << 7;
            return p + 2;
        }
    }
    return rp_proto_varint_long(p, end, value);
}

/* The next field; false at the end of the message and after a failure (see rp_proto_finish). */
__attribute__((always_inline)) static inline bool rp_proto_next(struct rp_proto_cursor *c,
                                                                struct rp_proto_item *item)
{
    const uint8_t *p = c->at, *q;
    uint64_t tag, value;

    if (p >= c->end)
        return false;
    item->begin = p;
    if (__builtin_expect(*p < 0x80, 1)) {
        tag = *p++;
    } else {
        q = rp_proto_varint_at(p, c->end, &tag);
        if (!q) {
            rp_proto_stop_varint(c, p, 0);
            return false;
        }
        p = q;
    }
    item->number = (uint32_t)(tag >> 3);
    item->wire = (uint32_t)(tag & 7);
    if (__builtin_expect(tag < 8 || tag > UINT32_MAX || (tag & 7) > 2 || (tag & 7) == 1, 0))
        return rp_proto_next_rare(c, item, p);
    q = rp_proto_varint_at(p, c->end, &value);
    if (__builtin_expect(!q, 0)) {
        rp_proto_stop_varint(c, p, item->number);
        return false;
    }
    item->value = value;
    item->bytes = (struct rp_bytes){q, 0};
    if (item->wire == RP_WIRE_BYTES) {
        if (__builtin_expect(value > (uint64_t)(c->end - q), 0)) {
            rp_proto_stop_length(c, p, item->number, value);
            return false;
        }
        item->bytes.n = (size_t)value;
        q += value;
    }
    c->at = q;
    return true;
}

/* RP_OK where the message was read to its end; otherwise RP_FORMAT (or RP_LIMIT: too deep) and
   "field 3 of message at byte 812: length 900 runs past the end at byte 1000". */
enum rp_code rp_proto_finish(const struct rp_proto_cursor *c, struct rp_err *err);

/* Byte of the input that p, in the cursor's message, stands at. */
static inline uint64_t rp_proto_offset(const struct rp_proto_cursor *c, const void *p)
{
    return c->offset + (uint64_t)((const uint8_t *)p - c->begin);
}

/* ---- values ---- */

static inline int64_t rp_proto_zigzag(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static inline double rp_proto_double(uint64_t bits)
{
    double v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

static inline float rp_proto_float(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float v;

    memcpy(&v, &low, sizeof v);
    return v;
}

static inline uint32_t rp_proto_load32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t rp_proto_load64(const uint8_t *p)
{
    return rp_proto_load32(p) | (uint64_t)rp_proto_load32(p + 4) << 32;
}

/* Packed lists: a cursor over the content (rp_proto_enter) and one of these until false. */
bool rp_proto_packed_varint(struct rp_proto_cursor *c, uint64_t *value);
bool rp_proto_packed_fixed32(struct rp_proto_cursor *c, uint32_t *value);
bool rp_proto_packed_fixed64(struct rp_proto_cursor *c, uint64_t *value);

/* Varints that end in these bytes: how many a packed list holds. */
size_t rp_proto_count_varints(struct rp_bytes bytes);

/* The content of the first field of that number and wire type BYTES, or of the occurrence counted
   from 0; empty where there is none. Damage behind it is not looked for. */
struct rp_bytes rp_proto_find(struct rp_bytes message, uint32_t number);
struct rp_bytes rp_proto_find_nth(struct rp_bytes message, uint32_t number, size_t occurrence);

/* Length-delimited files (a varint, then a message, again and again): the next message as an item
   of number 0 and wire type BYTES. */
bool rp_proto_next_delimited(struct rp_proto_cursor *c, struct rp_proto_item *item);

/* ---- tables ---- */

/* Types of fields, and the C type of the member. */
enum rp_proto_type {
    RP_PROTO_DOUBLE,  /* double */
    RP_PROTO_FLOAT,   /* float */
    RP_PROTO_INT32,   /* int32_t; enums are this */
    RP_PROTO_INT64,   /* int64_t */
    RP_PROTO_UINT32,  /* uint32_t */
    RP_PROTO_UINT64,  /* uint64_t */
    RP_PROTO_SINT32,  /* int32_t */
    RP_PROTO_SINT64,  /* int64_t */
    RP_PROTO_FIXED32, /* uint32_t; sfixed32 as int32_t too */
    RP_PROTO_FIXED64, /* uint64_t; sfixed64 as int64_t too */
    RP_PROTO_BOOL,    /* bool */
    RP_PROTO_BYTES,   /* struct rp_bytes; strings are this */
    RP_PROTO_MESSAGE  /* struct x * (NULL: absent); in lists struct x */
};

/* rp_proto_field.flags */
enum {
    RP_PROTO_LIST = 1,  /* the member is an RP_PROTO_LIST_OF(type) */
    RP_PROTO_PACKED = 2 /* a list that is written packed; both forms are always read */
};

/* A list member: n elements in the arena. cap is the decoder's own. */
#define RP_PROTO_LIST_OF(type) \
    struct {                   \
        type *at;              \
        uint32_t n, cap;       \
    }

struct rp_proto_any_list { /* any of these, seen by code that does not know the type */
    void *at;
    uint32_t n, cap;
};

/* How a type travels, and the size of its member (a message: of the pointer). */
struct rp_proto_traits {
    uint8_t wire, size;
};
extern const struct rp_proto_traits rp_proto_traits[RP_PROTO_MESSAGE + 1];

struct rp_proto_unknown { /* neighbours in the input are kept as one */
    struct rp_proto_unknown *next;
    struct rp_bytes bytes; /* whole fields with their tags */
};

/* First member of every described struct. All of it may be zero. */
struct rp_proto_head {
    uint64_t has;                  /* bit i: singular field i of the table, i < 64, was there */
    struct rp_proto_unknown *last; /* of what the table does not know; the last's next is the
                                      first */
};

struct rp_proto_message;

struct rp_proto_field {
    const char *name;
    uint32_t number;
    uint32_t offset;
    uint16_t size; /* of the member, for rp_proto_check */
    uint8_t type, flags;
    uint8_t oneof; /* 0, or which oneof of the message: one field of it is set at a time */
    const struct rp_proto_message *message; /* of type MESSAGE */
};

struct rp_proto_message {
    const char *name;
    uint32_t size; /* of the struct */
    uint32_t nfields;
    const struct rp_proto_field *fields; /* ascending numbers */
};

/* Of one element of a list. */
static inline size_t rp_proto_element_size(const struct rp_proto_field *field)
{
    return field->type == RP_PROTO_MESSAGE ? field->message->size
                                           : rp_proto_traits[field->type].size;
}

/*
 *   struct event { struct rp_proto_head head; int64_t id; RP_PROTO_LIST_OF(struct stat) stats; };
 *   static const struct rp_proto_field event_fields[] = {
 *       RP_PROTO_FIELD(struct event, 1, id, INT64),
 *       RP_PROTO_FIELDS(struct event, 4, stats, MESSAGE, 0, &stat_message)};
 *   static const struct rp_proto_message event_message =
 *       RP_PROTO_TABLE(struct event, event_fields);
 *
 * Fields of a oneof may share their place (a union); they must be among the first 64 of the table,
 * and one counts only where it is marked (rp_proto_has). Any other singular field counts where it
 * is marked or not zero.
 *
 * A map is a list of its entries, messages of key (1) and value (2), in the order of the file and
 * with repeated keys where the file has them. Enums are INT32, strings are BYTES.
 */
#define RP_PROTO_ROW(s, number_, member, type_, flags_, oneof_, message_)                      \
    {                                                                                          \
        .name = #member, .number = number_, .offset = (uint32_t)offsetof(s, member),           \
        .size = (uint16_t)sizeof(((s *)0)->member), .type = RP_PROTO_##type_, .flags = flags_, \
        .oneof = oneof_, .message = message_                                                   \
    }
#define RP_PROTO_FIELD(s, number, member, type) RP_PROTO_ROW(s, number, member, type, 0, 0, NULL)
#define RP_PROTO_ONEOF(s, number, member, type, oneof) \
    RP_PROTO_ROW(s, number, member, type, 0, oneof, NULL)
#define RP_PROTO_SUB(s, number, member, message) \
    RP_PROTO_ROW(s, number, member, MESSAGE, 0, 0, message)
#define RP_PROTO_FIELDS(s, number, member, type, packed, message) \
    RP_PROTO_ROW(s, number, member, type, RP_PROTO_LIST | (packed), 0, message)
#define RP_PROTO_TABLE(s, fields_)                                                    \
    {                                                                                 \
        .name = #s, .size = (uint32_t)sizeof(s),                                      \
        .nfields = (uint32_t)(sizeof(fields_) / sizeof *(fields_)), .fields = fields_ \
    }

/*
 * Reads a message into the struct that `message` points to, which must be zero or hold an earlier
 * part to merge with. Lists and nested messages go to the arena, texts point into bytes: both must
 * outlive the struct. limits (NULL: defaults): input_bytes, depth, and events as the number of list
 * elements and messages in all. After a failure the struct holds what was read before it.
 */
enum rp_code rp_proto_decode(const struct rp_proto_message *type, const void *bytes, size_t n,
                             const struct rp_limits *limits, struct rp_arena *arena, void *message,
                             struct rp_err *err);

/* Whether a singular field was in the input, or was set. */
bool rp_proto_has(const struct rp_proto_message *type, const void *message, uint32_t number);
/* Marks it as there, so that it is written even where it is zero. */
void rp_proto_set(const struct rp_proto_message *type, void *message, uint32_t number);

/* For tests of tables: numbers ascend, members have the size and place their type needs, and so
   with all messages inside. why says what is wrong. */
bool rp_proto_check(const struct rp_proto_message *type, char *why, size_t cap);

#endif
