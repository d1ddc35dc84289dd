/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program is walked from its entry, computation by computation, with the shapes of the
 * arguments and the values of those integers that are known. A computation that is called with
 * other shapes becomes another computation; one that was walked with the same is taken again, so
 * the cost is the operations times the different ways in which they are called. A value that a loop
 * carries is known in it where its body passes it on unchanged: so JAX passes sizes into loops.
 */
#include "program/refine.h"

#include "program/literal.h"
#include "program/opcodes.h"
#include "program/refine_frame.h"
#include "program/structure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REFINE_DEPTH 128     /* of calls in calls */
#define REFINE_OPS   4000000 /* most operations of the new program */
#define NAME_CAP     1024

struct rp_refine_instance {
    uint32_t computation, id; /* id: of the new program; RP_NONE: its result is known */
    const struct rp_refined *args;
    size_t nargs;
    struct rp_refined result;
};

/* ---- values ---- */

void rp_refine_dims(const struct rp_program *p, uint32_t shape, struct rp_infer_dims *out)
{
    const struct rp_op_shape *s = &p->shapes.at[shape];

    out->n = s->elem == RP_ELEM_TUPLE ? 0 : s->n < RP_INFER_RANK ? s->n : RP_INFER_RANK;
    if (out->n)
        memcpy(out->at, p->dims.at + s->first, out->n * sizeof *out->at);
}

enum rp_code rp_refine_array(struct rp_refine *c, unsigned elem, const struct rp_infer_dims *dims,
                             uint32_t *shape)
{
    for (size_t i = 0; i < dims->n; i++)
        if (dims->at[i] < 0)
            return rp_err_set(c->err, RP_FORMAT,
                              "inputs of these shapes give an array of negative size");
    return rp_program_array(c->b.program, elem, dims->at, NULL, dims->n, 0, shape, c->err);
}

enum rp_code rp_refine_fail(const struct rp_refine *c, uint32_t op, enum rp_code code,
                            const char *why)
{
    struct rp_source_line line;

    if (rp_op_source(c->p, op, &line))
        return rp_err_set(c->err, code, "'%s' (%s, %s:%d): %s",
                          rp_program_text(c->p, c->p->op_name.at[op]), rp_op_opcode_name(c->p, op),
                          line.file, line.line, why);
    return rp_err_set(c->err, code, "'%s' (%s): %s", rp_program_text(c->p, c->p->op_name.at[op]),
                      rp_op_opcode_name(c->p, op), why);
}

static bool is_unknown(const struct rp_program *p, uint32_t shape, unsigned depth)
{
    const struct rp_op_shape *s = &p->shapes.at[shape];

    if (s->elem != RP_ELEM_TUPLE) {
        for (uint32_t i = 0; i < s->n; i++)
            if (p->dims.at[s->first + i] == RP_DIM_UNKNOWN)
                return true;
        return false;
    }
    for (uint32_t i = 0; i < s->n && depth < RP_SHAPE_DEPTH; i++)
        if (is_unknown(p, p->parts.at[s->first + i], depth + 1))
            return true;
    return false;
}

bool rp_program_is_dynamic(const struct rp_program *p)
{
    for (uint32_t op = 0; op < p->nops; op++)
        if (is_unknown(p, p->shape.at[op], 0))
            return true;
    return false;
}

static bool is_equal_value(const struct rp_program *p, const struct rp_refined *a,
                           const struct rp_refined *b, unsigned depth)
{
    const struct rp_op_shape *s = &p->shapes.at[a->shape];

    if (a->shape != b->shape || !a->known != !b->known || depth == RP_SHAPE_DEPTH)
        return false;
    if (a->known)
        return memcmp(a->known, b->known,
                      (size_t)rp_shape_elements(p, a->shape) * sizeof *a->known) == 0;
    if (!a->parts || !b->parts)
        return a->parts == b->parts;
    for (uint32_t i = 0; i < s->n; i++)
        if (!is_equal_value(p, &a->parts[i], &b->parts[i], depth + 1))
            return false;
    return true;
}

/* What is known of a value somewhere else, where nothing of it has been added yet. */
static struct rp_refined elsewhere(const struct rp_refined *v)
{
    struct rp_refined out = *v;

    out.op = RP_NONE;
    out.source = v->known ? v->source : RP_NONE;
    return out;
}

/* ---- operations of the new program ---- */

static enum rp_code add_name(struct rp_refine *c, uint32_t op, uint32_t *name)
{
    char text[32];

    if (op != RP_NONE && *rp_program_text(c->p, c->p->op_name.at[op]) &&
        !(c->p->flags.at[op] & RP_OPS_IMPLICIT))
        return rp_copy_string(&c->copy, c->p->op_name.at[op], name);
    snprintf(text, sizeof text, "refined.%u", c->made++);
    return rp_program_string(c->b.program, text, strlen(text), name, c->err);
}

