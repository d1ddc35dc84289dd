/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The call tree of a rank's typical steps, for comparing it with that of another run. A node is a
 * position: the k-th span of a name and shape below its parent. The same position in several steps
 * is one node, with the time of one step.
 *
 *     Optimizer.step          range
 *       aten::add_ [512]      operator, the first such below its parent
 *       aten::add_ [512]      the second
 *     graph kernel            device work that was not launched by a recorded operator
 */
#include "base/arena.h"
#include "facts/work/work.h"

#include <reprise/result.h>

enum rp_diff_node_kind { RP_DIFF_OP, RP_DIFF_RANGE, RP_DIFF_MODULE, RP_DIFF_WORK };

struct rp_diff_node {
    uint64_t exact; /* hash of kind, name and shape; ranges and modules without the numbers in their
                       names */
    uint64_t near;  /* the same with only the first two tensors of the shape */
    uint64_t loose; /* hash of the kind, and of the name without its numbers */
    uint32_t name, shape, source; /* ids in the strings; 0: not known */
    uint32_t parent, child, next; /* RP_NONE if there is none; children are in the order of time */
    uint32_t work, nwork;         /* its own pieces */
    int64_t own_ns, total_ns;     /* times in a step; total includes everything below */
    int64_t host_ns; /* time of its spans in a step, without spans below that are nodes */
    int64_t calls;   /* number of spans, in all steps that were taken */
    int64_t works;   /* number of pieces of work in the node and below */
    uint32_t depth;
    uint8_t kind; /* enum rp_diff_node_kind */
    uint8_t unused[3];
};

/* All device work with one name at a node; without a device, the time of the span itself. */
struct rp_diff_piece {
    uint64_t hash; /* of the kernel's name */
    uint32_t node, name;
    uint32_t row; /* row of its times by step */
    uint32_t unused;
    int64_t count, ns; /* count: in all steps that were taken; ns: in one step */
};

#define RP_DIFF_SLOTS 32 /* number of steps for which the times of each piece are kept */

struct rp_diff_tree {
    RP_VEC(const char *) strings;        /* string 0 is "" */
    RP_VEC(struct rp_diff_node) nodes;   /* parents first */
    RP_VEC(struct rp_diff_piece) pieces; /* by node */
    RP_VEC(float) slot_ns;               /* by row and slot: time in each step that was seen */
    uint32_t nslots;
    uint32_t first;            /* first of the top nodes, or RP_NONE */
    int64_t steps;             /* how many were taken */
    int64_t total_ns, host_ns; /* of a step */
};

/* A step of the trace: from its mark to the next one, and how long it lasts. */
struct rp_diff_window {
    int64_t host_begin_ns, host_end_ns, begin_ns, end_ns;
    bool taken; /* one of the steps whose mean is taken */
};

/* The steps that are compared; if there are none, everything that the scope selects counts as one
   step. */
struct rp_diff_steps {
    const struct rp_scope *scope;
    size_t n;
    const struct rp_diff_window *windows; /* in the order of time */
    bool by_launch;                       /* marks are on the host */
    int64_t taken;
};

extern const struct rp_type rp_diff_tree_type; /* for use as a member of a part (result/part.h) */

/* Strings are in the arena; the caller owns the vectors, also after a failure. Without device work,
   times of host spans are used. */
enum rp_code rp_diff_tree_init(struct rp_diff_tree *out, const struct rp_work *work,
                               const struct rp_diff_steps *steps, struct rp_arena *arena,
                               struct rp_err *err);
