/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_SIM_RANKS_H
#define RP_SIM_RANKS_H
/* What each rank does in a simulated step: its work by kind, its waiting, and its slack. */
#include "sim/answer.h"

/* Of a run of several ranks, as many as out->by_rank then has; nothing else of one. O(tasks log
   tasks + edges). */
enum rp_code rp_sim_ranks(const struct rp_sim_run *run, const struct rp_sim_result *result,
                          struct rp_arena *arena, struct rp_sim_answer *out, struct rp_err *err);

#endif
