/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes edges of threads and streams: from each node to the next, from launches to device work and
 * inside graphs that were launched as one, from the source of each cut to the thread, and from the
 * node that ended last to nodes without a predecessor. Only edges that the recorded times allow are
 * added.
 */
#include "base/decides.h"
#include "stepgraph/build.h"

#define STREAM_BUSY_NS 5000
RP_DECISION(STREAM_BUSY_NS, "ns",
            "a stream begins what was launched and nothing holds up within this; one that was free "
            "for longer waited for another (docs/definitions.md, in_graph and event)",
            "stepgraph/a_free_stream_waited_for_another");

/* Whether the successor may begin before the end of the predecessor. */
static bool may_overlap(uint8_t kind)
{
    return kind == RP_SG_LAUNCH || kind == RP_SG_STREAM || kind == RP_SG_IN_GRAPH ||
           kind == RP_SG_ORDER;
}

enum rp_code rp_sg_add_edge(struct rp_stepgraph *g, uint32_t from, uint32_t to, uint8_t kind,
                            uint8_t flags, struct rp_err *err)
{
    const struct rp_sg_node *a = &g->nodes.at[from], *b = &g->nodes.at[to];
    struct rp_sg_edge e = {.from = from, .to = to, .kind = kind, .flags = flags};

    if (rp_sg_end_ns(a) > b->start_ns) {
        if ((!may_overlap(kind) && !(flags & RP_SG_FROM_START)) || a->start_ns > b->start_ns) {
            g->ndropped++;
            return RP_OK;
        }
        e.flags |= RP_SG_FROM_START;
    }
    return rp_vec_push(&g->edges, e, err);
}

/* ------------------------------------------------------------------ threads */

/* Returns the kind of order between the arrival of a host collective and the collective itself. */
static uint8_t order_kind(const struct rp_stepgraph *g, uint32_t node)
{
    return g->nodes.at[node - 1].kind == RP_SG_ARRIVE ? RP_SG_MEMBER : RP_SG_ORDER;
}

enum rp_code rp_sg_link_threads(struct rp_sg_builder *b, struct rp_err *err)
{
    struct rp_stepgraph *g = b->g;

