/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Joins launches of graphs with the captures of those graphs, so that their kernels have operators,
 * shapes, modules and Python frames (docs/definitions.md, "Graphs"). A launched graph is compared
 * with each captured one by the names of their kernels in order. Captures come from the trace
 * itself or from other recordings.
 */
#include "facts/graphs/captures.h"

struct rp_graph_join {
    struct rp_trace
        *trace;        /* includes the spans of the captures (trace/graft.h); NULL if none fits */
    int64_t launches;  /* of graphs, in the whole trace */
    int64_t items, ns; /* device work that they started */
    int64_t matched, matched_ns; /* the part with a node in a capture */
    int64_t ambiguous;    /* launches that captures of several batch sizes fit equally well */
    int64_t unordered;    /* launches on several streams, which match nothing */
    RP_VEC(uint8_t) used; /* by capture: whether some launch matches one of its graphs */
};

/* `captures` must be made from traces that outlive the call; the trace must outlive `out`, which
   must be released also after a failure. */
enum rp_code rp_graphs_join(struct rp_graph_join *out, const struct rp_trace *trace,
                            const struct rp_captures *const *captures, size_t n,
                            struct rp_err *err);
void rp_graph_join_release(struct rp_graph_join *join);
