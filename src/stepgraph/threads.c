/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the data from which a graph is built: threads with their spans and busy times, the
 * window of the rank, and the device work by end and by stream. Linear, except for one sort of the
 * work.
 */
#include "base/order.h"
#include "facts/host/waits.h"
#include "facts/times/step_times.h"
#include "stepgraph/build.h"

#include <stdlib.h>

#define LOOK_BACK 4096
RP_LIMIT(LOOK_BACK, "items before a moment",
         "a stream queues fewer; of a damaged file the edge is left out, and counted as one that "
         "contradicts the recorded times");

bool rp_sg_is_work(uint8_t kind)
{
    return kind == RP_KIND_CPU_OP || kind == RP_KIND_RUNTIME;
}

static bool is_host(uint8_t kind)
{
    return rp_sg_is_work(kind) || kind == RP_KIND_ANNOTATION || kind == RP_KIND_PYTHON ||
           kind == RP_KIND_COMM_OP;
}

static void widen(struct rp_stepgraph *g, int64_t begin_ns, int64_t end_ns)
{
    g->begin_ns = begin_ns < g->begin_ns ? begin_ns : g->begin_ns;
    g->end_ns = end_ns > g->end_ns ? end_ns : g->end_ns;
}

/* Spans of one thread come in order of their starts, so its busy times join as they come. */
static enum rp_code add_busy(struct rp_sg_builder *b, size_t first, int64_t begin_ns,
                             int64_t end_ns, struct rp_err *err)
{
    struct rp_interval fresh = {begin_ns, end_ns};
    struct rp_interval *last = b->busy.n > first ? &b->busy.at[b->busy.n - 1] : NULL;

    if (!last || begin_ns > last->end_ns)
        return rp_vec_push(&b->busy, fresh, err);
    last->end_ns = end_ns > last->end_ns ? end_ns : last->end_ns;
    return RP_OK;
}

/* Without operators, calls and device work, only the ranges that the program named are left. */
static bool is_by_ranges(const struct rp_sg_builder *b)
{
    const int64_t *count = b->t->totals.count;

    return !b->work->items.n && !count[RP_KIND_CPU_OP] && !count[RP_KIND_RUNTIME];
}

static bool is_range_work(const struct rp_trace *t, rp_event e, bool calls)
{
    return t->ev.kind[e] == RP_KIND_ANNOTATION || rp_event_is_host_wait(t, e) ||
           (calls && t->ev.kind[e] == RP_KIND_OTHER);
}

/* Lists the spans of a track, which is a thread if it has operators, calls or collectives; worker
   threads show these as annotations. */
static enum rp_code add_thread(struct rp_sg_builder *b, rp_track track, struct rp_err *err)
{
    const struct rp_trace *t = b->t;
    bool ranges = is_by_ranges(b) && !rp_track_is_worker(t, track);
    bool calls = rp_trace_has_calls_only(t);
    struct rp_sg_thread thread = {
        .track = track, .first_span = b->spans.n, .first_busy = b->busy.n};

    for (rp_event e = t->tracks[track].first; e < t->tracks[track].end; e++) {
        bool in_ranges = ranges && is_range_work(t, e, calls);

        if ((!is_host(t->ev.kind[e]) && !in_ranges) || t->ev.ts_ns[e] == RP_NO_TS ||
            t->ev.dur_ns[e] < 0)
            continue;
        RP_TRY(rp_vec_push(&b->spans, e, err));
        if (rp_sg_is_work(t->ev.kind[e]) || in_ranges ||
            (calls && rp_event_is_host_collective(t, e)))
            widen(b->g, t->ev.ts_ns[e], rp_event_end_ns(t, e));
        else if (!rp_event_is_host_collective(t, e))
            continue;
        if (rp_event_is_host_collective(t, e))
            rp_ns_add(&thread.collectives_ns, t->ev.dur_ns[e]);
        RP_TRY(add_busy(b, thread.first_busy, t->ev.ts_ns[e], rp_event_end_ns(t, e), err));
    }
    thread.end_span = b->spans.n;
    thread.end_busy = b->busy.n;
    for (size_t i = thread.first_busy; i < thread.end_busy; i++)
        rp_ns_add(&thread.others_ns, rp_ns_between(b->busy.at[i].begin_ns, b->busy.at[i].end_ns));
    thread.others_ns = rp_ns_between(thread.collectives_ns, thread.others_ns);
    if (thread.end_busy == thread.first_busy) {
        b->spans.n = thread.first_span;
        return RP_OK;
    }
    b->thread_of_track.at[track] = (uint32_t)b->threads.n;
    return rp_vec_push(&b->threads, thread, err);
}

