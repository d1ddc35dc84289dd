/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Fuses operators of a job. A walk over the operators of the first rank, in the order in which they
 * run, joins each one to the chain before it if that is worth it (dPRO's theorems):
 *
 *     first    an operator is joined if the compute time that this saves is more than the time of
 *              sending the gradients which the chain has made already: those wait for its end
 *     third    gradients of one chain are ready together, and are sent together
 *
 * The time of a chain was measured for element-wise operators (sim/model/fusing.h); other operators
 * are fused only if the user names them.
 */
#include "opt/job_model.h"

struct rp_opt_job_ops {
    size_t n;
    struct rp_job_plan_cluster *clusters;
    size_t given; /* operators of the file that are not in the job */
    int64_t left; /* operators that may be fused */
};

/* candidates is a file with the names of operators that may be fused ("<op> <node id>" per line;
   the number is not needed); NULL for element-wise ones. Allocates in the arena. */
enum rp_code rp_opt_find_job_ops(const struct rp_opt_job_model *m, const char *candidates,
                                 struct rp_arena *arena, struct rp_opt_job_ops *out,
                                 struct rp_err *err);

/* Reads the clusters of a file: "<op> <cluster>" per line. */
enum rp_code rp_opt_read_job_ops(const struct rp_opt_job_model *m, const char *path,
                                 struct rp_arena *arena, struct rp_opt_job_ops *out,
                                 struct rp_err *err);

/* Tensors made by operators of one cluster are sent together; joined: by tensor of the model, 1 if
   it goes with the next one (rp_opt_chain). */
void rp_opt_groups_of_ops(const struct rp_opt_job_model *m, const struct rp_opt_job_ops *ops,
                          uint8_t *joined);
