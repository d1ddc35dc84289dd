/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of few rows, as in decoding: each reads all of its weights for a few tokens, which
 * determines its time. No kernel can be faster; only fewer bytes, or more tokens for the same
 * bytes, help.
 */
#include "explain/findings/finding.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

#define READS_SHARE 0.05
RP_DECISION(READS_SHARE, "of the span",
            "an upper bound: weights in 8 bits have scales, and are unpacked",
            "explain/weights_are_read_for_few_rows");

#define FEWEST_ROWS 8
RP_FACT(FEWEST_ROWS, "rows", "the smallest tile of cuBLAS: products of one row have it, too");

#define KEPT(M, s)                                                                    \
    M(s, PLAIN, int64_t, ns)                                                          \
    M(s, PLAIN, double, bytes)                                                        \
    M(s, PLAIN, double, rate)      /* rate of the memory at its peak */               \
    M(s, PLAIN, int64_t, saved_ns) /* savings with half of the bytes, at that rate */ \
    M(s, PLAIN, int64_t,                                                              \
      vector_ns) /* products of one row, or of few, of which no bytes are known */
RP_PART_STRUCT(kept, KEPT);
RP_PART_TYPE(rp_kept_weight_reads, struct kept, KEPT);

/* Whether its kernel multiplies weights of 16 bits by one row or a few, by the names that libraries
   give: the memory sets its pace, because it has a few operations for each number that it reads.
   cuBLAS writes the tile, "nvjet_sm90_tst_128x8_64x12_…", and has none for fewer than 8 rows. */
static bool has_few_rows(const struct rp_finding_rank *rank, const struct rp_cost_call *call)
{
    const struct rp_trace *t = rank->trace;
    const char *name = rp_trace_str(t, t->ev.name[rank->work->items.at[call->item].event]);
    int rows;

    if (rp_text_begins(name, "nvjet_"))
        return sscanf(name, "nvjet_%*[^_]_%*[^_]_%*dx%d_", &rows) == 1 && rows == FEWEST_ROWS;
    return strstr(name, "gemv") &&
           (strstr(name, "bfloat16") || strstr(name, "half") || strstr(name, "bf16"));
}

/* Measures products that memory limits, and whose numbers have more than 8 bits. */
static enum rp_code weight_reads_measure(const struct rp_finding_rank *rank, void *kept,
                                         struct rp_err *err)
{
    struct kept *out = kept;

    (void)err;
    for (size_t i = 0; rank->peaks && i < rank->calls->calls.n; i++) {
        const struct rp_cost_call *call = &rank->calls->calls.at[i];
        const struct rp_op_cost *c = &rank->costs->costs.at[call->cost];

        if (!rp_cost_is_known(c) && has_few_rows(rank, call))
            rp_ns_add(&out->vector_ns, call->device_ns);
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
    struct rp_report_finding *finding =
        k ? rp_findings_add_compute(f, 0, rp_ns_sum(k->saved_ns, k->vector_ns / 2)) : NULL;

    if (finding && k->vector_ns)
        RP_SAY(f, finding,
               "rank %d: products of one row or a few take %s, by the names of their kernels: each "
               "reads all of its weights",
               rp_findings_lead_number(f), rp_findings_time(f, k->vector_ns));
    if (finding && k->ns)
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
        "products in 16 bits whose shapes were recorded take longer to read than to compute, at the "
        "peaks of the device; without shapes, kernels whose names say that they multiply "
        "weights in 16 bits by a vector or by at most `FEWEST_ROWS` rows (gemv, tiles of cuBLAS)",
    .cost = "half of the time in which the peak of the memory reads their bytes, or of what these "
            "kernels take; an upper bound",
    .numbers = RP_FINDING_NUMBER(READS_SHARE),
    .test = "explain/weights_are_read_for_few_rows",
    RP_KEEPS(weight_reads, weight_reads_measure),
    .find = weight_reads_find,
    RP_ADVICE(advice),
};
