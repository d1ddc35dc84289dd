/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One copier with small changes: it leaves operations out (cut), doubles one (plant), or replaces
 * calls by what they call (flatten). Computations are copied on demand, each before its caller, and
 * operations in an order in which operands come first. The cost is that of what is copied, plus a
 * table over the operations of the old program.
 */
#include "program/cut.h"

#include "program/copy.h"
#include "program/opcodes.h"
#include "program/order.h"
#include "program/structure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COPY_DEPTH  128     /* of calls in calls */
#define FLATTEN_OPS 4000000 /* the most operations that a flattened program may have */
#define NAME_CAP    1024

struct copier {
    struct rp_program_copy copy;
    const struct rp_program *from; /* of copy, */
    struct rp_program *to;         /* of copy */
    struct rp_arena scratch;
    uint32_t *op_of; /* from an old operation to the new one; RP_NONE if it is not copied */
    uint32_t *computation_of; /* the same for computations */
    bool *looked_into;        /* by computation: whether what its operations call is copied */
    uint32_t fault;           /* the operation to double, or RP_NONE */
    bool flatten;
    int64_t iterations;
    unsigned depth;
    uint32_t made; /* numbers the names of operations that the old program does not have */
    struct rp_err *err;
};

/* ---- operations that are new ---- */

static enum rp_code copy_add(struct copier *c, enum rp_opcode code, uint32_t near,
                             const char *suffix, uint32_t shape, int64_t value, uint32_t *id)
{
    const char *opcode = rp_op_info[code].name;
    struct rp_new_op op = {.code = code, .shape = shape, .value = value};
    const char *base = near == RP_NONE ? "" : rp_program_text(c->from, c->from->op_name.at[near]);
    char name[NAME_CAP];

    snprintf(name, sizeof name, "%.900s%s.cut%u", base, suffix, c->made++);
    RP_TRY(rp_program_string(c->to, name, strlen(name), &op.name, c->err));
    RP_TRY(rp_program_string(c->to, opcode, strlen(opcode), &op.foreign, c->err));
    return rp_program_add_op(c->to, &op, id, c->err);
}

/* ---- operations that are copied ---- */

static enum rp_code copy_computation(struct copier *c, uint32_t id, uint32_t *out);

static enum rp_code copy_called(struct copier *c, uint32_t op)
{
    struct rp_ids called = rp_op_called(c->from, op);
    uint32_t id;

    for (uint32_t i = 0; i < called.n; i++)
        RP_TRY(copy_computation(c, called.at[i], &id));
    return RP_OK;
}

/* `prefix` begins the name if operations of a called computation replace the call; otherwise it is
   NULL. */
static enum rp_code copy_op_as(struct copier *c, uint32_t op, const uint32_t *op_of,
                               const char *prefix, uint32_t *id)
{
    const struct rp_program *p = c->from;
    struct rp_ids operands = rp_op_operands(p, op), called = rp_op_called(p, op);
    struct rp_new_op new = {
        .code = (enum rp_opcode)p->code.at[op], .value = p->value.at[op], .flags = p->flags.at[op]};
    uint32_t n;

    if (prefix) {
        char name[NAME_CAP];

        snprintf(name, sizeof name, "%.500s.%.500s", prefix, rp_program_text(p, p->op_name.at[op]));
        RP_TRY(rp_program_string(c->to, name, strlen(name), &new.name, c->err));
    } else if (!*rp_program_text(p, p->op_name.at[op]) || (p->flags.at[op] & RP_OPS_IMPLICIT)) {
        char name[32]; /* those of StableHLO have no name if nothing refers to them */

        snprintf(name, sizeof name, "unnamed.cut%u", c->made++);
        RP_TRY(rp_program_string(c->to, name, strlen(name), &new.name, c->err));
    } else {
        RP_TRY(rp_copy_string(&c->copy, p->op_name.at[op], &new.name));
    }
    RP_TRY(rp_copy_string(&c->copy, p->foreign.at[op], &new.foreign));
    RP_TRY(rp_copy_shape(&c->copy, p->shape.at[op], &new.shape));
    RP_TRY(rp_copy_meta(&c->copy, op, &new.meta));
    if (new.code == RP_OP_CONSTANT)
        RP_TRY(rp_copy_literal(&c->copy, &new.value));
    RP_TRY(rp_program_add_op(c->to, &new, id, c->err));
    for (uint32_t i = 0; i < operands.n; i++)
        RP_TRY(rp_program_add_operand(c->to, op_of[operands.at[i]], 0, c->err));
    for (uint32_t i = 0; i < called.n; i++)
        RP_TRY(rp_program_add_called(c->to, c->computation_of[called.at[i]], c->err));
    const struct rp_attr *attrs = rp_op_attrs(p, op, &n);
    for (uint32_t i = 0; i < n; i++) {
        struct rp_attr attr = attrs[i];
        bool kept;

        RP_TRY(rp_copy_attr(&c->copy, &attr, &kept));
        if (kept)
            RP_TRY(rp_program_add_attr(c->to, attr, c->err));
    }
    return RP_OK;
}

