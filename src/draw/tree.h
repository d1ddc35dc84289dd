/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Arranges the operations of a program in a tree of groups, for pictures: computations, scopes of
 * the framework, clusters of TensorFlow, and repeated layers, which are found by their content.
 * Groups have at most a few hundred children, however large the program is.
 */
#include "program/structure.h"

enum rp_group_kind {
    RP_GROUP_COMPUTATION, /* the root of its operations, shown inside the operation that calls it */
    RP_GROUP_SCOPE,       /* a scope of the framework's names: "GPT/block_0" */
    RP_GROUP_CLUSTER,     /* operations that TensorFlow compiles together */
    RP_GROUP_REPEAT,      /* its children are repetitions */
    RP_GROUP_LAYER,       /* one repetition */
    RP_GROUP_PART,        /* neighbours, if there would be too many children */
    RP_GROUP_INPUTS       /* parameters and constants that several groups use */
};

struct rp_group {
    uint32_t parent; /* the group above; RP_NONE for the root of a computation */
    uint32_t computation;
    uint32_t first, n; /* children */
    uint32_t ops;      /* number of operations in it and in its groups */
    uint32_t same;     /* the first group with the same content, possibly itself */
    uint32_t number;   /* the number of a repetition or part, from 1 */
    uint32_t depth;    /* of the root: 0 */
    const char *name;  /* may be "" */
    enum rp_group_kind kind;
    uint64_t hash;
};

/* A child is an operation, or a group, which has the number of the group + nops. All is in the
   arena. */
struct rp_tree {
    const struct rp_program *p;
    uint32_t ngroups;
    struct rp_group *groups; /* parents before their children */
    uint32_t *children;
    uint32_t *home;   /* by operation: its group */
    uint32_t *index;  /* by child, operations then groups: the place in its group */
    uint32_t *root;   /* by computation: its group */
    uint32_t *caller; /* by computation: the first operation that shows it, or RP_NONE */
};

/* The hashes are those of the program. */
enum rp_code rp_tree_build(const struct rp_program *p, const struct rp_hashes *hashes,
                           struct rp_arena *arena, struct rp_tree *out, struct rp_err *err);

/* Whether the computation that an operation calls is worth a look: that of a fusion or a loop, but
   not the addition of a reduction. */
bool rp_tree_opens(const struct rp_program *p, uint32_t op);

/* Whether it is a parameter, a constant or the like, which are drawn beside their users. */
bool rp_tree_is_data(const struct rp_program *p, uint32_t op);
