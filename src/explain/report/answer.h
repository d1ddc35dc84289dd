/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The answer of `report`, for the code that uses it (src/view, src/query), and the parts of a rank
   that it shows unchanged. */
#include "explain/report/speed.h"
#include "explain/top/lines.h"
#include "facts/idle/gaps.h"
#include "facts/work/work.h"
#include "result/part.h"

struct rp_arena;
struct rp_finding;
struct rp_gate_row;
struct rp_idle_wait;
struct rp_report_view;
struct rp_stacks_row;
struct rp_trace;

/* ------------------------------------------------------------------ of a rank */

/* A step of a rank (docs/definitions.md, "Step time"); b.window_ns is its duration. `rank` is
   filled in the answer. */
#define RP_REPORT_STEP(M, s)                                                                      \
    M(s, PLAIN, int64_t, rank)                                                                    \
    M(s, PLAIN, int64_t, number)                                                                  \
    M(s, TEXT, name)                                                                              \
    M(s, TEXT, phase) /* phase of a server: prefill, decode, mixed; NULL: not known */            \
    M(s, PLAIN, int64_t,                                                                          \
      requests) /* counted by a server; RP_ABSENT_I64: not known, also for the next one */        \
    M(s, PLAIN, int64_t, tokens)                                                                  \
    M(s, PLAIN, struct rp_breakdown, b)                                                           \
    M(s, PLAIN, int64_t, host_ns)  /* duration of its mark */                                     \
    M(s, PLAIN, int64_t, late_ns)  /* idle time in the step with the cause not_launched */        \
    M(s, PLAIN, int64_t, work_ns)  /* ... host_work */                                            \
    M(s, PLAIN, int64_t, drain_ns) /* ... sync_drain */                                           \
    M(s, PLAIN, int64_t,                                                                          \
      earlier_ns) /* for the first step: time busy with what was launched before it */            \
    M(s, PLAIN, int64_t, unrecorded_ns) /* device_wait before the first work of a stream */       \
    M(s, PLAIN, bool, warm_up) /* a first step that is far longer than usual and is not judged */ \
    M(s, PLAIN, bool, no_detail) /* only its mark was recorded, so it is not judged */            \
    M(s, PLAIN, int64_t,                                                                          \
      unserved_ns)     /* of an untypical step: without a processor, more than usual */           \
    M(s, TEXT, longer) /* for an untypical step: what its thread ran longer; or NULL */
RP_PART_STRUCT(rp_report_step, RP_REPORT_STEP);

/* What takes the time that is judged: operators; work without an operator, by its own name; without
   device work, what runs on the host. `share` is filled in the answer. */
#define RP_REPORT_HOT(M, s)                                                                \
    M(s, TEXT, name)                                                                       \
    M(s, TEXT, kind)            /* what the name is: "op", "compute", "annotation", … */ \
    M(s, PLAIN, int64_t, ns)    /* of its own */                                           \
    M(s, PLAIN, bool, modelled) /* a cost model knows its FLOPs and bytes */               \
    M(s, PLAIN, double, share)
RP_PART_STRUCT(rp_report_hot, RP_REPORT_HOT);

/* Why no operator runs, if a trace has no device work. X(NAME, part of the report, meaning) */
#define RP_PAUSE_MAP(X)                                                       \
    X(RECORDER, "no operator: recording paused", "'record stop' and 'start'") \
    X(DATA, "no operator: input data", "the data loader runs")                \
    X(WAIT, "waiting", "in a call that blocks: a lock, input, sleep")         \
    X(PROFILER, "no operator: profiler", "the profiler writes its buffers")   \
    X(PYTHON, "no operator: Python", "Python code between the operators")     \
    X(SPAN, "no operator: other spans", "an annotation or a runtime call")    \
    X(OUTSIDE, "no operator: between steps", "nothing recorded")              \
    X(NOTHING, "no operator: not recorded", "waiting, or untraced code")

enum rp_pause {
#define RP_PAUSE_ENUM(name, text, doc) RP_PAUSE_##name,
    RP_PAUSE_MAP(RP_PAUSE_ENUM)
#undef RP_PAUSE_ENUM
        RP_PAUSES
};
extern const char *const rp_pause_names[RP_PAUSES], *const rp_pause_docs[RP_PAUSES];

/* How long operators wait for a thread once their inputs exist, if the trace names the inputs
   (TensorFlow's Timeline: arguments "name" and "input0", "input1", ...). */
struct rp_report_latency {
    int64_t ops; /* number of operators whose inputs were recorded; 0: nothing is known */
    int64_t p50_ns, p90_ns, max_ns;
    const char *slowest; /* the operator that waited longest */
};
extern const struct rp_type rp_report_latency_type;

