/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_COST_OP_COST_H
#define RP_COST_OP_COST_H
/*
 * The least work of an operator, by its recorded inputs (docs/definitions.md, "Roofline"): floating
 * point operations, of which a multiply-add is two, and bytes, where each input is read and each
 * output written once. Costs are computed once for the same name, shapes, types and arguments.
 */
#include "base/arena.h"
#include "base/hash.h"
#include "cost/category.h"
#include "cost/devices.h"
#include "facts/arg_keys.h"

struct rp_cost {
    double flops, bytes; /* of one call; NAN where it is not modelled */
    const char *missing; /* why not: "no shapes were recorded"; NULL: it is modelled. Static */
    uint8_t category;    /* enum rp_category */
    uint8_t type;        /* enum rp_number, of its arithmetic */
    bool on_matrix;      /* its arithmetic can run on matrix units */
    bool claims;         /* everything that is launched inside is part of it: fused attention */
};

static inline bool rp_cost_is_known(const struct rp_cost *cost)
{
    return !cost->missing;
}

/* The costs of the operators of one trace. */
struct rp_op_costs {
    const struct rp_trace *trace;
    const struct rp_category_table *categories; /* the user's, or NULL */
    struct rp_arg_key dims, strides, types, concrete;
    RP_VEC(struct rp_cost) costs;
    struct rp_map known; /* hash of name and inputs -> index into costs */
};

/* The trace and the table must outlive it. Needs RP_NEED_ARGS. Release also after a failure. */
enum rp_code rp_op_costs_init(struct rp_op_costs *c, const struct rp_trace *trace,
                              const struct rp_category_table *categories, struct rp_err *err);
void rp_op_costs_release(struct rp_op_costs *c);

/* The index in c->costs of what an operator costs; the event is a span of the host. */
enum rp_code rp_op_cost_of(struct rp_op_costs *c, rp_event op, uint32_t *cost, struct rp_err *err);

#endif
