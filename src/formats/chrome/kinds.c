/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The meaning of categories: one table, looked up once a category. The flags are the sets that the
 * definitions of health use (docs/definitions.md) and apply to complete events only. Events without
 * a category (XProf, Horovod) are recognised by their names.
 */
#include "formats/chrome/chrome.h"

#define GPU     RP_ORIGIN_GPU
#define CALL    (RP_ORIGIN_RUNTIME | RP_ORIGIN_NESTS)
#define NESTS   RP_ORIGIN_NESTS
#define STEPS   (RP_ORIGIN_NESTS | RP_ORIGIN_MARKS_STEP)
#define KINETO  RP_CHROME_KINETO
#define TF      RP_CHROME_TF_TIMELINE
#define UNKNOWN 0

static const struct {
    const char *text;
    struct rp_chrome_kind is;
} categories[] = {
    /* Kineto since 2022 */
    {"cpu_op", {RP_KIND_CPU_OP, STEPS, KINETO}},
    {"python_function", {RP_KIND_PYTHON, NESTS, KINETO}},
    {"cuda_runtime", {RP_KIND_RUNTIME, CALL, KINETO}},
    {"cuda_driver", {RP_KIND_RUNTIME, CALL, KINETO}},
    {"kernel", {RP_KIND_KERNEL, GPU, 0}},
    {"gpu_memcpy", {RP_KIND_MEMCPY, GPU, KINETO}},
    {"gpu_memset", {RP_KIND_MEMSET, GPU, KINETO}},
    {"user_annotation", {RP_KIND_ANNOTATION, STEPS, KINETO}},
    {"gpu_user_annotation", {RP_KIND_GPU_ANNOTATION, 0, KINETO}},
    {"cuda_sync", {RP_KIND_SYNC, 0, KINETO}},
    {"cuda_event", {RP_KIND_OTHER, 0, KINETO}},
    {"overhead", {RP_KIND_OVERHEAD, 0, KINETO}},
    {"external_correlation", {RP_KIND_OTHER, 0, KINETO}},
    {"cpu_instant_event", {RP_KIND_INSTANT, 0, KINETO}},
    {"cuda_profiler_range", {RP_KIND_OTHER, 0, KINETO}},
    {"collective_comm", {RP_KIND_COMM_OP, 0, KINETO}},
    {"blocking", {RP_KIND_WAIT, NESTS, 0}},
    {"glow_runtime", {RP_KIND_RUNTIME, 0, KINETO}},
    {"mtia_runtime", {RP_KIND_RUNTIME, 0, KINETO}},
    {"mtia_ccp_events", {RP_KIND_KERNEL, 0, KINETO}},
    {"mtia_insight", {RP_KIND_OTHER, 0, KINETO}},
    {"mtia_counters", {RP_KIND_COUNTER, 0, KINETO}},
    {"hpu_op", {RP_KIND_KERNEL, 0, KINETO}},
    {"xpu_runtime", {RP_KIND_RUNTIME, 0, KINETO}},
    {"xpu_driver", {RP_KIND_RUNTIME, 0, KINETO}},
    {"xpu_sync", {RP_KIND_SYNC, 0, KINETO}},
    {"xpu_scope_profiler", {RP_KIND_COUNTER, 0, KINETO}},
    {"privateuse1_runtime", {RP_KIND_RUNTIME, 0, KINETO}},
    {"privateuse1_driver", {RP_KIND_RUNTIME, 0, KINETO}},
    {"hardware_counters", {RP_KIND_COUNTER, 0, KINETO}},
    {"Trace", {RP_KIND_OTHER, 0, 0}},
    /* Kineto of 2021 */
    {"Operator", {RP_KIND_CPU_OP, STEPS, KINETO}},
    {"Runtime", {RP_KIND_RUNTIME, CALL, 0}},
    {"Kernel", {RP_KIND_KERNEL, GPU, 0}},
    {"Memcpy", {RP_KIND_MEMCPY, GPU, 0}},
    {"Memset", {RP_KIND_MEMSET, GPU, 0}},
    {"Memory", {RP_KIND_COUNTER, 0, 0}},
    /* TensorFlow's Timeline */
    {"Op", {RP_KIND_CPU_OP, 0, TF}},
    {"Tensor", {RP_KIND_OTHER, 0, TF}},
    {"DataFlow", {RP_KIND_OTHER, 0, TF}},
    /* dPRO, and the timelines of ByteDance's straggler analysis */
    {"Comm", {RP_KIND_TRANSFER, 0, 0}},
    {"forward-compute", {RP_KIND_ANNOTATION, 0, 0}},
    {"backward-compute", {RP_KIND_ANNOTATION, 0, 0}},
    {"optimizer", {RP_KIND_ANNOTATION, 0, 0}},
    {"optimizer-clip-main-grad", {RP_KIND_ANNOTATION, 0, 0}},
    {"forward-send", {RP_KIND_TRANSFER, 0, 0}},
    {"forward-recv", {RP_KIND_TRANSFER, 0, 0}},
    {"backward-send", {RP_KIND_TRANSFER, 0, 0}},
    {"backward-recv", {RP_KIND_TRANSFER, 0, 0}},
    {"grads-reduce-scatter", {RP_KIND_COMM_OP, 0, 0}},
    {"params-all-gather", {RP_KIND_COMM_OP, 0, 0}},
    {"layernorm-grads-all-reduce", {RP_KIND_COMM_OP, 0, 0}},
    {"embedding-grads-all-reduce", {RP_KIND_COMM_OP, 0, 0}},
    /* DFTracer: calls of the C library that read and write files */
    {"POSIX", {RP_KIND_WAIT, NESTS, 0}},
    {"STDIO", {RP_KIND_WAIT, NESTS, 0}},
    /* rocprofv3 and rocprof-sys */
    {"kernel_dispatch", {RP_KIND_KERNEL, GPU, 0}},
    {"memory_copy", {RP_KIND_MEMCPY, GPU, 0}},
    {"hip_api", {RP_KIND_RUNTIME, CALL, 0}},
    {"hsa_api", {RP_KIND_RUNTIME, CALL, 0}},
    {"marker_api", {RP_KIND_ANNOTATION, STEPS, 0}},
    {"rccl_api", {RP_KIND_COMM_OP, 0, 0}},
    /* viztracer: entries and exits of Python functions */
    {"fee", {RP_KIND_PYTHON, NESTS, RP_CHROME_VIZTRACER}},
    {NULL, {RP_KIND_OTHER, 0, UNKNOWN}},
};

