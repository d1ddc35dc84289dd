/* SPDX-License-Identifier: Apache-2.0 */
#include "query/scan.h"

#include "query/order.h"

#if RP_HAVE_SQLITE
#include "base/clock.h"
#include "base/hash.h"

#include <math.h>
#include <stdlib.h>

#define ROWS_PER_LOOK 65536 /* at the clock */

enum { NAME_UNKNOWN, NAME_FITS, NAME_DIFFERS };

/* ------------------------------------------------------------------ finding rows */

static int64_t find_word(const struct rp_table_column *column, const char *text)
{
    for (uint8_t i = 0; i < column->nwords; i++)
        if (!strcmp(column->word(i), text))
            return i;
    return -1;
}

static bool name_fits(const struct rp_scan *c, const struct rp_scan_condition *x, rp_str s)
{
    const char *text = rp_trace_str(c->r->trace, s);

    if (x->fits[s] == NAME_UNKNOWN)
        x->fits[s] = (x->op == SQLITE_INDEX_CONSTRAINT_LIKE ? sqlite3_strlike(x->text, text, 0)
                                                            : sqlite3_strglob(x->text, text))
                         ? NAME_DIFFERS
                         : NAME_FITS;
    return x->fits[s] == NAME_FITS;
}

static bool row_fits(const struct rp_scan *c, size_t row)
{
    for (size_t i = 0; i < c->nconditions; i++) {
        const struct rp_scan_condition *x = &c->conditions[i];
        int64_t v;

        if (!rp_table_int(c->r, x->column, row, &v))
            return false;
        switch (x->op) {
        case SQLITE_INDEX_CONSTRAINT_EQ:
            if (v != x->value)
                return false;
            break;
        case SQLITE_INDEX_CONSTRAINT_GT:
            if (v <= x->value)
                return false;
            break;
        case SQLITE_INDEX_CONSTRAINT_GE:
            if (v < x->value)
                return false;
            break;
        case SQLITE_INDEX_CONSTRAINT_LT:
            if (v >= x->value)
                return false;
            break;
        case SQLITE_INDEX_CONSTRAINT_LE:
            if (v > x->value)
                return false;
            break;
        default:
            if (!name_fits(c, x, (rp_str)v))
                return false;
        }
    }
    return true;
}

/* Finds the bounds of the start times that conditions allow; false if there are none. */
static bool start_bounds(const struct rp_scan *c, int64_t *from, int64_t *to)
{
    const struct rp_table *table = c->t->table;
    bool found = false;

    *from = INT64_MIN;
    *to = INT64_MAX;
    for (size_t i = 0; i < c->nconditions; i++) {
        const struct rp_scan_condition *x = &c->conditions[i];

        if (table->start >= table->ncolumns || x->column != &table->columns[table->start])
            continue;
        found = true;
        if (x->op != SQLITE_INDEX_CONSTRAINT_LT && x->op != SQLITE_INDEX_CONSTRAINT_LE)
            *from = x->value > *from ? x->value : *from;
        if (x->op != SQLITE_INDEX_CONSTRAINT_GT && x->op != SQLITE_INDEX_CONSTRAINT_GE)
            *to = x->value < *to ? x->value : *to;
    }
    return found;
}

/* Returns the first row from begin to end that does not start before a time (after: nor at it).
   Rows without a start come before all others. */
static size_t first_at(const struct rp_scan *c, size_t begin, size_t end, int64_t time, bool after)
{
    const struct rp_table_column *start = &c->t->columns[c->t->table->start];

    while (begin < end) {
        size_t mid = begin + (end - begin) / 2;
        int64_t v;

        if (!rp_table_int(c->r, start, mid, &v) || (after ? v <= time : v < time))
            begin = mid + 1;
        else
            end = mid;
    }
    return begin;
}

static void clip_to_times(struct rp_scan *c)
{
    int64_t from, to;

    if (!start_bounds(c, &from, &to))
        return;
    c->row = first_at(c, c->row, c->end, from, false);
    c->end = first_at(c, c->row, c->end, to, true);
}

