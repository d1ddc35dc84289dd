/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The answer of `top`, for those who ask it. */
#include "base/arena.h"
#include <reprise/result.h>

struct rp_trace;

struct rp_top_row {
    const char *name, *label, *kind, *category;
    int64_t modules; /* names that the row adds up; RP_ABSENT_I64: one */
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
    struct rp_top_row *flat, *nested, *shaped; /* the same on the screen: one of the three */
    const char **skipped, **notes;
};

/* Of one trace alone, everything in the arena: the rows with most time, `most` of them; 0: all. As
   without '--flat'. */
enum rp_code rp_top_of_trace(const struct rp_trace *trace, const char *by, int64_t most,
                             struct rp_arena *arena, struct rp_top_root *out, struct rp_err *err);
