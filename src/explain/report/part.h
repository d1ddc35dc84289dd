/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The part of a rank in a report: what is known about it after its trace is released. Values that
 * only one finding needs are declared in its file (explain/findings); the member `kept` has a place
 * for them.
 */
#include "base/decides.h"
#include "dataset/ranks.h"
#include "explain/findings/findings.h"
#include "explain/idle/idle.h"
#include "explain/report/answer.h"
#include "explain/report/view.h"
#include "explain/roofline/roofline.h"
#include "explain/top/categories.h"
#include "explain/top/top.h"
#include "facts/host/calls.h"
#include "facts/host/outside.h"
#include "facts/ranks/collectives.h"
#include "facts/times/trace_life.h"
#include "facts/work/attribution.h"
#include "facts/work/device_clock.h"
#include "facts/work/workload.h"
#include "places/course.h"
#include "sim/model/part.h"

#include <string.h>

/* Sums of a rank that take little memory. */
#define RP_REPORT_SUMS(M, s)                                                                 \
    M(s, PLAIN, int64_t, previous_ns)   /* compute of the step before the first one */       \
    M(s, PLAIN, int64_t, first_wait_ns) /* device_wait before the first work of a stream */  \
    M(s, PLAIN, int64_t, graph_wait_ns) /* device_wait between the items of one launch */    \
    M(s, PLAIN, int64_t, overhead_ns)   /* of the profiler */                                \
    M(s, PLAIN, int64_t, host_ops)      /* operators, and their time */                      \
    M(s, PLAIN, int64_t, host_op_ns)                                                         \
    M(s, PLAIN, int64_t,                                                                     \
      lost_work) /* number of calls that started device work, if none was recorded */        \
    M(s, PLAIN, int64_t, open_collectives) /* number of host collectives that did not end */ \
    M(s, PLAIN, int64_t,                                                                     \
      timeline_ranks) /* number of ranks in one file of a pipeline's timeline, or 0 */
RP_PART_STRUCT(rp_report_sums, RP_REPORT_SUMS);

#define RP_REPORT_PAUSES(M, s)                                               \
    M(s, ARRAY, int64_t, ns, RP_PAUSES)                                      \
    M(s, ARRAY, int64_t, count, RP_PAUSES)                                   \
    M(s, ARRAY, int64_t, longest_ns, RP_PAUSES)                              \
    M(s, TEXTS, mainly, RP_PAUSES) /* the span with most of each, or NULL */ \
    M(s, ARRAY, int64_t, mainly_ns, RP_PAUSES)
RP_PART_STRUCT(rp_report_pauses, RP_REPORT_PAUSES);

/* What a program does before its first step, the most specific first: X(NAME, "name", doc). */
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

