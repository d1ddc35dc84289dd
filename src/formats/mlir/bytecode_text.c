/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes attributes of MLIR bytecode as text wherever the program keeps text: attributes of
 * operations that HLO does not have, configurations of custom calls, and shardings.
 */
#include "formats/mlir/bytecode_value.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct writer {
    struct rp_bytecode *b;
    struct rp_chars out;
};

static void put(struct writer *w, const char *text)
{
    rp_chars_put(&w->out, text, strlen(text));
}

static void RP_PRINTF(2, 3) putf(struct writer *w, const char *fmt, ...)
{
    char text[96];
    va_list list;

    va_start(list, fmt);
    vsnprintf(text, sizeof text, fmt, list);
    va_end(list);
    put(w, text);
}

static void put_string(struct writer *w, struct rp_slice text)
{
    put(w, "\"");
    for (uint32_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.at[i];

        if (c >= ' ' && c < 127 && c != '"' && c != '\\')
            rp_chars_put(&w->out, text.at + i, 1);
        else
            putf(w, "\\%02X", c);
    }
    put(w, "\"");
}

/* Writes the name of an attribute or a symbol, in quotes if it needs them. */
static void put_name(struct writer *w, struct rp_slice name)
{
    for (uint32_t i = 0; i < name.n; i++)
        if (!rp_mlir_word_char(name.at[i]) || name.at[i] == '-') {
            put_string(w, name);
            return;
        }
    rp_chars_put(&w->out, name.at, name.n);
}

static void put_type(struct writer *w, const struct rp_bc_type *type)
{
    if (type->kind == RP_BC_TENSOR)
        put(w, "tensor<");
    for (size_t i = 0; type->kind == RP_BC_TENSOR && i < type->n; i++)
        putf(w, type->dims[i] < 0 ? "?x" : "%" PRId64 "x", type->dims[i]);
    put(w, type->scalar[0]             ? type->scalar
           : type->kind == RP_BC_TOKEN ? "!stablehlo.token"
                                       : "none");
    if (type->kind == RP_BC_TENSOR)
        put(w, ">");
}

static void put_ints(struct writer *w, const struct rp_mlir_ints *list)
{
    for (size_t i = 0; i < list->n; i++)
        putf(w, "%s%" PRId64, i ? ", " : "", list->at[i]);
}

/* Writes "array<i64: 1, 2>" or "dense<[1, 2]> : tensor<2xi64>"; other elements are left out. */
static void put_data(struct writer *w, const struct rp_bc_data *data)
{
    struct rp_mlir_ints list;
    bool ints = rp_bc_data_ints(data, &list);

    if (data->list) {
        putf(w, "array<%s%s", data->type.scalar, list.n ? ": " : "");
        put_ints(w, &list);
        put(w, ">");
        return;
    }
    put(w, ints ? "dense<[" : "dense_resource<__elided__");
    if (ints)
        put_ints(w, &list);
    put(w, ints ? "]> : " : "> : ");
    put_type(w, &data->type);
}

static void put_number(struct writer *w, const struct rp_bc_number *number)
{
    unsigned bits = rp_bc_bits(number->scalar);
    uint32_t low = (uint32_t)number->value;
    float single;
    double wide;

    if (!number->real && bits == 1) {
        put(w, number->value ? "true" : "false");
        return;
    }
    if (!number->real) {
        putf(w, "%" PRId64, number->value);
    } else if (bits == 32) {
        memcpy(&single, &low, sizeof single);
        putf(w, "%.9e", (double)single);
    } else if (bits == 64) {
        memcpy(&wide, &number->value, sizeof wide);
        putf(w, "%.17e", wide);
    } else {
        putf(w, "0x%" PRIX64, (uint64_t)number->value & ((UINT64_C(1) << bits) - 1));
    }
    putf(w, " : %s", number->scalar);
}

static void put_attr(struct writer *w, uint64_t index, unsigned depth);

/* ---- Shardy ---- */

static size_t put_joined(struct writer *w, struct rp_bc_cursor *c, const char *open,
                         const char *close, unsigned depth)
{
    size_t n = rp_bc_count(w->b, c);

    put(w, open);
    for (size_t i = 0; i < n && w->b->code == RP_OK; i++) {
        put(w, i ? ", " : "");
        put_attr(w, rp_bc_varint(w->b, c), depth + 1);
    }
    put(w, close);
    return n;
}

