/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every invariant of a frozen trace: ranges (ranges.c), then what analyses rely on: canonical
 * order, parents that enclose, links that agree with their members. Linear.
 */
#include "trace/ranges.h"
#include "trace/trace_store.h"

static int64_t length_of(const struct rp_trace *t, rp_event e)
{
    return t->ev.flags[e] & RP_EVENT_UNENDED ? INT64_MAX : t->ev.dur_ns[e];
}

static enum rp_code check_order(const struct rp_trace *t, struct rp_err *err)
{
    for (rp_event e = 1; e < t->ev.n; e++) {
        if (t->ev.track[e] != t->ev.track[e - 1])
            continue;
        if (t->ev.ts_ns[e] < t->ev.ts_ns[e - 1] ||
            (t->ev.ts_ns[e] == t->ev.ts_ns[e - 1] && length_of(t, e) > length_of(t, e - 1)))
            return rp_trace_bad(t, err, "event %u is out of order: the previous one is later", e);
    }
    return RP_OK;
}

static enum rp_code check_parents(const struct rp_trace *t, struct rp_err *err)
{
    for (rp_event e = 0; e < t->ev.n; e++) {
        rp_event p = t->ev.parent[e];

        if (p == RP_NONE)
            continue;
        if (t->ev.track[p] != t->ev.track[e] || t->tracks[t->ev.track[e]].kind != RP_TRACK_THREAD)
            return rp_trace_bad(t, err, "parent %u of event %u is on another track", p, e);
        if (t->ev.ts_ns[p] > t->ev.ts_ns[e] || ((t->ev.flags[e] | t->ev.flags[p]) & RP_EVENT_ASYNC))
            return rp_trace_bad(t, err, "parent %u of event %u starts after it", p, e);
        if (!(t->ev.flags[p] & RP_EVENT_UNENDED) && rp_event_end_ns(t, e) > rp_event_end_ns(t, p))
            return rp_trace_bad(t, err, "parent %u of event %u ends before it", p, e);
    }
    return RP_OK;
}

static enum rp_code check_members(const struct rp_trace *t, struct rp_err *err)
{
    uint32_t i, k, linked = 0;

    for (i = 0; i < t->links.n; i++) {
        if (t->links.offset[i] == t->links.offset[i + 1])
            return rp_trace_bad(t, err, "link %u has no members", i);
        for (k = t->links.offset[i]; k < t->links.offset[i + 1]; k++)
            if (t->ev.link[t->links.member[k]] != i)
                return rp_trace_bad(t, err,
                                    "event %u is a member of link %u but does not refer to it",
                                    t->links.member[k], i);
    }
    for (rp_event e = 0; e < t->ev.n; e++)
        linked += t->ev.link[e] != RP_NONE;
    if (linked != t->links.offset[t->links.n])
        return rp_trace_bad(t, err, "%u events have a link, the links have %u", linked,
                            t->links.offset[t->links.n]);
    return RP_OK;
}

static enum rp_code check_samples(const struct rp_trace *t, struct rp_err *err)
{
    const struct rp_call_samples *s = &t->samples;

    for (uint32_t i = 1; i < s->n; i++)
        if (s->track[i] < s->track[i - 1] ||
            (s->track[i] == s->track[i - 1] && s->ts_ns[i] < s->ts_ns[i - 1]))
            return rp_trace_bad(t, err, "sample %u is out of order: the previous one is later", i);
    return RP_OK;
}

enum rp_code rp_trace_validate(const struct rp_trace *t, struct rp_err *err)
{
    RP_TRY(rp_trace_require(t, RP_NEED_ALL, err));
    if (!t->store->bytes) { /* else checked just now */
        RP_TRY(rp_ranges_strings(t, err));
        RP_TRY(rp_ranges_tables(t, err));
        RP_TRY(rp_ranges_events(t, err));
        RP_TRY(rp_ranges_args(t, err));
        RP_TRY(rp_ranges_links(t, t->links.offset[t->links.n], err));
        RP_TRY(rp_ranges_flows(t, err));
        RP_TRY(rp_ranges_samples(t, err));
    }
    RP_TRY(check_order(t, err));
    RP_TRY(check_parents(t, err));
    RP_TRY(check_members(t, err));
    RP_TRY(check_samples(t, err));

    for (uint32_t i = 1; i < t->nsteps; i++)
        if (t->steps[i].begin_ns < t->steps[i - 1].begin_ns)
            return rp_trace_bad(t, err, "step %u begins before the previous one", i);
    for (uint32_t i = 0; i < t->flows.n; i++)
        if (t->flows.event[i] != RP_NONE && t->ev.track[t->flows.event[i]] != t->flows.track[i])
            return rp_trace_bad(t, err, "arrow %u is bound to another track", i);
    return RP_OK;
}
