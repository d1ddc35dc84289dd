/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by model.c and model_servers.c, which make the nodes of a job. */
#include "job/means.h"
#include "sim/engine/task_graph.h"
#include "sim/model/part.h"

enum {
    VOTE,
    AGREED,
    QUEUE,
    COPY_IN,
    COPY_OUT,
    REDUCE,
    SEND,
    RECEIVE,
    BEGIN,
    PUSH, /* the four messages, in the order of enum rp_job_message_kind */
    PUSH_DONE,
    PULL,
    PULL_DONE,
    SUM,
    MERGED,
    RP_MODEL_TEXTS
};

struct rp_model_ctx {
    const struct rp_job *job;
    struct rp_job_means means;
    struct rp_sim_part *part;
    struct rp_err *err;
    uint16_t step;          /* that is built */
    size_t first, end;      /* the range of recorded steps that it represents */
    uint32_t begin;         /* its node at 0 */
    uint32_t devices;       /* its first device */
    struct rp_map op_node;  /* from hash of (rank, name) to node of the step */
    struct rp_map transfer; /* from hash of place to node of the step */
    struct rp_map name_of;  /* from hash of a text to name */
    uint32_t *done;         /* by rank and group: the node after which its tensors are there */
    uint32_t *agreed;       /* by rank: the end of the previous agreement */
    uint32_t *last;         /* by rank: its last operator that is not an update */
    uint32_t *enters;       /* by rank: the node at whose end it enters the ring of the group */
    uint32_t *leaves;       /* by rank: the node that waits for all its transfers */
    uint32_t name[RP_MODEL_TEXTS];
};

enum rp_code rp_model_add(struct rp_model_ctx *m, uint32_t rank, uint8_t kind, uint32_t name,
                          double dur_ns, uint32_t device, uint32_t *id);
/* Adds a node of no device, with one of the names above. */
enum rp_code rp_model_add_plain(struct rp_model_ctx *m, uint32_t rank, uint8_t kind, int text,
                                double dur_ns, uint32_t *id);
enum rp_code rp_model_link(struct rp_model_ctx *m, uint32_t from, uint32_t to, double lag_ns,
                           uint8_t kind);
/* Notes that a rank waits from the end of one node to the start of another, except for its work
   meanwhile. */
enum rp_code rp_model_note_wait(struct rp_model_ctx *m, uint32_t from, uint32_t to, uint32_t first,
                                uint32_t end);
uint64_t rp_model_op_key(size_t rank, const char *name);

/* Adds messages of workers and servers instead of votes and rings. */
enum rp_code rp_model_add_servers(struct rp_model_ctx *m);
