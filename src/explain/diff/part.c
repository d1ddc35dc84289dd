/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank's part of a comparison: its typical steps, the parts of their time, and their call tree.
 * Steps, their parts and the causes of idle time are those of the report. The typical steps are the
 * middle half by length, so that a first step or a hiccup does not count; their mean is the median
 * where there are up to six, and unlike a median its parts add up.
 */
#include "explain/diff/diff.h"

#include "base/order.h"
#include "explain/diff/noise.h"
#include "result/part.h"

#include <stdlib.h>
#include <string.h>

/* The parts of a step without idle, then idle by cause. */
#define SUMS (RP_DIFF_IDLE + RP_GAP_CAUSES + 1)

struct part_ctx {
    const struct rp_trace *t;
    const struct rp_scope *scope;
    struct rp_arena *arena;
    struct rp_trace_diff_part *out;
    struct rp_report_part report;
    struct rp_diff_window *windows;
    int64_t sum_ns[SUMS]; /* of all steps taken */
};

static void add_times(struct part_ctx *m, const struct rp_breakdown *b)
{
    int64_t work = rp_ns_sum(b->compute_ns, b->exposed_comm_ns);

    rp_ns_add(&m->sum_ns[RP_DIFF_COMPUTE], b->compute_ns);
    rp_ns_add(&m->sum_ns[RP_DIFF_COMM], b->exposed_comm_ns);
    rp_ns_add(&m->sum_ns[RP_DIFF_MEMORY], rp_ns_between(work, b->busy_ns));
}

/* The gaps in a window by cause; what no gap explains lies outside the device work. */
static void add_causes(struct part_ctx *m, const struct rp_breakdown *b)
{
    const rp_gap_vec *gaps = &m->report.gaps;
    int64_t rest = b->idle_ns;
    size_t i;

    RP_LOWER_BOUND(i, gaps->n, gaps->at[i].end_ns <= b->begin_ns);
    for (; i < gaps->n && gaps->at[i].begin_ns < b->end_ns; i++) {
        int64_t ns = rp_ns_common(gaps->at[i].begin_ns, gaps->at[i].end_ns, b->begin_ns, b->end_ns);

        rp_ns_add(&m->sum_ns[RP_DIFF_IDLE + gaps->at[i].cause], ns);
        rest = rp_ns_between(ns, rest);
    }
    rp_ns_add(&m->sum_ns[SUMS - 1], rest);
}

static void take_step(struct part_ctx *m, const struct rp_breakdown *b)
{
    add_times(m, b);
    add_causes(m, b);
    m->out->taken++;
}

/* Means that add up to the mean of the whole: rounded along the running sum. */
static void mean_all(struct part_ctx *m)
{
    struct rp_trace_diff_part *out = m->out;
    int64_t sum = 0, before = 0;
    size_t i;

    for (i = 0; i < SUMS; i++) {
        size_t part = i < RP_DIFF_IDLE ? i : RP_DIFF_IDLE;
        int64_t now;

        rp_ns_add(&sum, m->sum_ns[i]);
        now = sum / out->taken;
        rp_ns_add(&out->time_ns[part], rp_ns_between(before, now));
        if (i >= RP_DIFF_IDLE)
            out->cause_ns[i - RP_DIFF_IDLE] = rp_ns_between(before, now);
        before = now;
    }
    out->typical_ns = before;
}

struct length {
    int64_t ns;
    size_t step;
};

RP_ORDER(by_length, struct length, RP_UP(ns), RP_UP(step))

/* Sorts the whole steps by length and takes the middle half. */
static enum rp_code take_typical(struct part_ctx *m, struct rp_err *err)
{
    struct rp_trace_diff_part *out = m->out;
    size_t i, from, taken, n = out->nwhole;
    struct length *lengths = RP_ARENA_NEW(m->arena, struct length, n + 1);

