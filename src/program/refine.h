/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A program for inputs of any size ('?' in StableHLO) as the program for inputs of these sizes: HLO
 * in which every size is a number. What it computes shapes with is computed; its assertions about
 * shapes are checked; operations that take a shape become those that have it:
 *
 *     dynamic_broadcast_in_dim(x, s)  ->  broadcast(x)      dynamic_pad(x, 0, lo, hi, in)  ->
 * pad(x, 0)
 *
 * The new program borrows values of the old one, which must outlive it.
 */
#include "program/program.h"

struct rp_refine_shape { /* of a parameter */
    const int64_t *dims;
    uint32_t rank;
    bool given; /* otherwise as in the program */
};

/* Whether a size somewhere in it is not known. */
bool rp_program_is_dynamic(const struct rp_program *p);

/* shapes: n, by parameter number. RP_USAGE where one is missing, with its dimension; RP_FORMAT
   where they do not fit the program; RP_UNSUPPORTED where a shape depends on values of the inputs.
 */
enum rp_code rp_program_refine(const struct rp_program *p, const struct rp_refine_shape *shapes,
                               size_t n, struct rp_program **out, struct rp_err *err);

/* "in0=8x128,in2=4" into shapes, in the arena. */
enum rp_code rp_refine_parse(const char *text, struct rp_arena *arena,
                             struct rp_refine_shape **shapes, size_t *n, struct rp_err *err);

/* The operation of HLO that an operation of StableHLO is once the shape that it takes is known, or
   RP_OP_FOREIGN: "stablehlo.dynamic_iota" is an iota. */
unsigned rp_refine_fixed(const char *name);
