/* SPDX-License-Identifier: Apache-2.0 */
#include "query/vtab.h"

#include "query/functions.h"

#if RP_HAVE_SQLITE
#include <stdlib.h>

#define MOST_ORDER 16 /* columns to order by */

struct cursor {
    sqlite3_vtab_cursor base;
    struct rp_scan scan;
};

/* ------------------------------------------------------------------ tables */

static const char *declared_type(const struct rp_table_column *c)
{
    return rp_table_is_text(c) ? "TEXT" : c->cell == RP_CELL_F64 ? "REAL" : "INTEGER";
}

static int declare(sqlite3 *db, const struct rp_vtab_table *t)
{
    const struct rp_table *table = t->table;
    sqlite3_str *sql = sqlite3_str_new(db);

    sqlite3_str_appendall(sql, "CREATE TABLE x(");
    for (size_t i = 0; i < table->ncolumns; i++)
        sqlite3_str_appendf(sql, "%s\"%w\" %s", i ? ", " : "", table->columns[i].name,
                            declared_type(&table->columns[i]));
    for (size_t i = 0; i < t->nsums; i++)
        sqlite3_str_appendf(sql, ", \"#%d\" INTEGER HIDDEN", (int)i);
    sqlite3_str_appendall(sql, ")");
    char *text = sqlite3_str_finish(sql);
    int status = text ? sqlite3_declare_vtab(db, text) : SQLITE_NOMEM;
    sqlite3_free(text);
    return status;
}

/* Derives the data that the table needs. */
static enum rp_code prepare_table(struct rp_vtab_table *t)
{
    if (t->parts)
        return RP_OK;
    RP_TRY(rp_tables_prepare(t->tables, t->table, &t->err));
    t->nparts = rp_table_parts(&t->tables->set, t->table);
    t->parts = calloc(t->nparts + 1, sizeof *t->parts);
    return rp_err_need(t->parts, &t->err, "reading a table");
}

int rp_vtab_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                    char **message)
{
    struct rp_vtab_table *t = aux;
    struct rp_vtab *v;

    (void)argc;
    (void)argv;
    if (prepare_table(t) != RP_OK) {
        *message = sqlite3_mprintf("%s", t->err.text);
        return SQLITE_ERROR;
    }
    t->declaring = true;
    int status = declare(db, t);
    t->declaring = false;
    if (status != SQLITE_OK)
        *message = sqlite3_mprintf("%s", sqlite3_errmsg(db));
    v = status == SQLITE_OK ? sqlite3_malloc(sizeof *v) : NULL;
    if (!v)
        return status == SQLITE_OK ? SQLITE_NOMEM : status;
    *v = (struct rp_vtab){.t = t};
    *out = &v->base;
    return SQLITE_OK;
}

int rp_vtab_disconnect(sqlite3_vtab *v)
{
    sqlite3_free(v);
    return SQLITE_OK;
}

static uint64_t count_rows(const struct rp_vtab_table *t)
{
    uint64_t n = 0;

    for (size_t i = 0; i < t->nparts; i++)
        n += rp_table_part(&t->tables->set, t->table, i)->nrows[rp_table_id(t->table)];
    return n;
}

/* Whether a condition can be tested here. */
static bool is_useful(const struct rp_table_column *c, unsigned char op, const char *collation)
{
    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
        return c->cell != RP_CELL_TEXT && c->cell != RP_CELL_F64 &&
               (!rp_table_is_text(c) || !sqlite3_stricmp(collation, "BINARY"));
    case SQLITE_INDEX_CONSTRAINT_GT:
    case SQLITE_INDEX_CONSTRAINT_GE:
    case SQLITE_INDEX_CONSTRAINT_LT:
    case SQLITE_INDEX_CONSTRAINT_LE:
        return !rp_table_is_text(c) && c->cell != RP_CELL_F64;
    case SQLITE_INDEX_CONSTRAINT_LIKE:
    case SQLITE_INDEX_CONSTRAINT_GLOB:
        return c->cell == RP_CELL_NAME;
    default:
        return false;
    }
}

