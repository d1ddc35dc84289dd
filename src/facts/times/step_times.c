/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/times/step_times.h"

#include "base/decides.h"
#include "base/order.h"
#include "facts/times/durations.h"
#include "trace/copy.h"

#include <reprise/result.h>

/* step_clock: the steps so far, and where the next one may begin. */
struct step_clock {
    int64_t
        free_ns; /* when the device work of earlier steps has ended; RP_NO_TS if there is none */
    int64_t begin_ns; /* of the last step */
};

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t step_begin(struct step_clock *c, int64_t mark_ns, int64_t work_end_ns)
{
    c->begin_ns = later(mark_ns, c->free_ns); /* works because RP_NO_TS is before every time */
    c->free_ns = later(c->free_ns, work_end_ns);
    return c->begin_ns;
}

static int64_t last_end(const struct step_clock *c, int64_t mark_end_ns)
{
    return later(later(mark_end_ns, c->free_ns), c->begin_ns);
}

static enum rp_code new_times(struct rp_arena *arena, size_t n, struct rp_interval **out,
                              struct rp_err *err)
{
    *out = RP_ARENA_NEW(arena, struct rp_interval, n + 1);
    return rp_arena_check(arena, "measuring steps", err);
}

/* Adds a step to the times; the previous step ends where this one begins, unless there is a break
   between them. */
static void add_step(struct step_clock *c, struct rp_interval *times, size_t i, int64_t mark_ns,
                     int64_t mark_end_ns, int64_t work_end_ns, bool after_break)
{
    times[i].begin_ns = step_begin(c, mark_ns, work_end_ns);
    times[i].end_ns = last_end(c, mark_end_ns);
    if (i && (!after_break || times[i - 1].end_ns > times[i].begin_ns))
        times[i - 1].end_ns = times[i].begin_ns;
}

/* Whether a call that launched device work was recorded; *at_ns: when it began. */
static bool is_launched(const struct rp_trace *t, rp_event e, int64_t *at_ns)
{
    uint32_t link = t->ev.link[e], i;

    for (i = link == RP_NONE ? 0 : t->links.offset[link];
         link != RP_NONE && i < t->links.offset[link + 1]; i++) {
        rp_event host = t->links.member[i];

        if (rp_kind_is_device_work(t->ev.kind[host]))
            break; /* host calls come first */
        if (t->tracks[t->ev.track[host]].kind == RP_TRACK_STREAM)
            continue;
        *at_ns = t->ev.ts_ns[host];
        return true;
    }
    return false;
}

/* The first device work of a track that was launched in a step, or the track's end; *at_ns: its
   launch. */
static rp_event first_own(const struct rp_trace *t, const struct rp_track_info *track,
                          int64_t *at_ns)
{
    rp_event e;

    for (e = track->first; e < track->end; e++)
        if (rp_kind_is_device_work(t->ev.kind[e]) && is_launched(t, e, at_ns) &&
            *at_ns >= t->steps[0].begin_ns)
            break;
    return e;
}

/* The last end of work without a launch on a stream before `own_ns`, if it began before anything
   was launched in a step (`launch_ns`), and the stream also runs launched work; else RP_NO_TS. */
static int64_t previous_on(const struct rp_trace *t, const struct rp_track_info *track,
                           int64_t own_ns, int64_t launch_ns, rp_event *last)
{
    int64_t best = RP_NO_TS, at_ns;
    rp_event e, own = first_own(t, track, &at_ns);

    for (e = track->first; own < track->end && e < own && t->ev.ts_ns[e] < own_ns; e++) {
        if (!rp_kind_is_device_work(t->ev.kind[e]) || is_launched(t, e, &at_ns))
            continue;
        if (best == RP_NO_TS && t->ev.ts_ns[e] >= launch_ns)
            break;
        if (rp_event_end_ns(t, e) > best) {
            best = rp_event_end_ns(t, e);
            *last = e;
        }
    }
    return best;
}

#define UNRECORDED_SHARE 0.01
RP_DECISION(
    UNRECORDED_SHARE, "of a wait",
    "work of a stream that waited while less than this ran waited for what was not recorded: a "
    "few small copies may have been",
    "facts/little_may_run_during_a_wait");

/* When the call that launched work returned; RP_NO_TS if it was not recorded. */
static int64_t launched_ns(const struct rp_trace *t, rp_event e)
{
    uint32_t link = t->ev.link[e], i;
    int64_t at = RP_NO_TS;

    for (i = link == RP_NONE ? 0 : t->links.offset[link];
         link != RP_NONE && i < t->links.offset[link + 1]; i++)
        if (t->tracks[t->ev.track[t->links.member[i]]].kind != RP_TRACK_STREAM)
            at = later(at, rp_event_end_ns(t, t->links.member[i]));
    return at;
}

