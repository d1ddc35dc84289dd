/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the shapes and element types that a program declares against each other: kernels rely on
 * them, so an operation whose result does not follow from its operands is refused before anything
 * runs. The rules are those of HLO; where HLO lets f32 and narrower floats mix, so do they. Checks
 * that depend on attributes which kernels parse are made when these are prepared (rp_node_expect).
 *
 * Shapes of unknown type or size are left to the kernels, because no value can have such a shape.
 */
#include "exec/eval/lanes.h"
#include "exec/eval/plan.h"
#include "program/literal.h"
#include "program/opcodes.h"
#include "program/window.h"

#include <stdio.h>
#include <string.h>

typedef const struct rp_value_shape *shape_of;

struct look {
    struct rp_plan *plan;
    const struct rp_node *node;
    struct rp_err *err;
};
typedef enum rp_code rule_fn(const struct look *l);

#define refuse(l, ...) rp_node_error((l)->node, RP_FORMAT, (l)->err, __VA_ARGS__)

/* ---- texts ---- */

static void shape_text(unsigned elem, const int64_t *dims, size_t rank, char *out, size_t cap)
{
    const char *name = rp_elem_name(elem);
    size_t at = (size_t)snprintf(out, cap, "%s", name ? name : "?");

    if (elem == RP_ELEM_TUPLE || elem == RP_ELEM_TOKEN)
        return;
    for (size_t k = 0; k < rank && at < cap; k++)
        at += (size_t)snprintf(out + at, cap - at, "%s%lld", k ? "," : "[", (long long)dims[k]);
    if (at < cap)
        snprintf(out + at, cap - at, rank ? "]" : "[]");
}

enum rp_code rp_node_expect(const struct rp_node *node, const char *what,
                            const struct rp_value_shape *is, unsigned elem, const int64_t *dims,
                            size_t rank, struct rp_err *err)
{
    char found[200], wanted[200];

    if ((elem == RP_ELEM_INVALID || is->elem == elem) && rp_literal_unit(is->elem) &&
        rp_dims_same(is->dims, is->rank, dims, rank))
        return RP_OK;
    shape_text(is->elem, is->dims, is->rank, found, sizeof found);
    shape_text(elem == RP_ELEM_INVALID ? is->elem : elem, dims, rank, wanted, sizeof wanted);
    return rp_node_error(node, RP_FORMAT, err, "%s is %s, expected %s", what, found, wanted);
}

/* ---- parts of rules ---- */

static shape_of operand(const struct look *l, uint32_t i)
{
    return rp_node_operand(l->plan, l->node, i);
}

static uint32_t results(const struct look *l)
{
    return l->node->shape->elem == RP_ELEM_TUPLE ? l->node->shape->nparts : 1;
}

static shape_of result(const struct look *l, uint32_t i)
{
    return l->node->shape->elem == RP_ELEM_TUPLE ? l->node->shape->parts[i] : l->node->shape;
}

static const char *operand_name(uint32_t i, char text[32])
{
    snprintf(text, 32, "operand %u", i);
    return text;
}

static enum rp_code operand_is(const struct look *l, uint32_t i, unsigned elem, const int64_t *dims,
                               size_t rank)
{
    char name[32];

    return rp_node_expect(l->node, operand_name(i, name), operand(l, i), elem, dims, rank, l->err);
}

static enum rp_code result_is(const struct look *l, uint32_t i, unsigned elem, const int64_t *dims,
                              size_t rank)
{
    char name[32] = "the result";

    if (l->node->shape->elem == RP_ELEM_TUPLE)
        snprintf(name, sizeof name, "result %u", i);
    return rp_node_expect(l->node, name, result(l, i), elem, dims, rank, l->err);
}

static enum rp_code has_results(const struct look *l, uint32_t n)
{
    if (results(l) == n)
        return RP_OK;
    return refuse(l, "%u results, expected %u", results(l), n);
}

static bool is_integer(unsigned elem)
{
    return rp_elem_is_signed(elem) || rp_elem_is_unsigned(elem);
}

static enum rp_code integer_scalar(const struct look *l, const char *what, shape_of s)
{
    if (is_integer(s->elem) && s->n == 1)
        return RP_OK;
    return refuse(l, "%s is not an integer", what);
}

/* Whether types may replace each other: XLA mixes f32 and narrower floats. */
static bool types_mix(unsigned a, unsigned b)
{
    return a == b || ((a == RP_ELEM_F32 || rp_elem_is_small_float(a)) &&
                      (b == RP_ELEM_F32 || rp_elem_is_small_float(b)));
}

