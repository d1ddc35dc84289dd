/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How lower_tf writes HLO: attributes of nodes, and instructions as lines of HLO text, the form our
 * own reader and XLA take. Every function appends to one text; nothing can fail but memory, which
 * the text remembers.
 */
#include "lower/inner.h"

#include "abi/proto/tensorflow.h"
#include "program/literal.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DEPTH 32

/* ---- attributes ---- */

struct rp_bytes lower_attr(const struct lower_node *node, const char *key)
{
    struct rp_proto_cursor c = rp_proto_cursor(node->message.at, node->message.n, 0, DEPTH), entry;
    struct rp_proto_item item, field;
    size_t n = strlen(key);

    while (rp_proto_next(&c, &item)) {
        struct rp_bytes name = {0}, value = {(const uint8_t *)"", 0};

        if (item.number != RP_TF_NODE_ATTR || item.wire != RP_WIRE_BYTES)
            continue;
        entry = rp_proto_enter(&c, &item);
        while (rp_proto_next(&entry, &field)) {
            if (field.wire == RP_WIRE_BYTES && field.number == RP_TF_ATTR_ENTRY_KEY)
                name = field.bytes;
            else if (field.wire == RP_WIRE_BYTES && field.number == RP_TF_ATTR_ENTRY_VALUE)
                value = field.bytes;
        }
        if (name.n == n && name.at && !memcmp(name.at, key, n))
            return value;
    }
    return (struct rp_bytes){NULL, 0};
}

/* The scalar in an AttrValue, by its field. */
static bool scalar_attr(const struct lower_node *node, const char *key, uint32_t number,
                        struct rp_proto_item *out)
{
    struct rp_bytes value = lower_attr(node, key);
    struct rp_proto_cursor c = rp_proto_cursor(value.at, value.n, 0, DEPTH);
    bool found = false;

    while (rp_proto_next(&c, out))
        if (out->number == number) {
            found = true;
            break;
        }
    return found;
}

int64_t lower_attr_int(const struct lower_node *node, const char *key, int64_t missing)
{
    struct rp_proto_item item;

    return scalar_attr(node, key, RP_TF_ATTR_I, &item) ? (int64_t)item.value : missing;
}

bool lower_attr_bool(const struct lower_node *node, const char *key)
{
    struct rp_proto_item item;

    return scalar_attr(node, key, RP_TF_ATTR_B, &item) && item.value;
}

float lower_attr_float(const struct lower_node *node, const char *key, float missing)
{
    struct rp_proto_item item;

    return scalar_attr(node, key, RP_TF_ATTR_F, &item) ? rp_proto_float(item.value) : missing;
}

unsigned lower_attr_elem(const struct lower_node *node, const char *key)
{
    struct rp_proto_item item;

    return scalar_attr(node, key, RP_TF_ATTR_TYPE, &item) ? rp_tf_elem_of(item.value)
                                                          : RP_ELEM_INVALID;
}

struct rp_bytes lower_attr_text(const struct lower_node *node, const char *key)
{
    struct rp_proto_item item;

    return scalar_attr(node, key, RP_TF_ATTR_S, &item) && item.wire == RP_WIRE_BYTES
               ? item.bytes
               : (struct rp_bytes){(const uint8_t *)"", 0};
}

struct rp_bytes lower_attr_tensor(const struct lower_node *node, const char *key)
{
    struct rp_proto_item item;

    return scalar_attr(node, key, RP_TF_ATTR_TENSOR, &item) && item.wire == RP_WIRE_BYTES
               ? item.bytes
               : (struct rp_bytes){(const uint8_t *)"", 0};
}

bool lower_attr_is(const struct lower_node *node, const char *key, const char *text)
{
    struct rp_bytes value = lower_attr_text(node, key);

    return value.n == strlen(text) && !memcmp(value.at, text, value.n);
}

struct rp_bytes lower_attr_nth_text(const struct lower_node *node, const char *key, size_t i)
{
    struct rp_proto_item item;
    struct rp_proto_cursor list;

