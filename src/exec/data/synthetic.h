/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Makes inputs for a program whose own are missing: seeded, in bounds, of sensible magnitude. The
   same seed gives the same values on every engine and with any number of threads. */
#include "exec/data/signature.h"
#include "exec/data/tensor.h"

/* Makes slots->nin arrays, which the caller drops. p is NULL if nothing is known about their
   use. */
enum rp_code rp_synthetic_inputs(const struct rp_program *p, const struct rp_signature *slots,
                                 uint64_t seed, struct rp_tensor **out, struct rp_err *err);

/* ---- what the inputs of a program are used for, as far as it limits their values ---- */

enum rp_use_range {
    RP_USE_ANY,
    RP_USE_POSITIVE, /* a root, a logarithm, a divisor */
    RP_USE_UNIT,     /* inside (-1, 1), for an inverse sine */
    RP_USE_ABOVE_ONE /* for an inverse hyperbolic cosine */
};

struct rp_use {
    int64_t below; /* limit if it is an index; 0: it is not */
    enum rp_use_range range;
    bool definite;  /* a matrix for a Cholesky decomposition, or a triangle to solve */
    bool has_start; /* it begins a reduction, with a neutral element: */
    double start;
};

struct rp_uses; /* rp_uses: who reads each value of a program */
enum rp_code rp_uses_new(const struct rp_program *p, struct rp_uses **out, struct rp_err *err);
void rp_uses_free(struct rp_uses *uses); /* NULL is fine */

/* Finds the use of input i of the signature. */
void rp_uses_look(struct rp_uses *uses, const struct rp_signature *slots, size_t i,
                  struct rp_use *out);
