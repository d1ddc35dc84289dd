/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQL over a run of two small ranks. A file that begins with "sql:" is a query as it is, which must
 * not do harm. From any other bytes a query is made whose answer is settled, and which may be
 * written anew, pushed down and sorted outside of SQLite; it must have the answer that SQLite gives
 * over copies of the tables.
 */
#include "memory_file.h"

#include "query/sql.h"
#include "rp_config.h"

#if RP_HAVE_SQLITE
#include <math.h>
#include <reprise/reprise.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ the run */

static struct {
    struct rp_ctx *ctx;
    struct rp_dataset *dataset;
    struct rp_tables *tables;
    sqlite3 *copy;
    struct memory_file files[2]; /* `findings` are read again */
} run;

#define EVENT(cat, name, tid, ts, dur, args)                                         \
    "{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":7,\"tid\":" tid \
    ",\"ts\":1700000000000" ts ",\"dur\":" dur ",\"args\":{" args "}},\n"
#define WORK(n, name, at, dur)                                                         \
    EVENT("cpu_op", "aten::" name, "7", at "0", "40", "\"Input Dims\":[[2,3]]")        \
    EVENT("cuda_runtime", "cudaLaunchKernel", "7", at "1", "10", "\"correlation\":" n) \
    EVENT("kernel", name "_kernel", "20", at "5.25", dur,                              \
          "\"device\":0,\"stream\":20,\"correlation\":" n)
#define RANK(n, more)                                                                           \
    "{\"distributedInfo\":{\"rank\":" n ",\"world_size\":2},\"traceEvents\":[\n" EVENT(         \
        "user_annotation", "ProfilerStep#1", "7", "1000", "1000",                               \
        "") EVENT("user_annotation", "ProfilerStep#2", "7", "2000", "1000",                     \
                  "") WORK("11", "mm", "110", "30.5") WORK("12", "add", "120",                  \
                                                           "7") WORK("13", "mm", "130", "30.5") \
        WORK("21", "mm", "210", "31") WORK("22", "Add", "220", "7") more EVENT(                 \
            "gpu_memcpy", "Memcpy HtoD", "21", "2500", "4",                                     \
            "\"device\":0,\"stream\":21,\"bytes\":9") "{\"ph\":\"i\",\"name\":\"mark\",\"pid\":7,\"tid\":7,\"ts\":1700000000002900}]}\n"

static const char *const ranks[] = {RANK("0", ""), RANK("1", WORK("23", "relu", "230", "0.125"))};

static void copy_row(sqlite3_stmt *to, const struct rp_sql_answer *a, size_t row)
{
    for (size_t i = 0; i < a->ncolumns; i++) {
        const struct rp_sql_cell *cell = &a->cells.at[row * a->ncolumns + i];
        int at = (int)i + 1;

        if (cell->type == RP_SQL_INT)
            sqlite3_bind_int64(to, at, cell->i);
        else if (cell->type == RP_SQL_REAL)
            sqlite3_bind_double(to, at, cell->v.f);
        else if (cell->type == RP_SQL_TEXT)
            sqlite3_bind_text(to, at, cell->v.text, (int)cell->i, SQLITE_TRANSIENT);
        else
            sqlite3_bind_null(to, at);
    }
    if (sqlite3_step(to) != SQLITE_DONE)
        abort();
    sqlite3_reset(to);
}

/* A statement for the copy, whose text is released. */
static sqlite3_stmt *prepare(char *sql)
{
    sqlite3_stmt *stmt = NULL;

    if (sqlite3_prepare_v2(run.copy, sql, -1, &stmt, NULL) != SQLITE_OK)
        abort();
    sqlite3_free(sql);
    return stmt;
}

/* A table of SQLite's own with the same columns and rows. */
static bool copy_table(const struct rp_table *table)
{
    const struct rp_sql_limits limits = {0};
    char create[2000] = "", insert[400] = "", query[64];
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_sql_answer a;
    sqlite3_stmt *stmt;
    bool ok;

    for (size_t i = 0; i < table->ncolumns; i++) {
        const struct rp_table_column *c = &table->columns[i];
        const char *type = rp_table_is_text(c)      ? "text"
                           : c->cell == RP_CELL_F64 ? "real"
                                                    : "integer";

        snprintf(create + strlen(create), sizeof create - strlen(create), "%s\"%s\" %s",
                 i ? ", " : "", c->name, type);
        strcat(insert, i ? ", ?" : "?");
    }
    snprintf(query, sizeof query, "select * from %s", table->name);
    ok = rp_sql_run(run.tables, query, &limits, &arena, &a, &err) == RP_OK;
    if (ok) {
        stmt = prepare(sqlite3_mprintf("create table %s(%s)", table->name, create));
        sqlite3_step(stmt);
        sqlite3_finalize(stmt);
        stmt = prepare(sqlite3_mprintf("insert into %s values(%s)", table->name, insert));
        for (size_t row = 0; row < a.nrows; row++)
            copy_row(stmt, &a, row);
        sqlite3_finalize(stmt);
    }
    rp_sql_answer_release(&a);
    rp_arena_release(&arena);
    return ok;
}

