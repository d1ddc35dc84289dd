/* SPDX-License-Identifier: Apache-2.0 */
/* Compute, copies and gaps each do not overlap, so the walk is linear in them. */
#include "explain/comm/leads.h"

#include "base/filled.h"
#include "base/order.h"
#include "facts/host/waits.h"
#include "facts/work/attribution.h"
#include "result/part.h"

#define LEAD(member) RP_PART_PLAIN(struct rp_comm_lead, member)

static const struct rp_field lead_fields[] = {LEAD(since_ns),
                                              LEAD(compute_ns),
                                              LEAD(copy_ns),
                                              LEAD(idle_ns),
                                              LEAD(overlap_ns),
                                              RP_PART_TEXT(struct rp_comm_lead, kernel),
                                              RP_PART_TEXT(struct rp_comm_lead, idle),
                                              RP_PART_TEXT(struct rp_comm_lead, evidence),
                                              RP_PART_END};
const struct rp_type rp_comm_lead_type = {"lead", sizeof(struct rp_comm_lead), lead_fields, NULL};

struct host_span {
    int64_t begin_ns;
    rp_event event;
};

struct leads {
    const struct rp_work *work;
    const struct rp_work_unions *unions;
    const rp_gap_vec *gaps;
    struct rp_arena *arena;
    RP_VEC(uint8_t) step_name; /* by string: whether it is the name of a step */
    RP_VEC(struct host_span)
    host; /* used without device work: waits and ranges of threads that work */
};

RP_ORDER(by_begin, struct host_span, RP_UP(begin_ns), RP_UP(event))

enum rp_code rp_leads_unite_host(const struct rp_trace *t, const struct rp_collectives *c,
                                 struct rp_work_unions *out, struct rp_err *err)
{
    rp_interval_vec *compute = &out->cls[RP_WORK_COMPUTE];
    RP_SCOPED(rp_map_release) struct rp_map callers = {0};

    /* Operators that are a collective or wait for one inside are not compute. */
    for (size_t i = 0; i < c->list.n; i++)
        for (rp_event e = c->list.at[i].event; e != RP_NONE; e = t->ev.parent[e])
            RP_TRY(rp_map_put(&callers, e, 1, err));

    if (!t->totals.count[RP_KIND_CPU_OP])
        RP_TRY(rp_ranges_unite(t, NULL, compute, err));
    for (rp_track track = 0; track < t->ntracks && t->totals.count[RP_KIND_CPU_OP]; track++) {
        if (t->tracks[track].kind != RP_TRACK_THREAD)
            continue;
        for (rp_event e = t->tracks[track].first; e < t->tracks[track].end; e++) {
            struct rp_interval x = {t->ev.ts_ns[e], rp_event_end_ns(t, e)};

            if (t->ev.kind[e] == RP_KIND_CPU_OP && x.begin_ns != RP_NO_TS && t->ev.dur_ns[e] >= 0 &&
                rp_map_get(&callers, e) == RP_MAP_NONE)
                RP_TRY(rp_vec_push(compute, x, err));
        }
    }
    if (compute->n)
        compute->n = rp_union_sort(compute->at, compute->n);
    for (size_t i = 0; i < compute->n; i++)
        RP_TRY(rp_union_add(&out->all, compute->at[i].begin_ns, compute->at[i].end_ns, err));
    return RP_OK;
}

static const char *event_name(const struct leads *l, rp_event e)
{
    rp_str s = l->work->trace->ev.name[e];

    return rp_arena_copy(l->arena, rp_trace_str(l->work->trace, s),
                         rp_trace_str_len(l->work->trace, s));
}

/* Whether an event tells what ran; a mark of a step does not. */
static bool is_telling(const struct leads *l, rp_event e)
{
    const struct rp_trace *t = l->work->trace;

    if (t->ev.kind[e] == RP_KIND_WAIT)
        return rp_event_is_host_wait(t, e);
    return t->ev.kind[e] == RP_KIND_ANNOTATION && t->ev.dur_ns[e] >= 0 &&
           t->ev.ts_ns[e] != RP_NO_TS && !rp_event_is_host_collective(t, e) &&
           !l->step_name.at[t->ev.name[e]];
}

static enum rp_code list_host(struct leads *l, struct rp_err *err)
{
    const struct rp_trace *t = l->work->trace;

    if (l->work->items.n)
        return RP_OK;
    RP_TRY(rp_vec_zeros(&l->step_name, t->str.n, err));
    for (uint32_t i = 0; i < t->nsteps; i++)
        l->step_name.at[t->steps[i].name] = 1;
    for (rp_track track = 0; track < t->ntracks; track++) {
        if (t->tracks[track].kind != RP_TRACK_THREAD || rp_track_is_worker(t, track))
            continue;
        for (rp_event e = t->tracks[track].first; e < t->tracks[track].end; e++)
            if (is_telling(l, e))
                RP_TRY(rp_vec_push(&l->host, ((struct host_span){t->ev.ts_ns[e], e}), err));
    }
    rp_sort(l->host.at, l->host.n, sizeof *l->host.at, by_begin);
    return RP_OK;
}

