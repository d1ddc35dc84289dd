/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The category of each item of device work (docs/definitions.md, "Categories"). */
#include "cost/trace_categories.h"
#include "facts/work/attribution.h"

struct rp_work_categories {
    RP_VEC(uint8_t) of_item; /* enum rp_category */
};

/* Decides by operator and kernel; `known` belongs to the trace of `work`. Arithmetic of the
   optimizer is `optimizer`. Must be released also after a failure. */
enum rp_code rp_work_categories_init(struct rp_work_categories *out, const struct rp_work *work,
                                     const struct rp_attribution *places,
                                     struct rp_trace_categories *known, struct rp_err *err);
void rp_work_categories_release(struct rp_work_categories *c);
