/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of events are classified by one table of parts of names, like kernels in trace/names.c. A
 * sign counts only on the kinds of events on which it is reliable: kernels of PyTorch have "CUDA"
 * in their names on devices of AMD too, so the vendor follows from calls of the runtime.
 */
#include "facts/work/workload.h"

#include "base/decides.h"
#include "facts/torch_names.h"
#include "facts/work/attribution.h"
#include "trace/meta.h"
#include "trace/names.h"

#include <stdio.h>
#include <string.h>

#define NAME_TEXT(name, text) text,
const char *const rp_framework_names[RP_FRAMEWORKS] = {RP_FRAMEWORK_MAP(NAME_TEXT)};
const char *const rp_vendor_names[RP_VENDORS] = {RP_VENDOR_MAP(NAME_TEXT)};
const char *const rp_mode_names[RP_MODES] = {RP_MODE_MAP(NAME_TEXT)};
const char *const rp_parallel_names[RP_PARALLELS] = {RP_PARALLEL_MAP(NAME_TEXT)};
const char *const rp_transport_names[RP_TRANSPORTS] = {RP_TRANSPORT_MAP(NAME_TEXT)};
#undef NAME_TEXT

enum sign {
    SIGN_NONE,
    SIGN_VLLM,
    SIGN_SGLANG,
    SIGN_SGLANG_PREFILL,
    SIGN_SGLANG_DECODE,
    SIGN_AHEAD, /* a server prepares the next batch meanwhile */
    SIGN_TENSORRT_LLM,
    SIGN_MINDSPORE,
    SIGN_PREFILL, /* ranges of servers: requests in their phases */
    SIGN_DECODE,
    SIGN_MIXED,
    SIGN_TRAINS, /* gradients, or an update of parameters */
    SIGN_UPDATE, /* parameters are updated */
    SIGN_FUSED,  /* the update is fused */
    SIGN_DDP,    /* torch.nn.parallel.DistributedDataParallel */
    SIGN_FSDP,   /* FullyShardedDataParallel, fully_shard */
    SIGN_DEEPSPEED,
    SIGN_MEGATRON,
    SIGN_COMPILED,
    SIGN_GRAPH,
    SIGN_NCCL,
    SIGN_GLOO,
    SIGN_MPI,
    SIGN_ONECCL,
    SIGN_ATEN,    /* PyTorch's own kernels */
    SIGN_ATEN_OP, /* its operators */
    SIGN_XLA,     /* XLA's own kernels and calls */
    SIGN_MTIA,
    SIGN_ALLOC, /* memory of the device; occurrences are counted */
    SIGN_FREE,
    SIGN_AMD, /* kernels that only AMD's libraries have */
    SIGN_NVIDIA,
    SIGN_HIP, /* calls of a runtime */
    SIGN_CUDA,
    SIGN_LEVEL_ZERO,
    SIGN_OPENCL,
    SIGNS,
    SIGN_UNKNOWN = 255
};