/* The time of device work of all streams that begins before a time. */
static int64_t work_before(const struct rp_trace *t, int64_t end_ns)
{
    int64_t sum = 0;

    for (uint32_t k = 0; k < t->ntracks; k++)
        for (rp_event e = t->tracks[k].first; t->tracks[k].kind == RP_TRACK_STREAM &&
                                              e < t->tracks[k].end && t->ev.ts_ns[e] < end_ns;
             e++)
            if (rp_kind_is_device_work(t->ev.kind[e]))
                rp_ns_add(&sum, rp_ns_between(t->ev.ts_ns[e], rp_event_end_ns(t, e)));
    return sum;
}

/* The first work of a stream that waited for unrecorded work: next to nothing else ran since it was
   launched; the last one of several, or RP_NONE. */
static rp_event waited_for_unrecorded(const struct rp_trace *t)
{
    rp_event e, best = RP_NONE;
    int64_t at_ns, wait;

    for (uint32_t k = 0; k < t->ntracks; k++) {
        if (t->tracks[k].kind != RP_TRACK_STREAM)
            continue;
        e = first_own(t, &t->tracks[k], &at_ns);
        if (e >= t->tracks[k].end || e != t->tracks[k].first ||
            (best != RP_NONE && t->ev.ts_ns[e] < t->ev.ts_ns[best]))
            continue;
        wait = rp_ns_between(launched_ns(t, e), t->ev.ts_ns[e]);
        if (wait >= RP_LONG_NS &&
            (double)work_before(t, t->ev.ts_ns[e]) <= UNRECORDED_SHARE * (double)wait)
            best = e;
    }
    return best;
}

/* Whether most work from a time on has a recorded launch; otherwise work without one may belong to
   any step. */
static bool has_launches(const struct rp_trace *t, int64_t from_ns)
{
    size_t launched = 0, other = 0;
    int64_t at_ns;

    for (uint32_t k = 0; k < t->ntracks; k++)
        for (rp_event e = t->tracks[k].first;
             t->tracks[k].kind == RP_TRACK_STREAM && e < t->tracks[k].end; e++)
            if (rp_kind_is_device_work(t->ev.kind[e]) && t->ev.ts_ns[e] >= from_ns) {
                if (is_launched(t, e, &at_ns))
                    launched++;
                else
                    other++;
            }
    return launched >= other;
}

/* Where recorded work of the step before the first one ends. */
static int64_t recorded_previous(const struct rp_trace *trace, rp_event *last)
{
    int64_t own_ns = INT64_MAX, launch_ns = INT64_MAX, best = RP_NO_TS, at_ns;
    rp_event e, at = RP_NONE;

    for (uint32_t k = 0; k < trace->ntracks; k++) {
        if (trace->tracks[k].kind != RP_TRACK_STREAM)
            continue;
        e = first_own(trace, &trace->tracks[k], &at_ns);
        if (e >= trace->tracks[k].end)
            continue;
        own_ns = trace->ev.ts_ns[e] < own_ns ? trace->ev.ts_ns[e] : own_ns;
        launch_ns = at_ns < launch_ns ? at_ns : launch_ns;
    }
    if (own_ns == INT64_MAX || !has_launches(trace, own_ns))
        return RP_NO_TS;
    for (uint32_t k = 0; k < trace->ntracks; k++) {
        int64_t end = trace->tracks[k].kind == RP_TRACK_STREAM
                          ? previous_on(trace, &trace->tracks[k], own_ns, launch_ns, &at)
                          : RP_NO_TS;

        if (end > best) {
            best = end;
            *last = at;
        }
    }
    return best > own_ns ? own_ns : best;
}

/* The first device work of all streams that was launched in a step, or RP_NONE. */
static rp_event first_own_of_all(const struct rp_trace *t)
{
    rp_event e, best = RP_NONE;
    int64_t at_ns;

    for (uint32_t k = 0; k < t->ntracks; k++) {
        if (t->tracks[k].kind != RP_TRACK_STREAM)
            continue;
        e = first_own(t, &t->tracks[k], &at_ns);
        if (e < t->tracks[k].end && (best == RP_NONE || t->ev.ts_ns[e] < t->ev.ts_ns[best]))
            best = e;
    }
    return best;
}

int64_t rp_previous_step_end(const struct rp_trace *trace, rp_event *last, bool *unrecorded)
{
    *last = RP_NONE;
    *unrecorded = false;
    if (!trace->nsteps || trace->steps[0].flags & RP_STEP_ON_DEVICE)
        return RP_NO_TS;
    int64_t end = rp_cut_previous_end(trace);
    if (end != RP_NO_TS) {
        *unrecorded = true;
        *last = first_own_of_all(trace);
        return end;
    }
    end = recorded_previous(trace, last);
    if (end != RP_NO_TS)
        return end;
    *last = waited_for_unrecorded(trace);
    *unrecorded = *last != RP_NONE;
    return *unrecorded ? trace->ev.ts_ns[*last] : RP_NO_TS;
}

