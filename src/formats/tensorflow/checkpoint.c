/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of a checkpoint is a LevelDB table:
 *
 *   [ data block | 00 | crc ] ... [ index block | 00 | crc ] [ footer of 48 bytes ]
 *
 * The footer locates the index block, which locates each data block. Keys in a block are sorted and
 * stored without the prefix that they share with the previous one. Values are messages: type,
 * shape, file, offset, size, checksum. TensorFlow does not compress these blocks. The index is read
 * once; values are mapped bytes of the data files. Cost: reading the index, and a checksum over
 * each value that is used.
 */
#include "formats/tensorflow/checkpoint.h"

#include "abi/proto/tensorflow.h"

#include "base/hash.h"
#include "base/vec.h"
#include "io/input.h"
#include "io/proto.h"
#include "program/literal.h"

#include <stdlib.h>
#include <string.h>

#define FOOTER     48
#define MAGIC      UINT64_C(0xdb4775248b80fb57)
#define MOST_FILES 4096
#define KEY_MAX    4096

struct entry {
    const char *key;
    uint64_t type, file, offset, size;
    uint32_t crc;
    bool sliced;
    struct rp_bytes shape; /* TensorShapeProto */
};

struct rp_checkpoint {
    struct rp_arena arena;
    char *prefix;
    struct rp_limits limits;
    RP_VEC(struct entry) entries;
    struct rp_map by_key;
    uint64_t nfiles;
    bool big_endian;
    struct rp_input *index;
    struct rp_input **files; /* nfiles */
    uint32_t crc_table[256];
};

/* ---- checksums: CRC-32C, masked as LevelDB does ---- */

static void make_table(uint32_t *table)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;

        for (int k = 0; k < 8; k++)
            c = c & 1 ? c >> 1 ^ 0x82f63b78u : c >> 1;
        table[i] = c;
    }
}

static uint32_t crc_of(const uint32_t *table, const uint8_t *at, size_t n)
{
    uint32_t c = UINT32_MAX;

    for (size_t i = 0; i < n; i++)
        c = table[(c ^ at[i]) & 255] ^ c >> 8;
    c = ~c;
    return (c >> 15 | c << 17) + 0xa282ead8u;
}

/* ---- blocks ---- */

struct block {
    struct rp_bytes bytes; /* entries, without the list of restarts at the end */
    uint64_t offset;
};

/* Reads two varints, place and size. */
static const uint8_t *read_handle(const uint8_t *p, const uint8_t *end, uint64_t *offset,
                                  uint64_t *size)
{
    p = rp_proto_varint_at(p, end, offset);
    return p ? rp_proto_varint_at(p, end, size) : NULL;
}

static enum rp_code open_block(const struct rp_checkpoint *c, struct rp_bytes file, uint64_t offset,
                               uint64_t size, struct block *out, struct rp_err *err)
{
    if (offset > file.n || size > file.n - offset || file.n - offset - size < 5 || size < 4)
        return rp_err_set_at(err, RP_FORMAT, offset,
                             "a block of the index extends past the end of the file");
    const uint8_t *at = file.at + offset;
    if (at[size] != 0)
        return rp_err_set_at(err, RP_UNSUPPORTED, offset, "a compressed block in the index");
    if (crc_of(c->crc_table, at, size + 1) != rp_proto_load32(at + size + 1))
        return rp_err_set_at(err, RP_FORMAT, offset,
                             "a block of the index is damaged at byte %llu: checksum mismatch",
                             (unsigned long long)offset);
    uint64_t restarts = rp_proto_load32(at + size - 4);
    if (restarts > (size - 4) / 4)
        return rp_err_set_at(err, RP_FORMAT, offset, "a block of the index is damaged");
    out->bytes = (struct rp_bytes){at, (size_t)(size - 4 - 4 * restarts)};
    out->offset = offset;
    return RP_OK;
}

typedef enum rp_code entry_fn(struct rp_checkpoint *c, struct rp_bytes file, struct rp_bytes key,
                              struct rp_bytes value, struct rp_err *err);

static enum rp_code each_entry(struct rp_checkpoint *c, struct rp_bytes file, const struct block *b,
                               entry_fn *one, struct rp_err *err)
{
    const uint8_t *p = b->bytes.at, *end = p + b->bytes.n;
    uint8_t key[KEY_MAX];
    size_t nkey = 0;

    while (p < end) {
        uint64_t shared, own, value;
        const uint8_t *q = rp_proto_varint_at(p, end, &shared);

        q = q ? rp_proto_varint_at(q, end, &own) : NULL;
        q = q ? rp_proto_varint_at(q, end, &value) : NULL;
        if (!q || shared > nkey || own > (uint64_t)(end - q) || own > KEY_MAX - shared ||
            value > (uint64_t)(end - q) - own)
            return rp_err_set_at(err, RP_FORMAT, b->offset + (uint64_t)(p - b->bytes.at),
                                 "an entry of the index is damaged");
        memcpy(key + shared, q, (size_t)own);
        nkey = (size_t)(shared + own);
        q += own;
        RP_TRY(
            one(c, file, (struct rp_bytes){key, nkey}, (struct rp_bytes){q, (size_t)value}, err));
        p = q + value;
    }
    return RP_OK;
}

