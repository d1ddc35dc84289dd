/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Counts what a pass did to a program, from the programs before and after it. */
#include "explain/program_diff/match.h"
#include "program/structure.h"

/* A program, with what is needed to compare it with others. */
struct rp_dump_version {
    const struct rp_program *program;
    struct rp_match_side side;
    struct rp_costs costs;
    struct rp_arena arena;
};

/* Must be released also after a failure. */
enum rp_code rp_dump_version_init(struct rp_dump_version *v, const struct rp_program *program,
                                  struct rp_err *err);
void rp_dump_version_release(struct rp_dump_version *v);

/*
 * Instructions are matched by structure, not by name (explain/program_diff/match.h). Parameters of
 * inner computations are not counted: fusing makes and removes them.
 */
struct rp_dump_change {
    int64_t before, after; /* instructions */
    int64_t added, removed;
    int64_t changed; /* other shape, layout or attributes */
    int64_t moved;   /* moved to another computation: fused, inlined, outlined */
    int64_t fusions; /* more than before */
    double flops, bytes;
    bool same;        /* the structure of the program is the same */
    const char *what; /* "+3 fusion, -12 add; 24 moved"; in the arena */
};

enum rp_code rp_dump_compare(const struct rp_dump_version *left,
                             const struct rp_dump_version *right, struct rp_arena *arena,
                             struct rp_dump_change *out, struct rp_err *err);
