/* SPDX-License-Identifier: Apache-2.0 */
/* Checks what every later step takes for granted. Linear in the size of the program. */
#include "program/order.h"
#include "program/structure.h"

static enum rp_code bad(const struct rp_program *p, uint32_t op, struct rp_err *err,
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
            return bad(p, op, err, "has an operand of another computation");
    return RP_OK;
}

static enum rp_code check_op(const struct rp_program *p, const struct rp_computation *c,
                             uint32_t op, struct rp_err *err)
{
    struct rp_ids called = rp_op_called(p, op);

    RP_TRY(check_operands(p, c, op, err));
    for (uint32_t i = 0; i < called.n; i++)
        if (called.at[i] >= p->computations.n)
            return bad(p, op, err, "calls a computation that is not there");
    if (p->code.at[op] == RP_OP_GET_TUPLE_ELEMENT) {
        const struct rp_op_shape *of = &p->shapes.at[p->shape.at[rp_op_operands(p, op).at[0]]];

        if (of->elem == RP_ELEM_TUPLE && (uint64_t)p->value.at[op] >= of->n)
            return bad(p, op, err, "takes a part that its tuple does not have");
    }
    return RP_OK;
}

/* Parameters are 0 to n - 1, each once. */
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
            return bad(p, op, err, "has a number beyond the number of parameters");
        if (seen[number]++)
            return bad(p, op, err, "has the number of another parameter");
    }
    return RP_OK;
}

enum rp_code rp_program_validate(const struct rp_program *p, struct rp_err *err)
{
    struct rp_arena scratch = RP_ARENA_INIT;
    uint8_t *seen = RP_ARENA_NEW(&scratch, uint8_t, (size_t)p->nops + 1);
    enum rp_code code = seen ? RP_OK : rp_err_nomem(err, "checking a program");
    uint32_t *order;

    if (code == RP_OK && !p->computations.n)
        code = rp_err_set(err, RP_FORMAT, "a program without computations");
    for (size_t i = 0; code == RP_OK && i < p->computations.n; i++) {
        const struct rp_computation *c = &p->computations.at[i];

        if (!c->n)
            code = rp_err_set(err, RP_FORMAT, "computation '%s' is empty",
                              rp_program_text(p, c->name));
        for (uint32_t op = c->first; code == RP_OK && op < c->first + c->n; op++)
            code = check_op(p, c, op, err);
        if (code == RP_OK)
            code = check_parameters(p, c, seen, err);
    }
    if (code == RP_OK)
        code = rp_program_call_order(p, &scratch, &order, err);
    rp_arena_release(&scratch);
    return code;
}