    out->step_ns = RP_ARENA_NEW(m->arena, int64_t, n + 1);
    if (!lengths || !out->step_ns)
        return rp_err_nomem(err, "comparing steps");
    for (i = 0; i < n; i++) {
        out->step_ns[i] = m->report.steps[i].b.window_ns;
        lengths[i] = (struct length){out->step_ns[i], i};
    }
    qsort(lengths, n, sizeof *lengths, by_length);
    rp_diff_middle_half(n, &from, &taken);
    for (i = from; i < from + taken; i++) {
        take_step(m, &m->report.steps[lengths[i].step].b);
        m->windows[lengths[i].step].taken = true;
    }
    return RP_OK;
}

static enum rp_code take_steps(struct part_ctx *m, struct rp_err *err)
{
    struct rp_trace_diff_part *out = m->out;
    size_t i, n = m->report.nsteps;
    /* the last one on a device has no end: what follows it was not recorded */
    size_t whole = m->report.steps_on_device && n > 1 ? n - 1 : n;

    m->windows = RP_ARENA_NEW(m->arena, struct rp_diff_window, n + 1);
    if (!m->windows)
        return rp_err_nomem(err, "comparing steps");
    for (i = 0; i < n; i++) {
        const struct rp_step *step = &m->t->steps[i];
        const struct rp_breakdown *b = &m->report.steps[i].b;

        m->windows[i] = (struct rp_diff_window){step->begin_ns, step->end_ns, b->begin_ns,
                                                b->end_ns,      i < whole,    false};
    }
    out->has_steps = n > 0;
    out->nsteps = (int64_t)n;
    out->nwhole = whole;
    if (n)
        return take_typical(m, err);
    take_step(m, &m->report.b);
    out->nwhole = 1;
    out->step_ns = RP_ARENA_NEW(m->arena, int64_t, 1);
    if (!out->step_ns)
        return rp_err_nomem(err, "comparing steps");
    out->step_ns[0] = m->report.b.window_ns;
    return RP_OK;
}

static enum rp_code make_tree(struct part_ctx *m, struct rp_err *err)
{
    struct rp_diff_steps steps = {m->scope, m->report.nsteps, m->windows, m->out->taken};
    struct rp_work work;
    enum rp_code code = rp_work_init(&work, m->t, m->scope, err);

    if (code == RP_OK)
        code = rp_diff_tree_init(&m->out->tree, &work, &steps, m->arena, err);
    rp_work_release(&work);
    return code;
}

static enum rp_code make_part(struct part_ctx *m, struct rp_err *err)
{
    struct rp_trace_diff_part *out = m->out;

    RP_TRY(rp_report_rank(m->t, m->scope, m->arena, &m->report, err));
    out->on_device = m->report.on_device;
    out->limited = m->report.limited;
    out->device = m->report.device;
    out->framework = m->report.framework;
    RP_TRY(take_steps(m, err));
    mean_all(m);
    return make_tree(m, err);
}

enum rp_code rp_trace_diff_rank(const struct rp_trace *trace, const struct rp_scope *scope,
                                struct rp_arena *arena, struct rp_trace_diff_part *out,
                                struct rp_err *err)
{
    static const struct rp_scope whole = {0};
    struct part_ctx m = {.t = trace, .scope = scope ? scope : &whole, .arena = arena, .out = out};
    enum rp_code code;

    *out = (struct rp_trace_diff_part){0};
    code = make_part(&m, err);
    rp_report_part_release(&m.report);
    return code;
}

#define PART(kind, member) RP_PART_##kind(struct rp_trace_diff_part, member)

static const struct rp_field part_fields[] = {
    PART(PLAIN, on_device),
    PART(PLAIN, limited),
    PART(PLAIN, has_steps),
    PART(PLAIN, nsteps),
    PART(PLAIN, taken),
    PART(PLAIN, typical_ns),
    PART(PLAIN, time_ns),
    PART(PLAIN, cause_ns),
    RP_PART_FIELD_(LIST, offsetof(struct rp_trace_diff_part, step_ns),
                   offsetof(struct rp_trace_diff_part, nwhole), RP_PART_PLAIN_TYPE(int64_t)),
    RP_PART_RECORD(struct rp_trace_diff_part, tree, &rp_diff_tree_type),
    PART(TEXT, device),
    PART(TEXT, framework),
    RP_PART_END};
const struct rp_type rp_trace_diff_part_type = {"diff_part", sizeof(struct rp_trace_diff_part),
                                                part_fields, NULL};
