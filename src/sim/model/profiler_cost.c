/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profiler's own cost, per recorded span. It lies partly inside the span and partly after it:
 * along a thread each span that opens adds to a debt, which the durations and gaps that follow pay.
 *
 *     [op      [child]  ][op  ]
 *      +4       +4        +4       debt, paid by what comes next, at most nine tenths of each
 *
 * The unit is the time of an operator that only describes memory anew, because what such an
 * operator takes is mostly its own recording. Linear in spans.
 */
#include "sim/model/profiler_cost.h"

#include "base/decides.h"
#include "facts/arg_keys.h"
#include "sim/model/chains.h"
#include "sim/model/simulated_steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SPAN_QUICKS 4.4
RP_DECISION(
    SPAN_QUICKS, "times of a quick operator",
    "fitted to 22 recordings whose unprofiled step is known (docs/definitions.md, Simulation)",
    "sim/the_profilers_cost");
#define CALL_QUICKS 2.8
RP_DECISION(CALL_QUICKS, "times of a quick operator", "as SPAN_QUICKS", "sim/the_profilers_cost");
#define FRAME_QUICKS 0.7
RP_DECISION(FRAME_QUICKS, "times of a quick operator", "as SPAN_QUICKS", "sim/the_profilers_cost");
#define UNKNOWN_CALL 6.5
RP_DECISION(
    UNKNOWN_CALL, "times of a range",
    "the cost of a launch if no quick operator was recorded; a measured step sets the factor of "
    "both",
    "sim/the_profilers_cost");
#define SHAPES_PART 0.25
RP_DECISION(SHAPES_PART, "of the cost of an operator",
            "shapes are written down with each; as SPAN_QUICKS", "sim/the_profilers_cost");
/* If a host is slow while it records, recording has slowed it down more than in proportion: by the
   root of how much slower it is than the usual one, within limits. Without a device, quick
   operators are slow for another reason: the host computes, and leaves the caches cold for them. */
#define USUAL_QUICK_NS 600.0
RP_DECISION(USUAL_QUICK_NS, "ns", "of the hosts whose recordings SPAN_QUICKS was fitted to",
            "sim/the_profilers_cost");
#define SLOWER_BY_MOST 0.25
RP_DECISION(SLOWER_BY_MOST, "of the cost", "as SPAN_QUICKS: by how much a host slows it down",
            "sim/the_profilers_cost");
#define MOST_QUICK_NS 5000
RP_DECISION(MOST_QUICK_NS, "ns", "longer ones waited, or the recorder kept only long operators",
            "sim/what_counts_as_a_quick_operator");
#define FREQUENT 30
RP_DECISION(FREQUENT, "calls", "the first calls are slow: the median of many is not of these",
            "sim/what_counts_as_a_quick_operator");
#define CLOSE_ENOUGH 0.05
RP_DECISION(
    CLOSE_ENOUGH, "of the step",
    "runs of a program differ by so much: a given step may be shorter than the model reaches, "
    "and one that twice the cost changes by less than twice this says nothing",
    "sim/a_measured_step_sets_the_cost");
#define MOST_FACTOR 16
RP_LIMIT(MOST_FACTOR, "times the usual cost", "a shorter step than with that is refused");
#define HALVINGS 24
RP_LIMIT(HALVINGS, "halvings of the factor", "to a millionth of the usual cost");
#define OWN_PART 0.1
RP_DECISION(OWN_PART, "of what a node takes",
            "the rest may be the profiler's, but every node takes some time",
            "sim/a_node_keeps_its_own_part");

/* ------------------------------------------------------------------ what the trace says */

enum { VIEWS = 5 };

/* 1 + the number of an operator that only describes memory anew; 0: another one. */
static uint8_t view_of(const char *name)
{
    static const char *const views[VIEWS] = {"aten::as_strided", "detach", "aten::view", "aten::t",
                                             "aten::transpose"};

    for (int i = 0; i < VIEWS; i++)
        if (!strcmp(name, views[i]))
            return (uint8_t)(i + 1);
    return 0;
}

/* Finds the quickest of these operators that is frequent and has nothing inside it, by its
   median. */