static enum rp_code types_differ(const struct look *l, const char *a, unsigned x, const char *b,
                                 unsigned y)
{
    return refuse(l, "%s is %s and %s %s", a, rp_elem_name(x), b, rp_elem_name(y));
}

/* Operands from..to-1 must have the element type. */
static enum rp_code operands_have(const struct look *l, uint32_t from, uint32_t to, unsigned elem,
                                  const char *whose)
{
    char name[32];

    for (uint32_t i = from; i < to && i < l->node->nin; i++)
        if (operand(l, i)->elem != elem)
            return types_differ(l, whose, elem, operand_name(i, name), operand(l, i)->elem);
    return RP_OK;
}

static enum rp_code same_type(const struct look *l)
{
    return operands_have(l, 0, l->node->nin, l->node->shape->elem, "the result");
}

/* The result must have type and dimensions of the first operand. */
static enum rp_code same_shape(const struct look *l)
{
    shape_of from = operand(l, 0);

    return result_is(l, 0, from->elem, from->dims, from->rank);
}

/* ---- values that are handed on ---- */

/* Whether a value of shape `from` can be seen as `to`. */
static bool fits(shape_of from, shape_of to)
{
    if (from == to)
        return true;
    if (from->elem != to->elem || from->nparts != to->nparts ||
        !rp_dims_same(from->dims, from->rank, to->dims, to->rank) ||
        (from->dynamic && !to->dynamic && from->elem != RP_ELEM_TUPLE))
        return false;
    for (uint32_t i = 0; i < from->nparts; i++)
        if (!fits(from->parts[i], to->parts[i]))
            return false;
    return true;
}

static enum rp_code handed_on(const struct look *l, const char *what, shape_of from,
                              const char *where, shape_of to)
{
    char a[200], b[200];

    if (fits(from, to))
        return RP_OK;
    shape_text(from->elem, from->dims, from->rank, a, sizeof a);
    shape_text(to->elem, to->dims, to->rank, b, sizeof b);
    return refuse(l, "%s is %s and %s %s%s", what, a, where, b,
                  from->elem == RP_ELEM_TUPLE ? " with other parts" : "");
}

/* Operands from `first` on must fit the parameters of a computation. */
static enum rp_code takes_operands(const struct look *l, const struct rp_graph *g, uint32_t first)
{
    char name[32];

    for (uint32_t i = 0; i < g->n; i++) {
        const struct rp_node *p = &g->nodes[i];

        if (p->code == RP_OP_PARAMETER && p->value >= 0 && first + p->value < l->node->nin)
            RP_TRY(handed_on(l, operand_name(first + (uint32_t)p->value, name),
                             operand(l, first + (uint32_t)p->value), "the parameter", p->shape));
    }
    return RP_OK;
}

static enum rp_code returns_result(const struct look *l, const struct rp_graph *g)
{
    return handed_on(l, "the called result", g->nodes[g->root].shape, "the result", l->node->shape);
}

static enum rp_code rule_call(const struct look *l)
{
    const struct rp_graph *g = l->node->ncalled ? l->node->called[0] : NULL;

    if (!g)
        return RP_OK;
    RP_TRY(takes_operands(l, g, 0));
    return l->node->code == RP_OP_ASYNC_START ? RP_OK : returns_result(l, g);
}

static enum rp_code rule_while(const struct look *l)
{
    for (uint32_t i = 0; i < l->node->ncalled; i++)
        RP_TRY(takes_operands(l, l->node->called[i], 0));
    RP_TRY(handed_on(l, "operand 0", operand(l, 0), "the result", l->node->shape));
    return l->node->ncalled ? returns_result(l, l->node->called[0]) : RP_OK;
}

static enum rp_code rule_conditional(const struct look *l)
{
    shape_of which = operand(l, 0);

    if (which->elem != RP_ELEM_PRED)
        RP_TRY(integer_scalar(l, "the index of the branch", which));
    else
        RP_TRY(operand_is(l, 0, RP_ELEM_PRED, NULL, 0));
    for (uint32_t i = 0; i < l->node->ncalled; i++) {
        RP_TRY(takes_operands(l, l->node->called[i], i + 1));
        RP_TRY(returns_result(l, l->node->called[i]));
    }
    return RP_OK;
}