/* In lower case; the first row that matches decides. */
static const struct rp_name_pattern signs[] = {
    {"event_loop_overlap", SIGN_AHEAD, "SGLang's scheduler"},
    {"step_with_batch_queue", SIGN_AHEAD, "vLLM's engine with --async-scheduling"},
    {"sglang", SIGN_SGLANG, "files and ranges of sglang"},
    {"sgl_kernel", SIGN_SGLANG, "its operators"},
    {"step[decode", SIGN_SGLANG_DECODE, "its marks of steps"},
    {"step[extend", SIGN_SGLANG_PREFILL, "its marks of steps"},
    {"step[mixed", SIGN_SGLANG, "its marks of steps"},
    {"step[idle", SIGN_SGLANG, "its marks of steps"},
    {"tensorrt_llm", SIGN_TENSORRT_LLM, "files and kernels of TensorRT-LLM"},
    {"trtllm::", SIGN_TENSORRT_LLM, "its operators"},
    {"vllm", SIGN_VLLM, "files, operators and kernels of vLLM"},
    {"mindspore", SIGN_MINDSPORE, "files of MindSpore"},
    {"_context_0(", SIGN_DECODE, "execute_8_context_0(0)_generation_8(8) of servers"},
    {"_generation_0(", SIGN_PREFILL, "execute_64_context_1(64)_generation_0(0)"},
    {"_generation_", SIGN_MIXED, "execute_64_context_1(63)_generation_1(1)"},

    {"fused_adam", SIGN_FUSED, "aten::_fused_adam_, aten::_fused_adamw_"},
    {"fused_sgd", SIGN_FUSED, "aten::_fused_sgd_"},
    {"fusedadam", SIGN_FUSED, "Apex, DeepSpeed; FusedAdamMathFunctor of PyTorch"},
    {"fusedsgd", SIGN_FUSED, "Apex"},
    {"fusedlamb", SIGN_FUSED, "Apex, DeepSpeed"},
    {"linearwithgradaccumulationandasync", SIGN_MEGATRON, "Megatron's linear layers"},
    {"megatron", SIGN_MEGATRON, "its files"},
    {"deepspeed", SIGN_DEEPSPEED, "its files"},
    {"fullyshardeddataparallel", SIGN_FSDP, "FSDP"},
    {"fsdp", SIGN_FSDP, "FSDP::pre_forward and its files"},
    {"distributeddataparallel", SIGN_DDP, "DistributedDataParallel.forward"},
    {"autograd::engine", SIGN_TRAINS, "PyTorch's backward pass"},
    {"optimizer.step", SIGN_UPDATE, "Optimizer.step#AdamW.step"},
    {"adam", SIGN_UPDATE, "kernels of Adam and AdamW"},
    {"sgd", SIGN_UPDATE, "stochastic gradient descent"},
    {"optimizer.zero_grad", SIGN_TRAINS, "Optimizer.zero_grad#SGD.zero_grad"},
    {"transpose(jvp(", SIGN_TRAINS, "JAX's backward pass"},
    {"gradient_tape/", SIGN_TRAINS, "TensorFlow 2"},
    {"gradients/", SIGN_TRAINS, "TensorFlow 1"},
    {"applygradient", SIGN_TRAINS, "TensorFlow's ResourceApplyGradientDescent"},
    {"applyadam", SIGN_TRAINS, "TensorFlow's ResourceApplyAdam"},
    {"applymomentum", SIGN_TRAINS, "TensorFlow's ResourceApplyMomentum"},
    {"backward", SIGN_TRAINS, "aten::convolution_backward, ..._backward_kernel"},
    {"wgrad", SIGN_TRAINS, "cuDNN's gradients of weights"},
    {"bwdweight", SIGN_TRAINS, "MIOpen's gradients of weights"},
    {"igemm_wrw", SIGN_TRAINS, "MIOpen's gradients of weights"},

    {"torch-compiled region", SIGN_COMPILED, "torch.compile"},
    {"compiledfxgraph", SIGN_COMPILED, "torch.compile"},
    {"compiledfunction", SIGN_COMPILED, "torch.compile"},
    {"triton_poi_fused", SIGN_COMPILED, "Inductor's kernels"},
    {"triton_red_fused", SIGN_COMPILED, "Inductor's kernels"},
    {"triton_per_fused", SIGN_COMPILED, "Inductor's kernels"},
    {"triton_tem_fused", SIGN_COMPILED, "Inductor's kernels"},
    {"xlalaunch", SIGN_COMPILED, "TensorFlow's clusters"},
    {"_xlarun", SIGN_COMPILED, "TensorFlow's clusters"},
    {"xlacompile", SIGN_COMPILED, "TensorFlow's clusters"},

    {"graphlaunch", SIGN_GRAPH, "cudaGraphLaunch, hipGraphLaunch, cuGraphLaunch"},
    {"streambegincapture", SIGN_GRAPH, "a graph is captured"},
    {"graphinstantiate", SIGN_GRAPH, "a graph is made"},
    {"command_buffer", SIGN_GRAPH, "XLA's graphs"},

    {"gloo:", SIGN_GLOO, "host collectives of PyTorch"},
    {"nccl", SIGN_NCCL, "NCCL, RCCL"},
    {"rccl", SIGN_NCCL, "RCCL"},
    {"oneccl", SIGN_ONECCL, "Intel's collectives"},
    {"mpi_", SIGN_MPI, "MPI_Allreduce"},
    {"mtia", SIGN_MTIA, "Meta's accelerator"},

    {"hostalloc", SIGN_NONE, "pinned memory of the host, not of the device"},
    {"hostmalloc", SIGN_NONE, "pinned memory of the host, not of the device"},
    {"mallochost", SIGN_NONE, "pinned memory of the host, not of the device"},
    {"freehost", SIGN_NONE, "pinned memory of the host, not of the device"},
    {"hostfree", SIGN_NONE, "pinned memory of the host, not of the device"},
    {"cudamalloc", SIGN_ALLOC, "device memory"},
    {"hipmalloc", SIGN_ALLOC, "device memory"},
    {"cudafree", SIGN_FREE, "device memory"},
    {"hipfree", SIGN_FREE, "device memory"},

    {"cijk_", SIGN_AMD, "Tensile's matrix products"},
    {"miopen", SIGN_AMD, "AMD's convolutions"},
    {"ck_tile", SIGN_AMD, "AMD's composable kernels"},
    {"rocblas", SIGN_AMD, "AMD's matrix products"},
    {"cudnn", SIGN_NVIDIA, "NVIDIA's convolutions"},
    {"cutlass", SIGN_NVIDIA, "NVIDIA's matrix products"},
    {"sm80_", SIGN_NVIDIA, "cuBLAS"},
    {"sm90_", SIGN_NVIDIA, "cuBLAS"},
    {"volta_", SIGN_NVIDIA, "cuBLAS"},
    {"ampere_", SIGN_NVIDIA, "cuBLAS"},
    {"nvjet", SIGN_NVIDIA, "cuBLAS"},
    {"at::native", SIGN_ATEN, "PyTorch's kernels"},
    {"aten::", SIGN_ATEN_OP, "PyTorch's operators"},
    {"fusion", SIGN_XLA, "XLA's kernels: loop_add_fusion"},
    {"pjrt", SIGN_XLA, "calls of XLA's runtime"},
    {"hip", SIGN_HIP, "AMD's runtime"},
    {"cuda", SIGN_CUDA, "NVIDIA's runtime"},
    {"culaunch", SIGN_CUDA, "NVIDIA's driver"},
    {"cumemcpy", SIGN_CUDA, "NVIDIA's driver"},
    {"zecommandlist", SIGN_LEVEL_ZERO, "Intel's driver"},
    {"urenqueue", SIGN_LEVEL_ZERO, "oneAPI's runtime"},
    {"clenqueue", SIGN_OPENCL, "OpenCL"},
};
_Static_assert(sizeof signs / sizeof signs[0] <= RP_NAME_ROWS, "a row's number is a byte");

