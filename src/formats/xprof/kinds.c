/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides what planes, lines and names of events mean, by const tables of which the first matching
 * row counts. Each event_metadata and each line is examined once; then the kind of an event is one
 * lookup in a small array that is built from the table of kinds. The flags are the sets that the
 * definitions of health use (docs/definitions.md).
 */
#include "formats/xprof/xplane.h"

#include <ctype.h>

static const struct {
    const char *begins;
    enum rp_xplane_plane_kind kind;
} planes[] = {
    {"/device:GPU:", RP_XPLANE_GPU},
    {"/device:TPU:", RP_XPLANE_TPU},
    {"/device:", RP_XPLANE_DEVICE},
    {"/host:CUPTI", RP_XPLANE_CUPTI}, /* calls that XProf has not assigned to threads yet */
    {"/host:ROCTRACER", RP_XPLANE_CUPTI},
    {"/host:", RP_XPLANE_HOST},
    {"", RP_XPLANE_OTHER},
};

#define ON(kind)   (1u << RP_XPLANE_##kind)
#define ON_DEVICES (ON(GPU) | ON(TPU) | ON(DEVICE))
#define ANYWHERE   UINT32_MAX

static const struct {
    uint32_t planes;
    const char *begins;
    enum rp_xplane_line_kind kind;
} lines[] = {
    {ANYWHERE, "_counters_", RP_XPLANE_COUNTERS},
    {ON(GPU), "Stream #", RP_XPLANE_STREAM}, /* "Stream #134(Compute)" */
    {ON(TPU), "XLA Ops", RP_XPLANE_OPS},
    {ON(TPU), "Sparse Core Ops", RP_XPLANE_OPS},
    {ON(TPU), "Async XLA Ops", RP_XPLANE_ASYNC},
    /* These are shown: "Steps", "XLA Modules", "XLA Ops" of a GPU, "Framework Ops", "Framework Name
       Scope", "TensorFlow Ops", "Source code", "Launch Stats". */
    {ON_DEVICES, "", RP_XPLANE_SHOWN},
    {ON(CUPTI), "", RP_XPLANE_API},
    {ON(HOST), "Host Threads/", RP_XPLANE_API},
    {ANYWHERE, "", RP_XPLANE_THREAD},
};

#define JAX RP_XPLANE_JAX
#define TF  RP_XPLANE_TENSORFLOW

static const struct {
    const char *begins;
    enum rp_xplane_name_kind kind;
    unsigned signs;
} names[] = {
    {"$", RP_XPLANE_PYTHON, 0}, /* "$file.py:12 function" */
    {"PjitFunction(", RP_XPLANE_OPERATOR, JAX},
    {"XlaModule:", RP_XPLANE_OPERATOR, 0},
    {"TFE_", RP_XPLANE_PLAIN, TF},
    {"EagerExecute", RP_XPLANE_PLAIN, TF},
    {"EagerLocalExecute: __", RP_XPLANE_PLAIN, TF},       /* a function with its operators inside */
    {"EagerLocalExecute: Iterator", RP_XPLANE_PLAIN, TF}, /* the next batch */
    {"EagerLocalExecute: ", RP_XPLANE_OPERATOR, TF},
    {"EagerLocalExecute", RP_XPLANE_PLAIN, TF},
    {"Iterator::", RP_XPLANE_PLAIN, TF}, /* a stage of the input */
    {"ExecutorState::Process", RP_XPLANE_PLAIN, TF},
    {"<UNKNOWN>", RP_XPLANE_TRACER, 0}, /* CUPTI's kinds of overhead */
    {"BUFFER_FLUSH", RP_XPLANE_TRACER, 0},
    {"INSTRUMENTATION", RP_XPLANE_TRACER, 0},
    {"RESOURCE", RP_XPLANE_TRACER, 0},
    {"DRIVER_COMPILER", RP_XPLANE_TRACER, 0},
    {"RUNTIME_TRIGGERED_MODULE_LOADING", RP_XPLANE_TRACER, 0},
    {"LAZY_FUNCTION_LOADING", RP_XPLANE_TRACER, 0},
    {"COMMAND_BUFFER_FULL", RP_XPLANE_TRACER, 0},
    {"ACTIVITY_BUFFER_REQUEST", RP_XPLANE_TRACER, 0},
    {"UVM_ACTIVITY_INIT", RP_XPLANE_TRACER, 0},
    {"Memcpy", RP_XPLANE_COPY, 0}, /* "MemcpyH2D" */
    {"MEMCPY", RP_XPLANE_COPY, 0},
    {"CopyDeviceTo", RP_XPLANE_COPY, 0}, /* rocTracer */
    {"CopyHostTo", RP_XPLANE_COPY, 0},
    {"copy", RP_XPLANE_MOVE, 0}, /* XLA: "copy-start.3" */
    {"slice-start", RP_XPLANE_MOVE, 0},
    {"dynamic-slice-start", RP_XPLANE_MOVE, 0},
    {"dynamic-update-slice-start", RP_XPLANE_MOVE, 0},
    {"Memset", RP_XPLANE_FILL, 0},
    {"MEMSET", RP_XPLANE_FILL, 0},
    {"FillBuffer", RP_XPLANE_FILL, 0},
    {"all-reduce", RP_XPLANE_COLLECTIVE, 0},
    {"all-gather", RP_XPLANE_COLLECTIVE, 0},
    {"all-to-all", RP_XPLANE_COLLECTIVE, 0},
    {"ragged-all-to-all", RP_XPLANE_COLLECTIVE, 0},
    {"reduce-scatter", RP_XPLANE_COLLECTIVE, 0},
    {"collective-", RP_XPLANE_COLLECTIVE, 0},
    {"send", RP_XPLANE_COLLECTIVE, 0},
    {"recv", RP_XPLANE_COLLECTIVE, 0},
};

