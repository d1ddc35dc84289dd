/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Comparators for qsort and binary searches, written as expressions.
 *
 *     RP_ORDER(by_rank_then_time, struct span, RP_UP(rank), RP_DOWN(begin_ns))
 *     rp_sort(spans, n, sizeof *spans, by_rank_then_time);
 *
 *     RP_LOWER_BOUND(i, n, spans[i].begin_ns < ns);   the first that begins at or after ns
 */
#include <stddef.h>
#include <stdlib.h>

/* Returns -1, 0 or 1 for less than, equal to, or greater than. */
#define RP_COMPARE(x, y) (((x) > (y)) - ((x) < (y)))

/* One key of RP_ORDER: a member, with the smallest or the largest first. Any int expression of `a`
   and `b`, such as strcmp(a->name, b->name), is a key, too. */
#define RP_UP(member)   RP_COMPARE(a->member, b->member)
#define RP_DOWN(member) RP_COMPARE(b->member, a->member)

/* Defines a comparator for qsort over elements of `type` (of pointers: `struct span *const`, with
   keys RP_COMPARE((*a)->rank, (*b)->rank)); the first key that differs decides. Up to five keys. */
#define RP_ORDER(name, type, ...)                           \
    static int name(const void *pa_, const void *pb_)       \
    {                                                       \
        const type *a = pa_;                                \
        const type *b = pb_;                                \
        int order_ = 0;                                     \
                                                            \
        (void)(RP_ORDER_KEYS_(__VA_ARGS__, 0, 0, 0, 0, 0)); \
        return order_;                                      \
    }
#define RP_ORDER_KEYS_(k1, k2, k3, k4, k5, ...) \
    ((order_ = (k1)) || (order_ = (k2)) || (order_ = (k3)) || (order_ = (k4)) || (order_ = (k5)))

/* Calls qsort, which must not be called for an empty list without an address. */
static inline void rp_sort(void *at, size_t n, size_t size,
                           int (*order)(const void *, const void *))
{
    if (n)
        qsort(at, n, size, order);
}

/* Sets i to the first of 0 .. n - 1 for which `before`, an expression of i, is false, or to n. All
 * for which it is true must come first. */
#define RP_LOWER_BOUND(i, n, before) RP_LOWER_BOUND_FROM(i, 0, n, before)
/* Does the same from begin to end - 1, or end. */
#define RP_LOWER_BOUND_FROM(i, begin, end, before) \
    do {                                           \
        size_t low_ = (begin), high_ = (end);      \
                                                   \
        while (low_ < high_) {                     \
            (i) = low_ + (high_ - low_) / 2;       \
            if (before)                            \
                low_ = (i) + 1;                    \
            else                                   \
                high_ = (i);                       \
        }                                          \
        (i) = low_;                                \
    } while (0)
