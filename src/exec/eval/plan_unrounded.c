/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bf16 results that the program converts to f32 at once. XLA computes bf16 in f32 and rounds the
 * result, but a conversion to f32 gets the value before rounding; so the conversion becomes the
 * operation itself with a result of f32. Matrix products are an exception: XLA computes them in
 * bf16 and rounds. Operations without readers are then skipped. Optimized programs contain every
 * rounding explicitly and are not changed.
 */
#include "exec/eval/plan.h"
#include "program/opcodes.h"

static bool has_fusions(const struct rp_program *p)
{
    for (size_t i = 0; i < p->code.n; i++)
        if (p->code.at[i] == RP_OP_FUSION)
            return true;
    return false;
}

/* Operations whose result is not exact in bf16. */
static bool result_is_rounded(unsigned code)
{
    switch (code) {
    case RP_OP_CONVOLUTION:
        return true;
    case RP_OP_ABS:
    case RP_OP_NEGATE:
    case RP_OP_MAXIMUM:
    case RP_OP_MINIMUM:
    case RP_OP_CLAMP:
    case RP_OP_SELECT:
    case RP_OP_CONVERT:
    case RP_OP_BITCAST_CONVERT:
    case RP_OP_STOCHASTIC_CONVERT:
    case RP_OP_REDUCE_PRECISION:
    case RP_OP_COPY:
    case RP_OP_MAP:
    case RP_OP_REAL:
    case RP_OP_IMAG:
        return false;
    default:
        return rp_op_info[code].class_ == RP_CLASS_ELEMENT;
    }
}

static bool all_bf16(const struct rp_graph *g, const struct rp_node *node)
{
    for (uint32_t i = 0; i < node->nin; i++)
        if (g->nodes[node->in[i]].shape->elem != RP_ELEM_BF16)
            return false;
    return node->nin > 0 && node->shape->elem == RP_ELEM_BF16;
}

/* The conversion takes over what its operand does; its own shape and name stay. */
static void take_over(struct rp_node *convert, const struct rp_node *from)
{
    convert->op = from->op;
    convert->code = from->code;
    convert->opcode = from->opcode;
    convert->in = from->in;
    convert->nin = from->nin;
    convert->value = from->value;
}

static void drop_unused(struct rp_graph *g, uint32_t *uses, uint32_t i)
{
    struct rp_node *node = &g->nodes[i];

    if (uses[i] || i == g->root)
        return;
    for (uint32_t k = 0; k < node->nin; k++)
        uses[node->in[k]]--;
    node->skip = true;
    node->nin = 0;
}

static enum rp_code unround_graph(struct rp_plan *plan, struct rp_graph *g, struct rp_err *err)
{
    uint32_t *uses = RP_ARENA_NEW(&plan->arena, uint32_t, g->n);
    bool changed = false;

    RP_TRY(rp_err_need(uses, err, "planning"));
    for (uint32_t i = 0; i < g->n; i++)
        for (uint32_t k = 0; k < g->nodes[i].nin; k++)
            uses[g->nodes[i].in[k]]++;
    for (uint32_t i = 0; i < g->n; i++) {
        struct rp_node *node = &g->nodes[i];
        uint32_t from;

        if (node->code != RP_OP_CONVERT || node->nin != 1 || node->shape->elem != RP_ELEM_F32)
            continue;
        from = node->in[0];
        if (!result_is_rounded(g->nodes[from].code) || !all_bf16(g, &g->nodes[from]))
            continue;
        take_over(node, &g->nodes[from]);
        for (uint32_t k = 0; k < node->nin; k++)
            uses[node->in[k]]++;
        uses[from]--;
        drop_unused(g, uses, from);
        changed = true;
    }
    return changed ? rp_plan_lifetimes(plan, g, err) : RP_OK;
}

enum rp_code rp_plan_unrounded(struct rp_plan *plan, struct rp_err *err)
{
    if (has_fusions(plan->program) || plan->varies)
        return RP_OK;
    for (size_t i = 0; i < plan->program->computations.n; i++)
        RP_TRY(unround_graph(plan, &plan->graphs[i], err));
    return RP_OK;
}
