/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the advice would bring, from the model of `simulate`: the same numbers as its predictions,
 * for the findings on the screen. The model of a rank is made while its trace is in memory, where
 * it may be needed (something is lost, or Python frames were recorded, which slow the program down)
 * and is not too large; it takes about as long as the rest of the report. Without it, and for a
 * part of a recording, advice names the what-if, and 'reprise simulate' answers it.
 *
 * Advice that brings nothing is left out, if there is other advice.
 */
#include "explain/report/report.h"

#include "result/print_units.h"
#include "sim/predict.h"

#include <math.h>
#include <string.h>

#define MOST_EVENTS   300000 /* of a rank, of more than 8 ranks fewer: beyond, it takes too long */
#define MOST_FINDINGS 4      /* on the screen */
#define MOST_WHATIFS  12
#define LEAST_LOST    0.02 /* of the window: with less, no advice brings anything */
#define LEAST_GAIN    0.005
#define MOST_GAIN     3 /* times the share of the finding, and MORE_GAIN: beyond, no number */
#define MORE_GAIN     0.05

/* ------------------------------------------------------------------ the model of a rank */

static bool is_worth_it(const struct rp_trace *trace, const struct rp_report_part *p)
{
    int64_t lost = rp_ns_sum(p->b.idle_ns, p->b.exposed_comm_ns);
    uint32_t ranks = trace->world_size > 0 ? (uint32_t)trace->world_size : 1;

    if (!p->on_device || p->limited || trace->ev.n > MOST_EVENTS / (ranks > 8 ? ranks / 8 : 1))
        return false;
    return p->workload.with_stack || (double)lost >= LEAST_LOST * (double)p->b.window_ns;
}

enum rp_code rp_report_model(const struct rp_trace *trace, struct rp_arena *arena,
                             struct rp_report_part *part, struct rp_err *err)
{
    struct rp_err why = RP_ERR_INIT;
    enum rp_code code;

    if (!is_worth_it(trace, part))
        return RP_OK;
    code = rp_sim_part_init(&part->sim, trace, arena, &why);
    rp_arena_adopt(arena, &part->sim.graph.arena);
    part->modelled = code == RP_OK;
    if (code == RP_OK)
        return RP_OK;
    rp_sim_part_release(&part->sim);
    memset(&part->sim, 0, sizeof part->sim);
    return code == RP_NOMEM ? rp_err_nomem(err, "simulating") : RP_OK;
}

/* ------------------------------------------------------------------ predictions */

struct what_ifs {
    size_t n;
    const char *text[MOST_WHATIFS];
    struct rp_sim_gain gains[MOST_WHATIFS];
};

static size_t find_what_if(const struct what_ifs *w, const char *text)
{
    size_t i;

    for (i = 0; i < w->n && strcmp(w->text[i], text) != 0; i++)
        ;
    return i;
}

/* The nth of several in "bucket=5MB|25MB"; NULL: there are fewer. In the arena. */
static const char *nth_what_if(struct rp_arena *arena, const char *all, size_t nth)
{
    const char *value = strchr(all, '='), *at = value ? value + 1 : all;

    if (!strchr(all, '|'))
        return nth ? NULL : all;
    for (; nth > 0 && at; nth--) {
        at = strchr(at, '|');
        at = at ? at + 1 : NULL;
    }
    return at ? rp_arena_textf(arena, "%.*s%.*s", (int)(value + 1 - all), all,
                               (int)strcspn(at, "|"), at)
              : NULL;
}

static void list_what_ifs(struct rp_arena *arena, const struct rp_report_root *out,
                          struct what_ifs *w)
{
    size_t i, k, nth;

    for (i = 0; i < out->nfindings && i < MOST_FINDINGS; i++)
        for (k = 0; k < out->findings[i].ntries; k++) {
            const char *all = out->findings[i].tries[k].what_if, *text;

            for (nth = 0; all && (text = nth_what_if(arena, all, nth)) != NULL; nth++)
                if (w->n < MOST_WHATIFS && find_what_if(w, text) == w->n)
                    w->text[w->n++] = text;
        }
}

