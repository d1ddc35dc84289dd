/* SPDX-License-Identifier: Apache-2.0 */
/* Code other than operators runs inside longer spans. */
#include "explain/findings/finding.h"

/* If only calls were recorded, it is the start and the end of the program. */
static void host_code_find(struct rp_findings *f)
{
    if (!rp_findings_lead(f)->by_calls)
        rp_findings_pause(f, 0, RP_PAUSE_SPAN);
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_LOOK, .text = "'reprise top --by annotation' shows those spans"},
    {RP_ADVISE_LOOK, .with_stack = RP_KEY_NO, .system = RP_KEY_YES,
     .text =
         "'reprise top --by annotation' shows those spans; 'reprise record --with +sample' names "
         "their code"},
    {RP_ADVISE_LOOK, .frameworks = FW(PYTORCH), .with_stack = RP_KEY_NO,
     .text = "'reprise top --by annotation' shows those spans; "
             "torch.profiler.profile(with_stack=True) shows their code"},
    {RP_ADVISE_LOOK, .frameworks = FW(PYTORCH) | FW(JAX) | FW(TENSORFLOW) | FW(NATIVE),
     .with_stack = RP_KEY_NO, .ours = RP_KEY_YES,
     .text = "'reprise top --by annotation' shows those spans; 'reprise record --with +sample' "
             "their Python code"},
    {RP_ADVISE_LOOK, .frameworks = FW(PYTORCH) | FW(JAX) | FW(TENSORFLOW) | FW(NATIVE),
     .with_stack = RP_KEY_NO, .ours = RP_KEY_YES, .sampled = RP_KEY_YES,
     .text = "'reprise top --by annotation' shows those spans, 'reprise top --by line' their "
             "code"},
};

const struct rp_finding rp_finding_host_code = {
    .id = "host-code",
    .kinds = {{"", "code other than operators runs inside longer spans",
               .least_share = RP_PAUSE_SHARE}},
    .condition = "not where only calls were recorded",
    .cost = "pauses in which annotations or runtime calls run "
            "([Pauses](definitions/findings.md)); without a device",
    .numbers = RP_FINDING_NUMBER(RP_PAUSE_SHARE),
    .test = "explain/pauses_have_an_edge",
    .find = host_code_find,
    RP_ADVICE(advice),
};
