/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds steps: the kinds of evidence are tried from the strongest to the weakest, and all steps of
 * a trace come from one of them. Marks of a profiler are always used. Steps by any other evidence
 * must contain a good part of the recorded work, because names that look like marks also occur in
 * start-up and in parts of a step. docs/definitions.md has the rules.
 */
#include "trace/finish/steps.h"
#include "base/decides.h"

#include "base/filled.h"
#include "base/order.h"

#include "trace/finish/finish.h"

#include <stdlib.h>
#include <string.h>

#define PROFILER_STEP "ProfilerStep#"

RP_ORDER(by_time, struct rp_step, RP_UP(begin_ns), RP_UP(end_ns), RP_UP(name), RP_UP(mark))

/* Sorts by time, and keeps each (name, begin, end) once, because old files mark a step in two
   categories. */
static void put_in_order(struct rp_builder *b)
{
    struct rp_step *step = b->steps.at;
    size_t i, kept = 0;

    if (b->steps.n == 0)
        return;
    qsort(step, b->steps.n, sizeof *step, by_time);
    for (i = 0; i < b->steps.n; i++)
        if (!kept || step[kept - 1].name != step[i].name ||
            step[kept - 1].begin_ns != step[i].begin_ns ||
            step[kept - 1].end_ns != step[i].end_ns || step[i].mark == RP_NONE)
            step[kept++] = step[i];
    b->steps.n = kept;
}

/* The names that servers use, which also describe the profiler's steps. */
static enum rp_code steps_by_marks(struct rp_builder *b, struct rp_err *err)
{
    struct rp_mark_view v = rp_mark_view_of_builder(b);
    rp_step_vec marks = {0};
    enum rp_code code = rp_steps_find_marks(&v, NULL, &marks, err);

    put_in_order(b);
    if (code == RP_OK && marks.n && !rp_steps_describe(b->steps.at, b->steps.n, &marks)) {
        b->steps.n = 0;
        for (size_t i = 0; i < marks.n && code == RP_OK; i++)
            code = rp_vec_push(&b->steps, marks.at[i], err);
    }
    rp_vec_release(&marks);
    return code;
}

enum work { WORK_DEVICE, WORK_EXECUTABLE, WORK_HOST, WORKS };

/* The kind of work of an event; WORKS: none. Calls of executables also compile, so if the
   operations of executables on the host are recorded, these are their work. */
static enum work work_of(const struct rp_builder *b, rp_event e, rp_str hlo_op)
{
    struct rp_arg arg;

    if (rp_kind_is_device_work(b->ev.kind.at[e]))
        return WORK_DEVICE;
    if (b->ev.kind.at[e] != RP_KIND_CPU_OP)
        return WORKS;
    return hlo_op != RP_NONE && rp_args_find(&b->trace->args, b->ev.shape.at[e],
                                             b->ev.arg_row.at[e], hlo_op, &arg)
               ? WORK_EXECUTABLE
               : WORK_HOST;
}

/* The share (0 to 1) of the work from that time on that lies in the steps, for the first kind of
   work that exists. */
static double covered_share(const struct rp_builder *b, int64_t from_ns)
{
    const struct rp_step *steps = b->steps.at;
    double inside[WORKS + 1] = {0}, all[WORKS + 1] = {0};
    rp_str hlo_op = rp_build_find_str(b, "hlo_op");
    size_t i;

    for (rp_event e = 0; e < b->ev.n; e++) {
        enum work work = work_of(b, e, hlo_op);
        int64_t at = b->ev.ts_ns.at[e];

        if (work == WORKS || !rp_step_is_span(b, e) || at < from_ns)
            continue;
        RP_LOWER_BOUND(i, b->steps.n, steps[i].begin_ns <= at);
        all[work] += (double)b->ev.dur_ns.at[e];
        if (i && (at < steps[i - 1].end_ns ||
                  (i < b->steps.n && !(steps[i - 1].flags & RP_STEP_BREAK_AFTER))))
            inside[work] += (double)b->ev.dur_ns.at[e];
    }
    for (i = 0; i < WORKS; i++)
        if (all[i] > 0)
            return inside[i] / all[i];
    return 1;
}

