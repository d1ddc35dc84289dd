/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts a log into records. The text is read in blocks; a line that is not complete moves to the
 * front of the buffer, which grows only for a line that is longer. A payload that nobody wants is
 * only added to its checksum, so the time is that of MD5, about 2 ns a byte.
 */
#include "formats/torch_trace/records.h"

#include "base/decides.h"
#include "base/md5.h"
#include "base/vec.h"

#include <string.h>

#define BLOCK_BYTES (1 << 18)
RP_LIMIT(BLOCK_BYTES, "bytes", "what is read at once; a longer line makes the buffer grow");

struct log_reader {
    struct rp_input *in;
    struct rp_limits limits;
    const struct rp_torch_sink *sink;
    struct rp_torch_counts *counts;
    struct rp_err *err;
    RP_VEC(char) buffer;
    size_t at; /* where the next line begins in the buffer */
    bool ended;
    bool overlong; /* the rest of the line is skipped */
    /* state of the record whose payload is being read */
    bool open, keep, lines;
    char want[RP_MD5_TEXT];
    struct rp_md5 md5;
    RP_VEC(char) payload;
};

/* ------------------------------------------------------------------ lines */

/* Reads the next line, without its end; *whole tells whether it has one. At the end of the log
 *line is NULL. */
static enum rp_code next_line(struct log_reader *r, struct rp_snip *line, bool *whole)
{
    size_t seen = 0;

    for (;;) {
        size_t n = r->buffer.n - r->at;
        const char *from = r->buffer.at + r->at;
        const char *nl = n > seen ? memchr(from + seen, '\n', n - seen) : NULL;

        if (nl || r->ended) {
            *line = (struct rp_snip){nl || n ? from : NULL, nl ? (size_t)(nl - from) : n};
            *whole = nl != NULL;
            r->at += line->n + (nl != NULL);
            if (!r->overlong || !line->at)
                return RP_OK;
            r->overlong = false;
            r->counts->too_long++;
            seen = 0;
            continue;
        }
        seen = n;

        /* Moves what is left of the buffer to its begin, and reads more behind it. */
        size_t got, left = r->buffer.n - r->at;
        if (left && r->at)
            memmove(r->buffer.at, r->buffer.at + r->at, left);
        r->buffer.n = left;
        r->at = 0;
        if (left > r->limits.token_bytes) { /* keep only the fact that it was there */
            r->overlong = true;
            r->buffer.n = 0;
        }
        RP_TRY(rp_vec_reserve(&r->buffer, BLOCK_BYTES, r->err));
        RP_TRY(rp_input_read(r->in, r->buffer.at + r->buffer.n, BLOCK_BYTES, &got, r->err));
        r->counts->bytes += got;
        r->buffer.n += got;
        r->ended = !got;

        if (r->overlong)
            seen = 0;
    }
}

/* ------------------------------------------------------------------ one record */

/* Finds where the JSON of a record begins, after "V1118 15:12:55.131000 17703 file.py:12] "; NULL
   if nowhere. */
static const char *json_of(struct rp_snip line, int64_t *pid)
{
    static const char pattern[] = "L0000 00:00:00.000000 ";
    const char *at = line.at, *end = line.at + line.n;

    if (line.n < sizeof pattern || !strchr("VIWECDF", *at))
        return NULL;
    for (size_t i = 1; i + 1 < sizeof pattern; i++)
        if (pattern[i] == '0' ? at[i] < '0' || at[i] > '9' : at[i] != pattern[i])
            return NULL;
    at += sizeof pattern - 1;
    *pid = 0;
    for (; at < end && *at >= '0' && *at <= '9'; at++)
        *pid = *pid > INT64_MAX / 16 ? *pid : *pid * 10 + (*at - '0');
    at = memmem(at, (size_t)(end - at), "] {", 3);
    return at ? at + 2 : NULL;
}

bool rp_torch_begins(const char *text, size_t n)
{
    struct rp_snip rest = {text, n}, line;
    int64_t pid;

    while (rp_snip_line(&rest, &line)) {
        const char *json = json_of(line, &pid);
        if (json && json + 2 < line.at + line.n && json[1] == '"')
            return true;
    }
    return false;
}

static int64_t id_of(struct rp_snip value)
{
    int64_t id;

    return rp_snip_int(value, &id) && id >= 0 ? id : RP_TORCH_NO_ID;
}

