/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the spans of a thread in an interval with a stack of those that are open. The cause of a
 * moment is that of the innermost span that shows one. It is decided when a span is pushed, from
 * the span around it, so a moment needs no search. Time that no span explains is the host's own
 * work, named after the innermost function that has at least half of it.
 *
 *      thread   [ step                                                ]
 *                 [ preprocess                      ] [ forward       ]
 *                   [resize][ normalize        ]        [ cudaMalloc ]
 *      segments ..[ host_work: normalize            ]...[ allocation ]..
 */
#include "facts/idle/host_time.h"

#include "base/decides.h"
#include "base/filled.h"
#include "base/order.h"
#include "facts/host/calls.h"
#include "facts/host/signs.h"
#include "facts/host/waits.h"
#include "facts/work/ancestors.h"
#include "trace/device_calls.h"
#include "trace/step_patterns.h"

#define MINOR_PART 64
RP_DECISION(
    MINOR_PART, "parts",
    "a segment that is less than one of so many parts of its interval joins its neighbour: what "
    "takes under 2 % of a wait does not explain it",
    "facts/a_small_segment_joins_its_neighbour");
#define MOST_SPANS 64
RP_DECISION(
    MOST_SPANS, "spans",
    "of the name that stands for the host's work in an interval: what is called more often is a "
    "helper of what it looks for",
    "facts/a_helper_does_not_name_the_work");
#define MOST_HOPS 2
RP_LIMIT(
    MOST_HOPS, "threads",
    "from the one that launches to the main one, to the one that this waits for; beyond it the last "
    "one's own spans are named");

uint16_t rp_host_time_classify(struct rp_host_time *h, rp_event e)
{
    uint16_t *sign = &h->sign.at[h->t->ev.name[e]];
    struct rp_step_mark mark;
    const char *name = rp_trace_str(h->t, h->t->ev.name[e]);
    *sign = rp_host_signs(name);
    /* a server's range counts also if the profiler marks the steps */
    if (h->t->ev.kind[e] == RP_KIND_ANNOTATION && rp_step_table_match(NULL, name, &mark))
        *sign |= RP_SIGN_STEP;
    return *sign;
}

/* ------------------------------------------------------------------ what a span shows */

/* The median duration of spans of that name, if there are enough; else -1. */
static enum rp_code median_of(struct rp_host_time *h, rp_str name, int64_t *out, struct rp_err *err)
{
    uint32_t fresh = (uint32_t)h->median.n, found;

    RP_TRY(rp_map_intern(&h->medians, name, fresh, &found, err));
    if (found == fresh) {
        h->scratch.n = 0;
        for (rp_event e = 0; e < h->t->ev.n; e++)
            if (h->t->ev.name[e] == name && h->t->ev.dur_ns[e] >= 0)
                RP_TRY(rp_vec_push(&h->scratch, h->t->ev.dur_ns[e], err));
        rp_ns_sort(h->scratch.at, h->scratch.n);
        RP_TRY(rp_vec_push(
            &h->median,
            (int64_t)h->scratch.n < rp_stall_usual.calls ? -1 : h->scratch.at[h->scratch.n / 2],
            err));
    }
    *out = h->median.at[found];
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

/* Whether a span is far above the median of its name, mostly by its own time: a frame around slow
   calls is not a stall, and neither is a call with more to do. */
static enum rp_code is_stall(struct rp_host_time *h, rp_event e, bool *out, struct rp_err *err)
{
    int64_t dur = h->t->ev.dur_ns[e], median;
    uint16_t sign = rp_host_time_sign(h, e);
    bool more = false;

    *out = false;
    if (dur < RP_LONG_NS || h->calls.at[h->t->ev.name[e]] < rp_stall_usual.calls ||
        (sign & (RP_SIGN_BLOCKS | RP_SIGN_STEP)) || rp_call_time_varies(h->t->ev.kind[e], sign))
        return RP_OK;
    uint32_t known = rp_map_get(&h->stalls, e);
    *out = known == 1;
    if (known != RP_MAP_NONE)
        return RP_OK;
    RP_TRY(median_of(h, h->t->ev.name[e], &median, err));
    *out = median >= 0 &&
           dur / rp_stall_usual.ratio >
               (median > RP_CLOCK_RESOLUTION_NS ? median : RP_CLOCK_RESOLUTION_NS) &&
           own_time(h->t, e) > dur / 2;
    if (*out)
        RP_TRY(rp_call_has_more_work(&h->sizes, e, &more, err));
    *out = *out && !more;
    return rp_map_put(&h->stalls, e, *out, err);
}

/* Whether no span of that name starts earlier. */
static enum rp_code is_first(struct rp_host_time *h, rp_event e, bool *out, struct rp_err *err)
{
    const struct rp_events *ev = &h->t->ev;
    uint32_t first = rp_map_get(&h->firsts, ev->name[e]);
    rp_event i;

