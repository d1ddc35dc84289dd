/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk stands at a moment, on a thread or in a device item, and asks what had to happen for the
 * work there to go on:
 *
 *   - an item starts when its stream is free, its launch was made, and what it waits for on other
 *     streams is done: the latest of these is the one before it on the path;
 *   - a span of a thread follows what the thread did before; a call that waits for the device
 *     follows the item that ended last inside it; a thread that did nothing follows the thread that
 *     was at work then.
 *
 * Every step goes back in time; where nothing is found it goes to the latest end before, as a wait
 * for something unrecorded.
 */
#include "stepgraph/critical_path.h"

#include <stdlib.h>
#include <string.h>

/* Longer waits on the device have a reason that was not recorded, such as another process. */
#define LONG_WAIT_NS 100000

/* Work that starts this soon behind the end of its stream's last was waiting for its stream. */
#define STREAM_BUSY_NS 5000

const char *const rp_path_kind_names[RP_PATH_KINDS] = {
    [RP_PATH_HOST] = "host", [RP_PATH_RUNTIME] = "runtime", [RP_PATH_COMPUTE] = "compute",
    [RP_PATH_COMM] = "comm", [RP_PATH_MEMORY] = "memory",   [RP_PATH_WAIT] = "wait"};
const char *const rp_path_cause_names[RP_PATH_CAUSES] = {[RP_PATH_NO_CAUSE] = "none",
                                                         [RP_PATH_LAUNCH_LATENCY] =
                                                             "launch_latency",
                                                         [RP_PATH_STREAM_ORDER] = "stream_order",
                                                         [RP_PATH_EVENT_WAIT] = "event_wait",

                                                         [RP_PATH_UNRECORDED] = "unrecorded"};

#define NO_ITEM   UINT32_MAX
#define NO_THREAD SIZE_MAX

/* A thread that holds operators or calls, and its spans in two lists: all that count, and work. */
enum list { SPANS, WORK, LISTS };
struct lane {
    rp_track track;
    size_t first[LISTS], end[LISTS];
};

struct walker {
    const struct rp_trace *t;
    const struct rp_work *work;
    struct rp_path *out;
    RP_VEC(uint32_t) by_end;   /* items by end */
    RP_VEC(uint32_t) previous; /* by item: the one before it on its stream, or NO_ITEM */
    RP_VEC(struct lane) threads;
    RP_VEC(rp_event) spans[LISTS];
    int64_t now_ns; /* the path is known from here on */
    uint32_t item;  /* where the walk stands, or NO_ITEM: on `thread` */
    size_t thread;  /* into threads, or NO_THREAD */
};

/* What a thread does just before a moment. */
struct doing {
    rp_event span;    /* innermost around it, or RP_NONE */
    int64_t since_ns; /* it did only that since then; INT64_MIN: nothing before */
};

/* Operators and calls are work; annotations and Python frames also stand around mere waiting. */
static bool work_kind(uint8_t kind)
{
    return kind == RP_KIND_CPU_OP || kind == RP_KIND_RUNTIME;
}

static bool host_kind(uint8_t kind)
{
    return work_kind(kind) || kind == RP_KIND_ANNOTATION || kind == RP_KIND_PYTHON;
}

/* The last span of a thread that starts before a moment, or RP_NONE. */
static rp_event last_before(const struct walker *w, size_t thread, enum list list, int64_t ns)
{
    const rp_event *spans = w->spans[list].at;
    size_t first = w->threads.at[thread].first[list], low = first;
    size_t high = w->threads.at[thread].end[list];

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (w->t->ev.ts_ns[spans[middle]] < ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low > first ? spans[low - 1] : RP_NONE;
}

static struct doing doing_before(const struct walker *w, size_t thread, enum list list, int64_t ns)
{
    const struct rp_events *ev = &w->t->ev;
    struct doing d = {last_before(w, thread, list, ns), INT64_MIN};

    for (; d.span != RP_NONE; d.span = ev->parent[d.span]) {
        int64_t end = rp_event_end_ns(w->t, d.span);

        if (!(list == WORK ? work_kind : host_kind)(ev->kind[d.span]))
            continue;
        if (end >= ns)
            break;
        if (end > d.since_ns)
            d.since_ns = end;
    }
    if (d.span != RP_NONE && ev->ts_ns[d.span] > d.since_ns)
        d.since_ns = ev->ts_ns[d.span];
    return d;
}

/* The item that ends last, at or before a moment, and starts before it. */
static uint32_t item_before(const struct walker *w, int64_t ns)
{
    const struct rp_work_item *items = w->work->items.at;
    size_t low = 0, high = w->by_end.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (items[w->by_end.at[middle]].end_ns <= ns)
            low = middle + 1;
        else
            high = middle;
    }
    while (low > 0 && items[w->by_end.at[low - 1]].begin_ns >= ns)
        low--;
    return low ? w->by_end.at[low - 1] : NO_ITEM;
}

