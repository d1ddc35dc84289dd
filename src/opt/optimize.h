/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The question `optimize`: which changes make a step shortest, and how to make them.
 *
 *     ask.c        the row: options, the fields of the answer
 *     limits.c     families of moves, budget, interruption
 *     workspace.c  keeping a search, and going on with it (workspace.h)
 *     buckets.c    the search for the buckets of gradients of a recorded run
 *     bucket_model.c what such a run takes with other buckets, without a simulation
 *     whatifs.c    which what-ifs are best together (each alone: sim/opportunities.h)
 *     groups.c     the search for groups of tensors (groups.h)
 *     job_model.c  what a step of a job takes with other groups of tensors
 *     job_ops.c    operators of a job that are fused
 *     job_answer.c the plan of a job
 *     details.c    which kernels and operators its moves concern
 *     memory.c     the peak of memory, and what waits for the backward pass then
 *     answer.c     the plan of a run: moves in order, their gains and intervals
 *     export/      plans in the terms of frameworks
 */
#include "base/decides.h"
#include "opt/export/exports.h"
#include "opt/plan.h"
#include "opt/workspace.h"
#include "result/result.h"
#include "sim/opportunities.h"
#include "sim/whatif/whatifs.h"

#define RP_OPT_CERTAIN_TASKS 3000000
RP_LIMIT(RP_OPT_CERTAIN_TASKS, "tasks for each second of the budget",
         "are simulated whatever the clock says: a loaded machine gives the plan of an idle one");

#define RP_OPT_LEAST_GAIN 0.002
RP_DECISION(
    RP_OPT_LEAST_GAIN, "of a step",
    "beside the first change, which RP_OPPORTUNITY_LEAST judges, less is not worth a line of a "
    "plan: two steps are the same",
    "opt/a_change_must_be_worth_it");

/* ------------------------------------------------------------------ limits.c */

enum rp_opt_stop { RP_OPT_CONVERGED, RP_OPT_OUT_OF_TIME, RP_OPT_INTERRUPTED };

struct rp_opt_part; /* memory.h */

struct rp_opt_limits {
    unsigned families; /* bits of enum rp_opt_family */
    bool named; /* the user named them: moves whose gain is not certain are in the plan, too */
    int64_t budget_ns;
    int64_t until_ns; /* on the monotonic clock; INT64_MAX for no limit */
    uint64_t seed;
    int64_t memory_bytes; /* budget; 0: none */
    struct rp_ctx *ctx;   /* it is told about progress and may ask to stop; or NULL */
    enum rp_opt_stop stopped;
    struct rp_opt_workspace *workspace; /* where better plans are noted and resumed; or NULL */
    const struct rp_worlds *run; /* the search continues, whatever the time, until it has … */
    size_t certain;              /* … simulated this many plans */
};

extern const char *const rp_opt_family_names[RP_OPT_FAMILIES];

/* Parses "tensor,graphs" or "^memory": the first form names all families, the second one those that
   are left out. */
enum rp_code rp_opt_families(const char *text, unsigned *out, struct rp_err *err);
/* Returns the family with a name, or RP_OPT_FAMILIES. */
enum rp_opt_family rp_opt_family_of(const char *name);

/* Whether to end the search with the plan so far; limits->stopped tells why. Only for the thread
   that called the library. */
bool rp_opt_over(struct rp_opt_limits *limits);
/* Does the same in any thread, without asking for an interrupt. */
bool rp_opt_out_of_time(struct rp_opt_limits *limits);

/* ------------------------------------------------------------------ buckets.c */

/* How DistributedDataParallel should group gradients. */
struct rp_opt_buckets {
    const char *impossible; /* why they cannot be searched, or NULL */
    const char *text;       /* the what-if of the best size */
    double cap_mb;          /* that size; NaN: none */
    bool better;            /* better than the recorded buckets */
    const char *doubt;      /* ... but why the gain is not certain; NULL if it is */
    int64_t alone_ns;       /* a step with it */
    const char *list; /* the what-if of buckets of different sizes if these are better, or NULL */
    uint8_t *ends;    /* if so: by gradient of a step, 1 if a bucket ends there */
    size_t tried;     /* plans, besides those that were simulated */
};

enum rp_code rp_opt_search_buckets(struct rp_worlds *x, struct rp_opt_limits *limits,
                                   struct rp_arena *arena, struct rp_opt_buckets *out,
                                   struct rp_err *err);
/* Puts gradients, and the recorded and the best buckets, into the plan. */
enum rp_code rp_opt_list_buckets(const struct rp_worlds *x, const struct rp_opt_buckets *buckets,
                                 struct rp_arena *arena, struct rp_opt_plan *plan,
                                 struct rp_err *err);

/* ------------------------------------------------------------------ whatifs.c */

