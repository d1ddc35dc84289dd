/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a text against the JSON grammar in one pass; the nesting is a stack of bits, and values
 * nested deeper than it count as broken. Linear in the text.
 */
#include "io/json_strict.h"

#define DEPTH_MAX 4096

struct json_cursor {
    const char *at, *end;
    bool unclean;
    unsigned depth;
    uint64_t object[DEPTH_MAX / 64]; /* a bit per level: an object, not an array */
};

/* Length of the UTF-8 sequence at s, or 0 if there is none. */
static size_t utf8_length(const char *s, const char *end)
{
    const unsigned char *p = (const unsigned char *)s;
    size_t left = (size_t)(end - s), n = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

    if (n == 1)
        return 1;
    if (p[0] < 0xc2 || p[0] > 0xf4 || n > left)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0; /* overlong, a surrogate, or beyond U+10FFFF */
    return n;
}

static bool is_plain_ascii(char c)
{
    return (unsigned char)c >= 0x20 && (unsigned char)c < 0x80 && c != '"' && c != '\\';
}

bool rp_json_text_is_plain(const char *s, size_t n)
{
    const char *end = s + n;

    while (s < end) {
        size_t len = is_plain_ascii(*s) ? 1 : (unsigned char)*s < 0x80 ? 0 : utf8_length(s, end);

        if (!len)
            return false;
        s += len;
    }
    return true;
}

/* A byte that needs an escape in a string. */
static void put_escape(struct rp_emit *e, char c)
{
    static const char hex[] = "0123456789abcdef", from[] = "\"\\\n\t\r\b\f", to[] = "\"\\ntrbf";
    const char *simple = c ? strchr(from, c) : NULL;
    char *at = rp_emit_room(e, 8);

    if (simple) {
        at[0] = '\\';
        at[1] = to[simple - from];
        e->at += 2;
        return;
    }
    memcpy(at, (unsigned char)c < 0x80 ? "\\u0000" : "\\ufffd", 6);
    if ((unsigned char)c < 0x80) {
        at[4] = hex[c >> 4];
        at[5] = hex[c & 15];
    }
    e->at += 6;
}

void rp_json_put_escaped(struct rp_emit *e, const char *s, size_t n)
{
    const char *end = s + n, *run = s;

    while (s < end) {
        size_t len = is_plain_ascii(*s) ? 1 : (unsigned char)*s < 0x80 ? 0 : utf8_length(s, end);

        if (len) {
            s += len;
            continue;
        }
        rp_emit_bytes(e, run, (size_t)(s - run));
        put_escape(e, *s++);
        run = s;
    }
    rp_emit_bytes(e, run, (size_t)(s - run));
}

void rp_json_put_string(struct rp_emit *e, const char *s, size_t n)
{
    rp_emit_char(e, '"');
    if (rp_json_text_is_plain(s, n))
        rp_emit_bytes(e, s, n);
    else
        rp_json_put_escaped(e, s, n);
    rp_emit_char(e, '"');
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* Length of the escape at s (a backslash), or 0 where JSON has no such escape. */
static size_t escape_length(const char *s, const char *end)
{
    if (end - s < 2)
        return 0;
    if (s[1] != 'u')
        return s[1] && strchr("\"\\/bfnrt", s[1]) ? 2 : 0;
    return end - s >= 6 && is_hex(s[2]) && is_hex(s[3]) && is_hex(s[4]) && is_hex(s[5]) ? 6 : 0;
}

/* c->at: after the opening quote; moves past the closing one. */
static bool check_string(struct json_cursor *c)
{
    while (c->at < c->end && *c->at != '"') {
        size_t len = is_plain_ascii(*c->at)         ? 1
                     : *c->at == '\\'               ? escape_length(c->at, c->end)
                     : (unsigned char)*c->at < 0x80 ? 0
                                                    : utf8_length(c->at, c->end);

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

static bool check_number(struct json_cursor *c)
{
    const char *start = c->at + (*c->at == '-'), *at = skip_digits(start, c->end), *from;

    if (at == start || (*start == '0' && at - start > 1))
        return false;
    if (at < c->end && *at == '.') {
        from = at + 1;
        at = skip_digits(from, c->end);
        if (at == from)
            return false;
    }
    if (at < c->end && (*at | 0x20) == 'e') {
        at++;
        from = at + (at < c->end && (*at == '-' || *at == '+'));
        at = skip_digits(from, c->end);
        if (at == from)
            return false;
    }
    c->at = at;
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
    return check_number(c);
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

/* After a value: closes the containers that end here. *more: another value follows. */
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

/* A scalar, or the brackets up to and with the first scalar or empty container. *open: a container
   was entered, and its first value comes next. */
static bool check_value(struct json_cursor *c, bool *open)
{
    bool object;

    *open = false;
    skip_space(c);
    if (c->at == c->end)
        return false;
    object = *c->at == '{';
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

/* The content of a string: valid escapes stay, the backslash of others is escaped. */
static const char *put_cleaned_string(struct rp_emit *e, const char *s, const char *end)
{
    while (s < end && *s != '"') {
        size_t len = is_plain_ascii(*s)         ? 1
                     : *s == '\\'               ? escape_length(s, end)
                     : (unsigned char)*s < 0x80 ? 0
                                                : utf8_length(s, end);

        if (len)
            rp_emit_bytes(e, s, len);
        else
            put_escape(e, *s);
        s += len ? len : 1;
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
