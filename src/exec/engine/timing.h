/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Times of repeated runs and their statistics; docs/definitions.md defines the terms.
 */
#include "base/vec.h"
#include "exec/engine/engine.h"

#define RP_TIMING_BLOCKS 20

struct rp_timing_options {
    int64_t iterations; /* 0: until time_ns is over and the median is known well */
    int64_t time_ns;    /* 0: a second */
    int64_t warmup;     /* negative: until it is stable */
    bool cold;          /* empty the caches before each run */
};

struct rp_timing {
    int64_t first_ns;
    int64_t min_ns, p50_ns, p90_ns, p99_ns, max_ns, mean_ns;
    int64_t low_ns, high_ns; /* interval of the median with 95 % confidence */
    size_t n, warmups;
    int64_t warmup_ns;    /* of all warm-up runs */
    RP_VEC(int64_t) runs; /* in the order of the runs */
    /* For comparisons: successive runs are not independent, but blocks of them nearly are. */
    int64_t blocks[RP_TIMING_BLOCKS]; /* low times of blocks of successive runs */
    size_t nblocks;
    RP_VEC(int64_t) machine; /* times of a fixed piece of work between runs, in order */
    int64_t machine_ns;      /* their low percentile; 0: none */
    double waited; /* time in which threads were ready but had no processor, as a share of the runs'
                      time */
};

/* Makes the first run, the warm-up and the measured runs. */
enum rp_code rp_timing_run(struct rp_executable *exe, const struct rp_timing_options *options,
                           struct rp_timing *out, struct rp_err *err);
/* Computes percentiles of the times, whose order stays. */
enum rp_code rp_timing_sum_up(struct rp_timing *t, struct rp_err *err);
void rp_timing_release(struct rp_timing *t);
