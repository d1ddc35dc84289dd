/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops over scalars and short arrays, which read and write long arrays by element only. The loop
 * is walked once with values that are arrays of slot numbers instead of elements: operations that
 * only move elements run their own kernels on these, those that compute become an instruction for
 * each element, and loops and branches become jumps. Long arrays are changed in place, so a value
 * that is read after something has changed its array is refused, as is any operation that is not
 * known here: such a loop is evaluated in other ways, and so is one whose operations are timed.
 */
#include "exec/fast/scalar_loop.h"
#include "exec/eval/tape.h"
#include "exec/fast/kernels.h"
#include "exec/ref/kernels.h"
#include "exec/ref/reduce.h"
#include "program/opcodes.h"

#include "program/literal.h"

#include <stdlib.h>
#include <string.h>

#define SHORT      64          /* elements of an array that has a slot for each */
#define MOST_OPS   8192        /* instructions of a loop */
#define MOST_DOT   256         /* elements of a factor of a product */
#define MOST_DEPTH 32          /* loops, branches and calls in each other */
#define ARRAY      0x80000000u /* in a value: this plus the number of an array */

struct flat_slot {
    const void *constant; /* one element, or NULL */
    uint32_t version;     /* of the long array whose address it holds: raised by each change */
    uint8_t elem;
};

struct flat_array {
    uint32_t slot, version;
};

struct flat_ctx {
    struct rp_plan *plan;
    RP_VEC(struct rp_scalar_op) ops;
    RP_VEC(struct flat_slot) slots;
    RP_VEC(struct flat_array) arrays;
    uint32_t versions; /* given out so far */
    unsigned depth;
};

struct flat_part {
    uint32_t n;     /* elements that have slots, or 1 for a long array */
    uint32_t *from; /* their slots before the loop, and after it */
    uint32_t *to;
    bool array, written;
};

struct flat_loop {
    size_t nops, nslots, nparts;
    struct rp_scalar_op *ops;
    struct flat_slot *slots;
    struct flat_part *parts; /* of the state */
    rp_scalar_fn *fn;        /* machine code, or NULL */
};

/* ---- planning ---- */

static void flat_release(struct flat_ctx *c)
{
    rp_vec_release(&c->ops);
    rp_vec_release(&c->slots);
    rp_vec_release(&c->arrays);
}

static enum rp_code refuse(struct rp_err *err)
{
    return rp_err_set(err, RP_UNSUPPORTED, "not a loop over scalars");
}

static bool is_short(const struct rp_value_shape *s)
{
    return s->n <= SHORT;
}

static uint32_t *ids_of(const struct rp_tensor *t)
{
    return (uint32_t *)(void *)t->data;
}

/* The slot of element i; one element counts for all. */
static uint32_t slot_of(const struct rp_tensor *t, size_t i)
{
    return ids_of(t)[t->n == 1 ? 0 : i];
}

static enum rp_code new_ids(const struct rp_value_shape *s, struct rp_tensor **out,
                            struct rp_err *err)
{
    if (is_short(s))
        return rp_tensor_new(RP_ELEM_U32, s->dims, s->rank, out, err);
    return rp_tensor_new(RP_ELEM_U32, NULL, 0, out, err);
}

static enum rp_code new_slot(struct flat_ctx *c, unsigned elem, const void *constant, uint32_t *out,
                             struct rp_err *err)
{
    struct flat_slot s = {constant, 0, (uint8_t)elem};
    size_t unit = rp_literal_unit(elem);

    if (!unit || unit > 8)
        return refuse(err);
    *out = (uint32_t)c->slots.n;
    return rp_vec_push(&c->slots, s, err);
}

static enum rp_code push(struct flat_ctx *c, struct rp_scalar_op op, struct rp_err *err)
{
    return c->ops.n < MOST_OPS ? rp_vec_push(&c->ops, op, err) : refuse(err);
}

static enum rp_code push_label(struct flat_ctx *c, uint32_t *at, struct rp_err *err)
{
    *at = (uint32_t)c->ops.n;
    return push(c, (struct rp_scalar_op){.kind = RP_SCALAR_LABEL}, err);
}

static enum rp_code push_move(struct flat_ctx *c, uint32_t to, uint32_t from, struct rp_err *err)
{
    return push(c,
                (struct rp_scalar_op){
                    .kind = RP_SCALAR_MOVE, .elem = c->slots.at[to].elem, .to = to, .a = from},
                err);
}

static enum rp_code new_constant(struct flat_ctx *c, unsigned elem, const void *at, uint32_t *slot,
                                 struct rp_err *err)
{
    void *kept = rp_plan_copy(c->plan, at, rp_literal_unit(elem), 1);

    RP_TRY(rp_err_need(kept, err, "planning"));
    return new_slot(c, elem, kept, slot, err);
}

/* Arrays of which nothing is known but their numbers: constants and the like. */
static enum rp_code walk_constant(struct flat_ctx *c, const struct rp_node *node,
                                  struct rp_tensor **out, struct rp_err *err)
{
    struct rp_eval e = {.plan = c->plan};
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *t = NULL;

    if (!is_short(node->shape))
        return refuse(err);
    RP_TRY(node->run(&e, node, NULL, &t, err));
    RP_TRY(new_ids(node->shape, out, err));
    for (size_t i = 0; i < t->n; i++)
        RP_TRY(new_constant(c, t->elem, t->data + i * t->unit, &ids_of(*out)[i], err));
    return RP_OK;
}

/* Runs the kernel of an operation that only moves elements. */
static enum rp_code walk_moved(struct flat_ctx *c, const struct rp_node *node,
                               struct rp_tensor *const *in, struct rp_tensor **out,
                               struct rp_err *err)
{
    struct rp_eval e = {.plan = c->plan};
    struct rp_value_shape shape = *node->shape;
    struct rp_node like = *node;

    for (uint32_t k = 0; k < node->nin; k++)
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): walk has set all operands */
        if (in[k]->elem != RP_ELEM_U32 || ids_of(in[k])[0] & ARRAY)
            return refuse(err);
    if (!is_short(&shape) || shape.order)
        return refuse(err);
    shape.elem = RP_ELEM_U32;
    like.shape = &shape;
    return node->run(&e, &like, in, out, err);
}

