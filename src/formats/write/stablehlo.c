/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a program as StableHLO: MLIR text in the generic form, which every tool that knows the
 * dialect parses, with CHLO for the functions that StableHLO lacks.
 *
 *   HLO                              StableHLO
 *   ENTRY                            "func.func" main; other functions are what `call` calls
 *   tuples                           several values, operands, arguments, results
 *   fusion, async-start              what their computation computes, in their place
 *   reducers, loops, branches        regions
 *   copy, bitcast, domain, -done     the operand, transposed and reshaped where a layout says so
 *
 * An operation that has no form there is refused by its name. Layouts, schedules and aliases are
 * left out, because the compiler chooses them.
 */
#include "formats/write/stablehlo.h"
#include "formats/programs.h"
#include "formats/write/writers.h"
#include "io/escaped.h"
#include "program/literal.h"
#include "program/opcodes.h"
#include "program/order.h"
#include "program/structure.h"

#include <stdio.h>
#include <string.h>

#define MAX_DEPTH 48 /* depth of computations in computations; readers allow 64 regions */
#define MAX_RANK  64
/* The number of operations and values is limited, because code that is written in place may double
   with every call. */
#define MAX_WRITTEN(nops) ((1U << 18) + 256 * (uint64_t)(nops))

enum rp_code rp_shlo_refuse(const struct rp_shlo *w, uint32_t op, const char *why)
{
    return rp_err_set(w->err, RP_UNSUPPORTED, "%s '%s' cannot be written as StableHLO: %s",
                      rp_op_opcode_name(w->p, op), rp_program_text(w->p, w->p->op_name.at[op]),
                      why);
}

static enum rp_code count_written(struct rp_shlo *w, uint32_t n)
{
    w->written += n;
    if (w->written > MAX_WRITTEN(w->p->nops))
        return rp_err_set(w->err, RP_LIMIT,
                          "the program has %u operations, and more than %llu as StableHLO",
                          w->p->nops, (unsigned long long)MAX_WRITTEN(w->p->nops));
    return RP_OK;
}

/* ---- values ---- */

static void put_value(const struct rp_shlo *w, const struct rp_shlo_value *v)
{
    if (v->index == RP_NONE)
        rp_out_printf(w->to, "%%%u", v->name);
    else
        rp_out_printf(w->to, "%%%u#%u", v->name, v->index);
}

static enum rp_code push_value(struct rp_shlo *w, struct rp_shlo_value value)
{
    RP_TRY(count_written(w, 1));
    return rp_vec_push(&w->values, value, w->err);
}

/* Appends the arrays of a shape, as values that have names of their own or are the results of one
   operation. The depth is bounded by RP_SHAPE_DEPTH. */
static enum rp_code push_leaves(struct rp_shlo *w, uint32_t shape, bool own, uint32_t *index)
{
    const struct rp_op_shape *s = &w->p->shapes.at[shape];

    if (s->elem != RP_ELEM_TUPLE)
        return push_value(w, (struct rp_shlo_value){own ? w->names++ : w->names,
                                                    own ? RP_NONE : (*index)++, shape});
    for (uint32_t i = 0; i < s->n; i++)
        RP_TRY(push_leaves(w, w->p->parts.at[s->first + i], own, index));
    return RP_OK;
}

static const struct rp_shlo_value *values_of(const struct rp_shlo *w, uint32_t op)
{
    return w->values.at + w->first[op];
}

static bool is_start(uint16_t code)
{
    return code == RP_OP_ALL_GATHER_START || code == RP_OP_ALL_REDUCE_START ||
           code == RP_OP_COLLECTIVE_PERMUTE_START || code == RP_OP_COPY_START ||
           code == RP_OP_ASYNC_START || code == RP_OP_ASYNC_UPDATE;
}

static bool is_done(uint16_t code)
{
    return code == RP_OP_ALL_GATHER_DONE || code == RP_OP_ALL_REDUCE_DONE ||
           code == RP_OP_COLLECTIVE_PERMUTE_DONE || code == RP_OP_COPY_DONE ||
           code == RP_OP_ASYNC_DONE || code == RP_OP_ASYNC_UPDATE;
}

/* The shape of the result. The start of a collective computes its last part that is not a
   context. */
static enum rp_code result_shape(const struct rp_shlo *w, uint32_t op, uint32_t *shape)
{
    uint16_t code = w->p->code.at[op];

    *shape = w->p->shape.at[op];
    if (code != RP_OP_ALL_GATHER_START && code != RP_OP_COLLECTIVE_PERMUTE_START)
        return RP_OK;
    const struct rp_op_shape *s = &w->p->shapes.at[*shape];
    if (s->elem != RP_ELEM_TUPLE || s->n < 2)
        return rp_shlo_refuse(w, op, "its shape");
    *shape = w->p->parts.at[s->first + 1];
    return RP_OK;
}

