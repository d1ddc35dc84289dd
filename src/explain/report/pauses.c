/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds why no operator runs, if a trace has no device work. The cause of a pause is what the
 * threads run in its middle: the first of data loading, the profiler, Python and other spans that
 * any of them runs. Pauses are visited in the order of time, and in each only threads whose
 * innermost span has changed since the last, so that many threads cost nothing.
 */
#include "explain/report/report.h"
#include "explain/report/view.h"

#include "base/filled.h"
#include "base/order.h"
#include "base/ordered.h"
#include "explain/idle/sampled.h"
#include "facts/host/signs.h"
#include "facts/host/waits.h"
#include "facts/times/intervals.h"
#include "facts/work/ancestors.h"

const char *const rp_pause_names[RP_PAUSES] = {
#define PAUSE_NAME(name, text, doc) text,
    RP_PAUSE_MAP(PAUSE_NAME)
#undef PAUSE_NAME
};
const char *const rp_pause_docs[RP_PAUSES] = {
#define PAUSE_DOC(name, text, doc) doc,
    RP_PAUSE_MAP(PAUSE_DOC)
#undef PAUSE_DOC
};

struct due {
    int64_t ns;
    rp_track track;
};

struct pause_ctx {
    const struct rp_trace *t;
    struct rp_report_pauses *out;
    rp_gap_vec *each;
    RP_VEC(int64_t) weight[RP_PAUSES]; /* by string */
    rp_str most[RP_PAUSES];
    RP_VEC(int64_t) paused; /* when the recording was paused, in the order of time */
    RP_VEC(struct due) due; /* a heap: when each thread has to be examined again */
    RP_VEC(uint8_t) cause;  /* by track: what it shows now */
    struct rp_ordered
        shown[RP_PAUSES];      /* by cause: from the tracks that show it now to their spans */
    struct rp_sampled sampled; /* where threads were while nothing was recorded */
};

/* Whether a wait belongs to a thread with work, because workers wait whenever they have none. */
static bool in_range(const struct rp_trace *t, rp_event wait)
{
    return rp_event_around(t, wait, RP_KIND_ANNOTATION) != RP_NONE ||
           rp_event_around(t, wait, RP_KIND_CPU_OP) != RP_NONE ||
           (rp_trace_has_calls_only(t) && !rp_track_is_worker(t, t->ev.track[wait]));
}

/* The cause shown by a thread's spans, from the innermost outwards, and the span that shows it. */
static enum rp_pause span_cause(const struct rp_trace *t, rp_event inner, rp_event *span)
{
    enum rp_pause cause = RP_PAUSE_NOTHING;
    rp_event e = inner;

    RP_FOR_ANCESTORS (t, e) {
        uint16_t signs = rp_host_signs(rp_trace_str(t, t->ev.name[e]));
        enum rp_pause found = RP_PAUSE_NOTHING;

        if (signs & RP_SIGN_DATA)
            found = RP_PAUSE_DATA;
        else if (t->ev.kind[e] == RP_KIND_WAIT && in_range(t, e))
            found = RP_PAUSE_WAIT;
        else if (t->ev.kind[e] == RP_KIND_OVERHEAD)
            found = RP_PAUSE_PROFILER;
        else if (t->ev.kind[e] == RP_KIND_PYTHON)
            found = RP_PAUSE_PYTHON;
        else if ((t->ev.kind[e] == RP_KIND_ANNOTATION && !(signs & RP_SIGN_STEP)) ||
                 t->ev.kind[e] == RP_KIND_RUNTIME ||
                 (t->ev.kind[e] == RP_KIND_OTHER && rp_trace_has_calls_only(t)))
            found = RP_PAUSE_SPAN;
        if (found < cause) {
            cause = found;
            *span = e;
        }
    }
    return cause;
}

/* ------------------------------------------------------------------ threads, as time goes on */

/* All threads are due at first; entries with the same time are a heap. */
static enum rp_code begin_threads(struct pause_ctx *w, struct rp_err *err)
{
    for (rp_track track = 0; track < w->t->ntracks; track++) {
        struct due due = {INT64_MIN, track};

        RP_TRY(rp_vec_push(&w->cause, RP_PAUSE_NOTHING, err));
        if (w->t->tracks[track].kind == RP_TRACK_THREAD)
            RP_TRY(rp_vec_push(&w->due, due, err));
    }
    return RP_OK;
}

