/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `critpath`: the critical path of each rank and, where ranks meet in collectives, of the run: its
 * segments, its time by kind and by name, what a name could gain, and the slack of what is not on
 * it. critpath.c has the row of the question and joins the ranks, describe.c turns a path into
 * rows, slack.c adds slack and gains, overlay.c draws the paths over the traces.
 */
#include "dataset/ranks.h"
#include "explain/critpath/answer.h"
#include "stepgraph/critical_path.h"
#include "stepgraph/join.h"

/* overlay.c: writes the traces with the paths drawn over them: one to a file, several into a
   folder. The traces are read a second time. */
enum rp_code rp_critpath_write_overlays(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                        const char *to, struct rp_arena *arena,
                                        struct rp_critpath_root *root, struct rp_err *err);

/* The data from which a path is described. */
struct rp_critpath_view {
    const struct rp_stepgraph *graph;
    const struct rp_path *path; /* the description clips it to the scope */
    const struct rp_scope *scope;
    const int64_t *slack_ns;               /* by node */
    const struct rp_sg_last_arrival *held; /* by collective of the rank, or NULL */
    const struct rp_ranks *ranks;          /* for their numbers */
    uint32_t rank;                         /* for a graph of one rank: the number of that rank */
    bool gains;                            /* compute how much names could gain */
};
/* describe.c: names are those of the graph, whose memory must live as long as the result. */
enum rp_code rp_critpath_describe(const struct rp_critpath_view *view, size_t limit,
                                  struct rp_arena *arena, struct rp_critpath_path *out,
                                  struct rp_err *err);
/* slack.c: computes the slack of names, and of threads and streams. */
enum rp_code rp_critpath_slack(const struct rp_critpath_view *view, struct rp_arena *arena,
                               struct rp_critpath_path *out, struct rp_err *err);
/* Measures how well the graph reproduces the recording and, if requested, how much the first names
   of the path could gain. */
enum rp_code rp_critpath_gains(const struct rp_stepgraph *g, bool gains,
                               struct rp_critpath_path *out, struct rp_err *err);

/* Finds the next piece of a segment that lies in the scope, after *from_ns, which starts as
   INT64_MIN and becomes the piece's end; false if none is left. */
bool rp_critpath_clip(const struct rp_scope *scope, const struct rp_path_segment *s,
                      int64_t *from_ns, struct rp_path_segment *piece);
/* The total time of the pieces that lie in the scope. */
int64_t rp_critpath_time(const struct rp_scope *scope, const struct rp_path_segment *s);
