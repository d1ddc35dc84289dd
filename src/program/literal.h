/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Decodes the values of constants on demand. Whichever form the file has, the elements come out
 * little-endian and row-major in the order of the dimensions, each in whole bytes (types under
 * eight bits take one).
 */
#include "program/program.h"

/* MLIR may write one value for all elements; a literal keeps that form up to this many elements. */
#define RP_LITERAL_REPEAT 64

/* Returns the bytes of one element in that form; 0 if the type has no values. */
size_t rp_literal_unit(unsigned elem);

/* Stores the value of an element of `unit` bytes, little-endian. */
void rp_literal_store(unsigned char *out, size_t unit, uint64_t bits);

/* The field of a LiteralProto that holds the values of a type, and whether they are varints. */
uint32_t rp_literal_field(unsigned elem, bool *varints);

/* Whether it can be decoded: it is an array whose values were not left out. */
bool rp_literal_known(const struct rp_program *p, const struct rp_literal *literal);

/*
 * Writes all elements; cap must be elements * unit. Returns RP_FORMAT if the text or the list does
 * not fit the shape. The literal must be known.
 */
enum rp_code rp_literal_decode(const struct rp_program *p, const struct rp_literal *literal,
                               void *out, size_t cap, struct rp_err *err);

/* Converts row-major values to the order of the shape's layout. */
void rp_literal_lay(const struct rp_program *p, uint32_t shape, const void *values, void *out);

/* Prints one element as HLO text that reads back as the same value; a cap of 96 is enough. */
size_t rp_literal_print(unsigned elem, const void *element, char *out, size_t cap);

/* Finds the minor-to-major order of a shape's dimensions, rank entries, from its layout; false if
   it is row-major. */
bool rp_shape_minor_to_major(const struct rp_program *p, uint32_t shape, uint32_t *out, size_t cap);
