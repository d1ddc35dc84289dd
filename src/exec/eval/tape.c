/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes tapes from graphs in one walk in the order of evaluation: each node becomes a register, and
 * its computation an operation. Calls are expanded in place. Broadcasts and reshapes of scalars
 * share the register of their operand.
 */
#include "exec/eval/tape.h"
#include "program/opcodes.h"

#include "program/literal.h"

#include <stdlib.h>
#include <string.h>

/* A limit is needed because calls are expanded: computations that each call the next one twice
   double the tape at every level. */
#define MOST_NODES (1 << 20)
#define MOST_DEPTH 32
#define UNREAD                                                                         \
    (RP_NONE - 1) /* the register of a value that is not a scalar and must not be read \
                   */
#define TUPLES \
    (1u << 30) /* ... of a tuple that a call makes: this plus the index of its first part */

struct tape_ctx {
    struct rp_plan *plan;
    bool wide;
    RP_VEC(struct rp_tape_reg) regs;
    RP_VEC(struct rp_tape_op) ops;
    RP_VEC(uint32_t) results;
    RP_VEC(uint32_t) parts; /* registers of the elements of tuples */
    unsigned depth;
    size_t nodes; /* walked so far */
};

static void tape_release(struct tape_ctx *m)
{
    rp_vec_release(&m->regs);
    rp_vec_release(&m->ops);
    rp_vec_release(&m->results);
    rp_vec_release(&m->parts);
}

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

/* Puts one element of a constant into the arena. */
static enum rp_code tape_constant(struct tape_ctx *m, const struct rp_node *node, uint32_t *reg,
                                  struct rp_err *err)
{
    const struct rp_program *p = m->plan->program;
    const struct rp_literal *literal = &p->literals.at[node->value];
    unsigned elem = node->shape->elem, kept = kept_elem(m, elem);
    char *at = rp_arena_calloc(&m->plan->arena, 2, 16, 16);

    RP_TRY(rp_err_need(at, err, "planning"));
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
    for (uint32_t i = 0; i < node->nin && i < 3; i++) {
        in[i] = reg_of[node->in[i]];
        if (in[i] >= m->regs.n)
            return rp_node_error(node, RP_UNSUPPORTED, err, "an operand is not a scalar");
    }
    RP_TRY(new_reg(m, op.lane.to, NULL, reg, err));
    op.to = *reg;
    op.a = in[0];
    op.b = in[1];
    op.c = in[2];
    return rp_vec_push(&m->ops, op, err);
}

static enum rp_code tape_tuple(struct tape_ctx *m, const struct rp_node *node,
                               const uint32_t *reg_of, uint32_t *reg, struct rp_err *err)
{
    *reg = TUPLES + (uint32_t)m->parts.n;
    for (uint32_t i = 0; i < node->nin; i++)
        RP_TRY(rp_vec_push(&m->parts, reg_of[node->in[i]], err));
    return m->parts.n < MOST_NODES ? RP_OK : rp_node_error(node, RP_LIMIT, err, "too many tuples");
}

/* An element of a loop's parameter, or of a tuple that a call made. */
static bool tuple_element(const struct tape_ctx *m, const struct rp_node *node,
                          const uint32_t *args, uint32_t tuple, uint32_t *reg)
{
    if (tuple == RP_NONE && m->depth == 1) {
        *reg =
            node->shape->rank || !rp_literal_unit(node->shape->elem) ? UNREAD : args[node->value];
        return true;
    }
    if (tuple < TUPLES || tuple - TUPLES + (uint64_t)node->value >= m->parts.n)
        return false;
    *reg = m->parts.at[tuple - TUPLES + (uint64_t)node->value];
    return true;
}

static enum rp_code tape_walk(struct tape_ctx *m, const struct rp_graph *g, const uint32_t *args,
                              uint32_t *root, struct rp_err *err);