static enum rp_code rule_same(const struct look *l)
{
    return handed_on(l, "operand 0", operand(l, 0), "the result", l->node->shape);
}

static enum rp_code rule_tuple(const struct look *l)
{
    char name[32];

    RP_TRY(has_results(l, l->node->nin));
    for (uint32_t i = 0; i < l->node->nin; i++)
        RP_TRY(handed_on(l, operand_name(i, name), operand(l, i), "that part of the result",
                         result(l, i)));
    return RP_OK;
}

static enum rp_code rule_part(const struct look *l)
{
    shape_of from = operand(l, 0);

    if (from->elem != RP_ELEM_TUPLE || l->node->value < 0 || l->node->value >= from->nparts)
        return refuse(l, "the tuple has no element %lld", (long long)l->node->value);
    return handed_on(l, "the element", from->parts[l->node->value], "the result", l->node->shape);
}

/* ---- element-wise ---- */

static unsigned real_of(unsigned elem)
{
    return elem == RP_ELEM_C64 ? RP_ELEM_F32 : elem == RP_ELEM_C128 ? RP_ELEM_F64 : elem;
}

static enum rp_code element_types(const struct look *l)
{
    unsigned to = l->node->shape->elem, from = operand(l, 0)->elem;

    switch (l->node->code) {
    case RP_OP_CONVERT:
    case RP_OP_MAP: /* by its function */
        return RP_OK;
    case RP_OP_COMPARE:
    case RP_OP_IS_FINITE:
        RP_TRY(operands_have(l, 1, l->node->nin, from, "operand 0"));
        return to == RP_ELEM_PRED ? RP_OK
                                  : refuse(l, "the result is %s, expected pred", rp_elem_name(to));
    case RP_OP_SELECT:
        if (from != RP_ELEM_PRED)
            return refuse(l, "operand 0 is %s, expected pred", rp_elem_name(from));
        return operands_have(l, 1, 3, to, "the result");
    case RP_OP_COMPLEX:
        RP_TRY(operands_have(l, 1, 2, from, "operand 0"));
        return rp_elem_is_complex(to) && real_of(to) == from
                   ? RP_OK
                   : types_differ(l, "the result", to, "operand 0", from);
    case RP_OP_ABS:
    case RP_OP_REAL:
    case RP_OP_IMAG:
        if (rp_elem_is_complex(from))
            return real_of(from) == to ? RP_OK
                                       : types_differ(l, "the result", to, "operand 0", from);
        return same_type(l);
    default: /* from narrower types, because results were not rounded or cut (plan_unrounded.c) */
        if ((to == RP_ELEM_F32 && rp_elem_is_small_float(from)) ||
            rp_plan_widens(l->plan, from, to))
            return operands_have(l, 1, l->node->nin, from, "operand 0");
        return same_type(l);
    }
}

static enum rp_code rule_element(const struct look *l)
{
    if (l->node->code == RP_OP_REDUCE_PRECISION) {
        int64_t exponent = rp_op_int(l->plan->program, l->node->op, RP_ATTR_EXPONENT_BITS, 8);
        int64_t mantissa = rp_op_int(l->plan->program, l->node->op, RP_ATTR_MANTISSA_BITS, 23);

        if (exponent <= 0 || exponent >= 64 || mantissa < 0 || mantissa >= 64)
            RP_TRY(refuse(l, "%lld bits of exponent and %lld of mantissa", (long long)exponent,
                          (long long)mantissa));
    }
    RP_TRY(element_types(l));
    /* The same element everywhere may be a scalar; sizes that vary must stay. */
    shape_of to = l->node->shape;
    bool whole = false;
    char name[32];
    for (uint32_t i = 0; i < l->node->nin; i++) {
        shape_of from = operand(l, i);

        if (from->dynamic && !to->dynamic)
            return refuse(l, "%s is of dynamic size and the result is not", operand_name(i, name));
        whole |= from->n == to->n && (l->node->nin < 3 || i == 1);
        if (from->n != 1)
            RP_TRY(operand_is(l, i, RP_ELEM_INVALID, to->dims, to->rank));
    }
    return whole ? RP_OK : refuse(l, "no operand has the result's shape");
}

/* ---- moving elements ---- */

static enum rp_code rule_broadcast(const struct look *l)
{
    size_t n;
    const int64_t *dims = rp_op_ints(l->plan->program, l->node->op, RP_ATTR_DIMENSIONS, &n);
    shape_of from = operand(l, 0), to = l->node->shape;

