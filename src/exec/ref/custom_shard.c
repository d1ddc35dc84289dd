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

#include <stdlib.h>
#include <string.h>

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

static const struct rp_value_shape *result_shape(const struct rp_node *node, size_t i)
{
    return node->shape->elem == RP_ELEM_TUPLE ? node->shape->parts[i] : node->shape;
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
        if (result_shape(node, i)->elem != rp_node_operand(plan, node, i)->elem ||
            result_shape(node, i)->elem == RP_ELEM_TUPLE)
            return rp_node_error(node, RP_FORMAT, err,
                                 "operand %u and its result are not arrays of one type", i);
    s->sdy.meshes =
        rp_attr_map_find(module_attr(plan->program, RP_ATTR_FRONTEND_ATTRIBUTES), "xla.sdy.meshes");
    s->sdy.axes = rp_attr_map_find(own, "xla.sdy.manual_axes");
    s->list = rp_attr_map_find(own, key);
    return RP_OK;
}

static enum rp_code prepare_local(struct rp_plan *plan, struct rp_node *node, struct rp_err *err)
{
    return shard_prepare(plan, node, "xla.sdy.in_shardings", err);
}

static enum rp_code prepare_global(struct rp_plan *plan, struct rp_node *node, struct rp_err *err)
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

static enum rp_code prepare_to_shard(struct rp_plan *plan, struct rp_node *node, struct rp_err *err)
{
    if (!node->nin)
        return rp_node_error(node, RP_FORMAT, err, "no operand");
    return prepare_spmd(plan, node, rp_op_operands(plan->program, node->op).at[0], err);
}

static enum rp_code prepare_to_full(struct rp_plan *plan, struct rp_node *node, struct rp_err *err)
{
    return prepare_spmd(plan, node, node->op, err);
}

static bool same_dims(const struct rp_value_shape *shape, const struct rp_tensor *t)
{
    return shape->rank == t->rank &&
           (!t->rank || !memcmp(shape->dims, t->dims, t->rank * sizeof *t->dims));
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

static enum rp_code give_results(const struct rp_node *node, struct rp_tensor **parts, size_t n,
                                 enum rp_code code, struct rp_tensor **out, struct rp_err *err)
{
    if (code == RP_OK && node->shape->elem == RP_ELEM_TUPLE)
        return rp_tensor_tuple(parts, n, out, err);
    if (code == RP_OK) {
        *out = parts[0];
        return RP_OK;
    }
    for (size_t i = 0; i < n; i++)
        rp_tensor_drop(parts[i]);
    return code;
}

static enum rp_code take_blocks(struct rp_eval *e, const struct rp_node *node,
                                struct rp_tensor *const *in, struct rp_tensor **out,
                                struct rp_err *err)
{
    struct rp_tensor **parts = calloc(node->nin + 1, sizeof(struct rp_tensor *));
    enum rp_code code = rp_err_need(parts, err, "splitting");
    uint32_t n = 0;

    while (n < node->nin && code == RP_OK) {
        const struct rp_value_shape *shape = result_shape(node, n);
        struct rp_tile tile;

        if (same_dims(shape, in[n])) {
            parts[n] = rp_tensor_keep(in[n]);
        } else {
            code = find_tile(node, n, in[n]->rank, e->partition, &tile, err);
            if (code == RP_OK)
                code = rp_tile_take(in[n], &tile, &parts[n], err);
            if (code == RP_OK && !same_dims(shape, parts[n])) {
                rp_tensor_drop(parts[n]);
                code = rp_node_error(node, RP_FORMAT, err,
                                     "the sharding of value %u does not give its shape", n);
            }
        }
        n += code == RP_OK;
    }
    code = give_results(node, parts, n, code, out, err);
    free(parts);
    return code;
}

/* Joins one value of all partitions to the whole. */
static enum rp_code join_blocks(const struct rp_eval *e, const struct rp_node *node,
                                struct rp_tensor *const *all, size_t i, struct rp_tensor **out,
                                struct rp_err *err)
{
    const struct rp_value_shape *shape = result_shape(node, i);
    unsigned n = rp_mesh_size(e->mesh);
    struct rp_tile tile;

    if (same_dims(shape, all[e->mesh ? e->partition : 0]->parts[i])) {
        *out = rp_tensor_keep(all[e->mesh ? e->partition : 0]->parts[i]);
        return RP_OK;
    }
    RP_TRY(rp_shape_tensor(shape, out, err));
    memset((*out)->data, 0, rp_tensor_bytes(*out));
    for (unsigned k = 0; k < n; k++) {
        enum rp_code code = find_tile(node, i, shape->rank, k, &tile, err);
        int64_t total = 1;

        for (size_t d = 0; code == RP_OK && d < shape->rank; d++)
            total *= tile.blocks[d];
        if (code == RP_OK && k == 0 && total > n)
            code = rp_node_error(node, RP_FORMAT, err,
                                 "value %zu has blocks of %lld partitions, %u run; set their "
                                 "number with --partitions",
                                 i, (long long)total, n);
        if (code == RP_OK && all[k]->parts[i]->rank != shape->rank)
            code = rp_node_error(node, RP_FORMAT, err, "value %zu has another rank", i);
        if (code != RP_OK) {
            rp_tensor_drop(*out);
            return code;
        }
        rp_tile_put(all[k]->parts[i], &tile, *out);
    }
    return RP_OK;
}

static enum rp_code give_whole(struct rp_eval *e, const struct rp_node *node,
                               struct rp_tensor *const *in, struct rp_tensor **out,
                               struct rp_err *err)
{
    struct rp_tensor **parts = calloc(node->nin + 1, sizeof(struct rp_tensor *)), *mine = NULL;
    struct rp_tensor *const *all = &mine;
    enum rp_code code = rp_err_need(parts, err, "joining");
    uint32_t n = 0;

    for (uint32_t i = 0; i < node->nin && code == RP_OK; i++)
        rp_tensor_keep(in[i]);
    if (code == RP_OK)
        code = rp_tensor_tuple(in, node->nin, &mine, err);
    if (code == RP_OK && e->mesh)
        code = rp_mesh_rendezvous(e->mesh, e->partition, mine, &all, err);
    if (code == RP_OK) {
        while (n < node->nin && code == RP_OK) {
            code = join_blocks(e, node, all, n, &parts[n], err);
            n += code == RP_OK;
        }
        if (e->mesh)
            rp_mesh_leave(e->mesh);
    }
    rp_tensor_drop(mine);
    code = parts ? give_results(node, parts, n, code, out, err) : code;
    free(parts);
    return code;
}

const struct rp_custom_target rp_custom_shards[] = {
    {"xla.sdy.GlobalToLocalShape", prepare_local, take_blocks},
    {"xla.sdy.LocalToGlobalShape", prepare_global, give_whole},
    {"SPMDFullToShardShape", prepare_to_shard, take_blocks},
    {"SPMDShardToFullShape", prepare_to_full, give_whole},
    {NULL, NULL, NULL},
};