/* ---- entries ---- */

static enum rp_code read_header(struct rp_checkpoint *c, struct rp_bytes value, struct rp_err *err)
{
    struct rp_proto_cursor cur = rp_proto_cursor(value.at, value.n, 0, 8);
    struct rp_proto_item it;

    while (rp_proto_next(&cur, &it))
        if (it.number == RP_TF_BUNDLE_HEADER_NUM_SHARDS && it.wire == RP_WIRE_VARINT)
            c->nfiles = it.value;
        else if (it.number == RP_TF_BUNDLE_HEADER_ENDIANNESS && it.wire == RP_WIRE_VARINT)
            c->big_endian = it.value != 0;
    if (c->nfiles < 1 || c->nfiles > MOST_FILES || c->big_endian)
        return rp_err_set(err, RP_UNSUPPORTED,
                          "a checkpoint of %llu files, or of a big-endian machine",
                          (unsigned long long)c->nfiles);
    return rp_proto_finish(&cur, err);
}

static enum rp_code add_entry(struct rp_checkpoint *c, struct rp_bytes file, struct rp_bytes key,
                              struct rp_bytes value, struct rp_err *err)
{
    struct rp_proto_cursor cur = rp_proto_cursor(value.at, value.n, 0, 32);
    struct entry e = {.shape = {(const uint8_t *)"", 0}};
    const struct rp_proto_slot slots[] = {{RP_TF_BUNDLE_ENTRY_DTYPE, .u64 = &e.type},
                                          {RP_TF_BUNDLE_ENTRY_SHAPE, .bytes = &e.shape},
                                          {RP_TF_BUNDLE_ENTRY_SHARD_ID, .u64 = &e.file},
                                          {RP_TF_BUNDLE_ENTRY_OFFSET, .u64 = &e.offset},
                                          {RP_TF_BUNDLE_ENTRY_SIZE, .u64 = &e.size},
                                          {0}};
    struct rp_proto_item it;

    (void)file;
    if (!key.n)
        return read_header(c, value, err);
    if (c->entries.n >= c->limits.members)
        return rp_err_set(err, RP_LIMIT, "more than %llu variables in a checkpoint",
                          (unsigned long long)c->limits.members);
    while (rp_proto_next(&cur, &it)) {
        if (it.number == RP_TF_BUNDLE_ENTRY_CRC32C && it.wire == RP_WIRE_FIXED32)
            e.crc = (uint32_t)it.value;
        e.sliced |= it.number == RP_TF_BUNDLE_ENTRY_SLICES;
        rp_proto_take(slots, &it);
    }
    RP_TRY(rp_proto_finish(&cur, err));
    e.key = rp_arena_copy(&c->arena, (const char *)key.at, key.n);
    RP_TRY(rp_err_need(e.key, err, "reading a checkpoint"));
    RP_TRY(rp_map_put(&c->by_key, rp_hash_bytes(key.at, key.n), (uint32_t)c->entries.n, err));
    return rp_vec_push(&c->entries, e, err);
}

static enum rp_code read_data_block(struct rp_checkpoint *c, struct rp_bytes file,
                                    struct rp_bytes key, struct rp_bytes value, struct rp_err *err)
{
    uint64_t offset, size;
    struct block b;

    (void)key;
    if (!read_handle(value.at, value.at + value.n, &offset, &size))
        return rp_err_set(err, RP_FORMAT, "an entry of the index of blocks is damaged");
    RP_TRY(open_block(c, file, offset, size, &b, err));
    return each_entry(c, file, &b, add_entry, err);
}

static enum rp_code read_index(struct rp_checkpoint *c, struct rp_bytes file, struct rp_err *err)
{
    uint64_t offset, size, magic = 0;
    struct block b;

    if (file.n < FOOTER)
        return rp_err_set(err, RP_FORMAT, "too short for the index of a checkpoint");
    const uint8_t *footer = file.at + file.n - FOOTER;
    for (size_t i = 8; i-- > 0;)
        magic = magic << 8 | footer[40 + i];
    if (magic != MAGIC)
        return rp_err_set(err, RP_FORMAT,
                          "it is not the index of a checkpoint, or it is truncated");
    const uint8_t *p = read_handle(footer, footer + 40, &offset, &size);
    p = p ? read_handle(p, footer + 40, &offset, &size) : NULL;
    if (!p)
        return rp_err_set(err, RP_FORMAT, "the footer of the index is damaged");
    RP_TRY(open_block(c, file, offset, size, &b, err));
    RP_TRY(each_entry(c, file, &b, read_data_block, err));
    if (!c->nfiles)
        return rp_err_set(err, RP_FORMAT, "the index has no header");
    c->files = RP_ARENA_NEW(&c->arena, struct rp_input *, c->nfiles);
    return rp_err_need(c->files, err, "reading a checkpoint");
}

/* ---- files ---- */

static struct rp_checkpoint *new_checkpoint(const struct rp_limits *limits)
{
    struct rp_checkpoint *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    rp_arena_init(&c->arena);
    c->limits = limits ? *limits : RP_LIMITS_DEFAULT;
    make_table(c->crc_table);
    return c;
}