/* Examines the threads that may have changed. Times do not go back from call to call. */
static enum rp_code follow_threads(struct pause_ctx *w, int64_t at_ns, struct rp_err *err)
{
    while (w->due.n && w->due.at[0].ns <= at_ns) {
        rp_track track = w->due.at[0].track;
        rp_event inner = rp_event_at(w->t, track, at_ns), span = RP_NONE;
        enum rp_pause cause = span_cause(w->t, inner, &span);

        rp_ordered_remove(&w->shown[w->cause.at[track]], track);
        w->cause.at[track] = (uint8_t)cause;
        if (cause < RP_PAUSE_NOTHING)
            RP_TRY(rp_ordered_put(&w->shown[cause], track, span, false, err));

        /* The earliest time at which the innermost span of a track changes. */
        const struct rp_trace *t = w->t;
        const struct rp_track_info *info = &t->tracks[track];
        int64_t next = inner == RP_NONE ? INT64_MAX : rp_event_end_ns(t, inner);
        size_t i;
        RP_LOWER_BOUND_FROM(i, info->first, info->end, t->ev.ts_ns[i] <= at_ns);
        w->due.at[0].ns = i < info->end && t->ev.ts_ns[i] < next ? t->ev.ts_ns[i] : next;

        if (w->due.at[0].ns == INT64_MAX)
            w->due.at[0] = w->due.at[--w->due.n];

        /* Restore the order of the heap after its first entry has changed. */
        struct due *heap = w->due.at, moved = heap[0];
        size_t at = 0, below;
        while ((below = 2 * at + 1) < w->due.n) {
            below += below + 1 < w->due.n && heap[below + 1].ns < heap[below].ns;
            if (heap[below].ns >= moved.ns)
                break;
            heap[at] = heap[below];
            at = below;
        }
        heap[at] = moved;
    }
    return RP_OK;
}

/* The first cause that a thread shows, and the span of the first thread that shows it. */
static enum rp_pause first_cause(const struct pause_ctx *w, rp_event *span)
{
    for (int c = 0; c < RP_PAUSE_NOTHING; c++) {
        const struct rp_ordered_entry *first = rp_ordered_from(&w->shown[c], 0);

        if (first) {
            *span = (rp_event)first->value;
            return (enum rp_pause)c;
        }
    }
    return RP_PAUSE_NOTHING;
}

/* ------------------------------------------------------------------ pauses */

static bool in_step(const struct rp_trace *t, int64_t at_ns)
{
    uint32_t i;

    RP_LOWER_BOUND(i, t->nsteps, t->steps[i].begin_ns <= at_ns);
    return !t->nsteps || (i && at_ns < t->steps[i - 1].end_ns);
}

static enum rp_code add_weight(struct pause_ctx *w, enum rp_pause cause, rp_event span, int64_t ns,
                               struct rp_err *err)
{
    rp_str name = w->t->ev.name[span];
    size_t had = w->weight[cause].cap;

    if (!had)
        RP_TRY(rp_vec_zeros(&w->weight[cause], w->t->str.n, err));
    rp_ns_add(&w->weight[cause].at[name], ns);
    if (w->weight[cause].at[name] > w->out->mainly_ns[cause]) {
        w->out->mainly_ns[cause] = w->weight[cause].at[name];
        w->most[cause] = name;
    }
    return RP_OK;
}

static enum rp_code find_paused(struct pause_ctx *w, struct rp_err *err)
{
    const struct rp_events *ev = &w->t->ev;

    for (rp_event e = 0; e < ev->n; e++)
        if (ev->kind[e] == RP_KIND_INSTANT &&
            !strcmp(rp_trace_str(w->t, ev->name[e]), RP_PAUSED_NAME))
            RP_TRY(rp_vec_push(&w->paused, ev->ts_ns[e], err));
    rp_ns_sort(w->paused.at, w->paused.n);
    return RP_OK;
}

static bool recording_paused(const struct pause_ctx *w, int64_t begin_ns, int64_t end_ns)
{
    size_t i;

    RP_LOWER_BOUND(i, w->paused.n, w->paused.at[i] < begin_ns);
    return i < w->paused.n && w->paused.at[i] < end_ns;
}

static enum rp_code add_pause(struct pause_ctx *w, int64_t begin_ns, int64_t end_ns,
                              struct rp_err *err)
{
    int64_t length = rp_ns_between(begin_ns, end_ns), middle = rp_ns_sum(begin_ns, length / 2);
    rp_event span = RP_NONE;

