/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds graphs that were recorded as a whole: spans on a stream whose kernels are not in the file.
 * Each counts as one kernel here, because the device is not idle; every answer about such a trace
 * says so (dataset/trust.h).
 */
#include "trace/trace.h"

#define RP_HIDDEN_ENDING " (kernels not recorded)" /* ending of the names of such spans */

/* Their number, and their total duration. O(strings) if there is none. */
int64_t rp_hidden_graphs(const struct rp_trace *t, int64_t *ns);
