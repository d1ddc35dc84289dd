/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes collectives between partitions that run side by side (exec/eval/mesh.h). Every partition
 * brings its operands as one tuple and makes its own result from those of its group. A program of
 * one partition is a group of one. The start of an asynchronous pair does the work; its done passes
 * the result on.
 */
#include "exec/data/groups.h"
#include "exec/eval/mesh.h"
#include "exec/eval/strided.h"
#include "exec/ref/kernels.h"
#include "exec/ref/reduce.h"
#include "program/opcodes.h"

#include <stdlib.h>
#include <string.h>

struct collective {
    struct rp_groups groups;
    int64_t dim, split;
    bool start; /* the result is (operands, results) */
    struct rp_tape *tape;
};

static RP_PREPARE(collective_prepare)
{
    bool pairs =
        node->code == RP_OP_COLLECTIVE_PERMUTE || node->code == RP_OP_COLLECTIVE_PERMUTE_START;
    const struct rp_attr *groups =
        rp_node_attr(plan, node, pairs ? RP_ATTR_SOURCE_TARGET_PAIRS : RP_ATTR_REPLICA_GROUPS);
    struct collective *c = RP_NODE_NEW(plan, struct collective);
    const int64_t *dims;
    size_t n;

    RP_TRY(rp_err_need(c, err, "planning"));
    node->attrs = c;
    if (groups && !rp_groups_of(&plan->arena, groups, &c->groups))
        return rp_node_error(node, RP_UNSUPPORTED, err, "malformed replica groups");
    RP_TRY(rp_node_ints(plan, node, RP_ATTR_DIMENSIONS, 0, &dims, &n, err));
    c->dim = n ? dims[0] : -1;
    c->start = node->code == RP_OP_ALL_GATHER_START || node->code == RP_OP_COLLECTIVE_PERMUTE_START;
    if (node->code == RP_OP_ALL_REDUCE || node->code == RP_OP_ALL_REDUCE_START ||
        node->code == RP_OP_REDUCE_SCATTER) {
        /* The function of a reduction takes two scalars of the operands' type, and gives one. */
        if (node->ncalled != 1 || node->called[0]->nparams != 2)
            return rp_node_error(node, RP_FORMAT, err, "the function does not match the operands");
        RP_TRY(rp_tape_new(plan, node->called[0], true, &c->tape, err));
        if (c->tape->nresults != 1)
            return rp_node_error(node, RP_FORMAT, err, "the function has %zu results, not 1",
                                 c->tape->nresults);
        unsigned elem = c->tape->regs[c->tape->results[0]].elem;
        for (uint32_t i = 0; i < node->nin; i++) {
            unsigned from = rp_node_operand(plan, node, i)->elem;

            from = rp_elem_is_small_float(from) ? RP_ELEM_F32 : from;
            if (from != elem || c->tape->regs[0].elem != elem || c->tape->regs[1].elem != elem)
                return rp_node_error(node, RP_UNSUPPORTED, err,
                                     "functions of mixed types are not supported");
        }
    }
    for (uint32_t i = 0; i < node->nin && c->dim >= 0; i++)
        if (c->dim >= (int64_t)rp_node_operand(plan, node, i)->rank)
            return rp_node_error(node, RP_FORMAT, err, "dimension out of range");
    if (c->dim < 0 && (node->code == RP_OP_ALL_GATHER || node->code == RP_OP_ALL_GATHER_START ||
                       node->code == RP_OP_REDUCE_SCATTER))
        return rp_node_error(node, RP_FORMAT, err, "no dimension is given");
    return RP_OK;
}

/* The members of this partition's group, and its place among them. */
struct group {
    unsigned n, mine;
    unsigned member[4096];
};

