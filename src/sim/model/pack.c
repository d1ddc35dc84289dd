/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node is a byte that says which of the following numbers are present, then these numbers:
 *
 *     kind, flags; lane, collective, step where they differ     start - previous start, duration,
 *     from the previous node's or from none                     name, operator, phase, flags
 *
 * An edge is its kind and flags, how many nodes after the previous edge it ends, and how far before
 * that it begins. Behind the last item are as many zeros as an item may have bytes.
 */
#include "sim/model/pack.h"

#include "base/packed.h"
#include "sim/engine/task_graph.h"
#include "stepgraph/build.h"

#include <string.h>

enum { NODE_MOST = 64, EDGE_MOST = 24 }; /* bytes of one */

/* Flags in the first byte of a node, above its kind. */
enum { SAME_LANE = 8, NO_COLLECTIVE = 16, NO_EVENT = 32, SAME_STEP = 64, IS_WORK = 128 };

_Static_assert(RP_SG_KINDS <= 8, "a kind has three bits");
_Static_assert(RP_SG_EDGE_KINDS <= 16 && RP_SG_LOOSE <= 8, "kind and flags of an edge: a byte");

/* ------------------------------------------------------------------ numbers */

static uint8_t next_byte(struct rp_packed *b)
{
    return *b->at++;
}

static enum rp_code check_bytes(const struct rp_packed *b, ptrdiff_t most, struct rp_err *err)
{
    return b->cut || b->end - b->at != most
               ? rp_err_set(err, RP_FORMAT, "the packed part of a rank is damaged")
               : RP_OK;
}

/* ------------------------------------------------------------------ packing */

/* Times are differences modulo 2^64, so any times can be restored. */
static int64_t minus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static int64_t plus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static uint8_t *put_node(uint8_t *to, const struct rp_sg_node *n, const struct rp_sg_node *before,
                         const struct rp_sim_note *note, const struct rp_sim_note *note_before)
{
    bool lane = n->lane == before->lane, step = note->step == note_before->step;

    *to++ = (uint8_t)(n->kind | (lane ? SAME_LANE : 0) |
                      (n->collective == RP_NONE ? NO_COLLECTIVE : 0) |
                      (n->event == RP_NONE ? NO_EVENT : 0) | (step ? SAME_STEP : 0) |
                      (n->flags & RP_SG_WORK ? IS_WORK : 0));
    to = rp_pack_signed(to, minus(n->start_ns, before->start_ns));
    to = rp_pack_signed(to, n->dur_ns);
    to = rp_pack_number(to, n->name);
    if (!lane)
        to = rp_pack_number(to, n->lane);
    if (n->collective != RP_NONE)
        to = rp_pack_number(to, n->collective);
    to = rp_pack_number(to, note->op);
    if (!step)
        to = rp_pack_number(to, note->step);
    *to++ = note->phase;
    *to++ = note->flags;
    return to;
}

static const struct rp_sg_node no_node = {.lane = RP_NONE};
static const struct rp_sim_note no_note = {.step = RP_NO_STEP};

static enum rp_code pack_nodes(struct rp_sim_part *part, struct rp_err *err)
{
    const struct rp_sg_node *nodes = part->graph.nodes.at, *before = &no_node;
    const struct rp_sim_note *notes = part->notes.at, *note_before = &no_note;
    size_t i, n = part->graph.nodes.n;

    for (i = 0; i < n; before = &nodes[i], note_before = &notes[i], i++) {
        RP_TRY(rp_vec_reserve(&part->packed_nodes, NODE_MOST, err));
        part->packed_nodes.n = (size_t)(put_node(part->packed_nodes.at + part->packed_nodes.n,
                                                 &nodes[i], before, &notes[i], note_before) -
                                        part->packed_nodes.at);
    }
    part->npacked_nodes = (uint32_t)n;
    RP_TRY(rp_vec_reserve(&part->packed_nodes, NODE_MOST, err));
    memset(part->packed_nodes.at + part->packed_nodes.n, 0, NODE_MOST);
    part->packed_nodes.n += NODE_MOST;
    return RP_OK;
}

static enum rp_code pack_edges(struct rp_sim_part *part, struct rp_err *err)
{
    const struct rp_sg_edge *edges = part->graph.edges.at;
    size_t i, n = part->graph.edges.n;
    uint32_t before = 0;

    for (i = 0; i < n; before = edges[i++].to) {
        RP_TRY(rp_vec_reserve(&part->packed_edges, EDGE_MOST, err));
        uint8_t *to = part->packed_edges.at + part->packed_edges.n;
        *to++ = (uint8_t)(edges[i].kind | edges[i].flags << 4);
        to = rp_pack_signed(to, (int64_t)edges[i].to - before);
        to = rp_pack_signed(to, (int64_t)edges[i].to - edges[i].from);
        part->packed_edges.n = (size_t)(to - part->packed_edges.at);
    }
    part->npacked_edges = (uint32_t)n;
    RP_TRY(rp_vec_reserve(&part->packed_edges, EDGE_MOST, err));
    memset(part->packed_edges.at + part->packed_edges.n, 0, EDGE_MOST);
    part->packed_edges.n += EDGE_MOST;
    return RP_OK;
}