    RP_TRY(same_type(l));
    for (size_t i = 0; dims && i < n && i < from->rank; i++)
        if (dims[i] < 0 || dims[i] >= to->rank ||
            (from->dims[i] != 1 && from->dims[i] != to->dims[dims[i]]))
            return refuse(l, "dimension %zu does not match", i);
    return RP_OK;
}

static enum rp_code rule_reshape(const struct look *l)
{
    shape_of from = operand(l, 0);

    RP_TRY(operands_have(l, 0, 1, l->node->shape->elem, "the result"));
    if (from->n != l->node->shape->n)
        return refuse(l, "the operand has %zu elements, the result %zu", from->n,
                      l->node->shape->n);
    return RP_OK;
}

static enum rp_code rule_transpose(const struct look *l)
{
    size_t n;
    const int64_t *perm = rp_op_ints(l->plan->program, l->node->op, RP_ATTR_DIMENSIONS, &n);
    shape_of from = operand(l, 0);
    int64_t dims[RP_TENSOR_RANK];

    for (size_t i = 0; perm && i < n && i < from->rank; i++) {
        if (perm[i] < 0 || perm[i] >= from->rank)
            return refuse(l, "attribute 'dimensions' has %lld, out of range", (long long)perm[i]);
        dims[i] = from->dims[perm[i]];
    }
    if (from->rank && (!perm || n != from->rank))
        return refuse(l, "%zu dimensions are given, %u are needed", perm ? n : 0, from->rank);
    return result_is(l, 0, from->elem, dims, from->rank);
}

/* the bits of both are checked where they are prepared */
static enum rp_code rule_arrays(const struct look *l)
{
    (void)l;
    return RP_OK;
}

static enum rp_code rule_slice(const struct look *l)
{
    const struct rp_attr *attr = rp_op_attr(l->plan->program, l->node->op, RP_ATTR_SLICE);
    shape_of from = operand(l, 0);
    int64_t dims[RP_TENSOR_RANK];

    if (!attr || attr->type != RP_VALUE_SLICES || attr->n / 3 != from->rank)
        return from->rank ? RP_OK : same_shape(l); /* refused where it is prepared */
    for (uint32_t i = 0; i < from->rank; i++) {
        const int64_t *v = attr->ints + (size_t)3 * i;

        if (v[0] < 0 || v[1] < v[0] || v[1] > from->dims[i] || v[2] < 1)
            return refuse(l, "the bounds do not match the operand");
        dims[i] = (v[1] - v[0]) / v[2] + ((v[1] - v[0]) % v[2] != 0);
    }
    return result_is(l, 0, from->elem, dims, from->rank);
}

/* Checks the starts of a window: one scalar for each dimension, or one vector (old programs). */
static enum rp_code starts_of(const struct look *l, uint32_t first, shape_of of)
{
    char name[32];

    if (l->node->nin == first + 1 && of->rank != 1 && operand(l, first)->n == of->rank &&
        is_integer(operand(l, first)->elem))
        return RP_OK;
    if (l->node->nin != first + of->rank)
        return refuse(l, "%u indices for %u dimensions", l->node->nin - first, of->rank);
    for (uint32_t i = first; i < l->node->nin; i++)
        RP_TRY(integer_scalar(l, operand_name(i, name), operand(l, i)));
    return RP_OK;
}

static enum rp_code is_inside(const struct look *l, shape_of part, shape_of whole, const char *what)
{
    bool inside = part->rank == whole->rank && part->elem == whole->elem;

    for (uint32_t i = 0; inside && i < part->rank; i++)
        inside = part->dims[i] <= whole->dims[i];
    return inside ? RP_OK : refuse(l, "%s does not match the operand", what);
}

static enum rp_code rule_dynamic_slice(const struct look *l)
{
    RP_TRY(is_inside(l, l->node->shape, operand(l, 0), "the result"));
    return starts_of(l, 1, operand(l, 0));
}

static enum rp_code rule_update(const struct look *l)
{
    RP_TRY(same_shape(l));
    RP_TRY(is_inside(l, operand(l, 1), operand(l, 0), "the update"));
    return starts_of(l, 2, operand(l, 0));
}

/* low + size + (size - 1) * inner + high; -1 if it is too large. */
static int64_t padded(int64_t size, int64_t low, int64_t inner, int64_t high)
{
    int64_t n;

    if (inner < 0 || __builtin_mul_overflow(size ? size - 1 : 0, inner, &n) ||
        __builtin_add_overflow(n, size, &n) || __builtin_add_overflow(n, low, &n) ||
        __builtin_add_overflow(n, high, &n))
        return -1;
    return n < 0 ? 0 : n;
}

