/* SPDX-License-Identifier: Apache-2.0 */
/* Reads files of lines. */
#include "io/lines.h"

#include "io/input.h"

#include <ctype.h>
#include <string.h>

enum rp_code rp_lines_parse(const char *path, const char *text, rp_line_fn *one, void *user,
                            struct rp_err *err)
{
    size_t number = 1, n;

    for (; *text; text += n + (text[n] == '\n'), number++) {
        n = strcspn(text, "\n");
        RP_TRY(one(user, path, number, text, n, err));
    }
    return RP_OK;
}

enum rp_code rp_lines_read(const char *path, size_t most, struct rp_arena *arena, rp_line_fn *one,
                           void *user, struct rp_err *err)
{
    struct rp_limits limits = RP_LIMITS_DEFAULT;
    struct rp_input *in;
    const uint8_t *bytes;
    size_t n;

    limits.input_bytes = most;
    RP_TRY(rp_input_open(path, &limits, &in, err));
    enum rp_code code = rp_input_slurp(in, &bytes, &n, err);
    if (code == RP_OK) {
        char *text = rp_arena_copy(arena, (const char *)bytes, n);
        code = text ? rp_lines_parse(path, text, one, user, err)
                    : rp_err_nomem(err, "reading a file of patterns");
    }
    rp_input_close(in);
    return code;
}

bool rp_line_split(const char *line, size_t n, struct rp_line_row *out)
{
    size_t word, rest;

    while (n && isspace((unsigned char)line[n - 1]))
        n--;
    for (; n && isspace((unsigned char)*line); line++, n--)
        ;
    for (word = 0; word < n && !isspace((unsigned char)line[word]); word++)
        ;
    for (rest = word; rest < n && isspace((unsigned char)line[rest]); rest++)
        ;
    *out = (struct rp_line_row){.text = line, .n = n, .word = word, .rest = rest};
    return n && *line != '#';
}