/* Replaces "{}" by the number of the what-if; without a prediction by N, and of several what-ifs
   the middle one stays as an example. */
static void settle_try(struct rp_arena *arena, struct rp_report_try *t)
{
    const char *at = strstr(t->text, "{}"), *value = NULL;
    int len = 1;

    if (!isnan(t->change_ratio) && (value = strchr(t->what_if, '=')) != NULL)
        len = (int)strspn(value + 1, "0123456789.");
    if (at)
        t->text = rp_arena_textf(arena, "%.*s%.*s%s", (int)(at - t->text), t->text, len,
                                 value ? value + 1 : "N", at + 2);
    if (t->what_if && strchr(t->what_if, '|'))
        t->what_if = nth_what_if(arena, t->what_if, 2);
}

/* Of several what-ifs the one that brings most. A gain far above what the finding costs is not of
   this finding: the what-if removes other host work, too. */
static void predict_try(struct rp_arena *arena, struct rp_report_try *t, double share,
                        const struct what_ifs *w, const struct rp_sim_now *now)
{
    const char *all = t->what_if, *text;
    size_t nth, at;

    t->what_if = NULL; /* where the recording does not allow it */
    for (nth = 0; all && (text = nth_what_if(arena, all, nth)) != NULL; nth++) {
        at = find_what_if(w, text);
        if (at == w->n || w->gains[at].step_ns == RP_ABSENT_I64 ||
            (t->what_if && w->gains[at].step_ns >= t->predicted_ns))
            continue;
        t->what_if = text;
        t->predicted_ns = w->gains[at].step_ns;
    }
    if (!t->what_if)
        return;
    t->step_ns = now->unprofiled_ns;
    t->change_ratio = (double)(t->predicted_ns - t->step_ns) / (double)t->step_ns;
    if ((t->look && t->change_ratio > -LEAST_GAIN) ||
        -t->change_ratio > MOST_GAIN * share + MORE_GAIN) {
        t->what_if = NULL;
        t->step_ns = t->predicted_ns = RP_ABSENT_I64;
        t->change_ratio = NAN;
    }
}

/* Whether one of the first n findings has that advice. */
static bool was_given(const struct rp_report_root *out, size_t n, const char *topic)
{
    size_t i, k;

    for (i = 0; topic && i < n; i++)
        for (k = 0; k < out->findings[i].ntries; k++)
            if (out->findings[i].tries[k].topic && !strcmp(out->findings[i].tries[k].topic, topic))
                return true;
    return false;
}

/* Of those with a number, what brings most comes first; the others keep their places. */
static void sort_tries(struct rp_report_finding *f)
{
    size_t i, k;

    for (i = 0; i < f->ntries; i++)
        for (k = i + 1; k < f->ntries; k++)
            if (f->tries[k].change_ratio < f->tries[i].change_ratio) {
                struct rp_report_try t = f->tries[k];

                f->tries[k] = f->tries[i];
                f->tries[i] = t;
            }
}

/* Whether some advice of a finding is predicted to bring something. */
static bool brings_something(const struct rp_report_finding *f)
{
    size_t i;

    for (i = 0; i < f->ntries; i++)
        if (f->tries[i].change_ratio <= -LEAST_GAIN)
            return true;
    return false;
}

/* Puts the numbers to a finding's advice; leaves out what brings nothing, and what a finding before
   it says already. The first stays where nothing else is known to help. */