static void close_run(void)
{
    sqlite3_close(run.copy);
    rp_tables_free(run.tables);
    rp_dataset_free(run.dataset);
    rp_ctx_free(run.ctx);
    for (size_t i = 0; i < 2; i++)
        memory_file_close(&run.files[i]);
    memset(&run, 0, sizeof run);
}

/* Once for all inputs; false where memory was not to be had. */
static bool open_run(void)
{
    struct rp_ctx_options options = {.struct_size = sizeof options, .threads = 1};
    const char *paths[2];
    bool ok;

    if (run.copy)
        return true;
    for (size_t i = 0; i < 2; i++) {
        if (!memory_file_open(&run.files[i], (const uint8_t *)ranks[i], strlen(ranks[i])))
            abort();
        paths[i] = run.files[i].path;
    }
    ok = rp_ctx_new(&options, &run.ctx, NULL) == RP_OK &&
         rp_open(run.ctx, paths, 2, NULL, &run.dataset, NULL) == RP_OK &&
         rp_tables_open(run.dataset, &run.tables, NULL) == RP_OK &&
         sqlite3_open(":memory:", &run.copy) == SQLITE_OK;
    for (size_t i = 0; ok && i < RP_TABLE_COUNT; i++)
        ok = copy_table(&rp_tables_all[i]);
    if (!ok)
        close_run();
    return ok;
}

/* ------------------------------------------------------------------ making a query */

struct making {
    const uint8_t *data, *end;
    const struct rp_table *table;
    bool has_alias;
    char sql[4000];
    size_t n;
};

static uint32_t pick(struct making *m, uint32_t n)
{
    return m->data < m->end ? *m->data++ % n : 0;
}

static void put(struct making *m, const char *text)
{
    size_t n = strlen(text);

    if (m->n + n < sizeof m->sql) {
        memcpy(m->sql + m->n, text, n + 1);
        m->n += n;
    }
}

#define PICK(m, words) (words)[pick(m, sizeof(words) / sizeof *(words))]

static void put_column(struct making *m, bool number)
{
    uint32_t n = (uint32_t)m->table->ncolumns, i = pick(m, n);

    while (number && rp_table_is_text(&m->table->columns[i]))
        i = (i + 1) % n;
    if (!pick(m, 5)) {
        put(m, m->has_alias ? "t" : m->table->name);
        put(m, ".");
    }
    put(m, m->table->columns[i].name);
}

/* A value of one row: a column, or something that depends on columns only. */
static void put_value(struct making *m)
{
    static const char *const forms[] = {"upper(substr(", "coalesce(", "(", "length(", "case when "};
    static const char *const ends[] = {", 1, 3))", ", 0)", " % 7)", ")",
                                       " > 5 then 'x' else 3 end"};
    uint32_t form = pick(m, 12);

    put(m, form < 5 ? forms[form] : "");
    put_column(m, form == 2);
    put(m, form < 5 ? ends[form] : "");
}

static void put_aggregate(struct making *m)
{
    static const char *const functions[] = {
        "count(", "sum(", "avg(", "min(", "max(", "count(distinct ", "total(", "sum(distinct "};
    uint32_t function = pick(m, 9);

    put(m, function < 8 ? functions[function] : "count(*");
    if (function < 8 && pick(m, 6) == 5)
        put_value(m);
    else if (function < 8)
        put_column(m, true);
    put(m, ")");
    if (pick(m, 8) == 7)
        put(m, " + 1");
}

static void put_constant(struct making *m)
{
    static const char *const constants[] = {"0",
                                            "1",
                                            "-1",
                                            "30500",
                                            "7000.5",
                                            "'mm_kernel'",
                                            "'kernel'",
                                            "null",
                                            "'5'",
                                            "1e30",
                                            "'a'",
                                            "-9.3e18",
                                            "'%add%'",
                                            "'*mm*'",
                                            "20",
                                            "'20'",
                                            "(select max(event) from kernels)",
                                            "12",
                                            "1700000000001105250"};

    put(m, PICK(m, constants));
}

