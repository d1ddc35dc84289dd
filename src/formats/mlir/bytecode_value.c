/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes and types of MLIR bytecode as text. Each dialect has its own encoding: a code, then
 * the fields; these are those of builtin, VHLO, StableHLO, CHLO and Shardy. What a dialect does not
 * encode is text in the file already.
 */
#include "formats/mlir/bytecode.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 40
#define MAX_LIST  ((size_t)RP_MLIR_INTS * 2)

enum dialect { OTHER, BUILTIN, VHLO, STABLEHLO, CHLO, SDY };

static enum dialect dialect_of(const struct rp_bytecode *b, const struct rp_bc_entry *e)
{
    static const char *const names[] = {"", "builtin", "vhlo", "stablehlo", "chlo", "sdy"};
    struct rp_slice name = b->strings.at[b->dialects.at[e->dialect]];

    for (enum dialect d = BUILTIN; d <= SDY; d++)
        if (strlen(names[d]) == name.n && memcmp(names[d], name.at, name.n) == 0)
            return d;
    return OTHER;
}

static const struct rp_bc_entry *entry_at(struct rp_bytecode *b, bool type, uint64_t index)
{
    size_t n = type ? b->types.n : b->attrs.n;

    if (b->code != RP_OK)
        return NULL;
    if (index < n)
        return type ? &b->types.at[index] : &b->attrs.at[index];
    rp_bc_fail(b, b->begin, "%s %" PRIu64 " of %zu", type ? "type" : "attribute", index, n);
    return NULL;
}

/* The entry's code, and its cursor after it; OTHER: the entry is text. */
static enum dialect begin_entry(struct rp_bytecode *b, bool type, uint64_t index,
                                struct rp_bc_cursor *c, uint64_t *code)
{
    const struct rp_bc_entry *e = entry_at(b, type, index);
    enum dialect d;

    *code = UINT64_MAX;
    *c = (struct rp_bc_cursor){b->end, b->end};
    if (!e)
        return OTHER;
    *c = e->data;
    d = e->custom ? dialect_of(b, e) : OTHER;
    if (e->custom && d == OTHER)
        rp_bc_fail(b, e->data.at, "%s of the dialect '%.*s' in an encoding that is not known",
                   type ? "a type" : "an attribute",
                   (int)b->strings.at[b->dialects.at[e->dialect]].n,
                   b->strings.at[b->dialects.at[e->dialect]].at);
    if (d != OTHER)
        *code = rp_bc_varint(b, c);
    return d;
}

static void put_asm(struct rp_bytecode *b, struct rp_bc_cursor c)
{
    size_t n = (size_t)(c.end - c.at);

    while (n && c.at[n - 1] == 0)
        n--;
    rp_bc_put(b, (const char *)c.at, n);
}

/* ---- types ---- */

