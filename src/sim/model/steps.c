/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the steps of a rank as recorded. The duration of a step follows from its mark and from the
 * end of the device work that was launched in it (facts/times/step_times.h). A mark is not a node
 * of the graph. The first node of its thread represents it (for a mark on the device, the first
 * node of the device; if there is none, of any lane), and the distance from the mark to that node
 * is kept. The same holds for the end of the last mark. Linear in the nodes.
 *
 *     mark    |ProfilerStep#1 ......................|ProfilerStep#2 ........|
 *     thread  |  head  [node][node]      [node]     |  head  [node]   tail  |
 */
#include "sim/model/steps.h"

#include "base/decides.h"
#include "base/order.h"
#include "facts/times/step_times.h"
#include "sim/engine/task_graph.h"

#include <reprise/result.h>

#include <math.h>

enum rp_code rp_sim_steps_list(struct rp_sim_part *p, const struct rp_trace *t, struct rp_err *err)
{
    uint32_t i, whole = rp_whole_steps(t), count = whole < RP_NO_STEP ? whole : RP_NO_STEP - 1;
    struct rp_interval span = rp_trace_span(t), judged = rp_trace_judged_span(t);

    /* device work that takes hardly any of the recording is judged alone, as in critpath */
    if (!count && rp_ns_between(judged.begin_ns, judged.end_ns) <
                      rp_ns_between(span.begin_ns, span.end_ns) / 10)
        span = judged;
    p->nranks = 1;
    p->has_steps = count > 0;
    p->nsteps = count ? count : 1;
    p->marks_on_device = count && t->steps[0].flags & RP_STEP_ON_DEVICE;
    RP_TRY(rp_vec_reserve(&p->step_begin_ns, p->nsteps, err));
    RP_TRY(rp_vec_reserve(&p->step_end_ns, p->nsteps, err));
    p->step_begin_ns.at[0] = span.begin_ns;
    p->step_end_ns.at[0] = span.end_ns < p->graph.end_ns ? span.end_ns : p->graph.end_ns;
    for (i = 0; i < count; i++) {
        bool ends = i + 1 == t->nsteps || t->steps[i].flags & RP_STEP_BREAK_AFTER;

        p->step_begin_ns.at[i] = t->steps[i].begin_ns;
        p->step_end_ns.at[i] = ends ? t->steps[i].end_ns : t->steps[i + 1].begin_ns;
    }
    p->step_begin_ns.n = p->step_end_ns.n = p->nsteps;

    /* Find which steps were recorded without detail, or before or after all device work; if all
       were, there are no others. */
    RP_SCOPED(rp_arena_release) struct rp_arena scratch = RP_ARENA_INIT;
    struct rp_interval *times;
    uint32_t n = 0;
    if (!p->has_steps)
        return RP_OK;
    RP_TRY(rp_step_times(t, &scratch, &times, err));
    RP_TRY(rp_vec_reserve(&p->bare, p->nsteps, err));
    for (uint32_t k = 0; k < p->nsteps; k++) {
        p->bare.at[k] =
            t->steps[k].flags & RP_STEP_NO_DETAIL ||
            (!(t->steps[k].flags & RP_STEP_WARM_UP) && !rp_step_is_judged(t, k, times[k]));
        n += p->bare.at[k];
    }
    p->bare.n = n && n < p->nsteps ? p->nsteps : 0;
    return RP_OK;
}

size_t rp_sim_keep_detailed(const struct rp_sim_part *p, struct rp_interval *steps, size_t n)
{
    size_t i, kept = 0;

    for (i = 0; i < n; i++)
        if (!rp_sim_step_is_bare(p, i))
            steps[kept++] = steps[i];
    return kept;
}

uint16_t rp_sim_step_at(const struct rp_sim_part *p, int64_t ns)
{
    uint32_t low;

    RP_LOWER_BOUND(low, p->nsteps, p->step_begin_ns.at[low] <= ns);
    if (!low || (p->has_steps && ns >= p->step_end_ns.at[low - 1]))
        return RP_NO_STEP;
    return (uint16_t)(low - 1);
}