/* Places of events that carry the same signs. */
enum { ON_HOST, ON_PYTHON, ON_RUNTIME, ON_DEVICE, ON_NOTHING, PLACES };

static const uint8_t place_of[RP_KIND_COUNT] = {
    [RP_KIND_OTHER] = ON_HOST,       [RP_KIND_CPU_OP] = ON_HOST,
    [RP_KIND_ANNOTATION] = ON_HOST,  [RP_KIND_GPU_ANNOTATION] = ON_HOST,
    [RP_KIND_RUNTIME] = ON_RUNTIME,  [RP_KIND_KERNEL] = ON_DEVICE,
    [RP_KIND_MEMCPY] = ON_DEVICE,    [RP_KIND_MEMSET] = ON_DEVICE,
    [RP_KIND_SYNC] = ON_RUNTIME,     [RP_KIND_PYTHON] = ON_PYTHON,
    [RP_KIND_OVERHEAD] = ON_NOTHING, [RP_KIND_COMM_OP] = ON_HOST,
    [RP_KIND_TRANSFER] = ON_HOST,    [RP_KIND_INSTANT] = ON_NOTHING,
    [RP_KIND_COUNTER] = ON_NOTHING,  [RP_KIND_METADATA] = ON_NOTHING,
    [RP_KIND_WAIT] = ON_NOTHING,
};

struct workload_ctx {
    const struct rp_trace *t;
    struct rp_name_matcher matcher;
    RP_VEC(uint8_t) sign; /* by string */
    uint64_t seen[PLACES];
    int64_t allocs, frees;
    bool comm;                         /* kernels that communicate */
    bool fusible_update, other_update; /* by marks */
};

