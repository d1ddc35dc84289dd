/* SPDX-License-Identifier: Apache-2.0 */
/*
 * channels-last: the model and its inputs keep the channels of a pixel together (NHWC), as the
 * matrix units want them. The kernels that cuDNN puts around its convolutions to convert the layout
 * disappear; convolutions and normalizations by cuDNN become somewhat shorter.
 */
#include "sim/whatif/nodes.h"

#define KERNEL_PART 0.85
RP_DECISION(
    KERNEL_PART, "of their time",
    "cuDNN's kernels in that layout: fitted to two networks in TF32 on an H200, 25.2 -> 18.9 and "
    "17.8 -> 11.0 ms; they may take as long as before, or shorter by as much again",
    "sim/kernels_that_convert_layouts_go");
#define CONVERSIONS_LEFT 0.25
RP_DECISION(CONVERSIONS_LEFT, "of conversions",
            "the long end: operators that have no kernel for the layout, a guess",
            "sim/kernels_that_convert_layouts_go");
#define SINGLE_PART 0.5
RP_DECISION(SINGLE_PART, "of the time of convolutions",
            "from here on most are in float32 without TF32, where the layout gained nothing on an "
            "H200 (38.8 -> 39.0 ms): other kernels became longer by what conversions took",
            "sim/convolutions_in_float32_keep_their_layout");

static bool converts_layout(const struct rp_sim_run *run, uint32_t i)
{
    return rp_sim_kernel_traits(run, i) & RP_KERNEL_LAYOUT;
}

static bool is_convolution(const struct rp_sim_run *run, uint32_t i)
{
    return rp_sim_kernel_traits(run, i) & RP_KERNEL_CONVOLUTION && !converts_layout(run, i);
}

/* The share of the time of convolutions that is known to be in float32 without TF32. */
static double single_part(const struct rp_sim_run *run)
{
    double all = 1, single = 0;

    for (size_t k = 0; k < run->kernels.n; k++) {
        uint32_t i = run->kernels.at[k];

        if (is_convolution(run, i)) {
            unsigned kernel = rp_sim_kernel_traits(run, i);
            double ns = (double)run->overlay.dur_ns.at[i];

            all += ns;
            single += kernel & RP_KERNEL_SINGLE && !(kernel & RP_KERNEL_TF32) ? ns : 0;
        }
    }
    return single / all;
}

static enum rp_whatif_verdict channels_last_applies(const struct rp_sim_run *run,
                                                    const struct rp_whatif_args *args,
                                                    struct rp_err *why)
{
    bool any = false, convolves = false;

    if (rp_sim_needs_kernels(run, args, why) != RP_WHATIF_APPLIES)
        return RP_WHATIF_CANNOT;
    for (size_t k = 0; k < run->kernels.n && !(any && convolves); k++) {
        any = any || converts_layout(run, run->kernels.at[k]);
        convolves = convolves || is_convolution(run, run->kernels.at[k]);
    }
    if (!any || !convolves)
        return RP_WHATIF_SAY(why, CANNOT,
                             "no kernel converts the layout of convolutions (nchwToNhwc): they "
                             "have it already, or do not need it");
    if (args || single_part(run) < SINGLE_PART)
        return RP_WHATIF_APPLIES;
    return RP_WHATIF_SAY(why, NOT,
                         "most of the time of convolutions is spent in float32 without TF32, where "
                         "the layout gains nothing");
}

static enum rp_code channels_last_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                        struct rp_err *err)
{
    bool single = single_part(run) >= SINGLE_PART;
    double part = single ? 1 : KERNEL_PART * rp_sim_lean_by(run, 1 / KERNEL_PART - 1);
    double left = run->lean == RP_LEAN_SLOWER ? CONVERSIONS_LEFT : 0;
    rp_sim_task_vec gone = {0};
    enum rp_code code = rp_whatif_check(&rp_whatif_channels_last, run, args, err);

    run->leans |= RP_LEANS_RATES;
    if (single)
        left = run->lean == RP_LEAN_FASTER ? 0 : 1;
    for (size_t k = 0; k < run->kernels.n && code == RP_OK; k++) {
        uint32_t i = run->kernels.at[k];
        bool conversion = converts_layout(run, i);

        if (!conversion && !is_convolution(run, i))
            continue;
        code = rp_sim_scale_node(run, i, conversion ? left : part, err);
        if (code == RP_OK && conversion && !single)
            code = rp_sim_match(run, &gone, i, err);
    }
    if (code == RP_OK)
        code = rp_sim_say(run, "removes", &gone, err);
    rp_vec_release(&gone);
    return code;
}

static const struct rp_whatif_move channels_last_move = {
    .family = "fusion",
    .effort = 2,
    .apply = "model.to(memory_format=torch.channels_last), and the same for its inputs"};

const struct rp_whatif rp_whatif_channels_last = {
    .name = "channels-last",
    .form = "channels-last",
    .summary = "convolutions keep the channels of a pixel together: the kernels that convert the "
               "layout are gone, and cuDNN's others are shorter",
    .assumes = "all operators between the convolutions have kernels for the layout, and cuDNN's "
               "take 0.72 to 1 of their time, as in two networks in TF32 on an H200",
    .move = &channels_last_move,
    .applies = channels_last_applies,
    .apply = channels_last_apply};
