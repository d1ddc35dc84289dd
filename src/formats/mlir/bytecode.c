/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the container of MLIR bytecode: integers, sections, and the tables of strings, dialects,
 * attributes, types, properties and resources. After the first error everything reads as empty, so
 * that a caller needs to check only once.
 *
 *   "ML\xefR"  version  producer\0  section*
 *   section:   id (high bit: aligned)  length  [alignment padding]  bytes
 */
#include "formats/mlir/bytecode.h"
#include "base/each.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_VERSION 6

enum {
    SECTION_STRINGS,
    SECTION_DIALECTS,
    SECTION_ATTRS_TYPES,
    SECTION_OFFSETS,
    SECTION_IR,
    SECTION_RESOURCES,
    SECTION_RESOURCE_OFFSETS,
    SECTION_VERSIONS,
    SECTION_PROPERTIES,
    SECTION_COUNT
};

/* ---- errors ---- */

enum rp_code rp_bc_fail(struct rp_bytecode *b, const uint8_t *at, const char *fmt, ...)
{
    char text[200];
    va_list list;

    if (b->code != RP_OK)
        return b->code;
    va_start(list, fmt);
    vsnprintf(text, sizeof text, fmt, list);
    va_end(list);
    b->code = rp_err_set_at(b->err, RP_FORMAT, (uint64_t)(at - b->begin),
                            "MLIR bytecode, byte %" PRIu64 ": %s", (uint64_t)(at - b->begin), text);
    return b->code;
}

/* ---- integers ---- */

uint8_t rp_bc_byte(struct rp_bytecode *b, struct rp_bc_cursor *c)
{
    if (b->code != RP_OK)
        return 0;
    if (c->at >= c->end) {
        rp_bc_fail(b, c->at, "the data ends too early");
        return 0;
    }
    return *c->at++;
}

/* The number of zero bits below the first one is the number of further bytes. */
uint64_t rp_bc_varint(struct rp_bytecode *b, struct rp_bc_cursor *c)
{
    uint8_t head = rp_bc_byte(b, c);
    unsigned more = head ? (unsigned)__builtin_ctz(head) : 8;
    uint64_t value = 0;

    if (b->code != RP_OK)
        return 0;
    if ((size_t)(c->end - c->at) < more) {
        rp_bc_fail(b, c->at, "the data ends inside a number");
        return 0;
    }
    for (unsigned i = 0; i < more; i++)
        value |= (uint64_t)c->at[i] << (8 * i);
    c->at += more;
    return more == 8 ? value : ((value << 8 | head) >> (more + 1));
}

int64_t rp_bc_signed(struct rp_bytecode *b, struct rp_bc_cursor *c)
{
    uint64_t v = rp_bc_varint(b, c);

    return (int64_t)(v >> 1 ^ (~(v & 1) + 1));
}

size_t rp_bc_count(struct rp_bytecode *b, struct rp_bc_cursor *c)
{
    const uint8_t *at = c->at;
    uint64_t n = rp_bc_varint(b, c);

    if (n <= (uint64_t)(c->end - c->at))
        return (size_t)n;
    rp_bc_fail(b, at, "a list of %" PRIu64 " items, but only %zu bytes follow", n,
               (size_t)(c->end - c->at));
    return 0;
}

struct rp_bc_cursor rp_bc_bytes(struct rp_bytecode *b, struct rp_bc_cursor *c, uint64_t n)
{
    struct rp_bc_cursor part = {c->at, c->at};

    if (b->code == RP_OK && n > (uint64_t)(c->end - c->at))
        rp_bc_fail(b, c->at, "%" PRIu64 " bytes are announced, only %zu follow", n,
                   (size_t)(c->end - c->at));
    if (b->code != RP_OK)
        return part;
    part.end = c->at += n;
    return part;
}

enum rp_code rp_bc_status(const struct rp_bytecode *b)
{
    return b->code;
}

static struct rp_slice bc_string_at(struct rp_bytecode *b, const uint8_t *at, uint64_t index)
{
    if (b->code == RP_OK && index < b->strings.n)
        return b->strings.at[index];
    rp_bc_fail(b, at, "string %" PRIu64 " of %zu", index, b->strings.n);
    return (struct rp_slice){"", 0, 0};
}

struct rp_slice rp_bc_string(struct rp_bytecode *b, struct rp_bc_cursor *c)
{
    const uint8_t *at = c->at;

