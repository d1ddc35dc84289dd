/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that use only a part of the device. Low occupancy is measured by blocks: a kernel with
 * fewer blocks than multiprocessors leaves some empty, and could at best be that much shorter. Few
 * warps alone are not a fault, because matrix products run best with few. A kernel after which the
 * device waits for the host does not count, because nothing is gained if it is shorter.
 */
#include "base/filled.h"
#include "explain/findings/finding.h"
#include "explain/findings/tiny_kernels.h"
#include "explain/short_name.h"
#include "facts/arg_keys.h"

#define THIN_SHARE  0.05
#define LOW_PERCENT 25.0
RP_DECISION(THIN_SHARE, "of the span",
            "an upper bound: of what blocks could save, other limits of the kernel leave a part",
            "explain/thin_kernels_have_edges");
RP_DECISION(LOW_PERCENT, "% occupancy",
            "where the number of blocks is not known: so few warps hide the latency of memory on "
            "no device; kernels that run well on few warps are left out by their class",
            "explain/thin_kernels_have_edges");

/* Kernels that leave multiprocessors without a block: their time, and the most that is lost. */
#define KEPT(M, s)                                           \
    M(s, PLAIN, int64_t, count)                              \
    M(s, PLAIN, int64_t, ns)                                 \
    M(s, PLAIN, int64_t, lost_ns)                            \
    M(s, TEXT, name) /* the name that loses most, or NULL */ \
    M(s, PLAIN, int64_t, name_lost_ns)
RP_PART_STRUCT(kept, KEPT);
RP_PART_TYPE(rp_kept_low_occupancy, struct kept, KEPT);

struct thin_ctx {
    const struct rp_finding_rank *rank;
    struct rp_arg_key blocks, occupancy;
    RP_VEC(uint8_t) starved; /* by item: the device waits for the host after it */
    RP_VEC(int64_t) lost;    /* by string */
};

/* An argument as a number of either kind; 0 if there is none. */
static double number_of(const struct rp_arg_key *key, rp_event e)
{
    struct rp_arg arg;

    if (!rp_arg_key_find(key, e, &arg))
        return 0;
    return arg.type == RP_ARG_I64 ? (double)arg.v.i : arg.type == RP_ARG_F64 ? arg.v.f : 0;
}

/* The share of the device that a kernel uses; 1 if it is not known. */
static double used_share(const struct thin_ctx *ctx, rp_event e)
{
    uint8_t cls = ctx->rank->trace->str.name_class[ctx->rank->trace->ev.name[e]];
    double blocks = number_of(&ctx->blocks, e), percent;

    if (blocks > 0)
        return blocks < 1 ? blocks : 1;
    percent = number_of(&ctx->occupancy, e);
    if (percent <= 0 || percent >= LOW_PERCENT || cls == RP_NAME_GEMM || cls == RP_NAME_CONV ||
        cls == RP_NAME_ATTENTION)
        return 1;
    return percent / LOW_PERCENT;
}

/* Time in which a kernel runs beside others does not count, because together they may fill the
   device. */
static void sum_kernels(struct thin_ctx *ctx, struct kept *out)
{
    const struct rp_trace *t = ctx->rank->trace;
    int64_t until = INT64_MIN;
    rp_str name, worst = RP_NONE;

    for (size_t i = 0; i < ctx->rank->work->items.n; i++) {
        const struct rp_work_item *x = &ctx->rank->work->items.at[i];
        int64_t from = x->begin_ns > until ? x->begin_ns : until, lost;
        double fill = x->cls == RP_WORK_COMPUTE ? used_share(ctx, x->event) : 1;

        until = x->end_ns > until ? x->end_ns : until;
        if (fill >= 1 || ctx->starved.at[i] || rp_ns_between(x->begin_ns, x->end_ns) < RP_TINY_NS ||
            x->end_ns <= from)
            continue;
        lost = (int64_t)((1 - fill) * (double)rp_ns_between(from, x->end_ns));
        name = t->ev.name[x->event];
        out->count++;
        rp_ns_add(&out->ns, rp_ns_between(from, x->end_ns));
        rp_ns_add(&out->lost_ns, lost);
        rp_ns_add(&ctx->lost.at[name], lost);
        if (ctx->lost.at[name] > out->name_lost_ns) {
            out->name_lost_ns = ctx->lost.at[name];
            worst = name;
        }
    }
    out->name = worst == RP_NONE ? NULL : rp_arena_text(ctx->rank->arena, rp_trace_str(t, worst));
}

static enum rp_code measure_all(struct thin_ctx *ctx, struct kept *out, struct rp_err *err)
{
    const struct rp_trace *t = ctx->rank->trace;

    RP_TRY(rp_arg_key_init(&ctx->blocks, t, "blocks per SM", err));
    RP_TRY(rp_arg_key_init(&ctx->occupancy, t, "est. achieved occupancy %", err));
    if (ctx->blocks.key == RP_NONE && ctx->occupancy.key == RP_NONE)
        return RP_OK;