static void put_sharding(struct writer *w, struct rp_bc_cursor *c, uint64_t code, unsigned depth)
{
    put(w, "#sdy.sharding<");
    put_attr(w, rp_bc_varint(w->b, c), depth + 1);
    put_joined(w, c, ", [", "]", depth);
    struct rp_bc_cursor look = *c;
    if (rp_bc_count(w->b, &look))
        put_joined(w, c, ", replicated={", "}", depth);
    else
        *c = look;
    if (code != 6)
        put_joined(w, c, ", unreduced={", "}", depth);
    put(w, ">");
}

static void put_sdy(struct writer *w, uint64_t code, struct rp_bc_cursor *c, unsigned depth)
{
    struct rp_bytecode *b = w->b;
    uint64_t optional;

    switch (code) {
    case 0:
        put_joined(w, c, "#sdy<manual_axes{", "}>", depth);
        break;
    case 1: /* an axis of a mesh and its size */
        put_string(w, rp_bc_string(b, c));
        putf(w, "=%" PRId64, rp_bc_signed(b, c));
        break;
    case 2: {
        put_joined(w, c, "#sdy.mesh<[", "]", depth);
        size_t n = rp_bc_count(w->b, c);
        for (size_t i = 0; i < n && w->b->code == RP_OK; i++)
            putf(w, i ? ", %" PRId64 : ", device_ids=[%" PRId64, rp_bc_signed(w->b, c));
        put(w, n ? "]>" : ">");
    } break;
    case 3: /* a part of an axis */
        putf(w, "(%" PRId64 ")", rp_bc_signed(b, c));
        putf(w, "%" PRId64, rp_bc_signed(b, c));
        break;
    case 4: /* an axis */
        put_string(w, rp_bc_string(b, c));
        optional = rp_bc_varint(b, c);
        put(w, optional & 1 ? ":" : "");
        if (optional & 1)
            put_attr(w, optional >> 1, depth + 1);
        break;
    case 5: {
        /* "{"x", ?}p1" */
        size_t n = put_joined(w, c, "{", "", depth);
        bool closed = rp_bc_byte(w->b, c);
        uint64_t priority = rp_bc_varint(w->b, c);
        put(w, closed ? "}" : n ? ", ?}" : "?}");
        if (priority & 1)
            putf(w, "p%" PRIu64, priority >> 1);
    } break;
    case 6:
    case 15:
    case 17:
        put_sharding(w, c, code, depth);
        break;
    case 7:
    case 16:
        put_joined(w, c, "#sdy.sharding_per_value<[", "]>", depth);
        break;
    case 11:
    case 12:
        put_joined(w, c, "{", "}", depth);
        break;
    default: /* rules for the partitioner */
        put(w, "#sdy.rule<>");
    }
}

/* ---- all attributes ---- */

static void put_dot_algorithm(struct writer *w, struct rp_bc_cursor *c)
{
    static const char *const types[] = {"lhs_precision_type", "rhs_precision_type",
                                        "accumulation_type"};
    static const char *const counts[] = {"lhs_component_count", "rhs_component_count",
                                         "num_primitive_operations"};
    struct rp_bc_type type;

    put(w, "#stablehlo.dot_algorithm<");
    for (size_t i = 0; i < 3; i++) {
        putf(w, "%s = ", types[i]);
        rp_bc_type(w->b, rp_bc_varint(w->b, c), &type);
        put_type(w, &type);
        put(w, ", ");
    }
    for (size_t i = 0; i < 3; i++)
        putf(w, "%s = %" PRId64 ", ", counts[i], rp_bc_signed(w->b, c));
    putf(w, "allow_imprecise_accumulation = %s>", rp_bc_byte(w->b, c) ? "true" : "false");
}

