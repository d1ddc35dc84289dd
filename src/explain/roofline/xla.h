/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds the work of XLA's kernels: their instructions are looked up in the programs that the
 * profile carries, or that are dumped beside it, and counted as `graph` counts them.
 */
#include "cost/calls.h"
#include "dataset/load.h"

struct rp_xla_costs {
    struct rp_arg_key hlo_op, hlo_module, program_id;
    struct rp_map known; /* from the hash of program and instruction to the index */
    RP_VEC(struct rp_op_cost) costs;
    struct rp_arena arena; /* of their shapes */
    size_t programs;
};

/* Reads the programs if the trace has work of XLA, else nothing. Must be released also after a
   failure. */
enum rp_code rp_xla_costs_init(struct rp_xla_costs *x, const struct rp_loaded *loaded,
                               struct rp_err *err);
void rp_xla_costs_release(struct rp_xla_costs *x);

/* A rp_item_cost_fn whose user is the struct, which must outlive the shapes of the costs. */
bool rp_xla_cost_of(void *user, const struct rp_trace *trace, rp_event item,
                    struct rp_op_cost *out);
