/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `scrub` writes traces without secrets (trace/secrets.h). Every text of a trace
 * is cleaned once; times, numbers, ids and the structure stay, so answers stay. With --names, names
 * become hashes, which are the same in all files; well-known names (calls of runtimes, kernels of
 * collectives, copies) stay, because they tell what an event is.
 */
#include "convert/scrub.h"
#include "base/decides.h"
#include "base/hash.h"
#include "base/order.h"
#include "base/text.h"
#include "formats/formats.h"
#include "formats/torch_trace/records.h"
#include "io/escaped.h"
#include "trace/copy.h"
#include "trace/merged.h"
#include "trace/meta.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_LEFT 1000
RP_LIMIT(MOST_LEFT, "places of a file", "--check lists no more of them");
#define MOST_SEARCHED (UINT64_C(16) << 30)
RP_LIMIT(MOST_SEARCHED, "bytes",
         "--check searches for places in a file so long, seconds; the others have no line");

#define SHOWN 40
RP_FACT(SHOWN, "bytes before a place", "half a line of a terminal: enough to recognise it");

/* ------------------------------------------------------------------ the result */

struct removed_row {
    const char *kind, *what;
    int64_t count;
};

struct scrub_root {
    size_t nwritten, nremoved, nleft;
    struct rp_written *written;
    struct removed_row *removed;
    struct rp_left *left;
    const char *summary;
};

static const struct rp_field removed_fields[] = {
    RP_FIELD(struct removed_row, kind, STR, NONE, "kind", "kind of what was removed", 0),
    RP_FIELD(struct removed_row, count, I64, COUNT, "places", "number of places in all texts", 0),
    RP_FIELD(struct removed_row, what, STR, NONE, "what", "what it is", RP_SHORTEN), RP_FIELD_END};
static const struct rp_type removed_type = {"removed", sizeof(struct removed_row), removed_fields,
                                            NULL};

