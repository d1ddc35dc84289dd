/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda-graphs: each step is captured once and launched as one graph. The host does nothing in
 * between, and device work runs after what it depends on with the gap that graphs have. With a
 * region only that part is a graph: a phase, or what operators or kernels of a name do. Its host
 * work goes but for one call, the longest of those that launched its work.
 */
#include "sim/whatif/nodes.h"
#include "sim/whatif/optimizer_kind.h"

#include <string.h>

/* Between two kernels of a graph: (step - busy) / kernels of a captured GPT step on an H200, the
   same in fp32 and bf16 (docs/definitions.md). */
#define GRAPH_GAP_NS 360

/* A capturable Adam keeps its count of steps on the device: kernels more for each parameter, as
   counted in recordings of both, and what such a small one takes on an H200. */
#define CAPTURABLE_FOREACH 2
#define CAPTURABLE_LOOP    14
#define SMALL_KERNEL_NS    1500

/* A kernel that began while the one before it still ran does so in a graph, too. */
static int64_t graph_lag(uint32_t flags, int64_t lag_ns)
{
    if (flags & RP_EDGE_FROM_START && RP_SIM_EDGE_KIND(flags) != RP_SG_LAUNCH &&
        RP_SIM_EDGE_KIND(flags) != RP_SG_ORDER)
        return lag_ns;
    switch (RP_SIM_EDGE_KIND(flags)) {
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

/* RP_PHASES: the whole step, or a pattern. */
struct region {
    uint8_t phase;
    const char *pattern;
};

static struct region region_of(const char *value)
{
    struct region r = {RP_PHASES, value};
    uint8_t i;

    for (i = RP_PHASE_FORWARD; value && i < RP_PHASES; i++)
        if (!strcmp(value, rp_phase_names[i]))
            r.phase = i;
    return r;
}

/* PyTorch marks no forward pass: it is what is neither backward nor optimizer. */
static bool in_region(const struct rp_sim_run *run, const struct region *r, uint32_t i)
{
    uint8_t phase = run->notes.at[i].phase;

    if (!r->pattern)
        return true;
    if (run->notes.at[i].step == RP_NO_STEP)
        return false;
    if (r->phase != RP_PHASES)
        return phase == r->phase || (r->phase == RP_PHASE_FORWARD && phase == RP_PHASE_OTHER);
    return rp_sim_name_fits(run, r->pattern, i);
}

/* The launch of a graph stands for those of its kernels: in each step and rank one call stays. */
static bool launches_graph(const struct rp_sim_run *run, const struct region *r, uint32_t i,
                           uint32_t *last)
{
    uint32_t key = run->graph->nodes.at[i].rank << 16 | run->notes.at[i].step;

    if (!r->pattern || run->graph->nodes.at[i].kind != RP_SG_RUNTIME || key == *last)
        return false;
    *last = key;
    return true;
}

static enum rp_code empty_host(struct rp_sim_run *run, const struct region *r, size_t *n,
                               struct rp_err *err)
{
    uint32_t i, last = UINT32_MAX;

    for (i = 0; i < run->tasks.tasks.n; i++) {
        if (!in_region(run, r, i))
            continue;
        *n += rp_sim_is_device_work(run, i);
        if (rp_sim_is_host(run, i) && !launches_graph(run, r, i, &last))
            RP_TRY(rp_overlay_set_dur(&run->overlay, i, 0, err));
    }
    return RP_OK;
}

static enum rp_code shrink_lags(struct rp_sim_run *run, const struct region *r, struct rp_err *err)
{
    const struct rp_task_graph *g = &run->tasks;
    struct rp_overlay *o = &run->overlay;
    uint32_t v, i;

    for (v = 0; v < g->tasks.n; v++) {
        if (!in_region(run, r, v))
            continue;
        for (i = g->first.at[v]; i < g->first.at[v + 1]; i++)
            if (o->lag_ns.at[i] != RP_LAG_CUT && in_region(run, r, g->edges.at[i].to))
                RP_TRY(rp_overlay_set_lag(o, i, graph_lag(g->edges.at[i].flags, o->lag_ns.at[i]),
                                          err));
    }
    return RP_OK;
}

/* What an update of the rank takes more in a step, beside the passes over memory. Not where the
   optimizer is fused by another what-if. */
static enum rp_code make_capturable(struct rp_sim_run *run, const struct region *r, uint32_t rank,
                                    bool fused, struct rp_err *err)
{
    struct rp_optimizer_kind kind;
    double more, factor;
    uint32_t i, last = RP_NONE;

    rp_optimizer_kind(run, rank, &kind);
    if (!kind.reads_host || kind.style == RP_OPTIMIZER_FUSED || fused)
        return RP_OK;
    more = kind.parameters * (SMALL_KERNEL_NS + GRAPH_GAP_NS) *
           (kind.style == RP_OPTIMIZER_LOOP ? CAPTURABLE_LOOP : CAPTURABLE_FOREACH);
    factor = (kind.passes + 4) / kind.passes;
    for (i = 0; i < run->graph->nodes.n; i++) {
        if (run->graph->nodes.at[i].rank != rank || !rp_sim_is_update(run, i) ||
            !in_region(run, r, i))
            continue;
        if (last == RP_NONE || run->notes.at[last].step != run->notes.at[i].step)
            RP_TRY(rp_overlay_set_dur(&run->overlay, i,
                                      run->overlay.dur_ns.at[i] + (int64_t)(more / factor), err));
        RP_TRY(rp_sim_scale_node(run, i, factor, err));
        last = i;
    }
    return RP_OK;
}

static enum rp_code cuda_graphs_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                      struct rp_err *err)
{
    struct region r = region_of(args->value);
    size_t n = 0;
    uint32_t rank;

    if (args->value && !*args->value)
        return rp_err_set(
            err, RP_USAGE,
            "'%s': expected cuda-graphs, or cuda-graphs=forward, backward, optimizer or "
            "a name",
            args->text);
    if (!run->parts[0]->on_device)
        return rp_err_set(err, RP_UNSUPPORTED,
                          "cuda-graphs: no step of the recording has device work with launches");
    if (!r.pattern && run->parts[0]->collectives.on_host && run->parts[0]->collectives.list.n)
        return rp_err_set(err, RP_UNSUPPORTED,
                          "cuda-graphs: the step has host collectives (gloo), which cannot be "
                          "captured: give a part of the step, as in cuda-graphs=forward");
    RP_TRY(empty_host(run, &r, &n, err));
    if (!n)
        return rp_err_set(err, RP_USAGE, "'%s': no device work belongs to '%s'", args->text,
                          args->value ? args->value : "the step");
    for (rank = 0; rank < run->nranks; rank++)
        RP_TRY(make_capturable(run, &r, rank,
                               rp_whatif_list_has(args->list, &rp_whatif_fused_optimizer), err));
    return shrink_lags(run, &r, err);
}

const struct rp_whatif rp_whatif_cuda_graphs = {
    .name = "cuda-graphs",
    .form = "cuda-graphs[=<region>]",
    .summary =
        "each step, or only its forward pass, backward pass, optimizer or the operators of a name, is "
        "one captured graph: the host launches it once",
    .assumes = "shapes and control flow are the same in every step, and nothing in it waits for "
               "the host; Adam becomes capturable where it is not",
    .value = RP_WHATIF_NAME,
    .apply = cuda_graphs_apply};
