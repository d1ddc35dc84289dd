/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The answer of `critpath`, for the code that asks for it. */
#include "facts/clocks/clocks.h"
#include "trace/trace.h"

struct rp_critpath_segment {
    const char *kind, *name, *cause; /* name is NULL in waits; cause is NULL elsewhere */
    int64_t start_ns, dur_ns;
    int64_t rank;
    rp_track track; /* track in the trace of its rank; RP_NONE in waits */
};

/* Time on the path by kind, and by name or cause. */
struct rp_critpath_share {
    const char *kind, *name;
    int64_t total_ns, count;
    int64_t gain_ns; /* the end would be earlier by this if it took no time; absent: not computed */
    double share;
    uint32_t name_id; /* id in the graph; RP_NONE in waits */
    uint8_t kind_id;
    const char *label; /* text output only */
};

/* rp_critpath_slack: a name of a kind, or a thread or stream, on the path or not. */
struct rp_critpath_slack {
    const char *kind, *name, *track;
    int64_t rank;
    int64_t count, total_ns, path_ns;
    int64_t slack_ns; /* the smallest slack of its parts */
    const char *label;
};

struct rp_critpath_rank_share { /* of the run's path */
    struct rp_clock clock;      /* not shown: how its times become those of the first rank */
    int64_t rank, total_ns, offset_ns, window_ns;
    int64_t median_slack_ns; /* half of its time has more slack than this */
    /* Times on its own path; waits for other ranks are not among the waits. */
    int64_t host_ns, runtime_ns, compute_ns, comm_ns, memory_ns, other_rank_ns, wait_ns;
    double share;
};

/* The path of a rank, or of the run. */
struct rp_critpath_path {
    const char *path;
    size_t source;      /* number of the input */
    uint32_t in_source; /* its number among the ranks, if the input is a merged trace */
    int64_t rank, window_ns, length_ns;
    int64_t replay_error_ns; /* error of the graph when it is run forward */
    size_t nkinds, nnames, nslack, ntracks, nsegments, nshares;
    struct rp_critpath_share *kinds, *names;  /* most time first */
    struct rp_critpath_slack *slack, *tracks; /* least slack first */
    struct rp_critpath_segment *segments;     /* in time order */
    bool joined;                              /* for the run: its ranks meet in collectives */
    const char *clock;                        /* for the run: "recorded" or "aligned" */
    int64_t meeting_count;
    struct rp_critpath_rank_share *shares; /* of the run */
    const char *summary;                   /* text output only */
    size_t nshown, nnext, nrank_rows;
    struct rp_critpath_share *shown; /* of names */
    struct rp_critpath_slack *next;  /* what is not on the path, by slack */
    struct rp_critpath_rank_share *rank_rows;
};

struct rp_critpath_root {
    struct rp_critpath_path run;
    size_t nranks, nblocks, nnotes, nwritten;
    struct rp_critpath_path *ranks;
    struct rp_critpath_path *blocks; /* text output only: the ranks, if they were not joined */
    const char **notes;
    const char **written; /* overlays */
};
