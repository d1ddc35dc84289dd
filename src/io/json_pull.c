/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow paths of the pull parser: the next block, everything that is or may be an error, and the
 * end. Each _slow function does the complete work of its fast counterpart from the same state, so
 * that the fast one may give up at any point.
 *
 * Errors name the offset in decompressed bytes and show the text around it; for errors at the
 * beginning of a block, the end of the previous block is kept.
 */
#include "io/json_pull.h"

#include "base/each.h"
#include "base/text.h"
#include "base/vec.h"
#include "io/json_blocks.h"
#include "io/json_inner.h"

#include <stdio.h>
#include <stdlib.h>

static const char no_text[RP_JSON_BLOCK_SENTINELS];
static const uint32_t no_index[RP_JSON_BLOCK_SENTINELS];

/* -------------------------------------------------------------------------- life */

static void show_nothing(struct rp_json *p)
{
    p->at = p->text = p->end = no_text;
    p->ix = p->ix_end = no_index;
}

enum rp_code rp_json_open(struct rp_input *in, const struct rp_json_options *options,
                          struct rp_json **out, struct rp_err *err)
{
    struct rp_json_options o = options ? *options : (struct rp_json_options){0};
    struct rp_limits limits = o.limits ? *o.limits : RP_LIMITS_DEFAULT;
    struct rp_json *p = calloc(1, sizeof *p);

    *out = NULL;
    if (p)
        p->inner = calloc(1, sizeof *p->inner);
    if (!p || !p->inner) {
        rp_json_close(p);
        return rp_err_nomem(err, "opening JSON");
    }
    o.limits = &limits;
    enum rp_code code = rp_json_blocks_new(in, &o, &p->inner->blocks, err);
    if (code != RP_OK) {
        rp_json_close(p);
        return code;
    }
    p->inner->depth_max = limits.depth;
    p->inner->trailing_comma = o.trailing_comma;
    p->inner->missing_comma = o.missing_comma;
    p->token_max = limits.token_bytes < UINT32_MAX ? (uint32_t)limits.token_bytes : UINT32_MAX;
    show_nothing(p);
    *out = p;
    return RP_OK;
}

void rp_json_close(struct rp_json *p)
{
    if (!p)
        return;
    if (p->inner) {
        rp_json_blocks_free(p->inner->blocks);
        RP_EACH(rp_vec_release, &p->inner->raw, &p->inner->decoded);
    }
    RP_EACH(free, p->inner, p->stack, p);
}

/* -------------------------------------------------------------------------- errors */

uint64_t rp_json_offset(const struct rp_json *p)
{
    return p->failed ? p->inner->fail_offset : p->offset + (uint64_t)(p->at - p->text);
}

bool rp_json_ended_early(const struct rp_json *p)
{
    return p->inner->ended_early;
}

struct rp_json_stats rp_json_stats(const struct rp_json *p)
{
    struct rp_json_stats stats = p->inner->stats;

    stats.bad_escapes = p->inner->bad_escapes;
    return stats;
}

/* Text around `at`, which may be the end of the block. */
static void show_around(const struct rp_json *p, const char *at, char *out, size_t cap)
{
    const struct rp_json_inner *inner = p->inner;
    size_t left = (size_t)(at - p->text), n = 0;
    char around[2 * RP_JSON_CONTEXT];

    if (left > RP_JSON_CONTEXT)
        left = RP_JSON_CONTEXT;
    if (left < RP_JSON_CONTEXT && inner->before_n) {
        n = RP_JSON_CONTEXT - left < inner->before_n ? RP_JSON_CONTEXT - left : inner->before_n;
        memcpy(around, inner->before + inner->before_n - n, n);
    }
    size_t right = inner->block ? inner->block->filled - (size_t)(at - p->text) : 0;
    if (right > RP_JSON_CONTEXT)
        right = RP_JSON_CONTEXT;
    memcpy(around + n, at - left, left + right);
    rp_text_excerpt(out, cap, around, n + left + right, n + left);
}

static void stick(struct rp_json *p, const char *at)
{
    p->inner->fail_offset = p->offset + (uint64_t)(at - p->text);
    p->inner->fail_at = at;
    p->failed = true;
    show_nothing(p);
}

bool rp_json_fail(struct rp_json *p, enum rp_code code, uint64_t offset, const char *at,
                  const char *what)
{
    char around[300];

    if (p->failed)
        return false;
    show_around(p, at, around, sizeof around);
    rp_err_set_at(&p->inner->err, code, offset, "%s at byte %llu: %s", what,
                  (unsigned long long)offset, around);
    stick(p, at);
    p->inner->fail_offset = offset;
    return false;
}

