/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Expands collectives to the messages that they consist of. In the graph of a run a collective is a
 * rendezvous of its ranks and then one transfer; here the transfer becomes hops over full-duplex
 * links, and a rank waits only for ranks whose data it needs next.
 *
 *     ring of 3    0 -> 1 -> 2 -> 0 ...   2 (n - 1) hops a rank, each of a part of the data
 *     tree of 4    1 -> 0, 3 -> 2, 2 -> 0, then back: 2 log2 n hops deep
 *     servers      every rank sends each other rank the part which that one sums, and gets it back
 *
 * The hops together take as long as the recorded transfer took.
 */
#include "sim/model/run.h"

enum rp_expand_shape { RP_EXPAND_WHOLE, RP_EXPAND_RING, RP_EXPAND_TREE };
enum rp_expand_backend {
    RP_BACKEND_NCCL,  /* rings in both directions, with half of the data each */
    RP_BACKEND_GLOO,  /* one ring, with two pieces of each part under way */
    RP_BACKEND_BYTEPS /* servers */
};

struct rp_expand {
    enum rp_expand_shape shape; /* RP_EXPAND_WHOLE: nothing is expanded */
    enum rp_expand_backend backend;
};

/* To be called after the what-ifs, because the hops take as long as the transfers do then. Expands
   all-reduces, all-gathers and reduce-scatters of several ranks; the counts are of the run.
   O(hops). */
enum rp_code rp_sim_expand(struct rp_sim_run *run, const struct rp_expand *how, size_t *expanded,
                           size_t *left, struct rp_err *err);
