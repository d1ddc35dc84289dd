/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A tree while it grows; only for tree.c and repeats.c. */
#include "draw/tree.h"

struct rp_tree_list { /* the children of a group, linked by `next` */
    uint32_t first, last, n;
    uint32_t begin, end; /* the range of its operations in the order of the tree */
    bool listed;         /* it is in the list of its parent */
    bool works;          /* it contains more than data */
    bool repeats;        /* it contains a stack of layers */
};

struct rp_tree_build {
    const struct rp_program *p;
    const struct rp_hashes *hashes;
    struct rp_arena *arena;
    struct rp_err *err;
    RP_VEC(struct rp_group) groups;
    RP_VEC(struct rp_tree_list) lists; /* of groups */
    RP_VEC(uint32_t) next;             /* by child: the next one of the same list */
    RP_VEC(uint32_t) found;            /* children of the group that is being processed */
    RP_VEC(uint32_t) index; /* by child, while its group is being processed; otherwise RP_NONE */
    uint32_t *home, *root;
    uint32_t *order;    /* operations by data flow; those of a computation stay in its range */
    uint32_t *order_in; /* operations in the order of the tree */
    uint32_t *place;    /* ... and their places in it */
    uint32_t *scratch;  /* scratch space with one number for each operation */
    uint64_t *content;  /* by operation, without its operands */
    bool *loose;        /* by operation: whether it has no scope */
    uint32_t cluster_key;
    struct rp_map scopes, paths;
};

enum rp_code rp_tree_add(struct rp_tree_build *b, uint32_t parent, enum rp_group_kind kind,
                         const char *name, uint32_t *id);
enum rp_code rp_tree_wrap(struct rp_tree_build *b, const uint32_t *children, size_t n,
                          uint32_t parent, enum rp_group_kind kind, uint32_t number, uint32_t *id);

/* Makes layers of repeated runs of children, in all groups (repeats.c). */
enum rp_code rp_tree_find_repeats(struct rp_tree_build *b);
