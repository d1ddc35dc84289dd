/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds why a device is idle. The work that ends a gap has a launch, and the gap is split there.
 * Before the launch the host was late, and what it ran meanwhile tells why (host_time.h). After it
 * the work was waiting on the device; the work that ended last, and its stream, tell for what.
 *
 *      device   ####### gap ................... #####
 *      host        [ sync ][   X   ][launch]
 *                      | late: what is X? | latency, a copy, an event
 *
 * Work counts as launched when its call returns, or when it starts, if that is earlier: a call may
 * load code before it submits, and one that launches a graph submits for as long as it runs. A copy
 * counts from the begin of its call, which may wait until the copy is done.
 */
#include "facts/idle/gaps.h"

#include "base/decides.h"
#include "base/order.h"
#include "facts/host/signs.h"
#include "facts/idle/host_time.h"
#include "facts/times/durations.h"
#include "facts/times/step_times.h"
#include "trace/device_calls.h"

#include <stdlib.h>

#define QUEUE 1024
RP_FACT(
    QUEUE, "launches",
    "so many fit into the queue of a stream of CUDA before a launch waits (cudaLaunchKernel blocks)");
#define NEARBY 64
RP_LIMIT(
    NEARBY, "events of a thread",
    "before a launch in which a wait for an event is looked for: its own, so that a gap costs no more");

const char *const rp_gap_cause_names[RP_GAP_CAUSES] = {
#define CAUSE_NAME(name, text, doc) text,
    RP_GAP_CAUSE_MAP(CAUSE_NAME)
#undef CAUSE_NAME
};
const char *const rp_gap_cause_docs[RP_GAP_CAUSES] = {
#define CAUSE_DOC(name, text, doc) doc,
    RP_GAP_CAUSE_MAP(CAUSE_DOC)
#undef CAUSE_DOC
};
const char *const rp_gap_class_names[RP_GAP_CLASSES] = {"not_launched", "short", "dependency",
                                                        "unlinked"};

/* A blocking call of any thread, by begin. */
struct block {
    int64_t begin_ns, end_ns;
    rp_event event;
    size_t last; /* index of the block that ends last, among this one and earlier ones */
};

/* The first item of a name. */
struct first_item {
    uint32_t item;    /* RP_NONE if there is none */
    int64_t again_ns; /* the longest launch of a later item with that name; -1: unknown */
};

struct rp_gap_finder {
    const struct rp_work *w;
    const struct rp_trace *t;
    rp_gap_vec *out;
    struct rp_interval within; /* pieces outside of this are dropped */
    struct rp_host_time host;
    RP_VEC(struct block) blocks;
    rp_interval_vec overhead;        /* of the profiler */
    RP_VEC(struct first_item) first; /* by string */
};

RP_ORDER(by_begin, struct block, RP_UP(begin_ns), RP_UP(event))

/* Collects blocking calls and the profiler's own work, each in the order of time. */
static enum rp_code collect_host_calls(struct rp_gap_finder *ctx, struct rp_err *err)
{
    const struct rp_events *ev = &ctx->t->ev;

    for (rp_event e = 0; e < ev->n; e++) {
        struct block b = {ev->ts_ns[e], rp_event_end_ns(ctx->t, e), e, 0};
        struct rp_interval i = {b.begin_ns, b.end_ns};

        if (ev->dur_ns[e] <= 0)
            continue;
        if (ev->kind[e] == RP_KIND_OVERHEAD)
            RP_TRY(rp_vec_push(&ctx->overhead, i, err));
        else if (ev->kind[e] == RP_KIND_RUNTIME &&
                 (rp_host_time_sign(&ctx->host, e) & RP_SIGN_BLOCKS))
            RP_TRY(rp_vec_push(&ctx->blocks, b, err));
    }
    ctx->overhead.n = rp_union_sort(ctx->overhead.at, ctx->overhead.n);
    rp_sort(ctx->blocks.at, ctx->blocks.n, sizeof *ctx->blocks.at, by_begin);
    for (size_t i = 0, last = 0; i < ctx->blocks.n; i++) {
        last = ctx->blocks.at[i].end_ns >= ctx->blocks.at[last].end_ns ? i : last;
        ctx->blocks.at[i].last = last;
    }
    return RP_OK;
}

