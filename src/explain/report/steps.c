/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes what a report says about steps besides their times: how they were found, what lies outside
 * of them, what to do if none were found, and how long one takes without the recorder.
 */
#include "explain/report/join.h"

#include "base/decides.h"
#include "trace/words.h"

#include <math.h>
#include <string.h>

#define ENDS_SAID 3
RP_LIMIT(ENDS_SAID, "ranks", "whose exceptions are noted; others are counted");

/* How a program of this framework marks its steps; NULL if no line is known. */
static const char *mark_line(const struct rp_report_part *p)
{
    static const struct {
        uint8_t framework;
        const char *line;
    } lines[] = {
        {RP_FRAMEWORK_PYTORCH, "with torch.profiler.record_function(f\"train_step {i}\"):"},
        {RP_FRAMEWORK_JAX, "with jax.profiler.StepTraceAnnotation(\"train\", step_num=i):"},
        {RP_FRAMEWORK_TENSORFLOW,
         "with tf.profiler.experimental.Trace(\"train\", step_num=i, _r=1):"},
    };

    if (p->workload.system && p->workload.framework == RP_FRAMEWORK_PYTORCH)
        return "with torch.cuda.nvtx.range(f\"train_step {i}\"):";
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (p->workload.framework == lines[i].framework ||
            (p->frameworks && strstr(p->frameworks, rp_framework_names[lines[i].framework])))
            return lines[i].line;
    return NULL;
}

static void hint_at_marks(struct rp_report_ctx *j)
{
    const struct rp_report_part *p = rp_report_ctx_part(j, 0);
    const char *line = p->by_calls ? NULL : mark_line(p);
    bool ours = rp_report_is_ours(p);

    if (!line && !ours)
        return;
    rp_report_add_note(j, rp_arena_textf(j->arena,
                                         "no steps were found, so %s is judged: %s%s"
                                         "'--step-name TEXT'%s tells which ranges are steps",
                                         p->on_device ? "the time " RP_WORDS_DEVICE_WINDOW
                                                      : "all that was recorded",
                                         line ? line : "", line ? " around a step marks it; " : "",
                                         ours ? " (also of 'record')" : ""));
}

static void note_without_detail(struct rp_report_ctx *j, const struct rp_report_part *p)
{
    const struct rp_outside *o = &p->outside;
    const char *device =
        o->device_steps
            ? rp_arena_textf(j->arena, "; on the device %lld of them took %s each",
                             (long long)o->device_steps, rp_report_ctx_time(j, o->device_ns))
            : "";

    rp_report_add_note(j, rp_arena_textf(j->arena,
                                         "kernels and operators are those of %zu of %zu steps: the "
                                         "others were recorded without detail%s",
                                         p->nsteps - (size_t)o->without_detail, p->nsteps, device));
}

void rp_report_note_steps(struct rp_report_ctx *j)
{
    const struct rp_report_part *p = rp_report_ctx_part(j, 0);
    const struct rp_outside *o = &p->outside;

    /* Note which exceptions ended the program: often only the first of several ranks tells the
     * cause.
     */
    size_t n = 0;
    for (size_t r = 0; r < j->n; r++) {
        const char *ended = rp_report_ctx_part(j, r)->ended;

        if (ended && n++ < ENDS_SAID)
            rp_report_add_note(j, j->n == 1 ? rp_arena_textf(j->arena, "the program ended%s", ended)
                                            : rp_arena_textf(j->arena, "rank %d ended%s",
                                                             rp_report_ctx_number(j, r), ended));
    }
    if (n > ENDS_SAID)
        rp_report_add_note(
            j, rp_arena_textf(j->arena, "%zu more ranks ended by an exception", n - ENDS_SAID));

    if (p->limited)
        return;
    if (!p->nsteps && !rp_ranks_are_captures(j->ranks))
        hint_at_marks(j);
    if (o->without_detail)
        note_without_detail(j, p);
    rp_report_add_note(j, rp_outside_text(o, p->whole.window_ns, j->arena));

    /* "without the recorder at most about 31.2 ms of 40.9 ms a step": steps without detail still
       have CUPTI attached. A host that runs ahead of its device was measured in its own steps: if
       these are shorter than what the device needs, they say nothing. */
    const struct rp_trace_life *life = &rp_report_ctx_part(j, 0)->life;
    const struct rp_breakdown *judged = &rp_report_ctx_part(j, 0)->whole;
    struct rp_report_root *out = j->out;
    if (life->unrecorded_ns <= 0 || life->recorded_ns <= 0 || out->step_ns == RP_ABSENT_I64 ||
        (double)life->unrecorded_ns * (double)judged->window_ns <
            (double)life->recorded_ns * (double)judged->busy_ns)
        return;
    out->unprofiled_ns =
        (int64_t)((double)out->step_ns * (double)life->unrecorded_ns / (double)life->recorded_ns);
    out->profiler_text = rp_arena_textf(
        j->arena, "without the recorder at most about %s of %s a step: measured while recording",
        rp_report_ctx_time(j, out->unprofiled_ns), rp_report_ctx_time(j, out->step_ns));
}

void rp_report_fill_found(struct rp_report_ctx *j)
{
    const struct rp_report_part *p = rp_report_ctx_part(j, 0);
    struct rp_report_root *out = j->out;

    out->step_share = p->limited || !p->nsteps ? NAN : p->outside.share;
    if (p->limited || !p->nsteps)
        return;
    out->step_source = rp_word_step_source(p->outside.source);
    out->step_mark = p->outside.mark;
    out->steps_text = rp_outside_steps_text(&p->outside, p->on_device, j->arena);
}
