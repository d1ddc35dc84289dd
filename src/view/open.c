/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens a view. All traces of a run are read, several at a time, and stay in memory. The ranks and
 * their numbers are found as for questions (dataset/claims.h); their clocks are those that `merge`
 * finds.
 */
#include "dataset/claims.h"
#include "dataset/question.h"
#include "dataset/selection.h"
#include "explain/merge/merge.h"
#include "facts/times/step_times.h"
#include "trace/merged.h"
#include "view/view.h"

#include <stdlib.h>

int64_t rp_view_time(const struct rp_view_rank *rank, int64_t own_ns)
{
    return rp_ns_between(rank->origin_ns,
                         rank->clocked ? rp_clock_time(&rank->clock, own_ns) : own_ns);
}

int64_t rp_view_own_time(const struct rp_view_rank *rank, int64_t view_ns)
{
    int64_t ns = rp_ns_sum(rank->origin_ns, view_ns);

    return rank->clocked ? rp_clock_own_time(&rank->clock, ns) : ns;
}

/* ------------------------------------------------------------------ reading */

/* A trace that may be a rank. */
struct candidate {
    const struct rp_trace *trace;
    struct rp_trace *own;
    struct rp_sketch sketch;
    struct rp_digest *digest; /* NULL when the run has taken it */
    size_t source;
    uint32_t part;
    bool used; /* a rank of the view owns `own` */
};

struct opening {
    struct rp_view *view;
    struct rp_view_run *run;
    struct rp_dataset dataset; /* without progress, which only the caller's thread may report */
    struct rp_ctx quiet;
    struct rp_err *errors; /* by source */
    enum rp_code *codes;
    const char *wanted;
    RP_VEC(struct candidate) candidates;
};

static enum rp_code read_one(void *user, size_t i, struct rp_err *err)
{
    struct opening *o = user;
    struct rp_import *import = &o->run->imports[i];

    (void)err;
    o->codes[i] = rp_load_trace(&o->dataset, i, import, &o->errors[i]);
    if (o->codes[i] == RP_OK && import->trace)
        o->codes[i] = rp_trace_require(import->trace, RP_NEED_ALL, &o->errors[i]);
    return RP_OK;
}

static enum rp_code add_candidate(struct opening *o, size_t source, uint32_t part,
                                  const struct rp_trace *trace, struct rp_trace *own,
                                  struct rp_err *err)
{
    struct candidate c = {.trace = trace, .own = own, .source = source, .part = part};
    enum rp_code code = rp_vec_push(&o->candidates, c, err);

    if (code != RP_OK) {
        rp_trace_free(own);
        return code;
    }
    struct candidate *to = &o->candidates.at[o->candidates.n - 1];
    RP_TRY(rp_digest_new(trace, rp_dataset_borrow_name(&o->dataset, source), &to->digest, err));
    return rp_dataset_count(&o->dataset) > 1 || own ? rp_sketch_init(&to->sketch, trace, err)
                                                    : RP_OK; /* there is nothing to compare */
}

static enum rp_code split_merged(struct opening *o, size_t source, const struct rp_trace *whole,
                                 const struct rp_merged *merged, struct rp_err *err)
{
    for (size_t i = 0; i < merged->n; i++) {
        struct rp_trace *own = NULL;

        RP_TRY(rp_load_merged_rank(&o->dataset, whole, &merged->ranks[i], &own, err));
        RP_TRY(rp_trace_require(own, RP_NEED_ALL, err));
        RP_TRY(add_candidate(o, source, (uint32_t)i, own, own, err));
    }
    return RP_OK;
}

static enum rp_code take_source(struct opening *o, size_t i, struct rp_err *err)
{
    const struct rp_source *source = rp_sources_borrow(o->dataset.sources, i);
    const struct rp_trace *trace = o->run->imports[i].trace;
    struct rp_merged merged = {0};

    if (o->codes[i] != RP_OK && !source->found) {
        if (err)
            *err = o->errors[i];
        return o->codes[i];
    }
    if (o->codes[i] != RP_OK)
        return rp_vec_push(&o->view->notes,
                           rp_arena_textf(&o->view->arena, "not read: %s", o->errors[i].text), err);
    if (!trace || o->run->imports[i].beside_another)
        return RP_OK;
    RP_TRY(rp_merged_read(trace, &o->view->arena, &merged, err));
    return merged.n ? split_merged(o, i, trace, &merged, err)
                    : add_candidate(o, i, 0, trace, NULL, err);
}

