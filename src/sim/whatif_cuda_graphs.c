/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda-graphs: each step is captured once and launched as one graph. The host does nothing in
 * between, and device work runs behind what it depends on with the gap that graphs have.
 */
#include "sim/whatifs.h"

/* Between two kernels of a graph: (step - busy) / kernels of a captured GPT step on an H200, the
   same in fp32 and bf16 (docs/definitions.md). */
#define GRAPH_GAP_NS 360

static bool is_host(const struct rp_sim_run *run, uint32_t task)
{
    uint8_t kind = run->graph->nodes.at[task].kind;

    return (kind == RP_SG_HOST || kind == RP_SG_RUNTIME) &&
           !(run->notes.at[task].flags & RP_SIM_REMOTE);
}

static int64_t graph_lag(enum rp_sg_edge_kind kind, int64_t lag_ns)
{
    switch (kind) {
    case RP_SG_STREAM:
    case RP_SG_IN_GRAPH:
    case RP_SG_EVENT:
        return GRAPH_GAP_NS;
    case RP_SG_MEMBER:
        return lag_ns;
    default:
        return 0;
    }
}

static enum rp_code apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                          struct rp_err *err)
{
    struct rp_overlay *o = &run->overlay;
    uint32_t i;

    if (args->value || args->subject)
        return rp_err_set(err, RP_USAGE, "'%s': cuda-graphs takes no value", args->text);
    if (!run->parts[0]->on_device)
        return rp_err_set(err, RP_UNSUPPORTED,
                          "cuda-graphs: the recording has no steps with device work and launches");
    for (i = 0; i < run->tasks.tasks.n; i++)
        if (is_host(run, i))
            RP_TRY(rp_overlay_set_dur(o, i, 0, err));
    for (i = 0; i < run->tasks.edges.n; i++)
        if (o->lag_ns.at[i] != RP_LAG_CUT)
            RP_TRY(rp_overlay_set_lag(
                o, i, graph_lag(RP_SIM_EDGE_KIND(run->tasks.edges.at[i].flags), o->lag_ns.at[i]),
                err));
    return RP_OK;
}

const struct rp_whatif rp_whatif_cuda_graphs = {
    .name = "cuda-graphs",
    .form = "cuda-graphs",
    .summary = "each step is one captured graph: the host launches it once",
    .assumes = "shapes and control flow are the same in every step, and nothing in it waits for "
               "the host",
    .apply = apply};
