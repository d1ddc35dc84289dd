/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills and reads the columns. The strings of a program begin with the known attribute keys and the
 * opcodes, so that a key or an opcode is recognised by the id that interning returns anyway.
 */
#include "program/program.h"
#include "program/opcodes.h"
#include "program/order.h"
#include "program/structure.h"

#include <stdlib.h>
#include <string.h>

#define ANY    255
#define FREE   RP_OPF_FREE
#define EFFECT RP_OPF_EFFECT
#define ALIAS  RP_OPF_ALIAS
const struct rp_op_info rp_op_info[RP_OP_COUNT] = {
#define RP_OP(id, name, min, max, class, flops, flags) \
    {name, min, max, RP_CLASS_##class, RP_FLOPS_##flops, flags},
#include "program/ops.def"
#undef RP_OP
    {"", 0, ANY, RP_CLASS_FOREIGN, RP_FLOPS_NONE, 0},
};

static const char *const attr_keys[] = {
    "",
#define RP_ATTR(id, key, type, field, inner, flags) key,
#include "program/attrs.def"
#undef RP_ATTR
};

#define KNOWN_STRINGS ((size_t)RP_ATTR_COUNT + RP_OP_COUNT)

uint16_t rp_program_opcode(const struct rp_program *p, uint32_t string)
{
    return string < KNOWN_STRINGS ? p->opcode_of[string] : RP_OP_FOREIGN;
}

/* The first element of lists whose id 0 means "none". */
static enum rp_code first_rows(struct rp_program *p, struct rp_err *err)
{
    struct rp_op_shape unknown = {.elem = RP_ELEM_INVALID, .flags = RP_SHAPE_UNKNOWN};
    struct rp_op_meta none = {0};

    RP_TRY(rp_vec_push(&p->shapes, unknown, err));
    RP_TRY(rp_vec_push(&p->metas, none, err));
    /* lists that may stay empty need an address, too */
    RP_TRY(rp_vec_reserve(&p->operands, 16, err));
    RP_TRY(rp_vec_reserve(&p->called, 16, err));
    RP_TRY(rp_vec_reserve(&p->attrs, 16, err));
    RP_TRY(rp_vec_reserve(&p->dims, 16, err));
    RP_TRY(rp_vec_reserve(&p->dim_dynamic, 16, err));
    RP_TRY(rp_vec_reserve(&p->parts, 16, err));
    RP_TRY(rp_vec_reserve(&p->literals, 16, err));
    uint32_t id;
    for (size_t i = 1; i < RP_ATTR_COUNT; i++)
        RP_TRY(rp_strtab_intern(&p->strings, attr_keys[i], strlen(attr_keys[i]), &id, err));
    p->opcode_of = RP_ARENA_NEW(&p->arena, uint16_t, KNOWN_STRINGS);
    RP_TRY(rp_err_need(p->opcode_of, err, "reading a program"));
    for (size_t i = 0; i < KNOWN_STRINGS; i++)
        p->opcode_of[i] = RP_OP_FOREIGN;
    for (unsigned i = 0; i < RP_OP_FOREIGN; i++) {
        const char *name = rp_op_info[i].name;

        RP_TRY(rp_strtab_intern(&p->strings, name, strlen(name), &id, err));
        p->opcode_of[id] = (uint16_t)i;
    }
    return RP_OK;
}

enum rp_code rp_program_new(const char *language, struct rp_program **out, struct rp_err *err)
{
    struct rp_program *p = calloc(1, sizeof *p);

    *out = NULL;
    RP_TRY(rp_err_need(p, err, "reading a program"));
    rp_arena_init(&p->arena);
    p->language = language;
    p->entry = RP_NONE;
    enum rp_code code = rp_strtab_init(&p->strings, err);
    if (code == RP_OK)
        code = first_rows(p, err);
    if (code != RP_OK) {
        rp_program_free(p);
        return code;
    }
    *out = p;
    return RP_OK;
}

void rp_program_free(struct rp_program *p)
{
    if (!p)
        return;
    rp_vec_release(&p->code);
    rp_vec_release(&p->flags);
    rp_vec_release(&p->op_name);
    rp_vec_release(&p->foreign);
    rp_vec_release(&p->shape);
    rp_vec_release(&p->computation);
    rp_vec_release(&p->value);
    rp_vec_release(&p->meta);
    rp_vec_release(&p->operand_begin);
    rp_vec_release(&p->called_begin);
    rp_vec_release(&p->attr_begin);
    rp_vec_release(&p->operands);
    rp_vec_release(&p->operand_index);
    rp_vec_release(&p->called);
    rp_vec_release(&p->attrs);
    rp_vec_release(&p->given);
    rp_vec_release(&p->computations);
    rp_vec_release(&p->shapes);
    rp_vec_release(&p->dims);
    rp_vec_release(&p->dim_dynamic);
    rp_vec_release(&p->parts);
    rp_map_release(&p->shape_map);
    rp_vec_release(&p->metas);
    rp_vec_release(&p->locations);
    rp_vec_release(&p->frames);
    rp_vec_release(&p->literals);
    rp_vec_release(&p->module_attrs);
    rp_strtab_release(&p->strings);
    rp_arena_release(&p->arena);
    free(p);
}

enum rp_code rp_program_string(struct rp_program *p, const char *text, size_t len, uint32_t *id,
                               struct rp_err *err)
{
    *id = 0;
    return len ? rp_strtab_intern(&p->strings, text, len, id, err) : RP_OK;
}

enum rp_code rp_program_add_op(struct rp_program *p, const struct rp_new_op *op, uint32_t *id,
                               struct rp_err *err)
{
    uint32_t i = p->nops;

    if (!p->computations.n)
        return rp_err_set(err, RP_BUG, "an operation outside of a computation");
    /* Makes room for one more row in every column of operations. */
    if (p->nops >= RP_NONE - 1)
        return rp_err_set(err, RP_LIMIT, "a program of more than 4 billion operations");
    RP_TRY(rp_vec_reserve(&p->code, 1, err));
    RP_TRY(rp_vec_reserve(&p->flags, 1, err));
    RP_TRY(rp_vec_reserve(&p->op_name, 1, err));
    RP_TRY(rp_vec_reserve(&p->foreign, 1, err));
    RP_TRY(rp_vec_reserve(&p->shape, 1, err));
    RP_TRY(rp_vec_reserve(&p->computation, 1, err));
    RP_TRY(rp_vec_reserve(&p->value, 1, err));
    RP_TRY(rp_vec_reserve(&p->meta, 1, err));
    RP_TRY(rp_vec_reserve(&p->operand_begin, 2, err));
    RP_TRY(rp_vec_reserve(&p->called_begin, 2, err));
    RP_TRY(rp_vec_reserve(&p->attr_begin, 2, err));
    p->code.at[p->code.n++] = (uint16_t)op->code;
    p->flags.at[p->flags.n++] = op->flags;
    p->op_name.at[p->op_name.n++] = op->name;
    p->foreign.at[p->foreign.n++] = op->foreign;
    p->shape.at[p->shape.n++] = op->shape;
    p->computation.at[p->computation.n++] = (uint32_t)p->computations.n - 1;
    p->value.at[p->value.n++] = op->value;
    p->meta.at[p->meta.n++] = op->meta;
    p->operand_begin.at[i] = p->operand_begin.at[i + 1] = (uint32_t)p->operands.n;
    p->called_begin.at[i] = p->called_begin.at[i + 1] = (uint32_t)p->called.n;
    p->attr_begin.at[i] = p->attr_begin.at[i + 1] = (uint32_t)p->attrs.n;
    p->operand_begin.n = p->called_begin.n = p->attr_begin.n = (size_t)i + 2;
    p->nops++;
    p->computations.at[p->computations.n - 1].n++;
    *id = i;
    return RP_OK;
}

enum rp_code rp_program_add_operand(struct rp_program *p, uint32_t op, uint32_t index,
                                    struct rp_err *err)
{
    if (p->operands.n >= RP_NONE - 1)
        return rp_err_set(err, RP_LIMIT, "a program of more than 4 billion operands");
    if (index ||
        p->operand_index.n) { /* the column exists from the first operation that needs it */
        while (p->operand_index.n < p->operands.n)
            RP_TRY(rp_vec_push(&p->operand_index, 0, err));
        RP_TRY(rp_vec_push(&p->operand_index, index, err));
    }
    RP_TRY(rp_vec_push(&p->operands, op, err));
    p->operand_begin.at[p->nops] = (uint32_t)p->operands.n;
    return RP_OK;
}

enum rp_code rp_program_add_called(struct rp_program *p, uint32_t computation, struct rp_err *err)
{
    RP_TRY(rp_vec_push(&p->called, computation, err));
    p->called_begin.at[p->nops] = (uint32_t)p->called.n;
    return RP_OK;
}

/* Whether the value is missing: types with a pointer need one unless they are empty. */
static bool is_missing(const struct rp_attr *attr)
{
    return attr->n && attr->type != RP_VALUE_FLAG && attr->type != RP_VALUE_INT &&
           attr->type != RP_VALUE_FLOAT && !attr->at;
}

enum rp_code rp_program_add_attr(struct rp_program *p, struct rp_attr attr, struct rp_err *err)
{
    if (is_missing(&attr))
        return rp_err_nomem(err, "reading attributes");
    if (p->attrs.n >= RP_NONE - 1)
        return rp_err_set(err, RP_LIMIT, "a program of more than 4 billion attributes");
    RP_TRY(rp_vec_push(&p->attrs, attr, err));
    p->attr_begin.at[p->nops] = (uint32_t)p->attrs.n;
    return RP_OK;
}

enum rp_code rp_program_add_text(struct rp_program *p, uint32_t key, const char *at, size_t n,
                                 struct rp_err *err)
{
    if (n > UINT32_MAX)
        return rp_err_set(err, RP_LIMIT, "an attribute of more than 4 GiB");
    return rp_program_add_attr(p, rp_attr_bytes(key, RP_VALUE_TEXT, at, n), err);
}

enum rp_code rp_program_add_module_attr(struct rp_program *p, struct rp_attr attr,
                                        struct rp_err *err)
{
    if (is_missing(&attr))
        return rp_err_nomem(err, "reading attributes");
    return rp_vec_push(&p->module_attrs, attr, err);
}

enum rp_code rp_program_begin(struct rp_program *p, uint32_t name, uint32_t *id, struct rp_err *err)
{
    struct rp_computation c = {.name = name, .first = p->nops, .root = RP_NONE};

    *id = (uint32_t)p->computations.n;
    return rp_vec_push(&p->computations, c, err);
}

/* In old files that name no root, the root is the last operation. */
static void finish_computation(struct rp_program *p, struct rp_computation *c)
{
    if (c->root == RP_NONE && c->n && strcmp(p->language, "hlo") == 0)
        c->root = c->first + c->n - 1;
    c->nparams = 0;
    for (uint32_t i = c->first; i < c->first + c->n; i++) {
        struct rp_ids called = rp_op_called(p, i);

        c->nparams += p->code.at[i] == RP_OP_PARAMETER;
        for (uint32_t k = 0; p->code.at[i] == RP_OP_FUSION && k < called.n; k++)
            p->computations.at[called.at[k]].fused = true;
    }
}

enum rp_code rp_program_finish(struct rp_program *p, struct rp_err *err)
{
    while (p->operand_index.n && p->operand_index.n < p->operands.n)
        RP_TRY(rp_vec_push(&p->operand_index, 0, err));
    for (size_t i = 0; i < p->computations.n; i++)
        finish_computation(p, &p->computations.at[i]);
    if (p->entry == RP_NONE && p->computations.n)
        p->entry = (uint32_t)p->computations.n - 1;
    return RP_OK;
}

const struct rp_attr *rp_op_attr(const struct rp_program *p, uint32_t op, uint32_t key)
{
    uint32_t n;
    const struct rp_attr *attrs = rp_op_attrs(p, op, &n);

    for (uint32_t i = 0; i < n; i++)
        if (attrs[i].key == key)
            return &attrs[i];
    return NULL;
}

int64_t rp_op_int(const struct rp_program *p, uint32_t op, uint32_t key, int64_t absent)
{
    const struct rp_attr *attr = rp_op_attr(p, op, key);
    const int64_t *at;
    size_t n;

    return attr && rp_attr_numbers(attr, &at, &n) && n == 1 ? at[0] : absent;
}

const int64_t *rp_op_ints(const struct rp_program *p, uint32_t op, uint32_t key, size_t *n)
{
    const struct rp_attr *attr = rp_op_attr(p, op, key);
    const int64_t *at;

    *n = 0;
    return attr && rp_attr_numbers(attr, &at, n) ? at : NULL;
}

int64_t rp_program_int(const struct rp_program *p, uint32_t key, int64_t absent)
{
    for (size_t i = 0; i < p->module_attrs.n; i++)
        if (p->module_attrs.at[i].key == key && p->module_attrs.at[i].type == RP_VALUE_INT)
            return p->module_attrs.at[i].number;
    return absent;
}

const char *rp_op_opcode_name(const struct rp_program *p, uint32_t op)
{
    enum rp_opcode code = (enum rp_opcode)p->code.at[op];

    return code == RP_OP_FOREIGN ? rp_program_text(p, p->foreign.at[op]) : rp_op_info[code].name;
}

bool rp_op_source(const struct rp_program *p, uint32_t op, struct rp_source_line *out)
{
    const struct rp_op_meta *meta = &p->metas.at[p->meta.at[op]];

    if (meta->file) {
        *out = (struct rp_source_line){rp_program_text(p, meta->file), "", meta->line};
        return true;
    }
    if (meta->frame && meta->frame <= p->frames.n) {
        const struct rp_frame *frame = &p->frames.at[meta->frame - 1];
        const struct rp_location *at = &p->locations.at[frame->location];

        *out = (struct rp_source_line){rp_program_text(p, at->file),
                                       rp_program_text(p, at->function), at->line};
        return true;
    }
    return false;
}

/* ---- validation: the invariants that later code relies on; linear in the size ---- */

static enum rp_code program_invalid(const struct rp_program *p, uint32_t op, struct rp_err *err,
                                    const char *what)
{
    return rp_err_set(err, RP_FORMAT, "operation '%s' (%s) %s",
                      rp_program_text(p, p->op_name.at[op]), rp_op_opcode_name(p, op), what);
}

static enum rp_code check_operands(const struct rp_program *p, const struct rp_computation *c,
                                   uint32_t op, struct rp_err *err)
{
    const struct rp_op_info *info = &rp_op_info[p->code.at[op]];
    struct rp_ids operands = rp_op_operands(p, op);

    if (operands.n < info->min_operands ||
        (info->max_operands != 255 && operands.n > info->max_operands))
        return rp_err_set(err, RP_FORMAT, "operation '%s' (%s) has %u operands instead of %s%u",
                          rp_program_text(p, p->op_name.at[op]), info->name, operands.n,
                          info->max_operands == 255 ? "at least " : "", info->min_operands);
    for (uint32_t i = 0; i < operands.n; i++)
        if (operands.at[i] < c->first || operands.at[i] >= c->first + c->n)
            return program_invalid(p, op, err, "has an operand of another computation");
    return RP_OK;
}

static enum rp_code check_op(const struct rp_program *p, const struct rp_computation *c,
                             uint32_t op, struct rp_err *err)
{
    struct rp_ids called = rp_op_called(p, op);

    RP_TRY(check_operands(p, c, op, err));
    for (uint32_t i = 0; i < called.n; i++)
        if (called.at[i] >= p->computations.n)
            return program_invalid(p, op, err, "calls an undefined computation");
    if (p->code.at[op] == RP_OP_GET_TUPLE_ELEMENT) {
        const struct rp_op_shape *of = &p->shapes.at[p->shape.at[rp_op_operands(p, op).at[0]]];

        if (of->elem == RP_ELEM_TUPLE && (uint64_t)p->value.at[op] >= of->n)
            return program_invalid(p, op, err, "reads an element that its tuple does not have");
    }
    return RP_OK;
}

/* Checks that the parameters are 0 to n - 1, each once. */
static enum rp_code check_parameters(const struct rp_program *p, const struct rp_computation *c,
                                     uint8_t *seen, struct rp_err *err)
{
    for (uint32_t i = 0; i < c->nparams; i++)
        seen[i] = 0;
    for (uint32_t op = c->first; op < c->first + c->n; op++) {
        uint64_t number = (uint64_t)p->value.at[op];

        if (p->code.at[op] != RP_OP_PARAMETER)
            continue;
        if (number >= c->nparams)
            return program_invalid(p, op, err,
                                   "has a number that is not below the number of parameters");
        if (seen[number]++)
            return program_invalid(p, op, err, "has the same number as another parameter");
    }
    return RP_OK;
}

enum rp_code rp_program_validate(const struct rp_program *p, struct rp_err *err)
{
    RP_SCOPED(rp_arena_release) struct rp_arena scratch = RP_ARENA_INIT;
    uint8_t *seen = RP_ARENA_NEW(&scratch, uint8_t, (size_t)p->nops + 1);
    uint32_t *order;

    RP_TRY(rp_err_need(seen, err, "checking a program"));
    if (!p->computations.n)
        return rp_err_set(err, RP_FORMAT, "the program has no computations");
    for (size_t i = 0; i < p->computations.n; i++) {
        const struct rp_computation *c = &p->computations.at[i];

        if (!c->n)
            return rp_err_set(err, RP_FORMAT, "computation '%s' is empty",
                              rp_program_text(p, c->name));
        for (uint32_t op = c->first; op < c->first + c->n; op++)
            RP_TRY(check_op(p, c, op, err));
        RP_TRY(check_parameters(p, c, seen, err));
    }
    return rp_program_call_order(p, &scratch, &order, err);
}
