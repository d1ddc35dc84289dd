/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes the text of JSON strings. Decoding never makes it longer (six bytes of \uXXXX become at
 * most three), so it can be done in place. Everything that is not an escape is copied in pieces.
 */
#include "io/json_inner.h"

#include "base/escape.h"
#include "base/text.h"

/* Returns the unit of \uXXXX at `at`, or -1. */
static int32_t escaped_unit(const char *at, const char *end)
{
    if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return -1;
    return rp_hex_number(at + 2, 4);
}

/* Decodes \uXXXX, or a pair of them, at *at. */
static char *put_unit(char *out, const char **at, const char *end, int32_t unit)
{
    *at += 6;
    if (unit >= 0xd800 && unit < 0xdc00) {
        int32_t low = escaped_unit(*at, end);
        if (low >= 0xdc00 && low < 0xe000) {
            *at += 6;
            return out + rp_utf8_encode(out, 0x10000 + ((uint32_t)unit - 0xd800) * 0x400 +
                                                 ((uint32_t)low - 0xdc00));
        }
    }
    return out + rp_utf8_encode(out, unit >= 0xd800 && unit < 0xe000 ? 0xfffd : (uint32_t)unit);
}

/* Returns the byte that \c stands for, or -1. */
static int escaped_byte(char c)
{
    switch (c) {
    case '"':
    case '\\':
    case '/':
        return c;
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return -1;
    }
}

size_t rp_json_unescape(const char *text, size_t len, char *out, uint32_t *bad)
{
    const char *at = text, *end = text + len;
    char *o = out;

    while (at < end) {
        int32_t unit = escaped_unit(at, end);
        int byte = at + 1 < end && *at == '\\' ? escaped_byte(at[1]) : -1;

        if (unit >= 0) {
            o = put_unit(o, &at, end, unit);
        } else if (byte >= 0) {
            *o++ = (char)byte;
            at += 2;
        } else {
            if (bad)
                *bad += *at == '\\';
            const char *next = memchr(at + 1, '\\', (size_t)(end - at - 1));
            next = next ? next : end;
            memmove(o, at, (size_t)(next - at));
            o += next - at;
            at = next;
        }
    }
    return (size_t)(o - out);
}

bool rp_json_decode(struct rp_json *p, struct rp_json_token *token)
{
    struct rp_json_inner *inner = p->inner;

    if (!token->has_escapes)
        return true;
    inner->decoded.n = 0;
    if (rp_vec_reserve(&inner->decoded, token->len, NULL) != RP_OK)
        return rp_json_fail_nomem(p);
    token->len =
        (uint32_t)rp_json_unescape(token->text, token->len, inner->decoded.at, &inner->bad_escapes);
    token->text = inner->decoded.at;
    token->has_escapes = false;
    return true;
}
