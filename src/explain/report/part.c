/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one rank's part of the report: its breakdown, gaps, steps, communication kernels and a few
 * sums. Without device work it is made from host operators, and busy is the time in which one runs.
 */
#include "explain/findings/finding.h"
#include "explain/report/report.h"

#include "base/order.h"
#include "cost/devices.h"
#include "facts/host/signs.h"
#include "facts/host/trace_host.h"
#include "facts/times/step_times.h"
#include "job/pipeline.h"
#include "result/print_units.h"
#include "trace/device_calls.h"
#include "trace/meta.h"
#include "trace/words.h"

#include <stdlib.h>

#define MOST_FIRST_WAITS 8
RP_LIMIT(MOST_FIRST_WAITS, "streams",
         "that begin late; with more of them, steps do not separate the waiting");

struct part_ctx {
    const struct rp_report_hints *hints;
    const struct rp_trace *t;
    const struct rp_scope *scope;
    struct rp_arena *arena;
    struct rp_report_part *out;
    struct rp_work w;
    struct rp_work_unions u;
    struct rp_segments segments; /* of the span: what is judged */
    rp_interval_vec compiles;
    struct rp_interval first_waits[MOST_FIRST_WAITS]; /* device_wait before a stream's first work */
    size_t nfirst_waits;
};

static const char *trace_text(const struct part_ctx *ctx, rp_str s)
{
    return s ? rp_arena_text(ctx->arena, rp_trace_str(ctx->t, s)) : NULL;
}

/* Idle time of a cause in [begin, end). Gaps are in the order of time. */
static int64_t idle_in(const rp_gap_vec *gaps, uint8_t cause, int64_t begin_ns, int64_t end_ns)
{
    int64_t sum = 0;
    size_t i;

    RP_LOWER_BOUND(i, gaps->n, gaps->at[i].end_ns <= begin_ns);
    for (; i < gaps->n && gaps->at[i].begin_ns < end_ns; i++)
        if (gaps->at[i].cause == cause)
            rp_ns_add(&sum,
                      rp_ns_common(gaps->at[i].begin_ns, gaps->at[i].end_ns, begin_ns, end_ns));
    return sum;
}

/* How long the first step is busy before its own work begins. It runs work of a step that the
   recording does not mark, because the host runs ahead of the device. */
static int64_t earlier_in(const struct part_ctx *ctx, const struct rp_step *step,
                          struct rp_interval time)
{
    int64_t until = time.begin_ns, sum = 0;

    for (size_t i = 0; i < ctx->w.items.n && ctx->w.items.at[i].begin_ns < time.end_ns; i++) {
        const struct rp_work_item *x = &ctx->w.items.at[i];

        if (x->launch != RP_NONE && ctx->t->ev.ts_ns[x->launch] >= step->begin_ns)
            return sum;
        if (x->end_ns <= until)
            continue;
        until = x->begin_ns > until ? x->begin_ns : until;
        rp_ns_add(&sum, rp_ns_common(x->begin_ns, x->end_ns, until, time.end_ns));
        until = x->end_ns;
    }
    return 0; /* nothing was launched in the step, so nothing is known */
}

/* The part of a time spent waiting before the first recorded work of a stream. */
static int64_t unrecorded_in(const struct part_ctx *ctx, struct rp_interval time)
{
    int64_t sum = 0;

    for (size_t i = 0; i < ctx->nfirst_waits; i++)
        rp_ns_add(&sum, rp_ns_common(ctx->first_waits[i].begin_ns, ctx->first_waits[i].end_ns,
                                     time.begin_ns, time.end_ns));
    return sum;
}

