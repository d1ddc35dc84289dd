/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is wrong on the device itself: kernels that use only a part of it, kernels that become
 * slower without doing more, clocks of host and device that disagree, and memory that is reserved
 * but not used.
 *
 * Low occupancy is counted by blocks: a kernel with fewer blocks than multiprocessors leaves some
 * empty, and could at best be that much shorter. Few warps alone are not a fault: matrix products
 * run best so. A kernel after which the device waits for the host would bring nothing if it were
 * shorter, so it does not count.
 *
 * A device that lowers its clock makes all kernels slower, whatever they do: durations of kernels
 * with the same name and grid are compared between the first and the last third of their calls.
 */
#include "explain/report/report.h"

#include "base/hash.h"
#include "facts/arg_keys.h"
#include "trace/names.h"

#define LEAST_NS     10000 /* shorter kernels are a matter of launching */
#define STEADY_NS    5000  /* and shorter ones than this of the clock's steps */
#define ENOUGH_CALLS 12
#define LOW_PERCENT  25.0 /* occupancy under which blocks are missing, where those are not known */
#define SLOWER       1.05

struct call {
    uint32_t kind;
    int64_t dur_ns;
};

struct device_ctx {
    const struct rp_work *w;
    const struct rp_trace *t;
    struct rp_arena *arena;
    struct rp_report_device *out;
    struct rp_arg_key blocks, occupancy, grid;
    RP_VEC(uint8_t) starved; /* by item: the device waits for the host after it */
    RP_VEC(int64_t) lost;    /* by string */
    struct rp_map kinds;     /* name and grid -> kind */
    RP_VEC(struct call) calls;
    RP_VEC(int64_t) scratch;
};

/* An argument as a number of either kind; -1 where it has none. */
static double arg_number(const struct rp_arg_key *key, rp_event e)
{
    struct rp_arg arg;

    if (!rp_arg_key_find(key, e, &arg))
        return -1;
    return arg.type == RP_ARG_I64 ? (double)arg.v.i : arg.type == RP_ARG_F64 ? arg.v.f : -1;
}

/* The share of the device that a kernel uses; 1 where it is not known. */
static double used_share(const struct device_ctx *ctx, rp_event e)
{
    uint8_t cls = ctx->t->str.name_class[ctx->t->ev.name[e]];
    double blocks = arg_number(&ctx->blocks, e), percent;

    if (blocks > 0)
        return blocks < 1 ? blocks : 1;
    percent = arg_number(&ctx->occupancy, e);
    if (percent <= 0 || percent >= LOW_PERCENT || cls == RP_NAME_GEMM || cls == RP_NAME_CONV ||
        cls == RP_NAME_ATTENTION)
        return 1;
    return percent / LOW_PERCENT;
}

static enum rp_code mark_starved(struct device_ctx *ctx, const rp_gap_vec *gaps, struct rp_err *err)
{
    RP_TRY(rp_vec_reserve(&ctx->starved, ctx->w->items.n + 1, err));
    memset(ctx->starved.at, 0, ctx->w->items.n + 1);
    for (size_t i = 0; i < gaps->n; i++)
        if (gaps->at[i].before != RP_NONE)
            ctx->starved.at[gaps->at[i].before] |= gaps->at[i].cls == RP_GAP_CLASS_NOT_LAUNCHED;
    return RP_OK;
}

/* The time in which a kernel runs beside others does not count: together they may fill the device.
 */
static void sum_thin_kernels(struct device_ctx *ctx)
{
    struct rp_report_device *out = ctx->out;
    int64_t until = INT64_MIN, most = 0;
    rp_str name, worst = RP_NONE;

    for (size_t i = 0; i < ctx->w->items.n; i++) {
        const struct rp_work_item *x = &ctx->w->items.at[i];
        int64_t from = x->begin_ns > until ? x->begin_ns : until;
        double fill = x->cls == RP_WORK_COMPUTE ? used_share(ctx, x->event) : 1;
        int64_t lost;

        until = x->end_ns > until ? x->end_ns : until;
        if (fill >= 1 || ctx->starved.at[i] || rp_ns_between(x->begin_ns, x->end_ns) < LEAST_NS ||
            x->end_ns <= from)
            continue;
        lost = (int64_t)((1 - fill) * (double)rp_ns_between(from, x->end_ns));
        name = ctx->t->ev.name[x->event];
        out->thin_count++;
        rp_ns_add(&out->thin_ns, rp_ns_between(from, x->end_ns));
        rp_ns_add(&out->thin_lost_ns, lost);
        rp_ns_add(&ctx->lost.at[name], lost);
        if (ctx->lost.at[name] > most) {
            most = ctx->lost.at[name];
            worst = name;
        }
    }
    out->thin_name_lost_ns = most;
    out->thin_name =
        worst == RP_NONE ? NULL : rp_arena_text(ctx->arena, rp_trace_str(ctx->t, worst));
}

