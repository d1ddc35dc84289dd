/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What readers of traces in protocol buffers share. Such a file is one message: it is mapped or
 * read as a whole, and cursors run over it without copying. Names of processes and threads become
 * metadata events, as in Chrome's format, so that later passes and the writers see no difference.
 */
#include "formats/trace_proto.h"

#include "base/clock.h"
#include "base/hash.h"

#include <time.h>

enum rp_code rp_proto_trace_init(struct rp_proto_trace *t, struct rp_input *in,
                                 const struct rp_read_options *options, const char *name,
                                 struct rp_err *err)
{
    *t = (struct rp_proto_trace){.in = in, .options = options};
    t->limits = options->limits ? *options->limits : RP_LIMITS_DEFAULT;
    RP_TRY(rp_input_slurp(in, &t->bytes, &t->n, err));
    RP_TRY(rp_builder_new(t->options->limits, &t->builder, err));
    t->trace = rp_builder_borrow_trace(t->builder);
    t->health = &t->trace->health;
    return rp_proto_trace_text(t, name, &t->trace->format, err);
}

void rp_proto_trace_release(struct rp_proto_trace *t)
{
    rp_builder_free(t->builder);
    t->builder = NULL;
}

enum rp_code rp_proto_trace_finish(struct rp_proto_trace *t, struct rp_import *to, int64_t begin_ns,
                                   struct rp_err *err)
{
    struct rp_builder *builder = t->builder;

    t->builder = NULL;
    to->content_bytes = t->n;
    to->read_ns = rp_clock_ns() - begin_ns;
    enum rp_code code = rp_builder_finish(builder, &to->trace, err);
    to->finish_ns = rp_clock_ns() - begin_ns - to->read_ns;
    return code;
}

/* -------------------------------------------------------------------------- texts */

static bool is_continuation(uint8_t c)
{
    return (c & 0xc0) == 0x80;
}

/* Length of the UTF-8 sequence that begins at s, or 0. */
static size_t utf8_sequence(const uint8_t *s, size_t left)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

    if (n < 2)
        return n;
    if (s[0] > 0xf4 || left < n)
        return 0;
    for (size_t i = 1; i < n; i++)
        if (!is_continuation(s[i]))
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

/* The position where the text stops being UTF-8, or n. */
static size_t utf8_length(const uint8_t *s, size_t n, size_t *marks)
{
    static const uint8_t mark[] = {0xef, 0xbf, 0xbd};
    size_t i = 0;
    uint64_t word;

    while (i < n) {
        if (i + 8 <= n) {
            memcpy(&word, s + i, 8);
            if (!(word & UINT64_C(0x8080808080808080))) {
                i += 8;
                continue;
            }
        }
        size_t step = utf8_sequence(s + i, n - i);
        if (!step)
            return i;
        *marks += step == 3 && memcmp(s + i, mark, 3) == 0;
        i += step;
    }
    return n;
}

enum rp_code rp_proto_trace_intern(struct rp_proto_trace *t, struct rp_bytes text, rp_str *out,
                                   struct rp_err *err)
{
    size_t marks = 0;

    if (text.n > t->limits.token_bytes)
        return rp_err_set_at(err, RP_LIMIT, (uint64_t)(text.at - t->bytes),
                             "a string of %zu bytes at byte %zu exceeds the limit of %llu", text.n,
                             (size_t)(text.at - t->bytes),
                             (unsigned long long)t->limits.token_bytes);
    RP_TRY(rp_builder_intern(t->builder, (const char *)text.at, text.n, out, err));
    if (*out > t->newest) {
        t->newest = *out;
        t->health->bad_utf8 += utf8_length(text.at, text.n, &marks) < text.n;
    }
    return RP_OK;
}

enum rp_code rp_proto_trace_text(struct rp_proto_trace *t, const char *text, rp_str *out,
                                 struct rp_err *err)
{
    return rp_builder_intern(t->builder, text, strlen(text), out, err);
}

enum rp_code rp_proto_trace_word(struct rp_proto_trace *t, const char *literal, rp_str *out,
                                 struct rp_err *err)
{
    size_t place = rp_hash_u64((uintptr_t)literal) % (sizeof t->words / sizeof *t->words);

    if (t->words[place].text != literal) {
        RP_TRY(rp_proto_trace_text(t, literal, &t->words[place].str, err));
        t->words[place].text = literal;
    }
    *out = t->words[place].str;
    return RP_OK;
}

bool rp_proto_is_text(struct rp_bytes bytes)
{
    size_t marks = 0;

    for (size_t i = 0; i < bytes.n; i++)
        if (bytes.at[i] < 0x20 || bytes.at[i] == 0x7f)
            return false;
    return bytes.n && utf8_length(bytes.at, bytes.n, &marks) == bytes.n;
}

size_t rp_proto_count_mangled(const uint8_t *bytes, size_t n)
{
    size_t marks = 0;

    return n - utf8_length(bytes, n, &marks) < 4 ? marks : 0;
}

enum rp_code rp_proto_refuse_mangled(size_t marks, size_t n, struct rp_err *err)
{
    rp_err_set_at(err, RP_FORMAT, 0,
                  "looks as if the binary file had been decoded as UTF-8 text and written again: "
                  "U+FFFD (bytes EF BF BD) occurs %zu times in its %zu bytes",
                  marks, n);
    return rp_err_context(err, RP_FORMAT,
                          "the original bytes are lost: copy the file again, as binary");
}

/* -------------------------------------------------------------------------- facts */

enum rp_code rp_proto_trace_name(struct rp_proto_trace *t, rp_track track, bool process,
                                 rp_str name, struct rp_err *err)
{
    return rp_builder_label(t->builder, track, process ? "process_name" : "thread_name", "name",
                            name, err);
}

enum rp_code rp_proto_trace_meta(struct rp_proto_trace *t, const char *key, struct rp_emit *e,
                                 struct rp_err *err)
{
    rp_str id, value;

    if (e->failure.code != RP_OK) {
        if (err)
            *err = e->failure;
        return e->failure.code;
    }
    RP_TRY(rp_proto_trace_text(t, key, &id, err));
    RP_TRY(rp_builder_intern(t->builder, e->buffer, rp_emit_length(e), &value, err));
    rp_emit_reset(e);
    return rp_builder_add_meta(t->builder, id, value, false, err);
}

enum rp_code rp_proto_trace_progress(struct rp_proto_trace *t, const uint8_t *at,
                                     struct rp_err *err)
{
    const struct rp_read_options *o = t->options;

    if (o->progress && !o->progress(o->progress_user, (uint64_t)(at - t->bytes), t->n))
        return rp_err_set(err, RP_CANCELLED, "reading was cancelled");
    return RP_OK;
}

int64_t rp_proto_trace_clamp(struct rp_proto_trace *t, rp_wide_ns ns)
{
    rp_wide_ns most = ns < RP_TIME_MAX_NS ? ns : RP_TIME_MAX_NS;
    rp_wide_ns clamped = most > -RP_TIME_MAX_NS ? most : -RP_TIME_MAX_NS;

    t->health->huge_time += clamped != ns;
    return (int64_t)clamped;
}
