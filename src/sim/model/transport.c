/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rate is that of the large transfers, from half the largest size on. Larger transfers than any
 * recorded are not assumed to be faster; if threads carry them, they are slower, because their
 * buffers no longer fit into the caches. The latency is the additional time of small transfers, but
 * at least LATENCY_PART of the mean, also if all are alike. Sizes that occur only in the first step
 * do not count: DistributedDataParallel has other buckets there.
 */
#include "sim/model/transport.h"

#include "base/order.h"
#include "sim/model/steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LATENCY_PART 0.01
RP_DECISION(LATENCY_PART, "of the mean transfer", "no collective is free, however few its bytes",
            "sim/the_transport_of_equal_transfers");
#define ENOUGH 4096
RP_LIMIT(ENOUGH, "transfers", "the first so many are a sample of all");
#define CROWDED_ROUND_NS 500000.0
RP_DECISION(CROWDED_ROUND_NS, "ns of a round",
            "where more threads work than there are processors: gloo, 4 ranks on 2, 0.5 to 0.7 ms",
            "sim/the_latency_of_crowded_threads");
#define CROWDED_LATENCY_PART 0.5
RP_DECISION(CROWDED_LATENCY_PART, "of a transfer",
            "a guess: of a recorded transfer the rest at least is its bytes",
            "sim/the_latency_of_crowded_threads");
#define MOST_LATENCY_PART 0.7
RP_DECISION(
    MOST_LATENCY_PART, "of a transfer",
    "the end of an interval: what one size alone cannot tell (docs/definitions.md, Interval)",
    "sim/how_far_latency_is_unknown");
/* The most time of a round of messages besides that for its bytes. */
#define HOST_ROUND_NS 750000.0
RP_DECISION(HOST_ROUND_NS, "ns of a round",
            "a thread that has to wait for a core waits a slice of Linux's scheduler",
            "sim/how_far_latency_is_unknown");
#define DEVICE_ROUND_NS 30000.0
RP_DECISION(DEVICE_ROUND_NS, "ns of a round",
            "a network between machines (docs/definitions.md, Interval)",
            "sim/how_far_latency_is_unknown");
/* An all-reduce of the host adds up buffers, and large ones do not fit into its caches, so whenever
   the size doubles, the time for a byte increases by this part. */
#define HOST_SLOWER_BY_TWICE 0.08
RP_DECISION(HOST_SLOWER_BY_TWICE, "of a byte's time, a doubling",
            "gloo, 4 to 128 MB on two machines: 0 to 0.2",
            "sim/larger_transfers_of_the_host_are_slower");
#define HOST_MOST_SLOWER_BY_TWICE 0.2
RP_DECISION(HOST_MOST_SLOWER_BY_TWICE, "of a byte's time, a doubling", "as HOST_SLOWER_BY_TWICE",
            "sim/larger_transfers_of_the_host_are_slower");
#define MOST_TWICE 3
RP_DECISION(
    MOST_TWICE, "doublings of the largest recorded size",
    "above, no byte is assumed to take longer still: as far as was measured, 4 to 128 MB is five",
    "sim/larger_transfers_of_the_host_are_slower");

struct transfers {
    RP_VEC(struct rp_transfer) list;
};

/* When the last rank arrived at a collective of rank 0, on its clock; if that is not known, when
   rank 0 did. */
static int64_t begin_of(const struct rp_sim_run *run, size_t i)
{
    const struct rp_collective *c = &run->parts[0]->collectives.list.at[i];
    const struct rp_sg_last_arrival *held = run->nranks > 1 ? &run->join.last_arrival[0][i] : NULL;

    return held && held->until_ns != RP_NO_TS && held->until_ns > c->begin_ns ? held->until_ns
                                                                              : c->begin_ns;
}

RP_ORDER(by_begin, struct rp_transfer, RP_UP(begin_ns))

/* Whether a transfer before the second step has a size that no later one has, although there are
   some. */
