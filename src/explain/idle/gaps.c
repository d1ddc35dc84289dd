/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a device is idle. The work that ends a gap has a launch. If that was after the gap began,
 * the host was late: what its thread ran in the middle of the gap says why. If it was before, the
 * work was waiting on the device: the work that ended last, and on which stream, says for what.
 *
 *      device   ####### gap ........... #####       late: what is X?
 *      host        [ sync ][   X   ][launch]
 *
 *      device   ####### gap ........... #####       launched before: latency, a copy, an event
 *      host     [launch]
 *
 * What a name means is decided once a string, and medians of calls only where a long one is met:
 * linear in events, gaps times depth.
 */
#include "explain/idle/gaps.h"

#include "base/hash.h"
#include "base/order.h"
#include "facts/attribution.h"
#include "facts/host_signs.h"
#include "trace/names.h"

#include <stdlib.h>

#define SHORT_NS        10000   /* boundary between the classes "short" and "dependency" */
#define STALL_NS        1000000 /* minimum duration of a stall */
#define STALL_RATIO     50      /* minimum ratio to the median of its name */
#define STALL_CALLS     16      /* names with fewer calls have no usual duration */
#define LATENCY_NS      20000   /* a launch may take that long to reach the device */
#define LATENCY_MOST_NS 100000  /* the first of its kind even longer */
#define SLACK_NS        5000    /* by how much the clocks of host and device may differ */
#define QUEUE           1024    /* launches that fit into a stream's queue */

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

#define SIGN_UNKNOWN 255 /* the name was not classified yet */

/* A blocking call of any thread, by begin. */
struct block {
    int64_t begin_ns, end_ns;
    rp_event event;
};

struct gap_ctx {
    const struct rp_work *w;
    const struct rp_trace *t;
    rp_gap_vec *out;
    RP_VEC(uint8_t) sign; /* by string */
    RP_VEC(struct block) blocks;
    rp_interval_vec overhead; /* of the profiler */
    rp_track busiest;         /* the thread with most spans, not only runtime calls; or RP_NONE */
    struct rp_map stalls;     /* event -> whether it is one */
    struct rp_map medians;    /* name -> index */
    RP_VEC(int64_t) median;
    RP_VEC(uint8_t) calls_only; /* by track */
    RP_VEC(int64_t) scratch;
};

static uint8_t sign_of(struct gap_ctx *ctx, rp_event e)
{
    rp_str name = ctx->t->ev.name[e];
    uint8_t *sign = &ctx->sign.at[name];

    if (*sign == SIGN_UNKNOWN)
        *sign = rp_host_signs(rp_trace_str(ctx->t, name));
    return *sign;
}

RP_ORDER(by_begin, struct block, RP_UP(begin_ns), RP_UP(event))

/* Blocking calls and the profiler's own work, each in time order. */
static enum rp_code collect_host_calls(struct gap_ctx *ctx, struct rp_err *err)
{
    const struct rp_events *ev = &ctx->t->ev;
    rp_event e;

    RP_TRY(rp_vec_reserve(&ctx->sign, ctx->t->str.n, err));
    memset(ctx->sign.at, SIGN_UNKNOWN, ctx->t->str.n);
    for (e = 0; e < ev->n; e++) {
        struct block b = {ev->ts_ns[e], rp_event_end_ns(ctx->t, e), e};
        struct rp_interval i = {b.begin_ns, b.end_ns};

        if (ev->dur_ns[e] <= 0)
            continue;
        if (ev->kind[e] == RP_KIND_OVERHEAD)
            RP_TRY(rp_vec_push(&ctx->overhead, i, err));
        else if (ev->kind[e] == RP_KIND_RUNTIME && (sign_of(ctx, e) & RP_SIGN_BLOCKS))
            RP_TRY(rp_vec_push(&ctx->blocks, b, err));
    }
    ctx->overhead.n = rp_union_sort(ctx->overhead.at, ctx->overhead.n);
    if (ctx->blocks.n)
        qsort(ctx->blocks.at, ctx->blocks.n, sizeof *ctx->blocks.at, by_begin);
    return RP_OK;
}

/* The median duration of spans of that name; -1 where there are too few of them. */
static enum rp_code median_of(struct gap_ctx *ctx, rp_str name, int64_t *out, struct rp_err *err)
{
    uint32_t fresh = (uint32_t)ctx->median.n, found;
    rp_event e;

    RP_TRY(rp_map_intern(&ctx->medians, name, fresh, &found, err));
    if (found == fresh) {
        ctx->scratch.n = 0;
        for (e = 0; e < ctx->t->ev.n; e++)
            if (ctx->t->ev.name[e] == name && ctx->t->ev.dur_ns[e] >= 0)
                RP_TRY(rp_vec_push(&ctx->scratch, ctx->t->ev.dur_ns[e], err));
        rp_ns_sort(ctx->scratch.at, ctx->scratch.n);
        RP_TRY(rp_vec_push(&ctx->median,
                           ctx->scratch.n < STALL_CALLS ? -1 : ctx->scratch.at[ctx->scratch.n / 2],
                           err));
    }
    *out = ctx->median.at[found];
    return RP_OK;
}

