/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The operations of a program as a tree of groups, for pictures: computations, scopes of the
 * framework, clusters of TensorFlow, and repeated layers, which are found by their content. Groups
 * have at most a few hundred children, however large the program is.
 */
#include "program/structure.h"

enum rp_group_kind {
    RP_GROUP_COMPUTATION, /* the root of its operations; shown inside the operation that calls it */
    RP_GROUP_SCOPE,       /* a part of the framework's names: "GPT/block_0" */
    RP_GROUP_CLUSTER,     /* operations that TensorFlow compiles together */
    RP_GROUP_REPEAT,      /* its children are repetitions */
    RP_GROUP_LAYER,       /* one repetition */
    RP_GROUP_PART,        /* neighbours, where there would be too many */
    RP_GROUP_INPUTS       /* parameters and constants that several groups use */
};

struct rp_group {
    uint32_t parent; /* group; RP_NONE: the root of a computation */
    uint32_t computation;
    uint32_t first, n; /* children */
    uint32_t ops;      /* in it and in its groups */
    uint32_t same;     /* the first group with the same content, maybe itself */
    uint32_t number;   /* of a repetition or part, from 1 */
    uint32_t depth;    /* of the root: 0 */
    const char *name;  /* may be "" */
    enum rp_group_kind kind;
    uint64_t hash;
};

/* A child is an operation, or a group: its number + nops. In the arena. */
struct rp_tree {
    const struct rp_program *p;
    uint32_t ngroups;
    struct rp_group *groups; /* parents before their children */
    uint32_t *children;
    uint32_t *home;   /* of operations: their group */
    uint32_t *index;  /* of children, operations then groups: the place in their group */
    uint32_t *root;   /* of computations: their group */
    uint32_t *caller; /* of computations: the first operation that shows it; RP_NONE: none */
};

/* The hashes are those of the program. */
enum rp_code rp_tree_build(const struct rp_program *p, const struct rp_hashes *hashes,
                           struct rp_arena *arena, struct rp_tree *out, struct rp_err *err);

/* Whether what an operation calls is worth a look: a fusion, a loop, but not the addition of a
   reduction. */
bool rp_tree_opens(const struct rp_program *p, uint32_t op);

/* Parameters, constants and the like: they are drawn beside their users. */
bool rp_tree_is_data(const struct rp_program *p, uint32_t op);
