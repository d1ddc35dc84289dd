/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is launched, as a number: the same for work of the same name, grid, block and bytes for an
 * operator with the same shapes, as far as these were recorded. Stable within a process only.
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
