/* SPDX-License-Identifier: Apache-2.0 */
/* Enters two loops or branches that differ; loops at the first iteration that differs, when both
   start from the values of the left one. */
#include "base/arena.h"
#include "program/opcodes.h"
#include "replay/level.h"

#include <stdlib.h>
#include <string.h>

#define MOST_DEPTH 8
#define MOST_LOOPS 10000 /* iterations that are looked into */

/* A computation of one side as a separate program, with arguments taken from one value. */
struct body {
    struct rp_cut_program cut;
    struct rp_tensor **arguments;
};

static void body_release(struct body *b)
{
    free(b->arguments);
    rp_cut_release(&b->cut);
}

static enum rp_code body_init(const struct rp_level *l, int side, uint32_t computation,
                              struct body *b)
{
    const struct rp_level_side *s = &l->side[side];
    const struct rp_computation *c = &s->flat->computations.at[computation];
    RP_FREED uint8_t *keep = malloc((size_t)c->n + 1);
    struct rp_cut cut = {computation, keep, &c->root, 1, false};

    *b = (struct body){0};
    RP_TRY(rp_err_need(keep, l->err, "comparing loops"));
    memset(keep, 1, (size_t)c->n + 1);
    RP_TRY(rp_program_cut(s->flat, &cut, &b->cut, l->err));
    b->arguments = calloc(b->cut.inputs.n * l->search->partitions + 1, sizeof *b->arguments);
    return rp_err_need(b->arguments, l->err, "comparing loops");
}

/* state: arrays of the value with which the computation is called, partition after partition. */
static enum rp_code body_arguments(const struct rp_level *l, const struct body *b,
                                   struct rp_tensor *const *state, size_t nstate)
{
    size_t parts = l->search->partitions, each = nstate / parts, n = b->cut.inputs.n;

    for (size_t k = 0; k < parts; k++)
        for (size_t j = 0; j < n; j++) {
            if (b->cut.inputs.at[j].leaf >= each)
                return rp_err_set(l->err, RP_FORMAT, "a call whose operand does not fit");
            b->arguments[k * n + j] = state[k * each + b->cut.inputs.at[j].leaf];
        }
    return RP_OK;
}

/* Runs both computations on the same values and finds whether, and where, they differ. */
static enum rp_code compare_bodies(struct rp_level *l, struct body body[2],
                                   struct rp_tensor *const *state, size_t nstate,
                                   const char *inside, int64_t iteration, bool *differs)
{
    struct rp_pair_search inner = *l->search;

    for (int k = 0; k < 2; k++) {
        RP_TRY(body_arguments(l, &body[k], state, nstate));
        inner.side[k] =
            (struct rp_pair_side){body[k].cut.program, body[k].arguments, body[k].cut.inputs.n};
    }
    return rp_level_run(&inner, l, inside, iteration, differs);
}

struct loop {
    struct body body[2], condition;
    struct rp_tensor **state;
    size_t nstate;
};

/* Computes the state after an iteration of the left program, or finds that the loop has ended. */
static enum rp_code loop_next(const struct rp_level *l, struct loop *loop, bool *over)
{
    const struct rp_pair_search *s = l->search;
    struct rp_tensor **next = NULL, **go = NULL;
    size_t n = 0, ngo = 0;

    RP_TRY(body_arguments(l, &loop->body[0], loop->state, loop->nstate));
    RP_TRY(rp_trial_once(s->on, loop->body[0].cut.program, loop->body[0].arguments,
                         loop->body[0].cut.inputs.n, s->partitions, &next, &n, l->err));
    rp_tensors_drop(loop->state, loop->nstate);
    loop->state = next;
    loop->nstate = n;
    RP_TRY(body_arguments(l, &loop->condition, next, n));
    RP_TRY(rp_trial_once(s->on, loop->condition.cut.program, loop->condition.arguments,
                         loop->condition.cut.inputs.n, s->partitions, &go, &ngo, l->err));
    *over = !ngo || !rp_tensor_integer(go[0], 0);
    rp_tensors_drop(go, ngo);
    return RP_OK;
}

