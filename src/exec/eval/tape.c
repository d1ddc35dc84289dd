/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making tapes from graphs: one walk in the order of evaluation; each node becomes a register, and
 * what it computes an operation. Calls are put in place. Broadcasts and reshapes of scalars are
 * their operand.
 */
#include "exec/eval/tape.h"
#include "program/opcodes.h"

#include "program/literal.h"

#include <stdlib.h>
#include <string.h>

/* Since calls are put in place, computations that each call the next one twice double the tape at
   every level. */
#define MOST_NODES (1 << 20)
#define MOST_DEPTH 32

struct tape_ctx {
    struct rp_plan *plan;
    bool wide;
    RP_VEC(struct rp_tape_reg) regs;
    RP_VEC(struct rp_tape_op) ops;
    RP_VEC(uint32_t) results;
    unsigned depth;
    size_t nodes; /* walked so far */
};

static unsigned kept_elem(const struct tape_ctx *m, unsigned elem)
{
    return m->wide && rp_elem_is_small_float(elem) ? RP_ELEM_F32 : elem;
}

static enum rp_code new_reg(struct tape_ctx *m, unsigned elem, const void *constant, uint32_t *reg,
                            struct rp_err *err)
{
    struct rp_tape_reg row = {(uint8_t)elem, (uint8_t)rp_literal_unit(elem), constant};

    *reg = (uint32_t)m->regs.n;
    return rp_vec_push(&m->regs, row, err);
}

/* One element of a constant, in the arena. */
static enum rp_code tape_constant(struct tape_ctx *m, const struct rp_node *node, uint32_t *reg,
                                  struct rp_err *err)
{
    const struct rp_program *p = m->plan->program;
    const struct rp_literal *literal = &p->literals.at[node->value];
    unsigned elem = node->shape->elem, kept = kept_elem(m, elem);
    char *at = rp_arena_calloc(&m->plan->arena, 2, 16, 16);

    if (!at)
        return rp_err_nomem(err, "planning");
    if (node->shape->n != 1 || !rp_literal_known(p, literal))
        return rp_node_error(node, RP_UNSUPPORTED, err, "not a scalar with a known value");
    RP_TRY(rp_literal_decode(p, literal, at, rp_literal_unit(elem), err));
    if (kept != elem)
        rp_widen(elem, 1, (float *)(void *)(at + 16), at);
    return new_reg(m, kept, kept != elem ? at + 16 : at, reg, err);
}

static enum rp_code tape_element(struct tape_ctx *m, const struct rp_node *node,
                                 const uint32_t *reg_of, uint32_t *reg, struct rp_err *err)
{
    struct rp_tape_op op = {.b = RP_NONE, .c = RP_NONE};
    uint32_t in[3] = {RP_NONE, RP_NONE, RP_NONE};

    if (!rp_lane_of_node(m->plan, node, m->wide, &op.lane))
        return rp_node_error(node, RP_UNSUPPORTED, err, "not supported on scalars of its type");
    for (uint32_t i = 0; i < node->nin && i < 3; i++)
        in[i] = reg_of[node->in[i]];
    RP_TRY(new_reg(m, op.lane.to, NULL, reg, err));
    op.to = *reg;
    op.a = in[0];
    op.b = in[1];
    op.c = in[2];
    return rp_vec_push(&m->ops, op, err);
}

static enum rp_code tape_walk(struct tape_ctx *m, const struct rp_graph *g, const uint32_t *args,
                              uint32_t *root, struct rp_err *err);

