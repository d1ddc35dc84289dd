/* SPDX-License-Identifier: Apache-2.0 */
/* Writes dPRO's tensor_partition_spec.txt: sizes of the parts of each group, for its version of
   BytePS. */
#include "opt/export/exports.h"

static bool dpro_partitions_fits(const struct rp_opt_plan *plan)
{
    for (size_t i = 0; i < plan->ngroups; i++)
        if (plan->groups[i].part_bytes > 0)
            return plan->source == RP_OPT_HOROVOD || plan->source == RP_OPT_BYTEPS;
    return false;
}

static void dpro_partitions_write(const struct rp_opt_plan *plan, struct rp_out *to)
{
    struct rp_arena arena = RP_ARENA_INIT;

    for (size_t i = 0; i < plan->ngroups; i++)
        if (plan->groups[i].part_bytes > 0)
            rp_out_printf(to, "Distributed_Push_Pull/BytePSPushPull.%s %lld\n",
                          rp_opt_group_ids(plan, &plan->groups[i], &arena),
                          (long long)plan->groups[i].part_bytes);
    rp_arena_release(&arena);
}

const struct rp_exporter rp_exporter_dpro_partitions = {
    .name = "dpro-partitions",
    .file = "tensor_partition_spec.txt",
    .stock = false,
    .works_with = "dPRO's BytePS",
    .summary = "sizes of the parts of groups, for BYTEPS_PARTITION_SPEC_FILE",
    .fits = dpro_partitions_fits,
    .write = dpro_partitions_write};