/* Whether n values have the types of a shape's arrays. */
static bool fits(const struct rp_shlo *w, uint32_t shape, const struct rp_shlo_value **at,
                 uint32_t *n)
{
    const struct rp_op_shape *s = &w->p->shapes.at[shape];

    if (s->elem != RP_ELEM_TUPLE) {
        if (!*n || !rp_shlo_same_type(w->p, shape, (*at)->shape))
            return false;
        ++*at;
        --*n;
        return true;
    }
    for (uint32_t i = 0; i < s->n; i++)
        if (!fits(w, w->p->parts.at[s->first + i], at, n))
            return false;
    return true;
}

/* Checks that what was computed has the shape. */
static enum rp_code check_fits(struct rp_shlo *w, uint32_t op, uint32_t shape, uint32_t computed)
{
    const struct rp_shlo_value *at = values_of(w, computed);
    uint32_t n = w->count[computed];

    RP_TRY(count_written(w, n));
    return fits(w, shape, &at, &n) && !n ? RP_OK
                                         : rp_shlo_refuse(w, op, "shapes that do not agree");
}

static void be_value(struct rp_shlo *w, uint32_t op, uint32_t other)
{
    w->first[op] = w->first[other];
    w->count[op] = w->count[other];
}

/* Makes the value of an operation that of its operand. */
static enum rp_code be_operand(struct rp_shlo *w, uint32_t op)
{
    uint32_t operand = rp_op_operands(w->p, op).at[0];

    be_value(w, op, operand);
    return w->p->code.at[op] == RP_OP_COPY_START || w->p->code.at[op] == RP_OP_ASYNC_UPDATE
               ? RP_OK
               : check_fits(w, op, w->p->shape.at[op], operand);
}

static enum rp_code be_tuple(struct rp_shlo *w, uint32_t op)
{
    struct rp_ids operands = rp_op_operands(w->p, op);

    w->first[op] = (uint32_t)w->values.n;
    for (uint32_t i = 0; i < operands.n; i++)
        for (uint32_t k = 0; k < w->count[operands.at[i]]; k++)
            RP_TRY(push_value(w, w->values.at[w->first[operands.at[i]] + k]));
    w->count[op] = (uint32_t)w->values.n - w->first[op];
    return check_fits(w, op, w->p->shape.at[op], op);
}

static enum rp_code be_part(struct rp_shlo *w, uint32_t op)
{
    uint32_t operand = rp_op_operands(w->p, op).at[0], at = 0;
    const struct rp_op_shape *s = &w->p->shapes.at[w->p->shape.at[operand]];

    for (int64_t i = 0; i < w->p->value.at[op]; i++)
        at += rp_shlo_leaves(w->p, w->p->parts.at[s->first + i]);
    w->first[op] = w->first[operand] + at;
    w->count[op] = rp_shlo_leaves(w->p, w->p->shape.at[op]);
    if (at + w->count[op] > w->count[operand])
        return rp_shlo_refuse(w, op, "shapes that do not agree");
    return check_fits(w, op, w->p->shape.at[op], op);
}

/* ---- lines ---- */

static void put_indent(const struct rp_shlo *w)
{
    for (uint32_t i = 0; i < w->indent; i++)
        rp_out_text(w->to, "  ");
}

static void put_types(const struct rp_shlo *w, const struct rp_shlo_value *at, uint32_t n,
                      bool first)
{
    for (uint32_t i = 0; i < n; i++) {
        rp_out_text(w->to, first ? "" : ", ");
        rp_shlo_type(w, at[i].shape);
        first = false;
    }
}

static void put_result_types(const struct rp_shlo *w, const struct rp_shlo_value *at, uint32_t n)
{
    rp_out_text(w->to, n == 1 ? " -> " : " -> (");
    put_types(w, at, n, true);
    rp_out_text(w->to, n == 1 ? "" : ")");
}

/* Writes '%5:2 = "stablehlo.sort"', and adds its values. */
static enum rp_code begin_op(struct rp_shlo *w, uint32_t op, const char *name)
{
    uint32_t shape, index = 0;

    RP_TRY(result_shape(w, op, &shape));
    uint32_t n = rp_shlo_leaves(w->p, shape);
    w->first[op] = (uint32_t)w->values.n;
    w->count[op] = n;
    RP_TRY(count_written(w, 1));
    put_indent(w);
    if (n == 1)
        rp_out_printf(w->to, "%%%u = ", w->names);
    else if (n)
        rp_out_printf(w->to, "%%%u:%u = ", w->names, n);
    rp_out_printf(w->to, "\"%s\"", name);
    RP_TRY(push_leaves(w, shape, false, &index));
    if (n == 1)
        w->values.at[w->first[op]].index = RP_NONE;
    w->names += n != 0;
    return RP_OK;
}

/* "(%1, %2)", or their types. */
static void put_operands(const struct rp_shlo *w, struct rp_ids operands, bool types)
{
    bool first = true;

    rp_out_char(w->to, '(');
    for (uint32_t i = 0; i < operands.n; i++) {
        const struct rp_shlo_value *at = values_of(w, operands.at[i]);

        for (uint32_t k = 0; k < w->count[operands.at[i]]; k++, first = false) {
            rp_out_text(w->to, first ? "" : ", ");
            if (types)
                rp_shlo_type(w, at[k].shape);
            else
                put_value(w, &at[k]);
        }
    }
    rp_out_char(w->to, ')');
}