#define ANY (-1)

static const struct {
    int line, name; /* ANY, or the kind */
    uint8_t role;   /* 0, or the statistic that is required */
    uint8_t kind;   /* enum rp_kind */
} kinds[] = {
    {RP_XPLANE_STREAM, ANY, RP_XPLANE_COPIES, RP_KIND_MEMCPY},
    {RP_XPLANE_STREAM, ANY, RP_XPLANE_FILLS, RP_KIND_MEMSET},
    {RP_XPLANE_STREAM, RP_XPLANE_COPY, 0, RP_KIND_MEMCPY},
    {RP_XPLANE_STREAM, RP_XPLANE_FILL, 0, RP_KIND_MEMSET},
    {RP_XPLANE_STREAM, ANY, 0, RP_KIND_KERNEL},
    {RP_XPLANE_OPS, ANY, 0, RP_KIND_KERNEL},
    {RP_XPLANE_ASYNC, RP_XPLANE_COLLECTIVE, 0, RP_KIND_COMM_OP},
    {RP_XPLANE_ASYNC, RP_XPLANE_MOVE, 0, RP_KIND_MEMCPY},
    {RP_XPLANE_ASYNC, ANY, 0, RP_KIND_GPU_ANNOTATION},
    {RP_XPLANE_SHOWN, ANY, 0, RP_KIND_GPU_ANNOTATION},
    {RP_XPLANE_COUNTERS, ANY, 0, RP_KIND_COUNTER},
    {RP_XPLANE_API, RP_XPLANE_TRACER, 0, RP_KIND_OVERHEAD},
    {RP_XPLANE_API, ANY, 0, RP_KIND_RUNTIME},
    /* Before 2021 a launch had the name of its kernel; it is recognised by its id. */
    {RP_XPLANE_THREAD, ANY, RP_XPLANE_CORRELATES, RP_KIND_RUNTIME},
    {RP_XPLANE_THREAD, ANY, RP_XPLANE_STEPS, RP_KIND_ANNOTATION}, /* a StepTraceAnnotation */
    {RP_XPLANE_THREAD, ANY, RP_XPLANE_OPERATES, RP_KIND_CPU_OP},  /* XLA's CPU runs a thunk */
    {RP_XPLANE_THREAD, RP_XPLANE_CALL, 0, RP_KIND_RUNTIME},
    {RP_XPLANE_THREAD, RP_XPLANE_PYTHON, 0, RP_KIND_PYTHON},
    {RP_XPLANE_THREAD, RP_XPLANE_OPERATOR, 0, RP_KIND_CPU_OP},
    {RP_XPLANE_THREAD, ANY, 0, RP_KIND_ANNOTATION}, /* a TraceMe, of the user or the framework */
    {ANY, ANY, 0, RP_KIND_OTHER},
};

