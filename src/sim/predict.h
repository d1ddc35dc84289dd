/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_SIM_PREDICT_H
#define RP_SIM_PREDICT_H
/*
 * What changes would bring, for a question that has the trace of a rank in hand and needs a number
 * or two of `simulate`: 'report' beside its advice, for example.
 *
 *     static const char *const changes[] = {"cuda-graphs", "no-sync"};
 *     struct rp_sim_gain gains[2];
 *     int64_t now_ns;
 *
 *     RP_TRY(rp_sim_predict(trace, changes, 2, &now_ns, gains, err));
 *     if (gains[0].step_ns != RP_ABSENT_I64)
 *         ... a step would take gains[0].step_ns instead of now_ns
 */
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct rp_trace;

struct rp_sim_gain {
    int64_t step_ns;      /* with the change, without the profiler; RP_ABSENT_I64: no answer */
    char impossible[200]; /* then the reason, as `simulate` gives it; else empty */
};

/*
 * A step with each of n what-ifs (texts as after '--what-if', each alone) applied to one rank,
 * which goes on waiting for others as recorded. *step_ns is a step without a change; both are for a
 * run without the profiler, by the definition of facts/step_times.h, so that their difference is
 * what the change brings. The numbers are those of `simulate` of this trace alone
 * (baseline.unprofiled_ns and predicted_ns), without their intervals. A malformed what-if is
 * RP_USAGE.
 *
 * It costs about what `critpath` does, once, and a fraction of that for each what-if.
 */
enum rp_code rp_sim_predict(const struct rp_trace *trace, const char *const *whatifs, size_t n,
                            int64_t *step_ns, struct rp_sim_gain *gains, struct rp_err *err);

#endif
