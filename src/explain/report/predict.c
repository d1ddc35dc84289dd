/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predicts what changes would bring with the model of `simulate`: the opportunities of a run
 * (sim/opportunities.h), and adds the same numbers to the advice of findings. The model of a rank
 * is made while its trace is in memory, if it may be needed (steps are marked, something is lost,
 * or Python frames were recorded, which slow the program down) and is not too large. Without it,
 * and for a part of a recording, advice names the what-if, and 'reprise simulate' answers it.
 *
 * Advice that brings nothing is left out, if there is other advice.
 */
#include "explain/findings/finding.h"
#include "explain/report/report.h"

#include "dataset/bulk.h"
#include "dataset/cut.h"
#include "result/print_units.h"
#include "sim/kernel_ratios.h"
#include "sim/model/chains.h"
#include "sim/opportunities.h"
#include "sim/predict.h"
#include "sim/simulate.h"

#include <math.h>
#include <string.h>

#define MOST_EVENTS     300000
#define MOST_ALL_EVENTS 2400000
#define MOST_RANKS      16
#define NODE            8
#define MOST_FINDINGS   4
#define MOST_WHATIFS    12
#define LEAST_LOST      0.02
#define LEAST_GAIN      0.005
#define STRAGGLER       "straggler=median"
#define KNOWN_EXACTLY   0.97
#define MOST_GAIN       3
#define MORE_GAIN       0.05
RP_LIMIT(MOST_EVENTS, "events of a rank",
         "beyond, changes are predicted from some of the steps, however few, as a note says");
#define SOME_EVENTS 100000
RP_LIMIT(SOME_EVENTS, "events of a rank",
         "beyond, of as many steps as have so many, if they are enough: a note says of which");
#define ENOUGH_STEPS 4
RP_LIMIT(ENOUGH_STEPS, "steps",
         "that tell how far steps differ; of fewer all are taken, if possible");
#define STANDS_FOR 0.01
RP_LIMIT(STANDS_FOR, "of a step",
         "steps whose mean differs by more from that of all steps do not stand for them: all are "
         "taken, if possible, so that 'simulate' says the same");
RP_LIMIT(MOST_ALL_EVENTS, "events of all ranks", "beyond, some ranks stand for the others");
RP_LIMIT(NODE, "ranks", "that may have as many events each; more ranks have them together");
RP_LIMIT(LEAST_LOST, "of the window",
         "with less and without steps no advice brings anything, and no time is spent on a model");
RP_LIMIT(LEAST_GAIN, "of the step", "advice that is predicted to bring less is not shown");
RP_LIMIT(KNOWN_EXACTLY, "of the gain",
         "steps differ by more than a least gain above it, which is not stated then");
RP_LIMIT(MOST_GAIN, "times the share of the finding",
         "and MORE_GAIN: a larger gain is not of this finding, and has no number at its advice");
RP_LIMIT(MORE_GAIN, "of the step", "the same, for small findings");
RP_LIMIT(MOST_RANKS, "ranks", "that stand for the others");
RP_LIMIT(MOST_FINDINGS, "findings", "whose advice is predicted: those on the screen");
RP_LIMIT(MOST_WHATIFS, "what-ifs",
         "of advice that are tried; later ones are named without a number");

/* ------------------------------------------------------------------ the model of a rank */

/* If changes are predicted, some ranks may represent the others; else all models are held. */
static bool is_too_large(const struct rp_trace *trace, bool changes)
{
    uint32_t ranks = trace->world_size > NODE && !changes ? (uint32_t)trace->world_size : NODE;

    return trace->ev.n > MOST_EVENTS / (ranks / NODE);
}

static bool is_worth_it(const struct rp_trace *trace, const struct rp_report_part *p, bool changes)
{
    int64_t lost = rp_ns_sum(p->b.idle_ns, p->b.exposed_comm_ns);

    if (p->limited)
        return false;
    if (!p->on_device)
        return p->recorded_steps && (changes || trace->world_size > 1);
    return (changes && p->recorded_steps) || p->workload.with_stack ||
           (double)lost >= LEAST_LOST * (double)p->b.window_ns;
}

enum rp_code rp_report_model(const struct rp_trace *trace, bool changes, struct rp_arena *arena,
                             struct rp_report_part *part, struct rp_err *err)
{
    struct rp_err why = RP_ERR_INIT;

