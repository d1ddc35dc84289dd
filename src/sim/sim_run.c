/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From step graphs to tasks. Nodes and tasks have the same numbers, so that notes, names and lanes
 * of the graph are at hand where a what-if looks at a task.
 */
#include "sim/sim_run.h"

#include <stdlib.h>
#include <string.h>

static enum rp_code join_ranks(struct rp_sim_run *run, struct rp_err *err)
{
    struct rp_sg_member *members = RP_ARENA_NEW(&run->arena, struct rp_sg_member, run->nranks + 1);
    size_t i;

    if (!members)
        return rp_err_nomem(err, "simulating");
    for (i = 0; i < run->nranks; i++) {
        members[i].graph = &run->parts[i]->graph;
        members[i].collectives = &run->parts[i]->collectives;
    }
    run->graph = &run->parts[0]->graph;
    if (run->nranks < 2)
        return RP_OK;
    RP_TRY(rp_sg_join(&run->joined, members, run->nranks, &run->arena, &run->join, err));
    if (run->joined.nodes.n)
        run->graph = &run->joined;
    else
        run->nranks = 1;
    return RP_OK;
}

static enum rp_code copy_notes(struct rp_sim_run *run, struct rp_err *err)
{
    struct rp_sim_note none = {0, RP_NO_STEP, RP_PHASE_OTHER, 0};
    size_t i, r, n = run->graph->nodes.n;

    RP_TRY(rp_vec_reserve(&run->notes, n + 1, err));
    for (i = 0; i < n; i++)
        run->notes.at[i] = none;
    for (r = 0; r < run->nranks; r++) {
        const struct rp_sim_part *part = run->parts[r];

        memcpy(run->notes.at + rp_sim_first_node(run, r), part->notes.at,
               part->notes.n * sizeof *part->notes.at);
    }
    run->notes.n = n;
    return RP_OK;
}

/* Devices of a job stand behind that of its transport. */
static uint32_t device_of(const struct rp_sim_run *run, size_t node)
{
    const struct rp_sim_part *first = run->parts[0];

    return run->nranks > 1 || !first->devices.n || first->devices.at[node] == RP_NO_DEVICE
               ? RP_NO_DEVICE
               : first->devices.at[node] + 1;
}

static enum rp_code make_tasks(struct rp_sim_run *run, struct rp_err *err)
{
    const struct rp_stepgraph *g = run->graph;
    uint32_t device;
    size_t i;

    for (i = 0; i < run->nranks; i++)
        RP_TRY(rp_task_graph_add_device(&run->tasks, "transport", RP_DEVICE_SHARED, &device, err));
    for (i = 0; run->nranks == 1 && i < run->parts[0]->device_rules.n; i++)
        RP_TRY(rp_task_graph_add_device(&run->tasks, "device",
                                        (enum rp_sim_device_rule)run->parts[0]->device_rules.at[i],
                                        &device, err));
    for (i = 0; i < g->nodes.n; i++) {
        const struct rp_sg_node *node = &g->nodes.at[i];
        struct rp_task task = {.dur_ns = node->dur_ns,
                               .device = device_of(run, i),
                               .name = node->name,
                               .rank = node->rank,
                               .source = (uint32_t)i,
                               .step = run->notes.at[i].step,
                               .kind = node->kind};

        if (run->nranks == 1 && run->parts[0]->priorities.n)
            task.priority = run->parts[0]->priorities.at[i];
        RP_TRY(rp_task_graph_add(&run->tasks, task, NULL, err));
    }
    for (i = 0; i < g->edges.n; i++) {
        const struct rp_sg_edge *e = &g->edges.at[i];
        uint32_t flags = (uint32_t)e->kind << 8;

        if (e->flags & RP_SG_FROM_START)
            flags |= RP_EDGE_FROM_START;
        RP_TRY(rp_task_graph_link(&run->tasks, e->from, e->to, e->lag_ns, flags, err));
    }
    return rp_task_graph_freeze(&run->tasks, err);
}

enum rp_code rp_sim_run_init(struct rp_sim_run *run, const struct rp_sim_part *const *parts,
                             size_t n, struct rp_err *err)
{
    memset(run, 0, sizeof *run);
    rp_arena_init(&run->arena);
    rp_task_graph_init(&run->tasks);
    run->parts = parts;
    run->nranks = n;
    RP_TRY(join_ranks(run, err));
    RP_TRY(copy_notes(run, err));
    RP_TRY(make_tasks(run, err));
    RP_TRY(rp_vec_reserve(&run->gone, run->graph->nodes.n + 1, err));
    memset(run->gone.at, 0, run->graph->nodes.n);
    run->gone.n = run->graph->nodes.n;
    return rp_overlay_init(&run->overlay, &run->tasks, err);
}

void rp_sim_run_release(struct rp_sim_run *run)
{
    rp_overlay_release(&run->overlay);
    rp_task_graph_release(&run->tasks);
    rp_vec_release(&run->notes);
    rp_vec_release(&run->gone);
    rp_sg_release(&run->joined);
    rp_arena_release(&run->arena);
}

/* ------------------------------------------------------------------ a step's time */

