/* SPDX-License-Identifier: Apache-2.0 */
/* The log of what an answer rests on, kept while inputs are read; remarks.c turns it into
   remarks. */
#include "dataset/trust.h"
#include "base/each.h"

#include "facts/recorders.h"
#include "facts/times/intervals.h"
#include "facts/times/trace_life.h"
#include "result/print_units.h"
#include "trace/hidden.h"
#include "trace/meta.h"
#include "trace/unfold.h"
#include "trace/zero_times.h"

#include <stdlib.h>
#include <string.h>

void rp_trust_log_init(struct rp_trust_log *log)
{
    *log = (struct rp_trust_log){0};
    rp_arena_init(&log->arena);
    pthread_mutex_init(&log->lock, NULL);
}

void rp_trust_log_release(struct rp_trust_log *log)
{
    for (size_t i = 0; i < log->traces.n; i++)
        rp_digest_free(log->traces.at[i].digest);
    RP_EACH(rp_vec_release, &log->unread, &log->traces, &log->notes, &log->runs);
    rp_arena_release(&log->arena);
    pthread_mutex_destroy(&log->lock);
}

enum rp_code rp_trust_unread(struct rp_trust_log *log, const struct rp_dataset *dataset,
                             size_t source, enum rp_unread_why why, const char *reason,
                             struct rp_err *err)
{
    struct rp_unread row = {.source = source, .why = why};

    pthread_mutex_lock(&log->lock);
    row.path = rp_arena_text(&log->arena, rp_sources_borrow(dataset->sources, source)->name);
    row.reason = rp_arena_textf(&log->arena, "%.*s", (int)strcspn(reason, "\n"), reason);
    enum rp_code code = rp_vec_push(&log->unread, row, err);
    pthread_mutex_unlock(&log->lock);
    return code;
}

/* Events that a ring overwrote; the value is a text in recordings of reprise, and JSON in
   conversions of them. */
static int64_t overwritten_events(const struct rp_trace *t)
{
    for (uint32_t i = 0; i < t->nmeta; i++) {
        const char *value = rp_trace_str(t, t->meta[i].value);

        if (!strcmp(rp_trace_str(t, t->meta[i].key), "record.overwritten_events"))
            return strtoll(value + (*value == '"'), NULL, 10);
    }
    return 0;
}

static bool says_cut(const struct rp_trace *t, const char *warning)
{
    return (t->health.truncated || t->health.salvaged) &&
           (strstr(warning, "truncated") || strstr(warning, "cut short") ||
            strstr(warning, "is damaged"));
}

static bool says_lost(const struct rp_trace *t, const char *warning)
{
    return t->health.lost_events && (strstr(warning, " lost: ") || strstr(warning, " lost "));
}

bool rp_trust_covers(const struct rp_trace *trace, const char *warning)
{
    return says_cut(trace, warning) || says_lost(trace, warning) ||
           strstr(warning, "were overwritten");
}

static void note_sentences(struct rp_trust_log *log, const struct rp_trace *t,
                           struct rp_trust_trace *row)
{
    bool set_back = rp_trace_meta(t, RP_SET_BACK_KEY) != NULL;

    for (uint32_t i = 0; i < t->nwarnings; i++) {
        const char *text = rp_trace_str(t, t->warnings[i]);

        if (says_cut(t, text) && !row->cut)
            row->cut = rp_arena_text(&log->arena, text);
        else if (says_lost(t, text))
            row->lost = row->lost ? rp_arena_textf(&log->arena, "%s; %s", row->lost, text)
                                  : rp_arena_text(&log->arena, text);
        else if (set_back && strstr(text, "clock was set back"))
            row->set_back = rp_arena_text(&log->arena, text);
    }
}

struct rp_trust_trace *rp_trust_find(struct rp_trust_log *log, size_t source, uint32_t part)
{
    for (size_t i = log->traces.n; i-- > 0;)
        if (log->traces.at[i].source == source && log->traces.at[i].part == part)
            return &log->traces.at[i];
    return NULL;
}

enum rp_code rp_trust_loaded(struct rp_trust_log *log, const struct rp_loaded *loaded,
                             struct rp_err *err)
{
    const struct rp_trace *t = loaded->trace;
    struct rp_trust_trace row = {.source = loaded->index,
                                 .part = loaded->part,
                                 .number = t->rank,
                                 .cut_archive = loaded->source->truncated,
                                 .nevents = t->health.events,
                                 .world_size = t->world_size,
                                 .health = t->health};
    enum rp_code code = RP_OK;

