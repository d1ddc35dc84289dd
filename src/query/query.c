/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers `query`: SQL over the tables of a run. The columns of an answer are known only when it is
 * there, so the type of the result is made then, and printers handle it like any other.
 */
#include "dataset/question.h"
#include "query/sql.h"
#include "tables/ipc.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES (1 << 20) /* for a file of named queries */

struct query_root {
    const char *note; /* or NULL */
    size_t nrows;
    void *rows;
};

/* One column of a table, for ".schema". */
struct schema_row {
    const char *table, *column, *type, *unit, *doc;
};

static const struct rp_field schema_fields[] = {
    RP_FIELD(struct schema_row, table, STR, NONE, "table", "name of the table", 0),
    RP_FIELD(struct schema_row, column, STR, NONE, "column", "name of the column", 0),
    RP_FIELD(struct schema_row, type, STR, NONE, "type", "integer, real, text or bool", 0),
    RP_FIELD(struct schema_row, unit, STR, NONE, "unit", "ns, bytes, share, count, or none", 0),
    RP_FIELD(struct schema_row, doc, STR, NONE, "meaning", "what it is", 0),
    RP_FIELD_END};
static const struct rp_type schema_type = {"column", sizeof(struct schema_row), schema_fields,
                                           NULL};

/* What was written, for "--arrow". */
struct written_row {
    const char *output;
    int64_t row_count;
};

static const struct rp_field written_fields[] = {
    RP_FIELD(struct written_row, output, STR, NONE, "output", "the file written", 0),
    RP_FIELD(struct written_row, row_count, I64, COUNT, "rows", "rows in it", 0), RP_FIELD_END};
static const struct rp_type written_type = {"written", sizeof(struct written_row), written_fields,
                                            NULL};

#define NOTE \
    RP_FIELD(struct query_root, note, STR, NONE, "note", "what to know about the rows", RP_WARN)
static const struct rp_field query_fields[] = {
    NOTE, RP_FIELD_LIST(struct query_root, rows, &schema_type, "rows", "the rows of the answer", 0),
    RP_FIELD_END};
static const struct rp_type query_type = {"query", sizeof(struct query_root), query_fields, "rows"};

/* A table, for ".tables". */
struct table_row {
    const char *table, *doc;
    int64_t columns;
};

static const struct rp_field table_fields[] = {
    RP_FIELD(struct table_row, table, STR, NONE, "table", "name of the table", 0),
    RP_FIELD(struct table_row, columns, I64, COUNT, "columns", "how many", 0),
    RP_FIELD(struct table_row, doc, STR, NONE, "a row is", "what a row is", 0), RP_FIELD_END};
static const struct rp_type table_type = {"table", sizeof(struct table_row), table_fields, NULL};

/* ------------------------------------------------------------------ .tables and .schema */

/* Makes rows with a type of their own the rows of the result. */
static enum rp_code set_rows(struct rp_result *result, const struct rp_type *row, void *rows,
                             size_t n, struct rp_err *err)
{
    struct query_root *root = result->root;
    struct rp_type *type = RP_ARENA_NEW(&result->arena, struct rp_type, 1);
    struct rp_field *fields = RP_ARENA_NEW(&result->arena, struct rp_field, 3);

    RP_TRY(rp_arena_check(&result->arena, "showing rows", err));
    memcpy(fields, query_fields, sizeof query_fields);
    fields[1].item = row;
    *type = query_type;
    type->fields = fields;
    root->rows = rows;
    root->nrows = n;
    result->type = type;
    return RP_OK;
}

/* ------------------------------------------------------------------ the answer */

/* Makes the fields of a row: 8 bytes per column. */
static struct rp_field *make_fields(const struct rp_sql_answer *a, struct rp_arena *arena)
{
    static const enum rp_type_id types[] = {[RP_SQL_NULL] = RP_T_STR,
                                            [RP_SQL_INT] = RP_T_I64,
                                            [RP_SQL_REAL] = RP_T_F64,
                                            [RP_SQL_TEXT] = RP_T_STR};
    struct rp_field *fields = RP_ARENA_NEW(arena, struct rp_field, a->ncolumns + 1);