/* The time of a span without that of the spans directly inside. */
static int64_t own_time(const struct rp_trace *t, rp_event e)
{
    rp_event c, end = t->tracks[t->ev.track[e]].end;
    int64_t self = t->ev.dur_ns[e], until = rp_event_end_ns(t, e);

    for (c = e + 1; c < end && t->ev.ts_ns[c] < until; c++)
        if (t->ev.parent[c] == e && t->ev.dur_ns[c] > 0)
            self = rp_ns_between(t->ev.dur_ns[c], self);
    return self;
}

/* Far above the median of its name, and most of it its own time: a frame around slow calls is not a
   stall. */
static enum rp_code is_stall(struct gap_ctx *ctx, rp_event e, bool *out, struct rp_err *err)
{
    int64_t dur = ctx->t->ev.dur_ns[e], median;
    uint32_t known = rp_map_get(&ctx->stalls, e);

    *out = known == 1;
    if (known != RP_MAP_NONE || dur < STALL_NS ||
        (sign_of(ctx, e) & (RP_SIGN_BLOCKS | RP_SIGN_STEP)))
        return RP_OK;
    RP_TRY(median_of(ctx, ctx->t->ev.name[e], &median, err));
    *out = median >= 0 && dur / STALL_RATIO > (median > 1000 ? median : 1000) &&
           own_time(ctx->t, e) > dur / 2;
    return rp_map_put(&ctx->stalls, e, *out, err);
}

/* Whether the profiler's own work fills half of the time. */
static bool is_overhead(const struct gap_ctx *ctx, const struct rp_gap *gap)
{
    int64_t busy = rp_union_covers(ctx->overhead.at, ctx->overhead.n, gap->begin_ns, gap->end_ns);

    return busy > rp_ns_between(gap->begin_ns, gap->end_ns) / 2;
}

/* A blocking call that was waiting when the gap began, or RP_NONE. */
static rp_event block_at(const struct gap_ctx *ctx, int64_t at_ns)
{
    size_t later, i;

    RP_LOWER_BOUND(later, ctx->blocks.n, ctx->blocks.at[later].begin_ns < at_ns);
    for (i = later; i > 0 && i + 8 > later; i--) /* a few threads may wait at once */
        if (ctx->blocks.at[i - 1].end_ns >= rp_ns_sum(at_ns, -SLACK_NS))
            return ctx->blocks.at[i - 1].event;
    return RP_NONE;
}

/* The cause by what the thread ran at a moment, from the innermost span outwards. */
static enum rp_code cause_of_spans(struct gap_ctx *ctx, struct rp_gap *gap, rp_event inner,
                                   struct rp_err *err)
{
    const struct {
        uint8_t sign, cause;
    } by_sign[] = {{RP_SIGN_DATA, RP_GAP_DATA_LOADER},
                   {RP_SIGN_RANKS, RP_GAP_OTHER_RANK},
                   {RP_SIGN_ALLOCATES, RP_GAP_ALLOCATION}};
    rp_event e, below = RP_NONE;
    bool stall;
    size_t i;

    for (e = inner; e != RP_NONE; e = ctx->t->ev.parent[e]) {
        for (i = 0; i < sizeof by_sign / sizeof by_sign[0]; i++)
            if (sign_of(ctx, e) & by_sign[i].sign) {
                gap->cause = by_sign[i].cause;
                gap->host = e;
                return RP_OK;
            }
        /* a span of which one inner span takes most is not slow by itself */
        stall = false;
        if (below == RP_NONE || ctx->t->ev.dur_ns[below] < ctx->t->ev.dur_ns[e] / 2)
            RP_TRY(is_stall(ctx, e, &stall, err));
        if (stall) {
            gap->cause = RP_GAP_HOST_STALL;
            gap->host = e;
            return RP_OK;
        }
        below = e;
    }
    return RP_OK;
}

/* The thread that launches ran nothing that was recorded, for long. */
static bool thread_is_silent(struct gap_ctx *ctx, const struct rp_gap *gap, rp_event inner)
{
    if (rp_ns_between(gap->begin_ns, gap->end_ns) < STALL_NS)
        return false;
    while (inner != RP_NONE && (sign_of(ctx, inner) & RP_SIGN_STEP))
        inner = ctx->t->ev.parent[inner];
    return inner == RP_NONE;
}

/* Whether a thread has runtime calls only: XProf shows them on a line beside that of their thread.
 */
