/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints a record as JSON. Each field of the root and each item of a list has its own line;
 * anything else is one line if it fits into 100 columns, and otherwise indented lines. A dry run of
 * the same code that stops at the limit tells whether it fits, so the cost is linear and nothing is
 * allocated. The text is always valid: invalid UTF-8 becomes U+FFFD, NaN and infinity become null.
 */
#include "base/escape.h"
#include "result/print_text.h"
#include "result/print_units.h"
#include "result/result.h"
#include "result/walk.h"

#include <inttypes.h>
#include <stdio.h>

#define LINE 100

struct json {
    struct rp_out *to; /* NULL for a dry run, which only counts */
    size_t n, limit;   /* bytes so far; a dry run stops beyond the limit */
};

static void compact_field(struct json *j, const struct rp_field *field, const void *record);
static void pretty_field(struct json *j, const struct rp_field *field, const void *record,
                         size_t indent, size_t column);

static void json_put(struct json *j, const char *bytes, size_t n)
{
    if (j->to)
        rp_out_write(j->to, bytes, n);
    j->n += n;
}

static void json_text(struct json *j, const char *text)
{
    json_put(j, text, strlen(text));
}

static bool json_too_long(const struct json *j)
{
    return !j->to && j->n > j->limit;
}

static void json_piece(void *json, const char *bytes, size_t n)
{
    json_put(json, bytes, n);
}

static void json_string(struct json *j, const char *s)
{
    size_t room = j->limit > j->n ? j->limit - j->n : 0;

    /* a dry run needs only the begin of a text that is too long, because texts never get shorter */
    rp_escape(RP_IN_JSON, s, j->to ? strlen(s) : strnlen(s, room + 1), json_piece, j);
}

static void json_scalar(struct json *j, const struct rp_field *field, const void *record)
{
    char text[32];

    if (rp_field_null(field, record)) {
        json_text(j, "null");
        return;
    }
    switch (field->type) {
    case RP_T_BOOL:
        json_text(j, rp_field_bool(field, record) ? "true" : "false");
        return;
    case RP_T_STR:
        json_string(j, rp_field_str(field, record));
        return;
    case RP_T_I64:
        snprintf(text, sizeof text, "%" PRId64, rp_field_i64(field, record));
        break;
    case RP_T_U64:
        snprintf(text, sizeof text, "%" PRIu64, rp_field_u64(field, record));
        break;
    default:
        rp_units_double(rp_field_f64(field, record), text);
        break;
    }
    json_text(j, text);
}

static void json_key(struct json *j, const char *key)
{
    json_string(j, key);
    json_put(j, ": ", 2);
}

/* Writes the fields from `fields` on as { ... }. */
static void compact_record(struct json *j, const struct rp_field *fields, const void *record)
{
    json_put(j, "{", 1);
    fields = rp_field_data(fields);
    for (const struct rp_field *f = fields; rp_field_here(f) && !json_too_long(j);
         f = rp_field_data(f + 1)) {
        if (f != fields)
            json_put(j, ", ", 2);
        json_key(j, f->key);
        compact_field(j, f, record);
    }
    json_put(j, "}", 1);
}

/* Writes an item of a list: a plain value or a record. */
static void compact_item(struct json *j, const struct rp_type *type, const void *item)
{
    if (rp_type_plain(type))
        json_scalar(j, type->fields, item);
    else
        compact_record(j, type->fields, item);
}

static void json_map_key(struct json *j, const struct rp_type *type, const void *item)
{
    const char *key = rp_field_str(&type->fields[0], item);

    json_key(j, key ? key : "");
}

static void compact_entry(struct json *j, const struct rp_type *type, const void *item)
{
    json_map_key(j, type, item);
    if (rp_type_nfields(type) == 2)
        compact_field(j, &type->fields[1], item);
    else
        compact_record(j, &type->fields[1], item);
}

static void compact_field(struct json *j, const struct rp_field *field, const void *record)
{
    if (rp_field_scalar(field))
        json_scalar(j, field, record);
    else if (rp_field_no_record(field, record) ||
             (field->type == RP_T_MAP && field->flags & RP_NULLABLE &&
              !rp_field_count(field, record)))
        json_text(j, "null");
    else if (field->type == RP_T_RECORD)
        compact_record(j, field->item->fields, rp_field_at(field, record));
    else {
        /* The items, without spaces between them. */
        bool map = field->type == RP_T_MAP;
        json_put(j, map ? "{" : "[", 1);
        for (size_t i = 0; i < rp_field_count(field, record) && !json_too_long(j); i++) {
            if (i)
                json_put(j, ", ", 2);
            (map ? compact_entry : compact_item)(j, field->item, rp_field_item(field, record, i));
        }
        json_put(j, map ? "}" : "]", 1);
    }
}

