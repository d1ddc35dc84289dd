/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of few rows, as in decoding: each reads all of its weights for a few tokens, which
 * determines its time. No kernel can be faster; only fewer bytes, or more tokens for the same
 * bytes, help.
 */
#include "explain/findings/finding.h"

#define READS_SHARE 0.05
RP_DECISION(READS_SHARE, "of the span",
            "an upper bound: weights in 8 bits have scales, and are unpacked",
            "explain/weights_are_read_for_few_rows");

#define KEPT(M, s)                                                      \
    M(s, PLAIN, int64_t, ns)                                            \
    M(s, PLAIN, double, bytes)                                          \
    M(s, PLAIN, double, rate)      /* rate of the memory at its peak */ \
    M(s, PLAIN, int64_t, saved_ns) /* savings with half of the bytes, at that rate */
RP_PART_STRUCT(kept, KEPT);
RP_PART_TYPE(rp_kept_weight_reads, struct kept, KEPT);

/* Measures products that memory limits, and whose numbers have more than 8 bits. */
static enum rp_code weight_reads_measure(const struct rp_finding_rank *rank, void *kept,
                                         struct rp_err *err)
{
    struct kept *out = kept;

    (void)err;
    for (size_t i = 0; rank->peaks && i < rank->calls->calls.n; i++) {
        const struct rp_cost_call *call = &rank->calls->calls.at[i];
        const struct rp_op_cost *c = &rank->costs->costs.at[call->cost];

        if (call->category != RP_CATEGORY_MATMUL || !rp_cost_is_known(c) ||
            (c->type != RP_NUMBER_BF16 && c->type != RP_NUMBER_FP16) ||
            rp_cost_memory_s(c, rank->peaks) <= rp_cost_compute_s(c, rank->peaks))
            continue;
        rp_ns_add(&out->ns, call->device_ns);
        out->bytes += c->bytes;
    }
    out->rate = rank->peaks ? rank->peaks->memory : 0;
    out->saved_ns = out->bytes > 0 ? (int64_t)(out->bytes / 2 / out->rate * 1e9) : 0;
    return RP_OK;
}

static void weight_reads_find(struct rp_findings *f)
{
    const struct kept *k = rp_findings_kept(f, f->chain->lead);
    struct rp_report_finding *finding = k ? rp_findings_add_compute(f, 0, k->saved_ns) : NULL;

    if (finding)
        RP_SAY(f, finding,
               "rank %d: products of few rows read %s in %s, at %s of %s; with half of the bytes "
               "that is at most %s less",
               rp_findings_lead_number(f), rp_units_text(f->arena, k->bytes, RP_UNIT_BYTES),
               rp_findings_time(f, k->ns),
               rp_units_text(f->arena, k->bytes * 1e9 / (double)k->ns, RP_UNIT_BPS),
               rp_units_text(f->arena, k->rate, RP_UNIT_BPS), rp_findings_time(f, k->saved_ns));
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_CALL, .text = "weights in 8 or 4 bits: half or a quarter of the bytes"},
    {RP_ADVISE_SIZE, .text = "more rows at once: the weights are read once for all of them"},
    {RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .modes = MODE(INFERENCE) | MODE(UNKNOWN),
     .text = "torchao.quantization.quantize_(model, Int8WeightOnlyConfig()): weights in 8 bits"},
    {RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .modes = MODE(TRAINING), .text = ""},
    {RP_ADVISE_CALL, .frameworks = FW(VLLM),
     .text = "vllm serve --quantization fp8, or a model with quantized weights"},
    {RP_ADVISE_CALL, .frameworks = FW(SGLANG),
     .text = "sglang.launch_server --quantization fp8, or a model with quantized weights"},
};

const struct rp_finding rp_finding_weight_reads = {
    .id = "weight-reads",
    .kinds = {{"", "products of few rows take as long as reading their weights",
               .least_share = READS_SHARE}},
    .condition =
        "shapes of products in 16 bits were recorded, and at the peaks of the device these "
        "take longer to read than to compute",
    .cost = "half of the time in which the peak of the memory reads their bytes; an upper bound",
    .numbers = RP_FINDING_NUMBER(READS_SHARE),
    .test = "explain/weights_are_read_for_few_rows",
    RP_KEEPS(weight_reads, weight_reads_measure),
    .find = weight_reads_find,
    RP_ADVICE(advice),
};
