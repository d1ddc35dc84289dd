/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which operations of two programs correspond to each other. */
#include "program/structure.h"

struct rp_match_side {
    const struct rp_program *p;
    struct rp_hashes hashes;
    uint32_t *user_begin, *users; /* users of an operation as CSR */
    uint32_t *match;              /* the other side's operation, or RP_NONE */
    uint8_t *visited;             /* operations of computations that were compared */
    const uint64_t *anonymous;    /* by operation: see rp_canonical_hash; or NULL */
};

struct rp_match {
    struct rp_match_side left, right;
};

/* Computes hashes and users for any number of comparisons; in the arena. */
enum rp_code rp_match_prepare(const struct rp_program *p, struct rp_arena *arena,
                              struct rp_match_side *out, struct rp_err *err);

/*
 * Pairs operations, computation by computation from the entries down; computations with the same
 * hash are paired as a whole, without visiting their operations. The entries are computations;
 * RP_NONE stands for whole programs, with unreachable computations. If both sides have anonymous
 * hashes, parameter numbers are ignored. The result is in the arena. Takes the time of sorting the
 * operations.
 */
enum rp_code rp_program_match(const struct rp_match_side *left, uint32_t left_entry,
                              const struct rp_match_side *right, uint32_t right_entry,
                              struct rp_arena *arena, struct rp_match *out, struct rp_err *err);

/*
 * The hash of a computation, or of the whole program with its unreachable computations (RP_NONE),
 * that does not depend on the order of parameters: a parameter is identified by its uses instead of
 * its number. anonymous, if not NULL, is set to an array in the arena with a hash for every
 * operation over all its inputs, up to the parameters, in which all parameters of a shape are
 * equal; 0 outside the computation.
 */
enum rp_code rp_canonical_hash(const struct rp_match_side *side, uint32_t computation,
                               struct rp_arena *arena, uint64_t *hash, uint64_t **anonymous,
                               struct rp_err *err);
