/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Horovod joins gradients that are ready at the end of a cycle, up to a size. The cycle must be as
 * long as the gradients of a group take to become ready: the mean over the groups that have
 * several.
 */
#include "base/decides.h"
#include "opt/export/exports.h"

#include <math.h>

static bool horovod_fits(const struct rp_opt_plan *plan)
{
    return plan->source == RP_OPT_HOROVOD && rp_opt_threshold(plan) > 0;
}

/* Returns the cycle in ms; 0 if not known. */
static double cycle_ms(const struct rp_opt_plan *plan)
{
    double sum = 0;
    size_t i, n = 0;

    for (i = 0; i < plan->ngroups; i++) {
        const struct rp_opt_group *g = &plan->groups[i];
        int64_t first = plan->tensors[g->tensors[0]].ready_ns;
        int64_t last = plan->tensors[g->tensors[g->ntensors - 1]].ready_ns;

        if (g->ntensors > 1 && last > first) {
            sum += (double)(last - first) / 1e6;
            n++;
        }
    }
    return n ? sum / (double)n : 0;
}

#define LEAST_CYCLE_MS 0.1
RP_LIMIT(LEAST_CYCLE_MS, "ms", "of a written cycle: a shorter cycle only costs the host time");

static void horovod_write(const struct rp_opt_plan *plan, struct rp_out *to)
{
    double cycle = cycle_ms(plan);

    rp_out_text(to,
                "# The size up to which Horovod joins gradients, and the cycle in which it does, "
                "found by 'reprise optimize'.\n# Works with stock Horovod; horovod_groups.py has "
                "the exact groups.\n");
    rp_opt_write_times(plan, to, "# ");
    rp_out_printf(to, "export HOROVOD_FUSION_THRESHOLD=%lld\n", (long long)rp_opt_threshold(plan));
    if (cycle > 0)
        rp_out_printf(to, "export HOROVOD_CYCLE_TIME=%.3g  # ms\n", fmax(cycle, LEAST_CYCLE_MS));
}

const struct rp_exporter rp_exporter_horovod = {
    .name = "horovod",
    .file = "horovod.sh",
    .stock = true,
    .works_with = "Horovod",
    .summary = "HOROVOD_FUSION_THRESHOLD and HOROVOD_CYCLE_TIME",
    .fits = horovod_fits,
    .write = horovod_write};
