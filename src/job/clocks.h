/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_JOB_CLOCKS_H
#define RP_JOB_CLOCKS_H
/* What the records of a job tell about the clocks of its ranks and servers. */
#include "facts/clock_sources.h"
#include "job/job.h"

/* The ranks of a host share its clock. Meetings are the ends of the agreements (Sync) and messages
   the sends and receives of the rings. `facts` is what it was made of, for names. */
enum rp_code rp_clocks_of_job(const struct rp_job *job, struct rp_arena *arena,
                              struct rp_clocks *out, struct rp_err *err);

/* Of a job with servers: its ranks, then its servers. likely: limits are as tight as is likely, not
   as is certain. */
enum rp_code rp_clocks_of_servers(const struct rp_job *job, bool likely, struct rp_arena *arena,
                                  struct rp_clocks *out, struct rp_err *err);
/* Where the clock of a worker or server of ps-lite stands among them; SIZE_MAX: nowhere. */
size_t rp_job_clock_of(const struct rp_job *job, int32_t id);
size_t rp_job_servers(const struct rp_job *job);
/* The same for both ends of a message, and for no other kind, key or pair. */
uint64_t rp_job_message_key(const struct rp_job_half *half);

/* Brings all times of a job onto the clock of its first rank. */
enum rp_code rp_job_align(struct rp_job *job, struct rp_err *err);

#endif
