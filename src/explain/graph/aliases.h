/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_GRAPH_ALIASES_H
#define RP_EXPLAIN_GRAPH_ALIASES_H
/* Inputs whose memory an output takes: what was donated, and how much that saves. */
#include "explain/graph/graph.h"

/*
 * Fills aliases, aliased and aliased_bytes from what the module says (HLO's input_output_alias).
 * numbers: n pairs of input and output from elsewhere (Ratex' alias dump), for programs that say
 * nothing; of lazy graphs input i is the i-th device_data of the newest graph, output k its ROOT=k.
 * RP_USAGE where there is no such input or output.
 */
enum rp_code rp_graph_list_aliases(const struct rp_program *p, const uint32_t (*numbers)[2],
                                   size_t n, struct rp_arena *arena, struct rp_graph *out,
                                   struct rp_err *err);

#endif
