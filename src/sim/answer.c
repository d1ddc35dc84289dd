/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the model: first as recorded, then without the profiler, then once for each what-if with the
 * profiler (to compare with a recording) and without it (the prediction). The interval covers the
 * predictions if the profiler cost half, or half as much again, and if the unknown properties of
 * the transport are different; it is widened by how far the recorded steps differ. The interval of
 * the change compares the step with and without the what-if under each of these assumptions,
 * because most unknowns change both alike.
 */
#include "sim/simulate.h"

#include "result/print_units.h"
#include "sim/engine/resimulate.h"
#include "sim/learned.h"
#include "sim/model/profiler_cost.h"
#include "sim/model/steps.h"
#include "sim/model/transport.h"
#include "sim/whatif/nodes.h"
#include "sim/worlds.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The run without a what-if, with the profiler's cost removed `factor` times. What-ifs start from
   it, and only what they change is simulated again. */
struct base {
    double factor;
    bool made;
    struct rp_resim resim;
};

struct answer_ctx {
    struct rp_sim_run run;
    const struct rp_sim_asked *asked;
    bool alike; /* ranks with equal parts are simulated once */
    struct base bases[2];
    struct rp_sim_result result;     /* of other factors */
    const struct rp_sim_result *now; /* of the latest run */
    struct rp_sim_answer *out;
    struct rp_arena *arena;
    struct rp_expand expand;
    size_t expanded, whole;  /* collectives expanded and left whole in the latest run */
    bool wants_path;         /* the next run fills path */
    bool by_rank;            /* ... and by_rank */
    int64_t distance_ns;     /* from the latest run (rp_sim_steps) */
    struct rp_sim_path path; /* from the latest run that was asked for it */
    bool costs;              /* recording had a cost, so a run without it differs */
    bool cost_known;         /* the profiler's cost was measured or given */
    bool flat;               /* the step hardly depends on that cost */
    bool unknown;            /* nothing tells how far a prediction may be off */
    bool on_threads;         /* threads carry the collectives */
    bool leant;              /* a what-if depended on unknown properties of the transport */
    int64_t base_low_cost_ns,
        base_high_cost_ns;                  /* the unchanged step with another profiler's cost */
    int64_t base_slower_ns, base_faster_ns; /* ... and with another transport */
    struct rp_outcomes outcomes;
    struct rp_trace **trace; /* where the next run is stored as a trace, or NULL */
};

static struct base *base_of(struct answer_ctx *a, double factor)
{
    for (size_t i = 0; i < sizeof a->bases / sizeof a->bases[0]; i++)
        if (a->bases[i].factor == factor)
            return &a->bases[i];
    return NULL;
}

/* Runs with the profiler's cost removed `factor` times and a what-if (or NULL) applied. Expanded
   collectives differ with every what-if, so such a run starts from nothing. */
static enum rp_code run_with(struct answer_ctx *a, double factor, const char *whatif,
                             struct rp_err *err)
{
    bool few = a->expand.shape == RP_EXPAND_WHOLE && a->run.tasks.tasks.n <= RP_WORLDS_TASKS_MOST;
    struct base *base = few ? base_of(a, factor) : NULL;
    size_t mark = rp_overlay_mark(&a->run.overlay);

    if (factor > 0) {
        RP_TRY(rp_sim_cost_drop(&a->run, factor, err));
        a->costs = rp_overlay_mark(&a->run.overlay) > mark;
    }
    if (base && !base->made) {
        base->made = true;
        RP_TRY(rp_resim_init(&base->resim, &a->run.overlay, err));
    }
    if (whatif)
        RP_TRY(rp_whatif_apply(&a->run, whatif, err));
    RP_TRY(rp_sim_expand(&a->run, &a->expand, &a->expanded, &a->whole, err));
    a->now = base ? &base->resim.result : &a->result;
    return base ? rp_resim_update(&base->resim, err)
                : rp_simulate(&a->run.overlay, &a->result, err);
}

