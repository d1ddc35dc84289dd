/* SPDX-License-Identifier: Apache-2.0 */
/* no-sync: the host never waits for the device. */
#include "facts/torch_names.h"
#include "facts/work/turns.h"
#include "sim/whatif/nodes.h"
#include "sim/whatif/repeats.h"

#define SHORT_WAIT_NS 30000
RP_DECISION(
    SHORT_WAIT_NS, "ns",
    "a call that reads a number takes up to so long even where nothing has to be waited for: what "
    "a shorter one gains is not sure (a Gaussian process on an H200 gained nothing)",
    "sim/short_waits_may_stay");

/* What is launched after a wait may depend on the value read; it does if steps launch one of
   several sequences. */
static enum rp_whatif_verdict judge(const struct rp_sim_run *run, struct rp_arena *scratch,
                                    struct rp_err *why)
{
    struct rp_sim_repeats r;

    if (rp_sim_repeats_find(run, scratch, &r, why) != RP_OK || !r.waits)
        return RP_WHATIF_APPLIES;
    if (r.waiting && rp_torch_means(r.waiting, RP_TORCH_PLANS))
        return RP_WHATIF_SAY(why, NOT,
                             "%s, whose library measures kernels: the program reads nothing",
                             rp_sim_waits_text(&r, scratch));
    if (r.turns >= RP_TURNS_MANY)
        return RP_WHATIF_SAY(
            why, NOT,
            "%s, and %u times it uploads before the device goes on: what it uploads "
            "may be made of what it read",
            rp_sim_waits_text(&r, scratch), r.turns);
    if (rp_sim_reads_decide(&r))
        return RP_WHATIF_SAY(why, NOT,
                             "%s, and what it reads may decide what it launches: %u different "
                             "sequences of kernels in %u judged steps",
                             rp_sim_waits_text(&r, scratch), r.variants, r.steps);
    return RP_WHATIF_SAY(why, APPLIES, "%s", rp_sim_waits_text(&r, scratch));
}

static enum rp_whatif_verdict no_sync_applies(const struct rp_sim_run *run,
                                              const struct rp_whatif_args *args, struct rp_err *why)
{
    struct rp_arena scratch = RP_ARENA_INIT;
    enum rp_whatif_verdict verdict = RP_WHATIF_APPLIES;
    size_t i = 0;

    while (i < run->tasks.edges.n && RP_SIM_EDGE_KIND(run->tasks.edges.at[i].flags) != RP_SG_SYNC)
        i++;
    if (i == run->tasks.edges.n)
        return RP_WHATIF_SAY(why, CANNOT,
                             "no call that waits for the device is in the model of a step");
    if (!args)
        verdict = judge(run, &scratch, why);
    rp_arena_release(&scratch);
    return verdict;
}

/* Threads no longer wait for the device. */
static enum rp_code no_sync_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                  struct rp_err *err)
{
    RP_TRY(rp_whatif_check(&rp_whatif_no_sync, run, args, err));
    for (uint32_t i = 0; i < run->tasks.edges.n; i++) {
        if (RP_SIM_EDGE_KIND(run->tasks.edges.at[i].flags) != RP_SG_SYNC)
            continue;
        uint32_t to = run->tasks.edges.at[i].to;
        bool shortly = to < run->nnodes && rp_sim_waited_ns(run, to) < SHORT_WAIT_NS;
        run->leans |= shortly ? 1u << RP_LEAN_SLOWER : 0;
        if (!shortly || run->lean != RP_LEAN_SLOWER)
            RP_TRY(rp_overlay_set_lag(&run->overlay, i, RP_LAG_CUT, err));
    }
    return RP_OK;
}

static const struct rp_whatif_move no_sync_move = {
    .family = "overlap",
    .effort = 5,
    .apply = "remove .item(), .cpu() and synchronize() from the step, or read values a step later"};

const struct rp_whatif rp_whatif_no_sync = {
    .name = "no-sync",
    .form = "no-sync",
    .summary = "the host never waits for the device",
    .assumes = "the host needs no result of the device: no value is read back",
    .move = &no_sync_move,
    .applies = no_sync_applies,
    .apply = no_sync_apply};
