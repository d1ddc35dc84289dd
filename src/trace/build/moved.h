/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Computes where the events of a trace begin on another clock. A clock that drifts stretches or
 * shrinks the distances between events, but an event does not take longer because another clock
 * measures it, so durations stay. What was inside another event stays there, and what followed
 * another event still does; if the other clock leaves no room for that, an event begins earlier.
 */
#include "trace/trace.h"

/* Converts a time of a process. */
typedef int64_t rp_time_fn(const void *user, uint32_t process, int64_t ns);

struct rp_moved {
    int64_t *begin_ns, *dur_ns; /* by event */
};

/* Durations change only if the clock was set during the event. O(events). Must be released also
   after a failure. */
enum rp_code rp_moved_init(struct rp_moved *m, const struct rp_trace *t, rp_time_fn *time,
                           const void *user, struct rp_err *err);
void rp_moved_release(struct rp_moved *m);
