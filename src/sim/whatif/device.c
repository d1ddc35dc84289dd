/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu, dtype, fuse: kernels on another device, in another number format, or joined. A kernel is put
 * into a class by its name; what its class gains comes from published peaks (gpu) or from measured
 * tables (dtype, fuse). The tables were made from single operators on one H200, 1,920 of them, and
 * 40 element-wise chains compiled into one kernel each: medians by the time that an operator took.
 * Which doubt remains is in the interval.
 */
#include "sim/whatif/nodes.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum class { MATRIX, CONVOLUTION, ELEMENTS };

static bool has_any(const char *name, const char *const *parts)
{
    for (; *parts; parts++)
        if (strcasestr(name, *parts))
            return true;
    return false;
}

static bool is_attention(const char *name)
{
    static const char *const names[] = {"flash", "fmha", "attention", "attn_", NULL};

    return has_any(name, names);
}

static enum class class_of(const char *name) {
    static const char *const convolutions[] = {"conv", "cudnn", "wgrad", "dgrad", "winograd", NULL};
    static const char *const matrices[] = {"gemm", "cutlass", "xmma", "nvjet", "cublas", "matmul",
                                           "splitk", "dot_", "Cijk_", NULL};

    if (has_any(name, convolutions)) return CONVOLUTION;
    return has_any(name, matrices) || is_attention(name) ? MATRIX : ELEMENTS;
}

/* Names of attention kernels seldom tell their format: it is of 16 bits but where they say f32. */
static bool is_half(const char *name)
{
    static const char *const signs[] = {"bf16", "bfloat16", "f16",    "half", "fp16",
                                        "fp8",  "Bljk_B",   "Bljk_H", NULL};

    return has_any(name, signs) || (is_attention(name) && !strcasestr(name, "f32"));
}

static const char *name_of(const struct rp_sim_run *run, uint32_t i)
{
    return run->graph->names.at[run->graph->nodes.at[i].name];
}

static bool is_kernel(const struct rp_sim_run *run, uint32_t i)
{
    return run->graph->nodes.at[i].kind == RP_SG_COMPUTE && rp_sim_is_device_work(run, i);
}

static enum rp_code need_kernels(const struct rp_sim_run *run, const char *what, struct rp_err *err)
{
    return rp_sim_has_device(run)
               ? RP_OK
               : rp_err_set(err, RP_UNSUPPORTED, "%s: no kernels were recorded", what);
}

/* ------------------------------------------------------------------ gpu */

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

/* Shorter than this a kernel is held up by its start, not by peaks. */
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

    if (class_of(kernel) == ELEMENTS)
        return from->memory / to->memory;
    if (is_half(kernel))
        return reach * from->matrix / to->matrix;
    return reach * (strcasestr(kernel, "tf32") ? from->tf32 / to->tf32 : from->vector / to->vector);
}

static enum rp_code apply_gpu(struct rp_sim_run *run, const struct rp_whatif_args *args,
                              struct rp_err *err)
{
    const struct gpu *to = args->value ? find_gpu(args->value) : NULL;
    const struct gpu *from =
        args->subject ? find_gpu(args->subject) : recognise(run->parts[0]->gpu);
    double doubt;
    uint32_t i;

    if (!to || (args->subject && !from))
        return unknown_gpu(args->text, err);
    RP_TRY(need_kernels(run, "gpu", err));
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
        if (is_kernel(run, i) && run->overlay.dur_ns.at[i] > SMALL_NS) {
            double factor = gpu_factor(name_of(run, i), from, to) * doubt;
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
               "kernels under 3 us keep their time, and host and network are the same",
    .has_subject = true,
    .value = RP_WHATIF_WORD,
    .apply = apply_gpu};

/* ------------------------------------------------------------------ dtype */

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
    static const struct gain *const tables[] = {
        [MATRIX] = matrix_gain, [CONVOLUTION] = convolution_gain, [ELEMENTS] = element_gain};
    const struct gain *g = tables[class_of(kernel)];

    if (class_of(kernel) == MATRIX && strcasestr(kernel, "tf32"))
        return TF32_GAIN;
    while (dur_ns > g->up_to_ns)
        g++;
    return g->factor;
}

static enum rp_code apply_dtype(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                struct rp_err *err)
{
    double doubt = rp_sim_lean_by(run, DOUBT_DTYPE);
    uint32_t i, n = 0;

    if (!args->value || strcmp(args->value, "bf16") != 0)
        return rp_err_set(err, RP_USAGE, "'%s': only dtype=bf16 is supported", args->text);
    RP_TRY(need_kernels(run, "dtype", err));
    for (i = 0; i < run->graph->nodes.n; i++)
        if (is_kernel(run, i) && run->notes.at[i].phase != RP_PHASE_OPTIMIZER &&
            !is_half(name_of(run, i))) {
            n++;
            RP_TRY(rp_sim_scale_node(
                run, i, doubt * gain_of(name_of(run, i), run->overlay.dur_ns.at[i]), err));
        }
    return n ? RP_OK : rp_err_set(err, RP_UNSUPPORTED, "dtype: all kernels run in 16 bits already");
}