static bool is_of_start(const struct rp_sim_run *run, size_t i)
{
    const struct rp_collectives *all = &run->parts[0]->collectives;
    int64_t second =
        run->parts[0]->step_begin_ns.n > 1 ? run->parts[0]->step_begin_ns.at[1] : INT64_MIN;
    bool later = false;

    if (i >= ENOUGH || all->list.at[i].begin_ns >= second)
        return false;
    for (size_t k = 0; k < all->list.n; k++) {
        const struct rp_collective *c = &all->list.at[k];

        if (c->kind != RP_COLL_ALL_REDUCE || c->in_bytes <= 0 || c->begin_ns < second)
            continue;
        if (c->in_bytes == all->list.at[i].in_bytes)
            return false;
        later = true;
    }
    return later;
}

static enum rp_code collect(const struct rp_sim_run *run, struct transfers *out, struct rp_err *err)
{
    const struct rp_collectives *all = &run->parts[0]->collectives;

    for (size_t i = 0; i < all->list.n && out->list.n < ENOUGH; i++) {
        const struct rp_collective *c = &all->list.at[i];
        struct rp_transfer t = {
            .begin_ns = begin_of(run, i), .end_ns = c->end_ns, .bytes = c->in_bytes};

        if (c->kind == RP_COLL_ALL_REDUCE && c->in_bytes > 0 && t.end_ns > t.begin_ns &&
            !is_of_start(run, i))
            RP_TRY(rp_vec_push(&out->list, t, err));
    }
    return RP_OK;
}

/* At each moment, the transfers that run then share it. They are in the order of their starts, and
   few run at once. */
void rp_transfers_share(struct rp_transfer *list, size_t n)
{
    size_t i, k, low = 0;

    if (!n)
        return;
    qsort(list, n, sizeof *list, by_begin);
    int64_t now = list[0].begin_ns;
    while (low < n) {
        int64_t next = INT64_MAX;
        size_t running = 0;

        for (i = low; i < n && list[i].begin_ns <= now; i++)
            if (list[i].end_ns > now) {
                running++;
                next = list[i].end_ns < next ? list[i].end_ns : next;
            }
        if (i < n && list[i].begin_ns < next)
            next = list[i].begin_ns;
        if (next == INT64_MAX)
            break;
        for (k = low; k < i; k++)
            if (list[k].end_ns > now)
                list[k].work_ns += (double)(next - now) / (double)running;
        now = next;
        while (low < n && list[low].end_ns <= now)
            low++;
    }
}

struct sums {
    double n, bytes, work_ns;
};

static struct sums sum_transfers(const struct transfers *x, int64_t least, int64_t below)
{
    struct sums s = {0};

    for (size_t i = 0; i < x->list.n; i++)
        if (x->list.at[i].bytes >= least && x->list.at[i].bytes < below) {
            s.n++;
            s.bytes += (double)x->list.at[i].bytes;
            s.work_ns += x->list.at[i].work_ns;
        }
    return s;
}

/* In every round of a ring, a thread or device waits for the one before it. */
static double rounds_of(const struct rp_sim_run *run)
{
    const struct rp_collectives *c = &run->parts[0]->collectives;
    int64_t ranks = (int64_t)run->nranks * run->parts[0]->nranks;

    for (size_t i = 0; i < c->list.n; i++)
        ranks = c->list.at[i].group_size > ranks ? c->list.at[i].group_size : ranks;
    return 2 * (double)(ranks > 1 ? ranks - 1 : 1);
}

/* The latency that is assumed if all sizes are alike. */
static double likely_latency(const struct rp_sim_run *run, double mean_ns)
{
    double crowded = run->parts[0]->collectives.on_host
                         ? run->parts[0]->crowded * rounds_of(run) * CROWDED_ROUND_NS
                         : 0;

    return fmax(fmin(crowded, CROWDED_LATENCY_PART * mean_ns), LATENCY_PART * mean_ns);
}

static void fit(const struct rp_sim_run *run, const struct transfers *x, struct rp_transport *out)
{
    struct sums large, small, all = sum_transfers(x, 0, INT64_MAX);
    int64_t most = 0;

    for (size_t i = 0; i < x->list.n; i++)
        most = x->list.at[i].bytes > most ? x->list.at[i].bytes : most;
    out->most_bytes = (double)most;
    large = sum_transfers(x, most / 2, INT64_MAX);
    small = sum_transfers(x, 0, most / 2);
    out->one_size = !(small.n > 0);
    out->n = x->list.n;
    out->bytes_per_ns = large.bytes / large.work_ns;
    out->latency_ns = small.n > 0 ? (small.work_ns - small.bytes / out->bytes_per_ns) / small.n
                                  : likely_latency(run, all.work_ns / all.n);
    if (out->latency_ns < LATENCY_PART * all.work_ns / all.n)
        out->latency_ns = LATENCY_PART * all.work_ns / all.n;
    out->bytes_per_ns = large.bytes / (large.work_ns - large.n * out->latency_ns);
}

