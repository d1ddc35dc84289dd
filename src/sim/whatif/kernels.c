/* SPDX-License-Identifier: Apache-2.0 */
/* Finds classes of kernels by their names, for what-ifs that change kernels. */
#include "base/named.h"
#include "cost/category.h"
#include "sim/whatif/nodes.h"

#include <string.h>

static bool is_attention(const char *name)
{
    static const char *const names[] = {"flash", "fmha", "attention", "attn_", NULL};

    return rp_has_word(name, names);
}

static unsigned class_of(const char *name)
{
    static const char *const convolutions[] = {"conv", "cudnn", "wgrad", "dgrad", "winograd", NULL};
    static const char *const matrices[] = {"gemm",   "cutlass", "xmma", "nvjet", "cublas",
                                           "matmul", "splitk",  "dot_", "Cijk_", NULL};
    static const char *const others[] = {"bn_fw", "bn_bw", "batchnorm", NULL}; /* of cuDNN, too */

    if (rp_has_word(name, others))
        return 0;
    if (rp_has_word(name, convolutions))
        return RP_KERNEL_CONVOLUTION;
    return rp_has_word(name, matrices) || is_attention(name) ? RP_KERNEL_MATRIX : 0;
}

/* cuBLAS on Hopper and later: nvjet_sm90_tst_128x128…, without the architecture in older releases.
   The letters are the formats of operands, sums and result: t is bf16, h fp16, q fp8, s fp32. */
static bool is_half_jet(const char *name)
{
    const char *at = strstr(name, "nvjet_");

    if (!at)
        return false;
    at += strlen("nvjet_");
    if (!strncmp(at, "sm", 2) && strchr(at, '_'))
        at = strchr(at, '_') + 1;
    return *at && strchr("thqo", *at);
}

/* Names of attention kernels seldom tell their format, so they count as 16 bits unless they say
   f32. */
static bool is_half(const char *name)
{
    static const char *const signs[] = {"bf16",   "bfloat16", "f16",    "half",   "fp16",  "fp8",
                                        "Bljk_B", "Bljk_H",   "Bjlk_B", "Bjlk_H", "hgemm", NULL};

    return rp_has_word(name, signs) || is_half_jet(name) ||
           (is_attention(name) && !strcasestr(name, "f32"));
}

static bool is_single(const char *name)
{
    static const char *const signs[] = {"sgemm",  "f32f32",  "tf32",     "_fp32",  "<float",
                                        "float>", ", float", "_float32", "Bljk_S", "Bjlk_S",
                                        "simt_s", "_scudnn", NULL};

    return rp_has_word(name, signs);
}

/* CUTLASS names the instruction: m16n8k8 on 32 bits is tf32. */
static bool is_tf32(const char *name)
{
    return strcasestr(name, "tf32") || strstr(name, "_s1688gemm_");
}

unsigned rp_kernel_traits(const char *name)
{
    static const char *const depthwise[] = {"depthwise", "dwconv", "dgrad2d_grouped",
                                            "wgrad2d_grouped", NULL};
    static const char *const pointwise[] = {"elementwise", "pointwise", NULL};

    return RP_KERNEL_KNOWN | class_of(name) |
           (is_half(name)     ? RP_KERNEL_HALF
            : is_single(name) ? RP_KERNEL_SINGLE
                              : 0u) |
           (is_tf32(name) ? RP_KERNEL_TF32 : 0u) |
           (rp_has_word(name, depthwise) ? RP_KERNEL_DEPTHWISE : 0u) |
           (rp_has_word(name, pointwise) ? RP_KERNEL_POINTWISE : 0u) |
           (rp_name_class_of(name) == RP_NAME_LAYOUT ? RP_KERNEL_LAYOUT : 0u);
}

unsigned rp_sim_kernel_traits(const struct rp_sim_run *run, uint32_t node)
{
    uint16_t *known = &run->kernel_traits[rp_sim_node(run, node)->name];

    if (!*known)
        *known = (uint16_t)rp_kernel_traits(rp_sim_node_name(run, node));
    return *known;
}

const char *rp_sim_node_name(const struct rp_sim_run *run, uint32_t i)
{
    return run->graph->names.at[rp_sim_node(run, i)->name];
}

enum rp_whatif_verdict rp_sim_needs_kernels(const struct rp_sim_run *run,
                                            const struct rp_whatif_args *args, struct rp_err *why)
{
    (void)args;
    return rp_sim_has_device(run) ? RP_WHATIF_APPLIES
                                  : RP_WHATIF_SAY(why, CANNOT, "no kernels were recorded");
}
