/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts are made in the order in which threads become free, and ordered by the sources afterwards,
 * so that the answer does not depend on timing.
 */
#include "dataset/bulk.h"

#include "base/decides.h"
#include "base/hash.h"
#include "base/order.h"
#include "dataset/claims.h"
#include "dataset/selection.h"
#include "dataset/trust.h"
#include "facts/times/step_times.h"
#include "result/part.h"
#include "result/result.h"
#include "team/team.h"
#include "trace/run.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_SHOWN 4
RP_LIMIT(NAMES_SHOWN, "names of steps", "in an error, which says that there are more");

static bool step_has_number(const struct rp_step *step, const char *wanted)
{
    char *end;
    long long number = strtoll(wanted, &end, 10);

    return end != wanted && !*end && step->number == number;
}

/* Finds a step by number, by its whole name, or by the beginning of a name that no other name has.
   Of several steps with that name the first is taken; RP_NONE if there is none, or if several names
   begin like this. */
static uint32_t find_step(const struct rp_trace *t, const char *wanted)
{
    uint32_t i, found = RP_NONE;

    for (i = 0; i < t->nsteps; i++)
        if (step_has_number(&t->steps[i], wanted))
            return i;
    for (i = 0; i < t->nsteps; i++)
        if (!strcmp(rp_trace_str(t, t->steps[i].name), wanted))
            return i;
    for (i = 0; *wanted && i < t->nsteps; i++) {
        if (strncmp(rp_trace_str(t, t->steps[i].name), wanted, strlen(wanted)) != 0)
            continue;
        if (found != RP_NONE && t->steps[found].name != t->steps[i].name)
            return RP_NONE;
        found = found == RP_NONE ? i : found;
    }
    return found;
}

static enum rp_code set_scope(const struct rp_rank_query *a, const struct rp_loaded *loaded,
                              struct rp_scope *scope, struct rp_err *err)
{
    const struct rp_trace *t = loaded->trace;

    *scope = (struct rp_scope){0};
    if (a->has_window)
        *scope = rp_scope_of_window(t, rp_ns_sum(t->totals.span_begin_ns, a->from_ns),
                                    rp_ns_sum(t->totals.span_begin_ns, a->to_ns));
    if (a->has_window || !a->step)
        return RP_OK;
    uint32_t step = find_step(t, a->step);
    if (step == RP_NONE) {
        /* Says which names begin as wanted or, if there are none, which names are first. */
        size_t n = strlen(a->step), shown, used;
        char names[320] = "";
        uint32_t i;
        if (!t->nsteps)
            return rp_err_set(err, RP_USAGE, "'%s' has no steps, so step '%s' cannot be selected",
                              loaded->source->name, a->step);
        for (i = 0; i < t->nsteps && strncmp(rp_trace_str(t, t->steps[i].name), a->step, n) != 0;
             i++)
            ;
        bool beginning = *a->step && i < t->nsteps;
        for (i = 0, shown = used = 0; i < t->nsteps && shown < NAMES_SHOWN; i++) {
            const char *name = rp_trace_str(t, t->steps[i].name);
            if ((beginning && strncmp(name, a->step, n) != 0) ||
                (i && t->steps[i].name == t->steps[i - 1].name))
                continue;
            used += (size_t)snprintf(names + used, sizeof names - used, "%s'%.60s'",
                                     shown++ ? ", " : "", name);
        }
        return rp_err_set(err, RP_USAGE, "'%s' has %s '%s'; its steps are %lld to %lld: %s%s",
                          loaded->source->name,
                          beginning ? "several steps that begin with" : "no step", a->step,
                          (long long)t->steps[0].number, (long long)t->steps[t->nsteps - 1].number,
                          names, shown == NAMES_SHOWN ? ", …" : "");
    }
    *scope = rp_scope_of_step(t, step);
    return RP_OK;
}

static enum rp_code make_bulk(struct rp_rank_query *a, const struct rp_settings *settings,
                              const struct rp_loaded *loaded, struct rp_rank_part *part,
                              struct rp_err *err)
{
    bool wanted;

    if (!a->row->bulk || !a->row->bulk->make)
        return RP_OK;
    RP_TRY(rp_bulk_wants(a, part, &wanted, err));
    part->left_out = !wanted;
    return wanted ? a->row->bulk->make(loaded, settings, part, err) : RP_OK;
}