static bool has_calls_only(const struct rp_trace *t, rp_track track)
{
    rp_event e = t->tracks[track].first;

    while (e < t->tracks[track].end && (t->ev.kind[e] == RP_KIND_RUNTIME || t->ev.dur_ns[e] < 0))
        e++;
    return e == t->tracks[track].end;
}

static enum rp_code find_busiest(struct gap_ctx *ctx, struct rp_err *err)
{
    uint32_t most = 0;
    rp_track track;

    ctx->busiest = RP_NONE;
    for (track = 0; track < ctx->t->ntracks; track++) {
        uint32_t n = ctx->t->tracks[track].end - ctx->t->tracks[track].first;
        uint8_t calls =
            ctx->t->tracks[track].kind != RP_TRACK_THREAD || has_calls_only(ctx->t, track);

        RP_TRY(rp_vec_push(&ctx->calls_only, calls, err));
        if (!calls && n > most) {
            most = n;
            ctx->busiest = track;
        }
    }
    return RP_OK;
}

/* What the host ran at a moment: on the thread that launches, else on the busiest one. */
static rp_event host_at(const struct gap_ctx *ctx, rp_track launching, int64_t at_ns)
{
    rp_event e = rp_event_at(ctx->t, launching, at_ns);

    if (e != RP_NONE || ctx->busiest == RP_NONE || !ctx->calls_only.at[launching])
        return e;
    return rp_event_at(ctx->t, ctx->busiest, at_ns);
}

/* The next work was launched after the gap began. */
static enum rp_code explain_late_launch(struct gap_ctx *ctx, struct rp_gap *gap, rp_event launch,
                                        struct rp_err *err)
{
    int64_t until = ctx->t->ev.ts_ns[launch];
    rp_event block = block_at(ctx, gap->begin_ns), inner;

    if (until > gap->end_ns)
        until = gap->end_ns; /* clocks disagree: the work starts before its launch */
    inner = host_at(ctx, ctx->t->ev.track[launch],
                    rp_ns_sum(gap->begin_ns, rp_ns_between(gap->begin_ns, until) / 2));
    gap->cause = RP_GAP_NOT_LAUNCHED;
    gap->host = inner;
    if (is_overhead(ctx, gap)) {
        gap->cause = RP_GAP_PROFILER;
        return RP_OK;
    }
    RP_TRY(cause_of_spans(ctx, gap, inner, err));
    if (gap->cause != RP_GAP_NOT_LAUNCHED)
        return RP_OK;
    if (block != RP_NONE) {
        gap->cause = RP_GAP_SYNC_DRAIN;
        gap->host = block;
    } else if (thread_is_silent(ctx, gap, inner)) {
        gap->cause = RP_GAP_HOST_STALL;
        gap->host = RP_NONE;
    }
    return RP_OK;
}

/* How many launches of the stream were waiting when this one was made: those before it in the
   stream that started later. */
static bool was_queue_full(const struct gap_ctx *ctx, const struct rp_gap *gap)
{
    const struct rp_work_item *at = ctx->w->items.at, *x = &at[gap->after];
    uint32_t i, waiting = 0;

    for (i = gap->after; i > 0 && waiting < QUEUE; i--)
        if (at[i - 1].begin_ns < ctx->t->ev.ts_ns[x->launch])
            break;
        else
            waiting += at[i - 1].stream == x->stream;
    return waiting >= QUEUE;
}

static bool is_graph_launch(const struct gap_ctx *ctx, rp_event launch)
{
    return strstr(rp_trace_str(ctx->t, ctx->t->ev.name[launch]), "GraphLaunch") != NULL;
}

/* Whether the thread made the stream wait for an event before this launch. */
static bool waits_for_event(const struct gap_ctx *ctx, rp_event launch)
{
    const struct rp_trace *t = ctx->t;
    rp_event first = t->tracks[t->ev.track[launch]].first, e = launch;
    int left = 64;

    for (; e > first && left > 0; e--, left--) {
        const char *name = rp_trace_str(t, t->ev.name[e - 1]);

        if (t->ev.kind[e - 1] != RP_KIND_RUNTIME)
            continue;
        if (strstr(name, "StreamWaitEvent"))
            return true;
        if (strstr(name, "Launch"))
            return false;
    }
    return false;
}

/* The next work had been launched before the gap began. */
static enum rp_code explain_device_wait(struct gap_ctx *ctx, struct rp_gap *gap, rp_event launch,
                                        struct rp_err *err)
{
    const struct rp_work_item *before = &ctx->w->items.at[gap->before];
    const struct rp_work_item *after = &ctx->w->items.at[gap->after];
    int64_t length = rp_ns_between(gap->begin_ns, gap->end_ns);
    int64_t launched = launch == RP_NONE ? INT64_MIN : rp_event_end_ns(ctx->t, launch);
    bool stall = false;