/* A clock that starts where the steps of a trace may begin. */
static struct step_clock first_clock(const struct rp_trace *trace, bool *unrecorded)
{
    rp_event last;

    return (struct step_clock){rp_previous_step_end(trace, &last, unrecorded), RP_NO_TS};
}

static enum rp_code step_times(const struct rp_trace *trace, struct rp_arena *arena,
                               struct rp_interval **out, bool *unrecorded, struct rp_err *err)
{
    const struct rp_step *s = trace->steps;

    RP_TRY(new_times(arena, trace->nsteps, out, err));
    RP_TRY(rp_trace_require(trace, trace->nsteps ? RP_NEED_EVENTS | RP_NEED_LINKS : 0, err));
    struct step_clock c = first_clock(trace, unrecorded);
    for (uint32_t i = 0; i < trace->nsteps; i++)
        add_step(&c, *out, i, s[i].begin_ns, s[i].end_ns, s[i].work_end_ns,
                 i && s[i - 1].flags & RP_STEP_BREAK_AFTER);
    return RP_OK;
}

enum rp_code rp_step_times(const struct rp_trace *trace, struct rp_arena *arena,
                           struct rp_interval **out, struct rp_err *err)
{
    bool unrecorded;

    return step_times(trace, arena, out, &unrecorded, err);
}

uint32_t rp_whole_steps(const struct rp_trace *trace)
{
    uint32_t n = trace->nsteps;

    return n && trace->steps[n - 1].flags & RP_STEP_CUT_OFF ? n - 1 : n;
}

enum rp_code rp_step_times_of_digest(const struct rp_digest *digest, int64_t previous_end_ns,
                                     struct rp_arena *arena, struct rp_interval **out,
                                     struct rp_err *err)
{
    struct step_clock c = {previous_end_ns, RP_NO_TS};
    const struct rp_digest_step *s = digest->steps;

    RP_TRY(new_times(arena, digest->nsteps, out, err));
    for (size_t i = 0; i < digest->nsteps; i++)
        add_step(&c, *out, i, s[i].begin_ns, s[i].end_ns, s[i].work_end_ns,
                 i && s[i - 1].flags & RP_STEP_BREAK_AFTER);
    return RP_OK;
}

#define HARDLY_USED 0.01
RP_DECISION(HARDLY_USED, "of the time of device work, and that of the recorded time",
            "a device that does nothing in so small a part of a recording is beside the point: two "
            "copies in 7.8 s on the host",
            "facts/two_copies_are_no_window");

/* The time in which device work was recorded; empty if none was, or hardly any. */
static struct rp_interval device_window(const struct rp_trace *trace)
{
    const struct rp_totals *t = &trace->totals;
    double window = (double)rp_ns_between(t->gpu_begin_ns, t->gpu_end_ns);

    if (!t->count[RP_KIND_KERNEL] && !t->count[RP_KIND_MEMCPY] && !t->count[RP_KIND_MEMSET])
        return (struct rp_interval){0, 0};
    if ((double)t->gpu_busy_ns < HARDLY_USED * window &&
        window < HARDLY_USED * (double)rp_ns_between(t->work_begin_ns, t->work_end_ns))
        return (struct rp_interval){0, 0};
    return (struct rp_interval){t->gpu_begin_ns, t->gpu_end_ns};
}

/* Whether a step lies before the device's first work or after its last, when the device was not
   recorded, or not used. */
static bool is_beside(struct rp_interval step, struct rp_interval device)
{
    return device.begin_ns < device.end_ns &&
           (step.end_ns <= device.begin_ns || step.begin_ns >= device.end_ns);
}

bool rp_step_is_judged(const struct rp_trace *trace, uint32_t step, struct rp_interval time)
{
    return !(trace->steps[step].flags & RP_STEP_NOT_JUDGED) &&
           !is_beside(time, device_window(trace));
}

struct rp_interval rp_trace_judged_span(const struct rp_trace *trace)
{
    struct rp_interval device = device_window(trace);

    return !trace->nsteps && device.begin_ns < device.end_ns ? device : rp_trace_span(trace);
}

enum rp_code rp_trace_segments(const struct rp_trace *trace, struct rp_arena *arena,
                               struct rp_segments *out, struct rp_err *err)
{
    struct rp_interval *times;
    bool unrecorded;

