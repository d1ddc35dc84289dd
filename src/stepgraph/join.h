/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The graph of a run: the graphs of its ranks, connected by the collectives that they share, on the
 * clock of the first rank.
 *
 *     rank 0   -> arrive ----.                .-> collective ->
 *     rank 1       -> arrive ----> rendezvous --> collective ->     when the last one has arrived
 *     rank 2         -> arrive -'             `-> collective ->
 */
#include "facts/ranks/rendezvous.h"
#include "stepgraph/graph.h"

struct rp_sg_member {
    const struct rp_stepgraph *graph;
    const struct rp_collectives *collectives;
};

/* A collective as one rank sees it. */
struct rp_sg_last_arrival {
    int64_t until_ns; /* when the last rank arrived, on this rank's clock; RP_NO_TS if no other rank
                         has it */
    uint32_t by;      /* which of the given ranks arrived last */
};

struct rp_sg_join {
    struct rp_rendezvous_list rendezvous;
    bool aligned;         /* the clocks differed */
    uint32_t *first_node; /* by rank: the begin of its nodes, first its own node 0 */
    struct rp_sg_last_arrival **last_arrival; /* by rank and collective */
};

/* Converts a time of a rank to the clock of the first, and back. */
static inline int64_t rp_sg_common_time(const struct rp_sg_join *join, size_t rank, int64_t ns)
{
    return rp_clock_time(&join->rendezvous.clocks[rank], ns);
}

static inline int64_t rp_sg_own_time(const struct rp_sg_join *join, size_t rank, int64_t ns)
{
    return rp_clock_own_time(&join->rendezvous.clocks[rank], ns);
}

/*
 * Joins ranks that share collectives; if none do, `out` stays empty (no nodes). The memory of
 * `join` is in the arena. Texts of `out` belong to the ranks' graphs, which must outlive it. `out`
 * must be released also after a failure. O(n log n) in all nodes.
 */
enum rp_code rp_sg_join(struct rp_stepgraph *out, const struct rp_sg_member *ranks, size_t n,
                        struct rp_arena *arena, struct rp_sg_join *join, struct rp_err *err);
