/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What `try --learn` measured on this machine, for predictions about a run. */
#include "outcomes/outcomes.h"
#include "sim/model/part.h"

/* Like rp_outcomes_narrow, for the device and the framework of a rank. */
size_t rp_sim_narrow(const struct rp_outcomes *outcomes, const struct rp_sim_part *part,
                     const char *text, double predicted, double *low, double *high);
