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

/* overlay.c: writes the traces with the paths drawn over them, to a file or, of several ranks, into
   a folder. The traces are read a second time. */
enum rp_code rp_critpath_write_overlays(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                        const char *to, struct rp_arena *arena,
                                        struct rp_critpath_root *root, struct rp_err *err);

/* What a path is described from. */
struct rp_critpath_view {
    const struct rp_stepgraph *graph;
    const struct rp_path *path; /* cut to the scope by the description */
    const struct rp_scope *scope;
    const int64_t *slack_ns;               /* by node */
    const struct rp_sg_last_arrival *held; /* by collective of the rank, or NULL */
    const struct rp_ranks *ranks;          /* for their numbers */
    uint32_t rank;                         /* of a graph of one rank: which of them */
    bool gains;                            /* find out what names could gain */
};
/* describe.c: names are those of the graph, whose memory must live as long as the result. */
enum rp_code rp_critpath_describe(const struct rp_critpath_view *view, size_t limit,
                                  struct rp_arena *arena, struct rp_critpath_path *out,
                                  struct rp_err *err);
/* slack.c: the slack of names, and of threads and streams. */
enum rp_code rp_critpath_slack(const struct rp_critpath_view *view, struct rp_arena *arena,
                               struct rp_critpath_path *out, struct rp_err *err);
/* How well the graph reproduces the recording and, if requested, what the first names of the path
   could gain. */
enum rp_code rp_critpath_gains(const struct rp_stepgraph *g, bool gains,
                               struct rp_critpath_path *out, struct rp_err *err);

/* The next piece of a segment that lies in the scope, behind *from_ns, which begins as INT64_MIN
   and becomes its end; false: none is left. */
bool rp_critpath_clip(const struct rp_scope *scope, const struct rp_path_segment *s,
                      int64_t *from_ns, struct rp_path_segment *piece);
/* The time of all pieces. */
int64_t rp_critpath_time(const struct rp_scope *scope, const struct rp_path_segment *s);
