/* SPDX-License-Identifier: Apache-2.0 */
#include "query/groups.h"

#if RP_HAVE_SQLITE
#include "base/hash.h"

#define GROUPS  ((size_t)16384)
#define PLACES  (2 * GROUPS) /* of the hash table */
#define NO_CODE INT64_MIN    /* of a NULL */
#define CLOSED  INT64_MIN    /* in HAVE: the group takes no more rows */

/* A group is a row of words: the part and row of its first member, flags of sums that have a value,
   the sums, and the codes of its keys. */
enum { FIRST, HAVE, SUMS };

struct cursor {
    sqlite3_vtab_cursor base;
    const struct rp_groups_table *g;
    struct rp_scan scan;
    const struct rp_table_column *keys[RP_TABLE_COLUMNS_MAX];
    size_t nkeys, width; /* of a group, in words */
    int64_t *groups;
    uint32_t *places; /* number of a group + 1 */
    size_t ngroups, at;
    int64_t before; /* number of groups that were already given out */
};

/* ------------------------------------------------------------------ planning */

/* idxNum has the columns that are keys, as bits. */
static int groups_best(sqlite3_vtab *base, sqlite3_index_info *info)
{
    const struct rp_groups_table *g = (const void *)((struct rp_vtab *)base)->t;
    uint32_t tested[RP_TABLE_COLUMNS_MAX] = {0};
    uint64_t keys = info->colUsed & ((UINT64_C(1) << g->t.table->ncolumns) - 1);
    int status = rp_vtab_best(base, info);

    for (int i = 0; i < info->nConstraint; i++)
        if (info->aConstraintUsage[i].argvIndex)
            tested[info->aConstraint[i].iColumn]++;
    for (int i = 0; i < info->nConstraint; i++) {
        int c = info->aConstraint[i].iColumn;

        if (!info->aConstraintUsage[i].argvIndex || rp_table_is_text(&g->t.columns[c]) ||
            tested[c] != g->uses[c])
            continue;
        info->aConstraintUsage[i].omit = 1;
        keys &= ~(UINT64_C(1) << c);
    }
    info->idxNum = (int)(uint32_t)keys;
    /* Conditions do not make it cheaper: for 'a = 1 or b = 2' SQLite would look for both, and
       recognise rows that it has seen by their numbers. Rows of two groups have no such number. */
    info->estimatedCost = (double)UINT32_MAX;
    info->estimatedRows =
        info->estimatedRows > (sqlite3_int64)GROUPS ? (sqlite3_int64)GROUPS : info->estimatedRows;
    return status;
}

static int groups_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    struct cursor *c = sqlite3_malloc(sizeof *c);

    if (!c)
        return SQLITE_NOMEM;
    *c = (struct cursor){.g = (const void *)((struct rp_vtab *)base)->t,
                         .scan.t = ((struct rp_vtab *)base)->t};
    *out = &c->base;
    return SQLITE_OK;
}

static int groups_close(sqlite3_vtab_cursor *base)
{
    struct cursor *c = (struct cursor *)base;

    rp_scan_end(&c->scan);
    sqlite3_free(c->groups);
    sqlite3_free(c->places);
    sqlite3_free(c);
    return SQLITE_OK;
}

/* ------------------------------------------------------------------ one row */

/* Returns a number that is equal for equal values; for texts it may also differ. */
static int64_t code_of(const struct rp_table_rank *r, const struct rp_table_column *column,
                       size_t row)
{
    int64_t code = NO_CODE;

    if (column->cell != RP_CELL_TEXT && column->cell != RP_CELL_F64)
        return rp_table_int(r, column, row, &code) ? code : NO_CODE;
    const void *at = rp_table_at(r, column, row);
    if (at)
        memcpy(&code, at, sizeof code);
    return code;
}

static int64_t *codes_of(const struct cursor *c, size_t group)
{
    return c->groups + group * c->width + SUMS + c->g->t.nsums;
}

