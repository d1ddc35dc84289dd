/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXEC_WORKER_WIRE_H
#define RP_EXEC_WORKER_WIRE_H
/* What parent and child say to each other: a head, then what belongs to it. Both are the same
   binary, so that structs travel as they are. */
#include "exec/worker/worker.h"

enum rp_wire_kind {
    RP_WIRE_OPENED, /* from the child, unasked: facts */
    RP_WIRE_UPLOAD, /* n arrays */
    RP_WIRE_RUN,    /* n runs; the answer is n times */
    RP_WIRE_FETCH,  /* the answer is n arrays */
    RP_WIRE_MARK,   /* n: begin or end */
    RP_WIRE_PROFILE /* n runs; the answer is n bytes */
};

struct rp_wire_head {
    uint32_t kind;
    uint32_t
        code; /* of an answer: enum rp_code; not RP_OK: a struct rp_err follows, nothing else */
    uint64_t n;
};

/* False where the other side is gone. */
bool rp_wire_send(int fd, const void *bytes, size_t n);
bool rp_wire_receive(int fd, void *bytes, size_t n);
bool rp_wire_send_tensor(int fd, const struct rp_tensor *t); /* NULL: the other side has it */
/* RP_IO where the other side is gone. *out is NULL where NULL was sent. */
enum rp_code rp_wire_receive_tensor(int fd, struct rp_tensor **out, struct rp_err *err);

/* The child's side: opens, then does what is asked of it over fd until the other end is closed. */
void rp_worker_serve(const struct rp_worker_ops *ops, const struct rp_worker_start *start, int fd);

/* n runs into ns, for both sides. */
enum rp_code rp_worker_run_here(const struct rp_worker_ops *ops, void *self, size_t n, int64_t *ns,
                                struct rp_err *err);

#endif
