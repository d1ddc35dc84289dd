/* SPDX-License-Identifier: Apache-2.0 */
/* DistributedDataParallel: bucket_cap_mb, and the buckets it makes. */
#include "opt/export/exports.h"

#include <math.h>

static const struct rp_field ddp_fields[] = {
    RP_FIELD(struct rp_opt_ddp, bucket_cap_mb, F64, NONE, NULL,
             "bucket_cap_mb of DistributedDataParallel, or null", 0),
    RP_FIELD_LIST(struct rp_opt_ddp, buckets, &rp_type_int, NULL,
                  "bytes of the buckets of the plan, in the order in which they are sent", 0),
    RP_FIELD_END};

const struct rp_type rp_opt_ddp_type = {"ddp", sizeof(struct rp_opt_ddp), ddp_fields, NULL};

void rp_opt_ddp_fill(const struct rp_opt_plan *plan, struct rp_arena *arena, struct rp_opt_ddp *out)
{
    size_t i;

    out->bucket_cap_mb = plan->source == RP_OPT_TORCH ? plan->bucket_cap_mb : (double)NAN;
    if (plan->source != RP_OPT_TORCH || !plan->ngroups)
        return;
    out->buckets = RP_ARENA_NEW(arena, int64_t, plan->ngroups);
    for (i = 0; out->buckets && i < plan->ngroups; i++)
        out->buckets[out->nbuckets++] = plan->groups[i].bytes;
}
