/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs element-wise operations of the reference engine as a lane over the whole array. Constants
 * are decoded when the program is planned; map runs its function over pieces.
 */
#include "exec/eval/tape.h"
#include "exec/ref/kernels.h"
#include "program/literal.h"
#include "program/opcodes.h"

#include <string.h>

static RP_PREPARE(prepare_lane)
{
    struct rp_lane *lane = RP_NODE_NEW(plan, struct rp_lane);

    RP_TRY(rp_err_need(lane, err, "planning"));
    if (!rp_lane_of_node(plan, node, false, lane)) {
        const struct rp_value_shape *in = node->nin ? rp_node_operand(plan, node, 0) : node->shape;

        return rp_node_error(node, RP_UNSUPPORTED, err, "not defined on %s",
                             in->elem == RP_ELEM_INVALID
                                 ? "an unknown type, such as a quantized one (!quant.uniform)"
                                 : rp_elem_name(in->elem));
    }
    node->attrs = lane;
    return RP_OK;
}

/* Repeats a scalar n times, for bounds of clamp, or the choice of select. */
static enum rp_code spread_scalar(struct rp_tensor *scalar, const struct rp_tensor *like,
                                  struct rp_tensor **out, struct rp_err *err)
{
    if (scalar->n == like->n) {
        *out = rp_tensor_keep(scalar);
        return RP_OK;
    }
    RP_TRY(rp_tensor_new(scalar->elem, like->dims, like->rank, out, err));
    for (size_t i = 0; i < like->n; i++)
        memcpy((*out)->data + i * scalar->unit, scalar->data, scalar->unit);
    return RP_OK;
}

static RP_KERNEL(element_run)
{
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *a = NULL, *b = NULL, *c = NULL;
    struct rp_tensor **same[3] = {&a, &b, &c};
    const struct rp_tensor *like = in[node->nin == 3]; /* for select and clamp the second one */

    for (uint32_t i = 1; i < node->nin && node->nin < 3; i++)
        if (in[i]->n > like->n)
            like = in[i];
    for (uint32_t i = 0; i < node->nin; i++) {
        if (in[i]->n != like->n && in[i]->n != 1)
            return rp_node_error(node, RP_FORMAT, err, "operands of %zu and %zu elements", like->n,
                                 in[i]->n);
        RP_TRY(spread_scalar(in[i], like, same[i], err));
    }
    RP_TRY(rp_tensor_new(node->shape->elem, like->dims, like->rank, out, err));
    if (a)
        rp_lane_run(node->attrs, like->n, (*out)->data, a->data, b ? b->data : NULL,
                    c ? c->data : NULL);
    return RP_OK;
}

/* ---- bitcast-convert, which may change the width ---- */

static RP_PREPARE(prepare_bits)
{
    const struct rp_value_shape *in = rp_node_operand(plan, node, 0);

    if (in->n * rp_cast_bits(in->elem) != node->shape->n * rp_cast_bits(node->shape->elem))
        return rp_node_error(node, RP_UNSUPPORTED, err, "between %s and %s", rp_elem_name(in->elem),
                             rp_elem_name(node->shape->elem));
    return RP_OK;
}

/* Copies the same bits, lowest first, to elements of another width; one of the two is under a
   byte. */
static void bitcast_recut(const struct rp_tensor *in, size_t from, struct rp_tensor *out, size_t to)
{
    size_t unit = from < to ? from : to, total = in->n * from / unit;
    unsigned mask = (1u << unit) - 1;

    memset(out->data, 0, rp_tensor_bytes(out));
    for (size_t i = 0; i < total; i++) {
        size_t bit = i * unit;
        unsigned v = in->data[bit / from * in->unit + bit % from / 8] >> (bit % from % 8) & mask;

        out->data[bit / to * out->unit + bit % to / 8] |= (unsigned char)(v << (bit % to % 8));
    }
    for (size_t i = 0; to < 8 && rp_elem_is_signed(out->elem) && i < out->n; i++)
        if (out->data[i] >> (to - 1))
            out->data[i] |= (unsigned char)~mask;
}

