/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings. Those made of idle time are a table: cause of the gaps, id, title, hint; their cost is
 * the idle time on the chain that sets the pace. Others have a function each. The cost of a finding
 * is the time by which the recording would be shorter without it; costs of different findings may
 * overlap (a rank that is late because of its host is a straggler and a host stall).
 */
#include "explain/report/findings.h"

#include "explain/short_name.h"
#include "result/print_units.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FINDINGS 24
#define LEAST_SHARE   0.01 /* of the window: less is not worth a line */
#define ATYPICAL      1.2  /* times the median step */

struct finding_row {
    uint8_t cause;
    const char *id, *title, *hint;
};

static const struct finding_row by_cause[] = {
    {RP_GAP_NOT_LAUNCHED, "launch-bound",
     "the host launches work more slowly than the device does it",
     "CUDA graphs or torch.compile, fused optimizers, larger batches, fewer and larger operators"},
    {RP_GAP_SYNC_DRAIN, "sync-points", "the host waits for the device and then starts from nothing",
     "remove .item(), .cpu(), print of tensors and explicit synchronisation from the step; copy "
     "with non_blocking=True"},
    {RP_GAP_DATA_LOADER, "data-loader", "the device waits for input data",
     "more workers, pinned memory, prefetching, cheaper transforms; check the storage"},
    {RP_GAP_HOST_STALL, "host-stall", "host calls that usually take microseconds were held up",
     "look for CPU starvation, garbage collection, page faults, locks, or an observer that writes "
     "during the step; 'reprise idle' shows each"},
    {RP_GAP_ALLOCATION, "fragmentation", "device memory is allocated and freed during the step",
     "expandable segments, fewer different shapes, a warm-up before recording; check for memory "
     "near its limit"},
    {RP_GAP_PROFILER, "profiler-overhead", "the profiler itself holds the device up",
     "record fewer kinds of events, or take step times without it"},
    {RP_GAP_COPY, "copies", "the device only copies, or waits for copies to begin",
     "pin host memory, copy on a stream of its own while kernels run, combine small copies"},
    {RP_GAP_EVENT_WAIT, "dependencies", "launched work waits for events or for other streams",
     "check which streams wait for each other: fewer events, or work that fits between"},
    {RP_GAP_OTHER_RANK, "host-collectives",
     "the devices wait for collectives that run on the hosts",
     "use a backend that runs on the device, or larger buckets that overlap with compute"},
    {RP_GAP_UNRECORDED, "unrecorded-work", "the device is held by what was not recorded",
     "look for other processes on the device, and for events that the profiler dropped"},
};

struct findings {
    const struct rp_report_input *in;
    size_t n;
    const struct rp_chain *chain;
    struct rp_arena *arena;
    struct rp_report_root *out;
    int64_t window_ns;                  /* of the rank that ends last */
    int64_t atypical_ns[RP_GAP_CAUSES]; /* idle that belongs to an untypical step */
    int32_t absent;                     /* ranks of the run that were not given */
    bool failed;
};

const char *rp_report_time(struct rp_arena *arena, int64_t ns)
{
    char text[64];

    rp_units_format((double)ns, RP_UNIT_NS, text, sizeof text);
    return rp_arena_strdup(arena, text);
}

static const char *when(struct findings *f, int64_t ns)
{
    const char *text = rp_report_time(f->arena, ns);

    f->failed |= !text;
    return text ? text : "";
}

/* Adds a finding where it costs enough; NULL otherwise. */
static struct rp_report_finding *add(struct findings *f, const char *id, const char *title,
                                     const char *hint, int64_t lost_ns)
{
    struct rp_report_finding *finding = &f->out->findings[f->out->nfindings];

    if (lost_ns <= 0 || (double)lost_ns < LEAST_SHARE * (double)f->window_ns ||
        f->out->nfindings == MOST_FINDINGS)
        return NULL;
    *finding = (struct rp_report_finding){.id = id, .title = title, .hint = hint};
    finding->lost_ns = lost_ns;
    finding->share = (double)lost_ns / (double)f->window_ns;
    finding->evidence = RP_ARENA_NEW(f->arena, const char *, 5);
    f->failed |= !finding->evidence;
    if (f->failed)
        return NULL;
    f->out->nfindings++;
    return finding;
}