    if (!is_worth_it(trace, part, changes))
        return RP_OK;
    part->too_large = is_too_large(trace, changes);
    if (part->too_large)
        return RP_OK;
    enum rp_code code = rp_sim_part_init(&part->sim, trace, arena, &why);
    if (code == RP_OK)
        code = rp_sim_chains_join(&part->sim, &why);
    rp_arena_adopt(arena, &part->sim.graph.arena);
    part->modelled = code == RP_OK;
    if (code == RP_OK)
        return RP_OK;
    rp_sim_part_release(&part->sim);
    memset(&part->sim, 0, sizeof part->sim);
    return code == RP_NOMEM ? rp_err_nomem(err, "simulating") : RP_OK;
}

/* The mean of n steps, in ns. */
static double mean_step(const struct rp_trace *t, uint32_t first, uint32_t n)
{
    double sum = 0;

    for (uint32_t i = first; i < first + n; i++)
        sum += (double)rp_ns_between(t->steps[i].begin_ns, t->steps[i].end_ns);
    return sum / n;
}

/* The first step is left out: it warms up. */
static bool stand_for_all(const struct rp_trace *t, uint32_t first, uint32_t n)
{
    double all = mean_step(t, 1, t->nsteps - 1);

    return fabs(mean_step(t, first, n) - all) <= STANDS_FOR * all;
}

/* Takes steps from the middle on, because the first ones warm up. Their number is a power of two,
   so that ranks with about equally many events take the same; 0: all. */
static uint32_t some_steps(const struct rp_trace *t, uint32_t *first)
{
    uint32_t n = 1;

    *first = t->nsteps / 2;
    if (!t->nsteps || t->ev.n <= SOME_EVENTS || t->ev.n / t->nsteps > MOST_EVENTS)
        return 0;
    while (2 * n <= t->nsteps - *first && (uint64_t)t->ev.n * 2 * n / t->nsteps <= SOME_EVENTS)
        n *= 2;
    return (n < ENOUGH_STEPS || !stand_for_all(t, *first, n)) && !is_too_large(t, true) ? 0 : n;
}

/* The model of a large recording is one of some of its steps. */
static enum rp_code model_steps(const struct rp_loaded *loaded, uint32_t first, uint32_t n,
                                struct rp_rank_part *part, struct rp_err *err)
{
    struct rp_report_part *out = part->data;
    struct rp_trace_cut cut = {.asked = true, .has_steps = true};
    struct rp_loaded steps = *loaded;
    struct rp_trace *trace = NULL;

    out->model_first = cut.first_step = loaded->trace->steps[first].number;
    out->model_steps = cut.nsteps = n;
    RP_TRY(rp_trace_require(loaded->trace, RP_NEED_ALL, err));
    RP_TRY(rp_trace_cut_make(&cut, loaded->trace, loaded->source->name, NULL, &trace, err));
    steps.trace = trace;
    enum rp_code code = rp_report_model(trace, true, &part->arena, out, err);
    if (code == RP_OK && out->modelled)
        code = rp_sim_part_ask_model(&out->sim, &steps, NULL, err);
    rp_trace_free(trace);
    return code;
}

static enum rp_code make_model(const struct rp_loaded *loaded, const struct rp_settings *settings,
                               struct rp_rank_part *part, struct rp_err *err)
{
    struct rp_report_part *out = part->data;
    uint32_t first, n;

    if (rp_settings_flag(settings, "no-simulate"))
        return RP_OK;
    n = some_steps(loaded->trace, &first);
    if (n && is_worth_it(loaded->trace, out, true))
        return model_steps(loaded, first, n, part, err);
    RP_TRY(rp_report_model(loaded->trace, true, &part->arena, out, err));
    return out->modelled ? rp_sim_part_ask_model(&out->sim, loaded, NULL, err) : RP_OK;
}

static bool has_model(const void *data)
{
    return ((const struct rp_report_part *)data)->modelled;
}

static void drop_model(void *data)
{
    struct rp_report_part *part = data;

    rp_sim_part_drop(&part->sim);
    part->modelled = false;
}

const struct rp_rank_bulk rp_report_bulk = {.events_most = MOST_ALL_EVENTS,
                                            .ranks_most = MOST_RANKS,
                                            .has = has_model,
                                            .drop = drop_model,
                                            .make = make_model};

