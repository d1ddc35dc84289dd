/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes and reads parts: a fingerprint of the type, then the fields in their order:
 *
 *     plain     words of 8 and of 4 bytes, then single bytes; a word as the difference to that of
 *               the item before
 *     text      0 for NULL; 1, length and bytes for a new one; number + 2 for an earlier one
 *     list      the number of items, and the items
 *
 * Plain items are written as words of 4 bytes: all first words, then all second words, and so on,
 * as differences to the item before (1) or as they are (0), whichever is shorter.
 *
 * Numbers have a variable length: the first byte begins with a 1 for each byte that follows.
 * Differences have their sign in the lowest bit. The fingerprint covers kinds, offsets and sizes of
 * all fields, so that bytes of another build are refused.
 */
#include "result/part.h"

#include "base/hash.h"
#include "base/names.h"
#include "result/walk.h"

#define DEPTH_MOST 32 /* the most records inside each other */
#define ENCODING   2  /* the version of this encoding, which is part of the fingerprint */
#define WORD       4  /* the bytes of a word of plain items */

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

/* Returns how many records a field contains, one after the other. */
static size_t records_of(const struct rp_field *f)
{
    return f->type != RP_T_RECORD ? 0 : f->count_offset ? f->count_offset : 1;
}

/* Returns the bytes of a field that is copied as it is. */
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
    uint64_t h = rp_hash_join(rp_hash_u64(type->size), ENCODING);

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

static enum rp_code adopt_record(const struct rp_type *type, char *record, struct rp_arena *arena,
                                 struct rp_err *err)
{
    for (const struct rp_field *f = type->fields; rp_field_here(f); f++) {
        for (size_t i = 0; i < records_of(f); i++)
            RP_TRY(adopt_record(f->item, record + f->offset + i * f->item->size, arena, err));
        if (is_list(f)) {
            /* The items of a list move into this arena. */
            size_t i, n = rp_field_count(f, record), cap;
            char *items;
            memcpy(&items, record + f->offset, sizeof items);
            for (i = 0; i < n && !is_plain(f->item); i++)
                RP_TRY(adopt_record(f->item, items + i * f->item->size, arena, err));
            if (f->type == RP_T_VEC) {
                memcpy(&cap, record + f->count_offset + sizeof cap, sizeof cap);
                RP_TRY(rp_arena_adopt_column(arena, items, cap, f->item->size, err));
                cap = 0;
                memcpy(record + f->count_offset + sizeof cap, &cap, sizeof cap);
            }
        }
    }
    return RP_OK;
}

enum rp_code rp_part_adopt(const struct rp_type *type, void *part, struct rp_arena *arena,
                           struct rp_err *err)
{
    return adopt_record(type, part, arena, err);
}

/* ------------------------------------------------------------------ copying */

struct part_copier {
    struct rp_arena *arena;
    struct rp_names texts; /* the texts of the copy: its own number is the place in `copies` */
    RP_VEC(const char *) copies;
    struct rp_err *err;
};

static enum rp_code copy_text(struct part_copier *c, const char *text, const char **out)
{
    uint32_t number = rp_names_find(&c->texts, text);

    *out = number < c->copies.n ? c->copies.at[number] : NULL;
    if (!text || *out)
        return RP_OK;
    *out = rp_arena_copy(c->arena, text, strlen(text));
    RP_TRY(rp_err_need(*out, c->err, "keeping a part"));
    RP_TRY(rp_names_add(&c->texts, *out, (uint32_t)c->copies.n, c->err));
    return rp_vec_push(&c->copies, *out, c->err);
}

static enum rp_code copy_record(struct part_copier *c, const struct rp_type *type,
                                const char *record, char *to);

static enum rp_code copy_record(struct part_copier *c, const struct rp_type *type,
                                const char *record, char *to)
{
    const char *text;

    for (const struct rp_field *f = type->fields; rp_field_here(f); f++) {
        for (size_t i = 0; i < records_of(f); i++)
            RP_TRY(copy_record(c, f->item, record + f->offset + i * f->item->size,
                               to + f->offset + i * f->item->size));
        if (f->type == RP_T_RECORD)
            continue;
        if (is_list(f)) {
            size_t i, n = rp_field_count(f, record), size = f->item->size;
            char *items = rp_arena_calloc(c->arena, n + 1, size, _Alignof(max_align_t));

            RP_TRY(rp_err_need(items, c->err, "keeping a part"));
            if (n && is_plain(f->item))
                memcpy(items, rp_field_item(f, record, 0), n * size);
            for (i = 0; i < n && !is_plain(f->item); i++)
                RP_TRY(copy_record(c, f->item, rp_field_item(f, record, i), items + i * size));
            memcpy(to + f->offset, &items, sizeof items);
            memcpy(to + f->count_offset, &n, sizeof n);
        } else if (f->type == RP_T_STR) {
            RP_TRY(copy_text(c, rp_field_str(f, record), &text));
            memcpy(to + f->offset, &text, sizeof text);
        } else {
            memcpy(to + f->offset, record + f->offset, plain_bytes(f));
        }
    }
    return RP_OK;
}

