/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common forms ("123.456" with at most 18 digits in all, no exponent) take one pass; everything
 * else goes through `slow`, which collects up to 40 significant digits and the position of the
 * point.
 */
#include "base/decimal.h"

#include <stdbool.h>

#define MAX_DIGITS 40

static const uint64_t power10[19] = {1,
                                     10,
                                     100,
                                     1000,
                                     10000,
                                     100000,
                                     1000000,
                                     10000000,
                                     100000000,
                                     1000000000,
                                     10000000000,
                                     100000000000,
                                     1000000000000,
                                     10000000000000,
                                     100000000000000,
                                     1000000000000000,
                                     10000000000000000,
                                     100000000000000000,
                                     1000000000000000000};

struct digits {
    unsigned char d[MAX_DIGITS]; /* without leading zeros */
    unsigned n;
    int64_t count, last_nonzero; /* of all digits, including those beyond MAX_DIGITS */
    int64_t point; /* number of digits before the decimal point; may be negative or above n */
};

static bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

static void take(struct digits *g, char c)
{
    if (g->n < MAX_DIGITS)
        g->d[g->n++] = (unsigned char)(c - '0');
    if (c != '0')
        g->last_nonzero = g->count;
    g->count++;
}

/* s is behind the sign. Returns false if the text is not a number. */
static bool collect_digits(const char *s, const char *end, struct digits *g)
{
    bool any = false;
    int64_t exponent = 0;

    *g = (struct digits){.last_nonzero = -1};
    for (; s < end && is_digit(*s); s++, any = true) {
        if (g->n || *s != '0') {
            take(g, *s);
            g->point++;
        }
    }
    if (s < end && *s == '.') {
        for (s++; s < end && is_digit(*s); s++, any = true) {
            if (g->n || *s != '0')
                take(g, *s);
            else
                g->point--;
        }
    }
    if (any && s < end && (*s | 0x20) == 'e') {
        s++;
        bool negative = s < end && *s == '-';
        s += s < end && (*s == '-' || *s == '+');
        for (any = false; s < end && is_digit(*s); s++, any = true)
            exponent = exponent < 1000000000 ? exponent * 10 + (*s - '0') : exponent;
        g->point += negative ? -exponent : exponent;
    }
    return any && s == end;
}

static bool nonzero_from(const struct digits *g, int64_t from)
{
    return g->last_nonzero >= 0 && g->last_nonzero >= from;
}

static unsigned parse_slow(const char *s, const char *end, bool negative, unsigned scale,
                           int64_t *value)
{
    uint64_t limit = (uint64_t)INT64_MAX + negative, v = 0;
    struct digits g;

    *value = 0;
    if (!collect_digits(s, end, &g))
        return RP_DECIMAL_INVALID;
    unsigned flags = (negative ? RP_DECIMAL_NEGATIVE : 0) |
                     (nonzero_from(&g, g.point) ? RP_DECIMAL_FRACTION : 0);
    int64_t keep = g.point + (int64_t)scale; /* how many leading digits make the integer */
    for (int64_t i = 0; i < keep && (v || i < (int64_t)g.n); i++) {
        uint64_t d = i < (int64_t)g.n ? g.d[i] : 0;

        if (v > (limit - d) / 10) {
            *value = negative ? INT64_MIN : INT64_MAX;
            return flags | RP_DECIMAL_RANGE;
        }
        v = v * 10 + d;
    }
    if (nonzero_from(&g, keep)) {
        unsigned next = keep >= 0 && keep < (int64_t)g.n ? g.d[keep] : 0;

        flags |= RP_DECIMAL_ROUNDED;
        if (v < limit && (next > 5 || (next == 5 && (nonzero_from(&g, keep + 1) || (v & 1)))))
            v++;
    }
    *value = negative ? (int64_t)(0 - v) : (int64_t)v;
    return flags;
}

unsigned rp_decimal_parse(const char *s, size_t len, unsigned scale, int64_t *value)
{
    const char *end = s + len, *p;
    bool negative = len && *s == '-';
    unsigned decimals = 0;
    uint64_t v = 0;

    s += negative || (len && *s == '+');
    for (p = s; p < end && is_digit(*p); p++)
        v = v * 10 + (uint64_t)(*p - '0');
    if (p == s || end - s > 18)
        return parse_slow(s, end, negative, scale, value);
    if (p < end && *p == '.') {
        uint64_t whole = v;

        for (p++; p < end && is_digit(*p); p++, decimals++)
            v = v * 10 + (uint64_t)(*p - '0');
        if (p < end || !decimals || decimals > scale || v > INT64_MAX / power10[scale - decimals])
            return parse_slow(s, end, negative, scale, value);
        v *= power10[scale - decimals];
        *value = negative ? -(int64_t)v : (int64_t)v;
        return (negative ? RP_DECIMAL_NEGATIVE : 0) |
               (v != whole * power10[scale] ? RP_DECIMAL_FRACTION : 0);
    }
    if (p < end || v > INT64_MAX / power10[scale])
        return parse_slow(s, end, negative, scale, value);
    v *= power10[scale];
    *value = negative ? -(int64_t)v : (int64_t)v;
    return negative ? RP_DECIMAL_NEGATIVE : 0;
}

size_t rp_decimal_format(int64_t value, unsigned scale, char out[24])
{
    char reversed[24];
    uint64_t v = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    size_t n = 0, len = 0;
    unsigned digits = 0;

    do {
        if (scale && digits == scale)
            reversed[n++] = '.';
        reversed[n++] = (char)('0' + v % 10);
        v /= 10;
        digits++;
    } while (v || digits <= scale);
    if (value < 0)
        out[len++] = '-';
    while (n)
        out[len++] = reversed[--n];
    out[len] = '\0';
    return len;
}
