/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the invariants of a loop: the elements of its state that the body passes on unchanged,
 * constants, and values computed from these alone. They are computed in the first iteration and
 * kept until the loop ends (exec/eval/eval.c). Products with an invariant second operand keep it
 * packed (dot.c).
 */
#include "exec/fast/kernels.h"
#include "program/opcodes.h"

#include <stdlib.h>

/* Whether an operation has no effects, and its result depends only on the values of its
   operands. */
static bool is_pure(const struct rp_node *node)
{
    switch (node->code) {
    case RP_OP_CONSTANT:
    case RP_OP_IOTA:
    case RP_OP_BROADCAST:
    case RP_OP_RESHAPE:
    case RP_OP_BITCAST:
    case RP_OP_TRANSPOSE:
    case RP_OP_REVERSE:
    case RP_OP_SLICE:
    case RP_OP_CONCATENATE:
    case RP_OP_PAD:
    case RP_OP_COPY:
    case RP_OP_REDUCE:
    case RP_OP_DOT:
        return true;
    default:
        return rp_op_info[node->code].class_ == RP_CLASS_ELEMENT && node->code != RP_OP_MAP &&
               node->code != RP_OP_STOCHASTIC_CONVERT;
    }
}

/* The element of the parameter that a node is, perhaps through copies; -1 for any other value. */
static int64_t passed_element(const struct rp_graph *g, uint32_t i)
{
    while (g->nodes[i].code == RP_OP_COPY && g->nodes[i].nin == 1)
        i = g->nodes[i].in[0];
    if (g->nodes[i].code != RP_OP_GET_TUPLE_ELEMENT || g->nodes[i].nin != 1 ||
        g->nodes[g->nodes[i].in[0]].code != RP_OP_PARAMETER)
        return -1;
    return g->nodes[i].value;
}

static bool is_passed_on(const struct rp_graph *g, uint32_t i)
{
    const struct rp_node *root = &g->nodes[g->root];
    int64_t element = passed_element(g, i);

    return element >= 0 && root->code == RP_OP_TUPLE && element < (int64_t)root->nin &&
           passed_element(g, root->in[element]) == element;
}

static bool is_invariant(const struct rp_graph *g, uint32_t i, const bool *same)
{
    const struct rp_node *node = &g->nodes[i];

    if (node->code == RP_OP_GET_TUPLE_ELEMENT)
        return is_passed_on(g, i);
    if (!is_pure(node) || i == g->root || node->shape->elem == RP_ELEM_TUPLE)
        return false;
    for (uint32_t k = 0; k < node->nin; k++)
        if (!same[node->in[k]])
            return false;
    return true;
}

static enum rp_code mark_body(struct rp_graph *g, struct rp_err *err)
{
    RP_FREED bool *same = calloc(g->n, sizeof *same), *read = calloc(g->n, sizeof *read);

    RP_TRY(rp_err_need(same && read, err, "planning"));
    for (uint32_t i = 0; i < g->n; i++)
        same[i] = !g->nodes[i].skip && is_invariant(g, i, same);
    for (uint32_t i = g->n; i-- > 0;)
        for (uint32_t k = 0; k < g->nodes[i].nin && !same[i]; k++)
            read[g->nodes[i].in[k]] = true;
    for (uint32_t i = 0; i < g->n; i++)
        if (same[i] && g->nodes[i].code != RP_OP_GET_TUPLE_ELEMENT)
            g->nodes[i].invariant = read[i] ? RP_INVARIANT_KEPT : RP_INVARIANT;
    for (uint32_t i = 0; i < g->n; i++)
        g->nodes[i].same_second = !same[i] && g->nodes[i].code == RP_OP_DOT &&
                                  g->nodes[i].nin == 2 && same[g->nodes[i].in[1]];
    return RP_OK;
}

enum rp_code rp_invariants_mark(struct rp_plan *plan, struct rp_err *err)
{
    for (size_t i = 0; i < plan->program->computations.n; i++) {
        struct rp_graph *g = &plan->graphs[i];

        for (uint32_t k = 0; k < g->n && g->nodes[0].kernel; k++)
            if (g->nodes[k].code == RP_OP_WHILE && !g->nodes[k].skip)
                RP_TRY(mark_body(g->nodes[k].called[0], err));
    }
    return RP_OK;
}
