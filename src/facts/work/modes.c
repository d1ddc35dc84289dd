/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A histogram with sixteen bins per octave is smoothed; a valley separates two modes if it is
 * clearly lower than the lower of its peaks. The axis is log2(duration + 16 us), which is linear
 * below a few microseconds, where gaps between durations come from the resolution of the clock.
 * Linear in durations; the histogram has a thousand bins.
 */
#include "facts/work/modes.h"

#include <math.h>
#include <string.h>

#define AN_OCTAVE 16
RP_DECISION(
    AN_OCTAVE, "bins",
    "durations that differ by 4 % are in neighbouring bins, and as many microseconds are the "
    "knee of the axis",
    "facts/lengths_must_differ_by_more_than_smoothing");
#define BINS    (64 * AN_OCTAVE)
#define KNEE_NS (AN_OCTAVE * 1000.0)
#define BLUR    1.2
RP_DECISION(
    BLUR, "bins",
    "standard deviation of the bell with which bins are smoothed: calls of one kind differ by "
    "several percent",
    "facts/lengths_must_differ_by_more_than_smoothing");
#define DIP 0.8
RP_DECISION(DIP, "of the lower peak", "a valley that is lower separates two modes",
            "facts/a_shallow_valley_separates_nothing");

struct axis {
    double density[BINS];
    int peak[BINS]; /* bins of the remaining peaks */
    int npeaks;
};

static int bin_of(int64_t ns)
{
    return (int)(AN_OCTAVE * log2((double)(ns > 0 ? ns : 0) + KNEE_NS));
}

static void smooth_bins(const int64_t *sorted, size_t n, struct axis *a)
{
    enum { REACH = 4 }; /* beyond this the bell is flat */
    double weight[REACH + 1];

    for (int k = 0; k <= REACH; k++)
        weight[k] = exp(-(double)(k * k) / (2 * BLUR * BLUR));
    for (size_t i = 0; i < n; i++) {
        int bin = bin_of(sorted[i]);

        for (int k = -REACH; k <= REACH; k++)
            if (bin + k >= 0 && bin + k < BINS)
                a->density[bin + k] += weight[k < 0 ? -k : k];
    }
}

static void find_peaks(struct axis *a)
{
    for (int i = 1; i + 1 < BINS; i++)
        if (a->density[i] > a->density[i - 1] && a->density[i] >= a->density[i + 1])
            a->peak[a->npeaks++] = i;
}

/* The lowest bin between two peaks. */
static int valley_after(const struct axis *a, int p)
{
    int i, lowest = a->peak[p];

    for (i = a->peak[p]; i <= a->peak[p + 1]; i++)
        if (a->density[i] < a->density[lowest])
            lowest = i;
    return lowest;
}

/* Drops the lower peak beside the shallowest valley until all valleys are deep and peaks few
 * enough. */
static void merge_peaks(struct axis *a)
{
    while (a->npeaks > 1) {
        double worst = -1;
        int p, at = 0;

        for (p = 0; p + 1 < a->npeaks; p++) {
            /* The height of the valley after a peak, as a share of the lower peak: 0 is empty, at 1
             * there is no valley. */
            double left = a->density[a->peak[p]], right = a->density[a->peak[p + 1]];
            double depth = a->density[valley_after(a, p)] / (left < right ? left : right);

            /* among empty valleys, the narrowest */
            if (a->npeaks > RP_MODES_MOST && depth < DIP)
                depth = DIP / (2.0 + a->peak[p + 1] - a->peak[p]);
            if (depth > worst) {
                worst = depth;
                at = p;
            }
        }
        if (worst < DIP && a->npeaks <= RP_MODES_MOST)
            return;
        at += a->density[a->peak[at]] >= a->density[a->peak[at + 1]];
        a->npeaks--;
        memmove(&a->peak[at], &a->peak[at + 1], (size_t)(a->npeaks - at) * sizeof a->peak[0]);
    }
}

/* The median of the durations from i to n in the bins around a peak. */
static int64_t densest_duration(const int64_t *sorted, size_t i, size_t n, int peak)
{
    size_t first, end;

    for (first = i; first < n && bin_of(sorted[first]) < peak - 1; first++)
        ;
    for (end = first; end < n && bin_of(sorted[end]) <= peak + 1; end++)
        ;
    return end > first ? sorted[first + (end - first) / 2] : sorted[i + (n - i) / 2];
}

size_t rp_modes_find(const int64_t *sorted, size_t n, struct rp_mode *out)
{
    struct axis a = {0};
    size_t begin = 0, end, found = 0;

    if (!n)
        return 0;
    smooth_bins(sorted, n, &a);
    find_peaks(&a);
    merge_peaks(&a);
    for (int p = 0; p < a.npeaks; p++) {
        int until = p + 1 < a.npeaks ? valley_after(&a, p) : BINS;

        for (end = begin; end < n && (p + 1 == a.npeaks || bin_of(sorted[end]) < until); end++)
            ;
        if (end == begin)
            continue;
        out[found++] = (struct rp_mode){densest_duration(sorted, begin, end, a.peak[p]),
                                        sorted[begin], sorted[end - 1], (int64_t)(end - begin)};
        begin = end;
    }
    return found;
}
