/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_IDLE_IDLE_H
#define RP_EXPLAIN_IDLE_IDLE_H
/*
 * Why devices are idle: the gaps of each rank added up by cause, with the evidence that weighs
 * most, and the longest gaps one by one.
 */
#include "explain/idle/gaps.h"
#include "result/result.h"

struct rp_idle_cause {
    const char *cause, *cls, *evidence; /* evidence: NULL where there is none */
    int64_t total_ns, count, longest_ns;
    double share; /* of idle */
    const char *meaning;
};

struct rp_idle_gap {
    int64_t rank, begin_ns, dur_ns;
    const char *cause, *cls, *before, *after, *host, *thread;
    const char *after_label; /* for the screen */
};

struct rp_idle_rank {
    const char *path;
    int64_t rank, window_ns, busy_ns, idle_ns, gap_count;
    double idle_share, explained_share; /* of the window; of idle: cause other than unknown */
    size_t ncauses, ngaps;
    struct rp_idle_cause *causes;
    struct rp_idle_gap *gaps; /* the longest, first the longest */
};

/* A cause over all ranks, for the screen. */
struct rp_idle_root {
    const char *summary;
    size_t nranks, ncauses, ngaps, nrows, nnotes;
    struct rp_idle_rank *ranks, *rows; /* rows: the same, where there are several */
    struct rp_idle_cause *causes;
    struct rp_idle_gap *gaps;
    const char **notes;
};

extern const struct rp_type rp_idle_type;

/* Fills all but path and rank; texts are copied into the arena. At most `limit` gaps. */
enum rp_code rp_idle_rank(const struct rp_trace *trace, const struct rp_scope *scope, size_t limit,
                          struct rp_arena *arena, struct rp_idle_rank *out, struct rp_err *err);

/* The same from gaps that are there already; puts them out of order. */
enum rp_code rp_idle_fill(const struct rp_work *work, rp_gap_vec *gaps, size_t limit,
                          struct rp_arena *arena, struct rp_idle_rank *out, struct rp_err *err);

/* Adds the ranks up for the screen; takes over `ranks`, whose texts must be in the arena. */
enum rp_code rp_idle_join(struct rp_idle_rank *ranks, size_t n, size_t limit,
                          struct rp_arena *arena, struct rp_idle_root *out, struct rp_err *err);

#endif