static enum rp_code node_reg(struct tape_ctx *m, const struct rp_node *node, const uint32_t *args,
                             const uint32_t *reg_of, uint32_t *reg, struct rp_err *err)
{
    const struct rp_attr *target;
    uint32_t in[RP_TENSOR_RANK];

    switch (node->code) {
    case RP_OP_PARAMETER:
        *reg = args[node->value];
        return RP_OK;
    case RP_OP_CONSTANT:
        return tape_constant(m, node, reg, err);
    case RP_OP_BROADCAST:
    case RP_OP_RESHAPE:
    case RP_OP_BITCAST:
    case RP_OP_COPY:
    case RP_OP_OPT_BARRIER:
    case RP_OP_TRANSPOSE:
        if (node->shape->n != 1)
            break;
        *reg = reg_of[node->in[0]];
        return RP_OK;
    case RP_OP_CUSTOM_CALL: /* a mark of the partitioner */
        target = rp_node_attr(m->plan, node, RP_ATTR_CUSTOM_CALL_TARGET);
        if (node->shape->n != 1 || node->nin != 1 || !target || !rp_attr_is(target, "Sharding"))
            break;
        *reg = reg_of[node->in[0]];
        return RP_OK;
    case RP_OP_CALL:
    case RP_OP_FUSION:
        if (node->nin > RP_TENSOR_RANK || node->ncalled != 1 || m->depth > MOST_DEPTH)
            break;
        for (uint32_t i = 0; i < node->nin; i++)
            in[i] = reg_of[node->in[i]];
        return tape_walk(m, node->called[0], in, reg, err);
    default:
        if (rp_opcode_is_elementwise(node->code))
            return tape_element(m, node, reg_of, reg, err);
        break;
    }
    return rp_node_error(node, RP_UNSUPPORTED, err, "not an operation on scalars");
}

static enum rp_code tape_walk(struct tape_ctx *m, const struct rp_graph *g, const uint32_t *args,
                              uint32_t *root, struct rp_err *err)
{
    uint32_t *reg_of = calloc((size_t)g->n + 1, sizeof *reg_of);
    enum rp_code code = reg_of ? RP_OK : rp_err_nomem(err, "planning");

    m->nodes += g->n;
    if (code == RP_OK && m->nodes > MOST_NODES)
        code =
            rp_err_set(err, RP_LIMIT, "a scalar function of more than %d operations", MOST_NODES);
    m->depth++;
    for (uint32_t i = 0; code == RP_OK && i < g->n; i++) {
        const struct rp_node *node = &g->nodes[i];

        if (node->skip)
            continue;
        if (node->code == RP_OP_TUPLE && i == g->root && m->depth == 1) {
            for (uint32_t k = 0; code == RP_OK && k < node->nin; k++)
                code = rp_vec_push(&m->results, reg_of[node->in[k]], err);
            continue;
        }
        code = node_reg(m, node, args, reg_of, &reg_of[i], err);
    }
    m->depth--;
    if (code == RP_OK)
        *root = reg_of[g->root];
    free(reg_of);
    return code;
}

static enum rp_code tape_parameters(struct tape_ctx *m, const struct rp_graph *g, uint32_t *args,
                                    struct rp_err *err)
{
    for (uint32_t i = 0; i < g->nparams; i++)
        RP_TRY(new_reg(m, RP_ELEM_F32, NULL, &args[i], err));
    for (uint32_t i = 0; i < g->n; i++) {
        const struct rp_node *node = &g->nodes[i];
        struct rp_tape_reg *reg;

        if (node->code != RP_OP_PARAMETER)
            continue;
        if (!rp_literal_unit(node->shape->elem))
            return rp_node_error(node, RP_UNSUPPORTED, err, "not a scalar parameter");
        if (node->value < 0 || (size_t)node->value >= m->regs.n || !m->regs.at)
            return rp_node_error(node, RP_FORMAT, err, "no operand for this parameter");
        reg = &m->regs.at[node->value];
        reg->elem = (uint8_t)kept_elem(m, node->shape->elem);
        reg->unit = (uint8_t)rp_literal_unit(reg->elem);
    }
    return RP_OK;
}

void *rp_plan_copy(struct rp_plan *plan, const void *from, size_t n, size_t size)
{
    void *to = rp_arena_calloc(&plan->arena, n + 1, size, 16);

    if (to && n)
        memcpy(to, from, n * size);
    return to;
}