    row.health.ts_zero_gpu = rp_zero_times_lost(t);
    pthread_mutex_lock(&log->lock);
    if (!rp_trust_find(log, row.source, row.part)) {
        row.path = rp_arena_text(&log->arena, loaded->source->name);
        row.overwritten = overwritten_events(t);

        /* Reads "clocks aligned by …, ±…" as `merge --same-rank` wrote it. */
        const char *record = rp_trace_meta(t, RP_JOINED_KEY);
        const char *text = record ? strstr(record, "\"text\":\"") : NULL;
        if (text) {
            text += strlen("\"text\":\"");
            row.joined = rp_arena_textf(&log->arena, "%.*s", (int)strcspn(text, "\""), text);
            row.unsure = strstr(record, "\"uncertainty_ns\":null") != NULL;
        }
        row.hidden = rp_hidden_graphs(t, &row.hidden_ns);

        /* Only recordings of reprise tell this. */
        struct rp_trace_life life;
        rp_trace_life_find(t, &life);
        if (life.cut) {
            if (t->has_base)
                row.stopped_ns = rp_ns_sum(t->base_ns, t->totals.span_end_ns);
            row.died =
                rp_arena_textf(&log->arena, "process %lld, after '%.80s', %s after its first event",
                               (long long)life.process, rp_trace_str(t, t->ev.name[life.last]),
                               rp_units_time(&log->arena, life.last_ns));
        }
        note_sentences(log, t, &row);
        if (!log->ranked && !log->is_job)
            code = rp_digest_new(t, loaded->source->name, &row.digest, err);
        if (code == RP_OK)
            code = rp_vec_push(&log->traces, row, err);
        if (code != RP_OK)
            rp_digest_free(row.digest);
    }
    pthread_mutex_unlock(&log->lock);
    return code;
}

void rp_trust_capture(struct rp_trust_log *log, const struct rp_loaded *loaded)
{
    pthread_mutex_lock(&log->lock);
    struct rp_trust_trace *t = rp_trust_find(log, loaded->index, loaded->part);
    if (t)
        t->capture = true;
    pthread_mutex_unlock(&log->lock);
}

void rp_trust_judge(struct rp_trust_log *log, const struct rp_claim *claims, const size_t *source,
                    const uint32_t *part, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct rp_trust_trace *t = rp_trust_find(log, source[i], part[i]);

        if (!t)
            continue;
        t->verdict = claims[i].verdict;
        if (t->verdict != RP_VERDICT_COPY && t->verdict != RP_VERDICT_CLASH)
            continue;
        const struct rp_trust_trace *other =
            rp_trust_find(log, source[claims[i].instead], part[claims[i].instead]);
        t->instead = other ? other->path : NULL;
    }
}

enum rp_code rp_trust_note(struct rp_trust_log *log, const char *kind, bool incomplete,
                           int64_t count, const char *text, struct rp_err *err)
{
    struct rp_trust_note note = {.place = log->notes.n};

    note.remark = (struct rp_remark){.kind = kind,
                                     .incomplete = incomplete,
                                     .rank = RP_ABSENT_I64,
                                     .count = count,
                                     .bytes = RP_ABSENT_I64,
                                     .text = rp_arena_text(&log->arena, text)};
    return rp_vec_push(&log->notes, note, err);
}

enum rp_code rp_trust_run(struct rp_trust_log *log, const struct rp_trust_run *run,
                          struct rp_err *err)
{
    struct rp_trust_run kept = *run;

    kept.numbers = RP_ARENA_NEW(&log->arena, int32_t, run->n + 1);
    RP_TRY(rp_err_need(kept.numbers, err, "looking for ranks"));
    memcpy(kept.numbers, run->numbers, run->n * sizeof *run->numbers);
    return rp_vec_push(&log->runs, kept, err);
}

const struct rp_unread *rp_trust_failure(const struct rp_trust_log *log)
{
    const struct rp_unread *first = NULL;

    for (size_t i = 0; i < log->unread.n; i++) {
        const struct rp_unread *u = &log->unread.at[i];

        if ((u->why == RP_UNREAD_DAMAGED || u->why == RP_UNREAD_UNOPENED) &&
            (!first || u->source < first->source))
            first = u;
    }
    return first;
}
