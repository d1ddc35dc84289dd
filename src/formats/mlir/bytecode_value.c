/* SPDX-License-Identifier: Apache-2.0 */
/* Reads types, strings, numbers, lists and elements in the tables of MLIR bytecode. */
#include "formats/mlir/bytecode_value.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- entries ---- */

static enum rp_bc_dialect dialect_of(const struct rp_bytecode *b, const struct rp_bc_entry *e)
{
    static const char *const names[] = {"", "builtin", "vhlo", "stablehlo", "chlo", "sdy"};
    struct rp_slice name = b->dialects.at[e->dialect];

    for (enum rp_bc_dialect d = RP_BC_BUILTIN; d <= RP_BC_SDY; d++)
        if (strlen(names[d]) == name.n && memcmp(names[d], name.at, name.n) == 0)
            return d;
    return RP_BC_TEXT;
}

enum rp_bc_dialect rp_bc_open(struct rp_bytecode *b, bool type, uint64_t index,
                              struct rp_bc_cursor *c, uint64_t *code)
{
    const struct rp_bc_entry *e = type ? b->types.at : b->attrs.at;
    size_t n = type ? b->types.n : b->attrs.n;
    const uint8_t *from = c->at ? c->at : b->begin;

    *code = UINT64_MAX;
    *c = (struct rp_bc_cursor){b->end, b->end};
    if (index >= n)
        rp_bc_fail(b, from, "%s %" PRIu64 " of %zu", type ? "type" : "attribute", index, n);
    else if (++b->work > b->work_most && b->code == RP_OK)
        b->code = rp_err_set(b->err, RP_LIMIT,
                             "MLIR bytecode whose operations share too many attributes");
    if (b->code != RP_OK)
        return RP_BC_TEXT;
    e += index;
    *c = e->data;
    enum rp_bc_dialect d = e->custom ? dialect_of(b, e) : RP_BC_TEXT;
    if (e->custom && d == RP_BC_TEXT)
        rp_bc_fail(b, e->data.at, "%s of the dialect '%.*s' in an encoding that is not known",
                   type ? "a type" : "an attribute", (int)b->dialects.at[e->dialect].n,
                   b->dialects.at[e->dialect].at);
    if (d != RP_BC_TEXT)
        *code = rp_bc_varint(b, c);
    return d;
}

/* Opens an attribute that VHLO and the builtin dialect both have, with the given code. */
static bool open_as(struct rp_bytecode *b, uint64_t index, uint64_t vhlo, uint64_t builtin,
                    struct rp_bc_cursor *c)
{
    uint64_t code;

    *c = (struct rp_bc_cursor){NULL, NULL};
    enum rp_bc_dialect d = rp_bc_open(b, false, index, c, &code);
    return (d == RP_BC_VHLO && code == vhlo) || (d == RP_BC_BUILTIN && code == builtin);
}

/* ---- types ---- */

enum { /* codes of builtin types */
       B_INTEGER,
       B_COMPLEX = 9,
       B_TENSOR = 13,
       B_TENSOR_ENCODED,
       B_TUPLE
};
enum { /* codes of VHLO types */
       V_COMPLEX = 1,
       V_TENSOR = 20,
       V_TENSOR_ENCODED,
       V_TOKEN,
       V_TUPLE,
       V_FUTURE = 42
};

static const char *const vhlo_scalars[] = {
    [0] = "i1",          [2] = "bf16",        [3] = "f16",
    [4] = "f32",         [5] = "f64",         [6] = "f8E4M3FN",
    [7] = "f8E5M2",      [9] = "index",       [10] = "i4",
    [11] = "i8",         [12] = "i16",        [13] = "i32",
    [14] = "i64",        [15] = "ui4",        [16] = "ui8",
    [17] = "ui16",       [18] = "ui32",       [19] = "ui64",
    [27] = "f8E4M3FNUZ", [28] = "f8E5M2FNUZ", [31] = "i2",
    [32] = "ui2",        [33] = "none",       [34] = "tf32",
    [35] = "f8E4M3",     [36] = "f8E3M4",     [37] = "f4E2M1FN",
    [38] = "f6E2M3FN",   [39] = "f6E3M2FN",   [29] = "f8E4M3B11FNUZ",
    [40] = "f8E8M0FNU"};
