/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds steps as XLA and TensorFlow record them. These are tried in order:
 *   a thread "Steps"          each span is a step; of several such threads the one with most spans,
 *                             then that whose spans take longest: the main device's
 *   the argument step_num     each event that has it is a step (a StepTraceAnnotation)
 *   the argument group_id     a step is from the first to the last event of a group
 *   a thread "XLA Modules"    each run of the module that takes most time, if it runs twice
 *   the argument run_id       as group_id; weak: each executable that runs has one
 * Numbers may be written as text.
 */
#include "base/filled.h"
#include "trace/build/dense_ids.h"
#include "trace/finish/steps.h"

#include <errno.h>
#include <stdlib.h>

static bool number_of_text(const char *text, int64_t *number)
{
    char *end;

    errno = 0;
    *number = strtoll(text, &end, 10);
    return end != text && !*end && !errno;
}

static bool number_of_arg(const struct rp_builder *b, rp_event e, rp_str key, int64_t *number)
{
    struct rp_arg arg;

    if (!rp_args_find(&b->trace->args, b->ev.shape.at[e], b->ev.arg_row.at[e], key, &arg))
        return false;
    if (arg.type == RP_ARG_I64) {
        *number = arg.v.i;
        return true;
    }
    return arg.type == RP_ARG_STR && number_of_text(rp_strtab_borrow(&b->str, arg.v.s), number);
}

/* The track of that name with the most spans (if equal, with the longest total), or NULL. */
static const struct rp_track_info *track_named(const struct rp_builder *b, const char *name)
{
    const struct rp_track_info *best = NULL;
    rp_str id = rp_build_find_str(b, name);
    double longest = 0, length;
    uint32_t most = 0, n;
    rp_event e;

    for (size_t t = 0; id != RP_NONE && t < b->tracks.n; t++) {
        const struct rp_track_info *track = &b->tracks.at[t];

        if (track->name != id)
            continue;
        for (e = track->first, n = 0, length = 0; e < track->end; e++) {
            n += rp_step_is_span(b, e);
            length += rp_step_is_span(b, e) ? (double)b->ev.dur_ns.at[e] : 0;
        }
        if (n > most || (n == most && length > longest)) {
            most = n;
            longest = length;
            best = track;
        }
    }
    return best;
}

/* Takes steps from the track that has most of them, without nested ones. */
static enum rp_code by_step_num(struct rp_builder *b, struct rp_err *err)
{
    rp_str key = rp_build_find_str(b, "step_num");
    uint32_t best = RP_NONE, most = 0, n, t;
    int64_t number, until = INT64_MIN;
    rp_event e;

    if (key == RP_NONE)
        return RP_OK;
    for (t = 0; t < b->tracks.n; t++) {
        for (e = b->tracks.at[t].first, n = 0; e < b->tracks.at[t].end; e++)
            n += rp_step_is_span(b, e) && number_of_arg(b, e, key, &number);
        if (n > most) {
            most = n;
            best = t;
        }
    }
    for (e = best == RP_NONE ? 0 : b->tracks.at[best].first;
         best != RP_NONE && e < b->tracks.at[best].end; e++) {
        if (!rp_step_is_span(b, e) || b->ev.ts_ns.at[e] < until ||
            !number_of_arg(b, e, key, &number))
            continue;
        RP_TRY(rp_vec_push(&b->steps, rp_step_of_event(b, e, RP_STEP_RUN_ID, number), err));
        until = rp_build_end_ns(b, e);
    }
    return RP_OK;
}

/* Begin and end of each group of events with the same number in an argument. */
static enum rp_code by_group(struct rp_builder *b, const char *key_text, struct rp_err *err)
{
    rp_str key = rp_build_find_str(b, key_text);
    RP_VEC(uint32_t) dense = {0};
    rp_row_vec event = {0};
    rp_id_vec id = {0};
    enum rp_code code = RP_OK;
    uint32_t n = 0, i;
    int64_t number;

