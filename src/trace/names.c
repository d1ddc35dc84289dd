/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classifies kernels and operators by their names. A row is a part of a name; rows are tried in the
 * order of the table, so more specific ones come first: a fused attention kernel is not a softmax,
 * a convolution by matrix product is a convolution. For a new kernel, add a row and its reason.
 */
#include "trace/names.h"

#include <string.h>

static const struct rp_name_pattern patterns[] = {
    {"nccl", RP_NAME_COMM, "NVIDIA's collectives"},
    {"rccl", RP_NAME_COMM, "AMD's collectives"},
    {"dpsk::ep::", RP_NAME_COMM, "DeepSeek's expert-parallel all-to-all"},
    {"deep_ep", RP_NAME_COMM, "DeepEP, the same as a library"},
    {"nvshmem", RP_NAME_COMM, "one-sided transfers"},
    {"cross_device_reduce", RP_NAME_COMM, "vLLM's custom all-reduce"},
    {"allreduce_fusion", RP_NAME_COMM, "FlashInfer's and TensorRT-LLM's fused all-reduce"},
    {"one_shot", RP_NAME_COMM, "all-reduce over symmetric memory in one round"},
    {"two_shot", RP_NAME_COMM, "the same in two rounds"},
    {"multimem", RP_NAME_COMM, "all-reduce in the switch (NVLink SHARP)"},

    {"memcpy", RP_NAME_MEMCPY, "copies of the driver"},
    {"copybuffer", RP_NAME_MEMCPY, "copies of ROCm (copyBuffer kernels)"},
    {"memset", RP_NAME_MEMSET, "fills of the driver"},
    {"fillbuffer", RP_NAME_MEMSET, "fills of ROCm"},

    {"flash_fwd", RP_NAME_ATTENTION, "FlashAttention 2"},
    {"flash_bwd", RP_NAME_ATTENTION, "FlashAttention 2"},
    {"flash::", RP_NAME_ATTENTION, "FlashAttention 3"},
    {"fmha", RP_NAME_ATTENTION, "cuDNN, CUTLASS and CK fused attention"},
    {"attention", RP_NAME_ATTENTION, "scaled_dot_product_attention and most others"},
    {"flash_attn", RP_NAME_ATTENTION, "llama.cpp and FlashAttention's operators"},
    {"gated_delta", RP_NAME_ATTENTION, "linear attention by the delta rule"},
    {"attn_fwd", RP_NAME_ATTENTION, "Triton's attention"},
    {"attn_bwd", RP_NAME_ATTENTION, "Triton's attention"},
    {"_attn_", RP_NAME_ATTENTION, "AITER and others"},
    {"mha_", RP_NAME_ATTENTION, "multi-head attention"},
    {"mla_", RP_NAME_ATTENTION, "multi-head latent attention"},

    {"batched_transpose", RP_NAME_LAYOUT, "MIOpen, around its NHWC convolutions"},
    {"nchwtonhwc", RP_NAME_LAYOUT, "cuDNN, before a convolution"},
    {"nhwctonchw", RP_NAME_LAYOUT, "cuDNN, after a convolution"},
    {"nchw2nhwc", RP_NAME_LAYOUT, "other libraries"},
    {"nhwc2nchw", RP_NAME_LAYOUT, "other libraries"},
    {"nchw2cnhw", RP_NAME_LAYOUT, "MIOpen, around a convolution as a matrix product"},
    {"cnhw2nchw", RP_NAME_LAYOUT, "MIOpen, around a convolution as a matrix product"},

    {"conver", RP_NAME_ELEMENTWISE,
     "convert and conversion, casts; before conv, with which it begins"},
    {"conv", RP_NAME_CONV, "convolutions of all libraries"},
    {"wgrad", RP_NAME_CONV, "cuDNN, gradient of the weights"},
    {"dgrad", RP_NAME_CONV, "cuDNN, gradient of the data"},
    {"fprop", RP_NAME_CONV, "cuDNN, forward"},
    {"winograd", RP_NAME_CONV, "a convolution algorithm"},
    {"im2col", RP_NAME_CONV, "a convolution as a matrix product"},
    {"im3d2col", RP_NAME_CONV, "the same in MIOpen, of volumes"},
    {"col2im", RP_NAME_CONV, "the way back"},
    {"igemm_fwd", RP_NAME_CONV, "MIOpen's implicit matrix products"},
    {"igemm_bwd", RP_NAME_CONV, "MIOpen's implicit matrix products"},
    {"igemm_wrw", RP_NAME_CONV, "MIOpen's implicit matrix products"},
    {"miopensp3asm", RP_NAME_CONV, "MIOpen's assembly convolutions"},

    {"gemm", RP_NAME_GEMM, "cuBLAS, CUTLASS, CK, Triton"},
    {"gemv", RP_NAME_GEMM, "matrix times vector"},
    {"nvjet", RP_NAME_GEMM, "cuBLAS on Hopper and later"},
    {"cijk_", RP_NAME_GEMM, "AMD Tensile: names spell the index letters"},
    {"cutlass", RP_NAME_GEMM, "other CUTLASS kernels"},
    {"splitk", RP_NAME_GEMM, "the reduction after a split-K matrix product"},
    {"mul_mat_", RP_NAME_GEMM, "llama.cpp's products"},
    {"matmul", RP_NAME_GEMM, "operators and Triton kernels"},
    {"addmm", RP_NAME_GEMM, "aten operators"},
    {"aten::mm", RP_NAME_GEMM, "aten operator"},
    {"aten::bmm", RP_NAME_GEMM, "aten operator"},
    {"aten::linear", RP_NAME_GEMM, "aten operator"},
    {"_mm_", RP_NAME_GEMM, "inductor's matrix templates"},
    {"_bmm", RP_NAME_GEMM, "batched matrix products"},
    {"dot_kernel", RP_NAME_GEMM, "scalar products"},

    {"soft_max", RP_NAME_SOFTMAX, "llama.cpp"},
    {"softmax", RP_NAME_SOFTMAX, "softmax and log-softmax"},
    {"cross_entropy", RP_NAME_SOFTMAX, "loss over a softmax"},
    {"nll_loss", RP_NAME_SOFTMAX, "loss over a softmax"},

    {"adam", RP_NAME_OPTIMIZER, "Adam and AdamW; before the norms of multi-tensor updates"},
    {"multi_tensor_apply", RP_NAME_OPTIMIZER, "updates of many parameters in one kernel"},
    {"optimizer", RP_NAME_OPTIMIZER, "annotations of torch.optim"},
    {"sgd", RP_NAME_OPTIMIZER, "stochastic gradient descent"},
    {"lamb_", RP_NAME_OPTIMIZER, "LAMB"},

    {"layernorm", RP_NAME_NORM, "fused layer normalisation"},
    {"layer_norm", RP_NAME_NORM, "the same, written as two words"},
    {"batch_norm", RP_NAME_NORM, "batch normalisation"},
    {"batchnorm", RP_NAME_NORM, "cuDNN and MIOpen batch normalisation"},
    {"bn_fw", RP_NAME_NORM, "cuDNN batch normalisation"},
    {"bn_bw", RP_NAME_NORM, "cuDNN batch normalisation"},
    {"group_norm", RP_NAME_NORM, "group normalisation"},
    {"groupnorm", RP_NAME_NORM, "group normalisation"},
    {"rms_norm", RP_NAME_NORM, "RMS normalisation"},
    {"rmsnorm", RP_NAME_NORM, "RMS normalisation"},
    {"l2_norm", RP_NAME_NORM, "of queries and keys, in llama.cpp"},
    {"rowwisemoments", RP_NAME_NORM, "the sums of a group normalisation"},
    {"gammabeta", RP_NAME_NORM, "gradients of a layer normalisation"},

    {"embedding", RP_NAME_EMBEDDING, "lookups and their gradients"},
    {"index_select", RP_NAME_EMBEDDING, "gather of rows"},
    {"indexselect", RP_NAME_EMBEDDING, "gather of rows"},
    {"index_elementwise", RP_NAME_EMBEDDING, "gather and scatter of aten"},
    {"index_put", RP_NAME_EMBEDDING, "scatter"},
    {"gather", RP_NAME_EMBEDDING, "gather"},
    {"k_get_rows", RP_NAME_EMBEDDING, "llama.cpp's gather of rows"},
    {"k_set_rows", RP_NAME_EMBEDDING, "llama.cpp's scatter of rows"},
    {"scatter", RP_NAME_EMBEDDING, "scatter"},

    {"sort", RP_NAME_SORT, "radix and segmented sorts"},
    {"topk", RP_NAME_SORT, "largest elements"},
    {"devicescan", RP_NAME_SORT, "prefix sums of CUB"},
    {"cumsum", RP_NAME_SORT, "prefix sums"},
    {"cub::", RP_NAME_SORT, "other CUB kernels: select, run-length encoding, histograms"},

    {"dropout", RP_NAME_RNG, "dropout draws random numbers"},
    {"philox", RP_NAME_RNG, "the random number generator of most frameworks"},
    {"curand", RP_NAME_RNG, "NVIDIA's generators"},
    {"rocrand", RP_NAME_RNG, "AMD's generators"},
    {"distribution_", RP_NAME_RNG, "aten's random fills"},
    {"aten::rand", RP_NAME_RNG, "aten operators"},
    {"aten::normal_", RP_NAME_RNG, "aten operator"},
    {"bernoulli", RP_NAME_RNG, "coin throws"},

    {"reduce", RP_NAME_REDUCE, "reductions of all libraries"},
    {"reduction", RP_NAME_REDUCE, "the same"},
    {"aten::sum", RP_NAME_REDUCE, "aten operator"},
    {"aten::mean", RP_NAME_REDUCE, "aten operator"},
    {"triton_red_", RP_NAME_REDUCE, "inductor's looped reductions"},
    {"triton_per_", RP_NAME_REDUCE, "inductor's one-pass reductions"},

    {"elementwise", RP_NAME_ELEMENTWISE, "aten's loops"},
    {"triton_poi_", RP_NAME_ELEMENTWISE, "inductor's pointwise kernels"},
    {"pointwise", RP_NAME_ELEMENTWISE, "the same elsewhere"},
    {"catarraybatchedcopy", RP_NAME_ELEMENTWISE, "concatenation"},
    {"transpose", RP_NAME_ELEMENTWISE, "a change of layout"},
    {"permute", RP_NAME_ELEMENTWISE, "a change of layout"},
    {"act_and_mul", RP_NAME_ELEMENTWISE, "gated activations"},
    {"aten::add", RP_NAME_ELEMENTWISE, "aten operator"},
    {"aten::mul", RP_NAME_ELEMENTWISE, "aten operator"},
    {"aten::copy_", RP_NAME_ELEMENTWISE, "aten operator"},
    {"loop_", RP_NAME_ELEMENTWISE, "XLA's fused loops"},
    {"k_bin_bcast", RP_NAME_ELEMENTWISE, "llama.cpp's sums and products of two tensors"},
    {"quantize_", RP_NAME_ELEMENTWISE, "llama.cpp and others, before a product of small types"},
    {"scale_f", RP_NAME_ELEMENTWISE, "llama.cpp"},
    {"rope_", RP_NAME_ELEMENTWISE, "rotary embedding"},
    {"opwithscalar", RP_NAME_ELEMENTWISE, "MIOpen's OpTensor"},
    {"opwithcast", RP_NAME_ELEMENTWISE, "MIOpen's OpTensor"},
};
_Static_assert(sizeof patterns / sizeof patterns[0] <= RP_NAME_ROWS, "a row's number is a byte");