/* ------------------------------------------------------------------ predictions */

/* What the model says. */
struct numbers {
    size_t nmore;
    const char *more[MOST_WHATIFS]; /* what-ifs of advice */
    struct rp_changes changes;
    struct rp_opportunities list;
    struct rp_sim_now now;
    double absent;       /* rp_worlds_absent */
    bool cost_known;     /* that of recording: measured */
    bool costs;          /* ... estimated, or measured */
    const char *doubted; /* why no gain is certain, or NULL */
};

static bool is_listed(const struct numbers *w, const char *text)
{
    size_t i;

    for (i = 0; i < w->nmore && strcmp(w->more[i], text) != 0; i++)
        ;
    return i < w->nmore;
}

/* Whether the gain of a text is certain, because it is about the what-if of an opportunity, or the
   finding itself uses the model. */
static bool is_sure(const struct numbers *w, const struct rp_change *c)
{
    if (!strcmp(c->text, STRAGGLER))
        return true;
    for (size_t i = 0; i < w->list.n; i++)
        if (w->list.at[i].row == c->row)
            return true;
    return false;
}

/* The nth what-if in "bucket=5MB|25MB", in the arena; NULL if there are fewer. */
static const char *nth_what_if(struct rp_arena *arena, const char *all, size_t nth)
{
    const char *value = strchr(all, '='), *at = value ? value + 1 : all;

    if (!strchr(all, '|'))
        return nth ? NULL : all;
    for (; nth > 0 && at; nth--) {
        at = strchr(at, '|');
        at = at ? at + 1 : NULL;
    }
    return at ? rp_arena_textf(arena, "%.*s%.*s", (int)(value + 1 - all), all,
                               (int)strcspn(at, "|"), at)
              : NULL;
}

static void list_what_ifs(struct rp_arena *arena, const struct rp_report_root *out,
                          struct numbers *w)
{
    for (size_t i = 0; i < out->nfindings && i < MOST_FINDINGS; i++)
        for (size_t k = 0; k < out->findings[i].ntries; k++) {
            const char *all = out->findings[i].tries[k].what_if, *text;

            for (size_t nth = 0; all && (text = nth_what_if(arena, all, nth)) != NULL; nth++)
                if (w->nmore < MOST_WHATIFS && !is_listed(w, text))
                    w->more[w->nmore++] = text;
        }
}

/* Whether the what-if of a text does not apply to this recording. */
static bool is_refused(const struct numbers *w, const char *text)
{
    const struct rp_change *c = text ? rp_changes_find(&w->changes, text) : NULL;

    return c && c->verdict == RP_WHATIF_NOT;
}

/* Predicts the what-if that brings most among several. A gain far above the finding's cost is not
   attributed to it, because the what-if removes other host work, too. A gain that may be zero gets
   no number. */
static void predict_try(struct rp_arena *arena, struct rp_report_try *t, double share,
                        const struct numbers *w)
{
    const struct rp_change *best = NULL, *c;
    const char *all = t->what_if, *text;

    t->refused = is_refused(w, all);
    t->what_if = NULL; /* if the recording does not allow it */
    for (size_t nth = 0; all && (text = nth_what_if(arena, all, nth)) != NULL; nth++) {
        c = rp_changes_find(&w->changes, text);
        if (c && c->alone_ns != RP_ABSENT_I64 && (!best || c->alone_ns < best->alone_ns))
            best = c;
    }
    if (!best)
        return;
    double change = (double)(best->alone_ns - w->now.unprofiled_ns) / (double)w->now.unprofiled_ns;
    if (t->look && change > -LEAST_GAIN)
        return;
    if (-change > MOST_GAIN * share + MORE_GAIN) {
        t->beyond = best->text;
        return;
    }
    t->what_if = best->text;
    if (change <= -RP_OPPORTUNITY_LEAST && !is_sure(w, best))
        return;
    t->step_ns = w->now.unprofiled_ns;
    t->predicted_ns = best->alone_ns;
    t->change_ratio = change;
}

/* Whether one of the first n findings has that advice. */
static bool was_given(const struct rp_report_root *out, size_t n, const char *topic)
{
    for (size_t i = 0; topic && i < n; i++)
        for (size_t k = 0; k < out->findings[i].ntries; k++)
            if (out->findings[i].tries[k].topic && !strcmp(out->findings[i].tries[k].topic, topic))
                return true;
    return false;
}

