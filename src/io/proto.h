/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads the wire format of protocol buffers from bytes that are in memory as a whole (mapped, up to
 * many gigabytes). A cursor walks the fields of a message; texts are not copied.
 *
 *     struct rp_proto_cursor c = rp_proto_cursor(bytes, n, 0, depth);
 *     struct rp_proto_item it;
 *     while (rp_proto_next(&c, &it))
 *         switch (RP_PROTO_KEY(it.number, it.wire)) {
 *         case RP_PROTO_KEY(2, RP_WIRE_BYTES): ... it.bytes ...
 *         }
 *     RP_TRY(rp_proto_finish(&c, err));
 *
 *     wire type   0 varint   1 fixed64   2 length, bytes   3 group ... 4 end   5 fixed32
 *
 * Varints may be longer than needed, up to ten bytes, but must fit 64 bits. Groups are skipped as a
 * whole. Texts are not checked to be UTF-8.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes somewhere in the input; borrowed, without a NUL at the end. */
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
    uint64_t
        offset; /* the offset of begin in the whole input, because errors name bytes of the input */
    uint32_t depth; /* levels that may still be entered */
    uint32_t why;   /* 0, or what went wrong; rp_proto_finish says it in words */
    uint64_t bad_at,
        detail;      /* the byte of the input at which it went wrong; a length, a wire type ... */
    uint32_t number; /* the field in which it went wrong; 0 if not known yet */
};

struct rp_proto_item {
    uint32_t number;       /* 1 to 2^29 - 1 */
    uint32_t wire;         /* enum rp_proto_wire */
    uint64_t value;        /* of varint, fixed64 and fixed32 */
    struct rp_bytes bytes; /* for RP_WIRE_BYTES the content; for RP_WIRE_GROUP the bytes up to its
                              end tag; otherwise empty */
    const uint8_t *begin;  /* the field with its tag is begin .. cursor.at */
};

#define RP_PROTO_KEY(number, wire) ((uint32_t)(number) << 3 | (uint32_t)(wire))

/* Not inline; they serve rp_proto_next and the other inline functions. */
const uint8_t *rp_proto_varint_long(const uint8_t *p, const uint8_t *end, uint64_t *value);
bool rp_proto_next_rare(struct rp_proto_cursor *c, struct rp_proto_item *item, const uint8_t *p);
void rp_proto_stop_varint(struct rp_proto_cursor *c, const uint8_t *p, uint32_t number);
void rp_proto_stop_length(struct rp_proto_cursor *c, const uint8_t *p, uint32_t number,
                          uint64_t length);

/* Begins a message of n bytes at `offset` of the input; at most `depth` levels deep. */
static inline struct rp_proto_cursor rp_proto_cursor(const void *bytes, size_t n, uint64_t offset,
                                                     uint32_t depth)
{
    struct rp_proto_cursor c;

    c.begin = n ? bytes : (const void *)"";
    c.at = c.begin;
    c.end = c.begin + n;
    c.offset = offset;
    c.depth = depth;
    c.why = 0; /* the rest of the struct only says more about a failure */
    return c;
}

/* Enters the message in a field of wire type BYTES or GROUP. If it is too deep, the new cursor has
   failed. */
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

/* Reads a varint at p, before end; returns NULL if it is cut off or too long. */
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

/* Reads the next field; returns false at the end of the message and after a failure (see
   rp_proto_finish). */
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

/* Returns RP_OK if the message was read to its end; otherwise RP_FORMAT (or RP_LIMIT if it is too
   deep) and "field 3 of message at byte 812: length 900 runs past the end at byte 1000". */
enum rp_code rp_proto_finish(const struct rp_proto_cursor *c, struct rp_err *err);

/* Returns the byte of the input at which p, in the cursor's message, is. */
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

/* ---- whole messages ---- */

/* Finds the next field of that number and wire type BYTES. */
static inline bool rp_proto_next_bytes(struct rp_proto_cursor *c, uint32_t number,
                                       struct rp_proto_item *item)
{
    while (rp_proto_next(c, item))
        if (item->number == number && item->wire == RP_WIRE_BYTES)
            return true;
    return false;
}

/* Where the value of a field goes: exactly one pointer is set, which tells the wire type of the
   field. Fields of another wire type are ignored, and of several the last counts. A list ends with
   {0}. */
struct rp_proto_slot {
    uint32_t number;
    struct rp_bytes *bytes;
    uint64_t *u64; /* a varint, like the next two */
    int64_t *i64;
    bool *flag;
    double *f32, *f64; /* fixed32, fixed64 */
};

/* Whether the field was in the list. */
bool rp_proto_take(const struct rp_proto_slot *slots, const struct rp_proto_item *item);

/* Reads the message to its end; fields that are not in the list are ignored. */
enum rp_code rp_proto_read(struct rp_proto_cursor c, const struct rp_proto_slot *slots,
                           struct rp_err *err);

/* Stores the varints of a message whose numbers are below n, each at its number; missing ones are
   0. */
enum rp_code rp_proto_numbers(struct rp_proto_cursor c, uint64_t *values, uint32_t n,
                              struct rp_err *err);

/* Reads packed lists: called with a cursor over the content (rp_proto_enter) until it returns
   false. */
bool rp_proto_packed_varint(struct rp_proto_cursor *c, uint64_t *value);
bool rp_proto_packed_fixed32(struct rp_proto_cursor *c, uint32_t *value);
bool rp_proto_packed_fixed64(struct rp_proto_cursor *c, uint64_t *value);

/* Makes a cursor for rp_proto_packed_varint over a field that c has just read: a packed list, or
   one number of a list that is not packed. It is empty for a field of another wire type. */
struct rp_proto_cursor rp_proto_list(const struct rp_proto_cursor *c,
                                     const struct rp_proto_item *item);

/* Finds the content of the first field of that number and wire type BYTES, or of the given
   occurrence, counted from 0; empty if there is none. Damage after it is not looked for. */
struct rp_bytes rp_proto_find(struct rp_bytes message, uint32_t number);
struct rp_bytes rp_proto_find_nth(struct rp_bytes message, uint32_t number, size_t occurrence);