static enum rp_code find_quick(struct rp_sim_part *p, const struct rp_trace *t, struct rp_err *err)
{
    RP_VEC(int64_t) dur[VIEWS] = {{0}};
    RP_FREED uint8_t *view = calloc((size_t)t->str.n + 1, 1);
    enum rp_code code = rp_err_need(view, err, "simulating");

    for (rp_str s = 0; code == RP_OK && s < t->str.n; s++)
        view[s] = view_of(rp_trace_str(t, s));
    for (rp_event e = 0; e < t->ev.n && code == RP_OK; e++) {
        uint8_t of = view[t->ev.name[e]];

        if (of && t->ev.kind[e] == RP_KIND_CPU_OP && t->ev.dur_ns[e] > 0 &&
            !(e + 1 < t->ev.n && t->ev.parent[e + 1] == e))
            code = rp_vec_push(&dur[of - 1], t->ev.dur_ns[e], err);
    }
    for (size_t i = 0; i < VIEWS; i++) {
        size_t n = dur[i].n;

        rp_ns_sort(dur[i].at, n);
        if (n >= FREQUENT && (!p->quick_ns || dur[i].at[n / 2] < p->quick_ns))
            p->quick_ns = dur[i].at[n / 2];
        rp_vec_release(&dur[i]);
    }
    if (p->quick_ns > MOST_QUICK_NS)
        p->quick_ns = 0;
    return code;
}

/* The options of the profiler are inferred from what it wrote. */
static enum rp_code find_options(struct rp_sim_part *p, const struct rp_trace *t,
                                 struct rp_err *err)
{
    RP_SCOPED(rp_arg_key_release) struct rp_arg_key dims = {0};

    RP_TRY(rp_recorder_find(t, &p->recorder, err));
    RP_TRY(rp_arg_key_init_dims(&dims, t, err));
    for (rp_event e = 0; e < t->ev.n; e++) {
        uint8_t kind = t->ev.kind[e];
        struct rp_arg arg;

        p->nspans += kind == RP_KIND_CPU_OP || kind == RP_KIND_ANNOTATION;
        p->ncalls += kind == RP_KIND_RUNTIME;
        p->nframes += kind == RP_KIND_PYTHON;
        if (kind == RP_KIND_PYTHON)
            p->with_frames = true;
        else if (kind == RP_KIND_KERNEL)
            p->with_device = true;
        else if (kind == RP_KIND_CPU_OP && !p->with_shapes)
            p->with_shapes = rp_arg_key_find(&dims, e, &arg);
    }
    return RP_OK;
}

enum rp_code rp_sim_cost_look(struct rp_sim_part *p, const struct rp_trace *t, struct rp_err *err)
{
    RP_TRY(find_options(p, t, err));
    return find_quick(p, t, err);
}

#define MOST_PART 0.5
RP_DECISION(MOST_PART, "of the recorded time",
            "in every recording with a known unprofiled step it was about that or less",
            "sim/the_profilers_cost");

struct rp_sim_cost rp_sim_cost_of(const struct rp_sim_part *p)
{
    double quick = (double)p->quick_ns, slow = p->with_device ? sqrt(quick / USUAL_QUICK_NS) : 0;
    double most = MOST_PART * (double)rp_ns_between(p->graph.begin_ns, p->graph.end_ns), all;
    struct rp_sim_cost cost;

    slow = fmin(fmax(slow, 1 - SLOWER_BY_MOST), 1 + SLOWER_BY_MOST);
    cost.span_ns = SPAN_QUICKS * quick * slow * (p->with_shapes ? 1 + SHAPES_PART : 1);
    cost.call_ns = CALL_QUICKS * quick * slow;
    cost.frame_ns = FRAME_QUICKS * quick * slow;
    if (!p->quick_ns)
        cost = (struct rp_sim_cost){.span_ns = 1000, .call_ns = 1000 * UNKNOWN_CALL};
    all = p->nspans * cost.span_ns + p->ncalls * cost.call_ns + p->nframes * cost.frame_ns;
    if (all > most) {
        cost.span_ns *= most / all;
        cost.call_ns *= most / all;
        cost.frame_ns *= most / all;
    }
    return cost;
}

/* ------------------------------------------------------------------ taking it out */

