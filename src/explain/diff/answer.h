/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The answer of `diff` about traces, for code that reads it by its keys. */
#include <reprise/result.h>

extern const struct rp_type rp_trace_diff_type;