static enum rp_code add_new(struct rp_refine *c, uint32_t op, unsigned code, uint32_t shape,
                            uint32_t *id)
{
    struct rp_new_op made = {.code = (uint16_t)code, .shape = shape};
    const char *opcode =
        code == RP_OP_FOREIGN ? rp_op_opcode_name(c->p, op) : rp_op_info[code].name;

    if (c->b.program->nops > REFINE_OPS)
        return rp_err_set(c->err, RP_LIMIT,
                          "the program has more than %d operations once its "
                          "shapes are known",
                          REFINE_OPS);
    RP_TRY(add_name(c, op, &made.name));
    RP_TRY(rp_program_string(c->b.program, opcode, strlen(opcode), &made.foreign, c->err));
    if (op != RP_NONE)
        RP_TRY(rp_copy_meta(&c->copy, op, &made.meta));
    if (op != RP_NONE &&
        (code == RP_OP_PARAMETER || code == RP_OP_GET_TUPLE_ELEMENT || code == RP_OP_CONSTANT))
        made.value = c->p->value.at[op];
    if (op != RP_NONE && code == RP_OP_CONSTANT)
        RP_TRY(rp_copy_literal(&c->copy, &made.value));
    *id = rp_program_builder_op(&c->b, &made);
    return RP_OK;
}

static enum rp_code value_op(struct rp_refine *c, struct rp_refined *v)
{
    if (v->op != RP_NONE)
        return RP_OK;
    if (v->source != RP_NONE)
        return add_new(c, v->source, RP_OP_CONSTANT, v->shape, &v->op);
    if (v->known) {
        /* A constant of the elements that are known. */
        unsigned elem = c->b.program->shapes.at[v->shape].elem;
        size_t n = (size_t)rp_shape_elements(c->b.program, v->shape), unit = rp_literal_unit(elem);
        unsigned char *raw = rp_arena_alloc(&c->b.program->arena, n * unit + 1, 8);
        char name[32];

        RP_TRY(rp_err_need(raw, c->err, "refining shapes"));
        for (size_t i = 0; i < n; i++)
            rp_literal_store(raw + i * unit, unit, (uint64_t)v->known[i]);
        snprintf(name, sizeof name, "refined.%u", c->made++);
        v->op = rp_program_builder_constant(&c->b, name, v->shape, raw, n * unit);
        return RP_OK;
    }
    return rp_err_set(c->err, RP_BUG, "a value of the refined program was not added");
}

static enum rp_code add_attrs(struct rp_refine *c, const struct rp_refine_op *r)
{
    uint32_t n;
    const struct rp_attr *attrs = rp_op_attrs(c->p, r->op, &n);

    for (uint32_t i = 0; i < n; i++) {
        struct rp_attr attr = attrs[i];
        bool kept = !r->left_out || attr.key != r->left_out;

        for (size_t k = 0; k < r->nset; k++)
            kept = kept && r->set[k].key != attr.key;
        if (!kept)
            continue;
        RP_TRY(rp_copy_attr(&c->copy, &attr, &kept));
        if (kept)
            rp_program_builder_attr(&c->b, attr);
    }
    for (size_t k = 0; k < r->nset; k++)
        rp_program_builder_attr(&c->b, r->set[k]);
    return RP_OK;
}

enum rp_code rp_refine_emit(struct rp_refine_frame *f, const struct rp_refine_op *r, size_t n,
                            uint32_t shape, const uint32_t *called, size_t ncalled,
                            struct rp_refined *value)
{
    struct rp_refine *c = f->c;

    for (size_t i = 0; i < n; i++)
        RP_TRY(value_op(c, r->operands[i]));
    value->shape = shape;
    RP_TRY(add_new(c, r->op, r->code, shape, &value->op));
    for (size_t i = 0; i < n; i++)
        rp_program_builder_operand(&c->b, r->operands[i]->op);
    for (size_t i = 0; i < ncalled; i++)
        rp_program_builder_call(&c->b, called[i]);
    return add_attrs(c, r);
}

enum rp_code rp_refine_step(struct rp_refine_frame *f, unsigned code, uint32_t shape,
                            struct rp_refined *operand, const struct rp_attr *attr,
                            struct rp_refined *value)
{
    RP_TRY(value_op(f->c, operand));
    *value = (struct rp_refined){.shape = shape, .source = RP_NONE};
    RP_TRY(add_new(f->c, RP_NONE, code, shape, &value->op));
    rp_program_builder_operand(&f->c->b, operand->op);
    if (attr)
        rp_program_builder_attr(&f->c->b, *attr);
    return RP_OK;
}

/* ---- shapes of results ---- */

