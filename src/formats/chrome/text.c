/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strings and numbers of Chrome JSON. A cache in front of the builder's string table catches names
 * that repeat: its slot is found by length and a few bytes instead of a hash of all of them.
 * Whether a string is UTF-8 is checked once, when it is new. Doubles of up to 19 digits with a
 * small exponent are one exact multiplication or division; others are parsed by strtod, always in
 * the C locale.
 */
#include "formats/chrome/chrome.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>

static bool is_continuation(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/* Length of the sequence that begins at s, or 0. */
static size_t utf8_length(const unsigned char *s, size_t left)
{
    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xc2 || left < 2 || !is_continuation(s[1]))
        return 0;
    if (s[0] < 0xe0)
        return 2;
    if (left < 3 || !is_continuation(s[2]))
        return 0;
    if (s[0] < 0xf0) {
        bool overlong = s[0] == 0xe0 && s[1] < 0xa0, surrogate = s[0] == 0xed && s[1] > 0x9f;

        return overlong || surrogate ? 0 : 3;
    }
    if (left < 4 || !is_continuation(s[3]) || s[0] > 0xf4 || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return 4;
}

static bool chrome_is_utf8(const char *s, size_t len)
{
    const unsigned char *at = (const unsigned char *)s;
    size_t i = 0, step;
    uint64_t word;

    while (i < len) {
        if (i + 8 <= len) {
            memcpy(&word, at + i, 8);
            if (!(word & UINT64_C(0x8080808080808080))) {
                i += 8;
                continue;
            }
        }
        step = utf8_length(at + i, len - i);
        if (!step)
            return false;
        i += step;
    }
    return true;
}

enum rp_code rp_chrome_intern(struct rp_chrome *r, const char *s, size_t len, rp_str *out,
                              struct rp_err *err)
{
    RP_TRY(rp_builder_intern(r->builder, s, len, out, err));
    if (*out > r->newest) {
        r->newest = *out;
        r->health->bad_utf8 += !chrome_is_utf8(s, len);
    }
    return RP_OK;
}

enum rp_code rp_chrome_intern_token(struct rp_chrome *r, struct rp_json_token *token, rp_str *out,
                                    struct rp_err *err)
{
    if (token->has_escapes && !rp_json_decode(r->json, token))
        return rp_json_finish(r->json, err);
    return rp_chrome_intern(r, token->text, token->len, out, err);
}

/* The slot of a string in the cache, by its length, beginning and end. len is at least 8. */
static uint32_t name_slot(const char *s, size_t len)
{
    uint64_t head, tail;

    memcpy(&head, s, 8);
    memcpy(&tail, s + len - 8, 8);
    return (uint32_t)(rp_hash_mix(head ^ len, tail ^ UINT64_C(0x9e3779b97f4a7c15)) %
                      RP_CHROME_NAMES);
}

enum rp_code rp_chrome_intern_name(struct rp_chrome *r, struct rp_json_token *token, rp_str *out,
                                   struct rp_err *err)
{
    if (token->len < 8 || token->has_escapes)
        return rp_chrome_intern_token(r, token, out, err);
    struct rp_chrome_memo *memo = &r->names[name_slot(token->text, token->len)];
    if (rp_chrome_recall(r, memo, token->text, token->len)) {
        *out = memo->str;
        return RP_OK;
    }
    RP_TRY(rp_chrome_intern(r, token->text, token->len, out, err));
    *memo = (struct rp_chrome_memo){.str = *out, .len = token->len};
    return RP_OK;
}

/* Like name_slot, but for any length. */
static uint32_t raw_slot(const char *s, size_t len)
{
    return len >= 8 ? name_slot(s, len) : (uint32_t)(rp_hash_bytes(s, len) % RP_CHROME_NAMES);
}

rp_str rp_chrome_known_raw(const struct rp_chrome *r, const char *s, size_t len)
{
    const struct rp_chrome_memo *memo = &r->raws[raw_slot(s, len)];

    return rp_chrome_recall(r, memo, s, len) ? memo->str : 0;
}

enum rp_code rp_chrome_intern_raw(struct rp_chrome *r, const char *s, size_t len, rp_str *out,
                                  struct rp_err *err)
{
    struct rp_chrome_memo *memo = &r->raws[raw_slot(s, len)];

    if (rp_chrome_recall(r, memo, s, len)) {
        *out = memo->str;
        return RP_OK;
    }
    RP_TRY(rp_chrome_intern(r, s, len, out, err));
    *memo = (struct rp_chrome_memo){.str = *out, .len = (uint32_t)len};
    return RP_OK;
}

bool rp_chrome_parse_int(const char *s, size_t len, int64_t *out)
{
    bool negative = len && *s == '-';
    uint64_t v = 0;
    size_t i = negative;

    if (len - negative == 0 || len - negative > 19)
        return false;
    for (; i < len; i++) {
        if ((unsigned char)(s[i] - '0') > 9)
            return false;
        v = v * 10 + (uint64_t)(s[i] - '0'); /* 19 digits stay below 2^64 */
    }
    if (v > (uint64_t)INT64_MAX + negative)
        return false;
    *out = (int64_t)(negative ? 0 - v : v);
    return true;
}

static const double power10[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static bool parse_slow(struct rp_chrome *r, const char *s, size_t len, double *out)
{
    char small[64], *text = small, *end;

    if (!r->c_locale)
        r->c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!r->c_locale)
        return false;
    if (len >= sizeof small && !(text = malloc(len + 1)))
        return false;
    memcpy(text, s, len);
    text[len] = '\0';
    *out = strtod_l(text, &end, (locale_t)r->c_locale);
    if (text != small)
        free(text);
    return isfinite(*out);
}

bool rp_chrome_parse_double(struct rp_chrome *r, const char *s, size_t len, double *out)
{
    const char *at = s, *end = s + len;
    bool negative = len && *s == '-';
    unsigned decimals = 0;
    uint64_t v = 0;

    for (at += negative; at < end && (unsigned char)(*at - '0') < 10; at++)
        v = v * 10 + (uint64_t)(*at - '0');
    if (at < end && *at == '.')
        for (at++; at < end && (unsigned char)(*at - '0') < 10; at++, decimals++)
            v = v * 10 + (uint64_t)(*at - '0');
    /* both operands are exact, so the quotient is rounded once */
    if (at != end || len > 19 || v > UINT64_C(1) << 53 || decimals > 22)
        return parse_slow(r, s, len, out);
    *out = (double)v / power10[decimals];
    *out = negative ? -*out : *out;
    return true;
}

void rp_chrome_pass(struct rp_json *p, uint32_t depth)
{
    struct rp_json_token key;

    while (!rp_json_failed(p) && rp_json_depth(p) > depth)
        if (rp_json_in_object(p) ? rp_json_field(p, &key) : rp_json_element(p))
            rp_json_skip(p);
}
