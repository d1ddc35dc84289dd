/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The recorded steps of a rank: their marks, the tasks that represent them, and the time of one. */
#include "sim/model/part.h"

/* Lists the steps that the trace marks; without marks, the recording counts as one step. */
enum rp_code rp_sim_steps_list(struct rp_sim_part *p, const struct rp_trace *t, struct rp_err *err);
/* The last step that had begun at a moment, or RP_NO_STEP: before the first, after the mark of the
   last, and in breaks. */
uint16_t rp_sim_step_at(const struct rp_sim_part *p, int64_t ns);

/* Flags the nodes that represent marks, and measures a step. */
enum rp_code rp_sim_steps_measure(struct rp_sim_part *p, const struct rp_trace *t,
                                  struct rp_err *err);

/* How far steps differ, for intervals: as recorded; if only one step is marked, as in the median of
   46 recordings with several; 0 if no step is marked. */
double rp_sim_spread(const struct rp_sim_part *part);

/* Whether only the mark of a step was recorded, so that it tells nothing about the others. */
static inline bool rp_sim_step_is_bare(const struct rp_sim_part *p, size_t step)
{
    return step < p->bare.n && p->bare.at[step];
}

/* Keeps the steps that were recorded with detail, out of n; returns their number. */
size_t rp_sim_keep_detailed(const struct rp_sim_part *p, struct rp_interval *steps, size_t n);

/* The median distance between the begins of consecutive steps (for an even number, the mean of the
   middle two); 0 for fewer than two. Distances from steps without detail count only if there are no
   others. The begins are replaced by the sorted distances. */
int64_t rp_sim_median_gap(const struct rp_sim_part *p, int64_t *at_ns, size_t n);
