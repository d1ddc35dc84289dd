/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remarks on what the numbers show: programs compiled again and again, operators that run on the
 * host, values fetched in the middle of steps, single calls that take very long, a rank unlike the
 * others; and on errors in the numbers.
 */
#include "metrics/set.h"

#include "base/order.h"
#include "result/print_units.h"

#include <inttypes.h>
#include <math.h>
#include <reprise/result.h>
#include <stdlib.h>
#include <string.h>

#define WARM_UP     10   /* the first steps, in which compiling is usual */
#define OFTEN       0.5  /* times per step */
#define COMPILE_S   300  /* a single compilation that takes longer is remarkable */
#define EXECUTE_S   30   /* and execution */
#define RANK_RATIO  1.2  /* a rank's mean relative to the median of all */
#define RANK_SHARE  0.05 /* ... and the least share of its time that this costs */
#define LEAST_RANKS 3

struct remark_ctx {
    const struct rp_metric_set *all;
    struct rp_arena *arena;
    rp_metric_remarks *out;
    struct rp_err *err;
    enum rp_code code;
    double steps;
};

static void remark(struct remark_ctx *ctx, const char *text)
{
    if (ctx->code == RP_OK)
        ctx->code = rp_vec_push(ctx->out, text, ctx->err);
}

/* Returns the first of these metrics that exists. */
static const struct rp_metric *first_metric(const struct remark_ctx *ctx, const char *const *names)
{
    const struct rp_metric *m = NULL;

    while (*names && !m)
        m = rp_metric_find(ctx->all, *names++);
    return m;
}

static int64_t first_counter(const struct remark_ctx *ctx, const char *const *names)
{
    int64_t n = 0;

    while (*names && !n)
        n = rp_metric_counter_value(ctx->all, *names++);
    return n;
}

/* The time is checked, because a report may contain any value. */
static const char *time_text(const struct remark_ctx *ctx, double ns)
{
    return rp_units_time(ctx->arena, fabs(ns) < 9e18 ? (int64_t)ns : INT64_MAX);
}

static void remark_compilation(struct remark_ctx *ctx)
{
    static const char *const times[] = {"CompileTime", "RAFCompile", "Compile", NULL};
    int64_t fresh = rp_metric_counter_value(ctx->all, "UncachedCompile");
    int64_t cached = rp_metric_counter_value(ctx->all, "CachedCompile");
    const struct rp_metric *m = first_metric(ctx, times);

    if (!fresh && m)
        fresh = (int64_t)m->count;
    if (ctx->steps > WARM_UP && (double)fresh > OFTEN * ctx->steps)
        remark(ctx,
               rp_arena_textf(ctx->arena,
                              "recompilation: %" PRId64 " compilations in %.0f steps%s%s; the "
                              "shapes or the code of the steps differ: 'reprise diff' explains "
                              "the file that XLA_SAVE_TENSORS_FILE or LTC_SAVE_TENSORS_FILE "
                              "names",
                              fresh, ctx->steps, m ? ", " : "", m ? time_text(ctx, m->sum) : ""));
    else if (fresh >= WARM_UP && fresh > cached)
        remark(ctx, rp_arena_textf(ctx->arena,
                                   "recompilation: %" PRId64
                                   " of %.0f programs were compiled, not found in the cache",
                                   fresh, (double)fresh + (double)cached));
    if (m && m->most > COMPILE_S * 1e9)
        remark(ctx, rp_arena_textf(ctx->arena, "slow compilation: the longest '%s' took %s",
                                   m->name, time_text(ctx, m->most)));
}

RP_ORDER(by_calls, struct rp_metric_counter, RP_DOWN(value), strcmp(a->name, b->name))

/* Counters named aten::<operator> count calls that run on the host. */
static void remark_fallbacks(struct remark_ctx *ctx)
{
    size_t i, n = 0, total = ctx->all->counters.n;
    struct rp_metric_counter *found = RP_ARENA_NEW(ctx->arena, struct rp_metric_counter, total + 1);
    const char *names = "";
    int64_t calls = 0;

    for (i = 0; found && i < total; i++)
        if (!strncmp(ctx->all->counters.at[i].name, "aten::", 6) &&
            strcmp(ctx->all->counters.at[i].name, "aten::_local_scalar_dense") != 0) {
            found[n++] = ctx->all->counters.at[i];
            calls += ctx->all->counters.at[i].value;
        }
    if (!n)
        return;
    qsort(found, n, sizeof *found, by_calls);
    for (i = 0; i < n && i < 3; i++)
        names = rp_arena_textf(ctx->arena, "%s%s%s (%" PRId64 ")", names, i ? ", " : "",
                               found[i].name, found[i].value);
    remark(ctx, rp_arena_textf(ctx->arena,
                               "fallback: %zu operator%s without a lowering ran on the host, "
                               "%" PRId64 " call%s: %s%s",
                               n, n == 1 ? "" : "s", calls, calls == 1 ? "" : "s", names,
                               n > 3 ? ", …" : ""));
}