/* A device of a rank. */
struct rp_report_device_row {
    int64_t rank, device; /* device is RP_ABSENT_I64 if not known */
    const char *name;
    int64_t window_ns, busy_ns, compute_ns, comm_ns, exposed_comm_ns, memory_ns, idle_ns;
    double idle_share;
    bool is_main; /* the numbers of the rank are those of this device */
};
extern const struct rp_type rp_report_device_row_type;

/* Lists the pauses of a rank without device work, as its lane shows them: `cause` is enum
   rp_pause. */
enum rp_code rp_report_list_pauses(const struct rp_trace *trace, struct rp_arena *arena,
                                   rp_gap_vec *out, struct rp_err *err);

/* ------------------------------------------------------------------ the answer */

struct rp_report_rank {
    const char *path;
    int64_t rank, window_ns, busy_ns, compute_ns, comm_ns, exposed_comm_ns, memory_ns, idle_ns;
    int64_t wait_ns, transfer_ns, last_count, margin_ns, step_ns, span_ns;
    int64_t late_ns, stall_count, stall_ns;
    double idle_share, op_share;
};

/* The steps of a server, grouped by what they did. */
struct rp_report_phase {
    const char *phase; /* NULL: not known */
    const char *label; /* text output only */
    int64_t steps, median_ns, total_ns;
    int64_t unrecorded_ns; /* part of it spent waiting for work from before the recording; absent:
                              none */
    double share;          /* share in the time of all steps */
    int64_t requests, tokens; /* sums over its steps; RP_ABSENT_I64: not known, also below */
    int64_t request_ns, token_ns;
};
extern const struct rp_type rp_report_phase_type;

/* Steps with the same work, or what lies between steps. */
struct rp_report_kind {
    const char *kind, *why; /* why is NULL for the usual kind */
    int64_t steps, median_ns, total_ns;
    double share; /* share in the time of all kinds */
};
extern const struct rp_type rp_report_kind_type;

/* Times of the requests of a program that generates. */
enum rp_request_time {
    RP_REQUEST_QUEUE,
    RP_REQUEST_FIRST, /* to the first token */
    RP_REQUEST_BETWEEN,
    RP_REQUEST_WHOLE,
    RP_REQUEST_TIMES
};
struct rp_report_request {
    const char *what;  /* "first_token" */
    const char *label; /* text output only */
    int64_t count, p50_ns, p90_ns, p99_ns, max_ns;
};
extern const struct rp_type rp_report_request_type;

/* Ranks of one host, or with the same behaviour. */
struct rp_report_group {
    const char *host;  /* NULL if they are grouped by behaviour */
    const char *which; /* "0-7" */
    int64_t like_rank, rank_count;
    int64_t compute_ns, comm_ns, idle_ns, wait_ns; /* means */
    int64_t last_count, margin_ns;                 /* sums; absent, like wait_ns, if not known */
};

/* Device time of a category of work, all ranks together. */
struct rp_report_category {
    const char *category;
    int64_t device_ns;
    double share; /* of the device time */
};

struct rp_report_share { /* rp_report_share: a part of the time of all ranks */
    const char *part, *note;
    int64_t total_ns, mean_ns;
    double share;
};

/* A change to try, with the prediction of 'reprise simulate' if there is one. */
struct rp_report_try {
    const char *text, *what_if; /* what_if: or NULL */
    int64_t step_ns,
        predicted_ns;    /* time of a step without the profiler, and with the change; or absent */
    double change_ratio; /* NaN: not predicted */
    bool look;           /* it says where to look further */
    bool refused;        /* its what-if does not apply */
    const char *topic;   /* the what-if of its row, or NULL; the same advice elsewhere */
    const char *beyond;  /* a what-if that gains far more than the finding costs, so no number is
                            given here; or NULL */
};

/* Where a finding occurs, for a timeline; not shown. */
#define RP_WHERE_NAMES 3
struct rp_report_where {
    uint32_t causes;                   /* in gaps of these causes: bits 1 << enum rp_gap_cause */
    bool late, exposed;                /* in collectives that a rank delayed; in all of them */
    const char *names[RP_WHERE_NAMES]; /* in events with these names, whole or short; or NULL */
    int64_t rank;                      /* rank of the names and of the step */
    int64_t step;                      /* number of the step; RP_ABSENT_I64: none */
};

/* The ranks that a finding is about; kind is NULL if it is about all of them, or not known. */
struct rp_report_who {
    const char *kind; /* rank, host, stage, link, nic */
    size_t nranks, nhosts;
    int64_t *ranks;
    const char **hosts;
};

struct rp_report_finding {
    const struct rp_finding *row; /* its row in explain/findings; not shown */
    const char *id, *title, *hint;
    struct rp_report_where where;
    int64_t lost_ns;
    int64_t compute_ns; /* the part of it inside of what counts as compute */
    double share;       /* of the span */
    bool at_most;       /* it overlaps with others, or is an upper bound */
    bool settled;       /* the cost does not come from a what-if */
    struct rp_report_who who;
    size_t nevidence, ntries;
    const char **evidence;
    struct rp_report_try *tries;
};

