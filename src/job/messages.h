/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_JOB_MESSAGES_H
#define RP_JOB_MESSAGES_H
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

struct rp_mean_leg {
    double out_ns, in_ns; /* what it takes the sender and the receiver */
    double wire_ns;       /* from the begin of the one to that of the other */
    double lag_ns;        /* from what it waits for to when it can be sent */
    bool known;
};

struct rp_mean_visit { /* of a worker to a part */
    struct rp_mean_leg leg[RP_JOB_MESSAGES];
    double sum_ns, sum_lag_ns; /* of the server: the copy or sum of what came */
};

struct rp_mean_part {
    int64_t key, tensor;
    uint32_t server, thread; /* thread: among all of all servers */
    double merge_ns, merge_lag_ns;
    struct rp_mean_visit *visits; /* by worker */
};

struct rp_job_legs {
    struct rp_arena arena;
    size_t nworkers, nservers, nthreads, nparts;
    struct rp_mean_part *parts;
    uint32_t *worker_of; /* by rank */
    bool by_tensor;      /* workers send the lowest tensor first, not the one that came first */
};

/* Of steps [first, end); the job's times are on one clock. Release it also after a failure. */
enum rp_code rp_job_legs_init(struct rp_job_legs *out, const struct rp_job_means *m, size_t first,
                              size_t end, struct rp_err *err);
void rp_job_legs_release(struct rp_job_legs *l);

#endif
