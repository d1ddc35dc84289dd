/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs custom calls that switch between the view of all devices and that of one: a program before
 * partitioning computes with whole arrays, but its manual parts (shard_map) with the block of each
 * device. Every partition computes the whole arrays; on entry of a manual part it takes its block,
 * on exit all partitions put theirs together.
 */
#include "exec/data/tile.h"
#include "exec/eval/mesh.h"
#include "exec/ref/custom.h"
#include "exec/ref/kernels.h"

struct shard {
    struct rp_sdy sdy;
    struct rp_slice list; /* shardings of Shardy; if there are none: */
    const struct rp_sharding
        *sharding; /* shardings of HLO, or NULL if the values stay as they are */
};

static const struct rp_attr *module_attr(const struct rp_program *p, uint32_t key)
{
    for (size_t i = 0; i < p->module_attrs.n; i++)
        if (p->module_attrs.at[i].key == key)
            return &p->module_attrs.at[i];
    return NULL;
}

static enum rp_code shard_prepare(struct rp_plan *plan, struct rp_node *node, const char *key,
                                  struct rp_err *err)
{
    const struct rp_attr *own = rp_node_attr(plan, node, RP_ATTR_FRONTEND_ATTRIBUTES);
    struct shard *s = RP_NODE_NEW(plan, struct shard);
    size_t results = node->shape->elem == RP_ELEM_TUPLE ? node->shape->nparts : 1;

    RP_TRY(rp_err_need(s, err, "planning"));
    node->attrs = s;
    if (!node->nin || results != node->nin)
        return rp_node_error(node, RP_FORMAT, err, "%u operands and %zu results", node->nin,
                             results);
    for (uint32_t i = 0; i < node->nin; i++)
        if (rp_node_part(node, i)->elem != rp_node_operand(plan, node, i)->elem ||
            rp_node_part(node, i)->elem == RP_ELEM_TUPLE)
            return rp_node_error(node, RP_FORMAT, err,
                                 "operand %u and its result are not arrays of one type", i);
    s->sdy.meshes =
        rp_attr_map_find(module_attr(plan->program, RP_ATTR_FRONTEND_ATTRIBUTES), "xla.sdy.meshes");
    s->sdy.axes = rp_attr_map_find(own, "xla.sdy.manual_axes");
    s->list = rp_attr_map_find(own, key);
    return RP_OK;
}

static RP_PREPARE(prepare_local)
{
    return shard_prepare(plan, node, "xla.sdy.in_shardings", err);
}

static RP_PREPARE(prepare_global)
{
    return shard_prepare(plan, node, "xla.sdy.out_shardings", err);
}

/* Marks of GSPMD: the sharding belongs to the value outside. */
static enum rp_code prepare_spmd(struct rp_plan *plan, struct rp_node *node, uint32_t op,
                                 struct rp_err *err)
{
    RP_TRY(shard_prepare(plan, node, "", err));
    struct shard *s = node->attrs;
    s->list.n = 0;
    const struct rp_attr *attr = rp_op_attr(plan->program, op, RP_ATTR_SHARDING);
    s->sharding = attr && attr->type == RP_VALUE_SHARDING ? attr->sharding : NULL;
    return RP_OK;
}

static RP_PREPARE(prepare_to_shard)
{
    if (!node->nin)
        return rp_node_error(node, RP_FORMAT, err, "no operand");
    return prepare_spmd(plan, node, rp_op_operands(plan->program, node->op).at[0], err);
}

static RP_PREPARE(prepare_to_full)
{
    return prepare_spmd(plan, node, node->op, err);
}

static bool same_dims(const struct rp_value_shape *shape, const struct rp_tensor *t)
{
    return rp_dims_same(shape->dims, shape->rank, t->dims, t->rank);
}

/* Finds the block of a device, which has to turn one shape into the other. */
static enum rp_code find_tile(const struct rp_node *node, size_t i, size_t rank, unsigned device,
                              struct rp_tile *tile, struct rp_err *err)
{
    const struct shard *s = node->attrs;

