/* SPDX-License-Identifier: Apache-2.0 */
/* The profiler delays the device, or without one, the host. */
#include "explain/findings/finding.h"

enum { DEVICE, HOST };

static void profiler_overhead_find(struct rp_findings *f)
{
    rp_findings_idle(f);
    rp_findings_pause(f, HOST, RP_PAUSE_PROFILER);
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_CALL,
     .text = "record fewer kinds of events, and measure step times without the profiler"},
    {RP_ADVISE_CALL, .system = RP_KEY_YES,
     .text = "record fewer kinds of events, and measure step times without the profiler"},
    {RP_ADVISE_CALL, .frameworks = FW(PYTORCH),
     .text = "torch.profiler.profile(with_stack=False, record_shapes=False, "
             "profile_memory=False); measure step times without it"},
    {RP_ADVISE_CALL, .frameworks = FW(JAX),
     .text = "jax.profiler.ProfileOptions() with python_tracer_level = 0 and host_tracer_level "
             "= 1; measure step times without it"},
    {RP_ADVISE_CALL, .frameworks = FW(TENSORFLOW),
     .text = "tf.profiler.experimental.ProfilerOptions(host_tracer_level=1, "
             "python_tracer_level=0); measure step times without it"},
    {RP_ADVISE_CALL, .frameworks = FW(VLLM),
     .text = "--profiler-config.torch_profiler_with_stack=false; measure latencies without the "
             "profiler"},
    {RP_ADVISE_CALL, .frameworks = FW(SGLANG),
     .text = "/start_profile with with_stack = false; measure latencies without the profiler"},
    {RP_ADVISE_CALL, .frameworks = FW(NATIVE) | FW(OPENCL),
     .text = "'reprise record --with' fewer sources"},
    {RP_ADVISE_CALL, .frameworks = FW(PYTORCH) | FW(JAX) | FW(TENSORFLOW) | FW(NATIVE),
     .with_stack = RP_KEY_NO, .ours = RP_KEY_YES,
     .text =
         "'reprise record --light', or '--detail 2:200': steps are about as long as without it"},
};

const struct rp_finding rp_finding_profiler_overhead = {
    .id = "profiler-overhead",
    .kinds = {{"device", "the profiler itself delays the device"},
              {"host", "the profiler itself delays the host"}},
    .idle = 1u << RP_GAP_PROFILER,
    .find = profiler_overhead_find,
    RP_ADVICE(advice),
};
