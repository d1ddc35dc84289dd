/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds steps by a name that the user gives (--step-name): ranges of the host, or marks without a
 * duration, whose names begin with it, on the thread that has most of them, without nested ones.
 * Other evidence does not count.
 *
 *     range     a step, with what follows until the next one
 *     mark      a step begins; the last one ends the step before it
 *
 * A pause between two that is longer than any of them is something else (an evaluation), and
 * belongs to no step; but if most pauses are that long, the ranges are only a part of each step.
 */
#include "trace/finish/steps.h"

#include "base/filled.h"
#include "trace/step_marks.h"
#include "trace/trace_store.h"

struct named {
    const struct rp_mark_view *v;
    const char *name;
    size_t len;
    RP_VEC(uint8_t) judged; /* by string: 1 begins with the name, 2 does not, 0: not examined */
};

static bool is_named(struct named *w, rp_event e)
{
    const struct rp_mark_view *v = w->v;
    uint8_t kind = v->kind[e], *judged = &w->judged.at[v->name[e]];

    if (*judged == 2 || v->ts_ns[e] == RP_NO_TS || (v->flags[e] & RP_EVENT_ASYNC) ||
        rp_kind_is_device_work(kind) || kind == RP_KIND_METADATA || kind == RP_KIND_COUNTER ||
        v->tracks[v->track[e]].kind == RP_TRACK_STREAM ||
        (v->dur_ns[e] < 0 && kind != RP_KIND_INSTANT))
        return false;
    if (!*judged)
        *judged = strncmp(rp_mark_view_text(v, v->name[e]), w->name, w->len) ? 2 : 1;
    return *judged == 1;
}

/* The track with most of them, or RP_NONE. */
static uint32_t busiest_track(struct named *w)
{
    const struct rp_mark_view *v = w->v;
    uint32_t best = RP_NONE, t;
    size_t most = 0;

    for (t = 0; t < v->ntracks; t++) {
        size_t n = 0;

        for (rp_event e = v->tracks[t].first; e < v->tracks[t].end; e++)
            n += is_named(w, e);
        if (n > most) {
            most = n;
            best = t;
        }
    }
    return best;
}

static enum rp_code list_steps(struct named *w, rp_step_vec *out, struct rp_err *err)
{
    uint32_t track = busiest_track(w);

    if (track == RP_NONE)
        return RP_OK;
    for (rp_event e = w->v->tracks[track].first; e < w->v->tracks[track].end; e++)
        if (is_named(w, e) && (!out->n || w->v->ts_ns[e] >= out->at[out->n - 1].end_ns)) {
            size_t index = out->n;
            const struct rp_mark_view *v = w->v;
            const char *text = rp_mark_view_text(v, v->name[e]);
            struct rp_step step = rp_step_from(RP_STEP_ANNOTATION);
            bool numbered;

            rp_steps_base_length(text, strlen(text), &step.number, &numbered);
            step.number = numbered ? step.number : (int64_t)index;
            step.name = v->name[e];
            step.begin_ns = v->ts_ns[e];
            step.end_ns = v->dur_ns[e] < 0 ? v->ts_ns[e] : rp_mark_view_end_ns(v, e);
            step.mark = e;

            RP_TRY(rp_vec_push(out, step, err));
        }
    for (size_t i = 0; i + 1 < out->n; i++)
        if (out->at[i].end_ns == out->at[i].begin_ns)
            out->at[i].end_ns = out->at[i + 1].begin_ns;
    if (out->n > 1 && out->at[out->n - 1].end_ns == out->at[out->n - 1].begin_ns)
        out->n--;
    return RP_OK;
}

/* Whether the pause after a step is longer than the longest step. */
static bool is_pause(const struct rp_step *step, int64_t longest_ns)
{
    return rp_step_between(step[0].end_ns, step[1].begin_ns) > longest_ns;
}

enum rp_code rp_trace_name_steps(struct rp_trace *trace, const char *name, bool *found,
                                 struct rp_err *err)
{
    struct named w = {.name = name, .len = strlen(name)};
    rp_step_vec steps = {0};

    RP_TRY(rp_trace_require(trace, RP_NEED_EVENTS | RP_NEED_LINKS, err));
    struct rp_mark_view v = rp_mark_view_of_trace(trace);
    w.v = &v;
    enum rp_code code = rp_vec_zeros(&w.judged, v.nstrings, err);
    if (code == RP_OK)
        code = list_steps(&w, &steps, err);
    *found = code == RP_OK && steps.n;
    if (*found) {
        /* A pause between two steps that is longer than any step is a break, unless most pauses are
           that long. In the order of time. */
        struct rp_step *step = steps.at;
        size_t n = steps.n;
        int64_t longest = 0;
        size_t i, pauses = 0;

        for (i = 0; i < n; i++) {
            int64_t ns = rp_step_between(step[i].begin_ns, step[i].end_ns);

            longest = ns > longest ? ns : longest;
        }
        for (i = 0; i + 1 < n; i++)
            pauses += is_pause(&step[i], longest);
        for (i = 0; i + 1 < n && 2 * pauses < n; i++)
            if (is_pause(&step[i], longest))
                step[i].flags |= RP_STEP_BREAK_AFTER;

        rp_steps_end_work(&v, steps.at, steps.n);
        trace->nsteps = (uint32_t)steps.n;
        code = rp_store_take(trace->store, &trace->steps, &steps, err);
        trace->nsteps = code == RP_OK ? trace->nsteps : 0;
    }
    rp_vec_release(&steps);
    rp_vec_release(&w.judged);
    return code;
}