/* One operation on scalars; of integers that are known it is done at once. */
static enum rp_code push_lane(struct flat_ctx *c, struct rp_scalar_op *op, struct rp_err *err)
{
    const uint32_t in[3] = {op->a, op->b, op->c};
    const void *at[3] = {NULL, NULL, NULL};
    bool known = rp_literal_unit(op->lane.to) <= 8;
    char result[16] = {0};

    for (size_t k = 0; k < 3; k++)
        if (in[k] != RP_NONE) {
            const struct flat_slot *s = &c->slots.at[in[k]];

            at[k] = s->constant;
            known = known && s->constant &&
                    (s->elem == RP_ELEM_PRED || s->elem == RP_ELEM_S32 || s->elem == RP_ELEM_U32);
        }
    if (known) {
        op->lane.fn(&op->lane, 1, result, at[0], at[1], at[2]);
        return new_constant(c, op->lane.to, result, &op->to, err);
    }
    op->most = 0;
    if (at[1] && op->lane.from == RP_ELEM_S32 &&
        (op->code == RP_OP_DIVIDE || op->code == RP_OP_REMAINDER)) {
        int32_t by;

        memcpy(&by, at[1], sizeof by);
        op->most = by;
    }
    RP_TRY(new_slot(c, op->lane.to, NULL, &op->to, err));
    return push(c, *op, err);
}

static enum rp_code walk_element(struct flat_ctx *c, const struct rp_node *node,
                                 struct rp_tensor *const *in, struct rp_tensor **out,
                                 struct rp_err *err)
{
    struct rp_scalar_op op = {.kind = RP_SCALAR_LANE,
                              .code = (uint16_t)node->code,
                              .a = RP_NONE,
                              .b = RP_NONE,
                              .c = RP_NONE};
    uint32_t *place[3] = {&op.a, &op.b, &op.c};

    if (!is_short(node->shape) || !node->nin || node->nin > 3 ||
        !rp_lane_of_node(c->plan, node, false, &op.lane))
        return refuse(err);
    for (uint32_t k = 0; k < node->nin; k++)
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): walk has set all operands */
        if (in[k]->elem != RP_ELEM_U32 || ids_of(in[k])[0] & ARRAY)
            return refuse(err);
    RP_TRY(new_ids(node->shape, out, err));
    for (size_t i = 0; i < node->shape->n; i++) {
        for (uint32_t k = 0; k < node->nin; k++)
            *place[k] = slot_of(in[k], i);
        if (node->shape->n > 1 && !rp_scalar_is_frequent(&op))
            return refuse(err); /* its lane does all of the array at once */
        if (node->code == RP_OP_CONVERT && op.lane.from == op.lane.to)
            op.to = op.a;
        else
            RP_TRY(push_lane(c, &op, err));
        ids_of(*out)[i] = op.to;
    }
    return RP_OK;
}

/* ---- elements of arrays ---- */

/* Where the elements of an array are. */
struct flat_where {
    uint32_t slot;  /* of the address */
    int64_t before; /* bytes from there to the first element */
    int64_t unit;   /* from one element to the next */
};

/* The elements of a short array are brought together. */
static enum rp_code find_array(struct flat_ctx *c, const struct rp_tensor *t, unsigned elem,
                               struct flat_where *w, uint32_t *copies, struct rp_err *err)
{
    if (ids_of(t)[0] & ARRAY) {
        const struct flat_array *a = &c->arrays.at[ids_of(t)[0] & ~ARRAY];

        w->slot = a->slot;
        w->unit = (int64_t)rp_literal_unit(elem);
        return c->slots.at[a->slot].version == a->version ? RP_OK : refuse(err);
    }
    w->slot = RP_SCALAR_FRAME;
    w->before = (int64_t)c->slots.n * 16;
    w->unit = 16;
    for (size_t i = 0; i < t->n; i++)
        RP_TRY(new_slot(c, elem, NULL, &copies[i], err));
    for (size_t i = 0; i < t->n; i++)
        RP_TRY(push_move(c, copies[i], ids_of(t)[i], err));
    return RP_OK;
}

static bool is_index(unsigned elem)
{
    return elem == RP_ELEM_S32 || elem == RP_ELEM_U32 || elem == RP_ELEM_S64 || elem == RP_ELEM_U64;
}

/* Adds one coordinate to a place. */
static enum rp_code push_place(struct flat_ctx *c, unsigned elem, uint32_t index, int64_t most,
                               int64_t stride, uint32_t *place, struct rp_err *err)
{
    struct rp_scalar_op op = {.kind = RP_SCALAR_PLACE,
                              .elem = (uint8_t)elem,
                              .a = index,
                              .b = *place,
                              .c = RP_NONE,
                              .most = most,
                              .stride = stride};

    if (!is_index(elem) || stride > INT32_MAX || most > INT32_MAX)
        return refuse(err);
    RP_TRY(new_slot(c, RP_ELEM_S64, NULL, &op.to, err));
    *place = op.to;
    return push(c, op, err);
}

/* Reads (`store` false) or writes the elements of a part, whose dimensions are in the array's. */
static enum rp_code push_part(struct flat_ctx *c, const struct flat_where *w, uint32_t place,
                              unsigned elem, const struct rp_value_shape *whole,
                              const int64_t *part, bool store, uint32_t *ids, struct rp_err *err)
{
    int64_t index[RP_TENSOR_RANK] = {0}, stride[RP_TENSOR_RANK];
    size_t i = 0;

    rp_strides(whole->dims, whole->rank, stride);
    do {
        struct rp_scalar_op op = {.kind = store ? RP_SCALAR_STORE : RP_SCALAR_LOAD,
                                  .elem = (uint8_t)elem,
                                  .a = w->slot,
                                  .b = place,
                                  .c = store ? ids[i] : RP_NONE,
                                  .to = RP_NONE,
                                  .stride = w->before};

        for (uint32_t k = 0; k < whole->rank; k++)
            op.stride += index[k] * stride[k] * w->unit;
        if (op.stride > INT32_MAX)
            return refuse(err);
        if (!store)
            RP_TRY(new_slot(c, elem, NULL, &op.to, err));
        if (!store)
            ids[i] = op.to;
        RP_TRY(push(c, op, err));
        i++;
    } while (rp_index_next(index, part, whole->rank));
    return RP_OK;
}

