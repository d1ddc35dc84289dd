/* SPDX-License-Identifier: Apache-2.0 */
/* Medians by name are computed when first needed. */
#include "facts/work/call_work.h"

#include "base/decides.h"
#include "facts/host/signs.h"
#include "facts/ranks/collective_args.h"
#include "facts/times/durations.h"
#include "facts/times/intervals.h"

#define LARGER 8
RP_DECISION(
    LARGER, "times",
    "as many elements as usual explain a longer call, if it is not that many times longer still",
    "facts/more_elements_explain_a_longer_call");
#define ELEMENT_NS 20
RP_DECISION(ELEMENT_NS, "ns", "a core needs at most this for an element, also where it converts it",
            "facts/more_elements_explain_a_longer_call");

int64_t rp_dims_elements(const char *dims)
{
    int64_t sum, tensors;

    return rp_coll_count_elements(dims, &sum, &tensors) ? sum : INT64_MAX;
}

static int64_t elements_of(const struct rp_call_work *w, rp_event e)
{
    rp_str text;

    return rp_arg_key_text(&w->dims, e, &text) ? rp_dims_elements(rp_trace_str(w->t, text)) : -1;
}

static int64_t median_of(int64_t *values, size_t n)
{
    rp_ns_sort(values, n);
    return n ? values[n / 2] : 0;
}

/* The medians, over calls of a name, of their elements and of their lengths. */
static enum rp_code find_usual(struct rp_call_work *w, rp_str name, struct rp_usual_input *out,
                               struct rp_err *err)
{
    const struct rp_events *ev = &w->t->ev;

    w->elements.n = w->durs_ns.n = 0;
    for (rp_event e = 0; e < ev->n; e++) {
        int64_t n = ev->name[e] == name && ev->dur_ns[e] >= 0 ? elements_of(w, e) : -1;

        if (n < 0)
            continue;
        RP_TRY(rp_vec_push(&w->elements, n, err));
        RP_TRY(rp_vec_push(&w->durs_ns, ev->dur_ns[e], err));
    }
    out->elements = median_of(w->elements.at, w->elements.n);
    out->dur_ns = median_of(w->durs_ns.at, w->durs_ns.n);
    return RP_OK;
}

/* Whether an operator computes by itself on the host, because it calls nothing. */
static bool computes_on_host(const struct rp_trace *t, rp_event e)
{
    return t->ev.kind[e] == RP_KIND_CPU_OP &&
           (e + 1 >= t->tracks[t->ev.track[e]].end || t->ev.parent[e + 1] != e);
}

/* Whether a call computes on the host as long as a core needs for its elements, and no other call
   of its name does as much in far less time: a view of a large array takes no longer than one of a
   small array. */
static bool fills_its_time(const struct rp_call_work *w, rp_event call, int64_t elements)
{
    const struct rp_events *ev = &w->t->ev;
    int64_t dur = ev->dur_ns[call];

    if (!computes_on_host(w->t, call) || elements < dur / ELEMENT_NS)
        return false;
    for (rp_event e = 0; e < ev->n; e++)
        if (ev->name[e] == ev->name[call] && ev->dur_ns[e] >= 0 && ev->dur_ns[e] < dur / LARGER &&
            computes_on_host(w->t, e) && elements_of(w, e) >= elements / 2)
            return false;
    return true;
}

enum rp_code rp_call_has_more_work(struct rp_call_work *w, rp_event call, bool *out,
                                   struct rp_err *err)
{
    rp_str name = w->t->ev.name[call];
    uint32_t fresh = (uint32_t)w->usual.n, at;
    struct rp_usual_input usual = {0, 0};
    int64_t elements = w->dims.key == RP_NONE ? -1 : elements_of(w, call);

    *out = elements > 0 && fills_its_time(w, call, elements);
    if (*out || elements <= 0)
        return RP_OK;
    RP_TRY(rp_map_intern(&w->names, name, fresh, &at, err));
    if (at == fresh) {
        RP_TRY(find_usual(w, name, &usual, err));
        RP_TRY(rp_vec_push(&w->usual, usual, err));
    }
    usual = w->usual.at[at];
    if (usual.elements <= 0 || usual.dur_ns <= 0)
        return RP_OK;
    double larger = (double)elements / (double)usual.elements;
    double longer = (double)w->t->ev.dur_ns[call] / (double)usual.dur_ns;
    *out = larger >= LARGER && larger >= longer / LARGER;
    return RP_OK;
}

bool rp_call_time_varies(uint8_t kind, unsigned signs)
{
    return kind == RP_KIND_PYTHON && !(signs & RP_SIGN_GARBAGE);
}

enum rp_code rp_call_work_init(struct rp_call_work *w, const struct rp_trace *trace,
                               struct rp_err *err)
{
    *w = (struct rp_call_work){.t = trace};
    return rp_arg_key_init_dims(&w->dims, trace, err);
}

void rp_call_work_release(struct rp_call_work *w)
{
    rp_arg_key_release(&w->dims);
    rp_map_release(&w->names);
    rp_vec_release(&w->usual);
    rp_vec_release(&w->elements);
    rp_vec_release(&w->durs_ns);
}

/* The copy with whose end a call returned, or RP_NONE. */
static rp_event awaited_copy(const struct rp_trace *trace, rp_event call)
{
    uint32_t link = trace->ev.link[call], i;
    int64_t end = rp_event_end_ns(trace, call);

    for (i = link == RP_NONE ? 0 : trace->links.offset[link];
         link != RP_NONE && i < trace->links.offset[link + 1]; i++) {
        rp_event copy = trace->links.member[i];
        int64_t copied = rp_event_end_ns(trace, copy);

        if (trace->ev.kind[copy] == RP_KIND_MEMCPY &&
            trace->ev.ts_ns[copy] >= trace->ev.ts_ns[call] && copied <= end &&
            rp_ns_between(copied, end) <= RP_WAKE_UP_NS)
            return copy;
    }
    return RP_NONE;
}

bool rp_call_waits_for_copy(const struct rp_trace *trace, rp_event call)
{
    return awaited_copy(trace, call) != RP_NONE;
}

bool rp_call_waits_for_result(const struct rp_trace *trace, rp_event call,
                              const rp_interval_vec *busy)
{
    int64_t begin = trace->ev.ts_ns[call], end = rp_event_end_ns(trace, call), others;
    rp_event copy = awaited_copy(trace, call);

    if (copy == RP_NONE)
        return false;
    others = rp_union_covers(busy->at, busy->n, begin, trace->ev.ts_ns[copy]);
    return rp_ns_between(others, rp_ns_between(begin, end)) <= rp_ns_between(begin, end) / 10;
}
