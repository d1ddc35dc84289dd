/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads .npy and .npz. A zip is read from its end: the central directory says where each member is,
 * and its sizes are checked against the file before anything is allocated, so a small file cannot
 * ask for much memory (a deflated member may grow at most 1032 times, which is deflate's own
 * limit). Stored members are copied once. Cost: one pass over the bytes.
 *
 *   zip:  [ local header | name | extra | data ] ... [ central directory ] [ end record ]
 *   npy:  \x93NUMPY  version  header length  {'descr': '<f4', 'fortran_order': False, 'shape':
 * (2,)}
 */
#include "exec/data/arrays.h"

#include "io/inflate.h"
#include "io/input.h"
#include "program/floats.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint16_t le16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t le32(const uint8_t *p)
{
    return le16(p) | (uint32_t)le16(p + 2) << 16;
}

static uint64_t le64(const uint8_t *p)
{
    return le32(p) | (uint64_t)le32(p + 4) << 32;
}

/* ---- npy ---- */

struct npy_type {
    char word[4]; /* after the byte order */
    uint8_t elem;
};
static const struct npy_type types[] = {
    {"f8", RP_ELEM_F64}, {"f4", RP_ELEM_F32},   {"f2", RP_ELEM_F16}, {"i1", RP_ELEM_S8},
    {"i2", RP_ELEM_S16}, {"i4", RP_ELEM_S32},   {"i8", RP_ELEM_S64}, {"u1", RP_ELEM_U8},
    {"u2", RP_ELEM_U16}, {"u4", RP_ELEM_U32},   {"u8", RP_ELEM_U64}, {"b1", RP_ELEM_PRED},
    {"c8", RP_ELEM_C64}, {"c16", RP_ELEM_C128}, {"V2", RP_ELEM_U16}, {"V1", RP_ELEM_U8},
};

/* The value after 'key': in the header, or NULL. */
static const char *header_value(const char *header, const char *key)
{
    const char *at = strstr(header, key);

    if (!at)
        return NULL;
    at += strlen(key);
    while (*at == ' ' || *at == ':')
        at++;
    return at;
}

static bool header_shape(const char *at, int64_t *dims, size_t *rank)
{
    *rank = 0;
    if (*at++ != '(')
        return false;
    for (;;) {
        char *end;

        while (*at == ' ' || *at == ',')
            at++;
        if (*at == ')')
            return true;
        if (*rank == RP_TENSOR_RANK)
            return false;
        dims[*rank] = strtoll(at, &end, 10);
        if (end == at || dims[*rank] < 0)
            return false;
        ++*rank;
        at = end;
    }
}

/* 'descr': "'<f4'", or for records a list of names and types. */
static const struct npy_type *header_type(const char *at, struct rp_err *err)
{
    size_t length = *at == '\'' ? strcspn(at + 1, "'") + 2 : strcspn(at, "]") + 1;
    bool is_string = *at == '\'' && at[1] && (at[2] == 'U' || at[2] == 'S');

    if (*at == '\'' && at[1] && strchr("<>|=", at[1]))
        for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
            size_t n = strlen(types[i].word);

            if (!strncmp(at + 2, types[i].word, n) && at[2 + n] == '\'')
                return &types[i];
        }
    rp_err_set(err, RP_UNSUPPORTED, "%s are not supported (%.*s): only numbers are",
               *at == '['                ? "records"
               : !strncmp(at, "'|O'", 4) ? "Python objects"
               : is_string               ? "strings"
                                         : "elements of its type",
               (int)(length < 60 ? length : 60), at);
    return NULL;
}

static enum rp_code npy_fill(const char *header, const uint8_t *data, size_t n,
                             struct rp_tensor **out, struct rp_err *err)
{
    const char *descr = header_value(header, "'descr'");
    const char *order = header_value(header, "'fortran_order'");
    const char *shape = header_value(header, "'shape'");
    uint32_t minor_first[RP_TENSOR_RANK];
    int64_t dims[RP_TENSOR_RANK];
    size_t rank, want = 1;

