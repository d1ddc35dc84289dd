/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operator of the backward pass follows the operator whose gradient it computes: arrows of the
 * file tell it (category fwdbwd), and if there are none, the sequence numbers of both. The edge
 * goes from the end of the one to the start of the other; it binds nothing in a recording, but a
 * simulation may not run the two in the other order.
 */
#include "stepgraph/build.h"

#include <string.h>

static uint32_t lane_of(const struct rp_sg_builder *b, rp_event e)
{
    return b->thread_of_track.at[b->t->ev.track[e]];
}

static enum rp_code link_ops(struct rp_sg_builder *b, rp_event forward, rp_event backward,
                             struct rp_err *err)
{
    if (lane_of(b, forward) == RP_SG_NO_LANE || lane_of(b, backward) == RP_SG_NO_LANE ||
        b->t->ev.dur_ns[forward] < 0 || b->t->ev.ts_ns[backward] < rp_event_end_ns(b->t, forward))
        return RP_OK;
    uint32_t from = rp_sg_node_before(b->g, lane_of(b, forward), rp_event_end_ns(b->t, forward));
    uint32_t to = rp_sg_node_from(b->g, lane_of(b, backward), b->t->ev.ts_ns[backward]);
    if (from == RP_NONE || to == RP_NONE || from == to ||
        b->g->nodes.at[from].start_ns < b->t->ev.ts_ns[forward])
        return RP_OK;
    return rp_sg_add_edge(b->g, from, to, RP_SG_FORWARD, 0, err);
}

/* ------------------------------------------------------------------ arrows */

/* Starts of arrows come before their ends, so one walk pairs them. */
static enum rp_code link_arrows(struct rp_sg_builder *b, bool *any, struct rp_err *err)
{
    const struct rp_flows *f = &b->t->flows;
    RP_SCOPED(rp_map_release) struct rp_map begun = {0};

    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < f->n; i++) {
            const struct rp_origin *o = &b->t->origins[f->origin[i]];
            uint32_t from;

            if (f->event[i] == RP_NONE || o->phase != (pass ? 'f' : 's') ||
                strcmp(rp_trace_str(b->t, o->category), "fwdbwd") != 0)
                continue;
            *any = true;
            if (!pass)
                RP_TRY(rp_map_put(&begun, (uint64_t)f->id[i], f->event[i], err));
            else if ((from = rp_map_get(&begun, (uint64_t)f->id[i])) != RP_MAP_NONE)
                RP_TRY(link_ops(b, from, f->event[i], err));
        }
    return RP_OK;
}

/* ------------------------------------------------------------------ sequence numbers */

static enum rp_code link_numbers(struct rp_sg_builder *b, const struct rp_arg_key *number,
                                 const struct rp_arg_key *thread, struct rp_map *forward,
                                 struct rp_err *err)
{
    int64_t n, of;
    uint32_t first;

    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < b->spans.n; i++) {
            rp_event e = b->spans.at[i];

            if (b->t->ev.kind[e] != RP_KIND_CPU_OP || !rp_arg_key_int(number, e, &n) || n < 0)
                continue;
            bool backward = rp_arg_key_int(thread, e, &of) && of > 0;
            if (!pass && !backward)
                RP_TRY(rp_map_intern(forward, (uint64_t)n, e, &first, err));
            else if (pass && backward && (first = rp_map_get(forward, (uint64_t)n)) != RP_MAP_NONE)
                RP_TRY(link_ops(b, first, e, err));
        }
    return RP_OK;
}

enum rp_code rp_sg_link_forward(struct rp_sg_builder *b, struct rp_err *err)
{
    RP_SCOPED(rp_arg_key_release) struct rp_arg_key number = {0}, thread = {0};
    RP_SCOPED(rp_map_release) struct rp_map forward = {0};
    bool any = false;

    RP_TRY(rp_trace_require(b->t, RP_NEED_FLOWS, err));
    RP_TRY(link_arrows(b, &any, err));
    if (any)
        return RP_OK;
    RP_TRY(rp_arg_key_init(&number, b->t, "Sequence number", err));
    RP_TRY(rp_arg_key_init(&thread, b->t, "Fwd thread id", err));
    if (number.key != RP_NONE && thread.key != RP_NONE)
        RP_TRY(link_numbers(b, &number, &thread, &forward, err));
    return RP_OK;
}
