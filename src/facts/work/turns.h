/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Turns: the host reads what the device computed, waits for it, and the next that the device does
 * is to take an upload, which may be made of what was read. In between the device has nothing to
 * do, and the host cannot run ahead: an environment in NumPy, a sampler, or search on the host.
 *
 *     device   [kernels][D2H]                 [H2D][kernels][D2H]
 *     host              [wait][environment ...][call]       [wait]
 */
#include "base/decides.h"
#include "facts/work/work.h"

#define RP_TURNS_MANY 16
RP_DECISION(RP_TURNS_MANY, "turns of a step",
            "a step that accumulates gradients reads the loss and uploads the next input up to 8 "
            "times; a rollout has 64 and more",
            "explain/turns_have_an_edge");

struct rp_turn {
    int64_t read_ns, upload_ns; /* end of the copy to the host, begin of the next to the device */
    rp_event call;              /* the call that read */
};
typedef RP_VEC(struct rp_turn) rp_turn_vec;

/* In the order of time. Linear in the items and the events of the host. */
enum rp_code rp_work_turns(const struct rp_work *work, rp_turn_vec *out, struct rp_err *err);
