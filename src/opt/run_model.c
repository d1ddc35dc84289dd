/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a step takes with changes. The recording without the profiler is the base; a change is
 * applied to its overlay, what it reaches is simulated again, and it is undone.
 */
#include "opt/optimize.h"

#include "sim/model/profiler_cost.h"
#include "sim/model/simulated_steps.h"
#include "sim/model/transport.h"
#include "sim/whatif/nodes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What is kept for simulating again takes several times the memory of a run. */
#define MANY_TASKS 4000000

/* Relative uncertainty of the profiler's cost. */
#define DOUBT_OF_COST 0.5

static void reset_run(struct rp_opt_run *x)
{
    memset(x->run.gone.at, 0, x->run.gone.n);
    x->run.edges_factor = 1;
    x->run.leans = x->run.uses_transport = false;
    x->run.latency_doubt = x->run.rate_doubt = NULL;
}

static enum rp_code run_all(struct rp_opt_run *x, int64_t *step_ns, struct rp_err *err)
{
    struct rp_sim_result r = {0};
    enum rp_code code = rp_simulate(&x->run.overlay, &r, err);

    if (code == RP_OK)
        code = rp_sim_step_ns(&x->run, &r, step_ns, err);
    rp_sim_result_release(&r);
    x->evaluated++;
    return code;
}

/* How far the transport of another run may be from the recorded one; 0: there is none. */
static enum rp_code find_transport(struct rp_opt_run *x, struct rp_err *err)
{
    struct rp_transport t = {0};
    uint32_t i;

    for (i = 0; i < rp_sim_nnodes(&x->run); i++)
        if (rp_sim_is_comm(&x->run, i)) {
            RP_TRY(rp_transport_fit(&x->run, &t, err));
            break;
        }
    x->transport_doubt = t.n ? rp_transport_doubt(&t) : 0;
    x->one_size = t.n && t.one_size;
    return RP_OK;
}

enum rp_code rp_opt_run_init(struct rp_opt_run *x, const struct rp_sim_part *const *parts, size_t n,
                             const uint32_t *weights, struct rp_err *err)
{
    double spread, error;
    size_t mark;

    *x = (struct rp_opt_run){0};
    RP_TRY(rp_sim_run_init(&x->run, parts, n, err));
    if (x->run.nranks == n)
        x->run.weights = weights;
    x->recorded_ns = rp_sim_measured_ns(&x->run);
    RP_TRY(run_all(x, &x->simulated_ns, err));
    mark = rp_overlay_mark(&x->run.overlay);
    RP_TRY(rp_sim_cost_drop(&x->run, 1, err));
    x->costs = rp_overlay_mark(&x->run.overlay) > mark;
    RP_TRY(run_all(x, &x->step_ns, err));
    spread = parts[0]->spread_ratio;
    error = x->recorded_ns > 0
                ? fabs((double)(x->simulated_ns - x->recorded_ns)) / (double)x->recorded_ns
                : 0;
    x->doubt = (isnan(spread) ? 0 : spread) + error;
    return find_transport(x, err);
}

void rp_opt_run_release(struct rp_opt_run *x)
{
    if (x->based)
        rp_resim_release(&x->base);
    rp_sim_run_release(&x->run);
}

static enum rp_code run_again(struct rp_opt_run *x, int64_t *step_ns, struct rp_err *err)
{
    RP_TRY(rp_resim_update(&x->base, err));
    x->evaluated++;
    return rp_sim_step_ns(&x->run, &x->base.result, step_ns, err);
}

enum rp_code rp_opt_run_step(struct rp_opt_run *x, const char *text, int64_t *step_ns,
                             struct rp_err *err)
{
    bool again = !x->whole && x->run.tasks.tasks.n <= MANY_TASKS;
    size_t mark = rp_overlay_mark(&x->run.overlay);
    enum rp_code code = RP_OK;

    if (again && !x->based) {
        x->based = true;
        RP_TRY(rp_resim_init(&x->base, &x->run.overlay, err));
    }
    reset_run(x);
    if (*text)
        code = rp_whatif_apply(&x->run, text, err);
    if (code == RP_OK)
        code = again ? run_again(x, step_ns, err) : run_all(x, step_ns, err);
    rp_overlay_undo(&x->run.overlay, mark);
    if (again && code == RP_OK)
        rp_resim_undo(&x->base);
    return code;
}

/* With another cost of the profiler. */
static enum rp_code step_at_cost(struct rp_opt_run *x, double factor, const char *text,
                                 int64_t *step_ns, struct rp_err *err)
{
    enum rp_code code;

    rp_overlay_undo(&x->run.overlay, 0);
    reset_run(x);
    code = rp_sim_cost_drop(&x->run, factor, err);
    if (code == RP_OK && *text)
        code = rp_whatif_apply(&x->run, text, err);
    if (code == RP_OK)
        code = run_all(x, step_ns, err);
    rp_overlay_undo(&x->run.overlay, 0);
    if (code == RP_OK)
        code = rp_sim_cost_drop(&x->run, 1, err);
    return code;
}

/* What-ifs that know of no transport, on one that is slower or faster. */
static enum rp_code step_on_transport(struct rp_opt_run *x, const char *text, bool faster,
                                      int64_t *step_ns, struct rp_err *err)
{
    double by = 1 + x->transport_doubt;
    char scaled[1024];

    if ((size_t)snprintf(scaled, sizeof scaled, "%s%sscale:comm=%.6f", text, *text ? "+" : "",
                         faster ? 1 / by : by) >= sizeof scaled)
        return RP_OK;
    return rp_opt_run_step(x, scaled, step_ns, err);
}

enum rp_code rp_opt_run_worlds(struct rp_opt_run *x, const char *text,
                               int64_t step_ns[RP_OPT_WORLDS], struct rp_err *err)
{
    enum rp_code code = rp_opt_run_step(x, text, &step_ns[0], err);
    bool leans = x->run.leans, transport = x->run.uses_transport;
    int i;

    for (i = 1; i < RP_OPT_WORLDS; i++)
        step_ns[i] = step_ns[0];
    for (i = RP_LEAN_NONE + 1; code == RP_OK && leans && i < RP_LEANS; i++) {
        x->run.lean = (enum rp_sim_lean)i;
        code = rp_opt_run_step(x, text, &step_ns[i], err);
    }
    x->run.lean = RP_LEAN_NONE;
    for (i = 0; code == RP_OK && !transport && x->transport_doubt > 0 && i < 2; i++)
        code =
            step_on_transport(x, text, i == 1, &step_ns[i ? RP_LEAN_FASTER : RP_LEAN_SLOWER], err);
    if (code == RP_OK && x->costs)
        code = step_at_cost(x, 1 - DOUBT_OF_COST, text, &step_ns[RP_LEANS], err);
    if (code == RP_OK && x->costs)
        code = step_at_cost(x, 1 + DOUBT_OF_COST, text, &step_ns[RP_LEANS + 1], err);
    return code;
}
