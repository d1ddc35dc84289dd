/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The time of a chain of element-wise kernels as one kernel, as a multiple of its longest operator:
 * the median over 40 chains that were each compiled into one kernel on one H200, by that time
 * (docs/definitions.md, "Fusions", has the error).
 */
#include <stdint.h>

static inline double rp_sim_fused_factor(int64_t longest_ns)
{
    return longest_ns < 2000 ? 1.36 : longest_ns < 5000 ? 1.25 : 1.04;
}