static enum rp_code read_run(struct opening *o, struct rp_err *err)
{
    size_t n = rp_dataset_count(&o->dataset);

    o->run->imports = calloc(n + 1, sizeof *o->run->imports);
    o->errors = calloc(n + 1, sizeof *o->errors);
    o->codes = calloc(n + 1, sizeof *o->codes);
    RP_TRY(rp_err_need(o->run->imports && o->errors && o->codes, err, "opening a view"));
    o->run->nimports = n;
    RP_TRY(rp_pool_each(o->quiet.pool, n, read_one, o, err));
    for (size_t i = 0; i < n; i++)
        RP_TRY(take_source(o, i, err));
    return o->candidates.n ? RP_OK : rp_no_trace(&o->dataset, 0, err);
}

/* ------------------------------------------------------------------ ranks */

static const char *const verdict_texts[] = {[RP_VERDICT_RANK] = "",
                                            [RP_VERDICT_COPY] = "a copy of another recording",
                                            [RP_VERDICT_CLASH] =
                                                "another recording has the same rank",
                                            [RP_VERDICT_EMPTY] = "without an event",
                                            [RP_VERDICT_CUT] = "most of it may be missing"};

/* Decides which candidates are ranks; their digests go to the run. */
static enum rp_code settle_claims(struct opening *o, struct rp_err *err)
{
    size_t n = o->candidates.n;
    struct rp_claim *claims = RP_ARENA_NEW(&o->view->arena, struct rp_claim, n + 1);

    RP_TRY(rp_err_need(claims, err, "numbering ranks"));
    for (size_t i = 0; i < n; i++) {
        claims[i].digest = o->candidates.at[i].digest;
        claims[i].sketch = n > 1 ? &o->candidates.at[i].sketch : NULL;
    }
    RP_TRY(rp_claims_settle(claims, n, true, err));
    for (size_t i = 0; i < n; i++) {
        struct candidate *c = &o->candidates.at[i];

        if (claims[i].verdict == RP_VERDICT_RANK)
            RP_TRY(rp_run_add(o->run->run, &c->digest, i, err));
        else
            RP_TRY(rp_vec_push(&o->view->notes,
                               rp_arena_textf(&o->view->arena, "not shown: '%s': %s",
                                              rp_dataset_borrow_name(&o->dataset, c->source),
                                              verdict_texts[claims[i].verdict]),
                               err));
    }
    return rp_run_settle(o->run->run, err);
}

static enum rp_code add_rank(struct opening *o, const struct rp_rank *from, struct rp_err *err)
{
    struct candidate *c = &o->candidates.at[from->file];
    const struct rp_dataset *dataset = o->run->dataset;
    struct rp_view_rank rank = {.loaded = {.source = rp_sources_borrow(dataset->sources, c->source),
                                           .trace = c->trace,
                                           .format = o->run->imports[c->source].format->name,
                                           .index = c->source,
                                           .part = c->part,
                                           .dataset = dataset},
                                .trace = c->trace,
                                .own = c->own,
                                .digest = from->digest,
                                .path = rp_dataset_borrow_name(dataset, c->source),
                                .number = from->number,
                                .run = (uint8_t)(o->run - o->view->runs)};

    RP_TRY(rp_vec_push(&o->view->ranks, rank, err));
    c->used = true;
    o->run->n++;
    return rp_step_times(c->trace, &o->view->arena, &o->view->ranks.at[o->view->ranks.n - 1].steps,
                         err);
}

static enum rp_code add_ranks(struct opening *o, struct rp_err *err)
{
    RP_TRY(rp_ranks_check(o->wanted, err));
    RP_TRY(rp_run_new(&o->run->run, err));
    RP_TRY(settle_claims(o, err));