/* Makes what users of the operation see instead of it. */
static enum rp_code copy_fault(struct copier *c, uint32_t op, uint32_t *id)
{
    uint32_t shape = c->to->shape.at[*id], from = *id;
    unsigned elem = c->to->shapes.at[shape].elem;

    if (!rp_elem_bits(elem))
        return rp_err_set(c->err, RP_UNSUPPORTED,
                          "the result of '%s' is not an array: it cannot be faulty",
                          rp_program_text(c->from, c->from->op_name.at[op]));
    RP_TRY(copy_add(c, elem == RP_ELEM_PRED ? RP_OP_NOT : RP_OP_ADD, op, ".fault", shape, 0, id));
    RP_TRY(rp_program_add_operand(c->to, from, 0, c->err));
    return elem == RP_ELEM_PRED ? RP_OK : rp_program_add_operand(c->to, from, 0, c->err);
}

/* ---- flattening ---- */

static bool is_inlined(const struct copier *c, uint32_t op)
{
    enum rp_opcode code = (enum rp_opcode)c->from->code.at[op];

    return c->flatten && (code == RP_OP_CALL || code == RP_OP_FUSION ||
                          (code == RP_OP_WHILE && c->iterations > 0));
}

static enum rp_code inline_op(struct copier *c, uint32_t op, uint32_t *op_of, const char *prefix,
                              uint32_t *id);

/* Puts the operations of a computation in the place of a call with these operands. */
static enum rp_code inline_body(struct copier *c, uint32_t computation, const uint32_t *arguments,
                                uint32_t narguments, const char *prefix, uint32_t *id)
{
    const struct rp_program *p = c->from;
    const struct rp_computation *body = &p->computations.at[computation];
    RP_FREED uint32_t *order = calloc((size_t)body->n + 1, sizeof *order);
    RP_FREED uint32_t *op_of = malloc(((size_t)p->nops + 1) * sizeof *op_of);

    RP_TRY(rp_err_need(order && op_of, c->err, "flattening a program"));
    RP_TRY(rp_computation_order(p, computation, &c->scratch, order, c->err));
    for (uint32_t i = 0; i < body->n; i++) {
        uint32_t op = order[i];

        if (p->code.at[op] != RP_OP_PARAMETER)
            RP_TRY(inline_op(c, op, op_of, prefix, &op_of[op]));
        else if (p->value.at[op] < 0 || p->value.at[op] >= (int64_t)narguments)
            return rp_err_set(c->err, RP_FORMAT, "computation '%s' is called with %u operands",
                              rp_program_text(p, body->name), narguments);
        else
            op_of[op] = arguments[p->value.at[op]];
    }
    *id = op_of[body->root];
    return RP_OK;
}

static enum rp_code inline_call(struct copier *c, uint32_t op, const uint32_t *op_of,
                                const char *prefix, uint32_t *id)
{
    struct rp_ids operands = rp_op_operands(c->from, op), called = rp_op_called(c->from, op);
    bool loop = c->from->code.at[op] == RP_OP_WHILE;
    uint32_t body = called.n ? called.at[0] : RP_NONE;
    RP_FREED uint32_t *arguments = calloc((size_t)operands.n + 1, sizeof *arguments);
    const char *name = rp_program_text(c->from, c->from->op_name.at[op]);
    char deeper[NAME_CAP];

    RP_TRY(rp_err_need(arguments, c->err, "flattening a program"));
    if (body == RP_NONE || ++c->depth > COPY_DEPTH)
        return rp_err_set(c->err, RP_LIMIT,
                          "cannot flatten '%s': it calls nothing, or its calls are nested too deep",
                          name);
    for (uint32_t i = 0; i < operands.n; i++)
        arguments[i] = op_of[operands.at[i]];
    for (int64_t k = 0; k < (loop ? c->iterations : 1); k++) {
        snprintf(deeper, sizeof deeper, loop ? "%.400s%s%.400s.i%lld" : "%.400s%s%.400s",
                 prefix ? prefix : "", prefix ? "." : "", name, (long long)k);
        RP_TRY(inline_body(c, body, arguments, operands.n, deeper, id));
        arguments[0] = *id; /* the result of a loop's body is the argument of its next iteration */
    }
    c->depth--;
    return RP_OK;
}