static void make_step(struct part_ctx *ctx, uint32_t at, struct rp_interval time)
{
    const struct rp_step *step = &ctx->t->steps[at];
    struct rp_report_step *s = &ctx->out->steps[ctx->out->nsteps++];

    *s = (struct rp_report_step){
        .number = step->number,
        .name = trace_text(ctx, step->name),
        .phase = rp_word_step_phase(step->phase),
        .requests = step->requests == RP_NO_COUNT ? RP_ABSENT_I64 : step->requests,
        .tokens = step->tokens == RP_NO_COUNT ? RP_ABSENT_I64 : step->tokens,
        .b = rp_work_breakdown_of(&ctx->u, time.begin_ns, time.end_ns),
        .host_ns = rp_ns_between(step->begin_ns, step->end_ns),
        .late_ns = idle_in(&ctx->out->gaps, RP_GAP_NOT_LAUNCHED, time.begin_ns, time.end_ns),
        .work_ns = idle_in(&ctx->out->gaps, RP_GAP_HOST_WORK, time.begin_ns, time.end_ns),
        .drain_ns = idle_in(&ctx->out->gaps, RP_GAP_SYNC_DRAIN, time.begin_ns, time.end_ns),
        .earlier_ns = at ? 0 : earlier_in(ctx, step, time),
        .unrecorded_ns = unrecorded_in(ctx, time),
        .warm_up = step->flags & RP_STEP_WARM_UP,
        .no_detail = step->flags & RP_STEP_NO_DETAIL};
    if (!ctx->scope->limited && !s->warm_up && !rp_step_is_judged(ctx->t, at, time))
        s->no_detail = true; /* the device was not recorded */
}

/* Makes all steps of the trace, or the selected one. */
static enum rp_code make_steps(struct part_ctx *ctx, struct rp_err *err)
{
    struct rp_report_part *out = ctx->out;
    uint32_t i, n = rp_whole_steps(ctx->t);
    struct rp_interval *times;

    RP_TRY(rp_step_times(ctx->t, ctx->arena, &times, err));
    out->recorded_steps = n;
    out->steps = RP_ARENA_NEW(ctx->arena, struct rp_report_step, n + 1);
    RP_TRY(rp_arena_check(ctx->arena, "measuring steps", err));
    if (ctx->scope->limited && !ctx->scope->step)
        return RP_OK;
    if (ctx->scope->limited) {
        make_step(ctx, ctx->scope->step - 1, ctx->scope->span);
        return rp_step_median(&ctx->scope->span, 1, ctx->arena, &out->step_ns, err);
    }
    for (i = 0; i < n; i++)
        make_step(ctx, i, times[i]);
    if (n && rp_step_is_judged(ctx->t, 0, times[0]))
        out->sums.previous_ns =
            rp_work_breakdown_of(&ctx->u, ctx->segments.at[0].begin_ns, times[0].begin_ns)
                .compute_ns;
    return rp_step_median(times, n, ctx->arena, &out->step_ns, err);
}

/* Sums up how long launched work waits: before the first work of a stream, and inside graphs. */
static enum rp_code sum_device_waits(struct part_ctx *ctx, const rp_event *first,
                                     struct rp_err *err)
{
    const struct rp_work_item *items = ctx->w.items.at;
    struct rp_report_sums *sums = &ctx->out->sums;

    RP_TRY(rp_arena_check(ctx->arena, "explaining idle time", err));
    for (size_t i = 0; i < ctx->out->gaps.n; i++) {
        const struct rp_gap *gap = &ctx->out->gaps.at[i];
        int64_t length = rp_ns_between(gap->begin_ns, gap->end_ns);

        if (gap->cause != RP_GAP_DEVICE_WAIT || gap->after == RP_NONE)
            continue;
        if (first[items[gap->after].stream] == items[gap->after].event) {
            rp_ns_add(&ctx->out->sums.first_wait_ns, rp_ns_between(gap->begin_ns, gap->end_ns));
            if (ctx->nfirst_waits < MOST_FIRST_WAITS)
                ctx->first_waits[ctx->nfirst_waits++] =
                    (struct rp_interval){gap->begin_ns, gap->end_ns};
        } else if (gap->before != RP_NONE && items[gap->after].launch != RP_NONE &&
                   items[gap->after].launch == items[gap->before].launch)
            rp_ns_add(&sums->graph_wait_ns, length);
    }
    return RP_OK;
}

static enum rp_code find_gaps(struct part_ctx *ctx, struct rp_err *err)
{
    const struct rp_segments *s = &ctx->segments;
    struct rp_gap_finder *finder;

    RP_TRY(rp_gap_finder_new(ctx->t, &finder, err));
    enum rp_code code = RP_OK;
    for (size_t i = 0; i < s->n && code == RP_OK; i++)
        code = rp_gaps_find_in(finder, &ctx->w, s->at[i].begin_ns, s->at[i].end_ns, &ctx->out->gaps,
                               err);
    rp_gap_finder_free(finder);
    return code;
}