/* Finds the group of the row, or makes it; NULL if there is no room. */
static int64_t *find_group(struct cursor *c, size_t row)
{
    int64_t codes[RP_TABLE_COLUMNS_MAX];
    uint64_t hash = c->scan.part;
    uint32_t place;

    for (size_t i = 0; i < c->nkeys; i++) {
        codes[i] = code_of(c->scan.r, c->keys[i], row);
        hash = rp_hash_u64(hash + (uint64_t)codes[i]);
    }
    for (place = (uint32_t)hash % PLACES; c->places[place]; place = (place + 1) % PLACES) {
        size_t group = c->places[place] - 1, i = 0;
        const int64_t *other = codes_of(c, group);

        while (i < c->nkeys && codes[i] == other[i])
            i++;
        if (i == c->nkeys && c->groups[group * c->width + HAVE] >= 0 &&
            (size_t)c->groups[group * c->width] >> 32 == c->scan.part)
            return c->groups + group * c->width;
    }

    int64_t *group = c->groups + c->ngroups * c->width;
    if (c->ngroups == GROUPS)
        return NULL;
    memset(group, 0, c->width * sizeof *group);
    group[FIRST] = (int64_t)(c->scan.part << 32 | row);
    memcpy(codes_of(c, c->ngroups), codes, c->nkeys * sizeof *codes);
    c->places[place] = (uint32_t)++c->ngroups;
    return group;
}

/* Adds a value; false if the sum is too large for an integer. */
static bool add_value(int64_t *sum, bool is_first, uint8_t what, int64_t value)
{
    switch (what) {
    case RP_GROUPS_SUM:
        if (__builtin_add_overflow(*sum, value, &value))
            return false;
        *sum = value;
        return true;
    case RP_GROUPS_LEAST:
        *sum = is_first || value < *sum ? value : *sum;
        return true;
    case RP_GROUPS_MOST:
        *sum = is_first || value > *sum ? value : *sum;
        return true;
    default:
        ++*sum;
        return true;
    }
}

static bool has_value(const struct rp_table_rank *r, const struct rp_table_column *column,
                      size_t row)
{
    int64_t value;
    double real;
    size_t n;

    if (rp_table_is_text(column))
        return rp_table_text(r, column, row, &n) != NULL;
    return column->cell == RP_CELL_F64 ? rp_table_real(r, column, row, &real)
                                       : rp_table_int(r, column, row, &value);
}

/* Finds the value that a row adds to the i-th sum; false if there is none. */
static bool value_for(const struct cursor *c, size_t i, size_t row, int64_t *value)
{
    const struct rp_groups_sum *s = &c->g->sums[i];

    *value = 1;
    return s->what == RP_GROUPS_ROWS     ? true
           : s->what == RP_GROUPS_VALUES ? has_value(c->scan.r, s->column, row)
                                         : rp_table_int(c->scan.r, s->column, row, value);
}

/* Adds a row to a group; returns false, with the group unchanged, if a sum is too large for an
   integer. (Least and greatest values may change, because the row is added to another group of the
   same keys.) */
static bool add_row(const struct cursor *c, int64_t *group, size_t row)
{
    int64_t value;
    size_t i;

    for (i = 0; i < c->g->t.nsums; i++) {
        int64_t bit = INT64_C(1) << i;

        if (!value_for(c, i, row, &value))
            continue;
        if (!add_value(&group[SUMS + i], !(group[HAVE] & bit), c->g->sums[i].what, value))
            break;
        group[HAVE] |= bit;
    }
    if (i == c->g->t.nsums)
        return true;
    while (i--)
        if (c->g->sums[i].what <= RP_GROUPS_SUM && value_for(c, i, row, &value))
            group[SUMS + i] -= value;
    return false;
}

/* ------------------------------------------------------------------ rows of SQLite */

/* Whether all rows count alike, so that numbers of rows can be added without a walk. */
static bool counts_all(const struct cursor *c)
{
    bool all = !c->nkeys && !c->scan.nconditions;

    for (size_t i = 0; i < c->g->t.nsums; i++)
        all = all && c->g->sums[i].what == RP_GROUPS_ROWS;
    return all;
}

