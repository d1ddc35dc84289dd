/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Programs that are generated rather than read. A program holds the operations of a computation
 * next to each other; a generator often needs a second computation (the body of a loop, the
 * function of a reduction) while the first is unfinished. The builder collects the operations of
 * each open computation, innermost on top, and appends them to the program when it is closed, so
 * that computations are in the program before their callers.
 *
 * Operations are named by their index in their computation. The first failure sticks and is
 * reported by rp_program_builder_finish; until then indices are returned all the same.
 */
#include "program/program.h"

#define RP_PROGRAM_BUILDER_RANK 64 /* most dimensions of a shape */

struct rp_program_builder_scope;

struct rp_program_builder {
    struct rp_program *program;
    struct rp_program_builder_scope *open; /* innermost computation */
    enum rp_code code;                     /* of the first failure */
    struct rp_err err;
};

/* Returns RP_NOMEM on failure; must be released also then. */
enum rp_code rp_program_builder_init(struct rp_program_builder *b, const char *language,
                                     const char *name, struct rp_err *err);
void rp_program_builder_release(struct rp_program_builder *b);
/* Remembers a failure, if it is the first one. */
void rp_program_builder_fail(struct rp_program_builder *b, enum rp_code code, const char *why);

/* Begins a new computation, to which operations belong from now on until it is closed or
   discarded. */
void rp_program_builder_open(struct rp_program_builder *b);
/* Appends the innermost computation to the program and returns its id. */
uint32_t rp_program_builder_close(struct rp_program_builder *b, const char *name, uint32_t root);
void rp_program_builder_discard(struct rp_program_builder *b);

/* Makes a shape whose default layout, "{1,0}", is given. Dimensions must not be negative. */
uint32_t rp_program_builder_array(struct rp_program_builder *b, unsigned elem, const int64_t *dims,
                                  size_t rank);
uint32_t rp_program_builder_tuple(struct rp_program_builder *b, const uint32_t *parts, size_t n);

/* Adds an operation to the innermost computation. `value` is a parameter number or tuple index, and
   0 for other operations. The functions below concern this operation until the next one is
   added. */
uint32_t rp_program_builder_add(struct rp_program_builder *b, unsigned code, const char *name,
                                uint32_t shape, int64_t value);
/* Does the same with all that is known of the operation; its strings are those of the builder's
   program. */
uint32_t rp_program_builder_op(struct rp_program_builder *b, const struct rp_new_op *op);
/* Adds a constant. The elements are little-endian, row-major and borrowed. */
uint32_t rp_program_builder_constant(struct rp_program_builder *b, const char *name, uint32_t shape,
                                     const void *elements, size_t bytes);
void rp_program_builder_operand(struct rp_program_builder *b, uint32_t index);
void rp_program_builder_call(struct rp_program_builder *b, uint32_t computation);
void rp_program_builder_attr(struct rp_program_builder *b, struct rp_attr attr);

/* Completes and validates the program, which then belongs to the caller. All computations must be
   closed. */
enum rp_code rp_program_builder_finish(struct rp_program_builder *b, uint32_t entry,
                                       struct rp_program **out, struct rp_err *err);
