/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one rank's part of a comparison: its step time with its parts, and the call tree of its
 * typical steps. Steps, their parts and the causes of idle time are those of the report. The step
 * time is the median, and its parts are those of the step in the middle (with an even number, the
 * means of the two in the middle), so that they add up to it. The call tree comes from the middle
 * half by length, so that a first step or a hiccup does not count, and times of operators are
 * steadier than in one step.
 */
#include "explain/diff/diff.h"

#include "base/hash.h"
#include "base/order.h"
#include "explain/diff/noise.h"
#include "explain/findings/fragmentation.h"
#include "result/part.h"

#include <stdlib.h>
#include <string.h>

/* The parts of a step except idle, then idle by cause. */
#define SUMS (RP_DIFF_IDLE + RP_GAP_CAUSES + 1)

/* Idle time of one cause while the host ran spans of one name. */
struct idle_host {
    uint8_t cause;
    rp_str name;
    int64_t ns;
};

struct part_ctx {
    const struct rp_trace *t;
    const struct rp_scope *scope;
    struct rp_arena *arena;
    struct rp_trace_diff_part *out;
    const struct rp_report_hints *hints;
    struct rp_report_part report;
    bool simulate;
    struct rp_diff_window *windows;
    size_t *judged; /* by window: its step; those without detail have none, unless all lack it */
    size_t nwindows;
    int64_t sum_ns[SUMS], summed; /* sums over the steps in the middle, and their number */
    struct rp_map host_of; /* from cause and name of what the host ran to the index in hosts */
    RP_VEC(struct idle_host) hosts;
};

/* Adds the gaps in a window by cause; time without a gap lies outside the device work. */
static enum rp_code add_causes(struct part_ctx *m, const struct rp_breakdown *b, struct rp_err *err)
{
    const rp_gap_vec *gaps = &m->report.gaps;
    int64_t rest = b->idle_ns;
    size_t i;

    RP_LOWER_BOUND(i, gaps->n, gaps->at[i].end_ns <= b->begin_ns);
    for (; i < gaps->n && gaps->at[i].begin_ns < b->end_ns; i++) {
        int64_t ns = rp_ns_common(gaps->at[i].begin_ns, gaps->at[i].end_ns, b->begin_ns, b->end_ns);

        rp_ns_add(&m->sum_ns[RP_DIFF_IDLE + gaps->at[i].cause], ns);
        rest = rp_ns_between(ns, rest);

        const struct rp_gap *gap = &gaps->at[i];
        struct idle_host fresh = {gap->cause, 0, 0};
        uint32_t next = (uint32_t)m->hosts.n, at;
        if (gap->host == RP_NONE)
            continue;
        fresh.name = m->t->ev.name[gap->host];
        RP_TRY(rp_map_intern(&m->host_of, (uint64_t)gap->cause << 32 | fresh.name, next, &at, err));
        if (at == next)
            RP_TRY(rp_vec_push(&m->hosts, fresh, err));
        rp_ns_add(&m->hosts.at[at].ns, ns);
    }
    rp_ns_add(&m->sum_ns[SUMS - 1], rest);
    return RP_OK;
}

static enum rp_code add_step(struct part_ctx *m, const struct rp_breakdown *b, struct rp_err *err)
{
    int64_t work = rp_ns_sum(b->compute_ns, b->exposed_comm_ns);

    rp_ns_add(&m->sum_ns[RP_DIFF_COMPUTE], b->compute_ns);
    rp_ns_add(&m->sum_ns[RP_DIFF_COMM], b->exposed_comm_ns);
    rp_ns_add(&m->sum_ns[RP_DIFF_MEMORY], rp_ns_between(work, b->busy_ns));
    m->summed++;
    return add_causes(m, b, err);
}

/* Computes means, rounded along the running sum so that they add up to the mean of the whole. */
static void mean_all(struct part_ctx *m)
{
    struct rp_trace_diff_part *out = m->out;
    int64_t sum = 0, before = 0;

    for (size_t i = 0; i < SUMS; i++) {
        size_t part = i < RP_DIFF_IDLE ? i : RP_DIFF_IDLE;

        rp_ns_add(&sum, m->sum_ns[i]);
        int64_t now = sum / m->summed;
        rp_ns_add(&out->time_ns[part], rp_ns_between(before, now));
        if (i >= RP_DIFF_IDLE)
            out->cause_ns[i - RP_DIFF_IDLE] = rp_ns_between(before, now);
        before = now;
    }
    out->median_ns = before;
}

struct length {
    int64_t ns;
    size_t step;
};

RP_ORDER(by_length, struct length, RP_UP(ns), RP_UP(step))

/* Sorts the steps by length: those in the middle give the step time, the middle half is typical. */
static enum rp_code choose_steps(struct part_ctx *m, struct rp_err *err)
{
    struct rp_trace_diff_part *out = m->out;
    size_t i, from, taken, n = out->nsteps;
    struct length *lengths = RP_ARENA_NEW(m->arena, struct length, n + 1);

