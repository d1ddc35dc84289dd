/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The work of kernels that a compiler made, from what it wrote down: XLA's programs, PyTorch's
   log. */
#include "explain/roofline/inductor.h"
#include "explain/roofline/xla.h"

struct rp_program_costs {
    struct rp_xla_costs xla;
    struct rp_inductor_costs inductor;
};

/* dumps: a folder or file of PyTorch's logs; NULL: those beside the trace. The struct must not be
   moved, and must be released also after a failure. */
static inline enum rp_code rp_program_costs_init(struct rp_program_costs *x,
                                                 const struct rp_loaded *loaded, const char *dumps,
                                                 struct rp_err *err)
{
    *x = (struct rp_program_costs){0};
    RP_TRY(rp_inductor_costs_init(&x->inductor, loaded, dumps, err));
    return rp_xla_costs_init(&x->xla, loaded, err);
}

static inline void rp_program_costs_release(struct rp_program_costs *x)
{
    rp_xla_costs_release(&x->xla);
    rp_inductor_costs_release(&x->inductor);
}

/* A rp_item_cost_fn whose user is the struct, which must outlive the shapes of the costs. */
static inline bool rp_program_cost_of(void *user, const struct rp_trace *trace, rp_event item,
                                      struct rp_op_cost *out)
{
    struct rp_program_costs *x = user;

    return rp_xla_cost_of(&x->xla, trace, item, out) ||
           rp_inductor_cost_of(&x->inductor, item, out);
}
