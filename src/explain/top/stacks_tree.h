/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The call tree of all ranks of a run, or of two runs that are compared, and its rows; shared by
 * stacks.c and stacks_diff.c.
 */
#include "base/hash.h"
#include "base/strtab.h"
#include "explain/top/stacks.h"

/* Sets one of name_ns, name_count and name_bytes of `to`, by the unit, to the value, and the others
   to null. */
#define RP_STACKS_SET(to, name, of_unit, value)                                   \
    ((to)->name##_ns = (of_unit) == RP_WEIGHT_NS ? (value) : RP_ABSENT_I64,       \
     (to)->name##_count = (of_unit) == RP_WEIGHT_COUNT ? (value) : RP_ABSENT_I64, \
     (to)->name##_bytes = (of_unit) == RP_WEIGHT_BYTES ? (value) : RP_ABSENT_I64)

struct rp_stacks_weight {
    int64_t self, count;
};

struct rp_stacks_tree {
    struct rp_arena *arena;
    const char *by;
    struct rp_strtab rows_of; /* from the key of a row to the row */
    RP_VEC(struct rp_stacks_row) rows;
    RP_VEC(struct rp_stacks_node) nodes;
    RP_VEC(struct rp_stacks_node) runs;
    RP_VEC(struct rp_stacks_weight)
    base; /* by node: weights in the run to compare with; or empty */
    RP_VEC(struct rp_stacks_frame) frames;
    struct rp_strtab frames_of;
    struct rp_map node_of;
    int64_t whole, unread, waited, untimed;
    int64_t base_whole;
    uint32_t unit;
    const char *measure; /* what is counted, or "" */
    bool of_spans, of_device, is_drawn, has_parts;
    bool split_ranks; /* each rank has a tree of its own */
    struct rp_err *err;
};

/* Must be released also after a failure. */
enum rp_code rp_stacks_tree_init(struct rp_stacks_tree *j, const char *by, struct rp_arena *arena,
                                 struct rp_err *err);
void rp_stacks_tree_release(struct rp_stacks_tree *j);
/* Adds the tree of a rank; all trees count the same thing. `as_base`: it belongs to the base of a
   comparison. `rank`: its name if there are several. */
enum rp_code rp_stacks_tree_add(struct rp_stacks_tree *j, const struct rp_stacks_part *part,
                                bool as_base, const char *rank);
/* Fills the rows with weights as nanoseconds, whatever their unit. */
enum rp_code rp_stacks_tree_fill(struct rp_stacks_tree *j);
/* Sets the texts of a row that is shown, if it is a stack. */
void rp_stacks_tree_name(struct rp_stacks_tree *j, struct rp_stacks_row *row);
enum rp_code rp_stacks_tree_draw(const struct rp_stacks_tree *j, const char *path,
                                 const char *by); /* by: of rp_stacks_want */
