/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Device events at time 0. A recorder that lost a time writes 0, but a trace whose clock starts
 * with it may also begin there. The times count as lost if the other events are further away than
 * they last, or if several events have no other time.
 */
#include "trace/trace.h"

/* How many of health.ts_zero_gpu were lost: all or none. O(events) if there are some. */
int64_t rp_zero_times_lost(const struct rp_trace *t);
