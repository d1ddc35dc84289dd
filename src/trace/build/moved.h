/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where the events of a trace begin on another clock. A clock that drifts stretches or shrinks the
 * distances between events, but no event took longer because another clock measures it: durations
 * stay. What was inside another event stays there, and what followed another event still does:
 * where the other clock leaves no room for that, an event begins earlier by what is missing.
 */
#include "trace/trace.h"

/* Converts a time of a process. */
typedef int64_t rp_time_fn(const void *user, uint32_t process, int64_t ns);

struct rp_moved {
    int64_t *begin_ns, *dur_ns; /* by event */
};

/* Durations change only where the clock was set during the event. O(events). Release it also after
   a failure. */
enum rp_code rp_moved_init(struct rp_moved *m, const struct rp_trace *t, rp_time_fn *time,
                           const void *user, struct rp_err *err);
void rp_moved_release(struct rp_moved *m);
