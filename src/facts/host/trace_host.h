/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The host on which a trace was recorded, and the clock that it used, if the trace or its file name
   tells. */
#include "base/arena.h"
#include "trace/trace.h"

/* The name that PyTorch's tensorboard_trace_handler gives to a file: WORKER.TIME.pt.trace.json,
   where the worker is HOST_PROCESS unless the program names it. An ending for compression may
   follow. */
struct rp_torch_file {
    const char *host;  /* in the path */
    size_t host_len;   /* 0: the worker has another name */
    int64_t process;   /* where host_len is not 0 */
    size_t worker_len; /* of the path up to the time: the same for all files of a process */
};
bool rp_torch_file_parse(const char *path, struct rp_torch_file *out);

/*
 * By the metadata "hostname" (also "host_name", "hostName"), else by a file name as PyTorch's
 * handler makes it: <host>_<process>.<time>.pt.trace.json (path may be NULL), if the trace has that
 * process: "worker2_step_12" is a name that a program chose. In the arena; *out is NULL if neither
 * exists.
 */
enum rp_code rp_trace_host(const struct rp_trace *t, const char *path, struct rp_arena *arena,
                           const char **out, struct rp_err *err);

/*
 * A number for the boot of the machine, from the metadata "boot_id" of our recordings; 0: not
 * known. The times of all recordings of one boot are on one clock (CLOCK_MONOTONIC), whatever their
 * base_ns is. A trace whose clock was set back (trace/unfold.h) has a clock of its own.
 */
uint64_t rp_trace_boot(const struct rp_trace *t);

/* Writes "pytorch 2.11.0, lightning 2.6.6", the frameworks in the metadata of our recordings, in
   its order; NULL if there are none. In the arena, which keeps a failure. */
const char *rp_trace_frameworks(const struct rp_trace *t, struct rp_arena *arena);