/* Whether the recording has events that start in (begin, end). */
static bool is_recorded(const struct rp_builder *b, int64_t begin_ns, int64_t end_ns)
{
    for (rp_event e = 0; e < b->ev.n; e++)
        if (b->ev.ts_ns.at[e] > begin_ns && b->ev.ts_ns.at[e] < end_ns)
            return true;
    return false;
}

#define WINDOWS_MOST 64
RP_LIMIT(WINDOWS_MOST, "breaks",
         "each costs a look at all events; time between further steps belongs to the one before");

/* Whether the profiler did not record the steps between these two, by its own count. */
static bool skips_steps(const struct rp_step *a, const struct rp_step *b)
{
    return a->source == RP_STEP_PROFILER && a->number < INT64_MAX && b->number > a->number + 1;
}

/* The profiler begins a step whenever one ends, and so also when recording is about to end. Then
   the rest is not a step, but what happened until the end. It has less than half of the work of
   each other step, or if there is only one other, which may have had more to do, less than a
   tenth. */
static enum rp_code flag_cut_off(struct rp_builder *b, struct rp_err *err)
{
    struct rp_step *s = b->steps.at, *last = s + b->steps.n - 1;
    size_t i, n = b->steps.n, least = SIZE_MAX, times = n > 2 ? 2 : 10;
    int64_t shortest = INT64_MAX;
    RP_VEC(size_t) calls = {0};

    RP_TRY(rp_vec_zeros(&calls, n, err));
    for (rp_event e = 0; e < b->ev.n; e++) {
        if (b->ev.kind.at[e] != RP_KIND_CPU_OP && b->ev.kind.at[e] != RP_KIND_RUNTIME)
            continue;
        RP_LOWER_BOUND(i, n, s[i].begin_ns <= b->ev.ts_ns.at[e]);
        if (i)
            calls.at[i - 1] += b->ev.ts_ns.at[e] < s[i - 1].end_ns;
    }
    for (i = 0; i + 1 < n; i++) {
        int64_t dur = rp_step_between(s[i].begin_ns, s[i].end_ns);

        least = calls.at[i] < least ? calls.at[i] : least;
        shortest = dur < shortest ? dur : shortest;
    }
    if (calls.at[n - 1] < least / times &&
        rp_step_between(last->begin_ns, last->end_ns) < shortest / (int64_t)times)
        last->flags |= RP_STEP_CUT_OFF;
    rp_vec_release(&calls);
    return RP_OK;
}

void rp_steps_flag_warm_up(struct rp_builder *b, int64_t usual_ns)
{
    struct rp_step *s = b->steps.at;

    for (size_t i = 0;
         i < b->steps.n / 2 && rp_step_between(s[i].begin_ns, s[i].end_ns) / 2 > usual_ns; i++)
        s[i].flags |= RP_STEP_WARM_UP;
}

typedef enum rp_code step_finder(struct rp_builder *b, struct rp_err *err);

/* Steps that a finder found, and the share of the work that is in them. */
struct found {
    rp_step_vec steps;
    double share;
};

#define LITTLE 0.25
RP_DECISION(LITTLE, "of the work that others cover",
            "steps that cover less are those of a part of the program, or of its start-up",
            "trace/steps_cover_a_quarter_of_what_others_do");

static enum rp_code look_for(struct rp_builder *b, step_finder *find, struct found *out,
                             struct rp_err *err)
{
    bool layers = false;

