/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes ragged-dot: a product whose left side has a dimension that is divided into groups of
 * different sizes, given by an operand. The dimension is one of these:
 *
 *   free        every row is multiplied with the matrix of its group   [b,m,k] [g,b,k,n] -> [b,m,n]
 *   contracted  every group is a product of its own                    [b,m,k] [b,k,n] -> [g,b,m,n]
 *   batch       a plain product
 *
 * Rows without a group give 0. The sizes may differ by batch, and by the dimensions before the
 * ragged one. As for dot, operands are widened and every result is one sum, rounded at its end.
 */
#include "exec/data/complex.h"
#include "exec/eval/strided.h"
#include "exec/ref/dot.h"
#include "exec/ref/kernels.h"
#include "exec/ref/reduce.h"
#include "program/floats.h"
#include "program/opcodes.h"

#include <stdlib.h>
#include <string.h>

enum ragged_mode { RAGGED_FREE, RAGGED_CONTRACTED, RAGGED_BATCH };

struct ragged {
    struct rp_dot plain; /* for the mode RAGGED_BATCH */
    enum ragged_mode mode;
    uint32_t perm[2][RP_TENSOR_RANK]; /* batch, group (only right side), free, contracted */
    int64_t batch, left, right, inner, groups;
    /* for the side with the ragged dimension: sizes of the batch and of the free or contracted
       dimensions */
    int64_t sizes[RP_TENSOR_RANK];
    uint32_t nbatch, nsizes, ragged;
};

struct dims_of {
    const int64_t *at;
    size_t n;
};

static bool dims_have(struct dims_of list, int64_t d, uint32_t *where)
{
    for (size_t i = 0; i < list.n; i++)
        if (list.at[i] == d) {
            *where = (uint32_t)i;
            return true;
        }
    return false;
}

/* Arranges batch, group (if >= 0), free and contracted dimensions of one side; returns the number
   of free elements. */
static int64_t ragged_arrange(const struct rp_value_shape *s, struct dims_of batch,
                              struct dims_of inner, int64_t group, uint32_t *perm, int64_t *sizes,
                              uint32_t *nfree)
{
    int64_t elements = 1;
    uint32_t at = 0, unused;

    for (size_t i = 0; i < batch.n; i++)
        perm[at++] = (uint32_t)batch.at[i];
    if (group >= 0)
        perm[at++] = (uint32_t)group;
    for (*nfree = 0; s->rank > at + inner.n; ++*nfree) { /* the next free one */
        int64_t d = *nfree ? perm[at - 1] + 1 : 0;

        while (d == group || dims_have(batch, d, &unused) || dims_have(inner, d, &unused))
            d++;
        perm[at++] = (uint32_t)d;
        sizes[*nfree] = s->dims[d];
        elements *= s->dims[d];
    }
    for (size_t i = 0; i < inner.n; i++)
        perm[at++] = (uint32_t)inner.at[i];
    return elements;
}

static bool is_permutation(const uint32_t *perm, uint32_t n)
{
    uint64_t seen = 0;

    for (uint32_t i = 0; i < n; i++)
        seen |= (uint64_t)1 << perm[i];
    return seen == ((uint64_t)1 << n) - 1;
}

static enum rp_code ragged_sizes(const struct rp_node *node, struct ragged *g,
                                 const struct rp_value_shape *sides[3], const struct dims_of *d,
                                 struct dims_of ragged, struct dims_of group, struct rp_err *err)
{
    int64_t free_sizes[RP_TENSOR_RANK], unused[RP_TENSOR_RANK];
    uint32_t nfree, nright, at = 0;

