/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimates what recording cost. It slows down the host, so a step that is limited by the host
 * seems longer than it is, and a change of the device's work may be hidden behind that. The model
 * of `simulate` says how long the steps of both runs take without the profiler, by the rules of the
 * report (rp_report_model, sim/predict.h). A run whose device hardly waits needs no model, because
 * recording can cost no more than these waits.
 */
#include "explain/diff/diff.h"

#include "result/print_units.h"
#include "sim/predict.h"
#include "sim/simulate.h"

#include <math.h>
#include <string.h>

struct profiler_ctx {
    const struct rp_trace_diff_input *in[2];
    const struct rp_diff_pair *pairs;
    size_t npairs;
    const struct rp_sim_part **models; /* of one run */
    struct rp_arena *arena;
    struct rp_trace_diff_root *out;
    bool known[2], distorted[2];
};

static struct rp_trace_diff_run *run_of(struct profiler_ctx *c, int side)
{
    return side ? &c->out->new_run : &c->out->base;
}

static const struct rp_trace_diff_part *part_of(const struct profiler_ctx *c, int side, size_t pair)
{
    return c->in[side][side ? c->pairs[pair].fresh : c->pairs[pair].base].part;
}

/* Lists the models of a run; false if a rank has none. */
static bool list_models(struct profiler_ctx *c, int side)
{
    for (size_t p = 0; p < c->npairs; p++) {
        if (!part_of(c, side, p)->modelled)
            return false;
        c->models[p] = &part_of(c, side, p)->sim;
    }
    return true;
}

/* The time in a step in which the device waits, if it is too short to matter; else -1. */
static int64_t small_wait(const struct profiler_ctx *c, int side)
{
    int64_t most = 0;

    for (size_t p = 0; p < c->npairs; p++) {
        const struct rp_trace_diff_part *part = part_of(c, side, p);
        int64_t wait = rp_ns_sum(part->time_ns[RP_DIFF_COMM], part->time_ns[RP_DIFF_IDLE]);

        if (!part->on_device || part->limited ||
            (double)wait >= RP_SIM_DISTORTED * (double)part->median_ns)
            return -1;
        most = wait > most ? wait : most;
    }
    return most;
}

/* Whether ranks that were not given take part in the step: the model cannot tell how much shorter
   the waits for them would be without the profiler. */
static bool waits_for_absent(const struct profiler_ctx *c, int side)
{
    for (size_t p = 0; p < c->npairs; p++) {
        const struct rp_trace_diff_part *part = part_of(c, side, p);
        int64_t wait = rp_ns_sum(part->time_ns[RP_DIFF_COMM], part->cause_ns[RP_GAP_OTHER_RANK]);
        size_t ranks = part->world_size > 0 ? (size_t)part->world_size : 2;

        if (c->npairs < ranks && (double)wait >= RP_SIM_DISTORTED * (double)part->median_ns)
            return true;
    }
    return false;
}

/* Estimates the step without the profiler; the interval is left out if it needs the model. */
static enum rp_code estimate(struct profiler_ctx *c, int side, struct rp_err *err)
{
    struct rp_trace_diff_run *run = run_of(c, side);
    struct rp_err why = RP_ERR_INIT;
    struct rp_sim_now now = {0};

    if (!list_models(c, side)) {
        int64_t wait = small_wait(c, side);
        if (wait < 0)
            return RP_OK;
        run->unprofiled_ns = run->unprofiled_high_ns = run->step_ns;
        run->unprofiled_low_ns = rp_ns_between(wait, run->step_ns);
        c->known[side] = true;
        return RP_OK;
    }
    if (waits_for_absent(c, side))
        return RP_OK;
    enum rp_code code = rp_sim_predict(c->models, c->npairs, NULL, 0, &now, NULL, &why);
    if (code == RP_NOMEM)
        return rp_err_nomem(err, "simulating");
    /* with several ranks the model may know only one, whose step is not that of the run */
    if (code != RP_OK || !rp_sim_reproduces(&now) ||
        fabs((double)now.step_ns - (double)run->step_ns) >= RP_SIM_DISTORTED * (double)run->step_ns)
        return RP_OK;
    run->unprofiled_ns = now.unprofiled_ns;
    c->known[side] = true;
    c->distorted[side] = rp_sim_is_distorted(&now);
    return RP_OK;
}

static enum rp_code find_interval(struct profiler_ctx *c, int side, struct rp_err *err)
{
    struct rp_trace_diff_run *run = run_of(c, side);
    struct rp_sim_asked asked = {0};
    struct rp_sim_answer answer = {0};
    struct rp_err why = RP_ERR_INIT;