static enum rp_code step_as_measured(struct answer_ctx *a, double factor, const char *whatif,
                                     int64_t *out, struct rp_err *err)
{
    size_t mark = rp_overlay_mark(&a->run.overlay);
    struct rp_sim_steps steps = {0};

    memset(a->run.gone.at, 0, a->run.gone.n);
    a->run.dropped = false;
    a->run.edges_factor = 1;
    a->run.way = RP_WAY_ANY;
    a->run.leans = 0;
    a->run.uses_transport = false;
    a->run.latency_doubt = a->run.rate_doubt = NULL;
    enum rp_code code = run_with(a, factor, whatif, err);
    if (code == RP_OK)
        code = rp_sim_steps_init(&steps, &a->run, a->now, err);
    *out = steps.step_ns;
    a->distance_ns = steps.distance_ns;
    if (code == RP_OK && a->wants_path)
        code = rp_sim_path(&a->run, a->now, &steps, &a->path, err);
    if (code == RP_OK && a->by_rank)
        code = rp_sim_by_rank(&a->run, a->now, a->arena, a->out, err);
    if (code == RP_OK && a->trace)
        code = rp_sim_trace_new(&a->run, a->now, &steps, a->trace, err);
    rp_sim_steps_release(&steps);
    a->trace = NULL;
    a->wants_path = a->by_rank = false;
    rp_overlay_undo(&a->run.overlay, mark);
    return code;
}

/* The same, but a what-if that only makes work longer makes no step shorter, and vice versa: it may
   be measured otherwise if the host is ahead of the device in some of the recorded steps. What the
   what-if says about itself stays in the run. */
static enum rp_code step_with(struct answer_ctx *a, double factor, const char *whatif, int64_t *out,
                              struct rp_err *err)
{
    struct rp_sim_run *run = &a->run;
    int64_t without, distance_ns;

    RP_TRY(step_as_measured(a, factor, whatif, out, err));
    distance_ns = a->distance_ns;
    if (whatif && run->way != RP_WAY_ANY) {
        const unsigned leans = run->leans;
        const bool uses_transport = run->uses_transport;
        const char *latency_doubt = run->latency_doubt, *rate_doubt = run->rate_doubt;
        const enum rp_sim_way way = run->way;

        RP_TRY(step_as_measured(a, factor, NULL, &without, err));
        run->leans = leans;
        run->uses_transport = uses_transport;
        run->latency_doubt = latency_doubt;
        run->rate_doubt = rate_doubt;
        run->way = way;
        if ((way == RP_WAY_LONGER) != (*out > without)) {
            *out = without;
            distance_ns = a->distance_ns;
        }
        a->distance_ns = distance_ns;
    }
    return RP_OK;
}

static double ratio(int64_t part, int64_t whole)
{
    return whole ? (double)part / (double)whole : NAN;
}

/* ------------------------------------------------------------------ the baseline */

/* An interval that is being widened. */
struct interval {
    int64_t predicted_ns, base_ns; /* with the what-if, and without it */
    int64_t low_ns, high_ns;
    double low_ratio, high_ratio; /* of the two */
    double most;                  /* the largest deviation so far, as a part of predicted_ns */
    const char *why;              /* ... and its reason */
};

static struct interval interval_begin(int64_t predicted_ns, int64_t base_ns)
{
    double now = ratio(predicted_ns, base_ns);

    return (struct interval){.predicted_ns = predicted_ns,
                             .base_ns = base_ns,
                             .low_ns = predicted_ns,
                             .high_ns = predicted_ns,
                             .low_ratio = now,
                             .high_ratio = now};
}

/* Includes the two steps under an assumption. */
static void interval_include(struct interval *x, int64_t step_ns, int64_t base_ns, const char *why)
{
    double off = fabs(ratio(step_ns - x->predicted_ns, x->predicted_ns));
    double now = ratio(step_ns, base_ns);

    x->low_ns = step_ns < x->low_ns ? step_ns : x->low_ns;
    x->high_ns = step_ns > x->high_ns ? step_ns : x->high_ns;
    x->low_ratio = now < x->low_ratio ? now : x->low_ratio;
    x->high_ratio = now > x->high_ratio ? now : x->high_ratio;
    if (off > x->most) {
        x->most = off;
        x->why = why;
    }
}

#define COST_DOUBT "the cost of recording is estimated"

/* Includes the result of a run without the profiler if the profiler cost less, or more. */
static enum rp_code include_cost_doubt(struct answer_ctx *a, const char *text, struct interval *x,
                                       struct rp_err *err)
{
    int64_t step;