static enum rp_code find_group(const struct rp_eval *e, const struct rp_node *node,
                               const struct collective *c, struct group *g, struct rp_err *err)
{
    unsigned all = rp_mesh_size(e->mesh);

    g->n = g->mine = 0;
    for (size_t k = 0; k < c->groups.ngroups; k++) {
        bool here = false;

        for (size_t i = c->groups.begin[k]; i < c->groups.begin[k + 1]; i++)
            here |= c->groups.ids[i] == (int64_t)e->partition;
        for (size_t i = c->groups.begin[k]; here && i < c->groups.begin[k + 1]; i++) {
            if (c->groups.ids[i] < 0 || c->groups.ids[i] >= (int64_t)all || g->n == 4096)
                return rp_node_error(node, RP_FORMAT, err,
                                     "the replica groups name partition %lld of %u; set their "
                                     "number with --partitions",
                                     (long long)c->groups.ids[i], all);
            if (c->groups.ids[i] == (int64_t)e->partition)
                g->mine = g->n;
            g->member[g->n++] = (unsigned)c->groups.ids[i];
        }
        if (here)
            return RP_OK;
    }
    for (unsigned i = 0; i < all && i < 4096; i++)
        g->member[g->n++] = i;
    g->mine = e->partition;
    return RP_OK;
}

/* ---- what each does with one operand of all members ---- */

static enum rp_code reduce_members(const struct collective *c, struct rp_tensor *const *of,
                                   unsigned n, struct rp_tensor **out, struct rp_err *err)
{
    RP_SCOPED(rp_tape_end) struct rp_tape_frame f = {0};
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *sum = NULL;

    RP_TRY(rp_tensor_wide(of[0], &sum, err));
    RP_TRY(rp_tensor_own(&sum, err)); /* an operand must not be changed in place */
    RP_TRY(rp_tape_begin(c->tape, &f, err));
    for (unsigned k = 1; k < n; k++) {
        RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *value = NULL;

        RP_TRY(rp_tensor_wide(of[k], &value, err));
        for (size_t at = 0; at < sum->n; at += RP_TAPE_LANES) {
            size_t m = sum->n - at < RP_TAPE_LANES ? sum->n - at : RP_TAPE_LANES;

            f.reg[0] = sum->data + at * sum->unit;
            f.reg[1] = value->data + at * sum->unit;
            rp_tape_run(&f, m);
            memmove(sum->data + at * sum->unit, rp_tape_result(&f, 0), m * sum->unit);
        }
    }
    return rp_tensor_as(sum, of[0]->elem, out, err);
}

/* Reduces block `take` of `blocks` of each array, and puts the results next to each other along a
   dimension. */
static enum rp_code group_reduce(struct rp_tensor *const *of, unsigned n, int64_t dim,
                                 unsigned take, unsigned blocks, struct rp_tensor **out,
                                 struct rp_err *err)
{
    struct rp_strided s = {.unit = of[0]->unit, .rank = of[0]->rank};
    int64_t dims[RP_TENSOR_RANK], size = of[0]->dims[dim] / blocks;

    memcpy(dims, of[0]->dims, sizeof dims);
    dims[dim] = size * n;
    RP_TRY(rp_tensor_new(of[0]->elem, dims, of[0]->rank, out, err));
    memcpy(s.dims, of[0]->dims, sizeof s.dims);
    s.dims[dim] = size;
    rp_strides(dims, s.rank, s.to);
    rp_strides(of[0]->dims, s.rank, s.from);
    for (unsigned k = 0; k < n; k++)
        if ((*out)->n)
            rp_strided_copy(&s, (*out)->data + (int64_t)k * size * s.to[dim] * (int64_t)s.unit,
                            of[k]->data + take * size * s.from[dim] * (int64_t)s.unit);
    return RP_OK;
}

static enum rp_code collective_permute(const struct rp_eval *e, const struct rp_node *node,
                                       struct rp_tensor *const *all, size_t operand,
                                       struct rp_tensor **out, struct rp_err *err)
{
    const struct collective *c = node->attrs;
    const struct rp_tensor *like = all[e->partition]->parts[operand];
    unsigned n = rp_mesh_size(e->mesh);

