/* SPDX-License-Identifier: Apache-2.0 */
/* Results: their memory, their plain types, and printing one to a descriptor or a file. */
#include "result/result.h"

#include "result/walk.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct rp_field string_fields[] = {
    RP_FIELD_(NULL, "", RP_T_STR, RP_UNIT_NONE, RP_SHORTEN, 0, 0, NULL, "a text"), RP_FIELD_END};
static const struct rp_field int_fields[] = {
    RP_FIELD_(NULL, "", RP_T_I64, RP_UNIT_NONE, 0, 0, 0, NULL, "an integer"), RP_FIELD_END};
static const struct rp_field number_fields[] = {
    RP_FIELD_(NULL, "", RP_T_F64, RP_UNIT_NONE, 0, 0, 0, NULL, "a number"), RP_FIELD_END};

const struct rp_type rp_type_string = {"string", sizeof(const char *), string_fields, NULL};
const struct rp_type rp_type_int = {"int", sizeof(int64_t), int_fields, NULL};
const struct rp_type rp_type_number = {"number", sizeof(double), number_fields, NULL};

#define REMARK(member, type, doc, flags) \
    RP_FIELD(struct rp_remark, member, type, NONE, NULL, doc, flags)

static const struct rp_field remark_fields[] = {
    REMARK(kind, STR, "what it is, such as truncated", 0),
    REMARK(incomplete, BOOL, "whether something is missing in the answer", 0),
    REMARK(path, STR, "the file, or null", 0),
    REMARK(rank, I64, "number of its rank, or null", RP_NULLABLE),
    REMARK(instead, STR, "the file that is used in its place, or null", 0),
    REMARK(count, I64, "how many events, ranks or files, or null", RP_NULLABLE),
    REMARK(bytes, I64, "how many bytes, or null", RP_NULLABLE),
    REMARK(text, STR, "a sentence", 0),
    RP_FIELD_END};
static const struct rp_type remark_type = {"remark", sizeof(struct rp_remark), remark_fields, NULL};

static const struct rp_field trust_fields[] = {
    RP_FIELD(struct rp_trust, complete, BOOL, NONE, NULL, "nothing is missing in the answer", 0),
    RP_FIELD_LIST(struct rp_trust, remarks, &remark_type, NULL, "about the inputs", 0),
    RP_FIELD_END};
static const struct rp_type trust_type = {"trust", sizeof(struct rp_trust), trust_fields, NULL};

static const struct rp_field result_fields[] = {
    RP_FIELD_RECORD(struct rp_result, trust, &trust_type, NULL, "what the answer rests on", 0),
    RP_FIELD_END};
const struct rp_type rp_result_trust_type = {"result", sizeof(struct rp_result), result_fields,
                                             NULL};

static const struct rp_field line_fields[] = {
    RP_FIELD_LIST(struct rp_trust, incomplete, &rp_type_string, "incomplete", "what is missing", 0),
    RP_FIELD_LIST(struct rp_trust, notes, &rp_type_string, "about the input", "worth knowing", 0),
    RP_FIELD_END};
const struct rp_type rp_result_lines_type = {"trust", sizeof(struct rp_trust), line_fields, NULL};

enum rp_code rp_result_new(const struct rp_type *type, struct rp_result **out, struct rp_err *err)
{
    struct rp_result *result = calloc(1, sizeof *result);

    *out = NULL;
    RP_TRY(rp_err_need(result, err, "making a result"));
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

int rp_result_complete(const struct rp_result *result)
{
    return !result->has_trust || result->trust.complete;
}

const char *rp_result_warning(const struct rp_result *result, size_t i)
{
    const struct rp_trust *trust = &result->trust;

    if (i < trust->nincomplete)
        return trust->incomplete[i];
    i -= trust->nincomplete;
    return i < trust->nnotes ? trust->notes[i] : NULL;
}

/* Options of a caller that was compiled with an older header are shorter; the rest is 0. */
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

/* CSV cannot contain remarks. */
static void print_result(const struct rp_result *result, const struct rp_print_options *options,
                         struct rp_out *to)
{
    if (options->format == RP_PRINT_JSON) {
        rp_print_json(result->type, result->root, result, to);
        return;
    }
    if (options->format == RP_PRINT_TABLE && result->trust.nincomplete + result->trust.nnotes) {
        rp_print_table(&rp_result_lines_type, &result->trust, options, to);
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