    gap->host = launch;
    if (launch != RP_NONE && launched > gap->begin_ns)
        RP_TRY(is_stall(ctx, launch, &stall, err));
    if (stall)
        gap->cause = RP_GAP_HOST_STALL;
    else if (length < LATENCY_NS || (launched >= rp_ns_sum(gap->begin_ns, -LATENCY_NS) &&
                                     gap->end_ns <= rp_ns_sum(launched, LATENCY_MOST_NS)))
        gap->cause = RP_GAP_LAUNCH_LATENCY;
    else if (is_overhead(ctx, gap))
        gap->cause = RP_GAP_PROFILER;
    else if (ctx->t->ev.kind[before->event] == RP_KIND_MEMCPY ||
             ctx->t->ev.kind[after->event] == RP_KIND_MEMCPY)
        gap->cause = RP_GAP_COPY;
    else if (before->stream != after->stream || (after->flags & RP_WORK_IN_GRAPH) ||
             (launch != RP_NONE && (is_graph_launch(ctx, launch) || waits_for_event(ctx, launch))))
        gap->cause = RP_GAP_EVENT_WAIT;
    else if (launch != RP_NONE && was_queue_full(ctx, gap))
        gap->cause = RP_GAP_QUEUE_FULL;
    else
        gap->cause = RP_GAP_UNRECORDED; /* another process, or events that were lost */
    return RP_OK;
}

/* The launch was not recorded: only what is known about all threads of the host helps. */
static enum rp_code explain_unlinked(struct gap_ctx *ctx, struct rp_gap *gap, struct rp_err *err)
{
    const struct rp_work_item *items = ctx->w->items.at;
    rp_link link = ctx->t->ev.link[items[gap->after].event];
    rp_event block = block_at(ctx, gap->begin_ns);

    if (link != RP_NONE && link == ctx->t->ev.link[items[gap->before].event])
        return explain_device_wait(ctx, gap, RP_NONE, err); /* inside one launch, as of a graph */
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
    return RP_OK;
}

static uint8_t gap_class(const struct gap_ctx *ctx, const struct rp_gap *gap)
{
    const struct rp_work_item *after = &ctx->w->items.at[gap->after];

    if (!(after->flags & RP_WORK_CORRELATED))
        return RP_GAP_CLASS_UNLINKED;
    if (ctx->t->ev.ts_ns[after->launch] > gap->begin_ns)
        return RP_GAP_CLASS_NOT_LAUNCHED;
    return rp_ns_between(gap->begin_ns, gap->end_ns) < SHORT_NS ? RP_GAP_CLASS_SHORT
                                                                : RP_GAP_CLASS_DEPENDENCY;
}

static enum rp_code explain_gap(struct gap_ctx *ctx, struct rp_gap *gap, struct rp_err *err)
{
    rp_event launch = ctx->w->items.at[gap->after].launch;

    gap->cls = gap_class(ctx, gap);
    if (launch == RP_NONE)
        return explain_unlinked(ctx, gap, err);
    if (ctx->t->ev.ts_ns[launch] > gap->begin_ns)
        return explain_late_launch(ctx, gap, launch, err);
    return explain_device_wait(ctx, gap, launch, err);
}

static enum rp_code find_gaps(struct gap_ctx *ctx, struct rp_err *err)
{
    const struct rp_work_item *items = ctx->w->items.at;
    uint32_t i, last = 0;

    RP_TRY(collect_host_calls(ctx, err));
    RP_TRY(find_busiest(ctx, err));
    for (i = 1; i < ctx->w->items.n; i++) {
        struct rp_gap gap = {.begin_ns = items[last].end_ns,
                             .end_ns = items[i].begin_ns,
                             .before = last,
                             .after = i,
                             .host = RP_NONE};

        if (gap.end_ns > gap.begin_ns) {
            RP_TRY(explain_gap(ctx, &gap, err));
            RP_TRY(rp_vec_push(ctx->out, gap, err));
        }
        if (items[i].end_ns >= items[last].end_ns)
            last = i;
    }
    return RP_OK;
}

enum rp_code rp_gaps_find(const struct rp_work *work, rp_gap_vec *out, struct rp_err *err)
{
    struct gap_ctx ctx = {.w = work, .t = work->trace, .out = out};
    enum rp_code code;

    rp_map_init(&ctx.stalls);
    rp_map_init(&ctx.medians);
    code = find_gaps(&ctx, err);
    rp_map_release(&ctx.stalls);
    rp_map_release(&ctx.medians);
    rp_vec_release(&ctx.sign);
    rp_vec_release(&ctx.blocks);
    rp_vec_release(&ctx.overhead);
    rp_vec_release(&ctx.median);
    rp_vec_release(&ctx.calls_only);
    rp_vec_release(&ctx.scratch);
    return code;
}
