/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes the time of a step with changes. The recording without the profiler is the base; a
 * change is applied to its overlay, what it affects is simulated again, and it is undone.
 */
#include "sim/worlds.h"

#include "facts/times/intervals.h"
#include "sim/beside.h"
#include "sim/learned.h"
#include "sim/model/profiler_cost.h"
#include "sim/model/simulated_steps.h"
#include "sim/model/steps.h"
#include "sim/model/transport.h"
#include "sim/predict.h"
#include "sim/whatif/nodes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static enum rp_code run_all(struct rp_worlds *x, int64_t *step_ns, struct rp_err *err)
{
    struct rp_sim_result r = {0};
    enum rp_code code = rp_simulate(&x->run.overlay, &r, err);

    if (code == RP_OK)
        code = rp_sim_step_ns(&x->run, &r, step_ns, err);
    rp_sim_result_release(&r);
    x->evaluated++;
    return code;
}

/* Finds whether half of the steps are further from their median than half of it. */
static enum rp_code compare_steps(struct rp_worlds *x, const struct rp_sim_part *part,
                                  struct rp_err *err)
{
    RP_VEC(int64_t) ns = {0};
    size_t i, n = part->has_steps ? part->step_begin_ns.n : 0;

    RP_TRY(rp_vec_reserve(&ns, n + 1, err));
    for (i = 0; i < n; i++)
        ns.at[i] = rp_ns_between(part->step_begin_ns.at[i], part->step_end_ns.at[i]);
    rp_ns_sort(ns.at, n);
    int64_t median = n ? rp_ns_median(ns.at, n) : 0;
    for (i = 0; i < n; i++)
        ns.at[i] = ns.at[i] < median ? median - ns.at[i] : ns.at[i] - median;
    rp_ns_sort(ns.at, n);
    x->unlike = n && rp_ns_median(ns.at, n) > median / 2;
    rp_vec_release(&ns);
    return RP_OK;
}

enum rp_code rp_worlds_init(struct rp_worlds *x, const struct rp_sim_part *const *parts, size_t n,
                            const uint32_t *weights, struct rp_err *err)
{
    *x = (struct rp_worlds){0};
    pthread_mutex_init(&x->lock, NULL);
    rp_outcomes_use(&x->outcomes);
    RP_TRY(rp_sim_run_init(&x->run, parts, n, err));
    if (x->run.nranks == n)
        x->run.weights = weights;

    /* Count the ranks that were given, including those that others represent. */
    size_t k, sum = 0;
    for (k = 0; k < n; k++)
        sum += weights ? weights[k] : 1;
    x->given = sum;

    RP_TRY(compare_steps(x, parts[0], err));
    x->recorded_ns = rp_sim_measured_ns(&x->run);
    RP_TRY(run_all(x, &x->simulated_ns, err));
    size_t mark = rp_overlay_mark(&x->run.overlay);
    RP_TRY(rp_sim_cost_drop(&x->run, 1, err));
    x->costs = rp_overlay_mark(&x->run.overlay) > mark;
    RP_TRY(rp_worlds_step(x, "", &x->step_ns, err));
    double error = x->recorded_ns > 0
                       ? fabs((double)(x->simulated_ns - x->recorded_ns)) / (double)x->recorded_ns
                       : 0;
    x->doubt = rp_sim_spread(parts[0]) + error;

    /* Find how far the transport of another run may be from the recorded one; 0 if there is none.
     */
    struct rp_transport t = {0};
    if (x->run.comm.n)
        RP_TRY(rp_transport_fit(&x->run, &t, err));
    x->transport_doubt = t.n ? rp_transport_doubt(&t) : 0;
    x->one_size = t.n && t.one_size;
    return RP_OK;
}

void rp_worlds_release(struct rp_worlds *x)
{
    rp_worlds_free_twins(x);
    if (x->based)
        rp_resim_release(&x->base);
    rp_vec_release(&x->at_cost);
    pthread_mutex_destroy(&x->lock);
    rp_sim_run_release(&x->run);
    rp_outcomes_release(&x->outcomes);
}

/* Whether changes are simulated again from the base, which is made at the first. */
static bool runs_again(const struct rp_worlds *x)
{
    return !x->whole && x->run.tasks.tasks.n <= RP_WORLDS_TASKS_MOST;
}

