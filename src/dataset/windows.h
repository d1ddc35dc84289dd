/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Joins windows of one process: PyTorch's tensorboard_trace_handler writes a file for each window
 * that its schedule records, "node7_9000.1794800012345.pt.trace.json": host, process and time. The
 * windows of one process are one rank, and nothing was recorded between two of them.
 */
#include "io/sources.h"
#include "trace/trace.h"

#define RP_NO_WINDOW SIZE_MAX

/* The windows before and after each source that are of the same process, or RP_NO_WINDOW. */
struct rp_windows {
    size_t n;
    size_t *previous, *next;
};

/* Finds windows by names only: nothing is read. Allocates in the arena. */
enum rp_code rp_windows_find(const struct rp_sources *sources, struct rp_arena *arena,
                             struct rp_windows *out, struct rp_err *err);

/* Joins the windows of one process into one trace, in the order of time. *out is NULL if they
   overlap, because they are then not windows of one process. The traces are verified completely and
   may be reordered. The caller frees the new trace. */
enum rp_code rp_windows_join(const struct rp_trace **traces, size_t n,
                             const struct rp_limits *limits, struct rp_trace **out,
                             struct rp_err *err);
