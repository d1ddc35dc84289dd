/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the facts of a module that PJRT's caller must know: how many arguments it has, which of
 * them are donated, whether they come as one tuple, whether it is optimised already. One pass over
 * the fields of the module, without reading instructions.
 */
#include "exec/pjrt/client.h"

#include "abi/proto/hlo.h"
#include "io/proto.h"

#include <string.h>

#define DEPTH 64

/* Reads whether a ShapeProto is a tuple, and its number of parts; *other: it is a token, or a part
   of it is a tuple or a token. */
static enum rp_code shape_parts(struct rp_proto_cursor c, bool *tuple, size_t *parts, bool *other,
                                struct rp_err *err)
{
    struct rp_proto_item item;
    bool inner = false;
    size_t n = 0;

    *tuple = *other = false;
    *parts = 0;
    while (rp_proto_next(&c, &item)) {
        if (item.number == RP_HLO_SHAPE_ELEMENT_TYPE && item.wire == RP_WIRE_VARINT) {
            *tuple = item.value == RP_ELEM_TUPLE;
            *other = *other || item.value == RP_ELEM_TOKEN;
        }
        if (item.number == RP_HLO_SHAPE_TUPLE_SHAPES && item.wire == RP_WIRE_BYTES) {
            bool deeper;

            RP_TRY(shape_parts(rp_proto_enter(&c, &item), &inner, &n, &deeper, err));
            *other = *other || inner || deeper;
            (*parts)++;
        }
    }
    return rp_proto_finish(&c, err);
}

static enum rp_code read_parameters(struct rp_proto_cursor c, struct rp_pjrt_module *out,
                                    struct rp_err *err)
{
    struct rp_proto_item item;
    size_t nparameters = 0, ntuples = 0, parts = 0, n;
    bool tuple, other, refused = false;

    while (rp_proto_next_bytes(&c, RP_HLO_PROGRAM_SHAPE_PARAMETERS, &item)) {
        RP_TRY(shape_parts(rp_proto_enter(&c, &item), &tuple, &n, &other, err));
        nparameters++;
        ntuples += tuple;
        parts += tuple ? n : 1;
        refused = refused || other;
    }
    RP_TRY(rp_proto_finish(&c, err));
    if (refused || (ntuples && nparameters > 1))
        return rp_err_set(
            err, RP_UNSUPPORTED,
            "PJRT takes arrays, or one tuple of arrays: parameters that are tokens, or "
            "tuples among others, need the engine fast or ref");
    out->tupled = ntuples == 1;
    for (size_t i = 0; i < parts; i++)
        RP_TRY(rp_vec_push(&out->donated, 0, err));
    return RP_OK;
}

/* Reads an entry of the aliases or of the donors: the argument that it names is donated. */
static enum rp_code read_entry(struct rp_proto_cursor c, uint32_t parameter_field,
                               uint32_t index_field, struct rp_pjrt_module *out, struct rp_err *err)
{
    struct rp_proto_item item;
    uint64_t parameter = 0, index = 0;

    while (rp_proto_next(&c, &item)) {
        if (item.number == parameter_field && item.wire == RP_WIRE_VARINT)
            parameter = item.value;
        struct rp_proto_cursor packed = rp_proto_list(&c, &item);
        if (item.number == index_field)
            rp_proto_packed_varint(&packed, &index);
    }
    RP_TRY(rp_proto_finish(&c, err));
    parameter = out->tupled ? index : parameter;
    if (parameter < out->donated.n)
        out->donated.at[parameter] = 1;
    return RP_OK;
}

static enum rp_code read_entries(struct rp_proto_cursor c, uint32_t parameter_field,
                                 uint32_t index_field, struct rp_pjrt_module *out,
                                 struct rp_err *err)
{
    struct rp_proto_item item;

    while (rp_proto_next_bytes(&c, RP_HLO_ALIAS_ENTRIES, &item))
        RP_TRY(read_entry(rp_proto_enter(&c, &item), parameter_field, index_field, out, err));
    return rp_proto_finish(&c, err);
}

