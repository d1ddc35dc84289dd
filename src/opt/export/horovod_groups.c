/* SPDX-License-Identifier: Apache-2.0 */
/* Writes groups of gradients for hvd.DistributedOptimizer, which sends each group as one. */
#include "opt/export/exports.h"

static bool horovod_groups_fits(const struct rp_opt_plan *plan)
{
    for (size_t i = 0; i < plan->ntensors; i++)
        if (!plan->tensors[i].name)
            return false;
    return plan->source == RP_OPT_HOROVOD && plan->ngroups > 0;
}

static const char groups_function[] =
    "\n"
    "\n"
    "def groups(variables_by_gradient):\n"
    "    \"\"\"The argument 'groups' of hvd.DistributedOptimizer, from {name of a gradient: its variable}.\"\"\"\n"
    "    return [[variables_by_gradient[name] for name in group] for group in GROUPS]\n";

static void horovod_groups_write(const struct rp_opt_plan *plan, struct rp_out *to)
{
    rp_out_text(to,
                "\"\"\"Groups of gradients, found by 'reprise optimize'. Works with stock Horovod "
                "0.22 or newer.\n\n");
    rp_opt_write_times(plan, to, "");
    rp_out_text(to, "\n    hvd.DistributedOptimizer(optimizer, "
                    "groups=horovod_groups.groups(variables_by_gradient))\n\"\"\"\nGROUPS = [\n");
    for (size_t i = 0; i < plan->ngroups; i++) {
        rp_out_text(to, "    [");
        for (size_t k = 0; k < plan->groups[i].ntensors; k++) {
            rp_out_text(to, k ? ", " : "");
            rp_out_escaped(to, RP_IN_PYTHON, plan->tensors[plan->groups[i].tensors[k]].name);
        }
        rp_out_text(to, "],\n");
    }
    rp_out_text(to, "]\n");
    rp_out_text(to, groups_function);
}

const struct rp_exporter rp_exporter_horovod_groups = {
    .name = "horovod-groups",
    .file = "horovod_groups.py",
    .stock = true,
    .works_with = "Horovod 0.22 or newer",
    .summary = "the exact groups, for hvd.DistributedOptimizer",
    .fits = horovod_groups_fits,
    .write = horovod_groups_write};
