/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Orders in which a program can be walked without looking ahead. */
#include "program/program.h"

/* Orders all computations so that each follows those it calls; the list is in the arena. Returns
   RP_FORMAT if one calls itself. */
enum rp_code rp_program_call_order(const struct rp_program *p, struct rp_arena *arena,
                                   uint32_t **order, struct rp_err *err);

/*
 * Orders the operations of a computation so that each follows its operands; `order` has room for
 * all of them. The order of the file is kept if it satisfies this, as in HLO. Operations in a cycle
 * (loops of old TensorFlow graphs) come last, in the order of the file.
 */
enum rp_code rp_computation_order(const struct rp_program *p, uint32_t computation,
                                  struct rp_arena *scratch, uint32_t *order, struct rp_err *err);
