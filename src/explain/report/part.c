/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank's part of the report: its breakdown, gaps, steps, communication kernels and a few sums.
 * Without device work the same is made of host operators: busy is the time in which one runs.
 */
#include "explain/report/report.h"

#include "base/order.h"
#include "trace/names.h"

#define TINY_NS         10000
#define MOST_COPY_NAMES 64

struct copy_name {
    rp_str name;
    int64_t ns;
};

struct part_ctx {
    const struct rp_trace *t;
    const struct rp_scope *scope;
    struct rp_arena *arena;
    struct rp_report_part *out;
    struct rp_work w;
    struct rp_work_unions u;
};

static const char *trace_text(const struct part_ctx *ctx, rp_str s)
{
    return s ? rp_arena_text(ctx->arena, rp_trace_str(ctx->t, s)) : NULL;
}

/* First device work of each step, by launch; INT64_MAX where a step has none. */
static void find_step_begins(const struct part_ctx *ctx, int64_t *begin)
{
    const struct rp_trace *t = ctx->t;
    uint32_t s;
    size_t i;

    for (s = 0; s < t->nsteps; s++)
        begin[s] = INT64_MAX;
    for (i = 0; i < ctx->w.items.n; i++) {
        const struct rp_work_item *x = &ctx->w.items.at[i];
        size_t after;
        int64_t at;

        if (x->launch == RP_NONE)
            continue;
        at = t->ev.ts_ns[x->launch];
        RP_LOWER_BOUND(after, t->nsteps, t->steps[after].begin_ns <= at);
        if (after && at < t->steps[after - 1].end_ns && x->begin_ns < begin[after - 1])
            begin[after - 1] = x->begin_ns;
    }
}

/* The median duration of the steps; of one step, the length of its mark. */
static int64_t step_time(const struct part_ctx *ctx, int64_t *scratch)
{
    size_t i, n = ctx->out->nsteps;

    if (n == 0)
        return RP_ABSENT_I64;
    if (n == 1)
        return ctx->out->steps[0].host_ns;
    for (i = 0; i < n; i++)
        scratch[i] = ctx->out->steps[i].b.window_ns;
    rp_ns_sort(scratch, n);
    return rp_ns_median(scratch, n);
}

/* Idle time in [begin, end) with a cause. Gaps are in time order. */
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

/* Whether every step has device work, and they begin in their order. */
static bool all_on_device(const int64_t *begin, uint32_t n)
{
    uint32_t i;

    for (i = 0; i < n && begin[i] != INT64_MAX && (!i || begin[i] >= begin[i - 1]); i++)
        ;
    return i == n;
}

/* A step lasts until the next one begins. The last one lasts until the last device work ends, or
   its mark where steps begin with their marks. */
static enum rp_code make_steps(struct part_ctx *ctx, struct rp_err *err)
{
    struct rp_report_part *out = ctx->out;
    uint32_t i, n = ctx->t->nsteps;
    int64_t *begin = RP_ARENA_NEW(ctx->arena, int64_t, n + 1);
    int64_t *scratch = RP_ARENA_NEW(ctx->arena, int64_t, n + 1);

    out->steps = RP_ARENA_NEW(ctx->arena, struct rp_report_step, n + 1);
    RP_TRY(rp_arena_check(ctx->arena, "measuring steps", err));
    if (ctx->scope->limited || !n)
        return RP_OK;
    find_step_begins(ctx, begin);
    out->steps_on_device = ctx->w.items.n && all_on_device(begin, n);
    for (i = 0; i < n && !out->steps_on_device; i++)
        begin[i] = ctx->t->steps[i].begin_ns;
    begin[n] = out->steps_on_device ? out->b.end_ns : ctx->t->steps[n - 1].end_ns;
    for (i = 0; i < n; i++) {
        const struct rp_step *step = &ctx->t->steps[i];
        struct rp_report_step *s = &out->steps[out->nsteps++];
        int64_t from = begin[i], to = begin[i + 1] > from ? begin[i + 1] : from;

        *s = (struct rp_report_step){.number = step->number, .name = trace_text(ctx, step->name)};
        s->b = rp_work_breakdown_of(&ctx->u, from, to);
        s->host_ns = rp_ns_between(step->begin_ns, step->end_ns);
        s->late_ns = idle_in(&out->gaps, RP_GAP_NOT_LAUNCHED, from, to);
        s->drain_ns = idle_in(&out->gaps, RP_GAP_SYNC_DRAIN, from, to);
    }
    out->step_ns = step_time(ctx, scratch);
    return RP_OK;
}