    if (first == RP_MAP_NONE) {
        for (first = e, i = 0; i < ev->n; i++)
            if (ev->name[i] == ev->name[e] && ev->dur_ns[i] >= 0 && ev->ts_ns[i] < ev->ts_ns[first])
                first = i;
        RP_TRY(rp_map_put(&h->firsts, ev->name[e], first, err));
    }
    *out = first == e;
    return RP_OK;
}

/* The first runtime call of a name that should take microseconds sets something up; the very first
   one sets up the device, whichever call it is (often cudaFree(0)). */
static enum rp_code sets_up(struct rp_host_time *h, rp_event e, uint16_t sign, bool *out,
                            struct rp_err *err)
{
    *out = false;
    if (h->t->ev.dur_ns[e] < RP_LONG_NS)
        return RP_OK;
    *out = (sign & RP_SIGN_STARTS_UP) || e == h->loads;
    if (*out || h->marked || h->t->ev.kind[e] != RP_KIND_RUNTIME || (sign & RP_SIGN_BLOCKS) ||
        (rp_device_call_does(rp_trace_str(h->t, h->t->ev.name[e])) &
         (RP_DOES_LAUNCH | RP_DOES_COPY)))
        return RP_OK;
    return is_first(h, e, out, err);
}

/* Whether a wait is the program's own; inside a call of a runtime or a collective, that tells
   better what is waited for. */
static bool waits_itself(const struct rp_trace *t, rp_event e)
{
    return rp_event_is_host_wait(t, e) &&
           rp_event_around(t, t->ev.parent[e], RP_KIND_RUNTIME) == RP_NONE;
}

/* The cause that the name and kind of a span show, or RP_GAP_CAUSES. */
static enum rp_code shown_cause(struct rp_host_time *h, rp_event e, uint8_t *out,
                                struct rp_err *err)
{
    uint16_t sign = rp_host_time_sign(h, e);
    bool first;

    *out = RP_GAP_CAUSES;
    if (!sign && h->t->ev.dur_ns[e] < RP_LONG_NS && h->t->ev.kind[e] != RP_KIND_OVERHEAD)
        return RP_OK; /* as nearly all */
    RP_TRY(sets_up(h, e, sign, &first, err));
    if (h->t->ev.kind[e] == RP_KIND_WAIT) {
        *out = waits_itself(h->t, e) ? RP_GAP_HOST_WAIT : RP_GAP_CAUSES;
        return RP_OK;
    }
    *out = sign & RP_SIGN_DATA                    ? RP_GAP_DATA_LOADER
           : sign & RP_SIGN_RANKS                 ? RP_GAP_OTHER_RANK
           : h->t->ev.kind[e] == RP_KIND_OVERHEAD ? RP_GAP_PROFILER
           : first                                ? RP_GAP_START_UP
           : sign & RP_SIGN_ALLOCATES             ? RP_GAP_ALLOCATION
           : sign & RP_SIGN_BLOCKS                ? RP_GAP_SYNC_DRAIN
                                                  : RP_GAP_CAUSES;
    return RP_OK;
}

/* ------------------------------------------------------------------ walking a thread */

static enum rp_code push_span(struct rp_host_time *h, rp_event e, int64_t end_ns,
                              struct rp_err *err)
{
    struct rp_host_open fresh = {
        .end_ns = end_ns, .event = e, .above_host = RP_NONE, .above_cause = RP_GAP_NOT_LAUNCHED};

