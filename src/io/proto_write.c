/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes grow in a vector. A nested message begins with one byte for its length; where it turns
 * out longer than 127 bytes, its end moves it to make room. That is a memmove a level, at memory
 * speed, and saves a pass that measures every message first.
 */
#include "io/proto_write.h"

#define MAX_VARINT 10

/* n bytes at the end, to be filled, or NULL after a failure. */
static inline uint8_t *take(struct rp_proto_writer *w, size_t n)
{
    uint8_t *at;

    if (w->code != RP_OK)
        return NULL;
    w->code = rp_vec_reserve(&w->bytes, n, NULL);
    if (w->code != RP_OK)
        return NULL;
    at = w->bytes.at + w->bytes.n;
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
    size_t n;

    if (!at)
        return;
    n = put_varint_at(at, RP_PROTO_KEY(number, RP_WIRE_VARINT));
    n += put_varint_at(at + n, value);
    w->bytes.n -= (size_t)2 * MAX_VARINT - n;
}

static uint64_t zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

void rp_proto_put_sint(struct rp_proto_writer *w, uint32_t number, int64_t value)
{
    rp_proto_put_varint(w, number, zigzag(value));
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

void rp_proto_put_double(struct rp_proto_writer *w, uint32_t number, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    rp_proto_put_fixed64(w, number, bits);
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
    uint8_t *content;

    if (more)
        take(w, more);
    if (w->code != RP_OK)
        return;
    content = w->bytes.at + begun;
    if (more)
        memmove(content + more, content, n);
    put_varint_at(content - 1, n);
}

/* ---- by tables ---- */

static uint64_t load_value(uint8_t type, const void *at)
{
    switch ((enum rp_proto_type)type) {
    case RP_PROTO_BOOL:
        return *(const bool *)at;
    case RP_PROTO_INT32:
        return (uint64_t)(int64_t) * (const int32_t *)at;
    case RP_PROTO_SINT32:
        return (uint32_t)zigzag(*(const int32_t *)at);
    case RP_PROTO_SINT64:
        return zigzag(*(const int64_t *)at);
    case RP_PROTO_FLOAT:
    case RP_PROTO_UINT32:
    case RP_PROTO_FIXED32:
        return *(const uint32_t *)at;
    default:
        return *(const uint64_t *)at;
    }
}

static void add_value(struct rp_proto_writer *w, uint8_t type, const void *at)
{
    uint64_t value = load_value(type, at);

    switch (rp_proto_traits[type].wire) {
    case RP_WIRE_FIXED32:
        rp_proto_add_fixed32(w, (uint32_t)value);
        break;
    case RP_WIRE_FIXED64:
        rp_proto_add_fixed64(w, value);
        break;
    default:
        rp_proto_add_varint(w, value);
        break;
    }
}

static void put_number(struct rp_proto_writer *w, const struct rp_proto_field *field,
                       uint64_t value)
{
    switch (rp_proto_traits[field->type].wire) {
    case RP_WIRE_FIXED32:
        rp_proto_put_fixed32(w, field->number, (uint32_t)value);
        break;
    case RP_WIRE_FIXED64:
        rp_proto_put_fixed64(w, field->number, value);
        break;
    default:
        rp_proto_put_varint(w, field->number, value);
        break;
    }
}

/* One value with its tag; of a message, at is the struct itself. */
static void put_value(struct rp_proto_writer *w, const struct rp_proto_field *field, const void *at)
{
    const struct rp_bytes *bytes = at;
    size_t begun;

    if (field->type == RP_PROTO_MESSAGE) {
        begun = rp_proto_begin(w, field->number);
        rp_proto_put_struct(w, field->message, at);
        rp_proto_end(w, begun);
    } else if (field->type == RP_PROTO_BYTES) {
        rp_proto_put_bytes(w, field->number, bytes->at, bytes->n);
    } else {
        put_number(w, field, load_value(field->type, at));
    }
}

static void put_list(struct rp_proto_writer *w, const struct rp_proto_field *field,
                     const struct rp_proto_any_list *list)
{
    size_t size = rp_proto_element_size(field), begun = 0;
    bool packed = field->flags & RP_PROTO_PACKED;

    if (list->n == 0)
        return;
    if (packed)
        begun = rp_proto_begin(w, field->number);
    for (uint32_t i = 0; i < list->n && w->code == RP_OK; i++) {
        const char *element = (const char *)list->at + size * i;

        if (packed)
            add_value(w, field->type, element);
        else
            put_value(w, field, element);
    }
    if (packed)
        rp_proto_end(w, begun);
}

/* Fields of a oneof may share their place: only the mark tells them apart. */
static bool is_there(const struct rp_proto_field *field, const void *at, bool marked)
{
    const struct rp_bytes *bytes = at;

    if (field->oneof && !marked)
        return false;
    if (field->type == RP_PROTO_MESSAGE)
        return *(const void *const *)at != NULL;
    if (field->type == RP_PROTO_BYTES)
        return marked || bytes->n > 0;
    return marked || load_value(field->type, at) != 0;
}

void rp_proto_put_struct(struct rp_proto_writer *w, const struct rp_proto_message *type,
                         const void *message)
{
    const struct rp_proto_head *head = message;

    for (uint32_t i = 0; i < type->nfields; i++) {
        const struct rp_proto_field *field = &type->fields[i];
        const void *at = (const char *)message + field->offset;
        bool marked = i < 64 && (head->has >> i & 1);

        if (field->flags & RP_PROTO_LIST)
            put_list(w, field, at);
        else if (is_there(field, at, marked))
            put_value(w, field, field->type == RP_PROTO_MESSAGE ? *(const void *const *)at : at);
    }
    if (!head->last)
        return;
    for (const struct rp_proto_unknown *u = head->last->next;; u = u->next) {
        rp_proto_add_bytes(w, u->bytes.at, u->bytes.n);
        if (u == head->last)
            break;
    }
}
