/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds steps that servers mark, by the table of names (trace/step_patterns.h). One mark is enough.
 * All are taken from the thread that has most, because other threads and the device repeat them. A
 * mark inside another adds its numbers to it:
 *
 *     execute_32_context_0(…)_generation_32(…)     one step: decode, 32 requests, 32 tokens
 *         step[DECODE bs=32]
 *
 * If the profiler marks steps, too, a server's mark says what the profiler's step does; but if
 * several lie in one step of the profiler, they are the steps.
 */
#include "trace/finish/steps.h"

#include "base/filled.h"
#include "trace/step_marks.h"
#include "trace/trace_store.h"

struct server_mark {
    rp_event event;
    struct rp_step_mark says;
};

struct server_marks {
    const struct rp_mark_view *v;
    const struct rp_step_table *table;
    RP_VEC(struct server_mark) marks; /* in canonical order: track by track */
    RP_VEC(uint8_t) judged;           /* by string: 1 marks a step, 2 does not, 0: not examined */
};

static bool is_range(const struct rp_mark_view *v, rp_event e)
{
    uint8_t kind = v->kind[e];

    return kind == RP_KIND_ANNOTATION || kind == RP_KIND_GPU_ANNOTATION ||
           (v->origins[v->origin[e]].flags & RP_ORIGIN_MARKS_STEP);
}

static enum rp_code collect_marks(struct server_marks *w, struct rp_err *err)
{
    const struct rp_mark_view *v = w->v;

    RP_TRY(rp_vec_zeros(&w->judged, v->nstrings, err));
    for (rp_event e = 0; e < v->nevents; e++) {
        uint8_t *judged = &w->judged.at[v->name[e]];
        struct server_mark mark = {.event = e};

        if (!is_range(v, e) || *judged == 2 || !rp_mark_view_is_span(v, e) ||
            (v->flags[e] & RP_EVENT_ASYNC))
            continue;
        *judged =
            rp_step_table_match(w->table, rp_mark_view_text(v, v->name[e]), &mark.says) ? 1 : 2;
        if (*judged == 1)
            RP_TRY(rp_vec_push(&w->marks, mark, err));
    }
    return RP_OK;
}

/* The marks of one thread, or of one stream of a device. */
struct marked_track {
    size_t first, n, users; /* users: number of marks by patterns of the user's */
    bool on_host;
};

/* The host's marks come before the device's; then those with most of the user's, then with most. */
static bool is_better(const struct marked_track *a, const struct marked_track *b)
{
    if (a->on_host != b->on_host)
        return a->on_host;
    return a->users != b->users ? a->users > b->users : a->n > b->n;
}

static struct marked_track choose_track(const struct server_marks *w)
{
    struct marked_track best = {0};
    size_t i, end;

    for (i = 0; i < w->marks.n; i = end) {
        rp_event e = w->marks.at[i].event;
        struct marked_track here = {.first = i, .on_host = w->v->kind[e] != RP_KIND_GPU_ANNOTATION};

        for (end = i; end < w->marks.n && w->v->track[w->marks.at[end].event] == w->v->track[e];
             end++)
            here.users += w->marks.at[end].says.users;
        here.n = end - i;
        if (is_better(&here, &best))
            best = here;
    }
    return best;
}

/* Whether a mark that is not an outer one begins in mark i of n. *next is the first such mark from
   i on: i only grows, so all calls together are linear. */
static bool has_inner(const struct server_marks *w, const struct server_mark *m, size_t i, size_t n,
                      size_t *next)
{
    for (*next = *next > i ? *next : i; *next < n && m[*next].says.outer;)
        (*next)++;
    return *next < n && w->v->ts_ns[m[*next].event] < rp_mark_view_end_ns(w->v, m[i].event);
}

static void add_says(struct rp_step *step, const struct rp_step_mark *says)
{
    if (step->requests == RP_NO_COUNT)
        step->requests = says->requests;
    if (step->tokens == RP_NO_COUNT)
        step->tokens = says->tokens;
    if (step->phase == RP_PHASE_NONE)
        step->phase = says->phase;
}

static enum rp_code make_steps(struct server_marks *w, rp_step_vec *out, struct rp_err *err)
{
    struct marked_track track = choose_track(w);
    const struct server_mark *m = track.n ? w->marks.at + track.first : NULL;
    size_t i, n = track.n, next = 0;

