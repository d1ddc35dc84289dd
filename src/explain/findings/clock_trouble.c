/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device becomes slower, or clocks contradict each other.
 * A device that lowers its clock makes all kernels slower, whatever they do: durations of kernels
 * with the same name and grid are compared between the first and the last third of their calls.
 */
#include "base/hash.h"
#include "explain/findings/finding.h"
#include "facts/arg_keys.h"

enum { SLOW, WRONG };

#define THIRDS      3
#define STEADY_NS   5000
#define LEAST_CALLS 12
#define SLOWER      1.05
#define MOST_SHARE  0.8
#define KNOWN_SHARE 0.3
#define LEAST_KINDS 3
#define EARLY_SHARE 0.01
#define LEAST_EARLY 3

RP_FACT(THIRDS, "parts of the calls", "the first and the last, with as many between them");
RP_DECISION(STEADY_NS, "ns", "a shorter kernel is a few steps of the clock that measures it",
            "explain/clocks_have_edges");
RP_DECISION(LEAST_CALLS, "calls of a kind",
            "thirds of four calls, whose medians one odd call cannot move",
            "explain/clocks_have_edges");
RP_DECISION(SLOWER, "times the first third", "medians of the same kernels differ by less anyway",
            "explain/clocks_have_edges");
RP_DECISION(MOST_SHARE, "of the time of these kernels",
            "a clock makes all kernels slower; some that wait for memory hardly",
            "explain/clocks_have_edges");
RP_DECISION(KNOWN_SHARE, "of the compute time",
            "what is compared must stand for the device, whose other kernels have no twins",
            "explain/clocks_have_edges");
RP_DECISION(LEAST_KINDS, "pairs of name and grid", "one or two may have other reasons",
            "explain/clocks_have_edges");
RP_DECISION(EARLY_SHARE, "of the launched work",
            "single records have wrong times in otherwise good recordings",
            "explain/clocks_have_edges");
RP_DECISION(LEAST_EARLY, "items", "the same, in short recordings", "explain/clocks_have_edges");

#define KEPT(M, s)                                                                       \
    /* the same kernels later: by how much they take longer than in the first third */   \
    M(s, PLAIN, int64_t, slowed_ns)                                                      \
    M(s, PLAIN, double, slowed_ratio)                                                    \
    M(s, PLAIN, int64_t,                                                                 \
      slowed_kinds) /* number of (name, grid) pairs that got slower, and of all pairs */ \
    M(s, PLAIN, int64_t, kinds)                                                          \
    M(s, PLAIN, int64_t,                                                                 \
      launched) /* work whose launch is known; work that starts before its launch */     \
    M(s, PLAIN, int64_t, early_count)                                                    \
    M(s, PLAIN, int64_t, early_most_ns)
RP_PART_STRUCT(kept, KEPT);
RP_PART_TYPE(rp_kept_clock_trouble, struct kept, KEPT);

struct call {
    uint32_t kind;
    int64_t dur_ns;
};

struct clock_ctx {
    const struct rp_finding_rank *rank;
    struct kept *out;
    struct rp_arg_key grid;
    struct rp_map kinds; /* name and grid -> kind */
    RP_VEC(struct call) calls;
    RP_VEC(int64_t) scratch;
};

static void count_early(struct clock_ctx *ctx)
{
    struct kept *out = ctx->out;

    for (size_t i = 0; i < ctx->rank->work->items.n; i++) {
        const struct rp_work_item *x = &ctx->rank->work->items.at[i];

        if (x->launch == RP_NONE)
            continue;
        int64_t early = rp_ns_between(x->begin_ns, ctx->rank->trace->ev.ts_ns[x->launch]);
        out->launched++;
        out->early_count += early > 0;
        out->early_most_ns = early > out->early_most_ns ? early : out->early_most_ns;
    }
}