/* Adds a finding that makes numbers doubtful and costs nothing itself. */
static struct rp_report_finding *doubt(struct findings *f, const char *id, const char *title,
                                       const char *hint)
{
    struct rp_report_finding *finding = add(f, id, title, hint, INT64_MAX);

    if (finding) {
        finding->lost_ns = 0;
        finding->share = 0;
    }
    return finding;
}

static void give(struct findings *f, struct rp_report_finding *finding, const char *evidence)
{
    f->failed |= !evidence;
    if (evidence && finding->nevidence < 4)
        finding->evidence[finding->nevidence++] = evidence;
}

/* A rank's idle time of a cause, all classes together; the row with most of it is returned. */
static const struct rp_idle_cause *cause_of(const struct rp_report_part *p, uint8_t cause,
                                            int64_t *total, int64_t *count)
{
    const struct rp_idle_cause *best = NULL;
    size_t i;

    *total = *count = 0;
    for (i = 0; i < p->nidle_causes; i++) {
        const struct rp_idle_cause *c = &p->idle_causes[i];

        if (strcmp(c->cause, rp_gap_cause_names[cause]) != 0)
            continue;
        rp_ns_add(total, c->total_ns);
        *count += c->count;
        if (!best || c->total_ns > best->total_ns)
            best = c;
    }
    return best;
}

/* The ranks with most of a cause, up to three. */
static void give_ranks(struct findings *f, struct rp_report_finding *finding, uint8_t cause)
{
    int64_t below = INT64_MAX;
    int round;

    for (round = 0; round < 3; round++) {
        const struct rp_idle_cause *c = NULL;
        int64_t total, count, most = 0, gaps = 0;
        size_t r, best = SIZE_MAX;

        for (r = 0; r < f->n; r++) {
            const struct rp_idle_cause *row = cause_of(f->in[r].part, cause, &total, &count);

            if (row && total > most && total < below) {
                most = total;
                gaps = count;
                best = r;
                c = row;
            }
        }
        if (best == SIZE_MAX || (round && most < finding->lost_ns / 4))
            return;
        below = most;
        give(f, finding,
             rp_arena_printf(f->arena, "rank %d: %s idle in %lld gap%s, the longest %s; mostly %s",
                             f->in[best].number, when(f, most), (long long)gaps,
                             gaps == 1 ? "" : "s", when(f, c->longest_ns),
                             c->evidence ? c->evidence : "unknown"));
    }
}

/* Where the evidence is that nothing was recorded, no call can be blamed. */
static void explain_silence(struct findings *f, struct rp_report_finding *finding)
{
    int64_t total, count;
    const struct rp_idle_cause *row =
        cause_of(f->in[f->chain->lead].part, RP_GAP_HOST_STALL, &total, &count);

    if (!row || !row->evidence || strncmp(row->evidence, "nothing recorded", 16) != 0)
        return;
    finding->title = "for long the host launches nothing, and what it does was not recorded";
    finding->hint =
        "record more of the host (Python stacks, with_stack, the host tracer): the input "
        "pipeline, work between steps and waiting look like this";
}

/* How much of the time in collectives of the hosts is waiting for the last rank. */
static void give_waits(struct findings *f, struct rp_report_finding *finding)
{
    const struct rp_chain_rank *c = &f->chain->ranks[f->chain->lead];

    if (f->chain->ncollectives && f->chain->beside)
        give(f, finding,
             rp_arena_printf(f->arena,
                             "rank %d: in %zu collectives of the hosts %s are waiting for the "
                             "last rank, %s transfer",
                             f->in[f->chain->lead].number, f->chain->ncollectives,
                             when(f, c->wait_ns), when(f, c->transfer_ns)));
}