    if (!a->costs)
        return RP_OK;
    RP_TRY(step_with(a, rp_sim_cost_end(&a->run, a->cost_known, false), text, &step, err));
    if (!text)
        a->base_low_cost_ns = step;
    interval_include(x, step, text ? a->base_low_cost_ns : step, COST_DOUBT);
    RP_TRY(step_with(a, rp_sim_cost_end(&a->run, a->cost_known, true), text, &step, err));
    if (!text)
        a->base_high_cost_ns = step;
    interval_include(x, step, text ? a->base_high_cost_ns : step, COST_DOUBT);
    return RP_OK;
}

static bool communicates(const struct rp_sim_run *run)
{
    for (uint32_t i = 0; i < rp_sim_nnodes(run); i++)
        if (rp_sim_is_comm(run, i))
            return true;
    return false;
}

/* Includes the results if the transport of another run were faster, or slower. */
static enum rp_code include_transport_doubt(struct answer_ctx *a, struct interval *x,
                                            struct rp_err *err)
{
    struct rp_transport t = {0};
    double by[2];
    char text[64];
    int64_t step[2];

    if (communicates(&a->run)) { /* a collective may lie outside the steps */
        a->on_threads = a->run.parts[0]->collectives.on_host;
        RP_TRY(rp_transport_fit(&a->run, &t, err));
    }
    a->base_slower_ns = a->base_faster_ns = x->predicted_ns;
    if (!t.n)
        return RP_OK;
    by[0] = 1 + rp_transport_doubt(&t);
    by[1] = 1 / by[0];
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "scale:comm=%.6f", by[i]);
        RP_TRY(step_with(a, 1, text, &step[i], err));
        interval_include(x, step[i], step[i], "the rate of the transport differs between runs");
    }
    a->base_slower_ns = step[0];
    a->base_faster_ns = step[1];
    return RP_OK;
}

/* A change smaller than this cannot be distinguished from a difference between runs; both runs of a
   comparison are on one device. */
#define DEVICE_RUNS_DIFFER 0.015
RP_DECISION(
    DEVICE_RUNS_DIFFER, "of a step",
    "steps that the device limits, recorded and measured without a profiler, differ by so much",
    "sim/runs_differ_at_least");

/* Widens an interval by how far steps and runs differ from each other and the model from the
   recording. An interval without any width means that the error is unknown. */
static void settle_interval(const struct answer_ctx *a, enum rp_sim_way way, struct interval *x)
{
    double spread = rp_sim_spread(a->run.parts[0]), error = fabs(a->out->baseline.error_ratio);
    double runs = a->on_threads ? RP_RUNS_DIFFER : 0, more, least;

    error = isnan(error) ? 0 : error;
    if (error > spread && error > runs && error > x->most)
        x->why = "the model does not reproduce the recorded step exactly";
    else if (runs > spread && runs > x->most)
        x->why = "runs differ where threads carry the collectives";
    else if (spread > x->most)
        x->why = isnan(a->run.parts[0]->spread_ratio)
                     ? "one step was recorded, and others may differ from it"
                     : "the recorded steps differ";
    more = 1 + error + (spread > runs ? spread : runs);
    if (x->low_ns >= x->high_ns && more <= 1) {
        x->low_ns = x->high_ns = RP_ABSENT_I64;
        x->low_ratio = x->high_ratio = NAN;
        x->why = NULL;
        return;
    }
    least = more > 1 + DEVICE_RUNS_DIFFER ? more : 1 + DEVICE_RUNS_DIFFER;
    x->low_ns = rp_sim_scaled(x->low_ns, 1 / least);
    x->high_ns = rp_sim_scaled(x->high_ns, least);
    x->low_ratio /= 1 + (more - 1) / 2; /* two runs have the other half in common */
    x->high_ratio *= 1 + (more - 1) / 2;
    if (way == RP_WAY_LONGER && x->low_ratio < 1)
        x->low_ratio = 1;
    if (way == RP_WAY_SHORTER && x->high_ratio > 1)
        x->high_ratio = 1;
}

static enum rp_code fill_baseline(struct answer_ctx *a, struct rp_err *err)
{
    struct rp_sim_baseline *b = &a->out->baseline;
    const struct rp_sim_part *first = a->run.parts[0];

    RP_TRY(step_with(a, 0, NULL, &b->simulated_step_ns, err));
    b->simulated_ns = a->distance_ns;
    a->wants_path = a->by_rank = true;
    RP_TRY(step_with(a, 1, NULL, &b->unprofiled_ns, err));