enum rp_code rp_pjrt_read_hlo(const uint8_t *bytes, size_t n, struct rp_pjrt_module *out,
                              struct rp_err *err)
{
    struct rp_proto_cursor c = rp_proto_cursor(bytes, n, 0, DEPTH);
    struct rp_bytes alias = {0}, donor = {0};
    struct rp_proto_item item;

    memset(out, 0, sizeof *out);
    while (rp_proto_next(&c, &item)) {
        if (item.wire != RP_WIRE_BYTES)
            continue;
        if (item.number == RP_HLO_MODULE_HOST_PROGRAM_SHAPE)
            RP_TRY(read_parameters(rp_proto_enter(&c, &item), out, err));
        else if (item.number == RP_HLO_MODULE_SCHEDULE)
            out->scheduled = item.bytes.n > 0;
        else if (item.number == RP_HLO_MODULE_INPUT_OUTPUT_ALIAS)
            alias = item.bytes;
        else if (item.number == RP_HLO_MODULE_BUFFER_DONOR)
            donor = item.bytes;
        else if (item.number == RP_HLO_MODULE_FRONTEND_ATTRIBUTES)
            out->shardy = memmem(item.bytes.at, item.bytes.n, "xla.sdy.", 8) != NULL;
    }
    RP_TRY(rp_proto_finish(&c, err));
    struct rp_proto_cursor at =
        rp_proto_cursor(alias.at, alias.n, 0, DEPTH); /* only now the arguments have been counted */
    RP_TRY(read_entries(at, RP_HLO_ALIAS_ENTRY_PARAMETER_NUMBER,
                        RP_HLO_ALIAS_ENTRY_PARAMETER_SHAPE_INDEX, out, err));
    at = rp_proto_cursor(donor.at, donor.n, 0, DEPTH);
    return read_entries(at, RP_HLO_DONOR_ENTRY_PARAMETER_NUMBER,
                        RP_HLO_DONOR_ENTRY_PARAMETER_SHAPE_INDEX, out, err);
}

/* ---- MLIR ---- */

/* The position after a string or a bracketed part that begins at `at`. */
static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        if (*at == '\\' && at + 1 < end)
            at++;
    return at < end ? at + 1 : end;
}

static bool says_donated(const char *at, const char *end)
{
    return memmem(at, (size_t)(end - at), "tf.aliasing_output", 18) ||
           memmem(at, (size_t)(end - at), "jax.buffer_donor = true", 23);
}

/* Reads the list of arguments between the parentheses after "@main". */
static enum rp_code read_arguments(const char *at, const char *end, struct rp_pjrt_module *out,
                                   struct rp_err *err)
{
    const char *argument = at;
    int depth = 1;

    while (at < end && depth > 0) {
        if (*at == '"') {
            at = skip_string(at, end);
            continue;
        }
        depth += strchr("([{<", *at) && *at ? 1 : 0;
        depth -= strchr(")]}", *at) && *at ? 1 : 0;
        depth -= *at == '>' && at[-1] != '-';
        if ((depth == 1 && *at == ',') ||
            (depth == 0 && memchr(argument, '%', (size_t)(at - argument)))) {
            RP_TRY(rp_vec_push(&out->donated, says_donated(argument, at), err));
            argument = at + 1;
        }
        at++;
    }
    return depth == 0 ? RP_OK : rp_err_set(err, RP_FORMAT, "unterminated argument list of @main");
}

enum rp_code rp_pjrt_read_mlir(const char *text, size_t n, struct rp_pjrt_module *out,
                               struct rp_err *err)
{
    const char *end = text + n, *at = memmem(text, n, "@main", 5);

    memset(out, 0, sizeof *out);
    at = at ? memchr(at, '(', (size_t)(end - at)) : NULL;
    if (!at)
        return rp_err_set(err, RP_FORMAT, "the module has no function @main to run");
    out->shardy = memmem(text, n, "sdy.mesh", 8) != NULL;
    return read_arguments(at + 1, end, out, err);
}

void rp_pjrt_module_release(struct rp_pjrt_module *module)
{
    rp_vec_release(&module->donated);
}
