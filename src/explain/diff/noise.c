/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Robust statistics for few values, because a first step that compiles or a step that a collector
 * of garbage stopped must not move the step time or widen the noise.
 */
#include "explain/diff/noise.h"

#include "base/decides.h"
#include "facts/times/intervals.h"

#include <math.h>
#include <string.h>

#define STANDARD_ERRORS 3.0
RP_DECISION(STANDARD_ERRORS, "standard errors",
            "equal runs of 6 steps differ by more in 1 % of all pairs (equal_runs_rarely_differ)",
            "explain/the_middle_half_and_the_spread");
#define OF_NORMAL 1.4826
RP_FACT(OF_NORMAL, "standard deviations", "of normal values, in median absolute deviations");
#define FEW_BIAS 0.8
RP_FACT(FEW_BIAS, "values", "n / (n - 0.8) of 10 or more (Croux and Rousseeuw 1992)");
#define MOST_NS 4e18
RP_LIMIT(MOST_NS, "ns", "127 years: times of a damaged file stay in the range of their type");

void rp_diff_middle_half(size_t n, size_t *from, size_t *taken)
{
    size_t cut = ((n + 1) / 2 + 1) / 2;

    if (n && cut > (n - 1) / 2)
        cut = (n - 1) / 2;
    *from = n ? cut : 0;
    *taken = n - 2 * *from;
}

double rp_diff_median(int64_t *values, size_t n)
{
    size_t low = (n - 1) / 2, high = n / 2;

    rp_ns_sort(values, n);
    return ((double)values[low] + (double)values[high]) / 2;
}

static double standard_deviation(const int64_t *values, size_t n)
{
    double mean = 0, sum = 0;

    for (size_t i = 0; i < n; i++)
        mean += (double)values[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        sum += ((double)values[i] - mean) * ((double)values[i] - mean);
    return sqrt(sum / (double)(n - 1));
}

/* The median absolute deviation, scaled to a standard deviation of normal values; for few values
   corrected by factors of Croux and Rousseeuw (1992). If it exceeds the standard deviation itself,
   there is no outlier, and the latter is returned. */
double rp_diff_spread(const int64_t *values, size_t n, int64_t *scratch)
{
    static const double small[] = {0, 0, 1.196, 1.495, 1.363, 1.206, 1.200, 1.140, 1.129, 1.107};
    double factor = n < 10 ? small[n] : (double)n / ((double)n - FEW_BIAS), middle;

    if (n < 2)
        return -1;
    memcpy(scratch, values, n * sizeof *values);
    middle = rp_diff_median(scratch, n);
    for (size_t i = 0; i < n; i++)
        scratch[i] = rp_diff_whole_ns(2 * fabs((double)values[i] - middle));
    return fmin(factor * OF_NORMAL * rp_diff_median(scratch, n) / 2, standard_deviation(values, n));
}

double rp_diff_noise(const double spread_ns[2], const double count[2])
{
    double sum = 0;

    for (int s = 0; s < 2; s++) {
        double spread = spread_ns[s] < 0 ? spread_ns[1 - s] : spread_ns[s];

        if (spread < 0)
            return -1;
        sum += spread * spread / count[s];
    }
    return STANDARD_ERRORS * sqrt(sum);
}

int64_t rp_diff_whole_ns(double ns)
{
    return (int64_t)ceil(ns > MOST_NS ? MOST_NS : ns < -MOST_NS ? -MOST_NS : ns);
}
