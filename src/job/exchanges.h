/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The times of the messages of a job with servers in some of its steps. A worker sends a part of a
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
    double wire_ns;       /* from the begin of the sending to that of the receiving */
    double lag_ns;        /* from the event for which it waits until it can be sent */
    bool known;
};

struct rp_mean_exchange { /* of a worker to a part */
    struct rp_mean_message message[RP_JOB_MESSAGES];
    double sum_ns, sum_lag_ns; /* of the server: the copy or sum of the pushed data */
};

struct rp_mean_part {
    int64_t key, tensor;
    uint32_t server, thread; /* thread: its number among all threads of all servers */
    double merge_ns, merge_lag_ns;
    struct rp_mean_exchange *exchanges; /* by worker */
};

struct rp_job_exchanges {
    struct rp_arena arena;
    size_t nworkers, nservers, nthreads, nparts;
    struct rp_mean_part *parts;
    uint32_t *worker_of; /* by rank */
    bool by_tensor; /* workers send the lowest tensor first instead of the first that is ready */
};

/* Uses steps [first, end); the job's times must be on one clock. Must be released also after a
   failure. */
enum rp_code rp_job_exchanges_init(struct rp_job_exchanges *out, const struct rp_job_means *m,
                                   size_t first, size_t end, struct rp_err *err);
void rp_job_exchanges_release(struct rp_job_exchanges *l);

/* ------------------------------------------------------------------ inside exchange*.c */

struct rp_message_end { /* of a message */
    uint64_t key;
    int64_t ns;
};

struct rp_server_work { /* a server's work on a part */
    uint64_t key;       /* the key of the part, and whether this is the last copy */
    int64_t begin_ns, end_ns;
    uint32_t thread;
    bool doubtful; /* its end was not recorded, so it seems to last until the next */
};

struct rp_step_message {     /* a message in one step */
    int64_t sent_ns, got_ns; /* INT64_MIN: not found */
};

struct rp_step_exchange {
    struct rp_step_message message[RP_JOB_MESSAGES];
    const struct rp_server_work *sum;
    int64_t ready_ns;
};

struct rp_message_side { /* how long a message occupies one side: every observation is at least that
                          */
    double ns,
        now_ns; /* the least of all steps, and that of the steps in question; -1 if there is none */
    struct rp_mean near; /* the mean of those of all steps near the least */
};

/* Passes over the steps. */
enum { RP_PASS_LEAST, RP_PASS_USUAL, RP_PASS_NOW, RP_PASS_LAGS };
void rp_message_side_take(struct rp_message_side *x, double ns, int pass);
/* Returns for a single step its own value, unless that includes waiting; otherwise the usual
   one. */
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
    struct rp_step_exchange *exchanges; /* by part and worker, for one step */
    struct rp_exchange_sums *sums;      /* likewise */
    struct rp_mean *merge;              /* by part */
    struct rp_mean *any_sum;            /* by part, for all workers */
    struct rp_sender_lags *lags;        /* by clock */
    size_t against_order[2]; /* choices of workers that contradict each order: first ready, lowest
                                tensor */
    int64_t until_ns;        /* the end of the step that is being followed */
    struct rp_map server_of; /* by key: the server to which it is pushed */
    struct rp_err *err;
};

/* Sorts all records of the nodes. */
enum rp_code rp_exchange_index_records(struct rp_exchange_ctx *f);
/* Finds when the messages of a worker for a part were sent and received in a step. */
void rp_exchange_find(struct rp_exchange_ctx *f, size_t part, size_t worker, size_t step);
/* Called after that for all workers: matches copies and sums with pushes. */
void rp_exchange_match_sums(struct rp_exchange_ctx *f, size_t part);

struct rp_step_exchange *rp_exchange_at(const struct rp_exchange_ctx *f, size_t part,
                                        size_t worker);
/* Returns the clock of a message's sender or receiver. */
size_t rp_exchange_clock(const struct rp_exchange_ctx *f, size_t worker,
                         const struct rp_mean_part *p, int kind, bool receiver);
/* Returns the number of times in a sorted list that are not later than ns. */
size_t rp_times_until(const int64_t *list, size_t n, int64_t ns);
/* Find the first work on a part that is not earlier, or NULL; merged: the last copy. */
uint64_t rp_server_work_key(int64_t key, bool merged);
const struct rp_server_work *rp_server_work_from(const struct rp_exchange_ctx *f, uint64_t key,
                                                 int64_t ns);
/* When the thread became free before this piece of work. */
int64_t rp_thread_free_ns(const struct rp_exchange_ctx *f, const struct rp_server_work *x);