/* Fills the part; its vectors then belong to its arena, also after a failure. */
static enum rp_code fill_part(struct rp_rank_query *a, const struct rp_settings *settings,
                              const struct rp_loaded *loaded, const struct rp_scope *scope,
                              struct rp_rank_part *part, struct rp_err *err)
{
    enum rp_code code = a->row->rank(loaded, scope, settings, part, err), adopted;

    if (code == RP_OK)
        code = make_bulk(a, settings, loaded, part, err);
    adopted = rp_part_adopt(a->row->part, part->data, &part->arena, code == RP_OK ? err : NULL);
    if (code == RP_OK)
        code = adopted;
    if (code == RP_OK)
        code = rp_arena_check(&part->arena, "analysing a rank", err);
    return code;
}

enum rp_code rp_query_make(struct rp_rank_query *a, const struct rp_loaded *loaded,
                           struct rp_rank_part *part, struct rp_settings_reads *reads,
                           struct rp_err *err)
{
    struct rp_settings noted = *a->settings;
    struct rp_scope scope = {0};

    noted.reads = reads;
    part->data = rp_arena_calloc(&part->arena, 1, a->row->part->size, _Alignof(max_align_t));
    RP_TRY(rp_err_need(part->data, err, "analysing a rank"));
    if (a->row->files)
        return fill_part(a, &noted, loaded, &scope, part, err);
    (void)rp_settings_text(&noted, "step"); /* the scope depends on these settings */
    (void)rp_settings_text(&noted, "window");
    RP_TRY(set_scope(a, loaded, &scope, err));
    RP_TRY(rp_trace_require(loaded->trace, RP_NEED_ARGS | RP_NEED_LINKS, err));

    /* Fills the part after joining the captures of its graphs, if there are any. */
    struct rp_loaded joined = *loaded;
    RP_SCOPED(rp_graph_join_release) struct rp_graph_join join = {0};
    RP_TRY(rp_capture_files_join(&a->captures, a->run_of, a->dataset, loaded, &join, &part->graphs,
                                 &part->arena, err));
    if (join.trace)
        joined.trace = join.trace;
    return fill_part(a, &noted, &joined, &scope, part, err);
}

enum rp_code rp_query_describe(const struct rp_loaded *loaded, bool sketch,
                               struct rp_rank_slot *slot, struct rp_err *err)
{
    slot->part.path = rp_arena_text(&slot->part.arena, loaded->source->name);
    slot->part.source = loaded->index;
    slot->part.in_source = loaded->part;
    RP_TRY(rp_digest_new(loaded->trace, loaded->source->name, &slot->digest, err));
    if (sketch) {
        RP_TRY(rp_sketch_init(&slot->sketch, loaded->trace, err));
        slot->sketched = true;
    }
    slot->part.traits = rp_bulk_traits(slot->digest, sketch ? &slot->sketch : NULL);
    return rp_arena_check(&slot->part.arena, "analysing a rank", err);
}

/* ------------------------------------------------------------------ equal parts */

/* Takes the part of a slot that has an equal one already; if there is none, later slots find this
   one. From then on the part may only be read or changed under the lock, because its owner may lose
   the bulk. */
static bool take_equal(struct rp_rank_query *a, struct rp_rank_slot *slot,
                       const uint64_t content[2])
{
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < a->slots.n && !slot->owner; i++) {
        struct rp_rank_slot *x = a->slots.at[i];

        if (x != slot && x->content[0] == content[0] && x->content[1] == content[1])
            slot->owner = x;
    }
    if (slot->owner)
        slot->part.data = slot->owner->part.data;
    else
        memcpy(slot->content, content, sizeof slot->content);
    pthread_mutex_unlock(&a->lock);
    return slot->owner != NULL;
}

enum rp_code rp_query_share(struct rp_rank_query *a, struct rp_rank_slot *slot, struct rp_err *err)
{
    struct rp_arena kept = RP_ARENA_INIT;
    struct rp_rank_part *part = &slot->part;
    uint64_t content[2] = {0, 0};