/* Whether a record is always one line: scalars, lists of numbers, and records of these. */
static bool is_flat(const struct rp_type *type)
{
    for (const struct rp_field *f = rp_field_data(type->fields); rp_field_here(f);
         f = rp_field_data(f + 1)) {
        const struct rp_field *plain = f->type == RP_T_LIST ? rp_type_plain(f->item) : NULL;

        if (!rp_field_scalar(f) && !(plain && rp_field_number(plain)) &&
            !(f->type == RP_T_RECORD && is_flat(f->item)))
            return false;
    }
    return true;
}

static void json_begin_line(struct json *j, size_t indent, bool first)
{
    json_text(j, first ? "\n" : ",\n");
    rp_screen_pad(j->to, indent);
}

static void json_end_line(struct json *j, size_t indent, const char *bracket)
{
    json_put(j, "\n", 1);
    rp_screen_pad(j->to, indent);
    json_text(j, bracket);
}

static void pretty_fields(struct json *j, const struct rp_field *fields, const void *record,
                          size_t indent, bool first)
{
    for (const struct rp_field *f = rp_field_data(fields); rp_field_here(f);
         f = rp_field_data(f + 1), first = false) {
        json_begin_line(j, indent, first);
        json_key(j, f->key);
        pretty_field(j, f, record, indent, indent + strlen(f->key) + 4);
    }
}

/* Writes a record of which `fields` are shown (a map's items show all except their key). */
static void pretty_record(struct json *j, const struct rp_type *type, const struct rp_field *fields,
                          const void *record, size_t indent, size_t column)
{
    struct json dry = {NULL, 0, column < LINE ? LINE - column : 0};

    if (!is_flat(type))
        compact_record(&dry, fields, record);
    if (dry.n <= dry.limit) {
        compact_record(j, fields, record);
        return;
    }
    json_put(j, "{", 1);
    pretty_fields(j, fields, record, indent + 2, true);
    json_end_line(j, indent, "}");
}

static void pretty_entry(struct json *j, const struct rp_type *type, const void *item,
                         size_t indent)
{
    size_t start = j->n;

    json_map_key(j, type, item);
    if (rp_type_nfields(type) == 2)
        pretty_field(j, &type->fields[1], item, indent, indent + (j->n - start));
    else
        pretty_record(j, type, &type->fields[1], item, indent, indent + (j->n - start));
}

static void pretty_field(struct json *j, const struct rp_field *field, const void *record,
                         size_t indent, size_t column)
{
    const struct rp_field *plain = field->type == RP_T_LIST ? rp_type_plain(field->item) : NULL;
    struct json dry = {NULL, 0, column < LINE ? LINE - column : 0};

    if (!rp_field_scalar(field) && !(plain && rp_field_number(plain)))
        compact_field(&dry, field, record);
    if (dry.n <= dry.limit) {
        compact_field(j, field, record);
    } else if (field->type == RP_T_RECORD) {
        json_put(j, "{", 1);
        pretty_fields(j, field->item->fields, rp_field_at(field, record), indent + 2, true);
        json_end_line(j, indent, "}");
    } else {
        /* The items, each in a line of its own if they are records. */
        bool map = field->type == RP_T_MAP;
        size_t n = rp_field_count(field, record);
        json_put(j, map ? "{" : "[", 1);
        for (size_t i = 0; i < n; i++) {
            const void *item = rp_field_item(field, record, i);
            json_begin_line(j, indent + 2, i == 0);
            if (map)
                pretty_entry(j, field->item, item, indent + 2);
            else if (rp_type_plain(field->item))
                json_scalar(j, field->item->fields, item);
            else
                pretty_record(j, field->item, field->item->fields, item, indent + 2, indent + 2);
        }
        json_end_line(j, indent, map ? "}" : "]");
    }
}

void rp_print_json(const struct rp_type *type, const void *root, const struct rp_result *result,
                   struct rp_out *to)
{
    struct json j = {to, 0, 0};

    json_text(&j, "{\n  \"schema\": \"reprise.");
    json_text(&j, type->name);
    json_text(&j, "/1\"");
    if (result && result->has_trust)
        pretty_fields(&j, rp_result_trust_type.fields, result, 2, false);
    pretty_fields(&j, type->fields, root, 2, false);
    json_text(&j, "\n}\n");
}
