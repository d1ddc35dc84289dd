/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_REPORT_REPORT_H
#define RP_EXPLAIN_REPORT_REPORT_H
/*
 * The one screen: where the time of a run goes, what was lost, to which cause, and what to try.
 * `rp_report_rank` makes a part of each trace; `rp_report_join` matches the collectives of the
 * ranks, follows the rank that everybody waits for, and ranks the findings by what they cost.
 */
#include "explain/idle/idle.h"
#include "explain/report/device.h"
#include "explain/report/host.h"
#include "explain/report/latency.h"
#include "facts/attribution.h"
#include "facts/collectives.h"
#include "facts/host_calls.h"
#include "result/result.h"

/* A step of a rank: from its first device work to that of the next step. */
struct rp_report_step {
    int64_t rank, number;
    const char *name;
    struct rp_breakdown b;
    int64_t host_ns;           /* length of its mark on the host */
    int64_t late_ns, drain_ns; /* idle in it: the host was simply late; late after a sync */
    int64_t begin_ns, dur_ns, busy_ns, compute_ns, comm_ns, exposed_comm_ns, memory_ns, idle_ns;
};

/* Small sums that findings are made of. */
struct rp_report_sums {
    int64_t kernels, tiny_kernels, tiny_gap_ns; /* kernels under 10 us, and gaps before them */
    int64_t overhead_ns;                        /* of the profiler */
    int64_t host_ops, host_op_ns, host_threads; /* operators, their time, threads with some */
    int64_t copies, copy_name_ns;               /* copies and memsets, and of one name */
    const char *copy_name;                      /* the name with most time, or NULL */
};

struct rp_report_part {
    bool on_device;
    bool limited; /* by --step or --window: no steps then */
    struct rp_breakdown b;
    struct rp_coverage coverage;
    struct rp_report_sums sums;
    struct rp_report_device wrong;  /* on the device */
    struct rp_report_pauses pauses; /* without device work */
    struct rp_host_calls calls;
    int64_t late_ns;                  /* idle that began before the next work was launched */
    struct rp_report_latency latency; /* of host operators */
    size_t nidle_causes;
    struct rp_idle_cause *idle_causes; /* by cause and class */
    rp_gap_vec gaps;                   /* in time order */
    struct rp_collectives collectives;
    rp_interval_vec compute, busy, kernels;    /* unions; busy minus kernels: copies alone */
    const char *unequal, *streams, *untypical; /* pitfalls, or NULL */
    size_t nsteps;
    struct rp_report_step *steps; /* one a step of the trace, in its order */
    bool steps_on_device;         /* they begin with device work, not with their marks */
    int64_t step_ns;              /* RP_ABSENT_I64: no steps */
    struct rp_health health;
    const char *device, *framework;
};

struct rp_report_rank {
    const char *path;
    int64_t rank, window_ns, busy_ns, compute_ns, comm_ns, exposed_comm_ns, memory_ns, idle_ns;
    int64_t wait_ns, transfer_ns, last_count, margin_ns, step_ns;
    int64_t late_ns, stall_count, stall_ns;
    double idle_share, op_share;
};

struct rp_report_share { /* a part of the time of all ranks */
    const char *part, *note;
    int64_t total_ns, mean_ns;
    double share;
};

struct rp_report_finding {
    const char *id, *title, *hint;
    int64_t lost_ns;
    double share; /* of the window */
    size_t nevidence;
    const char **evidence;
};

/* Where the lengths of host stalls gather. */
struct rp_report_mode {
    int64_t at_ns, count;
};

/* A finding on the screen. */
struct rp_report_look {
    const char *heading, *why, *seen, *hint;
};

struct rp_report_root {
    const char *run_text, *step_text, *lost_text, *pace_text, *stall_text; /* for the screen */
    int64_t window_ns, step_ns, lost_ns, needed_ns, span_ns, stall_count, stall_ns;
    size_t nstall_modes;
    struct rp_report_mode *stall_modes;
    struct rp_report_latency latency; /* of the first rank that knows it */
    size_t nranks, nrank_rows, nsteps, nparts, nfindings, nlook, npitfalls, nnotes;
    struct rp_report_rank *ranks, *rank_rows;
    struct rp_report_step *steps;
    struct rp_report_share *parts;
    struct rp_report_finding *findings;
    struct rp_report_look *look;
    const char **pitfalls, **notes;
};

extern const struct rp_type rp_report_type;

/* Texts go into the arena; release the part also after a failure. */
enum rp_code rp_report_rank(const struct rp_trace *trace, const struct rp_scope *scope,
                            struct rp_arena *arena, struct rp_report_part *out, struct rp_err *err);
void rp_report_part_release(struct rp_report_part *part);

/* Whether a host span stands for work where no device work was recorded. */
bool rp_report_is_host_work(const struct rp_trace *trace, const struct rp_scope *scope, rp_event e);

/* What the join gets of each rank. */
struct rp_report_input {
    const struct rp_report_part *part;
    const char *path;
    int32_t number;
};

enum rp_code rp_report_join(const struct rp_report_input *ranks, size_t n, int32_t world_size,
                            struct rp_arena *arena, struct rp_report_root *out, struct rp_err *err);

#endif
