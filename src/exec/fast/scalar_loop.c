/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops whose state is a few scalars: the body and the condition become tapes, which run on
 * registers without making a value. The condition of any other loop becomes a tape, too, if it
 * reads only scalars. All other loops, and those whose operations are timed, are evaluated node by
 * node.
 */
#include "exec/eval/tape.h"
#include "exec/fast/kernels.h"
#include "program/opcodes.h"

#include <stdlib.h>

#define MOST 64   /* numbers in the state */
#define LOOK 1024 /* iterations between two checks of the time limit */

struct scalar_loop {
    struct rp_tape *body, *more;
};

static bool fits(const struct scalar_loop *l, const struct rp_value_shape *state)
{
    if (l->more->nparams != state->nparts || l->body->nparams != state->nparts ||
        l->body->nresults != state->nparts || l->more->nresults != 1 ||
        l->more->regs[l->more->results[0]].elem != RP_ELEM_PRED)
        return false;
    for (uint32_t i = 0; i < state->nparts; i++)
        if (l->body->regs[l->body->results[i]].elem != state->parts[i]->elem)
            return false;
    return true;
}

RP_PREPARE(rp_fast_while_prepare)
{
    const struct rp_value_shape *state = rp_node_operand(plan, node, 0);
    struct rp_err ignored = RP_ERR_INIT;

    RP_TRY(rp_while_prepare(plan, node, err));
    if (state->elem != RP_ELEM_TUPLE)
        return RP_OK;
    struct scalar_loop *l = RP_NODE_NEW(plan, struct scalar_loop);
    RP_TRY(rp_err_need(l, err, "planning"));
    enum rp_code code = rp_tape_new(plan, node->called[1], false, &l->more, &ignored);
    if (code == RP_OK && l->more->nparams == state->nparts && l->more->nresults == 1 &&
        l->more->regs[l->more->results[0]].elem == RP_ELEM_PRED)
        node->called[1]->tape = l->more;
    for (uint32_t i = 0; i < state->nparts; i++)
        if (state->parts[i]->elem == RP_ELEM_TUPLE || state->parts[i]->rank)
            return RP_OK;
    if (code == RP_OK && state->nparts <= MOST)
        code = rp_tape_new(plan, node->called[0], false, &l->body, &ignored);
    if (code == RP_NOMEM)
        return rp_err_nomem(err, "planning");
    if (!l->body)
        return RP_OK;
    if (code == RP_OK && fits(l, state))
        node->attrs = l;
    return RP_OK;
}

/* X(opcode, direction, element type, type, type of the result, expression): operations that are so
   frequent that they run here, without a call. They give what their lanes give. */
#define COMPARISONS(X, elem, type)                     \
    X(COMPARE, RP_CMP_EQ, elem, type, uint8_t, x == y) \
    X(COMPARE, RP_CMP_NE, elem, type, uint8_t, x != y) \
    X(COMPARE, RP_CMP_GE, elem, type, uint8_t, x >= y) \
    X(COMPARE, RP_CMP_GT, elem, type, uint8_t, x > y)  \
    X(COMPARE, RP_CMP_LE, elem, type, uint8_t, x <= y) \
    X(COMPARE, RP_CMP_LT, elem, type, uint8_t, x < y)
#define FREQUENT(X)                                \
    COMPARISONS(X, S32, int32_t)                   \
    COMPARISONS(X, F32, float)                     \
    X(ADD, 0, S32, uint32_t, uint32_t, x + y)      \
    X(SUBTRACT, 0, S32, uint32_t, uint32_t, x - y) \
    X(MULTIPLY, 0, S32, uint32_t, uint32_t, x *y)  \
    X(ADD, 0, F32, float, float, x + y)            \
    X(SUBTRACT, 0, F32, float, float, x - y)       \
    X(MULTIPLY, 0, F32, float, float, x *y)        \
    X(DIVIDE, 0, F32, float, float, x / y)         \
    X(AND, 0, PRED, uint8_t, uint8_t, x &y)        \
    X(OR, 0, PRED, uint8_t, uint8_t, x | y)        \
    X(XOR, 0, PRED, uint8_t, uint8_t, x ^ y)
#define KIND(opcode, direction, elem) kind_##opcode##_##direction##_##elem
enum kind {
    CALL,
#define NAME(opcode, direction, elem, type, to, expr) KIND(opcode, direction, elem),
    FREQUENT(NAME)
#undef NAME
};

static const struct {
    uint16_t opcode;
    uint8_t direction, elem;
} frequent[] = {{RP_OP_COUNT, 0, 0},
#define ROW(opcode, direction, elem, type, to, expr) {RP_OP_##opcode, direction, RP_ELEM_##elem},
                FREQUENT(ROW)
#undef ROW
};

static enum kind kind_of(const struct rp_lane *lane)
{
    for (unsigned i = 1; i < sizeof frequent / sizeof *frequent; i++) {
        bool compares = frequent[i].opcode == RP_OP_COMPARE;
        struct rp_lane like = {.from = frequent[i].elem,
                               .to = compares ? RP_ELEM_PRED : frequent[i].elem,
                               .direction = frequent[i].direction};

        if (lane->to == like.to && lane->direction == like.direction &&
            rp_lane_find(frequent[i].opcode, false, &like) && like.fn == lane->fn)
            return (enum kind)i;
    }
    return CALL;
}

