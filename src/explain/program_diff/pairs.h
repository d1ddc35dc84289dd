/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_PROGRAM_DIFF_PAIRS_H
#define RP_EXPLAIN_PROGRAM_DIFF_PAIRS_H
/* Which module of one folder is which of another. */
#include "explain/program_diff/diff.h"

struct rp_module_key {
    const char *name; /* of the module and its stage, without ids */
    const char *folder;
    uint64_t hash, sharding;
};

struct rp_module_pair {
    size_t left, right; /* SIZE_MAX: not there */
};

/*
 * By name and content, then by name in the order given (a function that was compiled several
 * times), both first in the folder of the same name and then anywhere; then by content (a function
 * that was renamed). What is left has no partner. In the order of the left ones, then of the right
 * ones; in the arena.
 */
enum rp_code rp_modules_pair(const struct rp_module_key *left, size_t n,
                             const struct rp_module_key *right, size_t m, struct rp_arena *arena,
                             struct rp_module_pair **out, size_t *npairs, struct rp_err *err);

#endif
