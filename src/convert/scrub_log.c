/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `scrub` for logs of torch.compile: each record and each payload is cleaned like a text of a
 * trace, quoted lines of the program are removed, and checksums are updated, so that the log is
 * read as before. The output of the compiler stays: graphs, kernels, guards.
 */
#include "base/md5.h"
#include "convert/scrub.h"
#include "formats/torch_trace/records.h"
#include "io/output.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct log_scrub {
    struct rp_secret_words words;
    struct rp_emit text, out; /* cleaned; text is that of the payload */
    struct rp_out *to;        /* NULL: only count */
    struct rp_scrub_file *file;
    struct rp_snip record; /* the record whose payload is collected; n is 0 if there is none */
    char *payload;         /* has room for the whole log */
    size_t payload_n;
};

/* Finds the next folder that identifies a file of a library; n is 0 if there is none. */
static struct rp_snip find_library(struct rp_snip s)
{
    static const char folder[] = "-packages/"; /* of site and dist */
    const char *at = s.n ? memmem(s.at, s.n, folder, sizeof folder - 1) : NULL;

    if (!at)
        return (struct rp_snip){s.at + s.n, 0};
    return (struct rp_snip){at - (at - s.at > 5 ? 5 : 0),
                            sizeof folder - 1 + (at - s.at > 5 ? 5 : 0)};
}

/* Finds before `end` an escaped quote or end of line, from JSON in JSON; n is 0 if there is
   none. */
static struct rp_snip find_escape(const char *from, const char *end)
{
    for (const char *at = from, *next; (at = memchr(at, '\\', (size_t)(end - at))); at = next) {
        for (next = at; next < end && *next == '\\';)
            next++;
        if (next < end && (*next == 'n' || *next == '"'))
            return (struct rp_snip){at, (size_t)(next + 1 - at)};
    }
    return (struct rp_snip){end, 0};
}

/* Whether a text has a path of Windows, "C:\\\\Users": a single letter before the colon. */
static bool has_drive(struct rp_snip s)
{
    const char *end = s.at + s.n;

    for (const char *at = s.at; s.n && (at = memmem(at, (size_t)(end - at), ":\\", 2)); at++)
        if (at - s.at > 1 && isalpha((unsigned char)at[-1]) && strchr("\"' (=", at[-2]))
            return true;
    return false;
}

/* Cleans a text, with its quotes of the program between `begin` and the byte `end`. */
static void clean(struct log_scrub *l, struct rp_snip s, const char *begin, char end,
                  struct rp_emit *to)
{
    const char *instead = rp_secret_rows[RP_SECRET_SOURCE].instead;
    size_t n = strlen(begin);

    while (s.n) {
        const char *quoted = memmem(s.at, s.n, begin, n);
        struct rp_snip part = {s.at, quoted ? (size_t)(quoted + n - s.at) : s.n};

        /* Escapes would look like paths of Windows, so they are protected unless the text has such
           paths. */
        bool windows = has_drive(part);
        struct rp_snip library = find_library(part), rest = part;
        while (rest.n) {
            struct rp_snip kept = windows ? library : find_escape(rest.at, library.at);
            kept = kept.n ? kept : library;
            rp_secrets_clean(&l->words, RP_SECRET_IN_VALUE, "", rest.at,
                             (size_t)(kept.at - rest.at), to, l->file->counts);
            rp_emit_bytes(to, kept.at, kept.n);
            rest.n -= (size_t)(kept.at + kept.n - rest.at);
            rest.at = kept.at + kept.n;
            if (kept.at == library.at)
                library = find_library(rest);
        }
        s.at += part.n;
        s.n -= part.n;
        if (!quoted)
            return;
        rp_emit_text(to, instead);
        l->file->counts[RP_SECRET_SOURCE] +=
            s.n < strlen(instead) || memcmp(s.at, instead, strlen(instead)) != 0;
        for (bool escaped = false; s.n && (escaped || *s.at != end); s.at++, s.n--)
            escaped = !escaped && *s.at == '\\' && end == '"';
    }
}

