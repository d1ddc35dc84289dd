/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The passes over a graph: forward for the times, backward for the slack. Both are one walk over
 * nodes and edges in the order that freeze found.
 */
#include "stepgraph/graph.h"

uint32_t rp_sg_binding(const struct rp_stepgraph *g, uint32_t node)
{
    for (uint32_t i = g->in.at[node]; i < g->in.at[node + 1]; i++)
        if (g->edges.at[i].flags & RP_SG_BINDING)
            return i;
    return RP_NONE;
}

int64_t rp_sg_run(const struct rp_stepgraph *g, const int64_t *dur_ns, int64_t *start_ns)
{
    int64_t last = INT64_MIN;

    for (size_t k = 0; k < g->order.n; k++) {
        uint32_t i, v = g->order.at[k];
        int64_t start = INT64_MIN, end;

        for (i = g->in.at[v]; i < g->in.at[v + 1]; i++) {
            const struct rp_sg_edge *e = &g->edges.at[i];
            int64_t at = start_ns[e->from];

            if (!(e->flags & RP_SG_FROM_START))
                at = rp_ns_sum(at, dur_ns ? dur_ns[e->from] : g->nodes.at[e->from].dur_ns);
            at = rp_ns_sum(at, e->lag_ns);
            start = at > start ? at : start;
        }
        start_ns[v] = g->in.at[v] == g->in.at[v + 1] ? g->nodes.at[v].start_ns : start;
        end = rp_ns_sum(start_ns[v], dur_ns ? dur_ns[v] : g->nodes.at[v].dur_ns);
        last = end > last ? end : last;
    }
    return last;
}

void rp_sg_slack(const struct rp_stepgraph *g, int64_t end_ns, int64_t *slack_ns)
{
    for (size_t k = g->order.n; k-- > 0;) {
        uint32_t i, v = g->order.at[k];
        const struct rp_sg_node *n = &g->nodes.at[v];
        int64_t slack = rp_ns_between(rp_sg_end_ns(n), end_ns);

        if (slack < 0) /* it is over too late to matter */
            slack = INT64_MAX;
        for (i = g->out.at[v]; i < g->out.at[v + 1]; i++) {
            const struct rp_sg_edge *e = &g->edges.at[g->out_edges.at[i]];
            int64_t at = e->flags & RP_SG_FROM_START ? n->start_ns : rp_sg_end_ns(n);
            int64_t room = rp_ns_between(rp_ns_sum(at, e->lag_ns), g->nodes.at[e->to].start_ns);

            room = rp_ns_sum(room, slack_ns[e->to]);
            slack = room < slack ? room : slack;
        }
        slack_ns[v] = slack;
    }
}