static const struct rp_field left_fields[] = {
    RP_FIELD(struct rp_left, file, STR, NONE, "file", "the file", RP_SHORTEN),
    RP_FIELD(
        struct rp_left, line, I64, COUNT, "line",
        "line of the unpacked file, from 1; absent where the file is not text, or writes the text "
        "in another way",
        RP_NULLABLE),
    RP_FIELD(struct rp_left, offset, I64, COUNT, "offset", "byte of the unpacked file, from 0",
             RP_NULLABLE),
    RP_FIELD(struct rp_left, kind, STR, NONE, "kind", "kind of what is left", 0),
    RP_FIELD(struct rp_left, where, STR, NONE, "where", "which text holds it", RP_SHORTEN),
    RP_FIELD(struct rp_left, event, I64, COUNT, "event",
             "the first event with this text, by its number in the order of times", RP_NULLABLE),
    RP_FIELD(struct rp_left, byte, I64, COUNT, NULL, "byte of the text, from 0", RP_NULLABLE),
    RP_FIELD(struct rp_left, text, STR, NONE, "text", "the text, or its line, without it",
             RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type left_type = {"left", sizeof(struct rp_left), left_fields, NULL};

static const struct rp_field scrub_fields[] = {
    RP_FIELD(struct scrub_root, summary, STR, NONE, NULL, "text output only", RP_SCREEN),
    RP_FIELD_LIST(struct scrub_root, removed, &removed_type, "removed", "one row per kind", 0),
    RP_FIELD_LIST(struct scrub_root, left, &left_type, "left",
                  "with --check: one row per place, in different texts", 0),
    RP_FIELD_LIST(struct scrub_root, written, &rp_written_type, "written", "one row per file", 0),
    RP_FIELD_END};
static const struct rp_type scrub_type = {"scrub", sizeof(struct scrub_root), scrub_fields,
                                          "removed"};

/* ------------------------------------------------------------------ texts */

/* ---- what --check finds ---- */

void rp_scrub_open(struct rp_scrub_file *f, const struct rp_dataset *dataset, size_t index)
{
    const uint8_t *bytes;

    f->name = rp_sources_borrow(dataset->sources, index)->name;
    f->index = index;
    if (!f->scrub->check || rp_source_open(dataset->sources, index, &f->in, NULL) != RP_OK)
        return;
    if (rp_input_slurp(f->in, &bytes, &f->n, NULL) == RP_OK)
        f->bytes = (const char *)bytes;
    f->is_text = f->bytes && !memchr(f->bytes, 0, f->n < RP_SNIFF_BYTES ? f->n : RP_SNIFF_BYTES);
}

void rp_scrub_close(struct rp_scrub_file *f)
{
    pthread_mutex_lock(&f->scrub->lock);
    for (int k = 0; k < RP_SECRETS; k++)
        f->scrub->counts[k] += f->counts[k];
    pthread_mutex_unlock(&f->scrub->lock);
    if (f->in)
        rp_input_close(f->in);
}

/* Looks for a text in the file, as it is or as JSON has it; at: the byte of it that is meant. */
static void locate(struct rp_scrub_file *f, const char *text, size_t n, size_t at,
                   struct rp_left *left)
{
    const char *found = NULL;
    struct rp_emit json;

    if (!f->bytes || !n || f->searched > MOST_SEARCHED)
        return;
    bool within = (uintptr_t)text - (uintptr_t)f->bytes < f->n;
    found = within ? text : memmem(f->bytes, f->n, text, n);
    if (!found && rp_emit_open_memory(&json, NULL) == RP_OK) {
        rp_emit_escaped(&json, RP_IN_STRING, text, at);
        at = rp_emit_length(&json);
        rp_emit_reset(&json);
        rp_emit_escaped(&json, RP_IN_STRING, text, n);
        found = memmem(f->bytes, f->n, json.buffer, rp_emit_length(&json));
        rp_emit_abandon(&json);
    }
    f->searched += within ? 0 : found ? (size_t)(found - f->bytes) : 2 * f->n;
    if (!found)
        return;
    left->offset = found + at - f->bytes;
    if (!f->is_text)
        return;
    left->line = 1;
    for (const char *c = f->bytes; (c = memchr(c, '\n', (size_t)(found + at - c))); c++)
        left->line++;
}

static size_t line_end(const char *text, size_t n, size_t from)
{
    const char *end = memchr(text + from, '\n', n - from);

    return end ? (size_t)(end - text) : n;
}

enum rp_code rp_scrub_note(struct rp_scrub_file *f, const int64_t before[RP_SECRETS],
                           const char *where, int64_t event, const char *text, size_t n,
                           const struct rp_emit *clean, struct rp_err *err)
{
    struct rp_scrub *scrub = f->scrub;
    struct rp_left left = {
        .source = f->index, .event = event, .line = RP_ABSENT_I64, .offset = RP_ABSENT_I64};
    size_t now = rp_emit_length(clean), same = 0, begin;
    enum rp_code code = RP_OK;

    if (!scrub->check || !memcmp(before, f->counts, sizeof f->counts) || f->nleft >= MOST_LEFT)
        return RP_OK;
    while (same < n && same < now && text[same] == clean->buffer[same])
        same++;
    for (begin = same; begin && text[begin - 1] != '\n'; begin--)
        ;
    left.byte = n ? (int64_t)same : RP_ABSENT_I64;
    locate(f, text + begin, line_end(text, n, begin) - begin, same - begin, &left);
    pthread_mutex_lock(&scrub->lock);
    left.file = rp_arena_text(scrub->arena, f->name);
    left.where = rp_arena_text(scrub->arena, where);
    size_t end = line_end(clean->buffer, now, begin);
    begin = same - begin > SHOWN ? same - SHOWN : begin;
    while (begin < same && ((unsigned char)text[begin] & 0xc0) == 0x80) /* inside of a letter */
        begin++;
    end = end - same > (size_t)2 * SHOWN ? same + (size_t)2 * SHOWN : end;
    left.text = rp_arena_copy(scrub->arena, clean->buffer + begin, end - begin);
    for (int k = 0; k < RP_SECRETS && code == RP_OK; k++)
        if (f->counts[k] > before[k]) {
            left.kind = rp_secret_rows[k].name;
            left.number = f->nleft++;
            code = rp_vec_push(&scrub->left, left, err);
        }
    pthread_mutex_unlock(&scrub->lock);
    return code;
}

/* The texts of one trace. */
struct cleaning {
    struct rp_scrub_file file;
    const struct rp_trace *t;
    bool merged;
    uint8_t *known; /* by string: whether it is a name that stays */
    struct rp_secret_words words;
    struct rp_map done; /* from use, key and text to the text in the builder */
    struct rp_map
        ids; /* from ids of processes and threads without their secrets to how many there are */
    struct rp_emit clean;
};

/* Whether the value tells the kind of a thread, a device or a collective. */
static bool is_known_value(const char *key, const char *text)
{
    static const char *const keys[] = {"Input type", "Output type", "Collective name", "dtype",
                                       "stream",     "device",      "labels",          "kind"};
    static const char *const starts[] = {"GPU",     "CPU",        "stream", "Stream",
                                         "thread ", "/device:",   "/host:", "XLA",
                                         "Steps",   "TensorFlow", "python"};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strcmp(key, keys[i]))
            return true;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (!strncmp(text, starts[i], strlen(starts[i])))
            return true;
    return false;
}

/* Whether --names replaces it by a hash. Labels of ranks divide a merged trace, so they stay. */
static bool is_hashed(const struct cleaning *c, enum rp_text_use use, const char *key, rp_str s)
{
    if (!c->file.scrub->names || !rp_trace_str_len(c->t, s))
        return false;
    if (use == RP_TEXT_NAME)
        return !c->known[s];
    return use == RP_TEXT_VALUE && !is_known_value(key, rp_trace_str(c->t, s)) &&
           !(c->merged && !strcmp(key, "name"));
}

static void clean_text(struct cleaning *c, enum rp_text_use use, const char *key, rp_str s)
{
    const char *text = rp_trace_str(c->t, s);
    size_t n = rp_trace_str_len(c->t, s);
    char hash[32];

    rp_emit_reset(&c->clean);
    if (is_hashed(c, use, key, s)) {
        snprintf(hash, sizeof hash, "name_%012llx",
                 (unsigned long long)(rp_hash_bytes(text, n) & 0xffffffffffffULL));
        rp_emit_text(&c->clean, hash);
        c->file.counts[RP_SECRET_NAME]++;
    } else if (use == RP_TEXT_JSON) {
        rp_secrets_clean_json(&c->words, key, text, n, &c->clean, c->file.counts);
    } else {
        rp_secrets_clean(&c->words,
                         use == RP_TEXT_NAME || use == RP_TEXT_CATEGORY ? RP_SECRET_IN_NAME
                                                                        : RP_SECRET_IN_VALUE,
                         key, text, n, &c->clean, c->file.counts);
    }
}

/* Workers that differ by an address or a number remain different: "<address>", "<address> 2". */
static enum rp_code keep_apart(struct cleaning *c, rp_str s, struct rp_err *err)
{
    size_t n = rp_emit_length(&c->clean);
    uint64_t hash = rp_hash_bytes(c->clean.buffer, n);
    uint32_t before = rp_map_get(&c->ids, hash);
    char number[16];

    if (n == rp_trace_str_len(c->t, s) && !memcmp(c->clean.buffer, rp_trace_str(c->t, s), n))
        return RP_OK;
    before = before == RP_MAP_NONE ? 0 : before;
    if (before) {
        snprintf(number, sizeof number, " %u", before + 1);
        rp_emit_text(&c->clean, number);
    }
    return rp_map_put(&c->ids, hash, before + 1, err);
}

/* Returns the first event with the text; RP_NONE if it is elsewhere. */
static rp_event event_of(const struct rp_trace *t, enum rp_text_use use, rp_str key, rp_str s)
{
    for (rp_event e = 0; e < t->ev.n; e++) {
        uint32_t n = t->ev.shape[e] ? rp_args_count(&t->args, t->ev.shape[e], t->ev.arg_row[e]) : 0;

        if (use == RP_TEXT_NAME && t->ev.name[e] == s)
            return e;
        for (uint32_t i = 0; i < n && use != RP_TEXT_NAME; i++) {
            struct rp_arg arg = rp_args_at(&t->args, t->ev.shape[e], t->ev.arg_row[e], i);

            if (use == RP_TEXT_KEY
                    ? arg.key == s
                    : arg.key == key && (arg.type == RP_ARG_STR || arg.type == RP_ARG_RAW) &&
                          arg.v.s == s)
                return e;
        }
    }
    return RP_NONE;
}

static uint64_t place_of(uint64_t use, rp_str key, rp_str s)
{
    uint64_t words[2] = {use, (uint64_t)key << 32 | s};

    return rp_hash_bytes(words, sizeof words);
}

static enum rp_code scrub_text(void *user, struct rp_builder *b, enum rp_text_use use, rp_str key,
                               rp_str s, rp_str *out, struct rp_err *err)
{
    struct cleaning *c = user;
    uint64_t place = place_of(use, key, s);
    int64_t before[RP_SECRETS];

    *out = rp_map_get(&c->done, place);
    if (*out != RP_MAP_NONE)
        return RP_OK;
    memcpy(before, c->file.counts, sizeof before);
    clean_text(c, use, key == RP_NONE ? "" : rp_trace_str(c->t, key), s);
    char where[100];
    if (c->file.scrub->check && memcmp(before, c->file.counts, sizeof c->file.counts) != 0) {
        rp_event e = event_of(c->t, use, key, s);

        /* Names the place of the text for the report. */
        bool event = e != RP_NONE;
        const char *name = key == RP_NONE ? "" : rp_trace_str(c->t, key);
        const char *const kinds[] = {
            [RP_TEXT_NAME] = event ? "name of the event" : "name of an arrow or a frame",
            [RP_TEXT_CATEGORY] = "category, device or format",
            [RP_TEXT_KEY] = event ? "key of an argument" : "key of metadata",
            [RP_TEXT_ID] = "id of a process or thread"};
        if (use != RP_TEXT_VALUE && use != RP_TEXT_JSON)
            snprintf(where, 100, "%s", kinds[use]);
        else if (*name)
            snprintf(where, 100, "%s '%.70s'", event ? "argument" : "metadata", name);
        else
            snprintf(where, 100, "value of a frame or a warning");
        RP_TRY(rp_scrub_note(&c->file, before, where, e == RP_NONE ? RP_ABSENT_I64 : (int64_t)e,
                             rp_trace_str(c->t, s), rp_trace_str_len(c->t, s), &c->clean, err));
    }
    if (use == RP_TEXT_ID)
        RP_TRY(keep_apart(c, s, err));
    RP_TRY(rp_builder_intern(b, c->clean.buffer, rp_emit_length(&c->clean), out, err));
    return rp_map_put(&c->done, place, *out, err);
}

/* ------------------------------------------------------------------ one trace */

/* Visits each pair of key and value once. */
static enum rp_code learn_args(struct cleaning *c, rp_event e, struct rp_err *err)
{
    const struct rp_trace *t = c->t;
    uint32_t n = t->ev.shape[e] ? rp_args_count(&t->args, t->ev.shape[e], t->ev.arg_row[e]) : 0;

    for (uint32_t i = 0; i < n; i++) {
        struct rp_arg arg = rp_args_at(&t->args, t->ev.shape[e], t->ev.arg_row[e], i);
        size_t before = c->done.n;
        uint32_t seen;

        if (arg.type != RP_ARG_STR && arg.type != RP_ARG_RAW)
            continue;
        RP_TRY(rp_map_intern(&c->done, place_of(arg.type, arg.key, arg.v.s), 0, &seen, err));
        if (c->done.n != before)
            RP_TRY(rp_secrets_learn(&c->words, rp_trace_str(t, arg.key), rp_trace_str(t, arg.v.s),
                                    rp_trace_str_len(t, arg.v.s), arg.type == RP_ARG_RAW, err));
    }
    return RP_OK;
}

/* Names of known interfaces stay, and so does everything that tells what an event is. */
static bool is_known_kind(uint8_t kind)
{
    return kind == RP_KIND_RUNTIME || kind == RP_KIND_MEMCPY || kind == RP_KIND_MEMSET ||
           kind == RP_KIND_SYNC || kind == RP_KIND_METADATA || kind == RP_KIND_COUNTER;
}

static enum rp_code copy_clean(struct cleaning *c, const struct rp_limits *limits,
                               struct rp_trace **out, struct rp_err *err)
{
    struct rp_copy how = {.text = scrub_text, .text_user = c};
    struct rp_cut_record record = {.n = c->t->nsteps,
                                   .begin_ns = c->t->totals.span_begin_ns,
                                   .previous_ns = rp_cut_previous_end(c->t),
                                   .nameless = true};
    RP_SCOPED(rp_arena_release) struct rp_arena arena = RP_ARENA_INIT;

    /* Collects hosts and users that any text names, and the names that stay. */
    const struct rp_trace *t = c->t;
    for (uint32_t i = 0; i < t->nmeta; i++)
        RP_TRY(rp_secrets_learn(&c->words, rp_trace_str(t, t->meta[i].key),
                                rp_trace_str(t, t->meta[i].value),
                                rp_trace_str_len(t, t->meta[i].value), true, err));
    for (uint32_t i = 0; i < t->str.n; i++) {
        c->known[i] = t->str.name_class[i] == RP_NAME_COMM;
        RP_TRY(rp_secrets_learn(&c->words, "", rp_trace_str(t, i), rp_trace_str_len(t, i), false,
                                err));
    }
    for (uint32_t i = 0; i < t->ev.n; i++) {
        c->known[t->ev.name[i]] |= is_known_kind(t->ev.kind[i]);
        RP_TRY(learn_args(c, i, err));
    }
    rp_map_release(&c->done);
    rp_map_init(&c->done);
    /* the marks of steps then have another name */
    if (c->file.scrub->names && !c->merged && c->t->nsteps) {
        how.cut = rp_cut_describe(c->t, &record, &arena, err);
        RP_TRY(rp_err_need(how.cut, err, "removing secrets"));
    }
    return rp_trace_copy(c->t, &how, limits, out, err);
}

enum rp_code rp_scrub_make(struct rp_scrub *scrub, const struct rp_loaded *loaded,
                           const struct rp_trace *t, struct rp_trace **out, struct rp_err *err)
{
    uint32_t unread = loaded->import ? loaded->import->unread : 0;
    struct cleaning c = {.file = {.scrub = scrub},
                         .t = t,
                         .merged = rp_trace_meta(t, RP_MERGED_KEY) != NULL,
                         .known = calloc((size_t)t->str.n + 1, 1),
                         .words = {.arena = RP_ARENA_INIT}};
    int64_t before[RP_SECRETS];
    enum rp_code code =
        c.known ? rp_emit_open_memory(&c.clean, err) : rp_err_nomem(err, "removing secrets");

    rp_scrub_open(&c.file, loaded->dataset, loaded->index);
    if (code == RP_OK)
        code = copy_clean(&c, &loaded->dataset->limits, out, err);
    memcpy(before, c.file.counts, sizeof before);
    for (int k = 0; k < RP_SECRETS; k++)
        c.file.counts[k] += unread >> k & 1;
    if (code == RP_OK) {
        rp_emit_reset(&c.clean);
        code = rp_scrub_note(&c.file, before, "the file, beside the trace", RP_ABSENT_I64, "", 0,
                             &c.clean, err);
    }
    rp_scrub_close(&c.file);
    rp_emit_abandon(&c.clean);
    rp_map_release(&c.done);
    rp_map_release(&c.ids);
    rp_secret_words_release(&c.words);
    free(c.known);
    return code;
}

/* ------------------------------------------------------------------ the question */

static enum rp_code list_removed(const struct rp_scrub *scrub, struct rp_result *result,
                                 struct rp_err *err)
{
    struct scrub_root *root = result->root;

    root->removed = RP_ARENA_NEW(&result->arena, struct removed_row, RP_SECRETS);
    for (int k = 0; root->removed && k < RP_SECRETS; k++)
        if (scrub->counts[k])
            root->removed[root->nremoved++] = (struct removed_row){
                rp_secret_rows[k].name, rp_secret_rows[k].doc, scrub->counts[k]};
    if (!root->nremoved)
        root->summary = "nothing was found that had to be removed";
    return rp_arena_check(&result->arena, "listing what was removed", err);
}

/* ------------------------------------------------------------------ --check */

/* NULL: what the file is, is not known. */
static const struct rp_format *format_of(const struct rp_dataset *dataset, size_t i)
{
    const struct rp_format *format = NULL;
    struct rp_input *in;

    if (rp_source_open(dataset->sources, i, &in, NULL) == RP_OK) {
        if (rp_format_sniff(in, &format, NULL) != RP_OK)
            format = NULL;
        rp_source_return(dataset->sources, i, in);
    }
    return format;
}

static enum rp_code check_trace(void *user, const struct rp_loaded *loaded, struct rp_err *err)
{
    struct rp_trace *clean = NULL;

    RP_TRY(rp_trace_require(loaded->trace, RP_NEED_ALL, err));
    RP_TRY(rp_scrub_make(user, loaded, loaded->trace, &clean, err));
    rp_trace_free(clean);
    return RP_OK;
}

struct check {
    struct rp_scrub *scrub;
    const struct rp_dataset *dataset;
};

static enum rp_code check_program(void *user, const struct rp_loaded_program *loaded,
                                  struct rp_err *err)
{
    const struct check *check = user;

    return rp_scrub_program(check->scrub, loaded, check->dataset, err);
}

RP_ORDER(by_source, struct rp_left, RP_UP(source), RP_UP(number))

static enum rp_code list_left(struct rp_scrub *scrub, struct rp_result *result, struct rp_err *err)
{
    struct scrub_root *root = result->root;

    root->left = RP_ARENA_NEW(&result->arena, struct rp_left, scrub->left.n + 1);
    RP_TRY(rp_err_need(root->left, err, "listing what is left"));
    rp_sort(scrub->left.at, scrub->left.n, sizeof *scrub->left.at, by_source);
    if (scrub->left.n)
        memcpy(root->left, scrub->left.at, scrub->left.n * sizeof *root->left);
    root->nleft = scrub->left.n;
    if (!root->nleft)
        root->summary = "nothing was found that has to be removed";
    result->answer = root->nleft ? RP_ANSWER_NO : 0;
    return rp_arena_check(&result->arena, "listing what is left", err);
}

static enum rp_code scrub_check(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                const struct rp_settings *settings, struct rp_scrub *scrub,
                                struct rp_result *result, struct rp_err *err)
{
    struct check check = {scrub, dataset};
    size_t kinds[2] = {0}; /* traces, programs */

    if (scrub->names || rp_settings_has(settings, "output"))
        return rp_err_set(err, RP_USAGE, "--check writes nothing: it takes no --output or --names");
    for (size_t i = 0; i < rp_dataset_count(dataset); i++) {
        const struct rp_format *format = format_of(dataset, i);

        kinds[format && format->kind == RP_FORMAT_KIND_PROGRAM] += format != NULL;
    }
    if (kinds[0] || !kinds[1])
        RP_TRY(rp_each_trace(ctx, dataset, check_trace, scrub, err));
    if (kinds[1])
        RP_TRY(rp_each_program(ctx, dataset, check_program, &check, err));
    return list_left(scrub, result, err);
}

/* ------------------------------------------------------------------ logs of torch.compile */

static bool is_log(const struct rp_dataset *dataset, size_t i)
{
    struct rp_input *in;
    const uint8_t *head;
    bool is = false;
    size_t n;

    if (rp_source_open(dataset->sources, i, &in, NULL) != RP_OK)
        return false;
    if (rp_input_peek(in, RP_SNIFF_BYTES, &head, &n, NULL) == RP_OK)
        is = rp_torch_begins((const char *)head, n);
    rp_source_return(dataset->sources, i, in);
    return is;
}

/* Returns the name of the log in its folder, uncompressed, which tells the rank. Several folders
   may have logs of the same name. */
static const char *log_in_folder(const struct rp_dataset *dataset, size_t i, const char *folder,
                                 struct rp_arena *arena)
{
    const char *name = rp_text_file(rp_sources_borrow(dataset->sources, i)->name);
    const char *log = strstr(name, ".log");
    int n = log ? (int)(log - name) : (int)strcspn(name, ".");
    bool taken = false;

    for (size_t k = 0; k < i && !taken; k++)
        taken = !strncmp(rp_text_file(rp_sources_borrow(dataset->sources, k)->name), name,
                         (size_t)n + 1);
    return taken ? rp_arena_textf(arena, "%s/%.*s.%zu.log", folder, n, name, i)
                 : rp_arena_textf(arena, "%s/%.*s.log", folder, n, name);
}

/* If `to` is NULL, the log is only checked. */
static enum rp_code scrub_log(const struct rp_dataset *dataset, size_t i, const char *output,
                              struct rp_scrub *scrub, struct rp_err *err)
{
    struct rp_input *in;
    struct rp_out *to = NULL;

    if (output && rp_is_same_file(rp_sources_borrow(dataset->sources, i)->path, output))
        return rp_err_set(err, RP_USAGE, "'%s' is both input and output", output);
    RP_TRY(rp_source_open(dataset->sources, i, &in, err));
    enum rp_code code = output ? rp_out_open(output, &to, err) : RP_OK;
    struct rp_scrub_file file = {.scrub = scrub};
    rp_scrub_open(&file, dataset, i);
    if (code == RP_OK)
        code = rp_scrub_log(in, to, &file, err);
    rp_scrub_close(&file);
    rp_input_close(in);
    if (code == RP_OK && to)
        return rp_out_close(to, err);
    rp_out_abandon(to);
    return code;
}

/* A log becomes a file, and a folder of logs a folder. */
static enum rp_code scrub_logs(const struct rp_dataset *dataset, const struct rp_settings *settings,
                               struct rp_scrub *scrub, struct rp_result *result, struct rp_err *err)
{
    const char *output = rp_settings_text(settings, "output");
    size_t n = rp_dataset_count(dataset);

    if (!output == !scrub->check || scrub->names || rp_settings_has(settings, "to"))
        return rp_err_set(err, RP_USAGE,
                          "logs of torch.compile are written with '--output', or checked with "
                          "'--check'");
    bool made = false;
    enum rp_code code = RP_OK;
    if (n > 1 && output)
        RP_TRY(rp_convert_folder(output, n, &made, err));
    for (size_t i = 0; code == RP_OK && i < n; i++)
        if (is_log(dataset, i))
            code = scrub_log(dataset, i,
                             n > 1 && output ? log_in_folder(dataset, i, output, &result->arena)
                                             : output,
                             scrub, err);
    if (code != RP_OK && made)
        rmdir(output); /* only if nothing was written into it */
    RP_TRY(code);
    return scrub->check ? list_left(scrub, result, err) : list_removed(scrub, result, err);
}

/* Whether logs are the only readable inputs: beside traces they are left out. */
static bool are_logs(const struct rp_dataset *dataset)
{
    size_t n = rp_dataset_count(dataset), logs = 0;

    for (size_t i = 0; i < n; i++) {
        bool is = is_log(dataset, i);

        if (!is && (!rp_sources_borrow(dataset->sources, i)->found || format_of(dataset, i)))
            return false;
        logs += is;
    }
    return logs > 0;
}

static enum rp_code scrub_run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                              const struct rp_settings *settings, struct rp_result *result,
                              struct rp_err *err)
{
    struct rp_scrub scrub = {.names = rp_settings_flag(settings, "names"),
                             .check = rp_settings_flag(settings, "check"),
                             .arena = &result->arena};
    struct scrub_root *root = result->root;
    struct rp_written_list list = {0};
    bool logs = are_logs(dataset);

