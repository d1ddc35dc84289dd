/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_REPORT_REPORT_H
#define RP_EXPLAIN_REPORT_REPORT_H
/*
 * `report`, the one screen: where the time of a run goes, what was lost, to which cause, and what
 * to try. part.c makes the part of a rank, with the help of device.c, pauses.c, latency.c and
 * pitfalls.c. report.c has the row of the question and joins the parts (join.h): chain.c finds
 * which rank sets the pace, findings.c what was lost on the way and what it costs, stalls.c counts
 * host stalls, notes.c writes the notes. fields.c describes the answer and the parts.
 */
#include "dataset/ranks.h"
#include "explain/comm/late.h"
#include "explain/comm/topology.h"
#include "explain/idle/idle.h"
#include "explain/idle/waits.h"
#include "explain/report/speed.h"
#include "explain/report/view.h"
#include "explain/top/categories.h"
#include "explain/top/stacks.h"
#include "facts/host/calls.h"
#include "facts/host/outside.h"
#include "facts/ranks/collectives.h"
#include "facts/times/trace_life.h"
#include "facts/work/attribution.h"
#include "facts/work/workload.h"
#include "sim/model/part.h"

#include <string.h>

/* ------------------------------------------------------------------ the part of a rank */

/* A step of a rank (docs/definitions.md, "Step time"). */
struct rp_report_step {
    int64_t rank, number;
    const char *name;
    const char *phase;        /* of a server: prefill, decode, mixed; NULL: not known */
    int64_t requests, tokens; /* of a server; RP_ABSENT_I64: not known */
    struct rp_breakdown b;    /* window_ns is its duration */
    int64_t host_ns;          /* duration of its mark */
    /* idle in it with the cause not_launched; host_work; sync_drain */
    int64_t late_ns, work_ns, drain_ns;
    int64_t earlier_ns;    /* of the first: busy with work that was launched before it */
    int64_t unrecorded_ns; /* device_wait before the first recorded work of a stream */
    bool warm_up;          /* one of the first, far longer than usual: is not judged */
    bool no_detail;        /* only its mark was recorded: is not judged */
};

/* Small sums that findings are made of. */
struct rp_report_sums {
    int64_t kernels, tiny_kernels, tiny_gap_ns; /* kernels under 10 us, and gaps before them */
    int64_t previous_ns;                        /* compute of the step before the first one */
    int64_t first_wait_ns;                      /* device_wait before the first work of a stream */
    int64_t graph_wait_ns;                      /* device_wait between the items of one launch */
    int64_t overhead_ns;                        /* of the profiler */
    int64_t host_ops, host_op_ns;               /* operators and their time */
    int64_t open_collectives;                   /* of the host, that did not end */
    int64_t timeline_ranks;                     /* in one file of a pipeline's timeline, or 0 */
    int64_t copies, copy_name_ns;               /* copies and memsets, and those of one name */
    const char *copy_name;                      /* the name with most time, or NULL */
};

/* What is wrong on the device itself (docs/definitions.md, "Findings"). */
struct rp_report_device {
    /* kernels that leave multiprocessors without a block */
    int64_t thin_count, thin_ns, thin_lost_ns; /* their time; at most lost */
    const char *thin_name;                     /* the one that loses most */
    int64_t thin_name_lost_ns;
    /* the same kernels, later: slower */
    int64_t slowed_ns; /* what they take more than in the first third */
    double slowed_ratio;
    int64_t slowed_kinds, kinds; /* (name, grid) pairs that got slower; all of them */
    /* work that starts before its launch */
    int64_t launched, early_count, early_most_ns;
    /* memory, of the device with most of it; 0: not recorded */
    int64_t reserved_bytes, allocated_bytes, device_bytes;
};

/* Why no operator runs, where a trace has no device work. X(NAME, part of the report, meaning) */
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

struct rp_report_pauses {
    int64_t ns[RP_PAUSES], count[RP_PAUSES], longest_ns[RP_PAUSES];
    const char *mainly[RP_PAUSES]; /* the span with most of it, or NULL */
    int64_t mainly_ns[RP_PAUSES];
};

/* How long operators wait for a thread once their inputs are there, where the trace names the
   inputs (TensorFlow's Timeline: arguments "name" and "input0", "input1", ...). */
