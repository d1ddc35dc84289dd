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
    size_t n;            /* transfers it was fitted to; 0: none, and nothing else is set */
    double spread_ratio; /* how far the rate of one step is from it, on average */
    double mean_bytes, mean_ns;
    double most_bytes;      /* of a transfer that it was fitted to: what larger ones take ... */
    double slower_by_twice; /* ... for twice the bytes is longer by this part of the time a byte */
    bool one_size;          /* the sizes do not differ enough to tell latency from rate */
};

struct rp_transfer {
    int64_t begin_ns, end_ns, bytes;
    double work_ns; /* 0 before */
    uint32_t at;    /* the caller's own */
};

/* Sorts transfers by their begin, and computes the work of each. */
void rp_transfers_share(struct rp_transfer *list, size_t n);

/* From all-reduces of the first rank whose size is known. Waiting for other ranks is not part of a
   transfer where they were recorded too. Uses the lean of the run. */
enum rp_code rp_transport_fit(const struct rp_sim_run *run, struct rp_transport *out,
                              struct rp_err *err);

/* The most that a round of messages may take in addition to its bytes. */
double rp_transport_round_ns(const struct rp_sim_run *run);

/* By which fraction transfers of another run may take longer or shorter. */
double rp_transport_doubt(const struct rp_transport *t);

/* How long a transfer takes alone. */
int64_t rp_transport_ns(const struct rp_transport *t, int64_t bytes);
