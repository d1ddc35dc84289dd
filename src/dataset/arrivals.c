/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns digests into slots. Their heads say which runs and shards they hold. Each run then gets its
 * place in the order of the inputs, and the sources of a run keep their places in it, so that the
 * answer is that of the traces, in whatever order the digests come. A rank that is in several
 * digests of its run counts once.
 */
#include "base/decides.h"
#include "base/order.h"
#include "dataset/bulk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number of a source of a run that arrived; it is after those of the dataset itself. */
#define BASE_OF(source, run) (((uint64_t)(source) + 1) << 44 | (uint64_t)(run) << 32)
#define RUNS_MOST            4096
RP_LIMIT(RUNS_MOST, "runs", "a digest with more is refused");

enum rp_code rp_query_arrive(struct rp_rank_query *q, const struct rp_arrival *given,
                             struct rp_err *err)
{
    struct rp_arrival arrival = *given;
    enum rp_code code = RP_OK;

    if (arrival.in)
        code = rp_input_slurp(arrival.in, &arrival.bytes, &arrival.n, err);
    if (code == RP_OK)
        code = rp_digest_name(arrival.name,
                              rp_digest_open(arrival.bytes, arrival.n, arrival.checked,
                                             &arrival.arena, &arrival.reader, err),
                              err);
    if (code == RP_OK && arrival.reader.head.nruns > RUNS_MOST)
        code = rp_err_set(err, RP_LIMIT, "'%s' holds more than %d runs", arrival.name, RUNS_MOST);
    if (code == RP_OK) {
        pthread_mutex_lock(&q->lock);
        code = rp_vec_push(&q->arrivals, arrival, err);
        pthread_mutex_unlock(&q->lock);
    }
    if (code != RP_OK) {
        rp_arena_release(&arrival.arena);
        rp_input_close(arrival.in);
    }
    return code;
}

void rp_query_release_arrivals(struct rp_rank_query *q)
{
    for (size_t i = 0; i < q->arrivals.n; i++) {
        rp_input_close(q->arrivals.at[i].in);
        rp_arena_release(&q->arrivals.at[i].arena);
        free(q->arrivals.at[i].known);
    }
    for (size_t i = 0; i < q->known.n; i++)
        free(q->known.at[i].shards);
    rp_vec_release(&q->arrivals);
    rp_vec_release(&q->known);
}

/* ------------------------------------------------------------------ the runs */

