/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part on its way is a fingerprint of its type, then its fields in their order:
 *
 *     plain     its bytes
 *     text      length + 1, or 0 if there is none; the bytes
 *     list      number of items; the items, as one block where they are plain
 *
 * Counts have 8 bytes. The fingerprint covers kinds, offsets and sizes of all fields, so that bytes
 * of another build are refused.
 */
#include "result/part.h"

#include "base/hash.h"
#include "result/walk.h"

#define DEPTH_MOST 32 /* of records inside each other */

const struct rp_field rp_plain_item[] = {
    RP_FIELD_("", NULL, RP_T_PLAIN, RP_UNIT_NONE, 0, 0, 0, NULL, "plain memory"), RP_FIELD_END};

static bool is_plain(const struct rp_type *type)
{
    return type->fields == rp_plain_item;
}

static bool is_list(const struct rp_field *f)
{
    return f->type == RP_T_LIST || f->type == RP_T_MAP || f->type == RP_T_VEC;
}

/* How many records stand in a field, one after the other. */
static size_t records_of(const struct rp_field *f)
{
    return f->type != RP_T_RECORD ? 0 : f->count_offset ? f->count_offset : 1;
}

/* The bytes of a field that is copied as it stands. */
static size_t plain_bytes(const struct rp_field *f)
{
    switch (f->type) {
    case RP_T_PLAIN:
        return f->count_offset;
    case RP_T_BOOL:
        return sizeof(bool);
    default:
        return 8;
    }
}

static uint64_t fingerprint(const struct rp_type *type, int depth)
{
    uint64_t h = rp_hash_u64(type->size);

    for (const struct rp_field *f = type->fields; rp_field_here(f) && depth < DEPTH_MOST; f++) {
        h = rp_hash_join(h, (uint64_t)f->type);
        h = rp_hash_join(rp_hash_join(h, f->offset), f->count_offset);
        if (f->item && f->item != type)
            h = rp_hash_join(h, fingerprint(f->item, depth + 1));
    }
    return h;
}

/* ------------------------------------------------------------------ memory */

static enum rp_code adopt_record(const struct rp_type *type, char *record, struct rp_arena *arena,
                                 struct rp_err *err);

static enum rp_code adopt_items(const struct rp_field *f, char *record, struct rp_arena *arena,
                                struct rp_err *err)
{
    size_t i, n = rp_field_count(f, record), cap;
    char *items;

    memcpy(&items, record + f->offset, sizeof items);
    for (i = 0; i < n && !is_plain(f->item); i++)
        RP_TRY(adopt_record(f->item, items + i * f->item->size, arena, err));
    if (f->type != RP_T_VEC)
        return RP_OK;
    memcpy(&cap, record + f->count_offset + sizeof cap, sizeof cap);
    RP_TRY(rp_arena_adopt_column(arena, items, cap, f->item->size, err));
    cap = 0;
    memcpy(record + f->count_offset + sizeof cap, &cap, sizeof cap);
    return RP_OK;
}

static enum rp_code adopt_record(const struct rp_type *type, char *record, struct rp_arena *arena,
                                 struct rp_err *err)
{
    for (const struct rp_field *f = type->fields; rp_field_here(f); f++) {
        for (size_t i = 0; i < records_of(f); i++)
            RP_TRY(adopt_record(f->item, record + f->offset + i * f->item->size, arena, err));
        if (is_list(f))
            RP_TRY(adopt_items(f, record, arena, err));
    }
    return RP_OK;
}

enum rp_code rp_part_adopt(const struct rp_type *type, void *part, struct rp_arena *arena,
                           struct rp_err *err)
{
    return adopt_record(type, part, arena, err);
}

/* ------------------------------------------------------------------ writing */

static void write_count(struct rp_out *to, uint64_t n)
{
    rp_out_write(to, &n, sizeof n);
}

static void write_record(const struct rp_type *type, const char *record, struct rp_out *to);

static void write_items(const struct rp_field *f, const char *record, struct rp_out *to)
{
    size_t i, n = rp_field_count(f, record);

    write_count(to, n);
    if (n && is_plain(f->item))
        rp_out_write(to, rp_field_item(f, record, 0), n * f->item->size);
    for (i = 0; i < n && !is_plain(f->item); i++)
        write_record(f->item, rp_field_item(f, record, i), to);
}

static void write_text(const char *text, struct rp_out *to)
{
    size_t len = text ? strlen(text) : 0;

    write_count(to, text ? len + 1 : 0);
    if (len)
        rp_out_write(to, text, len);
}

static void write_record(const struct rp_type *type, const char *record, struct rp_out *to)
{
    for (const struct rp_field *f = type->fields; rp_field_here(f); f++) {
        for (size_t i = 0; i < records_of(f); i++)
            write_record(f->item, record + f->offset + i * f->item->size, to);
        if (f->type == RP_T_RECORD)
            continue;
        if (is_list(f))
            write_items(f, record, to);
        else if (f->type == RP_T_STR)
            write_text(rp_field_str(f, record), to);
        else
            rp_out_write(to, record + f->offset, plain_bytes(f));
    }
}