static enum rp_code list_calls(struct clock_ctx *ctx, struct rp_err *err)
{
    for (size_t i = 0; i < ctx->rank->work->items.n; i++) {
        const struct rp_work_item *x = &ctx->rank->work->items.at[i];
        struct call call = {0, rp_ns_between(x->begin_ns, x->end_ns)};
        rp_str grid = 0;

        if (x->cls != RP_WORK_COMPUTE || call.dur_ns < STEADY_NS)
            continue;
        rp_arg_key_text(&ctx->grid, x->event, &grid);
        RP_TRY(rp_map_intern(&ctx->kinds,
                             (uint64_t)ctx->rank->trace->ev.name[x->event] << 32 | grid,
                             (uint32_t)ctx->kinds.n, &call.kind, err));
        RP_TRY(rp_vec_push(&ctx->calls, call, err));
    }
    return RP_OK;
}

/* The median of n values from v, sorted in the scratch. */
static int64_t median_of(struct clock_ctx *ctx, const int64_t *v, size_t n)
{
    memcpy(ctx->scratch.at, v, n * sizeof *v);
    rp_ns_sort(ctx->scratch.at, n);
    return ctx->scratch.at[n / 2];
}

struct drift {
    double weight, slower_weight, ratios; /* time of kinds, and of those that became slower */
    int64_t kinds, slower, excess_ns;
};

/* Adds one kind: its durations in the order of time. */
static void add_kind(struct clock_ctx *ctx, const int64_t *v, size_t n, struct drift *d)
{
    size_t third = n / THIRDS, i;
    int64_t first, last, total = 0, excess = 0;

    if (n < LEAST_CALLS)
        return;
    first = median_of(ctx, v, third);
    last = median_of(ctx, v + n - third, third);
    double ratio = first > 0 ? (double)last / (double)first : 1;
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

static enum rp_code find_slowed_kernels(struct clock_ctx *ctx, struct rp_err *err)
{
    size_t i, n = ctx->calls.n, nkinds = ctx->kinds.n;
    uint32_t *begin = RP_ARENA_NEW(ctx->rank->arena, uint32_t, nkinds + 2);
    uint32_t *at = RP_ARENA_NEW(ctx->rank->arena, uint32_t, nkinds + 2);
    int64_t *v = RP_ARENA_NEW(ctx->rank->arena, int64_t, n + 1), compute = 0;
    struct drift d = {0};

    RP_TRY(rp_vec_reserve(&ctx->scratch, n + 1, err));
    RP_TRY(rp_arena_check(ctx->rank->arena, "comparing kernels", err));
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
    /* requires nearly all kinds, and most of the time in kernels that can be compared */
    if (d.kinds >= LEAST_KINDS && d.slower_weight >= MOST_SHARE * d.weight &&
        d.weight >= KNOWN_SHARE * (double)compute)
        ctx->out->slowed_ns = d.excess_ns;
    return RP_OK;
}

static enum rp_code clock_trouble_measure(const struct rp_finding_rank *rank, void *kept,
                                          struct rp_err *err)
{
    struct clock_ctx ctx = {.rank = rank, .out = kept};
    enum rp_code code = rp_arg_key_init(&ctx.grid, rank->trace, "grid", err);

    count_early(&ctx);
    if (code == RP_OK)
        code = list_calls(&ctx, err);
    if (code == RP_OK)
        code = find_slowed_kernels(&ctx, err);
    rp_arg_key_release(&ctx.grid);
    rp_map_release(&ctx.kinds);
    rp_vec_release(&ctx.calls);
    rp_vec_release(&ctx.scratch);
    return code;
}

/* ------------------------------------------------------------------ the findings */

static void find_slow(struct rp_findings *f)
{
    const struct kept *k = rp_findings_kept(f, f->chain->lead);
    struct rp_report_finding *finding = k ? rp_findings_add(f, SLOW, k->slowed_ns) : NULL;

    if (!finding)
        return;
    finding->compute_ns = finding->lost_ns;
    RP_SAY(f, finding,
           "rank %d: %lld of %lld kernels with the same name and grid are slower in the last third "
           "of their calls, on average by %.1f %%",
           rp_findings_lead_number(f), (long long)k->slowed_kinds, (long long)k->kinds,
           100 * (k->slowed_ratio - 1));

    /* What the driver said of the device meanwhile, where that was recorded. */
    const struct rp_device_clock *clock = &rp_findings_lead(f)->clock;
    if (!clock->samples)
        return;
    RP_SAY(f, finding,
           "rank %d: the clock of its device was between %.0f and %.0f MHz, on median %s",
           rp_findings_lead_number(f), clock->low_mhz, clock->high_mhz,
           rp_device_clock_text(clock, f->arena));
}

/* The rank with the earliest work before its launch, if it has too much of it. */
static const struct kept *find_early(const struct rp_findings *f, size_t *rank)
{
    const struct kept *worst = NULL;

    for (size_t r = 0; r < f->ranks->n; r++) {
        const struct kept *k = rp_findings_kept(f, r);

        if (k && (double)k->early_count > EARLY_SHARE * (double)k->launched &&
            k->early_count >= LEAST_EARLY && (!worst || k->early_most_ns > worst->early_most_ns)) {
            worst = k;
            *rank = r;
        }
    }
    return worst;
}

/* Contradictory timestamps cost no time, but make everything doubtful that was computed from
   them. */
static void clock_trouble_find(struct rp_findings *f)
{
    size_t rank = 0;
    const struct kept *early = find_early(f, &rank);
    struct rp_report_finding *finding = NULL;

    find_slow(f);
    if (early || f->chain->contradict)
        finding = rp_findings_add_doubt(f, WRONG);
    if (finding && early)
        RP_SAY(f, finding,
               "rank %d: %lld of %lld kernels, copies and memsets start before their launch, up to "
               "%s",
               rp_findings_number(f, rank), (long long)early->early_count,
               (long long)early->launched, rp_findings_time(f, early->early_most_ns));
    if (finding && f->chain->contradict)
        rp_findings_say(
            finding,
            "collectives end on some ranks before they begin on others, so waiting and transfer "
            "cannot be separated. Where process groups were not recorded, ranks of different "
            "groups look alike: give the ranks of one group at a time");
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_LOOK, OF(SLOW),
     .text = "look for heat, a power limit or another process; keep the clock fixed for "
             "measurements"},
    {RP_ADVISE_LOOK, OF(SLOW), .vendors = BY(NVIDIA),
     .text = "heat, a power limit or another process: nvidia-smi -q -d PERFORMANCE,CLOCK; "
             "nvidia-smi --lock-gpu-clocks for measurements"},
    {RP_ADVISE_LOOK, OF(SLOW), .vendors = BY(AMD),
     .text = "heat, a power limit or another process: amd-smi metric --clock --power; amd-smi "
             "set --perf-determinism MHZ for measurements"},
    {RP_ADVISE_LOOK, OF(SLOW), .vendors = BY(INTEL),
     .text = "heat, a power limit or another process: xpu-smi stats -d 0"},
    {RP_ADVISE_LOOK, OF(WRONG),
     .text = "do not rely on idle causes, delays and waits that compare these clocks; newer "
             "drivers and profilers, one clock source for all hosts (NTP, PTP)"},
};

