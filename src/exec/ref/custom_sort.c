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

static RP_PREPARE(prepare_sort)
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

static RP_KERNEL(custom_sort)
{
    size_t n = (size_t)in[0]->dims[in[0]->rank - 1];
    RP_FREED size_t *order = malloc((2 * n + 1) * sizeof *order);
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};

    RP_TRY(rp_err_need(order, err, "sorting"));
    RP_TRY(rp_custom_parts(node, &parts, err));
    for (uint32_t i = 0; i < node->nin; i++)
        RP_TRY(rp_tensor_new(in[i]->elem, in[i]->dims, in[i]->rank, &parts.at[i], err));
    for (size_t line = 0; n && line < in[0]->n / n; line++) {
        struct keys k = {in[0], line * n, node->value != 0};

        for (size_t i = 0; i < n; i++)
            order[i] = i;
        rp_merge_sort(order, order + n, n, key_before, &k);
        for (uint32_t p = 0; p < node->nin; p++)
            for (size_t i = 0; i < n; i++)
                memcpy(parts.at[p]->data + (k.base + i) * in[p]->unit,
                       in[p]->data + (k.base + order[i]) * in[p]->unit, in[p]->unit);
    }
    return rp_custom_give(node, &parts, out, err);
}

static RP_PREPARE(prepare_pivots)
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
static RP_KERNEL(lu_pivots)
{
    size_t k = (size_t)in[0]->dims[in[0]->rank - 1];
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};

    RP_TRY(rp_custom_parts(node, &parts, err));
    RP_TRY(rp_shape_tensor(rp_custom_shape(node), &parts.at[0], err));
    struct rp_tensor *to = parts.at[0];
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
    return rp_custom_give(node, &parts, out, err);
}

static RP_PREPARE(prepare_threefry)
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
static RP_KERNEL(custom_threefry)
{
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};

    RP_TRY(rp_custom_parts(node, &parts, err));
    for (size_t i = 0; i < 2; i++)
        RP_TRY(rp_shape_tensor(node->shape->parts[i], &parts.at[i], err));
    for (size_t i = 0; i < parts.at[0]->n; i++) {
        uint32_t two[2];

        rp_threefry(rp_tensor_bits(in[0], i) | rp_tensor_bits(in[1], i) << 32,
                    rp_tensor_bits(in[2], i) | rp_tensor_bits(in[3], i) << 32, two);
        memcpy(parts.at[0]->data + 4 * i, &two[0], 4);
        memcpy(parts.at[1]->data + 4 * i, &two[1], 4);
    }
    return rp_custom_give(node, &parts, out, err);
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
