/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether two arrays are the same as far as their type lets one expect. An element of a float type
 * is wrong where both its absolute and its relative difference are over their bounds; the absolute
 * bound grows with the largest magnitude of the array, because sums cancel. A few elements (half a
 * percent) may be wrong by up to ten times the bounds: a rounding that goes the other way flips a
 * relu or a maximum. Integers may differ by one in one of a thousand elements. Bounds that are
 * given are the only ones, and hold for every element.
 */
#include "exec/data/tensor.h"

struct rp_tolerance {
    double absolute, relative; /* below 0: by the element type */
    int64_t ulp;               /* below 0: not used; else elements so near are right in any case */
    bool nan_differs;          /* NaN is not equal to NaN */
    bool tf32;                 /* one side multiplied f32 with ten bits of mantissa, as GPUs do: f32
                  has the tolerance of f16, which has as many bits */
    unsigned through;          /* the narrowest float type on the way to the array, whose bounds
                                  count where it is narrower; RP_ELEM_INVALID: not known */
    double rounding; /* above 0: the only bound, absolute; a few elements may be over it */
};

/* Bits of the mantissa, hidden one left out. */
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
    size_t wrong, far, n;            /* over the bounds; over ten times; all */
    struct rp_worst worst[RP_WORST]; /* largest difference first */
    size_t nworst;
    const char *reason; /* shape or type that differ; or NULL */
};

/* The largest finite magnitude; 0 where there is none. */
double rp_largest_magnitude(const struct rp_tensor *t);

/* got and want may have different types: raw bits of bf16 and f8 were made their type before, and a
   bf16 that was kept as f32 is compared as bf16. */
void rp_compare(const struct rp_tensor *got, const struct rp_tensor *want,
                const struct rp_tolerance *tolerance, struct rp_comparison *out);
