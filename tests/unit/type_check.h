/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The rules of result types, by which the tests check the type of every question.
 *
 * Walks the type tree once with the units in which the keys above end. A type that contains itself
 * is entered once per path (the chain of frames is searched), so the walk ends.
 */
#include "base/text.h"

#include "result/columns.h"
#include "result/walk.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
    const char *suffix;
    enum rp_unit unit;
} suffixes[] = {
    /* longer suffixes come first: _bytes_per_s is not _bytes */
    {"_bytes_per_s", RP_UNIT_BPS}, {"_flops_per_s", RP_UNIT_FLOPS}, {"_bytes", RP_UNIT_BYTES},
    {"_ratio", RP_UNIT_RATIO},     {"_share", RP_UNIT_RATIO},       {"_ns", RP_UNIT_NS},
    {"_hz", RP_UNIT_HZ},           {"_flops", RP_UNIT_FLOP},
};

#define NSUFFIXES (sizeof suffixes / sizeof *suffixes)

struct frame { /* a type being checked, and how it was reached */
    const struct frame *up;
    const struct rp_type *type;
    const char *key;   /* the key of the field that led here; NULL at the root */
    unsigned promised; /* the units in which the keys above end: 1 << unit */
};

struct report {
    char *why;
    size_t cap;
};

static size_t put_path(char *out, size_t cap, const struct frame *frame)
{
    size_t n = frame->up ? put_path(out, cap, frame->up) : 0;
    int more = snprintf(out + n, cap - n, "%s%s", frame->up ? "." : "",
                        frame->key ? frame->key : frame->type->name);

    return n + (size_t)more < cap ? n + (size_t)more : cap - 1;
}

__attribute__((format(printf, 4, 5))) static bool rule_broken(const struct report *report,
                                                              const struct frame *frame,
                                                              const struct rp_field *field,
                                                              const char *fmt, ...)
{
    va_list args;

    if (report->cap == 0)
        return false;
    size_t n = put_path(report->why, report->cap, frame);
    n += (size_t)snprintf(report->why + n, report->cap - n, "%s%s: ", field ? "." : "",
                          field ? (field->key ? field->key : "(value)") : "");
    if (n >= report->cap)
        return false;
    va_start(args, fmt);
    vsnprintf(report->why + n, report->cap - n, fmt, args);
    va_end(args);
    return false;
}

/* Returns the unit in which a key ends, or RP_UNIT_NONE. */
static enum rp_unit unit_of_key(const char *key)
{
    for (size_t i = 0; i < NSUFFIXES; i++)
        if (rp_text_ends(key, suffixes[i].suffix))
            return suffixes[i].unit;
    return RP_UNIT_NONE;
}

static const char *suffix_of_unit(enum rp_unit unit)
{
    for (size_t i = 0; i < NSUFFIXES; i++)
        if (suffixes[i].unit == unit)
            return suffixes[i].suffix;
    return NULL;
}

static bool is_bare_unit(const char *key, enum rp_unit unit)
{
    for (size_t i = 0; i < NSUFFIXES; i++)
        if (suffixes[i].unit == unit && strcmp(key, suffixes[i].suffix + 1) == 0)
            return true;
    return false;
}

static bool check_unit(const struct report *r, const struct frame *frame, const struct rp_field *f)
{
    enum rp_unit named = f->key ? unit_of_key(f->key) : RP_UNIT_NONE;
    const char *suffix = suffix_of_unit(f->unit);

    if (!rp_field_number(f)) {
        if (f->unit != RP_UNIT_NONE)
            return rule_broken(r, frame, f, "only numbers have a unit");
        if (rp_field_scalar(f) && named != RP_UNIT_NONE)
            return rule_broken(r, frame, f,
                               "the key ends in a unit, but the field is not a number");
        return true;
    }
    if (named != RP_UNIT_NONE && named != f->unit)
        return rule_broken(r, frame, f, "the key ends in '%s', which does not match its unit",
                           suffix_of_unit(named));
    if (!suffix || named == f->unit || (frame->promised & 1u << f->unit) ||
        (f->key && is_bare_unit(f->key, f->unit)))
        return true;
    return rule_broken(r, frame, f,
                       "the key, or that of an enclosing record, list or map, must end in '%s'",
                       suffix);
}

static bool check_key(const struct report *r, const struct frame *frame, const struct rp_field *f)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

    if (!f->key) {
        if (rp_type_nfields(frame->type) != 1 || !rp_field_scalar(f))
            return rule_broken(r, frame, f, "only the single scalar of a plain type has no key");
        return true;
    }
    if (!*f->key || f->key[strspn(f->key, letters)])
        return rule_broken(r, frame, f, "a key consists of letters, digits and '_'");
    if (!frame->up && strcmp(f->key, "schema") == 0)
        return rule_broken(r, frame, f, "the key is reserved");
    for (const struct rp_field *g = frame->type->fields; g != f; g++)
        if (g->key && strcmp(g->key, f->key) == 0)
            return rule_broken(r, frame, f, "duplicate key");
    return true;
}

static bool lies_inside(size_t offset, size_t size, size_t align, size_t whole)
{
    return offset % align == 0 && size <= whole && offset <= whole - size;
}

