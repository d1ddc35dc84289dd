/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Adds weights to the call tree of a rank. A path is a stack of the trace, known by its innermost
 * frame and the path of its caller. The tree has a node for each path, or if the answer is split,
 * for each path in each thread or step, below a node that names it. If the order of time is wanted,
 * a second tree is made of runs: a frame that stays on the stack from one weight of a thread to the
 * next is one node, and the children of a node are in the order of time.
 *
 *     weights in time    main>a  main>a  main>b  main>a
 *     the tree           main (a: 3, b: 1)
 *     the runs           main (a: 2, b: 1, a: 1)
 *
 * The time of a trace is divided into PIECES pieces. Within a piece, equal frames are one run,
 * whatever is between them, so that a million samples make no more nodes than a page can show.
 */
#include "base/hash.h"
#include "explain/top/stacks.h"

struct rp_stacks_adder {
    const struct rp_trace *t;
    struct rp_stacks_part *out;
    struct rp_stacks_how how;
    struct rp_arena *arena;
    RP_VEC(struct rp_stacks_node) paths; /* if empty, the nodes are the paths */
    struct rp_map node_of;               /* (part, path) -> node */
    struct rp_map part_of, lane_of;      /* from thread or step to node; from thread to frame */
    RP_VEC(uint32_t) chain;              /* scratch */
    RP_VEC(struct rp_stacks_run) runs;   /* by node of out->runs */
    uint32_t last_lane;                  /* the last run without a parent; RP_NONE: none */
    int64_t begin_ns;
    double pieces_a_ns;
    bool has_lanes;
};

struct rp_stacks_run {
    uint32_t last, before; /* its last child; the run before it with the same parent; or RP_NONE */
    uint32_t piece;        /* piece of time that contains its last weight */
};

/* Must be released also after a failure. */
void rp_stacks_adder_init(struct rp_stacks_adder *a, const struct rp_trace *trace,
                          const struct rp_stacks_how *how, struct rp_arena *arena,
                          struct rp_stacks_part *out);
void rp_stacks_adder_release(struct rp_stacks_adder *a);

/* Paths are numbered in the order in which they are added, after their parents. */
enum rp_code rp_stacks_add_path(struct rp_stacks_adder *a, uint32_t parent, uint32_t frame,
                                struct rp_err *err);

/* A weight that begins at `ts_ns` on `track` (RP_NONE: no thread). The path RP_NONE is not known.
   Weights of a track come in the order of time. `count` is 0 or 1. */
struct rp_stacks_weighed {
    uint32_t path, track;
    int64_t ts_ns, weight, count;
};
enum rp_code rp_stacks_add(struct rp_stacks_adder *a, const struct rp_stacks_weighed *w,
                           struct rp_err *err);

/* The end of the step that contains this time, or of the time between steps, so that longer weights
   can be divided. */
int64_t rp_stacks_part_end_ns(const struct rp_stacks_adder *a, int64_t ts_ns);
