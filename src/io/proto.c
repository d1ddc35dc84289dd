/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow half of the cursor: long varints, fixed values, groups, packed lists, and the text of
 * errors. A varint of three to eight bytes is read with one load: the first byte without its high
 * bit is found by counting zeros, and the groups of seven bits are pushed together in three steps.
 *
 * A failure is noted in the cursor, whose rest becomes empty, so the inline functions test nothing
 * twice; rp_proto_finish turns the note into a message.
 */
#include "io/proto.h"

#include <endian.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define MAX_VARINT  10
#define MAX_NUMBER  ((UINT32_C(1) << 29) - 1)
#define GROUP_DEPTH 100 /* the same limit as in protobuf's own readers */

enum why { FINE, CUT_VARINT, LONG_VARINT, LENGTH, FIXED, WIRE, NUMBER, END, OPEN, DEPTH, GROUPS };

static bool stop(struct rp_proto_cursor *c, enum why why, const uint8_t *p, uint32_t number,
                 uint64_t detail)
{
    c->why = why;
    c->number = number;
    c->bad_at = rp_proto_offset(c, p);
    c->detail = detail;
    c->at = c->end;
    return false;
}

static bool stop_varint(struct rp_proto_cursor *c, const uint8_t *p, uint32_t number)
{
    return stop(c, c->end - p >= MAX_VARINT ? LONG_VARINT : CUT_VARINT, p, number, 0);
}

void rp_proto_stop_varint(struct rp_proto_cursor *c, const uint8_t *p, uint32_t number)
{
    stop_varint(c, p, number);
}

void rp_proto_stop_length(struct rp_proto_cursor *c, const uint8_t *p, uint32_t number,
                          uint64_t length)
{
    stop(c, LENGTH, p, number, length);
}

struct rp_proto_cursor rp_proto_stop_depth(const struct rp_proto_cursor *c,
                                           const struct rp_proto_item *item)
{
    struct rp_proto_cursor failed = *c;

    stop(&failed, DEPTH, item->begin, item->number, 0);
    return failed;
}

/* Reads byte by byte: near the end of the input, and for nine and ten bytes. */
static const uint8_t *varint_slow(const uint8_t *p, const uint8_t *end, uint64_t *value)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < MAX_VARINT && p < end; i++) {
        uint8_t byte = *p++;

        if (i == MAX_VARINT - 1 && byte > 1)
            return NULL;
        v |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *value = v;
            return p;
        }
    }
    return NULL;
}

const uint8_t *rp_proto_varint_long(const uint8_t *p, const uint8_t *end, uint64_t *value)
{
    uint64_t x;

    if (end - p < 8)
        return varint_slow(p, end, value);
    memcpy(&x, p, 8);
    x = le64toh(x);
    uint64_t stops = ~x & UINT64_C(0x8080808080808080);
    if (!stops)
        return varint_slow(p, end, value);
    unsigned bits = (unsigned)__builtin_ctzll(stops) + 1;
    x &= UINT64_C(0x7f7f7f7f7f7f7f7f) & (~UINT64_C(0) >> (64 - bits));
    x = (x & UINT64_C(0x007f007f007f007f)) | (x & UINT64_C(0x7f007f007f007f00)) >> 1;
    x = (x & UINT64_C(0x00003fff00003fff)) | (x & UINT64_C(0x3fff00003fff0000)) >> 2;
    x = (x & UINT64_C(0x000000000fffffff)) | (x & UINT64_C(0x0fffffff00000000)) >> 4;
    *value = x;
    return p + bits / 8;
}

static bool next_fixed(struct rp_proto_cursor *c, struct rp_proto_item *item, const uint8_t *p)
{
    size_t n = item->wire == RP_WIRE_FIXED64 ? 8 : 4;

    if ((size_t)(c->end - p) < n)
        return stop(c, FIXED, p, item->number, n);
    item->value = n == 8 ? rp_proto_load64(p) : rp_proto_load32(p);
    c->at = p + n;
    return true;
}

/* Moves past the end tag of a group whose content begins at p. Inner groups are kept on a small
   stack. */
