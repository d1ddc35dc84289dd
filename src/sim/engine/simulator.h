/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Runs a task graph under an overlay, in order of time: no event can change the past. Where two
 * events have the same time, ends come before tasks that become ready,
 * and both before a device chooses its next task; among equals the smaller number goes first. So a
 * result depends on the graph alone.
 *
 * O(tasks + edges) without devices; each task of a device adds O(log of what is under way).
 */
#include "sim/engine/overlay.h"

struct rp_sim_result {
    RP_VEC(int64_t) start_ns, end_ns; /* by task */
    int64_t last_ns;                  /* the latest end; the earliest ready time is 0 */
};

/* Tasks without predecessors start at 0. A cycle is an error that names one of its tasks. `out` is
   filled anew, reusing its memory. It must be released also after a failure. */
enum rp_code rp_simulate(const struct rp_overlay *o, struct rp_sim_result *out, struct rp_err *err);
void rp_sim_result_release(struct rp_sim_result *r);
