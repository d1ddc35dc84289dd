/* SPDX-License-Identifier: Apache-2.0 */
/* The host runs something else while the device has nothing to do. */
#include "explain/findings/finding.h"
#include "facts/host/signs.h"

enum { OTHER, INPUT, COMPILED, OPERATOR, EXECUTOR };

/* Groups what the host runs by words in its name. */
static const struct {
    const char *word;
    uint8_t kind;
} words[] = {{"torchinductor", COMPILED},
             {"inductor_cache", COMPILED},
             {"CompiledFxGraph", COMPILED},
             {"Torch-Compiled Region", COMPILED},
             {"aten::", OPERATOR},
             {"ExecutorState::Process", EXECUTOR},
             {"PjRt", EXECUTOR},
             {"Pjit", EXECUTOR},
             {"XlaComputation", EXECUTOR}};

static unsigned kind_of(const char *text)
{
    if (rp_host_prepares_input(text))
        return INPUT;
    for (size_t i = 0; text && i < sizeof words / sizeof words[0]; i++)
        if (rp_host_has_word(text, words[i].word))
            return words[i].kind;
    return OTHER;
}

static void host_work_find(struct rp_findings *f)
{
    int64_t total, count;
    const struct rp_idle_cause *row = rp_findings_cause(f, f->chain->lead, &total, &count);
    struct rp_report_finding *finding =
        rp_findings_add_idle(f, kind_of(row ? row->evidence : NULL), 0);

    if (finding)
        rp_findings_say_idle(f, finding);
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_LOOK, OF(OTHER),
     .text = "'reprise critpath' shows the code; move it off the thread that launches, or onto "
             "the device"},
    {RP_ADVISE_LOOK, OF(OTHER), .with_stack = RP_KEY_YES,
     .text = "'reprise critpath' and 'reprise top --by python' show the code; move it off the "
             "thread that launches, or onto the device"},
    {RP_ADVISE_LOOK, OF(OTHER), .frameworks = FW(PYTORCH), .with_stack = RP_KEY_NO,
     .text = "record it with torch.profiler.profile(with_stack=True); move it off the thread "
             "that launches, or onto the device"},
    {RP_ADVISE_LOOK, OF(OTHER), .frameworks = FW(PYTORCH) | FW(JAX) | FW(TENSORFLOW) | FW(NATIVE),
     .with_stack = RP_KEY_NO, .ours = RP_KEY_YES,
     .text = "'reprise critpath' shows the spans; 'reprise record --with +sample' their Python "
             "code; move it off "
             "the thread that launches, or onto the device"},
    {RP_ADVISE_LOOK, OF(OTHER), .frameworks = FW(PYTORCH) | FW(JAX) | FW(TENSORFLOW) | FW(NATIVE),
     .with_stack = RP_KEY_NO, .ours = RP_KEY_YES, .sampled = RP_KEY_YES,
     .text = "'reprise top --by line --width idle' shows the code; move it off the thread that "
             "launches, or onto the device"},
    {RP_ADVISE_CALL, OF(OTHER), .frameworks = FW(JAX),
     .text = "one jax.jit around the whole step; JAX_LOG_COMPILES=1 tells whether the host "
             "compiles"},
    {RP_ADVISE_CALL, OF(OTHER), .frameworks = FW(TENSORFLOW),
     .text = "@tf.function around the whole step"},
    {RP_ADVISE_CALL, OF(OTHER), .frameworks = FW(VLLM),
     .text = "vllm serve --async-scheduling, and --api-server-count N for work on requests"},
    {RP_ADVISE_CALL, OF(OTHER), .frameworks = FW(SGLANG),
     .text = "sglang.launch_server without --disable-overlap-schedule, and "
             "--tokenizer-worker-num N for work on requests"},
    {RP_ADVISE_CALL, OF(OTHER), .frameworks = FW(VLLM), .ahead = RP_KEY_YES,
     .text = "vllm serve --api-server-count N for work on requests"},
    {RP_ADVISE_CALL, OF(OTHER), .frameworks = FW(SGLANG), .ahead = RP_KEY_YES,
     .text = "sglang.launch_server --tokenizer-worker-num N for work on requests"},
    {RP_ADVISE_CALL, OF(OTHER), .frameworks = FW(TENSORRT_LLM),
     .text = "disable_overlap_scheduler: false, and num_postprocess_workers: N for work on "
             "requests"},
    {RP_ADVISE_LOOK, OF(OTHER), .with_stack = RP_KEY_NO, .system = RP_KEY_YES,
     .text =
         "'reprise record --with +sample' names the code; move it off the thread that launches, "
         "or onto the device"},
    {RP_ADVISE_CALL, OF(INPUT),
     .text = "prepare the next input in another thread or process while the device works, or "
             "on the device",
     .what_if = "dataloader=free"},
    {RP_ADVISE_CALL, OF(INPUT), .frameworks = FW(PYTORCH),
     .text = "DataLoader(dataset, num_workers=N, prefetch_factor=4), which prepares inputs in "
             "other processes while the device works",
     .what_if = "dataloader=free"},
    {RP_ADVISE_MORE, OF(INPUT), .frameworks = FW(PYTORCH),
     .text = "torchvision.transforms.v2 on tensors of the device (for Hugging Face: a fast "
             "image processor, use_fast=True)"},
    {RP_ADVISE_CALL, OF(INPUT), .frameworks = FW(JAX),
     .text = "grain.DataLoader(worker_count=N), and jax.device_put of the next input while the "
             "device works",
     .what_if = "dataloader=free"},
    {RP_ADVISE_CALL, OF(INPUT), .frameworks = FW(TENSORFLOW),
     .text = "dataset.map(..., num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)",
     .what_if = "dataloader=free"},
    {RP_ADVISE_CALL, OF(INPUT), .frameworks = FW(VLLM),
     .text = "vllm serve --api-server-count N: more processes read and prepare requests"},
    {RP_ADVISE_CALL, OF(INPUT), .frameworks = FW(SGLANG),
     .text = "sglang.launch_server --tokenizer-worker-num N: more processes prepare requests"},
    {RP_ADVISE_CALL, OF(INPUT), .frameworks = FW(TENSORRT_LLM),
     .text = "num_postprocess_workers: N, and requests that are tokenized before they are sent"},
    {RP_ADVISE_LOOK, OF(COMPILED),
     .text = "'reprise critpath' shows the code; larger batches: the wrapper costs the same"},
    {RP_ADVISE_LOOK, OF(COMPILED), .frameworks = FW(PYTORCH),
     .text = "TORCH_LOGS=recompiles,graph_breaks tells whether it is compiled again, or in many "
             "pieces"},
    {RP_ADVISE_GRAPHS, OF(COMPILED), .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .graphs = RP_KEY_NO,
     .text = "torch.compile(model, mode=\"reduce-overhead\"): a CUDA graph replaces the calls of "
             "the wrapper",
     .what_if = "cuda-graphs"},
    {RP_ADVISE_GRAPHS, OF(COMPILED), .frameworks = FW(PYTORCH), .vendors = BY(AMD),
     .graphs = RP_KEY_NO,
     .text = "torch.compile(model, mode=\"reduce-overhead\"): a HIP graph replaces the calls of "
             "the wrapper",
     .what_if = "cuda-graphs"},
    {RP_ADVISE_LOOK, OF(OPERATOR),
     .text = "if its tensors are on the host, make them on the device (device=...); if it is the "
             "first call, it loads code: warm up before recording"},
    {RP_ADVISE_LOOK, OF(EXECUTOR),
     .text = "the first call compiles, tunes and loads code: record after a few steps; then look "
             "for operators on the host"},
    {RP_ADVISE_LOOK, OF(EXECUTOR), .frameworks = FW(JAX),
     .text = "the first call compiles, tunes and loads code: call the function before recording; "
             "JAX_COMPILATION_CACHE_DIR keeps the result"},
    {RP_ADVISE_LOOK, OF(EXECUTOR), .frameworks = FW(TENSORFLOW),
     .text = "record after a few steps; tf.debugging.set_log_device_placement(True) shows "
             "operators on the CPU"},
    {RP_ADVISE_COMPILE, OF(EXECUTOR), .frameworks = FW(TENSORFLOW), .compiled = RP_KEY_NO,
     .text = "@tf.function(jit_compile=True): fewer operators for the executor"},
};

const struct rp_finding rp_finding_host_work = {
    .id = "host-work",
    .kinds = {{"other", "the host runs something else while the device has nothing to do"},
              {"input", "the host prepares input while the device has nothing to do"},
              {"compiled",
               "the wrapper of compiled code runs on the host while the device has nothing to do"},
              {"operator", "an operator runs on the host while the device has nothing to do"},
              {"executor", "the framework's executor is busy while the device has nothing to do"}},
    .idle = 1u << RP_GAP_HOST_WORK,
    .of_host = true,
    .find = host_work_find,
    RP_ADVICE(advice),
};
