/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lowers loops and conditionals of TensorFlow that call functions. A loop's condition and body
 * become computations over one tuple. Both functions of a conditional are lowered in place, and the
 * results of one are selected: without side effects this gives the same values, and the shapes must
 * be equal anyway. Lists of tensors, which loops fill, are arrays with one more dimension. A list
 * may be created before the shape of its elements is known: the loop's body is then lowered once to
 * find out, discarded, and lowered again. Outputs of functions are in the arena, because functions
 * call functions, and 64 outputs would take 19 kB of the stack.
 */
#include "base/scope.h"
#include "lower/inner.h"
#include "program/opcodes.h"

#include <stdio.h>
#include <string.h>

static bool same_type(const struct rp_lower_value *a, const struct rp_lower_value *b)
{
    return a->elem == b->elem && a->rank == b->rank &&
           (!a->rank || !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims));
}

/* ---- conditionals ---- */

RP_LOWER(choose)
{
    struct rp_lower_value *other = RP_ARENA_NEW(&l->arena, struct rp_lower_value, RP_LOWER_OUTPUTS);
    size_t n = 0;

    RP_TRY(rp_err_need(other, l->err, "lowering a condition"));
    if (in->rank)
        return rp_lower_misfit(l, node, "the condition is not a scalar");
    RP_TRY(rp_lower_call(l, node, "then_branch", in + 1, nin - 1, out, nout));
    RP_TRY(rp_lower_call(l, node, "else_branch", in + 1, nin - 1, other, &n));
    struct rp_lower_value pred = rp_lower_convert(l, in, RP_ELEM_PRED);
    for (size_t i = 0; i < *nout; i++) {
        if (n != *nout || !same_type(&out[i], &other[i]))
            return rp_lower_refuse(l, node, "the two functions return different shapes");
        struct rp_lower_value wide =
            out[i].rank ? rp_lower_spread(l, &pred, NULL, out[i].dims, out[i].rank) : pred;
        out[i] = rp_lower_select(l, &wide, &out[i], &other[i]);
    }
    return RP_OK;
}

/* Both sides of a switch are computed; the operator that merges them takes one. */

RP_LOWER(switch)
{
    int64_t sides = node->op.at[0] == '_' ? rp_lower_attr_int(node, "num_outs", 0) : 2;

    if (in[1].rank || sides < 1 || sides > RP_LOWER_OUTPUTS)
        return rp_lower_misfit(l, node, "the side is not a scalar, or there are too many");
    *nout = (size_t)sides;
    for (int64_t i = 0; i < sides; i++) {
        struct rp_lower_guard guard = {.which = in[1], .side = i, .up = in->guard, .depth = 1};

        if (guard.up)
            guard.depth += l->guards.at[guard.up - 1].depth;
        RP_TRY(rp_vec_push(&l->guards, guard, l->err));
        out[i] = *in;
        out[i].guard = (uint32_t)l->guards.n;
    }
    return RP_OK;
}

RP_LOWER(merge)
{
    *nout = 2;
    for (size_t i = 0; i < nin; i++)
        if (!in[i].guard)
            return rp_lower_refuse(l, node, "no switch decides which input it takes");
    const struct rp_lower_guard *first = &l->guards.at[in->guard - 1];
    struct rp_lower_value which = rp_lower_convert(l, &first->which, RP_ELEM_S32);
    out[0] = in[0];
    out[1] = rp_lower_scalar(l, RP_ELEM_S32, 0);
    for (size_t i = 1; i < nin; i++) {
        const struct rp_lower_guard *guard = &l->guards.at[in[i].guard - 1];
        if (guard->which.id != first->which.id || guard->up != first->up ||
            guard->side == first->side || !same_type(&in[i], in))
            return rp_lower_refuse(l, node, "its inputs are not the sides of one switch");
        struct rp_lower_value number = rp_lower_scalar(l, RP_ELEM_S32, (double)guard->side);
        struct rp_lower_value taken = rp_lower_compare(l, "EQ", &which, &number);
        number = rp_lower_scalar(l, RP_ELEM_S32, (double)i);
        out[1] = rp_lower_select(l, &taken, &number, &out[1]);
        if (in->rank)
            taken = rp_lower_spread(l, &taken, NULL, in->dims, in->rank);
        out[0] = rp_lower_select(l, &taken, &in[i], &out[0]);
    }
    out[0].guard = out[1].guard = first->up;
    return RP_OK;
}