    if (h->open.n > h->base) {
        /* What a span shows to one inside it that lasts `inner_ns`: if one inner span takes most of
           a span, the outer one is not slow by itself. */
        const struct rp_host_open *above = &h->open.at[h->open.n - 1];
        int64_t inner_ns = h->t->ev.dur_ns[e];
        bool stall = above->stall && inner_ns < h->t->ev.dur_ns[above->event] / 2;
        bool shows = stall || above->shown != RP_GAP_CAUSES;

        fresh.above_cause = stall ? RP_GAP_HOST_STALL : shows ? above->shown : above->above_cause;
        fresh.above_host = shows ? above->event : above->above_host;
        fresh.warms_up = above->warms_up;
    }
    fresh.warms_up |= (rp_host_time_sign(h, e) & RP_SIGN_WARMS_UP) != 0;
    RP_TRY(shown_cause(h, e, &fresh.shown, err));
    if (fresh.shown == RP_GAP_CAUSES)
        RP_TRY(is_stall(h, e, &fresh.stall, err));
    fresh.cause = fresh.stall                    ? RP_GAP_HOST_STALL
                  : fresh.shown != RP_GAP_CAUSES ? fresh.shown
                                                 : fresh.above_cause;
    fresh.host = fresh.stall || fresh.shown != RP_GAP_CAUSES ? e : fresh.above_host;
    return rp_vec_push(&h->open, fresh, err);
}

static enum rp_code add_segment(struct rp_host_time *h, int64_t begin_ns, int64_t end_ns,
                                uint8_t cause, rp_event host, struct rp_err *err)
{
    struct rp_host_segment fresh = {begin_ns, end_ns, host, cause};
    struct rp_host_segment *last = h->segments.n ? &h->segments.at[h->segments.n - 1] : NULL;

    if (end_ns <= begin_ns)
        return RP_OK;
    if (last && ((last->cause == cause && (last->host == host || cause == RP_GAP_NOT_LAUNCHED)) ||
                 rp_ns_between(begin_ns, end_ns) < h->least_ns)) {
        last->end_ns = end_ns;
        return RP_OK;
    }
    if (last && rp_ns_between(last->begin_ns, last->end_ns) < h->least_ns) {
        fresh.begin_ns = last->begin_ns;
        *last = fresh;
        return RP_OK;
    }
    return rp_vec_push(&h->segments, fresh, err);
}

/* The innermost open span, or NULL; a step's mark is skipped, because it says nothing about what
   runs. */
static const struct rp_host_open *innermost(struct rp_host_time *h)
{
    size_t n = h->open.n;

    while (n > h->base && (rp_host_time_sign(h, h->open.at[n - 1].event) & RP_SIGN_STEP))
        n--;
    return n > h->base ? &h->open.at[n - 1] : NULL;
}

static enum rp_code add_time(struct rp_host_time *h, int64_t begin_ns, int64_t end_ns,
                             struct rp_err *err)
{
    const struct rp_host_open *top = innermost(h);
    int64_t ns = rp_ns_between(begin_ns, end_ns);
    struct rp_host_leaf leaf = {top ? top->event : RP_NONE, ns};

    if (top && top->warms_up)
        return add_segment(h, begin_ns, end_ns, RP_GAP_START_UP,
                           top->host == RP_NONE ? top->event : top->host, err);
    if (!top && ns >= RP_LONG_NS)
        return add_segment(h, begin_ns, end_ns, RP_GAP_HOST_UNRECORDED, RP_NONE, err);
    if (top && top->cause == RP_GAP_SYNC_DRAIN && ns >= RP_LONG_NS &&
        h->t->ev.kind[top->host] == RP_KIND_RUNTIME)
        /* the device has finished all recorded work, and still the host waits for it */
        return add_segment(h, begin_ns, end_ns, RP_GAP_DEVICE_WAIT, top->host, err);
    if (top && top->cause != RP_GAP_NOT_LAUNCHED)
        return add_segment(h, begin_ns, end_ns, top->cause, top->host, err);
    RP_TRY(rp_vec_push(&h->leaves, leaf, err));
    return add_segment(h, begin_ns, end_ns, RP_GAP_NOT_LAUNCHED, leaf.event, err);
}

/* Finds the spans that are open at a time, the outermost first; in damaged files they may nest too
   deeply to be of use. */
static enum rp_code open_at(struct rp_host_time *h, rp_track track, int64_t at_ns,
                            struct rp_err *err)
{
    const struct rp_trace *t = h->t;
    rp_event around[RP_ANCESTORS_MAX], e = rp_event_at(t, track, at_ns);
    int n = 0;