    RP_TRY(rp_arena_check(m->arena, "comparing steps", err));
    for (i = 0; i < n; i++) {
        out->step_ns[i] = m->report.steps[m->judged[i]].b.window_ns;
        lengths[i] = (struct length){out->step_ns[i], i};
    }
    qsort(lengths, n, sizeof *lengths, by_length);
    for (i = (n - 1) / 2; i <= n / 2; i++)
        RP_TRY(add_step(m, &m->report.steps[m->judged[lengths[i].step]].b, err));
    rp_diff_middle_half(n, &from, &taken);
    for (i = from; i < from + taken; i++)
        m->windows[lengths[i].step].taken = true;
    out->taken = (int64_t)taken;
    return RP_OK;
}

static struct rp_diff_window window_of(const struct part_ctx *m, size_t i)
{
    const struct rp_step *step = &m->t->steps[i];
    const struct rp_breakdown *b = &m->report.steps[i].b;

    return (struct rp_diff_window){step->begin_ns,
                                   i + 1 < m->t->nsteps ? step[1].begin_ns : step->end_ns,
                                   b->begin_ns, b->end_ns, false};
}

/* Computes the median step of each phase; `scratch` has room for all steps. */
static void measure_phases(struct part_ctx *m, int64_t *scratch)
{
    for (unsigned phase = RP_PHASE_NONE + 1; phase < RP_STEP_PHASES; phase++) {
        struct rp_diff_phase *out = &m->out->phase[phase];
        size_t i, n = 0;

        for (i = 0; i < m->nwindows; i++)
            if (m->t->steps[m->judged[i]].phase == phase)
                scratch[n++] = m->report.steps[m->judged[i]].b.window_ns;
        rp_ns_sort(scratch, n);
        *out = (struct rp_diff_phase){(int64_t)n, n ? rp_ns_median(scratch, n) : 0};
    }
}

static enum rp_code take_steps(struct part_ctx *m, struct rp_err *err)
{
    struct rp_trace_diff_part *out = m->out;
    size_t i, all = out->limited ? 0 : m->report.nsteps, n = 0;

    for (i = 0; i < all; i++)
        n += !m->report.steps[i].no_detail;
    m->windows = RP_ARENA_NEW(m->arena, struct rp_diff_window, all + 1);
    m->judged = RP_ARENA_NEW(m->arena, size_t, all + 1);
    out->step_ns = RP_ARENA_NEW(m->arena, int64_t, all + 1);
    RP_TRY(rp_arena_check(m->arena, "comparing steps", err));
    for (i = 0; i < all; i++) {
        if (n && m->report.steps[i].no_detail)
            continue;
        m->judged[m->nwindows] = i;
        m->windows[m->nwindows++] = window_of(m, i);
    }
    n = m->nwindows;
    measure_phases(m, out->step_ns);
    out->has_steps = n > 0;
    out->nsteps = n ? n : 1;
    if (n)
        return choose_steps(m, err);
    /* two windows of equal length say nothing; only the duration of the work that starts in them
       does */
    const struct rp_breakdown *whole =
        out->limited && !m->scope->step ? &m->report.b : &m->report.whole;
    RP_TRY(add_step(m, whole, err));
    out->taken = 1;
    out->step_ns[0] = whole->window_ns;
    return RP_OK;
}

static enum rp_code make_tree(struct part_ctx *m, struct rp_err *err)
{
    bool by_launch = m->t->nsteps && !(m->t->steps[0].flags & RP_STEP_ON_DEVICE);
    struct rp_diff_steps steps = {m->scope, m->nwindows, m->windows, by_launch, m->out->taken};
    RP_SCOPED(rp_work_release) struct rp_work work = {0};

    RP_TRY(rp_work_init(&work, m->t, m->scope, err));
    return rp_diff_tree_init(&m->out->tree, &work, &steps, m->arena, err);
}

static int64_t time_of(const struct rp_breakdown *b, int time)
{
    switch (time) {
    case RP_DIFF_COMPUTE:
        return b->compute_ns;
    case RP_DIFF_COMM:
        return b->exposed_comm_ns;
    case RP_DIFF_MEMORY:
        return rp_ns_between(rp_ns_sum(b->compute_ns, b->exposed_comm_ns), b->busy_ns);
    default:
        return b->idle_ns;
    }
}

/* Measures what gates need besides the step: how the parts of a step vary, and how much of the
   device is used. */
static enum rp_code measure_gates(struct part_ctx *m, struct rp_err *err)
{
    const struct rp_report_part *report = &m->report;
    struct rp_trace_diff_part *out = m->out;
    size_t i, n = m->nwindows;
    int64_t *values = RP_ARENA_NEW(m->arena, int64_t, 2 * n + 2);

