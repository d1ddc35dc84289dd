/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Breaks between steps are named by evidence only:
 *
 *     checkpoint    something named so ran in it (torch.save, save_checkpoint)
 *     evaluation    operators or device work ran in it, but no backward pass and no optimizer
 *     pause         nothing ran in it
 *     break         anything else
 */
#include "facts/host/outside.h"

#include "base/decides.h"
#include "base/named.h"
#include "base/order.h"
#include "facts/arg_keys.h"
#include "result/part.h"
#include "result/print_units.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define OUTSIDE(kind, member) RP_PART_##kind(struct rp_outside, member)
static const struct rp_field outside_fields[] = {OUTSIDE(PLAIN, nsteps),
                                                 OUTSIDE(PLAIN, before_ns),
                                                 OUTSIDE(PLAIN, unrecorded_ns),
                                                 OUTSIDE(PLAIN, after_ns),
                                                 OUTSIDE(PLAIN, warm_ups),
                                                 OUTSIDE(PLAIN, warm_up_ns),
                                                 OUTSIDE(PLAIN, without_detail),
                                                 OUTSIDE(PLAIN, device_steps),
                                                 OUTSIDE(PLAIN, device_ns),
                                                 OUTSIDE(PLAIN, breaks),
                                                 OUTSIDE(PLAIN, break_ns),
                                                 OUTSIDE(PLAIN, share),
                                                 OUTSIDE(PLAIN, beside),
                                                 OUTSIDE(PLAIN, beside_ns),
                                                 OUTSIDE(PLAIN, source),
                                                 OUTSIDE(TEXT, mark),
                                                 RP_PART_END};
const struct rp_type rp_outside_type = {"outside", sizeof(struct rp_outside), outside_fields, NULL};

/* What ran in a break. */
struct break_work {
    struct rp_interval time;
    bool worked, trained, saved;
};

struct outside_ctx {
    const struct rp_trace *t;
    struct rp_interval *steps; /* how long each lasts */
    struct break_work *breaks;
    size_t nbreaks;
    double inside_ns, all_ns, op_inside_ns, op_all_ns;
};

bool rp_name_recomputes(const char *name)
{
    static const char *const words[] = {"CheckpointFunction", "checkpoint_wrap",
                                        "utils/checkpoint.py"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasestr(name, words[i]))
            return true;
    return false;
}

static bool names_checkpoint(const char *name)
{
    static const char *const words[] = {"checkpoint", "torch.save", "save_state", "save_pretrained",
                                        "save_model"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasestr(name, words[i]))
            return !rp_name_recomputes(name);
    return false;
}

static const char training[] = "backward"; /* in any case */

static bool names_training(const char *name)
{
    static const char *const begins[] = {"autograd::engine", "Optimizer.step#"};

    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
        if (rp_is_named(name, RP_NAMED_BEGINS, begins[i]))
            return true;
    return strcasestr(name, training);
}

/* Notes what an event says about the break in which it starts. */
static void look_at(struct outside_ctx *c, rp_event e)
{
    const struct rp_trace *t = c->t;
    uint8_t kind = t->ev.kind[e];
    size_t i;

    RP_LOWER_BOUND(i, c->nbreaks, c->breaks[i].time.begin_ns <= t->ev.ts_ns[e]);
    if (!i || t->ev.ts_ns[e] >= c->breaks[i - 1].time.end_ns)
        return;
    struct break_work *b = &c->breaks[i - 1];
    const char *name = rp_trace_str(t, t->ev.name[e]);
    b->worked |= kind == RP_KIND_CPU_OP || rp_kind_is_device_work(kind);
    if (kind == RP_KIND_CPU_OP || kind == RP_KIND_ANNOTATION || kind == RP_KIND_PYTHON) {
        b->trained = b->trained || names_training(name);
        b->saved = b->saved || names_checkpoint(name);
    }
}

/* Adds the time of an event to that in steps, and to the total. */
static void add_time(struct outside_ctx *c, rp_event e)
{
    const struct rp_trace *t = c->t;
    bool device = rp_kind_is_device_work(t->ev.kind[e]);
    double ns = (double)t->ev.dur_ns[e];
    size_t i;

    if ((!device && t->ev.kind[e] != RP_KIND_CPU_OP) || t->ev.dur_ns[e] < 0)
        return;
    RP_LOWER_BOUND(i, t->nsteps, c->steps[i].begin_ns <= t->ev.ts_ns[e]);
    if (!i)
        return;
    *(device ? &c->all_ns : &c->op_all_ns) += ns;
    if (t->ev.ts_ns[e] < c->steps[i - 1].end_ns)
        *(device ? &c->inside_ns : &c->op_inside_ns) += ns;
}