/* An array of the old program: what it says of its sizes, and what follows from the operands. */
static enum rp_code array_shape(struct rp_refine *c, const struct rp_refine_op *r, uint32_t shape,
                                size_t part, uint32_t *out)
{
    struct rp_infer_op of = {c->p, r->op, r->code, r->set, r->nset, r->dims, r->n};
    struct rp_infer_dims dims, found;

    if (!is_unknown(c->p, shape, 0))
        return rp_copy_shape(&c->copy, shape, out);
    rp_refine_dims(c->p, shape, &dims);
    if (!rp_infer(&of, part, &found) || found.n != dims.n)
        return rp_refine_fail(c, r->op, RP_UNSUPPORTED,
                              "its shape does not follow from the shapes of its operands");
    for (size_t i = 0; i < dims.n; i++)
        if (dims.at[i] != RP_DIM_UNKNOWN && dims.at[i] != found.at[i])
            return rp_refine_fail(c, r->op, RP_FORMAT,
                                  "inputs of these shapes do not fit the program");
    return rp_refine_array(c, c->p->shapes.at[shape].elem, &found, out);
}

static enum rp_code result_shape(struct rp_refine *c, const struct rp_refine_op *r, uint32_t *out)
{
    uint32_t shape = c->p->shape.at[r->op];
    const struct rp_op_shape *s = &c->p->shapes.at[shape];

    if (s->elem != RP_ELEM_TUPLE || !is_unknown(c->p, shape, 0))
        return array_shape(c, r, shape, 0, out);
    uint32_t *parts = RP_ARENA_NEW(&c->scratch, uint32_t, (size_t)s->n + 1);
    RP_TRY(rp_err_need(parts, c->err, "refining shapes"));
    for (uint32_t i = 0; i < s->n; i++)
        RP_TRY(array_shape(c, r, c->p->parts.at[s->first + i], i, &parts[i]));
    return rp_program_tuple(c->b.program, parts, s->n, out, c->err);
}

/* ---- calls ---- */

static enum rp_code refine_computation(struct rp_refine *c, uint32_t computation,
                                       const struct rp_refined *args, size_t nargs, bool needed,
                                       struct rp_refine_instance *out);

static enum rp_code copy_args(struct rp_refine *c, const struct rp_refine_op *r, size_t first,
                              size_t n, struct rp_refined **args)
{
    *args = RP_ARENA_NEW(&c->scratch, struct rp_refined, n + 1);
    RP_TRY(rp_err_need(*args, c->err, "refining shapes"));
    for (size_t i = 0; i < n; i++)
        (*args)[i] = elsewhere(r->operands[first + i]);
    return RP_OK;
}

static enum rp_code refine_call(struct rp_refine_frame *f, const struct rp_refine_op *r,
                                struct rp_refined *value)
{
    struct rp_refine *c = f->c;
    struct rp_ids called = rp_op_called(c->p, r->op);
    struct rp_refine_instance made;
    struct rp_refined *args;

    if (called.n != 1)
        return rp_refine_fail(c, r->op, RP_FORMAT, "it calls nothing");
    RP_TRY(copy_args(c, r, 0, r->n, &args));
    RP_TRY(refine_computation(c, called.at[0], args, r->n, false, &made));
    *value = elsewhere(&made.result);
    value->source = RP_NONE;
    return made.id == RP_NONE ? RP_OK
                              : rp_refine_emit(f, r, r->n, made.result.shape, &made.id, 1, value);
}

/* Whether the body of a loop gives back the part i of its argument unchanged. */
static bool is_passed_on(const struct rp_program *p, uint32_t body, uint32_t i, unsigned depth)
{
    uint32_t root = p->computations.at[body].root;

    if (root == RP_NONE || p->code.at[root] != RP_OP_TUPLE)
        return root != RP_NONE && p->code.at[root] == RP_OP_PARAMETER;
    struct rp_ids parts = rp_op_operands(p, root);
    if (i >= parts.n || p->code.at[parts.at[i]] != RP_OP_GET_TUPLE_ELEMENT)
        return false;
    uint32_t from = rp_op_operands(p, parts.at[i]).at[0];
    if (p->code.at[from] == RP_OP_PARAMETER)
        return p->value.at[parts.at[i]] == i;
    if (p->code.at[from] != RP_OP_WHILE || depth == REFINE_DEPTH)
        return false;
    uint32_t inner = (uint32_t)p->value.at[parts.at[i]]; /* through a loop inside of this one */
    struct rp_ids carried = rp_op_operands(p, from);
    if (p->code.at[carried.at[0]] != RP_OP_TUPLE || !rp_op_called(p, from).n)
        return false;
    carried = rp_op_operands(p, carried.at[0]);
    return inner < carried.n && p->code.at[carried.at[inner]] == RP_OP_GET_TUPLE_ELEMENT &&
           p->code.at[rp_op_operands(p, carried.at[inner]).at[0]] == RP_OP_PARAMETER &&
           p->value.at[carried.at[inner]] == i &&
           is_passed_on(p, rp_op_called(p, from).at[0], inner, depth + 1);
}

