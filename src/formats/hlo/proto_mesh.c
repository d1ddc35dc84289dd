/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of collectives that run along the axes of a named mesh, between
 * MeshAxesReplicaGroupListProto and HLO's words, both ways:
 *
 *   mesh['a'=2,'b'=4] {'b'}    mesh['a'=8], device_ids=([2,4]T(1,0)) {'a':(2)4}
 */
#include "formats/hlo/proto.h"
#include "formats/hlo/proto_put.h"

#include <stdlib.h>
#include <string.h>

#define AXES 64
enum { FIELD = 93 };

/* ---- from messages ---- */

struct axes {
    struct rp_bytes name[AXES];
    size_t n;
};

static enum rp_code put_axis(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                             const struct rp_proto_item *item, struct axes *axes)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item);
    struct rp_bytes name = {0};
    struct rp_proto_item it;
    uint64_t size = 0;

    while (rp_proto_next(&c, &it)) {
        if (it.number == 1)
            name = it.bytes;
        else if (it.number == 2)
            size = it.value;
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    if (axes->n == AXES)
        return rp_err_set(r->err, RP_LIMIT, "a mesh of more than %d axes", AXES);
    RP_TRY(hlo_putf(r, "%s'%.*s'=%llu", axes->n ? "," : "", (int)name.n, (const char *)name.at,
                    (unsigned long long)size));
    axes->name[axes->n++] = name;
    return RP_OK;
}

static enum rp_code put_order(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                              const struct rp_proto_item *item)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item);
    struct rp_bytes shape = {0}, order = {0};
    struct rp_proto_item it;

    while (rp_proto_next(&c, &it)) {
        if (it.number == 1)
            shape = it.bytes;
        else if (it.number == 2)
            order = it.bytes;
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    RP_TRY(hlo_putf(r, ", device_ids=(["));
    RP_TRY(hlo_put_ints(r, shape, ","));
    RP_TRY(hlo_putf(r, "]"));
    if (order.n) {
        RP_TRY(hlo_putf(r, "T("));
        RP_TRY(hlo_put_ints(r, order, ","));
        RP_TRY(hlo_putf(r, ")"));
    }
    return hlo_putf(r, ")");
}

static enum rp_code put_mesh(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                             const struct rp_proto_item *item, struct axes *axes)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item);
    struct rp_proto_item it;

    RP_TRY(hlo_putf(r, "mesh["));
    while (rp_proto_next(&c, &it))
        if (it.number == 1 && it.wire == RP_WIRE_BYTES)
            RP_TRY(put_axis(r, &c, &it, axes));
    RP_TRY(rp_proto_finish(&c, r->err));
    RP_TRY(hlo_putf(r, "]"));
    c = rp_proto_enter(outer, item);
    while (rp_proto_next(&c, &it)) {
        if (it.number == 2 && it.wire == RP_WIRE_BYTES && it.bytes.n) {
            RP_TRY(hlo_putf(r, ", device_ids=("));
            RP_TRY(hlo_put_ints(r, it.bytes, ","));
            RP_TRY(hlo_putf(r, ")"));
        } else if (it.number == 3 && it.wire == RP_WIRE_BYTES) {
            RP_TRY(put_order(r, &c, &it));
        }
    }
    return rp_proto_finish(&c, r->err);
}

static enum rp_code put_ref(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                            const struct rp_proto_item *item, const struct axes *axes, bool first)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item), sub;
    uint64_t which = 0, before = 0, size = 0;
    struct rp_proto_item it, part;

    while (rp_proto_next(&c, &it)) {
        if (it.number == 1)
            which = it.value;
        if (it.number != 2 || it.wire != RP_WIRE_BYTES)
            continue;
        sub = rp_proto_enter(&c, &it);
        while (rp_proto_next(&sub, &part)) {
            before = part.number == 1 ? part.value : before;
            size = part.number == 2 ? part.value : size;
        }
        RP_TRY(rp_proto_finish(&sub, r->err));
    }
    RP_TRY(rp_proto_finish(&c, r->err));
    if (which >= axes->n)
        return rp_err_set(r->err, RP_FORMAT, "groups along axis %llu of a mesh of %zu",
                          (unsigned long long)which, axes->n);
    RP_TRY(hlo_putf(r, "%s'%.*s'", first ? "" : ",", (int)axes->name[which].n,
                    (const char *)axes->name[which].at));
    return size ? hlo_putf(r, ":(%llu)%llu", (unsigned long long)before, (unsigned long long)size)
                : RP_OK;
}

