/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binds each end of an arrow to a span of its track: one that starts exactly at the time of the
 * arrow, else the innermost one around it (only if the end asks for an enclosing span). If several
 * spans start at that time, an arrow of a launch takes the runtime call or the device work, and any
 * other arrow the host operator; of several such spans it takes the innermost. Arrows are sorted by
 * time and merged with the events, so the cost is two passes.
 */
#include "base/filled.h"
#include "trace/build/state.h"
#include "trace/finish/finish.h"
#include "trace/finish/nest.h"

struct flow_ctx {
    struct rp_builder *b;
    struct rp_nest nest;
    rp_row_vec perm, begin; /* flows by track and time */
    struct rp_sort_scratch scratch;
    int64_t ts_ns; /* the time of the last span entered, and the best of those that start then: */
    rp_event launch, op, any;
    rp_str launch_name[RP_LAUNCH_FLOWS];
};

bool rp_build_flow_is_launch(const struct rp_builder *b, const rp_str names[RP_LAUNCH_FLOWS],
                             uint32_t flow)
{
    rp_str name = b->flows.name.at[flow];
    rp_str category = b->origins.at[b->flows.origin.at[flow]].category;

    for (size_t i = 0; i < RP_LAUNCH_FLOWS; i++)
        if (names[i] != RP_NONE && (name == names[i] || category == names[i]))
            return true;
    return false;
}

void rp_build_launch_flow_names(const struct rp_builder *b, rp_str names[RP_LAUNCH_FLOWS])
{
    static const char *const texts[RP_LAUNCH_FLOWS] = {"ac2g", "async_cpu_to_gpu", "async",
                                                       "async_gpu"};

    for (size_t i = 0; i < RP_LAUNCH_FLOWS; i++)
        names[i] = rp_build_find_str(b, texts[i]);
}

/* Enters the span and notes it as a candidate for arrows at its start. */
static enum rp_code enter_span(struct flow_ctx *w, rp_event e, struct rp_err *err)
{
    struct rp_build_events *ev = &w->b->ev;
    int64_t ts = ev->ts_ns.at[e];
    bool unended = ev->flags.at[e] & RP_EVENT_UNENDED, crosses;
    rp_event parent;

    if (ts == RP_NO_TS || ev->kind.at[e] == RP_KIND_METADATA ||
        (ev->flags.at[e] & RP_EVENT_ASYNC) || (ev->dur_ns.at[e] < 0 && !unended))
        return RP_OK;
    if (ts != w->ts_ns) {
        w->ts_ns = ts;
        w->launch = w->op = w->any = RP_NONE;
    }
    w->any = e;
    if (ev->kind.at[e] == RP_KIND_CPU_OP)
        w->op = e;
    if (ev->kind.at[e] == RP_KIND_RUNTIME || rp_kind_is_device_work(ev->kind.at[e]))
        w->launch = e;
    return rp_nest_enter(&w->nest, e, ts, rp_build_end_ns(w->b, e), unended, &parent, &crosses,
                         err);
}

static rp_event bind_arrow(struct flow_ctx *w, uint32_t flow)
{
    int64_t ts = w->b->flows.ts_ns.at[flow];

    if (ts == w->ts_ns && w->any != RP_NONE) {
        rp_event best = rp_build_flow_is_launch(w->b, w->launch_name, flow) ? w->launch : w->op;
        return best != RP_NONE ? best : w->any;
    }
    if (w->b->origins.at[w->b->flows.origin.at[flow]].phase == 'f' &&
        !(w->b->flows.flags.at[flow] & RP_FLOW_BIND_ENCLOSING))
        return RP_NONE;
    rp_nest_advance(&w->nest, ts);
    return rp_nest_top(&w->nest);
}

static enum rp_code bind_track(struct flow_ctx *w, uint32_t track, struct rp_err *err)
{
    const struct rp_track_info *t = &w->b->tracks.at[track];
    uint32_t k = w->begin.at[track], end = w->begin.at[track + 1];
    rp_event e = t->first;

    w->nest.open.n = 0;
    w->ts_ns = RP_NO_TS;
    w->any = RP_NONE;
    for (; k < end; k++) {
        uint32_t flow = w->perm.at[k];
        int64_t ts = w->b->flows.ts_ns.at[flow];

        if (ts == RP_NO_TS)
            continue;
        for (; e < t->end && w->b->ev.ts_ns.at[e] <= ts; e++)
            RP_TRY(enter_span(w, e, err));
        w->b->flows.event.at[flow] = bind_arrow(w, flow);
    }
    return RP_OK;
}

static enum rp_code bind_all(struct flow_ctx *w, struct rp_err *err)
{
    struct rp_build_flows *flows = &w->b->flows;
    struct rp_sort_keys keys = {.n = flows->n,
                                .ntracks = (uint32_t)w->b->tracks.n,
                                .track = flows->track.at,
                                .ts_ns = flows->ts_ns.at};

    RP_TRY(rp_vec_nones(&flows->event, flows->n, err));
    flows->event.n = flows->n;
    RP_TRY(rp_index_sort(&keys, &w->perm, &w->begin, &w->scratch, err));
    for (uint32_t t = 0; t < keys.ntracks; t++)
        RP_TRY(bind_track(w, t, err));
    return RP_OK;
}

enum rp_code rp_pass_flows(struct rp_builder *b, struct rp_err *err)
{
    struct flow_ctx w = {.b = b};

    if (b->flows.n == 0)
        return RP_OK;
    rp_build_launch_flow_names(b, w.launch_name);
    enum rp_code code = bind_all(&w, err);
    rp_vec_release(&w.nest.open);
    rp_vec_release(&w.perm);
    rp_vec_release(&w.begin);
    rp_sort_scratch_release(&w.scratch);
    return code;
}