static enum rp_code rule_pad(const struct look *l)
{
    const struct rp_attr *attr = rp_op_attr(l->plan->program, l->node->op, RP_ATTR_PADDING);
    shape_of from = operand(l, 0);
    int64_t dims[RP_TENSOR_RANK];

    RP_TRY(same_type(l));
    if (operand(l, 1)->n != 1)
        return refuse(l, "the padding value is not a scalar");
    if (!attr || attr->type != RP_VALUE_PADDING || attr->n / 3 != from->rank)
        return from->rank ? refuse(l, "malformed padding") : same_shape(l);
    for (uint32_t i = 0; i < from->rank; i++) {
        const int64_t *v = attr->ints + (size_t)3 * i;

        dims[i] = padded(from->dims[i], v[0], v[2], v[1]);
    }
    return result_is(l, 0, from->elem, dims, from->rank);
}

static enum rp_code rule_concatenate(const struct look *l)
{
    size_t n;
    const int64_t *along = rp_op_ints(l->plan->program, l->node->op, RP_ATTR_DIMENSIONS, &n);
    shape_of to = l->node->shape;
    int64_t dims[RP_TENSOR_RANK], sum = 0;

    if (!along || n != 1 || along[0] < 0 || along[0] >= to->rank)
        return refuse(l, "one dimension of the result is required");
    memcpy(dims, to->dims, to->rank * sizeof *dims);
    for (uint32_t i = 0; i < l->node->nin; i++) {
        shape_of from = operand(l, i);

        if (from->rank == to->rank)
            dims[along[0]] = from->dims[along[0]];
        RP_TRY(operand_is(l, i, to->elem, dims, to->rank));
        if (__builtin_add_overflow(sum, dims[along[0]], &sum))
            sum = -1;
    }
    dims[along[0]] = sum;
    return result_is(l, 0, to->elem, dims, to->rank);
}

static enum rp_code rule_get_size(const struct look *l)
{
    return integer_scalar(l, "the result", l->node->shape);
}

static enum rp_code rule_set_size(const struct look *l)
{
    RP_TRY(same_shape(l));
    return integer_scalar(l, "operand 1", operand(l, 1));
}

/* ---- sorting, reducing ---- */

static enum rp_code rule_sort(const struct look *l)
{
    shape_of first = operand(l, 0);

    RP_TRY(has_results(l, l->node->nin));
    for (uint32_t i = 0; i < l->node->nin; i++) {
        RP_TRY(operand_is(l, i, RP_ELEM_INVALID, first->dims, first->rank));
        RP_TRY(result_is(l, i, operand(l, i)->elem, first->dims, first->rank));
    }
    return RP_OK;
}

static enum rp_code rule_topk(const struct look *l)
{
    shape_of from = operand(l, 0);
    int64_t dims[RP_TENSOR_RANK];

    RP_TRY(has_results(l, 2));
    shape_of to = result(l, 0);
    if (!from->rank || to->rank != from->rank || to->dims[to->rank - 1] > from->dims[to->rank - 1])
        return refuse(l, "the results do not match the operand");
    memcpy(dims, from->dims, from->rank * sizeof *dims);
    dims[from->rank - 1] = to->dims[to->rank - 1];
    RP_TRY(result_is(l, 0, from->elem, dims, from->rank));
    if (!is_integer(result(l, 1)->elem))
        return refuse(l, "the positions are not integers");
    return result_is(l, 1, RP_ELEM_INVALID, dims, from->rank);
}

/* Checks that operands have one shape, initial values are as many, and results have these
   dimensions; types may mix. */
static enum rp_code reduced_to(const struct look *l, const int64_t *dims, size_t rank)
{
    shape_of first = operand(l, 0);
    uint32_t k = l->node->nin / 2;
    char name[32];

