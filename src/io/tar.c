/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading tar. A tar is blocks of 512 bytes: a header with name, size and type, the content padded
 * to whole blocks, the next header; blocks of zeros end it. Extensions are separate headers that
 * describe the next one: 'L' holds a long name (GNU), 'x' holds "length key=value" lines (pax).
 *
 *     [header 'x'][path=..., size=...] [header '0'][content......|pad] ... [zeros][zeros]
 *
 * If the input is in memory uncompressed (a mapped tar), content is a slice of it; otherwise a
 * member is read into memory that grows with the bytes that are really there, not with the size in
 * the header.
 */
#include "io/tar.h"
#include "base/each.h"
#include "base/scope.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define EXTENSION_BYTES ((uint64_t)1 << 20) /* of a name or a set of pax records */
#define SKIP_BYTES      ((size_t)64 << 10)
#define FIRST_BYTES     ((size_t)1 << 20)

/* Offsets and lengths of the header's fields. */
enum {
    NAME_AT = 0,
    NAME_N = 100,
    SIZE_AT = 124,
    SIZE_N = 12,
    SUM_AT = 148,
    SUM_N = 8,
    TYPE_AT = 156,
    MAGIC_AT = 257,
    PREFIX_AT = 345,
    PREFIX_N = 155,
};

struct rp_tar {
    struct rp_input *in;
    struct rp_limits limits;
    const uint8_t *whole; /* NULL: read */
    size_t whole_n;
    uint64_t at;      /* offset in the tar */
    uint64_t pending; /* the content and padding of the last member that remain to be skipped */
    uint64_t members;
    bool ended, cut;
    uint8_t *held;
    char name[NAME_N + 1 + PREFIX_N + 1]; /* of a header */
    char *long_name;                      /* from 'L' or 'x', for the next file */
    bool has_long_size;
    uint64_t long_size;  /* from 'x' */
    bool sparse;         /* from 'x' */
    uint8_t *scratch;    /* SKIP_BYTES */
    uint64_t held_total; /* the bytes of all members that were read and returned */
};

/* ---- header fields ---- */

/* Parses octal digits with blanks around them, or base 256 if the first bit is set. */
static bool parse_number(const uint8_t *field, size_t n, uint64_t *value)
{
    size_t i = 0;
    uint64_t v = 0;

    if (field[0] & 0x80) {
        v = field[0] & 0x3f;
        for (i = 1; i < n; i++) {
            if (v >> 55)
                return false;
            v = v << 8 | field[i];
        }
        *value = v;
        return !(field[0] & 0x40); /* negative */
    }
    while (i < n && field[i] == ' ')
        i++;
    for (; i < n && field[i] >= '0' && field[i] <= '7'; i++)
        v = v << 3 | (uint64_t)(field[i] - '0'); /* 12 digits are 36 bits */
    for (; i < n; i++)
        if (field[i] != ' ' && field[i] != '\0')
            return false;
    *value = v;
    return true;
}

/* The sum of all bytes with blanks in place of the sum itself. Some old programs added signed
 * bytes.
 */
static bool checksum_ok(const uint8_t *h)
{
    int64_t plain = 0, with_sign = 0;
    uint64_t want;

    if (!parse_number(h + SUM_AT, SUM_N, &want))
        return false;
    for (size_t i = 0; i < RP_TAR_BLOCK; i++) {
        uint8_t c = i >= SUM_AT && i < SUM_AT + SUM_N ? ' ' : h[i];

        plain += c;
        with_sign += (int8_t)c;
    }
    return (int64_t)want == plain || (int64_t)want == with_sign;
}

bool rp_tar_matches(const uint8_t *bytes, size_t n)
{
    uint64_t size;

    return n >= RP_TAR_BLOCK && bytes[NAME_AT] != '\0' && checksum_ok(bytes) &&
           parse_number(bytes + SIZE_AT, SIZE_N, &size);
}

static bool is_zero_block(const uint8_t *h)
{
    for (size_t i = 0; i < RP_TAR_BLOCK; i++)
        if (h[i])
            return false;
    return true;
}

/* ---- moving through the tar ---- */

