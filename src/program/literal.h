/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The values of constants, on demand. Whatever form the file has them in, they come out in one: the
 * elements little-endian, row-major in the order of the dimensions, each in whole bytes (types
 * under eight bits take one).
 */
#include "program/program.h"

/* MLIR may write one value for all elements; a literal keeps it so up to this many. */
#define RP_LITERAL_REPEAT 64

/* Bytes of one element in that form; 0 where the type has no values. */
size_t rp_literal_unit(unsigned elem);

/* The value of an element of so many bytes, little-endian. */
void rp_literal_store(unsigned char *out, size_t unit, uint64_t bits);

/* The field of a LiteralProto that holds the values of a type, and whether they are varints. */
uint32_t rp_literal_field(unsigned elem, bool *varints);

/* Whether it can be decoded: it was not left out, and is an array. */
bool rp_literal_known(const struct rp_program *p, const struct rp_literal *literal);

/*
 * Writes all elements, cap must be elements * unit. RP_FORMAT where the text or the list does not
 * fit the shape. The literal must be known.
 */
enum rp_code rp_literal_decode(const struct rp_program *p, const struct rp_literal *literal,
                               void *out, size_t cap, struct rp_err *err);

/* Row-major values in the order of the shape's layout. */
void rp_literal_lay(const struct rp_program *p, uint32_t shape, const void *values, void *out);

/* One element as HLO text writes it, so that it reads back as the same; cap of 96 is enough. */
size_t rp_literal_print(unsigned elem, const void *element, char *out, size_t cap);

/* Minor-to-major order of a shape's dimensions, from its layout; false: row-major. rank entries. */
bool rp_shape_minor_to_major(const struct rp_program *p, uint32_t shape, uint32_t *out, size_t cap);