    for (size_t k = 0; k < c->groups.ngroups; k++) {
        const int64_t *pair = c->groups.ids + c->groups.begin[k];

        if (c->groups.begin[k + 1] - c->groups.begin[k] != 2 || pair[1] != (int64_t)e->partition)
            continue;
        if (pair[0] < 0 || pair[0] >= (int64_t)n || operand >= all[pair[0]]->nparts)
            return rp_node_error(node, RP_FORMAT, err,
                                 "source_target_pairs name partition %lld of %u; set their number "
                                 "with --partitions",
                                 (long long)pair[0], n);
        *out = rp_tensor_keep(all[pair[0]]->parts[operand]);
        return RP_OK;
    }
    return rp_tensor_zeros(like->elem, like->dims, like->rank, out, err); /* no sender */
}

/* An operand of a member of the group; it must have the same type and dimensions as this
   partition's, because in a malformed program different operations may meet. */
static enum rp_code member_operand(const struct rp_node *node, struct rp_tensor *const *all,
                                   unsigned member, size_t operand, unsigned me,
                                   struct rp_tensor **out, struct rp_err *err)
{
    const struct rp_tensor *mine = all[me]->parts[operand], *of;

    *out = operand < all[member]->nparts ? all[member]->parts[operand] : NULL;
    of = *out;
    if (!of || all[member]->nparts != all[me]->nparts || of->elem != mine->elem ||
        !rp_dims_same(of->dims, of->rank, mine->dims, mine->rank))
        return rp_node_error(node, RP_FORMAT, err,
                             "operand %zu of partition %u has another shape than here", operand,
                             member);
    return RP_OK;
}

static enum rp_code collective_result(const struct rp_eval *e, const struct rp_node *node,
                                      const struct group *g, struct rp_tensor *const *all,
                                      size_t operand, struct rp_tensor **out, struct rp_err *err)
{
    const struct collective *c = node->attrs;
    RP_FREED struct rp_tensor **of = calloc((size_t)g->n + 1, sizeof(struct rp_tensor *));
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *sum = NULL;

    RP_TRY(rp_err_need(of, err, "communicating"));
    if (!g->n)
        return rp_err_set(err, RP_BUG, "empty replica group");
    for (unsigned k = 0; k < g->n; k++)
        RP_TRY(member_operand(node, all, g->member[k], operand, e->partition, &of[k], err));
    switch (node->code) {
    case RP_OP_ALL_REDUCE:
    case RP_OP_ALL_REDUCE_START:
        return reduce_members(c, of, g->n, out, err);
    case RP_OP_REDUCE_SCATTER:
        RP_TRY(reduce_members(c, of, g->n, &sum, err));
        return group_reduce(&sum, 1, c->dim, g->mine, g->n, out, err);
    case RP_OP_ALL_GATHER:
    case RP_OP_ALL_GATHER_START:
        return group_reduce(of, g->n, c->dim, 0, 1, out, err);
    case RP_OP_ALL_TO_ALL:
        if (c->dim >= 0)
            return group_reduce(of, g->n, c->dim, g->mine, g->n, out, err);
        /* operand k of member i becomes result i of member k */
        *out = rp_tensor_keep(all[g->member[operand]]->parts[g->mine]);
        return RP_OK;
    case RP_OP_COLLECTIVE_BROADCAST:
        *out = rp_tensor_keep(of[0]);
        return RP_OK;
    default:
        return collective_permute(e, node, all, operand, out, err);
    }
}

/* ---- the rendezvous ---- */

