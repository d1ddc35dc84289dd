/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_SIM_MODEL_EXPAND_H
#define RP_SIM_MODEL_EXPAND_H
/*
 * Collectives as the messages that they are made of. In the graph of a run a collective is a
 * meeting of its ranks and then a transfer; here the transfer becomes hops over links that carry
 * both directions at once, and nobody waits for a rank from which nothing has to come yet.
 *
 *     ring of 3    0 -> 1 -> 2 -> 0 ...   2 (n - 1) hops a rank, each of a part of the data
 *     tree of 4    1 -> 0, 3 -> 2, 2 -> 0, then back: 2 log2 n hops deep
 *     servers      every rank sends each other rank the part which that one sums, and gets it back
 *
 * The hops together take what the recorded transfer took.
 */
#include "sim/model/run.h"

enum rp_expand_shape { RP_EXPAND_WHOLE, RP_EXPAND_RING, RP_EXPAND_TREE };
enum rp_expand_backend {
    RP_BACKEND_NCCL,  /* rings in both directions, half of the data each */
    RP_BACKEND_GLOO,  /* one ring, two pieces of each part under way */
    RP_BACKEND_BYTEPS /* servers */
};

struct rp_expand {
    enum rp_expand_shape shape; /* RP_EXPAND_WHOLE: nothing is done */
    enum rp_expand_backend backend;
};

/* Behind the what-ifs: hops take what transfers take then. All-reduces, all-gathers and
   reduce-scatters of several ranks; the counts are of the run. O(hops). */
enum rp_code rp_sim_expand(struct rp_sim_run *run, const struct rp_expand *how, size_t *expanded,
                           size_t *left, struct rp_err *err);

#endif
