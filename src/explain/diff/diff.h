/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How much slower or faster a run is than another, and why. `rp_trace_diff_rank` makes a part of
 * each trace; `rp_trace_diff_join` pairs the ranks of the two runs, splits the change of the step
 * time into its parts, aligns the operators and says whether it is more than noise
 * (docs/definitions.md).
 */
#include "base/decides.h"
#include "explain/diff/align.h"
#include "explain/diff/answer.h"
#include "explain/diff/gates.h"
#include "explain/report/part.h"

enum rp_diff_time { /* the parts of a step: they add up to it */
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
    size_t nsteps;     /* 1 without steps: the span */
    int64_t *step_ns;  /* nsteps of them, in their order; in the arena */
    int64_t taken;     /* typical ones, whose call tree is compared */
    int64_t median_ns; /* the step time */
    int64_t time_ns[RP_DIFF_TIMES];
    struct rp_diff_phase phase[RP_STEP_PHASES];
    int64_t cause_ns[RP_GAP_CAUSES + 1];   /* of idle; the last: outside device work */
    const char *cause_host[RP_GAP_CAUSES]; /* what the host mainly ran, or NULL */
    double spread_ns[RP_DIFF_TIMES];       /* of each between the steps; below 0: not known */
    struct rp_speed_sums speed;            /* in window_ns, of `judged` steps */
    int64_t window_ns, memory_bytes;       /* memory: the most in use; 0: not recorded */
    double judged, tokens;                 /* tokens: that a server counted */
    struct rp_diff_tree tree;
    const char *device, *framework;
    const char *libraries; /* frameworks that the program used, with versions, or NULL */
    int32_t world_size;    /* 0: not known */
    bool modelled;         /* sim is filled */
    struct rp_sim_part sim;
    bool has_stacks; /* stacks is filled, and nothing else where it was asked for */
    struct rp_stacks_part stacks;
};

struct rp_trace_diff_run {
    const char *path, *device, *framework, *text; /* text: text output only */
    int64_t ranks, steps, typical_steps;
    int64_t step_ns, spread_ns; /* spread: absent where there is only one step */
    int64_t work_ns;            /* device time (host time) of a step, added up */
    int64_t host_ns;            /* of the spans that launch it */
    int64_t unprofiled_ns;      /* a step without the profiler; absent: not known, or as recorded */
    int64_t unprofiled_low_ns, unprofiled_high_ns; /* its interval */
};

struct rp_trace_diff_share {
    const char *part;
    const char *word; /* of `report` for it */
    int64_t base_ns, new_ns, delta_ns;
    double share;     /* of the change of the step */
    const char *host; /* of idle: what the host ran mainly, in the run that has more of it */
};

struct rp_trace_diff_phase {
    const char *phase;
    int64_t base_steps, new_steps, base_ns, new_ns, delta_ns; /* times: of the median step */
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
    int64_t base_host_ns, new_host_ns, host_delta_ns; /* of its calls on the host */
    double share;
    size_t nbase_kernels, nnew_kernels;
    const char **base_kernels, **new_kernels;
    const char *label, *kernels, *counts; /* text output only */
};

struct rp_trace_diff_root {
    const char *inputs, *verdict, *measure;
    bool changed, failed; /* failed: slower than was allowed */
    bool gates_failed;    /* or a gate is */
    bool comparable;      /* at least half of the time of each run has a counterpart */
    int64_t unlike_ns[2]; /* of the runs: aligned by name, but hardly the same work (rows.c) */
    int64_t delta_ns, noise_ns, threshold_ns;
    double delta_share, aligned_share;
    const char *unprofiled_verdict; /* of the steps without the profiler; NULL: not known */
    int64_t unprofiled_delta_ns;
    double unprofiled_delta_share;
    bool contradicted;      /* that verdict is another one */
    bool unprofiled_failed; /* failed, of the steps without the profiler */
    struct rp_trace_diff_run base, new_run;
    size_t nparts, nidle_causes, nranks, nrank_rows, ncoverage, nrows, nlook, nkernels, nnotes;
    struct rp_trace_diff_share *parts, *idle_causes;
    size_t nphases;
    struct rp_trace_diff_phase *phases;           /* of servers */
    struct rp_trace_diff_rank *ranks, *rank_rows; /* those that changed most first */
    struct rp_trace_diff_rule *coverage;
    int64_t row_count;
    struct rp_trace_diff_row *rows, *look; /* look: text output only, those that changed */
    const char **kernels;                  /* text output only: other kernels of the rows shown */
    size_t ngates;
    struct rp_gate_row *gates;
    const char **notes;
    const char *verdict_text, *mainly_text, *profiler_text, *aligned_text; /* text output only */
    struct rp_trace_diff_row host; /* whose calls on the host changed most; what is NULL: none */
};

/* The part of a rank, with a model of it if `simulate` and where rp_report_model makes one. Its
   vectors are the caller's, also after a failure (rp_part_adopt). */
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
    const char *paths[2];         /* what the runs are called; copied */
    const char *graphs[2];        /* what to say about captures of graphs; NULL: nothing */
    bool captures[2];             /* the run is a recording of captures */
    int64_t limit;                /* rows; 0: all */
    double fail_share;            /* share of the base's step; below 0: not given */
    int64_t fail_ns;              /* below 0: not given */
    const struct rp_gates *gates; /* NULL: none */
};

/* Ranks of each run by number. out->failed tells whether the new run is too slow; where that was
   asked and cannot be decided, because the runs are not of one kind, it is RP_FORMAT. */
enum rp_code rp_trace_diff_join(const struct rp_trace_diff_input *base, size_t nbase,
                                const struct rp_trace_diff_input *fresh, size_t nfresh,
                                const struct rp_trace_diff_options *options, struct rp_arena *arena,
                                struct rp_trace_diff_root *out, struct rp_err *err);

/* Of the change of the step; NaN where that is 0 or noise. */
double rp_trace_diff_share_of(const struct rp_trace_diff_root *root, int64_t delta_ns);

/* Which ranks are compared; both lists by number. */
struct rp_diff_pair {
    size_t base, fresh; /* into the lists */
};

/* What recording cost the two runs, where it matters, and whether the verdict is another one
   without it; after the verdict. */
enum rp_code rp_trace_diff_profiler(const struct rp_trace_diff_input *base,
                                    const struct rp_trace_diff_input *fresh,
                                    const struct rp_diff_pair *pairs, size_t npairs,
                                    const struct rp_trace_diff_options *options,
                                    struct rp_arena *arena, struct rp_trace_diff_root *out,
                                    struct rp_err *err);

/* The operators of all pairs of ranks as rows, the largest change first; fills rows, coverage. */
enum rp_code rp_trace_diff_rows(const struct rp_trace_diff_input *base,
                                const struct rp_trace_diff_input *fresh,
                                const struct rp_diff_pair *pairs, size_t npairs, int64_t limit,
                                struct rp_arena *arena, struct rp_trace_diff_root *out,
                                struct rp_err *err);
