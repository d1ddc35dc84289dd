/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A pull parser for JSON of any size: the caller asks for the next field, element or value, and
 * gets text that is borrowed from the input.
 *
 *     rp_json_value(p, &v);                          enters the top-level object
 *     while (rp_json_field(p, &key))
 *         if (rp_json_key_is(&key, "traceEvents") && rp_json_value(p, &v) == RP_JSON_ARRAY)
 *             while (rp_json_element(p))
 *                 read_event(p);                     value, then fields until false
 *         else
 *             rp_json_skip(p);
 *     code = rp_json_finish(p, err);
 *
 * After a field and after an element exactly one of value, skip or raw must follow. The first error
 * is kept: it makes every call return false or RP_JSON_NONE, so that loops end, and finish returns
 * it.
 *
 * Method: json_blocks.h cuts the input into blocks that never separate a key from its value, and
 * indexes them (json_index.h), optionally on another thread. The functions below jump along the
 * index inside a block; rare cases (the next block, errors, unusual numbers) are left to the _slow
 * functions, which start again from the same state.
 *
 * The whole grammar is checked, also of skipped values, with these exceptions: NaN, Infinity and
 * -Infinity are numbers (counted), strings may contain control characters (counted), escapes and
 * UTF-8 are not checked (see rp_json_unescape). One thread at a time.
 */
#include "base/err.h"
#include "base/limits.h"
#include "io/input.h"
#include "io/json_index.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum rp_json_kind {
    RP_JSON_NONE, /* it failed, or there is none */
    RP_JSON_OBJECT,
    RP_JSON_ARRAY,
    RP_JSON_STRING,
    RP_JSON_NUMBER,
    RP_JSON_TRUE,
    RP_JSON_FALSE,
    RP_JSON_NULL
};

/*
 * A key or a value. text is borrowed until the next call of rp_json_field, _element, _skip, _raw or
 * _more: a key outlives the reading of its value. For a string it is the text between the quotes,
 * for an object or array the bracket only. Not NUL-terminated.
 */
struct rp_json_token {
    const char *text;
    uint32_t len;
    uint8_t kind;     /* enum rp_json_kind */
    bool has_escapes; /* a string with a backslash: see rp_json_decode */
    bool is_integer;  /* a number without fraction and exponent */
};

struct rp_json_options {
    const struct rp_limits *limits; /* copied; NULL for the defaults */
    bool threaded;                  /* read and index on another thread if there are two cores */
    bool trailing_comma;            /* allow a comma before the '}' of a top-level object */
    bool missing_comma;             /* allow objects of an array without a comma between them */
    /* for tests and benchmarks; 0 for the default */
    uint32_t block_bytes;    /* 0: the default */
    rp_json_index_fn *index; /* NULL: the fastest */
};

struct rp_json_stats {
    uint64_t control_bytes; /* bytes below 0x20 inside strings, in the blocks so far */
    uint64_t non_finite;    /* NaN, Infinity, -Infinity */
    uint64_t bad_escapes;   /* found by rp_json_decode */
    uint64_t trailing_commas;
    bool truncated; /* the compressed stream was cut short (known only at the end) */
};

struct rp_json_inner;

/* Private; it is here so that the functions below can be inlined. */
struct rp_json {
    const char *at;     /* the next byte; after a field or an element, the first of the value */
    const uint32_t *ix; /* the first entry at or after `at` */
    const char *text;   /* the block */
    const char *end;    /* the end of the block; *end is readable, and NUL in the last block */
    const uint32_t *ix_end;
    char *stack; /* the '}' or ']' of each open container */
    uint32_t depth, depth_cap;
    uint32_t token_max;
    bool fresh; /* nothing of the innermost container has been read */
    bool plain; /* there is no backslash in this block */
    bool failed;
    uint64_t offset; /* the offset of text[0] in the input */
    struct rp_json_inner *inner;
    uint64_t unread; /* the offset of the value after the last key of rp_json_next */
};

/*
 * Opens the parser. `in` must be at its beginning, is owned by the caller, and must be left alone
 * until rp_json_close. Nothing is read before the first value is asked for. options may be NULL for
 * the defaults.
 */
enum rp_code rp_json_open(struct rp_input *in, const struct rp_json_options *options,
                          struct rp_json **out, struct rp_err *err);
/* Waits until a read on the other thread returns. p may be NULL. */
void rp_json_close(struct rp_json *p);

