/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a digest: each trace is read once, and all questions make their parts from it. Files as
 * they stand (struct rp_rank_row, `files`) are read in a pass of their own, because merged traces
 * and windows of a process are divided and joined for ranks. Records are kept until all are there,
 * and written in the order of the inputs. What is sent to another process is first kept as if it
 * were joined here, so that only the bulk of those ranks is sent that may be chosen (bulk.h).
 */
#include "base/order.h"
#include "dataset/query.h"
#include "team/team.h"

#include <stdlib.h>
#include <string.h>

struct digesting {
    struct rp_digesting *d;
    struct rp_dataset dataset;     /* the dataset of a pass, which has a log of its own */
    struct rp_rank_query *queries; /* by question that was asked */
    rp_trace_job *keep;            /* the job for a rank that was read */
    bool files;                    /* the pass of files */
    bool beside;                   /* recordings of captures come now */
    pthread_mutex_t lock;
    RP_VEC(struct rp_digest_record) records;
    RP_VEC(struct rp_digest_run) runs; /* the first is that of the dataset */
    RP_VEC(struct rp_digest_unread) unread;
    struct rp_arena arena; /* of texts */
};

/* Whether a failure is an answer, because it says something about the trace. */
static bool is_answer(enum rp_code code)
{
    return code == RP_OK || code == RP_FORMAT || code == RP_UNSUPPORTED || code == RP_USAGE;
}

static enum rp_code write_answer(const struct digesting *g, size_t k,
                                 const struct rp_loaded *loaded,
                                 const struct rp_rank_traits *traits, struct rp_out *to,
                                 struct rp_err *err)
{
    struct rp_rank_part part = {
        .source = loaded->index, .in_source = loaded->part, .traits = *traits};
    struct rp_settings_reads reads = {0};
    struct rp_err failure = RP_ERR_INIT;
    enum rp_code code;

    part.path = rp_arena_text(&part.arena, loaded->source->name);
    failure.code = code = rp_query_make(&g->queries[k], loaded, &part, &reads, &failure);
    if (is_answer(code))
        code = rp_slot_write_answer(&part, &g->d->asked[k], &reads, &failure, to, err);
    else if (err)
        *err = failure;
    rp_arena_release(&part.arena);
    return code;
}

/* Finds what was noted about the trace; it is copied, since the log may grow meanwhile. */
static bool find_trust(const struct digesting *g, const struct rp_loaded *loaded,
                       struct rp_trust_trace *out)
{
    struct rp_trust_log *log = g->dataset.trust;

    pthread_mutex_lock(&log->lock);
    const struct rp_trust_trace *found = rp_trust_find(log, loaded->index, loaded->part);
    if (found)
        *out = *found;
    pthread_mutex_unlock(&log->lock);
    return found != NULL;
}

/* The answers are made first: one may note something about the trace. */
static enum rp_code write_record(const struct digesting *g, const struct rp_loaded *loaded,
                                 struct rp_out *answers, struct rp_out *to, struct rp_err *err)
{
    struct rp_rank_slot *slot = calloc(1, sizeof *slot);
    struct rp_trust_trace trust;
    enum rp_code code = rp_err_need(slot, err, "making a digest");
    size_t k, n;

    if (code == RP_OK)
        code = rp_trace_require(loaded->trace, RP_NEED_ARGS | RP_NEED_LINKS, err);
    if (code == RP_OK)
        code = rp_query_describe(loaded, !g->files, slot, err);
    for (k = 0; k < g->d->nasked && code == RP_OK; k++)
        if (g->d->asked[k].row->files == g->files)
            code = write_answer(g, k, loaded, &slot->part.traits, answers, err);
    if (code == RP_OK)
        code = rp_slot_write(slot, find_trust(g, loaded, &trust) ? &trust : NULL, to, err);
    if (code == RP_OK)
        code = rp_out_flush(answers, err);
    if (code == RP_OK) {
        const char *bytes = rp_out_borrow_memory(answers, &n);
        rp_out_write(to, bytes, n);
        code = rp_out_flush(to, err);
    }
    rp_slot_free(slot);
    return code;
}

static enum rp_code keep_record(struct digesting *g, struct rp_digest_record record,
                                const void *bytes, size_t n, struct rp_err *err)
{
    char *copy = malloc(n + 1);
    enum rp_code code = rp_err_need(copy, err, "making a digest");

    if (copy)
        memcpy(copy, bytes, n);
    record.bytes = copy;
    record.n = n;
    pthread_mutex_lock(&g->lock);
    if (code == RP_OK)
        code = rp_vec_push(&g->records, record, err);
    pthread_mutex_unlock(&g->lock);
    if (code != RP_OK)
        free(copy);
    return code;
}