/* Ray's timelines: "task::train" is a task, "task:execute" a part of one. */
static const struct rp_chrome_kind ray_task = {RP_KIND_ANNOTATION, NESTS, RP_CHROME_RAY};

/* Prefixes of names, for events without a category; `phases` are the phases that a row applies
   to. */
static const struct {
    const char *begins, *phases;
    uint8_t kind, signs;
} names[] = {
    {"$", "X", RP_KIND_PYTHON, 0}, /* XProf's Python frames: "$file.py:12 function" */
    {"PjitFunction(", "X", RP_KIND_CPU_OP, RP_CHROME_JAX},
    {"NEGOTIATE_", "BX", RP_KIND_COMM_OP, RP_CHROME_HOROVOD},
    {"ALLREDUCE", "BX", RP_KIND_COMM_OP, RP_CHROME_HOROVOD},
    {"ALLGATHER", "BX", RP_KIND_COMM_OP, RP_CHROME_HOROVOD},
    {"BROADCAST", "BX", RP_KIND_COMM_OP, RP_CHROME_HOROVOD},
    {"ALLTOALL", "BX", RP_KIND_COMM_OP, RP_CHROME_HOROVOD},
    {"REDUCESCATTER", "BX", RP_KIND_COMM_OP, RP_CHROME_HOROVOD},
    {"ADASUM", "BX", RP_KIND_COMM_OP, RP_CHROME_HOROVOD},
    {"NCCL_", "BX", RP_KIND_COMM_OP, RP_CHROME_HOROVOD},
    {"MPI_", "BX", RP_KIND_COMM_OP, RP_CHROME_HOROVOD},
    {"GLOO_", "BX", RP_KIND_COMM_OP, RP_CHROME_HOROVOD},
    {NULL, NULL, RP_KIND_OTHER, 0},
};

struct rp_chrome_kind rp_chrome_category_kind(const char *text, size_t len)
{
    size_t i;

    if (len > 5 && memcmp(text, "task:", 5) == 0)
        return ray_task;
    for (i = 0; categories[i].text; i++)
        if (strlen(categories[i].text) == len && memcmp(categories[i].text, text, len) == 0)
            break;
    return categories[i].is;
}

uint8_t rp_chrome_name_kind(const char *name, size_t len, char phase, unsigned *signs)
{
    for (size_t i = 0; names[i].begins; i++) {
        size_t n = strlen(names[i].begins);

        if (len >= n && memcmp(name, names[i].begins, n) == 0 && strchr(names[i].phases, phase)) {
            *signs |= names[i].signs;
            return names[i].kind;
        }
    }
    return RP_KIND_OTHER;
}

uint8_t rp_chrome_phase_kind(char phase, uint8_t kind)
{
    switch (phase) {
    case 'X': /* complete, begin and end, asynchronous begin and end */
    case 'B':
    case 'E':
    case 'b':
    case 'e':
    case 'S':
    case 'F':
        return kind == RP_KIND_INSTANT || kind == RP_KIND_COUNTER ? RP_KIND_OTHER : kind;
    case 'i': /* instants, also of an asynchronous chain */
    case 'I':
    case 'R':
    case 'n':
    case 'T':
    case 'p':
        return RP_KIND_INSTANT;
    case 'C':
        return RP_KIND_COUNTER;
    case 'M':
        return RP_KIND_METADATA;
    default: /* objects, memory dumps, samples, clock marks, arrows */
        return RP_KIND_OTHER;
    }
}
