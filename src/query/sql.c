/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection has an empty database in memory beside the virtual tables. Everything that SQL can
 * do beyond reading is switched off: the authorizer allows only SELECT and functions, no file can
 * be attached, no extension loaded, nothing spills to a file. Memory is limited for SQLite and for
 * the answer, time by a look at the clock now and then.
 */
#include "query/sql.h"

#include "base/clock.h"
#include "query/aggregates.h"

#if RP_HAVE_SQLITE
#include <reprise/question.h>
#include <stdio.h>
#include <string.h>

#define STEPS 20000 /* steps of SQLite's machine between two looks at the clock */

struct connection {
    sqlite3 *sql;
    struct rp_tables *tables;
    struct rp_vtab_table vtabs[RP_TABLE_COUNT];
    struct rp_aggregates aggregates;
    int64_t deadline_ns, limit_ns;
    sqlite3_mutex *turn; /* locked from the first to the last use of SQLite if memory is limited */
    sqlite3_int64 old_limit; /* the limit of SQLite's heap in this process */
    bool cancelled, limited;
    struct rp_err *err;
};

static int authorize(void *user, int action, const char *a, const char *b, const char *where,
                     const char *inside)
{
    static const char *const forbidden[] = {"load_extension", "fts3_tokenizer", "edit", "readfile",
                                            "writefile"};
    const struct connection *c = user;

    (void)a;
    (void)where;
    (void)inside;
    for (size_t i = 0; i < RP_TABLE_COUNT; i++)
        if (c->vtabs[i].declaring)
            return SQLITE_OK;
    for (size_t i = 0; i < c->aggregates.n; i++)
        if (c->aggregates.tables[i].t.declaring)
            return SQLITE_OK;
    if (action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_RECURSIVE)
        return SQLITE_OK;
    if (action != SQLITE_FUNCTION)
        return SQLITE_DENY;
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++)
        if (!sqlite3_stricmp(b, forbidden[i]))
            return SQLITE_DENY;
    return SQLITE_OK;
}

static int look_at_clock(void *user)
{
    struct connection *c = user;
    struct rp_ctx *ctx = c->tables->ctx;

    if (ctx->progress && ctx->progress(ctx->progress_user, "query", 0, 0))
        c->cancelled = true;
    return c->cancelled || rp_clock_ns() > c->deadline_ns;
}

