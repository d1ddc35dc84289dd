/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu: kernels on another device. The gain of a kernel follows from its class and from the
 * published peaks of both devices; the interval contains the remaining doubt.
 */
#include "cost/devices.h"
#include "sim/whatif/nodes.h"

#include <string.h>

#define OTHER_MAKER_DOUBT 0.4
RP_DECISION(
    OTHER_MAKER_DOUBT, "of the time",
    "kernels of another maker's libraries reach other parts of the peaks (docs/definitions.md, "
    "Interval)",
    "sim/intervals_reach_as_far_as_the_doubt");

static enum rp_code unknown_gpu(const char *text, struct rp_err *err)
{
    char list[768] = "";
    size_t i, n, at = 0;
    const struct rp_device_peaks *devices = rp_devices(&n);

    for (i = 0; i < n; i++) {
        size_t len = strlen(devices[i].name);

        if (at + len + 3 > sizeof list)
            break;
        if (i) {
            memcpy(list + at, ", ", 2);
            at += 2;
        }
        memcpy(list + at, devices[i].name, len);
        at += len;
        list[at] = '\0';
    }
    return rp_err_set(err, RP_USAGE, "'%s': unknown device; known devices: %s", text, list);
}

static double gpu_factor(unsigned kernel, const struct rp_device_peaks *from,
                         const struct rp_device_peaks *to)
{
    double a = from->vector32, b = to->vector32;

    if (!(kernel & RP_KERNEL_PRODUCT))
        return from->memory / to->memory;
    if (kernel & (RP_KERNEL_HALF | RP_KERNEL_TF32)) {
        enum rp_number type = kernel & RP_KERNEL_HALF ? RP_NUMBER_BF16 : RP_NUMBER_TF32;

        a = rp_device_matrix_peak(from, type);
        b = rp_device_matrix_peak(to, type);
    }
    return a > 0 && b > 0 ? from->reach / to->reach * a / b : from->memory / to->memory;
}

/* The device from which times are scaled; NULL if it is not in the table. */
static const struct rp_device_peaks *recorded_gpu(const struct rp_sim_run *run,
                                                  const struct rp_whatif_args *args)
{
    return args->subject ? rp_device_by_name(args->subject)
                         : rp_device_recognise(run->parts[0]->gpu, 0);
}

static enum rp_whatif_verdict gpu_applies(const struct rp_sim_run *run,
                                          const struct rp_whatif_args *args, struct rp_err *why)
{
    const char *gpu = run->parts[0]->gpu;

    if (rp_sim_needs_kernels(run, args, why) != RP_WHATIF_APPLIES)
        return RP_WHATIF_CANNOT;
    return !args || recorded_gpu(run, args)
               ? RP_WHATIF_APPLIES
               : RP_WHATIF_SAY(why, CANNOT,
                               "the recorded device %s%s%s is not in the table: name one that is "
                               "equivalent, as in gpu:H100=%s",
                               gpu ? "'" : "", gpu ? gpu : "", gpu ? "'" : "", args->value);
}

static enum rp_code gpu_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                              struct rp_err *err)
{
    const struct rp_device_peaks *to = rp_device_by_name(args->value);
    const struct rp_device_peaks *from = recorded_gpu(run, args);

    if (!to || (args->subject && !from))
        return unknown_gpu(args->text, err);
    RP_TRY(rp_whatif_check(&rp_whatif_gpu, run, args, err));
    double doubt = rp_sim_lean_by(run, from == to                 ? 0
                                       : from->reach == to->reach ? RP_SIM_MEASURED_DOUBT
                                                                  : OTHER_MAKER_DOUBT);
    for (uint32_t i = 0; i < rp_sim_nnodes(run); i++)
        if (rp_sim_is_kernel(run, i) && run->overlay.dur_ns.at[i] > RP_SIM_EMPTY_KERNEL_NS) {
            double factor = gpu_factor(rp_sim_kernel_traits(run, i), from, to) * doubt;
            double least = (double)RP_SIM_EMPTY_KERNEL_NS / (double)run->overlay.dur_ns.at[i];

            RP_TRY(rp_sim_scale_node(run, i, factor > least ? factor : least, err));
        }
    return RP_OK;
}

const struct rp_whatif rp_whatif_gpu = {
    .name = "gpu",
    .form = "gpu[:<recorded>]=<name>",
    .summary = "kernels run on another device (H100, A100, …): matrix kernels scale with its peak "
               "operation rate, others with its memory bandwidth",
    .assumes = "kernels reach the same fraction of the peaks (AMD's matrix kernels 0.55 of it), "
               "kernels under 2 µs keep their time, and host and network are the same",
    .has_subject = true,
    .value = RP_WHATIF_WORD,
    .applies = gpu_applies,
    .apply = gpu_apply};
