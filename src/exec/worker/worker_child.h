/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXEC_WORKER_WORKER_CHILD_H
#define RP_EXEC_WORKER_WORKER_CHILD_H
#include "exec/worker/worker.h"

/* The child's side: opens, then does what is asked of it over fd until the other end is closed. */
void rp_worker_serve(const struct rp_worker_ops *ops, const struct rp_worker_start *start, int fd);

/* n runs into ns, for both sides. */
enum rp_code rp_worker_run_here(const struct rp_worker_ops *ops, void *self, size_t n, int64_t *ns,
                                struct rp_err *err);

#endif