static enum rp_code tar_damaged(const struct rp_tar *tar, uint64_t offset, const char *what,
                                struct rp_err *err)
{
    return rp_err_set_at(err, RP_FORMAT, offset, "'%s': the tar is damaged at byte %llu: %s",
                         rp_input_borrow_name(tar->in), (unsigned long long)offset, what);
}

/* Reads up to n bytes, fewer only at the end. */
static enum rp_code read_some(struct rp_tar *tar, uint8_t *out, size_t n, size_t *got,
                              struct rp_err *err)
{
    *got = 0;
    if (tar->whole) {
        size_t left = tar->at < tar->whole_n ? tar->whole_n - (size_t)tar->at : 0;

        *got = n < left ? n : left;
        memcpy(out, tar->whole + (left ? tar->at : 0), *got);
    } else {
        size_t part = 1;

        while (*got < n && part > 0) {
            RP_TRY(rp_input_read(tar->in, out + *got, n - *got, &part, err));
            *got += part;
        }
    }
    tar->at += *got;
    return RP_OK;
}

static enum rp_code skip_bytes(struct rp_tar *tar, uint64_t n, struct rp_err *err)
{
    if (tar->whole) {
        tar->at = n < tar->whole_n - tar->at ? tar->at + n : tar->whole_n;
        return RP_OK;
    }
    while (n > 0) {
        size_t part = n < SKIP_BYTES ? (size_t)n : SKIP_BYTES, got;

        RP_TRY(read_some(tar, tar->scratch, part, &got, err));
        if (got < part)
            return RP_OK; /* reading the next header reports the end */
        n -= part;
    }
    return RP_OK;
}

/* Reads n bytes into a block that grows as they come; *got is less than n only at the end. */
static enum rp_code read_held(struct rp_tar *tar, uint64_t n, uint8_t **out, size_t *got,
                              struct rp_err *err)
{
    size_t cap = n < FIRST_BYTES ? (size_t)n : FIRST_BYTES, part;

    *got = 0;
    *out = malloc(cap + 1);
    while (*out) {
        RP_TRY(read_some(tar, *out + *got, cap - *got, &part, err));
        *got += part;
        if (*got < cap || cap == n)
            return RP_OK;
        cap = n / 2 < cap ? (size_t)n : 2 * cap;
        uint8_t *larger = realloc(*out, cap + 1);
        if (!larger)
            break;
        *out = larger;
    }
    return rp_err_nomem(err, "reading a member of a tar");
}

static uint64_t padding(uint64_t n)
{
    return -n & (RP_TAR_BLOCK - 1);
}

/* ---- extensions: long names and pax records ---- */

static enum rp_code set_long_name(struct rp_tar *tar, const uint8_t *at, size_t n,
                                  struct rp_err *err)
{
    free(tar->long_name);
    tar->long_name = strndup((const char *)at, n);
    return rp_err_need(tar->long_name, err, "reading a tar");
}

static bool key_is(const uint8_t *key, size_t n, const char *name)
{
    return n == strlen(name) && memcmp(key, name, n) == 0;
}

static enum rp_code pax_record(struct rp_tar *tar, const uint8_t *key, size_t key_n,
                               const uint8_t *value, size_t value_n, struct rp_err *err)
{
    if (key_is(key, key_n, "path"))
        return set_long_name(tar, value, value_n, err);
    if (key_n > 10 && memcmp(key, "GNU.sparse", 10) == 0)
        tar->sparse = true;
    if (!key_is(key, key_n, "size"))
        return RP_OK;
    tar->has_long_size = true;
    tar->long_size = 0;
    for (size_t i = 0; i < value_n; i++) {
        if (value[i] < '0' || value[i] > '9' || tar->long_size > UINT64_MAX / 32)
            return tar_damaged(tar, tar->at, "a pax size is not a number", err);
        tar->long_size = tar->long_size * 10 + (uint64_t)(value[i] - '0');
    }
    return RP_OK;
}

