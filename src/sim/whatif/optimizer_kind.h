/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which optimizer a rank ran, as its spans tell it: "Optimizer.step#AdamW.step" names the kind,
 * operators such as aten::_foreach_add_ or aten::_fused_adamw_ the implementation, and aten::item
 * shows that the count of steps was read on the host, which a captured graph cannot do.
 */
#include "sim/model/run.h"

enum rp_optimizer_style { RP_OPTIMIZER_LOOP, RP_OPTIMIZER_FOREACH, RP_OPTIMIZER_FUSED };

struct rp_optimizer_kind {
    const char *name; /* "AdamW", "Adam", "SGD", "optimizer" */
    enum rp_optimizer_style style;
    bool fusible;      /* PyTorch has it with fused=True, as far as its name says */
    bool adam;         /* it has two moments and counts its steps */
    bool reads_host;   /* the count is on the host (capturable=False) */
    double passes;     /* number of passes over memory, as recorded */
    double fused;      /* the same with fused=True */
    double parameters; /* number of parameters in a step; 0: not recorded */
};

/* Whether this device node belongs to the optimizer's update. */
bool rp_sim_is_update(const struct rp_sim_run *run, uint32_t node);

void rp_optimizer_kind(const struct rp_sim_run *run, uint32_t rank, struct rp_optimizer_kind *out);
