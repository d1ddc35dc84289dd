/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Combines several versions of a program: the stages of its compilation, or two programs that are
 * compared. The union has every operation once and knows which versions have it, so that a picture
 * of the union shows any version with every operation in its place.
 */
#include "program/program.h"

struct rp_stages {
    struct rp_program *p; /* the union */
    size_t n;
    const char **names;
    bool sides;         /* two programs side by side */
    uint32_t words;     /* number of 64-bit words for a set of stages */
    uint64_t *ops;      /* by operation: the set of stages that have it */
    uint64_t *operands; /* the same for operands, in the order of p->operands */
};

static inline bool rp_stages_has(const uint64_t *sets, uint32_t words, size_t item, size_t stage)
{
    return sets[item * words + stage / 64] >> stage % 64 & 1;
}

/* One program with its name. match gives for each of its operations the same operation of the
   previous program, or RP_NONE; if it is NULL, operations with the same name in the computation of
   the same name are the same. */
struct rp_stage {
    const struct rp_program *p;
    const char *name;
    const uint32_t *match;
};

/* The union borrows texts of the programs. Must be released also after a failure. */
enum rp_code rp_stages_make(const struct rp_stage *stages, size_t n, bool sides,
                            struct rp_arena *arena, struct rp_stages *out, struct rp_err *err);
void rp_stages_release(struct rp_stages *stages);