/* Reads "27 path=some/long/name ", in which the length counts the whole line. */
static enum rp_code pax_records(struct rp_tar *tar, const uint8_t *at, size_t n, struct rp_err *err)
{
    while (n > 0 && *at != '\0') {
        size_t len = 0, i = 0;

        for (; i < n && at[i] >= '0' && at[i] <= '9' && len <= n; i++)
            len = len * 10 + (size_t)(at[i] - '0');
        if (i == 0 || i >= n || at[i] != ' ' || len > n || len < i + 3 || at[len - 1] != '\n')
            return tar_damaged(tar, tar->at, "bad pax records", err);
        i++;
        const uint8_t *equals = memchr(at + i, '=', len - i);
        if (!equals)
            return tar_damaged(tar, tar->at, "bad pax records", err);
        RP_TRY(pax_record(tar, at + i, (size_t)(equals - at) - i, equals + 1,
                          len - 2 - (size_t)(equals - at), err));
        at += len;
        n -= len;
    }
    return RP_OK;
}

static enum rp_code read_extension(struct rp_tar *tar, uint8_t type, uint64_t size,
                                   struct rp_err *err)
{
    RP_FREED uint8_t *bytes = NULL;
    size_t got;

    if (size > EXTENSION_BYTES)
        return tar_damaged(tar, tar->at, "an extended header is longer than 1 MiB", err);
    RP_TRY(read_held(tar, size, &bytes, &got, err));
    if (got < size)
        tar->ended = tar->cut = true;
    else if (type == 'L')
        RP_TRY(set_long_name(tar, bytes, got, err));
    else
        RP_TRY(pax_records(tar, bytes, got, err));
    return skip_bytes(tar, padding(size), err);
}

static void forget_extension(struct rp_tar *tar)
{
    free(tar->long_name);
    tar->long_name = NULL;
    tar->has_long_size = false;
    tar->sparse = false;
}

/* ---- members ---- */

static bool is_wanted(const char *name, uint8_t type)
{
    const char *base = rp_text_file(name);

    if (type != '0' && type != '\0' && type != '7')
        return false;
    /* before ustar a folder was a name that ends in '/' */
    return *base != '\0' && strncmp(base, "._", 2) != 0;
}

static enum rp_code give_content(struct rp_tar *tar, uint64_t size, struct rp_tar_member *m,
                                 struct rp_err *err)
{
    if (size > tar->limits.input_bytes)
        return rp_err_set_at(err, RP_LIMIT, tar->at,
                             "'%s!%s' is longer than the limit input_bytes (%llu): raise the limit "
                             "to read it",
                             rp_input_borrow_name(tar->in), m->name,
                             (unsigned long long)tar->limits.input_bytes);
    m->offset = tar->at;
    m->held = !tar->whole;
    if (tar->whole) {
        size_t left = tar->whole_n - (size_t)tar->at;

        m->bytes = tar->whole + tar->at;
        m->n = size < left ? (size_t)size : left;
        tar->at += m->n;
    } else {
        /* Reads a member into tar->held. The limit applies to the bytes that are there, not to the
         * size in the header. */
        uint64_t left = tar->limits.held_bytes - tar->held_total;
        uint64_t start = tar->at;
        RP_TRY(read_held(tar, size < left ? size : left + 1, &tar->held, &m->n, err));
        if (m->n > left) {
            RP_TRY(rp_err_set_at(
                err, RP_LIMIT, start,
                "'%s' holds more than %llu bytes (limit held_bytes): unpack it and read "
                "the folder",
                rp_input_borrow_name(tar->in), (unsigned long long)tar->limits.held_bytes));
        }
        tar->held_total += m->n;
        m->bytes = tar->held;
    }
    m->truncated = m->n < size;
    tar->ended = tar->cut = m->truncated;
    tar->pending = padding(size);
    return RP_OK;
}

/* Reads one header; *size is the size of the content. Sets tar->ended at the end of the tar. */
static enum rp_code read_header(struct rp_tar *tar, uint8_t *h, uint64_t *size, struct rp_err *err)
{
    size_t got;

