/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/learned.h"

#include "sim/whatif/nodes.h"

size_t rp_sim_narrow(const struct rp_outcomes *outcomes, const struct rp_sim_part *part,
                     const char *text, double predicted, double *low, double *high)
{
    if (!outcomes->list.n || !part->gpu || !rp_sim_is_torch(part))
        return 0; /* changes are made in PyTorch, and differ in other frameworks */
    return rp_outcomes_narrow(outcomes, part->gpu, "torch", text, predicted, low, high);
}