    for (size_t i = 0; fields && i < a->ncolumns; i++) {
        const struct rp_sql_column *c = &a->columns[i];
        bool number = c->type == RP_SQL_INT || c->type == RP_SQL_REAL;

        fields[i] = (struct rp_field){.key = c->name,
                                      .title = c->name,
                                      .type = types[c->type],
                                      .unit = number ? rp_sql_unit(c->name) : RP_UNIT_NONE,
                                      .flags = number ? RP_NULLABLE : RP_SHORTEN,
                                      .offset = i * 8,
                                      .doc = "a column of the query"};
    }
    return fields;
}

static void put_cell(const struct rp_sql_cell *cell, uint8_t type, char *to, struct rp_arena *arena)
{
    int64_t i = cell->type == RP_SQL_INT ? cell->i : RP_ABSENT_I64;
    double f = cell->type == RP_SQL_REAL  ? cell->v.f
               : cell->type == RP_SQL_INT ? (double)cell->i
                                          : (double)NAN;

    if (type == RP_SQL_INT) {
        memcpy(to, &i, sizeof i);
    } else if (type == RP_SQL_REAL) {
        memcpy(to, &f, sizeof f);
    } else {
        const char *text = rp_sql_text(cell, arena);
        memcpy(to, &text, sizeof text);
    }
}

static void note_more(const struct rp_sql_answer *a, size_t limit, struct rp_result *result)
{
    struct query_root *root = result->root;

    if (a->more)
        root->note =
            rp_arena_textf(&result->arena, "only the first %zu rows: '--limit 0' gives all", limit);
}

static enum rp_code show_answer(const struct rp_sql_answer *a, size_t limit,
                                struct rp_result *result, struct rp_err *err)
{
    struct rp_arena *arena = &result->arena;
    struct rp_type *type = RP_ARENA_NEW(arena, struct rp_type, 1);
    char *rows = rp_arena_alloc(arena, (a->nrows + 1) * (a->ncolumns + 1) * 8, 8);

    RP_TRY(rp_err_need(type && rows, err, "showing rows"));
    *type = (struct rp_type){"row", a->ncolumns * 8, make_fields(a, arena), NULL};
    for (size_t i = 0; i < a->nrows * a->ncolumns; i++)
        put_cell(&a->cells.at[i], a->columns[i % a->ncolumns].type, rows + i * 8, arena);
    note_more(a, limit, result);
    return set_rows(result, type, rows, a->nrows, err);
}

/* ------------------------------------------------------------------ Arrow files */

/* Releases the stream. */
static enum rp_code save_stream(struct ArrowArrayStream *stream, const char *path,
                                struct rp_result *result, struct rp_err *err)
{
    struct written_row *row = RP_ARENA_NEW(&result->arena, struct written_row, 1);
    enum rp_code code = row ? rp_ipc_save(stream, path, &row->row_count, err)
                            : rp_err_nomem(err, "writing a table");

    stream->release(stream);
    RP_TRY(code);
    row->output = rp_arena_text(&result->arena, path);
    return set_rows(result, &written_type, row, 1, err);
}

/* ------------------------------------------------------------------ named queries */

/* Finds the text behind the line "-- name: NAME", up to the next such line; NULL if there is none.
   `names` gets the names of all. */
static char *find_named(char *text, const char *name, char *names, size_t cap)
{
    char *found = NULL;

    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (strncmp(line, "-- name:", 8) != 0) {
            if (next)
                next[-1] = '\n';
            continue;
        }
        *line = '\0'; /* ends the previous query */
        for (line += 8; *line == ' '; line++)
            ;
        line[strcspn(line, " \r")] = '\0';
        snprintf(names + strlen(names), cap - strlen(names), "%s'%.40s'", *names ? ", " : "", line);
        if (!strcmp(line, name) && !found)
            found = next ? next : line + strlen(line);
    }
    return found;
}

static enum rp_code read_named(const char *path, const char *name, struct rp_arena *arena,
                               const char **out, struct rp_err *err)
{
    char *text = rp_arena_calloc(arena, FILE_BYTES + 1, 1, 1), names[400] = "";
    FILE *file = !text ? NULL : !strcmp(path, "-") ? stdin : fopen(path, "re");
    size_t n = file ? fread(text, 1, FILE_BYTES, file) : 0;
    int failure = !file || ferror(file) ? errno : 0;

    if (file && file != stdin)
        fclose(file);
    RP_TRY(rp_err_need(text, err, "reading queries"));
    if (failure)
        return rp_err_set_os(err, failure, "cannot read '%s'", path);
    if (n == FILE_BYTES)
        return rp_err_set(err, RP_LIMIT, "'%s' has more than 1 MiB of queries", path);
    if (!text[strspn(text, " \t\r\n")])
        return rp_err_set(err, RP_FORMAT, "'%s' is empty: there is no query in it", path);
    *out = find_named(text, name ? name : "", names, sizeof names);
    if (!*names && !name) /* the file is a single query */
        *out = text;
    if (*out)
        return RP_OK;
    if (!*names)
        return rp_err_set(err, RP_FORMAT, "'%s' has no line '-- name: NAME' before a query", path);
    if (!name)
        return rp_err_set(err, RP_USAGE, "'--name' chooses a query of '%s': %s", path, names);
    return rp_err_set(err, RP_USAGE, "'%s' has no query '%s'; '--name' is one of: %s", path, name,
                      names);
}

