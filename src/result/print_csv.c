/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints one list of a record as CSV (RFC 4180 quoting, lines end in LF): the one that type->rows
 * names. If the path passes through other lists ("ranks/causes"), a row begins with the scalars of
 * the items on the path, in columns "ranks.…". Values are raw: integers in the unit of their key,
 * empty if not known ("" is an empty text). Nested records become columns parent.key; lists and
 * maps inside a row are left out.
 */
#include "io/escaped.h"
#include "result/print_units.h"
#include "result/result.h"
#include "result/walk.h"

#include <inttypes.h>
#include <stdio.h>

#define MAX_STEPS  8   /* of a rows path */
#define MAX_PREFIX 160 /* of the prefix "parent.parent." of a column */

struct csv {
    struct rp_out *to;
    size_t ncells;     /* of this line so far */
    const char *plain; /* the column's name if a row is a plain value */
    size_t nsteps;
    const struct rp_field *step[MAX_STEPS]; /* the fields of the path */
    const void *item[MAX_STEPS]; /* while printing rows: the item that contains the row */
};

static void csv_begin_cell(struct csv *csv)
{
    if (csv->ncells++)
        rp_out_char(csv->to, ',');
}

static void csv_cell(struct csv *csv, const struct rp_field *field, const void *record)
{
    char number[32];

    csv_begin_cell(csv);
    if (rp_field_null(field, record))
        return;
    switch (field->type) {
    case RP_T_BOOL:
        rp_out_text(csv->to, rp_field_bool(field, record) ? "true" : "false");
        break;
    case RP_T_STR:
        rp_out_escaped(csv->to, RP_IN_CSV, rp_field_str(field, record));
        break;
    case RP_T_I64:
        rp_out_printf(csv->to, "%" PRId64, rp_field_i64(field, record));
        break;
    case RP_T_U64:
        rp_out_printf(csv->to, "%" PRIu64, rp_field_u64(field, record));
        break;
    default:
        rp_units_double(rp_field_f64(field, record), number);
        rp_out_text(csv->to, number);
        break;
    }
}

/* Writes column names (record == NULL) or values of all scalars of a record. */
static void csv_columns(struct csv *csv, const struct rp_type *type, const void *record,
                        const char *prefix)
{
    for (const struct rp_field *f = rp_field_data(type->fields); rp_field_here(f);
         f = rp_field_data(f + 1)) {
        char inner[MAX_PREFIX];

        if (f->type == RP_T_RECORD) {
            snprintf(inner, sizeof inner, "%s%s.", prefix, f->key);
            csv_columns(csv, f->item, record ? rp_field_at(f, record) : NULL, inner);
        } else if (rp_field_scalar(f) && record) {
            csv_cell(csv, f, record);
        } else if (rp_field_scalar(f)) {
            const char *key = f->key ? f->key : csv->plain;
            csv_begin_cell(csv);
            rp_out_text(csv->to, prefix);
            rp_out_text(csv->to, key);
        }
    }
}

static bool holds_items(const struct rp_field *field)
{
    return field->type == RP_T_LIST || field->type == RP_T_MAP;
}

/* Writes the header (values == false), or the row whose items are in csv->item. */
static void csv_line(struct csv *csv, const struct rp_type *type, const void *row, bool values)
{
    csv->ncells = 0;
    for (size_t i = 0; i + 1 < csv->nsteps; i++) {
        char prefix[MAX_PREFIX];

        if (!holds_items(csv->step[i]))
            continue;
        snprintf(prefix, sizeof prefix, "%s.", csv->step[i]->key);
        csv_columns(csv, csv->step[i]->item, values ? csv->item[i] : NULL, prefix);
    }
    csv_columns(csv, type, values ? row : NULL, "");
    rp_out_char(csv->to, '\n');
}

static void csv_rows(struct csv *csv, size_t i, const void *record)
{
    const struct rp_field *field = csv->step[i];
    bool last = i + 1 == csv->nsteps;

    if (!holds_items(field)) {
        if (last)
            csv_line(csv, field->item, rp_field_at(field, record), true);
        else
            csv_rows(csv, i + 1, rp_field_at(field, record));
        return;
    }
    for (size_t k = 0; k < rp_field_count(field, record); k++) {
        csv->item[i] = rp_field_item(field, record, k);
        if (last)
            csv_line(csv, field->item, csv->item[i], true);
        else
            csv_rows(csv, i + 1, csv->item[i]);
    }
}

static const struct rp_field *csv_find_field(const struct rp_type *type, const char *key,
                                             size_t len)
{
    for (const struct rp_field *f = type->fields; rp_field_here(f); f++)
        if (f->key && strlen(f->key) == len && memcmp(f->key, key, len) == 0)
            return rp_field_scalar(f) ? NULL : f;
    return NULL;
}

/* Fills csv->step; false if the path leads nowhere (the tests find that by rp_type_check). */
static bool csv_find_rows(struct csv *csv, const struct rp_type *type)
{
    const char *path = type->rows;

    while (path && *path) {
        size_t len = strcspn(path, "/");
        const struct rp_field *field = csv_find_field(type, path, len);

        if (!field || csv->nsteps == MAX_STEPS)
            return false;
        csv->step[csv->nsteps++] = field;
        csv->plain = field->key;
        type = field->item;
        path += len + (path[len] == '/');
    }
    return csv->nsteps > 0;
}

void rp_print_csv(const struct rp_type *type, const void *root, struct rp_out *to)
{
    struct csv csv = {.to = to, .plain = "value"};

    if (csv_find_rows(&csv, type)) {
        csv_line(&csv, csv.step[csv.nsteps - 1]->item, NULL, false);
        csv_rows(&csv, 0, root);
    } else {
        csv.nsteps = 0;
        csv_line(&csv, type, NULL, false);
        csv_line(&csv, type, root, true);
    }
}
