/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused-optimizer: one kernel updates many parameters at once. Adam reads parameter, gradient and
 * two moments and writes three of them: 7 passes over memory instead of about 20 by single
 * operations. What a small kernel takes at least is paid a few times instead of once an operation.
 */
#include "sim/whatifs.h"

#include <stdlib.h>

#define TRAFFIC (7.0 / 20.0)

/* The host's work for each parameter, in times of the quickest recorded operator: measured on one
   model on two hosts of different speed, equal within 1 % (docs/definitions.md). */
#define HOST_QUICKS 22

struct region {
    int64_t host_ns, device_ns,
        above_ns; /* above: what device work takes over the quickest of it */
    int64_t least_ns;
    size_t gradients;
};

static bool on_device(const struct rp_sim_run *run, uint32_t task)
{
    uint8_t kind = run->graph->nodes.at[task].kind;

    return kind == RP_SG_COMPUTE || kind == RP_SG_MEMORY;
}

static void sum_up(const struct rp_sim_run *run, uint32_t rank, struct region *out)
{
    const int64_t *dur = run->overlay.dur_ns.at;
    uint32_t i, n = (uint32_t)run->graph->nodes.n;

    *out = (struct region){.least_ns = INT64_MAX};
    for (i = 0; i < n; i++)
        if (run->notes.at[i].phase == RP_PHASE_OPTIMIZER && run->graph->nodes.at[i].rank == rank) {
            *(on_device(run, i) ? &out->device_ns : &out->host_ns) += dur[i];
            if (on_device(run, i) && dur[i] < out->least_ns)
                out->least_ns = dur[i];
        }
    for (i = 0; i < n; i++)
        if (run->notes.at[i].phase == RP_PHASE_OPTIMIZER && run->graph->nodes.at[i].rank == rank &&
            on_device(run, i))
            out->above_ns += dur[i] - out->least_ns;
    out->gradients = run->parts[rank]->gradients.n;
}

static double host_factor(const struct rp_sim_run *run, uint32_t rank, const struct region *r)
{
    double fused = (double)r->gradients * HOST_QUICKS * (double)run->parts[rank]->quick_ns;

    if (!r->gradients || !run->parts[rank]->quick_ns || r->host_ns <= 0)
        return TRAFFIC;
    return fused < (double)r->host_ns ? fused / (double)r->host_ns : 1;
}

/* The gaps between its kernels go; what they waited for before stays. */
static enum rp_code close_gaps(struct rp_sim_run *run, uint32_t rank, double host,
                               struct rp_err *err)
{
    const struct rp_task_graph *g = &run->tasks;
    uint32_t v, i;

    for (v = 0; v < g->tasks.n; v++) {
        if (run->graph->nodes.at[v].rank != rank || run->notes.at[v].phase != RP_PHASE_OPTIMIZER)
            continue;
        for (i = g->first.at[v]; i < g->first.at[v + 1]; i++) {
            enum rp_sg_edge_kind kind = RP_SIM_EDGE_KIND(g->edges.at[i].flags);
            int64_t lag = run->overlay.lag_ns.at[i];

            if (lag <= 0 || run->notes.at[g->edges.at[i].to].phase != RP_PHASE_OPTIMIZER)
                continue;
            if (kind == RP_SG_STREAM)
                lag = 0;
            else if (kind == RP_SG_ORDER)
                lag = (int64_t)((double)lag * host);
            RP_TRY(rp_overlay_set_lag(&run->overlay, i, lag, err));
        }
    }
    return RP_OK;
}

static enum rp_code fuse(struct rp_sim_run *run, uint32_t rank, struct rp_err *err)
{
    double host, device;
    struct region r;
    uint32_t i;

    sum_up(run, rank, &r);
    if (!r.device_ns)
        return RP_OK;
    host = host_factor(run, rank, &r);
    device = TRAFFIC * (double)r.above_ns / (double)r.device_ns;
    for (i = 0; i < run->graph->nodes.n; i++)
        if (run->notes.at[i].phase == RP_PHASE_OPTIMIZER && run->graph->nodes.at[i].rank == rank)
            RP_TRY(rp_overlay_set_dur(
                &run->overlay, i,
                (int64_t)((double)run->overlay.dur_ns.at[i] * (on_device(run, i) ? device : host)),
                err));
    return close_gaps(run, rank, host, err);
}

static enum rp_code apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                          struct rp_err *err)
{
    uint32_t rank, i;
    bool any = false;

    if (args->value || args->subject)
        return rp_err_set(err, RP_USAGE, "'%s': fused-optimizer takes no value", args->text);
    for (i = 0; i < run->graph->nodes.n && !any; i++)
        any = run->notes.at[i].phase == RP_PHASE_OPTIMIZER && on_device(run, i);
    if (!any)
        return rp_err_set(err, RP_UNSUPPORTED,
                          "fused-optimizer: no device work of an optimizer was found");
    for (rank = 0; rank < run->nranks; rank++)
        RP_TRY(fuse(run, rank, err));
    return RP_OK;
}

const struct rp_whatif rp_whatif_fused_optimizer = {
    .name = "fused-optimizer",
    .form = "fused-optimizer",
    .summary = "the optimizer updates all parameters in a few kernels (fused=True)",
    .assumes = "Adam or AdamW with two moments, 7 instead of about 20 passes over memory",
    .apply = apply};