/* The value of an array that was just changed. */
static enum rp_code changed(struct flat_ctx *c, const struct rp_value_shape *shape,
                            const struct flat_where *w, const uint32_t *copies,
                            struct rp_tensor **out, struct rp_err *err)
{
    RP_TRY(new_ids(shape, out, err));
    if (w->slot == RP_SCALAR_FRAME) {
        memcpy((*out)->data, copies, rp_tensor_bytes(*out));
        return RP_OK;
    }
    struct flat_array a = {w->slot, ++c->versions};
    c->slots.at[w->slot].version = a.version;
    ids_of(*out)[0] = ARRAY | (uint32_t)c->arrays.n;
    return rp_vec_push(&c->arrays, a, err);
}

/* dynamic-slice and dynamic-update-slice */
static enum rp_code walk_slice(struct flat_ctx *c, const struct rp_node *node,
                               struct rp_tensor *const *in, struct rp_tensor **out,
                               struct rp_err *err)
{
    bool update = node->code == RP_OP_DYNAMIC_UPDATE_SLICE;
    uint32_t first = update ? 2 : 1, place = RP_NONE, copies[SHORT];
    const struct rp_value_shape *whole = rp_node_operand(c->plan, node, 0);
    const struct rp_value_shape *part = update ? rp_node_operand(c->plan, node, 1) : node->shape;
    int64_t stride[RP_TENSOR_RANK];
    struct flat_where w = {0};

    if (!is_short(part) || !part->n || node->nin != first + whole->rank ||
        part->rank != whole->rank || (update && ids_of(in[1])[0] & ARRAY))
        return refuse(err);
    RP_TRY(find_array(c, in[0], whole->elem, &w, copies, err));
    rp_strides(whole->dims, whole->rank, stride);
    for (uint32_t k = 0; k < whole->rank; k++) {
        int64_t most = whole->dims[k] - part->dims[k];
        const struct rp_value_shape *start = rp_node_operand(c->plan, node, first + k);

        if (most < 0 || start->n != 1)
            return refuse(err);
        if (most)
            RP_TRY(push_place(c, start->elem, slot_of(in[first + k], 0), most, stride[k] * w.unit,
                              &place, err));
    }
    if (update) {
        RP_TRY(push_part(c, &w, place, whole->elem, whole, part->dims, true, ids_of(in[1]), err));
        return changed(c, node->shape, &w, copies, out, err);
    }
    RP_TRY(new_ids(node->shape, out, err));
    return push_part(c, &w, place, whole->elem, whole, part->dims, false, ids_of(*out), err);
}

static enum rp_code walk(struct flat_ctx *c, const struct rp_graph *g,
                         struct rp_tensor *const *args, struct rp_tensor **out, struct rp_err *err);

/* Replaces each of the n slots at `old` by what the function makes of it and of `update`. */
static enum rp_code combine(struct flat_ctx *c, const struct rp_node *node, uint32_t *old,
                            const uint32_t *update, size_t n, struct rp_err *err)
{
    for (size_t i = 0; i < n; i++) {
        RP_SCOPED(rp_tensors_release) struct rp_tensors args = {0};
        RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *result = NULL;

        RP_TRY(rp_tensors_new(2, &args, err));
        RP_TRY(rp_tensor_new(RP_ELEM_U32, NULL, 0, &args.at[0], err));
        RP_TRY(rp_tensor_new(RP_ELEM_U32, NULL, 0, &args.at[1], err));
        ids_of(args.at[0])[0] = old[i];
        ids_of(args.at[1])[0] = update[i];
        RP_TRY(walk(c, node->called[0], args.at, &result, err));
        if (result->elem != RP_ELEM_U32 || result->n != 1)
            return refuse(err);
        old[i] = ids_of(result)[0];
    }
    return RP_OK;
}

/* A scatter of one window, which is left out if it is not inside. */
static enum rp_code walk_scatter(struct flat_ctx *c, const struct rp_node *node,
                                 struct rp_tensor *const *in, struct rp_tensor **out,
                                 struct rp_err *err)
{
    const struct rp_gather *a = node->attrs;
    const struct rp_value_shape *whole = rp_node_operand(c->plan, node, 0);
    int64_t part[RP_TENSOR_RANK], stride[RP_TENSOR_RANK];
    uint32_t place = RP_NONE, copies[SHORT], old[SHORT], last, from;
    struct flat_where w = {0};
    size_t inside = 0;

    if (a->k != 1 || node->nin != 3 || node->shape->elem == RP_ELEM_TUPLE || a->index_batch.n ||
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): walk has set all operands */
        in[1]->elem != RP_ELEM_U32 || (ids_of(in[1])[0] | ids_of(in[2])[0]) & ARRAY ||
        in[1]->n != a->map.n || !in[2]->n)
        return refuse(err);
    for (uint32_t k = 0; k < whole->rank; k++)
        part[k] = rp_dims_has(a->collapsed, k) ? 1 : in[2]->dims[a->offset.at[inside++]];
    for (size_t k = 1; k < a->offset.n; k++)
        if (a->offset.at[k] < a->offset.at[k - 1])
            return refuse(err);
    RP_TRY(find_array(c, in[0], whole->elem, &w, copies, err));
    from = (uint32_t)c->ops.n;
    rp_strides(whole->dims, whole->rank, stride);
    for (size_t k = 0; k < a->map.n; k++) {
        int64_t d = a->map.at[k], most = whole->dims[d] - part[d];
        unsigned elem = rp_node_operand(c->plan, node, 1)->elem;

        if (!is_index(elem) || most < 0 || most > INT32_MAX)
            return refuse(err);
        RP_TRY(push(c,
                    (struct rp_scalar_op){.kind = RP_SCALAR_INSIDE,
                                          .elem = (uint8_t)elem,
                                          .a = ids_of(in[1])[k],
                                          .most = most},
                    err));
        RP_TRY(push_place(c, elem, ids_of(in[1])[k], most, stride[d] * w.unit, &place, err));
    }
    memcpy(old, in[2]->data, rp_tensor_bytes(in[2]));
    if (!a->tape->second) {
        RP_TRY(push_part(c, &w, place, whole->elem, whole, part, false, old, err));
        RP_TRY(combine(c, node, old, ids_of(in[2]), in[2]->n, err));
    }
    RP_TRY(push_part(c, &w, place, whole->elem, whole, part, true, old, err));
    RP_TRY(push_label(c, &last, err));
    for (uint32_t i = from; i < last; i++)
        if (c->ops.at[i].kind == RP_SCALAR_INSIDE)
            c->ops.at[i].to = last;
    return changed(c, node->shape, &w, copies, out, err);
}

