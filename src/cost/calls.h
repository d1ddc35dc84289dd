/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Device work by the call of an operator that it belongs to, each item once (docs/definitions.md,
 * "Roofline"). Of nested operators it is the innermost that has a model, unless an outer one is
 * modelled as a whole, as fused attention is. A kernel whose launch was not recorded, as at the
 * beginning of a recording, belongs to the operator that launches the same kernel with the same
 * grid elsewhere, if all that do cost the same. Copies, fills and work without an operator are
 * calls of their own. So FLOPs, bytes and times can be added up without counting anything twice.
 */
#include "cost/op_cost.h"
#include "facts/work/work.h"

struct rp_cost_call {
    rp_event op;     /* the operator; RP_NONE: the call is its item */
    rp_event launch; /* of a graph: what replayed the operator; else RP_NONE */
    uint32_t item;   /* its longest item */
    uint32_t nitems;
    uint32_t cost;    /* into costs->costs */
    uint8_t category; /* enum rp_category */
    bool inferred; /* its launch was not recorded: the operator is that of the same kernel with the
                      same grid elsewhere */
    bool is_part;  /* inferred too, and not the main kernel of its operator: part of another call */
    bool on_link;  /* bytes move between devices or to the host, not in memory */
    int64_t device_ns; /* sum of the durations of its items */
    int64_t longest_ns;
};

struct rp_cost_calls {
    RP_VEC(struct rp_cost_call) calls; /* in the order of their first items */
    RP_VEC(uint32_t) of_item;          /* by item of the work: its call */
};

/* What others know about an item that has no operator, as programs of XLA; false: nothing. */
typedef bool rp_item_cost_fn(void *user, const struct rp_trace *trace, rp_event item,
                             struct rp_op_cost *out);

/* Release `out` also after a failure. `work` must be of the trace of `costs`. `known` may be NULL.
 */
enum rp_code rp_cost_calls_init(struct rp_cost_calls *out, struct rp_op_costs *costs,
                                const struct rp_work *work, rp_item_cost_fn *known, void *user,
                                struct rp_err *err);
void rp_cost_calls_release(struct rp_cost_calls *calls);

/* Takes the model away from calls that would have done more than the device can: their shapes are
   not what their kernels computed, so that nothing may be added up or drawn from them. Data in a
   cache may be faster than the memory; it is at its peak then (rp_cost_least_s). */
enum rp_code rp_cost_calls_limit(struct rp_cost_calls *calls, struct rp_op_costs *costs,
                                 const struct rp_cost_peaks *peaks, struct rp_err *err);

/* The least time of a call on the device, at most what it took, in seconds; NAN: not known. */
double rp_cost_least_s(const struct rp_cost_call *call, const struct rp_op_cost *cost,
                       const struct rp_cost_peaks *peaks);