static void put_condition(struct making *m)
{
    static const char *const signs[] = {
        " = ", " > ", " < ", " >= ", " <= ", " <> ", " is ", " is not ", " like ", " glob "};
    uint32_t form = pick(m, 16);

    put(m, form == 15 ? "not (" : "");
    put_column(m, false);
    if (form == 11) {
        put(m, " between ");
        put_constant(m);
        put(m, " and ");
    } else if (form == 12) {
        put(m, " in (");
        put_constant(m);
        put(m, ", ");
    } else {
        put(m, PICK(m, signs));
    }
    put_constant(m);
    put(m, form == 12 || form == 15 ? ")" : "");
}

static void put_conditions(struct making *m, const char *word)
{
    static const char *const joins[] = {" and ", " or ", " and "};

    put(m, word);
    for (uint32_t n = 1 + pick(m, 3); n--;) {
        put_condition(m);
        put(m, n ? PICK(m, joins) : "");
    }
}

/* A SELECT whose rows are settled, whatever their order is; `n` of its columns. */
static void put_select(struct making *m, uint32_t *n)
{
    static const uint8_t tables[] = {RP_TABLE_KERNELS,   RP_TABLE_EVENTS, RP_TABLE_LAUNCHES,
                                     RP_TABLE_OPERATORS, RP_TABLE_STEPS,  RP_TABLE_RANKS};
    uint32_t keys = pick(m, 4), sums = 1 + pick(m, 3), distinct = !pick(m, 6);
    char list[16] = "";

    m->table = &rp_tables_all[PICK(m, tables)];
    m->has_alias = pick(m, 2);
    put(m, distinct ? "select distinct " : "select ");
    for (uint32_t i = 0; i < keys; i++) {
        put(m, i ? ", " : "");
        put_value(m);
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%u", i ? ", " : "", i + 1);
    }
    *n = keys + (keys && distinct ? 0 : sums);
    for (uint32_t i = keys; i < *n; i++) {
        put(m, i ? ", " : "");
        put_aggregate(m);
    }
    put(m, " from ");
    put(m, m->table->name);
    put(m, m->has_alias ? " t" : "");
    if (pick(m, 3))
        put_conditions(m, " where ");
    if (keys && !distinct) {
        put(m, " group by ");
        put(m, list);
        if (!pick(m, 4)) {
            put(m, " having ");
            put_aggregate(m);
            put(m, " > ");
            put_constant(m);
        }
    }
}

static void make_query(struct making *m)
{
    uint32_t n, form = pick(m, 6);
    char order[32] = " order by 1";

    put(m, form == 1 ? "with x as (" : form == 2 ? "select count(*) from (" : "");
    put_select(m, &n);
    put(m, form == 1 ? ") select * from x" : form == 2 ? ")" : "");
    if (form == 3 && n == 1)
        put(m, " union all select count(*) from events");
    if (form == 4) { /* rows that are the same in all columns are equal: a limit cuts no choice */
        for (uint32_t i = 2; i <= n; i++)
            snprintf(order + strlen(order), sizeof order - strlen(order), ", %u", i);
        put(m, order);
        put(m, pick(m, 2) ? " limit 3" : " limit 2 offset 1");
    }
}

/* ------------------------------------------------------------------ comparing */

static int by_cell(const struct rp_sql_cell *a, const struct rp_sql_cell *b)
{
    size_t n = (size_t)(a->i < b->i ? a->i : b->i);
    int way = 0;

    if (a->type != b->type || a->type == RP_SQL_NULL)
        return a->type - b->type;
    if (a->type == RP_SQL_REAL) /* added up in another order */
        return fabs(a->v.f - b->v.f) <= 1e-9 * fabs(a->v.f) ? 0 : a->v.f > b->v.f ? 1 : -1;
    if (a->type == RP_SQL_TEXT)
        way = memcmp(a->v.text, b->v.text, n);
    return way ? way : (a->i > b->i) - (a->i < b->i);
}

static int by_row(const void *left, const void *right, void *columns)
{
    const struct rp_sql_cell *a = left, *b = right;

    for (size_t i = 0; i < *(size_t *)columns; i++)
        if (by_cell(&a[i], &b[i]))
            return by_cell(&a[i], &b[i]);
    return 0;
}

