/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The recorded steps of a rank: their marks, which tasks stand for them, and how long one takes. */
#include "sim/model/part.h"

/* As the trace marks them; without marks the recording is one. */
enum rp_code rp_sim_steps_list(struct rp_sim_part *p, const struct rp_trace *t, struct rp_err *err);
/* The last step that had begun by a moment, or RP_NO_STEP: before the first, after the mark of the
   last, and in breaks. */
uint16_t rp_sim_step_at(const struct rp_sim_part *p, int64_t ns);

/* Marks the nodes that stand for marks, and measures a step. */
enum rp_code rp_sim_steps_measure(struct rp_sim_part *p, const struct rp_trace *t,
                                  struct rp_err *err);

/* How far steps differ, for intervals: as recorded; where one step is marked, as in the middle one
   of 46 recordings with several; 0: no step is marked. */
double rp_sim_spread(const struct rp_sim_part *part);

/* Whether only the mark of a step was recorded: it tells nothing about the others. */
static inline bool rp_sim_step_is_bare(const struct rp_sim_part *p, size_t step)
{
    return step < p->bare.n && p->bare.at[step];
}

/* Leaves the steps that were recorded with detail, of n; how many are left. */
size_t rp_sim_keep_detailed(const struct rp_sim_part *p, struct rp_interval *steps, size_t n);

/* The median distance between the begins of consecutive steps, the mean of the middle two where
   their count is even; 0 for fewer than two. Distances from steps without detail count only where
   there are no others. The sorted distances take the place of the begins. */
int64_t rp_sim_median_gap(const struct rp_sim_part *p, int64_t *at_ns, size_t n);