/* What the rank did before each of its collectives. */
static enum rp_code find_leads(struct part_ctx *ctx, struct rp_err *err)
{
    struct rp_report_part *out = ctx->out;
    struct rp_work_unions host = {0};
    enum rp_code code = RP_OK;

    if (!out->collectives.list.n)
        return RP_OK;
    if (!out->on_device)
        code = rp_leads_unite_host(ctx->t, &out->collectives, &host, err);
    if (code == RP_OK)
        code = rp_leads_find(&ctx->w, out->on_device ? &ctx->u : &host, &out->gaps,
                             &out->collectives, ctx->arena, &out->leads, err);
    out->nleads = code == RP_OK ? out->collectives.list.n : 0;
    rp_work_unions_release(&host);
    return code;
}

/* Finds what is judged: the steps, or what is selected. */
static enum rp_code find_segments(struct part_ctx *ctx, struct rp_err *err)
{
    if (!ctx->scope->limited)
        return rp_trace_segments(ctx->t, ctx->arena, &ctx->segments, err);
    ctx->segments = (struct rp_segments){1, RP_ARENA_NEW(ctx->arena, struct rp_interval, 1)};
    RP_TRY(rp_arena_check(ctx->arena, "measuring steps", err));
    ctx->segments.at[0] = ctx->scope->span;
    return RP_OK;
}

/* Computes the breakdown of all segments. */
static void measure_span(struct part_ctx *ctx)
{
    const struct rp_segments *s = &ctx->segments;

    ctx->out->whole = rp_work_breakdown_of(&ctx->u, s->at[0].begin_ns, s->at[0].end_ns);
    for (size_t i = 1; i < s->n; i++) {
        struct rp_breakdown more =
            rp_work_breakdown_of(&ctx->u, s->at[i].begin_ns, s->at[i].end_ns);

        rp_breakdown_add(&ctx->out->whole, &more);
    }
}

/* If only calls in which threads wait were recorded (dftracer), the time in them is waiting, and
   the rest is unknown. */
static enum rp_code tell_waits(struct part_ctx *ctx, struct rp_err *err)
{
    struct rp_report_pauses *p = &ctx->out->pauses;
    const struct rp_trace *t = ctx->t;
    rp_interval_vec waits = {0};
    enum rp_code code = RP_OK;

    if (!ctx->out->waits.main_ns || !rp_report_knows_no_work(ctx->out))
        return RP_OK;
    for (rp_event e = 0; e < t->ev.n && code == RP_OK; e++)
        if (rp_event_is_host_wait(t, e) && !rp_track_is_worker(t, t->ev.track[e]))
            code = rp_vec_push(&waits,
                               ((struct rp_interval){t->ev.ts_ns[e], rp_event_end_ns(t, e)}), err);
    waits.n = rp_union_sort(waits.at, waits.n);
    int64_t ns = rp_union_common(waits.at, waits.n, ctx->segments.at, ctx->segments.n);
    rp_vec_release(&waits);
    ns = ns < p->ns[RP_PAUSE_NOTHING] ? ns : p->ns[RP_PAUSE_NOTHING];
    p->ns[RP_PAUSE_NOTHING] -= ns;
    rp_ns_add(&p->ns[RP_PAUSE_WAIT], ns);
    for (size_t i = 0; i < ctx->out->waits.rows.n; i++) {
        const struct rp_host_wait *row = &ctx->out->waits.rows.at[i];

        p->count[RP_PAUSE_WAIT] += row->worker ? 0 : row->count;
        if (!row->worker && row->longest_ns > p->longest_ns[RP_PAUSE_WAIT])
            p->longest_ns[RP_PAUSE_WAIT] = row->longest_ns;
    }
    return code;
}

/* Finds when the work of the first step begins, if the device still runs that of the step
   before. */
static enum rp_code own_work_from(struct part_ctx *ctx, int64_t *out, struct rp_err *err)
{
    struct rp_interval *times;

    *out = INT64_MIN;
    if (ctx->scope->limited || !ctx->t->nsteps)
        return RP_OK;
    RP_TRY(rp_step_times(ctx->t, ctx->arena, &times, err));
    if (!rp_step_is_judged(ctx->t, 0, times[0]))
        return RP_OK;
    *out = times[0].begin_ns;
    ctx->out->speed.earlier_ns =
        rp_ns_common(ctx->segments.at[0].begin_ns, ctx->segments.at[0].end_ns, INT64_MIN, *out);
    return RP_OK;
}