struct rp_report_latency {
    int64_t ops; /* operators whose inputs were recorded; 0: nothing is known */
    int64_t p50_ns, p90_ns, max_ns;
    const char *slowest; /* the operator that waited longest */
};

/* A device of a rank. */
struct rp_report_device_row {
    int64_t rank, device; /* device: RP_ABSENT_I64: not known */
    const char *name;
    int64_t window_ns, busy_ns, compute_ns, comm_ns, exposed_comm_ns, memory_ns, idle_ns;
    double idle_share;
    bool is_main; /* the numbers of the rank are those of this device */
};
extern const struct rp_type rp_report_device_row_type;

/* Why an operator is slow, as far as its shapes and its kernel say. */
enum rp_placed_kind {
    RP_PLACED_OTHER,
    RP_PLACED_ALIGNMENT,   /* a size that is no multiple of what a vector holds */
    RP_PLACED_SMALL,       /* too small for a tile */
    RP_PLACED_PRECISION,   /* float32 outside of the matrix units */
    RP_PLACED_PRODUCT,     /* a smaller product of the same format runs faster */
    RP_PLACED_CONVOLUTION, /* no reason is known, but other ways to do it are */
    RP_PLACED_KINDS
};

/* An operator far below what the device can do (docs/definitions.md, "Findings"). */
struct rp_report_placed {
    uint8_t kind; /* enum rp_placed_kind */
    bool by_memory;
    int64_t calls, device_ns, lost_ns;
    double rate, peak;             /* FLOP/s; where memory limits it, bytes/s */
    double flops_per_s;            /* of a matrix product that memory limits; else 0 */
    const char *op, *kernel, *why; /* "bmm [[96, 3137, 64], …"; the last may be NULL */
};
#define RP_PLACED_MOST 3

/* What a program does before its first step, the most special first: X(NAME, "name", doc). */
#define RP_START_MAP(X)                                                      \
    X(COMPILATION, "compilation", "torch.compile, XLA, Triton")              \
    X(LOADING, "module loading", "code is loaded onto the device")           \
    X(BATCH, "first batch", "the data loader")                               \
    X(DEVICE, "device initialisation", "calls before the first device work") \
    X(WORK, "model and data", "operators and device work")                   \
    X(IMPORTS, "imports", "libraries are being loaded")                      \
    X(UNRECORDED, "not recorded", "after the last library")
enum rp_start_kind {
#define RP_START_ENUM(name, text, doc) RP_START_##name,
    RP_START_MAP(RP_START_ENUM)
#undef RP_START_ENUM
        RP_START_KINDS
};

struct rp_report_part {
    bool on_device;
    bool limited;              /* by --step or --window: no steps then */
    struct rp_breakdown b;     /* of the device window */
    struct rp_breakdown whole; /* of the span (facts/times/step_times.h), or of what is selected */
    struct rp_outside outside; /* what was recorded outside of the steps; not if limited */
    struct rp_trace_life life;
    int64_t start_ns[RP_START_KINDS]; /* with --start-up: before the first step that is judged */
    struct rp_coverage coverage;
    int64_t category_ns[RP_CATEGORIES]; /* device time of the items, of the main device */
    size_t nplaced;
    struct rp_report_placed placed[RP_PLACED_MOST]; /* of one kind; what loses most first */
    int64_t placed_lost_ns;                         /* by all operators of that kind */
    struct rp_speed_sums speed;
    struct rp_report_sums sums;
    struct rp_report_device wrong;  /* on the device */
    struct rp_report_pauses pauses; /* without device work */
    bool by_ranges;                 /* without operators: work is what runs in the user's ranges */
    bool by_calls;                  /* without ranges too: what runs between the recorded calls */
    struct rp_stacks_part stacks;   /* without device work: of the samples, time on a processor */
    struct rp_host_waits waits;     /* in the span */
    struct rp_host_calls calls;
    int64_t late_ns;                  /* idle that began before the next work was launched */
    struct rp_report_latency latency; /* of host operators */
    size_t nidle_causes;
    struct rp_idle_cause *idle_causes; /* by cause and class */
    rp_gap_vec gaps;                   /* of the span, in time order */
    struct rp_collectives collectives;
    size_t nleads;
    struct rp_comm_lead *leads;                /* one a collective: what the rank did before it */
    rp_interval_vec compute, busy, kernels;    /* unions; busy minus kernels: copies alone */
    rp_interval_vec judged;                    /* parts of the span: the steps that count */
    const char *unequal, *streams, *untypical; /* pitfalls, or NULL */
    size_t nkinds;
    struct rp_report_kind *kinds; /* none: all steps are of one */
    size_t nrequests;
    struct rp_report_request *requests; /* none: their ranges were not recorded */
    const char *request_text;           /* what they are, or NULL */
    size_t nsteps;
    struct rp_report_step *steps; /* those of the trace in its order, or the selected one */
    int64_t recorded_steps;       /* of the trace */
    int64_t step_ns;              /* RP_ABSENT_I64: no steps */
    const char *device, *framework;
    const char *frameworks; /* of a recording of ours: with their versions; or NULL */
    const char *host;       /* facts/host/trace_host.h, or NULL */
    size_t ndevices;
    struct rp_report_device_row *devices; /* by number */
    struct rp_workload workload;
    bool modelled;  /* sim is filled */
    bool too_large; /* for a model of it */
    struct rp_sim_part sim;
    /* for pages and pictures (view.h): empty unless they are asked for */
    size_t nlanes;
    struct rp_report_lane *lanes;
    struct rp_top_part tops[RP_VIEW_TOPS];
    struct rp_roof_part roof;
};

