/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Device events at time 0. A recorder that lost a time writes 0; but a trace whose clock starts
 * with it may begin there. The times are lost where the others are further away than they last, or
 * where several events have no other time.
 */
#include "trace/trace.h"

/* How many of health.ts_zero_gpu were lost: all or none. O(events) where there are some. */
int64_t rp_zero_times_lost(const struct rp_trace *t);