static void count_early(struct device_ctx *ctx)
{
    struct rp_report_device *out = ctx->out;

    for (size_t i = 0; i < ctx->w->items.n; i++) {
        const struct rp_work_item *x = &ctx->w->items.at[i];
        int64_t early;

        if (x->launch == RP_NONE)
            continue;
        early = rp_ns_between(x->begin_ns, ctx->t->ev.ts_ns[x->launch]);
        out->launched++;
        out->early_count += early > 0;
        out->early_most_ns = early > out->early_most_ns ? early : out->early_most_ns;
    }
}

static enum rp_code list_calls(struct device_ctx *ctx, struct rp_err *err)
{
    for (size_t i = 0; i < ctx->w->items.n; i++) {
        const struct rp_work_item *x = &ctx->w->items.at[i];
        struct call call = {0, rp_ns_between(x->begin_ns, x->end_ns)};
        rp_str grid = 0;

        if (x->cls != RP_WORK_COMPUTE || call.dur_ns < STEADY_NS)
            continue;
        rp_arg_key_text(&ctx->grid, x->event, &grid);
        RP_TRY(rp_map_intern(&ctx->kinds, (uint64_t)ctx->t->ev.name[x->event] << 32 | grid,
                             (uint32_t)ctx->kinds.n, &call.kind, err));
        RP_TRY(rp_vec_push(&ctx->calls, call, err));
    }
    return RP_OK;
}

/* The median of n values from v, which are put in order in the scratch. */
static int64_t median_of(struct device_ctx *ctx, const int64_t *v, size_t n)
{
    memcpy(ctx->scratch.at, v, n * sizeof *v);
    rp_ns_sort(ctx->scratch.at, n);
    return ctx->scratch.at[n / 2];
}

struct drift {
    double weight, slower_weight, ratios; /* time of kinds; of those that became slower */
    int64_t kinds, slower, excess_ns;
};

/* One kind: its durations in the order of time. */
static void add_kind(struct device_ctx *ctx, const int64_t *v, size_t n, struct drift *d)
{
    size_t third = n / 3, i;
    int64_t first, last, total = 0, excess = 0;
    double ratio;

    if (n < ENOUGH_CALLS)
        return;
    first = median_of(ctx, v, third);
    last = median_of(ctx, v + n - third, third);
    ratio = first > 0 ? (double)last / (double)first : 1;
    for (i = 0; i < n; i++) {
        rp_ns_add(&total, v[i]);
        rp_ns_add(&excess, i >= third && v[i] > first ? rp_ns_between(first, v[i]) : 0);
    }
    d->kinds++;
    d->weight += (double)total;
    d->ratios += ratio * (double)total;
    if (ratio < SLOWER)
        return;
    d->slower++;
    d->slower_weight += (double)total;
    rp_ns_add(&d->excess_ns, excess);
}

static enum rp_code find_slowed_kernels(struct device_ctx *ctx, struct rp_err *err)
{
    size_t i, n = ctx->calls.n, nkinds = ctx->kinds.n;
    uint32_t *begin = RP_ARENA_NEW(ctx->arena, uint32_t, nkinds + 2);
    uint32_t *at = RP_ARENA_NEW(ctx->arena, uint32_t, nkinds + 2);
    int64_t *v = RP_ARENA_NEW(ctx->arena, int64_t, n + 1), compute = 0;
    struct drift d = {0};

