/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops of TensorFlow's version 1, which are circles of the graph:
 *
 *     Enter -> Merge -> Switch -> Exit
 *                ^        |  side 1
 *                |        v
 *         NextIteration <- the body        LoopCond of the Merges decides for all Switches
 *
 * One Enter, Merge, Switch, Exit for each value that changes, and an Enter alone for each that is
 * only read; all Enters of a loop name its frame. The loop is lowered when the first of its Exits
 * is reached: condition and body become computations over one tuple of all that enters, in scopes
 * of their own, in which the Merges, the sides of Switches and the Enters are the parts of the
 * tuple. A scope has copies of those nodes only that were met. Finding the loops is one pass over
 * the nodes of a graph or function.
 */
#include "base/order.h"
#include "lower/inner.h"

#include "abi/proto/tensorflow.h"

#include <string.h>

bool rp_lower_leaves(const struct rp_lower_node *node)
{
    return rp_lower_is(node, "Exit");
}

static struct rp_lower_node *input_node(struct rp_lower *l, struct rp_lower_scope *scope,
                                        const struct rp_lower_node *node, size_t i)
{
    return rp_lower_find_node(l, scope, rp_lower_node_name(rp_lower_input(node, i)));
}

static int compare_bytes(struct rp_bytes a, struct rp_bytes b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n ? memcmp(a.at, b.at, n) : 0;

    return order ? order : RP_COMPARE(a.n, b.n);
}

RP_ORDER(by_frame, struct rp_lower_carried, compare_bytes(a->frame, b->frame),
         compare_bytes(a->enter->name, b->enter->name))

/* A Merge whose inputs are an Enter and a NextIteration, in any order. */
static void join_merge(struct rp_lower *l, struct rp_lower_scope *scope, struct rp_lower_node *node)
{
    for (size_t i = 0; i < 2; i++) {
        const struct rp_lower_node *enter = input_node(l, scope, node, i);
        const struct rp_lower_node *next = input_node(l, scope, node, 1 - i);

        if (enter && enter->carried && next && rp_lower_is(next, "NextIteration")) {
            node->carried = enter->carried;
            scope->carried[node->carried - 1].merge = node;
            scope->carried[node->carried - 1].next = rp_lower_input(next, 0);
            return;
        }
    }
}

static enum rp_code find_loops(struct rp_lower *l, struct rp_lower_scope *scope)
{
    struct rp_lower_carried *list;
    size_t n = 0;

    for (size_t i = 0; i < scope->nodes.n; i++)
        n += rp_lower_is(scope->nodes.at[i], "Enter");
    list = RP_ARENA_NEW(&l->arena, struct rp_lower_carried, n + 1);
    RP_TRY(rp_err_need(list, l->err, "finding the loops of a graph"));
    scope->carried = list;
    for (size_t i = 0; i < scope->nodes.n; i++)
        if (rp_lower_is(scope->nodes.at[i], "Enter")) {
            list->enter = scope->nodes.at[i];
            list++->frame = rp_lower_attr_text(scope->nodes.at[i], "frame_name");
        }
    scope->ncarried = n;
    rp_sort(scope->carried, n, sizeof *list, by_frame);
    for (size_t i = 0; i < n; i++)
        scope->carried[i].enter->carried = (uint32_t)i + 1;
    for (size_t i = 0; i < scope->nodes.n; i++)
        if (rp_lower_is(scope->nodes.at[i], "Merge"))
            join_merge(l, scope, scope->nodes.at[i]);
    for (size_t i = 0; i < scope->nodes.n; i++) {
        struct rp_lower_node *node = scope->nodes.at[i], *of;

        if (rp_lower_is(node, "Switch") && (of = input_node(l, scope, node, 0)) &&
            rp_lower_is(of, "Merge") && (node->carried = of->carried) != 0)
            scope->carried[node->carried - 1].side = node;
    }
    for (size_t i = 0; i < scope->nodes.n; i++) {
        struct rp_lower_node *node = scope->nodes.at[i], *of;

        if (rp_lower_leaves(node) && (of = input_node(l, scope, node, 0)) &&
            rp_lower_is(of, "Switch") && (node->carried = of->carried) != 0)
            scope->carried[node->carried - 1].exit = node;
    }
    return RP_OK;
}