    if (!descr || !order || !shape || !header_shape(shape, dims, &rank))
        return rp_err_set(err, RP_FORMAT, "malformed header: %.60s", header);
    const struct npy_type *type = header_type(descr, err);
    if (!type)
        return RP_UNSUPPORTED;
    bool fortran = !strncmp(order, "True", 4);
    for (size_t i = 0; i < rank; i++) { /* checked before anything is allocated */
        minor_first[i] = (uint32_t)i;
        if (__builtin_mul_overflow(want, (size_t)dims[i], &want))
            want = SIZE_MAX / 64;
    }
    if (want > n || want * ((rp_elem_bits(type->elem) + 7) / 8) > n)
        return rp_err_set(err, RP_FORMAT, "its header asks for %zu elements, but %zu bytes follow",
                          want, n);
    RP_TRY(rp_tensor_new(type->elem, dims, rank, out, err));
    enum rp_code code = rp_tensor_permute(*out, fortran ? minor_first : NULL, false, data,
                                          rp_tensor_bytes(*out), err);
    if (code != RP_OK) {
        rp_tensor_drop(*out);
        *out = NULL;
        return code;
    }
    if (descr[1] == '>') {
        /* The bytes may be in another order than this program's. */
        struct rp_tensor *t = *out;
        size_t part = rp_elem_is_complex(t->elem) ? t->unit / 2 : t->unit;

        for (unsigned char *at = t->data, *end = at + rp_tensor_bytes(t); at < end; at += part)
            for (size_t i = 0; i < part / 2; i++) {
                unsigned char other = at[part - 1 - i];

                at[part - 1 - i] = at[i];
                at[i] = other;
            }
    }
    rp_tensor_tidy(*out);
    return RP_OK;
}

enum rp_code rp_npy_parse(const uint8_t *bytes, size_t n, struct rp_tensor **out,
                          struct rp_err *err)
{
    *out = NULL;
    if (n < 12 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return rp_err_set(err, RP_FORMAT, "not an .npy array");
    size_t begin = bytes[6] == 1 ? 10 : 12;
    size_t head = bytes[6] == 1 ? le16(bytes + 8) : le32(bytes + 8);
    if (bytes[6] < 1 || bytes[6] > 3 || head > n - begin || head > 65536)
        return rp_err_set_at(err, RP_FORMAT, 6, "its header is truncated or of an unknown version");
    RP_FREED char *header = malloc(head + 1);
    RP_TRY(rp_err_need(header, err, "reading an array"));
    memcpy(header, bytes + begin, head);
    header[head] = '\0';

    return npy_fill(header, bytes + begin + head, n - begin - head, out, err);
}

/* ---- npz ---- */

struct zip_member {
    const uint8_t *name, *data; /* data as stored in the file */
    size_t nname, packed, plain;
    unsigned method;
    uint32_t crc;
};

struct zip {
    const uint8_t *bytes;
    size_t n;
    uint64_t at, end; /* range of the central directory */
};

#define ZIP_BAD(offset, ...) rp_err_set_at(err, RP_FORMAT, offset, __VA_ARGS__)

/* Finds the directory, by the end record or the 64-bit one before it. */
static enum rp_code zip_open(struct zip *z, struct rp_err *err)
{
    size_t low = z->n > 22 + 65535 ? z->n - 22 - 65535 : 0, at = z->n < 22 ? 0 : z->n - 22;

