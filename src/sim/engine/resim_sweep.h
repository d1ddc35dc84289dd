/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Simulates again only what a change reaches, in the order in which the base began its tasks, in
 * which every task comes after its predecessors, and after what ran before it on its device. Two
 * methods:
 *
 *     sweep    only tasks that a change reaches, until nothing changes any more; tasks of a device
 *              swap places where they become ready in another order
 *     replay   all tasks from a place on, one after the other, as long as no device changes its
 *              order
 *
 * The order of a device follows from sorting, because in a plain graph all tasks that are ready at
 * a moment are known before a device chooses. It takes the smallest (ready, number), so its
 * sequence is sorted by that; and the only sequence that is sorted by it is the one that the
 * simulator chooses.
 */
#include "sim/engine/plain_graph.h"
#include "sim/engine/simulator.h"

struct rp_resim_in { /* an edge into a task */
    uint32_t from;   /* may have RP_PLAIN_FROM_START */
    uint32_t lag_ns; /* or RP_PLAIN_CUT */
};

struct rp_resim_change {
    uint32_t task;
    int64_t start_ns, end_ns, ready_ns; /* as they were */
};

struct rp_resim_sweep {
    const struct rp_plain_graph *g;
    const uint32_t *order, *place; /* order: of tasks; place: the index of a task in it */
    struct rp_sim_result *r;       /* result of the base; a sweep changes it */
    RP_VEC(uint32_t) first;        /* edges into tasks, by task */
    RP_VEC(struct rp_resim_in) in;
    RP_VEC(uint32_t) in_of;          /* by edge: its index in `in` */
    RP_VEC(uint32_t) before, behind; /* neighbours on its device, or UINT32_MAX */
    RP_VEC(int64_t) ready_ns;
    RP_VEC(uint64_t) dirty; /* a bit a place */
    RP_VEC(struct rp_resim_change) log;
    RP_VEC(uint32_t) moved; /* tasks that swapped places with their predecessor, in this order */
    size_t low;             /* no bit is set in words before this one */
    size_t visited;
};

/* order: tasks in the order in which the base began them. s must be released also after a
   failure. */
enum rp_code rp_resim_sweep_init(struct rp_resim_sweep *s, const struct rp_plain_graph *g,
                                 const uint32_t *order, const uint32_t *place,
                                 struct rp_sim_result *base, struct rp_err *err);
void rp_resim_sweep_release(struct rp_resim_sweep *s);

/* Marks a task that must be recomputed. */
void rp_resim_sweep_touch(struct rp_resim_sweep *s, uint32_t task);
/* Whether a sweep after so many changes may end before it gives up. */
bool rp_resim_sweep_may_end(const struct rp_resim_sweep *s, size_t nchanges);
/* *ok is false if it gave up because too much is reached; the sweep must then be undone. */
enum rp_code rp_resim_sweep_run(struct rp_resim_sweep *s, bool *ok, struct rp_err *err);
void rp_resim_sweep_undo(struct rp_resim_sweep *s);

/* Recomputes all tasks from this place on into `out`, which has those before it. *ok is false if a
   device would change its order; then `out` is wrong from there on. */
enum rp_code rp_resim_sweep_replay(const struct rp_resim_sweep *s, size_t from,
                                   struct rp_sim_result *out, bool *ok, struct rp_err *err);