/* Whether the profiler's own work fills half of the time. */
static bool is_overhead(const struct rp_gap_finder *ctx, const struct rp_gap *gap)
{
    int64_t busy = rp_union_covers(ctx->overhead.at, ctx->overhead.n, gap->begin_ns, gap->end_ns);

    return busy > rp_ns_between(gap->begin_ns, gap->end_ns) / 2;
}

/* Of the blocking calls that were waiting when the gap began, the one that ends last, or
   RP_NONE. */
static rp_event block_at(const struct rp_gap_finder *ctx, int64_t at_ns)
{
    size_t later;

    RP_LOWER_BOUND(later, ctx->blocks.n, ctx->blocks.at[later].begin_ns < at_ns);
    if (!later)
        return RP_NONE;
    const struct block *last = &ctx->blocks.at[ctx->blocks.at[later - 1].last];
    return last->end_ns >= rp_ns_sum(at_ns, -RP_CLOCK_TOLERANCE_NS) ? last->event : RP_NONE;
}

/* Adds the part of a piece inside the time that was asked for. */
static enum rp_code add_piece(struct rp_gap_finder *ctx, const struct rp_gap *piece,
                              struct rp_err *err)
{
    struct rp_gap cut = *piece, *last = ctx->out->n ? &ctx->out->at[ctx->out->n - 1] : NULL;

    cut.begin_ns = cut.begin_ns > ctx->within.begin_ns ? cut.begin_ns : ctx->within.begin_ns;
    cut.end_ns = cut.end_ns < ctx->within.end_ns ? cut.end_ns : ctx->within.end_ns;
    if (cut.end_ns <= cut.begin_ns)
        return RP_OK;
    cut.continues = last && last->after == cut.after && last->before == cut.before &&
                    last->end_ns == cut.begin_ns; /* does not continue a piece that was left out */
    return rp_vec_push(ctx->out, cut, err);
}

/* The host launched nothing, so causes come from what it ran, piece by piece. */
static enum rp_code explain_late_host(struct rp_gap_finder *ctx, struct rp_gap *late,
                                      rp_track track, struct rp_err *err)
{
    int64_t length = rp_ns_between(late->begin_ns, late->end_ns);
    struct rp_gap piece = *late;

    if (length <= 0)
        return RP_OK;
    if (is_overhead(ctx, late)) {
        late->cause = RP_GAP_PROFILER;
        return add_piece(ctx, late, err);
    }
    RP_TRY(rp_host_time_divide(&ctx->host, track, late->begin_ns, late->end_ns, err));
    const struct rp_host_segment *s = ctx->host.segments.at;
    rp_event block = length < RP_LONG_NS && s[0].cause == RP_GAP_NOT_LAUNCHED
                         ? block_at(ctx, late->begin_ns)
                         : RP_NONE;
    for (size_t i = 0; i < ctx->host.segments.n; i++) {
        piece.begin_ns = s[i].begin_ns;
        piece.end_ns = s[i].end_ns;
        piece.cause = block == RP_NONE ? s[i].cause : RP_GAP_SYNC_DRAIN;
        piece.host = block == RP_NONE ? s[i].host : block;
        RP_TRY(add_piece(ctx, &piece, err));
    }
    return RP_OK;
}

/* How many launches of the stream were waiting at this launch: those before it in the stream that
   started later. All kernels of a graph are one launch. */