enum rp_update rp_update_of_mark(const char *name)
{
    static const char *const fusible[] = {"Adam", "AdamW", "SGD", "Adagrad"};
    static const char mark[] = "Optimizer.step#";

    if (strncmp(name, mark, sizeof mark - 1) != 0)
        return RP_UPDATE_NONE;
    name += sizeof mark - 1;
    size_t len = strcspn(name, ".");
    for (size_t i = 0; i < sizeof fusible / sizeof fusible[0]; i++)
        if (strlen(fusible[i]) == len && !memcmp(name, fusible[i], len))
            return RP_UPDATE_FUSIBLE;
    return RP_UPDATE_OTHER;
}

static uint8_t sign_of(struct workload_ctx *ctx, rp_str name)
{
    uint8_t *sign = &ctx->sign.at[name];

    if (*sign == SIGN_UNKNOWN) {
        const char *text = rp_trace_str(ctx->t, name);

        *sign = (uint8_t)rp_name_classify(&ctx->matcher, text, rp_trace_str_len(ctx->t, name));
        if (*sign == SIGN_XLA &&
            strpbrk(text, "(<")) /* C++ kernels of others have the form f<...>(fusion_args) */
            *sign = SIGN_NONE;
    }
    return *sign;
}

/* Whether an operator calls it whose library tries kernels for each shape: PyTorch empties its
   cache for that (cudnn.benchmark). */
static bool is_of_plan(const struct rp_trace *t, rp_event e)
{
    rp_event op = rp_event_around(t, e, RP_KIND_CPU_OP);

    return op != RP_NONE && rp_torch_is(rp_trace_str(t, t->ev.name[op]),
                                        rp_trace_str_len(t, t->ev.name[op]), RP_TORCH_PLANS);
}

static enum rp_code scan_events(struct workload_ctx *ctx, struct rp_err *err)
{
    const struct rp_events *ev = &ctx->t->ev;

    rp_name_matcher_init(&ctx->matcher, signs, sizeof signs / sizeof signs[0]);
    RP_TRY(rp_vec_reserve(&ctx->sign, (size_t)ctx->t->str.n + 1, err));
    memset(ctx->sign.at, SIGN_UNKNOWN, ctx->t->str.n);
    for (rp_event e = 0; e < ev->n; e++) {
        uint8_t sign = sign_of(ctx, ev->name[e]), cls = ctx->t->str.name_class[ev->name[e]];
        uint8_t place = place_of[ev->kind[e]];

        ctx->seen[place] |= UINT64_C(1) << sign;
        if (place == ON_RUNTIME && (sign == SIGN_ALLOC || sign == SIGN_FREE) &&
            !is_of_plan(ctx->t, e)) {
            ctx->allocs += sign == SIGN_ALLOC;
            ctx->frees += sign == SIGN_FREE;
        }
        ctx->comm |= cls == RP_NAME_COMM && place == ON_DEVICE;
        if (sign == SIGN_UPDATE && place == ON_HOST) {
            enum rp_update update = rp_update_of_mark(rp_trace_str(ctx->t, ev->name[e]));

            ctx->fusible_update |= update == RP_UPDATE_FUSIBLE;
            ctx->other_update |= update == RP_UPDATE_OTHER;
        }
    }
    return RP_OK;
}

static bool has(const struct workload_ctx *ctx, int place, enum sign sign)
{
    return ctx->seen[place] >> sign & 1;
}

static bool has_any(const struct workload_ctx *ctx, enum sign sign)
{
    return has(ctx, ON_HOST, sign) || has(ctx, ON_PYTHON, sign) || has(ctx, ON_DEVICE, sign) ||
           has(ctx, ON_RUNTIME, sign);
}

/* The value of a key of the file's metadata, as JSON, or "". */
static const char *meta_of(const struct rp_trace *t, const char *key)
{
    const char *value = rp_trace_meta(t, key);

    return value ? value : "";
}

static bool meta_is_set(const struct rp_trace *t, const char *key)
{
    const char *value = meta_of(t, key);

    return *value == '1' || *value == 't';
}

/* -------------------------------------------------------------------------- one by one */

