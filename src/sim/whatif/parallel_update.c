/* SPDX-License-Identifier: Apache-2.0 */
/* parallel-update: each parameter is updated as soon as its gradient is ready. */
#include "sim/whatif/nodes.h"

static bool is_update(const struct rp_sim_run *run, uint32_t i)
{
    return rp_sim_note_of(run, i)->phase == RP_PHASE_OPTIMIZER &&
           run->tasks.tasks.at[i].device != RP_NO_DEVICE;
}

/* Whether an edge tells what an update needs, and not only that it came later on its stream, or
   when it was launched. */
static bool names_gradient(const struct rp_task_link *edge)
{
    switch (RP_SIM_EDGE_KIND(edge->flags)) {
    case RP_SG_LAUNCH:
    case RP_SG_STREAM:
    case RP_SG_IN_GRAPH:
    case RP_SG_EVENT:
        return false;
    default:
        return true;
    }
}

static bool knows_gradients(const struct rp_sim_run *run)
{
    for (uint32_t i = 0; i < run->tasks.edges.n; i++)
        if (is_update(run, run->tasks.edges.at[i].to) && names_gradient(&run->tasks.edges.at[i]))
            return true;
    return false;
}

static enum rp_whatif_verdict parallel_update_applies(const struct rp_sim_run *run,
                                                      const struct rp_whatif_args *args,
                                                      struct rp_err *why)
{
    (void)args;
    return knows_gradients(run)
               ? RP_WHATIF_APPLIES
               : RP_WHATIF_SAY(why, CANNOT,
                               "the recording does not show which update needs which gradient (a "
                               "dPRO directory does)");
}

static enum rp_code parallel_update_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                          struct rp_err *err)
{
    const struct rp_task_graph *g = &run->tasks;

    RP_TRY(rp_whatif_check(&rp_whatif_parallel_update, run, args, err));
    for (uint32_t i = 0; i < g->edges.n; i++)
        if (is_update(run, g->edges.at[i].to) &&
            RP_SIM_EDGE_KIND(g->edges.at[i].flags) == RP_SG_STREAM)
            RP_TRY(rp_overlay_set_lag(&run->overlay, i, RP_LAG_CUT, err));
    for (uint32_t i = 0; i < g->tasks.n; i++)
        if (is_update(run, i)) {
            /* Move an update to a device of its own, where it runs once its gradient is ready. */
            struct rp_task alone =
                rp_task_of_row(&run->tasks.tasks.at[i], run->overlay.dur_ns.at[i]);
            uint32_t id;

            alone.device = RP_NO_DEVICE;
            RP_TRY(rp_overlay_set_dur(&run->overlay, i, 0, err));
            RP_TRY(rp_overlay_add(&run->overlay, alone, &id, err));
            RP_TRY(rp_overlay_link(&run->overlay, i, id, 0, 0, err));
        }
    return RP_OK;
}

static const struct rp_whatif_move parallel_update_move = {
    .family = "overlap",
    .effort = 6,
    .apply = "update each parameter in the hook of its gradient "
             "(torch: register_post_accumulate_grad_hook)"};

const struct rp_whatif rp_whatif_parallel_update = {
    .name = "parallel-update",
    .form = "parallel-update",
    .summary =
        "each parameter is updated as soon as its gradient is ready, concurrently with other work",
    .assumes = "updates do not slow down each other or the backward pass",
    .move = &parallel_update_move,
    .applies = parallel_update_applies,
    .apply = parallel_update_apply};