static bool was_queue_full(const struct rp_gap_finder *ctx, const struct rp_gap *gap)
{
    const struct rp_work_item *at = ctx->w->items.at, *x = &at[gap->after];
    uint32_t i, waiting = 0;
    rp_event last = x->launch;

    for (i = gap->after; i > 0 && waiting < QUEUE; i--) {
        if (at[i - 1].begin_ns < ctx->t->ev.ts_ns[x->launch])
            break;
        if (at[i - 1].stream != x->stream)
            continue;
        waiting += at[i - 1].launch == RP_NONE || at[i - 1].launch != last;
        last = at[i - 1].launch;
    }
    return waiting >= QUEUE;
}

static bool is_graph_launch(const struct rp_gap_finder *ctx, rp_event launch)
{
    return rp_device_call_does(rp_trace_str(ctx->t, ctx->t->ev.name[launch])) &
           RP_DOES_LAUNCH_GRAPH;
}

/* Whether the thread made the stream wait for an event before this launch. */
static bool waits_for_event(const struct rp_gap_finder *ctx, rp_event launch)
{
    const struct rp_trace *t = ctx->t;
    rp_event first = t->tracks[t->ev.track[launch]].first, e = launch;
    int left = NEARBY;

    for (; e > first && left > 0; e--, left--) {
        if (t->ev.kind[e - 1] != RP_KIND_RUNTIME)
            continue;
        uint16_t does = rp_device_call_does(rp_trace_str(t, t->ev.name[e - 1]));
        if (does & (RP_DOES_STREAM_WAIT | RP_DOES_LAUNCH))
            return does & RP_DOES_STREAM_WAIT;
    }
    return false;
}

static bool is_copy(const struct rp_gap_finder *ctx, uint32_t item)
{
    return item != RP_NONE && ctx->t->ev.kind[ctx->w->items.at[item].event] == RP_KIND_MEMCPY;
}

/* Whether the work follows other work by a signal that takes time: an event, or the order of a
   graph's nodes. */
static bool is_signalled(const struct rp_gap_finder *ctx, const struct rp_gap *gap, rp_event launch)
{
    const struct rp_work_item *items = ctx->w->items.at, *after = &items[gap->after];

    return (gap->before != RP_NONE && items[gap->before].stream != after->stream) ||
           (after->flags & RP_WORK_IN_GRAPH) ||
           (launch != RP_NONE && (is_graph_launch(ctx, launch) || waits_for_event(ctx, launch)));
}

/* The latest time at which an item that a call starts was submitted. */
static int64_t submitted_ns(const struct rp_gap_finder *ctx, uint32_t item, rp_event launch)
{
    return is_copy(ctx, item) ? ctx->t->ev.ts_ns[launch] : rp_event_end_ns(ctx->t, launch);
}

/* Explains a piece after the work that ends it was launched. */
static enum rp_code explain_device_wait(struct rp_gap_finder *ctx, struct rp_gap *piece,
                                        rp_event launch, struct rp_err *err)
{
    int64_t length = rp_ns_between(piece->begin_ns, piece->end_ns);
    int64_t launched = launch == RP_NONE ? INT64_MIN : submitted_ns(ctx, piece->after, launch);

    if (length <= 0)
        return RP_OK;
    piece->host = launch;
    if (length < RP_LAUNCH_NS || (launched >= rp_ns_sum(piece->begin_ns, -RP_LAUNCH_NS) &&
                                  piece->end_ns <= rp_ns_sum(launched, RP_WAKE_UP_NS)))
        piece->cause = RP_GAP_LAUNCH_LATENCY;
    else if (is_overhead(ctx, piece))
        piece->cause = RP_GAP_PROFILER;
    else if (length <= RP_LONG_NS && (is_copy(ctx, piece->after) || is_copy(ctx, piece->before)))
        piece->cause = RP_GAP_COPY;
    else if (length <= RP_LONG_NS && is_signalled(ctx, piece, launch))
        piece->cause = RP_GAP_EVENT_WAIT;
    else if (launch != RP_NONE && was_queue_full(ctx, piece))
        piece->cause = RP_GAP_QUEUE_FULL;
    else
        piece->cause =
            RP_GAP_DEVICE_WAIT; /* the reason is earlier work, another process or lost events */
    if (piece->cause == RP_GAP_DEVICE_WAIT)
        piece->host = RP_NONE; /* then it does not matter what the host runs */
    return add_piece(ctx, piece, err);
}