    RP_TRY(rp_arena_check(m->arena, "comparing steps", err));
    for (int t = 0; t < RP_DIFF_TIMES; t++) {
        for (i = 0; i < n; i++)
            values[i] = time_of(&report->steps[m->judged[i]].b, t);
        out->spread_ns[t] = rp_diff_spread(values, n, values + n);
    }
    out->speed = report->speed;
    out->window_ns = report->whole.window_ns;
    out->memory_bytes = rp_memory_peak_of(report) ? rp_memory_peak_of(report)->allocated_bytes : 0;
    for (i = 0; i < n; i++) {
        const struct rp_report_step *s = &report->steps[m->judged[i]];

        out->judged += !s->warm_up && !s->no_detail;
        if (s->tokens != RP_ABSENT_I64 && !s->warm_up)
            out->tokens += (double)s->tokens;
    }
    out->judged = out->judged > 0 ? out->judged : 1;
    return RP_OK;
}

static enum rp_code make_part(struct part_ctx *m, struct rp_err *err)
{
    struct rp_trace_diff_part *out = m->out;

    RP_TRY(rp_report_rank(m->t, m->scope, m->hints, m->arena, &m->report, err));
    out->on_device = m->report.on_device;
    out->limited = m->report.limited;
    out->device = m->report.device;
    out->clock = m->report.clock;
    out->framework = m->report.framework;
    out->libraries = m->report.frameworks;
    out->world_size = m->t->world_size > 0 ? m->t->world_size : 0;
    RP_TRY(take_steps(m, err));
    mean_all(m);

    /* Find for each cause what the host mainly ran. */
    int64_t most[RP_GAP_CAUSES] = {0};
    for (size_t i = 0; i < m->hosts.n; i++) {
        const struct idle_host *h = &m->hosts.at[i];

        if (h->ns <= most[h->cause] ||
            (double)h->ns < RP_DIFF_MAINLY * (double)m->sum_ns[RP_DIFF_IDLE + h->cause])
            continue;
        most[h->cause] = h->ns;
        m->out->cause_host[h->cause] = rp_arena_text(m->arena, rp_trace_str(m->t, h->name));
    }

    RP_TRY(measure_gates(m, err));
    RP_TRY(make_tree(m, err));

    /* Make the model by the rules of the report; its owner changes. */
    if (!m->simulate)
        return RP_OK;
    RP_TRY(rp_report_model(m->t, false, m->arena, &m->report, err));
    m->out->modelled = m->report.modelled;
    m->out->sim = m->report.sim;
    m->report.modelled = false;
    memset(&m->report.sim, 0, sizeof m->report.sim);
    return RP_OK;
}

enum rp_code rp_trace_diff_rank(const struct rp_trace *trace, const struct rp_scope *scope,
                                const struct rp_report_hints *hints, bool simulate,
                                struct rp_arena *arena, struct rp_trace_diff_part *out,
                                struct rp_err *err)
{
    static const struct rp_scope whole = {0};
    struct part_ctx m = {.t = trace,
                         .scope = scope ? scope : &whole,
                         .arena = arena,
                         .out = out,
                         .hints = hints,
                         .simulate = simulate};

    *out = (struct rp_trace_diff_part){0};
    enum rp_code code = make_part(&m, err);
    rp_map_release(&m.host_of);
    rp_vec_release(&m.hosts);
    rp_report_part_release(&m.report);
    return code;
}

#define PART(kind, member) RP_PART_##kind(struct rp_trace_diff_part, member)

#define CAUSE_HOST(name, text, doc) PART(TEXT, cause_host[RP_GAP_##name]),
static const struct rp_field part_fields[] = {
    PART(PLAIN, on_device),
    PART(PLAIN, limited),
    PART(PLAIN, has_steps),
    PART(PLAIN, taken),
    PART(PLAIN, median_ns),
    PART(PLAIN, time_ns),
    PART(PLAIN, phase),
    PART(PLAIN, cause_ns),
    PART(PLAIN, spread_ns),
    PART(PLAIN, speed),
    PART(PLAIN, window_ns),
    PART(PLAIN, memory_bytes),
    PART(PLAIN, judged),
    PART(PLAIN, tokens),
    RP_GAP_CAUSE_MAP(CAUSE_HOST)
        RP_PART_FIELD_(LIST, offsetof(struct rp_trace_diff_part, step_ns),
                       offsetof(struct rp_trace_diff_part, nsteps), RP_PART_PLAIN_TYPE(int64_t)),
    RP_PART_RECORD(struct rp_trace_diff_part, tree, &rp_diff_tree_type),
    PART(TEXT, device),
    PART(TEXT, framework),
    PART(TEXT, libraries),
    PART(PLAIN, world_size),
    PART(PLAIN, clock),
    PART(PLAIN, modelled),
    RP_PART_RECORD(struct rp_trace_diff_part, sim, &rp_sim_part_type),
    PART(PLAIN, has_stacks),
    RP_PART_RECORD(struct rp_trace_diff_part, stacks, &rp_stacks_part_type),
    RP_PART_END};
const struct rp_type rp_trace_diff_part_type = {"diff_part", sizeof(struct rp_trace_diff_part),
                                                part_fields, NULL};