/* What is known of the value of a loop in each of its rounds. */
static enum rp_code loop_value(struct rp_refine *c, const struct rp_refine_op *r, uint32_t body,
                               struct rp_refined *out)
{
    const struct rp_op_shape *s = &c->b.program->shapes.at[r->operands[0]->shape];

    *out = elsewhere(r->operands[0]);
    if (s->elem != RP_ELEM_TUPLE) {
        if (!is_passed_on(c->p, body, 0, 0))
            out->known = NULL, out->source = RP_NONE;
        return RP_OK;
    }
    struct rp_refined *parts = RP_ARENA_NEW(&c->scratch, struct rp_refined, (size_t)s->n + 1);
    RP_TRY(rp_err_need(parts, c->err, "refining shapes"));
    for (uint32_t i = 0; i < s->n; i++) {
        parts[i] = elsewhere(&out->parts[i]);
        if (!is_passed_on(c->p, body, i, 0))
            parts[i].known = NULL, parts[i].source = RP_NONE;
    }
    out->parts = parts;
    return RP_OK;
}

static enum rp_code refine_loop(struct rp_refine_frame *f, const struct rp_refine_op *r,
                                struct rp_refined *value)
{
    struct rp_refine *c = f->c;
    struct rp_ids called = rp_op_called(c->p, r->op);
    struct rp_refine_instance body, condition;
    struct rp_refined carried;

    if (called.n != 2 || r->n != 1)
        return rp_refine_fail(c, r->op, RP_FORMAT, "a loop has a body and a condition");
    RP_TRY(loop_value(c, r, called.at[0], &carried));
    RP_TRY(refine_computation(c, called.at[0], &carried, 1, true, &body));
    RP_TRY(refine_computation(c, called.at[1], &carried, 1, true, &condition));
    if (body.result.shape != carried.shape)
        return rp_refine_fail(c, r->op, RP_UNSUPPORTED,
                              "the loop changes the shape of what it carries");
    *value = carried;
    return rp_refine_emit(f, r, r->n, carried.shape, (uint32_t[]){body.id, condition.id}, 2, value);
}

static enum rp_code refine_branches(struct rp_refine_frame *f, const struct rp_refine_op *r,
                                    struct rp_refined *value)
{
    struct rp_refine *c = f->c;
    struct rp_ids called = rp_op_called(c->p, r->op);
    uint32_t *ids = RP_ARENA_NEW(&c->scratch, uint32_t, (size_t)called.n + 1);
    struct rp_refine_instance branch = {0};
    struct rp_refined *args;

    RP_TRY(rp_err_need(ids, c->err, "refining shapes"));
    if (!called.n || r->n != (size_t)called.n + 1)
        return rp_refine_fail(c, r->op, RP_FORMAT, "each branch has an operand");
    RP_TRY(copy_args(c, r, 1, called.n, &args));
    for (uint32_t i = 0; i < called.n; i++) {
        uint32_t shape = branch.result.shape;

        RP_TRY(refine_computation(c, called.at[i], &args[i], 1, true, &branch));
        if (i && branch.result.shape != shape)
            return rp_refine_fail(c, r->op, RP_UNSUPPORTED,
                                  "its branches give arrays of different shapes");
        ids[i] = branch.id;
    }
    *value = (struct rp_refined){.source = RP_NONE};
    return rp_refine_emit(f, r, r->n, branch.result.shape, ids, called.n, value);
}

/* ---- one operation ---- */

/* Parts of a tuple of which nothing but the shapes is known. */
static enum rp_code unknown_parts(struct rp_refine *c, struct rp_refined *v)
{
    const struct rp_op_shape *s = &c->b.program->shapes.at[v->shape];

    if (s->elem != RP_ELEM_TUPLE || v->parts)
        return RP_OK;
    struct rp_refined *parts = RP_ARENA_NEW(&c->scratch, struct rp_refined, (size_t)s->n + 1);
    RP_TRY(rp_err_need(parts, c->err, "refining shapes"));
    for (uint32_t i = 0; i < s->n; i++) {
        parts[i] = (struct rp_refined){.op = RP_NONE, .source = RP_NONE};
        parts[i].shape = c->b.program->parts.at[s->first + i];
        RP_TRY(unknown_parts(c, &parts[i]));
        s = &c->b.program->shapes.at[v->shape];
    }
    v->parts = parts;
    return RP_OK;
}

