/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The question `simulate`: how well the model reproduces the recording, then what each what-if
 * would bring.
 *
 *     ask.c        the row: options, the part of a rank, the fields of the answer
 *     answer.c     runs the model: the baseline, the predictions with their intervals, the notes
 *     path.c       the critical path of a simulated run
 *     by_rank.c    what each rank does in a simulated step, and its slack
 *     incoming.c   the edges into each task, which path.c and by_rank.c walk backward
 *     trace.c      a simulated run as a trace
 *     predict.c    what-ifs of one rank for other questions (predict.h)
 *
 * The model itself is in model/ over engine/; what-ifs are in whatif/.
 */
#include "result/result.h"
#include "sim/model/expand.h"
#include "sim/model/simulated_steps.h"
#include "sim/whatif/whatifs.h"
#include "trace/trace.h"

struct rp_loaded;
struct rp_rank_part;

/* Keeps the parts that differ, in order; same_as gives for each rank the index of its part. */
size_t rp_sim_keep_different(const struct rp_sim_part **parts, size_t n, uint32_t *same_as);

#define RP_SIM_NODES_MOST 1000000
RP_LIMIT(RP_SIM_NODES_MOST, "nodes", "of larger runs equal ranks are simulated once, as is said");

/* If a run has more events in all ranks, only so many ranks are simulated (dataset/bulk.h). */
#define RP_SIM_EVENTS_MOST 6000000
RP_LIMIT(RP_SIM_EVENTS_MOST, "events", "200 bytes each; the answer says which ranks it is about");
#define RP_SIM_RANKS_MOST 64
RP_LIMIT(RP_SIM_RANKS_MOST, "ranks", "the answer says which it is about");

/* For struct rp_rank_bulk: whether a part has a model, and freeing it. */
bool rp_sim_part_has_bulk(const void *part);
void rp_sim_part_drop(void *part);

/* Makes the part of a rank, for `rank` of a question that simulates (dataset/ranks.h). ratios: with
   a cost model's answers about its kernels (kernel_ratios.h); model: its file, or NULL. */
enum rp_code rp_sim_rank_model(const struct rp_loaded *loaded, bool ratios, const char *model,
                               struct rp_rank_part *part, struct rp_err *err);

struct rp_sim_baseline {
    int64_t step_ns, simulated_step_ns; /* as measured by 'report' (facts/times/step_times.h) */
    int64_t measured_ns,
        simulated_ns; /* distance between the first device work of successive steps */
    int64_t unprofiled_ns;
    int64_t unprofiled_low_ns, unprofiled_high_ns;
    int64_t span_cost_ns; /* cost of recording a span of the host, on the first rank */
    double cost_factor;   /* times the estimate */
    double error_ratio;   /* error of the simulated step against the recorded one */
    double spread_ratio;  /* one step against the others; NaN with fewer than two distances */
    int64_t ranks, steps, tasks, edges;
};

struct rp_sim_prediction {
    const char *what_if;
    int64_t simulated_step_ns, simulated_ns, predicted_ns, low_ns, high_ns;
    double change_ratio; /* predicted against unprofiled: -0.1 is a tenth less */
    double change_low_ratio, change_high_ratio; /* its interval, which is narrower than that of the
                                                   step because unknowns often change both alike */
    int64_t tries; /* number of tries on this machine that the interval comes from; 0: none */
    const char *uncertain; /* the main reason for the interval of the step, or NULL */
    const char *bound_by;  /* what most of its critical path is */
    const char *assumes;
    const char *changed;    /* what it changed, if it selects by name; or NULL */
    const char *impossible; /* why it cannot be answered (then the numbers are absent), or NULL */
    const char *applies, *because; /* rp_whatif_stands */
};

/* A part of the critical path, per step. */
struct rp_sim_bound {
    const char *what;
    int64_t ns;
    double ratio; /* of the path */
};

/* What a rank does in a simulated step, on average. Waiting is for other ranks in collectives;
   slack is how late its own work can be, in the tightest step, without anything ending later. */
struct rp_sim_rank {
    int64_t rank, host_ns, compute_ns, memory_ns, comm_ns, waiting_ns, slack_ns;
};

/* A row of the list that '--what-if help' gives. */
struct rp_sim_known {
    const char *form, *summary, *assumes;
};

struct rp_sim_answer {
    size_t nknown;
    struct rp_sim_known *known;
    struct rp_sim_baseline baseline; /* all absent if only the list was requested */
    size_t npath, nby_rank, npredictions, nnotes;
    struct rp_sim_bound *path;
    struct rp_sim_rank *by_rank; /* of several ranks */
    struct rp_sim_prediction *predictions;
    const char **notes;
};

/* Lists the what-ifs. */
enum rp_code rp_sim_answer_help(struct rp_arena *arena, struct rp_sim_answer *out,
                                struct rp_err *err);

