/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Groups device work by calls of operators, each item once (docs/definitions.md, "Roofline"). Of
 * nested operators, the innermost that has a model counts, unless an outer one is modelled as a
 * whole, as fused attention is. A kernel whose launch was not recorded, as at the beginning of a
 * recording, belongs to the operator that launches the same kernel with the same grid elsewhere, if
 * all such launches cost the same. Copies, fills and work without an operator are calls of their
 * own. So FLOPs, bytes and times can be added up without counting anything twice.
 */
#include "cost/op_cost.h"
#include "facts/work/work.h"

struct rp_cost_call {
    rp_event op;     /* the operator; RP_NONE if the call is its item */
    rp_event launch; /* for a graph: what replayed the operator; otherwise RP_NONE */
    uint32_t item;   /* its longest item */
    uint32_t nitems;
    uint32_t cost;    /* index in costs->costs */
    uint8_t category; /* enum rp_category */
    bool inferred; /* its launch was not recorded: the operator is that of the same kernel with the
                      same grid elsewhere */
    bool is_part;  /* inferred, too, and not the main kernel of its operator, so it is part of
                      another call */
    bool on_link;  /* bytes move between devices or to the host, not in memory */
    int64_t device_ns; /* sum of the durations of its items */
    int64_t longest_ns;
};

struct rp_cost_calls {
    RP_VEC(struct rp_cost_call) calls; /* in the order of their first items */
    RP_VEC(uint32_t) of_item;          /* the call of each item of the work */
};

/* Gives the cost of an item without an operator from elsewhere, such as programs of XLA; false if
   it is not known. */
typedef bool rp_item_cost_fn(void *user, const struct rp_trace *trace, rp_event item,
                             struct rp_op_cost *out);

/* `out` must be released also after a failure. `work` must be of the trace of `costs`. `known` may
   be NULL. */
enum rp_code rp_cost_calls_init(struct rp_cost_calls *out, struct rp_op_costs *costs,
                                const struct rp_work *work, rp_item_cost_fn *known, void *user,
                                struct rp_err *err);
void rp_cost_calls_release(struct rp_cost_calls *calls);

/* Takes the model away from calls that would have done more than the device can: their shapes are
   not what their kernels computed, so nothing may be added up or drawn from them. Calls with data
   in a cache may be faster than the memory and count as at its peak (rp_cost_least_s). */
enum rp_code rp_cost_calls_limit(struct rp_cost_calls *calls, struct rp_op_costs *costs,
                                 const struct rp_cost_peaks *peaks, struct rp_err *err);

/* Returns the least time of a call on the device in seconds, at most the time it took; NAN if not
   known. */
double rp_cost_least_s(const struct rp_cost_call *call, const struct rp_op_cost *cost,
                       const struct rp_cost_peaks *peaks);