    RP_TRY(rp_vec_reserve(&g->edges, g->nodes.n + 2 * b->work->items.n + b->cuts.n + 1, err));
    for (uint32_t lane = 0; lane < b->threads.n; lane++)
        for (uint32_t i = g->lanes.at[lane].first + 1; i < g->lanes.at[lane].end; i++)
            RP_TRY(rp_sg_add_edge(g, i - 1, i, order_kind(g, i), 0, err));
    for (size_t k = 0; k < b->cuts.n; k++) {
        const struct rp_sg_cut *c = &b->cuts.at[k];
        uint32_t from, to = rp_sg_node_from(b->g, c->lane, c->at_ns);

        if (to == RP_NONE || (c->item == RP_SG_NO_ITEM && c->other == RP_SG_NO_LANE))
            continue;
        from = c->item != RP_SG_NO_ITEM ? rp_sg_item_end(b, c->item)
                                        : rp_sg_node_before(b->g, c->other, c->other_ns);
        if (from != RP_NONE)
            RP_TRY(rp_sg_add_edge(b->g, from, to, c->kind, c->flags, err));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ the device */

/* Links device work to the call that launched it; *end_ns is when that was over. */
static enum rp_code link_launch(struct rp_sg_builder *b, const struct rp_work_item *x, uint32_t to,
                                int64_t *end_ns, struct rp_err *err)
{
    uint32_t lane, from;

    *end_ns = INT64_MIN;
    if (x->launch == RP_NONE)
        return RP_OK;
    int64_t start = b->t->ev.ts_ns[x->launch];
    *end_ns = rp_event_end_ns(b->t, x->launch);
    lane = b->thread_of_track.at[b->t->ev.track[x->launch]];
    if (lane == RP_SG_NO_LANE || start == RP_NO_TS)
        return RP_OK;
    if (start > x->begin_ns) {
        b->g->ndropped++;
        return RP_OK;
    }
    if (*end_ns <= x->begin_ns)
        from = rp_sg_node_before(b->g, lane, *end_ns > start ? *end_ns : rp_ns_sum(start, 1));
    else
        from = rp_sg_node_before(b->g, lane, rp_ns_sum(x->begin_ns, 1));
    return from == RP_NONE ? RP_OK : rp_sg_add_edge(b->g, from, to, RP_SG_LAUNCH, 0, err);
}

/* Links it to work of another stream if that alone tells why it did not start before. */
static enum rp_code link_other(struct rp_sg_builder *b, uint32_t item, int64_t ready_ns,
                               struct rp_err *err)
{
    const struct rp_work_item *items = b->work->items.at, *x = &items[item];
    bool graph;

    if (ready_ns != INT64_MIN && rp_ns_between(ready_ns, x->begin_ns) <= STREAM_BUSY_NS)
        return RP_OK;
    uint32_t other = rp_sg_item_before(b, x->begin_ns);
    if (other == RP_SG_NO_ITEM || items[other].stream == x->stream ||
        items[other].end_ns <= ready_ns)
        return RP_OK;
    graph =
        (x->flags & RP_WORK_IN_GRAPH) && x->launch != RP_NONE && items[other].launch == x->launch;
    return rp_sg_add_edge(b->g, rp_sg_item_end(b, other), b->item_node.at[item],
                          graph ? RP_SG_IN_GRAPH : RP_SG_EVENT, RP_SG_INFERRED, err);
}

static enum rp_code link_item(struct rp_sg_builder *b, uint32_t item, uint32_t before,
                              struct rp_err *err)
{
    const struct rp_work_item *items = b->work->items.at, *x = &items[item];
    uint32_t to = b->item_node.at[item];
    int64_t ready, launched;

    if (rp_sg_item_end(b, item) != to)
        RP_TRY(rp_sg_add_edge(b->g, to, to + 1, RP_SG_MEMBER, 0, err));
    bool graph = before != RP_SG_NO_ITEM && (x->flags & RP_WORK_IN_GRAPH) && x->launch != RP_NONE &&
                 items[before].launch == x->launch;
    ready = before == RP_SG_NO_ITEM ? INT64_MIN : items[before].end_ns;
    if (before != RP_SG_NO_ITEM)
        RP_TRY(rp_sg_add_edge(b->g, rp_sg_item_end(b, before), to,
                              graph ? RP_SG_IN_GRAPH : RP_SG_STREAM, 0, err));
    if (!graph) {
        RP_TRY(link_launch(b, x, to, &launched, err));
        ready = launched > ready ? launched : ready;
    }
    return link_other(b, item, ready, err);
}

enum rp_code rp_sg_link_device(struct rp_sg_builder *b, struct rp_err *err)
{
    uint32_t s, i, end = 0;

    for (s = 0; s < b->work->streams.n; s++) {
        uint32_t before = RP_SG_NO_ITEM;

        for (i = end, end = b->stream_end.at[s]; i < end; i++) {
            RP_TRY(link_item(b, b->by_stream.at[i], before, err));
            before = b->by_stream.at[i];
        }
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ the rest */

/* Returns the node that ended last before a moment, on any lane; the origin if there is none. */
static uint32_t ended_last(const struct rp_sg_builder *b, int64_t ns)
{
    uint32_t lane, best = 0, item = rp_sg_item_before(b, ns);

    for (lane = 0; lane < b->threads.n; lane++) {
        uint32_t node = rp_sg_node_before(b->g, lane, ns);

        if (node != RP_NONE && rp_sg_end_ns(&b->g->nodes.at[node]) <= ns &&
            rp_sg_end_ns(&b->g->nodes.at[node]) > rp_sg_end_ns(&b->g->nodes.at[best]))
            best = node;
    }
    if (item != RP_SG_NO_ITEM &&
        b->work->items.at[item].end_ns >= rp_sg_end_ns(&b->g->nodes.at[best]))
        best = rp_sg_item_end(b, item);
    return best;
}

enum rp_code rp_sg_link_rest(struct rp_sg_builder *b, struct rp_err *err)
{
    struct rp_stepgraph *g = b->g;
    RP_VEC_LOCAL(uint8_t, linked);
    size_t i, n = g->edges.n;

    RP_TRY(rp_vec_reserve(&linked, g->nodes.n, err));
    for (i = 0; i < g->nodes.n; i++)
        linked.at[i] = i == 0;
    for (i = 0; i < n; i++)
        linked.at[g->edges.at[i].to] = 1;
    for (i = 0; i < g->nodes.n; i++)
        if (!linked.at[i])
            RP_TRY(rp_sg_add_edge(g, ended_last(b, g->nodes.at[i].start_ns), (uint32_t)i,
                                  RP_SG_AFTER, RP_SG_INFERRED, err));
    return RP_OK;
}
