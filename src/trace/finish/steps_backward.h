/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "trace/finish/loop_work.h"

#define RP_BACKWARD_PREFIX "autograd::engine::evaluate_function"

/* What runs between the previous pass and this forward pass. */
enum rp_backward_update { RP_BACKWARD_NO_UPDATE, RP_BACKWARD_MAYBE_UPDATED, RP_BACKWARD_UPDATED };

struct rp_backward {
    rp_event event;           /* its first operator */
    int64_t begin_ns, end_ns; /* includes the forward pass before it, if that is known */
    size_t forward;           /* operators of that */
    enum rp_backward_update update;
};

typedef RP_VEC(struct rp_backward) rp_backward_vec;

/* Appends the passes in time order. */
enum rp_code rp_backward_passes(const struct rp_builder *b, const struct rp_loop_work *work,
                                rp_backward_vec *out, struct rp_err *err);