    struct rp_sim_answer *out = a->out;
    out->path = RP_ARENA_NEW(a->arena, struct rp_sim_bound, RP_SIM_PATH_PARTS);
    RP_TRY(rp_err_need(out->path, err, "simulating"));
    for (size_t i = 0; i < RP_SIM_PATH_PARTS; i++)
        if (a->path.ns[i] > 0)
            out->path[out->npath++] = (struct rp_sim_bound){rp_sim_path_name(i), a->path.ns[i],
                                                            ratio(a->path.ns[i], a->path.total_ns)};
    struct interval x = interval_begin(b->unprofiled_ns, b->unprofiled_ns);
    RP_TRY(include_cost_doubt(a, NULL, &x, err));
    RP_TRY(include_transport_doubt(a, &x, err));
    b->cost_factor = rp_sim_cost_is_known(&a->run) ? a->run.cost_factor : NAN;
    b->span_cost_ns = rp_sim_cost_is_known(&a->run)
                          ? (int64_t)(rp_sim_cost_of(first).span_ns * b->cost_factor)
                          : RP_ABSENT_I64;
    b->measured_ns = first->distance_ns;
    b->step_ns = rp_sim_measured_ns(&a->run);
    b->error_ratio = ratio(b->simulated_step_ns - b->step_ns, b->step_ns);
    settle_interval(a, RP_WAY_ANY, &x);
    b->unprofiled_low_ns = x.low_ns;
    b->unprofiled_high_ns = x.high_ns;
    b->spread_ratio = first->spread_ratio;
    b->ranks = a->alike ? (int64_t)a->asked->given : (int64_t)a->run.nranks * first->nranks;
    b->steps = first->has_steps ? first->nsteps : (int64_t)first->recorded_steps;
    b->tasks = (int64_t)a->run.tasks.tasks.n;
    b->edges = (int64_t)a->run.tasks.edges.n;
    return RP_OK;
}

/* The unchanged step under an assumption about the transport. */
static int64_t base_leant(const struct answer_ctx *a, enum rp_sim_lean to)
{
    if (a->run.uses_transport && to == RP_LEAN_SLOWER)
        return a->base_slower_ns;
    if (a->run.uses_transport && to == RP_LEAN_FASTER)
        return a->base_faster_ns;
    return a->out->baseline.unprofiled_ns;
}

/* What the leans of the latest what-if are about. */
static const char *lean_doubt(const struct rp_sim_run *run, enum rp_sim_lean to)
{
    bool latency = to == RP_LEAN_LESS_LATENCY || to == RP_LEAN_MORE_LATENCY;
    const char *said = latency ? run->latency_doubt : run->rate_doubt;

    return said ? said : "how much the changed work gains is estimated";
}

/* Includes the predictions if the transport is not as assumed. */
static enum rp_code include_leans(struct answer_ctx *a, const char *text, struct interval *x,
                                  struct rp_err *err)
{
    enum rp_code code = RP_OK;
    int64_t step;
    int to, end = a->run.leans ? RP_LEANS : 0;

    a->leant |= a->run.uses_transport;
    for (to = RP_LEAN_NONE + 1; to < end && code == RP_OK; to++) {
        a->run.lean = (enum rp_sim_lean)to;
        code = step_with(a, 1, text, &step, err);
        if (code == RP_OK)
            interval_include(x, step, base_leant(a, (enum rp_sim_lean)to),
                             lean_doubt(&a->run, (enum rp_sim_lean)to));
    }
    a->run.lean = RP_LEAN_NONE;
    return code;
}

static unsigned framework_of(const struct answer_ctx *a)
{
    return a->run.parts[0]->recorder.framework;
}

/* A what-if that the recording does not allow is a row that says so. */
static enum rp_code explain_impossible(struct answer_ctx *a, const char *text,
                                       struct rp_sim_prediction *p, const struct rp_err *why,
                                       struct rp_err *err)
{
    *p = (struct rp_sim_prediction){.what_if = rp_arena_text(a->arena, text),
                                    .simulated_step_ns = RP_ABSENT_I64,
                                    .simulated_ns = RP_ABSENT_I64,
                                    .predicted_ns = RP_ABSENT_I64,
                                    .low_ns = RP_ABSENT_I64,
                                    .high_ns = RP_ABSENT_I64,
                                    .change_ratio = NAN,
                                    .change_low_ratio = NAN,
                                    .change_high_ratio = NAN,
                                    .impossible = rp_arena_text(a->arena, why->text)};
    RP_TRY(rp_whatif_assumes(text, framework_of(a), a->arena, &p->assumes, err));
    return rp_arena_check(a->arena, "simulating", err);
}

