/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the steps of a rank begin. Where every step has device work, its first piece is the begin;
 * else it is the mark, which is no node of the graph: the first node on the mark's thread (where it
 * has none, of any lane) stands for it, and the distance from the mark to that node is kept, so
 * that the simulated step is told from mark to mark as the recorded one is. Linear in the nodes.
 *
 *     mark    |ProfilerStep#1 ......................|ProfilerStep#2
 *     thread  |  head  [node][node]      [node] tail|  head  [node]
 */
#include "sim/model/steps.h"

#include "base/order.h"
#include "sim/engine/task_graph.h"

#include <math.h>
#include <stdlib.h>

int64_t rp_sim_median_gap(int64_t *at_ns, size_t n)
{
    size_t i;

    if (n < 2)
        return 0;
    for (i = 0; i + 1 < n; i++)
        at_ns[i] = at_ns[i + 1] - at_ns[i];
    n--;
    rp_ns_sort(at_ns, n);
    return rp_ns_median(at_ns, n);
}

enum rp_code rp_sim_steps_list(struct rp_sim_part *p, const struct rp_trace *t, struct rp_err *err)
{
    uint32_t i, count = t->nsteps < RP_NO_STEP ? t->nsteps : RP_NO_STEP - 1;

    p->nranks = 1;
    p->has_steps = count > 0;
    p->nsteps = count ? count : 1;
    RP_TRY(rp_vec_reserve(&p->step_begin_ns, p->nsteps, err));
    RP_TRY(rp_vec_reserve(&p->step_end_ns, p->nsteps, err));
    p->step_begin_ns.at[0] = p->graph.begin_ns;
    p->step_end_ns.at[0] = p->graph.end_ns;
    for (i = 0; i < count; i++) {
        p->step_begin_ns.at[i] = t->steps[i].begin_ns;
        p->step_end_ns.at[i] = t->steps[i].end_ns;
    }
    p->step_begin_ns.n = p->step_end_ns.n = p->nsteps;
    return RP_OK;
}

/* Steps are in order and do not overlap, except in damaged files. */
uint16_t rp_sim_step_at(const struct rp_sim_part *p, int64_t ns)
{
    uint32_t low;

    RP_LOWER_BOUND(low, p->nsteps, p->step_begin_ns.at[low] <= ns);
    return low && ns < p->step_end_ns.at[low - 1] ? (uint16_t)(low - 1) : RP_NO_STEP;
}

/* ------------------------------------------------------------------ what times the steps */

struct steps_ctx {
    struct rp_sim_part *p;
    const struct rp_work *work;
    const uint32_t *item_of;
    uint8_t *seen; /* by step */
};

static bool is_device(const struct rp_stepgraph *g, uint32_t node)
{
    uint32_t lane = g->nodes.at[node].lane;

    return lane != RP_NONE && g->lanes.at[lane].device;
}

/* Device work begins steps where each step has some that its launch ties to it. */
static bool steps_have_work(const struct steps_ctx *m)
{
    const struct rp_sim_part *p = m->p;
    uint32_t i, count = 0;

    for (i = 0; i < m->work->items.n; i++) {
        rp_event launch = m->work->items.at[i].launch;
        uint16_t step =
            launch == RP_NONE ? RP_NO_STEP : rp_sim_step_at(p, m->work->trace->ev.ts_ns[launch]);

        if (step != RP_NO_STEP && !m->seen[step]) {
            m->seen[step] = 1;
            count++;
        }
    }
    return p->has_steps && p->nsteps > 1 && count == p->nsteps;
}

/* Of one step what ends in it; of several, where the next begins is told by its own nodes. */
static bool is_inside(const struct rp_sim_part *p, const struct rp_sg_node *node)
{
    return p->nsteps > 1 || rp_sg_end_ns(node) <= p->step_end_ns.at[0];
}

static bool times_step(const struct steps_ctx *m, uint32_t i)
{
    const struct rp_sim_part *p = m->p;
    const struct rp_sg_node *node = &p->graph.nodes.at[i];
    const struct rp_trace *t = m->work->trace;
    rp_event mark;

    if (p->notes.at[i].step == RP_NO_STEP)
        return false;
    if (p->on_device) {
        uint32_t item = is_device(&p->graph, i) ? m->item_of[node->event] : 0;

        return item && m->work->items.at[item - 1].launch != RP_NONE;
    }
    if (!p->has_steps)
        return true;
    mark = t->steps[p->notes.at[i].step].mark;
    return is_inside(p, node) &&
           (mark == RP_NONE || (!is_device(&p->graph, i) && node->event != RP_NONE &&
                                t->ev.track[node->event] == t->ev.track[mark]));
}