/* ---- loops ---- */

static struct rp_lower_value make_tuple(struct rp_lower *l, const struct rp_lower_value *v,
                                        size_t n)
{
    struct rp_lower_value tuple =
        rp_lower_like(l, RP_ELEM_F32, NULL, 0); /* only its number counts */

    rp_lower_begin_tuple(l, &tuple, RP_OP_TUPLE, v, n);
    for (size_t i = 0; i < n; i++)
        rp_lower_operand(l, &v[i]);
    return tuple;
}

static void take_parts(struct rp_lower *l, const struct rp_lower_value *tuple,
                       struct rp_lower_value *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool open = v[i].open;

        v[i] = rp_lower_like(l, v[i].elem, v[i].dims, v[i].rank);
        v[i].open = open;
        rp_lower_part(l, &v[i], tuple, i);
    }
}

/* Takes over the element shape of a list that the loop body found. */
static bool learn_list_shape(struct rp_lower_value *state, const struct rp_lower_value *made,
                             bool *learned)
{
    if (!state->open || made->open || made->elem != state->elem || !made->rank ||
        made->dims[0] != state->dims[0])
        return false;
    *state = *made;
    state->id = 0;
    *learned = true;
    return true;
}

/* A part of a loop, over the parts of a tuple, in the innermost computation. */
struct loop {
    const struct rp_lower_node *node;
    rp_lower_part_fn *part;
    const void *of;
    struct rp_lower_value *state;
    size_t n;
};

/* If it reveals the shapes of list elements, it must be lowered again. */
static enum rp_code lower_part_of_loop(struct rp_lower *l, const struct loop *loop, bool body,
                                       bool *learned, struct rp_lower_value *root)
{
    size_t n = loop->n, count = 0, room = n > RP_LOWER_OUTPUTS ? n : RP_LOWER_OUTPUTS;
    struct rp_lower_value *v = RP_ARENA_NEW(&l->arena, struct rp_lower_value, n + 1);
    struct rp_lower_value *made RP_FREED = calloc(room, sizeof *made);
    struct rp_lower_value tuple = rp_lower_like(l, RP_ELEM_F32, NULL, 0);

    RP_TRY(rp_err_need(v && made, l->err, "lowering a loop"));
    memcpy(v, loop->state, n * sizeof *v);
    rp_lower_begin_tuple(l, &tuple, RP_OP_PARAMETER, v, n);
    take_parts(l, &tuple, v, n);
    RP_TRY(loop->part(l, loop->node, loop->of, body, v, n, made, &count));
    if (!body) {
        if (count != 1 || made[0].rank)
            return rp_lower_misfit(l, loop->node, "the condition is not a scalar");
        struct rp_lower_value pred = rp_lower_convert(l, &made[0], RP_ELEM_PRED);
        *root = rp_lower_unary(l, RP_OP_COPY, &pred);
        return RP_OK;
    }
    for (size_t i = 0; i < n; i++)
        if (count != n || (!learn_list_shape(&loop->state[i], &made[i], learned) &&
                           !same_type(&made[i], &loop->state[i])))
            return rp_lower_refuse(l, loop->node,
                                   "a value changes its shape from one iteration to the next");
    *root = make_tuple(l, made, n);
    return RP_OK;
}

