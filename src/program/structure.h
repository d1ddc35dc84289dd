/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The structure of a program, independent of names: validation, its cost, and a hash that is the
 * same for all files of a program.
 */
#include "program/program.h"

/* Returns RP_FORMAT and the operation's name if an operation has the wrong number of operands, a
   parameter number is missing or given twice, a tuple has no such part, or computations call each
   other in a circle. */
enum rp_code rp_program_validate(const struct rp_program *p, struct rp_err *err);

/*
 * Structural hashes; in the arena. Names, ids, metadata, placement, the order of computations and
 * of independent operations do not count; operands, shapes, layouts other than the default,
 * attributes and constants of up to RP_HASH_ELEMENTS elements do. Of larger constants only the
 * shape counts, because text dumps leave their values out.
 */
#define RP_HASH_ELEMENTS 10
struct rp_hashes {
    uint64_t program; /* of the entry computation and of computations that are never called */
    uint64_t *computation, *op;
    bool *reachable;  /* the entry and the computations that it calls, directly or not */
    uint64_t *local;  /* of operations alone: without operands, called computations and numbers of
                         parameters */
    uint64_t *opcode; /* of the names of operations in their language */
    uint64_t *shape;  /* of shapes */
};
enum rp_code rp_program_hash(const struct rp_program *p, struct rp_arena *arena,
                             struct rp_hashes *out, struct rp_err *err);

/* Whether an attribute counts for the hash, and the hash of its value. */
bool rp_attr_counts(const struct rp_program *p, uint32_t op, const struct rp_attr *attr);
uint64_t rp_attr_hash(const struct rp_program *p, const struct rp_attr *attr);

/*
 * Floating-point operations, transcendental ones (a function such as exp or rsqrt is one) and bytes
 * read and written, as docs/definitions.md has them; in the arena. An operation that calls
 * computations includes them; a loop counts as often as the compiler says it runs, else once.
 */
struct rp_costs {
    struct rp_cost program; /* of the entry computation */
    struct rp_cost *computation, *op;
};
enum rp_code rp_program_count(const struct rp_program *p, struct rp_arena *arena,
                              struct rp_costs *out, struct rp_err *err);

/* How often a loop runs according to its backend_config; 1 if that is not known. */
int64_t rp_op_trip_count(const struct rp_program *p, uint32_t op);
