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

/* Cuts out a computation of one side as a separate program. */
static enum rp_code body_cut(const struct rp_level *l, int side, uint32_t computation,
                             struct rp_cut_program *out)
{
    const struct rp_level_side *s = &l->side[side];
    const struct rp_computation *c = &s->flat->computations.at[computation];
    RP_FREED uint8_t *keep = malloc((size_t)c->n + 1);
    struct rp_cut cut = {computation, keep, &c->root, 1, false};

    RP_TRY(rp_err_need(keep, l->err, "comparing loops"));
    memset(keep, 1, (size_t)c->n + 1);
    return rp_program_cut(s->flat, &cut, out, l->err);
}

/* Makes the inputs of such a program from `state`: the arrays of the value with which the
   computation is called, partition after partition. */
static enum rp_code body_arguments(const struct rp_level *l, const struct rp_cut_program *body,
                                   const struct rp_tensors *state, struct rp_tensors *out)
{
    size_t parts = l->search->side[0].partitions, each = state->n / parts, n = body->inputs.n;

    RP_TRY(rp_tensors_new(n * parts, out, l->err));
    for (size_t k = 0; k < parts; k++)
        for (size_t j = 0; j < n; j++) {
            if (body->inputs.at[j].leaf >= each)
                return rp_err_set(l->err, RP_FORMAT, "a call whose operand does not fit");
            out->at[k * n + j] = rp_tensor_keep(state->at[k * each + body->inputs.at[j].leaf]);
        }
    return RP_OK;
}

/* Runs both computations on the same values and finds whether, and where, they differ. */
static enum rp_code compare_bodies(struct rp_level *l, const struct rp_cut_program body[2],
                                   const struct rp_tensors *state, const char *inside,
                                   int64_t iteration, bool *differs)
{
    RP_SCOPED(rp_tensors_release) struct rp_tensors left = {0}, right = {0};
    struct rp_pair_search inner = *l->search;
    size_t parts = inner.side[0].partitions;

    RP_TRY(body_arguments(l, &body[0], state, &left));
    RP_TRY(body_arguments(l, &body[1], state, &right));
    inner.side[0] = (struct rp_trial_part){body[0].program, left.at, body[0].inputs.n, parts};
    inner.side[1] = (struct rp_trial_part){body[1].program, right.at, body[1].inputs.n, parts};
    return rp_level_run(&inner, l, inside, iteration, differs);
}

struct loop {
    struct rp_cut_program body[2], condition;
    struct rp_tensors state;
};

static void loop_release(struct loop *loop)
{
    rp_cut_release(&loop->body[0]);
    rp_cut_release(&loop->body[1]);
    rp_cut_release(&loop->condition);
    rp_tensors_release(&loop->state);
}

/* Runs a computation of the left program on a state. */
static enum rp_code body_run(const struct rp_level *l, const struct rp_cut_program *body,
                             const struct rp_tensors *state, struct rp_tensors *out)
{
    RP_SCOPED(rp_tensors_release) struct rp_tensors arguments = {0};

    RP_TRY(body_arguments(l, body, state, &arguments));
    struct rp_trial_part part = {body->program, arguments.at, body->inputs.n,
                                 l->search->side[0].partitions};
    return rp_trial_once(l->search->on, &part, out, l->err);
}

/* Computes the state after an iteration of the left program, or finds that the loop has ended. */
static enum rp_code loop_next(const struct rp_level *l, struct loop *loop, bool *over)
{
    RP_SCOPED(rp_tensors_release) struct rp_tensors next = {0}, go = {0};

    RP_TRY(body_run(l, &loop->body[0], &loop->state, &next));
    rp_tensors_release(&loop->state);
    loop->state = next;
    next = (struct rp_tensors){0};
    RP_TRY(body_run(l, &loop->condition, &loop->state, &go));
    *over = !go.n || !rp_tensor_integer(go.at[0], 0);
    return RP_OK;
}

static enum rp_code enter_loop(struct rp_level *l, const uint32_t op[2], const char *name,
                               struct rp_trial_cut *start)
{
    struct rp_ids called[2] = {rp_op_called(l->side[0].flat, op[0]),
                               rp_op_called(l->side[1].flat, op[1])};
    RP_SCOPED(loop_release) struct loop loop = {.state = start->outputs};
    bool differs = false, over = false;

    start->outputs = (struct rp_tensors){0};
    for (int k = 0; k < 2; k++)
        RP_TRY(body_cut(l, k, called[k].at[0], &loop.body[k]));
    RP_TRY(body_cut(l, 0, called[0].at[1], &loop.condition));
    for (int64_t i = 0; !differs && !over && i < MOST_LOOPS; i++) {
        RP_TRY(compare_bodies(l, loop.body, &loop.state, name, i, &differs));
        if (!differs)
            RP_TRY(loop_next(l, &loop, &over));
    }
    return RP_OK;
}

static enum rp_code enter_branch(struct rp_level *l, const uint32_t op[2], const char *name,
                                 const struct rp_tensors *operand, size_t which)
{
    RP_SCOPED(loop_release) struct loop loop = {0};
    bool differs;

    for (int k = 0; k < 2; k++)
        RP_TRY(body_cut(l, k, rp_op_called(l->side[k].flat, op[k]).at[which], &loop.body[k]));
    return compare_bodies(l, loop.body, operand, name, RP_ABSENT_I64, &differs);
}

/* The branch that a conditional of the left program takes. */
static size_t branch_taken(const struct rp_level *l, uint32_t op, const struct rp_tensors *index)
{
    size_t n = rp_op_called(l->side[0].flat, op).n;
    size_t which = index->n ? (size_t)rp_tensor_integer(index->at[0], 0) : 0;

    if (index->n && index->at[0]->elem == RP_ELEM_PRED)
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
    RP_SCOPED(rp_trial_cut_release) struct rp_trial_cut first = {0}, second = {0};

    for (int k = 0; k < 2; k++) {
        in[k] = rp_op_operands(l->side[k].flat, op[k]);
        called[k] = rp_op_called(l->side[k].flat, op[k]);
    }
    if (l->depth >= MOST_DEPTH || p->code.at[op[0]] != l->side[1].flat->code.at[op[1]] ||
        called[0].n != called[1].n || in[0].n != in[1].n || !in[0].n)
        return RP_OK;
    bool loop = p->code.at[op[0]] == RP_OP_WHILE && called[0].n == 2;
    if (!loop && p->code.at[op[0]] != RP_OP_CONDITIONAL)
        return RP_OK;
    RP_TRY(rp_level_part_run(l, &l->side[0], in[0].at, 1, &first));
    if (loop)
        return enter_loop(l, op, name, &first);
    size_t which = branch_taken(l, op[0], &first.outputs);
    if (which + 1 >= in[0].n || !same_shape(l, in[0].at[which + 1], in[1].at[which + 1]))
        return RP_OK;
    RP_TRY(rp_level_part_run(l, &l->side[0], in[0].at + which + 1, 1, &second));
    return enter_branch(l, op, name, &second.outputs, which);
}
