/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds why a rank arrives last at collectives: what it did since its previous one is compared with
 * the median of the participants. More compute, more copies, more idle time, or a later end of the
 * previous collective: the largest difference is the cause. If the previous one ended later, the
 * reason for which its last rank was late is the cause; that may be another rank, or ranks that
 * were late at several before it, each by a part.
 */
#include "explain/comm/leads.h"
#include "facts/ranks/rendezvous.h"

/* cause: "compute", "copy", a cause of idle time, "host" (idle, cause unknown), "previous" (its
   previous collective ended later for unknown reasons), "start" (it began later); NULL: not
   known. */
struct rp_late {
    const char *cause, *evidence; /* evidence: the kernel or host span, or NULL */
    int64_t ns;                   /* above the median */
    uint32_t by;                  /* number, in a rendezvous, of the rank that caused it */
    bool before;                  /* by what happened before the previous collective */
};
extern const char rp_late_previous[];

/* The ranks that take part, by their numbers in a rendezvous. */
struct rp_late_ranks {
    size_t n;
    const struct rp_collectives *const *lists;
    const struct rp_comm_lead *const *leads;
};

/* The result is by rendezvous, in the arena. Sorts the participants of each; otherwise linear. */
enum rp_code rp_late_find(const struct rp_late_ranks *ranks, const struct rp_rendezvous_list *list,
                          struct rp_arena *arena, struct rp_late **out, struct rp_err *err);

/* Enough for every cause twice: by the rank itself, and by another rank. */
#define RP_LATE_CAUSES ((size_t)2 * RP_GAP_CAUSES)

/* The causes of one rank's delays, with the cost of each to the others. */
struct rp_late_sums {
    size_t n;
    struct {
        struct rp_late late; /* evidence: from the collective with most of it */
        int64_t total_ns, longest_ns;
    } at[RP_LATE_CAUSES];
};

/* margin_ns: by how much the others were delayed. */
void rp_late_add(struct rp_late_sums *sums, const struct rp_late *late, int64_t margin_ns);

/* Returns the cause that cost most, and its cost in ns. */
struct rp_late rp_late_main(const struct rp_late_sums *sums);
