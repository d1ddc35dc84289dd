/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges equal nodes. Compilers repeat operations in several fusions in order to read less memory.
 * After calls and fusions have been replaced by what they call, equal nodes of a graph are merged:
 * the same operation with the same attributes on the same values. Nodes that loops read in place
 * (broadcasts, constants) count as equal, but every user keeps its own. Nodes that nobody reads any
 * more are dropped.
 */
#include "exec/fast/kernels.h"

#include "base/hash.h"
#include "exec/ref/reduce.h"
#include "program/opcodes.h"
#include "program/structure.h"

#include <string.h>

#define MOST_CONSTANT 64 /* larger constants are not compared */

struct merge_ctx {
    struct rp_plan *plan;
    struct rp_graph *g;
    uint64_t *hash;  /* by node; 0: never merged */
    uint32_t *equal; /* by node: the first node of the same value */
    uint32_t *use;   /* by node: the node that is read in its place; later, its new place */
    bool *live;
    uint32_t *table; /* of nodes by hash, + 1 */
    size_t cap;
};

static bool is_read_in_place(const struct rp_node *node)
{
    return node->code == RP_OP_BROADCAST || node->code == RP_OP_CONSTANT ||
           node->code == RP_OP_IOTA;
}

/* The operation of a reduction that calls only one; 0 for any other node. */
static unsigned reduced_by(const struct rp_node *node)
{
    const struct rp_reduce *a = node->attrs;

    if (node->code != RP_OP_REDUCE || !node->kernel || node->run != node->kernel->run || a->k != 1)
        return 0;
    switch (a->tape->simple) { /* operations with the same result in either order */
    case RP_OP_ADD:
    case RP_OP_MULTIPLY:
    case RP_OP_MAXIMUM:
    case RP_OP_MINIMUM:
    case RP_OP_AND:
    case RP_OP_OR:
        return a->tape->simple;
    default:
        return 0;
    }
}

/* Whether operands, shape and attributes determine the result, and there is no effect. */
static bool is_pure(const struct rp_node *node)
{
    if (node->skip || (node->ncalled && !reduced_by(node)) || node->shape->dynamic ||
        node->shape->nparts || !node->kernel || node->run != node->kernel->run)
        return false;
    switch (node->code) {
    case RP_OP_SLICE:
    case RP_OP_PAD:
    case RP_OP_CONCATENATE:
    case RP_OP_RESHAPE:
    case RP_OP_BITCAST:
    case RP_OP_TRANSPOSE:
    case RP_OP_REVERSE:
    case RP_OP_BROADCAST:
    case RP_OP_IOTA:
    case RP_OP_REDUCE:
        return true;
    case RP_OP_CONSTANT:
        return node->attrs && node->shape->n <= MOST_CONSTANT / 16;
    default:
        return rp_op_info[node->code].class_ == RP_CLASS_ELEMENT && node->nin > 0;
    }
}

static const struct rp_tensor *constant_of(const struct rp_node *node)
{
    return node->code == RP_OP_CONSTANT ? node->attrs : NULL;
}

/* Returns 0 if a node has an attribute that was not read. */
static uint64_t node_hash(const struct merge_ctx *c, const struct rp_node *node)
{
    const struct rp_value_shape *s = node->shape;
    const struct rp_tensor *constant = constant_of(node);
    uint32_t n;
    const struct rp_attr *attr = rp_op_attrs(c->plan->program, node->op, &n);
    uint64_t h = rp_hash_join(node->code + (uint64_t)reduced_by(node) * RP_OP_COUNT, s->elem);
    uint64_t attrs = 0;

    for (; n; n--, attr++) {
        if (!rp_attr_counts(c->plan->program, node->op, attr) || attr->key == RP_ATTR_ROOT)
            continue;
        if (attr->type == RP_VALUE_WIRE)
            return 0;
        attrs += rp_hash_join(attr->key, rp_attr_hash(c->plan->program, attr));
    }
    h = rp_hash_join(h, attrs + node->by_bits);
    for (uint32_t i = 0; i < s->rank; i++)
        h = rp_hash_join(h, (uint64_t)s->dims[i]);
    for (uint32_t i = 0; i < node->nin; i++)
        h = rp_hash_join(h, c->equal[node->in[i]]);
    if (constant)
        h = rp_hash_join(h, rp_hash_bytes(constant->data, constant->n * constant->unit));
    return h | 1;
}

static bool is_same_shape(const struct rp_value_shape *x, const struct rp_value_shape *y)
{
    if (x == y)
        return true;
    if (x->elem != y->elem || x->rank != y->rank || x->n != y->n)
        return false;
    for (uint32_t i = 0; i < x->rank; i++)
        if (x->dims[i] != y->dims[i] || (x->order ? x->order[i] : x->rank - 1 - i) !=
                                            (y->order ? y->order[i] : y->rank - 1 - i))
            return false;
    return true;
}