    /* The hash of a part is that of its bytes as they are written. */
    struct rp_out *out = NULL;
    enum rp_code code = rp_out_open_memory(&out, err);
    size_t n;
    if (code == RP_OK) {
        rp_part_write(a->row->part, part->data, out);
        code = rp_out_flush(out, err);
    }
    if (code == RP_OK) {
        const char *bytes = rp_out_borrow_memory(out, &n);
        content[0] = rp_hash_bytes(bytes, n);
        content[1] = rp_hash_mix(rp_hash_bytes(bytes, n / 2), n);
    }
    rp_out_abandon(out);
    RP_TRY(code);
    if (!take_equal(a, slot, content))
        return RP_OK;
    part->path = rp_arena_text(&kept, part->path);
    if (part->graphs.used)
        part->graphs.used = rp_arena_text(&kept, part->graphs.used);
    rp_arena_release(&part->arena);
    rp_arena_adopt(&part->arena, &kept);
    return rp_arena_check(&part->arena, "analysing a rank", err);
}

enum rp_code rp_query_add(struct rp_rank_query *a, struct rp_rank_slot **out, struct rp_err *err)
{
    struct rp_rank_slot *slot = calloc(1, sizeof *slot);

    pthread_mutex_lock(&a->lock);
    enum rp_code code =
        slot ? rp_vec_push(&a->slots, slot, err) : rp_err_nomem(err, "analysing a rank");
    pthread_mutex_unlock(&a->lock);
    if (code != RP_OK)
        free(slot);
    *out = code == RP_OK ? slot : NULL;
    return code;
}

#define FEW 8
RP_LIMIT(
    FEW, "files",
    "with more files, their parts are compacted; with fewer, the unused memory costs less than "
    "that");

/* Whether the parts of many ranks will be in memory at once. */
static bool keeps_several(const struct rp_rank_query *a)
{
    return a->ctx->resend_parts || (a->dataset && rp_sources_count(a->dataset->sources) > 1);
}

enum rp_code rp_query_compact(const struct rp_rank_query *a, struct rp_rank_part *part,
                              struct rp_err *err)
{
    struct rp_arena arrived = RP_ARENA_INIT;
    void *data = rp_arena_calloc(&arrived, 1, a->row->part->size, _Alignof(max_align_t));

    part->path = rp_arena_text(&arrived, part->path);
    if (part->graphs.used)
        part->graphs.used = rp_arena_text(&arrived, part->graphs.used);
    enum rp_code code = rp_arena_check(&arrived, "keeping a part", err);
    if (code == RP_OK)
        code = rp_part_copy(a->row->part, part->data, &arrived, data, err);
    rp_arena_release(&part->arena);
    rp_arena_adopt(&part->arena, &arrived);
    part->data = data;
    return code;
}

enum rp_code rp_query_fill(struct rp_rank_query *a, const struct rp_loaded *loaded, bool sketch,
                           struct rp_rank_slot *slot, struct rp_err *err)
{
    slot->run = a->run_of ? a->run_of[loaded->index] : 0;
    RP_TRY(rp_query_describe(loaded, sketch, slot, err));
    RP_TRY(rp_query_make(a, loaded, &slot->part, NULL, err));
    if (!keeps_several(a))
        return RP_OK;
    if (a->ctx->resend_parts || rp_sources_count(a->dataset->sources) > FEW)
        RP_TRY(rp_query_compact(a, &slot->part, err));
    if (a->row->shares)
        RP_TRY(rp_query_share(a, slot, err));
    return rp_bulk_keep(a, slot, err);
}

static enum rp_code make_part(void *user, const struct rp_loaded *loaded, struct rp_err *err)
{
    struct rp_rank_query *a = user;
    struct rp_rank_slot *slot;

    RP_TRY(rp_query_add(a, &slot, err));
    return rp_query_fill(a, loaded, a->several && !a->row->files, slot, err);
}

/* If a run consists only of recordings of captures, they are its ranks. */
static enum rp_code make_capture_parts(struct rp_rank_query *a, uint8_t which, struct rp_err *err)
{
    const struct rp_capture_files *files = &a->captures;

