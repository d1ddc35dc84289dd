/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whole columns of tables as arrays; loops without a call or a choice for each row. */
#include "tables/tables.h"

/* The bytes of a value in such an array: 1, 4 or 8. Not for bools and texts. */
size_t rp_gather_size(const struct rp_table_column *c);

/* Whether the values of a column are contiguous, as rp_gather would write them. */
bool rp_gather_in_place(const struct rp_table_rank *r, const struct rp_table_column *c);

/* Writes the values of n rows. A missing value is c->null, or 0 in a column that is not nullable.
   Not for bools and texts. */
void rp_gather(const struct rp_table_rank *r, const struct rp_table_column *c, size_t n, void *to);

/* Counts which of n values of that size are `null`. */
size_t rp_gather_nulls(const void *values, size_t size, size_t n, int64_t null);
/* Sets bit i if value i is not `null`; all n / 8 + 1 bytes are written. */
void rp_gather_valid(const void *values, size_t size, size_t n, int64_t null, uint8_t *bits);

/* Finds the range of the numbers by which a column with `via` finds its elements: the largest + 1
   (without RP_NONE), and whether one is RP_NONE. */
uint32_t rp_gather_reach(const struct rp_table_rank *r, const struct rp_table_column *c, size_t n,
                         bool *none);
/* to[i] = map[the number of row i]; -1 for RP_NONE. */
void rp_gather_mapped(const struct rp_table_rank *r, const struct rp_table_column *c, size_t n,
                      const int32_t *map, int32_t *to);
