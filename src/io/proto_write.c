/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes grow in a vector. A nested message begins with one byte for its length; if it turns out
 * to be longer than 127 bytes, its end moves it to make room. That is one memmove per level, at
 * memory speed, and saves a pass that measures every message first.
 */
#include "io/proto_write.h"

#define MAX_VARINT 10

/* Appends n bytes that are to be filled; returns NULL after a failure. */
static inline uint8_t *take(struct rp_proto_writer *w, size_t n)
{
    if (w->code != RP_OK)
        return NULL;
    w->code = rp_vec_reserve(&w->bytes, n, NULL);
    if (w->code != RP_OK)
        return NULL;
    uint8_t *at = w->bytes.at + w->bytes.n;
    w->bytes.n += n;
    return at;
}

static size_t put_varint_at(uint8_t *at, uint64_t value)
{
    size_t n = 0;

    while (value >= 0x80) {
        at[n++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    at[n++] = (uint8_t)value;
    return n;
}

static size_t varint_size(uint64_t value)
{
    return (size_t)(63 - __builtin_clzll(value | 1)) / 7 + 1;
}

void rp_proto_writer_release(struct rp_proto_writer *w)
{
    rp_vec_release(&w->bytes);
    w->code = RP_OK;
}

void rp_proto_rewind(struct rp_proto_writer *w)
{
    w->bytes.n = 0;
    w->code = RP_OK;
}

enum rp_code rp_proto_written(const struct rp_proto_writer *w, struct rp_bytes *bytes,
                              struct rp_err *err)
{
    *bytes = (struct rp_bytes){NULL, 0};
    if (w->code != RP_OK)
        return rp_err_nomem(err, "encoding a message");
    *bytes = (struct rp_bytes){w->bytes.at, w->bytes.n};
    return RP_OK;
}

void rp_proto_add_varint(struct rp_proto_writer *w, uint64_t value)
{
    uint8_t *at = take(w, MAX_VARINT);

    if (at)
        w->bytes.n -= MAX_VARINT - put_varint_at(at, value);
}

void rp_proto_add_fixed32(struct rp_proto_writer *w, uint32_t value)
{
    uint8_t *at = take(w, 4);

    for (unsigned i = 0; at && i < 4; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

void rp_proto_add_fixed64(struct rp_proto_writer *w, uint64_t value)
{
    uint8_t *at = take(w, 8);

    for (unsigned i = 0; at && i < 8; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

void rp_proto_add_bytes(struct rp_proto_writer *w, const void *bytes, size_t n)
{
    uint8_t *at = n ? take(w, n) : NULL;

    if (at)
        memcpy(at, bytes, n);
}

static void add_tag(struct rp_proto_writer *w, uint32_t number, uint32_t wire)
{
    rp_proto_add_varint(w, RP_PROTO_KEY(number, wire));
}

void rp_proto_put_varint(struct rp_proto_writer *w, uint32_t number, uint64_t value)
{
    uint8_t *at = take(w, (size_t)2 * MAX_VARINT);

    if (!at)
        return;
    size_t n = put_varint_at(at, RP_PROTO_KEY(number, RP_WIRE_VARINT));
    n += put_varint_at(at + n, value);
    w->bytes.n -= (size_t)2 * MAX_VARINT - n;
}

void rp_proto_put_fixed32(struct rp_proto_writer *w, uint32_t number, uint32_t value)
{
    add_tag(w, number, RP_WIRE_FIXED32);
    rp_proto_add_fixed32(w, value);
}

void rp_proto_put_fixed64(struct rp_proto_writer *w, uint32_t number, uint64_t value)
{
    add_tag(w, number, RP_WIRE_FIXED64);
    rp_proto_add_fixed64(w, value);
}

void rp_proto_put_float(struct rp_proto_writer *w, uint32_t number, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    rp_proto_put_fixed32(w, number, bits);
}

void rp_proto_put_bytes(struct rp_proto_writer *w, uint32_t number, const void *bytes, size_t n)
{
    add_tag(w, number, RP_WIRE_BYTES);
    rp_proto_add_varint(w, n);
    rp_proto_add_bytes(w, bytes, n);
}

void rp_proto_put_text(struct rp_proto_writer *w, uint32_t number, const char *text)
{
    rp_proto_put_bytes(w, number, text, strlen(text));
}

size_t rp_proto_begin(struct rp_proto_writer *w, uint32_t number)
{
    add_tag(w, number, RP_WIRE_BYTES);
    take(w, 1);
    return w->bytes.n;
}

void rp_proto_end(struct rp_proto_writer *w, size_t begun)
{
    size_t n = w->bytes.n - begun, more = varint_size(n) - 1;

    if (more)
        take(w, more);
    if (w->code != RP_OK)
        return;
    uint8_t *content = w->bytes.at + begun;
    if (more)
        memmove(content + more, content, n);
    put_varint_at(content - 1, n);
}