/* " : (types) -> types loc(#loc7)" */
static enum rp_code end_op(struct rp_shlo *w, uint32_t op, struct rp_ids operands)
{
    uint32_t meta = w->p->meta.at[op];

    RP_TRY(rp_shlo_more_attrs(w, op));
    rp_out_text(w->to, " : ");
    put_operands(w, operands, true);
    put_result_types(w, values_of(w, op), w->count[op]);
    if (meta) {
        w->located[meta] = 1;
        rp_out_printf(w->to, " loc(#loc%u)", 2 * meta + 1);
    }
    rp_out_char(w->to, '\n');
    return RP_OK;
}

/* '"stablehlo.return"(%1, %2) : (types) -> ()' */
static void put_return(const struct rp_shlo *w, const char *name, uint32_t root)
{
    struct rp_ids one = {&root, 1};

    put_indent(w);
    rp_out_printf(w->to, "\"%s\"", name);
    put_operands(w, one, false);
    rp_out_text(w->to, " : ");
    put_operands(w, one, true);
    rp_out_text(w->to, " -> ()\n");
}

/* ---- computations ---- */

static enum rp_code put_op(struct rp_shlo *w, uint32_t op);

static enum rp_code find_body(struct rp_shlo *w, uint32_t id)
{
    const struct rp_computation *c = &w->p->computations.at[id];
    struct rp_shlo_body *b = &w->body[id];

    if (b->order)
        return RP_OK;
    if (c->root < c->first || c->root - c->first >= c->n)
        return rp_err_set(w->err, RP_UNSUPPORTED,
                          "computation '%s' cannot be written as StableHLO: it has no result",
                          rp_program_text(w->p, c->name));
    b->params = RP_ARENA_NEW(&w->scratch, uint32_t, (size_t)c->nparams + 1);
    b->order = RP_ARENA_NEW(&w->scratch, uint32_t, (size_t)c->n + 1);
    RP_TRY(rp_err_need(b->params && b->order, w->err, "writing a computation"));
    for (uint32_t op = c->first; op < c->first + c->n; op++)
        if (w->p->code.at[op] == RP_OP_PARAMETER)
            b->params[w->p->value.at[op]] = op;
    return rp_computation_order(w->p, id, &w->scratch, b->order, w->err);
}

/* Enters a computation, of which nothing is computed yet. */
static enum rp_code enter(struct rp_shlo *w, uint32_t id)
{
    const struct rp_computation *c = &w->p->computations.at[id];

    if (++w->depth > MAX_DEPTH)
        return rp_err_set(w->err, RP_LIMIT, "computations nested more than %d deep", MAX_DEPTH);
    RP_TRY(find_body(w, id));
    for (uint32_t op = c->first; op < c->first + c->n; op++)
        w->first[op] = RP_NONE;
    return RP_OK;
}

static enum rp_code put_operations(struct rp_shlo *w, uint32_t id)
{
    const struct rp_computation *c = &w->p->computations.at[id];

    for (uint32_t i = 0; i < c->n; i++)
        RP_TRY(put_op(w, w->body[id].order[i]));
    w->depth--;
    return RP_OK;
}

/* Writes parameters as arguments of a block: "^bb0(%1: type, %2: type):" */
static enum rp_code put_arguments(struct rp_shlo *w, uint32_t id)
{
    uint32_t begin = (uint32_t)w->values.n, index = 0;

    for (uint32_t i = 0; i < w->p->computations.at[id].nparams; i++) {
        uint32_t param = w->body[id].params[i];

        if (!rp_shlo_has_type(w->p, w->p->shape.at[param]))
            return rp_shlo_refuse(w, param, "its type, or a dimension that is not fixed");
        w->first[param] = (uint32_t)w->values.n;
        RP_TRY(push_leaves(w, w->p->shape.at[param], true, &index));
        w->count[param] = (uint32_t)w->values.n - w->first[param];
    }
    if (begin == w->values.n)
        return RP_OK;
    w->indent--;
    put_indent(w);
    w->indent++;
    for (uint32_t i = begin; i < w->values.n; i++) {
        rp_out_text(w->to, i == begin ? "^bb0(" : ", ");
        put_value(w, &w->values.at[i]);
        rp_out_text(w->to, ": ");
        rp_shlo_type(w, w->values.at[i].shape);
    }
    rp_out_text(w->to, "):\n");
    return RP_OK;
}

/* Gives parameters the values of the operands. */
static enum rp_code bind_parameters(struct rp_shlo *w, uint32_t op, uint32_t id,
                                    struct rp_ids operands)
{
    if (operands.n != w->p->computations.at[id].nparams)
        return rp_shlo_refuse(w, op, "it calls a computation of other parameters");
    for (uint32_t i = 0; i < operands.n; i++) {
        uint32_t param = w->body[id].params[i];

        RP_TRY(check_fits(w, op, w->p->shape.at[param], operands.at[i]));
        be_value(w, param, operands.at[i]);
    }
    return RP_OK;
}

/* ", {" or "({" */
static void begin_region(struct rp_shlo *w, bool first)
{
    rp_out_text(w->to, first ? " ({\n" : ", {\n");
    w->indent++;
}