/* Puts [from, now) in front of the path, joined to the segment behind where it is the same. */
static enum rp_code put(struct walker *w, int64_t from_ns, uint8_t kind, rp_event event,
                        uint8_t cause, struct rp_err *err)
{
    struct rp_path_segment s = {from_ns, w->now_ns, event, kind, cause};
    struct rp_path_segment *last = w->out->parts.n ? &w->out->parts.at[w->out->parts.n - 1] : NULL;

    if (s.begin_ns < w->out->begin_ns)
        s.begin_ns = w->out->begin_ns;
    if (s.begin_ns >= w->now_ns)
        return RP_OK;
    w->now_ns = s.begin_ns;
    if (last && last->event == event && last->kind == kind && last->cause == cause) {
        last->begin_ns = s.begin_ns;
        return RP_OK;
    }
    return rp_vec_push(&w->out->parts, s, err);
}

static enum rp_code wait_since(struct walker *w, int64_t from_ns, uint8_t cause, struct rp_err *err)
{
    bool too_long = from_ns < w->now_ns && rp_ns_between(from_ns, w->now_ns) > LONG_WAIT_NS;

    return put(w, from_ns, RP_PATH_WAIT, RP_NONE, too_long ? RP_PATH_UNRECORDED : cause, err);
}

/* Nothing says what happened: back to the latest end on any thread or stream. */
static enum rp_code go_to_latest(struct walker *w, struct rp_err *err)
{
    uint32_t item = item_before(w, w->now_ns);
    int64_t best = w->out->begin_ns;
    size_t i;

    w->item = NO_ITEM;
    w->thread = NO_THREAD;
    for (i = 0; i < w->threads.n; i++) {
        struct doing d = doing_before(w, i, SPANS, w->now_ns);

        if (d.span == RP_NONE && d.since_ns > best) {
            best = d.since_ns;
            w->thread = i;
        }
    }
    if (item != NO_ITEM && w->work->items.at[item].end_ns >= best) {
        best = w->work->items.at[item].end_ns;
        w->item = item;
    }
    return wait_since(w, best, RP_PATH_UNRECORDED, err);
}

/* The thread did nothing: the one at work then that changed last goes on, else the latest. */
static enum rp_code leave_thread(struct walker *w, struct rp_err *err)
{
    int64_t best = INT64_MIN;
    size_t i, found = NO_THREAD;

    for (i = 0; i < w->threads.n; i++) {
        struct doing d = doing_before(w, i, SPANS, w->now_ns);

        if (d.span != RP_NONE && d.since_ns > best) {
            best = d.since_ns;
            found = i;
        }
    }
    if (found == NO_THREAD)
        return go_to_latest(w, err);
    w->thread = found;
    return RP_OK;
}

/* Whether a call returns only when the device has done something. */
static bool blocks(const struct rp_trace *t, rp_event e)
{
    const char *name = rp_trace_str(t, t->ev.name[e]);

    if (t->ev.kind[e] != RP_KIND_RUNTIME)
        return false;
    return strstr(name, "Synchronize") || !strcmp(name, "cudaMemcpy") || !strcmp(name, "hipMemcpy");
}

static bool inside_work(const struct rp_trace *t, rp_event e)
{
    while (e != RP_NONE && !work_kind(t->ev.kind[e]))
        e = t->ev.parent[e];
    return e != RP_NONE;
}

/* A thread between operators may have waited for another one of its process, as for the backward
   pass: finds where that was at work last, after `since`. */
static size_t thread_waited_for(const struct walker *w, int64_t since_ns, int64_t *end_ns)
{
    const struct rp_track_info *tracks = w->t->tracks;
    uint32_t process = tracks[w->threads.at[w->thread].track].process;
    size_t i, found = NO_THREAD;

    *end_ns = since_ns;
    for (i = 0; i < w->threads.n; i++) {
        struct doing d;
        int64_t end;

        if (i == w->thread || tracks[w->threads.at[i].track].process != process)
            continue;
        d = doing_before(w, i, WORK, w->now_ns);
        end = d.span != RP_NONE ? w->now_ns : d.since_ns;
        if (end > *end_ns) {
            *end_ns = end;
            found = i;
        }
    }
    return found;
}

/* Back through a span of the thread, to where it was entered or something in it ended. */
static enum rp_code step_in_span(struct walker *w, const struct doing *d, struct rp_err *err)
{
    uint8_t kind = w->t->ev.kind[d->span] == RP_KIND_RUNTIME ? RP_PATH_RUNTIME : RP_PATH_HOST;
    uint32_t item = blocks(w->t, d->span) ? item_before(w, w->now_ns) : NO_ITEM;
    size_t other = NO_THREAD;
    int64_t end;

