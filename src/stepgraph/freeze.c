/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last pass over a graph: edges by successor and by predecessor, an order of the nodes in which
 * each follows its predecessors, and the lags. Edges never go back in time, so a cycle can only
 * consist of nodes without duration at the same time; it is cut at the first of them.
 */
#include "base/filled.h"
#include "stepgraph/build.h"

#include <stdlib.h>
#include <string.h>

/* Of two edges that allow a node to start at the same time, the one with the higher rank binds. */
const uint8_t rp_sg_edge_ranks[RP_SG_EDGE_KINDS] = {
    [RP_SG_ORDER] = 7,  [RP_SG_LAUNCH] = 6, [RP_SG_STREAM] = 5,   [RP_SG_IN_GRAPH] = 5,
    [RP_SG_EVENT] = 4,  [RP_SG_SYNC] = 6,   [RP_SG_HAND_OFF] = 3, [RP_SG_FORWARD] = 1,
    [RP_SG_MEMBER] = 8, [RP_SG_AFTER] = 0};

static int64_t anchor_ns(const struct rp_stepgraph *g, const struct rp_sg_edge *e)
{
    const struct rp_sg_node *n = &g->nodes.at[e->from];

    return e->flags & RP_SG_FROM_START ? n->start_ns : rp_sg_end_ns(n);
}

/* ------------------------------------------------------------------ rows of edges */

static void count_up(uint32_t *offset, size_t n)
{
    uint32_t sum = 0;

    for (size_t i = 0; i <= n; i++) {
        uint32_t here = offset[i];

        offset[i] = sum;
        sum += here;
    }
}

static enum rp_code index_in(struct rp_stepgraph *g, struct rp_err *err)
{
    RP_VEC(struct rp_sg_edge) sorted = {0};
    size_t i, n = g->nodes.n;

    g->in.n = 0;
    RP_TRY(rp_vec_zeros(&g->in, n, err));
    RP_TRY(rp_vec_reserve(&sorted, g->edges.n + 1, err));
    for (i = 0; i < g->edges.n; i++)
        g->in.at[g->edges.at[i].to]++;
    count_up(g->in.at, n);
    for (i = 0; i < g->edges.n; i++)
        sorted.at[g->in.at[g->edges.at[i].to]++] = g->edges.at[i];
    memmove(g->in.at + 1, g->in.at, n * sizeof *g->in.at);
    g->in.at[0] = 0;
    g->in.n = n + 1;
    sorted.n = g->edges.n;
    rp_vec_release(&g->edges);
    memcpy(&g->edges, &sorted, sizeof sorted);
    return RP_OK;
}

static enum rp_code index_out(struct rp_stepgraph *g, struct rp_err *err)
{
    size_t i, n = g->nodes.n;

    g->out.n = g->out_edges.n = 0;
    RP_TRY(rp_vec_zeros(&g->out, n, err));
    RP_TRY(rp_vec_reserve(&g->out_edges, g->edges.n + 1, err));
    for (i = 0; i < g->edges.n; i++)
        g->out.at[g->edges.at[i].from]++;
    count_up(g->out.at, n);
    for (i = 0; i < g->edges.n; i++)
        g->out_edges.at[g->out.at[g->edges.at[i].from]++] = (uint32_t)i;
    memmove(g->out.at + 1, g->out.at, n * sizeof *g->out.at);
    g->out.at[0] = 0;
    g->out.n = n + 1;
    g->out_edges.n = g->edges.n;
    return RP_OK;
}

/* ------------------------------------------------------------------ order of nodes */

struct order_ctx {
    struct rp_stepgraph *g;
    RP_VEC(uint32_t) missing; /* by node: edges from nodes that are not in the order yet */
    RP_VEC(uint32_t) late;    /* when a cycle was found: the remaining nodes, by start */
    size_t next_late;
    bool opened;
};

static void put_in_order(struct order_ctx *s, uint32_t node)
{
    s->g->order.at[s->g->order.n++] = node;
    s->missing.at[node] = UINT32_MAX;
}

static void follow(struct order_ctx *s, size_t *done)
{
    const struct rp_stepgraph *g = s->g;

    for (; *done < g->order.n; (*done)++) {
        uint32_t i, node = g->order.at[*done];

        for (i = g->out.at[node]; i < g->out.at[node + 1]; i++) {
            uint32_t to = g->edges.at[g->out_edges.at[i]].to;

            if (s->missing.at[to] != UINT32_MAX && --s->missing.at[to] == 0)
                put_in_order(s, to);
        }
    }
}

static int by_start(const void *pa, const void *pb, void *user)
{
    const struct rp_sg_node *nodes = user;
    uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;

    if (nodes[a].start_ns != nodes[b].start_ns)
        return nodes[a].start_ns < nodes[b].start_ns ? -1 : 1;
    return (a > b) - (a < b);
}

/* Frees the first node that is left: edges from nodes not yet in order come from the origin
   instead. */
static enum rp_code open_circle(struct order_ctx *s, struct rp_err *err)
{
    struct rp_stepgraph *g = s->g;