static enum rp_code enter_loop(struct rp_level *l, const uint32_t op[2], const char *name,
                               struct rp_level_part *start)
{
    struct rp_ids called[2] = {rp_op_called(l->side[0].flat, op[0]),
                               rp_op_called(l->side[1].flat, op[1])};
    struct loop loop = {.state = start->outputs, .nstate = start->n};
    bool differs = false, over = false;
    enum rp_code code = RP_OK;

    start->outputs = NULL;
    for (int k = 0; code == RP_OK && k < 2; k++)
        code = body_init(l, k, called[k].at[0], &loop.body[k]);
    if (code == RP_OK)
        code = body_init(l, 0, called[0].at[1], &loop.condition);
    for (int64_t i = 0; code == RP_OK && !differs && !over && i < MOST_LOOPS; i++) {
        code = compare_bodies(l, loop.body, loop.state, loop.nstate, name, i, &differs);
        if (code == RP_OK && !differs)
            code = loop_next(l, &loop, &over);
    }
    rp_tensors_drop(loop.state, loop.nstate);
    body_release(&loop.body[0]);
    body_release(&loop.body[1]);
    body_release(&loop.condition);
    return code;
}

static enum rp_code enter_branch(struct rp_level *l, const uint32_t op[2], const char *name,
                                 const struct rp_level_part *operand, size_t which)
{
    struct body body[2] = {0};
    bool differs;
    enum rp_code code = RP_OK;

    for (int k = 0; code == RP_OK && k < 2; k++)
        code = body_init(l, k, rp_op_called(l->side[k].flat, op[k]).at[which], &body[k]);
    if (code == RP_OK)
        code = compare_bodies(l, body, operand->outputs, operand->n, name, RP_ABSENT_I64, &differs);
    body_release(&body[0]);
    body_release(&body[1]);
    return code;
}

/* The branch that a conditional of the left program takes. */
static size_t branch_taken(const struct rp_level *l, uint32_t op, const struct rp_level_part *index)
{
    size_t n = rp_op_called(l->side[0].flat, op).n;
    size_t which = index->n ? (size_t)rp_tensor_integer(index->outputs[0], 0) : 0;

    if (index->n && index->outputs[0]->elem == RP_ELEM_PRED)
        which = which ? 0 : 1;
    return which < n ? which : n - 1;
}

static bool same_shape(const struct rp_level *l, uint32_t left, uint32_t right)
{
    const struct rp_program *a = l->side[0].flat, *b = l->side[1].flat;

    return rp_pair_shape(a, a->shape.at[left]) == rp_pair_shape(b, b->shape.at[right]);
}

/* Enters two operations that differ, if they call the same kind of computation with the same
   values. */
enum rp_code rp_level_enter(struct rp_level *l, const uint32_t op[2])
{
    const struct rp_program *p = l->side[0].flat;
    struct rp_ids in[2], called[2];
    const char *name = rp_arena_text(l->texts, rp_program_text(p, p->op_name.at[op[0]]));
    struct rp_level_part first = {0}, second = {0};
    enum rp_code code = RP_OK;

    for (int k = 0; k < 2; k++) {
        in[k] = rp_op_operands(l->side[k].flat, op[k]);
        called[k] = rp_op_called(l->side[k].flat, op[k]);
    }
    if (l->depth >= MOST_DEPTH || p->code.at[op[0]] != l->side[1].flat->code.at[op[1]] ||
        called[0].n != called[1].n || in[0].n != in[1].n || !in[0].n)
        return RP_OK;
    if (p->code.at[op[0]] == RP_OP_WHILE && called[0].n == 2) {
        code = rp_level_part_run(l, &l->side[0], in[0].at, 1, &first);
        if (code == RP_OK)
            code = enter_loop(l, op, name, &first);
    } else if (p->code.at[op[0]] == RP_OP_CONDITIONAL) {
        size_t which = 0;

        code = rp_level_part_run(l, &l->side[0], in[0].at, 1, &first);
        if (code == RP_OK)
            which = branch_taken(l, op[0], &first);
        if (code == RP_OK && which + 1 < in[0].n &&
            same_shape(l, in[0].at[which + 1], in[1].at[which + 1]))
            code = rp_level_part_run(l, &l->side[0], in[0].at + which + 1, 1, &second);
        if (code == RP_OK && second.outputs)
            code = enter_branch(l, op, name, &second, which);
    }
    rp_level_part_release(&first);
    rp_level_part_release(&second);
    return code;
}
