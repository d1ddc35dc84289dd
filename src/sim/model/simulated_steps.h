/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds when the steps of a simulated run begin and end on each rank, by the same definition as in
 * a recording (facts/times/step_times.h), so a recording that is run unchanged has its recorded
 * steps.
 */
#include "facts/times/intervals.h"
#include "sim/model/run.h"

struct rp_sim_rank_steps {
    size_t n;
    struct rp_interval *times; /* in simulated time */
    int64_t *mark_ns;          /* when the mark of each begins */
    int64_t mark_end_ns;       /* when the mark of the last one ends */
    int64_t step_ns;           /* the median of the times */
};

struct rp_sim_steps {
    struct rp_arena arena;
    size_t nranks;
    struct rp_sim_rank_steps *ranks;
    int64_t step_ns;     /* the mean over the ranks; for parallel steps, over all steps */
    int64_t distance_ns; /* for the first rank, between the begins of successive work
                            (sim/model/part.h) */
};

/* Lists the nodes by which steps are measured, once for all simulations of a run. */
enum rp_code rp_sim_timers_find(struct rp_sim_run *run, struct rp_err *err);

/* O(timers and new tasks). Must be released also after a failure. */
enum rp_code rp_sim_steps_init(struct rp_sim_steps *out, const struct rp_sim_run *run,
                               const struct rp_sim_result *result, struct rp_err *err);
void rp_sim_steps_release(struct rp_sim_steps *steps);

/* Computes only step_ns. */
enum rp_code rp_sim_step_ns(const struct rp_sim_run *run, const struct rp_sim_result *result,
                            int64_t *out, struct rp_err *err);

/* The rank with the usual step, and which of its steps that is; if the number is even, these are
   two, else both are the same. */
struct rp_sim_usual {
    size_t rank, steps[2];
};
enum rp_code rp_sim_steps_usual(const struct rp_sim_run *run, struct rp_sim_steps *steps,
                                struct rp_sim_usual *out, struct rp_err *err);

/* What the recording says, as the mean over the ranks that are simulated. */
int64_t rp_sim_measured_ns(const struct rp_sim_run *run);
