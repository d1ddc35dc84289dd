/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The critical path of a graph: a chain of nodes, each bound by its predecessor, from the begin of
 * the window to its end. It covers the window without holes: every segment is a part of a recorded
 * event, or a wait with its cause.
 *
 *     thread   [op [launch]]                [sync.........]
 *     stream                  ~~[kernel][kernel]
 *     path      ============>--=================>========
 */
#include "stepgraph/graph.h"

enum rp_segment_kind {
    RP_PATH_HOST,    /* a span of a thread */
    RP_PATH_RUNTIME, /* a call of the device's runtime */
    RP_PATH_COMPUTE,
    RP_PATH_COMM,
    RP_PATH_MEMORY,
    RP_PATH_WAIT,
    RP_PATH_KINDS
};
extern const char *const rp_segment_kind_names[RP_PATH_KINDS];

enum rp_path_cause {
    RP_PATH_NO_CAUSE,
    RP_PATH_LAUNCH_LATENCY, /* from the end of the launch to the start on the device */
    RP_PATH_STREAM_ORDER,   /* after the previous work of its stream */
    RP_PATH_EVENT_WAIT,     /* after work of another stream */
    RP_PATH_THREAD_GAP,     /* the thread recorded nothing between two of its spans */
    RP_PATH_HAND_OFF,       /* from one thread to another */
    RP_PATH_OTHER_RANK,     /* in a collective, until the last rank arrived */
    RP_PATH_UNRECORDED,     /* no record tells why */
    RP_PATH_CAUSES
};
extern const char *const rp_path_cause_names[RP_PATH_CAUSES];

struct rp_path_segment {
    int64_t begin_ns, end_ns;
    uint32_t node; /* the node that runs or waits */
    uint32_t peer; /* which of the given ranks it waits for, or RP_NONE */
    uint8_t kind, cause;
    uint8_t unused[6];
};

struct rp_path {
    int64_t begin_ns, end_ns;             /* the window */
    RP_VEC(struct rp_path_segment) parts; /* in time order and without gaps, from begin to end */
};

/* Walks back from the last end up to until_ns over binding edges: linear in the path. The path must
   be released also after a failure. */
enum rp_code rp_path_find(const struct rp_stepgraph *g, int64_t until_ns, struct rp_path *out,
                          struct rp_err *err);
void rp_path_release(struct rp_path *path);

/* Returns the kind of a node's time on the path. */
uint8_t rp_segment_kind_of(const struct rp_sg_node *node);