    for (i = 0; i < n; i++) {
        bool inside = out->n && w->v->ts_ns[m[i].event] < out->at[out->n - 1].end_ns;

        if (!inside && m[i].says.outer && has_inner(w, m, i, n, &next))
            continue;
        if (!inside) {
            /* The step of a mark, without what the mark says. */
            size_t index = out->n;
            struct rp_step step = rp_step_from(RP_STEP_MARKS);

            step.name = w->v->name[m[i].event];
            step.number = m[i].says.number == RP_NO_COUNT ? (int64_t)index : m[i].says.number;
            step.begin_ns = w->v->ts_ns[m[i].event];
            step.end_ns = rp_mark_view_end_ns(w->v, m[i].event);
            step.mark = m[i].event;
            step.flags = w->v->kind[m[i].event] == RP_KIND_GPU_ANNOTATION ? RP_STEP_ON_DEVICE : 0;

            RP_TRY(rp_vec_push(out, step, err));
        }
        add_says(&out->at[out->n - 1], &m[i].says);
    }
    return RP_OK;
}

enum rp_code rp_steps_find_marks(const struct rp_mark_view *v, const struct rp_step_table *table,
                                 rp_step_vec *out, struct rp_err *err)
{
    struct server_marks w = {.v = v, .table = table};
    enum rp_code code = collect_marks(&w, err);

    if (code == RP_OK)
        code = make_steps(&w, out, err);
    rp_vec_release(&w.marks);
    rp_vec_release(&w.judged);
    return code;
}

/* Counts marks that begin in [step), from *at on; both are in the order of time. */
static size_t count_inside(const struct rp_step *step, const rp_step_vec *marks, size_t *at)
{
    size_t n = 0;

    while (*at < marks->n && marks->at[*at].begin_ns < step->begin_ns)
        (*at)++;
    while (*at + n < marks->n && marks->at[*at + n].begin_ns < step->end_ns)
        n++;
    return n;
}

bool rp_steps_describe(struct rp_step *steps, size_t n, const rp_step_vec *marks)
{
    size_t i, at = 0;

    for (i = 0; i < n; i++)
        if (count_inside(&steps[i], marks, &at) > 1)
            return false;
    for (i = at = 0; i < n; i++)
        if (count_inside(&steps[i], marks, &at)) {
            const struct rp_step *mark = &marks->at[at];

            add_says(&steps[i], &(struct rp_step_mark){.requests = mark->requests,
                                                       .tokens = mark->tokens,
                                                       .phase = mark->phase});
        }
    return n > 0;
}

/* ------------------------------------------------------------------ a trace that is finished */

enum rp_code rp_trace_mark_steps(struct rp_trace *trace, const struct rp_step_table *table,
                                 struct rp_err *err)
{
    rp_step_vec steps = {0}, marks = {0}, *taken;

    RP_TRY(rp_trace_require(trace, RP_NEED_EVENTS | RP_NEED_LINKS, err));
    struct rp_mark_view v = rp_mark_view_of_trace(trace);
    enum rp_code code = rp_steps_find_marks(&v, table, &marks, err);
    if (code == RP_OK && marks.n) {
        /* The profiler's steps of a trace, to be described. */
        for (uint32_t i = 0; code == RP_OK && i < trace->nsteps; i++)
            if (trace->steps[i].source == RP_STEP_PROFILER) {
                struct rp_step step = trace->steps[i];

                step.requests = step.tokens = RP_NO_COUNT;
                step.phase = RP_PHASE_NONE;
                code = rp_vec_push(&steps, step, err);
            }
    }
    taken = code == RP_OK && rp_steps_describe(steps.at, steps.n, &marks) ? &steps : &marks;
    if (code == RP_OK && marks.n) {
        rp_steps_end_work(&v, taken->at, taken->n);
        trace->nsteps = (uint32_t)taken->n;
        code = rp_store_take(trace->store, &trace->steps, taken, err);
        trace->nsteps = code == RP_OK ? trace->nsteps : 0;
    }
    rp_vec_release(&steps);
    rp_vec_release(&marks);
    return code;
}
