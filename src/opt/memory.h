/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds the peak memory of a rank, and the operators that could run again instead of keeping their
 * results until the backward pass. An operator frees the bytes of its results at the peak, except
 * for the largest result, which must be there again when it is used.
 */
#include "opt/optimize.h"

struct rp_opt_kept { /* results that wait for the backward pass at the peak */
    const char *op;
    int64_t bytes, largest_bytes;
};

/* The part of a rank. */
struct rp_opt_part {
    struct rp_sim_part sim; /* must be the first member: rp_sim_rank_model fills it */
    int64_t peak_bytes;     /* RP_ABSENT_I64 if not recorded */
    size_t nkept;
    struct rp_opt_kept *kept; /* the most first */
};

extern const struct rp_type rp_opt_part_type;

struct rp_trace;
/* Fills the members after `sim`. */
enum rp_code rp_opt_part_memory(struct rp_opt_part *out, const struct rp_trace *trace,
                                struct rp_arena *arena, struct rp_err *err);
