/* SPDX-License-Identifier: Apache-2.0 */
/* A list of edges for each task, newest first. Linear in edges. */
#include "sim/simulate.h"

#include "base/filled.h"
#include "base/order.h"

static void add_edge(struct rp_sim_incoming *in, uint32_t edge, uint32_t to, bool cut)
{
    in->next.at[edge] = cut ? UINT32_MAX : in->newest.at[to];
    if (!cut)
        in->newest.at[to] = edge;
}

enum rp_code rp_sim_incoming_init(struct rp_sim_incoming *out, const struct rp_overlay *o,
                                  struct rp_err *err)
{
    const struct rp_task_graph *g = o->graph;
    size_t n = rp_overlay_ntasks(o), nedges = g->edges.n + o->edges.n;

    *out = (struct rp_sim_incoming){.o = o};
    RP_TRY(rp_vec_nones(&out->newest, n, err));
    RP_TRY(rp_vec_reserve(&out->next, nedges + 1, err));
    for (uint32_t i = 0; i < g->edges.n; i++)
        add_edge(out, i, g->edges.at[i].to, o->lag_ns.at[i] == RP_LAG_CUT);
    for (uint32_t i = 0; i < o->edges.n; i++)
        add_edge(out, (uint32_t)g->edges.n + i, o->edges.at[i].edge.to,
                 o->edges.at[i].edge.lag_ns == RP_LAG_CUT);
    return RP_OK;
}

struct rp_sim_in_edge rp_sim_in_edge(const struct rp_sim_incoming *in, uint32_t edge)
{
    const struct rp_overlay *o = in->o;
    const struct rp_task_graph *g = o->graph;
    size_t k, n = g->edges.n;

    if (edge >= n) {
        const struct rp_extra_edge *e = &o->edges.at[edge - n];

        return (struct rp_sim_in_edge){e->from, e->edge.flags & RP_EDGE_FROM_START, e->edge.lag_ns};
    }
    RP_LOWER_BOUND(k, g->tasks.n, g->first.at[k + 1] <= edge);
    return (struct rp_sim_in_edge){(uint32_t)k, g->edges.at[edge].flags & RP_EDGE_FROM_START,
                                   o->lag_ns.at[edge]};
}

void rp_sim_incoming_release(struct rp_sim_incoming *in)
{
    rp_vec_release(&in->next);
    rp_vec_release(&in->newest);
}
