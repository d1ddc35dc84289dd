/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking the model. First it repeats the recording, then it runs without the profiler, then once a
 * what-if with the profiler (to compare with a recording) and without (the prediction). The
 * interval is what the prediction becomes if the profiler cost half or half as much again, widened
 * by how far the recorded steps differ from each other.
 */
#include "sim/sim_answer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct asker {
    struct rp_sim_run run;
    struct rp_sim_result result;
    struct rp_sim_answer *out;
    struct rp_arena *arena;
};

/* A step with the profiler's cost taken out `factor` times and a what-if (or NULL) applied. */
static enum rp_code step_with(struct asker *a, double factor, const char *whatif, int64_t *out,
                              struct rp_err *err)
{
    size_t mark = rp_overlay_mark(&a->run.overlay);
    enum rp_code code = RP_OK;

    memset(a->run.gone.at, 0, a->run.gone.n);
    a->run.dropped = false;
    if (factor > 0)
        code = rp_sim_drop_profiler(&a->run, factor, err);
    if (code == RP_OK && whatif)
        code = rp_whatif_apply(&a->run, whatif, err);
    if (code == RP_OK)
        code = rp_simulate(&a->run.overlay, &a->result, err);
    if (code == RP_OK)
        code = rp_sim_step_ns(&a->run, &a->result, out, err);
    rp_overlay_undo(&a->run.overlay, mark);
    return code;
}

static double ratio(int64_t part, int64_t whole)
{
    return whole ? (double)part / (double)whole : NAN;
}

static enum rp_code fill_baseline(struct asker *a, struct rp_err *err)
{
    struct rp_sim_baseline *b = &a->out->baseline;
    const struct rp_sim_part *first = a->run.parts[0];

    RP_TRY(step_with(a, 0, NULL, &b->simulated_ns, err));
    RP_TRY(step_with(a, 1, NULL, &b->unprofiled_ns, err));
    b->measured_ns = first->measured_ns;
    b->error_ratio = ratio(b->simulated_ns - b->measured_ns, b->measured_ns);
    b->spread_ratio = first->spread_ratio;
    b->ranks = (int64_t)a->run.nranks * first->nranks;
    b->steps = first->has_steps ? first->nsteps : (int64_t)first->recorded_steps;
    b->tasks = (int64_t)a->run.tasks.tasks.n;
    b->edges = (int64_t)a->run.tasks.edges.n;
    return RP_OK;
}

static void order(int64_t *low, int64_t *high, int64_t x)
{
    *low = x < *low ? x : *low;
    *high = x > *high ? x : *high;
}

static enum rp_code fill_prediction(struct asker *a, const char *text, struct rp_sim_prediction *p,
                                    struct rp_err *err)
{
    double spread = isnan(a->out->baseline.spread_ratio) ? 0 : a->out->baseline.spread_ratio;
    int64_t less, more;

    RP_TRY(step_with(a, 0, text, &p->simulated_ns, err));
    RP_TRY(step_with(a, 1, text, &p->predicted_ns, err));
    RP_TRY(step_with(a, 0.5, text, &less, err));
    RP_TRY(step_with(a, 1.5, text, &more, err));
    p->low_ns = p->high_ns = p->predicted_ns;
    order(&p->low_ns, &p->high_ns, less);
    order(&p->low_ns, &p->high_ns, more);
    p->low_ns -= (int64_t)((double)p->low_ns * spread);
    p->high_ns += (int64_t)((double)p->high_ns * spread);
    p->change_ratio =
        ratio(p->predicted_ns - a->out->baseline.unprofiled_ns, a->out->baseline.unprofiled_ns);
    p->assumes = rp_whatif_assumes(text);
    p->what_if = rp_arena_strdup(a->arena, text);
    return p->what_if ? RP_OK : rp_err_nomem(err, "simulating");
}

static enum rp_code answer(struct asker *a, const char *const *whatifs, size_t n,
                           struct rp_err *err)
{
    size_t i;

    RP_TRY(fill_baseline(a, err));
    a->out->predictions = RP_ARENA_NEW(a->arena, struct rp_sim_prediction, n + 1);
    if (!a->out->predictions)
        return rp_err_nomem(err, "simulating");
    for (i = 0; i < n; i++)
        RP_TRY(fill_prediction(a, whatifs[i], &a->out->predictions[a->out->npredictions++], err));
    return RP_OK;
}

enum rp_code rp_sim_answer_help(struct rp_arena *arena, struct rp_sim_answer *out,
                                struct rp_err *err)
{
    struct rp_sim_baseline *b = &out->baseline;
    size_t i, n = 0;

    b->measured_ns = b->simulated_ns = b->unprofiled_ns = RP_ABSENT_I64;
    b->ranks = b->steps = b->tasks = b->edges = RP_ABSENT_I64;
    b->error_ratio = b->spread_ratio = NAN;
    while (rp_whatifs[n])
        n++;
    out->known = RP_ARENA_NEW(arena, struct rp_sim_known, n + 1);
    if (!out->known)
        return rp_err_nomem(err, "listing what-ifs");
    for (i = 0; i < n; i++)
        out->known[i] = (struct rp_sim_known){rp_whatifs[i]->form, rp_whatifs[i]->summary,
                                              rp_whatifs[i]->assumes};
    out->nknown = n;
    return RP_OK;
}

enum rp_code rp_sim_answer(const struct rp_sim_part *const *parts, size_t n,
                           const char *const *whatifs, size_t nwhatifs, struct rp_arena *arena,
                           struct rp_sim_answer *out, struct rp_err *err)
{
    struct asker a = {.out = out, .arena = arena};
    enum rp_code code = rp_sim_run_init(&a.run, parts, n, err);

    if (code == RP_OK)
        code = answer(&a, whatifs, nwhatifs, err);
    rp_sim_result_release(&a.result);
    rp_sim_run_release(&a.run);
    return code;
}