    RP_TRY(step_times(trace, arena, &times, &unrecorded, err));
    *out = (struct rp_segments){0, RP_ARENA_NEW(arena, struct rp_interval, trace->nsteps + 1)};
    RP_TRY(rp_arena_check(arena, "measuring steps", err));
    for (uint32_t i = 0; i < trace->nsteps; i++) {
        struct rp_interval *last = out->n ? &out->at[out->n - 1] : NULL;

        if (!rp_step_is_judged(trace, i, times[i]))
            continue;
        /* recorded work of the device for the step before is a part of the span */
        if (!i && !unrecorded)
            times[i].begin_ns = trace->steps[i].begin_ns;
        if (last && last->end_ns == times[i].begin_ns)
            last->end_ns = times[i].end_ns;
        else
            out->at[out->n++] = times[i];
    }
    if (!out->n)
        out->at[out->n++] = rp_trace_judged_span(trace);
    return RP_OK;
}

void rp_segments_keep_work(const struct rp_segments *s, struct rp_work *work)
{
    size_t i, at, n = 0;

    for (i = 0; i < work->items.n; i++) {
        const struct rp_work_item *x = &work->items.at[i];

        RP_LOWER_BOUND(at, s->n, s->at[at].end_ns <= x->begin_ns);
        if (at < s->n && x->end_ns >= s->at[at].begin_ns)
            work->items.at[n++] = *x;
    }
    work->items.n = n;
}

enum rp_code rp_step_median(const struct rp_interval *steps, size_t n, struct rp_arena *arena,
                            int64_t *out, struct rp_err *err)
{
    int64_t *ns = RP_ARENA_NEW(arena, int64_t, n + 1);

    RP_TRY(rp_arena_check(arena, "measuring steps", err));
    for (size_t i = 0; i < n; i++)
        ns[i] = rp_ns_between(steps[i].begin_ns, steps[i].end_ns);
    rp_ns_sort(ns, n);
    *out = n ? rp_ns_median(ns, n) : RP_ABSENT_I64;
    return RP_OK;
}

static bool has_work(const struct rp_totals *t)
{
    return t->count[RP_KIND_CPU_OP] || t->count[RP_KIND_RUNTIME] || t->count[RP_KIND_KERNEL] ||
           t->count[RP_KIND_MEMCPY] || t->count[RP_KIND_MEMSET];
}

struct rp_interval rp_trace_span(const struct rp_trace *trace)
{
    const struct rp_totals *t = &trace->totals;
    struct step_clock c = {RP_NO_TS, RP_NO_TS};
    uint32_t i, n = rp_whole_steps(trace);

    for (i = 0; i < n; i++)
        step_begin(&c, trace->steps[i].begin_ns, trace->steps[i].work_end_ns);
    if (n < trace->nsteps)
        return (struct rp_interval){trace->steps[0].begin_ns,
                                    later(trace->steps[n].begin_ns, c.free_ns)};
    if (n)
        return (struct rp_interval){trace->steps[0].begin_ns,
                                    last_end(&c, trace->steps[n - 1].end_ns)};
    if (has_work(t))
        return (struct rp_interval){t->work_begin_ns, t->work_end_ns};
    return (struct rp_interval){t->span_begin_ns, t->span_end_ns};
}

struct rp_scope rp_scope_of_step(const struct rp_trace *trace, uint32_t step)
{
    const struct rp_step *s = &trace->steps[step];
    struct rp_scope out = {.limited = true,
                           .by_launch = !(s->flags & RP_STEP_ON_DEVICE),
                           .begin_ns = s->begin_ns,
                           .end_ns = s->end_ns,
                           .step = step + 1};
    bool unrecorded;
    struct step_clock c = first_clock(trace, &unrecorded);

    for (uint32_t i = 0; i <= step; i++)
        step_begin(&c, trace->steps[i].begin_ns, trace->steps[i].work_end_ns);
    out.span = (struct rp_interval){c.begin_ns, last_end(&c, s->end_ns)};
    if (step + 1 < trace->nsteps && !(s->flags & RP_STEP_BREAK_AFTER)) {
        out.end_ns = s[1].begin_ns;
        out.span.end_ns = step_begin(&c, s[1].begin_ns, RP_NO_TS);
    }
    return out;
}

struct rp_scope rp_scope_of_window(const struct rp_trace *trace, int64_t begin_ns, int64_t end_ns)
{
    const struct rp_totals *t = &trace->totals;
    struct rp_scope out = {.limited = true, .begin_ns = begin_ns, .end_ns = end_ns};

    out.span.begin_ns = later(begin_ns, t->span_begin_ns);
    out.span.end_ns = later(end_ns < t->span_end_ns ? end_ns : t->span_end_ns, out.span.begin_ns);
    return out;
}
