/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dtype: kernels in another number format. What a kernel gains follows from its class and its time,
 * by a table of medians over 1,920 single operators that were measured on one H200; the remaining
 * doubt is in the interval.
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
/* Autocast halves the bytes of some and converts for others: on one GPT its element-wise kernels
   took 1.11 times as long together. */
static const struct gain element_gain[] = {{INT64_MAX, 1}};

/* A product in tf32 runs on the matrix units already, at half their rate. */
#define TF32_GAIN 0.5

/* The middle half of the pairs that the medians were taken of lies within this. */
#define DOUBT_DTYPE 0.3

static double gain_of(const char *kernel, int64_t dur_ns)
{
    static const struct gain *const tables[] = {[RP_KERNEL_MATRIX] = matrix_gain,
                                                [RP_KERNEL_CONVOLUTION] = convolution_gain,
                                                [RP_KERNEL_ELEMENTS] = element_gain};
    const struct gain *g = tables[rp_kernel_class(kernel)];

    if (rp_kernel_class(kernel) == RP_KERNEL_MATRIX && strcasestr(kernel, "tf32"))
        return TF32_GAIN;
    while (dur_ns > g->up_to_ns)
        g++;
    return g->factor;
}

static enum rp_code dtype_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                struct rp_err *err)
{
    double doubt = rp_sim_lean_by(run, DOUBT_DTYPE);
    uint32_t i, n = 0;

    if (!args->value || strcmp(args->value, "bf16") != 0)
        return rp_err_set(err, RP_USAGE, "'%s': only dtype=bf16 is supported", args->text);
    RP_TRY(rp_sim_need_kernels(run, "dtype", err));
    for (i = 0; i < rp_sim_nnodes(run); i++)
        if (rp_sim_is_kernel(run, i) && rp_sim_note_of(run, i)->phase != RP_PHASE_OPTIMIZER &&
            !rp_kernel_is_half(rp_sim_node_name(run, i))) {
            n++;
            RP_TRY(rp_sim_scale_node(
                run, i, doubt * gain_of(rp_sim_node_name(run, i), run->overlay.dur_ns.at[i]), err));
        }
    return n ? RP_OK : rp_err_set(err, RP_UNSUPPORTED, "dtype: all kernels run in 16 bits already");
}

static enum rp_code dtype_propose(const struct rp_sim_run *run, struct rp_arena *arena,
                                  rp_whatif_texts *out, struct rp_err *err)
{
    (void)run;
    (void)arena;
    return rp_vec_push(out, "dtype=bf16", err);
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
        "gains are as measured on one H200 by class and time of a kernel, sizes are multiples of "
        "8, and conversions cost what element-wise kernels gain",
    .value = RP_WHATIF_WORD,
    .move = &dtype_move,
    .apply = dtype_apply};
