/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_IDLE_IDLE_H
#define RP_EXPLAIN_IDLE_IDLE_H
/*
 * `idle`: why devices do nothing. gaps.c finds the gaps of a rank and the cause of each; idle.c has
 * the row of the question and adds the gaps up by cause, of a rank and of all ranks.
 */
#include "base/arena.h"
#include "explain/idle/gaps.h"

#include <reprise/result.h>

struct rp_idle_cause {
    const char *cause, *cls, *evidence; /* evidence: NULL if there is none */
    int64_t total_ns, count, longest_ns;
    double share; /* of idle */
};
extern const struct rp_type rp_idle_cause_type; /* all members: may be the item of a part */

struct rp_idle_gap {
    int64_t rank, begin_ns, dur_ns;
    const char *cause, *cls, *before, *after, *host, *thread;
    const char *after_label; /* text output only */
};

/* The part of a rank, and its record in the answer. */
struct rp_idle_rank {
    const char *path;
    int64_t rank, window_ns, busy_ns, idle_ns, gap_count;
    double idle_share, explained_share; /* of the window; of idle: cause other than unknown */
    size_t ncauses, ngaps;
    struct rp_idle_cause *causes;
    struct rp_idle_gap *gaps; /* the longest, first the longest */
};

struct rp_idle_root {
    const char *summary;
    size_t nranks, nrows, ncauses, ngaps;
    struct rp_idle_rank *ranks, *rows; /* rows: the same, where there are several */
    struct rp_idle_cause *causes;      /* of all ranks and classes, text output only */
    struct rp_idle_gap *gaps;
};

/* Adds gaps up by cause and class, most time first; rows and texts are in the arena. */
enum rp_code rp_idle_add_up(const struct rp_work *work, const rp_gap_vec *gaps,
                            struct rp_arena *arena, struct rp_idle_cause **out, size_t *nout,
                            struct rp_err *err);

#endif
