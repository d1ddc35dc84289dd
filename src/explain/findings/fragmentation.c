/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory is allocated during the step, or is reserved and not used. */
#include "explain/findings/fragmentation.h"
#include "facts/arg_keys.h"

enum { FREED, UNCACHED, RESERVED };

#define FULL_SHARE 0.8
RP_DECISION(
    FULL_SHARE, "of the device's memory",
    "above it allocations begin to fail and to retry, and so much of what is reserved would "
    "be in use, if it could be",
    "explain/memory_is_full_and_not_used");

RP_PART_TYPE(rp_kept_fragmentation, struct rp_memory_peak, RP_MEMORY_PEAK);

struct memory_keys {
    struct rp_arg_key reserved, allocated, type;
};

/* Finds the moment with most reserved memory of any device. Type 0 is the host. */
static void find_peak(const struct rp_trace *t, const struct memory_keys *keys,
                      struct rp_memory_peak *out)
{
    int64_t r, a, kind;

    for (rp_event e = 0; keys->reserved.key != RP_NONE && e < t->ev.n; e++) {
        if (t->ev.kind[e] != RP_KIND_INSTANT || !rp_arg_key_int(&keys->reserved, e, &r) ||
            !rp_arg_key_int(&keys->allocated, e, &a) || !rp_arg_key_int(&keys->type, e, &kind) ||
            kind == 0)
            continue;
        out->reserved_bytes = r > out->reserved_bytes ? r : out->reserved_bytes;
        out->allocated_bytes = a > out->allocated_bytes ? a : out->allocated_bytes;
    }
}

static enum rp_code fragmentation_measure(const struct rp_finding_rank *rank, void *kept,
                                          struct rp_err *err)
{
    const struct rp_trace *t = rank->trace;
    struct memory_keys keys = {{.key = RP_NONE}, {.key = RP_NONE}, {.key = RP_NONE}};
    enum rp_code code = rp_arg_key_init(&keys.reserved, t, "Total Reserved", err);
    struct rp_memory_peak *out = kept;

    if (code == RP_OK)
        code = rp_arg_key_init(&keys.allocated, t, "Total Allocated", err);
    if (code == RP_OK)
        code = rp_arg_key_init(&keys.type, t, "Device Type", err);
    if (code == RP_OK)
        find_peak(t, &keys, out);
    for (uint32_t i = 0; i < t->ndevices; i++)
        if (t->devices[i].memory_bytes > out->device_bytes)
            out->device_bytes = t->devices[i].memory_bytes;
    rp_arg_key_release(&keys.reserved);
    rp_arg_key_release(&keys.allocated);
    rp_arg_key_release(&keys.type);
    return code;
}

/* Whether much memory is reserved but not used, near the limit. */
static bool is_full(const struct rp_memory_peak *k)
{
    return k && k->device_bytes > 0 &&
           (double)k->reserved_bytes >= FULL_SHARE * (double)k->device_bytes &&
           (double)k->allocated_bytes <= FULL_SHARE * (double)k->reserved_bytes;
}

