/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_SIM_JOB_MEANS_H
#define RP_SIM_JOB_MEANS_H
/*
 * One step of a job, as the mean of its recorded steps: durations, and the gaps that nothing
 * recorded explains. Clocks of hosts are brought together by the ends of the agreements (Sync) that
 * all ranks wait for.
 */
#include "trace/job.h"

struct rp_mean_op {
    const char *name;
    double dur_ns, gap_ns; /* gap: to the operator before it on the rank */
    bool is_update;        /* waits for communication, directly or not */
};

struct rp_mean_transfer {
    double dur_ns;    /* without waiting for the other side */
    int64_t begin_ns; /* in the first step: the recorded order */
    uint32_t group;
    int32_t loop, channel, chunk, slice;
    bool is_send;
};

struct rp_mean_group {   /* of one rank */
    double sync_lag_ns;  /* from its last gradient to the rank's vote */
    double agree_lag_ns; /* from the last vote of all to the end of the agreement */
    double queue_lag_ns, queue_ns, in_ns, out_ns;
};

struct rp_mean_rank {
    RP_VEC(struct rp_mean_op) ops;             /* in recorded order */
    RP_VEC(struct rp_mean_transfer) transfers; /* by group, then recorded order */
    struct rp_mean_group *groups;
    bool duplex; /* sends and receives overlap */
};

struct rp_job_means {
    struct rp_arena arena;
    size_t nranks, ngroups, nsteps;
    const char **groups; /* "5+6" … in the order in which they run */
    struct rp_mean_rank *ranks;
    double *offset_ns; /* by rank: to be taken from its times */
    double iteration_ns;
};

/* Release it also after a failure. O(records). */
enum rp_code rp_job_means_init(struct rp_job_means *out, const struct rp_job *job,
                               struct rp_err *err);
void rp_job_means_release(struct rp_job_means *m);

/* Whether a group "5+6" has a tensor. */
bool rp_job_group_has(const char *group, int64_t tensor);

#endif
