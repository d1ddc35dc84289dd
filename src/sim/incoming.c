/* SPDX-License-Identifier: Apache-2.0 */
/* A list of edges for each task, newest first. Linear in edges. */
#include "sim/simulate.h"

#include <string.h>

static enum rp_code add_edge(struct rp_sim_incoming *in, uint32_t from, uint32_t to, bool cut,
                             struct rp_err *err)
{
    uint32_t edge = (uint32_t)in->from.n, next = cut ? UINT32_MAX : in->newest.at[to];

    RP_TRY(rp_vec_push(&in->from, from, err));
    RP_TRY(rp_vec_push(&in->next, next, err));
    if (!cut)
        in->newest.at[to] = edge;
    return RP_OK;
}

enum rp_code rp_sim_incoming_add(struct rp_sim_incoming *in, uint32_t from, uint32_t to,
                                 struct rp_err *err)
{
    return add_edge(in, from, to, false, err);
}

enum rp_code rp_sim_incoming_init(struct rp_sim_incoming *out, const struct rp_overlay *o,
                                  struct rp_err *err)
{
    const struct rp_task_graph *g = o->graph;
    size_t n = rp_overlay_ntasks(o), nedges = g->edges.n + o->edges.n;
    uint32_t v, i;

    *out = (struct rp_sim_incoming){.o = o};
    if (n >= RP_SIM_IN_START)
        return rp_err_set(err, RP_LIMIT, "a simulated run can have at most %u tasks",
                          RP_SIM_IN_START - 1);
    RP_TRY(rp_vec_reserve(&out->newest, n + 1, err));
    RP_TRY(rp_vec_reserve(&out->from, nedges + 1, err));
    RP_TRY(rp_vec_reserve(&out->next, nedges + 1, err));
    memset(out->newest.at, 0xff, n * sizeof *out->newest.at);
    for (v = 0; v < g->tasks.n; v++)
        for (i = g->first.at[v]; i < g->first.at[v + 1]; i++)
            RP_TRY(add_edge(out,
                            v | (g->edges.at[i].flags & RP_EDGE_FROM_START ? RP_SIM_IN_START : 0),
                            g->edges.at[i].to, o->lag_ns.at[i] == RP_LAG_CUT, err));
    for (i = 0; i < o->edges.n; i++) {
        const struct rp_extra_edge *e = &o->edges.at[i];

        RP_TRY(add_edge(out, e->from | (e->edge.flags & RP_EDGE_FROM_START ? RP_SIM_IN_START : 0),
                        e->edge.to, e->edge.lag_ns == RP_LAG_CUT, err));
    }
    return RP_OK;
}

void rp_sim_incoming_release(struct rp_sim_incoming *in)
{
    rp_vec_release(&in->from);
    rp_vec_release(&in->next);
    rp_vec_release(&in->newest);
}