enum rp_code rp_sg_find_threads(struct rp_sg_builder *b, struct rp_err *err)
{
    b->g->begin_ns = INT64_MAX;
    b->g->end_ns = INT64_MIN;
    RP_TRY(rp_vec_reserve(&b->thread_of_track, (size_t)b->t->ntracks + 1, err));
    for (rp_track track = 0; track < b->t->ntracks; track++) {
        b->thread_of_track.at[track] = RP_SG_NO_LANE;
        RP_TRY(add_thread(b, track, err));
    }
    if (!rp_trace_has_calls_only(b->t)) {
        /* A thread that carries collectives also copies what they send: most of its time is that of
           the collectives, and another thread of its process works more. */
        int64_t *most = calloc((size_t)b->t->nprocesses + 1, sizeof *most);

        RP_TRY(rp_err_need(most, err, "building the step graph"));
        for (size_t i = 0; i < b->threads.n; i++) {
            int64_t *x = &most[b->t->tracks[b->threads.at[i].track].process];

            *x = b->threads.at[i].others_ns > *x ? b->threads.at[i].others_ns : *x;
        }
        for (size_t i = 0; i < b->threads.n; i++) {
            struct rp_sg_thread *x = &b->threads.at[i];

            x->carries = x->collectives_ns > x->others_ns &&
                         (x->others_ns <= 0 || x->others_ns < most[b->t->tracks[x->track].process]);
        }
        free(most);
    }
    for (size_t i = 0; i < b->work->items.n; i++)
        widen(b->g, b->work->items.at[i].begin_ns, b->work->items.at[i].end_ns);
    if (b->g->begin_ns > b->g->end_ns)
        b->g->begin_ns = b->g->end_ns = 0;
    else if (b->t->totals.count[RP_KIND_RUNTIME] && !b->t->totals.count[RP_KIND_CPU_OP] &&
             !b->work->items.n)
        widen(b->g, b->t->totals.work_begin_ns, b->t->totals.work_end_ns);

    /* Without steps, what comes after the last device work is the end of the program and nothing
       waits for it: it is left out if it is most of the recording. */
    struct rp_interval judged = rp_trace_judged_span(b->t);
    int64_t half = rp_ns_between(b->g->begin_ns, b->g->end_ns) / 2;
    if (!b->t->nsteps && judged.begin_ns < judged.end_ns &&
        rp_ns_between(judged.end_ns, b->g->end_ns) > half)
        b->g->end_ns = judged.end_ns;

    return RP_OK;
}

/* ------------------------------------------------------------------ device work */

static int by_end(const void *pa, const void *pb, void *user)
{
    const struct rp_work_item *items = user;
    uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;

    if (items[a].end_ns != items[b].end_ns)
        return items[a].end_ns < items[b].end_ns ? -1 : 1;
    return (a > b) - (a < b);
}

