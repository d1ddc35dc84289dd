/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes tasks from step graphs. Nodes and tasks have the same numbers, so that notes, names and
 * lanes of the graph are available for each task of a what-if.
 */
#include "sim/model/run.h"

#include "base/filled.h"
#include "base/order.h"
#include "sim/model/pack.h"
#include "sim/model/packed_run.h"
#include "sim/model/profiler_cost.h"
#include "sim/model/simulated_steps.h"

#include <stdlib.h>
#include <string.h>

RP_ORDER(by_begin, struct rp_interval, RP_UP(begin_ns), RP_UP(end_ns))

static enum rp_code join_ranks(struct rp_sim_run *run, struct rp_err *err)
{
    struct rp_sg_member *members = RP_ARENA_NEW(&run->arena, struct rp_sg_member, run->nranks + 1);

    RP_TRY(rp_err_need(members, err, "simulating"));
    for (size_t i = 0; i < run->nranks; i++) {
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

        if (part->notes.n)
            memcpy(run->notes.at + rp_sim_first_node(run, r), part->notes.at,
                   part->notes.n * sizeof *part->notes.at);
    }
    run->notes.n = n;
    return RP_OK;
}

/* ------------------------------------------------------------------ kernels of several streams */

static bool runs_kernel(const struct rp_sg_node *node, const struct rp_sg_lane *lanes)
{
    return node->kind == RP_SG_COMPUTE && node->lane != RP_NONE && lanes[node->lane].device;
}

enum rp_code rp_sim_ran_alone(const struct rp_sg_node *nodes, size_t n,
                              const struct rp_sg_lane *lanes, bool *out, struct rp_err *err)
{
    RP_VEC_LOCAL(struct rp_interval, times);
    uint32_t lane = RP_NONE;

    *out = false;
    for (size_t i = 0; i < n && !*out; i++)
        if (runs_kernel(&nodes[i], lanes)) {
            *out = lane != RP_NONE && nodes[i].lane != lane;
            lane = nodes[i].lane;
        }
    for (size_t i = 0; i < n && *out; i++)
        if (runs_kernel(&nodes[i], lanes)) {
            struct rp_interval time = {nodes[i].start_ns, rp_sg_end_ns(&nodes[i])};

            RP_TRY(rp_vec_push(&times, time, err));
        }
    if (times.n)
        qsort(times.at, times.n, sizeof *times.at, by_begin);
    for (size_t i = 1; i < times.n && *out; i++)
        *out = times.at[i].begin_ns >= times.at[i - 1].end_ns;
    return RP_OK;
}

/* The devices of a job come after that of its transport. */
static uint32_t device_of(const struct rp_sim_run *run, size_t node)
{
    const struct rp_sim_part *first = run->parts[0];

    if (!first->parallel_steps && run->graph->nodes.at[node].kind == RP_SG_COMPUTE &&
        rp_sg_on_device(run->graph, node))
        return run->kernel_device[run->nranks > 1 ? run->graph->nodes.at[node].rank : 0];
    return run->nranks > 1 || !first->devices.n || first->devices.at[node] == RP_NO_DEVICE
               ? RP_NO_DEVICE
               : first->devices.at[node] + 1;
}

static enum rp_code add_links(struct rp_sim_run *run, struct rp_err *err)
{
    const struct rp_sim_part *first = run->parts[0];
    size_t i, n = 2 * run->nranks * first->nranks * (first->parallel_steps ? first->nsteps : 1);
    uint32_t device;

    run->links = (uint32_t)run->tasks.devices.n;
    for (i = 0; i < n && run->nranks * first->nranks > 1; i++)
        RP_TRY(rp_task_graph_add_device(&run->tasks, "link", RP_DEVICE_SERIAL, &device, err));
    return RP_OK;
}

static enum rp_code add_devices(struct rp_sim_run *run, struct rp_err *err)
{
    uint32_t device;