/* Whether some advice of a finding is predicted to bring something. */
static bool brings_something(const struct rp_report_finding *f)
{
    for (size_t i = 0; i < f->ntries; i++)
        if (f->tries[i].change_ratio <= -LEAST_GAIN)
            return true;
    return false;
}

/* Adds numbers to a finding's advice; leaves out what brings nothing, and what an earlier finding
   says already. The first advice stays if nothing else is known to help. */
static void predict_finding(struct rp_arena *arena, struct rp_report_root *out, size_t at,
                            const struct numbers *w)
{
    struct rp_report_finding *f = &out->findings[at];
    size_t i, kept = 0, first = 0;

    for (i = 0; i < f->ntries; i++)
        predict_try(arena, &f->tries[i], f->share, w);
    while (first + 1 < f->ntries &&
           (f->tries[first].refused || was_given(out, at, f->tries[first].topic)))
        first++;
    for (i = 0; i < f->ntries; i++) {
        bool useless = f->tries[i].change_ratio > -LEAST_GAIN;

        if ((i == first && !(useless && brings_something(f))) ||
            (!useless && !f->tries[i].refused && !was_given(out, at, f->tries[i].topic)))
            f->tries[kept++] = f->tries[i];
    }
    if (!kept && f->ntries)
        f->tries[kept++] = f->tries[first];
    f->ntries = kept;

    /* Advice with a number is sorted by what it brings; the rest keeps its place. */
    for (size_t m = 0; m < f->ntries; m++)
        for (size_t k = m + 1; k < f->ntries; k++)
            if (f->tries[k].change_ratio < f->tries[m].change_ratio) {
                struct rp_report_try t = f->tries[k];

                f->tries[k] = f->tries[m];
                f->tries[m] = t;
            }
}

/* Whether the host is so often late that a step depends on what recording costs. */
static bool is_late(const struct rp_report_part *part)
{
    return (double)part->late_ns >= RP_SIM_DISTORTED * (double)part->whole.window_ns;
}

/* Writes "about 1.01 s of 1.20 s a step". If ranks that were not given are waited for, the profiler
   may cost less than it costs this one. What our recorder costs is hardly ever overestimated. */
static void say_distortion(const struct rp_ranks *ranks, struct rp_arena *arena,
                           const struct numbers *w, struct rp_report_root *out)
{
    const struct rp_sim_now *now = &w->now;
    const struct rp_report_part *part = rp_report_part_of(ranks, 0);
    const char *unit = part->nsteps ? " a step" : "";
    bool most = rp_report_is_ours(part) && !w->cost_known;

    if (w->absent < RP_SIM_DISTORTED)
        out->unprofiled_ns = now->unprofiled_ns;
    if (!w->costs && part->on_device && is_late(part))
        out->profiler_text = rp_arena_textf(
            arena,
            "its cost is not known: without it at most %s%s, from which changes are predicted",
            rp_units_time(arena, now->step_ns), unit);
    if (now->unprofiled_ns > now->step_ns || !rp_sim_is_distorted(now))
        return;
    out->profiler_text =
        out->unprofiled_ns == RP_ABSENT_I64
            ? rp_arena_textf(arena,
                             "without the profiler between %s and %s%s, depending on ranks that "
                             "were not given",
                             rp_units_time(arena, now->unprofiled_ns),
                             rp_units_time(arena, now->step_ns), unit)
            : rp_arena_textf(arena,
                             "costs %s %s%s: without it %s %s, from which changes are "
                             "predicted; %s is partly its cost",
                             most ? "at least" : "about",
                             rp_units_time(arena, now->step_ns - now->unprofiled_ns), unit,
                             most ? "at most" : "about", rp_units_time(arena, now->unprofiled_ns),
                             part->on_device ? "idle time before launches"
                                             : "time in and between operators");
}

/* Lists the parts of the ranks; false if one that should have a model has none. */
static bool list_parts(const struct rp_ranks *ranks, const struct rp_sim_part **out, size_t *n)
{
    *n = ranks->chosen ? ranks->nchosen : ranks->n;
    for (size_t i = 0; i < *n; i++) {
        const struct rp_report_part *part =
            rp_report_part_of(ranks, ranks->chosen ? ranks->chosen[i] : i);

        if (!part->modelled)
            return false;
        out[i] = &part->sim;
    }
    return *n;
}

