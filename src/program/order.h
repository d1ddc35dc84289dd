/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Orders in which a program can be walked without looking ahead. */
#include "program/program.h"

/* All computations, each after those it calls; in the arena. RP_FORMAT where one calls itself. */
enum rp_code rp_program_call_order(const struct rp_program *p, struct rp_arena *arena,
                                   uint32_t **order, struct rp_err *err);

/*
 * The operations of a computation, each after its operands; `order` has room for all of them. The
 * order of the file where that is one, as in HLO. Operations in a cycle (loops of old TensorFlow
 * graphs) come last, in the order of the file.
 */
enum rp_code rp_computation_order(const struct rp_program *p, uint32_t computation,
                                  struct rp_arena *scratch, uint32_t *order, struct rp_err *err);