static enum rp_code refine_parameter(struct rp_refine_frame *f, const struct rp_refine_op *r,
                                     struct rp_refined *value)
{
    struct rp_refine *c = f->c;
    int64_t number = c->p->value.at[r->op];
    uint32_t shape;

    if (f->args && (number < 0 || (size_t)number >= f->nargs))
        return rp_refine_fail(c, r->op, RP_FORMAT, "it is called without this argument");
    if (f->args) {
        *value = f->args[number];
        shape = value->shape;
    } else {
        if (is_unknown(c->p, c->p->shape.at[r->op], 0))
            return rp_refine_fail(c, r->op, RP_UNSUPPORTED, "its shape is not known");
        RP_TRY(rp_copy_shape(&c->copy, c->p->shape.at[r->op], &shape));
    }
    return rp_refine_emit(f, r, 0, shape, NULL, 0, value);
}

/* The elements of a constant, where they are few integers. */
static enum rp_code refine_constant(struct rp_refine *c, uint32_t op, struct rp_refined *value)
{
    struct rp_infer_dims dims;
    int64_t index = c->p->value.at[op];
    unsigned elem = c->p->shapes.at[c->p->shape.at[op]].elem;
    size_t unit = rp_literal_unit(elem);
    unsigned char raw[RP_FOLD_MOST * 8];

    value->source = op;
    RP_TRY(rp_copy_shape(&c->copy, c->p->shape.at[op], &value->shape));
    rp_refine_dims(c->p, c->p->shape.at[op], &dims);
    if (!rp_fold_fits(elem, &dims) || index < 0 || (size_t)index >= c->p->literals.n ||
        !rp_literal_known(c->p, &c->p->literals.at[index]))
        return value_op(c, value);
    size_t n = (size_t)rp_shape_elements(c->p, c->p->shape.at[op]);
    RP_TRY(rp_literal_decode(c->p, &c->p->literals.at[index], raw, n * unit, c->err));
    int64_t *known = RP_ARENA_NEW(&c->scratch, int64_t, n + 1);
    RP_TRY(rp_err_need(known, c->err, "refining shapes"));
    for (size_t i = 0; i < n; i++) {
        memcpy(&known[i], raw + i * unit, unit); /* little-endian, as this machine */
        known[i] = rp_fold_wrap(elem, known[i]);
    }
    value->known = known;
    return RP_OK;
}

static enum rp_code refine_fold(struct rp_refine *c, const struct rp_refine_op *r, uint32_t shape,
                                struct rp_refined *value)
{
    struct rp_known out = {.elem = c->b.program->shapes.at[shape].elem};
    int64_t elements[RP_FOLD_MOST];

    rp_refine_dims(c->b.program, shape, &out.dims);
    if (!rp_fold(c->p, r->op, r->code, r->known, r->n, &out, elements))
        return RP_OK;
    size_t n = (size_t)rp_shape_elements(c->b.program, shape);
    int64_t *kept = RP_ARENA_NEW(&c->scratch, int64_t, n + 1);
    RP_TRY(rp_err_need(kept, c->err, "refining shapes"));
    memcpy(kept, elements, n * sizeof *kept);
    value->known = kept;
    value->shape = shape;
    return RP_OK;
}

static enum rp_code refine_size(struct rp_refine *c, const struct rp_refine_op *r,
                                struct rp_refined *value)
{
    size_t n;
    const int64_t *dim = rp_op_ints(c->p, r->op, RP_ATTR_DIMENSIONS, &n);
    const struct rp_op_shape *s = &c->p->shapes.at[c->p->shape.at[r->op]];
    int64_t *known = RP_ARENA_NEW(&c->scratch, int64_t, 1);

    RP_TRY(rp_err_need(known, c->err, "refining shapes"));
    if (s->n || !rp_fold_fits(s->elem, &(struct rp_infer_dims){0}))
        return rp_refine_fail(c, r->op, RP_FORMAT, "the size of a dimension is one integer");
    if (!dim || n != 1 || dim[0] < 0 || r->n != 1 || (size_t)dim[0] >= r->dims[0].n)
        return rp_refine_fail(c, r->op, RP_FORMAT, "there is no such dimension");
    *known = r->dims[0].at[dim[0]];
    value->known = known;
    return rp_copy_shape(&c->copy, c->p->shape.at[r->op], &value->shape);
}

static enum rp_code refine_tuple(struct rp_refine_frame *f, const struct rp_refine_op *r,
                                 struct rp_refined *value)
{
    struct rp_refine *c = f->c;
    uint32_t *shapes = RP_ARENA_NEW(&c->scratch, uint32_t, r->n + 1), shape;
    struct rp_refined *parts;