/* Cleans a record and sets the checksum of its cleaned payload; md5 is NULL if it has none. */
static void clean_record(struct log_scrub *l, const char *md5)
{
    static const char key[] = "\"has_payload\": \"", loc[] = "\"loc\": \"";
    struct rp_snip s = l->record, head = s;
    const char *sum = md5 ? memmem(s.at, s.n, key, sizeof key - 1) : NULL;

    if (sum) {
        head.n = (size_t)(sum + sizeof key - 1 - s.at);
        const char *after = memchr(s.at + head.n, '"', s.n - head.n);
        s.n -= after ? (size_t)(after - s.at) : s.n;
        s.at = after;
    }
    clean(l, head, loc, '"', &l->out);
    if (!sum)
        return;
    if (l->to)
        rp_emit_text(&l->out, md5);
    else /* only what is secret shall differ */
        rp_emit_bytes(&l->out, head.at + head.n,
                      (size_t)(s.at ? s.at - head.at - (ptrdiff_t)head.n : 0));
    if (s.n)
        clean(l, s, loc, '"', &l->out);
}

static enum rp_code finish_record(struct log_scrub *l, bool has_payload, struct rp_err *err)
{
    int64_t before[RP_SECRETS];
    char md5[RP_MD5_TEXT];
    struct rp_md5 sum;

    if (!l->record.n)
        return RP_OK;
    memcpy(before, l->file->counts, sizeof before);
    rp_emit_reset(&l->text);
    rp_emit_reset(&l->out);
    if (has_payload)
        clean(l, (struct rp_snip){l->payload, l->payload_n}, ", code: ", '\n', &l->text);
    RP_TRY(rp_scrub_note(l->file, before, "payload", RP_ABSENT_I64, l->payload, l->payload_n,
                         &l->text, err));
    memcpy(before, l->file->counts, sizeof before);
    rp_md5_begin(&sum);
    rp_md5_add(&sum, l->text.buffer, rp_emit_length(&l->text));
    rp_md5_text(&sum, md5);
    clean_record(l, has_payload ? md5 : NULL);
    RP_TRY(rp_scrub_note(l->file, before, "record", RP_ABSENT_I64, l->record.at, l->record.n,
                         &l->out, err));
    if (l->to) {
        rp_out_write(l->to, l->out.buffer, rp_emit_length(&l->out));
        rp_out_write(l->to, "\n", 1);
        if (has_payload) {
            /* Each line of the payload begins with a tab. */
            const char *at = l->text.buffer, *end = at + rp_emit_length(&l->text);
            for (const char *line; at <= end; at = line + 1) {
                line = memchr(at, '\n', (size_t)(end - at));
                line = line ? line : end;
                rp_out_write(l->to, "\t", 1);
                rp_out_write(l->to, at, (size_t)(line - at));
                rp_out_write(l->to, "\n", 1);
            }
        }
    }
    l->record.n = l->payload_n = 0;
    return RP_OK;
}

static void log_scrub_release(struct log_scrub *l)
{
    rp_emit_abandon(&l->text);
    rp_emit_abandon(&l->out);
    rp_secret_words_release(&l->words);
    free(l->payload);
}

enum rp_code rp_scrub_log(struct rp_input *in, struct rp_out *to, struct rp_scrub_file *file,
                          struct rp_err *err)
{
    RP_SCOPED(log_scrub_release)
    struct log_scrub l = {.words = {.arena = RP_ARENA_INIT}, .to = to, .file = file};
    const uint8_t *bytes;
    size_t n;

    RP_TRY(rp_input_slurp(in, &bytes, &n, err));
    l.payload = malloc(n + 1);
    RP_TRY(rp_err_need(l.payload, err, "removing secrets"));
    RP_TRY(rp_emit_open_memory(&l.text, err));
    RP_TRY(rp_emit_open_memory(&l.out, err));

    struct rp_snip rest = (struct rp_snip){(const char *)bytes, n};
    struct rp_snip line, all = rest;
    bool has_payload = false;
    while (rp_snip_line(&all, &line))
        RP_TRY(rp_secrets_learn(&l.words, "", line.at, line.n, false, err));
    while (rp_snip_line(&rest, &line)) {
        if (line.n && *line.at == '\t' && l.record.n) {
            if (has_payload)
                l.payload[l.payload_n++] = '\n';
            memcpy(l.payload + l.payload_n, line.at + 1, line.n - 1);
            l.payload_n += line.n - 1;
            has_payload = true;
            continue;
        }
        RP_TRY(finish_record(&l, has_payload, err));
        l.record = line;
        has_payload = false;
    }
    RP_TRY(finish_record(&l, has_payload, err));

    if (l.text.failure.code != RP_OK || l.out.failure.code != RP_OK)
        return rp_err_nomem(err, "removing secrets");
    return RP_OK;
}
