/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels so short that the gaps between them matter. */
#include "explain/findings/tiny_kernels.h"
#include "explain/findings/finding.h"

#define LATENCY_SHARE 0.1
#define TINY_SHARE    0.8
RP_DECISION(LATENCY_SHARE, "of the span",
            "a device that waits 2 us for the launch of each kernel of 20 us works well, and that "
            "is a tenth: the launches are worth a finding from there on",
            "explain/gaps_are_of_tiny_kernels_or_of_launches");
RP_DECISION(TINY_SHARE, "of the gaps after launches that came in time",
            "where this share is before tiny kernels, fewer and longer kernels help, whatever "
            "causes the rest",
            "explain/gaps_are_of_tiny_kernels_or_of_launches");

RP_PART_TYPE(rp_kept_tiny_kernels, struct rp_tiny_kernels, RP_TINY_KERNELS);

static bool is_tiny(const struct rp_work_item *x)
{
    return x->cls == RP_WORK_COMPUTE && rp_ns_between(x->begin_ns, x->end_ns) < RP_TINY_NS;
}

static enum rp_code tiny_kernels_measure(const struct rp_finding_rank *rank, void *kept,
                                         struct rp_err *err)
{
    const struct rp_work_item *items = rank->work->items.at;
    struct rp_tiny_kernels *out = kept;

    (void)err;
    for (size_t i = 0; i < rank->work->items.n; i++) {
        out->kernels += items[i].cls == RP_WORK_COMPUTE;
        out->tiny += is_tiny(&items[i]);
    }
    for (size_t i = 0; i < rank->gaps->n; i++) {
        const struct rp_gap *gap = &rank->gaps->at[i];

        if (gap->cause == RP_GAP_LAUNCH_LATENCY && gap->cls != RP_GAP_CLASS_NOT_LAUNCHED &&
            is_tiny(&items[gap->after]))
            rp_ns_add(&out->gap_ns, rp_ns_between(gap->begin_ns, gap->end_ns));
    }
    return RP_OK;
}

const struct rp_tiny_kernels *rp_tiny_kernels_of(const struct rp_findings *f)
{
    return rp_findings_lead(f)->kept[RP_KEPT_tiny_kernels].at;
}

bool rp_tiny_kernels_are_most(const struct rp_findings *f)
{
    const struct rp_tiny_kernels *k = rp_tiny_kernels_of(f);
    double latency = (double)f->chain->cause_ns[RP_GAP_LAUNCH_LATENCY];

    return k && (latency < LATENCY_SHARE * (double)f->span_ns ||
                 (double)k->gap_ns >= TINY_SHARE * latency);
}

void rp_tiny_kernels_say(const struct rp_findings *f, struct rp_report_finding *finding)
{
    const struct rp_tiny_kernels *k = rp_tiny_kernels_of(f);

    RP_SAY(f, finding, "rank %d: %lld of %lld kernels take less than 10 µs",
           rp_findings_lead_number(f), (long long)k->tiny, (long long)k->kernels);
}

static void tiny_kernels_find(struct rp_findings *f)
{
    struct rp_report_finding *finding =
        rp_tiny_kernels_are_most(f) ? rp_findings_add(f, 0, rp_tiny_kernels_of(f)->gap_ns) : NULL;

    if (!finding)
        return;
    finding->where.causes = f->row->idle;
    rp_tiny_kernels_say(f, finding);
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_COMPILE, .text = "fuse them, or give them more work"},
    {RP_ADVISE_COMPILE, .frameworks = FW(PYTORCH), .compiled = RP_KEY_NO,
     .text = "torch.compile(model) fuses them", .what_if = "fuse"},
    {RP_ADVISE_COMPILE, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA), .compiled = RP_KEY_YES,
     .text = "torch.compile(mode=\"max-autotune-no-cudagraphs\"); TORCH_LOGS=graph_breaks "
             "shows what is not compiled"},
    {RP_ADVISE_COMPILE, .frameworks = FW(PYTORCH), .compiled = RP_KEY_YES,
     .text = "TORCH_LOGS=graph_breaks shows what is not compiled"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA), .graphs = RP_KEY_NO,
     .text = "torch.compile(model, mode=\"reduce-overhead\"): CUDA graphs, with shorter gaps "
             "between kernels",
     .what_if = "cuda-graphs"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(PYTORCH), .vendors = BY(AMD), .graphs = RP_KEY_NO,
     .text = "torch.compile(model, mode=\"reduce-overhead\"): HIP graphs, with shorter gaps "
             "between kernels",
     .what_if = "cuda-graphs"},
    {RP_ADVISE_OPTIMIZER, .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .parallels = PAR(NONE) | PAR(OTHER) | PAR(DDP) | PAR(FSDP), .plain_update = RP_KEY_YES,
     .text = "fused=True of the optimizer (torch.optim's Adam, AdamW, SGD): one kernel for many "
             "parameters",
     .what_if = "fused-optimizer"},
    {RP_ADVISE_COMPILE, .frameworks = FW(VLLM), .compiled = RP_KEY_NO, .graphs = RP_KEY_NO,
     .text = "vllm serve without --enforce-eager, so that the model is compiled"},
    {RP_ADVISE_COMPILE, .frameworks = FW(VLLM), .text = "more requests at once: --max-num-seqs"},
    {RP_ADVISE_COMPILE, .frameworks = FW(SGLANG), .compiled = RP_KEY_NO,
     .text = "sglang.launch_server --enable-torch-compile"},
    {RP_ADVISE_COMPILE, .frameworks = FW(SGLANG),
     .text = "more requests at once: --max-running-requests"},
    {RP_ADVISE_COMPILE, .frameworks = FW(TENSORRT_LLM),
     .text = "more requests at once: max_batch_size, max_num_tokens"},
    {RP_ADVISE_COMPILE, .frameworks = FW(JAX),
     .text = "larger arrays: jax.vmap instead of loops, one jax.jit around all of it, larger "
             "batches"},
    {RP_ADVISE_COMPILE, .frameworks = FW(TENSORFLOW), .compiled = RP_KEY_NO,
     .text = "@tf.function(jit_compile=True) fuses them"},
    {RP_ADVISE_COMPILE, .frameworks = FW(TENSORFLOW), .compiled = RP_KEY_YES,
     .text = "larger batches"},
    {RP_ADVISE_COMPILE, .frameworks = FW(OPENCL),
     .text = "fuse them, or give each a larger global work size; a local size of NULL lets the "
             "runtime choose"},
};

const struct rp_finding rp_finding_tiny_kernels = {
    .id = "tiny-kernels",
    .kinds = {{"", "kernels so short that the gaps between them matter"}},
    .condition =
        "the gaps between kernels that were launched in time cost less than `LATENCY_SHARE` "
        "of the span, or these kernels have `TINY_SHARE` of them; else it is `launch-latency`",
    .cost = "idle time whose cause is `launch_latency`, before kernels that take less than "
            "`RP_TINY_NS`",
    .idle = 1u << RP_GAP_LAUNCH_LATENCY,
    .numbers = RP_FINDING_NUMBER(RP_TINY_NS) RP_FINDING_NUMBER(LATENCY_SHARE)
        RP_FINDING_NUMBER(TINY_SHARE),
    .test = "explain/gaps_are_of_tiny_kernels_or_of_launches",
    RP_KEEPS(tiny_kernels, tiny_kernels_measure),
    .find = tiny_kernels_find,
    RP_ADVICE(advice),
};