const struct rp_whatif rp_whatif_dtype = {
    .name = "dtype",
    .form = "dtype=bf16",
    .summary = "kernels outside the optimizer run in bf16 instead of fp32",
    .assumes =
        "gains are as measured on one H200 by class and time of a kernel, sizes are multiples of "
        "8, and conversions cost what element-wise kernels gain",
    .value = RP_WHATIF_WORD,
    .apply = apply_dtype};

/* ------------------------------------------------------------------ fuse */

/* A chain in one kernel, in times of the longest of its operators. */
static double fused_factor(int64_t longest_ns)
{
    return longest_ns < 2000 ? 1.36 : longest_ns < 5000 ? 1.25 : 1.04;
}

struct fuse_ctx {
    struct rp_sim_run *run;
    const char *pattern;
    size_t chains;
};

static bool is_link(const struct fuse_ctx *f, uint32_t i)
{
    if (!is_kernel(f->run, i) || f->run->gone.at[i])
        return false;
    if (*f->pattern && strcmp(f->pattern, "all") != 0)
        return rp_sim_name_fits(f->run, f->pattern, i);
    return strcasestr(name_of(f->run, i), "elementwise") ||
           strcasestr(name_of(f->run, i), "pointwise");
}

/* Launching what is no more takes no time either. */
static enum rp_code drop_launch(struct fuse_ctx *f, uint32_t kernel, struct rp_err *err)
{
    const struct rp_stepgraph *g = f->run->graph;
    uint32_t i;

    for (i = g->in.at[kernel]; i < g->in.at[kernel + 1]; i++)
        if (g->edges.at[i].kind == RP_SG_LAUNCH)
            RP_TRY(rp_overlay_set_dur(&f->run->overlay, g->edges.at[i].from, 0, err));
    return RP_OK;
}

static enum rp_code close_gap(struct fuse_ctx *f, uint32_t kernel, struct rp_err *err)
{
    const struct rp_task_graph *g = &f->run->tasks;
    uint32_t i;

    for (i = g->first.at[kernel]; i < g->first.at[kernel + 1]; i++)
        if (RP_SIM_EDGE_KIND(g->edges.at[i].flags) == RP_SG_STREAM &&
            f->run->overlay.lag_ns.at[i] > 0)
            RP_TRY(rp_overlay_set_lag(&f->run->overlay, i, 0, err));
    return RP_OK;
}

/* The last of a chain becomes the whole of it. */
static enum rp_code fuse_chain(struct fuse_ctx *f, uint32_t first, uint32_t end, struct rp_err *err)
{
    struct rp_overlay *o = &f->run->overlay;
    int64_t longest = 0, sum = 0, fused;
    uint32_t i;

    for (i = first; i < end; i++) {
        longest = o->dur_ns.at[i] > longest ? o->dur_ns.at[i] : longest;
        sum = rp_ns_sum(sum, o->dur_ns.at[i]);
    }
    fused = rp_sim_scaled(longest, fused_factor(longest));
    for (i = first; i + 1 < end; i++) {
        RP_TRY(rp_overlay_set_dur(o, i, 0, err));
        RP_TRY(close_gap(f, i, err));
        RP_TRY(drop_launch(f, i, err));
    }
    f->chains++;
    return rp_overlay_set_dur(o, end - 1, fused < sum ? fused : sum, err);
}

static enum rp_code fuse_lane(struct fuse_ctx *f, const struct rp_sg_lane *lane, struct rp_err *err)
{
    uint32_t i = lane->first, end;

    while (i < lane->end) {
        for (end = i; end < lane->end && is_link(f, end) &&
                      f->run->notes.at[end].step == f->run->notes.at[i].step;)
            end++;
        if (end > i + 1)
            RP_TRY(fuse_chain(f, i, end, err));
        i = end > i ? end : i + 1;
    }
    return RP_OK;
}

static enum rp_code apply_fuse(struct rp_sim_run *run, const struct rp_whatif_args *args,
                               struct rp_err *err)
{
    struct fuse_ctx f = {run, args->value ? args->value : "", 0};
    size_t k;

    RP_TRY(need_kernels(run, "fuse", err));
    for (k = 0; k < run->graph->lanes.n; k++)
        if (run->graph->lanes.at[k].device)
            RP_TRY(fuse_lane(&f, &run->graph->lanes.at[k], err));
    return f.chains
               ? RP_OK
               : rp_err_set(err, RP_USAGE,
                            "'%s': no two such kernels follow each other on a stream", args->text);
}

const struct rp_whatif rp_whatif_fuse = {
    .name = "fuse",
    .form = "fuse[=<pattern>]",
    .summary = "consecutive element-wise kernels (or kernels that match the pattern) become one",
    .assumes =
        "each kernel reads what the previous one wrote, sizes are similar, and a fused chain "
        "takes 1.04 to 1.36 times its longest kernel, as measured on one H200",
    .value = RP_WHATIF_NAME,
    .apply = apply_fuse};