static struct rp_finding_rank finding_rank(struct part_ctx *ctx)
{
    return (struct rp_finding_rank){.trace = ctx->t,
                                    .on_device = ctx->out->on_device,
                                    .judged = &ctx->segments,
                                    .compiles = &ctx->compiles,
                                    .work = &ctx->w,
                                    .gaps = &ctx->out->gaps,
                                    .arena = ctx->arena};
}

/* What findings measure, and the speed: by what the operators cost, beside what the device can do,
   where its peaks are known. */
static enum rp_code judge_work(struct part_ctx *ctx, struct rp_trace_categories *categories,
                               struct rp_err *err)
{
    const struct rp_device *d = ctx->t->ndevices ? &ctx->t->devices[0] : NULL;
    const struct rp_device_peaks *device =
        d ? rp_device_recognise(rp_trace_str(ctx->t, d->name), d->memory_bytes) : NULL;
    struct rp_finding_rank rank = finding_rank(ctx);
    RP_SCOPED(rp_op_costs_release) struct rp_op_costs costs = {0};
    RP_SCOPED(rp_cost_calls_release) struct rp_cost_calls calls = {0};
    struct rp_cost_peaks peaks;
    int64_t from_ns;

    if (!device)
        return rp_findings_measure(&rank, ctx->out, err);
    rp_cost_peaks_of_device(&peaks, device);
    RP_TRY(own_work_from(ctx, &from_ns, err));
    RP_TRY(rp_op_costs_init(&costs, categories, err));
    RP_TRY(rp_cost_calls_init(&calls, &costs, &ctx->w, ctx->hints->known, ctx->hints->user, err));
    RP_TRY(rp_cost_calls_limit(&calls, &costs, &peaks, err));
    rank.costs = &costs;
    rank.calls = &calls;
    rank.peaks = &peaks;
    RP_TRY(rp_findings_measure(&rank, ctx->out, err));
    return rp_speed_add_calls(&ctx->out->speed, &ctx->w, &costs, &calls, &peaks, from_ns, err);
}

static enum rp_code read_device(struct part_ctx *ctx, struct rp_err *err)
{
    struct rp_report_part *out = ctx->out;

    /* The first work of each stream. */
    rp_event *first = RP_ARENA_NEW(ctx->arena, rp_event, ctx->w.streams.n + 1);
    for (size_t i = ctx->w.items.n; first && i > 0; i--)
        first[ctx->w.items.at[i - 1].stream] = ctx->w.items.at[i - 1].event;

    RP_SCOPED(rp_trace_categories_release) struct rp_trace_categories categories = {0};
    RP_SCOPED(rp_attribution_release) struct rp_attribution a = {0};

    out->on_device = true;
    out->b = rp_work_breakdown(&ctx->u);
    measure_span(ctx);

    /* Idle time of the window that began before the next work was launched. */
    const struct rp_work_item *items = ctx->w.items.at;
    int64_t end = INT64_MAX;
    for (size_t i = 0; i < ctx->w.items.n; i++) {
        const struct rp_work_item *x = &items[i];

        if (x->begin_ns > end && (x->flags & RP_WORK_CORRELATED) &&
            ctx->t->ev.ts_ns[x->launch] > end)
            rp_ns_add(&ctx->out->late_ns, rp_ns_between(end, x->begin_ns));
        end = i && end > x->end_ns ? end : x->end_ns;
    }

    /* Unites all work except copies; it is in the order of time. */
    for (size_t i = 0; i < ctx->w.items.n; i++) {
        const struct rp_work_item *x = &ctx->w.items.at[i];

        if (x->cls != RP_WORK_MEMORY)
            RP_TRY(rp_union_add(&ctx->out->kernels, x->begin_ns, x->end_ns, err));
    }