/* ------------------------------------------------------------------ the question */

static enum rp_code no_sql(struct rp_err *err)
{
    return rp_err_set(err, RP_USAGE,
                      "'query' needs a query: reprise query RUN \"select …\"; '.tables' and "
                      "'.schema' in its place show the tables");
}

static enum rp_code choose_sql(const struct rp_settings *settings, struct rp_arena *arena,
                               const char **sql, struct rp_err *err)
{
    const char *file = rp_settings_text(settings, "file");

    *sql = rp_settings_text(settings, "sql");
    if (*sql && file)
        return rp_err_set(err, RP_USAGE, "give a query, or '--file' with '--name', not both");
    if (!file && rp_settings_has(settings, "name"))
        return rp_err_set(err, RP_USAGE, "'--name' chooses a query of '--file', which is missing");
    if (file)
        return read_named(file, rp_settings_text(settings, "name"), arena, sql, err);
    return *sql ? RP_OK : no_sql(err);
}

static enum rp_code ask_sql(struct rp_tables *tables, const char *sql,
                            const struct rp_settings *settings, struct rp_result *result,
                            struct rp_err *err)
{
    const char *path = rp_settings_text(settings, "arrow");
    bool limited = !path || rp_settings_has(settings, "limit"); /* a file gets all rows */
    struct rp_sql_limits limits = {.rows = limited ? (size_t)rp_settings_int(settings, "limit") : 0,
                                   .bytes = rp_settings_int(settings, "memory"),
                                   .ns = rp_settings_int(settings, "timeout")};
    RP_SCOPED(rp_sql_answer_release) struct rp_sql_answer answer = {0};
    struct ArrowArrayStream stream;

    if (rp_table_find(sql)) {
        if (!limited) { /* without SQL names stay dictionaries */
            RP_TRY(rp_tables_stream(tables, sql, &stream, err));
            return save_stream(&stream, path, result, err);
        }
        sql = rp_arena_textf(&result->arena, "select * from %s", sql);
        RP_TRY(rp_arena_check(&result->arena, "reading the query", err));
    }
    RP_TRY(rp_sql_run(tables, sql, &limits, &result->arena, &answer, err));
    if (!path)
        RP_TRY(show_answer(&answer, limits.rows, result, err));
    else
        RP_TRY(rp_sql_stream(&answer, &stream, err));
    if (path) {
        note_more(&answer, limits.rows, result);
        RP_TRY(save_stream(&stream, path, result, err));
    }
    return RP_OK;
}

static enum rp_code query_run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                              const struct rp_settings *settings, struct rp_result *result,
                              struct rp_err *err)
{
    struct rp_tables *tables = NULL;
    const char *output = rp_settings_text(settings, "arrow"), *sql;

