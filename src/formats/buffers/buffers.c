/* SPDX-License-Identifier: Apache-2.0 */
/* The texts, line by line, and the row of the table of formats. Linear. */
#include "formats/buffers/buffers.h"
#include "base/each.h"

#include "formats/buffers/lives.h"
#include "formats/formats.h"

#include <string.h>

const char *const rp_buffer_kind_names[RP_BUFFER_KINDS] = {[RP_BUFFER_ARGUMENT] = "arguments",
                                                           [RP_BUFFER_OUTPUT] = "outputs",
                                                           [RP_BUFFER_CONSTANT] = "constants",
                                                           [RP_BUFFER_THREAD_LOCAL] =
                                                               "thread-local",
                                                           [RP_BUFFER_TEMPORARY] = "temporaries"};

struct text_line {
    const char *at;
    size_t n;
};

struct text_reader {
    struct rp_buffers *b;
    const char *at, *end;
    struct text_line line;
    uint64_t number;
    uint64_t token_bytes;
    struct rp_err *err;
};

void rp_buffers_init(struct rp_buffers *b)
{
    *b = (struct rp_buffers){
        .peak_at = -1, .length = -1, .stated_peak_bytes = -1, .stated_peak_at = -1};
}

void rp_buffers_release(struct rp_buffers *b)
{
    RP_EACH(rp_vec_release, &b->allocations, &b->values, &b->live, &b->order, &b->ranges);
    rp_arena_release(&b->arena);
}

/* ------------------------------------------------------------------ lines */

static bool next_line(struct text_reader *r)
{
    if (r->at == r->end)
        return false;
    const char *nl = memchr(r->at, '\n', (size_t)(r->end - r->at));
    r->line = (struct text_line){r->at, (size_t)((nl ? nl : r->end) - r->at)};
    r->at = nl ? nl + 1 : r->end;
    r->number++;
    return true;
}

static enum rp_code line_error(const struct text_reader *r, const char *what)
{
    return rp_err_set(r->err, RP_FORMAT, "line %llu: %s", (unsigned long long)r->number, what);
}

static bool line_begins(const struct text_reader *r, const char *word)
{
    return r->line.n >= strlen(word) && !memcmp(r->line.at, word, strlen(word));
}

static bool line_has(const struct text_reader *r, const char *word)
{
    return memmem(r->line.at, r->line.n, word, strlen(word)) != NULL;
}

/* Finds the number after a word in the line; false if there is none. */
static bool number_after(const struct text_reader *r, const char *word, int64_t *out)
{
    const char *at = memmem(r->line.at, r->line.n, word, strlen(word));
    const char *end = r->line.at + r->line.n;
    int64_t x = 0;
    bool any = false;

    for (at = at ? at + strlen(word) : end; at < end && *at >= '0' && *at <= '9'; at++) {
        if (x > (INT64_MAX / 4 - 9) / 10)
            return false;
        x = x * 10 + (*at - '0');
        any = true;
    }
    *out = x;
    return any;
}

static enum rp_code copy_text(struct text_reader *r, const char *at, size_t n, const char **out)
{
    if (n > r->token_bytes)
        return rp_err_set(r->err, RP_LIMIT, "line %llu: a name of %zu bytes is too long",
                          (unsigned long long)r->number, n);
    *out = rp_arena_copy(&r->b->arena, at, n);
    return rp_err_need(*out, r->err, "reading a buffer assignment");
}

/* ------------------------------------------------------------------ buffer assignment */

/* "allocation 4: size 262144, page 0, parameter 0, shape |f32[256,256]| at ShapeIndex {}:" */
static enum rp_code read_allocation(struct text_reader *r)
{
    struct rp_buffer_allocation a = {.argument = -1, .kind = RP_BUFFER_TEMPORARY};

    if (!number_after(r, "allocation ", &a.number) || !number_after(r, ": size ", &a.bytes))
        return line_error(r, "an allocation without number and size");
    if (number_after(r, ", parameter ", &a.argument))
        a.kind = RP_BUFFER_ARGUMENT;
    else if (line_has(r, ", thread-local"))
        a.kind = RP_BUFFER_THREAD_LOCAL;
    else if (line_has(r, ", constant"))
        a.kind = RP_BUFFER_CONSTANT;
    else if (line_has(r, "maybe-live-out"))
        a.kind = RP_BUFFER_OUTPUT;
    if (a.kind != RP_BUFFER_ARGUMENT)
        a.argument = -1;
    if (__builtin_add_overflow(r->b->total_bytes, a.bytes, &r->b->total_bytes))
        return line_error(r, "sizes add up to over 2^63 bytes");
    return rp_vec_push(&r->b->allocations, a, r->err);
}

/* " value: <374 p.1 @0> (size=262144,offset=0): f32[256,256]{1,0}" */
static enum rp_code read_value(struct text_reader *r)
{
    struct rp_buffer_value v = {.allocation = (uint32_t)r->b->allocations.n - 1};
    const char *end = r->line.at + r->line.n;
    const char *name = memchr(r->line.at, '<', r->line.n), *at;

