/* SPDX-License-Identifier: Apache-2.0 */
/* Writes dPRO's tensor_fusion_grp_mapping.json, which its versions of Horovod and BytePS read. */
#include "opt/export/exports.h"

static bool dpro_groups_fits(const struct rp_opt_plan *plan)
{
    return (plan->source == RP_OPT_HOROVOD || plan->source == RP_OPT_BYTEPS) && plan->ngroups > 0;
}

static void dpro_groups_write(const struct rp_opt_plan *plan, struct rp_out *to)
{
    struct rp_arena arena = RP_ARENA_INIT;

    rp_out_text(to, "{\"mapping\": [");
    for (size_t i = 0; i < plan->ngroups; i++)
        rp_out_printf(to, "%s\"%s\"", i ? ", " : "",
                      rp_opt_group_ids(plan, &plan->groups[i], &arena));
    rp_out_text(to, "]}\n");
    rp_arena_release(&arena);
}

const struct rp_exporter rp_exporter_dpro_groups = {
    .name = "dpro-groups",
    .file = "tensor_fusion_grp_mapping.json",
    .stock = false,
    .works_with = "dPRO's Horovod and BytePS",
    .summary = "groups of tensors by their ids, for HOROVOD_TENSOR_GROUP_FILE",
    .fits = dpro_groups_fits,
    .write = dpro_groups_write};