/* Does the same as a computation of its own; RP_NONE if it must be lowered again. */
static enum rp_code lower_loop_computation(struct rp_lower *l, const struct loop *loop, bool body,
                                           uint32_t *computation)
{
    struct rp_lower_value root = {0};
    bool learned = false;
    char name[32];
    uint32_t outer = rp_lower_open(l);
    enum rp_code code = lower_part_of_loop(l, loop, body, &learned, &root);

    *computation = RP_NONE;
    if (code != RP_OK || learned) {
        rp_lower_discard(l, outer);
        return code;
    }
    snprintf(name, sizeof name, "loop_%u", ++l->values);
    *computation = rp_lower_close(l, name, &root, outer);
    return RP_OK;
}

enum rp_code rp_lower_repeat(struct rp_lower *l, const struct rp_lower_node *node,
                             rp_lower_part_fn *part, const void *of, struct rp_lower_value *state,
                             size_t n)
{
    const struct loop loop = {node, part, of, state, n};
    uint32_t condition, body;

    RP_TRY(lower_loop_computation(l, &loop, true, &body));
    for (size_t i = 0; i < n; i++)
        if (!state[i].id)
            state[i] = rp_lower_fill(l, 0, &state[i]);
    if (body == RP_NONE)
        RP_TRY(lower_loop_computation(l, &loop, true, &body));
    if (body == RP_NONE)
        return rp_lower_refuse(l, node, "the shapes of a list's elements change");
    RP_TRY(lower_loop_computation(l, &loop, false, &condition));
    struct rp_lower_value tuple = make_tuple(l, state, n);
    struct rp_lower_value result = rp_lower_like(l, RP_ELEM_F32, NULL, 0);
    rp_lower_begin_tuple(l, &result, RP_OP_WHILE, state, n);
    rp_lower_operand(l, &tuple);
    rp_lower_calls(l, body);
    rp_lower_calls(l, condition);
    take_parts(l, &result, state, n);
    return RP_OK;
}

static enum rp_code call_part(struct rp_lower *l, const struct rp_lower_node *node, const void *of,
                              bool body, struct rp_lower_value *v, size_t n,
                              struct rp_lower_value *made, size_t *nmade)
{
    (void)of;
    return rp_lower_call(l, node, body ? "body" : "cond", v, n, made, nmade);
}

RP_LOWER(loop)
{
    if (nin > RP_LOWER_OUTPUTS)
        return rp_lower_refuse(l, node, "too many outputs");
    memcpy(out, in, nin * sizeof *out);
    *nout = nin;
    return rp_lower_repeat(l, node, call_part, NULL, out, nin);
}

/* ---- lists of tensors ---- */

RP_LOWER(as_list)
{
    *out = in[0];
    return RP_OK;
}

/* (shape of an element, number of elements) */
RP_LOWER(new_list)
{
    unsigned elem = rp_lower_attr_elem(node, "element_dtype");
    int64_t dims[RP_TF_RANK];
    bool open = in->ints && !in->rank; /* -1: even their number of dimensions is not known */

    RP_TRY(rp_lower_need_ints(l, node, &in[0], "shape"));
    RP_TRY(rp_lower_need_ints(l, node, &in[1], "length"));
    if (elem == RP_ELEM_INVALID || in->nints >= RP_TF_RANK || in[1].nints != 1 || in[1].ints[0] < 0)
        return rp_lower_refuse(l, node, "the element type is unknown");
    dims[0] = in[1].ints[0];
    for (size_t i = 0; in->ints && i < in->nints; i++) {
        dims[i + 1] = in->ints[i];
        open |= dims[i + 1] < 0;
    }
    *out = rp_lower_like(l, elem, dims, open ? 1 : in->nints + 1);
    *out = rp_lower_fill(l, 0, out);
    out->open = open;
    return RP_OK;
}