    if (item != NO_ITEM && w->work->items.at[item].end_ns > w->t->ev.ts_ns[d->span]) {
        RP_TRY(put(w, w->work->items.at[item].end_ns, kind, d->span, 0, err));
        w->item = item;
        return RP_OK;
    }
    if (!inside_work(w->t, d->span))
        other = thread_waited_for(w, d->since_ns, &end);
    if (other == NO_THREAD)
        return put(w, d->since_ns, kind, d->span, 0, err);
    w->thread = other;
    return put(w, end, kind, d->span, 0, err);
}

static enum rp_code step_on_thread(struct walker *w, struct rp_err *err)
{
    struct doing d = {RP_NONE, INT64_MIN};

    if (w->thread != NO_THREAD)
        d = doing_before(w, w->thread, SPANS, w->now_ns);
    return d.span == RP_NONE ? leave_thread(w, err) : step_in_span(w, &d, err);
}

static uint8_t kind_of(const struct rp_work_item *x)
{
    return x->cls == RP_WORK_COMM     ? RP_PATH_COMM
           : x->cls == RP_WORK_MEMORY ? RP_PATH_MEMORY
                                      : RP_PATH_COMPUTE;
}

/* The item that held up one that starts now: of its own stream, or of another where that has been
   free for a while. */
static uint32_t item_in_front(const struct walker *w, uint32_t item)
{
    const struct rp_work_item *items = w->work->items.at;
    uint32_t own = w->previous.at[item], other = item_before(w, w->now_ns);

    if (own != NO_ITEM && items[own].begin_ns >= w->now_ns)
        own = NO_ITEM;
    if (own == NO_ITEM || other == NO_ITEM)
        return own == NO_ITEM ? other : own;
    return rp_ns_between(items[own].end_ns, w->now_ns) > STREAM_BUSY_NS &&
                   items[other].end_ns > items[own].end_ns
               ? other
               : own;
}

static size_t thread_of(const struct walker *w, rp_track track)
{
    size_t i;

    for (i = 0; i < w->threads.n; i++)
        if (w->threads.at[i].track == track)
            return i;
    return NO_THREAD;
}

static enum rp_code step_on_device(struct walker *w, struct rp_err *err)
{
    const struct rp_work_item *items = w->work->items.at, *x = &items[w->item];
    const struct rp_trace *t = w->t;
    uint32_t item = w->item, front;
    int64_t free_ns;

    RP_TRY(put(w, x->begin_ns, kind_of(x), x->event, 0, err));
    if (w->now_ns <= w->out->begin_ns)
        return RP_OK;
    front = item_in_front(w, item);
    free_ns = front == NO_ITEM ? INT64_MIN : items[front].end_ns;
    if (x->launch != RP_NONE && t->ev.ts_ns[x->launch] < w->now_ns &&
        rp_event_end_ns(t, x->launch) >= free_ns) {
        w->item = NO_ITEM;
        w->thread = thread_of(w, t->ev.track[x->launch]);
        return wait_since(w, rp_event_end_ns(t, x->launch), RP_PATH_LAUNCH_LATENCY, err);
    }
    if (front == NO_ITEM)
        return go_to_latest(w, err);
    w->item = front;
    return wait_since(w, free_ns,
                      items[front].stream == x->stream ? RP_PATH_STREAM_ORDER : RP_PATH_EVENT_WAIT,
                      err);
}

/* Back to the last start on any thread, so that no times whatever can hold up the walk. */
static enum rp_code go_to_last_start(struct walker *w, struct rp_err *err)
{
    int64_t best = w->out->begin_ns;
    size_t i;

    w->item = NO_ITEM;
    w->thread = NO_THREAD;
    for (i = 0; i < w->threads.n; i++) {
        rp_event e = last_before(w, i, SPANS, w->now_ns);

        if (e != RP_NONE && w->t->ev.ts_ns[e] > best) {
            best = w->t->ev.ts_ns[e];
            w->thread = i;
        }
    }
    return wait_since(w, best, RP_PATH_UNRECORDED, err);
}

static enum rp_code walk(struct walker *w, struct rp_err *err)
{
    int idle = 0;

    while (w->now_ns > w->out->begin_ns) {
        int64_t before = w->now_ns;

        RP_TRY(w->item != NO_ITEM ? step_on_device(w, err) : step_on_thread(w, err));
        idle = w->now_ns < before ? 0 : idle + 1;
        if (idle > 4)
            RP_TRY(go_to_last_start(w, err));
    }
    return RP_OK;
}

static int by_end(const void *pa, const void *pb, void *user)
{
    const struct rp_work_item *items = user, *a = &items[*(const uint32_t *)pa],
                              *b = &items[*(const uint32_t *)pb];

    if (a->end_ns != b->end_ns)
        return a->end_ns < b->end_ns ? -1 : 1;
    return (a > b) - (a < b);
}