/* Counts, then distributes, because ids are dense. */
static enum rp_code make_index(struct rp_scan *c, const struct rp_table_column *column,
                               struct rp_scan_index *index)
{
    size_t n = c->r->nrows[rp_table_id(c->t->table)], most = 0;
    int64_t v;

    for (size_t row = 0; row < n; row++)
        if (rp_table_int(c->r, column, row, &v) && v >= 0 && (size_t)v + 1 > most)
            most = (size_t)v + 1;
    index->begin = calloc(most + 2, sizeof *index->begin);
    index->rows = malloc((n + 1) * sizeof *index->rows);
    if (!index->begin || !index->rows) {
        free(index->rows);
        free(index->begin);
        index->begin = index->rows = NULL;
        return rp_err_nomem(&c->t->err, "finding rows by an id");
    }
    index->n = (uint32_t)most;
    for (size_t row = 0; row < n; row++)
        if (rp_table_int(c->r, column, row, &v) && v >= 0)
            index->begin[v + 2]++;
    for (size_t i = 1; i <= most; i++)
        index->begin[i + 1] += index->begin[i];
    for (size_t row = 0; row < n; row++)
        if (rp_table_int(c->r, column, row, &v) && v >= 0)
            index->rows[index->begin[v + 1]++] = (uint32_t)row;
    return RP_OK;
}

static enum rp_code use_index(struct rp_scan *c, const struct rp_scan_condition *x)
{
    struct rp_scan_part *p = &c->t->parts[c->part];

    if (x->column->array == RP_ARRAY_NUMBER) { /* the id is the number of the row */
        bool there = x->value >= 0 && (size_t)x->value < c->end;

        c->row = there ? (size_t)x->value : c->end;
        c->end = there ? c->row + 1 : c->end;
        return RP_OK;
    }
    if (!p->indexes)
        p->indexes = calloc(c->t->table->ncolumns, sizeof *p->indexes);
    RP_TRY(rp_err_need(p->indexes, &c->t->err, "finding rows by an id"));
    struct rp_scan_index *index = &p->indexes[x->column - c->t->columns];
    if (!index->asked++) /* a walk takes less time than making the index, which must pay more than
                            once */
        return RP_OK;
    if (!index->begin)
        RP_TRY(make_index(c, x->column, index));
    c->row = c->end = 0;
    c->list = index->rows;
    if (x->value >= 0 && x->value < (int64_t)index->n) {
        c->row = index->begin[x->value];
        c->end = index->begin[x->value + 1];
    }
    return RP_OK;
}

/* Finds the range of rows of a part that may fit. */
static enum rp_code enter_part(struct rp_scan *c)
{
    int64_t from, to;

    c->r = rp_table_part(&c->t->tables->set, c->t->table, c->part);
    c->row = 0;
    c->end = c->r->nrows[rp_table_id(c->t->table)];
    c->list = NULL;
    c->by_track = false;

    /* Translates the texts of conditions into numbers of this part. */
    for (size_t i = 0; i < c->nconditions; i++) {
        struct rp_scan_condition *x = &c->conditions[i];
        if (x->op == SQLITE_INDEX_CONSTRAINT_LIKE || x->op == SQLITE_INDEX_CONSTRAINT_GLOB) {
            free(x->fits);
            x->fits = calloc((size_t)c->r->trace->str.n + 1, 1);
            RP_TRY(rp_err_need(x->fits, &c->t->err, "comparing names"));
        } else if (x->is_text && x->column->cell == RP_CELL_WORD) {
            x->value = find_word(x->column, x->text);
        } else if (x->is_text) {
            /* Find the number of a text in the trace of a part, or -1. */
            size_t n = x->len;
            struct rp_scan_part *p = &c->t->parts[c->part];
            const struct rp_trace *t = c->r->trace;
            uint32_t k;

            for (rp_str s = 0; !p->has_names && s < t->str.n; s++)
                RP_TRY(rp_map_intern(&p->names,
                                     rp_hash_bytes(rp_trace_str(t, s), rp_trace_str_len(t, s)), s,
                                     &k, &c->t->err));
            p->has_names = true;
            k = rp_map_get(&p->names, rp_hash_bytes(x->text, n));
            x->value = k != RP_MAP_NONE && rp_trace_str_len(t, k) == n &&
                               !memcmp(rp_trace_str(t, k), x->text, n)
                           ? (int64_t)k
                           : -1;
        }
    }
    for (size_t i = 0; i < c->nconditions; i++)
        if (c->conditions[i].column->indexed && c->conditions[i].op == SQLITE_INDEX_CONSTRAINT_EQ)
            return use_index(c, &c->conditions[i]);
    if (rp_table_id(c->t->table) != RP_TABLE_EVENTS) {
        clip_to_times(c);
    } else if (start_bounds(c, &from, &to)) {
        c->by_track = true;
        c->track = 0;
        c->row = c->end = 0;
    }
    return RP_OK;
}

