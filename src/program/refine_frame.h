/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What refine.c and refine_dynamic.c share: the walk over one computation for given arguments. */
#include "program/copy.h"
#include "program/fold.h"
#include "program/program_builder.h"

/*
 * The result of an operation. A known value is not added to the new program before an operation
 * takes it, so computations of shapes disappear.
 */
struct rp_refined {
    uint32_t shape;       /* of the new program */
    uint32_t op;          /* in the open computation of the builder; RP_NONE if not there yet */
    uint32_t source;      /* the constant of the old program to which it is equal, or RP_NONE */
    const int64_t *known; /* elements, or NULL */
    const struct rp_refined *parts; /* of a tuple */
};

struct rp_refine {
    const struct rp_program *p;
    struct rp_program_builder b;
    struct rp_program_copy copy;
    struct rp_arena scratch;
    RP_VEC(struct rp_refine_instance) done;
    unsigned depth;
    uint32_t made; /* number for names */
    struct rp_err *err;
};

struct rp_refine_frame {
    struct rp_refine *c;
    uint32_t first;            /* operation */
    struct rp_refined *values; /* by operation - first */
    const struct rp_refined *args;
    size_t nargs;
};

/* The operands of an operation, with what is known of them. */
struct rp_refine_op {
    uint32_t op;
    unsigned code;
    size_t n;
    struct rp_refined **operands;
    struct rp_known *known;
    struct rp_infer_dims *dims;
    struct rp_attr set[4]; /* attributes that replace its own */
    size_t nset;
    uint32_t left_out; /* the key of an attribute that it does not get; 0 if it gets all */
};

void rp_refine_dims(const struct rp_program *p, uint32_t shape, struct rp_infer_dims *out);
/* Makes a shape of the new program with the element type of one of the old. */
enum rp_code rp_refine_array(struct rp_refine *c, unsigned elem, const struct rp_infer_dims *dims,
                             uint32_t *shape);
/* Adds the operation to the new program as r->code with its first n operands; `value` gets its
   shape and index. `called` has n computations of the new program. */
enum rp_code rp_refine_emit(struct rp_refine_frame *f, const struct rp_refine_op *r, size_t n,
                            uint32_t shape, const uint32_t *called, size_t ncalled,
                            struct rp_refined *value);
/* Adds an operation that the old program does not have. */
enum rp_code rp_refine_step(struct rp_refine_frame *f, unsigned code, uint32_t shape,
                            struct rp_refined *operand, const struct rp_attr *attr,
                            struct rp_refined *value);
/* Fails with a message that begins with the operation's name and opcode. */
enum rp_code rp_refine_fail(const struct rp_refine *c, uint32_t op, enum rp_code code,
                            const char *why);

/* ---- refine_dynamic.c ---- */

/* Refines operations that take shapes, broadcasts and assertions; *done tells if it was one. */
enum rp_code rp_refine_dynamic(struct rp_refine_frame *f, struct rp_refine_op *r,
                               struct rp_refined *value, bool *done);