static void restrict_connection(struct connection *c)
{
    static const struct {
        int what, most;
    } limits[] = {{SQLITE_LIMIT_SQL_LENGTH, 1000000},
                  {SQLITE_LIMIT_LENGTH, 100000000},
                  {SQLITE_LIMIT_COLUMN, 1000},
                  {SQLITE_LIMIT_EXPR_DEPTH, 500},
                  {SQLITE_LIMIT_COMPOUND_SELECT, 200},
                  {SQLITE_LIMIT_VDBE_OP, 1000000},
                  {SQLITE_LIMIT_ATTACHED, 0},
                  {SQLITE_LIMIT_VARIABLE_NUMBER, 0},
                  {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
                  {SQLITE_LIMIT_WORKER_THREADS, 0},
                  {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000}};
    static const struct {
        int what, on;
    } switches[] = {{SQLITE_DBCONFIG_DEFENSIVE, 1},
                    {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                    {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                    {SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0},
                    {SQLITE_DBCONFIG_DQS_DML, 0},
                    {SQLITE_DBCONFIG_DQS_DDL, 0}, /* "x" is a name, never a text */
                    {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
                    {SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0}};

    sqlite3_exec(c->sql, "PRAGMA temp_store = MEMORY", NULL, NULL, NULL);
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        sqlite3_db_config(c->sql, switches[i].what, switches[i].on, (int *)NULL);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        sqlite3_limit(c->sql, limits[i].what, limits[i].most);
    sqlite3_set_authorizer(c->sql, authorize, c);
    sqlite3_progress_handler(c->sql, STEPS, look_at_clock, c);
}

/* Adds what may help to SQLite's message about a name that it does not know: the most similar one,
   or which tables have a column that those of the query lack. */
static const char *hint_of_name(const char *message, struct rp_arena *arena)
{
    static const char *const functions[] = {"median", "quantile",     "stddev", "histogram", "arg",
                                            "avg",    "group_concat", "total",  NULL};
    bool column = !strncmp(message, "no such column: ", 16);
    const char *name = strrchr(message, ' '), *names[RP_TABLE_COUNT * RP_TABLE_COLUMNS_MAX + 1];
    const char *near, *owners = "";
    size_t n = 0;

    if (!strncmp(message, "near \".\":", 9))
        return "; '.tables' and '.schema' are not SQL, but words of the question 'query'";
    if (!strncmp(message, "no such function: ", 18)) {
        near = rp_closest_word(rp_arena_text(arena, name + 1), functions);
        return near ? rp_arena_textf(arena, "; did you mean '%s'?", near) : "";
    }
    if (!column && strncmp(message, "no such table: ", 15) != 0)
        return "";
    if (strrchr(name, '.')) /* k.nmae */
        name = strrchr(name, '.');
    name = rp_arena_text(arena, name + 1);
    for (size_t i = 0; i < RP_TABLE_COUNT; i++)
        if (!column)
            names[n++] = rp_tables_all[i].name;
        else
            for (size_t k = 0; k < rp_tables_all[i].ncolumns; k++) {
                names[n++] = rp_tables_all[i].columns[k].name;
                if (!strcmp(names[n - 1], name))
                    owners = rp_arena_textf(arena, "%s%s'%s'", owners, *owners ? ", " : "",
                                            rp_tables_all[i].name);
            }
    names[n] = NULL;
    if (*owners)
        return rp_arena_textf(arena, "; it is a column of %s", owners);
    near = rp_closest_word(name, names);
    return near ? rp_arena_textf(arena, "; did you mean '%s'?", near) : "";
}

static enum rp_code sql_failed(struct connection *c, int status, struct rp_err *err)
{
    struct rp_arena arena = RP_ARENA_INIT;

    if (c->cancelled)
        return rp_err_set(err, RP_CANCELLED, "the query was cancelled");
    if (status == SQLITE_INTERRUPT)
        return rp_err_set(err, RP_LIMIT,
                          "the query takes longer than %.4g s, which is its limit (timeout)",
                          (double)c->limit_ns / 1e9);
    if (status == SQLITE_NOMEM)
        return rp_err_set(err, RP_LIMIT,
                          "the query needs more memory than its limit allows (memory)");
    for (size_t i = 0; i < RP_TABLE_COUNT; i++)
        if (c->vtabs[i].err.code != RP_OK) {
            *err = c->vtabs[i].err;
            return err->code;
        }
    if (status == SQLITE_AUTH)
        return rp_err_set(err, RP_USAGE, "a query can only read: %s", sqlite3_errmsg(c->sql));
    const char *message = sqlite3_errmsg(c->sql);
    enum rp_code code = rp_err_set(err, status == SQLITE_TOOBIG ? RP_LIMIT : RP_USAGE, "%s%s",
                                   message, hint_of_name(message, &arena));
    rp_arena_release(&arena);
    return code;
}

static enum rp_code connect_tables(struct connection *c, struct rp_tables *tables,
                                   const struct rp_sql_limits *limits, struct rp_err *err)
{
    int status;

    c->tables = tables;
    c->limit_ns = limits->ns;

    /* SQLite's limit is that of the process, so queries with one take turns: each has its own, and
       the last one restores the old limit. Other users of SQLite in the process keep their memory.
     */
    if (limits->bytes && sqlite3_initialize() == SQLITE_OK) {
        c->turn = sqlite3_mutex_alloc(SQLITE_MUTEX_STATIC_APP1);
        sqlite3_mutex_enter(c->turn);
        c->old_limit = sqlite3_hard_heap_limit64(sqlite3_memory_used() + limits->bytes);
        c->limited = true;
    }
    c->deadline_ns = limits->ns ? rp_clock_ns() + limits->ns : INT64_MAX;
    status =
        sqlite3_open_v2(":memory:", &c->sql,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX, NULL);
    if (status == SQLITE_OK)
        status = rp_vtab_register(c->sql, tables, c->deadline_ns, c->vtabs);
    if (status != SQLITE_OK)
        return rp_err_nomem(err, "opening SQLite");
    restrict_connection(c);
    return RP_OK;
}

/* ------------------------------------------------------------------ the answer */

static const char *free_name(const struct rp_sql_answer *a, size_t i, const char *name,
                             struct rp_arena *arena)
{
    const char *wanted = rp_arena_text(arena, name);

    for (size_t k = 0, again = 2; k < i; k++)
        if (!strcmp(a->columns[k].name, wanted)) {
            wanted = rp_arena_textf(arena, "%s_%zu", name, again++);
            k = SIZE_MAX; /* from the first on */
        }
    return wanted;
}

static struct rp_sql_cell read_cell(sqlite3_stmt *stmt, int i, struct rp_arena *arena)
{
    struct rp_sql_cell cell = {.type = RP_SQL_NULL};

    switch (sqlite3_column_type(stmt, i)) {
    case SQLITE_INTEGER:
        cell.type = RP_SQL_INT;
        cell.i = sqlite3_column_int64(stmt, i);
        break;
    case SQLITE_FLOAT:
        cell.type = RP_SQL_REAL;
        cell.v.f = sqlite3_column_double(stmt, i);
        break;
    case SQLITE_NULL:
        break;
    default:
        cell.type = RP_SQL_TEXT;
        cell.v.text = (const char *)sqlite3_column_text(stmt, i);
        cell.i = sqlite3_column_bytes(stmt, i);
        cell.v.text = rp_arena_copy(arena, cell.v.text ? cell.v.text : "", (size_t)cell.i);
    }
    return cell;
}

static enum rp_code read_row(struct rp_sql_answer *a, sqlite3_stmt *stmt, struct rp_arena *arena,
                             int64_t *bytes, struct rp_err *err)
{
    for (size_t i = 0; i < a->ncolumns; i++) {
        struct rp_sql_cell cell = read_cell(stmt, (int)i, arena);

        if (cell.type > a->columns[i].type)
            a->columns[i].type = cell.type;
        *bytes += (int64_t)sizeof cell + (cell.type == RP_SQL_TEXT ? cell.i + 1 : 0);
        RP_TRY(rp_vec_push(&a->cells, cell, err));
    }
    a->nrows++;
    return rp_arena_check(arena, "answering a query", err);
}

static enum rp_code read_rows(struct connection *c, struct rp_sql_answer *a, sqlite3_stmt *stmt,
                              const struct rp_sql_limits *limits, struct rp_arena *arena,
                              struct rp_err *err)
{
    int64_t bytes = 0;
    int status;

    while ((status = sqlite3_step(stmt)) == SQLITE_ROW) {
        if (limits->rows && a->nrows == limits->rows) {
            a->more = true;
            return RP_OK;
        }
        RP_TRY(read_row(a, stmt, arena, &bytes, err));
        if (limits->bytes && bytes > limits->bytes)
            return sql_failed(c, SQLITE_NOMEM, err);
    }
    return status == SQLITE_DONE ? RP_OK : sql_failed(c, status, err);
}

/* Prepares one statement with nothing behind it. */
static enum rp_code prepare_one(struct connection *c, const char *sql, sqlite3_stmt **stmt,
                                struct rp_err *err)
{
    const char *rest = NULL;
    sqlite3_stmt *second = NULL;
    int status = sqlite3_prepare_v2(c->sql, sql, -1, stmt, &rest);

    if (status != SQLITE_OK)
        return sql_failed(c, status, err);
    if (!*stmt)
        return rp_err_set(err, RP_USAGE, "the query is empty");
    status = sqlite3_prepare_v2(c->sql, rest, -1, &second, NULL);
    sqlite3_finalize(second);
    if (status != SQLITE_OK || second)
        return rp_err_set(err, RP_USAGE, "give one query at a time");
    if (!sqlite3_stmt_readonly(*stmt) || sqlite3_stmt_isexplain(*stmt) ||
        !sqlite3_column_count(*stmt))
        return rp_err_set(err, RP_USAGE, "a query can only read: write a SELECT");
    return RP_OK;
}

/* Prepares the statement over tables of groups if that has the same answer, otherwise the statement
   itself. Names of columns and errors are those of the original statement. */
static sqlite3_stmt *prepare_groups(struct connection *c, const char *sql, sqlite3_stmt *given)
{
    struct rp_aggregates *a = &c->aggregates;
    sqlite3_stmt *stmt = NULL;
    int status = rp_aggregates_rewrite(sql, c->vtabs, a) && a->sql ? SQLITE_OK : SQLITE_ERROR;
    char name[8];

    for (size_t i = 0; status == SQLITE_OK && i < a->n; i++) {
        snprintf(name, sizeof name, "#%u", (unsigned)i % 100);
        status = rp_groups_register(c->sql, name, &a->tables[i]);
    }
    if (status == SQLITE_OK)
        status = sqlite3_prepare_v2(c->sql, a->sql, -1, &stmt, NULL);
    if (status != SQLITE_OK)
        return given;
    sqlite3_finalize(given);
    return stmt;
}

enum rp_code rp_sql_run(struct rp_tables *tables, const char *sql,
                        const struct rp_sql_limits *limits, struct rp_arena *arena,
                        struct rp_sql_answer *out, struct rp_err *err)
{
    struct connection c = {.err = err};
    sqlite3_stmt *stmt = NULL;
    enum rp_code code = connect_tables(&c, tables, limits, err);

    *out = (struct rp_sql_answer){0};
    if (code == RP_OK)
        code = prepare_one(&c, sql, &stmt, err);
    if (code == RP_OK) {
        out->ncolumns = (size_t)sqlite3_column_count(stmt);
        out->columns = RP_ARENA_NEW(arena, struct rp_sql_column, out->ncolumns + 1);
        for (size_t i = 0; out->columns && i < out->ncolumns; i++)
            out->columns[i].name = free_name(out, i, sqlite3_column_name(stmt, (int)i), arena);
        code = rp_arena_check(arena, "answering a query", err);
    }
    if (code == RP_OK)
        stmt = prepare_groups(&c, sql, stmt);
    if (code == RP_OK)
        code = read_rows(&c, out, stmt, limits, arena, err);
    sqlite3_finalize(stmt);

    /* The database is closed before what its tables use. */
    sqlite3_close_v2(c.sql);
    for (size_t i = 0; i < RP_TABLE_COUNT; i++)
        rp_vtab_release(&c.vtabs[i]);
    for (size_t i = 0; i < c.aggregates.n; i++)
        rp_vtab_release(&c.aggregates.tables[i].t);
    sqlite3_free(c.aggregates.sql);
    if (c.limited) {
        sqlite3_hard_heap_limit64(c.old_limit);
        sqlite3_mutex_leave(c.turn);
    }
    return code;
}

#else

enum rp_code rp_sql_run(struct rp_tables *tables, const char *sql,
                        const struct rp_sql_limits *limits, struct rp_arena *arena,
                        struct rp_sql_answer *out, struct rp_err *err)
{
    (void)tables;
    (void)sql;
    (void)limits;
    (void)arena;
    *out = (struct rp_sql_answer){0};
    return rp_err_set(err, RP_MISSING,
                      "this reprise was built without SQLite; install libsqlite3-dev and build it "
                      "again");
}

#endif