    name = name ? memchr(name, ' ', (size_t)(end - name)) : NULL;
    at = name ? memmem(name, (size_t)(end - name), " @", 2) : NULL;
    if (!at || !r->b->allocations.n || !number_after(r, "<", &v.id) ||
        !number_after(r, "(size=", &v.bytes) || !number_after(r, ",offset=", &v.offset))
        return line_error(r, "a value without name, size and offset");
    if (at > name + 2 && at[-1] == '}' && at[-2] == '{') /* "{}": the whole value */
        at -= 2;
    RP_TRY(copy_text(r, name + 1, at > name ? (size_t)(at - name - 1) : 0, &v.name));
    return rp_vec_push(&r->b->values, v, r->err);
}

/* Whether a text begins like a buffer assignment. */
static bool buffers_begin(const uint8_t *head, size_t n)
{
    static const char word[] = "BufferAssignment:";

    return n >= sizeof word - 1 && !memcmp(head, word, sizeof word - 1);
}

static struct text_reader text_reader_of(struct rp_buffers *b, const char *text, size_t n,
                                         const struct rp_limits *limits, struct rp_err *err)
{
    return (struct text_reader){.b = b,
                                .at = text,
                                .end = text + n,
                                .token_bytes =
                                    limits ? limits->token_bytes : RP_LIMITS_DEFAULT.token_bytes,
                                .err = err};
}

