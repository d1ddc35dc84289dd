/* SPDX-License-Identifier: Apache-2.0 */
/* Positions are computed only if an error is shown, by scanning the text once. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SHOWN   80 /* the bytes of a line that are shown */
#define CONTEXT 60 /* bytes of an excerpt */

struct rp_text_pos rp_text_position(const char *text, size_t len, size_t offset)
{
    struct rp_text_pos pos = {.line = 1, .column = 1, .line_begin = 0, .line_end = len};
    const char *at = text, *newline;

    if (offset > len)
        offset = len;
    const char *end = text + offset;
    while ((newline = memchr(at, '\n', (size_t)(end - at)))) {
        pos.line++;
        at = newline + 1;
    }
    pos.line_begin = (size_t)(at - text);
    pos.column = (uint32_t)(offset - pos.line_begin) + 1;
    newline = memchr(end, '\n', len - offset);
    if (newline)
        pos.line_end = (size_t)(newline - text);
    return pos;
}

size_t rp_text_escape(char *out, size_t cap, const char *bytes, size_t len)
{
    static const char hex[] = "0123456789abcdef";
    size_t n = 0;

    if (!cap)
        return 0;
    for (size_t i = 0; i < len && n + 5 <= cap; i++) {
        unsigned char c = (unsigned char)bytes[i];

        if (c >= ' ' && c < 0x7f) {
            out[n++] = (char)c;
        } else if (c == '\n' || c == '\t') {
            out[n++] = '\\';
            out[n++] = c == '\n' ? 'n' : 't';
        } else {
            out[n++] = '\\';
            out[n++] = 'x';
            out[n++] = hex[c >> 4];
            out[n++] = hex[c & 15];
        }
    }
    out[n] = '\0';
    return n;
}

size_t rp_text_excerpt(char *out, size_t cap, const char *bytes, size_t len, size_t offset)
{
    if (offset > len)
        offset = len;
    size_t begin = offset > CONTEXT / 2 ? offset - CONTEXT / 2 : 0;
    size_t end = len - offset > CONTEXT / 2 ? offset + CONTEXT / 2 : len;
    size_t n = rp_text_escape(out, cap, bytes + begin, offset - begin);
    if (n + 4 < cap) {
        memcpy(out + n, ">>>", 4);
        n += 3;
        n += rp_text_escape(out + n, cap - n, bytes + offset, end - offset);
    }
    return n;
}

enum rp_code rp_text_error(struct rp_err *err, enum rp_code code, const char *text, size_t len,
                           size_t offset, const char *fmt, ...)
{
    char message[400];
    va_list args;

    if (!err)
        return code;
    if (offset > len)
        offset = len;
    struct rp_text_pos pos = rp_text_position(text, len, offset);
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    rp_err_set_at(err, code, offset, "%s at line %u, column %u", message, pos.line, pos.column);
    err->line = pos.line;
    err->column = pos.column;

    /* Adds the shown part of the line and the caret below it; tabs become spaces so that the caret
       fits. */
    size_t begin = pos.line_begin, end = pos.line_end, at = offset - begin;
    char line[SHOWN + 1];

    if (end - begin > SHOWN) {
        if (at > SHOWN / 2)
            begin += at - SHOWN / 2;
        if (end - begin > SHOWN)
            end = begin + SHOWN;
        at = offset - begin;
    }
    for (size_t i = 0; i < end - begin; i++) {
        unsigned char c = (unsigned char)text[begin + i];

        line[i] = c >= ' ' && c < 0x7f ? (char)c : c == '\t' || c == '\r' ? ' ' : '?';
    }
    line[end - begin] = '\0';
    rp_err_context(err, err->code, "%s", line);
    rp_err_context(err, err->code, "%*s^", (int)at, "");

    return code;
}

bool rp_text_begins(const char *text, const char *begin)
{
    return strncmp(text, begin, strlen(begin)) == 0;
}

bool rp_text_ends(const char *text, const char *end)
{
    return rp_text_ends_n(text, strlen(text), end);
}

bool rp_text_ends_n(const char *text, size_t n, const char *end)
{
    size_t m = strlen(end);

    return n >= m && memcmp(text + n - m, end, m) == 0;
}

const char *rp_text_file(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

int rp_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int32_t rp_hex_number(const char *digits, size_t n)
{
    int32_t value = 0;

    for (size_t i = 0; i < n; i++) {
        int digit = rp_hex_digit(digits[i]);

        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned m = a < b ? a : b;

    return m < c ? m : c;
}

unsigned rp_text_distance(const char *a, const char *b)
{
    unsigned row[3][66];
    size_t la = strlen(a), lb = strlen(b);

    if (la > 64 || lb > 64)
        return 255;
    for (unsigned j = 0; j <= lb; j++)
        row[1][j] = j;
    for (unsigned i = 1; i <= la; i++) {
        unsigned *above = row[i % 3], *now = row[(i + 1) % 3], *two = row[(i + 2) % 3];

        now[0] = i;
        for (unsigned j = 1; j <= lb; j++) {
            now[j] = min3(above[j] + 1, now[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                two[j - 2] + 1 < now[j])
                now[j] = two[j - 2] + 1;
        }
    }
    return row[(la + 1) % 3][lb];
}
