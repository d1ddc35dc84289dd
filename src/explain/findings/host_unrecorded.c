/* SPDX-License-Identifier: Apache-2.0 */
/* The host launches nothing, and what it does was not recorded. */
#include "explain/findings/finding.h"

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_LOOK,
     .text = "record more of the host; typical causes are input data, work between steps, and "
             "waiting"},
    {RP_ADVISE_LOOK, .with_stack = RP_KEY_NO, .system = RP_KEY_YES,
     .text = "'reprise record --with +sample' names the code; typical causes are input data, work "
             "between steps, and waiting"},
    {RP_ADVISE_LOOK, .frameworks = FW(PYTORCH), .with_stack = RP_KEY_NO,
     .text = "torch.profiler.profile(with_stack=True) shows the Python code; typical causes "
             "are input data, work between steps, and waiting"},
    {RP_ADVISE_LOOK, .frameworks = FW(PYTORCH), .with_stack = RP_KEY_YES,
     .text = "no Python code runs either: 'reprise record -- python ...' shows blocking calls "
             "of all threads"},
    {RP_ADVISE_LOOK, .frameworks = FW(JAX),
     .text = "jax.profiler.ProfileOptions() with python_tracer_level = 1 and host_tracer_level "
             "= 2 shows the Python code"},
    {RP_ADVISE_LOOK, .frameworks = FW(TENSORFLOW),
     .text = "tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, "
             "python_tracer_level=1) shows the Python code"},
    {RP_ADVISE_LOOK, .frameworks = FW(VLLM), .with_stack = RP_KEY_NO,
     .text = "--profiler-config.torch_profiler_with_stack=true shows the Python code; without "
             "requests the server only waits"},
    {RP_ADVISE_LOOK, .frameworks = FW(SGLANG), .with_stack = RP_KEY_NO,
     .text = "/start_profile with with_stack = true shows the Python code; without requests "
             "the server only waits"},
    {RP_ADVISE_LOOK, .frameworks = FW(VLLM) | FW(SGLANG) | FW(TENSORRT_LLM),
     .with_stack = RP_KEY_YES,
     .text = "without requests a server only waits: record it under load"},
    {RP_ADVISE_LOOK, .frameworks = FW(NATIVE) | FW(OPENCL),
     .text = "'reprise record' with all sources shows blocking calls of all threads; name your "
             "own code with <reprise/record.h>"},
    {RP_ADVISE_LOOK, .frameworks = FW(PYTORCH) | FW(JAX) | FW(TENSORFLOW) | FW(NATIVE),
     .with_stack = RP_KEY_NO, .ours = RP_KEY_YES,
     .text =
         "'reprise record --with +sample', then 'reprise top --by line', shows the code that runs; "
         "'--with +blocking' its sleeps, reads and locks"},
    {RP_ADVISE_LOOK, .frameworks = FW(PYTORCH) | FW(JAX) | FW(TENSORFLOW) | FW(NATIVE),
     .with_stack = RP_KEY_NO, .ours = RP_KEY_YES, .sampled = RP_KEY_YES,
     .text = "'reprise top --by line --width idle' shows the code that ran meanwhile; '--with "
             "+blocking' its sleeps, reads and locks"},
};

const struct rp_finding rp_finding_host_unrecorded = {
    .id = "host-unrecorded",
    .kinds = {{"", "the host launches nothing for a long time, and what it does was not recorded"}},
    .idle = 1u << RP_GAP_HOST_UNRECORDED,
    .of_host = true,
    .find = rp_findings_idle,
    RP_ADVICE(advice),
};
