/* SPDX-License-Identifier: Apache-2.0 */
/* Idle time that ends with work whose launch was not recorded. */
#include "explain/findings/finding.h"

static void unexplained_idle_find(struct rp_findings *f)
{
    if (!rp_report_has_only_transfers(rp_findings_lead(f)))
        rp_findings_idle(f);
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_LOOK, .text = "record the runtime calls of the host too, not only the device"},
    {RP_ADVISE_LOOK, .system = RP_KEY_YES,
     .text = "record the runtime calls of the host too, not only the device"},
    {RP_ADVISE_LOOK, .vendors = BY(NVIDIA), .system = RP_KEY_YES,
     .text = "nsys profile --trace=cuda,nvtx records the launches of the host, too"},
    {RP_ADVISE_LOOK, .vendors = BY(AMD), .system = RP_KEY_YES,
     .text = "rocprofv3 --runtime-trace records the launches of the host, too, not only kernels"},
    {RP_ADVISE_LOOK, .frameworks = FW(PYTORCH),
     .text = "add torch.profiler.ProfilerActivity.CPU to the activities of "
             "torch.profiler.profile(): it records launches; see 'reprise info'"},
};

const struct rp_finding rp_finding_unexplained_idle = {
    .id = "unexplained-idle",
    .kinds = {{"",
               "the device has nothing to do, and the launch of its next work was not recorded"}},
    .condition = "not where only transfers were recorded",
    .idle = 1u << RP_GAP_UNKNOWN,
    .find = unexplained_idle_find,
    RP_ADVICE(advice),
};