    if (!scalar_attr(node, key, RP_TF_ATTR_LIST, &item) || item.wire != RP_WIRE_BYTES)
        return (struct rp_bytes){NULL, 0};
    list = rp_proto_cursor(item.bytes.at, item.bytes.n, 0, DEPTH);
    while (rp_proto_next(&list, &item))
        if (item.number == RP_TF_ATTR_LIST_S && item.wire == RP_WIRE_BYTES && i-- == 0)
            return item.bytes;
    return (struct rp_bytes){NULL, 0};
}

size_t lower_attr_ints(const struct lower_node *node, const char *key, int64_t *out, size_t cap)
{
    struct rp_proto_item item;
    struct rp_proto_cursor list, packed;
    uint64_t one;
    size_t n = 0;

    if (!scalar_attr(node, key, RP_TF_ATTR_LIST, &item) || item.wire != RP_WIRE_BYTES)
        return 0;
    list = rp_proto_cursor(item.bytes.at, item.bytes.n, 0, DEPTH);
    while (rp_proto_next(&list, &item)) {
        if (item.number != RP_TF_ATTR_LIST_I)
            continue;
        if (item.wire == RP_WIRE_VARINT && n < cap)
            out[n++] = (int64_t)item.value;
        if (item.wire != RP_WIRE_BYTES)
            continue;
        packed = rp_proto_enter(&list, &item);
        while (n < cap && rp_proto_packed_varint(&packed, &one))
            out[n++] = (int64_t)one;
    }
    return n;
}

/* ---- text ---- */

void lower_put(struct lower *l, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    rp_out_text(l->body, text);
}

int64_t lower_elements(const struct lower_value *v)
{
    int64_t n = 1;

    for (uint32_t i = 0; i < v->rank; i++)
        if (__builtin_mul_overflow(n, v->dims[i], &n))
            return INT64_MAX; /* the reader of the text refuses it */
    return n;
}

struct lower_value lower_like(struct lower *l, unsigned elem, const int64_t *dims, size_t rank)
{
    struct lower_value v = {.id = ++l->values, .elem = elem, .rank = (uint32_t)rank};

    if (rank)
        memcpy(v.dims, dims, rank * sizeof *dims);
    return v;
}

void lower_put_type(struct lower *l, const struct lower_value *v)
{
    lower_put(l, "%s[", rp_elem_name(v->elem));
    for (uint32_t i = 0; i < v->rank; i++)
        lower_put(l, "%s%" PRId64, i ? "," : "", v->dims[i]);
    lower_put(l, "]");
    for (uint32_t i = v->rank; i-- > 0;)
        lower_put(l, "%s%u%s", i + 1 == v->rank ? "{" : ",", i, i ? "" : "}");
}

void lower_begin(struct lower *l, const struct lower_value *out, const char *opcode)
{
    lower_put(l, "  %%v%u = ", out->id);
    lower_put_type(l, out);
    lower_put(l, " %s(", opcode);
}

void lower_put_ints(struct lower *l, const char *key, const int64_t *at, size_t n)
{
    lower_put(l, ", %s={", key);
    for (size_t i = 0; i < n; i++)
        lower_put(l, "%s%" PRId64, i ? "," : "", at[i]);
    lower_put(l, "}");
}

/* ---- instructions ---- */

struct lower_value lower_unary(struct lower *l, const char *opcode, const struct lower_value *a)
{
    struct lower_value v = lower_like(l, a->elem, a->dims, a->rank);

    lower_begin(l, &v, opcode);
    lower_put(l, "%%v%u)\n", a->id);
    return v;
}

struct lower_value lower_binary(struct lower *l, const char *opcode, const struct lower_value *a,
                                const struct lower_value *b)
{
    struct lower_value v = lower_like(l, a->elem, a->dims, a->rank);

    lower_begin(l, &v, opcode);
    lower_put(l, "%%v%u, %%v%u)\n", a->id, b->id);
    return v;
}

