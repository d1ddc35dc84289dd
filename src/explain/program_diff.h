/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_PROGRAM_DIFF_H
#define RP_EXPLAIN_PROGRAM_DIFF_H
/* How two programs differ, whatever their parts are called. */
#include "program/structure.h"
#include "result/result.h"

struct rp_diff_change {
    const char *kind; /* added, removed, opcode, shape, constant, attribute, operands */
    int64_t count;    /* operations that changed in this way */
    const char *what; /* "add f32[8] -> subtract f32[8]" */
    const char *place, *example;
};

struct rp_diff_program {
    const char *name, *hash;
    int64_t instructions;
};

struct rp_diff {
    const char *inputs; /* "programs" */
    bool same;
    struct rp_diff_program left, right;
    int64_t matched, changed, added, removed;
    size_t nchanges;
    struct rp_diff_change *changes; /* most frequent first */
};

extern const struct rp_type rp_diff_type;

/* Texts and lists in the arena. */
enum rp_code rp_explain_diff(const struct rp_program *left, const struct rp_program *right,
                             struct rp_arena *arena, struct rp_diff *out, struct rp_err *err);

#endif
