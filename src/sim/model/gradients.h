/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Finds the gradients of a rank, in the order in which its backward pass makes them. */
#include "sim/model/part.h"

/* Fills part->gradients; the nodes of its graph must have their notes and events. */
enum rp_code rp_sim_gradients_find(struct rp_sim_part *part, const struct rp_trace *t,
                                   struct rp_err *err);
