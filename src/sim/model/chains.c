/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node joins the one before it if each is the only one that the other is connected to, and their
 * notes are the same. Numbers of nodes become smaller, and all references by number are updated. A
 * node whose end is referred to (a gradient, the step before the first) is not joined.
 */
#include "sim/model/chains.h"

#include "base/order.h"

#include <stdlib.h>

struct joining {
    struct rp_sim_part *p;
    uint32_t *number; /* by node: its new number */
    uint32_t *in;     /* by node: the only edge into it + 1; MANY: it has several */
    uint8_t *leaves;  /* by node: number of edges out of it, at most 2 */
};

enum { MANY = -1 };

static bool is_frame(const struct rp_sim_part *p, uint32_t i)
{
    return p->graph.nodes.at[i].kind == RP_SG_HOST && p->notes.at[i].flags & RP_SIM_FRAME;
}

/* The edge over which a node joins the one before it, or NULL. */
static const struct rp_sg_edge *joins(const struct joining *j, uint32_t i)
{
    const struct rp_sim_part *p = j->p;
    const struct rp_sim_note *a = &p->notes.at[i - 1], *b = &p->notes.at[i];

    if (!j->in[i] || j->in[i] == (uint32_t)MANY || j->leaves[i - 1] != 1 || !is_frame(p, i) ||
        !is_frame(p, i - 1))
        return NULL;
    const struct rp_sg_edge *e = &p->graph.edges.at[j->in[i] - 1];
    return e->from == i - 1 && e->kind == RP_SG_ORDER && !(e->flags & RP_SG_FROM_START) &&
                   e->lag_ns >= 0 && e->lag_ns <= UINT32_MAX && a->op == b->op &&
                   a->step == b->step && a->phase == b->phase &&
                   !((a->flags ^ b->flags) & ~RP_SIM_OPENS) &&
                   p->graph.nodes.at[i].lane == p->graph.nodes.at[i - 1].lane &&
                   p->graph.nodes.at[i].dur_ns <= UINT32_MAX &&
                   p->graph.nodes.at[i - 1].dur_ns <= UINT32_MAX
               ? e
               : NULL;
}

static enum rp_code add_link(const struct joining *j, uint32_t node, uint32_t i, int64_t lag_ns,
                             struct rp_err *err)
{
    struct rp_sim_link link = {node, (uint32_t)lag_ns, (uint32_t)j->p->graph.nodes.at[i].dur_ns,
                               j->p->notes.at[i].flags & RP_SIM_OPENS};

    return rp_vec_push(&j->p->links, link, err);
}

/* Moves nodes to their new, smaller numbers; a node is read before its place is overwritten. */
static enum rp_code join_nodes(struct joining *j, struct rp_err *err)
{
    struct rp_sim_part *p = j->p;
    struct rp_sg_node *nodes = p->graph.nodes.at;
    uint32_t i, first = 0, kept = 0, n = (uint32_t)p->graph.nodes.n;

    for (i = 0; i < n; i = first) {
        struct rp_sg_node node = nodes[i];
        struct rp_sim_note note = p->notes.at[i];
        const struct rp_sg_edge *e;

        j->number[i] = kept;
        for (first = i + 1; first < n && (e = joins(j, first)) != NULL; first++) {
            if (first == i + 1)
                RP_TRY(add_link(j, kept, i, 0, err));
            RP_TRY(add_link(j, kept, first, e->lag_ns, err));
            j->number[first] = kept;
            note.flags |= p->notes.at[first].flags;
            node.dur_ns = rp_ns_between(node.start_ns, rp_sg_end_ns(&nodes[first]));
        }
        nodes[kept] = node;
        p->notes.at[kept++] = note;
    }
    p->graph.nodes.n = p->notes.n = kept;
    return RP_OK;
}

static uint32_t renamed(const struct joining *j, uint32_t node)
{
    return node == RP_NONE ? node : j->number[node];
}

static void rename_nodes(const struct joining *j)
{
    struct rp_stepgraph *g = &j->p->graph;
    size_t i, kept = 0;

    for (i = 0; i < g->edges.n; i++) {
        struct rp_sg_edge e = g->edges.at[i];

        e.from = j->number[e.from];
        e.to = j->number[e.to];
        if (e.from != e.to)
            g->edges.at[kept++] = e;
    }
    g->edges.n = kept;
    for (i = 0; i < g->lanes.n; i++) {
        struct rp_sg_lane *lane = &g->lanes.at[i];

        if (lane->first < lane->end) {
            lane->end = j->number[lane->end - 1] + 1;
            lane->first = j->number[lane->first];
        } else {
            lane->first = lane->end = 0;
        }
    }
    for (i = 0; i < g->arrivals.n; i++)
        g->arrivals.at[i] = renamed(j, g->arrivals.at[i]);
    for (i = 0; i < j->p->gradients.n; i++) {
        j->p->gradients.at[i].node = renamed(j, j->p->gradients.at[i].node);
        j->p->gradients.at[i].work = renamed(j, j->p->gradients.at[i].work);
    }
    for (i = 0; i < j->p->pieces.n; i++) {
        j->p->pieces.at[i].first = renamed(j, j->p->pieces.at[i].first);
        j->p->pieces.at[i].last = renamed(j, j->p->pieces.at[i].last);
    }
    if (j->p->previous)
        j->p->previous = j->number[j->p->previous - 1] + 1;
}

enum rp_code rp_sim_chains_join(struct rp_sim_part *part, struct rp_err *err)
{
    size_t n = part->graph.nodes.n;
    struct joining j = {part, malloc((n + 1) * sizeof *j.number), calloc(n + 1, sizeof *j.in),
                        calloc(n + 1, sizeof *j.leaves)};
    enum rp_code code = rp_err_need(j.number && j.in && j.leaves, err, "simulating");

    if (code == RP_OK) {
        /* The only edge into each node, and how many leave it. A node that is referred to by its
           number counts as if it had several. */
        const struct rp_stepgraph *g = &j.p->graph;

        for (size_t i = 0; i < g->edges.n; i++) {
            const struct rp_sg_edge *e = &g->edges.at[i];

            j.in[e->to] = j.in[e->to] ? (uint32_t)MANY : (uint32_t)i + 1;
            j.leaves[e->from] += j.leaves[e->from] < 2;
        }
        for (size_t i = 0; i < j.p->gradients.n; i++)
            j.in[j.p->gradients.at[i].node] = (uint32_t)MANY;
        if (j.p->previous)
            j.in[j.p->previous - 1] = (uint32_t)MANY;
        code = join_nodes(&j, err);
    }
    if (code == RP_OK)
        rename_nodes(&j);
    free(j.number);
    free(j.in);
    free(j.leaves);
    return code;
}

const struct rp_sim_link *rp_sim_chain_from(const struct rp_sim_part *part, uint32_t node)
{
    size_t first = 0;

    if (!part->links.n)
        return NULL;
    RP_LOWER_BOUND(first, part->links.n, part->links.at[first].node < node);
    return part->links.at + first;
}
