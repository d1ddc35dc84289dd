/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A product with a transposed array as its operand reads that array in place, if the contracted
 * dimensions are then next to each other, before or after the free ones. So weights that a program
 * stores transposed need not be copied in every run. Linear.
 */
#include "exec/fast/kernels.h"
#include "exec/ref/dot.h"
#include "exec/ref/kernels.h"
#include "program/opcodes.h"

#include <stdlib.h>

/* Replaces operand k of a product by the array of which it is a transposition; false if it has to
   stay. */
static enum rp_code fold_operand(struct rp_plan *plan, struct rp_graph *g, struct rp_node *node,
                                 uint32_t k, bool *done, struct rp_err *err)
{
    const struct rp_node *turned = &g->nodes[node->in[k]];
    const struct rp_dims_attr *dims = turned->attrs;
    struct rp_dot d = *(const struct rp_dot *)node->attrs;
    uint32_t *in;

    if (turned->code != RP_OP_TRANSPOSE || turned->skip || turned->nin != 1 ||
        !rp_dot_turn(&d, k, dims->at))
        return RP_OK;
    in = rp_plan_copy(plan, node->in, node->nin, sizeof *in);
    node->attrs = rp_plan_copy(
        plan, &d, 1, sizeof d); /* copied, because a copy of the node may share the other */
    RP_TRY(rp_err_need(in && node->attrs, err, "planning"));
    in[k] = turned->in[0];
    node->in = in;
    *done = true;
    return RP_OK;
}

static enum rp_code fold_graph(struct rp_plan *plan, struct rp_graph *g, struct rp_err *err)
{
    bool done = false;

    for (uint32_t i = 0; i < g->n; i++)
        for (uint32_t k = 0; k < 2 && g->nodes[i].code == RP_OP_DOT && !g->nodes[i].skip; k++)
            RP_TRY(fold_operand(plan, g, &g->nodes[i], k, &done, err));
    if (!done)
        return RP_OK;
    RP_FREED bool *read = calloc(g->n, sizeof *read);
    RP_TRY(rp_err_need(read, err, "planning"));
    /* Skips transpositions that nothing reads any more. */
    read[g->root] = true;
    for (uint32_t i = g->n; i-- > 0;) {
        struct rp_node *node = &g->nodes[i];

        if (node->code == RP_OP_TRANSPOSE && !read[i]) {
            node->skip = true;
            node->nin = 0;
        }
        for (uint32_t k = 0; k < node->nin; k++)
            read[node->in[k]] = true;
    }
    return rp_plan_lifetimes(plan, g, err);
}

enum rp_code rp_turned_fold(struct rp_plan *plan, struct rp_err *err)
{
    for (size_t i = 0; i < plan->program->computations.n; i++)
        if (plan->graphs[i].n && plan->graphs[i].nodes[0].kernel)
            RP_TRY(fold_graph(plan, &plan->graphs[i], err));
    return RP_OK;
}
