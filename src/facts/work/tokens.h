/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Identifies launched work by a number, which is the same for work with the same name, grid, block
 * and bytes for an operator with the same shapes, as far as these were recorded. It is stable only
 * within a process.
 */
#include "facts/arg_keys.h"
#include "facts/work/work.h"

struct rp_work_tokens {
    const struct rp_trace *trace;
    struct rp_arg_key keys[3], dims;
};

enum rp_code rp_work_tokens_init(struct rp_work_tokens *out, const struct rp_trace *trace,
                                 struct rp_err *err);
void rp_work_tokens_release(struct rp_work_tokens *tokens); /* also after a failure */

/* op: the operator around its launch, or RP_NONE. */
uint64_t rp_work_token(const struct rp_work_tokens *tokens, const struct rp_work_item *item,
                       rp_event op);