static bool same_text(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

/* Refuses digests that were made with other settings for reading, because the answer would be
   another one. */
static enum rp_code check_reading(const struct rp_rank_query *q, const struct rp_arrival *arrival,
                                  const struct rp_digest_head *ours, struct rp_err *err)
{
    const struct rp_digest_head *head = &arrival->reader.head;
    const char *name = arrival->name;

    (void)q;
    if (head->salvage != ours->salvage)
        return rp_err_set(err, RP_USAGE, "'%s' was made %s '--salvage': ask %s it", name,
                          head->salvage ? "with" : "without", head->salvage ? "with" : "without");
    if (!same_text(head->step_name, ours->step_name))
        return rp_err_set(err, RP_USAGE,
                          "'%s' was made with other steps (--step-name '%s'): make it again with "
                          "'--step-name %s'",
                          name, head->step_name ? head->step_name : "",
                          ours->step_name ? ours->step_name : "");
    if (!same_text(head->tables, ours->tables))
        return rp_err_set(err, RP_USAGE,
                          "'%s' was made with other tables of names (REPRISE_STEPS, "
                          "REPRISE_CATEGORIES)",
                          name);
    return RP_OK;
}

static enum rp_code know_run(struct rp_rank_query *q, const struct rp_arrival *arrival, size_t r,
                             const char *own, size_t *out, struct rp_err *err)
{
    const struct rp_digest_run *run = &arrival->reader.head.runs[r];
    bool is_own = arrival->checked && !run->source && !strcmp(run->id, own);
    size_t source = arrival->checked && run->source ? run->source - 1 : arrival->source;
    struct rp_known_run known = {.run = run,
                                 .side = q->run_of && !is_own ? q->run_of[source] : 0,
                                 .base = is_own ? 0 : BASE_OF(source, r)};

    if (arrival->checked && !run->source && !is_own && q->run_of)
        return rp_err_set(
            err, RP_USAGE,
            "the processes see different files at '%s', and which of them is of which "
            "run is not known: make a digest of each run ('reprise digest')",
            q->dataset->given);
    for (*out = 0; *out < q->known.n; (*out)++)
        if (!strcmp(q->known.at[*out].run->id, run->id) && q->known.at[*out].side == known.side &&
            q->known.at[*out].run->nparts == run->nparts)
            return RP_OK;
    RP_TRY(rp_vec_push(&q->known, known, err));
    if (!run->nparts || is_own)
        return RP_OK;
    q->known.at[*out].shards = calloc(run->nparts, 1);
    return rp_err_need(q->known.at[*out].shards, err, "reading a digest");
}

static enum rp_code note_unread(struct rp_rank_query *q, const struct rp_arrival *arrival,
                                struct rp_err *err)
{
    const struct rp_digest_head *head = &arrival->reader.head;
    struct rp_trust_log *log = q->dataset->trust;

    for (size_t i = 0; i < head->nunread; i++) {
        const struct rp_digest_unread *u = &head->unread[i];
        uint64_t base = q->known.at[arrival->known[u->run]].base;
        struct rp_unread row = {.source = u->why == RP_UNREAD_HOLE ? SIZE_MAX : base + u->source,
                                .why = (enum rp_unread_why)u->why,
                                .path = rp_arena_text(&log->arena, u->path),
                                .reason = rp_arena_text(&log->arena, u->reason)};

        RP_TRY(rp_vec_push(&log->unread, row, err));
    }
    return RP_OK;
}

static enum rp_code know_runs(struct rp_rank_query *q, struct rp_arrival *arrival, const char *own,
                              struct rp_err *err)
{
    const struct rp_digest_head *head = &arrival->reader.head;

    arrival->known = calloc(head->nruns + 1, sizeof *arrival->known);
    RP_TRY(rp_err_need(arrival->known, err, "reading a digest"));
    for (size_t r = 0; r < head->nruns; r++) {
        RP_TRY(know_run(q, arrival, r, own, &arrival->known[r], err));
        struct rp_known_run *known = &q->known.at[arrival->known[r]];
        for (size_t k = 0; k < head->runs[r].nshards && known->shards; k++)
            known->shards[head->runs[r].shards[k]] = 1;
        if (head->runs[r].steps_named && q->dataset->trust)
            q->dataset->trust->steps_named = true;
    }
    return q->dataset->trust ? note_unread(q, arrival, err) : RP_OK;
}

/* Notes that "shards 2, 5 of 8 are missing". */
static enum rp_code note_missing(struct rp_rank_query *q, const struct rp_known_run *known,
                                 struct rp_err *err)
{
    uint64_t i, n = known->run->nparts, missing = 0;
    char list[120] = "", text[400];
    size_t used = 0;

    for (i = 0; i < n && known->shards; i++) {
        if (known->shards[i])
            continue;
        if (used + 24 < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%llu", missing ? ", " : "",
                                     (unsigned long long)i);
        else if (list[used - 1] != '.')
            used += (size_t)snprintf(list + used, sizeof list - used, ", ...");
        missing++;
    }
    if (!missing || !q->dataset->trust)
        return RP_OK;
    snprintf(text, sizeof text, "missing: %llu of %llu shards of '%.120s': %s",
             (unsigned long long)missing, (unsigned long long)n, known->run->given, list);
    return rp_trust_note(q->dataset->trust, "missing_shards", true, (int64_t)missing, text, err);
}

/* Counts the inputs of the dataset itself that came in an arrival. */
static size_t digests_of(const struct rp_rank_query *q, const struct rp_arrival *arrival)
{
    if (!arrival->checked)
        return 1;
    return q->known.at[arrival->known[0]].base ? 0 : arrival->reader.head.runs[0].ndigests;
}

/* Counts the inputs of the answer: those from which the digests were made, and those that only
   other processes have. */
static void count_inputs(struct rp_rank_query *q)
{
    struct rp_trust_log *log = q->dataset->trust;
    size_t i, digests = 0, files = 0, holes = 0, others;
    bool same = true;

    for (i = 0; i < q->arrivals.n; i++)
        digests += digests_of(q, &q->arrivals.at[i]);
    for (i = 0; i < q->known.n; i++) {
        const struct rp_digest_run *run = q->known.at[i].run;

        if (!q->known.at[i].base)
            continue; /* the dataset itself */
        files += run->nsources;
        holes += run->nholes;
        q->nothers += run->nothers;
        same = same && !strcmp(run->given, q->known.at[0].run->given) && run->ngiven == 1;
    }
    others = files;
    files += rp_dataset_count(q->dataset) - digests;
    q->several = files > 1;
    if (!log || !others)
        return;
    log->nfiles = files + holes;
    if (same && digests == rp_dataset_count(q->dataset))
        log->given = rp_arena_text(&log->arena, q->known.at[0].run->given);
}

/* ------------------------------------------------------------------ the ranks */

/* Writes the options of the question as they are given to `digest`. */
static void write_options(const struct rp_settings *settings, char *out, size_t size)
{
    size_t i, used = 0;

    *out = '\0';
    for (i = 0; i < settings->ngiven && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, " --%s%s%.80s", settings->given[i].name,
                                 settings->given[i].value ? "=" : "",
                                 settings->given[i].value ? settings->given[i].value : "");
}

static enum rp_code say_missing(const struct rp_rank_query *q, struct rp_err *err)
{
    char text[sizeof err->text], options[200];

    if (!err)
        return RP_USAGE;
    memcpy(text, err->text, sizeof text);
    write_options(q->settings, options, sizeof options);
    return rp_err_set(err, RP_USAGE, "%.200s: make it with \"--for '%s%s'\"", text,
                      q->dataset->question, options);
}

static enum rp_code keep_trust(struct rp_rank_query *q, const struct rp_rank_slot *slot,
                               struct rp_trust_trace *trust, struct rp_err *err)
{
    struct rp_trust_log *log = q->dataset->trust;
    enum rp_code code = RP_OK;

    if (!log || !trust->path)
        return RP_OK;
    pthread_mutex_lock(&log->lock);
    trust->path = rp_arena_text(&log->arena, trust->path);
    trust->cut = rp_arena_text(&log->arena, trust->cut);
    trust->lost = rp_arena_text(&log->arena, trust->lost);
    trust->died = rp_arena_text(&log->arena, trust->died);
    trust->source = slot->part.source;
    trust->part = slot->part.in_source;
    if (!rp_trust_find(log, trust->source, trust->part)) {
        if (!log->ranked)
            code = rp_digest_copy(slot->digest, &trust->digest, err);
        if (code == RP_OK)
            code = rp_vec_push(&log->traces, *trust, err);
        if (code != RP_OK)
            rp_digest_free(trust->digest);
    }
    pthread_mutex_unlock(&log->lock);
    return code;
}

static enum rp_code unpack_record(struct rp_rank_query *q, const struct rp_arrival *arrival,
                                  const struct rp_digest_record *record, struct rp_err *err)
{
    const struct rp_known_run *known = &q->known.at[arrival->known[record->run]];
    struct rp_asked asked = {q->dataset->question, q->row, q->settings};
    struct rp_trust_trace trust = {0};
    struct rp_rank_slot *slot;
    bool missing;

    RP_TRY(rp_query_add(q, &slot, err));
    slot->part.source = known->base + record->source;
    slot->part.in_source = record->in_source;
    slot->beside = record->beside;
    slot->run = known->base || !q->run_of ? known->side : q->run_of[record->source];
    enum rp_code code = rp_slot_read(&asked, record->bytes, record->n, slot, &trust, &missing, err);
    if (missing)
        code = say_missing(q, err);
    if (code != RP_OK)
        return code;
    slot->sketched = slot->sketched && q->several;
    slot->part.traits = rp_bulk_traits(slot->digest, slot->sketched ? &slot->sketch : NULL);
    RP_TRY(keep_trust(q, slot, &trust, err));
    if (q->row->shares)
        RP_TRY(rp_query_share(q, slot, err));
    return rp_bulk_keep(q, slot, err);
}

static enum rp_code unpack_arrival(void *user, size_t i, struct rp_err *err)
{
    struct rp_rank_query *q = user;
    struct rp_arrival *arrival = &q->arrivals.at[i];
    struct rp_digest_record record;
    bool more = true;

    while (more) {
        RP_TRY(rp_digest_name(arrival->name, rp_digest_next(&arrival->reader, &record, &more, err),
                              err));
        if (more && record.files == q->row->files)
            RP_TRY(rp_digest_name(arrival->name, unpack_record(q, arrival, &record, err), err));
    }
    return RP_OK;
}

RP_ORDER(by_arrival, struct rp_arrival, RP_UP(source), RP_UP(bytes))

enum rp_code rp_query_unpack(struct rp_rank_query *q, struct rp_err *err)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_digest_head ours;
    struct rp_digest_run own;

    if (!q->arrivals.n)
        return RP_OK;
    qsort(q->arrivals.at, q->arrivals.n, sizeof *q->arrivals.at, by_arrival);
    enum rp_code code =
        rp_digest_describe(q->dataset, q->arrivals.at[0].checked, &arena, &ours, &own, err);
    for (size_t i = 0; i < q->arrivals.n && code == RP_OK; i++) {
        code = check_reading(q, &q->arrivals.at[i], &ours, err);
        if (code == RP_OK)
            code = know_runs(q, &q->arrivals.at[i], own.id, err);
    }
    for (size_t i = 0; i < q->known.n && code == RP_OK; i++)
        code = note_missing(q, &q->known.at[i], err);
    rp_arena_release(&arena);
    RP_TRY(code);
    count_inputs(q);
    RP_TRY(rp_pool_each(q->ctx->pool, q->arrivals.n, unpack_arrival, q, err));

    /* Drops slots that are there twice, and recordings of captures if there are ranks. */
    const struct rp_rank_slot *last = NULL;
    bool ranks[2] = {false, false};
    size_t i, n = 0;
    for (i = 0; i < q->slots.n; i++)
        if (!q->slots.at[i]->beside)
            ranks[q->slots.at[i]->run] = true;
    rp_query_order(q);
    for (i = 0; i < q->slots.n; i++) {
        struct rp_rank_slot *slot = q->slots.at[i];
        if ((last && last->part.source == slot->part.source &&
             last->part.in_source == slot->part.in_source) ||
            (slot->beside && ranks[slot->run])) {
            rp_slot_free(slot);
            continue;
        }
        last = q->slots.at[n++] = slot;
    }
    q->slots.n = n;
    return RP_OK;
}