struct lower_value lower_compare(struct lower *l, const char *direction,
                                 const struct lower_value *a, const struct lower_value *b)
{
    struct lower_value v = lower_like(l, RP_ELEM_PRED, a->dims, a->rank);

    lower_begin(l, &v, "compare");
    lower_put(l, "%%v%u, %%v%u), direction=%s\n", a->id, b->id, direction);
    return v;
}

struct lower_value lower_select(struct lower *l, const struct lower_value *pred,
                                const struct lower_value *yes, const struct lower_value *no)
{
    struct lower_value v = lower_like(l, yes->elem, yes->dims, yes->rank);

    lower_begin(l, &v, "select");
    lower_put(l, "%%v%u, %%v%u, %%v%u)\n", pred->id, yes->id, no->id);
    return v;
}

static void put_number(struct lower *l, unsigned elem, double value)
{
    bool whole = elem == RP_ELEM_PRED || (elem >= RP_ELEM_S8 && elem <= RP_ELEM_U64) ||
                 elem == RP_ELEM_S4 || elem == RP_ELEM_U4;

    if (elem == RP_ELEM_PRED)
        lower_put(l, "%s", value != 0 ? "true" : "false");
    else if (whole)
        lower_put(l, "%" PRId64, (int64_t)value);
    else if (elem == RP_ELEM_C64 || elem == RP_ELEM_C128)
        lower_put(l, "(%.17g, 0)", value);
    else if (isinf(value))
        lower_put(l, "%s", value > 0 ? "inf" : "-inf");
    else
        lower_put(l, "%.17g", value);
}

struct lower_value lower_scalar(struct lower *l, unsigned elem, double value)
{
    struct lower_value v = lower_like(l, elem, NULL, 0);

    lower_begin(l, &v, "constant");
    put_number(l, elem, value);
    lower_put(l, ")\n");
    return v;
}

struct lower_value lower_spread(struct lower *l, const struct lower_value *a, const int64_t *map,
                                const int64_t *dims, size_t rank)
{
    struct lower_value v = lower_like(l, a->elem, dims, rank);

    lower_begin(l, &v, "broadcast");
    lower_put(l, "%%v%u)", a->id);
    lower_put_ints(l, "dimensions", map, a->rank);
    lower_put(l, "\n");
    return v;
}

struct lower_value lower_fill(struct lower *l, double value, const struct lower_value *like)
{
    struct lower_value scalar = lower_scalar(l, like->elem, value);

    return like->rank ? lower_spread(l, &scalar, NULL, like->dims, like->rank) : scalar;
}

struct lower_value lower_reshape(struct lower *l, const struct lower_value *a, const int64_t *dims,
                                 size_t rank)
{
    struct lower_value v;

    if (rank == a->rank && (!rank || !memcmp(dims, a->dims, rank * sizeof *dims)))
        return *a;
    v = lower_like(l, a->elem, dims, rank);
    v.ints = a->ints;
    v.nints = a->nints;
    lower_begin(l, &v, "reshape");
    lower_put(l, "%%v%u)\n", a->id);
    return v;
}

struct lower_value lower_convert(struct lower *l, const struct lower_value *a, unsigned elem)
{
    struct lower_value v, zero;

    if (elem == a->elem)
        return *a;
    if (elem == RP_ELEM_PRED) {
        zero = lower_fill(l, 0, a);
        return lower_compare(l, "NE", a, &zero);
    }
    v = lower_like(l, elem, a->dims, a->rank);
    if (elem == RP_ELEM_S32 || elem == RP_ELEM_S64) {
        v.ints = a->ints;
        v.nints = a->nints;
    }
    lower_begin(l, &v, "convert");
    lower_put(l, "%%v%u)\n", a->id);
    return v;
}

struct lower_value lower_conjugate(struct lower *l, const struct lower_value *a)
{
    unsigned part = a->elem == RP_ELEM_C64 ? RP_ELEM_F32 : RP_ELEM_F64;
    struct lower_value parts[2], v;