    g->mode = dims_have(d[0], ragged.at[0], &g->ragged)   ? RAGGED_CONTRACTED
              : dims_have(d[2], ragged.at[0], &g->ragged) ? RAGGED_BATCH
                                                          : RAGGED_FREE;
    if (group.n != (g->mode == RAGGED_FREE ? 1u : 0u) || d[0].n != d[1].n || d[2].n != d[3].n ||
        d[0].n + d[2].n > sides[0]->rank || d[1].n + d[3].n + group.n > sides[1]->rank)
        return rp_node_error(node, RP_FORMAT, err, "the dimensions do not match");
    g->batch = g->inner = 1;
    for (size_t i = 0; i < d[2].n; i++) {
        g->sizes[at++] = sides[0]->dims[d[2].at[i]];
        g->batch *= sides[0]->dims[d[2].at[i]];
        if (sides[1]->dims[d[3].at[i]] != sides[0]->dims[d[2].at[i]])
            return rp_node_error(node, RP_FORMAT, err, "batch dimensions differ");
    }
    g->nbatch = at;
    g->left = ragged_arrange(sides[0], d[2], d[0], -1, g->perm[0], free_sizes, &nfree);
    g->right = ragged_arrange(sides[1], d[3], d[1], group.n ? group.at[0] : -1, g->perm[1], unused,
                              &nright);
    if (!is_permutation(g->perm[0], sides[0]->rank) || !is_permutation(g->perm[1], sides[1]->rank))
        return rp_node_error(node, RP_FORMAT, err, "a dimension is listed twice");
    for (size_t i = 0; i < d[0].n; i++) {
        g->inner *= sides[0]->dims[d[0].at[i]];
        if (sides[1]->dims[d[1].at[i]] != sides[0]->dims[d[0].at[i]])
            return rp_node_error(node, RP_FORMAT, err, "contracted dimensions differ");
        if (g->mode == RAGGED_CONTRACTED)
            g->sizes[at++] = sides[0]->dims[d[0].at[i]];
    }
    for (uint32_t i = 0; g->mode == RAGGED_FREE && i < nfree; i++) {
        if (g->perm[0][d[2].n + i] == ragged.at[0])
            g->ragged = i;
        g->sizes[at++] = free_sizes[i];
    }
    g->nsizes = at;
    g->ragged += g->nbatch;
    g->groups = sides[2]->dims[sides[2]->rank - 1];
    if (group.n && sides[1]->dims[group.at[0]] != g->groups)
        return rp_node_error(node, RP_FORMAT, err, "as many matrices as groups are required");
    return RP_OK;
}

static RP_PREPARE(ragged_prepare)
{
    static const unsigned keys[6] = {RP_ATTR_LHS_CONTRACTING_DIMS, RP_ATTR_RHS_CONTRACTING_DIMS,
                                     RP_ATTR_LHS_BATCH_DIMS,       RP_ATTR_RHS_BATCH_DIMS,
                                     RP_ATTR_LHS_RAGGED_DIMS,      RP_ATTR_RHS_GROUP_DIMS};
    struct ragged *g = RP_NODE_NEW(plan, struct ragged);
    const struct rp_value_shape *sides[3];
    struct dims_of d[6];
    const int64_t *lists[4];
    size_t counts[4];

    RP_TRY(rp_err_need(g, err, "planning"));
    if (node->nin != 3)
        return rp_node_error(node, RP_FORMAT, err, "%u operands, expected three", node->nin);
    for (uint32_t i = 0; i < 3; i++)
        sides[i] = rp_node_operand(plan, node, i);
    for (size_t i = 0; i < 6; i++) {
        const struct rp_value_shape *side = sides[i % 2];

        RP_TRY(
            rp_node_ints(plan, node, keys[i], side->rank ? side->rank : 1, &d[i].at, &d[i].n, err));
    }
    if (d[4].n != 1 || !sides[2]->rank || sides[2]->elem == RP_ELEM_TUPLE)
        return rp_node_error(node, RP_FORMAT, err,
                             "one ragged dimension and group sizes are "
                             "required");
    RP_TRY(ragged_sizes(node, g, sides, d, d[4], d[5], err));
    for (size_t i = 0; i < 4; i++) {
        lists[i] = d[i].at;
        counts[i] = d[i].n;
    }
    if (g->mode == RAGGED_BATCH)
        RP_TRY(rp_dot_fill(&g->plain, node, sides[0], sides[1], lists, counts, err));
    else {
        /* The group sizes have one row for each index of the batch dimensions and of those before
           the ragged one, or one row for all. */
        for (uint32_t k = 0, at = 0; k + 1 < sides[2]->rank; k++, at++) {
            at += at == g->ragged;
            if (at >= g->nsizes || sides[2]->dims[k] != g->sizes[at])
                return rp_node_error(node, RP_FORMAT, err, "the group sizes have another shape");
        }
    }
    if ((size_t)((g->mode == RAGGED_CONTRACTED ? g->groups : 1) * g->batch * g->left * g->right) !=
        node->shape->n)
        return rp_node_error(node, RP_FORMAT, err, "wrong size of the result");
    node->attrs = g;
    return RP_OK;
}

/* Finds the group of each index of the batch and free (or contracted) dimensions; -1: none. */
static void find_groups(const struct ragged *g, const struct rp_tensor *sizes, int64_t *group)
{
    int64_t at[RP_TENSOR_RANK] = {0}, n = 0;

    do {
        int64_t row = 0, end = 0;

        for (uint32_t k = 0, d = 0; k + 1 < sizes->rank; k++, d++) {
            d += d == g->ragged;
            row = row * sizes->dims[k] + at[d];
        }
        group[n] = -1;
        for (int64_t i = 0; i < g->groups && group[n] < 0; i++) {
            end += rp_tensor_integer(sizes, (size_t)(row * g->groups + i));
            if (at[g->ragged] < end)
                group[n] = i;
        }
        n++;
    } while (rp_index_next(at, g->sizes, g->nsizes));
}

