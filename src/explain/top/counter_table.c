/* SPDX-License-Identifier: Apache-2.0 */
/* Cells are separated by commas outside of braces ("{ 64 1 1 }") and quotes, with spaces around. */
#include "explain/top/counter_table.h"

#include "base/decides.h"
#include "io/lines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MOST (256u << 20)
RP_LIMIT(FILE_MOST, "bytes", "a larger table is refused");
#define COLUMNS_MAX 4096
RP_LIMIT(COLUMNS_MAX, "columns", "a table with more is refused");

struct reading {
    struct rp_counter_table *out;
    struct rp_arena *arena;
};

/* The next cell of a line, without spaces and quotes around it; false if there is none. */
static bool cell_next(const char **at, const char *end, const char **cell, size_t *n)
{
    const char *p = *at, *begin = p;
    bool quoted = false;
    int depth = 0;

    if (p > end)
        return false;
    for (; p < end && (quoted || depth > 0 || *p != ','); p++) {
        quoted ^= *p == '"';
        depth += (*p == '{') - (*p == '}');
    }
    *at = p + 1;
    while (begin < p && (*begin == ' ' || *begin == '\t' || *begin == '"'))
        begin++;
    while (p > begin && strchr(" \t\"\r", p[-1]))
        p--;
    *cell = begin;
    *n = (size_t)(p - begin);
    return true;
}

static bool cell_is(const char *cell, size_t n, const char *text)
{
    return n == strlen(text) && !memcmp(cell, text, n);
}

static bool is_place(const char *cell, size_t n)
{
    static const char *const places[] = {"ExecutionOrder", "ThreadID", "CallIndex",
                                         "GlobalWorkSize", "WorkGroupSize"};

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (cell_is(cell, n, places[i]))
            return true;
    }
    return false;
}

static enum rp_code read_header(struct reading *r, const char *path, size_t number,
                                const char *line, size_t n, struct rp_err *err)
{
    struct rp_counter_table *t = r->out;
    const char *at = line, *cell;
    bool found = false;
    size_t len;

    while (cell_next(&at, line + n, &cell, &len)) {
        bool method = cell_is(cell, len, "Method");
        int32_t counter = method || is_place(cell, len) || !len ? -1 : (int32_t)t->counters.n;

        if (method)
            t->method = (uint32_t)t->column.n;
        found |= method;
        if (counter >= 0)
            RP_TRY(
                rp_vec_push(&t->counters, rp_arena_textf(r->arena, "%.*s", (int)len, cell), err));
        if (t->column.n >= COLUMNS_MAX)
            return rp_err_set(err, RP_LIMIT, "'%s' line %zu: more than %d columns", path, number,
                              COLUMNS_MAX);
        RP_TRY(rp_vec_push(&t->column, counter, err));
    }
    if (!found || !t->counters.n)
        return rp_err_set(err, RP_FORMAT,
                          "'%s' line %zu: no column 'Method': not a table of Radeon Compute "
                          "Profiler",
                          path, number);
    return RP_OK;
}

/* The length of a name without the number of the kernel and the device in "gemm__k1_Fiji1". */
static size_t name_length(const char *cell, size_t n)
{
    for (size_t i = n; i-- >= sizeof "__k";) {
        if (!memcmp(cell + i - 3, "__k", 3) && cell[i] >= '0' && cell[i] <= '9')
            return i - 3;
    }
    return n;
}

static double cell_number(const char *cell, size_t n)
{
    char text[64], *end;

    if (!n || n >= sizeof text)
        return NAN;
    memcpy(text, cell, n);
    text[n] = '\0';
    double value = strtod(text, &end);
    return *end ? NAN : value;
}

/* Rows of one kernel are a list, in the order of the file. */
static enum rp_code add_row(struct rp_counter_table *t, const char *name, size_t n,
                            struct rp_counter_line *row, struct rp_err *err)
{
    uint32_t id, at = (uint32_t)t->lines.n;

    RP_TRY(rp_strtab_intern(&t->names, name, n, &id, err));
    while (t->next.n <= id) {
        RP_TRY(rp_vec_push(&t->next, UINT32_MAX, err));
        RP_TRY(rp_vec_push(&t->last, UINT32_MAX, err));
    }
    row->next = UINT32_MAX;
    RP_TRY(rp_vec_push(&t->lines, *row, err));
    if (t->last.at[id] == UINT32_MAX)
        t->next.at[id] = at;
    else
        t->lines.at[t->last.at[id]].next = at;
    t->last.at[id] = at;
    return RP_OK;
}

static enum rp_code read_line(void *user, const char *path, size_t number, const char *line,
                              size_t n, struct rp_err *err)
{
    struct reading *r = user;
    struct rp_counter_table *t = r->out;
    struct rp_counter_line row = {.first_value = (uint32_t)t->values.n};
    const char *at = line, *cell, *name = NULL;
    size_t len, nname = 0, column = 0;

    if (!n || line[0] == '#' || strspn(line, " \t\r") >= n)
        return RP_OK;
    if (!t->column.n)
        return read_header(r, path, number, line, n, err);
    for (size_t i = 0; i < t->counters.n; i++)
        RP_TRY(rp_vec_push(&t->values, NAN, err));
    for (; column < t->column.n && cell_next(&at, line + n, &cell, &len); column++) {
        if (column == t->method) {
            name = cell;
            nname = name_length(cell, len);
        } else if (t->column.at[column] >= 0) {
            t->values.at[row.first_value + (uint32_t)t->column.at[column]] = cell_number(cell, len);
        }
    }
    if (!name)
        return rp_err_set(err, RP_FORMAT, "'%s' line %zu: has no kernel", path, number);
    return add_row(t, name, nname, &row, err);
}

enum rp_code rp_counter_table_read(struct rp_counter_table *out, const char *path,
                                   struct rp_arena *arena, struct rp_err *err)
{
    struct reading r = {out, arena};

    RP_TRY(rp_strtab_init(&out->names, err));
    RP_TRY(rp_lines_read(path, FILE_MOST, arena, read_line, &r, err));
    if (!out->lines.n)
        return rp_err_set(err, RP_FORMAT, "'%s' has no rows of counters", path);
    return rp_arena_check(arena, "reading counters", err);
}

void rp_counter_table_release(struct rp_counter_table *table)
{
    rp_vec_release(&table->counters);
    rp_vec_release(&table->values);
    rp_vec_release(&table->lines);
    rp_vec_release(&table->column);
    rp_vec_release(&table->next);
    rp_vec_release(&table->last);
    rp_strtab_release(&table->names);
}

const struct rp_counter_line *rp_counter_table_next(struct rp_counter_table *table,
                                                    const char *kernel)
{
    uint32_t id = rp_strtab_find(&table->names, kernel, strcspn(kernel, "("));
    uint32_t at = id < table->next.n ? table->next.at[id] : UINT32_MAX;

    if (at == UINT32_MAX)
        return NULL;
    table->next.at[id] = table->lines.at[at].next;
    table->joined++;
    return &table->lines.at[at];
}
