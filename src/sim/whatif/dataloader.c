/* SPDX-License-Identifier: Apache-2.0 */
/* dataloader: the time that the host spends in the data loader, or prepares input, changes. */
#include "sim/whatif/nodes.h"

#include <stdlib.h>
#include <string.h>

static enum rp_whatif_verdict dataloader_applies(const struct rp_sim_run *run,
                                                 const struct rp_whatif_args *args,
                                                 struct rp_err *why)
{
    (void)args;
    for (uint32_t i = 0; i < rp_sim_nnodes(run); i++)
        if (rp_sim_note_of(run, i)->flags & RP_SIM_LOADER)
            return RP_WHATIF_APPLIES;
    return RP_WHATIF_SAY(why, CANNOT,
                         "no span of a data loader, or that prepares input, was recorded");
}

/* The main thread inside the loader: "enumerate(DataLoader)#_MultiProcessingDataLoaderIter…". */
static enum rp_code dataloader_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                     struct rp_err *err)
{
    const char *value = args->value && !strcmp(args->value, "free") ? "0" : args->value;
    char *end = NULL;
    double factor = value ? strtod(value, &end) : -1;

    if (!end || end == value || (*end && strcmp(end, "x") != 0) || !(factor >= 0) || factor > 1e6)
        return rp_err_set(err, RP_USAGE,
                          "'%s': dataloader=free or a factor such as dataloader=0.5 is expected",
                          args->text);
    RP_TRY(rp_whatif_check(&rp_whatif_dataloader, run, args, err));
    for (uint32_t i = 0; i < rp_sim_nnodes(run); i++)
        if (rp_sim_note_of(run, i)->flags & RP_SIM_LOADER)
            RP_TRY(rp_sim_scale_node(run, i, factor, err));
    return RP_OK;
}

static const struct rp_whatif_move dataloader_move = {
    .family = "overlap",
    .effort = 2,
    .apply = "load batches in background workers: DataLoader(num_workers=…, prefetch_factor=…, "
             "pin_memory=True)",
    .text = "dataloader=free"};

const struct rp_whatif rp_whatif_dataloader = {
    .name = "dataloader",
    .form = "dataloader=free|<factor>",
    .summary =
        "time in the data loader, and in spans that prepare input, becomes 0 (free), or is multiplied by the "
        "factor",
    .assumes = "only the thread that requests a batch waits for it",
    .value = RP_WHATIF_WORD,
    .move = &dataloader_move,
    .applies = dataloader_applies,
    .apply = dataloader_apply};
