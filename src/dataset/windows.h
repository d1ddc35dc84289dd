/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Windows of one process: PyTorch's tensorboard_trace_handler writes a file for each window that
 * its schedule records, "node7_9000.1794800012345.pt.trace.json": host, process and time. Those of
 * one process are one rank, and what lies between two windows was not recorded.
 */
#include "io/sources.h"
#include "trace/trace.h"

#define RP_NO_WINDOW SIZE_MAX

/* By source: the windows before and after it of the same process, or RP_NO_WINDOW. */
struct rp_windows {
    size_t n;
    size_t *previous, *next;
};

/* Allocates in the arena. By names: nothing is read. */
enum rp_code rp_windows_find(const struct rp_sources *sources, struct rp_arena *arena,
                             struct rp_windows *out, struct rp_err *err);

/* The windows of one process as one trace, in the order of time. *out is NULL where they overlap:
   then they are no windows of one process. The traces may be reordered; verifies them completely.
   The caller frees the new trace. */
enum rp_code rp_windows_join(const struct rp_trace **traces, size_t n,
                             const struct rp_limits *limits, struct rp_trace **out,
                             struct rp_err *err);
