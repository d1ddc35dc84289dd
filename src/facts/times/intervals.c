/* SPDX-License-Identifier: Apache-2.0 */
/* Unions of intervals: two cursors over sorted lists, linear. */
#include "facts/times/intervals.h"

#include "base/order.h"
#include <stdlib.h>

int64_t rp_union_length(const struct rp_interval *u, size_t n)
{
    int64_t sum = 0;
    size_t i;

    for (i = 0; i < n; i++)
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

    if (n)
        qsort(u, n, sizeof *u, by_begin);
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
