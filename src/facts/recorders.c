/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the clocks of two recorders of one process. Everything except sorting is linear; both
 * traces are in memory.
 */
#include "facts/recorders.h"
#include "base/decides.h"
#include "base/hash.h"
#include "base/order.h"
#include "base/vec.h"
#include "facts/times/durations.h"
#include "trace/device_calls.h"

#include <stdlib.h>
#include <string.h>

#define MATCHED_MIN 3
RP_DECISION(MATCHED_MIN, "launches or spans", "two may agree by chance, and have no median",
            "facts/three_names_are_enough");

struct launch { /* launch: of the host, with its work on the device's clock */
    int64_t call_ns, call_end_ns, start_ns, end_ns;
    int64_t last_ns; /* the last end of work of this launch and earlier ones */
    bool waits;      /* the call returns after the work */
};

struct launches {
    RP_VEC(struct launch) at;
    size_t work;   /* device work with an id */
    size_t unlike; /* a copy for a kernel … */
    size_t own;    /* amount of work whose launch is in its own recording */
};

struct side { /* side: the recording of the device, and the other one */
    const struct rp_trace *host, *device;
    bool swapped; /* the first trace is that of the device */
};

const char *rp_recorders_word(enum rp_recorders_by by)
{
    static const char *const words[] = {"none", "correlation", "names", "wall clock"};

    return words[by];
}

void rp_recorders_release(struct rp_recorders *r)
{
    for (int i = 0; i < 2; i++) {
        free(r->keep[i]);
        free(r->keep_flows[i]);
    }
    *r = (struct rp_recorders){0};
}

/* ------------------------------------------------------------------ by ids */

/* Differences wrap around, because damaged files may have any times. */
static int64_t minus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static bool is_linked(const struct rp_trace *t, rp_event e, uint8_t kind)
{
    rp_link link = t->ev.link[e];

    return link != RP_NONE && t->ev.kind[e] == kind &&
           t->links.source[link] == RP_LINK_CORRELATION &&
           !(t->ev.flags[e] & (RP_EVENT_ID_TEXT | RP_EVENT_ASYNC));
}

/* The kind of work that a call of this name launches. */
static uint8_t launched_kind(const char *name)
{
    uint16_t does = rp_device_call_does(name);

    return does & RP_DOES_COPY  ? RP_KIND_MEMCPY
           : does & RP_DOES_SET ? RP_KIND_MEMSET
                                : RP_KIND_KERNEL;
}

static enum rp_code map_calls(const struct rp_trace *t, struct rp_map *calls, struct rp_err *err)
{
    for (rp_event e = 0; e < t->ev.n; e++)
        if (is_linked(t, e, RP_KIND_RUNTIME))
            RP_TRY(rp_map_put(calls, (uint64_t)t->links.native_id[t->ev.link[e]], e, err));
    return RP_OK;
}

static void count_own(const struct rp_trace *t, rp_event e, struct launches *out)
{
    rp_link link = t->ev.link[e];

    for (uint32_t k = t->links.offset[link]; k < t->links.offset[link + 1]; k++)
        if (t->ev.kind[t->links.member[k]] == RP_KIND_RUNTIME) {
            out->own++;
            return;
        }
}

static enum rp_code add_launch(const struct side *s, const struct rp_map *calls, rp_event work,
                               struct launches *out, struct rp_err *err)
{
    const struct rp_trace *h = s->host, *d = s->device;
    rp_event call = rp_map_get(calls, (uint64_t)d->links.native_id[d->ev.link[work]]);

    out->work++;
    count_own(d, work, out);
    if (call == RP_MAP_NONE)
        return RP_OK;
    const char *name = rp_trace_str(h, h->ev.name[call]);
    out->unlike += launched_kind(name) != d->ev.kind[work];
    return rp_vec_push(&out->at,
                       ((struct launch){.call_ns = h->ev.ts_ns[call],
                                        .call_end_ns = rp_event_end_ns(h, call),
                                        .start_ns = d->ev.ts_ns[work],
                                        .end_ns = rp_event_end_ns(d, work),
                                        .waits = rp_device_call_does(name) & RP_DOES_BLOCK}),
                       err);
}