/* Tries alone each of the changes from which a plan is made. */
enum rp_code rp_opt_try_whatifs(struct rp_worlds *x, struct rp_opt_limits *limits,
                                struct rp_arena *arena, struct rp_changes *out, struct rp_err *err);
/* Chooses changes that are best together and with the what-ifs `before` ("" for none); `first` (may
   be NULL) is among them. */
enum rp_code rp_opt_combine_whatifs(struct rp_worlds *x, struct rp_opt_limits *limits,
                                    const char *before, const struct rp_opportunity *first,
                                    struct rp_arena *arena, struct rp_changes *tries,
                                    struct rp_err *err);

/* ------------------------------------------------------------------ details.c */

/* Lists the chains of element-wise kernels, those with the largest gain first. */
enum rp_code rp_opt_list_clusters(const struct rp_worlds *x, struct rp_arena *arena,
                                  struct rp_opt_plan *plan, struct rp_err *err);
/* Lists the operators that a what-if makes shorter, those with the largest gain first. */
enum rp_code rp_opt_list_casts(struct rp_worlds *x, const char *text, struct rp_arena *arena,
                               struct rp_opt_plan *plan, struct rp_err *err);

/* ------------------------------------------------------------------ answer.c */

struct rp_opt_move_row {
    const char *move, *family, *what, *apply, *what_if, *assumes;
    int64_t gain_ns, gain_low_ns, gain_high_ns, step_ns;
    bool sure;
    int64_t tries;
};

struct rp_opt_tried_row { /* a change that gains nothing or is impossible */
    const char *move, *family, *why;
    int64_t gain_ns;
};

struct rp_opt_answer {
    int64_t recorded_ns, baseline_ns, best_ns, best_low_ns, best_high_ns;
    int64_t checked_ns; /* the result of simulating the plan once more from nothing */
    double gain_ratio;
    int64_t peak_bytes, peak_then_bytes;
    const char *summary;
    size_t nmoves, ntried, nnotes, nhow;
    struct rp_opt_move_row *moves;
    const char **how; /* for the screen: how to make each move */
    struct rp_opt_tried_row *tried;
    int64_t evaluated; /* plans that were simulated or estimated */
    const char *stopped;
    const char *ended; /* for the screen: why the search ended if it did not converge, or NULL */
    struct rp_opt_exports exports;
    size_t nexported;
    struct rp_opt_file *exported; /* the files of the plan, for the screen */
    const char **notes;
    struct rp_opt_parts *parts; /* not shown */
};

/* What is asked, besides the limits. */
struct rp_opt_parts {
    size_t n;
    const struct rp_sim_part **parts;
    const struct rp_opt_part
        *largest;              /* the rank with the largest peak of memory; NULL if not known */
    const uint32_t *weights;   /* by part: how many equal ranks it represents; may be NULL */
    size_t given;              /* ranks */
    bool capture;              /* launches were captured, not executed */
    const char *no_tensors;    /* why groups of tensors cannot be searched; NULL if they can */
    enum rp_opt_source source; /* 0 if the names in the recording decide */
};

enum rp_code rp_opt_answer_run(const struct rp_opt_parts *parts, struct rp_opt_limits *limits,
                               struct rp_arena *arena, struct rp_opt_answer *out,
                               struct rp_err *err);

struct rp_job;
/* Files of a job's operators: which may be fused, and which are (clusters); or NULL. */
struct rp_opt_job_asked {
    const char *candidates, *from;
};
/* Does the same for a job whose tensors were loaded (job_answer.c). */
enum rp_code rp_opt_answer_job(const struct rp_job *job, const struct rp_opt_job_asked *asked,
                               struct rp_opt_limits *limits, struct rp_arena *arena,
                               struct rp_opt_answer *out, struct rp_err *err);

/* Adds the what-ifs that are not in the plan, with reasons; step_ns is the time without a
   change. */
enum rp_code rp_opt_list_tried(const struct rp_changes *tries, int64_t step_ns, bool has_plan,
                               struct rp_arena *arena, struct rp_opt_answer *out,
                               struct rp_err *err);

/* Returns an enum rp_framework; for a dPRO directory that of the communication. */
unsigned rp_opt_framework(enum rp_opt_source source);

/* Returns why the search ended, for JSON. */
const char *rp_opt_stop_name(enum rp_opt_stop stopped);

/* Describes the plan in a sentence, from the moves of the answer. */
void rp_opt_summarise(struct rp_arena *arena, struct rp_opt_answer *out);

/* Fills the fields of the answer that come from a plan. */
enum rp_code rp_opt_answer_plan(const struct rp_opt_plan *plan, struct rp_arena *arena,
                                struct rp_opt_answer *out, struct rp_err *err);
