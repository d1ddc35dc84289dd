/* SPDX-License-Identifier: Apache-2.0 */
/* A short way through the model: one run as recorded, one without the profiler, and one for each
   what-if. */
#include "sim/predict.h"

#include "sim/worlds.h"

#include <math.h>
#include <reprise/result.h>
#include <stdio.h>

#define MOST_ERROR 0.1
RP_DECISION(
    MOST_ERROR, "of the recorded step",
    "a model with a larger error misses the cause of the step's length, so its gains would be "
    "wrong, too",
    "sim/runs_that_are_trusted");

static enum rp_code run_whatifs(struct rp_worlds *x, const char *const *whatifs, size_t n,
                                struct rp_sim_gain *gains, struct rp_err *err)
{
    for (size_t i = 0; i < n; i++) {
        struct rp_err why = RP_ERR_INIT;

        gains[i] = (struct rp_sim_gain){0};
        enum rp_code code = rp_worlds_step(x, whatifs[i], &gains[i].step_ns, &why);
        if (code != RP_OK && code != RP_UNSUPPORTED)
            return rp_err_set(err, code, "%s", why.text);
        if (code != RP_OK) {
            gains[i].step_ns = RP_ABSENT_I64;
            snprintf(gains[i].impossible, sizeof gains[i].impossible, "%.199s", why.text);
        }
    }
    return RP_OK;
}

enum rp_code rp_sim_predict(const struct rp_sim_part *const *parts, size_t nparts,
                            const char *const *whatifs, size_t n, struct rp_sim_now *now,
                            struct rp_sim_gain *gains, struct rp_err *err)
{
    struct rp_worlds x;
    enum rp_code code = rp_worlds_init(&x, parts, nparts, NULL, err);

    *now = (struct rp_sim_now){x.recorded_ns, x.simulated_ns, x.step_ns};
    if (code == RP_OK)
        code = run_whatifs(&x, whatifs, n, gains, err);
    rp_worlds_release(&x);
    return code;
}

bool rp_sim_reproduces(const struct rp_sim_now *now)
{
    return now->step_ns > 0 && now->unprofiled_ns > 0 &&
           fabs((double)now->simulated_ns - (double)now->step_ns) <=
               MOST_ERROR * (double)now->step_ns;
}

bool rp_sim_is_distorted(const struct rp_sim_now *now)
{
    return fabs((double)now->step_ns - (double)now->unprofiled_ns) >=
           RP_SIM_DISTORTED * (double)now->step_ns;
}
