/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Programs made of parts of an HLO or StableHLO program, as HLO. The new program borrows attribute
 * values and literals of the old one, which must outlive it. Names, metadata and source lines are
 * kept; aliases, donated buffers and control dependencies are not.
 */
#include "program/program.h"

/* A parameter of the new program is an array; a tuple that is needed becomes one parameter for each
   of its arrays, tokens are made anew. */
struct rp_cut_input {
    uint32_t op;   /* of the old program: whose value it is */
    uint32_t leaf; /* which of its arrays, counted depth first without tokens */
};

struct rp_cut {
    uint32_t computation;
    const uint8_t *keep;     /* by position in the computation: non-zero for those to take */
    const uint32_t *outputs; /* operations that are kept; their arrays are the new results */
    size_t noutputs;
    bool apart; /* operands become parameters even where they are kept: no operation sees the result
                   of another */
};

struct rp_cut_program {
    struct rp_program *program;
    RP_VEC(struct rp_cut_input) inputs; /* by parameter number */
    uint32_t nops;                      /* operations that were kept, constants not counted */
};

/*
 * The kept operations as an entry computation, with all computations that they call. Operands that
 * are not kept become parameters; constants with known values are copied instead. Released in every
 * case by rp_cut_release.
 */
enum rp_code rp_program_cut(const struct rp_program *p, const struct rp_cut *cut,
                            struct rp_cut_program *out, struct rp_err *err);
void rp_cut_release(struct rp_cut_program *cut);

/*
 * A copy of the whole program in which every use of the operation of that name sees it doubled (of
 * predicates, negated): a defect to try searches with. *planted is false where no operation has the
 * name; RP_UNSUPPORTED where its result is no array of numbers.
 */
enum rp_code rp_program_plant(const struct rp_program *p, const char *name, struct rp_program **out,
                              bool *planted, struct rp_err *err);

/*
 * A copy whose calls and fusions are replaced by what they call, in every computation that is still
 * called. iterations: loops become so many copies of their bodies; 0 keeps loops.
 */
enum rp_code rp_program_flatten(const struct rp_program *p, int64_t iterations,
                                struct rp_program **out, struct rp_err *err);

/* The number of arrays in a shape, tokens not counted. */
size_t rp_shape_leaves(const struct rp_program *p, uint32_t shape);
