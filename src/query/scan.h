/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds the rows of a table that fit conditions of SQL, part by part. Conditions on integers, names
 * and words are tested here, before SQLite sees a row; ranges of start times and equal ids find
 * their rows without a walk.
 */
#include "rp_config.h"

#if RP_HAVE_SQLITE
#include "query/open.h"

#include <sqlite3.h>

#define RP_SCAN_CONDITIONS 16

/* Rows by equal values of a column: those of value v are rows[begin[v]] to rows[begin[v + 1] -
   1]. */
struct rp_scan_index {
    uint32_t n, *begin, *rows; /* n is the number of values; begin is NULL if not yet made */
    uint64_t asked;            /* how often rows were looked for */
};

struct rp_scan_part {
    struct rp_map names; /* from hash of a text of the trace to its number */
    bool has_names;
    struct rp_scan_index *indexes; /* by column */
};

/* A table of a connection. */
struct rp_vtab_table {
    struct rp_tables *tables;
    const struct rp_table *table;
    const struct rp_table_column *columns;
    bool declaring;      /* SQLite reads the declaration, which the authorizer must allow */
    int64_t deadline_ns; /* of CLOCK_MONOTONIC */
    size_t nparts;
    struct rp_scan_part *parts; /* NULL: not used yet */
    size_t nsums;               /* for a table of groups (groups.h) */
    struct rp_err err;          /* why SQLite failed */
};

struct rp_scan_condition {
    const struct rp_table_column *column;
    uint8_t op; /* SQLITE_INDEX_CONSTRAINT_… */
    bool is_text;
    int64_t value;    /* for a text that was found: its number in this part */
    const char *text; /* the scan's own */
    size_t len;
    uint8_t *fits; /* for LIKE and GLOB: by text of the trace */
};

/* Zero except for the table. */
struct rp_scan {
    struct rp_vtab_table *t;
    struct rp_scan_condition conditions[RP_SCAN_CONDITIONS];
    size_t nconditions;
    size_t part; /* of the current row */
    const struct rp_table_rank *r;
    /* The current rows: numbers from row to end, or those in `list`. */
    size_t row, end;
    const uint32_t *list;
    size_t track; /* the next track, if events are searched by time, track by track */
    bool by_track;
    uint64_t looked;
    uint64_t *sorted; /* all rows that fit, part << 32 | row, if an order was asked for */
    size_t nsorted, at;
};

/* Begins at the first row that fits. plan: a pair of letters for each value, 'A' + the number of
   the column and the operation; then the order of the rows, if one is asked for (order.h). This and
   rp_scan_next return a status of SQLite. */
int rp_scan_begin(struct rp_scan *scan, const char *plan, int n, sqlite3_value **values);
int rp_scan_next(struct rp_scan *scan);
void rp_scan_end(struct rp_scan *scan);

static inline bool rp_scan_is_over(const struct rp_scan *scan)
{
    return scan->part >= scan->t->nparts;
}

static inline size_t rp_scan_row(const struct rp_scan *scan)
{
    return scan->list ? scan->list[scan->row] : scan->row;
}

static inline bool rp_scan_is_rank(const struct rp_table_column *c)
{
    return c->array == RP_ARRAY_RANK && c->offset == offsetof(struct rp_table_rank_row, rank);
}

#endif
