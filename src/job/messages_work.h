/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_JOB_MESSAGES_WORK_H
#define RP_JOB_MESSAGES_WORK_H
/* What the files that learn from the messages of a job share while they work. */
#include "job/means_work.h"
#include "job/messages.h"

/* Clocks are right to this; a record may be so much earlier than what it followed. */
#define RP_EARLY_NS 50000

struct rp_message_end { /* of a message */
    uint64_t key;
    int64_t ns;
};

struct rp_server_work { /* of a server for a part */
    uint64_t key;       /* of the part, and whether it is the last copy */
    int64_t begin_ns, end_ns;
    uint32_t thread;
    bool doubtful; /* it seems to last into the next: its end was not recorded */
};

struct rp_step_leg {         /* a message in one step */
    int64_t sent_ns, got_ns; /* INT64_MIN: not found */
};

struct rp_step_visit {
    struct rp_step_leg leg[RP_JOB_MESSAGES];
    const struct rp_server_work *sum;
    int64_t ready_ns;
};

struct rp_leg_least {    /* of what a message takes one side: everything seen is at least that */
    double ns, now_ns;   /* of all steps; of those that are asked for; -1: not seen */
    struct rp_mean near; /* of all steps, those near the least */
};

struct rp_leg_sums {
    struct rp_leg_least out[RP_JOB_MESSAGES], in[RP_JOB_MESSAGES];
    struct rp_mean sum;
};

struct rp_leg_lags { /* of a clock (worker or server) */
    struct rp_mean leg[RP_JOB_MESSAGES], sum, merge;
    double least[RP_JOB_MESSAGES]; /* where none counts */
};

struct rp_follower {
    const struct rp_job_means *m;
    struct rp_job_legs *out;
    RP_VEC(struct rp_message_end) sent, got; /* by key and time */
    RP_VEC(int64_t) * sends, *receives;      /* by clock: all times, in order */
    RP_VEC(struct rp_server_work) works;     /* by key and begin */
    RP_VEC(struct rp_server_work) by_thread; /* by thread and begin */
    size_t nclocks;
    double *wire;                /* by clock of sender and receiver */
    struct rp_step_visit *visit; /* by part and worker: of one step */
    struct rp_leg_sums *sums;    /* likewise */
    struct rp_mean *merge;       /* by part */
    struct rp_mean *any_sum;     /* by part: of all workers */
    struct rp_leg_lags *lags;    /* by clock */
    size_t against_order[2];     /* choices of workers against: first come, lowest tensor */
    int64_t until_ns;            /* the end of the step that is followed */
    struct rp_map server_of;     /* by key: to whom it was pushed */
    struct rp_err *err;
};

/* Sorts all records of the nodes. */
enum rp_code rp_follow_records(struct rp_follower *f);
/* Fills the visit of a worker to a part in a step: when its messages left and came. */
void rp_follow_part(struct rp_follower *f, size_t part, size_t worker, size_t step);
/* Behind that for all workers: which copy or sum is of which push. */
void rp_follow_sums(struct rp_follower *f, size_t part);

struct rp_step_visit *rp_follow_visit(const struct rp_follower *f, size_t part, size_t worker);
/* The clock of a message's sender or receiver. */
size_t rp_follow_clock(const struct rp_follower *f, size_t worker, const struct rp_mean_part *p,
                       int kind, bool receiver);
/* How many of the times, which are in order, are not later than this one. */
size_t rp_follow_count(const int64_t *list, size_t n, int64_t ns);
/* The first work on a part that is not earlier, or NULL; merged: the last copy. */
uint64_t rp_follow_work_key(int64_t key, bool merged);
const struct rp_server_work *rp_follow_work(const struct rp_follower *f, uint64_t key, int64_t ns);
/* When the thread became free before this piece of work. */
int64_t rp_follow_free(const struct rp_follower *f, const struct rp_server_work *x);

#endif
