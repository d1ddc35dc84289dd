/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the calls depth-first with an explicit stack, since a hostile file may nest calls without
 * limit, and the operands by Kahn's algorithm. Both are linear.
 */
#include "program/order.h"

struct visit {
    uint32_t computation;
    uint32_t next; /* the index in program.called of the next call to follow */
};

enum { WHITE, GREY, BLACK };

/* The calls of a computation are one range of program.called, since its operations are a range. */
static uint32_t calls_begin(const struct rp_program *p, uint32_t c)
{
    return p->called_begin.n ? p->called_begin.at[p->computations.at[c].first] : 0;
}

static uint32_t calls_end(const struct rp_program *p, uint32_t c)
{
    const struct rp_computation *comp = &p->computations.at[c];

    return p->called_begin.n ? p->called_begin.at[comp->first + comp->n] : 0;
}

/* Puts everything reachable from `from` into the order. */
static enum rp_code visit_calls(const struct rp_program *p, uint32_t from, struct visit *stack,
                                uint8_t *color, uint32_t *order, size_t *n, struct rp_err *err)
{
    size_t depth = 0;

    stack[depth++] = (struct visit){from, calls_begin(p, from)};
    color[from] = GREY;
    while (depth) {
        struct visit *top = &stack[depth - 1];

        if (top->next == calls_end(p, top->computation)) {
            color[top->computation] = BLACK;
            order[(*n)++] = top->computation;
            depth--;
            continue;
        }
        uint32_t to = p->called.at[top->next++];
        if (color[to] == GREY)
            return rp_err_set(err, RP_FORMAT, "computation '%s' calls itself",
                              rp_program_text(p, p->computations.at[to].name));
        if (color[to] == WHITE) {
            color[to] = GREY;
            stack[depth++] = (struct visit){to, calls_begin(p, to)};
        }
    }
    return RP_OK;
}

enum rp_code rp_program_call_order(const struct rp_program *p, struct rp_arena *arena,
                                   uint32_t **order, struct rp_err *err)
{
    size_t n = p->computations.n, done = 0;
    struct visit *stack = RP_ARENA_NEW(arena, struct visit, n + 1);
    uint8_t *color = RP_ARENA_NEW(arena, uint8_t, n + 1);

    *order = RP_ARENA_NEW(arena, uint32_t, n + 1);
    RP_TRY(rp_err_need(stack && color && *order, err, "ordering computations"));
    for (uint32_t c = 0; c < n; c++)
        if (color[c] == WHITE)
            RP_TRY(visit_calls(p, c, stack, color, *order, &done, err));
    return RP_OK;
}

static enum rp_code order_by_users(const struct rp_program *p, const struct rp_computation *c,
                                   struct rp_arena *scratch, uint32_t *order, struct rp_err *err)
{
    uint32_t nedges = p->operand_begin.at[c->first + c->n] - p->operand_begin.at[c->first];
    uint32_t *start = RP_ARENA_NEW(scratch, uint32_t, (size_t)c->n + 2);
    uint32_t *users = RP_ARENA_NEW(scratch, uint32_t, (size_t)nedges + 1);
    uint32_t *waits = RP_ARENA_NEW(scratch, uint32_t, (size_t)c->n + 1);
    uint32_t n = 0;

    RP_TRY(rp_err_need(start && users && waits, err, "ordering operations"));
    /* users[start[i] .. start[i + 1]] are the operations that read operation i of the
       computation. */
    uint32_t from = p->operand_begin.at[c->first], to = p->operand_begin.at[c->first + c->n];
    for (uint32_t k = from; k < to; k++)
        start[p->operands.at[k] - c->first + 2]++;
    for (uint32_t i = 2; i <= c->n + 1; i++)
        start[i] += start[i - 1];
    for (uint32_t i = 0; i < c->n; i++) {
        struct rp_ids operands = rp_op_operands(p, c->first + i);

        for (uint32_t k = 0; k < operands.n; k++)
            users[start[operands.at[k] - c->first + 1]++] = i;
    }
    for (uint32_t i = 0; i < c->n; i++) {
        waits[i] = rp_op_operands(p, c->first + i).n;
        if (!waits[i])
            order[n++] = c->first + i;
    }
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = order[k] - c->first;

        for (uint32_t u = start[i]; u < start[i + 1]; u++)
            if (--waits[users[u]] == 0)
                order[n++] = c->first + users[u];
    }
    for (uint32_t i = 0; i < c->n; i++)
        if (waits[i])
            order[n++] = c->first + i;
    return RP_OK;
}

enum rp_code rp_computation_order(const struct rp_program *p, uint32_t computation,
                                  struct rp_arena *scratch, uint32_t *order, struct rp_err *err)
{
    const struct rp_computation *c = &p->computations.at[computation];

    for (uint32_t op = c->first; op < c->first + c->n; op++) {
        struct rp_ids operands = rp_op_operands(p, op);

        for (uint32_t i = 0; i < operands.n; i++)
            if (operands.at[i] >= op)
                return order_by_users(p, c, scratch, order, err);
    }
    for (uint32_t i = 0; i < c->n; i++)
        order[i] = c->first + i;
    return RP_OK;
}