/* What is known besides the trace. */
struct rp_report_hints {
    const struct rp_category_table *categories; /* the user's, or NULL */
    rp_item_cost_fn *known;                     /* as for rp_cost_calls_init, or NULL */
    void *user;
};

/* Texts are in the arena; release the part also after a failure, unless an arena has adopted it.
   `hints` may be NULL. */
enum rp_code rp_report_rank(const struct rp_trace *trace, const struct rp_scope *scope,
                            const struct rp_report_hints *hints, struct rp_arena *arena,
                            struct rp_report_part *out, struct rp_err *err);
void rp_report_part_release(struct rp_report_part *part);

/* Leaves of gaps and unions what the chain asks for (trim.c): sums between the edges of
   collectives, and compute inside them. Of busy and kernels the difference stays, in busy. */
enum rp_code rp_report_trim(struct rp_report_part *part, struct rp_err *err);

/* Whether a host span counts as work where no device work was recorded. */
bool rp_report_is_host_work(const struct rp_trace *trace, const struct rp_scope *scope, rp_event e);

/* The following fill a member of a part; texts are in the arena. */

/* Lists the devices of the rank, and reduces `work` to the items of the main one. */
enum rp_code rp_report_list_devices(struct rp_work *work, struct rp_arena *arena,
                                    struct rp_report_part *out, struct rp_err *err);

/* Adds up device time by category. */
enum rp_code rp_report_sum_categories(const struct rp_work *work,
                                      const struct rp_attribution *places,
                                      struct rp_trace_categories *known, struct rp_report_part *out,
                                      struct rp_err *err);

/* Finds the operators that lose most against what the device can do, by the costs of the calls of
   the work; none where shapes are not known. */
enum rp_code rp_report_place_operators(const struct rp_work *work, const struct rp_op_costs *costs,
                                       const struct rp_cost_calls *calls,
                                       const struct rp_cost_peaks *peaks, struct rp_arena *arena,
                                       struct rp_report_part *out, struct rp_err *err);

/* O(n log n) in kernels. */
enum rp_code rp_report_check_device(const struct rp_work *work, const rp_gap_vec *gaps,
                                    struct rp_arena *arena, struct rp_report_device *out,
                                    struct rp_err *err);

/* The pauses of the segments around and between the intervals of `busy`; they add up to the idle
   time. each: NULL, or gets them one by one, in time order; `cause` is that of a lane (view.h). */
enum rp_code rp_report_find_pauses(const struct rp_trace *trace, const rp_interval_vec *busy,
                                   const struct rp_segments *segments, struct rp_arena *arena,
                                   struct rp_report_pauses *out, rp_gap_vec *each,
                                   struct rp_err *err);

enum rp_code rp_report_measure_latency(const struct rp_trace *trace, struct rp_arena *arena,
                                       struct rp_report_latency *out, struct rp_err *err);

/* Pitfalls are sentences about what a timeline seems to show and does not, checked on this trace;
   NULL if there is none. One operator name for work of very different size: */