    if (!s->opened) {
        /* Nodes that still wait for others are on a circle, or after one. */
        s->opened = true;
        RP_TRY(rp_vec_reserve(&s->late, s->g->nodes.n, err));
        for (uint32_t i = 0; i < s->g->nodes.n; i++)
            if (s->missing.at[i] != UINT32_MAX)
                s->late.at[s->late.n++] = i;
        qsort_r(s->late.at, s->late.n, sizeof *s->late.at, by_start, s->g->nodes.at);
    }
    while (s->missing.at[s->late.at[s->next_late]] == UINT32_MAX)
        s->next_late++;
    uint32_t node = s->late.at[s->next_late];
    for (uint32_t i = g->in.at[node]; i < g->in.at[node + 1]; i++)
        if (s->missing.at[g->edges.at[i].from] != UINT32_MAX) {
            g->edges.at[i] = (struct rp_sg_edge){
                .from = 0, .to = node, .kind = RP_SG_AFTER, .flags = RP_SG_INFERRED};
            g->ndropped++;
        }
    put_in_order(s, node);
    return RP_OK;
}

static enum rp_code find_order(struct order_ctx *s, struct rp_err *err)
{
    struct rp_stepgraph *g = s->g;
    size_t done = 0;

    g->order.n = 0;
    RP_TRY(rp_vec_reserve(&g->order, g->nodes.n, err));
    RP_TRY(rp_vec_reserve(&s->missing, g->nodes.n, err));
    for (uint32_t i = 0; i < g->nodes.n; i++)
        s->missing.at[i] = g->in.at[i + 1] - g->in.at[i];
    for (uint32_t i = 0; i < g->nodes.n; i++)
        if (!s->missing.at[i])
            put_in_order(s, i);
    for (follow(s, &done); g->order.n < g->nodes.n; follow(s, &done))
        RP_TRY(open_circle(s, err));
    return s->opened ? index_out(g, err) : RP_OK;
}

/* ------------------------------------------------------------------ lags */

static void bind(struct rp_stepgraph *g, uint32_t node)
{
    struct rp_sg_edge *best = NULL;

    for (uint32_t i = g->in.at[node]; i < g->in.at[node + 1]; i++) {
        struct rp_sg_edge *e = &g->edges.at[i];
        int64_t at = anchor_ns(g, e);

        e->flags &= (uint8_t)~RP_SG_BINDING;
        e->lag_ns = rp_ns_between(at, g->nodes.at[node].start_ns); /* all that it may be */
        if (!best || rp_sg_binds_more(e, at, best, anchor_ns(g, best)))
            best = e;
    }
    if (best)
        best->flags |= RP_SG_BINDING;
}

/* Returns the median lag of the binding edges of a kind. */
static enum rp_code usual_lag(const struct rp_stepgraph *g, uint8_t kind, int64_t *out,
                              struct rp_err *err)
{
    RP_VEC(int64_t) lags = {0};
    enum rp_code code = RP_OK;

    for (size_t i = 0; code == RP_OK && i < g->edges.n; i++)
        if (g->edges.at[i].kind == kind &&
            (g->edges.at[i].flags & (RP_SG_BINDING | RP_SG_FROM_START)) == RP_SG_BINDING)
            code = rp_vec_push(&lags, g->edges.at[i].lag_ns, err);
    *out = 0;
    if (lags.n) {
        rp_ns_sort(lags.at, lags.n);
        *out = rp_ns_percentile(lags.at, lags.n, 50);
        *out = *out > 0 ? *out : 0; /* absurd times wrap */
    }
    rp_vec_release(&lags);
    return code;
}

static enum rp_code set_lags(struct rp_stepgraph *g, struct rp_err *err)
{
    int64_t usual[RP_SG_EDGE_KINDS] = {0};

    for (uint32_t v = 0; v < g->nodes.n; v++)
        bind(g, v);
    RP_TRY(usual_lag(g, RP_SG_LAUNCH, &usual[RP_SG_LAUNCH], err));
    RP_TRY(usual_lag(g, RP_SG_STREAM, &usual[RP_SG_STREAM], err));
    RP_TRY(usual_lag(g, RP_SG_IN_GRAPH, &usual[RP_SG_IN_GRAPH], err));
    for (size_t i = 0; i < g->edges.n; i++) {
        struct rp_sg_edge *e = &g->edges.at[i];

        /* A node that began inside another keeps its distance to the start of that one. */
        if (!(e->flags & (RP_SG_BINDING | RP_SG_FROM_START)) && e->lag_ns > usual[e->kind])
            e->lag_ns = usual[e->kind];
    }
    return RP_OK;
}

enum rp_code rp_sg_freeze(struct rp_stepgraph *g, struct rp_err *err)
{
    struct order_ctx s = {.g = g};

    if (g->edges.n >= UINT32_MAX)
        return rp_err_set(err, RP_LIMIT, "the step graph has more than %u edges", UINT32_MAX);
    RP_TRY(index_in(g, err));
    RP_TRY(index_out(g, err));
    enum rp_code code = find_order(&s, err);
    rp_vec_release(&s.missing);
    rp_vec_release(&s.late);
    return code == RP_OK ? set_lags(g, err) : code;
}
