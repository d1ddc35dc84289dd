/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/learned.h"

#include "base/text.h"

/* Changes are made in PyTorch; in other frameworks they are others. */
static bool is_of_torch(const struct rp_sim_part *part)
{
    for (size_t i = 0; i < part->graph.names.n; i++)
        if (rp_text_begins(part->graph.names.at[i], "aten::"))
            return true;
    return part->update != NULL;
}

size_t rp_sim_narrow(const struct rp_outcomes *outcomes, const struct rp_sim_part *part,
                     const char *text, double predicted, double *low, double *high)
{
    if (!outcomes->list.n || !part->gpu || !is_of_torch(part))
        return 0;
    return rp_outcomes_narrow(outcomes, part->gpu, "torch", text, predicted, low, high);
}
