/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorts numbers where XLA:GPU calls CUB: keys alone, or keys with values, along the last dimension,
 * by the total order of their type, stably. Also has two small kernels of JAX for GPUs: the
 * permutation of a list of pivots, and ThreeFry.
 */
#include "exec/ref/custom.h"
#include "exec/ref/kernels.h"

#include <stdlib.h>
#include <string.h>

struct keys {
    const struct rp_tensor *t;
    size_t base;
    bool descending;
};

/* Makes bits whose order as unsigned numbers is the order of the keys. */
static uint64_t rank_of(const struct rp_tensor *t, size_t i)
{
    uint64_t bits = rp_tensor_bits(t, i), top = UINT64_C(1) << (8 * t->unit - 1);

    if (rp_elem_is_unsigned(t->elem) || t->elem == RP_ELEM_PRED)
        return bits;
    if (rp_elem_is_signed(t->elem))
        return bits ^ top;
    return bits & top ? ~bits & (top | (top - 1)) : bits | top;
}

static bool key_before(void *user, size_t a, size_t b)
{
    const struct keys *k = user;
    uint64_t x = rank_of(k->t, k->base + a), y = rank_of(k->t, k->base + b);

    return k->descending ? x > y : x < y;
}

static enum rp_code prepare_sort(struct rp_plan *plan, struct rp_node *node, struct rp_err *err)
{
    if (!node->nin || node->nin > 2 || node->shape->elem != RP_ELEM_TUPLE ||
        node->shape->nparts <= node->nin || !rp_node_operand(plan, node, 0)->rank ||
        rp_elem_is_complex(rp_node_operand(plan, node, 0)->elem))
        return rp_node_error(node, RP_FORMAT, err, "wrong shape of operands or results");
    for (uint32_t i = 0; i < node->nin; i++)
        if (rp_node_operand(plan, node, i)->n != rp_node_operand(plan, node, 0)->n ||
            node->shape->parts[i]->n != rp_node_operand(plan, node, 0)->n)
            return rp_node_error(node, RP_FORMAT, err, "wrong shape of operand %u", i);
    node->value = rp_config_flag(plan, node, "descending");
    return RP_OK;
}

static enum rp_code custom_sort(struct rp_eval *e, const struct rp_node *node,
                                struct rp_tensor *const *in, struct rp_tensor **out,
                                struct rp_err *err)
{
    size_t n = (size_t)in[0]->dims[in[0]->rank - 1], *order = malloc((2 * n + 1) * sizeof *order);
    struct rp_tensor *parts[2] = {NULL, NULL};
    enum rp_code code = rp_err_need(order, err, "sorting");

    (void)e;
    for (uint32_t i = 0; i < node->nin && code == RP_OK; i++)
        code = rp_tensor_new(in[i]->elem, in[i]->dims, in[i]->rank, &parts[i], err);
    for (size_t line = 0; code == RP_OK && n && line < in[0]->n / n; line++) {
        struct keys k = {in[0], line * n, node->value != 0};

        for (size_t i = 0; i < n; i++)
            order[i] = i;
        rp_merge_sort(order, order + n, n, key_before, &k);
        for (uint32_t p = 0; p < node->nin; p++)
            for (size_t i = 0; i < n; i++)
                memcpy(parts[p]->data + (k.base + i) * in[p]->unit,
                       in[p]->data + (k.base + order[i]) * in[p]->unit, in[p]->unit);
    }
    free(order);
    if (code == RP_OK)
        return rp_custom_results(node, parts, node->nin, out, err);
    rp_tensor_drop(parts[0]);
    rp_tensor_drop(parts[1]);
    return code;
}

static enum rp_code prepare_pivots(struct rp_plan *plan, struct rp_node *node, struct rp_err *err)
{
    const struct rp_value_shape *to = rp_custom_shape(node);

    if (!node->nin)
        return rp_node_error(node, RP_FORMAT, err, "no operand");
    const struct rp_value_shape *in = rp_node_operand(plan, node, 0);
    if ((!rp_elem_is_signed(in->elem) && !rp_elem_is_unsigned(in->elem)) || in->elem != to->elem)
        return rp_node_error(node, RP_FORMAT, err, "pivots and permutation are not of one type");
    if (!in->rank || to->rank != in->rank || in->dims[in->rank - 1] > to->dims[to->rank - 1] ||
        (to->n && to->n / (size_t)to->dims[to->rank - 1] * (size_t)in->dims[in->rank - 1] != in->n))
        return rp_node_error(node, RP_FORMAT, err, "wrong shape of the result");
    return RP_OK;
}

