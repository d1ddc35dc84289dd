/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sequence of thunks as text, one a line, indented by four spaces below the thunk they are in:
 *
 *     000: kCommandBuffer [source | sink]
 *         014: kCustomKernel [prev=010 (4) | next=016 (2)] gemm_3 grid: [32, 1, 1] threads: …
 *
 * The brackets are missing in older versions, and other lines ("body:") only name a part of the
 * thunk above. Linear.
 */
#include "formats/dump/logs.h"

#include "base/hash.h"
#include "base/vec.h"

#include <string.h>

#define MAX_DEPTH 64

struct thunk_line {
    const char *at, *end;
    size_t indent;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int64_t read_number(const char **at, const char *end)
{
    int64_t x = 0;

    for (; *at < end && is_digit(**at); ++*at)
        x = x > (INT64_MAX - 9) / 10 ? INT64_MAX / 10 * 10 : x * 10 + (**at - '0');
    return x;
}

/* Reads number and kind of "014: k…"; false for any other line. */
static bool line_begin(struct thunk_line *line, int64_t *id, const char **kind, size_t *kind_n)
{
    const char *at = line->at;

    while (at < line->end && *at == ' ')
        at++;
    line->indent = (size_t)(at - line->at);
    if (at == line->end || !is_digit(*at))
        return false;
    *id = read_number(&at, line->end);
    if (line->end - at < 3 || at[0] != ':' || at[1] != ' ')
        return false;
    at += 2;
    *kind = at;
    while (at < line->end && *at != ' ' && *at != '\t' && *at != ',')
        at++;
    *kind_n = (size_t)(at - *kind);
    line->at = at;
    return *kind_n > 0;
}

static void skip_spaces(struct thunk_line *line)
{
    while (line->at < line->end && (*line->at == ' ' || *line->at == '\t' || *line->at == ','))
        line->at++;
}

/* "grid: [32, 1, 1]": up to three numbers after a word. */
static void numbers_after(const struct thunk_line *line, const char *word, int64_t *out, size_t n)
{
    const char *at = memmem(line->at, (size_t)(line->end - line->at), word, strlen(word));
    size_t i = 0;

    for (at = at ? at + strlen(word) : line->end; at < line->end && i < n && *at != ']';) {
        if (is_digit(*at))
            out[i++] = read_number(&at, line->end);
        else
            at++;
    }
}

/* Kernels of old versions are "kernel = name"; others begin the rest of the line. */
static const char *line_kernel(const struct thunk_line *line, const char *kind, size_t kind_n,
                               struct rp_arena *arena)
{
    static const char word[] = "kernel = ";
    const char *at = memmem(line->at, (size_t)(line->end - line->at), word, sizeof word - 1);
    const char *to;

    if (!memmem(kind, kind_n, "Kernel", 6))
        return "";
    at = at ? at + sizeof word - 1 : line->at;
    for (to = at; to < line->end && *to != ' ' && *to != ',';)
        to++;
    if (to > at && to[-1] == ':') /* "grid:" follows, so the kernel has no name */
        return "";
    at = rp_arena_copy(arena, at, (size_t)(to - at));
    return at ? at : "";
}

static enum rp_code read_line(struct thunk_line line, uint64_t token_bytes, uint32_t *open,
                              size_t *open_indent, uint32_t *depth, struct rp_arena *arena,
                              struct rp_thunks *out, struct rp_err *err)
{
    struct rp_thunk *t = &out->at[out->n];
    const char *kind;
    size_t kind_n;
    int64_t id;

    if (!line_begin(&line, &id, &kind, &kind_n))
        return RP_OK;
    if ((size_t)(line.end - kind) > token_bytes)
        return rp_err_set(err, RP_LIMIT, "thunk %lld: its line has %zu bytes, which is too long",
                          (long long)id, (size_t)(line.end - kind));
    while (*depth && open_indent[*depth - 1] >= line.indent)
        --*depth;
    *t = (struct rp_thunk){.id = id,
                           .parent = *depth ? open[*depth - 1] : RP_NONE,
                           .depth = *depth,
                           .instruction = ""};
    t->kind = rp_arena_copy(arena, kind, kind_n);

