/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_TRACE_CRITPATH_H
#define RP_EXPLAIN_TRACE_CRITPATH_H
/*
 * The critical path of each rank: its segments, and where its time goes by kind and by name.
 */
#include "result/result.h"
#include "stepgraph/critical_path.h"

struct rp_critpath_segment {
    const char *kind, *name, *cause; /* name: NULL in waits; cause: NULL elsewhere */
    int64_t start_ns, dur_ns;
};

/* Time on the path of one kind, and of one name or cause. */
struct rp_critpath_share {
    const char *kind, *name;
    int64_t total_ns, count;
    double share;
    const char *label; /* for the screen */
};

struct rp_critpath_rank {
    const char *path;
    int64_t rank, window_ns, length_ns;
    size_t nkinds, nnames, nsegments;
    struct rp_critpath_share *kinds, *names; /* most time first */
    struct rp_critpath_segment *segments;    /* in time order */
    const char *summary;                     /* for the screen */
    size_t nshown;
    struct rp_critpath_share *shown; /* of names, for the screen */
};

struct rp_critpath_root {
    size_t nranks;
    struct rp_critpath_rank *ranks;
};

extern const struct rp_type rp_critpath_type;

/* A rank's part: the path, and its names once each. */
struct rp_critpath_part {
    struct rp_path path;
    size_t ntexts;
    const char **texts; /* in the arena */
    uint32_t *text;     /* by segment: into texts; RP_NONE in waits */
};

/* With a scope, what of the path lies in it. Release the part also after a failure. */
enum rp_code rp_critpath_rank(const struct rp_trace *trace, const struct rp_scope *scope,
                              struct rp_arena *arena, struct rp_critpath_part *out,
                              struct rp_err *err);
void rp_critpath_part_release(struct rp_critpath_part *part);

/* Fills all but path and rank, which are set before, from a part, with copies of its texts. At most
   `limit` names are for the screen. */
enum rp_code rp_critpath_fill(const struct rp_critpath_part *part, size_t limit,
                              struct rp_arena *arena, struct rp_critpath_rank *out,
                              struct rp_err *err);

#endif