static enum rp_code inline_op(struct copier *c, uint32_t op, uint32_t *op_of, const char *prefix,
                              uint32_t *id)
{
    if (is_inlined(c, op))
        return inline_call(c, op, op_of, prefix, id);
    return copy_op_as(c, op, op_of, prefix, id);
}

/* Computations that are called from inlined ones must be copied first. */
static enum rp_code copy_inner_called(struct copier *c, uint32_t op, unsigned depth)
{
    struct rp_ids called = rp_op_called(c->from, op);

    if (depth > COPY_DEPTH)
        return rp_err_set(c->err, RP_LIMIT, "calls are nested more than %d deep", COPY_DEPTH);
    if (!is_inlined(c, op))
        return copy_called(c, op);
    for (uint32_t i = 0; i < called.n; i++) {
        const struct rp_computation *body = &c->from->computations.at[called.at[i]];

        if (c->looked_into[called.at[i]])
            continue; /* visits each once: calls that each call the next one twice have 2^n paths */
        c->looked_into[called.at[i]] = true;
        for (uint32_t k = 0; k < body->n; k++)
            RP_TRY(copy_inner_called(c, body->first + k, depth + 1));
    }
    return RP_OK;
}

/* ---- computations ---- */

static enum rp_code copy_computation(struct copier *c, uint32_t id, uint32_t *out)
{
    *out = c->computation_of[id];
    if (*out != RP_NONE)
        return RP_OK;
    if (++c->depth > COPY_DEPTH)
        return rp_err_set(c->err, RP_LIMIT, "calls are nested more than %d deep", COPY_DEPTH);
    RP_FREED uint32_t *order = calloc((size_t)c->from->computations.at[id].n + 1, sizeof *order);
    RP_TRY(rp_err_need(order, c->err, "copying a program"));
    RP_TRY(rp_computation_order(c->from, id, &c->scratch, order, c->err));

    const struct rp_computation *from = &c->from->computations.at[id];
    uint32_t name;

    for (uint32_t i = 0; i < from->n; i++)
        RP_TRY(copy_inner_called(c, from->first + i, 0));
    RP_TRY(rp_copy_string(&c->copy, from->name, &name));
    RP_TRY(rp_program_begin(c->to, name, out, c->err));
    RP_TRY(rp_copy_string(&c->copy, from->thread, &c->to->computations.at[*out].thread));
    for (uint32_t i = 0; i < from->n; i++) {
        RP_TRY(inline_op(c, order[i], c->op_of, NULL, &c->op_of[order[i]]));
        if (order[i] == c->fault)
            RP_TRY(copy_fault(c, order[i], &c->op_of[order[i]]));
    }
    c->to->computations.at[*out].root = c->op_of[from->root];
    c->computation_of[id] = *out;

    c->depth--;
    return RP_OK;
}

static enum rp_code copier_init(struct copier *c, const struct rp_program *p, struct rp_err *err)
{
    *c = (struct copier){.from = p, .fault = RP_NONE, .err = err};
    if ((strcmp(p->language, "hlo") != 0 && strcmp(p->language, "stablehlo") != 0) ||
        p->entry == RP_NONE || p->computations.at[p->entry].root == RP_NONE)
        return rp_err_set(err, RP_UNSUPPORTED,
                          "only HLO and StableHLO can be cut, and this program is %s", p->language);
    RP_TRY(rp_program_new("hlo", &c->to, err));
    c->copy = (struct rp_program_copy){p, c->to, err};
    RP_TRY(rp_copy_string(&c->copy, p->name, &c->to->name));
    RP_TRY(rp_copy_module_attrs(&c->copy));
    c->op_of = RP_ARENA_NEW(&c->scratch, uint32_t, (size_t)p->nops + 1);
    c->computation_of = RP_ARENA_NEW(&c->scratch, uint32_t, p->computations.n + 1);
    c->looked_into = RP_ARENA_NEW(&c->scratch, bool, p->computations.n + 1);
    RP_TRY(rp_err_need(c->op_of && c->computation_of && c->looked_into, err, "copying a program"));
    memset(c->op_of, 0xff, ((size_t)p->nops + 1) * sizeof *c->op_of);
    memset(c->computation_of, 0xff, (p->computations.n + 1) * sizeof *c->computation_of);
    return RP_OK;
}