/* Estimates the rows that pass and the rows that are visited after one more condition. */
static void narrow(const struct rp_vtab_table *t, const struct rp_table_column *c, unsigned char op,
                   double *rows, double *looks)
{
    bool equal = op == SQLITE_INDEX_CONSTRAINT_EQ;

    if (equal && rp_scan_is_rank(c) && t->nparts) {
        *rows /= (double)t->nparts;
        *looks /= (double)t->nparts;
    } else if (equal && c->indexed) {
        *rows /= *rows > 4 ? *rows / 4 : 1;
        *looks = *looks > 4 ? 4 : *looks;
    } else if (!equal && t->table->start < t->table->ncolumns &&
               c == &t->table->columns[t->table->start]) {
        *rows /= 4;
        *looks /= 4;
    } else {
        *rows /= equal ? 10 : 3;
    }
}

int rp_vtab_best(sqlite3_vtab *base, sqlite3_index_info *info)
{
    struct rp_vtab_table *t = ((struct rp_vtab *)base)->t;
    char *plan = sqlite3_malloc(2 * (RP_SCAN_CONDITIONS + MOST_ORDER) + 1), *at = plan;
    double rows = (double)count_rows(t), looks = rows;
    int n = 0;

    if (!plan)
        return SQLITE_NOMEM;
    for (int i = 0; i < info->nConstraint && n < RP_SCAN_CONDITIONS; i++) {
        int column = info->aConstraint[i].iColumn;
        unsigned char op = info->aConstraint[i].op;

        if (!info->aConstraint[i].usable || column < 0 || column >= (int)t->table->ncolumns ||
            !is_useful(&t->columns[column], op, sqlite3_vtab_collation(info, i)))
            continue;
        *at++ = (char)('A' + column);
        *at++ = (char)op;
        info->aConstraintUsage[i].argvIndex = ++n;
        narrow(t, &t->columns[column], op, &rows, &looks);
    }
    *at = '\0';
    info->idxStr = plan;
    info->needToFreeIdxStr = 1;
    info->estimatedRows = (sqlite3_int64)rows + 1;
    info->estimatedCost =
        rows + looks / 20 + 1; /* visiting a row is much cheaper than returning it */
    return SQLITE_OK;
}

/* Rows can be given in any order of columns, which takes less time than sorting SQLite's
   records. */
static int vtab_best(sqlite3_vtab *base, sqlite3_index_info *info)
{
    int status = rp_vtab_best(base, info);

    for (int i = 0; i < info->nOrderBy; i++)
        if (info->aOrderBy[i].iColumn < 0 || i == MOST_ORDER)
            return status;
    if (status != SQLITE_OK || !info->nOrderBy)
        return status;
    char *at = info->idxStr + strlen(info->idxStr);
    for (int i = 0; i < info->nOrderBy; i++) {
        *at++ = (char)('A' + info->aOrderBy[i].iColumn);
        *at++ = info->aOrderBy[i].desc ? '-' : '+';
    }
    *at = '\0';
    info->orderByConsumed = 1;
    return SQLITE_OK;
}

/* ------------------------------------------------------------------ rows */

static int vtab_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    struct cursor *c = sqlite3_malloc(sizeof *c);

    if (!c)
        return SQLITE_NOMEM;
    *c = (struct cursor){.scan.t = ((struct rp_vtab *)base)->t};
    *out = &c->base;
    return SQLITE_OK;
}

static int vtab_close(sqlite3_vtab_cursor *base)
{
    struct cursor *c = (struct cursor *)base;

    rp_scan_end(&c->scan);
    sqlite3_free(c);
    return SQLITE_OK;
}

static int vtab_filter(sqlite3_vtab_cursor *base, int n, const char *plan, int argc,
                       sqlite3_value **argv)
{
    (void)n;
    return rp_scan_begin(&((struct cursor *)base)->scan, plan, argc, argv);
}

static int vtab_next(sqlite3_vtab_cursor *base)
{
    return rp_scan_next(&((struct cursor *)base)->scan);
}

static int vtab_eof(sqlite3_vtab_cursor *base)
{
    return rp_scan_is_over(&((struct cursor *)base)->scan);
}

void rp_vtab_value(const struct rp_table_rank *r, const struct rp_table_column *column, size_t row,
                   sqlite3_context *out)
{
    int64_t value;
    double real;
    size_t n;

    if (rp_table_is_text(column)) {
        const char *text = rp_table_text(r, column, row, &n);
        if (text) /* the plan outlives this call */
            sqlite3_result_text64(out, text, n, SQLITE_STATIC, SQLITE_UTF8);
    } else if (column->cell == RP_CELL_F64) {
        if (rp_table_real(r, column, row, &real))
            sqlite3_result_double(out, real);
    } else if (rp_table_int(r, column, row, &value)) {
        sqlite3_result_int64(out, value);
    }
}