static const char *const builtin_scalars[] = {
    [1] = "index",       [3] = "bf16",        [4] = "f16",
    [5] = "f32",         [6] = "f64",         [7] = "f80",
    [8] = "f128",        [12] = "none",       [21] = "tf32",
    [22] = "f8E5M2",     [23] = "f8E4M3",     [24] = "f8E4M3FN",
    [25] = "f8E5M2FNUZ", [26] = "f8E4M3FNUZ", [27] = "f8E4M3B11FNUZ",
    [28] = "f8E3M4",     [29] = "f4E2M1FN",   [30] = "f6E2M3FN",
    [31] = "f6E3M2FN",   [32] = "f8E8M0FNU"};

static const char *scalar_name(enum rp_bc_dialect d, uint64_t code)
{
    if (d == RP_BC_VHLO && code < sizeof vhlo_scalars / sizeof *vhlo_scalars)
        return vhlo_scalars[code];
    if (d == RP_BC_BUILTIN && code < sizeof builtin_scalars / sizeof *builtin_scalars)
        return builtin_scalars[code];
    return NULL;
}

/* Writes a type like "i32"; leaves it empty if the type is not a scalar. */
static void plain_scalar(struct rp_bytecode *b, uint64_t index, const uint8_t *from, char *out,
                         size_t cap)
{
    struct rp_bc_cursor c = {from, from};
    uint64_t code;
    enum rp_bc_dialect d = rp_bc_open(b, true, index, &c, &code);
    const char *name = scalar_name(d, code);

    out[0] = '\0';
    if (name) {
        snprintf(out, cap, "%s", name);
    } else if (d == RP_BC_BUILTIN && code == B_INTEGER) {
        uint64_t width = rp_bc_varint(b, &c);
        snprintf(out, cap, "%s%" PRIu64, (width & 3) == 2 ? "ui" : "i", width >> 2);
    } else if (d == RP_BC_TEXT && (size_t)(c.end - c.at) < cap) { /* "f8E4M3FN" */
        snprintf(out, cap, "%.*s", (int)(c.end - c.at), (const char *)c.at);
    }
}

static void scalar_of(struct rp_bytecode *b, uint64_t index, const uint8_t *from, char *out,
                      size_t cap)
{
    struct rp_bc_cursor c = {from, from};
    uint64_t code;
    enum rp_bc_dialect d = rp_bc_open(b, true, index, &c, &code);
    char part[16];

    if (!((d == RP_BC_BUILTIN && code == B_COMPLEX) || (d == RP_BC_VHLO && code == V_COMPLEX))) {
        plain_scalar(b, index, from, out, cap);
        return;
    }
    plain_scalar(b, rp_bc_varint(b, &c), c.at, part, sizeof part);
    snprintf(out, cap, "complex<%s>", part);
}

static void tensor_of(struct rp_bytecode *b, struct rp_bc_cursor *c, struct rp_bc_type *out)
{
    const uint8_t *at = c->at;

    out->kind = RP_BC_TENSOR;
    out->n = rp_bc_count(b, c);
    if (out->n > sizeof out->dims / sizeof *out->dims)
        rp_bc_fail(b, at, "a tensor of %zu dimensions", out->n);
    for (size_t i = 0; i < out->n && b->code == RP_OK; i++) {
        out->dims[i] = rp_bc_signed(b, c);
        out->dims[i] = out->dims[i] < 0 ? RP_DIM_UNKNOWN : out->dims[i];
    }
    at = c->at;
    scalar_of(b, rp_bc_varint(b, c), at, out->scalar, sizeof out->scalar);
}

void rp_bc_type(struct rp_bytecode *b, uint64_t index, struct rp_bc_type *out)
{
    struct rp_bc_cursor c = {NULL, NULL};
    uint64_t code;
    enum rp_bc_dialect d = rp_bc_open(b, true, index, &c, &code);
    bool vhlo = d == RP_BC_VHLO, known = vhlo || d == RP_BC_BUILTIN;

    out->kind = RP_BC_OTHER;
    out->scalar[0] = '\0';
    out->n = 0;
    if (known && code == (vhlo ? V_TENSOR : B_TENSOR)) {
        tensor_of(b, &c, out);
    } else if (known && code == (vhlo ? V_TENSOR_ENCODED : B_TENSOR_ENCODED)) {
        rp_bc_varint(b, &c); /* bounds */
        tensor_of(b, &c, out);
    } else if (known && code == (vhlo ? V_TUPLE : B_TUPLE)) {
        out->kind = RP_BC_TUPLE;
        out->n = rp_bc_count(b, &c);
        out->types = c;
    } else if (d == RP_BC_STABLEHLO || (vhlo && (code == V_TOKEN || code == V_FUTURE)) ||
               (d == RP_BC_TEXT && memmem(c.at, (size_t)(c.end - c.at), ".token", 6))) {
        out->kind = RP_BC_TOKEN;
    } else {
        scalar_of(b, index, b->begin, out->scalar, sizeof out->scalar);
        out->kind = out->scalar[0] ? RP_BC_SCALAR : RP_BC_OTHER;
    }
}