enum rp_code rp_pitfall_unequal(const struct rp_work *work, const struct rp_attribution *places,
                                struct rp_arena *arena, const char **out, struct rp_err *err);

/* Several streams that compute, one after the other: */
enum rp_code rp_pitfall_streams(const struct rp_work *work, int64_t compute_ns,
                                struct rp_arena *arena, const char **out, struct rp_err *err);

/* Whether steps are repetitions of the same work, as far as their marks say: those of a server
   are not, they have different batches. */
bool rp_report_steps_alike(const struct rp_report_step *steps, size_t n);

/* A step much longer than the others (of a server's, than other decode steps), why, as far as its
   host spans show, and which one to use instead; `steps` are those of the trace: */
enum rp_code rp_pitfall_steps(const struct rp_trace *trace, const struct rp_report_step *steps,
                              size_t n, struct rp_arena *arena, const char **out,
                              struct rp_err *err);

/* ------------------------------------------------------------------ the answer */

struct rp_report_rank {
    const char *path;
    int64_t rank, window_ns, busy_ns, compute_ns, comm_ns, exposed_comm_ns, memory_ns, idle_ns;
    int64_t wait_ns, transfer_ns, last_count, margin_ns, step_ns, span_ns;
    int64_t late_ns, stall_count, stall_ns;
    double idle_share, op_share;
};

/* The steps of a server by what they did. */
struct rp_report_phase {
    const char *phase; /* NULL: not known */
    const char *label; /* text output only */
    int64_t steps, median_ns, total_ns;
    int64_t unrecorded_ns;    /* of it, waiting for work before the recording; absent: none */
    double share;             /* of the time of all steps */
    int64_t requests, tokens; /* summed over its steps; RP_ABSENT_I64: not known, as below */
    int64_t request_ns, token_ns;
};
extern const struct rp_type rp_report_phase_type;

/* Steps whose work is the same, or what lies between steps. */
struct rp_report_kind {
    const char *kind, *why; /* why: NULL for the usual kind */
    int64_t steps, median_ns, total_ns;
    double share; /* of the time of all kinds */
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

/* Ranks of one host, or that behave alike. */
struct rp_report_group {
    const char *host;  /* NULL: they behave alike */
    const char *which; /* "0-7" */
    int64_t like_rank, rank_count;
    int64_t compute_ns, comm_ns, idle_ns, wait_ns; /* means */
    int64_t last_count, margin_ns;                 /* sums; as wait_ns absent where not known */
};
extern const struct rp_type rp_report_group_type, rp_report_host_type; /* differ in name only */
#define RP_REPORT_GROUP_COLUMNS /* after that by which the ranks are grouped */ \
    "rank_count, which, compute_ns, comm_ns, idle_ns, wait_ns, last_count, margin_ns"

/* Device time of a category of work, all ranks together. */
struct rp_report_category {
    const char *category;
    int64_t device_ns;
    double share; /* of the device time */
};

struct rp_report_share { /* a part of the time of all ranks */
    const char *part, *note;
    int64_t total_ns, mean_ns;
    double share;
};

/* A thing to try, and what 'reprise simulate' predicts of it where it can. */
struct rp_report_try {
    const char *text, *what_if;    /* what_if: or NULL */
    int64_t step_ns, predicted_ns; /* a step without the profiler, and with the change; absent */
    double change_ratio;           /* NaN: not predicted */
    bool look;                     /* it says where to see more */
    const char *topic;             /* the what-if of its row, or NULL: the same advice elsewhere */
    const char *beyond; /* a what-if that gains far more than the finding costs, so that it has no
                           number here; or NULL */
};

/* Where a finding happens, for a timeline; not shown. */
struct rp_report_where {
    uint32_t causes;                   /* gaps of these causes: bits 1 << enum rp_gap_cause */
    bool late, exposed;                /* collectives that a rank delayed; all of them */
    const char *names[RP_PLACED_MOST]; /* events of these names, whole or short; or NULL */
    int64_t rank;                      /* of names and of the step */
    int64_t step;                      /* its number; RP_ABSENT_I64: none */
};

struct rp_report_finding {
    const char *id, *title, *hint;
    struct rp_report_where where;
    int64_t lost_ns;
    int64_t compute_ns; /* of it, inside what counts as compute */
    double share;       /* of the span */
    bool at_most;       /* it overlaps with others, or is a bound */
    size_t nevidence, ntries;
    const char **evidence;
    struct rp_report_try *tries;
};

/* A change that can be predicted and is worth making (sim/opportunities.h). */
struct rp_report_opportunity {
    const char *what_if, *finding; /* finding: its id, or NULL */
    int64_t gain_ns, gain_low_ns, gain_high_ns, step_ns;
    int64_t effort, tries;       /* tries: struct rp_gain */
    const char *apply, *assumes; /* apply: or NULL */
    bool beyond;                 /* it gains more than the finding costs */
};

/* What kind of program was recorded: texts of struct rp_workload. */
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
    const char *heading, *why, *evidence, *first, *second, *third; /* the last three: what to try */
};