static RP_KERNEL(collective_run)
{
    const struct collective *c = node->attrs;
    RP_FREED struct group *g = malloc(sizeof *g);
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *mine = NULL, *result = NULL;
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};
    struct rp_tensor *const *all = &mine;
    enum rp_code code = RP_OK;

    RP_TRY(rp_err_need(g, err, "communicating"));
    RP_TRY(find_group(e, node, c, g, err));
    RP_TRY(rp_tensors_new(node->nin, &parts, err));
    for (uint32_t i = 0; i < node->nin; i++)
        rp_tensor_keep(in[i]);
    RP_TRY(rp_tensor_tuple(in, node->nin, &mine, err));
    if (node->code == RP_OP_ALL_TO_ALL && c->dim < 0 && node->nin != g->n)
        return rp_node_error(node, RP_FORMAT, err, "%u operands for a group of %u", node->nin,
                             g->n);
    if (e->mesh)
        RP_TRY(rp_mesh_rendezvous(e->mesh, e->partition, mine, &all, err));
    for (uint32_t i = 0; i < node->nin && code == RP_OK; i++)
        code = collective_result(e, node, g, all, i, &parts.at[i], err);
    if (e->mesh)
        rp_mesh_leave(e->mesh);
    RP_TRY(code);
    if (node->nin > 1 || (node->shape->elem == RP_ELEM_TUPLE && node->shape->nparts == 1 &&
                          node->code != RP_OP_ALL_GATHER_START)) {
        parts.n = 0; /* the tuple takes them over */
        RP_TRY(rp_tensor_tuple(parts.at, node->nin, &result, err));
    } else {
        result = parts.at[0];
        parts.at[0] = NULL;
    }
    struct rp_tensor *pair[] = {c->start ? rp_tensor_keep(node->nin == 1 ? in[0] : mine) : NULL,
                                result};
    result = NULL;
    if (c->start)
        return rp_tensor_tuple(pair, 2, out, err);
    *out = pair[1];
    return RP_OK;
}

static RP_KERNEL(pair_done)
{
    if (in[0]->elem != RP_ELEM_TUPLE || in[0]->nparts < 2)
        return rp_node_error(node, RP_FORMAT, err, "the matching start operation has no result");
    *out = rp_tensor_keep(in[0]->parts[1]);
    return RP_OK;
}

static RP_KERNEL(partition_id)
{
    RP_TRY(rp_node_result(node, out, err));
    rp_tensor_set_integer(*out, 0,
                          e->plan->partitions > 1 ? e->partition % e->plan->partitions : 0);
    return RP_OK;
}

static RP_KERNEL(replica_id)
{
    unsigned partitions = e->plan->partitions > 1 ? e->plan->partitions : 1;

    RP_TRY(rp_node_result(node, out, err));
    rp_tensor_set_integer(*out, 0,
                          e->plan->partitions > 1 ? e->partition / partitions : e->partition);
    return RP_OK;
}

const struct rp_kernel rp_kernels_collective[] = {
    {RP_OP_ALL_REDUCE, collective_prepare, collective_run},
    {RP_OP_ALL_REDUCE_START, collective_prepare, collective_run},
    {RP_OP_ALL_REDUCE_DONE, NULL, rp_kernel_same},
    {RP_OP_ALL_GATHER, collective_prepare, collective_run},
    {RP_OP_ALL_GATHER_START, collective_prepare, collective_run},
    {RP_OP_ALL_GATHER_DONE, NULL, pair_done},
    {RP_OP_REDUCE_SCATTER, collective_prepare, collective_run},
    {RP_OP_ALL_TO_ALL, collective_prepare, collective_run},
    {RP_OP_COLLECTIVE_BROADCAST, collective_prepare, collective_run},
    {RP_OP_COLLECTIVE_PERMUTE, collective_prepare, collective_run},
    {RP_OP_COLLECTIVE_PERMUTE_START, collective_prepare, collective_run},
    {RP_OP_COLLECTIVE_PERMUTE_DONE, NULL, pair_done},
    {RP_OP_PARTITION_ID, NULL, partition_id},
    {RP_OP_REPLICA_ID, NULL, replica_id},
    {0, NULL, NULL},
};
