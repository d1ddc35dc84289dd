/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_PROGRAM_DIFF_CANON_H
#define RP_EXPLAIN_PROGRAM_DIFF_CANON_H
/* The hash of a program whose parameters may come in any order. */
#include "explain/program_diff/match.h"

/*
 * Of the entry computation (or the one given), with what nobody calls where it is the whole program
 * (RP_NONE). A parameter is known by what becomes of it instead of by its number. In the arena:
 * anonymous, if not NULL, gets for every operation of the program the hash of its history in which
 * all parameters of a shape are the same; 0 outside of the computation.
 */
enum rp_code rp_canonical_hash(const struct rp_match_side *side, uint32_t computation,
                               struct rp_arena *arena, uint64_t *hash, uint64_t **anonymous,
                               struct rp_err *err);

#endif
