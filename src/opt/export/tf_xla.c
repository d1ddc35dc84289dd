/* SPDX-License-Identifier: Apache-2.0 */
/* Sets auto-clustering of TensorFlow: it takes types of operators and sizes of clusters, but not
   the clusters. */
#include "opt/export/exports.h"

static bool tf_xla_fits(const struct rp_opt_plan *plan)
{
    return rp_opt_is_tensorflow(plan) && plan->nclusters > 0;
}

static void tf_xla_write(const struct rp_opt_plan *plan, struct rp_out *to)
{
    size_t i, least = SIZE_MAX, most = 0;

    for (i = 0; i < plan->nclusters; i++) {
        least = plan->clusters[i].nops < least ? plan->clusters[i].nops : least;
        most = plan->clusters[i].nops > most ? plan->clusters[i].nops : most;
    }
    rp_out_text(to,
                "# Auto-clustering of TensorFlow with clusters of these sizes, found by 'reprise "
                "optimize'.\n# Works with stock TensorFlow, which chooses the clusters itself: "
                "jit_compile.py and cluster_mapping.txt name those of the plan.\n");
    rp_opt_write_times(plan, to, "# ");
    rp_out_printf(to,
                  "export TF_XLA_FLAGS=\"$TF_XLA_FLAGS --tf_xla_auto_jit=2 "
                  "--tf_xla_min_cluster_size=%zu --tf_xla_max_cluster_size=%zu\"\n",
                  least, most);
}

const struct rp_exporter rp_exporter_tf_xla = {
    .name = "tf-xla",
    .file = "tf_xla_flags.sh",
    .stock = true,
    .works_with = "TensorFlow 2",
    .summary = "TF_XLA_FLAGS: auto-clustering with clusters of such sizes",
    .fits = tf_xla_fits,
    .write = tf_xla_write};