static enum rp_break kind_of(const struct break_work *b)
{
    if (b->saved)
        return RP_BREAK_CHECKPOINT;
    if (!b->worked)
        return RP_BREAK_PAUSE;
    return b->trained ? RP_BREAK_OTHER : RP_BREAK_EVALUATION;
}

/* The common part of marks: "train_step" for "train_step 3" and "train_step 4". */
static const char *common_mark(const struct rp_trace *t, struct rp_arena *arena)
{
    const char *first = rp_trace_str(t, t->steps[0].name);
    size_t n = strlen(first);

    for (uint32_t i = 1; i < t->nsteps; i++) {
        const char *name = rp_trace_str(t, t->steps[i].name);
        size_t same = 0;

        while (same < n && name[same] == first[same])
            same++;
        n = same;
    }
    if (n < strlen(first))
        while (n && (isdigit((unsigned char)first[n - 1]) || strchr(" #:_-=.[(", first[n - 1])))
            n--;
    return rp_arena_copy(arena, first, n);
}

static void measure_steps(struct outside_ctx *c, struct rp_outside *out)
{
    const struct rp_trace *t = c->t;

    for (uint32_t i = 0; i < t->nsteps; i++) {
        out->without_detail += !!(t->steps[i].flags & RP_STEP_NO_DETAIL);
        if (t->steps[i].flags & RP_STEP_WARM_UP) {
            out->warm_ups++;
            rp_ns_add(&out->warm_up_ns, rp_ns_between(c->steps[i].begin_ns, c->steps[i].end_ns));
        } else if (!(t->steps[i].flags & RP_STEP_NO_DETAIL) &&
                   !rp_step_is_judged(t, i, c->steps[i])) {
            out->beside++;
            rp_ns_add(&out->beside_ns, rp_ns_between(c->steps[i].begin_ns, c->steps[i].end_ns));
        }
        if (i + 1 < t->nsteps && c->steps[i].end_ns < c->steps[i + 1].begin_ns)
            c->breaks[c->nbreaks++].time =
                (struct rp_interval){c->steps[i].end_ns, c->steps[i + 1].begin_ns};
    }
}

static void measure_edges(const struct outside_ctx *c, struct rp_outside *out)
{
    const struct rp_totals *totals = &c->t->totals;
    const struct rp_interval *steps = c->steps;
    uint32_t n = c->t->nsteps;
    rp_event waited;
    bool unrecorded;

    if (totals->work_begin_ns >= totals->work_end_ns)
        return;
    if (c->t->steps[0].begin_ns > totals->work_begin_ns)
        out->before_ns = rp_ns_between(totals->work_begin_ns, c->t->steps[0].begin_ns);
    if (rp_previous_step_end(c->t, &waited, &unrecorded) != RP_NO_TS && unrecorded)
        out->unrecorded_ns = rp_ns_between(c->t->steps[0].begin_ns, steps[0].begin_ns);
    if (steps[n - 1].end_ns < totals->work_end_ns)
        out->after_ns = rp_ns_between(steps[n - 1].end_ns, totals->work_end_ns);
}

RP_ORDER(ascending, double, RP_COMPARE(*a, *b))

/* Reads the recorder's events on the device between steps, which are a counter
   (capture/cuda/step_events.c). */
static enum rp_code measure_on_device(const struct rp_trace *t, struct rp_arena *arena,
                                      struct rp_outside *out, struct rp_err *err)
{
    double *ms = RP_ARENA_NEW(arena, double, t->totals.count[RP_KIND_COUNTER] + 1);
    struct rp_arg_key key;
    struct rp_arg arg;
    size_t n = 0;

    RP_TRY(rp_arena_check(arena, "measuring steps", err));
    RP_TRY(rp_arg_key_init(&key, t, "value", err));
    for (rp_event e = 0; e < t->ev.n; e++)
        if (t->ev.kind[e] == RP_KIND_COUNTER &&
            !strcmp(rp_trace_str(t, t->ev.name[e]), "step on the device (ms)") &&
            rp_arg_key_find(&key, e, &arg) && arg.type == RP_ARG_F64)
            ms[n++] = arg.v.f;
    rp_arg_key_release(&key);
    if (!n)
        return RP_OK;
    qsort(ms, n, sizeof *ms, ascending);
    out->device_steps = (int64_t)n;
    out->device_ns = (int64_t)(ms[n / 2] * 1e6);
    return RP_OK;
}

enum rp_code rp_outside_measure(const struct rp_trace *trace, struct rp_arena *arena,
                                struct rp_outside *out, struct rp_err *err)
{
    struct outside_ctx c = {.t = trace};

