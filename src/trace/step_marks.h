/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Steps by the user's patterns (trace/step_patterns.h). The built-in ones are applied when a trace
 * is made, and its steps are stored in native files; a user's apply to any trace when it is loaded.
 */
#include "trace/step_patterns.h"
#include "trace/trace.h"

/* Replaces the steps by those that the table and the built-in patterns find; if they find none,
   nothing changes. To be called before the trace is shared. */
enum rp_code rp_trace_mark_steps(struct rp_trace *trace, const struct rp_step_table *table,
                                 struct rp_err *err);

/* Replaces the steps by the ranges and marks of the host whose names begin with `name`, on the
   thread that has most of them. If there are none, nothing changes, and *found is false. To be
   called before the trace is shared. */
enum rp_code rp_trace_name_steps(struct rp_trace *trace, const char *name, bool *found,
                                 struct rp_err *err);
