/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A run as another compiler or device might have rounded it (rp_engine_options.vary): results of
 * types narrower than f32 move to a neighbour here and there, and operands of convolutions lose
 * what TF32 has no room for (rp_engine_options.tf32_convolutions).
 */
#include "exec/eval/plan.h"

/* Changes a result that the node rounded, in place; *out is of one user. */
enum rp_code rp_vary_result(struct rp_eval *e, const struct rp_node *node, struct rp_tensor **out,
                            struct rp_err *err);
/* Whether the node is a convolution whose operands are to be rounded. */
bool rp_vary_takes_tf32(const struct rp_eval *e, const struct rp_node *node);
/* Operands of f32 as rounded copies, all others kept: the caller drops *n of them. */
enum rp_code rp_vary_operands(const struct rp_node *node, struct rp_tensor **in, uint32_t *n,
                              struct rp_err *err);
