/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu: kernels on another device. What a kernel gains follows from its class and from the published
 * peaks of both devices; the remaining doubt is in the interval.
 */
#include "cost/devices.h"
#include "sim/whatif/nodes.h"

#include <string.h>

/* By how much kernels may take longer or shorter than peaks say, on a device of the same maker and
   of another. */
#define DOUBT_SAME  0.15
#define DOUBT_OTHER 0.4

/* A shorter kernel is bound by its launch, not by the peaks of the device. */
#define SMALL_NS 3000

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

static enum rp_code gpu_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                              struct rp_err *err)
{
    const struct rp_device_peaks *to = rp_device_by_name(args->value);
    const struct rp_device_peaks *from = args->subject ? rp_device_by_name(args->subject)
                                                       : rp_device_recognise(run->parts[0]->gpu, 0);
    double doubt;
    uint32_t i;

    if (!to || (args->subject && !from))
        return unknown_gpu(args->text, err);
    RP_TRY(rp_sim_need_kernels(run, "gpu", err));
    if (!from)
        return rp_err_set(err, RP_UNSUPPORTED,
                          "gpu: the recorded device %s%s%s is not in the table: name one that is "
                          "equivalent, as in gpu:H100=%s",
                          run->parts[0]->gpu ? "'" : "",
                          run->parts[0]->gpu ? run->parts[0]->gpu : "",
                          run->parts[0]->gpu ? "'" : "", args->value);
    doubt = rp_sim_lean_by(run, from == to                 ? 0
                                : from->reach == to->reach ? DOUBT_SAME
                                                           : DOUBT_OTHER);
    for (i = 0; i < rp_sim_nnodes(run); i++)
        if (rp_sim_is_kernel(run, i) && run->overlay.dur_ns.at[i] > SMALL_NS) {
            double factor = gpu_factor(rp_sim_kernel_traits(run, i), from, to) * doubt;
            double least = (double)SMALL_NS / (double)run->overlay.dur_ns.at[i];

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
               "kernels under 3 µs keep their time, and host and network are the same",
    .has_subject = true,
    .value = RP_WHATIF_WORD,
    .apply = gpu_apply};