    return bc_string_at(b, at, rp_bc_varint(b, c));
}

/* ---- sections ---- */

static void bc_align(struct rp_bytecode *b, struct rp_bc_cursor *c, uint64_t alignment)
{
    uint64_t offset = (uint64_t)(c->at - b->begin);

    if (b->code != RP_OK)
        return;
    if (!alignment || alignment & (alignment - 1) || alignment > 1 << 20)
        rp_bc_fail(b, c->at, "an alignment of %" PRIu64, alignment);
    else
        rp_bc_bytes(b, c, (alignment - offset % alignment) % alignment);
}

struct rp_bc_cursor rp_bc_section(struct rp_bytecode *b, struct rp_bc_cursor *c, uint8_t *id)
{
    const uint8_t *at = c->at;

    *id = rp_bc_byte(b, c);
    uint64_t length = rp_bc_varint(b, c);
    if (*id & 0x80)
        bc_align(b, c, rp_bc_varint(b, c));
    *id &= 0x7f;
    if (*id >= SECTION_COUNT)
        rp_bc_fail(b, at, "section %u is not known", *id);
    return rp_bc_bytes(b, c, length);
}

/* Reads the lengths of all strings, the last one first, then their bytes; each ends with a zero. */
static void bc_read_strings(struct rp_bytecode *b, struct rp_bc_cursor c)
{
    size_t n = rp_bc_count(b, &c);
    const uint8_t *end = c.end;

    if (b->code != RP_OK)
        return;
    b->code = rp_vec_reserve(&b->strings, n + 1, b->err);
    if (b->code != RP_OK)
        return;
    b->strings.n = n;
    memset(b->strings.at, 0, n * sizeof *b->strings.at);
    for (size_t i = n; i-- && b->code == RP_OK;) {
        const uint8_t *at = c.at;
        uint64_t length = rp_bc_varint(b, &c);

        if (length > (uint64_t)(end - c.at) || length > UINT32_MAX || !length) {
            rp_bc_fail(b, at, "a string of %" PRIu64 " bytes", length);
            return;
        }
        end -= length;
        b->strings.at[i] = (struct rp_slice){(const char *)end, (uint32_t)(length - 1), 0};
    }
    if (b->code == RP_OK && end != c.at)
        rp_bc_fail(b, c.at, "%zu bytes of no string", (size_t)(end - c.at));
}

/* "vhlo.add_v1" is "stablehlo.add"; calls are those of func. */
static void bc_add_name(struct rp_bytecode *b, struct rp_slice dialect, struct rp_slice own)
{
    struct rp_bc_op_name name = {.file = rp_arena_printf(&b->p->arena, "%.*s.%.*s", (int)dialect.n,
                                                         dialect.at, (int)own.n, own.at)};
    bool vhlo = dialect.n == 4 && memcmp(dialect.at, "vhlo", 4) == 0;
    uint32_t n = own.n;

    if (!name.file) {
        b->code = rp_err_nomem(b->err, "reading MLIR bytecode");
        return;
    }
    name.attrs = rp_bc_properties(name.file);
    name.name = (struct rp_slice){name.file, (uint32_t)strlen(name.file), 0};
    while (vhlo && n && own.at[n - 1] >= '0' && own.at[n - 1] <= '9')
        n--;
    if (vhlo && n > 2 && n < own.n && own.at[n - 1] == 'v' && own.at[n - 2] == '_') {
        bool func = (n == 6 && memcmp(own.at, "call", 4) == 0) || /* and the '_v' */
                    (n == 6 && memcmp(own.at, "func", 4) == 0);

        name.name.at = rp_arena_printf(&b->p->arena, "%s.%.*s", func ? "func" : "stablehlo",
                                       (int)n - 2, own.at);
        name.name.n = name.name.at ? (uint32_t)strlen(name.name.at) : 0;
    }
    b->code = name.name.at ? rp_vec_push(&b->names, name, b->err)
                           : rp_err_nomem(b->err, "reading MLIR bytecode");
}

