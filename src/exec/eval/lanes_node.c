/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the lane of an element-wise operation of a plan by its opcode, types and attributes. */
#include "exec/eval/plan.h"
#include "exec/eval/tape.h"
#include "program/opcodes.h"

#include <string.h>

bool rp_opcode_is_elementwise(unsigned code)
{
    switch (code) {
    case RP_OP_MAP:
    case RP_OP_STOCHASTIC_CONVERT:
        return false;
    case RP_OP_BITCAST_CONVERT:
        return true;
    default:
        return code < RP_OP_COUNT && rp_op_info[code].class_ == RP_CLASS_ELEMENT;
    }
}

size_t rp_cast_bits(unsigned elem)
{
    return elem == RP_ELEM_PRED ? 8 : rp_elem_bits(elem);
}

static bool direction_of(const struct rp_plan *plan, const struct rp_node *node, uint8_t *out)
{
    static const char *const words[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};

    for (uint8_t i = 0; i < 6; i++)
        if (rp_node_word(plan, node, RP_ATTR_DIRECTION, words[i])) {
            *out = i;
            return true;
        }
    return false;
}

bool rp_lane_of_node(const struct rp_plan *plan, const struct rp_node *node, bool wide,
                     struct rp_lane *lane)
{
    unsigned code = node->code, to = node->shape->elem;
    bool total = rp_node_word(plan, node, RP_ATTR_TYPE, "TOTALORDER");

    if (!node->nin)
        return false;
    unsigned from = rp_node_operand(plan, node, code == RP_OP_SELECT ? 1 : 0)->elem;
    if (wide && rp_elem_is_small_float(from))
        from = RP_ELEM_F32;
    if (wide && rp_elem_is_small_float(to))
        to = RP_ELEM_F32;
    memset(lane, 0, sizeof *lane);
    lane->from = (uint8_t)from;
    lane->to = (uint8_t)to;
    if (code == RP_OP_COMPARE && !direction_of(plan, node, &lane->direction))
        return false;
    if (code == RP_OP_BITCAST_CONVERT) {
        if (rp_cast_bits(from) != rp_cast_bits(to) || rp_cast_bits(from) < 8)
            return false;
        lane->to = lane->from;
        code = RP_OP_CONVERT;
        if (!rp_lane_find(code, false, lane))
            return false;
        lane->to = (uint8_t)to;
        return true;
    }
    if (code == RP_OP_MULTIPLY)
        lane->direction = plan->like_xla;
    if (node->by_bits && (from == RP_ELEM_F32 || from == RP_ELEM_F64)) {
        lane->fn = rp_lane_by_bits(from == RP_ELEM_F64);
        return true;
    }
    lane->exponent = (uint8_t)rp_node_int(plan, node, RP_ATTR_EXPONENT_BITS, 8);
    lane->mantissa = (uint8_t)rp_node_int(plan, node, RP_ATTR_MANTISSA_BITS, 23);
    if (rp_node_operand(plan, node, 0)->elem == RP_ELEM_F16 && lane->exponent >= 5)
        lane->exponent = 8; /* the exponent need not be reduced, as the type holds all such values,
                               even subnormal ones */
    return rp_lane_find(code, total, lane);
}
