/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The logs of BytePS (ps-lite), two kinds of text with a record per line, times in microseconds:
 *
 *   role=worker, id=9, ...                           what a worker or server sent and received
 *   1620000000000123 true true true 65536 9 8        time, start or end, push or pull, request or
 *                                                    response, key, sender, receiver
 *
 *   1620000000000456: start, 65536, SUM, 2           what a server did: copies and sums
 *   1620000000000789: stop, 65536, SUM, 2            time, key, operation and optionally its thread
 *
 * A start and an end of the same message become one event of an asynchronous chain; if the log has
 * only one of them it stays alone. Keys become names if there is a file key_dict.txt ("name: key
 * key") beside the log or in the parent folder; each of several keys is one part. ps-lite gives
 * servers the even numbers from 8 on and workers the odd ones from 9 on. Linear.
 */
#include "base/hash.h"
#include "formats/formats.h"
#include "trace/build/build.h"

#include <stdio.h>
#include <string.h>

#define TIME_MAX_US (INT64_MAX / 4000)
#define FIELDS      8

struct log_reader {
    struct rp_builder *b;
    const char *at, *end;
    const char *text; /* the content */
    uint64_t line;
    struct rp_map name_of; /* key -> string */
    bool of_server;
    uint64_t bad; /* lines that are not records */
    rp_str tensor_key, key_key, sender_key, receiver_key;
    uint16_t origin[2];  /* begin, end */
    uint32_t process;    /* of a server's log */
    struct rp_map named; /* processes that already have a name event */
    rp_str category;
    struct rp_err *err;
};

struct word {
    const char *at;
    size_t n;
};

/* ------------------------------------------------------------------ lines and words */

static bool next_line(struct log_reader *r, struct word *out)
{
    if (r->at == r->end)
        return false;
    const char *nl = memchr(r->at, '\n', (size_t)(r->end - r->at));
    *out = (struct word){r->at, (size_t)((nl ? nl : r->end) - r->at)};
    if (out->n && out->at[out->n - 1] == '\r')
        out->n--;
    r->at = nl ? nl + 1 : r->end;
    r->line++;
    return true;
}

/* Splits a line into its words at spaces and these separators; returns their number, at most
   FIELDS. */
static size_t split_line(struct word line, const char *separators, struct word *out)
{
    size_t i = 0, n = 0;

    while (i < line.n && n < FIELDS) {
        while (i < line.n && ((unsigned char)line.at[i] <= ' ' || strchr(separators, line.at[i])))
            i++;
        size_t from = i;
        while (i < line.n && (unsigned char)line.at[i] > ' ' && !strchr(separators, line.at[i]))
            i++;
        if (i > from)
            out[n++] = (struct word){line.at + from, i - from};
    }
    return n;
}

static bool word_is(struct word w, const char *text)
{
    return w.n == strlen(text) && !memcmp(w.at, text, w.n);
}

static bool parse_number(struct word w, int64_t max, int64_t *out)
{
    int64_t x = 0;

    for (size_t i = 0; i < w.n; i++) {
        if (w.at[i] < '0' || w.at[i] > '9' || x > (max - (w.at[i] - '0')) / 10)
            return false;
        x = x * 10 + (w.at[i] - '0');
    }
    *out = x;
    return w.n > 0;
}

static bool parse_bool(struct word w, bool *out)
{
    *out = word_is(w, "true") || word_is(w, "True") || word_is(w, "1");
    return *out || word_is(w, "false") || word_is(w, "False") || word_is(w, "0");
}

/* ------------------------------------------------------------------ names of keys */

static enum rp_code name_key(struct log_reader *r, struct word name, struct word key, size_t part,
                             bool parts)
{
    char text[300];
    int64_t number_of;
    rp_str id;

    if (!parse_number(key, INT64_MAX, &number_of))
        return RP_OK;
    int n = parts
                ? snprintf(text, sizeof text, "%.*s~PART%zu", (int)(name.n < 250 ? name.n : 250),
                           name.at, part)
                : snprintf(text, sizeof text, "%.*s", (int)(name.n < 250 ? name.n : 250), name.at);
    RP_TRY(rp_builder_intern(r->b, text, (size_t)n, &id, r->err));
    return rp_map_put(&r->name_of, (uint64_t)number_of, id, r->err);
}

/* The next word of a list; false at its end. */
static bool next_word(struct word *rest, struct word *out)
{
    size_t n = 0;

    while (rest->n && (unsigned char)*rest->at <= ' ') {
        rest->at++;
        rest->n--;
    }
    while (n < rest->n && (unsigned char)rest->at[n] > ' ')
        n++;
    *out = (struct word){rest->at, n};
    rest->at += n;
    rest->n -= n;
    return n > 0;
}

/* Reads lines of "name: key key ..."; a tensor with several keys has as many parts. */
static enum rp_code read_keys(struct log_reader *r, const char *text, size_t n)
{
    struct log_reader lines = {.at = text, .end = text + n};
    struct word line, rest, again, key;

    while (next_line(&lines, &line)) {
        const char *colon = memchr(line.at, ':', line.n);
        size_t part = 0, parts = 0;

        if (!colon)
            continue;
        rest = again = (struct word){colon + 1, (size_t)(line.at + line.n - colon - 1)};
        line.n = (size_t)(colon - line.at);
        while (next_word(&again, &key))
            parts++;
        while (next_word(&rest, &key))
            RP_TRY(name_key(r, line, key, part++, parts > 1));
    }
    return RP_OK;
}

/* Looks beside the log, then in the parent folder. A missing or unreadable file is ignored. */
static enum rp_code find_keys(struct log_reader *r, const char *log, const struct rp_limits *limits)
{
    static const char *const places[] = {"key_dict.txt", "../key_dict.txt"};
    const char *slash = strrchr(log, '/');

    for (size_t i = 0; i < 2; i++) {
        char path[4096];
        struct rp_input *in;
        const uint8_t *bytes;
        size_t n;

        snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash - log + 1) : 0, log, places[i]);
        if (rp_input_open(path, limits, &in, NULL) != RP_OK)
            continue;
        enum rp_code code = rp_input_slurp(in, &bytes, &n, NULL);
        if (code == RP_OK)
            code = read_keys(r, (const char *)bytes, n);
        else
            code = RP_OK;
        rp_input_close(in);
        return code;
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ events */

static enum rp_code tensor_of(struct log_reader *r, int64_t key, rp_str *out)
{
    uint32_t known = rp_map_get(&r->name_of, (uint64_t)key);
    char text[32];

    if (known != RP_MAP_NONE) {
        *out = known;
        return RP_OK;
    }
    int n = snprintf(text, sizeof text, "key %lld", (long long)key);
    return rp_builder_intern(r->b, text, (size_t)n, out, r->err);
}

/* "tensor.PUSH_REQ" */
static enum rp_code event_name(struct log_reader *r, rp_str tensor, const char *what, rp_str *out)
{
    char text[400];
    size_t len;
    const char *name = rp_builder_borrow_str(r->b, tensor, &len);
    int n = snprintf(text, sizeof text, "%.*s.%s", (int)(len < 320 ? len : 320), name, what);

    return rp_builder_intern(r->b, text, (size_t)n, out, r->err);
}

static enum rp_code name_process(struct log_reader *r, uint32_t process, rp_track track,
                                 const char *name)
{
    rp_str text;

    if (rp_map_get(&r->named, process) != RP_MAP_NONE)
        return RP_OK;
    RP_TRY(rp_map_put(&r->named, process, 1, r->err));
    RP_TRY(rp_builder_intern(r->b, name, strlen(name), &text, r->err));
    return rp_builder_label(r->b, track, "process_name", "name", text, r->err);
}

static void node_name(int64_t id, char *out, size_t cap)
{
    if (id >= 8)
        snprintf(out, cap, "%s_%lld", id % 2 ? "worker" : "server", (long long)(id - 8) / 2);
    else
        snprintf(out, cap, "node_%lld", (long long)id);
}

struct message {
    int64_t us, key, sender, receiver;
    bool starts, push, request;
};

static enum rp_code add_message(struct log_reader *r, const struct message *m)
{
    static const char *const kinds[] = {"PULL_RES", "PULL_REQ", "PUSH_RES", "PUSH_REQ"};
    int kind = (m->push ? 2 : 0) + (m->request ? 1 : 0);
    char from[40], to[40], name[100], id[100];
    struct rp_arg args[] = {{.key = r->tensor_key, .type = RP_ARG_STR},
                            {.key = r->key_key, .type = RP_ARG_I64, .v.i = m->key},
                            {.key = r->sender_key, .type = RP_ARG_I64, .v.i = m->sender},
                            {.key = r->receiver_key, .type = RP_ARG_I64, .v.i = m->receiver}};
    struct rp_raw raw = {.ts_ns = m->us * 1000,
                         .dur_ns = RP_OPEN_NS,
                         .origin = r->origin[m->starts ? 0 : 1],
                         .flags = RP_EVENT_ASYNC | RP_EVENT_ID_TEXT,
                         .has_link = true,
                         .args = args,
                         .nargs = 4};
    uint32_t process;
    rp_str link;

    snprintf(id, sizeof id, "%s %lld %lld-%lld", kinds[kind], (long long)m->key,
             (long long)m->sender, (long long)m->receiver);
    node_name(m->sender, from, sizeof from);
    node_name(m->receiver, to, sizeof to);
    snprintf(name, sizeof name, "%s -> %s", from, to);
    RP_TRY(rp_builder_process(r->b, m->sender * 1000000 + m->receiver, 0, &process, r->err));
    RP_TRY(rp_builder_track(r->b, process, kind, 0, true, &raw.track, r->err));
    RP_TRY(name_process(r, process, raw.track, name));
    RP_TRY(rp_builder_intern(r->b, id, strlen(id), &link, r->err));
    raw.link = link;
    RP_TRY(tensor_of(r, m->key, &args[0].v.s));
    RP_TRY(event_name(r, args[0].v.s, kinds[kind], &raw.name));
    RP_TRY(rp_builder_shape(r->b, args, 4, &raw.shape, r->err));
    return rp_builder_add(r->b, &raw, r->err);
}

static enum rp_code read_message(struct log_reader *r, struct word line)
{
    struct word w[FIELDS];
    struct message m;

    if (line.n >= 4 && !memcmp(line.at, "role", 4))
        return RP_OK;
    if (split_line(line, "", w) != 7 || !parse_number(w[0], TIME_MAX_US, &m.us) ||
        !parse_bool(w[1], &m.starts) || !parse_bool(w[2], &m.push) ||
        !parse_bool(w[3], &m.request) || !parse_number(w[4], INT64_MAX, &m.key) ||
        !parse_number(w[5], 1000000, &m.sender) || !parse_number(w[6], 1000000 - 1, &m.receiver)) {
        r->bad += line.n > 0;
        return RP_OK;
    }
    return add_message(r, &m);
}

static enum rp_code read_operation(struct log_reader *r, struct word line)
{
    struct word w[FIELDS];
    size_t n = split_line(line, ":,", w);
    struct rp_arg args[] = {{.key = r->tensor_key, .type = RP_ARG_STR},
                            {.key = r->key_key, .type = RP_ARG_I64}};
    struct rp_raw raw = {.dur_ns = RP_OPEN_NS, .args = args, .nargs = 2};
    int64_t us, thread = 0;
    char what[64];

    if (n < 4 || n > 5 || !parse_number(w[0], TIME_MAX_US, &us) ||
        (!word_is(w[1], "start") && !word_is(w[1], "stop")) ||
        !parse_number(w[2], INT64_MAX, &args[1].v.i) || w[3].n >= sizeof what ||
        (n == 5 && !parse_number(w[4], 1000000, &thread))) {
        r->bad += line.n > 0;
        return RP_OK;
    }
    memcpy(what, w[3].at, w[3].n);
    what[w[3].n] = '\0';
    raw.ts_ns = us * 1000;
    raw.origin = r->origin[word_is(w[1], "start") ? 0 : 1];
    RP_TRY(rp_builder_track(r->b, r->process, thread, 0, true, &raw.track, r->err));
    RP_TRY(name_process(r, r->process, raw.track, "BytePS server"));
    RP_TRY(tensor_of(r, args[1].v.i, &args[0].v.s));
    RP_TRY(event_name(r, args[0].v.s, what, &raw.name));
    RP_TRY(rp_builder_shape(r->b, args, 2, &raw.shape, r->err));
    return rp_builder_add(r->b, &raw, r->err);
}

/* ------------------------------------------------------------------ the file */

static bool is_operation(struct word line)
{
    struct word w[FIELDS];
    int64_t x;
    size_t n = split_line(line, ":,", w);

    return n >= 4 && n <= 5 && parse_number(w[0], TIME_MAX_US, &x) &&
           (word_is(w[1], "start") || word_is(w[1], "stop")) && parse_number(w[2], INT64_MAX, &x) &&
           memchr(line.at, ':', line.n) != NULL;
}

static enum rp_sniff sniff_log(const uint8_t *head, size_t n, const char *file)
{
    static const char *const roles[] = {"role=worker,", "role=server,", "role=scheduler,"};
    struct log_reader r = {.at = (const char *)head, .end = (const char *)head + n};
    struct word line;

    (void)file;
    if (!n || !next_line(&r, &line))
        return RP_SNIFF_NO;
    for (size_t i = 0; i < 3; i++)
        if (line.n > strlen(roles[i]) && !memcmp(line.at, roles[i], strlen(roles[i])))
            return RP_SNIFF_CERTAIN;
    return is_operation(line) ? RP_SNIFF_CERTAIN : RP_SNIFF_NO;
}

static enum rp_code prepare_reader(struct log_reader *r)
{
    struct rp_origin o = {.kind = RP_KIND_TRANSFER, .has_category = 1};
    struct rp_trace *t = rp_builder_borrow_trace(r->b);

    RP_TRY(rp_builder_intern(r->b, "byteps", 6, &r->category, r->err));
    RP_TRY(rp_builder_intern(r->b, "tensor", 6, &r->tensor_key, r->err));
    RP_TRY(rp_builder_intern(r->b, "key", 3, &r->key_key, r->err));
    RP_TRY(rp_builder_intern(r->b, "sender", 6, &r->sender_key, r->err));
    RP_TRY(rp_builder_intern(r->b, "receiver", 8, &r->receiver_key, r->err));
    o.category = r->category;
    o.kind = r->of_server ? RP_KIND_CPU_OP : RP_KIND_TRANSFER;
    o.phase = r->of_server ? 'B' : 'b';
    RP_TRY(rp_builder_origin(r->b, &o, &r->origin[0], r->err));
    o.phase = r->of_server ? 'E' : 'e';
    RP_TRY(rp_builder_origin(r->b, &o, &r->origin[1], r->err));
    if (r->of_server)
        RP_TRY(rp_builder_process(r->b, 0, 0, &r->process, r->err));
    t->rank = RP_NO_RANK;
    t->framework = r->category;
    return rp_builder_intern(r->b, "byteps-log", 10, &t->format, r->err);
}

static enum rp_code read_lines(struct log_reader *r, const struct rp_read_options *options)
{
    struct word line;

    while (next_line(r, &line)) {
        RP_TRY(r->of_server ? read_operation(r, line) : read_message(r, line));
        if (options && options->progress && r->line % 4096 == 0 &&
            !options->progress(options->progress_user, (uint64_t)(r->at - r->text),
                               (uint64_t)(r->end - r->text)))
            return rp_err_set(r->err, RP_CANCELLED, "stopped");
    }
    if (r->bad)
        RP_TRY(rp_builder_warn(r->b, r->err, "%llu lines are not records and were skipped",
                               (unsigned long long)r->bad));
    return rp_builder_count(r->b) ? RP_OK : rp_err_set(r->err, RP_FORMAT, "no record in the log");
}

static enum rp_code read_log(struct rp_input *in, const struct rp_read_options *options,
                             struct rp_import *to, struct rp_err *err)
{
    struct log_reader r = {.err = err};
    const struct rp_limits *limits = options ? options->limits : NULL;
    const uint8_t *bytes;
    struct word first = {0};
    size_t n;

    RP_TRY(rp_input_slurp(in, &bytes, &n, err));
    r.at = r.text = (const char *)bytes;
    r.end = r.text + n;
    next_line(&r, &first);
    r.of_server = is_operation(first);
    r.at = r.text;
    r.line = 0;
    enum rp_code code = rp_builder_new(limits, &r.b, err);
    if (code == RP_OK)
        code = find_keys(&r, rp_input_borrow_name(in), limits);
    if (code == RP_OK)
        code = prepare_reader(&r);
    if (code == RP_OK)
        code = read_lines(&r, options);
    rp_map_release(&r.name_of);
    rp_map_release(&r.named);
    to->content_bytes = n;
    if (code == RP_OK)
        return rp_builder_finish(r.b, &to->trace, err);
    rp_builder_free(r.b);
    return code;
}

const struct rp_format rp_format_byteps = {
    .name = "byteps-log",
    .summary = "log of a BytePS worker or server",
    .files = "*.log",
    .written_by = "BytePS",
    .kind = RP_FORMAT_KIND_TRACE,
    .sniff = sniff_log,
    .read = read_log,
};