static bool fail_code(struct rp_json *p, enum rp_code code, const char *at, const char *what)
{
    return rp_json_fail(p, code, p->offset + (uint64_t)(at - p->text), at, what);
}

static bool fail(struct rp_json *p, const char *at, const char *what)
{
    return fail_code(p, RP_FORMAT, at, what);
}

static bool fail_limit(struct rp_json *p, const char *at, const char *what)
{
    char text[80];

    snprintf(text, sizeof text, "%s over the limit of %u bytes", what, p->token_max);
    return fail_code(p, RP_LIMIT, at, text);
}

/* Fails with the input's own error. */
static bool fail_input(struct rp_json *p)
{
    p->inner->err = *rp_json_blocks_borrow_error(p->inner->blocks);
    stick(p, p->end);
    return false;
}

/* Fails because the blocks end inside a value; `token` is the one that does not fit, or NULL. */
static bool fail_end(struct rp_json *p, const char *token)
{
    const struct rp_json_block *block = p->inner->block;
    enum rp_json_stop stop = block ? block->stop : RP_JSON_STOP_END;

    if (p->failed)
        return false;
    if (stop == RP_JSON_STOP_TOKEN)
        return fail_limit(p, token ? token : p->end, "a token");
    p->inner->ended_early = true;
    if (stop == RP_JSON_STOP_INPUT)
        return fail_input(p);
    if (block && block->truncated)
        return fail(p, p->end, "the compressed input is cut short, inside a value");
    return fail(p, p->end,
                p->depth || token ? "the input ends inside a value" : "the input has no value");
}

bool rp_json_fail_nomem(struct rp_json *p)
{
    if (p->failed)
        return false;
    rp_err_nomem(&p->inner->err, "reading JSON");
    stick(p, p->at);
    return false;
}

/* -------------------------------------------------------------------------- blocks */

/* Saves the part of a raw value that is in this block, which will be reused. */
static bool save_raw(struct rp_json *p)
{
    struct rp_json_inner *inner = p->inner;
    size_t n = (size_t)(p->end - inner->raw_from);

    if (p->offset + (uint64_t)(p->end - p->text) - inner->raw_offset > p->token_max)
        return true; /* it is too long already: rp_json_raw reports that */
    if (rp_vec_reserve(&inner->raw, n, NULL) != RP_OK)
        return rp_json_fail_nomem(p);
    memcpy(inner->raw.at + inner->raw.n, inner->raw_from, n);
    inner->raw.n += n;
    return true;
}

static void save_before(struct rp_json *p)
{
    struct rp_json_inner *inner = p->inner;
    size_t n = (size_t)(p->end - p->text);

    if (n >= RP_JSON_CONTEXT) {
        memcpy(inner->before, p->end - RP_JSON_CONTEXT, RP_JSON_CONTEXT);
        inner->before_n = RP_JSON_CONTEXT;
        return;
    }
    size_t keep = inner->before_n + n > RP_JSON_CONTEXT ? RP_JSON_CONTEXT - n : inner->before_n;
    memmove(inner->before, inner->before + inner->before_n - keep, keep);
    memcpy(inner->before + keep, p->text, n);
    inner->before_n = keep + n;
}

bool rp_json_next_block(struct rp_json *p)
{
    struct rp_json_inner *inner = p->inner;

    if (p->failed || (inner->block && inner->block->stop != RP_JSON_STOP_NONE))
        return false;
    if (inner->raw_from && !save_raw(p))
        return false;
    save_before(p);
    const struct rp_json_block *block = rp_json_blocks_next(inner->blocks);
    if (!block)
        return false;
    inner->block = block;
    p->text = p->at = block->text;
    p->end = block->text + block->n;
    p->ix = block->index;
    p->ix_end = block->index + block->index_n;
    p->plain = block->plain;
    p->offset = block->offset;
    inner->raw_from = inner->raw_from ? p->text : NULL;
    inner->stats.control_bytes += block->control_bytes;
    inner->stats.truncated = block->truncated;
    if (!p->offset && block->n >= 3 && memcmp(p->text, "\xef\xbb\xbf", 3) == 0)
        p->at += 3;
    return true;
}

const char *rp_json_next_byte(struct rp_json *p)
{
    for (;;) {
        while (p->at < p->end && rp_json_is_space(*p->at))
            p->at++;
        if (p->at < p->end)
            return p->at;
        if (!rp_json_next_block(p))
            return NULL;
    }
}

