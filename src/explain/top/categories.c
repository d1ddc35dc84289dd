/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/top/categories.h"

enum rp_code rp_work_categories_init(struct rp_work_categories *out, const struct rp_work *work,
                                     const struct rp_attribution *places,
                                     struct rp_trace_categories *known, struct rp_err *err)
{
    const struct rp_trace *t = work->trace;

    RP_TRY(rp_vec_reserve(&out->of_item, work->items.n + 1, err));
    for (size_t i = 0; i < work->items.n; i++) {
        const struct rp_work_owner *owner = &places->owners.at[i];
        rp_str op = owner->op != RP_NONE ? t->ev.name[owner->op] : owner->hlo_op;
        uint8_t category;

        RP_TRY(
            rp_trace_category_of(known, op, t->ev.name[work->items.at[i].event], &category, err));

        /* An operation that an optimizer launches belongs to the optimizer, even if it is a general
         * one. */
        uint8_t phase = owner->phase;
        bool arithmetic = category == RP_CATEGORY_ELEMENTWISE || category == RP_CATEGORY_REDUCTION;
        out->of_item.at[i] =
            phase == RP_PHASE_OPTIMIZER && arithmetic ? RP_CATEGORY_OPTIMIZER : category;
    }
    out->of_item.n = work->items.n;
    return RP_OK;
}

void rp_work_categories_release(struct rp_work_categories *c)
{
    rp_vec_release(&c->of_item);
}