    for (size_t i = 0; i < a->slots.n; i++)
        if (a->slots.at[i]->run == which)
            return RP_OK;
    for (size_t i = 0; files->read && i < files->n; i++) {
        const struct rp_read_source *r = &files->read[i];

        if (r->capture && r->import.trace && (!a->run_of || a->run_of[i] == which)) {
            struct rp_loaded loaded = {rp_sources_borrow(a->dataset->sources, i),
                                       r->import.trace,
                                       r->import.format->name,
                                       i,
                                       0,
                                       a->dataset,
                                       NULL};

            RP_TRY(make_part(a, &loaded, err));
        }
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ the ranks of a run */

/* The traces of one run that claim to be its ranks. */
struct claimants {
    size_t n;
    struct rp_claim *claims;
    size_t *slot, *source; /* by claim */
    uint32_t *part;
};

static enum rp_code list_claims(struct rp_rank_query *a, uint8_t which, struct rp_arena *arena,
                                struct claimants *out, struct rp_err *err)
{
    *out = (struct claimants){.claims = RP_ARENA_NEW(arena, struct rp_claim, a->slots.n + 1),
                              .slot = RP_ARENA_NEW(arena, size_t, a->slots.n + 1),
                              .source = RP_ARENA_NEW(arena, size_t, a->slots.n + 1),
                              .part = RP_ARENA_NEW(arena, uint32_t, a->slots.n + 1)};
    RP_TRY(rp_arena_check(arena, "numbering ranks", err));
    for (size_t i = 0; i < a->slots.n; i++) {
        const struct rp_rank_slot *slot = a->slots.at[i];

        if (slot->run != which)
            continue;
        out->claims[out->n].digest = slot->digest;
        out->claims[out->n].sketch = slot->sketched ? &slot->sketch : NULL;
        out->slot[out->n] = i;
        out->source[out->n] = slot->part.source;
        out->part[out->n++] = slot->part.in_source;
    }
    return RP_OK;
}

/* Gives the ranks of a run their numbers. Recordings of captures are not a run, and all are
   kept. */
static enum rp_code number_ranks(struct rp_rank_query *a, uint8_t which, struct rp_run *run,
                                 struct rp_err *err)
{
    struct claimants c;
    size_t i, captured = 0;

    RP_TRY(list_claims(a, which, &run->arena, &c, err));
    for (i = 0; i < c.n; i++)
        captured += a->slots.at[c.slot[i]]->part.graphs.captured > 0;
    if (captured < c.n) {
        RP_TRY(rp_claims_settle(c.claims, c.n, a->row->keeps_cut || a->dataset->salvage, err));
        if (a->dataset->trust)
            rp_trust_judge(a->dataset->trust, c.claims, c.source, c.part, c.n);
    }
    for (i = 0; i < c.n; i++)
        if (c.claims[i].verdict == RP_VERDICT_RANK)
            RP_TRY(rp_run_add(run, &a->slots.at[c.slot[i]]->digest, c.slot[i], err));
    run->nothers = a->nothers;
    return rp_run_settle(run, err);
}

/* Selects the parts that --rank names, by number. */
static enum rp_code select_parts(struct rp_rank_query *a, const struct rp_run *run,
                                 struct rp_arena *arena, struct rp_ranks *ranks, struct rp_err *err)
{
    const char *list = rp_settings_text(a->settings, "rank");

    *ranks = (struct rp_ranks){.world_size = run->world_size};
    ranks->parts = RP_ARENA_NEW(arena, struct rp_rank_part, run->ranks.n + 1);
    RP_TRY(rp_err_need(ranks->parts, err, "joining ranks"));
    for (size_t i = 0; i < run->ranks.n; i++) {
        const struct rp_rank *rank = &run->ranks.at[i];
        struct rp_rank_part *part = &a->slots.at[rank->file]->part;

        /* What the log knows of the rank's trace, if anything. */
        struct rp_trust_trace *trust =
            a->dataset->trust ? rp_trust_find(a->dataset->trust, part->source, part->in_source)
                              : NULL;
        bool wanted = !list || rp_rank_wanted(list, rank->number);

        part->number = rank->number;
        part->digest = rank->digest;
        if (wanted)
            ranks->parts[ranks->n++] = *part;
        if (trust) {
            trust->number = rank->number;
            trust->unselected = !wanted;
        }
    }
    if (!ranks->n)
        return rp_err_set(err, RP_USAGE, "there is no rank '%s'; the ranks are %d to %d", list,
                          run->ranks.at[0].number, run->ranks.at[run->ranks.n - 1].number);
    return RP_OK;
}

/* Notes contradictions to the inputs being one run. */
static enum rp_code check_run(struct rp_rank_query *a, struct rp_run *run, bool *unrelated,
                              struct rp_err *err)
{
    const struct rp_sketch **sketches =
        RP_ARENA_NEW(&run->arena, const struct rp_sketch *, a->slots.n + 1);
    struct rp_trust_log *log = a->dataset->trust;
    struct rp_relation relation;

    RP_TRY(rp_err_need(sketches, err, "comparing traces"));
    for (size_t i = 0; i < a->slots.n; i++)
        sketches[i] = a->slots.at[i]->sketched ? &a->slots.at[i]->sketch : NULL;
    RP_TRY(rp_run_check(run, sketches, &relation, err));
    *unrelated = relation.unrelated;
    if (log && relation.why)
        RP_TRY(rp_trust_note(log, "unrelated", relation.unrelated,
                             relation.unrelated ? (int64_t)relation.strangers : RP_ABSENT_I64,
                             relation.why, err));
    if (log && relation.numbers)
        RP_TRY(rp_trust_note(log, "numbering", false, RP_ABSENT_I64, relation.numbers, err));
    return RP_OK;
}

/* Notes which ranks are there, and what it means that not all are selected. A single rank needs no
   note. */
static enum rp_code check_missing(struct rp_rank_query *a, uint8_t which, const struct rp_run *run,
                                  const struct rp_ranks *ranks, struct rp_err *err)
{
    const char *list = rp_settings_text(a->settings, "rank");
    struct rp_trust_log *log = a->dataset->trust;
    int32_t *numbers;
    char text[160];

    if (!log || run->ranks.n + run->nothers < 2 || ranks->unrelated)
        return RP_OK;
    numbers = malloc(run->ranks.n * sizeof *numbers);
    RP_TRY(rp_err_need(numbers, err, "looking for ranks"));
    for (size_t i = 0; i < run->ranks.n; i++)
        numbers[i] = run->ranks.at[i].number;
    enum rp_code code = rp_trust_run(log,
                                     &(struct rp_trust_run){.where = !a->run_of ? ""
                                                                     : which ? " in the second run"
                                                                             : " in the first run",
                                                            .list = list,
                                                            .waits = a->row->waits,
                                                            .world = run->world_size,
                                                            .numbers = numbers,
                                                            .n = run->ranks.n},
                                     err);
    free(numbers);
    if (code != RP_OK || !list || !a->row->waits || ranks->n < 2 ||
        ranks->world_size <= (int64_t)ranks->n)
        return code;
    snprintf(text, sizeof text,
             "%zu of %d ranks are selected: where a collective waits for one of the others, that "
             "looks like transfer",
             ranks->n, ranks->world_size);
    return rp_trust_note(log, "selected", false, (int64_t)ranks->n, text, err);
}

static enum rp_code make_run(struct rp_rank_query *a, uint8_t which, struct rp_run **run,
                             struct rp_result *result, struct rp_ranks *ranks, struct rp_err *err)
{
    bool unrelated = false;

    RP_TRY(rp_run_new(run, err));
    RP_TRY(number_ranks(a, which, *run, err));
    if (!(*run)->ranks.n)
        return rp_err_set(err, RP_FORMAT, "the %s input contains no trace",
                          which ? "second" : "first");
    RP_TRY(select_parts(a, *run, &result->arena, ranks, err));
    ranks->pool = a->ctx->pool;
    /* One rank speaks for all, since they launch the same graphs. */
    for (size_t i = 0; i < ranks->n; i++) {
        const struct rp_rank_part *part = &ranks->parts[i];

        if (!ranks->graphs)
            ranks->graphs = rp_graph_use_text(&part->graphs, part->path, &result->arena);
        ranks->captured += part->graphs.captured;
        ranks->ncaptures += part->graphs.captured > 0;
    }
    if (rp_ranks_are_captures(
            ranks)) /* captures of one rank are not a run, which another note says */
        return RP_OK;
    RP_TRY(check_run(a, *run, &unrelated, err));
    ranks->unrelated = unrelated;
    RP_TRY(check_missing(a, which, *run, ranks, err));
    return a->bulk_limited ? rp_bulk_choose(a, ranks, &result->arena, err) : RP_OK;
}

RP_ORDER(by_source, struct rp_rank_slot *const, RP_COMPARE((*a)->part.source, (*b)->part.source),
         RP_COMPARE((*a)->part.in_source, (*b)->part.in_source))

void rp_query_order(struct rp_rank_query *a)
{
    rp_sort(a->slots.at, a->slots.n, sizeof *a->slots.at, by_source);
}

static enum rp_code join_all(struct rp_rank_query *a, struct rp_result *result, struct rp_err *err)
{
    struct rp_run *runs[2] = {NULL, NULL};
    struct rp_ranks ranks[2];

    rp_query_order(a);
    if (a->row->files) {
        /* Joins all files as they stand: they get no numbers. */
        struct rp_ranks files = {
            .parts = RP_ARENA_NEW(&result->arena, struct rp_rank_part, a->slots.n + 1)};

        RP_TRY(rp_err_need(files.parts, err, "joining files"));
        for (; files.n < a->slots.n; files.n++)
            files.parts[files.n] = a->slots.at[files.n]->part;
        return a->row->join(&files, a->settings, result, err);
    }
    enum rp_code code = make_run(a, 0, &runs[0], result, &ranks[0], err);
    if (code == RP_OK && a->run_of)
        code = make_run(a, 1, &runs[1], result, &ranks[1], err);
    if (code == RP_OK)
        code = a->run_of ? a->row->join_two(ranks, a->settings, result, err)
                         : a->row->join(&ranks[0], a->settings, result, err);
    rp_run_free(runs[0]);
    rp_run_free(runs[1]);
    return code;
}

enum rp_code rp_query_init(struct rp_rank_query *a, struct rp_ctx *ctx,
                           const struct rp_dataset *dataset, struct rp_err *err)
{
    pthread_mutex_init(&a->lock, NULL);
    a->ctx = ctx;
    a->dataset = dataset;
    a->bulk_events = &a->own_events;
    const char *window = rp_settings_text(a->settings, "window");
    a->step = rp_settings_text(a->settings, "step");
    RP_TRY(rp_ranks_check(rp_settings_text(a->settings, "rank"), err));
    if (window && a->step)
        return rp_err_set(err, RP_USAGE, "'--step' and '--window' cannot be combined");
    a->has_window = window != NULL;
    RP_TRY(window ? rp_time_window_parse(window, &a->from_ns, &a->to_ns, err) : RP_OK);
    a->bulk_limited = a->row->bulk && !rp_settings_text(a->settings, "rank") &&
                      (!a->row->bulk->allows || a->row->bulk->allows(a->settings));
    a->several = rp_dataset_count(dataset) > 1;
    a->nothers = dataset->nskipped;
    return RP_OK;
}

void rp_query_release(struct rp_rank_query *a)
{
    rp_vec_release(&a->bulky);
    pthread_mutex_destroy(&a->lock);
}

static enum rp_code take_digest(void *user, size_t source, struct rp_input *in, struct rp_err *err)
{
    struct rp_rank_query *a = user;
    struct rp_arrival arrival = {
        .name = rp_sources_borrow(a->dataset->sources, source)->name, .source = source, .in = in};

    return rp_query_arrive(a, &arrival, err);
}

/* Makes slots of the ranks of all inputs. */
static enum rp_code read_ranks(struct rp_rank_query *a, struct rp_err *err)
{
    struct rp_rank_reading how = {
        .captures = &a->captures, .memory = a->row->memory, .digest = take_digest};

    if (a->row->memory)
        how.digest = NULL; /* digests do not contain what is read for this question */
    if (a->row->files)
        how.captures = NULL;
    else
        RP_TRY(rp_capture_files_find(&a->captures, a->ctx, a->dataset, err));
    RP_TRY(rp_each_rank_read(a->ctx, a->dataset, &how, make_part, a, err));
    RP_TRY(rp_query_unpack(a, err));
    if (!a->row->files)
        RP_TRY(make_capture_parts(a, 0, err));
    return a->run_of ? make_capture_parts(a, 1, err) : RP_OK;
}

/* ------------------------------------------------------------------ several processes */

static enum rp_code take_shard(void *user, size_t process, const char *bytes, size_t n,
                               struct rp_err *err)
{
    struct rp_rank_query *a = user;

    return rp_query_arrive(a,
                           &(struct rp_arrival){.name = "(another process)",
                                                .source = rp_dataset_count(a->dataset) + process,
                                                .checked = true,
                                                .bytes = (const uint8_t *)bytes,
                                                .n = n},
                           err);
}

/* A process that has sent its shard is done: the answer is that of process 0. */
static enum rp_code sent_away(struct rp_err *err)
{
    return rp_err_set(err, RP_CANCELLED, "the answer is made by process 0");
}

/* Processes that see the same files divide them; those of another node may have other files on
   their own disk. */
static enum rp_code divide_files(struct rp_rank_query *a, struct rp_digesting *d,
                                 struct rp_err *err)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_digest_head head;
    struct rp_digest_run run;
    enum rp_code code = rp_digest_describe(a->dataset, true, &arena, &head, &run, err);
    uint64_t list = code == RP_OK ? rp_hash_bytes(run.id, strlen(run.id)) : 0;

    rp_arena_release(&arena);
    RP_TRY(rp_team_agree(a->ctx->team, code, err));
    return rp_team_divide(a->ctx->team, list, &d->shard, &d->nshards, err);
}

/* Each process makes a digest of its shard, and process 0 gets them all. */
static enum rp_code read_together(struct rp_rank_query *a, struct rp_err *err)
{
    struct rp_team *team = a->ctx->team;
    struct rp_asked asked = {a->dataset->question, a->row, a->settings};
    struct rp_digesting d = {.ctx = a->ctx,
                             .dataset = a->dataset,
                             .asked = &asked,
                             .nasked = 1,
                             .run_of = a->run_of,
                             .sent = true};
    struct rp_out *out = NULL;
    const char *bytes = NULL;
    size_t n = 0;

