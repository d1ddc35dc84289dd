/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_JOB_MODEL_H
#define RP_JOB_MODEL_H
/*
 * A job (job/job.h) as one part of a simulated run: a step of all its ranks, with the devices
 * that the records show.
 *
 *     rank r   op -> op -> op ....................... update
 *                     `-> vote .                    /
 *              all ranks        `> agreed -> queue -> copy in -> sends, receives -> copy out
 */
#include "job/means.h"
#include "sim/model/part.h"

/* Release the part also after a failure. */
enum rp_code rp_sim_part_of_job(struct rp_sim_part *out, const struct rp_job *job,
                                struct rp_err *err);

#endif