static enum rp_code node_reg(struct tape_ctx *m, const struct rp_node *node, const uint32_t *args,
                             const uint32_t *reg_of, uint32_t *reg, struct rp_err *err)
{
    const struct rp_attr *target;
    uint32_t in[RP_TENSOR_RANK];

    switch (node->code) {
    case RP_OP_PARAMETER: /* in a loop: a tuple, whose elements are the parameters */
        if (node->shape->elem == RP_ELEM_TUPLE && m->depth > 1)
            break;
        *reg = node->shape->elem == RP_ELEM_TUPLE ? RP_NONE : args[node->value];
        return RP_OK;
    case RP_OP_GET_TUPLE_ELEMENT:
        if (!tuple_element(m, node, args, reg_of[node->in[0]], reg))
            break;
        return RP_OK;
    case RP_OP_TUPLE:
        return tape_tuple(m, node, reg_of, reg, err);
    case RP_OP_CONSTANT:
        return tape_constant(m, node, reg, err);
    case RP_OP_BROADCAST:
    case RP_OP_RESHAPE:
    case RP_OP_BITCAST:
    case RP_OP_COPY:
    case RP_OP_OPT_BARRIER:
    case RP_OP_TRANSPOSE:
        *reg = reg_of[node->in[0]];
        if (node->shape->n != 1 || *reg >= m->regs.n || /* a bitcast may change the width */
            m->regs.at[*reg].unit != rp_literal_unit(kept_elem(m, node->shape->elem)))
            break;
        return RP_OK;
    case RP_OP_CUSTOM_CALL: /* this is a mark of the partitioner */
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
    RP_FREED uint32_t *reg_of = calloc((size_t)g->n + 1, sizeof *reg_of);

    RP_TRY(rp_err_need(reg_of, err, "planning"));
    m->nodes += g->n;
    if (m->nodes > MOST_NODES)
        return rp_err_set(err, RP_LIMIT, "a scalar function of more than %d operations",
                          MOST_NODES);
    m->depth++;
    for (uint32_t i = 0; i < g->n; i++) {
        const struct rp_node *node = &g->nodes[i];

        if (node->skip)
            continue;
        if (node->code == RP_OP_TUPLE && i == g->root && m->depth == 1)
            for (uint32_t k = 0; k < node->nin; k++)
                RP_TRY(rp_vec_push(&m->results, reg_of[node->in[k]], err));
        else
            RP_TRY(node_reg(m, node, args, reg_of, &reg_of[i], err));
    }
    m->depth--;
    *root = reg_of[g->root];
    return RP_OK;
}

static enum rp_code tape_parameter(struct tape_ctx *m, const struct rp_node *node,
                                   const struct rp_value_shape *shape, size_t i, struct rp_err *err)
{
    if (!rp_literal_unit(shape->elem))
        return rp_node_error(node, RP_UNSUPPORTED, err, "not a scalar parameter");
    if (i >= m->regs.n || !m->regs.at)
        return rp_node_error(node, RP_FORMAT, err, "no operand for this parameter");
    struct rp_tape_reg *reg = &m->regs.at[i];
    reg->elem = (uint8_t)kept_elem(m, shape->elem);
    reg->unit = (uint8_t)rp_literal_unit(reg->elem);
    return RP_OK;
}

static enum rp_code tape_parameters(struct tape_ctx *m, const struct rp_graph *g, size_t n,
                                    uint32_t *args, struct rp_err *err)
{
    for (size_t i = 0; i < n; i++)
        RP_TRY(new_reg(m, RP_ELEM_F32, NULL, &args[i], err));
    for (uint32_t i = 0; i < g->n; i++) {
        const struct rp_node *node = &g->nodes[i];

        if (node->code != RP_OP_PARAMETER)
            continue;
        if (node->shape->elem != RP_ELEM_TUPLE) {
            RP_TRY(tape_parameter(m, node, node->shape, (size_t)node->value, err));
            continue;
        }
        for (uint32_t k = 0; k < node->shape->nparts; k++)
            if (!node->shape->parts[k]->rank && rp_literal_unit(node->shape->parts[k]->elem))
                RP_TRY(tape_parameter(m, node, node->shape->parts[k], k, err));
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

/* The parameters of a graph; one tuple counts as many as it has elements. */
static size_t tape_nparams(const struct rp_graph *g)
{
    for (uint32_t i = 0; g->nparams == 1 && i < g->n; i++)
        if (g->nodes[i].code == RP_OP_PARAMETER && g->nodes[i].shape->elem == RP_ELEM_TUPLE)
            return g->nodes[i].shape->nparts;
    return g->nparams;
}

enum rp_code rp_tape_new(struct rp_plan *plan, const struct rp_graph *graph, bool wide,
                         struct rp_tape **out, struct rp_err *err)
{
    RP_SCOPED(tape_release) struct tape_ctx m = {.plan = plan, .wide = wide};
    size_t nparams = tape_nparams(graph);
    RP_FREED uint32_t *args = calloc(nparams + 1, sizeof *args);
    uint32_t root = 0;

    *out = NULL;
    RP_TRY(rp_err_need(args, err, "planning"));
    RP_TRY(tape_parameters(&m, graph, nparams, args, err));
    RP_TRY(tape_walk(&m, graph, args, &root, err));
    if (!m.results.n)
        RP_TRY(rp_vec_push(&m.results, root, err));
    for (size_t i = 0; i < m.results.n; i++)
        if (m.results.at[i] >= m.regs.n)
            return rp_err_set(err, RP_UNSUPPORTED, "a result is not a scalar");

    struct rp_tape *t = RP_NODE_NEW(m.plan, struct rp_tape);
    RP_TRY(rp_err_need(t, err, "planning"));
    t->nregs = m.regs.n;
    t->nops = m.ops.n;
    t->nparams = nparams;
    t->nresults = m.results.n;
    t->regs = rp_plan_copy(m.plan, m.regs.at, m.regs.n, sizeof *t->regs);
    t->ops = rp_plan_copy(m.plan, m.ops.at, m.ops.n, sizeof *t->ops);
    t->results = rp_plan_copy(m.plan, m.results.at, m.results.n, sizeof *t->results);
    RP_TRY(rp_err_need(t->regs && t->ops && t->results, err, "planning"));
    t->second = t->nresults == 1 && t->nparams == 2 && t->results[0] == 1;
    if (t->nops == 1 && t->nparams == 2 && t->nresults == 1 && t->ops[0].to == t->results[0] &&
        t->ops[0].a + t->ops[0].b == 1 && t->ops[0].c == RP_NONE)
        for (uint32_t i = 0; i < graph->n; i++)
            if (graph->nodes[i].code != RP_OP_PARAMETER &&
                rp_opcode_is_elementwise(graph->nodes[i].code))
                t->simple = (uint16_t)graph->nodes[i].code;
    *out = t;
    return RP_OK;
}

static size_t register_bytes(const struct rp_tape_reg *reg, size_t lanes)
{
    return ((size_t)reg->unit * lanes + 63) / 64 * 64;
}

static size_t address_bytes(const struct rp_tape *tape)
{
    return ((tape->nregs + 1) * sizeof(void *) + 63) / 64 * 64;
}

size_t rp_tape_bytes(const struct rp_tape *tape, size_t lanes)
{
    size_t bytes = address_bytes(tape) + 64;

    for (size_t i = tape->nparams; i < tape->nregs; i++)
        bytes += register_bytes(&tape->regs[i], lanes);
    return bytes;
}

void rp_tape_place(const struct rp_tape *tape, size_t lanes, char *memory,
                   struct rp_tape_frame *frame)
{
    size_t at = address_bytes(tape);

    frame->tape = tape;
    frame->memory = NULL;
    frame->reg = (void **)(void *)memory;
    memset(frame->reg, 0, (tape->nparams + 1) * sizeof(void *));
    for (size_t i = tape->nparams; i < tape->nregs; i++) {
        const struct rp_tape_reg *reg = &tape->regs[i];

        frame->reg[i] = memory + at;
        at += register_bytes(reg, lanes);
        for (size_t k = 0; reg->constant && k < lanes; k++)
            memcpy((char *)frame->reg[i] + k * reg->unit, reg->constant, reg->unit);
    }
}

enum rp_code rp_tape_begin(const struct rp_tape *tape, struct rp_tape_frame *frame,
                           struct rp_err *err)
{
    char *memory = aligned_alloc(64, rp_tape_bytes(tape, RP_TAPE_LANES));

    *frame = (struct rp_tape_frame){0};
    RP_TRY(rp_err_need(memory, err, "evaluating"));
    rp_tape_place(tape, RP_TAPE_LANES, memory, frame);
    frame->memory = memory;
    return RP_OK;
}

void rp_tape_end(struct rp_tape_frame *frame)
{
    free(frame->memory);
    frame->reg = NULL;
    frame->memory = NULL;
}