    const struct rp_sketch **sketches =
        RP_ARENA_NEW(&o->view->arena, const struct rp_sketch *, o->candidates.n + 1);
    struct rp_relation relation;
    RP_TRY(rp_err_need(sketches, err, "comparing traces"));
    for (size_t i = 0; i < o->candidates.n; i++)
        sketches[i] = o->candidates.n > 1 ? &o->candidates.at[i].sketch : NULL;
    RP_TRY(rp_run_check(o->run->run, sketches, &relation, err));
    o->run->unrelated = relation.unrelated;
    if (relation.why)
        RP_TRY(rp_vec_push(&o->view->notes, rp_arena_text(&o->view->arena, relation.why), err));
    const struct rp_run *run = o->run->run;
    o->run->first = o->view->ranks.n;
    for (size_t i = 0; i < run->ranks.n; i++)
        if (!o->wanted || rp_rank_wanted(o->wanted, run->ranks.at[i].number))
            RP_TRY(add_rank(o, &run->ranks.at[i], err));
    return o->run->n ? RP_OK
                     : rp_err_set(err, RP_USAGE, "there is no rank '%s'; the ranks are %d to %d",
                                  o->wanted, run->ranks.at[0].number,
                                  run->ranks.at[run->ranks.n - 1].number);
}

static void opening_release(struct opening *o)
{
    for (size_t i = 0; i < o->candidates.n; i++) {
        struct candidate *c = &o->candidates.at[i];

        rp_sketch_release(&c->sketch);
        rp_digest_free(c->digest);
        if (!c->used)
            rp_trace_free(c->own);
    }
    rp_vec_release(&o->candidates);
    free(o->errors);
    free(o->codes);
}

/* ------------------------------------------------------------------ one clock */

/* Time 0 is the first event of all ranks; if the clocks leave them far apart, or nothing ties them,
   it is the first event of each. */
static void set_origins(struct rp_view *view, struct rp_view_run *run)
{
    struct rp_view_rank *ranks = &view->ranks.at[run->first];
    int64_t first = INT64_MAX, last = INT64_MIN, longest = 0;

    for (size_t i = 0; i < run->n; i++) {
        const struct rp_totals *totals = &ranks[i].trace->totals;
        int64_t begin = rp_view_time(&ranks[i], totals->span_begin_ns);
        int64_t end = rp_view_time(&ranks[i], totals->span_end_ns);
        int64_t span = rp_ns_between(totals->span_begin_ns, totals->span_end_ns);

        first = begin < first ? begin : first;
        last = end > last ? end : last;
        longest = span > longest ? span : longest;
    }
    run->aligned = !run->unrelated && rp_ns_between(first, last) / 4 <= longest;
    for (size_t i = 0; i < run->n; i++) {
        if (!run->aligned)
            ranks[i].clocked = false;
        ranks[i].origin_ns = run->aligned ? first : ranks[i].trace->totals.span_begin_ns;
    }
}

static void find_end(struct rp_view *view)
{
    view->end_ns = 0;
    for (size_t i = 0; i < view->ranks.n; i++) {
        const struct rp_view_rank *rank = &view->ranks.at[i];
        int64_t end = rp_view_time(rank, rank->trace->totals.span_end_ns);

        view->end_ns = end > view->end_ns ? end : view->end_ns;
    }
}

bool rp_view_twin(const struct rp_view *view, uint32_t step, uint32_t *twin)
{
    const struct rp_trace *a = view->ranks.at[0].trace, *b;

    if (view->nruns < 2)
        return false;
    b = view->ranks.at[view->runs[1].first].trace;
    *twin = step;
    if (a->nsteps != b->nsteps)
        for (uint32_t i = 0; i < b->nsteps; i++)
            *twin = b->steps[i].number == a->steps[step].number ? i : *twin;
    return step < a->nsteps && *twin < b->nsteps;
}

void rp_view_align(struct rp_view *view, uint32_t step)
{
    const struct rp_view_rank *a = &view->ranks.at[0], *b;
    int64_t begin[2];
    uint32_t twin;

    if (!rp_view_twin(view, step, &twin))
        return;
    b = &view->ranks.at[view->runs[1].first];
    begin[0] = rp_view_time(a, a->steps[step].begin_ns);
    begin[1] = rp_view_time(b, b->steps[twin].begin_ns);
    for (size_t r = 0; r < 2; r++)
        for (size_t i = 0; i < view->runs[r].n; i++)
            rp_ns_add(&view->ranks.at[view->runs[r].first + i].origin_ns,
                      begin[r] < begin[1 - r] ? begin[r] - begin[1 - r] : 0);
    find_end(view);
}

static enum rp_code index_one(void *user, size_t i, struct rp_err *err)
{
    struct rp_view_rank *rank = &((struct rp_view *)user)->ranks.at[i];

    rank->lines = malloc(sizeof *rank->lines);
    RP_TRY(rp_err_need(rank->lines, err, "opening a trace"));
    RP_TRY(rp_line_source_init(rank->lines, &rank->loaded, NULL, err));
    return rp_view_index_init(&rank->index, rank->trace, err);
}

