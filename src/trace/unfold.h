/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A clock that was set back while a trace was recorded shows some times twice, and events before
 * and after overlap:
 *
 *     call    1   2   3   4   5   6 | 7   8   9  10        by the ids of calls
 *     time                4   5   6
 *                     7   8   9  10                        by the recorded clock
 *
 * Ids of calls count in the order of calls, whatever the clock says. If they show such a fold,
 * everything after it is moved to a time after everything before it. How far the clock was set back
 * is known except for the time between the last call before and the first one after; the difference
 * is found by comparing ranks (facts/clocks/steps.h).
 */
#include "base/limits.h"
#include "trace/trace.h"

/* In the metadata of such a trace: by how many nanoseconds the last part was moved. */
#define RP_SET_BACK_KEY "repriseSetBack"

/* Replaces the trace by one in which time goes on, with a warning about it; a trace without a fold
   stays. O(events), plus sorting those of threads and streams whose ids are not in the order of
   time. */
enum rp_code rp_trace_unfold(struct rp_trace **trace, const struct rp_limits *limits,
                             struct rp_err *err);

/* The clock was set by -add_ns at a recorded time from from_ns to to_ns: gives the id of the first
   device work after that, such that the times between neighbours are most like those between the
   same neighbours before. INT64_MAX if there is none. Needs events and links. */
enum rp_code rp_trace_id_after(const struct rp_trace *t, int64_t from_ns, int64_t to_ns,
                               int64_t add_ns, int64_t *id, struct rp_err *err);
