/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results: who owns the record, and finding a place in it by path. A step of a path is looked up by
 * comparing keys one by one: records have tens of fields, and paths come from people.
 */
#include "result/result.h"

#include "result/walk.h"

#include <stdlib.h>
#include <unistd.h>

static const struct rp_field string_fields[] = {
    {NULL, "", RP_T_STR, RP_UNIT_NONE, RP_SHORTEN, 0, 0, NULL, "a text"}, RP_FIELD_END};
static const struct rp_field int_fields[] = {
    {NULL, "", RP_T_I64, RP_UNIT_NONE, 0, 0, 0, NULL, "an integer"}, RP_FIELD_END};
static const struct rp_field number_fields[] = {
    {NULL, "", RP_T_F64, RP_UNIT_NONE, 0, 0, 0, NULL, "a number"}, RP_FIELD_END};

const struct rp_type rp_type_string = {"string", sizeof(const char *), string_fields, NULL};
const struct rp_type rp_type_int = {"int", sizeof(int64_t), int_fields, NULL};
const struct rp_type rp_type_number = {"number", sizeof(double), number_fields, NULL};

enum rp_code rp_result_new(const struct rp_type *type, struct rp_result **out, struct rp_err *err)
{
    struct rp_result *result = calloc(1, sizeof *result);

    *out = NULL;
    if (!result)
        return rp_err_nomem(err, "making a result");
    rp_arena_init(&result->arena);
    result->type = type;
    result->root = rp_arena_calloc(&result->arena, 1, type->size, _Alignof(max_align_t));
    if (!result->root) {
        rp_result_free(result);
        return rp_err_nomem(err, "making a result");
    }
    *out = result;
    return RP_OK;
}

void rp_result_free(struct rp_result *result)
{
    if (!result)
        return;
    rp_arena_release(&result->arena);
    free(result);
}

const struct rp_type *rp_result_type(const struct rp_result *result)
{
    return result->type;
}

const void *rp_result_borrow_root(const struct rp_result *result)
{
    return result->root;
}

int rp_result_answer(const struct rp_result *result)
{
    return result->answer;
}

enum rp_code rp_result_print(const struct rp_result *result, const struct rp_print_options *options,
                             int fd, struct rp_err *err)
{
    struct rp_print_options known = {0};
    struct rp_out *out;

    /* A caller built against an older header gives fewer bytes; what it does not know stays 0. */
    if (options)
        memcpy(&known, options,
               options->struct_size < sizeof known ? options->struct_size : sizeof known);
    if ((unsigned)known.format > RP_PRINT_CSV)
        return rp_err_set(err, RP_USAGE, "no print format has the number %d", (int)known.format);
    RP_TRY(rp_out_open_fd(fd, fd == STDOUT_FILENO ? "standard output" : "output", &out, err));
    rp_print_record(result->type, result->root, &known, out);
    return rp_out_close(out, err);
}

/* Where `path` goes on after the step `name`, or NULL where it does not begin with that step. */
static const char *after_step(const char *path, const char *name)
{
    size_t len = strlen(name);

    if (strncmp(path, name, len) != 0)
        return NULL;
    if (path[len] == '/')
        return path + len + 1;
    return path[len] ? NULL : path + len;
}

/* Puts the cursor on a whole item, or on its value where the item is one. */
static void enter_item(struct rp_cursor *at, const struct rp_type *type, const void *item)
{
    *at = (struct rp_cursor){type, rp_type_plain(type), item};
}

static const char *step_list(struct rp_cursor *at, const char *path)
{
    size_t i = 0, n = rp_field_count(at->field, at->at);

    if (*path < '0' || *path > '9')
        return NULL;
    for (; *path >= '0' && *path <= '9'; path++)
        if ((i = i * 10 + (size_t)(*path - '0')) >= n)
            return NULL;
    if (*path && *path != '/')
        return NULL;
    enter_item(at, at->field->item, rp_field_item(at->field, at->at, i));
    return *path ? path + 1 : path;
}

/* Keys are free text and may contain '/': the longest one that fits wins. */
static const char *step_map(struct rp_cursor *at, const char *path)
{
    const struct rp_type *type = at->field->item;
    const char *rest = NULL;
    const void *found = NULL;

    for (size_t i = 0; i < rp_field_count(at->field, at->at); i++) {
        const void *item = rp_field_item(at->field, at->at, i);
        const char *key = rp_field_str(&type->fields[0], item);
        const char *after = key ? after_step(path, key) : NULL;

        if (after && (!rest || after > rest)) {
            rest = after;
            found = item;
        }
    }
    if (rest)
        *at = (struct rp_cursor){type, rp_type_nfields(type) == 2 ? &type->fields[1] : NULL, found};
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

int rp_result_find(const struct rp_result *result, const char *path, struct rp_cursor *out)
{
    struct rp_cursor at = {result->type, NULL, result->root};

    while (path && *path) {
        if (!at.field)
            path = step_record(&at, path);
        else if (at.field->type == RP_T_LIST)
            path = step_list(&at, path);
        else if (at.field->type == RP_T_MAP)
            path = step_map(&at, path);
        else
            path = NULL;
        if (path && at.field && at.field->type == RP_T_RECORD)
            at = (struct rp_cursor){at.field->item, NULL, rp_field_at(at.field, at.at)};
    }
    if (!path)
        return 0;
    *out = at;
    return 1;
}
