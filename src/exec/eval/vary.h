/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Makes a run round as another compiler or device might (rp_engine_options.vary): some results of
 * types narrower than f32 move to a neighbour, sums whose terms cancel run in another order, and
 * operands of convolutions lose the bits that TF32 lacks (rp_engine_options.tf32_convolutions).
 */
#include "exec/eval/plan.h"

/* Changes a result that the node rounded in place; *out must have one user. */
RP_KERNEL(rp_vary_result);
/* Whether the node is a convolution whose operands must be rounded. */
bool rp_vary_takes_tf32(const struct rp_eval *e, const struct rp_node *node);
/* Rounds copies of operands of f32 and keeps all others; the caller drops *n of them. */
enum rp_code rp_vary_operands(const struct rp_node *node, struct rp_tensor **in, uint32_t *n,
                              struct rp_err *err);