    if (z->n < 22)
        return ZIP_BAD(0, "it is too short for a zip");
    while (memcmp(z->bytes + at, "PK\5\6", 4) != 0)
        if (at-- == low)
            return ZIP_BAD(z->n, "the end of the zip is missing: it is truncated, or not a zip");
    z->at = le32(z->bytes + at + 16);
    z->end = z->at + le32(z->bytes + at + 12);
    if (z->at == UINT32_MAX && at >= 20 && !memcmp(z->bytes + at - 20, "PK\6\7", 4)) {
        uint64_t big = le64(z->bytes + at - 12);

        if (z->n < 56 || big > z->n - 56 || memcmp(z->bytes + big, "PK\6\6", 4) != 0)
            return ZIP_BAD(big, "the 64-bit end record of the zip is not where it should be");
        z->at = le64(z->bytes + big + 48);
        z->end = z->at + le64(z->bytes + big + 40);
    }
    if (z->at > z->n || z->end > z->n || z->end < z->at)
        return ZIP_BAD(at, "the directory of the zip lies outside of the file");
    return RP_OK;
}

/* Sizes that do not fit in 32 bits are in extra field 1, in this order. */
static void zip_wide(const uint8_t *extra, size_t n, uint64_t *plain, uint64_t *packed,
                     uint64_t *local)
{
    uint64_t *wide[3] = {plain, packed, local};
    size_t at = 0;

    while (at + 4 <= n) {
        size_t len = le16(extra + at + 2), field = at + 4;

        if (len > n - field)
            return;
        if (le16(extra + at) == 1)
            for (size_t k = 0; k < 3; k++)
                if (*wide[k] == UINT32_MAX && field + 8 <= at + 4 + len) {
                    *wide[k] = le64(extra + field);
                    field += 8;
                }
        at += 4 + len;
    }
}

static enum rp_code zip_next(struct zip *z, struct zip_member *m, struct rp_err *err)
{
    const uint8_t *p = z->bytes + z->at;

    if (z->end - z->at < 46 || memcmp(p, "PK\1\2", 4) != 0)
        return ZIP_BAD(z->at, "the directory of the zip is damaged at byte %llu",
                       (unsigned long long)z->at);
    m->method = le16(p + 10);
    m->crc = le32(p + 16);
    uint64_t packed = le32(p + 20);
    uint64_t plain = le32(p + 24);
    m->nname = le16(p + 28);
    size_t nextra = le16(p + 30);
    size_t ncomment = le16(p + 32);
    uint64_t local = le32(p + 42);
    if (z->end - z->at - 46 < m->nname + nextra + ncomment)
        return ZIP_BAD(z->at, "the directory of the zip is truncated");
    m->name = p + 46;
    zip_wide(p + 46 + m->nname, nextra, &plain, &packed, &local);
    z->at += 46 + m->nname + nextra + ncomment;
    if (local > z->n || z->n - local < 30 || memcmp(z->bytes + local, "PK\3\4", 4) != 0)
        return ZIP_BAD(local, "a member of the zip is not where its directory says");
    uint64_t skip = 30 + (uint64_t)le16(z->bytes + local + 26) + le16(z->bytes + local + 28);
    if (z->n - local < skip || packed > z->n - local - skip)
        return ZIP_BAD(local, "a member of the zip extends past the end of the file");
    if (m->method == 0 ? plain != packed : plain / 1032 > packed + 1)
        return ZIP_BAD(local, "the sizes of a member of the zip contradict each other");
    m->data = z->bytes + local + skip;
    m->packed = (size_t)packed;
    m->plain = (size_t)plain;
    return RP_OK;
}

static enum rp_code zip_inflate(const struct zip_member *m, uint8_t *out, struct rp_err *err)
{
    struct rp_feed feed = {
        .at = m->data, .end = m->data + m->packed, .end_offset = m->packed, .ended = true};
    const struct rp_deflate *engine = &rp_deflate_zlib;
    enum rp_deflate_state now = RP_DEFLATE_MORE;
    const char *why = "it ends early";
    size_t got = 0;
    void *state;

    RP_TRY(engine->open(&state, err));
    engine->reset(state);
    enum rp_code code = RP_OK;
    while (code == RP_OK && now == RP_DEFLATE_MORE && got <= m->plain) {
        uint8_t over[1];
        bool full = got == m->plain;

        size_t step = 0;
        code = engine->step(state, &feed, full ? over : out + got, full ? 1 : m->plain - got, &step,
                            &now, &why, err);
        got += step;
    }
    engine->close(state);
    if (code == RP_OK && (now != RP_DEFLATE_END || got != m->plain))
        return rp_err_set(err, RP_FORMAT, "damaged compressed data: %s",
                          why ? why : "wrong length");
    return code;
}

static enum rp_code zip_array(const struct zip_member *m, struct rp_tensor **out,
                              struct rp_err *err)
{
    const uint8_t *plain = m->data;
    RP_FREED uint8_t *held = NULL;