    RP_TRY(follow_threads(w, middle, err));
    enum rp_pause cause = first_cause(w, &span);
    if (recording_paused(w, begin_ns, end_ns)) {
        cause = RP_PAUSE_RECORDER;
        span = RP_NONE;
    }
    if (cause == RP_PAUSE_NOTHING && !in_step(w->t, middle))
        cause = RP_PAUSE_OUTSIDE;
    rp_ns_add(&w->out->ns[cause], length);
    w->out->count[cause]++;
    if (length > w->out->longest_ns[cause])
        w->out->longest_ns[cause] = length;
    if (w->each) {
        struct rp_gap gap = {.begin_ns = begin_ns,
                             .end_ns = end_ns,
                             .before = RP_NONE,
                             .after = RP_NONE,
                             .host = RP_NONE,
                             .cause = (uint8_t)(RP_LANE_PAUSES + cause)};

        RP_TRY(rp_vec_push(w->each, gap, err));
    }
    if (cause == RP_PAUSE_NOTHING) {
        for (rp_track track = 0; track < w->t->ntracks && w->t->samples.n; track++)
            if (w->t->tracks[track].kind == RP_TRACK_THREAD)
                RP_TRY(rp_sampled_add(&w->sampled, 0, track, begin_ns, end_ns, err));
    }
    return span == RP_NONE ? RP_OK : add_weight(w, cause, span, length, err);
}

/* Adds the part of [begin, end) that lies in the segments. */
static enum rp_code add_inside(struct pause_ctx *w, const struct rp_segments *segments,
                               int64_t begin_ns, int64_t end_ns, struct rp_err *err)
{
    size_t i;

    RP_LOWER_BOUND(i, segments->n, segments->at[i].end_ns <= begin_ns);
    for (; i < segments->n && segments->at[i].begin_ns < end_ns; i++) {
        const struct rp_interval *s = &segments->at[i];
        int64_t from = begin_ns > s->begin_ns ? begin_ns : s->begin_ns;
        int64_t to = end_ns < s->end_ns ? end_ns : s->end_ns;

        if (from < to)
            RP_TRY(add_pause(w, from, to, err));
    }
    return RP_OK;
}

enum rp_code rp_report_find_pauses(const struct rp_trace *trace, const rp_interval_vec *busy,
                                   const struct rp_segments *segments, struct rp_arena *arena,
                                   struct rp_report_pauses *out, rp_gap_vec *each,
                                   struct rp_err *err)
{
    struct pause_ctx w = {.t = trace, .out = out, .each = each};
    int64_t until = segments->at[0].begin_ns;
    enum rp_code code = RP_OK;

    *out = (struct rp_report_pauses){0};
    code = rp_sampled_init(&w.sampled, trace, err);
    if (code == RP_OK)
        code = find_paused(&w, err);
    if (code == RP_OK)
        code = begin_threads(&w, err);
    for (size_t i = 0; i < busy->n && code == RP_OK; i++) {
        code = add_inside(&w, segments, until, busy->at[i].begin_ns, err);
        until = busy->at[i].end_ns;
    }
    if (code == RP_OK)
        code = add_inside(&w, segments, until, segments->at[segments->n - 1].end_ns, err);
    for (int c = 0; c < RP_PAUSES; c++) {
        if (code == RP_OK && out->mainly_ns[c] > 0)
            out->mainly[c] = rp_arena_text(arena, rp_trace_str(trace, w.most[c]));
        rp_vec_release(&w.weight[c]);
    }
    if (code == RP_OK) {
        /* "decode at image.py:88, waiting for the GIL" */
        const struct rp_sampled_place *place = rp_sampled_main(&w.sampled, 0);

        out->mainly[RP_PAUSE_NOTHING] =
            place ? rp_arena_textf(arena, "%s%s", rp_sampled_text(&w.sampled, place, false, arena),
                                   rp_sampled_gil(&w.sampled, place, arena))
                  : NULL;
    }
    rp_sampled_release(&w.sampled);
    for (int c = 0; c < RP_PAUSES; c++)
        rp_ordered_release(&w.shown[c]);
    rp_vec_release(&w.due);
    rp_vec_release(&w.cause);
    rp_vec_release(&w.paused);
    return code == RP_OK ? rp_arena_check(arena, "explaining pauses", err) : code;
}

enum rp_code rp_report_list_pauses(const struct rp_trace *trace, struct rp_arena *arena,
                                   rp_gap_vec *out, struct rp_err *err)
{
    RP_SCOPED(rp_report_part_release) struct rp_report_part part = {0};
    struct rp_report_pauses sums;

    RP_TRY(rp_report_rank(trace, NULL, NULL, arena, &part, err));
    struct rp_interval span = {part.whole.begin_ns, part.whole.end_ns};

    return rp_report_find_pauses(trace, &part.busy, &(struct rp_segments){1, &span}, arena, &sums,
                                 out, err);
}
