/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions of StableHLO become computations that are called. A region may use names of the function
 * around it, but a computation may not: such names are found in its text when the statement is
 * read, and become further arguments. Cost: the text of a region is looked at once per level of
 * nesting.
 */
#include "formats/mlir/bytecode.h"
#include "program/opcodes.h"

#include <stdio.h>
#include <string.h>

#define MAX_DEPTH 64

enum rp_code rp_mlir_add_implicit(struct rp_mlir *r, const struct rp_new_op *op,
                                  const uint32_t *operands, size_t n, uint32_t *id)
{
    struct rp_new_op made = *op;
    uint32_t added; /* a copy, because the caller may have id and operand in one place */

    made.flags |= RP_OPS_IMPLICIT;
    if (r->p->nops >= r->limits.events)
        return rp_err_set(r->err, RP_LIMIT, "more than %llu operations",
                          (unsigned long long)r->limits.events);
    RP_TRY(rp_program_add_op(r->p, &made, &added, r->err));
    for (size_t i = 0; i < n; i++)
        RP_TRY(rp_program_add_operand(r->p, operands[i], 0, r->err));
    *id = added;
    return RP_OK;
}

/* ---- arguments ---- */

static enum rp_code parts_of_tuple(struct rp_mlir *r, size_t first, size_t n)
{
    struct rp_new_op op = {.code = RP_OP_PARAMETER};
    uint32_t whole, id;

    uint32_t *parts = RP_ARENA_NEW(&r->p->arena, uint32_t, n + 1);
    RP_TRY(rp_err_need(parts, r->err, "reading a region"));
    for (size_t i = 0; i < n; i++)
        parts[i] = r->args.at[first + i].shape;
    RP_TRY(rp_program_tuple(r->p, parts, n, &op.shape, r->err));
    RP_TRY(rp_mlir_add_implicit(r, &op, NULL, 0, &whole));
    for (size_t i = 0; i < n; i++) {
        struct rp_mlir_arg arg = r->args.at[first + i];

        op = (struct rp_new_op){.code = RP_OP_GET_TUPLE_ELEMENT,
                                .shape = arg.shape,
                                .name = arg.name,
                                .value = (int64_t)i};
        RP_TRY(rp_mlir_add_implicit(r, &op, &whole, 1, &id));
        RP_TRY(rp_mlir_define(r, arg.key, id));
    }
    return RP_OK;
}

enum rp_code rp_mlir_parameters(struct rp_mlir *r, size_t first, size_t n, bool tuple)
{
    if (tuple)
        return parts_of_tuple(r, first, n);
    for (size_t i = 0; i < n; i++) {
        struct rp_mlir_arg arg = r->args.at[first + i];
        struct rp_new_op op = {
            .code = RP_OP_PARAMETER, .name = arg.name, .shape = arg.shape, .value = (int64_t)i};
        uint32_t id;

        if (r->p->nops >= r->limits.events)
            return rp_err_set(r->err, RP_LIMIT, "more than %llu operations",
                              (unsigned long long)r->limits.events);
        RP_TRY(rp_program_add_op(r->p, &op, &id, r->err));
        RP_TRY(rp_mlir_define(r, arg.key, id));
    }
    return RP_OK;
}

/* ---- queueing ---- */

enum rp_code rp_mlir_capture(struct rp_mlir *r, uint32_t key, uint32_t name)
{
    uint64_t slot = key < r->op_of.n ? r->op_of.at[key] : 0;
    uint32_t op = (uint32_t)slot;

    if ((slot >> 32) != r->p->computations.n)
        return RP_OK;
    while (r->seen.n <= key)
        RP_TRY(rp_vec_push(&r->seen, 0, r->err));
    if (r->seen.at[key] == r->statements)
        return RP_OK;
    r->seen.at[key] = r->statements;
    return rp_vec_push(&r->outside, ((struct rp_mlir_arg){key, name, r->p->shape.at[op], op}),
                       r->err);
}

