/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TRACE_STEP_MARKS_H
#define RP_TRACE_STEP_MARKS_H
/*
 * Steps by the user's patterns (trace/step_patterns.h). The built-in ones are applied when a trace
 * is made, and its steps are stored in native files; a user's apply to any trace when it is loaded.
 */
#include "trace/step_patterns.h"
#include "trace/trace.h"

/* Replaces the steps by those that the table and the built-in patterns find; nothing changes where
   they find none. Before the trace is shared. */
enum rp_code rp_trace_mark_steps(struct rp_trace *trace, const struct rp_step_table *table,
                                 struct rp_err *err);

#endif