static void sort_answer(struct rp_sql_answer *a)
{
    if (a->nrows)
        qsort_r(a->cells.at, a->nrows, a->ncolumns * sizeof *a->cells.at, by_row, &a->ncolumns);
}

static struct rp_sql_cell cell_of(sqlite3_stmt *stmt, int i, struct rp_arena *arena)
{
    struct rp_sql_cell cell = {.type = RP_SQL_NULL};
    int type = sqlite3_column_type(stmt, i);

    if (type == SQLITE_INTEGER) {
        cell.type = RP_SQL_INT;
        cell.i = sqlite3_column_int64(stmt, i);
    } else if (type == SQLITE_FLOAT) {
        cell.type = RP_SQL_REAL;
        cell.v.f = sqlite3_column_double(stmt, i);
    } else if (type == SQLITE_TEXT) {
        cell.type = RP_SQL_TEXT;
        cell.i = sqlite3_column_bytes(stmt, i);
        cell.v.text =
            rp_arena_copy(arena, (const char *)sqlite3_column_text(stmt, i), (size_t)cell.i);
    }
    return cell;
}

/* SQLite's own answer; its status. */
static int ask_copy(const char *sql, struct rp_arena *arena, struct rp_sql_answer *a)
{
    sqlite3_stmt *stmt = NULL;
    int status = sqlite3_prepare_v2(run.copy, sql, -1, &stmt, NULL);

    a->ncolumns = (size_t)sqlite3_column_count(stmt);
    while (status == SQLITE_OK && (status = sqlite3_step(stmt)) == SQLITE_ROW) {
        for (size_t i = 0; i < a->ncolumns; i++)
            if (rp_vec_push(&a->cells, cell_of(stmt, (int)i, arena), NULL) != RP_OK)
                status = SQLITE_NOMEM;
        a->nrows++;
        status = status == SQLITE_ROW ? SQLITE_OK : status;
    }
    sqlite3_finalize(stmt);
    return rp_arena_check(arena, "copying", NULL) == RP_OK ? status : SQLITE_NOMEM;
}

static void stop(const char *sql, const char *why)
{
    fprintf(stderr, "fuzz_query: %s: %s\n", why, sql);
    abort();
}

static void compare(const char *sql)
{
    const struct rp_sql_limits limits = {.bytes = 64 << 20, .ns = INT64_C(20000000000)};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_sql_answer ours, theirs = {0};
    struct rp_err err = RP_ERR_INIT;
    enum rp_code code = rp_sql_run(run.tables, sql, &limits, &arena, &ours, &err);
    int status = ask_copy(sql, &arena, &theirs);

    if (code == RP_USAGE && status == SQLITE_DONE)
        stop(sql, err.text);
    if (code == RP_OK && status == SQLITE_ERROR)
        stop(sql, "is an error for SQLite");
    if (code == RP_OK && status == SQLITE_DONE) {
        if (ours.nrows != theirs.nrows || ours.ncolumns != theirs.ncolumns)
            stop(sql, "has another number of rows");
        sort_answer(&ours);
        sort_answer(&theirs);
        for (size_t i = 0; i < ours.nrows * ours.ncolumns; i++)
            if (by_cell(&ours.cells.at[i], &theirs.cells.at[i]))
                stop(sql, "has another answer");
    }
    rp_sql_answer_release(&ours);
    rp_sql_answer_release(&theirs);
    rp_arena_release(&arena);
}

/* ------------------------------------------------------------------ an input */

/* Any SQL: short, and with little memory. */
static void ask_text(const uint8_t *data, size_t size)
{
    const struct rp_sql_limits limits = {.rows = 100, .bytes = 16 << 20, .ns = 50000000};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_sql_answer a;
    char *sql = rp_arena_copy(&arena, (const char *)data, size);

    if (sql) {
        if (rp_sql_run(run.tables, sql, &limits, &arena, &a, &err) != RP_OK && !err.text[0])
            abort();
        rp_sql_answer_release(&a);
    }
    rp_arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct making m = {.data = data, .end = data + size};

    if (!open_run())
        return 0;
    if (size >= 4 && !memcmp(data, "sql:", 4)) {
        ask_text(data + 4, size - 4);
    } else {
        make_query(&m);
        compare(m.sql);
    }
    return 0;
}
#else
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)data;
    (void)size;
    return 0;
}
#endif
