/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Why a rank arrives last at collectives: what it did since its previous one is compared with the
 * median of the participants. More compute, more copies, more idle time, or a later end of that
 * previous collective: the largest difference is the cause. Where the previous one ended later, the
 * cause is why its last rank was late, and that may be another rank.
 */
#include "explain/comm/leads.h"
#include "facts/ranks/rendezvous.h"

/* cause: "compute", "copy", a cause of idle time, "host" (idle, cause unknown), "previous" (its
   previous collective ended later, nobody knows why), "start" (it began later); NULL: not known. */
struct rp_late {
    const char *cause, *evidence; /* evidence: the kernel or host span, or NULL */
    int64_t ns;                   /* above the median */
    uint32_t by;                  /* the rank whose doing it is, by its number in a rendezvous */
};
extern const char rp_late_previous[];

/* The ranks that take part, by their number in a rendezvous. */
struct rp_late_ranks {
    size_t n;
    const struct rp_collectives *const *lists;
    const struct rp_comm_lead *const *leads;
};

/* By rendezvous, in the arena. Linear in participants, and sorts those of each. */
enum rp_code rp_late_find(const struct rp_late_ranks *ranks, const struct rp_rendezvous_list *list,
                          struct rp_arena *arena, struct rp_late **out, struct rp_err *err);

/* More than there are causes: of a rank that others delay, each of these counts alone. */
#define RP_LATE_CAUSES ((size_t)2 * RP_GAP_CAUSES)

/* The causes of one rank, with what each cost the others. */
struct rp_late_sums {
    size_t n;
    struct {
        struct rp_late late; /* evidence: of the collective with most of it */
        int64_t total_ns, longest_ns;
    } at[RP_LATE_CAUSES];
};

/* margin_ns: by how much the others were delayed. */
void rp_late_add(struct rp_late_sums *sums, const struct rp_late *late, int64_t margin_ns);

/* The cause that cost most; ns: what it cost. */
struct rp_late rp_late_main(const struct rp_late_sums *sums);
