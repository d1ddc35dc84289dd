/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Questions about a run: the function `rank` makes a small part from one trace, on any thread and
 * independently of the others; the function `join` gets all parts in the order of the ranks and
 * makes the answer. A trace is in memory only while its part is made.
 *
 *     rank0.json -> trace -> part 0 --\
 *     rank1.json -> trace -> part 1 ----> join -> result
 *     rank2.json -> trace -> part 2 --/
 *
 * The options --rank, --step and --window have the same meaning in all of them: `join` gets the
 * ranks that --rank selects; `rank` gets the step or the window as its scope and must respect it:
 * rp_work_init does for device work, rp_scope_has for host events (facts/work/work.h).
 */
#include "dataset/captures.h"
#include "dataset/load.h"
#include "facts/work/work.h"
#include "result/settings.h"

/* For the option tables of questions that judge steps; loading respects the option. */
#define RP_STEP_NAME_OPTION                                                        \
    {                                                                              \
        "step-name", 0, RP_OPT_TEXT, "TEXT", NULL,                                 \
            "take the ranges or marks whose names begin with this as the steps", 0 \
    }

/* For the option table of a question. */
#define RP_RANK_OPTIONS                                                                             \
    {"rank", 'r', RP_OPT_TEXT, "N[-M],…", NULL, "only these ranks: '0,3' or '8-15'", 0},            \
        {"step", 0,    RP_OPT_TEXT,                                                                 \
         "N",    NULL, "only work launched in this step: its number, or the beginning of its name", \
         0},                                                                                        \
        RP_STEP_NAME_OPTION,                                                                        \
    {                                                                                               \
        "window", 0, RP_OPT_TEXT, "A..B", NULL,                                                     \
            "only events that start between two times, counted from the first event: '10ms..25ms'", \
            0                                                                                       \
    }

/* The traits by which a rank is chosen if not all can be kept (bulk.h). */
struct rp_rank_traits {
    uint64_t kind;   /* the same for ranks that run the same kernels */
    int64_t comm_ns; /* in communication, including waiting: the rank that others wait for has the
                        least */
    uint32_t events;
    int32_t rank; /* the number in the file, or RP_NO_RANK */
};

/* One rank's part. `data` is of the row's type; it points into the arena, or to vectors that the
   type describes and that join the arena when the part is made. The arenas of all parts become the
   result's, so a join need not copy what it shows. */
struct rp_rank_part {
    int32_t number;   /* the number of the rank, which rp_run_settle gives it */
    const char *path; /* the path of its input, in the arena */
    const struct rp_digest *digest;
    struct rp_arena arena;
    void *data;
    size_t source;      /* index of its input */
    uint32_t in_source; /* which of its ranks it is, if the input is a merged trace */
    struct rp_graph_use graphs;
    struct rp_rank_traits traits;
    bool left_out; /* it has no bulk (bulk.h), because that of other ranks was kept */
};

struct rp_ranks {
    size_t n;
    struct rp_rank_part *parts; /* by number */
    int32_t world_size;
    struct rp_pool *pool; /* the context's pool, for a join that has much to do; NULL for files */
    bool unrelated;       /* they are not ranks of one run: their collectives must not be matched */
    const char *graphs;   /* what to say about captures of graphs, or NULL */
    size_t ncaptures;     /* ranks that are recordings of captures: normally none or all of them */
    int64_t captured;     /* launches in them */
    /* If the bulk of all parts is too large (bulk.h): */
    size_t nchosen;
    const uint32_t *chosen; /* the parts that have theirs; NULL if all that ever had one still do */
    const uint32_t
        *weights; /* by chosen part: how many ranks it stands for; NULL if each stands for itself */
};

struct rp_rank_bulk;

struct rp_rank_row {
    const struct rp_type *part; /* the type of a part (result/part.h) */
    bool keeps_cut;             /* truncated traces count beside whole ones */
    bool waits;                 /* the answer depends on the work of ranks that are not selected */
    bool files;  /* parts are made from files as they stand: merged traces are not divided, nothing
                    is numbered, and there is no scope */
    bool memory; /* files that record only memory are ranks, too (load.h) */
    bool shares; /* parts are large: ranks with equal parts share the same `data` */
    const struct rp_rank_bulk *bulk; /* NULL: parts are small */
    /* Fills part->data, which is cleared before. Runs on any thread. Events, arguments and links of
       the trace may be read; flows need rp_trace_require first. */
    enum rp_code (*rank)(const struct rp_loaded *loaded, const struct rp_scope *scope,
                         const struct rp_settings *settings, struct rp_rank_part *part,
                         struct rp_err *err);
    /* Called in the calling thread with the parts that --rank selects. */
    enum rp_code (*join)(const struct rp_ranks *ranks, const struct rp_settings *settings,
                         struct rp_result *result, struct rp_err *err);
    /* Does the same for a question about two runs. */
    enum rp_code (*join_two)(const struct rp_ranks runs[2], const struct rp_settings *settings,
                             struct rp_result *result, struct rp_err *err);
};

/* Whether there are only recordings of captures: times of the work beside them mean little. */
static inline bool rp_ranks_are_captures(const struct rp_ranks *ranks)
{
    return ranks->n && ranks->ncaptures == ranks->n;
}

enum rp_code rp_ask_ranks(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                          const struct rp_settings *settings, const struct rp_rank_row *row,
                          struct rp_result *result, struct rp_err *err);

/* Asks about two runs in one dataset, each with its own rank numbers: run_of[i] is 0 or 1 for
   source i. */
enum rp_code rp_ask_two_runs(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                             const uint8_t *run_of, const struct rp_settings *settings,
                             const struct rp_rank_row *row, struct rp_result *result,
                             struct rp_err *err);