    *out = (struct rp_outside){.nsteps = trace->nsteps};
    if (!trace->nsteps && trace->totals.work_begin_ns < trace->totals.work_end_ns) {
        /* Without steps: measures what lies around the device work. */
        struct rp_interval judged = rp_trace_judged_span(trace);

        if (trace->totals.work_begin_ns < judged.begin_ns)
            out->before_ns = rp_ns_between(trace->totals.work_begin_ns, judged.begin_ns);
        if (judged.end_ns < trace->totals.work_end_ns)
            out->after_ns = rp_ns_between(judged.end_ns, trace->totals.work_end_ns);
    }
    if (!trace->nsteps)
        return RP_OK;
    RP_TRY(rp_step_times(trace, arena, &c.steps, err));
    c.breaks = RP_ARENA_NEW(arena, struct break_work, trace->nsteps + 1);
    RP_TRY(rp_arena_check(arena, "measuring steps", err));
    measure_steps(&c, out);
    measure_edges(&c, out);
    if (out->without_detail)
        RP_TRY(measure_on_device(trace, arena, out, err));
    for (rp_event e = 0; e < trace->ev.n; e++) {
        if (trace->ev.ts_ns[e] == RP_NO_TS)
            continue;
        add_time(&c, e);
        if (c.nbreaks)
            look_at(&c, e);
    }
    for (size_t i = 0; i < c.nbreaks; i++) {
        enum rp_break kind = kind_of(&c.breaks[i]);

        out->breaks[kind]++;
        rp_ns_add(&out->break_ns[kind],
                  rp_ns_between(c.breaks[i].time.begin_ns, c.breaks[i].time.end_ns));
    }
    out->share = c.all_ns > 0      ? c.inside_ns / c.all_ns
                 : c.op_all_ns > 0 ? c.op_inside_ns / c.op_all_ns
                                   : 1;
    out->source = trace->steps[0].source;
    out->mark = common_mark(trace, arena);
    return rp_arena_check(arena, "measuring steps", err);
}

bool rp_outside_is_large(const struct rp_outside *o, const struct rp_trace *trace)
{
    const struct rp_totals *t = &trace->totals;
    int64_t sum =
        rp_ns_sum(rp_ns_sum(o->before_ns, o->after_ns), rp_ns_sum(o->warm_up_ns, o->unrecorded_ns));

    rp_ns_add(&sum, o->beside_ns);

    for (int k = 0; k < RP_BREAKS; k++)
        rp_ns_add(&sum, o->break_ns[k]);
    return (o->without_detail || sum > rp_ns_between(t->work_begin_ns, t->work_end_ns) / 10);
}

#define SAID 50
RP_DECISION(
    SAID, "parts of what is judged",
    "time outside of the steps of less than one of so many is not named: it would not change what "
    "is said about the steps",
    "facts/little_time_outside_is_not_named");

static const char *and_outside(struct rp_arena *arena, const char *text, int64_t ns,
                               int64_t judged_ns, const char *what)
{
    if (ns <= judged_ns / SAID)
        return text;
    return rp_arena_textf(arena, "%s%s %s %s", text ? text : "not counted:", text ? "," : "",
                          rp_units_time(arena, ns), what);
}

const char *rp_outside_text(const struct rp_outside *o, int64_t judged_ns, struct rp_arena *arena)
{
    static const char *const words[RP_BREAKS][2] = {
#define BREAK_WORDS(name, one, several) {one, several},
        RP_BREAK_MAP(BREAK_WORDS)
#undef BREAK_WORDS
    };
    const char *text = and_outside(arena, NULL, o->before_ns, judged_ns,
                                   o->nsteps ? "before the first step (start-up)"
                                             : "before the first device work (start-up)");

    text = and_outside(arena, text, o->unrecorded_ns, judged_ns,
                       "in which the device still ran what was launched before the recording");
    text = and_outside(
        arena, text, o->warm_up_ns, judged_ns,
        rp_arena_textf(arena, "in the %sfirst %s (warm-up)",
                       o->source == RP_STEP_OPTIMIZER && !o->before_ns ? "start-up and the " : "",
                       o->warm_ups == 1 ? "step" : rp_units_count(arena, o->warm_ups, "step")));
    for (int k = 0; k < RP_BREAKS; k++)
        text = and_outside(arena, text, o->break_ns[k], judged_ns,
                           rp_arena_textf(arena, "in %lld %s between steps",
                                          (long long)o->breaks[k], words[k][o->breaks[k] != 1]));
    text = and_outside(arena, text, o->beside_ns, judged_ns,
                       rp_arena_textf(arena, "in %s before or after all recorded device work",
                                      rp_units_count(arena, o->beside, "step")));
    return and_outside(arena, text, o->after_ns, judged_ns,
                       o->nsteps ? "after the last step"
                                 : "after the last device work (the end of the program)");
}