/* "rank 0: 5 copies and memsets; for 30.0 ms nothing else runs, for 1.00 ms …" */
static void give_copies(struct findings *f, struct rp_report_finding *finding)
{
    const struct rp_report_part *p = f->in[f->chain->lead].part;
    const struct rp_breakdown *b = &p->b;
    int64_t waits, count;

    cause_of(p, RP_GAP_COPY, &waits, &count);
    if (!f->chain->copies_ns || !p->sums.copy_name)
        return;
    give(f, finding,
         rp_arena_printf(
             f->arena,
             "rank %d: %lld copies and memsets; for %s nothing else runs, for %s the device waits "
             "for one; mostly %.80s (%s)",
             f->in[f->chain->lead].number, (long long)p->sums.copies,
             when(f, rp_ns_between(rp_ns_sum(b->compute_ns, b->exposed_comm_ns), b->busy_ns)),
             when(f, waits), p->sums.copy_name, when(f, p->sums.copy_name_ns)));
}

static void find_idle(struct findings *f)
{
    size_t i;

    for (i = 0; i < sizeof by_cause / sizeof by_cause[0]; i++) {
        const struct finding_row *row = &by_cause[i];
        int64_t lost = rp_ns_between(f->atypical_ns[row->cause], f->chain->cause_ns[row->cause]);
        struct rp_report_finding *finding;

        if (row->cause == RP_GAP_COPY)
            rp_ns_add(&lost, f->chain->copies_ns);
        finding = add(f, row->id, row->title, row->hint, lost);
        if (finding && row->cause == RP_GAP_COPY)
            give_copies(f, finding);
        if (finding)
            give_ranks(f, finding, row->cause);
        if (finding && row->cause == RP_GAP_HOST_STALL)
            explain_silence(f, finding);
        if (finding && row->cause == RP_GAP_OTHER_RANK)
            give_waits(f, finding);
    }
}

static void find_exposed_comm(struct findings *f)
{
    const struct rp_report_part *lead = f->in[f->chain->lead].part;
    bool matched = f->chain->ncollectives > 0 && !f->chain->beside;
    struct rp_report_finding *finding =
        add(f, "exposed-comm", "communication runs while no compute does",
            "overlap it with backward (buckets, prefetch), send less (compression, larger local "
            "batches), or use a faster network",
            f->chain->transfer_ns);

    if (!finding)
        return;
    if (f->absent > 0)
        give(f, finding,
             rp_arena_printf(
                 f->arena, "%d rank%s of the run %s not given: waiting for %s looks like transfer",
                 (int)f->absent, f->absent == 1 ? "" : "s", f->absent == 1 ? "was" : "were",
                 f->absent == 1 ? "it" : "them"));
    give(f, finding,
         matched ? rp_arena_printf(f->arena,
                                   "%zu collectives of %zu ranks, transfer only: "
                                   "waiting for late ranks is not counted",
                                   f->chain->ncollectives, f->n)
                 : rp_arena_printf(f->arena,
                                   "rank %d: %s of %s communication is exposed; waiting "
                                   "for other ranks cannot be told from transfer here",
                                   f->in[f->chain->lead].number, when(f, lead->b.exposed_comm_ns),
                                   when(f, lead->b.comm_ns)));
}

/* "rank 0 came last 32 of 84 times, 167.4 ms after the others" */
static void find_straggler(struct findings *f)
{
    struct rp_report_finding *finding =
        add(f, "straggler", "the others wait for ranks that come late to collectives",
            "see what those ranks do before: 'reprise idle --rank N' and 'reprise comm'",
            f->chain->ncollectives ? f->chain->margin_ns : 0);
    int64_t below = INT64_MAX;
    int round;

    for (round = 0; finding && round < 3; round++) {
        size_t r, best = SIZE_MAX;

        for (r = 0; r < f->n; r++)
            if (f->chain->ranks[r].margin_ns < below &&
                (best == SIZE_MAX ||
                 f->chain->ranks[r].margin_ns > f->chain->ranks[best].margin_ns))
                best = r;
        if (best == SIZE_MAX || f->chain->ranks[best].margin_ns < f->chain->margin_ns / 20)
            return;
        below = f->chain->ranks[best].margin_ns;
        give(f, finding,
             rp_arena_printf(f->arena,
                             "rank %d came last %lld of %zu times, in all %s after the next",
                             f->in[best].number, (long long)f->chain->ranks[best].last_count,
                             f->chain->ncollectives, when(f, below)));
    }
}

/* What a step needs whatever the host and the other ranks do. */
static int64_t need_of(const struct rp_report_step *s)
{
    return rp_ns_between(rp_ns_sum(s->idle_ns, s->exposed_comm_ns), s->dur_ns);
}