bool rp_sim_times_step(const struct rp_sim_run *run, size_t i)
{
    return (run->graph->nodes.at[i].rank == 0 || run->nranks == 1) &&
           run->notes.at[i].flags & RP_SIM_TIMES && !run->gone.at[i];
}

/* Steps beside each other all begin at 0: the mean of their ends. */
static enum rp_code mean_end(const struct rp_sim_run *run, const struct rp_sim_result *result,
                             int64_t *out, struct rp_err *err)
{
    size_t i, n = run->parts[0]->nsteps;
    int64_t *last = calloc(n, sizeof *last);
    double sum = 0;

    if (!last)
        return rp_err_nomem(err, "simulating");
    for (i = 0; i < run->notes.n; i++) {
        uint16_t step = run->notes.at[i].step;

        if (rp_sim_times_step(run, i) && result->end_ns.at[i] > last[step])
            last[step] = result->end_ns.at[i];
    }
    for (i = 0; i < n; i++)
        sum += (double)last[i];
    free(last);
    *out = (int64_t)(sum / (double)n + 0.5);
    return RP_OK;
}

enum rp_code rp_sim_step_ns(const struct rp_sim_run *run, const struct rp_sim_result *result,
                            int64_t *out, struct rp_err *err)
{
    size_t i, n = run->parts[0]->nsteps;
    int64_t *first, last = 0;

    if (run->parts[0]->beside)
        return mean_end(run, result, out, err);
    first = malloc(n * sizeof *first);
    if (!first)
        return rp_err_nomem(err, "simulating");
    for (i = 0; i < n; i++)
        first[i] = INT64_MAX;
    for (i = 0; i < run->notes.n; i++) {
        uint16_t step = run->notes.at[i].step;

        if (!rp_sim_times_step(run, i))
            continue;
        if (result->start_ns.at[i] < first[step])
            first[step] = result->start_ns.at[i];
        if (result->end_ns.at[i] > last)
            last = result->end_ns.at[i];
    }
    for (i = run->notes.n; i < result->end_ns.n && n == 1; i++)
        if (result->end_ns.at[i] > last)
            last = result->end_ns.at[i];
    if (n > 1)
        *out = rp_sim_median_gap(first, n);
    else
        *out = first[0] == INT64_MAX ? result->last_ns : last - first[0];
    free(first);
    return RP_OK;
}

/* ------------------------------------------------------------------ without the profiler */

/* What recording one span costs, in times of an operator that does next to nothing but is recorded:
   part of it lies inside the span and part behind it (docs/definitions.md). */
#define COST_OF_QUICK 2.5

/* Of what a node takes at least this part is its own. */
#define OWN_PART 10

struct debt {
    struct rp_sim_run *run;
    int64_t cost_ns, owed_ns;
};

static enum rp_code pay(struct debt *d, uint32_t task, struct rp_err *err)
{
    int64_t dur = d->run->overlay.dur_ns.at[task];
    int64_t most = dur - dur / OWN_PART, paid = d->owed_ns < most ? d->owed_ns : most;

    if (paid <= 0)
        return RP_OK;
    d->owed_ns -= paid;
    return rp_overlay_set_dur(&d->run->overlay, task, dur - paid, err);
}

/* The lag from the node before it on the thread, where that is what it waited for. */
static enum rp_code pay_lag(struct debt *d, uint32_t task, struct rp_err *err)
{
    const struct rp_task_graph *g = &d->run->tasks;
    uint32_t i;

    if (!task || d->owed_ns <= 0)
        return RP_OK;
    for (i = g->first.at[task - 1]; i < g->first.at[task]; i++) {
        int64_t lag = d->run->overlay.lag_ns.at[i], paid;

        if (g->edges.at[i].to != task || RP_SIM_EDGE_KIND(g->edges.at[i].flags) != RP_SG_ORDER ||
            lag <= 0)
            continue;
        paid = lag - lag / OWN_PART;
        paid = d->owed_ns < paid ? d->owed_ns : paid;
        d->owed_ns -= paid;
        return rp_overlay_set_lag(&d->run->overlay, i, lag - paid, err);
    }
    return RP_OK;
}

static enum rp_code drop_on_lane(struct debt *d, uint32_t first, uint32_t end, struct rp_err *err)
{
    uint32_t i;

    d->owed_ns = 0;
    for (i = first; i < end; i++) {
        uint8_t flags = d->run->notes.at[i].flags;

        RP_TRY(pay_lag(d, i, err));
        if (flags & RP_SIM_OPENS)
            d->owed_ns += d->cost_ns * (flags & RP_SIM_CALL ? 2 : 1);
        RP_TRY(pay(d, i, err));
    }
    return RP_OK;
}

enum rp_code rp_sim_drop_profiler(struct rp_sim_run *run, double factor, struct rp_err *err)
{
    const struct rp_stepgraph *g = run->graph;
    size_t i;

    run->dropped = true;
    for (i = 0; i < g->lanes.n; i++) {
        const struct rp_sg_lane *lane = &g->lanes.at[i];
        struct debt d = {.run = run};

        if (lane->device)
            continue;
        d.cost_ns = (int64_t)(factor * COST_OF_QUICK * (double)run->parts[lane->rank]->quick_ns);
        RP_TRY(drop_on_lane(&d, lane->first, lane->end, err));
    }
    return RP_OK;
}