/* Whether the conditions want another rank than this one. */
static bool is_other_rank(const struct rp_scan *c)
{
    for (size_t i = 0; i < c->nconditions; i++) {
        const struct rp_scan_condition *x = &c->conditions[i];
        int64_t rank;

        if (rp_scan_is_rank(x->column) && x->op == SQLITE_INDEX_CONSTRAINT_EQ &&
            rp_table_int(rp_table_part(&c->t->tables->set, c->t->table, c->part), x->column, 0,
                         &rank) &&
            rank != x->value)
            return true;
    }
    return false;
}

/* Moves to the next range of rows; false if there is none. */
static bool next_range(struct rp_scan *c, enum rp_code *code)
{
    if (c->by_track && c->track < c->r->trace->ntracks) {
        const struct rp_track_info *track = &c->r->trace->tracks[c->track++];

        c->row = track->first;
        c->end = track->end;
        clip_to_times(c);
        return true;
    }
    while (++c->part < c->t->nparts && is_other_rank(c))
        ;
    if (c->part >= c->t->nparts)
        return false;
    *code = enter_part(c);
    return *code == RP_OK;
}

/* Moves from the current place to the next row that fits. */
static int seek(struct rp_scan *c)
{
    enum rp_code code = RP_OK;

    for (;;) {
        for (; c->row < c->end; c->row++) {
            if (++c->looked % ROWS_PER_LOOK == 0 && rp_clock_ns() > c->t->deadline_ns)
                return SQLITE_INTERRUPT;
            if (row_fits(c, rp_scan_row(c)))
                return SQLITE_OK;
        }
        if (!next_range(c, &code))
            return code == RP_OK ? SQLITE_OK : SQLITE_NOMEM;
    }
}

/* ------------------------------------------------------------------ values to compare with */

/* Sets a comparison of integers with a value that is not an integer; false if no integer passes. */
static bool set_real(struct rp_scan_condition *x, double r)
{
    const double most = 9223372036854775808.0;
    bool below = x->op == SQLITE_INDEX_CONSTRAINT_LT || x->op == SQLITE_INDEX_CONSTRAINT_LE;
    bool up = x->op == SQLITE_INDEX_CONSTRAINT_GE || x->op == SQLITE_INDEX_CONSTRAINT_LT;

    if (x->op == SQLITE_INDEX_CONSTRAINT_EQ && floor(r) != r)
        return false;
    if (r >= -most && r < most && (!up || ceil(r) < most)) {
        x->value = (int64_t)(up ? ceil(r) : floor(r));
        return true;
    }
    if (x->op == SQLITE_INDEX_CONSTRAINT_EQ || below != (r > 0))
        return false;
    x->op = SQLITE_INDEX_CONSTRAINT_LE; /* all but NULL */
    x->value = INT64_MAX;
    return true;
}

