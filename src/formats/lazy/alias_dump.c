/* SPDX-License-Identifier: Apache-2.0 */
/* Each line has two numbers. The first pass counts the lines, the second one reads them. */
#include "formats/lazy/alias_dump.h"

#include "base/text.h"

#include <string.h>

#define FAIL(at, ...) rp_text_error(err, RP_FORMAT, text, len, (size_t)((at)-text), __VA_ARGS__)

static const char *skip_blanks(const char *s, const char *end)
{
    while (s < end && (*s == ' ' || *s == '\t' || *s == '\r'))
        s++;
    return s;
}

/* The position after a number that fits 31 bits, or NULL. */
static const char *read_number(const char *s, const char *end, uint32_t *value)
{
    const char *from = s;
    uint64_t v = 0;

    for (; s < end && *s >= '0' && *s <= '9' && v < INT32_MAX; s++)
        v = v * 10 + (uint64_t)(*s - '0');
    *value = (uint32_t)v;
    return s > from && v <= INT32_MAX ? s : NULL;
}

static enum rp_code read_alias_lines(const char *text, size_t len, struct rp_alias_pair *out,
                                     size_t *n, struct rp_err *err)
{
    const char *end = text + len;

    for (const char *s = text; s < end;) {
        const char *line = memchr(s, '\n', (size_t)(end - s)), *to = line ? line : end;
        const char *at = skip_blanks(s, to);

        s = line ? line + 1 : end;
        if (at == to)
            continue;
        const char *behind = read_number(at, to, &out[*n].parameter);
        if (!behind || skip_blanks(behind, to) == behind)
            return FAIL(behind ? behind : at, "expected the number of an input and a space");
        at = skip_blanks(behind, to);
        behind = read_number(at, to, &out[*n].output);
        if (!behind || skip_blanks(behind, to) != to)
            return FAIL(behind ? behind : at,
                        "expected the number of an output and the end of the line");
        ++*n;
    }
    return RP_OK;
}

enum rp_code rp_alias_dump_read(struct rp_input *in, const struct rp_limits *limits,
                                struct rp_arena *arena, struct rp_alias_pair **pairs, size_t *n,
                                struct rp_err *err)
{
    const uint8_t *bytes;
    size_t len, lines = 1;

    RP_TRY(rp_input_slurp(in, &bytes, &len, err));
    for (size_t i = 0; i < len; i++)
        lines += bytes[i] == '\n';
    if (limits && lines > limits->events)
        return rp_err_set(err, RP_LIMIT, "more than %llu lines",
                          (unsigned long long)limits->events);
    *pairs = RP_ARENA_NEW(arena, struct rp_alias_pair, lines);
    *n = 0;
    return *pairs ? read_alias_lines((const char *)bytes, len, *pairs, n, err)
                  : rp_err_nomem(err, "reading aliases");
}