enum { /* codes of builtin types */
       B_INTEGER,
       B_INDEX,
       B_FUNCTION,
       B_COMPLEX = 9,
       B_NONE = 12,
       B_TENSOR,
       B_TENSOR_ENCODED,
       B_TUPLE,
       B_UNRANKED = 18
};
enum { /* codes of VHLO types */
       V_COMPLEX = 1,
       V_FUNCTION = 8,
       V_TENSOR = 20,
       V_TENSOR_ENCODED,
       V_TOKEN,
       V_TUPLE,
       V_QUANTIZED,
       V_UNRANKED,
       V_WITNESS,
       V_QUANTIZED_AXIS = 30,
       V_BUFFER = 41,
       V_FUTURE
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

static const char *scalar_name(enum dialect d, uint64_t code)
{
    if (d == VHLO && code < sizeof vhlo_scalars / sizeof *vhlo_scalars)
        return vhlo_scalars[code];
    if (d == BUILTIN && code < sizeof builtin_scalars / sizeof *builtin_scalars)
        return builtin_scalars[code];
    return NULL;
}

static void put_types(struct rp_bytecode *b, struct rp_bc_cursor *c, unsigned depth)
{
    size_t n = rp_bc_count(b, c);

    for (size_t i = 0; i < n && b->code == RP_OK; i++) {
        if (i)
            rp_bc_puts(b, ", ");
        rp_bc_type(b, rp_bc_varint(b, c), depth + 1);
    }
}

/* "2x?x": the bound of an unknown dimension is in the encoding, which is written after the type. */
static void put_tensor(struct rp_bytecode *b, struct rp_bc_cursor *c, bool encoded, unsigned depth)
{
    uint64_t encoding = encoded ? rp_bc_varint(b, c) : 0;
    size_t rank = rp_bc_count(b, c);

    rp_bc_puts(b, "tensor<");
    for (size_t i = 0; i < rank && b->code == RP_OK; i++) {
        int64_t dim = rp_bc_signed(b, c);

        if (dim < 0)
            rp_bc_puts(b, "?x");
        else
            rp_bc_putf(b, "%" PRId64 "x", dim);
    }
    rp_bc_type(b, rp_bc_varint(b, c), depth + 1);
    if (encoded) {
        rp_bc_puts(b, ", ");
        rp_bc_attr(b, encoding, depth + 1);
    }
    rp_bc_puts(b, ">");
}

void rp_bc_type(struct rp_bytecode *b, uint64_t index, unsigned depth)
{
    static const char signs[] = "isu";
    struct rp_bc_cursor c;
    uint64_t code, width;
    enum dialect d = begin_entry(b, true, index, &c, &code);
    const char *scalar = scalar_name(d, code);
    bool vhlo = d == VHLO;

    if (b->code != RP_OK)
        return;
    if (depth > MAX_DEPTH) {
        rp_bc_fail(b, c.at, "types nested too deep");
    } else if (d == OTHER) {
        put_asm(b, c);
    } else if (scalar) {
        rp_bc_puts(b, scalar);
    } else if (d == BUILTIN && code == B_INTEGER) {
        width = rp_bc_varint(b, &c);
        rp_bc_putf(b, "%s%" PRIu64,
                   (width & 3) == 1   ? "si"
                   : (width & 3) == 2 ? "ui"
                                      : (char[]){signs[0], 0},
                   width >> 2);
    } else if (d == STABLEHLO || (vhlo && code == V_TOKEN)) {
        rp_bc_puts(b, d == STABLEHLO && code ? "!stablehlo.future" : "!stablehlo.token");
    } else if (code == (vhlo ? V_COMPLEX : (uint64_t)B_COMPLEX)) {
        rp_bc_puts(b, "complex<");
        rp_bc_type(b, rp_bc_varint(b, &c), depth + 1);
        rp_bc_puts(b, ">");
    } else if (code == (vhlo ? V_FUNCTION : (uint64_t)B_FUNCTION)) {
        rp_bc_puts(b, "(");
        put_types(b, &c, depth);
        rp_bc_puts(b, ") -> (");
        put_types(b, &c, depth);
        rp_bc_puts(b, ")");
    } else if (code == (vhlo ? V_TENSOR : (uint64_t)B_TENSOR)) {
        put_tensor(b, &c, false, depth);
    } else if (code == (vhlo ? V_TENSOR_ENCODED : (uint64_t)B_TENSOR_ENCODED)) {
        put_tensor(b, &c, true, depth);
    } else if (code == (vhlo ? V_TUPLE : (uint64_t)B_TUPLE)) {
        rp_bc_puts(b, "tuple<");
        put_types(b, &c, depth);
        rp_bc_puts(b, ">");
    } else if (code == (vhlo ? V_UNRANKED : (uint64_t)B_UNRANKED)) {
        rp_bc_puts(b, "tensor<*x");
        rp_bc_type(b, rp_bc_varint(b, &c), depth + 1);
        rp_bc_puts(b, ">");
    } else if (vhlo && (code == V_QUANTIZED || code == V_QUANTIZED_AXIS)) {
        rp_bc_puts(b, "!quant.uniform<");
        rp_bc_varint(b, &c);
        rp_bc_type(b, rp_bc_varint(b, &c), depth + 1);
        rp_bc_puts(b, ":");
        rp_bc_type(b, rp_bc_varint(b, &c), depth + 1);
        rp_bc_puts(b, ">");
    } else if (vhlo && (code == V_BUFFER || code == V_FUTURE || code == V_WITNESS)) {
        rp_bc_puts(b, "!stablehlo.future");
    } else {
        rp_bc_fail(b, c.at, "type code %" PRIu64 " is not known", code);
    }
}

/* What the elements of a tensor type are: bits of one (0: not known), and how many there are. */
struct elements {
    unsigned bits;
    bool integer, boolean, sign;
    uint64_t n;
};

static struct elements elements_of(struct rp_bytecode *b, uint64_t type)
{
    struct elements e = {.n = 1};
    struct rp_bc_cursor c;
    uint64_t code, width;
    enum dialect d = begin_entry(b, true, type, &c, &code);
    const char *name;
    size_t rank;