/* Whether two nodes are equal; their hashes, which include the attributes, are. */
static bool is_same(const struct merge_ctx *c, const struct rp_node *x, const struct rp_node *y)
{
    const struct rp_tensor *p = constant_of(x), *q = constant_of(y);

    if (x->code != y->code || x->nin != y->nin || reduced_by(x) != reduced_by(y) ||
        x->kernel != y->kernel || x->by_bits != y->by_bits || !is_same_shape(x->shape, y->shape))
        return false;
    for (uint32_t i = 0; i < x->nin; i++)
        if (c->equal[x->in[i]] != c->equal[y->in[i]] ||
            !is_same_shape(c->g->nodes[x->in[i]].shape, c->g->nodes[y->in[i]].shape))
            return false;
    return !p || (p->unit == q->unit && !memcmp(p->data, q->data, p->n * p->unit));
}

/* The first node of this value, or the node itself if there is none before it. */
static uint32_t find_equal(struct merge_ctx *c, uint32_t i)
{
    const struct rp_node *node = &c->g->nodes[i];
    size_t at;

    c->hash[i] = is_pure(node) ? node_hash(c, node) : 0;
    if (!c->hash[i])
        return i;
    for (at = c->hash[i] & (c->cap - 1); c->table[at]; at = (at + 1) & (c->cap - 1)) {
        uint32_t other = c->table[at] - 1;

        if (c->hash[other] == c->hash[i] && is_same(c, &c->g->nodes[other], node))
            return other;
    }
    c->table[at] = i + 1;
    return i;
}

/* Drops nodes that were merged into others or are not read any more from the list. */
static void merge_compact(struct merge_ctx *c, uint32_t *in)
{
    struct rp_graph *g = c->g;
    uint32_t n = 0;

    for (uint32_t i = g->n; i-- > 0;) {
        c->live[i] = c->live[i] || i == g->root || (c->use[i] == i && !is_pure(&g->nodes[i]));
        for (uint32_t k = 0; k < g->nodes[i].nin && c->live[i]; k++)
            c->live[c->use[g->nodes[i].in[k]]] = true;
    }
    for (uint32_t i = 0; i < g->n; i++) {
        if (!c->live[i]) { /* its users now use the earlier node */
            c->use[i] = c->use[c->use[i]];
            continue;
        }
        for (uint32_t k = 0; k < g->nodes[i].nin; k++)
            in[k] = c->use[g->nodes[i].in[k]];
        g->nodes[i].in = in;
        in += g->nodes[i].nin;
        c->use[i] = n;
        g->nodes[n++] = g->nodes[i];
    }
    g->root = c->use[g->root];
    g->n = n;
}

static enum rp_code merge_graph(struct rp_plan *plan, struct rp_graph *g, struct rp_err *err)
{
    RP_SCOPED(rp_arena_release) struct rp_arena scratch = RP_ARENA_INIT;
    struct merge_ctx c = {.plan = plan,
                          .g = g,
                          .cap = 64,
                          .hash = RP_ARENA_NEW(&scratch, uint64_t, g->n),
                          .equal = RP_ARENA_NEW(&scratch, uint32_t, g->n),
                          .use = RP_ARENA_NEW(&scratch, uint32_t, g->n),
                          .live = RP_ARENA_NEW(&scratch, bool, g->n)};
    uint32_t merged = 0;
    size_t operands = 0;

    while (c.cap < 2 * (size_t)g->n)
        c.cap *= 2;
    c.table = RP_ARENA_NEW(&scratch, uint32_t, c.cap);
    RP_TRY(rp_arena_check(&scratch, "planning", err));
    for (uint32_t i = 0; i < g->n; i++) {
        c.equal[i] = find_equal(&c, i);
        c.use[i] = i == g->root || is_read_in_place(&g->nodes[i]) ? i : c.equal[i];
        merged += c.use[i] != i;
        operands += g->nodes[i].nin;
    }
    if (!merged)
        return RP_OK;
    uint32_t *in = RP_ARENA_NEW(&plan->arena, uint32_t, operands + 1);
    RP_TRY(rp_err_need(in, err, "planning"));
    merge_compact(&c, in);
    return rp_plan_lifetimes(plan, g, err);
}

enum rp_code rp_equals_merge(struct rp_plan *plan, struct rp_err *err)
{
    for (size_t i = 0; i < plan->program->computations.n; i++) {
        struct rp_graph *g = &plan->graphs[i];
        bool inlined = false;

        for (uint32_t k = 0; k < g->n && g->nodes[0].kernel && !inlined; k++)
            inlined = g->nodes[k].caller != NULL;
        if (inlined)
            RP_TRY(merge_graph(plan, g, err));
    }
    return RP_OK;
}