enum rp_code rp_part_copy(const struct rp_type *type, const void *part, struct rp_arena *arena,
                          void *to, struct rp_err *err)
{
    struct part_copier c = {.arena = arena, .err = err};

    memset(to, 0, type->size);
    enum rp_code code = copy_record(&c, type, part, to);
    rp_names_release(&c.texts);
    rp_vec_release(&c.copies);
    return code;
}

/* ------------------------------------------------------------------ writing */

struct part_writer {
    struct rp_out *to;
    struct rp_names texts; /* the texts that were written, by number */
    uint32_t ntexts;
    size_t n;
    char buffer[4096];
};

static uint64_t zigzag(int64_t d)
{
    return (uint64_t)d << 1 ^ (uint64_t)(d >> 63);
}

static int64_t unzigzag(uint64_t z)
{
    return (int64_t)(z >> 1 ^ (0 - (z & 1)));
}

/* Returns the bytes that a number takes: 7 bits of it in each, and all 64 in nine. */
static size_t number_bytes(uint64_t v)
{
    size_t bits = v ? 64 - (size_t)__builtin_clzll(v) : 1;

    return bits > 56 ? 9 : (bits + 6) / 7;
}

/* Returns the width of the next word if so many bytes are left. */
static size_t width_of(size_t left)
{
    size_t one = WORD, two = 2 * one;

    return left >= two ? two : one;
}

static void put_bytes(struct part_writer *w, const void *bytes, size_t n)
{
    if (w->n + n > sizeof w->buffer) {
        rp_out_write(w->to, w->buffer, w->n);
        w->n = 0;
    }
    if (n > sizeof w->buffer) {
        rp_out_write(w->to, bytes, n);
        return;
    }
    memcpy(w->buffer + w->n, bytes, n);
    w->n += n;
}

static void put_number(struct part_writer *w, uint64_t v)
{
    size_t n = number_bytes(v);
    char bytes[9];

    for (size_t i = n; i-- > 0; v >>= 8)
        bytes[i] = (char)v;
    if (n == 9)
        bytes[0] = (char)0xff;
    else
        bytes[0] = (char)((unsigned char)bytes[0] | (0xff00 >> (n - 1) & 0xff));
    put_bytes(w, bytes, n);
}

static void write_record(struct part_writer *w, const struct rp_type *type, const char *record,
                         const char *before);

/* Returns the difference from one word of 4 or 8 bytes to another; before may be NULL. */
static uint64_t step_of(const char *at, const char *before, size_t width)
{
    uint64_t word = 0, last = 0;

    memcpy(&word, at, width);
    if (before)
        memcpy(&last, before, width);
    return zigzag(width == WORD ? (int32_t)(word - last) : (int64_t)(word - last));
}

static uint64_t step_in(const char *items, size_t i, size_t size)
{
    return step_of(items + i * size, i ? items + (i - 1) * size : NULL, WORD);
}

static void write_plain_items(struct part_writer *w, const char *items, size_t n, size_t size)
{
    for (size_t at = 0; at + WORD <= size; at += WORD) {
        size_t bytes = 0;

        for (size_t i = 0; i < n; i++)
            bytes += number_bytes(step_in(items + at, i, size));
        char stepped = bytes < n * WORD;
        put_bytes(w, &stepped, 1);
        for (size_t i = 0; i < n; i++)
            if (stepped)
                put_number(w, step_in(items + at, i, size));
            else
                put_bytes(w, items + at + i * size, WORD);
    }
    for (size_t i = 0; i < n && size % WORD; i++)
        put_bytes(w, items + i * size + size / WORD * WORD, size % WORD);
}

static void write_text(struct part_writer *w, const char *text)
{
    uint32_t number = rp_names_find(&w->texts, text);

    if (!text || number != RP_NONE) {
        put_number(w, text ? (uint64_t)number + 2 : 0);
        return;
    }
    size_t len = strlen(text);
    put_number(w, 1);
    put_number(w, len);
    put_bytes(w, text, len);
    rp_names_add(&w->texts, text, w->ntexts++,
                 NULL); /* if memory runs out, the text is written again next time */
}