static void copier_release(struct copier *c)
{
    rp_program_free(c->to);
    rp_arena_release(&c->scratch);
}

/* Moves the new program to *out. */
static enum rp_code copier_finish(struct copier *c, uint32_t entry, struct rp_program **out)
{
    c->to->entry = entry;
    RP_TRY(rp_program_finish(c->to, c->err));
    RP_TRY(rp_program_validate(c->to, c->err));
    *out = c->to;
    c->to = NULL;
    return RP_OK;
}

enum rp_code rp_program_plant(const struct rp_program *p, const char *name, struct rp_program **out,
                              bool *planted, struct rp_err *err)
{
    RP_SCOPED(copier_release) struct copier c = {0};
    uint32_t entry;

    *out = NULL;
    RP_TRY(copier_init(&c, p, err));
    for (uint32_t i = 0; c.fault == RP_NONE && i < p->nops; i++)
        if (!strcmp(rp_program_text(p, p->op_name.at[i]), name))
            c.fault = i;
    *planted = c.fault != RP_NONE;
    RP_TRY(copy_computation(&c, p->entry, &entry));
    return copier_finish(&c, entry, out);
}

/* Computes how many operations and calls replace a call of each computation, callees first. This is
   known before anything is copied, because calls that each call the next one twice make 2^n of
   them. */
static enum rp_code check_flat_size(struct copier *c)
{
    const struct rp_program *p = c->from;
    double *size = RP_ARENA_NEW(&c->scratch, double, p->computations.n);
    uint32_t *order;

    RP_TRY(rp_err_need(size, c->err, "flattening a program"));
    RP_TRY(rp_program_call_order(p, &c->scratch, &order, c->err));
    for (size_t i = 0; i < p->computations.n; i++) {
        const struct rp_computation *body = &p->computations.at[order[i]];

        size[order[i]] = 1;
        for (uint32_t op = body->first; op < body->first + body->n; op++) {
            struct rp_ids called = rp_op_called(p, op);
            double times = p->code.at[op] == RP_OP_WHILE ? (double)c->iterations : 1;

            size[order[i]] += is_inlined(c, op) && called.n ? size[called.at[0]] * times : 1;
        }
        if (size[order[i]] > FLATTEN_OPS)
            return rp_err_set(c->err, RP_LIMIT, "the flattened program has more than %d operations",
                              FLATTEN_OPS);
    }
    return RP_OK;
}

enum rp_code rp_program_flatten(const struct rp_program *p, int64_t iterations,
                                struct rp_program **out, struct rp_err *err)
{
    RP_SCOPED(copier_release) struct copier c = {0};
    uint32_t entry;

    *out = NULL;
    RP_TRY(copier_init(&c, p, err));
    c.flatten = true;
    c.iterations = iterations;
    RP_TRY(check_flat_size(&c));
    RP_TRY(copy_computation(&c, p->entry, &entry));
    return copier_finish(&c, entry, out);
}

/* ---- cutting ---- */

size_t rp_shape_leaves(const struct rp_program *p, uint32_t shape)
{
    const struct rp_op_shape *s = &p->shapes.at[shape];
    size_t n = 0;

    if (s->elem != RP_ELEM_TUPLE)
        return rp_elem_bits(s->elem) != 0;
    for (uint32_t i = 0; i < s->n; i++)
        n += rp_shape_leaves(p, p->parts.at[s->first + i]);
    return n;
}

struct cutter {
    struct copier copy;
    const struct rp_cut *cut;
    struct rp_cut_program *out;
    RP_VEC(uint32_t) results; /* the arrays of the outputs, as operations of the new program */
};

