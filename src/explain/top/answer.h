/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The answer of `top`, for the code that asks for it. */
#include "base/arena.h"
#include <reprise/result.h>

struct rp_trace;

struct rp_top_row {
    const char *name, *label, *kind, *category;
    int64_t modules; /* number of names that the row adds up; RP_ABSENT_I64: one */
    int64_t count, total_ns, self_ns, mean_ns, min_ns, p50_ns, p90_ns, p99_ns, max_ns, std_ns;
    double share;
};

struct rp_top_root {
    const char *by, *measure;
    int64_t ranks, whole_ns, covered_ns, row_count;
    double covered_share;
    const char *summary; /* text output only */
    size_t nrows, nskipped, nflat, nnested, nshaped, nnotes;
    struct rp_top_row *rows;
    struct rp_top_row *flat, *nested, *shaped; /* the same on the screen, as one of the three */
    const char **skipped, **notes;
};

/* The answer for one trace, in the arena: the `most` rows with most time; 0: all. Modules are
   joined as without '--flat'. */
enum rp_code rp_top_of_trace(const struct rp_trace *trace, const char *by, int64_t most,
                             struct rp_arena *arena, struct rp_top_root *out, struct rp_err *err);