/* Where the threads of the host were, by samples of their stacks; summed over threads and ranks. */
struct rp_report_sampled {
    int64_t samples, ran_ns, waited_ns, wants_gil_ns; /* times: absent where samples only count */
    size_t nlines;
    struct rp_stacks_row *lines; /* with most time of their own on a processor */
};
extern const struct rp_type rp_report_sampled_type;

/* Whether nothing was recorded that can be called work: no device work, operator, or range. */
bool rp_report_knows_no_work(const struct rp_report_part *part);
/* Whether all that is known of a rank's code is what was sampled. */
bool rp_report_is_sampled(const struct rp_report_part *part);

struct rp_report_root {
    size_t ndevices, ndevice_rows;
    struct rp_report_device_row *devices, *device_rows; /* rows: where a rank has several */
    const char *steps_text, *step_source, *step_mark;
    double step_share; /* of the device time: in steps */
    const char *run_text, *step_text, *lost_text, *pace_text, *stall_text; /* text output only */
    const char *profiler_text, *work_text, *speed_text, *sampled_text;
    struct rp_report_speed speed;
    const char *help_text, *help2_text, *help3_text;
    bool predictable;                            /* by simulate: not shown */
    int64_t unprofiled_ns;                       /* absent: not known */
    int64_t captured_launches;                   /* of a recording of captures */
    int64_t exposed_node_ns, exposed_between_ns; /* RP_ABSENT_I64: not known */
    int64_t window_ns, step_ns, lost_ns, needed_ns, span_ns, collective_span_ns, stall_count,
        stall_ns;
    size_t nstall_modes;
    struct rp_report_mode *stall_modes;
    struct rp_report_latency latency;   /* of the first rank that knows it */
    struct rp_report_workload workload; /* of the rank at the end of the chain */
    size_t nranks, nrank_rows, nsteps, nparts, nfindings, nlook, npitfalls, nnotes;
    struct rp_report_rank *ranks, *rank_rows;
    size_t ngroups, nhost_rows, nalike_rows;
    struct rp_report_group *groups, *host_rows, *alike_rows; /* none: few ranks, or all differ */
    struct rp_report_step *steps;
    size_t nkinds;
    struct rp_report_kind *kinds; /* of the first rank that has several */
    size_t nrequests;
    struct rp_report_request *requests; /* of the first rank that has any */
    size_t nphases;
    struct rp_report_phase *phases; /* none: no step has a phase */
    struct rp_report_share *parts;
    size_t nstart_up;
    struct rp_report_share *start_up; /* parts of the time before the first step */
    size_t ncategories;
    struct rp_report_category *categories;
    struct rp_report_finding *findings;
    size_t nopportunities;
    struct rp_report_opportunity *opportunities;
    struct rp_report_look *look;
    struct rp_report_sampled sampled; /* of the host, without device work */
    size_t nsampled_rows, nsampled_counts;
    struct rp_stacks_row *sampled_rows, *sampled_counts; /* on the screen: one of the two */
    size_t nwaits, nwait_rows, nhost_rank_rows;
    struct rp_idle_wait *waits, *wait_rows; /* rows: on the screen */
    struct rp_report_rank *host_rank_rows;  /* on the screen, without a device */
    const char **pitfalls, **notes;
    struct rp_report_view *view; /* NULL: neither a page nor a picture is asked for */
};

/* Fills the samples of all ranks, their line and their rows; nothing where there are none. */
enum rp_code rp_report_join_samples(const struct rp_ranks *ranks, struct rp_arena *arena,
                                    struct rp_report_root *out, struct rp_err *err);

