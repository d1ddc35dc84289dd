/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Graphs that were recorded as a whole: spans on a stream whose kernels are not in the file. Each
 * is one kernel here, because the device is not idle; every answer about such a trace says so
 * (dataset/trust.h).
 */
#include "trace/trace.h"

#define RP_HIDDEN_ENDING " (kernels not recorded)" /* of the names of such spans */

/* How many there are, and how long they last in all. O(strings) where there is none. */
int64_t rp_hidden_graphs(const struct rp_trace *t, int64_t *ns);