/* `before` is the same field of the previous item, or NULL. */
static void write_plain(struct part_writer *w, const char *at, const char *before, size_t n)
{
    size_t i = 0, width;

    for (; i + WORD <= n; i += width) {
        width = width_of(n - i);
        put_number(w, step_of(at + i, before ? before + i : NULL, width));
    }
    put_bytes(w, at + i, n - i);
}

static void write_record(struct part_writer *w, const struct rp_type *type, const char *record,
                         const char *before)
{
    for (const struct rp_field *f = type->fields; rp_field_here(f); f++) {
        for (size_t i = 0; i < records_of(f); i++)
            write_record(w, f->item, record + f->offset + i * f->item->size,
                         before ? before + f->offset + i * f->item->size : NULL);
        if (f->type == RP_T_RECORD)
            continue;
        if (is_list(f)) {
            size_t i, n = rp_field_count(f, record);
            put_number(w, n);
            if (n && is_plain(f->item))
                write_plain_items(w, rp_field_item(f, record, 0), n, f->item->size);
            for (i = 0; i < n && !is_plain(f->item); i++)
                write_record(w, f->item, rp_field_item(f, record, i),
                             i ? rp_field_item(f, record, i - 1) : NULL);
        } else if (f->type == RP_T_STR)
            write_text(w, rp_field_str(f, record));
        else
            write_plain(w, record + f->offset, before ? before + f->offset : NULL, plain_bytes(f));
    }
}

void rp_part_write(const struct rp_type *type, const void *part, struct rp_out *to)
{
    struct part_writer w = {.to = to};
    uint64_t print = fingerprint(type, 0);

    put_bytes(&w, &print, sizeof print);
    write_record(&w, type, part, NULL);
    rp_out_write(to, w.buffer, w.n);
    rp_names_release(&w.texts);
}

/* ------------------------------------------------------------------ reading */

struct part_reader {
    const char *at, *end;
    struct rp_arena *arena;
    int depth;
    struct rp_err *err;
    RP_VEC(const char *) texts; /* the texts in the arena, by number */
};

static enum rp_code fail_short(struct part_reader *r)
{
    return rp_err_set(r->err, RP_FORMAT, "the part of a rank is truncated");
}

static enum rp_code read_bytes(struct part_reader *r, void *to, size_t n)
{
    if ((size_t)(r->end - r->at) < n)
        return fail_short(r);
    if (n)
        memcpy(to, r->at, n);
    r->at += n;
    return RP_OK;
}

static enum rp_code read_number(struct part_reader *r, uint64_t *out)
{
    unsigned char first = r->at < r->end ? (unsigned char)*r->at : 0;
    size_t more = first == 0xff ? 8 : (size_t)__builtin_clz((~(unsigned)first << 24) | 1);
    uint64_t v = first & (0x7f >> more);

    if ((size_t)(r->end - r->at) < more + 1)
        return fail_short(r);
    for (size_t i = 1; i <= more; i++)
        v = v << 8 | (unsigned char)r->at[i];
    r->at += more + 1;
    *out = v;
    return RP_OK;
}

/* A text that was read before is not stored again. */
static enum rp_code read_text(struct part_reader *r, const char **out)
{
    uint64_t number, len;

    *out = NULL;
    RP_TRY(read_number(r, &number));
    if (!number)
        return RP_OK;
    if (number > 1) {
        if (number - 2 >= r->texts.n)
            return rp_err_set(r->err, RP_FORMAT, "the part of a rank is damaged");
        *out = r->texts.at[number - 2];
        return RP_OK;
    }
    RP_TRY(read_number(r, &len));
    if ((size_t)(r->end - r->at) < len)
        return fail_short(r);
    *out = rp_arena_copy(r->arena, r->at, (size_t)len);
    r->at += len;
    RP_TRY(rp_err_need(*out, r->err, "reading the part of a rank"));
    return rp_vec_push(&r->texts, *out, r->err);
}

static enum rp_code read_record(struct part_reader *r, const struct rp_type *type, char *record,
                                const char *before);

static enum rp_code read_plain_items(struct part_reader *r, char *items, size_t n, size_t size)
{
    for (size_t at = 0; at + WORD <= size; at += WORD) {
        char stepped = 0;
        uint32_t word = 0;
        uint64_t step;

        RP_TRY(read_bytes(r, &stepped, 1));
        for (size_t i = 0; i < n; i++) {
            if (stepped) {
                RP_TRY(read_number(r, &step));
                word += (uint32_t)unzigzag(step);
            } else {
                RP_TRY(read_bytes(r, &word, sizeof word));
            }
            memcpy(items + i * size + at, &word, sizeof word);
        }
    }
    for (size_t i = 0; i < n && size % WORD; i++)
        RP_TRY(read_bytes(r, items + i * size + size / WORD * WORD, size % WORD));
    return RP_OK;
}

