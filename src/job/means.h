/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_JOB_MEANS_H
#define RP_JOB_MEANS_H
/*
 * A step of a job as a mean of some of its recorded steps (of one step: that step): durations, and
 * the gaps that nothing recorded explains. The times of the job are on one clock (rp_job_align).
 */
#include "base/hash.h"
#include "job/job.h"

struct rp_mean_op {
    const char *name;
    double dur_ns, gap_ns; /* gap: to the operator before it on the rank */
    bool is_update;        /* waits for communication, directly or not */
};

struct rp_mean_transfer {
    double dur_ns;    /* without waiting for the other side */
    int64_t begin_ns; /* in the first of the steps: the recorded order */
    uint32_t group;
    int32_t loop, channel, chunk, slice;
    bool is_send;
};

struct rp_mean_group {                 /* of one rank */
    double vote_lag_ns;                /* from its last gradient to the rank's vote */
    double agree_lag_ns;               /* from the last vote of all to the end of the agreement */
    double follow_lag_ns;              /* at least from the agreement before; -1: run beside */
    double queue_lag_ns;               /* from the agreement, or the group before */
    double queue_ns, in_ns, out_ns;    /* phases */
    double enter_lag_ns, leave_lag_ns; /* before the first and behind the last transfer */
    double reduce_ns;  /* where no transfers were recorded: from the last rank's arrival */
    size_t first, end; /* its transfers */
};

struct rp_mean_rank {
    RP_VEC(struct rp_mean_op) ops;             /* in recorded order */
    RP_VEC(struct rp_mean_transfer) transfers; /* by group, then recorded order */
    struct rp_mean_group *groups;
    double begin_ns; /* after the first rank to begin */
    bool duplex;     /* sends and receives overlap */
};

struct rp_means_rank;

struct rp_job_means {
    struct rp_arena arena;
    const struct rp_job *job;
    size_t nranks, nsteps; /* steps that all ranks have whole */
    size_t left_out;       /* steps that not all have */
    double iteration_ns, spread_ratio;
    /* of the steps taken: */
    size_t ngroups;
    const char **groups;    /* "5+6" … in the order in which they run */
    struct rp_map group_of; /* by tensor */
    struct rp_mean_rank *ranks;
    struct rp_means_rank *work;
    struct rp_map sender; /* by rank and channel: who sends to it there */
};

/* Release it also after a failure. O(records log records). */
enum rp_code rp_job_means_init(struct rp_job_means *out, const struct rp_job *job,
                               struct rp_err *err);
/* The mean of steps [first, end). */
enum rp_code rp_job_means_take(struct rp_job_means *m, size_t first, size_t end,
                               struct rp_err *err);
void rp_job_means_release(struct rp_job_means *m);

/* The rank that sends to this one on a channel, or SIZE_MAX. */
size_t rp_job_sender(const struct rp_job_means *m, size_t rank, int32_t channel);

#endif