    RP_TRY(rp_collectives_init(&out->collectives, &ctx->w, ctx->scope, ctx->arena, err));
    if (!ctx->scope->limited)
        RP_TRY(rp_course_make(&out->course, &ctx->w, &out->collectives, ctx->arena, err));
    rp_segments_keep_work(&ctx->segments, &ctx->w);
    RP_TRY(find_gaps(ctx, err));
    RP_TRY(rp_idle_add_up(&ctx->w, &out->gaps, ctx->arena, &out->idle_causes, &out->nidle_causes,
                          err));
    RP_TRY(sum_device_waits(ctx, first, err));
    out->sums.overhead_ns = ctx->t->totals.dur_ns[RP_KIND_OVERHEAD];
    rp_trace_categories_init(&categories, ctx->t, ctx->hints->categories);
    RP_TRY(rp_attribution_init(&a, &ctx->w, err));
    out->coverage = a.coverage;
    RP_TRY(rp_report_sum_categories(&ctx->w, &a, &categories, out, err));
    RP_TRY(judge_work(ctx, &categories, err));
    RP_TRY(rp_pitfall_unequal(&ctx->w, &a, ctx->arena, &out->unequal, err));
    return rp_pitfall_streams(&ctx->w, out->b.compute_ns, ctx->arena, &out->streams, err);
}

/* Whether an operator ran in another process than the loop: in a worker of its data loader, whose
   time counts for the loader. In files of other frameworks, devices are processes. */
static bool is_of_worker(const struct rp_trace *t, rp_event e)
{
    const struct rp_step *first = t->steps;

    if (!t->nsteps || first->mark == RP_NONE ||
        (first->source != RP_STEP_PROFILER && first->source != RP_STEP_OPTIMIZER &&
         first->source != RP_STEP_LOADER && first->source != RP_STEP_BACKWARD))
        return false;
    return t->ev.kind[e] == RP_KIND_CPU_OP &&
           t->tracks[t->ev.track[e]].process != t->tracks[t->ev.track[first->mark]].process;
}

/* XLA on the CPU runs a program: while no operation of it is recorded, part of one runs on other
   threads. */
static bool is_executor(const struct rp_trace *t, rp_event e)
{
    static const char name[] = "ThunkExecutor::Execute";

    return t->ev.kind[e] == RP_KIND_ANNOTATION &&
           !strncmp(rp_trace_str(t, t->ev.name[e]), name, sizeof name - 1);
}

bool rp_report_is_host_work(const struct rp_trace *trace, const struct rp_scope *scope, rp_event e)
{
    const struct rp_events *ev = &trace->ev;
    uint8_t kind = ev->kind[e];
    int64_t ts = ev->ts_ns[e];

    if (ev->dur_ns[e] < 0 || ts == RP_NO_TS || !rp_scope_has(scope, ts) || is_of_worker(trace, e))
        return false;
    /* without operators, ranges that were named by hand are all there is */
    if (!trace->totals.count[RP_KIND_CPU_OP] &&
        (kind == RP_KIND_ANNOTATION || kind == RP_KIND_OTHER))
        return true;
    return kind == RP_KIND_CPU_OP || kind == RP_KIND_TRANSFER || is_executor(trace, e) ||
           rp_event_is_host_collective(trace, e);
}

/* Whether ranges that the program marks are all that is known about the host's work. */
static bool is_by_ranges(const struct rp_trace *t)
{
    return !t->totals.count[RP_KIND_CPU_OP] &&
           (t->totals.count[RP_KIND_ANNOTATION] || rp_trace_has_calls_only(t));
}

/* Whether a host span is communication: by its kind, or by the name of a collective. */
static bool is_host_comm(const struct part_ctx *ctx, rp_event e)
{
    uint8_t kind = ctx->t->ev.kind[e];

    return kind == RP_KIND_TRANSFER || ctx->t->str.name_class[ctx->t->ev.name[e]] == RP_NAME_COMM ||
           rp_event_is_host_collective(ctx->t, e);
}

enum { IN_OPERATOR = 1, IN_LOADER = 2 }; /* what surrounds an event */

/* Whether a span is a request for input data; each name is examined once. */
static bool loads_input(const struct rp_trace *t, rp_event e, uint8_t *by_name)
{
    uint8_t *known = &by_name[t->ev.name[e]];

    if (!*known)
        *known = rp_host_signs(rp_trace_str(t, t->ev.name[e])) & RP_SIGN_DATA ? 2 : 1;
    return *known == 2;
}

