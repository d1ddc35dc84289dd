/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that the operators share: they read attributes of TensorFlow nodes and make HLO
 * instructions, which are added to the innermost open computation of the program builder. Failures
 * (a shape that is too large, no memory) stick to the builder and are reported when the program is
 * finished.
 */
#include "lower/inner.h"
#include "program/opcodes.h"

#include "abi/proto/tensorflow.h"
#include "program/floats.h"
#include "program/literal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DEPTH 32

/* ---- attributes ---- */

struct rp_bytes rp_lower_attr(const struct rp_lower_node *node, const char *key)
{
    struct rp_proto_cursor c = rp_proto_cursor(node->message.at, node->message.n, 0, DEPTH);
    struct rp_proto_item item, field;
    size_t n = strlen(key);

    while (rp_proto_next(&c, &item)) {
        struct rp_bytes name = {0}, value = {(const uint8_t *)"", 0};

        if (item.number != RP_TF_NODE_ATTR || item.wire != RP_WIRE_BYTES)
            continue;
        struct rp_proto_cursor entry = rp_proto_enter(&c, &item);
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

/* Finds the field of an AttrValue with this number. */
static bool attr_field(const struct rp_lower_node *node, const char *key, uint32_t number,
                       struct rp_proto_item *out)
{
    struct rp_bytes value = rp_lower_attr(node, key);
    struct rp_proto_cursor c = rp_proto_cursor(value.at, value.n, 0, DEPTH);
    bool found = false;

    while (rp_proto_next(&c, out))
        if (out->number == number) {
            found = true;
            break;
        }
    return found;
}

int64_t rp_lower_attr_int(const struct rp_lower_node *node, const char *key, int64_t missing)
{
    struct rp_proto_item item;

    return attr_field(node, key, RP_TF_ATTR_I, &item) ? (int64_t)item.value : missing;
}

bool rp_lower_attr_bool(const struct rp_lower_node *node, const char *key)
{
    struct rp_proto_item item;

    return attr_field(node, key, RP_TF_ATTR_B, &item) && item.value;
}

float rp_lower_attr_float(const struct rp_lower_node *node, const char *key, float missing)
{
    struct rp_proto_item item;

    return attr_field(node, key, RP_TF_ATTR_F, &item) ? rp_proto_float(item.value) : missing;
}

unsigned rp_lower_attr_elem(const struct rp_lower_node *node, const char *key)
{
    struct rp_proto_item item;

    return attr_field(node, key, RP_TF_ATTR_TYPE, &item) ? rp_tf_elem_of(item.value)
                                                         : RP_ELEM_INVALID;
}

struct rp_bytes rp_lower_attr_text(const struct rp_lower_node *node, const char *key)
{
    struct rp_proto_item item;

    return attr_field(node, key, RP_TF_ATTR_S, &item) && item.wire == RP_WIRE_BYTES
               ? item.bytes
               : (struct rp_bytes){(const uint8_t *)"", 0};
}

struct rp_bytes rp_lower_attr_tensor(const struct rp_lower_node *node, const char *key)
{
    struct rp_proto_item item;

    return attr_field(node, key, RP_TF_ATTR_TENSOR, &item) && item.wire == RP_WIRE_BYTES
               ? item.bytes
               : (struct rp_bytes){(const uint8_t *)"", 0};
}

bool rp_lower_attr_is(const struct rp_lower_node *node, const char *key, const char *text)
{
    struct rp_bytes value = rp_lower_attr_text(node, key);

    return value.n == strlen(text) && !memcmp(value.at, text, value.n);
}

struct rp_bytes rp_lower_attr_nth_text(const struct rp_lower_node *node, const char *key, size_t i)
{
    struct rp_proto_item item;

    if (!attr_field(node, key, RP_TF_ATTR_LIST, &item) || item.wire != RP_WIRE_BYTES)
        return (struct rp_bytes){NULL, 0};
    struct rp_proto_cursor list = rp_proto_cursor(item.bytes.at, item.bytes.n, 0, DEPTH);
    while (rp_proto_next(&list, &item))
        if (item.number == RP_TF_ATTR_LIST_S && item.wire == RP_WIRE_BYTES && i-- == 0)
            return item.bytes;
    return (struct rp_bytes){NULL, 0};
}

size_t rp_lower_attr_ints(const struct rp_lower_node *node, const char *key, int64_t *out,
                          size_t cap)
{
    struct rp_proto_item item;
    uint64_t one;
    size_t n = 0;

    if (!attr_field(node, key, RP_TF_ATTR_LIST, &item) || item.wire != RP_WIRE_BYTES)
        return 0;
    struct rp_proto_cursor list = rp_proto_cursor(item.bytes.at, item.bytes.n, 0, DEPTH);
    while (rp_proto_next(&list, &item)) {
        if (item.number != RP_TF_ATTR_LIST_I)
            continue;
        struct rp_proto_cursor packed = rp_proto_list(&list, &item);
        while (n < cap && rp_proto_packed_varint(&packed, &one))
            out[n++] = (int64_t)one;
    }
    return n;
}

/* ---- building ---- */

int64_t rp_lower_elements(const struct rp_lower_value *v)
{
    int64_t n = 1;

    for (uint32_t i = 0; i < v->rank; i++)
        if (__builtin_mul_overflow(n, v->dims[i], &n))
            return INT64_MAX; /* the builder refuses such a shape */
    return n;
}

struct rp_lower_value rp_lower_like(struct rp_lower *l, unsigned elem, const int64_t *dims,
                                    size_t rank)
{
    struct rp_lower_value v = {.id = ++l->values, .elem = elem, .rank = (uint32_t)rank};

    if (rank)
        memcpy(v.dims, dims, rank * sizeof *dims);
    for (size_t i = 0; l->computed && i < l->computed->n; i++)
        if (l->computed->list[i].value == v.id)
            rp_lower_know_ints(l, &l->computed->list[i].of, SIZE_MAX, &v);
    return v;
}

#define OUTERMOST 1 /* the first that is opened */

uint32_t rp_lower_open(struct rp_lower *l)
{
    uint32_t outer = l->computation;

    rp_program_builder_open(&l->builder);
    l->computation = ++l->computations;
    return outer;
}

static uint32_t operation_of(const struct rp_lower *l, const struct rp_lower_value *v)
{
    return v->id < l->operations.n && l->operations.at[v->id].computation == l->computation
               ? l->operations.at[v->id].index
               : RP_NONE; /* which the builder refuses */
}

uint32_t rp_lower_close(struct rp_lower *l, const char *name, const struct rp_lower_value *root,
                        uint32_t outer)
{
    uint32_t id = rp_program_builder_close(&l->builder, name, operation_of(l, root));

    l->computation = outer;
    return id;
}

void rp_lower_discard(struct rp_lower *l, uint32_t outer)
{
    rp_program_builder_discard(&l->builder);
    l->computation = outer;
}

/* The operation with this index computes the value. */
static void define_value(struct rp_lower *l, const struct rp_lower_value *v, uint32_t index)
{
    while (l->operations.n <= v->id)
        if (rp_vec_push(&l->operations, (struct rp_lower_operation){0}, NULL) != RP_OK) {
            rp_program_builder_fail(&l->builder, RP_NOMEM, "out of memory while lowering a graph");
            return;
        }
    l->operations.at[v->id] = (struct rp_lower_operation){l->computation, index};
}

static uint32_t shape_of(struct rp_lower *l, const struct rp_lower_value *v)
{
    return rp_program_builder_array(&l->builder, v->elem, v->dims, v->rank);
}

static const char *value_name(const struct rp_lower_value *v, char name[16])
{
    if (v->id)
        snprintf(name, 16, "v%u", v->id);
    else
        strcpy(name, "root");
    return name;
}

static void add_operation(struct rp_lower *l, const struct rp_lower_value *v, enum rp_opcode opcode,
                          uint32_t shape, int64_t value)
{
    char name[16];

    define_value(l, v,
                 rp_program_builder_add(&l->builder, opcode, value_name(v, name), shape, value));
}

void rp_lower_begin(struct rp_lower *l, const struct rp_lower_value *out, enum rp_opcode opcode)
{
    add_operation(l, out, opcode, shape_of(l, out), 0);
}

void rp_lower_begin_tuple(struct rp_lower *l, const struct rp_lower_value *out,
                          enum rp_opcode opcode, const struct rp_lower_value *parts, size_t n)
{
    uint32_t *shapes = RP_ARENA_NEW(&l->arena, uint32_t, n + 1);

    for (size_t i = 0; shapes && i < n; i++)
        shapes[i] = shape_of(l, &parts[i]);
    if (shapes)
        add_operation(l, out, opcode, rp_program_builder_tuple(&l->builder, shapes, n), 0);
    else
        rp_program_builder_fail(&l->builder, RP_NOMEM, "out of memory while lowering a graph");
}

void rp_lower_operand(struct rp_lower *l, const struct rp_lower_value *v)
{
    rp_program_builder_operand(&l->builder, operation_of(l, v));
}

void rp_lower_calls(struct rp_lower *l, uint32_t computation)
{
    rp_program_builder_call(&l->builder, computation);
}

void rp_lower_set(struct rp_lower *l, struct rp_attr attr)
{
    rp_program_builder_attr(&l->builder, attr);
}

void rp_lower_set_int(struct rp_lower *l, uint32_t key, int64_t value)
{
    rp_lower_set(l, rp_attr_int(key, value));
}

void rp_lower_set_ints(struct rp_lower *l, uint32_t key, const int64_t *at, size_t n)
{
    rp_lower_set(l, rp_attr_ints(l->builder.program, key, at, n));
}

void rp_lower_set_padding(struct rp_lower *l, const int64_t *at, size_t rank)
{
    rp_lower_set(
        l, rp_attr_int_list(l->builder.program, RP_ATTR_PADDING, RP_VALUE_PADDING, at, 3 * rank));
}

struct rp_window rp_lower_window(size_t rank)
{
    struct rp_window window = {.n = rank};

    for (size_t i = 0; i < rank; i++)
        window.dim[i] = (struct rp_window_dim){1, 1, 0, 0, 1, 1, false};
    return window;
}

void rp_lower_set_window(struct rp_lower *l, const struct rp_window *window)
{
    rp_lower_set(l, rp_attr_of_window(l->builder.program, window));
}

/* ---- instructions ---- */

struct rp_lower_value rp_lower_parameter(struct rp_lower *l, unsigned elem, const int64_t *dims,
                                         size_t rank, size_t number)
{
    struct rp_lower_value v = rp_lower_like(l, elem, dims, rank);

    add_operation(l, &v, RP_OP_PARAMETER, shape_of(l, &v), (int64_t)number);
    return v;
}

void rp_lower_part(struct rp_lower *l, const struct rp_lower_value *out,
                   const struct rp_lower_value *tuple, size_t index)
{
    add_operation(l, out, RP_OP_GET_TUPLE_ELEMENT, shape_of(l, out), (int64_t)index);
    rp_lower_operand(l, tuple);
}

struct rp_lower_value rp_lower_unary(struct rp_lower *l, enum rp_opcode opcode,
                                     const struct rp_lower_value *a)
{
    struct rp_lower_value v = rp_lower_like(l, a->elem, a->dims, a->rank);

    rp_lower_begin(l, &v, opcode);
    rp_lower_operand(l, a);
    return v;
}

struct rp_lower_value rp_lower_binary(struct rp_lower *l, enum rp_opcode opcode,
                                      const struct rp_lower_value *a,
                                      const struct rp_lower_value *b)
{
    struct rp_lower_value v = rp_lower_like(l, a->elem, a->dims, a->rank);

    rp_lower_begin(l, &v, opcode);
    rp_lower_operand(l, a);
    rp_lower_operand(l, b);
    return v;
}

struct rp_lower_value rp_lower_compare(struct rp_lower *l, const char *direction,
                                       const struct rp_lower_value *a,
                                       const struct rp_lower_value *b)
{
    struct rp_lower_value v = rp_lower_like(l, RP_ELEM_PRED, a->dims, a->rank);

    rp_lower_begin(l, &v, RP_OP_COMPARE);
    rp_lower_operand(l, a);
    rp_lower_operand(l, b);
    rp_lower_set(l, rp_attr_word(RP_ATTR_DIRECTION, direction));
    return v;
}

struct rp_lower_value rp_lower_select(struct rp_lower *l, const struct rp_lower_value *pred,
                                      const struct rp_lower_value *yes,
                                      const struct rp_lower_value *no)
{
    struct rp_lower_value v = rp_lower_like(l, yes->elem, yes->dims, yes->rank);

    rp_lower_begin(l, &v, RP_OP_SELECT);
    rp_lower_operand(l, pred);
    rp_lower_operand(l, yes);
    rp_lower_operand(l, no);
    return v;
}

void rp_lower_literal(struct rp_lower *l, const struct rp_lower_value *out, const void *elements,
                      size_t bytes)
{
    char name[16];

    define_value(l, out,
                 rp_program_builder_constant(&l->builder, value_name(out, name), shape_of(l, out),
                                             elements, bytes));
}

/* Stores one element; `whole` is its value if the type is an integer. */
static void store_number(unsigned char *out, unsigned elem, double value, int64_t whole)
{
    size_t unit = rp_literal_unit(elem);
    unsigned part = elem == RP_ELEM_C64 ? RP_ELEM_F32 : RP_ELEM_F64;

    if (elem == RP_ELEM_PRED)
        *out = value != 0;
    else if (elem == RP_ELEM_C64 || elem == RP_ELEM_C128) /* the imaginary part remains 0 */
        rp_literal_store(out, unit / 2, rp_float_encode(part, value));
    else if (rp_elem_is_float(elem))
        rp_literal_store(out, unit, rp_float_encode(elem, value));
    else
        rp_literal_store(out, unit, (uint64_t)whole);
}

struct rp_lower_value rp_lower_scalar(struct rp_lower *l, unsigned elem, double value)
{
    struct rp_lower_value v = rp_lower_like(l, elem, NULL, 0);
    size_t unit = rp_literal_unit(elem);
    unsigned char *bytes = RP_ARENA_NEW(&l->builder.program->arena, unsigned char, unit + 1);

    if (!bytes)
        rp_program_builder_fail(&l->builder, RP_NOMEM, "out of memory while lowering a graph");
    else
        store_number(bytes, elem, value, fabs(value) < 0x1p63 ? (int64_t)value : 0);
    rp_lower_literal(l, &v, bytes, unit);
    return v;
}

void rp_lower_integers(struct rp_lower *l, const struct rp_lower_value *out, const int64_t *at,
                       size_t n)
{
    size_t unit = rp_literal_unit(out->elem);
    unsigned char *bytes = RP_ARENA_NEW(&l->builder.program->arena, unsigned char, n *unit + 1);

    if (!bytes)
        rp_program_builder_fail(&l->builder, RP_NOMEM, "out of memory while lowering a graph");
    for (size_t i = 0; bytes && i < n; i++)
        store_number(bytes + unit * i, out->elem, (double)at[i], at[i]);
    rp_lower_literal(l, out, bytes, n * unit);
}

struct rp_lower_value rp_lower_spread(struct rp_lower *l, const struct rp_lower_value *a,
                                      const int64_t *map, const int64_t *dims, size_t rank)
{
    struct rp_lower_value v = rp_lower_like(l, a->elem, dims, rank);

    rp_lower_begin(l, &v, RP_OP_BROADCAST);
    rp_lower_operand(l, a);
    rp_lower_set_ints(l, RP_ATTR_DIMENSIONS, map, a->rank);
    return v;
}

struct rp_lower_value rp_lower_fill(struct rp_lower *l, double value,
                                    const struct rp_lower_value *like)
{
    struct rp_lower_value scalar = rp_lower_scalar(l, like->elem, value);

    return like->rank ? rp_lower_spread(l, &scalar, NULL, like->dims, like->rank) : scalar;
}

struct rp_lower_value rp_lower_reshape(struct rp_lower *l, const struct rp_lower_value *a,
                                       const int64_t *dims, size_t rank)
{
    if (rank == a->rank && (!rank || !memcmp(dims, a->dims, rank * sizeof *dims)))
        return *a;
    struct rp_lower_value v = rp_lower_like(l, a->elem, dims, rank);
    v.ints = a->ints;
    v.nints = a->nints;
    rp_lower_begin(l, &v, RP_OP_RESHAPE);
    rp_lower_operand(l, a);
    return v;
}

struct rp_lower_value rp_lower_convert(struct rp_lower *l, const struct rp_lower_value *a,
                                       unsigned elem)
{
    if (elem == a->elem)
        return *a;
    if (elem == RP_ELEM_PRED) {
        struct rp_lower_value zero = rp_lower_fill(l, 0, a);
        return rp_lower_compare(l, "NE", a, &zero);
    }
    struct rp_lower_value v = rp_lower_like(l, elem, a->dims, a->rank);
    if (a->ints && (elem == RP_ELEM_S32 || elem == RP_ELEM_S64)) {
        v.ints = a->ints;
        v.nints = a->nints;
    }
    rp_lower_begin(l, &v, RP_OP_CONVERT);
    rp_lower_operand(l, a);
    return v;
}

struct rp_lower_value rp_lower_conjugate(struct rp_lower *l, const struct rp_lower_value *a)
{
    unsigned part = a->elem == RP_ELEM_C64 ? RP_ELEM_F32 : RP_ELEM_F64;
    struct rp_lower_value parts[2];

    if (a->elem != RP_ELEM_C64 && a->elem != RP_ELEM_C128)
        return *a;
    for (int i = 0; i < 2; i++) {
        parts[i] = rp_lower_like(l, part, a->dims, a->rank);
        rp_lower_begin(l, &parts[i], i ? RP_OP_IMAG : RP_OP_REAL);
        rp_lower_operand(l, a);
    }
    parts[1] = rp_lower_unary(l, RP_OP_NEGATE, &parts[1]);
    struct rp_lower_value v = rp_lower_like(l, a->elem, a->dims, a->rank);
    rp_lower_begin(l, &v, RP_OP_COMPLEX);
    rp_lower_operand(l, &parts[0]);
    rp_lower_operand(l, &parts[1]);
    return v;
}

struct rp_lower_value rp_lower_permute(struct rp_lower *l, const struct rp_lower_value *a,
                                       const int64_t *perm)
{
    int64_t dims[RP_TF_RANK];

    for (uint32_t i = 0; i < a->rank; i++)
        dims[i] = a->dims[perm[i]];
    struct rp_lower_value v = rp_lower_like(l, a->elem, dims, a->rank);
    rp_lower_begin(l, &v, RP_OP_TRANSPOSE);
    rp_lower_operand(l, a);
    rp_lower_set_ints(l, RP_ATTR_DIMENSIONS, perm, a->rank);
    return v;
}

struct rp_lower_value rp_lower_broadcast(struct rp_lower *l, const struct rp_lower_value *a,
                                         const int64_t *dims, size_t rank)
{
    int64_t kept[RP_TF_RANK], map[RP_TF_RANK];
    size_t shift = rank - a->rank, n = 0;

    if (rank == a->rank && (!rank || !memcmp(dims, a->dims, rank * sizeof *dims)))
        return *a;
    for (size_t i = 0; i < a->rank; i++) /* dimensions of one element are dropped and then spread */
        if (a->dims[i] == dims[i + shift]) {
            kept[n] = a->dims[i];
            map[n++] = (int64_t)(i + shift);
        }
    struct rp_lower_value plain = rp_lower_reshape(l, a, kept, n);
    return rp_lower_spread(l, &plain, map, dims, rank);
}

bool rp_lower_broadcast_both(struct rp_lower *l, struct rp_lower_value *a, struct rp_lower_value *b)
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
    *a = rp_lower_broadcast(l, a, dims, rank);
    *b = rp_lower_broadcast(l, b, dims, rank);
    return true;
}

/* ---- computations of reductions ---- */

/* Builds the computation %<name>_f32 of two scalars, once per type: an opcode over both, or without
   an opcode the second one of them. */
static uint32_t scalar_region(struct rp_lower *l, const char *prefix, enum rp_opcode opcode,
                              const char *direction, unsigned elem)
{
    struct rp_lower_region region = {.opcode = opcode, .elem = elem};
    char name[64];

    for (size_t i = 0; i < l->regions.n; i++)
        if (l->regions.at[i].opcode == opcode && l->regions.at[i].elem == elem)
            return l->regions.at[i].computation;
    uint32_t shape = rp_program_builder_array(&l->builder, elem, NULL, 0);
    rp_program_builder_open(&l->builder);
    rp_program_builder_add(&l->builder, RP_OP_PARAMETER, "a", shape, 0);
    uint32_t root = rp_program_builder_add(&l->builder, RP_OP_PARAMETER, "b", shape, 1);
    if (opcode != RP_LOWER_NO_OPCODE) {
        if (direction)
            shape = rp_program_builder_array(&l->builder, RP_ELEM_PRED, NULL, 0);
        root = rp_program_builder_add(&l->builder, opcode, "r", shape, 0);
        rp_program_builder_operand(&l->builder, 0);
        rp_program_builder_operand(&l->builder, 1);
    }
    if (direction)
        rp_lower_set(l, rp_attr_word(RP_ATTR_DIRECTION, direction));
    snprintf(name, sizeof name, "%s_%s", prefix, rp_elem_name(elem));
    region.computation = rp_program_builder_close(&l->builder, name, root);
    if (rp_vec_push(&l->regions, region, NULL) != RP_OK)
        rp_program_builder_fail(&l->builder, RP_NOMEM, "out of memory while lowering a graph");
    return region.computation;
}

uint32_t rp_lower_region(struct rp_lower *l, enum rp_opcode opcode, unsigned elem)
{
    return scalar_region(l, rp_op_info[opcode].name, opcode, NULL, elem);
}

uint32_t rp_lower_region_last(struct rp_lower *l, unsigned elem)
{
    return scalar_region(l, "last", RP_LOWER_NO_OPCODE, NULL, elem);
}

uint32_t rp_lower_region_ge(struct rp_lower *l, unsigned elem)
{
    return scalar_region(l, "ge", RP_OP_COMPARE, "GE", elem);
}

/* Returns the identity element of a reduction: for the maximum and minimum it is the end of the
   type's range, and infinity for floats, as in XLA. */
static struct rp_lower_value reduction_identity(struct rp_lower *l, enum rp_opcode opcode,
                                                unsigned elem)
{
    bool least = opcode == RP_OP_MAXIMUM, is_signed = elem >= RP_ELEM_S8 && elem <= RP_ELEM_S64;
    bool whole = is_signed || (elem >= RP_ELEM_U8 && elem <= RP_ELEM_U64);

    if (!least && opcode != RP_OP_MINIMUM)
        return rp_lower_scalar(l, elem, opcode == RP_OP_MULTIPLY || opcode == RP_OP_AND);
    if (!whole)
        return rp_lower_scalar(l, elem, least ? -(double)INFINITY : (double)INFINITY);
    int64_t end = is_signed ? INT64_MAX >> (64 - 8 * rp_literal_unit(elem)) : -1;
    end = least ? is_signed ? -end - 1 : 0 : end;
    struct rp_lower_value v = rp_lower_like(l, elem, NULL, 0);
    rp_lower_integers(l, &v, &end, 1);
    return v;
}

struct rp_lower_value rp_lower_reduce(struct rp_lower *l, enum rp_opcode opcode,
                                      const struct rp_lower_value *a, const bool *over)
{
    int64_t kept[RP_TF_RANK], gone[RP_TF_RANK];
    size_t nkept = 0, ngone = 0;

    for (uint32_t i = 0; i < a->rank; i++)
        if (over[i])
            gone[ngone++] = i;
        else
            kept[nkept++] = a->dims[i];
    if (!ngone)
        return *a;
    uint32_t region = rp_lower_region(l, opcode, a->elem);
    struct rp_lower_value start = reduction_identity(l, opcode, a->elem);
    struct rp_lower_value v = rp_lower_like(l, a->elem, kept, nkept);
    rp_lower_begin(l, &v, RP_OP_REDUCE);
    rp_lower_operand(l, a);
    rp_lower_operand(l, &start);
    rp_lower_set_ints(l, RP_ATTR_DIMENSIONS, gone, ngone);
    rp_lower_calls(l, region);
    return v;
}

/* ---- errors ---- */

static enum rp_code node_error(struct rp_lower *l, const struct rp_lower_node *node,
                               enum rp_code code, const char *why)
{
    return rp_err_set(l->err, code, "operator '%.*s' of node '%.*s': %s",
                      (int)(node->op.n < 80 ? node->op.n : 80), (const char *)node->op.at,
                      (int)(node->name.n < 200 ? node->name.n : 200), (const char *)node->name.at,
                      why);
}

enum rp_code rp_lower_refuse(struct rp_lower *l, const struct rp_lower_node *node, const char *why)
{
    return node_error(l, node, RP_UNSUPPORTED, why);
}

enum rp_code rp_lower_misfit(struct rp_lower *l, const struct rp_lower_node *node, const char *why)
{
    return node_error(l, node, RP_FORMAT, why);
}

enum rp_code rp_lower_need_ints(struct rp_lower *l, const struct rp_lower_node *node,
                                const struct rp_lower_value *v, const char *what)
{
    char why[128];

    if (v->ints)
        return RP_OK;
    if (l->computed && l->computed->n < RP_LOWER_COMPUTED && !v->guard &&
        (v->elem == RP_ELEM_S32 || v->elem == RP_ELEM_S64 || v->elem == RP_ELEM_PRED) &&
        v->id < l->operations.n && l->operations.at[v->id].computation == OUTERMOST &&
        l->computation == OUTERMOST) {
        l->computed->wanted = v->id;
        l->wanted = *v;
    }
    snprintf(why, sizeof why, "its %s must be a constant, but the graph computes it", what);
    return rp_lower_refuse(l, node, why);
}

bool rp_lower_axis(int64_t axis, size_t rank, size_t *out)
{
    if (axis < 0)
        axis += (int64_t)rank;
    *out = (size_t)axis;
    return axis >= 0 && axis < (int64_t)rank;
}