/* Finds the names of the function around it that the text uses, each once per statement. */
static enum rp_code find_outside(struct rp_mlir *r, const char *at, const char *end)
{
    for (; at < end; at++) {
        const char *from = at + 1;

        if (*at == '"')
            at = rp_mlir_string_end(r, at) - 1;
        if (*at != '%')
            continue;
        while (at + 1 < end && rp_mlir_word_char(at[1]))
            at++;
        uint32_t name = rp_strtab_find(&r->p->strings, from, (size_t)(at + 1 - from));
        RP_TRY(rp_mlir_capture(r, name, name));
    }
    return RP_OK;
}

enum rp_code rp_mlir_queue(struct rp_mlir *r, struct rp_mlir_region region)
{
    region.depth = r->depth + 1;
    if (region.depth > MAX_DEPTH)
        return RP_MLIR_FAIL(r, region.at, "regions nested too deep");
    return rp_vec_push(&r->regions, region, r->err);
}

enum rp_code rp_mlir_queue_region(struct rp_mlir *r)
{
    const char *to = rp_mlir_bracket_end(r, r->at), *at = r->at;

    if (!to)
        return RP_MLIR_FAIL(r, at, "a region that is not closed");
    RP_TRY(find_outside(r, at + 1, to));
    r->at = to;
    return rp_mlir_queue(r, (struct rp_mlir_region){.at = at + 1});
}

/* ---- reading ---- */

enum rp_code rp_mlir_region_arguments(struct rp_mlir *r, const struct rp_mlir_region *region)
{
    if (r->bytecode)
        return rp_bc_region_arguments(r, region->number);
    r->at = region->at;

    /* Reads "^bb0(%a: type)" into r->args, if it is there. */
    rp_mlir_space(r);
    if (r->at >= r->end || *r->at != '^')
        return RP_OK;
    r->at++;
    rp_mlir_word(r);
    return r->at < r->end && *r->at == '(' ? rp_mlir_arguments(r) : RP_OK;
}

/* Joins own arguments and captured values to one list. */
static enum rp_code join_arguments(struct rp_mlir *r, struct rp_mlir_region *region)
{
    uint32_t first = (uint32_t)r->args.n;

    for (uint32_t i = 0; i < region->nargs; i++)
        RP_TRY(rp_vec_push(&r->args, r->args.at[region->args + i], r->err));
    for (uint32_t i = 0; i < region->noutside; i++)
        RP_TRY(rp_vec_push(&r->args, r->args.at[region->outside + i], r->err));
    region->args = first;
    region->nargs += region->noutside;
    return RP_OK;
}

/* The operation that computed a captured value, through however many regions it was handed on. */
static uint32_t origin_of(const struct rp_mlir *r, uint32_t op)
{
    uint32_t outside;

    while ((outside = rp_map_get(&r->origins, op)) != RP_NONE)
        op = outside; /* always an earlier one */
    return op;
}

/* Repeats an operation of the enclosing function with all that it needs: functions of reductions
   and sorts have no parameters for captured values, which are constants there. */
static enum rp_code clone_op(struct rp_mlir *r, uint32_t captured, unsigned depth, uint32_t *out)
{
    struct rp_program *p = r->p;
    uint32_t op = origin_of(r, captured);
    struct rp_new_op made = {.code = p->code.at[op],
                             .foreign = p->foreign.at[op],
                             .shape = p->shape.at[op],
                             .name = p->op_name.at[op],
                             .value = p->value.at[op]};
    uint32_t ids[8], first = p->operand_begin.at[op], n = rp_op_operands(p, op).n, nattrs;

    if (depth > 8 || n > 8 || made.code == RP_OP_PARAMETER || rp_op_called(p, op).n)
        return rp_err_set(r->err, RP_UNSUPPORTED,
                          "'%%%s' is used inside of a region that takes no values from outside",
                          rp_program_text(p, p->op_name.at[op]));
    for (uint32_t i = 0; i < n; i++)
        RP_TRY(clone_op(r, p->operands.at[first + i], depth + 1, &ids[i]));
    rp_op_attrs(p, op, &nattrs);
    uint32_t attr = p->attr_begin.at[op];
    RP_TRY(rp_mlir_add_implicit(r, &made, ids, n, out));
    for (uint32_t i = 0; i < nattrs; i++)
        RP_TRY(rp_program_add_attr(p, p->attrs.at[attr + i], r->err));
    return RP_OK;
}