enum rp_code rp_checkpoint_parse(const uint8_t *bytes, size_t n, const struct rp_limits *limits,
                                 struct rp_checkpoint **out, struct rp_err *err)
{
    struct rp_checkpoint *c = *out = new_checkpoint(limits);

    return c ? read_index(c, (struct rp_bytes){bytes, n}, err)
             : rp_err_nomem(err, "reading a checkpoint");
}

enum rp_code rp_checkpoint_open(const char *prefix, const struct rp_limits *limits,
                                struct rp_checkpoint **out, struct rp_err *err)
{
    struct rp_checkpoint *c = *out = new_checkpoint(limits);
    struct rp_bytes file;

    RP_TRY(rp_err_need(c, err, "reading a checkpoint"));
    c->prefix = rp_arena_strdup(&c->arena, prefix);
    char *path = rp_arena_printf(&c->arena, "%s.index", prefix);
    RP_TRY(rp_err_need(path && c->prefix, err, "reading a checkpoint"));
    RP_TRY(rp_input_open(path, limits, &c->index, err));
    enum rp_code code = rp_input_slurp(c->index, &file.at, &file.n, err);
    if (code == RP_OK)
        code = read_index(c, file, err);
    return code == RP_OK ? RP_OK : rp_err_prefix(err, code, "'%s'", path);
}

void rp_checkpoint_close(struct rp_checkpoint *c)
{
    if (!c)
        return;
    for (uint64_t i = 0; c->files && i < c->nfiles; i++)
        rp_input_close(c->files[i]);
    rp_input_close(c->index);
    rp_vec_release(&c->entries);
    rp_map_release(&c->by_key);
    rp_arena_release(&c->arena);
    free(c);
}

static enum rp_code data_of(struct rp_checkpoint *c, uint64_t file, struct rp_bytes *out,
                            struct rp_err *err)
{
    if (file >= c->nfiles || !c->prefix)
        return rp_err_set(err, RP_FORMAT, "it refers to data file %llu of %llu",
                          (unsigned long long)file, (unsigned long long)c->nfiles);
    char *path = rp_arena_printf(&c->arena, "%s.data-%05llu-of-%05llu", c->prefix,
                                 (unsigned long long)file, (unsigned long long)c->nfiles);
    RP_TRY(rp_err_need(path, err, "reading a checkpoint"));
    if (!c->files[file])
        RP_TRY(rp_input_open(path, &c->limits, &c->files[file], err));
    return rp_input_slurp(c->files[file], &out->at, &out->n, err);
}

static enum rp_code take_value(struct rp_checkpoint *c, const struct entry *e,
                               struct rp_tf_value *out, struct rp_err *err)
{
    struct rp_bytes file;

    memset(out, 0, sizeof *out);
    out->elem = rp_tf_elem_of(e->type);
    size_t unit = rp_literal_unit(out->elem);
    if (!unit || e->sliced)
        return rp_err_set(err, RP_UNSUPPORTED, "%s",
                          e->sliced ? "it is stored in slices" : "its type is not supported");
    RP_TRY(rp_tf_shape_decode(rp_proto_cursor(e->shape.at, e->shape.n, 0, 32), out, err));
    out->n = 1;
    for (uint32_t i = 0; i < out->rank; i++)
        if (__builtin_mul_overflow(out->n, (size_t)out->dims[i], &out->n))
            return rp_err_set(err, RP_LIMIT, "its shape is too large");
    if (__builtin_mul_overflow(out->n, unit, &out->nbytes) || out->nbytes != e->size)
        return rp_err_set(err, RP_FORMAT, "its shape does not match its %llu bytes",
                          (unsigned long long)e->size);
    RP_TRY(data_of(c, e->file, &file, err));
    if (e->offset > file.n || e->size > file.n - e->offset)
        return rp_err_set_at(err, RP_FORMAT, e->offset,
                             "its data file is truncated: it ends at byte %zu, before byte %llu",
                             file.n, (unsigned long long)(e->offset + e->size));
    out->data = file.at + e->offset;
    if (crc_of(c->crc_table, out->data, out->nbytes) != e->crc)
        return rp_err_set_at(err, RP_FORMAT, e->offset,
                             "checksum mismatch at byte %llu of the data file",
                             (unsigned long long)e->offset);
    return RP_OK;
}

enum rp_code rp_checkpoint_value(struct rp_checkpoint *c, const char *key, struct rp_tf_value *out,
                                 struct rp_err *err)
{
    uint32_t i = rp_map_get(&c->by_key, rp_hash_bytes(key, strlen(key)));
    const struct entry *e =
        i < c->entries.n && !strcmp(c->entries.at[i].key, key) ? &c->entries.at[i] : NULL;

    if (!e)
        return rp_err_set(err, RP_FORMAT, "the checkpoint '%s' has no '%s'",
                          c->prefix ? c->prefix : "", key);
    enum rp_code code = take_value(c, e, out, err);
    return code == RP_OK || code == RP_NOMEM ? code
                                             : rp_err_prefix(err, code, "variable '%s'", key);
}
