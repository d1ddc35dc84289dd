/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TRACE_JOB_H
#define RP_TRACE_JOB_H
/*
 * A distributed job as the records of its framework and its communication library describe it (the
 * trial directories of dPRO): for each rank the operators of each step, the phases of each tensor,
 * the sends and receives of the rings, the graph of the operators and the links of the rings. Times
 * are of the host's own clock, in nanoseconds.
 */
#include "base/arena.h"
#include "base/vec.h"

#include <stdbool.h>

struct rp_job_op {
    const char *name; /* as in the graph of operators */
    int64_t begin_ns, dur_ns;
    int64_t step;
};

enum rp_job_phase { RP_JOB_SYNC, RP_JOB_QUEUE, RP_JOB_COPY_IN, RP_JOB_REDUCE, RP_JOB_COPY_OUT };

struct rp_job_span {
    int64_t begin_ns, end_ns;
    int64_t tensor;
    uint8_t phase; /* enum rp_job_phase */
};

struct rp_job_transfer {
    int64_t begin_ns, dur_ns;
    const char *tensors; /* "5+6": sorted ids of the group */
    int32_t loop, channel, chunk, slice;
    bool is_send;
};

/* An edge of the graph of operators; a tensor's communication has its number, else -1. */
struct rp_job_edge {
    const char *from, *to;
    int64_t from_tensor, to_tensor;
};

struct rp_job_link { /* of a ring: this rank sends to `to` on the channel */
    int32_t channel, to;
};

struct rp_job_rank {
    struct rp_arena arena;
    const char *host; /* folder */
    int64_t local;    /* number on its host */
    int32_t number;   /* in the rings; -1: not known */
    RP_VEC(struct rp_job_op) ops;
    RP_VEC(struct rp_job_span) spans;
    RP_VEC(struct rp_job_transfer) transfers;
    RP_VEC(struct rp_job_edge) edges;
    RP_VEC(struct rp_job_link) links;
};

struct rp_job {
    struct rp_arena arena;
    size_t nranks;
    struct rp_job_rank *ranks;    /* by number */
    bool has_transfers;           /* sends and receives of rings were recorded */
    RP_VEC(const char *) remarks; /* what was missing, and what stands for it */
};

void rp_job_release(struct rp_job *job);

#endif