/* ------------------------------------------------------------------ opening */

static enum rp_code open_run(struct rp_view *view, const struct rp_dataset *dataset,
                             const char *wanted, struct rp_err *err)
{
    RP_SCOPED(opening_release)
    struct opening o = {.view = view,
                        .run = &view->runs[view->nruns++],
                        .dataset = *dataset,
                        .quiet = *dataset->ctx,
                        .wanted = wanted};

    o.run->dataset = dataset;
    o.run->explained = calloc(RP_VIEW_EXPLAINED, sizeof *o.run->explained);
    RP_TRY(rp_err_need(o.run->explained, err, "opening a view"));
    o.quiet.progress = NULL;
    o.dataset.ctx = &o.quiet;
    RP_TRY(read_run(&o, err));
    RP_TRY(add_ranks(&o, err));

    /* Find the clocks of `merge`, whose rows are in the order of the ranks. */
    struct rp_view_run *run = o.run;
    if (run->n >= 2 && !run->unrelated) {
        RP_TRY(rp_view_ask(view, run->first, run->n, &rp_ask_merge, 1, 0, NULL, 0, &run->alignment,
                           err));
        const struct rp_merge_root *root = run->alignment->root;
        for (size_t i = 0; i < run->n && root->nranks == run->n; i++) {
            view->ranks.at[run->first + i].clock = root->ranks[i].clock;
            view->ranks.at[run->first + i].clocked = true;
        }
    }

    set_origins(view, o.run);
    return RP_OK;
}

static enum rp_code open_all(struct rp_view *view, const struct rp_dataset *const *runs,
                             size_t nruns, const char *wanted, struct rp_err *err)
{
    for (size_t i = 0; i < nruns; i++)
        RP_TRY(open_run(view, runs[i], wanted, err));
    find_end(view);
    rp_view_align(view, 0);
    for (size_t i = 0; i < view->ranks.n; i++)
        view->nevents += view->ranks.at[i].trace->ev.n;
    RP_TRY(rp_pool_each(runs[0]->ctx->pool, view->ranks.n, index_one, view, err));
    return rp_arena_check(&view->arena, "opening a view", err);
}

enum rp_code rp_view_open(const struct rp_dataset *const *runs, size_t nruns,
                          const struct rp_view_options *options, struct rp_view **out,
                          struct rp_err *err)
{
    struct rp_view_options known = {0};
    struct rp_view *view;

    *out = NULL;
    if (options)
        rp_copy_view(&known, 0, sizeof known, options, options->struct_size);
    if (!nruns || nruns > 2)
        return rp_err_set(err, RP_USAGE, "a view shows one run or two, not %zu", nruns);
    view = calloc(1, sizeof *view);
    RP_TRY(rp_err_need(view, err, "opening a view"));
    rp_arena_init(&view->arena);
    view->comparison = RP_ARENA_NEW(&view->arena, struct rp_view_comparison *, 1);
    enum rp_code code = !view->comparison ? rp_err_nomem(err, "opening a view")
                                          : open_all(view, runs, nruns, known.ranks, err);
    if (code == RP_OK)
        *out = view;
    else
        rp_view_free(view);
    return code;
}

void rp_view_free(struct rp_view *view)
{
    if (!view)
        return;
    for (size_t i = 0; i < view->ranks.n; i++) {
        rp_view_index_release(&view->ranks.at[i].index);
        if (view->ranks.at[i].lines)
            rp_line_source_release(view->ranks.at[i].lines);
        free(view->ranks.at[i].lines);
        rp_trace_free(view->ranks.at[i].own);
    }
    rp_vec_release(&view->ranks);
    for (size_t r = 0; r < view->nruns; r++) {
        struct rp_view_run *run = &view->runs[r];

        for (size_t i = 0; i < run->nimports; i++)
            rp_import_release(&run->imports[i]);
        free(run->imports);
        rp_result_free(run->alignment);
        for (size_t i = 0; run->explained && i < RP_VIEW_EXPLAINED; i++) {
            rp_result_free(run->explained[i].answer);
            rp_out_abandon(run->explained[i].text);
        }
        free(run->explained);
        rp_run_free(run->run);
    }
    rp_vec_release(&view->notes);
    if (view->comparison)
        rp_view_comparison_free(*view->comparison);
    rp_arena_release(&view->arena);
    free(view);
}
