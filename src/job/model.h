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
    size_t first, end;      /* of the recorded steps that it is of */
    uint32_t begin;         /* its node at 0 */
    uint32_t devices;       /* its first device */
    struct rp_map op_node;  /* hash of (rank, name) -> node, of the step */
    struct rp_map transfer; /* hash of place -> node, of the step */
    struct rp_map name_of;  /* hash of a text -> name */
    uint32_t *done;         /* by rank and group: node after which its tensors are there */
    uint32_t *agreed;       /* by rank: the end of the agreement before */
    uint32_t *last;         /* by rank: its last operator that is no update */
    uint32_t *enters;       /* by rank: node at whose end it enters the ring of the group */
    uint32_t *leaves;       /* by rank: node that waits for all its transfers */
    uint32_t name[RP_MODEL_TEXTS];
};

enum rp_code rp_model_add(struct rp_model_ctx *m, uint32_t rank, uint8_t kind, uint32_t name,
                          double dur_ns, uint32_t device, uint32_t *id);
/* Of no device, with one of the names above. */
enum rp_code rp_model_add_plain(struct rp_model_ctx *m, uint32_t rank, uint8_t kind, int text,
                                double dur_ns, uint32_t *id);
enum rp_code rp_model_link(struct rp_model_ctx *m, uint32_t from, uint32_t to, double lag_ns,
                           uint8_t kind);
/* A rank waits from the end of one node to the start of another, except for what it does meanwhile.
 */
enum rp_code rp_model_note_wait(struct rp_model_ctx *m, uint32_t from, uint32_t to, uint32_t first,
                                uint32_t end);
uint64_t rp_model_op_key(size_t rank, const char *name);

/* Messages of workers and servers, instead of votes and rings. */
enum rp_code rp_model_add_servers(struct rp_model_ctx *m);
