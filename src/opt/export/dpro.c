/* SPDX-License-Identifier: Apache-2.0 */
/* dPRO's groups of tensors: "5+6", ids ascending, groups in the order in which they are sent. */
#include "opt/export/exports.h"

#include "base/order.h"

#include <stdlib.h>

static const struct rp_field dpro_fields[] = {
    RP_FIELD_LIST(struct rp_opt_dpro, tensor_groups, &rp_type_string, NULL,
                  "tensor ids joined with '+', in the order in which the groups are sent", 0),
    RP_FIELD_END};

const struct rp_type rp_opt_dpro_type = {"dpro", sizeof(struct rp_opt_dpro), dpro_fields, NULL};

static int by_id(const void *pa, const void *pb)
{
    return RP_COMPARE(*(const int64_t *)pa, *(const int64_t *)pb);
}

static const char *name_group(const struct rp_opt_plan *plan, const struct rp_opt_group *g,
                              struct rp_arena *arena)
{
    int64_t *ids = RP_ARENA_NEW(arena, int64_t, g->ntensors);
    const char *text = "";
    size_t i;

    for (i = 0; ids && i < g->ntensors; i++)
        ids[i] = plan->tensors[g->tensors[i]].id;
    if (ids)
        qsort(ids, g->ntensors, sizeof *ids, by_id);
    for (i = 0; ids && i < g->ntensors; i++)
        text = rp_arena_textf(arena, "%s%s%lld", text, i ? "+" : "", (long long)ids[i]);
    return text;
}

void rp_opt_dpro_fill(const struct rp_opt_plan *plan, struct rp_arena *arena,
                      struct rp_opt_dpro *out)
{
    size_t i;

    if (plan->source != RP_OPT_HOROVOD && plan->source != RP_OPT_BYTEPS)
        return;
    out->tensor_groups = RP_ARENA_NEW(arena, const char *, plan->ngroups + 1);
    for (i = 0; out->tensor_groups && i < plan->ngroups; i++)
        out->tensor_groups[out->ntensor_groups++] = name_group(plan, &plan->groups[i], arena);
}