static void sum_kernels(struct part_ctx *ctx)
{
    struct rp_report_sums *sums = &ctx->out->sums;
    size_t i;

    for (i = 0; i < ctx->w.items.n; i++) {
        const struct rp_work_item *x = &ctx->w.items.at[i];
        int64_t dur = rp_ns_between(x->begin_ns, x->end_ns);

        if (x->cls != RP_WORK_COMPUTE)
            continue;
        sums->kernels++;
        sums->tiny_kernels += dur < TINY_NS;
    }
    for (i = 0; i < ctx->out->gaps.n; i++) {
        const struct rp_gap *gap = &ctx->out->gaps.at[i];
        const struct rp_work_item *x = &ctx->w.items.at[gap->after];
        int64_t length = rp_ns_between(gap->begin_ns, gap->end_ns);

        rp_ns_add(&ctx->out->late_ns, gap->cls == RP_GAP_CLASS_NOT_LAUNCHED ? length : 0);
        if (gap->cause == RP_GAP_LAUNCH_LATENCY && x->cls == RP_WORK_COMPUTE &&
            rp_ns_between(x->begin_ns, x->end_ns) < TINY_NS)
            rp_ns_add(&sums->tiny_gap_ns, length);
    }
    sums->overhead_ns = ctx->t->totals.dur_ns[RP_KIND_OVERHEAD];
}

/* The copies and memsets, and the name that takes most of their time: there are few names. */
static enum rp_code sum_copies(struct part_ctx *ctx, struct rp_err *err)
{
    struct rp_report_sums *sums = &ctx->out->sums;
    RP_VEC(struct copy_name) names = {0};
    enum rp_code code = RP_OK;
    rp_str best = 0;
    size_t i, k;

    for (i = 0; i < ctx->w.items.n && code == RP_OK; i++) {
        const struct rp_work_item *x = &ctx->w.items.at[i];
        struct copy_name fresh = {ctx->t->ev.name[x->event], 0};

        if (x->cls != RP_WORK_MEMORY)
            continue;
        sums->copies++;
        for (k = 0; k < names.n && names.at[k].name != fresh.name; k++)
            ;
        if (k == MOST_COPY_NAMES)
            continue;
        if (k == names.n)
            code = rp_vec_push(&names, fresh, err);
        if (code == RP_OK)
            rp_ns_add(&names.at[k].ns, rp_ns_between(x->begin_ns, x->end_ns));
    }
    for (k = 0; k < names.n; k++)
        if (names.at[k].ns > sums->copy_name_ns) {
            sums->copy_name_ns = names.at[k].ns;
            best = names.at[k].name;
        }
    sums->copy_name = trace_text(ctx, best);
    rp_vec_release(&names);
    return code;
}

/* The union of all work other than copies; work is in time order. */
static enum rp_code unite_kernels(struct part_ctx *ctx, struct rp_err *err)
{
    size_t i;

    for (i = 0; i < ctx->w.items.n; i++) {
        const struct rp_work_item *x = &ctx->w.items.at[i];

        if (x->cls != RP_WORK_MEMORY)
            RP_TRY(rp_union_add(&ctx->out->kernels, x->begin_ns, x->end_ns, err));
    }
    return RP_OK;
}

static enum rp_code read_device(struct part_ctx *ctx, struct rp_err *err)
{
    struct rp_report_part *out = ctx->out;
    struct rp_attribution a;
    enum rp_code code;

    out->on_device = true;
    out->b = rp_work_breakdown(&ctx->u);
    RP_TRY(rp_gaps_find(&ctx->w, &out->gaps, err));
    RP_TRY(rp_idle_add_up(&ctx->w, &out->gaps, ctx->arena, &out->idle_causes, &out->nidle_causes,
                          err));
    code = rp_attribution_init(&a, &ctx->w, err);
    out->coverage = a.coverage;
    if (code == RP_OK)
        code = rp_pitfall_unequal(&ctx->w, &a, ctx->arena, &out->unequal, err);
    if (code == RP_OK)
        code = rp_pitfall_streams(&ctx->w, out->b.compute_ns, ctx->arena, &out->streams, err);
    rp_attribution_release(&a);
    RP_TRY(code);
    sum_kernels(ctx);
    RP_TRY(sum_copies(ctx, err));
    RP_TRY(unite_kernels(ctx, err));
    return rp_report_check_device(&ctx->w, &out->gaps, ctx->arena, &out->wrong, err);
}

bool rp_report_is_host_work(const struct rp_trace *trace, const struct rp_scope *scope, rp_event e)
{
    const struct rp_events *ev = &trace->ev;
    uint8_t kind = ev->kind[e];
    int64_t ts = ev->ts_ns[e];

    if (ev->dur_ns[e] < 0 || ts == RP_NO_TS || !rp_scope_has(scope, ts))
        return false;
    /* without operators, what was named by hand is all there is */
    if (!trace->totals.count[RP_KIND_CPU_OP] &&
        (kind == RP_KIND_ANNOTATION || kind == RP_KIND_OTHER))
        return true;
    return kind == RP_KIND_CPU_OP || kind == RP_KIND_TRANSFER ||
           rp_event_is_host_collective(trace, e);
}

