/* SPDX-License-Identifier: Apache-2.0 */
/* Launched work waits on the device, and there is no sign of what it waits for. */
#include "explain/findings/finding.h"

/* Adds what it may have waited for, if the recording has a sign of it. */
static void device_wait_find(struct rp_findings *f)
{
    const struct rp_report_sums *s = &rp_findings_lead(f)->sums;
    struct rp_report_finding *finding = rp_findings_add_idle(f, 0, 0);

    if (!finding)
        return;
    if (s->first_wait_ns > finding->lost_ns / 2)
        RP_SAY(f, finding,
               "rank %d: %s before the first recorded work of a stream, which may still have run "
               "what was launched before recording began",
               rp_findings_lead_number(f), rp_findings_time(f, s->first_wait_ns));
    if (s->graph_wait_ns > finding->lost_ns / 2)
        RP_SAY(f, finding,
               "rank %d: %s between the kernels of one graph: some of its nodes were not recorded",
               rp_findings_lead_number(f), rp_findings_time(f, s->graph_wait_ns));
    rp_findings_say_idle(f, finding);
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_LOOK,
     .text = "look for other processes on the device, and for work that was launched before "
             "the recording began"},
    {RP_ADVISE_LOOK, .vendors = BY(NVIDIA),
     .text = "look for other processes (nvidia-smi pmon), and for work that was launched "
             "before the recording began"},
    {RP_ADVISE_LOOK, .vendors = BY(AMD),
     .text = "look for other processes (amd-smi process), and for work that was launched "
             "before the recording began"},
    {RP_ADVISE_LOOK, .frameworks = FW(SGLANG), .modes = MODE(SERVING),
     .text = "/start_profile with num_steps of 5 or more: the step before, launched before the "
             "profile began, may still run"},
    {RP_ADVISE_LOOK, .frameworks = FW(VLLM) | FW(TENSORRT_LLM), .modes = MODE(SERVING),
     .text = "profile several steps: the step before, launched before the profile began, may "
             "still run"},
    {RP_ADVISE_MORE, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA),
     .text =
         "experimental_config=torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True) "
         "of the profiler records waits"},
    {RP_ADVISE_CALL, .frameworks = FW(OPENCL),
     .text = "clFlush after enqueueing: a runtime may keep commands back until then or until a "
             "blocking call"},
};

const struct rp_finding rp_finding_device_wait = {
    .id = "device-wait",
    .kinds = {{"", "launched work waits on the device, and the recording does not show for what"}},
    .idle = 1u << RP_GAP_DEVICE_WAIT,
    .find = device_wait_find,
    RP_ADVICE(advice),
};