    RP_TRY(rp_vec_reserve(&ctx->scratch, n + 1, err));
    RP_TRY(rp_arena_check(ctx->arena, "comparing kernels", err));
    for (i = 0; i < n; i++) {
        begin[ctx->calls.at[i].kind + 1]++;
        rp_ns_add(&compute, ctx->calls.at[i].dur_ns);
    }
    for (i = 0; i < nkinds; i++)
        at[i + 1] = begin[i + 1] += begin[i];
    for (i = 0; i < n; i++)
        v[at[ctx->calls.at[i].kind]++] = ctx->calls.at[i].dur_ns;
    for (i = 0; i < nkinds; i++)
        add_kind(ctx, v + begin[i], begin[i + 1] - begin[i], &d);
    ctx->out->kinds = d.kinds;
    ctx->out->slowed_kinds = d.slower;
    ctx->out->slowed_ratio = d.weight > 0 ? d.ratios / d.weight : 1;
    /* nearly all of them, and most of the time is in kernels that can be compared */
    if (d.kinds >= 3 && d.slower_weight >= 0.8 * d.weight && d.weight >= 0.3 * (double)compute)
        ctx->out->slowed_ns = d.excess_ns;
    return RP_OK;
}

/* Of all devices: the moment with most reserved memory. Type 0 is the host. */
static enum rp_code find_peak_memory(struct device_ctx *ctx, struct rp_err *err)
{
    struct rp_arg_key reserved, allocated, type;
    enum rp_code code = rp_arg_key_init(&reserved, ctx->t, "Total Reserved", err);
    int64_t r, a, kind;

    allocated = type = (struct rp_arg_key){.key = RP_NONE};
    if (code == RP_OK)
        code = rp_arg_key_init(&allocated, ctx->t, "Total Allocated", err);
    if (code == RP_OK)
        code = rp_arg_key_init(&type, ctx->t, "Device Type", err);
    for (rp_event e = 0; code == RP_OK && reserved.key != RP_NONE && e < ctx->t->ev.n; e++) {
        if (ctx->t->ev.kind[e] != RP_KIND_INSTANT || !rp_arg_key_int(&reserved, e, &r) ||
            !rp_arg_key_int(&allocated, e, &a) || !rp_arg_key_int(&type, e, &kind) || kind == 0)
            continue;
        ctx->out->reserved_bytes = r > ctx->out->reserved_bytes ? r : ctx->out->reserved_bytes;
        ctx->out->allocated_bytes = a > ctx->out->allocated_bytes ? a : ctx->out->allocated_bytes;
    }
    for (uint32_t i = 0; i < ctx->t->ndevices; i++)
        if (ctx->t->devices[i].memory_bytes > ctx->out->device_bytes)
            ctx->out->device_bytes = ctx->t->devices[i].memory_bytes;
    rp_arg_key_release(&reserved);
    rp_arg_key_release(&allocated);
    rp_arg_key_release(&type);
    return code;
}

static enum rp_code check_all(struct device_ctx *ctx, const rp_gap_vec *gaps, struct rp_err *err)
{
    RP_TRY(rp_arg_key_init(&ctx->blocks, ctx->t, "blocks per SM", err));
    RP_TRY(rp_arg_key_init(&ctx->occupancy, ctx->t, "est. achieved occupancy %", err));
    RP_TRY(rp_arg_key_init(&ctx->grid, ctx->t, "grid", err));
    RP_TRY(mark_starved(ctx, gaps, err));
    RP_TRY(rp_vec_reserve(&ctx->lost, ctx->t->str.n + 1, err));
    memset(ctx->lost.at, 0, (ctx->t->str.n + 1) * sizeof *ctx->lost.at);
    if (ctx->blocks.key != RP_NONE || ctx->occupancy.key != RP_NONE)
        sum_thin_kernels(ctx);
    count_early(ctx);
    RP_TRY(list_calls(ctx, err));
    RP_TRY(find_slowed_kernels(ctx, err));
    return find_peak_memory(ctx, err);
}

enum rp_code rp_report_check_device(const struct rp_work *work, const rp_gap_vec *gaps,
                                    struct rp_arena *arena, struct rp_report_device *out,
                                    struct rp_err *err)
{
    struct device_ctx ctx = {.w = work, .t = work->trace, .arena = arena, .out = out};
    enum rp_code code;

    *out = (struct rp_report_device){0};
    rp_map_init(&ctx.kinds);
    code = check_all(&ctx, gaps, err);
    rp_arg_key_release(&ctx.blocks);
    rp_arg_key_release(&ctx.occupancy);
    rp_arg_key_release(&ctx.grid);
    rp_vec_release(&ctx.starved);
    rp_vec_release(&ctx.lost);
    rp_map_release(&ctx.kinds);
    rp_vec_release(&ctx.calls);
    rp_vec_release(&ctx.scratch);
    return code;
}
