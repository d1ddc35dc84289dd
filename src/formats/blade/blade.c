/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BladeDISC's pair of files (blade.h). Members of the tar are matched to arguments by name and must
 * have the type and shape that the program states, so that the tar of another run is detected
 * before anything runs. Nothing is unpacked to disk.
 */
#include "formats/blade/blade.h"
#include "base/text.h"

#include "abi/proto/blade.h"
#include "abi/proto/tensorflow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH         32
#define ARGUMENTS_MAX 65536

static enum rp_code copy_text(struct rp_blade *b, struct rp_bytes text, const char **out,
                              struct rp_err *err)
{
    *out = rp_arena_copy(&b->arena, (const char *)text.at, text.n);
    return rp_err_need(*out, err, "reading a BladeDISC program");
}

/* ---- the program ---- */

static enum rp_code read_options(struct rp_blade *b, struct rp_proto_cursor c, struct rp_err *err)
{
    struct rp_proto_item item;

    while (rp_proto_next(&c, &item)) {
        if (item.number == RP_BLADE_OPTIONS_DEVICE_TYPE && item.wire == RP_WIRE_BYTES)
            RP_TRY(copy_text(b, item.bytes, &b->device, err));
        else if (item.number == RP_BLADE_OPTIONS_FLIB_DEF && item.wire == RP_WIRE_BYTES)
            b->library = item.bytes;
        else if (item.number == RP_BLADE_OPTIONS_GRAPH_DEF_VERSION && item.wire == RP_WIRE_VARINT)
            b->graph_version = (int64_t)item.value;
    }
    return rp_proto_finish(&c, err);
}

static enum rp_code read_argument(struct rp_blade *b, struct rp_proto_cursor c, struct rp_err *err)
{
    struct rp_blade_argument arg = {.member = ""};
    struct rp_proto_item item;

    while (rp_proto_next(&c, &item)) {
        if (item.wire == RP_WIRE_VARINT && item.number == RP_BLADE_ARGUMENT_TYPE)
            arg.type = item.value;
        else if (item.wire == RP_WIRE_VARINT && item.number == RP_BLADE_ARGUMENT_KIND_V2)
            arg.kind = (uint32_t)item.value;
        else if (item.wire == RP_WIRE_BYTES && item.number == RP_BLADE_ARGUMENT_SHAPE) {
            RP_TRY(rp_tf_shape_decode(rp_proto_enter(&c, &item), &arg.shape, err));
            arg.has_shape = true;
        } else if (item.wire == RP_WIRE_BYTES && item.number == RP_BLADE_ARGUMENT_CONSTANT_VALUE)
            arg.constant = item.bytes;
        else if (item.wire == RP_WIRE_BYTES && item.number == RP_BLADE_ARGUMENT_VALUE_PROTO_FILE)
            RP_TRY(copy_text(b, item.bytes, &arg.member, err));
    }
    RP_TRY(rp_proto_finish(&c, err));
    if (b->arguments.n == ARGUMENTS_MAX)
        return rp_err_set(err, RP_LIMIT, "more than %d arguments", ARGUMENTS_MAX);
    return rp_vec_push(&b->arguments, arg, err);
}

/* The name in a NameAttrList. */
static enum rp_code read_call(struct rp_blade *b, struct rp_proto_cursor c, struct rp_err *err)
{
    struct rp_proto_item item;

    while (rp_proto_next_bytes(&c, RP_TF_NAME_ATTRS_NAME, &item))
        RP_TRY(copy_text(b, item.bytes, &b->function, err));
    return rp_proto_finish(&c, err);
}

enum rp_code rp_blade_parse(const void *bytes, size_t n, struct rp_blade *out, struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes, n, 0, DEPTH);
    struct rp_proto_item item;

    memset(out, 0, sizeof *out);
    rp_arena_init(&out->arena);
    out->device = out->function = "";
    while (rp_proto_next(&c, &item)) {
        if (item.wire != RP_WIRE_BYTES)
            continue;
        if (item.number == RP_BLADE_INPUT_OPTIONS)
            RP_TRY(read_options(out, rp_proto_enter(&c, &item), err));
        else if (item.number == RP_BLADE_INPUT_ARGS)
            RP_TRY(read_argument(out, rp_proto_enter(&c, &item), err));
        else if (item.number == RP_BLADE_INPUT_FUNCTION) {
            out->call = item.bytes;
            RP_TRY(read_call(out, rp_proto_enter(&c, &item), err));
        }
    }
    RP_TRY(rp_proto_finish(&c, err));
    if (!out->library.n || !out->function[0])
        return rp_err_set(err, RP_FORMAT, "not a TaoCompilerInput: it names no function");
    return RP_OK;
}

/* ---- the values ---- */

static void shape_text(unsigned elem, const struct rp_tf_value *v, char *out, size_t cap)
{
    size_t n = (size_t)snprintf(out, cap, "%s[", rp_elem_name(elem) ? rp_elem_name(elem) : "?");

    for (uint32_t i = 0; i < v->rank && n < cap; i++)
        n += (size_t)snprintf(out + n, cap - n, "%s%lld", i ? "," : "", (long long)v->dims[i]);
    if (n < cap)
        snprintf(out + n, cap - n, "]");
}

/* Checks a value against the argument of the program. */
static enum rp_code check_value(const struct rp_blade_argument *arg, size_t i, struct rp_err *err)
{
    const struct rp_tf_value *v = &arg->value;
    char have[256], want[256];
    bool same = v->elem == rp_tf_elem_of(arg->type);