/* Reads the next value: a scalar, or a container, which is entered. */
static inline enum rp_json_kind rp_json_value(struct rp_json *p, struct rp_json_token *value);
/* In an object: reads the next key, or returns false after its '}'. */
static inline bool rp_json_field(struct rp_json *p, struct rp_json_token *key);
/* Does the same for readers that ask only for some values: if nothing was read after the last key,
 * its value is skipped first. */
bool rp_json_next(struct rp_json *p, struct rp_json_token *key);
/* In an array: whether there is another element; false after its ']'. */
static inline bool rp_json_element(struct rp_json *p);

/* After rp_json_element: whether the ']' follows an extra comma instead of an element. The array is
 * then left and the comma counted. This is for readers that accept such files. */
bool rp_json_trailing(struct rp_json *p);

/* Skips the next value. */
bool rp_json_skip(struct rp_json *p);
/* Skips the next value and returns its text as it is in the input; it is borrowed like all tokens.
 * A value over limits.token_bytes is an error. */
bool rp_json_raw(struct rp_json *p, struct rp_json_token *raw);

/* Returns RP_OK if the top-level value was read completely and only white space follows. */
enum rp_code rp_json_finish(struct rp_json *p, struct rp_err *err);
/* Whether the error is that the input stops inside a value: its end, a truncated compressed stream,
 * or damage (everything before it has been returned). */
bool rp_json_ended_early(const struct rp_json *p);
struct rp_json_stats rp_json_stats(const struct rp_json *p);

/*
 * Salvage after an error in an array of objects: skips to where the next element seems to begin: a
 * '{' after a '}' and a comma, whose first key is one of `keys` (NULL-terminated; NULL: any key);
 * or, if the error is between two elements, such a '{' right after it. depth is rp_json_depth()
 * inside that array. On success the error is cleared, the next call is rp_json_element, and
 * *skipped is the distance from the error. False: the error stays, because nothing was found or the
 * error is of another kind (end of input, no memory).
 */
bool rp_json_resync(struct rp_json *p, uint32_t depth, const char *const *keys, uint64_t *skipped);

/*
 * After a syntax error: reads the input to its end and returns RP_OK or what is wrong with it
 * (damaged, truncated). The text is not to blame if the checksum of its compressed data is wrong.
 * keep: holds the rest in memory, so that rp_json_resync may still be called if the result is RP_OK
 * (RP_LIMIT if it is too long).
 */
enum rp_code rp_json_drain(struct rp_json *p, bool keep, struct rp_err *err);

/*
 * Decodes the text of a string: escapes, surrogate pairs; a lone surrogate becomes U+FFFD, an
 * invalid escape is kept and counted in *bad (may be NULL). out has room for len bytes and may be
 * the text itself. Returns the length.
 */
size_t rp_json_unescape(const char *text, size_t len, char *out, uint32_t *bad);
/* Replaces the text of a token with escapes by its decoded form, borrowed until the next
 * rp_json_decode. Returns false if memory runs out, which becomes the error of the parser. */
bool rp_json_decode(struct rp_json *p, struct rp_json_token *token);

/* The number of containers around the next value. */
static inline uint32_t rp_json_depth(const struct rp_json *p)
{
    return p->depth;
}

static inline bool rp_json_in_object(const struct rp_json *p)
{
    return p->depth && p->stack[p->depth - 1] == '}';
}

static inline bool rp_json_failed(const struct rp_json *p)
{
    return p->failed;
}

/* Returns the offset of the next byte; after a field or an element, that of the value; after an
   error, that of the error. */
uint64_t rp_json_offset(const struct rp_json *p);

/* Compares key with word, a literal, so that its length is known to the compiler. */
static inline bool rp_json_key_is(const struct rp_json_token *key, const char *word)
{
    return key->len == strlen(word) && memcmp(key->text, word, strlen(word)) == 0;
}

/* ------------------------------------------------------------------ the parts that are inlined */

bool rp_json_field_slow(struct rp_json *p, struct rp_json_token *key);
bool rp_json_element_slow(struct rp_json *p);
enum rp_json_kind rp_json_value_slow(struct rp_json *p, struct rp_json_token *value);