static int vtab_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int i)
{
    const struct rp_scan *scan = &((struct cursor *)base)->scan;

    rp_vtab_value(scan->r, &scan->t->columns[i], rp_scan_row(scan), out);
    return SQLITE_OK;
}

static int vtab_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
    const struct rp_scan *scan = &((struct cursor *)base)->scan;

    *out = (sqlite3_int64)(scan->part << 32 | rp_scan_row(scan));
    return SQLITE_OK;
}

/* ------------------------------------------------------------------ arg(rank, event, key) */

static void sql_arg(sqlite3_context *out, int argc, sqlite3_value **argv)
{
    const struct rp_table_set *set = &((struct rp_tables *)sqlite3_user_data(out))->set;
    sqlite3_int64 rank = sqlite3_value_int64(argv[0]), event = sqlite3_value_int64(argv[1]);
    const char *key = (const char *)sqlite3_value_text(argv[2]);
    struct rp_err err = RP_ERR_INIT;

    (void)argc;
    for (size_t i = 0; key && i < set->n; i++) {
        const struct rp_trace *t = set->ranks[i].trace;

        if (set->ranks[i].number != rank || event < 0 || event >= t->ev.n)
            continue;
        if (rp_trace_require(t, RP_NEED_ARGS, &err) != RP_OK) {
            sqlite3_result_error(out, err.text, -1);
            return;
        }
        uint32_t n = rp_args_count(&t->args, t->ev.shape[event], t->ev.arg_row[event]);
        for (uint32_t k = 0; k < n; k++) {
            struct rp_arg arg = rp_args_at(&t->args, t->ev.shape[event], t->ev.arg_row[event], k);

            if (!strcmp(rp_trace_str(t, arg.key), key)) {
                if (arg.type == RP_ARG_I64)
                    sqlite3_result_int64(out, arg.v.i);
                else if (arg.type == RP_ARG_F64)
                    sqlite3_result_double(out, arg.v.f);
                else
                    sqlite3_result_text64(out, rp_trace_str(t, arg.v.s),
                                          rp_trace_str_len(t, arg.v.s), SQLITE_STATIC, SQLITE_UTF8);
                return;
            }
        }
    }
}

/* ------------------------------------------------------------------ registration */

/* Without xCreate, a table with the module's name exists, and no other can be made. */
static const sqlite3_module module = {.iVersion = 1,
                                      .xConnect = rp_vtab_connect,
                                      .xBestIndex = vtab_best,
                                      .xDisconnect = rp_vtab_disconnect,
                                      .xOpen = vtab_open,
                                      .xClose = vtab_close,
                                      .xFilter = vtab_filter,
                                      .xNext = vtab_next,
                                      .xEof = vtab_eof,
                                      .xColumn = vtab_column,
                                      .xRowid = vtab_rowid};

int rp_vtab_register(sqlite3 *db, struct rp_tables *tables, int64_t deadline_ns,
                     struct rp_vtab_table *out)
{
    int status = SQLITE_OK;

    for (size_t i = 0; status == SQLITE_OK && i < RP_TABLE_COUNT; i++) {
        out[i] = (struct rp_vtab_table){.tables = tables,
                                        .table = &rp_tables_all[i],
                                        .columns = rp_tables_all[i].columns,
                                        .deadline_ns = deadline_ns};
        status = sqlite3_create_module_v2(db, rp_tables_all[i].name, &module, &out[i], NULL);
    }
    if (status == SQLITE_OK)
        status = sqlite3_create_function_v2(db, "arg", 3, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                                            tables, sql_arg, NULL, NULL, NULL);
    return status == SQLITE_OK ? rp_query_functions(db) : status;
}

void rp_vtab_release(struct rp_vtab_table *t)
{
    for (size_t i = 0; t->parts && i < t->nparts; i++) {
        rp_map_release(&t->parts[i].names);
        for (size_t c = 0; t->parts[i].indexes && c < t->table->ncolumns; c++) {
            free(t->parts[i].indexes[c].begin);
            free(t->parts[i].indexes[c].rows);
        }
        free(t->parts[i].indexes);
    }
    free(t->parts);
}
#endif
