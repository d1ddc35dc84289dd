/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Rewrites queries for which SQLite would read every row of a table to add it up, so that it reads
 * groups of rows instead (groups.h):
 *
 *     select name, count(*), max(dur_ns) from kernels where rank = 0 group by 1
 *     select name, coalesce(sum("#0"), 0), max("#1") from "#0" as kernels where rank = 0 group by 1
 *
 * Each innermost SELECT of one table is considered alone. It is left as it is if anything in it is
 * unknown: a function, a name, a clause. So a rewritten query has the same answer, and any other is
 * only slower.
 */
#include "query/groups.h"

#if RP_HAVE_SQLITE
#define RP_AGGREGATES_TABLES 8

struct rp_aggregates {
    struct rp_groups_table tables[RP_AGGREGATES_TABLES]; /* "#0", "#1", … */
    size_t n;
    char *sql; /* to be freed by sqlite3_free; NULL if nothing was changed */
};

/* tables: as registered, with RP_TABLE_COUNT elements. Returns false if memory runs out. */
bool rp_aggregates_rewrite(const char *sql, const struct rp_vtab_table *tables,
                           struct rp_aggregates *out);
#endif