static enum rp_code shape_of(struct rp_mlir *r, uint64_t type, unsigned depth, uint32_t *shape);

static enum rp_code tuple_shape(struct rp_mlir *r, struct rp_bc_type *t, unsigned depth,
                                uint32_t *shape)
{
    struct rp_bytecode *b = r->bytecode;
    RP_VEC_LOCAL(uint32_t, parts);

    if (depth > RP_BC_DEPTH)
        return rp_bc_fail(b, t->types.at, "types nested too deep");
    for (size_t i = 0; i < t->n; i++) {
        uint64_t part = rp_bc_varint(b, &t->types);
        uint32_t id;

        RP_TRY(b->code == RP_OK ? shape_of(r, part, depth + 1, &id) : b->code);
        RP_TRY(rp_vec_push(&parts, id, r->err));
    }
    return rp_program_tuple(r->p, parts.at, parts.n, shape, r->err);
}

static enum rp_code shape_of(struct rp_mlir *r, uint64_t type, unsigned depth, uint32_t *shape)
{
    struct rp_bytecode *b = r->bytecode;
    struct rp_bc_type t;

    *shape = 0;
    while (type < b->types.n && b->shapes.n <= type)
        RP_TRY(rp_vec_push(&b->shapes, RP_NONE, b->err));
    if (type < b->types.n && b->shapes.at[type] != RP_NONE) {
        *shape = b->shapes.at[type];
        return RP_OK;
    }
    rp_bc_type(b, type, &t);
    RP_TRY(b->code);
    unsigned elem = rp_mlir_elem(t.scalar, strlen(t.scalar));
    if (t.kind == RP_BC_TUPLE)
        RP_TRY(tuple_shape(r, &t, depth, shape));
    else if (t.kind == RP_BC_TOKEN)
        RP_TRY(rp_program_array(r->p, RP_ELEM_TOKEN, NULL, NULL, 0, 0, shape, r->err));
    else if (t.kind == RP_BC_TENSOR && elem != RP_ELEM_INVALID)
        RP_TRY(rp_program_array(r->p, elem, t.dims, NULL, t.n, 0, shape, r->err));
    b->shapes.at[type] = *shape;
    return RP_OK;
}

enum rp_code rp_bc_shape(struct rp_mlir *r, uint64_t type, uint32_t *shape)
{
    return shape_of(r, type, 0, shape);
}

unsigned rp_bc_bits(const char *scalar)
{
    const char *digits = scalar + strcspn(scalar, "0123456789");
    unsigned long bits = strcmp(scalar, "index") == 0 ? 64 : strtoul(digits, NULL, 10);

    return bits <= 64 ? (unsigned)bits : 0;
}

/* ---- strings and lists ---- */

struct rp_slice rp_bc_attr_string(struct rp_bytecode *b, uint64_t index)
{
    struct rp_bc_cursor c = {NULL, NULL};
    uint64_t code;
    enum rp_bc_dialect d = rp_bc_open(b, false, index, &c, &code);
    const uint8_t *at = c.at;
    bool symbol = d == RP_BC_BUILTIN && (code == 4 || code == 5);

    if (symbol)
        d = rp_bc_open(b, false, rp_bc_varint(b, &c), &c, &code);
    if ((d == RP_BC_VHLO && code == 14) || (d == RP_BC_BUILTIN && (code == 2 || code == 3)))
        return rp_bc_string(b, &c);
    if (symbol)
        rp_bc_fail(b, at, "a symbol whose name is not a string");
    return (struct rp_slice){0};
}

