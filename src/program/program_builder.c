/* SPDX-License-Identifier: Apache-2.0 */
/* Open computations are linked from the innermost outwards. Each has its lists of operations,
   operands, calls and attributes; an operation knows where its part of each list begins. */
#include "program/program_builder.h"

#include "program/opcodes.h"
#include "program/structure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct builder_op {
    struct rp_new_op op;
    uint32_t operands, calls, attrs; /* the positions in the lists at which its parts begin */
};

struct rp_program_builder_scope {
    struct rp_program_builder_scope *outer;
    RP_VEC(struct builder_op) ops;
    RP_VEC(uint32_t) operands;
    RP_VEC(uint32_t) calls;
    RP_VEC(struct rp_attr) attrs;
};

enum rp_code rp_program_builder_init(struct rp_program_builder *b, const char *language,
                                     const char *name, struct rp_err *err)
{
    *b = (struct rp_program_builder){.err = RP_ERR_INIT};
    RP_TRY(rp_program_new(language, &b->program, err));
    return rp_program_string(b->program, name, strlen(name), &b->program->name, err);
}

void rp_program_builder_release(struct rp_program_builder *b)
{
    while (b->open)
        rp_program_builder_discard(b);
    rp_program_free(b->program);
    b->program = NULL;
}

void rp_program_builder_fail(struct rp_program_builder *b, enum rp_code code, const char *why)
{
    if (b->code == RP_OK)
        b->code = rp_err_set(&b->err, code, "%s", why);
}

/* Returns the place for errors of program functions; only the first error is kept. */
static struct rp_err *builder_err(struct rp_program_builder *b)
{
    return b->code == RP_OK ? &b->err : NULL;
}

static void builder_keep(struct rp_program_builder *b, enum rp_code code)
{
    if (b->code == RP_OK)
        b->code = code;
}

/* ---- computations ---- */

void rp_program_builder_open(struct rp_program_builder *b)
{
    struct rp_program_builder_scope *scope = calloc(1, sizeof *scope);

    if (!scope) {
        builder_keep(b, rp_err_nomem(builder_err(b), "building a program"));
        return;
    }
    scope->outer = b->open;
    b->open = scope;
}

void rp_program_builder_discard(struct rp_program_builder *b)
{
    struct rp_program_builder_scope *scope = b->open;

    if (!scope)
        return;
    b->open = scope->outer;
    rp_vec_release(&scope->ops);
    rp_vec_release(&scope->operands);
    rp_vec_release(&scope->calls);
    rp_vec_release(&scope->attrs);
    free(scope);
}

/* Appends operation i with its lists, which end where those of the next operation begin. */
static enum rp_code builder_append(struct rp_program_builder *b,
                                   const struct rp_program_builder_scope *s, size_t i,
                                   uint32_t first, struct rp_err *err)
{
    const struct builder_op *op = &s->ops.at[i];
    bool last = i + 1 == s->ops.n;
    size_t operands = last ? s->operands.n : op[1].operands;
    size_t calls = last ? s->calls.n : op[1].calls, attrs = last ? s->attrs.n : op[1].attrs;
    uint32_t id;

    RP_TRY(rp_program_add_op(b->program, &op->op, &id, err));
    for (size_t k = op->operands; k < operands; k++) {
        if (s->operands.at[k] >= i)
            return rp_err_set(err, RP_FORMAT, "an operand of operation '%s' is not defined",
                              rp_program_text(b->program, op->op.name));
        RP_TRY(rp_program_add_operand(b->program, first + s->operands.at[k], 0, err));
    }
    for (size_t k = op->calls; k < calls; k++)
        RP_TRY(rp_program_add_called(b->program, s->calls.at[k], err));
    for (size_t k = op->attrs; k < attrs; k++)
        RP_TRY(rp_program_add_attr(b->program, s->attrs.at[k], err));
    return RP_OK;
}

static enum rp_code builder_emit(struct rp_program_builder *b, const char *name, uint32_t root,
                                 uint32_t *id, struct rp_err *err)
{
    struct rp_program *p = b->program;
    const struct rp_program_builder_scope *s = b->open;
    uint32_t first = p->nops, string;

    RP_TRY(rp_program_string(p, name, strlen(name), &string, err));
    RP_TRY(rp_program_begin(p, string, id, err));
    for (size_t i = 0; i < s->ops.n; i++)
        RP_TRY(builder_append(b, s, i, first, err));
    if (root >= s->ops.n)
        return rp_err_set(err, RP_FORMAT, "computation '%s': its root is operation %u of %zu", name,
                          root, s->ops.n);
    p->computations.at[*id].root = first + root;
    return RP_OK;
}