/* Elements in their order, as the reference takes them. */
static enum rp_code walk_reduce(struct flat_ctx *c, const struct rp_node *node,
                                struct rp_tensor *const *in, struct rp_tensor **out,
                                struct rp_err *err)
{
    const struct rp_reduce *a = node->attrs;
    const struct rp_value_shape *from = rp_node_operand(c->plan, node, 0);
    size_t k, n = 1;
    int64_t index[RP_TENSOR_RANK] = {0}, stride[RP_TENSOR_RANK] = {0};
    RP_SCOPED(rp_tensors_release) struct rp_tensors acc = {0};

    if (!is_short(from) || !from->n)
        return refuse(err);
    for (k = from->rank; k-- > 0;)
        if (!a->reduced[k]) {
            stride[k] = (int64_t)n;
            n *= (size_t)from->dims[k];
        }
    RP_TRY(rp_tensors_new(a->k, &acc, err));
    for (k = 0; k < a->k; k++) {
        const struct rp_value_shape *part = rp_node_part(node, k);

        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): walk has set all operands */
        if (in[k]->elem != RP_ELEM_U32 || ids_of(in[k])[0] & ARRAY || part->n != n ||
            (a->tape->simple && rp_reduce_is_rounded(a->tape, part->elem)))
            return refuse(err); /* rounded in ways of their own */
        RP_TRY(new_ids(part, &acc.at[k], err));
        for (size_t i = 0; i < n; i++)
            ids_of(acc.at[k])[i] = slot_of(in[a->k + k], 0);
    }
    for (size_t i = 0; i < from->n; i++, rp_index_next(index, from->dims, from->rank)) {
        RP_SCOPED(rp_tensors_release) struct rp_tensors args = {0};
        RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *result = NULL;
        int64_t at = 0;

        for (k = 0; k < from->rank; k++)
            at += index[k] * stride[k];
        RP_TRY(rp_tensors_new(2 * a->k, &args, err));
        for (k = 0; k < 2 * a->k; k++) {
            RP_TRY(rp_tensor_new(RP_ELEM_U32, NULL, 0, &args.at[k], err));
            ids_of(args.at[k])[0] = k < a->k ? ids_of(acc.at[k])[at] : ids_of(in[k - a->k])[i];
        }
        RP_TRY(walk(c, node->called[0], args.at, &result, err));
        for (k = 0; k < a->k; k++) {
            const struct rp_tensor *part =
                result->elem == RP_ELEM_TUPLE ? result->parts[k] : result;

            if (part->elem != RP_ELEM_U32 || part->n != 1)
                return refuse(err);
            ids_of(acc.at[k])[at] = ids_of(part)[0];
        }
    }
    return rp_node_give(node, &acc, out, err);
}

/* The ids of an operand of a product, whose elements are read if it is a long array. */
static enum rp_code read_all(struct flat_ctx *c, const struct rp_value_shape *s,
                             const struct rp_tensor *t, uint32_t *ids, struct rp_err *err)
{
    struct flat_where w = {0};

    if (!(ids_of(t)[0] & ARRAY)) {
        memcpy(ids, t->data, rp_tensor_bytes(t));
        return RP_OK;
    }
    RP_TRY(find_array(c, t, s->elem, &w, NULL, err));
    return push_part(c, &w, RP_NONE, s->elem, s, s->dims, false, ids, err);
}

/* A product of matrices or vectors of f32, each result one sum. */
static enum rp_code walk_dot(struct flat_ctx *c, const struct rp_node *node,
                             struct rp_tensor *const *in, struct rp_tensor **out,
                             struct rp_err *err)
{
    const struct rp_value_shape *side[2] = {rp_node_operand(c->plan, node, 0),
                                            rp_node_operand(c->plan, node, 1)};
    static const uint16_t keys[] = {RP_ATTR_LHS_CONTRACTING_DIMS, RP_ATTR_RHS_CONTRACTING_DIMS};
    size_t step[2], next[2], rows[2], inner = 0;
    uint32_t ids[2][MOST_DOT];

    if (node->shape->elem != RP_ELEM_F32 || !is_short(node->shape) || c->plan->tf32 ||
        rp_node_attr(c->plan, node, RP_ATTR_LHS_BATCH_DIMS))
        return refuse(err);
    for (int k = 0; k < 2; k++) {
        const int64_t *dims;
        size_t n;

        RP_TRY(rp_node_ints(c->plan, node, keys[k], side[k]->rank, &dims, &n, err));
        if (side[k]->elem != RP_ELEM_F32 || side[k]->n > MOST_DOT || side[k]->rank > 2 || n != 1)
            return refuse(err);
        bool last = (size_t)dims[0] + 1 == side[k]->rank;
        inner = (size_t)side[k]->dims[dims[0]];
        rows[k] = side[k]->n / inner;
        step[k] = last ? 1 : rows[k];
        next[k] = last ? inner : 1;
        RP_TRY(read_all(c, side[k], in[k], ids[k], err));
    }
    if (rows[0] * rows[1] != node->shape->n)
        return refuse(err);
    RP_TRY(new_ids(node->shape, out, err));
    for (size_t i = 0; i < node->shape->n; i++) {
        size_t l = i / rows[1] * next[0], r = i % rows[1] * next[1];
        struct rp_scalar_op times = {.code = RP_OP_MULTIPLY, .c = RP_NONE}, plus;

        times.lane = (struct rp_lane){.from = RP_ELEM_F32, .to = RP_ELEM_F32};
        plus = times;
        plus.code = RP_OP_ADD;
        rp_lane_find(RP_OP_MULTIPLY, false, &times.lane);
        rp_lane_find(RP_OP_ADD, false, &plus.lane);
        for (size_t k = 0; k < inner; k++) {
            times.a = ids[0][l + k * step[0]];
            times.b = ids[1][r + k * step[1]];
            RP_TRY(push_lane(c, &times, err));
            plus.a = plus.to;
            plus.b = times.to;
            if (k)
                RP_TRY(push_lane(c, &plus, err));
            else
                plus.to = times.to;
        }
        ids_of(*out)[i] = plus.to;
    }
    return RP_OK;
}

