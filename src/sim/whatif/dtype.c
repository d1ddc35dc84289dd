/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dtype: kernels in another number format. Of products whose shapes were recorded a cost model says
 * what they gain (sim/kernel_ratios.h). The rest follows from its class and its time, by a table of
 * medians over 1,920 single operators that were measured on one H200; the remaining doubt is in the
 * interval.
 */
#include "sim/whatif/nodes.h"

#include <string.h>

/* How long an operator takes in bf16, in parts of its time in fp32, up to a time in fp32. */
struct gain {
    int64_t up_to_ns;
    double factor;
};

/* Products whose sizes are multiples of 8: others gain half as much or nothing. */
static const struct gain matrix_gain[] = {{6000, 0.76},     {12000, 0.45},  {25000, 0.28},
                                          {50000, 0.19},    {100000, 0.13}, {200000, 0.09},
                                          {INT64_MAX, 0.07}};
static const struct gain convolution_gain[] = {
    {12000, 1.16}, {25000, 0.92}, {50000, 0.70}, {INT64_MAX, 0.52}};
/* Autocast computes some of them in 16 bits and leaves others, as normalizations and losses, in 32.
   Long ones, which the memory limits, gain half of what half the bytes save. */
static const struct gain element_gain[] = {
    {15000, 1}, {30000, 0.92}, {60000, 0.84}, {INT64_MAX, 0.75}};
/* No matrix units and no change of layout: half the bytes, after the overhead. */
static const struct gain depthwise_gain[] = {
    {6000, 0.9}, {12000, 0.75}, {25000, 0.65}, {50000, 0.57}, {INT64_MAX, 0.51}};

/* Operands and results of products are converted, by kernels of their own. On one GPT that took 4
   us for a product of 116 us; as one CUDA graph less, as gaps between kernels became shorter too.
 */
#define CONVERT_NS   1500
#define CONVERT_PART 0.02

/* A product in tf32 runs on the matrix units already, at half their rate. */
#define TF32_GAIN 0.5

/* The middle half of the pairs that the medians were taken of lies within this. */
#define DOUBT_DTYPE 0.3

static bool is_depthwise(const char *kernel)
{
    return strcasestr(kernel, "depthwise") || strcasestr(kernel, "dwconv") ||
           strcasestr(kernel, "dgrad2d_grouped") || strcasestr(kernel, "wgrad2d_grouped");
}

static double gain_of(const char *kernel, int64_t dur_ns)
{
    static const struct gain *const tables[] = {[RP_KERNEL_MATRIX] = matrix_gain,
                                                [RP_KERNEL_CONVOLUTION] = convolution_gain,
                                                [RP_KERNEL_ELEMENTS] = element_gain};
    const struct gain *g = is_depthwise(kernel) ? depthwise_gain : tables[rp_kernel_class(kernel)];

    if (rp_kernel_class(kernel) == RP_KERNEL_MATRIX && strcasestr(kernel, "tf32"))
        return TF32_GAIN;
    while (dur_ns > g->up_to_ns)
        g++;
    return g->factor;
}

/* What the model says of a node; NULL: nothing. */
static const struct rp_sim_ratio *ratio_of(const struct rp_sim_run *run, uint32_t node)
{
    const struct rp_sim_part *part = rp_sim_part_of(run, node);
    size_t rank = run->nranks > 1 ? rp_sim_node(run, node)->rank : 0;
    size_t at = node - rp_sim_first_node(run, rank);

    return at < part->ratios.n && part->ratios.at[at].ratio > 0 ? &part->ratios.at[at] : NULL;
}

static bool is_converted(const struct rp_sim_run *run, uint32_t node)
{
    const struct rp_sim_ratio *ratio = ratio_of(run, node);

    return rp_kernel_is_half(rp_sim_node_name(run, node)) || (ratio && ratio->ratio == 1);
}

