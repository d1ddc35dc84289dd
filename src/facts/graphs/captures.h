/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Launches that were captured into CUDA or HIP graphs. Between the calls that begin and end a
 * capture a launch becomes a node of the graph and starts no work, so missing device work is not a
 * sign of lost events. Any thread of the process may launch into a capture (PyTorch's backward pass
 * does), so a capture applies to the whole process.
 */
#include "base/err.h"
#include "base/vec.h"
#include "trace/trace.h"

enum rp_graph_node_kind { RP_GRAPH_KERNEL, RP_GRAPH_COPY, RP_GRAPH_SET };

struct rp_graph_node {
    rp_event call; /* the launch */
    rp_str kernel; /* its name, which ROCm records with the launch; 0: not recorded */
    uint8_t kind;  /* enum rp_graph_node_kind */
};

struct rp_captured_graph {
    uint32_t first, n; /* its nodes, in the order of their launches */
    int64_t begin_ns;  /* when the capture began */
    int64_t size;      /* size of the batch: "capture_32_decode"; -1: not known */
};

struct rp_captures {
    const struct rp_trace *trace;
    RP_VEC(struct rp_captured_graph) graphs; /* graphs with nodes, by process and time */
    RP_VEC(struct rp_graph_node) nodes;
    bool launches_graphs; /* the trace also has launches of graphs */
};

/* Needs events, arguments and links. Takes next to no time if no call begins a capture; else
   linear, plus sorting the nodes. Must be released also after a failure. */
enum rp_code rp_captures_init(struct rp_captures *out, const struct rp_trace *trace,
                              struct rp_err *err);
void rp_captures_release(struct rp_captures *c);

/* Whether the trace is a recording of captures: no graph was launched in it, and at most twice as
   much as was captured ran beside the captures (a warm-up). */
bool rp_captures_are_all(const struct rp_captures *c);

/* The size of the batch in the name of a span: for captures "capture_32_decode", for servers
 * "step[DECODE bs=32]", "execute_32_context_0(…", "decode[bs=117/128 …" (the padded size). -1:
 * none. */
int64_t rp_batch_size_of_name(const char *name);
/* The size in the innermost annotation around an event that has one. */
int64_t rp_batch_size_around(const struct rp_trace *trace, rp_event e);