/* Narrows the interval of the change by what was measured on this machine, and that of the step by
   the step without the change. If an end moves outwards, that of the step moves, too. */
static size_t learn_interval(const struct answer_ctx *a, const char *text, struct interval *x)
{
    double now = ratio(x->predicted_ns, x->base_ns), low = x->low_ratio, high = x->high_ratio;
    size_t n = rp_sim_narrow(&a->outcomes, a->run.parts[0], text, now, &low, &high);

    if (!n || x->low_ns == RP_ABSENT_I64)
        return 0;
    int64_t low_ns = rp_sim_scaled(a->out->baseline.unprofiled_low_ns, low);
    int64_t high_ns = rp_sim_scaled(a->out->baseline.unprofiled_high_ns, high);
    if ((low_ns > x->low_ns) == (low > x->low_ratio) && low_ns <= x->predicted_ns)
        x->low_ns = low_ns;
    if ((high_ns < x->high_ns) == (high < x->high_ratio) && high_ns >= x->predicted_ns)
        x->high_ns = high_ns;
    x->low_ratio = low;
    x->high_ratio = high;
    return n;
}

/* Includes graph breaks: code whose passes are compiled for graphs may run some kernels outside of
   them, but takes at most as long as the compiled code without graphs. */
static enum rp_code include_broken_graphs(struct answer_ctx *a, const char *text,
                                          struct interval *x, struct rp_err *err)
{
    struct rp_whatif_list list;
    const char *rest = "";
    int64_t step;

    RP_TRY(rp_whatif_parse(text, a->arena, &list, err));
    for (size_t i = 0; i < list.n; i++)
        if (list.calls[i].row != &rp_whatif_cuda_graphs || !list.calls[i].args.value)
            rest =
                rp_arena_textf(a->arena, *rest ? "%s+%s" : "%s%s", rest, list.calls[i].args.text);
    RP_TRY(rp_arena_check(a->arena, "simulating", err));
    if (!rp_whatif_list_has(&list, &rp_whatif_compile) || !strcmp(rest, text))
        return RP_OK;
    RP_TRY(step_with(a, 1, rest, &step, err));
    interval_include(x, step, x->base_ns, "the program may break graphs");
    return RP_OK;
}

static enum rp_code fill_prediction(struct answer_ctx *a, const char *text,
                                    struct rp_sim_prediction *p, struct rp_err *err)
{
    *p = (struct rp_sim_prediction){0};
    a->run.says = a->arena;
    a->run.said = NULL;
    enum rp_code code = step_with(a, 0, text, &p->simulated_step_ns, err);
    a->run.says = NULL;
    RP_TRY(code);
    p->changed = a->run.said;
    p->simulated_ns = a->distance_ns;
    a->wants_path = true;
    RP_TRY(step_with(a, 1, text, &p->predicted_ns, err));
    enum rp_sim_way way = a->run.way;
    p->bound_by = rp_sim_path_most(&a->path);
    struct interval x = interval_begin(p->predicted_ns, a->out->baseline.unprofiled_ns);
    RP_TRY(include_leans(a, text, &x, err));
    RP_TRY(include_broken_graphs(a, text, &x, err));
    RP_TRY(include_cost_doubt(a, text, &x, err));
    settle_interval(a, way, &x);
    p->tries = (int64_t)learn_interval(a, text, &x);
    p->low_ns = x.low_ns;
    p->high_ns = x.high_ns;
    p->change_low_ratio = x.low_ratio - 1;
    p->change_high_ratio = x.high_ratio - 1;
    p->uncertain = x.why;
    a->unknown |= p->low_ns == RP_ABSENT_I64;
    p->change_ratio =
        ratio(p->predicted_ns - a->out->baseline.unprofiled_ns, a->out->baseline.unprofiled_ns);
    RP_TRY(rp_whatif_assumes(text, framework_of(a), a->arena, &p->assumes, err));
    p->what_if = rp_arena_text(a->arena, text);
    return RP_OK;
}

