/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A step of a job as the mean of some of its recorded steps: durations, and the gaps that no record
 * explains. The times of the job must be on one clock (rp_job_align).
 */
#include "base/hash.h"
#include "job/job.h"

#include <string.h>

struct rp_mean_op {
    const char *name;
    double dur_ns, gap_ns; /* gap: the time since the previous operator of the rank */
    bool is_update;        /* it waits for communication, directly or not */
};

struct rp_mean_transfer {
    double dur_ns;    /* without waiting for the other side */
    int64_t begin_ns; /* in the first of the steps, for the recorded order */
    uint32_t group;
    int32_t loop, channel, chunk, slice;
    bool is_send;
};

struct rp_mean_group {    /* of one rank */
    double vote_lag_ns;   /* from its last gradient to the rank's vote */
    double agree_lag_ns;  /* from the last vote of all ranks to the end of the agreement */
    double follow_lag_ns; /* the least time since the previous agreement; -1 if they overlap */
    double queue_lag_ns;  /* from the agreement or the previous group */
    double queue_ns, in_ns, out_ns;    /* phases */
    double enter_lag_ns, leave_lag_ns; /* before the first and after the last transfer */
    double reduce_ns;  /* if no transfers were recorded: from the last rank's arrival */
    size_t first, end; /* its transfers */
};

struct rp_mean_rank {
    RP_VEC(struct rp_mean_op) ops;             /* in recorded order */
    RP_VEC(struct rp_mean_transfer) transfers; /* by group, then in recorded order */
    struct rp_mean_group *groups;
    double begin_ns; /* the time after the first rank began */
    bool duplex;     /* sends and receives overlap */
};

struct rp_means_rank;

#define RP_JOB_DIRECTLY_NS 20000
RP_DECISION(
    RP_JOB_DIRECTLY_NS, "ns",
    "a vote this soon after the previous agreement had waited for it: waking the thread takes "
    "as long",
    "job/a_vote_right_after_an_agreement_waited_for_it");

struct rp_job_means {
    struct rp_arena arena;
    const struct rp_job *job;
    size_t nranks, nsteps; /* steps that all ranks recorded completely */
    size_t left_out;       /* the other steps */
    double iteration_ns, spread_ratio;
    /* for the steps of rp_job_means_take: */
    size_t ngroups;
    const char **groups;    /* "5+6" … in the order in which they run */
    struct rp_map group_of; /* by tensor */
    struct rp_mean_rank *ranks;
    struct rp_means_rank *work;
    struct rp_map sender; /* by rank and channel: the rank that sends to it */
};

/* Must be released also after a failure. O(records log records). */
enum rp_code rp_job_means_init(struct rp_job_means *out, const struct rp_job *job,
                               struct rp_err *err);
/* Takes the mean of steps [first, end). */
enum rp_code rp_job_means_take(struct rp_job_means *m, size_t first, size_t end,
                               struct rp_err *err);
void rp_job_means_release(struct rp_job_means *m);

/* Returns the rank that sends to this one on a channel, or SIZE_MAX. */
size_t rp_job_sender(const struct rp_job_means *m, size_t rank, int32_t channel);

/* ------------------------------------------------------------------ inside means*.c */

struct rp_means_step { /* of a rank */
    int64_t id, begin_ns, end_ns;
    size_t nops, at; /* at: its number among the steps that all ranks have, or SIZE_MAX */
};

struct rp_means_item {
    size_t step;
    int64_t begin_ns;
    uint32_t at;
};

struct rp_means_order { /* records sorted by (step, begin); those of step s are [first[s], first[s +
                           1]) */
    uint32_t *at, *first;
};

struct rp_means_rank {
    RP_VEC(struct rp_means_step) steps;    /* by begin */
    RP_VEC(struct rp_means_step *) common; /* by step that all have */
    struct rp_means_order ops, transfers;
    struct rp_map op_of;       /* from hash of (name, step) to operator */
    struct rp_map span_of;     /* from hash of (phase, tensor, step) to span */
    struct rp_map transfer_of; /* place -> transfer */
    struct rp_map in_graph;    /* from hash of a name to 1 if it is an operator of the graph */
    struct rp_map updates;     /* hash of name -> 1 */
};

struct rp_mean {
    double sum, n;
};

static inline void rp_mean_count(struct rp_mean *x, double value)
{
    x->sum += value;
    x->n++;
}

/* The mean for lags and durations, which is at least 0. */
static inline double rp_mean_of(const struct rp_mean *x)
{
    return x->n > 0 && x->sum > 0 ? x->sum / x->n : 0;
}

static inline uint64_t rp_means_name_key(const char *name)
{
    return rp_hash_bytes(name, strlen(name));
}

/* Returns the step that contains a moment, among those that all ranks have, or SIZE_MAX: a moment
   after the last operator of a step belongs to a step whose operators are missing. */
size_t rp_means_step(const struct rp_means_rank *w, int64_t ns);
/* Sorts the items and keeps their order in the arena. */
enum rp_code rp_means_sort(struct rp_job_means *m, struct rp_means_item *items, size_t n,
                           struct rp_means_order *out, struct rp_err *err);
/* Returns the operator of a rank in a step, or NULL. */
const struct rp_job_op *rp_means_op(const struct rp_job_means *m, size_t rank, const char *name,
                                    size_t step);

/* Indexes a rank's spans and transfers by step and place. */
enum rp_code rp_means_index_spans(struct rp_job_means *m, size_t rank, struct rp_err *err);
enum rp_code rp_means_index_transfers(struct rp_job_means *m, size_t rank, struct rp_err *err);

/* List the groups of a step, and then, over steps [first, end), compute their mean times and those
   of transfers. */
enum rp_code rp_means_list_groups(struct rp_job_means *m, size_t step, struct rp_err *err);
enum rp_code rp_means_of_groups(struct rp_job_means *m, size_t first, size_t end,
                                struct rp_err *err);
enum rp_code rp_means_of_transfers(struct rp_job_means *m, size_t rank, size_t first, size_t end,
                                   struct rp_err *err);
