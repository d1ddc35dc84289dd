/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the part of a rank: its collectives, with what the rank did before each (leads.h). Without
 * device work, host operators stand in for compute.
 */
#include "explain/comm/comm.h"

struct lane {
    struct rp_gap_finder *finder;
    const struct rp_trace *t;
    struct rp_arena *arena;
    struct rp_comm_lane *out;
    struct rp_work work;
    struct rp_work_unions unions;
    rp_gap_vec gaps;
};

/* Adds the collectives of the device whose items are in `work`, and what led to each. */
static enum rp_code fill_lane(struct lane *l, const struct rp_scope *scope, struct rp_err *err)
{
    RP_TRY(rp_collectives_init(&l->out->comm, &l->work, scope, l->arena, err));
    if (l->work.items.n) {
        RP_TRY(rp_work_unite(&l->work, &l->unions, err));
        RP_TRY(rp_gaps_find(l->finder, &l->work, &l->gaps, err));
    } else {
        RP_TRY(rp_leads_unite_host(l->t, &l->out->comm, &l->unions, err));
    }
    RP_TRY(rp_leads_find(&l->work, &l->unions, &l->gaps, &l->out->comm, l->arena, &l->out->leads,
                         err));
    l->out->nleads = l->out->comm.list.n;

    /* Measure the time of the lane's collectives, and its overlap with compute. */
    const rp_interval_vec *compute = &l->unions.cls[RP_WORK_COMPUTE];
    rp_interval_vec comm = {0};
    enum rp_code code = RP_OK;
    for (size_t i = 0; i < l->out->comm.list.n && code == RP_OK; i++)
        code = rp_union_add(&comm, l->out->comm.list.at[i].begin_ns, l->out->comm.list.at[i].end_ns,
                            err);
    l->out->comm_ns = rp_union_length(comm.at, comm.n);
    l->out->overlap_ns = rp_union_common(compute->at, compute->n, comm.at, comm.n);
    l->out->compute_ns = rp_union_length(compute->at, compute->n);
    l->out->begin_ns = compute->n ? compute->at[0].begin_ns : RP_NO_TS;
    l->out->end_ns = compute->n ? compute->at[compute->n - 1].end_ns : RP_NO_TS;
    rp_vec_release(&comm);
    return code;
}

/* by device: whether it has collectives. */
static bool *find_collectives(const struct rp_work *work, struct rp_arena *arena, bool *any)
{
    bool *has = RP_ARENA_NEW(arena, bool, work->devices.n + 1);

    *any = false;
    for (size_t i = 0; has && i < work->items.n; i++)
        if (work->items.at[i].cls == RP_WORK_COMM)
            has[work->items.at[i].device] = *any = true;
    return has;
}

/* Devices with collectives take part separately; if there are none, the rank takes part with its
   main device or its host. */
static enum rp_code fill_lanes(const struct rp_work *work, const struct rp_scope *scope,
                               struct rp_gap_finder *finder, struct rp_arena *arena,
                               struct rp_comm_part *out, struct rp_err *err)
{
    uint16_t d, n = (uint16_t)work->devices.n, chosen = n ? rp_work_main_device(work) : 0;
    bool any, *has = find_collectives(work, arena, &any);

    out->lanes = RP_ARENA_NEW(arena, struct rp_comm_lane, n + 1);
    RP_TRY(rp_err_need(out->lanes && has, err, "looking at collectives"));
    for (d = 0; d < n || (!n && !d); d++) {
        struct lane l = {
            .t = work->trace, .arena = arena, .finder = finder, .out = &out->lanes[out->nlanes]};
        int64_t number = n ? work->devices.at[d].number : -1;

        if (any ? !has[d] : d != chosen)
            continue;
        out->nlanes++;
        l.out->device = number < 0 ? RP_ABSENT_I64 : number;
        enum rp_code code = rp_work_of_device(work, d, &l.work, err);
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
    struct rp_gap_finder *finder = NULL;
    enum rp_code code = rp_work_init(&work, trace, scope, err);

    if (trace->ndevices)
        out->gpu = rp_arena_text(arena, rp_trace_str(trace, trace->devices[0].name));
    if (code == RP_OK)
        code = rp_comm_find_transfers(trace, scope, arena, out, err);
    if (code == RP_OK && work.items.n)
        code = rp_gap_finder_new(trace, &finder, err);
    if (code == RP_OK)
        code = fill_lanes(&work, scope, finder, arena, out, err);
    rp_gap_finder_free(finder);
    rp_work_release(&work);
    return code;
}
