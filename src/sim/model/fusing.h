/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a chain of element-wise kernels takes as one kernel, in times of the longest of its
 * operators: the median over 40 chains that were compiled into one kernel each on one H200, by that
 * time (docs/definitions.md, "Fusions", has the error).
 */
#include <stdint.h>

static inline double rp_sim_fused_factor(int64_t longest_ns)
{
    return longest_ns < 2000 ? 1.36 : longest_ns < 5000 ? 1.25 : 1.04;
}
