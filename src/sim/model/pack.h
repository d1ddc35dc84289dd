/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Packs the nodes, notes and edges of a rank into bytes, about a fifth of their size. In a run of
 * many ranks all parts are in memory at once, but only a few are used at a time.
 *
 * Nodes follow each other closely in time, on the same lane and in the same step, so that
 * differences from the previous one are small numbers, of which each seven bits take a byte. Lags
 * of edges are not kept: they follow from the times of the nodes (stepgraph/build.h). Of the event
 * of a node, only its existence is kept.
 */
#include "sim/model/part.h"

#define RP_SIM_MANY_RANKS 16
RP_LIMIT(RP_SIM_MANY_RANKS, "ranks", "the parts of larger jobs are packed; same times");

/* Packs graph.nodes, graph.edges and notes of a part, and drops its index; a part of several ranks
   is left as it is. */
enum rp_code rp_sim_part_pack(struct rp_sim_part *part, struct rp_err *err);
static inline bool rp_sim_part_is_packed(const struct rp_sim_part *part)
{
    return part->npacked_nodes > 0;
}

/* How many nodes a part has, packed or not. */
static inline size_t rp_sim_part_nnodes(const struct rp_sim_part *part)
{
    return rp_sim_part_is_packed(part) ? part->npacked_nodes : part->graph.nodes.n;
}

/* Unpacks into arrays of part->npacked_nodes and part->npacked_edges items; each may be NULL. Lags
   are 0. RP_FORMAT if the bytes are not those of a part. */
enum rp_code rp_sim_part_unpack_nodes(const struct rp_sim_part *part, struct rp_sg_node *nodes,
                                      struct rp_sim_note *notes, struct rp_err *err);
enum rp_code rp_sim_part_unpack_edges(const struct rp_sim_part *part, struct rp_sg_edge *edges,
                                      struct rp_err *err);

/* Makes a copy of a packed part whose graph has nodes, edges and lags, and which has its notes;
   everything else is shared with the part. What is its own must be given back also after a
   failure. */
enum rp_code rp_sim_part_unpack(const struct rp_sim_part *part, struct rp_sim_part *out,
                                struct rp_err *err);
void rp_sim_part_unpack_release(struct rp_sim_part *out);