    RP_TRY(skip_bytes(tar, tar->pending, err));
    tar->pending = 0;
    uint64_t start = tar->at;
    RP_TRY(read_some(tar, h, RP_TAR_BLOCK, &got, err));
    if (got < RP_TAR_BLOCK || is_zero_block(h)) {
        tar->ended = true;
        tar->cut = got > 0 && got < RP_TAR_BLOCK;
        return RP_OK;
    }
    if (!checksum_ok(h))
        return tar_damaged(tar, start, "the header's checksum is wrong", err);
    if (!parse_number(h + SIZE_AT, SIZE_N, size) || *size > INT64_MAX)
        return tar_damaged(tar, start, "bad size of a member", err);
    if (++tar->members > tar->limits.members)
        return rp_err_set_at(
            err, RP_LIMIT, start, "'%s' holds more than %llu members (limit members)",
            rp_input_borrow_name(tar->in), (unsigned long long)tar->limits.members);
    return RP_OK;
}

/* Handles a header that is not an extension: returns or skips the member. */
static enum rp_code take_member(struct rp_tar *tar, const uint8_t *h, uint64_t size,
                                struct rp_tar_member *m, struct rp_err *err)
{
    /* Joins prefix/name; the prefix only exists in POSIX headers, because GNU keeps times there. */
    size_t n = 0, name_n = strnlen((const char *)h + NAME_AT, NAME_N);
    if (memcmp(h + MAGIC_AT, "ustar", 6) == 0 && h[PREFIX_AT]) {
        n = strnlen((const char *)h + PREFIX_AT, PREFIX_N);
        memcpy(tar->name, h + PREFIX_AT, n);
        tar->name[n++] = '/';
    }
    memcpy(tar->name + n, h + NAME_AT, name_n);
    tar->name[n + name_n] = '\0';
    m->name = tar->long_name ? tar->long_name : tar->name;
    if (tar->has_long_size)
        size = tar->long_size;
    if (h[TYPE_AT] == 'S' || (tar->sparse && h[TYPE_AT] == '0'))
        return rp_err_set_at(err, RP_UNSUPPORTED, tar->at,
                             "'%s!%s' is stored sparse: make the tar without --sparse",
                             rp_input_borrow_name(tar->in), m->name);
    if (is_wanted(m->name, h[TYPE_AT]))
        return give_content(tar, size, m, err);
    m->name = NULL;
    /* links and devices have no content, even with a size */
    if (h[TYPE_AT] < '1' || h[TYPE_AT] > '6')
        tar->pending = size + padding(size);
    if (h[TYPE_AT] != 'K' && h[TYPE_AT] != 'g') /* these apply to later members, too */
        forget_extension(tar);
    return RP_OK;
}

enum rp_code rp_tar_next(struct rp_tar *tar, struct rp_tar_member *member, struct rp_err *err)
{
    uint8_t h[RP_TAR_BLOCK];

    free(tar->held);
    tar->held = NULL;
    forget_extension(tar);
    *member = (struct rp_tar_member){0};
    while (!tar->ended && !member->name) {
        uint64_t size = 0;

        RP_TRY(read_header(tar, h, &size, err));
        if (tar->ended)
            break;
        if (h[TYPE_AT] == 'L' || h[TYPE_AT] == 'x')
            RP_TRY(read_extension(tar, h[TYPE_AT], size, err));
        else
            RP_TRY(take_member(tar, h, size, member, err));
    }
    return RP_OK;
}

bool rp_tar_truncated(const struct rp_tar *tar)
{
    return tar->cut || rp_input_truncated(tar->in);
}

uint8_t *rp_tar_keep(struct rp_tar *tar)
{
    uint8_t *bytes = tar->held;

    tar->held = NULL;
    return bytes;
}

enum rp_code rp_tar_open(struct rp_input *in, const struct rp_limits *limits, struct rp_tar **out,
                         struct rp_err *err)
{
    struct rp_tar *tar = calloc(1, sizeof *tar);

    *out = NULL;
    if (tar)
        tar->scratch = malloc(SKIP_BYTES);
    if (!tar || !tar->scratch) {
        rp_tar_close(tar);
        return rp_err_nomem(err, "opening a tar");
    }
    tar->in = in;
    tar->limits = limits ? *limits : RP_LIMITS_DEFAULT;
    tar->whole = rp_input_borrow_mapped(in, &tar->whole_n);
    *out = tar;
    return RP_OK;
}

void rp_tar_close(struct rp_tar *tar)
{
    if (!tar)
        return;
    RP_EACH(free, tar->held, tar->long_name, tar->scratch, tar);
}