static void fragmentation_find(struct rp_findings *f)
{
    struct rp_report_finding *finding =
        rp_findings_add_idle(f, rp_findings_lead(f)->workload.uncached ? UNCACHED : FREED, 0);
    const struct rp_memory_peak *k = NULL;
    size_t r;

    if (finding)
        rp_findings_say_idle(f, finding);
    for (r = 0; r < f->ranks->n && !is_full(k); r++)
        k = rp_findings_kept(f, r);
    if (!is_full(k))
        return;
    if (!finding)
        finding = rp_findings_add_doubt(f, RESERVED);
    if (finding)
        RP_SAY(f, finding, "rank %d: %.1f of %.1f GB are reserved, at most %.1f in use",
               rp_findings_number(f, r - 1), (double)k->reserved_bytes / 1e9,
               (double)k->device_bytes / 1e9, (double)k->allocated_bytes / 1e9);
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_CALL, OF(FREED) | OF(UNCACHED), .frameworks = FW(OPENCL),
     .text = "clCreateBuffer once, and clCreateSubBuffer for its parts"},
    {RP_ADVISE_CALL, OF(FREED), .text = "allocate once and reuse; fewer different shapes"},
    {RP_ADVISE_LOOK, OF(FREED), .system = RP_KEY_YES,
     .text = "begin recording after a few steps: the first ones always allocate"},
    {RP_ADVISE_LOOK, OF(FREED), .frameworks = FW(PYTORCH),
     .text = "torch.profiler.schedule(wait=1, warmup=3, active=3): the first steps always "
             "allocate"},
    {RP_ADVISE_LOOK, OF(FREED), .frameworks = FW(PYTORCH), .ours = RP_KEY_YES,
     .text = "look at a later step (--step N): the first ones always allocate"},
    {RP_ADVISE_CALL, OF(FREED), .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .text = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, and inputs padded to a few "
             "shapes"},
    {RP_ADVISE_CALL, OF(FREED), .frameworks = FW(PYTORCH), .vendors = BY(AMD),
     .text = "inputs padded to a few shapes, and "
             "PYTORCH_HIP_ALLOC_CONF=garbage_collection_threshold:0.8 near the limit of memory"},
    {RP_ADVISE_CALL, OF(FREED), .frameworks = FW(PYTORCH),
     .vendors = BY(UNKNOWN) | BY(NONE) | BY(INTEL) | BY(GOOGLE) | BY(META),
     .text = "inputs padded to a few shapes"},
    {RP_ADVISE_CALL, OF(FREED), .frameworks = FW(JAX),
     .text = "XLA_PYTHON_CLIENT_PREALLOCATE=true, and not XLA_PYTHON_CLIENT_ALLOCATOR=platform"},
    {RP_ADVISE_CALL, OF(FREED), .frameworks = FW(TENSORFLOW), .vendors = BY(NVIDIA),
     .text = "TF_GPU_ALLOCATOR=cuda_malloc_async"},
    {RP_ADVISE_CALL, OF(FREED), .frameworks = FW(VLLM),
     .text = "vllm serve with a lower --gpu-memory-utilization: memory outside the KV cache "
             "is scarce"},
    {RP_ADVISE_CALL, OF(FREED), .frameworks = FW(SGLANG),
     .text = "sglang.launch_server with a lower --mem-fraction-static: memory outside the "
             "KV cache is scarce"},
    {RP_ADVISE_CALL, OF(FREED), .frameworks = FW(TENSORRT_LLM),
     .text = "kv_cache_config: {free_gpu_memory_fraction: 0.8}: memory outside the KV cache "
             "is scarce"},
    {RP_ADVISE_CALL, OF(UNCACHED), .text = "allocate once and reuse"},
    {RP_ADVISE_CALL, OF(UNCACHED), .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .text = "unset PYTORCH_NO_CUDA_MEMORY_CACHING: PyTorch's caching allocator is off"},
    {RP_ADVISE_CALL, OF(UNCACHED), .frameworks = FW(PYTORCH), .vendors = BY(AMD),
     .text = "unset PYTORCH_NO_HIP_MEMORY_CACHING: PyTorch's caching allocator is off"},
    {RP_ADVISE_CALL, OF(UNCACHED), .frameworks = FW(PYTORCH),
     .vendors = BY(UNKNOWN) | BY(NONE) | BY(INTEL) | BY(GOOGLE) | BY(META),
     .text = "turn PyTorch's caching allocator on again"},
    {RP_ADVISE_CALL, OF(UNCACHED), .frameworks = FW(JAX),
     .text = "XLA_PYTHON_CLIENT_ALLOCATOR=bfc instead of platform"},
    {RP_ADVISE_CALL, OF(FREED) | OF(UNCACHED), .frameworks = FW(NATIVE), .vendors = BY(NVIDIA),
     .text = "cudaMallocAsync and cudaFreeAsync, with cudaMemPoolAttrReleaseThreshold of the "
             "pool"},
    {RP_ADVISE_CALL, OF(FREED) | OF(UNCACHED), .frameworks = FW(NATIVE), .vendors = BY(AMD),
     .text = "hipMallocAsync and hipFreeAsync, with hipMemPoolAttrReleaseThreshold of the pool"},
    {RP_ADVISE_CALL, OF(RESERVED), .text = "fewer different shapes, and buffers that are reused"},
    {RP_ADVISE_CALL, OF(RESERVED), .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .text = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or "
             "garbage_collection_threshold:0.8; inputs padded to a few shapes"},
    {RP_ADVISE_CALL, OF(RESERVED), .frameworks = FW(PYTORCH), .vendors = BY(AMD),
     .text = "PYTORCH_HIP_ALLOC_CONF=garbage_collection_threshold:0.8; inputs padded to a few "
             "shapes"},
    {RP_ADVISE_CALL, OF(RESERVED), .frameworks = FW(JAX),
     .text = "XLA_PYTHON_CLIENT_MEM_FRACTION: how much of the memory JAX takes at its start"},
};

const struct rp_finding rp_finding_fragmentation = {
    .id = "fragmentation",
    .kinds = {{"freed", "device memory is allocated and freed during the step"},
              {"uncached",
               "device memory is allocated and freed for every tensor: nothing caches it"},
              {"reserved", "device memory is reserved but not used"}},
    .condition =
        "idle time, or memory: so much of the device's is reserved, and of that at most so "
        "much ever in use",
    .cost = "idle time on the chain whose cause is `allocation`; 0 where memory is only reserved",
    .idle = 1u << RP_GAP_ALLOCATION,
    .numbers = RP_FINDING_NUMBER(FULL_SHARE),
    .test = "explain/memory_is_full_and_not_used",
    RP_KEEPS(fragmentation, fragmentation_measure),
    .find = fragmentation_find,
    RP_ADVICE(advice),
};
