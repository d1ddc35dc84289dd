/* SPDX-License-Identifier: Apache-2.0 */
/* no-profiler: the cost of recording is removed. */
#include "sim/model/profiler_cost.h"
#include "sim/whatif/whatifs.h"

static enum rp_code no_profiler_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
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
    .apply = no_profiler_apply};
