/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `scrub`: writes traces without what should not be shared (trace/secrets.h). Every text of a trace
 * is cleaned once; times, numbers, ids and the structure stay, so answers stay. With --names, names
 * become hashes, which are the same in all files; names that everybody knows (calls of runtimes,
 * kernels of collectives, copies) stay, because what an event is follows from them.
 */
#include "base/decides.h"
#include "base/hash.h"
#include "base/text.h"
#include "convert/convert.h"
#include "formats/formats.h"
#include "formats/torch_trace/records.h"
#include "trace/copy.h"
#include "trace/merged.h"
#include "trace/meta.h"
#include "trace/names.h"
#include "trace/secrets.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_LEFT 1000
RP_LIMIT(MOST_LEFT, "places of a trace", "--check lists no more of them; all are counted");

/* ------------------------------------------------------------------ the result */

struct removed_row {
    const char *kind, *what;
    int64_t count;
};

/* What --check found. */
struct left_row {
    const char *file, *kind, *where, *text;
    int64_t event, byte;
};

struct scrub_root {
    size_t nwritten, nremoved, nleft;
    struct rp_written *written;
    struct removed_row *removed;
    struct left_row *left;
    const char *summary;
};

static const struct rp_field removed_fields[] = {
    RP_FIELD(struct removed_row, kind, STR, NONE, "kind", "kind of what was removed", 0),
    RP_FIELD(struct removed_row, count, I64, COUNT, "places", "in so many places of all texts", 0),
    RP_FIELD(struct removed_row, what, STR, NONE, "what", "what it is", RP_SHORTEN), RP_FIELD_END};
static const struct rp_type removed_type = {"removed", sizeof(struct removed_row), removed_fields,
                                            NULL};

static const struct rp_field left_fields[] = {
    RP_FIELD(struct left_row, file, STR, NONE, "file", "the file", RP_SHORTEN),
    RP_FIELD(struct left_row, kind, STR, NONE, "kind", "kind of what is left", 0),
    RP_FIELD(struct left_row, where, STR, NONE, "where", "which text holds it", RP_SHORTEN),
    RP_FIELD(struct left_row, event, I64, COUNT, "event",
             "the first event with this text, by its number in the order of times", RP_NULLABLE),
    RP_FIELD(struct left_row, byte, I64, COUNT, "byte", "of the text, from 0", RP_NULLABLE),
    RP_FIELD(struct left_row, text, STR, NONE, "text", "the text without it", RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type left_type = {"left", sizeof(struct left_row), left_fields, NULL};

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

struct rp_scrub {
    bool names, check;
    struct rp_arena *arena; /* of the result: with --check */
    pthread_mutex_t lock;   /* for the next two, and the arena */
    int64_t counts[RP_SECRETS];
    RP_VEC(struct left_row) left;
};

/* A text that holds something; with --check. */
struct left_text {
    enum rp_text_use use;
    enum rp_secret kind;
    rp_str key, s;
    size_t byte;
};

/* The texts of one trace. */
struct cleaning {
    const struct rp_scrub *scrub;
    const struct rp_trace *t;
    bool merged;
    uint8_t *known; /* by string: a name that stays */
    struct rp_secret_words words;
    struct rp_map done; /* use, key and text -> the text in the builder */
    struct rp_map ids;  /* ids of processes and threads without their secrets -> how many */
    struct rp_emit clean;
    int64_t counts[RP_SECRETS];
    RP_VEC(struct left_text) left;
};

/* Values from which the kind of a thread, a device or a collective follows. */
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

/* Whether --names makes a hash of it. Labels of ranks divide a merged trace: they stay. */
static bool is_hashed(const struct cleaning *c, enum rp_text_use use, const char *key, rp_str s)
{
    if (!c->scrub->names || !rp_trace_str_len(c->t, s))
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
        c->counts[RP_SECRET_NAME]++;
    } else if (use == RP_TEXT_JSON) {
        rp_secrets_clean_json(&c->words, key, text, n, &c->clean, c->counts);
    } else {
        rp_secrets_clean(&c->words,
                         use == RP_TEXT_NAME || use == RP_TEXT_CATEGORY ? RP_SECRET_IN_NAME
                                                                        : RP_SECRET_IN_VALUE,
                         key, text, n, &c->clean, c->counts);
    }
}

/* Workers that differ by an address or a number stay different: "<address>", "<address> 2". */
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
    memcpy(before, c->counts, sizeof before);
    clean_text(c, use, key == RP_NONE ? "" : rp_trace_str(c->t, key), s);
    if (c->scrub->check) {
        /* Notes what was found in the text that is now in c->clean, one of each kind. */
        struct left_text left = {.use = use, .key = key, .s = s};
        const char *text = rp_trace_str(c->t, s);
        size_t n = rp_trace_str_len(c->t, s), now = rp_emit_length(&c->clean);
        while (left.byte < n && left.byte < now && text[left.byte] == c->clean.buffer[left.byte])
            left.byte++;
        for (int k = 0; k < RP_SECRETS; k++) {
            left.kind = (enum rp_secret)k;
            if (c->counts[k] > before[k] && c->left.n < MOST_LEFT)
                RP_TRY(rp_vec_push(&c->left, left, err));
        }
    }
    if (use == RP_TEXT_ID)
        RP_TRY(keep_apart(c, s, err));
    RP_TRY(rp_builder_intern(b, c->clean.buffer, rp_emit_length(&c->clean), out, err));
    return rp_map_put(&c->done, place, *out, err);
}

