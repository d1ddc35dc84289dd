/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The gradients of a recorded run as a chain of groups. A bucket is sent when its last gradient is
 * ready on every rank and copied from the device. Transfers share the transport, so all of them
 * have arrived when their work is done, in whatever order: the state is one time per step.
 */
#include "opt/groups.h"
#include "sim/whatif/buckets.h"

struct rp_opt_bucket_model {
    struct rp_arena arena;
    struct rp_sim_bucket_costs costs;
    size_t n, nsteps;
    int64_t *bytes;   /* by gradient of a step */
    double *ready_ns; /* by step, then gradient: the time on the slowest rank since the first of the
                         step */
    struct rp_opt_chain chain;
};

/* Uses the base of a run. Returns RP_UNSUPPORTED if buckets cannot be searched. Must be released
   also after a failure. */
enum rp_code rp_opt_bucket_model_init(struct rp_opt_bucket_model *m, const struct rp_worlds *x,
                                      struct rp_err *err);
void rp_opt_bucket_model_release(struct rp_opt_bucket_model *m);

/* Finds the buckets of a size: ends by gradient. */
void rp_opt_bucket_ends(const struct rp_opt_bucket_model *m, double mb, uint8_t *ends);
/* Finds those of the recording. */
void rp_opt_bucket_recorded(const struct rp_opt_bucket_model *m, const struct rp_worlds *x,
                            uint8_t *ends);
