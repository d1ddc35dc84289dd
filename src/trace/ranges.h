/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Checks that every id, offset and enumeration value of a trace is in range, which must hold before
 * any other code reads it. Native files are checked part by part (trace/rpt/read.c), a whole trace
 * by rp_trace_validate. The error is RP_FORMAT for a native file, RP_BUG for a built trace. Linear
 * for any input. Inside src/trace only.
 */
#include "trace/trace.h"

enum rp_code rp_ranges_strings(const struct rp_trace *t, struct rp_err *err);
enum rp_code rp_ranges_tables(const struct rp_trace *t, struct rp_err *err); /* after strings */
enum rp_code rp_ranges_events(const struct rp_trace *t, struct rp_err *err); /* after tables */
enum rp_code rp_ranges_args(const struct rp_trace *t, struct rp_err *err);   /* after events */
enum rp_code rp_ranges_links(const struct rp_trace *t, uint64_t nmembers, struct rp_err *err);
enum rp_code rp_ranges_flows(const struct rp_trace *t, struct rp_err *err);
enum rp_code rp_ranges_samples(const struct rp_trace *t, struct rp_err *err);

/* Sets the error for an invalid trace. */
enum rp_code rp_trace_bad(const struct rp_trace *t, struct rp_err *err, const char *fmt, ...)
    RP_PRINTF(3, 4);
