/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short forms of asynchronous operations in XLA text: "x-start(a), attributes of x", "x-update(s)"
 * and "x-done(s)" for any opcode x that has no such opcodes itself. They are read as async-start,
 * async-update and async-done with a computation that holds the single operation. The operations of
 * a computation are contiguous, so the computation of the single operation is created after the one
 * that contains the start.
 */
#include "formats/hlo/text.h"
#include "program/opcodes.h"

#include <stdio.h>
#include <string.h>

/* The opcode before the ending, or RP_OP_FOREIGN. */
static enum rp_opcode wrapped_opcode(const struct rp_hlo_text *r, struct rp_slice name,
                                     const char *ending, uint32_t *string)
{
    size_t n = strlen(ending);

    if (name.n <= n || memcmp(name.at + name.n - n, ending, n) != 0)
        return RP_OP_FOREIGN;
    *string = rp_strtab_find(&r->p->strings, name.at, name.n - n);
    return *string == UINT32_MAX ? RP_OP_FOREIGN : rp_program_opcode(r->p, *string);
}

uint32_t rp_hlo_async_short(const struct rp_hlo_text *r, struct rp_slice name, uint16_t *code)
{
    static const struct {
        const char *ending;
        enum rp_opcode code;
    } endings[] = {{"-start", RP_OP_ASYNC_START},
                   {"-update", RP_OP_ASYNC_UPDATE},
                   {"-done", RP_OP_ASYNC_DONE}};
    uint32_t string;

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (wrapped_opcode(r, name, endings[i].ending, &string) != RP_OP_FOREIGN) {
            *code = endings[i].code;
            return *code == RP_OP_ASYNC_START ? string : RP_NONE;
        }
    return RP_NONE;
}

/* The result is the second part of what async-start returns. */
static uint32_t async_result_shape(const struct rp_program *p, uint32_t op)
{
    const struct rp_op_shape *s = &p->shapes.at[p->shape.at[op]];

    return s->elem == RP_ELEM_TUPLE && s->n > 1 ? p->parts.at[s->first + 1] : 0;
}

/* Whether an attribute stays with async-start. */
static bool async_start_of(uint32_t key)
{
    return key == RP_ATTR_ASYNC_EXECUTION_THREAD || key == RP_ATTR_CONTROL_PREDECESSORS;
}

enum rp_code rp_hlo_async_defer(struct rp_hlo_text *r, uint32_t op, uint32_t wrapped)
{
    struct rp_program *p = r->p;
    struct rp_hlo_async async = {.opcode = wrapped,
                                 .shape = async_result_shape(p, op),
                                 .op = op,
                                 .attrs = (uint32_t)r->async_attrs.n,
                                 .calls = (uint32_t)r->async_calls.n,
                                 .ncalls = (uint32_t)r->calls.n};
    size_t kept = p->attr_begin.at[op];

    for (size_t i = kept; i < p->attrs.n; i++) {
        if (async_start_of(p->attrs.at[i].key))
            p->attrs.at[kept++] = p->attrs.at[i];
        else
            RP_TRY(rp_vec_push(&r->async_attrs, p->attrs.at[i], r->err));
    }
    p->attrs.n = kept;
    p->attr_begin.at[op + 1] = (uint32_t)kept;
    async.nattrs = (uint32_t)r->async_attrs.n - async.attrs;
    for (size_t i = 0; i < r->calls.n; i++)
        RP_TRY(rp_vec_push(&r->async_calls, r->calls.at[i], r->err));
    r->calls.n = 0;
    async.called = (uint32_t)p->called.n;
    RP_TRY(rp_program_add_called(p, 0, r->err));
    return rp_vec_push(&r->async, async, r->err);
}

static enum rp_code add_wrapped_parameters(struct rp_hlo_text *r, uint32_t op)
{
    uint32_t n = rp_op_operands(r->p, op).n, id;

    r->operands.n = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct rp_new_op parameter = {.code = RP_OP_PARAMETER,
                                      .shape = r->p->shape.at[rp_op_operands(r->p, op).at[i]],
                                      .value = i,
                                      .flags = RP_OPS_IMPLICIT};
        char text[32];
        int len = snprintf(text, sizeof text, "param_%u.%u", i, r->p->nops);

        RP_TRY(rp_program_string(r->p, text, (size_t)len, &parameter.name, r->err));
        RP_TRY(rp_program_add_op(r->p, &parameter, &id, r->err));
        RP_TRY(rp_vec_push(&r->operands, id, r->err));
    }
    return RP_OK;
}

static enum rp_code wrap_operation(struct rp_hlo_text *r, const struct rp_hlo_async *async)
{
    struct rp_program *p = r->p;
    struct rp_new_op op = {.code = rp_program_opcode(p, async->opcode),
                           .foreign = async->opcode,
                           .shape = async->shape,
                           .flags = RP_OPS_IMPLICIT};
    uint32_t name, id;
    char text[48];
    int n = snprintf(text, sizeof text, "async_computation.%u", p->nops);

    if (p->nops >= r->limits.events)
        return rp_err_set(r->err, RP_LIMIT, "more than %llu instructions",
                          (unsigned long long)r->limits.events);
    RP_TRY(rp_program_string(p, text, (size_t)n, &name, r->err));
    RP_TRY(rp_program_begin(p, name, &id, r->err));
    p->called.at[async->called] = id;
    RP_TRY(add_wrapped_parameters(r, async->op));
    n = snprintf(text, sizeof text, "wrapped.%u", p->nops);
    RP_TRY(rp_program_string(p, text, (size_t)n, &op.name, r->err));
    RP_TRY(rp_program_add_op(p, &op, &id, r->err));
    for (size_t i = 0; i < r->operands.n; i++)
        RP_TRY(rp_program_add_operand(p, r->operands.at[i], 0, r->err));
    p->computations.at[p->computations.n - 1].root = id;
    for (uint32_t i = 0; i < async->nattrs; i++)
        RP_TRY(rp_program_add_attr(p, r->async_attrs.at[async->attrs + i], r->err));
    for (uint32_t i = 0; i < async->ncalls; i++)
        RP_TRY(rp_vec_push(&r->calls, r->async_calls.at[async->calls + i], r->err));
    return rp_hlo_text_add_calls(r);
}

enum rp_code rp_hlo_async_flush(struct rp_hlo_text *r)
{
    for (size_t i = 0; i < r->async.n; i++)
        RP_TRY(wrap_operation(r, &r->async.at[i]));
    r->async.n = r->async_attrs.n = r->async_calls.n = 0;
    return RP_OK;
}