/* The launch was not recorded, so only what is known about all threads of the host helps. */
static enum rp_code explain_unlinked(struct rp_gap_finder *ctx, struct rp_gap *gap,
                                     struct rp_err *err)
{
    const struct rp_work_item *items = ctx->w->items.at;
    rp_link link = ctx->t->ev.link[items[gap->after].event];
    rp_event block = block_at(ctx, gap->begin_ns);

    if (link != RP_NONE && gap->before != RP_NONE &&
        link == ctx->t->ev.link[items[gap->before].event])
        return explain_device_wait(ctx, gap, RP_NONE,
                                   err); /* both are in one launch, such as that of a graph */
    if (block != RP_NONE && rp_event_end_ns(ctx->t, block) >= gap->end_ns)
        return explain_device_wait(ctx, gap, RP_NONE,
                                   err); /* the host waits for what it launched */
    gap->cause = RP_GAP_UNKNOWN;
    if (is_overhead(ctx, gap)) {
        gap->cause = RP_GAP_PROFILER;
    } else if (block != RP_NONE) {
        gap->cause = RP_GAP_SYNC_DRAIN;
        gap->host = block;
    }
    return add_piece(ctx, gap, err);
}

static uint8_t gap_class(const struct rp_gap_finder *ctx, const struct rp_gap *gap)
{
    if (gap->after == RP_NONE)
        return RP_GAP_CLASS_NOT_LAUNCHED;
    const struct rp_work_item *after = &ctx->w->items.at[gap->after];
    if (!(after->flags & RP_WORK_CORRELATED))
        return RP_GAP_CLASS_UNLINKED;
    if (ctx->t->ev.ts_ns[after->launch] > gap->begin_ns)
        return RP_GAP_CLASS_NOT_LAUNCHED;
    return rp_ns_between(gap->begin_ns, gap->end_ns) < RP_CLOCK_TOLERANCE_NS
               ? RP_GAP_CLASS_SHORT
               : RP_GAP_CLASS_DEPENDENCY;
}

/* When the work that ends a gap was launched, as a time in the gap. */
static int64_t launched_in(const struct rp_gap_finder *ctx, const struct rp_gap *gap,
                           rp_event launch)
{
    int64_t begin = ctx->t->ev.ts_ns[launch], end = rp_event_end_ns(ctx->t, launch);
    int64_t at = submitted_ns(ctx, gap->after, launch);

    /* the call had begun earlier, so its last microseconds are needed to reach the device anyway */
    if (begin <= gap->begin_ns && end < rp_ns_sum(gap->begin_ns, RP_LAUNCH_NS))
        at = gap->begin_ns;
    if (at > gap->end_ns)
        at = gap->end_ns;
    return at < gap->begin_ns ? gap->begin_ns : at;
}

rp_track rp_gap_thread(const struct rp_work *work, const struct rp_gap *gap)
{
    const struct rp_work_item *items = work->items.at;
    size_t i = gap->after == RP_NONE ? work->items.n : (size_t)gap->after + 1;
    size_t first = gap->after == RP_NONE ? 0 : gap->after;

    for (; i > first; i--)
        if (items[i - 1].launch != RP_NONE)
            return work->trace->ev.track[items[i - 1].launch];
    return RP_NONE;
}

/* Whether the launch may have loaded the code of the work, because it is the first of its name. If
   steps are marked, the run is older than the recording, so later launches must be short. */
