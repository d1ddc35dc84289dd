/* SPDX-License-Identifier: Apache-2.0 */
/* Writes lists for TensorFlow's automatic mixed precision: types of operators. */
#include "opt/export/exports.h"

static bool tf_amp_fits(const struct rp_opt_plan *plan)
{
    return rp_opt_is_tensorflow(plan) && plan->ncasts > 0;
}

static void tf_amp_write(const struct rp_opt_plan *plan, struct rp_out *to)
{
    rp_out_text(to,
                "# Types of operators to run in 16 bits, found by 'reprise optimize'. Works with "
                "stock TensorFlow 2.4 or newer\n# (before: ..._WHITELIST_ADD), once "
                "auto_mixed_precision is on:\n"
                "#     tf.config.optimizer.set_experimental_options({'auto_mixed_precision': "
                "True})\n");
    rp_opt_write_times(plan, to, "# ");
    rp_out_text(to, "export TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_ALLOWLIST_ADD=");
    for (size_t i = 0; i < plan->ncasts; i++) {
        rp_out_text(to, i ? "," : "");
        rp_out_escaped(to, RP_IN_SHELL, plan->casts[i].op);
    }
    rp_out_char(to, '\n');
}

const struct rp_exporter rp_exporter_tf_amp = {
    .name = "tf-amp",
    .file = "tf_amp.sh",
    .stock = true,
    .works_with = "TensorFlow 2.4 or newer",
    .summary = "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_ALLOWLIST_ADD: operators in 16 bits",
    .fits = tf_amp_fits,
    .write = tf_amp_write};