static uint8_t find_phases(const struct workload_ctx *ctx)
{
    bool mixed = has(ctx, ON_HOST, SIGN_MIXED);
    bool prefill =
        mixed || has(ctx, ON_HOST, SIGN_PREFILL) || has(ctx, ON_HOST, SIGN_SGLANG_PREFILL);
    bool decode = mixed || has(ctx, ON_HOST, SIGN_DECODE) || has(ctx, ON_HOST, SIGN_SGLANG_DECODE);

    if (prefill && decode)
        return RP_SERVES_BOTH;
    return prefill ? RP_SERVES_PREFILL : decode ? RP_SERVES_DECODE : RP_SERVES_NOTHING;
}

/* Our recorder notes which frameworks the program imported. */
static bool names_version(const struct rp_trace *t, const char *framework)
{
    char fact[64];

    snprintf(fact, sizeof fact, "framework.%s", framework);
    return *meta_of(t, fact);
}

static uint8_t find_framework(const struct workload_ctx *ctx)
{
    static const struct {
        uint8_t sign, framework;
    } servers[] = {{SIGN_SGLANG, RP_FRAMEWORK_SGLANG}, /* it uses parts of vLLM */
                   {SIGN_VLLM, RP_FRAMEWORK_VLLM},
                   {SIGN_TENSORRT_LLM, RP_FRAMEWORK_TENSORRT_LLM},
                   {SIGN_MINDSPORE, RP_FRAMEWORK_MINDSPORE}};
    const char *recorder = rp_trace_str(ctx->t, ctx->t->framework);

    if (has(ctx, ON_HOST, SIGN_SGLANG_PREFILL) || has(ctx, ON_HOST, SIGN_SGLANG_DECODE))
        return RP_FRAMEWORK_SGLANG;
    /* frames, marks and operators come before kernels, because libraries such as FlashInfer have
       kernels of several servers */
    for (size_t i = 0; i < sizeof servers / sizeof servers[0]; i++)
        if (has(ctx, ON_PYTHON, servers[i].sign) || has(ctx, ON_HOST, servers[i].sign))
            return servers[i].framework;
    if (find_phases(ctx) != RP_SERVES_NOTHING)
        return RP_FRAMEWORK_VLLM; /* its marks of steps */
    for (size_t i = 0; i < sizeof servers / sizeof servers[0]; i++)
        if (has(ctx, ON_DEVICE, servers[i].sign))
            return servers[i].framework;
    for (unsigned f = RP_FRAMEWORK_PYTORCH; f < RP_FRAMEWORK_NATIVE; f++)
        if (!strcmp(recorder, rp_framework_names[f]))
            return f;
    if (has(ctx, ON_DEVICE, SIGN_ATEN) || has(ctx, ON_HOST, SIGN_ATEN))
        return RP_FRAMEWORK_PYTORCH;
    if (has(ctx, ON_RUNTIME, SIGN_OPENCL))
        return RP_FRAMEWORK_OPENCL;
    if (has(ctx, ON_DEVICE, SIGN_XLA) || has(ctx, ON_HOST, SIGN_XLA))
        return RP_FRAMEWORK_JAX;
    if (has(ctx, ON_HOST, SIGN_ATEN_OP))
        return RP_FRAMEWORK_PYTORCH;
    for (unsigned f = RP_FRAMEWORK_PYTORCH; f < RP_FRAMEWORK_NATIVE; f++)
        if (names_version(ctx->t, rp_framework_names[f]))
            return f;
    return rp_trace_is_ours(ctx->t) ? RP_FRAMEWORK_NATIVE : RP_FRAMEWORK_UNKNOWN;
}

static uint8_t name_vendor(const char *name)
{
    static const struct {
        const char *part;
        uint8_t vendor;
    } names[] = {
        {"NVIDIA", RP_VENDOR_NVIDIA}, {"Tesla", RP_VENDOR_NVIDIA}, {"GeForce", RP_VENDOR_NVIDIA},
        {"Quadro", RP_VENDOR_NVIDIA}, {"AMD", RP_VENDOR_AMD},      {"Instinct", RP_VENDOR_AMD},
        {"Radeon", RP_VENDOR_AMD},    {"gfx9", RP_VENDOR_AMD},     {"Intel", RP_VENDOR_INTEL},
        {"TPU", RP_VENDOR_GOOGLE},    {"MTIA", RP_VENDOR_META},    {"ARTEMIS", RP_VENDOR_META}};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strstr(name, names[i].part))
            return names[i].vendor;
    return RP_VENDOR_UNKNOWN;
}

