/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Two computations whose values are compared, operation by operation: the programs of `replay
 * isolate A B`, or the bodies of two loops or branches in them.
 */
#include "replay/search.h"

/* Of an operation and its counterpart. */
enum { RP_LEVEL_UNPAIRED, RP_LEVEL_AGREES, RP_LEVEL_DIFFERS, RP_LEVEL_ROUNDED };

struct rp_level_verdict {
    struct rp_comparison is;
    bool rounded; /* it differs, but not by more than rounding explains */
};

/* One program: its flat entry, with the values of its parameters. */
struct rp_level_side {
    struct rp_program *flat;
    const struct rp_computation *entry;
    struct rp_values values;
    uint32_t *order;
    uint8_t *keep;
    uint32_t *match;  /* in the arena of the level */
    uint8_t *agreed;  /* values that both programs have */
    uint8_t *reached; /* scratch of walks */
    uint32_t *stack;
};

struct rp_level {
    const struct rp_pair_search *search;
    struct rp_level_side side[2];
    uint8_t *state; /* by operation of the left side */
    uint8_t *known; /* by operation of the left side: it had a counterpart by name or structure */
    struct rp_level_verdict *verdict;
    uint32_t *group[2];
    size_t ngroup;
    struct rp_arena arena; /* of the pairs */
    const char *inside;
    int64_t iteration;
    unsigned depth;
    struct rp_arena *texts;
    struct rp_isolated_pair *out;
    struct rp_err *err;
};

/* ---- level.c ---- */

/* Must be released also after a failure. */
enum rp_code rp_level_side_init(struct rp_level_side *s, const struct rp_pair_search *search,
                                int which, struct rp_err *err);
void rp_level_side_release(struct rp_level_side *s);

/* Runs operations of one side with everything that leads to them. Call rp_trial_cut_release in
   every case. */
enum rp_code rp_level_part_run(const struct rp_level *l, struct rp_level_side *s,
                               const uint32_t *ops, size_t n, struct rp_trial_cut *out);

/* Marks in `reached` what `from` depends on; if `stop`, not beyond values that agree. */
void rp_level_mark(const struct rp_level *l, int side, const uint32_t *from, size_t n, bool stop);

/* Compares the results of both parts array by array; makes a new list of verdicts in the order of
   the arrays. */
enum rp_code rp_level_judge(const struct rp_level *l, const struct rp_trial_cut *left,
                            const struct rp_trial_cut *right, struct rp_level_verdict **out);

/* Finds counterparts, and compares the values of everything on which the results depend. */
enum rp_code rp_level_compare(struct rp_level *l, const uint32_t *results, size_t n);

/* ---- level_inside.c ---- */

/* Enters two loops or branches that differ, if they call the same kind of computation with the same
   values. */
enum rp_code rp_level_enter(struct rp_level *l, const uint32_t op[2]);

/* ---- isolate_pair.c ---- */

/* Compares two computations on the same values, and says where they differ. */
enum rp_code rp_level_run(const struct rp_pair_search *search, struct rp_level *outer,
                          const char *inside, int64_t iteration, bool *differs);
