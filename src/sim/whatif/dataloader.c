/* SPDX-License-Identifier: Apache-2.0 */
/* dataloader: the time that the host spends in the data loader, or prepares input, changes. */
#include "result/print_units.h"
#include "sim/whatif/nodes.h"

#include <stdlib.h>
#include <string.h>

/* The time in a loader in a step, on average, and the name of the longest part. */
struct loading {
    int64_t ns, longest_ns;
    const char *name;
    bool any; /* also outside of the steps */
};

static struct loading loading_of(const struct rp_sim_run *run)
{
    struct loading out = {.name = ""};

    for (uint32_t i = 0; i < rp_sim_nnodes(run); i++) {
        int64_t ns = run->overlay.dur_ns.at[i];

        if (!(rp_sim_note_of(run, i)->flags & RP_SIM_LOADER))
            continue;
        out.any = true;
        if (!rp_sim_in_steps(run, i))
            continue;
        rp_ns_add(&out.ns, ns);
        if (ns >= out.longest_ns) {
            out.longest_ns = ns;
            out.name = rp_sim_node_name(run, i);
        }
    }
    out.ns /= (int64_t)(run->nranks * run->parts[0]->nsteps);
    return out;
}

static enum rp_whatif_verdict dataloader_applies(const struct rp_sim_run *run,
                                                 const struct rp_whatif_args *args,
                                                 struct rp_err *why)
{
    struct loading l = loading_of(run);
    char time[32];

    if (!l.any)
        return RP_WHATIF_SAY(why, CANNOT,
                             "no span of a data loader, or that prepares input, was recorded");
    if (args)
        return RP_WHATIF_APPLIES;
    if (l.ns <= 0)
        return RP_WHATIF_SAY(why, NOT, "no step that is judged loads or prepares input");
    rp_units_format((double)l.ns, RP_UNIT_NS, time, sizeof time);
    if (strstr(l.name, "MultiProcessing"))
        return RP_WHATIF_SAY(why, APPLIES,
                             "workers load batches already, and the program waits for them for %s "
                             "in a step",
                             time);
    return RP_WHATIF_SAY(why, APPLIES,
                         "the program itself loads or prepares input for %s in a step", time);
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