/* ------------------------------------------------------------------ notes */

static void add_note(struct answer_ctx *a, const char *text)
{
    RP_NOTE(a->out, a->arena, text);
}

static void note_ranks(struct answer_ctx *a, size_t given)
{
    if (given > a->run.nranks)
        add_note(a, rp_arena_textf(
                        a->arena, "the %zu ranks share no collectives: only the first is simulated",
                        given));
    if (a->alike)
        add_note(a, rp_arena_textf(a->arena,
                                   "ranks with equal recordings are simulated once: %zu of %zu",
                                   a->run.nranks, a->asked->given));
    if (a->run.nranks < 2)
        return;
    if (a->run.join.rendezvous.nlost)
        add_note(a,
                 rp_arena_textf(a->arena, "%s without a counterpart on another rank: as recorded",
                                rp_units_count(a->arena, (int64_t)a->run.join.rendezvous.nlost,
                                               "collective")));
    if (a->run.join.aligned)
        add_note(a,
                 "the clocks of the ranks disagree: they are aligned by the ends of collectives");
}

/* Notes how well the profiler's cost is known, and which records besides spans and calls it
   includes. */
static void note_cost(struct answer_ctx *a)
{
    const struct rp_sim_part *first = a->run.parts[0];

    if (!rp_sim_cost_is_known(&a->run))
        add_note(a, "the cost of recording cannot be estimated here: predictions are for the "
                    "recorded speed");
    else if (a->flat)
        add_note(a, "the step hardly depends on the cost of recording, so it is the estimate that "
                    "is taken out");
    else if (a->run.cost_factor <= 0)
        add_note(a, "the given unprofiled step is not shorter than the recorded one: recording is "
                    "taken to cost nothing");
    else if (first->with_shapes || first->with_frames)
        add_note(a, rp_arena_textf(a->arena, "the cost of recording %s%s%s is removed, too",
                                   first->with_shapes ? "shapes" : "",
                                   first->with_shapes && first->with_frames ? " and " : "",
                                   first->with_frames ? "Python frames" : ""));
}

static void note_steps(struct answer_ctx *a)
{
    const struct rp_sim_part *first = a->run.parts[0];
    size_t i, bare = 0;

    for (i = 0; i < first->nsteps; i++)
        bare += rp_sim_step_is_bare(first, i);
    if (bare)
        add_note(a, rp_arena_textf(a->arena,
                                   "from %zu of %u steps: the others were recorded without detail",
                                   first->nsteps - bare, first->nsteps));
    if (!first->has_steps && !first->recorded_steps)
        add_note(a, "no steps are marked: the whole recording is one step");
    if (rp_sim_starts_up(&a->run))
        add_note(a, RP_SIM_START_UP ": no prediction here is about those");
    if (a->unknown || a->out->baseline.unprofiled_low_ns == RP_ABSENT_I64)
        add_note(a,
                 isnan(first->spread_ratio)
                     ? "how far predictions may be off is not known: that needs several steps"
                     : "how far predictions may be off is not known: all steps took the same time");
    else if (isnan(first->spread_ratio) && first->has_steps)
        add_note(a, rp_arena_textf(a->arena,
                                   "one step was recorded: intervals assume that steps differ by "
                                   "%.0f %%, as those of other recordings do",
                                   100 * rp_sim_spread(first)));
    else if (isnan(first->spread_ratio))
        add_note(a, "too few steps to measure how well one step predicts another");
    if (first->graph.ndropped)
        add_note(a, rp_arena_textf(a->arena,
                                   "%u dependencies contradict the recorded times and are left out",
                                   first->graph.ndropped));
}

#define WIDE 1.25
RP_LIMIT(WIDE, "times the short end", "of a narrower interval the reason is not shown");

static bool is_wide(const struct rp_sim_prediction *p)
{
    return p->uncertain && (double)p->high_ns > WIDE * (double)p->low_ns;
}

static enum rp_code add_notes(struct answer_ctx *a, size_t given, struct rp_err *err)
{
    const struct rp_sim_part *first = a->run.parts[0];