const struct rp_finding rp_finding_clock_trouble = {
    .id = "clock-trouble",
    .kinds = {{"slow", "the device becomes slower while it works"},
              {"wrong", "clocks contradict each other"}},
    .condition =
        "slow: kernels with the same name and grid (`LEAST_CALLS` or more of `STEADY_NS` or "
        "more), at least `LEAST_KINDS` pairs that make up `KNOWN_SHARE` of the compute time; "
        "in `MOST_SHARE` of their time the median of the last third is `SLOWER` times that of "
        "the first. wrong: `LEAST_EARLY` items and more than `EARLY_SHARE` of the work start "
        "before their launch, or the times of the ranks contradict each other on any clocks",
    .cost = "slow: what the calls after the first third take above the median of the first. "
            "wrong: 0, but other numbers are unreliable",
    .numbers = RP_FINDING_NUMBER(STEADY_NS) RP_FINDING_NUMBER(LEAST_CALLS) RP_FINDING_NUMBER(SLOWER)
        RP_FINDING_NUMBER(MOST_SHARE) RP_FINDING_NUMBER(KNOWN_SHARE) RP_FINDING_NUMBER(LEAST_KINDS)
            RP_FINDING_NUMBER(EARLY_SHARE) RP_FINDING_NUMBER(LEAST_EARLY),
    .test = "explain/clocks_have_edges",
    RP_KEEPS(clock_trouble, clock_trouble_measure),
    .find = clock_trouble_find,
    RP_ADVICE(advice),
};
