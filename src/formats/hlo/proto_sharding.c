/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shardings between OpSharding and HLO's words, both ways:
 *
 *   {replicated}  {maximal device=3}  {manual}  {{...}, {...}}
 *   {devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}  {devices=[2,1]0,1 shard_as 7}
 *
 * What has no such words (named meshes, metadata, fields of tomorrow) is not translated: then the
 * message stays as it is.
 */
#include "formats/hlo/proto.h"
#include "formats/hlo/proto_put.h"

#include <string.h>

enum { REPLICATED, MAXIMAL, TUPLE, OTHER, MANUAL, UNKNOWN, UNREDUCED, TYPES };
static const char *const type_words[TYPES] = {"replicated", "maximal", "",         "",
                                              "manual",     "unknown", "unreduced"};
#define MAX_DEPTH 8

/* ---- from messages ---- */

struct sharding {
    uint64_t type, group, group_type;
    struct rp_bytes dims, devices, last, iota, order;
    bool replicate, grouped;
};

/* The fields; false where one has no words. */
static bool find_fields(struct rp_bytes bytes, struct sharding *s)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, 0, 16);
    struct rp_proto_item it;

    memset(s, 0, sizeof *s);
    while (rp_proto_next(&c, &it)) {
        struct rp_bytes *list = it.number == 3    ? &s->dims
                                : it.number == 4  ? &s->devices
                                : it.number == 8  ? &s->last
                                : it.number == 9  ? &s->iota
                                : it.number == 10 ? &s->order
                                                  : NULL;
        uint64_t *number = it.number == 1    ? &s->type
                           : it.number == 12 ? &s->group
                           : it.number == 13 ? &s->group_type
                                             : NULL;

        if (list && it.wire == RP_WIRE_BYTES && !list->n)
            *list = it.bytes;
        else if (number && it.wire == RP_WIRE_VARINT)
            *number = it.value;
        else if (it.number == 6 && it.wire == RP_WIRE_VARINT)
            s->replicate = it.value != 0;
        else if (it.number == 11 && it.wire == RP_WIRE_VARINT)
            s->grouped = it.value != 0;
        else if (it.number != 5 || it.wire != RP_WIRE_BYTES)
            return false;
    }
    return rp_proto_finish(&c, NULL) == RP_OK && s->type < TYPES;
}

static enum rp_code put_list(struct hlo_proto *r, const char *before, struct rp_bytes list,
                             const char *behind)
{
    RP_TRY(hlo_put_word(r, before));
    RP_TRY(hlo_put_ints(r, list, ","));
    return hlo_put_word(r, behind);
}

static enum rp_code put_last(struct hlo_proto *r, struct rp_bytes last)
{
    struct rp_proto_cursor c = rp_proto_cursor(last.at, last.n, 0, 1);
    const char *before = " last_tile_dims={";
    uint64_t type;

    if (!last.n)
        return RP_OK;
    while (rp_proto_packed_varint(&c, &type)) {
        RP_TRY(hlo_put_word(r, before));
        RP_TRY(hlo_put_word(r, type < TYPES ? type_words[type] : ""));
        before = ", ";
    }
    return hlo_put_word(r, "}");
}

static enum rp_code put_tiles(struct hlo_proto *r, const struct sharding *s)
{
    RP_TRY(put_list(r, "devices=[", s->dims, "]"));
    if (s->iota.n) {
        RP_TRY(put_list(r, "<=[", s->iota, "]"));
        if (rp_proto_count_varints(s->order) > 1)
            RP_TRY(put_list(r, "T(", s->order, ")"));
    } else {
        RP_TRY(hlo_put_ints(r, s->devices, ","));
    }
    if (s->replicate)
        RP_TRY(hlo_put_word(r, " last_tile_dim_replicate"));
    return put_last(r, s->last);
}

static enum rp_code put_one(struct hlo_proto *r, struct rp_bytes bytes, unsigned depth, bool *known)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes.at, bytes.n, 0, 16);
    struct rp_proto_item it;
    struct sharding s;
    bool first = true;

    if (!depth || !find_fields(bytes, &s)) {
        *known = false;
        return RP_OK;
    }
    RP_TRY(hlo_put_word(r, "{"));
    if (s.type == OTHER)
        RP_TRY(put_tiles(r, &s));
    else
        RP_TRY(hlo_put_word(r, type_words[s.type]));
    if (s.type == MAXIMAL)
        RP_TRY(put_list(r, " device=", s.devices, ""));
    while (*known && s.type == TUPLE && rp_proto_next(&c, &it)) {
        if (it.number != 5)
            continue;
        RP_TRY(hlo_put_word(r, first ? "" : ", "));
        RP_TRY(put_one(r, it.bytes, depth - 1, known));
        first = false;
    }
    if (s.grouped) {
        RP_TRY(hlo_put_word(r, s.group_type ? " shard_like " : " shard_as "));
        RP_TRY(hlo_put_int(r, (int64_t)s.group));
    }
    return hlo_put_word(r, "}");
}

