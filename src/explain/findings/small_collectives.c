/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives that a step could do without: hundreds of small ones, each of which takes its
 * latency, and the buffers of modules that DistributedDataParallel sends before each forward pass.
 */
#include "explain/findings/finding.h"

enum { SMALL, BUFFERS };

#define SMALL_BYTES 262144
RP_DECISION(SMALL_BYTES, "bytes",
            "at 10 GB/s, of a slow network, that takes 26 us, about its latency: larger ones gain "
            "little by being joined",
            "explain/small_collectives_have_edges");
#define MANY 100
RP_DECISION(MANY, "collectives of a step",
            "their latencies of tens of us are milliseconds together; joined, fewer are left",
            "explain/small_collectives_have_edges");

struct sums {
    int64_t count, ns, all_ns;
};

/* Sums in the span of the rank at the end of the chain. */
static struct sums sum_of(const struct rp_report_part *p, unsigned kind)
{
    struct sums out = {0};

    for (size_t i = 0; i < p->collectives.list.n; i++) {
        const struct rp_collective *c = &p->collectives.list.at[i];
        int64_t ns = rp_ns_between(c->begin_ns, c->end_ns);

        if (c->begin_ns < p->whole.begin_ns || c->end_ns > p->whole.end_ns)
            continue;
        rp_ns_add(&out.all_ns, ns);
        if (kind == BUFFERS ? c->kind != RP_COLL_BROADCAST
                            : c->in_bytes < 0 || c->in_bytes > SMALL_BYTES)
            continue;
        out.count++;
        rp_ns_add(&out.ns, ns);
    }
    return out;
}

/* The share of these collectives in the exposed transfers, or on the hosts, in waiting for them. */
static int64_t share_of(const struct rp_findings *f, const struct sums *s)
{
    int64_t lost = f->chain->transfer_ns > f->chain->cause_ns[RP_GAP_OTHER_RANK]
                       ? f->chain->transfer_ns
                       : f->chain->cause_ns[RP_GAP_OTHER_RANK];

    return s->all_ns > 0 ? (int64_t)((double)lost * ((double)s->ns / (double)s->all_ns)) : 0;
}

static void add(struct rp_findings *f, unsigned kind, const struct sums *s, size_t steps)
{
    struct rp_report_finding *finding = rp_findings_add(f, kind, share_of(f, s));

    if (!finding)
        return;
    finding->where.exposed = true;
    RP_SAY(f, finding, "rank %d: %s of %s, %lld a step, %s each on average",
           rp_findings_lead_number(f),
           rp_units_count(f->arena, s->count, kind == BUFFERS ? "broadcast" : "collective"),
           kind == BUFFERS ? "buffers" : "at most 256 KiB", (long long)(s->count / (int64_t)steps),
           rp_findings_time(f, s->ns / (s->count > 0 ? s->count : 1)));
}

static void small_collectives_find(struct rp_findings *f)
{
    const struct rp_report_part *p = rp_findings_lead(f);
    size_t steps = p->nsteps ? p->nsteps : 1;
    struct sums buffers = sum_of(p, BUFFERS), small = sum_of(p, SMALL);

    if (p->workload.parallel == RP_PARALLEL_DDP && p->workload.mode == RP_MODE_TRAINING &&
        buffers.count >= (int64_t)p->nsteps && p->nsteps)
        add(f, BUFFERS, &buffers, steps);
    else if (small.count >= MANY * (int64_t)steps)
        add(f, SMALL, &small, steps);
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_CALL, OF(SMALL), .text = "join small tensors into one before they are exchanged"},
    {RP_ADVISE_CALL, OF(SMALL), .frameworks = FW(PYTORCH),
     .text = "torch.distributed's all_reduce_coalesced or _coalescing_manager, or one flat tensor "
             "for many"},
    {RP_ADVISE_CALL, OF(SMALL), .frameworks = FW(HOROVOD),
     .text = "hvd.grouped_allreduce, or a larger HOROVOD_FUSION_THRESHOLD"},
    {RP_ADVISE_CALL, OF(BUFFERS), .text = "exchange buffers every N steps"},
    {RP_ADVISE_CALL, OF(BUFFERS), .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .text = "DistributedDataParallel(model, broadcast_buffers=False), where each rank may keep "
             "its own statistics of batch normalization"},
};

const struct rp_finding rp_finding_small_collectives = {
    .id = "small-collectives",
    .kinds = {{"small", "so many small collectives that their latency counts"},
              {"buffers", "buffers of modules are sent to all ranks before each forward pass"}},
    .condition =
        "small: at least `MANY` collectives a step, of at most `SMALL_BYTES` each; buffers: "
        "broadcasts in the training steps of DistributedDataParallel, one a step or more",
    .cost = "the exposed transfers of the chain, or on the hosts the idle time in which devices "
            "wait for other ranks, times the part of the time in collectives that is theirs",
    .numbers = RP_FINDING_NUMBER(SMALL_BYTES) RP_FINDING_NUMBER(MANY),
    .test = "explain/small_collectives_have_edges",
    .overlaps = true,
    .find = small_collectives_find,
    RP_ADVICE(advice),
};