/* ------------------------------------------------------------------ one trace */

/* Each pair of key and value once. */
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

/* Names of known interfaces stay; so does everything that makes an event what it is. */
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

    /* Hosts and users that any text names, and the names that stay. */
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
    /* what marks the steps has another name then */
    if (c->scrub->names && !c->merged && c->t->nsteps) {
        how.cut = rp_cut_describe(c->t, &record, &arena, err);
        RP_TRY(rp_err_need(how.cut, err, "removing secrets"));
    }
    return rp_trace_copy(c->t, &how, limits, out, err);
}

/* ------------------------------------------------------------------ what is left */

/* The first event with the text; RP_NONE: it is elsewhere. */
static rp_event event_of(const struct rp_trace *t, const struct left_text *left)
{
    for (rp_event e = 0; e < t->ev.n; e++) {
        uint32_t n = t->ev.shape[e] ? rp_args_count(&t->args, t->ev.shape[e], t->ev.arg_row[e]) : 0;

        if (left->use == RP_TEXT_NAME && t->ev.name[e] == left->s)
            return e;
        for (uint32_t i = 0; i < n && left->use != RP_TEXT_NAME; i++) {
            struct rp_arg arg = rp_args_at(&t->args, t->ev.shape[e], t->ev.arg_row[e], i);

            if (left->use == RP_TEXT_KEY
                    ? arg.key == left->s
                    : arg.key == left->key && (arg.type == RP_ARG_STR || arg.type == RP_ARG_RAW) &&
                          arg.v.s == left->s)
                return e;
        }
    }
    return RP_NONE;
}

static const char *where_is(struct rp_arena *arena, const struct rp_trace *t,
                            const struct left_text *left, bool event)
{
    const char *key = left->key == RP_NONE ? "" : rp_trace_str(t, left->key);

    switch (left->use) {
    case RP_TEXT_NAME:
        return event ? "name of the event" : "name of an arrow or a frame";
    case RP_TEXT_CATEGORY:
        return "category, device or format";
    case RP_TEXT_KEY:
        return event ? "key of an argument" : "key of metadata";
    case RP_TEXT_ID:
        return "id of a process or thread";
    case RP_TEXT_VALUE:
    case RP_TEXT_JSON:
        break;
    }
    return *key ? rp_arena_printf(arena, "%s '%s'", event ? "argument" : "metadata", key)
                : "value of a frame or a warning";
}

static enum rp_code add_left(struct cleaning *c, struct rp_scrub *scrub, const char *file,
                             uint32_t unread, struct rp_err *err)
{
    for (size_t i = 0; i < c->left.n; i++) {
        const struct left_text *left = &c->left.at[i];
        const char *name = rp_secret_rows[left->kind].name;
        rp_event e = event_of(c->t, left);

        rp_emit_reset(&c->clean);
        clean_text(c, left->use, left->key == RP_NONE ? "" : rp_trace_str(c->t, left->key),
                   left->s);
        RP_TRY(rp_vec_push(
            &scrub->left,
            ((struct left_row){
                .file = file,
                .kind = name,
                .where = where_is(scrub->arena, c->t, left, e != RP_NONE),
                .text = rp_arena_copy(scrub->arena, c->clean.buffer, rp_emit_length(&c->clean)),
                .event = e == RP_NONE ? RP_ABSENT_I64 : (int64_t)e,
                .byte = (int64_t)left->byte}),
            err));
    }
    for (int k = 0; k < RP_SECRETS; k++)
        if (unread >> k & 1)
            RP_TRY(rp_vec_push(&scrub->left,
                               ((struct left_row){.file = file,
                                                  .kind = rp_secret_rows[k].name,
                                                  .where = "the file, beside the trace",
                                                  .event = RP_ABSENT_I64,
                                                  .byte = RP_ABSENT_I64}),
                               err));
    return RP_OK;
}

