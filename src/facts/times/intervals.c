/* SPDX-License-Identifier: Apache-2.0 */
/* Unions of intervals: two cursors over sorted lists, linear. */
#include "facts/times/intervals.h"

#include "base/decides.h"
#include "base/order.h"
#include "trace/finish/index_sort.h"

#include <stdbool.h>
#include <stdlib.h>

/* ------------------------------------------------------------------ sorting times */

#define FEW_TIMES 200
RP_LIMIT(FEW_TIMES, "times", "fewer are compared, more are sorted by their digits: the same order");

static int by_time(const void *pa, const void *pb)
{
    return RP_COMPARE(*(const int64_t *)pa, *(const int64_t *)pb);
}

void rp_ns_sort(int64_t *ns, size_t n)
{
    uint64_t *other, *sorted, least = n ? (uint64_t)ns[0] : 0;
    bool in_order = true;

    for (size_t i = 1; i < n; i++) {
        in_order &= ns[i] >= ns[i - 1];
        least = ns[i] < (int64_t)least ? (uint64_t)ns[i] : least;
    }
    if (in_order)
        return;
    other = n < FEW_TIMES ? NULL : malloc(n * sizeof *other);
    if (!other) {
        qsort(ns, n, sizeof *ns, by_time);
        return;
    }
    for (size_t i = 0; i < n;
         i++) /* subtracts the earliest, so that there are few digits, and none is negative */
        other[i] = (uint64_t)ns[i] - least;
    sorted = rp_radix_sort(other, (uint64_t *)ns, n, 0);
    for (size_t i = 0; i < n; i++)
        ns[i] = (int64_t)(sorted[i] + least);
    free(other);
}

int64_t rp_union_length(const struct rp_interval *u, size_t n)
{
    int64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum = rp_ns_sum(sum, rp_ns_between(u[i].begin_ns, u[i].end_ns));
    return sum;
}

int64_t rp_union_common(const struct rp_interval *a, size_t na, const struct rp_interval *b,
                        size_t nb)
{
    size_t i = 0, j = 0;
    int64_t sum = 0;

    while (i < na && j < nb) {
        int64_t both = rp_ns_common(a[i].begin_ns, a[i].end_ns, b[j].begin_ns, b[j].end_ns);

        sum = rp_ns_sum(sum, both);
        if (a[i].end_ns < b[j].end_ns)
            i++;
        else
            j++;
    }
    return sum;
}

size_t rp_union_first(const struct rp_interval *u, size_t n, int64_t after_ns)
{
    size_t i;

    RP_LOWER_BOUND(i, n, u[i].end_ns <= after_ns);
    return i;
}

int64_t rp_union_covers(const struct rp_interval *u, size_t n, int64_t begin_ns, int64_t end_ns)
{
    size_t i = rp_union_first(u, n, begin_ns);
    int64_t sum = 0;

    for (; i < n && u[i].begin_ns < end_ns; i++)
        sum = rp_ns_sum(sum, rp_ns_common(u[i].begin_ns, u[i].end_ns, begin_ns, end_ns));
    return sum;
}

RP_ORDER(by_begin, struct rp_interval, RP_UP(begin_ns))

size_t rp_union_sort(struct rp_interval *u, size_t n)
{
    size_t i, kept = 0;

    rp_sort(u, n, sizeof *u, by_begin);
    for (i = 0; i < n; i++) {
        if (kept && u[i].begin_ns <= u[kept - 1].end_ns) {
            if (u[i].end_ns > u[kept - 1].end_ns)
                u[kept - 1].end_ns = u[i].end_ns;
        } else {
            u[kept++] = u[i];
        }
    }
    return kept;
}
