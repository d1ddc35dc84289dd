/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_PROGRAM_DIFF_RECOMPILES_H
#define RP_EXPLAIN_PROGRAM_DIFF_RECOMPILES_H
/* Why a program was compiled again: each graph of a dump against the one that it is most like. */
#include "explain/program_diff/diff.h"

struct rp_step_graph {
    struct rp_diff_side side;
    const char *name;
    int64_t number; /* that people know it by */
};

struct rp_steps { /* rows so far */
    RP_VEC(struct rp_diff_step) rows;
};

/*
 * Graphs of one kind in the order of time: one row for each that is not the same as one before.
 * Texts in the arena; the rows belong to the caller.
 */
enum rp_code rp_explain_steps(const struct rp_step_graph *graphs, size_t n, struct rp_arena *arena,
                              struct rp_steps *out, struct rp_err *err);

/* A measure of being alike: shares of the operations that they have in common, by opcode and by
   all their looks. */
size_t rp_side_likeness(struct rp_diff_side a, struct rp_diff_side b, struct rp_arena *scratch);

#endif