/* For one factor, which is then applied; or for several, whose durations and lags are listed. */
struct debt {
    struct rp_sim_run *run;
    struct rp_sim_cost cost;
    size_t n;
    double factor[RP_SIM_COSTS];
    int64_t owed_ns[RP_SIM_COSTS];
    rp_sim_at_cost_vec *list; /* NULL: it is applied */
    size_t at;                /* how far the log of the run was read, for what was recorded */
};

/* The part of a debt that a time pays. */
static int64_t pay_of(struct debt *d, size_t k, int64_t ns)
{
    int64_t most = ns - (int64_t)(OWN_PART * (double)ns);
    int64_t paid = d->owed_ns[k] < most ? d->owed_ns[k] : most;

    if (paid <= 0)
        return 0;
    d->owed_ns[k] -= paid;
    return paid;
}

static void owe(struct debt *d, double ns)
{
    for (size_t k = 0; k < d->n; k++)
        d->owed_ns[k] += (int64_t)(d->factor[k] * ns);
}

/* A duration or lag as recorded: the log has what the same walk changed, in the same order. */
static int64_t recorded(struct debt *d, unsigned what, uint32_t at, int64_t now_ns)
{
    const struct rp_overlay *o = &d->run->overlay;

    if (!d->list || d->at >= o->log.n || o->log.at[d->at].what != what || o->log.at[d->at].at != at)
        return now_ns;
    return o->log.at[d->at++].old;
}

static enum rp_code put(struct debt *d, bool is_lag, uint32_t at, const int64_t *then_ns,
                        struct rp_err *err)
{
    struct rp_overlay *o = &d->run->overlay;
    struct rp_sim_at_cost x = {.at = at & INT32_MAX, .is_lag = is_lag};

    if (!d->list)
        return is_lag ? rp_overlay_set_lag(o, at, *then_ns, err)
                      : rp_overlay_set_dur(o, at, *then_ns, err);
    x.now_ns = is_lag ? o->lag_ns.at[at] : o->dur_ns.at[at];
    memcpy(x.then_ns, then_ns, sizeof x.then_ns);
    for (size_t k = 0; k < d->n; k++)
        if (then_ns[k] != x.now_ns)
            return rp_vec_push(d->list, x, err);
    return RP_OK;
}

/* Reduces the lag after the previous node on the thread, if the node waited for that. */
static enum rp_code pay_lag(struct debt *d, uint32_t task, struct rp_err *err)
{
    const struct rp_task_graph *g = &d->run->tasks;

    if (!task || d->owed_ns[d->n - 1] <= 0)
        return RP_OK;
    for (uint32_t i = g->first.at[task - 1]; i < g->first.at[task]; i++) {
        int64_t then[RP_SIM_COSTS] = {0}, lag;

        if (g->edges.at[i].to != task || RP_SIM_EDGE_KIND(g->edges.at[i].flags) != RP_SG_ORDER)
            continue;
        lag = recorded(d, RP_OVERLAY_SET_LAG, i, d->run->overlay.lag_ns.at[i]);
        if (lag <= 0)
            continue;
        for (size_t k = 0; k < d->n; k++)
            then[k] = lag - pay_of(d, k, lag);
        return put(d, true, i, then, err);
    }
    return RP_OK;
}

static double cost_of_node(const struct debt *d, uint8_t flags)
{
    if (!(flags & RP_SIM_OPENS))
        return 0;
    if (flags & RP_SIM_FRAME)
        return d->cost.frame_ns;
    return flags & RP_SIM_CALL ? d->cost.call_ns : d->cost.span_ns;
}

