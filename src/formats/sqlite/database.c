/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The database is opened from memory (sqlite3_deserialize, read-only), so that no journal, no other
 * file and no change of the file is involved. Then everything that a file can ask SQLite to do is
 * switched off: views, triggers, extensions, functions in the schema; an authorizer lets only reads
 * of tables pass. Sizes and the number of rows are limited: a damaged tree can contain itself, and
 * would then have more rows than a file of its size can hold.
 */
#include "formats/sqlite/database.h"

#include "rp_config.h"

#if RP_HAVE_SQLITE
#include "base/vec.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_TABLES  100000
#define MOST_COLUMNS 32
#define STEPS        200000 /* steps of SQLite's machine between two calls of the progress function */
#define HEADER_BYTES 100    /* size of a file's header; the parts of it that are used follow */
#define AT_PAGE_SIZE 16
#define AT_VERSIONS                                                               \
    18 /* two bytes, which are 2 if there may be changes in a second file, "-wal" \
        */
#define AT_PAGES    28
#define VERSION_LOG 2

struct rp_database {
    sqlite3 *sql;
    uint8_t *copy; /* a copy of the file if its header had to be changed, or NULL */
    uint64_t nbytes;
    const struct rp_read_options *options;
    RP_VEC(char *) tables;
    uint64_t opened; /* number of tables that were read, for the progress */
    bool cancelled;
    char damage[200];
};

struct rp_rows {
    struct rp_database *db;
    sqlite3_stmt *stmt;
    const char *table;
    uint64_t number; /* number of the current row, from 1 */
    int status;      /* of the last step */
};

/* ------------------------------------------------------------------ errors */

static enum rp_code sqlite_failed(struct rp_database *db, int status, const char *what,
                                  struct rp_err *err)
{
    if (status == SQLITE_NOMEM)
        return rp_err_nomem(err, "reading a SQLite file");
    if (db->cancelled)
        return rp_err_set(err, RP_CANCELLED, "reading was cancelled");
    if (status == SQLITE_TOOBIG)
        return rp_err_set(err, RP_LIMIT, "%s: a value exceeds the limit", what);
    return rp_err_set(err, RP_FORMAT, "%s: the SQLite file is damaged: %s", what,
                      db->sql ? sqlite3_errmsg(db->sql) : sqlite3_errstr(status));
}

/* ------------------------------------------------------------------ opening */

static uint64_t be32(const uint8_t *at)
{
    return (uint64_t)at[0] << 24 | (uint64_t)at[1] << 16 | (uint64_t)at[2] << 8 | at[3];
}

static uint64_t page_bytes(const uint8_t *header)
{
    uint64_t n = (uint64_t)header[AT_PAGE_SIZE] << 8 | header[AT_PAGE_SIZE + 1];

    return n == 1 ? 65536 : n;
}

/* SQLite refuses files that may have changes in a "-wal" file beside them, and files that are
   truncated. In a copy, the header says that there are no such changes, and that the file ends
   here. */
static enum rp_code change_header(struct rp_database *db, const uint8_t *bytes, size_t n,
                                  struct rp_err *err)
{
    uint64_t size = page_bytes(bytes), pages = n / size;
    bool cut = be32(bytes + AT_PAGES) > pages;

    if (!cut && bytes[AT_VERSIONS] != VERSION_LOG && bytes[AT_VERSIONS + 1] != VERSION_LOG)
        return RP_OK;
    db->copy = malloc(n);
    RP_TRY(rp_err_need(db->copy, err, "reading a SQLite file"));
    memcpy(db->copy, bytes, n);
    db->copy[AT_VERSIONS] = db->copy[AT_VERSIONS + 1] = 1;
    if (!cut)
        return RP_OK;
    for (int i = 0; i < 4; i++)
        db->copy[AT_PAGES + i] = (uint8_t)(pages >> (24 - 8 * i));
    snprintf(db->damage, sizeof db->damage, "the file is cut short at byte %zu", n);
    return RP_OK;
}

static int authorize(void *user, int action, const char *a, const char *b, const char *where,
                     const char *inside)
{
    (void)user;
    (void)a;
    (void)b;
    if (inside) /* a view or a trigger */
        return SQLITE_DENY;
    if (action == SQLITE_SELECT)
        return SQLITE_OK;
    return action == SQLITE_READ && where && !strcmp(where, "main") ? SQLITE_OK : SQLITE_DENY;
}

