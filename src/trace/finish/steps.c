/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps: the kinds of evidence are tried from the strongest to the weakest, and all steps of a
 * trace come from one of them. What a profiler marks is taken as it is. Anything else must have a
 * good part of the recorded work in its steps: names that look like marks occur in start-up, too,
 * and in parts of a step. docs/definitions.md has the rules.
 */
#include "trace/finish/steps.h"

#include "base/order.h"

#include "trace/finish/finish.h"

#include <ctype.h>
#include <stdlib.h>

#define PROFILER_STEP "ProfilerStep#"

enum rp_code rp_steps_by_profiler(struct rp_builder *b, struct rp_err *err)
{
    size_t prefix = sizeof PROFILER_STEP - 1;
    rp_event e;

    for (e = 0; e < b->ev.n; e++) {
        const char *name;

        if (!(rp_build_origin_of(b, e)->flags & RP_ORIGIN_MARKS_STEP) ||
            b->ev.ts_ns.at[e] == RP_NO_TS)
            continue;
        name = rp_strtab_borrow(&b->str, b->ev.name.at[e]);
        if (!strncmp(name, PROFILER_STEP, prefix))
            RP_TRY(rp_vec_push(
                &b->steps,
                rp_step_of_event(b, e, RP_STEP_PROFILER, strtoll(name + prefix, NULL, 10)), err));
    }
    return RP_OK;
}

RP_ORDER(by_time, struct rp_step, RP_UP(begin_ns), RP_UP(end_ns), RP_UP(name), RP_UP(mark))

/* In time order, each (name, begin, end) once: old files mark a step in two categories. */
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

enum rp_code rp_steps_by_marks(struct rp_builder *b, struct rp_err *err)
{
    struct rp_mark_view v = rp_mark_view_of_builder(b);
    rp_step_vec marks = {0};
    enum rp_code code = rp_steps_find_marks(&v, NULL, &marks, err);
    size_t i;

    put_in_order(b);
    if (code == RP_OK && marks.n && !rp_steps_describe(b->steps.at, b->steps.n, &marks)) {
        b->steps.n = 0;
        for (i = 0; i < marks.n && code == RP_OK; i++)
            code = rp_vec_push(&b->steps, marks.at[i], err);
    }
    rp_vec_release(&marks);
    return code;
}

enum work { WORK_DEVICE, WORK_EXECUTABLE, WORK_HOST, WORKS };

/* The kind of work of an event; WORKS: none. Calls of executables compile, too: where the
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

/* How much of the recorded work lies in the steps, of the first kind that there is: 0 to 1. */
static double covered_share(const struct rp_builder *b)
{
    const struct rp_step *steps = b->steps.at;
    double inside[WORKS + 1] = {0}, all[WORKS + 1] = {0};
    rp_str hlo_op = rp_build_find_str(b, "hlo_op");
    rp_event e;
    size_t i;

    for (e = 0; e < b->ev.n; e++) {
        enum work work = work_of(b, e, hlo_op);
        int64_t at = b->ev.ts_ns.at[e];

        if (work == WORKS || !rp_step_is_span(b, e))
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

#define WINDOWS_MOST 64 /* breaks that are looked at: each costs a look at all events */

/* A profiler with a schedule records a few steps, pauses, and records again: between two windows no
   step is longer than the pause, and nothing was recorded. */
static void find_windows(struct rp_builder *b)
{
    struct rp_step *s = b->steps.at;
    int64_t longest = 0;
    size_t i, looks = 0;

    for (i = 0; i < b->steps.n; i++)
        if (rp_step_between(s[i].begin_ns, s[i].end_ns) > longest)
            longest = rp_step_between(s[i].begin_ns, s[i].end_ns);
    for (i = 0; i + 1 < b->steps.n && looks < WINDOWS_MOST; i++) {
        int64_t end = s[i].work_end_ns > s[i].end_ns ? s[i].work_end_ns : s[i].end_ns;

        if (rp_step_between(end, s[i + 1].begin_ns) <= longest)
            continue;
        looks++;
        if (!is_recorded(b, end, s[i + 1].begin_ns))
            s[i].flags |= RP_STEP_BREAK_AFTER;
    }
}

typedef enum rp_code step_finder(struct rp_builder *b, struct rp_err *err);

/* Steps that a finder found, and the share of the work that is in them. */
struct found {
    rp_step_vec steps;
    double share;
};

#define ENOUGH 0.5  /* of the work: weaker evidence is not looked for */
#define WEAK   0.1  /* of the work: a sequence that repeats is looked for, too */
#define LITTLE 0.25 /* of what others cover: they are steps, these are not */

static enum rp_code look_for(struct rp_builder *b, step_finder *find, struct found *out,
                             struct rp_err *err)
{
    b->steps.n = 0;
    RP_TRY(find(b, err));
    put_in_order(b);
    out->share = b->steps.n ? covered_share(b) : 0;
    out->steps.at = b->steps.at;
    out->steps.n = b->steps.n;
    out->steps.cap = b->steps.cap;
    b->steps.at = NULL;
    b->steps.n = b->steps.cap = 0;
    return RP_OK;
}

/* The strongest evidence, but not steps in which far less happens than in others: the marks of a
   part of a step, or of something in start-up. */
static enum rp_code choose_steps(struct rp_builder *b, struct rp_err *err)
{
    static step_finder *const finders[] = {
        rp_steps_by_marks,  rp_steps_by_annotation, rp_steps_by_optimizer, rp_steps_by_executable,
        rp_steps_by_loader, rp_steps_by_forward,    rp_steps_by_repetition};
    enum { FINDERS = sizeof finders / sizeof finders[0] };
    struct found found[FINDERS] = {0};
    enum rp_code code = RP_OK;
    double most = 0;
    size_t i, n;

    for (n = 0; n < FINDERS && code == RP_OK && most < (n + 1 < FINDERS ? ENOUGH : WEAK); n++) {
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

enum rp_code rp_pass_steps(struct rp_builder *b, struct rp_err *err)
{
    struct rp_mark_view v;

    RP_TRY(rp_steps_by_profiler(b, err));
    if (b->steps.n)
        RP_TRY(rp_steps_by_marks(b, err));
    if (!b->steps.n)
        RP_TRY(rp_steps_by_run_id(b, err));
    if (!b->steps.n)
        RP_TRY(rp_steps_by_session(b, err));
    if (!b->steps.n)
        RP_TRY(choose_steps(b, err));
    if (!b->steps.n)
        RP_TRY(rp_steps_by_runs(b, err));
    put_in_order(b);
    v = rp_mark_view_of_builder(b);
    rp_steps_end_work(&v, b->steps.at, b->steps.n);
    if (b->steps.n && rp_step_source_is_mark(b->steps.at[0].source))
        find_windows(b);
    return RP_OK;
}
