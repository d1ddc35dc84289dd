/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds the work of kernels that Inductor wrote, if shapes were not recorded: the log of the
 * compiler says what each of them reads and writes. A log beside the trace is read when the first
 * kernel needs it, `dumps` at once.
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

/* dumps: a folder or file of logs; NULL: those beside the trace. The struct must not be moved, and
   must be released also after a failure. */
enum rp_code rp_inductor_costs_init(struct rp_inductor_costs *x, const struct rp_loaded *loaded,
                                    const char *dumps, struct rp_err *err);
void rp_inductor_costs_release(struct rp_inductor_costs *x);

/* A rp_item_cost_fn (cost/calls.h). */
bool rp_inductor_cost_of(struct rp_inductor_costs *x, rp_event item, struct rp_op_cost *out);
