/* SPDX-License-Identifier: Apache-2.0 */
/* The device waits between kernels that were launched in time. */
#include "explain/findings/finding.h"
#include "explain/findings/tiny_kernels.h"

static void launch_latency_find(struct rp_findings *f)
{
    struct rp_report_finding *finding = rp_tiny_kernels_of(f) && !rp_tiny_kernels_are_most(f)
                                            ? rp_findings_add_idle(f, 0, 0)
                                            : NULL;

    if (!finding)
        return;
    rp_findings_say_idle(f, finding);
    rp_tiny_kernels_say(f, finding);
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_GRAPHS, .graphs = RP_KEY_NO,
     .text = "launch repeated sequences of kernels as one graph, with shorter gaps between kernels",
     .what_if = "cuda-graphs"},
    {RP_ADVISE_GRAPHS, .graphs = RP_KEY_YES,
     .text = "fewer and larger kernels: 'reprise fusions' lists chains"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(PYTORCH), .vendors = BY(NVIDIA), .graphs = RP_KEY_NO,
     .text = "torch.compile(model, mode=\"reduce-overhead\"): CUDA graphs, with shorter gaps "
             "between kernels",
     .what_if = "cuda-graphs"},
    {RP_ADVISE_GRAPHS, .frameworks = FW(PYTORCH), .vendors = BY(AMD), .graphs = RP_KEY_NO,
     .text = "torch.compile(model, mode=\"reduce-overhead\"): HIP graphs, with shorter gaps "
             "between kernels",
     .what_if = "cuda-graphs"},
    {RP_ADVISE_COMPILE, .compiled = RP_KEY_NO, .text = "fuse short kernels", .what_if = "fuse"},
    {RP_ADVISE_COMPILE, .frameworks = FW(PYTORCH), .compiled = RP_KEY_NO,
     .text = "torch.compile(model): fewer and larger kernels", .what_if = "fuse"},
};

const struct rp_finding rp_finding_launch_latency = {
    .id = "launch-latency",
    .kinds = {{"", "the device waits between kernels that were launched in time"}},
    .condition = "where it is not `tiny-kernels`",
    .idle = 1u << RP_GAP_LAUNCH_LATENCY,
    .find = launch_latency_find,
    RP_ADVICE(advice),
};
