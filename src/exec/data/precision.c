/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks back from each output over its inputs; called computations count as a whole. An operation
 * that only moves values, or has an exact result, removes no bits; a conversion does if its result
 * is narrower than its operand. Cost: operations times outputs at most.
 */
#include "exec/data/signature.h"

#include "exec/data/compare.h"
#include "program/dot_algorithm.h"
#include "program/floats.h"
#include "program/opcodes.h"

#include <stdlib.h>
#include <string.h>

struct precision_ctx {
    const struct rp_program *p;
    uint32_t *seen, *stack; /* by operation: the last output that reached it */
    uint32_t stamp;
    size_t n;
    unsigned narrowest;
};

static bool computes(const struct rp_program *p, uint32_t op)
{
    struct rp_ids in = rp_op_operands(p, op);
    unsigned to = p->shapes.at[p->shape.at[op]].elem;

    switch (p->code.at[op]) {
    case RP_OP_CONVERT:
        return in.n == 1 &&
               rp_elem_mantissa(to) < rp_elem_mantissa(p->shapes.at[p->shape.at[in.at[0]]].elem);
    case RP_OP_SELECT:
    case RP_OP_COPY:
    case RP_OP_ABS:
    case RP_OP_NEGATE:
    case RP_OP_MAXIMUM:
    case RP_OP_MINIMUM:
    case RP_OP_CLAMP:
    case RP_OP_BITCAST_CONVERT:
    case RP_OP_REAL:
    case RP_OP_IMAG:
    case RP_OP_COMPLEX:
        return false;
    case RP_OP_SCATTER:
    case RP_OP_ALL_REDUCE:
        return true;
    default:
        break;
    }
    switch (rp_op_info[p->code.at[op]].class_) {
    case RP_CLASS_ELEMENT:
    case RP_CLASS_REDUCE:
    case RP_CLASS_DOT:
    case RP_CLASS_CONV:
    case RP_CLASS_RANDOM:
    case RP_CLASS_LINALG:
    case RP_CLASS_FOREIGN:
        return true;
    default:
        return false;
    }
}

static void precision_reach(struct precision_ctx *w, uint32_t op)
{
    if (op < w->p->code.n && w->seen[op] != w->stamp) {
        w->seen[op] = w->stamp;
        w->stack[w->n++] = op;
    }
}

/* The type of a result, or the narrower one to which a product rounds its operands; TF32 has as
   many bits of mantissa as f16. */
static unsigned precision_elem(const struct rp_program *p, uint32_t op)
{
    const struct rp_attr *word =
        p->code.at[op] == RP_OP_DOT ? rp_op_attr(p, op, RP_ATTR_ALGORITHM) : NULL;
    const struct rp_dot_algorithm *a =
        word && word->type == RP_VALUE_WORD ? rp_dot_algorithm_find(word->at, word->n) : NULL;
    unsigned elem = p->shapes.at[p->shape.at[op]].elem;

    if (!a || a->products > 1 || elem != RP_ELEM_F32)
        return elem;
    return !strcmp(a->operands, "bf16")                                  ? RP_ELEM_BF16
           : !strcmp(a->operands, "tf32") || !strcmp(a->operands, "f16") ? RP_ELEM_F16
                                                                         : elem;
}

static unsigned precision_of(struct precision_ctx *w, uint32_t from)
{
    w->stamp++;
    w->narrowest = RP_ELEM_INVALID;
    precision_reach(w, from);
    while (w->n) {
        uint32_t op = w->stack[--w->n];
        struct rp_ids in = rp_op_operands(w->p, op), called = rp_op_called(w->p, op);

        unsigned elem = precision_elem(w->p, op);

        if ((rp_elem_is_float(elem) || rp_elem_is_complex(elem)) && computes(w->p, op) &&
            (w->narrowest == RP_ELEM_INVALID ||
             rp_elem_mantissa(elem) < rp_elem_mantissa(w->narrowest)))
            w->narrowest = elem;

        for (uint32_t i = 0; i < in.n; i++)
            precision_reach(w, in.at[i]);
        for (uint32_t i = 0; i < called.n; i++) {
            const struct rp_computation *c = &w->p->computations.at[called.at[i]];

            for (uint32_t k = 0; k < c->n; k++)
                precision_reach(w, c->first + k);
        }
    }
    return w->narrowest;
}

enum rp_code rp_precision_find(const struct rp_program *p, const struct rp_signature *sig,
                               struct rp_arena *arena, const uint8_t **out, struct rp_err *err)
{
    struct precision_ctx w = {.p = p,
                              .seen = calloc(p->code.n + 1, sizeof *w.seen),
                              .stack = calloc(p->code.n + 1, sizeof *w.stack)};
    uint8_t *list = RP_ARENA_NEW(arena, uint8_t, sig->nout + 1);
    enum rp_code code = RP_OK;

    if (!w.seen || !w.stack || !list)
        code = rp_err_nomem(err, "looking at precision");
    for (size_t i = 0; code == RP_OK && i < sig->nout; i++)
        list[i] =
            (uint8_t)(i && sig->out[i].op == sig->out[i - 1].op ? list[i - 1]
                                                                : precision_of(&w, sig->out[i].op));
    free(w.seen);
    free(w.stack);
    *out = list;
    return code;
}