static void bc_read_dialects(struct rp_bytecode *b, struct rp_bc_cursor c)
{
    size_t n = rp_bc_count(b, &c);

    for (size_t i = 0; i < n && b->code == RP_OK; i++) {
        const uint8_t *at = c.at;
        uint64_t name = rp_bc_varint(b, &c);
        struct rp_slice text = bc_string_at(b, at, b->version >= 1 ? name >> 1 : name);
        uint8_t id;

        if (b->version >= 1 && name & 1)
            rp_bc_section(b, &c, &id);
        if (text.n > 150)
            rp_bc_fail(b, at, "the name of a dialect has %u bytes", text.n);
        if (b->code == RP_OK)
            b->code = rp_vec_push(&b->dialects, text, b->err);
    }
    if (b->version >= 4)
        rp_bc_varint(b, &c); /* the number of operations */
    /* The names of operations, by dialect. */
    while (b->code == RP_OK && c.at < c.end) {
        const uint8_t *at = c.at;
        uint64_t dialect = rp_bc_varint(b, &c);
        size_t ops = rp_bc_count(b, &c);
        if (dialect >= b->dialects.n)
            rp_bc_fail(b, at, "dialect %" PRIu64 " of %zu", dialect, b->dialects.n);
        for (size_t i = 0; i < ops && b->code == RP_OK; i++) {
            uint64_t name = rp_bc_varint(b, &c);
            struct rp_slice own = bc_string_at(b, at, b->version >= 5 ? name >> 1 : name);
            if (own.n > 150)
                rp_bc_fail(b, at, "the name of an operation has %u bytes", own.n);
            if (b->code == RP_OK)
                bc_add_name(b, b->dialects.at[dialect], own);
        }
    }
}

/* Reads the sizes of the encoded attributes, then of the types, in groups of one dialect. */
static void bc_read_entries(struct rp_bytecode *b, struct rp_bc_cursor c, struct rp_bc_cursor data)
{
    uint64_t nattrs = rp_bc_count(b, &c), ntypes = rp_bc_count(b, &c);

    while (b->code == RP_OK && (b->attrs.n < nattrs || b->types.n < ntypes)) {
        const uint8_t *at = c.at;
        uint64_t dialect = rp_bc_varint(b, &c);
        size_t n = rp_bc_count(b, &c);

        if (dialect >= b->dialects.n)
            rp_bc_fail(b, at, "dialect %" PRIu64 " of %zu", dialect, b->dialects.n);
        for (size_t i = 0; i < n && b->code == RP_OK; i++) {
            uint64_t size = rp_bc_varint(b, &c);
            struct rp_bc_entry entry = {.dialect = (uint32_t)dialect, .custom = size & 1};

            entry.data = rp_bc_bytes(b, &data, size >> 1);
            if (b->code == RP_OK)
                b->code = b->attrs.n < nattrs ? rp_vec_push(&b->attrs, entry, b->err)
                                              : rp_vec_push(&b->types, entry, b->err);
        }
        if (b->types.n > ntypes)
            rp_bc_fail(b, at, "more types than announced");
    }
}

static void bc_read_properties(struct rp_bytecode *b, struct rp_bc_cursor c)
{
    size_t n = rp_bc_count(b, &c);

    for (size_t i = 0; i < n && b->code == RP_OK; i++) {
        uint64_t size = rp_bc_varint(b, &c);
        struct rp_bc_cursor one = rp_bc_bytes(b, &c, size);

        if (b->code == RP_OK)
            b->code = rp_vec_push(&b->properties, one, b->err);
    }
}

/* ---- resources ---- */

enum { RESOURCE_BLOB, RESOURCE_BOOL, RESOURCE_STRING };

static void bc_read_resource_group(struct rp_bytecode *b, struct rp_bc_cursor *c,
                                   struct rp_bc_cursor *data, bool of_dialect)
{
    size_t n = rp_bc_count(b, c);

    for (size_t i = 0; i < n && b->code == RP_OK; i++) {
        struct rp_bc_cursor blob = {NULL, NULL};

        rp_bc_string(b, c);
        struct rp_bc_cursor one = rp_bc_bytes(b, data, rp_bc_varint(b, c));
        uint8_t kind = rp_bc_byte(b, c);

        if (kind == RESOURCE_BLOB && one.at < one.end) {
            uint64_t alignment = rp_bc_varint(b, &one), size = rp_bc_varint(b, &one);

            bc_align(b, &one, alignment);
            blob = rp_bc_bytes(b, &one, size);
        }
        if (of_dialect && b->code == RP_OK)
            b->code = rp_vec_push(&b->resources, blob, b->err);
    }
}

static void bc_read_resources(struct rp_bytecode *b, struct rp_bc_cursor c,
                              struct rp_bc_cursor data)
{
    size_t external = rp_bc_count(b, &c);