/* begin: the first task of the rank. */
static enum rp_code drop_on_lane(struct debt *d, const struct rp_sim_part *part, uint32_t begin,
                                 const struct rp_sg_lane *lane, struct rp_err *err)
{
    const struct rp_sim_link *frames = rp_sim_chain_from(part, lane->first - begin);
    size_t left = frames ? part->links.n - (size_t)(frames - part->links.at) : 0;

    memset(d->owed_ns, 0, sizeof d->owed_ns);
    for (uint32_t i = lane->first; i < lane->end; i++) {
        size_t n = 0;

        RP_TRY(pay_lag(d, i, err));
        while (n < left && frames[n].node == i - begin)
            n++;
        if (n) {
            /* Each of the frames that form one node pays for itself. */
            int64_t dur = recorded(d, RP_OVERLAY_SET_DUR, i, d->run->overlay.dur_ns.at[i]);
            int64_t most = dur - (int64_t)(OWN_PART * (double)dur), then[RP_SIM_COSTS] = {0};

            for (size_t m = 0; m < n; m++) {
                for (size_t k = 0; k < d->n; k++)
                    then[k] += pay_of(d, k, frames[m].lag_ns);
                if (frames[m].opens)
                    owe(d, d->cost.frame_ns);
                for (size_t k = 0; k < d->n; k++)
                    then[k] += pay_of(d, k, frames[m].dur_ns);
            }
            for (size_t k = 0; k < d->n; k++)
                then[k] = dur - (then[k] < most ? then[k] : most);
            RP_TRY(put(d, false, i, then, err));

            frames += n;
            left -= n;
            continue;
        }
        owe(d, cost_of_node(d, rp_sim_note_of(d->run, i)->flags));

        int64_t dur = recorded(d, RP_OVERLAY_SET_DUR, i, d->run->overlay.dur_ns.at[i]);
        int64_t then[RP_SIM_COSTS] = {0};
        for (size_t k = 0; k < d->n; k++)
            then[k] = dur - pay_of(d, k, dur);
        RP_TRY(put(d, false, i, then, err));
    }
    return RP_OK;
}

static enum rp_code drop_costs(struct debt *d, const double *factor, struct rp_err *err)
{
    struct rp_sim_run *run = d->run;

    for (size_t k = 0; k < d->n; k++)
        d->factor[k] = factor[k] * run->cost_factor;
    for (size_t i = 0; i < run->graph->lanes.n; i++) {
        const struct rp_sg_lane *lane = &run->graph->lanes.at[i];

        d->cost = rp_sim_cost_of(run->parts[lane->rank]);
        if (!lane->device)
            RP_TRY(drop_on_lane(d, run->parts[lane->rank], rp_sim_first_node(run, lane->rank), lane,
                                err));
    }
    return RP_OK;
}

enum rp_code rp_sim_cost_drop(struct rp_sim_run *run, double factor, struct rp_err *err)
{
    struct debt d = {.run = run, .n = 1};

    run->dropped = true;
    return drop_costs(&d, &factor, err);
}

enum rp_code rp_sim_cost_list(struct rp_sim_run *run, const double factor[RP_SIM_COSTS],
                              rp_sim_at_cost_vec *out, struct rp_err *err)
{
    struct debt d = {.run = run, .n = RP_SIM_COSTS, .list = out};

    return drop_costs(&d, factor, err);
}

/* ------------------------------------------------------------------ how well it is known */

#define COST_DOUBT 0.5
RP_DECISION(COST_DOUBT, "of the profiler's cost",
            "half of it, or half as much again: 20 of 22 unprofiled steps lay in that interval "
            "(docs/definitions.md, Cost of the profiler)",
            "sim/worlds_differ_in_the_profilers_cost");
#define OWN_COST_MORE 1.5
RP_DECISION(OWN_COST_MORE, "of the cost of `reprise record`",
            "it takes its times inside of what it costs, so quick operators tell less of it: four "
            "recordings cost 1.0, 1.3, 1.6 and 2.4 times the estimate",
            "sim/worlds_differ_in_the_profilers_cost");
#define KNOWN_COST_DOUBT 0.1
RP_DECISION(KNOWN_COST_DOUBT, "of the profiler's cost",
            "where a step without it was measured: as far as its kinds of spans were fitted",
            "sim/a_known_cost_is_doubted_less");

double rp_sim_cost_end(const struct rp_sim_run *run, bool known, bool more)
{
    if (known)
        return more ? 1 + KNOWN_COST_DOUBT : 1 - KNOWN_COST_DOUBT;
    if (!more)
        return 1 - COST_DOUBT;
    return 1 + (run->parts[0]->recorder.ours ? OWN_COST_MORE : COST_DOUBT);
}

/* ------------------------------------------------------------------ calibrating it */

