/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Width is counted per code point from two short range tables (zero and two columns), which covers
 * what names of kernels, files and people contain; wcwidth() would depend on the caller's locale.
 * Everything is one pass over the text and allocates nothing.
 */
#include "result/print_text.h"

#include <stdbool.h>
#include <string.h>

struct range {
    uint32_t first, last;
};

static const struct range zero_wide[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd},   {0x0610, 0x061a},
    {0x064b, 0x065f}, {0x0e34, 0x0e3a}, {0x0e47, 0x0e4e},   {0x1ab0, 0x1aff},
    {0x1dc0, 0x1dff}, {0x200b, 0x200d}, {0x20d0, 0x20ff},   {0xfe00, 0xfe0f},
    {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}, {0x1f3fb, 0x1f3ff}, {0xe0100, 0xe01ef},
};

static const struct range two_wide[] = {
    {0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},
    {0x4e00, 0x9fff},   {0xa000, 0xa4cf},   {0xa960, 0xa97f},   {0xac00, 0xd7a3},
    {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},
    {0x1f300, 0x1f3fa}, {0x1f400, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff},
    {0x20000, 0x3fffd},
};

#define COUNT(a) (sizeof(a) / sizeof *(a))

static bool in_ranges(uint32_t code, const struct range *ranges, size_t n)
{
    for (size_t i = 0; i < n && code >= ranges[i].first; i++)
        if (code <= ranges[i].last)
            return true;
    return false;
}

size_t rp_utf8_next(const char *s, uint32_t *code)
{
    const unsigned char *p = (const unsigned char *)s;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = *p < 0x80 ? 1 : *p < 0xc2 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : *p < 0xf5 ? 4 : 0;
    uint32_t c = len > 1 ? *p & (0x7fu >> len) : *p;

    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            len = 0;
        else
            c = c << 6 | (p[i] & 0x3f);
    }
    if (!len || c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) {
        *code = RP_UTF8_BAD;
        return 1;
    }
    *code = c;
    return len;
}

static bool steers_terminal(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200e && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* What is shown for the next character: its bytes, their number and columns. Returns its length in
   the text. */
static size_t next_shown(const char *s, const char **bytes, size_t *nbytes, size_t *width)
{
    uint32_t code;
    size_t len = rp_utf8_next(s, &code);

    *bytes = s;
    *nbytes = len;
    *width = 1;
    if (code == '\n' || code == '\t' || code == '\r') {
        *bytes = " ";
        *nbytes = 1;
    } else if (steers_terminal(code) || code == RP_UTF8_BAD) {
        *bytes = "\xef\xbf\xbd";
        *nbytes = 3;
    } else if (code >= 0x300) {
        *width = in_ranges(code, zero_wide, COUNT(zero_wide)) ? 0
                 : in_ranges(code, two_wide, COUNT(two_wide)) ? 2
                                                              : 1;
    }
    return len;
}

size_t rp_screen_width(const char *text)
{
    const char *bytes;
    size_t nbytes, width, total = 0;

    while (*text) {
        text += next_shown(text, &bytes, &nbytes, &width);
        total += width;
    }
    return total;
}

void rp_screen_pad(struct rp_out *to, size_t n)
{
    static const char spaces[] = "                                ";

    for (; n > sizeof spaces - 1; n -= sizeof spaces - 1)
        rp_out_write(to, spaces, sizeof spaces - 1);
    rp_out_write(to, spaces, n);
}

/* Prints characters while they fit into `room` columns; moves *text on and returns the columns. */
static size_t put_head(struct rp_out *to, const char **text, size_t room)
{
    const char *bytes;
    size_t nbytes, width, used = 0;

    while (**text) {
        size_t len = next_shown(*text, &bytes, &nbytes, &width);

        if (used + width > room)
            break;
        rp_out_write(to, bytes, nbytes);
        used += width;
        *text += len;
    }
    return used;
}

size_t rp_screen_put(struct rp_out *to, const char *text, size_t width)
{
    size_t total = rp_screen_width(text), used, skipped = 0, nbytes, w;
    const char *bytes;

    if (total <= width)
        return put_head(to, &text, width);
    if (width == 0)
        return 0;
    used = put_head(to, &text, width / 2);
    rp_out_text(to, "…");
    /* the tail: everything after enough columns were left out */
    while (*text && total - used - skipped > width - used - 1) {
        text += next_shown(text, &bytes, &nbytes, &w);
        skipped += w;
    }
    return used + 1 + put_head(to, &text, width - used - 1);
}

static const char *word_end(const char *text)
{
    while (*text && *text != ' ' && *text != '\n' && *text != '\t')
        text++;
    return text;
}

static void put_word(struct rp_out *to, const char *text, const char *end)
{
    const char *bytes;
    size_t nbytes, width;

    while (text < end) {
        text += next_shown(text, &bytes, &nbytes, &width);
        rp_out_write(to, bytes, nbytes);
    }
}

static size_t word_width(const char *text, const char *end)
{
    const char *bytes;
    size_t nbytes, width, used = 0;

    while (text < end) {
        text += next_shown(text, &bytes, &nbytes, &width);
        used += width;
    }
    return used;
}

void rp_screen_wrap(struct rp_out *to, const char *text, size_t start, size_t indent, size_t width)
{
    size_t column = start;

    for (bool first = true;; first = false) {
        const char *end;
        size_t need;

        text += strspn(text, " \n\t");
        if (!*text)
            return;
        end = word_end(text);
        need = word_width(text, end);
        if (!first && column + 1 + need > width) {
            rp_out_char(to, '\n');
            rp_screen_pad(to, indent);
            column = indent;
        } else if (!first) {
            rp_out_char(to, ' ');
            column++;
        }
        put_word(to, text, end);
        column += need;
        text = end;
    }
}