/* Adds the host operators to the unions, and sums up those that are not nested. */
static enum rp_code add_host_work(struct part_ctx *ctx, bool by_ranges, uint8_t *inside,
                                  uint8_t *by_name, struct rp_err *err)
{
    const struct rp_events *ev = &ctx->t->ev;
    rp_interval_vec *all = &ctx->u.all, *cls = ctx->u.cls;

    for (rp_event e = 0; e < ev->n; e++) {
        struct rp_interval i = {ev->ts_ns[e], rp_event_end_ns(ctx->t, e)};
        rp_event parent = ev->parent[e]; /* comes before e */

        inside[e] = parent == RP_NONE
                        ? 0
                        : inside[parent] | (ev->kind[parent] == RP_KIND_CPU_OP ? IN_OPERATOR : 0);
        if (loads_input(ctx->t, e, by_name))
            inside[e] |= IN_LOADER;
        ctx->out->sums.open_collectives += ev->kind[e] == RP_KIND_COMM_OP && ev->dur_ns[e] < 0;
        if ((inside[e] & IN_LOADER) || !rp_report_is_host_work(ctx->t, ctx->scope, e))
            continue;
        if (is_host_comm(ctx, e)) {
            RP_TRY(rp_vec_push(&cls[RP_WORK_COMM], i, err));
            RP_TRY(rp_vec_push(all, i, err));
        } else if (!by_ranges) {
            RP_TRY(rp_vec_push(&cls[RP_WORK_COMPUTE], i, err));
            RP_TRY(rp_vec_push(all, i, err));
        }
        ctx->out->sums.host_ops++;
        if (!(inside[e] & IN_OPERATOR))
            rp_ns_add(&ctx->out->sums.host_op_ns, rp_ns_between(i.begin_ns, i.end_ns));
    }
    return RP_OK;
}

/* Uses host operators instead of device work: fills the unions from them. */
static enum rp_code read_host(struct part_ctx *ctx, struct rp_err *err)
{
    rp_interval_vec *all = &ctx->u.all, *cls = ctx->u.cls;
    bool by_ranges = ctx->out->by_ranges = is_by_ranges(ctx->t);
    struct rp_finding_rank rank = finding_rank(ctx);
    uint8_t *inside; /* by event: what is around it; then by string: whether it loads input */

    if (!ctx->scope->limited) {
        /* Count calls that start device work, if no such work was recorded. */
        for (rp_event e = 0; e < ctx->t->ev.n; e++)
            ctx->out->sums.lost_work +=
                ctx->t->ev.kind[e] == RP_KIND_RUNTIME &&
                rp_device_call_does(rp_trace_str(ctx->t, ctx->t->ev.name[e])) & RP_DOES_WORK;
    }
    ctx->out->by_calls = rp_trace_has_calls_only(ctx->t);
    ctx->out->sums.timeline_ranks = rp_trace_pipeline_ranks(ctx->t);
    if (by_ranges)
        RP_TRY(rp_ranges_unite(ctx->t, ctx->scope, &cls[RP_WORK_COMPUTE], err));
    for (size_t k = 0; k < cls[RP_WORK_COMPUTE].n; k++)
        RP_TRY(rp_vec_push(all, cls[RP_WORK_COMPUTE].at[k], err));
    inside = calloc((size_t)ctx->t->ev.n + ctx->t->str.n + 1, sizeof *inside);
    enum rp_code code = inside ? add_host_work(ctx, by_ranges, inside, inside + ctx->t->ev.n, err)
                               : rp_err_nomem(err, "looking at the work of the host");
    free(inside);
    RP_TRY(code);
    all->n = rp_union_sort(all->at, all->n);
    for (int c = 0; c < RP_WORK_CLASSES; c++)
        cls[c].n = rp_union_sort(cls[c].at, cls[c].n);
    ctx->out->b = rp_work_breakdown(&ctx->u);
    RP_TRY(rp_collectives_init(&ctx->out->collectives, &ctx->w, ctx->scope, ctx->arena, err));
    measure_span(ctx);
    RP_TRY(rp_findings_measure(&rank, ctx->out, err));
    RP_TRY(rp_report_find_pauses(ctx->t, all, &ctx->segments, ctx->arena, &ctx->out->pauses, NULL,
                                 err));
    if (ctx->t->samples.n && ctx->t->samples.unit != RP_WEIGHT_BYTES)
        RP_TRY(rp_stacks_make(ctx->t, ctx->scope, &(struct rp_stacks_how){0}, ctx->arena,
                              &ctx->out->stacks, err));
    return rp_report_measure_latency(ctx->t, ctx->arena, &ctx->out->latency, err);
}