/* The cost of a late rank must be the same number here and in 'simulate'. If the model says much
   less than the ranks waited, it does not know why they wait, and the delay remains as an upper
   limit. */
static void settle_straggler(struct rp_report_root *out, const struct numbers *w)
{
    const struct rp_change *c = rp_changes_find(&w->changes, STRAGGLER);

    if (!c || c->alone_ns == RP_ABSENT_I64)
        return;
    double gain = (double)(w->now.unprofiled_ns - c->alone_ns) / (double)w->now.unprofiled_ns;
    for (size_t i = 0; i < out->nfindings; i++) {
        struct rp_report_finding *f = &out->findings[i];

        if (f->settled || !f->row->replaced_by || 2 * gain < f->share)
            continue;
        f->lost_ns = llround(gain / f->share * (double)f->lost_ns);
        f->share = gain;
        f->at_most = false;
    }
}

/* Predicts every change alone and keeps those that are worth it; none if the model does not
   reproduce the recording. */
static enum rp_code ask_worlds(struct rp_worlds *x, bool predictable, struct rp_arena *arena,
                               struct numbers *w, bool *found, struct rp_err *err)
{
    const struct rp_changes_asked asked = {.nmore = w->nmore, .more = w->more};

    w->now = (struct rp_sim_now){x->recorded_ns, x->simulated_ns, x->step_ns};
    w->absent = rp_worlds_absent(x);
    w->costs = x->costs;
    w->cost_known = x->run.cost_known && !x->run.cost_flat;
    w->doubted = rp_worlds_distrust(x);
    *found = rp_sim_reproduces(&w->now);
    if (!*found || !predictable)
        return RP_OK;
    RP_TRY(rp_changes_try(x, &asked, arena, &w->changes, err));
    return rp_opportunities_find(x, &w->changes, arena, &w->list, err);
}

static enum rp_code find_numbers(const struct rp_ranks *ranks, struct rp_arena *arena,
                                 const struct rp_report_root *out, struct numbers *w, bool *found,
                                 struct rp_err *err)
{
    const struct rp_sim_part **parts =
        RP_ARENA_NEW(arena, const struct rp_sim_part *, ranks->n + 1);
    struct rp_err why = RP_ERR_INIT;
    struct rp_worlds x;
    size_t n;

    *found = false;
    RP_TRY(rp_err_need(parts, err, "simulating"));
    if (!list_parts(ranks, parts, &n))
        return RP_OK;
    enum rp_code code = rp_worlds_init(&x, parts, n, ranks->weights, &why);
    x.pool = ranks->pool;
    if (code == RP_OK)
        code = ask_worlds(&x, out->predictable, arena, w, found, &why);
    rp_worlds_release(&x);
    if (code == RP_NOMEM)
        return rp_err_nomem(err, "simulating");
    *found &= code == RP_OK;
    return RP_OK;
}

/* ------------------------------------------------------------------ opportunities */

/* Whether a text is about a what-if. */
static bool is_of(const char *text, const char *name)
{
    size_t len = strlen(name);

    return text && !strncmp(text, name, len) &&
           !strchr("abcdefghijklmnopqrstuvwxyz-", text[len] ? text[len] : '=');
}

/* The finding that a change solves: the first that advises it, or NULL. Advice to use fewer bits
   includes tf32. */
static const char *finding_of(const struct rp_report_root *out, const struct rp_whatif *row,
                              bool *beyond)
{
    const char *name = !strcmp(row->name, "tf32") ? "dtype" : row->name;

    for (size_t i = 0; i < out->nfindings; i++)
        for (size_t k = 0; k < out->findings[i].ntries; k++) {
            const struct rp_report_try *t = &out->findings[i].tries[k];

            *beyond = is_of(t->beyond, name);
            if (*beyond || is_of(t->what_if, name))
                return out->findings[i].id;
        }
    return NULL;
}

/* Why a change applies, according to the log of torch.compile: breaks, skipped graphs. */
static const char *because_of(struct rp_arena *arena, const struct rp_report_root *out,
                              const struct rp_opportunity *o)
{
    const char *because = o->because, *name = o->row->name;

    if (strcmp(name, "cuda-graphs") != 0 && strcmp(name, "compile") != 0)
        return because;
    for (size_t i = 0; i < out->nfindings; i++) {
        const struct rp_report_finding *f = &out->findings[i];

        if (f->row == &rp_finding_compile && f->nevidence)
            because = rp_arena_textf(arena, "%s%s%s: %s", because ? because : "",
                                     because ? "; " : "", f->title, f->evidence[0]);
    }
    return because;
}

