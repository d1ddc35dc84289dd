/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Half-open intervals of time and their union. A union is a list of intervals in time order that do
 * not touch each other. An interval of length zero that touches no other stays in the list:
 * something happened at that time, and it divides the gap around it (docs/definitions.md).
 */
#include "base/err.h"
#include "base/vec.h"

#include <stdint.h>
#include <stdlib.h>

struct rp_interval {
    int64_t begin_ns, end_ns;
};

typedef RP_VEC(struct rp_interval) rp_interval_vec;

/* end - begin, clamped because damaged files have absurd times. */
static inline int64_t rp_ns_between(int64_t begin_ns, int64_t end_ns)
{
    int64_t ns;

    return !__builtin_sub_overflow(end_ns, begin_ns, &ns) ? ns
           : begin_ns < 0                                 ? INT64_MAX
                                                          : INT64_MIN;
}

/* a + b, clamped in the same way. */
static inline int64_t rp_ns_sum(int64_t a_ns, int64_t b_ns)
{
    int64_t ns;

    return !__builtin_add_overflow(a_ns, b_ns, &ns) ? ns : b_ns > 0 ? INT64_MAX : INT64_MIN;
}

static inline void rp_ns_add(int64_t *sum_ns, int64_t ns)
{
    *sum_ns = rp_ns_sum(*sum_ns, ns);
}

/* Sorts in ascending order. */
void rp_ns_sort(int64_t *ns, size_t n);

/* The median of n > 0 sorted times; with two in the middle, their mean, rounded down. */
static inline int64_t rp_ns_median(const int64_t *sorted, size_t n)
{
    int64_t low = sorted[(n - 1) / 2], high = sorted[n / 2];

    return low + (int64_t)(((uint64_t)high - (uint64_t)low) / 2);
}

/* The distance between two times. */
static inline int64_t rp_ns_apart(int64_t a_ns, int64_t b_ns)
{
    return a_ns < b_ns ? rp_ns_between(a_ns, b_ns) : rp_ns_between(b_ns, a_ns);
}

/* The nearest-rank percentile: the smallest time that at least `percent` of the times do not
   exceed. */
static inline int64_t rp_ns_percentile(const int64_t *sorted, size_t n, unsigned percent)
{
    size_t rank = (n * percent + 99) / 100;

    return sorted[rank ? rank - 1 : 0];
}

/* The length of the intersection of [begin, end) and [from, to). */
static inline int64_t rp_ns_common(int64_t begin_ns, int64_t end_ns, int64_t from_ns, int64_t to_ns)
{
    int64_t begin = begin_ns > from_ns ? begin_ns : from_ns;
    int64_t end = end_ns < to_ns ? end_ns : to_ns;

    return end > begin ? rp_ns_between(begin, end) : 0;
}

/* Adds an interval that does not begin before the previous one. */
static inline enum rp_code rp_union_add(rp_interval_vec *u, int64_t begin_ns, int64_t end_ns,
                                        struct rp_err *err)
{
    struct rp_interval *last = u->n ? &u->at[u->n - 1] : NULL;
    struct rp_interval fresh = {begin_ns, end_ns};

    if (!last || begin_ns > last->end_ns)
        return rp_vec_push(u, fresh, err);
    if (end_ns > last->end_ns)
        last->end_ns = end_ns;
    return RP_OK;
}

/* Sum of the lengths. */
int64_t rp_union_length(const struct rp_interval *u, size_t n);

/* The length of the intersection of two unions. */
int64_t rp_union_common(const struct rp_interval *a, size_t na, const struct rp_interval *b,
                        size_t nb);

/* The first interval that ends after a time, or n. */
size_t rp_union_first(const struct rp_interval *u, size_t n, int64_t after_ns);

/* How much of [begin, end) the union covers; O(log n) plus the intervals inside. */
int64_t rp_union_covers(const struct rp_interval *u, size_t n, int64_t begin_ns, int64_t end_ns);

/* Sorts intervals and merges those that touch; returns how many remain. */
size_t rp_union_sort(struct rp_interval *u, size_t n);
