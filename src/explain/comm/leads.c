/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a rank: its collectives, and for each what the rank did since the end of the one
 * before (compute, copies, idle by cause). These times do not overlap, so the walk is linear in
 * gaps and kernels. Without device work, host operators stand in for compute.
 */
#include "explain/comm/comm.h"

#include "base/order.h"

#include <string.h>

struct leads {
    const struct rp_trace *t;
    struct rp_arena *arena;
    struct rp_comm_lane *out;
    struct rp_work work;
    struct rp_work_unions unions;
    rp_gap_vec gaps;
};

static bool on_collective_thread(const struct rp_comm_lane *p, const struct rp_trace *t,
                                 rp_track track)
{
    size_t i;

    for (i = 0; i < p->comm.list.n; i++)
        if (t->ev.track[p->comm.list.at[i].event] == track)
            return true;
    return false;
}

/* Operators of threads that run no collectives are the compute of a host. */
static enum rp_code unite_host(struct leads *l, struct rp_err *err)
{
    rp_interval_vec *compute = &l->unions.cls[RP_WORK_COMPUTE];
    const struct rp_trace *t = l->t;
    rp_track track;
    rp_event e;
    size_t i;

    for (track = 0; track < t->ntracks; track++) {
        if (t->tracks[track].kind != RP_TRACK_THREAD || on_collective_thread(l->out, t, track))
            continue;
        for (e = t->tracks[track].first; e < t->tracks[track].end; e++) {
            struct rp_interval x = {t->ev.ts_ns[e], rp_event_end_ns(t, e)};

            if (t->ev.kind[e] == RP_KIND_CPU_OP && x.begin_ns != RP_NO_TS && t->ev.dur_ns[e] >= 0)
                RP_TRY(rp_vec_push(compute, x, err));
        }
    }
    if (compute->n)
        compute->n = rp_union_sort(compute->at, compute->n);
    for (i = 0; i < compute->n; i++)
        RP_TRY(rp_union_add(&l->unions.all, compute->at[i].begin_ns, compute->at[i].end_ns, err));
    return RP_OK;
}

static const char *event_name(struct leads *l, rp_event e)
{
    rp_str s = l->t->ev.name[e];

    return rp_arena_copy(l->arena, rp_trace_str(l->t, s), rp_trace_str_len(l->t, s));
}

/* The longest compute that starts in [from, to). */
static const char *longest_kernel(struct leads *l, int64_t from_ns, int64_t to_ns)
{
    const struct rp_work_item *items = l->work.items.at, *best = NULL;
    size_t i;

    RP_LOWER_BOUND(i, l->work.items.n, items[i].begin_ns < from_ns);
    for (; i < l->work.items.n && items[i].begin_ns < to_ns; i++)
        if (items[i].cls == RP_WORK_COMPUTE &&
            (!best || rp_ns_between(items[i].begin_ns, items[i].end_ns) >
                          rp_ns_between(best->begin_ns, best->end_ns)))
            best = &items[i];
    return best ? event_name(l, best->event) : NULL;
}

/* The cause with most of the idle time in [from, to), and the host span of its longest gap. */
static void find_idle_cause(struct leads *l, int64_t from_ns, int64_t to_ns,
                            struct rp_comm_lead *lead)
{
    int64_t sum[RP_GAP_CAUSES] = {0}, longest[RP_GAP_CAUSES] = {0};
    rp_event host[RP_GAP_CAUSES];
    size_t i, c, best = RP_GAP_CAUSES;