static void list_opportunities(struct rp_arena *arena, const struct numbers *w,
                               struct rp_report_root *out)
{
    size_t n = w->list.n + w->list.nrefused;

    out->opportunities = RP_ARENA_NEW(arena, struct rp_report_opportunity, n + 1);
    for (size_t i = 0; i < n && out->opportunities; i++) {
        const struct rp_opportunity *o = &w->list.at[i];
        bool beyond = false;
        const char *finding = i < w->list.n ? finding_of(out, o->row, &beyond) : NULL;

        out->napplying += i < w->list.n;
        out->opportunities[out->nopportunities++] =
            (struct rp_report_opportunity){.what_if = o->what_if,
                                           .gain_ns = o->gain_ns,
                                           .gain_low_ns = o->gain_low_ns,
                                           .gain_high_ns = o->gain_high_ns,
                                           .step_ns = o->step_ns,
                                           .finding = finding,
                                           .beyond = beyond,
                                           .effort = o->effort,
                                           .tries = o->tries,
                                           .applies = o->applies,
                                           .because = because_of(arena, out, o),
                                           .apply = o->apply,
                                           .assumes = o->assumes};
    }
}

/* If a change gains more than its finding costs, says what else it gains: the first finding about
   work of the host, which then overlaps that of the device. */
static const char *hidden_text(struct rp_arena *arena, const struct rp_report_root *out,
                               const struct rp_report_opportunity *o)
{
    for (size_t i = 0; o->beyond && i < out->nfindings; i++)
        if (out->findings[i].row->of_host)
            return rp_arena_textf(arena, ", and hides %s behind the device's work",
                                  out->findings[i].id);
    return o->beyond ? ", and hides other work of the host" : "";
}

/* Writes "cuda-graphs: 27.3 ms → 18.4 ms a step (-32.6 %, at least 8.1 ms less); addresses
   launch-bound". If the error of a prediction is not known (one step, a profiler of unknown cost),
   no least gain is stated. */
static const char *help_text(struct rp_arena *arena, const struct rp_report_root *out,
                             const struct rp_report_opportunity *o, int64_t step_ns)
{
    const char *least =
        (double)o->gain_low_ns > KNOWN_EXACTLY * (double)o->gain_ns
            ? ""
            : rp_arena_textf(arena, ", at least %s less", rp_units_time(arena, o->gain_low_ns));
    const char *tries = o->tries ? rp_arena_textf(arena, ", by %lld measured tries on this machine",
                                                  (long long)o->tries)
                                 : "";

    return rp_arena_textf(arena, "%s%s: %s → %s a step (-%.1f %%%s%s)%s%s%s", o->what_if,
                          o->applies && !strcmp(o->applies, "part") ? ", of pieces of a step" : "",
                          rp_units_time(arena, step_ns), rp_units_time(arena, o->step_ns),
                          100 * (double)o->gain_ns / (double)step_ns, least, tries,
                          o->finding ? "; addresses " : "", o->finding ? o->finding : "",
                          hidden_text(arena, out, o));
}

/* Says what a change would bring to the most costly finding if its gain were certain. */
static const char *unsure_text(struct rp_arena *arena, const struct numbers *w,
                               const struct rp_report_finding *f)
{
    for (size_t i = 0; w->doubted && i < f->ntries; i++) {
        const struct rp_change *c =
            f->tries[i].what_if ? rp_changes_find(&w->changes, f->tries[i].what_if) : NULL;

        if (c && c->alone_ns != RP_ABSENT_I64 &&
            (double)c->alone_ns < (1 - RP_OPPORTUNITY_LEAST) * (double)w->now.unprofiled_ns)
            return rp_arena_textf(arena, " (%s: %s → %s a step, not sure: %s)", c->text,
                                  rp_units_time(arena, w->now.unprofiled_ns),
                                  rp_units_time(arena, c->alone_ns), w->doubted);
    }
    return "";
}

