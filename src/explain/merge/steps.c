/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Undoes the steps of a clock in the events of a rank. Collectives show by how much it was set, and
 * that it was between two of them; which events came before that must be found in the trace. Work
 * of devices is divided by the ids of its calls (trace/unfold.h). If a clock was set forward,
 * nothing begins on threads in the time that it left out. If it was set back, the time found from
 * collectives divides the events.
 */
#include "explain/merge/merge.h"
#include "trace/copy.h"
#include "trace/unfold.h"

#include <stdlib.h>

struct stepping {
    const struct rp_trace *t;
    int64_t *add_ns, *longer_ns; /* by event */
    int64_t *begins;             /* sorted begins of threads, and their number */
    size_t n;
};

static bool is_timed(const struct rp_trace *t, rp_event e)
{
    return t->ev.ts_ns[e] != RP_NO_TS && t->origins[t->ev.origin[e]].phase != 'M';
}

/* The end of a gap between two begins of threads that is at least as long as the clock was set
   forward, and nearest to where that was; if there is none, from_ns. */
static int64_t nearest_gap(const struct stepping *s, const struct rp_clock_step *step)
{
    int64_t length = rp_ns_between(step->add_ns, 0), best = INT64_MAX, at = step->from_ns;

    for (size_t i = 1; i < s->n; i++) {
        int64_t before = s->begins[i - 1], after = s->begins[i];
        int64_t away = step->from_ns < before  ? rp_ns_between(step->from_ns, before)
                       : step->from_ns > after ? rp_ns_between(after, step->from_ns)
                                               : 0;

        /* clocks drift, by 200 ppm at most */
        if (rp_ns_between(before, after) >= length - length / 5000 && away < best) {
            best = away;
            at = after;
        }
    }
    return at;
}

static enum rp_code undo_step(struct stepping *s, const struct rp_clock_step *step,
                              struct rp_err *err)
{
    const struct rp_trace *t = s->t;

    /* The communication of the device around a step: the begin of the last before it, and of the
       first after it. */
    int64_t from_ns = step->from_ns;
    struct rp_interval between = {INT64_MIN, INT64_MAX};
    for (rp_event e = 0; e < t->ev.n; e++) {
        int64_t ns = t->ev.ts_ns[e];

        if (!is_timed(t, e) || !rp_kind_is_device_work(t->ev.kind[e]) ||
            t->str.name_class[t->ev.name[e]] != RP_NAME_COMM)
            continue;
        if (ns < from_ns && ns > between.begin_ns)
            between.begin_ns = ns;
        if (ns >= from_ns && ns < between.end_ns)
            between.end_ns = ns;
    }

    int64_t on_threads = step->add_ns < 0 ? nearest_gap(s, step) : step->from_ns, id = INT64_MAX;
    bool divided = between.begin_ns != INT64_MIN && between.end_ns != INT64_MAX;

    if (divided && step->add_ns > 0) /* work that began after it may seem to have begun before */
        between.begin_ns = rp_ns_between(step->add_ns, between.begin_ns);
    if (divided)
        RP_TRY(rp_trace_id_after(t, between.begin_ns, between.end_ns, step->add_ns, &id, err));
    for (rp_event e = 0; e < t->ev.n; e++) {
        bool device = rp_kind_is_device_work(t->ev.kind[e]), after;
        rp_link link = t->ev.link[e];
        int64_t ns = t->ev.ts_ns[e];

        if (!is_timed(t, e))
            continue;
        if (device && divided)
            after = ns >= between.end_ns ||
                    (ns > between.begin_ns && link != RP_NONE && t->links.native_id[link] >= id);
        else
            after = ns >= on_threads;
        if (after)
            s->add_ns[e] = rp_ns_sum(s->add_ns[e], step->add_ns);
        else if (!device && rp_event_end_ns(t, e) >= on_threads &&
                 t->ev.dur_ns[e] > rp_ns_between(step->add_ns, 0))
            s->longer_ns[e] = rp_ns_sum(s->longer_ns[e], step->add_ns); /* it was set meanwhile */
    }
    return RP_OK;
}

enum rp_code rp_merge_undo_steps(const struct rp_trace *t, const struct rp_clock *clock,
                                 const struct rp_limits *limits, struct rp_trace **out,
                                 struct rp_err *err)
{
    size_t n = (size_t)t->ev.n + 1, i;
    struct stepping s = {.t = t};
    struct rp_copy how = {0};
    enum rp_code code = RP_OK;

    *out = NULL;
    s.add_ns = calloc(n, sizeof *s.add_ns);
    s.longer_ns = calloc(n, sizeof *s.longer_ns);
    s.begins = malloc(n * sizeof *s.begins);
    if (!s.add_ns || !s.longer_ns || !s.begins)
        code = rp_err_nomem(err, "merging ranks");
    for (rp_event e = 0; code == RP_OK && e < t->ev.n; e++)
        if (is_timed(t, e) && !rp_kind_is_device_work(t->ev.kind[e]))
            s.begins[s.n++] = t->ev.ts_ns[e];
    if (code == RP_OK)
        rp_ns_sort(s.begins, s.n);
    for (i = 0; code == RP_OK && i < clock->nsteps; i++)
        code = undo_step(&s, &clock->steps[i], err);
    how.add_ns = s.add_ns;
    how.longer_ns = s.longer_ns;
    if (code == RP_OK)
        code = rp_trace_copy(t, &how, limits, out, err);
    free(s.add_ns);
    free(s.longer_ns);
    free(s.begins);
    return code;
}
