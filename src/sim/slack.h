/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_SIM_SLACK_H
#define RP_SIM_SLACK_H
/* How much later a task could end before the run, or its own step, ends later. */
#include "sim/model/run.h"

/* slack_ns: by task, of as many as the overlay has; INT64_MAX: nothing follows from it that
   anything waits for. Devices keep their order. O(tasks log tasks + edges). */
enum rp_code rp_sim_slack(const struct rp_sim_run *run, const struct rp_sim_result *result,
                          int64_t *slack_ns, struct rp_err *err);

#endif