static void end_region(struct rp_shlo *w, bool last)
{
    w->indent--;
    put_indent(w);
    rp_out_text(w->to, last ? "})" : "}");
}

/* Writes a region with arguments of its own. */
static enum rp_code put_region(struct rp_shlo *w, uint32_t id, bool first, bool last)
{
    begin_region(w, first);
    RP_TRY(enter(w, id));
    RP_TRY(put_arguments(w, id));
    RP_TRY(put_operations(w, id));
    put_return(w, "stablehlo.return", w->p->computations.at[id].root);
    end_region(w, last);
    return RP_OK;
}

/* Writes what a computation computes from the operands in the place of the operation. */
static enum rp_code put_inline(struct rp_shlo *w, uint32_t op)
{
    struct rp_ids called = rp_op_called(w->p, op);

    if (called.n != 1)
        return rp_shlo_refuse(w, op, "it calls no computation");
    RP_TRY(enter(w, called.at[0]));
    RP_TRY(bind_parameters(w, op, called.at[0], rp_op_operands(w->p, op)));
    RP_TRY(put_operations(w, called.at[0]));
    uint32_t root = w->p->computations.at[called.at[0]].root;
    be_value(w, op, root);
    return w->p->code.at[op] == RP_OP_ASYNC_START ? RP_OK
                                                  : check_fits(w, op, w->p->shape.at[op], root);
}

/* ---- operations with a form of their own ---- */

static enum rp_code put_call(struct rp_shlo *w, uint32_t op)
{
    struct rp_ids called = rp_op_called(w->p, op), operands = rp_op_operands(w->p, op);

    if (called.n != 1)
        return rp_shlo_refuse(w, op, "it calls no computation");
    if (w->scalars)
        return put_inline(w, op);
    const struct rp_computation *c = &w->p->computations.at[called.at[0]];
    RP_TRY(find_body(w, called.at[0]));
    if (c->nparams != operands.n)
        return rp_shlo_refuse(w, op, "it calls a computation of other parameters");
    for (uint32_t i = 0; i < operands.n; i++)
        RP_TRY(check_fits(w, op, w->p->shape.at[w->body[called.at[0]].params[i]], operands.at[i]));
    RP_TRY(rp_shlo_need_function(w, called.at[0]));
    RP_TRY(begin_op(w, op, "func.call"));
    RP_TRY(check_fits(w, op, w->p->shape.at[c->root], op));
    put_operands(w, operands, false);
    rp_shlo_symbol(w, " <{callee = @", called.at[0]);
    rp_out_text(w->to, "}>");
    return end_op(w, op, operands);
}

static enum rp_code put_while(struct rp_shlo *w, uint32_t op)
{
    struct rp_ids called = rp_op_called(w->p, op), operands = rp_op_operands(w->p, op);

    if (called.n != 2)
        return rp_shlo_refuse(w, op, "it has no condition or no body");
    RP_TRY(begin_op(w, op, "stablehlo.while"));
    RP_TRY(check_fits(w, op, w->p->shape.at[op], operands.at[0]));
    put_operands(w, operands, false);
    for (uint32_t i = 0; i < 2; i++) {
        const struct rp_computation *c = &w->p->computations.at[called.at[1 - i]];

        RP_TRY(find_body(w, called.at[1 - i]));
        if (c->nparams != 1)
            return rp_shlo_refuse(w, op, "it calls a computation of other parameters");
        RP_TRY(
            check_fits(w, op, w->p->shape.at[w->body[called.at[1 - i]].params[0]], operands.at[0]));
        RP_TRY(put_region(w, called.at[1 - i], i == 0, i == 1));
        if (i == 1)
            RP_TRY(check_fits(w, op, w->p->shape.at[op], c->root));
    }
    return end_op(w, op, operands);
}

/* Regions of branches have no arguments and use the operands directly. */
static enum rp_code put_conditional(struct rp_shlo *w, uint32_t op)
{
    struct rp_ids called = rp_op_called(w->p, op), operands = rp_op_operands(w->p, op);
    struct rp_ids which = {operands.at, 1};
    const struct rp_op_shape *s = &w->p->shapes.at[w->p->shape.at[operands.at[0]]];
    bool two = s->elem == RP_ELEM_PRED;

    if (!called.n || operands.n != called.n + 1 || (two && called.n != 2) || s->n ||
        (!two && s->elem != RP_ELEM_S32))
        return rp_shlo_refuse(w, op, "its branches and operands");
    RP_TRY(begin_op(w, op, two ? "stablehlo.if" : "stablehlo.case"));
    put_operands(w, which, false);
    for (uint32_t i = 0; i < called.n; i++) {
        struct rp_ids given = {&operands.at[i + 1], 1};
        uint32_t root = w->p->computations.at[called.at[i]].root;

        begin_region(w, i == 0);
        RP_TRY(enter(w, called.at[i]));
        RP_TRY(bind_parameters(w, op, called.at[i], given));
        RP_TRY(put_operations(w, called.at[i]));
        RP_TRY(check_fits(w, op, w->p->shape.at[op], root));
        put_return(w, "stablehlo.return", root);
        end_region(w, i + 1 == called.n);
    }
    return end_op(w, op, which);
}

