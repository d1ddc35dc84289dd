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

/* RP_NOMEM; release it in every case. */
enum rp_code rp_program_builder_init(struct rp_program_builder *b, const char *language,
                                     const char *name, struct rp_err *err);
void rp_program_builder_release(struct rp_program_builder *b);
/* Remembers a failure, if it is the first one. */
void rp_program_builder_fail(struct rp_program_builder *b, enum rp_code code, const char *why);

/* Operations added from now on belong to a new computation, until it is closed or discarded. */
void rp_program_builder_open(struct rp_program_builder *b);
/* Appends the innermost computation to the program; returns its id. */
uint32_t rp_program_builder_close(struct rp_program_builder *b, const char *name, uint32_t root);
void rp_program_builder_discard(struct rp_program_builder *b);

/* A shape with the default layout, "{1,0}", given. Dimensions must not be negative. */
uint32_t rp_program_builder_array(struct rp_program_builder *b, unsigned elem, const int64_t *dims,
                                  size_t rank);
uint32_t rp_program_builder_tuple(struct rp_program_builder *b, const uint32_t *parts, size_t n);

/* A new operation of the innermost computation. `value` is a parameter number or tuple index; 0
   for other operations. What follows concerns this operation until the next one is added. */
uint32_t rp_program_builder_add(struct rp_program_builder *b, unsigned code, const char *name,
                                uint32_t shape, int64_t value);
/* The same with all that is known of it; its strings are of the builder's program. */
uint32_t rp_program_builder_op(struct rp_program_builder *b, const struct rp_new_op *op);
/* A constant. The elements are little-endian and row-major; borrowed. */
uint32_t rp_program_builder_constant(struct rp_program_builder *b, const char *name, uint32_t shape,
                                     const void *elements, size_t bytes);
void rp_program_builder_operand(struct rp_program_builder *b, uint32_t index);
void rp_program_builder_call(struct rp_program_builder *b, uint32_t computation);
void rp_program_builder_attr(struct rp_program_builder *b, struct rp_attr attr);

/* Completes and validates the program, which belongs to the caller then. All computations must be
   closed. */
enum rp_code rp_program_builder_finish(struct rp_program_builder *b, uint32_t entry,
                                       struct rp_program **out, struct rp_err *err);
