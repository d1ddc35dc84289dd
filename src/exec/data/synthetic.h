/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inputs for a program whose own are not at hand: seeded, in bounds, of sensible magnitude. The
   same seed gives the same values on every engine and with any number of threads. */
#include "exec/data/signature.h"
#include "exec/data/tensor.h"

/* slots->nin arrays, which the caller drops. p: NULL where nothing is known of their use. */
enum rp_code rp_synthetic_inputs(const struct rp_program *p, const struct rp_signature *slots,
                                 uint64_t seed, struct rp_tensor **out, struct rp_err *err);

/* ---- what the inputs of a program are used for, as far as it limits their values ---- */

enum rp_use_range {
    RP_USE_ANY,
    RP_USE_POSITIVE, /* a root, a logarithm, a divisor */
    RP_USE_UNIT,     /* inside (-1, 1): an inverse sine */
    RP_USE_ABOVE_ONE /* an inverse hyperbolic cosine */
};

struct rp_use {
    int64_t below; /* as an index; 0: not one */
    enum rp_use_range range;
    bool definite;  /* a matrix that a Cholesky decomposition must take, or a triangle to solve */
    bool has_start; /* begins a reduction, with what changes nothing: */
    double start;
};

struct rp_uses; /* who reads each value of a program */
enum rp_code rp_uses_new(const struct rp_program *p, struct rp_uses **out, struct rp_err *err);
void rp_uses_free(struct rp_uses *uses); /* NULL is fine */

/* Of input i of the signature. */
void rp_uses_look(struct rp_uses *uses, const struct rp_signature *slots, size_t i,
                  struct rp_use *out);
