/* SPDX-License-Identifier: Apache-2.0 */
/* Finds classes of nodes, for all what-ifs. Each query is O(1), except for patterns. */
#include "sim/whatif/nodes.h"

#include "facts/host/signs.h"

#include <fnmatch.h>
#include <string.h>

bool rp_sim_has_device(const struct rp_sim_run *run)
{
    for (size_t i = 0; i < run->comm.n && !run->kernels.n; i++)
        if (rp_sim_node(run, run->comm.at[i])->kind == RP_SG_COMPUTE)
            return true;
    return run->kernels.n;
}

bool rp_sim_name_fits(const struct rp_sim_run *run, const char *pattern, uint32_t node)
{
    const char *name = run->graph->names.at[rp_sim_node(run, node)->name];
    const char *op = rp_sim_part_of(run, node)->graph.names.at[rp_sim_note_of(run, node)->op];

    return strpbrk(pattern, "*?[") ? !fnmatch(pattern, name, 0) || !fnmatch(pattern, op, 0)
                                   : strstr(name, pattern) || !strcmp(op, pattern);
}

const struct rp_sim_ratio *rp_sim_ratio_of(const struct rp_sim_run *run, uint32_t node)
{
    const struct rp_sim_part *part = rp_sim_part_of(run, node);
    size_t rank = run->nranks > 1 ? rp_sim_node(run, node)->rank : 0;
    size_t at = node - rp_sim_first_node(run, rank);

    return at < part->ratios.n ? &part->ratios.at[at] : NULL;
}

bool rp_sim_is_masked(const struct rp_sim_run *run, uint32_t node, bool compiled)
{
    const struct rp_sim_ratio *ratio = rp_sim_ratio_of(run, node);

    return ratio && ratio->masked > 0 && compiled != ratio->captured && rp_sim_is_kernel(run, node);
}

enum rp_code rp_sim_mask_attention(struct rp_sim_run *run, uint32_t node,
                                   const struct rp_whatif_list *list, struct rp_err *err)
{
    const struct rp_sim_ratio *ratio = rp_sim_ratio_of(run, node);
    bool half = rp_whatif_list_has(list, &rp_whatif_dtype);

    if (!rp_sim_is_masked(run, node, true) && !rp_sim_is_masked(run, node, false))
        return RP_OK;
    half = half && ratio->ratio > 0 && ratio->ratio != 1;
    return rp_sim_scale_node(run, node,
                             (double)(half ? ratio->masked_half : ratio->masked) *
                                 rp_sim_lean_by(run, RP_SIM_MEASURED_DOUBT),
                             err);
}

double rp_sim_lean_by(struct rp_sim_run *run, double part)
{
    if (part > 0)
        run->leans |= RP_LEANS_RATES;
    return run->lean == RP_LEAN_SLOWER   ? 1 + part
           : run->lean == RP_LEAN_FASTER ? 1 / (1 + part)
                                         : 1;
}

int64_t rp_sim_waited_ns(const struct rp_sim_run *run, uint32_t i)
{
    uint32_t lane = rp_sim_node(run, i)->lane;

    if (lane == RP_NONE || i == run->graph->lanes.at[lane].first)
        return 0;
    return rp_ns_between(rp_sg_end_ns(rp_sim_node(run, i - 1)), rp_sim_node(run, i)->start_ns);
}

bool rp_sim_in_steps(const struct rp_sim_run *run, uint32_t node)
{
    return !run->parts[0]->has_steps || rp_sim_note_of(run, node)->step < run->parts[0]->nsteps;
}

const char *rp_sim_shapes_option(const struct rp_sim_part *part)
{
    const char *option = rp_recorder_option(&part->recorder, RP_RECORDS_SHAPES);

    return option ? option : "a recording with shapes";
}

const char *rp_sim_memory_option(const struct rp_sim_part *part)
{
    return rp_recorder_option(&part->recorder, RP_RECORDS_MEMORY);
}

enum rp_whatif_verdict rp_sim_needs_comm(const struct rp_sim_run *run,
                                         const struct rp_whatif_args *args, struct rp_err *why)
{
    (void)args;
    for (size_t i = 0; i < run->comm.n; i++)
        if (rp_sim_node(run, run->comm.at[i])->kind == RP_SG_COMM)
            return RP_WHATIF_APPLIES;
    return RP_WHATIF_SAY(why, CANNOT, "no communication was recorded");
}

bool rp_sim_is_torch(const struct rp_sim_part *part)
{
    for (size_t i = 0; i < part->graph.names.n; i++)
        if (rp_sim_means(part->graph.names.at[i], RP_SIM_TORCH_OP))
            return true;
    return part->update != NULL;
}

bool rp_sim_trains(const struct rp_sim_run *run)
{
    for (uint32_t i = 0; i < rp_sim_nnodes(run); i++)
        if (rp_sim_note_of(run, i)->phase == RP_PHASE_BACKWARD)
            return true;
    return false;
}

/* ------------------------------------------------------------------ code of the model */

#define LONG_CALL_NS 100000
RP_DECISION(LONG_CALL_NS, "ns", "a shorter call that takes memory was answered by a cache",
            "sim/calls_that_take_memory_stay");

bool rp_sim_allocates(const struct rp_sim_run *run, uint32_t i)
{
    return rp_sim_node(run, i)->kind == RP_SG_RUNTIME &&
           run->overlay.dur_ns.at[i] >= LONG_CALL_NS &&
           rp_host_signs(rp_sim_node_name(run, i)) & RP_SIGN_ALLOCATES;
}

bool rp_sim_runs_model(const struct rp_sim_run *run, uint32_t i)
{
    const struct rp_sim_note *note = rp_sim_note_of(run, i);

    return rp_sim_is_host(run, i) && note->step != RP_NO_STEP &&
           note->phase != RP_PHASE_OPTIMIZER && !run->gone.at[i] &&
           !(note->flags & RP_SIM_LOADER) && (note->op || note->phase == RP_PHASE_BACKWARD) &&
           !rp_sim_allocates(run, i);
}

enum rp_code rp_sim_scale_model_code(struct rp_sim_run *run, uint32_t v, double factor,
                                     struct rp_err *err)
{
    const struct rp_task_graph *g = &run->tasks;

    RP_TRY(rp_sim_scale_node(run, v, factor, err));
    for (uint32_t i = g->first.at[v]; i < g->first.at[v + 1]; i++)
        if (RP_SIM_EDGE_KIND(g->edges.at[i].flags) == RP_SG_ORDER &&
            run->overlay.lag_ns.at[i] > 0 && rp_sim_runs_model(run, g->edges.at[i].to))
            RP_TRY(rp_overlay_set_lag(&run->overlay, i,
                                      rp_sim_scaled(run->overlay.lag_ns.at[i], factor), err));
    return RP_OK;
}
