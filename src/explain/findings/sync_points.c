/* SPDX-License-Identifier: Apache-2.0 */
/* The host waits for the device, which then runs out of work. */
#include "explain/findings/finding.h"

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_CALL,
     .text = "wait for events instead of the whole device, and read results one step later",
     .what_if = "no-sync"},
    {RP_ADVISE_CALL, .frameworks = FW(PYTORCH), .modes = MODE(TRAINING),
     .text = "call .item(), .cpu(), print(tensor) only every N steps; keep the loss a tensor "
             "until then, and branch on no tensor",
     .what_if = "no-sync"},
    {RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .modes = MODE(INFERENCE) | MODE(UNKNOWN) | MODE(SERVING),
     .text = "keep .item(), .cpu(), .nonzero(), boolean masks and branches on tensors out of "
             "the forward pass; read results once, at its end",
     .what_if = "no-sync"},
    {RP_ADVISE_MORE, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .text = "torch.cuda.set_sync_debug_mode(\"warn\") names each line that waits; .to(device, "
             "non_blocking=True) from pinned memory does not"},
    {RP_ADVISE_MORE, .frameworks = FW(PYTORCH), .vendors = BY(AMD) | BY(INTEL) | BY(UNKNOWN),
     .text = ".to(device, non_blocking=True) from pinned memory does not wait"},
    {RP_ADVISE_CALL, .frameworks = FW(VLLM),
     .text = "vllm serve --async-scheduling: the next step is prepared before the tokens of "
             "this one are read",
     .what_if = "no-sync"},
    {RP_ADVISE_CALL, .frameworks = FW(SGLANG),
     .text = "sglang.launch_server without --disable-overlap-schedule, or "
             "--num-continuous-decode-steps N",
     .what_if = "no-sync"},
    {RP_ADVISE_CALL, .frameworks = FW(VLLM), .ahead = RP_KEY_YES,
     .text = "'reprise critpath' shows what it waits for: the next step is prepared ahead already"},
    {RP_ADVISE_CALL, .frameworks = FW(SGLANG), .ahead = RP_KEY_YES,
     .text = "sglang.launch_server --num-continuous-decode-steps N: the next batch is prepared "
             "ahead already",
     .what_if = "no-sync"},
    {RP_ADVISE_CALL, .frameworks = FW(TENSORRT_LLM),
     .text = "disable_overlap_scheduler: false: the next step is prepared before the tokens of "
             "this one are read",
     .what_if = "no-sync"},
    {RP_ADVISE_CALL, .frameworks = FW(JAX),
     .text = "call block_until_ready(), float(x), np.asarray(x) and print(x) only every N "
             "steps: read arrays one step later",
     .what_if = "no-sync"},
    {RP_ADVISE_MORE, .frameworks = FW(JAX),
     .text = "jax.transfer_guard(\"log\") names implicit transfers"},
    {RP_ADVISE_CALL, .frameworks = FW(TENSORFLOW),
     .text = "call .numpy(), float(x) and print(x) only every N steps; Keras: "
             "model.compile(..., steps_per_execution=N)",
     .what_if = "no-sync"},
    {RP_ADVISE_CALL, .frameworks = FW(MINDSPORE),
     .text = "call .asnumpy() and print(x) only every N steps", .what_if = "no-sync"},
    {RP_ADVISE_CALL, .frameworks = FW(NATIVE), .vendors = BY(NVIDIA),
     .text = "cudaMemcpyAsync and cudaEventRecord with cudaStreamWaitEvent instead of "
             "cudaDeviceSynchronize and cudaMemcpy",
     .what_if = "no-sync"},
    {RP_ADVISE_CALL, .frameworks = FW(NATIVE), .vendors = BY(AMD),
     .text = "hipMemcpyAsync and hipEventRecord with hipStreamWaitEvent instead of "
             "hipDeviceSynchronize and hipMemcpy",
     .what_if = "no-sync"},
    {RP_ADVISE_CALL, .frameworks = FW(NATIVE), .vendors = BY(INTEL),
     .text = "events (depends_on) instead of queue::wait()", .what_if = "no-sync"},
    {RP_ADVISE_CALL, .frameworks = FW(OPENCL),
     .text = "events and non-blocking transfers (blocking_read = CL_FALSE) instead of clFinish",
     .what_if = "no-sync"},
};

const struct rp_finding rp_finding_sync_points = {
    .id = "sync-points",
    .kinds = {{"", "the host waits for the device, which then has no work queued"}},
    .idle = 1u << RP_GAP_SYNC_DRAIN,
    .find = rp_findings_idle,
    RP_ADVICE(advice),
};