static enum rp_code run_changed(struct rp_worlds *x, int64_t *step_ns, struct rp_err *err)
{
    if (!runs_again(x))
        return run_all(x, step_ns, err);
    RP_TRY(rp_resim_update(&x->base, err));
    x->evaluated++;
    return rp_sim_step_ns(&x->run, &x->base.result, step_ns, err);
}

static enum rp_code apply_change(struct rp_worlds *x, const char *text, struct rp_err *err)
{
    memset(x->run.gone.at, 0, x->run.gone.n);
    x->run.edges_factor = 1;
    x->run.way = RP_WAY_ANY;
    x->run.leans = 0;
    x->run.uses_transport = false;
    x->run.latency_doubt = x->run.rate_doubt = NULL;
    return *text ? rp_whatif_apply(&x->run, text, err) : RP_OK;
}

static enum rp_code begin_change(struct rp_worlds *x, const char *text, struct rp_err *err)
{
    if (runs_again(x) && !x->based) {
        x->based = true;
        RP_TRY(rp_resim_init(&x->base, &x->run.overlay, err));
    }
    return apply_change(x, text, err);
}

static void end_change(struct rp_worlds *x, size_t mark, enum rp_code code)
{
    rp_overlay_undo(&x->run.overlay, mark);
    if (runs_again(x) && code == RP_OK)
        rp_resim_undo(&x->base);
}

enum rp_code rp_worlds_step(struct rp_worlds *x, const char *text, int64_t *step_ns,
                            struct rp_err *err)
{
    size_t mark = rp_overlay_mark(&x->run.overlay);
    enum rp_code code = begin_change(x, text, err);

    if (code == RP_OK)
        code = run_changed(x, step_ns, err);
    end_change(x, mark, code);
    return code;
}

/* Whether the run of a world cannot make a gain certain any more. */
static bool is_lost(const int64_t *before, const int64_t step_ns[RP_WORLDS], int world)
{
    return before && step_ns[world] >= before[world];
}

/* Handles what-ifs that do not know the transport: it is assumed slower, then faster. The change
   was applied, as far as the mark. */
static enum rp_code steps_on_transport(struct rp_worlds *x, size_t changed, const int64_t *before,
                                       int64_t step_ns[RP_WORLDS], struct rp_err *err)
{
    double by = 1 + x->transport_doubt;
    enum rp_code code = RP_OK;

    for (int i = RP_LEAN_SLOWER;
         code == RP_OK && i <= RP_LEAN_FASTER && !is_lost(before, step_ns, i - 1); i++) {
        char scale[64];

        snprintf(scale, sizeof scale, "scale:comm=%.6f", i == RP_LEAN_FASTER ? 1 / by : by);
        code = rp_whatif_apply(&x->run, scale, err);
        if (code == RP_OK)
            code = run_changed(x, &step_ns[i], err);
        rp_overlay_undo(&x->run.overlay, changed);
    }
    return code;
}

/* Makes the list, once, from worlds without a change. */
static enum rp_code list_costs(struct rp_worlds *x, struct rp_err *err)
{
    bool known = x->run.cost_known && !x->run.cost_flat;
    const double factors[] = {rp_sim_cost_end(&x->run, known, false),
                              rp_sim_cost_end(&x->run, known, true)};
    struct rp_worlds *first = x->first ? x->first : x;
    enum rp_code code = RP_OK;

    pthread_mutex_lock(&first->lock);
    if (x->costs && !first->listed)
        code = rp_sim_cost_list(&x->run, factors, &first->at_cost, err);
    first->listed = true;
    pthread_mutex_unlock(&first->lock);
    return code;
}

#define STRETCHED 8
RP_LIMIT(STRETCHED, "times",
         "what a change makes this much longer has something added to it; else it is scaled");

/* A time at another cost of the profiler, after a change that made `now_ns` of `was_ns`: what the
   change does not touch is as without it. */
static int64_t changed_at_cost(int64_t was_ns, int64_t now_ns, int64_t then_ns)
{
    if (now_ns == was_ns)
        return then_ns;
    if (!now_ns || now_ns == RP_LAG_CUT || was_ns == RP_LAG_CUT)
        return now_ns;
    return was_ns > 0 && now_ns / STRETCHED < was_ns
               ? rp_sim_scaled(then_ns, (double)now_ns / (double)was_ns)
               : rp_ns_sum(then_ns, now_ns - was_ns);
}