/* Steps whose mark's thread has no nodes are timed by all of theirs. */
static void mark_others(const struct steps_ctx *m)
{
    struct rp_sim_part *p = m->p;
    uint32_t i;

    for (i = 0; i < p->notes.n; i++) {
        struct rp_sim_note *note = &p->notes.at[i];

        if (note->step != RP_NO_STEP && !m->seen[note->step] && is_inside(p, &p->graph.nodes.at[i]))
            note->flags |= RP_SIM_TIMES;
    }
}

static void mark_timers(const struct steps_ctx *m)
{
    struct rp_sim_part *p = m->p;
    uint32_t i;

    p->on_device = steps_have_work(m);
    for (i = 0; i < p->nsteps; i++)
        m->seen[i] = 0;
    for (i = 0; i < p->notes.n; i++)
        if (times_step(m, i)) {
            p->notes.at[i].flags |= RP_SIM_TIMES;
            m->seen[p->notes.at[i].step] = 1;
        }
    mark_others(m);
}

/* ------------------------------------------------------------------ how long a step takes */

/* The first start of a step's timers, and how far behind its begin that is; where it has none, and
   where device work is the begin, 0. */
static enum rp_code find_heads(struct rp_sim_part *p, int64_t *first, struct rp_err *err)
{
    int64_t last = INT64_MIN;
    size_t i;

    RP_TRY(rp_vec_reserve(&p->head_ns, p->nsteps, err));
    p->head_ns.n = p->nsteps;
    for (i = 0; i < p->nsteps; i++)
        first[i] = INT64_MAX;
    for (i = 0; i < p->notes.n; i++) {
        const struct rp_sg_node *node = &p->graph.nodes.at[i];
        uint16_t step = p->notes.at[i].step;

        if (!(p->notes.at[i].flags & RP_SIM_TIMES))
            continue;
        first[step] = node->start_ns < first[step] ? node->start_ns : first[step];
        last = rp_sg_end_ns(node) > last ? rp_sg_end_ns(node) : last;
    }
    for (i = 0; i < p->nsteps; i++)
        p->head_ns.at[i] = p->on_device || first[i] == INT64_MAX
                               ? 0
                               : rp_ns_between(p->step_begin_ns.at[i], first[i]);
    if (p->nsteps == 1 && last != INT64_MIN && last < p->step_end_ns.at[0])
        p->tail_ns = rp_ns_between(last, p->step_end_ns.at[0]);
    return RP_OK;
}

static void measure_steps(struct rp_sim_part *p, int64_t *at)
{
    double sum = 0;
    size_t i;

    p->spread_ratio = NAN;
    if (p->nsteps < 2) {
        p->measured_ns = rp_ns_between(p->step_begin_ns.at[0], p->step_end_ns.at[0]);
        return;
    }
    for (i = 0; i < p->nsteps; i++)
        if (!p->on_device)
            at[i] = p->step_begin_ns.at[i];
    p->measured_ns = rp_sim_median_gap(at, p->nsteps);
    for (i = 0; i + 1 < p->nsteps; i++)
        sum += fabs((double)(at[i] - p->measured_ns));
    if (p->nsteps > 2 && p->measured_ns > 0)
        p->spread_ratio = sum / (double)(p->nsteps - 1) / (double)p->measured_ns;
}

enum rp_code rp_sim_steps_measure(struct rp_sim_part *p, const struct rp_work *work,
                                  const uint32_t *item_of, struct rp_err *err)
{
    struct steps_ctx m = {p, work, item_of, calloc(p->nsteps, 1)};
    int64_t *first = malloc(p->nsteps * sizeof *first);
    enum rp_code code = m.seen && first ? RP_OK : rp_err_nomem(err, "simulating");

    if (code == RP_OK) {
        mark_timers(&m);
        code = find_heads(p, first, err);
    }
    if (code == RP_OK)
        measure_steps(p, first);
    free(m.seen);
    free(first);
    return code;
}
