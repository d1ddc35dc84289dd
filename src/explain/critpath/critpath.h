/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_CRITPATH_CRITPATH_H
#define RP_EXPLAIN_CRITPATH_CRITPATH_H
/*
 * `critpath`: the critical path of each rank and, where ranks meet in collectives, of the run: its
 * segments, its time by kind and by name, what a name could gain, and the slack of what is not on
 * it. critpath.c has the row of the question and joins the ranks, describe.c turns a path into
 * rows, slack.c adds slack and gains, overlay.c draws the paths over the traces.
 */
#include "dataset/ranks.h"
#include "stepgraph/critical_path.h"
#include "stepgraph/join.h"

struct rp_critpath_segment {
    const char *kind, *name, *cause; /* name: NULL in waits; cause: NULL elsewhere */
    int64_t start_ns, dur_ns;
    int64_t rank;
    rp_track track; /* in the trace of its rank; RP_NONE in waits */
};

/* Time on the path by kind, and by name or cause. */
struct rp_critpath_share {
    const char *kind, *name;
    int64_t total_ns, count;
    int64_t gain_ns; /* the end is earlier by this if it takes no time; absent: not computed */
    double share;
    uint32_t name_id; /* of the graph; RP_NONE in waits */
    uint8_t kind_id;
    const char *label; /* text output only */
};

/* What runs, on the path or not: a name of a kind, or a thread or stream. */
struct rp_critpath_slack {
    const char *kind, *name, *track;
    int64_t rank;
    int64_t count, total_ns, path_ns;
    int64_t slack_ns; /* the least of its parts */
    const char *label;
};

struct rp_critpath_rank_share { /* of the run's path */
    struct rp_clock clock;      /* not shown: how its times become those of the first */
    int64_t rank, total_ns, offset_ns, window_ns;
    int64_t median_slack_ns; /* half of its time has more */
    /* Of its own path; waits for other ranks are not among the waits. */
    int64_t host_ns, runtime_ns, compute_ns, comm_ns, memory_ns, other_rank_ns, wait_ns;
    double share;
};

/* The path of a rank, or of the run. */
struct rp_critpath_path {
    const char *path;
    size_t source;      /* number of the input */
    uint32_t in_source; /* which of its ranks, where the input is a merged trace */
    int64_t rank, window_ns, length_ns;
    int64_t replay_error_ns; /* of the graph, run forward */
    size_t nkinds, nnames, nslack, ntracks, nsegments, nshares;
    struct rp_critpath_share *kinds, *names;  /* most time first */
    struct rp_critpath_slack *slack, *tracks; /* least slack first */
    struct rp_critpath_segment *segments;     /* in time order */
    bool joined;                              /* of the run: its ranks meet in collectives */
    const char *clock;                        /* of the run: "recorded" or "aligned" */
    int64_t meeting_count;
    struct rp_critpath_rank_share *shares; /* of the run */
    const char *summary;                   /* text output only */
    size_t nshown, nnext, nrank_rows;
    struct rp_critpath_share *shown; /* of names */
    struct rp_critpath_slack *next;  /* of slack: what is not on the path */
    struct rp_critpath_rank_share *rank_rows;
};

struct rp_critpath_root {
    struct rp_critpath_path run;
    size_t nranks, nblocks, nnotes, nwritten;
    struct rp_critpath_path *ranks;
    struct rp_critpath_path *blocks; /* text output only: the ranks, where they were not joined */
    const char **notes;
    const char **written; /* overlays */
};

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

#endif