/* Returns fewer bytes than any record takes, so that a wrong count cannot ask for much more than is
   there. */
static size_t least_bytes(const struct rp_type *type, int depth)
{
    size_t n = 0;

    if (is_plain(type))
        return type->size / WORD + type->size % WORD;
    for (const struct rp_field *f = type->fields; rp_field_here(f); f++)
        n += f->type != RP_T_RECORD ? 1
             : depth < DEPTH_MOST && f->item != type
                 ? records_of(f) * least_bytes(f->item, depth + 1)
                 : 0;
    return n;
}

static enum rp_code read_items(struct part_reader *r, const struct rp_field *f, char *record)
{
    uint64_t n = 0;
    size_t i, count, size = f->item->size, least = least_bytes(f->item, 0);

    RP_TRY(read_number(r, &n));
    if (n > (size_t)(r->end - r->at) / (least ? least : 1))
        return fail_short(r);
    count = (size_t)n;
    char *items = rp_arena_calloc(r->arena, count + 1, size, _Alignof(max_align_t));
    RP_TRY(rp_err_need(items, r->err, "reading the part of a rank"));
    if (count && is_plain(f->item))
        RP_TRY(read_plain_items(r, items, count, size));
    for (i = 0; i < count && !is_plain(f->item); i++)
        RP_TRY(read_record(r, f->item, items + i * size, i ? items + (i - 1) * size : NULL));
    memcpy(record + f->offset, &items, sizeof items);
    memcpy(record + f->count_offset, &count, sizeof count);
    return RP_OK;
}

static enum rp_code read_plain(struct part_reader *r, char *at, const char *before, size_t n)
{
    size_t i = 0, width;

    for (; i + WORD <= n; i += width) {
        uint64_t step, word = 0;

        width = width_of(n - i);
        RP_TRY(read_number(r, &step));
        if (before)
            memcpy(&word, before + i, width);
        word += (uint64_t)unzigzag(step);
        memcpy(at + i, &word, width);
    }
    return read_bytes(r, at + i, n - i);
}

static enum rp_code read_field(struct part_reader *r, const struct rp_field *f, char *record,
                               const char *before)
{
    const char *text;

    for (size_t i = 0; i < records_of(f); i++)
        RP_TRY(read_record(r, f->item, record + f->offset + i * f->item->size,
                           before ? before + f->offset + i * f->item->size : NULL));
    if (f->type == RP_T_RECORD)
        return RP_OK;
    if (is_list(f))
        return read_items(r, f, record);
    if (f->type == RP_T_BOOL && r->at < r->end && *r->at & ~1)
        return rp_err_set(r->err, RP_FORMAT, "the part of a rank is damaged");
    if (f->type != RP_T_STR)
        return read_plain(r, record + f->offset, before ? before + f->offset : NULL,
                          plain_bytes(f));
    RP_TRY(read_text(r, &text));
    memcpy(record + f->offset, &text, sizeof text);
    return RP_OK;
}

static enum rp_code read_record(struct part_reader *r, const struct rp_type *type, char *record,
                                const char *before)
{
    if (++r->depth > DEPTH_MOST)
        return rp_err_set(r->err, RP_FORMAT, "the part of a rank is nested too deeply");
    for (const struct rp_field *f = type->fields; rp_field_here(f); f++)
        RP_TRY(read_field(r, f, record, before));
    r->depth--;
    return RP_OK;
}

enum rp_code rp_part_read(const struct rp_type *type, const void *bytes, size_t n,
                          struct rp_arena *arena, void *part, struct rp_err *err)
{
    struct part_reader r = {
        .at = bytes, .end = (const char *)bytes + n, .arena = arena, .err = err};
    uint64_t print = 0;

    memset(part, 0, type->size);
    RP_TRY(read_bytes(&r, &print, sizeof print));
    if (print != fingerprint(type, 0))
        return rp_err_set(err, RP_FORMAT, "the part of a rank was written by another build");
    enum rp_code code = read_record(&r, type, part, NULL);
    rp_vec_release(&r.texts);
    if (code == RP_OK && r.at != r.end)
        code = rp_err_set(err, RP_FORMAT, "%zu bytes follow the part of a rank",
                          (size_t)(r.end - r.at));
    return code;
}
