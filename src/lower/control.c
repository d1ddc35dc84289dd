/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops and conditionals of TensorFlow that call functions, as HLO. A loop's condition and body
 * become computations over one tuple. Both functions of a conditional are lowered in place, and the
 * results of one are selected: without side effects this gives the same values, and the shapes must
 * be equal anyway. Lists of tensors, which loops fill, are arrays with one more dimension. A list
 * may be created before the shape of its elements is known: the loop's body is then lowered once to
 * find out, discarded, and lowered again.
 */
#include "lower/inner.h"

#include <stdio.h>
#include <string.h>

#define LOWER(name)                                                                             \
    static enum rp_code name(struct lower *l, const struct lower_node *node,                    \
                             const struct lower_value *in, size_t nin, struct lower_value *out, \
                             size_t *nout)

static bool same_type(const struct lower_value *a, const struct lower_value *b)
{
    return a->elem == b->elem && a->rank == b->rank &&
           (!a->rank || !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims));
}

/* ---- choices ---- */

LOWER(choose)
{
    struct lower_value other[LOWER_OUTPUTS], pred, wide;
    size_t n = 0;

    if (in->rank)
        return lower_misfit(l, node, "the condition is not a scalar");
    RP_TRY(lower_call(l, node, "then_branch", in + 1, nin - 1, out, nout));
    RP_TRY(lower_call(l, node, "else_branch", in + 1, nin - 1, other, &n));
    pred = lower_convert(l, in, RP_ELEM_PRED);
    for (size_t i = 0; i < *nout; i++) {
        if (n != *nout || !same_type(&out[i], &other[i]))
            return lower_refuse(l, node, "the two functions return different shapes");
        wide = out[i].rank ? lower_spread(l, &pred, NULL, out[i].dims, out[i].rank) : pred;
        out[i] = lower_select(l, &wide, &out[i], &other[i]);
    }
    return RP_OK;
}

/* ---- loops ---- */

static struct lower_value make_tuple(struct lower *l, const struct lower_value *v, size_t n)
{
    struct lower_value tuple = lower_like(l, RP_ELEM_F32, NULL, 0); /* only its number counts */

    lower_begin_tuple(l, &tuple, RP_OP_TUPLE, v, n);
    for (size_t i = 0; i < n; i++)
        lower_operand(l, &v[i]);
    return tuple;
}

static void take_parts(struct lower *l, const struct lower_value *tuple, struct lower_value *v,
                       size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool open = v[i].open;

        v[i] = lower_like(l, v[i].elem, v[i].dims, v[i].rank);
        v[i].open = open;
        lower_part(l, &v[i], tuple, i);
    }
}

/* A list whose elements the loop has shown: zeros, to begin with. */
static bool learn(struct lower_value *state, const struct lower_value *made, bool *learned)
{
    if (!state->open || made->open || made->elem != state->elem || !made->rank ||
        made->dims[0] != state->dims[0])
        return false;
    *state = *made;
    state->id = 0;
    *learned = true;
    return true;
}

/* Lowers the function that an attribute names, over the parts of a tuple, in the innermost
   computation. Where it reveals the shapes of list elements, it must be lowered again. */
static enum rp_code lower_part_of_loop(struct lower *l, const struct lower_node *node,
                                       const char *attr, struct lower_value *state, size_t n,
                                       bool body, bool *learned, struct lower_value *root)
{
    struct lower_value *v = RP_ARENA_NEW(&l->arena, struct lower_value, n + 1), made[LOWER_OUTPUTS];
    struct lower_value tuple = lower_like(l, RP_ELEM_F32, NULL, 0), pred;
    size_t count = 0;

    if (!v)
        return rp_err_nomem(l->err, "lowering a loop");
    memcpy(v, state, n * sizeof *v);
    lower_begin_tuple(l, &tuple, RP_OP_PARAMETER, v, n);
    take_parts(l, &tuple, v, n);
    RP_TRY(lower_call(l, node, attr, v, n, made, &count));
    if (!body) {
        if (count != 1 || made[0].rank)
            return lower_misfit(l, node, "the condition is not a scalar");
        pred = lower_convert(l, &made[0], RP_ELEM_PRED);
        *root = lower_unary(l, RP_OP_COPY, &pred);
        return RP_OK;
    }
    for (size_t i = 0; i < n; i++)
        if (count != n || (!same_type(&made[i], &state[i]) && !learn(&state[i], &made[i], learned)))
            return lower_refuse(l, node,
                                "a value changes its shape from one iteration to the next");
    *root = make_tuple(l, made, n);
    return RP_OK;
}

/* The same as a computation of its own; RP_NONE where it must be lowered again. */
static enum rp_code lower_loop_computation(struct lower *l, const struct lower_node *node,
                                           const char *attr, struct lower_value *state, size_t n,
                                           bool body, uint32_t *computation)
{
    struct lower_value root = {0};
    bool learned = false;
    char name[32];
    uint32_t outer = lower_open(l);
    enum rp_code code;

    code = lower_part_of_loop(l, node, attr, state, n, body, &learned, &root);
    *computation = RP_NONE;
    if (code != RP_OK || learned) {
        lower_discard(l, outer);
        return code;
    }
    snprintf(name, sizeof name, "loop_%u", ++l->values);
    *computation = lower_close(l, name, &root, outer);
    return RP_OK;
}