    if ((d == VHLO && code == V_TENSOR_ENCODED) || (d == BUILTIN && code == B_TENSOR_ENCODED))
        rp_bc_varint(b, &c);
    else if (!((d == VHLO && code == V_TENSOR) || (d == BUILTIN && code == B_TENSOR)))
        return e;
    rank = rp_bc_count(b, &c);
    for (size_t i = 0; i < rank && b->code == RP_OK; i++) {
        int64_t dim = rp_bc_signed(b, &c);

        if (dim < 0 || __builtin_mul_overflow(e.n, (uint64_t)dim, &e.n))
            return e;
    }
    d = begin_entry(b, true, rp_bc_varint(b, &c), &c, &code);
    if (d == BUILTIN && code == B_INTEGER) {
        width = rp_bc_varint(b, &c);
        e.integer = true;
        e.boolean = width >> 2 == 1;
        e.sign = (width & 3) != 2;
        e.bits = width >> 2 <= 64 ? (unsigned)(width >> 2) : 0;
        return e;
    }
    name = scalar_name(d, code);
    if (!name)
        return e;
    e.boolean = d == VHLO && code == 0;
    e.integer = e.boolean || name[0] == 'i' || (name[0] == 'u' && name[1] == 'i');
    e.sign = name[0] == 'i';
    e.bits = !strcmp(name, "index") ? 64 : 0;
    if (e.integer && !e.bits)
        e.bits = (unsigned)strtoul(name + strcspn(name, "0123456789"), NULL, 10);
    return e;
}

/* ---- bytes of elements ---- */

/* Booleans are packed into bits, but for one value for all and in some older files. */
static struct rp_bc_cursor unpack_booleans(struct rp_bytecode *b, struct rp_bc_cursor raw,
                                           uint64_t n)
{
    size_t size = (size_t)(raw.end - raw.at);
    uint8_t *bytes;

    if (size == 1 && raw.at[0] == 0xff) {
        static const uint8_t one = 1;

        return (struct rp_bc_cursor){&one, &one + 1};
    }
    if (size != n / 8 + (n % 8 != 0) || size == n)
        return raw;
    bytes = rp_arena_alloc(b->arena, (size_t)n + 1, 1);
    if (!bytes) {
        b->code = rp_err_nomem(b->err, "reading a constant");
        return (struct rp_bc_cursor){b->end, b->end};
    }
    for (size_t i = 0; i < n; i++)
        bytes[i] = raw.at[i / 8] >> (i % 8) & 1;
    return (struct rp_bc_cursor){bytes, bytes + n};
}

static int64_t element_value(const uint8_t *at, unsigned size, bool sign)
{
    uint64_t v = 0;

    memcpy(&v, at, size);
    if (sign && size < 8)
        return (int64_t)(v << (64 - 8 * size)) >> (64 - 8 * size);
    return (int64_t)v;
}

/* The data of an attribute of elements: false where it has none, or is no such attribute. */
struct data {
    struct rp_bc_cursor raw;
    struct elements of;
    uint64_t type;
    struct rp_slice resource; /* its name, where the bytes are a resource */
    bool list;                /* array<i64: ...>: no tensor */
};

static bool attr_data(struct rp_bytecode *b, uint64_t index, struct data *out)
{
    struct rp_bc_cursor c;
    uint64_t code, handle;
    enum dialect d = begin_entry(b, false, index, &c, &code);

    *out = (struct data){.raw = {b->end, b->end}};
    if ((d == VHLO && code == 15) || (d == BUILTIN && code == 18)) {
        out->type = rp_bc_varint(b, &c);
        out->of = elements_of(b, out->type);
        out->raw = rp_bc_bytes(b, &c, rp_bc_varint(b, &c));
        if (out->of.boolean)
            out->raw = unpack_booleans(b, out->raw, out->of.n);
        return b->code == RP_OK;
    }
    if (d == BUILTIN && code == 16) {
        out->type = rp_bc_varint(b, &c);
        out->of = elements_of(b, out->type);
        handle = rp_bc_varint(b, &c);
        if (b->code == RP_OK && handle >= b->resources.n)
            rp_bc_fail(b, c.at, "resource %" PRIu64 " of %zu", handle, b->resources.n);
        if (b->code != RP_OK)
            return false;
        out->resource = b->resources.at[handle].name;
        out->raw.at = (const uint8_t *)b->resources.at[handle].bytes.at;
        out->raw.end = out->raw.at ? out->raw.at + b->resources.at[handle].bytes.n : NULL;
        return true;
    }
    if (d == BUILTIN && code == 17) {
        struct rp_bc_cursor inner;
        uint64_t inner_code;
        uint64_t element = rp_bc_varint(b, &c);

        out->list = true;
        out->of.n = rp_bc_varint(b, &c);
        out->raw = rp_bc_bytes(b, &c, rp_bc_varint(b, &c));
        if (begin_entry(b, true, element, &inner, &inner_code) == BUILTIN &&
            inner_code == B_INTEGER) {
            inner_code = rp_bc_varint(b, &inner);
            out->of.integer = out->of.sign = true;
            out->of.boolean = inner_code >> 2 == 1;
            out->of.bits = inner_code >> 2 <= 64 ? (unsigned)(inner_code >> 2) : 0;
        }
        return b->code == RP_OK;
    }
    return false;
}

static bool data_ints(const struct data *data, int64_t *at, size_t cap, size_t *n)
{
    unsigned size = data->of.bits ? (data->of.bits + 7) / 8 : 0;
    size_t have = size ? (size_t)(data->raw.end - data->raw.at) / size : 0;
    bool splat = have == 1 && data->of.n > 1;

    *n = 0;
    if (!data->of.integer || !size || size > 8 || data->of.n > cap || !data->raw.at ||
        (!splat && have < data->of.n))
        return false;
    for (*n = 0; *n < data->of.n; ++*n)
        at[*n] =
            element_value(data->raw.at + (splat ? 0 : *n * size), size, data->of.sign && size > 1);
    return true;
}

/* "dense_resource<rp_3> : tensor<2xf32>", where the reader of the text finds the bytes. */
static void put_blob(struct rp_bytecode *b, const struct data *data, unsigned depth)
{
    struct rp_mlir_blob blob = {
        .bytes = {(const char *)data->raw.at, (size_t)(data->raw.end - data->raw.at)}};

    if (!data->raw.at)
        rp_bc_puts(b, "dense_resource<absent>");
    else
        rp_bc_putf(b, "dense_resource<rp_%zu>", b->blobs.n);
    if (data->raw.at && b->code == RP_OK)
        b->code = rp_vec_push(&b->blobs, blob, b->err);
    rp_bc_puts(b, " : ");
    rp_bc_type(b, data->type, depth + 1);
}

static void put_data(struct rp_bytecode *b, const struct data *data, unsigned depth)
{
    int64_t list[MAX_LIST];
    size_t n;

    if (!data_ints(data, list, MAX_LIST, &n)) {
        if (data->list)
            rp_bc_puts(b, "array<i64>");
        else
            put_blob(b, data, depth);
        return;
    }
    rp_bc_puts(b, data->list ? n ? "array<i64: " : "array<i64" : "dense<[");
    for (size_t i = 0; i < n; i++)
        rp_bc_putf(b, "%s%" PRId64, i ? ", " : "", list[i]);
    if (data->list) {
        rp_bc_puts(b, ">");
    } else {
        rp_bc_puts(b, "]> : ");
        rp_bc_type(b, data->type, depth + 1);
    }
}

void rp_bc_constant(struct rp_bytecode *b, uint64_t index)
{
    struct data data;

    if (attr_data(b, index, &data) && !data.list)
        put_blob(b, &data, 0);
    else
        rp_bc_attr(b, index, 0);
}

bool rp_bc_attr_ints(struct rp_bytecode *b, uint64_t index, struct rp_mlir_ints *out)
{
    struct rp_bc_cursor c;
    struct data data;
    uint64_t code;
    enum dialect d;

    out->n = 0;
    if (attr_data(b, index, &data))
        return data_ints(&data, out->at, RP_MLIR_INTS, &out->n);
    d = begin_entry(b, false, index, &c, &code);
    if (!((d == VHLO && code == 9) || (d == BUILTIN && code == 8)))
        return false;
    rp_bc_varint(b, &c);
    out->at[out->n++] = rp_bc_signed(b, &c);
    return b->code == RP_OK;
}

/* ---- attributes ---- */

struct rp_slice rp_bc_attr_string(struct rp_bytecode *b, uint64_t index)
{
    struct rp_bc_cursor c;
    uint64_t code;
    enum dialect d = begin_entry(b, false, index, &c, &code);

