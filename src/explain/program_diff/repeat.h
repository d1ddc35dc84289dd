/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_PROGRAM_DIFF_REPEAT_H
#define RP_EXPLAIN_PROGRAM_DIFF_REPEAT_H
/* Which of several alike an operation is: the 17th of 32 layers, where nothing has a name. */
#include "explain/program_diff/match.h"

struct rp_repeat {
    uint64_t kind;         /* the same for all that are alike */
    uint32_t index, count; /* 1-based, in the order of the data flow; count 1: nothing is like it */
    uint32_t off;          /* how far the count is from that of the layers */
};

/*
 * Of every operation of a computation, from its first one; in the arena, with the scratch it takes
 * (about 100 bytes an operation).
 */
enum rp_code rp_repeats_find(const struct rp_match_side *side, uint32_t computation,
                             struct rp_arena *arena, struct rp_repeat **out, struct rp_err *err);

#endif