    pthread_mutex_init(&scrub.lock, NULL);
    enum rp_code code = logs ? scrub_logs(dataset, settings, &scrub, result, err)
                        : scrub.check
                            ? scrub_check(ctx, dataset, settings, &scrub, result, err)
                            : rp_convert_write(ctx, dataset, settings, &scrub, result, &list, err);
    pthread_mutex_destroy(&scrub.lock);
    rp_vec_release(&scrub.left);
    RP_TRY(code);
    if (scrub.check || logs)
        return RP_OK;
    root->written = list.written;
    root->nwritten = list.nwritten;
    return list_removed(&scrub, result, err);
}

static const struct rp_option scrub_options[] = {
    {"output", 'o', RP_OPT_PATH, "FILE", NULL,
     "file to write (a folder for several inputs); '-': standard output", 0},
    {"to", 0, RP_OPT_CHOICE, RP_TRACE_FORMATS "|" RP_PROGRAM_FORMATS, NULL,
     "format (default: by the ending of FILE)", 0},
    RP_ARROW_OPTION,
    {"names", 0, RP_OPT_FLAG, NULL, NULL,
     "also replace names of events, threads and arguments by hashes", 0},
    {"check", 0, RP_OPT_FLAG, NULL, NULL,
     "write nothing: list what would be removed and where; exit with 1 if there is anything", 0},
    RP_OPTION_END};

const struct rp_question_row rp_ask_scrub = {
    .question = {.name = "scrub",
                 .group = "traces",
                 .summary = "write traces and programs without secrets, to share them",
                 .details =
                     "Removes environment variables, tokens and passwords, names of hosts and "
                     "users, folders of paths, addresses and captured output, and says how much "
                     "of each. Times, numbers, and names of kernels and operators stay, so every "
                     "answer about times stays the same. Of programs, names, scopes, source files "
                     "and texts of attributes are examined.",
                 .examples = "reprise scrub run/ --to json -o shared/	every rank of a run\n"
                             "reprise scrub --check shared.json.gz	what is left in it\n"
                             "reprise scrub step.hlo.pb -o shared.hlo.pb	a program\n"
                             "reprise scrub trace.json.gz --names -o trace.rpt	names, too\n",
                 .accepts = RP_ACCEPTS_TRACES | RP_ACCEPTS_PROGRAMS,
                 .options = scrub_options,
                 .type = &scrub_type},
    .run = scrub_run};
