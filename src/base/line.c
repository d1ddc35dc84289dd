/* SPDX-License-Identifier: Apache-2.0 */
/* The memory doubles; the old memory stays in the arena. */
#include "base/line.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Ensures room for `more` bytes and a NUL; false if memory runs out. */
static bool line_reserve(struct rp_arena_line *line, size_t more)
{
    size_t cap = line->cap ? line->cap : 64;

    if (line->cap - line->n > more)
        return true;
    while (cap - line->n <= more)
        cap *= 2;
    char *grown = rp_arena_alloc(line->arena, cap, 1);
    if (!grown)
        return false;
    if (line->n)
        memcpy(grown, line->text, line->n);
    line->text = grown;
    line->cap = cap;
    return true;
}

void rp_arena_addf(struct rp_arena_line *line, const char *fmt, ...)
{
    va_list args, again;

    va_start(args, fmt);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, args);
    if (len < 0) {
        line->arena->failed = true;
    } else if (line_reserve(line, (size_t)len)) {
        vsnprintf(line->text + line->n, (size_t)len + 1, fmt, again);
        line->n += (size_t)len;
    }
    va_end(again);
    va_end(args);
}