    if (!c->known[side] || !list_models(c, side))
        return RP_OK;
    enum rp_code code = rp_sim_answer(c->models, c->npairs, &asked, c->arena, &answer, &why);
    if (code == RP_NOMEM)
        return rp_err_nomem(err, "simulating");
    if (code != RP_OK)
        return RP_OK;
    run->unprofiled_low_ns = answer.baseline.unprofiled_low_ns;
    run->unprofiled_high_ns = answer.baseline.unprofiled_high_ns;
    return RP_OK;
}

static int sign_of(const char *verdict)
{
    return !strcmp(verdict, "slower") - !strcmp(verdict, "faster");
}

/* The cost of recording that is not reported counts as noise, too. A verdict other than the
   recorded one must also exceed the noise of the recorded steps. */
static void decide_unprofiled(struct profiler_ctx *c, const struct rp_trace_diff_options *options)
{
    struct rp_trace_diff_root *out = c->out;
    int64_t base = out->base.unprofiled_ns, delta = rp_ns_between(base, out->new_run.unprofiled_ns);
    double least = RP_SIM_DISTORTED * (double)base;
    double limit = options->fail_share >= 0 ? floor(options->fail_share * (double)base)
                                            : (double)options->fail_ns;

    if (sign_of(out->verdict) != (delta > 0) - (delta < 0) && out->noise_ns != RP_ABSENT_I64 &&
        (double)out->noise_ns > least)
        least = (double)out->noise_ns;
    out->unprofiled_delta_ns = delta;
    out->unprofiled_delta_share = (double)delta / (double)base;
    out->unprofiled_verdict = !delta                         ? "same"
                              : fabs((double)delta) <= least ? "within the noise"
                              : delta > 0                    ? "slower"
                                                             : "faster";
    out->unprofiled_failed = out->threshold_ns != RP_ABSENT_I64 &&
                             sign_of(out->unprofiled_verdict) > 0 && (double)delta > limit;
    out->contradicted = sign_of(out->verdict) != sign_of(out->unprofiled_verdict) &&
                        fabs(out->unprofiled_delta_share - out->delta_share) >= RP_SIM_DISTORTED;
}

/* "about 23.0 ms (22.7 ms to 25.8 ms)", or "unknown" */
static const char *step_text(struct profiler_ctx *c, int side)
{
    const struct rp_trace_diff_run *run = run_of(c, side);

    if (!c->known[side])
        return "unknown";
    const char *step =
        rp_arena_textf(c->arena, "about %s", rp_units_time(c->arena, run->unprofiled_ns));
    if (run->unprofiled_low_ns == run->unprofiled_high_ns) /* or both are absent */
        return step;
    return rp_arena_textf(c->arena, "%s (%s to %s)", step,
                          rp_units_time(c->arena, run->unprofiled_low_ns),
                          rp_units_time(c->arena, run->unprofiled_high_ns));
}

static void write_text(struct profiler_ctx *c)
{
    struct rp_trace_diff_root *out = c->out;
    const char *change = "";

    if (out->unprofiled_verdict)
        change = rp_arena_textf(c->arena, ", %+.1f %%", 100 * out->unprofiled_delta_share);
    out->profiler_text = rp_arena_textf(
        c->arena, "without it %s -> %s%s: recording slows down the host, and with it %s",
        step_text(c, 0), step_text(c, 1), change,
        !c->distorted[1]   ? "the base step"
        : !c->distorted[0] ? "the new step"
                           : "both steps");
}

static void forget(struct rp_trace_diff_run *run)
{
    run->unprofiled_ns = run->unprofiled_low_ns = run->unprofiled_high_ns = RP_ABSENT_I64;
}

enum rp_code rp_trace_diff_profiler(const struct rp_trace_diff_input *base,
                                    const struct rp_trace_diff_input *fresh,
                                    const struct rp_diff_pair *pairs, size_t npairs,
                                    const struct rp_trace_diff_options *options,
                                    struct rp_arena *arena, struct rp_trace_diff_root *out,
                                    struct rp_err *err)
{
    struct profiler_ctx c = {
        .in = {base, fresh}, .pairs = pairs, .npairs = npairs, .arena = arena, .out = out};

    c.models = RP_ARENA_NEW(arena, const struct rp_sim_part *, npairs + 1);
    RP_TRY(rp_err_need(c.models, err, "simulating"));
    RP_TRY(estimate(&c, 0, err));
    RP_TRY(estimate(&c, 1, err));
    if (!c.distorted[0] && !c.distorted[1]) {
        forget(&out->base);
        forget(&out->new_run);
        return RP_OK;
    }
    RP_TRY(find_interval(&c, 0, err));
    RP_TRY(find_interval(&c, 1, err));
    if (c.known[0] && c.known[1])
        decide_unprofiled(&c, options);
    write_text(&c);
    return rp_arena_check(arena, "simulating", err);
}
