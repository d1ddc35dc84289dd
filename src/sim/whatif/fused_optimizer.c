/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused-optimizer: one kernel updates many parameters at once and passes over memory as few times
 * as possible (optimizer_kind.c). The least time of a small kernel is paid a few times instead of
 * once for each operation.
 */
#include "facts/times/intervals.h"
#include "sim/whatif/nodes.h"
#include "sim/whatif/optimizer_kind.h"

#define HOST_QUICKS 20
RP_DECISION(HOST_QUICKS, "times of the quickest operator, for each parameter",
            "the median over six recordings of fused optimizers (docs/definitions.md)",
            "sim/a_fused_optimizer_takes_the_host_less");

#define TRAFFIC (7.0 / 20.0)
RP_FACT(TRAFFIC, "of the passes over memory", "a fused Adam, if no operator has a name");

struct region {
    int64_t host_ns, device_ns;
    int64_t
        above_ns; /* how much longer its device work takes than the quickest kernel of the rank */
    size_t gradients;
};

static void sum_update(const struct rp_sim_run *run, uint32_t rank, struct region *out)
{
    const int64_t *dur = run->overlay.dur_ns.at;
    int64_t least = RP_SIM_EMPTY_KERNEL_NS; /* or the quickest kernel of the rank */
    uint32_t i, first = rp_sim_first_node(run, rank), end = rp_sim_end_node(run, rank);

    *out = (struct region){0};
    for (i = first; i < end; i++)
        if (rp_sim_node(run, i)->rank == rank && rp_sim_node(run, i)->kind == RP_SG_COMPUTE &&
            dur[i] < least)
            least = dur[i];
    for (i = first; i < end; i++) {
        if (rp_sim_note_of(run, i)->phase != RP_PHASE_OPTIMIZER ||
            rp_sim_node(run, i)->rank != rank)
            continue;
        rp_ns_add(rp_sim_is_update(run, i) ? &out->device_ns : &out->host_ns, dur[i]);
        if (rp_sim_is_update(run, i) && dur[i] > least)
            rp_ns_add(&out->above_ns, dur[i] - least);
    }
    out->gradients = run->parts[rank]->gradients.n;
}

static double host_factor(const struct rp_sim_run *run, uint32_t rank, const struct region *r)
{
    double fused = (double)r->gradients * HOST_QUICKS * (double)run->parts[rank]->quick_ns;

    if (!r->gradients || !run->parts[rank]->quick_ns || r->host_ns <= 0)
        return TRAFFIC;
    return fused < (double)r->host_ns ? fused / (double)r->host_ns : 1;
}

/* Removes the gaps between its kernels; what they waited for before stays. */
static enum rp_code close_gaps(struct rp_sim_run *run, uint32_t rank, double host,
                               struct rp_err *err)
{
    const struct rp_task_graph *g = &run->tasks;

    for (uint32_t v = rp_sim_first_node(run, rank); v < rp_sim_end_node(run, rank); v++) {
        if (rp_sim_node(run, v)->rank != rank ||
            rp_sim_note_of(run, v)->phase != RP_PHASE_OPTIMIZER)
            continue;
        for (uint32_t i = g->first.at[v]; i < g->first.at[v + 1]; i++) {
            enum rp_sg_edge_kind kind = RP_SIM_EDGE_KIND(g->edges.at[i].flags);
            int64_t lag = run->overlay.lag_ns.at[i];

            if (lag <= 0 || rp_sim_note_of(run, g->edges.at[i].to)->phase != RP_PHASE_OPTIMIZER)
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

static enum rp_code fuse_update(struct rp_sim_run *run, uint32_t rank, struct rp_err *err)
{
    struct rp_optimizer_kind kind;
    struct region r;

    sum_update(run, rank, &r);
    rp_optimizer_kind(run, rank, &kind);
    if (!r.device_ns || kind.style == RP_OPTIMIZER_FUSED)
        return RP_OK;
    double host = host_factor(run, rank, &r) * rp_sim_lean_by(run, RP_SIM_MEASURED_DOUBT);
    double device = kind.fused / kind.passes * (double)r.above_ns / (double)r.device_ns *
                    rp_sim_lean_by(run, RP_SIM_MEASURED_DOUBT);
    for (uint32_t i = rp_sim_first_node(run, rank); i < rp_sim_end_node(run, rank); i++)
        if (rp_sim_note_of(run, i)->phase == RP_PHASE_OPTIMIZER &&
            rp_sim_node(run, i)->rank == rank)
            RP_TRY(rp_overlay_set_dur(&run->overlay, i,
                                      (int64_t)((double)run->overlay.dur_ns.at[i] *
                                                (rp_sim_is_update(run, i) ? device : host)),
                                      err));
    return close_gaps(run, rank, host, err);
}

static enum rp_whatif_verdict fused_optimizer_applies(const struct rp_sim_run *run,
                                                      const struct rp_whatif_args *args,
                                                      struct rp_err *why)
{
    struct rp_optimizer_kind kind;
    size_t n = 0;

    (void)args;
    for (uint32_t i = 0; i < rp_sim_nnodes(run); i++)
        n += rp_sim_is_update(run, i) && rp_sim_in_steps(run, i);
    if (!n)
        return RP_WHATIF_SAY(why, CANNOT, "no device work of an optimizer was found");
    rp_optimizer_kind(run, 0, &kind);
    if (kind.style == RP_OPTIMIZER_FUSED)
        return RP_WHATIF_SAY(why, CANNOT, "%s is fused already", kind.name);
    return kind.fusible
               ? RP_WHATIF_SAY(why, APPLIES,
                               "the update of %s is not fused: %.0f kernels and copies in a step",
                               kind.name,
                               (double)n / (double)run->parts[0]->nsteps / (double)run->nranks)
               : RP_WHATIF_SAY(why, CANNOT,
                               "only PyTorch's Adam, AdamW, SGD and Adagrad take fused=True");
}

static enum rp_code fused_optimizer_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                          struct rp_err *err)
{
    RP_TRY(rp_whatif_check(&rp_whatif_fused_optimizer, run, args, err));
    for (uint32_t rank = 0; rank < run->nranks; rank++)
        RP_TRY(fuse_update(run, rank, err));
    return RP_OK;
}

static const struct rp_whatif_move fused_optimizer_move = {
    .family = "fusion", .effort = 1, .apply = "give the optimizer 'fused=True'"};

const struct rp_whatif rp_whatif_fused_optimizer = {
    .name = "fused-optimizer",
    .form = "fused-optimizer",
    .summary = "the optimizer updates all parameters in a few kernels (fused=True)",
    .assumes =
        "the optimizer is limited by passes over memory: Adam 7 instead of 18 to 24, SGD with "
        "momentum 5 instead of 8",
    .sums = true,
    .move = &fused_optimizer_move,
    .applies = fused_optimizer_applies,
    .apply = fused_optimizer_apply};
