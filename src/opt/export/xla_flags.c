/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XLA joins collectives up to a size for each kind. The flags exist for GPUs; the CPU has none, and
 * those of TPUs belong to libtpu and are not documented.
 */
#include "opt/export/exports.h"

static bool xla_flags_fits(const struct rp_opt_plan *plan)
{
    return (plan->source == RP_OPT_JAX || plan->source == RP_OPT_TENSORFLOW) &&
           rp_opt_threshold(plan) > 0;
}

static void xla_flags_write(const struct rp_opt_plan *plan, struct rp_out *to)
{
    static const char *const kinds[] = {"all_reduce", "all_gather", "reduce_scatter"};

    rp_out_text(to,
                "# Sizes up to which XLA joins collectives on GPUs, found by 'reprise optimize'.\n"
                "# Works with stock XLA: source this file before the program starts.\n");
    rp_opt_write_times(plan, to, "# ");
    rp_out_text(to, "export XLA_FLAGS=\"$XLA_FLAGS");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        rp_out_printf(to, " --xla_gpu_%s_combine_threshold_bytes=%lld", kinds[i],
                      (long long)rp_opt_threshold(plan));
    rp_out_text(to, "\"\n");
}

const struct rp_exporter rp_exporter_xla_flags = {
    .name = "xla-flags",
    .file = "xla_flags.sh",
    .stock = true,
    .works_with = "JAX and TensorFlow on GPUs",
    .summary = "XLA_FLAGS: sizes up to which collectives are joined",
    .fits = xla_flags_fits,
    .write = xla_flags_write};
