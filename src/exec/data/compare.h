/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Decides whether two arrays agree within the precision of their type. An element of a float type
 * is wrong if both its absolute and its relative difference exceed their bounds; the absolute bound
 * grows with the largest magnitude of the array, because sums cancel. A few elements (half a
 * percent) may be wrong by up to ten times the bounds: a rounding that goes the other way flips a
 * relu or a maximum. Integers may differ by one in one of a thousand elements. Bounds that are
 * given are the only ones, and hold for every element.
 */
#include "exec/data/tensor.h"

struct rp_tolerance {
    double absolute, relative; /* negative: chosen by the element type */
    int64_t ulp;      /* negative: not used; else elements this near are right in any case */
    bool nan_differs; /* NaN is not equal to NaN */
    bool tf32; /* one side multiplied f32 with ten bits of mantissa, as GPUs do, so f32 gets the
                  tolerance of f16, which has as many bits */
    unsigned through; /* the narrowest float type on the way to the array, whose bounds count if it
                         is narrower; RP_ELEM_INVALID: not known */
    double rounding;  /* if positive, the only bound, absolute; a few elements may exceed it */
};

/* Bits of the mantissa, without the hidden one. */
int rp_elem_mantissa(unsigned elem);

struct rp_worst {
    size_t at; /* element */
    double got, want;
};
#define RP_WORST       5
#define RP_WRONG_SHARE 0.005

struct rp_comparison {
    bool ok;
    double max_abs, max_rel;
    size_t wrong, far, n;            /* elements over the bounds; over ten times the bounds; all */
    struct rp_worst worst[RP_WORST]; /* largest difference first */
    size_t nworst;
    const char *reason; /* difference in shape or type, or NULL */
};

/* The largest finite magnitude; 0 if there is none. */
double rp_largest_magnitude(const struct rp_tensor *t);

/* got and want may have different types: raw bits of bf16 and f8 have been converted to their type,
   and a bf16 that was kept as f32 is compared as bf16. */
void rp_compare(const struct rp_tensor *got, const struct rp_tensor *want,
                const struct rp_tolerance *tolerance, struct rp_comparison *out);