    (void)ctx;
    RP_TRY(choose_sql(settings, &result->arena, &sql, err));
    if (!strcmp(sql, ".tables")) {
        struct table_row *rows = RP_ARENA_NEW(&result->arena, struct table_row, RP_TABLE_COUNT);
        RP_TRY(rp_err_need(rows, err, "describing the tables"));
        for (size_t i = 0; i < RP_TABLE_COUNT; i++)
            rows[i] = (struct table_row){rp_tables_all[i].name, rp_tables_all[i].doc,
                                         (int64_t)rp_tables_all[i].ncolumns};
        return set_rows(result, &table_type, rows, RP_TABLE_COUNT, err);
    }
    if (!strncmp(sql, ".schema", 7) && strchr(" ", sql[7])) {
        /* Shows the schema of one table, or of all (NULL). */
        const char *table = sql[7] ? sql + 8 : NULL;
        struct query_root *root = result->root;
        struct schema_row *rows;
        if (table && !rp_table_find(table))
            return rp_err_set(err, RP_USAGE, "there is no table '%s': '.tables' lists them", table);
        for (size_t i = 0; i < RP_TABLE_COUNT; i++)
            if (!table || rp_table_find(table) == &rp_tables_all[i])
                root->nrows += rp_tables_all[i].ncolumns;
        root->rows = rows = RP_ARENA_NEW(&result->arena, struct schema_row, root->nrows + 1);
        RP_TRY(rp_err_need(rows, err, "describing the tables"));
        for (size_t i = 0; i < RP_TABLE_COUNT; i++)
            for (size_t k = 0; k < rp_tables_all[i].ncolumns; k++) {
                if (table && rp_table_find(table) != &rp_tables_all[i])
                    break;
                const struct rp_table_column *c = &rp_tables_all[i].columns[k];
                *rows++ = (struct schema_row){rp_tables_all[i].name, c->name, rp_table_type_name(c),
                                              rp_table_unit_name(c), c->doc};
            }
        return RP_OK;
    }
    if (*sql == '.' && access(sql, F_OK) != 0)
        return rp_err_set(err, RP_USAGE, "there is no '%s': '.tables' or '.schema [TABLE]'", sql);
    if (!dataset && access(sql, F_OK) == 0) /* the only word is a run */
        return no_sql(err);
    if (!dataset)
        return rp_err_set(err, RP_USAGE, "'query' needs a file or folder before the query");
    if (output) {
        for (size_t i = 0; i < rp_dataset_count(dataset); i++)
            if (rp_is_same_file(rp_sources_borrow(dataset->sources, i)->path, output))
                return rp_err_set(err, RP_USAGE, "'%s' is both input and output", output);
    }
    RP_TRY(rp_tables_open(dataset, &tables, err));
    enum rp_code code = ask_sql(tables, sql, settings, result, err);
    rp_tables_free(tables);
    return code;
}

static const struct rp_option query_options[] = {
    {"sql", 0, RP_OPT_TEXT, "SQL", NULL,
     "the query, or the name of a table, '.tables' or '.schema [TABLE]' (default: the last word)",
     0},
    {"file", 0, RP_OPT_PATH, "FILE", NULL, "take the query from a file; '-': standard input", 0},
    {"name", 0, RP_OPT_TEXT, "NAME", NULL,
     "of several queries in the file, the one below the line '-- name: NAME'", 0},
    {"arrow", 0, RP_OPT_PATH, "FILE", NULL,
     "write the rows to an Arrow IPC file, as '-o FILE.arrow' does; all, if no '--limit' is given",
     0},
    {"limit", 'n', RP_OPT_COUNT, "N", "10k", "at most N rows; 0: all", 0},
    {"timeout", 0, RP_OPT_DURATION, "TIME", "60s", "time limit; 0: none", RP_OPT_GUARD},
    {"memory", 0, RP_OPT_BYTES, "SIZE", "1GiB", "memory limit; 0: none", RP_OPT_GUARD},
    RP_OPTION_END};

const struct rp_question_row rp_ask_query = {
    .question =
        {.name = "query",
         .group = "traces",
         .summary = "ask in SQL: ranks, events, kernels, steps, … as tables",
         .details =
             "The tables are ranks, events, kernels, launches, operators, steps, "
             "collectives and findings; '.tables' and '.schema' list them and their columns. The SQL is that of "
             "SQLite, one SELECT, with window functions and 'with'. arg(rank, event, "
             "'key') is an argument of an event; median(x), quantile(x, p), stddev(x) and "
             "histogram(x [, classes]) add to SQLite's aggregates. Times are integer nanoseconds; a column "
             "whose name ends in _ns, _bytes or _share is shown with its unit. Nothing can "
             "be changed, and no file can be opened.",
         .examples =
             "reprise query run/ .schema	the tables and their columns\n"
             "reprise query run/ \"select name, sum(dur_ns) from kernels group by "
             "1 order by 2 desc limit 5\"	kernels with most time\n"
             "reprise query run/ --file q.sql --name gaps	a query from a file\n"
             "reprise query run/ kernels -o kernels.arrow	a table for pyarrow, polars, "
             "…\n",
         .accepts = RP_ACCEPTS_TRACES | RP_ACCEPTS_NONE_TOO,
         .options = query_options,
         .type = &query_type},
    .run = query_run};