static bool next_group(struct rp_proto_cursor *c, struct rp_proto_item *item, const uint8_t *p)
{
    struct rp_proto_cursor in = *c;
    uint32_t open[GROUP_DEPTH];
    uint32_t n = 0;

    open[n++] = item->number;
    in.at = p;
    while (in.at < in.end) {
        const uint8_t *begin = in.at;
        uint64_t tag = 0;
        const uint8_t *q = rp_proto_varint_at(begin, in.end, &tag);

        if (!q)
            return stop_varint(c, begin, item->number);
        if ((tag & 7) == RP_WIRE_GROUP_END) {
            if (tag >> 3 != open[--n])
                return stop(c, END, begin, item->number, tag >> 3);
            in.at = q;
            if (n == 0) {
                item->bytes = (struct rp_bytes){p, (size_t)(begin - p)};
                c->at = q;
                return true;
            }
        } else if ((tag & 7) == RP_WIRE_GROUP && tag >= 8 && tag <= UINT32_MAX) {
            if (n == GROUP_DEPTH)
                return stop(c, GROUPS, begin, item->number, GROUP_DEPTH);
            open[n++] = (uint32_t)(tag >> 3);
            in.at = q;
        } else {
            struct rp_proto_item skipped;

            if (!rp_proto_next(&in, &skipped)) {
                *c = in;
                return false;
            }
        }
    }
    return stop(c, OPEN, item->begin, item->number, 0);
}

bool rp_proto_next_rare(struct rp_proto_cursor *c, struct rp_proto_item *item, const uint8_t *p)
{
    uint64_t tag = 0;

    item->bytes = (struct rp_bytes){p, 0};
    item->value = 0;
    rp_proto_varint_at(item->begin, c->end, &tag);
    if (tag > UINT32_MAX || tag < 8)
        return stop(c, NUMBER, item->begin, 0, tag >> 3);
    switch (item->wire) {
    case RP_WIRE_FIXED64:
    case RP_WIRE_FIXED32:
        return next_fixed(c, item, p);
    case RP_WIRE_GROUP:
        return next_group(c, item, p);
    case RP_WIRE_GROUP_END:
        return stop(c, END, item->begin, 0, item->number);
    default:
        return stop(c, WIRE, item->begin, item->number, item->wire);
    }
}

bool rp_proto_packed_varint(struct rp_proto_cursor *c, uint64_t *value)
{
    if (c->at >= c->end)
        return false;
    const uint8_t *q = rp_proto_varint_at(c->at, c->end, value);
    if (!q)
        return stop_varint(c, c->at, 0);
    c->at = q;
    return true;
}

bool rp_proto_packed_fixed32(struct rp_proto_cursor *c, uint32_t *value)
{
    if (c->at >= c->end)
        return false;
    if (c->end - c->at < 4)
        return stop(c, FIXED, c->at, 0, 4);
    *value = rp_proto_load32(c->at);
    c->at += 4;
    return true;
}

bool rp_proto_packed_fixed64(struct rp_proto_cursor *c, uint64_t *value)
{
    if (c->at >= c->end)
        return false;
    if (c->end - c->at < 8)
        return stop(c, FIXED, c->at, 0, 8);
    *value = rp_proto_load64(c->at);
    c->at += 8;
    return true;
}

bool rp_proto_take(const struct rp_proto_slot *slots, const struct rp_proto_item *item)
{
    bool varint = item->wire == RP_WIRE_VARINT;

    for (; slots->number; slots++) {
        if (slots->number != item->number)
            continue;
        if (slots->bytes && item->wire == RP_WIRE_BYTES)
            *slots->bytes = item->bytes;
        else if (slots->u64 && varint)
            *slots->u64 = item->value;
        else if (slots->i64 && varint)
            *slots->i64 = (int64_t)item->value;
        else if (slots->flag && varint)
            *slots->flag = item->value != 0;
        else if (slots->f32 && item->wire == RP_WIRE_FIXED32)
            *slots->f32 = (double)rp_proto_float(item->value);
        else if (slots->f64 && item->wire == RP_WIRE_FIXED64)
            *slots->f64 = rp_proto_double(item->value);
        else
            continue;
        return true;
    }
    return false;
}

enum rp_code rp_proto_read(struct rp_proto_cursor c, const struct rp_proto_slot *slots,
                           struct rp_err *err)
{
    struct rp_proto_item item;

    while (rp_proto_next(&c, &item))
        rp_proto_take(slots, &item);
    return rp_proto_finish(&c, err);
}

