/* SPDX-License-Identifier: Apache-2.0 */
/* Gives the answer of a query outside of SQLite: its texts and units, and the answer as an Arrow
   batch. */
#include "query/sql.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

void rp_sql_answer_release(struct rp_sql_answer *answer)
{
    rp_vec_release(&answer->cells);
}

const char *rp_sql_text(const struct rp_sql_cell *cell, struct rp_arena *arena)
{
    switch (cell->type) {
    case RP_SQL_INT:
        return rp_arena_textf(arena, "%lld", (long long)cell->i);
    case RP_SQL_REAL:
        return rp_arena_textf(arena, "%.17g", cell->v.f);
    case RP_SQL_TEXT:
        return cell->v.text;
    default:
        return NULL;
    }
}

/* Where the column ends that gives an expression its unit: sum(dur_ns), quantile(dur_ns, 0.9) and
   lag(dur_ns) over (…) are times, a quotient is not. */
static size_t unit_end(const char *name)
{
    const char *window = strcasestr(name, " over "), *comma = NULL;
    size_t n = window ? (size_t)(window - name) : strlen(name);
    int depth = 0;

    for (const char *c = name; c < name + n; c++) {
        depth += (*c == '(') - (*c == ')');
        if (*c == '/')
            return 0;
        if (!comma && depth == 1 && *c == ',')
            comma = c;
    }
    if (comma)
        n = (size_t)(comma - name);
    while (n && name[n - 1] == ')')
        n--;
    return n;
}

enum rp_unit rp_sql_unit(const char *name)
{
    static const struct {
        const char *ending;
        enum rp_unit unit;
    } endings[] = {{"_ns", RP_UNIT_NS},       {"_bytes", RP_UNIT_BYTES}, {"_share", RP_UNIT_RATIO},
                   {"_ratio", RP_UNIT_RATIO}, {"share", RP_UNIT_RATIO},  {"count", RP_UNIT_COUNT},
                   {"calls", RP_UNIT_COUNT},  {"kernels", RP_UNIT_COUNT}};
    char text[64];
    size_t n = unit_end(name);

    if (!strncasecmp(name, "count(", 6))
        return RP_UNIT_COUNT;
    if (n >= sizeof text)
        return RP_UNIT_NONE;
    memcpy(text, name, n);
    text[n] = '\0';
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (rp_text_ends(text, endings[i].ending))
            return endings[i].unit;
    return RP_UNIT_NONE;
}

/* ------------------------------------------------------------------ Arrow */

static enum rp_code column_texts(const struct rp_sql_answer *a, size_t i, struct rp_arena *arena,
                                 struct rp_arrow_texts *texts, struct rp_err *err)
{
    for (size_t row = 0; row < a->nrows; row++) {
        const struct rp_sql_cell *cell = &a->cells.at[row * a->ncolumns + i];
        const char *text = rp_sql_text(cell, arena);
        size_t n = !text ? 0 : cell->type == RP_SQL_TEXT ? (size_t)cell->i : strlen(text);

        RP_TRY(rp_arrow_add_text(texts, text ? text : "", n, err));
    }
    return rp_arena_check(arena, "making a batch", err);
}

static enum rp_code column_data(const struct rp_sql_answer *a, size_t i, struct rp_arena *arena,
                                struct rp_arrow_data *out, struct rp_err *err)
{
    uint8_t *bits = rp_arena_calloc(arena, a->nrows / 8 + 1, 1, 8);
    struct rp_arrow_texts texts = {0};
    int64_t *numbers;

    *out = (struct rp_arrow_data){.length = (int64_t)a->nrows, .valid = bits};
    RP_TRY(rp_err_need(bits, err, "making a batch"));
    for (size_t row = 0; row < a->nrows; row++) {
        bool there = a->cells.at[row * a->ncolumns + i].type != RP_SQL_NULL;

        bits[row / 8] |= (uint8_t)((unsigned)there << row % 8);
        out->nulls += !there;
    }
    if (a->columns[i].type != RP_SQL_TEXT) {
        out->values = numbers = rp_arena_calloc(arena, a->nrows + 1, sizeof *numbers, 8);
        RP_TRY(rp_err_need(numbers, err, "making a batch"));

        /* Copies the numbers of one column, 8 bytes each. */
        for (size_t row = 0; row < a->nrows; row++) {
            const struct rp_sql_cell *cell = &a->cells.at[row * a->ncolumns + i];
            double f = cell->type == RP_SQL_INT ? (double)cell->i : cell->v.f;
            if (a->columns[i].type != RP_SQL_REAL)
                numbers[row] = cell->type == RP_SQL_INT ? cell->i : 0;
            else if (cell->type != RP_SQL_NULL)
                memcpy(&numbers[row], &f, sizeof f);
        }
        return RP_OK;
    }
    enum rp_code code = column_texts(a, i, arena, &texts, err);
    enum rp_code kept = rp_arrow_keep_texts(&texts, arena, out, code == RP_OK ? err : NULL);
    return code == RP_OK ? kept : code;
}

static struct rp_arrow_field column_field(const struct rp_sql_column *c)
{
    static const char *const units[] = {[RP_UNIT_NS] = "ns",
                                        [RP_UNIT_BYTES] = "bytes",
                                        [RP_UNIT_RATIO] = "share",
                                        [RP_UNIT_COUNT] = "count"};
    const char *unit = units[rp_sql_unit(c->name)];

    return (struct rp_arrow_field){.name = c->name,
                                   .format = c->type == RP_SQL_TEXT   ? "U"
                                             : c->type == RP_SQL_REAL ? "g"
                                                                      : "l",
                                   .unit = unit ? unit : "",
                                   .doc = "",
                                   .nullable = true};
}

enum rp_code rp_sql_stream(const struct rp_sql_answer *a, struct ArrowArrayStream *out,
                           struct rp_err *err)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_arrow_field *fields = calloc(a->ncolumns + 1, sizeof *fields);
    struct rp_arrow_data *columns = calloc(a->ncolumns + 1, sizeof *columns);
    struct ArrowArray batch = {0};
    enum rp_code code = rp_err_need(fields && columns, err, "making a batch");

    *out = (struct ArrowArrayStream){0};
    for (size_t i = 0; code == RP_OK && i < a->ncolumns; i++) {
        fields[i] = column_field(&a->columns[i]);
        code = column_data(a, i, &arena, &columns[i], err);
    }
    if (code == RP_OK)
        code = rp_arrow_batch(columns, a->ncolumns, (int64_t)a->nrows, &arena, NULL, &batch, err);
    else
        rp_arena_release(&arena);
    if (code == RP_OK)
        code = rp_arrow_stream_of(fields, a->ncolumns, &batch, out, err);
    free(columns);
    free(fields);
    return code;
}

enum rp_code rp_tables_query(struct rp_tables *tables, const char *sql, size_t limit,
                             struct ArrowArrayStream *out, struct rp_err *err)
{
    struct rp_sql_limits limits = {limit, RP_SQL_BYTES, RP_SQL_SECONDS * INT64_C(1000000000)};
    RP_SCOPED(rp_arena_release) struct rp_arena arena = RP_ARENA_INIT;
    RP_SCOPED(rp_sql_answer_release) struct rp_sql_answer answer = {0};

    *out = (struct ArrowArrayStream){0};
    RP_TRY(rp_sql_run(tables, sql, &limits, &arena, &answer, err));
    return rp_sql_stream(&answer, out, err);
}
