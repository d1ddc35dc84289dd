/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Measures the effect of rounding on a program that computes in types narrower than f32: runs of
 * this program that round differently, and how an output compares with them.
 */
#include "replay/trial.h"

#define RP_VARIANTS 8

struct rp_variants {
    struct rp_tensors plain, other[RP_VARIANTS], cut; /* cut: with products in TF32, or not */
    size_t count;
};
struct rp_variants_of {
    const struct rp_trial_engine *on; /* with its options, variants run on `fast` */
    struct rp_trial_part part;
    bool tf32; /* one side may have multiplied so */
};
/* Makes only `plain` and `cut`. Must be released in every case. */
enum rp_code rp_variants_cut(struct rp_variants *v, const struct rp_variants_of *of,
                             struct rp_err *err);
void rp_variants_release(struct rp_variants *v);

struct rp_variants_verdict {
    bool known;          /* otherwise the variants have no such output */
    const char *why;     /* where it is off by more than rounding explains; NULL if nowhere */
    double moved, drift; /* what rounding explains for an element; as a common factor, minus one */
    size_t wrong;        /* number of elements that are off by more */
};
/* A difference that needs no explanation; 0 if no narrow type is on the way to the output. */
double rp_variants_least(const struct rp_tensor *want, unsigned through);
/* least: a difference that needs no explanation. */
enum rp_code rp_variants_judge(const struct rp_variants *v, size_t i, const struct rp_tensor *got,
                               const struct rp_tensor *want, double least,
                               struct rp_variants_verdict *out, struct rp_err *err);
/* Decides about those of n outputs that have a least. Runs two variants, then four, then eight: an
   output that is right by some of them is right by more. */
enum rp_code rp_variants_decide(const struct rp_variants_of *of, struct rp_tensor *const *got,
                                struct rp_tensor *const *want, const double *least, size_t n,
                                struct rp_variants_verdict *out, struct rp_err *err);