/* If no change can be predicted for the most costly finding, refers the reader to that finding. */
static const char *no_help_text(struct rp_arena *arena, const struct numbers *w,
                                const struct rp_report_root *out)
{
    static const char none[] = "none of those that can be predicted brings 1 % of a step for sure";

    if (!out->nfindings || out->findings[0].lost_ns <= 0)
        return none;
    return rp_arena_textf(arena, "%s; %s below costs most, %s%.1f %%%s", none, out->findings[0].id,
                          out->findings[0].at_most ? "up to " : "", 100 * out->findings[0].share,
                          unsure_text(arena, w, &out->findings[0]));
}

/* If the most costly finding has no predictable change and costs more than the first change gains,
   refers the reader to that finding, too. */
static const char *but_text(struct rp_arena *arena, const struct rp_report_root *out,
                            int64_t step_ns)
{
    const struct rp_report_finding *f = out->findings;

    if (!out->nfindings || !out->napplying || f->at_most || f->lost_ns <= 0 ||
        f->share <= (double)out->opportunities[0].gain_ns / (double)step_ns)
        return "";
    for (size_t i = 0; i < out->napplying; i++)
        if (out->opportunities[i].finding && !strcmp(out->opportunities[i].finding, f->id))
            return "";
    return rp_arena_textf(arena, "; %s below costs more, %.1f %%", f->id, 100 * f->share);
}

static bool is_any_possible(const struct rp_changes *changes)
{
    for (size_t i = 0; i < changes->n; i++)
        if (changes->at[i].alone_ns != RP_ABSENT_I64)
            return true;
    return false;
}

/* Names the three changes that would help most. */
static void say_helps(struct rp_arena *arena, const struct numbers *w, struct rp_report_root *out)
{
    const char **const lines[] = {&out->help_text, &out->help2_text, &out->help3_text};

    for (size_t i = 0; i < out->napplying && i < sizeof lines / sizeof lines[0]; i++)
        *lines[i] = help_text(arena, out, &out->opportunities[i], w->now.unprofiled_ns);
    if (out->napplying)
        out->help_text = rp_arena_textf(arena, "%s%s", out->help_text,
                                        but_text(arena, out, w->now.unprofiled_ns));
    if (out->napplying || !is_any_possible(&w->changes))
        return;
    out->help_text =
        w->absent < RP_SIM_DISTORTED
            ? no_help_text(arena, w, out)
            : rp_arena_textf(arena,
                             "none is sure to bring 1 %% of a step: during %.1f %% of the time "
                             "ranks that were not given may be waited for",
                             100 * w->absent);
}

enum rp_code rp_report_predict(const struct rp_ranks *ranks, const struct rp_chain *chain,
                               bool simulate, struct rp_arena *arena, struct rp_report_root *out,
                               struct rp_err *err)
{
    struct numbers w = {0};
    bool found = false;

    out->unprofiled_ns = RP_ABSENT_I64;
    list_what_ifs(arena, out, &w);
    if (simulate)
        RP_TRY(find_numbers(ranks, arena, out, &w, &found, err));
    if (found) {
        say_distortion(ranks, arena, &w, out);
        settle_straggler(out, &w);
        RP_TRY(rp_findings_find_changes(ranks, chain, &w.list, arena, out, err));
    }
    for (size_t i = 0; i < out->nfindings; i++) {
        struct rp_report_finding *f = &out->findings[i];

        if (found && i < MOST_FINDINGS)
            predict_finding(arena, out, i, &w);
        for (size_t k = 0; k < f->ntries; k++) {
            /* Replace "{}" by the number of the what-if, or without a prediction by N. Of several
               what-ifs, the middle one stays as an example. */
            struct rp_report_try *t = &f->tries[k];
            const char *at = strstr(t->text, "{}"), *value = NULL;
            int len = 1;

            if (!isnan(t->change_ratio) && (value = strchr(t->what_if, '=')) != NULL)
                len = (int)strspn(value + 1, "0123456789.");
            if (at)
                t->text = rp_arena_textf(arena, "%.*s%.*s%s", (int)(at - t->text), t->text, len,
                                         value ? value + 1 : "N", at + 2);
            if (t->what_if && strchr(t->what_if, '|'))
                t->what_if = nth_what_if(arena, t->what_if, 2);
        }
        rp_findings_join_hint(arena, f);
    }
    if (found) {
        list_opportunities(arena, &w, out);
        say_helps(arena, &w, out);
    }
    return rp_arena_check(arena, "simulating", err);
}