    if (l->node->nin % 2)
        return refuse(l, "the function does not match the operands");
    RP_TRY(has_results(l, k));
    for (uint32_t i = 0; i < k; i++) {
        shape_of init = operand(l, k + i);

        RP_TRY(operand_is(l, i, RP_ELEM_INVALID, first->dims, first->rank));
        RP_TRY(result_is(l, i, RP_ELEM_INVALID, dims, rank));
        if (init->n != 1)
            return refuse(l, "initial value %u is not a scalar", i);
        if (!types_mix(init->elem, operand(l, i)->elem))
            return types_differ(l, operand_name(i, name), operand(l, i)->elem, "its initial value",
                                init->elem);
        if (!types_mix(result(l, i)->elem, operand(l, i)->elem))
            return types_differ(l, "the result", result(l, i)->elem, operand_name(i, name),
                                operand(l, i)->elem);
    }
    return RP_OK;
}

static enum rp_code rule_reduce(const struct look *l)
{
    size_t n;
    const int64_t *list = rp_op_ints(l->plan->program, l->node->op, RP_ATTR_DIMENSIONS, &n);
    shape_of from = operand(l, 0);
    int64_t dims[RP_TENSOR_RANK];
    size_t rank = 0;

    for (uint32_t d = 0; d < from->rank; d++) {
        bool kept = true;

        for (size_t i = 0; list && i < n; i++)
            kept &= list[i] != d;
        if (kept)
            dims[rank++] = from->dims[d];
    }
    return reduced_to(l, dims, rank);
}

int64_t rp_window_result(const struct rp_window_dim *d, int64_t size)
{
    if (d->stride < 1 || d->base_dilation < 1 || d->window_dilation < 1 || d->size < 0)
        return -1;
    int64_t base = padded(size, d->pad_low, d->base_dilation - 1, d->pad_high);
    int64_t window = padded(d->size, 0, d->window_dilation - 1, 0);
    if (base < 0 || window < 0)
        return -1;
    return window > base || !base ? 0 : (base - window) / d->stride + 1;
}

/* The dimensions that a window makes of an operand; false if their ranks differ. */
static bool window_dims(const struct look *l, shape_of from, int64_t *dims)
{
    struct rp_window w;

    if (!rp_attr_window(rp_op_attr(l->plan->program, l->node->op, RP_ATTR_WINDOW), &w))
        return !from->rank;
    for (size_t i = 0; i < w.n && w.n == from->rank; i++)
        dims[i] = rp_window_result(&w.dim[i], from->dims[i]);
    return w.n == from->rank;
}

static enum rp_code rule_window(const struct look *l)
{
    shape_of from = operand(l, 0);
    int64_t dims[RP_TENSOR_RANK];

    if (!window_dims(l, from, dims))
        return refuse(l, "the window does not match the operand");
    return reduced_to(l, dims, from->rank);
}

static enum rp_code rule_select_scatter(const struct look *l)
{
    shape_of from = operand(l, 0), source = operand(l, 1), init = operand(l, 2);
    int64_t dims[RP_TENSOR_RANK];

    if (!window_dims(l, from, dims))
        return refuse(l, "the window does not match the operand");
    RP_TRY(operand_is(l, 1, RP_ELEM_INVALID, dims, from->rank));
    RP_TRY(result_is(l, 0, RP_ELEM_INVALID, from->dims, from->rank));
    if (init->n != 1)
        return refuse(l, "the initial value is not a scalar");
    if (!types_mix(from->elem, source->elem))
        return types_differ(l, "operand 0", from->elem, "operand 1", source->elem);
    if (!types_mix(from->elem, init->elem))
        return types_differ(l, "operand 0", from->elem, "operand 2", init->elem);
    return types_mix(from->elem, l->node->shape->elem)
               ? RP_OK
               : types_differ(l, "the result", l->node->shape->elem, "operand 0", from->elem);
}

/* ---- matrices, normalisation, random numbers ---- */

static enum rp_code rule_solve(const struct look *l)
{
    shape_of m = operand(l, 0), b = operand(l, 1);

    RP_TRY(operands_have(l, 0, 2, l->node->shape->elem, "the result"));
    for (uint32_t i = 0; i + 2 < m->rank && m->rank == b->rank; i++)
        if (m->dims[i] != b->dims[i])
            return refuse(l, "wrong shape of the operands");
    return result_is(l, 0, b->elem, b->dims, b->rank);
}

/* Results and operands of batch normalisation are an array, or one number for each feature. */
static enum rp_code rule_norm(const struct look *l)
{
    bool grad = l->node->code == RP_OP_BATCH_NORM_GRAD;
    int64_t feature = rp_op_int(l->plan->program, l->node->op, RP_ATTR_FEATURE_INDEX, 0);
    shape_of x = operand(l, 0);

