/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Queries that SQLite would answer by taking every row of a table to add it up are written anew, so
 * that it takes groups of rows (groups.h):
 *
 *     select name, count(*), max(dur_ns) from kernels where rank = 0 group by 1
 *     select name, coalesce(sum("#0"), 0), max("#1") from "#0" as kernels where rank = 0 group by 1
 *
 * Each innermost SELECT of one table is considered alone. It is left as it is where anything in it
 * is not known here: a function, a name, a clause. So what is written anew has the same answer, and
 * what is not is only slower.
 */
#include "query/groups.h"

#if RP_HAVE_SQLITE
#define RP_AGGREGATES_TABLES 8

struct rp_aggregates {
    struct rp_groups_table tables[RP_AGGREGATES_TABLES]; /* "#0", "#1", … */
    size_t n;
    char *sql; /* of sqlite3_free; NULL: nothing was changed */
};

/* tables: as registered, of RP_TABLE_COUNT elements. False: no memory. */
bool rp_aggregates_rewrite(const char *sql, const struct rp_vtab_table *tables,
                           struct rp_aggregates *out);
#endif