    b->steps.n = 0;
    RP_TRY(find(b, err));
    put_in_order(b);
    if (find == rp_steps_by_forward || find == rp_steps_by_repetition)
        RP_TRY(rp_steps_are_layers(b, &layers, err));
    /* Passes that contain several lookups are not steps but parts of one. */
    if (layers || (find == rp_steps_by_forward && b->steps.n &&
                   covered_share(b, b->steps.at[0].begin_ns) < LITTLE))
        b->steps.n = 0;
    /* An optimizer always belongs to a step, whereas work before the loop, such as trying compiled
       kernels, may be more than that of all steps. */
    if (b->steps.n)
        out->share =
            covered_share(b, find == rp_steps_by_optimizer ? b->steps.at[0].begin_ns : INT64_MIN);
    out->steps.at = b->steps.at;
    out->steps.n = b->steps.n;
    out->steps.cap = b->steps.cap;
    b->steps.at = NULL;
    b->steps.n = b->steps.cap = 0;
    return RP_OK;
}

/* Chooses the strongest evidence whose steps contain most of the work, after trying all; a
   repeating sequence only if the others contain less than a tenth. Steps in which far less happens
   than in others are rejected: they are marks of a part of a step, or of something in start-up. */
static enum rp_code choose_steps(struct rp_builder *b, struct rp_err *err)
{
    static step_finder *const finders[] = {
        steps_by_marks,      rp_steps_by_annotation, rp_steps_by_optimizer, rp_steps_by_executable,
        rp_steps_by_loader,  rp_steps_by_replay,     rp_steps_by_backward,  rp_steps_by_compiled,
        rp_steps_by_forward, rp_steps_by_repetition};
    enum { FINDERS = sizeof finders / sizeof finders[0] };
    struct found found[FINDERS] = {0};
    enum rp_code code = RP_OK;
    double most = 0;
    size_t i, n;

    for (n = 0; n < FINDERS && code == RP_OK && most * (n + 1 < FINDERS ? 2 : 10) < 1; n++) {
        code = look_for(b, finders[n], &found[n], err);
        most = found[n].share > most ? found[n].share : most;
    }
    for (i = 0; i < n; i++)
        if (code == RP_OK && !b->steps.n && found[i].steps.n && found[i].share >= LITTLE * most) {
            b->steps.at = found[i].steps.at;
            b->steps.n = found[i].steps.n;
            b->steps.cap = found[i].steps.cap;
        } else {
            rp_vec_release(&found[i].steps);
        }
    return code;
}

#define MISSING_ONE_IN 50
RP_DECISION(
    MISSING_ONE_IN, "parts of a step",
    "less than one of them may be recorded without detail: steps differ by more than what is "
    "then missing",
    "trace/a_fiftieth_of_a_step_may_be_missing");

/* Adds how much of each step lies in the span. */
static void add_overlap(const struct rp_builder *b, rp_event span, int64_t *covered_ns)
{
    int64_t begin = b->ev.ts_ns.at[span], end = rp_build_end_ns(b, span);
    size_t i;

    RP_LOWER_BOUND(i, b->steps.n, b->steps.at[i].begin_ns <= begin);
    for (i -= i > 0; i < b->steps.n && b->steps.at[i].begin_ns < end; i++) {
        const struct rp_step *s = &b->steps.at[i];
        int64_t from = s->begin_ns > begin ? s->begin_ns : begin;
        int64_t to = s->end_ns < end ? s->end_ns : end;

        if (from < to && to < s->end_ns)
            covered_ns[i] = INT64_MAX / 2; /* detail begins in this step, which delays it */
        else if (from < to && covered_ns[i] < INT64_MAX / 2)
            covered_ns[i] += rp_step_between(from, to);
    }
}

/* Flags the steps that lie mostly in spans without detail; returns how many are left, not counting
   the first, which is often a warm-up. */
static size_t flag_covered(struct rp_builder *b, const int64_t *covered_ns, int64_t one_in,
                           uint8_t flag)
{
    size_t left = 0;

    for (size_t i = 0; i < b->steps.n; i++) {
        struct rp_step *s = &b->steps.at[i];

        if (covered_ns[i] > rp_step_between(s->begin_ns, s->end_ns) / one_in)
            s->flags |= flag;
        else
            left += i > 0;
    }
    return left;
}

