/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/model/names.h"

#include "base/named.h"

#include <stddef.h>

static const struct {
    enum rp_sim_meaning meaning;
    enum rp_named how;
    const char *text;
} names[] = {
    /* PyTorch 1.8 to 2.11 */
    {RP_SIM_TORCH_OP, RP_NAMED_BEGINS, "aten::"},
    {RP_SIM_STEP_MARK, RP_NAMED_BEGINS, "ProfilerStep#"},
    {RP_SIM_GRADIENT_READY, RP_NAMED_IS, "torch::autograd::AccumulateGrad"},
    {RP_SIM_REDUCER, RP_NAMED_HAS, "distributed::reducer"},
    {RP_SIM_REDUCER, RP_NAMED_HAS, "distributed.ddp.reducer"},
    {RP_SIM_COPIES_BACK, RP_NAMED_IS, "torch.distributed.ddp.reducer::copy_bucket_to_grad"},
    {RP_SIM_READS_CONDITION, RP_NAMED_IS, "aten::is_nonzero"},
    {RP_SIM_HAS_BIAS, RP_NAMED_HAS, "addmm"},
    {RP_SIM_CONVOLVES, RP_NAMED_HAS, "conv"},
    {RP_SIM_PARTS_ATTENTION, RP_NAMED_HAS, "_scaled_dot_product_attention_math"},
    {RP_SIM_OWN_KERNEL, RP_NAMED_HAS, "at::native"},
    {RP_SIM_ADAM, RP_NAMED_HAS, "Adam"},
    {RP_SIM_ADAMW, RP_NAMED_HAS, "AdamW"},
    {RP_SIM_SGD, RP_NAMED_HAS, "SGD"},
    {RP_SIM_FOREACH, RP_NAMED_HAS, "_foreach_"},
    {RP_SIM_FUSED, RP_NAMED_HAS, "aten::_fused_"},
    {RP_SIM_READS, RP_NAMED_IS, "aten::item"},
    {RP_SIM_READS, RP_NAMED_IS, "aten::_local_scalar_dense"},
    {RP_SIM_POWERS, RP_NAMED_HAS, "pow"},
    {RP_SIM_DECAYS, RP_NAMED_IS, "aten::_foreach_mul_"},
    {RP_SIM_DECAYS, RP_NAMED_IS, "aten::mul_"},
    /* Inductor and Triton of PyTorch 2; XLA */
    {RP_SIM_GENERATED, RP_NAMED_HAS, "_fused_"},
    {RP_SIM_GENERATED, RP_NAMED_HAS, "fusion"},
    /* CUDA and HIP; cuDNN */
    {RP_SIM_LAUNCHES_GRAPH, RP_NAMED_HAS, "GraphLaunch"}};

bool rp_sim_means(const char *name, enum rp_sim_meaning meaning)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].meaning == meaning && rp_is_named(name, names[i].how, names[i].text))
            return true;
    return false;
}