/* ------------------------------------------------------------------ what stands for marks */

struct steps_ctx {
    struct rp_sim_part *p;
    const struct rp_trace *t;
    uint8_t *seen; /* by step: whether nodes represent its mark */
};

/* Whether a node is on the thread of the mark; if there is no mark, on any thread. */
static bool is_on_mark(const struct steps_ctx *m, uint32_t i)
{
    const struct rp_sg_node *node = &m->p->graph.nodes.at[i];

    if (!m->p->has_steps)
        return node->flags & RP_SG_WORK;
    if (m->p->marks_on_device || rp_sg_on_device(&m->p->graph, i))
        return m->p->marks_on_device && rp_sg_on_device(&m->p->graph, i);
    rp_event mark = m->t->steps[m->p->notes.at[i].step].mark;
    return mark == RP_NONE || m->t->ev.track[node->event] == m->t->ev.track[mark];
}

static void mark_timers(const struct steps_ctx *m)
{
    struct rp_sim_part *p = m->p;

    for (uint32_t i = 0; i < p->notes.n; i++)
        if (p->notes.at[i].step != RP_NO_STEP && p->graph.nodes.at[i].event != RP_NONE &&
            is_on_mark(m, i)) {
            p->notes.at[i].flags |= RP_SIM_TIMES;
            m->seen[p->notes.at[i].step] = 1;
        }
    for (uint32_t i = 0; i < p->notes.n; i++)
        if (p->notes.at[i].step != RP_NO_STEP && !m->seen[p->notes.at[i].step])
            p->notes.at[i].flags |= RP_SIM_TIMES;
}

/* If no nodes represent a mark, the head of the step is 0. */
static enum rp_code find_heads(struct rp_sim_part *p, struct rp_err *err)
{
    /* Flags the nodes that end with the last mark or before; returns when the last of them ends. */
    int64_t last = INT64_MIN;

    for (size_t i = 0; i < p->notes.n; i++) {
        int64_t end = rp_sg_end_ns(&p->graph.nodes.at[i]);

        if (p->notes.at[i].step != p->nsteps - 1 || !(p->notes.at[i].flags & RP_SIM_TIMES) ||
            end > p->step_end_ns.at[p->nsteps - 1])
            continue;
        p->notes.at[i].flags |= RP_SIM_ENDS;
        last = end > last ? end : last;
    }

    RP_TRY(rp_vec_reserve(&p->head_ns, p->nsteps, err));
    p->head_ns.n = p->nsteps;
    for (size_t i = 0; i < p->nsteps; i++)
        p->head_ns.at[i] = INT64_MAX;
    for (size_t i = 0; i < p->notes.n; i++)
        if (p->notes.at[i].flags & RP_SIM_TIMES) {
            int64_t *head = &p->head_ns.at[p->notes.at[i].step];
            int64_t start = p->graph.nodes.at[i].start_ns;

            *head = start < *head ? start : *head;
        }
    for (size_t i = 0; i < p->nsteps; i++)
        p->head_ns.at[i] = p->head_ns.at[i] == INT64_MAX
                               ? 0
                               : rp_ns_between(p->step_begin_ns.at[i], p->head_ns.at[i]);
    p->tail_ns =
        last == INT64_MIN ? RP_ABSENT_I64 : rp_ns_between(last, p->step_end_ns.at[p->nsteps - 1]);
    return RP_OK;
}

/* ------------------------------------------------------------------ how long a step takes */

static double spread_of(const struct rp_interval *steps, size_t n, int64_t median_ns)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += fabs((double)rp_ns_between(steps[i].begin_ns, steps[i].end_ns) - (double)median_ns);
    return n > 1 && median_ns > 0 ? sum / (double)n / (double)median_ns : NAN;
}

#define ONE_STEP_SPREAD 0.03
RP_DECISION(ONE_STEP_SPREAD, "of a step",
            "the median of 46 recordings with several (docs/definitions.md, Interval)",
            "sim/one_step_spreads_as_usual");