enum rp_code rp_proto_numbers(struct rp_proto_cursor c, uint64_t *values, uint32_t n,
                              struct rp_err *err)
{
    struct rp_proto_item item;

    memset(values, 0, n * sizeof *values);
    while (rp_proto_next(&c, &item))
        if (item.number < n && item.wire == RP_WIRE_VARINT)
            values[item.number] = item.value;
    return rp_proto_finish(&c, err);
}

struct rp_proto_cursor rp_proto_list(const struct rp_proto_cursor *c,
                                     const struct rp_proto_item *item)
{
    const uint8_t *p = item->begin;

    if (item->wire == RP_WIRE_BYTES)
        return rp_proto_enter(c, item);
    if (item->wire != RP_WIRE_VARINT)
        return rp_proto_cursor(p, 0, rp_proto_offset(c, p), 0);
    while (*p++ >= 0x80) /* the tag */
        ;
    return rp_proto_cursor(p, (size_t)(c->at - p), rp_proto_offset(c, p), 0);
}

struct rp_bytes rp_proto_find_nth(struct rp_bytes message, uint32_t number, size_t occurrence)
{
    struct rp_proto_cursor c = rp_proto_cursor(message.at, message.n, 0, 1);
    struct rp_proto_item item;

    while (rp_proto_next(&c, &item))
        if (item.number == number && item.wire == RP_WIRE_BYTES && occurrence-- == 0)
            return item.bytes;
    return (struct rp_bytes){(const uint8_t *)"", 0};
}

struct rp_bytes rp_proto_find(struct rp_bytes message, uint32_t number)
{
    return rp_proto_find_nth(message, number, 0);
}

static enum rp_code set(struct rp_err *err, enum rp_code code, const struct rp_proto_cursor *c,
                        const char *fmt, ...) RP_PRINTF(4, 5);

/* Sets the message "field 3 of message at byte 812: ...". */
static enum rp_code set(struct rp_err *err, enum rp_code code, const struct rp_proto_cursor *c,
                        const char *fmt, ...)
{
    char text[160];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (c->number)
        return rp_err_set_at(err, code, c->bad_at,
                             "field %" PRIu32 " of message at byte %" PRIu64 ": %s", c->number,
                             c->offset, text);
    return rp_err_set_at(err, code, c->bad_at, "message at byte %" PRIu64 ": %s", c->offset, text);
}

enum rp_code rp_proto_finish(const struct rp_proto_cursor *c, struct rp_err *err)
{
    uint64_t end = rp_proto_offset(c, c->end), at = c->bad_at, n = c->detail;

    switch ((enum why)c->why) {
    case FINE:
        return RP_OK;
    case CUT_VARINT:
        return set(err, RP_FORMAT, c,
                   "varint at byte %" PRIu64 " is truncated by the end at byte %" PRIu64, at, end);
    case LONG_VARINT:
        return set(err, RP_FORMAT, c, "varint at byte %" PRIu64 " does not fit 64 bits", at);
    case LENGTH:
        return set(err, RP_FORMAT, c, "length %" PRIu64 " runs past the end at byte %" PRIu64, n,
                   end);
    case FIXED:
        return set(err, RP_FORMAT, c,
                   "value of %" PRIu64 " bytes at byte %" PRIu64
                   " runs past the end at byte %" PRIu64,
                   n, at, end);
    case WIRE:
        return set(err, RP_FORMAT, c, "wire type %" PRIu64 " at byte %" PRIu64 " does not exist", n,
                   at);
    case NUMBER:
        return set(err, RP_FORMAT, c,
                   "field number %" PRIu64 " at byte %" PRIu64 " is not in 1 to %" PRIu32, n, at,
                   MAX_NUMBER);
    case END:
        return set(err, RP_FORMAT, c,
                   "end of group %" PRIu64 " at byte %" PRIu64 " without its start", n, at);
    case OPEN:
        return set(err, RP_FORMAT, c,
                   "group at byte %" PRIu64 " is not closed before the end at byte %" PRIu64, at,
                   end);
    case DEPTH:
        return set(err, RP_LIMIT, c, "messages are nested too deeply at byte %" PRIu64, at);
    default:
        return set(err, RP_LIMIT, c,
                   "groups are nested more than %" PRIu64 " deep at byte %" PRIu64, n, at);
    }
}