/* Whether a host span is communication: by its kind, or by the name of a collective. */
static bool is_host_comm(const struct part_ctx *ctx, rp_event e)
{
    uint8_t kind = ctx->t->ev.kind[e];

    return kind == RP_KIND_TRANSFER || ctx->t->str.name_class[ctx->t->ev.name[e]] == RP_NAME_COMM ||
           rp_event_is_host_collective(ctx->t, e);
}

/* Host operators instead of device work: the unions are filled from them. */
static enum rp_code read_host(struct part_ctx *ctx, struct rp_err *err)
{
    rp_interval_vec *all = &ctx->u.all, *cls = ctx->u.cls;
    rp_event e;
    int c;

    for (e = 0; e < ctx->t->ev.n; e++) {
        struct rp_interval i = {ctx->t->ev.ts_ns[e], rp_event_end_ns(ctx->t, e)};

        if (!rp_report_is_host_work(ctx->t, ctx->scope, e))
            continue;
        RP_TRY(rp_vec_push(all, i, err));
        RP_TRY(rp_vec_push(&cls[is_host_comm(ctx, e) ? RP_WORK_COMM : RP_WORK_COMPUTE], i, err));
        ctx->out->sums.host_ops++;
        rp_ns_add(&ctx->out->sums.host_op_ns,
                  rp_event_around(ctx->t, ctx->t->ev.parent[e], RP_KIND_CPU_OP) == RP_NONE
                      ? rp_ns_between(i.begin_ns, i.end_ns)
                      : 0);
    }
    all->n = rp_union_sort(all->at, all->n);
    for (c = 0; c < RP_WORK_CLASSES; c++)
        cls[c].n = rp_union_sort(cls[c].at, cls[c].n);
    ctx->out->b = rp_work_breakdown(&ctx->u);
    RP_TRY(rp_report_find_pauses(ctx->t, all, ctx->arena, &ctx->out->pauses, err));
    return rp_report_measure_latency(ctx->t, ctx->arena, &ctx->out->latency, err);
}

static enum rp_code fill_part(struct part_ctx *ctx, struct rp_err *err)
{
    struct rp_report_part *out = ctx->out;

    RP_TRY(rp_work_init(&ctx->w, ctx->t, ctx->scope, err));
    RP_TRY(rp_report_list_devices(&ctx->w, ctx->arena, out, err));
    RP_TRY(rp_work_unite(&ctx->w, &ctx->u, err));
    RP_TRY(ctx->w.items.n ? read_device(ctx, err) : read_host(ctx, err));
    RP_TRY(make_steps(ctx, err));
    RP_TRY(rp_pitfall_steps(ctx->t, out->steps, out->nsteps, ctx->arena, &out->untypical, err));
    RP_TRY(rp_host_calls_init(&out->calls, ctx->t, ctx->scope, rp_stall_usual.floor_ns, ctx->arena,
                              err));
    RP_TRY(rp_collectives_init(&out->collectives, &ctx->w, ctx->scope, ctx->arena, err));
    out->compute = ctx->u.cls[RP_WORK_COMPUTE];
    ctx->u.cls[RP_WORK_COMPUTE] = (rp_interval_vec){0};
    out->busy = ctx->u.all;
    ctx->u.all = (rp_interval_vec){0};
    out->limited = ctx->scope->limited;
    out->health = ctx->t->health;
    out->device = ctx->t->ndevices ? trace_text(ctx, ctx->t->devices[0].name) : NULL;
    out->framework = trace_text(ctx, ctx->t->framework);
    return RP_OK;
}

enum rp_code rp_report_rank(const struct rp_trace *trace, const struct rp_scope *scope,
                            struct rp_arena *arena, struct rp_report_part *out, struct rp_err *err)
{
    static const struct rp_scope whole = {0};
    struct part_ctx ctx = {.t = trace, .scope = scope ? scope : &whole, .arena = arena, .out = out};
    enum rp_code code;

    *out = (struct rp_report_part){.step_ns = RP_ABSENT_I64};
    code = fill_part(&ctx, err);
    rp_work_release(&ctx.w);
    rp_work_unions_release(&ctx.u);
    return code;
}

void rp_report_part_release(struct rp_report_part *part)
{
    rp_vec_release(&part->gaps);
    rp_collectives_release(&part->collectives);
    rp_host_calls_release(&part->calls);
    rp_vec_release(&part->compute);
    rp_vec_release(&part->busy);
    rp_vec_release(&part->kernels);
}