    if (a->elem != RP_ELEM_C64 && a->elem != RP_ELEM_C128)
        return *a;
    for (int i = 0; i < 2; i++) {
        parts[i] = lower_like(l, part, a->dims, a->rank);
        lower_begin(l, &parts[i], i ? "imag" : "real");
        lower_put(l, "%%v%u)\n", a->id);
    }
    parts[1] = lower_unary(l, "negate", &parts[1]);
    v = lower_like(l, a->elem, a->dims, a->rank);
    lower_begin(l, &v, "complex");
    lower_put(l, "%%v%u, %%v%u)\n", parts[0].id, parts[1].id);
    return v;
}

struct lower_value lower_permute(struct lower *l, const struct lower_value *a, const int64_t *perm)
{
    int64_t dims[RP_TF_RANK];
    struct lower_value v;

    for (uint32_t i = 0; i < a->rank; i++)
        dims[i] = a->dims[perm[i]];
    v = lower_like(l, a->elem, dims, a->rank);
    lower_begin(l, &v, "transpose");
    lower_put(l, "%%v%u)", a->id);
    lower_put_ints(l, "dimensions", perm, a->rank);
    lower_put(l, "\n");
    return v;
}

struct lower_value lower_broadcast(struct lower *l, const struct lower_value *a,
                                   const int64_t *dims, size_t rank)
{
    int64_t kept[RP_TF_RANK], map[RP_TF_RANK];
    struct lower_value plain;
    size_t shift = rank - a->rank, n = 0;

    if (rank == a->rank && (!rank || !memcmp(dims, a->dims, rank * sizeof *dims)))
        return *a;
    for (size_t i = 0; i < a->rank; i++) /* dimensions of one element are dropped, then spread */
        if (a->dims[i] == dims[i + shift]) {
            kept[n] = a->dims[i];
            map[n++] = (int64_t)(i + shift);
        }
    plain = lower_reshape(l, a, kept, n);
    return lower_spread(l, &plain, map, dims, rank);
}

bool lower_broadcast_both(struct lower *l, struct lower_value *a, struct lower_value *b)
{
    size_t rank = a->rank > b->rank ? a->rank : b->rank;
    int64_t dims[RP_TF_RANK];

    for (size_t i = 0; i < rank; i++) {
        int64_t x = i + a->rank >= rank ? a->dims[i + a->rank - rank] : 1;
        int64_t y = i + b->rank >= rank ? b->dims[i + b->rank - rank] : 1;

        if (x != y && x != 1 && y != 1)
            return false;
        dims[i] = x == 1 ? y : x;
    }
    *a = lower_broadcast(l, a, dims, rank);
    *b = lower_broadcast(l, b, dims, rank);
    return true;
}

/* Whether a computation of that name and type is new. */
static bool new_region(struct lower *l, const char *name, unsigned elem)
{
    uint64_t key = rp_hash_bytes(name, strlen(name)) ^ elem;

    for (size_t i = 0; i < l->region_keys.n; i++)
        if (l->region_keys.at[i] == key)
            return false;
    rp_vec_push(&l->region_keys, key, NULL); /* without memory it is written twice at worst */
    return true;
}

void lower_region_last(struct lower *l, unsigned elem)
{
    const char *type = rp_elem_name(elem);

    if (new_region(l, "last", elem))
        rp_out_printf(l->regions,
                      "%%last_%s (a: %s[], b: %s[]) -> %s[] {\n  %%a = %s[] parameter(0)\n  ROOT "
                      "%%b = %s[] parameter(1)\n}\n\n",
                      type, type, type, type, type, type);
}

void lower_region_ge(struct lower *l, unsigned elem)
{
    const char *type = rp_elem_name(elem);

    if (new_region(l, "ge", elem))
        rp_out_printf(
            l->regions,
            "%%ge_%s (a: %s[], b: %s[]) -> pred[] {\n  %%a = %s[] parameter(0)\n  %%b = "
            "%s[] parameter(1)\n  ROOT %%r = pred[] compare(%%a, %%b), direction=GE\n}\n\n",
            type, type, type, type, type);
}