    if (m->method == 8) {
        plain = held = malloc(m->plain + 1);
        RP_TRY(held ? zip_inflate(m, held, err) : rp_err_nomem(err, "reading an array"));
    } else if (m->method != 0)
        return rp_err_set(err, RP_UNSUPPORTED, "unknown compression method %u", m->method);
    if (rp_deflate_zlib.crc(0, plain, m->plain) != m->crc)
        return rp_err_set(err, RP_FORMAT, "checksum mismatch: the file is damaged");
    return rp_npy_parse(plain, m->plain, out, err);
}

enum rp_code rp_arrays_parse(const uint8_t *bytes, size_t n, const struct rp_limits *limits,
                             struct rp_arrays *out, struct rp_err *err)
{
    struct rp_limits most = limits ? *limits : RP_LIMITS_DEFAULT;
    struct zip z = {.bytes = bytes, .n = n};
    struct zip_member m = {0};
    struct rp_tensor *t;

    if (n >= 6 && !memcmp(bytes, "\x93NUMPY", 6)) {
        RP_TRY(rp_npy_parse(bytes, n, &t, err));
        return rp_arrays_add(out, t, err, "%s", "");
    }
    if (n < 4 || memcmp(bytes, "PK", 2) != 0)
        return ZIP_BAD(0, "it is neither .npz nor .npy");
    RP_TRY(zip_open(&z, err));
    while (z.at < z.end) {
        RP_TRY(zip_next(&z, &m, err));
        if (out->list.n >= most.members || m.plain > most.held_bytes)
            return rp_err_set(err, RP_LIMIT, "the zip has too many or too large members");
        if (m.nname < 4 || memcmp(m.name + m.nname - 4, ".npy", 4) != 0)
            continue; /* the zip has other files beside the arrays */
        enum rp_code code = zip_array(&m, &t, err);
        if (code != RP_OK)
            return rp_err_prefix(err, code, "member '%.*s'", (int)m.nname, (const char *)m.name);
        RP_TRY(rp_arrays_add(out, t, err, "%.*s", (int)m.nname - 4, (const char *)m.name));
    }
    return RP_OK;
}

enum rp_code rp_arrays_read(const char *path, const struct rp_limits *limits, struct rp_arrays *out,
                            struct rp_err *err)
{
    struct rp_input *in;
    const uint8_t *bytes;
    size_t n;

    memset(out, 0, sizeof *out);
    RP_TRY(rp_input_open(path, limits, &in, err));
    enum rp_code code = rp_input_slurp(in, &bytes, &n, err);
    if (code == RP_OK)
        code = rp_arrays_parse(bytes, n, limits, out, err);
    rp_input_close(in);
    if (code != RP_OK && code != RP_IO)
        code = rp_err_prefix(err, code, "'%s'", path);
    return code;
}

void rp_arrays_release(struct rp_arrays *arrays)
{
    for (size_t i = 0; i < arrays->list.n; i++)
        rp_tensor_drop(arrays->list.at[i].value);
    rp_vec_release(&arrays->list);
    rp_names_release(&arrays->places);
    rp_arena_release(&arrays->arena);
}

enum rp_code rp_arrays_add(struct rp_arrays *arrays, struct rp_tensor *value, struct rp_err *err,
                           const char *name, ...)
{
    struct rp_array row = {NULL, value};
    va_list args, again;

    va_start(args, name);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, name, args);
    char *text = rp_arena_alloc(&arrays->arena, (size_t)n + 1, 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, name, again);
    row.name = text;
    va_end(again);
    va_end(args);
    enum rp_code code = rp_err_need(text, err, "keeping arrays");
    if (code == RP_OK)
        code = rp_names_add(&arrays->places, text, (uint32_t)arrays->list.n, err);
    if (code == RP_OK)
        code = rp_vec_push(&arrays->list, row, err);
    if (code != RP_OK)
        rp_tensor_drop(value);
    return code;
}

