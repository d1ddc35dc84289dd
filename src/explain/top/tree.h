/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `top --tree` shows the work of a run as a tree of modules, annotations, operators or Python
 * frames. tree.c makes the tree of one trace, tree_rows.c adds up those of all ranks, folds what is
 * alike, and cuts what is small.
 */
#include "base/arena.h"
#include "base/vec.h"
#include "explain/top/spans.h"
#include "facts/work/work.h"

struct rp_result;
struct rp_settings;
struct rp_ranks;

/* What the tree consists of. */
enum rp_tree_of {
    RP_TREE_AUTO, /* modules, annotations and the operators in them; if there are none, one of the
                     next */
    RP_TREE_OP,
    RP_TREE_MODULE,
    RP_TREE_ANNOTATION,
    RP_TREE_PYTHON
};

struct rp_tree_node {
    uint32_t parent; /* index in the list, before its own; the first one, which is everything, has
                        itself */
    uint8_t kind;    /* enum rp_span_kind */
    int64_t total_ns, self_ns;
    int64_t backward_ns; /* part of total_ns: launched by the backward pass of what is inside */
    int64_t calls;       /* number of spans; for XLA's scopes, of items */
    uint64_t shapes;     /* hash of the set of operators and shapes launched in it; 0: not known */
    const char *name;
};

struct rp_tree_part {
    RP_VEC(struct rp_tree_node) nodes;
    const char *of; /* "modules", "operators" ... what the tree consists of */
    bool on_host;   /* times are those of host spans */
    bool cut;       /* there were too many different paths; the last nodes contain the rest */
};

extern const struct rp_type rp_tree_part_type;

struct rp_xla_names;

/* Texts are in the arena. `names` of XLA's instructions may be NULL. */
enum rp_code rp_tree_make(const struct rp_trace *trace, const struct rp_scope *scope,
                          enum rp_tree_of of, const struct rp_xla_names *names,
                          struct rp_arena *arena, struct rp_tree_part *out, struct rp_err *err);

struct rp_tree_row {
    int64_t id, parent, depth; /* parent: RP_ABSENT_I64 at the top */
    const char *name, *label, *kind;
    int64_t members; /* number of siblings that the row adds up; RP_ABSENT_I64: one */
    int64_t calls, total_ns, self_ns, backward_ns;
    double share;
};

struct rp_tree_root {
    const char *summary, *of, *measure;
    int64_t ranks, whole_ns, covered_ns, row_count;
    double covered_share;
    size_t nrows, nshown, nnotes;
    struct rp_tree_row *rows, *shown;
    const char **notes;
};

extern const struct rp_type rp_tree_type;

#define RP_TREE_SCREEN (-1) /* as the number of rows: as many as matter and fit on a screen */

/* What a tree shows: at most so many rows and levels; 0: all. */
struct rp_tree_cut {
    int64_t rows, depth;
};

/* Fills the answer from the trees of all ranks. */
enum rp_code rp_tree_join(const struct rp_tree_part *const *parts, size_t n,
                          const struct rp_tree_cut *cut, struct rp_arena *arena,
                          struct rp_tree_root *out, struct rp_err *err);