static int64_t median(int64_t *v, size_t n)
{
    qsort(v, n, sizeof *v, rp_ns_order);
    return v[(n - 1) / 2];
}

/* The median over the steps of one of their numbers. */
static int64_t usual_of(const struct rp_report_part *p, size_t offset, int64_t *v)
{
    size_t i;

    for (i = 0; i < p->nsteps; i++)
        memcpy(&v[i], (const char *)&p->steps[i] + offset, sizeof v[i]);
    return median(v, p->nsteps);
}

/* What a long step has more of a kind of idle time, where it is several times the usual. */
static int64_t own_idle(struct findings *f, uint8_t cause, int64_t has_ns, int64_t usual_ns)
{
    if (has_ns / 2 <= usual_ns)
        return 0;
    rp_ns_add(&f->atypical_ns[cause], rp_ns_between(usual_ns, has_ns));
    return rp_ns_between(usual_ns, has_ns);
}

static void add_atypical(struct findings *f, int64_t lost, size_t worst, size_t typical,
                         int64_t usual)
{
    const struct rp_report_part *p = f->in[f->chain->lead].part;
    struct rp_report_finding *finding =
        add(f, "atypical-step", "a step is not like the others",
            "leave it out: compilation, warm-up or a checkpoint; look at a typical step", lost);

    if (!finding || worst == SIZE_MAX) {
        memset(f->atypical_ns, 0, sizeof f->atypical_ns);
        return;
    }
    give(f, finding,
         rp_arena_printf(f->arena, "%s took %s, the median step %s", p->steps[worst].name,
                         when(f, p->steps[worst].dur_ns), when(f, usual)));
    give(f, finding,
         rp_arena_printf(f->arena, "%s is typical: --step %lld", p->steps[typical].name,
                         (long long)p->steps[typical].number));
}

/* A step that is longer than the others for reasons of its own: warm-up, compilation, checkpoint.
   Its excess of work, and of late launches where the step has several times the usual. */
static void find_atypical(struct findings *f)
{
    const struct rp_report_part *p = f->in[f->chain->lead].part;
    size_t i, n = p->nsteps, worst = SIZE_MAX, typical = 0;
    int64_t *v = RP_ARENA_NEW(f->arena, int64_t, n + 1), need, late, drain, usual, lost = 0,
            most = 0;

    f->failed |= !v;
    if (n < 3 || !v)
        return;
    for (i = 0; i < n; i++)
        v[i] = need_of(&p->steps[i]);
    need = median(v, n);
    late = usual_of(p, offsetof(struct rp_report_step, late_ns), v);
    drain = usual_of(p, offsetof(struct rp_report_step, drain_ns), v);
    usual = usual_of(p, offsetof(struct rp_report_step, dur_ns), v);
    for (i = 0; i < n; i++) {
        const struct rp_report_step *s = &p->steps[i];
        int64_t excess =
            (double)need_of(s) > ATYPICAL * (double)need ? rp_ns_between(need, need_of(s)) : 0;

        if ((double)s->dur_ns > ATYPICAL * (double)usual) {
            rp_ns_add(&excess, own_idle(f, RP_GAP_NOT_LAUNCHED, s->late_ns, late));
            rp_ns_add(&excess, own_idle(f, RP_GAP_SYNC_DRAIN, s->drain_ns, drain));
        }
        if (excess > most) {
            most = excess;
            worst = i;
        }
        rp_ns_add(&lost, excess);
        if (s->dur_ns == usual)
            typical = i;
    }
    add_atypical(f, lost, worst, typical, usual);
}

static void find_tiny(struct findings *f)
{
    const struct rp_report_sums *s = &f->in[f->chain->lead].part->sums;
    struct rp_report_finding *finding =
        add(f, "tiny-kernels", "kernels so short that the pauses between them count",
            "fuse them: torch.compile, fused or foreach optimizers, CUDA graphs", s->tiny_gap_ns);

    if (finding)
        give(f, finding,
             rp_arena_printf(f->arena, "rank %d: %lld of %lld kernels take less than 10 us",
                             f->in[f->chain->lead].number, (long long)s->tiny_kernels,
                             (long long)s->kernels));
}

