/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Statistics of a handful of step times (docs/definitions.md, Differences of runs). */
#include <stddef.h>
#include <stdint.h>

/* The middle half of n ordered values: *taken of them, from *from on. */
void rp_diff_middle_half(size_t n, size_t *from, size_t *taken);

/* The median of n values, which get sorted; n is not 0. */
double rp_diff_median(int64_t *values, size_t n);

/* The standard deviation of one value, or what follows from the median deviation, if that is less;
   -1 for fewer than two values. scratch has room for n. */
double rp_diff_spread(const int64_t *values, size_t n, int64_t *scratch);

/* The largest change that is noise: three standard errors of the difference of two estimates, each
   with its spread (below 0: not known) and its number of values. If only one spread is known, it is
   used for both; -1 if neither is. */
double rp_diff_noise(const double spread_ns[2], const double count[2]);

/* Rounds up and clamps, because a damaged file may have any times. */
int64_t rp_diff_whole_ns(double ns);