static enum rp_code prepare_items(struct walker *w, struct rp_err *err)
{
    size_t i, n = w->work->items.n;
    RP_VEC(uint32_t) last = {0};
    enum rp_code code = rp_vec_reserve(&last, w->work->streams.n + 1, err);

    if (code == RP_OK)
        code = rp_vec_reserve(&w->by_end, n + 1, err);
    if (code == RP_OK)
        code = rp_vec_reserve(&w->previous, n + 1, err);
    for (i = 0; code == RP_OK && i < w->work->streams.n; i++)
        last.at[i] = NO_ITEM;
    for (i = 0; code == RP_OK && i < n; i++) {
        uint32_t *of_stream = &last.at[w->work->items.at[i].stream];

        w->previous.at[i] = *of_stream;
        w->by_end.at[i] = *of_stream = (uint32_t)i;
    }
    rp_vec_release(&last);
    RP_TRY(code);
    w->by_end.n = w->previous.n = n;
    if (n)
        qsort_r(w->by_end.at, n, sizeof *w->by_end.at, by_end, w->work->items.at);
    return RP_OK;
}

/* Lists the spans of a track; keeps it where it has work, and widens the window. */
static enum rp_code add_thread(struct walker *w, rp_track track, struct rp_err *err)
{
    const struct rp_trace *t = w->t;
    struct lane lane = {track, {w->spans[SPANS].n, w->spans[WORK].n}, {0, 0}};
    rp_event e;

    for (e = t->tracks[track].first; e < t->tracks[track].end; e++) {
        if (!host_kind(t->ev.kind[e]) || t->ev.ts_ns[e] == RP_NO_TS || t->ev.dur_ns[e] < 0)
            continue;
        RP_TRY(rp_vec_push(&w->spans[SPANS], e, err));
        if (!work_kind(t->ev.kind[e]))
            continue;
        RP_TRY(rp_vec_push(&w->spans[WORK], e, err));
        if (t->ev.ts_ns[e] < w->out->begin_ns)
            w->out->begin_ns = t->ev.ts_ns[e];
        if (rp_event_end_ns(t, e) > w->out->end_ns) {
            w->out->end_ns = rp_event_end_ns(t, e);
            w->thread = w->threads.n;
        }
    }
    lane.end[SPANS] = w->spans[SPANS].n;
    lane.end[WORK] = w->spans[WORK].n;
    return lane.end[WORK] > lane.first[WORK] ? rp_vec_push(&w->threads, lane, err) : RP_OK;
}

static enum rp_code prepare_threads(struct walker *w, struct rp_err *err)
{
    rp_track track;

    w->out->begin_ns = INT64_MAX;
    w->out->end_ns = INT64_MIN;
    for (track = 0; track < w->t->ntracks; track++)
        RP_TRY(add_thread(w, track, err));
    return RP_OK;
}

static void add_device_window(struct walker *w)
{
    const struct rp_work_item *items = w->work->items.at;
    uint32_t last;

    if (!w->work->items.n)
        return;
    last = w->by_end.at[w->by_end.n - 1];
    if (items[0].begin_ns < w->out->begin_ns)
        w->out->begin_ns = items[0].begin_ns;
    if (items[last].end_ns >= w->out->end_ns) {
        w->out->end_ns = items[last].end_ns;
        w->item = last;
    }
}

static enum rp_code find(struct walker *w, struct rp_err *err)
{
    size_t i, n;

    RP_TRY(prepare_items(w, err));
    RP_TRY(prepare_threads(w, err));
    add_device_window(w);
    if (w->out->begin_ns > w->out->end_ns) {
        w->out->begin_ns = w->out->end_ns = 0;
        return RP_OK;
    }
    w->now_ns = w->out->end_ns;
    RP_TRY(walk(w, err));
    for (i = 0, n = w->out->parts.n; i < n / 2; i++) {
        struct rp_path_segment s = w->out->parts.at[i];

        w->out->parts.at[i] = w->out->parts.at[n - 1 - i];
        w->out->parts.at[n - 1 - i] = s;
    }
    return RP_OK;
}

enum rp_code rp_path_find(const struct rp_work *work, struct rp_path *out, struct rp_err *err)
{
    struct walker w = {
        .t = work->trace, .work = work, .out = out, .item = NO_ITEM, .thread = NO_THREAD};
    enum rp_code code;

    *out = (struct rp_path){0};
    code = find(&w, err);
    rp_vec_release(&w.by_end);
    rp_vec_release(&w.previous);
    rp_vec_release(&w.threads);
    rp_vec_release(&w.spans[SPANS]);
    rp_vec_release(&w.spans[WORK]);
    return code;
}

void rp_path_release(struct rp_path *path)
{
    rp_vec_release(&path->parts);
}
