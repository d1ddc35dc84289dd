/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Statistics of a handful of step times (docs/definitions.md, Differences of runs). */
#include <stddef.h>
#include <stdint.h>

/* The middle half of n values in order: *taken of them, from *from on. */
void rp_diff_middle_half(size_t n, size_t *from, size_t *taken);

/* Sorts them; n is not 0. */
double rp_diff_median(int64_t *values, size_t n);

/* Standard deviation of one value, from the median deviation where that is less; -1 for fewer than
   two. scratch has room for n. */
double rp_diff_spread(const int64_t *values, size_t n, int64_t *scratch);

/* The largest change that is noise: three standard errors of the difference of two estimates, each
   with its spread (below 0: not known) and the number of values it was made of. Where one spread is
   not known the other stands for both; -1 where neither is. */
double rp_diff_noise(const double spread_ns[2], const double count[2]);

/* Rounded up, and kept inside the range: a damaged file may have any times. */
int64_t rp_diff_whole_ns(double ns);
