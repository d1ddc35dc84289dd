/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds what kind of program a trace is from (docs/definitions.md, "Advice"): what its user can
 * change, and by which name. Everything is derived from names and metadata; unknown properties have
 * the first value of their enum.
 */
#include "trace/trace.h"

/* What the user of the program configures: a server rather than the framework on which it is built.
   X(NAME, "name") */
#define RP_FRAMEWORK_MAP(X)         \
    X(UNKNOWN, "unknown")           \
    X(PYTORCH, "pytorch")           \
    X(JAX, "jax")                   \
    X(TENSORFLOW, "tensorflow")     \
    X(VLLM, "vllm")                 \
    X(SGLANG, "sglang")             \
    X(TENSORRT_LLM, "tensorrt-llm") \
    X(MINDSPORE, "mindspore")       \
    X(HOROVOD, "horovod")           \
    X(BYTEPS, "byteps")             \
    X(OPENCL, "opencl")             \
    X(NATIVE, "native")

/* The vendor of the device; NONE: no device work was recorded. */
#define RP_VENDOR_MAP(X)  \
    X(UNKNOWN, "unknown") \
    X(NONE, "none")       \
    X(NVIDIA, "nvidia")   \
    X(AMD, "amd")         \
    X(INTEL, "intel")     \
    X(GOOGLE, "google")   \
    X(META, "meta")

#define RP_MODE_MAP(X)        \
    X(UNKNOWN, "unknown")     \
    X(TRAINING, "training")   \
    X(INFERENCE, "inference") \
    X(SERVING, "serving")

/* What the recorded steps of a server do. */
#define RP_SERVES_MAP(X)  \
    X(NOTHING, "none")    \
    X(PREFILL, "prefill") \
    X(DECODE, "decode")   \
    X(BOTH, "both")

/* How the work is distributed. OTHER: it has collectives, but none of these. */
#define RP_PARALLEL_MAP(X)    \
    X(NONE, "none")           \
    X(OTHER, "other")         \
    X(DDP, "ddp")             \
    X(FSDP, "fsdp")           \
    X(DEEPSPEED, "deepspeed") \
    X(MEGATRON, "megatron")

/* What carries collectives. NCCL is RCCL on devices of AMD. */
#define RP_TRANSPORT_MAP(X) \
    X(NONE, "none")         \
    X(NCCL, "nccl")         \
    X(GLOO, "gloo")         \
    X(MPI, "mpi")           \
    X(ONECCL, "oneccl")

#define RP_FRAMEWORK_ENUM(name, text) RP_FRAMEWORK_##name,
enum rp_framework { RP_FRAMEWORK_MAP(RP_FRAMEWORK_ENUM) RP_FRAMEWORKS };
#undef RP_FRAMEWORK_ENUM
#define RP_VENDOR_ENUM(name, text) RP_VENDOR_##name,
enum rp_vendor { RP_VENDOR_MAP(RP_VENDOR_ENUM) RP_VENDORS };
#undef RP_VENDOR_ENUM
#define RP_MODE_ENUM(name, text) RP_MODE_##name,
enum rp_mode_of_use { RP_MODE_MAP(RP_MODE_ENUM) RP_MODES };
#undef RP_MODE_ENUM
#define RP_SERVES_ENUM(name, text) RP_SERVES_##name,
enum rp_serves { RP_SERVES_MAP(RP_SERVES_ENUM) RP_SERVES_COUNT };
#undef RP_SERVES_ENUM
#define RP_PARALLEL_ENUM(name, text) RP_PARALLEL_##name,
enum rp_parallel { RP_PARALLEL_MAP(RP_PARALLEL_ENUM) RP_PARALLELS };
#undef RP_PARALLEL_ENUM
#define RP_TRANSPORT_ENUM(name, text) RP_TRANSPORT_##name,
enum rp_transport_kind { RP_TRANSPORT_MAP(RP_TRANSPORT_ENUM) RP_TRANSPORTS };
#undef RP_TRANSPORT_ENUM

extern const char *const rp_framework_names[RP_FRAMEWORKS];
extern const char *const rp_vendor_names[RP_VENDORS];
extern const char *const rp_mode_names[RP_MODES];
extern const char *const rp_parallel_names[RP_PARALLELS];
extern const char *const rp_transport_names[RP_TRANSPORTS];

/* Plain memory. */
/* Profilers that know no options of a framework. */
enum rp_system {
    RP_SYSTEM_NONE,
    RP_SYSTEM_NSYS,
    RP_SYSTEM_ROCPROF,
    RP_SYSTEM_RPD,
    RP_SYSTEM_DFTRACER,
    RP_SYSTEMS
};
extern const char *const rp_system_names[RP_SYSTEMS]; /* NULL: none */

struct rp_workload {
    uint8_t framework; /* enum rp_framework */
    uint8_t vendor;    /* enum rp_vendor */
    uint8_t mode;      /* enum rp_mode_of_use */
    uint8_t parallel;  /* enum rp_parallel */
    uint8_t transport; /* enum rp_transport_kind */
    uint8_t serves;    /* enum rp_serves */
    bool compiled;     /* by torch.compile or XLA */
    bool graphs;       /* graphs of device work are captured or launched */
    bool in_graphs;    /* most of the device time is in graphs; filled by the caller */
    bool plain_update; /* parameters are updated without fused kernels, although these exist */
    bool ahead;   /* a server prepares the next batch while the device works; false: or not known */
    bool no_bf16; /* the device has no bf16; filled by the caller */
    bool half_comm; /* most of the time of `collective` is that of 16-bit elements, or smaller */
    uint8_t collective; /* enum rp_coll_kind with most time; the caller fills both */
    bool uncached; /* memory is allocated and freed call by call, without a caching allocator */
    bool with_stack, with_shapes; /* what else the profiler recorded */
    bool ours;                    /* the recorder is `reprise record` */
    uint8_t system; /* enum rp_system: the recorder is a profiler of the whole system */
    bool sampled;   /* there are samples of call stacks, with times */
};

/* What the mark of an update says ("Optimizer.step#AdamW.step"): whether it is one of PyTorch's
   optimizers that take fused=True. */
enum rp_update { RP_UPDATE_NONE, RP_UPDATE_FUSIBLE, RP_UPDATE_OTHER };
enum rp_update rp_update_of_mark(const char *name);

/* Linear in events; each name is examined once. Needs RP_NEED_EVENTS. */
enum rp_code rp_workload_find(const struct rp_trace *trace, struct rp_workload *out,
                              struct rp_err *err);