enum rp_code rp_scrub_make(struct rp_scrub *scrub, const struct rp_loaded *loaded,
                           const struct rp_trace *t, struct rp_trace **out, struct rp_err *err)
{
    uint32_t unread = loaded->import ? loaded->import->unread : 0;
    struct cleaning c = {.scrub = scrub,
                         .t = t,
                         .merged = rp_trace_meta(t, RP_MERGED_KEY) != NULL,
                         .known = calloc((size_t)t->str.n + 1, 1),
                         .words = {.arena = RP_ARENA_INIT}};
    enum rp_code code =
        c.known ? rp_emit_open_memory(&c.clean, err) : rp_err_nomem(err, "removing secrets");

    rp_map_init(&c.done);
    rp_map_init(&c.ids);
    if (code == RP_OK)
        code = copy_clean(&c, &loaded->dataset->limits, out, err);
    pthread_mutex_lock(&scrub->lock);
    for (int k = 0; k < RP_SECRETS; k++)
        scrub->counts[k] += c.counts[k] + (unread >> k & 1);
    if (code == RP_OK && scrub->check)
        code =
            add_left(&c, scrub, rp_arena_strdup(scrub->arena, loaded->source->name), unread, err);
    pthread_mutex_unlock(&scrub->lock);
    rp_vec_release(&c.left);
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

static enum rp_code check_trace(void *user, const struct rp_loaded *loaded, struct rp_err *err)
{
    struct rp_trace *clean = NULL;

    RP_TRY(rp_trace_require(loaded->trace, RP_NEED_ALL, err));
    RP_TRY(rp_scrub_make(user, loaded, loaded->trace, &clean, err));
    rp_trace_free(clean);
    return RP_OK;
}

static enum rp_code scrub_check(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                const struct rp_settings *settings, struct rp_scrub *scrub,
                                struct rp_result *result, struct rp_err *err)
{
    struct scrub_root *root = result->root;

    if (scrub->names || rp_settings_has(settings, "output"))
        return rp_err_set(err, RP_USAGE, "--check writes nothing: it takes no --output or --names");
    scrub->check = true;
    scrub->arena = &result->arena;
    RP_TRY(rp_each_trace(ctx, dataset, check_trace, scrub, err));
    root->left = RP_ARENA_NEW(&result->arena, struct left_row, scrub->left.n + 1);
    RP_TRY(rp_err_need(root->left, err, "listing what is left"));
    if (scrub->left.n)
        memcpy(root->left, scrub->left.at, scrub->left.n * sizeof *root->left);
    root->nleft = scrub->left.n;
    if (!root->nleft)
        root->summary = "nothing was found that has to be removed";
    result->answer = root->nleft ? RP_ANSWER_NO : 0;
    return rp_arena_check(&result->arena, "listing what is left", err);
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

/* The name of the log in the folder, uncompressed: it says the rank. In several folders there may
   be one of the same name. */
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

/* to NULL: it is only checked. */
static enum rp_code scrub_log(const struct rp_dataset *dataset, size_t i, const char *output,
                              struct rp_scrub *scrub, struct rp_err *err)
{
    struct rp_input *in;
    struct rp_out *to = NULL;

    if (output && rp_is_same_file(rp_sources_borrow(dataset->sources, i)->path, output))
        return rp_err_set(err, RP_USAGE, "'%s' is both input and output", output);
    RP_TRY(rp_source_open(dataset->sources, i, &in, err));
    enum rp_code code = output ? rp_out_open(output, &to, err) : RP_OK;
    if (code == RP_OK)
        code = rp_scrub_log(in, to, scrub->counts, err);
    rp_input_close(in);
    if (code == RP_OK && to)
        return rp_out_close(to, err);
    rp_out_abandon(to);
    return code;
}

/* A log becomes a file, a folder of them a folder. */
static enum rp_code scrub_logs(const struct rp_dataset *dataset, const struct rp_settings *settings,
                               struct rp_scrub *scrub, struct rp_result *result, struct rp_err *err)
{
    const char *output = rp_settings_text(settings, "output");
    bool check = rp_settings_flag(settings, "check");
    struct scrub_root *root = result->root;
    size_t n = rp_dataset_count(dataset);

    if (!output == !check || scrub->names || rp_settings_has(settings, "to"))
        return rp_err_set(err, RP_USAGE,
                          "logs of torch.compile are written with '--output', or checked with "
                          "'--check'");
    if (n > 1 && output)
        RP_TRY(rp_convert_folder(output, n, err));
    for (size_t i = 0; i < n; i++)
        if (is_log(dataset, i))
            RP_TRY(scrub_log(dataset, i,
                             n > 1 && output ? log_in_folder(dataset, i, output, &result->arena)
                                             : output,
                             scrub, err));
    RP_TRY(list_removed(scrub, result, err));
    result->answer = check && root->nremoved ? RP_ANSWER_NO : 0;
    return RP_OK;
}

static bool is_known(const struct rp_dataset *dataset, size_t i)
{
    const struct rp_format *format;
    struct rp_input *in;
    bool is = false;

    if (rp_source_open(dataset->sources, i, &in, NULL) == RP_OK) {
        is = rp_format_sniff(in, &format, NULL) == RP_OK;
        rp_source_return(dataset->sources, i, in);
    }
    return is;
}

/* Whether there are logs and nothing else that can be read: beside traces they are left out. */
static bool are_logs(const struct rp_dataset *dataset)
{
    size_t n = rp_dataset_count(dataset), logs = 0;

    for (size_t i = 0; i < n; i++) {
        bool is = is_log(dataset, i);

        if (!is && (!rp_sources_borrow(dataset->sources, i)->found || is_known(dataset, i)))
            return false;
        logs += is;
    }
    return logs > 0;
}

static enum rp_code scrub_run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                              const struct rp_settings *settings, struct rp_result *result,
                              struct rp_err *err)
{
    struct rp_scrub scrub = {.names = rp_settings_flag(settings, "names")};
    struct scrub_root *root = result->root;
    struct rp_written_list list = {0};

    if (are_logs(dataset))
        return scrub_logs(dataset, settings, &scrub, result, err);
    pthread_mutex_init(&scrub.lock, NULL);
    enum rp_code code = rp_settings_flag(settings, "check")
                            ? scrub_check(ctx, dataset, settings, &scrub, result, err)
                            : rp_convert_write(ctx, dataset, settings, &scrub, result, &list, err);
    pthread_mutex_destroy(&scrub.lock);
    rp_vec_release(&scrub.left);
    RP_TRY(code);
    if (scrub.check)
        return RP_OK;
    root->written = list.written;
    root->nwritten = list.nwritten;
    return list_removed(&scrub, result, err);
}

static const struct rp_option scrub_options[] = {
    {"output", 'o', RP_OPT_PATH, "FILE", NULL,
     "file to write (a folder for several inputs); '-': standard output", 0},
    {"to", 0, RP_OPT_CHOICE, RP_TRACE_FORMATS, NULL, "format (default: by the ending of FILE)", 0},
    RP_ARROW_OPTION,
    {"names", 0, RP_OPT_FLAG, NULL, NULL,
     "also replace names of events, threads and arguments by hashes", 0},
    {"check", 0, RP_OPT_FLAG, NULL, NULL,
     "write nothing: list what would be removed and where; exit with 1 if there is anything", 0},
    RP_OPTION_END};

const struct rp_question_row rp_ask_scrub = {
    .question = {.name = "scrub",
                 .group = "traces",
                 .summary = "write traces without secrets, to share them",
                 .details =
                     "Removes environment variables, tokens and passwords, names of hosts and "
                     "users, folders of paths, addresses and captured output, and says how much "
                     "of each. Times, numbers, and names of kernels and operators stay, so every "
                     "answer about times stays the same.",
                 .examples = "reprise scrub run/ --to json -o shared/	every rank of a run\n"
                             "reprise scrub --check shared.json.gz	what is left in it\n"
                             "reprise scrub trace.json.gz --names -o trace.rpt	names, too\n",
                 .accepts = RP_ACCEPTS_TRACES,
                 .options = scrub_options,
                 .type = &scrub_type},
    .run = scrub_run};
