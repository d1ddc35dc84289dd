/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the communication of a job costs by size, learned from its recorded groups of tensors, so
 * that other groups can be predicted.
 *
 *     gradient ready --wake--> vote --agree--> queue -> copy in -> ring -> copy out
 *
 * Horovod wakes once per cycle: if the votes of a rank lie on a grid, the grid is learned, and a
 * gradient waits for its next point. Copies are lines over the size of a group, and only groups of
 * several tensors have them. Sends and receives are lines over the size of a message, for each rank
 * and channel; a group larger than a loop of the ring takes several.
 */
#include "job/means.h"

struct rp_job_line {
    double ns, by_byte;
};

struct rp_job_cost_rank {
    double vote_lag_ns; /* from a gradient to the vote, without a cycle */
    double phase_ns;    /* it wakes at phase + k * cycle on the clock of the job */
    double agree_lag_ns, follow_lag_ns, queue_lag_ns, queue_ns, enter_lag_ns, leave_lag_ns;
    struct rp_job_line in, out;
    struct rp_job_line reduce;            /* if no transfers were recorded */
    struct rp_job_line *sends, *receives; /* by channel */
};

struct rp_job_costs {
    struct rp_arena arena;
    const struct rp_job *job;
    size_t nranks, nchannels, nslices, nchunks;
    double loop_bytes; /* the most that one loop carried; INFINITY if one was always enough */
    double cycle_ns;   /* 0: none is known */
    bool duplex, has_transfers;
    bool one_size; /* all messages have the same size, so latency and rate cannot be separated */
    bool copies_unknown; /* no group of several tensors was recorded */
    struct rp_job_cost_rank *ranks;
    size_t *sender;         /* by rank, then channel; SIZE_MAX if not known */
    struct rp_map bytes_of; /* by tensor: index in job->tensors */
};

/* Learns from means of all steps (rp_job_means_take) of a job whose tensors were loaded. Returns
   RP_UNSUPPORTED if sizes are not known or servers are used. Must be released also after a
   failure. */
enum rp_code rp_job_costs_init(struct rp_job_costs *out, const struct rp_job_means *means,
                               struct rp_err *err);
void rp_job_costs_release(struct rp_job_costs *costs);

/* Finds the longest cycle on which the votes of every rank lie; a part of rp_job_costs_init. */
enum rp_code rp_job_learn_cycle(struct rp_job_costs *c, struct rp_err *err);

/* Returns -1 if not known. */
int64_t rp_job_tensor_bytes(const struct rp_job_costs *costs, int64_t tensor);

static inline double rp_job_line_at(const struct rp_job_line *line, double bytes)
{
    return line->ns + line->by_byte * bytes;
}

/* Returns how long a gradient that is ready waits for the rank to wake; at_ns is on the clock of
   the job. */
double rp_job_wake_ns(const struct rp_job_costs *costs, size_t rank, double at_ns);

/* Returns how many loops a group of that size takes, and sets the size of its messages. */
size_t rp_job_loops(const struct rp_job_costs *costs, double bytes);
double rp_job_message_bytes(const struct rp_job_costs *costs, double bytes);

/* Computes by simulating the messages how long each rank is in the ring if all enter it together;
   out_ns is by rank. */
enum rp_code rp_job_ring_ns(const struct rp_job_costs *costs, double bytes, double *out_ns,
                            struct rp_err *err);

/* ------------------------------------------------------------------ plans (regroup.c) */

struct rp_job_plan_group {
    size_t n;
    const int64_t *tensors; /* ids */
};

struct rp_job_plan_cluster { /* operators of every rank that become one */
    size_t n;
    const char *const *ops; /* in the order in which they run, one after the other */
    double factor;          /* a factor of the sum of their durations */
};

struct rp_job_plan {
    size_t ngroups;                         /* 0: as recorded */
    const struct rp_job_plan_group *groups; /* in the order in which they are sent */
    size_t nclusters;
    const struct rp_job_plan_cluster *clusters;
};

/* Replaces the groups of the means by those of the plan, and fuses its operators. offset_ns is how
   far after a grid point of the cycle's clock the step begins. */
enum rp_code rp_job_regroup(struct rp_job_means *m, const struct rp_job_costs *costs,
                            const struct rp_job_plan *plan, double offset_ns, struct rp_err *err);
enum rp_code rp_job_fuse_ops(struct rp_job_means *m, const struct rp_job_plan *plan,
                             struct rp_err *err);

/* Computes when the gradients of a rank are ready after the begin of the step: out_ns is indexed
   like job->tensors; 0 if no operator makes the gradient. */
void rp_job_ready(const struct rp_job_means *m, const struct rp_job_costs *costs, size_t rank,
                  double *out_ns);
