/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Names that count. "step 0", "step 1", "step 2" are one series, "step *": annotations whose names
 * differ only in the number at the end, each used once. "layer 0", "layer 1" are repeated in every
 * step, so they are separate names.
 */
#include "base/strtab.h"
#include "base/vec.h"
#include "trace/trace.h"

struct rp_name_series {
    struct rp_strtab names;  /* of series: "step *" */
    RP_VEC(uint32_t) series; /* by string of the trace: its series, or RP_NONE */
};

/* Linear in events. `out` must be released also after a failure. */
enum rp_code rp_name_series_init(struct rp_name_series *out, const struct rp_trace *trace,
                                 struct rp_err *err);
void rp_name_series_release(struct rp_name_series *s);

/* The name of the series, or NULL. */
const char *rp_name_series_of(const struct rp_name_series *s, rp_str name);