struct array { /* array: a value whose shape the program may not have */
    uint32_t name, index;
    unsigned elem;
    size_t n;
    int64_t dims[MAX_RANK];
};

/* Writes '%7 = "stablehlo.reshape"(%6) : (type) -> type'; order is that of a transposition, or
   NULL. */
static enum rp_code put_step(struct rp_shlo *w, const char *name, struct array *at,
                             const struct array *to, const int64_t *order)
{
    RP_TRY(count_written(w, 1));
    put_indent(w);
    rp_out_printf(w->to, "%%%u = \"stablehlo.%s\"(", w->names, name);
    put_value(w, &(struct rp_shlo_value){at->name, at->index, 0});
    rp_out_char(w->to, ')');
    w->listed = false;
    if (order) {
        rp_shlo_ints(w, "permutation", order, to->n);
        rp_out_text(w->to, "}>");
    }
    rp_out_text(w->to, " : (");
    rp_shlo_array_type(w, at->elem, at->dims, at->n);
    rp_out_text(w->to, ") -> ");
    rp_shlo_array_type(w, to->elem, to->dims, to->n);
    rp_out_char(w->to, '\n');
    *at = *to;
    at->name = w->names++;
    at->index = RP_NONE;
    return RP_OK;
}

/* Lists the dimensions in the order of memory, the slowest first, and their numbers; true if this
   is not their own order. */
static bool lay_out(const struct rp_program *p, uint32_t shape, struct array *out, int64_t *order)
{
    const struct rp_op_shape *s = &p->shapes.at[shape];
    uint32_t minor[MAX_RANK];
    bool given = rp_shape_minor_to_major(p, shape, minor, MAX_RANK), turned = false;

    out->elem = s->elem;
    out->n = s->n;
    for (uint32_t i = 0; i < s->n; i++) {
        order[i] = given ? minor[s->n - 1 - i] : i;
        out->dims[i] = p->dims.at[s->first + (size_t)order[i]];
        turned = turned || order[i] != i;
    }
    return turned;
}

static bool same_dims(const struct array *a, const struct array *b)
{
    return a->n == b->n && (!a->n || memcmp(a->dims, b->dims, a->n * sizeof *a->dims) == 0);
}

/* A bitcast keeps what is in memory: its elements, in the order of the new layout, are those of the
 * operand in the order of the old one. */
static enum rp_code put_bitcast(struct rp_shlo *w, uint32_t op)
{
    const struct rp_program *p = w->p;
    uint32_t operand = rp_op_operands(p, op).at[0], from = p->shape.at[operand],
             shape = p->shape.at[op];
    const struct rp_op_shape *s = &p->shapes.at[from], *t = &p->shapes.at[shape];
    struct array at = {.name = values_of(w, operand)->name, .index = values_of(w, operand)->index},
                 to;
    int64_t order[MAX_RANK], back[MAX_RANK];

    if (s->elem == RP_ELEM_TUPLE || t->elem == RP_ELEM_TUPLE || s->n > MAX_RANK ||
        t->n > MAX_RANK || rp_elem_bits(s->elem) != rp_elem_bits(t->elem) ||
        rp_shape_elements(p, from) != rp_shape_elements(p, shape) ||
        strstr(rp_program_text(p, s->layout), "T(") || strstr(rp_program_text(p, t->layout), "T("))
        return rp_shlo_refuse(w, op, "what it does to memory");
    at.elem = s->elem;
    at.n = s->n;
    for (uint32_t i = 0; i < s->n; i++)
        at.dims[i] = p->dims.at[s->first + i];
    if (lay_out(p, from, &to, order))
        RP_TRY(put_step(w, "transpose", &at, &to, order));
    lay_out(p, shape, &to, order);
    to.elem = s->elem;
    if (!same_dims(&at, &to))
        RP_TRY(put_step(w, "reshape", &at, &to, NULL));
    to.elem = t->elem;
    if (s->elem != t->elem)
        RP_TRY(put_step(w, "bitcast_convert", &at, &to, NULL));
    if (lay_out(p, shape, &to, order)) {
        for (uint32_t i = 0; i < t->n; i++) {
            back[order[i]] = i;
            to.dims[i] = p->dims.at[t->first + i];
        }
        RP_TRY(put_step(w, "transpose", &at, &to, back));
    }
    w->first[op] = (uint32_t)w->values.n;
    w->count[op] = 1;
    return push_value(w, (struct rp_shlo_value){at.name, at.index, shape});
}

/* StableHLO gives the shape of random numbers as an operand. */
static enum rp_code put_rng(struct rp_shlo *w, uint32_t op)
{
    struct rp_ids operands = rp_op_operands(w->p, op);
    const struct rp_op_shape *s = &w->p->shapes.at[w->p->shape.at[op]];
    uint32_t name = w->names++;