static bool is_first_launch(const struct rp_gap_finder *ctx, uint32_t item)
{
    const struct rp_work_item *x = &ctx->w->items.at[item];
    const struct first_item *first = &ctx->first.at[ctx->t->ev.name[x->event]];

    return !(x->flags & RP_WORK_IN_GRAPH) && first->item == item &&
           (!ctx->host.marked || (first->again_ns >= 0 && first->again_ns < RP_LONG_NS));
}

static enum rp_code explain_gap(struct rp_gap_finder *ctx, struct rp_gap *gap, struct rp_err *err)
{
    rp_event launch = gap->after == RP_NONE ? RP_NONE : ctx->w->items.at[gap->after].launch;
    struct rp_gap late = *gap;

    late.cls = gap->cls = gap_class(ctx, gap);
    if (gap->after == RP_NONE) {
        rp_track track = rp_gap_thread(ctx->w, gap);
        track = track == RP_NONE ? ctx->host.busiest : track;
        return track == RP_NONE ? add_piece(ctx, gap, err)
                                : explain_late_host(ctx, gap, track, err);
    }
    if (launch == RP_NONE)
        return explain_unlinked(ctx, gap, err);
    ctx->host.loads = is_first_launch(ctx, gap->after) ? launch : RP_NONE;
    late.end_ns = gap->begin_ns = launched_in(ctx, gap, launch);
    RP_TRY(explain_late_host(ctx, &late, ctx->t->ev.track[launch], err));
    return explain_device_wait(ctx, gap, launch, err);
}

static enum rp_code explain_between(struct rp_gap_finder *ctx, int64_t begin_ns, int64_t end_ns,
                                    uint32_t before, uint32_t after, struct rp_err *err)
{
    struct rp_gap gap = {.begin_ns = begin_ns,
                         .end_ns = end_ns,
                         .before = before,
                         .after = after,
                         .host = RP_NONE,
                         .cause = RP_GAP_UNKNOWN};

    if (begin_ns >= end_ns || end_ns <= ctx->within.begin_ns || begin_ns >= ctx->within.end_ns)
        return RP_OK;
    return explain_gap(ctx, &gap, err);
}

static enum rp_code find_gaps(struct rp_gap_finder *ctx, struct rp_err *err)
{
    const struct rp_work_item *items = ctx->w->items.at;
    uint32_t i, last = 0, n = (uint32_t)ctx->w->items.n;

    if (!n)
        return ctx->within.begin_ns == INT64_MIN
                   ? RP_OK
                   : explain_between(ctx, ctx->within.begin_ns, ctx->within.end_ns, RP_NONE,
                                     RP_NONE, err);
    if (ctx->within.begin_ns > INT64_MIN)
        RP_TRY(explain_between(ctx, ctx->within.begin_ns, items[0].begin_ns, RP_NONE, 0, err));
    for (i = 1; i < n; i++) {
        RP_TRY(explain_between(ctx, items[last].end_ns, items[i].begin_ns, last, i, err));
        if (items[i].end_ns >= items[last].end_ns)
            last = i;
    }
    return ctx->within.end_ns == INT64_MAX
               ? RP_OK
               : explain_between(ctx, items[last].end_ns, ctx->within.end_ns, last, RP_NONE, err);
}

static enum rp_code look_at_host(struct rp_gap_finder *ctx, struct rp_err *err)
{
    RP_TRY(rp_host_time_init(&ctx->host, ctx->t, err));
    RP_TRY(collect_host_calls(ctx, err));
    RP_TRY(rp_vec_reserve(&ctx->first, ctx->t->str.n, err));
    for (size_t i = 0; i < ctx->t->str.n; i++)
        ctx->first.at[i] = (struct first_item){RP_NONE, -1};
    return RP_OK;
}

enum rp_code rp_gap_finder_new(const struct rp_trace *trace, struct rp_gap_finder **out,
                               struct rp_err *err)
{
    struct rp_gap_finder *ctx = calloc(1, sizeof *ctx);
    enum rp_code code = rp_err_need(ctx, err, "looking for gaps");