    for (size_t i = 0; i < run->nranks; i++)
        RP_TRY(rp_task_graph_add_device(&run->tasks, "transport", RP_DEVICE_SHARED, &device, err));
    for (size_t i = 0; run->nranks == 1 && i < run->parts[0]->device_rules.n; i++)
        RP_TRY(rp_task_graph_add_device(&run->tasks, "device",
                                        (enum rp_sim_device_rule)run->parts[0]->device_rules.at[i],
                                        &device, err));
    return add_links(run, err);
}

static enum rp_code make_tasks(struct rp_sim_run *run, struct rp_err *err)
{
    const struct rp_stepgraph *g = run->graph;

    RP_TRY(rp_task_graph_reserve(&run->tasks, g->nodes.n, g->edges.n, err));
    RP_TRY(add_devices(run, err));

    /* Such kernels continue to run one at a time, because it is not known that they would share the
       device. */
    bool alone;
    run->kernel_device = RP_ARENA_NEW(&run->arena, uint32_t, run->nranks + 1);
    RP_TRY(rp_err_need(run->kernel_device, err, "simulating"));
    for (size_t r = 0; r < run->nranks; r++) {
        run->kernel_device[r] = RP_NO_DEVICE;
        if (run->parts[r]->parallel_steps)
            continue;
        RP_TRY(rp_sim_ran_alone(run->graph->nodes.at + rp_sim_first_node(run, r),
                                run->parts[r]->notes.n, run->graph->lanes.at, &alone, err));
        if (alone)
            RP_TRY(rp_task_graph_add_device(&run->tasks, "kernels", RP_DEVICE_SERIAL,
                                            &run->kernel_device[r], err));
    }

    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct rp_sg_node *node = &g->nodes.at[i];
        struct rp_task task = {.dur_ns = node->dur_ns,
                               .device = device_of(run, i),
                               .rank = node->rank,
                               .step = run->notes.at[i].step,
                               .kind = node->kind};

        if (run->nranks == 1 && run->parts[0]->priorities.n)
            task.priority = run->parts[0]->priorities.at[i];
        RP_TRY(rp_task_graph_add(&run->tasks, task, NULL, err));
    }
    for (size_t i = 0; i < g->edges.n; i++) {
        const struct rp_sg_edge *e = &g->edges.at[i];
        uint32_t flags = RP_SIM_EDGE_OF_KIND(e->kind);

        if (e->flags & RP_SG_FROM_START)
            flags |= RP_EDGE_FROM_START;
        RP_TRY(rp_task_graph_link(&run->tasks, e->from, e->to, e->lag_ns, flags, err));
    }
    return rp_task_graph_freeze(&run->tasks, err);
}

/* ------------------------------------------------------------------ packed parts */

static enum rp_code join_packed(struct rp_sim_run *run, bool *done, struct rp_err *err)
{
    *done = false;
    for (size_t i = 0; i < run->nranks; i++)
        if (!rp_sim_part_is_packed(run->parts[i]))
            return RP_OK;
    if (run->nranks < 2)
        return RP_OK;
    run->graph = &run->joined;
    run->kernel_device = RP_ARENA_NEW(&run->arena, uint32_t, run->nranks + 1);
    RP_TRY(rp_err_need(run->kernel_device, err, "simulating"));
    RP_TRY(add_devices(run, err));
    RP_TRY(rp_sim_packed_join(run, done, err));
    if (*done)
        return RP_OK;
    rp_sim_blocks_free(run->blocks);
    run->blocks = NULL;
    run->block = NULL;
    rp_task_graph_release(&run->tasks);
    rp_task_graph_init(&run->tasks);
    rp_sg_release(&run->joined);
    run->joined = (struct rp_stepgraph){0};
    run->join = (struct rp_sg_join){0};
    return RP_OK;
}