/* An operation whose registers are places in memory. */
struct bound {
    enum kind kind;
    rp_lane_fn *fn;
    const struct rp_lane *lane;
    void *to;
    const void *a, *b, *c;
};

static void bind(const struct rp_tape_frame *f, struct bound *out)
{
    for (size_t i = 0; i < f->tape->nops; i++) {
        const struct rp_tape_op *op = &f->tape->ops[i];

        out[i] = (struct bound){kind_of(&op->lane),
                                op->lane.fn,
                                &op->lane,
                                f->reg[op->to],
                                f->reg[op->a],
                                op->b == RP_NONE ? NULL : f->reg[op->b],
                                op->c == RP_NONE ? NULL : f->reg[op->c]};
    }
}

static inline void run_bound(const struct bound *at, const struct bound *end)
{
    for (; at < end; at++)
        switch (at->kind) {
#define RUN(opcode, direction, elem, type, result, expr)         \
    case KIND(opcode, direction, elem): {                        \
        type x = *(const type *)at->a, y = *(const type *)at->b; \
                                                                 \
        *(result *)at->to = (result)(expr);                      \
        break;                                                   \
    }
            FREQUENT(RUN)
#undef RUN
        default:
            at->fn(at->lane, 1, at->to, at->a, at->b, at->c);
        }
}

/* Whether the operation that makes result i of the body may put it where parameter i is: nothing
   reads the parameter after it, and neither is another result. */
static bool replaces_parameter(const struct rp_tape *t, size_t i)
{
    uint32_t made = t->results[i];
    bool after = false;

    for (size_t k = 0; k < t->nresults; k++)
        if (k != i && (t->results[k] == made || t->results[k] == i))
            return false;
    for (size_t k = 0; k < t->nops; k++) {
        const struct rp_tape_op *op = &t->ops[k];

        if (after && (op->a == i || op->b == i || op->c == i))
            return false;
        after |= op->to == made;
    }
    return after;
}

static inline void move_scalar(void *to, const void *from, size_t unit)
{
    switch (
        unit) { /* as the operation wrote it, because the processor would wait for other sizes */
    case 1:
        memcpy(to, from, 1);
        break;
    case 4:
        memcpy(to, from, 4);
        break;
    case 8:
        memcpy(to, from, 8);
        break;
    default:
        memcpy(to, from, unit);
    }
}

struct moved {
    void *to;
    const void *from;
    size_t unit;
};

/* Registers have room for RP_TAPE_LANES elements, the state for 16 bytes each. */
static enum rp_code run_tapes(const struct rp_eval *e, const struct scalar_loop *l, char *state,
                              struct rp_err *err)
{
    RP_SCOPED(rp_tape_end) struct rp_tape_frame body = {0}, more = {0};
    RP_FREED struct bound *ops = calloc(l->body->nops + l->more->nops + 1, sizeof *ops);
    struct moved moves[MOST];
    char next[MOST][16];
    size_t nmoves = 0;

    RP_TRY(rp_err_need(ops, err, "evaluating"));
    RP_TRY(rp_tape_begin(l->body, &body, err));
    RP_TRY(rp_tape_begin(l->more, &more, err));
    for (size_t i = 0; i < l->body->nparams; i++)
        body.reg[i] = more.reg[i] = state + i * 16;
    for (size_t i = 0; i < l->body->nparams; i++) {
        if (replaces_parameter(l->body, i))
            body.reg[l->body->results[i]] = state + i * 16;
        else if (l->body->results[i] != i)
            moves[nmoves++] = (struct moved){state + i * 16, body.reg[l->body->results[i]],
                                             l->body->regs[i].unit};
    }
    struct bound *test = ops + l->body->nops, *end = test + l->more->nops;
    bind(&body, ops);
    bind(&more, test);
    const uint8_t *on = rp_tape_result(&more, 0);
    for (size_t turn = 1;; turn++) {
        run_bound(test, end);
        if (!*on)
            return RP_OK;
        if (turn % LOOK == 0)
            RP_TRY(rp_eval_on_time(e, err));
        run_bound(ops, test);
        for (size_t i = 0; i < nmoves; i++) /* a result may be another parameter */
            move_scalar(next[i], moves[i].from, moves[i].unit);
        for (size_t i = 0; i < nmoves; i++)
            move_scalar(moves[i].to, next[i], moves[i].unit);
    }
}

RP_KERNEL(rp_fast_while)
{
    const struct scalar_loop *l = node->attrs;
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};
    char state[MOST * 16] = {0};

    if (!l || e->times || e->spans)
        return e->plan->reference[RP_OP_WHILE]->run(e, node, in, out, err);
    for (size_t i = 0; i < in[0]->nparts; i++)
        memcpy(state + i * 16, in[0]->parts[i]->data, in[0]->parts[i]->unit);
    RP_TRY(run_tapes(e, l, state, err));
    RP_TRY(rp_tensors_new(in[0]->nparts, &parts, err));
    for (size_t i = 0; i < parts.n; i++) {
        RP_TRY(rp_tensor_new(in[0]->parts[i]->elem, NULL, 0, &parts.at[i], err));
        memcpy(parts.at[i]->data, state + i * 16, parts.at[i]->unit);
    }
    return rp_node_give(node, &parts, out, err);
}
