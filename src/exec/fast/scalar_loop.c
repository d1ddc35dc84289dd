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

enum rp_code rp_fast_while_prepare(struct rp_plan *plan, struct rp_node *node, struct rp_err *err)
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

static enum rp_code iterate(const struct rp_eval *e, const struct rp_tape_frame *body,
                            const struct rp_tape_frame *more, char *state, struct rp_err *err)
{
    const struct rp_tape *t = body->tape;
    char next[MOST][16];

    for (size_t turn = 1;; turn++) {
        rp_tape_run(more, 1);
        if (!*(const uint8_t *)rp_tape_result(more, 0))
            return RP_OK;
        if (turn % LOOK == 0)
            RP_TRY(rp_eval_on_time(e, err));
        rp_tape_run(body, 1);
        for (size_t i = 0; i < t->nparams; i++) /* a result may be another parameter */
            memcpy(next[i], rp_tape_result(body, i), 16);
        memcpy(state, next, t->nparams * 16);
    }
}

/* Registers have room for RP_TAPE_LANES elements, the state for 16 bytes each. */
static enum rp_code run_tapes(const struct rp_eval *e, const struct scalar_loop *l, char *state,
                              struct rp_err *err)
{
    struct rp_tape_frame body, more;

    RP_TRY(rp_tape_begin(l->body, &body, err));
    enum rp_code code = rp_tape_begin(l->more, &more, err);
    if (code == RP_OK) {
        for (size_t i = 0; i < l->body->nparams; i++)
            body.reg[i] = more.reg[i] = state + i * 16;
        code = iterate(e, &body, &more, state, err);
        rp_tape_end(&more);
    }
    rp_tape_end(&body);
    return code;
}

enum rp_code rp_fast_while(struct rp_eval *e, const struct rp_node *node,
                           struct rp_tensor *const *in, struct rp_tensor **out, struct rp_err *err)
{
    const struct scalar_loop *l = node->attrs;
    struct rp_tensor *parts[MOST];
    char state[MOST * 16] = {0};
    size_t n = 0;

    if (!l || e->times || e->spans)
        return e->plan->reference[RP_OP_WHILE]->run(e, node, in, out, err);
    for (size_t i = 0; i < in[0]->nparts; i++)
        memcpy(state + i * 16, in[0]->parts[i]->data, in[0]->parts[i]->unit);
    enum rp_code code = run_tapes(e, l, state, err);
    for (; code == RP_OK && n < in[0]->nparts; n++) {
        code = rp_tensor_new(in[0]->parts[n]->elem, NULL, 0, &parts[n], err);
        if (code != RP_OK)
            break;
        memcpy(parts[n]->data, state + n * 16, parts[n]->unit);
    }
    if (code == RP_OK)
        return rp_tensor_tuple(parts, n, out, err);
    while (n-- > 0)
        rp_tensor_drop(parts[n]);
    return code;
}