/* Reads a key that says something about a record besides its kind; false if it is another key. */
static bool read_context(struct rp_torch_record *out, struct rp_snip key, struct rp_snip value)
{
    if (rp_snip_is(key, "frame_id"))
        out->frame = id_of(value);
    else if (rp_snip_is(key, "frame_compile_id"))
        out->compile = id_of(value);
    else if (rp_snip_is(key, "attempt"))
        out->attempt = id_of(value);
    else if (rp_snip_is(key, "rank"))
        out->rank = id_of(value);
    else if (rp_snip_is(key, "compiled_autograd_id"))
        out->autograd = id_of(value);
    else if (rp_snip_is(key, "has_payload"))
        out->md5 = value.n == RP_MD5_TEXT + 1 ? (struct rp_snip){value.at + 1, RP_MD5_TEXT - 1}
                                              : (struct rp_snip){"?", 1};
    else
        return rp_snip_is(key, "subgraph_name") || rp_snip_is(key, "stack");
    return true;
}

/* Returns false if the line is not a record. */
static bool parse_record(struct rp_snip line, struct rp_torch_record *out)
{
    const char *json = json_of(line, &out->pid);
    struct rp_snip_walk walk;
    struct rp_snip key, value;

    if (!json || !rp_snip_object((struct rp_snip){json, (size_t)(line.at + line.n - json)}, &walk))
        return false;
    while (rp_snip_next(&walk, &key, &value))
        if (!read_context(out, key, value)) {
            out->kind = key;
            out->value = value;
        }
    return rp_snip_whole(&walk) && out->kind.n;
}

static enum rp_code close_record(struct log_reader *r)
{
    char found[RP_MD5_TEXT];

    if (!r->open)
        return RP_OK;
    r->open = false;
    rp_md5_text(&r->md5, found);
    r->counts->bad_md5 += strcmp(found, r->want) != 0;
    return r->keep ? r->sink->payload(r->sink->user, (struct rp_snip){r->payload.at, r->payload.n},
                                      r->err)
                   : RP_OK;
}

static enum rp_code add_payload(struct log_reader *r, struct rp_snip line)
{
    if (r->lines)
        rp_md5_add(&r->md5, "\n", 1);
    rp_md5_add(&r->md5, line.at, line.n);
    if (r->keep && r->payload.n + line.n + 1 > r->limits.token_bytes) {
        r->keep = false;
        r->counts->too_long++;
    }
    if (r->keep) {
        RP_TRY(rp_vec_reserve(&r->payload, line.n + 1, r->err));
        if (r->lines)
            r->payload.at[r->payload.n++] = '\n';
        memcpy(r->payload.at + r->payload.n, line.at, line.n);
        r->payload.n += line.n;
    }
    r->lines = true;
    return RP_OK;
}

static enum rp_code read_line(struct log_reader *r, struct rp_snip line, bool whole)
{
    struct rp_torch_record record = {.rank = RP_TORCH_NO_ID,
                                     .frame = RP_TORCH_NO_ID,
                                     .compile = RP_TORCH_NO_ID,
                                     .attempt = RP_TORCH_NO_ID,
                                     .autograd = RP_TORCH_NO_ID,
                                     .number = r->counts->records};

    if (line.n && *line.at == '\t' && r->open)
        return add_payload(r, (struct rp_snip){line.at + 1, line.n - 1});
    if (!parse_record(line, &record)) {
        r->counts->cut = r->counts->cut || !whole;
        r->counts->bad_lines += line.n && whole;
        return RP_OK; /* text of another program between two lines of a payload does not end it */
    }
    RP_TRY(close_record(r));
    r->counts->records++;
    r->keep = false;
    r->open = record.md5.n > 0;
    r->lines = false;
    if (r->open) {
        memset(r->want, 0, sizeof r->want);
        memcpy(r->want, record.md5.at, record.md5.n);
        rp_md5_begin(&r->md5);
        r->payload.n = 0;
        RP_TRY(rp_vec_reserve(&r->payload, 1, r->err));
    }
    RP_TRY(r->sink->record(r->sink->user, &record, &r->keep, r->err));
    return RP_OK;
}

static enum rp_code read_log(struct log_reader *r)
{
    for (;;) {
        struct rp_snip line;
        bool whole;

        RP_TRY(next_line(r, &line, &whole));
        if (!line.at)
            break;
        RP_TRY(read_line(r, line, whole));
    }
    return close_record(r);
}

enum rp_code rp_torch_records(struct rp_input *in, const struct rp_limits *limits,
                              const struct rp_torch_sink *sink, struct rp_torch_counts *counts,
                              struct rp_err *err)
{
    struct log_reader r = {.in = in,
                           .limits = limits ? *limits : RP_LIMITS_DEFAULT,
                           .sink = sink,
                           .counts = counts,
                           .err = err};

    *counts = (struct rp_torch_counts){0};
    enum rp_code code = rp_vec_reserve(&r.buffer, BLOCK_BYTES, err);
    if (code == RP_OK)
        code = read_log(&r);
    counts->cut = counts->cut || rp_input_truncated(in);
    rp_vec_release(&r.buffer);
    rp_vec_release(&r.payload);
    return code;
}