static int note_progress(void *user)
{
    struct rp_database *db = user;
    const struct rp_read_options *o = db->options;
    uint64_t done = db->tables.n ? db->nbytes / (db->tables.n + 1) * db->opened : 0;

    db->cancelled = o->progress && !o->progress(o->progress_user, done, db->nbytes);
    return db->cancelled;
}

static void restrict_database(struct rp_database *db)
{
    static const struct {
        int what, most;
    } limits[] = {
        {SQLITE_LIMIT_SQL_LENGTH, 1000000}, /* SQLite parses the schema with these limits */
        {SQLITE_LIMIT_COLUMN, 2000},         {SQLITE_LIMIT_EXPR_DEPTH, 500},
        {SQLITE_LIMIT_COMPOUND_SELECT, 100}, {SQLITE_LIMIT_VDBE_OP, 100000},
        {SQLITE_LIMIT_ATTACHED, 0},          {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50},
        {SQLITE_LIMIT_VARIABLE_NUMBER, 0},   {SQLITE_LIMIT_TRIGGER_DEPTH, 0},
        {SQLITE_LIMIT_WORKER_THREADS, 0}};
    static const struct {
        int what, on;
    } switches[] = {{SQLITE_DBCONFIG_DEFENSIVE, 1},
                    {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                    {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                    {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
                    {SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0},
                    {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
                    {SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0}};
    uint64_t text =
        db->options->limits ? db->options->limits->token_bytes : RP_LIMITS_DEFAULT.token_bytes;

    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        sqlite3_db_config(db->sql, switches[i].what, switches[i].on, (int *)NULL);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        sqlite3_limit(db->sql, limits[i].what, limits[i].most);
    sqlite3_limit(db->sql, SQLITE_LIMIT_LENGTH, text < 1000000000 ? (int)text : 1000000000);
    /* Pragmas must be set before the authorizer, which refuses them: cells are checked before they
       are used, and pages are read in place. */
    sqlite3_exec(db->sql, "PRAGMA cell_size_check=ON; PRAGMA mmap_size=1099511627776;", NULL, NULL,
                 NULL);
    sqlite3_set_authorizer(db->sql, authorize, NULL);
    sqlite3_progress_handler(db->sql, STEPS, note_progress, db);
}

/* Lists tables that have a tree of their own, which excludes views and virtual tables. */
static enum rp_code list_tables(struct rp_database *db, struct rp_err *err)
{
    static const char sql[] =
        "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND rootpage > 0";
    sqlite3_stmt *stmt = NULL;
    enum rp_code code = RP_OK;
    int status = sqlite3_prepare_v2(db->sql, sql, -1, &stmt, NULL);

    while (status == SQLITE_OK || status == SQLITE_ROW) {
        status = sqlite3_step(stmt);
        if (status != SQLITE_ROW)
            break;
        const char *name = (const char *)sqlite3_column_text(stmt, 0);
        char *kept = name ? strdup(name) : NULL;
        code = !kept ? rp_err_nomem(err, "listing tables") : rp_vec_push(&db->tables, kept, err);
        if (code != RP_OK) {
            free(kept);
            break;
        }
        if (db->tables.n > MOST_TABLES) {
            code = rp_err_set(err, RP_LIMIT, "more than %d tables", MOST_TABLES);
            break;
        }
    }
    if (code == RP_OK && status != SQLITE_DONE)
        code = sqlite_failed(db, status, "listing the tables", err);
    sqlite3_finalize(stmt);
    return code;
}

static enum rp_code open_memory(struct rp_database *db, const uint8_t *bytes, size_t n,
                                struct rp_err *err)
{
    /* SQLite does not write to a read-only image, but has no const in its interface. */
    unsigned char *image = db->copy ? db->copy : (unsigned char *)(uintptr_t)bytes;
    int status =
        sqlite3_open_v2(":memory:", &db->sql, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);

    if (status == SQLITE_OK)
        status = sqlite3_deserialize(db->sql, "main", image, (sqlite3_int64)n, (sqlite3_int64)n,
                                     SQLITE_DESERIALIZE_READONLY);
    if (status != SQLITE_OK)
        return sqlite_failed(db, status, "opening", err);
    restrict_database(db);
    return list_tables(db, err);
}

enum rp_code rp_database_open(const uint8_t *bytes, size_t n, const struct rp_read_options *options,
                              struct rp_database **out, struct rp_err *err)
{
    struct rp_database *db;

    *out = NULL;

    /* A file that ends before its last page cannot be opened, unless the caller asked for the part
       that is there. */
    if (n < HEADER_BYTES)
        return rp_err_set_at(err, RP_FORMAT, n, "byte %zu: the file ends inside its header", n);
    uint64_t pages = be32(bytes + AT_PAGES);
    uint64_t size = page_bytes(bytes);
    if (size < 512 || (size & (size - 1)))
        return rp_err_set_at(err, RP_FORMAT, AT_PAGE_SIZE,
                             "byte %d: pages of %llu bytes: the file is damaged", AT_PAGE_SIZE,
                             (unsigned long long)size);
    if (pages > n / size && !options->salvage) {
        return rp_err_set_at(err, RP_FORMAT, n,
                             "byte %zu: the file is cut short: %llu of its %llu bytes are missing",
                             n, (unsigned long long)(pages * size - n),
                             (unsigned long long)(pages * size));
    }
    db = calloc(1, sizeof *db);
    RP_TRY(rp_err_need(db, err, "reading a SQLite file"));
    db->options = options;
    db->nbytes = n;
    enum rp_code code = change_header(db, bytes, n, err);
    if (code == RP_OK)
        code = open_memory(db, bytes, n, err);
    if (code != RP_OK) {
        rp_database_close(db);
        return code;
    }
    *out = db;
    return RP_OK;
}

void rp_database_close(struct rp_database *db)
{
    if (!db)
        return;
    sqlite3_close_v2(db->sql);
    for (size_t i = 0; i < db->tables.n; i++)
        free(db->tables.at[i]);
    rp_vec_release(&db->tables);
    free(db->copy);
    free(db);
}

const char *rp_database_table(const struct rp_database *db, size_t i)
{
    return i < db->tables.n ? db->tables.at[i] : NULL;
}

/* The name as the file spells it, or NULL. Names of tables in SQLite ignore case. */
static const char *find_table(const struct rp_database *db, const char *table)
{
    for (size_t i = 0; i < db->tables.n; i++)
        if (!sqlite3_stricmp(db->tables.at[i], table))
            return db->tables.at[i];
    return NULL;
}

bool rp_database_has(const struct rp_database *db, const char *table)
{
    return find_table(db, table) != NULL;
}

bool rp_database_has_column(struct rp_database *db, const char *table, const char *column)
{
    return find_table(db, table) &&
           sqlite3_table_column_metadata(db->sql, "main", table, column, NULL, NULL, NULL, NULL,
                                         NULL) == SQLITE_OK;
}

const char *rp_database_damage(const struct rp_database *db)
{
    return *db->damage ? db->damage : NULL;
}

/* ------------------------------------------------------------------ rows */

/* Makes "SELECT "a",NULL,"b" FROM main."t" WHERE "c" IS NOT NULL", which the caller frees; NULL if
   memory ran out. */
static char *make_select(struct rp_database *db, const char *table, const char *with,
                         const char *const *columns)
{
    sqlite3_str *sql = sqlite3_str_new(db->sql);

    for (size_t i = 0; i < MOST_COLUMNS && columns[i]; i++) {
        sqlite3_str_appendall(sql, i ? "," : "SELECT");

        /* Appends the SQL of a column: for "a|b|c" the first that has a value, or NULL if the table
           has none of them. A failure stays in the text until its end. */
        const char *names = columns[i];
        bool any = false, several = strchr(names, '|') != NULL;
        char name[64];
        for (size_t n; *names; names += n + (names[n] == '|')) {
            n = strcspn(names, "|");
            snprintf(name, sizeof name, "%.*s", (int)n, names);
            if (!rp_database_has_column(db, table, name))
                continue;
            if (several)
                sqlite3_str_appendf(sql, "%s WHEN main.\"%w\".\"%w\" IS NOT NULL THEN",
                                    any ? "" : " CASE", table, name);
            sqlite3_str_appendf(sql, " main.\"%w\".\"%w\"", table, name);
            any = true;
        }
        sqlite3_str_appendall(sql, !any ? " NULL" : several ? " END" : "");
    }
    sqlite3_str_appendf(sql, " FROM main.\"%w\"", table);
    if (with)
        sqlite3_str_appendf(sql, " WHERE main.\"%w\".\"%w\" IS NOT NULL", table, with);
    return sqlite3_str_finish(sql);
}

static bool rows_next(struct rp_rows *rows)
{
    if (rows->number > rows->db->nbytes / 2) { /* a row has at least a pointer of two bytes */
        rows->status = SQLITE_CORRUPT;
        return false;
    }
    rows->status = sqlite3_step(rows->stmt);
    rows->number += rows->status == SQLITE_ROW;
    return rows->status == SQLITE_ROW;
}

/* Judges how reading a table ended. Damage that the options allow is noted. */
static enum rp_code rows_end(struct rp_rows *rows, struct rp_err *err)
{
    struct rp_database *db = rows->db;
    char what[160];

    if (rows->status == SQLITE_DONE)
        return RP_OK;
    snprintf(what, sizeof what, "table '%.100s', after row %llu", rows->table,
             (unsigned long long)rows->number);
    enum rp_code code = sqlite_failed(db, rows->status, what, err);
    if (code != RP_FORMAT || !db->options->salvage)
        return code;
    if (!*db->damage)
        snprintf(db->damage, sizeof db->damage, "the SQLite file is damaged: %s", what);
    return RP_OK;
}

enum rp_code rp_rows_with(struct rp_database *db, const char *table, const char *with,
                          const char *const *columns, rp_row_fn *each, void *user,
                          struct rp_err *err)
{
    struct rp_rows rows = {.db = db, .table = find_table(db, table)};
    enum rp_code code = RP_OK;

    db->opened++;
    if (!rows.table || (with && !rp_database_has_column(db, rows.table, with)))
        return RP_OK;
    char *sql = make_select(db, rows.table, with, columns);
    rows.status = sql ? sqlite3_prepare_v2(db->sql, sql, -1, &rows.stmt, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    if (rows.status == SQLITE_OK) {
        while (code == RP_OK && rows_next(&rows))
            code = each(user, &rows, err);
    }
    if (code == RP_OK)
        code = rows_end(&rows, err);
    sqlite3_finalize(rows.stmt);
    return code;
}

enum rp_code rp_rows_each(struct rp_database *db, const char *table, const char *const *columns,
                          rp_row_fn *each, void *user, struct rp_err *err)
{
    return rp_rows_with(db, table, NULL, columns, each, user, err);
}

uint64_t rp_rows_number(const struct rp_rows *rows)
{
    return rows->number;
}

const char *rp_rows_table(const struct rp_rows *rows)
{
    return rows->table;
}

bool rp_cell_has(const struct rp_rows *rows, int column)
{
    return sqlite3_column_type(rows->stmt, column) != SQLITE_NULL;
}

/* A row is read with one call for each value and cheap calls for its parts, because calls take a
 * large part of the time. */
bool rp_cell_get(const struct rp_rows *rows, int column, int64_t *out)
{
    sqlite3_value *value = sqlite3_column_value(rows->stmt, column);

    if (sqlite3_value_type(value) != SQLITE_INTEGER)
        return false;
    *out = sqlite3_value_int64(value);
    return true;
}

int64_t rp_cell_int(const struct rp_rows *rows, int column, int64_t otherwise)
{
    int64_t value = sqlite3_column_int64(rows->stmt, column);

    return value || !otherwise || rp_cell_has(rows, column) ? value : otherwise;
}

double rp_cell_real(const struct rp_rows *rows, int column)
{
    return sqlite3_column_double(rows->stmt, column);
}

const char *rp_cell_text(const struct rp_rows *rows, int column, size_t *n)
{
    const void *text = sqlite3_column_type(rows->stmt, column) == SQLITE_BLOB
                           ? sqlite3_column_blob(rows->stmt, column)
                           : sqlite3_column_text(rows->stmt, column);

    *n = text ? (size_t)sqlite3_column_bytes(rows->stmt, column) : 0;
    return text ? text : "";
}

#endif
