/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_COMM_LATE_H
#define RP_EXPLAIN_COMM_LATE_H
/*
 * Why a rank arrives last at collectives: what it did since its previous one is compared with the
 * median of the participants. More compute, more copies, more idle time, or a later end of that
 * previous collective: the largest difference is the cause.
 */
#include "explain/comm/leads.h"
#include "facts/ranks/rendezvous.h"

/* cause: "compute", "copy", a cause of idle time, "host" (idle, cause unknown), "previous" (its
   previous collective ended later), "start" (it began later); NULL: not known. */
struct rp_late {
    const char *cause, *evidence; /* evidence: the kernel or host span, or NULL */
    int64_t ns;                   /* above the median */
};

/* The ranks that take part, by their number in a rendezvous. */
struct rp_late_ranks {
    const struct rp_collectives *const *lists;
    const struct rp_comm_lead *const *leads;
    const struct rp_clock *clocks; /* of struct rp_rendezvous_list */
    int64_t *scratch;              /* room for one number per rank */
};

struct rp_late rp_late_of(const struct rp_late_ranks *ranks, const struct rp_rendezvous *m);

#define RP_LATE_CAUSES (RP_GAP_CAUSES + 5)

/* The causes of one rank, with what each cost the others. */
struct rp_late_sums {
    size_t n;
    struct {
        const char *cause, *evidence; /* evidence: of the collective with most of it */
        int64_t total_ns, longest_ns;
    } at[RP_LATE_CAUSES];
};

/* margin_ns: by how much the others were delayed. */
void rp_late_add(struct rp_late_sums *sums, const char *cause, const char *evidence,
                 int64_t margin_ns);

/* The cause that cost most; ns: what it cost. */
struct rp_late rp_late_main(const struct rp_late_sums *sums);

#endif