struct rp_tensor *rp_arrays_find(const struct rp_arrays *arrays, const char *name)
{
    size_t n = strlen(name);
    uint32_t place = rp_names_find(&arrays->places, name);

    /* a single .npy is found under any name */
    if (arrays->list.n == 1 && !*arrays->list.at[0].name)
        return n && name[n - 1] == '0' && (n < 2 || name[n - 2] < '0' || name[n - 2] > '9')
                   ? arrays->list.at[0].value
                   : NULL;
    if (place == RP_NONE)
        return NULL;
    for (size_t i = place; i < arrays->list.n; i++) /* earlier ones may have been renamed */
        if (!strcmp(arrays->list.at[i].name, name))
            return arrays->list.at[i].value;
    return NULL;
}

/* ---- as the program wants it ---- */

static bool same_dims(const struct rp_tensor *t, const int64_t *dims, size_t rank)
{
    return rp_dims_same(t->dims, t->rank, dims, rank);
}

static bool has_npy_type(unsigned elem)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].elem == elem)
            return true;
    return false;
}

static enum rp_code array_convert(const struct rp_tensor *from, struct rp_tensor *to,
                                  const char *name, struct rp_err *err)
{
    bool float_to = rp_elem_is_float(to->elem), float_from = rp_elem_is_float(from->elem);
    bool byte = to->unit == 1 && from->unit == 1 && !float_from;

    if (float_to && float_from && from->unit != to->unit) {
        for (size_t i = 0; i < to->n; i++)
            rp_tensor_set(to, i, rp_tensor_number(from, i));
        return RP_OK;
    }
    if (from->unit == to->unit && !has_npy_type(to->elem) &&
        (rp_elem_is_unsigned(from->elem) || (byte && !float_to))) {
        memcpy(to->data, from->data, rp_tensor_bytes(from));
        rp_tensor_tidy(to);
        /* Integers of fewer bits may come in whole bytes: their values must fit. */
        bool whole = rp_elem_is_signed(to->elem) || rp_elem_is_unsigned(to->elem);
        for (size_t i = 0; whole && i < to->n; i++)
            if (rp_tensor_integer(to, i) != rp_tensor_integer(from, i) &&
                (from->data[i] & ~((1u << rp_elem_bits(to->elem)) - 1)))
                return rp_err_set(err, RP_FORMAT, "array '%s' holds %lld, which is not a valid %s",
                                  name, (long long)rp_tensor_integer(from, i),
                                  rp_elem_name(to->elem));
        return RP_OK;
    }
    if (byte && (to->elem == RP_ELEM_PRED || from->elem == RP_ELEM_PRED)) {
        memcpy(to->data, from->data, rp_tensor_bytes(from));
        rp_tensor_tidy(to);
        return RP_OK;
    }
    return rp_err_set(err, RP_FORMAT, "array '%s' is %s, but the program expects %s", name,
                      rp_elem_name(from->elem), rp_elem_name(to->elem));
}

enum rp_code rp_array_as(struct rp_tensor *array, unsigned elem, const int64_t *dims, size_t rank,
                         const char *name, struct rp_tensor **out, struct rp_err *err)
{
    char have[512], want[512];
    enum rp_code code;

    *out = NULL;
    if (array->elem == elem && same_dims(array, dims, rank)) {
        *out = rp_tensor_keep(array);
        return RP_OK;
    }
    RP_TRY(rp_tensor_new(elem, dims, rank, out, err));
    if (!same_dims(array, dims, rank)) {
        rp_tensor_shape_text(array, have, sizeof have);
        rp_tensor_shape_text(*out, want, sizeof want);
        code = rp_err_set(err, RP_FORMAT, "array '%s' is %s, but the program expects %s", name,
                          have, want);
    } else {
        code = array_convert(array, *out, name, err);
    }
    if (code != RP_OK) {
        rp_tensor_drop(*out);
        *out = NULL;
    }
    return code;
}