    RP_TRY(copy_args(c, r, 0, r->n, &parts));
    RP_TRY(rp_err_need(shapes, c->err, "refining shapes"));
    for (size_t i = 0; i < r->n; i++)
        shapes[i] = parts[i].shape;
    RP_TRY(rp_program_tuple(c->b.program, shapes, r->n, &shape, c->err));
    value->parts = parts;
    return rp_refine_emit(f, r, r->n, shape, NULL, 0, value);
}

static enum rp_code refine_part(struct rp_refine_frame *f, const struct rp_refine_op *r,
                                struct rp_refined *value)
{
    struct rp_refine *c = f->c;
    int64_t i = c->p->value.at[r->op];

    if (r->n != 1 || !r->operands[0]->parts || i < 0 ||
        i >= c->b.program->shapes.at[r->operands[0]->shape].n)
        return rp_refine_fail(c, r->op, RP_FORMAT, "there is no such part");
    *value = elsewhere(&r->operands[0]->parts[i]);
    return value->known ? RP_OK : rp_refine_emit(f, r, 1, value->shape, NULL, 0, value);
}

static enum rp_code refine_other(struct rp_refine_frame *f, struct rp_refine_op *r,
                                 struct rp_refined *value)
{
    struct rp_refine *c = f->c;
    struct rp_ids called = rp_op_called(c->p, r->op);
    uint32_t shape, *ids = RP_ARENA_NEW(&c->scratch, uint32_t, (size_t)called.n + 1);
    bool done;

    RP_TRY(rp_err_need(ids, c->err, "refining shapes"));
    RP_TRY(rp_refine_dynamic(f, r, value, &done));
    if (done)
        return RP_OK;
    RP_TRY(result_shape(c, r, &shape));
    RP_TRY(refine_fold(c, r, shape, value));
    if (value->known)
        return RP_OK;
    for (uint32_t i = 0; i < called.n; i++) {
        /* Computations of reductions, sorts and the like have arguments of fixed shapes. */
        struct rp_refine_instance made;

        RP_TRY(refine_computation(c, called.at[i], NULL, 0, true, &made));
        ids[i] = made.id;
    }
    return rp_refine_emit(f, r, r->n, shape, ids, called.n, value);
}

static enum rp_code refine_by_code(struct rp_refine_frame *f, struct rp_refine_op *r,
                                   struct rp_refined *value)
{
    switch (r->code) {
    case RP_OP_PARAMETER:
        return refine_parameter(f, r, value);
    case RP_OP_CONSTANT:
        return refine_constant(f->c, r->op, value);
    case RP_OP_TUPLE:
        return refine_tuple(f, r, value);
    case RP_OP_GET_TUPLE_ELEMENT:
        return refine_part(f, r, value);
    case RP_OP_CALL:
    case RP_OP_FUSION:
        return refine_call(f, r, value);
    case RP_OP_WHILE:
        return refine_loop(f, r, value);
    case RP_OP_CONDITIONAL:
        return refine_branches(f, r, value);
    case RP_OP_GET_DIMENSION_SIZE:
        return refine_size(f->c, r, value);
    default:
        return refine_other(f, r, value);
    }
}

static enum rp_code refine_op(struct rp_refine_frame *f, uint32_t op)
{
    struct rp_refine *c = f->c;
    struct rp_ids operands = rp_op_operands(c->p, op);
    struct rp_refined *value = &f->values[op - f->first];
    struct rp_refine_op r = {.op = op, .code = c->p->code.at[op], .n = operands.n};
    RP_FREED struct rp_refined **values = calloc(r.n + 1, sizeof *values);
    RP_FREED struct rp_known *known = calloc(r.n + 1, sizeof *known);
    RP_FREED struct rp_infer_dims *dims = calloc(r.n + 1, sizeof *dims);

    *value = (struct rp_refined){.op = RP_NONE, .source = RP_NONE};
    RP_TRY(rp_err_need(values && known && dims, c->err, "refining shapes"));
    r.operands = values;
    r.known = known;
    r.dims = dims;
    for (size_t i = 0; i < r.n; i++) {
        if (operands.at[i] < f->first || operands.at[i] >= op)
            return rp_refine_fail(c, op, RP_FORMAT, "an operand comes after it");
        r.operands[i] = &f->values[operands.at[i] - f->first];
        rp_refine_dims(c->b.program, r.operands[i]->shape, &r.dims[i]);
        r.known[i] = (struct rp_known){
            r.operands[i]->known, c->b.program->shapes.at[r.operands[i]->shape].elem, r.dims[i]};
    }
    RP_TRY(refine_by_code(f, &r, value));
    return unknown_parts(c, value);
}

/* ---- computations ---- */

