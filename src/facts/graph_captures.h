/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FACTS_GRAPH_CAPTURES_H
#define RP_FACTS_GRAPH_CAPTURES_H
/*
 * Launches that were captured into a CUDA graph. Between the calls that begin and end a capture a
 * launch becomes a node of the graph and starts no work, so the missing device work is no sign of
 * lost events. Any thread of the process may launch into a capture (PyTorch's backward pass does),
 * so a capture applies to the whole process.
 */
#include "base/err.h"
#include "trace/trace.h"

/* How many of the launches that health counts as without device work are inside a capture. Needs
 * events and links. Linear, except for sorting the captures. */
enum rp_code rp_captured_launches(const struct rp_trace *trace, int64_t *out, struct rp_err *err);

#endif
