/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A table whose rows are groups: for all rows of another table that are equal in the columns that a
 * query uses, it has one row with their number, sums, least and greatest values. SQLite adds up a
 * few groups instead of millions of rows. Equal rows may be in several groups: when so many are
 * known that they fit into no cache, the table gives them out and begins anew.
 */
#include "query/vtab.h"

#if RP_HAVE_SQLITE
#define RP_GROUPS_SUMS 16

enum rp_groups_what {
    RP_GROUPS_ROWS,   /* how many rows */
    RP_GROUPS_VALUES, /* the number of rows that have a value */
    RP_GROUPS_SUM,
    RP_GROUPS_LEAST,
    RP_GROUPS_MOST
};

struct rp_groups_sum {
    uint8_t what;                         /* enum rp_groups_what */
    const struct rp_table_column *column; /* integers, except for VALUES; NULL for ROWS */
};

struct rp_groups_table {
    struct rp_vtab_table t; /* its columns, and hidden ones "#0", "#1", … for the sums */
    struct rp_groups_sum sums[RP_GROUPS_SUMS];
    /* How often the query names a column outside of sums; a BETWEEN counts twice. If as many
       conditions on it are tested here, SQLite never reads the column. */
    uint32_t uses[RP_TABLE_COLUMNS_MAX];
};

int rp_groups_register(sqlite3 *db, const char *name, struct rp_groups_table *table);
#endif