static enum rp_code step_at(struct rp_sim_run *run, double factor, int64_t *out, struct rp_err *err)
{
    size_t mark = rp_overlay_mark(&run->overlay);
    struct rp_sim_result r = {0};

    run->cost_factor = factor;
    enum rp_code code = rp_sim_cost_drop(run, 1, err);
    if (code == RP_OK)
        code = rp_simulate(&run->overlay, &r, err);
    if (code == RP_OK)
        code = rp_sim_step_ns(run, &r, out, err);
    rp_overlay_undo(&run->overlay, mark);
    rp_sim_result_release(&r);
    return code;
}

double rp_sim_cost_usual(const struct rp_sim_run *run)
{
    return run->nranks && run->parts[0]->quick_ns ? 1 : 0;
}

bool rp_sim_cost_is_known(const struct rp_sim_run *run)
{
    return run->parts[0]->quick_ns || run->cost_factor > 0;
}

/* How long the busiest stream works in a step: the device does not become faster. */
static int64_t work_of_step(const struct rp_sim_run *run)
{
    int64_t most = 0;

    for (size_t k = 0; k < run->graph->lanes.n; k++) {
        const struct rp_sg_lane *lane = &run->graph->lanes.at[k];
        int64_t sum = 0;

        for (uint32_t i = lane->first; lane->device && i < lane->end; i++)
            if (rp_sim_note_of(run, i)->step != RP_NO_STEP)
                rp_ns_add(&sum, run->overlay.dur_ns.at[i]);
        most = sum > most ? sum : most;
    }
    return run->parts[0]->nsteps ? most / run->parts[0]->nsteps : 0;
}

/* If `record` measured how long steps are without it, the estimate is made to agree, if
   possible. A host that runs ahead of its device was measured in its own steps, which may be
   shorter than the work of the device. */
enum rp_code rp_sim_cost_take_measured(struct rp_sim_run *run, struct rp_err *err)
{
    double ratio = run->nranks ? run->parts[0]->unrecorded_ratio : 0;
    struct rp_err why = RP_ERR_INIT;

    if (ratio <= 0 || ratio >= 1)
        return RP_OK;
    int64_t step_ns = (int64_t)(ratio * (double)rp_sim_measured_ns(run));
    enum rp_code code =
        step_ns < work_of_step(run) ? RP_USAGE : rp_sim_cost_calibrate(run, step_ns, &why);
    run->cost_known = code == RP_OK;
    if (code == RP_NOMEM)
        return rp_err_nomem(err, "simulating");
    if (code != RP_OK)
        run->cost_factor = rp_sim_cost_usual(run);
    return RP_OK;
}

enum rp_code rp_sim_cost_calibrate(struct rp_sim_run *run, int64_t unprofiled_ns,
                                   struct rp_err *err)
{
    double low = 0, high = MOST_FACTOR, target = (double)unprofiled_ns;
    int64_t least, with;

    if (!run->parts[0]->nspans && !run->parts[0]->ncalls)
        return rp_err_set(
            err, RP_UNSUPPORTED,
            "the cost of recording cannot be estimated here, so it cannot be calibrated");
    RP_TRY(step_at(run, 0, &with, err));
    RP_TRY(step_at(run, 2, &least, err));
    run->cost_flat = (double)(with - least) < 2 * CLOSE_ENOUGH * target;
    RP_TRY(step_at(run, MOST_FACTOR, &least, err));
    if ((double)least > target * (1 + CLOSE_ENOUGH))
        return rp_err_set(err, RP_USAGE,
                          "'--unprofiled-step' %.3f ms is too short: even without any cost of "
                          "recording the step takes %.3f ms",
                          target / 1e6, (double)least / 1e6);
    if (run->cost_flat) {
        run->cost_factor = 1;
        return RP_OK;
    }
    if (target < (double)least)
        target = (double)least;
    target *= 1 + CLOSE_ENOUGH / 10; /* for a step that hardly depends on it, the least cost */
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        int64_t step;

        RP_TRY(step_at(run, middle, &step, err));
        if ((double)step > target)
            low = middle;
        else
            high = middle;
    }
    run->cost_factor = low > 0 ? high : 0;
    return RP_OK;
}