/* " at train.py:88: ValueError: …", from what the recorder notes when an exception ends Python. */
static const char *ended_text(struct part_ctx *ctx)
{
    static const char begin[] = "it ended";
    const char *note = rp_trace_is_ours(ctx->t) ? rp_trace_note(ctx->t, "error") : NULL;

    if (!note || strncmp(note, begin, sizeof begin - 1) != 0)
        return NULL;
    note += sizeof begin - 1;
    size_t n = strlen(note);
    return rp_arena_copy(ctx->arena, note, n && note[n - 1] == '"' ? n - 1 : n);
}

/* Writes "NVIDIA H200"; for a device without a recorded name what is known about it; NULL if no
   device is described. */
static const char *device_text(struct part_ctx *ctx)
{
    const struct rp_device *d = ctx->t->devices;
    const char *name = ctx->t->ndevices ? rp_trace_str(ctx->t, d->name) : NULL;

    if (!name || *name)
        return name ? trace_text(ctx, d->name) : NULL;
    if (!d->memory_bytes || !d->multiprocessors)
        return "unnamed device";
    return rp_arena_textf(ctx->arena, "unnamed device (%s, %s)",
                          rp_units_count(ctx->arena, d->multiprocessors, "multiprocessor"),
                          rp_units_text(ctx->arena, (double)d->memory_bytes, RP_UNIT_BYTES));
}

/* Whether a collective sends elements of 16 bits or fewer, by its type or the name of its kernel:
   ncclDevKernel_AllReduce_Sum_bf16_RING_LL. */
static bool is_half(const struct rp_collective *c)
{
    static const char *const types[] = {"bf16", "f16", "f8", "half", "bfloat"};
    const char *text = c->dtype ? c->dtype : c->name;

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strstr(text, types[i]))
            return true;
    return false;
}

/* Finds what communicates most, and whether it sends elements of 16 bits or fewer. */
static void describe_collectives(const struct rp_collectives *c, struct rp_workload *out)
{
    int64_t ns[RP_COLL_KINDS] = {0}, half_ns[RP_COLL_KINDS] = {0};

    for (size_t i = 0; i < c->list.n; i++) {
        const struct rp_collective *x = &c->list.at[i];
        int64_t took = rp_ns_between(x->begin_ns, x->end_ns);

        rp_ns_add(&ns[x->kind], took);
        if (is_half(x))
            rp_ns_add(&half_ns[x->kind], took);
    }
    for (size_t i = 0; i < RP_COLL_KINDS; i++)
        if (ns[i] > ns[out->collective])
            out->collective = (uint8_t)i;
    out->half_comm = half_ns[out->collective] > ns[out->collective] / 2;
}

/* Whether most of the device time is in graphs, whose work may be recorded as a single item. */
static bool is_mostly_graphs(const struct part_ctx *ctx)
{
    int64_t graphs = ctx->out->coverage.graph_ns;

    for (size_t i = 0; i < ctx->w.items.n; i++) {
        const struct rp_work_item *x = &ctx->w.items.at[i];

        if (x->launch != RP_NONE && !rp_work_is_of_graph(&ctx->w, x) &&
            rp_device_call_does(rp_trace_str(ctx->t, ctx->t->ev.name[x->launch])) &
                RP_DOES_LAUNCH_GRAPH)
            rp_ns_add(&graphs, rp_ns_between(x->begin_ns, x->end_ns));
    }
    return graphs > ctx->out->coverage.device_ns / 2;
}

static enum rp_code fill_part(struct part_ctx *ctx, struct rp_err *err)
{
    struct rp_report_part *out = ctx->out;
    struct rp_judged judged;