RP_ORDER(by_call, struct launch, RP_UP(call_ns))

static enum rp_code find_launches(const struct side *s, struct launches *out, struct rp_err *err)
{
    const struct rp_trace *d = s->device;
    struct rp_map calls = {0};
    enum rp_code code = map_calls(s->host, &calls, err);

    for (rp_event e = 0; code == RP_OK && e < d->ev.n; e++)
        if (rp_kind_is_device_work(d->ev.kind[e]) && is_linked(d, e, d->ev.kind[e]))
            code = add_launch(s, &calls, e, out, err);
    rp_map_release(&calls);
    rp_sort(out->at.at, out->at.n, sizeof *out->at.at, by_call);
    return code;
}

/* Ids of two tools are the same only if one counter made both: nearly all work must find its call,
   and a call that can have launched it. Work whose launch is in its own recording needs none. */
static bool ids_agree(const struct launches *l)
{
    return l->at.n >= MATCHED_MIN && (l->work - l->at.n) * 10 <= l->work &&
           l->unlike * 10 <= l->at.n && l->own * 10 <= l->work;
}

static void bound(const struct rp_trace *h, struct launches *l, int64_t *low, int64_t *high)
{
    *low = INT64_MIN;
    *high = INT64_MAX;
    for (size_t i = 0; i < l->at.n; i++) {
        struct launch *at = &l->at.at[i];

        if (minus(at->call_ns, at->start_ns) > *low)
            *low = minus(at->call_ns, at->start_ns);
        if (at->waits && minus(at->call_end_ns, at->end_ns) < *high)
            *high = minus(at->call_end_ns, at->end_ns);
        at->last_ns = i && at[-1].last_ns > at->end_ns ? at[-1].last_ns : at->end_ns;
    }

    /* Bound the offset that converts the device's clock to the host's. Work that was launched
       before a call that waits for the device ended before the call did. */
    for (rp_event e = 0; e < h->ev.n; e++) {
        size_t lo = 0, hi = l->at.n;

        if (h->ev.kind[e] != RP_KIND_RUNTIME ||
            !(rp_device_call_does(rp_trace_str(h, h->ev.name[e])) & RP_DOES_AWAIT_DEVICE) ||
            h->ev.dur_ns[e] < 0)
            continue;
        while (lo < hi) {
            size_t mid = (lo + hi) / 2;

            if (l->at.at[mid].call_end_ns <= h->ev.ts_ns[e])
                lo = mid + 1;
            else
                hi = mid;
        }
        if (lo && minus(rp_event_end_ns(h, e), l->at.at[lo - 1].last_ns) < *high)
            *high = minus(rp_event_end_ns(h, e), l->at.at[lo - 1].last_ns);
    }
}

static enum rp_code align_by_ids(const struct side *s, struct rp_recorders *out, struct rp_err *err)
{
    struct launches l = {0};
    enum rp_code code = find_launches(s, &l, err);
    int64_t low, high;

    if (code == RP_OK && ids_agree(&l)) {
        bound(s->host, &l, &low, &high);

        bool open = high == INT64_MAX;
        int64_t width = minus(high, low), middle = open ? low : minus(low, -(width / 2));
        out->contradiction = !open && low > high;
        out->uncertainty_ns = open ? RP_NO_TS : width < 0 ? -(width / 2) : width / 2;
        out->offset_ns = s->swapped ? minus(0, middle) : middle;
        out->low_ns = !s->swapped ? low : open ? RP_NO_TS : minus(0, high);
        out->high_ns = s->swapped ? minus(0, low) : open ? RP_NO_TS : high;
        out->by = RP_RECORDERS_IDS;
        out->matched = l.at.n;
        out->same_ids = true;
    }
    rp_vec_release(&l.at);
    return code;
}

/* ------------------------------------------------------------------ by names */

