/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_SIM_RESIMULATE_H
#define RP_SIM_RESIMULATE_H
/*
 * Simulating again only what a change can reach. A base run is kept; when durations or lags of the
 * overlay change, the tasks behind them are run again in an order in which everything follows what
 * it waits for, until nothing changes any more. The result is that of a full run, bit by bit.
 *
 *     rp_resim_init(&x, &overlay, err);
 *     mark = rp_overlay_mark(&overlay);
 *     ... change durations and lags ...
 *     rp_resim_update(&x, err);         x.result is that of the changed overlay
 *     rp_overlay_undo(&overlay, mark);
 *     rp_resim_undo(&x);                and that of the base again
 *
 * Tasks of a serial device run in the order in which they become ready; where a change makes that
 * another one, they change places. Where many do, everything that begins behind the change is run
 * (resim_tail.h). Where a change is of another kind (new tasks or edges, tasks that share a device,
 * have priorities or take no time on one), everything is run.
 */
#include "sim/resim_tail.h"
#include "sim/simulator.h"

struct rp_resim_change {
    uint32_t task;
    int64_t start_ns, end_ns, ready_ns; /* as they were */
};

struct rp_resim {
    const struct rp_overlay *o;
    size_t mark; /* of the overlay, when the base ran */
    struct rp_sim_result result;
    struct rp_sim_result base;       /* kept while `result` is of another run */
    int64_t last_ns;                 /* of the base */
    struct rp_resim_tail tail;       /* made when it is needed the second time */
    RP_VEC(uint32_t) in, in_edges;   /* edges into a task, by task */
    RP_VEC(uint32_t) from;           /* by edge */
    RP_VEC(uint32_t) order, place;   /* order: tasks; place: where a task stands in it */
    RP_VEC(uint32_t) before, behind; /* on its serial device, or UINT32_MAX */
    RP_VEC(int64_t) ready_ns;
    RP_VEC(uint64_t) dirty; /* a bit a place */
    RP_VEC(struct rp_resim_change) log;
    RP_VEC(uint32_t) moved; /* tasks that changed places with the one before, one after the other */
    size_t first;           /* no bit is set in words before it */
    bool exact_order;       /* the order of devices is that of (ready, number) */
    bool apart;             /* the last update did not change the base, but ran anew */
    bool in_tail;           /* ... in the tail, whose result is taken from there */
    bool whole;             /* ... and ran everything */
    unsigned runs;          /* updates that ran anew */
    size_t visited;         /* tasks that the last update looked at */
};

/* Runs the overlay as it is; it must outlive x. O(n log n). Release x also after a failure. */
enum rp_code rp_resim_init(struct rp_resim *x, const struct rp_overlay *o, struct rp_err *err);
void rp_resim_release(struct rp_resim *x);

/* Takes the changes of the overlay since rp_resim_init into the result. O(what they reach). */
enum rp_code rp_resim_update(struct rp_resim *x, struct rp_err *err);
/* Back to the base, when the overlay is. */
void rp_resim_undo(struct rp_resim *x);

#endif
