/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Runs several partitions of one program in one process, with a thread each. A collective is a
 * rendezvous: every partition brings its operands, and when all have arrived, each reads what it
 * needs.
 */
#include "base/err.h"
#include "exec/data/tensor.h"

struct rp_mesh;

typedef enum rp_code rp_partition_fn(void *user, unsigned partition, struct rp_err *err);

/* Runs all partitions to their end; *mesh is set before they start. If one fails, the others end
   too, and the error of the lowest partition among the first to fail is reported. */
enum rp_code rp_mesh_run(unsigned n, rp_partition_fn *fn, void *user, struct rp_mesh **mesh,
                         struct rp_err *err);

unsigned rp_mesh_size(const struct rp_mesh *mesh);

/* Waits until every partition has brought its value to this rendezvous; then `all` has one borrowed
   value for each partition until rp_mesh_leave. */
enum rp_code rp_mesh_rendezvous(struct rp_mesh *mesh, unsigned partition, struct rp_tensor *mine,
                                struct rp_tensor *const **all, struct rp_err *err);
void rp_mesh_leave(struct rp_mesh *mesh);
