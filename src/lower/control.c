/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops and choices of TensorFlow that call functions, as HLO. A loop's condition and body become
 * computations over one tuple: the text goes aside while a function is lowered, and what it made is
 * put among the computations. Of a choice both functions are lowered in place and their results
 * selected from: functions without effects give the same, and the shapes must be equal anyway.
 * Lists of tensors, which loops fill, are arrays with one more dimension. A list may be made before
 * the shape of its elements is known: then the loop's body, lowered once for that, says it.
 */
#include "lower/inner.h"

#include <inttypes.h>
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

static void put_tuple_type(struct lower *l, const struct lower_value *v, size_t n)
{
    lower_put(l, "(");
    for (size_t i = 0; i < n; i++) {
        lower_put(l, "%s", i ? ", " : "");
        lower_put_type(l, &v[i]);
    }
    lower_put(l, ")");
}

static struct lower_value put_tuple(struct lower *l, const struct lower_value *v, size_t n,
                                    const char *lead)
{
    struct lower_value tuple = lower_like(l, RP_ELEM_F32, NULL, 0); /* only its number counts */

    lower_put(l, "  %s%%v%u = ", lead, tuple.id);
    put_tuple_type(l, v, n);
    lower_put(l, " tuple(");
    for (size_t i = 0; i < n; i++)
        lower_put(l, "%s%%v%u", i ? ", " : "", v[i].id);
    lower_put(l, ")\n");
    return tuple;
}

static void take_parts(struct lower *l, uint32_t tuple, struct lower_value *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool open = v[i].open;

        v[i] = lower_like(l, v[i].elem, v[i].dims, v[i].rank);
        v[i].open = open;
        lower_begin(l, &v[i], "get-tuple-element");
        lower_put(l, "%%v%u), index=%zu\n", tuple, i);
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

/* What the function of an attribute makes of the parts of a tuple; the text is in l->body. Where
   the shapes of lists were learned by it, it must be written again. */
static enum rp_code write_part(struct lower *l, const struct lower_node *node, const char *attr,
                               struct lower_value *state, size_t n, bool body, bool *learned)
{
    struct lower_value *v = RP_ARENA_NEW(&l->arena, struct lower_value, n + 1), made[LOWER_OUTPUTS];
    struct lower_value tuple = lower_like(l, RP_ELEM_F32, NULL, 0), pred;
    size_t count = 0;

    if (!v)
        return rp_err_nomem(l->err, "lowering a loop");
    memcpy(v, state, n * sizeof *v);
    lower_put(l, "  %%v%u = ", tuple.id);
    put_tuple_type(l, v, n);
    lower_put(l, " parameter(0)\n");
    take_parts(l, tuple.id, v, n);
    RP_TRY(lower_call(l, node, attr, v, n, made, &count));
    if (!body) {
        if (count != 1 || made[0].rank)
            return lower_misfit(l, node, "the condition is not a scalar");
        pred = lower_convert(l, &made[0], RP_ELEM_PRED);
        lower_put(l, "  ROOT %%v%u = pred[] copy(%%v%u)\n", ++l->values, pred.id);
        return RP_OK;
    }
    for (size_t i = 0; i < n; i++)
        if (count != n || (!same_type(&made[i], &state[i]) && !learn(&state[i], &made[i], learned)))
            return lower_refuse(l, node,
                                "a value changes its shape from one iteration to the next");
    put_tuple(l, made, n, "ROOT ");
    return RP_OK;
}

/* The same as a computation of its own. */
static enum rp_code write_region(struct lower *l, const struct lower_node *node, const char *attr,
                                 struct lower_value *state, size_t n, bool body, uint32_t *name)
{
    bool learned = false;
    struct rp_out *outer = l->body, *inner;
    const char *text;
    enum rp_code code;
    size_t length;

    RP_TRY(rp_out_open_memory(&inner, l->err));
    l->body = inner;
    code = write_part(l, node, attr, state, n, body, &learned);
    l->body = outer;
    if (code == RP_OK)
        code = rp_out_flush(inner, l->err);
    *name = 0;
    if (code == RP_OK && !learned) {
        *name = ++l->values;
        text = rp_out_borrow_memory(inner, &length);
        rp_out_printf(l->regions, "%%loop_%u {\n", *name);
        rp_out_write(l->regions, text, length);
        rp_out_text(l->regions, "}\n\n");
    }
    rp_out_abandon(inner);
    return code;
}

LOWER(loop)
{
    struct lower_value tuple, result, state[LOWER_OUTPUTS];
    uint32_t condition, body;

    if (nin > LOWER_OUTPUTS)
        return lower_refuse(l, node, "too many outputs");
    memcpy(state, in, nin * sizeof *state);
    RP_TRY(write_region(l, node, "body", state, nin, true, &body));
    for (size_t i = 0; i < nin; i++)
        if (!state[i].id)
            state[i] = lower_fill(l, 0, &state[i]);
    if (!body)
        RP_TRY(write_region(l, node, "body", state, nin, true, &body));
    RP_TRY(write_region(l, node, "cond", state, nin, false, &condition));
    tuple = put_tuple(l, state, nin, "");
    result = lower_like(l, RP_ELEM_F32, NULL, 0);
    lower_put(l, "  %%v%u = ", result.id);
    put_tuple_type(l, state, nin);
    lower_put(l, " while(%%v%u), condition=%%loop_%u, body=%%loop_%u\n", tuple.id, condition, body);
    memcpy(out, state, nin * sizeof *out);
    take_parts(l, result.id, out, nin);
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
    lower_begin(l, &one, "dynamic-slice");
    lower_put(l, "%%v%u, %%v%u", list->id, index->id);
    for (size_t i = 1; i < list->rank; i++)
        lower_put(l, ", %%v%u", zero.id);
    lower_put(l, ")");
    lower_put_ints(l, "dynamic_slice_sizes", sizes, list->rank);
    lower_put(l, "\n");
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
    lower_begin(l, out, "dynamic-update-slice");
    lower_put(l, "%%v%u, %%v%u, %%v%u", list->id, one.id, index->id);
    for (size_t i = 1; i < list->rank; i++)
        lower_put(l, ", %%v%u", zero.id);
    lower_put(l, ")\n");
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

const struct lower_row lower_control[] = {{"If", choose, NULL, 1},
                                          {"StatelessIf", choose, NULL, 1},
                                          {"While", loop, NULL, 1},
                                          {"StatelessWhile", loop, NULL, 1},
                                          {"TensorListFromTensor", as_list, NULL, 1},
                                          {"TensorListStack", as_list, NULL, 1},
                                          {"TensorListReserve", new_list, NULL, 2},
                                          {"TensorListGetItem", get_item, NULL, 2},
                                          {"TensorListSetItem", set_item, NULL, 3},
                                          {"TensorListLength", list_length, NULL, 1},
                                          {NULL, NULL, NULL, 0}};