static void group_by_stream(struct rp_sg_builder *b)
{
    const struct rp_work_item *items = b->work->items.at;
    size_t i, s, n = b->work->items.n, nstreams = b->work->streams.n;
    uint32_t sum = 0;

    for (s = 0; s < nstreams; s++) {
        b->stream_end.at[s] = sum; /* it is the begin until it is filled */
        sum += b->work->streams.at[s].nitems;
    }
    for (i = 0; i < n; i++) {
        b->place.at[i] = b->stream_end.at[items[i].stream]++;
        b->by_stream.at[b->place.at[i]] = (uint32_t)i;
    }
}

enum rp_code rp_sg_index_items(struct rp_sg_builder *b, struct rp_err *err)
{
    size_t i, n = b->work->items.n;

    RP_TRY(rp_vec_reserve(&b->by_end, n + 1, err));
    RP_TRY(rp_vec_reserve(&b->by_stream, n + 1, err));
    RP_TRY(rp_vec_reserve(&b->place, n + 1, err));
    RP_TRY(rp_vec_reserve(&b->item_node, n + 1, err));
    RP_TRY(rp_vec_reserve(&b->stream_end, b->work->streams.n + 1, err));
    group_by_stream(b);
    for (i = 0; i < n; i++)
        b->by_end.at[i] = (uint32_t)i;
    if (n)
        qsort_r(b->by_end.at, n, sizeof *b->by_end.at, by_end, b->work->items.at);
    return RP_OK;
}

uint32_t rp_sg_item_before(const struct rp_sg_builder *b, int64_t ns)
{
    const struct rp_work_item *items = b->work->items.at;
    size_t low, least;

    RP_LOWER_BOUND(low, b->work->items.n, items[b->by_end.at[low]].end_ns <= ns);
    least = low > LOOK_BACK ? low - LOOK_BACK : 0; /* items of no length at that very moment */
    while (low > least && items[b->by_end.at[low - 1]].begin_ns >= ns)
        low--;
    b->g->ndropped += low == least && least > 0;
    return low > least ? b->by_end.at[low - 1] : RP_SG_NO_ITEM;
}

uint32_t rp_sg_stream_item_before(const struct rp_sg_builder *b, uint32_t stream, int64_t ns,
                                  int64_t launched_ns)
{
    const struct rp_work_item *items = b->work->items.at;
    uint32_t end = b->stream_end.at[stream], first = end - b->work->streams.at[stream].nitems;
    uint32_t low;

    RP_LOWER_BOUND_FROM(low, first, end, items[b->by_stream.at[low]].begin_ns < ns);
    first = low - first > LOOK_BACK ? low - LOOK_BACK : first;
    for (; low > first; low--) {
        const struct rp_work_item *x = &items[b->by_stream.at[low - 1]];

        if (x->end_ns <= ns && (x->launch == RP_NONE || b->t->ev.ts_ns[x->launch] < launched_ns))
            return b->by_stream.at[low - 1];
    }
    b->g->ndropped += first > end - b->work->streams.at[stream].nitems;
    return RP_SG_NO_ITEM;
}

/* ------------------------------------------------------------------ finding nodes */

uint32_t rp_sg_node_from(const struct rp_stepgraph *g, uint32_t lane, int64_t ns)
{
    uint32_t low, end = g->lanes.at[lane].end;

    RP_LOWER_BOUND_FROM(low, g->lanes.at[lane].first, end, g->nodes.at[low].start_ns < ns);
    return low < end ? low : RP_NONE;
}

uint32_t rp_sg_node_before(const struct rp_stepgraph *g, uint32_t lane, int64_t ns)
{
    uint32_t from = rp_sg_node_from(g, lane, ns);
    uint32_t first = g->lanes.at[lane].first, end = g->lanes.at[lane].end;

    from = from == RP_NONE ? end : from;
    return from > first ? from - 1 : RP_NONE;
}

uint32_t rp_sg_item_end(const struct rp_sg_builder *b, uint32_t item)
{
    uint32_t node = b->item_node.at[item];

    return b->g->nodes.at[node].kind == RP_SG_ARRIVE ? node + 1 : node;
}
