/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads a record by its description. `record` is always the struct that contains the field, not the
 * field itself, because the count of a list is another member of the struct.
 */
#include <math.h>
#include <reprise/result.h>
#include <stdbool.h>
#include <string.h>

/* for (const struct rp_field *f = type->fields; rp_field_here(f); f++) */
static inline bool rp_field_here(const struct rp_field *field)
{
    return field->doc != NULL;
}

/* Returns the first field, from f on, that JSON and CSV have: RP_SCREEN fields are skipped. */
static inline const struct rp_field *rp_field_data(const struct rp_field *f)
{
    while (rp_field_here(f) && (f->flags & RP_SCREEN))
        f++;
    return f;
}

static inline const void *rp_field_at(const struct rp_field *field, const void *record)
{
    return (const char *)record + field->offset;
}

static inline bool rp_field_scalar(const struct rp_field *field)
{
    return field->type < RP_T_RECORD;
}

static inline bool rp_field_number(const struct rp_field *field)
{
    return field->type == RP_T_I64 || field->type == RP_T_U64 || field->type == RP_T_F64;
}

static inline int64_t rp_field_i64(const struct rp_field *field, const void *record)
{
    int64_t value;

    memcpy(&value, rp_field_at(field, record), sizeof value);
    return value;
}

static inline uint64_t rp_field_u64(const struct rp_field *field, const void *record)
{
    return (uint64_t)rp_field_i64(field, record);
}

static inline double rp_field_f64(const struct rp_field *field, const void *record)
{
    double value;

    memcpy(&value, rp_field_at(field, record), sizeof value);
    return value;
}

static inline bool rp_field_bool(const struct rp_field *field, const void *record)
{
    bool value;

    memcpy(&value, rp_field_at(field, record), sizeof value);
    return value;
}

static inline const char *rp_field_str(const struct rp_field *field, const void *record)
{
    const char *value;

    memcpy(&value, rp_field_at(field, record), sizeof value);
    return value;
}

/* Only for lists and maps. */
static inline size_t rp_field_count(const struct rp_field *field, const void *record)
{
    size_t n;

    memcpy(&n, (const char *)record + field->count_offset, sizeof n);
    return n;
}

static inline const void *rp_field_item(const struct rp_field *field, const void *record, size_t i)
{
    const char *items;

    memcpy(&items, rp_field_at(field, record), sizeof items);
    return items + i * field->item->size;
}

/* Whether the value of a scalar is not known. */
static inline bool rp_field_null(const struct rp_field *field, const void *record)
{
    switch (field->type) {
    case RP_T_I64:
        return (field->flags & RP_NULLABLE) && rp_field_i64(field, record) == RP_ABSENT_I64;
    case RP_T_F64:
        return !isfinite(rp_field_f64(field, record));
    case RP_T_STR:
        return rp_field_str(field, record) == NULL;
    default:
        return false;
    }
}

/* Whether a record is missing, which is so if its first field is a text that is missing. */
static inline bool rp_field_no_record(const struct rp_field *field, const void *record)
{
    return field->type == RP_T_RECORD && (field->flags & RP_NULLABLE) &&
           rp_field_null(field->item->fields, rp_field_at(field, record));
}

/* Returns the only field of a type that is a plain value (rp_type_string), or NULL. */
static inline const struct rp_field *rp_type_plain(const struct rp_type *type)
{
    const struct rp_field *field = type->fields;

    return rp_field_here(field) && !field->key ? field : NULL;
}

static inline size_t rp_type_nfields(const struct rp_type *type)
{
    size_t n = 0;

    while (rp_field_here(&type->fields[n]))
        n++;
    return n;
}
