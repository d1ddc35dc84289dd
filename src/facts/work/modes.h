/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The modes of a distribution of durations, on a logarithmic axis.
 *
 *     calls  #
 *            ##                              #
 *           ####        .                   ###       two modes: 5 us and 8 ms
 *          3 us  10 us       100 us   1 ms   8 ms
 */
#include "base/decides.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define RP_MODES_MOST 12
RP_LIMIT(RP_MODES_MOST, "modes", "beyond it the two that are nearest to each other are one");

struct rp_mode {
    int64_t at_ns; /* where the calls are densest */
    int64_t min_ns, max_ns, count;
};

/* Finds modes of durations in ascending order; each duration belongs to exactly one mode. Returns
   their number, at most RP_MODES_MOST; they are in ascending order. O(n). */
size_t rp_modes_find(const int64_t *sorted, size_t n, struct rp_mode *out);