enum rp_code rp_lower_loop_of(struct rp_lower *l, const struct rp_lower_node *exit,
                              const struct rp_lower_carried **out, size_t *n)
{
    struct rp_lower_scope *scope = exit->scope->base ? exit->scope->base : exit->scope;

    if (!scope->carried)
        RP_TRY(find_loops(l, scope));
    const struct rp_lower_node *known = rp_lower_find_node(l, scope, exit->name);
    const struct rp_lower_carried *all = scope->carried;
    size_t first = known && known->carried ? known->carried - 1 : scope->ncarried, end = first;

    while (end < scope->ncarried && rp_lower_same(all[end].frame, all[first].frame))
        end++;
    while (first && end && first < scope->ncarried &&
           rp_lower_same(all[first - 1].frame, all[end - 1].frame))
        first--;
    *out = all + first;
    *n = end - first;
    return RP_OK;
}

struct frame {
    const struct rp_lower_carried *carried;
    const struct rp_lower_value *entered;
    struct rp_lower_scope *base;
    struct rp_bytes condition;
};

static enum rp_code set_part(struct rp_lower *l, struct rp_lower_scope *scope,
                             const struct rp_lower_node *of, const struct rp_lower_value *v)
{
    struct rp_lower_node *node = of ? rp_lower_find_node(l, scope, of->name) : NULL;
    const struct rp_lower_value both[2] = {*v, *v};

    return node ? rp_lower_set_outputs(l, node, both, 2) : RP_OK;
}

/* What is only read is known inside if it is known outside. */
static enum rp_code lower_frame(struct rp_lower *l, const struct rp_lower_node *node,
                                const void *of, bool body, struct rp_lower_value *v, size_t n,
                                struct rp_lower_value *made, size_t *nmade)
{
    struct rp_lower_scope *inside = rp_lower_new_scope(l);
    const struct frame *frame = of;

    (void)node;
    RP_TRY(rp_err_need(inside, l->err, "lowering a loop"));
    inside->base = frame->base;
    inside->function = frame->base->function;
    for (size_t i = 0; i < n; i++) {
        const struct rp_lower_carried *c = &frame->carried[i];

        if (!c->merge) {
            v[i].ints = frame->entered[i].ints;
            v[i].nints = frame->entered[i].nints;
        }
        made[i] = v[i];
        RP_TRY(set_part(l, inside, c->merge ? c->merge : c->enter, &v[i]));
        RP_TRY(set_part(l, inside, c->side, &v[i]));
    }
    *nmade = body ? n : 1;
    if (!body)
        return rp_lower_tensor(l, inside, frame->condition, made);
    for (size_t i = 0; i < n; i++)
        if (frame->carried[i].merge)
            RP_TRY(rp_lower_tensor(l, inside, frame->carried[i].next, &made[i]));
    return RP_OK;
}

enum rp_code rp_lower_exit(struct rp_lower *l, struct rp_lower_node *node,
                           struct rp_lower_value *out)
{
    struct frame frame = {.base = node->scope->base ? node->scope->base : node->scope};
    const struct rp_lower_node *decides = NULL;
    uint32_t guard = 0;
    size_t n;

    RP_TRY(rp_lower_loop_of(l, node, &frame.carried, &n));
    if (!n)
        return rp_lower_refuse(l, node, "it leaves no loop");
    struct rp_lower_value *state = RP_ARENA_NEW(&l->arena, struct rp_lower_value, 2 * n);
    RP_TRY(rp_err_need(state, l->err, "lowering a loop"));
    frame.entered = state + n;
    for (size_t i = 0; i < n; i++) {
        RP_TRY(
            rp_lower_tensor(l, node->scope, rp_lower_input(frame.carried[i].enter, 0), &state[i]));
        guard = rp_lower_deeper(l, guard, state[i].guard);
        if (frame.carried[i].side && !decides)
            decides = input_node(l, frame.base, frame.carried[i].side, 1);
    }
    if (!decides || !rp_lower_is(decides, "LoopCond"))
        return rp_lower_refuse(l, node, "no LoopCond decides when the loop ends");
    frame.condition = rp_lower_input(decides, 0);
    memcpy(state + n, state, n * sizeof *state);
    RP_TRY(rp_lower_repeat(l, node, lower_frame, &frame, state, n));
    for (size_t i = 0; i < n; i++) {
        const struct rp_lower_carried *c = &frame.carried[i];

        state[i].guard = guard;
        if (c->exit)
            RP_TRY(set_part(l, node->scope, c->exit, &state[i]));
        if (c->side && rp_lower_same(rp_lower_node_name(rp_lower_input(node, 0)), c->side->name))
            *out = state[i];
    }
    return RP_OK;
}
