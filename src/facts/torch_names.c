/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/torch_names.h"

#include "base/text.h"

#include <string.h>

#define MODULE "nn.Module: "
#define ATEN   "aten::"

enum { IS, BEGINS, HAS };

static const struct {
    const char *text;
    uint32_t sign;
    int how;
} names[] = {
    /* PyTorch: frames as its profilers write them, "torch/nn/modules/linear.py(114): forward" */
    {"<", RP_TORCH_LIBRARY, BEGINS},
    {"torch/", RP_TORCH_LIBRARY, BEGINS},
    {"site-packages/torch/", RP_TORCH_LIBRARY, HAS},
    {MODULE, RP_TORCH_MODULE, BEGINS},
    {"DataLoader", RP_TORCH_LOADER, HAS},
    {"dataloader.py", RP_TORCH_LOADER, HAS},
    {"zero_grad", RP_TORCH_ZEROES, HAS},
    {"torch/optim/", RP_TORCH_OPTIMIZER, HAS},
    {"_engine_run_backward", RP_TORCH_PASS_BACK, HAS},
    {"torch::autograd::Engine::", RP_TORCH_PASS_BACK, HAS},
    {"ProfilerStep", RP_TORCH_STEP, BEGINS},
    /* operators */
    {"aten::to", RP_TORCH_LOADS, IS},
    {"aten::_to_copy", RP_TORCH_LOADS, IS},
    {"aten::pin_memory", RP_TORCH_LOADS, IS},
    {"aten::_pin_memory", RP_TORCH_LOADS, IS},
    {"aten::fill_", RP_TORCH_FILLS, IS},
    {"aten::zero_", RP_TORCH_FILLS, IS},
    {"aten::zeros", RP_TORCH_FILLS, IS},
    {"arange", RP_TORCH_FILLS, HAS},
    {"softmax", RP_TORCH_KEEPS_SIZE | RP_TORCH_SOFTMAX, HAS},
    {"SoftMax", RP_TORCH_SOFTMAX, HAS},
    {"aten::bmm", RP_TORCH_BATCHED, IS},
    {"aten::baddbmm", RP_TORCH_BATCHED, IS},
    {"aten::mm", RP_TORCH_MATRICES, IS},
    {"aten::addmm", RP_TORCH_MATRICES, IS},
    {"cum", RP_TORCH_KEEPS_SIZE, HAS},
    {"addcdiv", RP_TORCH_ADAM, HAS},
    {"_fused_", RP_TORCH_FUSED, HAS},
    {"cudnn", RP_TORCH_PLANS, HAS},
    {"miopen", RP_TORCH_PLANS, HAS},
    {"convolution", RP_TORCH_PLANS | RP_TORCH_CONVOLVES, HAS},
    {"attention", RP_TORCH_ATTENDS, HAS},
    {"backward", RP_TORCH_BACKWARDS, HAS},
    {"causal", RP_TORCH_CAUSAL, HAS},
    {"addmm", RP_TORCH_ADDS, HAS},
    {"baddbmm", RP_TORCH_ADDS, HAS},
    {"embedding", RP_TORCH_EMBEDS, HAS},
    {"aten::embedding", RP_TORCH_LOOKS_UP, IS},
    {"layer_norm", RP_TORCH_NORMALIZES, HAS},
    {"rms_norm", RP_TORCH_NORMALIZES, HAS},
    {"aten::copy_", RP_TORCH_COPIES, IS},
    {"c10d::Work::wait", RP_TORCH_WAITS, IS},
    {"record_param_comms", RP_TORCH_SENDS, IS},
    /* Inductor's kernels, since PyTorch 2.0 */
    {"triton_poi_", RP_TORCH_GENERATED, BEGINS},
    {"triton_red_", RP_TORCH_GENERATED, BEGINS},
    {"triton_per_", RP_TORCH_GENERATED, BEGINS},
    {"triton_for_", RP_TORCH_GENERATED, BEGINS},
    /* CUDA and HIP */
    {"cudaFree", RP_TORCH_FREES, IS},
    {"hipFree", RP_TORCH_FREES, IS},
    {"cudaMalloc", RP_TORCH_ALLOCATES, IS},
    {"hipMalloc", RP_TORCH_ALLOCATES, IS},
    /* JAX: "PjitFunction(step)", one directly inside the other */
    {"PjitFunction(", RP_TORCH_SAME_CALL, BEGINS},
};

bool rp_torch_is(const char *name, size_t n, uint32_t signs)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t len = strlen(names[i].text);

        if (!(names[i].sign & signs) || n < len || (names[i].how == IS && n != len))
            continue;
        if (names[i].how == HAS ? memmem(name, n, names[i].text, len) != NULL
                                : !memcmp(name, names[i].text, len))
            return true;
    }
    return false;
}

bool rp_torch_means(const char *name, uint32_t signs)
{
    return rp_torch_is(name, strlen(name), signs);
}

const char *rp_torch_module(const char *name)
{
    return rp_text_begins(name, MODULE) ? name + strlen(MODULE) : name;
}

const char *rp_torch_op(const char *name)
{
    return rp_text_begins(name, ATEN) ? name + strlen(ATEN) : name;
}
