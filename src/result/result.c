/* SPDX-License-Identifier: Apache-2.0 */
/* Results: their memory, their plain types, and printing one to a descriptor or a file. */
#include "result/result.h"

#include "result/walk.h"

#include <stdlib.h>
#include <string.h>
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

static const struct rp_field warning_fields[] = {
    RP_FIELD_LIST(struct rp_result, warnings, &rp_type_string, "warnings", "about the inputs", 0),
    RP_FIELD_END};
const struct rp_type rp_result_warnings_type = {"warnings", sizeof(struct rp_result),
                                                warning_fields, NULL};

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

const char *rp_result_warning(const struct rp_result *result, size_t i)
{
    return i < result->nwarnings ? result->warnings[i] : NULL;
}

enum rp_code rp_result_warn(struct rp_result *result, const char *text, struct rp_err *err)
{
    if (result->nwarnings == result->warning_room) {
        size_t room = result->warning_room ? 2 * result->warning_room : 4;
        const char **more = RP_ARENA_NEW(&result->arena, const char *, room);

        if (!more)
            return rp_err_nomem(err, "noting a warning");
        if (result->nwarnings)
            memcpy(more, result->warnings, result->nwarnings * sizeof *more);
        result->warnings = more;
        result->warning_room = room;
    }
    result->warnings[result->nwarnings++] = rp_arena_text(&result->arena, text);
    return rp_arena_check(&result->arena, "noting a warning", err);
}

/* Options of a caller that was compiled against an older header are shorter; the rest is 0. */
static enum rp_code print_options(const struct rp_print_options *given,
                                  struct rp_print_options *out, struct rp_err *err)
{
    *out = (struct rp_print_options){0};
    if (given)
        memcpy(out, given, given->struct_size < sizeof *out ? given->struct_size : sizeof *out);
    if ((unsigned)out->format > RP_PRINT_CSV)
        return rp_err_set(err, RP_USAGE, "there is no print format %d", (int)out->format);
    return RP_OK;
}

void rp_print_record(const struct rp_type *type, const void *root,
                     const struct rp_print_options *options, struct rp_out *to)
{
    switch (options->format) {
    case RP_PRINT_JSON:
        rp_print_json(type, root, NULL, to);
        break;
    case RP_PRINT_CSV:
        rp_print_csv(type, root, to);
        break;
    default:
        rp_print_table(type, root, options, to);
    }
}

/* CSV has no place for warnings. */
static void print_result(const struct rp_result *result, const struct rp_print_options *options,
                         struct rp_out *to)
{
    if (options->format == RP_PRINT_JSON) {
        rp_print_json(result->type, result->root, result, to);
        return;
    }
    if (options->format == RP_PRINT_TABLE && result->nwarnings) {
        rp_print_table(&rp_result_warnings_type, result, options, to);
        rp_out_char(to, '\n');
    }
    rp_print_record(result->type, result->root, options, to);
}

enum rp_code rp_result_print(const struct rp_result *result, const struct rp_print_options *options,
                             int fd, struct rp_err *err)
{
    struct rp_print_options known;
    struct rp_out *out;

    RP_TRY(print_options(options, &known, err));
    RP_TRY(rp_out_open_fd(fd, fd == STDOUT_FILENO ? "standard output" : "output", &out, err));
    print_result(result, &known, out);
    return rp_out_close(out, err);
}

enum rp_code rp_result_save(const struct rp_result *result, const struct rp_print_options *options,
                            const char *path, struct rp_err *err)
{
    struct rp_print_options known;
    struct rp_out *to;

    RP_TRY(print_options(options, &known, err));
    RP_TRY(rp_out_open(path, &to, err));
    print_result(result, &known, to);
    return rp_out_close(to, err);
}