static bool is_host_span(const struct rp_trace *t, rp_event e)
{
    uint8_t kind = t->ev.kind[e];

    return (kind == RP_KIND_CPU_OP || kind == RP_KIND_ANNOTATION || kind == RP_KIND_RUNTIME ||
            kind == RP_KIND_COMM_OP) &&
           t->ev.dur_ns[e] >= 0 && t->ev.ts_ns[e] != RP_NO_TS;
}

struct named { /* named: a span; of both traces, ordered by name and time */
    uint64_t name;
    int64_t ns;
    rp_event event;
    uint8_t trace;
};

RP_ORDER(by_name, struct named, RP_UP(name), RP_UP(trace), RP_UP(ns), RP_UP(event))
RP_ORDER(by_size, int64_t, RP_COMPARE(*a, *b))

typedef RP_VEC(struct named) named_vec;

static enum rp_code list_spans(const struct rp_trace *t, uint8_t trace, named_vec *out,
                               struct rp_err *err)
{
    for (rp_event e = 0; e < t->ev.n; e++)
        if (is_host_span(t, e))
            RP_TRY(rp_vec_push(out,
                               ((struct named){rp_hash_bytes(rp_trace_str(t, t->ev.name[e]),
                                                             rp_trace_str_len(t, t->ev.name[e])),
                                               t->ev.ts_ns[e], e, trace}),
                               err));
    return RP_OK;
}

/* Pairs the spans of a name that both have equally often; the span of the device's recorder is left
   out. */
static void pair_name(const struct side *s, const struct named *at, size_t n,
                      struct rp_recorders *out, int64_t *differences, size_t *ndifferences)
{
    const struct rp_trace *const first = s->swapped ? s->device : s->host;
    int device = s->swapped ? 0 : 1;
    size_t half = n / 2;

    if (n % 2 || !half || at[half - 1].trace != 0 || at[half].trace != 1)
        return;
    for (size_t i = 0; i < half; i++) {
        differences[(*ndifferences)++] = minus(at[i].ns, at[half + i].ns);
        if (first->ev.kind[at[i].event] != RP_KIND_RUNTIME)
            out->keep[device][at[device ? half + i : i].event] = 0;
    }
}

/* The middle of the differences, and how far the middle 80 % of them are from it. */
static void judge_names(int64_t *differences, size_t n, struct rp_recorders *out)
{
    if (n < MATCHED_MIN)
        return;
    qsort(differences, n, sizeof *differences, by_size);
    int64_t low = differences[n / 10];
    int64_t high = differences[n - 1 - n / 10];
    int64_t middle = differences[n / 2];
    if (minus(high, low) < 0 || minus(high, low) > RP_LONG_NS) /* chance */
        return;
    out->by = RP_RECORDERS_NAMES;
    out->matched = n;
    out->offset_ns = middle;
    out->low_ns = low;
    out->high_ns = high;
    out->uncertainty_ns = middle - low > high - middle ? middle - low : high - middle;
    if (out->uncertainty_ns < RP_CLOCK_RESOLUTION_NS)
        out->uncertainty_ns = RP_CLOCK_RESOLUTION_NS;
}

static enum rp_code align_by_names(const struct side *s, const struct rp_trace *const traces[2],
                                   struct rp_recorders *out, struct rp_err *err)
{
    named_vec spans = {0};
    int64_t *differences = NULL;
    size_t n = 0, i, k;
    enum rp_code code = list_spans(traces[0], 0, &spans, err);

    if (code == RP_OK)
        code = list_spans(traces[1], 1, &spans, err);
    if (code == RP_OK) {
        differences = malloc((spans.n + 1) * sizeof *differences);
        code = rp_err_need(differences, err, "joining recorders");
    }
    if (code == RP_OK)
        rp_sort(spans.at, spans.n, sizeof *spans.at, by_name);
    for (i = 0; code == RP_OK && i < spans.n; i += k) {
        for (k = 1; i + k < spans.n && spans.at[i + k].name == spans.at[i].name;)
            k++;
        pair_name(s, &spans.at[i], k, out, differences, &n);
    }
    if (code == RP_OK)
        judge_names(differences, n, out);
    if (out->by != RP_RECORDERS_NAMES)
        for (int t = 0; t < 2; t++)
            memset(out->keep[t], 1, (size_t)traces[t]->ev.n + 1);
    free(differences);
    rp_vec_release(&spans);
    return code;
}