static enum rp_code tape_finish(struct tape_ctx *m, const struct rp_graph *g, struct rp_tape **out,
                                struct rp_err *err)
{
    struct rp_tape *t = RP_NODE_NEW(m->plan, struct rp_tape);

    if (!t)
        return rp_err_nomem(err, "planning");
    t->nregs = m->regs.n;
    t->nops = m->ops.n;
    t->nparams = g->nparams;
    t->nresults = m->results.n;
    t->regs = rp_plan_copy(m->plan, m->regs.at, m->regs.n, sizeof *t->regs);
    t->ops = rp_plan_copy(m->plan, m->ops.at, m->ops.n, sizeof *t->ops);
    t->results = rp_plan_copy(m->plan, m->results.at, m->results.n, sizeof *t->results);
    if (!t->regs || !t->ops || !t->results)
        return rp_err_nomem(err, "planning");
    t->second = t->nresults == 1 && t->nparams == 2 && t->results[0] == 1;
    if (t->nops == 1 && t->nparams == 2 && t->nresults == 1 && t->ops[0].to == t->results[0] &&
        t->ops[0].a + t->ops[0].b == 1 && t->ops[0].c == RP_NONE)
        for (uint32_t i = 0; i < g->n; i++)
            if (g->nodes[i].code != RP_OP_PARAMETER && rp_opcode_is_elementwise(g->nodes[i].code))
                t->simple = (uint16_t)g->nodes[i].code;
    *out = t;
    return RP_OK;
}

enum rp_code rp_tape_new(struct rp_plan *plan, const struct rp_graph *graph, bool wide,
                         struct rp_tape **out, struct rp_err *err)
{
    struct tape_ctx m = {.plan = plan, .wide = wide};
    uint32_t *args = calloc(graph->nparams + 1, sizeof *args), root = 0;
    enum rp_code code = args ? RP_OK : rp_err_nomem(err, "planning");

    *out = NULL;
    if (code == RP_OK)
        code = tape_parameters(&m, graph, args, err);
    if (code == RP_OK)
        code = tape_walk(&m, graph, args, &root, err);
    if (code == RP_OK && !m.results.n)
        code = rp_vec_push(&m.results, root, err);
    if (code == RP_OK)
        code = tape_finish(&m, graph, out, err);
    rp_vec_release(&m.regs);
    rp_vec_release(&m.ops);
    rp_vec_release(&m.results);
    free(args);
    return code;
}

enum rp_code rp_tape_begin(const struct rp_tape *tape, struct rp_tape_frame *frame,
                           struct rp_err *err)
{
    size_t bytes = 0, at = 0;

    for (size_t i = tape->nparams; i < tape->nregs; i++)
        bytes += ((size_t)tape->regs[i].unit * RP_TAPE_LANES + 63) / 64 * 64;
    frame->tape = tape;
    frame->reg = calloc(tape->nregs + 1, sizeof(void *));
    frame->memory = aligned_alloc(64, bytes + 64);
    if (!frame->reg || !frame->memory) {
        rp_tape_end(frame);
        return rp_err_nomem(err, "evaluating");
    }
    for (size_t i = tape->nparams; i < tape->nregs; i++) {
        const struct rp_tape_reg *reg = &tape->regs[i];

        frame->reg[i] = frame->memory + at;
        at += ((size_t)reg->unit * RP_TAPE_LANES + 63) / 64 * 64;
        for (size_t k = 0; reg->constant && k < RP_TAPE_LANES; k++)
            memcpy((char *)frame->reg[i] + k * reg->unit, reg->constant, reg->unit);
    }
    return RP_OK;
}

void rp_tape_end(struct rp_tape_frame *frame)
{
    free(frame->reg);
    free(frame->memory);
    frame->reg = NULL;
    frame->memory = NULL;
}
