/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the graph of a rank, part by part: waits of threads, nodes, edges of each kind, order and
   lags. */
#include "stepgraph/graph.h"
#include "base/each.h"

#include "result/part.h"
#include "stepgraph/build.h"

const char *const rp_sg_kind_names[RP_SG_KINDS] = {
    [RP_SG_ORIGIN] = "origin",   [RP_SG_HOST] = "host",      [RP_SG_RUNTIME] = "runtime",
    [RP_SG_COMPUTE] = "compute", [RP_SG_COMM] = "comm",      [RP_SG_MEMORY] = "memory",
    [RP_SG_ARRIVE] = "arrive",   [RP_SG_RENDEZVOUS] = "meet"};
const char *const rp_sg_edge_names[RP_SG_EDGE_KINDS] = {
    [RP_SG_ORDER] = "order",        [RP_SG_LAUNCH] = "launch",   [RP_SG_STREAM] = "stream",
    [RP_SG_IN_GRAPH] = "in_graph",  [RP_SG_EVENT] = "event",     [RP_SG_SYNC] = "sync",
    [RP_SG_HAND_OFF] = "hand_over", [RP_SG_FORWARD] = "forward", [RP_SG_MEMBER] = "member",
    [RP_SG_AFTER] = "after"};

static const struct rp_field lane_fields[] = {RP_PART_TEXT(struct rp_sg_lane, label),
                                              RP_PART_PLAIN(struct rp_sg_lane, rank),
                                              RP_PART_PLAIN(struct rp_sg_lane, first),
                                              RP_PART_PLAIN(struct rp_sg_lane, end),
                                              RP_PART_PLAIN(struct rp_sg_lane, track),
                                              RP_PART_PLAIN(struct rp_sg_lane, device),
                                              RP_PART_END};
static const struct rp_type lane_type = {"lane", sizeof(struct rp_sg_lane), lane_fields, NULL};

static const struct rp_field graph_fields[] = {
    RP_PART_PLAIN(struct rp_stepgraph, begin_ns),
    RP_PART_PLAIN(struct rp_stepgraph, end_ns),
    RP_PART_PLAIN(struct rp_stepgraph, nranks),
    RP_PART_PLAIN(struct rp_stepgraph, nlanes),
    RP_PART_PLAIN_VEC(struct rp_stepgraph, nodes, struct rp_sg_node),
    RP_PART_PLAIN_VEC(struct rp_stepgraph, edges, struct rp_sg_edge),
    RP_PART_PLAIN_VEC(struct rp_stepgraph, in, uint32_t),
    RP_PART_PLAIN_VEC(struct rp_stepgraph, out, uint32_t),
    RP_PART_PLAIN_VEC(struct rp_stepgraph, out_edges, uint32_t),
    RP_PART_PLAIN_VEC(struct rp_stepgraph, order, uint32_t),
    RP_PART_VEC(struct rp_stepgraph, lanes, &lane_type),
    RP_PART_VEC(struct rp_stepgraph, names, &rp_type_string),
    RP_PART_PLAIN_VEC(struct rp_stepgraph, arrivals, uint32_t),
    RP_PART_PLAIN(struct rp_stepgraph, ndropped),
    RP_PART_END};
const struct rp_type rp_stepgraph_type = {"stepgraph", sizeof(struct rp_stepgraph), graph_fields,
                                          NULL};

static enum rp_code build(struct rp_sg_builder *b, struct rp_err *err)
{
    static enum rp_code (*const parts[])(struct rp_sg_builder *, struct rp_err *) = {
        rp_sg_find_threads, rp_sg_index_items,  rp_sg_cut_syncs,   rp_sg_cut_hand_offs,
        rp_sg_make_nodes,   rp_sg_link_threads, rp_sg_link_device, rp_sg_link_events,
        rp_sg_link_forward, rp_sg_link_rest};

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        RP_TRY(parts[i](b, err));
    return rp_sg_freeze(b->g, err);
}

enum rp_code rp_sg_init(struct rp_stepgraph *out, const struct rp_work *work,
                        const struct rp_collectives *collectives, struct rp_err *err)
{
    struct rp_sg_builder b = {.t = work->trace, .work = work, .collectives = collectives, .g = out};

    *out = (struct rp_stepgraph){.nranks = 1};
    enum rp_code code = build(&b, err);
    RP_EACH(rp_vec_release, &b.threads, &b.spans, &b.busy, &b.cuts, &b.thread_of_track, &b.by_end,
            &b.by_stream, &b.stream_end);
    RP_EACH(rp_vec_release, &b.place, &b.item_node, &b.name_of);
    rp_map_release(&b.collective_of);
    return code;
}

void rp_sg_drop_index(struct rp_stepgraph *g)
{
    RP_EACH(rp_vec_release, &g->in, &g->out, &g->out_edges, &g->order);
}

void rp_sg_release(struct rp_stepgraph *g)
{
    rp_sg_drop_index(g);
    RP_EACH(rp_vec_release, &g->nodes, &g->edges, &g->lanes, &g->names, &g->arrivals);
    rp_arena_release(&g->arena);
}