/* ---- loops and branches ---- */

struct flat_pair {
    uint32_t to, from;
};

struct flat_pairs {
    RP_VEC(struct flat_pair) v;
};

static void pairs_release(struct flat_pairs *p)
{
    rp_vec_release(&p->v);
}

/* A value like another one: long arrays as they are now, scalars in the same slots or in new ones.
 */
static enum rp_code like_value(struct flat_ctx *c, const struct rp_value_shape *s,
                               struct rp_tensor *from, bool anew, struct rp_tensor **out,
                               struct rp_err *err)
{
    if (s->elem == RP_ELEM_TUPLE) {
        RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};

        RP_TRY(rp_tensors_new(s->nparts, &parts, err));
        for (uint32_t i = 0; i < s->nparts; i++)
            RP_TRY(like_value(c, s->parts[i], from->parts[i], anew, &parts.at[i], err));
        parts.n = 0; /* the tuple takes them over */
        return rp_tensor_tuple(parts.at, s->nparts, out, err);
    }
    if (ids_of(from)[0] & ARRAY) {
        uint32_t slot = c->arrays.at[ids_of(from)[0] & ~ARRAY].slot;
        struct flat_array now = {slot, c->slots.at[slot].version};

        RP_TRY(new_ids(s, out, err));
        ids_of(*out)[0] = ARRAY | (uint32_t)c->arrays.n;
        return rp_vec_push(&c->arrays, now, err);
    }
    if (!anew) {
        *out = rp_tensor_keep(from);
        return RP_OK;
    }
    RP_TRY(new_ids(s, out, err));
    for (size_t i = 0; i < s->n; i++)
        RP_TRY(new_slot(c, s->elem, NULL, &ids_of(*out)[i], err));
    return RP_OK;
}

/* Lists what must be moved so that `to` becomes `from`; a long array must be where it is. */
static enum rp_code list_pairs(struct flat_ctx *c, const struct rp_tensor *to,
                               const struct rp_tensor *from, struct flat_pairs *pairs,
                               struct rp_err *err)
{
    if (to->elem != from->elem || (to->elem == RP_ELEM_TUPLE && to->nparts != from->nparts))
        return refuse(err);
    for (size_t i = 0; to->elem == RP_ELEM_TUPLE && i < to->nparts; i++)
        RP_TRY(list_pairs(c, to->parts[i], from->parts[i], pairs, err));
    if (to->elem == RP_ELEM_TUPLE)
        return RP_OK;
    for (size_t i = 0; i < to->n; i++) {
        struct flat_pair p = {ids_of(to)[i], ids_of(from)[i]};

        if (to->n != from->n || (p.to ^ p.from) & ARRAY)
            return refuse(err);
        if (p.to & ARRAY) {
            const struct flat_array *a = &c->arrays.at[p.from & ~ARRAY];

            if (a->slot != c->arrays.at[p.to & ~ARRAY].slot ||
                a->version != c->slots.at[a->slot].version)
                return refuse(err);
        } else if (p.to != p.from) {
            RP_TRY(rp_vec_push(&pairs->v, p, err));
        }
    }
    return RP_OK;
}

/* Moves all at once: what is also written is copied before. */
static enum rp_code push_moves(struct flat_ctx *c, const struct rp_tensor *to,
                               const struct rp_tensor *from, struct rp_err *err)
{
    RP_SCOPED(pairs_release) struct flat_pairs pairs = {0};

    RP_TRY(list_pairs(c, to, from, &pairs, err));
    for (size_t i = 0; i < pairs.v.n; i++)
        for (size_t k = 0; k < i; k++)
            if (pairs.v.at[k].to == pairs.v.at[i].from) {
                uint32_t copy;

                RP_TRY(new_slot(c, c->slots.at[pairs.v.at[i].from].elem, NULL, &copy, err));
                RP_TRY(push_move(c, copy, pairs.v.at[i].from, err));
                pairs.v.at[i].from = copy;
                break;
            }
    for (size_t i = 0; i < pairs.v.n; i++)
        RP_TRY(push_move(c, pairs.v.at[i].to, pairs.v.at[i].from, err));
    return RP_OK;
}

static enum rp_code walk_while(struct flat_ctx *c, const struct rp_node *node, struct rp_tensor *in,
                               struct rp_tensor **out, struct rp_err *err)
{
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *state = NULL, *more = NULL, *next = NULL;
    uint32_t head, test, last;

    RP_TRY(like_value(c, node->shape, in, true, &state, err));
    RP_TRY(push_moves(c, state, in, err));
    RP_TRY(push_label(c, &head, err));
    RP_TRY(walk(c, node->called[1], &state, &more, err));
    if (more->elem != RP_ELEM_U32 || more->n != 1)
        return refuse(err);
    test = (uint32_t)c->ops.n;
    RP_TRY(push(c,
                (struct rp_scalar_op){
                    .kind = RP_SCALAR_EQUAL, .elem = RP_ELEM_PRED, .a = ids_of(more)[0], .most = 1},
                err));
    RP_TRY(walk(c, node->called[0], &state, &next, err));
    RP_TRY(push_moves(c, state, next, err));
    RP_TRY(push(c, (struct rp_scalar_op){.kind = RP_SCALAR_AGAIN, .to = head}, err));
    RP_TRY(push_label(c, &last, err));
    c->ops.at[test].to = last;
    return like_value(c, node->shape, state, false, out, err);
}

/* The versions of arrays before a branch, and those that a branch changes. */
struct flat_versions {
    uint32_t *before;
    bool *changed;
    size_t n;
};

static void versions_release(struct flat_versions *v)
{
    free(v->before);
    free(v->changed);
}

