/* SPDX-License-Identifier: Apache-2.0 */
/* A list of edges for each task, newest first. Linear in edges. */
#include "sim/simulate.h"

#include <string.h>

enum rp_code rp_sim_incoming_add(struct rp_sim_incoming *in, uint32_t from, uint32_t to,
                                 int64_t lag_ns, bool from_start, struct rp_err *err)
{
    struct rp_sim_in_edge edge = {from, in->newest.at[to], lag_ns, from_start};

    if (lag_ns == RP_LAG_CUT)
        return RP_OK;
    in->newest.at[to] = (uint32_t)in->edges.n;
    return rp_vec_push(&in->edges, edge, err);
}

enum rp_code rp_sim_incoming_init(struct rp_sim_incoming *out, const struct rp_overlay *o,
                                  struct rp_err *err)
{
    const struct rp_task_graph *g = o->graph;
    size_t n = rp_overlay_ntasks(o);
    uint32_t v, i;

    *out = (struct rp_sim_incoming){0};
    RP_TRY(rp_vec_reserve(&out->newest, n + 1, err));
    memset(out->newest.at, 0xff, n * sizeof *out->newest.at);
    for (v = 0; v < g->tasks.n; v++)
        for (i = g->first.at[v]; i < g->first.at[v + 1]; i++)
            RP_TRY(rp_sim_incoming_add(out, v, g->edges.at[i].to, o->lag_ns.at[i],
                                       g->edges.at[i].flags & RP_EDGE_FROM_START, err));
    for (i = 0; i < o->edges.n; i++)
        RP_TRY(rp_sim_incoming_add(out, o->edges.at[i].from, o->edges.at[i].edge.to,
                                   o->edges.at[i].edge.lag_ns,
                                   o->edges.at[i].edge.flags & RP_EDGE_FROM_START, err));
    return RP_OK;
}

void rp_sim_incoming_release(struct rp_sim_incoming *in)
{
    rp_vec_release(&in->edges);
    rp_vec_release(&in->newest);
}