/* From this part of the time of products in 16 bits on, what is not was left out on purpose. */
#define MIXED_PART 0.5
/* From this part on a run is in 16 bits: the rest are sums of partial products and the like. */
#define HALF_PART 0.9

/* The part of the time of products that runs in 16 bits already; 0: there are none. */
static double half_part(const struct rp_sim_run *run)
{
    double half = 0, all = 0;
    uint32_t i;

    for (i = 0; i < rp_sim_nnodes(run); i++)
        if (rp_sim_is_kernel(run, i) &&
            rp_kernel_class(rp_sim_node_name(run, i)) != RP_KERNEL_ELEMENTS) {
            all += (double)run->overlay.dur_ns.at[i];
            half += is_converted(run, i) ? (double)run->overlay.dur_ns.at[i] : 0;
        }
    return all > 0 ? half / all : 0;
}

static double factor_of(struct rp_sim_run *run, uint32_t node, bool mixed)
{
    const char *kernel = rp_sim_node_name(run, node);
    int64_t dur_ns = run->overlay.dur_ns.at[node];
    const struct rp_sim_ratio *ratio = ratio_of(run, node);
    double convert = rp_kernel_class(kernel) == RP_KERNEL_ELEMENTS || is_depthwise(kernel)
                         ? 0
                         : (CONVERT_NS + CONVERT_PART * (double)dur_ns) / (double)(dur_ns + 1);

    if (mixed && rp_kernel_class(kernel) == RP_KERNEL_ELEMENTS)
        return 1;
    if (!ratio)
        return convert + gain_of(kernel, dur_ns) * rp_sim_lean_by(run, DOUBT_DTYPE);
    run->leans = true;
    return convert + (double)(run->lean == RP_LEAN_SLOWER   ? ratio->high
                              : run->lean == RP_LEAN_FASTER ? ratio->low
                                                            : ratio->ratio);
}

static enum rp_code dtype_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                struct rp_err *err)
{
    bool mixed;
    uint32_t i, n = 0;

    if (!args->value || strcmp(args->value, "bf16") != 0)
        return rp_err_set(err, RP_USAGE, "'%s': only dtype=bf16 is supported", args->text);
    RP_TRY(rp_sim_need_kernels(run, "dtype", err));
    mixed = half_part(run) > MIXED_PART;
    for (i = 0; i < rp_sim_nnodes(run); i++)
        if (rp_sim_is_kernel(run, i) && rp_sim_note_of(run, i)->phase != RP_PHASE_OPTIMIZER &&
            !is_converted(run, i)) {
            double factor = factor_of(run, i, mixed);

            n += !mixed || factor != 1;
            RP_TRY(rp_sim_scale_node(run, i, factor, err));
        }
    return n ? RP_OK
             : rp_err_set(err, RP_UNSUPPORTED, "dtype: all products run in 16 bits already");
}

static enum rp_code dtype_propose(const struct rp_sim_run *run, struct rp_arena *arena,
                                  rp_whatif_texts *out, struct rp_err *err)
{
    (void)arena;
    return half_part(run) > HALF_PART
               ? rp_err_set(err, RP_UNSUPPORTED, "dtype: the products run in 16 bits already")
               : rp_vec_push(out, "dtype=bf16", err);
}

static const struct rp_whatif_move dtype_move = {
    .family = "precision",
    .effort = 2,
    .apply = "run the forward pass under torch.autocast('cuda', dtype=torch.bfloat16)",
    .propose = dtype_propose};

const struct rp_whatif rp_whatif_dtype = {
    .name = "dtype",
    .form = "dtype=bf16",
    .summary = "kernels outside the optimizer run in bf16 instead of fp32",
    .assumes =
        "products gain what the cost model says of their shapes, or, without shapes, what "
        "products of their time gained on one H200; conversions cost 1.5 µs and 2 % of a product; "
        "long element-wise kernels gain a quarter",
    .value = RP_WHATIF_WORD,
    .move = &dtype_move,
    .apply = dtype_apply};