enum rp_code hlo_proto_sharding(struct hlo_proto *r, struct rp_bytes bytes, bool *known)
{
    *known = true;
    RP_TRY(put_one(r, bytes, MAX_DEPTH, known));
    if (*known)
        return hlo_put_attr(r, RP_ATTR_SHARDING, false);
    r->text.n = 0;
    return RP_OK;
}

/* ---- from words ---- */

struct words {
    const char *at, *end;
};

static bool take(struct words *s, const char *word)
{
    size_t n = strlen(word);

    while (s->at < s->end && *s->at == ' ')
        s->at++;
    if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0)
        return false;
    s->at += n;
    return true;
}

static bool number(struct words *s, uint64_t *value)
{
    const char *from = s->at;

    for (*value = 0; s->at < s->end && *s->at >= '0' && *s->at <= '9' && *value < INT64_MAX / 20;
         s->at++)
        *value = *value * 10 + (uint64_t)(*s->at - '0');
    return s->at > from;
}

/* "2,1,4" as a packed field; how many there are. */
static uint64_t put_numbers(const struct hlo_put *put, struct words *s, uint32_t field)
{
    size_t begun = rp_proto_begin(put->w, field);
    uint64_t value, n = 0;

    do {
        if (!number(s, &value))
            break;
        rp_proto_add_varint(put->w, value);
        n++;
    } while (take(s, ","));
    rp_proto_end(put->w, begun);
    return n;
}

static bool put_devices(const struct hlo_put *put, struct words *s)
{
    uint64_t n;
    size_t begun;

    rp_proto_put_varint(put->w, 1, OTHER);
    if (!put_numbers(put, s, 3) || !take(s, "]"))
        return false;
    if (!take(s, "<=["))
        return put_numbers(put, s, 4) > 0;
    n = put_numbers(put, s, 9);
    if (!n || !take(s, "]"))
        return false;
    if (take(s, "T("))
        return put_numbers(put, s, 10) == n && take(s, ")");
    begun = rp_proto_begin(put->w, 10);
    for (uint64_t i = 0; i < n; i++)
        rp_proto_add_varint(put->w, i);
    rp_proto_end(put->w, begun);
    return true;
}

static bool type_of(struct words *s, uint64_t *type)
{
    for (*type = 0; *type < TYPES; ++*type)
        if (*type_words[*type] && take(s, type_words[*type]))
            return true;
    return false;
}

static bool put_last_dims(const struct hlo_put *put, struct words *s)
{
    size_t begun = rp_proto_begin(put->w, 8);
    uint64_t type;
    bool good;

    do {
        good = type_of(s, &type);
        rp_proto_add_varint(put->w, good ? type : 0);
    } while (good && take(s, ","));
    rp_proto_end(put->w, begun);
    return good && take(s, "}");
}

static bool put_group(const struct hlo_put *put, struct words *s, bool like)
{
    uint64_t group;

    if (!take(s, "") || !number(s, &group))
        return false;
    rp_proto_put_varint(put->w, 11, 1);
    rp_proto_put_varint(put->w, 12, group);
    rp_proto_put_varint(put->w, 13, like);
    return true;
}

static bool put_words(const struct hlo_put *put, struct words *s, unsigned depth);

static bool put_parts(const struct hlo_put *put, struct words *s, unsigned depth)
{
    rp_proto_put_varint(put->w, 1, TUPLE);
    do {
        size_t begun = rp_proto_begin(put->w, 5);
        bool good = depth && put_words(put, s, depth - 1);

        rp_proto_end(put->w, begun);
        if (!good)
            return false;
    } while (take(s, ","));
    return true;
}

static bool put_kind(const struct hlo_put *put, struct words *s, unsigned depth)
{
    uint64_t type;

    while (s->at < s->end && *s->at == ' ')
        s->at++;
    if (s->at < s->end && *s->at == '{')
        return put_parts(put, s, depth);
    if (take(s, "devices=["))
        return put_devices(put, s);
    if (!type_of(s, &type))
        return false;
    rp_proto_put_varint(put->w, 1, type);
    return type != MAXIMAL || (take(s, "device=") && put_numbers(put, s, 4) == 1);
}

static bool put_words(const struct hlo_put *put, struct words *s, unsigned depth)
{
    if (!take(s, "{") || !put_kind(put, s, depth))
        return false;
    if (take(s, "last_tile_dim_replicate"))
        rp_proto_put_varint(put->w, 6, 1);
    if (take(s, "last_tile_dims={") && !put_last_dims(put, s))
        return false;
    if (take(s, "shard_as ") && !put_group(put, s, false))
        return false;
    if (take(s, "shard_like ") && !put_group(put, s, true))
        return false;
    return take(s, "}");
}

bool hlo_put_sharding(const struct hlo_put *put, const struct rp_attr *attr)
{
    struct words s = {attr->at, attr->at + attr->n};
    size_t begun = rp_proto_begin(put->w, 40);
    bool good = put_words(put, &s, MAX_DEPTH) && s.at == s.end;

    rp_proto_end(put->w, begun);
    return good;
}