static enum rp_code digest_rank(void *user, const struct rp_loaded *loaded, struct rp_err *err)
{
    struct digesting *g = user;
    struct rp_digest_record record = {
        .source = loaded->index, .in_source = loaded->part, .files = g->files, .beside = g->beside};
    struct rp_out *out = NULL, *answers = NULL;
    enum rp_code code = rp_out_open_memory(&out, err);
    size_t n;

    if (code == RP_OK)
        code = rp_out_open_memory(&answers, err);
    if (code == RP_OK)
        code = write_record(g, loaded, answers, out, err);
    if (code == RP_OK) {
        const char *bytes = rp_out_borrow_memory(out, &n);
        code = keep_record(g, record, bytes, n, err);
    }
    rp_out_abandon(answers);
    rp_out_abandon(out);
    return code;
}

/* ------------------------------------------------------------------ parts for another process */

static enum rp_code keep_slot(void *user, const struct rp_loaded *loaded, struct rp_err *err)
{
    struct digesting *g = user;
    struct rp_rank_slot *slot;

    RP_TRY(rp_query_add(&g->queries[0], &slot, err));
    slot->beside = g->beside;
    return rp_query_fill(&g->queries[0], loaded, !g->files, slot, err);
}

/* The receiver has the same settings. */
static enum rp_code write_slot(struct digesting *g, const struct rp_rank_slot *slot,
                               struct rp_out *to, struct rp_err *err)
{
    static const struct rp_settings_reads none;
    static const struct rp_err no_failure;
    const struct rp_rank_part *part = &slot->part;
    struct rp_digest_record record = {.source = part->source,
                                      .in_source = part->in_source,
                                      .files = g->files,
                                      .beside = slot->beside};
    size_t n;

    RP_TRY(rp_slot_write(slot, rp_trust_find(g->dataset.trust, part->source, part->in_source), to,
                         err));
    RP_TRY(rp_slot_write_answer(part, &g->d->asked[0], &none, &no_failure, to, err));
    RP_TRY(rp_out_flush(to, err));
    const char *bytes = rp_out_borrow_memory(to, &n);
    return keep_record(g, record, bytes, n, err);
}

/* ------------------------------------------------------------------ digests among the inputs */

/* Merges the run of a digest, which may have shards of a run that is already known. */
static enum rp_code merge_run(struct digesting *g, const struct rp_digest_run *run, size_t source,
                              uint64_t *out, struct rp_err *err)
{
    struct rp_digest_run copy = *run, *known = NULL;
    size_t i, n = run->nshards;

    for (i = 1; i < g->runs.n && !known; i++)
        if (!strcmp(g->runs.at[i].id, run->id) && g->runs.at[i].nparts == run->nparts)
            known = &g->runs.at[i];
    copy.shards = RP_ARENA_NEW(&g->arena, uint32_t, n + (known ? known->nshards : 0) + 1);
    RP_TRY(rp_err_need(copy.shards, err, "joining digests"));
    if (n)
        memcpy(copy.shards, run->shards, n * sizeof *copy.shards);
    if (known) {
        if (known->nshards)
            memcpy(copy.shards + n, known->shards, known->nshards * sizeof *copy.shards);
        known->shards = copy.shards;
        known->nshards += n;
        known->steps_named |= run->steps_named;
        *out = (uint64_t)(known - g->runs.at);
        return RP_OK;
    }
    copy.id = rp_arena_text(&g->arena, run->id);
    copy.given = rp_arena_text(&g->arena, run->given);
    copy.source = source + 1;
    *out = g->runs.n;
    return rp_vec_push(&g->runs, copy, err);
}

static enum rp_code copy_head(struct digesting *g, const struct rp_digest_head *head, size_t source,
                              uint64_t *runs, struct rp_err *err)
{
    for (size_t i = 0; i < head->nruns; i++)
        RP_TRY(merge_run(g, &head->runs[i], source, &runs[i], err));
    for (size_t i = 0; i < head->nunread; i++) {
        struct rp_digest_unread row = head->unread[i];

        row.run = runs[row.run];
        row.path = rp_arena_text(&g->arena, row.path);
        row.reason = rp_arena_text(&g->arena, row.reason);
        RP_TRY(rp_vec_push(&g->unread, row, err));
    }
    g->runs.at[0].ndigests++;
    return rp_arena_check(&g->arena, "joining digests", err);
}

static enum rp_code copy_digest(struct digesting *g, size_t source, struct rp_input *in,
                                struct rp_arena *arena, struct rp_err *err)
{
    struct rp_digest_reader reader;
    struct rp_digest_record record;
    const uint8_t *bytes;
    bool more = true;
    size_t n;

