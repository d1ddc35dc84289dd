/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds how much slower or faster a run is than another, and why. `rp_trace_diff_rank` makes a part
 * of each trace; `rp_trace_diff_join` pairs the ranks of the two runs, splits the change of the
 * step time into its parts, aligns the operators and says whether the change is more than noise
 * (docs/definitions.md).
 */
#include "base/decides.h"
#include "explain/diff/align.h"
#include "explain/diff/answer.h"
#include "explain/diff/gates.h"
#include "explain/report/part.h"

enum rp_diff_time { /* enum rp_diff_time: the parts of a step, which add up to it */
                    RP_DIFF_COMPUTE,
                    RP_DIFF_COMM,
                    RP_DIFF_MEMORY,
                    RP_DIFF_IDLE,
                    RP_DIFF_TIMES
};

/* The steps of a phase of a server. */
struct rp_diff_phase {
    int64_t steps, median_ns;
};

/* One rank of a run. */
#define RP_DIFF_MAINLY 0.25
RP_DECISION(
    RP_DIFF_MAINLY, "of the largest, or of the whole",
    "what is four times smaller is not what somebody should look at first",
    "explain/what_mainly_changed_has_an_edge, explain/what_the_host_mainly_ran_has_an_edge");

struct rp_trace_diff_part {
    bool on_device, limited, has_steps;
    size_t nsteps;     /* without steps it is 1: the span */
    int64_t *step_ns;  /* nsteps of them, in their order; in the arena */
    int64_t taken;     /* number of typical steps, whose call tree is compared */
    int64_t median_ns; /* the step time */
    int64_t time_ns[RP_DIFF_TIMES];
    struct rp_diff_phase phase[RP_STEP_PHASES];
    int64_t
        cause_ns[RP_GAP_CAUSES + 1]; /* idle time by cause; the last is outside of device work */
    const char *cause_host[RP_GAP_CAUSES]; /* by cause: what the host mainly ran, or NULL */
    double spread_ns[RP_DIFF_TIMES]; /* spread of each between the steps; below 0: not known */
    struct rp_speed_sums speed;      /* within window_ns, for `judged` steps */
    int64_t window_ns, memory_bytes; /* memory: the most that was in use; 0: not recorded */
    double judged, tokens;           /* tokens: counted by the server */
    struct rp_diff_tree tree;
    const char *device, *framework;
    const char *libraries; /* frameworks that the program used, with versions, or NULL */
    int32_t world_size;    /* 0: not known */
    struct rp_device_clock clock;
    bool modelled; /* sim is filled */
    struct rp_sim_part sim;
    bool has_stacks; /* only stacks is filled, because only that was asked for */
    struct rp_stacks_part stacks;
};

struct rp_trace_diff_run {
    const char *path, *device, *framework, *text; /* text is only for the text output */
    int64_t ranks, steps, typical_steps;
    int64_t step_ns, spread_ns; /* spread is absent if there is only one step */
    int64_t work_ns;            /* device time (or host time) in a step, in total */
    int64_t host_ns;            /* total time of the spans that launch it */
    int64_t
        unprofiled_ns; /* time of a step without the profiler; absent: not known, or as recorded */
    int64_t unprofiled_low_ns, unprofiled_high_ns; /* its interval */
    double clock_mhz;                              /* of its first device; NaN: not recorded */
};

struct rp_trace_diff_share {
    const char *part;
    const char *word; /* the word of `report` for it */
    int64_t base_ns, new_ns, delta_ns;
    double share;     /* share of the change of the step */
    const char *host; /* for idle: what the host mainly ran in the run that has more of it */
};

struct rp_trace_diff_phase {
    const char *phase;
    int64_t base_steps, new_steps, base_ns, new_ns, delta_ns; /* times of the median step */
};

struct rp_trace_diff_rank {
    int64_t rank, new_rank, base_ns, new_ns, delta_ns;
    int64_t compute_delta_ns, exposed_comm_delta_ns, exposed_memory_delta_ns, idle_delta_ns;
};

struct rp_trace_diff_rule {
    const char *rule;
    int64_t base_ns, new_ns;
    double share; /* of the time of both */
};

/* Device time (host time) of a call. */
struct rp_trace_diff_call {
    int64_t min_ns, p50_ns, max_ns;
};

struct rp_trace_diff_row {
    const char *what, *shape, *change, *rule, *place, *source;
    int64_t places, base_count, new_count, base_works, new_works;
    int64_t base_ns, new_ns, delta_ns, noise_ns;
    struct rp_trace_diff_call base_call, new_call;
    int64_t base_host_ns, new_host_ns, host_delta_ns; /* time of its calls on the host */
    double share;
    size_t nbase_kernels, nnew_kernels;
    const char **base_kernels, **new_kernels;
    const char *label, *kernels, *counts; /* text output only */
};