static RP_KERNEL(bitcast_run)
{
    size_t from = rp_cast_bits(in[0]->elem), to = rp_cast_bits(node->shape->elem);

    RP_TRY(rp_node_result(node, out, err));
    if (from >= 8 && to >= 8)
        memcpy((*out)->data, in[0]->data, rp_tensor_bytes(*out));
    else
        bitcast_recut(in[0], from, *out, to);
    return RP_OK;
}

/* ---- constants and iota ---- */

/* Makes a tensor in the arena that its users never free, because the plan keeps one use. */
static RP_PREPARE(hold_constant)
{
    struct rp_tensor *t = RP_NODE_NEW(plan, struct rp_tensor);
    size_t unit = rp_literal_unit(node->shape->elem);

    if (!t || !unit)
        return unit ? rp_err_nomem(err, "planning")
                    : rp_node_error(node, RP_UNSUPPORTED, err, "not an array constant");
    atomic_init(&t->users, 1);
    t->elem = node->shape->elem;
    t->borrowed = true;
    t->rank = node->shape->rank;
    t->n = node->shape->n;
    t->unit = unit;
    if (t->rank)
        memcpy(t->dims, node->shape->dims, t->rank * sizeof *t->dims);
    t->data = rp_arena_alloc(&plan->arena, t->n * unit + 16, 64);
    node->attrs = t;
    return rp_err_need(t->data, err, "planning constants");
}

/* rp_plan_check asks only whether a program could run, which requires no values, except small ones
   that kernels read while they are prepared. */
static bool is_only_checked(const struct rp_plan *plan, const struct rp_node *node)
{
    return plan->refused &&
           (node->shape->n > 4096 ||
            (node->code == RP_OP_CONSTANT &&
             !rp_literal_known(plan->program, &plan->program->literals.at[node->value])));
}

static RP_PREPARE(prepare_constant)
{
    const struct rp_literal *literal = &plan->program->literals.at[node->value];
    struct rp_source_line line;

    if (node->shape->elem == RP_ELEM_TOKEN)
        return rp_node_error(node, RP_UNSUPPORTED, err, "a constant token");
    if (!node->shape->n) /* nothing to know */
        return hold_constant(plan, node, err);
    if (is_only_checked(plan, node))
        return RP_OK;
    if (!rp_literal_known(plan->program, literal)) {
        rp_node_error(node, RP_FORMAT, err,
                      "the file omits its values: use the protobuf of the program, or dump it "
                      "with --xla_dump_large_constants");
        return rp_op_source(plan->program, node->op, &line)
                   ? rp_err_context(err, RP_FORMAT, "made at %s:%d", line.file, line.line)
                   : RP_FORMAT;
    }
    if (rp_shape_bytes(plan->program, literal->shape) !=
        rp_shape_bytes(plan->program, plan->program->shape.at[node->op]))
        return rp_node_error(node, RP_FORMAT, err, "its values are of another shape");
    RP_TRY(hold_constant(plan, node, err));
    struct rp_tensor *t = node->attrs;
    enum rp_code code = rp_literal_decode(plan->program, literal, t->data, rp_tensor_bytes(t), err);
    return code == RP_OK ? code : rp_err_prefix(err, code, "constant '%s'", node->name);
}

static RP_KERNEL(constant_run)
{
    *out = rp_tensor_keep(node->attrs);
    return RP_OK;
}

/* Fills n bytes by repeating the first ones. */
static void repeat_bytes(unsigned char *at, size_t first, size_t n)
{
    for (size_t done = first; done < n;) {
        size_t more = n - done < done ? n - done : done;

        memcpy(at + done, at, more);
        done += more;
    }
}

static RP_PREPARE(prepare_iota)
{
    int64_t dim = rp_node_int(plan, node, RP_ATTR_IOTA_DIMENSION, -1), inner = 1;

    if (dim < 0 || dim >= (int64_t)node->shape->rank)
        return rp_node_error(node, RP_FORMAT, err, "iota_dimension is missing or out of range");
    if (is_only_checked(plan, node))
        return RP_OK;
    RP_TRY(hold_constant(plan, node, err));
    struct rp_tensor *t = node->attrs;
    for (size_t k = (size_t)dim + 1; k < t->rank; k++)
        inner *= t->dims[k];
    if (!t->n)
        return RP_OK;
    for (int64_t v = 0; v < t->dims[dim]; v++) {
        size_t at = (size_t)(v * inner);

        if (rp_elem_is_signed(t->elem) || rp_elem_is_unsigned(t->elem) || t->elem == RP_ELEM_PRED)
            rp_tensor_set_integer(t, at, v);
        else
            rp_tensor_set(t, at, (double)v);
        repeat_bytes(t->data + at * t->unit, t->unit, (size_t)inner * t->unit);
    }
    repeat_bytes(t->data, (size_t)(t->dims[dim] * inner) * t->unit, t->n * t->unit);
    return RP_OK;
}