    RP_TRY(rp_input_slurp(in, &bytes, &n, err));
    RP_TRY(rp_digest_open(bytes, n, false, arena, &reader, err));
    uint64_t *runs = RP_ARENA_NEW(arena, uint64_t, reader.head.nruns + 1);
    RP_TRY(rp_err_need(runs, err, "joining digests"));
    pthread_mutex_lock(&g->lock);
    enum rp_code code = copy_head(g, &reader.head, source, runs, err);
    pthread_mutex_unlock(&g->lock);
    while (code == RP_OK && more) {
        code = rp_digest_next(&reader, &record, &more, err);
        if (code == RP_OK && more) {
            record.run = runs[record.run];
            code = keep_record(g, record, record.bytes, record.n, err);
        }
    }
    return code;
}

static enum rp_code take_digest(void *user, size_t source, struct rp_input *in, struct rp_err *err)
{
    struct digesting *g = user;
    struct rp_arena arena = RP_ARENA_INIT;
    enum rp_code code = RP_OK;

    if (!g->files || g->d->only_files) /* added once, whatever the number of passes */
        code =
            rp_digest_name(rp_input_borrow_name(in), copy_digest(g, source, in, &arena, err), err);
    rp_arena_release(&arena);
    rp_input_close(in);
    return code;
}

/* ------------------------------------------------------------------ all of it */

static enum rp_code read_all(struct digesting *g, struct rp_rank_reading *how,
                             struct rp_capture_files *captures, struct rp_err *err)
{
    if (!g->files)
        RP_TRY(rp_capture_files_find(captures, g->d->ctx, &g->dataset, err));
    for (size_t k = 0; k < g->d->nasked; k++) {
        g->queries[k].dataset = &g->dataset;
        g->queries[k].captures = *captures;
    }
    RP_TRY(rp_each_rank_read(g->d->ctx, &g->dataset, how, g->keep, g, err));
    if (!g->files) {
        /* Recordings of captures are ranks if there is nothing else, which only a reader of all
           shards can know. */
        const struct rp_dataset *dataset = &g->dataset;
        g->beside = true;
        for (size_t i = 0; captures->read && i < captures->n && !g->d->shard; i++) {
            const struct rp_read_source *r = &captures->read[i];
            struct rp_loaded loaded = {.source = rp_sources_borrow(dataset->sources, i),
                                       .trace = r->import.trace,
                                       .index = i,
                                       .dataset = dataset};
            if (!r->capture || !r->import.trace)
                continue;
            loaded.format = r->import.format->name;
            RP_TRY(g->keep(g, &loaded, err));
        }
        g->beside = false;
    }
    if (g->d->sent) {
        /* Writes what each question keeps of each rank. */
        enum rp_code code = RP_OK;
        for (size_t i = 0; i < g->queries[0].slots.n && code == RP_OK; i++) {
            struct rp_out *out = NULL;
            code = rp_out_open_memory(&out, err);
            if (code == RP_OK)
                code = write_slot(g, g->queries[0].slots.at[i], out, err);
            rp_out_abandon(out);
        }
        RP_TRY(code);
    }
    g->runs.at[0].ntraces = how->traces;
    g->runs.at[0].nsnapshots = how->snapshots;

    /* Lists the inputs that the log says were not read. */
    const struct rp_trust_log *log = g->dataset.trust;
    size_t i, n;
    const struct rp_hole *holes = rp_sources_borrow_holes(g->dataset.sources, &n);
    for (i = 0; i < log->unread.n; i++) {
        const struct rp_unread *u = &log->unread.at[i];
        struct rp_digest_unread row = {0, u->source, (uint32_t)u->why,
                                       rp_arena_text(&g->arena, u->path),
                                       rp_arena_text(&g->arena, u->reason)};
        RP_TRY(rp_vec_push(&g->unread, row, err));
    }
    for (i = 0; i < n && !g->d->sent; i++) {
        struct rp_digest_unread row = {0, 0, RP_UNREAD_HOLE,
                                       rp_arena_text(&g->arena, holes[i].path),
                                       rp_arena_text(&g->arena, holes[i].reason)};
        RP_TRY(rp_vec_push(&g->unread, row, err));
    }
    g->runs.at[0].steps_named = log->steps_named;
    return rp_arena_check(&g->arena, "making a digest", err);
}

static enum rp_code read_pass(struct digesting *g, bool files, struct rp_err *err)
{
    RP_SCOPED(rp_capture_files_release) struct rp_capture_files captures = {0};
    struct rp_rank_reading how = {.captures = files ? NULL : &captures,
                                  .shard = g->d->shard,
                                  .nshards = g->d->nshards ? g->d->nshards : 1,
                                  .next = g->d->dealt ? &g->d->board->next_source : NULL,
                                  .digest = take_digest};
    RP_SCOPED(rp_trust_log_release) struct rp_trust_log log = {0};
    size_t k, n = 0;

