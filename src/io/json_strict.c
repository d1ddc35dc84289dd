/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a text against the JSON grammar in one pass; the nesting is a stack of bits, and values
 * nested deeper than it count as broken. Linear in the text.
 */
#include "io/json_strict.h"

#include "base/text.h"
#include "io/escaped.h"

#define DEPTH_MAX 4096

struct json_cursor {
    const char *at, *end;
    bool unclean;
    unsigned depth;
    uint64_t object[DEPTH_MAX / 64]; /* one bit per level: set for an object, clear for an array */
};

static bool is_plain_ascii(char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* Returns the length of the character at s if it needs no escape in a string, otherwise 0. */
static size_t plain_length(const char *s, const char *end)
{
    uint32_t code;

    if ((unsigned char)*s < 0x80)
        return is_plain_ascii(*s);
    size_t n = rp_utf8_decode(s, end, &code);
    return code == RP_UTF8_BAD || rp_utf8_steers(code) ? 0 : n;
}

/* Returns the length of the escape at s (a backslash), or 0 if JSON has no such escape. */
static size_t escape_length(const char *s, const char *end)
{
    if (end - s < 2)
        return 0;
    if (s[1] != 'u')
        return s[1] && strchr("\"\\/bfnrt", s[1]) ? 2 : 0;
    return end - s >= 6 && rp_hex_number(s + 2, 4) >= 0 ? 6 : 0;
}

/* c->at is after the opening quote and moves past the closing one. */
static bool check_string(struct json_cursor *c)
{
    while (c->at < c->end && *c->at != '"') {
        size_t len = *c->at == '\\' ? escape_length(c->at, c->end) : plain_length(c->at, c->end);

        c->unclean |= !len;
        c->at += len ? len : *c->at == '\\' && c->end - c->at > 1 ? 2 : 1;
    }
    return c->at++ < c->end;
}

static const char *skip_digits(const char *at, const char *end)
{
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at;
}

static bool take_word(struct json_cursor *c, const char *word)
{
    size_t n = strlen(word);

    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0)
        return false;
    c->at += n;
    return true;
}

static bool is_break(char c)
{
    return c == '\n' || c == '\r' || c == '\t';
}

static void skip_space(struct json_cursor *c)
{
    for (; c->at < c->end && (*c->at == ' ' || is_break(*c->at)); c->at++)
        c->unclean |= *c->at != ' ';
}

static bool in_object(const struct json_cursor *c)
{
    unsigned level = c->depth - 1;

    return c->depth && (c->object[level / 64] >> (level % 64) & 1);
}

static bool enter_container(struct json_cursor *c, bool object)
{
    unsigned level = c->depth;

    if (level == DEPTH_MAX)
        return false;
    c->object[level / 64] &= ~(UINT64_C(1) << (level % 64));
    c->object[level / 64] |= (uint64_t)object << (level % 64);
    c->depth++;
    c->at++;
    return true;
}

static bool check_scalar(struct json_cursor *c)
{
    if (*c->at == '"') {
        c->at++;
        return check_string(c);
    }
    if (take_word(c, "true") || take_word(c, "false") || take_word(c, "null"))
        return true;
    if (take_word(c, "NaN") || take_word(c, "Infinity") || take_word(c, "-Infinity")) {
        c->unclean = true;
        return true;
    }

    /* A number, as the grammar has it. */
    const char *start = c->at + (*c->at == '-'), *at = skip_digits(start, c->end);
    if (at == start || (*start == '0' && at - start > 1))
        return false;
    if (at < c->end && *at == '.') {
        const char *from = at + 1;
        at = skip_digits(from, c->end);
        if (at == from)
            return false;
    }
    if (at < c->end && (*at | 0x20) == 'e') {
        at++;
        const char *from = at + (at < c->end && (*at == '-' || *at == '+'));
        at = skip_digits(from, c->end);
        if (at == from)
            return false;
    }
    c->at = at;
    return true;
}

/* "key" : */
static bool check_key(struct json_cursor *c)
{
    skip_space(c);
    if (c->at == c->end || *c->at != '"')
        return false;
    c->at++;
    if (!check_string(c))
        return false;
    skip_space(c);
    return c->at < c->end && *c->at++ == ':';
}

/* After a value, closes the containers that end here. *more tells if another value follows. */
static bool check_after_value(struct json_cursor *c, bool *more)
{
    for (;;) {
        skip_space(c);
        *more = c->depth > 0;
        if (!c->depth)
            return c->at == c->end;
        if (c->at == c->end)
            return false;
        if (*c->at == ',') {
            c->at++;
            return !in_object(c) || check_key(c);
        }
        if (*c->at != (in_object(c) ? '}' : ']'))
            return false;
        c->at++;
        c->depth--;
    }
}

/* Checks a scalar, or the brackets up to and including the first scalar or empty container. *open
   tells if a container was entered, whose first value comes next. */
static bool check_value(struct json_cursor *c, bool *open)
{
    *open = false;
    skip_space(c);
    if (c->at == c->end)
        return false;
    bool object = *c->at == '{';
    if (!object && *c->at != '[')
        return check_scalar(c);
    if (!enter_container(c, object))
        return false;
    skip_space(c);
    if (c->at < c->end && *c->at == (object ? '}' : ']')) {
        c->at++;
        c->depth--;
        return true;
    }
    *open = true;
    return !object || check_key(c);
}

enum rp_raw_state rp_json_raw_check(const char *s, size_t n)
{
    struct json_cursor c;
    bool more = true, open;

    c.at = s;
    c.end = s + n;
    c.unclean = false;
    c.depth = 0;
    while (more) {
        if (!check_value(&c, &open))
            return RP_RAW_BROKEN;
        if (!open && !check_after_value(&c, &more))
            return RP_RAW_BROKEN;
    }
    return c.unclean ? RP_RAW_UNCLEAN : RP_RAW_CLEAN;
}

/* Writes the content of a string: valid escapes stay, and the backslash of others is escaped. */
static const char *put_cleaned_string(struct rp_emit *e, const char *s, const char *end)
{
    while (s < end && *s != '"') {
        size_t len = *s == '\\' ? escape_length(s, end) : plain_length(s, end);

        if (len) {
            rp_emit_bytes(e, s, len);
        } else {
            uint32_t code;

            len = rp_utf8_decode(s, end, &code);
            rp_emit_escaped(e, RP_IN_STRING, s, len);
        }
        s += len;
    }
    return s;
}

void rp_json_put_cleaned(struct rp_emit *e, const char *s, size_t n)
{
    const char *end = s + n;
    struct json_cursor c = {.at = s, .end = end};

    while (c.at < end) {
        const char *from = c.at;

        if (*c.at == '"') {
            rp_emit_char(e, '"');
            c.at = put_cleaned_string(e, c.at + 1, end) + 1;
            rp_emit_char(e, '"');
        } else if (take_word(&c, "NaN") || take_word(&c, "Infinity") ||
                   take_word(&c, "-Infinity")) {
            rp_emit_char(e, '"');
            rp_emit_bytes(e, from, (size_t)(c.at - from));
            rp_emit_char(e, '"');
        } else if (is_break(*c.at)) {
            skip_space(&c); /* with the indentation of the next line */
        } else {
            rp_emit_char(e, *c.at++);
        }
    }
}