    for (; e != RP_NONE && n < RP_ANCESTORS_MAX; e = t->ev.parent[e])
        around[n++] = e;
    while (n--)
        if (rp_event_end_ns(t, around[n]) > at_ns)
            RP_TRY(push_span(h, around[n], rp_event_end_ns(t, around[n]), err));
    return RP_OK;
}

static enum rp_code walk_thread(struct rp_host_time *h, rp_track track, int64_t begin_ns,
                                int64_t end_ns, unsigned hops, struct rp_err *err);

/* A thread whose span ends when the wait does, the last one of these: the wait is for it, although
   it launches nothing (PJRT's callbacks, which define a buffer). RP_NONE if there is none. */
static rp_track thread_waited_for(struct rp_host_time *h, rp_track track, int64_t at_ns,
                                  int64_t end_ns)
{
    int64_t latest = at_ns, limit = rp_ns_sum(end_ns, RP_WAKE_UP_NS);
    rp_track i, best = RP_NONE;

    for (i = 0; i < h->t->ntracks; i++) {
        rp_event e = i == track ? RP_NONE : rp_event_at(h->t, i, at_ns);
        int64_t until = e == RP_NONE ? 0 : rp_event_end_ns(h->t, e);

        if (e != RP_NONE && h->t->tracks[i].kind == RP_TRACK_THREAD && until > latest &&
            until <= limit && h->t->ev.kind[e] != RP_KIND_WAIT &&
            !(rp_host_time_sign(h, e) & RP_SIGN_BLOCKS)) {
            latest = until;
            best = i;
        }
    }
    return best;
}

/* The thread to ask instead of this one, or RP_NONE. */
static rp_track thread_instead(struct rp_host_time *h, rp_track track, int64_t begin_ns,
                               int64_t end_ns, unsigned hops)
{
    const struct rp_host_open *top = innermost(h);
    int64_t middle = rp_ns_sum(begin_ns, rp_ns_between(begin_ns, end_ns) / 2);
    uint16_t sign = top ? rp_host_time_sign(h, top->event) : 0;

    if (!top)
        return hops || h->busiest == track ? RP_NONE : h->busiest;
    if (!(sign & RP_SIGN_HANDS_OVER))
        return RP_NONE;

    /* Another thread that launches and runs something at that time, with most spans; or RP_NONE. */
    rp_track i, other = RP_NONE;
    uint32_t most = 0;
    for (i = 0; i < h->t->ntracks; i++) {
        uint32_t n = h->t->tracks[i].end - h->t->tracks[i].first;

        if (i != track && h->launches.at[i] && n > most &&
            rp_event_at(h->t, i, middle) != RP_NONE) {
            most = n;
            other = i;
        }
    }

    return other == RP_NONE && (sign & RP_SIGN_BLOCKS)
               ? thread_waited_for(h, track, middle, rp_event_end_ns(h->t, top->event))
               : other;
}

/* Handles [begin, end) of a thread while the innermost span stays the same. */
static enum rp_code pass_time(struct rp_host_time *h, rp_track track, int64_t begin_ns,
                              int64_t end_ns, unsigned hops, struct rp_err *err)
{
    rp_track other = RP_NONE;
    size_t base = h->base;

    if (begin_ns >= end_ns)
        return RP_OK;
    if (hops < MOST_HOPS)
        other = thread_instead(h, track, begin_ns, end_ns, hops);
    if (other == RP_NONE)
        return add_time(h, begin_ns, end_ns, err);
    h->base = h->open.n;
    RP_TRY(walk_thread(h, other, begin_ns, end_ns, hops + 1, err));
    h->open.n = h->base;
    h->base = base;
    return RP_OK;
}

/* Closes spans that end so soon after a span begins that the clock cannot tell: the new span
   follows them and is not inside. */
static void close_before(struct rp_host_time *h, int64_t begin_ns, int64_t end_ns)
{
    int64_t until = rp_ns_sum(begin_ns, RP_CLOCK_RESOLUTION_NS);

    while (h->open.n > h->base && h->open.at[h->open.n - 1].end_ns < until &&
           h->open.at[h->open.n - 1].end_ns < end_ns)
        h->open.n--;
}

/* `hops`: how many threads were asked before this one. */
static enum rp_code walk_thread(struct rp_host_time *h, rp_track track, int64_t begin_ns,
                                int64_t end_ns, unsigned hops, struct rp_err *err)
{
    const struct rp_trace *t = h->t;
    const struct rp_track_info *info = &t->tracks[track];
    int64_t at = begin_ns;
    size_t e;

    RP_TRY(open_at(h, track, begin_ns, err));
    RP_LOWER_BOUND_FROM(e, info->first, info->end, t->ev.ts_ns[e] <= begin_ns);
    for (; e <= info->end; e++) {
        int64_t next = e < info->end && t->ev.ts_ns[e] < end_ns ? t->ev.ts_ns[e] : end_ns;
        int64_t until;

        while (h->open.n > h->base && h->open.at[h->open.n - 1].end_ns <= next) {
            until = h->open.at[h->open.n - 1].end_ns;
            RP_TRY(pass_time(h, track, at, until, hops, err));
            at = until > at ? until : at;
            h->open.n--;
        }
        RP_TRY(pass_time(h, track, at, next, hops, err));
        at = next;
        if (next == end_ns)
            break;
        /* if it crosses the end of the span around it, it counts until its own end */
        until = rp_event_end_ns(t, (rp_event)e);
        close_before(h, at, until);
        if (until > at && h->open.n < 2 * (size_t)RP_ANCESTORS_MAX)
            RP_TRY(push_span(h, (rp_event)e, until, err));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ names for the host's work */

/* The innermost name with at least half of the time, in few spans: a function that is called
   thousands of times is a helper. RP_NONE if there is none. Names are listed from the inside
   outwards, so among equal ones the first is the innermost. */
static enum rp_code main_span(struct rp_host_time *h, rp_event *out, struct rp_err *err)
{
    int64_t total = 0, least = INT64_MAX;

    *out = RP_NONE;
    if (!h->names.cap)
        RP_TRY(rp_vec_zeros(&h->names, h->t->str.n, err));
    h->named.n = 0;
    for (uint32_t i = 0; i < h->leaves.n; i++) {
        /* Add the time of a leaf to the names of all spans around it, once for each name. */
        const struct rp_host_leaf *leaf = &h->leaves.at[i];
        rp_event e = leaf->event;

        RP_FOR_ANCESTORS (h->t, e) {
            struct rp_host_name *name = &h->names.at[h->t->ev.name[e]];

            if (name->leaf == i + 1 || (rp_host_time_sign(h, e) & RP_SIGN_STEP))
                continue;
            if (!name->ns)
                RP_TRY(rp_vec_push(&h->named, e, err));
            name->spans += !name->ns || name->last != e;
            name->last = e;
            name->leaf = i + 1;
            rp_ns_add(&name->ns, leaf->ns);
        }

        rp_ns_add(&total, h->leaves.at[i].ns);
    }
    for (uint32_t i = 0; i < h->named.n; i++) {
        struct rp_host_name *name = &h->names.at[h->t->ev.name[h->named.at[i]]];

        if (name->ns >= total - total / 2 && name->ns < least && name->spans <= MOST_SPANS) {
            least = name->ns;
            *out = h->named.at[i];
        }
        *name = (struct rp_host_name){0};
    }
    return RP_OK;
}

/* The innermost span that runs longest. */
static rp_event longest_leaf(const struct rp_host_time *h)
{
    struct rp_host_leaf best = {RP_NONE, 0}, sum[8];
    size_t i, k, n = 0;

    for (i = 0; i < h->leaves.n; i++) {
        const struct rp_host_leaf *leaf = &h->leaves.at[i];

        for (k = 0; k < n && sum[k].event != leaf->event; k++)
            ;
        if (k == n && n == 8)
            k = n - 1; /* there are so many that none of them matters */
        if (k == n || sum[k].event != leaf->event)
            sum[k] = (struct rp_host_leaf){leaf->event, 0};
        n = k == n ? n + 1 : n;
        rp_ns_add(&sum[k].ns, leaf->ns);
        if (sum[k].ns > best.ns)
            best = sum[k];
    }
    return best.event;
}

/* ------------------------------------------------------------------ an interval */

enum rp_code rp_host_time_divide(struct rp_host_time *h, rp_track track, int64_t begin_ns,
                                 int64_t end_ns, struct rp_err *err)
{
    bool lasts = rp_ns_between(begin_ns, end_ns) >= RP_LONG_NS;
    rp_event host;

    h->segments.n = 0;
    h->leaves.n = 0;
    if (end_ns <= begin_ns)
        return RP_OK;
    h->open.n = h->base = 0;
    h->least_ns = lasts ? rp_ns_between(begin_ns, end_ns) / MINOR_PART : 0;
    RP_TRY(walk_thread(h, track, begin_ns, end_ns, 0, err));
    if (!lasts) {
        /* Keep one segment, with the cause that has most time. */
        int64_t sum[RP_GAP_CAUSES] = {0}, longest = 0;
        struct rp_host_segment *s = h->segments.at;
        struct rp_host_segment main = {begin_ns, end_ns, RP_NONE, RP_GAP_NOT_LAUNCHED};

        for (size_t i = 0; i < h->segments.n; i++) {
            rp_ns_add(&sum[s[i].cause], rp_ns_between(s[i].begin_ns, s[i].end_ns));
            main.cause = sum[s[i].cause] > sum[main.cause] ? s[i].cause : main.cause;
        }
        for (size_t i = 0; i < h->segments.n; i++)
            if (s[i].cause == main.cause && rp_ns_between(s[i].begin_ns, s[i].end_ns) > longest) {
                longest = rp_ns_between(s[i].begin_ns, s[i].end_ns);
                main.host = s[i].host;
            }
        if (main.cause == RP_GAP_NOT_LAUNCHED)
            main.host = longest_leaf(h);
        h->segments.n = 1;
        s[0] = main;

        return RP_OK;
    }
    RP_TRY(main_span(h, &host, err));
    if (host == RP_NONE)
        host = longest_leaf(h);
    for (size_t i = 0; i < h->segments.n; i++)
        if (h->segments.at[i].cause == RP_GAP_NOT_LAUNCHED) {
            h->segments.at[i].cause = host == RP_NONE ? RP_GAP_HOST_UNRECORDED : RP_GAP_HOST_WORK;
            h->segments.at[i].host = host;
        }
    return RP_OK;
}

/* ------------------------------------------------------------------ the threads */

/* Whether a thread has only runtime calls: XProf shows them on a line beside that of their
   thread. */
static bool has_calls_only(const struct rp_trace *t, rp_track track)
{
    rp_event e = t->tracks[track].first;

    while (e < t->tracks[track].end && (t->ev.kind[e] == RP_KIND_RUNTIME || t->ev.dur_ns[e] < 0))
        e++;
    return e == t->tracks[track].end;
}

static enum rp_code look_at_threads(struct rp_host_time *h, struct rp_err *err)
{
    uint32_t most = 0;

    h->busiest = RP_NONE;
    RP_TRY(rp_vec_zeros(&h->launches, h->t->ntracks, err));
    RP_TRY(rp_vec_zeros(&h->calls, h->t->str.n, err));
    for (rp_event e = 0; e < h->t->ev.n; e++) {
        h->calls.at[h->t->ev.name[e]]++;
        if (h->t->ev.kind[e] == RP_KIND_RUNTIME)
            h->launches.at[h->t->ev.track[e]] = 1;
    }
    for (rp_track track = 0; track < h->t->ntracks; track++) {
        uint32_t n = h->t->tracks[track].end - h->t->tracks[track].first;

        if (n > most && h->t->tracks[track].kind == RP_TRACK_THREAD &&
            !has_calls_only(h->t, track)) {
            most = n;
            h->busiest = track;
        }
    }
    return RP_OK;
}

enum rp_code rp_host_time_init(struct rp_host_time *h, const struct rp_trace *trace,
                               struct rp_err *err)
{
    *h = (struct rp_host_time){.t = trace, .loads = RP_NONE};
    RP_TRY(rp_call_work_init(&h->sizes, trace, err));
    h->marked = trace->nsteps && rp_step_source_is_mark(trace->steps[0].source);
    RP_TRY(rp_vec_nones(&h->sign, trace->str.n, err));

    /* Marks of steps by any name say nothing about what runs, like those of the profiler. */
    for (uint32_t i = 0; h->marked && i < h->t->nsteps; i++)
        if (h->t->steps[i].mark != RP_NONE) {
            rp_host_time_sign(h, h->t->steps[i].mark);
            h->sign.at[h->t->ev.name[h->t->steps[i].mark]] |= RP_SIGN_STEP;
        }

    return look_at_threads(h, err);
}

void rp_host_time_release(struct rp_host_time *h)
{
    rp_call_work_release(&h->sizes);
    rp_map_release(&h->stalls);
    rp_map_release(&h->medians);
    rp_map_release(&h->firsts);
    rp_vec_release(&h->sign);
    rp_vec_release(&h->launches);
    rp_vec_release(&h->calls);
    rp_vec_release(&h->median);
    rp_vec_release(&h->scratch);
    rp_vec_release(&h->open);
    rp_vec_release(&h->leaves);
    rp_vec_release(&h->segments);
    rp_vec_release(&h->names);
    rp_vec_release(&h->named);
}
