/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The picture of a program: its tree of groups, each of which is laid out alone with all groups in
 * it closed. Groups with the same content share one layout. Opening a group stretches the rows and
 * columns around it, so nothing else changes its order (picture_open.c, and web/graph/page.js
 * likewise).
 */
#include "draw/layout.h"
#include "draw/tree.h"

struct rp_picture_edge {
    uint32_t from, to; /* places of children of the group */
    uint32_t count;    /* the number of operands that it represents */
};

struct rp_picture_group { /* of a group that is the first of its kind; otherwise n is 0 */
    uint32_t nedges;
    struct rp_picture_edge *edges;
    float *w; /* of the children */
    struct rp_layout layout;
};

struct rp_picture {
    struct rp_tree tree;
    struct rp_hashes hashes;
    struct rp_costs costs;
    struct rp_picture_group *groups; /* one for each group of the tree */
};

/* In the arena. */
enum rp_code rp_picture_make(const struct rp_program *p, struct rp_arena *arena,
                             struct rp_picture *out, struct rp_err *err);

/* Sizes of the boxes of closed children. */
enum {
    RP_BOX_OP_H = 36,
    RP_BOX_DATA_H = 22,
    RP_BOX_GROUP_H = 48,
    RP_BOX_GROUP_W = 220,
    RP_BOX_MOST_W = 190
};
float rp_picture_height(const struct rp_tree *tree, uint32_t child);
