/* SPDX-License-Identifier: Apache-2.0 */
/* Classes of nodes, shared by all what-ifs. Each query is O(1), except for patterns. */
#include "sim/whatif/nodes.h"

#include <fnmatch.h>
#include <string.h>

bool rp_sim_is_host(const struct rp_sim_run *run, uint32_t node)
{
    uint8_t kind = rp_sim_node(run, node)->kind;

    return (kind == RP_SG_HOST || kind == RP_SG_RUNTIME) &&
           !(rp_sim_note_of(run, node)->flags & RP_SIM_REMOTE);
}

bool rp_sim_is_comm(const struct rp_sim_run *run, uint32_t node)
{
    return rp_sim_node(run, node)->kind == RP_SG_COMM ||
           rp_sim_note_of(run, node)->flags & RP_SIM_REMOTE;
}

bool rp_sim_is_device_work(const struct rp_sim_run *run, uint32_t node)
{
    uint8_t kind = rp_sim_node(run, node)->kind;

    return (kind == RP_SG_COMPUTE || kind == RP_SG_MEMORY) &&
           !(rp_sim_note_of(run, node)->flags & RP_SIM_REMOTE);
}

bool rp_sim_has_device(const struct rp_sim_run *run)
{
    size_t i;

    for (i = 0; i < rp_sim_nnodes(run); i++)
        if (rp_sim_node(run, i)->kind == RP_SG_COMPUTE)
            return true;
    return false;
}

bool rp_sim_name_fits(const struct rp_sim_run *run, const char *pattern, uint32_t node)
{
    const char *name = run->graph->names.at[rp_sim_node(run, node)->name];
    const char *op = rp_sim_part_of(run, node)->graph.names.at[rp_sim_note_of(run, node)->op];

    return strpbrk(pattern, "*?[") ? !fnmatch(pattern, name, 0) || !fnmatch(pattern, op, 0)
                                   : strstr(name, pattern) || !strcmp(op, pattern);
}

enum rp_code rp_sim_scale_node(struct rp_sim_run *run, uint32_t node, double factor,
                               struct rp_err *err)
{
    return rp_overlay_set_dur(&run->overlay, node,
                              rp_sim_scaled(run->overlay.dur_ns.at[node], factor), err);
}

double rp_sim_lean_by(struct rp_sim_run *run, double part)
{
    if (part > 0)
        run->leans = true;
    return run->lean == RP_LEAN_SLOWER   ? 1 + part
           : run->lean == RP_LEAN_FASTER ? 1 / (1 + part)
                                         : 1;
}

bool rp_sim_is_torch(const struct rp_sim_part *part)
{
    for (size_t i = 0; i < part->graph.names.n; i++)
        if (!strncmp(part->graph.names.at[i], "aten::", 6))
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
