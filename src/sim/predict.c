/* SPDX-License-Identifier: Apache-2.0 */
/* The short way through the model: one run as recorded, one without the profiler, and one more for
   each what-if. */
#include "sim/predict.h"

#include "sim/engine/resimulate.h"
#include "sim/model/profiler_cost.h"
#include "sim/model/simulated_steps.h"
#include "sim/whatif/whatifs.h"

#include <math.h>
#include <reprise/result.h>
#include <stdio.h>
#include <string.h>

#define MOST_ERROR 0.1
RP_DECISION(MOST_ERROR, "of the recorded step",
            "a model that is off by more misses what holds the step up, and so would its gains",
            "sim/runs_that_are_trusted");

struct predict_ctx {
    struct rp_sim_run run;
    struct rp_resim base;
};

static enum rp_code run_base(struct predict_ctx *p, struct rp_sim_now *now, struct rp_err *err)
{
    struct rp_sim_result recorded = {0};
    enum rp_code code = rp_simulate(&p->run.overlay, &recorded, err);

    now->step_ns = rp_sim_measured_ns(&p->run);
    if (code == RP_OK)
        code = rp_sim_step_ns(&p->run, &recorded, &now->simulated_ns, err);
    rp_sim_result_release(&recorded);
    RP_TRY(code);
    RP_TRY(rp_sim_cost_drop(&p->run, 1, err));
    RP_TRY(rp_resim_init(&p->base, &p->run.overlay, err));
    return rp_sim_step_ns(&p->run, &p->base.result, &now->unprofiled_ns, err);
}

static enum rp_code run_whatif(struct predict_ctx *p, const char *text, int64_t *step_ns,
                               struct rp_err *err)
{
    size_t mark = rp_overlay_mark(&p->run.overlay);
    enum rp_code code;

    memset(p->run.gone.at, 0, p->run.gone.n);
    p->run.edges_factor = 1;
    p->run.way = RP_WAY_ANY;
    code = rp_whatif_apply(&p->run, text, err);
    if (code == RP_OK)
        code = rp_resim_update(&p->base, err);
    if (code == RP_OK)
        code = rp_sim_step_ns(&p->run, &p->base.result, step_ns, err);
    rp_overlay_undo(&p->run.overlay, mark);
    return code;
}

static enum rp_code run_all(struct predict_ctx *p, const char *const *whatifs, size_t n,
                            struct rp_sim_now *now, struct rp_sim_gain *gains, struct rp_err *err)
{
    size_t i;

    RP_TRY(run_base(p, now, err));
    for (i = 0; i < n; i++) {
        struct rp_err why = RP_ERR_INIT;
        enum rp_code code;

        gains[i] = (struct rp_sim_gain){0};
        code = run_whatif(p, whatifs[i], &gains[i].step_ns, &why);
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
    struct predict_ctx p = {0};
    enum rp_code code = rp_sim_run_init(&p.run, parts, nparts, err);

    if (code == RP_OK)
        code = run_all(&p, whatifs, n, now, gains, err);
    rp_resim_release(&p.base);
    rp_sim_run_release(&p.run);
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
