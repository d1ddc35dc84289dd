/* SPDX-License-Identifier: Apache-2.0 */
/* Writes dPRO's cluster_mapping.txt: a line for each operator, with the number of its cluster. */
#include "opt/export/exports.h"

static bool dpro_clusters_fits(const struct rp_opt_plan *plan)
{
    return rp_opt_is_tensorflow(plan) && plan->nclusters > 0;
}

static void dpro_clusters_write(const struct rp_opt_plan *plan, struct rp_out *to)
{
    for (size_t i = 0; i < plan->nclusters; i++)
        for (size_t k = 0; k < plan->clusters[i].nops; k++) {
            rp_out_escaped(to, RP_IN_WORD, plan->clusters[i].ops[k]);
            rp_out_printf(to, " %zu\n", i);
        }
}

const struct rp_exporter rp_exporter_dpro_clusters = {
    .name = "dpro-clusters",
    .file = "cluster_mapping.txt",
    .stock = false,
    .works_with = "dPRO's TensorFlow",
    .summary = "clusters of operators, for XLA_CLUSTER_SPEC",
    .fits = dpro_clusters_fits,
    .write = dpro_clusters_write};
