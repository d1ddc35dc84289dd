/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Latency and rate of the transport, from the collectives of a run. Concurrent transfers share it,
 * so a recorded transfer is first converted to work: the integral of 1/n over it, where n transfers
 * ran.
 *
 *     a  [======|===]           a: 6 alone, 3 shared    -> 6 + 1.5
 *     b         [===|====]      b: 3 shared, 4 alone    -> 1.5 + 4
 */
#include "base/decides.h"
#include "sim/model/run.h"

#define RP_RUNS_DIFFER 0.08
RP_DECISION(
    RP_RUNS_DIFFER, "of a step, or of a transfer",
    "by which runs of a program differ at least where threads carry collectives: others take "
    "their cores (docs/definitions.md, Interval)",
    "sim/transfers_of_another_run_differ, sim/runs_of_the_host_differ");

struct rp_transport {
    double bytes_per_ns;
    double latency_ns;
    size_t n; /* number of transfers to which it was fitted; 0: none, and nothing else is set */
    double spread_ratio; /* mean distance of the rate in one step from this rate */
    double mean_bytes, mean_ns;
    double most_bytes; /* size of the largest transfer to which it was fitted: beyond it, the time
                          for a byte ... */
    double slower_by_twice; /* ... increases by this part whenever the size doubles */
    bool one_size;          /* the sizes do not differ enough to distinguish latency and rate */
};

struct rp_transfer {
    int64_t begin_ns, end_ns, bytes;
    double work_ns; /* 0 before */
    uint32_t at;    /* the caller's own */
};

/* Sorts transfers by their begin, and computes the work of each. */
void rp_transfers_share(struct rp_transfer *list, size_t n);

/* Fits it to all-reduces of the first rank with known size. Waiting for other ranks does not count,
   if these were recorded, too. Uses the lean of the run. */
enum rp_code rp_transport_fit(const struct rp_sim_run *run, struct rp_transport *out,
                              struct rp_err *err);

/* The most time of a round of messages besides that for its bytes. */
double rp_transport_round_ns(const struct rp_sim_run *run);

/* The fraction by which transfers of another run may take longer or shorter. */
double rp_transport_doubt(const struct rp_transport *t);

/* The time of a transfer that runs alone. */
int64_t rp_transport_ns(const struct rp_transport *t, int64_t bytes);