static enum rp_code put_at_cost(struct rp_overlay *o, const rp_sim_at_cost_vec *list, size_t k,
                                struct rp_err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct rp_sim_at_cost *c = &list->at[i];
        int64_t now = c->is_lag ? o->lag_ns.at[c->at] : o->dur_ns.at[c->at];
        int64_t then = changed_at_cost(c->now_ns, now, c->then_ns[k]);

        RP_TRY(c->is_lag ? rp_overlay_set_lag(o, c->at, then, err)
                         : rp_overlay_set_dur(o, c->at, then, err));
    }
    return RP_OK;
}

/* The same at other costs of the profiler. A change that sums times is applied again, the others
   change the listed times as they changed those of the first world. */
static enum rp_code steps_at_cost(struct rp_worlds *x, const char *text, size_t mark,
                                  size_t changed, const int64_t *before, int64_t step_ns[RP_WORLDS],
                                  struct rp_err *err)
{
    struct rp_overlay *o = &x->run.overlay;
    const rp_sim_at_cost_vec *list = &(x->first ? x->first : x)->at_cost;
    bool again = rp_whatif_sums(text);
    enum rp_code code = RP_OK;

    if (again) {
        changed = mark;
        rp_overlay_undo(o, mark);
    }
    for (int i = RP_LEANS; code == RP_OK && i < RP_WORLDS && !is_lost(before, step_ns, i - 1);
         i++) {
        code = put_at_cost(o, list, (size_t)(i - RP_LEANS), err);
        if (code == RP_OK && again)
            code = apply_change(x, text, err);
        if (code == RP_OK)
            code = run_changed(x, &step_ns[i], err);
        rp_overlay_undo(o, changed);
    }
    return code;
}

/* Runs the step with an assumption about what is unknown. */
static enum rp_code step_in(struct rp_worlds *x, int world, const char *text, int64_t *step_ns,
                            struct rp_err *err)
{
    x->run.lean = (enum rp_sim_lean)world;
    enum rp_code code = rp_worlds_step(x, text, step_ns, err);
    x->run.lean = RP_LEAN_NONE;
    return code;
}

enum rp_code rp_worlds_first(struct rp_worlds *x, const char *text, struct rp_worlds_first *out,
                             struct rp_err *err)
{
    RP_TRY(rp_worlds_step(x, text, &out->step_ns, err));
    out->leans = x->run.leans;
    out->transport = x->run.uses_transport;
    out->latency = out->transport || x->run.latency_doubt;
    return RP_OK;
}

bool rp_worlds_is_sure(const int64_t *before, const int64_t step_ns[RP_WORLDS], int nworlds)
{
    for (int i = 0; before && i < nworlds; i++)
        if (step_ns[i] >= before[i])
            return false;
    return true;
}

/* The worlds in which a change is as in the first: it is applied once for all. */
static enum rp_code steps_as_changed(struct rp_worlds *x, const char *text, bool scaled,
                                     const int64_t *before, int64_t step_ns[RP_WORLDS],
                                     struct rp_err *err)
{
    size_t mark = rp_overlay_mark(&x->run.overlay);

    RP_TRY(list_costs(x, err));
    enum rp_code code = begin_change(x, text, err);
    size_t changed = rp_overlay_mark(&x->run.overlay);
    if (code == RP_OK && scaled)
        code = steps_on_transport(x, changed, before, step_ns, err);
    if (code == RP_OK && x->costs && rp_worlds_is_sure(before, step_ns, RP_LEANS))
        code = steps_at_cost(x, text, mark, changed, before, step_ns, err);
    end_change(x, mark, code);
    return code;
}

enum rp_code rp_worlds_others(struct rp_worlds *x, const char *text,
                              const struct rp_worlds_first *first, const int64_t *before,
                              int64_t step_ns[RP_WORLDS], struct rp_err *err)
{
    bool scaled = !first->transport && x->transport_doubt > 0;
    int nleans = scaled ? RP_LEAN_SLOWER : RP_LEANS;

    for (int i = 0; i < RP_WORLDS; i++)
        step_ns[i] = first->step_ns;
    for (int i = 1; i < nleans && !is_lost(before, step_ns, i - 1); i++)
        if (first->leans >> i & 1 &&
            (i >= RP_LEAN_SLOWER || first->latency)) /* only work that communicates has a latency */
            RP_TRY(step_in(x, i, text, &step_ns[i], err));
    return scaled || (x->costs && rp_worlds_is_sure(before, step_ns, RP_LEANS))
               ? steps_as_changed(x, text, scaled, before, step_ns, err)
               : RP_OK;
}