static uint8_t find_vendor(const struct workload_ctx *ctx)
{
    const struct rp_trace *t = ctx->t;
    uint8_t vendor = RP_VENDOR_UNKNOWN;

    if (has_any(ctx, SIGN_MTIA))
        return RP_VENDOR_META;
    if (!t->totals.count[RP_KIND_KERNEL] && !t->totals.count[RP_KIND_MEMCPY] &&
        !t->totals.count[RP_KIND_MEMSET])
        return RP_VENDOR_NONE;
    for (uint32_t i = 0; i < t->ndevices && vendor == RP_VENDOR_UNKNOWN; i++)
        vendor = name_vendor(rp_trace_str(t, t->devices[i].name));
    if (vendor != RP_VENDOR_UNKNOWN)
        return vendor;
    if (has(ctx, ON_RUNTIME, SIGN_HIP) || *meta_of(t, "roctracer_version") ||
        *meta_of(t, "hip_runtime_version") || has(ctx, ON_DEVICE, SIGN_AMD))
        return RP_VENDOR_AMD;
    if (has(ctx, ON_RUNTIME, SIGN_CUDA) || has(ctx, ON_RUNTIME, SIGN_ALLOC) ||
        *meta_of(t, "cupti_version") || has(ctx, ON_DEVICE, SIGN_NVIDIA))
        return RP_VENDOR_NVIDIA;
    return has(ctx, ON_RUNTIME, SIGN_LEVEL_ZERO) ? RP_VENDOR_INTEL : RP_VENDOR_UNKNOWN;
}

/* XLA writes what an instruction was derived from among the arguments. */
static bool args_train(struct workload_ctx *ctx)
{
    for (rp_str s = 0; s < ctx->t->str.n; s++)
        if (sign_of(ctx, s) == SIGN_TRAINS)
            return true;
    return false;
}

static uint8_t find_mode(struct workload_ctx *ctx, uint8_t framework, uint8_t serves)
{
    static const uint8_t trains[] = {SIGN_TRAINS, SIGN_UPDATE, SIGN_FUSED,
                                     SIGN_DDP,    SIGN_FSDP,   SIGN_MEGATRON};
    bool xla = framework == RP_FRAMEWORK_JAX || framework == RP_FRAMEWORK_TENSORFLOW;

    if (framework == RP_FRAMEWORK_VLLM || framework == RP_FRAMEWORK_SGLANG ||
        framework == RP_FRAMEWORK_TENSORRT_LLM || serves != RP_SERVES_NOTHING)
        return RP_MODE_SERVING;
    for (size_t i = 0; i < sizeof trains; i++)
        if (has(ctx, ON_HOST, trains[i]) || has(ctx, ON_DEVICE, trains[i]))
            return RP_MODE_TRAINING;
    if ((xla && args_train(ctx)) || framework == RP_FRAMEWORK_HOROVOD ||
        framework == RP_FRAMEWORK_BYTEPS)
        return RP_MODE_TRAINING;
    /* without operators nothing shows what the kernels are for, and if several ranks train, one may
       have recorded only a part */
    return ctx->t->totals.count[RP_KIND_CPU_OP] && framework == RP_FRAMEWORK_PYTORCH &&
                   ctx->t->world_size < 2
               ? RP_MODE_INFERENCE
               : RP_MODE_UNKNOWN;
}

static uint8_t find_transport(const struct workload_ctx *ctx)
{
    const char *info = meta_of(ctx->t, "distributedInfo"), *at = strstr(info, "\"backend\"");

    if (has_any(ctx, SIGN_GLOO))
        return RP_TRANSPORT_GLOO;
    if (has(ctx, ON_DEVICE, SIGN_NCCL) || has(ctx, ON_HOST, SIGN_NCCL))
        return RP_TRANSPORT_NCCL;
    if (has_any(ctx, SIGN_ONECCL))
        return RP_TRANSPORT_ONECCL;
    if (has(ctx, ON_HOST, SIGN_MPI))
        return RP_TRANSPORT_MPI;
    at = at ? strchr(at + 9, '"') : NULL;
    for (uint8_t i = RP_TRANSPORT_NONE + 1; at && i < RP_TRANSPORTS; i++)
        if (!strncmp(at + 1, rp_transport_names[i], strlen(rp_transport_names[i])))
            return i;
    return RP_TRANSPORT_NONE;
}

