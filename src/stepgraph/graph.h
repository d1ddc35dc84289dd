/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The step graph of one rank or of a run: which work ran where, and for what it had to wait. The
 * critical path reads it backward, the simulator runs it forward. It contains everything that is
 * needed, so the trace may be freed when it is built.
 *
 *     thread    [op][launch][op]          [sync]      nodes: parts of spans, device work,
 *                       \                 /                  collectives
 *     stream             `[kernel][kernel]            edges: with a kind and a lag
 *
 * A node starts at the latest of (anchor of a predecessor + lag of the edge), where the anchor is
 * the predecessor's end, or its start if RP_SG_FROM_START is set, because work that began inside it
 * did not wait for its end. One of the edges into a node is binding: its lag is the recorded one.
 * The others have the usual lag of their kind, and never more than the recording allows. So a run
 * with the recorded durations gives the recorded times, to the nanosecond (docs/definitions.md).
 *
 * Times are integer nanoseconds; node and edge ids are 32-bit and dense; the same input gives the
 * same graph.
 */
#include "base/decides.h"
#include "facts/ranks/collectives.h"
#include "facts/work/work.h"

enum rp_sg_kind {
    RP_SG_ORIGIN, /* the begin of a window */
    RP_SG_HOST,   /* a part of a span of a thread in which nothing else runs inside it */
    RP_SG_RUNTIME,
    RP_SG_COMPUTE,
    RP_SG_COMM,
    RP_SG_MEMORY,
    RP_SG_ARRIVE,     /* a rank arrives at a collective; the next node is the collective */
    RP_SG_RENDEZVOUS, /* all ranks of a collective are there */
    RP_SG_KINDS
};
extern const char *const rp_sg_kind_names[RP_SG_KINDS];

enum rp_sg_edge_kind {
    RP_SG_ORDER,    /* on a thread */
    RP_SG_LAUNCH,   /* from the host call to the device */
    RP_SG_STREAM,   /* on a stream */
    RP_SG_IN_GRAPH, /* inside a graph that was launched as one */
    RP_SG_EVENT,    /* an event recorded on one stream, waited for on another */
    RP_SG_SYNC,     /* from the device to a call that waits for it */
    RP_SG_HAND_OFF, /* from one thread to another */
    RP_SG_FORWARD,  /* from an operator to its backward operator */
    RP_SG_MEMBER,   /* into and out of a collective */
    RP_SG_AFTER,    /* after the work that ended last: nothing else explains its start */
    RP_SG_EDGE_KINDS
};
extern const char *const rp_sg_edge_names[RP_SG_EDGE_KINDS];

/* Flags of an edge. */
enum {
    RP_SG_FROM_START = 1, /* the lag counts from the start of the predecessor */
    RP_SG_BINDING = 2,    /* what the successor waited for in the recording */
    RP_SG_INFERRED = 4,   /* it follows from times and the order of calls, not from a record */
    RP_SG_LOOSE = 8       /* it does not bind: the successor paused for another reason */
};

/* Flags of a node. */
enum {
    RP_SG_WORK = 1 /* an operator, a runtime call or device work, not an annotation or frame */
};

struct rp_sg_node {
    int64_t start_ns, dur_ns; /* as recorded */
    rp_event event;           /* RP_NONE: none */
    uint32_t name;            /* index in names */
    uint32_t lane;
    uint32_t rank;       /* which of the given ranks */
    uint32_t collective; /* index in its rank's list, or RP_NONE */
    uint8_t kind, flags;
    uint16_t reserved[5]; /* 0, because digests store nodes and edges as bytes */
};
_Static_assert(sizeof(struct rp_sg_node) <= 64, "a node is at most 64 bytes");

struct rp_sg_edge {
    int64_t lag_ns;
    uint32_t from, to;
    uint8_t kind, flags;
    uint16_t reserved[3];
};

/* A thread or a stream; the nodes of one are [first, end), in time order. */
struct rp_sg_lane {
    const char *label; /* "thread 17", "stream 7" */
    uint32_t rank, first, end;
    rp_track track; /* a track of the trace; the first one of several */
    bool device;
};

struct rp_stepgraph {
    struct rp_arena arena; /* names and labels */
    int64_t begin_ns, end_ns;
    uint32_t nranks, nlanes;
    RP_VEC(struct rp_sg_node) nodes;
    RP_VEC(struct rp_sg_edge) edges; /* sorted by successor when frozen: those into v are in[v] … */
    RP_VEC(uint32_t) in, out;        /* n + 1 entries each, into edges and out_edges */
    RP_VEC(uint32_t) out_edges;      /* edges by predecessor */
    RP_VEC(uint32_t) order;          /* every node comes after its predecessors */
    RP_VEC(struct rp_sg_lane) lanes;
    RP_VEC(const char *) names; /* name 0 is "" */
    RP_VEC(uint32_t) arrivals;  /* by collective of the rank: its RP_SG_ARRIVE, or RP_NONE */
    uint32_t ndropped; /* number of edges against the recorded times, which were left out */
};

/* The graph as a member of a part (result/part.h). A part adopts the graph's arena:
   rp_arena_adopt. */
extern const struct rp_type rp_stepgraph_type;

/*
 * Builds the graph of a rank over its work window, from the work without a scope and its
 * collectives. O(n log n) in events. Must be released also after a failure.
 */
enum rp_code rp_sg_init(struct rp_stepgraph *out, const struct rp_work *work,
                        const struct rp_collectives *collectives, struct rp_err *err);
void rp_sg_release(struct rp_stepgraph *g);
/* Frees data that is only needed to walk the graph: rows of edges and the order of nodes. */
void rp_sg_drop_index(struct rp_stepgraph *g);

static inline int64_t rp_sg_end_ns(const struct rp_sg_node *n)
{
    return rp_ns_sum(n->start_ns, n->dur_ns);
}

static inline bool rp_sg_on_device(const struct rp_stepgraph *g, size_t node)
{
    uint32_t lane = g->nodes.at[node].lane;

    return lane != RP_NONE && g->lanes.at[lane].device;
}

/* Returns the binding edge into a node, or RP_NONE for the origin. */
uint32_t rp_sg_binding(const struct rp_stepgraph *g, uint32_t node);

/*
 * Runs the graph forward: start_ns[v] becomes the latest of its predecessors' anchors and lags. dur
 * replaces the recorded durations, or is NULL. Returns the last end. O(nodes + edges).
 */
int64_t rp_sg_run(const struct rp_stepgraph *g, const int64_t *dur_ns, int64_t *start_ns);

/* No launch and no hand-over between streams takes longer than this on a device. */
#define RP_SG_UNEXPLAINED_NS 100000
RP_DECISION(
    RP_SG_UNEXPLAINED_NS, "ns",
    "what waits for longer waited for something that was not recorded, such as another process "
    "(docs/definitions.md, unrecorded)",
    "stepgraph/a_long_wait_on_the_device_is_unexplained, "
    "sim/a_graph_keeps_waits_that_nothing_explains");

/* Computes by how much each node may end later than recorded before end_ns is exceeded; INT64_MAX
   for one that ends after that. O(nodes + edges). */
void rp_sg_slack(const struct rp_stepgraph *g, int64_t end_ns, int64_t *slack_ns);
