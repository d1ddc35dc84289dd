/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_SIM_JOB_MEANS_WORK_H
#define RP_SIM_JOB_MEANS_WORK_H
/* What the files that make means of a job share while they work. */
#include "base/hash.h"
#include "sim/job_means.h"

struct rp_means_rank {
    RP_VEC(int64_t) step_begin_ns, step_end_ns; /* of operators in the graph, by step */
    struct rp_map op_of;                        /* hash of (name, step) -> op */
    struct rp_map transfer_of;                  /* place -> transfer */
    struct rp_map in_graph;                     /* hash of name -> 1: an operator of the graph */
    struct rp_map updates;                      /* hash of name -> 1 */
};

struct rp_means {
    struct rp_job_means *out;
    const struct rp_job *job;
    struct rp_means_rank *work;
    struct rp_err *err;
};

struct rp_mean {
    double sum, n;
};

static inline void rp_mean_count(struct rp_mean *x, double value)
{
    x->sum += value;
    x->n++;
}

static inline double rp_mean_of(const struct rp_mean *x)
{
    return x->n > 0 && x->sum > 0 ? x->sum / x->n : 0;
}

/* The step of a rank in which a moment lies, or SIZE_MAX. */
size_t rp_means_step(const struct rp_means_rank *w, int64_t ns);

/* Finds a rank's transfers by group, step and place; behind groups and operators. */
enum rp_code rp_means_index_transfers(struct rp_means *m, size_t rank);
/* Whether sends and receives of a rank ever overlap. */
enum rp_code rp_means_find_duplex(struct rp_means *m, size_t rank);
/* Behind both of them for all ranks, and behind the clocks. */
enum rp_code rp_means_of_transfers(struct rp_means *m, size_t rank);

#endif