void rp_part_write(const struct rp_type *type, const void *part, struct rp_out *to)
{
    write_count(to, fingerprint(type, 0));
    write_record(type, part, to);
}

/* ------------------------------------------------------------------ reading */

#define TEXTS_SEEN 256 /* the same few names are in most items of a list */

struct part_reader {
    const char *at, *end;
    struct rp_arena *arena;
    int depth;
    struct rp_err *err;
    const char *texts[TEXTS_SEEN]; /* by hash: the last one read */
};

static enum rp_code read_bytes(struct part_reader *r, void *to, size_t n)
{
    if ((size_t)(r->end - r->at) < n)
        return rp_err_set(r->err, RP_FORMAT, "the part of a rank is truncated");
    if (n)
        memcpy(to, r->at, n);
    r->at += n;
    return RP_OK;
}

/* A text that was read before is not stored again. */
static const char *keep_text(struct part_reader *r, const char *bytes, size_t len)
{
    const char **seen = &r->texts[rp_hash_bytes(bytes, len) % TEXTS_SEEN];

    if (!*seen || strlen(*seen) != len || memcmp(*seen, bytes, len) != 0)
        *seen = rp_arena_copy(r->arena, bytes, len);
    return *seen;
}

static enum rp_code read_text(struct part_reader *r, const char **out)
{
    uint64_t n = 0;

    *out = NULL;
    RP_TRY(read_bytes(r, &n, sizeof n));
    if (!n)
        return RP_OK;
    if ((size_t)(r->end - r->at) < n - 1)
        return rp_err_set(r->err, RP_FORMAT, "the part of a rank is truncated");
    *out = keep_text(r, r->at, (size_t)(n - 1));
    r->at += n - 1;
    return rp_err_need(*out, r->err, "reading the part of a rank");
}

static enum rp_code read_record(struct part_reader *r, const struct rp_type *type, char *record);

static enum rp_code read_items(struct part_reader *r, const struct rp_field *f, char *record)
{
    uint64_t n = 0;
    size_t i, count;
    char *items;

    RP_TRY(read_bytes(r, &n, sizeof n));
    /* An item has at least a byte, so that a wrong count cannot ask for more than what is there. */
    if (n > (size_t)(r->end - r->at))
        return rp_err_set(r->err, RP_FORMAT, "the part of a rank is truncated");
    count = (size_t)n;
    items = rp_arena_calloc(r->arena, count + 1, f->item->size, _Alignof(max_align_t));
    RP_TRY(rp_err_need(items, r->err, "reading the part of a rank"));
    if (is_plain(f->item))
        RP_TRY(read_bytes(r, items, count * f->item->size));
    for (i = 0; i < count && !is_plain(f->item); i++)
        RP_TRY(read_record(r, f->item, items + i * f->item->size));
    memcpy(record + f->offset, &items, sizeof items);
    memcpy(record + f->count_offset, &count, sizeof count);
    return RP_OK;
}

static enum rp_code read_field(struct part_reader *r, const struct rp_field *f, char *record)
{
    const char *text;

    for (size_t i = 0; i < records_of(f); i++)
        RP_TRY(read_record(r, f->item, record + f->offset + i * f->item->size));
    if (f->type == RP_T_RECORD)
        return RP_OK;
    if (is_list(f))
        return read_items(r, f, record);
    if (f->type == RP_T_BOOL && r->at < r->end && *r->at & ~1)
        return rp_err_set(r->err, RP_FORMAT, "the part of a rank is damaged");
    if (f->type != RP_T_STR)
        return read_bytes(r, record + f->offset, plain_bytes(f));
    RP_TRY(read_text(r, &text));
    memcpy(record + f->offset, &text, sizeof text);
    return RP_OK;
}

static enum rp_code read_record(struct part_reader *r, const struct rp_type *type, char *record)
{
    if (++r->depth > DEPTH_MOST)
        return rp_err_set(r->err, RP_FORMAT, "the part of a rank is nested too deeply");
    for (const struct rp_field *f = type->fields; rp_field_here(f); f++)
        RP_TRY(read_field(r, f, record));
    r->depth--;
    return RP_OK;
}

enum rp_code rp_part_read(const struct rp_type *type, const void *bytes, size_t n,
                          struct rp_arena *arena, void *part, struct rp_err *err)
{
    struct part_reader r = {bytes, (const char *)bytes + n, arena, 0, err, {NULL}};
    uint64_t print = 0;

    memset(part, 0, type->size);
    RP_TRY(read_bytes(&r, &print, sizeof print));
    if (print != fingerprint(type, 0))
        return rp_err_set(err, RP_FORMAT, "the part of a rank was written by another build");
    RP_TRY(read_record(&r, type, part));
    if (r.at != r.end)
        return rp_err_set(err, RP_FORMAT, "%zu bytes follow the part of a rank",
                          (size_t)(r.end - r.at));
    return RP_OK;
}
