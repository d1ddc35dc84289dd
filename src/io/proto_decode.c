/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages into structs, by tables. One pass over the bytes, recursive over nested messages down to
 * limits.depth. A list grows by the number of its elements that follow one another from here on (a
 * quick look ahead over their tags), so a list as writers make it, in one run, is allocated once
 * and exactly; scattered elements double it, so no order costs more than linear time.
 *
 * A field is found by its number: at its own index where numbers are dense, then where the last one
 * was or next to it, then by binary search.
 */
#include "io/proto.h"

#include "base/order.h"
#include <inttypes.h>
#include <stdio.h>

struct decoder {
    struct rp_arena *arena;
    struct rp_err *err;
    uint64_t room;  /* list elements and messages that may still be made */
    uint64_t limit; /* of which there were at the beginning */
};

static enum rp_code decode_message(struct decoder *d, const struct rp_proto_message *type,
                                   struct rp_proto_cursor *c, void *message);

static const struct rp_proto_field *search(const struct rp_proto_message *type, uint32_t number)
{
    size_t i;

    RP_LOWER_BOUND(i, type->nfields, type->fields[i].number < number);
    return i < type->nfields && type->fields[i].number == number ? &type->fields[i] : NULL;
}

static const struct rp_proto_field *find_field(const struct rp_proto_message *type, uint32_t number,
                                               uint32_t hint)
{
    if (number <= type->nfields && type->fields[number - 1].number == number)
        return &type->fields[number - 1];
    for (uint32_t i = hint; i < type->nfields && i < hint + 2; i++)
        if (type->fields[i].number == number)
            return &type->fields[i];
    return search(type, number);
}

static uint64_t bit(const struct rp_proto_message *type, const struct rp_proto_field *field)
{
    ptrdiff_t i = field - type->fields;

    return i < 64 ? UINT64_C(1) << i : 0;
}

static enum rp_code spend_elements(struct decoder *d, uint64_t n, const struct rp_proto_cursor *c)
{
    if (n > d->room)
        return rp_err_set_at(d->err, RP_LIMIT, c->offset,
                             "message at byte %" PRIu64 ": more than %" PRIu64 " elements in all",
                             c->offset, d->limit);
    d->room -= n;
    return RP_OK;
}

/* Room for `more` elements behind the ones that are there; new ones are zero. */
static enum rp_code list_reserve(struct decoder *d, const struct rp_proto_field *field,
                                 struct rp_proto_any_list *list, uint64_t more,
                                 const struct rp_proto_cursor *c)
{
    size_t size = rp_proto_element_size(field);
    uint64_t cap = list->n + more;
    char *at;

    if (cap <= list->cap)
        return RP_OK;
    RP_TRY(spend_elements(d, more, c));
    if (cap < (uint64_t)list->n * 2)
        cap = (uint64_t)list->n * 2;
    if (cap > UINT32_MAX)
        return rp_err_set_at(d->err, RP_LIMIT, c->offset,
                             "message at byte %" PRIu64 ": list '%s' is over 2^32 elements",
                             c->offset, field->name);
    at = rp_arena_alloc(d->arena, size * cap, _Alignof(max_align_t));
    if (!at)
        return rp_err_nomem(d->err, "decoding a message");
    if (list->n)
        memcpy(at, list->at, size * list->n);
    memset(at + size * list->n, 0, size * (cap - list->n));
    list->at = at;
    list->cap = (uint32_t)cap;
    return RP_OK;
}

/* How many fields with the tag of the item follow it directly, itself included. Unsound bytes end
   the run: reading them says what is wrong. */
static uint64_t run_length(const struct rp_proto_cursor *c, const struct rp_proto_item *item)
{
    struct rp_proto_cursor ahead = *c;
    struct rp_proto_item next;
    uint64_t n = 1;

    while (rp_proto_next(&ahead, &next) && next.number == item->number && next.wire == item->wire)
        n++;
    return n;
}

static void store_value(uint8_t type, void *at, const struct rp_proto_item *item)
{
    uint64_t v = item->value;

    switch ((enum rp_proto_type)type) {
    case RP_PROTO_BYTES:
        *(struct rp_bytes *)at = item->bytes;
        break;
    case RP_PROTO_BOOL:
        *(bool *)at = v != 0;
        break;
    case RP_PROTO_SINT64:
        *(int64_t *)at = rp_proto_zigzag(v);
        break;
    case RP_PROTO_SINT32:
        *(int32_t *)at = (int32_t)rp_proto_zigzag((uint32_t)v);
        break;
    case RP_PROTO_FLOAT:
    case RP_PROTO_INT32:
    case RP_PROTO_UINT32:
    case RP_PROTO_FIXED32:
        *(uint32_t *)at = (uint32_t)v;
        break;
    default: /* eight bytes as they are */
        *(uint64_t *)at = v;
        break;
    }
}

