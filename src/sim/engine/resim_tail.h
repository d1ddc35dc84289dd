/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Simulates again only what begins after a change. The base is run a second time and cut at moments
 * that divide its tasks evenly; each cut keeps the state from which a run can resume:
 *
 *     devices    when each is free, and the tasks that wait for it
 *     tasks      of which some but not all predecessors have ended
 *     begun      the number of tasks that were begun
 *
 * A change that touches no task begun before a cut, nor an edge out of one, leaves everything
 * before the cut unchanged: the run resumes from the last such cut. A cut of a plain graph
 * (horizon.h) depends on the graph alone, so results equal those of a full run exactly.
 */
#include "sim/engine/horizon.h"
#include "sim/engine/simulator.h"

struct rp_resim_task {
    int64_t at_ns;
    uint32_t task, left;
};

struct rp_resim_cut {
    size_t begun;
    int64_t last_ns;                       /* the latest end of the tasks that were begun */
    int64_t *free_ns;                      /* by device */
    RP_VEC(struct rp_horizon_entry) waits; /* of all devices, sorted by (ready, number) */
    RP_VEC(struct rp_resim_task) told;
};

struct rp_resim_tail {
    const struct rp_overlay *o;
    struct rp_plain_graph g;
    struct rp_horizon h;
    struct rp_sim_result result; /* of the last run; it works on start_ns */
    RP_VEC(uint32_t) begun;      /* tasks in the order in which the base began them */
    RP_VEC(uint32_t) turn;       /* by task: its index in `begun` */
    struct rp_resim_cut *cuts;
    size_t ncuts;
    size_t differs; /* from this turn on, the result differs from the base's */
};

/* base: the result of the overlay as it is, without new tasks and edges. x->g.fits is false if
   nothing can be gained. x must be released also after a failure. */
enum rp_code rp_resim_tail_init(struct rp_resim_tail *x, const struct rp_overlay *o,
                                const struct rp_sim_result *base, struct rp_err *err);
void rp_resim_tail_release(struct rp_resim_tail *x);

/* Restores the base's result before this turn. */
void rp_resim_tail_keep(struct rp_resim_tail *x, const struct rp_sim_result *base, size_t turn);

/* Runs x->g, with durations and lags as they are now, into x->result. from: the first turn that a
   change concerns. *ok is false if not every task was run. *seen: the number of tasks that were
   run. */
enum rp_code rp_resim_tail_run(struct rp_resim_tail *x, const struct rp_sim_result *base,
                               size_t from, bool *ok, size_t *seen, struct rp_err *err);