    const rp_gap_vec *gaps = ctx->rank->gaps;
    size_t n = ctx->rank->work->items.n;
    RP_TRY(rp_vec_zeros(&ctx->starved, n, err));
    for (size_t i = 0; i < gaps->n; i++)
        if (gaps->at[i].before != RP_NONE)
            ctx->starved.at[gaps->at[i].before] |= gaps->at[i].cls == RP_GAP_CLASS_NOT_LAUNCHED;
    RP_TRY(rp_vec_zeros(&ctx->lost, t->str.n, err));
    sum_kernels(ctx, out);
    return RP_OK;
}

static enum rp_code low_occupancy_measure(const struct rp_finding_rank *rank, void *kept,
                                          struct rp_err *err)
{
    struct thin_ctx ctx = {.rank = rank};
    enum rp_code code = measure_all(&ctx, kept, err);

    rp_arg_key_release(&ctx.blocks);
    rp_arg_key_release(&ctx.occupancy);
    rp_vec_release(&ctx.starved);
    rp_vec_release(&ctx.lost);
    return code;
}

static void low_occupancy_find(struct rp_findings *f)
{
    const struct kept *k = rp_findings_kept(f, f->chain->lead);
    struct rp_report_finding *finding =
        k && k->name ? rp_findings_add_compute(f, 0, k->lost_ns) : NULL;
    char name[120];

    if (!finding)
        return;
    bool one = k->count == 1;
    finding->where.names[0] = k->name;
    rp_short_name(k->name, name, sizeof name);
    RP_SAY(
        f, finding,
        "rank %d: %lld kernel%s fewer blocks than the device has multiprocessors; %s %s, of which "
        "at most %s can be saved",
        rp_findings_lead_number(f), (long long)k->count, one ? " has" : "s have",
        one ? "it takes" : "they take", rp_findings_time(f, k->ns),
        rp_findings_time(f, k->lost_ns));
    RP_SAY(f, finding, "mainly %s (%s)", name, rp_findings_time(f, k->name_lost_ns));
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_SIZE,
     .text = "larger batches, or several small kernels at once on different streams"},
    {RP_ADVISE_SIZE, .frameworks = FW(PYTORCH),
     .text = "larger batches, or several of these in one call (torch.bmm, torch.vmap)"},
    {RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA), .compiled = RP_KEY_NO,
     .text = "torch.compile(model, mode=\"max-autotune-no-cudagraphs\"): other tiles, split-k"},
    {RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .vendors = BY(AMD),
     .text = "PYTORCH_TUNABLEOP_ENABLED=1: PyTorch tries other kernels of hipBLASLt and "
             "rocBLAS for matrix products"},
    {RP_ADVISE_SIZE, .frameworks = FW(VLLM),
     .text = "more requests at once: --max-num-seqs (decode), --max-num-batched-tokens "
             "(prefill)"},
    {RP_ADVISE_CALL, .frameworks = FW(VLLM), .vendors = BY(AMD),
     .text = "VLLM_ROCM_USE_AITER=1: AMD's own kernels"},
    {RP_ADVISE_SIZE, .frameworks = FW(SGLANG),
     .text = "more requests at once: --max-running-requests (decode), --chunked-prefill-size "
             "(prefill)"},
    {RP_ADVISE_SIZE, .frameworks = FW(TENSORRT_LLM),
     .text = "more requests at once: max_batch_size, max_num_tokens"},
    {RP_ADVISE_SIZE, .frameworks = FW(JAX), .text = "larger batches, jax.vmap instead of loops"},
    {RP_ADVISE_SIZE, .frameworks = FW(NATIVE),
     .text = "a larger grid (less work per block), or several kernels at once on different "
             "streams"},
    {RP_ADVISE_SIZE, .frameworks = FW(OPENCL),
     .text = "a larger global work size (less work per work-item), or several command queues"},
};

const struct rp_finding rp_finding_low_occupancy = {
    .id = "low-occupancy",
    .kinds = {{"", "kernels that use only a part of the device", .least_share = THIN_SHARE}},
    .condition =
        "kernels of `RP_TINY_NS` or more, after which the device does not wait for the host, "
        "have fewer blocks than multiprocessors; where blocks are not known, less occupancy "
        "than `LOW_PERCENT`, and they are not a matrix product, convolution or attention",
    .cost = "the time in which no other work runs × (1 − blocks per multiprocessor), or × (1 − "
            "occupancy / `LOW_PERCENT`); an upper bound",
    .numbers =
        RP_FINDING_NUMBER(THIN_SHARE) RP_FINDING_NUMBER(LOW_PERCENT) RP_FINDING_NUMBER(RP_TINY_NS),
    .test = "explain/thin_kernels_have_edges",
    RP_KEEPS(low_occupancy, low_occupancy_measure),
    .find = low_occupancy_find,
    RP_ADVICE(advice),
};
