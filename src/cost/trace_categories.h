/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The categories of the kernels and operators of one trace (category.h), each decided once: rows
 * are looked up once for each name, and the trace knows the class of a name.
 */
#include "base/hash.h"
#include "cost/category.h"
#include "trace/trace.h"

struct rp_trace_categories {
    const struct rp_trace *trace;
    const struct rp_category_table *table; /* the user's, or NULL */
    struct rp_map pairs;                   /* from names of operator and kernel to category */
    struct rp_map ops, kernels; /* from name to the category of its row, or RP_CATEGORIES */
};

/* The trace and the table must outlive it. */
void rp_trace_categories_init(struct rp_trace_categories *c, const struct rp_trace *trace,
                              const struct rp_category_table *table);
void rp_trace_categories_release(struct rp_trace_categories *c);

/* Does the same as rp_category_of. Either may be 0 if not known; a kernel is the name of an
   event. */
enum rp_code rp_trace_category_of(struct rp_trace_categories *c, rp_str op, rp_str kernel,
                                  uint8_t *category, struct rp_err *err);
