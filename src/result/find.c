/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds values of a result by path, and the rows of its lists. Each step of a path is compared with
 * the keys one by one, because records have tens of fields, and people write paths.
 */
#include "result/result.h"
#include "result/walk.h"

static bool is_separator(char c)
{
    return c == '.' || c == '/';
}

/* Returns what follows a step that ends here; NULL after a separator at the end. */
static const char *next_step(const char *end)
{
    if (!*end)
        return end;
    return is_separator(*end) && end[1] ? end + 1 : NULL;
}

/* Returns the rest of `path` after the step `name`, or NULL if it does not begin with that step. */
static const char *after_step(const char *path, const char *name)
{
    size_t len = strlen(name);

    return strncmp(path, name, len) == 0 ? next_step(path + len) : NULL;
}

static struct rp_cursor list_item(const struct rp_cursor *list, size_t i)
{
    const struct rp_type *type = list->field->item;
    const struct rp_field *value = rp_type_plain(type);

    if (list->field->type == RP_T_MAP)
        value = rp_type_nfields(type) == 2 ? &type->fields[1] : NULL;
    return (struct rp_cursor){type, value, rp_field_item(list->field, list->at, i)};
}

static const char *step_list(struct rp_cursor *at, const char *path)
{
    size_t i = 0, n = rp_field_count(at->field, at->at);

    if (*path < '0' || *path > '9')
        return NULL;
    for (; *path >= '0' && *path <= '9'; path++)
        if ((i = i * 10 + (size_t)(*path - '0')) >= n)
            return NULL;
    path = next_step(path);
    if (path)
        *at = list_item(at, i);
    return path;
}

static const char *map_key(const struct rp_cursor *map, size_t i)
{
    return rp_field_str(&map->field->item->fields[0], rp_field_item(map->field, map->at, i));
}

/* Keys are free text and may contain separators, so the longest one that matches wins. */
static const char *step_map(struct rp_cursor *at, const char *path)
{
    size_t found = 0, n = rp_field_count(at->field, at->at);
    const char *rest = NULL;

    for (size_t i = 0; i < n; i++) {
        const char *key = map_key(at, i);
        const char *after = key ? after_step(path, key) : NULL;

        if (after && (!rest || after > rest)) {
            rest = after;
            found = i;
        }
    }
    if (rest)
        *at = list_item(at, found);
    return rest;
}

static const char *step_record(struct rp_cursor *at, const char *path)
{
    for (const struct rp_field *f = at->type->fields; rp_field_here(f); f++) {
        const char *rest = f->key ? after_step(path, f->key) : NULL;

        if (rest) {
            at->field = f;
            return rest;
        }
    }
    return NULL;
}

static void enter_record(struct rp_cursor *at)
{
    if (at->field && at->field->type == RP_T_RECORD)
        *at = (struct rp_cursor){at->field->item, NULL, rp_field_at(at->field, at->at)};
}

int rp_row_find(const struct rp_cursor *row, const char *path, struct rp_cursor *out)
{
    struct rp_cursor at = *row;

    enter_record(&at);
    while (path && *path) {
        if (!at.field)
            path = step_record(&at, path);
        else if (at.field->type == RP_T_LIST)
            path = step_list(&at, path);
        else if (at.field->type == RP_T_MAP)
            path = step_map(&at, path);
        else
            path = NULL;
        enter_record(&at);
    }
    if (!path)
        return 0;
    *out = at;
    return 1;
}

/* Finds a scalar whose value is known. */
static bool find_scalar(const struct rp_cursor *row, const char *path, struct rp_cursor *at)
{
    return rp_row_find(row, path, at) && at->field && rp_field_scalar(at->field) &&
           !rp_field_null(at->field, at->at);
}

static bool find_list(const struct rp_cursor *row, const char *path, struct rp_cursor *at)
{
    return rp_row_find(row, path, at) && at->field &&
           (at->field->type == RP_T_LIST || at->field->type == RP_T_MAP);
}

