/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Gaps between kernels that were launched in time are one problem, and thus one finding:
   tiny-kernels if these have most of the gaps, else launch-latency. */
#include "explain/findings/finding.h"

#define RP_TINY_NS 10000
RP_DECISION(
    RP_TINY_NS, "ns",
    "a launch takes the host 7 to 8 us ('reprise launches' of examples/gpt_bf16.json.gz): a "
    "shorter kernel is over before the next one is launched",
    "explain/gaps_are_of_tiny_kernels_or_of_launches");

#define RP_TINY_KERNELS(M, s)                                                              \
    M(s, PLAIN, int64_t, kernels)                                                          \
    M(s, PLAIN, int64_t, tiny) /* kernels shorter than RP_TINY_NS, and gaps before them */ \
    M(s, PLAIN, int64_t, gap_ns)
RP_PART_STRUCT(rp_tiny_kernels, RP_TINY_KERNELS);

/* The counts of the rank at the end of the chain; NULL without device work. */
const struct rp_tiny_kernels *rp_tiny_kernels_of(const struct rp_findings *f);
bool rp_tiny_kernels_are_most(const struct rp_findings *f);
void rp_tiny_kernels_say(const struct rp_findings *f, struct rp_report_finding *finding);