/* Finds how far the rate of a single step is from that of all, on average. */
static void judge(const struct rp_sim_run *run, const struct transfers *x, struct rp_transport *t)
{
    struct sums all = sum_transfers(x, 0, INT64_MAX), one = {0};
    double off = 0;
    uint16_t step = RP_NO_STEP;

    for (size_t i = 0; i <= x->list.n; i++) {
        uint16_t now = i < x->list.n ? rp_sim_step_at(run->parts[0], x->list.at[i].begin_ns) : 0;

        if (i == x->list.n || now != step) {
            off += fabs(one.work_ns - all.work_ns * one.bytes / all.bytes);
            one = (struct sums){0};
            step = now;
        }
        if (i < x->list.n) {
            one.work_ns += x->list.at[i].work_ns;
            one.bytes += (double)x->list.at[i].bytes;
        }
    }
    t->spread_ratio = all.work_ns > 0 ? off / all.work_ns : 0;
    t->mean_ns = all.work_ns / all.n;
    t->mean_bytes = all.bytes / all.n;
}

/* Sets another latency such that a transfer of the mean size takes as long as before. */
static void trade(struct rp_transport *t, double latency_ns)
{
    if (latency_ns < t->mean_ns) {
        t->latency_ns = latency_ns;
        t->bytes_per_ns = t->mean_bytes / (t->mean_ns - latency_ns);
    }
}

double rp_transport_doubt(const struct rp_transport *t)
{
    return t->spread_ratio > RP_RUNS_DIFFER ? t->spread_ratio : RP_RUNS_DIFFER;
}

static void lean(struct rp_transport *t, enum rp_sim_lean to, double most_ns)
{
    double spread = rp_transport_doubt(t);
    double by = to == RP_LEAN_SLOWER ? 1 + spread : to == RP_LEAN_FASTER ? 1 / (1 + spread) : 1;
    double more =
        t->one_size
            ? most_ns
            : 2 * t->latency_ns; /* a latency that was found may be up to twice or half of it */

    if (more > MOST_LATENCY_PART * t->mean_ns)
        more = MOST_LATENCY_PART * t->mean_ns;
    if (to == RP_LEAN_LESS_LATENCY)
        trade(t, t->one_size ? 0 : t->latency_ns / 2);
    else if (to == RP_LEAN_MORE_LATENCY && more > t->latency_ns)
        trade(t, more);
    t->latency_ns *= by;
    t->bytes_per_ns /= by;
}

double rp_transport_round_ns(const struct rp_sim_run *run)
{
    return run->parts[0]->collectives.on_host ? HOST_ROUND_NS : DEVICE_ROUND_NS;
}

enum rp_code rp_transport_fit(const struct rp_sim_run *run, struct rp_transport *out,
                              struct rp_err *err)
{
    struct transfers x = {0};

    memset(out, 0, sizeof *out);
    enum rp_code code = collect(run, &x, err);
    if (code == RP_OK && x.list.n) {
        rp_transfers_share(x.list.at, x.list.n);
        fit(run, &x, out);
        judge(run, &x, out);
        lean(out, run->lean, rounds_of(run) * rp_transport_round_ns(run));
        if (run->parts[0]->collectives.on_host)
            out->slower_by_twice = run->lean == RP_LEAN_FASTER   ? 0
                                   : run->lean == RP_LEAN_SLOWER ? HOST_MOST_SLOWER_BY_TWICE
                                                                 : HOST_SLOWER_BY_TWICE;
    }
    rp_vec_release(&x.list);
    return code;
}

int64_t rp_transport_ns(const struct rp_transport *t, int64_t bytes)
{
    double twice = (double)bytes > t->most_bytes ? log2((double)bytes / t->most_bytes) : 0;
    double slower = pow(1 + t->slower_by_twice, twice < MOST_TWICE ? twice : MOST_TWICE);

    return (int64_t)(t->latency_ns + slower * (double)bytes / t->bytes_per_ns);
}