/* A change that can be predicted and is worth making (sim/opportunities.h). */
struct rp_report_opportunity {
    const char *what_if, *finding; /* finding: its id, or NULL */
    int64_t gain_ns, gain_low_ns, gain_high_ns, step_ns;
    int64_t effort, tries;         /* tries: struct rp_gain */
    const char *apply, *assumes;   /* apply: or NULL */
    const char *applies, *because; /* "yes", "part" of the step, or "no" (then without numbers);
                                      NULL: it always applies */
    bool beyond;                   /* it gains more than the finding costs */
};

/* The kind of program that was recorded: texts of struct rp_workload. */
struct rp_report_workload {
    const char *framework, *vendor, *mode, *parallel, *transport;
    bool compiled, graphs;
};

/* A duration around which host stalls cluster. */
struct rp_report_mode {
    int64_t at_ns, count;
};

/* A finding on the screen. */
struct rp_report_look {
    const char *heading, *why, *evidence, *first, *second,
        *third; /* the last three are what to try */
};

/* Where the threads of the host were, by samples of their stacks; sums over threads and ranks. */
struct rp_report_sampled {
    int64_t samples, ran_ns, waited_ns,
        wants_gil_ns; /* times are absent if samples are only counted */
    size_t nlines;
    struct rp_stacks_row *lines; /* lines with most time of their own on a processor */
};
extern const struct rp_type rp_report_sampled_type;

struct rp_report_root {
    size_t ndevices, ndevice_rows;
    struct rp_report_device_row *devices, *device_rows; /* rows: shown if a rank has several */
    const char *steps_text, *step_source, *step_mark;
    double step_share; /* share of the device time that is in steps */
    const char *run_text, *step_text, *lost_text, *pace_text, *stall_text; /* text output only */
    const char *profiler_text, *work_text, *speed_text, *sampled_text, *hot_text, *lines_text,
        *clock_text;
    struct rp_report_speed speed;
    const char *help_text, *help2_text, *help3_text;
    bool predictable;                            /* whether `simulate` can predict it; not shown */
    int64_t unprofiled_ns;                       /* absent: not known */
    int64_t captured_launches;                   /* in a recording of captures */
    int64_t exposed_node_ns, exposed_between_ns; /* RP_ABSENT_I64 if not known */
    int64_t window_ns, step_ns, lost_ns, needed_ns, span_ns, collective_span_ns, stall_count,
        stall_ns;
    size_t nstall_modes;
    struct rp_report_mode *stall_modes;
    struct rp_report_latency latency;   /* from the first rank that knows it */
    struct rp_report_workload workload; /* from the rank at the end of the chain */
    size_t nranks, nrank_rows, nsteps, nparts, nfindings, nlook, npitfalls, nnotes;
    struct rp_report_rank *ranks, *rank_rows;
    size_t ngroups, nhost_rows, nalike_rows;
    struct rp_report_group *groups, *host_rows,
        *alike_rows; /* none if there are few ranks, or all differ */
    struct rp_report_step *steps;
    size_t nkinds;
    struct rp_report_kind *kinds; /* from the first rank that has several */
    size_t nrequests;
    struct rp_report_request *requests; /* from the first rank that has any */
    size_t nphases;
    struct rp_report_phase *phases; /* none if no step has a phase */
    struct rp_report_share *parts;
    size_t nstart_up;
    struct rp_report_share *start_up; /* parts of the time before the first step */
    size_t ncategories;
    struct rp_report_category *categories;
    size_t nhot;
    struct rp_report_hot *hot;
    size_t nlines;
    struct rp_source_line_row *lines; /* lines of compiled programs, the largest first */
    double lines_share;               /* share of the device time that has a line; NAN: not known */
    struct rp_report_finding *findings;
    size_t ngates;
    struct rp_gate_row *gates;        /* of '--gate' */
    size_t nopportunities, napplying; /* napplying: not shown */
    struct rp_report_opportunity *opportunities;
    struct rp_report_look *look;
    struct rp_report_sampled sampled; /* samples of the host, without device work */
    size_t nsampled_rows, nsampled_counts,
        nsampled_works; /* on the screen, one of the three is shown */
    struct rp_stacks_row *sampled_rows, *sampled_counts, *sampled_works;
    size_t nwaits, nwait_rows, nhost_rank_rows;
    struct rp_idle_wait *waits, *wait_rows; /* rows: on the screen */
    struct rp_report_rank *host_rank_rows;  /* on the screen, without a device */
    const char **pitfalls, **notes;
    struct rp_report_view *view; /* NULL unless a page or a picture is asked for */
};

extern const struct rp_type rp_report_type;
