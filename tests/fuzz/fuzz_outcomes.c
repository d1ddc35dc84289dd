/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as the file of outcomes: what is read is in range, and an interval holds its prediction.
 */
#include "outcomes/outcomes.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rp_outcomes all = {.host = "host"};
    struct rp_err err = RP_ERR_INIT;

    if (rp_outcomes_parse(&all, (const char *)data, size, &err) == RP_OK)
        for (size_t i = 0; i < all.list.n; i++) {
            const struct rp_outcome *o = &all.list.at[i];
            double low = 0.5, high = 1.2;

            if (!(o->predicted > 0 && o->measured > 0 && o->parameters >= 0) || !*o->device)
                abort();
            rp_outcomes_narrow(&all, o->device, "torch", o->change, 0.8, &low, &high);
            if (!(low > 0 && low <= 0.8 && high >= 0.8) || !isfinite(high))
                abort();
        }
    rp_outcomes_release(&all);
    return 0;
}