    for (k = 0; k < g->d->nasked; k++) {
        n += g->d->asked[k].row->files == files;
        how.memory = how.memory || g->d->asked[k].row->memory;
    }
    if (!n)
        return RP_OK;
    g->files = files;
    g->dataset = *g->d->dataset;
    g->dataset.trust = &log;
    rp_trust_log_init(&log);
    log.ranked = true; /* nobody judges files here */
    return read_all(g, &how, &captures, err);
}

RP_ORDER(by_unread, struct rp_digest_unread, RP_UP(run), RP_UP(source), RP_UP(why),
         rp_natural_compare(a->path, b->path))

static enum rp_code write_all(struct digesting *g, struct rp_digest_head *head, struct rp_out *to,
                              struct rp_err *err)
{
    uint32_t shard = (uint32_t)g->d->shard;
    size_t i, first = 0;

    if (g->d->nshards) {
        g->runs.at[0].nparts = g->d->nshards;
        g->runs.at[0].shards = &shard;
        g->runs.at[0].nshards = 1;
    }
    /* only digests among the inputs: the union of theirs */
    if (!g->d->sent && g->runs.n > 1 && g->runs.at[0].ndigests == g->runs.at[0].nsources)
        first = 1;
    for (i = 0; i < g->records.n; i++)
        g->records.at[i].run -= first;
    for (i = 0; i < g->unread.n; i++)
        g->unread.at[i].run -= first;
    for (i = first; i < g->runs.n && !g->d->sent; i++)
        g->runs.at[i].source = 0;

    /* Drop duplicates, since each of the two passes may have noted the same file. */
    size_t k, n = 0;
    rp_sort(g->unread.at, g->unread.n, sizeof *g->unread.at, by_unread);
    for (k = 0; k < g->unread.n; k++)
        if (!n || by_unread(&g->unread.at[n - 1], &g->unread.at[k]) != 0)
            g->unread.at[n++] = g->unread.at[k];
    g->unread.n = n;

    head->runs = g->runs.at + first;
    head->nruns = g->runs.n - first;
    head->unread = g->unread.at;
    head->nunread = g->unread.n;
    g->d->nranks = 0;
    for (i = 0; i < g->records.n; i++)
        g->d->nranks += !g->records.at[i].files && !g->records.at[i].beside;
    return rp_digest_write(head, g->records.at, g->records.n, to, g->d->sent ? NULL : g->d->id,
                           err);
}

static enum rp_code make_queries(struct digesting *g, struct rp_err *err)
{
    g->d->only_files = true;
    for (size_t k = 0; k < g->d->nasked; k++) {
        g->queries[k].row = g->d->asked[k].row;
        g->queries[k].settings = g->d->asked[k].settings;
        g->queries[k].run_of = g->d->run_of;
        g->d->only_files = g->d->only_files && g->queries[k].row->files;
        RP_TRY(rp_query_init(&g->queries[k], g->d->ctx, g->d->dataset, err));
        /* a file may be asked about single ranks, so it has all */
        g->queries[k].bulk_limited = g->queries[k].bulk_limited && g->d->sent;
        /* equal parts of two processes count once, so each counts its own */
        if (g->d->board && !g->queries[k].row->shares)
            g->queries[k].bulk_events = &g->d->board->bulk_events;
    }
    return RP_OK;
}

enum rp_code rp_digest_make(struct rp_digesting *d, struct rp_out *to, struct rp_err *err)
{
    struct digesting g = {.d = d,
                          .keep = d->sent ? keep_slot : digest_rank,
                          .queries = calloc(d->nasked + 1, sizeof *g.queries)};
    struct rp_digest_head head;
    struct rp_digest_run own;
    enum rp_code code = rp_err_need(g.queries, err, "making a digest");

    pthread_mutex_init(&g.lock, NULL);
    if (code == RP_OK)
        code = make_queries(&g, err);
    if (code == RP_OK)
        code = rp_digest_describe(d->dataset, d->sent, &g.arena, &head, &own, err);
    if (code == RP_OK)
        code = rp_vec_push(&g.runs, own, err);
    if (code == RP_OK)
        code = read_pass(&g, false, err);
    if (code == RP_OK)
        code = read_pass(&g, true, err);
    if (code == RP_OK)
        code = write_all(&g, &head, to, err);
    for (size_t i = 0; i < g.records.n; i++)
        free((void *)(uintptr_t)g.records.at[i].bytes);
    rp_vec_release(&g.records);
    rp_vec_release(&g.runs);
    rp_vec_release(&g.unread);
    rp_arena_release(&g.arena);
    pthread_mutex_destroy(&g.lock);
    for (size_t k = 0; g.queries && k < d->nasked; k++) {
        for (size_t i = 0; i < g.queries[k].slots.n; i++)
            rp_slot_free(g.queries[k].slots.at[i]);
        rp_vec_release(&g.queries[k].slots);
        rp_query_release(&g.queries[k]);
    }
    free(g.queries);
    return code;
}