enum rp_code rp_buffers_read_text(struct rp_buffers *b, const char *text, size_t n,
                                  const struct rp_limits *limits, struct rp_err *err)
{
    struct text_reader r = text_reader_of(b, text, n, limits, err);

    if (!buffers_begin((const uint8_t *)text, n))
        return rp_err_set(err, RP_FORMAT, "does not begin with 'BufferAssignment:'");
    next_line(&r);
    while (next_line(&r)) {
        if (line_begins(&r, "allocation "))
            RP_TRY(read_allocation(&r));
        else if (line_begins(&r, " value: "))
            RP_TRY(read_value(&r));
        else if (!b->allocations.n && r.line.n)
            return line_error(&r, "expected 'allocation'");
        else if (line_begins(&r, "Total bytes")) /* the summary that newer versions of XLA append */
            break;
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ live ranges */

/* "    gemm_fusion_dot.4{}: 524288 bytes (cumulative: 524288 bytes)" */
static enum rp_code read_live(struct text_reader *r)
{
    const char *at = r->line.at + 4, *end = r->line.at + r->line.n;
    const char *colon = memmem(at, (size_t)(end - at), "}: ", 3), *brace;
    struct rp_live_buffer live = {0};

    if (!colon || !number_after(r, "}: ", &live.bytes))
        return line_error(r, "a live range without a size");
    brace = memrchr(at, '{', (size_t)(colon - at));
    if (!brace)
        return line_error(r, "a live range without a name");
    if (colon == brace + 1) /* "{}": the whole value */
        RP_TRY(copy_text(r, at, (size_t)(brace - at), &live.name));
    else
        RP_TRY(copy_text(r, at, (size_t)(colon + 1 - at), &live.name));
    if (__builtin_add_overflow(r->b->peak_bytes, live.bytes, &r->b->peak_bytes))
        return line_error(r, "sizes add up to over 2^63 bytes");
    return rp_vec_push(&r->b->live, live, r->err);
}

/* "    36:fusion.62": the instruction at a position */
static enum rp_code read_position(struct text_reader *r)
{
    const char *end = r->line.at + r->line.n, *colon;
    const char *name;
    int64_t at;

    if (!number_after(r, "    ", &at) || at != (int64_t)r->b->order.n)
        return line_error(r, "instructions are not numbered from 0");
    colon = memchr(r->line.at, ':', r->line.n);
    if (!colon)
        return line_error(r, "an instruction has no name");
    RP_TRY(copy_text(r, colon + 1, (size_t)(end - colon - 1), &name));
    return rp_vec_push(&r->b->order, name, r->err);
}

/* "    gemm_fusion_dot.4{}:18-49" */
static enum rp_code read_range(struct text_reader *r)
{
    const char *at = r->line.at + 4, *end = r->line.at + r->line.n, *brace, *colon;
    struct rp_live_range range = {0};
    struct text_reader numbers = *r;

    colon = memrchr(at, ':', (size_t)(end - at));
    brace = colon ? memrchr(at, '{', (size_t)(colon - at)) : NULL;
    if (!brace || colon[-1] != '}')
        return line_error(r, "a live range without a name");
    numbers.line = (struct text_line){colon, (size_t)(end - colon)};
    if (!number_after(&numbers, ":", &range.first) || !number_after(&numbers, "-", &range.last))
        return line_error(r, "a live range without begin and end");
    RP_TRY(copy_text(r, at, (size_t)((colon == brace + 2 ? brace : colon) - at), &range.name));
    return rp_vec_push(&r->b->ranges, range, r->err);
}

static enum rp_code set_peak(struct rp_buffers *b, const struct rp_buffer_lives *lives,
                             struct rp_arena *scratch, struct rp_err *err)
{
    struct rp_buffer_share *shares;
    size_t n;

    if (b->has_peak && b->peak_at >= 0 && b->peak_at < (int64_t)lives->npositions &&
        lives->taken[b->peak_at] == lives->peak_bytes)
        ; /* if several positions have the same peak, the one that XLA names */
    else
        b->peak_at = lives->peak;
    RP_TRY(rp_buffers_live_at(b, lives, b->peak_at, scratch, &shares, &n, err));
    b->has_peak = true;
    b->peak_bytes = lives->peak_bytes;
    b->live.n = 0;
    for (size_t i = 0; i < n; i++) {
        struct rp_live_buffer live = {b->values.at[lives->at[shares[i].live].value].name,
                                      shares[i].bytes};

        if (live.bytes)
            RP_TRY(rp_vec_push(&b->live, live, err));
    }
    return RP_OK;
}

enum rp_code rp_buffers_read_ranges(struct rp_buffers *b, const char *text, size_t n,
                                    const struct rp_limits *limits, struct rp_err *err)
{
    struct text_reader r = text_reader_of(b, text, n, limits, err);
    enum { NOWHERE, ORDER, RANGES, PEAK } in = NOWHERE;

    if (!next_line(&r) || !number_after(&r, "HloLiveRange (max ", &b->length))
        return rp_err_set(err, RP_FORMAT, "does not begin with 'HloLiveRange (max N):'");
    while (next_line(&r)) {
        if (line_begins(&r, "  Live ranges at ")) {
            b->has_peak = number_after(&r, "Live ranges at ", &b->peak_at);
            in = b->has_peak ? PEAK : NOWHERE;
        } else if (line_begins(&r, "  InstructionSequence:")) {
            in = ORDER;
        } else if (line_begins(&r, "  BufferLiveRange:")) {
            in = RANGES;
        } else if (!line_begins(&r, "    ")) {
            in = NOWHERE;
        } else if (in == ORDER) {
            RP_TRY(read_position(&r));
        } else if (in == RANGES) {
            RP_TRY(read_range(&r));
        } else if (in == PEAK && line_has(&r, " bytes (cumulative")) {
            RP_TRY(read_live(&r));
        }
    }
    struct rp_arena scratch = RP_ARENA_INIT;
    struct rp_buffer_lives lives;
    enum rp_code code = rp_buffers_lives(b, &scratch, &lives, err);
    if (b->has_peak) {
        b->stated_peak_bytes = b->peak_bytes;
        b->stated_peak_at = b->peak_at;
    }
    if (code == RP_OK && lives.n && lives.peak_bytes > 0)
        code = set_peak(b, &lives, &scratch, err);
    rp_arena_release(&scratch);
    if (b->has_peak && b->peak_at >= 0 && b->peak_at < (int64_t)b->order.n)
        b->peak_instruction = b->order.at[b->peak_at];
    return code;
}

enum rp_code rp_buffers_read_report(const char *text, size_t n, int64_t *total_bytes,
                                    struct rp_err *err)
{
    struct text_reader r = text_reader_of(NULL, text, n, NULL, err);
    bool found = false;
    int64_t bytes;

    *total_bytes = 0;
    while (next_line(&r))
        if (line_begins(&r, "Total bytes") && (number_after(&r, "Total bytes: ", &bytes) ||
                                               number_after(&r, "Total bytes used: ", &bytes))) {
            if (__builtin_add_overflow(*total_bytes, bytes, total_bytes))
                return line_error(&r, "sizes add up to over 2^63 bytes");
            found = true;
        }
    return found ? RP_OK : rp_err_set(err, RP_FORMAT, "has no line 'Total bytes: N'");
}

/* ------------------------------------------------------------------ the format */

static enum rp_sniff sniff_buffers(const uint8_t *head, size_t n, const char *file)
{
    (void)file;
    return buffers_begin(head, n) ? RP_SNIFF_CERTAIN : RP_SNIFF_NO;
}

/* A buffer assignment is neither a trace nor a program: `memory` reads it with
   rp_buffers_read_text. Here it is only checked. */
static enum rp_code read_buffers(struct rp_input *in, const struct rp_read_options *options,
                                 struct rp_import *to, struct rp_err *err)
{
    struct rp_buffers b;
    const uint8_t *bytes;
    size_t n;

    RP_TRY(rp_input_slurp(in, &bytes, &n, err));
    rp_buffers_init(&b);
    enum rp_code code = rp_buffers_read_text(&b, (const char *)bytes, n, options->limits, err);
    rp_buffers_release(&b);
    to->content_bytes = n;
    return code;
}

const struct rp_format rp_format_xla_buffers = {
    .name = "xla-buffers",
    .summary = "buffer assignment of XLA, for 'memory'",
    .files = "*-buffer-assignment.txt",
    .written_by = "XLA (--xla_dump_to)",
    .kind = RP_FORMAT_KIND_BUFFERS,
    .sniff = sniff_buffers,
    .read = read_buffers,
};