double rp_sim_spread(const struct rp_sim_part *part)
{
    return !isnan(part->spread_ratio) ? part->spread_ratio : part->has_steps ? ONE_STEP_SPREAD : 0;
}

int64_t rp_sim_median_gap(const struct rp_sim_part *p, int64_t *at_ns, size_t n)
{
    size_t i, kept = 0, bare = 0;

    while (bare + 1 < n && rp_sim_step_is_bare(p, bare))
        bare++;
    for (i = 0; i + 1 < n; i++)
        if (bare + 1 == n || !rp_sim_step_is_bare(p, i))
            at_ns[kept++] = rp_ns_between(at_ns[i], at_ns[i + 1]);
    rp_ns_sort(at_ns, kept);
    return kept ? rp_ns_median(at_ns, kept) : 0;
}

/* Finds the node that ends the work of the step before the first one. */
static void find_previous(struct rp_sim_part *p, const struct rp_trace *t)
{
    rp_event last;

    if (rp_previous_step_end(t, &last, &p->previous_unrecorded) == RP_NO_TS)
        return;
    for (uint32_t i = 0; i < p->graph.nodes.n && !p->previous; i++)
        if (p->graph.nodes.at[i].event == last)
            p->previous = i + 1;
}

static enum rp_code measure_steps(struct rp_sim_part *p, const struct rp_trace *t,
                                  struct rp_arena *scratch, struct rp_err *err)
{
    struct rp_interval *steps;

    p->spread_ratio = NAN;
    p->measured_ns = p->distance_ns = rp_ns_between(p->step_begin_ns.at[0], p->step_end_ns.at[0]);
    if (!p->has_steps)
        return RP_OK;
    RP_TRY(rp_step_times(t, scratch, &steps, err));
    size_t n = rp_sim_keep_detailed(p, steps, rp_whole_steps(t)), warm = 0;
    RP_TRY(rp_step_median(steps, n, scratch, &p->measured_ns, err));
    for (size_t i = 0; i < p->nsteps; i++) /* they are the first ones */
        warm += t->steps[i].flags & RP_STEP_WARM_UP && !rp_sim_step_is_bare(p, i);
    warm = warm < n ? warm : 0;
    p->spread_ratio = spread_of(steps + warm, n - warm, p->measured_ns);
    find_previous(p, t);
    int64_t *first = RP_ARENA_NEW(scratch, int64_t, p->nsteps);
    if (first) {
        /* If every step has device work that was launched inside its mark, the distance is between
           such work. */
        size_t i, without = p->nsteps;

        for (i = 0; i < p->nsteps; i++)
            first[i] = INT64_MAX;
        for (i = 0; i < p->notes.n; i++) {
            int64_t *at = p->notes.at[i].flags & RP_SIM_BEGINS ? &first[p->notes.at[i].step] : NULL;

            if (!at)
                continue;
            without -= *at == INT64_MAX;
            *at = p->graph.nodes.at[i].start_ns < *at ? p->graph.nodes.at[i].start_ns : *at;
        }
        p->begins_on_device = p->has_steps && !without;
        for (i = 0; i < p->nsteps && !p->begins_on_device; i++)
            first[i] = p->step_begin_ns.at[i];
        p->distance_ns = p->nsteps > 1 ? rp_sim_median_gap(p, first, p->nsteps) : p->measured_ns;
    }
    return rp_arena_check(scratch, "simulating", err);
}

enum rp_code rp_sim_steps_measure(struct rp_sim_part *p, const struct rp_trace *t,
                                  struct rp_err *err)
{
    RP_SCOPED(rp_arena_release) struct rp_arena scratch = RP_ARENA_INIT;
    struct steps_ctx m = {p, t, RP_ARENA_NEW(&scratch, uint8_t, p->nsteps)};

    RP_TRY(rp_err_need(m.seen, err, "simulating"));
    mark_timers(&m);
    RP_TRY(find_heads(p, err));
    return measure_steps(p, t, &scratch, err);
}
