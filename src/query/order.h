/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Sorts rows of a table as ORDER BY, GROUP BY or a window asks, so that SQLite makes no records to
 * sort them. Every value becomes a number that sorts as SQLite sorts the values: for a text it is
 * the place among all texts that occur. Numbers are sorted by their digits, column by column from
 * the last on.
 */
#include "query/scan.h"

#if RP_HAVE_SQLITE
/* rows: part << 32 | number of the row. order: a pair of letters for each column, 'A' + its number
   and '+' or '-'. Returns a status of SQLite. */
int rp_order_rows(const struct rp_vtab_table *t, const char *order, uint64_t *rows, size_t n);
#endif