    if (operands.n != 2)
        return rp_shlo_refuse(w, op, "the number of its operands");
    put_indent(w);
    rp_out_printf(w->to, "%%%u = \"stablehlo.constant\"() <{value = dense<", name);
    for (uint32_t i = 0; i < s->n; i++)
        rp_out_printf(w->to, "%s%lld", i ? ", " : "[", (long long)w->p->dims.at[s->first + i]);
    rp_out_printf(w->to, "%s> : tensor<%uxi64>}> : () -> tensor<%uxi64>\n", s->n ? "]" : "", s->n,
                  s->n);
    RP_TRY(begin_op(w, op, rp_shlo_name(w, op)));
    rp_out_char(w->to, '(');
    for (uint32_t i = 0; i < 2; i++) {
        put_value(w, values_of(w, operands.at[i]));
        rp_out_text(w->to, ", ");
    }
    rp_out_printf(w->to, "%%%u)", name);
    RP_TRY(rp_shlo_attrs(w, op));
    rp_out_text(w->to, " : (");
    for (uint32_t i = 0; i < 2; i++) {
        rp_shlo_type(w, values_of(w, operands.at[i])->shape);
        rp_out_text(w->to, ", ");
    }
    rp_out_printf(w->to, "tensor<%uxi64>)", s->n);
    put_result_types(w, values_of(w, op), 1);
    rp_out_char(w->to, '\n');
    return RP_OK;
}

/* ---- all others ---- */

/* The number of regions of an operation. */
static uint32_t count_regions(uint16_t code)
{
    switch (code) {
    case RP_OP_REDUCE:
    case RP_OP_REDUCE_WINDOW:
    case RP_OP_REDUCE_SCATTER:
    case RP_OP_SCATTER:
    case RP_OP_SORT:
    case RP_OP_MAP:
    case RP_OP_ALL_REDUCE:
    case RP_OP_ALL_REDUCE_START:
        return 1;
    case RP_OP_SELECT_AND_SCATTER:
        return 2;
    default:
        return 0;
    }
}

/* Whether HLO has a form that StableHLO does not have under the same name. */
static bool has_other_form(const struct rp_program *p, uint32_t op)
{
    struct rp_ids operands = rp_op_operands(p, op);
    const struct rp_op_shape *s = &p->shapes.at[p->shape.at[op]];

    switch (p->code.at[op]) {
    case RP_OP_DOT: /* of sparse operands */
    case RP_OP_CONVOLUTION:
        return operands.n != 2;
    case RP_OP_DYNAMIC_SLICE: /* all indices are in one operand */
        return operands.n != 1 + s->n;
    case RP_OP_DYNAMIC_UPDATE_SLICE:
        return operands.n != 2 + s->n;
    case RP_OP_RNG_BIT_GENERATOR:
    case RP_OP_TOPK:
        return s->elem != RP_ELEM_TUPLE || s->leaves != 2;
    case RP_OP_REDUCE_SCATTER:
    case RP_OP_ALL_TO_ALL:
    case RP_OP_COLLECTIVE_PERMUTE:
    case RP_OP_COLLECTIVE_PERMUTE_START:
    case RP_OP_COLLECTIVE_BROADCAST:
        return operands.n != 1;
    default:
        return false;
    }
}

static enum rp_code put_named(struct rp_shlo *w, uint32_t op)
{
    uint16_t code = w->p->code.at[op];
    const char *name = rp_shlo_name(w, op);
    struct rp_ids operands = rp_op_operands(w->p, op), called = rp_op_called(w->p, op);
    uint32_t regions = count_regions(code);

    if (!name)
        return rp_shlo_refuse(w, op, "there is no such operation");
    if (has_other_form(w->p, op))
        return rp_shlo_refuse(w, op, "a form that it does not have");
    if (code != RP_OP_CUSTOM_CALL && called.n != regions)
        return rp_shlo_refuse(w, op, "the computations that it calls");
    RP_TRY(begin_op(w, op, name));
    put_operands(w, operands, false);
    RP_TRY(rp_shlo_attrs(w, op));
    w->scalars++;
    for (uint32_t i = 0; i < regions; i++)
        RP_TRY(put_region(w, called.at[i], i == 0, i + 1 == regions));
    w->scalars--;
    return end_op(w, op, operands);
}

static enum rp_code check_op(const struct rp_shlo *w, uint32_t op)
{
    struct rp_ids operands = rp_op_operands(w->p, op);
    uint16_t code = w->p->code.at[op];
    uint32_t shape;

    for (uint32_t i = 0; i < operands.n; i++) {
        if (w->first[operands.at[i]] == RP_NONE)
            return rp_shlo_refuse(w, op, "it needs its own result");
        if (is_start(w->p->code.at[operands.at[i]]) && !is_done(code))
            return rp_shlo_refuse(w, op, "it uses what is not done");
    }
    if (code == RP_OP_COPY_START || code == RP_OP_ASYNC_START || code == RP_OP_ASYNC_UPDATE)
        return RP_OK; /* their shapes have contexts, which are not written */
    RP_TRY(result_shape(w, op, &shape));
    return rp_shlo_has_type(w->p, shape)
               ? RP_OK
               : rp_shlo_refuse(w, op, "its type, or a dimension that is not fixed");
}

static enum rp_code put_op(struct rp_shlo *w, uint32_t op)
{
    uint16_t code = w->p->code.at[op];