extern const struct rp_type rp_report_type, rp_report_part_type; /* fields.c */

/* Whether only transfers of the device were recorded, or kept by a filter: then nothing is known
   about the time between them. */
static inline bool rp_report_has_only_transfers(const struct rp_report_part *p)
{
    return p->on_device && !p->whole.compute_ns && p->coverage.device_ns &&
           !p->coverage.launched_ns;
}

static inline const struct rp_report_part *rp_report_part_of(const struct rp_ranks *ranks,
                                                             size_t rank)
{
    return (const struct rp_report_part *)ranks->parts[rank].data;
}

extern const struct rp_type rp_report_category_type;

/* Fills the categories of all ranks and the line that shows them; both are empty without device
   work. Texts are in the arena, whose failure sticks to it. */
void rp_report_join_categories(const struct rp_ranks *ranks, struct rp_arena *arena,
                               struct rp_report_root *out);

/* Fills the groups of out->ranks; texts are in the arena, whose failure sticks to it. */
void rp_report_group_ranks(const struct rp_ranks *ranks, struct rp_arena *arena,
                           struct rp_report_root *out);

/* ------------------------------------------------------------------ which rank sets the pace */

/*
 * A collective delays every rank until the last one arrives, so the time of a run is that of a
 * chain: up to each collective the time of the rank that arrived last, then its transfer, and so
 * on. What was lost on that chain would have made the run shorter; what was lost elsewhere would
 * only have made a rank wait longer.
 *
 *     rank 0  ....idle....[==AR==]..........[wait AR==]   chain: rank 0 up to the first collective,
 *     rank 1  ..[wait......AR==]......idle.......[AR==]   from there rank 1 up to the second
 *
 * Where collectives synchronize the hosts (gloo) and not the devices, the waits are counted, but
 * each device has a time of its own: then the rank that lost most represents the run.
 */
struct rp_chain_rank {
    int64_t wait_ns, transfer_ns, last_count; /* as in docs/definitions.md, "Findings" */
    int64_t margin_ns;                        /* by how much it delayed the others, union in time */
    int64_t exposed_wait_ns;                  /* waiting while no compute ran */
    int64_t stage_wait_ns;                    /* of that, for other stages of its pipeline */
    struct rp_late_sums lates;                /* why it arrived last */
};

struct rp_chain {
    size_t ncollectives;                /* that were matched between ranks */
    int64_t span_ns;                    /* from the first start to the last end of these */
    bool beside;                        /* they run on the hosts, beside the devices */
    size_t lead;                        /* the rank at the end of the chain */
    bool contradict;                    /* the ranks' times contradict each other on any clocks */
    const struct rp_clock *clocks;      /* by rank: how its times become those of the first */
    bool clocks_differ;                 /* they were moved, by up to apart_ns */
    size_t ndoubtful;                   /* collectives whose last rank is not certain */
    size_t nset;                        /* ranks whose clock was set during the recording */
    int64_t apart_ns, uncertainty_ns;   /* of the clocks */
    int64_t cause_ns[RP_GAP_CAUSES];    /* idle on the chain */
    int64_t transfer_ns;                /* exposed communication on the chain, without waiting */
    int64_t copies_ns;                  /* copies and memsets on it, while no kernel runs */
    int64_t margin_ns;                  /* by how much collectives on the chain were delayed */
    const struct rp_pipe_stage *stages; /* by rank: its place in a pipeline; NULL: there is none */
    int64_t bubble_ns;                  /* what a stage waits for other stages, the mean */
    /* Transfer while no compute runs, by enum rp_place, the mean of the ranks; the time above what
       slow links need; and the alarms. */
    int64_t exposed_ns[RP_PLACES + 1], slow_ns;
    const char *slow_link[RP_PLACES];
    struct rp_chain_rank *ranks;  /* one for each rank */
    const rp_interval_vec *waits; /* by rank, on its clock: waiting in collectives, in its span;
                                     NULL: nothing was matched */
};

/* How much of [begin, end) lies in what is judged of a rank. */
int64_t rp_report_judged_ns(const struct rp_report_part *part, int64_t begin_ns, int64_t end_ns);

/* Allocates in the arena. */
enum rp_code rp_chain_make(const struct rp_ranks *ranks, struct rp_arena *arena,
                           struct rp_chain *out, struct rp_err *err);

