/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A distributed job as the records of its framework and its communication library describe it (the
 * trial directories of dPRO): for each rank the operators of each step, and the graph of the
 * operators; for Horovod and NCCL the phases of each tensor, the sends and receives of the rings
 * and their links; for BytePS the messages between workers and servers, and the work of the
 * servers. Times are those of the host's own clock, in nanoseconds.
 *
 * From files to a simulation, with the file of each step:
 *
 *     load.c               finds the files of a directory and reads them into a struct rp_job:
 *       records.c            the traces of a rank, and the logs of BytePS
 *       texts.c              dag.gml, nccl_rank_graph.json
 *       metadata.c           metadata.json, key_dict.txt
 *       tensors.c            sizes of gradients, from metadata.json
 *     clocks.c             aligns the clocks of ranks and servers
 *     means.c              the mean of recorded steps (means.h): operators,
 *       means_groups.c       votes, agreements and queues of Horovod's groups of tensors,
 *       means_transfers.c    sends and receives of the rings
 *     exchanges.c          the same for BytePS (exchanges.h): pushes and pulls of the workers,
 *       exchange_records.c   whose records are found here
 *     costs.c              what communication costs by size, from those means (costs.h)
 *     regroup.c            those means with other groups of tensors, and fused operators
 *     model.c              from means to nodes of a simulation (model.h)
 *       model_servers.c      the messages of BytePS
 *     pipeline.c           the timelines of pipeline-parallel training, which are not jobs but
 *                          simulated in the same way (pipeline.h)
 */
#include "base/arena.h"
#include "base/decides.h"
#include "base/vec.h"
#include "dataset/load.h"
#include "facts/clocks/sources.h"
#include "sim/model/part.h"

#include <stdbool.h>

#define RP_JOB_ROUNDING_NS 1000
RP_FACT(RP_JOB_ROUNDING_NS, "ns", "dPRO's records are written in microseconds");

#define RP_JOB_PHASES 10
RP_LIMIT(RP_JOB_PHASES, "points of a cycle", "a plan is simulated at these; a step is their mean");

#define RP_EARLY_NS 50000
RP_DECISION(RP_EARLY_NS, "ns",
            "clocks are right to this: a record may be so much earlier than what it followed",
            "job/a_message_that_is_far_too_quick_is_dropped");

#define RP_JOB_FIRST_PARTY 8
RP_FACT(RP_JOB_FIRST_PARTY, "id", "ps-lite numbers servers 8, 10 ..., and workers 9, 11 ...");
/* Whether an id is that of a server or a worker, whether it is that of a server, and its number
   among these. */
static inline bool rp_job_is_party(int32_t id)
{
    return id >= RP_JOB_FIRST_PARTY;
}
static inline bool rp_job_is_server(int32_t id)
{
    return rp_job_is_party(id) && id % 2 == 0;
}
static inline size_t rp_job_party(int32_t id)
{
    return (size_t)(id - RP_JOB_FIRST_PARTY) / 2;
}