static bool is_end(const struct rp_json *p, const char *at)
{
    return at >= p->end && p->inner->block && p->inner->block->stop != RP_JSON_STOP_NONE;
}

/* -------------------------------------------------------------------------- fields, elements */

/* After a value, or before the first one: passes the comma. 1: another value follows at p->at; 0:
 * the container ended; -1: failed. */
static int pass_comma(struct rp_json *p, char bracket)
{
    const char *at = rp_json_next_byte(p);

    if (!at) {
        fail_end(p, NULL);
        return -1;
    }
    if (*at == bracket) {
        rp_json_leave(p, at);
        return 0;
    }
    if (p->fresh || (*at == '{' && bracket == ']' && p->inner->missing_comma))
        return 1;
    if (*at != ',') {
        fail(p, at,
             bracket == '}' ? "expected ',' or '}' after a value"
                            : "expected ',' or ']' after an element");
        return -1;
    }
    p->at++;
    p->ix++;
    if (!rp_json_next_byte(p)) {
        fail_end(p, NULL);
        return -1;
    }
    return 1;
}

bool rp_json_field_slow(struct rp_json *p, struct rp_json_token *key)
{
    if (!p->failed && !rp_json_in_object(p))
        return fail_code(p, RP_BUG, p->at, "a field was asked for outside an object");
    if (pass_comma(p, '}') != 1)
        return false;
    const char *at = p->at;
    if (*at == '}' && p->depth == 1 && p->inner->trailing_comma) {
        p->inner->stats.trailing_commas++;
        return rp_json_leave(p, at);
    }
    if (*at != '"')
        return fail(p, at, *at == '}' ? "unexpected ',' before '}'" : "expected a key in quotes");
    const char *close = p->text + p->ix[1];
    if (is_end(p, close))
        return fail_end(p, at);
    key->text = at + 1;
    key->len = (uint32_t)(close - at - 1);
    key->kind = RP_JSON_STRING;
    key->has_escapes = memchr(key->text, '\\', key->len) != NULL;
    key->is_integer = false;
    if (key->len > p->token_max)
        return fail_limit(p, at, "a key");
    at = rp_json_space(close + 1);
    if (*at != ':')
        return is_end(p, at) ? fail_end(p, NULL) : fail(p, at, "expected ':' after a key");
    p->at = rp_json_space(at + 1);
    p->ix += 2;
    p->fresh = false;
    return true;
}

bool rp_json_element_slow(struct rp_json *p)
{
    if (!p->failed && (!p->depth || rp_json_in_object(p)))
        return fail_code(p, RP_BUG, p->at, "an element was asked for outside an array");
    if (pass_comma(p, ']') != 1)
        return false;
    p->fresh = false;
    return true;
}

bool rp_json_trailing(struct rp_json *p)
{
    const char *at = p->failed || !p->depth || rp_json_in_object(p) ? NULL : rp_json_next_byte(p);

    if (!at || *at != ']')
        return false;
    p->inner->stats.trailing_commas++;
    rp_json_leave(p, at);
    return true;
}

/* -------------------------------------------------------------------------- values */

static enum rp_json_kind enter_slow(struct rp_json *p, struct rp_json_token *value)
{
    uint32_t cap = p->depth_cap ? p->depth_cap * 2 : 64;
    char text[80];

    if (p->depth < p->depth_cap)
        return rp_json_enter(p, value);
    if (p->depth >= p->inner->depth_max) {
        snprintf(text, sizeof text, "nesting over the limit of %u levels", p->inner->depth_max);
        fail_code(p, RP_LIMIT, p->at, text);
        return RP_JSON_NONE;
    }
    if (cap > p->inner->depth_max || cap < p->depth_cap)
        cap = p->inner->depth_max;
    char *stack = realloc(p->stack, cap);
    if (!stack) {
        rp_json_fail_nomem(p);
        return RP_JSON_NONE;
    }
    p->stack = stack;
    p->depth_cap = cap;
    return rp_json_enter(p, value);
}

static enum rp_json_kind string_slow(struct rp_json *p, struct rp_json_token *value)
{
    const char *at = p->at, *close = p->text + p->ix[1];

    if (is_end(p, close)) {
        fail_end(p, at);
        return RP_JSON_NONE;
    }
    value->text = at + 1;
    value->len = (uint32_t)(close - at - 1);
    value->kind = RP_JSON_STRING;
    value->has_escapes = memchr(value->text, '\\', value->len) != NULL;
    if (value->len > p->token_max) {
        fail_limit(p, at, "a string");
        return RP_JSON_NONE;
    }
    p->at = close + 1;
    p->ix += 2;
    return RP_JSON_STRING;
}