#define THIN_SHARE 0.05 /* of the window: what kernels that fill a part of the device may cost */
#define MOST_EARLY 0.01 /* of the launches: more clocks that disagree are no accident */

static void find_thin(struct findings *f)
{
    const struct rp_report_device *d = &f->in[f->chain->lead].part->wrong;
    struct rp_report_finding *finding = NULL;
    char name[120];

    if ((double)d->thin_lost_ns >= THIN_SHARE * (double)f->window_ns && d->thin_name)
        finding = add(f, "low-occupancy", "kernels that fill a part of the device only",
                      "larger batches or tiles that split differently (split-k), several small "
                      "kernels at once on other streams, or fused into one",
                      d->thin_lost_ns);
    if (!finding)
        return;
    rp_short_name(d->thin_name, name, sizeof name);
    give(f, finding,
         rp_arena_printf(f->arena,
                         "rank %d: %lld kernels have fewer blocks than the device has "
                         "multiprocessors: %s, of which they could at best save %s",
                         f->in[f->chain->lead].number, (long long)d->thin_count,
                         when(f, d->thin_ns), when(f, d->thin_lost_ns)));
    give(f, finding,
         rp_arena_printf(f->arena, "mostly %s (%s)", name, when(f, d->thin_name_lost_ns)));
}

/* The device's clock goes down: all kernels become slower, whatever they do. */
static void find_slow_clock(struct findings *f)
{
    const struct rp_report_device *d = &f->in[f->chain->lead].part->wrong;
    struct rp_report_finding *finding =
        add(f, "clock-trouble", "the device becomes slower while it works",
            "look for heat, a power limit or another process: nvidia-smi -q -d PERFORMANCE,CLOCK; "
            "lock the clocks for measurements",
            d->slowed_ns);

    if (finding)
        give(f, finding,
             rp_arena_printf(f->arena,
                             "rank %d: %lld of %lld kernels with the same name and grid are slower "
                             "in the last third of their calls, on average by %.1f %%",
                             f->in[f->chain->lead].number, (long long)d->slowed_kinds,
                             (long long)d->kinds, 100 * (d->slowed_ratio - 1)));
}

/* Time stamps that cannot be: what rests on them is in doubt, but nothing is lost. */
static void find_wrong_clock(struct findings *f)
{
    const struct rp_report_device *worst = NULL;
    struct rp_report_finding *finding;
    size_t r, at = 0;

    for (r = 0; r < f->n; r++) {
        const struct rp_report_device *d = &f->in[r].part->wrong;

        if ((double)d->early_count > MOST_EARLY * (double)d->launched && d->early_count > 2 &&
            (!worst || d->early_most_ns > worst->early_most_ns)) {
            worst = d;
            at = r;
        }
    }
    if (!worst && !f->chain->clocks_differ)
        return;
    finding = doubt(f, "clock-trouble", "clocks do not fit together",
                    "idle causes, delays and waits that compare these clocks are in doubt: newer "
                    "drivers and profilers, one clock source for all hosts (NTP, PTP)");
    if (finding && worst)
        give(f, finding,
             rp_arena_printf(f->arena,
                             "rank %d: %lld of %lld kernels, copies and memsets start before their "
                             "launch, up to %s",
                             f->in[at].number, (long long)worst->early_count,
                             (long long)worst->launched, when(f, worst->early_most_ns)));
    if (finding && f->chain->clocks_differ)
        give(f, finding,
             "collectives end on some ranks before they begin on others: waiting is not told from "
             "transfer. Ranks of different groups look the same where the groups were not "
             "recorded: give those of one group at a time");
}

