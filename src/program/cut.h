/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Makes programs from parts of an HLO or StableHLO program; the results are HLO. The new program
 * borrows attribute values and literals of the old one, which must outlive it. Names, metadata and
 * source lines are kept; aliases, donated buffers and control dependencies are not.
 */
#include "program/program.h"

/* A parameter of the new program is an array. A tuple that is needed becomes one parameter for each
   of its arrays; tokens are made anew. */
struct rp_cut_input {
    uint32_t op;   /* the operation of the old program whose value it is */
    uint32_t leaf; /* which of its arrays, counted depth first without tokens */
};

struct rp_cut {
    uint32_t computation;
    const uint8_t *keep; /* by position in the computation: not zero if the operation is taken */
    const uint32_t *outputs; /* kept operations whose arrays are the new results */
    size_t noutputs;
    bool apart; /* operands become parameters even if they are kept: no operation sees the result of
                   another */
};

struct rp_cut_program {
    struct rp_program *program;
    RP_VEC(struct rp_cut_input) inputs; /* by parameter number */
    uint32_t nops;                      /* the number of kept operations, without constants */
};

/*
 * Makes the kept operations an entry computation, with all computations that they call. Operands
 * that are not kept become parameters; constants with known values are copied instead. The result
 * must be released by rp_cut_release also after a failure.
 */
enum rp_code rp_program_cut(const struct rp_program *p, const struct rp_cut *cut,
                            struct rp_cut_program *out, struct rp_err *err);
void rp_cut_release(struct rp_cut_program *cut);

/*
 * Copies the whole program so that every use of the operation of that name sees its value doubled
 * (negated if it is a predicate): a defect to try searches with. *planted is false if no operation
 * has the name; returns RP_UNSUPPORTED if its result is not an array of numbers.
 */
enum rp_code rp_program_plant(const struct rp_program *p, const char *name, struct rp_program **out,
                              bool *planted, struct rp_err *err);

/*
 * Copies the program with calls and fusions replaced by what they call, in every computation that
 * is still called. Loops become `iterations` copies of their bodies; 0 keeps loops.
 */
enum rp_code rp_program_flatten(const struct rp_program *p, int64_t iterations,
                                struct rp_program **out, struct rp_err *err);

/* The number of arrays in a shape, tokens not counted. */
size_t rp_shape_leaves(const struct rp_program *p, uint32_t shape);
