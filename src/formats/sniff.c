/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scanner of a few lines that knows strings and brackets of JSON and nothing else. The head of a
 * file is cut off somewhere, so a parser would only report an error. Linear in the head.
 */
#include "formats/formats.h"

#include <stdbool.h>
#include <string.h>

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

size_t rp_sniff_space(const uint8_t *head, size_t n, size_t from)
{
    if (from == 0 && n >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0)
        from = 3;
    while (from < n && is_space(head[from]))
        from++;
    return from;
}

/* The position after the closing quote of the string whose text begins at `at`, or n + 1. */
static size_t string_end(const uint8_t *head, size_t n, size_t at)
{
    for (; at < n && head[at] != '"'; at++)
        at += head[at] == '\\';
    return at + 1 > n ? n + 1 : at + 1;
}

/* Whether a key (a string with a colon after it) in quotes is at head[from..end). */
static bool is_key(const uint8_t *head, size_t n, size_t from, size_t end, const char *key)
{
    size_t len = strlen(key), colon = rp_sniff_space(head, n, end);

    return end - from == len + 2 && memcmp(head + from + 1, key, len) == 0 && colon < n &&
           head[colon] == ':';
}

/* Whether the containers down to the wanted object are what they should be. */
static bool container_fits(char bracket, unsigned level, unsigned depth)
{
    return level > depth || (level == depth ? bracket == '{' : bracket == '[');
}

int rp_sniff_json_key(const uint8_t *head, size_t n, unsigned depth, const char *key)
{
    unsigned level = 0;
    size_t i = rp_sniff_space(head, n, 0), end;

    for (; i < n; i++) {
        switch (head[i]) {
        case '"':
            end = string_end(head, n, i + 1);
            if (end > n)
                return 0;
            if (level == depth && is_key(head, n, i, end, key))
                return 1;
            i = end - 1;
            break;
        case '{':
        case '[':
            if (!container_fits((char)head[i], ++level, depth))
                return -1;
            break;
        case '}':
        case ']':
            if (level <= depth)
                return -1;
            level--;
            break;
        case ',':
            if (level < depth)
                return -1; /* the first element is not an object */
            break;
        default:
            if (level == 0)
                return -1;
            break;
        }
    }
    return 0;
}