    if (feature < 0 || feature >= x->rank)
        return refuse(l, "feature_index is out of range");
    const int64_t *features = &x->dims[feature];
    RP_TRY(has_results(l, l->node->code == RP_OP_BATCH_NORM_INFERENCE ? 1 : 3));
    for (uint32_t i = 0; i < l->node->nin; i++) {
        bool whole = i == 0 || (grad && i == 4);

        RP_TRY(operand_is(l, i, RP_ELEM_INVALID, whole ? x->dims : features, whole ? x->rank : 1));
    }
    for (uint32_t i = 0; i < results(l); i++)
        RP_TRY(result_is(l, i, RP_ELEM_INVALID, i ? features : x->dims, i ? 1 : x->rank));
    return RP_OK;
}

static enum rp_code rule_random_bits(const struct look *l)
{
    shape_of state = operand(l, 0);

    RP_TRY(has_results(l, 2));
    if (rp_literal_unit(result(l, 1)->elem) > 8)
        return refuse(l, "the bits are of more than 64 each");
    return result_is(l, 0, state->elem, state->dims, state->rank);
}

static enum rp_code rule_rng(const struct look *l)
{
    for (uint32_t i = 0; i < l->node->nin; i++)
        if (operand(l, i)->n != 1 || operand(l, i)->elem != l->node->shape->elem)
            return refuse(l, "operand %u is not a scalar of the result's type", i);
    return RP_OK;
}

/* ---- collectives ---- */

/* Dimensions depend on the number of devices, so they are checked at run time. */
static enum rp_code rule_collective(const struct look *l)
{
    if (l->node->shape->elem == RP_ELEM_TUPLE)
        return RP_OK;
    return operands_have(l, 0, 1, l->node->shape->elem, "the result");
}

/* ---- the table ---- */

enum { ARRAYS = 1, TUPLES = 2 }; /* operands and results are arrays; there may be several results */

static const struct rule {
    rule_fn *check;
    uint8_t of;
} rules[RP_OP_COUNT] = {
    [RP_OP_BITCAST] = {rule_arrays, ARRAYS},
    [RP_OP_BITCAST_CONVERT] = {rule_arrays, ARRAYS},
    [RP_OP_BROADCAST] = {rule_broadcast, ARRAYS},
    [RP_OP_RESHAPE] = {rule_reshape, ARRAYS},
    [RP_OP_DYNAMIC_RESHAPE] = {rule_reshape, ARRAYS},
    [RP_OP_TRANSPOSE] = {rule_transpose, ARRAYS},
    [RP_OP_REVERSE] = {same_shape, ARRAYS},
    [RP_OP_SLICE] = {rule_slice, ARRAYS},
    [RP_OP_DYNAMIC_SLICE] = {rule_dynamic_slice, ARRAYS},
    [RP_OP_DYNAMIC_UPDATE_SLICE] = {rule_update, ARRAYS},
    [RP_OP_PAD] = {rule_pad, ARRAYS},
    [RP_OP_CONCATENATE] = {rule_concatenate, ARRAYS},
    [RP_OP_GET_DIMENSION_SIZE] = {rule_get_size, ARRAYS},
    [RP_OP_SET_DIMENSION_SIZE] = {rule_set_size, ARRAYS},
    [RP_OP_GATHER] = {rule_arrays, ARRAYS},
    [RP_OP_SCATTER] = {rule_arrays, ARRAYS | TUPLES},
    [RP_OP_SORT] = {rule_sort, ARRAYS | TUPLES},
    [RP_OP_TOPK] = {rule_topk, ARRAYS | TUPLES},
    [RP_OP_REDUCE] = {rule_reduce, ARRAYS | TUPLES},
    [RP_OP_REDUCE_WINDOW] = {rule_window, ARRAYS | TUPLES},
    [RP_OP_SELECT_AND_SCATTER] = {rule_select_scatter, ARRAYS},
    [RP_OP_DOT] = {rule_arrays, ARRAYS},
    [RP_OP_RAGGED_DOT] = {rule_arrays, ARRAYS},
    [RP_OP_CONVOLUTION] = {rule_arrays, ARRAYS},
    [RP_OP_FFT] = {rule_arrays, ARRAYS},
    [RP_OP_CHOLESKY] = {same_shape, ARRAYS},
    [RP_OP_TRIANGULAR_SOLVE] = {rule_solve, ARRAYS},
    [RP_OP_BATCH_NORM_INFERENCE] = {rule_norm, ARRAYS | TUPLES},
    [RP_OP_BATCH_NORM_TRAINING] = {rule_norm, ARRAYS | TUPLES},
    [RP_OP_BATCH_NORM_GRAD] = {rule_norm, ARRAYS | TUPLES},
    [RP_OP_RNG_BIT_GENERATOR] = {rule_random_bits, ARRAYS | TUPLES},
    [RP_OP_RNG] = {rule_rng, ARRAYS},
    [RP_OP_RNG_GET_AND_UPDATE_STATE] = {rule_arrays, ARRAYS},
    [RP_OP_IOTA] = {rule_arrays, ARRAYS},
    [RP_OP_PARTITION_ID] = {rule_get_size, ARRAYS},
    [RP_OP_REPLICA_ID] = {rule_get_size, ARRAYS},
    [RP_OP_ALL_REDUCE] = {rule_collective, ARRAYS | TUPLES},
    [RP_OP_ALL_REDUCE_START] = {rule_collective, ARRAYS | TUPLES},
    [RP_OP_ALL_GATHER] = {rule_collective, ARRAYS | TUPLES},
    [RP_OP_ALL_GATHER_START] = {rule_arrays, TUPLES},
    [RP_OP_REDUCE_SCATTER] = {rule_collective, ARRAYS | TUPLES},
    [RP_OP_ALL_TO_ALL] = {rule_collective, ARRAYS | TUPLES},
    [RP_OP_COLLECTIVE_BROADCAST] = {rule_collective, ARRAYS | TUPLES},
    [RP_OP_COLLECTIVE_PERMUTE] = {rule_collective, ARRAYS | TUPLES},
    [RP_OP_TUPLE] = {rule_tuple, 0},
    [RP_OP_GET_TUPLE_ELEMENT] = {rule_part, 0},
    [RP_OP_COPY] = {rule_same, 0},
    [RP_OP_OPT_BARRIER] = {rule_same, 0},
    [RP_OP_DOMAIN] = {rule_same, 0},
    [RP_OP_ADD_DEPENDENCY] = {rule_same, 0},
    [RP_OP_CALL] = {rule_call, 0},
    [RP_OP_FUSION] = {rule_call, 0},
    [RP_OP_ASYNC_START] = {rule_call, 0},
    [RP_OP_WHILE] = {rule_while, 0},
    [RP_OP_CONDITIONAL] = {rule_conditional, 0},
};

