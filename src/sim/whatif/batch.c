/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch: a step has more or fewer samples. Arithmetic and bytes of the forward and the backward
 * pass grow by that factor, whichever of the two limits a kernel. The fixed time of a kernel,
 * launches, gradients that ranks exchange, and the update of the parameters do not grow.
 */
#include "sim/whatif/nodes.h"

#include <math.h>

/* Work grows by the factor to a power between these: less than 1 if kernels did not fill the device
   before, or read parameters more than samples; more if caches no longer hold their data. For a GPT
   and a convolutional network on an H200, steps with 0.5, 1 and 2 times the samples are on a
   straight line within 1 %, which is a power of 1. */
#define LEAST_POWER 0.85
RP_DECISION(LEAST_POWER, "power",
            "a guess for kernels that did not fill the device; measured ones had 1",
            "sim/guesses_lean_to_both_sides");
#define MOST_POWER 1.05
RP_DECISION(MOST_POWER, "power", "a guess for data that leaves the caches; measured ones had 1",
            "sim/guesses_lean_to_both_sides");

#define FULL_DEVICE 0.9
RP_DECISION(FULL_DEVICE, "of a step",
            "the device works: a tenth is what a larger batch could gain for a sample at most",
            "sim/a_device_that_works_gains_nothing_by_a_larger_batch");

/* The share of a step in which the busiest stream of the first rank works. */
static double working_share(const struct rp_sim_run *run)
{
    double most = 0, steps = (double)run->parts[0]->measured_ns * run->parts[0]->nsteps;

    for (size_t k = 0; k < run->graph->lanes.n; k++) {
        const struct rp_sg_lane *lane = &run->graph->lanes.at[k];
        double sum = 0;

        for (uint32_t i = lane->first; lane->device && !lane->rank && i < lane->end; i++)
            if (rp_sim_is_device_work(run, i) && rp_sim_in_steps(run, i))
                sum += (double)run->overlay.dur_ns.at[i];
        most = sum > most ? sum : most;
    }
    return steps > 0 ? most / steps : 0;
}

/* With more samples a device that works all the time takes as much longer. */
static enum rp_whatif_verdict batch_applies(const struct rp_sim_run *run,
                                            const struct rp_whatif_args *args, struct rp_err *why)
{
    enum rp_whatif_verdict verdict = rp_sim_needs_kernels(run, args, why);
    double share = verdict == RP_WHATIF_APPLIES && !args ? working_share(run) : 0;

    if (verdict != RP_WHATIF_APPLIES || args)
        return verdict;
    if (share >= FULL_DEVICE)
        return RP_WHATIF_SAY(why, NOT,
                             "the device works %.0f %% of a step: with another batch a sample "
                             "takes about as long",
                             100 * share);
    return RP_WHATIF_SAY(why, APPLIES, "the device works %.0f %% of a step", 100 * share);
}

static int64_t with_batch(int64_t dur_ns, double factor, bool kernel)
{
    int64_t least = dur_ns < RP_SIM_EMPTY_KERNEL_NS ? dur_ns : RP_SIM_EMPTY_KERNEL_NS;
    int64_t fixed = kernel ? least : 0;

    return rp_ns_sum(fixed, rp_sim_scaled(dur_ns - fixed, factor));
}

static enum rp_code batch_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                struct rp_err *err)
{
    double samples, work;

    RP_TRY(rp_whatif_factor(args, &samples, err));
    RP_TRY(rp_whatif_check(&rp_whatif_batch, run, args, err));

    enum rp_sim_lean longer = samples < 1 ? RP_LEAN_FASTER : RP_LEAN_SLOWER;
    enum rp_sim_lean shorter = samples < 1 ? RP_LEAN_SLOWER : RP_LEAN_FASTER;
    if (samples != 1)
        run->leans = RP_LEANS_ANY;
    work = pow(samples, run->lean == longer ? MOST_POWER : run->lean == shorter ? LEAST_POWER : 1);
    if (args->list->n == 1)
        run->way = samples < 1 ? RP_WAY_SHORTER : RP_WAY_LONGER;
    for (uint32_t i = 0; i < rp_sim_nnodes(run); i++) {
        const struct rp_sim_note *note = rp_sim_note_of(run, i);

        if (note->phase == RP_PHASE_OPTIMIZER)
            continue;
        if (rp_sim_is_device_work(run, i))
            RP_TRY(rp_overlay_set_dur(
                &run->overlay, i,
                with_batch(run->overlay.dur_ns.at[i], work, rp_sim_is_kernel(run, i)), err));
        else if (note->flags & RP_SIM_LOADER)
            RP_TRY(rp_sim_scale_node(run, i, samples, err));
    }
    return RP_OK;
}

const struct rp_whatif rp_whatif_batch = {
    .name = "batch",
    .form = "batch=<factor>x",
    .summary = "a step has this many times the samples: device work outside the optimizer, and the "
               "data loader, take that much longer or shorter; launches do not",
    .assumes = "it fits into memory, kernels filled the device before, and what ranks exchange "
               "are gradients, whose size does not change",
    .value = RP_WHATIF_WORD,
    .applies = batch_applies,
    .apply = batch_apply};