LOWER(loop)
{
    struct lower_value tuple, result, state[LOWER_OUTPUTS];
    uint32_t condition, body;

    if (nin > LOWER_OUTPUTS)
        return lower_refuse(l, node, "too many outputs");
    memcpy(state, in, nin * sizeof *state);
    RP_TRY(lower_loop_computation(l, node, "body", state, nin, true, &body));
    for (size_t i = 0; i < nin; i++)
        if (!state[i].id)
            state[i] = lower_fill(l, 0, &state[i]);
    if (body == RP_NONE)
        RP_TRY(lower_loop_computation(l, node, "body", state, nin, true, &body));
    if (body == RP_NONE)
        return lower_refuse(l, node, "the shapes of a list's elements change");
    RP_TRY(lower_loop_computation(l, node, "cond", state, nin, false, &condition));
    tuple = make_tuple(l, state, nin);
    result = lower_like(l, RP_ELEM_F32, NULL, 0);
    lower_begin_tuple(l, &result, RP_OP_WHILE, state, nin);
    lower_operand(l, &tuple);
    lower_calls(l, body);
    lower_calls(l, condition);
    memcpy(out, state, nin * sizeof *out);
    take_parts(l, &result, out, nin);
    *nout = nin;
    return RP_OK;
}

/* ---- lists of tensors ---- */

LOWER(as_list)
{
    (void)l;
    (void)node;
    (void)nin;
    (void)nout;
    *out = in[0];
    return RP_OK;
}

/* (shape of an element, how many) */
LOWER(new_list)
{
    unsigned elem = lower_attr_elem(node, "element_dtype");
    int64_t dims[RP_TF_RANK];
    bool open = in->ints && !in->rank; /* -1: even their number of dimensions is open */

    (void)nin;
    (void)nout;
    RP_TRY(lower_need_ints(l, node, &in[0], "shape"));
    RP_TRY(lower_need_ints(l, node, &in[1], "length"));
    if (elem == RP_ELEM_INVALID || in->nints >= RP_TF_RANK || in[1].nints != 1 || in[1].ints[0] < 0)
        return lower_refuse(l, node, "the element type is unknown");
    dims[0] = in[1].ints[0];
    for (size_t i = 0; in->ints && i < in->nints; i++) {
        dims[i + 1] = in->ints[i];
        open |= dims[i + 1] < 0;
    }
    *out = lower_like(l, elem, dims, open ? 1 : in->nints + 1);
    *out = lower_fill(l, 0, out);
    out->open = open;
    return RP_OK;
}

LOWER(get_item)
{
    const struct lower_value *list = &in[0], *index = &in[1];
    struct lower_value zero = lower_scalar(l, index->elem, 0), one;
    int64_t sizes[RP_TF_RANK];

    (void)nin;
    (void)nout;
    if (!list->rank || index->rank || list->open)
        return lower_misfit(l, node, "the index is not a scalar, or the list is empty");
    memcpy(sizes, list->dims, sizeof sizes);
    sizes[0] = 1;
    one = lower_like(l, list->elem, sizes, list->rank);
    lower_begin(l, &one, RP_OP_DYNAMIC_SLICE);
    lower_operand(l, list);
    lower_operand(l, index);
    for (size_t i = 1; i < list->rank; i++)
        lower_operand(l, &zero);
    lower_set_ints(l, RP_ATTR_DYNAMIC_SLICE_SIZES, sizes, list->rank);
    *out = lower_reshape(l, &one, list->dims + 1, list->rank - 1);
    return RP_OK;
}

LOWER(set_item)
{
    const struct lower_value *list = &in[0], *index = &in[1];
    struct lower_value zero = lower_scalar(l, index->elem, 0), one, shown;
    int64_t dims[RP_TF_RANK];

    (void)nin;
    (void)nout;
    if (list->open && in[2].rank + 1 < RP_TF_RANK) {
        dims[0] = list->dims[0];
        memcpy(dims + 1, in[2].dims, in[2].rank * sizeof *dims);
        shown = lower_like(l, list->elem, dims, in[2].rank + 1);
        shown = lower_fill(l, 0, &shown);
        list = &shown;
    }
    if (!list->rank || index->rank || in[2].rank + 1 != list->rank || in[2].elem != list->elem ||
        memcmp(in[2].dims, list->dims + 1, in[2].rank * sizeof *dims) != 0)
        return lower_misfit(l, node, "the element does not match the list");
    memcpy(dims, list->dims, sizeof dims);
    dims[0] = 1;
    one = lower_reshape(l, &in[2], dims, list->rank);
    *out = lower_like(l, list->elem, list->dims, list->rank);
    lower_begin(l, out, RP_OP_DYNAMIC_UPDATE_SLICE);
    lower_operand(l, list);
    lower_operand(l, &one);
    lower_operand(l, index);
    for (size_t i = 1; i < list->rank; i++)
        lower_operand(l, &zero);
    return RP_OK;
}

LOWER(list_length)
{
    (void)nin;
    (void)nout;
    if (!in->rank)
        return lower_misfit(l, node, "the input is not a list");
    *out = lower_scalar(l, RP_ELEM_S32, (double)in->dims[0]);
    return RP_OK;
}

const struct lower_row lower_control[] = {{"If", choose, LOWER_NO_OPCODE, 1},
                                          {"StatelessIf", choose, LOWER_NO_OPCODE, 1},
                                          {"While", loop, LOWER_NO_OPCODE, 1},
                                          {"StatelessWhile", loop, LOWER_NO_OPCODE, 1},
                                          {"TensorListFromTensor", as_list, LOWER_NO_OPCODE, 1},
                                          {"TensorListStack", as_list, LOWER_NO_OPCODE, 1},
                                          {"TensorListReserve", new_list, LOWER_NO_OPCODE, 2},
                                          {"TensorListGetItem", get_item, LOWER_NO_OPCODE, 2},
                                          {"TensorListSetItem", set_item, LOWER_NO_OPCODE, 3},
                                          {"TensorListLength", list_length, LOWER_NO_OPCODE, 1},
                                          {NULL, NULL, LOWER_NO_OPCODE, 0}};