static void cutter_release(struct cutter *k)
{
    copier_release(&k->copy);
    rp_vec_release(&k->results);
}

/* Makes a value from outside: parameters for its arrays, put together as tuples. */
static enum rp_code cut_value(struct cutter *k, uint32_t op, uint32_t shape, uint32_t *leaf,
                              uint32_t *id)
{
    struct copier *c = &k->copy;
    const struct rp_op_shape *s = &c->from->shapes.at[shape];
    uint32_t to;

    RP_TRY(rp_copy_shape(&c->copy, shape, &to));
    if (s->elem == RP_ELEM_TOKEN)
        return copy_add(c, RP_OP_AFTER_ALL, op, "", to, 0, id);
    if (s->elem != RP_ELEM_TUPLE) {
        RP_TRY(copy_add(c, RP_OP_PARAMETER, op, "", to, (int64_t)k->out->inputs.n, id));
        return rp_vec_push(&k->out->inputs, ((struct rp_cut_input){op, (*leaf)++}), c->err);
    }
    RP_FREED uint32_t *parts = calloc((size_t)s->n + 1, sizeof *parts);
    RP_TRY(rp_err_need(parts, c->err, "cutting a program"));
    for (uint32_t i = 0; i < s->n; i++)
        RP_TRY(cut_value(k, op, c->from->parts.at[s->first + i], leaf, &parts[i]));
    RP_TRY(copy_add(c, RP_OP_TUPLE, op, "", to, 0, id));
    for (uint32_t i = 0; i < s->n; i++)
        RP_TRY(rp_program_add_operand(c->to, parts[i], 0, c->err));
    return RP_OK;
}

/* Whether a constant's values can be copied with it. */
static bool is_known_constant(const struct rp_program *p, uint32_t op)
{
    return p->code.at[op] == RP_OP_CONSTANT && p->value.at[op] >= 0 &&
           (size_t)p->value.at[op] < p->literals.n &&
           p->literals.at[p->value.at[op]].form != RP_LITERAL_NONE;
}

/* Makes an operand that does not exist yet. */
static enum rp_code cut_operand(struct cutter *k, uint32_t op)
{
    struct copier *c = &k->copy;
    uint32_t leaf = 0;

    if (c->op_of[op] != RP_NONE)
        return RP_OK;
    if (is_known_constant(c->from, op))
        return copy_op_as(c, op, c->op_of, NULL, &c->op_of[op]);
    return cut_value(k, op, c->from->shape.at[op], &leaf, &c->op_of[op]);
}

static enum rp_code cut_op(struct cutter *k, uint32_t op)
{
    struct copier *c = &k->copy;
    struct rp_ids operands = rp_op_operands(c->from, op);

    for (uint32_t i = 0; i < operands.n; i++)
        RP_TRY(cut_operand(k, operands.at[i]));
    k->out->nops++;
    return copy_op_as(c, op, c->op_of, NULL, &c->op_of[op]);
}

/* Collects the arrays of a value of the new program; `shape` is that of the old one. */
static enum rp_code cut_result(struct cutter *k, uint32_t id, uint32_t shape)
{
    struct copier *c = &k->copy;
    const struct rp_op_shape *s = &c->from->shapes.at[shape];
    uint32_t to, part;

    if (s->elem != RP_ELEM_TUPLE)
        return rp_elem_bits(s->elem) ? rp_vec_push(&k->results, id, c->err) : RP_OK;
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t inner = c->from->parts.at[s->first + i];

        RP_TRY(rp_copy_shape(&c->copy, inner, &to));
        RP_TRY(copy_add(c, RP_OP_GET_TUPLE_ELEMENT, RP_NONE, "part", to, i, &part));
        RP_TRY(rp_program_add_operand(c->to, id, 0, c->err));
        RP_TRY(cut_result(k, part, inner));
    }
    return RP_OK;
}

static enum rp_code cut_root(struct cutter *k, uint32_t *root)
{
    struct copier *c = &k->copy;
    uint32_t shape;

