/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FACTS_TRACE_HOST_H
#define RP_FACTS_TRACE_HOST_H
/* On which host a trace was recorded, where it or its file says so. */
#include "base/arena.h"
#include "trace/trace.h"

/*
 * By "hostname" (also "host_name", "hostName") among what the file says about itself, else by the
 * name that PyTorch's handler gives a file: <host>_<process>.<time>.pt.trace.json. In the arena;
 * *out is NULL where neither is there.
 */
enum rp_code rp_trace_host(const struct rp_trace *t, const char *path, struct rp_arena *arena,
                           const char **out, struct rp_err *err);

#endif