static void versions_restore(struct flat_ctx *c, struct flat_versions *v)
{
    for (size_t i = 0; i < v->n; i++) {
        v->changed[i] |= c->slots.at[i].version != v->before[i];
        c->slots.at[i].version = v->before[i];
    }
}

static enum rp_code walk_branches(struct flat_ctx *c, const struct rp_node *node,
                                  struct rp_tensor *const *in, struct rp_tensor **out,
                                  struct rp_err *err)
{
    unsigned elem = rp_node_operand(c->plan, node, 0)->elem;
    RP_SCOPED(versions_release) struct flat_versions v = {.n = c->slots.n};
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *joined = NULL;
    uint32_t test = 0, last;
    RP_VEC_LOCAL(uint32_t, ends);

    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): walk has set all operands */
    if ((elem != RP_ELEM_PRED && elem != RP_ELEM_S32) || in[0]->n != 1 || !node->ncalled)
        return refuse(err);
    v.before = calloc(v.n + 1, sizeof *v.before);
    v.changed = calloc(v.n + 1, sizeof *v.changed);
    RP_TRY(rp_err_need(v.before && v.changed, err, "planning"));
    for (size_t i = 0; i < v.n; i++)
        v.before[i] = c->slots.at[i].version;
    for (uint32_t k = 0; k < node->ncalled; k++) {
        RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *result = NULL;

        versions_restore(c, &v);
        if (k + 1 < node->ncalled) {
            test = (uint32_t)c->ops.n;
            RP_TRY(push(c,
                        (struct rp_scalar_op){.kind = RP_SCALAR_EQUAL,
                                              .elem = (uint8_t)elem,
                                              .a = ids_of(in[0])[0],
                                              .most = elem == RP_ELEM_PRED ? k == 0 : k},
                        err));
        }
        RP_TRY(walk(c, node->called[k], &in[k + 1], &result, err));
        if (!joined)
            RP_TRY(like_value(c, node->shape, result, true, &joined, err));
        RP_TRY(push_moves(c, joined, result, err));
        if (k + 1 == node->ncalled)
            break;
        RP_TRY(rp_vec_push(&ends, (uint32_t)c->ops.n, err));
        RP_TRY(push(c, (struct rp_scalar_op){.kind = RP_SCALAR_JUMP}, err));
        RP_TRY(push_label(c, &c->ops.at[test].to, err));
    }
    RP_TRY(push_label(c, &last, err));
    for (size_t i = 0; i < ends.n; i++)
        c->ops.at[((uint32_t *)ends.at)[i]].to = last;
    versions_restore(c, &v);
    for (size_t i = 0; i < v.n; i++)
        if (v.changed[i])
            c->slots.at[i].version = ++c->versions;
    return like_value(c, node->shape, joined, false, out, err);
}

static enum rp_code walk_node(struct flat_ctx *c, const struct rp_node *node,
                              struct rp_tensor *const *in, struct rp_tensor *const *args,
                              struct rp_tensor **out, struct rp_err *err)
{
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};

    switch (node->code) {
    case RP_OP_PARAMETER:
        *out = rp_tensor_keep(args[node->value]);
        return RP_OK;
    case RP_OP_GET_TUPLE_ELEMENT:
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): walk has set all operands */
        if (in[0]->elem != RP_ELEM_TUPLE || (uint64_t)node->value >= in[0]->nparts)
            return refuse(err);
        *out = rp_tensor_keep(in[0]->parts[node->value]);
        return RP_OK;
    case RP_OP_TUPLE:
        RP_TRY(rp_tensors_new(node->nin, &parts, err));
        for (uint32_t k = 0; k < node->nin; k++)
            parts.at[k] = rp_tensor_keep(in[k]);
        parts.n = 0; /* the tuple takes them over */
        return rp_tensor_tuple(parts.at, node->nin, out, err);
    case RP_OP_COPY:
    case RP_OP_OPT_BARRIER:
        *out = rp_tensor_keep(in[0]);
        return RP_OK;
    case RP_OP_CONSTANT:
    case RP_OP_IOTA:
        return walk_constant(c, node, out, err);
    case RP_OP_RESHAPE:
        if (!is_short(node->shape)) {
            *out = rp_tensor_keep(in[0]);
            return RP_OK;
        }
        return walk_moved(c, node, in, out, err);
    case RP_OP_BITCAST:
    case RP_OP_BROADCAST:
    case RP_OP_TRANSPOSE:
    case RP_OP_REVERSE:
    case RP_OP_SLICE:
    case RP_OP_CONCATENATE:
    case RP_OP_PAD:
        return walk_moved(c, node, in, out, err);
    case RP_OP_DYNAMIC_SLICE:
    case RP_OP_DYNAMIC_UPDATE_SLICE:
        return walk_slice(c, node, in, out, err);
    case RP_OP_SCATTER:
        return walk_scatter(c, node, in, out, err);
    case RP_OP_REDUCE:
        return walk_reduce(c, node, in, out, err);
    case RP_OP_DOT:
        return walk_dot(c, node, in, out, err);
    case RP_OP_CALL:
    case RP_OP_FUSION:
        return node->ncalled == 1 ? walk(c, node->called[0], in, out, err) : refuse(err);
    case RP_OP_WHILE:
        return walk_while(c, node, in[0], out, err);
    case RP_OP_CONDITIONAL:
        return walk_branches(c, node, in, out, err);
    default:
        return rp_opcode_is_elementwise(node->code) ? walk_element(c, node, in, out, err)
                                                    : refuse(err);
    }
}

/* Whether a value has a place: no dynamic sizes, no tokens. */
static bool has_place(const struct rp_value_shape *s)
{
    if (s->elem != RP_ELEM_TUPLE)
        return rp_shape_is_array(s) && s->n && !s->dynamic;
    for (uint32_t i = 0; i < s->nparts; i++)
        if (!has_place(s->parts[i]))
            return false;
    return true;
}

#define MOST_OPERANDS 256

static enum rp_code walk(struct flat_ctx *c, const struct rp_graph *g,
                         struct rp_tensor *const *args, struct rp_tensor **out, struct rp_err *err)
{
    RP_SCOPED(rp_tensors_release) struct rp_tensors values = {0};
    struct rp_tensor *in[MOST_OPERANDS];

