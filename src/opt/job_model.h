/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Treats a job (dPRO directory) as a chain of groups of tensors. */
#include "job/costs.h"
#include "opt/groups.h"

struct rp_opt_job_rank;

struct rp_opt_job_model {
    struct rp_arena arena;
    const struct rp_job *job;
    struct rp_job_means means;
    struct rp_job_costs costs;
    size_t nranks, nphases;
    size_t n;          /* tensors that are sent */
    uint32_t *tensors; /* indices in job->tensors, in the order in which they become ready */
    double *latest_ns; /* in that order: when it is ready on all ranks */
    double *sum;       /* in that order: the bytes of the tensors before it */
    double agree_ns, follow_ns;
    double *agreed_ns; /* by tensor, then point of the cycle: when a group that ends with it is
                          agreed on */
    struct rp_opt_job_rank *ranks;
    size_t nsizes;
    double *sizes, *ring_ns; /* ring_ns is by size, then rank */
    struct rp_opt_chain chain;
};

/* The job's tensors must be loaded (rp_load_job_tensors). fused is a plan whose operators are
   fused, or NULL. Returns RP_UNSUPPORTED if groups cannot be searched. Must be released also after
   a failure. */
enum rp_code rp_opt_job_model_init(struct rp_opt_job_model *m, const struct rp_job *job,
                                   const struct rp_job_plan *fused, struct rp_err *err);
void rp_opt_job_model_release(struct rp_opt_job_model *m);

/* Finds the recorded groups, as far as they are ranges of that order. */
void rp_opt_job_recorded(const struct rp_opt_job_model *m, uint8_t *ends);
