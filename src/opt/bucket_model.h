/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The gradients of a recorded run as a chain of groups. A bucket is sent when its last gradient is
 * ready on every rank and copied from the device. Transfers share the transport, so all that were
 * sent are there when their work is done, in whatever order: the state is one time a step.
 */
#include "opt/groups.h"
#include "sim/whatif/buckets.h"

struct rp_opt_bucket_model {
    struct rp_arena arena;
    struct rp_sim_bucket_costs costs;
    size_t n, nsteps;
    int64_t *bytes;   /* by gradient of a step */
    double *ready_ns; /* by step, then gradient: on the slowest rank, after the first of the step */
    struct rp_opt_chain chain;
};

/* Of the base of a run. RP_UNSUPPORTED where buckets cannot be searched. Release it also after a
   failure. */
enum rp_code rp_opt_bucket_model_init(struct rp_opt_bucket_model *m, const struct rp_worlds *x,
                                      struct rp_err *err);
void rp_opt_bucket_model_release(struct rp_opt_bucket_model *m);

/* The buckets of a size: ends by gradient. */
void rp_opt_bucket_ends(const struct rp_opt_bucket_model *m, double mb, uint8_t *ends);
/* Those of the recording. */
void rp_opt_bucket_recorded(const struct rp_opt_bucket_model *m, const struct rp_worlds *x,
                            uint8_t *ends);
