/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * SQLite files of other recorders, read without trusting them. The content is in memory, mapped or
 * decompressed: SQLite opens no file. Only tables can be read, by plain SELECT statements that are
 * made here: no view, trigger, virtual table, function, extension or attached file. Needs
 * libsqlite3 (RP_HAVE_SQLITE).
 *
 *     enum { START, END, NAME };
 *     static const char *const columns[] = {"start", "end", "nameId", NULL};
 *     RP_TRY(rp_rows_each(db, "EVENTS", columns, read_event, reader, err));
 *     ... in read_event: use(rp_cell_int(rows, START, 0));
 *
 * A missing table has no rows and a missing column no values, because recorders add them from
 * version to version.
 */
#include "formats/formats.h"

struct rp_database;
struct rp_rows;

/* bytes must outlive the database. */
enum rp_code rp_database_open(const uint8_t *bytes, size_t n, const struct rp_read_options *options,
                              struct rp_database **out, struct rp_err *err);
void rp_database_close(struct rp_database *db); /* may be NULL */

bool rp_database_has(const struct rp_database *db, const char *table);
/* The i-th table in the order of the file, borrowed, or NULL. */
const char *rp_database_table(const struct rp_database *db, size_t i);
bool rp_database_has_column(struct rp_database *db, const char *table, const char *column);

/* Says where reading a table stopped at damage that the options allow (salvage); NULL if it did
   not. */
const char *rp_database_damage(const struct rp_database *db);

/* Calls `each` for every row. columns: NULL-terminated, at most 32; "a|b" means the first of these
   that has a value. If the table does not exist, no row is read. */
typedef enum rp_code rp_row_fn(void *user, const struct rp_rows *rows, struct rp_err *err);
enum rp_code rp_rows_each(struct rp_database *db, const char *table, const char *const *columns,
                          rp_row_fn *each, void *user, struct rp_err *err);

/* The same for the rows in which the column `with` has a value. */
enum rp_code rp_rows_with(struct rp_database *db, const char *table, const char *with,
                          const char *const *columns, rp_row_fn *each, void *user,
                          struct rp_err *err);

/* The number of the current row, from 1, and its table, for messages. */
uint64_t rp_rows_number(const struct rp_rows *rows);
const char *rp_rows_table(const struct rp_rows *rows);

/* These give the values of the current row. */
bool rp_cell_has(const struct rp_rows *rows, int column); /* the value exists, and is not NULL */
bool rp_cell_get(const struct rp_rows *rows, int column, int64_t *out); /* false: not an integer */
int64_t rp_cell_int(const struct rp_rows *rows, int column, int64_t otherwise);
double rp_cell_real(const struct rp_rows *rows, int column);
/* A text or blob, borrowed until the next row; "" with n = 0 if there is none. */
const char *rp_cell_text(const struct rp_rows *rows, int column, size_t *n);