static bool check_offset(const struct report *r, const struct frame *frame,
                         const struct rp_field *f)
{
    static const size_t sizes[] = {[RP_T_BOOL] = sizeof(bool),
                                   [RP_T_I64] = 8,
                                   [RP_T_U64] = 8,
                                   [RP_T_F64] = 8,
                                   [RP_T_STR] = sizeof(char *),
                                   [RP_T_RECORD] = 1,
                                   [RP_T_LIST] = sizeof(void *),
                                   [RP_T_MAP] = sizeof(void *)};
    size_t whole = frame->type->size, size;
    bool items = f->type == RP_T_LIST || f->type == RP_T_MAP;

    if ((unsigned)f->type > RP_T_MAP)
        return rule_broken(r, frame, f, "invalid type");
    if (!rp_field_scalar(f) && !f->item)
        return rule_broken(r, frame, f, "the type of the items is missing");
    size = f->type == RP_T_RECORD ? f->item->size : sizes[f->type];
    if (!lies_inside(f->offset, size, sizes[f->type], whole) ||
        (items && !lies_inside(f->count_offset, sizeof(size_t), sizeof(size_t), whole)))
        return rule_broken(r, frame, f, "lies outside the struct of %zu bytes", whole);
    return true;
}

static bool check_map(const struct report *r, const struct frame *frame, const struct rp_field *f)
{
    if (f->type == RP_T_MAP &&
        (rp_type_nfields(f->item) < 2 || f->item->fields[0].type != RP_T_STR))
        return rule_broken(r, frame, f, "a map's item is a text, the key, and at least one value");
    return true;
}

static bool check_columns(const struct report *r, const struct frame *frame,
                          const struct rp_field *f)
{
    struct rp_columns chosen;
    const char *wrong = f->columns ? rp_columns_choose(f, &chosen) : NULL;

    if (wrong)
        return rule_broken(
            r, frame, f,
            "the column '%s' is not a field of the items, has no title, or is too much", wrong);
    return true;
}

static bool in_chain(const struct frame *frame, const struct rp_type *type)
{
    for (; frame; frame = frame->up)
        if (frame->type == type)
            return true;
    return false;
}

static bool check_frame(const struct report *r, const struct frame *frame)
{
    if (!rp_field_here(frame->type->fields))
        return rule_broken(r, frame, NULL, "the type has no fields (or the first has no doc)");
    for (const struct rp_field *f = frame->type->fields; rp_field_here(f); f++) {
        struct frame inner = {frame, f->item, f->key, frame->promised};

        if (!check_key(r, frame, f) || !check_offset(r, frame, f) || !check_unit(r, frame, f))
            return false;
        if (!*f->doc)
            return rule_broken(r, frame, f, "the doc is empty");
        if (rp_field_scalar(f))
            continue;
        if (!check_map(r, frame, f) || !check_columns(r, frame, f))
            return false;
        if (f->key)
            inner.promised |= 1u << unit_of_key(f->key);
        if (!in_chain(frame, f->item) && !check_frame(r, &inner))
            return false;
    }

    /* A table ends with RP_FIELD_END, whose key is NULL; a field without doc would end it too
     * early. */
    const struct rp_field *end = &frame->type->fields[rp_type_nfields(frame->type)];
    if (end->key)
        return rule_broken(r, frame, end, "the field has no doc");
    return true;
}

static bool check_csv_rows(const struct report *r, const struct frame *frame)
{
    const struct rp_type *type = frame->type;
    const char *path = type->rows;

    while (path && *path) {
        size_t len = strcspn(path, "/");
        const struct rp_field *f = type->fields;

        while (rp_field_here(f) && !(f->key && strlen(f->key) == len && !memcmp(f->key, path, len)))
            f++;
        if (!rp_field_here(f) || rp_field_scalar(f))
            return rule_broken(r, frame, NULL, "rows '%s' does not lead to a list",
                               frame->type->rows);
        type = f->item;
        path += len + (path[len] == '/');
        if (!*path && f->type != RP_T_LIST && f->type != RP_T_MAP)
            return rule_broken(r, frame, NULL, "rows '%s' does not lead to a list",
                               frame->type->rows);
    }
    return true;
}

/*
 * Returns true if the type and all types inside it follow the rules; otherwise `why` says which
 * field breaks which rule ("info.files.total: the key ... must end in '_ns'").
 *
 *   - the key of a number, or that of an enclosing record, list or map, ends in the suffix of its
 *     unit (or is the unit: "bytes"), and no key ends in the suffix of another unit
 *   - only numbers have units
 *   - keys are [A-Za-z0-9_]+ and unique in their record; every field has a doc
 *   - values lie inside the struct, aligned; lists, maps and records have a type of items
 *   - the columns that a list shows are fields of its items, and have a title
 *   - the first field of a map's item is its key, a text; the path of the CSV rows leads to a list
 */
static bool rp_type_check(const struct rp_type *type, char *why, size_t cap)
{
    struct report report = {why, cap};
    struct frame root = {NULL, type, NULL, 0};

    if (cap)
        *why = '\0';
    return check_frame(&report, &root) && check_csv_rows(&report, &root);
}
