/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_SIM_TRACE_H
#define RP_SIM_TRACE_H
/*
 * A simulated run as a trace, for viewers and for every other command: one process a rank, one
 * track a thread or stream, one event a task with its simulated start and end, and as arguments its
 * number and when it was recorded. What a what-if added stands on tracks of its own.
 *
 * The steps are marked on the first rank as PyTorch's profiler marks them, and its launches have
 * their correlation ids: so a step measured from this trace is the simulated one.
 */
#include "sim/model/run.h"
#include "trace/trace.h"

/* The caller frees *out. O(n log n) in tasks. */
enum rp_code rp_sim_trace_new(const struct rp_sim_run *run, const struct rp_sim_result *result,
                              struct rp_trace **out, struct rp_err *err);

#endif
