/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The tables as virtual tables of SQLite: rows are read where they are. Conditions are tested as in
 * scan.h. SQLite tests all of them again, so that a condition which cannot be tested here only
 * costs time.
 */
#include "rp_config.h"

#if RP_HAVE_SQLITE
#include "query/scan.h"

struct rp_vtab {
    sqlite3_vtab base;
    struct rp_vtab_table *t;
};

/* Registers all tables and the function arg(rank, event, key) with a connection. tables has
   RP_TABLE_COUNT elements, which must outlive the connection. */
int rp_vtab_register(sqlite3 *db, struct rp_tables *tables, int64_t deadline_ns,
                     struct rp_vtab_table *out);
void rp_vtab_release(struct rp_vtab_table *table);

/* Functions that all modules share. idxStr is the plan of rp_scan_begin. */
int rp_vtab_connect(sqlite3 *db, void *table, int argc, const char *const *argv, sqlite3_vtab **out,
                    char **message);
int rp_vtab_disconnect(sqlite3_vtab *v);
int rp_vtab_best(sqlite3_vtab *base, sqlite3_index_info *info);
void rp_vtab_value(const struct rp_table_rank *r, const struct rp_table_column *column, size_t row,
                   sqlite3_context *out);
#endif
