/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_JOB_JOB_H
#define RP_JOB_JOB_H
/*
 * A distributed job as the records of its framework and its communication library describe it (the
 * trial directories of dPRO): for each rank the operators of each step, and the graph of the
 * operators; of Horovod and NCCL the phases of each tensor, the sends and receives of the rings and
 * their links; of BytePS the messages between workers and servers, and what servers did. Times are
 * of the host's own clock, in nanoseconds.
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

/* ------------------------------------------------------------------ BytePS */

enum rp_job_message_kind {
    RP_JOB_PUSH,      /* worker to server: a part of a gradient */
    RP_JOB_PUSH_DONE, /* the answer */
    RP_JOB_PULL,      /* worker to server: the sum is wanted */
    RP_JOB_PULL_DONE, /* the answer: the sum */
    RP_JOB_MESSAGES
};

/* One end of a message, as the log of a worker or server has it. */
struct rp_job_half {
    int64_t ns, key;
    int32_t sender, receiver; /* numbers of ps-lite */
    uint8_t kind;             /* enum rp_job_message_kind */
    bool sent;                /* when it left; else when it was there */
};

struct rp_job_server_op {
    int64_t begin_ns, dur_ns, key;
    int64_t thread;
    bool merged; /* the copy of the finished sum; else a copy or sum of what a worker sent */
};

/* A worker or a server of BytePS. */
struct rp_job_node {
    int32_t id; /* of ps-lite: 8, 10 … servers, 9, 11 … workers; -1: not known */
    RP_VEC(struct rp_job_half) halves;
    RP_VEC(struct rp_job_server_op) ops;
};

struct rp_job_key { /* a part of the gradients that travel together */
    int64_t key;
    int64_t tensor; /* one of them; others have keys of the same number */
    uint32_t part;
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
    struct rp_job_rank *ranks; /* by number */
    bool has_transfers;        /* sends and receives of rings were recorded */
    bool has_servers;          /* BytePS: the parts below, not rings */
    size_t nnodes;
    struct rp_job_node *nodes;
    RP_VEC(struct rp_job_key) keys;
    RP_VEC(const char *) remarks; /* what was missing, and what stands for it */
};

void rp_job_release(struct rp_job *job);

#endif