/* Whether the type or a size is not known; no value has such a shape. */
static bool is_unknown(shape_of s)
{
    bool unknown = s->elem == RP_ELEM_INVALID;

    for (uint32_t i = 0; i < s->nparts && !unknown; i++)
        unknown = is_unknown(s->parts[i]);
    for (uint32_t i = 0; i < s->rank && !unknown; i++)
        unknown = s->dims[i] < 0;
    return unknown;
}

/* The part of an operand that a rule reads. If an element is taken from a tuple, it is only that
   element, because checking all of them for each would take quadratic time. */
static shape_of read_of(const struct look *l, uint32_t i)
{
    shape_of from = operand(l, i);
    int64_t at = l->node->value;

    if (l->node->code == RP_OP_GET_TUPLE_ELEMENT && at >= 0 && at < from->nparts)
        return from->parts[at];
    return from;
}

enum rp_code rp_node_check_shapes(struct rp_plan *plan, const struct rp_node *node,
                                  struct rp_err *err)
{
    const struct look l = {plan, node, err};
    struct rule rule = rules[node->code];

    if (rp_op_info[node->code].class_ == RP_CLASS_ELEMENT && node->nin)
        rule = (struct rule){rule_element, ARRAYS};
    if (!rule.check || is_unknown(node->shape))
        return RP_OK;
    for (uint32_t i = 0; i < node->nin; i++)
        if (is_unknown(read_of(&l, i)))
            return RP_OK;
    if (rule.of & ARRAYS) {
        for (uint32_t i = 0; i < l.node->nin; i++)
            if (!rp_literal_unit(operand(&l, i)->elem))
                return refuse(&l, "operand %u is not an array", i);
        if (!(rule.of & TUPLES) && l.node->shape->elem == RP_ELEM_TUPLE)
            return refuse(&l, "the result is not an array");
        for (uint32_t i = 0; i < results(&l); i++)
            if (!rp_literal_unit(result(&l, i)->elem))
                return refuse(&l, "result %u is not an array", i);
    }
    return rule.check(&l);
}