uint32_t rp_program_builder_close(struct rp_program_builder *b, const char *name, uint32_t root)
{
    uint32_t id = 0;

    if (b->code == RP_OK)
        builder_keep(b, builder_emit(b, name, root, &id, &b->err));
    rp_program_builder_discard(b);
    return id;
}

/* ---- shapes ---- */

uint32_t rp_program_builder_array(struct rp_program_builder *b, unsigned elem, const int64_t *dims,
                                  size_t rank)
{
    char layout[256] = "{";
    uint32_t string = 0, id = 0;
    size_t n = 1;

    if (elem == RP_ELEM_INVALID || !rp_elem_name(elem) || rank > RP_PROGRAM_BUILDER_RANK) {
        rp_program_builder_fail(b, RP_FORMAT,
                                rank > RP_PROGRAM_BUILDER_RANK ? "too many dimensions in a shape"
                                                               : "unknown element type");
        return 0;
    }
    for (size_t i = 0; i < rank; i++)
        if (dims[i] < 0) {
            rp_program_builder_fail(b, RP_FORMAT, "negative dimension in a shape");
            return 0;
        }
    for (size_t i = rank; i-- > 0;)
        n += (size_t)snprintf(layout + n, sizeof layout - n, "%zu%c", i, i ? ',' : '}');
    enum rp_code code =
        rank ? rp_program_string(b->program, layout, n, &string, builder_err(b)) : RP_OK;
    if (code == RP_OK)
        code = rp_program_array(b->program, elem, dims, NULL, rank, string, &id, builder_err(b));
    builder_keep(b, code);
    return code == RP_OK ? id : 0;
}

uint32_t rp_program_builder_tuple(struct rp_program_builder *b, const uint32_t *parts, size_t n)
{
    uint32_t id = 0;
    enum rp_code code = rp_program_tuple(b->program, parts, n, &id, builder_err(b));

    builder_keep(b, code);
    return code == RP_OK ? id : 0;
}

/* ---- operations ---- */

uint32_t rp_program_builder_op(struct rp_program_builder *b, const struct rp_new_op *given)
{
    struct rp_program_builder_scope *s = b->open;
    struct builder_op op = {.op = *given};

    if (b->code != RP_OK || !s)
        return 0;
    op.operands = (uint32_t)s->operands.n;
    op.calls = (uint32_t)s->calls.n;
    op.attrs = (uint32_t)s->attrs.n;
    builder_keep(b, rp_vec_push(&s->ops, op, &b->err));
    return (uint32_t)s->ops.n - 1;
}

uint32_t rp_program_builder_add(struct rp_program_builder *b, unsigned code, const char *name,
                                uint32_t shape, int64_t value)
{
    struct rp_new_op op = {.code = code, .shape = shape, .value = value};
    const char *opcode = rp_op_info[code].name;

    if (b->code != RP_OK || !b->open)
        return 0;
    builder_keep(b, rp_program_string(b->program, name, strlen(name), &op.name, &b->err));
    builder_keep(b, rp_program_string(b->program, opcode, strlen(opcode), &op.foreign, &b->err));
    return rp_program_builder_op(b, &op);
}

uint32_t rp_program_builder_constant(struct rp_program_builder *b, const char *name, uint32_t shape,
                                     const void *elements, size_t bytes)
{
    struct rp_literal literal = {
        .at = elements, .n = bytes, .shape = shape, .form = RP_LITERAL_RAW};
    int64_t index = (int64_t)b->program->literals.n;

    builder_keep(b, rp_vec_push(&b->program->literals, literal, builder_err(b)));
    return rp_program_builder_add(b, RP_OP_CONSTANT, name, shape, index);
}

void rp_program_builder_operand(struct rp_program_builder *b, uint32_t index)
{
    if (b->code == RP_OK && b->open)
        builder_keep(b, rp_vec_push(&b->open->operands, index, &b->err));
}

void rp_program_builder_call(struct rp_program_builder *b, uint32_t computation)
{
    if (b->code == RP_OK && b->open)
        builder_keep(b, rp_vec_push(&b->open->calls, computation, &b->err));
}

void rp_program_builder_attr(struct rp_program_builder *b, struct rp_attr attr)
{
    if (b->code == RP_OK && b->open)
        builder_keep(b, rp_vec_push(&b->open->attrs, attr, &b->err));
}

enum rp_code rp_program_builder_finish(struct rp_program_builder *b, uint32_t entry,
                                       struct rp_program **out, struct rp_err *err)
{
    *out = NULL;
    if (b->open)
        rp_program_builder_fail(b, RP_BUG, "a computation was not closed");
    if (b->code != RP_OK) {
        if (err)
            *err = b->err;
        return b->code;
    }
    b->program->entry = entry;
    RP_TRY(rp_program_finish(b->program, err));
    RP_TRY(rp_program_validate(b->program, err));
    *out = b->program;
    b->program = NULL;
    return RP_OK;
}