/* The longest wait (or range) that starts in [from, to), or RP_NONE. */
static rp_event longest_host(const struct leads *l, int64_t from_ns, int64_t to_ns, bool wait)
{
    const struct rp_trace *t = l->work->trace;
    rp_event best = RP_NONE;
    size_t i;

    RP_LOWER_BOUND(i, l->host.n, l->host.at[i].begin_ns < from_ns);
    for (; i < l->host.n && l->host.at[i].begin_ns < to_ns; i++) {
        rp_event e = l->host.at[i].event;

        if ((t->ev.kind[e] == RP_KIND_WAIT) == wait &&
            (best == RP_NONE || t->ev.dur_ns[e] > t->ev.dur_ns[best]))
            best = e;
    }
    return best;
}

/* The longest compute that starts in [from, to). */
static const char *longest_kernel(const struct leads *l, int64_t from_ns, int64_t to_ns)
{
    const struct rp_work_item *items = l->work->items.at, *best = NULL;
    size_t i;

    RP_LOWER_BOUND(i, l->work->items.n, items[i].begin_ns < from_ns);
    for (; i < l->work->items.n && items[i].begin_ns < to_ns; i++)
        if (items[i].cls == RP_WORK_COMPUTE &&
            (!best || rp_ns_between(items[i].begin_ns, items[i].end_ns) >
                          rp_ns_between(best->begin_ns, best->end_ns)))
            best = &items[i];
    return best ? event_name(l, best->event) : NULL;
}

/* Finds the cause with most of the idle time in [from, to), and the host span of its longest
   gap. */
static void find_idle_cause(const struct leads *l, int64_t from_ns, int64_t to_ns,
                            struct rp_comm_lead *lead)
{
    int64_t sum[RP_GAP_CAUSES] = {0}, longest[RP_GAP_CAUSES] = {0};
    rp_event host[RP_GAP_CAUSES];
    size_t i, c, best = RP_GAP_CAUSES;

    RP_LOWER_BOUND(i, l->gaps->n, l->gaps->at[i].end_ns <= from_ns);
    for (; i < l->gaps->n && l->gaps->at[i].begin_ns < to_ns; i++) {
        const struct rp_gap *g = &l->gaps->at[i];
        int64_t ns = rp_ns_common(g->begin_ns, g->end_ns, from_ns, to_ns);

        rp_ns_add(&sum[g->cause], ns);
        if (ns > longest[g->cause]) {
            longest[g->cause] = ns;
            host[g->cause] = g->host;
        }
    }
    for (c = 0; c < RP_GAP_CAUSES; c++)
        if (sum[c] > 0 && (best == RP_GAP_CAUSES || sum[c] > sum[best]))
            best = c;
    if (best == RP_GAP_CAUSES)
        return;
    lead->idle = rp_gap_cause_names[best];
    if (host[best] != RP_NONE)
        lead->evidence = event_name(l, host[best]);
}

static int64_t covered(const rp_interval_vec *u, int64_t from_ns, int64_t to_ns)
{
    return from_ns < to_ns ? rp_union_covers(u->at, u->n, from_ns, to_ns) : 0;
}

static void fill_lead(const struct leads *l, const struct rp_collective *c,
                      struct rp_comm_lead *lead)
{
    const rp_interval_vec *compute = &l->unions->cls[RP_WORK_COMPUTE];
    int64_t from = lead->since_ns, busy = covered(&l->unions->all, from, c->begin_ns);

    lead->compute_ns = covered(compute, from, c->begin_ns);
    lead->copy_ns = rp_ns_between(lead->compute_ns, busy);
    if (c->begin_ns > from)
        lead->idle_ns = rp_ns_between(busy, rp_ns_between(from, c->begin_ns));
    lead->overlap_ns = covered(compute, c->begin_ns, c->end_ns);
    lead->kernel = longest_kernel(l, from, c->begin_ns);
    find_idle_cause(l, from, c->begin_ns, lead);
    if (l->host.n) {
        /* Without device work: finds what ran longest, and which wait was longest. */
        int64_t to_ns = c->begin_ns;
        rp_event range = longest_host(l, from, to_ns, false);
        rp_event wait = longest_host(l, from, to_ns, true);

        if (range != RP_NONE)
            lead->kernel = event_name(l, range);
        if (wait != RP_NONE) {
            lead->idle = rp_gap_cause_names[RP_GAP_HOST_WAIT];
            lead->evidence = event_name(l, wait);
        }
    }
}

enum rp_code rp_leads_find(const struct rp_work *work, const struct rp_work_unions *unions,
                           const rp_gap_vec *gaps, const struct rp_collectives *c,
                           struct rp_arena *arena, struct rp_comm_lead **out, struct rp_err *err)
{
    struct leads l = {.work = work, .unions = unions, .gaps = gaps, .arena = arena};
    int64_t free_ns = c->list.n ? c->list.at[0].begin_ns : 0;

    *out = RP_ARENA_NEW(arena, struct rp_comm_lead, c->list.n + 1);
    RP_TRY(rp_err_need(*out, err, "looking at collectives"));
    enum rp_code code = list_host(&l, err);
    if (unions->all.n && unions->all.at[0].begin_ns < free_ns)
        free_ns = unions->all.at[0].begin_ns;
    for (size_t i = 0; i < c->list.n && code == RP_OK; i++) {
        const struct rp_collective *at = &c->list.at[i];

        (*out)[i].since_ns = free_ns;
        fill_lead(&l, at, &(*out)[i]);
        free_ns = at->end_ns > free_ns ? at->end_ns : free_ns;
    }
    rp_vec_release(&l.host);
    rp_vec_release(&l.step_name);
    RP_TRY(code);
    return rp_arena_check(arena, "looking at collectives", err);
}