/* Returns the end of one or more digits; NULL if there are none, with *at where they should be. */
static const char *some_digits(const char **at)
{
    const char *end = rp_json_digits(*at);

    return end > *at ? (*at = end) : NULL;
}

/* Moves *at past a number; if it returns false, *at is the invalid byte. */
static bool scan_number(const char **at, bool *integer)
{
    *integer = true;
    if (**at == '-')
        ++*at;
    if (**at == '0')
        ++*at; /* nothing but a fraction or an exponent may follow */
    else if (!some_digits(at))
        return false;
    if (**at == '.') {
        *integer = false;
        ++*at;
        if (!some_digits(at))
            return false;
    }
    if (**at != 'e' && **at != 'E')
        return true;
    *integer = false;
    ++*at;
    if (**at == '+' || **at == '-')
        ++*at;
    return some_digits(at) != NULL;
}

static const struct {
    const char *text;
    uint8_t kind;
} words[] = {{"true", RP_JSON_TRUE},  {"false", RP_JSON_FALSE},     {"null", RP_JSON_NULL},
             {"NaN", RP_JSON_NUMBER}, {"Infinity", RP_JSON_NUMBER}, {"-Infinity", RP_JSON_NUMBER},
             {NULL, RP_JSON_NONE}};

/* Finds the word at *at, which moves past the part that matches. */
static uint8_t scan_word(const char **at)
{
    for (size_t i = 0; words[i].text; i++) {
        const char *word = words[i].text, *s = *at;

        if (*s != *word || (*s == '-' && s[1] != 'I'))
            continue;
        while (*word && *s == *word)
            s++, word++;
        *at = s;
        return *word ? RP_JSON_NONE : words[i].kind;
    }
    return RP_JSON_NONE;
}

static enum rp_json_kind scalar_slow(struct rp_json *p, struct rp_json_token *value)
{
    const char *at = p->at, *stop = p->text + *p->ix;
    bool number = *at == '-' || (*at >= '0' && *at <= '9');
    uint8_t kind = RP_JSON_NUMBER;

    value->text = at;
    value->is_integer = false;
    if (!number || at[1] == 'I') {
        kind = scan_word(&at);
    } else if (!scan_number(&at, &value->is_integer)) {
        kind = RP_JSON_NONE;
    }
    value->len = (uint32_t)(at - value->text);
    value->kind = kind;
    if (is_end(p, at) &&
        (kind == RP_JSON_NONE || p->depth || p->inner->block->stop != RP_JSON_STOP_END))
        fail_end(p, value->text); /* more digits might have followed */
    else if (kind == RP_JSON_NONE || (at != stop && !rp_json_is_space(*at)))
        fail(p, at,
             at == value->text ? "expected a value"
             : number          ? "bad number"
                               : "unknown word");
    else if (value->len > p->token_max)
        fail_limit(p, value->text, "a number");
    if (p->failed)
        return RP_JSON_NONE;
    p->inner->stats.non_finite += kind == RP_JSON_NUMBER && at[-1] > '9';
    p->at = rp_json_space(at);
    return (enum rp_json_kind)kind;
}

enum rp_json_kind rp_json_value_slow(struct rp_json *p, struct rp_json_token *value)
{
    const char *at = p->at;

    value->has_escapes = value->is_integer = false;
    value->kind = RP_JSON_NONE;
    if (p->failed)
        return RP_JSON_NONE;
    if (!p->depth || p->at >= p->end)
        at = rp_json_next_byte(p);
    if (!at) {
        fail_end(p, NULL);
        return RP_JSON_NONE;
    }
    if (*at == '"')
        return string_slow(p, value);
    if (*at == '{' || *at == '[')
        return enter_slow(p, value);
    return scalar_slow(p, value);
}

/* -------------------------------------------------------------------------- the end */

enum rp_code rp_json_finish(struct rp_json *p, struct rp_err *err)
{
    if (!p->failed && p->depth)
        fail_code(p, RP_BUG, p->at, "a value was not read to its end");
    const char *at = p->failed ? NULL : rp_json_next_byte(p);
    const struct rp_json_block *block = p->inner->block;
    if (at)
        fail(p, at, "unexpected text after the end of the value");
    else if (!p->failed && block && block->stop == RP_JSON_STOP_INPUT)
        fail_input(p);
    if (!p->failed) {
        rp_err_clear(err);
        return RP_OK;
    }
    if (err)
        *err = p->inner->err;
    return p->inner->err.code;
}
