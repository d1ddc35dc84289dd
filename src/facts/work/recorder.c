/* SPDX-License-Identifier: Apache-2.0 */
/* A table, of which the first row that fits is used. */
#include "facts/work/recorder.h"

#define FW(name)    (1u << RP_FRAMEWORK_##name)
#define FROM_TORCH  (FW(PYTORCH) | FW(TENSORRT_LLM))
#define BY_TORCH    " of PyTorch's profiler" /* used if nothing tells the framework */
#define XLA_PROGRAM "XLA_FLAGS=--xla_dump_to=DIR"

enum who { PROFILER, OURS, SYSTEM };
enum { ANY = 0 }; /* framework */

static const struct {
    uint8_t what, who;
    uint16_t frameworks;
    const char *option; /* NULL: none */
} options[] = {
    {RP_RECORDS_SHAPES, OURS, FW(JAX), XLA_PROGRAM},
    {RP_RECORDS_SHAPES, OURS, FW(TENSORFLOW) | FW(NATIVE) | FW(OPENCL), NULL},
    {RP_RECORDS_SHAPES, OURS, ANY, "'reprise record --set frameworks.shapes=on'"},
    {RP_RECORDS_SHAPES, SYSTEM, FW(PYTORCH), "'reprise record --set frameworks.shapes=on'"},
    {RP_RECORDS_SHAPES, PROFILER, FW(JAX), XLA_PROGRAM},
    {RP_RECORDS_SHAPES, PROFILER, FW(VLLM), "--profiler-config.torch_profiler_record_shapes=true"},
    {RP_RECORDS_SHAPES, PROFILER, FW(SGLANG), "/start_profile with record_shapes = true"},
    {RP_RECORDS_SHAPES, PROFILER, FROM_TORCH, "record_shapes=True"},
    {RP_RECORDS_SHAPES, PROFILER, FW(UNKNOWN), "record_shapes=True" BY_TORCH},

    {RP_RECORDS_FRAMES, PROFILER, FW(JAX),
     "python_tracer_level = 1 of jax.profiler.ProfileOptions()"},
    {RP_RECORDS_FRAMES, PROFILER, FW(TENSORFLOW),
     "python_tracer_level=1 of tf.profiler.experimental.ProfilerOptions()"},
    {RP_RECORDS_FRAMES, PROFILER, FW(VLLM), "--profiler-config.torch_profiler_with_stack=true"},
    {RP_RECORDS_FRAMES, PROFILER, FW(SGLANG), "/start_profile with with_stack = true"},
    {RP_RECORDS_FRAMES, PROFILER, FROM_TORCH, "with_stack=True"},
    {RP_RECORDS_FRAMES, PROFILER, FW(UNKNOWN), "with_stack=True" BY_TORCH},

    {RP_RECORDS_MEMORY, OURS, FW(PYTORCH), "'reprise record --set frameworks.memory=on'"},
    {RP_RECORDS_MEMORY, PROFILER, FROM_TORCH, "profile_memory=True"},
    {RP_RECORDS_MEMORY, PROFILER, FW(UNKNOWN), "profile_memory=True" BY_TORCH},
};

enum rp_code rp_recorder_find(const struct rp_trace *trace, struct rp_recorder *out,
                              struct rp_err *err)
{
    struct rp_workload w;

    *out = (struct rp_recorder){0};
    RP_TRY(rp_workload_find(trace, &w, err));
    *out = (struct rp_recorder){
        .framework = w.framework, .system = w.system, .ours = w.ours, .compiled = w.compiled};
    return RP_OK;
}

const char *rp_recorder_option(const struct rp_recorder *recorder, enum rp_recordable what)
{
    uint8_t who = recorder->ours ? OURS : recorder->system != RP_SYSTEM_NONE ? SYSTEM : PROFILER;

    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (options[i].what == what && options[i].who == who &&
            (options[i].frameworks == ANY || options[i].frameworks >> recorder->framework & 1))
            return options[i].option;
    return NULL;
}
