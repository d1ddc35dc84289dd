/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps: the kinds of evidence are tried from the strongest to the weakest, and the first that
 * finds steps is used, so that all steps of a trace have one source. The profiler's own marks come
 * first, then those of servers, which may also divide or describe the profiler's;
 * docs/definitions.md has the rules.
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

enum rp_code rp_pass_steps(struct rp_builder *b, struct rp_err *err)
{
    static enum rp_code (*const sources[])(struct rp_builder *, struct rp_err *) = {
        rp_steps_by_run_id, rp_steps_by_session, rp_steps_by_annotation, rp_steps_by_repetition};
    struct rp_mark_view v;
    size_t i;

    RP_TRY(rp_steps_by_profiler(b, err));
    RP_TRY(rp_steps_by_marks(b, err));
    for (i = 0; b->steps.n == 0 && i < sizeof sources / sizeof sources[0]; i++)
        RP_TRY(sources[i](b, err));
    put_in_order(b);
    v = rp_mark_view_of_builder(b);
    rp_steps_end_work(&v, b->steps.at, b->steps.n);
    return RP_OK;
}
