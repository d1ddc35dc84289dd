/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The difference of two kinds of times is the median of the differences of all pairs (Hodges and
 * Lehmann); their ranks give an interval of 95 % (Mann and Whitney). A step that another program
 * delayed hardly changes either.
 */
#include "capture/core/compare.h"

#include <stdlib.h>

void rp_core_times_add(struct rp_core_times *t, uint64_t time)
{
    t->at[t->n++ % RP_CORE_COMPARED] = time;
}

static size_t kept(const struct rp_core_times *t)
{
    return t->n < RP_CORE_COMPARED ? t->n : RP_CORE_COMPARED;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Half the interval, in ranks: 1.96 standard deviations of the rank sum, rounded up. */
static size_t half_width(size_t n, size_t m)
{
    uint64_t squared = (uint64_t)(n * m * (n + m + 1)) * 384 / 1200; /* 1.96 squared / 12 */
    size_t root = 0;

    while ((uint64_t)root * root < squared)
        root++;
    return root;
}

uint64_t rp_core_times_median(const struct rp_core_times *t)
{
    struct rp_core_times sorted = *t;

    qsort(sorted.at, kept(t), sizeof sorted.at[0], by_value);
    return sorted.at[kept(t) / 2];
}

/* The time minus what it is longer by, but never less than some of it. */
static uint64_t without(uint64_t time, int64_t longer)
{
    return longer > 0 && (uint64_t)longer < time ? time - (uint64_t)longer : time;
}

bool rp_core_compare(const struct rp_core_times *first, const struct rp_core_times *second,
                     struct rp_core_compared *out)
{
    static int64_t pairs[RP_CORE_COMPARED * RP_CORE_COMPARED];
    size_t n = kept(first), m = kept(second), half = half_width(n, m), middle = n * m / 2;

    if (half >= middle) /* too few */
        return false;
    for (size_t i = 0; i < n * m; i++)
        pairs[i] = (int64_t)(first->at[i / m] - second->at[i % m]);
    qsort(pairs, n * m, sizeof pairs[0], by_value);
    uint64_t usual = rp_core_times_median(first);
    *out = (struct rp_core_compared){usual, usual, without(usual, pairs[middle + half]), usual};
    if (pairs[middle - half] > 0) {
        out->usual = without(usual, pairs[middle]);
        out->usual_most = without(usual, pairs[middle - half]);
        return true;
    }
    return pairs[middle + half] * 100 < (int64_t)usual;
}
