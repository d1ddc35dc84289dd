/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The work of kernels that Inductor wrote, where shapes were not recorded: the log of the compiler
 * says what each of them reads and writes. It is read for the first kernel that asks, and from
 * `dumps` at once.
 */
#include "cost/calls.h"
#include "cost/inputs.h"
#include "dataset/load.h"
#include "xref/compiled.h"

struct rp_inductor_costs {
    const struct rp_loaded *loaded;
    struct rp_torch_trace log;
    struct rp_compiled compiled;
    struct rp_inputs inputs;
    bool was_read;
};

/* dumps: a folder or file of logs; NULL: those beside the trace. It must stay where it is; release
   it also after a failure. */
enum rp_code rp_inductor_costs_init(struct rp_inductor_costs *x, const struct rp_loaded *loaded,
                                    const char *dumps, struct rp_err *err);
void rp_inductor_costs_release(struct rp_inductor_costs *x);

/* As a rp_item_cost_fn (cost/calls.h). */
bool rp_inductor_cost_of(struct rp_inductor_costs *x, rp_event item, struct rp_op_cost *out);
