/* SPDX-License-Identifier: Apache-2.0 */
/* No operator runs, and nothing was recorded on its thread meanwhile. */
#include "explain/findings/finding.h"

/* If only calls were recorded, it is the start and the end of the program; with samples, their
   lines are shown. */
static void no_operator_find(struct rp_findings *f)
{
    const struct rp_report_part *lead = rp_findings_lead(f);

    if (!lead->by_calls && !rp_report_is_sampled(lead))
        rp_findings_pause(f, 0, RP_PAUSE_NOTHING);
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_LOOK, .text = "look for waiting, other threads and code outside of the framework"},
    {RP_ADVISE_LOOK, .with_stack = RP_KEY_NO, .system = RP_KEY_YES,
     .text =
         "'reprise record --with +sample' names what runs instead; look for waiting, other threads "
         "and code outside of the framework"},
    {RP_ADVISE_LOOK, .frameworks = FW(PYTORCH), .with_stack = RP_KEY_NO,
     .text = "torch.profiler.profile(with_stack=True) shows what runs instead; look for "
             "waiting and other threads"},
    {RP_ADVISE_LOOK, .frameworks = FW(PYTORCH) | FW(JAX) | FW(TENSORFLOW) | FW(NATIVE),
     .with_stack = RP_KEY_NO, .ours = RP_KEY_YES,
     .text =
         "'reprise record --with +sample', then 'reprise top --by line', shows the code that runs; "
         "'--with +blocking' its sleeps, reads and locks"},
    {RP_ADVISE_LOOK, .frameworks = FW(PYTORCH) | FW(JAX) | FW(TENSORFLOW) | FW(NATIVE),
     .with_stack = RP_KEY_NO, .ours = RP_KEY_YES, .sampled = RP_KEY_YES,
     .text = "'reprise top --by line' shows the code that runs, with '--width wall' also where "
             "threads wait"},
    {RP_ADVISE_COMPILE, .frameworks = FW(TENSORFLOW), .compiled = RP_KEY_NO,
     .text = "TF_XLA_FLAGS=--tf_xla_auto_jit=2, or @tf.function(jit_compile=True): fewer and "
             "larger operators"},
    {RP_ADVISE_LOOK, .frameworks = FW(TENSORFLOW),
     .text = "look for waiting for parameters and other workers, and for input data"},
};

const struct rp_finding rp_finding_no_operator = {
    .id = "no-operator",
    .kinds = {{"", "no operator runs, and nothing was recorded on its thread meanwhile",
               .least_share = RP_PAUSE_SHARE}},
    .condition = "not where only calls were recorded, or samples",
    .cost = "pauses in which nothing was recorded ([Pauses](definitions/findings.md)); without a "
            "device",
    .numbers = RP_FINDING_NUMBER(RP_PAUSE_SHARE),
    .test = "explain/pauses_have_an_edge",
    .find = no_operator_find,
    RP_ADVICE(advice),
};
