/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_COST_CALLS_H
#define RP_COST_CALLS_H
/*
 * Device work by the call of an operator that it belongs to, each item once (docs/definitions.md,
 * "Roofline"). Of nested operators it is the innermost that has a model, unless an outer one is
 * fused attention or experts, which is modelled as a whole. Work without an operator is a call of
 * its own.
 */
#include "cost/op_cost.h"
#include "facts/work.h"

struct rp_cost_call {
    rp_event op;     /* the operator; RP_NONE: none is known */
    rp_event launch; /* of a graph: what replayed the operator; else RP_NONE */
    uint32_t item;   /* its longest item */
    uint32_t nitems;
    uint32_t cost;     /* into costs->costs */
    int64_t device_ns; /* sum of the durations of its items */
};

struct rp_cost_calls {
    RP_VEC(struct rp_cost_call) calls; /* in the order of their first items */
    RP_VEC(uint32_t) of_item;          /* by item of the work: its call */
};

/* Release `out` also after a failure. `work` must be of the trace of `costs`. */
enum rp_code rp_cost_calls_init(struct rp_cost_calls *out, struct rp_op_costs *costs,
                                const struct rp_work *work, struct rp_err *err);
void rp_cost_calls_release(struct rp_cost_calls *calls);

#endif
