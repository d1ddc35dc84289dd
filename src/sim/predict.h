/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Predicts what changes would bring, for questions that need only a number or two of `simulate`,
 * such as 'report' for its advice.
 *
 *     static const char *const changes[] = {"cuda-graphs", "no-sync"};
 *     struct rp_sim_gain gains[2];
 *     struct rp_sim_now now;
 *
 *     RP_TRY(rp_sim_predict(parts, nparts, changes, 2, &now, gains, err));
 *     if (gains[0].step_ns != RP_ABSENT_I64)
 *         ... a step would take gains[0].step_ns instead of now.unprofiled_ns
 */
#include "base/decides.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RP_SIM_DISTORTED 0.03
RP_DECISION(
    RP_SIM_DISTORTED, "of the step",
    "a lower cost of the profiler is not mentioned: steps of a run differ by as much (the median"
    " of 46 recordings)",
    "sim/runs_that_are_trusted");

struct rp_sim_part;

/* A step without a change, by the definition of facts/times/step_times.h. */
struct rp_sim_now {
    int64_t step_ns;       /* as recorded */
    int64_t simulated_ns;  /* the same from the model: how well it reproduces the recording */
    int64_t unprofiled_ns; /* without the profiler: the reference for gains */
};

struct rp_sim_gain {
    int64_t step_ns;      /* with the change, without the profiler; RP_ABSENT_I64: no answer */
    char impossible[200]; /* the reason if there is no answer, as `simulate` gives it; else empty */
};

/*
 * Predicts a step with each of n what-ifs (in the syntax of '--what-if', each alone) in a run of
 * the given ranks (sim/model/part.h) without the profiler. The numbers are those of `simulate`
 * (baseline.step_ns, simulated_step_ns and unprofiled_ns; predicted_ns) without their intervals. A
 * malformed what-if is RP_USAGE.
 *
 * It costs two runs of the model, and a part of one for each what-if.
 */
enum rp_code rp_sim_predict(const struct rp_sim_part *const *parts, size_t nparts,
                            const char *const *whatifs, size_t n, struct rp_sim_now *now,
                            struct rp_sim_gain *gains, struct rp_err *err);

/* Whether the model reproduces the recorded step well enough for its numbers to be used. */
bool rp_sim_reproduces(const struct rp_sim_now *now);
/* Whether the step differs without the profiler by at least RP_SIM_DISTORTED. */
bool rp_sim_is_distorted(const struct rp_sim_now *now);