    for (size_t i = 0; i < a->out->npredictions; i++) {
        /* Note first that it does not apply, or only to a part. */
        const struct rp_sim_prediction *p = &a->out->predictions[i];
        if (p->impossible || !p->because || !p->applies || !strcmp(p->applies, "yes"))
            continue;
        add_note(a, rp_arena_textf(a->arena, "%s %s: %s", p->what_if,
                                   strcmp(p->applies, "no") ? "applies to a part of a step"
                                                            : "does not apply",
                                   p->because));
    }
    for (size_t i = 0; i < first->remarks.n; i++)
        add_note(a, rp_arena_text(a->arena, first->remarks.at[i]));
    note_ranks(a, given);
    if (a->expand.shape != RP_EXPAND_WHOLE) {
        add_note(a,
                 a->expanded || a->whole
                     ? rp_arena_textf(a->arena,
                                      "%zu collectives are expanded into their hops; %zu are not: "
                                      "they are of other kinds, or some of their ranks are missing",
                                      a->expanded, a->whole)
                     : "nothing was expanded: the given ranks share no collectives, or their sends "
                       "and receives were recorded");
    }
    note_cost(a);

    /* How the transport was fitted is only of interest if an interval leans on it. */
    struct rp_transport t = {0};
    if (a->leant)
        RP_TRY(rp_transport_fit(&a->run, &t, err));
    if (t.n && t.one_size)
        add_note(a, "all recorded all-reduces have about the same size, so latency and bandwidth "
                    "cannot be separated: intervals are wide");
    note_steps(a);
    for (size_t i = 0; i < a->out->npredictions; i++) {
        /* Note why it is impossible; or what it changed and what it assumes. */
        const struct rp_sim_prediction *p = &a->out->predictions[i];
        if (p->impossible) {
            add_note(a, p->impossible);
            continue;
        }
        add_note(a, rp_arena_textf(
                        a->arena, "%s: %s%sassumes that %s%s%s%s", p->what_if,
                        p->changed ? p->changed : "", p->changed ? "; " : "", p->assumes,
                        is_wide(p) ? "; uncertain mainly because " : "",
                        is_wide(p) ? p->uncertain : "",
                        p->tries ? rp_arena_textf(a->arena,
                                                  "; change between %+.1f %% and %+.1f %%: "
                                                  "interval from %lld measured tries on "
                                                  "this machine",
                                                  100 * p->change_low_ratio,
                                                  100 * p->change_high_ratio, (long long)p->tries)
                                 : ""));
    }
    return rp_arena_check(a->arena, "simulating", err);
}

/* ------------------------------------------------------------------ the answer */

/* If none can be answered, that is an error with the reason of the first. */
static enum rp_code fill_predictions(struct answer_ctx *a, const struct rp_sim_asked *asked,
                                     struct rp_err *err)
{
    struct rp_err first = RP_ERR_INIT;
    size_t i, impossible = 0;

    for (i = 0; i < asked->nwhatifs; i++) {
        struct rp_sim_prediction *p = &a->out->predictions[i];
        struct rp_err why = RP_ERR_INIT;
        enum rp_code code = fill_prediction(a, asked->whatifs[i], p, &why);

        if (code == RP_UNSUPPORTED) {
            first = impossible++ ? first : why;
            code = explain_impossible(a, asked->whatifs[i], p, &why, err);
        } else if (code != RP_OK)
            rp_err_set(err, code, "%s", why.text);
        RP_TRY(code);

        enum rp_whatif_verdict verdict;
        RP_TRY(rp_whatif_stands(&a->run, asked->whatifs[i], a->arena, &verdict, &p->because, err));
        p->applies = rp_whatif_verdict_name(verdict);
    }
    a->out->npredictions = asked->nwhatifs;
    if (!impossible || impossible < asked->nwhatifs)
        return RP_OK;
    return rp_err_set(err, RP_UNSUPPORTED, "%s", first.text);
}

static enum rp_code fill_answer(struct answer_ctx *a, const struct rp_sim_asked *asked,
                                struct rp_err *err)
{
    size_t n = asked->nwhatifs;

    if (asked->cost_factor > 0)
        a->run.cost_factor = asked->cost_factor;
    if (asked->unprofiled_ns > 0)
        RP_TRY(rp_sim_cost_calibrate(&a->run, asked->unprofiled_ns, err));
    a->flat = a->run.cost_flat;
    a->cost_known =
        asked->cost_factor > 0 || ((asked->unprofiled_ns > 0 || a->run.cost_known) && !a->flat);
    a->trace = n ? NULL : asked->trace;
    RP_TRY(fill_baseline(a, err));
    a->trace = n ? asked->trace : NULL;
    a->out->predictions = RP_ARENA_NEW(a->arena, struct rp_sim_prediction, n + 1);
    RP_TRY(rp_err_need(a->out->predictions, err, "simulating"));
    return fill_predictions(a, asked, err);
}