    if (c->depth >= MOST_DEPTH || g->n > MOST_OPS)
        return refuse(err);
    c->depth++;
    RP_TRY(rp_tensors_new(g->n, &values, err));
    for (uint32_t i = 0; i < g->n; i++) {
        const struct rp_node *node = &g->nodes[i];

        if (node->skip || node->nin > MOST_OPERANDS || !has_place(node->shape))
            return refuse(err);
        for (uint32_t k = 0; k < node->nin; k++)
            in[k] = values.at[node->in[k]];
        RP_TRY(walk_node(c, node, in, args, &values.at[i], err));
    }
    c->depth--;
    *out = rp_tensor_keep(values.at[g->root]);
    return RP_OK;
}

/* The part of the state before the loop: new slots, or one for the address of a long array. */
static enum rp_code start_part(struct flat_ctx *c, const struct rp_value_shape *s,
                               struct flat_part *p, struct rp_tensor **out, struct rp_err *err)
{
    if (!has_place(s) || s->elem == RP_ELEM_TUPLE)
        return refuse(err);
    p->array = !is_short(s);
    p->n = p->array ? 1 : (uint32_t)s->n;
    p->from = RP_ARENA_NEW(&c->plan->arena, uint32_t, p->n);
    RP_TRY(rp_err_need(p->from, err, "planning"));
    for (uint32_t i = 0; i < p->n; i++)
        RP_TRY(new_slot(c, p->array ? RP_ELEM_S64 : s->elem, NULL, &p->from[i], err));
    RP_TRY(new_ids(s, out, err));
    memcpy((*out)->data, p->from, p->n * sizeof *p->from);
    if (!p->array)
        return RP_OK;
    if (rp_literal_unit(s->elem) > 8)
        return refuse(err);
    struct flat_array a = {p->from[0], 0};
    ids_of(*out)[0] = ARRAY | (uint32_t)c->arrays.n;
    return rp_vec_push(&c->arrays, a, err);
}

static const struct rp_value_shape *part_shape(const struct rp_value_shape *state, size_t i)
{
    return state->elem == RP_ELEM_TUPLE ? state->parts[i] : state;
}

static enum rp_code flat_build(struct flat_ctx *c, const struct rp_node *node, struct flat_loop *l,
                               struct rp_err *err)
{
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *start = NULL, *end = NULL;
    const struct rp_value_shape *state = node->shape;
    uint32_t slot;

    l->nparts = state->elem == RP_ELEM_TUPLE ? state->nparts : 1;
    l->parts = RP_ARENA_NEW(&c->plan->arena, struct flat_part, l->nparts + 1);
    RP_TRY(rp_err_need(l->parts, err, "planning"));
    for (uint32_t i = 0; i < RP_SCALAR_SLOTS; i++)
        RP_TRY(new_slot(c, RP_ELEM_S64, NULL, &slot, err));
    RP_TRY(rp_tensors_new(l->nparts, &parts, err));
    for (size_t i = 0; i < l->nparts; i++)
        RP_TRY(start_part(c, part_shape(state, i), &l->parts[i], &parts.at[i], err));
    if (state->elem == RP_ELEM_TUPLE) {
        parts.n = 0; /* the tuple takes them over */
        RP_TRY(rp_tensor_tuple(parts.at, l->nparts, &start, err));
    } else {
        start = rp_tensor_keep(parts.at[0]);
    }
    RP_TRY(walk_while(c, node, start, &end, err));
    for (size_t i = 0; i < l->nparts; i++) {
        struct flat_part *p = &l->parts[i];
        const struct rp_tensor *t = state->elem == RP_ELEM_TUPLE ? end->parts[i] : end;

        p->to = rp_plan_copy(c->plan, t->data, p->n, sizeof *p->to);
        RP_TRY(rp_err_need(p->to, err, "planning"));
        p->written = p->array && c->slots.at[p->from[0]].version;
    }
    l->nops = c->ops.n;
    l->nslots = c->slots.n;
    l->ops = rp_plan_copy(c->plan, c->ops.at, l->nops, sizeof *l->ops);
    l->slots = rp_plan_copy(c->plan, c->slots.at, l->nslots, sizeof *l->slots);
    return rp_err_need(l->ops && l->slots, err, "planning");
}

RP_PREPARE(rp_fast_while_prepare)
{
    RP_SCOPED(flat_release) struct flat_ctx c = {.plan = plan};
    struct flat_loop *l = RP_NODE_NEW(plan, struct flat_loop);
    struct rp_err ignored = RP_ERR_INIT;
    struct rp_tape *more;

    RP_TRY(rp_while_prepare(plan, node, err));
    RP_TRY(rp_err_need(l, err, "planning"));
    if (plan->varies || plan->refused)
        return RP_OK;
    if (node->shape->elem == RP_ELEM_TUPLE &&
        rp_tape_new(plan, node->called[1], false, &more, &ignored) == RP_OK &&
        more->nparams == node->shape->nparts && more->nresults == 1 &&
        more->regs[more->results[0]].elem == RP_ELEM_PRED)
        node->called[1]->tape = more;
    enum rp_code code = flat_build(&c, node, l, &ignored);
    if (code == RP_NOMEM)
        return rp_err_nomem(err, "planning");
    if (code != RP_OK)
        return RP_OK;
    node->attrs = l;
    l->fn = rp_scalar_compile(plan, l->ops, l->nops);
    return RP_OK;
}

/* ---- running ---- */

struct flat_run {
    const struct rp_eval *e;
    struct rp_err *err;
    enum rp_code code;
};

int rp_scalar_look(rp_scalar_slot *frame)
{
    int32_t turns = RP_SCALAR_LOOK;
    struct flat_run *r;

    memcpy(frame[RP_SCALAR_TURNS], &turns, sizeof turns);
    memcpy(&r, frame[RP_SCALAR_TURNS] + 8, sizeof r);
    r->code = rp_eval_on_time(r->e, r->err);
    return r->code != RP_OK;
}