static void predict_finding(struct rp_arena *arena, struct rp_report_root *out, size_t at,
                            const struct what_ifs *w, const struct rp_sim_now *now)
{
    struct rp_report_finding *f = &out->findings[at];
    size_t i, kept = 0, first = 0;

    for (i = 0; i < f->ntries; i++)
        predict_try(arena, &f->tries[i], f->share, w, now);
    while (first + 1 < f->ntries && was_given(out, at, f->tries[first].topic))
        first++;
    for (i = 0; i < f->ntries; i++) {
        bool useless = f->tries[i].change_ratio > -LEAST_GAIN;

        if ((i == first && !(useless && brings_something(f))) ||
            (!useless && !was_given(out, at, f->tries[i].topic)))
            f->tries[kept++] = f->tries[i];
    }
    if (!kept && f->ntries)
        f->tries[kept++] = f->tries[first];
    f->ntries = kept;
    sort_tries(f);
}

/* "about 1.01 s of 1.20 s a step" */
static void say_distortion(const struct rp_ranks *ranks, struct rp_arena *arena,
                           const struct rp_sim_now *now, struct rp_report_root *out)
{
    out->unprofiled_ns = now->unprofiled_ns;
    if (now->unprofiled_ns > now->step_ns || !rp_sim_is_distorted(now))
        return;
    out->profiler_text = rp_arena_textf(
        arena,
        "without the profiler about %s of %s%s: idle time before launches is partly its cost",
        rp_units_time(arena, now->unprofiled_ns), rp_units_time(arena, now->step_ns),
        rp_report_part_of(ranks, 0)->nsteps ? " a step" : "");
}

/* Whether ranks that were not given are waited for: the model does not know how much less that
   would be with a change, or without the profiler. */
static bool waits_for_absent(const struct rp_ranks *ranks)
{
    size_t i;

    for (i = 0; ranks->world_size > (int64_t)ranks->n && i < ranks->n; i++) {
        const struct rp_breakdown *b = &rp_report_part_of(ranks, i)->b;

        if ((double)b->exposed_comm_ns >= RP_SIM_DISTORTED * (double)b->window_ns)
            return true;
    }
    return false;
}

/* The numbers; false where there is no model, or none that reproduces the recording. */
static enum rp_code find_numbers(const struct rp_ranks *ranks, struct rp_arena *arena,
                                 struct what_ifs *w, struct rp_sim_now *out, bool *found,
                                 struct rp_err *err)
{
    const struct rp_sim_part **parts =
        RP_ARENA_NEW(arena, const struct rp_sim_part *, ranks->n + 1);
    struct rp_err why = RP_ERR_INIT;
    enum rp_code code;
    size_t i;

    *found = false;
    if (!parts)
        return rp_err_nomem(err, "simulating");
    if (waits_for_absent(ranks))
        return RP_OK;
    for (i = 0; i < ranks->n; i++) {
        if (!rp_report_part_of(ranks, i)->modelled)
            return RP_OK;
        parts[i] = &rp_report_part_of(ranks, i)->sim;
    }
    code = rp_sim_predict(parts, ranks->n, w->text, w->n, out, w->gains, &why);
    if (code == RP_NOMEM)
        return rp_err_nomem(err, "simulating");
    *found = code == RP_OK && out->step_ns > 0 && out->unprofiled_ns > 0 && rp_sim_reproduces(out);
    return RP_OK;
}

enum rp_code rp_report_predict(const struct rp_ranks *ranks, struct rp_arena *arena,
                               struct rp_report_root *out, struct rp_err *err)
{
    struct what_ifs w = {0};
    struct rp_sim_now now = {0};
    bool found;
    size_t i, k;

    out->unprofiled_ns = RP_ABSENT_I64;
    list_what_ifs(arena, out, &w);
    RP_TRY(find_numbers(ranks, arena, &w, &now, &found, err));
    if (found)
        say_distortion(ranks, arena, &now, out);
    for (i = 0; i < out->nfindings; i++) {
        struct rp_report_finding *f = &out->findings[i];

        if (found && i < MOST_FINDINGS)
            predict_finding(arena, out, i, &w, &now);
        for (k = 0; k < f->ntries; k++)
            settle_try(arena, &f->tries[k]);
        rp_report_join_hint(arena, f);
    }
    return rp_arena_check(arena, "simulating", err);
}