static enum rp_code clone_captured(struct rp_mlir *r, const struct rp_mlir_region *region)
{
    for (uint32_t i = 0; i < region->noutside; i++) {
        struct rp_mlir_arg arg = r->args.at[region->outside + i];
        uint32_t id;

        RP_TRY(clone_op(r, arg.op, 0, &id));
        RP_TRY(rp_mlir_define(r, arg.key, id));
    }
    return RP_OK;
}

/* Makes the function of "applies stablehlo.add": two scalars and one operation. */
static enum rp_code add_reducer(struct rp_mlir *r, const struct rp_mlir_region *region)
{
    const char *dot = memrchr(region->applies.at, '.', region->applies.n);
    const char *name = dot ? dot + 1 : region->applies.at;
    size_t n = (size_t)(region->applies.at + region->applies.n - name);
    struct rp_new_op op = {.code = RP_OP_PARAMETER, .shape = region->element};
    uint32_t ends[2], id;

    for (int i = 0; i < 2; i++) {
        op.value = i;
        RP_TRY(rp_mlir_add_implicit(r, &op, NULL, 0, &ends[i]));
    }
    op = (struct rp_new_op){.shape = region->element};
    RP_TRY(rp_program_string(r->p, name, n, &op.foreign, r->err));
    op.code = rp_program_opcode(r->p, op.foreign);
    RP_TRY(rp_mlir_add_implicit(r, &op, ends, 2, &id));
    r->p->computations.at[r->p->computations.n - 1].root = id;
    return RP_OK;
}

static enum rp_code read_region(struct rp_mlir *r, struct rp_mlir_region region)
{
    char text[32];
    uint32_t name, id;
    int n = snprintf(text, sizeof text, "region_%zu", r->next_region - 1);

    RP_TRY(rp_program_string(r->p, text, (size_t)n, &name, r->err));
    RP_TRY(rp_program_begin(r->p, name, &id, r->err));
    r->p->called.at[region.called] = id;
    if (!region.at)
        return add_reducer(r, &region);
    r->depth = region.depth;

    /* Takes the arguments that the region names itself, if it does. */
    size_t first = r->args.n;
    RP_TRY(rp_mlir_region_arguments(r, &region));
    if (r->at < r->end && *r->at == ':')
        r->at++;
    if (r->args.n != first) {
        region.args = (uint32_t)first;
        region.nargs = (uint32_t)(r->args.n - first);
    }
    r->carried.n = 0;
    if (!region.tuple) {
        RP_TRY(rp_mlir_parameters(r, region.args, region.nargs, false));
        RP_TRY(clone_captured(r, &region));
        return r->bytecode ? rp_bc_block(r, region.number) : rp_mlir_block(r);
    }
    RP_TRY(join_arguments(r, &region));
    RP_TRY(rp_mlir_parameters(r, region.args, region.nargs, region.nargs != 1));

    /* The parameters that stand for captured values. */
    r->carried.n = 0;
    for (uint32_t i = 0; i < region.noutside; i++) {
        struct rp_mlir_arg arg = r->args.at[region.outside + i];
        uint32_t inside = (uint32_t)r->op_of.at[arg.key];

        RP_TRY(rp_map_put(&r->origins, inside, arg.op, r->err));
        if (region.carry)
            RP_TRY(rp_vec_push(&r->carried, inside, r->err));
    }
    return r->bytecode ? rp_bc_block(r, region.number) : rp_mlir_block(r);
}

enum rp_code rp_mlir_read_regions(struct rp_mlir *r)
{
    const char *behind = r->at;

    while (r->next_region < r->regions.n)
        RP_TRY(read_region(r, r->regions.at[r->next_region++]));
    RP_TRY(rp_mlir_set_late(r));
    r->at = behind;
    r->carried.n = 0;
    r->depth = 0;
    return RP_OK;
}