enum rp_code rp_sim_answer_help(struct rp_arena *arena, struct rp_sim_answer *out,
                                struct rp_err *err)
{
    struct rp_sim_baseline *b = &out->baseline;
    size_t i, n = 0;

    b->step_ns = b->simulated_step_ns = RP_ABSENT_I64;
    b->measured_ns = b->simulated_ns = b->unprofiled_ns = RP_ABSENT_I64;
    b->unprofiled_low_ns = b->unprofiled_high_ns = b->span_cost_ns = RP_ABSENT_I64;
    b->cost_factor = NAN;
    b->ranks = b->steps = b->tasks = b->edges = RP_ABSENT_I64;
    b->error_ratio = b->spread_ratio = NAN;
    while (rp_whatifs[n])
        n++;
    out->known = RP_ARENA_NEW(arena, struct rp_sim_known, n + 1);
    RP_TRY(rp_err_need(out->known, err, "listing what-ifs"));
    for (i = 0; i < n; i++)
        out->known[i] = (struct rp_sim_known){rp_whatifs[i]->form, rp_whatifs[i]->summary,
                                              rp_whatifs[i]->assumes};
    out->nknown = n;
    return RP_OK;
}

/* Finds how many given ranks each simulated one represents. */
static enum rp_code weigh_ranks(struct answer_ctx *a, size_t n, struct rp_err *err)
{
    a->alike = a->asked->same_as && a->run.nranks == n;
    if (a->run.nranks == n)
        a->run.weights = a->asked->weights;
    if (!a->alike)
        return RP_OK;
    uint32_t *weights = RP_ARENA_NEW(a->arena, uint32_t, n + 1);
    RP_TRY(rp_err_need(weights, err, "simulating"));
    for (size_t i = 0; i < a->asked->given; i++)
        weights[a->asked->same_as[i]]++;
    a->run.weights = weights;
    return RP_OK;
}

/* Makes a row for each given rank, with its number. */
static enum rp_code spread_rows(struct answer_ctx *a, struct rp_err *err)
{
    const struct rp_sim_asked *asked = a->asked;
    struct rp_sim_rank *rows = a->out->by_rank;
    size_t i, n = a->alike ? asked->given : a->out->nby_rank;

    if (!a->out->nby_rank || (!a->alike && (!asked->numbers || a->run.nranks != n)))
        return RP_OK;
    a->out->by_rank = RP_ARENA_NEW(a->arena, struct rp_sim_rank, n);
    RP_TRY(rp_err_need(a->out->by_rank, err, "simulating"));
    for (i = 0; i < n; i++) {
        a->out->by_rank[i] = rows[a->alike ? asked->same_as[i] : i];
        a->out->by_rank[i].rank = asked->numbers ? asked->numbers[i] : (int64_t)i;
    }
    a->out->nby_rank = n;
    return RP_OK;
}

enum rp_code rp_sim_answer(const struct rp_sim_part *const *parts, size_t n,
                           const struct rp_sim_asked *asked, struct rp_arena *arena,
                           struct rp_sim_answer *out, struct rp_err *err)
{
    struct answer_ctx a = {
        .asked = asked, .out = out, .arena = arena, .bases = {{.factor = 0}, {.factor = 1}}};
    enum rp_code code = rp_sim_run_init(&a.run, parts, n, err);

    rp_outcomes_use(&a.outcomes);
    if (code == RP_OK)
        code = weigh_ranks(&a, n, err);

    if (asked->trace)
        *asked->trace = NULL;
    a.expand = asked->expand;
    if (code == RP_OK)
        code = fill_answer(&a, asked, err);
    if (code == RP_OK)
        code = spread_rows(&a, err);
    if (code == RP_OK)
        code = add_notes(&a, n, err);
    rp_resim_release(&a.bases[0].resim);
    rp_resim_release(&a.bases[1].resim);
    rp_sim_result_release(&a.result);
    rp_sim_run_release(&a.run);
    rp_outcomes_release(&a.outcomes);
    return code;
}
