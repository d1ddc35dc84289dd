/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/trace_categories.h"

void rp_trace_categories_init(struct rp_trace_categories *c, const struct rp_trace *trace,
                              const struct rp_category_table *table)
{
    *c = (struct rp_trace_categories){.trace = trace, .table = table};
}

void rp_trace_categories_release(struct rp_trace_categories *c)
{
    rp_map_release(&c->pairs);
    rp_map_release(&c->ops);
    rp_map_release(&c->kernels);
}

/* Returns RP_CATEGORIES if there is no row for it. */
static enum rp_code row_of(struct rp_trace_categories *c, rp_str name, bool is_op, uint32_t *row,
                           struct rp_err *err)
{
    struct rp_map *known = is_op ? &c->ops : &c->kernels;

    *row = name ? rp_map_get(known, name) : RP_CATEGORIES;
    if (*row != RP_MAP_NONE)
        return RP_OK;
    *row = (uint32_t)rp_category_row_of(rp_trace_str(c->trace, name), is_op);
    return rp_map_put(known, name, *row, err);
}

static enum rp_code decide(struct rp_trace_categories *c, rp_str op, rp_str kernel, uint32_t *found,
                           struct rp_err *err)
{
    const struct rp_trace *t = c->trace;
    enum rp_name_class class = kernel ? (enum rp_name_class)t->str.name_class[kernel] : 0;
    enum rp_category category;

    *found = RP_CATEGORIES;
    if (rp_category_table_find(c->table, op ? rp_trace_str(t, op) : NULL,
                               kernel ? rp_trace_str(t, kernel) : NULL, &category))
        *found = category;
    else if (rp_category_is_by_class(class))
        *found = rp_category_of_class(class);
    else
        RP_TRY(row_of(c, op, true, found, err));
    if (*found == RP_CATEGORIES)
        RP_TRY(row_of(c, kernel, false, found, err));
    if (*found == RP_CATEGORIES) /* the name of an operator need not be that of an event */
        *found = class == RP_NAME_NONE && op
                     ? rp_category_of_class(rp_name_class_of(rp_trace_str(t, op)))
                     : rp_category_of_class(class);
    return RP_OK;
}

enum rp_code rp_trace_category_of(struct rp_trace_categories *c, rp_str op, rp_str kernel,
                                  uint8_t *category, struct rp_err *err)
{
    uint64_t key = (uint64_t)op << 32 | kernel;
    uint32_t found = rp_map_get(&c->pairs, key);

    if (found == RP_MAP_NONE) {
        RP_TRY(decide(c, op, kernel, &found, err));
        RP_TRY(rp_map_put(&c->pairs, key, found, err));
    }
    *category = (uint8_t)found;
    return RP_OK;
}