    RP_LOWER_BOUND(i, l->gaps.n, l->gaps.at[i].end_ns <= from_ns);
    for (; i < l->gaps.n && l->gaps.at[i].begin_ns < to_ns; i++) {
        const struct rp_gap *g = &l->gaps.at[i];
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

static void fill_lead(struct leads *l, const struct rp_collective *c, struct rp_comm_lead *lead)
{
    const rp_interval_vec *compute = &l->unions.cls[RP_WORK_COMPUTE];
    int64_t from = lead->since_ns, busy = covered(&l->unions.all, from, c->begin_ns);

    lead->compute_ns = covered(compute, from, c->begin_ns);
    lead->copy_ns = rp_ns_between(lead->compute_ns, busy);
    if (c->begin_ns > from)
        lead->idle_ns = rp_ns_between(busy, rp_ns_between(from, c->begin_ns));
    lead->overlap_ns = covered(compute, c->begin_ns, c->end_ns);
    lead->kernel = longest_kernel(l, from, c->begin_ns);
    find_idle_cause(l, from, c->begin_ns, lead);
}

static enum rp_code fill_leads(struct leads *l, struct rp_err *err)
{
    struct rp_comm_lane *out = l->out;
    size_t i, n = out->comm.list.n;
    rp_interval_vec comm = {0};
    const rp_interval_vec *compute = &l->unions.cls[RP_WORK_COMPUTE];
    int64_t free_ns = 0;
    enum rp_code code = RP_OK;

    out->leads = RP_ARENA_NEW(l->arena, struct rp_comm_lead, n + 1);
    if (!out->leads)
        return rp_err_nomem(err, "looking at collectives");
    out->nleads = n;
    if (n)
        free_ns = out->comm.list.at[0].begin_ns;
    if (l->unions.all.n && l->unions.all.at[0].begin_ns < free_ns)
        free_ns = l->unions.all.at[0].begin_ns;
    for (i = 0; i < n && code == RP_OK; i++) {
        const struct rp_collective *c = &out->comm.list.at[i];

        out->leads[i].since_ns = free_ns;
        fill_lead(l, c, &out->leads[i]);
        free_ns = c->end_ns > free_ns ? c->end_ns : free_ns;
        code = rp_union_add(&comm, c->begin_ns, c->end_ns, err);
    }
    out->comm_ns = rp_union_length(comm.at, comm.n);
    out->overlap_ns = rp_union_common(compute->at, compute->n, comm.at, comm.n);
    rp_vec_release(&comm);
    return code;
}

/* The collectives of the device whose items `work` has, and what led to each. */
static enum rp_code fill_lane(struct leads *l, const struct rp_scope *scope, struct rp_err *err)
{
    RP_TRY(rp_collectives_init(&l->out->comm, &l->work, scope, l->arena, err));
    if (l->work.items.n) {
        RP_TRY(rp_work_unite(&l->work, &l->unions, err));
        RP_TRY(rp_gaps_find(&l->work, &l->gaps, err));
    } else {
        RP_TRY(unite_host(l, err));
    }
    return fill_leads(l, err);
}

static bool has_collectives(const struct rp_work *work, uint16_t device)
{
    size_t i;

    for (i = 0; i < work->items.n; i++)
        if (work->items.at[i].device == device && work->items.at[i].cls == RP_WORK_COMM)
            return true;
    return false;
}

/* Devices with collectives take part on their own; without any, the rank does with its main device
   or its host. */
static enum rp_code fill_lanes(const struct rp_work *work, const struct rp_scope *scope,
                               struct rp_arena *arena, struct rp_comm_part *out, struct rp_err *err)
{
    uint16_t d, n = (uint16_t)work->devices.n, chosen = n ? rp_work_main_device(work) : 0;
    bool any = false;

    out->lanes = RP_ARENA_NEW(arena, struct rp_comm_lane, n + 1);
    if (!out->lanes)
        return rp_err_nomem(err, "looking at collectives");
    for (d = 0; d < n; d++)
        any = any || has_collectives(work, d);
    for (d = 0; d < n || (!n && !d); d++) {
        struct leads l = {.t = work->trace, .arena = arena, .out = &out->lanes[out->nlanes]};
        int64_t number = n ? work->devices.at[d].number : -1;
        enum rp_code code;

        if (any ? !has_collectives(work, d) : d != chosen)
            continue;
        out->nlanes++;
        l.out->device = number < 0 ? RP_ABSENT_I64 : number;
        code = rp_work_of_device(work, d, &l.work, err);
        if (code == RP_OK)
            code = fill_lane(&l, scope, err);
        rp_work_release(&l.work);
        rp_work_unions_release(&l.unions);
        rp_vec_release(&l.gaps);
        RP_TRY(code);
    }
    return RP_OK;
}

enum rp_code rp_comm_fill_part(const struct rp_trace *trace, const struct rp_scope *scope,
                               struct rp_arena *arena, struct rp_comm_part *out, struct rp_err *err)
{
    struct rp_work work = {0};
    enum rp_code code = rp_work_init(&work, trace, scope, err);

    if (code == RP_OK)
        code = rp_comm_find_transfers(trace, scope, arena, out, err);
    if (code == RP_OK)
        code = fill_lanes(&work, scope, arena, out, err);
    rp_work_release(&work);
    return code;
}