int rp_row_i64(const struct rp_cursor *row, const char *path, int64_t *out)
{
    struct rp_cursor at;

    if (!find_scalar(row, path, &at) || (at.field->type != RP_T_I64 && at.field->type != RP_T_U64))
        return 0;
    int64_t value = rp_field_i64(at.field, at.at);
    if (at.field->type == RP_T_U64 && value < 0) /* above INT64_MAX */
        return 0;
    *out = value;
    return 1;
}

int rp_row_f64(const struct rp_cursor *row, const char *path, double *out)
{
    struct rp_cursor at;

    if (!find_scalar(row, path, &at) || !rp_field_number(at.field))
        return 0;
    *out = at.field->type == RP_T_F64   ? rp_field_f64(at.field, at.at)
           : at.field->type == RP_T_U64 ? (double)rp_field_u64(at.field, at.at)
                                        : (double)rp_field_i64(at.field, at.at);
    return 1;
}

int rp_row_bool(const struct rp_cursor *row, const char *path, bool *out)
{
    struct rp_cursor at;

    if (!find_scalar(row, path, &at) || at.field->type != RP_T_BOOL)
        return 0;
    *out = rp_field_bool(at.field, at.at);
    return 1;
}

int rp_row_text(const struct rp_cursor *row, const char *path, const char **out)
{
    struct rp_cursor at;

    if (!find_scalar(row, path, &at) || at.field->type != RP_T_STR)
        return 0;
    *out = rp_field_str(at.field, at.at);
    return 1;
}

int rp_row_count(const struct rp_cursor *row, const char *path, size_t *out)
{
    struct rp_cursor at;

    if (!find_list(row, path, &at))
        return 0;
    *out = rp_field_count(at.field, at.at);
    return 1;
}

int rp_row_rows(const struct rp_cursor *row, const char *path, struct rp_rows *out)
{
    struct rp_cursor at;

    if (!find_list(row, path, &at))
        return 0;
    *out = (struct rp_rows){.list = at, .n = rp_field_count(at.field, at.at)};
    return 1;
}

int rp_rows_next(struct rp_rows *rows)
{
    size_t next = rows->row.at ? rows->i + 1 : 0;

    if (next >= rows->n)
        return 0;
    rows->i = next;
    rows->row = list_item(&rows->list, next);
    return 1;
}

const char *rp_rows_key(const struct rp_rows *rows)
{
    return rows->row.at && rows->list.field->type == RP_T_MAP ? map_key(&rows->list, rows->i)
                                                              : NULL;
}

static struct rp_cursor root_of(const struct rp_result *result, const char *path)
{
    if (result->has_trust && after_step(path, "trust"))
        return (struct rp_cursor){&rp_result_trust_type, NULL, result};
    return (struct rp_cursor){result->type, NULL, result->root};
}

int rp_result_find(const struct rp_result *result, const char *path, struct rp_cursor *out)
{
    struct rp_cursor root = root_of(result, path);

    return rp_row_find(&root, path, out);
}

int rp_result_rows(const struct rp_result *result, const char *path, struct rp_rows *out)
{
    struct rp_cursor root = root_of(result, path);

    return rp_row_rows(&root, path, out);
}

int rp_result_i64(const struct rp_result *result, const char *path, int64_t *out)
{
    struct rp_cursor root = root_of(result, path);

    return rp_row_i64(&root, path, out);
}

int rp_result_f64(const struct rp_result *result, const char *path, double *out)
{
    struct rp_cursor root = root_of(result, path);

    return rp_row_f64(&root, path, out);
}

int rp_result_bool(const struct rp_result *result, const char *path, bool *out)
{
    struct rp_cursor root = root_of(result, path);

    return rp_row_bool(&root, path, out);
}

int rp_result_text(const struct rp_result *result, const char *path, const char **out)
{
    struct rp_cursor root = root_of(result, path);

    return rp_row_text(&root, path, out);
}

int rp_result_count(const struct rp_result *result, const char *path, size_t *out)
{
    struct rp_cursor root = root_of(result, path);

    return rp_row_count(&root, path, out);
}

const struct rp_field *rp_type_field(const struct rp_type *type, size_t i)
{
    return i < rp_type_nfields(type) ? &type->fields[i] : NULL;
}