static const struct {
    const char *name;
    uint16_t role;
} roles[] = {
    {"correlation_id", RP_XPLANE_CORRELATES}, {"memcpy_details", RP_XPLANE_COPIES},
    {"memset_details", RP_XPLANE_FILLS},      {"step_num", RP_XPLANE_STEPS},
    {"_pt", RP_XPLANE_PRODUCER_TYPE},         {"_p", RP_XPLANE_PRODUCER},
    {"_ct", RP_XPLANE_CONSUMER_TYPE},         {"_c", RP_XPLANE_CONSUMER},
    {"hlo_op", RP_XPLANE_OPERATES},
};

/* Thread hand-offs have these context types of TSL. */
static const char *const contexts[RP_XPLANE_CONTEXTS] = {
    "generic",
    "legacy",
    "tf_executor",
    "tfrt_executor",
    "batch_scheduler",
    "pjrt",
    "adaptive_batch_scheduler",
    "tfrt_tpu_runtime",
    "tpu_embedding",
    "gpu_launch",
    "batcher",
    "tpu_stream",
    "tpu_launch",
    "pathways_executor",
    "pjrt_library",
    "threadpool",
    "jax_serving_executor",
    "sparse_core",
};

enum rp_xplane_plane_kind rp_xplane_plane_kind(struct rp_bytes name)
{
    size_t i = 0;

    while (!rp_bytes_begin(name, planes[i].begins))
        i++;
    return planes[i].kind;
}

enum rp_xplane_line_kind rp_xplane_line_kind(enum rp_xplane_plane_kind plane, struct rp_bytes name)
{
    size_t i = 0;

    while (!(lines[i].planes >> plane & 1) || !rp_bytes_begin(name, lines[i].begins))
        i++;
    return lines[i].kind;
}

/* Whether this is a call such as "cuLaunchKernel", "cudaMemcpyAsync", "hipModuleLaunchKernel", and
   not "custom-call.1". */
static bool names_call(struct rp_bytes name)
{
    static const char *const begins[] = {"cuda", "cu", "hip", "hsa_", NULL};

    for (size_t i = 0; begins[i]; i++) {
        size_t n = strlen(begins[i]);

        if (rp_bytes_begin(name, begins[i]) && name.n > n &&
            (isupper(name.at[n]) || begins[i][n - 1] == '_'))
            return true;
    }
    return false;
}

enum rp_xplane_name_kind rp_xplane_name_kind(struct rp_bytes name, bool display, unsigned *signs)
{
    for (size_t i = 0; name.n && i < sizeof names / sizeof *names; i++)
        if (names[i].begins[0] == (char)name.at[0] && rp_bytes_begin(name, names[i].begins)) {
            *signs |= names[i].signs;
            return names[i].kind;
        }
    if (names_call(name))
        return RP_XPLANE_CALL;
    return display ? RP_XPLANE_OPERATOR : RP_XPLANE_PLAIN; /* TensorFlow: "dense/MatMul:MatMul" */
}

uint16_t rp_xplane_role(struct rp_bytes stat_name)
{
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (rp_bytes_are(stat_name, roles[i].name))
            return roles[i].role;
    return 0;
}

const char *rp_xplane_context_name(uint64_t type)
{
    return type < RP_XPLANE_CONTEXTS ? contexts[type] : "other";
}

static uint8_t kind_of(int line, int name, uint8_t has)
{
    size_t i = 0;

    while ((kinds[i].line != ANY && kinds[i].line != line) ||
           (kinds[i].name != ANY && kinds[i].name != name) || (kinds[i].role & ~has))
        i++;
    return kinds[i].kind;
}

void rp_xplane_fill_kinds(struct rp_xplane *r)
{
    for (int line = 0; line < RP_XPLANE_LINE_KINDS; line++)
        for (int name = 0; name < RP_XPLANE_NAME_KINDS; name++)
            for (int has = 0; has < RP_XPLANE_ROLES; has++)
                r->kinds[line][name][has] = kind_of(line, name, (uint8_t)has);
}

uint8_t rp_xplane_origin_flags(enum rp_xplane_line_kind line, uint8_t kind)
{
    if (line == RP_XPLANE_STREAM)
        return RP_ORIGIN_GPU;
    if (kind == RP_KIND_RUNTIME)
        return RP_ORIGIN_RUNTIME | RP_ORIGIN_NESTS;
    return line == RP_XPLANE_THREAD ? RP_ORIGIN_NESTS : 0;
}
