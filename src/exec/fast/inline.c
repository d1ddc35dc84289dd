/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces calls and fusions by what they call, callees first, so that loops form across them,
 * invariants of loops are found, and arrays can be changed in place. Nodes remember their callers,
 * so that times are still counted for them. If calls would multiply the program (each computation
 * calls the next one twice), they stay.
 */
#include "exec/fast/kernels.h"

#include "program/opcodes.h"
#include "program/order.h"

#include <stdlib.h>

#define MOST_GROWTH 4     /* as a multiple of the program's own nodes */
#define MOST_DEPTH  32    /* depth of calls inside each other */
#define MOST_MORE   20000 /* and some */

struct inline_ctx {
    struct rp_plan *plan;
    struct rp_graph *g;
    struct rp_node *nodes; /* the new list */
    uint32_t n;
    uint32_t *place; /* by old node: the new one */
    uint32_t *calls; /* calls replaced so far, in the plan */
};

/* The depth of replaced calls around a node. */
static unsigned caller_depth(const struct rp_graph *g)
{
    unsigned most = 0;

    for (uint32_t i = 0; i < g->n; i++) {
        unsigned depth = 0;

        for (const struct rp_caller *c = g->nodes[i].caller; c; c = c->up)
            depth++;
        most = depth > most ? depth : most;
    }
    return most;
}

static bool is_inlined(const struct rp_node *node)
{
    return (node->code == RP_OP_CALL || node->code == RP_OP_FUSION) && node->ncalled == 1 &&
           !node->skip && node->called[0]->nparams == node->nin && !node->called[0]->deep;
}

/* Copies the node; place[] maps its operands. */
static enum rp_code add_node(struct inline_ctx *c, const struct rp_node *from,
                             const uint32_t *place, struct rp_err *err)
{
    struct rp_node *to = &c->nodes[c->n++];
    uint32_t *in = RP_ARENA_NEW(&c->plan->arena, uint32_t, from->nin);

    RP_TRY(rp_err_need(in || !from->nin, err, "planning"));
    *to = *from;
    for (uint32_t k = 0; k < from->nin; k++)
        in[k] = place[from->in[k]];
    to->in = in;
    return RP_OK;
}

/* Chains the call (the number-th one) to the callers that the node already has. */
static struct rp_caller *caller_chain(struct rp_plan *plan, struct rp_caller *inside,
                                      struct rp_caller *call, uint32_t number)
{
    if (!inside)
        return call;
    if (inside->copied != number) {
        struct rp_caller *c = RP_NODE_NEW(plan, struct rp_caller);

        if (!c)
            return call;
        c->op = inside->op;
        c->up = caller_chain(plan, inside->up, call, number);
        inside->copy = c;
        inside->copied = number;
    }
    return inside->copy;
}

static enum rp_code inline_call(struct inline_ctx *c, const struct rp_node *call, uint32_t *root,
                                struct rp_err *err)
{
    const struct rp_graph *body = call->called[0];
    RP_FREED uint32_t *place = calloc((size_t)body->n + 1, sizeof *place);
    struct rp_caller *caller = RP_NODE_NEW(c->plan, struct rp_caller);

    RP_TRY(rp_err_need(place && caller, err, "planning"));
    ++*c->calls;
    caller->op = call->op;
    caller->up = call->caller;
    for (uint32_t i = 0; i < body->n; i++) {
        const struct rp_node *node = &body->nodes[i];

        if (node->code == RP_OP_PARAMETER) {
            place[i] = c->place[call->in[node->value]];
            continue;
        }
        place[i] = c->n;
        RP_TRY(add_node(c, node, place, err));
        c->nodes[c->n - 1].caller = caller_chain(c->plan, node->caller, caller, *c->calls);
    }
    *root = place[body->root];
    return RP_OK;
}

static enum rp_code inline_graph(struct rp_plan *plan, struct rp_graph *g, uint64_t *budget,
                                 uint32_t *calls, struct rp_err *err)
{
    uint64_t size = 0; /* the number of nodes after inlining */
    bool any = false;

    for (uint32_t i = 0; i < g->n; i++) {
        size += is_inlined(&g->nodes[i]) ? g->nodes[i].called[0]->n : 1;
        any = any || is_inlined(&g->nodes[i]);
    }
    if (!any || size > *budget)
        return RP_OK;
    *budget -= size;
    RP_FREED uint32_t *place = calloc(g->n, sizeof *place);
    struct inline_ctx c = {.plan = plan,
                           .g = g,
                           .nodes = RP_ARENA_NEW(&plan->arena, struct rp_node, size),
                           .place = place,
                           .calls = calls};
    RP_TRY(rp_err_need(c.nodes && place, err, "planning"));
    for (uint32_t i = 0; i < g->n; i++) {
        if (is_inlined(&g->nodes[i])) {
            RP_TRY(inline_call(&c, &g->nodes[i], &place[i], err));
            continue;
        }
        place[i] = c.n;
        RP_TRY(add_node(&c, &g->nodes[i], place, err));
    }
    g->nodes = c.nodes;
    g->n = c.n;
    g->root = place[g->root];
    g->deep = caller_depth(g) >= MOST_DEPTH;
    return rp_plan_lifetimes(plan, g, err);
}

enum rp_code rp_calls_inline(struct rp_plan *plan, struct rp_err *err)
{
    uint64_t budget = (uint64_t)plan->program->nops * MOST_GROWTH + MOST_MORE;
    uint32_t *order, calls = 0;

    RP_TRY(rp_program_call_order(plan->program, &plan->arena, &order, err));
    for (size_t i = 0; i < plan->program->computations.n; i++) {
        struct rp_graph *g = &plan->graphs[order[i]];

        if (g->n && g->nodes[0].kernel)
            RP_TRY(inline_graph(plan, g, &budget, &calls, err));
    }
    return RP_OK;
}

static bool is_timed(const struct rp_node *node)
{
    return !node->skip && !node->untimed && node->code != RP_OP_GET_TUPLE_ELEMENT &&
           node->code != RP_OP_PARAMETER;
}

static void note_last(const struct rp_node *node)
{
    for (struct rp_caller *c = is_timed(node) ? node->caller : NULL; c; c = c->up)
        if (!c->last)
            c->last = node;
}

void rp_calls_finish(struct rp_plan *plan)
{
    for (size_t i = 0; i < plan->program->computations.n; i++) {
        struct rp_graph *g = &plan->graphs[i];

        for (uint32_t k = g->n; k-- > 0;) {
            const struct rp_node *node = &g->nodes[k];
            const struct rp_graph *inside = /* inside: nodes that were put together (blocks.c) */
                node->untimed && node->ncalled && !node->skip ? node->called[0] : NULL;

            for (uint32_t m = inside ? inside->n : 0; m-- > 0;)
                note_last(&inside->nodes[m]);
            note_last(node);
        }
    }
}