    /* On one node each process takes the next file when it is done with one, so that all finish at
       the same time. */
    bool all;
    RP_TRY(divide_files(a, &d, err));
    RP_TRY(rp_team_share(a->ctx->team, &d.board, &all, err));
    d.dealt = all && d.nshards == rp_team_size(a->ctx->team);
    enum rp_code code = rp_out_open_memory(&out, err);
    if (code == RP_OK)
        code = rp_digest_make(&d, out, err);
    if (code == RP_OK)
        bytes = rp_out_borrow_memory(out, &n);
    code = rp_team_gather(team, code, bytes, n, take_shard, a, err);
    if (code == RP_OK && rp_team_rank(team))
        code = sent_away(err);
    if (code == RP_OK)
        code = rp_query_unpack(a, err);
    rp_team_forget(team);
    rp_out_abandon(out);
    RP_TRY(code);
    return a->slots.n ? RP_OK : rp_no_trace(a->dataset, 0, err);
}

static enum rp_code query_ranks(struct rp_rank_query *a, struct rp_ctx *ctx,
                                const struct rp_dataset *dataset, struct rp_result *result,
                                struct rp_err *err)
{
    enum rp_code code = rp_query_init(a, ctx, dataset, err);

    if (code == RP_OK && dataset->trust)
        dataset->trust->ranked = !a->row->files;
    if (code == RP_OK)
        code = rp_team_size(ctx->team) > 1 && !a->row->memory ? read_together(a, err)
                                                              : read_ranks(a, err);
    if (code == RP_OK)
        code = join_all(a, result, err);
    rp_capture_files_release(&a->captures);
    for (size_t i = 0; i < a->slots.n; i++) {
        rp_arena_adopt(&result->arena, &a->slots.at[i]->part.arena);
        rp_slot_free(a->slots.at[i]);
    }
    rp_vec_release(&a->slots);
    rp_query_release_arrivals(a);
    rp_query_release(a);
    return code;
}

enum rp_code rp_ask_ranks(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                          const struct rp_settings *settings, const struct rp_rank_row *row,
                          struct rp_result *result, struct rp_err *err)
{
    struct rp_rank_query a = {.ctx = ctx, .row = row, .settings = settings};

    return query_ranks(&a, ctx, dataset, result, err);
}

enum rp_code rp_ask_two_runs(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                             const uint8_t *run_of, const struct rp_settings *settings,
                             const struct rp_rank_row *row, struct rp_result *result,
                             struct rp_err *err)
{
    struct rp_rank_query a = {.ctx = ctx, .row = row, .settings = settings, .run_of = run_of};

    return query_ranks(&a, ctx, dataset, result, err);
}
