/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A clock that was set back while a trace was recorded shows some times twice, and what happened
 * before and after lies on top of each other:
 *
 *     call    1   2   3   4   5   6 | 7   8   9  10        by the ids of calls
 *     time                4   5   6
 *                     7   8   9  10                        by the recorded clock
 *
 * Ids of calls count in the order of calls, whatever the clock says. Where they show such a fold,
 * everything that comes after it is moved to after what comes before. How far the clock was set
 * back is known but for the time between the last call before and the first one after; what is
 * missing is found by comparing ranks (facts/clocks/steps.h).
 */
#include "base/limits.h"
#include "trace/trace.h"

/* In the metadata of such a trace: by how many nanoseconds what comes last was moved. */
#define RP_SET_BACK_KEY "repriseSetBack"

/* Replaces the trace by one in which time goes on, with a warning that says so; a trace without a
   fold stays. O(events), and a sort of those of threads and streams where ids are not in the order
   of time. */
enum rp_code rp_trace_unfold(struct rp_trace **trace, const struct rp_limits *limits,
                             struct rp_err *err);

/* The clock was set by -add_ns at a time from from_ns to to_ns, as recorded: the id of the first
   device work after that, by the times between neighbours, which are then most like those between
   the same neighbours before. INT64_MAX: none. Needs events and links. */
enum rp_code rp_trace_id_after(const struct rp_trace *t, int64_t from_ns, int64_t to_ns,
                               int64_t add_ns, int64_t *id, struct rp_err *err);
