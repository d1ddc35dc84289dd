/* SPDX-License-Identifier: Apache-2.0 */
/* Launched work waits for events and other streams. */
#include "explain/findings/finding.h"

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_LOOK,
     .text = "'reprise critpath' shows what it waits for: wait for events later, or run other "
             "work meanwhile"},
    {RP_ADVISE_LOOK, .frameworks = FW(PYTORCH),
     .text = "'reprise critpath' shows what it waits for: call wait_event() or wait_stream() "
             "later, or run other work meanwhile"},
    {RP_ADVISE_CALL, .frameworks = FW(OPENCL),
     .text = "CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE or several queues, and wait lists only where "
             "data is needed"},
};

const struct rp_finding rp_finding_dependencies = {
    .id = "dependencies",
    .kinds = {{"", "launched work waits for events or for other streams"}},
    .idle = 1u << RP_GAP_EVENT_WAIT,
    .find = rp_findings_idle,
    RP_ADVICE(advice),
};