    if (code == RP_OP_PARAMETER)
        return RP_OK;
    RP_TRY(check_op(w, op));
    switch (code) {
    case RP_OP_TUPLE:
        return be_tuple(w, op);
    case RP_OP_GET_TUPLE_ELEMENT:
        return be_part(w, op);
    case RP_OP_COPY:
    case RP_OP_DOMAIN:
    case RP_OP_ADD_DEPENDENCY:
    case RP_OP_COPY_START:
    case RP_OP_COPY_DONE:
    case RP_OP_ASYNC_UPDATE:
    case RP_OP_ASYNC_DONE:
    case RP_OP_ALL_REDUCE_DONE:
    case RP_OP_ALL_GATHER_DONE:
    case RP_OP_COLLECTIVE_PERMUTE_DONE:
        return be_operand(w, op);
    case RP_OP_FUSION:
    case RP_OP_ASYNC_START:
        return put_inline(w, op);
    case RP_OP_CALL:
        return put_call(w, op);
    case RP_OP_WHILE:
        return put_while(w, op);
    case RP_OP_CONDITIONAL:
        return put_conditional(w, op);
    case RP_OP_BITCAST:
        return put_bitcast(w, op);
    case RP_OP_RNG:
        return rp_op_operands(w->p, op).n == 3 ? put_named(w, op) : put_rng(w, op);
    default:
        return put_named(w, op);
    }
}

/* ---- functions and the module ---- */

enum rp_code rp_shlo_need_function(struct rp_shlo *w, uint32_t computation)
{
    if (w->is_function[computation])
        return RP_OK;
    w->is_function[computation] = 1;
    return rp_vec_push(&w->functions, computation, w->err);
}

static void put_string(const struct rp_shlo *w, uint32_t string)
{
    rp_out_escaped_bytes(w->to, RP_IN_MLIR, rp_program_text(w->p, string),
                         rp_strtab_len(&w->p->strings, string));
}

void rp_shlo_symbol(const struct rp_shlo *w, const char *sign, uint32_t id)
{
    char own[128];
    size_t begin = 64;

    rp_out_text(w->to, sign);
    if (id == w->p->entry) {
        rp_out_text(w->to, "\"main\"");
    } else if (w->named[id]) {
        put_string(w, w->p->computations.at[id].name);
    } else {
        snprintf(own + begin, sizeof own - begin, "function_%u", id);
        while (begin &&
               rp_strtab_find(&w->p->strings, own + begin, strlen(own + begin)) != UINT32_MAX)
            own[--begin] = '_';
        rp_out_printf(w->to, "\"%s\"", own + begin);
    }
}

static enum rp_code put_function(struct rp_shlo *w, uint32_t id)
{
    const struct rp_computation *c = &w->p->computations.at[id];

    w->values.n = 0;
    RP_TRY(find_body(w, id));
    for (uint32_t i = 0; i < c->nparams; i++)
        if (!rp_shlo_has_type(w->p, w->p->shape.at[w->body[id].params[i]]))
            return rp_shlo_refuse(w, w->body[id].params[i],
                                  "its type, or a dimension that is not fixed");
    if (!rp_shlo_has_type(w->p, w->p->shape.at[c->root]))
        return rp_shlo_refuse(w, c->root, "its type, or a dimension that is not fixed");
    rp_out_text(w->to, "  \"func.func\"() <{function_type = ");

    /* The type of the function, for which values are made and dropped again. */
    uint32_t begin = (uint32_t)w->values.n, names_before = w->names, index = 0;
    for (uint32_t i = 0; i < c->nparams; i++)
        RP_TRY(push_leaves(w, w->p->shape.at[w->body[id].params[i]], true, &index));
    uint32_t nargs = (uint32_t)w->values.n - begin;
    RP_TRY(push_leaves(w, w->p->shape.at[c->root], true, &index));
    rp_out_char(w->to, '(');
    put_types(w, w->values.at + begin, nargs, true);
    rp_out_char(w->to, ')');
    put_result_types(w, w->values.at + begin + nargs, (uint32_t)w->values.n - begin - nargs);
    w->values.n = begin;
    w->names = names_before;
    if (id == w->p->entry) {
        RP_TRY(rp_shlo_placement(w, "arg_attrs", (struct rp_ids){w->body[id].params, c->nparams}));
        RP_TRY(rp_shlo_placement(w, "res_attrs", (struct rp_ids){&c->root, 1}));
    }
    rp_shlo_symbol(w, ", sym_name = ", id);
    rp_out_printf(w->to, ", sym_visibility = \"%s\"}> ({\n",
                  id == w->p->entry ? "public" : "private");
    RP_TRY(enter(w, id));
    w->indent = 2;
    RP_TRY(put_arguments(w, id));
    RP_TRY(put_operations(w, id));
    put_return(w, "func.return", c->root);
    rp_out_text(w->to, "  }) : () -> ()\n");
    return RP_OK;
}

static enum rp_code put_module(struct rp_shlo *w)
{
    const struct rp_program *p = w->p;

