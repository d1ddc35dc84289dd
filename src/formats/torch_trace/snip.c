/* SPDX-License-Identifier: Apache-2.0 */
/* JSON values are read as snips of a text. Linear, but each container is scanned once for each
   level. */
#include "formats/torch_trace/snip.h"

#include "base/decimal.h"
#include "io/json_pull.h"

#include <string.h>

static const char *after_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
        at++;
    return at;
}

/* The position after the string whose opening quote is at `at`, or NULL. */
static const char *after_string(const char *at, const char *end)
{
    for (at++; at < end; at++) {
        at = memchr(at, '"', (size_t)(end - at));
        if (!at)
            return NULL;
        size_t slashes = 0;

        while (at[-1 - (ptrdiff_t)slashes] == '\\')
            slashes++;
        if (slashes % 2 == 0)
            return at + 1;
    }
    return NULL;
}

/* The position after the container that begins at `at`, or NULL. */
static const char *after_container(const char *at, const char *end)
{
    size_t depth = 0;

    while (at < end)
        switch (*at) {
        case '"':
            at = after_string(at, end);
            if (!at)
                return NULL;
            break;
        case '{':
        case '[':
            depth++;
            at++;
            break;
        case '}':
        case ']':
            at++;
            if (!--depth)
                return at;
            break;
        default:
            at++;
        }
    return NULL;
}

static const char *after_value(const char *at, const char *end)
{
    const char *from = at;

    if (at == end)
        return NULL;
    if (*at == '"')
        return after_string(at, end);
    if (*at == '{' || *at == '[')
        return after_container(at, end);
    while (at < end && !strchr(",]} \t\r\n", *at))
        at++;
    return at == from ? NULL : at;
}

static bool begin_walk(struct rp_snip value, char bracket, struct rp_snip_walk *out)
{
    const char *end = value.at + value.n, *at = value.n ? after_space(value.at, end) : value.at;

    *out = (struct rp_snip_walk){at, end, bracket == '{', true};
    if (!value.n || at == end || *at != bracket)
        return false;
    out->at++;
    out->failed = false;
    return true;
}

bool rp_snip_object(struct rp_snip value, struct rp_snip_walk *out)
{
    return begin_walk(value, '{', out);
}

bool rp_snip_array(struct rp_snip value, struct rp_snip_walk *out)
{
    return begin_walk(value, '[', out);
}

static bool walk_failed(struct rp_snip_walk *walk)
{
    walk->failed = true;
    return false;
}

/* Reads "key": and the space after it. */
static bool read_key(struct rp_snip_walk *walk, struct rp_snip *key)
{
    if (walk->at == walk->end || *walk->at != '"')
        return walk_failed(walk);
    const char *after = after_string(walk->at, walk->end);
    if (!after)
        return walk_failed(walk);
    *key = (struct rp_snip){walk->at + 1, (size_t)(after - walk->at - 2)};
    walk->at = after_space(after, walk->end);
    if (walk->at == walk->end || *walk->at != ':')
        return walk_failed(walk);
    walk->at = after_space(walk->at + 1, walk->end);
    return true;
}

bool rp_snip_next(struct rp_snip_walk *walk, struct rp_snip *key, struct rp_snip *value)
{
    if (walk->failed)
        return false;
    walk->at = after_space(walk->at, walk->end);
    if (walk->at < walk->end && *walk->at == ',')
        walk->at = after_space(walk->at + 1, walk->end);
    if (walk->at == walk->end)
        return walk_failed(walk);
    if (*walk->at == (walk->object ? '}' : ']'))
        return false;
    *key = (struct rp_snip){walk->at, 0};
    if (walk->object && !read_key(walk, key))
        return false;
    const char *after = after_value(walk->at, walk->end);
    if (!after)
        return walk_failed(walk);
    *value = (struct rp_snip){walk->at, (size_t)(after - walk->at)};
    walk->at = after;
    return true;
}

bool rp_snip_whole(const struct rp_snip_walk *walk)
{
    return !walk->failed && walk->at < walk->end &&
           after_space(walk->at + 1, walk->end) == walk->end;
}

struct rp_snip rp_snip_member(struct rp_snip object, const char *key)
{
    struct rp_snip_walk walk;
    struct rp_snip name, value;

    if (rp_snip_object(object, &walk))
        while (rp_snip_next(&walk, &name, &value))
            if (rp_snip_is(name, key))
                return value;
    return (struct rp_snip){object.at, 0};
}

bool rp_snip_is(struct rp_snip s, const char *text)
{
    return s.n == strlen(text) && !memcmp(s.at, text, s.n);
}

bool rp_snip_begins(struct rp_snip s, const char *text)
{
    size_t n = strlen(text);

    return s.n >= n && !memcmp(s.at, text, n);
}

bool rp_snip_has(struct rp_snip s, const char *text)
{
    return s.n && memmem(s.at, s.n, text, strlen(text));
}

bool rp_snip_int(struct rp_snip value, int64_t *out)
{
    return value.n && *value.at != '"' &&
           !(rp_decimal_parse(value.at, value.n, 0, out) &
             (RP_DECIMAL_INVALID | RP_DECIMAL_RANGE | RP_DECIMAL_FRACTION));
}

const char *rp_snip_text(struct rp_snip value, struct rp_arena *arena)
{
    if (value.n < 2 || *value.at != '"')
        return NULL;
    char *out = rp_arena_copy(arena, value.at + 1, value.n - 2);
    if (!out)
        return "";
    out[rp_json_unescape(value.at + 1, value.n - 2, out, NULL)] = '\0';
    return out;
}

bool rp_snip_line(struct rp_snip *rest, struct rp_snip *line)
{
    if (!rest->n)
        return false;
    const char *nl = memchr(rest->at, '\n', rest->n);
    *line = (struct rp_snip){rest->at, nl ? (size_t)(nl - rest->at) : rest->n};
    rest->n -= line->n + (nl != NULL);
    rest->at += line->n + (nl != NULL);
    return true;
}

struct rp_snip rp_snip_trim(struct rp_snip s)
{
    while (s.n && (*s.at == ' ' || *s.at == '\t')) {
        s.at++;
        s.n--;
    }
    while (s.n && (s.at[s.n - 1] == ' ' || s.at[s.n - 1] == '\t' || s.at[s.n - 1] == '\r'))
        s.n--;
    return s;
}

const char *rp_snip_copy(struct rp_snip s, struct rp_arena *arena)
{
    const char *out = rp_arena_copy(arena, s.at, s.n);

    return out ? out : "";
}