/* Compares exactly as SQLite compares a column of integers; false if no row passes. */
static bool set_number(struct rp_scan_condition *x, sqlite3_value *value)
{
    switch (sqlite3_value_numeric_type(value)) {
    case SQLITE_INTEGER:
        x->value = sqlite3_value_int64(value);
        return true;
    case SQLITE_FLOAT:
        return set_real(x, sqlite3_value_double(value));
    case SQLITE_NULL:
        return false;
    default: /* texts come after all numbers */
        return set_real(x, (double)INFINITY);
    }
}

/* Sets a text to compare with; false if only SQLite can compare it. */
static bool set_text(struct rp_scan_condition *x, sqlite3_value *value)
{
    const char *text =
        sqlite3_value_type(value) == SQLITE_TEXT ? (const char *)sqlite3_value_text(value) : NULL;

    if (!text || strlen(text) != (size_t)sqlite3_value_bytes(value)) /* zero bytes are in it */
        return false;
    x->is_text = true;
    x->len = strlen(text);
    x->text = sqlite3_mprintf("%s", text);
    return x->text != NULL;
}

/* ------------------------------------------------------------------ from the first row on */

void rp_scan_end(struct rp_scan *c)
{
    for (size_t i = 0; i < c->nconditions; i++) {
        sqlite3_free((void *)(uintptr_t)c->conditions[i].text);
        free(c->conditions[i].fits);
    }
    c->nconditions = 0;
    sqlite3_free(c->sorted);
    c->sorted = NULL;
}

/* ------------------------------------------------------------------ in another order */

static void take_sorted(struct rp_scan *c)
{
    if (c->at == c->nsorted) {
        c->part = c->t->nparts;
        return;
    }
    c->part = c->sorted[c->at] >> 32;
    c->r = rp_table_part(&c->t->tables->set, c->t->table, c->part);
    c->row = (uint32_t)c->sorted[c->at];
    c->list = NULL;
}

/* Takes all rows from the first one on, and begins with the first of the order. */
static int sort_rows(struct rp_scan *c, const char *order)
{
    size_t room = 64;
    int status = SQLITE_OK;

    c->nsorted = c->at = 0;
    c->sorted = sqlite3_malloc64(room * sizeof *c->sorted);
    while (c->sorted && status == SQLITE_OK && !rp_scan_is_over(c)) {
        if (c->nsorted == room) {
            uint64_t *more = sqlite3_realloc64(c->sorted, 2 * room * sizeof *more);

            if (!more)
                return SQLITE_NOMEM;
            c->sorted = more;
            room *= 2;
        }
        c->sorted[c->nsorted++] = c->part << 32 | rp_scan_row(c);
        c->row++;
        status = seek(c);
    }
    if (status == SQLITE_OK)
        status = c->sorted ? rp_order_rows(c->t, order, c->sorted, c->nsorted) : SQLITE_NOMEM;
    take_sorted(c);
    return status;
}

int rp_scan_next(struct rp_scan *c)
{
    if (!c->sorted) {
        c->row++;
        return seek(c);
    }
    c->at++;
    take_sorted(c);
    return SQLITE_OK;
}

int rp_scan_begin(struct rp_scan *c, const char *plan, int argc, sqlite3_value **argv)
{
    bool none = false;
    int status = SQLITE_OK;

    rp_scan_end(c);
    for (int i = 0; i < argc; i++, plan += 2) {
        struct rp_scan_condition *x = &c->conditions[c->nconditions];

        *x = (struct rp_scan_condition){.column = &c->t->columns[plan[0] - 'A'],
                                        .op = (uint8_t)plan[1]};
        if (rp_table_is_text(x->column))
            c->nconditions += set_text(x, argv[i]);
        else if (set_number(x, argv[i]))
            c->nconditions++;
        else
            none = true;
    }
    c->part = none ? c->t->nparts : 0;
    c->row = c->end = 0;
    c->by_track = false;
    while (c->part < c->t->nparts && is_other_rank(c))
        c->part++;
    if (c->part < c->t->nparts && enter_part(c) != RP_OK)
        return SQLITE_NOMEM;
    if (c->part < c->t->nparts)
        status = seek(c);
    return status == SQLITE_OK && plan && *plan ? sort_rows(c, plan) : status;
}
#endif