/* Reads rows until there is no room for another group. */
static int read_groups(struct cursor *c)
{
    bool all = counts_all(c);
    int status = SQLITE_OK;

    c->before += (int64_t)c->ngroups;
    c->at = c->ngroups = 0;
    memset(c->places, 0, PLACES * sizeof *c->places);
    while (status == SQLITE_OK && !rp_scan_is_over(&c->scan)) {
        size_t row = rp_scan_row(&c->scan);
        int64_t *group = find_group(c, row);

        if (!group)
            break;
        if (!add_row(c, group, row)) {
            group[HAVE] |=
                CLOSED; /* the row begins another group: SQLite adds them up, or refuses to */
            continue;
        }
        if (all) {
            for (size_t i = 0; i < c->g->t.nsums; i++)
                group[SUMS + i] += (int64_t)(c->scan.end - c->scan.row - 1);
            c->scan.row = c->scan.end - 1;
        }
        status = rp_scan_next(&c->scan);
    }
    return status;
}

static int groups_filter(sqlite3_vtab_cursor *base, int keys, const char *plan, int argc,
                         sqlite3_value **argv)
{
    struct cursor *c = (struct cursor *)base;

    c->nkeys = c->ngroups = 0;
    c->before = 0;
    for (size_t i = 0; i < c->scan.t->table->ncolumns; i++)
        if ((uint32_t)keys >> i & 1)
            c->keys[c->nkeys++] = &c->scan.t->columns[i];
    c->width = SUMS + c->g->t.nsums + c->nkeys; /* it is the same at each call for a statement */
    if (!c->groups)
        c->groups = sqlite3_malloc64(GROUPS * c->width * sizeof *c->groups);
    if (!c->places)
        c->places = sqlite3_malloc64(PLACES * sizeof *c->places);
    if (!c->groups || !c->places)
        return SQLITE_NOMEM;
    int status = rp_scan_begin(&c->scan, plan, argc, argv);
    return status == SQLITE_OK ? read_groups(c) : status;
}

static int groups_next(sqlite3_vtab_cursor *base)
{
    struct cursor *c = (struct cursor *)base;

    return ++c->at < c->ngroups || rp_scan_is_over(&c->scan) ? SQLITE_OK : read_groups(c);
}

static int groups_eof(sqlite3_vtab_cursor *base)
{
    const struct cursor *c = (struct cursor *)base;

    return c->at >= c->ngroups;
}

static int groups_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int i)
{
    const struct cursor *c = (struct cursor *)base;
    const struct rp_vtab_table *t = c->scan.t;
    const int64_t *group = c->groups + c->at * c->width;
    size_t sum = (size_t)i - t->table->ncolumns;

    if ((size_t)i < t->table->ncolumns)
        rp_vtab_value(rp_table_part(&t->tables->set, t->table, (size_t)(group[FIRST] >> 32)),
                      &t->columns[i], (uint32_t)group[FIRST], out);
    else if (group[HAVE] >> sum & 1)
        sqlite3_result_int64(out, group[SUMS + sum]);
    return SQLITE_OK;
}

static int groups_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
    const struct cursor *c = (struct cursor *)base;

    *out = c->before + (int64_t)c->at;
    return SQLITE_OK;
}

static const sqlite3_module groups_module = {.iVersion = 1,
                                             .xConnect = rp_vtab_connect,
                                             .xBestIndex = groups_best,
                                             .xDisconnect = rp_vtab_disconnect,
                                             .xOpen = groups_open,
                                             .xClose = groups_close,
                                             .xFilter = groups_filter,
                                             .xNext = groups_next,
                                             .xEof = groups_eof,
                                             .xColumn = groups_column,
                                             .xRowid = groups_rowid};

int rp_groups_register(sqlite3 *db, const char *name, struct rp_groups_table *table)
{
    return sqlite3_create_module_v2(db, name, &groups_module, table, NULL);
}
#endif