/* A packed list; the cursor stands in its content. */
static enum rp_code read_packed(struct decoder *d, const struct rp_proto_field *field,
                                struct rp_proto_cursor *c, struct rp_proto_any_list *list)
{
    size_t size = rp_proto_element_size(field);
    struct rp_bytes content = {c->at, (size_t)(c->end - c->at)};
    struct rp_proto_item item;
    uint32_t v32 = 0;
    uint8_t wire = rp_proto_traits[field->type].wire;
    uint64_t n = wire == RP_WIRE_VARINT    ? rp_proto_count_varints(content)
                 : wire == RP_WIRE_FIXED32 ? content.n / 4
                                           : content.n / 8;

    RP_TRY(list_reserve(d, field, list, n, c));
    for (;;) {
        if (wire == RP_WIRE_VARINT    ? !rp_proto_packed_varint(c, &item.value)
            : wire == RP_WIRE_FIXED32 ? !rp_proto_packed_fixed32(c, &v32)
                                      : !rp_proto_packed_fixed64(c, &item.value))
            break;
        if (wire == RP_WIRE_FIXED32)
            item.value = v32;
        store_value(field->type, (char *)list->at + size * list->n++, &item);
    }
    return rp_proto_finish(c, d->err);
}

static enum rp_code read_list(struct decoder *d, const struct rp_proto_field *field,
                              struct rp_proto_cursor *c, const struct rp_proto_item *item,
                              struct rp_proto_any_list *list)
{
    struct rp_proto_cursor inner;
    char *element;

    if (item->wire != rp_proto_traits[field->type].wire) {
        inner = rp_proto_enter(c, item);
        RP_TRY(read_packed(d, field, &inner, list));
        return RP_OK;
    }
    if (list->n == list->cap)
        RP_TRY(list_reserve(d, field, list, run_length(c, item), c));
    element = (char *)list->at + rp_proto_element_size(field) * list->n++;
    if (field->type != RP_PROTO_MESSAGE) {
        store_value(field->type, element, item);
        return RP_OK;
    }
    inner = rp_proto_enter(c, item);
    return decode_message(d, field->message, &inner, element);
}

/* Of a oneof only the last one counts. */
static void clear_rivals(const struct rp_proto_message *type, const struct rp_proto_field *field,
                         char *message)
{
    struct rp_proto_head *head = (void *)message;

    for (uint64_t set = head->has & ~bit(type, field); set; set &= set - 1) {
        const struct rp_proto_field *f = &type->fields[__builtin_ctzll(set)];

        if (f->oneof != field->oneof)
            continue;
        memset(message + f->offset, 0, rp_proto_traits[f->type].size);
        head->has &= ~bit(type, f);
    }
}

static enum rp_code read_singular(struct decoder *d, const struct rp_proto_message *type,
                                  const struct rp_proto_field *field, struct rp_proto_cursor *c,
                                  const struct rp_proto_item *item, char *message)
{
    struct rp_proto_cursor inner;
    void **at = (void *)(message + field->offset);

    if (field->oneof)
        clear_rivals(type, field, message);
    ((struct rp_proto_head *)(void *)message)->has |= bit(type, field);
    if (field->type != RP_PROTO_MESSAGE) {
        store_value(field->type, at, item);
        return RP_OK;
    }
    if (!*at) {
        RP_TRY(spend_elements(d, 1, c));
        *at = rp_arena_calloc(d->arena, 1, field->message->size, _Alignof(max_align_t));
        if (!*at)
            return rp_err_nomem(d->err, "decoding a message");
    }
    inner = rp_proto_enter(c, item);
    return decode_message(d, field->message, &inner, *at);
}

static enum rp_code keep_unknown(struct decoder *d, const struct rp_proto_cursor *c,
                                 const struct rp_proto_item *item, struct rp_proto_head *head)
{
    struct rp_bytes bytes = {item->begin, (size_t)(c->at - item->begin)};
    struct rp_proto_unknown *kept = head->last;

    if (kept && kept->bytes.at + kept->bytes.n == bytes.at) {
        kept->bytes.n += bytes.n;
        return RP_OK;
    }
    RP_TRY(spend_elements(d, 1, c));
    kept = RP_ARENA_NEW(d->arena, struct rp_proto_unknown, 1);
    if (!kept)
        return rp_err_nomem(d->err, "decoding a message");
    *kept = (struct rp_proto_unknown){head->last ? head->last->next : kept, bytes};
    if (head->last)
        head->last->next = kept;
    head->last = kept;
    return RP_OK;
}