/* A place for each finding that keeps something (explain/findings/findings.h). */
struct rp_kept {
    size_t n; /* 0: nothing, else 1 */
    void *at;
};
#define RP_PART_DECLARE_FINDINGS(member)     struct rp_kept member[RP_KEPT_COUNT];
#define RP_PART_DESCRIBE_FINDINGS(s, member) RP_FINDING_ROWS(RP_KEPT_NOTHING_, RP_KEPT_FIELD_)
#define RP_KEPT_NOTHING_(name)
#define RP_KEPT_FIELD_(name)                                                       \
    RP_PART_FIELD_(LIST, offsetof(struct rp_report_part, kept[RP_KEPT_##name].at), \
                   offsetof(struct rp_report_part, kept[RP_KEPT_##name].n), &rp_kept_##name),

#define RP_REPORT_PART(M, s)                                                                      \
    M(s, PLAIN, bool, on_device)                                                                  \
    M(s, PLAIN, bool, cut_to_device) /* without steps: more than device work was recorded */      \
    M(s, PLAIN, bool, limited)       /* limited by --step or --window; then there are no steps */ \
    M(s, PLAIN, struct rp_breakdown, b) /* of the device window */                                \
    M(s, PLAIN, struct rp_breakdown,                                                              \
      whole) /* breakdown of the span (facts/times/step_times.h), or of \ what is selected */     \
    M(s, RECORD, rp_outside, outside) /* recorded outside of the steps; not if limited */         \
    M(s, PLAIN, struct rp_trace_life, life)                                                       \
    M(s, ARRAY, int64_t, start_ns,                                                                \
      RP_START_KINDS) /* with --start-up: time before the first step \ that is judged */          \
    M(s, PLAIN, struct rp_coverage, coverage)                                                     \
    M(s, ARRAY, int64_t, category_ns, RP_CATEGORIES) /* device time, of the main device */        \
    M(s, LIST, rp_report_hot, hot)                   /* the largest first */                      \
    M(s, PLAIN, int64_t,                                                                          \
      hot_ns) /* the time of which they are a part: device time, or that of the host */           \
    M(s, RECORD, rp_lines_part, lines) /* of compiled programs */                                 \
    M(s, PLAIN, struct rp_speed_sums, speed)                                                      \
    M(s, RECORD, rp_report_sums, sums)                                                            \
    /* A rank with device work has what findings keep; a rank without it has its pauses. */       \
    M(s, FINDINGS, kept)                                                                          \
    M(s, RECORD, rp_report_pauses, pauses)                                                        \
    /* If no operator was recorded, the user's ranges count as work; if there are no ranges       \
     * \ either, the time between recorded calls does. */                                         \
    M(s, PLAIN, bool, by_ranges)                                                                  \
    M(s, PLAIN, bool, by_calls)                                                                   \
    M(s, RECORD, rp_stacks_part,                                                                  \
      stacks) /* without device work: where samples show work on a \ processor */                 \
    M(s, RECORD, rp_host_waits, waits) /* in the span */                                          \
    M(s, RECORD, rp_host_calls, calls)                                                            \
    M(s, PLAIN, int64_t, late_ns) /* idle time that began before the next work was launched */    \
    M(s, RECORD, rp_report_latency, latency)         /* of host operators */                      \
    M(s, LIST, rp_idle_cause, idle_causes)           /* by cause and class */                     \
    M(s, PLAIN_VEC, rp_gap_vec, gaps, struct rp_gap) /* gaps of the span, in the order of time */ \
    M(s, RECORD, rp_collectives, collectives)                                                     \
    M(s, RECORD, rp_course, course)                                                               \
    M(s, LIST, rp_comm_lead, leads) /* for each collective: what the rank did before it */        \
    /* Unions of intervals. While the device is busy but runs no kernel, it only copies. Only the \
     * \ judged parts of the span count. */                                                       \
    M(s, PLAIN_VEC, rp_interval_vec, compute, struct rp_interval)                                 \
    M(s, PLAIN_VEC, rp_interval_vec, busy, struct rp_interval)                                    \
    M(s, PLAIN_VEC, rp_interval_vec, kernels, struct rp_interval)                                 \
    M(s, PLAIN_VEC, rp_interval_vec, judged, struct rp_interval)                                  \
    M(s, TEXT, unequal) /* pitfalls, or NULL */                                                   \
    M(s, TEXT, streams)                                                                           \
    M(s, TEXT, untypical)                                                                         \
    M(s, LIST, rp_report_kind, kinds)       /* none if all steps are of one kind */               \
    M(s, LIST, rp_report_request, requests) /* none if their ranges were not recorded */          \
    M(s, TEXT, request_text)                /* a sentence about what they are, or NULL */         \
    M(s, LIST, rp_report_step,                                                                    \
      steps) /* all steps of the trace in its order, or the selected one */                       \
    M(s, PLAIN, int64_t, recorded_steps) /* of the trace */                                       \
    M(s, PLAIN, int64_t, step_ns)        /* RP_ABSENT_I64 if there are no steps */                \
    M(s, TEXT, device)                                                                            \
    M(s, TEXT, framework)                                                                         \
    M(s, TEXT, ended)      /* where and by what exception the program ended; or NULL */           \
    M(s, TEXT, frameworks) /* for a recording of ours: frameworks with versions; or NULL */       \
    M(s, TEXT, host)       /* see facts/host/trace_host.h; or NULL */                             \
    M(s, LIST, rp_report_device_row, devices) /* by number */                                     \
    M(s, PLAIN, struct rp_workload, workload)                                                     \
    M(s, PLAIN, struct rp_device_clock, clock)                                                    \
    M(s, PLAIN, bool, modelled)       /* sim is filled */                                         \
    M(s, PLAIN, bool, too_large)      /* for a model of it */                                     \
    M(s, PLAIN, int64_t, model_first) /* the model starts with the step of that number ... */     \
    M(s, PLAIN, int64_t, model_steps) /* ... and has so many; 0: all */                           \
    M(s, RECORD, rp_sim_part, sim)                                                                \
    /* for pages and pictures (view.h); empty unless they are asked for */                        \
    M(s, LIST, rp_report_lane, lanes)                                                             \
    M(s, RECORDS, rp_top_part, tops, RP_VIEW_TOPS)                                                \
    M(s, RECORD, rp_roof_part, roof)
RP_PART_STRUCT(rp_report_part, RP_REPORT_PART);
extern const struct rp_type rp_report_part_type; /* fields.c */

/* What is known in addition to the trace. */
struct rp_report_hints {
    const char *path; /* of the file, beside which logs may lie; NULL: nowhere */
    const struct rp_category_table *categories; /* the user's, or NULL */
    rp_item_cost_fn *known;                     /* as for rp_cost_calls_init, or NULL */
    void *user;
};

/* Texts are in the arena. The part must be released also after a failure, unless an arena has
   adopted it. `hints` may be NULL. */
enum rp_code rp_report_rank(const struct rp_trace *trace, const struct rp_scope *scope,
                            const struct rp_report_hints *hints, struct rp_arena *arena,
                            struct rp_report_part *out, struct rp_err *err);
void rp_report_part_release(struct rp_report_part *part);

/* Whether a host span counts as work if no device work was recorded. */
bool rp_report_is_host_work(const struct rp_trace *trace, const struct rp_scope *scope, rp_event e);

/* Whether only transfers of the device were recorded, or kept by a filter, so that nothing is known
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

/* Whether nothing was recorded that can be called work: no device work, operator, or range. */
bool rp_report_knows_no_work(const struct rp_report_part *part);
/* Whether samples are all that is known about a rank's code. */
bool rp_report_is_sampled(const struct rp_report_part *part);
bool rp_report_samples_device(const struct rp_report_part *part);

/* Whether `record` wrote the file, so that advice can name its options. */
static inline bool rp_report_is_ours(const struct rp_report_part *part)
{
    return part->framework && !strcmp(part->framework, "reprise");
}

/* Makes the model of a rank if it is cheap and may be needed (predict.c). `changes`: it is to
   predict changes, not only the cost of the profiler. */
enum rp_code rp_report_model(const struct rp_trace *trace, bool changes, struct rp_arena *arena,
                             struct rp_report_part *part, struct rp_err *err);

/* The part of [begin, end) that is judged for a rank. */
int64_t rp_report_judged_ns(const struct rp_report_part *part, int64_t begin_ns, int64_t end_ns);

/* Whether steps repeat the same work, as far as their marks tell; those of a server have different
   batches. */
bool rp_report_steps_alike(const struct rp_report_step *steps, size_t n);

#define RP_STEPS_COMPARED 3
RP_FACT(RP_STEPS_COMPARED, "steps", "of only two, neither is the usual one");
#define RP_ATYPICAL 1.2
RP_DECISION(RP_ATYPICAL, "times the median step",
            "steps of a loop that repeats the same work differ by less (docs/definitions.md, "
            "\"Step time\")",
            "explain/steps_are_atypical_from_an_edge_on");

/* The duration of a step without work that was launched before it. */
static inline int64_t rp_report_own_ns(const struct rp_report_step *s)
{
    return rp_ns_between(s->earlier_ns, s->b.window_ns);
}
