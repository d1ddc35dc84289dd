/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu: kernels on another device. What a kernel gains follows from its class and from the published
 * peaks of both devices; the remaining doubt is in the interval.
 */
#include "sim/whatif/nodes.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Published peaks without sparsity: 10^12 operations a second on vectors in fp32, on matrices in
   tf32 (vectors where a device has none) and in bf16 (fp16 where it has no bf16), 10^9 bytes a
   second of memory. reach: which part of the matrix peak its libraries reach, in parts of what
   NVIDIA's do. */
struct gpu {
    const char *name;
    double vector, tf32, matrix, memory, reach;
};

static const struct gpu gpus[] = {{"B200", 75, 1125, 2250, 8000, 1},
                                  {"H200", 67, 495, 989, 4800, 1},
                                  {"GH200", 67, 495, 989, 4000, 1},
                                  {"H100", 67, 495, 989, 3350, 1},
                                  {"H100-PCIe", 51, 378, 756, 2000, 1},
                                  {"H20", 44, 74, 148, 4000, 1},
                                  {"A100-80GB", 19.5, 156, 312, 2039, 1},
                                  {"A100-40GB", 19.5, 156, 312, 1555, 1},
                                  {"A100", 19.5, 156, 312, 2039, 1},
                                  {"A40", 37.4, 74.8, 149.7, 696, 1},
                                  {"A30", 10.3, 82, 165, 933, 1},
                                  {"A10", 31.2, 62.5, 125, 600, 1},
                                  {"L40S", 91.6, 183, 362, 864, 1},
                                  {"L4", 30.3, 60, 121, 300, 1},
                                  {"V100", 15.7, 15.7, 125, 900, 1},
                                  {"T4", 8.1, 8.1, 65, 320, 1},
                                  {"RTX 4090", 82.6, 82.6, 165, 1008, 1},
                                  {"MI325X", 163.4, 653.7, 1307, 6000, 0.55},
                                  {"MI300X", 163.4, 653.7, 1307, 5300, 0.55},
                                  {"MI250X", 47.9, 47.9, 383, 3277, 0.55},
                                  {"MI210", 22.6, 22.6, 181, 1638, 0.55}};

/* By how much kernels may take longer or shorter than peaks say, on a device of the same maker and
   of another. */
#define DOUBT_SAME  0.15
#define DOUBT_OTHER 0.4

#define NGPUS (sizeof gpus / sizeof gpus[0])

/* A shorter kernel is bound by its launch, not by the peaks of the device. */
#define SMALL_NS 3000

static const struct gpu *find_gpu(const char *name)
{
    size_t i;

    for (i = 0; i < NGPUS; i++)
        if (!strcasecmp(gpus[i].name, name))
            return &gpus[i];
    return NULL;
}

static bool is_word_end(char c)
{
    return !((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'));
}

/* "NVIDIA H200" names an H200, and "NVIDIA A100-SXM4-80GB" an A100: the longest name that fits. */
static const struct gpu *recognise(const char *text)
{
    const struct gpu *best = NULL;
    size_t i;

    for (i = 0; text && i < NGPUS; i++) {
        size_t len = strlen(gpus[i].name);
        const char *at = strcasestr(text, gpus[i].name);

        if (at && is_word_end(at[len]) && (at == text || is_word_end(at[-1])) &&
            (!best || len > strlen(best->name)))
            best = &gpus[i];
    }
    return best;
}

static enum rp_code unknown_gpu(const char *text, struct rp_err *err)
{
    char list[512] = "";
    size_t i, at = 0;

    for (i = 0; i < NGPUS; i++) {
        size_t len = strlen(gpus[i].name);

        if (at + len + 3 > sizeof list)
            break;
        if (i) {
            memcpy(list + at, ", ", 2);
            at += 2;
        }
        memcpy(list + at, gpus[i].name, len);
        at += len;
        list[at] = '\0';
    }
    return rp_err_set(err, RP_USAGE, "'%s': unknown device; known devices: %s", text, list);
}

static double gpu_factor(const char *kernel, const struct gpu *from, const struct gpu *to)
{
    double reach = from->reach / to->reach;

    if (rp_kernel_class(kernel) == RP_KERNEL_ELEMENTS)
        return from->memory / to->memory;
    if (rp_kernel_is_half(kernel))
        return reach * from->matrix / to->matrix;
    return reach * (strcasestr(kernel, "tf32") ? from->tf32 / to->tf32 : from->vector / to->vector);
}

static enum rp_code gpu_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                              struct rp_err *err)
{
    const struct gpu *to = args->value ? find_gpu(args->value) : NULL;
    const struct gpu *from =
        args->subject ? find_gpu(args->subject) : recognise(run->parts[0]->gpu);
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
    for (i = 0; i < run->graph->nodes.n; i++)
        if (rp_sim_is_kernel(run, i) && run->overlay.dur_ns.at[i] > SMALL_NS) {
            double factor = gpu_factor(rp_sim_node_name(run, i), from, to) * doubt;
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
