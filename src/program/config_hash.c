/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hashes a backend_config by its content. It is JSON written by protobuf: the order of the members
 * means nothing, and a member with its default value (0, "0", false, "", null, [], {}) means the
 * same as a missing one; some writers of modules spell defaults out and others leave them out.
 */
#include "program/config_hash.h"

#include <string.h>

#define DEPTH_MOST 32

struct scan {
    const char *at, *end;
    rp_mix_fn *mix;
};

static void skip_blanks(struct scan *s)
{
    while (s->at < s->end && strchr(" \t\r\n", *s->at))
        s->at++;
}

static bool take(struct scan *s, char c)
{
    skip_blanks(s);
    if (s->at == s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

static uint64_t hash_text(const struct scan *s, const char *at, size_t n)
{
    uint64_t hash = n;

    for (size_t i = 0; i < n; i++)
        hash = s->mix(hash, (unsigned char)at[i]);
    return hash;
}

/* Hashes the text between the quotes; escapes are compared as they are written. */
static bool scan_string(struct scan *s, uint64_t *hash)
{
    const char *from = s->at;

    for (; s->at < s->end && *s->at != '"'; s->at++)
        if (*s->at == '\\' && ++s->at == s->end)
            return false;
    if (s->at == s->end)
        return false;
    *hash = s->at == from || (s->at == from + 1 && *from == '0')
                ? 0
                : hash_text(s, from, (size_t)(s->at - from));
    s->at++;
    return true;
}

/* The hash 0 stands for the default of the type. */
static bool scan_value(struct scan *s, unsigned depth, uint64_t *hash)
{
    if (depth > DEPTH_MOST)
        return false;
    if (take(s, '{')) {
        uint64_t key, value;

        *hash = 0;
        if (take(s, '}'))
            return true;
        do {
            if (!take(s, '"') || !scan_string(s, &key) || !take(s, ':') ||
                !scan_value(s, depth + 1, &value))
                return false;
            if (value)
                *hash += s->mix(key, value);
        } while (take(s, ','));
        return take(s, '}');
    }
    if (take(s, '[')) {
        uint64_t value;

        *hash = 0;
        if (take(s, ']'))
            return true;
        *hash = 1;
        do {
            if (!scan_value(s, depth + 1, &value))
                return false;
            *hash = s->mix(*hash, value);
        } while (take(s, ','));
        return take(s, ']');
    }
    if (take(s, '"'))
        return scan_string(s, hash);
    /* Numbers and words; 0, 0.0 and -0 are the same default. */
    const char *from = s->at;
    bool zero = true;
    while (s->at < s->end && !strchr(" \t\r\n,]}:\"[{", *s->at))
        zero &= strchr("-+0.", *s->at++) != NULL;
    size_t n = (size_t)(s->at - from);
    *hash = zero || (n == 5 && !memcmp(from, "false", n)) || (n == 4 && !memcmp(from, "null", n))
                ? 0
                : hash_text(s, from, n);
    return n > 0;
}

bool rp_config_hash(const char *at, size_t n, rp_mix_fn *mix, uint64_t *hash)
{
    struct scan s = {at, at + n, mix};

    skip_blanks(&s);
    if (s.at == s.end || *s.at != '{' || !scan_value(&s, 0, hash))
        return false;
    skip_blanks(&s);
    return s.at == s.end;
}