/* ---- map ---- */

static RP_PREPARE(prepare_map)
{
    struct rp_tape *tape;

    if (node->ncalled != 1 || node->called[0]->nparams != node->nin)
        return rp_node_error(node, RP_FORMAT, err, "the function does not match the operands");
    RP_TRY(rp_tape_new(plan, node->called[0], false, &tape, err));
    node->attrs = tape;
    for (uint32_t i = 0; i < node->nin; i++)
        if (tape->regs[i].elem != rp_node_operand(plan, node, i)->elem)
            return rp_node_error(node, RP_FORMAT, err, "the function is of another type");
    if (tape->nresults != 1 || tape->regs[tape->results[0]].elem != node->shape->elem)
        return rp_node_error(node, RP_FORMAT, err, "the function's result is of another type");
    return RP_OK;
}

static RP_KERNEL(map_run)
{
    struct rp_tape_frame frame;

    RP_TRY(rp_node_result(node, out, err));
    struct rp_tensor *t = *out;

    RP_TRY(rp_tape_begin(node->attrs, &frame, err));
    for (size_t at = 0; at < t->n; at += RP_TAPE_LANES) {
        size_t n = t->n - at < RP_TAPE_LANES ? t->n - at : RP_TAPE_LANES;

        for (uint32_t k = 0; k < node->nin; k++)
            frame.reg[k] = in[k]->data + at * in[k]->unit;
        rp_tape_run(&frame, n);
        memcpy(t->data + at * t->unit, rp_tape_result(&frame, 0), n * t->unit);
    }
    rp_tape_end(&frame);
    return RP_OK;
}

#define ROW(id)                               \
    {                                         \
        RP_OP_##id, prepare_lane, element_run \
    }
const struct rp_kernel rp_kernels_element[] = {
    ROW(ABS),
    ROW(ACOS),
    ROW(ACOSH),
    ROW(ADD),
    ROW(AND),
    ROW(ASIN),
    ROW(ASINH),
    ROW(ATAN2),
    ROW(ATANH),
    ROW(CBRT),
    ROW(CEIL),
    ROW(CLAMP),
    ROW(CLZ),
    ROW(COMPARE),
    ROW(COMPLEX),
    ROW(CONVERT),
    ROW(COSH),
    ROW(COSINE),
    ROW(DIVIDE),
    ROW(ERF),
    ROW(EXP),
    ROW(EXPM1),
    ROW(FLOOR),
    ROW(IMAG),
    ROW(IS_FINITE),
    ROW(LOG),
    ROW(LOG1P),
    ROW(LOGISTIC),
    ROW(MAXIMUM),
    ROW(MINIMUM),
    ROW(MULHI),
    ROW(MULTIPLY),
    ROW(NEGATE),
    ROW(NOT),
    ROW(OR),
    ROW(POPCNT),
    ROW(POWER),
    ROW(REAL),
    ROW(REDUCE_PRECISION),
    ROW(REMAINDER),
    ROW(ROUND_NEAREST_AFZ),
    ROW(ROUND_NEAREST_EVEN),
    ROW(RSQRT),
    ROW(SELECT),
    ROW(SHIFT_LEFT),
    ROW(SHIFT_RIGHT_ARITHMETIC),
    ROW(SHIFT_RIGHT_LOGICAL),
    ROW(SIGN),
    ROW(SINE),
    ROW(SINH),
    ROW(SQRT),
    ROW(SUBTRACT),
    ROW(TAN),
    ROW(TANH),
    ROW(XOR),
    {RP_OP_BITCAST_CONVERT, prepare_bits, bitcast_run},
    {RP_OP_CONSTANT, prepare_constant, constant_run},
    {RP_OP_IOTA, prepare_iota, constant_run},
    {RP_OP_MAP, prepare_map, map_run},
    {0, NULL, NULL},
};