/* Memory that is reserved but not used, near the limit: allocations begin to fail and to retry. */
static void find_full_memory(struct findings *f)
{
    struct rp_report_finding *finding = NULL;
    size_t r, i;

    for (r = 0; r < f->n; r++) {
        const struct rp_report_device *d = &f->in[r].part->wrong;

        if (d->device_bytes <= 0 || d->reserved_bytes / 4 < d->device_bytes / 5 ||
            d->allocated_bytes > d->reserved_bytes / 5 * 4)
            continue;
        for (i = 0; i < f->out->nfindings; i++)
            if (!strcmp(f->out->findings[i].id, "fragmentation"))
                finding = &f->out->findings[i];
        if (!finding)
            finding = doubt(f, "fragmentation", "device memory is reserved but not used",
                            "expandable segments, fewer different shapes, garbage collection "
                            "threshold of the allocator");
        if (finding)
            give(f, finding,
                 rp_arena_printf(f->arena,
                                 "rank %d: %.1f of %.1f GB are reserved, at most %.1f in use",
                                 f->in[r].number, (double)d->reserved_bytes / 1e9,
                                 (double)d->device_bytes / 1e9, (double)d->allocated_bytes / 1e9));
        return;
    }
}

static const struct {
    uint8_t pause;
    double least; /* share of the window */
    const char *id, *title, *hint;
} by_pause[] = {
    {RP_PAUSE_DATA, LEAST_SHARE, "data-loader", "the operators wait for input data",
     "more workers, prefetching, cheaper transforms; check the storage"},
    {RP_PAUSE_PROFILER, LEAST_SHARE, "profiler-overhead", "the profiler itself holds the host up",
     "record fewer kinds of events, or take step times without it"},
    {RP_PAUSE_PYTHON, 0.05, "python", "Python code runs between the operators",
     "torch.compile, fewer and larger operators; 'reprise top --by python' shows the code"},
    {RP_PAUSE_SPAN, 0.05, "host-code", "code that is no operator runs inside longer spans",
     "see what those spans do: 'reprise top --by annotation', and record with with_stack"},
    {RP_PAUSE_NOTHING, 0.05, "no-operator", "no operator runs, and nothing else was recorded",
     "fewer and larger operators (fusion, XLA); look for waiting, other threads and code outside "
     "of the framework"},
};

static void find_pauses(struct findings *f)
{
    const struct rp_report_pauses *p = &f->in[f->chain->lead].part->pauses;
    size_t i;

    for (i = 0; i < sizeof by_pause / sizeof by_pause[0]; i++) {
        uint8_t c = by_pause[i].pause;
        struct rp_report_finding *finding = NULL;

        if ((double)p->ns[c] >= by_pause[i].least * (double)f->window_ns)
            finding = add(f, by_pause[i].id, by_pause[i].title, by_pause[i].hint, p->ns[c]);
        if (finding)
            give(f, finding,
                 rp_arena_printf(f->arena, "rank %d: %s in %lld pauses, the longest %s%s%.80s",
                                 f->in[f->chain->lead].number, when(f, p->ns[c]),
                                 (long long)p->count[c], when(f, p->longest_ns[c]),
                                 p->mostly[c] ? "; mostly " : "",
                                 p->mostly[c] ? p->mostly[c] : ""));
    }
}

static int by_lost(const void *pa, const void *pb)
{
    const struct rp_report_finding *a = pa, *b = pb;

    if (a->lost_ns != b->lost_ns)
        return a->lost_ns > b->lost_ns ? -1 : 1;
    return strcmp(a->id, b->id);
}

enum rp_code rp_report_find(const struct rp_report_input *ranks, size_t n,
                            const struct rp_chain *chain, struct rp_arena *arena,
                            int32_t world_size, struct rp_report_root *out, struct rp_err *err)
{
    struct findings f = {.in = ranks, .n = n, .chain = chain, .arena = arena, .out = out};

    out->findings = RP_ARENA_NEW(arena, struct rp_report_finding, MOST_FINDINGS + 1);
    if (!out->findings)
        return rp_err_nomem(err, "writing findings");
    f.window_ns = ranks[chain->lead].part->b.window_ns;
    f.absent = world_size > (int64_t)n ? world_size - (int32_t)n : 0;
    find_atypical(&f);
    find_idle(&f);
    find_exposed_comm(&f);
    find_straggler(&f);
    find_tiny(&f);
    find_thin(&f);
    find_slow_clock(&f);
    find_full_memory(&f);
    find_pauses(&f);
    find_wrong_clock(&f);
    if (out->nfindings)
        qsort(out->findings, out->nfindings, sizeof *out->findings, by_lost);
    return f.failed ? rp_err_nomem(err, "writing findings") : RP_OK;
}