static const struct rp_refine_instance *
find_instance(const struct rp_refine *c, const struct rp_refine_instance *like, bool needed)
{
    for (size_t i = c->done.n; i-- > 0;) {
        const struct rp_refine_instance *have = &c->done.at[i];
        size_t k = 0;

        if (have->computation != like->computation || have->nargs != like->nargs ||
            (needed && have->id == RP_NONE))
            continue;
        while (k < have->nargs && is_equal_value(c->b.program, &have->args[k], &like->args[k], 0))
            k++;
        if (k == have->nargs)
            return have;
    }
    return NULL;
}

static enum rp_code refine_body(struct rp_refine *c, struct rp_refine_frame *f, bool needed,
                                struct rp_refine_instance *out)
{
    const struct rp_computation *from = &c->p->computations.at[out->computation];
    char name[NAME_CAP];
    size_t before = 0;

    if (from->root == RP_NONE || !from->n)
        return rp_err_set(c->err, RP_FORMAT, "function '%s' returns nothing",
                          rp_program_text(c->p, from->name));
    for (uint32_t i = 0; i < from->n; i++)
        RP_TRY(refine_op(f, from->first + i));
    struct rp_refined *root = &f->values[from->root - from->first];
    out->result = elsewhere(root);
    out->result.source = RP_NONE;
    out->id = RP_NONE;
    if (root->known && !needed)
        return RP_OK;
    RP_TRY(value_op(c, root));
    for (size_t i = 0; i < c->done.n; i++)
        before += c->done.at[i].computation == out->computation;
    snprintf(name, sizeof name, before ? "%.1000s.refined%zu" : "%.1000s",
             rp_program_text(c->p, from->name), before);
    out->id = rp_program_builder_close(&c->b, name, root->op);
    return RP_OK;
}

static enum rp_code refine_computation(struct rp_refine *c, uint32_t computation,
                                       const struct rp_refined *args, size_t nargs, bool needed,
                                       struct rp_refine_instance *out)
{
    const struct rp_computation *from = &c->p->computations.at[computation];
    struct rp_refine_frame f = {.c = c, .first = from->first, .args = args, .nargs = nargs};
    struct rp_program_builder_scope *outer = c->b.open;

    *out = (struct rp_refine_instance){.computation = computation, .args = args, .nargs = nargs};
    const struct rp_refine_instance *have = find_instance(c, out, needed);
    if (have) {
        *out = *have;
        return RP_OK;
    }
    if (c->depth == REFINE_DEPTH)
        return rp_err_set(c->err, RP_LIMIT, "calls are nested more than %d deep", REFINE_DEPTH);
    f.values = calloc((size_t)from->n + 1, sizeof *f.values);
    RP_TRY(rp_err_need(f.values, c->err, "refining shapes"));
    c->depth++;
    rp_program_builder_open(&c->b);
    enum rp_code code = refine_body(c, &f, needed, out);
    if (c->b.open != outer)
        rp_program_builder_discard(&c->b);
    c->depth--;
    free(f.values);
    if (code == RP_OK && c->b.code != RP_OK) {
        if (c->err)
            *c->err = c->b.err;
        code = c->b.code;
    }
    return code == RP_OK ? rp_vec_push(&c->done, *out, c->err) : code;
}

/* ---- the entry ---- */

static enum rp_code input_missing(struct rp_refine *c, uint32_t op,
                                  const struct rp_infer_dims *dims, size_t dim)
{
    long long number = c->p->value.at[op];
    char shape[256], example[256];
    size_t at = 0;

    rp_shape_text(c->p, c->p->shape.at[op], false, shape, sizeof shape);
    for (size_t i = 0; i < dims->n && at < sizeof example - 24; i++)
        at += (size_t)snprintf(example + at, sizeof example - at, i ? "x%lld" : "%lld",
                               dims->at[i] < 0 ? 8 : (long long)dims->at[i]);
    return rp_err_set(c->err, RP_USAGE,
                      "dimension %zu of input %lld, %s, is not known: give its shape, as in "
                      "'--refine in%lld=%s'; 'replay' also takes it from arrays (--inputs)",
                      dim, number, shape, number, example);
}

/* The shape of a parameter of the entry, from the program and what is given. */
static enum rp_code input_shape(struct rp_refine *c, uint32_t op,
                                const struct rp_refine_shape *given, uint32_t *out)
{
    uint32_t shape = c->p->shape.at[op];
    struct rp_infer_dims dims;
    char text[256];

    rp_shape_text(c->p, shape, false, text, sizeof text);
    if (c->p->shapes.at[shape].elem == RP_ELEM_TUPLE || !rp_elem_bits(c->p->shapes.at[shape].elem))
        return rp_copy_shape(&c->copy, shape, out);
    rp_refine_dims(c->p, shape, &dims);
    if (given && given->given && given->rank != dims.n)
        return rp_err_set(c->err, RP_FORMAT, "input %lld is %s: %u dimensions are given",
                          (long long)c->p->value.at[op], text, given->rank);
    for (size_t i = 0; i < dims.n; i++) {
        if (given && given->given && dims.at[i] != RP_DIM_UNKNOWN && dims.at[i] != given->dims[i])
            return rp_err_set(c->err, RP_FORMAT, "input %lld is %s: dimension %zu cannot be %lld",
                              (long long)c->p->value.at[op], text, i, (long long)given->dims[i]);
        if (given && given->given)
            dims.at[i] = given->dims[i];
        if (dims.at[i] == RP_DIM_UNKNOWN)
            return input_missing(c, op, &dims, i);
    }
    return rp_refine_array(c, c->p->shapes.at[shape].elem, &dims, out);
}

