/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TESTS_MUTATE_H
#define RP_TESTS_MUTATE_H
/*
 * Changes of a parsed program that leave it well formed and make it ill-typed: what a declared
 * shape, an attribute or an operand is. Used by the fuzzer of the engines and by unit tests.
 */
#include "program/opcodes.h"
#include "program/structure.h"

#include <string.h>

enum {
    MUTATE_ELEM,  /* element type of the result, or of a part of it */
    MUTATE_DIM,   /* one size of it */
    MUTATE_RANK,  /* one dimension fewer or more */
    MUTATE_INT,   /* one number of an attribute */
    MUTATE_SHAPE, /* the shape of another operation */
    MUTATE_SWEPT, /* the ones above end loops as before */
    MUTATE_OPERAND = MUTATE_SWEPT,
    MUTATE_VALUE, /* number of a parameter, index of a tuple */
    MUTATE_KINDS
};

struct mutation {
    uint8_t kind, which, value;
};

static inline uint32_t mutated_array(struct rp_program *p, uint32_t id, struct mutation m)
{
    static const uint8_t elems[] = {RP_ELEM_S8,  RP_ELEM_F64,  RP_ELEM_BF16, RP_ELEM_S32,
                                    RP_ELEM_C64, RP_ELEM_PRED, RP_ELEM_U64,  RP_ELEM_F32,
                                    RP_ELEM_S4,  RP_ELEM_C128, RP_ELEM_TOKEN};
    static const int64_t sizes[] = {0, 1, 2, 9, 3, 5, 4, 6, 7, 33};
    struct rp_op_shape s = p->shapes.at[id];
    int64_t dims[40] = {0};
    uint8_t dynamic[40] = {0};
    uint32_t n = s.n < 32 ? s.n : 32, made = id;

    if (n) {
        memcpy(dims, p->dims.at + s.first, n * sizeof *dims);
        memcpy(dynamic, p->dim_dynamic.at + s.first, n);
    }
    if (m.kind == MUTATE_ELEM)
        s.elem = elems[m.value % sizeof elems];
    else if (m.kind == MUTATE_DIM && n)
        dims[m.which % n] = sizes[m.value % 10];
    else if (m.kind == MUTATE_RANK && m.value % 2 && n)
        n--;
    else if (m.kind == MUTATE_RANK)
        dims[n++] = m.which + 1;
    if (m.kind == MUTATE_DIM && n && m.value >= 128)
        dynamic[m.which % n] = 1;
    return rp_program_array(p, s.elem, dims, dynamic, s.elem == RP_ELEM_TOKEN ? 0 : n, 0, &made,
                            NULL) == RP_OK
               ? made
               : id;
}

/* Of a tuple one part is changed. */
static inline uint32_t mutated_shape(struct rp_program *p, uint32_t id, struct mutation m)
{
    struct rp_op_shape s = p->shapes.at[id];
    uint32_t parts[16], made = id;

    if (s.elem != RP_ELEM_TUPLE)
        return s.elem == RP_ELEM_INVALID ? id : mutated_array(p, id, m);
    if (!s.n || s.n > 16)
        return id;
    memcpy(parts, p->parts.at + s.first, s.n * sizeof *parts);
    parts[m.which % s.n] = mutated_shape(p, parts[m.which % s.n], m);
    return rp_program_tuple(p, parts, s.n, &made, NULL) == RP_OK ? made : id;
}

/* The numbers that attributes are changed to: small ones, and from MUTATE_EXTREME on those that
   overflow. */
#define MUTATE_EXTREME 252

static inline int64_t mutated_number(uint8_t value)
{
    static const int64_t extreme[] = {INT64_C(1) << 33, INT64_MIN, INT64_MAX - 1, INT64_MAX};

    return value >= MUTATE_EXTREME ? extreme[value - MUTATE_EXTREME] : value % 9 - 1;
}

static inline void mutate_window(struct rp_program *p, struct rp_attr *attr, struct mutation m)
{
    struct rp_window_dim *d = rp_arena_calloc(&p->arena, attr->n, sizeof *d, 16);
    int64_t *fields[6];

    if (!d)
        return;
    memcpy(d, attr->window, attr->n * sizeof *d);
    attr->window = d;
    d += m.which % attr->n;
    fields[0] = &d->size;
    fields[1] = &d->stride;
    fields[2] = &d->pad_low;
    fields[3] = &d->pad_high;
    fields[4] = &d->base_dilation;
    fields[5] = &d->window_dilation;
    *fields[m.which / attr->n % 6] = mutated_number(m.value);
}

static inline void mutate_attr(struct rp_program *p, struct rp_attr *attr, struct mutation m)
{
    int64_t value = mutated_number(m.value), *list;

    switch (attr->type) {
    case RP_VALUE_INT:
        attr->number = value;
        break;
    case RP_VALUE_FLAG:
        attr->number = m.value % 2;
        break;
    case RP_VALUE_INTS:
    case RP_VALUE_PAIRS:
    case RP_VALUE_SLICES:
    case RP_VALUE_PADDING:
    case RP_VALUE_CONV_DIMS:
        list = attr->n ? rp_arena_calloc(&p->arena, attr->n, sizeof *list, 16) : NULL;
        if (!list)
            break;
        memcpy(list, attr->ints, attr->n * sizeof *list);
        list[m.which % attr->n] = value;
        attr->ints = list;
        if (attr->type == RP_VALUE_INTS && m.value % 16 == 15)
            attr->n--;
        break;
    case RP_VALUE_WINDOW:
        if (attr->n)
            mutate_window(p, attr, m);
        break;
    default:
        break;
    }
}

static inline void mutate_op(struct rp_program *p, uint32_t op, struct mutation m)
{
    const struct rp_computation *c = &p->computations.at[p->computation.at[op]];
    uint32_t nattrs = p->attr_begin.at[op + 1] - p->attr_begin.at[op];
    uint32_t nin = p->operand_begin.at[op + 1] - p->operand_begin.at[op];

    switch (m.kind) {
    case MUTATE_INT:
        if (nattrs)
            mutate_attr(p, &p->attrs.at[p->attr_begin.at[op] + m.which % nattrs], m);
        break;
    case MUTATE_SHAPE:
        p->shape.at[op] = p->shape.at[c->first + (m.which + m.value) % c->n];
        break;
    case MUTATE_OPERAND:
        if (nin)
            p->operands.at[p->operand_begin.at[op] + m.which % nin] = c->first + m.value % c->n;
        break;
    case MUTATE_VALUE:
        if (p->code.at[op] == RP_OP_GET_TUPLE_ELEMENT || p->code.at[op] == RP_OP_PARAMETER)
            p->value.at[op] = m.value % 5;
        break;
    default:
        p->shape.at[op] = mutated_shape(p, p->shape.at[op], m);
    }
}

#endif
