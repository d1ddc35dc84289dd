/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of advice. A row is about one kind of finding and one topic; of the rows of a topic
 * that match a program, the one with most keys is used, of several the first. A row without text
 * says that the topic does not apply. To add advice: add a row; every option or call that it names
 * must exist in that framework, and the unit test walks all kinds of programs and checks the words.
 */
#include "explain/report/advice.h"

#define FW(name)     (1u << RP_FRAMEWORK_##name)
#define BY(name)     (1u << RP_VENDOR_##name)
#define MODE(name)   (1u << RP_MODE_##name)
#define PAR(name)    (1u << RP_PARALLEL_##name)
#define VIA(name)    (1u << RP_TRANSPORT_##name)
#define SERVES(name) (1u << RP_SERVES_##name)

static const struct rp_advice_row rows[] = {
    /* launch bound */
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .graphs = RP_KEY_NO,
     .text = "launch repeated sequences of kernels as one graph", .what_if = "cuda-graphs"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .graphs = RP_KEY_YES,
     .text = "launch fewer and larger kernels; 'reprise launches' shows what is launched "
             "outside of the graphs"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .graphs = RP_KEY_NO,
     .text = "torch.compile(model, mode=\"reduce-overhead\"), which replays CUDA graphs; for a "
             "part of the model torch.cuda.make_graphed_callables()",
     .what_if = "cuda-graphs"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .frameworks = FW(PYTORCH), .vendors = BY(AMD),
     .graphs = RP_KEY_NO,
     .text = "torch.compile(model, mode=\"reduce-overhead\"), which replays HIP graphs",
     .what_if = "cuda-graphs"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .compiled = RP_KEY_YES, .graphs = RP_KEY_NO,
     .text = "torch.compile(model, mode=\"reduce-overhead\", dynamic=False): the compiled "
             "model then replays CUDA graphs",
     .what_if = "cuda-graphs"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .frameworks = FW(PYTORCH), .vendors = BY(AMD),
     .compiled = RP_KEY_YES, .graphs = RP_KEY_NO,
     .text = "torch.compile(model, mode=\"reduce-overhead\", dynamic=False): the compiled "
             "model then replays HIP graphs",
     .what_if = "cuda-graphs"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .frameworks = FW(PYTORCH),
     .vendors = BY(UNKNOWN) | BY(INTEL) | BY(GOOGLE) | BY(META), .graphs = RP_KEY_NO,
     .text = "torch.compile(model): fewer and larger kernels"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .frameworks = FW(PYTORCH), .graphs = RP_KEY_YES,
     .text = "'reprise launches' shows what is launched outside of the graphs; "
             "TORCH_LOGS=perf_hints,graph_breaks says why"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .frameworks = FW(VLLM), .vendors = BY(NVIDIA),
     .graphs = RP_KEY_NO,
     .text = "vllm serve without --enforce-eager: decode steps replay CUDA graphs",
     .what_if = "cuda-graphs"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .frameworks = FW(VLLM), .vendors = BY(AMD),
     .graphs = RP_KEY_NO,
     .text = "vllm serve without --enforce-eager: decode steps replay HIP graphs",
     .what_if = "cuda-graphs"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .frameworks = FW(VLLM), .graphs = RP_KEY_NO,
     .text = "vllm serve without --enforce-eager: decode steps replay graphs",
     .what_if = "cuda-graphs"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .frameworks = FW(VLLM), .vendors = BY(NVIDIA),
     .graphs = RP_KEY_YES,
     .text = "vllm serve --compilation-config '{\"cudagraph_mode\": \"FULL_AND_PIECEWISE\"}'; "
             "batches over max_cudagraph_capture_size run without graphs"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .frameworks = FW(VLLM), .graphs = RP_KEY_YES,
     .text = "vllm serve --max-num-seqs no larger than the captured batch sizes "
             "(--compilation-config): larger batches run without graphs"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_CALL, .frameworks = FW(VLLM),
     .text = "vllm serve --async-scheduling: the next step is prepared while the device works"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .frameworks = FW(SGLANG), .vendors = BY(NVIDIA),
     .serves = SERVES(NOTHING) | SERVES(DECODE) | SERVES(BOTH), .graphs = RP_KEY_NO,
     .text = "sglang.launch_server without --disable-cuda-graph, and --cuda-graph-max-bs of at "
             "least the decode batch",
     .what_if = "cuda-graphs"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .frameworks = FW(SGLANG),
     .serves = SERVES(NOTHING) | SERVES(DECODE) | SERVES(BOTH), .graphs = RP_KEY_NO,
     .text = "sglang.launch_server with graphs for decode (they are on unless disabled) that "
             "cover the batch size",
     .what_if = "cuda-graphs"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .frameworks = FW(SGLANG), .serves = SERVES(PREFILL),
     .graphs = RP_KEY_NO, .text = ""},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .frameworks = FW(SGLANG), .vendors = BY(NVIDIA),
     .graphs = RP_KEY_YES,
     .text = "sglang.launch_server --cuda-graph-max-bs of at least the decode batch: larger "
             "batches run without graphs"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .frameworks = FW(SGLANG), .graphs = RP_KEY_YES,
     .text = "graphs for the decode batch of this size: batches over the largest captured one "
             "run without graphs"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_CALL, .frameworks = FW(SGLANG),
     .text = "sglang.launch_server without --disable-overlap-schedule: the next batch is "
             "prepared while the device works"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_SIZE, .frameworks = FW(SGLANG), .serves = SERVES(PREFILL),
     .text = "sglang.launch_server --chunked-prefill-size: more tokens in a prefill step"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .frameworks = FW(TENSORRT_LLM), .graphs = RP_KEY_NO,
     .text = "cuda_graph_config: {enable_padding: true, max_batch_size: N} in the options of "
             "the LLM API",
     .what_if = "cuda-graphs"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .frameworks = FW(TENSORRT_LLM), .graphs = RP_KEY_YES,
     .text = "cuda_graph_config: {enable_padding: true}: batches between the captured sizes "
             "run without graphs"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_CALL, .frameworks = FW(TENSORRT_LLM),
     .text = "disable_overlap_scheduler: false: the next batch is prepared while the device "
             "works"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .frameworks = FW(JAX), .vendors = BY(NVIDIA),
     .graphs = RP_KEY_NO,
     .text = "XLA_FLAGS=--xla_gpu_enable_command_buffer=+FUSION,+CUBLAS,+CUSTOM_CALL: XLA "
             "launches CUDA graphs",
     .what_if = "cuda-graphs"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .frameworks = FW(JAX), .vendors = BY(AMD),
     .graphs = RP_KEY_NO,
     .text = "XLA_FLAGS=--xla_gpu_enable_command_buffer=+FUSION,+CUSTOM_CALL: XLA launches HIP "
             "graphs",
     .what_if = "cuda-graphs"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .frameworks = FW(JAX),
     .vendors = BY(UNKNOWN) | BY(NONE) | BY(INTEL) | BY(GOOGLE) | BY(META), .graphs = RP_KEY_NO,
     .text = ""},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .frameworks = FW(JAX), .graphs = RP_KEY_YES,
     .text = "XLA_FLAGS=--xla_gpu_graph_min_graph_size=1: shorter sequences become graphs, too"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_COMPILE, .frameworks = FW(JAX),
     .text = "one jax.jit around the whole step, and jax.lax.scan over several steps: the host "
             "dispatches once"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS,
     .frameworks = FW(TENSORFLOW) | FW(HOROVOD) | FW(BYTEPS) | FW(MINDSPORE), .graphs = RP_KEY_NO,
     .text = ""},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS,
     .frameworks = FW(TENSORFLOW) | FW(HOROVOD) | FW(BYTEPS) | FW(MINDSPORE), .graphs = RP_KEY_YES,
     .text = ""},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_COMPILE, .frameworks = FW(TENSORFLOW), .compiled = RP_KEY_NO,
     .text = "@tf.function(jit_compile=True) around the step, or "
             "TF_XLA_FLAGS=--tf_xla_auto_jit=2"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_CALL, .frameworks = FW(TENSORFLOW),
     .text = "model.compile(..., steps_per_execution=N): Keras runs N steps per call"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_COMPILE, .frameworks = FW(MINDSPORE),
     .text = "mindspore.set_context(mode=mindspore.GRAPH_MODE), or @mindspore.jit around the "
             "step"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_SIZE, .frameworks = FW(HOROVOD) | FW(BYTEPS),
     .text = "larger batches, and fewer and larger operators"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .frameworks = FW(NATIVE), .vendors = BY(NVIDIA),
     .graphs = RP_KEY_NO,
     .text = "cudaStreamBeginCapture, cudaGraphInstantiate and cudaGraphLaunch for the "
             "sequence that repeats",
     .what_if = "cuda-graphs"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .frameworks = FW(NATIVE), .vendors = BY(AMD),
     .graphs = RP_KEY_NO,
     .text = "hipStreamBeginCapture, hipGraphInstantiate and hipGraphLaunch for the sequence "
             "that repeats",
     .what_if = "cuda-graphs"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .frameworks = FW(NATIVE), .vendors = BY(INTEL),
     .graphs = RP_KEY_NO,
     .text = "a graph of the SYCL extension sycl_ext_oneapi_graph for the sequence that repeats",
     .what_if = "cuda-graphs"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_GRAPHS, .frameworks = FW(OPENCL), .graphs = RP_KEY_NO,
     .text = "clCommandNDRangeKernelKHR (cl_khr_command_buffer) for the sequence that repeats, "
             "or fewer and larger kernels",
     .what_if = "cuda-graphs"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_COMPILE, .frameworks = FW(PYTORCH),
     .vendors = BY(NVIDIA) | BY(AMD), .compiled = RP_KEY_NO, .graphs = RP_KEY_YES,
     .text = "torch.compile(model): fewer and larger kernels", .what_if = "fuse"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_OPTIMIZER, .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .parallels = PAR(NONE) | PAR(OTHER) | PAR(DDP) | PAR(FSDP), .plain_update = RP_KEY_YES,
     .text = "torch.optim.AdamW(..., fused=True) (also Adam, SGD): one kernel for many "
             "parameters",
     .what_if = "fused-optimizer"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_OPTIMIZER, .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .parallels = PAR(DEEPSPEED), .plain_update = RP_KEY_YES,
     .text = "the \"optimizer\" of the DeepSpeed configuration as \"Adam\", which is FusedAdam",
     .what_if = "fused-optimizer"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_SIZE, .frameworks = FW(PYTORCH),
     .text = "larger batches: a launch costs the same for more work"},
    {RP_FOUND_LAUNCH_BOUND, RP_ADVISE_SIZE, .frameworks = FW(VLLM), .graphs = RP_KEY_NO,
     .text = "more requests at once (--max-num-seqs), if there are any"},

    /* host work */
    {RP_FOUND_HOST_WORK, RP_ADVISE_LOOK,
     .text = "'reprise critpath' shows the code; move it off the thread that launches, or onto "
             "the device"},
    {RP_FOUND_HOST_WORK, RP_ADVISE_LOOK, .with_stack = RP_KEY_YES,
     .text = "'reprise critpath' and 'reprise top --by python' show the code; move it off the "
             "thread that launches, or onto the device"},
    {RP_FOUND_HOST_WORK, RP_ADVISE_LOOK, .frameworks = FW(PYTORCH), .with_stack = RP_KEY_NO,
     .text = "record it with torch.profiler.profile(with_stack=True); move it off the thread "
             "that launches, or onto the device"},
    {RP_FOUND_HOST_WORK, RP_ADVISE_LOOK,
     .frameworks = FW(PYTORCH) | FW(JAX) | FW(TENSORFLOW) | FW(NATIVE), .with_stack = RP_KEY_NO,
     .ours = RP_KEY_YES,
     .text = "'reprise critpath' shows the spans; 'py-spy record' their Python code; move it off "
             "the thread that launches, or onto the device"},
    {RP_FOUND_HOST_WORK, RP_ADVISE_CALL, .frameworks = FW(JAX),
     .text = "one jax.jit around the whole step; JAX_LOG_COMPILES=1 tells whether the host "
             "compiles"},
    {RP_FOUND_HOST_WORK, RP_ADVISE_CALL, .frameworks = FW(TENSORFLOW),
     .text = "@tf.function around the whole step"},
    {RP_FOUND_HOST_WORK, RP_ADVISE_CALL, .frameworks = FW(VLLM),
     .text = "vllm serve --async-scheduling, and --api-server-count N for work on requests"},
    {RP_FOUND_HOST_WORK, RP_ADVISE_CALL, .frameworks = FW(SGLANG),
     .text = "sglang.launch_server without --disable-overlap-schedule, and "
             "--tokenizer-worker-num N for work on requests"},
    {RP_FOUND_HOST_WORK, RP_ADVISE_CALL, .frameworks = FW(TENSORRT_LLM),
     .text = "disable_overlap_scheduler: false, and num_postprocess_workers: N for work on "
             "requests"},

    /* host input */
    {RP_FOUND_HOST_INPUT, RP_ADVISE_CALL,
     .text = "prepare the next input in another thread or process while the device works, or "
             "on the device"},
    {RP_FOUND_HOST_INPUT, RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .text = "DataLoader(dataset, num_workers=N, prefetch_factor=4), which prepares inputs in "
             "other processes while the device works"},
    {RP_FOUND_HOST_INPUT, RP_ADVISE_MORE, .frameworks = FW(PYTORCH),
     .text = "torchvision.transforms.v2 on tensors of the device (for Hugging Face: a fast "
             "image processor, use_fast=True)"},
    {RP_FOUND_HOST_INPUT, RP_ADVISE_CALL, .frameworks = FW(JAX),
     .text = "grain.DataLoader(worker_count=N), and jax.device_put of the next input while the "
             "device works"},
    {RP_FOUND_HOST_INPUT, RP_ADVISE_CALL, .frameworks = FW(TENSORFLOW),
     .text = "dataset.map(..., num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)"},
    {RP_FOUND_HOST_INPUT, RP_ADVISE_CALL, .frameworks = FW(VLLM),
     .text = "vllm serve --api-server-count N: more processes read and prepare requests"},
    {RP_FOUND_HOST_INPUT, RP_ADVISE_CALL, .frameworks = FW(SGLANG),
     .text = "sglang.launch_server --tokenizer-worker-num N: more processes prepare requests"},
    {RP_FOUND_HOST_INPUT, RP_ADVISE_CALL, .frameworks = FW(TENSORRT_LLM),
     .text = "num_postprocess_workers: N, and requests that are tokenized before they are sent"},

    /* host work of compiled code */
    {RP_FOUND_HOST_COMPILED, RP_ADVISE_LOOK,
     .text = "'reprise critpath' shows the code; larger batches: the wrapper costs the same"},
    {RP_FOUND_HOST_COMPILED, RP_ADVISE_LOOK, .frameworks = FW(PYTORCH),
     .text = "TORCH_LOGS=recompiles,graph_breaks tells whether it is compiled again, or in many "
             "pieces"},
    {RP_FOUND_HOST_COMPILED, RP_ADVISE_GRAPHS, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .graphs = RP_KEY_NO,
     .text = "torch.compile(model, mode=\"reduce-overhead\"): a CUDA graph replaces the calls of "
             "the wrapper",
     .what_if = "cuda-graphs"},
    {RP_FOUND_HOST_COMPILED, RP_ADVISE_GRAPHS, .frameworks = FW(PYTORCH), .vendors = BY(AMD),
     .graphs = RP_KEY_NO,
     .text = "torch.compile(model, mode=\"reduce-overhead\"): a HIP graph replaces the calls of "
             "the wrapper",
     .what_if = "cuda-graphs"},

    /* host work in an operator */
    {RP_FOUND_HOST_OPERATOR, RP_ADVISE_LOOK,
     .text = "if its tensors are on the host, make them on the device (device=...); if it is the "
             "first call, it loads code: warm up before recording"},

    /* host work of an executor */
    {RP_FOUND_HOST_EXECUTOR, RP_ADVISE_LOOK,
     .text = "the first call compiles, tunes and loads code: record after a few steps; then look "
             "for operators on the host"},
    {RP_FOUND_HOST_EXECUTOR, RP_ADVISE_LOOK, .frameworks = FW(JAX),
     .text = "the first call compiles, tunes and loads code: call the function before recording; "
             "JAX_COMPILATION_CACHE_DIR keeps the result"},
    {RP_FOUND_HOST_EXECUTOR, RP_ADVISE_LOOK, .frameworks = FW(TENSORFLOW),
     .text = "record after a few steps; tf.debugging.set_log_device_placement(True) shows "
             "operators on the CPU"},
    {RP_FOUND_HOST_EXECUTOR, RP_ADVISE_COMPILE, .frameworks = FW(TENSORFLOW), .compiled = RP_KEY_NO,
     .text = "@tf.function(jit_compile=True): fewer operators for the executor"},

    /* start up */
    {RP_FOUND_START_UP, RP_ADVISE_LOOK,
     .text = "nothing in a step: it happens once. Begin recording after a few steps"},
    {RP_FOUND_START_UP, RP_ADVISE_LOOK, .frameworks = FW(PYTORCH),
     .text = "nothing in a step: it happens once. torch.profiler.schedule(wait=1, warmup=3, "
             "active=3) leaves it out"},
    {RP_FOUND_START_UP, RP_ADVISE_LOOK, .frameworks = FW(JAX),
     .text = "nothing in a step: it happens once. Call jax.profiler.start_trace() after the "
             "first steps"},
    {RP_FOUND_START_UP, RP_ADVISE_LOOK, .frameworks = FW(TENSORFLOW),
     .text = "nothing in a step: it happens once. "
             "tf.keras.callbacks.TensorBoard(profile_batch=(10, 15)) leaves it out"},
    {RP_FOUND_START_UP, RP_ADVISE_LOOK, .modes = MODE(SERVING),
     .text = "nothing in a step: it happens once. Start the profile after a few requests"},
    {RP_FOUND_START_UP, RP_ADVISE_LOOK, .frameworks = FW(NATIVE) | FW(OPENCL),
     .text = "nothing in a step: it happens once. 'reprise record --steps 10:5' or "
             "--start-after leaves it out"},

    /* sync points */
    {RP_FOUND_SYNC_POINTS, RP_ADVISE_CALL,
     .text = "wait for events instead of the whole device, and read results one step later",
     .what_if = "no-sync"},
    {RP_FOUND_SYNC_POINTS, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .text = "call .item(), .cpu(), print(tensor) only every N steps; keep the loss a tensor "
             "until then, and branch on no tensor",
     .what_if = "no-sync"},
    {RP_FOUND_SYNC_POINTS, RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .modes = MODE(INFERENCE) | MODE(UNKNOWN) | MODE(SERVING),
     .text = "keep .item(), .cpu(), .nonzero(), boolean masks and branches on tensors out of "
             "the forward pass; read results once, at its end",
     .what_if = "no-sync"},
    {RP_FOUND_SYNC_POINTS, RP_ADVISE_MORE, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .text = "torch.cuda.set_sync_debug_mode(\"warn\") names each line that waits; .to(device, "
             "non_blocking=True) from pinned memory does not"},
    {RP_FOUND_SYNC_POINTS, RP_ADVISE_MORE, .frameworks = FW(PYTORCH),
     .vendors = BY(AMD) | BY(INTEL) | BY(UNKNOWN),
     .text = ".to(device, non_blocking=True) from pinned memory does not wait"},
    {RP_FOUND_SYNC_POINTS, RP_ADVISE_CALL, .frameworks = FW(VLLM),
     .text = "vllm serve --async-scheduling: the next step is prepared before the tokens of "
             "this one are read",
     .what_if = "no-sync"},
    {RP_FOUND_SYNC_POINTS, RP_ADVISE_CALL, .frameworks = FW(SGLANG),
     .text = "sglang.launch_server without --disable-overlap-schedule, or "
             "--num-continuous-decode-steps N",
     .what_if = "no-sync"},
    {RP_FOUND_SYNC_POINTS, RP_ADVISE_CALL, .frameworks = FW(TENSORRT_LLM),
     .text = "disable_overlap_scheduler: false: the next step is prepared before the tokens of "
             "this one are read",
     .what_if = "no-sync"},
    {RP_FOUND_SYNC_POINTS, RP_ADVISE_CALL, .frameworks = FW(JAX),
     .text = "call block_until_ready(), float(x), np.asarray(x) and print(x) only every N "
             "steps: read arrays one step later",
     .what_if = "no-sync"},
    {RP_FOUND_SYNC_POINTS, RP_ADVISE_MORE, .frameworks = FW(JAX),
     .text = "jax.transfer_guard(\"log\") names implicit transfers"},
    {RP_FOUND_SYNC_POINTS, RP_ADVISE_CALL, .frameworks = FW(TENSORFLOW),
     .text = "call .numpy(), float(x) and print(x) only every N steps; Keras: "
             "model.compile(..., steps_per_execution=N)",
     .what_if = "no-sync"},
    {RP_FOUND_SYNC_POINTS, RP_ADVISE_CALL, .frameworks = FW(MINDSPORE),
     .text = "call .asnumpy() and print(x) only every N steps", .what_if = "no-sync"},
    {RP_FOUND_SYNC_POINTS, RP_ADVISE_CALL, .frameworks = FW(NATIVE), .vendors = BY(NVIDIA),
     .text = "cudaMemcpyAsync and cudaEventRecord with cudaStreamWaitEvent instead of "
             "cudaDeviceSynchronize and cudaMemcpy",
     .what_if = "no-sync"},
    {RP_FOUND_SYNC_POINTS, RP_ADVISE_CALL, .frameworks = FW(NATIVE), .vendors = BY(AMD),
     .text = "hipMemcpyAsync and hipEventRecord with hipStreamWaitEvent instead of "
             "hipDeviceSynchronize and hipMemcpy",
     .what_if = "no-sync"},
    {RP_FOUND_SYNC_POINTS, RP_ADVISE_CALL, .frameworks = FW(NATIVE), .vendors = BY(INTEL),
     .text = "events (depends_on) instead of queue::wait()", .what_if = "no-sync"},
    {RP_FOUND_SYNC_POINTS, RP_ADVISE_CALL, .frameworks = FW(OPENCL),
     .text = "events and non-blocking transfers (blocking_read = CL_FALSE) instead of clFinish",
     .what_if = "no-sync"},

    /* data loader */
    {RP_FOUND_DATA_LOADER, RP_ADVISE_CALL,
     .text = "read and prepare the next batch on another thread", .what_if = "dataloader=0"},
    {RP_FOUND_DATA_LOADER, RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .text = "DataLoader(num_workers=N, pin_memory=True, prefetch_factor=4, "
             "persistent_workers=True)",
     .what_if = "dataloader=0"},
    {RP_FOUND_DATA_LOADER, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .parallels = PAR(MEGATRON),
     .text = "--num-workers N, and data on local storage", .what_if = "dataloader=0"},
    {RP_FOUND_DATA_LOADER, RP_ADVISE_MORE, .frameworks = FW(PYTORCH),
     .parallels = PAR(MEGATRON) | PAR(DEEPSPEED), .text = ""},
    {RP_FOUND_DATA_LOADER, RP_ADVISE_MORE, .frameworks = FW(PYTORCH),
     .text = "torchvision.transforms.v2 on tensors of the device; larger files, faster storage"},
    {RP_FOUND_DATA_LOADER, RP_ADVISE_CALL, .frameworks = FW(JAX),
     .text = "grain.DataLoader(worker_count=N), and jax.device_put of the next batch while the "
             "device works",
     .what_if = "dataloader=0"},
    {RP_FOUND_DATA_LOADER, RP_ADVISE_CALL, .frameworks = FW(TENSORFLOW),
     .text = "dataset.map(..., "
             "num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE); .cache() where "
             "it fits",
     .what_if = "dataloader=0"},
    {RP_FOUND_DATA_LOADER, RP_ADVISE_CALL, .frameworks = FW(MINDSPORE),
     .text = "dataset.map(..., num_parallel_workers=N), "
             "mindspore.dataset.config.set_prefetch_size(N)",
     .what_if = "dataloader=0"},
    {RP_FOUND_DATA_LOADER, RP_ADVISE_CALL, .frameworks = FW(VLLM),
     .text = "vllm serve --api-server-count N: more processes read and tokenize requests"},
    {RP_FOUND_DATA_LOADER, RP_ADVISE_CALL, .frameworks = FW(SGLANG),
     .text = "sglang.launch_server --tokenizer-worker-num N: more processes tokenize requests"},

    /* data loader host */
    {RP_FOUND_DATA_LOADER_HOST, RP_ADVISE_CALL,
     .text = "read and prepare the next batch on another thread", .what_if = "dataloader=0"},
    {RP_FOUND_DATA_LOADER_HOST, RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .text = "DataLoader(num_workers=N, prefetch_factor=4, persistent_workers=True)",
     .what_if = "dataloader=0"},
    {RP_FOUND_DATA_LOADER_HOST, RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .parallels = PAR(MEGATRON), .text = "--num-workers N, and data on local storage",
     .what_if = "dataloader=0"},
    {RP_FOUND_DATA_LOADER_HOST, RP_ADVISE_MORE, .frameworks = FW(PYTORCH),
     .parallels = PAR(MEGATRON) | PAR(DEEPSPEED), .text = ""},
    {RP_FOUND_DATA_LOADER_HOST, RP_ADVISE_MORE, .frameworks = FW(PYTORCH),
     .text = "cheaper transforms, larger files, faster storage: 'reprise top --by python' "
             "shows where the loader spends its time"},
    {RP_FOUND_DATA_LOADER_HOST, RP_ADVISE_CALL, .frameworks = FW(JAX),
     .text = "grain.DataLoader(worker_count=N), and jax.device_put of the next batch while the "
             "device works",
     .what_if = "dataloader=0"},
    {RP_FOUND_DATA_LOADER_HOST, RP_ADVISE_CALL, .frameworks = FW(TENSORFLOW),
     .text = "dataset.map(..., "
             "num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE); .cache() where "
             "it fits",
     .what_if = "dataloader=0"},
    {RP_FOUND_DATA_LOADER_HOST, RP_ADVISE_CALL, .frameworks = FW(MINDSPORE),
     .text = "dataset.map(..., num_parallel_workers=N), "
             "mindspore.dataset.config.set_prefetch_size(N)",
     .what_if = "dataloader=0"},
    {RP_FOUND_DATA_LOADER_HOST, RP_ADVISE_CALL, .frameworks = FW(VLLM),
     .text = "vllm serve --api-server-count N: more processes read and tokenize requests"},
    {RP_FOUND_DATA_LOADER_HOST, RP_ADVISE_CALL, .frameworks = FW(SGLANG),
     .text = "sglang.launch_server --tokenizer-worker-num N: more processes tokenize requests"},

    /* host stall */
    {RP_FOUND_HOST_STALL, RP_ADVISE_LOOK,
     .text = "'reprise stalls' lists the calls: look for too few cores (taskset, numactl "
             "--cpunodebind), page faults, locks, monitoring"},
    {RP_FOUND_HOST_STALL, RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .modes = MODE(TRAINING) | MODE(INFERENCE) | MODE(UNKNOWN),
     .text = "gc.freeze() after the first step and gc.disable(), then gc.collect() every N "
             "steps: Python's collector stops all threads"},
    {RP_FOUND_HOST_STALL, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .parallels = PAR(MEGATRON),
     .text = "--manual-gc --manual-gc-interval N: all ranks collect garbage at the same step"},
    {RP_FOUND_HOST_STALL, RP_ADVISE_MORE, .frameworks = FW(PYTORCH),
     .parallels = PAR(OTHER) | PAR(DDP) | PAR(FSDP) | PAR(DEEPSPEED) | PAR(MEGATRON),
     .text = "OMP_NUM_THREADS = cores / ranks of the machine: the threads of all ranks share "
             "its cores"},

    /* host silent */
    {RP_FOUND_HOST_SILENT, RP_ADVISE_LOOK,
     .text = "record more of the host; typical causes are input data, work between steps, and "
             "waiting"},
    {RP_FOUND_HOST_SILENT, RP_ADVISE_LOOK, .frameworks = FW(PYTORCH), .with_stack = RP_KEY_NO,
     .text = "torch.profiler.profile(with_stack=True) shows the Python code; typical causes "
             "are input data, work between steps, and waiting"},
    {RP_FOUND_HOST_SILENT, RP_ADVISE_LOOK, .frameworks = FW(PYTORCH), .with_stack = RP_KEY_YES,
     .text = "no Python code runs either: 'reprise record -- python ...' shows blocking calls "
             "of all threads"},
    {RP_FOUND_HOST_SILENT, RP_ADVISE_LOOK, .frameworks = FW(JAX),
     .text = "jax.profiler.ProfileOptions() with python_tracer_level = 1 and host_tracer_level "
             "= 2 shows the Python code"},
    {RP_FOUND_HOST_SILENT, RP_ADVISE_LOOK, .frameworks = FW(TENSORFLOW),
     .text = "tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, "
             "python_tracer_level=1) shows the Python code"},
    {RP_FOUND_HOST_SILENT, RP_ADVISE_LOOK, .frameworks = FW(VLLM), .with_stack = RP_KEY_NO,
     .text = "--profiler-config.torch_profiler_with_stack=true shows the Python code; without "
             "requests the server only waits"},
    {RP_FOUND_HOST_SILENT, RP_ADVISE_LOOK, .frameworks = FW(SGLANG), .with_stack = RP_KEY_NO,
     .text = "/start_profile with with_stack = true shows the Python code; without requests "
             "the server only waits"},
    {RP_FOUND_HOST_SILENT, RP_ADVISE_LOOK, .frameworks = FW(VLLM) | FW(SGLANG) | FW(TENSORRT_LLM),
     .with_stack = RP_KEY_YES,
     .text = "without requests a server only waits: record it under load"},
    {RP_FOUND_HOST_SILENT, RP_ADVISE_LOOK, .frameworks = FW(NATIVE) | FW(OPENCL),
     .text = "'reprise record' with all sources shows blocking calls of all threads; name your "
             "own code with <reprise/record.h>"},
    {RP_FOUND_HOST_SILENT, RP_ADVISE_LOOK,
     .frameworks = FW(PYTORCH) | FW(JAX) | FW(TENSORFLOW) | FW(NATIVE), .with_stack = RP_KEY_NO,
     .ours = RP_KEY_YES,
     .text =
         "'reprise record --with +blocking' shows sleeps, reads and locks of all threads; ranges "
         "of your own show the rest"},

    /* fragmentation */
    {RP_FOUND_FRAGMENTATION, RP_ADVISE_CALL,
     .text = "allocate once and reuse; fewer different shapes"},
    {RP_FOUND_FRAGMENTATION, RP_ADVISE_LOOK, .frameworks = FW(PYTORCH),
     .text = "torch.profiler.schedule(wait=1, warmup=3, active=3): the first steps always "
             "allocate"},
    {RP_FOUND_FRAGMENTATION, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .text = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, and inputs padded to a few "
             "shapes"},
    {RP_FOUND_FRAGMENTATION, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .vendors = BY(AMD),
     .text = "inputs padded to a few shapes, and "
             "PYTORCH_HIP_ALLOC_CONF=garbage_collection_threshold:0.8 near the limit of memory"},
    {RP_FOUND_FRAGMENTATION, RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .vendors = BY(UNKNOWN) | BY(NONE) | BY(INTEL) | BY(GOOGLE) | BY(META),
     .text = "inputs padded to a few shapes"},
    {RP_FOUND_FRAGMENTATION, RP_ADVISE_CALL, .frameworks = FW(JAX),
     .text = "XLA_PYTHON_CLIENT_PREALLOCATE=true, and not XLA_PYTHON_CLIENT_ALLOCATOR=platform"},
    {RP_FOUND_FRAGMENTATION, RP_ADVISE_CALL, .frameworks = FW(TENSORFLOW), .vendors = BY(NVIDIA),
     .text = "TF_GPU_ALLOCATOR=cuda_malloc_async"},
    {RP_FOUND_FRAGMENTATION, RP_ADVISE_CALL, .frameworks = FW(VLLM),
     .text = "vllm serve with a lower --gpu-memory-utilization: memory outside of the KV cache "
             "is short"},
    {RP_FOUND_FRAGMENTATION, RP_ADVISE_CALL, .frameworks = FW(SGLANG),
     .text = "sglang.launch_server with a lower --mem-fraction-static: memory outside of the "
             "KV cache is short"},
    {RP_FOUND_FRAGMENTATION, RP_ADVISE_CALL, .frameworks = FW(TENSORRT_LLM),
     .text = "kv_cache_config: {free_gpu_memory_fraction: 0.8}: memory outside of the KV cache "
             "is short"},
    {RP_FOUND_FRAGMENTATION, RP_ADVISE_CALL, .frameworks = FW(NATIVE), .vendors = BY(NVIDIA),
     .text = "cudaMallocAsync and cudaFreeAsync, with cudaMemPoolAttrReleaseThreshold of the "
             "pool"},
    {RP_FOUND_FRAGMENTATION, RP_ADVISE_CALL, .frameworks = FW(NATIVE), .vendors = BY(AMD),
     .text = "hipMallocAsync and hipFreeAsync, with hipMemPoolAttrReleaseThreshold of the pool"},

    /* uncached */
    {RP_FOUND_UNCACHED, RP_ADVISE_CALL, .text = "allocate once and reuse"},
    {RP_FOUND_UNCACHED, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .text = "unset PYTORCH_NO_CUDA_MEMORY_CACHING: PyTorch's caching allocator is off"},
    {RP_FOUND_UNCACHED, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .vendors = BY(AMD),
     .text = "unset PYTORCH_NO_HIP_MEMORY_CACHING: PyTorch's caching allocator is off"},
    {RP_FOUND_UNCACHED, RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .vendors = BY(UNKNOWN) | BY(NONE) | BY(INTEL) | BY(GOOGLE) | BY(META),
     .text = "turn PyTorch's caching allocator on again"},
    {RP_FOUND_UNCACHED, RP_ADVISE_CALL, .frameworks = FW(JAX),
     .text = "XLA_PYTHON_CLIENT_ALLOCATOR=bfc instead of platform"},
    {RP_FOUND_UNCACHED, RP_ADVISE_CALL, .frameworks = FW(NATIVE), .vendors = BY(NVIDIA),
     .text = "cudaMallocAsync and cudaFreeAsync, with cudaMemPoolAttrReleaseThreshold of the "
             "pool"},
    {RP_FOUND_UNCACHED, RP_ADVISE_CALL, .frameworks = FW(NATIVE), .vendors = BY(AMD),
     .text = "hipMallocAsync and hipFreeAsync, with hipMemPoolAttrReleaseThreshold of the pool"},

    /* reserved */
    {RP_FOUND_RESERVED, RP_ADVISE_CALL,
     .text = "fewer different shapes, and buffers that are reused"},
    {RP_FOUND_RESERVED, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .text = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or "
             "garbage_collection_threshold:0.8; inputs padded to a few shapes"},
    {RP_FOUND_RESERVED, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .vendors = BY(AMD),
     .text = "PYTORCH_HIP_ALLOC_CONF=garbage_collection_threshold:0.8; inputs padded to a few "
             "shapes"},
    {RP_FOUND_RESERVED, RP_ADVISE_CALL, .frameworks = FW(JAX),
     .text = "XLA_PYTHON_CLIENT_MEM_FRACTION: how much of the memory JAX takes at its start"},

    /* profiler */
    {RP_FOUND_PROFILER, RP_ADVISE_CALL,
     .text = "record fewer kinds of events, and measure step times without the profiler"},
    {RP_FOUND_PROFILER, RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .text = "torch.profiler.profile(with_stack=False, record_shapes=False, "
             "profile_memory=False); measure step times without it"},
    {RP_FOUND_PROFILER, RP_ADVISE_CALL, .frameworks = FW(JAX),
     .text = "jax.profiler.ProfileOptions() with python_tracer_level = 0 and host_tracer_level "
             "= 1; measure step times without it"},
    {RP_FOUND_PROFILER, RP_ADVISE_CALL, .frameworks = FW(TENSORFLOW),
     .text = "tf.profiler.experimental.ProfilerOptions(host_tracer_level=1, "
             "python_tracer_level=0); measure step times without it"},
    {RP_FOUND_PROFILER, RP_ADVISE_CALL, .frameworks = FW(VLLM),
     .text = "--profiler-config.torch_profiler_with_stack=false; measure latencies without the "
             "profiler"},
    {RP_FOUND_PROFILER, RP_ADVISE_CALL, .frameworks = FW(SGLANG),
     .text = "/start_profile with with_stack = false; measure latencies without the profiler"},
    {RP_FOUND_PROFILER, RP_ADVISE_CALL, .frameworks = FW(NATIVE) | FW(OPENCL),
     .text = "'reprise record --with' fewer sources"},
    {RP_FOUND_PROFILER, RP_ADVISE_CALL,
     .frameworks = FW(PYTORCH) | FW(JAX) | FW(TENSORFLOW) | FW(NATIVE), .with_stack = RP_KEY_NO,
     .ours = RP_KEY_YES,
     .text =
         "'reprise record --light', or '--detail 2:200': steps are about as long as without it"},

    /* profiler host */
    {RP_FOUND_PROFILER_HOST, RP_ADVISE_CALL,
     .text = "record fewer kinds of events, and measure step times without the profiler"},
    {RP_FOUND_PROFILER_HOST, RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .text = "torch.profiler.profile(with_stack=False, record_shapes=False, "
             "profile_memory=False); measure step times without it"},
    {RP_FOUND_PROFILER_HOST, RP_ADVISE_CALL, .frameworks = FW(JAX),
     .text = "jax.profiler.ProfileOptions() with python_tracer_level = 0 and host_tracer_level "
             "= 1; measure step times without it"},
    {RP_FOUND_PROFILER_HOST, RP_ADVISE_CALL, .frameworks = FW(TENSORFLOW),
     .text = "tf.profiler.experimental.ProfilerOptions(host_tracer_level=1, "
             "python_tracer_level=0); measure step times without it"},
    {RP_FOUND_PROFILER_HOST, RP_ADVISE_CALL, .frameworks = FW(VLLM),
     .text = "--profiler-config.torch_profiler_with_stack=false; measure latencies without the "
             "profiler"},
    {RP_FOUND_PROFILER_HOST, RP_ADVISE_CALL, .frameworks = FW(SGLANG),
     .text = "/start_profile with with_stack = false; measure latencies without the profiler"},
    {RP_FOUND_PROFILER_HOST, RP_ADVISE_CALL, .frameworks = FW(NATIVE) | FW(OPENCL),
     .text = "'reprise record --with' fewer sources"},
    {RP_FOUND_PROFILER_HOST, RP_ADVISE_CALL,
     .frameworks = FW(PYTORCH) | FW(JAX) | FW(TENSORFLOW) | FW(NATIVE), .with_stack = RP_KEY_NO,
     .ours = RP_KEY_YES,
     .text =
         "'reprise record --light', or '--detail 2:200': steps are about as long as without it"},

    /* copies */
    {RP_FOUND_COPIES, RP_ADVISE_CALL,
     .text = "copy on another stream while kernels run, and combine small copies"},
    {RP_FOUND_COPIES, RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .text = ".to(device, non_blocking=True) for the next batch while this one runs; inputs "
             "from DataLoader(pin_memory=True)"},
    {RP_FOUND_COPIES, RP_ADVISE_CALL, .frameworks = FW(JAX),
     .text = "jax.device_put of the next input while the device works"},
    {RP_FOUND_COPIES, RP_ADVISE_CALL, .frameworks = FW(TENSORFLOW),
     .text = "dataset.apply(tf.data.experimental.prefetch_to_device(\"/GPU:0\"))"},
    {RP_FOUND_COPIES, RP_ADVISE_CALL, .frameworks = FW(VLLM) | FW(SGLANG) | FW(TENSORRT_LLM),
     .text = "'reprise top --by op' shows which operators copy; more tokens per step amortize "
             "them"},
    {RP_FOUND_COPIES, RP_ADVISE_CALL, .frameworks = FW(NATIVE), .vendors = BY(NVIDIA),
     .text = "cudaMemcpyAsync on a second stream while kernels run"},
    {RP_FOUND_COPIES, RP_ADVISE_CALL, .frameworks = FW(NATIVE), .vendors = BY(AMD),
     .text = "hipMemcpyAsync on a second stream while kernels run"},
    {RP_FOUND_COPIES, RP_ADVISE_CALL, .frameworks = FW(OPENCL),
     .text = "a second command queue for transfers"},
    {RP_FOUND_COPIES, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .modes = MODE(TRAINING), .transports = VIA(GLOO),
     .text = "torch.distributed.init_process_group(\"nccl\"): gloo copies every gradient to "
             "the host and back"},
    {RP_FOUND_COPIES, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .vendors = BY(AMD),
     .modes = MODE(TRAINING), .transports = VIA(GLOO),
     .text = "torch.distributed.init_process_group(\"nccl\"), which is RCCL: gloo copies every "
             "gradient to the host and back"},

    /* copies pinned */
    {RP_FOUND_COPIES_PINNED, RP_ADVISE_CALL,
     .text = "copy on another stream while kernels run, and combine small copies"},
    {RP_FOUND_COPIES_PINNED, RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .text = ".to(device, non_blocking=True) of the next batch on a second torch.Stream while "
             "this one runs"},
    {RP_FOUND_COPIES_PINNED, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .modes = MODE(TRAINING), .transports = VIA(GLOO),
     .text = "torch.distributed.init_process_group(\"nccl\"): gloo copies every gradient to "
             "the host and back"},
    {RP_FOUND_COPIES_PINNED, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .vendors = BY(AMD),
     .modes = MODE(TRAINING), .transports = VIA(GLOO),
     .text = "torch.distributed.init_process_group(\"nccl\"), which is RCCL: gloo copies every "
             "gradient to the host and back"},
    {RP_FOUND_COPIES_PINNED, RP_ADVISE_CALL, .frameworks = FW(JAX),
     .text = "jax.device_put of the next input while the device works"},
    {RP_FOUND_COPIES_PINNED, RP_ADVISE_CALL, .frameworks = FW(TENSORFLOW),
     .text = "dataset.apply(tf.data.experimental.prefetch_to_device(\"/GPU:0\"))"},
    {RP_FOUND_COPIES_PINNED, RP_ADVISE_CALL, .frameworks = FW(VLLM) | FW(SGLANG) | FW(TENSORRT_LLM),
     .text = "'reprise top --by op' shows which operators copy; more tokens per step amortize "
             "them"},
    {RP_FOUND_COPIES_PINNED, RP_ADVISE_CALL, .frameworks = FW(NATIVE), .vendors = BY(NVIDIA),
     .text = "cudaMemcpyAsync on a second stream while kernels run"},
    {RP_FOUND_COPIES_PINNED, RP_ADVISE_CALL, .frameworks = FW(NATIVE), .vendors = BY(AMD),
     .text = "hipMemcpyAsync on a second stream while kernels run"},
    {RP_FOUND_COPIES_PINNED, RP_ADVISE_CALL, .frameworks = FW(OPENCL),
     .text = "a second command queue for transfers"},

    /* copies pageable */
    {RP_FOUND_COPIES_PAGEABLE, RP_ADVISE_CALL,
     .text = "pin the host memory that is copied, and copy while kernels run"},
    {RP_FOUND_COPIES_PAGEABLE, RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .text = "DataLoader(pin_memory=True) or tensor.pin_memory(), then .to(device, "
             "non_blocking=True) while kernels run"},
    {RP_FOUND_COPIES_PAGEABLE, RP_ADVISE_CALL, .frameworks = FW(JAX),
     .text = "jax.device_put of the next input while the device works"},
    {RP_FOUND_COPIES_PAGEABLE, RP_ADVISE_CALL, .frameworks = FW(TENSORFLOW),
     .text = "dataset.apply(tf.data.experimental.prefetch_to_device(\"/GPU:0\"))"},
    {RP_FOUND_COPIES_PAGEABLE, RP_ADVISE_CALL,
     .frameworks = FW(VLLM) | FW(SGLANG) | FW(TENSORRT_LLM),
     .text = "'reprise top --by op' shows which operators copy; more tokens per step amortize "
             "them"},
    {RP_FOUND_COPIES_PAGEABLE, RP_ADVISE_CALL, .frameworks = FW(NATIVE), .vendors = BY(NVIDIA),
     .text = "cudaHostAlloc or cudaHostRegister for the host memory, then cudaMemcpyAsync "
             "while kernels run"},
    {RP_FOUND_COPIES_PAGEABLE, RP_ADVISE_CALL, .frameworks = FW(NATIVE), .vendors = BY(AMD),
     .text = "hipHostMalloc or hipHostRegister for the host memory, then hipMemcpyAsync while "
             "kernels run"},
    {RP_FOUND_COPIES_PAGEABLE, RP_ADVISE_CALL, .frameworks = FW(NATIVE), .vendors = BY(INTEL),
     .text = "sycl::malloc_host for the host memory"},
    {RP_FOUND_COPIES_PAGEABLE, RP_ADVISE_CALL, .frameworks = FW(OPENCL),
     .text = "CL_MEM_ALLOC_HOST_PTR with clEnqueueMapBuffer for the host memory"},

    /* copies back */
    {RP_FOUND_COPIES_BACK, RP_ADVISE_CALL, .text = "copy less often, and while kernels run"},
    {RP_FOUND_COPIES_BACK, RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .text = ".to(\"cpu\", non_blocking=True) into a buffer that is reused, every N steps; sum "
             "up on the device"},
    {RP_FOUND_COPIES_BACK, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .modes = MODE(TRAINING), .transports = VIA(GLOO),
     .text = "torch.distributed.init_process_group(\"nccl\"): gloo copies every gradient to "
             "the host and back"},
    {RP_FOUND_COPIES_BACK, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .vendors = BY(AMD),
     .modes = MODE(TRAINING), .transports = VIA(GLOO),
     .text = "torch.distributed.init_process_group(\"nccl\"), which is RCCL: gloo copies every "
             "gradient to the host and back"},
    {RP_FOUND_COPIES_BACK, RP_ADVISE_CALL, .frameworks = FW(JAX),
     .text = "x.copy_to_host_async(), then read it one step later"},
    {RP_FOUND_COPIES_BACK, RP_ADVISE_CALL, .frameworks = FW(TENSORFLOW),
     .text = "fetch results every N steps; tf.keras metrics stay on the device"},
    {RP_FOUND_COPIES_BACK, RP_ADVISE_CALL, .frameworks = FW(VLLM) | FW(SGLANG) | FW(TENSORRT_LLM),
     .text = "'reprise top --by op' shows which operators copy; logprobs and logits of all "
             "tokens are large"},

    /* copies inside */
    {RP_FOUND_COPIES_INSIDE, RP_ADVISE_CALL,
     .text = "'reprise top --by op' shows which operators copy: work in place, or in the "
             "layout that the next operator needs"},
    {RP_FOUND_COPIES_INSIDE, RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .text = "'reprise top --by op' shows them: avoid .contiguous(), .clone(), torch.cat; "
             "write with out= or into slices"},
    {RP_FOUND_COPIES_INSIDE, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .compiled = RP_KEY_NO,
     .text = "'reprise top --by op' shows them: avoid .contiguous(), .clone(), torch.cat; "
             "torch.compile(model) removes many"},
    {RP_FOUND_COPIES_INSIDE, RP_ADVISE_CALL, .frameworks = FW(JAX),
     .text = "jax.jit(step, donate_argnums=...): outputs take the memory of inputs"},
    {RP_FOUND_COPIES_INSIDE, RP_ADVISE_CALL, .frameworks = FW(VLLM) | FW(SGLANG) | FW(TENSORRT_LLM),
     .text = "'reprise top --by op' shows which operators copy; more tokens per step amortize "
             "them"},

    /* copies fill */
    {RP_FOUND_COPIES_FILL, RP_ADVISE_CALL,
     .text = "allocate without filling where everything is written anyway"},
    {RP_FOUND_COPIES_FILL, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .text = "optimizer.zero_grad(set_to_none=True), and torch.empty instead of torch.zeros "
             "where everything is written"},
    {RP_FOUND_COPIES_FILL, RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .modes = MODE(INFERENCE) | MODE(UNKNOWN) | MODE(SERVING),
     .text = "torch.empty instead of torch.zeros where everything is written"},
    {RP_FOUND_COPIES_FILL, RP_ADVISE_CALL, .frameworks = FW(VLLM) | FW(SGLANG) | FW(TENSORRT_LLM),
     .text = "'reprise top --by op' shows which operators fill memory"},

    /* dependencies */
    {RP_FOUND_DEPENDENCIES, RP_ADVISE_LOOK,
     .text = "'reprise critpath' shows what it waits for: wait for events later, or run other "
             "work meanwhile"},
    {RP_FOUND_DEPENDENCIES, RP_ADVISE_LOOK, .frameworks = FW(PYTORCH),
     .text = "'reprise critpath' shows what it waits for: call wait_event() or wait_stream() "
             "later, or run other work meanwhile"},

    /* device wait */
    {RP_FOUND_DEVICE_WAIT, RP_ADVISE_LOOK,
     .text = "look for other processes on the device, and for work that was launched before "
             "the recording began"},
    {RP_FOUND_DEVICE_WAIT, RP_ADVISE_LOOK, .vendors = BY(NVIDIA),
     .text = "look for other processes (nvidia-smi pmon), and for work that was launched "
             "before the recording began"},
    {RP_FOUND_DEVICE_WAIT, RP_ADVISE_LOOK, .vendors = BY(AMD),
     .text = "look for other processes (amd-smi process), and for work that was launched "
             "before the recording began"},
    {RP_FOUND_DEVICE_WAIT, RP_ADVISE_LOOK, .frameworks = FW(SGLANG), .modes = MODE(SERVING),
     .text = "/start_profile with num_steps of 5 or more: the step before, launched before the "
             "profile began, may still run"},
    {RP_FOUND_DEVICE_WAIT, RP_ADVISE_LOOK, .frameworks = FW(VLLM) | FW(TENSORRT_LLM),
     .modes = MODE(SERVING),
     .text = "profile several steps: the step before, launched before the profile began, may "
             "still run"},
    {RP_FOUND_DEVICE_WAIT, RP_ADVISE_MORE, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .text =
         "experimental_config=torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True) "
         "of the profiler records waits"},

    /* unexplained */
    {RP_FOUND_UNEXPLAINED, RP_ADVISE_LOOK,
     .text = "record the runtime calls of the host too, not only the device"},
    {RP_FOUND_UNEXPLAINED, RP_ADVISE_LOOK, .frameworks = FW(PYTORCH),
     .text = "add torch.profiler.ProfilerActivity.CPU to the activities of "
             "torch.profiler.profile(): it records launches; see 'reprise info'"},

    /* host collectives */
    {RP_FOUND_HOST_COLLECTIVES, RP_ADVISE_CALL,
     .text = "collectives that run on the device, or that overlap with its work"},
    {RP_FOUND_HOST_COLLECTIVES, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .transports = VIA(GLOO) | VIA(MPI) | VIA(NONE) | VIA(NCCL) | VIA(ONECCL),
     .text = "torch.distributed.init_process_group(\"nccl\") instead of gloo: collectives run "
             "on the device"},
    {RP_FOUND_HOST_COLLECTIVES, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .vendors = BY(AMD),
     .transports = VIA(GLOO) | VIA(MPI) | VIA(NONE) | VIA(NCCL) | VIA(ONECCL),
     .text = "torch.distributed.init_process_group(\"nccl\"), which is RCCL, instead of gloo: "
             "collectives run on the device"},
    {RP_FOUND_HOST_COLLECTIVES, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .vendors = BY(INTEL),
     .transports = VIA(GLOO) | VIA(MPI) | VIA(NONE) | VIA(NCCL) | VIA(ONECCL),
     .text = "torch.distributed.init_process_group(\"xccl\") instead of gloo: collectives run "
             "on the device"},
    {RP_FOUND_HOST_COLLECTIVES, RP_ADVISE_MORE, .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .parallels = PAR(DDP),
     .text = "DistributedDataParallel(model, bucket_cap_mb={}): collectives of another size",
     .what_if = "bucket=5MB|10MB|25MB|50MB|100MB"},
    {RP_FOUND_HOST_COLLECTIVES, RP_ADVISE_CALL, .frameworks = FW(HOROVOD),
     .vendors = BY(NVIDIA) | BY(AMD),
     .text = "HOROVOD_GPU_OPERATIONS=NCCL when Horovod is built: collectives run on the device"},
    {RP_FOUND_HOST_COLLECTIVES, RP_ADVISE_MORE, .frameworks = FW(HOROVOD),
     .text = "HOROVOD_FUSION_THRESHOLD and HOROVOD_CYCLE_TIME: fewer and larger collectives"},
    {RP_FOUND_HOST_COLLECTIVES, RP_ADVISE_CALL, .frameworks = FW(BYTEPS),
     .text = "BYTEPS_PARTITION_BYTES and BYTEPS_SCHEDULING_CREDIT"},

    /* exposed comm */
    {RP_FOUND_EXPOSED_COMM, RP_ADVISE_CALL,
     .text = "overlap it with compute, send less, or use a faster network", .what_if = "overlap"},
    {RP_FOUND_EXPOSED_COMM, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .parallels = PAR(DDP),
     .text = "DistributedDataParallel(model, bucket_cap_mb={}, gradient_as_bucket_view=True, "
             "static_graph=True)",
     .what_if = "bucket=5MB|10MB|25MB|50MB|100MB"},
    {RP_FOUND_EXPOSED_COMM, RP_ADVISE_MORE, .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .parallels = PAR(DDP),
     .text = "model.register_comm_hook(None, default_hooks.bf16_compress_hook): half the bytes "
             "of fp32 gradients; model.no_sync() while accumulating",
     .what_if = "net.bandwidth=2x"},
    {RP_FOUND_EXPOSED_COMM, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .parallels = PAR(FSDP),
     .text = "fully_shard(...): set_modules_to_forward_prefetch() and "
             "set_modules_to_backward_prefetch(), reshard_after_forward=False where memory "
             "allows",
     .what_if = "overlap"},
    {RP_FOUND_EXPOSED_COMM, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .parallels = PAR(MEGATRON),
     .text = "--overlap-grad-reduce --overlap-param-gather (data parallel), --tp-comm-overlap "
             "--sequence-parallel (tensor parallel)",
     .what_if = "overlap"},
    {RP_FOUND_EXPOSED_COMM, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .parallels = PAR(DEEPSPEED),
     .text = "\"overlap_comm\": true, \"reduce_bucket_size\" and \"allgather_bucket_size\" in "
             "\"zero_optimization\"",
     .what_if = "overlap"},
    {RP_FOUND_EXPOSED_COMM, RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .parallels = PAR(NONE) | PAR(OTHER),
     .text = "collectives with async_op=True, and wait() only where the result is used",
     .what_if = "overlap"},
    {RP_FOUND_EXPOSED_COMM, RP_ADVISE_CALL, .frameworks = FW(VLLM),
     .text = "vllm serve without --disable-custom-all-reduce, or with a smaller "
             "--tensor-parallel-size"},
    {RP_FOUND_EXPOSED_COMM, RP_ADVISE_CALL, .frameworks = FW(SGLANG),
     .text = "sglang.launch_server without --disable-custom-all-reduce, or with a smaller "
             "--tp-size"},
    {RP_FOUND_EXPOSED_COMM, RP_ADVISE_CALL, .frameworks = FW(TENSORRT_LLM),
     .text = "allreduce_strategy: AUTO, or a smaller tensor_parallel_size"},
    {RP_FOUND_EXPOSED_COMM, RP_ADVISE_CALL, .frameworks = FW(JAX), .vendors = BY(NVIDIA) | BY(AMD),
     .text = "XLA_FLAGS=--xla_gpu_enable_latency_hiding_scheduler=true: collectives overlap "
             "with compute",
     .what_if = "overlap"},
    {RP_FOUND_EXPOSED_COMM, RP_ADVISE_MORE, .frameworks = FW(JAX), .vendors = BY(NVIDIA) | BY(AMD),
     .text = "XLA_FLAGS=--xla_gpu_all_reduce_combine_threshold_bytes=...: fewer and larger "
             "collectives"},
    {RP_FOUND_EXPOSED_COMM, RP_ADVISE_CALL, .frameworks = FW(TENSORFLOW),
     .text = "all-reduce: tf.distribute.experimental.CommunicationOptions(bytes_per_pack=...); "
             "parameter servers: variable_partitioner",
     .what_if = "overlap"},
    {RP_FOUND_EXPOSED_COMM, RP_ADVISE_CALL, .frameworks = FW(HOROVOD),
     .text = "HOROVOD_FUSION_THRESHOLD and HOROVOD_CYCLE_TIME (or HOROVOD_AUTOTUNE=1): other "
             "buckets",
     .what_if = "overlap"},
    {RP_FOUND_EXPOSED_COMM, RP_ADVISE_MORE, .frameworks = FW(HOROVOD), .modes = MODE(TRAINING),
     .text = "hvd.DistributedOptimizer(..., compression=hvd.Compression.fp16): half the bytes"},
    {RP_FOUND_EXPOSED_COMM, RP_ADVISE_CALL, .frameworks = FW(BYTEPS),
     .text = "BYTEPS_PARTITION_BYTES and BYTEPS_SCHEDULING_CREDIT: other partitions",
     .what_if = "overlap"},

    /* exposed partly */
    {RP_FOUND_EXPOSED_PARTLY, RP_ADVISE_LOOK,
     .text = "first give the files of all ranks: 'reprise report run/' separates waiting from "
             "transfer"},
    {RP_FOUND_EXPOSED_PARTLY, RP_ADVISE_CALL,
     .text = "overlap it with compute, send less, or use a faster network"},
    {RP_FOUND_EXPOSED_PARTLY, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .parallels = PAR(DDP),
     .text = "DistributedDataParallel(model, bucket_cap_mb={}, gradient_as_bucket_view=True, "
             "static_graph=True)"},
    {RP_FOUND_EXPOSED_PARTLY, RP_ADVISE_MORE, .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .parallels = PAR(DDP),
     .text = "model.register_comm_hook(None, default_hooks.bf16_compress_hook): half the bytes "
             "of fp32 gradients; model.no_sync() while accumulating"},
    {RP_FOUND_EXPOSED_PARTLY, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .parallels = PAR(FSDP),
     .text = "fully_shard(...): set_modules_to_forward_prefetch() and "
             "set_modules_to_backward_prefetch(), reshard_after_forward=False where memory "
             "allows"},
    {RP_FOUND_EXPOSED_PARTLY, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .parallels = PAR(MEGATRON),
     .text = "--overlap-grad-reduce --overlap-param-gather (data parallel), --tp-comm-overlap "
             "--sequence-parallel (tensor parallel)"},
    {RP_FOUND_EXPOSED_PARTLY, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .parallels = PAR(DEEPSPEED),
     .text = "\"overlap_comm\": true, \"reduce_bucket_size\" and \"allgather_bucket_size\" in "
             "\"zero_optimization\""},
    {RP_FOUND_EXPOSED_PARTLY, RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .parallels = PAR(NONE) | PAR(OTHER),
     .text = "collectives with async_op=True, and wait() only where the result is used"},
    {RP_FOUND_EXPOSED_PARTLY, RP_ADVISE_CALL, .frameworks = FW(VLLM),
     .text = "vllm serve without --disable-custom-all-reduce, or with a smaller "
             "--tensor-parallel-size"},
    {RP_FOUND_EXPOSED_PARTLY, RP_ADVISE_CALL, .frameworks = FW(SGLANG),
     .text = "sglang.launch_server without --disable-custom-all-reduce, or with a smaller "
             "--tp-size"},
    {RP_FOUND_EXPOSED_PARTLY, RP_ADVISE_CALL, .frameworks = FW(TENSORRT_LLM),
     .text = "allreduce_strategy: AUTO, or a smaller tensor_parallel_size"},
    {RP_FOUND_EXPOSED_PARTLY, RP_ADVISE_CALL, .frameworks = FW(JAX),
     .vendors = BY(NVIDIA) | BY(AMD),
     .text = "XLA_FLAGS=--xla_gpu_enable_latency_hiding_scheduler=true: collectives overlap "
             "with compute"},
    {RP_FOUND_EXPOSED_PARTLY, RP_ADVISE_MORE, .frameworks = FW(JAX),
     .vendors = BY(NVIDIA) | BY(AMD),
     .text = "XLA_FLAGS=--xla_gpu_all_reduce_combine_threshold_bytes=...: fewer and larger "
             "collectives"},
    {RP_FOUND_EXPOSED_PARTLY, RP_ADVISE_CALL, .frameworks = FW(TENSORFLOW),
     .text = "all-reduce: tf.distribute.experimental.CommunicationOptions(bytes_per_pack=...); "
             "parameter servers: variable_partitioner"},
    {RP_FOUND_EXPOSED_PARTLY, RP_ADVISE_CALL, .frameworks = FW(HOROVOD),
     .text = "HOROVOD_FUSION_THRESHOLD and HOROVOD_CYCLE_TIME (or HOROVOD_AUTOTUNE=1): other "
             "buckets"},
    {RP_FOUND_EXPOSED_PARTLY, RP_ADVISE_MORE, .frameworks = FW(HOROVOD), .modes = MODE(TRAINING),
     .text = "hvd.DistributedOptimizer(..., compression=hvd.Compression.fp16): half the bytes"},
    {RP_FOUND_EXPOSED_PARTLY, RP_ADVISE_CALL, .frameworks = FW(BYTEPS),
     .text = "BYTEPS_PARTITION_BYTES and BYTEPS_SCHEDULING_CREDIT: other partitions"},

    /* straggler */
    {RP_FOUND_STRAGGLER, RP_ADVISE_LOOK,
     .text = "'reprise comm' names the late ranks and 'reprise idle --rank N' what they do "
             "before",
     .what_if = "straggler=median"},

    /* straggler, compute */
    {RP_FOUND_STRAGGLER_COMPUTE, RP_ADVISE_LOOK,
     .text = "give the ranks equal work: the same number of samples and tokens, the same layers",
     .what_if = "straggler=median"},
    {RP_FOUND_STRAGGLER_COMPUTE, RP_ADVISE_MORE, .vendors = BY(NVIDIA),
     .text = "compare the clocks and the power of their devices: nvidia-smi -q -d "
             "PERFORMANCE,CLOCK"},
    {RP_FOUND_STRAGGLER_COMPUTE, RP_ADVISE_MORE, .vendors = BY(AMD),
     .text = "compare the clocks and the power of their devices: amd-smi metric --clock --power"},

    /* straggler, host */
    {RP_FOUND_STRAGGLER_HOST, RP_ADVISE_LOOK,
     .text = "'reprise idle --rank N' shows what the host of the late rank does; do it on all "
             "ranks alike, less often, or off the thread that launches",
     .what_if = "straggler=median"},
    {RP_FOUND_STRAGGLER_HOST, RP_ADVISE_MORE,
     .text = "look for other processes on that host, and for its clocks and its pinning to cores "
             "(taskset, numactl)"},

    /* straggler, input */
    {RP_FOUND_STRAGGLER_INPUT, RP_ADVISE_LOOK,
     .text = "prepare the next input in another thread or process while the device works",
     .what_if = "straggler=median"},
    {RP_FOUND_STRAGGLER_INPUT, RP_ADVISE_LOOK, .frameworks = FW(PYTORCH),
     .text = "DataLoader(dataset, num_workers=N, prefetch_factor=4): inputs are read while the "
             "device works",
     .what_if = "straggler=median"},
    {RP_FOUND_STRAGGLER_INPUT, RP_ADVISE_LOOK, .frameworks = FW(JAX),
     .text = "grain.DataLoader(worker_count=N): inputs are read while the device works",
     .what_if = "straggler=median"},
    {RP_FOUND_STRAGGLER_INPUT, RP_ADVISE_LOOK, .frameworks = FW(TENSORFLOW),
     .text = "dataset.prefetch(tf.data.AUTOTUNE): inputs are read while the device works",
     .what_if = "straggler=median"},
    {RP_FOUND_STRAGGLER_INPUT, RP_ADVISE_MORE,
     .text = "compare the storage, the size of the shards and the CPUs of the late rank with "
             "those of the others"},

    /* atypical step */
    {RP_FOUND_ATYPICAL_STEP, RP_ADVISE_LOOK,
     .text = "leave it out (warm-up, compilation, a checkpoint) and look at a typical step: "
             "--step N"},
    {RP_FOUND_ATYPICAL_STEP, RP_ADVISE_LOOK, .frameworks = FW(PYTORCH),
     .text = "leave it out: torch.profiler.schedule(wait=1, warmup=3, active=3), or --step N "
             "of this report"},
    {RP_FOUND_ATYPICAL_STEP, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .compiled = RP_KEY_YES,
     .text = "TORCH_LOGS=recompiles tells whether torch.compile compiled again, and why"},
    {RP_FOUND_ATYPICAL_STEP, RP_ADVISE_LOOK, .frameworks = FW(JAX),
     .text = "leave it out: --step N. JAX_LOG_COMPILES=1 tells whether it compiled; "
             "JAX_COMPILATION_CACHE_DIR keeps the result"},
    {RP_FOUND_ATYPICAL_STEP, RP_ADVISE_LOOK, .frameworks = FW(TENSORFLOW),
     .text = "leave it out: --step N. A tf.function is traced again for new shapes: "
             "input_signature=, reduce_retracing=True"},
    {RP_FOUND_ATYPICAL_STEP, RP_ADVISE_LOOK, .modes = MODE(SERVING),
     .text = "steps of a server differ with their requests: compare steps of one phase, --step "
             "NAME"},

    /* tiny kernels */
    {RP_FOUND_TINY_KERNELS, RP_ADVISE_COMPILE, .text = "fuse them, or give them more work"},
    {RP_FOUND_TINY_KERNELS, RP_ADVISE_COMPILE, .frameworks = FW(PYTORCH), .compiled = RP_KEY_NO,
     .text = "torch.compile(model) fuses them", .what_if = "fuse"},
    {RP_FOUND_TINY_KERNELS, RP_ADVISE_COMPILE, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .compiled = RP_KEY_YES,
     .text = "torch.compile(mode=\"max-autotune-no-cudagraphs\"); TORCH_LOGS=graph_breaks "
             "shows what is not compiled"},
    {RP_FOUND_TINY_KERNELS, RP_ADVISE_COMPILE, .frameworks = FW(PYTORCH), .compiled = RP_KEY_YES,
     .text = "TORCH_LOGS=graph_breaks shows what is not compiled"},
    {RP_FOUND_TINY_KERNELS, RP_ADVISE_GRAPHS, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .graphs = RP_KEY_NO,
     .text = "torch.compile(model, mode=\"reduce-overhead\"): CUDA graphs, with shorter gaps "
             "between kernels",
     .what_if = "cuda-graphs"},
    {RP_FOUND_TINY_KERNELS, RP_ADVISE_GRAPHS, .frameworks = FW(PYTORCH), .vendors = BY(AMD),
     .graphs = RP_KEY_NO,
     .text = "torch.compile(model, mode=\"reduce-overhead\"): HIP graphs, with shorter gaps "
             "between kernels",
     .what_if = "cuda-graphs"},
    {RP_FOUND_TINY_KERNELS, RP_ADVISE_OPTIMIZER, .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .parallels = PAR(NONE) | PAR(OTHER) | PAR(DDP) | PAR(FSDP), .plain_update = RP_KEY_YES,
     .text = "torch.optim.AdamW(..., fused=True) (also Adam, SGD): one kernel for many "
             "parameters",
     .what_if = "fused-optimizer"},
    {RP_FOUND_TINY_KERNELS, RP_ADVISE_COMPILE, .frameworks = FW(VLLM), .compiled = RP_KEY_NO,
     .graphs = RP_KEY_NO,
     .text = "vllm serve without --enforce-eager, so that the model is compiled"},
    {RP_FOUND_TINY_KERNELS, RP_ADVISE_COMPILE, .frameworks = FW(VLLM),
     .text = "more requests at once: --max-num-seqs"},
    {RP_FOUND_TINY_KERNELS, RP_ADVISE_COMPILE, .frameworks = FW(SGLANG), .compiled = RP_KEY_NO,
     .text = "sglang.launch_server --enable-torch-compile"},
    {RP_FOUND_TINY_KERNELS, RP_ADVISE_COMPILE, .frameworks = FW(SGLANG),
     .text = "more requests at once: --max-running-requests"},
    {RP_FOUND_TINY_KERNELS, RP_ADVISE_COMPILE, .frameworks = FW(TENSORRT_LLM),
     .text = "more requests at once: max_batch_size, max_num_tokens"},
    {RP_FOUND_TINY_KERNELS, RP_ADVISE_COMPILE, .frameworks = FW(JAX),
     .text = "larger arrays: jax.vmap instead of loops, one jax.jit around all of it, larger "
             "batches"},
    {RP_FOUND_TINY_KERNELS, RP_ADVISE_COMPILE, .frameworks = FW(TENSORFLOW), .compiled = RP_KEY_NO,
     .text = "@tf.function(jit_compile=True) fuses them"},
    {RP_FOUND_TINY_KERNELS, RP_ADVISE_COMPILE, .frameworks = FW(TENSORFLOW), .compiled = RP_KEY_YES,
     .text = "larger batches"},

    /* kernels that could be one */
    {RP_FOUND_UNFUSED, RP_ADVISE_LOOK, .text = "'reprise fusions' lists the chains"},
    {RP_FOUND_UNFUSED, RP_ADVISE_COMPILE, .compiled = RP_KEY_NO,
     .text = "compile the operators around them into one kernel", .what_if = "fuse"},
    {RP_FOUND_UNFUSED, RP_ADVISE_COMPILE, .frameworks = FW(PYTORCH), .compiled = RP_KEY_NO,
     .text = "torch.compile(model) makes one kernel of each chain", .what_if = "fuse"},
    {RP_FOUND_UNFUSED, RP_ADVISE_COMPILE, .frameworks = FW(PYTORCH), .compiled = RP_KEY_YES,
     .text = "TORCH_LOGS=graph_breaks shows what is not compiled"},
    {RP_FOUND_UNFUSED, RP_ADVISE_COMPILE, .frameworks = FW(JAX), .text = "one jax.jit around them"},
    {RP_FOUND_UNFUSED, RP_ADVISE_COMPILE, .frameworks = FW(TENSORFLOW), .compiled = RP_KEY_NO,
     .text = "@tf.function(jit_compile=True) around them", .what_if = "fuse"},
    {RP_FOUND_UNFUSED_UPDATE, RP_ADVISE_OPTIMIZER, .text = "update many parameters in one kernel",
     .what_if = "fused-optimizer"},
    {RP_FOUND_UNFUSED_UPDATE, RP_ADVISE_OPTIMIZER, .frameworks = FW(PYTORCH),
     .modes = MODE(TRAINING), .plain_update = RP_KEY_YES,
     .text = "fused=True of the optimizer: one kernel for many parameters",
     .what_if = "fused-optimizer"},

    /* gaps between kernels that were launched in time */
    {RP_FOUND_LAUNCH_GAPS, RP_ADVISE_GRAPHS, .graphs = RP_KEY_NO,
     .text = "launch repeated sequences of kernels as one graph, with shorter gaps between kernels",
     .what_if = "cuda-graphs"},
    {RP_FOUND_LAUNCH_GAPS, RP_ADVISE_GRAPHS, .graphs = RP_KEY_YES,
     .text = "fewer and larger kernels: 'reprise fusions' lists chains"},
    {RP_FOUND_LAUNCH_GAPS, RP_ADVISE_GRAPHS, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .graphs = RP_KEY_NO,
     .text = "torch.compile(model, mode=\"reduce-overhead\"): CUDA graphs, with shorter gaps "
             "between kernels",
     .what_if = "cuda-graphs"},
    {RP_FOUND_LAUNCH_GAPS, RP_ADVISE_GRAPHS, .frameworks = FW(PYTORCH), .vendors = BY(AMD),
     .graphs = RP_KEY_NO,
     .text = "torch.compile(model, mode=\"reduce-overhead\"): HIP graphs, with shorter gaps "
             "between kernels",
     .what_if = "cuda-graphs"},
    {RP_FOUND_LAUNCH_GAPS, RP_ADVISE_COMPILE, .compiled = RP_KEY_NO, .text = "fuse short kernels",
     .what_if = "fuse"},
    {RP_FOUND_LAUNCH_GAPS, RP_ADVISE_COMPILE, .frameworks = FW(PYTORCH), .compiled = RP_KEY_NO,
     .text = "torch.compile(model): fewer and larger kernels", .what_if = "fuse"},

    /* low occupancy */
    {RP_FOUND_LOW_OCCUPANCY, RP_ADVISE_SIZE,
     .text = "larger batches, or several small kernels at once on different streams"},
    {RP_FOUND_LOW_OCCUPANCY, RP_ADVISE_SIZE, .frameworks = FW(PYTORCH),
     .text = "larger batches, or several of these in one call (torch.bmm, torch.vmap)"},
    {RP_FOUND_LOW_OCCUPANCY, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .compiled = RP_KEY_NO,
     .text = "torch.compile(model, mode=\"max-autotune-no-cudagraphs\"): other tiles, split-k"},
    {RP_FOUND_LOW_OCCUPANCY, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .vendors = BY(AMD),
     .text = "PYTORCH_TUNABLEOP_ENABLED=1: PyTorch tries other kernels of hipBLASLt and "
             "rocBLAS for matrix products"},
    {RP_FOUND_LOW_OCCUPANCY, RP_ADVISE_SIZE, .frameworks = FW(VLLM),
     .text = "more requests at once: --max-num-seqs (decode), --max-num-batched-tokens "
             "(prefill)"},
    {RP_FOUND_LOW_OCCUPANCY, RP_ADVISE_CALL, .frameworks = FW(VLLM), .vendors = BY(AMD),
     .text = "VLLM_ROCM_USE_AITER=1: AMD's own kernels"},
    {RP_FOUND_LOW_OCCUPANCY, RP_ADVISE_SIZE, .frameworks = FW(SGLANG),
     .text = "more requests at once: --max-running-requests (decode), --chunked-prefill-size "
             "(prefill)"},
    {RP_FOUND_LOW_OCCUPANCY, RP_ADVISE_SIZE, .frameworks = FW(TENSORRT_LLM),
     .text = "more requests at once: max_batch_size, max_num_tokens"},
    {RP_FOUND_LOW_OCCUPANCY, RP_ADVISE_SIZE, .frameworks = FW(JAX),
     .text = "larger batches, jax.vmap instead of loops"},
    {RP_FOUND_LOW_OCCUPANCY, RP_ADVISE_SIZE, .frameworks = FW(NATIVE),
     .text = "a larger grid (less work per block), or several kernels at once on different "
             "streams"},
    {RP_FOUND_LOW_OCCUPANCY, RP_ADVISE_SIZE, .frameworks = FW(OPENCL),
     .text = "a larger global work size (less work per work-item), or several command queues"},

    /* operators far below the peak */
    {RP_FOUND_SLOW_OPERATOR, RP_ADVISE_LOOK,
     .text = "'reprise roofline' lists operators with their rates, 'reprise top --focus NAME' who "
             "calls one"},
    {RP_FOUND_SLOW_OPERATOR, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .compiled = RP_KEY_NO,
     .text = "torch.compile(model): generated kernels for what aten has slow ones for"},
    {RP_FOUND_SLOW_CONVOLUTION, RP_ADVISE_LOOK,
     .text = "'reprise roofline' lists operators with their rates, 'reprise top --focus NAME' who "
             "calls one"},
    {RP_FOUND_SLOW_CONVOLUTION, RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .text = "model.to(memory_format=torch.channels_last), inputs too, and torch.autocast: the "
             "matrix units compute in this layout"},
    {RP_FOUND_SLOW_CONVOLUTION, RP_ADVISE_MORE, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .text = "torch.backends.cudnn.benchmark = True tries the algorithms of the library for each "
             "shape"},
    {RP_FOUND_SLOW_ALIGNMENT, RP_ADVISE_CALL,
     .text = "pad the size to a multiple of 8 (float32: 4) elements, so that rows begin at 16 "
             "bytes"},
    {RP_FOUND_SLOW_ALIGNMENT, RP_ADVISE_MORE, .frameworks = FW(PYTORCH),
     .text = "attention that is written out (bmm, softmax, bmm): "
             "torch.nn.functional.scaled_dot_product_attention pads inside its kernel"},
    {RP_FOUND_SLOW_SMALL, RP_ADVISE_SIZE,
     .text = "larger batches, or several products in one: more rows for the same weights"},
    {RP_FOUND_SLOW_SMALL, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .compiled = RP_KEY_NO,
     .text = "torch.compile(model, mode=\"max-autotune-no-cudagraphs\"): other tiles, split-k"},
    {RP_FOUND_SLOW_PRECISION, RP_ADVISE_CALL, .text = "bfloat16 or TF32 for matrix products",
     .what_if = "dtype=bf16"},
    {RP_FOUND_SLOW_PRECISION, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .text = "torch.set_float32_matmul_precision(\"high\") (TF32), or "
             "torch.autocast(\"cuda\", dtype=torch.bfloat16)",
     .what_if = "dtype=bf16"},
    {RP_FOUND_SLOW_PRECISION, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .vendors = BY(AMD),
     .text = "torch.autocast with dtype=torch.bfloat16", .what_if = "dtype=bf16"},
    {RP_FOUND_SLOW_PRECISION, RP_ADVISE_CALL, .frameworks = FW(JAX),
     .text = "jax.default_matmul_precision(\"tensorfloat32\"), or parameters and inputs in "
             "bfloat16",
     .what_if = "dtype=bf16"},
    {RP_FOUND_SLOW_PRECISION, RP_ADVISE_CALL, .frameworks = FW(TENSORFLOW),
     .text = "tf.keras.mixed_precision.set_global_policy(\"mixed_bfloat16\"), or "
             "tf.config.experimental.enable_tensor_float_32_execution(True)",
     .what_if = "dtype=bf16"},
    {RP_FOUND_SLOW_PRECISION, RP_ADVISE_CALL, .vendors = BY(NVIDIA), .no_bf16 = RP_KEY_YES,
     .text = "float16 for matrix products: the device has matrix units for no other format",
     .what_if = "dtype=fp16"},
    {RP_FOUND_SLOW_PRECISION, RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .no_bf16 = RP_KEY_YES,
     .text = "torch.autocast(\"cuda\", dtype=torch.float16), with torch.amp.GradScaler in "
             "training: the device has matrix units for no other format",
     .what_if = "dtype=fp16"},
    {RP_FOUND_SLOW_PRECISION, RP_ADVISE_CALL, .frameworks = FW(TENSORFLOW), .vendors = BY(NVIDIA),
     .no_bf16 = RP_KEY_YES, .text = "tf.keras.mixed_precision.set_global_policy(\"mixed_float16\")",
     .what_if = "dtype=fp16"},

    /* slow clock */
    {RP_FOUND_SLOW_CLOCK, RP_ADVISE_LOOK,
     .text = "look for heat, a power limit or another process; keep the clock fixed for "
             "measurements"},
    {RP_FOUND_SLOW_CLOCK, RP_ADVISE_LOOK, .vendors = BY(NVIDIA),
     .text = "heat, a power limit or another process: nvidia-smi -q -d PERFORMANCE,CLOCK; "
             "nvidia-smi --lock-gpu-clocks for measurements"},
    {RP_FOUND_SLOW_CLOCK, RP_ADVISE_LOOK, .vendors = BY(AMD),
     .text = "heat, a power limit or another process: amd-smi metric --clock --power; amd-smi "
             "set --perf-determinism MHZ for measurements"},
    {RP_FOUND_SLOW_CLOCK, RP_ADVISE_LOOK, .vendors = BY(INTEL),
     .text = "heat, a power limit or another process: xpu-smi stats -d 0"},

    /* wrong clock */
    {RP_FOUND_WRONG_CLOCK, RP_ADVISE_LOOK,
     .text = "do not rely on idle causes, delays and waits that compare these clocks; newer "
             "drivers and profilers, one clock source for all hosts (NTP, PTP)"},

    /* python */
    {RP_FOUND_PYTHON, RP_ADVISE_LOOK,
     .text = "'reprise top --by python' shows the code; fewer and larger operators"},
    {RP_FOUND_PYTHON, RP_ADVISE_COMPILE, .frameworks = FW(PYTORCH), .compiled = RP_KEY_NO,
     .text = "torch.compile(model): fewer calls from Python"},
    {RP_FOUND_PYTHON, RP_ADVISE_COMPILE, .frameworks = FW(JAX),
     .text = "one jax.jit around the whole step"},
    {RP_FOUND_PYTHON, RP_ADVISE_COMPILE, .frameworks = FW(TENSORFLOW),
     .text = "@tf.function around the whole step"},

    /* OpenCL */
    {RP_FOUND_DEVICE_WAIT, RP_ADVISE_CALL, .frameworks = FW(OPENCL),
     .text = "clFlush after enqueueing: a runtime may keep commands back until then or until a "
             "blocking call"},
    {RP_FOUND_DEPENDENCIES, RP_ADVISE_CALL, .frameworks = FW(OPENCL),
     .text = "CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE or several queues, and wait lists only where "
             "data is needed"},
    {RP_FOUND_TINY_KERNELS, RP_ADVISE_COMPILE, .frameworks = FW(OPENCL),
     .text = "fuse them, or give each a larger global work size; a local size of NULL lets the "
             "runtime choose"},
    {RP_FOUND_START_UP, RP_ADVISE_CALL, .frameworks = FW(OPENCL),
     .text = "CL_PROGRAM_BINARIES and clCreateProgramWithBinary keep what clBuildProgram compiled"},
    {RP_FOUND_ATYPICAL_STEP, RP_ADVISE_CALL, .frameworks = FW(OPENCL),
     .text = "a kernel may be compiled at its first use or for a new work size: warm up with the "
             "sizes of the run"},
    {RP_FOUND_FRAGMENTATION, RP_ADVISE_CALL, .frameworks = FW(OPENCL),
     .text = "clCreateBuffer once, and clCreateSubBuffer for its parts"},
    {RP_FOUND_UNCACHED, RP_ADVISE_CALL, .frameworks = FW(OPENCL),
     .text = "clCreateBuffer once, and clCreateSubBuffer for its parts"},
    {RP_FOUND_COPIES_BACK, RP_ADVISE_CALL, .frameworks = FW(OPENCL),
     .text = "clEnqueueReadBuffer with CL_FALSE on a second queue, while kernels run on the first"},

    /* waiting, without a device */
    {RP_FOUND_WAIT_IDLE, RP_ADVISE_LOOK,
     .text = "'reprise idle' names the call, 'reprise top --by wait' shows all of them"},
    {RP_FOUND_WAIT_IDLE, RP_ADVISE_CALL,
     .text = "launch more work before the call, or make it on another thread"},
    {RP_FOUND_WAIT_THREAD, RP_ADVISE_LOOK,
     .text = "'reprise stalls' lists the longest waits, 'reprise convert --to json' shows what the "
             "other threads run meanwhile"},
    {RP_FOUND_WAIT_THREAD, RP_ADVISE_CALL,
     .text = "give the work to more threads, or hold the lock for a shorter time; do other work "
             "before asking for the result"},
    {RP_FOUND_WAIT_INPUT, RP_ADVISE_CALL,
     .text = "ask for the input earlier (prefetch), or have more processes prepare it"},
    {RP_FOUND_WAIT_INPUT, RP_ADVISE_LOOK,
     .text = "'reprise top --by wait' shows the calls; record the other side too if it is a "
             "process of the job"},
    {RP_FOUND_WAIT_INPUT, RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .text = "DataLoader(num_workers=…, prefetch_factor=…, persistent_workers=True)"},
    {RP_FOUND_WAIT_OUTPUT, RP_ADVISE_CALL,
     .text = "write from another thread, write less often, or to faster storage; fsync only where "
             "data must survive a crash of the machine"},
    {RP_FOUND_WAIT_CHILD, RP_ADVISE_CALL,
     .text = "start the child earlier and wait for it later, or keep one process for all requests"},
    {RP_FOUND_WAIT_RANKS, RP_ADVISE_LOOK,
     .text = "'reprise comm' shows which rank is late; post receives before the messages are sent"},
    {RP_FOUND_WAIT_RANKS, RP_ADVISE_CALL,
     .text = "compute between MPI_Isend or MPI_Irecv and MPI_Wait; fewer and larger messages"},
    {RP_FOUND_WAIT_SLEEP, RP_ADVISE_CALL,
     .text = "wait for the event itself (a condition, poll) instead of sleeping and asking again"},

    /* communication, without a device */
    {RP_FOUND_EXPOSED_HOST, RP_ADVISE_CALL,
     .text = "start it earlier and do other work meanwhile, send less, or use a faster network"},
    {RP_FOUND_EXPOSED_HOST, RP_ADVISE_CALL, .transports = VIA(MPI),
     .text = "non-blocking calls (MPI_Iallreduce … MPI_Wait) with work in between; fewer and "
             "larger messages"},
    {RP_FOUND_EXPOSED_HOST, RP_ADVISE_CALL, .transports = VIA(GLOO),
     .text = "async_op=True and work before wait(); fewer and larger tensors"},
    {RP_FOUND_EXPOSED_HOST, RP_ADVISE_LOOK,
     .text = "'reprise comm' separates waiting for late ranks from transfer"},

    /* host code */
    {RP_FOUND_HOST_CODE, RP_ADVISE_LOOK, .text = "'reprise top --by annotation' shows those spans"},
    {RP_FOUND_HOST_CODE, RP_ADVISE_LOOK, .frameworks = FW(PYTORCH), .with_stack = RP_KEY_NO,
     .text = "'reprise top --by annotation' shows those spans; "
             "torch.profiler.profile(with_stack=True) shows their code"},
    {RP_FOUND_HOST_CODE, RP_ADVISE_LOOK,
     .frameworks = FW(PYTORCH) | FW(JAX) | FW(TENSORFLOW) | FW(NATIVE), .with_stack = RP_KEY_NO,
     .ours = RP_KEY_YES,
     .text = "'reprise top --by annotation' shows those spans; 'py-spy record' their Python code"},

    /* no operator */
    {RP_FOUND_NO_OPERATOR, RP_ADVISE_LOOK,
     .text = "look for waiting, other threads and code outside of the framework"},
    {RP_FOUND_NO_OPERATOR, RP_ADVISE_LOOK, .frameworks = FW(PYTORCH), .with_stack = RP_KEY_NO,
     .text = "torch.profiler.profile(with_stack=True) shows what runs instead; look for "
             "waiting and other threads"},
    {RP_FOUND_NO_OPERATOR, RP_ADVISE_LOOK,
     .frameworks = FW(PYTORCH) | FW(JAX) | FW(TENSORFLOW) | FW(NATIVE), .with_stack = RP_KEY_NO,
     .ours = RP_KEY_YES,
     .text =
         "'reprise record --with +blocking' shows sleeps, reads and locks of all threads; ranges "
         "of your own show the rest"},
    {RP_FOUND_NO_OPERATOR, RP_ADVISE_COMPILE, .frameworks = FW(TENSORFLOW), .compiled = RP_KEY_NO,
     .text = "TF_XLA_FLAGS=--tf_xla_auto_jit=2, or @tf.function(jit_compile=True): fewer and "
             "larger operators"},
    {RP_FOUND_NO_OPERATOR, RP_ADVISE_LOOK, .frameworks = FW(TENSORFLOW),
     .text = "look for waiting for parameters and other workers, and for input data"},
};

const struct rp_advice_row *rp_advice_rows(size_t *n)
{
    *n = sizeof rows / sizeof rows[0];
    return rows;
}