    if (s->list.n ? rp_tile_of_sdy(&s->sdy, s->list, i, rank, device, tile)
                  : s->sharding && rp_tile_of(s->sharding, rank, device, tile))
        return RP_OK;
    return rp_node_error(node, RP_UNSUPPORTED, err,
                         "the sharding of value %zu is not understood: %.*s", i, (int)s->list.n,
                         s->list.at);
}

static RP_KERNEL(take_blocks)
{
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};

    RP_TRY(rp_tensors_new(node->nin, &parts, err));
    for (uint32_t i = 0; i < node->nin; i++) {
        const struct rp_value_shape *shape = rp_node_part(node, i);
        struct rp_tile tile;

        if (same_dims(shape, in[i])) {
            parts.at[i] = rp_tensor_keep(in[i]);
            continue;
        }
        RP_TRY(find_tile(node, i, in[i]->rank, e->partition, &tile, err));
        RP_TRY(rp_tile_take(in[i], &tile, &parts.at[i], err));
        if (!same_dims(shape, parts.at[i]))
            return rp_node_error(node, RP_FORMAT, err,
                                 "the sharding of value %u does not give its shape", i);
    }
    return rp_node_give(node, &parts, out, err);
}

/* Joins one value of all partitions to the whole. */
static enum rp_code join_blocks(const struct rp_eval *e, const struct rp_node *node,
                                struct rp_tensor *const *all, size_t i, struct rp_tensor **out,
                                struct rp_err *err)
{
    const struct rp_value_shape *shape = rp_node_part(node, i);
    unsigned n = rp_mesh_size(e->mesh);
    struct rp_tile tile;

    if (same_dims(shape, all[e->mesh ? e->partition : 0]->parts[i])) {
        *out = rp_tensor_keep(all[e->mesh ? e->partition : 0]->parts[i]);
        return RP_OK;
    }
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *whole = NULL;
    RP_TRY(rp_tensor_zeros(shape->elem, shape->dims, shape->rank, &whole, err));
    for (unsigned k = 0; k < n; k++) {
        int64_t total = 1;

        RP_TRY(find_tile(node, i, shape->rank, k, &tile, err));
        for (size_t d = 0; d < shape->rank; d++)
            total *= tile.blocks[d];
        if (k == 0 && total > n)
            return rp_node_error(node, RP_FORMAT, err,
                                 "value %zu has blocks of %lld partitions, %u run; set their "
                                 "number with --partitions",
                                 i, (long long)total, n);
        if (all[k]->parts[i]->rank != shape->rank)
            return rp_node_error(node, RP_FORMAT, err, "value %zu has another rank", i);
        rp_tile_put(all[k]->parts[i], &tile, whole);
    }
    *out = whole;
    whole = NULL;
    return RP_OK;
}

static RP_KERNEL(give_whole)
{
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *mine = NULL;
    struct rp_tensor *const *all = &mine;
    enum rp_code code = RP_OK;

    RP_TRY(rp_tensors_new(node->nin, &parts, err));
    for (uint32_t i = 0; i < node->nin; i++)
        rp_tensor_keep(in[i]);
    RP_TRY(rp_tensor_tuple(in, node->nin, &mine, err));
    if (e->mesh)
        RP_TRY(rp_mesh_rendezvous(e->mesh, e->partition, mine, &all, err));
    for (uint32_t i = 0; i < node->nin && code == RP_OK; i++)
        code = join_blocks(e, node, all, i, &parts.at[i], err);
    if (e->mesh)
        rp_mesh_leave(e->mesh);
    return code == RP_OK ? rp_node_give(node, &parts, out, err) : code;
}

const struct rp_custom_target rp_custom_shards[] = {
    {"xla.sdy.GlobalToLocalShape", prepare_local, take_blocks},
    {"xla.sdy.LocalToGlobalShape", prepare_global, give_whole},
    {"SPMDFullToShardShape", prepare_to_shard, take_blocks},
    {"SPMDShardToFullShape", prepare_to_full, give_whole},
    {NULL, NULL, NULL},
};