RP_LOWER(get_item)
{
    const struct rp_lower_value *list = &in[0], *index = &in[1];
    struct rp_lower_value zero = rp_lower_scalar(l, index->elem, 0);
    int64_t sizes[RP_TF_RANK];

    if (!list->rank || index->rank || list->open)
        return rp_lower_misfit(l, node, "the index is not a scalar, or the list is empty");
    memcpy(sizes, list->dims, sizeof sizes);
    sizes[0] = 1;
    struct rp_lower_value one = rp_lower_like(l, list->elem, sizes, list->rank);
    rp_lower_begin(l, &one, RP_OP_DYNAMIC_SLICE);
    rp_lower_operand(l, list);
    rp_lower_operand(l, index);
    for (size_t i = 1; i < list->rank; i++)
        rp_lower_operand(l, &zero);
    rp_lower_set_ints(l, RP_ATTR_DYNAMIC_SLICE_SIZES, sizes, list->rank);
    *out = rp_lower_reshape(l, &one, list->dims + 1, list->rank - 1);
    return RP_OK;
}

RP_LOWER(set_item)
{
    const struct rp_lower_value *list = &in[0], *index = &in[1];
    struct rp_lower_value zero = rp_lower_scalar(l, index->elem, 0), shown;
    int64_t dims[RP_TF_RANK];

    if (list->open && in[2].rank + 1 < RP_TF_RANK) {
        dims[0] = list->dims[0];
        memcpy(dims + 1, in[2].dims, in[2].rank * sizeof *dims);
        shown = rp_lower_like(l, list->elem, dims, in[2].rank + 1);
        shown = rp_lower_fill(l, 0, &shown);
        list = &shown;
    }
    if (!list->rank || index->rank || in[2].rank + 1 != list->rank || in[2].elem != list->elem ||
        memcmp(in[2].dims, list->dims + 1, in[2].rank * sizeof *dims) != 0)
        return rp_lower_misfit(l, node, "the element does not match the list");
    memcpy(dims, list->dims, sizeof dims);
    dims[0] = 1;
    struct rp_lower_value one = rp_lower_reshape(l, &in[2], dims, list->rank);
    *out = rp_lower_like(l, list->elem, list->dims, list->rank);
    rp_lower_begin(l, out, RP_OP_DYNAMIC_UPDATE_SLICE);
    rp_lower_operand(l, list);
    rp_lower_operand(l, &one);
    rp_lower_operand(l, index);
    for (size_t i = 1; i < list->rank; i++)
        rp_lower_operand(l, &zero);
    return RP_OK;
}

RP_LOWER(list_length)
{
    if (!in->rank)
        return rp_lower_misfit(l, node, "the input is not a list");
    *out = rp_lower_scalar(l, RP_ELEM_S32, (double)in->dims[0]);
    return RP_OK;
}

const struct rp_lower_row rp_lower_control[] = {
    {"Switch", lower_switch, RP_LOWER_NO_OPCODE, 2},
    {"_SwitchN", lower_switch, RP_LOWER_NO_OPCODE, 2},
    {"Merge", lower_merge, RP_LOWER_NO_OPCODE, 1},
    {"If", lower_choose, RP_LOWER_NO_OPCODE, 1},
    {"StatelessIf", lower_choose, RP_LOWER_NO_OPCODE, 1},
    {"While", lower_loop, RP_LOWER_NO_OPCODE, 1},
    {"StatelessWhile", lower_loop, RP_LOWER_NO_OPCODE, 1},
    {"TensorListFromTensor", lower_as_list, RP_LOWER_NO_OPCODE, 2},
    {"TensorListStack", lower_as_list, RP_LOWER_NO_OPCODE, 2},
    {"TensorListReserve", lower_new_list, RP_LOWER_NO_OPCODE, 2},
    {"TensorListGetItem", lower_get_item, RP_LOWER_NO_OPCODE, 3},
    {"TensorListSetItem", lower_set_item, RP_LOWER_NO_OPCODE, 3},
    {"TensorListLength", lower_list_length, RP_LOWER_NO_OPCODE, 1},
    {NULL, NULL, RP_LOWER_NO_OPCODE, 0}};