const struct rp_name_pattern *rp_name_patterns(size_t *n)
{
    *n = sizeof patterns / sizeof patterns[0];
    return patterns;
}

static unsigned char lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c | 32 : c);
}

static unsigned pair_hash(unsigned char a, unsigned char b)
{
    return (a * 37u + b) & 1023u;
}

void rp_name_matcher_init(struct rp_name_matcher *m, const struct rp_name_pattern *table, size_t n)
{
    memset(m, 0, sizeof *m);
    m->table = table;
    m->n = n;
    for (size_t i = n; i-- > 0;) {
        unsigned h = pair_hash(lower(table[i].part[0]), lower(table[i].part[1]));

        m->next[i] = m->first[h];
        m->first[h] = (uint8_t)(i + 1);
    }
}

static bool begins(const char *name, size_t len, const char *part)
{
    for (size_t i = 0; part[i]; i++)
        if (i == len || lower(name[i]) != (unsigned char)part[i])
            return false;
    return true;
}

enum rp_name_class rp_name_classify(const struct rp_name_matcher *m, const char *name, size_t len)
{
    unsigned char before = len ? lower(name[0]) : 0;
    size_t best = m->n;

    for (size_t i = 1; i < len; i++) {
        unsigned char now = lower(name[i]);

        for (size_t k = m->first[pair_hash(before, now)]; k && k <= best; k = m->next[k - 1])
            if (begins(name + i - 1, len - i + 1, m->table[k - 1].part)) {
                best = k - 1;
                break;
            }
        before = now;
    }
    return best < m->n ? (enum rp_name_class)m->table[best].name_class : RP_NAME_NONE;
}