/* The loops are the same for all three types. */
#define RAGGED(name, type)                                                                         \
    static void name##_free(const struct ragged *g, const int64_t *group, const void *lhs,         \
                            const void *rhs, void *out)                                            \
    {                                                                                              \
        const type *l = lhs, *r = rhs;                                                             \
        type *to = out;                                                                            \
                                                                                                   \
        for (int64_t b = 0; b < g->batch; b++)                                                     \
            for (int64_t i = 0; i < g->left; i++) {                                                \
                int64_t which = group[b * g->left + i];                                            \
                                                                                                   \
                for (int64_t j = 0; j < g->right; j++) {                                           \
                    const type *x = l + (b * g->left + i) * g->inner;                              \
                    const type *y = which < 0                                                      \
                                        ? NULL                                                     \
                                        : r + ((b * g->groups + which) * g->right + j) * g->inner; \
                    type sum = 0;                                                                  \
                                                                                                   \
                    for (int64_t k = 0; y && k < g->inner; k++)                                    \
                        sum += x[k] * y[k];                                                        \
                    *to++ = sum;                                                                   \
                }                                                                                  \
            }                                                                                      \
    }                                                                                              \
    static void name##_contracted(const struct ragged *g, const int64_t *group, const void *lhs,   \
                                  const void *rhs, void *out)                                      \
    {                                                                                              \
        const type *l = lhs, *r = rhs;                                                             \
        type *to = out;                                                                            \
                                                                                                   \
        for (int64_t which = 0; which < g->groups; which++)                                        \
            for (int64_t b = 0; b < g->batch; b++)                                                 \
                for (int64_t i = 0; i < g->left; i++)                                              \
                    for (int64_t j = 0; j < g->right; j++) {                                       \
                        const type *x = l + (b * g->left + i) * g->inner;                          \
                        const type *y = r + (b * g->right + j) * g->inner;                         \
                        type sum = 0;                                                              \
                                                                                                   \
                        for (int64_t k = 0; k < g->inner; k++)                                     \
                            if (group[b * g->inner + k] == which)                                  \
                                sum += x[k] * y[k];                                                \
                        *to++ = sum;                                                               \
                    }                                                                              \
    }
RAGGED(ragged_float, double)
RAGGED(ragged_integer, uint64_t)
RAGGED(ragged_complex, double complex)

static void ragged_product(const struct ragged *g, unsigned wide, const int64_t *group,
                           const void *lhs, const void *rhs, void *out)
{
    bool inner = g->mode == RAGGED_CONTRACTED;

    if (wide == RP_ELEM_C128)
        (inner ? ragged_complex_contracted : ragged_complex_free)(g, group, lhs, rhs, out);
    else if (wide == RP_ELEM_F64)
        (inner ? ragged_float_contracted : ragged_float_free)(g, group, lhs, rhs, out);
    else
        (inner ? ragged_integer_contracted : ragged_integer_free)(g, group, lhs, rhs, out);
}

static enum rp_code ragged_wide(const struct rp_node *node, struct rp_tensor *const *in,
                                struct rp_tensor **out, struct rp_err *err)
{
    const struct ragged *g = node->attrs;
    unsigned elem = node->shape->elem;
    unsigned wide = rp_dot_elem(elem);
    size_t rows = (size_t)(g->batch * (g->mode == RAGGED_FREE ? g->left : g->inner));
    RP_FREED int64_t *group = NULL;
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *l = NULL, *r = NULL;

    *out = NULL;
    if (g->mode == RAGGED_BATCH)
        return rp_dot_wide(&g->plain, in[0], in[1], elem, out, err);
    group = calloc(rows + 1, sizeof *group);
    RP_TRY(rp_err_need(group, err, "evaluating"));
    RP_TRY(rp_dot_side(in[0], g->perm[0], false, wide, &l, err));
    RP_TRY(rp_dot_side(in[1], g->perm[1], false, wide, &r, err));
    RP_TRY(rp_tensor_new(wide, node->shape->dims, node->shape->rank, out, err));
    if (rows)
        find_groups(g, in[2], group);
    ragged_product(g, wide, group, l->data, r->data, (*out)->data);
    return RP_OK;
}

static RP_KERNEL(ragged_run)
{
    struct rp_tensor *wide;

    RP_TRY(ragged_wide(node, in, &wide, err));
    return rp_dot_finish(wide, node, out, err);
}

const struct rp_kernel rp_kernels_ragged[] = {
    {RP_OP_RAGGED_DOT, ragged_prepare, ragged_run},
    {0, NULL, NULL},
};
