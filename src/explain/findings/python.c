/* SPDX-License-Identifier: Apache-2.0 */
/* Python code runs between the operators. */
#include "explain/findings/finding.h"

static void python_find(struct rp_findings *f)
{
    rp_findings_pause(f, 0, RP_PAUSE_PYTHON);
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_LOOK,
     .text = "'reprise top --by python' shows the code; fewer and larger operators"},
    {RP_ADVISE_COMPILE, .frameworks = FW(PYTORCH), .compiled = RP_KEY_NO,
     .text = "torch.compile(model): fewer calls from Python"},
    {RP_ADVISE_COMPILE, .frameworks = FW(JAX), .text = "one jax.jit around the whole step"},
    {RP_ADVISE_COMPILE, .frameworks = FW(TENSORFLOW), .text = "@tf.function around the whole step"},
};

const struct rp_finding rp_finding_python = {
    .id = "python",
    .kinds = {{"", "Python code runs between the operators", .least_share = RP_PAUSE_SHARE}},
    .cost = "pauses in which Python code runs ([Pauses](definitions/findings.md)); without a "
            "device",
    .numbers = RP_FINDING_NUMBER(RP_PAUSE_SHARE),
    .test = "explain/pauses_have_an_edge",
    .find = python_find,
    RP_ADVICE(advice),
};