static int64_t number_in(const rp_scalar_slot *slot, unsigned elem)
{
    int64_t wide = 0;
    int32_t narrow;

    if (elem == RP_ELEM_S32) {
        memcpy(&narrow, slot, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, slot, rp_literal_unit(elem));
    return elem == RP_ELEM_U64 && wide < 0 ? INT64_MAX : wide;
}

static char *element_of(rp_scalar_slot *frame, const struct rp_scalar_op *op)
{
    char *base;
    int64_t place = 0;

    memcpy(&base, frame[op->a], sizeof base);
    if (op->b != RP_NONE)
        memcpy(&place, frame[op->b], sizeof place);
    return base + place + op->stride;
}

/* Where there is no machine code. */
static int flat_interpret(const struct flat_loop *l, rp_scalar_slot *frame)
{
    for (size_t i = 0; i < l->nops; i++) {
        const struct rp_scalar_op *op = &l->ops[i];
        size_t unit = rp_literal_unit(op->elem);
        int64_t v, before = 0;
        int32_t turns;

        switch (op->kind) {
        case RP_SCALAR_LANE:
            op->lane.fn(&op->lane, 1, frame[op->to], frame[op->a],
                        op->b == RP_NONE ? NULL : frame[op->b],
                        op->c == RP_NONE ? NULL : frame[op->c]);
            break;
        case RP_SCALAR_MOVE:
            memcpy(frame[op->to], frame[op->a], sizeof *frame);
            break;
        case RP_SCALAR_PLACE:
            v = number_in(&frame[op->a], op->elem);
            v = v < 0 ? 0 : v > op->most ? op->most : v;
            if (op->b != RP_NONE)
                memcpy(&before, frame[op->b], sizeof before);
            v = before + v * op->stride;
            memcpy(frame[op->to], &v, sizeof v);
            break;
        case RP_SCALAR_LOAD:
            memcpy(frame[op->to], element_of(frame, op), unit);
            break;
        case RP_SCALAR_STORE:
            memcpy(element_of(frame, op), frame[op->c], unit);
            break;
        case RP_SCALAR_INSIDE:
            v = number_in(&frame[op->a], op->elem);
            i = v < 0 || v > op->most ? op->to : i;
            break;
        case RP_SCALAR_EQUAL:
            i = number_in(&frame[op->a], op->elem) != op->most ? op->to : i;
            break;
        case RP_SCALAR_AGAIN:
            memcpy(&turns, frame[RP_SCALAR_TURNS], sizeof turns);
            turns--;
            memcpy(frame[RP_SCALAR_TURNS], &turns, sizeof turns);
            if (!turns && rp_scalar_look(frame))
                return 1;
            i = op->to;
            break;
        case RP_SCALAR_JUMP:
            i = op->to;
            break;
        default:
            break;
        }
    }
    return 0;
}

/* The memory of a long array: its own, if the loop writes it. */
static enum rp_code take_array(const struct rp_node *node, const struct flat_part *p,
                               const struct rp_tensor *state, struct rp_tensor *t,
                               struct rp_tensor **out, struct rp_err *err)
{
    bool ours = t->users == 1 && !t->borrowed && state != t && state->users == 1 &&
                rp_node_ends(node, node->in[0]);

    if (p->written && !ours)
        return rp_tensor_copy(t, out, err);
    return rp_tensor_align(t, out, err);
}

static enum rp_code flat_start(const struct rp_node *node, struct rp_tensor *state,
                               rp_scalar_slot *frame, struct rp_tensors *parts, struct rp_err *err)
{
    const struct flat_loop *l = node->attrs;

    for (size_t i = 0; i < l->nslots; i++)
        if (l->slots[i].constant)
            memcpy(frame[i], l->slots[i].constant, rp_literal_unit(l->slots[i].elem));
    for (size_t k = 0; k < l->nparts; k++) {
        const struct flat_part *p = &l->parts[k];
        struct rp_tensor *t = state->elem == RP_ELEM_TUPLE ? state->parts[k] : state;

        for (uint32_t i = 0; !p->array && i < p->n; i++)
            memcpy(frame[p->from[i]], t->data + i * t->unit, t->unit);
        if (!p->array)
            continue;
        RP_TRY(take_array(node, p, state, t, &parts->at[k], err));
        memcpy(frame[p->from[0]], &parts->at[k]->data, sizeof(void *));
    }
    return RP_OK;
}

static enum rp_code flat_end(const struct rp_node *node, rp_scalar_slot *frame,
                             struct rp_tensors *parts, struct rp_err *err)
{
    const struct flat_loop *l = node->attrs;

    for (size_t k = 0; k < l->nparts; k++) {
        const struct rp_value_shape *s = part_shape(node->shape, k);

        if (l->parts[k].array)
            continue;
        RP_TRY(rp_tensor_new(s->elem, s->dims, s->rank, &parts->at[k], err));
        for (uint32_t i = 0; i < l->parts[k].n; i++)
            memcpy(parts->at[k]->data + i * parts->at[k]->unit, frame[l->parts[k].to[i]],
                   parts->at[k]->unit);
    }
    return RP_OK;
}

RP_KERNEL(rp_fast_while)
{
    const struct flat_loop *l = node->attrs;
    struct flat_run r = {.e = e, .err = err};
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};
    const struct flat_run *at = &r;

    if (!l || e->times || e->spans)
        return e->plan->reference[RP_OP_WHILE]->run(e, node, in, out, err);
    RP_FREED rp_scalar_slot *frame = aligned_alloc(64, (l->nslots * sizeof *frame + 63) / 64 * 64);
    RP_TRY(rp_err_need(frame, err, "evaluating"));
    RP_TRY(rp_tensors_new(l->nparts, &parts, err));
    RP_TRY(flat_start(node, in[0], frame, &parts, err));
    int32_t turns = RP_SCALAR_LOOK;
    memcpy(frame[RP_SCALAR_TURNS], &turns, sizeof turns);
    memcpy(frame[RP_SCALAR_TURNS] + 8, &at, sizeof at);
    memcpy(frame[RP_SCALAR_FRAME], &(void *){frame}, sizeof(void *));
    if (l->fn ? l->fn(frame) : flat_interpret(l, frame))
        return r.code;
    RP_TRY(flat_end(node, frame, &parts, err));
    return rp_node_give(node, &parts, out, err);
}