static enum rp_code refine_program(struct rp_refine *c, const struct rp_refine_shape *shapes,
                                   size_t n, struct rp_program **out)
{
    struct rp_refine_instance made;

    c->copy = (struct rp_program_copy){c->p, c->b.program, c->err};
    RP_TRY(rp_copy_module_attrs(&c->copy));
    const struct rp_computation *entry = &c->p->computations.at[c->p->entry];
    struct rp_refined *args =
        RP_ARENA_NEW(&c->scratch, struct rp_refined, (size_t)entry->nparams + 1);
    RP_TRY(rp_err_need(args, c->err, "refining shapes"));
    for (uint32_t op = entry->first; op < entry->first + entry->n; op++) {
        int64_t number = c->p->value.at[op];

        if (c->p->code.at[op] != RP_OP_PARAMETER || number < 0 || number >= entry->nparams)
            continue;
        struct rp_refined *arg = &args[number];
        *arg = (struct rp_refined){.op = RP_NONE, .source = RP_NONE};
        RP_TRY(input_shape(c, op, (size_t)number < n ? &shapes[number] : NULL, &arg->shape));
        RP_TRY(unknown_parts(c, arg));
    }
    RP_TRY(refine_computation(c, c->p->entry, args, c->p->computations.at[c->p->entry].nparams,
                              true, &made));
    return rp_program_builder_finish(&c->b, made.id, out, c->err);
}

static void refine_release(struct rp_refine *c)
{
    rp_program_builder_release(&c->b);
    rp_arena_release(&c->scratch);
    rp_vec_release(&c->done);
}

enum rp_code rp_program_refine(const struct rp_program *p, const struct rp_refine_shape *shapes,
                               size_t n, struct rp_program **out, struct rp_err *err)
{
    RP_SCOPED(refine_release) struct rp_refine c = {.p = p, .err = err};

    *out = NULL;
    if (p->entry == RP_NONE)
        return rp_err_set(err, RP_FORMAT, "the program has no entry");
    RP_TRY(rp_program_validate(p, err));
    RP_TRY(rp_program_builder_init(&c.b, "hlo", rp_program_text(p, p->name), err));
    return refine_program(&c, shapes, n, out);
}

/* ---- shapes in a text ---- */

static enum rp_code refine_bad(const char *text, struct rp_err *err)
{
    return rp_err_set(err, RP_USAGE,
                      "'%s' is not a list of shapes: write the inputs and their sizes, as in "
                      "in0=8x128,in1=128x64",
                      text);
}

enum rp_code rp_refine_parse(const char *text, struct rp_arena *arena,
                             struct rp_refine_shape **shapes, size_t *n, struct rp_err *err)
{
    const char *s = text;
    unsigned long most = 0;

    for (const char *at = strstr(text, "in"); at; at = strstr(at + 2, "in")) {
        unsigned long number = strtoul(at + 2, NULL, 10);

        most = number > most ? number : most;
    }
    *n = most < 4096 ? most + 1 : 4096;
    *shapes = RP_ARENA_NEW(arena, struct rp_refine_shape, *n);
    int64_t *dims = RP_ARENA_NEW(arena, int64_t, strlen(text) + 1);
    RP_TRY(rp_err_need(*shapes && dims, err, "reading shapes"));
    while (*s) {
        char *to;

        if (strncmp(s, "in", 2) != 0 || s[2] < '0' || s[2] > '9')
            return refine_bad(text, err);
        unsigned long number = strtoul(s + 2, &to, 10);
        if (*to != '=' || number >= *n)
            return refine_bad(text, err);
        struct rp_refine_shape *shape = &(*shapes)[number];
        *shape = (struct rp_refine_shape){.dims = dims, .given = true};
        for (s = to + 1; *s >= '0' && *s <= '9'; s += *s == 'x') {
            *dims++ = (int64_t)strtoull(s, &to, 10);
            shape->rank++;
            s = to;
        }
        if ((*s && *s != ',') || (*s && !s[1]) || (s > text && s[-1] == 'x'))
            return refine_bad(text, err);
        s += *s == ',';
    }
    return RP_OK;
}