/* Finds the rank whose mean of a metric is furthest above the median of all, if far enough. */
static void remark_rank(struct remark_ctx *ctx, const struct rp_metric *m,
                        const struct rp_metric_set *ranks, size_t n)
{
    double *mean = RP_ARENA_NEW(ctx->arena, double, n + 1), *sorted, median;
    const struct rp_metric *own;
    size_t i, k, have = 0, worst = 0;

    sorted = RP_ARENA_NEW(ctx->arena, double, n + 1);
    if (!mean || !sorted)
        return;
    for (i = 0; i < n; i++) {
        own = rp_metric_find(&ranks[i], m->name);
        mean[i] = own && own->count ? rp_metric_mean(own) : -1;
        if (mean[i] < 0)
            continue;
        for (k = have++; k > 0 && sorted[k - 1] > mean[i]; k--)
            sorted[k] = sorted[k - 1];
        sorted[k] = mean[i];
        worst = mean[i] > mean[worst] ? i : worst;
    }
    if (have < LEAST_RANKS)
        return;
    median = sorted[(have - 1) / 2];
    own = rp_metric_find(&ranks[worst], m->name);
    if (!own || median <= 0 || mean[worst] < RANK_RATIO * median || own->last_ns <= own->first_ns ||
        (mean[worst] - median) * (double)own->count <
            RANK_SHARE * ((double)own->last_ns - (double)own->first_ns))
        return;
    remark(ctx, rp_arena_textf(
                    ctx->arena, "rank %" PRId64 ": '%s' takes %s on average, %s on the median rank",
                    ranks[worst].rank == RP_ABSENT_I64 ? (int64_t)worst : ranks[worst].rank,
                    m->name, time_text(ctx, mean[worst]), time_text(ctx, median)));
}

static void remark_numbers(struct remark_ctx *ctx)
{
    const struct rp_metric_set *all = ctx->all;
    const struct rp_metric_misprint *x = &all->misprint;

    if (all->nmisprints)
        remark(ctx,
               rp_arena_textf(ctx->arena,
                              "misprints: %zu of %zu times in the report are too large by one "
                              "ms, s, m, h or d, and were corrected: the %s of '%s' is %s, not "
                              "%s",
                              all->nmisprints, all->ntimes, x->field, x->metric,
                              rp_metric_value_text(ctx->arena, x->ns, RP_METRIC_TIME), x->printed));
    if (all->lost)
        remark(ctx, rp_arena_textf(ctx->arena,
                                   "lost: %" PRIu64 " samples and counts found no memory: set "
                                   "REPRISE_METRICS_MB above 64",
                                   all->lost));
    if (all->torn)
        remark(ctx, rp_arena_textf(ctx->arena,
                                   "torn: %" PRIu64 " distributions were read in the middle of a "
                                   "sample: their count, sum, minimum and maximum may differ by "
                                   "the samples of that moment",
                                   all->torn));
}

enum rp_code rp_metric_remark(const struct rp_metric_set *all, const struct rp_metric_set *ranks,
                              size_t nranks, struct rp_arena *arena, rp_metric_remarks *out,
                              struct rp_err *err)
{
    static const char *const steps[] = {"MarkStep", "Step", "step", "steps", NULL};
    struct remark_ctx ctx = {.all = all, .arena = arena, .out = out, .err = err};

    ctx.steps = (double)first_counter(&ctx, steps);
    remark_numbers(&ctx);
    remark_compilation(&ctx);

    /* Long executions, and many transfers from the device. */
    static const char *const runs[] = {"ExecuteTime", "ExecuteReplicatedTime", "RAFExecute", NULL};
    static const char *const fetches[] = {"TransferFromDeviceTime", NULL};
    const struct rp_metric *run = first_metric(&ctx, runs), *fetch = first_metric(&ctx, fetches);
    if (run && run->most > EXECUTE_S * 1e9)
        remark(&ctx, rp_arena_textf(ctx.arena, "slow execution: the longest '%s' took %s",
                                    run->name, time_text(&ctx, run->most)));
    if (fetch && ctx.steps > WARM_UP && (double)fetch->count > OFTEN * ctx.steps)
        remark(&ctx,
               rp_arena_textf(ctx.arena,
                              "transfers: %" PRIu64 " from the device in %.0f steps, %s; avoid "
                              ".item(), printing and conversion of tensors inside steps",
                              fetch->count, ctx.steps, time_text(&ctx, fetch->sum)));
    remark_fallbacks(&ctx);
    for (size_t i = 0; nranks > 1 && i < all->metrics.n; i++)
        if (all->metrics.at[i].unit == RP_METRIC_TIME)
            remark_rank(&ctx, &all->metrics.at[i], ranks, nranks);
    if (ctx.code != RP_OK)
        return ctx.code;
    return rp_arena_check(arena, "judging metrics", err);
}