void lower_region(struct lower *l, const char *opcode, unsigned elem)
{
    const char *type = rp_elem_name(elem);

    if (!new_region(l, opcode, elem))
        return;
    rp_out_printf(l->regions,
                  "%%%s_%s (a: %s[], b: %s[]) -> %s[] {\n  %%a = %s[] parameter(0)\n  %%b = %s[] "
                  "parameter(1)\n  ROOT %%r = %s[] %s(%%a, %%b)\n}\n\n",
                  opcode, type, type, type, type, type, type, type, opcode);
}

/* What changes nothing; the largest finite number would do it, infinity is what XLA uses. */
static double identity_of(const char *opcode, unsigned elem)
{
    bool whole = elem >= RP_ELEM_S8 && elem <= RP_ELEM_U64;
    double most[] = {
        [RP_ELEM_S8] = 127,           [RP_ELEM_S16] = 32767, [RP_ELEM_S32] = 2147483647,
        [RP_ELEM_S64] = 9.2e18,       [RP_ELEM_U8] = 255,    [RP_ELEM_U16] = 65535,
        [RP_ELEM_U32] = 4294967295.0, [RP_ELEM_U64] = 9.2e18};

    if (!strcmp(opcode, "multiply") || !strcmp(opcode, "and"))
        return 1;
    if (!strcmp(opcode, "maximum"))
        return !whole ? -(double)INFINITY : elem <= RP_ELEM_S64 ? -most[elem] - 1 : 0;
    if (!strcmp(opcode, "minimum"))
        return !whole ? (double)INFINITY : most[elem];
    return 0;
}

struct lower_value lower_reduce(struct lower *l, const char *opcode, const struct lower_value *a,
                                const bool *over)
{
    int64_t kept[RP_TF_RANK], gone[RP_TF_RANK];
    struct lower_value v, start;
    size_t nkept = 0, ngone = 0;

    for (uint32_t i = 0; i < a->rank; i++)
        if (over[i])
            gone[ngone++] = i;
        else
            kept[nkept++] = a->dims[i];
    if (!ngone)
        return *a;
    lower_region(l, opcode, a->elem);
    start = lower_scalar(l, a->elem, identity_of(opcode, a->elem));
    v = lower_like(l, a->elem, kept, nkept);
    lower_begin(l, &v, "reduce");
    lower_put(l, "%%v%u, %%v%u)", a->id, start.id);
    lower_put_ints(l, "dimensions", gone, ngone);
    lower_put(l, ", to_apply=%%%s_%s\n", opcode, rp_elem_name(a->elem));
    return v;
}

/* ---- refusals ---- */

static enum rp_code blame(struct lower *l, const struct lower_node *node, enum rp_code code,
                          const char *why)
{
    return rp_err_set(l->err, code, "operator '%.*s' of node '%.*s': %s",
                      (int)(node->op.n < 80 ? node->op.n : 80), (const char *)node->op.at,
                      (int)(node->name.n < 200 ? node->name.n : 200), (const char *)node->name.at,
                      why);
}

enum rp_code lower_refuse(struct lower *l, const struct lower_node *node, const char *why)
{
    return blame(l, node, RP_UNSUPPORTED, why);
}

enum rp_code lower_misfit(struct lower *l, const struct lower_node *node, const char *why)
{
    return blame(l, node, RP_FORMAT, why);
}

enum rp_code lower_need_ints(struct lower *l, const struct lower_node *node,
                             const struct lower_value *v, const char *what)
{
    char why[128];

    if (v->ints)
        return RP_OK;
    snprintf(why, sizeof why, "its %s must be a constant, but the graph computes it", what);
    return lower_refuse(l, node, why);
}

bool lower_axis(int64_t axis, size_t rank, size_t *out)
{
    if (axis < 0)
        axis += (int64_t)rank;
    *out = (size_t)axis;
    return axis >= 0 && axis < (int64_t)rank;
}