/* Flags steps in spans where our recorder recorded no detail, and those in which such a span ends.
   If a span begins in a step, the work at its end is missing, which would look like idle time; such
   a step counts only if no step is complete, and more than half of it was recorded. */
static enum rp_code flag_without_detail(struct rp_builder *b, struct rp_err *err)
{
    rp_str name = rp_build_find_str(b, "without detail");
    RP_VEC(int64_t) covered = {0};

    if (name == RP_NONE || !b->steps.n)
        return RP_OK;
    RP_TRY(rp_vec_zeros(&covered, b->steps.n, err));
    for (rp_event e = 0; e < b->ev.n; e++)
        if (b->ev.name.at[e] == name && rp_step_is_span(b, e))
            add_overlap(b, e, covered.at);
    bool complete = flag_covered(b, covered.at, MISSING_ONE_IN, 0) > 0;
    flag_covered(b, covered.at, complete ? MISSING_ONE_IN : 2, RP_STEP_NO_DETAIL);
    rp_vec_release(&covered);
    return RP_OK;
}

enum rp_code rp_pass_steps(struct rp_builder *b, struct rp_err *err)
{
    bool cut;

    RP_TRY(rp_steps_by_cut(b, &cut, err));
    if (!cut) {
        /* "ProfilerStep#12" in a category that marks steps. */
        size_t prefix = sizeof PROFILER_STEP - 1;

        for (rp_event e = 0; e < b->ev.n; e++) {
            if (!(rp_build_origin_of(b, e)->flags & RP_ORIGIN_MARKS_STEP) ||
                b->ev.ts_ns.at[e] == RP_NO_TS)
                continue;
            const char *name = rp_strtab_borrow(&b->str, b->ev.name.at[e]);
            if (!strncmp(name, PROFILER_STEP, prefix))
                RP_TRY(rp_vec_push(
                    &b->steps,
                    rp_step_of_event(b, e, RP_STEP_PROFILER, strtoll(name + prefix, NULL, 10)),
                    err));
        }

        if (b->steps.n)
            RP_TRY(steps_by_marks(b, err));
        if (!b->steps.n)
            RP_TRY(rp_steps_by_run_id(b, err));
        if (!b->steps.n)
            RP_TRY(rp_steps_by_session(b, err));
        if (!b->steps.n)
            RP_TRY(choose_steps(b, err));
        if (!b->steps.n)
            RP_TRY(rp_steps_by_runs(b, err));
    }
    put_in_order(b);
    struct rp_mark_view v = rp_mark_view_of_builder(b);
    rp_steps_end_work(&v, b->steps.at, b->steps.n);
    if (!cut && b->steps.n && rp_step_source_is_mark(b->steps.at[0].source)) {
        /* A profiler with a schedule records a few steps, pauses, and records again. If it does not
           count steps, a pause between two windows is recognised because nothing was recorded in it
           and no step is as long. */
        struct rp_step *s = b->steps.at;
        int64_t longest = 0;
        size_t i, looks = 0;

        for (i = 0; i < b->steps.n; i++)
            if (rp_step_between(s[i].begin_ns, s[i].end_ns) > longest)
                longest = rp_step_between(s[i].begin_ns, s[i].end_ns);
        for (i = 0; i + 1 < b->steps.n; i++) {
            int64_t end = s[i].work_end_ns > s[i].end_ns ? s[i].work_end_ns : s[i].end_ns;

            if (skips_steps(&s[i], &s[i + 1]))
                s[i].flags |= RP_STEP_BREAK_AFTER;
            else if (looks < WINDOWS_MOST && rp_step_between(end, s[i + 1].begin_ns) > longest) {
                looks++;
                if (!is_recorded(b, end, s[i + 1].begin_ns))
                    s[i].flags |= RP_STEP_BREAK_AFTER;
            }
        }
    }
    if (!cut && b->steps.n > 1 && b->steps.at[0].source == RP_STEP_PROFILER)
        RP_TRY(flag_cut_off(b, err));
    if (!cut)
        RP_TRY(flag_without_detail(b, err));
    return RP_OK;
}