struct rp_job_op {
    const char *name; /* the same as in the graph of operators */
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

/* An edge of the graph of operators. The number is that of a tensor if the edge is its
   communication, otherwise -1. */
struct rp_job_edge {
    const char *from, *to;
    int64_t from_tensor, to_tensor;
};

struct rp_job_link { /* a link of a ring: this rank sends to `to` on the channel */
    int32_t channel, to;
};

/* ------------------------------------------------------------------ BytePS */

enum rp_job_message_kind {
    RP_JOB_PUSH,      /* worker to server: a part of a gradient */
    RP_JOB_PUSH_DONE, /* the answer */
    RP_JOB_PULL,      /* worker to server: asks for the sum */
    RP_JOB_PULL_DONE, /* the answer: the sum */
    RP_JOB_MESSAGES
};

/* One end of a message, from the log of a worker or server. */
struct rp_job_half {
    int64_t ns, key;
    int32_t sender, receiver; /* numbers of ps-lite */
    uint8_t kind;             /* enum rp_job_message_kind */
    bool sent;                /* the time is when it left; otherwise when it arrived */
};

struct rp_job_server_op {
    int64_t begin_ns, dur_ns, key;
    int64_t thread;
    bool merged; /* the copy of the finished sum; otherwise a copy or sum of the data of a worker */
};

/* A worker or a server of BytePS. */
struct rp_job_node {
    int32_t id; /* the id in ps-lite: 8, 10 … are servers, 9, 11 … workers; -1 if not known */
    RP_VEC(struct rp_job_half) halves;
    RP_VEC(struct rp_job_server_op) ops;
};

struct rp_job_key { /* a part of the gradients that travel together */
    int64_t key;
    int64_t tensor; /* one of the tensors; others have keys with the same number */
    uint32_t part;
};

/* A gradient as metadata.json describes it. */
struct rp_job_tensor {
    int64_t id, bytes; /* bytes: -1: not known */
    const char *name;
};

struct rp_job_type { /* the type of an operator: "net/conv" is a "Conv2D" */
    const char *op, *type;
};

struct rp_job_rank {
    struct rp_arena arena;
    const char *host; /* folder */
    int64_t local;    /* number on its host */
    int32_t number;   /* the number in the rings; -1 if not known */
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
    bool has_transfers;        /* the sends and receives of rings were recorded */
    bool has_servers;          /* BytePS: the fields below are set, and there are no rings */
    size_t nnodes;
    struct rp_job_node *nodes;
    RP_VEC(struct rp_job_key) keys;
    RP_VEC(const char *) remarks;         /* missing records, and what is used instead of them */
    RP_VEC(struct rp_job_tensor) tensors; /* set by rp_load_job_tensors, by id */
    RP_VEC(struct rp_job_type) types;     /* the types of operators, set by the same function */
};

/* ------------------------------------------------------------------ loading (load.c) */

/* Whether the inputs are such a directory: some folder has records of a communication library and
   the graph of operators. */
bool rp_dataset_is_job(const struct rp_dataset *dataset);

/* The job must be released also after a failure. */
enum rp_code rp_load_job(struct rp_ctx *ctx, const struct rp_dataset *dataset, struct rp_job *out,
                         struct rp_err *err);
void rp_job_release(struct rp_job *job);

/* Also loads the sizes of its gradients and the types of its operators, from the first rank that
   has them; a job without metadata.json has none. */
enum rp_code rp_load_job_tensors(const struct rp_dataset *dataset, struct rp_job *job,
                                 struct rp_err *err);

/* ------------------------------------------------------------------ clocks (clocks.c) */

/* Lists the clocks of the ranks and, after them, of the servers. The ranks of a host share its
   clock. Without servers, rendezvous are the ends of the agreements (Sync), and messages the sends
   and receives of the rings; with servers, messages are those of BytePS. likely: with servers, use
   likely bounds, which are tighter than the certain ones. */
enum rp_code rp_clocks_of_job(const struct rp_job *job, bool likely, struct rp_arena *arena,
                              struct rp_clocks *out, struct rp_err *err);
/* Converts all times of a job to the clock of its first rank. */
enum rp_code rp_job_align(struct rp_job *job, struct rp_err *err);

/* Returns 0 without servers. */
size_t rp_job_servers(const struct rp_job *job);
/* Returns the index of the clock of a worker or server with this number in ps-lite, or SIZE_MAX. */
size_t rp_job_clock_of(const struct rp_job *job, int32_t id);
/* Returns the same value for both ends of a message, and different ones for any other kind, key or
   pair. */
uint64_t rp_job_message_key(const struct rp_job_half *half);

/* ------------------------------------------------------------------ simulation (model.c) */

/*
 * Makes a job one part of a simulated run: a step of all its ranks, with the devices that the
 * records show.
 *
 *     rank r   op -> op -> op ....................... update
 *                     `-> vote .                    /
 *              all ranks        `> agreed -> queue -> copy in -> sends, receives -> copy out
 *
 * The part must be released also after a failure.
 */
enum rp_code rp_sim_part_of_job(struct rp_sim_part *out, const struct rp_job *job,
                                struct rp_err *err);

struct rp_job_plan; /* costs.h */

/* Does the same with other groups of tensors and with fused operators; the plan may be NULL. */
enum rp_code rp_sim_part_of_plan(struct rp_sim_part *out, const struct rp_job *job,
                                 const struct rp_job_plan *plan, struct rp_err *err);
