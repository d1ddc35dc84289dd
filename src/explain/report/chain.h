/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_REPORT_CHAIN_H
#define RP_EXPLAIN_REPORT_CHAIN_H
/*
 * What sets the pace of a run. Collectives hold everybody until the last rank comes, so the time of
 * a run is that of a chain: up to each collective the time of the rank that came last, then its
 * transfer, and so on. What was lost on that chain would have made the run shorter; what was lost
 * elsewhere would only have made a rank wait longer.
 *
 *     rank 0  ....idle....[==AR==]..........[wait AR==]   chain: rank 0 up to the first collective,
 *     rank 1  ..[wait......AR==]......idle.......[AR==]   from there rank 1 up to the second
 *
 * Where the hosts meet (gloo) and the devices do not, the waits are counted, but each device has a
 * time of its own: then the rank that lost most speaks for the run.
 */
#include "explain/report/report.h"

struct rp_chain_rank {
    int64_t wait_ns, transfer_ns, last_count; /* as in docs/definitions.md, "Collectives" */
    int64_t margin_ns;                        /* by how much it came last, after the second last */
    int64_t exposed_wait_ns;                  /* waiting while no compute ran */
};

struct rp_chain {
    size_t ncollectives;             /* in which ranks meet */
    int64_t span_ns;                 /* from the first start to the last end of these */
    bool beside;                     /* they run on the hosts, beside the devices */
    size_t lead;                     /* the rank at the end of the chain */
    bool clocks_differ;              /* the ranks' times do not fit together */
    int64_t cause_ns[RP_GAP_CAUSES]; /* idle on the chain */
    int64_t transfer_ns;             /* exposed communication on the chain, without waiting */
    int64_t copies_ns;               /* copies and memsets on it, while no kernel runs */
    int64_t margin_ns;               /* by how much collectives on the chain were held up */
    struct rp_chain_rank *ranks;     /* one an input */
};

/* Allocates in the arena. */
enum rp_code rp_chain_make(const struct rp_report_input *ranks, size_t n, struct rp_arena *arena,
                           struct rp_chain *out, struct rp_err *err);

#endif
