/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Continuing after an error. After one quote too many, the index confuses strings and structure, so
 * it is discarded; the bytes are searched for the boundary between two objects of an array,
 *
 *     } , { "key"
 *
 * with white space anywhere, and parsing starts again at its '{'. After an error between two
 * elements (an extra or missing comma) the next element is intact, so there the '{' may follow at
 * once. Text that looks like a boundary may be inside a string or deeper than the array; then
 * another error and another search follow. The search starts at the error and needs a '}' first, so
 * every try gets closer to the end.
 */
#include "io/json_inner.h"

#define BORDER_MAX \
    512 /* bytes from '}' to the key's end, and the most that is carried between pieces */

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && rp_json_is_space(*at))
        at++;
    return at;
}

/* Returns the position after `byte`, which must be next except for white space; otherwise NULL. */
static const char *expect(const char *at, const char *end, char byte)
{
    at = at ? skip_space(at, end) : end;
    return at < end && *at == byte ? at + 1 : NULL;
}

static bool known_key(const char *key, size_t len, const char *const *keys)
{
    for (; keys && *keys; keys++)
        if (strlen(*keys) == len && memcmp(*keys, key, len) == 0)
            return true;
    return !keys;
}

struct search {
    const char *const *keys;
    bool *between; /* the text begins between two elements; false after that place was examined */
};

/* Finds the '{' that must be next at `at`, with a known key in it, or NULL. */
static const char *match_open(const char *at, const char *end, const char *const *keys)
{
    const char *open = expect(at, end, '{'), *key = expect(open, end, '"');
    const char *close = key ? memchr(key, '"', (size_t)(end - key)) : NULL;

    return close && known_key(key, (size_t)(close - key), keys) ? open - 1 : NULL;
}

/* Finds the '{' of a border that begins with the '}' at `at`, or NULL. */
static const char *match_border(const char *at, const char *end, const char *const *keys)
{
    return match_open(expect(expect(at, end, '}'), end, ','), end, keys);
}

/* Finds the '{' of the next element after extra commas, or right here if one is missing. */
static const char *match_here(const char *at, const char *end, const char *const *keys)
{
    while (at < end && (*at == ',' || rp_json_is_space(*at)))
        at++;
    return match_open(at, end, keys);
}

static size_t find_border(const void *user, const char *text, size_t n, bool all, size_t *keep)
{
    const struct search *search = user;
    const char *at = text, *end = text + n;

    *keep = 0;
    if (*search->between && n < BORDER_MAX && !all) {
        *keep = n;
        return n;
    }
    if (*search->between) {
        *search->between = false;
        const char *found =
            match_here(text, text + (n < BORDER_MAX ? n : BORDER_MAX), search->keys);
        if (found)
            return (size_t)(found - text);
    }
    while (at < end && (at = memchr(at, '}', (size_t)(end - at)))) {
        size_t left = (size_t)(end - at);

        if (left < BORDER_MAX && !all) {
            *keep = left;
            return n;
        }
        const char *found =
            match_border(at, at + (left < BORDER_MAX ? left : BORDER_MAX), search->keys);
        if (found)
            return (size_t)(found - text);
        at++;
    }
    return n;
}

/* Whether the error is in the text, and the array is still open. */
static bool can_resync(const struct rp_json *p, uint32_t depth)
{
    enum rp_code code = p->inner->err.code;

    return p->failed && !p->inner->ended_early && (code == RP_FORMAT || code == RP_LIMIT) &&
           depth && depth <= p->depth && p->stack[depth - 1] == ']' && p->inner->block;
}

/* Counts control characters in strings from byte `from` of a block on. Blocks are counted
 * completely, so these must be subtracted, but never more than were counted. */
static uint64_t controls_behind(const struct rp_json_block *block, size_t from, uint64_t counted)
{
    bool in_string = false, escaped = false;
    uint64_t n = 0;

    for (size_t i = 0; i < block->filled; i++) {
        unsigned char c = (unsigned char)block->text[i];

        if (c == '"' && !escaped)
            in_string = !in_string;
        n += i >= from && in_string && c < 0x20;
        escaped = c == '\\' && !escaped;
    }
    return n < counted ? n : counted;
}

bool rp_json_resync(struct rp_json *p, uint32_t depth, const char *const *keys, uint64_t *skipped)
{
    struct rp_json_inner *inner = p->inner;
    uint64_t distance;
    bool found, between;
    struct search search = {.keys = keys, .between = &between};

    *skipped = 0;
    if (!can_resync(p, depth))
        return false;
    /* a limit met at the '{' itself would be met there again */
    between = p->depth == depth && inner->err.code == RP_FORMAT;
    size_t from = (size_t)(inner->fail_at - inner->block->text);
    inner->stats.control_bytes -= controls_behind(inner->block, from, inner->stats.control_bytes);
    enum rp_code code =
        rp_json_blocks_restart(inner->blocks, from, find_border, &search, &found, &distance);
    if (code != RP_OK)
        rp_err_nomem(&inner->err, "looking for the next element");
    if (code != RP_OK || !found)
        return false;
    *skipped = distance;
    rp_err_clear(&inner->err);
    inner->block = NULL;
    inner->before_n = 0;
    p->failed = false;
    p->depth = depth;
    p->fresh = true;
    return rp_json_next_block(p);
}

enum rp_code rp_json_drain(struct rp_json *p, bool keep, struct rp_err *err)
{
    if (!p->failed)
        return rp_err_set(err, RP_BUG, "the rest of an input was asked for without an error");
    return rp_json_blocks_drain(p->inner->blocks, keep, err);
}