    if (arg->has_shape && arg->kind != RP_BLADE_HOST) {
        same = same && v->rank == arg->shape.rank;
        for (uint32_t d = 0; same && d < v->rank; d++)
            same = v->dims[d] == arg->shape.dims[d];
    }
    if (same)
        return RP_OK;
    shape_text(v->elem, v, have, sizeof have);
    shape_text(rp_tf_elem_of(arg->type), arg->has_shape ? &arg->shape : v, want, sizeof want);
    return rp_err_set(
        err, RP_FORMAT,
        "member '%s' is %s, but argument %zu of the program is %s: the tar is from another "
        "program or run",
        arg->member, have, i, want);
}

static enum rp_code take_member(struct rp_blade *b, struct rp_tar *tar,
                                const struct rp_tar_member *member, const struct rp_limits *limits,
                                struct rp_err *err)
{
    struct rp_bytes bytes = {member->bytes, member->n};
    enum rp_code code = RP_OK;

    for (size_t i = 0; i < b->arguments.n && code == RP_OK; i++) {
        struct rp_blade_argument *arg = &b->arguments.at[i];

        if (!arg->member[0] || strcmp(rp_text_file(arg->member), rp_text_file(member->name)) != 0)
            continue;
        if (member->truncated)
            return rp_err_set(err, RP_FORMAT, "the tar is truncated within member '%s'",
                              member->name);
        if (member->held) { /* a second argument of that name already has it */
            RP_TRY(rp_vec_push(&b->held, rp_tar_keep(tar), err));
            bytes.at = b->held.at[b->held.n - 1];
            RP_TRY(rp_err_need(bytes.at, err, "reading a member of a tar"));
        }
        code = rp_tf_value_decode(bytes, member->offset, limits, &b->arena, &arg->value, err);
        if (code != RP_OK)
            return rp_err_prefix(err, code, "member '%s'", member->name);
        arg->found = true;
        code = check_value(arg, i, err);
        break;
    }
    return code;
}

/* An argument that is not in the tar: a constant may be in the program itself. */
static enum rp_code take_constant(struct rp_blade *b, size_t i, const struct rp_limits *limits,
                                  struct rp_err *err)
{
    struct rp_blade_argument *arg = &b->arguments.at[i];

    if (arg->kind == RP_BLADE_RESOURCE || arg->kind == RP_BLADE_CONSTANT_RESOURCE)
        return rp_err_set(
            err, RP_UNSUPPORTED,
            "argument %zu is a resource variable, whose value BladeDISC does not record", i);
    if (!arg->constant.n)
        return rp_err_set(
            err, RP_FORMAT,
            "the tar has no member '%s', which is argument %zu of the program: the tar is "
            "from another program",
            arg->member, i);
    enum rp_code code = rp_tf_value_decode(arg->constant, 0, limits, &b->arena, &arg->value, err);
    if (code != RP_OK)
        return rp_err_prefix(err, code, "the constant of argument %zu", i);
    arg->found = true;
    return RP_OK;
}

enum rp_code rp_blade_take_values(struct rp_blade *b, struct rp_tar *tar,
                                  const struct rp_limits *limits, struct rp_err *err)
{
    struct rp_tar_member member = {0};
    enum rp_code code;

    while ((code = rp_tar_next(tar, &member, err)) == RP_OK && member.name)
        RP_TRY(take_member(b, tar, &member, limits, err));
    RP_TRY(code);
    for (size_t i = 0; i < b->arguments.n; i++)
        if (!b->arguments.at[i].found)
            RP_TRY(take_constant(b, i, limits, err));
    return RP_OK;
}

/* ---- both files ---- */

static enum rp_code open_program(const char *path, const struct rp_limits *limits,
                                 struct rp_blade *out, struct rp_err *err)
{
    struct rp_input *in;
    const uint8_t *bytes;
    size_t n;

    memset(out, 0, sizeof *out);
    RP_TRY(rp_input_open(path, limits, &in, err));
    enum rp_code code = rp_input_slurp(in, &bytes, &n, err);
    if (code == RP_OK)
        code = rp_blade_parse(bytes, n, out, err);
    out->program = in;
    return code == RP_OK ? code : rp_err_prefix(err, code, "'%s'", path);
}

static enum rp_code open_data(const char *path, const struct rp_limits *limits, struct rp_blade *b,
                              struct rp_err *err)
{
    RP_TRY(rp_input_open(path, limits, &b->data, err));
    enum rp_code code = rp_tar_open(b->data, limits, &b->tar, err);
    if (code == RP_OK)
        code = rp_blade_take_values(b, b->tar, limits, err);
    return code == RP_OK ? code : rp_err_prefix(err, code, "'%s'", path);
}

enum rp_code rp_blade_open(const char *program, const char *data, const struct rp_limits *limits,
                           struct rp_blade *out, struct rp_err *err)
{
    RP_TRY(open_program(program, limits, out, err));
    RP_TRY(open_data(data, limits, out, err));
    enum rp_code code = rp_blade_make_graph(out, err);
    return code == RP_OK ? code : rp_err_prefix(err, code, "'%s'", program);
}

void rp_blade_release(struct rp_blade *b)
{
    for (size_t i = 0; i < b->held.n; i++)
        free(b->held.at[i]);
    rp_vec_release(&b->held);
    rp_vec_release(&b->arguments);
    rp_proto_writer_release(&b->graph);
    rp_tar_close(b->tar);
    rp_input_close(b->data);
    rp_input_close(b->program);
    rp_arena_release(&b->arena);
}
