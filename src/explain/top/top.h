/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `top` shows what takes the time, by kernel, operator, shape and so on. groups.c groups the work
 * of one trace; top.c has the row of the question, and adds up the groups of all ranks by name.
 */
#include "base/arena.h"
#include "base/vec.h"
#include "explain/top/answer.h"
#include "explain/top/counters.h"
#include "explain/top/focus.h"
#include "explain/top/lines.h"
#include "explain/top/stacks.h"
#include "explain/top/tree.h"
#include "facts/times/time_lists.h"
#include "facts/work/work.h"

#include <reprise/result.h>

struct rp_category_table;

enum rp_top_by {
    RP_TOP_KERNEL,
    RP_TOP_OP,
    RP_TOP_SHAPE,
    RP_TOP_MODULE,
    RP_TOP_ANNOTATION,
    RP_TOP_PHASE,
    RP_TOP_STREAM,
    RP_TOP_PYTHON,
    RP_TOP_CATEGORY,
    RP_TOP_WAIT,
    RP_TOP_STACK, /* samples of call stacks (stacks.h), like the next two */
    RP_TOP_FUNCTION,
    RP_TOP_LINE,
    RP_TOP_BYS
};
#define RP_TOP_BY_WORDS \
    "kernel|op|shape|module|annotation|phase|stream|python|category|wait|stack|function|line"
#define RP_TOP_SORTS "total|self|count|mean|p50|p99|max|std|name"

struct rp_top_group {
    const char *name, *kind;
    const char *row;      /* the row it is part of: "nn.Module: Layer_*"; NULL if it has its own */
    const char *category; /* for kernels and operators; otherwise NULL */
    int64_t self_ns;      /* own time of all its occurrences */
};

/* The part of a rank. */
struct rp_top_part {
    RP_VEC(struct rp_top_group) groups;
    struct rp_time_lists times;          /* by group: times that include nested spans */
    RP_VEC(struct rp_top_group) skipped; /* Python frames around everything, outermost first */
    int64_t whole_ns, covered_ns; /* the time in question, and the part of it in some group */
    bool on_host;                 /* no device work was recorded, so spans of the host count */
    /* Kernels are the default; if none were recorded, the groups are by this enum rp_top_by. 0 if
       they are what was asked for. */
    int32_t instead;
    const char *not_counted;     /* says what lies outside of the steps, or NULL */
    struct rp_recorder recorder; /* knows what to record if no row was found */
    /* One of these is filled instead of the vectors above, which are then empty. */
    struct rp_tree_part tree;         /* with --tree */
    struct rp_focus_part focus;       /* with --focus */
    struct rp_counters_part counters; /* with --counters */
    struct rp_stacks_part stacks;     /* by stack, function or line */
    struct rp_lines_part lines;       /* by line, with --dumps */
};

/* The value for the word of an option, which was already checked. */
enum rp_top_by rp_top_by_of(const char *word);

struct rp_top_groups {
    enum rp_top_by by;
    bool flat; /* modules that differ only in a number are separate; no Python frame is skipped */
    bool kernels; /* work without an operator is grouped by its own name, not by its graph */
    bool calls;   /* every span of the host counts, whatever its kind */
    const struct rp_category_table *categories; /* the user's, or NULL */
};

/* Groups the work of one trace. Names are in the arena; the caller owns the vectors of the part,
   also after a failure. */
enum rp_code rp_top_group_work(const struct rp_trace *trace, const struct rp_scope *scope,
                               const struct rp_top_groups *want, struct rp_arena *arena,
                               struct rp_top_part *out, struct rp_err *err);

/* Adds up the groups of ranks by name, as the question does: `limit` rows, 0: all; `sort` is one of
   RP_TOP_SORTS. Everything is in the arena. */
enum rp_code rp_top_join(const struct rp_top_part *const *parts, size_t nparts, const char *by,
                         const char *sort, int64_t limit, struct rp_arena *arena,
                         struct rp_top_root *out, struct rp_err *err);

extern const struct rp_type rp_top_part_type, rp_top_type; /* for a part, and for the answer */