    if (d == BUILTIN && (code == 4 || code == 5)) { /* a symbol */
        d = begin_entry(b, false, rp_bc_varint(b, &c), &c, &code);
        if (d != BUILTIN || (code != 2 && code != 3))
            rp_bc_fail(b, c.at, "a symbol whose name is not a string");
    }
    if ((d == VHLO && code == 14) || (d == BUILTIN && (code == 2 || code == 3)))
        return rp_bc_string(b, &c);
    return (struct rp_slice){NULL, 0, 0};
}

static size_t attr_items(struct rp_bytecode *b, uint64_t index, bool pairs,
                         struct rp_bc_named **out)
{
    struct rp_bc_cursor c;
    uint64_t code;
    enum dialect d = begin_entry(b, false, index, &c, &code);
    bool fits = pairs ? (d == VHLO && code == 6) || (d == BUILTIN && code == 1)
                      : (d == VHLO && code == 1) || (d == BUILTIN && code == 0);
    size_t n = fits ? rp_bc_count(b, &c) : 0;

    *out = n ? RP_ARENA_NEW(b->arena, struct rp_bc_named, n) : NULL;
    if (n && !*out && b->code == RP_OK)
        b->code = rp_err_nomem(b->err, "reading MLIR bytecode");
    for (size_t i = 0; i < n && b->code == RP_OK; i++) {
        if (pairs)
            (*out)[i].name = rp_bc_attr_string(b, rp_bc_varint(b, &c));
        (*out)[i].value = rp_bc_varint(b, &c);
        if (pairs && !(*out)[i].name.at)
            rp_bc_fail(b, c.at, "an attribute without a name");
    }
    return b->code == RP_OK ? n : 0;
}

size_t rp_bc_array(struct rp_bytecode *b, uint64_t index, struct rp_bc_named **out)
{
    return attr_items(b, index, false, out);
}

size_t rp_bc_dictionary(struct rp_bytecode *b, uint64_t index, struct rp_bc_named **out)
{
    return attr_items(b, index, true, out);
}

bool rp_bc_function_type(struct rp_bytecode *b, uint64_t index, struct rp_bc_cursor *lists)
{
    struct rp_bc_cursor c;
    uint64_t code;
    enum dialect d = begin_entry(b, false, index, &c, &code);

    if (!((d == VHLO && code == 17) || (d == BUILTIN && code == 6)))
        return false;
    d = begin_entry(b, true, rp_bc_varint(b, &c), lists, &code);
    return b->code == RP_OK &&
           ((d == VHLO && code == V_FUNCTION) || (d == BUILTIN && code == B_FUNCTION));
}

static void put_list(struct rp_bytecode *b, struct rp_bc_cursor *c, const char *name)
{
    size_t n = rp_bc_count(b, c);

    rp_bc_putf(b, "%s = [", name);
    for (size_t i = 0; i < n && b->code == RP_OK; i++)
        rp_bc_putf(b, "%s%" PRId64, i ? ", " : "", rp_bc_signed(b, c));
    rp_bc_puts(b, "]");
}

static void put_attrs(struct rp_bytecode *b, struct rp_bc_cursor *c, unsigned depth)
{
    size_t n = rp_bc_count(b, c);

    rp_bc_puts(b, "[");
    for (size_t i = 0; i < n && b->code == RP_OK; i++) {
        if (i)
            rp_bc_puts(b, ", ");
        rp_bc_attr(b, rp_bc_varint(b, c), depth + 1);
    }
    rp_bc_puts(b, "]");
}

static void put_key(struct rp_bytecode *b, struct rp_slice name)
{
    for (uint32_t i = 0; i < name.n; i++)
        if (!rp_mlir_word_char(name.at[i]) || name.at[i] == '-') {
            rp_bc_quoted(b, name);
            return;
        }
    rp_bc_put(b, name.at, name.n);
}

static void put_dictionary(struct rp_bytecode *b, struct rp_bc_cursor *c, unsigned depth)
{
    size_t n = rp_bc_count(b, c);

    rp_bc_puts(b, "{");
    for (size_t i = 0; i < n && b->code == RP_OK; i++) {
        if (i)
            rp_bc_puts(b, ", ");
        put_key(b, rp_bc_attr_string(b, rp_bc_varint(b, c)));
        rp_bc_puts(b, " = ");
        rp_bc_attr(b, rp_bc_varint(b, c), depth + 1);
    }
    rp_bc_puts(b, "}");
}

/* The words of an enumeration by number; the names are the same in VHLO and StableHLO. */
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

static bool put_enumeration(struct rp_bytecode *b, enum dialect d, uint64_t code,
                            struct rp_bc_cursor *c)
{
    for (size_t i = 0; i < sizeof enumerations / sizeof *enumerations; i++) {
        uint64_t value;

        if (!((d == VHLO && code == enumerations[i].vhlo) ||
              (d == STABLEHLO && code == enumerations[i].stablehlo) || (d == CHLO && code == i)))
            continue;
        value = rp_bc_varint(b, c);
        if (value >= 6 || !enumerations[i].words[value])
            rp_bc_fail(b, c->at, "%" PRIu64 " is no %s", value, enumerations[i].name);
        else
            rp_bc_putf(b, "#stablehlo<%s %s>", enumerations[i].name, enumerations[i].words[value]);
        return true;
    }
    return false;
}

static int64_t known_width(struct rp_bytecode *b, struct rp_bc_cursor *c, unsigned bits)
{
    return bits <= 8 ? rp_bc_byte(b, c) : rp_bc_signed(b, c);
}

/* Bits of a scalar type; 64 where it is none. */
static unsigned scalar_bits(struct rp_bytecode *b, uint64_t type)
{
    struct rp_bc_cursor c;
    uint64_t code;
    enum dialect d = begin_entry(b, true, type, &c, &code);
    const char *name = scalar_name(d, code);
    unsigned bits = 0;

    if (d == BUILTIN && code == B_INTEGER)
        return (unsigned)(rp_bc_varint(b, &c) >> 2);
    if (d == OTHER) { /* "f8E4M3FN" of the builtin dialect is text */
        char text[24] = "";

        for (size_t i = 0; i + 1 < sizeof text && c.at + i < c.end; i++)
            text[i] = (char)c.at[i];
        if (text[0] == 'f' && text[2] == 'E')
            return 8;
        return 64;
    }
    if (!name || !strcmp(name, "index"))
        return 64;
    for (; *name; name++)
        if (*name >= '0' && *name <= '9') {
            for (; *name >= '0' && *name <= '9'; name++)
                bits = bits * 10 + (unsigned)(*name - '0');
            return bits;
        }
    return 64;
}

static void put_number(struct rp_bytecode *b, struct rp_bc_cursor *c, bool real, unsigned depth)
{
    uint64_t type = rp_bc_varint(b, c);
    unsigned bits = scalar_bits(b, type);
    int64_t value = known_width(b, c, bits);
    float single;
    double wide;

    if (!real && bits == 1) {
        rp_bc_puts(b, value ? "true" : "false");
        return;
    }
    if (bits <= 8 && !real)
        value = (value & 0xff) - (value & 0x80 ? 0x100 : 0);
    if (!real) {
        rp_bc_putf(b, "%" PRId64, value);
    } else if (bits == 32) {
        memcpy(&single, &(uint32_t){(uint32_t)value}, sizeof single);
        rp_bc_putf(b, "%.9e", (double)single);
    } else if (bits == 64) {
        memcpy(&wide, &value, sizeof wide);
        rp_bc_putf(b, "%.17e", wide);
    } else {
        rp_bc_putf(b, "0x%" PRIX64, (uint64_t)value & ((UINT64_C(1) << bits) - 1));
    }
    rp_bc_puts(b, " : ");
    rp_bc_type(b, type, depth + 1);
}

static void put_alias(struct rp_bytecode *b, struct rp_bc_cursor *c)
{
    rp_bc_puts(b, "#stablehlo.output_operand_alias<");
    put_list(b, c, "output_tuple_indices");
    rp_bc_putf(b, ", operand_index = %" PRId64 ", ", rp_bc_signed(b, c));
    put_list(b, c, "operand_tuple_indices");
    rp_bc_puts(b, ">");
}

static void put_accuracy(struct rp_bytecode *b, struct rp_bc_cursor *c)
{
    rp_bc_signed(b, c);
    rp_bc_signed(b, c);
    rp_bc_signed(b, c);
    rp_bc_varint(b, c);
    rp_bc_puts(b, "#stablehlo.result_accuracy<>");
}

/* Axes and meshes: the names are attributes in VHLO and strings in StableHLO. */
static void put_name(struct rp_bytecode *b, struct rp_bc_cursor *c, bool attribute)
{
    rp_bc_quoted(b, attribute ? rp_bc_attr_string(b, rp_bc_varint(b, c)) : rp_bc_string(b, c));
}

static void put_mesh_attr(struct rp_bytecode *b, bool vhlo, uint64_t which, struct rp_bc_cursor *c,
                          unsigned depth)
{
    uint64_t optional;
    size_t n;

    switch (which) {
    case 0: /* a part of an axis */
        rp_bc_putf(b, "(%" PRId64, rp_bc_signed(b, c));
        rp_bc_putf(b, ")%" PRId64, rp_bc_signed(b, c));
        break;
    case 1: /* an axis */
        put_name(b, c, vhlo);
        optional = vhlo ? rp_bc_varint(b, c) : rp_bc_byte(b, c);
        if (optional) {
            rp_bc_puts(b, ":");
            rp_bc_attr(b, rp_bc_varint(b, c), depth + 1);
        }
        break;
    case 2: /* groups by axes of a mesh */
        rp_bc_puts(b, "#stablehlo.replica_group_mesh_axes<mesh = ");
        rp_bc_attr(b, rp_bc_varint(b, c), depth + 1);
        rp_bc_puts(b, ", axes = ");
        if (vhlo) {
            rp_bc_attr(b, rp_bc_varint(b, c), depth + 1);
        } else {
            n = rp_bc_count(b, c);
            rp_bc_puts(b, "[");
            for (size_t i = 0; i < n && b->code == RP_OK; i++) {
                rp_bc_puts(b, i ? ", " : "");
                rp_bc_attr(b, rp_bc_varint(b, c), depth + 1);
            }
            rp_bc_puts(b, "]");
        }
        rp_bc_puts(b, ">");
        break;
    case 3: /* an axis of a mesh and its size */
        put_name(b, c, vhlo);
        rp_bc_putf(b, "=%" PRId64, rp_bc_signed(b, c));
        break;
    default: /* a mesh */
        rp_bc_puts(b, "#stablehlo.mesh<");
        rp_bc_attr(b, rp_bc_varint(b, c), depth + 1);
        optional = vhlo ? rp_bc_varint(b, c) : rp_bc_byte(b, c);
        if (optional) {
            rp_bc_puts(b, ", device_ids = ");
            rp_bc_attr(b, vhlo ? optional >> 1 : rp_bc_varint(b, c), depth + 1);
        }
        rp_bc_puts(b, ">");
    }
}

static void put_vhlo_attr(struct rp_bytecode *b, uint64_t code, struct rp_bc_cursor *c,
                          unsigned depth)
{
    switch (code) {
    case 1:
        put_attrs(b, c, depth);
        break;
    case 2:
        rp_bc_puts(b, rp_bc_varint(b, c) ? "true" : "false");
        break;
    case 5:
        rp_bc_putf(b, "%" PRIu64 " : i32", rp_bc_varint(b, c));
        break;
    case 6:
        put_dictionary(b, c, depth);
        break;
    case 8:
        put_number(b, c, true, depth);
        break;
    case 9:
        put_number(b, c, false, depth);
        break;
    case 10:
        put_alias(b, c);
        break;
    case 14:
        rp_bc_quoted(b, rp_bc_string(b, c));
        break;
    case 17:
        rp_bc_type(b, rp_bc_varint(b, c), depth + 1);
        break;
    case 18:
        rp_bc_puts(b, "#stablehlo.");
        put_list(b, c, "bounds<bounds");
        rp_bc_puts(b, ">");
        break;
    case 20:
        put_accuracy(b, c);
        break;
    case 21:
    case 22:
    case 23:
    case 24:
    case 25:
        put_mesh_attr(b, true, code - 21, c, depth);
        break;
    default:
        rp_bc_fail(b, c->at, "VHLO attribute code %" PRIu64 " is not known", code);
    }
}

/* "[b, 0, 1, f]" from the positions of its dimensions. */
static void put_labels(struct rp_bytecode *b, struct rp_bc_cursor *c, char first, char second)
{
    char label[64];
    int64_t one = rp_bc_signed(b, c), other = rp_bc_signed(b, c);
    size_t n = rp_bc_count(b, c);

    memset(label, 0, sizeof label);
    if (n + 2 < sizeof label && n < 10 && one >= 0 && other >= 0 && (size_t)one < n + 2 &&
        (size_t)other < n + 2) {
        label[one] = first;
        label[other] = second;
    }
    for (size_t i = 0; i < n && b->code == RP_OK; i++) {
        int64_t at = rp_bc_signed(b, c);

        if (at >= 0 && at < (int64_t)sizeof label)
            label[at] = (char)('0' + i % 10);
    }
    rp_bc_puts(b, "[");
    for (size_t i = 0; i < n + 2 && i < sizeof label; i++)
        rp_bc_putf(b, "%s%c", i ? ", " : "", label[i] ? label[i] : '?');
    rp_bc_puts(b, "]");
}

static void put_lists(struct rp_bytecode *b, struct rp_bc_cursor *c, const char *kind,
                      const char *const *names, const char *last)
{
    rp_bc_putf(b, "#stablehlo.%s<", kind);
    for (size_t i = 0; names[i] && b->code == RP_OK; i++) {
        rp_bc_puts(b, i ? ", " : "");
        put_list(b, c, names[i]);
    }
    if (last)
        rp_bc_putf(b, ", %s = %" PRId64, last, rp_bc_signed(b, c));
    rp_bc_puts(b, ">");
}

static bool skip_number(struct rp_bc_cursor *c, uint64_t *value)
{
    size_t n = 1, left = (size_t)(c->end - c->at);

    if (!left)
        return false;
    while (n < 9 && !(*c->at >> (n - 1) & 1))
        n++;
    if (left < n)
        return false;
    *value = 0;
    for (size_t i = 0; i < n && i < 8; i++)
        *value |= (uint64_t)c->at[n < 9 ? i : i + 1] << 8 * i;
    *value >>= n < 9 ? n : 0;
    c->at += n;
    return true;
}

/* Whether all there is are so many lists and a number: older versions have no batching dimensions,
   and the bytecode of the dialect itself has no version. */
static bool lists_fit(struct rp_bc_cursor c, size_t lists)
{
    uint64_t n, value;

    for (; lists; lists--) {
        if (!skip_number(&c, &n))
            return false;
        for (; n; n--)
            if (!skip_number(&c, &value))
                return false;
    }
    return skip_number(&c, &value) && c.at == c.end;
}

static void put_stablehlo_attr(struct rp_bytecode *b, uint64_t code, struct rp_bc_cursor *c,
                               unsigned depth)
{
    static const char *const dot[] = {"lhs_batching_dimensions", "rhs_batching_dimensions",
                                      "lhs_contracting_dimensions", "rhs_contracting_dimensions",
                                      NULL};
    static const char *const gather[] = {"offset_dims",           "collapsed_slice_dims",
                                         "operand_batching_dims", "start_indices_batching_dims",
                                         "start_index_map",       NULL};
    static const char *const scatter[] = {
        "update_window_dims",           "inserted_window_dims",
        "input_batching_dims",          "scatter_indices_batching_dims",
        "scatter_dims_to_operand_dims", NULL};
    static const char *const old_gather[] = {"offset_dims", "collapsed_slice_dims",
                                             "start_index_map", NULL};
    static const char *const old_scatter[] = {"update_window_dims", "inserted_window_dims",
                                              "scatter_dims_to_operand_dims", NULL};
    static const char *const bounds[] = {"bounds", NULL};
    bool old = !lists_fit(*c, 5) && lists_fit(*c, 3);

    switch (code) {
    case 1:
        rp_bc_putf(b, "#stablehlo.channel_handle<handle = %" PRId64, rp_bc_signed(b, c));
        rp_bc_putf(b, ", type = %" PRId64 ">", rp_bc_signed(b, c));
        break;
    case 4:
        rp_bc_puts(b, "#stablehlo.conv<");
        put_labels(b, c, 'b', 'f');
        rp_bc_puts(b, "x");
        put_labels(b, c, 'i', 'o');
        rp_bc_puts(b, "->");
        put_labels(b, c, 'b', 'f');
        rp_bc_puts(b, ">");
        break;
    case 5:
        put_lists(b, c, "dot", dot, NULL);
        break;
    case 7:
        put_lists(b, c, "gather", old ? old_gather : gather, "index_vector_dim");
        break;
    case 11:
        put_lists(b, c, "scatter", old ? old_scatter : scatter, "index_vector_dim");
        break;
    case 13:
        put_lists(b, c, "bounds", bounds, NULL);
        break;
    case 14:
        put_alias(b, c);
        break;
    case 15:
        for (int i = 0; i < 3; i++)
            rp_bc_varint(b, c);
        rp_bc_puts(b, "#stablehlo.dot_algorithm<>");
        break;
    case 17:
        put_accuracy(b, c);
        break;
    case 18:
        put_mesh_attr(b, false, 2, c, depth);
        break;
    case 19:
    case 20:
        put_mesh_attr(b, false, code - 19, c, depth);
        break;
    case 21:
    case 22:
        put_mesh_attr(b, false, code - 18, c, depth);
        break;
    default:
        rp_bc_fail(b, c->at, "StableHLO attribute code %" PRIu64 " is not known", code);
    }
}

/* ---- attributes of Shardy ---- */

static void put_joined(struct rp_bytecode *b, struct rp_bc_cursor *c, const char *open,
                       const char *close, unsigned depth)
{
    size_t n = rp_bc_count(b, c);

    rp_bc_puts(b, open);
    for (size_t i = 0; i < n && b->code == RP_OK; i++) {
        rp_bc_puts(b, i ? ", " : "");
        rp_bc_attr(b, rp_bc_varint(b, c), depth + 1);
    }
    rp_bc_puts(b, close);
}

/* "{"x", ?}p1" */
static void put_dim_sharding(struct rp_bytecode *b, struct rp_bc_cursor *c, unsigned depth)
{
    struct rp_bc_cursor look = *c;
    size_t n = rp_bc_count(b, &look);
    uint64_t priority;
    bool closed;

    put_joined(b, c, "{", "", depth);
    closed = rp_bc_byte(b, c);
    rp_bc_puts(b, closed ? "}" : n ? ", ?}" : "?}");
    priority = rp_bc_varint(b, c);
    if (priority & 1)
        rp_bc_putf(b, "p%" PRIu64, priority >> 1);
}

static void put_sharding(struct rp_bytecode *b, struct rp_bc_cursor *c, uint64_t code,
                         unsigned depth)
{
    struct rp_bc_cursor look;

    rp_bc_puts(b, "#sdy.sharding<");
    rp_bc_attr(b, rp_bc_varint(b, c), depth + 1);
    put_joined(b, c, ", [", "]", depth);
    look = *c;
    if (rp_bc_count(b, &look))
        put_joined(b, c, ", replicated={", "}", depth);
    else
        *c = look;
    if (code != 6)
        put_joined(b, c, ", unreduced={", "}", depth);
    rp_bc_puts(b, ">");
}

static void put_sdy_attr(struct rp_bytecode *b, uint64_t code, struct rp_bc_cursor *c,
                         unsigned depth)
{
    uint64_t optional;
    size_t n;

    switch (code) {
    case 0:
        put_joined(b, c, "#sdy<manual_axes{", "}>", depth);
        break;
    case 1:
        rp_bc_quoted(b, rp_bc_string(b, c));
        rp_bc_putf(b, "=%" PRId64, rp_bc_signed(b, c));
        break;
    case 2:
        put_joined(b, c, "#sdy.mesh<[", "]", depth);
        n = rp_bc_count(b, c);
        for (size_t i = 0; i < n && b->code == RP_OK; i++)
            rp_bc_putf(b, i ? ", %" PRId64 : ", device_ids=[%" PRId64, rp_bc_signed(b, c));
        rp_bc_puts(b, n ? "]>" : ">");
        break;
    case 3:
        rp_bc_putf(b, "(%" PRId64, rp_bc_signed(b, c));
        rp_bc_putf(b, ")%" PRId64, rp_bc_signed(b, c));
        break;
    case 4:
        rp_bc_quoted(b, rp_bc_string(b, c));
        optional = rp_bc_varint(b, c);
        if (optional & 1) {
            rp_bc_puts(b, ":");
            rp_bc_attr(b, optional >> 1, depth + 1);
        }
        break;
    case 5:
        put_dim_sharding(b, c, depth);
        break;
    case 6:
    case 15:
    case 17:
        put_sharding(b, c, code, depth);
        break;
    case 7:
    case 16:
        put_joined(b, c, "#sdy.sharding_per_value<[", "]>", depth);
        break;
    case 11:
    case 12:
        put_joined(b, c, "{", "}", depth);
        break;
    default: /* rules for the partitioner */
        rp_bc_puts(b, "#sdy.rule<>");
    }
}

static void put_builtin_attr(struct rp_bytecode *b, uint64_t code, struct rp_bc_cursor *c,
                             unsigned depth)
{
    switch (code) {
    case 0:
        put_attrs(b, c, depth);
        break;
    case 1:
        put_dictionary(b, c, depth);
        break;
    case 2:
    case 3:
        rp_bc_quoted(b, rp_bc_string(b, c));
        break;
    case 4:
    case 5:
        rp_bc_puts(b, "@");
        rp_bc_quoted(b, rp_bc_attr_string(b, rp_bc_varint(b, c)));
        break;
    case 6:
        rp_bc_type(b, rp_bc_varint(b, c), depth + 1);
        break;
    case 7:
        rp_bc_puts(b, "unit");
        break;
    case 8:
        put_number(b, c, false, depth);
        break;
    case 9:
        put_number(b, c, true, depth);
        break;
    case 19:
    case 20:
        rp_bc_puts(b, "dense<>");
        break;
    case 21:
        rp_bc_attr(b, rp_bc_varint(b, c), depth + 1);
        break;
    default:
        rp_bc_puts(b, "loc(unknown)"); /* places, and what later versions add */
    }
}

void rp_bc_attr(struct rp_bytecode *b, uint64_t index, unsigned depth)
{
    struct rp_bc_cursor c;
    struct data data;
    uint64_t code;
    enum dialect d;

    if (b->code != RP_OK)
        return;
    if (depth > MAX_DEPTH) {
        rp_bc_fail(b, b->begin, "attributes nested too deep");
        return;
    }
    if (attr_data(b, index, &data)) {
        put_data(b, &data, depth);
        return;
    }
    d = begin_entry(b, false, index, &c, &code);
    if (b->code != RP_OK)
        return;
    if (d == OTHER)
        put_asm(b, c);
    else if (d != BUILTIN && put_enumeration(b, d, code, &c))
        return;
    else if (d == VHLO)
        put_vhlo_attr(b, code, &c, depth);
    else if (d == STABLEHLO)
        put_stablehlo_attr(b, code, &c, depth);
    else if (d == SDY)
        put_sdy_attr(b, code, &c, depth);
    else if (d == BUILTIN)
        put_builtin_attr(b, code, &c, depth);
    else
        rp_bc_fail(b, c.at, "attribute code %" PRIu64 " is not known", code);
}

/* ---- places in the source ---- */

enum { LOC_CALL = 10, LOC_FILE, LOC_FUSED, LOC_FUSED_META, LOC_NAME, LOC_UNKNOWN, LOC_RANGE = 22 };

static void want_loc(struct rp_bytecode *b, uint64_t index)
{
    if (b->code != RP_OK || !entry_at(b, false, index))
        return;
    while (b->code == RP_OK && b->loc_used.n <= index)
        b->code = rp_vec_push(&b->loc_used, 0, b->err);
    if (b->code != RP_OK || b->loc_used.at[index])
        return;
    b->loc_used.at[index] = 1;
    b->code = rp_vec_push(&b->locs, (uint32_t)index, b->err);
}

void rp_bc_loc(struct rp_bytecode *b, uint64_t index)
{
    struct rp_bc_cursor c;
    uint64_t code;

    if (begin_entry(b, false, index, &c, &code) != BUILTIN || code == LOC_UNKNOWN ||
        code < LOC_CALL)
        return;
    want_loc(b, index);
    rp_bc_putf(b, " loc(#loc%" PRIu64 ")", index);
}

static void put_file_loc(struct rp_bytecode *b, struct rp_bc_cursor *c, bool range)
{
    struct rp_slice file = rp_bc_attr_string(b, rp_bc_varint(b, c));
    uint64_t n = range ? rp_bc_varint(b, c) : 2, line = n > 0 ? rp_bc_varint(b, c) : 0;

    rp_bc_puts(b, "loc(");
    rp_bc_quoted(b, file);
    rp_bc_putf(b, ":%" PRIu64 ":%" PRIu64 ")\n", line, n > 1 ? rp_bc_varint(b, c) : 0);
}

void rp_bc_locs(struct rp_bytecode *b)
{
    for (size_t i = 0; i < b->locs.n && b->code == RP_OK; i++) {
        struct rp_bc_cursor c;
        uint64_t code, inner;

        begin_entry(b, false, b->locs.at[i], &c, &code);
        rp_bc_putf(b, "#loc%u = ", b->locs.at[i]);
        if (code == LOC_FILE || code == LOC_RANGE) {
            put_file_loc(b, &c, code == LOC_RANGE);
        } else if (code == LOC_NAME) {
            rp_bc_puts(b, "loc(");
            rp_bc_quoted(b, rp_bc_attr_string(b, rp_bc_varint(b, &c)));
            inner = rp_bc_varint(b, &c);
            rp_bc_putf(b, "(#loc%" PRIu64 "))\n", inner);
            want_loc(b, inner);
        } else if (code == LOC_CALL) {
            inner = rp_bc_varint(b, &c);
            rp_bc_putf(b, "loc(callsite(#loc%" PRIu64, inner);
            want_loc(b, inner);
            inner = rp_bc_varint(b, &c);
            rp_bc_putf(b, " at #loc%" PRIu64 "))\n", inner);
            want_loc(b, inner);
        } else if ((code == LOC_FUSED || code == LOC_FUSED_META) && rp_bc_count(b, &c)) {
            inner = rp_bc_varint(b, &c);
            rp_bc_putf(b, "loc(fused[#loc%" PRIu64 "])\n", inner);
            want_loc(b, inner);
        } else {
            rp_bc_puts(b, "loc(unknown)\n");
        }
    }
}
