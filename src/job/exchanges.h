/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the messages of a job with servers took in some of its steps. A worker sends a part of a
 * gradient, gets an answer, asks for the sum and gets it:
 *
 *     worker   PUSH ..........      PULL ....           .........> there
 *     server        ......> sum, … .     ....> (merged) PULL_DONE
 *
 * Each node sends one message at a time and receives one at a time.
 */
#include "job/means.h"

struct rp_mean_message {
    double out_ns, in_ns; /* what it takes the sender and the receiver */
    double wire_ns;       /* from the begin of the one to that of the other */
    double lag_ns;        /* from what it waits for to when it can be sent */
    bool known;
};

struct rp_mean_exchange { /* of a worker to a part */
    struct rp_mean_message message[RP_JOB_MESSAGES];
    double sum_ns, sum_lag_ns; /* of the server: the copy or sum of what was pushed */
};

struct rp_mean_part {
    int64_t key, tensor;
    uint32_t server, thread; /* thread: among all of all servers */
    double merge_ns, merge_lag_ns;
    struct rp_mean_exchange *exchanges; /* by worker */
};

struct rp_job_exchanges {
    struct rp_arena arena;
    size_t nworkers, nservers, nthreads, nparts;
    struct rp_mean_part *parts;
    uint32_t *worker_of; /* by rank */
    bool by_tensor;      /* workers send the lowest tensor first, not the first that is ready */
};

/* Of steps [first, end); the job's times are on one clock. Release it also after a failure. */
enum rp_code rp_job_exchanges_init(struct rp_job_exchanges *out, const struct rp_job_means *m,
                                   size_t first, size_t end, struct rp_err *err);
void rp_job_exchanges_release(struct rp_job_exchanges *l);

/* ------------------------------------------------------------------ inside exchange*.c */

struct rp_message_end { /* of a message */
    uint64_t key;
    int64_t ns;
};

struct rp_server_work { /* of a server for a part */
    uint64_t key;       /* of the part, and whether it is the last copy */
    int64_t begin_ns, end_ns;
    uint32_t thread;
    bool doubtful; /* its end was not recorded: it seems to last into the next */
};

struct rp_step_message {     /* a message in one step */
    int64_t sent_ns, got_ns; /* INT64_MIN: not found */
};

struct rp_step_exchange {
    struct rp_step_message message[RP_JOB_MESSAGES];
    const struct rp_server_work *sum;
    int64_t ready_ns;
};

struct rp_message_side { /* of what a message takes one side: everything seen is at least that */
    double ns, now_ns;   /* of all steps; of those that are asked for; -1: not seen */
    struct rp_mean near; /* of all steps, those near the least */
};

/* Passes over the steps. */
enum { RP_PASS_LEAST, RP_PASS_USUAL, RP_PASS_NOW, RP_PASS_LAGS };
void rp_message_side_take(struct rp_message_side *x, double ns, int pass);
/* For a single step its own value, unless that includes waiting; else the usual one. */
double rp_message_side_ns(const struct rp_message_side *x);

struct rp_exchange_sums {
    struct rp_message_side out[RP_JOB_MESSAGES], in[RP_JOB_MESSAGES];
    struct rp_mean sum;
};

struct rp_sender_lags { /* of a clock (worker or server) */
    struct rp_mean message[RP_JOB_MESSAGES], sum, merge;
    double least[RP_JOB_MESSAGES]; /* where none counts */
};

struct rp_exchange_ctx {
    const struct rp_job_means *m;
    struct rp_job_exchanges *out;
    RP_VEC(struct rp_message_end) sent, got; /* by key and time */
    RP_VEC(int64_t) * sends, *receives;      /* by clock: all times, in order */
    RP_VEC(struct rp_server_work) works;     /* by key and begin */
    RP_VEC(struct rp_server_work) by_thread; /* by thread and begin */
    size_t nclocks;
    double *wire;                       /* by clock of sender and receiver */
    struct rp_step_exchange *exchanges; /* by part and worker: of one step */
    struct rp_exchange_sums *sums;      /* likewise */
    struct rp_mean *merge;              /* by part */
    struct rp_mean *any_sum;            /* by part: of all workers */
    struct rp_sender_lags *lags;        /* by clock */
    size_t against_order[2]; /* choices of workers that contradict: first ready, lowest tensor */
    int64_t until_ns;        /* the end of the step that is followed */
    struct rp_map server_of; /* by key: the server that it is pushed to */
    struct rp_err *err;
};

/* Sorts all records of the nodes. */
enum rp_code rp_exchange_index_records(struct rp_exchange_ctx *f);
/* Finds the exchange of a worker for a part in a step: when its messages were sent and received. */
void rp_exchange_find(struct rp_exchange_ctx *f, size_t part, size_t worker, size_t step);
/* After that for all workers: matches copies and sums with pushes. */
void rp_exchange_match_sums(struct rp_exchange_ctx *f, size_t part);

struct rp_step_exchange *rp_exchange_at(const struct rp_exchange_ctx *f, size_t part,
                                        size_t worker);
/* The clock of a message's sender or receiver. */
size_t rp_exchange_clock(const struct rp_exchange_ctx *f, size_t worker,
                         const struct rp_mean_part *p, int kind, bool receiver);
/* The number of times in a sorted list that are not later than ns. */
size_t rp_times_until(const int64_t *list, size_t n, int64_t ns);
/* The first work on a part that is not earlier, or NULL; merged: the last copy. */
uint64_t rp_server_work_key(int64_t key, bool merged);
const struct rp_server_work *rp_server_work_from(const struct rp_exchange_ctx *f, uint64_t key,
                                                 int64_t ns);
/* When the thread became free before this piece of work. */
int64_t rp_thread_free_ns(const struct rp_exchange_ctx *f, const struct rp_server_work *x);