/* Row i was exchanged with row pivots[i], from 0; gives the origin of each row. */
static enum rp_code lu_pivots(struct rp_eval *e, const struct rp_node *node,
                              struct rp_tensor *const *in, struct rp_tensor **out,
                              struct rp_err *err)
{
    size_t k = (size_t)in[0]->dims[in[0]->rank - 1];
    struct rp_tensor *to;

    (void)e;
    RP_TRY(rp_shape_tensor(rp_custom_shape(node), &to, err));
    size_t n = (size_t)to->dims[to->rank - 1];
    for (size_t line = 0; n && line < to->n / n; line++) {
        for (size_t i = 0; i < n; i++)
            rp_tensor_set_integer(to, line * n + i, (int64_t)i);
        for (size_t i = 0; i < k; i++) {
            int64_t j = rp_tensor_integer(in[0], line * k + i);

            if (j < 0 || j >= (int64_t)n)
                continue;
            int64_t kept = rp_tensor_integer(to, line * n + i);
            rp_tensor_set_integer(to, line * n + i, rp_tensor_integer(to, line * n + (size_t)j));
            rp_tensor_set_integer(to, line * n + (size_t)j, kept);
        }
    }
    return rp_custom_results(node, &to, 1, out, err);
}

static enum rp_code prepare_threefry(struct rp_plan *plan, struct rp_node *node, struct rp_err *err)
{
    if (node->nin != 4 || node->shape->elem != RP_ELEM_TUPLE || node->shape->nparts < 2)
        return rp_node_error(node, RP_FORMAT, err, "wrong shape of operands or results");
    for (uint32_t i = 0; i < 4; i++)
        if (rp_node_operand(plan, node, i)->elem != RP_ELEM_U32 ||
            rp_node_operand(plan, node, i)->n != node->shape->parts[0]->n ||
            node->shape->parts[i % 2]->elem != RP_ELEM_U32 ||
            node->shape->parts[i % 2]->n != node->shape->parts[0]->n)
            return rp_node_error(node, RP_FORMAT, err, "wrong shape of operand %u", i);
    return RP_OK;
}

/* operands: two keys, two counters */
static enum rp_code custom_threefry(struct rp_eval *e, const struct rp_node *node,
                                    struct rp_tensor *const *in, struct rp_tensor **out,
                                    struct rp_err *err)
{
    struct rp_tensor *parts[2] = {NULL, NULL};

    (void)e;
    RP_TRY(rp_shape_tensor(node->shape->parts[0], &parts[0], err));
    if (rp_shape_tensor(node->shape->parts[1], &parts[1], err) != RP_OK) {
        rp_tensor_drop(parts[0]);
        return RP_NOMEM;
    }
    for (size_t i = 0; i < parts[0]->n; i++) {
        uint32_t two[2];

        rp_threefry(rp_tensor_bits(in[0], i) | rp_tensor_bits(in[1], i) << 32,
                    rp_tensor_bits(in[2], i) | rp_tensor_bits(in[3], i) << 32, two);
        memcpy(parts[0]->data + 4 * i, &two[0], 4);
        memcpy(parts[1]->data + 4 * i, &two[1], 4);
    }
    return rp_custom_results(node, parts, 2, out, err);
}

const struct rp_custom_target rp_custom_sorts[] = {
    {"__cub$DeviceRadixSort", prepare_sort, custom_sort},
    {"__cub$DeviceRadixSortUnassignedScratchSize", prepare_sort, custom_sort},
    {"xla.gpu.ext.cub_sort_keys", prepare_sort, custom_sort},
    {"xla.gpu.ext.cub_sort_pairs", prepare_sort, custom_sort},
    {"cu_lu_pivots_to_permutation", prepare_pivots, lu_pivots},
    {"hip_lu_pivots_to_permutation", prepare_pivots, lu_pivots},
    {"hip_threefry2x32_ffi", prepare_threefry, custom_threefry},
    {"cu_threefry2x32_ffi", prepare_threefry, custom_threefry},
    {NULL, NULL, NULL},
};