    RP_TRY(rp_work_init(&ctx->w, ctx->t, ctx->scope, err));
    RP_TRY(find_segments(ctx, err));
    RP_TRY(rp_report_find_compiles(ctx->t, ctx->hints->path, &ctx->compiles, err));
    RP_TRY(rp_report_list_devices(&ctx->w, ctx->arena, out, err));
    RP_TRY(rp_work_unite(&ctx->w, &ctx->u, err));
    RP_TRY(ctx->w.items.n ? read_device(ctx, err) : read_host(ctx, err));
    RP_TRY(rp_host_waits_init(&ctx->out->waits, ctx->t, ctx->segments.at, ctx->segments.n,
                              ctx->arena, err));
    RP_TRY(tell_waits(ctx, err));
    RP_TRY(find_leads(ctx, err));
    RP_TRY(make_steps(ctx, err));
    RP_TRY(
        rp_report_say_longer(ctx->t, out->steps, out->nsteps, ctx->w.items.n > 0, ctx->arena, err));
    RP_TRY(rp_pitfall_steps(ctx->t, out->steps, out->nsteps, &ctx->compiles, ctx->arena,
                            &out->untypical, err));
    RP_TRY(rp_host_calls_init(&out->calls, ctx->t, ctx->scope, rp_stall_usual.floor_ns, ctx->arena,
                              err));
    RP_TRY(rp_judged_find(ctx->t, ctx->scope, ctx->arena, &judged, err));
    rp_judged_keep_calls(&judged, ctx->t, &out->calls);
    RP_TRY(rp_report_explain_stalls(ctx->t, &ctx->u.all, ctx->arena, &out->calls, err));
    for (size_t i = 0; i < ctx->segments.n; i++)
        RP_TRY(rp_vec_push(&out->judged, ctx->segments.at[i], err));
    out->compute = ctx->u.cls[RP_WORK_COMPUTE];
    ctx->u.cls[RP_WORK_COMPUTE] = (rp_interval_vec){0};
    out->busy = ctx->u.all;
    ctx->u.all = (rp_interval_vec){0};
    out->limited = ctx->scope->limited;
    if (!out->limited)
        RP_TRY(rp_report_find_requests(ctx->t, ctx->arena, out, err));
    if (!out->limited)
        RP_TRY(rp_outside_measure(ctx->t, ctx->arena, &out->outside, err));
    out->cut_to_device = !out->limited && out->on_device && !ctx->t->nsteps &&
                         rp_outside_text(&out->outside, out->whole.window_ns, ctx->arena);
    if (!out->limited)
        RP_TRY(rp_report_sort_steps(ctx->t, &ctx->w, ctx->arena, out, err));
    rp_trace_life_find(ctx->t, &out->life);
    out->device = device_text(ctx);
    out->framework = trace_text(ctx, ctx->t->framework);
    out->frameworks = rp_trace_frameworks(ctx->t, ctx->arena);
    out->ended = ended_text(ctx);
    RP_TRY(rp_workload_find(ctx->t, &out->workload, err));
    RP_TRY(rp_device_clock_find(ctx->t, &ctx->segments, ctx->arena, &out->clock, err));
    out->workload.no_bf16 =
        rp_device_half(out->device ? rp_device_recognise(out->device, 0) : NULL) == RP_NUMBER_FP16;
    out->workload.in_graphs = is_mostly_graphs(ctx);
    describe_collectives(&out->collectives, &out->workload);
    return rp_report_find_hot(ctx->t, ctx->scope, &ctx->segments, ctx->arena, out, err);
}

enum rp_code rp_report_rank(const struct rp_trace *trace, const struct rp_scope *scope,
                            const struct rp_report_hints *hints, struct rp_arena *arena,
                            struct rp_report_part *out, struct rp_err *err)
{
    static const struct rp_scope whole = {0};
    static const struct rp_report_hints no_hints = {0};
    struct part_ctx ctx = {.t = trace,
                           .scope = scope ? scope : &whole,
                           .hints = hints ? hints : &no_hints,
                           .arena = arena,
                           .out = out};

    *out = (struct rp_report_part){.step_ns = RP_ABSENT_I64};
    enum rp_code code = fill_part(&ctx, err);
    rp_work_release(&ctx.w);
    rp_work_unions_release(&ctx.u);
    rp_vec_release(&ctx.compiles);
    return code;
}

void rp_report_part_release(struct rp_report_part *part)
{
    rp_vec_release(&part->gaps);
    rp_lines_release(&part->lines);
    rp_collectives_release(&part->collectives);
    rp_host_calls_release(&part->calls);
    rp_host_waits_release(&part->waits);
    rp_vec_release(&part->stacks.frames);
    rp_vec_release(&part->stacks.nodes);
    rp_vec_release(&part->compute);
    rp_vec_release(&part->busy);
    rp_vec_release(&part->kernels);
    rp_vec_release(&part->judged);
}
