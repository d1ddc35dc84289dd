/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that could be one, found by what a what-if would save. */
#include "explain/findings/finding.h"

enum { CHAINS, UPDATE };

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_LOOK, OF(CHAINS), .text = "'reprise fusions' lists the chains"},
    {RP_ADVISE_COMPILE, OF(CHAINS), .compiled = RP_KEY_NO,
     .text = "compile the operators around them into one kernel", .what_if = "fuse"},
    {RP_ADVISE_COMPILE, OF(CHAINS), .frameworks = FW(PYTORCH), .compiled = RP_KEY_NO,
     .text = "torch.compile(model) makes one kernel of each chain", .what_if = "fuse"},
    {RP_ADVISE_COMPILE, OF(CHAINS), .frameworks = FW(PYTORCH), .compiled = RP_KEY_YES,
     .text = "TORCH_LOGS=graph_breaks shows what is not compiled"},
    {RP_ADVISE_COMPILE, OF(CHAINS), .frameworks = FW(JAX), .text = "one jax.jit around them"},
    {RP_ADVISE_COMPILE, OF(CHAINS), .frameworks = FW(TENSORFLOW), .compiled = RP_KEY_NO,
     .text = "@tf.function(jit_compile=True) around them", .what_if = "fuse"},
    {RP_ADVISE_OPTIMIZER, OF(UPDATE), .text = "update many parameters in one kernel",
     .what_if = "fused-optimizer"},
    {RP_ADVISE_OPTIMIZER, OF(UPDATE), .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .plain_update = RP_KEY_YES,
     .text = "fused=True of the optimizer: one kernel for many parameters",
     .what_if = "fused-optimizer"},
};

const struct rp_finding rp_finding_unfused_kernels = {
    .id = "unfused-kernels",
    .kinds = {{"chains",
               "element-wise kernels follow each other, and each passes over memory again"},
              {"update", "the optimizer passes over the parameters in many kernels"}},
    .condition = "nothing else found advises the what-if, and its gain is sure "
                 "([Advice](definitions/findings.md#advice))",
    .cost = "the part of the span that the gain of the what-if is of a step; an upper bound",
    .changes = {{"fuse", CHAINS}, {"fused-optimizer", UPDATE}},
    RP_ADVICE(advice),
};