    /* "[prev=010 (4) | next=016 (2)]" */
    skip_spaces(&line);
    if (line.at != line.end && *line.at == '[') {
        const char *close = memchr(line.at, ']', (size_t)(line.end - line.at));
        line.at = close ? close + 1 : line.end;
        skip_spaces(&line);
    }
    t->kernel = line_kernel(&line, kind, kind_n, arena);
    numbers_after(&line, "grid: [", t->grid, 3);
    numbers_after(&line, "threads: [", t->block, 3);
    numbers_after(&line, "shared_memory: ", &t->shared_bytes, 1);
    if (*depth == MAX_DEPTH)
        return rp_err_set(err, RP_LIMIT, "thunk %lld: nested over %d deep", (long long)id,
                          MAX_DEPTH);
    open[*depth] = (uint32_t)out->n++;
    open_indent[(*depth)++] = line.indent;
    return RP_OK;
}

enum rp_code rp_thunks_read(const char *text, size_t n, const struct rp_limits *limits,
                            struct rp_arena *arena, struct rp_thunks *out, struct rp_err *err)
{
    uint64_t token = limits ? limits->token_bytes : RP_LIMITS_DEFAULT.token_bytes;
    const char *end = text + n;
    uint32_t open[MAX_DEPTH], depth = 0;
    size_t indents[MAX_DEPTH], lines = 1;

    *out = (struct rp_thunks){0};
    for (const char *s = text; (s = memchr(s, '\n', (size_t)(end - s)));)
        lines++, s++;
    out->at = lines < RP_NONE ? RP_ARENA_NEW(arena, struct rp_thunk, lines) : NULL;
    RP_TRY(rp_err_need(out->at, err, "reading thunks"));
    while (text < end) {
        const char *nl = memchr(text, '\n', (size_t)(end - text));
        struct thunk_line line = {text, nl ? nl : end, 0};

        RP_TRY(read_line(line, token, open, indents, &depth, arena, out, err));
        if (!out->n && line.end > line.at)
            return rp_err_set(err, RP_FORMAT, "the first line is not a thunk ('000: kKind …')");
        text = line.end + (nl != NULL);
    }
    return rp_arena_check(arena, "reading thunks", err);
}

/* ------------------------------------------------------------------ joining */

static uint64_t thunk_key(const struct rp_thunk *t)
{
    return rp_hash_join(rp_hash_bytes(t->kind, strlen(t->kind)), (uint64_t)t->id);
}

/* Command buffers have no id and read as 0, so thunks of one kind and id are joined in order. */
enum rp_code rp_thunks_join(struct rp_thunks *thunks, const struct rp_thunks *metadata,
                            struct rp_arena *scratch, struct rp_err *err)
{
    uint32_t *next = RP_ARENA_NEW(scratch, uint32_t, metadata->n + 1);
    RP_SCOPED(rp_map_release) struct rp_map first = {0};

    RP_TRY(rp_err_need(next, err, "joining thunks"));
    for (size_t i = metadata->n; i-- > 0;) {
        next[i] = rp_map_get(&first, thunk_key(&metadata->at[i]));
        RP_TRY(rp_map_put(&first, thunk_key(&metadata->at[i]), (uint32_t)i, err));
    }
    for (size_t i = 0; i < thunks->n; i++) {
        struct rp_thunk *t = &thunks->at[i];
        uint32_t at = rp_map_get(&first, thunk_key(t));

        if (at == RP_MAP_NONE)
            continue;
        t->instruction = metadata->at[at].instruction;
        if (next[at] != RP_MAP_NONE)
            RP_TRY(rp_map_put(&first, thunk_key(t), next[at], err));
    }
    return RP_OK;
}
