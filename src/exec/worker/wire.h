/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Messages between parent and child: a head, then its data. Both are the same binary, so structs
   are sent as they are. */
#include "exec/worker/worker.h"

enum rp_wire_kind {
    RP_WIRE_OPENED, /* sent by the child without a request: facts */
    RP_WIRE_UPLOAD, /* n arrays */
    RP_WIRE_RUN,    /* n runs; the answer is n times */
    RP_WIRE_FETCH,  /* the answer is n arrays */
    RP_WIRE_MARK,   /* n: begin or end */
    RP_WIRE_PROFILE /* n runs; the answer is n bytes */
};

struct rp_wire_head {
    uint32_t kind;
    uint32_t
        code; /* in an answer: enum rp_code; if it is not RP_OK, only a struct rp_err follows */
    uint64_t n;
};

/* Returns false if the other side has ended. */
bool rp_wire_send(int fd, const void *bytes, size_t n);
bool rp_wire_receive(int fd, void *bytes, size_t n);
bool rp_wire_send_tensor(
    int fd, const struct rp_tensor *t); /* NULL stands for a tensor that the other side has */
/* Returns RP_IO if the other side has ended. *out is NULL if NULL was sent. */
enum rp_code rp_wire_receive_tensor(int fd, struct rp_tensor **out, struct rp_err *err);

/* The child's side: opens the library, then serves requests over fd until the other end is closed.
 */
void rp_worker_serve(const struct rp_worker_ops *ops, const struct rp_worker_start *start, int fd);

/* Runs the program n times in this process; the times go into ns. Used by parent and child. */
enum rp_code rp_worker_run_here(const struct rp_worker_ops *ops, void *self, size_t n, int64_t *ns,
                                struct rp_err *err);