    *out = NULL;
    if (ctx)
        ctx->t = trace;
    if (code == RP_OK)
        code = look_at_host(ctx, err);
    if (code != RP_OK)
        rp_gap_finder_free(ctx);
    else
        *out = ctx;
    return code;
}

void rp_gap_finder_free(struct rp_gap_finder *ctx)
{
    if (!ctx)
        return;
    rp_host_time_release(&ctx->host);
    rp_vec_release(&ctx->blocks);
    rp_vec_release(&ctx->overhead);
    rp_vec_release(&ctx->first);
    free(ctx);
}

enum rp_code rp_gaps_find_in(struct rp_gap_finder *ctx, const struct rp_work *work,
                             int64_t begin_ns, int64_t end_ns, rp_gap_vec *out, struct rp_err *err)
{
    ctx->w = work;
    ctx->out = out;
    ctx->within = (struct rp_interval){begin_ns, end_ns};
    ctx->host.loads = RP_NONE;

    const struct rp_work_item *items = ctx->w->items.at;
    for (uint32_t i = (uint32_t)ctx->w->items.n; i > 0; i--) {
        struct first_item *first = &ctx->first.at[ctx->t->ev.name[items[i - 1].event]];

        if (first->item != RP_NONE && items[first->item].launch != RP_NONE &&
            ctx->t->ev.dur_ns[items[first->item].launch] > first->again_ns)
            first->again_ns = ctx->t->ev.dur_ns[items[first->item].launch];
        first->item = i - 1;
    }
    enum rp_code code = find_gaps(ctx, err);
    for (size_t i = 0; i < ctx->w->items.n; i++)
        ctx->first.at[ctx->t->ev.name[ctx->w->items.at[i].event]] =
            (struct first_item){RP_NONE, -1};
    return code;
}

enum rp_code rp_gaps_find(struct rp_gap_finder *ctx, const struct rp_work *work, rp_gap_vec *out,
                          struct rp_err *err)
{
    return rp_gaps_find_in(ctx, work, INT64_MIN, INT64_MAX, out, err);
}

static enum rp_code sum_work(const struct rp_trace *trace, const struct rp_segments *steps,
                             struct rp_work *work, rp_gap_vec *gaps, struct rp_err *err)
{
    const struct rp_scope whole = {0};
    struct rp_gap_finder *finder;

    RP_TRY(rp_work_init(work, trace, &whole, err));
    if (!work->items.n)
        return RP_OK;
    RP_TRY(rp_gap_finder_new(trace, &finder, err));
    rp_segments_keep_work(steps, work);
    enum rp_code code = RP_OK;
    for (size_t i = 0; i < steps->n && code == RP_OK; i++)
        code = rp_gaps_find_in(finder, work, steps->at[i].begin_ns, steps->at[i].end_ns, gaps, err);
    rp_gap_finder_free(finder);
    return code;
}

enum rp_code rp_gaps_sum(const struct rp_trace *trace, struct rp_arena *arena,
                         int64_t ns[RP_GAP_CAUSES], struct rp_err *err)
{
    struct rp_work work = {0};
    struct rp_segments steps;
    rp_gap_vec gaps = {0};
    enum rp_code code = rp_trace_segments(trace, arena, &steps, err);

    if (code == RP_OK)
        code = sum_work(trace, &steps, &work, &gaps, err);
    for (size_t i = 0; i < gaps.n; i++)
        rp_ns_add(&ns[gaps.at[i].cause], rp_ns_between(gaps.at[i].begin_ns, gaps.at[i].end_ns));
    rp_vec_release(&gaps);
    rp_work_release(&work);
    return code;
}

bool rp_gaps_start_up(const int64_t ns[RP_GAP_CAUSES])
{
    int64_t idle = 0;

    for (size_t i = 0; i < RP_GAP_CAUSES; i++)
        rp_ns_add(&idle, ns[i]);
    return ns[RP_GAP_START_UP] > idle / 2;
}