    for (size_t i = 0; i < external && b->code == RP_OK; i++) {
        rp_bc_string(b, &c);
        bc_read_resource_group(b, &c, &data, false);
    }
    while (b->code == RP_OK && c.at < c.end) {
        rp_bc_varint(b, &c); /* the dialect */
        bc_read_resource_group(b, &c, &data, true);
    }
}

/* ---- the whole ---- */

static void bc_read_module(struct rp_bytecode *b)
{
    struct rp_bc_cursor c = {b->begin + 4, b->end}, sections[SECTION_COUNT] = {{NULL, NULL}};

    b->version = rp_bc_varint(b, &c);
    if (b->version > MAX_VERSION)
        rp_bc_fail(b, b->begin + 4, "version %" PRIu64 "; up to %d can be read", b->version,
                   MAX_VERSION);
    const uint8_t *zero = b->code == RP_OK ? memchr(c.at, 0, (size_t)(c.end - c.at)) : NULL;
    if (!zero) {
        rp_bc_fail(b, c.at, "the name of the producer does not end");
        return;
    }
    c.at = zero + 1;
    while (b->code == RP_OK && c.at < c.end) {
        const uint8_t *at = c.at;
        uint8_t id;
        struct rp_bc_cursor section = rp_bc_section(b, &c, &id);

        if (b->code == RP_OK && sections[id].at)
            rp_bc_fail(b, at, "section %u a second time", id);
        if (b->code == RP_OK)
            sections[id] = section;
    }
    for (unsigned i = SECTION_STRINGS; i <= SECTION_IR; i++)
        if (!sections[i].at)
            rp_bc_fail(b, b->end, "section %u is missing", i);
    if (b->code != RP_OK)
        return;
    bc_read_strings(b, sections[SECTION_STRINGS]);
    bc_read_dialects(b, sections[SECTION_DIALECTS]);
    if (sections[SECTION_PROPERTIES].at)
        bc_read_properties(b, sections[SECTION_PROPERTIES]);
    if (sections[SECTION_RESOURCE_OFFSETS].at && sections[SECTION_RESOURCES].at)
        bc_read_resources(b, sections[SECTION_RESOURCE_OFFSETS], sections[SECTION_RESOURCES]);
    bc_read_entries(b, sections[SECTION_OFFSETS], sections[SECTION_ATTRS_TYPES]);
    rp_bc_read_ir(b, sections[SECTION_IR]);
}

enum rp_code rp_bytecode_build(struct rp_mlir *r)
{
    struct rp_bytecode b = {.begin = (const uint8_t *)r->begin,
                            .end = (const uint8_t *)r->end,
                            .err = r->err,
                            .p = r->p};

    b.work_most = (UINT64_C(16) << 20) + 512 * (uint64_t)(b.end - b.begin);
    r->bytecode = &b;
    if (b.end - b.begin < 4 || memcmp(b.begin, "ML\xefR", 4) != 0)
        rp_bc_fail(&b, b.begin, "not MLIR bytecode");
    else
        bc_read_module(&b);
    enum rp_code code = b.code == RP_OK ? rp_bc_module(r) : b.code;
    RP_EACH(rp_vec_release, &b.strings, &b.dialects, &b.names, &b.attrs, &b.types, &b.shapes,
            &b.properties, &b.resources);
    RP_EACH(rp_vec_release, &b.ops, &b.regions, &b.values, &b.operands);
    RP_EACH(rp_vec_release, &b.scopes, &b.visible, &b.named);
    r->bytecode = NULL;
    return code;
}

/* A file of jax.export is a FlatBuffer; the module is one of its byte vectors. */
const uint8_t *rp_bytecode_find(const uint8_t *bytes, size_t n)
{
    const uint8_t *at = bytes;

    if (n >= 4 && memcmp(bytes, "ML\xefR", 4) == 0)
        return bytes;
    while ((at = memmem(at, n - (size_t)(at - bytes), "ML\xefR", 4))) {
        uint32_t length;

        if (at - bytes >= 4) {
            memcpy(&length, at - 4, 4);
            if (length > 4)
                return at;
        }
        at += 4;
    }
    return NULL;
}

size_t rp_bytecode_length(const uint8_t *module)
{
    uint32_t length;

    memcpy(&length, module - 4, sizeof length);
    return length;
}