struct rp_trace_diff_root {
    const char *inputs, *verdict, *measure;
    bool changed, failed; /* failed: slower than allowed */
    bool gates_failed;    /* or failed because of a gate */
    bool comparable;      /* at least half of the time of each run has a counterpart */
    int64_t unlike_ns[2]; /* time in each run that is aligned by name, but hardly the same work
                             (rows.c) */
    int64_t delta_ns, noise_ns, threshold_ns;
    double delta_share, aligned_share;
    const char
        *unprofiled_verdict; /* verdict for the steps without the profiler; NULL: not known */
    int64_t unprofiled_delta_ns;
    double unprofiled_delta_share;
    bool contradicted;      /* that verdict differs from the recorded one */
    bool unprofiled_failed; /* whether that verdict is a failure */
    struct rp_trace_diff_run base, new_run;
    const char *clock_text; /* NULL: the clocks do not differ, or were not recorded */
    size_t nparts, nidle_causes, nranks, nrank_rows, ncoverage, nrows, nlook, nkernels, nnotes;
    struct rp_trace_diff_share *parts, *idle_causes;
    size_t nphases;
    struct rp_trace_diff_phase *phases;           /* of servers */
    struct rp_trace_diff_rank *ranks, *rank_rows; /* the ranks that changed most come first */
    struct rp_trace_diff_rule *coverage;
    int64_t row_count;
    struct rp_trace_diff_row *rows,
        *look;            /* look: the rows that changed, only for the text output */
    const char **kernels; /* only for the text output: other kernels of the rows shown */
    size_t ngates;
    struct rp_gate_row *gates;
    const char **notes;
    const char *verdict_text, *mainly_text, *profiler_text, *aligned_text; /* text output only */
    struct rp_trace_diff_row host; /* the row whose calls on the host changed most; its `what` is
                                      NULL if there is none */
};

/* Makes the part of a rank; with `simulate` also a model of it, if rp_report_model makes one. The
   caller owns its vectors, also after a failure (rp_part_adopt). */
extern const struct rp_type rp_trace_diff_part_type;
enum rp_code rp_trace_diff_rank(const struct rp_trace *trace, const struct rp_scope *scope,
                                const struct rp_report_hints *hints, bool simulate,
                                struct rp_arena *arena, struct rp_trace_diff_part *out,
                                struct rp_err *err);

struct rp_trace_diff_input {
    const struct rp_trace_diff_part *part;
    int32_t number;
};

struct rp_trace_diff_options {
    const char *paths[2];         /* names of the runs; copied */
    const char *graphs[2];        /* notes about captures of graphs; NULL: none */
    bool captures[2];             /* the run is a recording of captures */
    int64_t limit;                /* rows; 0: all */
    double fail_share;            /* limit as a share of the base's step; below 0: not given */
    int64_t fail_ns;              /* below 0: not given */
    const struct rp_gates *gates; /* NULL: none */
};

/* The ranks of each run are ordered by number. out->failed tells whether the new run is too slow.
   If that was asked but cannot be decided, because the runs are not of one kind, returns
   RP_FORMAT. */
enum rp_code rp_trace_diff_join(const struct rp_trace_diff_input *base, size_t nbase,
                                const struct rp_trace_diff_input *fresh, size_t nfresh,
                                const struct rp_trace_diff_options *options, struct rp_arena *arena,
                                struct rp_trace_diff_root *out, struct rp_err *err);

/* The share in the change of the step; NaN if that is 0 or noise. */
double rp_trace_diff_share_of(const struct rp_trace_diff_root *root, int64_t delta_ns);

/* A pair of ranks that are compared, each by its index. */
struct rp_diff_pair {
    size_t base, fresh; /* index in the lists */
};

/* Called after the verdict: computes the cost of recording in the two runs, if it matters, and
   whether the verdict would be another one without it. */
enum rp_code rp_trace_diff_profiler(const struct rp_trace_diff_input *base,
                                    const struct rp_trace_diff_input *fresh,
                                    const struct rp_diff_pair *pairs, size_t npairs,
                                    const struct rp_trace_diff_options *options,
                                    struct rp_arena *arena, struct rp_trace_diff_root *out,
                                    struct rp_err *err);

/* Turns the operators of all pairs of ranks into rows, the largest change first; fills rows and
   coverage. */
enum rp_code rp_trace_diff_rows(const struct rp_trace_diff_input *base,
                                const struct rp_trace_diff_input *fresh,
                                const struct rp_diff_pair *pairs, size_t npairs, int64_t limit,
                                struct rp_arena *arena, struct rp_trace_diff_root *out,
                                struct rp_err *err);
