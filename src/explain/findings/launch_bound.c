/* SPDX-License-Identifier: Apache-2.0 */
/* The device has nothing to do, because the host launches too slowly. */
#include "explain/findings/finding.h"

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_GRAPHS, .graphs = RP_KEY_NO,
     .text = "launch repeated sequences of kernels as one graph", .what_if = "cuda-graphs"},
    /* for servers whose batch runs as one graph; comes before the rows that suggest graphs */
    {RP_ADVISE_GRAPHS, .frameworks = FW(PYTORCH), .graphs = RP_KEY_YES, .in_graphs = RP_KEY_YES,
     .text = "a step is a graph already: .item() and .cpu() of its results one step later let the "
             "host launch the next one meanwhile",
     .what_if = "no-sync"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(VLLM) | FW(SGLANG) | FW(TENSORRT_LLM), .graphs = RP_KEY_YES,
     .in_graphs = RP_KEY_YES, .text = ""},
    {RP_ADVISE_GRAPHS, .graphs = RP_KEY_YES,
     .text = "launch fewer and larger kernels; 'reprise launches' shows what is launched "
             "outside of the graphs"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA), .graphs = RP_KEY_NO,
     .text = "torch.compile(model, mode=\"reduce-overhead\"), which replays CUDA graphs; for a "
             "part of the model torch.cuda.make_graphed_callables()",
     .what_if = "cuda-graphs"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(PYTORCH), .vendors = BY(AMD), .graphs = RP_KEY_NO,
     .text = "torch.compile(model, mode=\"reduce-overhead\"), which replays HIP graphs",
     .what_if = "cuda-graphs"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA), .compiled = RP_KEY_YES,
     .graphs = RP_KEY_NO,
     .text = "torch.compile(model, mode=\"reduce-overhead\", dynamic=False): the compiled "
             "model then replays CUDA graphs",
     .what_if = "cuda-graphs"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(PYTORCH), .vendors = BY(AMD), .compiled = RP_KEY_YES,
     .graphs = RP_KEY_NO,
     .text = "torch.compile(model, mode=\"reduce-overhead\", dynamic=False): the compiled "
             "model then replays HIP graphs",
     .what_if = "cuda-graphs"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(PYTORCH),
     .vendors = BY(UNKNOWN) | BY(INTEL) | BY(GOOGLE) | BY(META), .graphs = RP_KEY_NO,
     .text = "torch.compile(model): fewer and larger kernels"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(PYTORCH), .graphs = RP_KEY_YES,
     .text = "'reprise launches' shows what is launched outside of the graphs; "
             "TORCH_LOGS=perf_hints,graph_breaks says why"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(VLLM), .vendors = BY(NVIDIA), .graphs = RP_KEY_NO,
     .text = "vllm serve without --enforce-eager: decode steps replay CUDA graphs",
     .what_if = "cuda-graphs"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(VLLM), .vendors = BY(AMD), .graphs = RP_KEY_NO,
     .text = "vllm serve without --enforce-eager: decode steps replay HIP graphs",
     .what_if = "cuda-graphs"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(VLLM), .graphs = RP_KEY_NO,
     .text = "vllm serve without --enforce-eager: decode steps replay graphs",
     .what_if = "cuda-graphs"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(VLLM), .vendors = BY(NVIDIA), .graphs = RP_KEY_YES,
     .text = "vllm serve --compilation-config '{\"cudagraph_mode\": \"FULL_AND_PIECEWISE\"}'; "
             "batches over max_cudagraph_capture_size run without graphs"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(VLLM), .graphs = RP_KEY_YES,
     .text = "vllm serve --max-num-seqs no larger than the captured batch sizes "
             "(--compilation-config): larger batches run without graphs"},
    {RP_ADVISE_CALL, .frameworks = FW(VLLM),
     .text = "vllm serve --async-scheduling: the next step is prepared while the device works"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(SGLANG), .vendors = BY(NVIDIA),
     .serves = SERVES(NOTHING) | SERVES(DECODE) | SERVES(BOTH), .graphs = RP_KEY_NO,
     .text = "sglang.launch_server without --disable-cuda-graph, and --cuda-graph-max-bs of at "
             "least the decode batch",
     .what_if = "cuda-graphs"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(SGLANG),
     .serves = SERVES(NOTHING) | SERVES(DECODE) | SERVES(BOTH), .graphs = RP_KEY_NO,
     .text = "sglang.launch_server with graphs for decode (they are on unless disabled) that "
             "cover the batch size",
     .what_if = "cuda-graphs"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(SGLANG), .serves = SERVES(PREFILL), .graphs = RP_KEY_NO,
     .text = ""},
    {RP_ADVISE_GRAPHS, .frameworks = FW(SGLANG), .vendors = BY(NVIDIA), .graphs = RP_KEY_YES,
     .text = "sglang.launch_server --cuda-graph-max-bs of at least the decode batch: larger "
             "batches run without graphs"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(SGLANG), .graphs = RP_KEY_YES,
     .text = "graphs for the decode batch of this size: batches over the largest captured one "
             "run without graphs"},
    {RP_ADVISE_CALL, .frameworks = FW(SGLANG),
     .text = "sglang.launch_server without --disable-overlap-schedule: the next batch is "
             "prepared while the device works"},
    {RP_ADVISE_CALL, .frameworks = FW(VLLM) | FW(SGLANG), .ahead = RP_KEY_YES, .text = ""},
    {RP_ADVISE_GRAPHS, .frameworks = FW(VLLM), .vendors = BY(NVIDIA) | BY(AMD),
     .serves = SERVES(PREFILL), .graphs = RP_KEY_NO, .text = ""},
    {RP_ADVISE_SIZE, .frameworks = FW(VLLM), .serves = SERVES(PREFILL), .graphs = RP_KEY_NO,
     .text = "vllm serve --max-num-batched-tokens N: more tokens in a prefill step, which has no "
             "graphs beyond the largest captured size (512 by default)"},
    {RP_ADVISE_SIZE, .frameworks = FW(SGLANG), .serves = SERVES(PREFILL),
     .text = "sglang.launch_server --chunked-prefill-size: more tokens in a prefill step"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(TENSORRT_LLM), .graphs = RP_KEY_NO,
     .text = "cuda_graph_config: {enable_padding: true, max_batch_size: N} in the options of "
             "the LLM API",
     .what_if = "cuda-graphs"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(TENSORRT_LLM), .graphs = RP_KEY_YES,
     .text = "cuda_graph_config: {enable_padding: true}: batches between the captured sizes "
             "run without graphs"},
    {RP_ADVISE_CALL, .frameworks = FW(TENSORRT_LLM),
     .text = "disable_overlap_scheduler: false: the next batch is prepared while the device "
             "works"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(JAX), .vendors = BY(NVIDIA), .graphs = RP_KEY_NO,
     .text = "XLA_FLAGS=--xla_gpu_enable_command_buffer=+FUSION,+CUBLAS,+CUSTOM_CALL: XLA "
             "launches CUDA graphs",
     .what_if = "cuda-graphs"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(JAX), .vendors = BY(AMD), .graphs = RP_KEY_NO,
     .text = "XLA_FLAGS=--xla_gpu_enable_command_buffer=+FUSION,+CUSTOM_CALL: XLA launches HIP "
             "graphs",
     .what_if = "cuda-graphs"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(JAX),
     .vendors = BY(UNKNOWN) | BY(NONE) | BY(INTEL) | BY(GOOGLE) | BY(META), .graphs = RP_KEY_NO,
     .text = ""},
    {RP_ADVISE_GRAPHS, .frameworks = FW(JAX), .graphs = RP_KEY_YES,
     .text = "XLA_FLAGS=--xla_gpu_graph_min_graph_size=1: shorter sequences become graphs, too"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(JAX), .graphs = RP_KEY_YES, .in_graphs = RP_KEY_YES,
     .text = "a step is a graph already: block_until_ready(), float(x) and print(x) only every N "
             "steps let the host run ahead",
     .what_if = "no-sync"},
    {RP_ADVISE_COMPILE, .frameworks = FW(JAX),
     .text = "one jax.jit around the whole step, and jax.lax.scan over several steps: the host "
             "dispatches once"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(TENSORFLOW) | FW(HOROVOD) | FW(BYTEPS) | FW(MINDSPORE),
     .graphs = RP_KEY_NO, .text = ""},
    {RP_ADVISE_GRAPHS, .frameworks = FW(TENSORFLOW) | FW(HOROVOD) | FW(BYTEPS) | FW(MINDSPORE),
     .graphs = RP_KEY_YES, .text = ""},
    {RP_ADVISE_COMPILE, .frameworks = FW(TENSORFLOW), .compiled = RP_KEY_NO,
     .text = "@tf.function(jit_compile=True) around the step, or "
             "TF_XLA_FLAGS=--tf_xla_auto_jit=2"},
    {RP_ADVISE_CALL, .frameworks = FW(TENSORFLOW),
     .text = "model.compile(..., steps_per_execution=N): Keras runs N steps per call"},
    {RP_ADVISE_COMPILE, .frameworks = FW(MINDSPORE),
     .text = "mindspore.set_context(mode=mindspore.GRAPH_MODE), or @mindspore.jit around the "
             "step"},
    {RP_ADVISE_SIZE, .frameworks = FW(HOROVOD) | FW(BYTEPS),
     .text = "larger batches, and fewer and larger operators"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(NATIVE), .vendors = BY(NVIDIA), .graphs = RP_KEY_NO,
     .text = "cudaStreamBeginCapture, cudaGraphInstantiate and cudaGraphLaunch for the "
             "sequence that repeats",
     .what_if = "cuda-graphs"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(NATIVE), .vendors = BY(AMD), .graphs = RP_KEY_NO,
     .text = "hipStreamBeginCapture, hipGraphInstantiate and hipGraphLaunch for the sequence "
             "that repeats",
     .what_if = "cuda-graphs"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(NATIVE), .vendors = BY(INTEL), .graphs = RP_KEY_NO,
     .text = "a graph of the SYCL extension sycl_ext_oneapi_graph for the sequence that repeats",
     .what_if = "cuda-graphs"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(OPENCL), .graphs = RP_KEY_NO,
     .text = "clCommandNDRangeKernelKHR (cl_khr_command_buffer) for the sequence that repeats, "
             "or fewer and larger kernels",
     .what_if = "cuda-graphs"},
    {RP_ADVISE_COMPILE, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA) | BY(AMD),
     .compiled = RP_KEY_NO, .graphs = RP_KEY_YES,
     .text = "torch.compile(model): fewer and larger kernels", .what_if = "fuse"},
    {RP_ADVISE_OPTIMIZER, .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .parallels = PAR(NONE) | PAR(OTHER) | PAR(DDP) | PAR(FSDP), .plain_update = RP_KEY_YES,
     .text = "fused=True of the optimizer (torch.optim's Adam, AdamW, SGD): one kernel for many "
             "parameters",
     .what_if = "fused-optimizer"},
    {RP_ADVISE_OPTIMIZER, .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .parallels = PAR(DEEPSPEED), .plain_update = RP_KEY_YES,
     .text = "the \"optimizer\" of the DeepSpeed configuration as \"Adam\", which is FusedAdam",
     .what_if = "fused-optimizer"},
    {RP_ADVISE_SIZE, .frameworks = FW(PYTORCH),
     .text = "larger batches: a launch costs the same for more work"},
    {RP_ADVISE_SIZE, .frameworks = FW(VLLM), .graphs = RP_KEY_NO,
     .text = "more requests at once (--max-num-seqs), if there are any"},
};

const struct rp_finding rp_finding_launch_bound = {
    .id = "launch-bound",
    .kinds = {{"", "the host launches work more slowly than the device executes it"}},
    .idle = 1u << RP_GAP_NOT_LAUNCHED,
    .find = rp_findings_idle,
    RP_ADVICE(advice),
};