enum rp_code rp_worlds_steps(struct rp_worlds *x, const char *text, const int64_t *before,
                             int64_t step_ns[RP_WORLDS], struct rp_err *err)
{
    struct rp_worlds_first first = {0};

    RP_TRY(rp_worlds_first(x, text, &first, err));
    return rp_worlds_others(x, text, &first, before, step_ns, err);
}

double rp_worlds_absent(const struct rp_worlds *x)
{
    double most = 0;

    for (size_t i = 0; i < x->run.nranks; i++)
        if (x->run.parts[i]->world_size > (int64_t)x->given &&
            x->run.parts[i]->exposed_ratio > most)
            most = x->run.parts[i]->exposed_ratio;
    return most;
}

const char *rp_worlds_distrust(const struct rp_worlds *x)
{
    const struct rp_sim_now now = {x->recorded_ns, x->simulated_ns, x->step_ns};
    const struct rp_sim_part *first = x->run.parts[0];

    if (x->capture)
        return "this is a recording of a graph capture, whose kernels did not run";
    if (!first->has_steps && !first->recorded_steps)
        return "no steps are marked: the whole recording is one step, with what happens only once, "
               "such as loading and compiling";
    if (rp_sim_starts_up(&x->run))
        return RP_SIM_START_UP;
    if (!rp_sim_reproduces(&now))
        return "the model does not reproduce the recorded step";
    return x->unlike ? "the steps differ by more than half of their median" : NULL;
}

#define HOST_TRANSPORT_DOUBT 0.04
RP_DECISION(HOST_TRANSPORT_DOUBT, "of a step",
            "the median error of predicted changes of buckets over gloo (docs/cli/simulate.md)",
            "sim/gains_over_the_hosts_transport_are_doubted");

/* The error that a gain may have besides what the worlds show. Ranks that were not given may have
   more work that the change does not reach, up to the time that this one waits for them. It is
   unknown how much of its communication is such a wait, so no other way to communicate is certain
   to help. */
static int64_t gain_doubt(const struct rp_worlds *x, int64_t step_ns, const char *text)
{
    bool on_host = x->run.parts[0]->collectives.on_host && x->transport_doubt > 0;
    bool communicates = !strncmp(text, "bucket", 6) || !strncmp(text, "overlap", 7);
    double absent = rp_worlds_absent(x);

    if (communicates && absent > 0)
        return step_ns;
    return rp_sim_scaled(step_ns, (communicates && on_host ? HOST_TRANSPORT_DOUBT : 0) + absent);
}

/* Narrows the interval of the gain by what was measured on this machine about the change. */
static void learn_gain(const struct rp_worlds *x, int64_t before, const char *text,
                       struct rp_gain *g)
{
    double step = (double)before, now = 1 - (double)g->ns / step;
    double low = 1 - (double)g->high_ns / step, high = 1 - (double)g->low_ns / step;

    g->tries = (int64_t)rp_sim_narrow(&x->outcomes, x->run.parts[0], text, now, &low, &high);
    if (!g->tries)
        return;
    g->low_ns = rp_sim_scaled(before, 1 - high);
    g->high_ns = rp_sim_scaled(before, 1 - low);
}

struct rp_gain rp_worlds_gain(const struct rp_worlds *x, const int64_t before[RP_WORLDS],
                              const int64_t then[RP_WORLDS], const char *text)
{
    struct rp_gain g = {.ns = before[0] - then[0]};
    double more = 1 + x->doubt;

    g.low_ns = g.high_ns = g.ns;
    for (size_t i = 1; i < RP_WORLDS; i++) {
        int64_t gain = before[i] - then[i];

        g.low_ns = gain < g.low_ns ? gain : g.low_ns;
        g.high_ns = gain > g.high_ns ? gain : g.high_ns;
    }
    g.low_ns = rp_sim_scaled(g.low_ns, g.low_ns > 0 ? 1 / more : more);
    g.high_ns = rp_sim_scaled(g.high_ns, g.high_ns > 0 ? more : 1 / more);
    g.low_ns -= gain_doubt(x, before[0], text);
    g.high_ns += gain_doubt(x, before[0], text);
    if (g.high_ns > before[0])
        g.high_ns = before[0]; /* no change saves more than the whole step */
    learn_gain(x, before[0], text, &g);
    return g;
}
