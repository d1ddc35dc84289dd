/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the optimizer of PyTorch one kernel. */
#include "opt/export/exports.h"

static bool optimizer_fits(const struct rp_opt_plan *plan)
{
    return plan->source == RP_OPT_TORCH && plan->fused_optimizer;
}

static void optimizer_write(const struct rp_opt_plan *plan, struct rp_out *to)
{
    rp_out_text(to,
                "# The fused optimizer, found by 'reprise optimize'. Works with stock PyTorch 2.4 "
                "or newer.\n");
    rp_opt_write_times(plan, to, "# ");
    rp_out_text(to, "optimizer = torch.optim.");
    rp_out_escaped(to, RP_IN_NAME, plan->optimizer ? plan->optimizer : "AdamW");
    rp_out_text(to, "(model.parameters(), fused=True)  # and its other arguments\n");
}

const struct rp_exporter rp_exporter_optimizer = {.name = "optimizer",
                                                  .file = "optimizer.py",
                                                  .stock = true,
                                                  .works_with = "PyTorch 2.4 or newer",
                                                  .summary = "the fused optimizer",
                                                  .fits = optimizer_fits,
                                                  .write = optimizer_write};