/* Whether the field can be read from that wire type: its own, or packed. */
static bool readable(const struct rp_proto_field *field, uint32_t wire)
{
    if (wire == rp_proto_traits[field->type].wire)
        return true;
    return (field->flags & RP_PROTO_LIST) && wire == RP_WIRE_BYTES;
}

static enum rp_code decode_message(struct decoder *d, const struct rp_proto_message *type,
                                   struct rp_proto_cursor *c, void *message)
{
    struct rp_proto_item item;
    enum rp_code code;
    uint32_t hint = 0;

    while (rp_proto_next(c, &item)) {
        const struct rp_proto_field *field = find_field(type, item.number, hint);

        if (!field || !readable(field, item.wire)) {
            RP_TRY(keep_unknown(d, c, &item, message));
            continue;
        }
        hint = (uint32_t)(field - type->fields);
        if (field->flags & RP_PROTO_LIST)
            RP_TRY(read_list(d, field, c, &item, (void *)((char *)message + field->offset)));
        else
            RP_TRY(read_singular(d, type, field, c, &item, message));
    }
    code = rp_proto_finish(c, d->err);
    return code == RP_OK ? RP_OK : rp_err_prefix(d->err, code, "%s", type->name);
}

enum rp_code rp_proto_decode(const struct rp_proto_message *type, const void *bytes, size_t n,
                             const struct rp_limits *limits, struct rp_arena *arena, void *message,
                             struct rp_err *err)
{
    struct rp_limits use = limits ? *limits : RP_LIMITS_DEFAULT;
    struct decoder d = {arena, err, use.events, use.events};
    struct rp_proto_cursor c = rp_proto_cursor(bytes, n, 0, use.depth);

    if (n > use.input_bytes)
        return rp_err_set(err, RP_LIMIT, "%s: %zu bytes are over the limit of %" PRIu64, type->name,
                          n, use.input_bytes);
    return decode_message(&d, type, &c, message);
}

bool rp_proto_has(const struct rp_proto_message *type, const void *message, uint32_t number)
{
    const struct rp_proto_field *field = search(type, number);
    const struct rp_proto_head *head = message;

    return field && (head->has & bit(type, field)) != 0;
}

void rp_proto_set(const struct rp_proto_message *type, void *message, uint32_t number)
{
    const struct rp_proto_field *field = search(type, number);
    struct rp_proto_head *head = message;

    if (!field)
        return;
    if (field->oneof)
        for (uint32_t i = 0; i < type->nfields && i < 64; i++)
            if (type->fields[i].oneof == field->oneof)
                head->has &= ~bit(type, &type->fields[i]);
    head->has |= bit(type, field);
}

struct chain { /* messages being checked, so that one inside itself ends the walk */
    const struct chain *up;
    const struct rp_proto_message *type;
};

static const char *wrong_field(const struct rp_proto_message *type, uint32_t i)
{
    const struct rp_proto_field *f = &type->fields[i];
    bool list = f->flags & RP_PROTO_LIST;
    bool number = f->type < RP_PROTO_BYTES;

    if (f->number == 0 || f->number >= UINT32_C(1) << 29 || (i && f[-1].number >= f->number))
        return "numbers are not ascending from 1 on";
    if (f->type > RP_PROTO_MESSAGE)
        return "no such type";
    if (f->size != (list ? sizeof(struct rp_proto_any_list) : rp_proto_traits[f->type].size))
        return "the member does not have the size of its type";
    if (f->offset < sizeof(struct rp_proto_head) || (uint64_t)f->offset + f->size > type->size)
        return "the member is not inside the struct, after its header";
    if ((f->type == RP_PROTO_MESSAGE) != (f->message != NULL))
        return "a message, and only a message, names its type";
    if ((f->flags & RP_PROTO_PACKED) && !(list && number))
        return "only lists of numbers can be packed";
    if (f->oneof && (list || i >= 64))
        return "a oneof holds singular fields among the first 64";
    return NULL;
}

static bool check_chain(const struct chain *chain, char *why, size_t cap)
{
    const struct rp_proto_message *type = chain->type;

    if (type->size % _Alignof(uint64_t)) {
        snprintf(why, cap, "%s: the size is not a multiple of 8 bytes", type->name);
        return false;
    }
    for (uint32_t i = 0; i < type->nfields; i++) {
        const char *wrong = wrong_field(type, i);
        struct chain inner = {chain, type->fields[i].message};
        const struct chain *up = chain;

        if (wrong) {
            snprintf(why, cap, "%s.%s: %s", type->name, type->fields[i].name, wrong);
            return false;
        }
        while (up && up->type != inner.type)
            up = up->up;
        if (inner.type && !up && !check_chain(&inner, why, cap))
            return false;
    }
    return true;
}

bool rp_proto_check(const struct rp_proto_message *type, char *why, size_t cap)
{
    struct chain root = {NULL, type};

    return check_chain(&root, why, cap);
}