void rp_bc_dictionary(struct rp_bytecode *b, uint64_t index)
{
    struct rp_bc_cursor c;
    size_t n = open_as(b, index, 6, 1, &c) ? rp_bc_count(b, &c) : 0;

    for (size_t i = 0; i < n && b->code == RP_OK; i++) {
        const uint8_t *at = c.at;
        struct rp_mlir_named one = {.name = rp_bc_attr_string(b, rp_bc_varint(b, &c))};

        one.value = rp_bc_varint(b, &c);
        if (!one.name.at)
            rp_bc_fail(b, at, "an attribute without a name");
        if (b->code == RP_OK)
            b->code = rp_vec_push(&b->named, one, b->err);
    }
}

size_t rp_bc_array(struct rp_bytecode *b, uint64_t index, struct rp_bc_cursor *items)
{
    return open_as(b, index, 1, 0, items) ? rp_bc_count(b, items) : 0;
}

/* The words of each enumeration by number; VHLO and StableHLO use the same names. */
static const struct {
    const char *name;
    uint8_t vhlo, stablehlo;
    const char *words[6];
} enumerations[] = {
    {"comparison_direction", 3, 2, {"EQ", "NE", "GE", "GT", "LE", "LT"}},
    {"comparison_type", 4, 3, {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"}},
    {"fft_type", 7, 6, {"FFT", "IFFT", "RFFT", "IRFFT"}},
    {"precision", 11, 8, {"DEFAULT", "HIGH", "HIGHEST"}},
    {"rng_algorithm", 12, 9, {"DEFAULT", "THREE_FRY", "PHILOX"}},
    {"rng_distribution", 13, 10, {"", "UNIFORM", "NORMAL"}},
    {"transpose", 16, 12, {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}},
    {"result_accuracy_mode", 19, 16, {"DEFAULT", "HIGHEST", "TOLERANCE"}},
};

bool rp_bc_word(struct rp_bytecode *b, uint64_t index, const char **of, const char **word)
{
    struct rp_bc_cursor c = {NULL, NULL};
    uint64_t code;
    enum rp_bc_dialect d = rp_bc_open(b, false, index, &c, &code);
    const uint8_t *at = c.at;

    for (size_t i = 0; i < sizeof enumerations / sizeof *enumerations; i++) {
        if (!((d == RP_BC_VHLO && code == enumerations[i].vhlo) ||
              (d == RP_BC_STABLEHLO && code == enumerations[i].stablehlo) ||
              (d == RP_BC_CHLO && code == i)))
            continue;
        uint64_t value = rp_bc_varint(b, &c);
        if (value >= 6 || !enumerations[i].words[value]) {
            rp_bc_fail(b, at, "%" PRIu64 " is not a valid %s", value, enumerations[i].name);
            return false;
        }
        *of = enumerations[i].name;
        *word = enumerations[i].words[value];
        return true;
    }
    return false;
}

/* Whether exactly this many lists and one number are left: older versions have no batching
   dimensions, and the bytecode of StableHLO itself has no version. */
static bool lists_fit(const struct rp_bytecode *b, struct rp_bc_cursor c, size_t lists)
{
    struct rp_bytecode look = {.begin = b->begin, .end = b->end};

    for (; lists && look.code == RP_OK; lists--)
        for (size_t n = rp_bc_count(&look, &c); n && look.code == RP_OK; n--)
            rp_bc_varint(&look, &c);
    rp_bc_varint(&look, &c);
    return look.code == RP_OK && c.at == c.end;
}

bool rp_bc_lists(struct rp_bytecode *b, uint64_t index, struct rp_bc_lists *out)
{
    static const char *const dot[] = {"lhs_batching_dimensions", "rhs_batching_dimensions",
                                      "lhs_contracting_dimensions", "rhs_contracting_dimensions"};
    static const char *const gather[] = {"offset_dims",           "collapsed_slice_dims",
                                         "operand_batching_dims", "start_indices_batching_dims",
                                         "start_index_map",       "index_vector_dim"};
    static const char *const scatter[] = {
        "update_window_dims",           "inserted_window_dims",
        "input_batching_dims",          "scatter_indices_batching_dims",
        "scatter_dims_to_operand_dims", "index_vector_dim"};
    uint64_t code;

    *out = (struct rp_bc_lists){.n = 6, .number = true};
    if (rp_bc_open(b, false, index, &out->c, &code) != RP_BC_STABLEHLO ||
        (code != 5 && code != 7 && code != 11))
        return false;
    out->kind = code == 5 ? "dot" : code == 7 ? "gather" : "scatter";
    out->names = code == 5 ? dot : code == 7 ? gather : scatter;
    out->older = code != 5 && !lists_fit(b, out->c, 5) && lists_fit(b, out->c, 3);
    if (code == 5) {
        out->n = 4;
        out->number = false;
    }
    return true;
}

const char *rp_bc_next_list(struct rp_bytecode *b, struct rp_bc_lists *lists,
                            struct rp_mlir_ints *out)
{
    if (lists->older && lists->at == 2)
        lists->at += 2;
    if (lists->at == lists->n || b->code != RP_OK)
        return NULL;
    bool number = lists->number && lists->at + 1 == lists->n;
    size_t n = number ? 1 : rp_bc_count(b, &lists->c);
    out->n = 0;
    for (size_t i = 0; i < n && b->code == RP_OK; i++) {
        int64_t value = rp_bc_signed(b, &lists->c);

        if (out->n < RP_MLIR_INTS)
            out->at[out->n++] = value;
    }
    return lists->names[lists->at++];
}

/* ---- numbers and elements ---- */

bool rp_bc_number(struct rp_bytecode *b, uint64_t index, struct rp_bc_number *out)
{
    struct rp_bc_cursor c = {NULL, NULL};
    uint64_t code;
    enum rp_bc_dialect d = rp_bc_open(b, false, index, &c, &code);
    bool vhlo = d == RP_BC_VHLO;
    const uint8_t *at = c.at;

    *out = (struct rp_bc_number){0};
    if (d != RP_BC_VHLO && d != RP_BC_BUILTIN)
        return false;
    if ((vhlo && (code == 2 || code == 5)) || (!vhlo && code == 7)) { /* true, a version, unit */
        out->value = vhlo ? (int64_t)rp_bc_varint(b, &c) : 1;
        snprintf(out->scalar, sizeof out->scalar, "%s", code == 5 ? "i32" : "i1");
        return b->code == RP_OK;
    }
    out->real = code == (vhlo ? 8 : 9);
    if (code != 8 && code != 9)
        return false;
    scalar_of(b, rp_bc_varint(b, &c), at, out->scalar, sizeof out->scalar);
    unsigned bits = rp_bc_bits(out->scalar);
    out->value = bits && bits <= 8 ? rp_bc_byte(b, &c) : rp_bc_signed(b, &c);
    if (!out->real && bits > 1 && bits <= 8)
        out->value = (out->value & 0xff) - (out->value & 0x80 ? 0x100 : 0);
    return b->code == RP_OK;
}

/* Booleans are packed into bits, except for a single value for all, and in some older files. */
static struct rp_bc_cursor unpack_booleans(struct rp_bytecode *b, struct rp_bc_cursor raw,
                                           uint64_t n)
{
    size_t size = (size_t)(raw.end - raw.at);

    if (size == 1 && raw.at[0] == 0xff) {
        static const uint8_t one = 1;

        return (struct rp_bc_cursor){&one, &one + 1};
    }
    if (size != n / 8 + (n % 8 != 0) || size == n)
        return raw;
    b->work += n;
    uint8_t *bytes = rp_arena_alloc(&b->p->arena, (size_t)n + 1, 1);
    if (!bytes) {
        b->code = rp_err_nomem(b->err, "reading a constant");
        return (struct rp_bc_cursor){b->end, b->end};
    }
    for (size_t i = 0; i < n; i++)
        bytes[i] = raw.at[i / 8] >> (i % 8) & 1;
    return (struct rp_bc_cursor){bytes, bytes + n};
}

static void data_type(struct rp_bytecode *b, uint64_t type, struct rp_bc_data *out)
{
    rp_bc_type(b, type, &out->type);
    out->elements = 1;
    for (size_t i = 0; out->type.kind == RP_BC_TENSOR && i < out->type.n; i++)
        if (out->type.dims[i] < 0 ||
            __builtin_mul_overflow(out->elements, (uint64_t)out->type.dims[i], &out->elements))
            out->elements = UINT64_MAX; /* of no constant */
}

bool rp_bc_data(struct rp_bytecode *b, uint64_t index, struct rp_bc_data *out)
{
    struct rp_bc_cursor c = {NULL, NULL};
    uint64_t code;
    enum rp_bc_dialect d = rp_bc_open(b, false, index, &c, &code);
    const uint8_t *at = c.at;

    *out = (struct rp_bc_data){.raw = {NULL, NULL}};
    if ((d == RP_BC_VHLO && code == 15) || (d == RP_BC_BUILTIN && code == 18)) {
        data_type(b, rp_bc_varint(b, &c), out);
        out->raw = rp_bc_bytes(b, &c, rp_bc_varint(b, &c));
        if (b->code == RP_OK && strcmp(out->type.scalar, "i1") == 0)
            out->raw = unpack_booleans(b, out->raw, out->elements);
    } else if (d == RP_BC_BUILTIN && code == 16) {
        data_type(b, rp_bc_varint(b, &c), out);
        uint64_t handle = rp_bc_varint(b, &c);
        if (handle >= b->resources.n)
            rp_bc_fail(b, at, "resource %" PRIu64 " of %zu", handle, b->resources.n);
        else
            out->raw = b->resources.at[handle];
    } else if (d == RP_BC_BUILTIN && code == 17) {
        scalar_of(b, rp_bc_varint(b, &c), at, out->type.scalar, sizeof out->type.scalar);
        out->list = true;
        out->elements = rp_bc_varint(b, &c);
        out->raw = rp_bc_bytes(b, &c, rp_bc_varint(b, &c));
    } else {
        return false;
    }
    return b->code == RP_OK;
}

static int64_t element_value(const uint8_t *at, unsigned size, bool sign)
{
    uint64_t v = 0;

    memcpy(&v, at, size);
    if (sign && size < 8)
        return (int64_t)(v << (64 - 8 * size)) >> (64 - 8 * size);
    return (int64_t)v;
}

bool rp_bc_data_ints(const struct rp_bc_data *data, struct rp_mlir_ints *out)
{
    const char *scalar = data->type.scalar;
    bool sign = scalar[0] == 'i';
    unsigned size = sign || scalar[0] == 'u' ? (rp_bc_bits(scalar) + 7) / 8 : 0;
    size_t have = size ? (size_t)(data->raw.end - data->raw.at) / size : 0;
    bool splat = have == 1 && data->elements > 1;

    out->n = 0;
    if (!size || data->elements > RP_MLIR_INTS || !data->raw.at ||
        (!splat && have < data->elements))
        return false;
    for (; out->n < data->elements; out->n++)
        out->at[out->n] =
            element_value(data->raw.at + (splat ? 0 : out->n * size), size, sign && size > 1);
    return true;
}

/* ---- places in the source ---- */

enum { LOC_CALL = 10, LOC_FILE, LOC_FUSED, LOC_FUSED_META, LOC_NAME, LOC_UNKNOWN, LOC_RANGE = 22 };

static enum rp_code loc_text(struct rp_mlir *r, struct rp_bc_cursor *c, uint32_t *text)
{
    struct rp_slice s = rp_bc_attr_string(r->bytecode, rp_bc_varint(r->bytecode, c));

    return rp_program_string(r->p, s.at ? s.at : "", s.n, text, r->err);
}

enum rp_code rp_bc_locations(struct rp_mlir *r)
{
    struct rp_bytecode *b = r->bytecode;

    for (size_t i = 0; i < b->attrs.n && b->code == RP_OK; i++) {
        struct rp_mlir_loc loc = {0};
        struct rp_bc_cursor c = {NULL, NULL};
        uint64_t code = 0, ref = RP_NONE;
        bool builtin = b->attrs.at[i].custom && dialect_of(b, &b->attrs.at[i]) == RP_BC_BUILTIN;

        if (builtin)
            rp_bc_open(b, false, i, &c, &code);
        if (builtin && (code == LOC_FILE || code == LOC_RANGE)) {
            RP_TRY(loc_text(r, &c, &loc.file));
            uint64_t n = code == LOC_RANGE ? rp_bc_varint(b, &c) : 1;
            loc.line = n ? (int32_t)rp_bc_varint(b, &c) : 0;
        } else if (builtin && code == LOC_NAME) {
            RP_TRY(loc_text(r, &c, &loc.name));
            ref = rp_bc_varint(b, &c);
        } else if (builtin && (code == LOC_CALL || ((code == LOC_FUSED || code == LOC_FUSED_META) &&
                                                    rp_bc_count(b, &c)))) {
            ref = rp_bc_varint(b, &c);
        }
        loc.ref = ref < b->attrs.n ? (uint32_t)ref + 1 : 0;
        RP_TRY(rp_vec_push(&r->locs, loc, r->err));
    }
    return b->code;
}