static bool is_of_one_rank(const struct rp_stepgraph *g)
{
    for (size_t i = 0; i < g->nodes.n; i++)
        if (g->nodes.at[i].rank)
            return false;
    return true;
}

enum rp_code rp_sim_part_pack(struct rp_sim_part *part, struct rp_err *err)
{
    if (!part->graph.nodes.n || part->notes.n != part->graph.nodes.n ||
        !is_of_one_rank(&part->graph))
        return RP_OK;
    RP_TRY(pack_nodes(part, err));
    RP_TRY(pack_edges(part, err));
    rp_sg_drop_index(&part->graph);
    rp_vec_release(&part->graph.nodes);
    rp_vec_release(&part->graph.edges);
    rp_vec_release(&part->notes);
    return RP_OK;
}

/* ------------------------------------------------------------------ unpacking */

enum rp_code rp_sim_part_unpack_nodes(const struct rp_sim_part *part, struct rp_sg_node *nodes,
                                      struct rp_sim_note *notes, struct rp_err *err)
{
    struct rp_packed b = {part->packed_nodes.at, part->packed_nodes.at + part->packed_nodes.n,
                          false};
    struct rp_sg_node node = no_node;
    struct rp_sim_note note = no_note;

    for (size_t i = 0; i < part->npacked_nodes && rp_packed_has(&b, NODE_MOST); i++) {
        uint8_t head = next_byte(&b);

        node.kind = head & 7;
        node.flags = head & IS_WORK ? RP_SG_WORK : 0;
        node.event = head & NO_EVENT ? RP_NONE : 0;
        node.start_ns = plus(node.start_ns, rp_packed_signed(&b));
        node.dur_ns = rp_packed_signed(&b);
        node.name = (uint32_t)rp_packed_number(&b);
        if (!(head & SAME_LANE))
            node.lane = (uint32_t)rp_packed_number(&b);
        node.collective = head & NO_COLLECTIVE ? RP_NONE : (uint32_t)rp_packed_number(&b);
        note.op = (uint32_t)rp_packed_number(&b);
        if (!(head & SAME_STEP))
            note.step = (uint16_t)rp_packed_number(&b);
        note.phase = next_byte(&b);
        note.flags = next_byte(&b);
        if (nodes)
            nodes[i] = node;
        if (notes)
            notes[i] = note;
    }
    return check_bytes(&b, NODE_MOST, err);
}

enum rp_code rp_sim_part_unpack_edges(const struct rp_sim_part *part, struct rp_sg_edge *edges,
                                      struct rp_err *err)
{
    struct rp_packed b = {part->packed_edges.at, part->packed_edges.at + part->packed_edges.n,
                          false};
    struct rp_sg_edge edge = {0};

    for (size_t i = 0; i < part->npacked_edges && rp_packed_has(&b, EDGE_MOST); i++) {
        uint8_t head = next_byte(&b);

        edge.kind = head & 15;
        edge.flags = head >> 4;
        edge.to = (uint32_t)(edge.to + rp_packed_signed(&b));
        edge.from = (uint32_t)(edge.to - rp_packed_signed(&b));
        if (edge.to >= part->npacked_nodes || edge.from >= part->npacked_nodes)
            b.cut = true;
        if (b.cut)
            memset(&edges[i], 0, sizeof edges[i]);
        else
            edges[i] = edge;
    }
    return check_bytes(&b, EDGE_MOST, err);
}

/* The lags are those with which the graph was frozen, which depend on nothing else. */
enum rp_code rp_sim_part_unpack(const struct rp_sim_part *part, struct rp_sim_part *out,
                                struct rp_err *err)
{
    struct rp_stepgraph *g = &out->graph;

    *out = *part;
    memset(&g->nodes, 0, sizeof g->nodes);
    memset(&g->edges, 0, sizeof g->edges);
    memset(&out->notes, 0, sizeof out->notes);
    out->npacked_nodes = out->npacked_edges = 0;
    RP_TRY(rp_vec_reserve(&g->nodes, part->npacked_nodes + (size_t)1, err));
    RP_TRY(rp_vec_reserve(&g->edges, part->npacked_edges + (size_t)1, err));
    RP_TRY(rp_vec_reserve(&out->notes, part->npacked_nodes + (size_t)1, err));
    RP_TRY(rp_sim_part_unpack_nodes(part, g->nodes.at, out->notes.at, err));
    RP_TRY(rp_sim_part_unpack_edges(part, g->edges.at, err));
    g->nodes.n = out->notes.n = part->npacked_nodes;
    g->edges.n = part->npacked_edges;
    RP_TRY(rp_sg_freeze(g, err));
    rp_sg_drop_index(g);
    return RP_OK;
}

void rp_sim_part_unpack_release(struct rp_sim_part *out)
{
    rp_sg_drop_index(&out->graph);
    rp_vec_release(&out->graph.nodes);
    rp_vec_release(&out->graph.edges);
    rp_vec_release(&out->notes);
}