/* Fills what to try about a finding (advice.c). */
extern const struct rp_type rp_report_try_type;
void rp_report_advise(struct rp_arena *arena, uint8_t found, const struct rp_workload *workload,
                      struct rp_report_finding *finding);
void rp_report_join_hint(struct rp_arena *arena, struct rp_report_finding *finding);

/* The same as lines on the screen, with what is predicted of them. */
void rp_report_look_tries(struct rp_arena *arena, const struct rp_report_finding *finding,
                          struct rp_report_look *look);

/* "; before that it ran read_shard", or "": the reason of struct rp_late in words. */
const char *rp_report_late_text(struct rp_arena *arena, const char *cause, const char *evidence);

/* What simulate predicts (predict.c). The first makes the model of a rank where it is cheap and may
   be needed (`changes`: to predict changes, not only what the profiler costs); the second predicts
   what findings advise, and what a step takes without the profiler.
 */
enum rp_code rp_report_model(const struct rp_trace *trace, bool changes, struct rp_arena *arena,
                             struct rp_report_part *part, struct rp_err *err);
extern const struct rp_rank_bulk rp_report_bulk; /* the models (dataset/bulk.h) */
enum rp_code rp_report_predict(const struct rp_ranks *ranks, const struct rp_chain *chain,
                               struct rp_arena *arena, struct rp_report_root *out,
                               struct rp_err *err);

/* Fills the texts of a rank's workload, and describes them (advice.c). */
extern const struct rp_type rp_report_workload_type;
/* "pytorch", or "sglang on pytorch". */
/* start_up.c: of a rank, and of all; the second fills rows where something was measured. */
enum rp_code rp_report_measure_start(const struct rp_trace *trace, struct rp_report_part *out,
                                     struct rp_err *err);
void rp_report_fill_start(const struct rp_ranks *ranks, struct rp_arena *arena,
                          struct rp_report_root *out);

/* Whether `record` wrote it: advice names its options then. */
static inline bool rp_report_is_ours(const struct rp_report_part *part)
{
    return part->framework && !strcmp(part->framework, "reprise");
}

const char *rp_report_program_name(struct rp_arena *arena, const struct rp_report_part *part);
struct rp_report_workload rp_report_workload_of(const struct rp_workload *workload);

/* Fills findings, the most costly first; those under a hundredth of the window are left out. */
enum rp_code rp_report_find(const struct rp_ranks *ranks, const struct rp_chain *chain,
                            struct rp_arena *arena, struct rp_report_root *out, struct rp_err *err);

/* Adds findings about what opportunities would save of compute and no finding is about. */
struct rp_opportunities;
enum rp_code rp_report_find_changes(const struct rp_ranks *ranks, const struct rp_chain *chain,
                                    const struct rp_opportunities *list, struct rp_arena *arena,
                                    struct rp_report_root *out, struct rp_err *err);

/* Fills the devices. Returns a note where a rank has several, else NULL. */
const char *rp_report_join_devices(const struct rp_ranks *ranks, struct rp_arena *arena,
                                   struct rp_report_root *out);

/* Fills the kinds of steps of a rank. Needs its steps, and what lies outside of them. */
enum rp_code rp_report_sort_steps(const struct rp_trace *trace, const struct rp_work *work,
                                  struct rp_arena *arena, struct rp_report_part *out,
                                  struct rp_err *err);

/* Fills the requests of a rank. */
enum rp_code rp_report_find_requests(const struct rp_trace *trace, struct rp_arena *arena,
                                     struct rp_report_part *out, struct rp_err *err);

/* Fills the phases. Needs the steps. */
enum rp_code rp_report_sum_phases(const struct rp_ranks *ranks, struct rp_arena *arena,
                                  struct rp_report_root *out, struct rp_err *err);

/* Notes which calls far above the median of their name on this rank have more to do, or wait for
   results of the device. */
enum rp_code rp_report_explain_stalls(const struct rp_trace *trace, const rp_interval_vec *busy,
                                      struct rp_arena *arena, struct rp_host_calls *calls,
                                      struct rp_err *err);

/* Fills the stalls of the ranks and of all. Needs the window. */
enum rp_code rp_report_count_stalls(const struct rp_ranks *ranks, struct rp_arena *arena,
                                    struct rp_report_root *out, struct rp_err *err);

#endif
