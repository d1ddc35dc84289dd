/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_REPORT_LATENCY_H
#define RP_EXPLAIN_REPORT_LATENCY_H
/*
 * How long operators wait for a thread once their inputs are there, where the trace names the
 * inputs (TensorFlow's Timeline: arguments "name" and "input0", "input1", ...).
 */
#include "facts/work.h"

struct rp_report_latency {
    int64_t ops; /* operators whose inputs were recorded; 0: nothing is known */
    int64_t p50_ns, p90_ns, max_ns;
    const char *slowest; /* the operator that waited longest */
};

/* Texts go into the arena. */
enum rp_code rp_latency_find(const struct rp_trace *trace, struct rp_arena *arena,
                             struct rp_report_latency *out, struct rp_err *err);

#endif