/* The options of a simulation. */
struct rp_sim_asked {
    const char *const *whatifs; /* texts as given */
    size_t nwhatifs;
    int64_t unprofiled_ns;   /* measured step time without the profiler; 0: not given */
    double cost_factor;      /* factor for the estimated cost of the profiler; 0: not given */
    struct rp_expand expand; /* 0: collectives stay whole */
    size_t given;            /* ranks of the run; 0: as many as parts */
    const uint32_t
        *same_as; /* NULL, or by given rank: the index of its part; equal ranks share one */
    const int32_t *numbers;  /* NULL, or by given rank: its number */
    const uint32_t *weights; /* NULL, or by part: the number of ranks that it represents */
    struct rp_trace *
        *trace; /* NULL, or where the simulated run is stored: that of the first what-if, or without
                   one, that of the recording; the caller frees it */
};

/* Copies into the arena. */
enum rp_code rp_sim_answer(const struct rp_sim_part *const *parts, size_t n,
                           const struct rp_sim_asked *asked, struct rp_arena *arena,
                           struct rp_sim_answer *out, struct rp_err *err);

/* ------------------------------------------------------------------ path.c */

/* Kinds of the step graph, then the gaps between tasks. */
enum { RP_SIM_PATH_GAPS = RP_SG_KINDS, RP_SIM_PATH_PARTS };

/* What limits the usual step: the chain of tasks, from the end of the step back to its begin, in
   which each started when its predecessor allowed it to. */
struct rp_sim_path {
    int64_t ns[RP_SIM_PATH_PARTS];
    int64_t total_ns; /* time of the step: the sum of the parts, except for rounding */
};

/* O(tasks + edges). */
enum rp_code rp_sim_path(const struct rp_sim_run *run, const struct rp_sim_result *result,
                         struct rp_sim_steps *steps, struct rp_sim_path *out, struct rp_err *err);
/* The part that takes the most; static text. */
const char *rp_sim_path_most(const struct rp_sim_path *path);
/* "kernels", "host" …; static text. */
const char *rp_sim_path_name(size_t part);

/* ------------------------------------------------------------------ by_rank.c */

/* Fills out->by_rank if the run has several ranks. O(tasks log tasks + edges). */
enum rp_code rp_sim_by_rank(const struct rp_sim_run *run, const struct rp_sim_result *result,
                            struct rp_arena *arena, struct rp_sim_answer *out, struct rp_err *err);

/* Finds how much later each task could end before the run, or its own step, ends later. slack_ns
   has one item for each task of the overlay; INT64_MAX: nothing depends on it. Devices keep their
   order. O(tasks log tasks + edges). */
enum rp_code rp_sim_slack(const struct rp_sim_run *run, const struct rp_sim_result *result,
                          int64_t *slack_ns, struct rp_err *err);

/* ------------------------------------------------------------------ incoming.c */

struct rp_sim_in_edge {
    uint32_t from;
    bool from_start; /* the lag counts from the start of `from` */
    int64_t lag_ns;
};

/* The edges of an overlay by the task to which they lead, without those that are cut. An edge of
   the graph has its number there; new ones come after these. */
struct rp_sim_incoming {
    const struct rp_overlay *o;
    RP_VEC(uint32_t) next;   /* by edge: the next one into the same task, or UINT32_MAX */
    RP_VEC(uint32_t) newest; /* by task: the newest edge, or UINT32_MAX */
};

/* O(log tasks), because the begin of an edge is searched. */
struct rp_sim_in_edge rp_sim_in_edge(const struct rp_sim_incoming *in, uint32_t edge);

/* Must be released also after a failure. */
enum rp_code rp_sim_incoming_init(struct rp_sim_incoming *out, const struct rp_overlay *o,
                                  struct rp_err *err);
void rp_sim_incoming_release(struct rp_sim_incoming *in);

/* ------------------------------------------------------------------ trace.c */

/*
 * Makes a trace of a simulated run, for viewers and for every other command: one process for each
 * rank, one track for each thread or stream, one event for each task with its simulated start and
 * end, and with its number and recorded time as arguments. What a what-if added is on separate
 * tracks.
 *
 * The steps of each rank are marked as PyTorch's profiler marks them, and launches have their
 * correlation ids: so a step measured from this trace is the simulated one. Several ranks are
 * recorded as in a merged trace (trace/merged.h), so that they are read as ranks. The caller frees
 * *out. O(n log n) in tasks.
 */
enum rp_code rp_sim_trace_new(const struct rp_sim_run *run, const struct rp_sim_result *result,
                              const struct rp_sim_steps *steps, struct rp_trace **out,
                              struct rp_err *err);

/* For qsort_r: orders tasks by their start, then by number; `starts` is int64_t by task. */
static inline int rp_sim_by_start(const void *pa, const void *pb, void *starts)
{
    const int64_t *start = starts;
    uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;

    if (start[a] != start[b])
        return start[a] < start[b] ? -1 : 1;
    return (a > b) - (a < b);
}