/* ------------------------------------------------------------------ by the time of day */

static void align_by_wall(const struct rp_trace *const traces[2], struct rp_recorders *out)
{
    const struct rp_totals *a = &traces[0]->totals, *b = &traces[1]->totals;
    int64_t offset;

    if (!traces[0]->has_base || !traces[1]->has_base ||
        __builtin_sub_overflow(traces[1]->base_ns, traces[0]->base_ns, &offset))
        return;
    if (minus(b->span_begin_ns, -offset) > a->span_end_ns ||
        minus(b->span_end_ns, -offset) < a->span_begin_ns)
        return;
    out->by = RP_RECORDERS_WALL;
    out->offset_ns = offset;
    out->uncertainty_ns = out->low_ns = out->high_ns = RP_NO_TS;
}

/* ------------------------------------------------------------------ both */

static bool has_device_work(const struct rp_trace *t)
{
    return t->totals.count[RP_KIND_KERNEL] + t->totals.count[RP_KIND_MEMCPY] +
               t->totals.count[RP_KIND_MEMSET] >
           0;
}

static enum rp_code keep_all(const struct rp_trace *t, uint8_t **keep, struct rp_err *err)
{
    *keep = malloc((size_t)t->ev.n + 1);
    RP_TRY(rp_err_need(*keep, err, "joining recorders"));
    memset(*keep, 1, (size_t)t->ev.n + 1);
    return RP_OK;
}

/* If both recorded the runtime calls, those of the device's recorder are kept, because it has the
   launches. */
static void keep_one_runtime(const struct side *s, struct rp_recorders *out)
{
    if (out->same_ids || !s->device->totals.count[RP_KIND_RUNTIME])
        return;
    for (rp_event e = 0; e < s->host->ev.n; e++)
        if (s->host->ev.kind[e] == RP_KIND_RUNTIME)
            out->keep[s->swapped][e] = 0;
}

/* Arrows to and from spans that are left out are left out, too. */
static enum rp_code keep_arrows(const struct rp_trace *t, const uint8_t *keep, uint8_t **flows,
                                struct rp_err *err)
{
    *flows = malloc((size_t)t->flows.n + 1);
    RP_TRY(rp_err_need(*flows, err, "joining recorders"));
    for (uint32_t i = 0; i < t->flows.n; i++)
        (*flows)[i] = t->flows.event[i] == RP_NONE || keep[t->flows.event[i]];
    return RP_OK;
}

enum rp_code rp_recorders_align(const struct rp_trace *const traces[2], struct rp_recorders *out,
                                struct rp_err *err)
{
    bool first = has_device_work(traces[0]), second = has_device_work(traces[1]);
    struct side s = {.host = traces[first], .device = traces[!first], .swapped = first};

    *out = (struct rp_recorders){0};
    if (first && second)
        return rp_err_set(err, RP_UNSUPPORTED,
                          "both recordings have device work, so one of them is enough: to take its "
                          "host side only, use 'reprise convert --kinds cpu_op,annotation'");
    RP_TRY(keep_all(traces[0], &out->keep[0], err));
    RP_TRY(keep_all(traces[1], &out->keep[1], err));
    if (first || second)
        RP_TRY(align_by_ids(&s, out, err));
    if (!out->by)
        RP_TRY(align_by_names(&s, traces, out, err));
    if (!out->by)
        align_by_wall(traces, out);
    if (!out->by)
        return rp_err_set(
            err, RP_UNSUPPORTED,
            "nothing ties the clocks of the two recordings: no call in one launched work in the "
            "other (by correlation ids), they share no host spans, and they do not both say what "
            "time of day it was in a common period. Record launches or ranges (NVTX, roctx) with "
            "both");
    if (first || second)
        keep_one_runtime(&s, out);
    RP_TRY(keep_arrows(traces[0], out->keep[0], &out->keep_flows[0], err));
    return keep_arrows(traces[1], out->keep[1], &out->keep_flows[1], err);
}