    rp_out_text(w->to, "module @");
    if (p->name && rp_strtab_len(&p->strings, p->name))
        put_string(w, p->name);
    else
        rp_out_text(w->to, "module");
    rp_out_printf(w->to,
                  " attributes {mhlo.num_partitions = %lld : i32, mhlo.num_replicas = %lld : i32} "
                  "{\n",
                  (long long)rp_program_int(p, RP_ATTR_NUM_PARTITIONS, 1),
                  (long long)rp_program_int(p, RP_ATTR_REPLICA_COUNT, 1));
    RP_TRY(rp_shlo_need_function(w, p->entry));
    for (size_t i = 0; i < w->functions.n; i++)
        RP_TRY(put_function(w, w->functions.at[i]));
    rp_out_text(w->to, "}\n");
    for (uint32_t i = 1; i < p->metas.n; i++)
        if (w->located[i]) {
            /* The file and line, and the name of the operation. */
            const struct rp_op_meta *m = &w->p->metas.at[i];
            if (m->file) {
                rp_out_printf(w->to, "#loc%u = loc(", 2 * i);
                put_string(w, m->file);
                rp_out_printf(w->to, ":%d:%d)\n", m->line > 0 ? m->line : 0,
                              m->column > 0 ? m->column : 0);
            }
            rp_out_printf(w->to, "#loc%u = loc(", 2 * i + 1);
            if (m->op_name || !m->file)
                put_string(w, m->op_name);
            if (m->op_name && m->file)
                rp_out_printf(w->to, "(#loc%u)", 2 * i);
            else if (m->file)
                rp_out_printf(w->to, "#loc%u", 2 * i);
            rp_out_text(w->to, ")\n");
        }
    return RP_OK;
}

static enum rp_code print_program(struct rp_shlo *w)
{
    const struct rp_program *p = w->p;
    bool stablehlo = strcmp(p->language, "stablehlo") == 0;
    uint32_t *order;

    if ((strcmp(p->language, "hlo") != 0 && !stablehlo) || p->entry == RP_NONE)
        return rp_err_set(w->err, RP_UNSUPPORTED, "a program in %s cannot be written as StableHLO",
                          p->language);
    RP_TRY(rp_program_validate(p, w->err));
    RP_TRY(rp_program_call_order(p, &w->scratch, &order, w->err));
    w->first = RP_ARENA_NEW(&w->scratch, uint32_t, (size_t)p->nops + 1);
    w->count = RP_ARENA_NEW(&w->scratch, uint32_t, (size_t)p->nops + 1);
    w->body = RP_ARENA_NEW(&w->scratch, struct rp_shlo_body, p->computations.n + 1);
    w->is_function = RP_ARENA_NEW(&w->scratch, uint8_t, p->computations.n + 1);
    w->located = RP_ARENA_NEW(&w->scratch, uint8_t, p->metas.n + 1);
    RP_TRY(rp_err_need(w->first && w->count && w->body && w->is_function && w->located, w->err,
                       "writing a program"));
    memset(w->body, 0, (p->computations.n + 1) * sizeof *w->body);
    memset(w->is_function, 0, p->computations.n + 1);
    memset(w->located, 0, p->metas.n + 1);

    /* Decides which computations keep their names as functions: the first one of each name, but not
       main, which is the name of the entry. */
    uint8_t *taken = RP_ARENA_NEW(&w->scratch, uint8_t, (size_t)p->strings.n + 1);
    w->named = RP_ARENA_NEW(&w->scratch, uint8_t, p->computations.n + 1);
    RP_TRY(rp_err_need(taken && w->named, w->err, "writing a program"));
    memset(taken, 0, (size_t)p->strings.n + 1);
    taken[0] = 1;
    for (size_t i = 0; i < p->computations.n; i++) {
        uint32_t name = p->computations.at[i].name;
        w->named[i] = !taken[name] && strcmp(rp_program_text(p, name), "main") != 0;
        taken[name] = 1;
    }
    RP_TRY(rp_vec_reserve(&w->values, 1, w->err));
    return put_module(w);
}

static void shlo_release(struct rp_shlo *w)
{
    rp_vec_release(&w->values);
    rp_vec_release(&w->functions);
    rp_arena_release(&w->scratch);
}

enum rp_code rp_stablehlo_print(const struct rp_program *p, struct rp_out *to, struct rp_err *err)
{
    RP_SCOPED(shlo_release)
    struct rp_shlo w = {.p = p, .to = to, .err = err, .scratch = RP_ARENA_INIT};

    w.shardings = true;
    for (size_t i = 0; i < p->module_attrs.n; i++) /* compiled code is partitioned already */
        if (p->module_attrs.at[i].key == RP_ATTR_IS_SCHEDULED &&
            rp_attr_is(&p->module_attrs.at[i], "true"))
            w.shardings = false;
    return print_program(&w);
}

static enum rp_code write_stablehlo(const struct rp_program *program, const char *path,
                                    const struct rp_write_options *options, struct rp_err *err)
{
    struct rp_out *to;

    (void)options;
    RP_TRY(rp_out_open(path, &to, err));
    return rp_out_end(to, rp_stablehlo_print(program, to, err), err);
}

const struct rp_writer rp_writer_stablehlo = {
    .name = "stablehlo",
    .endings = {".mlir"},
    .summary = "StableHLO as MLIR text",
    .streams = true,
    .available = true,
    .write_program = write_stablehlo,
};
