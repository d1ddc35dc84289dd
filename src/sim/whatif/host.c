/* SPDX-License-Identifier: Apache-2.0 */
/* no-sync, no-profiler and dataloader: what the host does besides launching work. */
#include "sim/model/profiler_cost.h"
#include "sim/whatif/nodes.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ no-sync */

/* Threads no longer wait for the device. */
static enum rp_code apply_no_sync(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                  struct rp_err *err)
{
    uint32_t i, n = 0;

    (void)args;
    for (i = 0; i < run->tasks.edges.n; i++)
        if (RP_SIM_EDGE_KIND(run->tasks.edges.at[i].flags) == RP_SG_SYNC) {
            n++;
            RP_TRY(rp_overlay_set_lag(&run->overlay, i, RP_LAG_CUT, err));
        }
    return n ? RP_OK
             : rp_err_set(err, RP_UNSUPPORTED,
                          "no-sync: the host never waited for the device in this recording");
}

const struct rp_whatif rp_whatif_no_sync = {
    .name = "no-sync",
    .form = "no-sync",
    .summary = "the host never waits for the device",
    .assumes = "the host needs no result of the device: no value is read back",
    .apply = apply_no_sync};

/* ------------------------------------------------------------------ no-profiler */

static enum rp_code apply_no_profiler(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                      struct rp_err *err)
{
    (void)args;
    return run->dropped ? RP_OK : rp_sim_cost_drop(run, 1, err);
}

const struct rp_whatif rp_whatif_no_profiler = {
    .name = "no-profiler",
    .form = "no-profiler",
    .summary = "nothing is recorded (predictions assume this anyway)",
    .assumes = "the cost of each recorded span follows from the shortest operators of the trace",
    .apply = apply_no_profiler};

/* ------------------------------------------------------------------ dataloader */

/* The main thread inside the loader: "enumerate(DataLoader)#_MultiProcessingDataLoaderIter…". */
static enum rp_code apply_dataloader(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                     struct rp_err *err)
{
    char *end = NULL;
    double factor = args->value ? strtod(args->value, &end) : -1;
    uint32_t i, n = 0;

    if (!end || end == args->value || (*end && strcmp(end, "x") != 0) || !(factor >= 0) ||
        factor > 1e6)
        return rp_err_set(
            err, RP_USAGE,
            "'%s': dataloader=0 (free) or a factor such as dataloader=0.5 is expected", args->text);
    for (i = 0; i < run->graph->nodes.n; i++)
        if (run->notes.at[i].flags & RP_SIM_LOADER) {
            n++;
            RP_TRY(rp_sim_scale_node(run, i, factor, err));
        }
    return n ? RP_OK
             : rp_err_set(err, RP_UNSUPPORTED, "dataloader: no span of a data loader was recorded");
}

const struct rp_whatif rp_whatif_dataloader = {
    .name = "dataloader",
    .form = "dataloader=0|<factor>",
    .summary = "time in the data loader becomes 0, or is multiplied by the factor",
    .assumes = "only the thread that requests a batch waits for it",
    .value = RP_WHATIF_WORD,
    .apply = apply_dataloader};