enum rp_code hlo_proto_mesh_groups(struct hlo_proto *r, const struct rp_proto_cursor *outer,
                                   const struct rp_proto_item *item)
{
    struct rp_proto_cursor c = rp_proto_enter(outer, item);
    struct axes axes = {.n = 0};
    struct rp_proto_item it;
    bool first = true;

    while (rp_proto_next(&c, &it))
        if (it.number == 1 && it.wire == RP_WIRE_BYTES)
            RP_TRY(put_mesh(r, &c, &it, &axes));
    RP_TRY(rp_proto_finish(&c, r->err));
    RP_TRY(hlo_putf(r, " {"));
    c = rp_proto_enter(outer, item);
    while (rp_proto_next(&c, &it))
        if (it.number == 2 && it.wire == RP_WIRE_BYTES) {
            RP_TRY(put_ref(r, &c, &it, &axes, first));
            first = false;
        }
    RP_TRY(rp_proto_finish(&c, r->err));
    RP_TRY(hlo_putf(r, "}"));
    return hlo_put_attr(r, RP_ATTR_REPLICA_GROUPS, false);
}

/* ---- to messages ---- */

struct text {
    const char *at, *end;
};

static bool next(struct text *t, char c)
{
    while (t->at < t->end && (*t->at == ' ' || *t->at == ','))
        t->at++;
    if (t->at == t->end || *t->at != c)
        return false;
    t->at++;
    return true;
}

static bool next_word(struct text *t, const char *word)
{
    size_t n = strlen(word);

    while (t->at < t->end && (*t->at == ' ' || *t->at == ','))
        t->at++;
    if ((size_t)(t->end - t->at) < n || memcmp(t->at, word, n) != 0)
        return false;
    t->at += n;
    return true;
}

static bool next_number(struct text *t, uint64_t *value)
{
    const char *from = t->at;

    *value = 0;
    while (t->at < t->end && *t->at >= '0' && *t->at <= '9' && t->at - from < 18)
        *value = *value * 10 + (uint64_t)(*t->at++ - '0');
    return t->at > from;
}

static bool next_name(struct text *t, struct rp_bytes *name)
{
    if (!next(t, '\'') && !next(t, '"'))
        return false;
    name->at = (const uint8_t *)t->at;
    while (t->at < t->end && *t->at != '\'' && *t->at != '"')
        t->at++;
    name->n = (size_t)((const uint8_t *)t->at - name->at);
    return t->at++ < t->end;
}

static bool put_numbers(const struct hlo_put *put, uint32_t field, struct text *t, char end)
{
    size_t begun = rp_proto_begin(put->w, field);
    uint64_t value;

    while (!next(t, end)) {
        if (!next_number(t, &value)) {
            rp_proto_end(put->w, begun);
            return false;
        }
        rp_proto_add_varint(put->w, value);
    }
    rp_proto_end(put->w, begun);
    return true;
}

static bool put_mesh_message(const struct hlo_put *put, struct text *t, struct axes *axes)
{
    uint64_t size;
    size_t begun;
    bool fits = true;

    while (!next(t, ']')) {
        if (axes->n == AXES || !next_name(t, &axes->name[axes->n]) || !next(t, '=') ||
            !next_number(t, &size))
            return false;
        begun = rp_proto_begin(put->w, 1);
        rp_proto_put_bytes(put->w, 1, axes->name[axes->n].at, axes->name[axes->n].n);
        rp_proto_put_varint(put->w, 2, size);
        rp_proto_end(put->w, begun);
        axes->n++;
    }
    if (!next_word(t, "device_ids=("))
        return true;
    if (!next(t, '['))
        return put_numbers(put, 2, t, ')');
    begun = rp_proto_begin(put->w, 3);
    fits = put_numbers(put, 1, t, ']');
    if (fits && next_word(t, "T("))
        fits = put_numbers(put, 2, t, ')');
    rp_proto_end(put->w, begun);
    return fits && next(t, ')');
}

static bool put_ref_message(const struct hlo_put *put, struct text *t, const struct axes *axes)
{
    uint64_t before, size, which = 0;
    struct rp_bytes name;
    size_t sub;

    if (!next_name(t, &name))
        return false;
    while (which < axes->n &&
           (axes->name[which].n != name.n || memcmp(axes->name[which].at, name.at, name.n) != 0))
        which++;
    if (which == axes->n)
        return false;
    rp_proto_put_varint(put->w, 1, which);
    if (!next_word(t, ":("))
        return true;
    if (!next_number(t, &before) || !next(t, ')') || !next_number(t, &size))
        return false;
    sub = rp_proto_begin(put->w, 2);
    rp_proto_put_varint(put->w, 1, before);
    rp_proto_put_varint(put->w, 2, size);
    rp_proto_end(put->w, sub);
    return true;
}

bool hlo_put_mesh_groups(const struct hlo_put *put, const struct rp_attr *attr)
{
    struct text t = {attr->at, attr->at + attr->n};
    size_t begun = rp_proto_begin(put->w, FIELD), part = rp_proto_begin(put->w, 1);
    struct axes axes = {.n = 0};
    bool fits = next_word(&t, "mesh[") && put_mesh_message(put, &t, &axes);

    rp_proto_end(put->w, part);
    fits = fits && next(&t, '{');
    while (fits && !next(&t, '}')) {
        part = rp_proto_begin(put->w, 2);
        fits = put_ref_message(put, &t, &axes);
        rp_proto_end(put->w, part);
    }
    rp_proto_end(put->w, begun);
    return fits && t.at == t.end;
}
