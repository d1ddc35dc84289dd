/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which operators of two call trees are the same. Every piece of work is in exactly one unit. */
#include "explain/diff/tree.h"

/* How two operators were found to be the same: the first rule that fits. */
enum rp_diff_rule {
    RP_DIFF_BY_TREE,  /* they have the same place in the call tree */
    RP_DIFF_BY_SHAPE, /* they are elsewhere, with the same name and shape */
    RP_DIFF_BY_NAME,  /* they are elsewhere, with the same name */
    RP_DIFF_BY_WORK,  /* they have the same kernel, and one of them has no operator */
    RP_DIFF_ALONE,    /* only one of the runs has it */
    RP_DIFF_RULES
};
extern const char *const rp_diff_rule_names[RP_DIFF_RULES];

/* rp_diff_unit is compared as one: a node of each tree by itself, or with everything below it. */
struct rp_diff_unit {
    uint32_t left, right; /* nodes; RP_NONE: none */
    uint32_t left_piece,
        right_piece; /* for RP_DIFF_BY_WORK and RP_DIFF_ALONE: only this piece; else RP_NONE */
    uint8_t rule;
    bool whole; /* with everything below */
    bool set; /* the unit stands for one of several nodes with this name, of which the other run has
                 more or fewer; units of both sides are joined by their loose names */
};

typedef RP_VEC(struct rp_diff_unit) rp_diff_units;

/* Appends the units to out. */
enum rp_code rp_diff_align(const struct rp_diff_tree *left, const struct rp_diff_tree *right,
                           rp_diff_units *out, struct rp_err *err);
