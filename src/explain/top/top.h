/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `top`: what takes the time, by kernel, operator, shape and so on. groups.c groups the work of one
 * trace; top.c has the row of the question, and adds up the groups of all ranks by name.
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
    RP_TOP_STACK, /* these three: samples of call stacks (stacks.h) */
    RP_TOP_FUNCTION,
    RP_TOP_LINE,
    RP_TOP_BYS
};
#define RP_TOP_BY_WORDS \
    "kernel|op|shape|module|annotation|phase|stream|python|category|wait|stack|function|line"
#define RP_TOP_SORTS "total|self|count|mean|p50|p99|max|std|name"

struct rp_top_group {
    const char *name, *kind;
    const char *row;      /* the row it is part of: "nn.Module: Layer_*"; NULL: one of its own */
    const char *category; /* of kernels and operators; NULL: of anything else */
    int64_t self_ns;      /* of all its occurrences */
};

/* The part of a rank. */
struct rp_top_part {
    RP_VEC(struct rp_top_group) groups;
    struct rp_time_lists times;          /* by group: nested spans included */
    RP_VEC(struct rp_top_group) skipped; /* Python frames around everything, outermost first */
    int64_t whole_ns, covered_ns;        /* time that was asked about; of it, in some group */
    bool on_host;                        /* no device work was recorded: spans of the host count */
    /* Kernels are the default; where none were recorded, the groups are by this enum rp_top_by.
       0: they are what was asked for. */
    int32_t instead;
    const char *not_counted;     /* says what lies outside of the steps, or NULL */
    struct rp_recorder recorder; /* tells what to record where no row was found */
    /* Each of these is filled in place of the vectors above, which are empty then. */
    struct rp_tree_part tree;         /* with --tree */
    struct rp_focus_part focus;       /* with --focus */
    struct rp_counters_part counters; /* with --counters */
    struct rp_stacks_part stacks;     /* by stack, function or line */
    struct rp_lines_part lines;       /* by line, with --dumps */
};

/* The word of an option to its value; the word was checked. */
enum rp_top_by rp_top_by_of(const char *word);

struct rp_top_groups {
    enum rp_top_by by;
    bool flat; /* modules that differ in a number only are different; no Python frame is skipped */
    bool kernels; /* work without an operator is grouped by its own name, not by its graph */
    bool calls;   /* every span of the host counts, whatever its kind */
    const struct rp_category_table *categories; /* the user's, or NULL */
};

/* Groups the work of one trace. Names are in the arena; the vectors of the part are the caller's,
   also after a failure. */
enum rp_code rp_top_group_work(const struct rp_trace *trace, const struct rp_scope *scope,
                               const struct rp_top_groups *want, struct rp_arena *arena,
                               struct rp_top_part *out, struct rp_err *err);

/* Adds up the groups of ranks by name, as the question does: `limit` rows, 0: all; `sort` is one of
   RP_TOP_SORTS. Everything is in the arena. */
enum rp_code rp_top_join(const struct rp_top_part *const *parts, size_t nparts, const char *by,
                         const char *sort, int64_t limit, struct rp_arena *arena,
                         struct rp_top_root *out, struct rp_err *err);

extern const struct rp_type rp_top_part_type, rp_top_type; /* of a part, and of the answer */