    for (rp_event e = 0; key != RP_NONE && code == RP_OK && e < b->ev.n; e++)
        if (rp_step_is_span(b, e) && number_of_arg(b, e, key, &number)) {
            code = rp_vec_push(&id, number, err);
            if (code == RP_OK)
                code = rp_vec_push(&event, e, err);
        }
    if (code == RP_OK)
        code = rp_vec_reserve(&dense, id.n + 1, err);
    if (code == RP_OK)
        code = rp_dense_ids(id.at, id.n, dense.at, &n, err);
    if (code == RP_OK && n > 1)
        code = rp_vec_reserve(&b->steps, n, err);
    for (i = 0; code == RP_OK && n > 1 && i < id.n; i++) {
        struct rp_step one = rp_step_of_event(b, event.at[i], RP_STEP_RUN_ID, id.at[i]), *step;

        step = &b->steps.at[dense.at[i]];
        if (dense.at[i] == b->steps.n) { /* numbers are assigned in order of appearance */
            *step = one;
            step->name = key;
            step->mark = RP_NONE;
            b->steps.n++;
        }
        step->flags &= one.flags; /* on the device: all of them */
        step->begin_ns = one.begin_ns < step->begin_ns ? one.begin_ns : step->begin_ns;
        step->end_ns = one.end_ns > step->end_ns ? one.end_ns : step->end_ns;
    }
    rp_vec_release(&dense);
    rp_vec_release(&event);
    rp_vec_release(&id);
    return code;
}

/* The name whose spans take most time on the track, and how often it occurs. */
static enum rp_code main_name(const struct rp_builder *b, const struct rp_track_info *track,
                              rp_str *name, uint32_t *times, struct rp_err *err)
{
    struct spans {
        int64_t ns;
        uint32_t count;
    };
    RP_VEC(struct spans) of = {0};

    *name = 0;
    RP_TRY(rp_vec_zeros(&of, b->str.n, err));
    for (rp_event e = track->first; e < track->end; e++)
        if (rp_step_is_span(b, e)) {
            struct spans *mine = &of.at[b->ev.name.at[e]];

            mine->count++;
            if (__builtin_add_overflow(mine->ns, b->ev.dur_ns.at[e], &mine->ns))
                mine->ns = INT64_MAX;
            if (mine->ns >= of.at[*name].ns)
                *name = b->ev.name.at[e];
        }
    *times = of.at[*name].count;
    rp_vec_release(&of);
    return RP_OK;
}

static enum rp_code by_modules(struct rp_builder *b, struct rp_err *err)
{
    const struct rp_track_info *track = track_named(b, "XLA Modules");
    uint32_t times;
    rp_str name;

    if (!track)
        return RP_OK;
    RP_TRY(main_name(b, track, &name, &times, err));
    for (rp_event e = track->first; times > 1 && e < track->end; e++)
        if (rp_step_is_span(b, e) && b->ev.name.at[e] == name) {
            struct rp_step step = rp_step_of_event(b, e, RP_STEP_RUN_ID, (int64_t)b->steps.n);

            RP_TRY(rp_vec_push(&b->steps, step, err));
        }
    return RP_OK;
}

enum rp_code rp_steps_by_run_id(struct rp_builder *b, struct rp_err *err)
{
    const struct rp_track_info *track = track_named(b, "Steps");

    for (rp_event e = track ? track->first : 0; track && e < track->end; e++) {
        int64_t number;

        if (!rp_step_is_span(b, e))
            continue;
        if (!number_of_text(rp_strtab_borrow(&b->str, b->ev.name.at[e]), &number))
            number = (int64_t)b->steps.n;
        RP_TRY(rp_vec_push(&b->steps, rp_step_of_event(b, e, RP_STEP_RUN_ID, number), err));
    }
    if (b->steps.n == 0)
        RP_TRY(by_step_num(b, err));
    if (b->steps.n == 0)
        RP_TRY(by_group(b, "group_id", err));
    if (b->steps.n == 0)
        RP_TRY(by_modules(b, err));
    return RP_OK;
}

enum rp_code rp_steps_by_runs(struct rp_builder *b, struct rp_err *err)
{
    return by_group(b, "run_id", err);
}