    if (k->results.n == 1) {
        *root = k->results.at[0];
        return RP_OK;
    }
    RP_FREED uint32_t *parts = calloc(k->results.n + 1, sizeof *parts);
    RP_TRY(rp_err_need(parts, c->err, "cutting a program"));
    for (size_t i = 0; i < k->results.n; i++)
        parts[i] = c->to->shape.at[k->results.at[i]];
    RP_TRY(rp_program_tuple(c->to, parts, k->results.n, &shape, c->err));
    RP_TRY(copy_add(c, RP_OP_TUPLE, RP_NONE, "results", shape, 0, root));
    for (size_t i = 0; i < k->results.n; i++)
        RP_TRY(rp_program_add_operand(c->to, k->results.at[i], 0, c->err));
    return RP_OK;
}

/* All operands of kept operations come from outside, so a kept operation that is also an operand is
   there twice: as a parameter for its users, and as itself. */
static enum rp_code cut_apart(struct cutter *k, const uint32_t *order, uint32_t n, uint32_t *made)
{
    struct copier *c = &k->copy;
    uint32_t first = k->copy.from->computations.at[k->cut->computation].first, id;

    for (uint32_t i = 0; i < n; i++) {
        struct rp_ids operands = rp_op_operands(c->from, order[i]);

        if (!k->cut->keep[order[i] - first])
            continue;
        for (uint32_t o = 0; o < operands.n; o++)
            RP_TRY(cut_operand(k, operands.at[o]));
        k->out->nops++;
        RP_TRY(copy_op_as(c, order[i], c->op_of, NULL, &id));
        made[order[i] - first] = id;
    }
    return RP_OK;
}

static enum rp_code cut_together(struct cutter *k, const uint32_t *order, uint32_t n,
                                 uint32_t *made)
{
    uint32_t first = k->copy.from->computations.at[k->cut->computation].first;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t op = order[i];

        if (!k->cut->keep[op - first])
            continue;
        if (k->copy.from->code.at[op] == RP_OP_PARAMETER || is_known_constant(k->copy.from, op))
            RP_TRY(cut_operand(k, op));
        else
            RP_TRY(cut_op(k, op));
        made[op - first] = k->copy.op_of[op];
    }
    return RP_OK;
}

static enum rp_code cut_entry(struct cutter *k, const uint32_t *order, uint32_t *made,
                              uint32_t *entry)
{
    struct copier *c = &k->copy;
    const struct rp_computation *from = &c->from->computations.at[k->cut->computation];
    uint32_t root;

    for (uint32_t i = 0; i < from->n; i++)
        if (k->cut->keep[i])
            RP_TRY(copy_called(c, from->first + i));
    RP_TRY(rp_program_string(c->to, "main", 4, &root, c->err));
    RP_TRY(rp_program_begin(c->to, root, entry, c->err));
    RP_TRY(k->cut->apart ? cut_apart(k, order, from->n, made)
                         : cut_together(k, order, from->n, made));
    for (size_t i = 0; i < k->cut->noutputs; i++) {
        uint32_t op = k->cut->outputs[i];

        if (!k->cut->keep[op - from->first] || made[op - from->first] == RP_NONE)
            return rp_err_set(c->err, RP_BUG, "an output of a cut is not kept");
        RP_TRY(cut_result(k, made[op - from->first], c->from->shape.at[op]));
    }
    RP_TRY(cut_root(k, &root));
    c->to->computations.at[*entry].root = root;
    return RP_OK;
}

enum rp_code rp_program_cut(const struct rp_program *p, const struct rp_cut *cut,
                            struct rp_cut_program *out, struct rp_err *err)
{
    uint32_t n = p->computations.at[cut->computation].n, entry;
    RP_SCOPED(cutter_release) struct cutter k = {.cut = cut, .out = out};

    *out = (struct rp_cut_program){0};
    RP_TRY(copier_init(&k.copy, p, err));
    uint32_t *order = RP_ARENA_NEW(&k.copy.scratch, uint32_t, (size_t)n + 1);
    uint32_t *made = RP_ARENA_NEW(&k.copy.scratch, uint32_t, (size_t)n + 1);
    RP_TRY(rp_err_need(order && made, err, "cutting a program"));
    memset(made, 0xff, ((size_t)n + 1) * sizeof *made);
    RP_TRY(rp_computation_order(p, cut->computation, &k.copy.scratch, order, err));
    RP_TRY(cut_entry(&k, order, made, &entry));
    return copier_finish(&k.copy, entry, &out->program);
}

void rp_cut_release(struct rp_cut_program *cut)
{
    rp_program_free(cut->program);
    rp_vec_release(&cut->inputs);
    *cut = (struct rp_cut_program){0};
}