/* Writes attributes that contain others, and those that nobody needs. */
static void put_nested(struct writer *w, uint64_t index, unsigned depth)
{
    struct rp_bc_cursor c = {NULL, NULL};
    uint64_t code;
    enum rp_bc_dialect d = rp_bc_open(w->b, false, index, &c, &code);
    bool vhlo = d == RP_BC_VHLO, builtin = d == RP_BC_BUILTIN;
    struct rp_bc_type type;

    if (d == RP_BC_TEXT) {
        rp_chars_put(&w->out, (const char *)c.at,
                     strnlen((const char *)c.at, (size_t)(c.end - c.at)));
    } else if (d == RP_BC_SDY) {
        put_sdy(w, code, &c, depth);
    } else if ((vhlo && code == 1) || (builtin && code == 0)) {
        put_joined(w, &c, "[", "]", depth);
    } else if ((vhlo && code == 6) || (builtin && code == 1)) {
        size_t n = rp_bc_count(w->b, &c);

        put(w, "{");
        for (size_t i = 0; i < n && w->b->code == RP_OK; i++) {
            struct rp_slice name = rp_bc_attr_string(w->b, rp_bc_varint(w->b, &c));

            put(w, i ? ", " : "");
            put_name(w, name);
            put(w, " = ");
            put_attr(w, rp_bc_varint(w->b, &c), depth + 1);
        }
        put(w, "}");
    } else if ((vhlo && code == 17) || (builtin && code == 6)) {
        rp_bc_type(w->b, rp_bc_varint(w->b, &c), &type);
        put_type(w, &type);
    } else if (d == RP_BC_STABLEHLO && code == 15) {
        put_dot_algorithm(w, &c);
    } else {
        putf(w, "#%s.attribute<%" PRIu64 ">", builtin ? "builtin" : "stablehlo", code);
    }
}

static void put_attr(struct writer *w, uint64_t index, unsigned depth)
{
    struct rp_bytecode *b = w->b;
    struct rp_bc_cursor c = {NULL, NULL};
    struct rp_bc_data data;
    struct rp_bc_number number;
    struct rp_bc_lists lists;
    const char *of, *word;
    uint64_t code;

    b->work += 16;
    if (depth > RP_BC_DEPTH)
        rp_bc_fail(b, b->attrs.at[index < b->attrs.n ? index : 0].data.at,
                   "attributes nested too deep");
    if (b->code != RP_OK)
        return;
    struct rp_slice text = rp_bc_attr_string(b, index);
    if (text.at) {
        if (rp_bc_open(b, false, index, &c, &code) != RP_BC_BUILTIN || code < 4) {
            put_string(w, text);
        } else {
            put(w, "@");
            put_name(w, text);
        }
    } else if (rp_bc_data(b, index, &data)) {
        put_data(w, &data);
    } else if (rp_bc_number(b, index, &number)) {
        put_number(w, &number);
    } else if (rp_bc_word(b, index, &of, &word)) {
        putf(w, "#stablehlo<%s %s>", of, word);
    } else if (rp_bc_lists(b, index, &lists)) {
        struct rp_mlir_ints list;
        const char *name, *comma = "";

        putf(w, "#stablehlo.%s<", lists.kind);
        for (; (name = rp_bc_next_list(w->b, &lists, &list)); comma = ", ") {
            putf(w, "%s%s = [", comma, name);
            put_ints(w, &list);
            put(w, "]");
        }
        put(w, ">");
    } else {
        put_nested(w, index, depth);
    }
}

static enum rp_code keep(struct rp_mlir *r, struct writer *w, struct rp_slice *out)
{
    char *kept = w->out.failed ? NULL : rp_arena_copy(&r->p->arena, w->out.at, w->out.n);

    *out = (struct rp_slice){kept, (uint32_t)w->out.n, 0};
    rp_chars_release(&w->out);
    RP_TRY(w->b->code);
    return rp_err_need(kept, r->err, "reading attributes");
}

enum rp_code rp_bc_text(struct rp_mlir *r, uint64_t index, struct rp_slice *out)
{
    struct writer w = {.b = r->bytecode};

    put_attr(&w, index, 0);
    return keep(r, &w, out);
}

enum rp_code rp_bc_all_text(struct rp_mlir *r, const struct rp_mlir_attrs *attrs,
                            struct rp_slice *out)
{
    struct writer w = {.b = r->bytecode};
    const char *comma = "<{";

    *out = (struct rp_slice){0};
    for (size_t i = 0; i < attrs->nnamed; i++) {
        struct rp_slice name = attrs->named[i].name;

        if (name.n == 15 && memcmp(name.at, "result_accuracy", 15) == 0)
            continue;
        put(&w, comma);
        comma = ", ";
        put_name(&w, name);
        put(&w, " = ");
        put_attr(&w, attrs->named[i].value, 0);
    }
    if (!w.out.n)
        return RP_OK;
    put(&w, "}>");
    return keep(r, &w, out);
}
