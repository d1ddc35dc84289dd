/* SPDX-License-Identifier: Apache-2.0 */
/*
 * channels-last: the model and its inputs keep the channels of a pixel together (NHWC), as the
 * matrix units want them. The kernels that cuDNN puts around its convolutions to convert the layout
 * are gone; convolutions and normalizations by cuDNN become somewhat shorter.
 */
#include "sim/whatif/nodes.h"

#include <string.h>

/* cuDNN's kernels in that layout, in parts of their time: a guess that was fitted to one network on
   an H200, 25.2 -> 18.9 ms, and left open to both sides. */
#define KERNEL_PART  0.85
#define KERNEL_DOUBT 0.18

/* Of conversions, what may stay: operators that have no kernel for the layout. */
#define CONVERSIONS_LEFT 0.25

static bool converts_layout(const struct rp_sim_run *run, uint32_t i)
{
    const char *name = rp_sim_node_name(run, i);

    return strstr(name, "nchwToNhwc") || strstr(name, "nhwcToNchw");
}

static enum rp_code channels_last_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                        struct rp_err *err)
{
    double part = KERNEL_PART * rp_sim_lean_by(run, KERNEL_DOUBT);
    double left = run->lean == RP_LEAN_SLOWER ? CONVERSIONS_LEFT : 0;
    rp_sim_task_vec gone = {0};
    enum rp_code code = rp_sim_need_kernels(run, "channels-last", err);
    uint32_t i, n = 0;

    (void)args;
    for (i = 0; i < rp_sim_nnodes(run) && code == RP_OK; i++) {
        bool conversion;

        if (!rp_sim_is_kernel(run, i) || !(rp_sim_kernel_traits(run, i) & RP_KERNEL_CONVOLUTION))
            continue;
        conversion = converts_layout(run, i);
        n += conversion;
        code = rp_sim_scale_node(run, i, conversion ? left : part, err);
        if (code == RP_OK && conversion)
            code = rp_sim_match(run, &gone, i, err);
    }
    if (code == RP_OK && !n)
        code = rp_err_set(err, RP_UNSUPPORTED,
                          "channels-last: no kernel converts the layout of convolutions "
                          "(nchwToNhwc): they have it already, or do not need it");
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
               "take 0.72 to 1 of their time: a guess from one network on an H200",
    .move = &channels_last_move,
    .apply = channels_last_apply};
