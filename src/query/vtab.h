/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The tables as virtual tables of SQLite: rows are read where they are. Conditions on integers,
 * names and words are tested here, before SQLite sees a row; ranges of start times and equal ids
 * find their rows without a walk. SQLite tests all of them again, so that a condition which cannot
 * be tested here only costs time.
 */
#include "rp_config.h"

#if RP_HAVE_SQLITE
#include "query/scan.h"

struct rp_vtab {
    sqlite3_vtab base;
    struct rp_vtab_table *t;
};

/* Makes all tables known to a connection, and the function arg(rank, event, key). tables: of
   RP_TABLE_COUNT elements, which outlive the connection. */
int rp_vtab_register(sqlite3 *db, struct rp_tables *tables, int64_t deadline_ns,
                     struct rp_vtab_table *out);
void rp_vtab_release(struct rp_vtab_table *table);

/* What all modules share. idxStr is the plan of rp_scan_begin. */
int rp_vtab_connect(sqlite3 *db, void *table, int argc, const char *const *argv, sqlite3_vtab **out,
                    char **message);
int rp_vtab_disconnect(sqlite3_vtab *v);
int rp_vtab_best(sqlite3_vtab *base, sqlite3_index_info *info);
void rp_vtab_value(const struct rp_table_rank *r, const struct rp_table_column *column, size_t row,
                   sqlite3_context *out);
#endif