static enum rp_code unpack_parts(struct rp_sim_run *run, struct rp_err *err)
{
    run->unpacked = RP_ARENA_NEW(&run->arena, struct rp_sim_part, run->nranks + 1);
    run->unpacked_list = RP_ARENA_NEW(&run->arena, const struct rp_sim_part *, run->nranks + 1);
    if (!run->unpacked || !run->unpacked_list)
        return rp_err_nomem(err, "simulating");
    for (size_t i = 0; i < run->nranks; i++) {
        run->unpacked_list[i] = run->parts[i];
        if (!rp_sim_part_is_packed(run->parts[i]))
            continue;
        run->nunpacked = i + 1;
        RP_TRY(rp_sim_part_unpack(run->parts[i], &run->unpacked[i], err));
        run->unpacked_list[i] = &run->unpacked[i];
    }
    run->parts = run->unpacked_list;
    return RP_OK;
}

/* ------------------------------------------------------------------ all of it */

static enum rp_code find_arcs(struct rp_sim_run *run, struct rp_err *err)
{
    const struct rp_task_graph *g = &run->tasks;

    for (uint32_t v = 0; v < g->tasks.n; v++)
        for (uint32_t k = g->first.at[v]; k < g->first.at[v + 1]; k++) {
            enum rp_sg_edge_kind kind = RP_SIM_EDGE_KIND(g->edges.at[k].flags);
            struct rp_sim_arc arc = {v, g->edges.at[k].to};

            if (kind == RP_SG_LAUNCH)
                RP_TRY(rp_vec_push(&run->launches, arc, err));
            else if (kind == RP_SG_SYNC)
                RP_TRY(rp_vec_push(&run->waits, arc, err));
        }
    return RP_OK;
}

enum rp_code rp_sim_run_init(struct rp_sim_run *run, const struct rp_sim_part *const *parts,
                             size_t n, struct rp_err *err)
{
    bool done;

    memset(run, 0, sizeof *run);
    rp_arena_init(&run->arena);
    rp_task_graph_init(&run->tasks);
    run->parts = parts;
    run->nranks = n;
    run->edges_factor = 1;
    run->cost_factor = rp_sim_cost_usual(run);
    RP_TRY(join_packed(run, &done, err));
    if (!done) {
        RP_TRY(unpack_parts(run, err));
        RP_TRY(join_ranks(run, err));
        RP_TRY(copy_notes(run, err));
        rp_sg_drop_index(&run->joined);
        RP_TRY(make_tasks(run, err));
        rp_vec_release(&run->joined.edges); /* the tasks have them */
        run->nnodes = run->graph->nodes.n;
    }
    RP_TRY(rp_vec_zeros(&run->gone, run->nnodes, err));
    run->gone.n = run->nnodes;
    RP_TRY(rp_sim_timers_find(run, err));
    RP_TRY(find_arcs(run, err));
    run->kernel_traits = RP_ARENA_NEW(&run->arena, uint16_t, run->graph->names.n + 1);
    RP_TRY(rp_arena_check(&run->arena, "simulating", err));
    RP_TRY(rp_overlay_take(&run->overlay, &run->tasks, err));
    return rp_sim_cost_take_measured(run, err);
}

void rp_sim_run_release(struct rp_sim_run *run)
{
    rp_overlay_release(&run->overlay);
    rp_task_graph_release(&run->tasks);
    rp_vec_release(&run->notes);
    rp_vec_release(&run->timers);
    rp_vec_release(&run->comm);
    rp_vec_release(&run->kernels);
    rp_vec_release(&run->launches);
    rp_vec_release(&run->waits);
    rp_vec_release(&run->gone);
    rp_sg_release(&run->joined);
    for (size_t i = 0; i < run->nunpacked; i++)
        rp_sim_part_unpack_release(&run->unpacked[i]);
    rp_sim_blocks_free(run->blocks);
    rp_arena_release(&run->arena);
}

bool rp_sim_starts_up(const struct rp_sim_run *run)
{
    size_t i, n = 0;

    for (i = 0; i < run->nranks; i++)
        n += run->parts[i]->start_up;
    return n > run->nranks / 2;
}