/* Something other than white space must follow: an entry of the index, or the last NUL. */
static inline const char *rp_json_space(const char *at)
{
    while (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')
        at++;
    return at;
}

static inline const char *rp_json_digits(const char *at)
{
    while ((unsigned)(unsigned char)*at - '0' < 10)
        at++;
    return at;
}

static inline bool rp_json_leave(struct rp_json *p, const char *bracket)
{
    p->at = bracket + 1;
    p->ix++;
    p->fresh = false;
    p->depth--;
    return false;
}

static inline bool rp_json_field(struct rp_json *p, struct rp_json_token *key)
{
    const uint32_t *ix = p->ix;
    const char *at = p->at, *quote = p->text + *ix, *close;

    if (__builtin_expect(ix == p->ix_end || !rp_json_in_object(p), 0))
        return rp_json_field_slow(p, key);
    at = rp_json_space(at);
    if (!p->fresh) {
        if (at == quote && *quote == '}')
            return rp_json_leave(p, quote);
        if (__builtin_expect(at != quote || *quote != ',' || ++ix == p->ix_end, 0))
            return rp_json_field_slow(p, key);
        quote = p->text + *ix;
        at = rp_json_space(at + 1);
    }
    close = p->text + ix[1];
    if (__builtin_expect(at != quote || *quote != '"' || *close != '"', 0))
        return rp_json_field_slow(p, key);
    key->text = quote + 1;
    key->len = (uint32_t)(close - quote - 1);
    at = rp_json_space(close + 1);
    if (__builtin_expect(*at != ':' || key->len > p->token_max, 0))
        return rp_json_field_slow(p, key);
    key->kind = RP_JSON_STRING;
    key->has_escapes = !p->plain && memchr(key->text, '\\', key->len);
    key->is_integer = false;
    p->at = rp_json_space(at + 1);
    p->ix = ix + 2;
    p->fresh = false;
    return true;
}

static inline bool rp_json_element(struct rp_json *p)
{
    const uint32_t *ix = p->ix;
    const char *at = p->at, *entry = p->text + *ix;

    if (__builtin_expect(ix == p->ix_end || !p->depth || p->stack[p->depth - 1] != ']', 0))
        return rp_json_element_slow(p);
    at = rp_json_space(at);
    if (*at == ']' && at == entry)
        return rp_json_leave(p, entry);
    if (!p->fresh) {
        if (__builtin_expect(at != entry || *entry != ',' || ++ix == p->ix_end, 0))
            return rp_json_element_slow(p);
        at = rp_json_space(at + 1);
    }
    p->at = at;
    p->ix = ix;
    p->fresh = false;
    return true;
}

static inline enum rp_json_kind rp_json_enter(struct rp_json *p, struct rp_json_token *value)
{
    bool object = *p->at == '{';

    value->text = p->at;
    value->len = 1;
    value->kind = object ? RP_JSON_OBJECT : RP_JSON_ARRAY;
    p->stack[p->depth++] = object ? '}' : ']';
    p->fresh = true;
    p->at++;
    p->ix++;
    return (enum rp_json_kind)value->kind;
}

static inline enum rp_json_kind rp_json_number(struct rp_json *p, struct rp_json_token *value)
{
    const char *digit = p->at + (*p->at == '-'), *at = rp_json_digits(digit), *dot = NULL;
    const char *end;

    if (__builtin_expect(at == digit || (*digit == '0' && at - digit > 1), 0))
        return rp_json_value_slow(p, value);
    if (*at == '.') {
        dot = at;
        at = rp_json_digits(at + 1);
        if (__builtin_expect(at == dot + 1, 0))
            return rp_json_value_slow(p, value);
    }
    end = rp_json_space(at);
    value->text = p->at;
    value->len = (uint32_t)(at - p->at);
    value->kind = RP_JSON_NUMBER;
    value->is_integer = !dot;
    /* an exponent, garbage, or the end of the block */
    if (__builtin_expect(end != p->text + *p->ix || end == p->end || value->len > p->token_max, 0))
        return rp_json_value_slow(p, value);
    p->at = end;
    return RP_JSON_NUMBER;
}

static inline enum rp_json_kind rp_json_value(struct rp_json *p, struct rp_json_token *value)
{
    const char *at = p->at, *close;

    value->has_escapes = value->is_integer = false;
    if (__builtin_expect(at >= p->end, 0))
        return rp_json_value_slow(p, value);
    if (*at == '"') {
        close = p->text + p->ix[1];
        value->text = at + 1;
        value->len = (uint32_t)(close - at - 1);
        value->kind = RP_JSON_STRING;
        if (__builtin_expect(*close != '"' || value->len > p->token_max, 0))
            return rp_json_value_slow(p, value);
        value->has_escapes = !p->plain && memchr(value->text, '\\', value->len);
        p->at = close + 1;
        p->ix += 2;
        return RP_JSON_STRING;
    }
    if ((*at == '{' || *at == '[') && p->depth < p->depth_cap)
        return rp_json_enter(p, value);
    return rp_json_number(p, value);
}