const char *rp_outside_steps_text(const struct rp_outside *o, bool on_device,
                                  struct rp_arena *arena)
{
    static const char *const finders[RP_STEP_SOURCES] = {[RP_STEP_REPETITION] =
                                                             "a sequence of work that repeats",
                                                         [RP_STEP_FORWARD] = "forward passes",
                                                         [RP_STEP_BACKWARD] = "backward passes"};

    if (!o->nsteps || o->source == RP_STEP_PROFILER || o->source == RP_STEP_RUN_ID ||
        o->source == RP_STEP_SESSION || o->source == RP_STEP_MARKS)
        return NULL;
    const char *by = finders[o->source] ? finders[o->source] : *o->mark ? o->mark : "annotations";
    return rp_arena_textf(arena, "%lld, by %.60s, %.0f %% of the %s from the first one on",
                          (long long)o->nsteps, by, 100 * o->share,
                          on_device ? "device time" : "operators' time");
}

/* ------------------------------------------------------------------ what is judged */

/* Whether the user chose the steps that were recorded (by a schedule of torch.profiler, or of a
   server), so that only these and their work are in the trace, unless the device was not recorded
   in some of them. Runs of a program of XLA and sessions are only parts of a recording. */
static bool is_chosen(const struct rp_trace *t, uint32_t source)
{
    return (source == RP_STEP_PROFILER || source == RP_STEP_MARKS) && !rp_trace_is_ours(t);
}

enum rp_code rp_judged_find(const struct rp_trace *trace, const struct rp_scope *scope,
                            struct rp_arena *arena, struct rp_judged *out, struct rp_err *err)
{
    *out = (struct rp_judged){0};
    if (scope && scope->limited)
        return RP_OK;
    RP_TRY(rp_outside_measure(trace, arena, &out->outside, err));
    if (trace->nsteps && is_chosen(trace, trace->steps[0].source) && !out->outside.beside)
        return RP_OK;
    return rp_outside_is_large(&out->outside, trace)
               ? rp_trace_segments(trace, arena, &out->segments, err)
               : RP_OK;
}

enum rp_code rp_judged_scope(const struct rp_trace *trace, struct rp_scope *scope,
                             struct rp_arena *arena, const char **not_counted, struct rp_err *err)
{
    struct rp_judged judged;

    *not_counted = NULL;
    if (!rp_trace_is_ours(trace))
        return RP_OK;
    RP_TRY(rp_judged_find(trace, scope, arena, &judged, err));
    *not_counted = rp_judged_text(&judged, arena);
    scope->njudged = judged.segments.n;
    scope->judged = judged.segments.at;
    return RP_OK;
}

bool rp_judged_has(const struct rp_judged *judged, int64_t ts_ns)
{
    const struct rp_segments *s = &judged->segments;
    size_t i;

    RP_LOWER_BOUND(i, s->n, s->at[i].begin_ns <= ts_ns);
    return !s->n || (i && ts_ns < s->at[i - 1].end_ns);
}

void rp_judged_keep_calls(const struct rp_judged *judged, const struct rp_trace *trace,
                          struct rp_host_calls *calls)
{
    size_t i, n = 0;

    for (i = 0; i < calls->slow.n; i++)
        if (rp_judged_has(judged, trace->ev.ts_ns[calls->slow.at[i].event]))
            calls->slow.at[n++] = calls->slow.at[i];
    calls->slow.n = n;
}

const char *rp_judged_words(const struct rp_judged *judged)
{
    if (!judged->segments.n)
        return "";
    return judged->outside.nsteps ? " in the judged steps" : " " RP_WORDS_DEVICE_WINDOW;
}

const char *rp_judged_text(const struct rp_judged *judged, struct rp_arena *arena)
{
    const struct rp_outside *o = &judged->outside;
    int64_t sum = 0;

    if (!judged->segments.n)
        return NULL;
    for (size_t i = 0; i < judged->segments.n; i++)
        rp_ns_add(&sum,
                  rp_ns_between(judged->segments.at[i].begin_ns, judged->segments.at[i].end_ns));
    const char *text = rp_outside_text(o, sum, arena);
    if (!o->without_detail)
        return text;
    return rp_arena_textf(arena, "%s%s %lld of %lld steps, recorded without detail",
                          text ? text : "not counted:", text ? "," : "",
                          (long long)o->without_detail, (long long)o->nsteps);
}
