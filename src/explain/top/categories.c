/* SPDX-License-Identifier: Apache-2.0 */
/* Categories are decided once for a pair of names. */
#include "explain/top/categories.h"

#include "base/hash.h"

/* What an optimizer launches one operation at a time is the optimizer all the same. */
static uint8_t in_phase(uint8_t category, uint8_t phase)
{
    bool arithmetic = category == RP_CATEGORY_ELEMENTWISE || category == RP_CATEGORY_REDUCTION;

    return phase == RP_PHASE_OPTIMIZER && arithmetic ? RP_CATEGORY_OPTIMIZER : category;
}

static enum rp_code category_of_item(const struct rp_category_table *table, struct rp_map *known,
                                     const struct rp_work *w, size_t i,
                                     const struct rp_work_owner *owner, uint8_t *category,
                                     struct rp_err *err)
{
    const struct rp_trace *t = w->trace;
    rp_str kernel = t->ev.name[w->items.at[i].event];
    rp_str op = owner->op != RP_NONE ? t->ev.name[owner->op] : owner->hlo_op;
    uint64_t key = (uint64_t)op << 32 | kernel;
    uint32_t found = rp_map_get(known, key);

    if (found == RP_MAP_NONE) {
        found = rp_category_of(table, op ? rp_trace_str(t, op) : NULL, rp_trace_str(t, kernel));
        RP_TRY(rp_map_put(known, key, found, err));
    }
    *category = in_phase((uint8_t)found, owner->phase);
    return RP_OK;
}

enum rp_code rp_work_categories_init(struct rp_work_categories *out, const struct rp_work *work,
                                     const struct rp_attribution *places,
                                     const struct rp_category_table *table, struct rp_err *err)
{
    enum rp_code code = rp_vec_reserve(&out->of_item, work->items.n + 1, err);
    struct rp_map known;
    size_t i;

    rp_map_init(&known);
    for (i = 0; i < work->items.n && code == RP_OK; i++)
        code = category_of_item(table, &known, work, i, &places->owners.at[i], &out->of_item.at[i],
                                err);
    out->of_item.n = code == RP_OK ? work->items.n : 0;
    rp_map_release(&known);
    return code;
}

void rp_work_categories_release(struct rp_work_categories *c)
{
    rp_vec_release(&c->of_item);
}