static uint8_t find_parallel(const struct workload_ctx *ctx)
{
    if (has_any(ctx, SIGN_MEGATRON))
        return RP_PARALLEL_MEGATRON;
    if (has_any(ctx, SIGN_DEEPSPEED))
        return RP_PARALLEL_DEEPSPEED;
    if (has_any(ctx, SIGN_FSDP))
        return RP_PARALLEL_FSDP;
    if (has_any(ctx, SIGN_DDP))
        return RP_PARALLEL_DDP;
    return ctx->comm || ctx->t->world_size > 1 || has(ctx, ON_HOST, SIGN_NCCL) ||
                   has(ctx, ON_HOST, SIGN_GLOO)
               ? RP_PARALLEL_OTHER
               : RP_PARALLEL_NONE;
}

#define UNCACHED_LEAST 100
RP_DECISION(UNCACHED_LEAST, "calls that allocate",
            "a caching allocator makes tens of them in its warm-up",
            "facts/an_allocator_that_caches_nothing_is_seen");

static bool is_compiled(const struct workload_ctx *ctx, uint8_t framework)
{
    return framework == RP_FRAMEWORK_JAX || has(ctx, ON_HOST, SIGN_COMPILED) ||
           has(ctx, ON_DEVICE, SIGN_COMPILED);
}

const char *const rp_system_names[RP_SYSTEMS] = {NULL, "Nsight Systems", "rocprofv3", "RPD",
                                                 "dftracer"};

/* By what its files are called. */
static uint8_t find_system(const struct rp_trace *trace)
{
    static const char *const begins[RP_SYSTEMS] = {NULL, "nsys", "rocp", "rpd", "dftracer"};
    const char *format = trace->format ? rp_trace_str(trace, trace->format) : "";
    uint8_t i;

    for (i = RP_SYSTEMS - 1; i > 0 && strncmp(format, begins[i], strlen(begins[i])) != 0;)
        i--;
    return i;
}

enum rp_code rp_workload_find(const struct rp_trace *trace, struct rp_workload *out,
                              struct rp_err *err)
{
    struct workload_ctx ctx = {.t = trace};
    enum rp_code code = scan_events(&ctx, err);

    *out = (struct rp_workload){0};
    if (code == RP_OK) {
        out->framework = find_framework(&ctx);
        out->vendor = find_vendor(&ctx);
        out->serves = find_phases(&ctx);
        out->mode = find_mode(&ctx, out->framework, out->serves);
        out->parallel = find_parallel(&ctx);
        out->transport =
            out->parallel == RP_PARALLEL_NONE ? RP_TRANSPORT_NONE : find_transport(&ctx);
        out->compiled = is_compiled(&ctx, out->framework);
        out->graphs = has_any(&ctx, SIGN_GRAPH);
        out->ahead = has_any(&ctx, SIGN_AHEAD);
        out->plain_update =
            out->mode == RP_MODE_TRAINING &&
            (has(&ctx, ON_HOST, SIGN_UPDATE) || has(&ctx, ON_DEVICE, SIGN_UPDATE)) &&
            !has(&ctx, ON_HOST, SIGN_FUSED) && !has(&ctx, ON_DEVICE, SIGN_FUSED) &&
            (ctx.fusible_update || !ctx.other_update);
        out->uncached = ctx.frees >= UNCACHED_LEAST && ctx.allocs >= UNCACHED_LEAST &&
                        ctx.frees >= ctx.allocs / 2;
        out->with_stack =
            trace->totals.count[RP_KIND_PYTHON] > 0 || meta_is_set(trace, "with_stack");
        out->ours = rp_trace_is_ours(trace);
        out->system = find_system(trace);
        out->sampled = trace->samples.n && trace->samples.unit != RP_WEIGHT_BYTES;
        out->with_shapes = meta_is_set(trace, "record_shapes");
    }
    rp_vec_release(&ctx.sign);
    return code;
}
