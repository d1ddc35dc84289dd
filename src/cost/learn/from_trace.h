/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Takes measured operators from a trace: calls with recorded shapes, each with the time of its
   kernels. */
#include "cost/calls.h"
#include "cost/learn/samples.h"

/* Whether a call can be a sample: not if its cost is not known, nor copies, collectives and
   optimizers. */
bool rp_call_is_sample(const struct rp_op_costs *costs, const struct rp_cost_call *call);
/* Makes one call a sample, whose texts are in the arena or static; false if it cannot be one, or
   its shapes are not known. All but the time follows from the cost of the call, if it has an
   operator. */
bool rp_sample_of_call(struct rp_op_costs *costs, const struct rp_cost_call *call,
                       const char *device, struct rp_arena *arena, struct rp_sample *out);

/* Does the same for all calls of a trace and adds them to `out`. `known` is that of
   rp_cost_calls_init. */
enum rp_code rp_samples_of_trace(struct rp_samples *out, const struct rp_trace *trace,
                                 const struct rp_category_table *categories, const char *device,
                                 rp_item_cost_fn *known, void *user, struct rp_err *err);
